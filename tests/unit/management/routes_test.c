/* routes_test.c - which request is carried out, and with which status others are refused. */
#include "tests/unit/management/policy.h"

/* The status of the answer; 0: the node is asked, with `command`. */
static int
status_of(const trpi_management_policy *policy, const trpi_management_request *request,
          const char *text)
{
    trpi_management_plan plan;
    trpi_management_plan_make(policy, request, &plan);
    if (plan.operation != 0) {
        UNIT_TEXT(plan.command, text);
        return 0;
    }
    UNIT_TRUE(plan.answer.body != NULL);
    if (text != NULL && plan.answer.body != NULL && strstr(plan.answer.body, text) == NULL) {
        UNIT_TEXT(plan.answer.body, text);
    }
    int status = plan.answer.status;
    trpi_management_answer_fini(&plan.answer);
    return status;
}

static int
plain(const char *method, const char *path, const char *text)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make(method, path);
    return status_of(&policy, &request, text);
}

static void
reads_become_questions_to_the_node(void)
{
    UNIT_EQUAL(plain("GET", "/cluster/members", "{\"cmd\":\"members\"}"), 0);
    UNIT_EQUAL(plain("GET", "/cluster/members/", "{\"cmd\":\"members\"}"), 0);
    UNIT_EQUAL(plain("HEAD", "/cluster/members", "{\"cmd\":\"members\"}"), 0);
    UNIT_EQUAL(plain("GET", "/cluster/members/demo@h:1",
                     "{\"cmd\":\"member-status\",\"member\":\"demo@h:1\"}"),
               0);
    UNIT_EQUAL(plain("GET", "/metrics", "{\"cmd\":\"metrics\"}"), 0);
    UNIT_EQUAL(plain("GET", "/cluster/domain-events",
                     "{\"cmd\":\"events\",\"snapshot\":true,\"types\":[\"MemberJoined\","
                     "\"MemberWeaklyUp\",\"MemberUp\",\"MemberLeft\",\"MemberExited\","
                     "\"MemberDowned\",\"MemberRemoved\",\"UnreachableMember\","
                     "\"ReachableMember\",\"LeaderChanged\",\"RoleLeaderChanged\","
                     "\"ClusterShuttingDown\"]}"),
               0);
    UNIT_EQUAL(plain("GET", "/cluster/shards/order",
                     "{\"cmd\":\"shards\",\"type\":\"order\",\"local\":true}"),
               0);
    UNIT_EQUAL(plain("GET", "/health/ready", "{\"cmd\":\"ready\"}"), 0);
    UNIT_EQUAL(plain("GET", "/health/alive", "{\"cmd\":\"alive\"}"), 0);
    UNIT_EQUAL(plain("GET", "/ready", "{\"cmd\":\"ready\"}"), 0);
    UNIT_EQUAL(plain("GET", "/alive", "{\"cmd\":\"alive\"}"), 0);
    UNIT_EQUAL(plain("GET", "/openapi.json", "\"openapi\":\"3.0.3\""), 200);
}

static void
an_address_in_a_path_may_have_lost_a_slash(void)
{
    static const char command[] =
        "{\"cmd\":\"member-status\",\"member\":\"troupe.tcp://demo@h:1\"}";
    UNIT_EQUAL(plain("GET", "/cluster/members/troupe.tcp://demo@h:1", command), 0);
    UNIT_EQUAL(plain("GET", "/cluster/members/troupe.tcp:/demo@h:1", command), 0);
    UNIT_EQUAL(plain("GET", "/cluster/members/troupe.tcp:/demo@h:1/", command), 0);
}

static void
what_is_not_served_is_refused_by_its_kind(void)
{
    UNIT_EQUAL(plain("GET", "/dashboar", "not-found"), 404);
    UNIT_EQUAL(plain("GET", "/dashboard/other.js", "not-found"), 404);
    UNIT_EQUAL(plain("GET", "/clusters", "not-found"), 404);
    UNIT_EQUAL(plain("GET", "/cluster", "PUT"), 405);
    UNIT_EQUAL(plain("GET", "/cluster/membersx", "not-found"), 404);
    UNIT_EQUAL(plain("GET", "/cluster/members//", "not-found"), 404);
    UNIT_EQUAL(plain("GET", "/cluster/members/:/", "{\"cmd\":\"member-status\",\"member\":\":\"}"),
               0);
    UNIT_EQUAL(plain("PATCH", "/cluster/members", "GET, HEAD, POST"), 405);
    UNIT_EQUAL(plain("OPTIONS", "/cluster/members", "bad-method"), 405);
    UNIT_EQUAL(plain("POST", "/cluster/members/x", "GET, HEAD, PUT, DELETE"), 405);
    UNIT_EQUAL(plain("get", "/cluster/members", "bad-method"), 405);
    UNIT_EQUAL(plain("GET", "cluster/members", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/cluster/../cluster/members", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/./cluster/members", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/cluster/members/...", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/cluster\\members", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/cluster/members/\n", "bad-path"), 400);
    UNIT_EQUAL(plain("GET", "/cluster/members/\xff", "bad-path"), 400);
}

static void
writes_need_a_writer_and_reads_of_secrets_a_reader(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("DELETE", "/cluster/members/h:1");
    static const char leave[] = "{\"cmd\":\"leave\",\"member\":\"h:1\",\"wait\":false}";
    UNIT_EQUAL(status_of(&policy, &request, "no-credential"), 401);
    request.authorization = "Bearer 0123456789abcdef0123456789abcdef";
    UNIT_EQUAL(status_of(&policy, &request, "unknown-credential"), 401);
    request.authorization = "Bearer " READER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, "not-a-writer"), 403);
    request.authorization = "Bearer " WRITER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, leave), 0);
    UNIT_EQUAL(plain("GET", "/config", "no-credential"), 401);
    request = request_make("GET", "/config");
    request.authorization = "Bearer " READER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, "{\"cmd\":\"config\"}"), 0);
}

/* As Akka Management has it: all members are prepared, none is ended. */
static void
the_end_of_all_is_prepared_by_a_writer(void)
{
    static const char prepare[] = "{\"cmd\":\"shutdown\",\"prepare\":true,\"everywhere\":true}";
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("PUT", "/cluster/");
    request.content_type = "application/x-www-form-urlencoded";
    static const char operation[] = "operation=Prepare-for-full-shutdown",
                      other[] = "operation=Down";
    request.body = (const uint8_t *)operation;
    request.body_bytes = strlen(operation);
    UNIT_EQUAL(status_of(&policy, &request, "no-credential"), 401);
    request.authorization = "Bearer " READER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, "not-a-writer"), 403);
    request.authorization = "Bearer " WRITER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, prepare), 0);
    request.path = "/cluster";
    UNIT_EQUAL(status_of(&policy, &request, prepare), 0);
    request.body = (const uint8_t *)other;
    request.body_bytes = strlen(other);
    UNIT_EQUAL(status_of(&policy, &request, "bad-operation"), 400);
    policy.read_only = true;
    UNIT_EQUAL(status_of(&policy, &request, "read-only"), 404);
}

static void
dead_letters_need_a_reader_and_take_numbers(void)
{
    static const char all[] = "{\"cmd\":\"deadletters\",\"after\":\"0\",\"count\":0}";
    static const char *const bad[] = { "after=x",
                                       "after=-1",
                                       "after=",
                                       "after=1x",
                                       "count=1000001",
                                       "count=1&count=2",
                                       "after=12345678901234567890" };
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("GET", "/deadletters");
    UNIT_EQUAL(status_of(&policy, &request, "no-credential"), 401);
    request.authorization = "Bearer " READER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request, all), 0);
    request.query = "count=1000000&after=1234567890123456789";
    UNIT_EQUAL(status_of(&policy, &request,
                         "{\"cmd\":\"deadletters\",\"after\":\"1234567890123456789\",\"count\":"
                         "1000000}"),
               0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        request.query = bad[i];
        UNIT_EQUAL(status_of(&policy, &request, "bad-query"), 400);
    }
}

/* A trace is of readers, on loopback too; its id is the node's to judge. */
static void
a_trace_is_asked_by_its_id(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request =
        request_make("GET", "/trace/4bf92f3577b34da6a3ce929d0e0e4736");
    UNIT_EQUAL(status_of(&policy, &request, "no-credential"), 401);
    request.authorization = "Bearer " READER_TOKEN;
    UNIT_EQUAL(status_of(&policy, &request,
                         "{\"cmd\":\"trace\",\"text\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}"),
               0);
    request.path = "/trace/";
    UNIT_EQUAL(status_of(&policy, &request, "not-found"), 404);
    request.path = "/trace/x";
    request.method = "POST";
    UNIT_EQUAL(status_of(&policy, &request, "bad-method"), 405);
}

static void
beyond_loopback_nothing_is_open(void)
{
    trpi_management_policy policy = policy_make();
    policy.bound = "10.0.0.1";
    policy.is_local = false;
    for (const trpi_management_route *r = trpi_management_routes(); r->method != NULL; r++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%.*sx", (int)strcspn(r->path, "{"), r->path);
        path[strcspn(r->path, "{") + (strchr(r->path, '{') != NULL ? 1 : 0)] = '\0';
        trpi_management_request request = request_make(r->method, path);
        request.host = "10.0.0.1:8558";
        if (r->class == TRPI_MANAGEMENT_PUBLIC) { /* the page, which tells nothing of the node */
            UNIT_EQUAL(status_of(&policy, &request, NULL),
                       r->operation == TRPI_MANAGEMENT_PAGE ? 200 : 400);
        } else {
            UNIT_EQUAL(status_of(&policy, &request, "no-credential"), 401);
        }
    }
}

static void
the_event_log_takes_types_and_a_count(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("GET", "/cluster/event-log");
    UNIT_EQUAL(status_of(&policy, &request, ""), 0);
    request.query = "type=MemberUp&count=3";
    UNIT_EQUAL(status_of(&policy, &request, ""), 0);
    request.query = "count=1000001";
    UNIT_EQUAL(status_of(&policy, &request, "bad-query"), 400);
    request.query = "type=Nope";
    UNIT_EQUAL(status_of(&policy, &request, "bad-type"), 400);
}

static void
read_only_refuses_every_write_as_not_there(void)
{
    trpi_management_policy policy = policy_make();
    policy.read_only = true;
    size_t writes = 0;
    for (const trpi_management_route *r = trpi_management_routes(); r->method != NULL; r++) {
        if (r->class == TRPI_MANAGEMENT_WRITE) {
            char path[64];
            (void)snprintf(path, sizeof path, "%.*s%s", (int)strcspn(r->path, "{"), r->path,
                           strchr(r->path, '{') != NULL ? "h:1" : "");
            trpi_management_request request = request_make(r->method, path);
            request.authorization = "Bearer " WRITER_TOKEN;
            UNIT_EQUAL(status_of(&policy, &request, "{\"error\":\"read-only\"}"), 404);
            writes++;
        }
    }
    UNIT_EQUAL(writes, 9);
}

static void
a_foreign_page_or_host_changes_nothing(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("DELETE", "/cluster/members/h:1");
    request.authorization = "Bearer " WRITER_TOKEN;
    request.origin = "http://evil.example";
    UNIT_EQUAL(status_of(&policy, &request, "foreign-origin"), 403);
    request.origin = "http://127.0.0.1:8558";
    UNIT_EQUAL(
        status_of(&policy, &request, "{\"cmd\":\"leave\",\"member\":\"h:1\",\"wait\":false}"), 0);
    request.host = "evil.example:8558";
    request.origin = "http://evil.example:8558";
    UNIT_EQUAL(status_of(&policy, &request, "bad-host"), 403);
    request.host = NULL;
    UNIT_EQUAL(status_of(&policy, &request, "bad-host"), 403);
}

static trpi_management_request
write_make(const char *method, const char *path, const char *form)
{
    trpi_management_request request = request_make(method, path);
    request.authorization = "Bearer " WRITER_TOKEN;
    request_form(&request, form);
    return request;
}

static void
forms_become_commands(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request r =
        write_make("POST", "/cluster/members/", "address=troupe.tcp%3A%2F%2Fdemo%40h%3A1");
    UNIT_EQUAL(
        status_of(&policy, &r,
                  "{\"cmd\":\"join\",\"addresses\":[\"troupe.tcp://demo@h:1\"],\"wait\":false}"),
        0);
    r = write_make("PUT", "/cluster/members/h:1", "operation=Leave");
    UNIT_EQUAL(status_of(&policy, &r, "{\"cmd\":\"leave\",\"member\":\"h:1\",\"wait\":false}"), 0);
    r = write_make("PUT", "/cluster/members/h:1", "operation=DOWN");
    UNIT_EQUAL(status_of(&policy, &r,
                         "{\"cmd\":\"down\",\"member\":\"h:1\",\"wait\":false,\"cautious\":true}"),
               0);
    r = write_make("PUT", "/cluster/members/h:1", "operation=Down&dead=true");
    UNIT_EQUAL(status_of(&policy, &r,
                         "{\"cmd\":\"down\",\"member\":\"h:1\",\"wait\":false,\"dead\":true}"),
               0);
    r = write_make("PUT", "/cluster/members/h:1", "operation=Join");
    UNIT_EQUAL(status_of(&policy, &r, "bad-operation"), 400);
    r = write_make("PUT", "/cluster/members/h:1", "x=y");
    UNIT_EQUAL(status_of(&policy, &r, "missing-field"), 400);
    r = write_make("POST", "/cluster/members", "address=%");
    UNIT_EQUAL(status_of(&policy, &r, "bad-form"), 400);
    r.content_type = "text/plain";
    UNIT_EQUAL(status_of(&policy, &r, "bad-content-type"), 415);
    r.transfer_encoding = "chunked";
    UNIT_EQUAL(status_of(&policy, &r, "no-length"), 411);
}

static void
a_body_has_a_limited_length(void)
{
    static char body[TRPI_MANAGEMENT_BODY_BYTES_MAX + 2] = "operation=leave&x=";
    trpi_management_policy policy = policy_make();
    memset(body + 18, 'x', TRPI_MANAGEMENT_BODY_BYTES_MAX + 1 - 18);
    trpi_management_request r = write_make("PUT", "/cluster/members/h:1", body);
    UNIT_EQUAL(r.body_bytes, TRPI_MANAGEMENT_BODY_BYTES_MAX + 1);
    UNIT_EQUAL(status_of(&policy, &r, "too-large"), 413);
    r.body_bytes = TRPI_MANAGEMENT_BODY_BYTES_MAX;
    UNIT_EQUAL(status_of(&policy, &r, "{\"cmd\":\"leave\",\"member\":\"h:1\",\"wait\":false}"), 0);
}

static void
a_path_and_a_query_have_limited_lengths(void)
{
    static char path[TRPI_MANAGEMENT_PATH_BYTES_MAX + 2] = "/cluster/members/";
    trpi_management_policy policy = policy_make();
    memset(path + 17, 'x', sizeof path - 18);
    UNIT_EQUAL(plain("GET", path, "too-long"), 414);
    path[17 + TRPI_MANAGEMENT_FIELD_BYTES_MAX] = '\0'; /* of the member's name */
    UNIT_EQUAL(plain("GET", path, "too-long"), 414);
    path[17 + TRPI_MANAGEMENT_FIELD_BYTES_MAX - 1] = '\0';
    trpi_management_plan plan;
    trpi_management_request request = request_make("GET", path);
    trpi_management_plan_make(&policy, &request, &plan);
    UNIT_EQUAL(plan.operation, TRPI_MANAGEMENT_MEMBER);
    static char query[TRPI_MANAGEMENT_QUERY_BYTES_MAX + 2];
    memset(query, 'q', sizeof query - 1);
    request = request_make("GET", "/cluster/members");
    request.query = query;
    UNIT_EQUAL(status_of(&policy, &request, "too-long"), 414);
    query[TRPI_MANAGEMENT_QUERY_BYTES_MAX] = '\0';
    UNIT_EQUAL(status_of(&policy, &request, "{\"cmd\":\"members\"}"), 0);
}

static int
actors(const char *query, const char *text)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("GET", "/actors");
    request.authorization = "Bearer " READER_TOKEN;
    request.query = query;
    return status_of(&policy, &request, text);
}

static void
actors_are_asked_by_path_and_depth(void)
{
    UNIT_EQUAL(actors("", "{\"cmd\":\"tree\",\"path\":\"/\",\"depth\":16}"), 0);
    UNIT_EQUAL(
        actors("path=/user/a&depth=2", "{\"cmd\":\"tree\",\"path\":\"/user/a\",\"depth\":2}"), 0);
    UNIT_EQUAL(actors("depth=1000", "{\"cmd\":\"tree\",\"path\":\"/\",\"depth\":1000}"), 0);
    UNIT_EQUAL(actors("depth=1001", "bad-query"), 400);
    UNIT_EQUAL(actors("depth=-1", "bad-query"), 400);
    UNIT_EQUAL(actors("depth=2x", "bad-query"), 400);
    UNIT_EQUAL(actors("path=a&path=b", "bad-query"), 400);
}

UNIT_BEGIN("management_routes")
UNIT(reads_become_questions_to_the_node)
UNIT(an_address_in_a_path_may_have_lost_a_slash)
UNIT(what_is_not_served_is_refused_by_its_kind)
UNIT(writes_need_a_writer_and_reads_of_secrets_a_reader)
UNIT(the_end_of_all_is_prepared_by_a_writer)
UNIT(dead_letters_need_a_reader_and_take_numbers)
UNIT(a_trace_is_asked_by_its_id)
UNIT(beyond_loopback_nothing_is_open)
UNIT(the_event_log_takes_types_and_a_count)
UNIT(read_only_refuses_every_write_as_not_there)
UNIT(a_foreign_page_or_host_changes_nothing)
UNIT(forms_become_commands)
UNIT(a_body_has_a_limited_length)
UNIT(a_path_and_a_query_have_limited_lengths)
UNIT(actors_are_asked_by_path_and_depth)
UNIT_END
