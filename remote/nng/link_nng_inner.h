/* link_nng_inner.h - what the files of the tcp transport share: links, and their beginning and
 * end. The rules stand in link_nng.c.
 */
#ifndef TRPI_REMOTE_LINK_NNG_INNER_H
#define TRPI_REMOTE_LINK_NNG_INNER_H

#include "remote/nng/link_nng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "io/resolver.h"
#include "remote/wire/bottleneck.h"

enum {
    /* two of these a link, the second only when the first was filled well */
    READ_BYTES = 65536,
    READ_FIRST_BYTES = 4096,  /* until a read fills it: most links carry little */
    READ_EARLY_BYTES = 16384, /* a read that gave more lets the next one begin before it is told */
    ACCEPT_RETRY_MS = 50,
    PAUSE_LOOK_MS = 1,  /* after this time a paused link looks whether it may read */
    HELD_LOOK_MS = 20,  /* 160 bytes of a link of 64 kbit/s */
    DIAL_LEAST_MS = 200 /* the least time for one of several addresses */
};

struct trpi_link {
    trpi_transport *transport;
    void *user;
    pthread_mutex_t lock;
    nng_stream *stream; /* NULL while dialling */
    nng_stream_dialer *dialers[TRPI_RESOLVER_ADDRESSES_MAX];
    nng_aio *dial, *rx, *tx;
    atomic_int
        references;      /* transport until closed(), user until release(), resolver while it looks;
                     * dropped with acq_rel: the last one sees all writes of the others */
    bool closing;        /* by lock; link-nng-L1, link-nng-L2 */
    bool telling;        /* by lock; a thread is in the loop of on_read */
    bool accepting;      /* by lock; accepted() runs: the reaper must wait for it */
    bool pause_asked;    /* by lock; pause() was called in the bytes() in progress */
    bool pause_early;    /* by lock; paused while a read was posted, or waits */
    bool paused;         /* in transport->paused; by transport->lock */
    bool held;           /* in transport->held; by transport->lock */
    bool refused;        /* accepted() said no: no closed() */
    bool stop_asked;     /* by transport->lock */
    size_t read_waiting; /* by lock; bytes of a read that completed while telling, 0: none */
    int read_index;      /* by lock; buffer of the read that is posted or waiting */
    size_t read_bytes;   /* of each of them: READ_FIRST_BYTES, then READ_BYTES; by lock */
    uint8_t *read_buffers[2];
    nng_iov iov[TRPI_TRANSPORT_IOV_MAX]; /* of the write in progress; by its one writer */
    unsigned iov_count;
    int socket;        /* of the stream, -1: not known; by lock. link-nng-socket-S1 */
    uint32_t searches; /* for the socket; by lock */
    trpi_bottleneck_state bottleneck; /* how much the kernel may hold of it; by lock */
    trp_err err;                      /* first failure; by lock */
    char reason[128];
    /* dialling; by the one dial in progress */
    uint16_t port;
    uint32_t dial_index;
    uint64_t deadline_ns;
    trpi_resolved addresses;
    char host[TRPI_HOST_BYTES_MAX + 1];
    trpi_link *next, *previous; /* in transport->links, by its lock */
    trpi_link *reap_next;
    trpi_link *paused_next;
    trpi_link *held_next;
};

struct trpi_transport {
    trpi_world *world;
    const trpi_transport_events *events;
    void *arg;
    trpi_resolver *resolver;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* reaper: work; stop(): links went */
    pthread_t reaper;
    bool reaper_runs, stopping, reaper_ends;
    bool accept_retry; /* link-nng-H8 */
    struct timespec accept_retry_at;
    trpi_link *paused; /* links that do not read; by lock, the reaper looks after them */
    trpi_link *held;   /* links whose write waits for room in the kernel; likewise */
    struct timespec paused_look_at; /* and at those that are held */
    trpi_link *links, *reap_first, **reap_last;
    nng_stream_listener *listener;
    nng_aio *accept;
};

/* link_nng.c; shut, reap_later, post_read: see link-nng-L1 and link-nng-L2 */
trp_err trpi_link_err(int code);
void trpi_link_unref(trpi_link *link);
void trpi_link_reap_later(trpi_link *link);
void trpi_link_shut(trpi_link *link, trp_err err, const char *reason);
void trpi_link_aio_end(nng_aio **aio);
void trpi_link_free_nng(trpi_link *link);
struct timespec trpi_link_time_after_ms(long ms);
trpi_link *trpi_link_new(trpi_transport *transport);
bool trpi_link_add(trpi_link *link);
void trpi_link_post_read(trpi_link *link);
void trpi_link_open_stream(trpi_link *link);

/* link_nng_socket.c; the caller holds link->lock, or nobody else has the link yet. Find the socket
 * of the new stream and set it up. Before each write: how many bytes the way bears now; SIZE_MAX:
 * any, 0: none. */
void trpi_link_socket_open(trpi_link *link);
size_t trpi_link_socket_room(trpi_link *link);

/* link_nng_open.c: as the transport's ops */
void trpi_link_accept(trpi_transport *transport);
trp_err trpi_link_listen(trpi_transport *transport, const char *host, uint16_t port,
                         uint16_t *ret_port);
trp_err trpi_link_connect(trpi_transport *transport, const char *host, uint16_t port,
                          uint32_t timeout_ms, void *user, trpi_link **ret_link);

#endif
