/* sched.c - start and end of a scheduler.
 *
 * Must hold.
 *   sched-E1  A worker's memory lives as long as the scheduler: any thread may read it at any time.
 *   sched-E2  free() comes after a stop that saw all threads end; a stop that timed out leaves
 *       everything in place.
 * Tests.   tests/unit/sched/sched_test.c
 */
#include "sched/sched.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "sched/worker.h"

#define WORKERS_ALL (TRPI_POOL_MAX + TRPI_PRIVATE_MAX)

static uint32_t
cores_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores < 1 ? 1 : cores > (long)TRPI_POOL_MAX ? TRPI_POOL_MAX : (uint32_t)cores;
}

uint32_t
trpi_sched_cores(const trpi_sched *sched)
{
    (void)sched;
    return cores_count();
}

static void
sched_init(trpi_sched *sched, const trpi_sched_options *options)
{
    pthread_condattr_t attributes;

    sched->options = *options;
    sched->driven = trpi_world_is_driven(options->world);
    sched->pool_count = options->workers != 0 ? options->workers : cores_count();
    if (sched->driven) {
        sched->pool_count = 1;
    }
    sched->worker_bytes = (sizeof(trpi_worker) + options->worker_bytes + 127u) & ~(size_t)127u;
    (void)snprintf(sched->name, sizeof sched->name, "%.8s",
                   options->name != NULL ? options->name : "trp");
    sched->membarrier =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    trpi_parallelism_init(sched);
    pthread_mutex_init(&sched->inject_lock, NULL);
    pthread_mutex_init(&sched->sleep_lock, NULL);
    pthread_mutex_init(&sched->private_lock, NULL);
    pthread_mutex_init(&sched->threads_lock, NULL);
    pthread_mutex_init(&sched->retire_lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sched->threads_cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

trp_err
trpi_sched_new(const trpi_sched_options *options, trpi_sched **ret_sched)
{
    trpi_sched *sched;

    if (options == NULL || options->ops == NULL || options->ops->run == NULL ||
        options->ops->thread == NULL || options->world == NULL ||
        options->workers > TRPI_POOL_MAX) {
        return TRP_EINVAL;
    }
    sched = trpi_alloc_aligned(128, sizeof *sched);
    if (sched == NULL) {
        return TRP_ENOMEM;
    }
    sched_init(sched, options);
    sched->grace_progress = trpi_alloc(WORKERS_ALL * sizeof *sched->grace_progress);
    if (sched->grace_progress == NULL || trpi_timers_new(sched) != TRP_OK) {
        trpi_sched_free(sched);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < sched->pool_count; i++) {
        trpi_worker *worker;

        if (trpi_worker_new(sched, (uint16_t)i, false, &worker) != TRP_OK) {
            trpi_sched_free(sched);
            return TRP_ENOMEM;
        }
        atomic_store_explicit(&sched->workers[i], worker, memory_order_release);
    }
    if (sched->driven && trpi_driven_join(sched) != TRP_OK) {
        sched->driven = false; /* it did not join the world, so it must not leave it */
        trpi_sched_free(sched);
        return TRP_ENOMEM;
    }
    *ret_sched = sched;
    return TRP_OK;
}

trp_err
trpi_sched_start(trpi_sched *sched)
{
    trp_err err = sched->driven ? TRP_OK : trpi_timers_start(sched);

    trpi_assert(!sched->started);
    sched->started = true;
    if (sched->driven) {
        return TRP_OK;
    }
    for (uint32_t i = 0; err == TRP_OK && i < sched->pool_count; i++) {
        err = trpi_worker_start(trpi_sched_worker(sched, i));
    }
    if (err != TRP_OK) {
        (void)trpi_sched_stop(sched, UINT32_MAX); /* threads without a task end at once */
    }
    return err;
}

static bool
threads_wait(trpi_sched *sched, uint32_t deadline_ms)
{
    struct timespec until;
    bool ended;

    (void)clock_gettime(CLOCK_MONOTONIC,
                        &until); /* the condition's clock; real threads end in real time */
    until.tv_sec += deadline_ms / 1000;
    until.tv_nsec += (long)(deadline_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&sched->threads_lock);
    while (sched->threads_alive > 0) {
        if (pthread_cond_timedwait(&sched->threads_cond, &sched->threads_lock, &until) != 0) {
            break;
        }
    }
    ended = sched->threads_alive == 0;
    pthread_mutex_unlock(&sched->threads_lock);
    return ended;
}

bool
trpi_sched_stop(trpi_sched *sched, uint32_t deadline_ms)
{
    trpi_assert(trpi_worker_current() == NULL || trpi_worker_current()->sched != sched);
    /* seq_cst: pairs with the fence of a worker that goes to sleep and reads it once more */
    atomic_store_explicit(&sched->stopping, true, memory_order_seq_cst);
    trpi_parallelism_stop(sched);
    trpi_fence(sched);
    trpi_wake_all(sched);
    trpi_private_wake_all(sched);
    trpi_timers_stop(sched);
    if (!threads_wait(sched, deadline_ms)) {
        return false;
    }
    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker != NULL && worker->thread_made) {
            (void)pthread_join(worker->thread, NULL);
            worker->thread_made = false;
        }
    }
    trpi_timers_join(sched);
    return true;
}

void
trpi_sched_abandon(trpi_sched *sched)
{
    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker != NULL && worker->thread_made) {
            (void)pthread_detach(worker->thread);
            worker->thread_made = false;
        }
    }
    trpi_timers_abandon(sched);
}

void
trpi_sched_free(trpi_sched *sched)
{
    if (sched == NULL) {
        return;
    }
    trpi_assert(sched->threads_alive == 0);
    if (sched->driven) {
        trpi_driven_leave(sched);
    }
    trpi_retire_all(sched);
    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker_free(trpi_sched_worker(sched, i));
    }
    trpi_groups_free(sched);
    trpi_timers_free(sched);
    trpi_mutex_destroy(&sched->inject_lock);
    trpi_mutex_destroy(&sched->sleep_lock);
    trpi_mutex_destroy(&sched->private_lock);
    trpi_mutex_destroy(&sched->threads_lock);
    trpi_mutex_destroy(&sched->retire_lock);
    pthread_cond_destroy(&sched->threads_cond);
    trpi_free(sched->grace_progress);
    trpi_free(sched);
}

uint32_t
trpi_sched_pool_count(const trpi_sched *sched)
{
    return sched->pool_count;
}

void
trpi_sched_workers_each(trpi_sched *sched, void (*fn)(void *arg, trpi_worker *worker), void *arg)
{
    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker != NULL) {
            fn(arg, worker);
        }
    }
}
