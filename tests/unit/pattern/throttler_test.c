/* throttler_test.c - vouchers by a clock that the test holds; targets, rates, limits, ends. */
#include <troupe/testkit.h>
#include <troupe/throttler.h>

#include "tests/unit/actor/stage.h"

static trp_testkit *kit;
static trp_system *stage;
static trp_probe *target;
static trp_ref teller; /* the sender that the target is to see */

static trp_ref
open_throttler(uint32_t messages, uint32_t interval_ms, uint32_t msgs_max, bool with_target)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_throttler_options given = TRP_THROTTLER_OPTIONS_INIT;
    trp_ref throttler = TRP_REF_NONE;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    stage = trp_testkit_system(kit);
    target = trp_testkit_probe(kit);
    teller = (trp_ref)TRP_REF_NONE;
    given.name = "throttler";
    given.messages = messages;
    given.interval_ms = interval_ms;
    given.msgs_max = msgs_max;
    given.target = with_target ? trp_probe_ref(target) : (trp_ref)TRP_REF_NONE;
    UNIT_REQUIRE(trp_system_throttler_spawn(stage, &given, &throttler) == TRP_OK);
    return throttler;
}

static void
close_throttler(void)
{
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
tell_numbers(trp_ref throttler, int64_t first, int64_t last)
{
    for (int64_t n = first; n <= last; n++) {
        trp_system_tell_as(stage, throttler, teller, &trp_i64_type, &n, sizeof n);
    }
}

/* All that has arrived and no more: by now everything is at rest. */
static void
expect_numbers(int64_t first, int64_t last)
{
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    for (int64_t n = first; n <= last; n++) {
        UNIT_TRUE(trp_probe_expect(target, TRP_TEST_TIME, &trp_i64_type, &n, sizeof n) != NULL);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(target), teller));
    }
    UNIT_TRUE(trp_probe_expect_none(target, 0) != 0);
}

static void
clock_advance(uint32_t ms)
{
    UNIT_EQUAL(trp_testkit_advance(kit, ms), TRP_OK);
}

/* CONTRIB-37, CONTRIB-39, HOW-01: three a second: three at once, the others a second later, each
 * with the sender it came with */
static void
three_pass_at_once_and_the_others_wait(void)
{
    trp_ref throttler = open_throttler(3, 1000, 0, true);
    trp_probe *asker;

    UNIT_REQUIRE(trp_probe_open(kit, &asker) == TRP_OK);
    teller = trp_probe_ref(asker);
    tell_numbers(throttler, 1, 8);
    expect_numbers(1, 3);
    clock_advance(999);
    expect_numbers(4, 3);
    clock_advance(1);
    expect_numbers(4, 6);
    clock_advance(1000);
    expect_numbers(7, 8);
    tell_numbers(throttler, 9, 10); /* one voucher of this interval is left */
    expect_numbers(9, 9);
    clock_advance(1000);
    expect_numbers(10, 10);
    close_throttler();
}

/* CONTRIB-38, CONTRIB-39: vouchers are not saved up; around a ring up to twice as many pass */
static void
vouchers_that_are_not_used_are_lost(void)
{
    trp_ref throttler = open_throttler(2, 100, 0, true);

    clock_advance(1000);
    tell_numbers(throttler, 1, 3);
    expect_numbers(1, 2);
    clock_advance(100);
    expect_numbers(3, 3);
    clock_advance(99);
    tell_numbers(throttler, 4, 5);
    expect_numbers(4, 4); /* two in this interval */
    clock_advance(1);
    tell_numbers(throttler, 6, 6);
    expect_numbers(5, 6); /* three within 2 ms */
    close_throttler();
}

/* CONTRIB-39: without a target it keeps, and goes on where it stopped; the timer rests */
static void
without_a_target_it_keeps(void)
{
    trp_ref throttler = open_throttler(2, 100, 0, false);
    trp_throttler_set_target to = { TRP_REF_NONE }, nobody = { TRP_REF_NONE };

    tell_numbers(throttler, 1, 5);
    clock_advance(1000);
    expect_numbers(1, 0);
    to.target = trp_probe_ref(target);
    trp_system_tell(stage, throttler, &trp_throttler_set_target_type, &to, sizeof to);
    expect_numbers(1, 2);
    trp_system_tell(stage, throttler, &trp_throttler_set_target_type, &nobody, sizeof nobody);
    clock_advance(1000);
    expect_numbers(3, 2);
    trp_system_tell(stage, throttler, &trp_throttler_set_target_type, &to, sizeof to);
    expect_numbers(3, 4);
    clock_advance(100);
    expect_numbers(5, 5);
    close_throttler();
}

/* CONTRIB-39 HOW-01: a rate that is set begins an interval; one that cannot be changes nothing */
static void
the_rate_can_be_set(void)
{
    trp_ref throttler = open_throttler(1, 1000, 0, true);
    trp_throttler_set_rate rates[] = {
        { 0, 1000 }, { 2, 0 }, { 2, TRP_THROTTLER_INTERVAL_MS_MAX + 1 }, { 3, 50 }
    };

    tell_numbers(throttler, 1, 8);
    expect_numbers(1, 1);
    for (int i = 0; i < 3; i++) {
        trp_system_tell(stage, throttler, &trp_throttler_set_rate_type, &rates[i], sizeof rates[i]);
        expect_numbers(2, 1);
    }
    trp_system_tell(stage, throttler, &trp_throttler_set_rate_type, &rates[3], sizeof rates[3]);
    expect_numbers(2, 4);
    clock_advance(49);
    expect_numbers(5, 4);
    clock_advance(1);
    expect_numbers(5, 7);
    clock_advance(50);
    expect_numbers(8, 8);
    close_throttler();
}

/* CONTRIB-39: what it may keep, and one more; what it keeps at its end */
static void
what_it_cannot_keep_is_a_dead_letter(void)
{
    trp_ref throttler = open_throttler(1, 1000, 3, true);

    tell_numbers(throttler, 1, 4);
    expect_numbers(1, 1);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_MAILBOX_FULL), 0);
    tell_numbers(throttler, 5, 5);
    expect_numbers(2, 1);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_MAILBOX_FULL), 1);
    UNIT_EQUAL(trp_system_graceful_stop(stage, throttler, 60000), TRP_OK);
    UNIT_WAIT(stage_dead(stage, TRP_DEAD_STOPPED) == 3, 10000);
    close_throttler();
}

/* CONTRIB-37 */
static void
options_that_cannot_be_are_refused(void)
{
    trp_throttler_options options = TRP_THROTTLER_OPTIONS_INIT;
    trp_ref ref;

    stage = stage_open();
    UNIT_EQUAL(trp_system_throttler_spawn(stage, NULL, &ref), TRP_EINVAL);
    options.interval_ms = TRP_THROTTLER_INTERVAL_MS_MAX;
    UNIT_EQUAL(trp_system_throttler_spawn(stage, &options, &ref), TRP_EINVAL);
    options.messages = 1;
    UNIT_EQUAL(trp_system_throttler_spawn(stage, &options, &ref), TRP_OK);
    options.interval_ms++;
    UNIT_EQUAL(trp_system_throttler_spawn(stage, &options, &ref), TRP_EINVAL);
    options.interval_ms = 0;
    UNIT_EQUAL(trp_system_throttler_spawn(stage, &options, &ref), TRP_EINVAL);
    options.interval_ms = 1;
    options.size--;
    UNIT_EQUAL(trp_system_throttler_spawn(stage, &options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_throttler_spawn(NULL, &options, &ref), TRP_EINVAL);
    stage_close(stage);
}

UNIT_BEGIN("throttler")
UNIT(three_pass_at_once_and_the_others_wait)
UNIT(vouchers_that_are_not_used_are_lost)
UNIT(without_a_target_it_keeps)
UNIT(the_rate_can_be_set)
UNIT(what_it_cannot_keep_is_a_dead_letter)
UNIT(options_that_cannot_be_are_refused)
UNIT_END
