/* testkit_test.c - the test kit, tested from the outside: with each of its three clocks. */
#include <stdlib.h>

#include <troupe/log.h>
#include <troupe/testkit.h>

#include "pattern/testkit.h"
#include "tests/unit/pattern/written.h"
#include "tests/unit/unit.h"

/* ---- an actor to test, and a kit whose failures are written down ----------------------------- */

#define SPEAK_SAY(F, S) F(S, i32, number) F(S, u32, times)
#define SPEAK_LATER(F, S) F(S, u32, after_ms)
#define SPEAK_MESSAGES(M, P)                                                                       \
    M(P, say, SPEAK_SAY)                                                                           \
    M(P, later, SPEAK_LATER)                                                                       \
    M(P, rang, TRP_NO_FIELDS) M(P, crash, TRP_NO_FIELDS) M(P, relay, SPEAK_SAY)
TRP_PROTOCOL(speak, SPEAK_MESSAGES)

typedef struct speaker {
    trp_ref told_by;
    uint32_t handled;
} speaker;

static trp_err
speaker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    speaker *self = state;
    const speak_say *say = trp_msg_payload(msg);

    self->handled++;
    switch (trp_msg_tag(msg)) {
    case speak_say_tag:
        for (uint32_t i = 0; i < say->times; i++) {
            speak_say answer = { say->number + (int32_t)i, 0 };

            trp_reply(ctx, &speak_say_type, &answer, 0);
        }
        return TRP_OK;
    case speak_later_tag:
        self->told_by = trp_sender(ctx);
        return trp_timer_once(ctx, 1, ((const speak_later *)trp_msg_payload(msg))->after_ms,
                              &speak_rang_type, &(speak_rang){ 0 }, 0);
    case speak_rang_tag:
        trp_tell(ctx, self->told_by, &speak_rang_type, &(speak_rang){ 0 }, 0);
        return TRP_OK;
    case speak_crash_tag:
        trp_fail(ctx, 7, "told to");
    default:
        return TRP_OK;
    }
}

static const trp_protocol *const speak_accepts[] = { &speak_protocol, NULL };
static const trp_behaviour speaker_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "speaker",
                                                 .version = 1,
                                                 .state_bytes = sizeof(speaker),
                                                 .receive = speaker_receive,
                                                 .accepts = speak_accepts };

static trp_testkit *
open_kit(uint32_t clock, trp_testkit_options options)
{
    trp_system_options system = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit *kit = NULL;

    UNIT_REQUIRE(trp_protocol_register(&speak_protocol) == TRP_OK);
    system.workers = 2;
    system.log = write_line;
    options.system_options = &system;
    options.clock = clock;
    options.on_fail = options.on_fail != 0 ? options.on_fail : TRP_FAIL_RETURN;
    options.fail = write_failure;
    options.timefactor = options.timefactor > 0 ? options.timefactor : UNIT_STRETCH;
    if (clock == TRP_CLOCK_REAL && options.leeway_ms == 0) {
        options.expect_ms = options.leeway_ms = 20000; /* no core for seconds */
    }
    failures[0] = lines[0] = 0;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    return kit;
}

static trp_ref
open_speaker(trp_testkit *kit)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = "speaker";
    UNIT_EQUAL(trp_system_spawn(trp_testkit_system(kit), &speaker_behaviour, &options, &ref),
               TRP_OK);
    return ref;
}

static void
order_say(trp_probe *probe, trp_ref to, int32_t number, uint32_t times)
{
    speak_say what = { number, times };

    trp_probe_tell(probe, to, &speak_say_type, &what, 0);
}

/* Wait until all answers that the actor was told to give have arrived: the last one, to a probe of
 * its own, comes behind the others. */
static void
answers_wait(trp_testkit *kit, trp_ref by)
{
    trp_probe *last = NULL;

    UNIT_EQUAL(trp_probe_open(kit, &last), TRP_OK);
    order_say(last, by, 0, 1);
    UNIT_TRUE(trp_probe_expect_type(last, 60000, &speak_say_type) != NULL);
    trp_probe_close(last);
}

static void
ask_later(trp_probe *probe, trp_ref to, uint32_t ms)
{
    speak_later what = { ms };

    trp_probe_tell(probe, to, &speak_later_type, &what, 0);
}

static const trp_testkit_options plain = TRP_TESTKIT_OPTIONS_INIT;
static const uint32_t clocks[] = { TRP_CLOCK_REAL, TRP_CLOCK_VIRTUAL, TRP_CLOCK_MANUAL };
#define EACH_CLOCK(i) for (int i = 0; i < 3; i++)

static int
is_even(void *arg, const trp_msg *msg)
{
    (void)arg;
    return trp_msg_is(msg, &speak_say_type) &&
           ((const speak_say *)trp_msg_payload(msg))->number % 2 == 0;
}

static int
is_below(void *arg, const trp_msg *msg)
{
    return ((const speak_say *)trp_msg_payload(msg))->number < *(int32_t *)arg;
}

static int32_t
number_of(const trp_msg *msg)
{
    return msg == NULL ? -1 : ((const speak_say *)trp_msg_payload(msg))->number;
}

/* ---- expectations: TEST-3, -4, -5, -16 ------------------------------------------------------- */

/* TEST-3, TEST-4, TEST-16 */
static void
what_comes_is_compared_with_what_is_expected(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit);
        trp_ref ref = open_speaker(kit);
        speak_say three = { 3, 0 }, four = { 4, 0 };
        trp_expected any[] = { TRP_EXPECT_MSG(&speak_say_type, &four),
                               TRP_EXPECT_MSG(&speak_say_type, &three) };
        trp_expected all[] = { TRP_EXPECT_MSG(&speak_say_type, &four),
                               TRP_EXPECT_MATCH(is_even, NULL), TRP_EXPECT_TYPE(&speak_say_type) };

        UNIT_TRUE(trp_probe_last(probe) == NULL);
        UNIT_TRUE(trp_ref_is_none(trp_probe_sender(probe)));
        order_say(probe, ref, 3, 1);
        UNIT_EQUAL(number_of(trp_probe_expect(probe, TRP_TEST_TIME, &speak_say_type, &three, 0)),
                   3);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(probe), ref));
        order_say(probe, ref, 5, 1);
        UNIT_EQUAL(number_of(trp_probe_expect_type(probe, TRP_TEST_TIME, &speak_say_type)), 5);
        order_say(probe, ref, 3, 1);
        UNIT_EQUAL(number_of(trp_probe_expect_any(probe, TRP_TEST_TIME, any, 2)), 3);
        order_say(probe, ref, 8, 1);
        UNIT_EQUAL(number_of(trp_probe_expect_match(probe, TRP_TEST_TIME, is_even, NULL)), 8);
        order_say(probe, ref, 3, 3);
        UNIT_EQUAL(trp_probe_expect_all(probe, TRP_TEST_TIME, all, 3), 3);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 0)), 3);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 2)), 5);
        UNIT_TRUE(trp_probe_received(probe, 3) == NULL);
        UNIT_EQUAL(number_of(trp_probe_last(probe)), 5);
        UNIT_TRUE(trp_probe_expect_none(probe, 10));
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* TEST-4: Each kind of disappointment: another message, none, too few; file and line are the
 * test's. */
static void
a_failed_expectation_says_what_was_wanted_and_what_came(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit);
        trp_ref ref = open_speaker(kit);
        speak_say four = { 4, 0 };
        trp_expected all[] = { TRP_EXPECT_MSG(&speak_say_type, &four),
                               TRP_EXPECT_TYPE(&speak_rang_type) };

        order_say(probe, ref, 3, 1);
        UNIT_TRUE(trp_probe_expect(probe, TRP_TEST_TIME, &speak_say_type, &four, 0) == NULL);
        UNIT_EQUAL(failed_line, __LINE__ - 1);
        UNIT_TEXT(failures, "expected speak.say { number = 4, times = 0 }, got speak.say { number "
                            "= 3, times = 0 } from /user/speaker");
        UNIT_TRUE(trp_probe_expect_type(probe, 5, &speak_rang_type) == NULL);
        UNIT_TEXT(failures, "expected speak.rang, got nothing in time");
        order_say(probe, ref, 4, 2);
        UNIT_EQUAL(trp_probe_expect_all(probe, TRP_TEST_TIME, all, 2), 0);
        UNIT_TEXT(failures, "expected speak.rang among 2 messages, got 2 without it");
        order_say(probe, ref, 1, 2);
        answers_wait(kit, ref);
        UNIT_EQUAL(trp_probe_receive_n(probe, 200, 3), 0);
        UNIT_TEXT(failures, "expected 3 messages, got 2 in time");
        order_say(probe, ref, 1, 1);
        answers_wait(kit, ref);
        UNIT_FALSE(trp_probe_expect_none(probe, 100));
        UNIT_TEXT(failures, "expected no message, got speak.say { number = 1, times = 0 }");
        UNIT_TRUE(trp_probe_fish(probe, 5, "a whale", is_even, NULL) == NULL);
        UNIT_TEXT(failures, "fished for a whale, got 0 other messages in time");
        trp_testkit_fail(kit, "by %s", "hand");
        UNIT_TEXT(failures, "by hand");
        TRP_TESTKIT_CHECK(kit, i == -1);
        UNIT_TEXT(failures, "i == -1");
        UNIT_EQUAL(trp_testkit_failures(kit), 8);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* TEST-4, TEST-5 */
static void
messages_are_taken_one_by_one_or_as_long_as_they_fit(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit);
        trp_ref ref = open_speaker(kit);
        int32_t limit = 3;

        UNIT_TRUE(trp_probe_receive(probe, 0) == NULL);
        order_say(probe, ref, 0, 6); /* 0 .. 5 */
        UNIT_EQUAL(number_of(trp_probe_receive(probe, 20000)), 0);
        UNIT_EQUAL(trp_probe_receive_while(probe, 20000, 0, 0, is_below, &limit), 2);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 0)), 1);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 1)), 2);
        UNIT_EQUAL(trp_probe_receive_while(probe, 20000, 0, 1, NULL, NULL), 1);
        UNIT_EQUAL(number_of(trp_probe_last(probe)), 3); /* it had been refused and kept */
        answers_wait(kit, ref); /* or there might be a pause between the last two */
        UNIT_EQUAL(trp_probe_receive_while(probe, 60000, 5, 0, NULL, NULL), 2);
        UNIT_EQUAL(trp_probe_receive_n(probe, 0, 0), 0);
        order_say(probe, ref, 1, 4); /* 1 .. 4 */
        UNIT_EQUAL(number_of(trp_probe_fish(probe, 20000, "even", is_even, NULL)), 2);
        UNIT_EQUAL(trp_probe_receive_n(probe, 20000, 2), 2);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 1)), 4);
        trp_probe_ignore(probe, is_even, NULL);
        order_say(probe, ref, 1, 3);
        UNIT_EQUAL(trp_probe_receive_n(probe, 20000, 2), 2);
        UNIT_EQUAL(number_of(trp_probe_received(probe, 1)), 3);
        trp_probe_ignore(probe, NULL, NULL);
        order_say(probe, ref, 2, 1);
        UNIT_EQUAL(number_of(trp_probe_receive(probe, 20000)), 2);
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

typedef struct looks {
    int calls;
    int wanted;
} looks;

static int
after_some_looks(void *arg)
{
    looks *l = arg;

    return ++l->calls >= l->wanted;
}

static const char *
says_until(void *arg)
{
    looks *l = arg;
    static char words[32];

    snprintf(words, sizeof words, "look %d", ++l->calls);
    return l->calls >= l->wanted ? NULL : words;
}

/* TEST-5 */
static void
a_condition_is_looked_at_until_it_holds_or_time_is_over(void)
{
    trp_testkit *kit = open_kit(TRP_CLOCK_REAL, plain);
    trp_probe *probe = trp_testkit_probe(kit);
    looks l = { 0, 4 };

    UNIT_TRUE(trp_probe_await(probe, 60000, 1, after_some_looks, &l));
    UNIT_EQUAL(l.calls, 4);
    l = (looks){ 0, 3 };
    UNIT_TRUE(trp_probe_await_assert(probe, 60000, 1, says_until, &l));
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    l = (looks){ 0, 1000000 };
    UNIT_FALSE(trp_probe_await(probe, 5, 1, after_some_looks, &l));
    l = (looks){ 0, 1000000 };
    UNIT_FALSE(trp_probe_await_assert(probe, 5, 1, says_until, &l));
    UNIT_TRUE(strncmp(failures, "look ", 5) == 0);
    UNIT_EQUAL(trp_testkit_failures(kit), 2);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* ---- time: TEST-1, -6, -7 -------------------------------------------------------------------- */

/* TEST-6 */
static void
a_block_shares_its_time_with_the_expectations_inside(void)
{
    trp_testkit_options exact = plain;
    trp_testkit *kit;
    trp_probe *probe, *other = NULL;
    trp_ref ref;

    exact.timefactor = 1.0;
    kit = open_kit(TRP_CLOCK_VIRTUAL, exact);
    probe = trp_testkit_probe(kit);
    ref = open_speaker(kit);
    UNIT_EQUAL(trp_probe_open(kit, &other), TRP_OK);
    UNIT_EQUAL(trp_probe_remaining_ms(probe), TRP_TEST_EXPECT_MS_DEFAULT);
    TRP_WITHIN(probe, 0, 500)
    {
        UNIT_EQUAL(trp_probe_remaining_ms(probe), 500);
        UNIT_EQUAL(trp_probe_remaining_ms(other), TRP_TEST_EXPECT_MS_DEFAULT); /* its own */
        TRP_WITHIN(probe, 0, 100) /* the innermost counts */
        {
            UNIT_EQUAL(trp_probe_remaining_ms(probe), 100);
            UNIT_TRUE(trp_probe_expect_none(probe, TRP_TEST_TIME));
            UNIT_EQUAL(trp_testkit_now_ms(kit), 100);
        }
        UNIT_EQUAL(trp_probe_remaining_ms(probe), 400);
        ask_later(probe, ref, 50);
        UNIT_TRUE(trp_probe_expect_type(probe, TRP_TEST_TIME, &speak_rang_type) != NULL);
        (void)trp_probe_expect_none(probe, TRP_TEST_TIME);
        UNIT_EQUAL(trp_testkit_advance(kit, 300), TRP_OK); /* too late, but nothing was missed */
    }
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    TRP_WITHIN(probe, 0, 100)
    {
        UNIT_EQUAL(trp_testkit_advance(kit, 101), TRP_OK);
    }
    UNIT_TEXT(failures, "the block took 101 ms, should take at most 100");
    TRP_WITHIN(probe, 50, 100)
    {
        UNIT_EQUAL(trp_testkit_advance(kit, 20), TRP_OK);
    }
    UNIT_TEXT(failures, "the block took 20 ms, should take at least 50");
    UNIT_EQUAL(trp_testkit_failures(kit), 2);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static void
blocks_nest(trp_testkit *kit, int depth)
{
    TRP_WITHIN(trp_testkit_probe(kit), 0, 1000)
    {
        if (depth > 1) {
            blocks_nest(kit, depth - 1);
        }
    }
}

/* TEST-6 */
static void
blocks_have_a_limit_inside_one_another(void)
{
    trp_testkit *kit = open_kit(TRP_CLOCK_MANUAL, plain);

    blocks_nest(kit, TRP_TEST_WITHIN_MAX);
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    blocks_nest(kit, TRP_TEST_WITHIN_MAX + 1);
    UNIT_EQUAL(trp_testkit_failures(kit), 1);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* TEST-7 */
static void
limits_stretch_by_the_time_factor(void)
{
    trp_testkit_options options = plain;
    trp_testkit *kit;
    trp_probe *probe;

    options.timefactor = 2.5;
    options.expect_ms = 40;
    options.timeout_ms = 10;
    kit = open_kit(TRP_CLOCK_VIRTUAL, options);
    probe = trp_testkit_probe(kit);
    UNIT_EQUAL(trp_testkit_dilated(kit, 100), 250);
    UNIT_EQUAL(trp_testkit_dilated(kit, 4000000000u), TRP_TEST_TIME - 1);
    UNIT_EQUAL(trp_testkit_timeout_ms(kit), 25);
    UNIT_EQUAL(trp_probe_remaining_ms(probe), 100);
    UNIT_TRUE(trp_probe_expect_none(probe, TRP_TEST_TIME));
    UNIT_EQUAL(trp_testkit_now_ms(kit), 100);
    UNIT_TRUE(trp_probe_expect_none(probe, 20));
    UNIT_EQUAL(trp_testkit_now_ms(kit), 150);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* The wish list's virtual clock: SCH-1 without waiting. */
static void
a_manual_clock_fires_timers_when_it_is_moved(void)
{
    trp_testkit *kit = open_kit(TRP_CLOCK_MANUAL, plain);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_ref ref = open_speaker(kit);

    ask_later(probe, ref, 3600000);
    UNIT_TRUE(trp_probe_expect_none(probe, 60000)); /* returns at once: nothing is left to do */
    UNIT_EQUAL(trp_testkit_now_ms(kit), 0);
    UNIT_EQUAL(trp_testkit_advance(kit, 3599999), TRP_OK);
    UNIT_TRUE(trp_probe_receive(probe, 0) == NULL);
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK);
    UNIT_EQUAL(trp_testkit_now_ms(kit), 3600000);
    UNIT_TRUE(trp_probe_expect_type(probe, 0, &speak_rang_type) != NULL);
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    kit = open_kit(TRP_CLOCK_REAL, plain);
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_ESTATE);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* ---- probes among themselves: TEST-8, -9 ----------------------------------------------------- */

/* TEST-8, TEST-16 */
static void
probes_reply_forward_and_watch(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit), *between = NULL, *end = NULL;
        speak_say nine = { 9, 0 };
        trp_ref ref = open_speaker(kit);

        UNIT_EQUAL(trp_probe_open(kit, &between), TRP_OK);
        UNIT_EQUAL(trp_probe_open(kit, &end), TRP_OK);
        UNIT_EQUAL(trp_probe_forward(between, trp_probe_ref(end)), TRP_ESTATE);
        order_say(probe, trp_probe_ref(between), 9, 0);
        UNIT_TRUE(trp_probe_expect(between, TRP_TEST_TIME, &speak_say_type, &nine, 0) != NULL);
        UNIT_EQUAL(trp_probe_forward(between, trp_probe_ref(end)), TRP_OK);
        UNIT_TRUE(trp_probe_expect(end, TRP_TEST_TIME, &speak_say_type, &nine, 0) != NULL);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(end), trp_probe_ref(probe))); /* not between */
        trp_probe_reply(end, &speak_rang_type, &(speak_rang){ 0 }, 0);
        UNIT_TRUE(trp_probe_expect_type(probe, TRP_TEST_TIME, &speak_rang_type) != NULL);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(probe), trp_probe_ref(end)));

        UNIT_EQUAL(trp_probe_watch(probe, (trp_ref)TRP_REF_NONE), TRP_EINVAL);
        UNIT_EQUAL(trp_probe_watch(probe, ref), TRP_OK);
        UNIT_EQUAL(trp_probe_watch(end, ref), TRP_OK);
        UNIT_EQUAL(trp_probe_unwatch(end, ref), TRP_OK);
        trp_probe_tell(probe, ref, &trp_poison_pill_type, NULL, 0);
        UNIT_TRUE(trp_probe_expect_terminated(probe, TRP_TEST_TIME, ref) != NULL);
        UNIT_TRUE(trp_probe_expect_none(end, 10));
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_TRUE(trp_probe_expect_terminated(probe, 5, ref) == NULL);
        UNIT_TRUE(strstr(failures, "expected troupe.terminated of /user/speaker, got nothing") !=
                  NULL);
        trp_probe_close(between);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

typedef struct flight {
    trp_ref to;
    int flown;
} flight;

static trp_pilot
pilot_twice(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    flight *f = arg;

    trp_forward(ctx, f->to, msg);
    return ++f->flown < 2 ? (trp_pilot)TRP_PILOT_KEEP : (trp_pilot)TRP_PILOT_NONE;
}

static trp_pilot
pilot_changes(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    trp_pilot next = { pilot_twice, arg, 0 };

    (void)msg;
    trp_reply(ctx, &speak_rang_type, &(speak_rang){ 0 }, 0);
    return next;
}

/* TEST-9 */
static void
an_auto_pilot_answers_before_the_test_looks(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit), *flown = NULL, *end = NULL;
        flight f = { TRP_REF_NONE, 0 };
        trp_pilot pilot = { pilot_changes, &f, 0 };

        UNIT_EQUAL(trp_probe_open(kit, &flown), TRP_OK);
        UNIT_EQUAL(trp_probe_open(kit, &end), TRP_OK);
        f.to = trp_probe_ref(end);
        trp_probe_pilot(flown, pilot);
        for (int n = 0; n < 4; n++) {
            order_say(probe, trp_probe_ref(flown), n, 0);
        }
        UNIT_EQUAL(trp_probe_receive_n(flown, TRP_TEST_TIME, 4), 4); /* all are queued, too */
        UNIT_TRUE(trp_probe_expect_type(probe, TRP_TEST_TIME, &speak_rang_type) != NULL);
        UNIT_EQUAL(trp_probe_receive_n(end, TRP_TEST_TIME, 2), 2);
        UNIT_EQUAL(number_of(trp_probe_received(end, 0)), 1);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(end), trp_probe_ref(probe)));
        UNIT_TRUE(trp_probe_expect_none(end, 10));
        UNIT_TRUE(trp_probe_expect_none(probe, 10));
        UNIT_EQUAL(f.flown, 2);
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* ---- log lines: TEST-10, -11 ----------------------------------------------------------------- */

/* TEST-10 */
static void
log_lines_are_expected_counted_and_taken(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit_options options = plain;
        trp_filter crash = TRP_FILTER_INIT, inner = TRP_FILTER_INIT;
        trp_testkit *kit;
        trp_probe *probe;
        trp_ref ref;

        options.timefactor = 1.0;
        options.leeway_ms = 20000;
        kit = open_kit(clocks[i], options);
        probe = trp_testkit_probe(kit);
        ref = open_speaker(kit);
        crash.level = TRP_LOG_ERROR;
        crash.source = "/user/*";
        crash.text = "*told t?*";
        crash.occurrences = 2;
        TRP_INTERCEPT(kit, &crash)
        {
            trp_probe_tell(probe, ref, &speak_crash_type, &(speak_crash){ 0 }, 0);
            trp_probe_tell(probe, ref, &speak_crash_type, &(speak_crash){ 0 }, 0);
        }
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_FALSE(logged("told to")); /* taken out of the log */
        inner.text = "one *";
        inner.occurrences = 1;
        crash.text = "*";
        crash.source = "s";
        crash.level = 0;
        crash.occurrences = 3;
        TRP_INTERCEPT(kit, &crash)
        {
            TRP_INTERCEPT(kit, &inner)
            {
                trp_system_log(trp_testkit_system(kit), TRP_LOG_INFO, "s", "one of a kind");
                trp_system_log(trp_testkit_system(kit), TRP_LOG_ERROR, "s", "a");
                trp_system_log(trp_testkit_system(kit), TRP_LOG_WARNING, "s", "b");
                trp_system_log(trp_testkit_system(kit), TRP_LOG_WARNING, "t", "passes");
            }
            trp_system_log(trp_testkit_system(kit), TRP_LOG_WARNING, "s", "c");
        }
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_WAIT(logged("[2 t: passes]"), 5000);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);

        options.leeway_ms = 20;
        kit = open_kit(clocks[i], options);
        inner.occurrences = 2;
        TRP_INTERCEPT(kit, &inner)
        {
            trp_system_log(trp_testkit_system(kit), TRP_LOG_INFO, "s", "one is too few");
            UNIT_EQUAL(trp_log_flush(trp_testkit_system(kit), 60000), TRP_OK);
        }
        UNIT_TEXT(failures, "expected 2 log lines (source any, text one *), got 1");
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* TEST-11 */
static void
dead_letters_are_warnings_in_tests(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_filter warning = TRP_FILTER_INIT;
        trp_probe *probe = trp_testkit_probe(kit);
        trp_ref ref = open_speaker(kit);

        UNIT_EQUAL(trp_system_graceful_stop(trp_testkit_system(kit), ref, 60000), TRP_OK);
        warning.level = TRP_LOG_WARNING;
        warning.text = "dead letter: speak.say from /system/testProbe-1 to /user/speaker*";
        warning.occurrences = 1;
        TRP_INTERCEPT(kit, &warning)
        {
            order_say(probe, ref, 1, 1);
        }
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* ---- failures, and systems of one's own ------------------------------------------------------ */

static int went_on;

static void
fails_in_the_middle(trp_testkit *kit, void *arg)
{
    trp_filter filter = TRP_FILTER_INIT;

    (void)arg;
    TRP_INTERCEPT(kit, &filter)
    {
        TRP_WITHIN(trp_testkit_probe(kit), 0, 10)
        {
            trp_probe_expect_type(trp_testkit_probe(kit), TRP_TEST_TIME, &speak_rang_type);
            went_on = 1;
        }
    }
}

static void
a_failure_can_jump_out_of_the_test(void)
{
    trp_testkit_options options = plain;
    trp_testkit *kit;

    options.on_fail = TRP_FAIL_JUMP;
    kit = open_kit(TRP_CLOCK_VIRTUAL, options);
    for (uint32_t i = 1; i <= 100; i++) { /* blocks that are left by the jump are over */
        UNIT_EQUAL(trp_testkit_run(kit, fails_in_the_middle, NULL), 1);
        UNIT_EQUAL(trp_testkit_failures(kit), i);
    }
    UNIT_EQUAL(went_on, 0);
    trp_system_log(trp_testkit_system(kit), TRP_LOG_WARNING, "s", "not filtered");
    UNIT_EQUAL(trp_log_flush(trp_testkit_system(kit), 60000), TRP_OK);
    UNIT_TRUE(logged("not filtered"));
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* TEST-3 */
static void
a_kit_can_be_put_around_a_system(void)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_filter filter = TRP_FILTER_INIT;
    trp_testkit *kit = NULL, *second = NULL;
    trp_system *system = NULL;
    trp_ref ref;

    system_options.workers = 1;
    UNIT_REQUIRE(trp_system_new("mine", &system_options, &system) == TRP_OK);
    options.system = system;
    options.on_fail = TRP_FAIL_RETURN;
    options.fail = write_failure;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    UNIT_REQUIRE(trp_testkit_open(&options, &second) == TRP_OK); /* names of probes do not clash */
    ref = open_speaker(kit);
    order_say(trp_testkit_probe(second), ref, 4, 1);
    UNIT_EQUAL(number_of(trp_probe_receive(trp_testkit_probe(second), 60000)), 4);
    TRP_INTERCEPT(kit, &filter)
    {
        UNIT_FAIL("there is no log to filter");
    }
    UNIT_EQUAL(trp_testkit_failures(kit), 1);
    UNIT_EQUAL(trp_testkit_close(second), TRP_OK);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    UNIT_FALSE(trp_system_is_terminated(system));
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* TRPI_TEST_FILTERS_MAX inside one another, and one past it */
static void
so_many_filters_nest_and_not_one_more(void)
{
    trp_testkit_options options = plain;
    trp_filter filter = TRP_FILTER_INIT;
    trp_testkit *kit;

    options.on_fail = TRP_FAIL_RETURN;
    options.fail = write_failure;
    kit = open_kit(TRP_CLOCK_VIRTUAL, options);
    for (uint32_t i = 0; i <= TRPI_TEST_FILTERS_MAX; i++) {
        UNIT_EQUAL(trp_filter_begin(__FILE__, __LINE__, kit, &filter), i < TRPI_TEST_FILTERS_MAX);
        UNIT_EQUAL(trp_testkit_failures(kit), i == TRPI_TEST_FILTERS_MAX);
    }
    for (uint32_t i = 0; i < TRPI_TEST_FILTERS_MAX; i++) {
        UNIT_EQUAL(trp_filter_end(kit), 0);
    }
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* ---- test actors: TEST-2, -12 ---------------------------------------------------------------- */

/* TEST-2 */
static void
a_test_actor_runs_on_the_test_and_can_be_looked_into(void)
{
    EACH_CLOCK(i)
    {
        trp_testkit *kit = open_kit(clocks[i], plain);
        trp_probe *probe = trp_testkit_probe(kit);
        trp_failure failure;
        trp_ref ref, dead = TRP_REF_NONE;
        speak_say three = { 3, 1 };
        speak_crash crash = { 0 };
        speaker *state;

        UNIT_EQUAL(trp_testkit_spawn(kit, &speaker_behaviour, NULL, &ref), TRP_OK);
        state = trp_testkit_state(kit, ref);
        UNIT_REQUIRE(state != NULL);
        UNIT_EQUAL(state->handled, 0);
        order_say(probe, ref, 3, 1); /* handled before it returns, by this thread */
        UNIT_EQUAL(state->handled, 1);
        UNIT_TRUE(trp_probe_expect(probe, TRP_TEST_TIME, &speak_say_type, &(speak_say){ 3, 0 },
                                   0) != NULL);

        UNIT_EQUAL(
            trp_testkit_receive(kit, ref, trp_probe_ref(probe), &speak_say_type, &three, 0, NULL),
            TRP_OK);
        UNIT_EQUAL(state->handled, 2);
        UNIT_TRUE(trp_probe_expect_type(probe, TRP_TEST_TIME, &speak_say_type) != NULL);
        memset(&failure, 0, sizeof failure);
        UNIT_EQUAL(trp_testkit_receive(kit, ref, dead, &speak_crash_type, &crash, 0, &failure),
                   TRP_EFAILED); /* ours, not the supervisor's */
        UNIT_EQUAL(failure.code, 7);
        UNIT_TEXT(failure.reason, "told to");
        UNIT_EQUAL(state->handled, 3);
        UNIT_TRUE(trp_testkit_state(kit, ref) == state); /* no restart */

        UNIT_EQUAL(trp_testkit_receive(kit, ref, dead, &trp_poison_pill_type, NULL, 0, NULL),
                   TRP_EINVAL);
        UNIT_EQUAL(trp_testkit_receive(kit, dead, dead, &speak_say_type, &three, 0, NULL),
                   TRP_ENOENT);
        UNIT_EQUAL(trp_system_graceful_stop(trp_testkit_system(kit), ref, 60000), TRP_OK);
        UNIT_TRUE(trp_testkit_state(kit, ref) == NULL);
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* TEST-2: Others' state is not ours to read while their threads may write it. */
static void
only_test_actors_can_be_looked_into(void)
{
    trp_testkit *kit = open_kit(TRP_CLOCK_REAL, plain);
    trp_ref ref = open_speaker(kit), nobody = TRP_REF_NONE;
    speak_say three = { 3, 1 };

    UNIT_TRUE(trp_testkit_state(kit, ref) == NULL);
    UNIT_EQUAL(trp_testkit_receive(kit, ref, nobody, &speak_say_type, &three, 0, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

UNIT_BEGIN("testkit")
UNIT(a_test_actor_runs_on_the_test_and_can_be_looked_into)
UNIT(only_test_actors_can_be_looked_into)
UNIT(what_comes_is_compared_with_what_is_expected)
UNIT(a_failed_expectation_says_what_was_wanted_and_what_came)
UNIT(messages_are_taken_one_by_one_or_as_long_as_they_fit)
UNIT(a_condition_is_looked_at_until_it_holds_or_time_is_over)
UNIT(a_block_shares_its_time_with_the_expectations_inside)
UNIT(blocks_have_a_limit_inside_one_another)
UNIT(limits_stretch_by_the_time_factor)
UNIT(a_manual_clock_fires_timers_when_it_is_moved)
UNIT(probes_reply_forward_and_watch)
UNIT(an_auto_pilot_answers_before_the_test_looks)
UNIT(log_lines_are_expected_counted_and_taken)
UNIT(dead_letters_are_warnings_in_tests)
UNIT(a_failure_can_jump_out_of_the_test)
UNIT(a_kit_can_be_put_around_a_system)
UNIT(so_many_filters_nest_and_not_one_more)
UNIT_END
