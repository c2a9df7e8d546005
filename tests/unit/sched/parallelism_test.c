/* parallelism_test.c - workers are parked and come back, and no task waits for a parked one. The
 * decisions of trials are tested by parallelism_trial_test.c: here one worker or two are so clearly
 * better that no load of the machine changes it. */
#include "tests/unit/sched/desk.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "sched/worker.h"

#define JOBS 1000
#define UNITS 1000      /* of work in a run: so that the slowest build does enough in a second */
#define UNITS_WORSE 100 /* with the limit that is worse */

typedef struct job {
    trpi_task task; /* first */
    trpi_run_result (*run)(struct job *job, trpi_worker *worker);
    _Atomic uint32_t runs;
} job;

typedef struct data {
    trpi_worker *worker;
    _Atomic uint64_t work;
} data;

static _Atomic bool hindering, over, go;

static trpi_run_result
on_run(void *at, trpi_task *task, uint32_t handoff)
{
    job *j = (job *)(void *)task;

    (void)handoff;
    return j->run(j, ((data *)at)->worker);
}

static void
on_thread(void *arg, trpi_worker *worker)
{
    (void)arg;
    ((data *)trpi_worker_data(worker))->worker = worker;
    trpi_worker_loop(worker);
}

static uint64_t
on_work(void *at)
{
    return atomic_load(&((data *)at)->work);
}

static void
start(void)
{
    static const trpi_sched_ops ops = { .run = on_run, .thread = on_thread, .work = on_work };
    trpi_sched_options options = { .workers = 2, .worker_bytes = sizeof(data), .ops = &ops };

    atomic_store(&hindering, false);
    atomic_store(&over, false);
    atomic_store(&go, false);
    desk_open(options);
}

static uint32_t
limit(void)
{
    return atomic_load(&sched->limit);
}

/* Has a trial ended with this limit? Then it is over for 8 ms and more. */
static bool
rests_at(uint32_t want)
{
    const trpi_parallelism *parallelism = &sched->parallelism;
    bool rests = false;

    if (atomic_exchange_explicit(&sched->parallelism.locked, 1, memory_order_acquire) == 0) {
        rests = limit() == want && parallelism->measures >= 2 &&
                parallelism->until_ns - parallelism->since_ns > 7000000;
        atomic_store_explicit(&sched->parallelism.locked, 0, memory_order_release);
    }
    return rests;
}

/* Two do less in a run than one if they hinder each other, else one does less than two. */
static trpi_run_result
run_hindered(job *j, trpi_worker *worker)
{
    data *mine = trpi_worker_data(worker);
    bool worse = atomic_load(&hindering) == (limit() != 1);

    atomic_fetch_add(&mine->work, worse ? UNITS_WORSE : UNITS);
    atomic_fetch_add(&j->runs, 1);
    return atomic_load(&over) ? TRPI_RUN_IDLE : TRPI_RUN_AGAIN;
}

static trpi_run_result
run_once(job *j, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&j->runs, 1);
    return TRPI_RUN_IDLE;
}

static trpi_run_result
run_stuck(job *j, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&j->runs, 1);
    while (!atomic_load(&go)) {
        unit_pause();
    }
    return TRPI_RUN_IDLE;
}

static job *
many(void)
{
    job *jobs = trpi_alloc(JOBS * sizeof *jobs);

    UNIT_REQUIRE(jobs != NULL);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].run = run_hindered;
        trpi_sched_inject(sched, &jobs[i].task);
    }
    return jobs;
}

static uint32_t
least_runs(job *jobs)
{
    uint32_t least = UINT32_MAX;

    for (int i = 0; i < JOBS; i++) {
        uint32_t runs = atomic_load(&jobs[i].runs);

        least = runs < least ? runs : least;
    }
    return least;
}

static void
workers_that_hinder_each_other_become_one_and_more_again(void)
{
    uint32_t before;
    job *jobs;

    start();
    UNIT_EQUAL(limit(), 2);
    atomic_store(&hindering, true);
    jobs = many();
    UNIT_WAIT(rests_at(1), 60000);
    before = least_runs(jobs); /* what the second one had goes on (parallelism-G1) */
    UNIT_WAIT(least_runs(jobs) > before + 1, 5000);
    atomic_store(&hindering, false);
    UNIT_WAIT(rests_at(2), 60000);
    atomic_store(&over, true);
    desk_close();
    trpi_free(jobs);
}

/* parallelism-G2 */
static void
a_parked_worker_runs_what_waits_behind_a_stuck_one(void)
{
    job stuck = { .run = run_stuck };
    job behind = { .run = run_once };
    job *jobs;

    start();
    atomic_store(&hindering, true);
    jobs = many();
    UNIT_WAIT(limit() == 1, 8000);
    trpi_sched_inject(sched, &stuck.task);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 5000);
    trpi_sched_inject(sched, &behind.task);
    UNIT_WAIT(atomic_load(&behind.runs) == 1, 5000);
    atomic_store(&over, true);
    atomic_store(&go, true);
    desk_close();
    trpi_free(jobs);
}

/* parallelism-G3, parallelism-G4 */
static void
when_there_is_nothing_to_do_nobody_sits_out(void)
{
    job *jobs;

    start();
    atomic_store(&hindering, true);
    jobs = many();
    UNIT_WAIT(limit() == 1, 8000);
    atomic_store(&over, true);
    UNIT_WAIT(limit() == 2, 5000);
    desk_close();
    trpi_free(jobs);
}

static void
a_stop_reaches_parked_workers(void)
{
    job *jobs;

    start();
    atomic_store(&hindering, true);
    jobs = many();
    UNIT_WAIT(limit() == 1, 8000);
    UNIT_TRUE(trpi_sched_stop(sched, 10000)); /* in the midst of it */
    UNIT_EQUAL(limit(), 0);
    trpi_sched_free(sched);
    trpi_world_free(world);
    trpi_free(jobs);
}

UNIT_BEGIN("parallelism")
UNIT(workers_that_hinder_each_other_become_one_and_more_again)
UNIT(a_parked_worker_runs_what_waits_behind_a_stuck_one)
UNIT(when_there_is_nothing_to_do_nobody_sits_out)
UNIT(a_stop_reaches_parked_workers)
UNIT_END
