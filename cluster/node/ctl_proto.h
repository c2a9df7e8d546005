/* ctl_proto.h - the contract between `troupe` and a node: framing, limits, the place of the socket.
 *
 * Why.     The client must start in a millisecond, so it links none of the library. The agreement
 *          of both sides is therefore here and in CONTROL.md (the commands, field by field), and
 *          needs libc only.
 * Shape.   AF_UNIX stream. Each way: u32 little-endian body length, then one JSON object. A client
 *          sends a request, reads objects until the final one (it has "ok"), and may send the next.
 * Limits.  TRPI_CTL_*_MAX below; a body of 0 bytes or above the limit is refused before it is read.
 * Tests.   tests/unit/node/ctl_proto_test.c, tests/system/cli.sh
 */
#ifndef TRPI_NODE_CTL_PROTO_H
#define TRPI_NODE_CTL_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <troupe/base.h>

#define TRPI_CTL_VERSION 1

#define TRPI_CTL_HEADER_BYTES 4u
#define TRPI_CTL_REQUEST_BYTES_MAX (1024u * 1024u)
#define TRPI_CTL_RESPONSE_BYTES_MAX (16u * 1024u * 1024u)
/* Text or decoded bytes of one message in `send` and `ask`: base64 of it and the rest of the
 * request stay below TRPI_CTL_REQUEST_BYTES_MAX (and so does text in which every byte is escaped by
 * one). */
#define TRPI_CTL_PAYLOAD_BYTES_MAX (384u * 1024u)
#define TRPI_CTL_CONNECTIONS_MAX                                                                   \
    64u /* server: the next one gets exit 75, "too many control clients" */
#define TRPI_CTL_SOCKET_MODE 0660
#define TRPI_CTL_PATH_BYTES 108u /* sizeof(sockaddr_un.sun_path), with the NUL */
#define TRPI_CTL_SYSTEM_BYTES_MAX 63u
#define TRPI_CTL_DIRS_MAX 3u
#define TRPI_CTL_SOCKETS_MAX 128u /* sockets looked at in all directories together */
#define TRPI_CTL_TIMEOUT_MS_DEFAULT 5000u
#define TRPI_CTL_TIMEOUT_MS_LONG 60000u /* join, leave, down, wait */

/* Exit codes of the program, and "exit" of a refused request. */
enum trpi_ctl_exit {
    TRPI_CTL_EXIT_OK = 0,
    TRPI_CTL_EXIT_NO = 1,         /* the answer is no; unhealthy; the condition became impossible */
    TRPI_CTL_EXIT_USAGE = 64,     /* unknown command or flag, bad address syntax */
    TRPI_CTL_EXIT_DATA = 65,      /* undecodable payload, invalid JSON */
    TRPI_CTL_EXIT_NOT_FOUND = 68, /* no such member, actor path */
    TRPI_CTL_EXIT_UNREACHABLE = 69, /* no node; cannot bind; already running */
    TRPI_CTL_EXIT_INTERNAL = 70,
    TRPI_CTL_EXIT_OUTPUT = 74,  /* what was asked for cannot be written: standard output, a file */
    TRPI_CTL_EXIT_TIMEOUT = 75, /* may be retried; the text names what was pending */
    TRPI_CTL_EXIT_DOWNED = 76,  /* node: downed or removed by the others */
    TRPI_CTL_EXIT_PERMISSION = 77,
    TRPI_CTL_EXIT_CONFIG = 78
};

/* The exit code that stands for a library error. */
int trpi_ctl_exit_of(trp_err err);

/* Write the header of a body of body_bytes (1 .. UINT32_MAX) into header. */
void trpi_ctl_header_encode(uint8_t header[TRPI_CTL_HEADER_BYTES], uint32_t body_bytes);

/* Look at the first bytes of a stream. TRP_OK: a whole frame is there, *ret_body borrows from data
 * and the frame takes TRPI_CTL_HEADER_BYTES + *ret_body_bytes. Errors: TRP_EAGAIN more bytes are
 * needed (from 4 bytes on *ret_body_bytes is set); TRP_EMSGSIZE length above limit (*ret_body_bytes
 * says it); TRP_EDATA length 0. */
trp_err trpi_ctl_frame_decode(const uint8_t *data, size_t bytes, size_t limit,
                              const uint8_t **ret_body, size_t *ret_body_bytes);

/* Directories that may hold sockets, best first, each cut to fit a socket name behind it:
 *   /run/troupe; $XDG_RUNTIME_DIR/troupe; /tmp/troupe-UID (when XDG_RUNTIME_DIR is not set).
 * Returns how many. */
size_t trpi_ctl_dirs(char dirs[][TRPI_CTL_PATH_BYTES]);

/* Server: choose the first of them that this process can write to; makes /run/troupe (0755, when we
 * may) and the private ones (0700). Errors: TRP_EPERM none can be used, TRP_ELIMIT path too long.
 * */
trp_err trpi_ctl_dir_prepare(char dir[TRPI_CTL_PATH_BYTES]);

/* Write "DIR/SYSTEM@PORT.sock". Errors: TRP_ELIMIT it does not fit TRPI_CTL_PATH_BYTES. */
trp_err trpi_ctl_socket_path(const char *dir, const char *system, unsigned port,
                             char path[TRPI_CTL_PATH_BYTES]);

/* Take "SYSTEM@PORT.sock" apart. Errors: TRP_EINVAL not such a name. */
trp_err trpi_ctl_socket_name_parse(const char *name, char system[TRPI_CTL_SYSTEM_BYTES_MAX + 1],
                                   unsigned *ret_port);

/* Connect to the socket at path, blocking, close-on-exec. timeout_ms: for the node to accept; 0: as
 * good as at once. Errors: TRP_ENOENT no such file, TRP_ECONN no process listens (stale),
 * TRP_ETIMEDOUT one listens, but does not accept (the queue of the socket is full), TRP_EPERM not
 * permitted, TRP_ELIMIT path too long, TRP_EIO other (errno). *ret_fd is written on success
 * only. */
trp_err trpi_ctl_connect(const char *path, uint32_t timeout_ms, int *ret_fd);

/* May the process that listens at path be given orders? It must run as root, as our user, or as the
 * owner of the directory; or only root may write to the directory, and the socket belongs to that
 * process.
 * Errors: TRP_ESTATE. */
trp_err trpi_ctl_peer_check(int fd, const char *path);
/* Client: trpi_ctl_connect() and that. */
trp_err trpi_ctl_open(const char *path, uint32_t timeout_ms, int *ret_fd);
/* May sockets be looked for in this directory, which the user has not named? It must be root's or
 * ours, and not writable by others; the owner of /run/troupe is root's choice. */
bool trpi_ctl_dir_is_trusted(const char *dir);

/* The process at the other end of a connected socket (SO_PEERCRED); 0 when the kernel does not
 * know. */
pid_t trpi_ctl_peer_pid(int fd);

/* Write the state of the process that made the socket at the other end of fd and does not answer:
 * ": process 123 is stopped (SIGSTOP, or a terminal's Ctrl-Z); kill -CONT 123 lets it go on"; ""
 * when the kernel does not know. From /proc. */
#define TRPI_CTL_PROCESS_BYTES 128
void trpi_ctl_process_tell(int fd, char text[TRPI_CTL_PROCESS_BYTES]);
/* Is that process stopped? Then its state is written to text, as above. */
bool trpi_ctl_process_is_stopped(pid_t pid, char text[TRPI_CTL_PROCESS_BYTES]);

typedef struct trpi_ctl_found {
    /* TRP_OK, TRP_ETIMEDOUT: the socket; TRP_EPERM, TRP_ESTATE: the first one that refused us, or
     * is not trusted */
    char path[TRPI_CTL_PATH_BYTES];
    char system[TRPI_CTL_SYSTEM_BYTES_MAX + 1];
    unsigned port;
    uint32_t stale_count; /* sockets without a listener that were passed over */
    char systems[1024]; /* TRP_ELIMIT: "demo@2552, other@2552", sorted; ends in ", ..." when cut */
} trpi_ctl_found;

/* Find the node to talk to among the sockets of dirs: of one system the lowest live port. system
 * NULL or "": any. *ret_fd is connected. A node that listens is alive, also when it does not
 * accept; the one that is chosen gets timeout_ms for it. Errors: TRP_ENOENT no live socket;
 * TRP_ETIMEDOUT the chosen one does not accept; TRP_ELIMIT live sockets of several systems
 * (ret_found->systems lists them); TRP_EPERM only sockets that we may not open; TRP_ESTATE only
 * ones that another user has put there. ret_found is filled in each case. */
trp_err trpi_ctl_find(char dirs[][TRPI_CTL_PATH_BYTES], size_t dirs_count, const char *system,
                      uint32_t timeout_ms, trpi_ctl_found *ret_found, int *ret_fd);

#endif
