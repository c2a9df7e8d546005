/* control_logs.c - logs: the last lines of this node's log, wherever its lines go.
 *
 * Why.     The log of a node is a file, a journal or a pipe of somebody else; an operator who looks
 *          at a node from `troupe` wants its last lines without knowing which. The fields are named
 *          as in OpenTelemetry's data model of logs, so that a collector needs no mapping.
 * Shape.   Each line that is written goes also into a ring, as its parts. The command makes objects
 *          of them when somebody asks. The words key=value at the end of a text are attributes, as
 *          in log.format = json: trp_log_format() finds them.
 * Limits.  TRPI_LOG_RING_BYTES; of a line TRP_LOG_TEXT_BYTES_MAX and TRP_LOG_MDC_BYTES_MAX.
 * Tests.   tests/unit/node/logs_test.c, tests/system/observe.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/node/node_private.h"

#define NAME_BYTES_MAX 64u /* of a thread or a behaviour */

/* One record; behind it its five texts, each with its NUL, and the pairs of the context. */
typedef struct log_record {
    int64_t wall_ms;
    uint32_t level;
    int32_t cause;
} log_record;

#define LINE_BYTES_MAX                                                                             \
    (sizeof(log_record) + TRP_PATH_BYTES_MAX + 1u + TRP_LOG_TEXT_BYTES_MAX +                       \
     2u * (NAME_BYTES_MAX + 1u) + TRP_LOG_MDC_BYTES_MAX + 1u)
_Static_assert(LINE_BYTES_MAX <= TRPI_LOG_RING_BYTES / 4, "a line always fits the ring");

/* ---- writing --------------------------------------------------------------------------------- */

/* Append text with its NUL, cut to max bytes without it; return the end. */
static char *
text_put(char *at, const char *text, size_t max)
{
    size_t bytes = text == NULL ? 0 : strnlen(text, max);
    memcpy(at, text == NULL ? "" : text, bytes);
    at[bytes] = '\0';
    return at + bytes + 1;
}

void
trpi_node_log_keep(trpi_record_ring *ring, const trp_log_line *line)
{
    char record[LINE_BYTES_MAX];
    log_record head = { line->wall_ms, (uint32_t)line->level, (int32_t)line->cause };
    const char *mdc = line->mdc, *key, *value, *next;
    char *at = record + sizeof head;
    memcpy(record, &head, sizeof head);
    at = text_put(at, line->source, TRP_PATH_BYTES_MAX);
    at = text_put(at, line->text, TRP_LOG_TEXT_BYTES_MAX - 1u);
    at = text_put(at, line->kind, NAME_BYTES_MAX);
    at = text_put(at, line->thread, NAME_BYTES_MAX);
    while ((next = trp_log_mdc_next(mdc, &key, &value)) != NULL) {
        if ((size_t)(next - mdc) > (size_t)(record + sizeof record - 1 - at)) {
            break; /* a pair is whole or absent */
        }
        memcpy(at, mdc, (size_t)(next - mdc));
        at += next - mdc;
        mdc = next;
    }
    *at++ = '\0';
    trpi_record_ring_put(ring, record, (size_t)(at - record));
}

/* The parts of a record; they borrow from it. */
static trp_log_line
line_of(const char *record)
{
    log_record head;
    trp_log_line line = { .level = TRP_LOG_INFO };
    memcpy(&head, record, sizeof head);
    line.level = (trp_log_level)head.level;
    line.cause = (trp_err)head.cause;
    line.wall_ms = head.wall_ms;
    line.source = record + sizeof head;
    line.text = line.source + strlen(line.source) + 1;
    line.kind = line.text + strlen(line.text) + 1;
    line.thread = line.kind + strlen(line.kind) + 1;
    line.mdc = line.thread + strlen(line.thread) + 1;
    return line;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Is the line of this component, or of one below it? "cluster" has "cluster.gossip", "/user/a" has
 * "/user/a/b". */
static bool
is_of(const char *source, const char *component)
{
    size_t bytes = strlen(component);
    return strncmp(source, component, bytes) == 0 &&
           (source[bytes] == '\0' || source[bytes] == '/' || source[bytes] == '.');
}

static bool
is_wanted(const trpi_control_request *request, const trp_log_line *line)
{
    return (request->level == NULL || line->level <= trpi_log_level_parse(request->level)) &&
           (request->component == NULL || is_of(line->source, request->component));
}

/* Move the members of `from` that are texts into attributes. */
static bool
attributes_take(cJSON *attributes, const cJSON *from)
{
    const cJSON *item;
    bool ok = true;
    cJSON_ArrayForEach(item, from)
    {
        ok = ok && (cJSON_HasObjectItem(attributes, item->string) ||
                    trpi_json_add_text(attributes, item->string, cJSON_GetStringValue(item)));
    }
    return ok;
}

static bool
attributes_add(cJSON *row, const trp_log_line *line)
{
    char text[TRPI_LOG_LINE_BYTES_MAX];
    cJSON *parts = NULL, *attributes = cJSON_AddObjectToObject(row, "attributes");
    size_t bytes = trp_log_format(line, 1, text, sizeof text);
    bool ok =
        attributes != NULL && trpi_json_parse(text, bytes, &parts, NULL) == TRP_OK &&
        attributes_take(attributes, cJSON_GetObjectItemCaseSensitive(parts, "fields")) &&
        attributes_take(attributes, cJSON_GetObjectItemCaseSensitive(parts, "mdc")) &&
        (line->cause == TRP_OK ||
         trpi_json_add_text(attributes, "error.type", trp_err_name(line->cause))) &&
        (line->thread[0] == '\0' || trpi_json_add_text(attributes, "thread.name", line->thread)) &&
        (line->kind[0] == '\0' || trpi_json_add_text(attributes, "troupe.behaviour", line->kind));
    cJSON_Delete(parts);
    return ok;
}

static bool
row_add(cJSON *list, uint64_t number, const trp_log_line *line)
{
    static const struct {
        const char *text;
        int number; /* OpenTelemetry's, by level */
    } severities[] = {
        { "?", 0 }, { "error", 17 }, { "warning", 13 }, { "info", 9 }, { "debug", 5 }
    };
    unsigned level = (unsigned)line->level <= TRP_LOG_DEBUG ? (unsigned)line->level : 0u;
    char time[32];
    cJSON *row = cJSON_CreateObject(), *scope = NULL;
    bool ok =
        trpi_json_add_u64_string(row, "number", number) &&
        trpi_json_add_text(row, "timestamp", trpi_time_format(line->wall_ms, time, sizeof time)) &&
        trpi_json_add_text(row, "severityText", severities[level].text) &&
        trpi_json_add_i64(row, "severityNumber", severities[level].number) &&
        (scope = cJSON_AddObjectToObject(row, "scope")) != NULL &&
        trpi_json_add_text(scope, "name", line->source) &&
        trpi_json_add_text(row, "body", line->text) && attributes_add(row, line);
    return trpi_json_append(list, row, ok);
}

/* Add the wanted lines from place on. false: no memory. */
static bool
rows_add(trp_node *node, const trpi_control_request *request, trpi_record_place *place, cJSON *list)
{
    char record[LINE_BYTES_MAX];
    size_t bytes = 0;
    bool ok = true;
    uint64_t until = trpi_record_ring_newest(&node->log_ring);
    while (ok && place->number <= until &&
           trpi_record_ring_read(&node->log_ring, place, record, &bytes)) {
        trpi_assert(bytes > sizeof(log_record));
        trp_log_line line = line_of(record);
        ok = !is_wanted(request, &line) || row_add(list, place->number - 1, &line);
    }
    return ok;
}

/* Of the wanted lines only the last ones. */
static void
rows_trim(cJSON *list, uint32_t count)
{
    int extra = count > 0 ? cJSON_GetArraySize(list) - (int)count : 0;
    for (; extra > 0; extra--) {
        cJSON_DeleteItemFromArray(list, 0);
    }
}

void
trpi_node_serve_logs(trp_node *node, trpi_call *call)
{
    trpi_record_place place;
    uint64_t missed = 0;
    uint32_t count = call->request.count;
    call->request.count = 0; /* it counts lines that are wanted: rows_trim() */
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "lines") : NULL;
    ok = list != NULL;
    bool waits = true;
    while (ok && waits) {
        if (!trpi_node_records_await(call, &node->log_ring, &place)) {
            cJSON_Delete(reply);
            return;
        }
        ok = rows_add(node, &call->request, &place, list);
        missed += place.missed;
        /* lines that are not wanted wake nobody */
        waits = call->request.follow && cJSON_GetArraySize(list) == 0 && missed == 0 &&
                trpi_call_left_ms(call) > 0;
        call->request.after = place.number - 1;
    }
    rows_trim(list, count);
    ok = ok && trpi_json_add_i64(reply, "missed", (int64_t)missed) &&
         trpi_json_add_u64_string(reply, "next", place.number - 1);
    trpi_call_answer_if(call, ok, reply);
}
