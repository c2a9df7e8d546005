/* group.c - threads that share one queue: the pools of dispatchers, and the elastic pool for work
 * that blocks.
 *
 * Why.     Actors that block would hold up the pool's workers; actors of one part of a program
 *          should not take the threads of another (bulkheading). Neither needs work stealing: one
 *          FIFO is fair, and blocking work is slower than its lock.
 * Shape.   push -> queue -> an idle thread; with none, and fewer than threads_max threads, one is
 *          started. A group without work has no threads after keep_alive_ms.
 * Must hold.
 *   group-G1  A task waits only while threads_max threads are busy, one is waking up, or one is
 *       being started; if none lives and none can be started, a timer tries again.
 *   group-G2  A thread leaves the count under the lock, with the queue empty: a push that comes
 *       later sees the smaller count.
 * Threads. lock guards all but the options; nothing is called under it.
 * Limits.  threads_max of the group; TRPI_PRIVATE_MAX of all groups and private workers together.
 * Tests.   tests/unit/actor/dispatcher_test.c, tests/unit/sched/sched_test.c
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "sched/worker.h"

#define AGAIN_MS 10u /* until the next try to make the first thread */

typedef struct trpi_group {
    trpi_sched *sched;
    uint32_t threads_max, keep_alive_ms, shutdown_ms;
    uint8_t number;
    char name[16];
    pthread_mutex_t lock;
    pthread_cond_t cond;
    trpi_task_list queue;
    uint32_t queued;
    uint32_t threads; /* alive or being started */
    uint32_t waiting; /* threads in the wait, or leaving it: each takes one task */
    uint32_t attached;
} trpi_group;

static trpi_group *
group_get(trpi_sched *sched, uint8_t number)
{
    /* acquire: pairs with the release of trpi_sched_group_new() */
    return atomic_load_explicit(&sched->groups[number], memory_order_acquire);
}

trp_err
trpi_sched_group_new(trpi_sched *sched, uint8_t number, const trpi_group_options *options)
{
    trpi_group *group = trpi_alloc(sizeof *group);
    pthread_condattr_t attributes;

    trpi_assert(group_get(sched, number) == NULL);
    trpi_assert(options->threads_max >= 1 && options->threads_max <= TRPI_PRIVATE_MAX);
    if (group == NULL) {
        return TRP_ENOMEM;
    }
    group->sched = sched;
    group->threads_max = options->threads_max;
    group->keep_alive_ms = options->keep_alive_ms;
    group->shutdown_ms = options->shutdown_ms;
    group->number = number;
    (void)snprintf(group->name, sizeof group->name, "%.8s",
                   options->name != NULL ? options->name : "group");
    pthread_mutex_init(&group->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&group->cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    atomic_store_explicit(&sched->groups[number], group, memory_order_release);
    return TRP_OK;
}

static void thread_make(trpi_group *group);

static void
thread_make_again(void *arg, uint64_t a, uint64_t b)
{
    trpi_group *group = arg;
    bool make;

    (void)a;
    (void)b;
    pthread_mutex_lock(&group->lock);
    make = group->queued > 0 && group->threads == 0;
    group->threads += make;
    pthread_mutex_unlock(&group->lock);
    if (make) {
        thread_make(group);
    }
}

/* Start a thread, which the caller has counted already. */
static void
thread_make(trpi_group *group)
{
    trpi_private_options options = { group->name, false, false, 0, group->number, false };
    uint64_t timer;
    uint16_t index;
    bool none;

    if (trpi_private_start(group->sched, &options, group, &index) == TRP_OK) {
        return;
    }
    pthread_mutex_lock(&group->lock);
    none = --group->threads == 0;
    pthread_mutex_unlock(&group->lock);
    if (none) { /* group-G1; without memory for a timer the next push tries */
        (void)trpi_timer_add(group->sched, AGAIN_MS, thread_make_again, group, 0, 0, &timer);
    }
}

void
trpi_group_push(trpi_sched *sched, trpi_task *task)
{
    trpi_group *group = group_get(sched, task->number);
    bool make;

    trpi_assert(group != NULL);
    pthread_mutex_lock(&group->lock);
    trpi_task_list_push(&group->queue, task);
    group->queued++;
    make = group->queued > group->waiting && group->threads < group->threads_max;
    group->threads += make;
    pthread_mutex_unlock(&group->lock);
    pthread_cond_signal(&group->cond); /* private-P3 */
    if (make) {
        thread_make(group);
    }
}

static struct timespec
deadline_after(const trpi_group *group, uint32_t ms)
{
    uint64_t until = trpi_sched_now(group->sched) + (uint64_t)ms * 1000000u;

    return (struct timespec){ (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
}

/* Wait for a task, with the lock held; NULL: the thread ends. */
static trpi_task *
wait_for_task(trpi_worker *worker, trpi_group *group)
{
    struct timespec until =
        deadline_after(group, group->attached > 0 ? group->keep_alive_ms : group->shutdown_ms);
    bool over = false;

    group->waiting++;
    atomic_store_explicit(&worker->asleep, true, memory_order_seq_cst); /* quiescent (retire.c) */
    while (group->queue.first == NULL && !trpi_sched_is_stopping(group->sched) && !over) {
        bool attached = group->attached > 0;

        over = pthread_cond_timedwait(&group->cond, &group->lock, &until) == ETIMEDOUT;
        if (attached != (group->attached > 0)) { /* the other timeout begins now */
            over = false;
            until = deadline_after(group,
                                   group->attached > 0 ? group->keep_alive_ms : group->shutdown_ms);
        }
    }
    group->waiting--;
    if (group->queue.first == NULL) {
        return NULL;
    }
    atomic_store_explicit(&worker->asleep, false, memory_order_seq_cst);
    return trpi_task_list_pop(&group->queue);
}

/* Take a task. NULL: the thread ends, and is not counted any more. */
static trpi_task *
group_next(trpi_worker *worker, trpi_group *group)
{
    trpi_task *task = NULL;

    pthread_mutex_lock(&group->lock);
    if (!trpi_sched_is_stopping(group->sched)) {
        task = trpi_task_list_pop(&group->queue);
        if (task == NULL) {
            task = wait_for_task(worker, group);
        }
    }
    if (task != NULL) {
        group->queued--;
    } else {
        group->threads--; /* group-G2 */
    }
    pthread_mutex_unlock(&group->lock);
    return task;
}

void
trpi_group_loop(trpi_worker *worker)
{
    trpi_group *group = worker->group;
    trpi_sched *sched = worker->sched;
    trpi_task *task;

    while ((task = group_next(worker, group)) != NULL) {
        trpi_worker_awake(worker);
        /* A deferred task goes to the end of the queue: these threads may block anyway. */
        trpi_worker_settle(worker, task,
                           sched->options.ops->run(worker->data, task, TRPI_HANDOFF_OFF));
        /* release: as in trpi_worker_loop() */
        atomic_store_explicit(&worker->progress,
                              atomic_load_explicit(&worker->progress, memory_order_relaxed) + 1,
                              memory_order_release);
    }
    atomic_store_explicit(&worker->asleep, true, memory_order_seq_cst); /* for good */
    if (!trpi_sched_is_stopping(sched)) {
        trpi_private_index_free(sched, worker->index); /* its next user joins this thread first */
    }
}

void
trpi_sched_group_attach(trpi_sched *sched, uint8_t number)
{
    trpi_group *group = group_get(sched, number);

    trpi_assert(group != NULL);
    pthread_mutex_lock(&group->lock);
    group->attached++;
    pthread_mutex_unlock(&group->lock);
}

void
trpi_sched_group_detach(trpi_sched *sched, uint8_t number)
{
    trpi_group *group = group_get(sched, number);

    trpi_assert(group != NULL);
    pthread_mutex_lock(&group->lock);
    trpi_assert(group->attached > 0);
    group->attached--;
    if (group->attached == 0) {
        pthread_cond_broadcast(&group->cond); /* shutdown_ms begins now */
    }
    pthread_mutex_unlock(&group->lock);
}

uint32_t
trpi_sched_group_threads(trpi_sched *sched, uint8_t number)
{
    trpi_group *group = group_get(sched, number);
    uint32_t threads = 0;

    if (group != NULL) {
        pthread_mutex_lock(&group->lock);
        threads = group->threads;
        pthread_mutex_unlock(&group->lock);
    }
    return threads;
}

void
trpi_groups_wake_all(trpi_sched *sched)
{
    for (uint32_t i = 0; i < TRPI_GROUPS_MAX; i++) {
        trpi_group *group = group_get(sched, (uint8_t)i);

        if (group != NULL) {
            pthread_mutex_lock(&group->lock);
            pthread_cond_broadcast(&group->cond);
            pthread_mutex_unlock(&group->lock);
        }
    }
}

void
trpi_groups_free(trpi_sched *sched)
{
    for (uint32_t i = 0; i < TRPI_GROUPS_MAX; i++) {
        trpi_group *group = group_get(sched, (uint8_t)i);

        if (group != NULL) {
            pthread_cond_destroy(&group->cond);
            trpi_mutex_destroy(&group->lock);
            trpi_free(group);
        }
    }
}
