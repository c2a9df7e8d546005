/* forward_test.c - the routes of `troupe --endpoint`: fields, access, replies as they are. */
#include "base/json.h"
#include "cluster/management/forward.h"
#include "tests/unit/management/policy.h"

/* The status of the answer; 0: the node is asked, with `text`. */
static int
asked(const char *method, const char *path, const char *query, const char *body, const char *text)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make(method, path);
    trpi_management_plan plan;
    request.query = query;
    request.authorization = "Bearer " WRITER_TOKEN;
    if (body != NULL) {
        request.content_type = "application/json";
        request.body = (const uint8_t *)body;
        request.body_bytes = strlen(body);
    }
    trpi_management_plan_make(&policy, &request, &plan);
    if (plan.operation != 0) {
        UNIT_TEXT(plan.command, text);
        return 0;
    }
    int status = plan.answer.status;
    UNIT_TRUE(plan.answer.body != NULL && strstr(plan.answer.body, text) != NULL);
    trpi_management_answer_fini(&plan.answer);
    return status;
}

static void
reads_have_the_fields_of_their_row_alone(void)
{
    UNIT_EQUAL(asked("GET", "/control/peers", "", NULL, "{\"cmd\":\"peers\",\"timeoutMs\":5000}"),
               0);
    UNIT_EQUAL(
        asked("GET", "/control/peers/", "timeoutMs=7", NULL, "{\"cmd\":\"peers\",\"timeoutMs\":7}"),
        0);
    UNIT_EQUAL(asked("GET", "/control/logs", "follow=true&level=info&after=12&count=3&path=/x",
                     NULL,
                     "{\"cmd\":\"logs\",\"after\":\"12\",\"count\":3,\"follow\":true,\"level\":"
                     "\"info\",\"timeoutMs\":5000}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/why", "allMembers=true", NULL,
                     "{\"cmd\":\"why\",\"allMembers\":true,\"timeoutMs\":5000}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/tree", "depth=many", NULL, "bad-field"), 400);
    UNIT_EQUAL(asked("GET", "/control/tree", "depth=4294967296", NULL, "bad-field"), 400);
    UNIT_EQUAL(asked("GET", "/control/logs", "follow=yes", NULL, "bad-field"), 400);
    UNIT_EQUAL(asked("GET", "/control/tree", "path=/a&path=/b", NULL, "bad-field"), 400);
    UNIT_EQUAL(
        asked("GET", "/control/doctor", "", NULL, "{\"cmd\":\"doctor\",\"timeoutMs\":60000}"), 0);
}

static void
a_write_with_a_field_that_it_does_not_know_is_refused(void)
{
    UNIT_EQUAL(asked("POST", "/control/leave", "", "{\"member\":\"h:1\",\"wait\":false}",
                     "{\"cmd\":\"leave\",\"member\":\"h:1\",\"wait\":false,\"timeoutMs\":60000}"),
               0);
    UNIT_EQUAL(asked("POST", "/control/leave", "member=h:2", NULL,
                     "{\"cmd\":\"leave\",\"timeoutMs\":60000}"),
               0);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{\"uids\":[\"1\",\"2\"],\"dryRun\":true}",
                     "{\"cmd\":\"down\",\"uids\":[\"1\",\"2\"],\"dryRun\":true,\"timeoutMs\":"
                     "60000}"),
               0);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{\"dryrun\":true}", "bad-field"), 400);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{\"dryRun\":\"true\"}", "bad-field"), 400);
    UNIT_EQUAL(
        asked("POST", "/control/down", "", "{\"dryRun\":true,\"dryRun\":false}", "bad-field"), 400);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{\"cmd\":\"stop\"}", "bad-field"), 400);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{\"uids\":[1]}", "bad-field"), 400);
    UNIT_EQUAL(asked("POST", "/control/down", "", "[]", "bad-json"), 400);
    UNIT_EQUAL(asked("POST", "/control/down", "", "{", "bad-json"), 400);
}

static void
what_stands_in_no_row_is_not_forwarded(void)
{
    UNIT_EQUAL(asked("GET", "/control/", "", NULL, "not-found"), 404);
    UNIT_EQUAL(asked("POST", "/control/stop", "", "{}", "not-found"), 404);
    UNIT_EQUAL(asked("GET", "/control/config", "", NULL, "not-found"), 404);
    UNIT_EQUAL(asked("GET", "/control/leave", "", NULL, "POST"), 405);
    UNIT_EQUAL(asked("DELETE", "/control/shards", "", NULL, "GET, HEAD, POST"), 405);
}

static int
seen_by(const char *path, const char *authorization, uint32_t *ret_wait_ms)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("GET", path);
    trpi_management_plan plan;
    request.authorization = authorization;
    trpi_management_plan_make(&policy, &request, &plan);
    int status = plan.operation != 0 ? 0 : plan.answer.status;
    *ret_wait_ms = plan.wait_ms;
    trpi_management_answer_fini(&plan.answer);
    return status;
}

static void
only_a_credential_reads_of_actors_or_holds_a_connection_for_long(void)
{
    static const char *const guarded[] = { "/control/tree", "/control/deadletters", "/control/logs",
                                           "/control/doctor", "/control/trace" };
    uint32_t wait_ms = 1;
    for (size_t i = 0; i < sizeof guarded / sizeof guarded[0]; i++) {
        UNIT_EQUAL(seen_by(guarded[i], NULL, &wait_ms), 401);
        UNIT_EQUAL(seen_by(guarded[i], "Bearer " READER_TOKEN, &wait_ms), 0);
        UNIT_TRUE(wait_ms >= TRPI_MANAGEMENT_WAIT_MS_DEFAULT);
    }
    UNIT_EQUAL(seen_by("/control/status", NULL, &wait_ms), 0);
    UNIT_EQUAL(wait_ms, 0);
}

/* forward-F3: a reader sees what is sampled; to sample is a write. */
static void
a_read_lists_and_does_nothing_else(void)
{
    static const char *const orders[] = { "action=start", "action=stop", "action=show",
                                          "action=lists" };
    UNIT_EQUAL(asked("GET", "/control/trace", "action=list", NULL,
                     "{\"cmd\":\"trace\",\"action\":\"list\",\"timeoutMs\":5000}"),
               0);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        UNIT_EQUAL(asked("GET", "/control/trace", orders[i], NULL, "bad-field"), 400);
    }
}

/* forward-F2: the node's call ends with the connection, which has its own time. */
static void
a_read_that_is_open_takes_no_more_time_than_any_request(void)
{
    UNIT_EQUAL(asked("GET", "/control/shards", "timeoutMs=10000", NULL,
                     "{\"cmd\":\"shards\",\"timeoutMs\":10000}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/shards", "timeoutMs=10001", NULL,
                     "{\"cmd\":\"shards\",\"timeoutMs\":10000}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/tree", "timeoutMs=10001", NULL,
                     "{\"cmd\":\"tree\",\"timeoutMs\":10001}"),
               0);
}

static void
a_read_that_follows_is_asked_again_after_half_a_minute(void)
{
    UNIT_EQUAL(asked("GET", "/control/logs", "follow=true&timeoutMs=86400000", NULL,
                     "{\"cmd\":\"logs\",\"follow\":true,\"timeoutMs\":30000}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/logs", "follow=true&timeoutMs=29999", NULL,
                     "{\"cmd\":\"logs\",\"follow\":true,\"timeoutMs\":29999}"),
               0);
    UNIT_EQUAL(asked("GET", "/control/logs", "follow=false&timeoutMs=30001", NULL,
                     "{\"cmd\":\"logs\",\"follow\":false,\"timeoutMs\":30001}"),
               0);
}

static void
a_wait_is_a_day_at_most(void)
{
    UNIT_EQUAL(asked("POST", "/control/leave", "", "{\"timeoutMs\":86400000}",
                     "{\"cmd\":\"leave\",\"timeoutMs\":86400000}"),
               0);
    UNIT_EQUAL(asked("POST", "/control/leave", "", "{\"timeoutMs\":86400001}", "timeoutMs"), 400);
}

/* One address of each of 256 members fits the question, and what does not is refused. */
static void
an_order_names_as_many_incarnations_as_the_socket_takes(void)
{
    char body[16384] = "{\"uids\":[", command[16384] = "{\"cmd\":\"down\",\"uids\":[";
    for (int i = 0; i < 256; i++) {
        (void)snprintf(body + strlen(body), 32, "%s\"18446744073709551615\"", i > 0 ? "," : "");
        (void)snprintf(command + strlen(command), 32, "%s\"18446744073709551615\"",
                       i > 0 ? "," : "");
    }
    (void)snprintf(body + strlen(body), 8, "]}");
    (void)snprintf(command + strlen(command), 32, "],\"timeoutMs\":60000}");
    UNIT_EQUAL(asked("POST", "/control/down", "", body, command), 0);
    body[strlen(body) - 2] = '\0';
    for (int i = 0; i < 200; i++) {
        (void)snprintf(body + strlen(body), 32, ",\"18446744073709551615\"");
    }
    (void)snprintf(body + strlen(body), 8, "]}");
    UNIT_EQUAL(asked("POST", "/control/down", "", body, "too-long"), 414);
}

static void
answered(const char *reply, int status, const char *body)
{
    trpi_management_plan plan = { .operation = TRPI_MANAGEMENT_FORWARD };
    trpi_management_answer answer = { 0 };
    trpi_management_plan_answer(&plan, reply, &answer);
    UNIT_EQUAL(answer.status, status);
    UNIT_TEXT(answer.body, body);
    trpi_management_answer_fini(&answer);
}

static void
a_reply_is_given_as_it_is_and_a_refusal_has_its_exit_code(void)
{
    answered("{\"ok\":true,\"peers\":[],\"extra\":null}", 200,
             "{\"ok\":true,\"peers\":[],\"extra\":null}");
    answered("{\"ok\":false,\"exit\":68,\"error\":\"no such member x\",\"hint\":\"members: y\"}",
             404,
             "{\"error\":\"no-such-member\",\"message\":\"no such member x\",\"exit\":68,\"hint\":"
             "\"members: y\"}");
    answered("{\"ok\":false,\"exit\":68,\"error\":\"no actor at /a\"}", 404,
             "{\"error\":\"not-found\",\"message\":\"no actor at /a\",\"exit\":68}");
    answered("{\"ok\":false,\"exit\":1,\"error\":\"e\"}", 409,
             "{\"error\":\"refused\",\"message\":\"e\",\"exit\":1}");
    answered("{\"ok\":false,\"exit\":64,\"error\":\"e\"}", 400,
             "{\"error\":\"bad-request\",\"message\":\"e\",\"exit\":64}");
    answered("{\"ok\":false,\"exit\":75,\"error\":\"e\"}", 503,
             "{\"error\":\"try-again\",\"message\":\"e\",\"exit\":75}");
    answered("{\"ok\":false,\"exit\":70,\"error\":\"e\"}", 500,
             "{\"error\":\"internal\",\"message\":\"e\",\"exit\":70}");
    answered("{}", 500,
             "{\"error\":\"internal\",\"message\":\"the node gave no reason\",\"exit\":70}");
    answered("x", 500, "{\"error\":\"internal\",\"message\":\"the node's reply is no object\"}");
}

UNIT_BEGIN("management_forward")
UNIT(reads_have_the_fields_of_their_row_alone)
UNIT(a_write_with_a_field_that_it_does_not_know_is_refused)
UNIT(what_stands_in_no_row_is_not_forwarded)
UNIT(only_a_credential_reads_of_actors_or_holds_a_connection_for_long)
UNIT(a_read_lists_and_does_nothing_else)
UNIT(a_read_that_is_open_takes_no_more_time_than_any_request)
UNIT(a_read_that_follows_is_asked_again_after_half_a_minute)
UNIT(a_wait_is_a_day_at_most)
UNIT(an_order_names_as_many_incarnations_as_the_socket_takes)
UNIT(a_reply_is_given_as_it_is_and_a_refusal_has_its_exit_code)
UNIT_END
