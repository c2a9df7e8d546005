/* beat_box.h - one heartbeat on its way to the thread for control lanes, without the peer's lock.
 *
 * Why.    The thread that holds the lock may have lost its processor: a heartbeat that waits for it
 *         comes milliseconds late. (decision 93)
 * Shape.  a sender: EMPTY -> FILLING -> FULL, wakes the thread;  the thread: FULL -> EMPTY
 * Must hold.
 *   beat-box-B1  A heartbeat that finds no empty box, no carrier or a peer that the tick does not
 *       look at goes the general way, which makes the tick look.
 *   beat-box-B2  A heartbeat leaves on a connection of the incarnation that it is for, or not.
 * Limits. One heartbeat of TRPI_CONTROL_BODY_MAX bytes.
 * Tests.  tests/unit/remote/control_lane_test.c
 */
#ifndef TRPI_REMOTE_BEAT_BOX_H
#define TRPI_REMOTE_BEAT_BOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/transport.h"
#include "remote/association/control_scan.h"
#include "remote/wire/frame.h"

enum { TRPI_BEAT_EMPTY, TRPI_BEAT_FILLING, TRPI_BEAT_FULL };

typedef struct trpi_beat_box {
    _Atomic(trpi_waker *) waker; /* of the carrier, or of one that was; release */
    atomic_bool open;            /* the tick looks at the peer; relaxed */
    atomic_bool used;            /* one was sent since the last tick; relaxed */
    atomic_uint stage;           /* release by each side; the fields below are its */
    uint32_t count;
    uint64_t uid;
    uint8_t frame[TRPI_CONTROL_ANSWER_BYTES];
} trpi_beat_box;

static inline void
trpi_beat_open(trpi_beat_box *box, bool open)
{
    atomic_store_explicit(&box->open, open, memory_order_relaxed);
}
static inline void
trpi_beat_waker_put(trpi_beat_box *box, trpi_waker *waker)
{
    atomic_store_explicit(&box->waker, waker, memory_order_release);
}
/* Was one sent since this was asked last? */
static inline bool
trpi_beat_used_take(trpi_beat_box *box)
{
    return atomic_load_explicit(&box->used, memory_order_relaxed) &&
           atomic_exchange_explicit(&box->used, false, memory_order_relaxed);
}

/* Put a heartbeat for this incarnation. Return the waker to call; NULL: it goes the general way.
 * Any thread. */
static inline trpi_waker *
trpi_beat_put(trpi_beat_box *box, uint64_t uid, uint16_t channel, const void *bytes, size_t count)
{
    trpi_waker *waker = atomic_load_explicit(&box->waker, memory_order_acquire);
    unsigned stage = TRPI_BEAT_EMPTY;
    if (count > TRPI_CONTROL_BODY_MAX || waker == NULL ||
        !atomic_load_explicit(&box->open, memory_order_relaxed) ||
        !atomic_compare_exchange_strong_explicit(&box->stage, &stage, TRPI_BEAT_FILLING,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return NULL;
    }
    trpi_frame_header_encode(box->frame, (uint32_t)count, TRPI_FRAME_CONTROL, 0, channel);
    memcpy(box->frame + TRPI_FRAME_HEADER_BYTES, bytes, count);
    box->count = (uint32_t)(TRPI_FRAME_HEADER_BYTES + count);
    box->uid = uid;
    atomic_store_explicit(&box->used, true, memory_order_relaxed);
    atomic_store_explicit(&box->stage, TRPI_BEAT_FULL, memory_order_release);
    return waker;
}

/* Take the frame for a connection of this incarnation. Return its bytes; 0: there is none, or no
 * room for it, or it was for another one. The thread. */
static inline size_t
trpi_beat_take(trpi_beat_box *box, uint64_t uid, uint8_t *to, size_t room)
{
    size_t count;
    if (atomic_load_explicit(&box->stage, memory_order_acquire) != TRPI_BEAT_FULL ||
        room < sizeof box->frame) {
        return 0;
    }
    count = box->uid == uid ? box->count : 0; /* beat-box-B2 */
    memcpy(to, box->frame, count);
    atomic_store_explicit(&box->stage, TRPI_BEAT_EMPTY, memory_order_release);
    return count;
}

#endif
