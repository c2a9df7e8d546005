/* management_fuzz.c - a request to the management API, and a node's reply to what it asked.
 *
 * The input is a byte of flags, then a line each for method, path, query, Host, Origin,
 * Authorization, content type and certificate; an empty one is an absent header. With the flag
 * COOKIES a line with the Cookie header follows. The rest is the body, and also the reply of the
 * node.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/json.h"
#include "cluster/management/access.h"
#include "cluster/management/routes.h"
#include "cluster/management/sessions.h"
#include "cluster/node/control_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOCAL = 1, READ_ONLY = 2, COOKIES = 4, LINES = 8, PORT = 8558 };
#define TOKEN "0123456789abcdef0123456789abcdef"

/* Can the answer be written, and is it one object? */
static void
answer_check(trpi_management_answer *answer)
{
    char head[TRPI_MANAGEMENT_HEAD_BYTES];
    cJSON *json = NULL;
    bool is_json = strcmp(answer->content_type, "application/json") == 0;
    trpi_assert(answer->status >= 200 && answer->status <= 503);
    trpi_assert(trpi_management_head_write(answer, head) > 0);
    trpi_assert(answer->body != NULL);
    trpi_assert(!is_json ||
                trpi_json_parse(answer->body, strlen(answer->body), &json, NULL) == TRP_OK);
    cJSON_Delete(json);
    trpi_management_answer_fini(answer);
}

/* Check the question to the node: it is a request that the node takes, or refuses by its own rules;
 * a write has the writer's token. */
static void
command_check(const trpi_management_policy *policy, const trpi_management_request *request,
              const trpi_management_plan *plan)
{
    trpi_control_request parsed;
    trpi_control_refusal refusal;
    trpi_assert(plan->command[0] != '\0');
    if (trpi_control_request_parse((const uint8_t *)plan->command, strlen(plan->command), &parsed,
                                   &refusal) == TRP_OK) {
        bool is_write = parsed.command == TRPI_CONTROL_JOIN ||
                        parsed.command == TRPI_CONTROL_LEAVE ||
                        parsed.command == TRPI_CONTROL_DOWN || parsed.rebalance;
        bool forwarded = plan->operation == TRPI_MANAGEMENT_FORWARD;
        trpi_assert(forwarded ? !is_write || plan->is_write : is_write == plan->is_write);
        trpi_assert(!is_write || forwarded || !parsed.wait);
        trpi_assert(plan->wait_ms == 0 || request->authorization != NULL ||
                    request->certificate != NULL || request->session != NULL);
        trpi_control_request_fini(&parsed);
    }
    if (plan->is_write) {
        trpi_assert(!policy->read_only);
        trpi_assert(request->authorization != NULL &&
                    strstr(request->authorization, TOKEN) != NULL);
    }
    if (!policy->is_local) {
        trpi_assert(request->authorization != NULL || request->certificate != NULL ||
                    request->session != NULL);
    }
}

/* The server answers by itself: with a session, or the events that it has. */
static void
own_check(const trpi_management_plan *plan)
{
    trpi_assert(plan->command[0] == '\0' && !plan->is_write);
    trpi_assert(plan->operation == TRPI_MANAGEMENT_EVENT_LOG
                    ? plan->count > 0 && plan->event_bits != 0
                    : strlen(plan->subject) < TRPI_MANAGEMENT_FIELD_BYTES_MAX);
}

/* Take the next line of what is left. */
static char *
line_take(char **at, char *end)
{
    char *line = *at, *line_end = memchr(line, '\n', (size_t)(end - line));
    *at = line_end != NULL ? line_end + 1 : end;
    if (line_end != NULL) {
        *line_end = '\0';
    }
    return line;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "reader.example" };
    static trpi_management_tokens tokens;
    static trpi_management_sessions sessions;
    static char secret[TRPI_MANAGEMENT_SECRET_TEXT]; /* of 32 bytes 0 */
    const char *lines[LINES];
    if (size == 0) {
        return 0;
    }
    if (tokens.count == 0) {
        trpi_assert(trpi_management_tokens_add(&tokens, TOKEN, strlen(TOKEN),
                                               TRPI_MANAGEMENT_WRITER) == TRP_OK);
        const uint8_t none[TRPI_MANAGEMENT_SECRET_BYTES] = { 0 };
        trpi_assert(trpi_management_code_make(&sessions, 0, none, secret) &&
                    trpi_management_sessions_open(&sessions, secret, 0, none, secret));
    }
    char *text = trpi_alloc(size);
    trpi_assert(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    char *at = text, *end = text + size - 1;
    for (size_t i = 0; i < LINES; i++) {
        lines[i] = line_take(&at, end);
    }
    trpi_management_policy policy = { .bound = "127.0.0.1",
                                      .is_local = (data[0] & LOCAL) != 0,
                                      .read_only = (data[0] & READ_ONLY) != 0,
                                      .readers = names,
                                      .readers_count = 1,
                                      .tokens = &tokens,
                                      .sessions = &sessions,
                                      .now_ms = 1 };
    trpi_management_request request = { .method = lines[0], .path = lines[1], .query = lines[2] };
    const char **headers[] = { &request.host, &request.origin, &request.authorization,
                               &request.content_type, &request.certificate };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        *headers[i] = lines[3 + i][0] != '\0' ? lines[3 + i] : NULL;
    }
    char session[TRPI_MANAGEMENT_SECRET_TEXT];
    if ((data[0] & COOKIES) != 0 &&
        trpi_management_cookie_get(line_take(&at, end), PORT, session)) {
        trpi_assert(strlen(session) == TRPI_MANAGEMENT_SECRET_TEXT - 1);
        request.session = session;
    }
    request.body = end > at ? (const uint8_t *)at : NULL; /* as of a request without a body */
    request.body_bytes = (size_t)(end - at);
    trpi_management_plan plan;
    trpi_management_plan_make(&policy, &request, &plan);
    if (plan.operation == 0) {
        answer_check(&plan.answer);
    } else if (plan.operation == TRPI_MANAGEMENT_SESSION ||
               plan.operation == TRPI_MANAGEMENT_EVENT_LOG) {
        own_check(&plan);
    } else {
        trpi_management_answer answer = { 0 };
        command_check(&policy, &request, &plan);
        trpi_management_plan_answer(&plan, at, &answer);
        answer_check(&answer);
    }
    trpi_free(text);
    return 0;
}
