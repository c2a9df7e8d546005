/* backoff_test.c - a supervisor that starts its child again after a pause, which grows. */
#include <stdio.h>

#include <troupe/backoff.h>
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

static int starts;       /* of the child */
static bool start_fails; /* it fails as soon as it is told anything */
static trp_testkit *kit;
static trp_probe *probe;

static trp_err
child_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    UNIT_EQUAL(*(const int64_t *)trp_msg_payload(args), 7);
    starts++;
    return start_fails ? TRP_EFAILED : TRP_OK;
}

static trp_err
child_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const int64_t *order = trp_msg_as(msg, &trp_i64_type);

    (void)state;
    if (order == NULL) {
        return TRP_EUNHANDLED;
    }
    if (*order == 0) {
        return TRP_EFAILED;
    }
    if (*order == 1) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    trp_reply(ctx, &trp_i64_type, order, 0);
    return TRP_OK;
}

static trp_ref
supervisor_open(const trp_backoff_options *options)
{
    static trp_behaviour child = TRP_BEHAVIOUR_INIT("child", int, child_receive);
    trp_testkit_options kit_options = TRP_TESTKIT_OPTIONS_INIT;
    trp_spawn_options child_options = TRP_SPAWN_OPTIONS_INIT;
    static const int64_t seven = 7;
    trp_ref ref = TRP_REF_NONE;

    child.pre_start = child_start;
    child_options.name = "child";
    child_options.args_type = &trp_i64_type;
    child_options.args = &seven;
    kit_options.clock = TRP_CLOCK_MANUAL;
    starts = 0;
    start_fails = false;
    UNIT_REQUIRE(trp_testkit_open(&kit_options, &kit) == TRP_OK);
    probe = trp_testkit_probe(kit);
    UNIT_EQUAL(
        trp_system_backoff_spawn(trp_testkit_system(kit), &child, &child_options, options, &ref),
        TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_EQUAL(starts, 1);
    return ref;
}

static void
tell(trp_ref ref, int64_t order)
{
    trp_probe_tell(probe, ref, &trp_i64_type, &order, 0);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
}

static void
advance(uint32_t ms)
{
    UNIT_EQUAL(trp_testkit_advance(kit, ms), TRP_OK);
}

static trp_backoff_options
steady(void)
{
    trp_backoff_options options = TRP_BACKOFF_OPTIONS_INIT;

    options.name = "b";
    options.min_ms = 100;
    options.max_ms = 400;
    options.jitter_percent = TRP_OFF;
    return options;
}

static void
messages_pass_through_to_the_child(void)
{
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    tell(ref, 5);
    UNIT_TRUE(trp_probe_expect(probe, 1000, &trp_i64_type, &(int64_t){ 5 }, 0) != NULL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
each_pause_is_twice_the_one_before_up_to_the_longest(void)
{
    static const uint32_t pauses[] = { 100, 200, 400, 400 };
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        tell(ref, 0);
        advance(pauses[i] - 1);
        UNIT_EQUAL(starts, (int)i + 1);
        advance(1);
        UNIT_EQUAL(starts, (int)i + 2);
    }
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
a_child_that_fails_in_its_start_waits_too(void)
{
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    start_fails = true;
    tell(ref, 0);
    advance(100);
    UNIT_EQUAL(starts, 2);
    advance(199);
    UNIT_EQUAL(starts, 2);
    start_fails = false;
    advance(1);
    UNIT_EQUAL(starts, 3);
    tell(ref, 5);
    UNIT_TRUE(trp_probe_expect(probe, 1000, &trp_i64_type, &(int64_t){ 5 }, 0) != NULL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
a_child_that_lives_long_enough_begins_with_the_first_pause(void)
{
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    tell(ref, 0);
    advance(100);
    tell(ref, 0);
    advance(200);
    UNIT_EQUAL(starts, 3);
    advance(400); /* reset_ms */
    tell(ref, 0);
    advance(99);
    UNIT_EQUAL(starts, 3);
    advance(1);
    UNIT_EQUAL(starts, 4);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
senders_are_told_while_the_child_is_away(void)
{
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    tell(ref, 0);
    tell(ref, 5);
    const trp_msg *told = trp_probe_expect_type(probe, 1000, &trp_status_failure_type);
    UNIT_TRUE(told != NULL &&
              ((const trp_status_failure *)trp_msg_payload(told))->err == TRP_EAGAIN);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
the_supervisor_stops_with_a_child_that_stops_and_after_too_many_starts(void)
{
    trp_backoff_options options = steady();
    trp_ref ref = supervisor_open(&options);

    UNIT_EQUAL(trp_probe_watch(probe, ref), TRP_OK);
    tell(ref, 1);
    UNIT_TRUE(trp_probe_expect_type(probe, 1000, &trp_terminated_type) != NULL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    options.on_stop = 1;
    options.retries_max = 2;
    ref = supervisor_open(&options);
    UNIT_EQUAL(trp_probe_watch(probe, ref), TRP_OK);
    tell(ref, 1);
    advance(100);
    tell(ref, 0);
    advance(200);
    UNIT_EQUAL(starts, 3); /* the limit */
    tell(ref, 1);
    UNIT_TRUE(trp_probe_expect_type(probe, 1000, &trp_terminated_type) != NULL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
jitter_stays_within_its_part_of_the_pause(void)
{
    trp_backoff_options options = steady();
    options.jitter_percent = 50;
    trp_ref ref = supervisor_open(&options);

    tell(ref, 0);
    advance(99);
    UNIT_EQUAL(starts, 1);
    advance(51);
    UNIT_EQUAL(starts, 2);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
wrong_options_are_refused(void)
{
    static trp_behaviour child = TRP_BEHAVIOUR_INIT("child", int, child_receive);
    trp_backoff_options options = steady();
    trp_spawn_options elsewhere = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = supervisor_open(&options);
    trp_system *system = trp_testkit_system(kit);

    options.name = NULL;
    options.jitter_percent = 101;
    UNIT_EQUAL(trp_system_backoff_spawn(system, &child, NULL, &options, &ref), TRP_EINVAL);
    options.jitter_percent = 100;
    options.min_ms = 401;
    UNIT_EQUAL(trp_system_backoff_spawn(system, &child, NULL, &options, &ref), TRP_EINVAL);
    elsewhere.node = "troupe.tcp://a@b:1";
    UNIT_EQUAL(trp_system_backoff_spawn(system, &child, &elsewhere, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_backoff_spawn(system, NULL, NULL, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_backoff_spawn(NULL, &child, NULL, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

UNIT_BEGIN("backoff")
UNIT(messages_pass_through_to_the_child)
UNIT(each_pause_is_twice_the_one_before_up_to_the_longest)
UNIT(a_child_that_fails_in_its_start_waits_too)
UNIT(a_child_that_lives_long_enough_begins_with_the_first_pause)
UNIT(senders_are_told_while_the_child_is_away)
UNIT(the_supervisor_stops_with_a_child_that_stops_and_after_too_many_starts)
UNIT(jitter_stays_within_its_part_of_the_pause)
UNIT(wrong_options_are_refused)
UNIT_END
