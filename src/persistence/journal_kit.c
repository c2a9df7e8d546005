/* journal_kit.c - the conformance kit of journals: runs one law, and what the laws share.
 *
 * Why.   A driver is right when each promise of troupe/journal.h holds. The promises are written
 *        once, as laws, for our drivers and those of users.
 * Must hold.
 *   1  A law uses the driver through its functions only, and waits for answers, never for a time.
 *   2  Each law fails on a driver that breaks it: tests/unit/persistence/journal_kit_test.c wraps a
 *      right driver in one fault after another.
 * Not here. The laws: journal_kit_writes.c, journal_kit_reads.c, journal_kit_limits.c.
 */
#include "persistence/journal_kit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/sized.h"

static const struct {
    const char *name;
    trpi_kit_law_fn run;
} laws[] = {
    { "numbers have no gap", trpi_kit_numbers },
    { "a group is stored whole or not at all", trpi_kit_groups },
    { "one writer", trpi_kit_one_writer },
    { "a refused operation costs no other", trpi_kit_refusals },
    { "operations of one id keep their order", trpi_kit_order },
    { "a failed operation keeps its place", trpi_kit_failures },
    { "deletion keeps the highest number", trpi_kit_deletion },
    { "a backup is restored with its numbers", trpi_kit_restore },
    { "reads end at their limits and go on", trpi_kit_reads },
    { "tagged events are read in the order of offsets", trpi_kit_tags },
    { "a reader misses no event of a writer", trpi_kit_readers },
    { "snapshots", trpi_kit_snapshots },
    { "ids and scopes", trpi_kit_ids },
    { "what is done is there after reopening", trpi_kit_reopening },
    { "health counts what was done", trpi_kit_health },
    { "limits hold, and one past them is refused", trpi_kit_limits },
    { "data of the largest size", trpi_kit_large_data },
    { "wrong arguments are refused", trpi_kit_arguments },
};
#define LAWS_COUNT ((uint32_t)(sizeof laws / sizeof *laws))

bool
trpi_kit_fail(trpi_kit_run *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(run->why, run->why_bytes, format, args);
    va_end(args);
    return false;
}

trp_journal_op
trpi_kit_op(trp_journal_kind kind, const char *id, const char *scope, uint64_t epoch)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = kind;
    op.id = id;
    op.scope = scope;
    op.epoch = epoch;
    return op;
}

trp_err
trpi_kit_call(const trpi_kit_run *run, trp_journal_op *op)
{
    return trp_journal_call(run->driver, op);
}

uint64_t
trpi_kit_claim(const trpi_kit_run *run, const char *scope, const char *writer)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_CLAIM, NULL, scope, 0);

    op.writer = writer;
    return trpi_kit_call(run, &op) == TRP_OK ? op.ret_epoch : 0;
}

trp_err
trpi_kit_append(const trpi_kit_run *run, const char *id, const char *scope, uint64_t epoch,
                uint64_t from, uint32_t count, const char *tag)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_APPEND, id, scope, epoch);
    trp_journal_event *events = trpi_alloc((count + 1) * sizeof *events);
    char(*data)[32] = trpi_alloc((count + 1) * sizeof *data);
    trp_err err = TRP_ENOMEM;

    if (events != NULL && data != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            (void)snprintf(data[i], sizeof data[i], "%.8s/%" PRIu64, id, from + i);
            events[i] = (trp_journal_event){ .time_ms = 1700000000000u + i,
                                             .type = "kit",
                                             .version = 3,
                                             .tags_count = tag != NULL,
                                             .tags = &tag,
                                             .data = data[i],
                                             .bytes = strlen(data[i]) };
        }
        op.events = events;
        op.events_count = count;
        op.from = from;
        err = trpi_kit_call(run, &op);
    }
    trpi_free(events);
    trpi_free(data);
    return err;
}

static trp_err
seen_give(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_kit_seen *seen = op->user;

    if (seen->items_count == TRPI_KIT_SEEN_MAX || !TRPI_ARRAY_HAS_ROOM(seen, items)) {
        return TRP_ENOMEM;
    }
    trpi_kit_item *to = &seen->items[seen->items_count++];
    *to = (trpi_kit_item){ .number = item->number,
                           .offset = item->offset,
                           .time_ms = item->time_ms,
                           .bytes = item->bytes,
                           .version = item->version,
                           .tags_count = item->tags_count };
    (void)snprintf(to->id, sizeof to->id, "%s", item->id);
    (void)snprintf(to->type, sizeof to->type, "%.31s", item->type);
    (void)snprintf(to->data, sizeof to->data, "%.*s",
                   item->bytes < sizeof to->data ? (int)item->bytes : (int)sizeof to->data - 1,
                   item->data != NULL ? (const char *)item->data : "");
    return TRP_OK;
}

trp_err
trpi_kit_read(const trpi_kit_run *run, trp_journal_op *op, trpi_kit_seen *seen)
{
    op->give = seen_give;
    op->user = seen;
    return trpi_kit_call(run, op);
}

void
trpi_kit_seen_fini(trpi_kit_seen *seen)
{
    trpi_free(seen->items);
    *seen = (trpi_kit_seen){ NULL, 0, 0 };
}

static bool
is_written_by_kit(const trpi_kit_item *item, const char *id, uint64_t number)
{
    char data[32];

    (void)snprintf(data, sizeof data, "%.8s/%" PRIu64, id, number);
    return item->number == number && strcmp(item->id, id) == 0 && strcmp(item->data, data) == 0 &&
           strcmp(item->type, "kit") == 0 && item->version == 3 &&
           item->time_ms >= 1700000000000u && item->time_ms < 1700000001024u;
}

bool
trpi_kit_has_events(trpi_kit_run *run, const char *id, uint64_t first, uint32_t count)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_EVENTS, id, NULL, 0);
    trpi_kit_seen seen = { NULL, 0, 0 };
    trp_err err = TRP_OK;
    bool is_right = true;

    op.max_events = TRPI_KIT_SEEN_MAX;
    err = trpi_kit_read(run, &op, &seen);
    if (err != TRP_OK || seen.items_count != count || op.ret_number != first + count - 1) {
        is_right =
            trpi_kit_fail(run,
                          "the events of \"%s\": %s %s, %" PRIu32 " were given, of %" PRIu32
                          "; the highest number is %" PRIu64,
                          id, trp_err_name(err), op.why, seen.items_count, count, op.ret_number);
    }
    for (uint32_t i = 0; is_right && i < count; i++) {
        if (!is_written_by_kit(&seen.items[i], id, first + i)) {
            is_right = trpi_kit_fail(run, "event %" PRIu64 " of \"%s\" came as %" PRIu64 " \"%s\"",
                                     first + i, id, seen.items[i].number, seen.items[i].data);
        }
    }
    trpi_kit_seen_fini(&seen);
    return is_right;
}

bool
trpi_kit_reopen(trpi_kit_run *run)
{
    trp_err err = TRP_OK;

    if (run->driver != NULL && run->driver->close != NULL) {
        run->driver->close(run->driver->arg);
    }
    run->driver = NULL;
    err = run->kit->open(run->kit->arg, &run->driver);
    TRPI_KIT_CHECK(run, err == TRP_OK, "the journal could not be opened: %s", trp_strerror(err));
    return true;
}

uint32_t
trp_journal_kit_laws_count(void)
{
    return LAWS_COUNT;
}

const char *
trp_journal_kit_law(uint32_t law)
{
    return law < LAWS_COUNT ? laws[law].name : "";
}

trp_err
trp_journal_kit_run(const trp_journal_kit *kit, uint32_t law, char *why, size_t why_bytes)
{
    trpi_kit_run run = { NULL, NULL, why, why_bytes };
    trp_journal_kit own = { sizeof own, NULL, NULL, NULL, NULL };
    trp_err err = TRP_OK;
    bool holds = false;

    if (kit == NULL || !TRPI_SIZED_COPY(kit, &own, forget) || own.open == NULL ||
        own.forget == NULL || why == NULL || why_bytes == 0 || law >= LAWS_COUNT) {
        return TRP_EINVAL;
    }
    run.kit = &own;
    why[0] = '\0';
    err = own.forget(own.arg);
    if (err != TRP_OK) {
        (void)trpi_kit_fail(&run, "the journal could not be emptied: %s", trp_strerror(err));
        return TRP_EFAILED;
    }
    holds = trpi_kit_reopen(&run) && laws[law].run(&run);
    if (run.driver != NULL && run.driver->close != NULL) {
        run.driver->close(run.driver->arg);
    }
    return holds ? TRP_OK : TRP_EFAILED;
}
