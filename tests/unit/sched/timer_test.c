/* timer_test.c - timers of a scheduler, and reclamation by quiescent states. */
#include "tests/unit/sched/desk.h"

#include <stdatomic.h>

static trpi_run_result
on_run(void *data, trpi_task *task, uint32_t handoff)
{
    _Atomic uint32_t *go = *(_Atomic uint32_t **)(void *)(task + 1);

    (void)data;
    (void)handoff;
    atomic_store(go, 1); /* the run has begun */
    while (atomic_load(go) != 2) {
        unit_pause();
    }
    return TRPI_RUN_IDLE;
}

static void
on_thread(void *arg, trpi_worker *worker)
{
    (void)arg;
    trpi_worker_loop(worker);
}

static void
start(void)
{
    static const trpi_sched_ops ops = { on_run, on_thread, NULL, NULL };
    trpi_sched_options options = { .workers = 2, .ops = &ops };

    desk_open(options);
}

static void
note(void *arg, uint64_t a, uint64_t b)
{
    _Atomic uint64_t *last = arg;

    atomic_store(last, a * 100 + b);
}

static void
a_timer_fires_once_and_never_early(void)
{
    _Atomic uint64_t last = 0;
    uint64_t id, before;

    start();
    before = trpi_world_mono_ns(world);
    UNIT_EQUAL(trpi_timer_add(sched, 20, note, &last, 7, 3, &id), TRP_OK);
    UNIT_TRUE(id != 0);
    UNIT_WAIT(atomic_load(&last) == 703, 5000);
    UNIT_TRUE(trpi_world_mono_ns(world) - before >= 20000000);
    UNIT_FALSE(trpi_timer_cancel(sched, id));
    desk_close();
}

static void
a_cancelled_timer_does_not_fire(void)
{
    _Atomic uint64_t last = 0, other = 0;
    uint64_t id, id_other, round = 0;
    bool in_time = false;

    start();
    while (!in_time && round++ < 100) { /* a thread may be late for its timer */
        UNIT_EQUAL(trpi_timer_add(sched, 30, note, &last, round, 0, &id), TRP_OK);
        in_time = trpi_timer_cancel(sched, id);
        UNIT_FALSE(trpi_timer_cancel(sched, id));
    }
    UNIT_TRUE(in_time);
    UNIT_EQUAL(trpi_timer_add(sched, 60, note, &other, 1, 1, &id_other), TRP_OK);
    UNIT_WAIT(atomic_load(&other) != 0, 5000);
    UNIT_TRUE(atomic_load(&last) < round * 100); /* those before it may have rung, even now */
    desk_close();
}

static void
a_timer_that_waits_has_an_age(void)
{
    _Atomic uint64_t last = 0;
    uint64_t id, age_ns = 0, before;

    start();
    before = trpi_world_mono_ns(world);
    UNIT_EQUAL(trpi_timer_add(sched, 3600000, note, &last, 1, 1, &id), TRP_OK);
    UNIT_WAIT(trpi_timer_age(sched, id, &age_ns) && age_ns >= 20000000, 60000);
    UNIT_TRUE(age_ns <= trpi_world_mono_ns(world) - before);
    UNIT_TRUE(trpi_timer_cancel(sched, id));
    UNIT_FALSE(trpi_timer_age(sched, id, &age_ns));
    UNIT_FALSE(trpi_timer_age(sched, UINT64_MAX, &age_ns)); /* no such entry */
    UNIT_EQUAL(trpi_timer_add(sched, 1, note, &last, 1, 1, &id), TRP_OK);
    UNIT_WAIT(atomic_load(&last) != 0, 60000);
    UNIT_FALSE(trpi_timer_age(sched, id, &age_ns)); /* it has fired */
    UNIT_EQUAL(trpi_timer_add(sched, UINT64_MAX, note, &last, 1, 1, &id), TRP_OK);
    UNIT_TRUE(trpi_timer_age(sched, id, &age_ns) && age_ns < 60000000000);
    desk_close();
}

static void
an_earlier_timer_wakes_the_thread_that_waits_for_a_later_one(void)
{
    _Atomic uint64_t last = 0;
    uint64_t id;

    start();
    UNIT_EQUAL(trpi_timer_add(sched, 3600000, note, &last, 9, 9, &id), TRP_OK);
    UNIT_EQUAL(trpi_timer_add(sched, 5, note, &last, 1, 2, &id), TRP_OK);
    UNIT_WAIT(atomic_load(&last) == 102, 5000);
    desk_close();
}

static void
after_a_stop_no_timer_is_taken(void)
{
    _Atomic uint64_t last = 0;
    uint64_t id;

    start();
    UNIT_TRUE(trpi_sched_stop(sched, 10000));
    UNIT_EQUAL(trpi_timer_add(sched, 1, note, &last, 1, 1, &id), TRP_ECLOSED);
    desk_close();
}

static void
free_noted(void *object)
{
    atomic_store((_Atomic uint32_t *)object, 1);
}

static void
a_retired_object_waits_for_a_foreign_reader(void)
{
    _Atomic uint32_t freed = 0;
    uint32_t phase;
    uint64_t now;

    start();
    phase = trpi_sched_enter(sched);
    trpi_retire(sched, free_noted, (void *)&freed);
    now = unit_now_ms();
    UNIT_WAIT(unit_now_ms() > now + 30, 5000); /* many grace steps */
    UNIT_EQUAL(atomic_load(&freed), 0);
    trpi_sched_leave(sched, phase);
    UNIT_WAIT(atomic_load(&freed) == 1, 5000);
    desk_close();
}

static void
a_retired_object_waits_for_a_run_under_way(void)
{
    struct {
        trpi_task task;
        _Atomic uint32_t *go;
    } job;
    _Atomic uint32_t go = 0, freed = 0;
    uint64_t now;

    memset(&job, 0, sizeof(job));
    job.go = &go;
    start();
    trpi_sched_inject(sched, &job.task);
    UNIT_WAIT(atomic_load(&go) == 1, 5000);
    trpi_retire(sched, free_noted, (void *)&freed);
    now = unit_now_ms();
    UNIT_WAIT(unit_now_ms() > now + 30, 5000);
    UNIT_EQUAL(atomic_load(&freed), 0);
    atomic_store(&go, 2);
    UNIT_WAIT(atomic_load(&freed) == 1, 5000);
    desk_close();
}

static void
what_was_retired_is_freed_at_the_end(void)
{
    _Atomic uint32_t freed = 0;
    uint32_t phase;

    start();
    phase = trpi_sched_enter(sched);
    trpi_retire(sched, free_noted, (void *)&freed);
    trpi_sched_leave(sched, phase);
    desk_close();
    UNIT_EQUAL(atomic_load(&freed), 1);
}

static void
not_due(void *arg, uint64_t a, uint64_t b)
{
    (void)arg;
    (void)a;
    (void)b;
}

#define PAIRS 20000u

/* Of this thread: what others do meanwhile, and pauses, are not in it. */
static uint64_t
cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The best of several rounds of adding and cancelling PAIRS timers, in ns. */
static uint64_t
pairs_ns(void)
{
    uint64_t best = UINT64_MAX, id;

    for (int round = 0; round < 5; round++) {
        uint64_t begin = cpu_ns(), took;

        for (uint32_t i = 0; i < PAIRS; i++) {
            UNIT_REQUIRE(trpi_timer_add(sched, 600000 + i * 37u, not_due, NULL, 0, 0, &id) ==
                         TRP_OK);
            UNIT_REQUIRE(trpi_timer_cancel(sched, id));
        }
        took = cpu_ns() - begin;
        best = took < best ? took : best;
    }
    return best;
}

/* With a million pending timers, adding and cancelling cost what they cost with none. The ratio
 * leaves room for cache misses; what grows with their number would be 100 and more. */
static void
a_million_pending_timers_make_nothing_slower(void)
{
    uint64_t empty_ns, full_ns, id;

    start();
    empty_ns = pairs_ns();
    for (uint32_t i = 0; i < 1000000; i++) {
        UNIT_REQUIRE(trpi_timer_add(sched, 100000 + i * 7u, not_due, NULL, 0, 0, &id) == TRP_OK);
    }
    full_ns = pairs_ns();
    printf("  adding and cancelling: %u ns, with a million pending %u ns\n",
           (unsigned)(empty_ns / PAIRS), (unsigned)(full_ns / PAIRS));
    UNIT_TRUE(full_ns < 25 * empty_ns);
    desk_close();
}

UNIT_BEGIN("timer")
UNIT(a_timer_fires_once_and_never_early)
UNIT(a_cancelled_timer_does_not_fire)
UNIT(a_timer_that_waits_has_an_age)
UNIT(an_earlier_timer_wakes_the_thread_that_waits_for_a_later_one)
UNIT(after_a_stop_no_timer_is_taken)
UNIT(a_retired_object_waits_for_a_foreign_reader)
UNIT(a_retired_object_waits_for_a_run_under_way)
UNIT(what_was_retired_is_freed_at_the_end)
UNIT(a_million_pending_timers_make_nothing_slower)
UNIT_END
