/* answers_test.c - a node's reply becomes Akka Management's JSON; openapi.json tells the routes. */
#include "base/json.h"
#include "tests/unit/management/policy.h"

static void
answered(trpi_management_operation operation, const char *verb, const char *reply, int status,
         const char *body)
{
    trpi_management_plan plan = { .operation = operation, .subject = "h:1" };
    trpi_management_answer answer = { 0 };
    (void)snprintf(plan.verb, sizeof plan.verb, "%s", verb);
    trpi_management_plan_answer(&plan, reply, &answer);
    UNIT_EQUAL(answer.status, status);
    UNIT_TEXT(answer.body, body);
    trpi_management_answer_fini(&answer);
}

static void
members_have_exactly_akkas_keys(void)
{
    answered(TRPI_MANAGEMENT_MEMBERS, "",
             "{\"ok\":true,\"selfNode\":\"A\",\"selfStatus\":\"Up\",\"leader\":\"A\",\"oldest\":"
             "\"A\",\"oldestPerRole\":{\"r\":\"A\"},\"leaderPerRole\":{},\"members\":[{\"node\":"
             "\"A\",\"nodeUid\":\"18446744073709551615\",\"status\":\"Up\",\"roles\":[\"r\"],"
             "\"reachable\":true,\"phi\":0.1}],\"unreachable\":[{\"node\":\"B\",\"observedBy\":["
             "\"A\"],\"sinceMs\":3}],\"converged\":true,\"version\":\"9f\"}",
             200,
             "{\"selfNode\":\"A\",\"members\":[{\"node\":\"A\",\"nodeUid\":"
             "\"18446744073709551615\",\"status\":\"Up\",\"roles\":[\"r\"]}],\"unreachable\":[{"
             "\"node\":\"B\",\"observedBy\":[\"A\"]}],\"leader\":\"A\",\"oldest\":\"A\","
             "\"oldestPerRole\":{\"r\":\"A\"}}");
    answered(TRPI_MANAGEMENT_MEMBERS, "",
             "{\"ok\":true,\"selfNode\":\"A\",\"leader\":null,\"oldest\":null,\"oldestPerRole\":{},"
             "\"members\":[],\"unreachable\":[]}",
             200, "{\"selfNode\":\"A\",\"members\":[],\"unreachable\":[],\"oldestPerRole\":{}}");
    answered(TRPI_MANAGEMENT_MEMBER, "",
             "{\"ok\":true,\"node\":\"A\",\"nodeUid\":\"5\",\"status\":\"Up\",\"reachable\":true}",
             200, "{\"node\":\"A\",\"nodeUid\":\"5\",\"status\":\"Up\",\"roles\":[]}");
}

static void
orders_are_answered_in_akkas_words(void)
{
    answered(TRPI_MANAGEMENT_JOIN, "Joining", "{\"ok\":true,\"node\":\"A\"}", 200,
             "{\"message\":\"Joining h:1\"}");
    answered(TRPI_MANAGEMENT_MEMBER_LEAVE, "Leaving", "{\"ok\":true,\"node\":\"A\"}", 200,
             "{\"message\":\"Leaving A\"}");
    answered(TRPI_MANAGEMENT_MEMBER_CHANGE, "Downing", "{\"ok\":true,\"nodes\":[{\"node\":\"B\"}]}",
             200, "{\"message\":\"Downing B\"}");
    answered(TRPI_MANAGEMENT_MEMBER_CHANGE, "Downing", "{\"ok\":true,\"nodes\":[]}", 200,
             "{\"message\":\"Downing h:1\"}");
    answered(TRPI_MANAGEMENT_CONFIG, "", "{\"ok\":true,\"config\":{\"a\":1}}", 200, "{\"a\":1}");
    answered(TRPI_MANAGEMENT_SHARDS, "",
             "{\"ok\":true,\"selfNode\":\"A\",\"type\":\"t\",\"regions\":[{\"shardId\":\"7\","
             "\"numEntities\":3}]}",
             200, "{\"regions\":[{\"shardId\":\"7\",\"numEntities\":3}]}");
    answered(TRPI_MANAGEMENT_SHARDS, "", "{\"ok\":false,\"exit\":68,\"error\":\"type t\"}", 404,
             "{\"error\":\"no-such-type\",\"message\":\"type t\"}");
    answered(TRPI_MANAGEMENT_DEADLETTERS, "", "{\"ok\":true,\"total\":1,\"next\":\"1\"}", 200,
             "{\"total\":1,\"next\":\"1\"}");
    answered(TRPI_MANAGEMENT_TRACE, "", "{\"ok\":true,\"traceId\":\"4b\",\"hops\":[{}]}", 200,
             "{\"traceId\":\"4b\",\"hops\":[{}]}");
    answered(TRPI_MANAGEMENT_TRACE, "", "{\"ok\":true,\"traceId\":\"4b\",\"hops\":[]}", 404,
             "{\"error\":\"no-such-trace\",\"message\":\"no member has kept hops of this trace\"}");
    answered(TRPI_MANAGEMENT_CLUSTER_CHANGE, "", "{\"ok\":true,\"node\":\"a\"}", 200,
             "{\"message\":\"Preparing for full cluster shutdown\"}");
    answered(TRPI_MANAGEMENT_CLUSTER_CHANGE, "",
             "{\"ok\":false,\"exit\":1,\"error\":\"b is away\"}", 409,
             "{\"error\":\"refused\",\"message\":\"b is away\"}");
    answered(TRPI_MANAGEMENT_TRACE, "",
             "{\"ok\":false,\"exit\":64,\"error\":\"'x' is no trace id\"}", 400,
             "{\"error\":\"bad-request\",\"message\":\"'x' is no trace id\"}");
    answered(TRPI_MANAGEMENT_ACTORS, "", "{\"ok\":true,\"path\":\"/\",\"entries\":[]}", 200,
             "{\"path\":\"/\",\"entries\":[]}");
}

static void
health_is_503_and_akkas_is_500_when_a_check_has_failed(void)
{
    static const char up[] = "{\"ok\":true,\"status\":\"up\",\"checks\":[]}";
    static const char down[] =
        "{\"ok\":true,\"status\":\"down\",\"checks\":[{\"name\":\"cluster-membership\",\"ok\":"
        "false,\"detail\":\"Joining\"}]}";
    const char *up_body = "{\"status\":\"up\",\"checks\":[]}";
    const char *down_body = "{\"status\":\"down\",\"checks\":[{\"name\":\"cluster-membership\","
                            "\"ok\":false,\"detail\":\"Joining\"}]}";
    static const struct {
        trpi_management_operation operation;
        int status;
    } rows[] = { { TRPI_MANAGEMENT_READY, 503 },
                 { TRPI_MANAGEMENT_ALIVE, 503 },
                 { TRPI_MANAGEMENT_AKKA_READY, 500 },
                 { TRPI_MANAGEMENT_AKKA_ALIVE, 500 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        answered(rows[i].operation, "", up, 200, up_body);
        answered(rows[i].operation, "", down, rows[i].status, down_body);
        answered(rows[i].operation, "", "{\"ok\":true}", rows[i].status, "{}");
        answered(rows[i].operation, "", "{\"ok\":false,\"exit\":75,\"error\":\"busy\"}", 503,
                 "{\"error\":\"try-again\",\"message\":\"busy\"}");
    }
}

static void
metrics_are_text_and_openmetrics_to_clients_that_ask(void)
{
    static const char reply[] = "{\"ok\":true,\"families\":[{\"name\":\"a\",\"type\":\"gauge\","
                                "\"help\":\"A.\",\"samples\":[{\"value\":1}]}]}";
    trpi_management_plan plan = { .operation = TRPI_MANAGEMENT_METRICS };
    trpi_management_answer answer = { 0 };
    trpi_management_plan_answer(&plan, reply, &answer);
    UNIT_EQUAL(answer.status, 200);
    UNIT_TEXT(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
    UNIT_TRUE(answer.body != NULL && strncmp(answer.body, "# HELP a A.\n", 12) == 0);
    trpi_management_answer_fini(&answer);
    plan.openmetrics = true;
    trpi_management_plan_answer(&plan, reply, &answer);
    UNIT_TEXT(answer.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    UNIT_TRUE(answer.body != NULL && strstr(answer.body, "\n# EOF\n") != NULL);
    trpi_management_answer_fini(&answer);
    answered(TRPI_MANAGEMENT_METRICS, "", "{\"ok\":true}", 500,
             "{\"error\":\"internal\",\"message\":\"the node's reply lacks a part\"}");
}

static void
a_refusal_has_the_status_of_its_exit_code(void)
{
    static const struct {
        int code, status;
        const char *error;
    } rows[] = { { 64, 400, "bad-request" },   { 65, 400, "bad-request" }, { 1, 409, "refused" },
                 { 77, 403, "not-permitted" }, { 69, 503, "try-again" },   { 75, 503, "try-again" },
                 { 70, 500, "internal" },      { 3, 500, "internal" } };
    char reply[64], body[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(reply, sizeof reply, "{\"ok\":false,\"exit\":%d,\"error\":\"why\"}",
                       rows[i].code);
        (void)snprintf(body, sizeof body, "{\"error\":\"%s\",\"message\":\"why\"}", rows[i].error);
        answered(TRPI_MANAGEMENT_MEMBER, "", reply, rows[i].status, body);
    }
    answered(TRPI_MANAGEMENT_MEMBER, "", "{\"ok\":false,\"exit\":68,\"error\":\"no such\"}", 404,
             "{\"error\":\"no-such-member\"}");
    answered(TRPI_MANAGEMENT_ACTORS, "", "{\"ok\":false,\"exit\":68,\"error\":\"no such\"}", 404,
             "{\"error\":\"no-such-actor\",\"message\":\"no such\"}");
}

static void
a_reply_that_is_none_is_an_internal_error(void)
{
    static const char body[] =
        "{\"error\":\"internal\",\"message\":\"the node's reply is no object\"}";
    answered(TRPI_MANAGEMENT_MEMBERS, "", NULL, 500, body);
    answered(TRPI_MANAGEMENT_MEMBERS, "", "", 500, body);
    answered(TRPI_MANAGEMENT_MEMBERS, "", "[]", 500, body);
    answered(TRPI_MANAGEMENT_MEMBERS, "", "{", 500, body);
    answered(TRPI_MANAGEMENT_CONFIG, "", "{\"ok\":true}", 500,
             "{\"error\":\"internal\",\"message\":\"the node's reply lacks a part\"}");
    answered(TRPI_MANAGEMENT_MEMBERS, "", "{}", 500,
             "{\"error\":\"internal\",\"message\":\"the node gave no reason\"}");
}

static void
a_head_forbids_caches_frames_and_other_origins(void)
{
    char head[TRPI_MANAGEMENT_HEAD_BYTES], body[] = "{}";
    trpi_management_answer answer = { 200, "application/json", NULL, body };
    size_t bytes = trpi_management_head_write(&answer, head);
    UNIT_EQUAL(bytes, strlen(head));
    UNIT_TRUE(strncmp(head, "HTTP/1.1 200 OK\r\n", 17) == 0);
    UNIT_TEXT(head + bytes - 4, "\r\n\r\n");
    UNIT_TRUE(strstr(head, "Content-Length: 2\r\n") != NULL);
    UNIT_TRUE(strstr(head, "Connection: close\r\n") != NULL);
    UNIT_TRUE(strstr(head, "Content-Security-Policy: default-src 'none'") != NULL);
    UNIT_TRUE(strstr(head, "Cache-Control: no-store\r\n") != NULL);
    UNIT_TRUE(strstr(head, "Access-Control") == NULL);
    answer.status = 401;
    (void)trpi_management_head_write(&answer, head);
    UNIT_TRUE(strstr(head, "WWW-Authenticate: Bearer") != NULL);
    answer.status = 405;
    answer.allow = "GET, HEAD";
    (void)trpi_management_head_write(&answer, head);
    UNIT_TRUE(strstr(head, "Allow: GET, HEAD\r\n") != NULL);
}

static const char *
key_of(const char *method)
{
    return strcmp(method, "GET") == 0    ? "get"
           : strcmp(method, "POST") == 0 ? "post"
           : strcmp(method, "PUT") == 0  ? "put"
                                         : "delete";
}

/* Each operation that openapi.json has is carried out or refused by its own rules, and each route
 * is there: the two are compared by asking the server's functions. */
static void
openapi_tells_what_is_served(void)
{
    char *text = trpi_management_openapi();
    cJSON *json = NULL;
    UNIT_REQUIRE(text != NULL);
    UNIT_REQUIRE(trpi_json_parse(text, strlen(text), &json, NULL) == TRP_OK);
    cJSON_free(text);
    const cJSON *paths = cJSON_GetObjectItemCaseSensitive(json, "paths"), *path = NULL;
    size_t told = 0, served = 0;
    for (const trpi_management_route *r = trpi_management_routes(); r->method != NULL; r++) {
        const cJSON *entry = cJSON_GetObjectItemCaseSensitive(paths, r->path);
        UNIT_TRUE(cJSON_GetObjectItemCaseSensitive(entry, key_of(r->method)) != NULL);
        served++;
    }
    cJSON_ArrayForEach(path, paths)
    {
        const cJSON *operation = NULL;
        cJSON_ArrayForEach(operation, path)
        {
            trpi_management_policy policy = policy_make();
            trpi_management_plan plan;
            char method[8], target[64];
            for (size_t i = 0; i <= strlen(operation->string); i++) {
                char c = operation->string[i];
                method[i] = c == '\0' ? c : (char)(c - ('a' - 'A'));
            }
            (void)snprintf(target, sizeof target, "%.*s%s", (int)strcspn(path->string, "{"),
                           path->string, strchr(path->string, '{') != NULL ? "h:1" : "");
            trpi_management_request request = request_make(method, target);
            trpi_management_plan_make(&policy, &request, &plan);
            UNIT_TRUE(plan.answer.status != 404 && plan.answer.status != 405);
            trpi_management_answer_fini(&plan.answer);
            told++;
        }
    }
    UNIT_EQUAL(told, served);
    cJSON_Delete(json);
}

UNIT_BEGIN("management_answers")
UNIT(members_have_exactly_akkas_keys)
UNIT(orders_are_answered_in_akkas_words)
UNIT(health_is_503_and_akkas_is_500_when_a_check_has_failed)
UNIT(metrics_are_text_and_openmetrics_to_clients_that_ask)
UNIT(a_refusal_has_the_status_of_its_exit_code)
UNIT(a_reply_that_is_none_is_an_internal_error)
UNIT(a_head_forbids_caches_frames_and_other_origins)
UNIT(openapi_tells_what_is_served)
UNIT_END
