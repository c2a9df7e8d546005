/* net.h - sockets of the world: the machine's, or those of a simulated network.
 *
 * Why.   The poll driver of remoting, and actors that own sockets, use these functions and no
 *        system call, so both run in the simulator: there a seed decides about delays, partial
 *        reads and writes, resets, refused connects, loss and duplication of datagrams.
 * Shape. Functions answer as the system calls do, but with -errno in place of -1 and errno. A
 *        socket is a number: a descriptor of the machine, or a number of the simulated network.
 *        All sockets are non-blocking and close-on-exec; no call raises SIGPIPE.
 *        Readiness: a set of sockets; edges, as EPOLLET reports them.
 * Must hold.
 *   net-N1  A change from "would block" to "ready" is reported once at least after the call that
 *       answered -EAGAIN or -EINPROGRESS; a report that is not true any more is allowed. Of TCP a
 *       read that fills a part of its room says -EAGAIN as well, unless a report had DRAIN.
 *   net-N2  After trpi_net_set_remove() returns, later waits do not report the socket; a wait that
 *       has begun may. Keys are numbers, so an old report points to no freed memory.
 * Thread. Any, but for the functions of a set that say so.
 * Tests.  tests/unit/base/net_test.c, tests/unit/sim/sim_twin_test.c
 */
#ifndef TRPI_BASE_NET_H
#define TRPI_BASE_NET_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/world.h"

typedef struct trpi_net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        struct sockaddr_storage storage;
    } of;
    socklen_t bytes; /* 0: none */
} trpi_net_address;

enum {
    TRPI_NET_IN = 1,
    TRPI_NET_OUT = 2,
    TRPI_NET_END = 4, /* error, or both directions ended */
    /* With IN: the peer's direction has ended, or has urgent bytes, at which a read stops: to be
     * read until 0 or -EAGAIN. */
    TRPI_NET_DRAIN = 8
};
typedef struct trpi_net_report {
    uint64_t key;    /* of trpi_net_set_add() */
    uint32_t events; /* TRPI_NET_* */
} trpi_net_report;

typedef struct trpi_net_set trpi_net_set;

typedef struct trpi_net_ops {
    int (*socket)(trpi_world *world, int family, int type); /* AF_*, SOCK_STREAM or SOCK_DGRAM */
    int (*bind)(trpi_world *world, int socket, const trpi_net_address *address);
    int (*listen)(trpi_world *world, int socket, int backlog);
    int (*accept)(trpi_world *world, int socket, trpi_net_address *ret_peer);
    int (*connect)(trpi_world *world, int socket, const trpi_net_address *address);
    ssize_t (*read)(trpi_world *world, int socket, const struct iovec *iov, int count);
    ssize_t (*write)(trpi_world *world, int socket, const struct iovec *iov, int count);
    /* One datagram; *ret_flags: MSG_TRUNC if it did not fit. */
    ssize_t (*receive)(trpi_world *world, int socket, const struct iovec *iov, int count,
                       trpi_net_address *ret_from, int *ret_flags);
    ssize_t (*send)(trpi_world *world, int socket, const struct iovec *iov, int count,
                    const trpi_net_address *to);
    /* sendfile(2): count bytes of the file's descriptor at *offset, which moves on. */
    ssize_t (*send_file)(trpi_world *world, int socket, int file, off_t *offset, size_t count);
    int (*shutdown)(trpi_world *world, int socket, int how); /* SHUT_* */
    int (*close)(trpi_world *world, int socket);
    int (*option_set)(trpi_world *world, int socket, int level, int name, const void *value,
                      socklen_t bytes);
    int (*option_get)(trpi_world *world, int socket, int level, int name, void *ret_value,
                      socklen_t *bytes);
    int (*local_address)(trpi_world *world, int socket, trpi_net_address *ret_address);
    int (*peer_address)(trpi_world *world, int socket, trpi_net_address *ret_address);

    /* Make a set. on_due: only of a driven world: wait(set, ..., 0) is to be called in so many
     * nanoseconds, since something will be ready then; it may be called within any call of these
     * functions. A world with threads never calls it. 0, or -errno. */
    int (*set_new)(trpi_world *world, void (*on_due)(void *arg, uint64_t in_ns), void *arg,
                   trpi_net_set **ret_set);
    void (*set_free)(trpi_net_set *set);
    /* Report in, out and end of this socket under key, from now on, until it is removed or closed.
     * A socket that is ready already is reported too. 0, or -errno. */
    int (*set_add)(trpi_net_set *set, int socket, uint64_t key);
    void (*set_remove)(trpi_net_set *set, int socket);
    /* Return the number of reports, at most `most`; 0: the time is over, or it was woken. One
     * thread at a time. timeout_ns: UINT64_MAX: none. A driven world does not wait. */
    int (*set_wait)(trpi_net_set *set, trpi_net_report *ret_reports, int most, uint64_t timeout_ns);
    void (*set_wake)(trpi_net_set *set); /* end the present wait, or the next one, at once */
} trpi_net_ops;

extern const trpi_net_ops trpi_net_machine; /* src/base/net_machine.c; any world */

/* The world's sockets; NULL: it has none. */
static inline const trpi_net_ops *
trpi_world_net(const trpi_world *world)
{
    return world->ops->net;
}

#endif
