/* link_poll_inner.h - what the files of the tcp transport on the poller share. The rules stand in
 * link_poll.c.
 */
#ifndef TRPI_REMOTE_LINK_POLL_INNER_H
#define TRPI_REMOTE_LINK_POLL_INNER_H

#include "remote/poll/link_poll.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/net.h"
#include "io/resolver.h"
#include "remote/wire/bottleneck.h"

enum {
    TRPI_LINK_READ_BYTES = 65536,   /* one buffer; a link has one only while it reads */
    TRPI_LINK_CONTROL_BYTES = 4096, /* that of the thread for control lanes */
    TRPI_LINK_BUFFERS_KEPT = 64     /* of a transport: no more threads read at once */
};

typedef enum trpi_link_stage {
    TRPI_LINK_RESOLVING,
    TRPI_LINK_DIALLING, /* one address after the other */
    TRPI_LINK_OPEN
} trpi_link_stage;

/* How much the kernel may hold of a link: bottleneck.h. By link->lock (link_poll_way.c). */
typedef struct trpi_link_way {
    trpi_bottleneck_state bottleneck;
    uint64_t acked_base; /* what the kernel counted at the beginning */
} trpi_link_way;

/* Dialling; by link->lock. NULL for a link that is open. */
typedef struct trpi_link_dial {
    uint16_t port;
    uint32_t index; /* of the next address */
    uint32_t attempt;
    bool timed_out; /* the present attempt */
    uint64_t deadline_ns;
    uint64_t timer; /* of the attempt; 0: none */
    trp_err err;    /* of the last attempt */
    char reason[96];
    trpi_resolved addresses;
    char host[TRPI_HOST_BYTES_MAX + 1];
} trpi_link_dial;

struct trpi_link {
    trpi_transport *transport;
    void *user;
    pthread_mutex_t lock;
    atomic_int references; /* transport until closed(), user until release(), resolver and timers
                            * meanwhile; acq_rel at the end */
    _Atomic trpi_link_stage stage; /* written by lock */
    atomic_bool closing;           /* set by lock; link-poll-L1 */
    atomic_bool writing;           /* set by lock */
    bool accepting;                /* by lock; accepted() runs: nobody else ends the link */
    bool removing;                 /* by lock; removed() of its watch is to come */
    int socket;                    /* -1: none; written by lock, closed in removed() alone */
    trpi_watch *watch;             /* by lock; NULL: none, or it is being removed */
    bool pause_asked, paused;      /* by ready() */
    bool drain;                    /* by ready(); to be read until the end, or -EAGAIN */
    bool look_due;                 /* by lock; a timer will look at it */
    bool own_asked;                /* by bytes(): hand_over() was called */
    bool moving;                   /* by lock; its watch ends, and one of apart->poller begins */
    bool own;                      /* of apart->poller; by its callbacks */
    trpi_watch *own_watch;         /* as own; it stays when watch is NULL again */
    atomic_bool nudged;
    unsigned iov_at, iov_count;               /* by lock, as iov */
    struct iovec iov[TRPI_TRANSPORT_IOV_MAX]; /* the rest of the write */
    trpi_link_way way;
    trpi_link_dial *dial;
    trp_err err; /* first failure; by lock */
    char reason[128];
    bool stop_asked;            /* by transport->cond.lock */
    trpi_link *next, *previous; /* in transport->links, likewise */
};

typedef struct trpi_link_buffer {
    struct trpi_link_buffer *next;
    uint8_t bytes[TRPI_LINK_READ_BYTES];
} trpi_link_buffer;

/* The thread for control lanes (link_poll_control.c). */
typedef struct trpi_link_control {
    trpi_poller *poller;
    uint8_t bytes[TRPI_LINK_CONTROL_BYTES]; /* the thread's */
} trpi_link_control;

struct trpi_transport {
    trpi_world *world;
    const trpi_net_ops *net;
    trpi_sched *sched;
    trpi_poller *poller;
    const trpi_transport_events *events;
    void *arg;
    trpi_resolver *resolver;
    trpi_cond cond; /* links went; its lock guards what follows */
    bool stopping;
    trpi_link *links;
    trpi_link_buffer *buffers; /* unused */
    uint32_t buffers_count;
    trpi_link_control *apart; /* made for the first link; then it stays */
    int listener;             /* -1: none */
    trpi_watch *listener_watch;
    bool starved;           /* by the listener's ready() */
    bool listener_removing; /* until removed() */
    uint64_t accept_timer;  /* 0: none */
};

/* link_poll.c */
extern const trpi_watch_events trpi_link_watch_events;
trpi_link *trpi_link_poll_new(trpi_transport *transport, int socket);
bool trpi_link_poll_add(trpi_link *link); /* false: the transport is stopping */
void trpi_link_poll_ref(trpi_link *link);
void trpi_link_poll_unref(trpi_link *link);
/* By link->lock: end the link. */
void trpi_link_poll_shut(trpi_link *link, trp_err err, const char *reason);
/* By link->lock: its watch ends, and removed() closes the socket. */
void trpi_link_poll_unwatch(trpi_link *link);
/* Call closed(), or, if nobody took it, not. In a callback, without locks. */
void trpi_link_poll_finish(trpi_link *link, bool wanted);
trp_err trpi_link_poll_err(int error); /* of a negative errno */
const char *trpi_link_poll_reason(int error, char *text, size_t bytes);
/* By link->lock: run fn(link) in delay_ms. Errors: TRP_ENOMEM, TRP_ECLOSED. */
trp_err trpi_link_poll_timer(trpi_link *link, uint64_t delay_ms, trpi_timer_fn fn, uint64_t a,
                             uint64_t *ret_timer);

/* link_poll_way.c; by link->lock. The socket of a link that is open from now on. */
void trpi_link_way_open(trpi_link *link);
/* How many bytes the way bears now; SIZE_MAX: any, 0: none. */
size_t trpi_link_way_room(trpi_link *link);

/* link_poll_control.c */
bool trpi_link_control_hand_over(trpi_link *link);
void trpi_link_control_nudge(trpi_link *link);
trpi_waker *trpi_link_control_waker(trpi_link *link);
void trpi_link_control_wake(trpi_transport *transport, trpi_waker *waker);
/* After bytes(): the link leaves the system's poller. */
void trpi_link_control_leave(trpi_link *link);
/* By link->lock, in removed(): and comes to the thread's. false: it could not, and ends. */
bool trpi_link_control_come(trpi_link *link);
void trpi_link_control_free(trpi_transport *transport);

/* link_poll_open.c */
trp_err trpi_link_poll_connect(trpi_transport *transport, const char *host, uint16_t port,
                               uint32_t timeout_ms, void *user, trpi_link **ret_link);
/* By link->lock: an attempt is over, its socket closed. */
void trpi_link_poll_dial_next(trpi_link *link);
/* By link->lock, of a link that dials: true: it is open now. */
bool trpi_link_poll_dialled(trpi_link *link);
trp_err trpi_link_poll_listen(trpi_transport *transport, const char *host, uint16_t port,
                              uint16_t *ret_port);
void trpi_link_poll_accept(trpi_transport *transport);
void trpi_link_poll_listen_end(trpi_transport *transport); /* waits */

#endif
