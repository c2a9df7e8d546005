/* sched_test.c - tasks without actors: each is run, none waits behind a stuck worker, idle means
 * idle. */
#include "tests/unit/sched/desk.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "sched/worker.h"

typedef struct job {
    trpi_task task; /* first */
    trpi_run_result (*run)(struct job *job, trpi_worker *worker);
    _Atomic uint32_t runs;
    _Atomic uint32_t again;   /* how often to say AGAIN */
    struct job *wakes;        /* submitted by the run */
    _Atomic uint32_t *blocks; /* the run lasts until this is not 0 */
    _Atomic uint32_t worker;  /* index of the worker of the last run */
    bool offered;             /* may be retained by the present run */
    uint32_t handoff;         /* TRPI_HANDOFF_*, or the id of the retained task */
    struct job *partner;
    uint64_t written, visits; /* who runs it or holds it as a guest; to the partner */
} job;

static trpi_run_result
on_run(void *data, trpi_task *task, uint32_t handoff)
{
    job *j = (job *)(void *)task;
    trpi_worker *worker = *(trpi_worker **)data;

    atomic_store(&j->worker, trpi_worker_index(worker));
    j->offered = handoff != TRPI_HANDOFF_OFF;
    j->handoff = handoff;
    return j->run(j, worker);
}

static void
on_thread(void *arg, trpi_worker *worker)
{
    (void)arg;
    *(trpi_worker **)trpi_worker_data(worker) = worker;
    trpi_worker_loop(worker);
}

static void
start(uint32_t workers)
{
    static const trpi_sched_ops ops = { on_run, on_thread, NULL, NULL };
    trpi_sched_options options = {
        .workers = workers, .worker_bytes = sizeof(trpi_worker *), .ops = &ops, .name = "test"
    };

    desk_open(options);
}

static trpi_run_result
run_simple(job *j, trpi_worker *worker)
{
    struct job *wakes = j->wakes;
    bool again = j->again > 0;

    j->wakes = NULL;
    if (wakes != NULL) {
        trpi_sched_ready(worker, &wakes->task);
    }
    while (j->blocks != NULL && atomic_load(j->blocks) == 0) {
        unit_pause();
    }
    if (again) {
        j->again--;
    }
    atomic_fetch_add(&j->runs, 1); /* the last touch when the task is given up */
    return again ? TRPI_RUN_AGAIN : TRPI_RUN_IDLE;
}

static uint32_t
runs_sum(job *jobs, uint32_t count)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum += atomic_load(&jobs[i].runs);
    }
    return sum;
}

static void
every_injected_task_runs_exactly_once(void)
{
    enum { JOBS = 5000 };
    job *jobs = trpi_alloc(JOBS * sizeof *jobs);

    start(2);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].run = run_simple;
        trpi_sched_inject(sched, &jobs[i].task);
    }
    UNIT_WAIT(runs_sum(jobs, JOBS) == JOBS, 20000);
    desk_close();
    for (int i = 0; i < JOBS; i++) {
        UNIT_EQUAL(jobs[i].runs, 1);
    }
    trpi_free(jobs);
}

static void
a_task_that_says_again_runs_again(void)
{
    job j = { .run = run_simple, .again = 1000 };

    start(1);
    trpi_sched_inject(sched, &j.task);
    UNIT_WAIT(atomic_load(&j.runs) == 1001, 20000);
    desk_close();
}

/* More than ring and slot hold: the overflow goes through the injection queue. */
static trpi_run_result
run_wakes_many(job *j, trpi_worker *worker)
{
    job *others = j + 1;

    for (uint32_t i = 0; i < 3 * TRPI_RING_TASKS; i++) {
        trpi_sched_ready(worker, &others[i].task);
    }
    atomic_fetch_add(&j->runs, 1);
    return TRPI_RUN_IDLE;
}

static void
what_one_run_wakes_beyond_the_ring_is_not_lost(void)
{
    enum { JOBS = 3 * TRPI_RING_TASKS + 1 };

    for (uint32_t workers = 1; workers <= 2; workers++) {
        job *jobs = trpi_alloc(JOBS * sizeof *jobs);

        start(workers);
        jobs[0].run = run_wakes_many;
        for (int i = 1; i < JOBS; i++) {
            jobs[i].run = run_simple;
        }
        trpi_sched_inject(sched, &jobs[0].task);
        UNIT_WAIT(runs_sum(jobs, JOBS) == JOBS, 20000);
        desk_close();
        trpi_free(jobs);
    }
}

/* sched-S2: the slot of a worker that is stuck in a run is stolen, even by one that slept
 * before. */
static void
a_task_behind_a_stuck_worker_is_taken(void)
{
    _Atomic uint32_t go = 0;
    job woken = { .run = run_simple };
    job stuck = { .run = run_simple, .wakes = &woken, .blocks = &go };

    start(2);
    trpi_sched_inject(sched, &stuck.task);
    UNIT_WAIT(atomic_load(&woken.runs) == 1, 20000);
    UNIT_EQUAL(atomic_load(&stuck.runs), 0);
    UNIT_TRUE(atomic_load(&woken.worker) != atomic_load(&stuck.worker));
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    desk_close();
}

enum { CROWD = 10 };
static job crowd[CROWD];
static _Atomic uint32_t crowd_in, crowd_left;

/* Submits all tasks of the crowd, one of which is in the slot then, and is stuck. */
static trpi_run_result
run_crowd(job *j, trpi_worker *worker)
{
    for (int i = 0; i < CROWD; i++) {
        trpi_sched_ready(worker, &crowd[i].task);
    }
    atomic_store(&crowd_in, trpi_worker_index(worker) + 1);
    return run_simple(j, worker);
}

/* The first stolen task counts those that are left. */
static trpi_run_result
run_taken(job *j, trpi_worker *worker)
{
    while (atomic_load(&crowd_in) == 0) {
        unit_pause();
    }
    if (atomic_load(&crowd_left) == UINT32_MAX) {
        atomic_store(&crowd_left,
                     trpi_ring_length(trpi_sched_worker(sched, atomic_load(&crowd_in) - 1)));
    }
    return run_simple(j, worker);
}

/* sleep-L4: from a stuck worker one task is stolen as a probe, and all of them in the end. */
static void
a_thief_takes_one_before_he_takes_half(void)
{
    _Atomic uint32_t go = 0;
    job stuck = { .run = run_crowd, .blocks = &go };

    memset(crowd, 0, sizeof crowd);
    for (int i = 0; i < CROWD; i++) {
        crowd[i].run = run_taken;
    }
    atomic_store(&crowd_in, 0);
    atomic_store(&crowd_left, UINT32_MAX);
    start(2);
    trpi_sched_inject(sched, &stuck.task);
    UNIT_WAIT(runs_sum(crowd, CROWD) == CROWD, 20000);
    UNIT_EQUAL(atomic_load(&stuck.runs), 0);
    UNIT_EQUAL(atomic_load(&crowd_left), CROWD - 2); /* one was stolen, one is in the slot */
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    desk_close();
}

static trpi_run_result
run_deferred(job *j, trpi_worker *worker)
{
    trpi_worker_defer_to(worker, (uint16_t)trpi_worker_index(worker));
    return atomic_fetch_add(&j->runs, 1) < 10 ? TRPI_RUN_DEFER : TRPI_RUN_IDLE;
}

static trpi_run_result
run_until(job *j, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&j->runs, 1);
    return atomic_load(j->blocks) == 0 ? TRPI_RUN_AGAIN : TRPI_RUN_IDLE;
}

static void
a_deferred_task_runs_though_its_worker_is_never_idle(void)
{
    _Atomic uint32_t go = 0;
    job busy = { .run = run_until, .blocks = &go };
    job deferred = { .run = run_deferred };

    start(1);
    trpi_sched_inject(sched, &busy.task);
    trpi_sched_inject(sched, &deferred.task);
    UNIT_WAIT(atomic_load(&deferred.runs) == 11, 20000);
    atomic_store(&go, 1);
    desk_close();
}

static void
a_private_worker_runs_its_tasks_and_ends(void)
{
    uint16_t home;

    start(1);
    for (int round = 0; round < 3; round++) {
        job j = { .run = run_simple, .again = 10 };

        UNIT_REQUIRE(trpi_sched_private_new(sched, "own", false, &home) == TRP_OK);
        UNIT_TRUE(home >= trpi_sched_pool_count(sched));
        j.task.dispatch = TRPI_DISPATCH_PRIVATE;
        atomic_store(&j.task.home, home);
        trpi_sched_inject(sched, &j.task);
        UNIT_WAIT(atomic_load(&j.runs) == 11, 20000);
        UNIT_EQUAL(atomic_load(&j.worker), home);
        trpi_sched_private_release(sched, home);
    }
    desk_close();
}

/* private-P2 */
static void
a_helper_that_sleeps_runs_a_task_of_an_idle_pool(void)
{
    trpi_private_options options = { .name = "helper", .helps = true };
    _Atomic uint32_t go = 0;
    job lent = { .run = run_simple, .again = 1 }, last = { .run = run_simple };
    job stuck = { .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
    uint16_t home;

    start(2);
    UNIT_FALSE(trpi_sched_lend(sched, &lent.task)); /* there is none yet */
    UNIT_REQUIRE(trpi_sched_private_open(sched, &options, &home) == TRP_OK);
    UNIT_WAIT(trpi_sched_lend(sched, &lent.task), 20000);
    UNIT_WAIT(atomic_load(&lent.runs) == 2, 20000);
    UNIT_TRUE(atomic_load(&lent.worker) < trpi_sched_pool_count(sched)); /* the second time */
    UNIT_WAIT(trpi_sched_lend(sched, &last.task), 20000);
    UNIT_WAIT(atomic_load(&last.runs) == 1, 20000);
    UNIT_EQUAL(atomic_load(&last.worker), home);
    trpi_sched_inject(sched, &stuck.task); /* a pool that is awake runs its tasks itself */
    UNIT_WAIT(atomic_load(&stuck.worker) != UINT32_MAX, 20000);
    UNIT_FALSE(trpi_sched_lend(sched, &last.task));
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    stuck = (job){ .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
    atomic_store(&go, 0);
    stuck.task.dispatch = TRPI_DISPATCH_PRIVATE;
    atomic_store(&stuck.task.home, home);
    trpi_sched_inject(sched, &stuck.task); /* so does a pool whose helper is busy */
    UNIT_WAIT(atomic_load(&stuck.worker) == home, 20000);
    UNIT_FALSE(trpi_sched_lend(sched, &last.task));
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    desk_close();
}

static _Atomic uint32_t ordered;

static trpi_run_result
run_in_order(job *j, trpi_worker *worker)
{
    (void)worker;
    j->again = atomic_fetch_add(&ordered, 1) + 1;
    atomic_fetch_add(&j->runs, 1);
    return TRPI_RUN_IDLE;
}

/* The tasks of a parked worker come before tasks that were injected meanwhile, in their own order,
 * or behind them. */
static void
a_list_is_injected_first_or_last(void)
{
    for (int first = 0; first < 2; first++) {
        _Atomic uint32_t go = 0;
        job stuck = { .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
        job waits = { .run = run_in_order },
            jobs[2] = { { .run = run_in_order }, { .run = run_in_order } };
        trpi_task_list list = { NULL, NULL };

        atomic_store(&ordered, 0);
        start(1);
        trpi_sched_inject(sched, &stuck.task);
        UNIT_WAIT(atomic_load(&stuck.worker) != UINT32_MAX, 20000);
        trpi_sched_inject(sched, &waits.task);
        trpi_inject_list(sched, &list, 0, first != 0); /* of none: nothing */
        trpi_task_list_push(&list, &jobs[0].task);
        trpi_task_list_push(&list, &jobs[1].task);
        trpi_inject_list(sched, &list, 2, first != 0);
        atomic_store(&go, 1);
        UNIT_WAIT(atomic_load(&waits.runs) + runs_sum(jobs, 2) == 3, 20000);
        UNIT_EQUAL(waits.again, first != 0 ? 3 : 1);
        UNIT_EQUAL(jobs[0].again, first != 0 ? 1 : 2);
        UNIT_EQUAL(jobs[1].again, first != 0 ? 2 : 3);
        desk_close();
    }
}

static _Atomic int nice_of_last;

static trpi_run_result
run_looks_at_its_priority(job *j, trpi_worker *worker)
{
    (void)worker;
    atomic_store(&nice_of_last, getpriority(PRIO_PROCESS, 0)); /* of the thread */
    atomic_fetch_add(&j->runs, 1);
    return TRPI_RUN_IDLE;
}

/* Where the process may; never without the option. */
static void
only_a_worker_with_the_option_gets_a_high_priority(void)
{
    int before = getpriority(PRIO_PROCESS, 0);

    start(1);
    for (int high = 0; high < 2; high++) {
        job j = { .run = run_looks_at_its_priority };
        uint16_t home;

        UNIT_REQUIRE(trpi_sched_private_new(sched, "priority", high != 0, &home) == TRP_OK);
        j.task.dispatch = TRPI_DISPATCH_PRIVATE;
        atomic_store(&j.task.home, home);
        trpi_sched_inject(sched, &j.task);
        UNIT_WAIT(atomic_load(&j.runs) == 1, 20000);
        UNIT_TRUE(atomic_load(&nice_of_last) == before ||
                  (high != 0 && atomic_load(&nice_of_last) < before));
        trpi_sched_private_release(sched, home);
    }
    desk_close();
}

static void
private_workers_end_at_their_limit(void)
{
    uint16_t homes[TRPI_PRIVATE_MAX];
    uint16_t more;
    uint32_t made = 0;

    start(1);
    while (made < TRPI_PRIVATE_MAX &&
           trpi_sched_private_new(sched, NULL, false, &homes[made]) == TRP_OK) {
        made++;
    }
    UNIT_EQUAL(made, TRPI_PRIVATE_MAX);
    UNIT_EQUAL(trpi_sched_private_new(sched, NULL, false, &more), TRP_ELIMIT);
    trpi_sched_private_release(sched, homes[0]);
    UNIT_EQUAL(trpi_sched_private_new(sched, NULL, false, &more), TRP_OK);
    UNIT_EQUAL(more, homes[0]);
    trpi_sched_urgent(sched, homes[1]); /* a wrong home is harmless: none of them is affine */
    trpi_sched_urgent(sched, TRPI_POOL_MAX + TRPI_PRIVATE_MAX);
    trpi_sched_urgent(sched, UINT16_MAX);
    desk_close();
}

static _Atomic bool asleep_in_run;

static trpi_run_result
run_looks_whether_it_sleeps(job *j, trpi_worker *worker)
{
    atomic_store(&asleep_in_run, atomic_load(&worker->asleep));
    atomic_fetch_add(&j->runs, 1);
    return TRPI_RUN_IDLE;
}

/* group-G1: there is no place for its thread; as soon as there is one the task runs. And a worker
 * that a task wakes does not count as asleep while it runs (retire-R1). */
static void
a_group_that_got_no_thread_tries_again(void)
{
    static const trpi_group_options options = { "late", 1, 3600000, 3600000 };
    uint16_t homes[TRPI_PRIVATE_MAX];
    job j = { .run = run_looks_whether_it_sleeps };
    trpi_worker *worker;

    start(1);
    UNIT_REQUIRE(trpi_sched_group_new(sched, 9, &options) == TRP_OK);
    for (uint32_t i = 0; i < TRPI_PRIVATE_MAX; i++) {
        UNIT_REQUIRE(trpi_sched_private_new(sched, NULL, false, &homes[i]) == TRP_OK);
    }
    j.task.dispatch = TRPI_DISPATCH_GROUP;
    j.task.number = 9;
    trpi_sched_inject(sched, &j.task);
    UNIT_EQUAL(atomic_load(&j.runs), 0);
    trpi_sched_private_release(sched, homes[0]);
    UNIT_WAIT(atomic_load(&j.runs) == 1, 20000);
    UNIT_EQUAL(trpi_sched_group_threads(sched, 9), 1);
    worker = trpi_sched_worker(sched, atomic_load(&j.worker));
    UNIT_WAIT(atomic_load(&worker->asleep), 20000);
    trpi_sched_inject(sched, &j.task);
    UNIT_WAIT(atomic_load(&j.runs) == 2, 20000);
    UNIT_FALSE(atomic_load(&asleep_in_run));
    desk_close();
}

static void
a_stop_with_a_stuck_worker_ends_at_its_deadline(void)
{
    _Atomic uint32_t go = 0;
    job stuck = { .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
    uint64_t before;

    start(2);
    trpi_sched_inject(sched, &stuck.task);
    UNIT_WAIT(atomic_load(&stuck.worker) != UINT32_MAX, 20000); /* its run has begun */
    before = unit_now_ms();
    UNIT_FALSE(trpi_sched_stop(sched, 50));
    UNIT_TRUE(unit_now_ms() - before >= 45);
    atomic_store(&go, 1);
    desk_close();
}

/* sched-S3: the law is that nothing wakes up; the measure is CPU time, of which a ticking thread
 * takes some in each of the looks, and the noise of a machine not in all. */
static void
an_idle_scheduler_takes_no_time(void)
{
    job j = { .run = run_simple };
    uint64_t start_ms, used = UINT64_MAX;

    start(4);
    trpi_sched_inject(sched, &j.task);
    UNIT_WAIT(atomic_load(&j.runs) == 1, 20000);
    start_ms = unit_now_ms();
    UNIT_WAIT(unit_now_ms() > start_ms + 50, 20000); /* spins, sentinel's last tick */
    for (int look = 0; look < 10 && used >= 5000; look++) {
        used = unit_cpu_us();
        start_ms = unit_now_ms();
        for (struct timespec pause = { 0, 500000000 }; unit_now_ms() < start_ms + 500;) {
            (void)nanosleep(&pause, NULL); /* looked at is that nothing happens in this time */
        }
        used = unit_cpu_us() - used;
    }
    UNIT_TRUE(used < 5000); /* under 1 % of a core */
    desk_close();
}

/* ---- retained tasks -------------------------------------------------------------------------- */

/* Runs until it is told not to, and is in no queue while it can be retained. */
static trpi_run_result
run_talks(job *j, trpi_worker *worker)
{
    if (atomic_load(j->blocks) != 0) {
        atomic_store(&j->again, 0);
        return TRPI_RUN_IDLE;
    }
    if (j->wakes != NULL) {
        trpi_sched_ready(worker, &j->wakes->task);
        j->wakes = NULL;
    }
    atomic_fetch_add(&j->runs, 1);
    return j->offered ? TRPI_RUN_RETAINED : TRPI_RUN_AGAIN;
}

static void
two_retained_tasks_let_others_run_and_end(void)
{
    _Atomic uint32_t over = 0;
    job late = { .run = run_simple };
    job woken = { .run = run_simple };
    job wakes = { .run = run_simple, .wakes = &woken }; /* the slot has its turn, too */
    job two[2] = { { .task.id = 1, .run = run_talks, .again = 1, .blocks = &over },
                   { .task.id = 2, .run = run_talks, .again = 1, .blocks = &over } };

    start(1);
    trpi_sched_inject(sched, &two[0].task);
    trpi_sched_inject(sched, &two[1].task);
    UNIT_WAIT(atomic_load(&two[0].runs) > 1000 && atomic_load(&two[1].runs) > 1000, 20000);
    trpi_sched_inject(sched, &late.task);
    UNIT_WAIT(atomic_load(&late.runs) == 1, 20000);
    trpi_sched_inject(sched, &wakes.task);
    UNIT_WAIT(atomic_load(&woken.runs) == 1, 20000);
    atomic_store(&over, 1);
    UNIT_WAIT(atomic_load(&two[0].again) == 0 && atomic_load(&two[1].again) == 0, 20000);
    desk_close();
}

/* Always has something to do, and long enough for two workers: its worker never searches. */
static trpi_run_result
run_for_ever(job *j, trpi_worker *worker)
{
    (void)worker;
    for (volatile uint32_t i = 0; i < 50000; i++) {
    }
    atomic_fetch_add(&j->runs, 1);
    return atomic_load(j->blocks) != 0 ? TRPI_RUN_IDLE : TRPI_RUN_AGAIN;
}

/* Writes to its partner while the worker retains that one. */
static trpi_run_result
run_visits(job *j, trpi_worker *worker)
{
    trpi_handoff *handoff = trpi_worker_handoff(worker);
    bool ends = atomic_load(j->blocks) != 0;

    j->written++;
    UNIT_FALSE(trpi_handoff_enter(handoff, &j->task)); /* it runs */
    if (j->handoff == j->partner->task.id && trpi_handoff_enter(handoff, &j->partner->task)) {
        j->partner->written++; /* plain: no thief runs it meanwhile */
        trpi_handoff_leave(handoff);
        j->visits++;
    }
    atomic_fetch_add(&j->runs, 1);
    if (ends) {
        atomic_store(&j->again, 0);
    }
    return ends ? TRPI_RUN_IDLE : j->offered ? TRPI_RUN_RETAINED : TRPI_RUN_AGAIN;
}

/* queue-Q1 */
static void
a_run_may_write_what_its_worker_keeps_and_no_thief_has_it_then(void)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        _Atomic uint32_t over = 0;
        job two[2] = { { .run = run_visits, .again = 1, .blocks = &over },
                       { .run = run_visits, .again = 1, .blocks = &over } };
        job busy[3];

        for (uint32_t i = 0; i < 2; i++) {
            two[i].task.id = i + 1;
            two[i].partner = &two[1 - i];
        }
        start(workers);
        for (int i = 0; i < 3; i++) { /* with two workers: they are stolen from each other */
            busy[i] = (job){ .run = run_for_ever, .blocks = &over };
            trpi_sched_inject(sched, &busy[i].task);
        }
        trpi_sched_inject(sched, &two[0].task);
        trpi_sched_inject(sched, &two[1].task);
        UNIT_WAIT(atomic_load(&two[0].runs) > 1000 && atomic_load(&two[1].runs) > 1000, 20000);
        for (int i = 0; i < 3; i++) { /* those two do not keep the others out */
            uint32_t before = atomic_load(&busy[i].runs);

            UNIT_WAIT(atomic_load(&busy[i].runs) > before + 10, 20000);
        }
        atomic_store(&over, 1);
        UNIT_WAIT(atomic_load(&two[0].again) == 0 && atomic_load(&two[1].again) == 0, 20000);
        desk_close();
        UNIT_EQUAL(two[0].written, atomic_load(&two[0].runs) + two[1].visits);
        UNIT_EQUAL(two[1].written, atomic_load(&two[1].runs) + two[0].visits);
        if (workers == 1) {
            trpi_handoff kept = { .task = &two[0].task, .steal_req = 1 };

            UNIT_FALSE(trpi_handoff_enter(&kept, &two[0].task)); /* a thief is there */
            UNIT_EQUAL(atomic_load(&kept.busy), 0);
            atomic_store(&kept.steal_req, 0);
            UNIT_FALSE(trpi_handoff_enter(&kept, &two[1].task));
            UNIT_TRUE(trpi_handoff_enter(&kept, &two[0].task));
            UNIT_EQUAL(atomic_load(&kept.busy), 1);
            trpi_handoff_leave(&kept);
            UNIT_EQUAL(atomic_load(&kept.busy), 0);
            kept.fenced = true;
            UNIT_FALSE(trpi_handoff_enter(&kept, &two[0].task));
        }
    }
}

static void
a_retained_task_runs_though_its_worker_is_never_idle(void)
{
    _Atomic uint32_t go = 0, over = 0;
    job busy = { .run = run_until, .blocks = &go };
    job kept = { .task.id = 1, .run = run_talks, .wakes = &busy, .blocks = &over };

    start(1);
    trpi_sched_inject(sched, &kept.task);
    UNIT_WAIT(atomic_load(&kept.runs) > 1000, 20000);
    atomic_store(&go, 1);
    desk_close(); /* with a retained task */
}

/* sched-S2 */
static void
the_retained_task_of_a_stuck_worker_is_stolen(void)
{
    _Atomic uint32_t go = 0, over = 0;
    job stuck = { .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
    job kept = { .task.id = 1, .run = run_talks, .wakes = &stuck, .blocks = &over };

    start(2);
    trpi_sched_inject(sched, &kept.task);
    UNIT_WAIT(atomic_load(&stuck.worker) != UINT32_MAX, 20000); /* its run has begun */
    uint32_t before = atomic_load(&kept.runs);
    UNIT_WAIT(atomic_load(&kept.runs) > before + 10, 20000);
    UNIT_EQUAL(atomic_load(&stuck.runs), 0);
    UNIT_TRUE(atomic_load(&kept.worker) != atomic_load(&stuck.worker));
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    desk_close();
}

/* sched-S2: a worker that is never idle rescues the retained task of another one all the same. */
static void
the_retained_task_of_a_stuck_worker_is_rescued_by_a_busy_one(void)
{
    enum { BUSY = 8 };
    _Atomic uint32_t go = 0, over = 0;
    job stuck = { .run = run_simple, .blocks = &go, .worker = UINT32_MAX };
    job kept = { .task.id = 1, .run = run_talks, .wakes = &stuck, .blocks = &over };
    job busy[BUSY];
    uint32_t at[2] = { 0, 0 };

    start(2);
    for (int i = 0; i < BUSY; i++) {
        busy[i] = (job){ .run = run_for_ever, .blocks = &over };
        trpi_sched_inject(sched, &busy[i].task);
    }
    for (int i = 0; i < BUSY; i++) {
        UNIT_WAIT(atomic_load(&busy[i].runs) > 100, 20000);
        at[atomic_load(&busy[i].worker) == 0 ? 0 : 1]++;
    }
    trpi_sched_inject(sched, &kept.task);
    UNIT_WAIT(atomic_load(&stuck.worker) != UINT32_MAX, 20000);
    uint32_t before = atomic_load(&kept.runs);
    if (at[0] > 0 && at[1] > 0) { /* else the other one is parked or searches, and steals it */
        UNIT_WAIT(atomic_load(&kept.runs) > before + 10, 20000);
    }
    UNIT_EQUAL(atomic_load(&stuck.runs), 0);
    atomic_store(&go, 1);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    atomic_store(&over, 1);
    desk_close();
}

static trpi_run_result
run_in_vain(job *j, trpi_worker *worker)
{
    (void)worker;
    UNIT_TRUE(j->offered);
    return atomic_fetch_add(&j->runs, 1) == 0 ? TRPI_RUN_RETAINED : TRPI_RUN_NO_WORK;
}

/* `again` counts the runs that may not retain. */
static trpi_run_result
run_counts(job *j, trpi_worker *worker)
{
    (void)worker;
    j->again += !j->offered;
    atomic_fetch_add(&j->runs, 1);
    return j->offered ? TRPI_RUN_IDLE : TRPI_RUN_AGAIN;
}

static void
after_a_task_was_retained_for_nothing_there_is_a_pause(void)
{
    job vain = { .run = run_in_vain };
    job counts = { .run = run_counts };

    start(1);
    trpi_sched_inject(sched, &vain.task);
    UNIT_WAIT(atomic_load(&vain.runs) == 2, 20000);
    trpi_sched_inject(sched, &counts.task);
    UNIT_WAIT(atomic_load(&counts.runs) == TRPI_HANDOFF_PAUSE + 1, 20000);
    desk_close();
    UNIT_EQUAL(counts.again, TRPI_HANDOFF_PAUSE);
}

static void
wrong_options_are_refused(void)
{
    static const trpi_sched_ops ops = { on_run, on_thread, NULL, NULL };
    trpi_sched_options options;
    trpi_sched *none = NULL;

    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    memset(&options, 0, sizeof options);
    options.world = world;
    UNIT_EQUAL(trpi_sched_new(&options, &none), TRP_EINVAL);
    options.ops = &ops;
    options.workers = TRPI_POOL_MAX + 1;
    UNIT_EQUAL(trpi_sched_new(&options, &none), TRP_EINVAL);
    options.workers = TRPI_POOL_MAX;
    UNIT_EQUAL(trpi_sched_new(&options, &none), TRP_OK);
    trpi_sched_free(none);
    trpi_world_free(world);
}

UNIT_BEGIN("sched")
UNIT(every_injected_task_runs_exactly_once)
UNIT(a_task_that_says_again_runs_again)
UNIT(what_one_run_wakes_beyond_the_ring_is_not_lost)
UNIT(a_task_behind_a_stuck_worker_is_taken)
UNIT(a_thief_takes_one_before_he_takes_half)
UNIT(two_retained_tasks_let_others_run_and_end)
UNIT(a_run_may_write_what_its_worker_keeps_and_no_thief_has_it_then)
UNIT(a_retained_task_runs_though_its_worker_is_never_idle)
UNIT(the_retained_task_of_a_stuck_worker_is_stolen)
UNIT(the_retained_task_of_a_stuck_worker_is_rescued_by_a_busy_one)
UNIT(after_a_task_was_retained_for_nothing_there_is_a_pause)
UNIT(a_deferred_task_runs_though_its_worker_is_never_idle)
UNIT(a_private_worker_runs_its_tasks_and_ends)
UNIT(a_helper_that_sleeps_runs_a_task_of_an_idle_pool)
UNIT(a_list_is_injected_first_or_last)
UNIT(only_a_worker_with_the_option_gets_a_high_priority)
UNIT(private_workers_end_at_their_limit)
UNIT(a_group_that_got_no_thread_tries_again)
UNIT(a_stop_with_a_stuck_worker_ends_at_its_deadline)
UNIT(an_idle_scheduler_takes_no_time)
UNIT(wrong_options_are_refused)
UNIT_END
