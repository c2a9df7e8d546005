/* tell_test.c - POST /actors/{path}: what becomes of a body, and what of the answer. */
#include "cluster/management/tell.h"

#include "tests/unit/management/policy.h"

/* The status of the refusal; 0: the node is asked, with `command`. */
static int
posted(const char *path, const char *query, const char *type, const char *body, const char *command)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("POST", path);
    trpi_management_plan plan;
    request.authorization = "Bearer " WRITER_TOKEN;
    request.query = query;
    request.content_type = type;
    request.body = (const uint8_t *)body;
    request.body_bytes = body != NULL ? strlen(body) : 0;
    trpi_management_plan_make(&policy, &request, &plan);
    if (plan.operation != 0) {
        UNIT_EQUAL(plan.operation, TRPI_MANAGEMENT_TELL);
        UNIT_TEXT(plan.command, command);
        return 0;
    }
    UNIT_TRUE(plan.answer.body != NULL && strstr(plan.answer.body, command) != NULL);
    int status = plan.answer.status;
    trpi_management_answer_fini(&plan.answer);
    return status;
}

static void
a_body_becomes_a_message_of_its_kind(void)
{
    UNIT_EQUAL(posted("/actors/user/a", "", "text/plain", NULL, /* ubsan: nothing is copied */
                      "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"string\",\"text\":\"\"}"),
               0);
    UNIT_EQUAL(posted("/actors/user/a", "", "application/octet-stream", NULL,
                      "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"bytes\",\"base64\":\"\"}"),
               0);
    UNIT_EQUAL(
        posted("/actors/user/a", "", "text/plain", "hi",
               "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"string\",\"text\":\"hi\"}"),
        0);
    UNIT_EQUAL(posted("/actors/user/a/", "ask=500ms", "application/json; charset=utf-8",
                      "{\"n\":1}",
                      "{\"cmd\":\"ask\",\"path\":\"/user/a\",\"timeoutMs\":500,\"type\":\"json\","
                      "\"text\":\"{\\\"n\\\":1}\"}"),
               0);
    UNIT_EQUAL(
        posted("/actors/user/a", "type=bank.add", "application/json", "{}",
               "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"bank.add\",\"text\":\"{}\"}"),
        0);
    UNIT_EQUAL(
        posted("/actors/user/a", "", "application/octet-stream", "\xff",
               "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"bytes\",\"base64\":\"/w==\"}"),
        0);
}

static void
what_is_no_message_is_refused(void)
{
    UNIT_EQUAL(posted("/actors/user/a", "", NULL, "x", "bad-content-type"), 415);
    UNIT_EQUAL(posted("/actors/user/a", "", "text/plainx", "x", "bad-content-type"), 415);
    UNIT_EQUAL(posted("/actors/user/a", "type=t", "text/plain", "x", "bad-content-type"), 415);
    UNIT_EQUAL(posted("/actors/user/a", "", "text/plain", "\xff", "bad-body"), 400);
    UNIT_EQUAL(posted("/actors/user/a", "ask=soon", "text/plain", "x", "bad-query"), 400);
    UNIT_EQUAL(posted("/actors/user/a", "ask=60001ms", "text/plain", "x", "bad-query"), 400);
    UNIT_EQUAL(posted("/actors/user/a", "ask=1s&ask=2s", "text/plain", "x", "bad-query"), 400);
    UNIT_EQUAL(posted("/actors/user/../x", "", "text/plain", "x", "bad-path"), 400);
}

/* Each limit, at it and one past it. */
static void
a_message_fits_one_command(void)
{
    static const char head[] =
        "{\"cmd\":\"send\",\"path\":\"/user/a\",\"type\":\"string\",\"text\":"
        "\"";
    static char body[TRPI_MANAGEMENT_COMMAND_BYTES_MAX],
        command[TRPI_MANAGEMENT_COMMAND_BYTES_MAX + 1];
    size_t most = TRPI_MANAGEMENT_COMMAND_BYTES_MAX - sizeof head - 2;
    memset(body, 'x', most);
    (void)snprintf(command, sizeof command, "%s%s\"}", head, body);
    UNIT_EQUAL(strlen(command), TRPI_MANAGEMENT_COMMAND_BYTES_MAX - 1);
    UNIT_EQUAL(posted("/actors/user/a", "", "text/plain", body, command), 0);
    body[most] = 'x';
    UNIT_EQUAL(posted("/actors/user/a", "", "text/plain", body, "too-large"), 413);
    UNIT_EQUAL(
        posted("/actors/user/a", "ask=60s", "text/plain", "x",
               "{\"cmd\":\"ask\",\"path\":\"/user/a\",\"timeoutMs\":60000,\"type\":\"string\","
               "\"text\":\"x\"}"),
        0);
}

/* HOW-09: a traceparent of a recorded trace goes along; one that cannot be read, or is not
 * recorded, does not, and refuses nothing. */
static void
a_traceparent_goes_along_or_is_ignored(void)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const ignored[] = {
        NULL,
        "",
        "x",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    };
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("POST", "/actors/user/a");
    trpi_management_plan plan;
    request.authorization = "Bearer " WRITER_TOKEN;
    request.content_type = "text/plain";
    request.body = (const uint8_t *)"hi";
    request.body_bytes = 2;
    request.traceparent = good;
    trpi_management_plan_make(&policy, &request, &plan);
    UNIT_TEXT(plan.command,
              "{\"cmd\":\"send\",\"path\":\"/user/a\",\"traceparent\":"
              "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\",\"type\":\"string\","
              "\"text\":\"hi\"}");
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        request.traceparent = ignored[i];
        trpi_management_plan_make(&policy, &request, &plan);
        UNIT_EQUAL(plan.operation, TRPI_MANAGEMENT_TELL);
        UNIT_TRUE(strstr(plan.command, "traceparent") == NULL);
    }
}

static void
a_writer_is_needed_and_read_only_refuses(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("POST", "/actors/user/a");
    trpi_management_plan plan;
    request.authorization = "Bearer " READER_TOKEN;
    trpi_management_plan_make(&policy, &request, &plan);
    UNIT_EQUAL(plan.answer.status, 403);
    trpi_management_answer_fini(&plan.answer);
    policy.read_only = true;
    request.authorization = "Bearer " WRITER_TOKEN;
    trpi_management_plan_make(&policy, &request, &plan);
    UNIT_EQUAL(plan.answer.status, 404);
    UNIT_TEXT(plan.answer.body, "{\"error\":\"read-only\"}");
    trpi_management_answer_fini(&plan.answer);
}

static void
answered(const char *reply, int status, const char *type, const char *body)
{
    trpi_management_plan plan = { .operation = TRPI_MANAGEMENT_TELL, .subject = "user/a" };
    trpi_management_answer answer = { 0 };
    trpi_management_plan_answer(&plan, reply, &answer);
    UNIT_EQUAL(answer.status, status);
    UNIT_TEXT(answer.content_type, type);
    UNIT_TEXT(answer.body, body);
    trpi_management_answer_fini(&answer);
}

static void
an_answer_has_the_form_of_the_message(void)
{
    static const char json[] = "application/json";
    answered("{\"ok\":true,\"path\":\"/user/a\"}", 200, json, "{}");
    answered("{\"ok\":true,\"from\":\"a\",\"reply\":{\"type\":\"string\",\"text\":\"hi\"}}", 200,
             "text/plain; charset=utf-8", "hi");
    answered("{\"ok\":true,\"from\":\"a\",\"reply\":{\"type\":\"json\",\"json\":[1]}}", 200, json,
             "[1]");
    answered("{\"ok\":true,\"from\":\"a\",\"reply\":{\"type\":\"t\",\"base64\":\"AA==\"}}", 200,
             json, "{\"type\":\"t\",\"base64\":\"AA==\"}");
    answered("{\"ok\":false,\"exit\":68,\"error\":\"no actor\"}", 404, json,
             "{\"error\":\"no-such-actor\",\"message\":\"no actor\"}");
    answered("{\"ok\":false,\"exit\":75,\"error\":\"no reply\"}", 504, json,
             "{\"error\":\"no-answer\",\"message\":\"no reply\"}");
    answered("{\"ok\":false,\"exit\":65,\"error\":\"no\"}", 400, json,
             "{\"error\":\"bad-request\",\"message\":\"no\"}");
    answered("{\"ok\":false,\"exit\":1,\"error\":\"no\"}", 409, json,
             "{\"error\":\"refused\",\"message\":\"no\"}");
    answered("{\"ok\":false,\"exit\":69,\"error\":\"no\"}", 503, json,
             "{\"error\":\"try-again\",\"message\":\"no\"}");
    answered("{\"ok\":false,\"exit\":75,\"error\":\"no\",\"busy\":true}", 503, json,
             "{\"error\":\"try-again\",\"message\":\"no\"}");
    answered("{\"ok\":false,\"exit\":77,\"error\":\"no\"}", 403, json, /* as on any path */
             "{\"error\":\"not-permitted\",\"message\":\"no\"}");
    answered("{\"ok\":false,\"exit\":70,\"error\":\"no\"}", 500, json,
             "{\"error\":\"internal\",\"message\":\"no\"}");
}

UNIT_BEGIN("management_tell")
UNIT(a_body_becomes_a_message_of_its_kind)
UNIT(what_is_no_message_is_refused)
UNIT(a_message_fits_one_command)
UNIT(a_traceparent_goes_along_or_is_ignored)
UNIT(a_writer_is_needed_and_read_only_refuses)
UNIT(an_answer_has_the_form_of_the_message)
UNIT_END
