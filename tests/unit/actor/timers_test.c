/* timers_test.c - named timers, cancelled ticks in the queue, the receive timeout. */
#include "tests/unit/actor/stage.h"

#include <troupe/scheduler.h>

static const trp_type unregistered = { .name = "timers.unknown", .flags = TRP_TYPE_VARIABLE };

typedef struct clock_state {
    int ticks;
    uint64_t first_ms, last_ms;
} clock_state;

static const char *
text_of(const trp_msg *msg, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return buffer;
}

static void
busy_until_go(void)
{
    stage_note("busy");
    while (!stage_has("go")) {
        unit_pause();
    }
}

static trp_err
clock_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    clock_state *s = state;
    const trp_type *type = &trp_string_type;
    char text[64];

    if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        stage_note("idle");
        if (++s->ticks == 3) {
            trp_receive_timeout_set(ctx, 0);
            stage_note("off");
        }
    } else if (stage_said(msg, "once")) {
        s->first_ms = trp_now_ms(ctx);
        UNIT_EQUAL(trp_timer_once(ctx, 1, 30, type, "ring", 4), TRP_OK);
    } else if (stage_said(msg, "ring")) {
        stage_note("ring%s", trp_now_ms(ctx) - s->first_ms >= 29 ? "" : "(early)");
    } else if (stage_said(msg, "repeat")) {
        UNIT_EQUAL(trp_timer_repeat(ctx, 2, 5, 5, type, "tick", 4), TRP_OK);
    } else if (stage_said(msg, "tick")) {
        if (++s->ticks == 5) {
            trp_timer_cancel(ctx, 2);
            stage_note("five");
        }
    } else if (stage_said(msg, "number")) { /* of a fixed-size type: no byte count */
        const int64_t number = 42;

        UNIT_EQUAL(trp_timer_once(ctx, 8, 1, &trp_i64_type, &number, 0), TRP_OK);
        UNIT_EQUAL(trp_timer_once(ctx, 9, 1, &trp_i64_type, NULL, 0), TRP_EINVAL);
    } else if (trp_msg_is(msg, &trp_i64_type)) {
        stage_note("%zu:%lld", trp_msg_bytes(msg),
                   trp_msg_bytes(msg) == 8 ? (long long)*(const int64_t *)trp_msg_payload(msg) : 0);
    } else if (stage_said(msg, "replace")) {
        UNIT_EQUAL(trp_timer_once(ctx, 3, 10, type, "old", 3), TRP_OK);
        UNIT_EQUAL(trp_timer_once(ctx, 3, 20, type, "new", 3), TRP_OK);
    } else if (stage_said(msg, "old") || stage_said(msg, "new")) {
        stage_note("%s", text_of(msg, text, sizeof text));
    } else if (stage_said(msg, "queue and cancel")) {
        UNIT_EQUAL(trp_timer_once(ctx, 4, 1, type, "old", 3), TRP_OK);
        busy_until_go(); /* the tick is queued now */
        trp_timer_cancel(ctx, 4);
        UNIT_EQUAL(trp_timer_once(ctx, 5, 1, type, "new", 3), TRP_OK);
    } else if (stage_said(msg, "timer then fail")) {
        UNIT_EQUAL(trp_timer_once(ctx, 6, 20, type, "old", 3), TRP_OK);
        UNIT_EQUAL(trp_timer_repeat(ctx, 7, 20, 20, type, "old", 3), TRP_OK);
        trp_receive_timeout_set(ctx, 20);
        return TRP_EIO;
    } else if (stage_said(msg, "timeout")) {
        trp_receive_timeout_set(ctx, 20);
    } else if (stage_said(msg, "off")) {
        trp_receive_timeout_set(ctx, 0);
    } else if (stage_said(msg, "timeout and off")) {
        trp_receive_timeout_set(ctx, 1);
        busy_until_go();
        trp_receive_timeout_set(ctx, 0);
    } else if (stage_said(msg, "bad")) {
        UNIT_EQUAL(trp_timer_repeat(ctx, 2, 5, 0, type, "tick", 4), TRP_EINVAL);
        UNIT_EQUAL(trp_timer_once(ctx, 2, 5, NULL, "tick", 4), TRP_EINVAL);
        UNIT_EQUAL(trp_timer_once(ctx, 2, 5, &unregistered, "tick", 4), TRP_ENOTYPE);
        trp_timer_cancel(ctx, 99);
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour clock_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "clock",
                                               .version = 1,
                                               .state_bytes = sizeof(clock_state),
                                               .receive = clock_receive };
static char answer[64];

static void
pause_ms(uint64_t ms)
{
    uint64_t until = unit_now_ms() + ms;

    while (unit_now_ms() < until) {
        unit_pause();
    }
}

/* MSG-20, SCH-01, UJ-28 */
static void
a_timer_rings_once_and_not_early(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "once");
    STAGE_EXPECT("ring");
    pause_ms(50);
    STAGE_EXPECT("ring");
    stage_close(system);
}

/* The size of a fixed-size type counts, not the caller's, as for a tell */
static void
a_fixed_size_type_needs_no_byte_count(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");
    const int64_t number = 43;
    trp_ref none = TRP_REF_NONE;

    stage_tell(system, c, "number");
    STAGE_EXPECT("8:42");
    UNIT_EQUAL(trp_schedule_once(system, 1, c, none, &trp_i64_type, &number, 0, NULL), TRP_OK);
    STAGE_EXPECT("8:42 8:43");
    UNIT_EQUAL(trp_schedule_once(system, 1, c, none, &trp_i64_type, NULL, 0, NULL), TRP_EINVAL);
    stage_close(system);
}

static void
a_repeating_timer_ticks_until_it_is_cancelled(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "repeat");
    STAGE_EXPECT("five");
    pause_ms(30);
    STAGE_EXPECT("five");
    stage_close(system);
}

static void
starting_a_key_again_replaces_the_timer(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "bad");
    stage_tell(system, c, "replace");
    STAGE_EXPECT("new");
    pause_ms(20);
    STAGE_EXPECT("new");
    stage_close(system);
}

/* SCH-13: guaranteed: an already queued firing is discarded */
static void
cancelling_suppresses_a_tick_that_is_queued(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "queue and cancel");
    UNIT_WAIT(stage_has("busy"), 5000);
    pause_ms(20);
    stage_note("go");
    STAGE_EXPECT("busy go new");
    stage_close(system);
}

/* HOW-10 */
static void
timers_end_with_the_instance(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "timer then fail");
    UNIT_EQUAL(stage_ask(system, c, "ping", answer, sizeof answer), TRP_OK);
    pause_ms(60);
    STAGE_EXPECT("");
    stage_close(system);
}

/* MSG-16 */
static void
the_receive_timeout_repeats_until_it_is_switched_off(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "timeout");
    STAGE_EXPECT("idle idle idle off");
    pause_ms(60);
    STAGE_EXPECT("idle idle idle off");
    stage_close(system);
}

/* MSG-16 */
static void
messages_keep_the_receive_timeout_away(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");
    uint64_t until, before, now;
    size_t idle = 0;

    before = unit_now_ms();
    stage_tell(system, c, "timeout");
    UNIT_EQUAL(stage_ask(system, c, "ping", answer, sizeof answer), TRP_OK);
    until = unit_now_ms() + 100;
    do {
        uint64_t asked = unit_now_ms();

        UNIT_EQUAL(stage_ask(system, c, "ping", answer, sizeof answer), TRP_OK);
        now = unit_now_ms();
        /* so often the test may have been too slow for the timeout */
        idle += (now - before + 1) / 20;
        before = asked;
    } while (now < until);
    stage_tell(system, c, "off");
    UNIT_EQUAL(stage_ask(system, c, "ping", answer, sizeof answer), TRP_OK);
    idle += (unit_now_ms() - before + 1) / 20;
    UNIT_TRUE(stage_count("idle") <= idle);
    stage_close(system);
}

static void
switching_off_suppresses_a_timeout_that_is_queued(void)
{
    trp_system *system = stage_open();
    trp_ref c = stage_spawn(system, &clock_behaviour, "c");

    stage_tell(system, c, "timeout and off");
    UNIT_WAIT(stage_has("busy"), 5000);
    pause_ms(20);
    stage_note("go");
    UNIT_EQUAL(stage_ask(system, c, "ping", answer, sizeof answer), TRP_OK);
    pause_ms(20);
    STAGE_EXPECT("busy go");
    stage_close(system);
}

UNIT_BEGIN("timers")
UNIT(a_timer_rings_once_and_not_early)
UNIT(a_fixed_size_type_needs_no_byte_count)
UNIT(a_repeating_timer_ticks_until_it_is_cancelled)
UNIT(starting_a_key_again_replaces_the_timer)
UNIT(cancelling_suppresses_a_tick_that_is_queued)
UNIT(timers_end_with_the_instance)
UNIT(the_receive_timeout_repeats_until_it_is_switched_off)
UNIT(messages_keep_the_receive_timeout_away)
UNIT(switching_off_suppresses_a_timeout_that_is_queued)
UNIT_END
