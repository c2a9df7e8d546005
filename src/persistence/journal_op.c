/* journal_op.c - check and answer operations of journals, whatever the driver.
 *
 * Why.   Each driver would check the same arguments and say the same refusals in other words.
 *        Decisions that need no store are made here.
 * Limits. Those of troupe/journal.h: tested at each and one past it by the conformance kit.
 * Tests. tests/unit/persistence/journal_op_test.c, and the kit over each driver.
 */
#include "persistence/journal_op.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutex.h"

/* Every field that a driver reads came with the first release. */
#define OP_BYTES_MIN sizeof(trp_journal_op)

static trp_err
op_refuse(trp_journal_op *op, trp_err err, const char *what, const char *detail)
{
    op->outcome = TRP_JOURNAL_REFUSED;
    op->err = err;
    (void)snprintf(op->why, sizeof op->why, "%s %s", what, detail);
    return err;
}

/* Check a text of 1 to max bytes. */
static trp_err
check_text(trp_journal_op *op, const char *text, size_t max, const char *what)
{
    char detail[64];

    if (text == NULL || text[0] == '\0') {
        return op_refuse(op, TRP_EINVAL, what, "is missing");
    }
    if (strnlen(text, max + 1) > max) {
        (void)snprintf(detail, sizeof detail, "is longer than %zu bytes", max);
        return op_refuse(op, TRP_EMSGSIZE, what, detail);
    }
    return TRP_OK;
}

static trp_err
check_tags(trp_journal_op *op, const trp_journal_event *event)
{
    if (event->tags_count > TRP_JOURNAL_TAGS_MAX) {
        return op_refuse(op, TRP_ELIMIT, "an event", "has more than 16 tags");
    }
    if (event->tags_count != 0 && event->tags == NULL) {
        return op_refuse(op, TRP_EINVAL, "the list of tags", "is missing");
    }
    for (uint32_t i = 0; i < event->tags_count; i++) {
        trp_err err = check_text(op, event->tags[i], TRP_JOURNAL_TAG_BYTES_MAX, "a tag");
        if (err != TRP_OK) {
            return err;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(event->tags[i], event->tags[j]) == 0) {
                return op_refuse(op, TRP_EINVAL, "a tag", "is given twice");
            }
        }
    }
    return TRP_OK;
}

/* Check the events of a group, or the one snapshot. */
static trp_err
check_events(trp_journal_op *op)
{
    uint64_t bytes = 0;

    if (op->events_count != 0 && op->events == NULL) {
        return op_refuse(op, TRP_EINVAL, "the list of events", "is missing");
    }
    for (uint32_t i = 0; i < op->events_count; i++) {
        const trp_journal_event *event = &op->events[i];
        trp_err err = check_text(op, event->type, TRP_JOURNAL_TYPE_BYTES_MAX, "the type");
        if (err == TRP_OK) {
            err = check_tags(op, event);
        }
        if (err != TRP_OK) {
            return err;
        }
        if (event->bytes != 0 && event->data == NULL) {
            return op_refuse(op, TRP_EINVAL, "the data of an event", "is missing");
        }
        if (event->bytes > TRP_JOURNAL_GROUP_BYTES_MAX ||
            (bytes += event->bytes) > TRP_JOURNAL_GROUP_BYTES_MAX) {
            return op_refuse(op, TRP_EMSGSIZE, "the data of one operation", "is above 64 MiB");
        }
    }
    return TRP_OK;
}

static trp_err
check_append(trp_journal_op *op)
{
    if (op->events_count > TRP_JOURNAL_GROUP_EVENTS_MAX) {
        return op_refuse(op, TRP_ELIMIT, "a group", "has more than 1,024 events");
    }
    if (op->events_count == 0 && !op->restore) {
        return op_refuse(op, TRP_EINVAL, "a group", "has no event");
    }
    if (op->from == 0 || op->from > UINT64_MAX - TRP_JOURNAL_GROUP_EVENTS_MAX) {
        return op_refuse(op, TRP_EINVAL, "the number of the first event", "is out of range");
    }
    return check_events(op);
}

static trp_err
check_snapshot(trp_journal_op *op)
{
    if (op->events_count != 1) {
        return op_refuse(op, TRP_EINVAL, "one snapshot", "is expected");
    }
    if (op->events != NULL && op->events[0].tags_count != 0) {
        return op_refuse(op, TRP_EINVAL, "a snapshot", "has no tags");
    }
    return check_events(op);
}

/* Check what the kind needs besides the texts that name id, scope and writer. */
static trp_err
check_kind(trp_journal_op *op)
{
    switch (op->kind) {
    case TRP_JOURNAL_APPEND:
        return check_append(op);
    case TRP_JOURNAL_SNAPSHOT_SAVE:
        return check_snapshot(op);
    case TRP_JOURNAL_TAGGED:
        return op->tag == NULL ? TRP_OK
                               : check_text(op, op->tag, TRP_JOURNAL_TAG_BYTES_MAX, "the tag");
    case TRP_JOURNAL_IDS:
        return op->id == NULL
                   ? TRP_OK
                   : check_text(op, op->id, TRP_JOURNAL_ID_BYTES_MAX, "the persistence id");
    case TRP_JOURNAL_SCOPES:
        return op->scope == NULL ? TRP_OK
                                 : check_text(op, op->scope, TRP_JOURNAL_SCOPE_BYTES_MAX,
                                              "the scope of the epoch");
    case TRP_JOURNAL_CLAIM:
    case TRP_JOURNAL_EVENTS:
    case TRP_JOURNAL_DELETE:
    case TRP_JOURNAL_SNAPSHOT_LOAD:
    case TRP_JOURNAL_SNAPSHOT_DELETE:
        return TRP_OK;
    default:
        return op_refuse(op, TRP_EUNSUPPORTED, "this kind of operation", "is not known");
    }
}

trp_err
trp_journal_op_check(trp_journal_op *op)
{
    trp_err err = TRP_OK;

    if (op == NULL || op->size < OP_BYTES_MIN || op->done == NULL) {
        return TRP_EINVAL;
    }
    op->outcome = TRP_JOURNAL_PENDING;
    op->err = TRP_OK;
    op->ret_epoch = op->ret_number = op->ret_offset = 0;
    op->ret_count = op->ret_more = 0;
    op->why[0] = '\0';
    if (trpi_journal_op_is_change(op)) {
        err = check_text(op, op->scope, TRP_JOURNAL_SCOPE_BYTES_MAX, "the scope of the epoch");
    }
    if (err == TRP_OK && op->kind == TRP_JOURNAL_CLAIM) {
        err = check_text(op, op->writer, TRP_JOURNAL_WRITER_BYTES_MAX, "the name of the writer");
    }
    if (err == TRP_OK && op->kind != TRP_JOURNAL_CLAIM && op->kind != TRP_JOURNAL_TAGGED &&
        op->kind != TRP_JOURNAL_IDS && op->kind != TRP_JOURNAL_SCOPES) {
        err = check_text(op, op->id, TRP_JOURNAL_ID_BYTES_MAX, "the persistence id");
    }
    if (err == TRP_OK) {
        err = check_kind(op);
    }
    if (err != TRP_OK) {
        op->done(op);
    }
    return err;
}

void
trp_journal_op_finish(trp_journal_op *op, trp_journal_outcome outcome, trp_err err,
                      const char *format, ...)
{
    va_list args;

    trpi_assert((outcome == TRP_JOURNAL_DONE) == (err == TRP_OK));
    trpi_assert(outcome != TRP_JOURNAL_PENDING);
    op->outcome = outcome;
    op->err = err;
    if (format != NULL) {
        va_start(args, format);
        (void)vsnprintf(op->why, sizeof op->why, format, args);
        va_end(args);
    }
    op->done(op);
}

uint32_t
trpi_journal_op_events_max(const trp_journal_op *op)
{
    return op->max_events != 0 ? op->max_events : TRP_JOURNAL_READ_EVENTS_DEFAULT;
}

uint64_t
trpi_journal_op_bytes_max(const trp_journal_op *op)
{
    return op->max_bytes != 0 ? op->max_bytes : TRP_JOURNAL_READ_BYTES_DEFAULT;
}

trp_err
trpi_journal_op_give(trp_journal_op *op, const trp_journal_event *item, uint64_t *bytes)
{
    trp_err err = TRP_OK;

    if (op->ret_count >= trpi_journal_op_events_max(op) ||
        *bytes >= trpi_journal_op_bytes_max(op)) {
        op->ret_more = 1;
        return TRP_ELIMIT;
    }
    if (op->give != NULL) {
        err = op->give(op, item);
    }
    if (err == TRP_OK) {
        op->ret_count++;
        *bytes += item->bytes;
    }
    return err;
}

void
trpi_journal_op_fenced(trp_journal_op *op, uint64_t epoch, const char *writer)
{
    if (epoch == 0) {
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EFENCED,
                              "epoch %" PRIu64 " of \"%s\" was never claimed in this journal",
                              op->epoch, op->scope);
        return;
    }
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EFENCED,
                          "\"%s\" has epoch %" PRIu64 " of %s; this writer%s%s has epoch %" PRIu64,
                          op->scope, epoch, writer, op->writer != NULL ? " " : "",
                          op->writer != NULL ? op->writer : "", op->epoch);
}

void
trpi_journal_op_gap(trp_journal_op *op, uint64_t highest)
{
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EFENCED,
                          "the last event of \"%s\" has number %" PRIu64
                          ", and this writer%s%s goes on with %" PRIu64 ": another has written",
                          op->id, highest, op->writer != NULL ? " " : "",
                          op->writer != NULL ? op->writer : "", op->from);
}

/* A call that waits. */
typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over; /* under lock */
    void *user;
} waiter;

static void
waiter_done(trp_journal_op *op)
{
    waiter *wait = op->driver[3];

    pthread_mutex_lock(&wait->lock);
    wait->is_over = true;
    pthread_cond_signal(&wait->over);
    pthread_mutex_unlock(&wait->lock);
}

trp_err
trp_journal_call(const trp_journal_driver *driver, trp_journal_op *op)
{
    waiter wait = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL };

    op->driver[3] = &wait;
    op->done = waiter_done;
    driver->submit(driver->arg, op);
    pthread_mutex_lock(&wait.lock);
    while (!wait.is_over) {
        pthread_cond_wait(&wait.over, &wait.lock);
    }
    pthread_mutex_unlock(&wait.lock);
    trpi_mutex_destroy(&wait.lock);
    pthread_cond_destroy(&wait.over);
    op->driver[3] = NULL;
    return op->err;
}
