/* journal_kit_limits.c - the laws of limits and arguments. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "persistence/journal_kit.h"

#define TEXT_BYTES 256u

/* An append of one event, of texts with so many bytes. */
typedef struct lengths {
    size_t id, scope, writer, type, tag;
    uint32_t tags;
} lengths;

static const char *
text_fill(char *room, size_t bytes, char letter)
{
    memset(room, letter, bytes);
    room[bytes] = '\0';
    return room;
}

/* Claim and append with texts of these lengths, and read the event back. */
static trp_err
append_of(trpi_kit_run *run, const lengths *of)
{
    char id[TEXT_BYTES + 1];
    char scope[TEXT_BYTES + 1];
    char writer[TEXT_BYTES + 1];
    char type[TEXT_BYTES + 1];
    char tag[TRP_JOURNAL_TAGS_MAX + 1][TEXT_BYTES + 1];
    const char *tags[TRP_JOURNAL_TAGS_MAX + 1];
    trp_journal_event event = { .type = text_fill(type, of->type, 'y'),
                                .tags_count = of->tags,
                                .tags = tags };
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_CLAIM, NULL, text_fill(scope, of->scope, 's'), 0);

    for (uint32_t i = 0; i < of->tags; i++) {
        tags[i] = text_fill(tag[i], of->tag, (char)('a' + i));
    }
    op.writer = text_fill(writer, of->writer, 'w');
    if (trpi_kit_call(run, &op) != TRP_OK) {
        return op.err;
    }
    op = trpi_kit_op(TRP_JOURNAL_APPEND, text_fill(id, of->id, 'i'), scope, op.ret_epoch);
    op.from = 1;
    op.events = &event;
    op.events_count = 1;
    if (trpi_kit_call(run, &op) != TRP_OK) {
        return op.err;
    }
    op = trpi_kit_op(TRP_JOURNAL_EVENTS, id, NULL, 0);
    if (trpi_kit_call(run, &op) != TRP_OK || op.ret_count != 1) {
        return TRP_EDATA;
    }
    for (uint32_t i = 0; i < of->tags; i++) {
        op = trpi_kit_op(TRP_JOURNAL_TAGGED, NULL, NULL, 0);
        op.tag = tags[i];
        if (trpi_kit_call(run, &op) != TRP_OK || op.ret_count != 1) {
            return TRP_EDATA;
        }
    }
    return TRP_OK;
}

bool
trpi_kit_limits(trpi_kit_run *run)
{
    const lengths at = { TRP_JOURNAL_ID_BYTES_MAX,     TRP_JOURNAL_SCOPE_BYTES_MAX,
                         TRP_JOURNAL_WRITER_BYTES_MAX, TRP_JOURNAL_TYPE_BYTES_MAX,
                         TRP_JOURNAL_TAG_BYTES_MAX,    TRP_JOURNAL_TAGS_MAX };
    trp_err err = append_of(run, &at);
    trp_journal_event *events = NULL;
    uint64_t epoch = trpi_kit_claim(run, "l", "w");

    TRPI_KIT_CHECK(run, err == TRP_OK, "texts and tags at their limits were answered %s",
                   trp_err_name(err));
    for (uint32_t i = 0; i < 6; i++) {
        lengths past = { 1, 1, 1, 1, 1, 1 };
        past.id += i == 0 ? TRP_JOURNAL_ID_BYTES_MAX : 0;
        past.scope += i == 1 ? TRP_JOURNAL_SCOPE_BYTES_MAX : 0;
        past.writer += i == 2 ? TRP_JOURNAL_WRITER_BYTES_MAX : 0;
        past.type += i == 3 ? TRP_JOURNAL_TYPE_BYTES_MAX : 0;
        past.tag += i == 4 ? TRP_JOURNAL_TAG_BYTES_MAX : 0;
        past.tags += i == 5 ? TRP_JOURNAL_TAGS_MAX : 0;
        err = append_of(run, &past);
        TRPI_KIT_CHECK(run, err == (i == 5 ? TRP_ELIMIT : TRP_EMSGSIZE),
                       "limit %" PRIu32 ", one past it, was answered %s", i, trp_err_name(err));
    }
    events = trpi_alloc((TRP_JOURNAL_GROUP_EVENTS_MAX + 1) * sizeof *events);
    TRPI_KIT_CHECK(run, events != NULL, "out of memory");
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_APPEND, "l", "l", epoch);
    for (uint32_t i = 0; i <= TRP_JOURNAL_GROUP_EVENTS_MAX; i++) {
        events[i].type = "kit";
    }
    op.from = 1;
    op.events = events;
    op.events_count = TRP_JOURNAL_GROUP_EVENTS_MAX + 1;
    (void)trpi_kit_call(run, &op);
    trpi_free(events);
    TRPI_KIT_CHECK(run, op.err == TRP_ELIMIT && op.outcome == TRP_JOURNAL_REFUSED,
                   "a group of one event too many was answered %s", trp_err_name(op.err));
    return true;
}

static trp_err
is_whole(trp_journal_op *op, const trp_journal_event *item)
{
    return item->bytes == TRP_JOURNAL_GROUP_BYTES_MAX &&
                   memcmp(item->data, op->user, item->bytes) == 0
               ? TRP_OK
               : TRP_EDATA;
}

bool
trpi_kit_large_data(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "l", "w");
    unsigned char *data = trpi_alloc(TRP_JOURNAL_GROUP_BYTES_MAX + 1);
    trp_journal_event events[2] = {
        { .type = "kit", .data = data, .bytes = 1 },
        { .type = "kit", .data = data, .bytes = TRP_JOURNAL_GROUP_BYTES_MAX }
    };
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_APPEND, "l", "l", epoch);

    TRPI_KIT_CHECK(run, data != NULL, "out of memory");
    for (uint32_t i = 0; i < TRP_JOURNAL_GROUP_BYTES_MAX; i++) {
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    op.from = 1;
    op.events = events;
    op.events_count = 2;
    (void)trpi_kit_call(run, &op);
    trp_err past = op.err;
    op = trpi_kit_op(TRP_JOURNAL_APPEND, "l", "l", epoch);
    op.from = 1;
    op.events = &events[1];
    op.events_count = 1;
    (void)trpi_kit_call(run, &op);
    trp_err at = op.err;
    op = trpi_kit_op(TRP_JOURNAL_EVENTS, "l", NULL, 0);
    op.give = is_whole;
    op.user = data;
    (void)trpi_kit_call(run, &op);
    trpi_free(data);
    TRPI_KIT_CHECK(run, past == TRP_EMSGSIZE, "data one byte too large was answered %s",
                   trp_err_name(past));
    TRPI_KIT_CHECK(run, at == TRP_OK, "data of the largest size was answered %s", trp_err_name(at));
    TRPI_KIT_CHECK(run, op.err == TRP_OK && op.ret_count == 1,
                   "data of the largest size was read as %s", trp_err_name(op.err));
    return true;
}

/* Check that op is refused as wrong. */
static bool
is_wrong(trpi_kit_run *run, const char *what, trp_journal_op op)
{
    (void)trpi_kit_call(run, &op);
    TRPI_KIT_CHECK(run,
                   op.err == TRP_EINVAL && op.outcome == TRP_JOURNAL_REFUSED && op.why[0] != '\0',
                   "%s was answered %s \"%s\"", what, trp_err_name(op.err), op.why);
    return true;
}

bool
trpi_kit_arguments(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "x", "w");
    const char *twice[] = { "red", "red" };
    const char *nothing[] = { "" };
    trp_journal_event event = { .number = 1, .type = "kit", .data = "x", .bytes = 1 };
    trp_journal_op right = trpi_kit_op(TRP_JOURNAL_APPEND, "x", "x", epoch);
    trp_journal_op wrong = right;

    right.from = 1;
    right.events = &event;
    right.events_count = 1;
    wrong = right, wrong.id = NULL;
    bool is_right = is_wrong(run, "no id", wrong);
    wrong = right, wrong.id = "";
    is_right = is_right && is_wrong(run, "an empty id", wrong);
    wrong = right, wrong.scope = NULL;
    is_right = is_right && is_wrong(run, "no scope", wrong);
    wrong = right, wrong.from = 0;
    is_right = is_right && is_wrong(run, "number 0", wrong);
    wrong = right, wrong.from = UINT64_MAX;
    is_right = is_right && is_wrong(run, "the last number of all", wrong);
    wrong = right, wrong.events_count = 0;
    is_right = is_right && is_wrong(run, "a group without events", wrong);
    wrong = right, wrong.kind = TRP_JOURNAL_CLAIM;
    is_right = is_right && is_wrong(run, "a claim without a writer", wrong);
    wrong = right, wrong.kind = TRP_JOURNAL_SNAPSHOT_SAVE, wrong.events_count = 0;
    is_right = is_right && is_wrong(run, "no snapshot", wrong);
    event.type = NULL;
    is_right = is_right && is_wrong(run, "an event without a type", right);
    event.type = "kit";
    event.data = NULL;
    is_right = is_right && is_wrong(run, "an event without its data", right);
    event.data = "x";
    event.tags = twice;
    event.tags_count = 2;
    is_right = is_right && is_wrong(run, "a tag given twice", right);
    wrong = right, wrong.kind = TRP_JOURNAL_SNAPSHOT_SAVE;
    is_right = is_right && is_wrong(run, "a snapshot with tags", wrong);
    event.tags = nothing;
    event.tags_count = 1;
    is_right = is_right && is_wrong(run, "an empty tag", right);
    return is_right && trpi_kit_has_events(run, "x", 1, 0);
}
