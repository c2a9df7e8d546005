/* tell.c - see tell.h.
 *
 * Must hold.
 *   tell-T1  The body reaches the node as a value of a JSON request, whatever its bytes are.
 *       (trpi_management_tell_make)
 * Limits.  The body, as a text of JSON, has to fit TRPI_MANAGEMENT_COMMAND_BYTES_MAX: else 413.
 *          TRPI_MANAGEMENT_ASK_MS_MAX.
 * Tests.   tests/unit/management/tell_test.c, tests/fuzz/management_fuzz.c
 * Sources. docs/operating.md, The management API.
 */
#include "cluster/management/tell.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <troupe/trace.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cluster/management/form.h"

static void
plan_stop(trpi_management_plan *plan, int status, const char *error, const char *message)
{
    plan->operation = 0;
    trpi_management_answer_error(&plan->answer, status, error, message);
}

/* ---- the message ----------------------------------------------------------------------------- */

static bool
is_content(const char *type, const char *wanted)
{
    size_t bytes = strlen(wanted);
    return type != NULL && strncasecmp(type, wanted, bytes) == 0 &&
           (type[bytes] == '\0' || type[bytes] == ';' || type[bytes] == ' ');
}

/* Add the body as text. false: it is none, or there is no memory. */
static bool
text_add(cJSON *command, const trpi_management_request *request)
{
    char *text = trpi_alloc(request->body_bytes + 1);
    if (text == NULL) {
        return false;
    }
    if (request->body_bytes > 0) { /* else there is no body */
        memcpy(text, request->body, request->body_bytes);
    }
    bool ok = memchr(text, '\0', request->body_bytes) == NULL &&
              trpi_utf8_is_valid(text, request->body_bytes) &&
              trpi_json_add_text(command, "text", text);
    trpi_free(text);
    return ok;
}

static bool
bytes_add(cJSON *command, const trpi_management_request *request)
{
    char *text = trpi_base64_encode(request->body, request->body_bytes);
    bool ok = text != NULL && trpi_json_add_text(command, "base64", text);
    trpi_free(text);
    return ok;
}

/* Add the type and the payload. false: refused. */
static bool
message_add(trpi_management_plan *plan, const trpi_management_request *request, cJSON *command)
{
    char type[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "";
    const char *content = request->content_type;
    trp_err err = trpi_management_query_get(request->query, "type", type);
    bool is_json = is_content(content, "application/json");
    bool is_text = is_content(content, "text/plain");
    bool is_bytes = is_content(content, "application/octet-stream");
    if (err != TRP_OK && err != TRP_ENOENT) {
        plan_stop(plan, 400, "bad-query", "type is the name of a message type, given once");
        return false;
    }
    if ((!is_json && !is_text && !is_bytes) || (type[0] != '\0' && !is_json)) {
        plan_stop(plan, 415, "bad-content-type",
                  "send text/plain, application/octet-stream, or application/json, which alone "
                  "goes with type=NAME");
        return false;
    }
    if (!trpi_json_add_text(command, "type",
                            type[0] != '\0' ? type
                            : is_json       ? "json"
                            : is_text       ? "string"
                                            : "bytes") ||
        !(is_bytes ? bytes_add(command, request) : text_add(command, request))) {
        plan_stop(plan, 400, "bad-body", "the body is no text in UTF-8");
        return false;
    }
    return true;
}

/* Add the trace that the request continues. One that cannot be read is ignored, and so is one whose
 * sender does not record it (W3C Trace Context, 3.2 and 4.2). false: no memory. */
static bool
trace_add(cJSON *command, const trpi_management_request *request)
{
    trp_trace trace;
    return request->traceparent == NULL ||
           trp_trace_parse(request->traceparent, &trace) != TRP_OK ||
           trpi_json_add_text(command, "traceparent", request->traceparent);
}

/* Read how long to wait for an answer; absent: 0. false: refused. */
static bool
ask_take(trpi_management_plan *plan, const trpi_management_request *request, uint32_t *ret_ms)
{
    char text[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "";
    uint64_t ms = 0;
    trp_err err = trpi_management_query_get(request->query, "ask", text);
    if (err == TRP_OK && !trpi_duration_parse(text, 0, 1, TRPI_MANAGEMENT_ASK_MS_MAX, &ms)) {
        err = TRP_EDATA;
    }
    if (err != TRP_OK && err != TRP_ENOENT) {
        plan_stop(plan, 400, "bad-query", "ask is a time from 1ms to 60s, as 500ms");
        return false;
    }
    *ret_ms = (uint32_t)ms;
    return true;
}

void
trpi_management_tell_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    char path[TRPI_MANAGEMENT_FIELD_BYTES_MAX + 1];
    uint32_t ask_ms = 0;
    if (!ask_take(plan, request, &ask_ms)) {
        return;
    }
    cJSON *command = cJSON_CreateObject();
    (void)snprintf(path, sizeof path, "/%s", plan->subject);
    bool ok = trpi_json_add_text(command, "cmd", ask_ms > 0 ? "ask" : "send") &&
              trpi_json_add_text(command, "path", path) &&
              (ask_ms == 0 || trpi_json_add_i64(command, "timeoutMs", ask_ms)) &&
              trace_add(command, request);
    if (!ok) {
        plan_stop(plan, 500, "no-memory", NULL);
    } else if (message_add(plan, request, command)) { /* tell-T1 */
        char *text = trpi_json_print(command);
        plan->wait_ms = ask_ms;
        if (text == NULL) {
            plan_stop(plan, 500, "no-memory", NULL);
        } else if (snprintf(plan->command, sizeof plan->command, "%s", text) >=
                   (int)sizeof plan->command) {
            plan_stop(plan, 413, "too-large", "the message is too large for one that comes so");
        }
        cJSON_free(text);
    }
    cJSON_Delete(command);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Copy a text into memory of cJSON, which frees bodies. NULL: no memory. */
static char *
body_copy(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = cJSON_malloc(bytes);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

void
trpi_management_tell_answer(const cJSON *reply, trpi_management_answer *ret_answer)
{
    const cJSON *message = cJSON_GetObjectItemCaseSensitive(reply, "reply");
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(message, "json");
    const char *type = trpi_json_get_text(message, "type");
    const char *text = trpi_json_get_text(message, "text");
    bool ok = false;
    if (!trpi_json_get_bool(reply, "ok", &ok) || !ok) {
        trpi_management_refusal r = trpi_management_refusal_of(TRPI_MANAGEMENT_TELL, reply);
        trpi_management_answer_error(ret_answer, r.status, r.error, r.text);
        return;
    }
    *ret_answer = (trpi_management_answer){ .status = 200, .content_type = "application/json" };
    if (message == NULL) { /* it was told */
        ret_answer->body = body_copy("{}");
    } else if (text != NULL && type != NULL && strcmp(type, "string") == 0) {
        ret_answer->content_type = "text/plain; charset=utf-8";
        ret_answer->body = body_copy(text);
    } else {
        ret_answer->body = trpi_json_print(
            json != NULL && type != NULL && strcmp(type, "json") == 0 ? json : message);
    }
    ret_answer->status = ret_answer->body != NULL ? 200 : 500;
}
