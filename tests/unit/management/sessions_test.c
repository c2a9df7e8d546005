/* sessions_test.c - a code opens one session, a session is a reader's, and both end; what the page
 * is sent with. */
#include "cluster/management/page.h"
#include "cluster/management/sessions.h"
#include "tests/unit/management/policy.h"

static trpi_management_sessions sessions;
static uint8_t random_next;

/* Random enough: each is another one. */
static const uint8_t *
random_make(void)
{
    static uint8_t bytes[TRPI_MANAGEMENT_SECRET_BYTES];
    memset(bytes, ++random_next, sizeof bytes);
    return bytes;
}

static void
code_make(uint64_t now_ms, char ret_code[TRPI_MANAGEMENT_SECRET_TEXT])
{
    UNIT_TRUE(trpi_management_code_make(&sessions, now_ms, random_make(), ret_code));
}

static bool
session_open(const char *code, uint64_t now_ms, char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT])
{
    return trpi_management_sessions_open(&sessions, code, now_ms, random_make(), ret_secret);
}

static void
a_code_opens_one_session(void)
{
    char code[TRPI_MANAGEMENT_SECRET_TEXT], secret[TRPI_MANAGEMENT_SECRET_TEXT] = "";
    memset(&sessions, 0, sizeof sessions);
    code_make(1000, code);
    UNIT_EQUAL(strlen(code), 64);
    UNIT_FALSE(session_open("", 1000, secret));
    UNIT_FALSE(session_open("0000000000000000000000000000000000000000000000000000000000000000",
                            1000, secret));
    UNIT_TRUE(session_open(code, 1000, secret));
    UNIT_TRUE(strcmp(code, secret) != 0);
    UNIT_TRUE(trpi_management_sessions_hold(&sessions, secret, 1000));
    UNIT_FALSE(trpi_management_sessions_hold(&sessions, code, 1000)); /* a code is no cookie */
    char again[TRPI_MANAGEMENT_SECRET_TEXT] = "";
    UNIT_FALSE(session_open(code, 1000, again)); /* sessions-S1 */
    UNIT_TEXT(again, "");
}

static void
a_code_and_a_session_end_with_their_time(void)
{
    char code[TRPI_MANAGEMENT_SECRET_TEXT], secret[TRPI_MANAGEMENT_SECRET_TEXT] = "";
    uint64_t opened_ms = 1000 + TRPI_MANAGEMENT_CODE_MS - 1;
    memset(&sessions, 0, sizeof sessions);
    code_make(1000, code);
    UNIT_FALSE(session_open(code, opened_ms + 1, secret));
    UNIT_TRUE(session_open(code, opened_ms, secret));
    UNIT_TRUE(trpi_management_sessions_hold(&sessions, secret,
                                            opened_ms + TRPI_MANAGEMENT_SESSION_MS - 1));
    UNIT_FALSE(
        trpi_management_sessions_hold(&sessions, secret, opened_ms + TRPI_MANAGEMENT_SESSION_MS));
}

static void
one_above_the_limit_replaces_the_one_that_ends_first(void)
{
    char codes[TRPI_MANAGEMENT_CODES_MAX + 1][TRPI_MANAGEMENT_SECRET_TEXT];
    char first[TRPI_MANAGEMENT_SECRET_TEXT] = "", secret[TRPI_MANAGEMENT_SECRET_TEXT] = "";
    memset(&sessions, 0, sizeof sessions);
    for (size_t i = 0; i < TRPI_MANAGEMENT_CODES_MAX; i++) {
        code_make(1000 + i, codes[i]);
    }
    UNIT_TRUE(session_open(codes[0], 1100, first)); /* all of them still hold */
    code_make(1000, codes[0]);
    code_make(2000, codes[TRPI_MANAGEMENT_CODES_MAX]);
    UNIT_FALSE(session_open(codes[0], 2000, secret));
    UNIT_TRUE(session_open(codes[1], 2000, secret));
    UNIT_TRUE(session_open(codes[TRPI_MANAGEMENT_CODES_MAX], 2000, secret));
    for (size_t i = 0; i < TRPI_MANAGEMENT_SESSIONS_MAX - 3; i++) {
        code_make(3000 + i, codes[0]);
        UNIT_TRUE(session_open(codes[0], 3000 + i, secret));
        UNIT_TRUE(trpi_management_sessions_hold(&sessions, first, 3000 + i));
    }
    code_make(4000, codes[0]);
    UNIT_TRUE(session_open(codes[0], 4000, secret));
    UNIT_FALSE(trpi_management_sessions_hold(&sessions, first, 4000));
    UNIT_TRUE(trpi_management_sessions_hold(&sessions, secret, 4000));
}

static void
a_cookie_is_found_among_those_of_other_programs(void)
{
    char text[TRPI_MANAGEMENT_COOKIE_BYTES], header[512], secret[TRPI_MANAGEMENT_SECRET_TEXT] = "";
    char code[TRPI_MANAGEMENT_SECRET_TEXT];
    memset(&sessions, 0, sizeof sessions);
    code_make(1, code);
    trpi_management_cookie_write(8558, code, false, text);
    UNIT_TRUE(strstr(text, "; HttpOnly; SameSite=Strict") != NULL);
    UNIT_TRUE(strstr(text, "Secure") == NULL);
    trpi_management_cookie_write(65535, code, true, text);
    UNIT_TRUE(strstr(text, "; Secure") != NULL);
    (void)snprintf(header, sizeof header, "a=b; troupe-8559=%s; troupe-8558=%s; c=d", "0", code);
    UNIT_TRUE(trpi_management_cookie_get(header, 8558, secret));
    UNIT_TEXT(secret, code);
    UNIT_FALSE(trpi_management_cookie_get(header, 8559, secret)); /* too short */
    UNIT_FALSE(trpi_management_cookie_get(header, 855, secret));
    UNIT_FALSE(trpi_management_cookie_get("", 8558, secret));
    UNIT_FALSE(trpi_management_cookie_get(";;; ;", 8558, secret));
    (void)snprintf(header, sizeof header, "troupe-8558=%sx", code);
    UNIT_FALSE(trpi_management_cookie_get(header, 8558, secret));
}

/* The status that a request is refused with; 0: it is carried out. */
static int
refused(const trpi_management_policy *policy, const trpi_management_request *request,
        const char *error)
{
    trpi_management_plan plan;
    trpi_management_plan_make(policy, request, &plan);
    if (plan.operation != 0) {
        UNIT_TRUE(error == NULL);
        return 0;
    }
    if (error != NULL && plan.answer.body != NULL && strstr(plan.answer.body, error) == NULL) {
        UNIT_TEXT(plan.answer.body, error);
    }
    int status = plan.answer.status;
    trpi_management_answer_fini(&plan.answer);
    return status;
}

/* sessions-S3; a page of another origin has the cookie sent along where it is of the same site. */
static void
a_session_is_a_reader_of_its_own_page_alone(void)
{
    char code[TRPI_MANAGEMENT_SECRET_TEXT], secret[TRPI_MANAGEMENT_SECRET_TEXT];
    trpi_management_policy policy = policy_make();
    memset(&sessions, 0, sizeof sessions);
    policy.sessions = &sessions;
    policy.now_ms = 5000;
    code_make(5000, code);
    UNIT_REQUIRE(session_open(code, 5000, secret));
    trpi_management_request request = request_make("GET", "/deadletters");
    UNIT_EQUAL(refused(&policy, &request, "no-credential"), 401);
    request.session = secret;
    UNIT_EQUAL(refused(&policy, &request, NULL), 0);
    request.origin = "http://127.0.0.1:8558";
    UNIT_EQUAL(refused(&policy, &request, NULL), 0);
    request.origin = "http://127.0.0.1:9999";
    UNIT_EQUAL(refused(&policy, &request, "unknown-credential"), 401);
    request.origin = NULL;
    request.session = code;
    UNIT_EQUAL(refused(&policy, &request, "unknown-credential"), 401);
    request.session = secret;
    policy.now_ms = 5000 + TRPI_MANAGEMENT_SESSION_MS;
    UNIT_EQUAL(refused(&policy, &request, "unknown-credential"), 401);
    policy.now_ms = 5000;
    policy.is_local = false; /* beyond loopback it is one, too */
    request = request_make("GET", "/cluster/members");
    request.session = secret;
    UNIT_EQUAL(refused(&policy, &request, NULL), 0);
    request = request_make("DELETE", "/cluster/members/demo@h:1");
    request.session = secret;
    UNIT_EQUAL(refused(&policy, &request, "not-a-writer"), 403);
}

static void
a_code_is_exchanged_on_our_page_alone(void)
{
    trpi_management_policy policy = policy_make();
    trpi_management_request request = request_make("POST", "/dashboard/session");
    policy.read_only = true; /* it changes nothing of the cluster */
    policy.is_local = false; /* the code is the credential */
    UNIT_EQUAL(refused(&policy, &request, "missing-field"), 400);
    request_form(&request, "code=1");
    request.content_type = "text/plain";
    UNIT_EQUAL(refused(&policy, &request, "bad-content-type"), 415);
    request_form(&request, "cod=1");
    UNIT_EQUAL(refused(&policy, &request, "missing-field"), 400);
    request_form(&request, "code=1");
    UNIT_EQUAL(refused(&policy, &request, NULL), 0);
    request.origin = "https://evil.example";
    UNIT_EQUAL(refused(&policy, &request, "foreign-origin"), 403);
    request.origin = "null";
    UNIT_EQUAL(refused(&policy, &request, "foreign-origin"), 403);
    request.origin = "http://127.0.0.1:8558";
    UNIT_EQUAL(refused(&policy, &request, NULL), 0);
    request.host = "evil.example";
    UNIT_EQUAL(refused(&policy, &request, "bad-host"), 403);
}

/* Each file that the page names is served, with a policy that lets it load nothing from elsewhere.
 */
static void
the_page_is_whole_and_loads_nothing_from_elsewhere(void)
{
    char head[TRPI_MANAGEMENT_HEAD_BYTES];
    trpi_management_policy policy = policy_make();
    size_t pages = 0;
    policy.is_local = false;
    for (const trpi_management_route *r = trpi_management_routes(); r->method != NULL; r++) {
        trpi_management_plan plan;
        trpi_management_request request = request_make("GET", r->path);
        if (r->operation != TRPI_MANAGEMENT_PAGE) {
            continue;
        }
        trpi_management_plan_make(&policy, &request, &plan);
        UNIT_EQUAL(plan.answer.status, 200);
        UNIT_TRUE(plan.answer.body != NULL && strlen(plan.answer.body) > 100);
        UNIT_TRUE(trpi_management_head_write(&plan.answer, head) > 0);
        UNIT_TRUE(
            strstr(head, "Content-Security-Policy: default-src 'none'; script-src 'self'; ") !=
            NULL);
        UNIT_TRUE(strstr(head, "unsafe") == NULL);
        /* the name of SVG's elements is the one address in it */
        const char *at = plan.answer.body;
        while (at != NULL && (at = strstr(at, "://")) != NULL) {
            UNIT_TRUE(strncmp(at, "://www.w3.org/2000/svg", 22) == 0);
            at++;
        }
        UNIT_TRUE(plan.answer.body != NULL && strstr(plan.answer.body, "innerHTML") == NULL);
        trpi_management_answer_fini(&plan.answer);
        pages++;
    }
    UNIT_EQUAL(pages, 8);
}

/* A Set-Cookie of the longest kind fits into a head. */
static void
a_head_has_the_cookie(void)
{
    char head[TRPI_MANAGEMENT_HEAD_BYTES], code[TRPI_MANAGEMENT_SECRET_TEXT];
    trpi_management_answer answer = { .status = 503,
                                      .content_type = "text/javascript; charset=utf-8",
                                      .allow = "GET, HEAD, PUT, DELETE",
                                      .policy = TRPI_MANAGEMENT_PAGE_POLICY };
    memset(&sessions, 0, sizeof sessions);
    code_make(1, code);
    trpi_management_cookie_write(65535, code, true, answer.cookie);
    UNIT_TRUE(trpi_management_head_write(&answer, head) > 0);
    UNIT_TRUE(strstr(head, "\r\nSet-Cookie: troupe-65535=") != NULL);
    UNIT_TRUE(strstr(head, "; HttpOnly; SameSite=Strict; Secure\r\n") != NULL);
    UNIT_TRUE(strstr(head, "\r\n\r\n") == head + strlen(head) - 4);
}

UNIT_BEGIN("management_sessions")
UNIT(a_code_opens_one_session)
UNIT(a_code_and_a_session_end_with_their_time)
UNIT(one_above_the_limit_replaces_the_one_that_ends_first)
UNIT(a_cookie_is_found_among_those_of_other_programs)
UNIT(a_session_is_a_reader_of_its_own_page_alone)
UNIT(a_code_is_exchanged_on_our_page_alone)
UNIT(the_page_is_whole_and_loads_nothing_from_elsewhere)
UNIT(a_head_has_the_cookie)
UNIT_END
