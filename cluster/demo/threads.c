/* threads.c - the threads of a demonstration's actors: a dispatcher's executor.
 *
 * Why.     The screen adds and removes threads while its actors run. A dispatcher of the library
 *          has its number of threads from its registration on; TRP_DISPATCHER_CUSTOM leaves them to
 *          the program.
 * Shape.   push() --> queue --> a thread: run(job)
 *          set(): thread i lives while i < wanted. It ends between two jobs, so one with a lower
 *          number may end before one with a higher number.
 * Must hold.
 *   threads-T1  A thread that has left takes no job, and the stage shows each that has not: it
 *       shows as many as the highest number that lives, and one.                  (there_are)
 *   threads-T2  A thread that is to leave wakes the others when it was woken for a job: all are
 *       woken when the number falls.                                              (set)
 * Threads. lock guards all but the options; the stage's is taken inside it.
 * Limits.  TRPI_STAGE_THREADS_MAX; an actor has one job at a time: TRPI_STAGE_ACTORS_MAX.
 * Tests.   tests/unit/demo/threads_test.c, tests/system/demo.sh
 * Sources. UJ-44 (Add Task, Remove Task).
 */
#include "cluster/demo/threads.h"

#include <pthread.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

typedef struct thread_place {
    trpi_demo_threads *threads;
    pthread_t thread;
    bool is_made; /* the owner's: it is to be joined */
    bool lives;   /* in a job, or waits for one; false: it takes the lock no more */
} thread_place;

struct trpi_demo_threads {
    trpi_stage *stage;
    trpi_demo_threads_fn run;
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    uint32_t wanted;
    uint32_t first, count; /* of the queue */
    trp_dispatcher_job *queue[TRPI_STAGE_ACTORS_MAX];
    thread_place places[TRPI_STAGE_THREADS_MAX];
};

static _Thread_local uint32_t current = TRPI_STAGE_NOBODY;

uint32_t
trpi_demo_threads_current(void)
{
    return current;
}

/* threads-T1. */
static void
there_are(trpi_demo_threads *threads)
{
    uint32_t count = threads->wanted;
    for (uint32_t i = count; i < TRPI_STAGE_THREADS_MAX; i++) {
        count = threads->places[i].lives ? i + 1 : count;
    }
    if (count > 0) { /* none is left at the very end: the stage keeps what it shows */
        trpi_stage_threads_set(threads->stage, count);
    }
}

static void *
thread_main(void *arg)
{
    thread_place *place = arg;
    trpi_demo_threads *threads = place->threads;
    current = (uint32_t)(place - threads->places);
    pthread_mutex_lock(&threads->lock);
    while (current < threads->wanted) {
        if (threads->count == 0) {
            pthread_cond_wait(&threads->cond, &threads->lock);
            continue;
        }
        trp_dispatcher_job *job = threads->queue[threads->first];
        threads->first = (threads->first + 1) % TRPI_STAGE_ACTORS_MAX;
        threads->count--;
        pthread_mutex_unlock(&threads->lock);
        threads->run(threads->arg, job);
        pthread_mutex_lock(&threads->lock);
    }
    place->lives = false;
    there_are(threads);
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

trp_err
trpi_demo_threads_new(trpi_stage *stage, trpi_demo_threads_fn run, void *arg,
                      trpi_demo_threads **ret_threads)
{
    trpi_demo_threads *threads = trpi_alloc(sizeof *threads);
    if (threads == NULL) {
        return TRP_ENOMEM;
    }
    threads->stage = stage;
    threads->run = run;
    threads->arg = arg;
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->cond, NULL);
    *ret_threads = threads;
    return TRP_OK;
}

/* Make the thread of a place, with the lock held. */
static trp_err
place_fill(trpi_demo_threads *threads, uint32_t number)
{
    thread_place *place = &threads->places[number];
    if (place->lives) { /* it was to leave, and is in its last job */
        return TRP_OK;
    }
    if (place->is_made) {
        (void)pthread_join(place->thread, NULL);
    }
    place->threads = threads;
    place->is_made = place->lives = pthread_create(&place->thread, NULL, thread_main, place) == 0;
    return place->is_made ? TRP_OK : TRP_EIO;
}

trp_err
trpi_demo_threads_set(trpi_demo_threads *threads, uint32_t count)
{
    trp_err err = TRP_OK;
    trpi_assert(count > 0 && count <= TRPI_STAGE_THREADS_MAX);
    pthread_mutex_lock(&threads->lock);
    uint32_t before = threads->wanted;
    threads->wanted = count;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = place_fill(threads, i);
    }
    if (err != TRP_OK) {
        threads->wanted = before;
    }
    there_are(threads);
    pthread_cond_broadcast(&threads->cond); /* threads-T2 */
    pthread_mutex_unlock(&threads->lock);
    return err;
}

void
trpi_demo_threads_push(void *arg, trp_dispatcher_job *job)
{
    trpi_demo_threads *threads = arg;
    pthread_mutex_lock(&threads->lock);
    trpi_assert(threads->count < TRPI_STAGE_ACTORS_MAX);
    threads->queue[(threads->first + threads->count) % TRPI_STAGE_ACTORS_MAX] = job;
    threads->count++;
    pthread_cond_signal(&threads->cond);
    pthread_mutex_unlock(&threads->lock);
}

void
trpi_demo_threads_free(trpi_demo_threads *threads)
{
    if (threads == NULL) {
        return;
    }
    pthread_mutex_lock(&threads->lock);
    threads->wanted = 0;
    pthread_cond_broadcast(&threads->cond);
    pthread_mutex_unlock(&threads->lock);
    for (uint32_t i = 0; i < TRPI_STAGE_THREADS_MAX; i++) {
        if (threads->places[i].is_made) {
            (void)pthread_join(threads->places[i].thread, NULL);
        }
    }
    pthread_cond_destroy(&threads->cond);
    trpi_mutex_destroy(&threads->lock);
    trpi_free(threads);
}
