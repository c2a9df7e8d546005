/* answers.c - a node's reply becomes the answer of the management API: Akka Management's JSON, with
 * its names and no other, where Akka has it.
 *
 * Must hold.
 *   answers-A1  Every reply, also one that is no JSON, becomes an answer with a status and a body.
 *   answers-A2  A refusal has one status and one error, whichever path asked: of its exit code, and
 *       of what was looked for. (refusals)
 * Tests.   tests/unit/management/answers_test.c, tests/fuzz/management_fuzz.c
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cluster/management/exposition.h"
#include "cluster/management/forward.h"
#include "cluster/management/routes.h"
#include "cluster/management/tell.h"

/* Exit codes of the control protocol (cluster/node/ctl_proto.h), which a reply has. */
enum { EXIT_NO = 1, EXIT_USAGE = 64, EXIT_DATA = 65, EXIT_NOT_FOUND = 68, EXIT_AWAY = 69 };
enum { EXIT_INTERNAL = 70, EXIT_LATER = 75, EXIT_PERMISSION = 77 };

void
trpi_management_answer_fini(trpi_management_answer *answer)
{
    cJSON_free(answer->body);
    answer->body = NULL;
}

/* Print json, which is taken. ok: it was filled. */
static void
answer_set(trpi_management_answer *ret_answer, int status, cJSON *json, bool ok)
{
    *ret_answer = (trpi_management_answer){ .status = status, .content_type = "application/json" };
    ret_answer->body = ok ? trpi_json_print(json) : NULL;
    ret_answer->status = ret_answer->body != NULL ? status : 500;
    cJSON_Delete(json);
}

void
trpi_management_answer_error(trpi_management_answer *ret_answer, int status, const char *error,
                             const char *message)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = trpi_json_add_text(json, "error", error) &&
              (message == NULL || trpi_json_add_text(json, "message", message));
    answer_set(ret_answer, status, json, ok);
}

static void
answer_message(trpi_management_answer *ret_answer, const char *verb, const char *whom)
{
    char text[TRPI_MANAGEMENT_FIELD_BYTES_MAX + 32];
    cJSON *json = cJSON_CreateObject();
    (void)snprintf(text, sizeof text, "%s %s", verb, whom);
    answer_set(ret_answer, 200, json, trpi_json_add_text(json, "message", text));
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* The one table of what a refusal of the node becomes (answers-A2). */
static const struct {
    int exit, status;
    const char *error;
} refusals[] = {
    { EXIT_NO, 409, "refused" },
    { EXIT_USAGE, 400, "bad-request" },
    { EXIT_DATA, 400, "bad-request" },
    { EXIT_NOT_FOUND, 404, NULL }, /* what: its operation says */
    { EXIT_AWAY, 503, "try-again" },
    { EXIT_LATER, 503, "try-again" },
    { EXIT_PERMISSION, 403, "not-permitted" },
};

/* Name what was not found. A forwarded command may look for anything: its clients go by `exit`. */
static const char *
missing_of(trpi_management_operation operation, const char *text)
{
    switch (operation) {
    case TRPI_MANAGEMENT_ACTORS:
    case TRPI_MANAGEMENT_TELL:
        return "no-such-actor";
    case TRPI_MANAGEMENT_SHARDS:
        return "no-such-type";
    case TRPI_MANAGEMENT_FORWARD:
        return strncmp(text, "no such member", 14) == 0 ? "no-such-member" : "not-found";
    default:
        return "no-such-member";
    }
}

trpi_management_refusal
trpi_management_refusal_of(trpi_management_operation operation, const cJSON *reply)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(reply, "exit");
    const char *text = trpi_json_get_text(reply, "error");
    trpi_management_refusal r = { .exit = cJSON_IsNumber(item) ? item->valueint : EXIT_INTERNAL,
                                  .status = 500,
                                  .error = "internal",
                                  .text = text != NULL ? text : "the node gave no reason" };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].exit == r.exit) {
            r.status = refusals[i].status;
            r.error = refusals[i].error != NULL ? refusals[i].error : missing_of(operation, r.text);
        }
    }
    bool busy = false;
    busy = trpi_json_get_bool(reply, "busy", &busy) && busy; /* then it was not told */
    if (operation == TRPI_MANAGEMENT_TELL && r.exit == EXIT_LATER && !busy) {
        r.status = 504; /* the actor has not answered: not to be told again */
        r.error = "no-answer";
    }
    return r;
}

static void
answer_refusal(const trpi_management_plan *plan, const cJSON *reply,
               trpi_management_answer *ret_answer)
{
    trpi_management_refusal r = trpi_management_refusal_of(plan->operation, reply);
    bool akka = r.status == 404 && strcmp(r.error, "no-such-member") == 0; /* its body, as it is */
    trpi_management_answer_error(ret_answer, r.status, r.error, akka ? NULL : r.text);
}

/* ---- Akka's JSON ----------------------------------------------------------------------------- */

/* Add a copy of from's member `key` to `to`; one that is absent or null is left out, as Akka does.
 */
static bool
copy_add(cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    if (item == NULL || cJSON_IsNull(item)) {
        return true;
    }
    cJSON *copy = cJSON_Duplicate(item, true);
    return copy != NULL && cJSON_AddItemToObject(to, key, copy);
}

static bool
member_fill(cJSON *row, const cJSON *member)
{
    bool ok = copy_add(row, member, "node") && copy_add(row, member, "nodeUid") &&
              copy_add(row, member, "status") && copy_add(row, member, "roles");
    return ok && (cJSON_GetObjectItemCaseSensitive(row, "roles") != NULL ||
                  cJSON_AddArrayToObject(row, "roles") != NULL);
}

/* Add the list `key` of reply with the wanted members of each row. */
static bool
rows_add(cJSON *to, const cJSON *reply, const char *key, bool members)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, key), *item = NULL;
    cJSON *out = cJSON_AddArrayToObject(to, key);
    bool ok = out != NULL;
    cJSON_ArrayForEach(item, list)
    {
        cJSON *row = ok ? cJSON_CreateObject() : NULL;
        ok = row != NULL &&
             (members ? member_fill(row, item)
                      : copy_add(row, item, "node") && copy_add(row, item, "observedBy"));
        ok = trpi_json_append(out, row, ok);
        if (!ok) {
            break;
        }
    }
    return ok;
}

static void
answer_members(const cJSON *reply, trpi_management_answer *ret_answer)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && copy_add(json, reply, "selfNode") &&
              rows_add(json, reply, "members", true) &&
              rows_add(json, reply, "unreachable", false) && copy_add(json, reply, "leader") &&
              copy_add(json, reply, "oldest") && copy_add(json, reply, "oldestPerRole");
    answer_set(ret_answer, 200, json, ok);
}

static void
answer_member(const cJSON *reply, trpi_management_answer *ret_answer)
{
    cJSON *json = cJSON_CreateObject();
    answer_set(ret_answer, 200, json, json != NULL && member_fill(json, reply));
}

static void
answer_regions(const cJSON *reply, trpi_management_answer *ret_answer)
{
    cJSON *json = cJSON_CreateObject();
    answer_set(ret_answer, 200, json, json != NULL && copy_add(json, reply, "regions"));
}

/* The whole reply, or its member `key`. reply is changed. */
static void
answer_copy(cJSON *reply, const char *key, trpi_management_answer *ret_answer)
{
    cJSON *json = key != NULL ? cJSON_DetachItemFromObjectCaseSensitive(reply, key)
                              : cJSON_Duplicate(reply, true);
    if (json == NULL) {
        trpi_management_answer_error(ret_answer, 500, "internal", "the node's reply lacks a part");
        return;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(json, "ok");
    answer_set(ret_answer, 200, json, true);
}

/* A trace without a hop is none, as for `troupe trace ID`. */
static void
answer_trace(cJSON *reply, trpi_management_answer *ret_answer)
{
    if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(reply, "hops")) == 0) {
        trpi_management_answer_error(ret_answer, 404, "no-such-trace",
                                     "no member has kept hops of this trace");
        return;
    }
    answer_copy(reply, NULL, ret_answer);
}

static void
answer_metrics(const cJSON *reply, bool openmetrics, trpi_management_answer *ret_answer)
{
    const cJSON *families = cJSON_GetObjectItemCaseSensitive(reply, "families");
    if (!cJSON_IsArray(families)) {
        trpi_management_answer_error(ret_answer, 500, "internal", "the node's reply lacks a part");
        return;
    }
    *ret_answer =
        (trpi_management_answer){ .status = 200,
                                  .content_type = openmetrics ? TRPI_MANAGEMENT_OPENMETRICS_TYPE
                                                              : TRPI_MANAGEMENT_TEXT_TYPE,
                                  .body = trpi_management_exposition(families, openmetrics) };
}

/* The verdict and its checks; failed: the status of a no. */
static void
answer_health(cJSON *reply, int failed, trpi_management_answer *ret_answer)
{
    const char *status = trpi_json_get_text(reply, "status");
    bool up = status != NULL && strcmp(status, "up") == 0;
    answer_copy(reply, NULL, ret_answer);
    if (ret_answer->status == 200 && !up) {
        ret_answer->status = failed;
    }
}

/* Return the address of the first of "nodes", or "node"; NULL: neither is there. */
static const char *
node_of(const cJSON *reply)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "nodes");
    return list != NULL ? trpi_json_get_text(cJSON_GetArrayItem(list, 0), "node")
                        : trpi_json_get_text(reply, "node");
}

static void
answer_ok(const trpi_management_plan *plan, cJSON *reply, trpi_management_answer *ret_answer)
{
    const char *node = NULL;
    switch (plan->operation) {
    case TRPI_MANAGEMENT_MEMBERS:
        answer_members(reply, ret_answer);
        return;
    case TRPI_MANAGEMENT_MEMBER:
        answer_member(reply, ret_answer);
        return;
    case TRPI_MANAGEMENT_JOIN:
        answer_message(ret_answer, plan->verb, plan->subject);
        return;
    case TRPI_MANAGEMENT_MEMBER_LEAVE:
    case TRPI_MANAGEMENT_MEMBER_CHANGE:
        node = node_of(reply);
        answer_message(ret_answer, plan->verb, node != NULL ? node : plan->subject);
        return;
    case TRPI_MANAGEMENT_CLUSTER_CHANGE:
        answer_message(ret_answer, "Preparing", "for full cluster shutdown"); /* Akka's words */
        return;
    case TRPI_MANAGEMENT_METRICS:
        answer_metrics(reply, plan->openmetrics, ret_answer);
        return;
    case TRPI_MANAGEMENT_READY:
    case TRPI_MANAGEMENT_ALIVE:
        answer_health(reply, 503, ret_answer);
        return;
    case TRPI_MANAGEMENT_AKKA_READY:
    case TRPI_MANAGEMENT_AKKA_ALIVE:
        answer_health(reply, 500, ret_answer);
        return;
    case TRPI_MANAGEMENT_CONFIG:
        answer_copy(reply, "config", ret_answer);
        return;
    case TRPI_MANAGEMENT_SHARDS:
        answer_regions(reply, ret_answer);
        return;
    case TRPI_MANAGEMENT_ACTORS:
        answer_copy(reply, NULL, ret_answer);
        return;
    case TRPI_MANAGEMENT_TRACE:
        answer_trace(reply, ret_answer);
        return;
    case TRPI_MANAGEMENT_DEADLETTERS:
    case TRPI_MANAGEMENT_EVENTS: /* stream.c: what it begins with */
        answer_copy(reply, NULL, ret_answer);
        return;
    case TRPI_MANAGEMENT_FORWARD: /* these two have answered */
    case TRPI_MANAGEMENT_TELL:
    case TRPI_MANAGEMENT_OPENAPI:
    case TRPI_MANAGEMENT_PAGE:
    case TRPI_MANAGEMENT_SESSION:
    case TRPI_MANAGEMENT_EVENT_LOG:
        break; /* they ask no node */
    }
    trpi_management_answer_error(ret_answer, 500, "internal", "no answer is made of this");
}

void
trpi_management_plan_answer(const trpi_management_plan *plan, const char *reply,
                            trpi_management_answer *ret_answer)
{
    cJSON *json = NULL;
    bool ok = false;
    if (reply == NULL || trpi_json_parse(reply, strlen(reply), &json, NULL) != TRP_OK ||
        !cJSON_IsObject(json)) {
        trpi_management_answer_error(ret_answer, 500, "internal", "the node's reply is no object");
    } else if (plan->operation == TRPI_MANAGEMENT_FORWARD) {
        trpi_management_forward_answer(json, ret_answer);
    } else if (plan->operation == TRPI_MANAGEMENT_TELL) {
        trpi_management_tell_answer(json, ret_answer);
    } else if (!trpi_json_get_bool(json, "ok", &ok) || !ok) {
        answer_refusal(plan, json, ret_answer);
    } else {
        answer_ok(plan, json, ret_answer);
    }
    cJSON_Delete(json);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static const char *
reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = { { 200, "OK" },
                    { 400, "Bad Request" },
                    { 401, "Unauthorized" },
                    { 403, "Forbidden" },
                    { 404, "Not Found" },
                    { 405, "Method Not Allowed" },
                    { 408, "Request Timeout" },
                    { 409, "Conflict" },
                    { 411, "Length Required" },
                    { 413, "Content Too Large" },
                    { 414, "URI Too Long" },
                    { 415, "Unsupported Media Type" },
                    { 431, "Request Header Fields Too Large" },
                    { 500, "Internal Server Error" },
                    { 503, "Service Unavailable" },
                    { 504, "Gateway Timeout" } };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Unknown";
}

size_t
trpi_management_head_write(const trpi_management_answer *answer,
                           char ret_head[TRPI_MANAGEMENT_HEAD_BYTES])
{
    char length_line[48] = "";
    if (!answer->streams) {
        (void)snprintf(length_line, sizeof length_line, "Content-Length: %zu\r\n",
                       answer->body != NULL ? strlen(answer->body) : 0);
    }
    int length = snprintf(
        ret_head, TRPI_MANAGEMENT_HEAD_BYTES,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%sConnection: close\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
        "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
        "Content-Security-Policy: %s\r\n%s%s%s%s%s%s%s%s\r\n",
        answer->status, reason_of(answer->status), answer->content_type, length_line,
        answer->policy != NULL ? answer->policy
                               : "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
        answer->cookie[0] != '\0' ? "Set-Cookie: " : "", answer->cookie,
        answer->cookie[0] != '\0' ? "\r\n" : "", answer->allow != NULL ? "Allow: " : "",
        answer->allow != NULL ? answer->allow : "", answer->allow != NULL ? "\r\n" : "",
        answer->status == 401 ? "WWW-Authenticate: Bearer realm=\"troupe\"\r\n" : "",
        answer->status == 503 ? "Retry-After: 1\r\n" : "");
    return length > 0 && (size_t)length < TRPI_MANAGEMENT_HEAD_BYTES ? (size_t)length : 0;
}
