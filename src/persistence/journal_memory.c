/* journal_memory.c - a journal in memory: for tests, and the model of every other one.
 *
 * Why.   Tests of persistent state need a journal that fails, fills up and stands still on order.
 * Shape. submit appends to one queue. The thread that finds nobody at work works it off, in order,
 *        without the lock: give and done may submit again.
 * Must hold.
 *   1  One thread at a time uses the data: the one that set is_busy.
 *   2  Operations are carried out in the order of submission; what is held keeps its place.
 * Tests. tests/unit/persistence/journal_kit_test.c, tests/unit/persistence/journal_memory_test.c
 */
#include "persistence/journal_memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "persistence/journal_op.h"

struct trp_journal_memory {
    trp_journal_driver driver;
    pthread_mutex_t lock; /* of what follows, up to data */
    trp_journal_op *first;
    trp_journal_op *last;
    uint32_t waiting;
    bool is_busy;
    bool is_held;
    trp_journal_kind fail_kind; /* 0: what changes something */
    uint32_t fail_skip;
    uint32_t fail_calls;
    trp_journal_outcome fail_outcome;
    trp_err fail_err;
    uint64_t groups;
    uint64_t events;
    uint64_t refused;
    uint64_t failed;
    uint64_t bytes;        /* of data, as last worked off */
    uint64_t bytes_max;    /* asked for */
    trpi_memory_data data; /* of the thread that set is_busy */
};

/* The link of the queue is a field that the operation has for its driver. */
static trp_journal_op *
op_next(const trp_journal_op *op)
{
    return op->driver[0];
}

/* The answer that a test has ordered, taken under the lock. */
typedef struct verdict {
    trp_journal_outcome outcome; /* PENDING: that of the data */
    trp_err err;
    bool is_carried_out;
} verdict;

static verdict
verdict_take(trp_journal_memory *memory, const trp_journal_op *op)
{
    verdict way = { TRP_JOURNAL_PENDING, TRP_OK, true };

    if (memory->fail_calls == 0 ||
        (memory->fail_kind == 0 ? !trpi_journal_op_is_change(op) : op->kind != memory->fail_kind)) {
        return way;
    }
    if (memory->fail_skip > 0) {
        memory->fail_skip--;
        return way;
    }
    way.outcome = memory->fail_outcome;
    way.err = memory->fail_err;
    way.is_carried_out = way.outcome == TRP_JOURNAL_FAILED && memory->fail_calls % 2 == 0;
    memory->fail_calls--;
    return way;
}

static void
op_ignore(trp_journal_op *op)
{
    (void)op;
}

static void
op_run(trp_journal_memory *memory, trp_journal_op *op, verdict way)
{
    trp_journal_done_fn done = op->done;
    trp_journal_kind kind = op->kind;
    uint32_t events = op->events_count;

    op->done = op_ignore; /* the answer is counted before its maker has it */
    if (way.is_carried_out) {
        trpi_memory_data_run(&memory->data, op);
    }
    if (way.outcome != TRP_JOURNAL_PENDING) {
        trp_journal_op_finish(op, way.outcome, way.err, "the test asked for this: %s",
                              trp_strerror(way.err));
    }
    op->done = done;
    pthread_mutex_lock(&memory->lock);
    memory->waiting--;
    memory->refused += op->outcome == TRP_JOURNAL_REFUSED;
    memory->failed += op->outcome == TRP_JOURNAL_FAILED;
    if (op->outcome == TRP_JOURNAL_DONE && kind == TRP_JOURNAL_APPEND) {
        memory->groups++;
        memory->events += events;
    }
    memory->bytes = memory->data.bytes;
    pthread_mutex_unlock(&memory->lock);
    done(op);
}

/* Work the queue off, unless another thread does, or it is held. */
static void
memory_work(trp_journal_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    if (memory->is_busy) {
        pthread_mutex_unlock(&memory->lock);
        return;
    }
    memory->is_busy = true;
    while (memory->first != NULL && !memory->is_held) {
        trp_journal_op *op = memory->first;
        verdict way = verdict_take(memory, op);

        memory->first = op_next(op);
        memory->data.bytes_max = memory->bytes_max;
        pthread_mutex_unlock(&memory->lock);
        op_run(memory, op, way);
        pthread_mutex_lock(&memory->lock);
    }
    memory->is_busy = false;
    pthread_mutex_unlock(&memory->lock);
}

static void
memory_submit(void *arg, trp_journal_op *op)
{
    trp_journal_memory *memory = arg;

    if (trp_journal_op_check(op) != TRP_OK) {
        pthread_mutex_lock(&memory->lock);
        memory->refused++;
        pthread_mutex_unlock(&memory->lock);
        return;
    }
    op->driver[0] = NULL;
    pthread_mutex_lock(&memory->lock);
    if (memory->first == NULL) {
        memory->first = op;
    } else {
        memory->last->driver[0] = op;
    }
    memory->last = op;
    memory->waiting++;
    pthread_mutex_unlock(&memory->lock);
    memory_work(memory);
}

static void
memory_health(void *arg, trp_journal_health *ret_health)
{
    trp_journal_memory *memory = arg;
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;

    pthread_mutex_lock(&memory->lock);
    health.waiting = memory->waiting;
    health.groups = memory->groups;
    health.events = memory->events;
    health.commits = memory->groups;
    health.refused = memory->refused;
    health.failed = memory->failed;
    health.bytes = memory->bytes;
    pthread_mutex_unlock(&memory->lock);
    (void)TRPI_SIZED_FILL(ret_health, &health, why);
}

trp_err
trp_journal_memory_new(trp_journal_memory **ret_memory)
{
    trp_journal_memory *memory = ret_memory != NULL ? trpi_alloc(sizeof *memory) : NULL;

    if (memory == NULL) {
        return ret_memory != NULL ? TRP_ENOMEM : TRP_EINVAL;
    }
    pthread_mutex_init(&memory->lock, NULL);
    memory->driver = (trp_journal_driver){ sizeof memory->driver, "memory",      memory, 1, 0,
                                           memory_submit,         memory_health, NULL };
    *ret_memory = memory;
    return TRP_OK;
}

void
trp_journal_memory_free(trp_journal_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    while (memory->first != NULL) {
        trp_journal_op *op = memory->first;

        memory->first = op_next(op);
        trp_journal_op_finish(op, TRP_JOURNAL_FAILED, TRP_ECLOSED, "the journal has been freed");
    }
    trpi_memory_data_fini(&memory->data);
    trpi_mutex_destroy(&memory->lock);
    trpi_free(memory);
}

const trp_journal_driver *
trp_journal_memory_driver(trp_journal_memory *memory)
{
    return &memory->driver;
}

void
trp_journal_memory_shared(trp_journal_memory *memory, int shared)
{
    memory->driver.shared = shared != 0;
}

void
trp_journal_memory_fail(trp_journal_memory *memory, trp_journal_kind kind, uint32_t skip,
                        uint32_t calls, trp_journal_outcome outcome, trp_err err)
{
    pthread_mutex_lock(&memory->lock);
    memory->fail_kind = kind;
    memory->fail_skip = skip;
    memory->fail_calls = calls;
    memory->fail_outcome = outcome;
    memory->fail_err = err;
    pthread_mutex_unlock(&memory->lock);
}

void
trp_journal_memory_hold(trp_journal_memory *memory, int on)
{
    pthread_mutex_lock(&memory->lock);
    memory->is_held = on != 0;
    pthread_mutex_unlock(&memory->lock);
    if (!on) {
        memory_work(memory);
    }
}

void
trp_journal_memory_limit(trp_journal_memory *memory, uint64_t bytes)
{
    pthread_mutex_lock(&memory->lock);
    memory->bytes_max = bytes;
    pthread_mutex_unlock(&memory->lock);
}
