/* journal_carry.c - a whole journal as lines of JSON, and back.
 *
 * Why.   Backup, and the move from one store to another: both need nothing but the driver.
 * Must hold.
 *   journal-carry-C1  Events are written in the order of offsets and restored in it, so that a
 *       projection that begins anew sees them in the same order.
 *   journal-carry-C2  The last line has the counts: a file that was cut is refused, after what was
 *       in it has been restored.
 *   journal-carry-C3  Nothing is restored over an id that has events.
 *   journal-carry-C4  A writer of the saved journal has no permission in the restored one that a
 *       later claim does not take away: epochs go on where they were.
 * Limits. BATCH lines are under way at once; a line is at most TRPI_CARRY_LINE_BYTES_MAX.
 * Tests. tests/system/journal.sh, tests/system/postgres.sh
 */
#include "cluster/node/journal_carry.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/table.h"

#define BATCH 256u
#define BATCH_BYTES (64u << 20) /* of lines */
#define SCOPE "troupe journal import"

/* ---- export ---------------------------------------------------------------------------------- */

bool
trpi_carry_print(FILE *file, const char *kind, const trp_journal_event *item)
{
    cJSON *line = cJSON_CreateObject();
    cJSON *body = cJSON_AddObjectToObject(line, kind);
    char *data = trpi_base64_encode(item->data, item->bytes);
    char *text = NULL;
    bool is_whole = body != NULL && data != NULL && trpi_json_add_text(body, "id", item->id) &&
                    trpi_json_add_i64(body, "number", (int64_t)item->number) &&
                    trpi_json_add_i64(body, "offset", (int64_t)item->offset) &&
                    trpi_json_add_i64(body, "timeMs", (int64_t)item->time_ms) &&
                    trpi_json_add_text(body, "type", item->type) &&
                    trpi_json_add_i64(body, "version", item->version);

    if (is_whole && item->tags_count != 0) {
        cJSON *tags = cJSON_AddArrayToObject(body, "tags");
        is_whole = tags != NULL;
        for (uint32_t i = 0; is_whole && i < item->tags_count; i++) {
            is_whole = cJSON_AddItemToArray(tags, cJSON_CreateString(item->tags[i]));
        }
    }
    is_whole = is_whole && trpi_json_add_text(body, "data", data);
    text = is_whole ? cJSON_PrintUnformatted(line) : NULL;
    is_whole = text != NULL && fputs(text, file) >= 0;
    cJSON_free(text);
    cJSON_Delete(line);
    trpi_free(data);
    return is_whole;
}

static trp_err
event_give(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_carry *carry = op->user;
    bool is_event = op->kind == TRP_JOURNAL_TAGGED;

    carry->events += is_event;
    carry->snapshots += !is_event;
    op->ret_number = item->number;
    return trpi_carry_print(carry->file, is_event ? "event" : "snapshot", item) &&
                   fputc('\n', carry->file) != EOF
               ? TRP_OK
               : TRP_EIO;
}

static trp_err
carry_fail(trpi_carry *carry, const trp_journal_op *op)
{
    (void)snprintf(carry->why, sizeof carry->why, "%s", op->why);
    return op->err;
}

static trp_err
events_export(trpi_carry *carry)
{
    uint64_t from = 0;
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    do {
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_TAGGED;
        op.from = from;
        op.give = event_give;
        op.user = carry;
        if (trp_journal_call(carry->driver, &op) != TRP_OK) {
            return carry_fail(carry, &op);
        }
        from = op.ret_offset;
    } while (op.ret_more);
    return TRP_OK;
}

/* The number of the snapshot that was given last. */
typedef struct last_snapshot {
    trpi_carry *carry;
    uint64_t number;
} last_snapshot;

static trp_err
snapshot_give(trp_journal_op *op, const trp_journal_event *item)
{
    last_snapshot *last = op->user;

    last->number = item->number;
    op->user = last->carry;
    trp_err err = event_give(op, item);
    op->user = last;
    return err;
}

/* All snapshots of an id, the newest first. */
static trp_err
snapshots_export(trpi_carry *carry, const char *id)
{
    last_snapshot last = { carry, 0 };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    do {
        uint64_t to = last.number != 0 ? last.number - 1 : 0;
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_SNAPSHOT_LOAD;
        op.id = id;
        op.to = to;
        op.give = snapshot_give;
        op.user = &last;
        if (trp_journal_call(carry->driver, &op) != TRP_OK) {
            return carry_fail(carry, &op);
        }
    } while (op.ret_count != 0 && last.number > 1);
    return TRP_OK;
}

/* One page of ids. */
typedef struct id_page {
    uint32_t count;
    struct {
        char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
        uint64_t highest;
    } rows[100];
} id_page;

static trp_err
id_give(trp_journal_op *op, const trp_journal_event *item)
{
    id_page *page = op->user;

    (void)snprintf(page->rows[page->count].id, sizeof page->rows[0].id, "%s", item->id);
    page->rows[page->count++].highest = item->number;
    return TRP_OK;
}

static trp_err
id_export(trpi_carry *carry, const char *id, uint64_t highest)
{
    cJSON *line = cJSON_CreateObject();
    cJSON *body = cJSON_AddObjectToObject(line, "id");
    char *text = body != NULL && trpi_json_add_text(body, "id", id) &&
                         trpi_json_add_i64(body, "highest", (int64_t)highest)
                     ? cJSON_PrintUnformatted(line)
                     : NULL;
    trp_err err = text != NULL && fprintf(carry->file, "%s\n", text) > 0 ? TRP_OK : TRP_EIO;

    carry->ids++;
    cJSON_free(text);
    cJSON_Delete(line);
    return err == TRP_OK ? snapshots_export(carry, id) : err;
}

static trp_err
ids_export(trpi_carry *carry)
{
    id_page *page = trpi_alloc(sizeof *page);
    char after[TRP_JOURNAL_ID_BYTES_MAX + 1] = "";
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    trp_err err = page != NULL ? TRP_OK : TRP_ENOMEM;

    while (err == TRP_OK) {
        page->count = 0;
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_IDS;
        op.id = after[0] != '\0' ? after : NULL;
        op.max_events = sizeof page->rows / sizeof page->rows[0];
        op.give = id_give;
        op.user = page;
        err = trp_journal_call(carry->driver, &op) == TRP_OK ? TRP_OK : carry_fail(carry, &op);
        for (uint32_t i = 0; err == TRP_OK && i < page->count; i++) {
            err = id_export(carry, page->rows[i].id, page->rows[i].highest);
        }
        if (err != TRP_OK || !op.ret_more || page->count == 0) {
            break;
        }
        memcpy(after, page->rows[page->count - 1].id, sizeof after);
    }
    trpi_free(page);
    return err;
}

static trp_err
scope_give(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_carry *carry = op->user;
    bool is_own = strcmp(item->id, SCOPE) == 0;
    cJSON *line = cJSON_CreateObject();
    cJSON *body = cJSON_AddObjectToObject(line, "scope");
    char *text = body != NULL && trpi_json_add_text(body, "scope", item->id) &&
                         trpi_json_add_text(body, "writer", item->type) &&
                         trpi_json_add_i64(body, "epoch", (int64_t)item->number)
                     ? cJSON_PrintUnformatted(line)
                     : NULL;
    trp_err err =
        text != NULL && (is_own || fprintf(carry->file, "%s\n", text) > 0) ? TRP_OK : TRP_EIO;

    carry->scopes += !is_own;
    (void)snprintf(carry->after, sizeof carry->after, "%s", item->id);
    cJSON_free(text);
    cJSON_Delete(line);
    return err;
}

static trp_err
scopes_export(trpi_carry *carry)
{
    char after[TRP_JOURNAL_SCOPE_BYTES_MAX + 1] = "";
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    do {
        memcpy(after, carry->after, sizeof after);
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_SCOPES;
        op.scope = after[0] != '\0' ? after : NULL;
        op.give = scope_give;
        op.user = carry;
        if (trp_journal_call(carry->driver, &op) != TRP_OK) {
            return carry_fail(carry, &op);
        }
    } while (op.ret_more && op.ret_count != 0);
    return TRP_OK;
}

trp_err
trpi_carry_export(trpi_carry *carry)
{
    trp_err err =
        fputs("{\"journal\":\"troupe\",\"version\":1}\n", carry->file) >= 0 ? TRP_OK : TRP_EIO;

    err = err == TRP_OK ? events_export(carry) : err;
    err = err == TRP_OK ? ids_export(carry) : err;
    err = err == TRP_OK ? scopes_export(carry) : err;
    if (err == TRP_OK && (fprintf(carry->file,
                                  "{\"end\":{\"events\":%" PRIu64 ",\"snapshots\":%" PRIu64
                                  ",\"ids\":%" PRIu64 ",\"scopes\":%" PRIu64 "}}\n",
                                  carry->events, carry->snapshots, carry->ids, carry->scopes) < 0 ||
                          fflush(carry->file) != 0)) {
        err = TRP_EIO;
    }
    if (err != TRP_OK && carry->why[0] == '\0') {
        (void)snprintf(carry->why, sizeof carry->why, "%s", trp_strerror(err));
    }
    return err;
}

/* ---- import ---------------------------------------------------------------------------------- */

/* One line that is under way, with all that its operation leads to. */
typedef struct import_item {
    trp_journal_op op;
    trp_journal_event event;
    const char *tags[TRP_JOURNAL_TAGS_MAX];
    cJSON *line;
    uint8_t *data;
} import_item;

typedef struct importing {
    trpi_carry *carry;
    import_item *items; /* BATCH of them */
    uint32_t count;
    size_t bytes;
    uint64_t epoch;
    trpi_table seen; /* char *: ids that have events now */
    bool is_ended;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t answers; /* under lock */
} importing;

static bool
seen_is_empty(const void *element)
{
    return *(char *const *)element == NULL;
}

static uint64_t
seen_hash(const void *arg, const void *element)
{
    (void)arg;
    return trpi_hash_text(*(char *const *)element);
}

static bool
seen_is(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return strcmp(*(char *const *)element, key) == 0;
}

static const trpi_table_kind seen_kind = { sizeof(char *), seen_is_empty, seen_hash, seen_is };

/* Return 1 for an id that comes the first time, 0 for a known one, -1 without memory. */
static int
seen_add(importing *in, const char *id)
{
    char **place = trpi_table_add(&seen_kind, &in->seen, NULL, trpi_hash_text(id), id);

    if (place == NULL) {
        return -1;
    }
    if (*place != NULL) {
        return 0;
    }
    *place = trpi_strdup(id);
    if (*place == NULL) {
        in->seen.count--;
        return -1;
    }
    return 1;
}

static trp_err
import_fail(importing *in, trp_err err, const char *what)
{
    (void)snprintf(in->carry->why, sizeof in->carry->why, "line %" PRIu64 ": %s", in->carry->line,
                   what);
    return err;
}

static void
import_answered(trp_journal_op *op)
{
    importing *in = op->user;

    pthread_mutex_lock(&in->lock);
    in->answers++;
    pthread_cond_signal(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

/* Wait for the answers to all that is under way. */
static trp_err
import_settle(importing *in)
{
    trp_err err = TRP_OK;

    pthread_mutex_lock(&in->lock);
    while (in->answers < in->count) {
        pthread_cond_wait(&in->changed, &in->lock);
    }
    in->answers = 0;
    pthread_mutex_unlock(&in->lock);
    for (uint32_t i = 0; i < in->count; i++) {
        import_item *item = &in->items[i];
        if (item->op.err != TRP_OK && err == TRP_OK) {
            (void)snprintf(in->carry->why, sizeof in->carry->why, "up to line %" PRIu64 ": %s",
                           in->carry->line, item->op.why);
            err = item->op.err;
        }
        cJSON_Delete(item->line);
        trpi_free(item->data);
    }
    in->count = 0;
    in->bytes = 0;
    return err;
}

/* Read a whole number of a field; a missing one is 0. */
static uint64_t
number_field(const cJSON *body, const char *name)
{
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(body, name);

    return cJSON_IsNumber(field) && field->valuedouble >= 0 ? (uint64_t)field->valuedouble : 0;
}

static bool
item_fill(import_item *item, const cJSON *body)
{
    const char *data = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "data"));
    const cJSON *tags = cJSON_GetObjectItemCaseSensitive(body, "tags");
    const cJSON *tag = NULL;

    item->event = (trp_journal_event){
        .number = number_field(body, "number"),
        .time_ms = number_field(body, "timeMs"),
        .type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "type")),
        .version = (uint32_t)number_field(body, "version"),
        .tags = item->tags,
    };
    cJSON_ArrayForEach(tag, tags)
    {
        if (!cJSON_IsString(tag) || item->event.tags_count == TRP_JOURNAL_TAGS_MAX) {
            return false;
        }
        item->tags[item->event.tags_count++] = tag->valuestring;
    }
    if (data == NULL ||
        trpi_base64_decode(data, strlen(data), &item->data, &item->event.bytes) != TRP_OK) {
        return false;
    }
    item->event.data = item->data;
    return item->event.type != NULL && item->event.number != 0;
}

/* Begin the operation of one line, which is taken. */
static trp_err
import_begin(importing *in, cJSON *line, const cJSON *body, trp_journal_kind kind)
{
    import_item *item = &in->items[in->count];
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "id"));
    uint64_t highest = number_field(body, "highest");
    int is_new = 0;

    *item = (import_item){ .op = TRP_JOURNAL_OP_INIT, .line = line };
    in->count++;
    item->op.kind = kind;
    item->op.id = id;
    item->op.scope = SCOPE;
    item->op.epoch = in->epoch;
    item->op.writer = SCOPE;
    item->op.timeout_ms = 60000;
    item->op.done = import_answered;
    item->op.user = in;
    item->op.events = &item->event;
    item->op.events_count = 1;
    if (id == NULL || (kind != TRP_JOURNAL_CLAIM && !item_fill(item, body))) {
        import_answered(&item->op);
        return import_fail(in, TRP_EDATA, "this is no event, snapshot or id of an export");
    }
    if (kind != TRP_JOURNAL_SNAPSHOT_SAVE) {
        is_new = seen_add(in, id);
    }
    if (kind == TRP_JOURNAL_CLAIM) { /* an id: only its highest number, where it has no events */
        item->op.kind = TRP_JOURNAL_APPEND;
        item->op.events_count = 0;
        item->event.number = highest + 1;
    }
    item->op.from = item->event.number;
    item->op.restore = is_new == 1;
    if (is_new < 0 || (item->op.events_count == 0 && (is_new == 0 || highest == 0))) {
        import_answered(&item->op); /* nothing to do */
        return is_new < 0 ? TRP_ENOMEM : TRP_OK;
    }
    in->carry->driver->submit(in->carry->driver->arg, &item->op);
    return TRP_OK;
}

/* Begin the claim of a scope's epoch (journal-carry-C4). */
static trp_err
import_scope(importing *in, cJSON *line, const cJSON *body)
{
    import_item *item = &in->items[in->count];
    const char *scope = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "scope"));
    const char *writer = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "writer"));

    *item = (import_item){ .op = TRP_JOURNAL_OP_INIT, .line = line };
    in->count++;
    item->op.kind = TRP_JOURNAL_CLAIM;
    item->op.scope = scope;
    item->op.writer = writer;
    item->op.epoch = number_field(body, "epoch");
    item->op.restore = 1;
    item->op.timeout_ms = 60000;
    item->op.done = import_answered;
    item->op.user = in;
    if (scope == NULL || writer == NULL || item->op.epoch == 0 || strcmp(scope, SCOPE) == 0) {
        import_answered(&item->op);
        return import_fail(in, TRP_EDATA, "this is no scope of an export");
    }
    in->carry->driver->submit(in->carry->driver->arg, &item->op);
    return TRP_OK;
}

static trp_err
import_end(importing *in, const cJSON *end)
{
    in->is_ended = true;
    return number_field(end, "events") == in->carry->events &&
                   number_field(end, "snapshots") == in->carry->snapshots &&
                   number_field(end, "ids") == in->carry->ids &&
                   number_field(end, "scopes") == in->carry->scopes
               ? TRP_OK
               : import_fail(in, TRP_EDATA, "the counts at the end are not those of the lines");
}

/* Take one line, which is not the first. */
static trp_err
import_line(importing *in, const char *text, size_t bytes)
{
    cJSON *line = cJSON_ParseWithLength(text, bytes);
    const cJSON *event = cJSON_GetObjectItemCaseSensitive(line, "event");
    const cJSON *snapshot = cJSON_GetObjectItemCaseSensitive(line, "snapshot");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(line, "id");
    const cJSON *scope = cJSON_GetObjectItemCaseSensitive(line, "scope");
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(line, "end");
    trp_err err = TRP_OK;

    in->carry->scopes += scope != NULL;
    in->carry->events += event != NULL;
    in->carry->snapshots += snapshot != NULL;
    in->carry->ids += id != NULL;
    in->bytes += bytes;
    if (event != NULL) {
        err = import_begin(in, line, event, TRP_JOURNAL_APPEND);
    } else if (snapshot != NULL) {
        err = import_begin(in, line, snapshot, TRP_JOURNAL_SNAPSHOT_SAVE);
    } else if (id != NULL) {
        err = import_begin(in, line, id, TRP_JOURNAL_CLAIM);
    } else if (scope != NULL) { /* of a journal whose events were restored */
        err = in->carry->scopes == 1 ? import_settle(in) : TRP_OK;
        if (err == TRP_OK) {
            err = import_scope(in, line, scope);
        } else {
            cJSON_Delete(line);
        }
    } else {
        err = end != NULL ? import_end(in, end)
                          : import_fail(in, TRP_EDATA, "this is no line of an export");
        cJSON_Delete(line);
    }
    return err;
}

static trp_err
import_claim(importing *in)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = op.writer = SCOPE;
    if (trp_journal_call(in->carry->driver, &op) != TRP_OK) {
        return carry_fail(in->carry, &op);
    }
    in->epoch = op.ret_epoch;
    return TRP_OK;
}

/* Read one line with its end; false: there is none, or *ret_err. */
static bool
line_read(FILE *file, trpi_buffer *line, trp_err *ret_err)
{
    char piece[16384];

    trpi_buffer_clear(line);
    while (*ret_err == TRP_OK && fgets(piece, sizeof piece, file) != NULL) {
        *ret_err = trpi_buffer_append(line, piece, strlen(piece), TRPI_CARRY_LINE_BYTES_MAX);
        if (*ret_err == TRP_OK && line->data[line->count - 1] == '\n') {
            return true;
        }
    }
    return *ret_err == TRP_OK && line->count != 0;
}

static trp_err
import_lines(importing *in, trpi_buffer *line)
{
    trp_err err = TRP_OK;

    while (err == TRP_OK && line_read(in->carry->file, line, &err)) {
        const char *text = (const char *)line->data;
        in->carry->line++;
        if (in->carry->line == 1) {
            err =
                line->count >= 32 && memcmp(text, "{\"journal\":\"troupe\",\"version\":1}", 32) == 0
                    ? TRP_OK
                    : import_fail(in, TRP_EDATA, "this is no export of `troupe journal export`");
        } else {
            err = in->is_ended ? import_fail(in, TRP_EDATA, "there are lines behind the end")
                               : import_line(in, text, line->count);
        }
        if (in->count == BATCH || in->bytes > BATCH_BYTES) {
            trp_err settled = import_settle(in);
            err = err == TRP_OK ? settled : err;
        }
    }
    return err;
}

trp_err
trpi_carry_import(trpi_carry *carry)
{
    importing in = { .carry = carry,
                     .items = trpi_alloc(BATCH * sizeof(import_item)),
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER };
    trpi_buffer line = { NULL, 0, 0 };
    uint32_t position = 0;
    char **seen = NULL;
    trp_err err = in.items != NULL ? import_claim(&in) : TRP_ENOMEM;

    if (err == TRP_OK) {
        err = import_lines(&in, &line);
        trp_err settled = import_settle(&in);
        err = err == TRP_OK ? settled : err;
    }
    if (err == TRP_OK && !in.is_ended) { /* journal-carry-C2 */
        err = import_fail(&in, TRP_EDATA, "the file has no end: it was cut");
    }
    if (err != TRP_OK && carry->why[0] == '\0') {
        (void)snprintf(carry->why, sizeof carry->why, "%s", trp_strerror(err));
    }
    while ((seen = trpi_table_next(&seen_kind, &in.seen, &position)) != NULL) {
        trpi_free(*seen);
    }
    trpi_table_fini(&in.seen);
    trpi_buffer_fini(&line);
    trpi_free(in.items);
    trpi_mutex_destroy(&in.lock);
    pthread_cond_destroy(&in.changed);
    return err;
}
