/* journal_memory_data.c - what the journal in memory keeps, and each operation on it.
 *
 * Must hold.
 *   1  Events of an id are numbered without gap up to its highest number; deletion takes them from
 *      the front and leaves the highest number.
 *   2  A group that meets an error has changed nothing: all memory is taken first.
 * Tests. tests/unit/persistence/journal_kit_test.c, tests/unit/persistence/journal_memory_test.c
 */
#include "persistence/journal_memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "persistence/journal_op.h"

#define COUNT_MAX (1u << 30) /* of any array here */

static size_t
text_put(char **end, const char *text)
{
    size_t bytes = strlen(text) + 1;

    memcpy(*end, text, bytes);
    *end += bytes;
    return bytes;
}

/* Copy an event. NULL: no memory. */
static trpi_memory_item *
item_new(const trp_journal_event *event, const char *id)
{
    size_t bytes = sizeof(trpi_memory_item) + event->tags_count * sizeof(char *) +
                   strlen(event->type) + 1 + event->bytes;
    trpi_memory_item *item = NULL;

    for (uint32_t i = 0; i < event->tags_count; i++) {
        bytes += strlen(event->tags[i]) + 1;
    }
    item = trpi_alloc(bytes);
    if (item == NULL) {
        return NULL;
    }
    const char **tags = (const char **)(item + 1);
    char *end = (char *)(tags + event->tags_count);

    item->event = *event;
    item->event.id = id;
    item->event.tags = event->tags_count != 0 ? tags : NULL;
    item->event.type = end;
    (void)text_put(&end, event->type);
    for (uint32_t i = 0; i < event->tags_count; i++) {
        tags[i] = end;
        (void)text_put(&end, event->tags[i]);
    }
    item->event.data = end;
    if (event->bytes != 0) {
        memcpy(end, event->data, event->bytes);
    }
    return item;
}

/* Return the place of id, or where it belongs. */
static uint32_t
id_place(const trpi_memory_data *data, const char *id)
{
    uint32_t low = 0;
    uint32_t high = data->ids_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(data->ids[middle]->id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static trpi_memory_id *
id_find(const trpi_memory_data *data, const char *id)
{
    uint32_t place = id_place(data, id);

    return place < data->ids_count && strcmp(data->ids[place]->id, id) == 0 ? data->ids[place]
                                                                            : NULL;
}

static uint32_t
scope_place(const trpi_memory_data *data, const char *scope)
{
    uint32_t place = 0;

    while (place < data->scopes_count && strcmp(data->scopes[place].scope, scope) < 0) {
        place++;
    }
    return place;
}

static trpi_memory_scope *
scope_find(const trpi_memory_data *data, const char *scope)
{
    uint32_t place = scope_place(data, scope);

    return place < data->scopes_count && strcmp(data->scopes[place].scope, scope) == 0
               ? &data->scopes[place]
               : NULL;
}

/* Find an id, or add it. NULL: no memory. */
static trpi_memory_id *
id_add(trpi_memory_data *data, const char *id)
{
    uint32_t place = id_place(data, id);
    trpi_memory_id *added = id_find(data, id);

    if (added != NULL) {
        return added;
    }
    if (TRPI_ARRAY_RESERVE(data, ids, 1, COUNT_MAX) != TRP_OK) {
        return NULL;
    }
    added = trpi_alloc(sizeof *added);
    if (added == NULL || (added->id = trpi_strdup(id)) == NULL) {
        trpi_free(added);
        return NULL;
    }
    memmove(&data->ids[place + 1], &data->ids[place],
            (data->ids_count - place) * sizeof *data->ids);
    data->ids[place] = added;
    data->ids_count++;
    return added;
}

static void
op_no_memory(trp_journal_op *op)
{
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_ENOMEM, "%s", trp_strerror(TRP_ENOMEM));
}

static void
op_done(trp_journal_op *op)
{
    trp_journal_op_finish(op, TRP_JOURNAL_DONE, TRP_OK, NULL);
}

static void
data_claim(trpi_memory_data *data, trp_journal_op *op)
{
    trpi_memory_scope *scope = scope_find(data, op->scope);
    char *writer = trpi_strdup(op->writer);

    if (writer == NULL) {
        op_no_memory(op);
        return;
    }
    if (scope == NULL) {
        uint32_t place = scope_place(data, op->scope);
        char *name = trpi_strdup(op->scope);
        if (name == NULL || TRPI_ARRAY_RESERVE(data, scopes, 1, COUNT_MAX) != TRP_OK) {
            trpi_free(name);
            trpi_free(writer);
            op_no_memory(op);
            return;
        }
        scope = &data->scopes[place];
        memmove(scope + 1, scope, (data->scopes_count - place) * sizeof *scope);
        *scope = (trpi_memory_scope){ name, NULL, 0 };
        data->scopes_count++;
    }
    trpi_free(scope->writer);
    scope->writer = writer;
    scope->epoch = trpi_journal_op_claims(op, scope->epoch);
    op->ret_epoch = scope->epoch;
    op_done(op);
}

/* Answer op as fenced unless its epoch is the present one. */
static int
is_fenced(const trpi_memory_data *data, trp_journal_op *op)
{
    const trpi_memory_scope *scope = scope_find(data, op->scope);

    if (scope != NULL && scope->epoch == op->epoch) {
        return 0;
    }
    trpi_journal_op_fenced(op, scope != NULL ? scope->epoch : 0,
                           scope != NULL ? scope->writer : "");
    return 1;
}

/* Answer op as refused unless there is room for its data. */
static int
is_full(const trpi_memory_data *data, trp_journal_op *op)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->events_count; i++) {
        bytes += op->events[i].bytes;
    }
    if (data->bytes_max == 0 || data->bytes + bytes <= data->bytes_max) {
        return 0;
    }
    trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EAGAIN,
                          "the journal in memory may hold %llu bytes of data, and is full",
                          (unsigned long long)data->bytes_max);
    return 1;
}

/* Take all memory that the group needs; the copies go to the places behind what is counted. */
static trp_err
append_prepare(trpi_memory_data *data, const trp_journal_op *op, trpi_memory_id *id)
{
    trp_err err = TRPI_ARRAY_RESERVE(id, items, op->events_count, COUNT_MAX);

    if (err == TRP_OK) {
        err = TRPI_ARRAY_RESERVE(data, log, op->events_count, COUNT_MAX);
    }
    for (uint32_t i = 0; err == TRP_OK && i < op->events_count; i++) {
        trpi_memory_item *item = item_new(&op->events[i], id->id);
        if (item == NULL) {
            while (i > 0) {
                trpi_free(id->items[id->items_count + --i]);
            }
            return TRP_ENOMEM;
        }
        id->items[id->items_count + i] = item;
    }
    return err;
}

static void
data_append(trpi_memory_data *data, trp_journal_op *op)
{
    if (is_fenced(data, op) || is_full(data, op)) {
        return;
    }
    trpi_memory_id *id = id_add(data, op->id);
    if (id == NULL) {
        op_no_memory(op);
        return;
    }
    if (op->restore ? id->items_count != 0 || op->from <= id->highest
                    : op->from != id->highest + 1) {
        trpi_journal_op_gap(op, id->highest);
        return;
    }
    if (op->events_count != 0 && append_prepare(data, op, id) != TRP_OK) {
        op_no_memory(op);
        return;
    }
    for (uint32_t i = 0; i < op->events_count; i++) {
        trp_journal_event *event = &id->items[id->items_count]->event;
        event->number = op->from + i;
        event->offset = (uint64_t)data->log_count + 1;
        data->log[data->log_count++] = id->items[id->items_count++];
        data->bytes += event->bytes;
    }
    id->highest = op->from + op->events_count - 1;
    op->ret_number = id->highest;
    op->ret_offset = data->log_count;
    op_done(op);
}

/* Answer a read that has ended with err. */
static void
read_end(trp_journal_op *op, trp_err err)
{
    if (err == TRP_OK || (err == TRP_ELIMIT && op->ret_more)) {
        op_done(op);
    } else {
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, err, "the reader has ended the read: %s",
                              trp_strerror(err));
    }
}

static void
read_events(trpi_memory_data *data, trp_journal_op *op)
{
    const trpi_memory_id *id = id_find(data, op->id);
    trp_err err = TRP_OK;
    uint64_t bytes = 0;

    op->ret_number = id != NULL ? id->highest : 0;
    if (id != NULL && id->items_count != 0) {
        uint64_t first = id->items[0]->event.number;
        uint64_t i = op->from > first ? op->from - first : 0;
        for (; err == TRP_OK && i < id->items_count; i++) {
            const trp_journal_event *event = &id->items[i]->event;
            if (op->to != 0 && event->number > op->to) {
                break;
            }
            err = trpi_journal_op_give(op, event, &bytes);
        }
    }
    read_end(op, err);
}

static int
has_tag(const trp_journal_event *event, const char *tag)
{
    for (uint32_t i = 0; tag != NULL && i < event->tags_count; i++) {
        if (strcmp(event->tags[i], tag) == 0) {
            return 1;
        }
    }
    return tag == NULL;
}

static void
read_tagged(trpi_memory_data *data, trp_journal_op *op)
{
    trp_err err = TRP_OK;
    uint64_t bytes = 0;
    uint64_t offset = op->from;

    op->ret_offset = offset;
    for (; err == TRP_OK && offset < data->log_count; offset++) {
        const trpi_memory_item *item = data->log[offset];
        if (item != NULL && has_tag(&item->event, op->tag)) {
            err = trpi_journal_op_give(op, &item->event, &bytes);
        }
        if (err == TRP_OK) {
            op->ret_offset = offset + 1;
        }
    }
    read_end(op, err);
}

static void
delete_events(trpi_memory_data *data, trp_journal_op *op)
{
    trpi_memory_id *id = id_find(data, op->id);
    uint32_t count = 0;

    if (is_fenced(data, op)) {
        return;
    }
    while (id != NULL && count < id->items_count &&
           (op->to == 0 || id->items[count]->event.number <= op->to)) {
        trpi_memory_item *item = id->items[count++];
        data->log[item->event.offset - 1] = NULL;
        data->bytes -= item->event.bytes;
        trpi_free(item);
    }
    if (count != 0) {
        id->items_count -= count;
        memmove(id->items, id->items + count, id->items_count * sizeof *id->items);
    }
    op->ret_number = id != NULL ? id->highest : 0;
    op_done(op);
}

static void
snapshot_save(trpi_memory_data *data, trp_journal_op *op)
{
    if (is_fenced(data, op) || is_full(data, op)) {
        return;
    }
    trpi_memory_id *id = id_add(data, op->id);
    trpi_memory_item *item = id != NULL ? item_new(&op->events[0], id->id) : NULL;
    if (item == NULL || TRPI_ARRAY_RESERVE(id, snapshots, 1, COUNT_MAX) != TRP_OK) {
        trpi_free(item);
        op_no_memory(op);
        return;
    }
    uint32_t place = id->snapshots_count;
    uint64_t number = item->event.number;
    while (place > 0 && id->snapshots[place - 1]->event.number > number) {
        place--;
    }
    data->bytes += item->event.bytes;
    item->event.offset = 0;
    if (place > 0 && id->snapshots[place - 1]->event.number == number) {
        data->bytes -= id->snapshots[place - 1]->event.bytes;
        trpi_free(id->snapshots[place - 1]);
        id->snapshots[place - 1] = item;
    } else {
        memmove(&id->snapshots[place + 1], &id->snapshots[place],
                (id->snapshots_count - place) * sizeof *id->snapshots);
        id->snapshots[place] = item;
        id->snapshots_count++;
    }
    op_done(op);
}

static void
snapshot_load(trpi_memory_data *data, trp_journal_op *op)
{
    const trpi_memory_id *id = id_find(data, op->id);
    trp_err err = TRP_OK;
    uint64_t bytes = 0;

    op->ret_number = id != NULL ? id->highest : 0;
    for (uint32_t i = id != NULL ? id->snapshots_count : 0; i > 0; i--) {
        const trp_journal_event *event = &id->snapshots[i - 1]->event;
        if (op->to == 0 || event->number <= op->to) {
            err = trpi_journal_op_give(op, event, &bytes);
            break;
        }
    }
    read_end(op, err);
}

static void
snapshot_delete(trpi_memory_data *data, trp_journal_op *op)
{
    trpi_memory_id *id = id_find(data, op->id);

    if (is_fenced(data, op)) {
        return;
    }
    while (id != NULL && id->snapshots_count > op->keep &&
           (op->to == 0 || id->snapshots[0]->event.number <= op->to)) {
        data->bytes -= id->snapshots[0]->event.bytes;
        trpi_free(id->snapshots[0]);
        id->snapshots_count--;
        memmove(id->snapshots, id->snapshots + 1, id->snapshots_count * sizeof *id->snapshots);
        op->ret_count++;
    }
    op_done(op);
}

static void
read_ids(trpi_memory_data *data, trp_journal_op *op)
{
    uint32_t i = op->id != NULL ? id_place(data, op->id) : 0;
    trp_err err = TRP_OK;
    uint64_t bytes = 0;

    if (op->id != NULL && i < data->ids_count && strcmp(data->ids[i]->id, op->id) == 0) {
        i++;
    }
    for (; err == TRP_OK && i < data->ids_count; i++) {
        const trpi_memory_id *id = data->ids[i];
        trp_journal_event item = { .id = id->id, .number = id->highest, .type = "" };
        if (id->highest != 0 || id->snapshots_count != 0) {
            err = trpi_journal_op_give(op, &item, &bytes);
        }
    }
    read_end(op, err);
}

static void
read_scopes(trpi_memory_data *data, trp_journal_op *op)
{
    uint32_t i = op->scope != NULL ? scope_place(data, op->scope) : 0;
    trp_err err = TRP_OK;
    uint64_t bytes = 0;

    if (op->scope != NULL && scope_find(data, op->scope) != NULL) {
        i++;
    }
    for (; err == TRP_OK && i < data->scopes_count; i++) {
        const trpi_memory_scope *scope = &data->scopes[i];
        trp_journal_event item = { .id = scope->scope,
                                   .number = scope->epoch,
                                   .type = scope->writer };
        err = trpi_journal_op_give(op, &item, &bytes);
    }
    read_end(op, err);
}

void
trpi_memory_data_run(trpi_memory_data *data, trp_journal_op *op)
{
    static void (*const kinds[])(trpi_memory_data *, trp_journal_op *) = {
        [TRP_JOURNAL_CLAIM] = data_claim,
        [TRP_JOURNAL_APPEND] = data_append,
        [TRP_JOURNAL_EVENTS] = read_events,
        [TRP_JOURNAL_TAGGED] = read_tagged,
        [TRP_JOURNAL_DELETE] = delete_events,
        [TRP_JOURNAL_SNAPSHOT_SAVE] = snapshot_save,
        [TRP_JOURNAL_SNAPSHOT_LOAD] = snapshot_load,
        [TRP_JOURNAL_SNAPSHOT_DELETE] = snapshot_delete,
        [TRP_JOURNAL_IDS] = read_ids,
        [TRP_JOURNAL_SCOPES] = read_scopes,
    };

    trpi_assert(op->kind >= TRP_JOURNAL_CLAIM && op->kind <= TRP_JOURNAL_SCOPES);
    kinds[op->kind](data, op);
}

void
trpi_memory_data_fini(trpi_memory_data *data)
{
    for (uint32_t i = 0; i < data->ids_count; i++) {
        trpi_memory_id *id = data->ids[i];
        for (uint32_t j = 0; j < id->items_count; j++) {
            trpi_free(id->items[j]);
        }
        for (uint32_t j = 0; j < id->snapshots_count; j++) {
            trpi_free(id->snapshots[j]);
        }
        trpi_free(id->items);
        trpi_free(id->snapshots);
        trpi_free(id->id);
        trpi_free(id);
    }
    for (uint32_t i = 0; i < data->scopes_count; i++) {
        trpi_free(data->scopes[i].scope);
        trpi_free(data->scopes[i].writer);
    }
    trpi_free(data->ids);
    trpi_free(data->scopes);
    trpi_free(data->log);
}
