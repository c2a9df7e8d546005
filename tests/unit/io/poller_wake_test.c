/* poller_wake_test.c - who waits for reports, and who is woken: one wake-up for a byte, none for an
 * idle node, and reports are seen while all workers run or are stuck. */
#include "tests/unit/io/pool.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct line {
    int pair[2]; /* the first is watched */
    trpi_watch *watch;
    _Atomic uint32_t bytes, calls;
    _Atomic uint32_t ended; /* waits that had ended when ready() was called last */
    _Atomic bool on_worker; /* where that was */
} line;

static uint32_t
on_ready(void *user, uint32_t events)
{
    line *l = user;

    (void)events;
    atomic_store(&l->ended, atomic_load(&pool.ended));
    atomic_store(&l->on_worker, trpi_worker_current() != NULL);
    atomic_fetch_add(&l->bytes, pool_drain(l->pair[0]));
    atomic_fetch_add(&l->calls, 1);
    return 0;
}

static void
on_removed(void *user)
{
    line *l = user;

    (void)close(l->pair[0]);
    (void)close(l->pair[1]);
}

static void
line_open(line *l)
{
    static const trpi_watch_events events = { on_ready, on_removed };

    *l = (line){ .watch = NULL };
    pool_pair(l->pair);
    UNIT_REQUIRE(trpi_watch_new(pool.poller, l->pair[0], &events, l, &l->watch) == TRP_OK);
    UNIT_WAIT(atomic_load(&l->calls) != 0, 5000); /* it can be written to */
}

static void
byte_write(line *l)
{
    UNIT_EQUAL(write(l->pair[1], "b", 1), 1);
}

static bool
all_asleep(uint32_t workers)
{
    for (uint32_t i = 0; i < workers; i++) {
        trpi_worker *worker = *(trpi_worker * _Atomic *)trpi_sched_pool_data(pool.sched, i);

        if (worker == NULL || !trpi_worker_is_asleep(worker)) { /* NULL: it has not begun yet */
            return false;
        }
    }
    return atomic_load(&pool.waits) == atomic_load(&pool.ended) + 1; /* one of them on the seat */
}

static trpi_run_result
run_once(pool_task *t, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&t->runs, 1);
    return TRPI_RUN_IDLE;
}

static trpi_watch *asked; /* by run_ask_and_stuck() */

/* Run until the test lets go. */
static trpi_run_result
run_stuck(pool_task *t, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&t->runs, 1);
    while (!atomic_load(&t->go)) {
        unit_pause();
    }
    return TRPI_RUN_IDLE;
}

/* Short runs for ever. */
static trpi_run_result
run_busy(pool_task *t, trpi_worker *worker)
{
    (void)worker;
    atomic_fetch_add(&t->runs, 1);
    return atomic_load(&t->go) ? TRPI_RUN_IDLE : TRPI_RUN_AGAIN;
}

static void
task_inject(pool_task *t, trpi_run_result (*run)(pool_task *t, trpi_worker *worker))
{
    t->task.id = 1;
    t->run = run;
    atomic_store(&t->go, false);
    trpi_sched_inject(pool.sched, &t->task);
}

/* The wait that ends is the only wake-up between the byte and its callback: no thread is woken to
 * call it. The worker may be awake still, or may be woken to trim its caches meanwhile: then the
 * try does not count. */
static void
bytes_cost_one_wake_up(uint32_t workers)
{
    uint32_t counted = 0, more = 0;
    line l;

    pool_open(workers);
    line_open(&l);
    for (uint32_t i = 1; counted < 20 && i < 2000; i++) {
        uint32_t ended, wakes;

        UNIT_WAIT(all_asleep(workers), 20000);
        ended = atomic_load(&pool.ended);
        wakes = atomic_load(&pool.wakes);
        byte_write(&l);
        if (!UNIT_WAIT(atomic_load(&l.bytes) == i, 20000)) {
            break;
        }
        if (atomic_load(&l.ended) == ended + 1 && atomic_load(&pool.wakes) == wakes) {
            counted++;
        } else {
            more++;
        }
        UNIT_TRUE(atomic_load(&l.on_worker));
    }
    UNIT_EQUAL(counted, 20);
    UNIT_TRUE(more < 1980);
    pool_close();
}

static void
a_byte_to_a_sleeping_worker_costs_one_wake_up(void)
{
    bytes_cost_one_wake_up(1);
}

static void
a_byte_to_sleeping_workers_costs_one_wake_up(void)
{
    bytes_cost_one_wake_up(4);
}

/* sched-S3. A ticking thread waits or looks in each of these times, a busy machine not in all. */
static void
an_idle_node_with_sockets_does_not_wake_up(void)
{
    uint32_t before = 0, after = 1;
    uint64_t used = UINT64_MAX;
    pool_task t = { .runs = 0 };
    line l;

    pool_open(4);
    line_open(&l);
    task_inject(&t, run_once);
    byte_write(&l);
    UNIT_WAIT(atomic_load(&t.runs) == 1 && atomic_load(&l.bytes) == 1, 20000);
    for (int look = 0; look < 10 && (before != after || used >= 3000); look++) {
        uint64_t start_ms = unit_now_ms();

        before = atomic_load(&pool.waits) + atomic_load(&pool.looks);
        used = unit_cpu_us();
        for (struct timespec pause = { 0, 300000000 }; unit_now_ms() < start_ms + 300;) {
            (void)nanosleep(&pause, NULL); /* looked at is that nothing happens in this time */
        }
        used = unit_cpu_us() - used;
        after = atomic_load(&pool.waits) + atomic_load(&pool.looks);
    }
    UNIT_EQUAL(before, after);
    UNIT_TRUE(used < 3000); /* 1 % of a core */
    pool_close();
}

static void
reports_are_seen_while_workers_run(void)
{
    pool_task busy[2] = { { .runs = 0 }, { .runs = 0 } };
    line l;

    pool_open(2);
    line_open(&l);
    for (int i = 0; i < 2; i++) {
        task_inject(&busy[i], run_busy);
    }
    UNIT_WAIT(atomic_load(&busy[0].runs) > 1000 && atomic_load(&busy[1].runs) > 1000, 20000);
    for (uint32_t i = 1; i <= 50; i++) {
        byte_write(&l);
        UNIT_WAIT(atomic_load(&l.bytes) == i, 20000);
    }
    atomic_store(&busy[0].go, true);
    atomic_store(&busy[1].go, true);
    pool_close();
}

static void
a_report_beside_a_stuck_worker_goes_to_the_other_one(void)
{
    pool_task stuck = { .runs = 0 };
    uint32_t on_worker = 0;
    line l;

    pool_open(2);
    line_open(&l);
    task_inject(&stuck, run_stuck);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    for (uint32_t i = 1; i <= 1000 && on_worker < 20; i++) {
        byte_write(&l);
        UNIT_WAIT(atomic_load(&l.bytes) == i, 20000);
        on_worker += atomic_load(&l.on_worker); /* else a tick met it just when it had woken up */
    }
    UNIT_EQUAL(on_worker, 20);
    atomic_store(&stuck.go, true);
    pool_close();
}

/* How often the timer thread has given up its core to wait. */
static unsigned long
timer_waits(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned long waits = 0;

    UNIT_REQUIRE(tasks != NULL);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], text[128];
        bool is_timer = false;
        FILE *status;

        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        status = fopen(path, "r");
        while (status != NULL && fgets(text, sizeof text, status) != NULL) {
            is_timer = is_timer || strcmp(text, "Name:\ttrp-timer\n") == 0;
            if (is_timer && strncmp(text, "voluntary_ctxt_switches:", 24) == 0) {
                waits += strtoul(text + 24, NULL, 10);
            }
        }
        if (status != NULL) {
            (void)fclose(status);
        }
    }
    (void)closedir(tasks);
    return waits;
}

/* poll-O3: the other one looks around every millisecond. */
static void
a_worker_that_runs_beside_one_that_looks_around_starts_no_tick(void)
{
    pool_task stuck = { .runs = 0 };
    unsigned long waits = 1000;
    line l;

    pool_open(2);
    line_open(&l);
    task_inject(&stuck, run_stuck);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    for (int look = 0; look < 20 && waits >= 20; look++) {
        uint64_t start_ms = unit_now_ms();

        waits = timer_waits();
        for (struct timespec pause = { 0, 100000000 }; unit_now_ms() < start_ms + 100;) {
            (void)nanosleep(&pause, NULL); /* looked at is that little happens in this time */
        }
        waits = timer_waits() - waits;
    }
    UNIT_TRUE(waits < 20);
    atomic_store(&stuck.go, true);
    pool_close();
}

/* poll-O3 */
static void
reports_come_on_the_timer_thread_when_all_workers_are_stuck(void)
{
    pool_task stuck[2] = { { .runs = 0 }, { .runs = 0 } };
    pool_task after = { .runs = 0 };
    line l;

    pool_open(2);
    line_open(&l);
    task_inject(&stuck[0], run_stuck);
    task_inject(&stuck[1], run_stuck);
    UNIT_WAIT(atomic_load(&stuck[0].runs) + atomic_load(&stuck[1].runs) == 2, 20000);
    for (uint32_t i = 1; i <= 5; i++) {
        byte_write(&l);
        UNIT_WAIT(atomic_load(&l.bytes) == i, 20000);
        UNIT_FALSE(atomic_load(&l.on_worker));
    }
    atomic_store(&stuck[0].go, true);
    atomic_store(&stuck[1].go, true);
    task_inject(&after, run_once);
    UNIT_WAIT(atomic_load(&after.runs) == 1, 20000);
    byte_write(&l);
    UNIT_WAIT(atomic_load(&l.bytes) == 6, 20000);
    pool_close();
}

/* A socket that is watched for the first time while all workers are stuck. */
static void
a_first_watch_beside_stuck_workers_is_seen(void)
{
    pool_task stuck = { .runs = 0 };
    line l;

    pool_open(1);
    task_inject(&stuck, run_stuck);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    line_open(&l);
    UNIT_FALSE(atomic_load(&l.on_worker));
    atomic_store(&stuck.go, true);
    pool_close();
}

/* Ask for events, and run until the test lets go. */
static trpi_run_result
run_ask_and_stuck(pool_task *t, trpi_worker *worker)
{
    trpi_watch_again(asked, TRPI_NET_IN);
    return run_stuck(t, worker);
}

/* poll-O4: a worker that is stuck keeps no call, neither one of its own nor one from elsewhere. */
static void
calls_are_made_when_all_workers_are_stuck(void)
{
    static line l, other;
    pool_task stuck = { .runs = 0 };

    pool_open(1);
    line_open(&l);
    line_open(&other);
    UNIT_WAIT(all_asleep(1), 20000);
    uint32_t calls = atomic_load(&l.calls);
    asked = l.watch;
    task_inject(&stuck, run_ask_and_stuck);
    UNIT_WAIT(atomic_load(&stuck.runs) == 1, 20000);
    UNIT_WAIT(atomic_load(&l.calls) > calls, 20000);
    UNIT_FALSE(atomic_load(&l.on_worker));
    trpi_watch_remove(other.watch);
    trpi_watch_remove(l.watch);
    UNIT_WAIT(trpi_poller_watches(pool.poller) == 0, 20000);
    UNIT_EQUAL(atomic_load(&stuck.runs), 1);
    atomic_store(&stuck.go, true);
    pool_close();
}

static void
a_push_wakes_the_worker_on_the_seat(void)
{
    pool_task t = { .runs = 0 };
    line l;

    pool_open(1);
    line_open(&l);
    for (uint32_t i = 1; i <= 50; i++) {
        UNIT_WAIT(all_asleep(1), 20000);
        task_inject(&t, run_once);
        UNIT_WAIT(atomic_load(&t.runs) == i, 20000);
    }
    UNIT_TRUE(atomic_load(&pool.wakes) != 0);
    pool_close();
}

/* ---- pushes and bytes that race with sleep --------------------------------------------------- */

#define PUSHES 1500u

static struct race {
    pool_task task;
    line l;
    uint64_t seed;
    _Atomic bool failed;
} race;

/* Spin for a random time, so that the next push meets a worker that spins, goes to sleep, or
 * sleeps. */
static void
spin(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    for (volatile uint64_t left = *state >> 33 & 0x3fff; left > 0; left--) {
    }
}

/* Does the number become `want`? It yields at first: a pause of a millisecond would let all
 * workers sleep each time. */
static bool
becomes(_Atomic uint32_t *number, uint32_t want)
{
    for (int i = 0; i < 1000 && atomic_load(number) != want; i++) {
        (void)sched_yield();
    }
    return UNIT_WAIT(atomic_load(number) == want, 20000);
}

static void *
pusher_main(void *arg)
{
    uint64_t state = race.seed + (arg != NULL);

    for (uint32_t i = 1; i <= PUSHES && !atomic_load(&race.failed); i++) {
        if (arg != NULL) {
            race.task.task.id = 1;
            trpi_sched_inject(pool.sched, &race.task.task);
        } else {
            byte_write(&race.l);
        }
        if (!becomes(arg != NULL ? &race.task.runs : &race.l.bytes, i)) {
            atomic_store(&race.failed, true);
        }
        spin(&state);
    }
    return NULL;
}

static void
race_run(uint32_t workers)
{
    const char *given = getenv("POLLER_SEED");
    pthread_t threads[2];

    memset(&race, 0, sizeof race);
    race.seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)unit_now_ms();
    race.task.run = run_once;
    pool_open(workers);
    line_open(&race.l);
    for (size_t i = 0; i < 2; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, pusher_main, i != 0 ? &race : NULL) == 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    UNIT_EQUAL(race.task.runs, PUSHES);
    UNIT_EQUAL(race.l.bytes, PUSHES);
    if (unit_failures() != 0) {
        printf("replay: POLLER_SEED=%llu io_tests poller_wake_test\n",
               (unsigned long long)race.seed);
    }
    pool_close();
}

/* sleep-L6, sleep-L7: each push and each byte waits for its effect before the next, so one that is
 * lost stops the test. */
static void
no_wake_up_is_lost_with_one_worker(void)
{
    race_run(1);
}

static void
no_wake_up_is_lost_with_three_workers(void)
{
    race_run(3);
}

UNIT_BEGIN("poller_wake")
UNIT(a_byte_to_a_sleeping_worker_costs_one_wake_up)
UNIT(a_byte_to_sleeping_workers_costs_one_wake_up)
UNIT(an_idle_node_with_sockets_does_not_wake_up)
UNIT(reports_are_seen_while_workers_run)
UNIT(a_report_beside_a_stuck_worker_goes_to_the_other_one)
UNIT(a_worker_that_runs_beside_one_that_looks_around_starts_no_tick)
UNIT(reports_come_on_the_timer_thread_when_all_workers_are_stuck)
UNIT(a_first_watch_beside_stuck_workers_is_seen)
UNIT(calls_are_made_when_all_workers_are_stuck)
UNIT(a_push_wakes_the_worker_on_the_seat)
UNIT(no_wake_up_is_lost_with_one_worker)
UNIT(no_wake_up_is_lost_with_three_workers)
UNIT_END
