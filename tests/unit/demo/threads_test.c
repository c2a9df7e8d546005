/* threads_test.c - the executor of a demonstration: threads that come and go while jobs run. */
#include <stdatomic.h>

#include "cluster/demo/threads.h"
#include "tests/unit/unit.h"

#define DEADLINE_MS 60000

/* A job of the test: it waits in the gate until it is open. */
typedef struct job {
    atomic_int runs;
    uint32_t thread; /* that ran it last */
} job;

static trpi_stage *stage;
static trpi_demo_threads *threads;
static job jobs[TRPI_STAGE_ACTORS_MAX];
static atomic_uint inside, gate_open, handled;

static void
job_run(void *arg, trp_dispatcher_job *opaque)
{
    job *of = (job *)(void *)opaque;
    UNIT_TRUE(arg == &inside);
    atomic_fetch_add(&inside, 1);
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    atomic_fetch_sub(&inside, 1);
    of->thread = trpi_demo_threads_current();
    atomic_fetch_add(&of->runs, 1);
    atomic_fetch_add(&handled, 1);
}

static void
threads_open(uint32_t count, bool open)
{
    memset(jobs, 0, sizeof jobs);
    atomic_store(&inside, 0);
    atomic_store(&handled, 0);
    atomic_store(&gate_open, open);
    UNIT_REQUIRE(trpi_stage_new(&stage) == TRP_OK);
    UNIT_REQUIRE(trpi_demo_threads_new(stage, job_run, &inside, &threads) == TRP_OK);
    UNIT_REQUIRE(trpi_demo_threads_set(threads, count) == TRP_OK);
}

static void
threads_close(void)
{
    atomic_store(&gate_open, 1);
    trpi_demo_threads_free(threads);
    trpi_stage_free(stage);
}

static void
jobs_push(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        trpi_demo_threads_push(threads, (trp_dispatcher_job *)(void *)&jobs[i]);
    }
}

static uint32_t
shown(void)
{
    trpi_stage_figures figures;
    trpi_stage_figures_get(stage, &figures);
    return figures.threads;
}

/* UJ-44: Add Task: a job that waits since all threads are busy is taken by the added one. */
static void
an_added_thread_takes_what_waits(void)
{
    threads_open(2, false);
    UNIT_EQUAL(shown(), 2);
    UNIT_EQUAL(trpi_demo_threads_current(), TRPI_STAGE_NOBODY);
    jobs_push(0, 5);
    UNIT_WAIT(atomic_load(&inside) == 2, DEADLINE_MS);
    UNIT_EQUAL(trpi_demo_threads_set(threads, 3), TRP_OK);
    UNIT_EQUAL(shown(), 3);
    UNIT_WAIT(atomic_load(&inside) == 3, DEADLINE_MS);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 5, DEADLINE_MS);
    for (int i = 0; i < 5; i++) {
        UNIT_EQUAL(atomic_load(&jobs[i].runs), 1);
        UNIT_TRUE(jobs[i].thread < 3);
    }
    threads_close();
}

/* UJ-44: Remove Task: a busy thread ends after its job and takes no other one; until then it is
 * shown. One that is wanted again in between stays. threads-T1. */
static void
a_removed_thread_ends_after_its_job(void)
{
    threads_open(3, false);
    jobs_push(0, 3);
    UNIT_WAIT(atomic_load(&inside) == 3, DEADLINE_MS);
    UNIT_EQUAL(trpi_demo_threads_set(threads, 1), TRP_OK);
    UNIT_EQUAL(shown(), 3);
    UNIT_EQUAL(trpi_demo_threads_set(threads, 2), TRP_OK);
    jobs_push(3, 100);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 103, DEADLINE_MS);
    UNIT_WAIT(shown() == 2, DEADLINE_MS);
    for (int i = 3; i < 103; i++) {
        UNIT_TRUE(jobs[i].thread < 2);
    }
    threads_close();
}

/* Idle threads end at once, and come again. */
static void
idle_threads_come_and_go(void)
{
    threads_open(1, true);
    for (uint32_t i = 0; i < 20; i++) {
        UNIT_EQUAL(trpi_demo_threads_set(threads, 4), TRP_OK);
        UNIT_EQUAL(shown(), 4);
        UNIT_EQUAL(trpi_demo_threads_set(threads, 1), TRP_OK);
        UNIT_WAIT(shown() == 1, DEADLINE_MS);
    }
    UNIT_EQUAL(trpi_demo_threads_set(threads, TRPI_STAGE_THREADS_MAX), TRP_OK);
    UNIT_EQUAL(shown(), TRPI_STAGE_THREADS_MAX);
    threads_close();
}

/* No job is lost or run twice while the number of threads changes. threads-T2. */
static void
each_job_runs_once_while_threads_change(void)
{
    threads_open(2, true);
    for (uint32_t round = 1; round <= 50; round++) {
        jobs_push(0, TRPI_STAGE_ACTORS_MAX / 2);
        UNIT_EQUAL(trpi_demo_threads_set(threads, 1 + round * 5 % 8), TRP_OK);
        jobs_push(TRPI_STAGE_ACTORS_MAX / 2, TRPI_STAGE_ACTORS_MAX / 2);
        UNIT_EQUAL(trpi_demo_threads_set(threads, 1 + round * 3 % 8), TRP_OK);
        UNIT_WAIT(atomic_load(&handled) == round * TRPI_STAGE_ACTORS_MAX, DEADLINE_MS);
    }
    for (uint32_t i = 0; i < TRPI_STAGE_ACTORS_MAX; i++) {
        UNIT_EQUAL(atomic_load(&jobs[i].runs), 50);
    }
    threads_close();
}

UNIT_BEGIN("demo_threads")
UNIT(an_added_thread_takes_what_waits)
UNIT(a_removed_thread_ends_after_its_job)
UNIT(idle_threads_come_and_go)
UNIT(each_job_runs_once_while_threads_change)
UNIT_END
