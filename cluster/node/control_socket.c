/* control_socket.c - the file of the control socket: how it is made, found stale, and protected
 * from other users.
 *
 * Must hold.
 *   control-socket-I1  the socket of a live node is never removed (socket_listen), nor one that is
 *       being made: check, removal and creation are under a lock of the directory
 *   control-socket-I2  the file has its mode before it can be connected to (fchmod before bind)
 * Tests.   tests/unit/node/control_test.c
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/node/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/errno_name.h"
#include "cluster/node/ctl_proto.h"

#define BACKLOG 64
#define GROUPS_MAX 1024
/* 10 ms each: any process that may read the directory can hold its lock for ever */
#define LOCK_TRIES 200

void
trpi_control_spare(int *spare_fd)
{
    if (*spare_fd < 0) {
        *spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

int
trpi_control_accept(int listen_fd, int *spare_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && *spare_fd >= 0) {
        (void)close(*spare_fd);
        *spare_fd = -1;
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        struct timespec pause = { 0, 50000000 }; /* no descriptor: poll would spin */
        (void)nanosleep(&pause, NULL);
    }
    return fd;
}

bool
trpi_control_is_live(const char *path, int *ret_pid)
{
    int fd = -1;
    trp_err err = trpi_ctl_connect(path, 0, &fd);
    *ret_pid = err == TRP_OK ? (int)trpi_ctl_peer_pid(fd) : 0;
    if (err == TRP_OK) {
        (void)close(fd);
    }
    return err == TRP_OK || err == TRP_ETIMEDOUT;
}

trp_err
trpi_control_socket_check(const char *path, char *why, size_t why_bytes)
{
    char directory[TRPI_CTL_PATH_BYTES] = ".";
    const char *slash = strrchr(path, '/');
    struct stat info;
    if (slash != NULL) {
        size_t bytes = slash == path ? 1 : (size_t)(slash - path);
        memcpy(directory, path, bytes);
        directory[bytes] = '\0';
    }
    if (stat(directory, &info) != 0) {
        bool missing = errno == ENOENT;
        (void)snprintf(why, why_bytes,
                       missing ? "no such directory: make it (mkdir -p), or name another path with "
                                 "--socket or control.socket"
                               : "%s",
                       strerror(errno));
        return missing || errno == ENOTDIR ? TRP_ECONFIG : TRP_EPERM;
    }
    if (!S_ISDIR(info.st_mode)) {
        (void)snprintf(why, why_bytes,
                       "%s is no directory: name another path with --socket or control.socket",
                       directory);
        return TRP_ECONFIG;
    }
    if (lstat(path, &info) == 0 && !S_ISSOCK(info.st_mode)) {
        (void)snprintf(why, why_bytes, "a file of that name that is not a socket is in the way");
        return TRP_EPERM;
    }
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0) {
        (void)snprintf(why, why_bytes, "no file may be made in its directory: %s (%s)",
                       strerror(errno), trpi_errno_name(errno));
        return TRP_EPERM;
    }
    return TRP_OK;
}

static trp_err
bind_error(int why)
{
    return why == EACCES || why == EPERM || why == EROFS ? TRP_EPERM
           : why == ENOENT                               ? TRP_ENOENT
                                                         : TRP_EIO;
}

/* The lock of the directory that path is in, until the descriptor is closed. -1: it may not be
 * read, or another process keeps the lock; then the caller goes on without it. */
static int
directory_lock(const char *path)
{
    char directory[TRPI_CTL_PATH_BYTES] = ".";
    const char *slash = strrchr(path, '/');
    const struct timespec pause = { 0, 10000000 };
    if (slash != NULL) {
        size_t bytes = slash == path ? 1 : (size_t)(slash - path);
        memcpy(directory, path, bytes);
        directory[bytes] = '\0';
    }
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return fd;
        }
        (void)nanosleep(&pause, NULL);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* With the lock. */
static trp_err
listen_locked(const char *path, int *ret_fd, int *ret_pid)
{
    struct sockaddr_un address;
    struct stat old;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, strlen(path));
    if (trpi_control_is_live(path, ret_pid)) {
        return TRP_EEXIST;
    }
    if (lstat(path, &old) == 0 && (!S_ISSOCK(old.st_mode) || unlink(path) != 0)) {
        return S_ISSOCK(old.st_mode) ? bind_error(errno) : TRP_EIO; /* not ours to remove */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return TRP_EIO;
    }
    if (fchmod(fd, TRPI_CTL_SOCKET_MODE) != 0 || /* control-socket-I2 */
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(path, TRPI_CTL_SOCKET_MODE) != 0 || /* bind applied the umask */
        listen(fd, BACKLOG) != 0) {
        int why = errno;
        (void)close(fd);
        if (why == EADDRINUSE) {
            *ret_pid = 0;
            return TRP_EEXIST; /* another node was faster */
        }
        return bind_error(why);
    }
    *ret_fd = fd;
    return TRP_OK;
}

trp_err
trpi_control_socket_listen(const char *path, int *ret_fd, int *ret_pid)
{
    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path) {
        return TRP_ELIMIT;
    }
    int lock = directory_lock(path);
    trp_err err = listen_locked(path, ret_fd, ret_pid);
    if (lock >= 0) {
        (void)close(lock);
    }
    return err;
}

bool
trpi_control_peer(int fd, uint32_t *ret_uid, long *ret_pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return false;
    }
    *ret_uid = peer.uid;
    *ret_pid = peer.pid;
    return true;
}

bool
trpi_control_peer_allowed(int fd, const char *path)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    struct stat file;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return false;
    }
    if (peer.uid == 0 || peer.uid == geteuid()) {
        return true;
    }
    if (stat(path, &file) != 0) {
        return false;
    }
    if (peer.gid == file.st_gid) {
        return true;
    }
    gid_t groups[GROUPS_MAX];
    bytes = sizeof groups;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0) {
        return false;
    }
    for (size_t i = 0; i < bytes / sizeof groups[0]; i++) {
        if (groups[i] == file.st_gid) {
            return true;
        }
    }
    return false;
}
