/* journal_kit_reads.c - the laws of reading a journal, and of what survives its end. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "persistence/journal_kit.h"

static trp_err
third_is_wrong(trp_journal_op *op, const trp_journal_event *item)
{
    (void)op;
    return item->number == 3 ? TRP_EDATA : TRP_OK;
}

/* Read "r" from .. to, in pieces, until there is no more. */
static bool
reads_in_pieces(trpi_kit_run *run, uint32_t max_events, uint64_t max_bytes)
{
    uint64_t from = 21;
    bool is_over = false;

    while (!is_over) {
        trp_journal_op op = trpi_kit_op(TRP_JOURNAL_EVENTS, "r", NULL, 0);
        trpi_kit_seen seen = { NULL, 0, 0 };
        op.from = from;
        op.to = 80;
        op.max_events = max_events;
        op.max_bytes = max_bytes;
        trp_err err = trpi_kit_read(run, &op, &seen);
        bool is_right = err == TRP_OK && op.ret_count == seen.items_count &&
                        (max_events == 0 || seen.items_count <= max_events) &&
                        (seen.items_count != 0 || from == 81);
        for (uint32_t i = 0; is_right && i < seen.items_count; i++) {
            is_right = seen.items[i].number == from++;
        }
        trpi_kit_seen_fini(&seen);
        TRPI_KIT_CHECK(run, is_right, "a read in pieces of %" PRIu32 " broke at %" PRIu64 ": %s",
                       max_events, from, trp_err_name(err));
        is_over = !op.ret_more;
    }
    TRPI_KIT_CHECK(run, from == 81, "a read up to 80 ended behind %" PRIu64, from - 1);
    return true;
}

bool
trpi_kit_reads(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "r", "w");
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_EVENTS, "r", NULL, 0);

    TRPI_KIT_CHECK(run, trpi_kit_append(run, "r", "r", epoch, 1, 100, NULL) == TRP_OK,
                   "an append was refused");
    if (!reads_in_pieces(run, 0, 0) || !reads_in_pieces(run, 1, 0) || !reads_in_pieces(run, 7, 0) ||
        !reads_in_pieces(run, 60, 0) || !reads_in_pieces(run, 0, 1) ||
        !reads_in_pieces(run, 0, 50)) {
        return false;
    }
    op.give = third_is_wrong;
    (void)trpi_kit_call(run, &op);
    TRPI_KIT_CHECK(run, op.err == TRP_EDATA && op.ret_count == 2,
                   "a reader that gave up was answered %s after %" PRIu32 " events",
                   trp_err_name(op.err), op.ret_count);
    op = trpi_kit_op(TRP_JOURNAL_EVENTS, "nobody", NULL, 0);
    TRPI_KIT_CHECK(run,
                   trpi_kit_call(run, &op) == TRP_OK && op.ret_count == 0 && op.ret_number == 0 &&
                       !op.ret_more,
                   "an unknown id was answered %s", trp_err_name(op.err));
    return true;
}

/* Read the events of tag to the end, max at a time; the offsets grow. */
static bool
tagged_read(trpi_kit_run *run, const char *tag, uint32_t max, uint64_t from, trpi_kit_seen *seen,
            uint64_t *ret_offset)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_TAGGED, NULL, NULL, 0);
    uint32_t first = seen->items_count;

    do {
        op = trpi_kit_op(TRP_JOURNAL_TAGGED, NULL, NULL, 0);
        op.tag = tag;
        op.from = from;
        op.max_events = max;
        TRPI_KIT_CHECK(run, trpi_kit_read(run, &op, seen) == TRP_OK, "tag: %s", op.why);
        TRPI_KIT_CHECK(run, op.ret_offset >= from && (!op.ret_more || op.ret_offset > from),
                       "a read of a tag from %" PRIu64 " goes on from %" PRIu64, from,
                       op.ret_offset);
        from = op.ret_offset;
    } while (op.ret_more);
    for (uint32_t i = first; i < seen->items_count; i++) {
        uint64_t before = i > 0 ? seen->items[i - 1].offset : 0;
        TRPI_KIT_CHECK(run, seen->items[i].offset > before && seen->items[i].offset <= from,
                       "offset %" PRIu64 " came behind %" PRIu64, seen->items[i].offset, before);
    }
    *ret_offset = from;
    return true;
}

/* Check that the tag gives count events from an offset on. */
static bool
tag_has(trpi_kit_run *run, const char *tag, uint64_t from, uint32_t count, uint64_t *ret_offset)
{
    for (uint32_t max = 1; max <= 1000; max *= 10) {
        trpi_kit_seen seen = { NULL, 0, 0 };
        bool is_right = tagged_read(run, tag, max, from, &seen, ret_offset);
        uint32_t given = seen.items_count;
        trpi_kit_seen_fini(&seen);
        if (!is_right) {
            return false;
        }
        TRPI_KIT_CHECK(run, given == count,
                       "tag %s gave %" PRIu32 " events from offset %" PRIu64 ", not %" PRIu32,
                       tag != NULL ? tag : "(all)", given, from, count);
    }
    return true;
}

bool
trpi_kit_tags(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "t", "w");
    uint64_t red = 0;
    uint64_t all = 0;
    uint64_t end = 0;

    for (uint64_t i = 1; i <= 30; i += 3) {
        TRPI_KIT_CHECK(run,
                       trpi_kit_append(run, "t1", "t", epoch, i, 3, "red") == TRP_OK &&
                           trpi_kit_append(run, "t2", "t", epoch, i, 3, "re") == TRP_OK &&
                           trpi_kit_append(run, "t3", "t", epoch, i, 3, NULL) == TRP_OK,
                       "an append was refused");
    }
    if (!tag_has(run, "red", 0, 30, &red) || !tag_has(run, "re", 0, 30, &end) ||
        !tag_has(run, NULL, 0, 90, &all) || !tag_has(run, "r", 0, 0, &end)) {
        return false;
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "t2", "t", epoch, 31, 5, "red") == TRP_OK,
                   "an append was refused");
    if (!tag_has(run, "red", red, 5, &end) || !tag_has(run, NULL, all, 5, &end)) {
        return false;
    }
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_DELETE, "t1", "t", epoch);
    op.to = 10;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK, "a deletion was refused");
    return tag_has(run, "red", 0, 25, &end) && tag_has(run, NULL, 0, 85, &end);
}

#define WRITERS 3u
#define WRITES 60u

typedef struct writer {
    trpi_kit_run *run;
    pthread_t thread;
    char id[8];
    trp_err err;
} writer;

static void *
writer_main(void *arg)
{
    writer *me = arg;
    uint64_t epoch = trpi_kit_claim(me->run, me->id, me->id);

    for (uint32_t i = 0; me->err == TRP_OK && i < WRITES; i++) {
        me->err = trpi_kit_append(me->run, me->id, me->id, epoch, i * 3 + 1, 3, "busy");
    }
    return NULL;
}

/* Check that each writer's events are there once, in order. */
static bool
has_all_of(trpi_kit_run *run, const trpi_kit_seen *seen, const char *id)
{
    uint64_t next = 1;

    for (uint32_t i = 0; i < seen->items_count; i++) {
        if (strcmp(seen->items[i].id, id) == 0) {
            TRPI_KIT_CHECK(run, seen->items[i].number == next,
                           "a reader beside the writers saw %" PRIu64 " of \"%s\" instead of "
                           "%" PRIu64,
                           seen->items[i].number, id, next);
            next++;
        }
    }
    TRPI_KIT_CHECK(run, next == WRITES * 3 + 1, "\"%s\": the last event seen is %" PRIu64, id,
                   next - 1);
    return true;
}

/* Read on from the last offset while the writers write, and once more when they have ended. */
bool
trpi_kit_readers(trpi_kit_run *run)
{
    writer writers[WRITERS] = { { run, 0, "w0", TRP_OK },
                                { run, 0, "w1", TRP_OK },
                                { run, 0, "w2", TRP_OK } };
    trpi_kit_seen seen = { NULL, 0, 0 };
    uint64_t from = 0;
    uint32_t started = 0;
    bool is_right = true;

    while (started < WRITERS &&
           pthread_create(&writers[started].thread, NULL, writer_main, &writers[started]) == 0) {
        started++;
    }
    for (uint32_t i = 0; is_right && i < 10000 && seen.items_count < WRITERS * WRITES * 3 / 2;
         i++) {
        is_right = tagged_read(run, "busy", 5, from, &seen, &from);
    }
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(writers[i].thread, NULL);
        if (is_right && writers[i].err != TRP_OK) {
            is_right = trpi_kit_fail(run, "a writer was answered %s", trp_err_name(writers[i].err));
        }
    }
    is_right = is_right && tagged_read(run, "busy", 50, from, &seen, &from);
    for (uint32_t i = 0; is_right && i < started; i++) {
        is_right = has_all_of(run, &seen, writers[i].id);
    }
    trpi_kit_seen_fini(&seen);
    return is_right && started == WRITERS;
}

static trp_err
snapshot_save(trpi_kit_run *run, uint64_t epoch, uint64_t number, const char *data)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_SNAPSHOT_SAVE, "s", "s", epoch);
    trp_journal_event snapshot = { .number = number,
                                   .time_ms = number,
                                   .type = "state",
                                   .version = 7,
                                   .data = data,
                                   .bytes = strlen(data) };

    op.events = &snapshot;
    op.events_count = 1;
    return trpi_kit_call(run, &op);
}

/* Check the newest snapshot up to a number; data NULL: there is none. */
static bool
snapshot_is(trpi_kit_run *run, uint64_t to, uint64_t number, const char *data)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_SNAPSHOT_LOAD, "s", NULL, 0);
    trpi_kit_seen seen = { NULL, 0, 0 };
    trp_err err = TRP_OK;
    bool is_right = false;

    op.to = to;
    err = trpi_kit_read(run, &op, &seen);
    if (err == TRP_OK && data == NULL) {
        is_right = seen.items_count == 0;
    } else if (err == TRP_OK && seen.items_count == 1) {
        is_right = seen.items[0].number == number && strcmp(seen.items[0].data, data) == 0 &&
                   strcmp(seen.items[0].type, "state") == 0 && seen.items[0].version == 7 &&
                   seen.items[0].time_ms == number && strcmp(seen.items[0].id, "s") == 0;
    }
    if (!is_right) {
        (void)trpi_kit_fail(
            run, "the snapshot up to %" PRIu64 ": %s, %" PRIu32 " given, number %" PRIu64 " \"%s\"",
            to, trp_err_name(err), seen.items_count,
            seen.items_count != 0 ? seen.items[0].number : 0,
            seen.items_count != 0 ? seen.items[0].data : "");
    }
    trpi_kit_seen_fini(&seen);
    return is_right;
}

static bool
snapshots_deleted(trpi_kit_run *run, uint64_t epoch, uint64_t to, uint32_t keep, uint32_t count)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_SNAPSHOT_DELETE, "s", "s", epoch);

    op.to = to;
    op.keep = keep;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK && op.ret_count == count,
                   "a deletion of snapshots up to %" PRIu64 " was answered %s, %" PRIu32
                   " instead of %" PRIu32,
                   to, trp_err_name(op.err), op.ret_count, count);
    return true;
}

bool
trpi_kit_snapshots(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "s", "w");

    if (!snapshot_is(run, 0, 0, NULL)) {
        return false;
    }
    TRPI_KIT_CHECK(run,
                   trpi_kit_append(run, "s", "s", epoch, 1, 50, NULL) == TRP_OK &&
                       snapshot_save(run, epoch, 10, "ten") == TRP_OK &&
                       snapshot_save(run, epoch, 30, "thirty") == TRP_OK &&
                       snapshot_save(run, epoch, 20, "twenty") == TRP_OK &&
                       snapshot_save(run, epoch, 40, "forty") == TRP_OK,
                   "a snapshot was refused");
    if (!snapshot_is(run, 0, 40, "forty") || !snapshot_is(run, 39, 30, "thirty") ||
        !snapshot_is(run, 30, 30, "thirty") || !snapshot_is(run, 29, 20, "twenty") ||
        !snapshot_is(run, 9, 0, NULL)) {
        return false;
    }
    TRPI_KIT_CHECK(run, snapshot_save(run, epoch, 30, "again") == TRP_OK,
                   "a snapshot of the same number was refused");
    return snapshot_is(run, 30, 30, "again") && snapshots_deleted(run, epoch, 20, 3, 1) &&
           snapshot_is(run, 19, 0, NULL) && snapshots_deleted(run, epoch, 0, 1, 2) &&
           snapshot_is(run, 0, 40, "forty") && snapshots_deleted(run, epoch, 39, 0, 0) &&
           snapshots_deleted(run, epoch, 0, 0, 1) && snapshot_is(run, 0, 0, NULL) &&
           trpi_kit_has_events(run, "s", 1, 50);
}

/* Check a walk over ids or scopes, max at a time: names "n00" .. in order, with this number. */
static bool
names_are(trpi_kit_run *run, trp_journal_kind kind, uint32_t max, uint32_t count, uint64_t number)
{
    trpi_kit_seen seen = { NULL, 0, 0 };
    trp_journal_op op = trpi_kit_op(kind, NULL, NULL, 0);
    char after[TRP_JOURNAL_ID_BYTES_MAX + 1];
    bool is_right = true;

    do {
        const char *from = seen.items_count != 0 ? after : NULL;
        op = trpi_kit_op(kind, kind == TRP_JOURNAL_IDS ? from : NULL,
                         kind == TRP_JOURNAL_SCOPES ? from : NULL, 0);
        op.max_events = max;
        is_right = trpi_kit_read(run, &op, &seen) == TRP_OK &&
                   (!op.ret_more || op.ret_count != 0) && seen.items_count <= count;
        if (seen.items_count != 0) {
            memcpy(after, seen.items[seen.items_count - 1].id, sizeof after);
        }
    } while (is_right && op.ret_more);
    is_right = is_right && seen.items_count == count;
    for (uint32_t i = 0; is_right && i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%02" PRIu32, i);
        is_right = strcmp(seen.items[i].id, name) == 0 && seen.items[i].number == number &&
                   (kind != TRP_JOURNAL_SCOPES || strcmp(seen.items[i].type, "w") == 0);
    }
    trpi_kit_seen_fini(&seen);
    TRPI_KIT_CHECK(run, is_right, "a walk over %s, %" PRIu32 " at a time, is wrong",
                   kind == TRP_JOURNAL_IDS ? "ids" : "scopes", max);
    return true;
}

bool
trpi_kit_ids(trpi_kit_run *run)
{
    for (uint32_t i = 0; i < 25; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%02" PRIu32, i * 7 % 25);
        uint64_t epoch = trpi_kit_claim(run, name, "w");
        TRPI_KIT_CHECK(run, epoch == 1, "the first claim of a scope took epoch %" PRIu64, epoch);
        TRPI_KIT_CHECK(run, trpi_kit_append(run, name, name, epoch, 1, 2, NULL) == TRP_OK,
                       "an append was refused");
    }
    for (uint32_t max = 1; max <= 100; max *= 10) {
        if (!names_are(run, TRP_JOURNAL_IDS, max, 25, 2) ||
            !names_are(run, TRP_JOURNAL_SCOPES, max, 25, 1)) {
            return false;
        }
    }
    return true;
}

bool
trpi_kit_reopening(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "s", "first");
    uint64_t offset = 0;

    TRPI_KIT_CHECK(run,
                   trpi_kit_append(run, "s", "s", epoch, 1, 100, "red") == TRP_OK &&
                       snapshot_save(run, epoch, 60, "sixty") == TRP_OK,
                   "the writer was refused");
    if (!trpi_kit_reopen(run) || !trpi_kit_has_events(run, "s", 1, 100) ||
        !snapshot_is(run, 0, 60, "sixty") || !tag_has(run, "red", 0, 100, &offset)) {
        return false;
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "s", "s", epoch, 101, 1, "red") == TRP_OK,
                   "the epoch of before was refused");
    TRPI_KIT_CHECK(run, trpi_kit_claim(run, "s", "second") == epoch + 1,
                   "the next epoch is not the one behind");
    if (!trpi_kit_reopen(run)) {
        return false;
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "s", "s", epoch, 102, 1, NULL) == TRP_EFENCED,
                   "a claim was forgotten");
    return tag_has(run, "red", offset, 1, &offset) && trpi_kit_has_events(run, "s", 1, 101);
}

bool
trpi_kit_health(trpi_kit_run *run)
{
    trp_journal_health before = TRP_JOURNAL_HEALTH_INIT;
    trp_journal_health after = TRP_JOURNAL_HEALTH_INIT;
    uint64_t epoch = trpi_kit_claim(run, "h", "w");

    run->driver->health(run->driver->arg, &before);
    TRPI_KIT_CHECK(run, before.state == TRP_JOURNAL_OPEN && before.why[0] == '\0',
                   "an open journal says state %d: %s", (int)before.state, before.why);
    (void)trpi_kit_append(run, "h", "h", epoch, 1, 5, NULL);
    (void)trpi_kit_append(run, "h", "h", epoch, 6, 2, NULL);
    (void)trpi_kit_append(run, "h", "h", epoch, 6, 2, NULL);
    run->driver->health(run->driver->arg, &after);
    TRPI_KIT_CHECK(run,
                   after.groups - before.groups == 2 && after.events - before.events == 7 &&
                       after.refused - before.refused == 1 && after.failed == before.failed &&
                       after.waiting == 0,
                   "2 groups, 7 events, 1 refusal were counted as %" PRIu64 ", %" PRIu64
                   ", %" PRIu64 "; %" PRIu32 " wait",
                   after.groups - before.groups, after.events - before.events,
                   after.refused - before.refused, after.waiting);
    TRPI_KIT_CHECK(run, after.commits > before.commits, "no commit was counted");
    return true;
}
