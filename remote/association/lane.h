/* lane.h - the queue of a lane, the choice of the lane of a message, and order across lanes. */
#ifndef TRPI_REMOTE_LANE_H
#define TRPI_REMOTE_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "remote/association/context.h"
#include "remote/association/receiver.h"
#include "remote/wire/codec.h"

#define TRPI_ADMIT_BYTES_MAX                                                                       \
    524288 /* trp_try_tell() refuses above; a lane of less than 2 MiB: above a quarter of it */
#define TRPI_LARGE_PLACES 4096 /* recipients that share one take the same lane */
#define TRPI_ANNOUNCED_BYTES ((TRP_TYPES_MAX + 1) / 8) /* a bit a type number */

/* Fences of a lane (fence.c), numbered; by peer->lock. */
typedef struct trpi_fences {
    uint64_t last;    /* appended */
    uint64_t sent;    /* not in pending any more, so a lost connection may have lost it */
    uint64_t acked;   /* all that was appended before it has arrived, or never will */
    uint64_t said_ms; /* when it was said last */
    bool due;         /* something was appended after the last one */
} trpi_fences;

/* A frame that is no fence was appended. */
static inline void
trpi_fence_need(trpi_fences *fence)
{
    fence->due = true;
}
/* All that was appended has left the queue. */
static inline void
trpi_fence_left(trpi_fences *fence)
{
    fence->sent = fence->last;
}
/* All that was sent has been handled. */
static inline void
trpi_fence_settled(trpi_fences *fence)
{
    fence->acked = fence->sent;
}

/* The queue of a lane (lane.c); by peer->lock, if not atomic. */
typedef struct trpi_lane_queue {
    trpi_buffer frames; /* whole ones */
    uint64_t uid;       /* incarnation that the frames without ANYONE are for; 0: none are there */
    uint64_t since_ms;
    atomic_size_t bytes; /* of frames, and in flight; relaxed: a hint for the limit and the marks */
} trpi_lane_queue;

/* Move the frames to a write that begins; they count until it is over. taken is empty. */
static inline void
trpi_lane_queue_take(trpi_lane_queue *queue, trpi_buffer *taken)
{
    trpi_buffer empty = *taken;
    *taken = queue->frames;
    queue->frames = empty;
    queue->uid = 0;
}
/* So many bytes in flight are written, or never will be. */
static inline void
trpi_lane_queue_sent(trpi_lane_queue *queue, size_t bytes)
{
    atomic_fetch_sub_explicit(&queue->bytes, bytes, memory_order_relaxed);
}
/* Frames were appended behind the first `before` bytes. */
static inline void
trpi_lane_queue_grown(trpi_lane_queue *queue, size_t before, uint64_t now_ms)
{
    if (before == 0) {
        queue->since_ms = now_ms;
    }
    atomic_fetch_add_explicit(&queue->bytes, queue->frames.count - before, memory_order_relaxed);
}
/* Forget the frames, and keep their memory. */
static inline void
trpi_lane_queue_clear(trpi_lane_queue *queue)
{
    trpi_lane_queue_sent(queue, queue->frames.count);
    trpi_buffer_clear(&queue->frames);
    queue->uid = 0;
}
/* The queue is empty: move frames into it. */
static inline void
trpi_lane_queue_put(trpi_lane_queue *queue, trpi_buffer *frames, uint64_t uid, uint64_t since_ms)
{
    trpi_buffer_fini(&queue->frames);
    queue->frames = *frames;
    queue->uid = uid;
    trpi_lane_queue_grown(queue, 0, since_ms);
}

/* Connections of a lane; by peer->lock. */
typedef struct trpi_lane_conns {
    trpi_conn *out; /* the one that it sends on; peer.h sets it */
    trpi_conn *dialling;
    trpi_conn *closing;    /* gracefully: nothing is sent on another one before its end */
    uint64_t dial_next_ms; /* not before; not of the control lane */
    uint32_t dial_attempts;
} trpi_lane_conns;

static inline void
trpi_lane_dial_begun(trpi_lane_conns *conns, trpi_conn *conn)
{
    conns->dialling = conn;
}
static inline void
trpi_lane_dial_ended(trpi_lane_conns *conns)
{
    conns->dialling = NULL;
}
static inline void
trpi_lane_dial_succeeded(trpi_lane_conns *conns)
{
    conns->dialling = NULL;
    conns->dial_attempts = 0;
}
static inline void
trpi_lane_dial_failed(trpi_lane_conns *conns, uint64_t next_ms)
{
    conns->dialling = NULL;
    conns->dial_attempts++;
    conns->dial_next_ms = next_ms;
}

typedef struct trpi_lane_state {
    trpi_lane_queue queue;
    bool goodbye_acked;
    trpi_fences fence; /* by peer->lock */
    trpi_lane_conns conns;
    _Atomic uint32_t epoch; /* of our sending; written by peer->lock, read relaxed by routes */
    /* Deliveries of this lane (inbound.c), so that a stale connection cannot reorder */
    pthread_mutex_t recv_lock;
    _Atomic uint32_t recv_epoch; /* newest LANE_OPEN; written under recv_lock */
    trpi_inflow inflow;          /* by recv_lock */
} trpi_lane_state;

/* Lanes that need a look: a bit a lane, each; by peer->lock. */
typedef struct trpi_lane_marks {
    uint32_t unsettled;       /* peer-P4: it may want a connection, or have one to choose */
    uint32_t over_high_water; /* the high-water mark was passed */
    uint32_t room_refused;    /* trp_try_tell() was refused; its caller waits */
} trpi_lane_marks;

/* Its connection has gone, another one has come, or something waits. */
static inline void
trpi_lane_unsettle(trpi_lane_marks *marks, enum trpi_lane lane)
{
    marks->unsettled |= 1u << lane;
}
static inline void
trpi_lane_refuse_room(trpi_lane_marks *marks, enum trpi_lane lane)
{
    marks->room_refused |= 1u << lane;
}
static inline void
trpi_lane_settled(trpi_lane_marks *marks, enum trpi_lane lane)
{
    marks->unsettled &= ~(1u << lane);
}
static inline bool
trpi_lane_is_over_high_water(const trpi_lane_marks *marks, enum trpi_lane lane)
{
    return (marks->over_high_water & 1u << lane) != 0;
}
/* Lanes that want a look: a bit a lane. */
static inline uint32_t
trpi_lanes_unsettled(const trpi_lane_marks *marks)
{
    return marks->unsettled;
}
/* Was trp_try_tell() refused, and has its caller not been told of room yet? */
static inline bool
trpi_lanes_have_refused(const trpi_lane_marks *marks)
{
    return marks->room_refused != 0;
}
/* Does a sender wait for room on any lane? */
static inline bool
trpi_lanes_are_waited_for(const trpi_lane_marks *marks)
{
    return (marks->over_high_water | marks->room_refused) != 0;
}

/* Agreed on by the last handshake (spread.c); by peer->lock, if not atomic. */
typedef struct trpi_agreed {
    _Atomic uint32_t frame_bytes_max; /* that both ends take */
    _Atomic uint32_t features;        /* that both ends have */
    uint32_t minor;                   /* that both ends speak; 0: not met */
    int64_t cert_until_ms;            /* of the peer's certificate; 0: none */
    /* ordinary lanes in use, and the large one with them; 0: one lane for all messages, because the
     * peer takes no more, or was not met. Written by peer->lock, read relaxed by routes */
    _Atomic uint32_t spread;
} trpi_agreed;

/* Before the first handshake: our own limit. */
static inline void
trpi_agreed_begin(trpi_agreed *agreed, uint32_t frame_bytes_max)
{
    atomic_init(&agreed->frame_bytes_max, frame_bytes_max);
}

/* Without the lock, as the next two. */
static inline uint32_t
trpi_agreed_frame_bytes_max(const trpi_agreed *agreed)
{
    return atomic_load_explicit(&agreed->frame_bytes_max, memory_order_relaxed);
}
static inline uint32_t
trpi_agreed_features(const trpi_agreed *agreed)
{
    return atomic_load_explicit(&agreed->features, memory_order_relaxed);
}
static inline uint32_t
trpi_agreed_spread(const trpi_agreed *agreed)
{
    return atomic_load_explicit(&agreed->spread, memory_order_relaxed);
}
static inline uint32_t
trpi_agreed_minor(const trpi_agreed *agreed)
{
    return agreed->minor;
}
static inline int64_t
trpi_agreed_cert_until_ms(const trpi_agreed *agreed)
{
    return agreed->cert_until_ms;
}

/* Use of the large lane (fence.c); by peer->lock. */
typedef struct trpi_large {
    uint32_t era;  /* recipients that took the large lane in an earlier one have left it */
    uint32_t pins; /* routes that hold something for the large lane */
    bool used;     /* in this era */
} trpi_large;

/* The next era: recipients take the ordinary lanes again. */
static inline void
trpi_large_restart(trpi_large *large)
{
    large->era++;
    large->used = false;
}
static inline void
trpi_large_use(trpi_large *large)
{
    large->used = true;
}
static inline bool
trpi_large_is_used(const trpi_large *large)
{
    return large->used;
}
static inline uint32_t
trpi_large_era(const trpi_large *large)
{
    return large->era;
}
/* A route holds something for it, or holds nothing any more. */
static inline void
trpi_large_pin(trpi_large *large)
{
    large->pins++;
}
static inline void
trpi_large_unpin(trpi_large *large)
{
    large->pins--;
}

/* Lanes that could not be dialled (lane_dial.c); by peer->lock. */
typedef struct trpi_dials {
    uint32_t failing;   /* bit a lane: its last dial failed */
    uint32_t failed;    /* dials of lanes, ever */
    uint64_t failed_ms; /* when one last did */
    char why[TRPI_REACH_WHY_BYTES];
} trpi_dials;

/* A lane is connected. */
static inline void
trpi_dials_succeeded(trpi_dials *dials, int lane)
{
    dials->failing &= ~(1u << lane);
}
/* Dials of lanes that failed, ever; and why the last one did. */
static inline uint32_t
trpi_dials_failed(const trpi_dials *dials)
{
    return dials->failed;
}
static inline const char *
trpi_dials_why(const trpi_dials *dials)
{
    return dials->why;
}
/* Another incarnation: nothing is known of it. */
static inline void
trpi_dials_forget(trpi_dials *dials)
{
    dials->failing = 0;
}

/* ---- lane.c ---- */
/* Bytes that may wait on a lane. */
static inline size_t
trpi_lane_bytes_max(const trpi_remote *remote, enum trpi_lane lane)
{
    return lane == TRPI_LANE_CONTROL ? remote->options.control_bytes_max
           : lane == TRPI_LANE_LARGE ? remote->options.large_lane_bytes_max
                                     : remote->options.lane_bytes_max;
}
/* Bytes above which trp_try_tell() is refused. */
static inline size_t
trpi_lane_admit_max(const trpi_remote *remote, enum trpi_lane lane)
{
    size_t quarter = trpi_lane_bytes_max(remote, lane) / 4;
    /* few messages fill the large lane: it would run empty between two of them */
    return quarter < TRPI_ADMIT_BYTES_MAX || lane == TRPI_LANE_LARGE ? quarter
                                                                     : TRPI_ADMIT_BYTES_MAX;
}
/* Tell refused and slowed senders when there is room again. The caller holds peer->lock. */
void trpi_lanes_room_notify(trpi_peer *peer, trpi_deferred *deferred);
/* Keep the frames for anyone and those for keep_uid; move the others to deferred->dropped of the
 * lane, which takes them of one incarnation. The caller holds peer->lock, as for the next. */
void trpi_lane_drop(trpi_peer *peer, enum trpi_lane lane, uint64_t keep_uid, trp_dead_reason reason,
                    trpi_deferred *deferred);
/* Move all that waits on a lane to deferred->dropped, which has nothing of the lane yet. */
void trpi_lane_clear(trpi_peer *peer, enum trpi_lane lane, trpi_deferred *deferred);
/* node: that those without ANYONE were for. Without locks. */
void trpi_lane_dead_letters(trpi_peer *peer, uint32_t node, const trpi_buffer *frames,
                            trp_dead_reason reason);
/* Append the system messages that are due to the control lane. By peer->lock, as the next. */
void trpi_system_messages_send(trpi_peer *peer);
/* Append frames to a lane. uid 0: for any incarnation. checked: the caller has checked the limit.
 * Takes the content of frames on success (the buffer is then empty, perhaps with other memory). The
 * caller pumps afterwards.
 * Errors: TRP_EQUARANTINED, TRP_ECLOSED (that incarnation is over), TRP_EAGAIN (full),
 *         TRP_ENOMEM. */
trp_err trpi_peer_append(trpi_peer *peer, enum trpi_lane lane, uint64_t uid, trpi_buffer *frames,
                         bool checked);

/* ---- spread.c: which lane ---- */
/* Features that this node offers. */
uint32_t trpi_features_own(const trpi_remote *remote);
/* The longest body of a CONTROL frame, with these features and this limit of all frames. */
uint32_t trpi_control_frame_max(uint32_t features, uint32_t frame_bytes_max);
/* The peer of this connection is known: it may send frames as long as any. */
void trpi_conn_takes_large(trpi_conn *conn);
/* The ordinary lane of a recipient. */
static inline enum trpi_lane
trpi_lane_of(uint32_t spread, uint32_t slot)
{
    /* recipients of one large place share their ordinary lane: its fence is for all of them */
    uint32_t nth = spread > 1 ? (uint32_t)(trpi_hash_u64(slot) % TRPI_LARGE_PLACES % spread) : 0;
    return (enum trpi_lane)(TRPI_LANE_ORDINARY + nth);
}
/* Keep what a handshake has agreed on; the caller holds peer->lock. */
void trpi_peer_agree(trpi_peer *peer, const trpi_handshake *handshake, int64_t cert_until_ms);
/* Use the lanes that the proved incarnation takes: what waits moves. By peer->lock. */
void trpi_peer_spread(trpi_peer *peer, trpi_deferred *deferred);
/* Sort frames into lanes, at the end of each of sorted; of a type's manifests the first, by
 * announced: a bit a type number. Frames that
 * find no memory go to *ret_lost. */
void trpi_frames_sort(uint32_t spread, const trpi_buffer *frames,
                      trpi_buffer sorted[TRPI_LANE_COUNT], uint8_t announced[TRPI_ANNOUNCED_BYTES],
                      trpi_buffer *ret_lost);

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

/* ---- lane_dial.c ---- */
enum { TRPI_LANE_NAME_BYTES = 24 };
/* As people read it: "ordinary-1"; returns out. */
const char *trpi_lane_name(int lane, char out[TRPI_LANE_NAME_BYTES]);
/* The dial of an ordinary lane failed. By peer->lock; and the line, without locks. */
void trpi_lane_undialled(trpi_peer *peer, const trpi_conn *conn, const char *reason);
void trpi_lane_undialled_log(trpi_remote *remote, const trpi_conn *conn, const char *reason);
/* Is there a lane that cannot be dialled? By peer->lock. */
bool trpi_lane_problem(const trpi_peer *peer, uint64_t now_ms, char *ret_text, size_t bytes);

#endif
