/* lease_file.c - the lease that is a lock on a file.
 *
 * Why.     A shared file system is a lock service that many sites have already.
 * Must hold.
 *   lease-file-F1  The lock belongs to the open file, not to the process (OFD locks): two nodes of
 *       one process exclude each other, and closing another descriptor of the file does not give it
 *       up. It ends with the process, however that ends; on a shared file system with the host's
 *       session there.
 *   lease-file-F2  The lock alone decides the owner. The text of the file is for people, and for a
 *       node on the owner's side (membership-downing-W2): so all of it is read and passed on.
 * Not here. The promise of the file system that hosts exclude each other: NFS 4, CephFS, GFS2,
 *          OCFS2, Lustre and SMB do; a disk of one host does for the nodes of that host only.
 * Tests.   tests/unit/cluster/lease_test.c
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/errno_name.h"
#include "cluster/shell/lease.h"

struct trpi_lease_file {
    int fd; /* -1: not held */
    char path[];
};

trp_err
trpi_lease_file_new(const char *path, trpi_lease_file **ret_file)
{
    trpi_lease_file *file = trpi_alloc(sizeof *file + strlen(path) + 1);
    if (file == NULL) {
        return TRP_ENOMEM;
    }
    file->fd = -1;
    memcpy(file->path, path, strlen(path) + 1);
    *ret_file = file;
    return TRP_OK;
}

void
trpi_lease_file_free(trpi_lease_file *file)
{
    if (file != NULL) {
        if (file->fd >= 0) {
            (void)close(file->fd);
        }
        trpi_free(file);
    }
}

bool
trpi_lease_file_check(const char *path, char *why, size_t why_bytes)
{
    char copy[4096];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool missing = fd < 0 && errno == ENOENT;
    (void)snprintf(copy, sizeof copy, "%s", path);
    if (fd >= 0) {
        (void)close(fd);
        return true;
    }
    if (missing && faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) == 0) {
        return true;
    }
    (void)snprintf(why, why_bytes, "%.150s: %s (%s)", path, strerror(errno),
                   trpi_errno_name(errno));
    return false;
}

/* Read the holder that the file names. lease-file-F2 */
static void
holder_read(int fd, char *why, size_t why_bytes)
{
    char text[TRP_LEASE_WHY_BYTES];
    ssize_t count = pread(fd, text, sizeof text - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(why, why_bytes, "%s has it", text[0] == '\0' ? "another node" : text);
}

static trp_err
lease_file_acquire(void *arg, const char *name, const char *owner, uint32_t timeout_ms, char *why,
                   size_t why_bytes)
{
    trpi_lease_file *file = arg;
    char text[TRP_LEASE_WHY_BYTES];
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    (void)timeout_ms; /* the lock is acquired at once, or not */
    if (file->fd >= 0) {
        return TRP_OK;
    }
    int fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);
    if (fd < 0) {
        (void)snprintf(why, why_bytes, "%.150s: %s (%s)", file->path, strerror(errno),
                       trpi_errno_name(errno));
        return TRP_EIO;
    }
    if (fcntl(fd, F_OFD_SETLK, &all) != 0) { /* lease-file-F1 */
        bool taken = errno == EAGAIN || errno == EACCES;
        if (taken) {
            holder_read(fd, why, why_bytes);
        } else {
            (void)snprintf(why, why_bytes, "%.120s cannot be locked: %s (%s)", file->path,
                           strerror(errno), trpi_errno_name(errno));
        }
        (void)close(fd);
        return taken ? TRP_EAGAIN : TRP_EIO;
    }
    int bytes = snprintf(text, sizeof text, "%s (lease %s)\n", owner, name);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)bytes, 0) != bytes) {
        (void)snprintf(why, why_bytes,
                       "locked, though its holder cannot be written into it: %s (%s)",
                       strerror(errno), trpi_errno_name(errno));
    }
    file->fd = fd;
    return TRP_OK;
}

static void
lease_file_release(void *arg, const char *name, const char *owner)
{
    trpi_lease_file *file = arg;
    (void)name;
    (void)owner;
    if (file->fd >= 0) {
        (void)!ftruncate(file->fd, 0); /* lease-file-F2: a stale name would only mislead */
        (void)close(file->fd);
        file->fd = -1;
    }
}

const trp_lease_ops trpi_lease_file_ops = { sizeof(trp_lease_ops), "file", lease_file_acquire,
                                            lease_file_release };

bool
trpi_lease_file_is_shared(const char *path, char *why, size_t why_bytes)
{
    static const uint32_t shared[] = {
        0x6969,     /* NFS */
        0x00c36400, /* Ceph */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
        0x0bd00bd0, /* Lustre */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE: GlusterFS and many others */
        0x01021997, /* 9P */
        0x47504653  /* GPFS */
    };
    char copy[4096];
    struct statfs info;
    (void)snprintf(copy, sizeof copy, "%s", path);
    const char *directory = dirname(copy);
    if (statfs(directory, &info) != 0) {
        (void)snprintf(why, why_bytes, "%.150s: %s (%s)", directory, strerror(errno),
                       trpi_errno_name(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        if ((uint32_t)info.f_type == shared[i]) {
            return true;
        }
    }
    (void)snprintf(why, why_bytes,
                   "%.150s is on a file system of this host alone: nodes of other hosts would also "
                   "acquire the lease, and both sides of a split would go on",
                   path);
    return false;
}
