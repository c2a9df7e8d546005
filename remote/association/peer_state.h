/* peer_state.h - the members of a peer, and what other files ask about them.
 *
 * peer.c, peers.c and peer_check.c know the members; a part that is a module of its own is known to
 * that one, too (tests/tidy, rule readers). No source above is called
 * from here, so that no circle of calls goes through it.
 */
#ifndef TRPI_REMOTE_PEER_STATE_H
#define TRPI_REMOTE_PEER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/detector.h"
#include "remote/association/activity.h"
#include "remote/association/association.h"
#include "remote/association/beat_box.h"
#include "remote/association/context.h"
#include "remote/association/lane_state.h"
#include "remote/association/redelivery.h"
#include "remote/association/waiting.h"

typedef struct trpi_holds trpi_holds; /* hold.c */

/* Refusals between a peer and this node; by peer->lock. */
typedef struct trpi_peer_refusal {
    char by[TRPI_SYSTEM_BYTES_MAX + 1]; /* the system that refused the last handshake */
    /* the last incarnation that was heard there, one of us having the other quarantined; 0: none
     * since it was read last */
    uint64_t foreign;
    uint64_t barred_by; /* the last incarnation there that has this one quarantined; 0: none */
    trpi_address place; /* of the node that refused, which is not the one that was called */
} trpi_peer_refusal;

/* An incarnation that is quarantined here has called. */
static inline void
trpi_refusal_foreign(trpi_peer_refusal *refusal, uint64_t uid)
{
    refusal->foreign = uid;
}
/* The last of those, once; 0: none. */
static inline uint64_t
trpi_refusal_foreign_take(trpi_peer_refusal *refusal)
{
    uint64_t uid = refusal->foreign;
    refusal->foreign = 0;
    return uid;
}
/* The peer talks to this node. */
static inline void
trpi_refusal_over(trpi_peer_refusal *refusal)
{
    refusal->barred_by = 0;
}

/* The system that refused the last handshake; "": none. */
static inline const char *
trpi_refusal_by(const trpi_peer_refusal *refusal)
{
    return refusal->by;
}
/* The address of the node that refused it; without a host: there was none. */
static inline const trpi_address *
trpi_refusal_place(const trpi_peer_refusal *refusal)
{
    return &refusal->place;
}
/* The incarnation there that has this one quarantined; 0: none. */
static inline uint64_t
trpi_refusal_barred_by(const trpi_peer_refusal *refusal)
{
    return refusal->barred_by;
}

/* Messages and bytes of one peer; relaxed counters. */
typedef struct trpi_traffic {
    _Atomic uint64_t bytes_in, bytes_out, messages_in, messages_out, dropped;
} trpi_traffic;

static inline uint64_t
trpi_traffic_bytes_in(const trpi_traffic *traffic)
{
    return atomic_load_explicit(&traffic->bytes_in, memory_order_relaxed);
}
static inline void
trpi_traffic_bytes_in_add(trpi_traffic *traffic, uint64_t n)
{
    trpi_count(&traffic->bytes_in, n);
}
static inline uint64_t
trpi_traffic_bytes_out(const trpi_traffic *traffic)
{
    return atomic_load_explicit(&traffic->bytes_out, memory_order_relaxed);
}
static inline void
trpi_traffic_bytes_out_add(trpi_traffic *traffic, uint64_t n)
{
    trpi_count(&traffic->bytes_out, n);
}
static inline uint64_t
trpi_traffic_messages_in(const trpi_traffic *traffic)
{
    return atomic_load_explicit(&traffic->messages_in, memory_order_relaxed);
}
static inline void
trpi_traffic_messages_in_add(trpi_traffic *traffic, uint64_t n)
{
    trpi_count(&traffic->messages_in, n);
}
static inline uint64_t
trpi_traffic_messages_out(const trpi_traffic *traffic)
{
    return atomic_load_explicit(&traffic->messages_out, memory_order_relaxed);
}
static inline void
trpi_traffic_messages_out_add(trpi_traffic *traffic, uint64_t n)
{
    trpi_count(&traffic->messages_out, n);
}
static inline uint64_t
trpi_traffic_dropped(const trpi_traffic *traffic)
{
    return atomic_load_explicit(&traffic->dropped, memory_order_relaxed);
}
static inline void
trpi_traffic_dropped_add(trpi_traffic *traffic, uint64_t n)
{
    trpi_count(&traffic->dropped, n);
}

/* Incarnations whose end is told by the next tick (peer.c); by lock. */
typedef struct trpi_ends {
    uint64_t overflowed_uid; /* too many system messages for it: it is quarantined. 0: none */
    uint32_t *nodes;         /* numbers of watched incarnations that have ended */
    uint32_t count, room;    /* of nodes */
    uint32_t lost;           /* that found no memory, since the last tick */
} trpi_ends;

/* Is there something to tell? */
static inline bool
trpi_ends_are_due(const trpi_ends *ends)
{
    return ends->overflowed_uid != 0 || ends->count > 0 || ends->lost > 0;
}
static inline bool
trpi_ends_have_overflowed(const trpi_ends *ends)
{
    return ends->overflowed_uid != 0;
}

/* Is the node of actors that are watched from here alive (tick.c)? By lock, if not atomic. */
typedef struct trpi_watch {
    trpi_detector detector;
    bool judged;         /* by that detector */
    bool delegated;      /* the cluster judges this node */
    _Atomic bool member; /* the same; relaxed */
    _Atomic bool told;   /* of the cluster, by this node; relaxed */
} trpi_watch;

static inline void
trpi_watch_end(trpi_watch *watch)
{
    watch->judged = false;
}
static inline void
trpi_watch_heard(trpi_watch *watch, uint64_t now_ms)
{
    if (watch->judged) {
        trpi_detector_heartbeat(&watch->detector, now_ms);
    }
}
static inline void
trpi_watch_delegate(trpi_watch *watch, bool delegated)
{
    watch->delegated = delegated;
    atomic_store_explicit(&watch->member, delegated, memory_order_relaxed);
}
static inline bool
trpi_watch_is_delegated(const trpi_watch *watch)
{
    return watch->delegated;
}
/* The same, without the lock, as the next. */
static inline bool
trpi_watch_is_member(const trpi_watch *watch)
{
    return atomic_load_explicit(&watch->member, memory_order_relaxed);
}
static inline bool
trpi_watch_is_told(const trpi_watch *watch)
{
    return atomic_load_explicit(&watch->told, memory_order_relaxed);
}
/* It was told of the cluster by this node. */
static inline void
trpi_watch_tell(trpi_watch *watch)
{
    atomic_store_explicit(&watch->told, true, memory_order_relaxed);
}

/* Of a peer without a host (clients.c); by lock. */
typedef struct trpi_peer_client {
    uint64_t key;         /* of its certificate, or of the host that it calls from; 0: not met */
    char certificate[65]; /* name in it; "": none was shown */
} trpi_peer_client;

enum { TRPI_PEER_REASON_BYTES = 160 };

struct trpi_peer {
    /* In the table (peers.c); by remote->lock */
    trpi_remote *remote;
    trpi_address address;
    trpi_peer *next; /* in its bucket */
    uint32_t pins;   /* users at this moment, its connections and routes */
    uint32_t share;  /* of remote->table.shares that it counts in */
    bool shared;     /* it counts there */
    pthread_mutex_t lock;
    /* The association (peer.c); by lock, if not atomic */
    trpi_assoc assoc;
    trpi_redelivery redelivery;
    uint64_t redelivery_uid;     /* incarnation that it counts for */
    uint64_t ready_turns;        /* how often all routes were told that there is room */
    uint64_t met_uid;            /* whose epochs and introduced nodes are known */
    trpi_waiting waiting;        /* signals for incarnations other than that */
    _Atomic uint64_t active_uid; /* of assoc when active, else 0; relaxed hint */
    _Atomic uint64_t proved_uid; /* of assoc until it is over; what inbound frames must come from */
    _Atomic(trpi_control *) carrier; /* control_lane.c; relaxed: the thread's own */
    trpi_beat_box beat;
    /* our number of the proved incarnation; 0: none was needed yet (trpi_peer_node) */
    _Atomic uint32_t node;
    trpi_agreed agreed;
    trpi_large large;
    /* Room that trp_try_tell() has reserved and that is not encoded yet; relaxed: with queued it is
     * what waits. Tellers write it for each message: nothing that others read shares its cache
     * line. */
    char reserved_before[64];
    atomic_size_t reserved;
    char reserved_behind[64 - sizeof(size_t)];
    trpi_lane_state lanes[TRPI_LANE_COUNT];
    trpi_lane_marks lane_marks;
    trpi_conn *conns;
    uint32_t conns_count;
    trpi_route *routes;
    trpi_receiver **receivers; /* buckets; NULL: there was none yet */
    uint32_t receivers_limited;
    trpi_holds *holds;   /* NULL: no receiver there was slow yet; by lock, as next */
    atomic_bool holding; /* there are some; relaxed: routes look again under lock */
    char reason[TRPI_PEER_REASON_BYTES]; /* of the last change of state */
    bool failed_once;                    /* a failed attempt was logged; the next ones only count */
    bool inbound;                        /* the peer called when it became active */
    bool goodbye_said;                   /* by the peer */
    uint32_t attempts_at_stop;           /* failed attempts when remoting began to stop */
    trpi_peer_refusal refusal;
    trpi_peer_client client;
    trpi_activity activity;
    trpi_dials dials;
    trpi_ends ends;
    trpi_watch watch;
    trpi_traffic traffic;
};

/* Set once. */
static inline trpi_remote *
trpi_peer_remote(const trpi_peer *peer)
{
    return peer->remote;
}
static inline const trpi_address *
trpi_peer_address(const trpi_peer *peer)
{
    return &peer->address;
}
/* It has no host: it makes all connections, this node makes none. */
static inline bool
trpi_peer_is_client(const trpi_peer *peer)
{
    return trpi_address_is_nameless(&peer->address);
}
/* The name in a client's certificate; "": it has shown none. By peer->lock. */
static inline const char *
trpi_peer_certificate(const trpi_peer *peer)
{
    return peer->client.certificate;
}
/* The association; by peer->lock. */
static inline enum trpi_assoc_state
trpi_peer_state(const trpi_peer *peer)
{
    return peer->assoc.state;
}
static inline bool
trpi_peer_is_active(const trpi_peer *peer)
{
    return peer->assoc.state == TRPI_ASSOC_ACTIVE;
}
/* The last incarnation that was proved; 0: none yet. */
static inline uint64_t
trpi_peer_uid(const trpi_peer *peer)
{
    return peer->assoc.uid;
}
static inline bool
trpi_peer_is_active_as(const trpi_peer *peer, uint64_t uid)
{
    return peer->assoc.state == TRPI_ASSOC_ACTIVE && peer->assoc.uid == uid;
}
/* Since when it owes an answer, for another incarnation calls; 0: it owes none. */
static inline uint64_t
trpi_peer_asked_ms(const trpi_peer *peer)
{
    return peer->assoc.asked_ms;
}
/* Attempts that failed in a row; and is one of them later than trpi_peer_stop_begin()? */
static inline uint32_t
trpi_peer_attempts(const trpi_peer *peer)
{
    return peer->assoc.attempts;
}
static inline bool
trpi_peer_has_failed_since_stop(const trpi_peer *peer)
{
    return peer->assoc.attempts > peer->attempts_at_stop;
}
/* When the next attempt may be made, after one that failed or a quarantine; 0: at once. */
static inline uint64_t
trpi_peer_next_ms(const trpi_peer *peer)
{
    bool waits =
        peer->assoc.state == TRPI_ASSOC_GATED || peer->assoc.state == TRPI_ASSOC_QUARANTINED;
    return waits ? peer->assoc.next_ms : 0;
}
/* Why its state changed last; "": it did not. */
static inline const char *
trpi_peer_reason(const trpi_peer *peer)
{
    return peer->reason;
}
static inline bool
trpi_peer_has_said_goodbye(const trpi_peer *peer)
{
    return peer->goodbye_said;
}
/* The incarnation that the numbered stream is for, and the one whose epochs are known; 0: none. */
static inline uint64_t
trpi_peer_stream_uid(const trpi_peer *peer)
{
    return peer->redelivery_uid;
}
static inline uint64_t
trpi_peer_met_uid(const trpi_peer *peer)
{
    return peer->met_uid;
}
/* The first of its connections, and of its routes. */
static inline trpi_conn *
trpi_peer_conns(const trpi_peer *peer)
{
    return peer->conns;
}
static inline trpi_route *
trpi_peer_routes(const trpi_peer *peer)
{
    return peer->routes;
}
/* Receivers here that are told how much they may be sent. */
static inline uint32_t
trpi_peer_receivers_limited(const trpi_peer *peer)
{
    return peer->receivers_limited;
}
/* Without the lock: the incarnation that inbound frames must come from; is this one active, as a
 * hint? */
static inline uint64_t
trpi_peer_proved_uid(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->proved_uid, memory_order_acquire);
}
/* The connection on the thread for control lanes that the lane to the peer is carried by, or NULL.
 * The thread asks and sets; who closes a connection takes it back. Others only see that there is
 * one. */
static inline trpi_control *
trpi_peer_carrier(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->carrier, memory_order_relaxed);
}
static inline void
trpi_peer_carrier_put(trpi_peer *peer, trpi_control *carrier, trpi_waker *waker)
{
    trpi_beat_waker_put(&peer->beat, waker);
    atomic_store_explicit(&peer->carrier, carrier, memory_order_relaxed);
}
/* A heartbeat on its way to the carrier; each thread by the rules of beat_box.h. */
static inline trpi_beat_box *
trpi_peer_beat_box(trpi_peer *peer)
{
    return &peer->beat;
}
static inline void
trpi_peer_carrier_end(trpi_peer *peer, trpi_control *carrier)
{
    (void)atomic_compare_exchange_strong_explicit(&peer->carrier, &carrier, NULL,
                                                  memory_order_relaxed, memory_order_relaxed);
}
/* The incarnation that is active, as a hint; 0: none is. */
static inline uint64_t
trpi_peer_active_uid(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->active_uid, memory_order_relaxed);
}
static inline bool
trpi_peer_seems_active_as(const trpi_peer *peer, uint64_t uid)
{
    return atomic_load_explicit(&peer->active_uid, memory_order_relaxed) == uid;
}
/* Our number of the proved incarnation, 0: none was needed yet: without the lock; and with it, or
 * as a hint. */
static inline uint32_t
trpi_peer_node_known(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->node, memory_order_acquire);
}
static inline uint32_t
trpi_peer_node_hint(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->node, memory_order_relaxed);
}
/* Bytes that trp_try_tell() has reserved. acquire: route-O3 (route.c). */
static inline size_t
trpi_peer_reserved(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->reserved, memory_order_acquire);
}
/* Count more, and return what it was; count less. Without the lock. */
static inline size_t
trpi_peer_reserve(trpi_peer *peer, size_t bytes)
{
    return atomic_fetch_add_explicit(&peer->reserved, bytes, memory_order_acquire);
}
static inline void
trpi_peer_unreserve(trpi_peer *peer, size_t bytes)
{
    atomic_fetch_sub_explicit(&peer->reserved, bytes, memory_order_relaxed);
}
/* Remoting begins to stop. */
static inline void
trpi_peer_stop_begin(trpi_peer *peer)
{
    peer->attempts_at_stop = peer->assoc.attempts;
}

#endif
