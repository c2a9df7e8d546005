/* control_request.c - parses the bytes of a request into a struct in which everything is checked.
 *
 * Must hold.
 *   control-request-I1  Whatever the bytes are, the outcome is a request or a refusal with an exit
 *       code of the contract; nothing is assumed of a peer (tests/fuzz/control_fuzz.c).
 * Limits.  Depth of JSON: TRPI_JSON_DEPTH_MAX. Payload: TRPI_CTL_PAYLOAD_BYTES_MAX.
 * Tests.   tests/unit/node/control_request_test.c, tests/fuzz/control_fuzz.c
 */
#include "cluster/node/control_request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/trace.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/nearest.h"
#include "cluster/node/ctl_proto.h"

static const struct {
    const char *name;
    trpi_control_command command;
    bool slow; /* its default timeout is the long one */
} commands[] = {
    { "version", TRPI_CONTROL_VERSION, false },
    { "members", TRPI_CONTROL_MEMBERS, false },
    { "member-status", TRPI_CONTROL_MEMBER_STATUS, false },
    { "status", TRPI_CONTROL_STATUS, false },
    { "join", TRPI_CONTROL_JOIN, true },
    { "leave", TRPI_CONTROL_LEAVE, true },
    { "down", TRPI_CONTROL_DOWN, true },
    { "drain", TRPI_CONTROL_DRAIN, true },
    { "undrain", TRPI_CONTROL_UNDRAIN, true },
    { "upgrade", TRPI_CONTROL_UPGRADE, true },
    { "spawn", TRPI_CONTROL_SPAWN, false },
    { "watch", TRPI_CONTROL_WATCH, true },
    { "shutdown", TRPI_CONTROL_SHUTDOWN, true },
    { "events", TRPI_CONTROL_EVENTS, false },
    { "send", TRPI_CONTROL_SEND, false },
    { "ask", TRPI_CONTROL_ASK, false },
    { "ping", TRPI_CONTROL_PING, false },
    { "tree", TRPI_CONTROL_TREE, false },
    { "config", TRPI_CONTROL_CONFIG, false },
    { "peers", TRPI_CONTROL_PEERS, false },
    { "fault", TRPI_CONTROL_FAULT, false },
    { "why", TRPI_CONTROL_WHY, false },
    { "reach", TRPI_CONTROL_REACH, true },
    { "singleton", TRPI_CONTROL_SINGLETON, false },
    { "topics", TRPI_CONTROL_TOPICS, false },
    { "publish", TRPI_CONTROL_PUBLISH, false },
    { "shards", TRPI_CONTROL_SHARDS, false },
    { "entity", TRPI_CONTROL_ENTITY, false },
    { "deadletters", TRPI_CONTROL_DEADLETTERS, false },
    { "logs", TRPI_CONTROL_LOGS, false },
    { "doctor", TRPI_CONTROL_DOCTOR, true },
    { "stop", TRPI_CONTROL_STOP, false },
    { "metrics", TRPI_CONTROL_METRICS, false },
    { "ready", TRPI_CONTROL_READY, false },
    { "alive", TRPI_CONTROL_ALIVE, false },
    { "reload", TRPI_CONTROL_RELOAD, false },
    { "trace", TRPI_CONTROL_TRACE, false },
    { "top", TRPI_CONTROL_TOP, false },
    { "dashboard", TRPI_CONTROL_DASHBOARD, false },
    { "senders", TRPI_CONTROL_SENDERS, false },
    { "bridge", TRPI_CONTROL_BRIDGE, false },
};
#define COMMANDS_COUNT (sizeof commands / sizeof commands[0])

static const char *const event_names[] = {
    "MemberJoined",    "MemberWeaklyUp",      "MemberUp",          "MemberLeft",
    "MemberExited",    "MemberDowned",        "MemberRemoved",     "UnreachableMember",
    "ReachableMember", "LeaderChanged",       "RoleLeaderChanged", "SeenChanged",
    "DowningDecision", "ClusterShuttingDown",
};
_Static_assert(sizeof event_names / sizeof event_names[0] == TRPI_CONTROL_EVENT_TYPES,
               "one bit each");

const char *
trpi_control_event_name(unsigned index)
{
    trpi_assert(index < TRPI_CONTROL_EVENT_TYPES);
    return event_names[index];
}

void
trpi_control_refuse(trpi_control_refusal *ret_refusal, int exit_code, const char *format, ...)
{
    va_list list;
    ret_refusal->exit = exit_code;
    ret_refusal->hint[0] = '\0';
    va_start(list, format);
    (void)vsnprintf(ret_refusal->error, sizeof ret_refusal->error, format, list); /* cut is fine */
    va_end(list);
}

static trp_err
field_refuse(trpi_control_refusal *refusal, const char *field, const char *what)
{
    trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "field '%s': %s", field, what);
    return TRP_EINVAL;
}

/* ---- fields: absent is fine, another type is refused by name --------------------------------- */

static trp_err
text_take(const cJSON *json, const char *field, const char **ret_text,
          trpi_control_refusal *refusal)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
    if (!item || cJSON_IsNull(item)) {
        return TRP_OK;
    }
    if (!cJSON_IsString(item)) {
        return field_refuse(refusal, field, "expected a text");
    }
    *ret_text = item->valuestring;
    return TRP_OK;
}

static trp_err
bool_take(const cJSON *json, const char *field, bool *ret_value, trpi_control_refusal *refusal)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
    if (!item || cJSON_IsNull(item)) {
        return TRP_OK;
    }
    if (!cJSON_IsBool(item)) {
        return field_refuse(refusal, field, "expected true or false");
    }
    *ret_value = cJSON_IsTrue(item);
    return TRP_OK;
}

static trp_err
number_take(const cJSON *json, const char *field, uint32_t max, uint32_t *ret_number,
            trpi_control_refusal *refusal)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
    if (!item || cJSON_IsNull(item)) {
        return TRP_OK;
    }
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > (double)max) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "field '%s': expected a number from 0 to %u", field, max);
        return TRP_EINVAL;
    }
    *ret_number = (uint32_t)item->valuedouble;
    return TRP_OK;
}

static trp_err
addresses_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(request->json, "addresses"), *item = NULL;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0) {
        return field_refuse(refusal, "addresses", "expected a list of at least one address");
    }
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item)) {
            return field_refuse(refusal, "addresses", "expected texts");
        }
        if (request->addresses_count == TRPI_CONTROL_ADDRESSES_MAX) {
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "field 'addresses': more than %d",
                                TRPI_CONTROL_ADDRESSES_MAX);
            return TRP_ELIMIT;
        }
        request->addresses[request->addresses_count++] = item->valuestring;
    }
    return TRP_OK;
}

/* Take the incarnations that a plan named, so that the order reaches no others. */
static trp_err
uids_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(request->json, "uids"), *item = NULL;
    if (!list || cJSON_IsNull(list)) {
        return TRP_OK;
    }
    if (request->member || request->unreachable) {
        return field_refuse(refusal, "uids", "it stands without 'member' and 'unreachable'");
    }
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0) {
        return field_refuse(refusal, "uids", "expected a list of at least one uid");
    }
    cJSON_ArrayForEach(item, list)
    {
        if (request->uids_count == TRPI_CONTROL_DOWNS_MAX) {
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "field 'uids': more than %d",
                                TRPI_CONTROL_DOWNS_MAX);
            return TRP_ELIMIT;
        }
        if (!trpi_json_u64(item, &request->uids[request->uids_count++])) {
            return field_refuse(refusal, "uids", "expected decimal uids");
        }
    }
    return TRP_OK;
}

static trp_err
types_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(request->json, "types"), *item = NULL;
    request->event_bits = (1u << TRPI_CONTROL_EVENT_TYPES) - 1;
    if (!list || cJSON_IsNull(list)) {
        return TRP_OK;
    }
    if (!cJSON_IsArray(list)) {
        return field_refuse(refusal, "types", "expected a list of texts");
    }
    request->event_bits = 0;
    cJSON_ArrayForEach(item, list)
    {
        unsigned index = 0;
        if (!cJSON_IsString(item)) {
            return field_refuse(refusal, "types", "expected a list of texts");
        }
        while (index < TRPI_CONTROL_EVENT_TYPES &&
               strcmp(event_names[index], item->valuestring) != 0) {
            index++;
        }
        if (index == TRPI_CONTROL_EVENT_TYPES) {
            const char *near =
                trpi_nearest(item->valuestring, event_names, TRPI_CONTROL_EVENT_TYPES);
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "no such event type '%.64s'%s%s%s",
                                item->valuestring, near ? "; did you mean '" : "", near ? near : "",
                                near ? "'?" : "");
            return TRP_EINVAL;
        }
        request->event_bits |= 1u << index;
    }
    return TRP_OK;
}

/* The trace of a message; one that is not sampled is none. */
static trp_err
traceparent_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const char *text = NULL;
    trp_err err = text_take(request->json, "traceparent", &text, refusal);
    if (err != TRP_OK || text == NULL) {
        return err;
    }
    err = trp_trace_parse(text, &request->trace);
    request->has_trace = err == TRP_OK;
    return err == TRP_EINVAL
               ? field_refuse(refusal, "traceparent", "it is none of W3C Trace Context")
               : TRP_OK;
}

static trp_err
payload_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const char *base64 = NULL;
    trp_err err = text_take(request->json, "base64", &base64, refusal);
    if (err != TRP_OK) {
        return err;
    }
    err = traceparent_take(request, refusal);
    if (err != TRP_OK) {
        return err;
    }
    if (!base64 && !request->text) {
        return field_refuse(refusal, "text", "missing");
    }
    if (base64) {
        err =
            trpi_base64_decode(base64, strlen(base64), &request->payload, &request->payload_bytes);
        if (err != TRP_OK) {
            trpi_control_refuse(refusal, TRPI_CTL_EXIT_DATA, "field 'base64' cannot be decoded");
            return err;
        }
    }
    if (request->payload_bytes > TRPI_CTL_PAYLOAD_BYTES_MAX ||
        (request->text && strlen(request->text) > TRPI_CTL_PAYLOAD_BYTES_MAX)) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_DATA, "the message is larger than %u bytes",
                            TRPI_CTL_PAYLOAD_BYTES_MAX);
        return TRP_EMSGSIZE;
    }
    return TRP_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

static trp_err
command_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    uint32_t version = TRPI_CTL_VERSION;
    const char *name = NULL;
    trp_err err = number_take(request->json, "v", UINT32_MAX, &version, refusal);
    if (err == TRP_OK) {
        err = text_take(request->json, "cmd", &name, refusal);
    }
    if (err != TRP_OK) {
        return err;
    }
    if (version > TRPI_CTL_VERSION) {
        trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE,
                            "the client speaks control protocol %u, this node %d", version,
                            TRPI_CTL_VERSION);
        return TRP_EVERSION;
    }
    if (!name) {
        return field_refuse(refusal, "cmd", "missing");
    }
    const char *names[COMMANDS_COUNT];
    for (size_t i = 0; i < COMMANDS_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(commands[i].name, name) == 0) {
            request->command = commands[i].command;
            request->timeout_ms =
                commands[i].slow ? TRPI_CTL_TIMEOUT_MS_LONG : TRPI_CTL_TIMEOUT_MS_DEFAULT;
            return TRP_OK;
        }
    }
    const char *near = trpi_nearest(name, names, COMMANDS_COUNT);
    trpi_control_refuse(refusal, TRPI_CTL_EXIT_USAGE, "no such command '%.64s'%s%s%s", name,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return TRP_EINVAL;
}

static trp_err
fields_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const cJSON *json = request->json;
    trp_err err =
        number_take(json, "timeoutMs", TRPI_CONTROL_TIMEOUT_MS_MAX, &request->timeout_ms, refusal);
    request->wait = true;
    request->depth = TRPI_CONTROL_DEPTH_DEFAULT;
    const struct {
        const char *field;
        const char **text;
    } texts[] = { { "member", &request->member },      { "path", &request->path },
                  { "type", &request->type },          { "text", &request->text },
                  { "action", &request->action },      { "direction", &request->direction },
                  { "rule", &request->rule },          { "level", &request->level },
                  { "component", &request->component } };
    for (size_t i = 0; err == TRP_OK && i < sizeof texts / sizeof texts[0]; i++) {
        err = text_take(json, texts[i].field, texts[i].text, refusal);
    }
    const struct {
        const char *field;
        bool *value;
    } bools[] = { { "wait", &request->wait },
                  { "dryRun", &request->dry_run },
                  { "unreachable", &request->unreachable },
                  { "cautious", &request->cautious },
                  { "dead", &request->dead },
                  { "snapshot", &request->snapshot },
                  { "prepare", &request->prepare },
                  { "everywhere", &request->everywhere },
                  { "local", &request->local },
                  { "allMembers", &request->all_members },
                  { "rebalance", &request->rebalance },
                  { "follow", &request->follow } };
    for (size_t i = 0; err == TRP_OK && i < sizeof bools / sizeof bools[0]; i++) {
        err = bool_take(json, bools[i].field, bools[i].value, refusal);
    }
    if (err == TRP_OK) {
        err = number_take(json, "depth", 1000, &request->depth, refusal);
    }
    if (err == TRP_OK && request->command == TRPI_CONTROL_SHUTDOWN) {
        err = number_take(json, "keepMs", TRPI_CONTROL_TIMEOUT_MS_MAX, &request->keep_ms, refusal);
    }
    if (err == TRP_OK && request->command == TRPI_CONTROL_PING) {
        err = text_take(json, "target", &request->path, refusal);
    }
    if (err == TRP_OK && request->command == TRPI_CONTROL_FAULT) {
        err = text_take(json, "peer", &request->path, refusal);
    }
    if (err == TRP_OK && request->command == TRPI_CONTROL_UPGRADE) {
        err = text_take(json, "plugin", &request->path, refusal);
    }
    if (err == TRP_OK && request->command == TRPI_CONTROL_SPAWN) {
        err = text_take(json, "plugin", &request->plugin, refusal);
    }
    return err;
}

static bool
is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static trp_err
fault_check(trpi_control_request *request, trpi_control_refusal *refusal)
{
    static const char *const actions[] = { "list", "set", "clear", "disconnect" };
    static const char *const directions[] = { "both", "send", "receive" };
    request->action = request->action ? request->action : actions[0];
    request->direction = request->direction ? request->direction : directions[0];
    if (!is_one_of(request->action, actions, 4)) {
        return field_refuse(refusal, "action", "expected list, set, clear or disconnect");
    }
    if (!is_one_of(request->direction, directions, 3)) {
        return field_refuse(refusal, "direction", "expected send, receive or both");
    }
    bool is_set = strcmp(request->action, "set") == 0;
    if (!request->path && (is_set || strcmp(request->action, "disconnect") == 0)) {
        return field_refuse(refusal, "peer", "missing");
    }
    return is_set && !request->rule ? field_refuse(refusal, "rule", "missing") : TRP_OK;
}

static trp_err
down_check(trpi_control_request *request, trpi_control_refusal *refusal)
{
    trp_err err = uids_take(request, refusal);
    bool whom = request->member || request->unreachable || request->uids_count > 0;
    return err == TRP_OK && !whom ? field_refuse(refusal, "member", "missing") : err;
}

/* Take the place from which on records are wanted. */
static trp_err
records_take(trpi_control_request *request, trpi_control_refusal *refusal)
{
    const cJSON *after = cJSON_GetObjectItemCaseSensitive(request->json, "after");
    trp_err err =
        number_take(request->json, "count", TRPI_CONTROL_RECORDS_MAX, &request->count, refusal);
    if (err == TRP_OK && after != NULL && !cJSON_IsNull(after) &&
        !trpi_json_u64(after, &request->after)) {
        return field_refuse(refusal, "after", "expected the number of a record, as decimal text");
    }
    return err;
}

static trp_err
stop_check(trpi_control_request *request, trpi_control_refusal *refusal)
{
    static const char *const actions[] = { "stop", "kill", "restart" };
    request->action = request->action ? request->action : actions[0];
    if (!is_one_of(request->action, actions, 3)) {
        return field_refuse(refusal, "action", "expected stop, kill or restart");
    }
    return request->path ? TRP_OK : field_refuse(refusal, "path", "missing");
}

static trp_err
trace_check(trpi_control_request *request, trpi_control_refusal *refusal)
{
    static const char *const actions[] = { "show", "list", "start", "stop" };
    request->action = request->action ? request->action : actions[0];
    if (!is_one_of(request->action, actions, 4)) {
        return field_refuse(refusal, "action", "expected show, list, start or stop");
    }
    if (!is_one_of(request->action, actions, 2) && !request->path) {
        return field_refuse(refusal, "path", "missing");
    }
    return number_take(request->json, "oneIn", TRP_TRACE_ONE_IN_MAX, &request->count, refusal);
}

/* Check the level of logs. */
static trp_err
level_check(const trpi_control_request *request, trpi_control_refusal *refusal)
{
    static const char *const levels[] = { "error", "warning", "info", "debug" };
    return request->level == NULL || is_one_of(request->level, levels, 4)
               ? TRP_OK
               : field_refuse(refusal, "level", "expected error, warning, info or debug");
}

/* May the command be one for all members? */
static bool
is_for_all(trpi_control_command command)
{
    return command == TRPI_CONTROL_STATUS || command == TRPI_CONTROL_WHY ||
           command == TRPI_CONTROL_PEERS || command == TRPI_CONTROL_DOCTOR;
}

static trp_err
spawn_check(const trpi_control_request *request, trpi_control_refusal *refusal)
{
    return request->path == NULL     ? field_refuse(refusal, "path", "missing")
           : request->plugin == NULL ? field_refuse(refusal, "plugin", "missing")
                                     : TRP_OK;
}

static trp_err
shards_check(const trpi_control_request *request, trpi_control_refusal *refusal)
{
    return (request->rebalance || request->local) && request->type == NULL
               ? field_refuse(refusal, "type", "missing")
               : TRP_OK;
}

static trp_err
entity_check(const trpi_control_request *request, trpi_control_refusal *refusal)
{
    return request->type == NULL   ? field_refuse(refusal, "type", "missing")
           : request->text == NULL ? field_refuse(refusal, "text", "missing")
                                   : TRP_OK;
}

/* Check that the fields are there that the command needs. */
static trp_err
needs_check(trpi_control_request *request, trpi_control_refusal *refusal)
{
    if (request->all_members && (request->local || !is_for_all(request->command))) {
        return field_refuse(refusal, "allMembers",
                            "only status, why, peers and doctor are answered by all members");
    }
    switch (request->command) {
    case TRPI_CONTROL_JOIN:
        return addresses_take(request, refusal);
    case TRPI_CONTROL_EVENTS:
        return types_take(request, refusal);
    case TRPI_CONTROL_DOWN:
        return down_check(request, refusal);
    case TRPI_CONTROL_PING:
        return request->path ? TRP_OK : field_refuse(refusal, "target", "missing");
    case TRPI_CONTROL_TREE:
        request->path = request->path ? request->path : "/";
        return TRP_OK;
    case TRPI_CONTROL_SEND:
    case TRPI_CONTROL_ASK:
    case TRPI_CONTROL_PUBLISH: /* path: the topic */
        request->type = request->type ? request->type : "string";
        return request->path ? payload_take(request, refusal)
                             : field_refuse(refusal, "path", "missing");
    case TRPI_CONTROL_SPAWN:
        return spawn_check(request, refusal);
    case TRPI_CONTROL_WATCH:
    case TRPI_CONTROL_SENDERS:
        return request->path ? TRP_OK : field_refuse(refusal, "path", "missing");
    case TRPI_CONTROL_FAULT:
        return fault_check(request, refusal);
    case TRPI_CONTROL_STOP:
        return stop_check(request, refusal);
    case TRPI_CONTROL_TRACE:
        return trace_check(request, refusal);
    case TRPI_CONTROL_UPGRADE:
        return request->path ? TRP_OK : field_refuse(refusal, "plugin", "missing");
    case TRPI_CONTROL_VERSION:
    case TRPI_CONTROL_MEMBERS:
    case TRPI_CONTROL_MEMBER_STATUS:
    case TRPI_CONTROL_STATUS:
    case TRPI_CONTROL_LEAVE:
    case TRPI_CONTROL_DRAIN:
    case TRPI_CONTROL_UNDRAIN:
    case TRPI_CONTROL_CONFIG:
    case TRPI_CONTROL_PEERS:
    case TRPI_CONTROL_SHUTDOWN:
    case TRPI_CONTROL_WHY:
    case TRPI_CONTROL_REACH:
    case TRPI_CONTROL_SINGLETON:
    case TRPI_CONTROL_TOPICS:
    case TRPI_CONTROL_DOCTOR:
    case TRPI_CONTROL_METRICS:
    case TRPI_CONTROL_READY:
    case TRPI_CONTROL_ALIVE:
    case TRPI_CONTROL_RELOAD:
    case TRPI_CONTROL_TOP:
    case TRPI_CONTROL_DASHBOARD:
    case TRPI_CONTROL_BRIDGE:
        return TRP_OK;
    case TRPI_CONTROL_LOGS:
        return level_check(request, refusal) != TRP_OK ? TRP_EINVAL
                                                       : records_take(request, refusal);
    case TRPI_CONTROL_DEADLETTERS:
        return records_take(request, refusal);
    case TRPI_CONTROL_SHARDS:
        return shards_check(request, refusal);
    case TRPI_CONTROL_ENTITY:
        return entity_check(request, refusal);
    }
    return TRP_OK;
}

trp_err
trpi_control_request_parse(const uint8_t *body, size_t bytes, trpi_control_request *ret_request,
                           trpi_control_refusal *ret_refusal)
{
    trpi_control_request request;
    size_t offset = 0;
    memset(&request, 0, sizeof request);
    if (trpi_json_parse((const char *)body, bytes, &request.json, &offset) != TRP_OK) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA,
                            "the request is no JSON: error at byte %zu", offset);
        return TRP_EDATA;
    }
    trp_err err = TRP_EDATA;
    if (!cJSON_IsObject(request.json)) {
        trpi_control_refuse(ret_refusal, TRPI_CTL_EXIT_DATA, "the request is no JSON object");
    } else {
        err = command_take(&request, ret_refusal);
        err = err == TRP_OK ? fields_take(&request, ret_refusal) : err;
        err = err == TRP_OK ? needs_check(&request, ret_refusal) : err;
    }
    if (err != TRP_OK) {
        trpi_control_request_fini(&request);
        return err;
    }
    *ret_request = request;
    return TRP_OK;
}

void
trpi_control_request_fini(trpi_control_request *request)
{
    cJSON_Delete(request->json);
    trpi_free(request->payload);
    memset(request, 0, sizeof *request);
}
