/* agent.c - a value with a queue of changes.
 *
 * Why.     A value that many read and few change needs neither an actor, whose every reader would
 *          ask, nor a lock that its readers share with functions that take long.
 * Shape.   The value is a cell (stm.c), so that it is read whole without a lock. Changes are jobs
 *          in a queue. While there are any, one task is on the way: it runs on the dispatcher of
 *          the first job, does jobs of that dispatcher, TURN at most, and then hands over to a task
 *          for the next one.
 *
 *            send --> [job][job][job off][job]       at most one task of an agent exists
 *                       `--- task on "default" ---' then a task on "blocking", then again
 * Must hold.
 *   agent-G1  At most one task of an agent exists: is_running is true from the queueing of the job
 *       that made it until a task has seen the queue empty, both under the lock.
 *   agent-G2  Each job is done or dropped once, in the order of the queue, and its arg released.
 * Threads. any; the lock is a leaf, and not held while a function of the program runs.
 * Limits.  queue_max.
 * Tests.   tests/unit/pattern/agent_test.c
 * Sources. AGENT-1 to -6
 */
#include <troupe/agent.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/system.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "pattern/executor.h"

enum { TURN = 64 }; /* jobs of a task, before it lets others run */

typedef struct job {
    struct job *next;
    trp_agent *agent; /* counted while it waits for a commit; NULL in the queue */
    trp_agent_fn fn;  /* NULL: the value stays, or becomes `value` */
    void *arg;
    trp_release_fn release;
    trp_promise *promise; /* NULL: not wanted */
    bool is_off, has_value;
    char value[];
} job;

struct trp_agent {
    _Atomic uint32_t refs; /* the program's, one for its task, one for each job that waits */
    uint32_t queue_max;
    trp_system *system;
    trpi_executor *runs; /* counted: it keeps the texts of the dispatchers */
    const char *dispatchers[2];
    trp_stm *stm;
    trp_stm_cell *cell;
    size_t bytes;
    pthread_mutex_t lock; /* guards the rest */
    job *first, **last;
    uint32_t count;
    bool is_running; /* agent-G1 */
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static void
job_free(job *j)
{
    if (j->release != NULL) {
        j->release(j->arg);
    }
    trp_promise_unref(j->promise);
    trpi_free(j);
}

static void
job_drop(job *j, trp_err err)
{
    if (j->promise != NULL) {
        (void)trp_promise_fail(j->promise, err, NULL); /* TRP_EEXIST: nobody else keeps it */
    }
    job_free(j);
}

/* Make a job; arg is the caller's until it is queued. */
static trp_err
job_new(trp_agent *agent, bool is_off, const void *value, bool wants_future, job **ret_job)
{
    const char *dispatcher = agent->dispatchers[is_off];
    job *j = trpi_alloc(sizeof *j + (value == NULL ? 0 : agent->bytes));
    if (j == NULL) {
        return TRP_ENOMEM;
    }
    j->is_off = is_off;
    if (value != NULL) {
        j->has_value = true;
        memcpy(j->value, value, agent->bytes);
    }
    trp_err err = TRP_OK;
    if (wants_future) {
        err = trpi_executor_enter(agent->runs) ? TRP_OK : TRP_ECLOSED;
        if (err == TRP_OK) {
            err = trp_promise_new(agent->system, dispatcher, &j->promise);
            trpi_executor_leave(agent->runs);
        }
    }
    if (err != TRP_OK) {
        trpi_free(j);
        return err;
    }
    *ret_job = j;
    return TRP_OK;
}

typedef struct replacement {
    trp_stm_cell *cell;
    const char *value;
} replacement;

static trp_err
value_replace(trp_txn *txn, void *arg)
{
    const replacement *r = arg;
    return trp_stm_write(txn, r->cell, r->value);
}

/* Do one change on a copy, which becomes the value. */
static void
job_do(trp_agent *agent, job *j, char *copy)
{
    replacement r = { agent->cell, j->has_value ? j->value : copy };
    trp_err err = TRP_OK;
    if (!j->has_value) {
        trp_stm_get(agent->cell, copy);
    }
    if (j->fn != NULL) {
        err = j->fn(j->arg, copy);
    }
    if (err == TRP_OK && (j->fn != NULL || j->has_value)) {
        err = trp_stm_run(agent->stm, value_replace, &r, NULL); /* the only writer: no conflict */
    }
    if (j->promise != NULL && err == TRP_OK) {
        err = trp_promise_succeed(j->promise, &trp_bytes_type, r.value, agent->bytes);
    }
    if (err != TRP_OK) {
        job_drop(j, err);
    } else {
        job_free(j);
    }
}

/* ---- the task -------------------------------------------------------------------------------- */

static void
agent_free_in_task(void *arg)
{
    trp_agent_unref(arg);
}

static trp_err agent_task(void *arg, const trp_outcome *in, trp_promise *out);

/* Put a task on the way for the dispatcher of the first job. Takes a count of the agent, on success
 * only. */
static trp_err
task_start(trp_agent *agent, bool is_off)
{
    trp_future *future = NULL;
    if (!trpi_executor_enter(agent->runs)) {
        return TRP_ECLOSED;
    }
    trp_err err = trp_future_run(agent->system, agent->dispatchers[is_off], agent_task, agent,
                                 agent_free_in_task, &future);
    trpi_executor_leave(agent->runs);
    trp_future_unref(future);
    return err;
}

/* Take the first job, if it is of this dispatcher. NULL: none is; *ret_next tells which dispatcher
 * the next task needs, and *ret_more whether there is one. */
static job *
job_take(trp_agent *agent, bool is_off, bool may, bool *ret_more, bool *ret_next)
{
    pthread_mutex_lock(&agent->lock);
    job *j = agent->first;
    *ret_more = j != NULL;
    *ret_next = j != NULL && j->is_off;
    if (j == NULL) {
        agent->is_running = false;
    } else if (j->is_off != is_off || !may) {
        j = NULL;
    } else {
        agent->first = j->next;
        agent->last = agent->first == NULL ? &agent->first : agent->last;
        agent->count--;
    }
    pthread_mutex_unlock(&agent->lock);
    return j;
}

/* Drop all that waits: no task can be started any more. */
static void
queue_drop(trp_agent *agent, trp_err err)
{
    pthread_mutex_lock(&agent->lock);
    job *next, *j = agent->first;
    agent->first = NULL;
    agent->last = &agent->first;
    agent->count = 0;
    agent->is_running = false;
    pthread_mutex_unlock(&agent->lock);
    for (; j != NULL; j = next) {
        next = j->next;
        job_drop(j, err);
    }
}

/* On a dispatcher. */
static trp_err
agent_task(void *arg, const trp_outcome *in, trp_promise *out)
{
    trp_agent *agent = arg;
    char aside[512], *copy = agent->bytes <= sizeof aside ? aside : trpi_alloc(agent->bytes);
    bool more = false, next = false, is_off;
    uint32_t done = 0;
    job *j;
    (void)in;
    (void)out; /* nobody holds its future */
    pthread_mutex_lock(&agent->lock);
    is_off = agent->first != NULL && agent->first->is_off;
    pthread_mutex_unlock(&agent->lock);
    if (copy == NULL) {
        queue_drop(agent, TRP_ENOMEM);
        return TRP_ENOMEM;
    }
    while ((j = job_take(agent, is_off, done < TURN, &more, &next)) != NULL) {
        job_do(agent, j, copy);
        done++;
    }
    if (copy != aside) {
        trpi_free(copy);
    }
    if (more) {
        trp_err err = task_start(trp_agent_ref(agent), next);
        if (err != TRP_OK) {
            queue_drop(agent, err);
            trp_agent_unref(agent);
        }
    }
    return TRP_ECANCELED; /* the outcome of a future that nobody has */
}

/* Queue a job; on an error it is the caller's still. */
static trp_err
job_queue(trp_agent *agent, job *j)
{
    bool starts;
    pthread_mutex_lock(&agent->lock);
    if (agent->count == agent->queue_max) {
        pthread_mutex_unlock(&agent->lock);
        return TRP_ELIMIT;
    }
    starts = !agent->is_running;
    trpi_assert(!starts || agent->first == NULL);
    agent->is_running = true;
    *agent->last = j;
    agent->last = &j->next;
    agent->count++;
    pthread_mutex_unlock(&agent->lock);
    trp_err err = starts ? task_start(trp_agent_ref(agent), j->is_off) : TRP_OK;
    if (err != TRP_OK) { /* the system ends: what others have queued meanwhile goes, too */
        pthread_mutex_lock(&agent->lock);
        agent->first = j->next;
        agent->last = agent->first == NULL ? &agent->first : agent->last;
        agent->count--;
        pthread_mutex_unlock(&agent->lock);
        queue_drop(agent, err);
        trp_agent_unref(agent);
    }
    return err;
}

/* ---- changes --------------------------------------------------------------------------------- */

static trp_err
change_queue(trp_agent *agent, bool is_off, trp_agent_fn fn, void *arg, trp_release_fn release,
             const void *value, trp_future **ret_future)
{
    job *j = NULL;
    if (agent == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = job_new(agent, is_off, value, ret_future != NULL, &j);
    if (err != TRP_OK) {
        return err;
    }
    j->fn = fn;
    j->arg = arg;
    j->release = release;
    trp_future *future = j->promise == NULL ? NULL : trp_future_ref(trp_promise_future(j->promise));
    err = job_queue(agent, j);
    if (err != TRP_OK) {
        j->release = NULL; /* arg is the caller's */
        job_free(j);
        trp_future_unref(future);
        return err;
    }
    if (ret_future != NULL) {
        *ret_future = future;
    }
    return TRP_OK;
}

trp_err
trp_agent_send(trp_agent *agent, trp_agent_fn fn, void *arg, trp_release_fn release)
{
    return fn == NULL ? TRP_EINVAL : change_queue(agent, false, fn, arg, release, NULL, NULL);
}

trp_err
trp_agent_send_off(trp_agent *agent, trp_agent_fn fn, void *arg, trp_release_fn release)
{
    return fn == NULL ? TRP_EINVAL : change_queue(agent, true, fn, arg, release, NULL, NULL);
}

trp_err
trp_agent_set(trp_agent *agent, const void *value)
{
    return value == NULL ? TRP_EINVAL : change_queue(agent, false, NULL, NULL, NULL, value, NULL);
}

trp_err
trp_agent_alter(trp_agent *agent, int off, trp_agent_fn fn, void *arg, trp_release_fn release,
                trp_future **ret_future)
{
    return fn == NULL || ret_future == NULL
               ? TRP_EINVAL
               : change_queue(agent, off != 0, fn, arg, release, NULL, ret_future);
}

trp_err
trp_agent_future(trp_agent *agent, trp_future **ret_future)
{
    return ret_future == NULL ? TRP_EINVAL
                              : change_queue(agent, false, NULL, NULL, NULL, NULL, ret_future);
}

trp_err
trp_agent_await(trp_agent *agent, uint32_t timeout_ms, void *ret_value)
{
    trp_future *future;
    const trp_msg *value;
    trp_err err = ret_value == NULL ? TRP_EINVAL : trp_agent_future(agent, &future);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_future_result(future, timeout_ms, &value);
    if (err == TRP_OK) {
        memcpy(ret_value, trp_msg_payload(value), agent->bytes);
    }
    trp_future_unref(future);
    return err;
}

/* ---- in a transaction ------------------------------------------------------------------------ */

/* The transaction has committed: the job moves into the queue. */
static void
change_commit(void *arg)
{
    job **place = arg, *j = *place;
    trp_agent *agent = j->agent;
    trp_err err = job_queue(agent, j);
    if (err == TRP_OK) {
        *place = NULL;
    } else if (trpi_executor_enter(agent->runs)) {
        trp_system_log(agent->system, TRP_LOG_WARNING, "agent",
                       "a change of a transaction that has committed is dropped: %s",
                       trp_strerror(err));
        trpi_executor_leave(agent->runs);
    }
}

static void
change_release(void *arg)
{
    job **place = arg;
    if (*place != NULL) {
        job_free(*place);
    }
    trpi_free(place);
}

/* The count of the agent goes last: by then the job may be done. */
typedef struct held_change {
    job *j; /* first: what change_commit() and change_release() see */
} held_change;

static void
agent_release(void *arg)
{
    trp_agent_unref(arg);
}

trp_err
trp_agent_send_in(trp_txn *txn, trp_agent *agent, trp_agent_fn fn, void *arg,
                  trp_release_fn release)
{
    if (txn == NULL || agent == NULL || fn == NULL) {
        return TRP_EINVAL;
    }
    held_change *held = trpi_alloc(sizeof *held);
    trp_err err = held == NULL ? TRP_ENOMEM : job_new(agent, false, NULL, false, &held->j);
    if (err != TRP_OK) {
        trpi_free(held);
        return err;
    }
    held->j->agent = agent;
    held->j->fn = fn;
    held->j->arg = arg;
    err = trp_txn_on_commit(txn, change_commit, change_release, held);
    if (err != TRP_OK) {
        trpi_free(held->j);
        trpi_free(held);
        return err;
    }
    err = trp_txn_on_commit(txn, NULL, agent_release, agent); /* behind the job's */
    if (err != TRP_OK) {
        return err; /* the job has no release yet, and this run does not commit */
    }
    (void)trp_agent_ref(agent);
    held->j->release = release;
    return TRP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trp_agent_new(trp_system *system, const void *value, size_t bytes, const trp_agent_options *options,
              trp_agent **ret_agent)
{
    trp_agent_options own = TRP_AGENT_OPTIONS_INIT;
    if (system == NULL || value == NULL || ret_agent == NULL ||
        !TRPI_SIZED_COPY(options, &own, zero)) {
        return TRP_EINVAL;
    }
    trp_agent *agent = trpi_alloc(sizeof *agent);
    if (agent == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&agent->refs, 1);
    agent->system = system;
    agent->bytes = bytes;
    agent->queue_max = own.queue_max == 0 ? TRP_AGENT_QUEUE_DEFAULT : own.queue_max;
    agent->last = &agent->first;
    pthread_mutex_init(&agent->lock, NULL);
    trpi_executor *runs = NULL;
    trp_err err =
        trpi_executor_get(system, own.off_dispatcher == NULL ? "blocking" : own.off_dispatcher,
                          &runs, &agent->dispatchers[1]);
    err = err != TRP_OK ? err
                        : trpi_executor_get(system, own.dispatcher, &runs, &agent->dispatchers[0]);
    if (err == TRP_OK) {
        agent->runs = trpi_executor_ref(runs);
        err = trp_stm_new(&agent->stm);
    }
    err = err != TRP_OK ? err : trp_stm_cell_new(agent->stm, value, bytes, &agent->cell);
    if (err != TRP_OK) {
        trp_agent_unref(agent);
        return err;
    }
    *ret_agent = agent;
    return TRP_OK;
}

trp_agent *
trp_agent_ref(trp_agent *agent)
{
    (void)atomic_fetch_add_explicit(&agent->refs, 1, memory_order_relaxed);
    return agent;
}

void
trp_agent_unref(trp_agent *agent)
{
    /* release: what this thread did to the agent; acquire: the last one sees all of it */
    if (agent == NULL || atomic_fetch_sub_explicit(&agent->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    trpi_assert(agent->first == NULL); /* a job has a task, and that a count */
    trp_stm_cell_free(agent->cell);
    trp_stm_free(agent->stm);
    if (agent->runs != NULL) {
        trpi_executor_unref(agent->runs);
    }
    trpi_mutex_destroy(&agent->lock);
    trpi_free(agent);
}

void
trp_agent_get(const trp_agent *agent, void *ret_value)
{
    trp_stm_get(agent->cell, ret_value);
}

trp_err
trp_agent_foreach(const trp_agent *agent, trp_err (*fn)(void *arg, const void *value), void *arg)
{
    if (agent == NULL || fn == NULL) {
        return TRP_EINVAL;
    }
    char *copy = trpi_alloc(agent->bytes);
    if (copy == NULL) {
        return TRP_ENOMEM;
    }
    trp_agent_get(agent, copy);
    trp_err err = fn(arg, copy);
    trpi_free(copy);
    return err;
}

typedef struct mapping {
    trp_err (*fn)(void *arg, const void *value, void *ret_value);
    void *arg, *result;
} mapping;

static trp_err
mapping_apply(void *arg, const void *value)
{
    const mapping *m = arg;
    return m->fn(m->arg, value, m->result);
}

trp_err
trp_agent_map(const trp_agent *agent, trp_err (*fn)(void *arg, const void *value, void *ret_value),
              void *arg, size_t bytes, trp_agent **ret_agent)
{
    if (agent == NULL || fn == NULL || ret_agent == NULL || bytes == 0 ||
        bytes > TRP_STM_CELL_BYTES_MAX) {
        return TRP_EINVAL;
    }
    trp_agent_options options = TRP_AGENT_OPTIONS_INIT;
    mapping m = { fn, arg, trpi_alloc(bytes) };
    if (m.result == NULL) {
        return TRP_ENOMEM;
    }
    options.dispatcher = agent->dispatchers[0];
    options.off_dispatcher = agent->dispatchers[1];
    options.queue_max = agent->queue_max;
    trp_err err = trp_agent_foreach(agent, mapping_apply, &m);
    if (err == TRP_OK) {
        err = trpi_executor_enter(agent->runs) ? TRP_OK : TRP_ECLOSED;
        if (err == TRP_OK) {
            err = trp_agent_new(agent->system, m.result, bytes, &options, ret_agent);
            trpi_executor_leave(agent->runs);
        }
    }
    trpi_free(m.result);
    return err;
}
