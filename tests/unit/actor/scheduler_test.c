/* scheduler_test.c - scheduled messages and functions: on time, cancelled, at the end. */
#include "tests/unit/actor/stage.h"

#include <troupe/scheduler.h>
#include <troupe/testkit.h>

#define TIMES 50

static _Atomic uint64_t times[TIMES + 1];
static atomic_uint times_count;

static trp_err
clock_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "tick")) {
        uint32_t i = atomic_load(&times_count);

        if (i <= TIMES) {
            atomic_store(&times[i], trp_now_ns(ctx));
            atomic_store(&times_count, i + 1);
        }
    } else if (stage_said(msg, "from inside")) {
        trp_ref none = TRP_REF_NONE;

        UNIT_EQUAL(trp_schedule_once(trp_ctx_system(ctx), 1, trp_self(ctx), none, &trp_string_type,
                                     "mine", 4, NULL),
                   TRP_OK);
    } else if (stage_said(msg, "mine")) {
        stage_note("mine");
    } else if (stage_said(msg, "who")) {
        char name[64];

        stage_note("from(%s)", stage_name(trp_ctx_system(ctx), trp_sender(ctx), name, sizeof name));
    }
    return TRP_OK;
}

static const trp_behaviour clock_behaviour = TRP_BEHAVIOUR_INIT("clock", char, clock_receive);
static const trp_ref none = TRP_REF_NONE;

/* SCH-01, -02, MSG-20, SCH-07, UJ-02, UJ-23, TRP-02: the n-th firing is at start + delay + n *
 * interval, in virtual time exactly */
static void
the_nth_time_is_start_plus_n_intervals(void)
{
    static const uint32_t ticks_ms[] = { 1, 10 };

    for (size_t k = 0; k < 2; k++) {
        trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
        trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
        trp_scheduler_options scheduler = TRP_SCHEDULER_OPTIONS_INIT;
        trp_schedule schedule = TRP_SCHEDULE_NONE;
        uint64_t start, tick_ns;
        trp_testkit *kit = NULL;
        trp_ref clock;

        scheduler.tick_ms = ticks_ms[k];
        scheduler.ticks_per_wheel = 512;
        tick_ns = ticks_ms[k] * 1000000u;
        system_options.scheduler = &scheduler;
        system_options.log = stage_log;
        options.system_options = &system_options;
        options.clock = TRP_CLOCK_VIRTUAL;
        UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
        UNIT_TRUE(trp_scheduler_frequency_max(trp_testkit_system(kit)) == 1000.0 / ticks_ms[k]);
        atomic_store(&times_count, 0);
        UNIT_REQUIRE(trp_system_spawn(trp_testkit_system(kit), &clock_behaviour, NULL, &clock) ==
                     TRP_OK);
        start = trpi_world_mono_ns(trpi_system_world(trp_testkit_system(kit)));
        UNIT_EQUAL(trp_schedule_repeat(trp_testkit_system(kit), 35, 70, clock, none,
                                       &trp_string_type, "tick", 4, &schedule),
                   TRP_OK);
        UNIT_EQUAL(trp_testkit_advance(kit, 35 + 70 * (TIMES - 1) + 5 * ticks_ms[k]), TRP_OK);
        UNIT_EQUAL(atomic_load(&times_count), TIMES);
        for (uint64_t n = 0; n < TIMES; n++) {
            uint64_t planned = start + (35 + n * 70) * 1000000u;

            UNIT_TRUE(times[n] >= planned && times[n] < planned + tick_ns);
        }
        UNIT_EQUAL(trp_schedule_cancel(trp_testkit_system(kit), &schedule), 1);
        UNIT_EQUAL(trp_testkit_advance(kit, 500), TRP_OK);
        UNIT_EQUAL(atomic_load(&times_count), TIMES);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* MSG-20, UJ-23, UJ-02, TRP-02: from an actor and from outside, with a sender; nothing polls */
static void
a_message_comes_from_actors_and_from_outside(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &clock_behaviour, "a");
    trp_ref b = stage_spawn(system, &clock_behaviour, "b");

    stage_tell(system, a, "from inside");
    STAGE_EXPECT("mine");
    UNIT_EQUAL(trp_schedule_once(system, 5, a, b, &trp_string_type, "who", 3, NULL), TRP_OK);
    STAGE_EXPECT("mine from(b)");
    stage_close(system);
}

static trp_schedule contested;
static atomic_uint winners;

static void *
cancel_main(void *arg)
{
    atomic_fetch_add(&winners, (unsigned)trp_schedule_cancel(arg, &contested));
    UNIT_EQUAL(trp_schedule_is_cancelled(&contested), 1); /* also for who lost */
    return NULL;
}

/* SCH-08, TRP-12, SCH-01 */
static void
cancelling_tells_whether_it_came_in_time(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &clock_behaviour, "a");
    trp_schedule nothing = TRP_SCHEDULE_NONE, s = TRP_SCHEDULE_NONE;

    UNIT_EQUAL(trp_schedule_cancel(system, &nothing), 0);
    UNIT_EQUAL(trp_schedule_is_cancelled(&nothing), 0);
    atomic_store(&times_count, 0);
    UNIT_EQUAL(trp_schedule_once(system, 60000, a, none, &trp_string_type, "tick", 4, &s), TRP_OK);
    UNIT_EQUAL(trp_schedule_is_cancelled(&s), 0);
    UNIT_EQUAL(trp_schedule_cancel(system, &s), 1);
    UNIT_EQUAL(trp_schedule_cancel(system, &s), 0);
    UNIT_EQUAL(trp_schedule_is_cancelled(&s), 1);
    UNIT_EQUAL(trp_schedule_once(system, 0, a, none, &trp_string_type, "tick", 4, &s), TRP_OK);
    UNIT_WAIT(atomic_load(&times_count) == 1, 5000);
    UNIT_EQUAL(trp_schedule_cancel(system, &s), 0);
    UNIT_EQUAL(trp_schedule_is_cancelled(&s), 0);
    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];

        UNIT_EQUAL(
            trp_schedule_repeat(system, 60000, 1, a, none, &trp_string_type, "x", 1, &contested),
            TRP_OK);
        atomic_store(&winners, 0);
        for (int i = 0; i < 4; i++) {
            UNIT_EQUAL(pthread_create(&threads[i], NULL, cancel_main, system), 0);
        }
        for (int i = 0; i < 4; i++) {
            UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
        }
        UNIT_EQUAL(atomic_load(&winners), 1);
    }
    stage_close(system);
}

/* SCH-06: the message is sent before the receiver is checked, so there is exactly one dead
 * letter */
static void
a_repetition_ends_with_its_receiver(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_schedule s = TRP_SCHEDULE_NONE;
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &clock_behaviour, "a");
    trp_ref b = stage_spawn(system, &clock_behaviour, "b");

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_EQUAL(trp_schedule_repeat(system, 2, 2, a, none, &trp_string_type, "x", 1, &s), TRP_OK);
    atomic_store(&times_count, 0);
    UNIT_EQUAL(trp_schedule_repeat(system, 2, 2, b, none, &trp_string_type, "tick", 4, NULL),
               TRP_OK);
    UNIT_WAIT(atomic_load(&times_count) >= 20, 10000);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STALE], 1);
    UNIT_EQUAL(trp_schedule_cancel(system, &s), 0);
    UNIT_EQUAL(trp_schedule_is_cancelled(&s), 0);
    stage_close(system);
}

/* ---- functions ------------------------------------------------------------------------------- */

static atomic_uint runs;
static pthread_t test_thread;

static void
run_note(void *arg)
{
    char name[16] = "";

    (void)arg;
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    UNIT_TRUE(strcmp(name, "trp-timer") != 0 && !pthread_equal(pthread_self(), test_thread));
    atomic_fetch_add(&runs, 1);
}

static void
run_count(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

/* SCH-01, SCH-09 */
static void
a_function_runs_on_a_dispatcher(void)
{
    static atomic_uint never;
    trp_schedule s = TRP_SCHEDULE_NONE;
    trp_system *system = stage_open();

    test_thread = pthread_self();
    atomic_store(&runs, 0);
    atomic_store(&never, 0);
    UNIT_EQUAL(trp_schedule_run(system, 1, 0, NULL, run_note, NULL, NULL), TRP_OK);
    UNIT_EQUAL(trp_schedule_run(system, 1, 0, "pinned", run_note, NULL, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&runs) == 2, 5000);
    UNIT_EQUAL(trp_schedule_run(system, 1, 1, NULL, run_note, NULL, &s), TRP_OK);
    UNIT_WAIT(atomic_load(&runs) >= 12, 5000);
    UNIT_EQUAL(trp_schedule_cancel(system, &s), 1);
    UNIT_EQUAL(trp_schedule_run(system, 1, 0, "none-such", run_count, &never, NULL), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "cannot run on dispatcher none-such"), 5000);
    UNIT_EQUAL(atomic_load(&never), 0);
    stage_close(system);
}

/* A world whose clock a function moves. */
static trpi_world *real;
static _Atomic uint64_t moved_ns;

static uint64_t
moved_mono(trpi_world *world)
{
    (void)world;
    return trpi_world_mono_ns(real) + atomic_load(&moved_ns);
}
static int64_t
moved_wall(trpi_world *world)
{
    (void)world;
    return trpi_world_wall_ms(real);
}
static uint64_t
moved_random(trpi_world *world)
{
    (void)world;
    return trpi_world_random(real);
}
static void
moved_free(trpi_world *world)
{
    (void)world;
}
static const trpi_world_ops moved_ops = { .name = "moved",
                                          .mono_ns = moved_mono,
                                          .wall_ms = moved_wall,
                                          .random_u64 = moved_random,
                                          .free = moved_free };

#define STOP_MS 600000u /* longer than any thread waits for a core */

static void
run_slowly(void *arg)
{
    atomic_fetch_add(&moved_ns, (STOP_MS + 50u) * UINT64_C(1000000));
    atomic_fetch_add((atomic_uint *)arg, 1);
}

/* SCH-05, DISP-14: functions that are left run at the end, within stop_ms; then none can be
 * added */
static void
what_is_left_runs_at_the_end(void)
{
    static atomic_uint ran;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_scheduler_options scheduler = TRP_SCHEDULER_OPTIONS_INIT;
    trpi_world world = { .ops = &moved_ops };
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &clock_behaviour, "a");

    atomic_store(&ran, 0);
    UNIT_EQUAL(trp_schedule_run(system, 60000, 0, NULL, run_count, &ran, NULL), TRP_OK);
    UNIT_EQUAL(trp_schedule_run(system, 60000, 60000, NULL, run_count, &ran, NULL), TRP_OK);
    UNIT_EQUAL(trp_schedule_once(system, 60000, a, none, &trp_string_type, "x", 1, NULL), TRP_OK);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    UNIT_EQUAL(atomic_load(&ran), 2);
    UNIT_EQUAL(trp_schedule_run(system, 1, 0, NULL, run_count, &ran, NULL), TRP_ECLOSED);
    UNIT_EQUAL(trp_schedule_once(system, 1, a, none, &trp_string_type, "x", 1, NULL), TRP_ECLOSED);
    trp_system_free(system);
    UNIT_EQUAL(atomic_load(&ran), 2);

    UNIT_REQUIRE(trpi_world_real_new(&real) == TRP_OK);
    scheduler.stop_ms = STOP_MS; /* one that takes longer uses it up */
    options.scheduler = &scheduler;
    UNIT_REQUIRE(trpi_system_new_in(&world, "moved", &options, &system) == TRP_OK);
    atomic_store(&ran, 0);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_schedule_run(system, 2 * STOP_MS, 0, NULL, run_slowly, &ran, NULL), TRP_OK);
    }
    UNIT_EQUAL(trp_system_stop(system, 2 * STOP_MS), TRP_OK);
    trp_system_free(system);
    trpi_world_free(real);
    UNIT_EQUAL(atomic_load(&ran), 1);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static trp_err
limits_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "limits")) {
        UNIT_EQUAL(trp_timer_once(ctx, 1, TRP_DELAY_TICKS_MAX, &trp_string_type, "x", 1), TRP_OK);
        UNIT_EQUAL(trp_timer_once(ctx, 2, TRP_DELAY_TICKS_MAX + 1u, &trp_string_type, "x", 1),
                   TRP_EINVAL);
        UNIT_EQUAL(trp_timer_repeat(ctx, 3, 1, 0, &trp_string_type, "x", 1), TRP_EINVAL);
        stage_note("done");
    }
    return TRP_OK;
}

/* SCH-10, TRP-15, DISP-14: at each limit, and one past it */
static void
what_is_out_of_range_is_refused(void)
{
    const trp_behaviour limits = TRP_BEHAVIOUR_INIT("limits", char, limits_receive);
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_scheduler_options scheduler = TRP_SCHEDULER_OPTIONS_INIT;
    const uint64_t longest = (uint64_t)TRP_DELAY_TICKS_MAX * 10;
    trp_system *system;
    trp_ref a;

    system = stage_open();
    stage_tell(system, stage_spawn(system, &limits, "l"), "limits");
    STAGE_EXPECT("done");
    stage_close(system);

    options.scheduler = &scheduler;
    scheduler.tick_ms = 10;
    system = stage_open_with(options);
    a = stage_spawn(system, &clock_behaviour, "a");
#define ONCE(delay) trp_schedule_once(system, delay, a, none, &trp_string_type, "x", 1, NULL)
#define REPEAT(interval)                                                                           \
    trp_schedule_repeat(system, 9999, interval, a, none, &trp_string_type, "x", 1, NULL)
    UNIT_EQUAL(ONCE(longest), TRP_OK);
    UNIT_EQUAL(ONCE(longest + 1), TRP_EINVAL);
    UNIT_EQUAL(REPEAT(longest), TRP_OK);
    UNIT_EQUAL(REPEAT(longest + 1), TRP_EINVAL);
    UNIT_EQUAL(REPEAT(10), TRP_OK);
    UNIT_EQUAL(REPEAT(9), TRP_EINVAL);
    UNIT_EQUAL(REPEAT(0), TRP_EINVAL);
    UNIT_EQUAL(trp_schedule_run(system, 1, 0, NULL, NULL, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_schedule_once(system, 1, none, none, &trp_string_type, "x", 1, NULL),
               TRP_EINVAL);
    stage_close(system);

    {
        static const struct {
            uint32_t tick_ms, slots;
            trp_err err;
        } rows[] = { { 1000, 2, TRP_OK },  { 1001, 2, TRP_EINVAL }, { 1, 4096, TRP_OK },
                     { 1, 1, TRP_EINVAL }, { 1, 8192, TRP_EINVAL }, { 1, 100, TRP_EINVAL } };

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            scheduler.tick_ms = rows[i].tick_ms;
            scheduler.ticks_per_wheel = rows[i].slots;
            system = NULL;
            UNIT_EQUAL(trp_system_new("t", &options, &system), rows[i].err);
            if (system != NULL) {
                stage_close(system);
            }
        }
    }
}

UNIT_BEGIN("scheduler")
UNIT(the_nth_time_is_start_plus_n_intervals)
UNIT(a_message_comes_from_actors_and_from_outside)
UNIT(cancelling_tells_whether_it_came_in_time)
UNIT(a_repetition_ends_with_its_receiver)
UNIT(a_function_runs_on_a_dispatcher)
UNIT(what_is_left_runs_at_the_end)
UNIT(what_is_out_of_range_is_refused)
UNIT_END
