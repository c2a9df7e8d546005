/* forward.c - see forward.h.
 *
 * Why.     `troupe --endpoint` prints what it prints over the socket, so it needs the replies that
 *          the socket gives. A table of commands and their fields provides them without a second
 *          protocol.
 * Must hold.
 *   forward-F1  Only commands of the table reach the node, with the fields of their row, each of
 *       its kind: a write with another field is refused, since a misspelt dryRun would be an order.
 *       (trpi_management_forward_make)
 *   forward-F3  The action of a read is to list: the others change something, and are writes.
 *   forward-F2  Only a request with a credential may hold its connection, or one of the node's
 *       calls, for longer than others.                                              (wait_settle)
 * Limits.  TRPI_MANAGEMENT_FIELD_BYTES_MAX for a text, _BODY_BYTES_MAX for a write's JSON,
 *          _COMMAND_BYTES_MAX for what becomes of it.
 * Tests.   tests/unit/management/forward_test.c, tests/fuzz/management_fuzz.c
 */
#include "cluster/management/forward.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/units.h"
#include "cluster/management/form.h"

static const struct {
    const char *name;
    trpi_management_field kind;
} fields[] = {
    { "member", TRPI_MANAGEMENT_TEXT },      { "path", TRPI_MANAGEMENT_TEXT },
    { "type", TRPI_MANAGEMENT_TEXT },        { "level", TRPI_MANAGEMENT_TEXT },
    { "component", TRPI_MANAGEMENT_TEXT },   { "after", TRPI_MANAGEMENT_TEXT },
    { "dryRun", TRPI_MANAGEMENT_FLAG },      { "wait", TRPI_MANAGEMENT_FLAG },
    { "unreachable", TRPI_MANAGEMENT_FLAG }, { "cautious", TRPI_MANAGEMENT_FLAG },
    { "dead", TRPI_MANAGEMENT_FLAG },        { "rebalance", TRPI_MANAGEMENT_FLAG },
    { "follow", TRPI_MANAGEMENT_FLAG },      { "timeoutMs", TRPI_MANAGEMENT_NUMBER },
    { "depth", TRPI_MANAGEMENT_NUMBER },     { "count", TRPI_MANAGEMENT_NUMBER },
    { "text", TRPI_MANAGEMENT_TEXT },        { "action", TRPI_MANAGEMENT_TEXT },
    { "oneIn", TRPI_MANAGEMENT_NUMBER },     { "uids", TRPI_MANAGEMENT_LIST },
    { "allMembers", TRPI_MANAGEMENT_FLAG },
};

trpi_management_field
trpi_management_field_of(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strlen(fields[i].name) == bytes && memcmp(fields[i].name, name, bytes) == 0) {
            return fields[i].kind;
        }
    }
    return TRPI_MANAGEMENT_NO_FIELD;
}

static void
plan_stop(trpi_management_plan *plan, int status, const char *error, const char *message)
{
    plan->operation = 0;
    trpi_management_answer_error(&plan->answer, status, error, message);
}

static void
plan_stop_field(trpi_management_plan *plan, const char *name, const char *what)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%.64s: %s", name, what);
    plan_stop(plan, 400, "bad-field", text);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Add the value of a query to command. false: it is none of its kind. */
static bool
value_add(cJSON *command, const char *name, trpi_management_field kind, const char *value)
{
    uint32_t number = 0;
    switch (kind) {
    case TRPI_MANAGEMENT_TEXT:
        return trpi_json_add_text(command, name, value);
    case TRPI_MANAGEMENT_FLAG:
        return (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) &&
               trpi_json_add_bool(command, name, value[0] == 't');
    case TRPI_MANAGEMENT_NUMBER:
        return strlen(value) <= 10 && trpi_whole32_parse(value, 0, UINT32_MAX, &number) &&
               trpi_json_add_i64(command, name, number);
    case TRPI_MANAGEMENT_LIST:
    case TRPI_MANAGEMENT_NO_FIELD:
        break;
    }
    return false;
}

/* Take the fields of a read from its query. false: refused. */
static bool
query_take(trpi_management_plan *plan, const trpi_management_route *route, const char *query,
           cJSON *command)
{
    for (const char *at = route->query; *at != '\0';) {
        char name[32], value[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
        size_t bytes = strcspn(at, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        trp_err err = trpi_management_query_get(query, name, value);
        if (err == TRP_OK ? !value_add(command, name, trpi_management_field_of(at, bytes), value)
                          : err != TRP_ENOENT) {
            plan_stop_field(plan, name, "it is given twice, is too long, or is none of its kind");
            return false;
        }
        at += bytes + (at[bytes] == ' ');
    }
    return true;
}

static bool
is_text(const cJSON *item)
{
    return cJSON_IsString(item) && strlen(item->valuestring) < TRPI_MANAGEMENT_FIELD_BYTES_MAX;
}

static bool
is_of_kind(const cJSON *item, trpi_management_field kind)
{
    const cJSON *part = NULL;
    switch (kind) {
    case TRPI_MANAGEMENT_TEXT:
        return is_text(item);
    case TRPI_MANAGEMENT_FLAG:
        return cJSON_IsBool(item);
    case TRPI_MANAGEMENT_NUMBER:
        return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= UINT32_MAX;
    case TRPI_MANAGEMENT_LIST:
        cJSON_ArrayForEach(part, item)
        {
            if (!is_text(part)) {
                return false;
            }
        }
        return cJSON_IsArray(item);
    case TRPI_MANAGEMENT_NO_FIELD:
        break;
    }
    return false;
}

/* Is the name a word of the row's fields? */
static bool
route_has(const trpi_management_route *route, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = route->query; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == bytes && memcmp(at, name, bytes) == 0) {
            return true;
        }
        at += word + (at[word] == ' ');
    }
    return false;
}

/* Take the fields of a write from its body, JSON. false: refused. */
static bool
body_take(trpi_management_plan *plan, const trpi_management_route *route,
          const trpi_management_request *request, cJSON *command)
{
    static const char type[] = "application/json";
    cJSON *body = NULL;
    const cJSON *item = NULL;
    if (request->body_bytes == 0) {
        return true;
    }
    if (request->content_type == NULL ||
        strncasecmp(request->content_type, type, sizeof type - 1) != 0) {
        plan_stop(plan, 415, "bad-content-type", "send the fields as application/json");
        return false;
    }
    if (trpi_json_parse((const char *)request->body, request->body_bytes, &body, NULL) != TRP_OK ||
        !cJSON_IsObject(body)) {
        plan_stop(plan, 400, "bad-json", "the body is no JSON object");
        cJSON_Delete(body);
        return false;
    }
    bool ok = true;
    cJSON_ArrayForEach(item, body)
    {
        trpi_management_field kind = trpi_management_field_of(item->string, strlen(item->string));
        cJSON *copy = NULL;
        if (!route_has(route, item->string) || !is_of_kind(item, kind) ||
            cJSON_HasObjectItem(command, item->string)) { /* forward-F1 */
            plan_stop_field(plan, item->string, "no field of this command, or none of its kind");
            ok = false;
            break;
        }
        copy = cJSON_Duplicate(item, true);
        ok = copy != NULL && cJSON_AddItemToObject(command, item->string, copy);
        if (!ok) {
            cJSON_Delete(copy);
            plan_stop(plan, 500, "no-memory", NULL);
            break;
        }
    }
    cJSON_Delete(body);
    return ok;
}

/* forward-F3. false: refused. */
static bool
action_is_read(trpi_management_plan *plan, const cJSON *command)
{
    const char *action = trpi_json_get_text(command, "action");
    if (action != NULL && strcmp(action, "list") != 0) {
        plan_stop_field(plan, "action", "a read takes list alone; the others are posted");
        return false;
    }
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const trpi_management_route *
route_of(const trpi_management_request *request)
{
    const char *method = strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
    size_t bytes = strlen(request->path);
    bytes -= bytes > 0 && request->path[bytes - 1] == '/' ? 1 : 0;
    for (const trpi_management_route *r = trpi_management_routes(); r->method != NULL; r++) {
        if (r->operation == TRPI_MANAGEMENT_FORWARD && strcmp(r->method, method) == 0 &&
            strlen(r->path) == bytes && memcmp(r->path, request->path, bytes) == 0) {
            return r;
        }
    }
    return NULL;
}

/* Settle how long the node may take: what the request says, else the default of its kind. false:
 * refused. */
static bool
wait_settle(trpi_management_plan *plan, const trpi_management_route *route, uint32_t request_ms,
            cJSON *command)
{
    cJSON *item = cJSON_GetObjectItemCaseSensitive(command, "timeoutMs");
    bool is_long = route->class == TRPI_MANAGEMENT_WRITE || strstr(route->path, "/doctor") != NULL;
    uint32_t ms = is_long ? TRPI_MANAGEMENT_WAIT_MS_LONG : TRPI_MANAGEMENT_WAIT_MS_DEFAULT;
    if (item != NULL && !(item->valuedouble <= TRPI_MANAGEMENT_WAIT_MS_MAX)) {
        plan_stop_field(plan, "timeoutMs", "it is more than a day");
        return false;
    }
    bool is_open = route->class == TRPI_MANAGEMENT_OPEN;
    ms = item != NULL ? (uint32_t)item->valuedouble : ms;
    ms = is_open && ms > request_ms ? request_ms : ms; /* forward-F2 */
    bool follows = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(command, "follow"));
    ms = follows && ms > TRPI_MANAGEMENT_FOLLOW_MS_MAX ? TRPI_MANAGEMENT_FOLLOW_MS_MAX : ms;
    if (item != NULL) {
        (void)cJSON_SetNumberValue(item, ms);
    } else if (!trpi_json_add_i64(command, "timeoutMs", ms)) {
        plan_stop(plan, 500, "no-memory", NULL);
        return false;
    }
    plan->wait_ms = is_open ? 0 : ms;
    return true;
}

void
trpi_management_forward_make(trpi_management_plan *plan, const trpi_management_request *request,
                             uint32_t request_ms)
{
    const trpi_management_route *route = route_of(request);
    cJSON *command = cJSON_CreateObject();
    if (route == NULL ||
        !trpi_json_add_text(command, "cmd",
                            route->path + sizeof TRPI_MANAGEMENT_FORWARD_PREFIX - 1)) {
        plan_stop(plan, 500, "internal", NULL);
        cJSON_Delete(command);
        return;
    }
    bool is_read = strcmp(route->method, "GET") == 0;
    bool ok =
        is_read ? query_take(plan, route, request->query, command) && action_is_read(plan, command)
                : body_take(plan, route, request, command);
    ok = ok && wait_settle(plan, route, request_ms, command);
    char *text = ok ? trpi_json_print(command) : NULL;
    if (ok && text == NULL) {
        plan_stop(plan, 500, "no-memory", NULL);
    } else if (ok && snprintf(plan->command, sizeof plan->command, "%s", text) >=
                         (int)sizeof plan->command) {
        plan_stop(plan, 414, "too-long", "the request is too long");
    }
    cJSON_free(text);
    cJSON_Delete(command);
}

/* ---- replies --------------------------------------------------------------------------------- */

void
trpi_management_forward_answer(const cJSON *reply, trpi_management_answer *ret_answer)
{
    const char *hint = trpi_json_get_text(reply, "hint");
    bool ok = false;
    if (trpi_json_get_bool(reply, "ok", &ok) && ok) {
        *ret_answer =
            (trpi_management_answer){ 200, "application/json", NULL, trpi_json_print(reply) };
        return;
    }
    trpi_management_refusal r = trpi_management_refusal_of(TRPI_MANAGEMENT_FORWARD, reply);
    cJSON *json = cJSON_CreateObject();
    ok = trpi_json_add_text(json, "error", r.error) &&
         trpi_json_add_text(json, "message", r.text) && trpi_json_add_i64(json, "exit", r.exit) &&
         (hint == NULL || trpi_json_add_text(json, "hint", hint));
    *ret_answer = (trpi_management_answer){ r.status, "application/json", NULL,
                                            ok ? trpi_json_print(json) : NULL };
    cJSON_Delete(json);
}
