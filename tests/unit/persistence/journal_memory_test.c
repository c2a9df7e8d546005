/* journal_memory_test.c - the journal in memory: what it does on order, besides the kit's laws. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdlib.h>

#include <troupe/journal.h>

#include "base/alloc.h"

typedef struct book {
    trp_journal_memory *memory;
    const trp_journal_driver *driver;
    uint64_t epoch;
} book;

static void
book_start(book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    UNIT_EQUAL(trp_journal_memory_new(&b->memory), TRP_OK);
    b->driver = trp_journal_memory_driver(b->memory);
    op.scope = "a";
    op.writer = "w";
    UNIT_EQUAL(trp_journal_call(b->driver, &op), TRP_OK);
    b->epoch = op.ret_epoch;
}

static const trp_journal_event one_event = { .type = "kit", .data = "12345678", .bytes = 8 };

static trp_journal_op
append_op(const book *b, uint64_t from)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_APPEND;
    op.id = "a";
    op.scope = "a";
    op.epoch = b->epoch;
    op.from = from;
    op.events = &one_event;
    op.events_count = 1;
    return op;
}

static trp_err
append(const book *b, uint64_t from, trp_journal_outcome outcome)
{
    trp_journal_op op = append_op(b, from);
    trp_err err = trp_journal_call(b->driver, &op);
    UNIT_EQUAL(op.outcome, outcome);
    UNIT_EQUAL(op.why[0] == '\0', err == TRP_OK);
    return err;
}

static uint64_t
highest(const book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "a";
    UNIT_EQUAL(trp_journal_call(b->driver, &op), TRP_OK);
    return op.ret_number;
}

static void
refusals_on_order_change_nothing_and_end(void)
{
    book b;
    book_start(&b);
    trp_journal_memory_fail(b.memory, 0, 1, 2, TRP_JOURNAL_REFUSED, TRP_EIO);
    UNIT_EQUAL(append(&b, 1, TRP_JOURNAL_DONE), TRP_OK);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_REFUSED), TRP_EIO);
    UNIT_EQUAL(highest(&b), 1);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_REFUSED), TRP_EIO);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_DONE), TRP_OK);
    trp_journal_memory_free(b.memory);
}

static void
of_failures_on_order_each_second_was_carried_out(void)
{
    book b;
    book_start(&b);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_APPEND, 0, 3, TRP_JOURNAL_FAILED, TRP_EIO);
    UNIT_EQUAL(append(&b, 1, TRP_JOURNAL_FAILED), TRP_EIO);
    UNIT_EQUAL(highest(&b), 0);
    UNIT_EQUAL(append(&b, 1, TRP_JOURNAL_FAILED), TRP_EIO);
    UNIT_EQUAL(highest(&b), 1);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_FAILED), TRP_EIO);
    UNIT_EQUAL(append(&b, 1, TRP_JOURNAL_REFUSED), TRP_EFENCED);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_DONE), TRP_OK);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.failed, 3);
    UNIT_EQUAL(health.groups, 1);
    trp_journal_memory_free(b.memory);
}

static void
a_full_journal_refuses_what_does_not_fit(void)
{
    book b;
    book_start(&b);
    trp_journal_memory_limit(b.memory, 16);
    UNIT_EQUAL(append(&b, 1, TRP_JOURNAL_DONE), TRP_OK);
    UNIT_EQUAL(append(&b, 2, TRP_JOURNAL_DONE), TRP_OK);
    UNIT_EQUAL(append(&b, 3, TRP_JOURNAL_REFUSED), TRP_EAGAIN);
    trp_journal_memory_limit(b.memory, 0);
    UNIT_EQUAL(append(&b, 3, TRP_JOURNAL_DONE), TRP_OK);
    trp_journal_memory_free(b.memory);
}

static void
count_done(trp_journal_op *op)
{
    uint32_t *answers = op->user;
    op->ret_more = ++*answers;
}

static void
held_operations_keep_their_order_and_what_is_freed_has_failed(void)
{
    book b;
    trp_journal_op ops[4];
    uint32_t answers = 0;
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    book_start(&b);
    trp_journal_memory_hold(b.memory, 1);
    for (uint32_t i = 0; i < 4; i++) {
        ops[i] = append_op(&b, i + 1);
        ops[i].done = count_done;
        ops[i].user = &answers;
        if (i == 3) {
            trp_journal_memory_hold(b.memory, 0);
            UNIT_EQUAL(answers, 3);
            trp_journal_memory_hold(b.memory, 1);
        }
        b.driver->submit(b.driver->arg, &ops[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(ops[i].outcome, TRP_JOURNAL_DONE);
        UNIT_EQUAL(ops[i].ret_more, i + 1);
    }
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.waiting, 1);
    trp_journal_memory_free(b.memory);
    UNIT_EQUAL(answers, 4);
    UNIT_EQUAL(ops[3].outcome, TRP_JOURNAL_FAILED);
    UNIT_EQUAL(ops[3].err, TRP_ECLOSED);
}

/* Append, snapshot and claim while each allocation in turn fails. */
static void
out_of_memory_is_a_refusal_that_changes_nothing(void)
{
    for (long n = 0; n < 12; n++) {
        book b;
        book_start(&b);
        trp_journal_op op = append_op(&b, 1);
        trpi_alloc_fail_here_after(n);
        trp_err err = trp_journal_call(b.driver, &op);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || (err == TRP_ENOMEM && op.outcome == TRP_JOURNAL_REFUSED));
        UNIT_EQUAL(highest(&b), err == TRP_OK ? 1 : 0);
        op.kind = TRP_JOURNAL_SNAPSHOT_SAVE;
        trpi_alloc_fail_here_after(n);
        err = trp_journal_call(b.driver, &op);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || (err == TRP_ENOMEM && op.outcome == TRP_JOURNAL_REFUSED));
        op.kind = TRP_JOURNAL_CLAIM;
        op.scope = "b";
        op.writer = "w";
        trpi_alloc_fail_here_after(n);
        err = trp_journal_call(b.driver, &op);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || (err == TRP_ENOMEM && op.outcome == TRP_JOURNAL_REFUSED));
        trp_journal_memory_free(b.memory);
    }
}

static void *
append_many(void *arg)
{
    const book *b = arg;
    for (uint64_t i = 1; i <= 2000; i++) {
        trp_journal_op op = append_op(b, i);
        char id[32];
        (void)snprintf(id, sizeof id, "%p", (void *)&op);
        op.id = id;
        if (trp_journal_call(b->driver, &op) != TRP_OK) {
            return arg;
        }
    }
    return NULL;
}

static void
threads_share_it(void)
{
    book b;
    pthread_t threads[4];
    book_start(&b);
    for (int i = 0; i < 4; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, append_many, &b) == 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = &b;
        UNIT_EQUAL(pthread_join(threads[i], &failed), 0);
        UNIT_TRUE(failed == NULL);
    }
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.events, 8000);
    UNIT_EQUAL(health.bytes, 8000 * 8);
    UNIT_EQUAL(health.waiting, 0);
    trp_journal_memory_free(b.memory);
}

static void
it_says_whether_it_is_shared(void)
{
    book b;
    book_start(&b);
    UNIT_EQUAL(b.driver->shared, 1);
    trp_journal_memory_shared(b.memory, 0);
    UNIT_EQUAL(b.driver->shared, 0);
    trp_journal_memory_free(b.memory);
    trp_journal_memory_free(NULL);
    UNIT_EQUAL(trp_journal_memory_new(NULL), TRP_EINVAL);
}

UNIT_BEGIN("journal_memory")
UNIT(refusals_on_order_change_nothing_and_end)
UNIT(of_failures_on_order_each_second_was_carried_out)
UNIT(a_full_journal_refuses_what_does_not_fit)
UNIT(held_operations_keep_their_order_and_what_is_freed_has_failed)
UNIT(out_of_memory_is_a_refusal_that_changes_nothing)
UNIT(threads_share_it)
UNIT(it_says_whether_it_is_shared)
UNIT_END
