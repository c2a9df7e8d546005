/* control_scan.c - frames of a control lane, cut out of its bytes. See control_scan.h.
 *
 * Shape.  between two frames -> [head] -> may it be answered? -> all of it is held -> verdict
 *                                     '-> no: header and body are handed on as they come
 * Tests.  tests/unit/remote/control_scan_test.c
 */
#include "remote/association/control_scan.h"

#include <string.h>

/* Does its header allow an answer? */
static bool
may_be_answered(const trpi_frame *frame)
{
    return (frame->kind == TRPI_FRAME_PING && frame->bytes == 8) ||
           (frame->kind == TRPI_FRAME_CONTROL && frame->extra == TRPI_CHANNEL_HEARTBEAT &&
            frame->bytes <= TRPI_CONTROL_BODY_MAX);
}

/* The verdict on a whole frame that may be answered; fills in the answer. */
static trpi_control_verdict
frame_judge(const trpi_control_view *view, const trpi_frame *frame, trpi_control_step *step)
{
    uint8_t *body = step->answer + TRPI_FRAME_HEADER_BYTES;
    uint8_t kind = TRPI_FRAME_PONG;
    size_t bytes = frame->bytes;
    if (!view->proved) { /* control-scan-S2 */
        return TRPI_CONTROL_HAND_ON;
    }
    if (frame->kind == TRPI_FRAME_PING) {
        memcpy(body, frame->body, bytes);
    } else if (view->beat != NULL && view->beat(frame->body, frame->bytes, body)) {
        kind = TRPI_FRAME_CONTROL;
        bytes = TRPI_BEAT_BYTES;
    } else {
        return TRPI_CONTROL_HAND_ON;
    }
    if (!view->room) { /* a peer that asks and does not read: it asks again */
        return TRPI_CONTROL_DROP;
    }
    trpi_frame_header_encode(step->answer, (uint32_t)bytes, kind, 0, frame->extra);
    step->bytes = step->answer;
    step->answers_beat = kind == TRPI_FRAME_CONTROL;
    step->count = TRPI_FRAME_HEADER_BYTES + bytes;
    return TRPI_CONTROL_ANSWER;
}

static size_t
least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Hold more bytes of a frame, until there are `goal`. true: there are. */
static bool
head_fill(trpi_control_scan *scan, size_t goal, const uint8_t **bytes, size_t *count)
{
    size_t more = scan->held < goal ? least_of(goal - scan->held, *count) : 0;
    memcpy(scan->head + scan->held, *bytes, more);
    scan->held += (uint32_t)more;
    *bytes += more;
    *count -= more;
    return scan->held >= goal;
}

static void
hand_on(trpi_control_step *step, const uint8_t *bytes, size_t count)
{
    step->verdict = TRPI_CONTROL_HAND_ON;
    step->bytes = bytes;
    step->count = count;
}

bool
trpi_control_next(trpi_control_scan *scan, const trpi_control_view *view, const uint8_t **bytes,
                  size_t *count, trpi_control_step *ret_step)
{
    trpi_frame frame;
    if (scan->left == 0) {
        if (!head_fill(scan, TRPI_FRAME_HEADER_BYTES, bytes, count)) {
            return false;
        }
        trpi_frame_header_decode(scan->head, &frame);
        if (!may_be_answered(&frame)) {
            hand_on(ret_step, scan->head, TRPI_FRAME_HEADER_BYTES);
            scan->left = frame.bytes;
            scan->held = 0;
            return true;
        }
        if (!head_fill(scan, TRPI_FRAME_HEADER_BYTES + frame.bytes, bytes, count)) {
            return false;
        }
        scan->held = 0;
        ret_step->verdict = frame_judge(view, &frame, ret_step);
        if (ret_step->verdict == TRPI_CONTROL_HAND_ON) {
            hand_on(ret_step, scan->head, TRPI_FRAME_HEADER_BYTES + frame.bytes);
        }
        return true;
    }
    if (*count == 0) {
        return false;
    }
    size_t some = least_of(scan->left, *count);
    hand_on(ret_step, *bytes, some);
    *bytes += some;
    *count -= some;
    scan->left -= (uint32_t)some;
    return true;
}

size_t
trpi_control_follow(trpi_control_scan *scan, const uint8_t *bytes, size_t count)
{
    size_t given = count;
    if (scan->left == 0 && head_fill(scan, TRPI_FRAME_HEADER_BYTES, &bytes, &count)) {
        trpi_frame frame;
        trpi_frame_header_decode(scan->head, &frame);
        scan->left = frame.bytes;
        scan->held = 0;
        scan->opens = scan->opens || frame.kind == TRPI_FRAME_LANE_OPEN;
    }
    size_t some = least_of(scan->left, count);
    scan->left -= (uint32_t)some;
    return given - count + some;
}
