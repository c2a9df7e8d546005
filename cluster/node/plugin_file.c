/* plugin_file.c - files of plugins that a command names, and of applications: who may have written
 * them, and a copy of one.
 *
 * Why.     A command that loads code must not be a way to run code that its caller brings: the
 *          directory is the administrator's, and the name stays in it. The loader takes a file that
 *          it knows by name or by inode for one that is loaded already, and a file that is
 *          overwritten changes code that runs: so each version is a file of its own.
 * Must hold.
 *   plugin-file-I1  What is checked is what is copied: all looks are at descriptors, not at paths.
 *   plugin-file-I2  A copy cannot be written any more when it is loaded.
 * Limits.  FILE_BYTES_MAX, LINKS_MAX links in a row.
 * Tests.     tests/system/upgrade.sh, apps.sh
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/bootable.h>

#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_plugin.h"

#define FILE_BYTES_MAX ((long long)TRP_APP_BYTES_MAX)
#define LINKS_MAX 8
#define NAME_BYTES 256

static bool
name_is_bare(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strlen(name) < NAME_BYTES;
}

/* Is it this user's or root's, and may nobody else write it? */
static bool
is_trusted(const struct stat *st, const char *what, const char *name,
           trpi_control_refusal *ret_refusal)
{
    if (st->st_uid != 0 && st->st_uid != geteuid()) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_PERMISSION,
                            "%s %.512s belongs to user %u: it has to be root's, or that of the "
                            "node's user",
                            what, name, (unsigned)st->st_uid);
        return false;
    }
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_PERMISSION,
                            "%s %.512s can be written by others (mode %04o): chmod go-w %.256s",
                            what, name, (unsigned)(st->st_mode & 07777), name);
        return false;
    }
    return true;
}

static int
directory_open(const char *dir, trpi_control_refusal *ret_refusal)
{
    struct stat st;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_CONFIG, "directory %.512s: %s", dir,
                            strerror(errno));
    } else if (is_trusted(&st, "directory", dir, ret_refusal)) {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* Follow links that stay in the directory. false: refused. */
static bool
links_follow(int dir_fd, const char *dir, char name[NAME_BYTES], trpi_control_refusal *ret_refusal)
{
    char target[NAME_BYTES];
    for (int i = 0; i <= LINKS_MAX; i++) {
        ssize_t bytes = readlinkat(dir_fd, name, target, sizeof target);
        if (bytes < 0) {
            return true; /* no link, or not there: open says so */
        }
        target[bytes < NAME_BYTES ? bytes : NAME_BYTES - 1] = '\0';
        if (bytes >= NAME_BYTES || !name_is_bare(target)) {
            trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_PERMISSION,
                                "%s/%s is a link that leaves the directory: put the file there, or "
                                "link to a name in it",
                                dir, name);
            return false;
        }
        memcpy(name, target, (size_t)bytes + 1);
    }
    trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_PERMISSION, "%s/%s: more than %d links in a row",
                        dir, name, LINKS_MAX);
    return false;
}

static bool
file_open(int dir_fd, const char *dir, char name[NAME_BYTES], int *ret_fd,
          trpi_control_refusal *ret_refusal)
{
    struct stat st;
    if (!links_follow(dir_fd, dir, name, ret_refusal)) {
        return false;
    }
    /* O_NONBLOCK: of a pipe, which is refused next */
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        trpi_control_refuse(ret_refusal,
                            errno == ENOENT ? TRPI_CTL_EXIT_NOT_FOUND : TRPI_CTL_EXIT_PERMISSION,
                            "%s/%s: %s", dir, name, strerror(errno));
    } else if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA,
                            "%s/%s is no file, or has more than %lld bytes", dir, name,
                            FILE_BYTES_MAX);
    } else if (is_trusted(&st, "file", name, ret_refusal)) {
        *ret_fd = fd;
        return true;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return false;
}

bool
trpi_plugin_file_open(const char *dir, const char *name, int *ret_fd,
                      trpi_control_refusal *ret_refusal)
{
    char at[NAME_BYTES];
    ret_refusal->hint[0] = '\0';
    if (!name_is_bare(name)) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_USAGE,
                            "'%.256s': expected the name of a file in %.512s, without a /", name,
                            dir);
        return false;
    }
    (void)snprintf(at, sizeof at, "%s", name);
    int dir_fd = directory_open(dir, ret_refusal);
    if (dir_fd < 0) {
        return false;
    }
    bool ok = file_open(dir_fd, dir, at, ret_fd, ret_refusal);
    (void)close(dir_fd);
    return ok;
}

static bool
bytes_copy(int from, int to)
{
    char buffer[65536];
    long long sum = 0;
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got == 0) {
            return true;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        sum += got;
        if (got < 0 || sum > FILE_BYTES_MAX) {
            return false;
        }
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(to, buffer + done, (size_t)(got - done));
            if (put < 0 && errno != EINTR) {
                return false;
            }
            done += put > 0 ? put : 0;
        }
    }
}

bool
trpi_plugin_file_copy(int fd, const char *name, uint32_t number, int *ret_copy, char ret_path[64],
                      trpi_control_refusal *ret_refusal)
{
    char label[NAME_BYTES];
    (void)snprintf(label, sizeof label, "%.200s.%u", name, number);
    int copy = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool ok = copy >= 0 && bytes_copy(fd, copy) &&
              fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
                  0; /* plugin-file-I2 */
    if (!ok) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_INTERNAL, "%s cannot be copied: %s", name,
                            strerror(errno));
        if (copy >= 0) {
            (void)close(copy);
        }
    } else {
        (void)snprintf(ret_path, 64, "/proc/self/fd/%d", copy);
        *ret_copy = copy;
    }
    (void)close(fd);
    return ok;
}
