/* executor.c - runs the callbacks of a system's futures, until the system ends.
 *
 * Why.     A callback may come when its system is about to end, or is gone. All uses of a system by
 *          futures pass here, and are refused once it ends.
 * Shape.   an extension of the system, counted by its futures: open --stop--> closed --release-->
 *          without the system, until the last future goes.
 * Must hold.
 *   executor-X1  No thread is inside the system (enter .. leave) after stop has returned.
 *   executor-X2  Each pending callback runs: by its dispatcher, or at release.
 *   executor-X3  Each alarm rings, is cancelled, or fails with TRP_ECLOSED at stop.
 * Threads. any; the lock is a leaf but for the timers', and not held while a callback runs.
 * Tests.   tests/unit/pattern/future_test.c
 */
#include "pattern/executor.h"

#include <pthread.h>
#include <string.h>

#include <troupe/dispatcher.h>
#include <troupe/extension.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"

typedef struct dispatcher_id {
    struct dispatcher_id *next;
    char text[];
} dispatcher_id;

typedef struct trpi_alarm { /* a timer that settles a promise */
    struct trpi_alarm *before, *after;
    trpi_executor *runs;
    trp_promise *promise; /* counted */
    trp_err err;          /* the outcome that it gives */
    uint64_t timer_id;
} alarm;

/* The executor of a system, an extension of it. */
struct trpi_executor {
    _Atomic uint32_t refs; /* the extension, and each future */
    trp_system *system;    /* while open */
    pthread_mutex_t lock;  /* guards the rest */
    pthread_cond_t left;   /* signalled when users is 0, or alarms NULL */
    bool closed;
    uint32_t users;         /* threads that use the system just now */
    trpi_callback *pending; /* given to a dispatcher, and not run yet */
    alarm *alarms;          /* that have not rung */
    dispatcher_id *ids;     /* only ever added to */
};

void
trpi_executor_unref(trpi_executor *runs)
{
    if (atomic_fetch_sub_explicit(&runs->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    while (runs->ids != NULL) {
        dispatcher_id *id = runs->ids;

        runs->ids = id->next;
        trpi_free(id);
    }
    pthread_cond_destroy(&runs->left);
    trpi_mutex_destroy(&runs->lock);
    trpi_free(runs);
}

static trp_err
executor_create(trp_system *system, void *arg, void **ret_instance)
{
    trpi_executor *runs = trpi_alloc(sizeof *runs);

    (void)arg;
    if (runs == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&runs->refs, 1);
    runs->system = system;
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->left, NULL);
    *ret_instance = runs;
    return TRP_OK;
}

/* With the lock. */
static void
alarm_unlink(alarm *a)
{
    if (a->before != NULL) {
        a->before->after = a->after;
    } else {
        a->runs->alarms = a->after;
    }
    if (a->after != NULL) {
        a->after->before = a->before;
    }
}

static void
alarm_free(alarm *a)
{
    trp_promise_unref(a->promise);
    trpi_free(a);
}

static void
alarm_end(alarm *a, trpi_outcome *outcome)
{
    (void)trpi_promise_settle(a->promise, outcome);
    alarm_free(a);
}

/* On the timer's thread. */
static void
alarm_rings(void *arg)
{
    alarm *a = arg;
    trpi_executor *runs = a->runs;

    pthread_mutex_lock(&runs->lock);
    alarm_unlink(a);
    if (runs->alarms == NULL && runs->closed) {
        pthread_cond_broadcast(&runs->left);
    }
    pthread_mutex_unlock(&runs->lock);
    alarm_end(a,
              a->err == TRP_OK ? trpi_outcome_joined(NULL, 0) : trpi_outcome_failure(a->err, NULL));
}

/* Close the executor (future-F3): wait for alarms that ring already, and cancel the others. */
static void
executor_stop(void *instance)
{
    trpi_executor *runs = instance;

    pthread_mutex_lock(&runs->lock);
    runs->closed = true;
    for (alarm *a = runs->alarms, *next; a != NULL; a = next) {
        next = a->after;
        if (trpi_system_after_cancel(runs->system, a->timer_id)) {
            alarm_unlink(a);
            a->after = NULL;
            pthread_mutex_unlock(&runs->lock);
            alarm_end(a, trpi_outcome_failure(TRP_ECLOSED, "the system ended"));
            pthread_mutex_lock(&runs->lock);
            next = runs->alarms; /* the list may have changed */
        }
    }
    while (runs->users > 0 || runs->alarms != NULL) {
        pthread_cond_wait(&runs->left, &runs->lock);
    }
    pthread_mutex_unlock(&runs->lock);
}

/* Run the callbacks that no dispatcher has run. The threads have ended. */
static void
executor_release(void *instance)
{
    trpi_executor *runs = instance;

    while (runs->pending != NULL) {
        trpi_callback_run_pending(runs->pending);
    }
    trpi_executor_unref(runs);
}

static const trp_extension executor_extension = { sizeof(trp_extension), "futures",
                                                  executor_create,       executor_stop,
                                                  executor_release,      NULL };

/* Return whether the system may be used, until executor_leave(). */
bool
trpi_executor_enter(trpi_executor *runs)
{
    bool open;

    pthread_mutex_lock(&runs->lock);
    open = !runs->closed;
    runs->users += open;
    pthread_mutex_unlock(&runs->lock);
    return open;
}

void
trpi_executor_leave(trpi_executor *runs)
{
    pthread_mutex_lock(&runs->lock);
    if (--runs->users == 0 && runs->closed) {
        pthread_cond_broadcast(&runs->left);
    }
    pthread_mutex_unlock(&runs->lock);
}

/* Keep the text of an id once; NULL: out of memory. */
static const char *
executor_id(trpi_executor *runs, const char *text)
{
    size_t bytes = strlen(text) + 1;
    dispatcher_id *id;

    pthread_mutex_lock(&runs->lock);
    for (id = runs->ids; id != NULL && strcmp(id->text, text) != 0;) {
        id = id->next;
    }
    if (id == NULL) {
        id = trpi_alloc(sizeof *id + bytes);
        if (id != NULL) {
            memcpy(id->text, text, bytes);
            id->next = runs->ids;
            runs->ids = id;
        }
    }
    pthread_mutex_unlock(&runs->lock);
    return id == NULL ? NULL : id->text;
}

void
trpi_executor_pending_add(trpi_executor *runs, trpi_callback *callback)
{
    pthread_mutex_lock(&runs->lock);
    callback->before = NULL;
    callback->after = runs->pending;
    if (runs->pending != NULL) {
        runs->pending->before = callback;
    }
    runs->pending = callback;
    pthread_mutex_unlock(&runs->lock);
}

void
trpi_executor_pending_remove(trpi_executor *runs, trpi_callback *callback)
{
    pthread_mutex_lock(&runs->lock);
    if (callback->before != NULL) {
        callback->before->after = callback->after;
    } else {
        runs->pending = callback->after;
    }
    if (callback->after != NULL) {
        callback->after->before = callback->before;
    }
    pthread_mutex_unlock(&runs->lock);
}

trp_err
trpi_executor_alarm(trpi_executor *runs, trp_promise *promise, uint64_t delay_ms, trp_err with,
                    trpi_alarm_id *ret_id)
{
    alarm *a = trpi_alloc(sizeof *a);
    trp_err err = TRP_ECLOSED;

    if (a == NULL) {
        return TRP_ENOMEM;
    }
    a->runs = runs;
    a->promise = trp_promise_ref(promise);
    a->err = with;
    pthread_mutex_lock(&runs->lock); /* it must not ring before it is in the list and has an id */
    if (!runs->closed) {
        err = trpi_system_after(runs->system, delay_ms, alarm_rings, a, &a->timer_id);
    }
    if (err == TRP_OK) {
        a->after = runs->alarms;
        if (runs->alarms != NULL) {
            runs->alarms->before = a;
        }
        runs->alarms = a;
        if (ret_id != NULL) {
            *ret_id = (trpi_alarm_id){ runs, a, a->timer_id };
        }
    }
    pthread_mutex_unlock(&runs->lock);
    if (err != TRP_OK) {
        alarm_free(a);
    }
    return err;
}

/* The id belongs to one alarm alone: while it can be cancelled, the alarm exists. */
void
trpi_alarm_cancel(const trpi_alarm_id *id)
{
    trpi_executor *runs = id->runs;
    bool ours;

    if (runs == NULL) {
        return;
    }
    pthread_mutex_lock(&runs->lock);
    ours = !runs->closed && trpi_system_after_cancel(runs->system, id->timer_id);
    if (ours) {
        alarm_unlink(id->alarm);
    }
    pthread_mutex_unlock(&runs->lock);
    if (ours) {
        alarm_free(id->alarm);
    }
}

trp_err
trpi_executor_get(trp_system *system, const char *dispatcher, trpi_executor **ret_executor,
                  const char **ret_id)
{
    trp_dispatcher_info info = { sizeof info, 0, 0, 0, 0, 0, 0 };
    const char *id = dispatcher == NULL ? "default" : dispatcher;
    void *instance;
    trp_err err = trp_dispatcher_find(system, id, &info);

    if (err == TRP_OK) {
        err = trp_extension_get(system, &executor_extension, &instance);
    }
    if (err != TRP_OK) {
        return err;
    }
    id = executor_id(instance, id);
    if (id == NULL) {
        return TRP_ENOMEM;
    }
    *ret_executor = instance;
    *ret_id = id;
    return TRP_OK;
}

trpi_executor *
trpi_executor_ref(trpi_executor *runs)
{
    (void)atomic_fetch_add_explicit(&runs->refs, 1, memory_order_relaxed);
    return runs;
}

trp_system *
trpi_executor_system(const trpi_executor *runs)
{
    return runs->system;
}
