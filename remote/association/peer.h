/* peer.h - one address: association, lanes, connections, routes, and who looks after it. */
#ifndef TRPI_REMOTE_PEER_H
#define TRPI_REMOTE_PEER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/detector.h"
#include "remote/association/association.h"
#include "remote/association/context.h"
#include "remote/association/effects.h"
#include "remote/association/lane.h"
#include "remote/association/redelivery.h"
#include "remote/association/waiting.h"

typedef struct trpi_holds trpi_holds; /* hold.c */

struct trpi_peer {
    trpi_remote *remote;
    trpi_address address;
    trpi_peer *next; /* in its bucket; by remote->lock */
    uint32_t pins;   /* who uses it now, its connections and routes; by remote->lock */
    uint32_t share;  /* of remote->share_peers that it counts in; by remote->lock */
    bool shared;     /* it counts there; by remote->lock */
    pthread_mutex_t lock;
    trpi_assoc assoc;
    trpi_redelivery redelivery;
    uint64_t redelivery_uid;     /* incarnation that it counts for */
    uint64_t ready_turns;        /* how often all routes were told that there is room */
    uint64_t met_uid;            /* whose epochs and introduced nodes are known */
    trpi_waiting waiting;        /* signals for incarnations other than that */
    _Atomic uint64_t active_uid; /* of assoc when active, else 0; relaxed hint */
    _Atomic uint64_t proved_uid; /* of assoc until it is over; what inbound frames must come from */
    /* our number of the proved incarnation; 0: nobody has needed one yet (trpi_peer_node) */
    _Atomic uint32_t node;
    _Atomic uint32_t frame_bytes_max; /* that both ends take */
    _Atomic uint32_t features;        /* that both ends have; of the last handshake */
    uint32_t minor;                   /* that both ends speak; by lock */
    int64_t cert_until_ms; /* of its certificate at the last handshake; 0: none; by lock */
    /* ordinary lanes in use, and the large one with them; 0: one lane for all messages, because the
     * peer takes no more, or was not met. Written by lock, read relaxed by routes */
    _Atomic uint32_t spread;
    uint32_t large_era;     /* who took the large lane in an earlier one has left it; by lock */
    uint32_t large_pins;    /* routes that hold something for the large lane; by lock */
    bool large_used;        /* in this era; by lock */
    /* Admitted by trp_try_tell() and not encoded yet; relaxed: with queued it is what waits.
     * Tellers write it for each message: nothing that others read stands in its line. */
    char promised_before[64];
    atomic_size_t promised;
    char promised_behind[64 - sizeof(size_t)];
    trpi_lane_state lanes[TRPI_LANE_COUNT];
    trpi_conn *conns;
    uint32_t conns_count;
    trpi_route *routes;
    trpi_receiver **receivers;  /* buckets; NULL: there was none yet */
    uint32_t receivers_limited;
    trpi_holds *holds;          /* NULL: nobody there was slow yet; by lock, as next */
    atomic_bool holding;        /* there are some; relaxed: routes look again under lock */
    char reason[160];
    char refused_by[TRPI_SYSTEM_BYTES_MAX + 1]; /* the system that refused the last handshake */
    uint64_t foreign; /* the last that was heard there, one of us having the other quarantined; 0:
                         nobody since somebody asked */
    uint64_t barred_by; /* the last incarnation there that has this one quarantined; 0: none */
    bool inbound;           /* the peer called when it became active */
    uint64_t heard_ms, pinged_ms, round_trip_us;
    bool used;              /* something was said to it since its last PING */
    bool asked;             /* that PING is not answered yet */
    bool rested;            /* nobody has wanted one for a beat */
    /* the tick's line that it stands in; by lock and remote->lock */
    bool awake;
    struct trpi_line *line; /* NULL: of those that are awake */
    struct trpi_peer *line_next, *line_before;
    uint64_t rests_since_ms;
    bool failed_once;       /* a failed attempt was logged; the next ones only count */
    /* What could not be dialled (lane_dial.c); by lock */
    uint32_t undialled;     /* bit a lane: its last dial failed */
    uint32_t dials_failed;  /* of lanes, ever */
    uint64_t undialled_ms;  /* when one last did */
    char undialled_why[TRPI_REACH_WHY_BYTES];
    bool goodbye_said;      /* by the peer */
    uint32_t attempts_at_stop; /* failed attempts when remoting began to stop; by lock */
    uint64_t overflowed_uid; /* too many system messages for it; the tick quarantines. 0: none */
    /* watched incarnations that are over: the tick tells. As many as there are numbers of nodes */
    uint32_t *end_again;     /* their numbers, which have ended */
    uint32_t end_again_count;
    uint32_t end_again_lost; /* that found no memory, since the last tick */
    trpi_detector link_detector; /* is the association alive */
    trpi_detector watch_detector; /* is the node of watched actors alive */
    bool watching;
    bool watch_delegated;   /* the cluster judges this node */
    _Atomic bool member;    /* the same, relaxed; and it was told of the cluster by this node */
    _Atomic bool told;
    _Atomic uint64_t bytes_in, bytes_out, messages_in, messages_out, dropped; /* relaxed counters */
};

/* ---- peers.c ---- */
void trpi_remote_unref(trpi_remote *remote); /* the last one frees the peers, and remote */
/* The same as trpi_peer_get() with one table only: nobody gives way. share: that the caller counts
 * for, TRPI_SHARES: nobody called. */
trp_err trpi_peer_pin(trpi_remote *remote, const trpi_address *address, bool make, uint32_t share,
                      trpi_peer **ret_peer);
/* All of them: the one behind `before`, which is unpinned, pinned; NULL: the first, and behind the
 * last. */
trpi_peer *trpi_peer_next(trpi_remote *remote, trpi_peer *before);
/* The same, of those whose active incarnation calls itself uid. Uids are no secret: several may
 * claim one. */
trpi_peer *trpi_peer_of_uid(trpi_remote *remote, uint64_t uid, trpi_peer *before);
/* Take it out of the table. The caller holds remote->lock. */
void trpi_peer_remove(trpi_peer *peer);
void trpi_peer_free(trpi_peer *peer);

/* ---- peer.c ---- */
/* One event for the association. The caller holds peer->lock; conn: of the event, or NULL. */
uint32_t trpi_peer_step(trpi_peer *peer, trpi_conn *conn, const trpi_assoc_event *event,
                        const char *reason, trpi_later *later);
/* Choose connections, send what waits, dial what is missing. The caller holds peer->lock. */
void trpi_peer_pump(trpi_peer *peer, trpi_later *later);
/* Give peer->lock back and do what is to be done. */
void trpi_peer_unlock(trpi_peer *peer, trpi_later *later);
/* Append frames to a lane. uid 0: for whoever answers. checked: the caller has looked at the limit.
 * Takes the content of frames on success (the buffer is then empty, perhaps with other memory). The
 * caller holds peer->lock and pumps afterwards.
 * Errors: TRP_EQUARANTINED, TRP_ECLOSED (that incarnation is over), TRP_EAGAIN (full),
 *         TRP_ENOMEM. */
trp_err trpi_peer_append(trpi_peer *peer, enum trpi_lane lane, uint64_t uid, trpi_buffer *frames,
                         bool checked);
void trpi_peer_quarantine(trpi_peer *peer, uint64_t uid, const char *reason);
/* Whoever watches this incarnation, which is over, is told so by the next tick. The caller holds
 * peer->lock. */
void trpi_peer_end_again(trpi_peer *peer, uint64_t uid);
/* Too many system messages for uid: the next tick quarantines it, or, where it does so with another
 * one, ends it for its watchers. The caller holds peer->lock. */
void trpi_peer_overflowed(trpi_peer *peer, uint64_t uid);

/* Close its connections but one (NULL: all). */
void trpi_peer_close(trpi_peer *peer, const trpi_conn *but);
/* Does anything wait for a connection to it, on any lane, or on this one (never the control lane,
 * which is always needed)? The caller holds peer->lock, as for the next. */
bool trpi_peer_wants(const trpi_peer *peer);
bool trpi_lane_wants(const trpi_peer *peer, int lane);
bool trpi_peer_may_dial(const trpi_peer *peer);
/* Who watches that incarnation is told that it is over. Without locks. */
void trpi_peer_tell_end(trpi_peer *peer, uint64_t uid, trp_dead_reason reason);

/* Our number of the present incarnation; 0: there is none, or no memory or number for it. The
 * caller holds peer->lock. */
uint32_t trpi_peer_node(trpi_peer *peer);

/* ---- pump.c ---- */
/* Has a peer that is not met messages that it may still get while remoting stops? The caller holds
 * peer->lock. */
bool trpi_peer_is_flushed_to(const trpi_peer *peer);

/* ---- idle.c ---- */
/* A line of peers, by remote->lock. */
void trpi_line_append(trpi_peer *peer, trpi_line *line);
void trpi_line_remove(trpi_peer *peer);
/* The first of a line that has stood there for so long, pinned; NULL: none. */
trpi_peer *trpi_line_first(trpi_remote *remote, const trpi_line *line, uint64_t now_ms,
                           uint32_t for_ms);
/* Behind the tick's look, which has taken it out of those that are awake. By peer->lock. */
void trpi_peer_line_up(trpi_peer *peer, bool rests, uint64_t now_ms);
/* Ask an active peer whether it is there. The caller holds peer->lock. */
void trpi_peer_ping(trpi_peer *peer, uint64_t now_ms);
/* A new peer. The caller holds remote->lock. */
void trpi_peer_begin(trpi_peer *peer);
/* Something about it has changed: the next tick looks at it. The caller holds peer->lock. */
void trpi_peer_wake(trpi_peer *peer);

/* ---- tick.c ---- */
/* Time has passed; true: somebody waits for an attempt, so the next tick should come soon. By the
 * timer's thread. */
bool trpi_remote_tick(trpi_remote *remote);

/* ---- strangers.c: finding a peer, or room for one ---- */
/* Find or make, and pin: it is not forgotten (tick.c) before trpi_peer_unpin(). Connections and
 * routes pin theirs, too. Errors: TRP_ENOENT, TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_peer_get(trpi_remote *remote, const trpi_address *address, bool make,
                      trpi_peer **ret_peer);
void trpi_peer_unpin(trpi_peer *peer); /* NULL is fine. Not with remote->lock */
/* The same for one who calls, on an accepted connection: it counts for its host. */
trp_err trpi_peer_get_caller(trpi_remote *remote, const trpi_address *address, uint64_t whose,
                             trpi_peer **ret_peer);

/* ---- strangers.c: how many are known, and who gives way ---- */
/* Take it out of the table and free it if it is over and nobody else has it in his hands; else it
 * stands behind the others that are gone. The caller holds its lock and a pin; both are given
 * back. */
void trpi_peer_forget(trpi_peer *peer, bool over);

/* Forget one of the gone peers, of this share or (TRPI_SHARES) of any. Without locks. false: none
 * could be forgotten now. */
bool trpi_peers_give_way(trpi_remote *remote, uint32_t share);
/* It is a member: it counts for no host any more. By peer->lock. */
void trpi_peer_unshare(trpi_peer *peer);
/* Bar an incarnation that had to give way. By peer->lock. */
void trpi_bygone_bar(trpi_peer *peer, uint64_t uid);
/* Intern of the trpi_node_map of a connection's frames. */
trp_err trpi_third_number(void *conn, const trpi_node_id *id, uint32_t *ret_node);

#endif
