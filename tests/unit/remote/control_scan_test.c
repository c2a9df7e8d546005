/* control_scan_test.c - which frames of a control lane are answered at once, and that the rest is
 * handed on as it came, however the bytes are cut; the blocks for that. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "remote/association/control_reserve.h"
#include "remote/association/control_scan.h"
#include "tests/unit/draw.h"

static bool
reply(const uint8_t *bytes, size_t count, uint8_t answer[TRPI_BEAT_BYTES])
{
    if (count < TRPI_BEAT_BYTES || bytes[0] != 1) {
        return false;
    }
    memcpy(answer, bytes, TRPI_BEAT_BYTES);
    answer[0] = 2;
    return true;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void
each_frame_has_its_verdict(void)
{
    enum { CHANNEL = TRPI_CHANNEL_HEARTBEAT, GOSSIP = TRPI_CHANNEL_GOSSIP };
    static const struct {
        trpi_control_view view;
        enum trpi_frame_kind kind;
        uint16_t extra;
        uint8_t first;
        size_t bytes;
        trpi_control_verdict verdict;
    } rows[] = {
        /* proved, room, who answers */
        { { true, true, reply }, TRPI_FRAME_PING, 0, 7, 8, TRPI_CONTROL_ANSWER },
        { { true, true, NULL }, TRPI_FRAME_PING, 0, 7, 8, TRPI_CONTROL_ANSWER },
        { { true, false, reply }, TRPI_FRAME_PING, 0, 7, 8, TRPI_CONTROL_DROP },
        { { false, true, reply }, TRPI_FRAME_PING, 0, 7, 8, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_PING, 0, 7, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_PONG, 0, 7, 8, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 9, TRPI_CONTROL_ANSWER },
        { { true, false, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 9, TRPI_CONTROL_DROP },
        { { false, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, NULL }, TRPI_FRAME_CONTROL, CHANNEL, 1, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 2, 9, TRPI_CONTROL_HAND_ON },
        { { true, false, reply }, TRPI_FRAME_CONTROL, CHANNEL, 2, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 8, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 16, TRPI_CONTROL_ANSWER },
        { { true, true, reply }, TRPI_FRAME_CONTROL, CHANNEL, 1, 17, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_CONTROL, GOSSIP, 1, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_SYSTEM, 0, 1, 9, TRPI_CONTROL_HAND_ON },
        { { true, true, reply }, TRPI_FRAME_GOODBYE, 0, 0, 0, TRPI_CONTROL_HAND_ON },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bytes[64] = { 0 }, body[32] = { rows[i].first, 2, 3, 4, 5, 6, 7, 8, 9 };
        trpi_control_scan scan = { .held = 0 };
        trpi_control_step step;
        const uint8_t *at = bytes;
        size_t count = TRPI_FRAME_HEADER_BYTES + rows[i].bytes;
        trpi_frame_header_encode(bytes, (uint32_t)rows[i].bytes, (uint8_t)rows[i].kind, 0,
                                 rows[i].extra);
        memcpy(bytes + TRPI_FRAME_HEADER_BYTES, body, rows[i].bytes);
        UNIT_REQUIRE(trpi_control_next(&scan, &rows[i].view, &at, &count, &step));
        if (!UNIT_EQUAL(step.verdict, rows[i].verdict)) {
            printf("  row %zu\n", i);
        }
        if (rows[i].verdict == TRPI_CONTROL_ANSWER) {
            trpi_frame answer;
            bool ping = rows[i].kind == TRPI_FRAME_PING;
            trpi_frame_header_decode(step.bytes, &answer);
            UNIT_EQUAL(step.count, TRPI_FRAME_HEADER_BYTES + (ping ? 8 : 9));
            UNIT_EQUAL(step.answers_beat, !ping);
            UNIT_EQUAL(answer.bytes, ping ? 8 : 9);
            UNIT_EQUAL(answer.kind, ping ? TRPI_FRAME_PONG : TRPI_FRAME_CONTROL);
            UNIT_EQUAL(answer.extra, rows[i].extra);
            UNIT_EQUAL(answer.body[0], ping ? 7 : 2);
            UNIT_EQUAL(memcmp(answer.body + 1, body + 1, answer.bytes - 1), 0);
            UNIT_EQUAL(count, 0);
        }
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static unit_draw draw;

/* Append a drawn frame to the stream, and, if it is to be handed on, to the rest. Return whether it
 * is answered. */
static bool
frame_draw(trpi_buffer *stream, trpi_buffer *rest)
{
    static uint8_t body[3000];
    static const enum trpi_frame_kind kinds[] = { TRPI_FRAME_PING, TRPI_FRAME_CONTROL,
                                                  TRPI_FRAME_SYSTEM, TRPI_FRAME_PONG };
    enum trpi_frame_kind kind = kinds[unit_drawn(&draw, 4)];
    uint16_t channel = kind == TRPI_FRAME_CONTROL ? (uint16_t)(1 + unit_drawn(&draw, 2)) : 0;
    size_t bytes = unit_drawn(&draw, 4) == 0 ? unit_drawn(&draw, sizeof body)
                   : kind == TRPI_FRAME_PING ? 8
                                             : 9;
    for (size_t i = 0; i < bytes; i++) {
        body[i] = (uint8_t)unit_drawn(&draw, 3);
    }
    bool answered = (kind == TRPI_FRAME_PING && bytes == 8) ||
                    (channel == TRPI_CHANNEL_HEARTBEAT && bytes >= TRPI_BEAT_BYTES &&
                     bytes <= TRPI_CONTROL_BODY_MAX && body[0] == 1);
    UNIT_EQUAL(trpi_frame_append(stream, kind, 0, channel, body, bytes), TRP_OK);
    if (!answered) {
        UNIT_EQUAL(trpi_frame_append(rest, kind, 0, channel, body, bytes), TRP_OK);
    }
    return answered;
}

/* Feed the stream in drawn parts; what is handed on goes to out. Return the number of answers. */
static uint32_t
stream_feed(const trpi_buffer *stream, trpi_buffer *out)
{
    const trpi_control_view view = { true, true, reply };
    trpi_control_scan scan = { .held = 0 };
    trpi_control_step step;
    uint32_t answers = 0;
    for (size_t at = 0; at < stream->count;) {
        size_t left = stream->count - at;
        size_t part = 1 + unit_drawn(&draw, unit_drawn(&draw, 2) == 0 ? 12 : 2000);
        size_t count = part < left ? part : left;
        const uint8_t *bytes = stream->data + at;
        at += count;
        while (trpi_control_next(&scan, &view, &bytes, &count, &step)) {
            answers += step.verdict == TRPI_CONTROL_ANSWER;
            if (step.verdict == TRPI_CONTROL_HAND_ON) {
                UNIT_EQUAL(trpi_buffer_append(out, step.bytes, step.count, TRPI_BUFFER_NO_LIMIT),
                           TRP_OK);
            }
        }
        UNIT_EQUAL(count, 0);
    }
    UNIT_TRUE(trpi_control_is_between(&scan));
    return answers;
}

static void
the_rest_is_handed_on_as_it_came(void)
{
    draw = unit_draw_begin("tests/unit/remote/remote_tests", "control_scan_test");
    for (int round = 0; round < 200; round++) {
        trpi_buffer stream = { 0 }, rest = { 0 }, out = { 0 };
        uint32_t answered = 0;
        for (uint32_t left = unit_drawn(&draw, 30); left > 0; left--) {
            answered += frame_draw(&stream, &rest);
        }
        UNIT_EQUAL(stream_feed(&stream, &out), answered);
        UNIT_EQUAL(out.count, rest.count);
        UNIT_TRUE(out.count == rest.count &&
                  (out.count == 0 || memcmp(out.data, rest.data, out.count) == 0));
        trpi_buffer_fini(&stream);
        trpi_buffer_fini(&rest);
        trpi_buffer_fini(&out);
    }
}

/* The ends of frames in what is written, however it is cut. */
static void
ends_of_frames_are_found(void)
{
    draw = unit_draw_begin("tests/unit/remote/remote_tests", "control_scan_test");
    for (int round = 0; round < 200; round++) {
        trpi_buffer stream = { 0 }, rest = { 0 };
        trpi_control_scan out = { .held = 0 };
        size_t ends[31] = { 0 };
        uint32_t frames = 1 + unit_drawn(&draw, 30), found = 0;
        for (uint32_t i = 0; i < frames; i++) {
            (void)frame_draw(&stream, &rest);
            ends[i] = stream.count;
        }
        for (size_t at = 0; at < stream.count;) {
            size_t left = stream.count - at, part = 1 + unit_drawn(&draw, 2000);
            part = part < left ? part : left;
            size_t some = trpi_control_follow(&out, stream.data + at, part);
            UNIT_TRUE(some >= 1 && some <= part);
            at += some;
            UNIT_TRUE(trpi_control_is_between(&out) == (at == ends[found]));
            UNIT_TRUE(trpi_control_is_between(&out) || some == part);
            found += at == ends[found];
        }
        UNIT_EQUAL(found, frames);
        trpi_buffer_fini(&stream);
        trpi_buffer_fini(&rest);
    }
}

static void
the_opening_of_the_lane_is_seen_in_what_is_written(void)
{
    const uint8_t epoch[4] = { 1 };
    trpi_buffer stream = { 0 };
    trpi_control_scan out = { .held = 0 };
    UNIT_EQUAL(trpi_frame_append(&stream, TRPI_FRAME_PONG, 0, 0, "12345678", 8), TRP_OK);
    UNIT_EQUAL(trpi_control_follow(&out, stream.data, stream.count), stream.count);
    UNIT_FALSE(out.opens);
    trpi_buffer_clear(&stream);
    UNIT_EQUAL(trpi_frame_append(&stream, TRPI_FRAME_LANE_OPEN, 0, 0, epoch, sizeof epoch), TRP_OK);
    for (size_t i = 0; i < stream.count; i++) {
        UNIT_EQUAL(trpi_control_follow(&out, stream.data + i, 1), 1);
    }
    UNIT_TRUE(out.opens && trpi_control_is_between(&out));
    trpi_buffer_fini(&stream);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Each lane reads while it may, a share at a time, and nobody gives back. */
static void
a_lane_that_may_read_finds_its_share(void)
{
    enum { LANES = 300 };
    static trpi_control_block *blocks[LANES][TRPI_CONTROL_COMMON + TRPI_CONTROL_SHARE];
    static uint32_t waiting[LANES];
    draw = unit_draw_begin("tests/unit/remote/remote_tests", "control_scan_test");
    trpi_control_reserve *reserve = trpi_control_reserve_new();
    UNIT_REQUIRE(reserve != NULL);
    for (int i = 0; i < LANES; i++) {
        UNIT_REQUIRE(trpi_control_reserve_join(reserve) == TRP_OK);
        waiting[i] = 0;
    }
    for (uint32_t round = 0; round < 10 * LANES; round++) { /* each lane once at least */
        uint32_t lane = round < 9 * LANES ? unit_drawn(&draw, LANES) : round - 9 * LANES;
        if (!trpi_control_may_read(reserve, waiting[lane])) {
            continue;
        }
        for (int i = 0; i < TRPI_CONTROL_SHARE; i++) { /* control-reserve-R2 */
            trpi_control_block *block = trpi_control_block_take(reserve);
            UNIT_REQUIRE(block != NULL && block->count == 0);
            blocks[lane][waiting[lane]++] = block;
        }
    }
    for (int i = 0; i < LANES; i++) {
        UNIT_TRUE(waiting[i] >= TRPI_CONTROL_SHARE);
        UNIT_FALSE(trpi_control_may_read(reserve, waiting[i]));
    }
    for (int i = 0; i < LANES; i++) {
        while (waiting[i] > 0) {
            trpi_control_block_give(reserve, blocks[i][--waiting[i]]);
        }
        trpi_control_reserve_leave(reserve);
    }
    UNIT_TRUE(trpi_control_may_read(reserve, 1));
    trpi_control_reserve_free(reserve);
}

static void
without_memory_a_lane_does_not_join(void)
{
    trpi_alloc_fail_here_after(0);
    UNIT_TRUE(trpi_control_reserve_new() == NULL);
    trpi_alloc_fail_here_after(-1);
    trpi_control_reserve *reserve = trpi_control_reserve_new();
    UNIT_REQUIRE(reserve != NULL);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trpi_control_reserve_join(reserve), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trpi_control_reserve_join(reserve), TRP_OK);
    trpi_control_reserve_leave(reserve);
    trpi_control_reserve_free(reserve);
}

UNIT_BEGIN("control_scan")
UNIT(each_frame_has_its_verdict)
UNIT(the_rest_is_handed_on_as_it_came)
UNIT(ends_of_frames_are_found)
UNIT(the_opening_of_the_lane_is_seen_in_what_is_written)
UNIT(a_lane_that_may_read_finds_its_share)
UNIT(without_memory_a_lane_does_not_join)
UNIT_END
