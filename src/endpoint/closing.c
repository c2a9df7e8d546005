/* closing.c - close what may never be closed: on a thread of its own, with a deadline.
 *
 * Why.     nng's closing may hang (nng-library-N7). An actor that waits for it would hold its
 *          thread of the dispatcher, and the end of the system.
 * Must hold.
 *   closing-L1  The later of the two frees what they share: the thread if it is late, else the
 *       caller.
 *   closing-L2  A closing counts as late from when its caller gives up until it has ended.
 * Limits.  TRPI_CLOSING_LATE_MAX threads are late; then the caller opens nothing more.
 * Tests.   tests/unit/endpoint/nng_closing_test.c
 */
#include "endpoint/closing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "endpoint/endpoint.h"

typedef struct closing {
    void (*run)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended, left; /* under lock */
} closing;

static _Atomic uint32_t late;

uint32_t
trpi_closing_late(void)
{
    return atomic_load_explicit(&late, memory_order_relaxed);
}

static void
closing_free(closing *c)
{
    pthread_cond_destroy(&c->changed);
    trpi_mutex_destroy(&c->lock);
    trpi_free(c);
}

static void *
closing_main(void *arg)
{
    closing *c = arg;
    c->run(c->arg);
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    bool left = c->left;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (left) {
        closing_free(c); /* closing-L1 */
        (void)atomic_fetch_sub_explicit(&late, 1, memory_order_relaxed);
    }
    return NULL;
}

static closing *
closing_new(void (*run)(void *), void *arg)
{
    pthread_condattr_t attributes;
    closing *c = trpi_alloc(sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->run = run;
    c->arg = arg;
    pthread_mutex_init(&c->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return c;
}

/* Wait for the end, or give up: closing-L2. */
static bool
closing_wait(closing *c)
{
    uint32_t ms = trpi_closing_late() == 0 ? TRPI_CLOSING_WAIT_MS : TRPI_CLOSING_NEXT_MS;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* of the condition; nng lives in real time */
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&c->lock);
    while (!c->ended && pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT) {
    }
    bool ended = c->ended;
    if (!ended) {
        c->left = true;
        (void)atomic_fetch_add_explicit(&late, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&c->lock);
    return ended;
}

bool
trpi_closing_run(void (*run)(void *arg), void *arg)
{
    closing *c = closing_new(run, arg);
    pthread_t thread;
    /* no memory, no thread: here, without a deadline */
    if (c == NULL || !trpi_endpoint_thread(&thread, closing_main, c)) {
        if (c != NULL) {
            closing_free(c);
        }
        run(arg);
        return true;
    }
    if (!closing_wait(c)) {
        (void)pthread_detach(thread);
        return false;
    }
    (void)pthread_join(thread, NULL); /* it has let go of the lock when it has ended */
    closing_free(c);
    return true;
}
