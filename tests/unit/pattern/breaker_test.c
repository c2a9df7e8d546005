/* breaker_test.c - a circuit breaker: the machine by table, calls of all kinds, time, threads. */
#include "pattern/breaker.h"

#include <troupe/testkit.h>

#include "sched/worker.h"
#include "tests/unit/actor/stage.h"

/* CB-02, CB-03, CB-04, TRP-11, CONTRIB-47 */
static void
the_machine_opens_lets_one_call_probe_and_closes(void)
{
    trpi_breaker_core core = { TRP_BREAKER_CLOSED, 1, 0, 3, 0, 100, false };
    uint64_t epoch = core.epoch;

    UNIT_FALSE(trpi_breaker_step(&core, 0, TRPI_BREAKER_FAILED, epoch));
    UNIT_FALSE(trpi_breaker_step(&core, 0, TRPI_BREAKER_FAILED, epoch));
    UNIT_FALSE(trpi_breaker_step(&core, 0, TRPI_BREAKER_WORKED, epoch)); /* counts from 0 again */
    UNIT_FALSE(trpi_breaker_step(&core, 0, TRPI_BREAKER_FAILED, epoch));
    UNIT_FALSE(trpi_breaker_step(&core, 0, TRPI_BREAKER_FAILED, epoch));
    UNIT_TRUE(trpi_breaker_step(&core, 0, TRPI_BREAKER_ASKED, 0));
    UNIT_TRUE(trpi_breaker_step(&core, 10, TRPI_BREAKER_FAILED, epoch)); /* the third in a row */
    UNIT_EQUAL(core.state, TRP_BREAKER_OPEN);
    UNIT_FALSE(trpi_breaker_step(&core, 10, TRPI_BREAKER_ASKED, 0));
    /* of before: breaker-B2 */
    UNIT_FALSE(trpi_breaker_step(&core, 10, TRPI_BREAKER_WORKED, epoch));
    UNIT_FALSE(trpi_breaker_step(&core, 109, TRPI_BREAKER_TIME, 0));
    UNIT_TRUE(trpi_breaker_step(&core, 110, TRPI_BREAKER_TIME, 0));
    UNIT_EQUAL(core.state, TRP_BREAKER_HALF_OPEN);
    UNIT_FALSE(trpi_breaker_step(&core, 110, TRPI_BREAKER_FAILED, epoch)); /* of before */
    UNIT_TRUE(trpi_breaker_step(&core, 110, TRPI_BREAKER_ASKED, 0));       /* exactly one */
    UNIT_FALSE(trpi_breaker_step(&core, 110, TRPI_BREAKER_ASKED, 0));
    UNIT_TRUE(trpi_breaker_step(&core, 150, TRPI_BREAKER_FAILED, core.epoch));
    UNIT_EQUAL(core.state, TRP_BREAKER_OPEN);
    UNIT_FALSE(trpi_breaker_step(&core, 249, TRPI_BREAKER_TIME, 0)); /* another full time */
    UNIT_TRUE(trpi_breaker_step(&core, 250, TRPI_BREAKER_TIME, 0));
    UNIT_TRUE(trpi_breaker_step(&core, 250, TRPI_BREAKER_ASKED, 0));
    UNIT_TRUE(trpi_breaker_step(&core, 260, TRPI_BREAKER_WORKED, core.epoch));
    UNIT_EQUAL(core.state, TRP_BREAKER_CLOSED);
    UNIT_EQUAL(core.failures, 0);
}

static trp_testkit *kit;
static trp_system *stage;

static trp_breaker *
open_breaker(uint32_t failures_max, const char *dispatcher)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_breaker_options given = TRP_BREAKER_OPTIONS_INIT;
    trp_breaker *breaker = NULL;

    stage_clear(&stage_events);
    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    stage = trp_testkit_system(kit);
    given.failures_max = failures_max;
    given.call_timeout_ms = 100;
    given.reset_timeout_ms = 1000;
    given.dispatcher = dispatcher;
    UNIT_REQUIRE(trp_breaker_new(stage, &given, &breaker) == TRP_OK);
    return breaker;
}

static void
close_breaker(trp_breaker *breaker)
{
    trp_breaker_unref(breaker);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static int calls;
static trp_err
call_body(void *arg)
{
    calls++;
    return *(trp_err *)arg;
}
static trp_err fails = TRP_EIO, works = TRP_OK;

static trp_err
slow_body(void *arg)
{
    UNIT_EQUAL(trp_testkit_advance(kit, *(uint32_t *)arg), TRP_OK);
    return TRP_OK;
}

static void
note_state(void *arg, trp_breaker_state state)
{
    stage_note("%s%d", (const char *)arg, (int)state);
}

/* CB-01 to CB-06, TRP-11, CB-07 */
static void
synchronous_calls_open_it_and_time_half_opens_it(void)
{
    trp_breaker *breaker = open_breaker(2, NULL);
    uint32_t just = 100, late = 101;

    UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_OPEN, note_state, "open"), TRP_OK);
    UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_HALF_OPEN, note_state, "half"), TRP_OK);
    UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_CLOSED, note_state, "closed"), TRP_OK);
    calls = 0;
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &works), TRP_OK);
    UNIT_EQUAL(trp_breaker_sync(breaker, slow_body, &just), TRP_OK);
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &fails), TRP_EIO);
    UNIT_EQUAL(trp_breaker_state_get(breaker), TRP_BREAKER_CLOSED);
    UNIT_EQUAL(trp_breaker_sync(breaker, slow_body, &late), TRP_OK); /* late: seen at its return */
    UNIT_EQUAL(trp_breaker_state_get(breaker), TRP_BREAKER_OPEN);
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &works), TRP_EBREAKER);
    UNIT_EQUAL(calls, 2);
    UNIT_EQUAL(trp_testkit_advance(kit, 999), TRP_OK);
    UNIT_EQUAL(trp_breaker_state_get(breaker), TRP_BREAKER_OPEN);
    UNIT_TRUE(stage_is("open2"));
    UNIT_EQUAL(trp_testkit_advance(kit, 2), TRP_OK); /* nobody calls: the timer tells */
    UNIT_TRUE(stage_is("open2 half3"));
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &fails), TRP_EIO);
    UNIT_EQUAL(trp_breaker_state_get(breaker), TRP_BREAKER_OPEN);
    UNIT_EQUAL(trp_testkit_advance(kit, 1001), TRP_OK);
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &works), TRP_OK);
    UNIT_TRUE(stage_is("open2 half3 open2 half3 closed1"));
    close_breaker(breaker);
}

/* CB-05, CONTRIB-47 */
static void
listeners_run_on_the_dispatcher_that_is_named(void)
{
    trp_breaker *breaker = open_breaker(1, "default"), *other;
    trp_breaker_options given = TRP_BREAKER_OPTIONS_INIT;

    UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_OPEN, note_state, "open"), TRP_OK);
    UNIT_EQUAL(trp_breaker_sync(breaker, call_body, &fails), TRP_EIO);
    UNIT_TRUE(stage_is("")); /* not here: on a worker, which has not had its turn */
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK);
    UNIT_TRUE(stage_is("open2"));
    for (int i = 1; i < TRP_BREAKER_LISTENERS_MAX; i++) {
        UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_OPEN, note_state, "x"), TRP_OK);
    }
    UNIT_EQUAL(trp_breaker_on(breaker, TRP_BREAKER_OPEN, note_state, "x"), TRP_ELIMIT);
    given.dispatcher = "nowhere";
    UNIT_EQUAL(trp_breaker_new(stage, &given, &other), TRP_ENOENT);
    close_breaker(breaker);
}

static trp_promise *answer;
static trp_err
call_begin(void *arg, trp_future **ret_future)
{
    trp_err err = arg != NULL ? *(trp_err *)arg : trp_promise_new(stage, NULL, &answer);

    calls++;
    if (err == TRP_OK) {
        *ret_future = trp_future_ref(trp_promise_future(answer));
    }
    return err;
}

static void
expect_outcome(trp_future *future, trp_err want)
{
    UNIT_EQUAL(trp_future_await(future, 1), TRP_OK);
    UNIT_REQUIRE(trp_future_outcome(future) != NULL);
    UNIT_EQUAL(trp_future_outcome(future)->err, want);
    trp_future_unref(future);
}

/* CB-02, CB-06, CB-08, CONTRIB-47 */
static void
asynchronous_calls_begin_only_when_they_may_and_fail_when_they_are_late(void)
{
    trp_breaker *breaker = open_breaker(2, NULL);
    trp_future *f;
    int64_t seven = 7;

    calls = 0;
    UNIT_EQUAL(trp_breaker_async(breaker, call_begin, NULL, &f), TRP_OK);
    UNIT_EQUAL(trp_promise_succeed(answer, &trp_i64_type, &seven, sizeof seven), TRP_OK);
    trp_promise_unref(answer);
    expect_outcome(f, TRP_OK);
    UNIT_EQUAL(trp_breaker_async(breaker, call_begin, &fails, &f), TRP_OK);
    expect_outcome(f, TRP_EIO);
    UNIT_EQUAL(trp_breaker_async(breaker, call_begin, NULL, &f), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 101), TRP_OK);
    expect_outcome(f, TRP_ETIMEDOUT);
    trp_promise_unref(answer);
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK);
    UNIT_EQUAL(trp_breaker_state_get(breaker), TRP_BREAKER_OPEN);
    UNIT_EQUAL(trp_breaker_async(breaker, call_begin, NULL, &f), TRP_OK);
    expect_outcome(f, TRP_EBREAKER);
    UNIT_EQUAL(calls, 3); /* CB-08: not begun */
    close_breaker(breaker);
}

/* When the next timer is due: UINT64_MAX if there is none. */
static uint64_t
next_alarm_ns(void)
{
    return trpi_timers_next_ns(trpi_system_sched(stage));
}

/* breaker-B4: calls that end in time, or cannot begin, leave nothing for later; one that is under
 * way has its alarm. */
static void
a_call_that_has_ended_leaves_no_alarm(void)
{
    trp_breaker *breaker = open_breaker(100, NULL);
    uint64_t idle = next_alarm_ns();
    trp_future *f;
    int64_t seven = 7;

    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(trp_breaker_async(breaker, call_begin, NULL, &f), TRP_OK);
        UNIT_TRUE(next_alarm_ns() < idle);
        if (i % 2 == 0) {
            UNIT_EQUAL(trp_promise_succeed(answer, &trp_i64_type, &seven, sizeof seven), TRP_OK);
        }
        trp_promise_unref(answer); /* else it is dropped */
        expect_outcome(f, i % 2 == 0 ? TRP_OK : TRP_ECANCELED);
        UNIT_EQUAL(trp_breaker_async(breaker, call_begin, &fails, &f), TRP_OK);
        expect_outcome(f, TRP_EIO);
    }
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK); /* the workers have had their turn */
    UNIT_EQUAL(next_alarm_ns(), idle);
    close_breaker(breaker);
}

#define CALLERS 4
static trp_breaker *shared;
static _Atomic int passed;

static void *
probe_thread(void *arg)
{
    trp_breaker_call call;

    (void)arg;
    if (trp_breaker_begin(shared, &call) == TRP_OK) {
        atomic_fetch_add(&passed, 1);
    }
    return NULL;
}

static void
count_end(void *arg, const trp_outcome *outcome)
{
    (void)outcome;
    (void)atomic_fetch_add((_Atomic int *)arg, 1);
}

/* breaker-B4, executor-X3: half of the calls are answered about when their alarms ring, the others
 * never, and the system ends on top of it; each has one end. Meant for the sanitizers. */
static void
calls_race_with_their_alarms_and_with_the_end_of_the_system(void)
{
    enum { CALLS = 200 };
    trp_breaker_options given = TRP_BREAKER_OPTIONS_INIT;
    static _Atomic int ends;
    int64_t seven = 7;

    given.failures_max = UINT32_MAX;
    given.call_timeout_ms = 1;
    for (int round = 0; round < 10; round++) {
        trp_promise *kept[CALLS];
        trp_breaker *breaker;

        stage = stage_open();
        atomic_store(&ends, 0);
        UNIT_REQUIRE(trp_breaker_new(stage, &given, &breaker) == TRP_OK);
        for (int i = 0; i < CALLS; i++) {
            trp_future *f;

            UNIT_REQUIRE(trp_breaker_async(breaker, call_begin, NULL, &f) == TRP_OK);
            UNIT_EQUAL(trp_future_on_complete(f, count_end, &ends, NULL), TRP_OK);
            trp_future_unref(f);
            kept[i] = answer;
            if (i % 4 == 3) { /* a little later than they were made */
                (void)trp_promise_succeed(kept[i - 2], &trp_i64_type, &seven, sizeof seven);
                (void)trp_promise_succeed(kept[i - 3], &trp_i64_type, &seven, sizeof seven);
            }
        }
        trp_breaker_unref(breaker);
        stage_close(stage);
        UNIT_EQUAL(atomic_load(&ends), CALLS);
        for (int i = 0; i < CALLS; i++) {
            trp_promise_unref(kept[i]);
        }
    }
}

/* CB-04, TRP-11; meant for the thread sanitizer */
static void
of_many_threads_one_call_passes_when_it_is_half_open(void)
{
    trp_breaker_options given = TRP_BREAKER_OPTIONS_INIT;
    trp_system *system = stage_open();

    given.failures_max = 1;
    given.reset_timeout_ms = 1;
    for (int round = 0; round < 50; round++) {
        pthread_t threads[CALLERS];

        UNIT_REQUIRE(trp_breaker_new(system, &given, &shared) == TRP_OK);
        UNIT_EQUAL(trp_breaker_sync(shared, call_body, &fails), TRP_EIO);
        UNIT_WAIT(trp_breaker_state_get(shared) == TRP_BREAKER_HALF_OPEN, 5000);
        atomic_store(&passed, 0);
        for (int i = 0; i < CALLERS; i++) {
            UNIT_REQUIRE(pthread_create(&threads[i], NULL, probe_thread, NULL) == 0);
        }
        for (int i = 0; i < CALLERS; i++) {
            pthread_join(threads[i], NULL);
        }
        UNIT_EQUAL(atomic_load(&passed), 1);
        trp_breaker_unref(shared);
    }
    stage_close(system);
}

/* CB-02 to -04, CB-06: calls that are neither a function nor a future; each holder of a reference
 * may use it
 */
static void
calls_of_other_kinds_are_begun_and_ended(void)
{
    trp_breaker *breaker = open_breaker(2, NULL), *mine = trp_breaker_ref(breaker);
    trp_breaker_call call, late, probe;

    trp_breaker_unref(breaker);
    UNIT_EQUAL(trp_breaker_begin(NULL, &call), TRP_EINVAL);
    UNIT_EQUAL(trp_breaker_begin(mine, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_breaker_begin(mine, &late), TRP_OK);
    UNIT_EQUAL(trp_breaker_begin(mine, &call), TRP_OK); /* two at a time */
    trp_breaker_end(mine, call, TRP_EIO);
    UNIT_EQUAL(trp_breaker_state_get(mine), TRP_BREAKER_CLOSED);
    UNIT_EQUAL(trp_testkit_advance(kit, 101), TRP_OK);
    trp_breaker_end(mine, late, TRP_OK); /* took too long: the second failure */
    UNIT_EQUAL(trp_breaker_state_get(mine), TRP_BREAKER_OPEN);
    UNIT_EQUAL(trp_breaker_begin(mine, &call), TRP_EBREAKER);
    UNIT_EQUAL(trp_testkit_advance(kit, 1001), TRP_OK);
    UNIT_EQUAL(trp_breaker_begin(mine, &probe), TRP_OK);
    UNIT_EQUAL(trp_breaker_begin(mine, &call), TRP_EBREAKER);
    trp_breaker_end(mine, probe, TRP_OK);
    UNIT_EQUAL(trp_breaker_state_get(mine), TRP_BREAKER_CLOSED);
    close_breaker(mine);
}

UNIT_BEGIN("breaker")
UNIT(the_machine_opens_lets_one_call_probe_and_closes)
UNIT(calls_of_other_kinds_are_begun_and_ended)
UNIT(synchronous_calls_open_it_and_time_half_opens_it)
UNIT(listeners_run_on_the_dispatcher_that_is_named)
UNIT(asynchronous_calls_begin_only_when_they_may_and_fail_when_they_are_late)
UNIT(a_call_that_has_ended_leaves_no_alarm)
UNIT(calls_race_with_their_alarms_and_with_the_end_of_the_system)
UNIT(of_many_threads_one_call_passes_when_it_is_half_open)
UNIT_END
