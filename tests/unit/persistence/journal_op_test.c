/* journal_op_test.c - checking and answering operations, without a journal. */
#include "tests/unit/unit.h"

#include <pthread.h>

#include <troupe/journal.h>

#include "persistence/journal_op.h"

static void
note_done(trp_journal_op *op)
{
    ++*(uint32_t *)op->user;
}

static trp_journal_op
events_op(uint32_t *answers)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "a";
    op.done = note_done;
    op.user = answers;
    return op;
}

static void
what_cannot_be_answered_is_not_touched(void)
{
    uint32_t answers = 0;
    trp_journal_op op = events_op(&answers);
    UNIT_EQUAL(trp_journal_op_check(NULL), TRP_EINVAL);
    op.size--;
    UNIT_EQUAL(trp_journal_op_check(&op), TRP_EINVAL);
    op.size++;
    op.done = NULL;
    UNIT_EQUAL(trp_journal_op_check(&op), TRP_EINVAL);
    UNIT_EQUAL(answers, 0);
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_PENDING);
}

static void
an_unknown_kind_is_refused_and_an_old_answer_is_forgotten(void)
{
    uint32_t answers = 0;
    trp_journal_op op = events_op(&answers);
    op.kind = (trp_journal_kind)99;
    op.ret_more = 1;
    UNIT_EQUAL(trp_journal_op_check(&op), TRP_EUNSUPPORTED);
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_REFUSED);
    UNIT_EQUAL(answers, 1);
    op.kind = TRP_JOURNAL_EVENTS;
    op.ret_number = op.ret_epoch = op.ret_offset = 7;
    UNIT_EQUAL(trp_journal_op_check(&op), TRP_OK);
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_PENDING);
    UNIT_EQUAL(op.ret_number + op.ret_epoch + op.ret_offset + op.ret_more, 0);
    UNIT_EQUAL(op.why[0], '\0');
    UNIT_EQUAL(answers, 1);
}

static void
a_long_reason_is_cut(void)
{
    uint32_t answers = 0;
    trp_journal_op op = events_op(&answers);
    char reason[TRP_JOURNAL_WHY_BYTES + 10];
    memset(reason, 'r', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    trp_journal_op_finish(&op, TRP_JOURNAL_FAILED, TRP_EIO, "%s", reason);
    UNIT_EQUAL(strlen(op.why), TRP_JOURNAL_WHY_BYTES - 1);
    UNIT_EQUAL(op.err, TRP_EIO);
    UNIT_EQUAL(answers, 1);
}

static void
a_refusal_names_both_writers(void)
{
    uint32_t answers = 0;
    trp_journal_op op = events_op(&answers);
    op.scope = "shard/7";
    op.epoch = 3;
    op.writer = "troupe.tcp://shop@10.0.0.1:2552#17";
    trpi_journal_op_fenced(&op, 4, "troupe.tcp://shop@10.0.0.2:2552#18");
    UNIT_EQUAL(op.err, TRP_EFENCED);
    UNIT_EQUAL(strcmp(op.why, "\"shard/7\" has epoch 4 of troupe.tcp://shop@10.0.0.2:2552#18; this "
                              "writer troupe.tcp://shop@10.0.0.1:2552#17 has epoch 3"),
               0);
    trpi_journal_op_fenced(&op, 0, "");
    UNIT_EQUAL(strcmp(op.why, "epoch 3 of \"shard/7\" was never claimed in this journal"), 0);
    op.from = 9;
    trpi_journal_op_gap(&op, 12);
    UNIT_TRUE(strstr(op.why, "number 12") != NULL && strstr(op.why, "goes on with 9") != NULL);
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_REFUSED);
}

/* A driver that answers on another thread. */
static void *
answer(void *arg)
{
    trp_journal_op_finish(arg, TRP_JOURNAL_DONE, TRP_OK, NULL);
    return NULL;
}

static void
answer_elsewhere(void *arg, trp_journal_op *op)
{
    pthread_t *thread = arg;
    UNIT_EQUAL(pthread_create(thread, NULL, answer, op), 0);
}

static void
a_call_waits_for_an_answer_on_another_thread(void)
{
    pthread_t thread;
    trp_journal_driver driver = { .size = sizeof driver,
                                  .arg = &thread,
                                  .submit = answer_elsewhere };
    for (int i = 0; i < 50; i++) {
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        UNIT_EQUAL(trp_journal_call(&driver, &op), TRP_OK);
        UNIT_EQUAL(op.outcome, TRP_JOURNAL_DONE);
        UNIT_EQUAL(pthread_join(thread, NULL), 0);
    }
}

UNIT_BEGIN("journal_op")
UNIT(what_cannot_be_answered_is_not_touched)
UNIT(an_unknown_kind_is_refused_and_an_old_answer_is_forgotten)
UNIT(a_long_reason_is_cut)
UNIT(a_refusal_names_both_writers)
UNIT(a_call_waits_for_an_answer_on_another_thread)
UNIT_END
