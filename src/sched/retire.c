/* retire.c - safe memory reclamation by quiescent states: an object is freed after a grace period.
 *
 * Why.     Routee tables, the name registry, the node table are read on hot paths: a reader pays
 *          nothing (worker) or one locked add (foreign thread), the writer waits.
 * Shape.   retire() puts an object on a list. A grace period, stepped by a timer every millisecond
 *          while there is something to free:
 *            1. make every core pass a full barrier, note each worker's progress; wait for the
 *               foreign readers of the other phase
 *            2. flip the phase; wait for the readers of the old one, and until each worker has
 *               ended a run or sleeps
 *            3. free; start again with objects that were retired meanwhile
 * Must hold.
 *   retire-R1  An object is unreachable before it is retired. After the barrier of step 1 every new
 *       read, on any core, finds the new pointer; so only runs that were under way at the barrier
 *       matter, and they end with an increment of progress (release; our load is acquire).
 *   retire-R2  A foreign reader counts itself in the phase that it read, possibly long ago: so both
 *       counters must be read as zero, one before and one after the flip.
 * Limits.  Out of memory for the list entry: the object is leaked.
 * Tests.   tests/unit/sched/timer_test.c
 */
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include "base/alloc.h"
#include "sched/worker.h"

#define WORKERS_ALL (TRPI_POOL_MAX + TRPI_PRIVATE_MAX)
#define PROGRESS_NONE UINT64_MAX /* do not wait for this worker */

typedef struct trpi_retired {
    struct trpi_retired *next;
    void (*fn)(void *object);
    void *object;
} trpi_retired;

static void grace_step(void *arg, uint64_t a, uint64_t b);

static void
retired_free_all(trpi_retired *list)
{
    while (list != NULL) {
        trpi_retired *next = list->next;

        list->fn(list->object);
        trpi_free(list);
        list = next;
    }
}

static void
grace_timer_arm(trpi_sched *sched)
{
    uint64_t id;

    if (trpi_timer_add(sched, 1, grace_step, sched, 0, 0, &id) != TRP_OK) {
        pthread_mutex_lock(&sched->retire_lock);
        sched->retire_armed = false; /* the next retire tries again; trpi_retire_all() frees all */
        pthread_mutex_unlock(&sched->retire_lock);
    }
}

void
trpi_retire(trpi_sched *sched, void (*fn)(void *object), void *object)
{
    trpi_retired *note = trpi_alloc(sizeof *note);
    bool was_armed;

    if (note == NULL) {
        return; /* see Limits */
    }
    note->fn = fn;
    note->object = object;
    pthread_mutex_lock(&sched->retire_lock);
    note->next = sched->retired;
    sched->retired = note;
    was_armed = sched->retire_armed || sched->driven; /* driven: trpi_retire_between_runs() */
    sched->retire_armed = true;
    pthread_mutex_unlock(&sched->retire_lock);
    if (!was_armed) {
        grace_timer_arm(sched);
    }
}

static void
progress_note(trpi_sched *sched)
{
    if (sched->membarrier) {
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    } else {
        /* Slow, but always there: the global one needs no registration (Linux 4.3). */
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    }
    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        sched->grace_progress[i] = PROGRESS_NONE;
        if (worker != NULL) {
            sched->grace_progress[i] =
                atomic_load_explicit(&worker->progress, memory_order_acquire);
        }
    }
}

static bool
workers_passed(trpi_sched *sched)
{
    bool passed = true;

    for (uint32_t i = 0; i < WORKERS_ALL; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker == NULL || sched->grace_progress[i] == PROGRESS_NONE) {
            continue;
        }
        /* acquire: pairs with the release at the end of a run (retire-R1); asleep is set only
         * between runs */
        if (atomic_load_explicit(&worker->progress, memory_order_acquire) !=
                sched->grace_progress[i] ||
            atomic_load_explicit(&worker->asleep, memory_order_seq_cst)) {
            sched->grace_progress[i] = PROGRESS_NONE;
        } else {
            passed = false;
        }
    }
    return passed;
}

static bool
readers_gone(trpi_sched *sched, uint32_t phase)
{
    trpi_fence(sched);
    /* seq_cst: pairs with the add in enter (retire-R2); its acquire part: reads are done */
    return atomic_load_explicit(&sched->foreign_count[phase & 1], memory_order_seq_cst) == 0;
}

/* Timer thread: the only one that touches grace, grace_step and grace_progress. */
static void
grace_step(void *arg, uint64_t a, uint64_t b)
{
    trpi_sched *sched = arg;
    uint32_t phase = atomic_load_explicit(&sched->foreign_phase, memory_order_relaxed);
    bool more;

    (void)a;
    (void)b;
    if (sched->grace == NULL) {
        pthread_mutex_lock(&sched->retire_lock);
        sched->grace = sched->retired;
        sched->retired = NULL;
        pthread_mutex_unlock(&sched->retire_lock);
        progress_note(sched);
        sched->grace_step = 1;
    }
    if (sched->grace_step == 1 && readers_gone(sched, phase + 1)) {
        atomic_store_explicit(&sched->foreign_phase, ++phase, memory_order_seq_cst);
        sched->grace_step = 2;
    }
    if (sched->grace_step == 2 && readers_gone(sched, phase + 1) && workers_passed(sched)) {
        retired_free_all(sched->grace);
        sched->grace = NULL;
    }
    pthread_mutex_lock(&sched->retire_lock);
    more = sched->grace != NULL || sched->retired != NULL;
    sched->retire_armed = more;
    pthread_mutex_unlock(&sched->retire_lock);
    if (more) {
        grace_timer_arm(sched);
    }
}

uint32_t
trpi_sched_enter(trpi_sched *sched)
{
    uint32_t phase = atomic_load_explicit(&sched->foreign_phase, memory_order_seq_cst);

    (void)atomic_fetch_add_explicit(&sched->foreign_count[phase & 1], 1, memory_order_seq_cst);
    trpi_fence(sched); /* retire-R2: our reads come after it */
    return phase;
}

void
trpi_sched_leave(trpi_sched *sched, uint32_t phase)
{
    (void)atomic_fetch_sub_explicit(&sched->foreign_count[phase & 1], 1, memory_order_seq_cst);
}

void
trpi_retire_between_runs(trpi_sched *sched)
{
    trpi_retired *list = sched->retired;

    sched->retired = NULL;
    retired_free_all(list);
}

void
trpi_retire_all(trpi_sched *sched)
{
    retired_free_all(sched->grace);
    retired_free_all(sched->retired);
    sched->grace = sched->retired = NULL;
}
