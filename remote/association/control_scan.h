/* control_scan.h - what the thread for control lanes does with each frame: answer it, hand it on
 * undecoded, or drop it. Pure.
 *
 * Why.   A PING and a request of the failure detector are answered by their own bytes. All else
 *        needs state that actors, locks and memory belong to, so it is not even looked into.
 * Must hold.
 *   control-scan-S1  What is handed on is the stream without the frames that were answered or
 *       dropped: whole frames in their order, however the bytes are cut.
 *   control-scan-S2  Nothing is answered that is not of the incarnation that is proved.
 * Tests. tests/unit/remote/control_scan_test.c
 */
#ifndef TRPI_REMOTE_CONTROL_SCAN_H
#define TRPI_REMOTE_CONTROL_SCAN_H

#include "remote/association/options.h"
#include "remote/wire/frame.h"

enum {
    TRPI_CONTROL_BODY_MAX = 16, /* of a frame that may be answered */
    TRPI_CONTROL_ANSWER_BYTES = TRPI_FRAME_HEADER_BYTES + TRPI_CONTROL_BODY_MAX
};

typedef enum trpi_control_verdict {
    TRPI_CONTROL_HAND_ON,
    TRPI_CONTROL_ANSWER,
    TRPI_CONTROL_DROP
} trpi_control_verdict;

/* The state that other threads have published. */
typedef struct trpi_control_view {
    bool proved;          /* the connection is of the incarnation that is talked to */
    bool room;            /* for an answer */
    trpi_beat_reply beat; /* answers requests of the failure detector; NULL: they are handed on */
} trpi_control_view;

/* Place in the stream. Zeroed: at the beginning of a frame. */
typedef struct trpi_control_scan {
    uint8_t head[TRPI_CONTROL_ANSWER_BYTES]; /* of a frame that is not decided yet */
    uint32_t held;                           /* bytes of it */
    uint32_t left;                           /* of the frame that is being handed on */
    bool opens;                              /* a LANE_OPEN has been followed */
} trpi_control_scan;

typedef struct trpi_control_step {
    trpi_control_verdict verdict;
    const uint8_t *bytes; /* to hand on, or the answer; valid until the next call */
    size_t count;
    bool answers_beat; /* the answer is a frame of the channel, else a PONG */
    uint8_t answer[TRPI_CONTROL_ANSWER_BYTES];
} trpi_control_step;

/* Take the next bytes of *bytes off it. false: all were taken, and nothing is to be done. */
bool trpi_control_next(trpi_control_scan *scan, const trpi_control_view *view,
                       const uint8_t **bytes, size_t *count, trpi_control_step *ret_step);
/* Follow a stream that is written: return how many of these bytes, at least one, lead to the next
 * end of a frame, or count. */
size_t trpi_control_follow(trpi_control_scan *scan, const uint8_t *bytes, size_t count);
/* Is the stream between two frames? */
static inline bool
trpi_control_is_between(const trpi_control_scan *scan)
{
    return scan->held == 0 && scan->left == 0;
}

#endif
