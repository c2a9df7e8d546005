/* driven_test.c - schedulers without threads, under worlds of one seed. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/world_virtual.h"
#include "sched/sched.h"
#include "tests/unit/unit.h"

#define TASKS 16

/* Tasks that run a few turns each and wake one another; what ran is written down. */
typedef struct room {
    trpi_virtual *virt;
    trpi_sched *sched;
    trpi_task tasks[TASKS];
    uint32_t turns[TASKS];
    uint32_t wakes; /* the next run wakes so many of the others */
    char order[256];
    uint32_t ran;
    uint32_t fired;
    uint64_t fired_ms[8];
    uint32_t batch;
    uint32_t takes_ms[TASKS]; /* of its next run */
    uint64_t ran_ms[TASKS];   /* when it ran last */
} room;

static trpi_run_result
run_task(void *data, trpi_task *task, uint32_t handoff)
{
    room *r = *(room **)data;

    UNIT_TRUE(trpi_worker_current() != NULL);
    UNIT_TRUE(!handoff); /* a retained task would not be the world's choice */
    r->order[r->ran++ % (sizeof r->order - 1)] = (char)('a' + task->id);
    while (r->wakes > 0) {
        r->wakes--;
        trpi_sched_ready(trpi_worker_current(), &r->tasks[task->id + 1 + r->wakes]);
    }
    uint64_t now_ns = trpi_world_mono_ns(trpi_virtual_world(r->virt));
    r->ran_ms[task->id] = now_ns / 1000000;
    if (r->takes_ms[task->id] > 0) {
        trpi_sched_take_time(r->sched, now_ns + r->takes_ms[task->id] * UINT64_C(1000000));
        r->takes_ms[task->id] = 0;
    }
    return --r->turns[task->id] > 0 ? TRPI_RUN_AGAIN : TRPI_RUN_IDLE;
}

static void
thread_body(void *arg, trpi_worker *worker)
{
    *(void **)trpi_worker_data(worker) = arg;
    trpi_worker_loop(worker);
}

static void
take_batch(void *data, uint32_t messages)
{
    room *r = *(room **)data;

    r->batch += messages;
}

static void
room_open(room *r, trpi_virtual_options options)
{
    static const trpi_sched_ops ops = { run_task, thread_body, NULL, take_batch };
    trpi_sched_options sched_options = { 4, sizeof(void *), NULL, "driven", &ops, r };

    memset(r, 0, sizeof *r);
    UNIT_REQUIRE(trpi_virtual_new(&options, &r->virt) == TRP_OK);
    sched_options.world = trpi_virtual_world(r->virt);
    UNIT_REQUIRE(trpi_sched_new(&sched_options, &r->sched) == TRP_OK);
    UNIT_EQUAL(trpi_sched_start(r->sched), TRP_OK);
    for (uint32_t i = 0; i < TASKS; i++) {
        r->tasks[i].id = i;
        r->turns[i] = 1;
    }
}

static uint64_t
room_close(room *r)
{
    uint64_t hash = trpi_virtual_hash(r->virt);

    UNIT_TRUE(trpi_sched_stop(r->sched, 0));
    trpi_sched_free(r->sched);
    trpi_world_free(trpi_virtual_world(r->virt));
    return hash;
}

static void
pump(room *r)
{
    UNIT_EQUAL(trpi_sched_pump(r->sched, NULL, NULL, UINT64_MAX, TRPI_MOVE_OF_WORLD),
               TRPI_PUMPED_NOTHING);
}

static const trpi_virtual_options calm = { .seed = 1, .calm = true };

static void
a_calm_world_runs_tasks_in_the_order_of_waking(void)
{
    room r;

    room_open(&r, calm);
    r.wakes = 3; /* wakes d, c, b in this order */
    r.turns[0] = 2;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    trpi_sched_inject(r.sched, &r.tasks[9]);
    pump(&r);
    UNIT_TEXT(r.order, "ajdcab");
    UNIT_EQUAL(r.batch, 0);
    UNIT_TRUE(trpi_worker_current() == NULL);
    (void)room_close(&r);
}

static uint64_t
run_seed(uint64_t seed, char *order)
{
    trpi_virtual_options options = { .seed = seed, .stall_ms_max = 10 };
    uint64_t hash;
    room r;

    room_open(&r, options);
    for (uint32_t i = 0; i < TASKS; i++) {
        r.turns[i] = 4;
        trpi_sched_inject(r.sched, &r.tasks[i]);
    }
    pump(&r);
    UNIT_EQUAL(r.ran, TASKS * 4);
    memcpy(order, r.order, sizeof r.order);
    hash = room_close(&r);
    return hash;
}

static void
a_seed_repeats_and_another_one_differs(void)
{
    char first[256], again[256];
    uint32_t different = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t hash = run_seed(seed, first);

        UNIT_EQUAL(run_seed(seed, again), hash);
        UNIT_TEXT(again, first);
        UNIT_TRUE(run_seed(seed + 1000, again) != hash);
        different += strcmp(first, again) != 0;
    }
    UNIT_TRUE(different >= 18);
}

/* The record of a run, listed, is the same run. */
static void
the_decisions_of_a_run_replay_it(void)
{
    trpi_virtual_options options = { .seed = 7, .stall_ms_max = 10 };
    trpi_deviation *list;
    char order[256];
    uint32_t count;
    uint64_t hash;
    room r;

    room_open(&r, options);
    for (uint32_t i = 0; i < TASKS; i++) {
        r.turns[i] = 3;
        trpi_sched_inject(r.sched, &r.tasks[i]);
    }
    pump(&r);
    memcpy(order, r.order, sizeof order);
    (void)trpi_virtual_deviations(r.virt, &count);
    list = trpi_alloc((count + 1) * sizeof *list);
    UNIT_REQUIRE(list != NULL && count > 0);
    memcpy(list, trpi_virtual_deviations(r.virt, &count), count * sizeof *list);
    hash = room_close(&r);

    options.calm = true;
    options.deviations = list;
    options.deviations_count = count;
    room_open(&r, options);
    for (uint32_t i = 0; i < TASKS; i++) {
        r.turns[i] = 3;
        trpi_sched_inject(r.sched, &r.tasks[i]);
    }
    pump(&r);
    UNIT_TEXT(r.order, order);
    UNIT_EQUAL(room_close(&r), hash);
    trpi_free(list);
}

static void
note_time(void *arg, uint64_t a, uint64_t b)
{
    room *r = arg;

    (void)a;
    (void)b;
    r->fired_ms[r->fired++ % 8] = trpi_world_mono_ns(trpi_virtual_world(r->virt)) / 1000000u;
}

static void
the_clock_moves_to_the_next_timer_when_nothing_is_ready(void)
{
    uint64_t start_ms, id, cancelled;
    room r;

    room_open(&r, calm);
    start_ms = trpi_world_mono_ns(trpi_virtual_world(r.virt)) / 1000000u;
    UNIT_EQUAL(trpi_timer_add(r.sched, 5000, note_time, &r, 0, 0, &id), TRP_OK);
    UNIT_EQUAL(trpi_timer_add(r.sched, 20, note_time, &r, 0, 0, &id), TRP_OK);
    UNIT_EQUAL(trpi_timer_add(r.sched, 30, note_time, &r, 0, 0, &cancelled), TRP_OK);
    UNIT_TRUE(trpi_timer_cancel(r.sched, cancelled));
    pump(&r);
    UNIT_EQUAL(r.fired, 2);
    UNIT_EQUAL(r.fired_ms[0] - start_ms, 20);
    UNIT_EQUAL(r.fired_ms[1] - start_ms, 5000);
    (void)room_close(&r);
}

static bool
never(void *arg)
{
    (void)arg;
    return false;
}

static void
a_wait_ends_at_its_deadline_of_virtual_time(void)
{
    trpi_cond cond;
    uint64_t now;
    room r;

    room_open(&r, calm);
    trpi_cond_init(&cond);
    now = trpi_world_mono_ns(trpi_virtual_world(r.virt));
    pthread_mutex_lock(&cond.lock);
    UNIT_FALSE(trpi_cond_wait(&cond, r.sched, never, NULL, now + 3600000000000u));
    /* with tasks that never end, too */
    r.turns[0] = UINT32_MAX;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    UNIT_FALSE(trpi_cond_wait(&cond, r.sched, never, NULL, now + 3600000000000u + 100000u));
    pthread_mutex_unlock(&cond.lock);
    UNIT_EQUAL(trpi_world_mono_ns(trpi_virtual_world(r.virt)) - now, 3600000100000u);
    UNIT_EQUAL(r.ran, 100);
    trpi_cond_fini(&cond);
    (void)room_close(&r);
}

static void
a_manual_clock_stands_still_unless_it_is_moved(void)
{
    trpi_virtual_options options = { .seed = 1, .calm = true, .manual = true };
    uint64_t now, id;
    room r;

    room_open(&r, options);
    now = trpi_world_mono_ns(trpi_virtual_world(r.virt));
    UNIT_EQUAL(trpi_timer_add(r.sched, 9, note_time, &r, 0, 0, &id), TRP_OK);
    trpi_sched_inject(r.sched, &r.tasks[0]);
    UNIT_EQUAL(trpi_sched_pump(r.sched, NULL, NULL, now + 20000000, TRPI_MOVE_OF_WORLD),
               TRPI_PUMPED_NOTHING);
    UNIT_EQUAL(r.ran, 1);
    UNIT_EQUAL(r.fired, 0);
    UNIT_EQUAL(trpi_world_mono_ns(trpi_virtual_world(r.virt)), now);
    UNIT_EQUAL(trpi_sched_pump(r.sched, NULL, NULL, now + 20000000, TRPI_MOVE_ALWAYS),
               TRPI_PUMPED_TIME);
    UNIT_EQUAL(r.fired, 1);
    UNIT_EQUAL(trpi_world_mono_ns(trpi_virtual_world(r.virt)), now + 20000000);
    (void)room_close(&r);
}

static void
a_run_ends_at_its_limit_of_turns_and_not_before(void)
{
    trpi_virtual_options options = { .seed = 1, .calm = true, .turns_max = 50 };
    room r;

    room_open(&r, options);
    r.turns[0] = 49;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    pump(&r);
    UNIT_FALSE(trpi_virtual_is_over(r.virt));
    r.turns[0] = 2;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    UNIT_EQUAL(trpi_sched_pump(r.sched, NULL, NULL, UINT64_MAX, TRPI_MOVE_OF_WORLD),
               TRPI_PUMPED_ENOUGH);
    UNIT_TRUE(trpi_virtual_is_over(r.virt));
    UNIT_EQUAL(r.ran, 50);
    (void)room_close(&r);
}

/* driven-D4: what is ready again, or is told meanwhile, runs when its time has come; others run
 * before. */
static void
a_busy_task_does_not_run_before_its_time(void)
{
    trpi_virtual_options options = { .seed = 1, .calm = true };
    room r;

    room_open(&r, options);
    uint64_t began_ms = trpi_world_mono_ns(trpi_virtual_world(r.virt)) / 1000000;
    r.turns[0] = 2;
    r.takes_ms[0] = 300;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    trpi_sched_inject(r.sched, &r.tasks[1]);
    pump(&r);
    UNIT_TEXT(r.order, "aba");
    UNIT_EQUAL(r.ran_ms[1], began_ms);
    UNIT_EQUAL(r.ran_ms[0], began_ms + 300);
    /* it is idle while it is busy, and woken before and after its time */
    r.turns[0] = r.turns[1] = 1;
    r.takes_ms[0] = 300;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    pump(&r);
    r.turns[0] = 1;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    pump(&r);
    UNIT_TEXT(r.order, "abaaa");
    UNIT_EQUAL(r.ran_ms[0], began_ms + 600);
    /* the process goes on: nobody waits for the end of its work */
    r.turns[0] = 2;
    r.takes_ms[0] = 300;
    trpi_sched_inject(r.sched, &r.tasks[0]);
    UNIT_EQUAL(trpi_sched_pump(r.sched, NULL, NULL, (began_ms + 700) * 1000000, TRPI_MOVE_OF_WORLD),
               TRPI_PUMPED_TIME);
    UNIT_TEXT(r.order, "abaaaa");
    trpi_sched_stand_still(r.sched, 0);
    pump(&r);
    UNIT_TEXT(r.order, "abaaaaa");
    UNIT_EQUAL(r.ran_ms[0], began_ms + 700);
    (void)room_close(&r);
}

static uint32_t retired;
static void
count_retired(void *object)
{
    (void)object;
    retired++;
}

static void
what_is_retired_is_freed_between_runs(void)
{
    room r;

    retired = 0;
    room_open(&r, calm);
    trpi_retire(r.sched, count_retired, NULL);
    UNIT_EQUAL(retired, 0);
    pump(&r);
    UNIT_EQUAL(retired, 1);
    (void)room_close(&r);
}

UNIT_BEGIN("driven")
UNIT(a_calm_world_runs_tasks_in_the_order_of_waking)
UNIT(a_seed_repeats_and_another_one_differs)
UNIT(the_decisions_of_a_run_replay_it)
UNIT(the_clock_moves_to_the_next_timer_when_nothing_is_ready)
UNIT(a_wait_ends_at_its_deadline_of_virtual_time)
UNIT(a_manual_clock_stands_still_unless_it_is_moved)
UNIT(a_busy_task_does_not_run_before_its_time)
UNIT(a_run_ends_at_its_limit_of_turns_and_not_before)
UNIT(what_is_retired_is_freed_between_runs)
UNIT_END
