/* routes.c - see routes.h.
 *
 * Must hold.
 *   routes-R1  A write is refused while management.read-only is on, whoever asks; then it needs a
 *       writer's credential, also on loopback.                              (plan_judge)
 *   routes-R2  Nothing of a request reaches the node but values in the strings of a JSON request
 *       that is made here.                                                  (command_make)
 *   routes-R3  A request is judged before its body is looked at.            (plan_make)
 * Tests.   tests/unit/management/routes_test.c, tests/fuzz/management_fuzz.c
 * Sources. Akka Management 1.x, cluster HTTP: paths, methods, fields and messages.
 */
#include "cluster/management/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cluster/management/access.h"
#include "cluster/management/events.h"
#include "cluster/management/exposition.h"
#include "cluster/management/form.h"
#include "cluster/management/forward.h"
#include "cluster/management/page.h"
#include "cluster/management/tell.h"

#define DEPTH_DEFAULT 16
#define DEPTH_MAX 1000
#define RECORDS_MAX 1000000u

#define PAGE(path, summary)                                                                        \
    {                                                                                              \
        TRPI_MANAGEMENT_PAGE, "GET", path, TRPI_MANAGEMENT_PUBLIC, summary, NULL, ""               \
    }

static const trpi_management_route routes[] = {
    { TRPI_MANAGEMENT_MEMBERS, "GET", "/cluster/members", TRPI_MANAGEMENT_OPEN,
      "The members of the cluster, its leader and its oldest members, as this node sees them.",
      NULL, "" },
    { TRPI_MANAGEMENT_JOIN, "POST", "/cluster/members", TRPI_MANAGEMENT_WRITE,
      "This node joins the cluster of the node whose address the form names.", "address", "" },
    { TRPI_MANAGEMENT_MEMBER, "GET", "/cluster/members/{address}", TRPI_MANAGEMENT_OPEN,
      "One member.", NULL, "" },
    { TRPI_MANAGEMENT_MEMBER_LEAVE, "DELETE", "/cluster/members/{address}", TRPI_MANAGEMENT_WRITE,
      "The member leaves the cluster.", NULL, "" },
    { TRPI_MANAGEMENT_MEMBER_CHANGE, "PUT", "/cluster/members/{address}", TRPI_MANAGEMENT_WRITE,
      "The member leaves (operation=Leave), or is marked Down (operation=Down).", "operation", "" },
    { TRPI_MANAGEMENT_CLUSTER_CHANGE, "PUT", "/cluster", TRPI_MANAGEMENT_WRITE,
      "All members are told that the whole cluster ends (operation=Prepare-for-full-shutdown): for "
      "five minutes one that ends hands over no work. None is ended.",
      "operation", "" },
    { TRPI_MANAGEMENT_ACTORS, "GET", "/actors", TRPI_MANAGEMENT_PROTECTED,
      "The actors of this node below a path.", NULL, "path depth" },
    { TRPI_MANAGEMENT_CONFIG, "GET", "/config", TRPI_MANAGEMENT_PROTECTED,
      "The configuration of this node, each key with its origin; secrets are not shown.", NULL,
      "" },
    { TRPI_MANAGEMENT_OPENAPI, "GET", "/openapi.json", TRPI_MANAGEMENT_OPEN,
      "This description of the interface.", NULL, "" },
    { TRPI_MANAGEMENT_METRICS, "GET", "/metrics", TRPI_MANAGEMENT_OPEN,
      "Figures of this node for Prometheus; OpenMetrics for clients that accept it.", NULL, "" },
    { TRPI_MANAGEMENT_READY, "GET", "/health/ready", TRPI_MANAGEMENT_OPEN,
      "Does this node take work? The checks, each with its verdict; 503: one of them has failed.",
      NULL, "" },
    { TRPI_MANAGEMENT_ALIVE, "GET", "/health/alive", TRPI_MANAGEMENT_OPEN,
      "Does this node do any work? It depends on no other node; 503: it does not.", NULL, "" },
    { TRPI_MANAGEMENT_AKKA_READY, "GET", "/ready", TRPI_MANAGEMENT_OPEN,
      "As /health/ready, with 500 for 503, as Akka Management answers.", NULL, "" },
    { TRPI_MANAGEMENT_AKKA_ALIVE, "GET", "/alive", TRPI_MANAGEMENT_OPEN,
      "As /health/alive, with 500 for 503, as Akka Management answers.", NULL, "" },
    { TRPI_MANAGEMENT_EVENTS, "GET", "/cluster/domain-events", TRPI_MANAGEMENT_OPEN,
      "Changes of the cluster as server-sent events, after Reset and the present state; after "
      "those that Last-Event-ID names. 503: too many streams.",
      NULL, "type" },
    { TRPI_MANAGEMENT_DEADLETTERS, "GET", "/deadletters", TRPI_MANAGEMENT_PROTECTED,
      "The last messages of this node that reached no actor, without payloads; after: the number "
      "of "
      "the last one that the client has.",
      NULL, "after count" },
    { TRPI_MANAGEMENT_SHARDS, "GET", "/cluster/shards/{name}", TRPI_MANAGEMENT_OPEN,
      "The shards of a type of entities that this node has, and how many entities of each live.",
      NULL, "" },
    { TRPI_MANAGEMENT_TRACE, "GET", "/trace/{id}", TRPI_MANAGEMENT_PROTECTED,
      "The hops of a trace on all members, by its 32 hexadecimal digits.", NULL, "" },
    { TRPI_MANAGEMENT_TELL, "POST", "/actors/{path}", TRPI_MANAGEMENT_WRITE,
      "The body is told to an actor of this node: text/plain, application/json, "
      "application/octet-stream; ask=500ms waits for its answer.",
      NULL, "ask type" },
    { TRPI_MANAGEMENT_EVENT_LOG, "GET", "/cluster/event-log", TRPI_MANAGEMENT_OPEN,
      "The last changes of the cluster that this node has kept, with the ids that they have in the "
      "stream.",
      NULL, "type count" },
    { TRPI_MANAGEMENT_SESSION, "POST", "/dashboard/session", TRPI_MANAGEMENT_PUBLIC,
      "Exchanges the code that `troupe dashboard` prints, which is good once, for a cookie of a "
      "reader.",
      "code", "" },
    PAGE("/", "The dashboard."),
    PAGE("/dashboard", "The dashboard."),
    PAGE("/dashboard/dashboard.css", "A part of the dashboard."),
    PAGE("/dashboard/live.js", "A part of the dashboard."),
    PAGE("/dashboard/draw.js", "A part of the dashboard."),
    PAGE("/dashboard/ring.js", "A part of the dashboard."),
    PAGE("/dashboard/main.js", "A part of the dashboard."),
    PAGE("/dashboard/icon.svg", "A part of the dashboard."),
    TRPI_MANAGEMENT_FORWARD_ROUTES,
    { 0, NULL, NULL, TRPI_MANAGEMENT_OPEN, NULL, NULL, NULL },
};

const trpi_management_route *
trpi_management_routes(void)
{
    return routes;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Is it an absolute path without segments that mean another place, of printable text? */
static bool
path_is_plain(const char *path)
{
    if (path[0] != '/' || !trpi_utf8_is_valid(path, strlen(path))) {
        return false;
    }
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 127 || *at == '\\') {
            return false;
        }
        size_t segment = *at == '/' ? strcspn(at + 1, "/") : 0;
        if (segment > 0 && strspn(at + 1, ".") >= segment) {
            return false;
        }
    }
    return true;
}

/* Does the path belong to the route? *ret_rest: what the braces take, "" none. */
static bool
route_takes(const trpi_management_route *route, const char *path, const char **ret_rest)
{
    size_t bytes = strlen(path), fixed = strcspn(route->path, "{");
    *ret_rest = "";
    if (route->path[fixed] == '\0') {
        /* a slash at the end is Akka's way to write a collection */
        return strncmp(path, route->path, fixed) == 0 &&
               (bytes == fixed || (bytes == fixed + 1 && path[fixed] == '/'));
    }
    *ret_rest = bytes > fixed ? path + fixed : "";
    return bytes > fixed && strncmp(path, route->path, fixed) == 0;
}

static const char *
methods_of(const char *path)
{
    const char *rest = NULL;
    unsigned found = 0; /* 1: GET, 2: POST, 4: PUT, 8: DELETE */
    for (const trpi_management_route *r = routes; r->method != NULL; r++) {
        if (route_takes(r, path, &rest)) {
            found |= strcmp(r->method, "GET") == 0    ? 1u
                     : strcmp(r->method, "POST") == 0 ? 2u
                     : strcmp(r->method, "PUT") == 0  ? 4u
                                                      : 8u;
        }
    }
    switch (found) {
    case 0:
        return NULL;
    case 1:
        return "GET, HEAD";
    case 2:
        return "POST";
    case 4:
        return "PUT";
    case 1 | 2:
        return "GET, HEAD, POST";
    default:
        trpi_assert(found == (1 | 4 | 8));
        return "GET, HEAD, PUT, DELETE";
    }
}

static const trpi_management_route *
route_find(const char *method, const char *path, const char **ret_rest)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    for (const trpi_management_route *r = routes; r->method != NULL; r++) {
        if (strcmp(r->method, wanted) == 0 && route_takes(r, path, ret_rest)) {
            return r;
        }
    }
    return NULL;
}

/* Write an address as the node reads it. Servers and proxies merge the two slashes of
 * "troupe.tcp://demo@host:1" in a path, and Akka's clients leave the protocol out. */
static bool
address_take(const char *rest, char ret_address[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    size_t bytes = strlen(rest);
    bytes -= bytes > 0 && rest[bytes - 1] == '/' ? 1 : 0;
    size_t scheme = strcspn(rest, ":/");
    bool merged = strncmp(rest + scheme, ":/", 2) == 0 && rest[scheme + 2] != '/';
    int length =
        merged && bytes > scheme + 1
            ? snprintf(ret_address, TRPI_MANAGEMENT_FIELD_BYTES_MAX, "%.*s://%.*s", (int)scheme,
                       rest, (int)(bytes - scheme - 2), rest + scheme + 2)
            : snprintf(ret_address, TRPI_MANAGEMENT_FIELD_BYTES_MAX, "%.*s", (int)bytes, rest);
    return length >= 0 && (size_t)length < TRPI_MANAGEMENT_FIELD_BYTES_MAX;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Print command, which is taken. ok: it was filled. */
static void
command_set(trpi_management_plan *plan, cJSON *command, bool ok)
{
    char *text = ok ? trpi_json_print(command) : NULL;
    int length = text == NULL ? -1 : snprintf(plan->command, sizeof plan->command, "%s", text);
    cJSON_free(text);
    cJSON_Delete(command);
    if (length < 0) {
        plan->operation = 0;
        trpi_management_answer_error(&plan->answer, 500, "no-memory", "out of memory");
    } else if ((size_t)length >= sizeof plan->command) {
        plan->operation = 0;
        trpi_management_answer_error(&plan->answer, 414, "too-long", "the request is too long");
    }
}

static void
plan_refuse(trpi_management_plan *plan, int status, const char *error, const char *message)
{
    plan->operation = 0;
    trpi_management_answer_error(&plan->answer, status, error, message);
}

/* Read the field of a write's form. false: refused. */
static bool
field_take(trpi_management_plan *plan, const trpi_management_request *request, const char *name,
           char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX])
{
    char text[160];
    trp_err err = trpi_management_form_get(request->content_type, request->body,
                                           request->body_bytes, name, ret_value);
    if (err == TRP_EVERSION) {
        plan_refuse(plan, 415, "bad-content-type",
                    "send a form: application/x-www-form-urlencoded or multipart/form-data");
    } else if (err == TRP_ENOENT) {
        (void)snprintf(text, sizeof text, "the form has no field '%s'", name);
        plan_refuse(plan, 400, "missing-field", text);
    } else if (err != TRP_OK) {
        (void)snprintf(text, sizeof text, "the form, or its field '%s', cannot be read: %s", name,
                       err == TRP_EMSGSIZE ? "it is too long" : "it is malformed");
        plan_refuse(plan, 400, "bad-form", text);
    }
    return err == TRP_OK;
}

static void
join_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    cJSON *command = NULL, *list = NULL;
    if (!field_take(plan, request, "address", plan->subject)) {
        return;
    }
    command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "join");
    list = ok ? cJSON_AddArrayToObject(command, "addresses") : NULL;
    ok = list != NULL && cJSON_AddItemToArray(list, cJSON_CreateString(plan->subject)) &&
         trpi_json_add_bool(command, "wait", false);
    (void)snprintf(plan->verb, sizeof plan->verb, "Joining");
    command_set(plan, command, ok);
}

/* Leave, or mark Down. down: an order that may leave two clusters is refused, unless the form says
 * dead=true: the member is stopped. */
static void
departure_make(trpi_management_plan *plan, const trpi_management_request *request, bool down)
{
    char dead[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "";
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", down ? "down" : "leave") &&
              trpi_json_add_text(command, "member", plan->subject) &&
              trpi_json_add_bool(command, "wait", false);
    if (down) {
        trp_err err = trpi_management_form_get(request->content_type, request->body,
                                               request->body_bytes, "dead", dead);
        bool is_dead = err == TRP_OK && strcasecmp(dead, "true") == 0;
        ok = ok && trpi_json_add_bool(command, is_dead ? "dead" : "cautious", true);
    }
    (void)snprintf(plan->verb, sizeof plan->verb, down ? "Downing" : "Leaving");
    command_set(plan, command, ok);
}

static void
change_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    char operation[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    if (!field_take(plan, request, "operation", operation)) {
        return;
    }
    if (strcasecmp(operation, "leave") == 0) {
        departure_make(plan, request, false);
    } else if (strcasecmp(operation, "down") == 0) {
        departure_make(plan, request, true);
    } else {
        plan_refuse(plan, 400, "bad-operation", "operation is one of Leave, Down");
    }
}

static void
cluster_change_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    char operation[TRPI_MANAGEMENT_FIELD_BYTES_MAX];
    if (!field_take(plan, request, "operation", operation)) {
        return;
    }
    if (strcasecmp(operation, "prepare-for-full-shutdown") != 0) {
        plan_refuse(plan, 400, "bad-operation", "operation is Prepare-for-full-shutdown");
        return;
    }
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "shutdown") &&
              trpi_json_add_bool(command, "prepare", true) &&
              trpi_json_add_bool(command, "everywhere", true);
    command_set(plan, command, ok);
}

static void
actors_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    char path[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "/", depth[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "";
    trp_err at_path = trpi_management_query_get(request->query, "path", path);
    trp_err at_depth = trpi_management_query_get(request->query, "depth", depth);
    long number = DEPTH_DEFAULT;
    if (at_depth == TRP_OK) {
        char *end = NULL;
        number = strtol(depth, &end, 10);
        if (depth[0] < '0' || depth[0] > '9' || *end != '\0' || number > DEPTH_MAX) {
            at_depth = TRP_EDATA;
        }
    }
    if ((at_path != TRP_OK && at_path != TRP_ENOENT) ||
        (at_depth != TRP_OK && at_depth != TRP_ENOENT)) {
        plan_refuse(plan, 400, "bad-query",
                    "path is the path of an actor, depth a number up to 1000");
        return;
    }
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "tree") &&
              trpi_json_add_text(command, "path", at_path == TRP_OK ? path : "/") &&
              trpi_json_add_i64(command, "depth", number);
    (void)snprintf(plan->subject, sizeof plan->subject, "%s", at_path == TRP_OK ? path : "/");
    command_set(plan, command, ok);
}

/* Take the types of events of a query. false: refused. */
static bool
types_take(trpi_management_plan *plan, const trpi_management_request *request)
{
    char bad[80], text[160];
    if (trpi_management_types_take(request->query, &plan->event_bits, bad, sizeof bad) != TRP_OK) {
        (void)snprintf(text, sizeof text,
                       "no type of events is called '%s': see docs/operating.md, Events", bad);
        plan_refuse(plan, 400, "bad-type", text);
        return false;
    }
    return true;
}

static void
events_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    if (!types_take(plan, request)) {
        return;
    }
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "events") &&
              trpi_json_add_bool(command, "snapshot", true) &&
              trpi_management_types_add(cJSON_AddArrayToObject(command, "types"), plan->event_bits);
    command_set(plan, command, ok);
}

/* Read a number of a query; absent: 0. false: it is none, or above most. */
static bool
number_take(const char *query, const char *name, uint64_t most, uint64_t *ret_number)
{
    char text[TRPI_MANAGEMENT_FIELD_BYTES_MAX] = "";
    char *end = NULL;
    *ret_number = 0;
    trp_err err = trpi_management_query_get(query, name, text);
    if (err != TRP_OK) {
        return err == TRP_ENOENT;
    }
    if (strlen(text) > 19 || text[0] < '0' || text[0] > '9') { /* 19 digits fit */
        return false;
    }
    *ret_number = strtoull(text, &end, 10);
    return *end == '\0' && *ret_number <= most;
}

static void
deadletters_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    uint64_t after = 0, count = 0;
    if (!number_take(request->query, "after", UINT64_MAX, &after) ||
        !number_take(request->query, "count", RECORDS_MAX, &count)) {
        plan_refuse(plan, 400, "bad-query",
                    "after is the number of a dead letter, count one up to 1000000");
        return;
    }
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "deadletters") &&
              trpi_json_add_u64_string(command, "after", after) &&
              trpi_json_add_i64(command, "count", (int64_t)count);
    command_set(plan, command, ok);
}

static void
shards_make(trpi_management_plan *plan)
{
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "shards") &&
              trpi_json_add_text(command, "type", plan->subject) &&
              trpi_json_add_bool(command, "local", true);
    command_set(plan, command, ok);
}

static void
trace_make(trpi_management_plan *plan)
{
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", "trace") &&
              trpi_json_add_text(command, "text", plan->subject);
    command_set(plan, command, ok);
}

static void
event_log_make(trpi_management_plan *plan, const trpi_management_request *request)
{
    uint64_t count = 0;
    if (!number_take(request->query, "count", RECORDS_MAX, &count)) {
        plan_refuse(plan, 400, "bad-query", "count is a number up to 1000000");
    } else if (types_take(plan, request)) {
        plan->count = count == 0 ? TRPI_MANAGEMENT_EVENTS_MAX : (uint32_t)count;
    }
}

static void
plain_make(trpi_management_plan *plan, const char *name)
{
    cJSON *command = cJSON_CreateObject();
    bool ok = trpi_json_add_text(command, "cmd", name) &&
              (plan->subject[0] == '\0' || trpi_json_add_text(command, "member", plan->subject));
    command_set(plan, command, ok);
}

static void
openapi_answer(trpi_management_plan *plan)
{
    plan->operation = 0;
    plan->answer = (trpi_management_answer){ .status = 200,
                                             .content_type = "application/json",
                                             .body = trpi_management_openapi() };
}

static void
command_make(const trpi_management_policy *policy, trpi_management_plan *plan,
             const trpi_management_request *request)
{
    switch (plan->operation) {
    case TRPI_MANAGEMENT_MEMBERS:
        plain_make(plan, "members");
        return;
    case TRPI_MANAGEMENT_MEMBER:
        plain_make(plan, "member-status");
        return;
    case TRPI_MANAGEMENT_CONFIG:
        plain_make(plan, "config");
        return;
    case TRPI_MANAGEMENT_METRICS:
        plan->openmetrics = trpi_management_accepts_openmetrics(request->accept);
        plain_make(plan, "metrics");
        return;
    case TRPI_MANAGEMENT_EVENTS:
        events_make(plan, request);
        return;
    case TRPI_MANAGEMENT_DEADLETTERS:
        deadletters_make(plan, request);
        return;
    case TRPI_MANAGEMENT_SHARDS:
        shards_make(plan);
        return;
    case TRPI_MANAGEMENT_TRACE:
        trace_make(plan);
        return;
    case TRPI_MANAGEMENT_TELL:
        trpi_management_tell_make(plan, request);
        return;
    case TRPI_MANAGEMENT_EVENT_LOG:
        event_log_make(plan, request);
        return;
    case TRPI_MANAGEMENT_SESSION:
        (void)field_take(plan, request, "code", plan->subject);
        return;
    case TRPI_MANAGEMENT_PAGE:
        plan->operation = 0;
        trpi_management_page_answer(request->path, &plan->answer);
        return;
    case TRPI_MANAGEMENT_READY:
    case TRPI_MANAGEMENT_AKKA_READY:
        plain_make(plan, "ready");
        return;
    case TRPI_MANAGEMENT_ALIVE:
    case TRPI_MANAGEMENT_AKKA_ALIVE:
        plain_make(plan, "alive");
        return;
    case TRPI_MANAGEMENT_JOIN:
        join_make(plan, request);
        return;
    case TRPI_MANAGEMENT_MEMBER_LEAVE:
        departure_make(plan, request, false);
        return;
    case TRPI_MANAGEMENT_MEMBER_CHANGE:
        change_make(plan, request);
        return;
    case TRPI_MANAGEMENT_CLUSTER_CHANGE:
        cluster_change_make(plan, request);
        return;
    case TRPI_MANAGEMENT_ACTORS:
        actors_make(plan, request);
        return;
    case TRPI_MANAGEMENT_FORWARD:
        trpi_management_forward_make(plan, request, policy->request_ms);
        return;
    case TRPI_MANAGEMENT_OPENAPI:
        openapi_answer(plan);
        return;
    }
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Who asks, and may it? false: refused. */
static bool
credentials_judge(const trpi_management_policy *policy, const trpi_management_request *request,
                  const trpi_management_route *route, trpi_management_plan *plan)
{
    bool shown = false;
    bool is_write = route->class == TRPI_MANAGEMENT_WRITE;
    if (route->class == TRPI_MANAGEMENT_PUBLIC ||
        (route->class == TRPI_MANAGEMENT_OPEN && policy->is_local)) {
        return true;
    }
    trpi_management_level level = trpi_management_level_of(policy, request, &shown, plan->who);
    if (level >= (is_write ? TRPI_MANAGEMENT_WRITER : TRPI_MANAGEMENT_READER)) {
        return true;
    }
    if (level == TRPI_MANAGEMENT_READER) {
        plan_refuse(plan, 403, "not-a-writer",
                    "this credential may only read (management.writers)");
    } else if (shown) {
        plan_refuse(plan, 401, "unknown-credential",
                    "this token or certificate is not known to the node (management.token-file, "
                    "management.readers, management.writers)");
    } else {
        plan_refuse(plan, 401, "no-credential",
                    "this request needs a bearer token or a client certificate");
    }
    return false;
}

/* Everything but the body: routes-R3. false: refused. */
static bool
plan_judge(const trpi_management_policy *policy, const trpi_management_request *request,
           trpi_management_plan *plan, const trpi_management_route **ret_route)
{
    const char *rest = "";
    if (!trpi_management_host_is_ours(policy, request->host)) {
        plan_refuse(plan, 403, "bad-host",
                    "the Host header names another host than this server (management.hosts)");
        return false;
    }
    if (strlen(request->path) > TRPI_MANAGEMENT_PATH_BYTES_MAX ||
        strlen(request->query) > TRPI_MANAGEMENT_QUERY_BYTES_MAX) {
        plan_refuse(plan, 414, "too-long", "the path or the query is too long");
        return false;
    }
    if (!path_is_plain(request->path)) {
        plan_refuse(plan, 400, "bad-path", "the path is malformed");
        return false;
    }
    const char *allow = methods_of(request->path);
    const trpi_management_route *route = route_find(request->method, request->path, &rest);
    if (allow == NULL) {
        plan_refuse(plan, 404, "not-found", "see /openapi.json");
        return false;
    }
    if (route == NULL) {
        plan_refuse(plan, 405, "bad-method", allow);
        plan->answer.allow = allow;
        return false;
    }
    *ret_route = route;
    plan->is_write = route->class == TRPI_MANAGEMENT_WRITE;
    bool is_read = strcmp(route->method, "GET") == 0;
    if (!is_read && !trpi_management_origin_is_ours(request->origin, request->host)) {
        plan_refuse(plan, 403, "foreign-origin", "a page of another origin asks for a change");
        return false;
    }
    if (plan->is_write && policy->read_only) { /* routes-R1 */
        plan_refuse(plan, 404, "read-only", NULL);
        return false;
    }
    if (!credentials_judge(policy, request, route, plan)) {
        return false;
    }
    if (rest[0] != '\0' && !address_take(rest, plan->subject)) {
        plan_refuse(plan, 414, "too-long", "the name of the member is too long");
        return false;
    }
    if (rest[0] != '\0' && plan->subject[0] == '\0') {
        plan_refuse(plan, 404, "not-found", "see /openapi.json");
        return false;
    }
    return true;
}

bool
trpi_management_plan_admits(const trpi_management_policy *policy,
                            const trpi_management_request *request, trpi_management_plan *ret_plan)
{
    const trpi_management_route *route = NULL;
    memset(ret_plan, 0, sizeof *ret_plan);
    return plan_judge(policy, request, ret_plan, &route);
}

void
trpi_management_plan_make(const trpi_management_policy *policy,
                          const trpi_management_request *request, trpi_management_plan *ret_plan)
{
    const trpi_management_route *route = NULL;
    memset(ret_plan, 0, sizeof *ret_plan);
    if (!plan_judge(policy, request, ret_plan, &route)) {
        return;
    }
    if (request->transfer_encoding != NULL) {
        plan_refuse(ret_plan, 411, "no-length", "a body needs a Content-Length");
        return;
    }
    if (request->body_bytes > TRPI_MANAGEMENT_BODY_BYTES_MAX) {
        plan_refuse(ret_plan, 413, "too-large", "the body is too large");
        return;
    }
    ret_plan->operation = route->operation;
    command_make(policy, ret_plan, request);
}
