/* ctl_proto.c - framing and socket rules of the control protocol.
 *
 * Why.     Node and client must agree on the same bytes and find the same socket; the client
 *          compiles this file in and links nothing else of the library.
 * Must hold.
 *   ctl-proto-P1  A length is checked before memory is allocated for it, or its bytes are read.
 *       (frame_decode)
 *   ctl-proto-P2  A socket is chosen because a node listens there, never by its file name alone:
 *       the socket of a killed node is passed over. (trpi_ctl_find)
 *   ctl-proto-P3  No connect waits without a limit: a node that listens and does not accept has a
 *       full queue one day, and the kernel then waits for ever. Only the chosen node is waited for.
 *       (trpi_ctl_connect, trpi_ctl_find)
 * Cost.    find: one readdir per directory and one connect per socket file.
 * Tests.   tests/unit/node/ctl_proto_test.c
 */
#include "cluster/node/ctl_proto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == TRPI_CTL_PATH_BYTES,
               "the named limit is the kernel's");
#define GLANCE_MS 1u /* a connect that is not to wait: 0 would be no limit */

_Static_assert(TRPI_CTL_PAYLOAD_BYTES_MAX * 2 < TRPI_CTL_REQUEST_BYTES_MAX,
               "a payload of which every byte is escaped still fits a request");

int
trpi_ctl_exit_of(trp_err err)
{
    switch (err) {
    case TRP_OK:
        return TRPI_CTL_EXIT_OK;
    case TRP_EINVAL:
        return TRPI_CTL_EXIT_USAGE;
    case TRP_EDATA:
    case TRP_EMSGSIZE:
    case TRP_ENOTYPE:
        return TRPI_CTL_EXIT_DATA;
    case TRP_ENOENT:
        return TRPI_CTL_EXIT_NOT_FOUND;
    case TRP_ECONN:
    case TRP_ECLOSED:
    case TRP_EADDRINUSE:
        return TRPI_CTL_EXIT_UNREACHABLE;
    case TRP_ETIMEDOUT:
    case TRP_EAGAIN:
    case TRP_ELIMIT:
        return TRPI_CTL_EXIT_TIMEOUT;
    case TRP_EPERM:
        return TRPI_CTL_EXIT_PERMISSION;
    case TRP_ECONFIG:
        return TRPI_CTL_EXIT_CONFIG;
    case TRP_ESTATE:
    case TRP_EEXIST:
        return TRPI_CTL_EXIT_NO;
    default:
        return TRPI_CTL_EXIT_INTERNAL;
    }
}

void
trpi_ctl_header_encode(uint8_t header[TRPI_CTL_HEADER_BYTES], uint32_t body_bytes)
{
    for (unsigned index = 0; index < TRPI_CTL_HEADER_BYTES; index++) {
        header[index] = (uint8_t)(body_bytes >> (8 * index));
    }
}

trp_err
trpi_ctl_frame_decode(const uint8_t *data, size_t bytes, size_t limit, const uint8_t **ret_body,
                      size_t *ret_body_bytes)
{
    if (bytes < TRPI_CTL_HEADER_BYTES) {
        return TRP_EAGAIN;
    }
    size_t length =
        (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
    *ret_body_bytes = length;
    if (length == 0) {
        return TRP_EDATA;
    }
    if (length > limit) {
        return TRP_EMSGSIZE;
    }
    if (bytes - TRPI_CTL_HEADER_BYTES < length) {
        return TRP_EAGAIN;
    }
    *ret_body = data + TRPI_CTL_HEADER_BYTES;
    return TRP_OK;
}

size_t
trpi_ctl_dirs(char dirs[][TRPI_CTL_PATH_BYTES])
{
    size_t count = 0;
    (void)snprintf(dirs[count++], TRPI_CTL_PATH_BYTES, "/run/troupe");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/') {
        int length = snprintf(dirs[count], TRPI_CTL_PATH_BYTES, "%s/troupe", runtime);
        count += length > 0 && (size_t)length < TRPI_CTL_PATH_BYTES;
    } else {
        (void)snprintf(dirs[count++], TRPI_CTL_PATH_BYTES, "/tmp/troupe-%u", (unsigned)geteuid());
    }
    return count;
}

/* A directory below /tmp may have been made by another user: it must be ours and private. */
static bool
dir_is_usable(const char *dir, bool must_be_private)
{
    struct stat status;
    if (lstat(dir, &status) != 0 || !S_ISDIR(status.st_mode) || access(dir, W_OK | X_OK) != 0) {
        return false;
    }
    return !must_be_private || (status.st_uid == geteuid() && (status.st_mode & 0022) == 0);
}

trp_err
trpi_ctl_dir_prepare(char dir[TRPI_CTL_PATH_BYTES])
{
    char dirs[TRPI_CTL_DIRS_MAX][TRPI_CTL_PATH_BYTES];
    size_t count = trpi_ctl_dirs(dirs);
    for (size_t index = 0; index < count; index++) {
        bool shared = index == 0; /* /run/troupe belongs to the machine, the others to one user */
        (void)mkdir(dirs[index],
                    shared ? 0755 : 0700); /* it exists already, or the test below says no */
        if (dir_is_usable(dirs[index], !shared)) {
            memcpy(dir, dirs[index], TRPI_CTL_PATH_BYTES);
            return TRP_OK;
        }
    }
    return TRP_EPERM;
}

trp_err
trpi_ctl_socket_path(const char *dir, const char *system, unsigned port,
                     char path[TRPI_CTL_PATH_BYTES])
{
    int length = snprintf(path, TRPI_CTL_PATH_BYTES, "%s/%s@%u.sock", dir, system, port);
    return length > 0 && (size_t)length < TRPI_CTL_PATH_BYTES ? TRP_OK : TRP_ELIMIT;
}

trp_err
trpi_ctl_socket_name_parse(const char *name, char system[TRPI_CTL_SYSTEM_BYTES_MAX + 1],
                           unsigned *ret_port)
{
    const char *at = strrchr(name, '@');
    if (at == NULL || at == name || (size_t)(at - name) > TRPI_CTL_SYSTEM_BYTES_MAX) {
        return TRP_EINVAL;
    }
    unsigned port = 0;
    const char *digit = at + 1;
    while (*digit >= '0' && *digit <= '9' && digit - at <= 5) {
        port = port * 10 + (unsigned)(*digit++ - '0');
    }
    if (digit == at + 1 || port > UINT16_MAX || strcmp(digit, ".sock") != 0) {
        return TRP_EINVAL;
    }
    memcpy(system, name, (size_t)(at - name));
    system[at - name] = '\0';
    *ret_port = port;
    return TRP_OK;
}

trp_err
trpi_ctl_connect(const char *path, uint32_t timeout_ms, int *ret_fd)
{
    uint32_t limit_ms = timeout_ms > 0 ? timeout_ms : GLANCE_MS;
    struct timeval limit = { .tv_sec = limit_ms / 1000,
                             .tv_usec = (suseconds_t)(limit_ms % 1000) * 1000 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        return TRP_ELIMIT;
    }
    memcpy(address.sun_path, path, length + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return TRP_EIO;
    }
    int rc = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* ctl-proto-P3 */
    bool again = rc == 0;
    while (again) { /* stopped and continued: the limit begins anew */
        rc = connect(fd, (const struct sockaddr *)&address, sizeof address);
        again = rc != 0 && errno == EINTR;
    }
    int error = errno;
    limit.tv_sec = limit.tv_usec = 0;
    if (rc == 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0) {
        *ret_fd = fd;
        return TRP_OK;
    }
    (void)close(fd); /* nothing was written */
    errno = error;
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return TRP_ENOENT;
    case ECONNREFUSED:
        return TRP_ECONN;
    case EAGAIN:
        return TRP_ETIMEDOUT;
    case EACCES:
    case EPERM:
        return TRP_EPERM;
    default:
        return TRP_EIO;
    }
}

bool
trpi_ctl_dir_is_trusted(const char *dir)
{
    struct stat status;
    if (lstat(dir, &status) != 0) {
        return errno == ENOENT; /* no other user can put a socket there */
    }
    bool ours = status.st_uid == 0 || status.st_uid == geteuid() ||
                strcmp(dir, "/run/troupe") == 0; /* root made it, for the user of the service */
    return S_ISDIR(status.st_mode) && ours && (status.st_mode & 0002) == 0;
}

trp_err
trpi_ctl_peer_check(int fd, const char *path)
{
    struct ucred peer = { 0 };
    socklen_t bytes = sizeof peer;
    struct stat socket_file, directory;
    char dir[TRPI_CTL_PATH_BYTES] = ".";
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        (void)snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return TRP_ESTATE;
    }
    if (peer.uid == 0 || peer.uid == geteuid()) {
        return TRP_OK;
    }
    if (stat(dir, &directory) != 0 || (directory.st_mode & 0002) != 0) {
        return TRP_ESTATE; /* any user may put a socket there */
    }
    bool own =
        directory.st_uid == 0 && lstat(path, &socket_file) == 0 && socket_file.st_uid == peer.uid;
    return peer.uid == directory.st_uid || own ? TRP_OK : TRP_ESTATE;
}

/* Of /proc/PID/stat: the letter behind the name, which may hold anything; '\0': it is not there. */
static char
process_state(pid_t pid)
{
    char path[48], text[512];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[count > 0 ? count : 0] = '\0';
    const char *behind = strrchr(text, ')');
    return behind != NULL && behind[1] == ' ' ? behind[2] : '\0';
}

bool
trpi_ctl_process_is_stopped(pid_t pid, char text[TRPI_CTL_PROCESS_BYTES])
{
    if (process_state(pid) != 'T') {
        return false;
    }
    (void)snprintf(text, TRPI_CTL_PROCESS_BYTES,
                   ": process %ld is stopped (SIGSTOP); kill -CONT %ld lets it go on", (long)pid,
                   (long)pid);
    return true;
}

void
trpi_ctl_process_tell(int fd, char text[TRPI_CTL_PROCESS_BYTES])
{
    long pid = (long)trpi_ctl_peer_pid(fd);
    const char *what = "";
    text[0] = '\0';
    if (pid <= 0 || trpi_ctl_process_is_stopped((pid_t)pid, text)) { /* 0: another namespace */
        return;
    }
    switch (process_state((pid_t)pid)) {
    case 't':
        what = "is stopped by a debugger";
        break;
    case 'D':
        what = "waits for a disk or a network file system";
        break;
    case 'Z':
    case 'X':
    case '\0':
        what = "is gone";
        break;
    default:
        what = "runs, but does not answer";
        break;
    }
    (void)snprintf(text, TRPI_CTL_PROCESS_BYTES, ": process %ld %s", pid, what);
}

pid_t
trpi_ctl_peer_pid(int fd)
{
    struct ucred credentials = { 0 };
    socklen_t bytes = sizeof credentials;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 ? credentials.pid : 0;
}

trp_err
trpi_ctl_open(const char *path, uint32_t timeout_ms, int *ret_fd)
{
    int fd = -1;
    trp_err err = trpi_ctl_connect(path, timeout_ms, &fd);
    if (err == TRP_OK) {
        err = trpi_ctl_peer_check(fd, path);
        if (err != TRP_OK) {
            (void)close(fd); /* nothing was written */
        } else {
            *ret_fd = fd;
        }
    }
    return err;
}

/* One live socket met while looking around. */
typedef struct candidate {
    char system[TRPI_CTL_SYSTEM_BYTES_MAX + 1];
    unsigned port;
    unsigned dir; /* index in dirs */
    int fd;       /* -1: it listens, and its queue is full */
} candidate;

typedef struct search {
    candidate *candidates;
    size_t count;
    const char *system; /* NULL: any */
    trpi_ctl_found *found;
    bool refused;
    bool untrusted;
} search;

static void
search_pass_over(search *s, const char *path)
{
    if (!s->refused && !s->untrusted) {
        (void)snprintf(s->found->path, sizeof s->found->path, "%s", path);
    }
    s->untrusted = true;
}

static void
search_entry(search *s, const char *dir, unsigned dir_index, const char *name)
{
    candidate c = { .dir = dir_index, .fd = -1 };
    char path[TRPI_CTL_PATH_BYTES];
    if (s->count == TRPI_CTL_SOCKETS_MAX ||
        trpi_ctl_socket_name_parse(name, c.system, &c.port) != TRP_OK ||
        trpi_ctl_socket_path(dir, c.system, c.port, path) != TRP_OK) {
        return;
    }
    if (s->system != NULL && strcmp(s->system, c.system) != 0) {
        return;
    }
    trp_err err = trpi_ctl_connect(path, 0, &c.fd);
    if (err == TRP_OK && trpi_ctl_peer_check(c.fd, path) != TRP_OK) {
        (void)close(c.fd); /* nothing was written */
        search_pass_over(s, path);
        return;
    }
    if (err == TRP_OK || err == TRP_ETIMEDOUT) {
        s->candidates[s->count++] = c;
    } else if (err == TRP_EPERM && !s->refused) {
        s->refused = true;
        memcpy(s->found->path, path, sizeof path);
    } else {
        s->found->stale_count += err == TRP_ECONN;
    }
}

static void
search_dir(search *s, const char *dir, unsigned dir_index)
{
    if (!trpi_ctl_dir_is_trusted(dir)) {
        search_pass_over(s, dir);
        return;
    }
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        if (errno == EACCES && !s->refused) {
            s->refused = true;
            (void)snprintf(s->found->path, sizeof s->found->path, "%s", dir);
        }
        return;
    }
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        search_entry(s, dir, dir_index, entry->d_name);
    }
    (void)closedir(stream); /* it was only read */
}

static int
candidate_compare(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    int order = strcmp(a->system, b->system);
    if (order == 0) {
        order = (a->port > b->port) - (a->port < b->port);
    }
    return order != 0 ? order : (a->dir > b->dir) - (a->dir < b->dir);
}

/* "a@1, b@2" into found->systems, the lowest port of each system. Returns the number of systems. */
static size_t
systems_list(const search *s)
{
    size_t systems = 0, used = 0;
    for (size_t index = 0; index < s->count; index++) {
        const candidate *c = &s->candidates[index];
        if (index > 0 && strcmp(c->system, s->candidates[index - 1].system) == 0) {
            continue;
        }
        size_t room = sizeof s->found->systems - used;
        int length = snprintf(s->found->systems + used, room, "%s%s@%u", systems > 0 ? ", " : "",
                              c->system, c->port);
        if ((size_t)length < room) {
            used += (size_t)length;
        } else {
            (void)snprintf(s->found->systems + sizeof s->found->systems - 6, 6, ", ...");
            used = sizeof s->found->systems - 1; /* full: no room for another */
        }
        systems++;
    }
    return systems;
}

trp_err
trpi_ctl_find(char dirs[][TRPI_CTL_PATH_BYTES], size_t dirs_count, const char *system,
              uint32_t timeout_ms, trpi_ctl_found *ret_found, int *ret_fd)
{
    candidate candidates[TRPI_CTL_SOCKETS_MAX];
    memset(ret_found, 0, sizeof *ret_found);
    search s = { .candidates = candidates,
                 .system = system != NULL && system[0] != '\0' ? system : NULL,
                 .found = ret_found };
    for (size_t index = 0; index < dirs_count; index++) {
        search_dir(&s, dirs[index], (unsigned)index);
    }
    if (s.count == 0) {
        return s.refused ? TRP_EPERM : s.untrusted ? TRP_ESTATE : TRP_ENOENT;
    }
    qsort(candidates, s.count, sizeof candidates[0], candidate_compare);
    bool several = systems_list(&s) > 1;
    for (size_t index = several ? 0 : 1; index < s.count; index++) {
        if (candidates[index].fd >= 0) {
            (void)close(candidates[index].fd); /* nothing was written */
        }
    }
    if (several) {
        return TRP_ELIMIT;
    }
    *ret_fd = candidates[0].fd;
    ret_found->port = candidates[0].port;
    memcpy(ret_found->system, candidates[0].system, sizeof ret_found->system);
    trp_err err = trpi_ctl_socket_path(dirs[candidates[0].dir], candidates[0].system,
                                       candidates[0].port, ret_found->path);
    return err == TRP_OK && *ret_fd < 0 ? trpi_ctl_open(ret_found->path, timeout_ms, ret_fd) : err;
}
