/* internal.h - the shell around remoting's pure parts: who owns what, and which lock guards it.
 *
 * Shape.
 *     remote --- peers (one an address; freed when pinned by nobody and quiet for long)
 *                  |- association, redelivery     pure state machines
 *                  |- lanes[control, ordinary.., large]  what waits, and what sends it
 *                  `- conns                       dialled and accepted, of either lane
 *     system's proxy cell -> route (one a node number) -> peer
 * Locks, in this order: conn recv (one a lane of a peer) -> peer->lock -> remote->lock. No callback
 * into the system, to an upper room or to a log is made with peer->lock or remote->lock held;
 * effects are gathered in a trpi_later and done afterwards. transport calls are made with or
 * without locks (transport-T1: they call nobody).
 */
#ifndef TRPI_REMOTE_INTERNAL_H
#define TRPI_REMOTE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <troupe/remoting.h>

#include "base/buffer.h"
#include "base/detector.h"
#include "remote/association/association.h"
#include "remote/wire/compress.h"
#include "remote/wire/codec.h"
#include "remote/association/credit.h"
#include "remote/faults/faults.h"
#include "remote/association/redelivery.h"
#include "remote/association/options.h"
#include "remote/association/waiting.h"

#define TRPI_PEERS_MAX 16384          /* addresses; the default */
#define TRPI_HOST_PEERS_MAX 4096      /* of them, of callers of one host or certificate; default */
#define TRPI_PEER_CONNS_MAX 64        /* connections of one peer: it needs two a lane at most */
#define TRPI_HOST_NODES_MAX 4096      /* third nodes that peers of one may name; the default */
#define TRPI_SHARES 1024              /* places by which hosts and certificates are told apart */
#define TRPI_BYGONE_MAX 4096          /* incarnations that gave way and are not talked to again */
#define TRPI_WRITE_BYTES_MAX 1048576  /* one write of a lane */
#define TRPI_BUFFER_KEPT_BYTES                                                                     \
    1048576 /* a lane's buffer that grew beyond is given back when empty */
#define TRPI_GATHER_BYTES_MAX                                                                      \
    262144 /* a run's messages to one node; more are handed over before its end */
#define TRPI_HELD_KEPT_BYTES 65536    /* a route's buffer for one message to who is slow */
#define TRPI_FLUSH_BYTES_LEAST 65536  /* less is not handed over while more is to be encoded */
#define TRPI_ADMIT_BYTES_MAX                                                                       \
    524288 /* trp_try_tell() refuses above; a lane of less than 2 MiB: above a quarter of it */
#define TRPI_LARGE_PLACES 4096        /* recipients that share one take the same lane */
#define TRPI_TYPE_CACHE 64            /* a power of two */
#define TRPI_ANNOUNCED_BYTES ((TRP_TYPES_MAX + 1) / 8) /* a bit a type number */
#define TRPI_TICK_MS 250
#define TRPI_ASK_MS 3000              /* association-A5 */
#define TRPI_TICK_BUSY_MS 25          /* while somebody waits for an attempt */

typedef struct trpi_peer trpi_peer;
typedef struct trpi_holds trpi_holds; /* hold.c */

/* receiver.c: an actor in whose mail are marks of one peer's messages, of all its lanes. */
typedef struct trpi_receiver {
    trpi_peer *peer;
    uint32_t slot, generation;
    atomic_uint references; /* a place of a lane's table, a mark; the last one frees: acq_rel */
    atomic_bool limited;    /* credit.limited; seq_cst, as waiting: receiver-I3 */
    atomic_uint_least64_t waiting; /* bytes that marks in its mail stand for */
    trpi_credit credit;            /* by peer->lock, as next */
    struct trpi_receiver *next;    /* in its bucket */
} trpi_receiver;

/* What a lane has told a receiver since its last mark. */
typedef struct trpi_inflow_place {
    uint32_t slot, generation; /* 0: free */
    uint64_t bytes;
    trpi_receiver *receiver; /* NULL: no mark yet */
    bool near;               /* it has more than its window: its limit is looked at */
    bool keep;               /* while the table is swept */
} trpi_inflow_place;
typedef struct trpi_inflow { /* open addressing by slot */
    trpi_inflow_place *places;
    trpi_inflow_place *last; /* of the message before; NULL: none */
    uint32_t size, count;
} trpi_inflow;

typedef struct trpi_conn {
    trpi_remote *remote;
    trpi_link *link;  /* set once, before any other thread can see the connection */
    trpi_peer *peer;  /* NULL until the handshake names it; then never changes */
    atomic_int references; /* transport until closed(), a writer while it writes; acq_rel */
    bool dialled;
    uint8_t lane;
    char peer_text[300];
    uint64_t uid;          /* of the peer's incarnation; by trpi_conn_lock_of() */
    uint32_t host;         /* share of its host; set once, as peer_text */
    bool pending;          /* in the line of pending.c; by remote->lock, as the next */
    struct trpi_conn *pending_next, *pending_before;
    uint64_t whose;        /* key of the host or certificate at the other end (strangers.c) */
    uint64_t deadline_ms;  /* to be ready; by remote->lock */
    uint64_t early_bytes;  /* while not ready; by the bytes() callback */
    bool ready;            /* may carry the lane's frames; by trpi_conn_lock_of() */
    bool closing;          /* by trpi_conn_lock_of() */
    bool close_when_sent;  /* by trpi_conn_lock_of() */
    bool preamble_sent;    /* by trpi_conn_lock_of() */
    /* Closing one lane's connection in good order (graceful_close.c); by peer->lock */
    bool parting;          /* our GOODBYE was said: we send nothing of the lane on it any more */
    bool parting_acked;    /* and everything before it was handled */
    bool parting_heard;    /* the peer's was: nothing of the lane comes any more */
    uint64_t parting_ms;   /* when ours was said last */
    /* writes and reads: relaxed, they only have to change; the other two by the tick */
    atomic_uint uses;
    unsigned uses_seen;
    uint64_t idle_since_ms;
    /* a write is in progress, its owner has the three below; by trpi_conn_lock_of() */
    bool busy;
    /* frames of this very connection, before the lane's; by trpi_conn_lock_of() */
    trpi_buffer head;
    trpi_buffer writing_head, writing; /* by whoever made busy true */
    size_t writing_at;
    size_t slice_bytes;
    /* Reading: by the transport's bytes() callback, which does not overlap with itself. */
    trpi_frame_decoder decoder;
    uint32_t recv_epoch;
    uint32_t recv_node;  /* the number of that incarnation here; 0: not asked for yet */
    bool in_batch;   /* holds the lane's recv lock and an open trpi_inbound_begin */
    bool ack_due;
    uint32_t frames, frames_noted; /* by the bytes() callback */
    /* since when a frame is not finished, 0: none; and how long it will be. Relaxed: the tick's */
    _Atomic uint64_t unfinished_ms;
    _Atomic uint32_t unfinished_bytes;
    struct {
        enum { TRPI_NUMBERS_NONE, TRPI_NUMBERS_RECEIVER, TRPI_NUMBERS_ANY } who;
        uint32_t slot, generation;
    } numbers; /* for whom third nodes of the present frame get numbers (strangers.c) */
    trpi_buffer scratch, expanded;
    char failure[160];
    struct {
        uint64_t wire_id;
        const trp_type *type;
    } types[TRPI_TYPE_CACHE];
    struct trpi_conn *peer_next;              /* by peer->lock */
    struct trpi_conn *all_next, *all_previous; /* by remote->lock */
} trpi_conn;

typedef struct trpi_lane_state {
    trpi_buffer pending;       /* whole frames; by peer->lock */
    /* incarnation that the frames without ANYONE are for; 0: none are there */
    uint64_t pending_uid;
    uint64_t pending_since_ms;
    trpi_conn *out;            /* what it sends on; by peer->lock */
    trpi_conn *dialling;       /* by peer->lock */
    trpi_conn *parting;        /* nothing is sent on another before its end; by peer->lock */
    uint64_t dial_next_ms;     /* not before; not of the control lane; by peer->lock */
    uint32_t dial_attempts;
    _Atomic uint32_t epoch;    /* of our sending; written by peer->lock, read relaxed by routes */
    /* pending and in flight; relaxed: a hint for the limit and the marks */
    atomic_size_t queued;
    /* Fences (fence.c), numbered; by peer->lock */
    uint64_t fence_last;       /* appended */
    uint64_t fence_sent;       /* not in pending any more, so a lost connection may have lost it */
    uint64_t fence_acked;      /* all that was appended before it has arrived, or never will */
    uint64_t fence_ms;         /* when it was said last */
    bool fence_due;            /* something was appended after the last one */
    bool above;                /* the high-water mark was passed; by peer->lock */
    bool refused;              /* trp_try_tell() was, and somebody waits; by peer->lock */
    /* deliveries of this lane, so that a stale connection cannot reorder */
    pthread_mutex_t recv_lock;
    _Atomic uint32_t recv_epoch; /* newest LANE_OPEN; written under recv_lock */
    trpi_inflow inflow;          /* by recv_lock */
    bool goodbye_acked;        /* by peer->lock */
} trpi_lane_state;

/* What a route has encoded for a lane and not handed over yet. */
typedef struct trpi_gather {
    trpi_buffer frames;
    uint32_t messages;  /* in it */
    uint32_t announced_epoch;
    /* bit a type number: its name was sent since the lane's epoch was announced_epoch */
    uint8_t *announced;
    /* What the last message in frames was: the next one like it needs to say less. type NULL: not
     * known */
    struct {
        const trp_type *type;
        const trpi_serializer *serializer; /* NULL: the payload goes as it is */
        uint16_t serializer_id;
        uint32_t to_slot, to_generation, from_slot, from_generation, from_node;
        uint8_t sender_code;
        size_t many_at; /* its MANY frame in frames; SIZE_MAX: it has none */
    } last;
} trpi_gather;

typedef struct trpi_route {
    trpi_remote *remote;
    trpi_peer *peer;
    uint32_t node;      /* number of this system's node table */
    uint64_t uid;       /* 0: whoever lives there */
    /* by the runner of the proxy, down to large */
    trpi_gather gathers[TRPI_LANE_COUNT];
    uint32_t touched;   /* bit a lane: its gather holds something */
    uint32_t spread;    /* that they were chosen by */
    bool above;         /* a lane was above its high-water mark at the last hand-over */
    size_t kept;        /* promises of peer->promised that are in it, or were broken */
    trpi_buffer scratch;
    trpi_buffer held;   /* a frame on its way to a hold */
    bool pinned;        /* counted in peer->large_pins */
    uint32_t era;       /* of peer->large_era that large is of */
    /* bit a place of recipients: they take the large lane. Written by the runner, read relaxed by
     * who asks for room; NULL: none does */
    _Atomic(atomic_uint_least64_t *) large;
    uint32_t tries;          /* op_connect() that are on their way with it; by peer->lock */
    bool attached;           /* a proxy has it; by peer->lock */
    uint64_t ready_turn;     /* of peer->ready_turns, that it was told of last; by peer->lock */
    struct trpi_route *next; /* in peer->routes, by peer->lock */
} trpi_route;

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

typedef struct trpi_channel {
    pthread_rwlock_t lock; /* held for reading during a call, so that unbinding can wait */
    trpi_control_fn fn;
    void *arg;
} trpi_channel;

/* Rate limit for one kind of log line: a burst, then one each ten seconds with the number
 * suppressed. */
typedef struct trpi_log_gate {
    _Atomic uint64_t until_ms;
    _Atomic uint32_t suppressed;
} trpi_log_gate;
enum {
    TRPI_GATE_GARBAGE,
    TRPI_GATE_VERSION,
    TRPI_GATE_OVERSIZE,
    TRPI_GATE_TIMEOUT,
    TRPI_GATE_REFUSED,
    TRPI_GATE_DECODE,
    TRPI_GATE_TYPE,
    TRPI_GATE_TOO_LARGE,
    TRPI_GATE_UNTRUSTED,
    TRPI_GATE_DEPLOY,
    TRPI_GATE_CROWD,
    TRPI_GATE_LANE,
    TRPI_GATE_STARVED,
    TRPI_GATE_UNFINISHED,
    TRPI_GATE_RECEIVER,
    TRPI_GATE_REFUSAL, /* one for each reason */
    TRPI_GATE_COUNT = TRPI_GATE_REFUSAL + TRPI_REFUSAL_COUNT
};

enum { TRPI_PEER_BUCKETS = 1024 };

typedef struct trpi_line { /* who stands longest first */
    trpi_peer *first, *last;
} trpi_line;

struct trpi_remote {
    trp_system *system;
    trpi_world *world;
    trpi_remote_options options; /* defaults filled in */
    trpi_assoc_config assoc_config;
    const trpi_transport_ops *ops;
    trpi_transport *transport;
    bool secure; /* secure.h is around the transport; written before listening */
    trpi_faults *faults; /* around that, for tests; NULL: not */
    char cookie_file[TRPI_REMOTE_COOKIE_FILE_BYTES]; /* as the options have it; "": none */
    trpi_address address;
    uint64_t uid;
    trpi_serializers *serializers; /* the system's */
    atomic_int references; /* the user's until stop, one a route until the system is freed */
    bool chatty;               /* messages are logged, or their sizes; set at the start */
    _Atomic uint32_t *largest; /* payload of each type; NULL: not asked for */
    /* in this order: no new peers; nothing is appended to a lane; over */
    atomic_bool stopping, closed, stopped;
    uint64_t flush_until_ms; /* set before stopping */
    pthread_mutex_t lock;
    pthread_cond_t over; /* one of timers, or of conns_alive */
    trpi_peer *peers[TRPI_PEER_BUCKETS]; /* by lock */
    uint32_t peers_count;
    uint32_t share_peers[TRPI_SHARES]; /* callers that are no members; by lock */
    uint64_t *bygone;                  /* a ring of TRPI_BYGONE_MAX uids; by lock, as the next */
    uint32_t bygone_count, bygone_next;
    trpi_conn *conns; /* all; by lock */
    uint32_t conns_waiting; /* in the line of pending.c, oldest first; by lock, as the next */
    trpi_conn *pending_first, *pending_last;
    uint32_t pending_hosts[TRPI_SHARES]; /* of them, by host */
    bool member_hosts[TRPI_SHARES];      /* a member is, or was, at such an address */
    uint64_t starved, starved_ms, displaced_ms; /* times, and when last; 0: never */
    uint32_t conns_alive; /* in memory: also what is closed, while somebody writes; by lock */
    uint32_t timers;   /* that may still call us: the beat, and the hurry; by lock */
    uint64_t beat_id;
    bool hurrying;     /* by the timer's thread, as the next two */
    uint64_t ticked_ms;
    uint64_t probe_next_ms;
    trpi_peer *awake;  /* line of those that the tick looks at, in no order; by lock */
    trpi_line resting, gone; /* associations that nobody uses; no associations; by lock */
    uint32_t epoch_first; /* epochs of a new peer, which may remember us, are higher; by lock */
    uint64_t redelivered_before; /* to peers that are forgotten; by lock */
    trpi_channel channels[TRPI_CHANNEL_COUNT];
    trpi_log_gate gates[TRPI_GATE_COUNT];
    _Atomic uint64_t accepted, handshakes_failed, garbage, oversize, wrong_version,
        handshake_timeouts, frames_in, frames_out, decode_errors,
        frames_skipped, frames_stale, quarantined; /* relaxed counters */
    _Atomic uint64_t barred; /* handshakes that were refused because the peer has quarantined us */
    _Atomic uint64_t refused[TRPI_REFUSAL_COUNT]; /* relaxed counters */
    trpi_credit_limits limits;
    atomic_uint_least64_t waiting_bytes; /* marked, for all receivers here; relaxed */
    atomic_uint_least64_t held_bytes;    /* for all receivers elsewhere; relaxed */
    _Atomic uint64_t untrusted_dropped;           /* relaxed counter */
    char **trusted; /* paths; set before listening */
    size_t trusted_count;
    char **deployable; /* patterns of behaviours; meant when options.deployable is not NULL */
    size_t deployable_count;
    _Atomic uint64_t deployments_refused; /* relaxed counter */
    _Atomic uint64_t unfinished; /* bytes that all decoders keep; relaxed */
    _Atomic uint64_t unfinished_refused, unfinished_late; /* relaxed counters */
    _Atomic uint64_t gave_way;            /* relaxed counter: peers that were forgotten early */
};

/* A change that is to be logged and published. */
typedef struct trpi_note {
    struct trpi_note *next;
    trp_log_level level;
    const trp_type *type; /* of the event; NULL: only a line */
    trp_remoting_event event;
    char text[600]; /* "": only an event */
} trpi_note;

/* Frames that left a lane unsent: their messages become dead letters. */
typedef struct trpi_dropped {
    trpi_buffer frames;
    uint64_t uid; /* incarnation that the frames without ANYONE were for; 0: none are there */
    trp_dead_reason reason;
} trpi_dropped;

/* What is to be done when peer->lock has been given back. */
enum { TRPI_LATER_WRITES_MAX = 6 };
typedef struct trpi_later {
    trpi_conn *writes[TRPI_LATER_WRITES_MAX]; /* counted, busy */
    uint32_t writes_count;
    uint32_t dials; /* bit a lane */
    trpi_dropped dropped[TRPI_LANE_COUNT];
    uint64_t over_uid; /* incarnation to be ended, 0: none */
    bool over_quarantined;
    bool ready; /* tell the proxies that the lane drained */
    bool barred; /* a peer has quarantined this node, which is news */
    trpi_note *notes; /* oldest first */
    struct trpi_held_chunk *held; /* that becomes dead letters, oldest first */
} trpi_later;

/* ---- remote.c ---- */
uint64_t trpi_remote_now_ms(const trpi_remote *remote);
void trpi_remote_ref(trpi_remote *remote);
void trpi_remote_unref(trpi_remote *remote);
/* True when a line of this kind may be logged now; *ret_suppressed are the ones that were not. */
bool trpi_log_gate_open(trpi_remote *remote, uint32_t gate, uint32_t *ret_suppressed);
static inline void
trpi_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed); /* read by stats only */
}

/* ---- stop.c ---- */
/* Has a peer that is not met messages that it may still get while remoting stops? The caller holds
 * peer->lock. */
bool trpi_peer_is_flushed_to(const trpi_peer *peer);

/* ---- peer.c ---- */
/* Find or make, and pin: it is not forgotten (tick.c) before trpi_peer_unpin(). Connections and
 * routes pin theirs, too. Errors: TRP_ENOENT, TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_peer_get(trpi_remote *remote, const trpi_address *address, bool make,
                      trpi_peer **ret_peer);
void trpi_peer_unpin(trpi_peer *peer); /* NULL is fine. Not with remote->lock */
/* The same for one who calls, on an accepted connection: it counts for its host. */
trp_err trpi_peer_get_caller(trpi_remote *remote, const trpi_address *address, uint64_t whose,
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
/* The numbers of so many routes that this turn has not told yet; gives how many. */
uint32_t trpi_routes_untold(trpi_peer *peer, uint64_t turn, uint32_t *nodes, uint32_t max);
bool trpi_lane_wants(const trpi_peer *peer, int lane);
bool trpi_peer_may_dial(const trpi_peer *peer);
/* Who watches that incarnation is told that it is over. Without locks. */
void trpi_peer_tell_end(trpi_peer *peer, uint64_t uid, trp_dead_reason reason);

/* Our number of the present incarnation; 0: there is none, or no memory or number for it. The
 * caller holds peer->lock. */
uint32_t trpi_peer_node(trpi_peer *peer);

/* ---- tick.c ---- */
/* Time has passed; true: somebody waits for an attempt, so the next tick should come soon. By the
 * timer's thread. */
bool trpi_remote_tick(trpi_remote *remote);
/* Ask an active peer whether it is there. The caller holds peer->lock. */
void trpi_peer_ping(trpi_peer *peer, uint64_t now_ms);
/* A new peer. The caller holds remote->lock. */
void trpi_peer_begin(trpi_peer *peer);
/* Something about it has changed: the next tick looks at it. The caller holds peer->lock. */
void trpi_peer_wake(trpi_peer *peer);

/* Take it out of the table and free it if it is over and nobody else has it in his hands; else it
 * stands behind the others that are gone. The caller holds its lock and a pin; both are given
 * back. */
void trpi_peer_forget(trpi_peer *peer, bool over);

/* ---- strangers.c: how many are known, and who gives way ---- */
/* Key of the host in the text of a connection's other end, without the port; of IPv6 the net. */
uint64_t trpi_whose_text(const char *peer_text);
/* Key of who is at the other end; what the link knows of it goes before the host. */
uint64_t trpi_whose(const trpi_conn *conn);
/* Forget one of the gone peers, of this share or (TRPI_SHARES) of any. Without locks. false: none
 * could be forgotten now. */
bool trpi_peers_give_way(trpi_remote *remote, uint32_t share);
/* It is a member: it counts for no host any more. By peer->lock. */
void trpi_peer_unshare(trpi_peer *peer);
/* Bar an incarnation that had to give way. By peer->lock. */
void trpi_bygone_bar(trpi_peer *peer, uint64_t uid);
/* Intern of the trpi_node_map of a connection's frames. */
trp_err trpi_third_number(void *conn, const trpi_node_id *id, uint32_t *ret_node);

/* ---- pending.c: connections that have not said who they are. By remote->lock ---- */
enum { TRPI_PENDING_TEXT_BYTES = 300 };
/* So many places, with the descriptors that there are. Without locks, as for the last two. */
uint32_t trpi_pending_places(uint32_t wanted);
/* gone: who had to give way for it, "": nobody. */
void trpi_pending_add(trpi_conn *conn, char gone[TRPI_PENDING_TEXT_BYTES]);
void trpi_pending_remove(trpi_conn *conn); /* if it is there */
/* Its addresses are a member's: places are kept for them. By peer->lock. */
void trpi_pending_member(trpi_peer *peer);
void trpi_pending_starved(void *remote); /* of trpi_transport_events */

/* ---- unfinished.c: frames that have begun to come ---- */
trp_err trpi_unfinished_carry(void *conn, size_t before, size_t after); /* of the decoder */
/* Around a read, by the bytes() callback. */
void trpi_unfinished_before(trpi_conn *conn);
void trpi_unfinished_after(trpi_conn *conn);
bool trpi_unfinished_is_late(const trpi_conn *conn, uint64_t now_ms);
void trpi_unfinished_say_late(trpi_peer *peer, uint32_t count); /* without locks */

/* ---- events.c ---- */
/* One more note about peer, at the end; the caller fills in the rest. NULL: no memory. */
trpi_note *trpi_note_new(trpi_peer *peer, const trp_type *type, trpi_later *later);
/* Log, publish and free them. The caller holds no lock, as for the next four. */
void trpi_notes_tell(trpi_remote *remote, trpi_note *notes);
/* As log-remote-lifecycle-events says. */
void trpi_lifecycle_log(trpi_remote *remote, trp_log_level level, const char *text);
void trpi_remoting_publish(trpi_remote *remote, const trp_type *type, trp_remoting_event *event);
/* Who, what, how large; never the content. */
void trpi_message_chat(trpi_remote *remote, const trpi_peer *peer, bool sent, const trp_type *type,
                       const trpi_message *message);

/* ---- lane.c ---- */
/* Bytes that may wait on a lane. */
size_t trpi_lane_bytes_max(const trpi_remote *remote, enum trpi_lane lane);
/* Bytes above which trp_try_tell() is refused. */
size_t trpi_lane_admit_max(const trpi_remote *remote, enum trpi_lane lane);
/* Let those who were refused or slowed down go on when there is room. The caller holds peer->lock.
 */
void trpi_lane_look(trpi_peer *peer, trpi_later *later);
/* Keep the frames for anyone and those for keep_uid; the others go to later->dropped of the lane,
 * which takes them of one incarnation. The caller holds peer->lock, as for the next. */
void trpi_lane_drop(trpi_peer *peer, enum trpi_lane lane, uint64_t keep_uid,
                    trp_dead_reason reason, trpi_later *later);
/* All that waits on a lane, for whomever; later has none of it yet. */
void trpi_lane_clear(trpi_peer *peer, enum trpi_lane lane, trpi_later *later);
/* node: that those without ANYONE were for. Without locks. */
void trpi_lane_dead_letters(trpi_peer *peer, uint32_t node, const trpi_buffer *frames,
                            trp_dead_reason reason);
void trpi_system_messages_send(trpi_peer *peer);

/* ---- spread.c: which lane ---- */
/* Features that this node offers. */
uint32_t trpi_features_own(const trpi_remote *remote);
/* The longest body of a CONTROL frame, for who has these features and this limit of all frames. */
uint32_t trpi_control_frame_max(uint32_t features, uint32_t frame_bytes_max);
/* The peer of this connection is known: it may send frames as long as any. */
void trpi_conn_takes_large(trpi_conn *conn);
/* The ordinary lane of a recipient. */
enum trpi_lane trpi_lane_of(uint32_t spread, uint32_t slot);
/* What a handshake has agreed on; the caller holds peer->lock. */
void trpi_peer_agree(trpi_peer *peer, const trpi_handshake *handshake);
/* Use the lanes that the proved incarnation takes: what waits moves. By peer->lock. */
void trpi_peer_spread(trpi_peer *peer, trpi_later *later);
/* Sort frames into lanes, at the end of each of sorted; of a type's manifests the first, by
 * announced: a bit a type number. What finds no memory goes to *ret_lost. */
void trpi_frames_sort(uint32_t spread, const trpi_buffer *frames,
                      trpi_buffer sorted[TRPI_LANE_COUNT],
                      uint8_t announced[TRPI_ANNOUNCED_BYTES], trpi_buffer *ret_lost);

/* ---- fence.c: order across lanes. The caller holds peer->lock ---- */
/* Append one, if anything may be on its way on that lane. Errors: TRP_ENOMEM. */
trp_err trpi_fence_append(trpi_peer *peer, enum trpi_lane lane);
/* The first that a new connection of a lane says, when one may be lost. */
void trpi_fence_again(trpi_peer *peer, enum trpi_lane lane, trpi_conn *conn);
void trpi_fence_acked(trpi_peer *peer, uint64_t value);
/* Is the large lane to wait for the others? */
bool trpi_large_is_held(const trpi_peer *peer);
/* Say again what was not answered; end the era of a large lane that has become quiet. */
void trpi_fences_tick(trpi_peer *peer, uint64_t now_ms);

/* ---- graceful_close.c: the end of one lane's connection. The caller holds peer->lock ---- */
void trpi_parting_tick(trpi_peer *peer, uint64_t now_ms);
/* Is the lane on a connection whose certificate or cookie was replaced? Never the control lane. */
bool trpi_lane_is_renewing(const trpi_peer *peer, int lane);
/* GOODBYE or GOODBYE_ACK of one lane came. */
void trpi_parting_frame(trpi_conn *conn, enum trpi_frame_kind kind);

/* ---- conn.c ---- */
extern const trpi_transport_events trpi_conn_events;
void trpi_conn_ref(trpi_conn *conn);
void trpi_conn_unref(trpi_conn *conn);
void trpi_conn_dial(trpi_peer *peer, enum trpi_lane lane);
pthread_mutex_t *trpi_conn_lock_of(trpi_conn *conn);
/* The caller holds trpi_conn_lock_of(), or is its only user. */
void trpi_conn_close(trpi_conn *conn);
void trpi_conns_expire(trpi_remote *remote, uint64_t now_ms);

/* ---- conn_write.c ---- */
/* Take what is to be sent; true: the caller owns the write and calls trpi_conn_write() without
 * locks. */
bool trpi_conn_take(trpi_conn *conn);
void trpi_conn_write(trpi_conn *conn);
/* What the transport was never given whole becomes dead letters. Nobody else uses it any more. */
void trpi_conn_give_up(trpi_conn *conn);
void trpi_conn_written(void *user, trpi_link *link); /* of trpi_transport_events */
/* A frame in front of the lane's. Errors: TRP_ENOMEM; TRP_EAGAIN: control_bytes_max wait. */
trp_err trpi_conn_head(trpi_conn *conn, enum trpi_frame_kind kind, uint8_t flags, const void *body,
                       size_t bytes);
trp_err trpi_conn_preamble(trpi_conn *conn);

/* ---- transport.c ---- */
/* Open the transport, with what makes it secure, and bad, around it. Errors: its own,
 * TRP_ECONFIG. */
trp_err trpi_remote_transport_open(trpi_remote *remote);

/* Its address is known: what cookies are made for. */
void trpi_remote_secure_self(trpi_remote *remote);

/* ---- untrusted.c ---- */
trp_err trpi_untrusted_begin(trpi_remote *remote); /* Errors: TRP_ENOMEM */
void trpi_untrusted_end(trpi_remote *remote);
/* Is this message not taken here? Then it was counted and logged. path: of SELECT. */
bool trpi_untrusted_refuses(trpi_conn *conn, uint8_t kind, const trp_type *type,
                            const char *path);
/* An order to make an actor here: is its behaviour not allowed? Counts and logs then. */
bool trpi_deploy_refuses(trpi_conn *conn, const char *behaviour, const char *path);
bool trpi_untrusted_refuses_channel(trpi_conn *conn, enum trpi_control_channel channel);
#define TRPI_TRUSTED_CLUSTER "/system/cluster" /* among the trusted paths: gossip is taken */
bool trpi_untrusted_takes_clusters(const trpi_remote *remote);
/* Does a message come in the name of a node that is neither here nor there? */
bool trpi_untrusted_refuses_sender(trpi_conn *conn, bool third);
bool trpi_untrusted_drop(trpi_conn *conn, const char *what, const char *name); /* true */

/* ---- refusal.c ---- */
/* Why a peer is refused that advertises a loopback address and calls from elsewhere. */
#define TRPI_LOOPBACK_REFUSAL                                                                      \
    "you advertise an address on loopback: remote.hostname is what others can dial"
/* Count a connection that was refused, and log it now and then. peer: who, as text. */
void trpi_refused(trpi_remote *remote, const char *peer, trpi_refusal why, const char *detail);
/* Count, and keep who refused. By peer->lock. */
void trpi_handshake_refused(trpi_peer *peer, const trpi_handshake *refusal);
/* After that: if it has quarantined this node, nothing that waits for it ever arrives. And: may it
 * be somebody else by now, so that it is worth a call? By peer->lock. */
void trpi_barred(trpi_peer *peer, trpi_later *later);
bool trpi_is_barred_now(const trpi_peer *peer);
/* Why nobody can have this address who calls on this connection; NULL: somebody may. */
const char *trpi_odd_address(const trpi_conn *conn, const trpi_address *address);
/* What a stream of another kind begins with; NONE: nothing that is known. */
trpi_refusal trpi_refusal_of_bytes(const uint8_t *bytes, size_t count, const char **ret_detail);

/* ---- lane_dial.c ---- */
enum { TRPI_LANE_NAME_BYTES = 24 };
/* As people read it: "ordinary-1"; returns out. */
const char *trpi_lane_name(int lane, char out[TRPI_LANE_NAME_BYTES]);
/* The dial of an ordinary lane failed. By peer->lock; and the line, without locks. */
void trpi_lane_undialled(trpi_peer *peer, const trpi_conn *conn, const char *reason);
void trpi_lane_undialled_log(trpi_remote *remote, const trpi_conn *conn, const char *reason);
/* Is there a lane that cannot be dialled? By peer->lock. */
bool trpi_lane_problem(const trpi_peer *peer, uint64_t now_ms, char *ret_text, size_t bytes);

/* ---- inbound.c ---- */
trp_err trpi_inbound_frame(trpi_conn *conn, const trpi_frame *frame);
void trpi_inbound_batch_end(trpi_conn *conn);

/* ---- hold.c: what is kept for receivers elsewhere that have no credit ---- */
void trpi_hold_credit(trpi_conn *conn, const trpi_frame *frame); /* CREDIT */
enum trpi_held { TRPI_HELD_NOT, TRPI_HELD, TRPI_HELD_FULL };
/* May this recipient be held? Without a lock; true for others now and then. */
bool trpi_hold_may_be(const trpi_peer *peer, uint32_t slot);
static inline bool
trpi_hold_may(const trpi_peer *peer, uint32_t slot)
{
    /* acquire: pairs with the first hold; with none, which is usual, nothing is hashed */
    return atomic_load_explicit(&peer->holding, memory_order_acquire) &&
           trpi_hold_may_be(peer, slot);
}
/* Keep frame, of one message for a recipient of route; NOT: it is not held. Takes no memory of
 * frame. By the runner. */
enum trpi_held trpi_hold_take(trpi_route *route, uint32_t slot, uint32_t generation,
                              const trpi_buffer *frame, bool promised);
/* Is it held? enter: and what route has gathered before is on its lane. By the runner. */
bool trpi_hold_enter(trpi_route *route, uint32_t slot, uint32_t generation);
/* Any thread: has it something and no credit? and: is there room for so many bytes more? */
bool trpi_hold_slows(trpi_peer *peer, uint32_t slot);
bool trpi_hold_has_room(trpi_peer *peer, uint32_t slot, size_t bytes, bool refused);
/* Give lanes what has credit; ask where no word comes. The caller holds peer->lock, as for all of
 * the next. */
void trpi_holds_release(trpi_peer *peer, trpi_later *later);
void trpi_holds_tick(trpi_peer *peer, uint64_t now_ms, trpi_later *later);
/* The mail kept for uid (0: for all) becomes dead letters. */
void trpi_holds_drop(trpi_peer *peer, uint64_t uid, trp_dead_reason reason, trpi_later *later);
bool trpi_holds_any(const trpi_peer *peer);
void trpi_holds_forget(trpi_peer *peer, const trpi_route *route); /* which ends */
void trpi_holds_info(const trpi_peer *peer, trpi_peer_info *info);
void trpi_holds_free(trpi_holds *holds); /* NULL is fine; nothing is in it */
void trpi_held_dead_letters(trpi_peer *peer, trpi_later *later); /* without the lock */

/* ---- receiver.c ---- */
/* A message for it has come; by the lane's recv lock, before it is told. false: its limit waits for
 * it already. */
bool trpi_receiver_take(trpi_conn *conn, uint32_t slot, uint32_t generation, size_t payload_bytes);
void trpi_receiver_asked(trpi_conn *conn, const trpi_frame *frame); /* CREDIT_ASK */
void trpi_inflow_fini(trpi_inflow *inflow);

/* ---- route.c ---- */
/* Append the frame of one message. By the runner. Errors: those of trpi_message_encode(),
 * TRP_ECONN (remoting has stopped). */
trp_err trpi_route_encode(trpi_route *route, trpi_buffer *out, const trp_type *type,
                          const trp_msg *msg, trpi_node_map *ret_map);
extern const trpi_remote_ops trpi_route_remote_ops;
void trpi_route_free(trpi_route *route);
/* Errors: TRP_EINVAL (local-only, or another transport), TRP_ESTATE (an earlier self). */
trp_err trpi_route_address_check(const trpi_remote *remote, const trpi_address *address);
const trpi_node_id *trpi_route_node_get(void *remote, uint32_t node); /* of trpi_node_map */
/* Give what was gathered to the lanes. By the runner; true: one is above its high-water mark. */
bool trpi_route_hand_over(trpi_route *route);

/* ---- signal.c: of trpi_remote_ops ---- */
void trpi_signal_send(void *remote, trp_system *system, uint32_t node,
                      enum trpi_remote_signal signal, trp_ref target, trp_ref from, uint32_t flag);
trp_err trpi_signal_order(void *remote, trp_system *system, uint32_t node,
                          enum trpi_remote_signal signal, trp_ref target, trp_ref from,
                          const trpi_order *order);
bool trpi_signal_is_connected(void *remote, trp_system *system, uint32_t node);

/* ---- route_lane.c ---- */
/* The lane of a message. By the runner. */
enum trpi_lane trpi_route_lane(trpi_route *route, uint32_t slot, size_t bytes);
/* In its present era, is it the large one? By peer->lock. */
bool trpi_route_is_large(const trpi_route *route, uint32_t slot);
/* The same for whoever asks for room: as things stand. */
enum trpi_lane trpi_route_lane_guess(const trpi_route *route, uint32_t slot, size_t bytes);

#endif
