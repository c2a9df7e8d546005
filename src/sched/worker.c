/* worker.c - a worker's memory and thread, and where a task goes after its run.
 *
 * Tests.   tests/unit/sched/sched_test.c
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"
#include "sched/worker.h"

#define HIGH_PRIORITY_NICE (-10)

/* The worker whose thread this is: a thread context, process-wide by nature. */
static _Thread_local trpi_worker *current_worker;

trpi_worker *
trpi_worker_current(void)
{
    return current_worker;
}

void
trpi_worker_current_set(trpi_worker *worker)
{
    current_worker = worker;
}

void *
trpi_worker_data(trpi_worker *worker)
{
    return worker->data;
}

void *
trpi_sched_pool_data(trpi_sched *sched, uint32_t index)
{
    return index < sched->pool_count ? trpi_sched_worker(sched, index)->data : NULL;
}

trpi_sched *
trpi_worker_sched(trpi_worker *worker)
{
    return worker->sched;
}

uint32_t
trpi_worker_index(const trpi_worker *worker)
{
    return worker->index;
}

bool
trpi_worker_is_private(const trpi_worker *worker)
{
    return worker->is_private;
}

bool
trpi_worker_is_asleep(const trpi_worker *worker)
{
    return atomic_load_explicit(&worker->asleep, memory_order_seq_cst);
}

void
trpi_worker_awake(trpi_worker *worker)
{
    const trpi_sched_options *options = &worker->sched->options;

    if (options->ops->awake != NULL) {
        options->ops->awake(options->arg, worker);
    }
}

uint64_t
trpi_worker_progress(const trpi_worker *worker)
{
    return atomic_load_explicit(&worker->progress, memory_order_relaxed);
}

uint8_t
trpi_worker_number(const trpi_worker *worker)
{
    return atomic_load_explicit(&worker->number, memory_order_relaxed);
}

trpi_handoff *
trpi_worker_handoff(trpi_worker *worker)
{
    return &worker->handoff;
}

void
trpi_worker_hurry(trpi_worker *worker, uint32_t runs)
{
    uint32_t countdown = atomic_load_explicit(&worker->inject_countdown, RELAXED);

    atomic_store_explicit(&worker->inject_countdown, countdown > runs ? countdown - runs : 0,
                          RELAXED);
}

void
trpi_worker_defer_to(trpi_worker *worker, uint16_t home)
{
    worker->defer_to = home;
}

/* ---- after a run ----------------------------------------------------------------------------- */

static void
hold_expired(void *arg, uint64_t task, uint64_t zero)
{
    (void)zero;
    trpi_sched_inject(arg, (trpi_task *)(uintptr_t)task);
}

/* The receiver waits for a network, not for a worker: run the task again after 1 to 2 ms.
 * (Out of line: its stack frame is guarded, which would cost each settling.) */
static NOINLINE bool
task_hold(trpi_worker *worker, trpi_task *task)
{
    uint64_t id;

    return trpi_timer_add(worker->sched, TRPI_DEFER_NS_MAX / 1000000u, hold_expired, worker->sched,
                          (uint64_t)(uintptr_t)task, 0, &id) == TRP_OK;
}

void
trpi_worker_settle(trpi_worker *worker, trpi_task *task, trpi_run_result result)
{
    if (LIKELY(result == TRPI_RUN_IDLE)) {
        return;
    }
    if (worker->is_private || task->dispatch != TRPI_DISPATCH_POOL) {
        trpi_sched_inject(worker->sched, task);
        return;
    }
    if (result == TRPI_RUN_DEFER) {
        uint32_t limit = atomic_load_explicit(&worker->sched->limit, RELAXED);
        trpi_worker *at = worker;

        if (worker->defer_to == TRPI_DEFER_HOLD && task_hold(worker, task)) {
            return;
        }
        if (worker->defer_to < worker->sched->pool_count) { /* a private worker has no deferred */
            at = trpi_sched_worker(worker->sched, worker->defer_to);
        }
        if (at->index >= limit) { /* that worker is parked, or we are and help a stuck one */
            at = worker->index < limit ? worker : trpi_sched_worker(worker->sched, 0);
        }
        trpi_defer_push(at, task);
        return;
    }
    /* Do not overtake tasks that overflowed the ring: an actor that spawns a thousand children lets
     * them run before it spawns the next thousand. */
    if (UNLIKELY(atomic_load_explicit(&worker->sched->inject_count, RELAXED) >=
                 TRPI_RING_TASKS / 2)) {
        trpi_inject_push(worker->sched, task);
        return;
    }
    trpi_ring_push(worker, task);
}

/* ---- threads --------------------------------------------------------------------------------- */

void
trpi_thread_began(trpi_sched *sched)
{
    pthread_mutex_lock(&sched->threads_lock);
    sched->threads_alive++;
    pthread_mutex_unlock(&sched->threads_lock);
}

void
trpi_thread_ended(trpi_sched *sched)
{
    pthread_mutex_lock(&sched->threads_lock);
    trpi_assert(sched->threads_alive > 0);
    sched->threads_alive--;
    pthread_cond_broadcast(&sched->threads_cond);
    pthread_mutex_unlock(&sched->threads_lock);
}

/* Signals belong to the program: our threads block all but those that their own instructions
 * raise. */
trp_err
trpi_thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    int failed;

    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)sigdelset(&all, SIGBUS);
    (void)sigdelset(&all, SIGFPE);
    (void)sigdelset(&all, SIGILL);
    (void)sigdelset(&all, SIGTRAP);
    (void)sigdelset(&all, SIGABRT);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(thread, NULL, body, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed != 0 ? TRP_EIO : TRP_OK;
}

static void *
worker_main(void *arg)
{
    trpi_worker *worker = arg;
    trpi_sched *sched = worker->sched;

    clockid_t clock;

    current_worker = worker;
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        atomic_store_explicit(&worker->cpu_clock, clock, memory_order_relaxed);
    }
    atomic_store_explicit(&worker->kernel_thread, (int)syscall(SYS_gettid), memory_order_relaxed);
    (void)pthread_setname_np(pthread_self(), worker->name);
    if (worker->high_priority) {
        /* needs CAP_SYS_NICE or RLIMIT_NICE; else the priority stays as it is */
        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), HIGH_PRIORITY_NICE);
    }
    sched->options.ops->thread(sched->options.arg, worker);
    current_worker = NULL;
    atomic_store_explicit(&worker->kernel_thread, 0, memory_order_relaxed);
    trpi_thread_ended(sched);
    return NULL;
}

int
trpi_worker_kernel_thread(const trpi_worker *worker)
{
    return atomic_load_explicit(&worker->kernel_thread, memory_order_relaxed);
}

uint64_t
trpi_worker_cpu_ns(trpi_worker *worker)
{
    int clock = atomic_load_explicit(&worker->cpu_clock, memory_order_relaxed);
    struct timespec used;

    return clock == 0 || clock_gettime(clock, &used) != 0
               ? 0
               : (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

trp_err
trpi_worker_start(trpi_worker *worker)
{
    trp_err err;

    trpi_thread_began(worker->sched);
    err = trpi_thread_start(&worker->thread, worker_main, worker);
    if (err != TRP_OK) {
        trpi_thread_ended(worker->sched);
        return err;
    }
    worker->thread_made = true;
    return TRP_OK;
}

trp_err
trpi_worker_new(trpi_sched *sched, uint16_t index, bool is_private, trpi_worker **ret_worker)
{
    trpi_worker *worker = trpi_alloc_aligned(128, sched->worker_bytes);
    pthread_condattr_t attributes;

    if (worker == NULL) {
        return TRP_ENOMEM;
    }
    worker->sched = sched;
    worker->index = index;
    worker->is_private = is_private;
    worker->handoff.fenced = !sched->membarrier;
    atomic_init(&worker->inject_countdown, TRPI_INJECT_RUNS);
    worker->victim = index;
    worker->poll_runs = TRPI_INJECT_RUNS;
    (void)snprintf(worker->name, sizeof worker->name, "%.8s-%c%u", sched->name,
                   is_private ? 'p' : 'w', (unsigned)index % 10000u);
    pthread_mutex_init(&worker->deferred.lock, NULL);
    pthread_mutex_init(&worker->queue_lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->queue_cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    *ret_worker = worker;
    return TRP_OK;
}

void
trpi_worker_free(trpi_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    trpi_affine_free(worker);
    trpi_mutex_destroy(&worker->deferred.lock);
    trpi_mutex_destroy(&worker->queue_lock);
    pthread_cond_destroy(&worker->queue_cond);
    trpi_free(worker);
}
