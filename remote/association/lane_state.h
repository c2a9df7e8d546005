/* lane_state.h - the members of a lane, of what a peer keeps about all of its lanes, and what other
 * files ask about them.
 *
 * lane.c knows the members; a part that is a module of its own is known to that one, too
 * (tests/tidy, rule readers). No source above is called from here.
 */
#ifndef TRPI_REMOTE_LANE_STATE_H
#define TRPI_REMOTE_LANE_STATE_H

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

/* Do no frames wait on it? By peer->lock, as the rest but for the atomic ones. */
static inline bool
trpi_lane_is_empty(const trpi_lane_state *lane)
{
    return lane->queue.frames.count == 0;
}
/* The incarnation that frames wait for, 0: none; and since when they wait. */
static inline uint64_t
trpi_lane_uid(const trpi_lane_state *lane)
{
    return lane->queue.uid;
}
static inline uint64_t
trpi_lane_since_ms(const trpi_lane_state *lane)
{
    return lane->queue.since_ms;
}
static inline const trpi_buffer *
trpi_lane_frames(const trpi_lane_state *lane)
{
    return &lane->queue.frames;
}
/* Bytes that wait or are in flight: a hint; after a reservation, by acquire. */
static inline size_t
trpi_lane_bytes(const trpi_lane_state *lane)
{
    return atomic_load_explicit(&lane->queue.bytes, memory_order_relaxed);
}
static inline size_t
trpi_lane_bytes_acquire(const trpi_lane_state *lane)
{
    return atomic_load_explicit(&lane->queue.bytes, memory_order_acquire);
}
/* The connection that it sends on, that it dials, and whose graceful close goes on. NULL: none. */
static inline trpi_conn *
trpi_lane_out(const trpi_lane_state *lane)
{
    return lane->conns.out;
}
static inline trpi_conn *
trpi_lane_dialling(const trpi_lane_state *lane)
{
    return lane->conns.dialling;
}
static inline trpi_conn *
trpi_lane_closing(const trpi_lane_state *lane)
{
    return lane->conns.closing;
}
/* Not before that it is dialled again, after so many dials that failed in a row. */
static inline uint64_t
trpi_lane_dial_next_ms(const trpi_lane_state *lane)
{
    return lane->conns.dial_next_ms;
}
static inline uint32_t
trpi_lane_dial_attempts(const trpi_lane_state *lane)
{
    return lane->conns.dial_attempts;
}
/* Was a fence sent and not answered? */
static inline bool
trpi_lane_has_open_fence(const trpi_lane_state *lane)
{
    return lane->fence.sent > lane->fence.acked;
}
static inline bool
trpi_lane_goodbye_is_acked(const trpi_lane_state *lane)
{
    return lane->goodbye_acked;
}
/* Of our sending; and the newest of the peer. Atomic. */
static inline uint32_t
trpi_lane_epoch(const trpi_lane_state *lane)
{
    return atomic_load_explicit(&lane->epoch, memory_order_relaxed);
}
static inline uint32_t
trpi_lane_recv_epoch(const trpi_lane_state *lane)
{
    return atomic_load_explicit(&lane->recv_epoch, memory_order_relaxed);
}

/* The next epoch of our sending begins; the peer's, by recv_lock. */
static inline uint32_t
trpi_lane_epoch_next(trpi_lane_state *lane)
{
    return atomic_fetch_add_explicit(&lane->epoch, 1, memory_order_relaxed) + 1;
}
static inline void
trpi_lane_recv_epoch_put(trpi_lane_state *lane, uint32_t epoch)
{
    atomic_store_explicit(&lane->recv_epoch, epoch, memory_order_relaxed);
}
/* The peer has answered our GOODBYE on it, or has yet to. */
static inline void
trpi_lane_goodbye_ack(trpi_lane_state *lane, bool acked)
{
    lane->goodbye_acked = acked;
}
/* Free the memory of its queue, when that is empty. */
static inline void
trpi_lane_trim(trpi_lane_state *lane)
{
    if (trpi_lane_is_empty(lane)) {
        trpi_buffer_fini(&lane->queue.frames);
    }
}

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
    uint64_t failed_ms; /* when one last did that counts (lane_dial.c) */
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

#endif
