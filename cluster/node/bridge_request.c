/* bridge_request.c - the protocol of the bridge: bytes to lines, lines to requests, and the lines
 * of answers.
 *
 * Shape.   bytes -> trpi_bridge_lines_feed() -> lines -> trpi_bridge_request_parse() -> a request
 *          in which everything is checked, or a refusal with what to do
 * Must hold.
 *   bridge-request-I1  Whatever the bytes are, each line becomes one request or one refusal, and
 *       what follows it is read as if it had not been there.
 *   bridge-request-I2  Of an unfinished line at most TRPI_BRIDGE_LINE_BYTES_MAX bytes are kept.
 * Limits.  TRPI_BRIDGE_LINE_BYTES_MAX; depth of JSON: TRPI_JSON_DEPTH_MAX.
 * Tests.   tests/unit/node/bridge_request_test.c, tests/fuzz/bridge_fuzz.c
 */
#include "cluster/node/bridge_request.h"

#include <stdio.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/pubsub.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/nearest.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/payload_json.h"

/* ---- bytes to lines -------------------------------------------------------------------------- */

static bool
is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0') {
            return false;
        }
    }
    return true;
}

/* A part of a line that does not end in it. */
static void
part_keep(trpi_bridge_lines *lines, const char *part, size_t bytes, trpi_bridge_line_fn fn,
          void *arg)
{
    if (lines->skips) {
        return;
    }
    trp_err err = trpi_buffer_append(&lines->held, part, bytes, TRPI_BRIDGE_LINE_BYTES_MAX);
    if (err != TRP_OK) { /* bridge-request-I2 */
        trpi_buffer_fini(&lines->held);
        lines->skips = true;
        fn(arg, ++lines->number, err == TRP_ENOMEM ? TRP_ENOMEM : TRP_EMSGSIZE, NULL, 0);
    }
}

/* The last part of a line. */
static void
line_end(trpi_bridge_lines *lines, const char *part, size_t bytes, trpi_bridge_line_fn fn,
         void *arg)
{
    if (!lines->skips && (lines->held.count > 0 || bytes > TRPI_BRIDGE_LINE_BYTES_MAX)) {
        part_keep(lines, part, bytes, fn, arg);
        part = (const char *)lines->held.data;
        bytes = lines->held.count;
    }
    if (lines->skips) { /* it was counted and refused */
        lines->skips = false;
        return;
    }
    lines->number++;
    if (!is_blank(part, bytes)) {
        fn(arg, lines->number, TRP_OK, part, bytes);
    }
    trpi_buffer_fini(&lines->held); /* a long line does not keep its memory */
}

void
trpi_bridge_lines_feed(trpi_bridge_lines *lines, const void *data, size_t bytes,
                       trpi_bridge_line_fn fn, void *arg)
{
    const char *at = data, *end = at + bytes;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL) {
            part_keep(lines, at, (size_t)(end - at), fn, arg);
            return;
        }
        line_end(lines, at, (size_t)(newline - at), fn, arg);
        at = newline + 1;
    }
}

void
trpi_bridge_lines_fini(trpi_bridge_lines *lines)
{
    trpi_buffer_fini(&lines->held);
    memset(lines, 0, sizeof *lines);
}

/* ---- the table of requests ------------------------------------------------------------------- */

enum {
    KEY_ID = 1,
    KEY_ACTOR = 2,
    KEY_TO = 4,
    KEY_TOPIC = 8,
    KEY_GROUP = 16,
    KEY_TIMEOUT = 32,
    KEY_REPLY = 64,
    KEY_ERROR = 128,
    KEY_TYPES = 256,
    KEY_TRACE = 512,
    KEY_MESSAGE = 1024 /* type, json, text, base64 */
};

static const struct {
    const char *name;
    uint32_t key;
} keys[] = { { "id", KEY_ID },
             { "actor", KEY_ACTOR },
             { "to", KEY_TO },
             { "topic", KEY_TOPIC },
             { "group", KEY_GROUP },
             { "timeoutMs", KEY_TIMEOUT },
             { "reply", KEY_REPLY },
             { "error", KEY_ERROR },
             { "types", KEY_TYPES },
             { "traceparent", KEY_TRACE },
             { "type", KEY_MESSAGE },
             { "json", KEY_MESSAGE },
             { "text", KEY_MESSAGE },
             { "base64", KEY_MESSAGE },
             { "op", 0 } };
#define KEYS_COUNT (sizeof keys / sizeof keys[0])

static const struct {
    const char *name;
    trpi_bridge_op op;
    uint32_t needs, may;
} ops[] = {
    { "host", TRPI_BRIDGE_HOST, KEY_ACTOR, 0 },
    { "stop", TRPI_BRIDGE_STOP, KEY_ACTOR, 0 },
    { "tell", TRPI_BRIDGE_TELL, KEY_TO | KEY_MESSAGE, KEY_ACTOR | KEY_TRACE },
    { "ask", TRPI_BRIDGE_ASK, KEY_ID | KEY_TO | KEY_MESSAGE, KEY_ACTOR | KEY_TRACE | KEY_TIMEOUT },
    { "reply", TRPI_BRIDGE_REPLY, KEY_REPLY | KEY_MESSAGE, KEY_ACTOR | KEY_TRACE },
    { "fail", TRPI_BRIDGE_FAIL, KEY_REPLY | KEY_ERROR, KEY_ACTOR | KEY_TRACE },
    { "watch", TRPI_BRIDGE_WATCH, KEY_ID | KEY_TO, KEY_ACTOR | KEY_TIMEOUT },
    { "unwatch", TRPI_BRIDGE_UNWATCH, KEY_TO, KEY_ACTOR },
    { "subscribe", TRPI_BRIDGE_SUBSCRIBE, KEY_TOPIC, KEY_ACTOR | KEY_GROUP },
    { "unsubscribe", TRPI_BRIDGE_UNSUBSCRIBE, KEY_TOPIC, KEY_ACTOR | KEY_GROUP },
    { "publish", TRPI_BRIDGE_PUBLISH, KEY_TOPIC | KEY_MESSAGE,
      KEY_ACTOR | KEY_TRACE | KEY_TIMEOUT },
    { "events", TRPI_BRIDGE_EVENTS, 0, KEY_TYPES },
    { "ping", TRPI_BRIDGE_PING, 0, 0 },
};
#define OPS_COUNT (sizeof ops / sizeof ops[0])

const char *
trpi_bridge_op_name(trpi_bridge_op op)
{
    size_t i = 0;
    while (i < OPS_COUNT && ops[i].op != op) {
        i++;
    }
    trpi_assert(i < OPS_COUNT);
    return ops[i].name;
}

static trp_err
hint_set(trpi_control_refusal *refusal, const char *hint)
{
    (void)snprintf(refusal->hint, sizeof refusal->hint, "%s", hint);
    return TRP_EINVAL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static trp_err
op_take(trpi_bridge_request *request, size_t *ret_index, trpi_control_refusal *refusal)
{
    const char *names[OPS_COUNT];
    const char *name = trpi_json_get_text(request->json, "op");
    if (name == NULL) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "key 'op' is missing, or no text");
        return hint_set(refusal, "{\"op\":\"tell\",\"to\":\"/user/x\",\"json\":1}");
    }
    for (size_t i = 0; i < OPS_COUNT; i++) {
        names[i] = ops[i].name;
        if (strcmp(name, ops[i].name) == 0) {
            request->op = ops[i].op;
            *ret_index = i;
            return TRP_OK;
        }
    }
    const char *near = trpi_nearest(name, names, OPS_COUNT);
    trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "no such op '%.64s'%s%s%s", name,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return hint_set(refusal, "host stop tell ask reply fail watch unwatch subscribe unsubscribe "
                             "publish events ping");
}

/* Refuse keys that are unknown, given twice, or not of this op. */
static trp_err
keys_check(const trpi_bridge_request *request, size_t index, uint32_t *ret_given,
           trpi_control_refusal *refusal)
{
    const cJSON *item = NULL;
    bool seen[KEYS_COUNT] = { false };
    uint32_t allowed = KEY_ID | ops[index].needs | ops[index].may;
    *ret_given = 0;
    cJSON_ArrayForEach(item, request->json)
    {
        size_t i = 0;
        while (i < KEYS_COUNT && strcmp(keys[i].name, item->string) != 0) {
            i++;
        }
        if (i == KEYS_COUNT || (keys[i].key != 0 && (keys[i].key & allowed) == 0)) {
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "op '%s' has no key '%.64s'",
                                ops[index].name, item->string);
            return hint_set(refusal, "docs/bridge.md lists the keys of each op");
        }
        if (seen[i]) {
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "key '%s' is given twice",
                                keys[i].name);
            return TRP_EINVAL;
        }
        seen[i] = true;
        *ret_given |= keys[i].key;
    }
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        if ((keys[i].key & ops[index].needs & ~*ret_given) != 0) {
            trpi_control_refuse(
                refusal, TRPI_CTL_EXIT_USAGE, "op '%s' needs key '%s'", ops[index].name,
                keys[i].key == KEY_MESSAGE ? "json', 'text' or 'base64" : keys[i].name);
            return TRP_EINVAL;
        }
    }
    return TRP_OK;
}

static trp_err
text_take(const trpi_bridge_request *request, const char *key, size_t least, size_t most,
          const char **ret_text, trpi_control_refusal *refusal)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, key);
    if (item == NULL) {
        return TRP_OK;
    }
    if (!cJSON_IsString(item) || strlen(item->valuestring) < least ||
        strlen(item->valuestring) > most) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "key '%s': expected a text of %zu to %zu bytes", key, least, most);
        return TRP_EINVAL;
    }
    *ret_text = item->valuestring;
    return TRP_OK;
}

static trp_err
number_take(const trpi_bridge_request *request, const char *key, uint64_t least, uint64_t most,
            uint64_t *ret_number, trpi_control_refusal *refusal)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, key);
    if (item == NULL) {
        return TRP_OK;
    }
    double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (!(value >= (double)least && value <= (double)most) || value != (double)(uint64_t)value) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "key '%s': expected a whole number from %llu to %llu", key,
                            (unsigned long long)least, (unsigned long long)most);
        return TRP_EINVAL;
    }
    *ret_number = (uint64_t)value;
    return TRP_OK;
}

/* A trace that is not sampled is no trace. */
static trp_err
trace_take(trpi_bridge_request *request, trpi_control_refusal *refusal)
{
    const char *text = NULL;
    trp_err err = text_take(request, "traceparent", 1, 256, &text, refusal);
    if (err != TRP_OK || text == NULL) {
        return err;
    }
    err = trp_trace_parse(text, &request->trace);
    request->has_trace = err == TRP_OK;
    if (err != TRP_OK && err != TRP_ENOENT) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "key 'traceparent': it is none of W3C Trace Context");
        return hint_set(refusal, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    }
    return TRP_OK;
}

static trp_err
types_take(trpi_bridge_request *request, trpi_control_refusal *refusal)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(request->json, "types"), *item = NULL;
    request->event_bits = (1u << TRPI_CONTROL_EVENT_TYPES) - 1;
    if (list == NULL) {
        return TRP_OK;
    }
    request->event_bits = 0;
    bool is = cJSON_IsArray(list);
    for (item = is ? list->child : NULL; is && item != NULL; item = item->next) {
        unsigned i = 0;
        while (
            i < TRPI_CONTROL_EVENT_TYPES &&
            (!cJSON_IsString(item) || strcmp(trpi_control_event_name(i), item->valuestring) != 0)) {
            i++;
        }
        is = i < TRPI_CONTROL_EVENT_TYPES;
        request->event_bits |= is ? 1u << i : 0;
    }
    if (!is) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "key 'types': expected a list of event types");
        return hint_set(refusal, "MemberUp, UnreachableMember, ...: troupe events --help; an empty "
                                 "list ends the subscription");
    }
    return TRP_OK;
}

static trp_err
message_take(trpi_bridge_request *request, trpi_control_refusal *refusal)
{
    size_t most = TRPI_BRIDGE_LINE_BYTES_MAX;
    trp_err err = text_take(request, "type", 1, 255, &request->type, refusal);
    err = err == TRP_OK ? text_take(request, "text", 0, most, &request->text, refusal) : err;
    err = err == TRP_OK ? text_take(request, "base64", 0, most, &request->base64, refusal) : err;
    request->value = cJSON_GetObjectItemCaseSensitive(request->json, "json");
    int count = (request->value != NULL) + (request->text != NULL) + (request->base64 != NULL);
    if (err == TRP_OK && count != 1) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "a message has one of the keys 'json', 'text' and 'base64'");
        return TRP_EINVAL;
    }
    return err;
}

static trp_err
values_take(trpi_bridge_request *request, uint32_t given, trpi_control_refusal *refusal)
{
    uint64_t timeout_ms = TRPI_BRIDGE_TIMEOUT_MS_DEFAULT;
    bool names = request->op == TRPI_BRIDGE_HOST || request->op == TRPI_BRIDGE_STOP;
    trp_err err =
        text_take(request, "actor", names ? 1 : 0, TRP_NAME_BYTES_MAX, &request->actor, refusal);
    err = err == TRP_OK ? text_take(request, "to", 1, TRP_PATH_BYTES_MAX, &request->to, refusal)
                        : err;
    err = err == TRP_OK
              ? text_take(request, "topic", 1, TRP_TOPIC_BYTES_MAX, &request->topic, refusal)
              : err;
    err = err == TRP_OK
              ? text_take(request, "group", 1, TRP_TOPIC_BYTES_MAX, &request->group, refusal)
              : err;
    err = err == TRP_OK
              ? text_take(request, "error", 1, TRPI_BRIDGE_LINE_BYTES_MAX, &request->error, refusal)
              : err;
    err = err == TRP_OK
              ? number_take(request, "reply", 1, TRPI_BRIDGE_NUMBER_MAX, &request->reply, refusal)
              : err;
    err = err == TRP_OK ? number_take(request, "timeoutMs", 1, TRPI_CONTROL_TIMEOUT_MS_MAX,
                                      &timeout_ms, refusal)
                        : err;
    request->timeout_ms = (uint32_t)timeout_ms;
    err = err == TRP_OK ? trace_take(request, refusal) : err;
    err = err == TRP_OK && request->op == TRPI_BRIDGE_EVENTS ? types_take(request, refusal) : err;
    if (err == TRP_OK && (given & KEY_MESSAGE) != 0) {
        err = message_take(request, refusal);
    }
    return err;
}

trp_err
trpi_bridge_request_parse(const char *text, size_t bytes, trpi_bridge_request *ret_request,
                          trpi_control_refusal *ret_refusal)
{
    size_t offset = 0, index = 0;
    uint32_t given = 0;
    trpi_bridge_request *request = ret_request;
    memset(request, 0, sizeof *request);
    request->actor = "";
    if (trpi_json_parse(text, bytes, &request->json, &offset) != TRP_OK) {
        request->json = NULL;
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA, "invalid JSON at byte %zu", offset);
        (void)hint_set(ret_refusal, "one JSON object a line, in UTF-8");
        return TRP_EDATA;
    }
    trp_err err = TRP_EDATA;
    if (!cJSON_IsObject(request->json)) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA, "the line is no JSON object");
        (void)hint_set(ret_refusal, "{\"op\":\"tell\",\"to\":\"/user/x\",\"json\":1}");
    } else {
        err = number_take(request, "id", 0, TRPI_BRIDGE_NUMBER_MAX, &request->id, ret_refusal);
        request->has_id = err == TRP_OK && cJSON_HasObjectItem(request->json, "id");
        err = err == TRP_OK ? op_take(request, &index, ret_refusal) : err;
        err = err == TRP_OK ? keys_check(request, index, &given, ret_refusal) : err;
        err = err == TRP_OK ? values_take(request, given, ret_refusal) : err;
    }
    if (err != TRP_OK) {
        cJSON_Delete(request->json);
        request->json = NULL;
        request->actor = "";
    }
    return err;
}

void
trpi_bridge_request_fini(trpi_bridge_request *request)
{
    cJSON_Delete(request->json);
    request->json = NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

static const char *
type_name_of(const trpi_bridge_request *request)
{
    return request->type != NULL    ? request->type
           : request->value != NULL ? "json"
           : request->text != NULL  ? "string"
                                    : "bytes";
}

/* Bytes are the payload as it is: only of types without a form of their own. */
static trp_err
bytes_make(const trpi_bridge_request *request, trpi_bridge_message *m,
           trpi_control_refusal *refusal)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (m->type != &trp_bytes_type) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_DATA,
                            "'base64' is for messages of type bytes, not of %.128s", m->type->name);
        return TRP_EDATA;
    }
    trp_err err = trpi_base64_decode(request->base64, strlen(request->base64), &bytes, &count);
    if (err != TRP_OK) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_DATA, "key 'base64' cannot be decoded");
        return err;
    }
    m->owned = bytes;
    m->payload = bytes;
    m->bytes = count;
    return TRP_OK;
}

static trp_err
json_make(const trpi_bridge_request *request, trpi_bridge_message *m, trpi_control_refusal *refusal)
{
    char what[256] = "out of memory";
    char *text = trpi_json_print(request->value);
    trp_err err = text == NULL ? TRP_ENOMEM
                               : trpi_payload_from_json(m->type, text, &m->owned, &m->bytes, what,
                                                        sizeof what);
    cJSON_free(text);
    m->payload = m->owned;
    if (err != TRP_OK) {
        trpi_control_refuse(
            refusal, err == TRP_ENOMEM ? TRPI_CTL_EXIT_INTERNAL : TRPI_CTL_EXIT_DATA, "%s", what);
    }
    return err;
}

trp_err
trpi_bridge_message_make(const trpi_bridge_request *request, trpi_bridge_message *ret_message,
                         trpi_control_refusal *ret_refusal)
{
    char why[TRPI_OUTSIDE_WHY_BYTES];
    memset(ret_message, 0, sizeof *ret_message);
    trp_err err = trpi_type_from_outside(type_name_of(request), &ret_message->type, why);
    if (err != TRP_OK) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA, "%s", why);
        (void)hint_set(ret_refusal,
                       err == TRP_ENOTYPE
                           ? "string, json, bytes, or a type that a plugin registered"
                           : "a message says what an actor shall do, and the actor does it");
        return err;
    }
    if (request->base64 != NULL) {
        return bytes_make(request, ret_message, ret_refusal);
    }
    bool is_text = (ret_message->type->flags & TRP_TYPE_TEXT) != 0;
    if ((request->text != NULL) != is_text || ret_message->type == &trp_bytes_type) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA,
                            "a message of type %.128s is given as '%s'", ret_message->type->name,
                            is_text                                ? "text"
                            : ret_message->type == &trp_bytes_type ? "base64"
                                                                   : "json");
        return TRP_EDATA;
    }
    if (request->text != NULL) {
        ret_message->payload = request->text;
        ret_message->bytes = strlen(request->text);
        return TRP_OK;
    }
    return json_make(request, ret_message, ret_refusal);
}

/* ---- lines to the program -------------------------------------------------------------------- */

cJSON *
trpi_bridge_answer(uint64_t id)
{
    cJSON *object = cJSON_CreateObject();
    if (!trpi_json_add_i64(object, "id", (int64_t)id) || !trpi_json_add_bool(object, "ok", true)) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}

cJSON *
trpi_bridge_event(const char *name)
{
    cJSON *object = cJSON_CreateObject();
    if (!trpi_json_add_text(object, "event", name)) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}

char *
trpi_bridge_print(cJSON *object, bool ok)
{
    char *text = ok && object != NULL ? trpi_json_print(object) : NULL;
    cJSON_Delete(object);
    size_t bytes = text == NULL ? 0 : strlen(text);
    char *line = text == NULL ? NULL : cJSON_malloc(bytes + 2);
    if (line != NULL) {
        memcpy(line, text, bytes);
        line[bytes] = '\n';
        line[bytes + 1] = '\0';
    }
    cJSON_free(text);
    return line;
}

char *
trpi_bridge_refuse(const trpi_bridge_request *request, uint64_t number,
                   const trpi_control_refusal *refusal)
{
    bool has_id = request != NULL && request->has_id;
    cJSON *object = cJSON_CreateObject();
    bool ok = has_id ? trpi_json_add_i64(object, "id", (int64_t)request->id) &&
                           trpi_json_add_bool(object, "ok", false)
                     : trpi_json_add_text(object, "event", "error");
    if (ok && !has_id && number != 0) {
        ok = trpi_json_add_i64(object, "line", (int64_t)number);
    }
    if (ok && !has_id && request != NULL && request->op != 0) {
        ok = trpi_json_add_text(object, "op", trpi_bridge_op_name(request->op));
    }
    ok = ok && trpi_json_add_i64(object, "exit", refusal->exit) &&
         trpi_json_add_text(object, "error", refusal->error) &&
         (refusal->hint[0] == '\0' || trpi_json_add_text(object, "hint", refusal->hint));
    return trpi_bridge_print(object, ok);
}

bool
trpi_bridge_move(cJSON *object, cJSON *from)
{
    bool ok = object != NULL && from != NULL;
    while (ok && from->child != NULL) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        char *key = item->string; /* the item's own; adding replaces it */
        item->string = NULL;
        ok = cJSON_AddItemToObject(object, key, item);
        cJSON_free(key);
        if (!ok) {
            cJSON_Delete(item);
        }
    }
    cJSON_Delete(from);
    return ok;
}
