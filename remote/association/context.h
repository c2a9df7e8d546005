/* context.h - remoting of one system: members that all its files share, ownership, order of locks.
 *
 * Shape.
 *     remote --- peers (one an address; freed without a pin, when gone for long)
 *                  |- association, redelivery     pure state machines
 *                  |- lanes[control, ordinary.., large]  what waits, and what sends it
 *                  `- conns                       dialled and accepted, of either lane
 *     system's proxy cell -> route (one a node number) -> peer
 * Locks, in this order: conn recv (one a lane of a peer) -> peer->lock -> remote->lock. No callback
 * into the system, to an upper room or to a log is made with peer->lock or remote->lock held;
 * effects are gathered in a trpi_deferred and done afterwards. transport calls are made with or
 * without locks (transport-T1: they make no callback).
 */
#ifndef TRPI_REMOTE_CONTEXT_H
#define TRPI_REMOTE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "actor/actor.h"
#include "base/table.h"
#include "base/transport.h"
#include "remote/association/association.h"
#include "remote/association/credit.h"
#include "remote/association/options.h"
#include "remote/faults/faults.h"
#include "remote/wire/serializer.h"

typedef struct trpi_peer trpi_peer;
typedef struct trpi_conn trpi_conn;
typedef struct trpi_route trpi_route;
typedef struct trpi_deferred trpi_deferred;
typedef struct trpi_control trpi_control;                 /* control_lane.h */
typedef struct trpi_control_reserve trpi_control_reserve; /* control_reserve.h */

#define TRPI_PEERS_MAX 16384     /* addresses; the default */
#define TRPI_HOST_PEERS_MAX 4096 /* of them, of callers of one host or certificate; default */
#define TRPI_HOST_NODES_MAX 4096 /* third nodes that peers of one may name; the default */
#define TRPI_SHARES 1024         /* places by which hosts and certificates are told apart */
#define TRPI_EVICTED_MAX 4096    /* incarnations that gave way and are not talked to again */
#define TRPI_TICK_MS 250
#define TRPI_ASK_MS 3000     /* association-A5 */
#define TRPI_TICK_BUSY_MS 25 /* while a peer waits for an attempt */

typedef struct trpi_channel {
    pthread_rwlock_t lock; /* held for reading during a call, so that unbinding can wait */
    trpi_control_fn fn;
    void *arg;
} trpi_channel;

/* Rate limit for one kind of log line: a burst, then one each ten seconds with the number
 * suppressed. */
typedef struct trpi_log_limit {
    _Atomic uint64_t until_ms;
    _Atomic uint32_t suppressed;
} trpi_log_limit;
enum {
    TRPI_LOG_LIMIT_GARBAGE,
    TRPI_LOG_LIMIT_VERSION,
    TRPI_LOG_LIMIT_OVERSIZE,
    TRPI_LOG_LIMIT_TIMEOUT,
    TRPI_LOG_LIMIT_REFUSED,
    TRPI_LOG_LIMIT_DECODE,
    TRPI_LOG_LIMIT_TYPE,
    TRPI_LOG_LIMIT_TOO_LARGE,
    TRPI_LOG_LIMIT_UNTRUSTED,
    TRPI_LOG_LIMIT_DEPLOY,
    TRPI_LOG_LIMIT_CROWD,
    TRPI_LOG_LIMIT_LANE,
    TRPI_LOG_LIMIT_STARVED,
    TRPI_LOG_LIMIT_UNFINISHED,
    TRPI_LOG_LIMIT_RECEIVER,
    TRPI_LOG_LIMIT_REFUSAL, /* one for each reason */
    TRPI_LOG_LIMIT_COUNT = TRPI_LOG_LIMIT_REFUSAL + TRPI_REFUSAL_COUNT
};

enum { TRPI_PEER_BUCKETS = 1024 };

typedef struct trpi_peer_list { /* the one that has been in it longest is the first */
    trpi_peer *first, *last;
} trpi_peer_list;

/* Counters; relaxed. */
typedef struct trpi_remote_counters {
    _Atomic uint64_t accepted, handshakes_failed, garbage, oversize, wrong_version,
        handshake_timeouts, frames_in, frames_out, decode_errors, frames_skipped, frames_stale,
        quarantined, untrusted_dropped, deployments_refused, unfinished_refused, unfinished_late;
    _Atomic uint64_t gave_way; /* peers that were forgotten early */
    _Atomic uint64_t barred;   /* handshakes that were refused because the peer quarantined us */
    _Atomic uint64_t refused[TRPI_REFUSAL_COUNT];
} trpi_remote_counters;

/* All peers, by address (peers.c); by remote->lock. */
typedef struct trpi_peer_table {
    trpi_peer *buckets[TRPI_PEER_BUCKETS];
    uint32_t count;
    uint32_t shares[TRPI_SHARES]; /* of callers that are no members, by host or certificate */
    uint32_t epoch_first;         /* lanes of a new peer, which may remember us, begin higher */
    uint64_t resent_before;       /* system messages, to peers that are forgotten */
} trpi_peer_table;

/* Incarnations that had to give way and are not talked to again (strangers.c); by remote->lock. */
typedef struct trpi_evicted {
    uint64_t *uids; /* a ring of TRPI_EVICTED_MAX; NULL: there was none yet */
    uint32_t count, next;
} trpi_evicted;

/* Connections without a handshake (pending.c), the oldest first; by remote->lock. */
typedef struct trpi_pending {
    uint32_t count;
    trpi_conn *first, *last;
    uint32_t hosts[TRPI_SHARES];    /* of them, by host */
    bool member_hosts[TRPI_SHARES]; /* a member is, or was, at such an address */
    uint64_t starved, starved_ms;   /* times that no descriptor was free, and when last */
    uint64_t displaced_ms;          /* when one gave way last; 0: never */
} trpi_pending;

/* Which senders, paths and behaviours are trusted (untrusted.c); set before listening. */
typedef struct trpi_policy {
    char **trusted; /* paths */
    size_t trusted_count;
    char **deployable; /* patterns of behaviours; meant when options.deployable is not NULL */
    size_t deployable_count;
} trpi_policy;

#define TRPI_DOORS_MAX 262144 /* actors that clients may send to, of all clients */

/* Clients (clients.c). */
typedef struct trpi_clients {
    _Atomic uint32_t max;   /* 0: none is accepted; relaxed, as count */
    _Atomic uint32_t count; /* control connections of clients */
    pthread_mutex_t lock;   /* of doors */
    trpi_table doors;
} trpi_clients;

/* Bytes of all peers that count for limits of this node; relaxed. */
typedef struct trpi_flow {
    trpi_credit_limits limits;           /* set at the start */
    atomic_uint_least64_t waiting_bytes; /* marked, for all receivers here (receiver.c) */
    atomic_uint_least64_t held_bytes;    /* for all receivers elsewhere (hold.c) */
    _Atomic uint64_t unfinished_bytes;   /* that all decoders keep (unfinished.c) */
} trpi_flow;

struct trpi_remote {
    trp_system *system;
    trpi_world *world;
    trpi_remote_options options; /* defaults filled in */
    trpi_assoc_config assoc_config;
    trpi_address address;
    uint64_t uid;
    trpi_serializers *serializers; /* the system's */
    atomic_int references;     /* the user's until stop, one a route until the system is freed */
    bool traces_messages;      /* messages are logged, or their sizes; set at the start */
    _Atomic uint32_t *largest; /* payload of each type; NULL: not asked for */
    /* The transport (transport.c); set before listening */
    const trpi_transport_ops *ops;
    trpi_transport *transport;
    bool secure;                                     /* secure.h is around the transport */
    trpi_faults *faults;                             /* around that, for tests; NULL: not */
    char cookie_file[TRPI_REMOTE_COOKIE_FILE_BYTES]; /* as the options have it; "": none */
    /* The end (stop.c), in this order: no new peers; nothing is appended to a lane; over */
    atomic_bool stopping, closed, stopped;
    uint64_t flush_until_ms; /* set before stopping */
    pthread_mutex_t lock;
    pthread_cond_t over; /* one of timers, or of conns_alive */
    struct {
        uint32_t running; /* that may still call us: the beat, and the hurry; by lock */
        uint64_t beat_id;
        bool hurrying; /* by the timer's thread */
    } timers;          /* remote.c */
    struct {
        uint64_t last_ms, probe_next_ms;
    } ticks; /* tick.c, by the timer's thread */
    struct {
        trpi_peer *active;         /* looked at by the tick, in no order */
        trpi_peer_list idle, gone; /* unused associations; no associations */
    } list;                        /* of peers (idle.c); by lock */
    trpi_peer_table table;
    trpi_evicted evicted;
    trpi_conn *conns;     /* all; by lock */
    uint32_t conns_alive; /* in memory: closed ones, too, during a write; by lock */
    trpi_pending pending;
    trpi_channel channels[TRPI_CHANNEL_COUNT];
    _Atomic(trpi_beat_reply) beat_reply; /* NULL: heartbeats are handed on; release */
    _Atomic(trpi_beat_asked) beat_asked; /* NULL: an answered one shows nothing; release */
    trpi_control_reserve *control;       /* NULL: no lane was handed over yet; by lock */
    trpi_log_limit log_limits[TRPI_LOG_LIMIT_COUNT];
    trpi_policy policy;
    trpi_flow flow;
    trpi_clients clients;
    trpi_remote_counters stats;
};

/* ---- context.c ---- */
static inline uint64_t
trpi_remote_now_ms(const trpi_remote *remote)
{
    return trpi_world_mono_ns(remote->world) / 1000000u;
}
void trpi_remote_ref(trpi_remote *remote);
/* True when a line of this kind may be logged now; *ret_suppressed are the ones that were not. */
bool trpi_log_limit_allows(trpi_remote *remote, uint32_t kind, uint32_t *ret_suppressed);
static inline void
trpi_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed); /* read by stats only */
}

#endif
