/* control_actors.c - send, ask, watch, ping, tree: commands that talk to actors of this node and of
 * others.
 *
 * Shape.   All run on the call's own thread and may block. A path of another node goes over
 *          remoting like any message (Identify, then the message); only `tree` has to be run by
 *          the other node itself (carry.c).
 * Tests.   tests/system/cli.sh, tests/unit/node/node_test.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/inbox.h>
#include <troupe/sharding.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/payload.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"
#include "cluster/node/payload_json.h"

#define TREE_ENTRIES_MAX 10000u
#define PATH_TEXT_BYTES (TRPI_ADDRESS_TEXT_BYTES + TRP_PATH_BYTES_MAX + 32)

/* ---- paths ----------------------------------------------------------------------------------- */

typedef struct target {
    bool remote;                       /* another node's */
    trpi_address address;              /* when it has one */
    char path[TRP_PATH_BYTES_MAX + 1]; /* "/user/a" */
    char text[PATH_TEXT_BYTES];        /* as it goes to resolve: full when remote */
} target;

/* A client over HTTP reaches actors of members only: it must not choose the addresses that this
 * node dials. false: refused. */
static bool
target_is_near(trp_node *node, trpi_call *call, const target *to)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_control_refusal refusal;
    trp_member member;
    if (!to->remote || call->by_text[0] == '\0' ||
        trpi_member_find(node, trpi_address_format(&to->address, text, sizeof text), &member,
                         &refusal)) {
        return true;
    }
    trpi_call_refuse(call, &refusal);
    return false;
}

/* Parse a path; bad syntax is refused. */
static bool
target_parse(trp_node *node, trpi_call *call, const char *text, target *ret_target)
{
    const char *rest = text, *hint = NULL;
    memset(ret_target, 0, sizeof *ret_target);
    if (text[0] != '/') {
        if (trpi_address_parse(text, &ret_target->address, &rest, &hint) != TRP_OK) {
            trpi_call_refuse_text(
                call, TRPI_CTL_EXIT_USAGE, NULL, "'%.256s' is not a path: %s", text,
                hint ? hint : "write /user/NAME or troupe.tcp://system@host:port/user/NAME");
            return false;
        }
        const trpi_address *self = &trpi_system_self(node->system)->address;
        if (strcmp(ret_target->address.protocol, self->protocol) != 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL,
                                  "'%.256s': this node is %s://, no other protocol can be reached",
                                  text, self->protocol);
            return false;
        }
        ret_target->remote = !trpi_address_equal(&ret_target->address, self);
    }
    if (strlen(rest) > TRP_PATH_BYTES_MAX) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "the path is longer than %d bytes",
                              TRP_PATH_BYTES_MAX);
        return false;
    }
    (void)snprintf(ret_target->path, sizeof ret_target->path, "%s", *rest ? rest : "/");
    if (strchr(ret_target->path, '*') || strchr(ret_target->path, '?')) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL,
                              "'%.256s' is a pattern; give the path of one actor", text);
        return false;
    }
    (void)snprintf(ret_target->text, sizeof ret_target->text, "%s",
                   ret_target->remote ? text : ret_target->path);
    return target_is_near(node, call, ret_target);
}

static char *
full_path(trp_node *node, const target *to, trp_ref ref, char *buffer, size_t bytes)
{
    char path[PATH_TEXT_BYTES];
    (void)trp_path(node->system, ref, path, sizeof path);
    if (path[0] == '/') {
        (void)snprintf(buffer, bytes, "%s%s", node->address, path);
    } else if (to->remote) {
        (void)snprintf(buffer, bytes, "%s", to->text);
    } else {
        (void)snprintf(buffer, bytes, "%s", path);
    }
    return buffer;
}

/* Write a hint for a full path without an answer: its node may be no member, or unreachable. "": no
 * hint. */
static void
silence_hint(trp_node *node, const char *path, char *buffer, size_t bytes)
{
    trpi_address address;
    trpi_view view;
    char text[TRPI_ADDRESS_TEXT_BYTES], why[TRPI_VIEW_LINK_BYTES];
    const char *rest = NULL;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    buffer[0] = '\0';
    if (path[0] == '/' || trpi_address_parse(path, &address, &rest, NULL) != TRP_OK ||
        trpi_view_take(node, &view) != TRP_OK) {
        return;
    }
    (void)trpi_address_format(&address, text, sizeof text);
    if (view.self && trpi_view_find(&view, text, &found, &refusal) != TRP_OK) {
        (void)snprintf(buffer, bytes, "%s is no member of this cluster: troupe members", text);
    } else if (found && !found->m.reachable) {
        (void)snprintf(buffer, bytes, "%s is unreachable: troupe unreachable", text);
    } else if (trpi_remote_problem(node->remote, &address, why, sizeof why)) {
        (void)snprintf(buffer, bytes, "%s: troupe peers", why);
    }
    trpi_view_fini(&view);
}

/* A call whose client has gone, or whose node ends, waits for nothing. */
static trpi_patience
patience_of(trpi_call *call)
{
    return (trpi_patience){ .timeout_ms = trpi_call_left_ms(call),
                            .is_wanted = trpi_call_is_wanted,
                            .arg = call };
}

static void
refuse_err(trp_node *node, trpi_call *call, trp_err err, const char *path)
{
    if (err == TRP_ECANCELED) { /* its time is over, or the node ends; else nobody reads this */
        err = trpi_call_left_ms(call) == 0 ? TRP_ETIMEDOUT : TRP_ECLOSED;
    }
    char hint[TRPI_ADDRESS_TEXT_BYTES + 256];
    trpi_address address;
    const char *rest = NULL;
    switch (err) {
    case TRP_ENOENT:
        if (path[0] != '/' && trpi_address_parse(path, &address, &rest, NULL) == TRP_OK) {
            (void)snprintf(hint, sizeof hint, "troupe tree %.*s/user", (int)(rest - path), path);
        } else {
            (void)snprintf(hint, sizeof hint, "troupe tree /user");
        }
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NOT_FOUND, hint, "no actor at %s", path);
        return;
    case TRP_ETIMEDOUT:
        silence_hint(node, path, hint, sizeof hint);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, hint[0] ? hint : NULL,
                              "no answer from %s in %u ms", path, call->request.timeout_ms);
        return;
    case TRP_ECLOSED:
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
        return;
    default:
        trpi_call_refuse_text(call, trpi_ctl_exit_of(err), NULL, "%s: %s", path, trp_strerror(err));
        return;
    }
}

static bool
target_resolve(trp_node *node, trpi_call *call, target *ret_target, trp_ref *ret_ref)
{
    if (!target_parse(node, call, call->request.path, ret_target)) {
        return false;
    }
    const trpi_patience patience = patience_of(call);
    trp_err err =
        patience.timeout_ms > 0
            ? trpi_system_resolve_whole(node->system, ret_target->text, &patience, ret_ref)
            : TRP_ETIMEDOUT;
    if (err != TRP_OK) {
        refuse_err(node, call, err, ret_target->text);
        return false;
    }
    return true;
}

/* ---- send and ask ---------------------------------------------------------------------------- */

typedef struct message {
    const trp_type *type;
    const void *payload;
    size_t bytes;
    void *owned; /* NULL: borrowed from the request */
} message;

static bool
message_make(trpi_call *call, message *ret_message)
{
    const trpi_control_request *request = &call->request;
    char what[256];
    char why[TRPI_OUTSIDE_WHY_BYTES];
    const char *name = request->type;
    memset(ret_message, 0, sizeof *ret_message);
    trp_err known = trpi_type_from_outside(name, &ret_message->type, why);
    if (known != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_DATA,
                              known == TRP_ENOTYPE
                                  ? "string, json, bytes, or a type that a plugin registered"
                                  : "troupe stop, kill and restart are orders to an actor",
                              "%s", why);
        return false;
    }
    if (request->payload && ret_message->type != &trp_bytes_type) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_DATA, NULL,
                              "'base64' is for messages of type bytes, not of %.128s", name);
        return false;
    }
    if (ret_message->type == &trp_bytes_type) {
        ret_message->payload = request->payload ? (const void *)request->payload : request->text;
        ret_message->bytes = request->payload ? request->payload_bytes : strlen(request->text);
        return true;
    }
    trp_err err = trpi_payload_from_json(ret_message->type, request->text, &ret_message->owned,
                                         &ret_message->bytes, what, sizeof what);
    if (err != TRP_OK) {
        trpi_call_refuse_text(call, err == TRP_ENOMEM ? TRPI_CTL_EXIT_INTERNAL : TRPI_CTL_EXIT_DATA,
                              NULL, "%s", what);
        return false;
    }
    ret_message->payload = ret_message->owned;
    return true;
}

/* A tell has no answer, so a message that is known to be too large is refused before it is sent. */
static bool
fits_frame(const trp_node *node, trpi_call *call, const target *to, const message *m)
{
    int64_t limit = trpi_config_int(node->config, "remote.maximum-frame-size");
    if (!to->remote || (int64_t)m->bytes <= limit) {
        return true;
    }
    trpi_call_refuse_text(call, TRPI_CTL_EXIT_DATA, NULL,
                          "%s: message too large: %zu bytes, remote.maximum-frame-size is %lld",
                          to->text, m->bytes, (long long)limit);
    return false;
}

/* Answer an ask. */
static void
reply_give(trp_node *node, trpi_call *call, const char *from, double elapsed_ms,
           const trp_msg *answer)
{
    cJSON *reply = trpi_call_reply(), *value = trpi_payload_to_json(node->system, answer);
    (void)trpi_json_add_text(reply, "from", from);
    (void)cJSON_AddNumberToObject(reply, "elapsedMs", elapsed_ms);
    if (!value || !cJSON_AddItemToObject(reply, "reply", value)) {
        cJSON_Delete(value);
        cJSON_Delete(reply);
        reply = NULL;
    }
    trpi_call_answer(call, reply);
}

/* The trace that a message from outside continues; NULL: none. */
static const trp_trace *
trace_of(const trpi_call *call)
{
    return call->request.has_trace ? &call->request.trace : NULL;
}

/* ---- entities: a path without a host (FUTURE-20) --------------------------------------------- */

#define ENTITY_PREFIX "/cluster/"

static bool
is_entity_path(const char *path)
{
    return strncmp(path, ENTITY_PREFIX, strlen(ENTITY_PREFIX)) == 0;
}

/* Read the path of an entity whose type is started on this node; else it is refused. */
static bool
entity_parse(trp_node *node, trpi_call *call, const char *what, trp_entity *ret_entity)
{
    const char *path = call->request.path, *name = path + strlen(ENTITY_PREFIX);
    char type[TRP_ENTITY_TYPE_BYTES_MAX + 1];
    trpi_sharding_place place;
    if (trp_entity_parse(path, ret_entity) != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE,
                              "write /cluster/TYPE/ID; other bytes of the ID are %XX",
                              "'%.256s' is no path of an entity", path);
        return false;
    }
    (void)snprintf(type, sizeof type, "%.*s", (int)strcspn(name, "/"), name);
    if (trpi_sharding_find(node->system, type, ret_entity->id, ret_entity->id_bytes, &place) !=
        TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NOT_FOUND, "troupe shards",
                              "no type of entities '%s' is started on this node", type);
        return false;
    }
    if (trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, what);
        return false;
    }
    return true;
}

static void
entity_send(trp_node *node, trpi_call *call, const message *m)
{
    trp_entity entity;
    if (!entity_parse(node, call, "send", &entity)) {
        return;
    }
    trp_err err = trpi_system_entity_tell(node->system, &entity, trace_of(call), m->type,
                                          m->payload, m->bytes);
    if (err != TRP_OK) {
        refuse_err(node, call, err, call->request.path);
        return;
    }
    cJSON *reply = trpi_call_reply();
    (void)trpi_json_add_text(reply, "path", call->request.path);
    trpi_call_answer(call, reply);
}

static void
entity_ask(trp_node *node, trpi_call *call, const message *m)
{
    const char *path = call->request.path;
    trp_entity entity;
    trp_msg *answer = NULL;
    if (!entity_parse(node, call, "ask", &entity)) {
        return;
    }
    uint64_t before_ns = trpi_call_elapsed_ns(call);
    const trpi_patience patience = patience_of(call);
    trp_err err = patience.timeout_ms == 0
                      ? TRP_ETIMEDOUT
                      : trpi_system_entity_ask(node->system, &entity, trace_of(call), m->type,
                                               m->payload, m->bytes, &patience, &answer);
    if (err == TRP_ETIMEDOUT || err == TRP_ECLOSED || err == TRP_ECANCELED) {
        refuse_err(node, call, err, path);
    } else if (err != TRP_OK) {
        trpi_call_refuse_text(call, err == TRP_EDATA ? TRPI_CTL_EXIT_DATA : TRPI_CTL_EXIT_NO, NULL,
                              "%s refused: %s", path, trp_strerror(err));
    } else {
        double elapsed_ms = (double)(trpi_call_elapsed_ns(call) - before_ns) / 1e6;
        reply_give(node, call, path, elapsed_ms, answer);
    }
    trp_msg_free(answer);
}

/* ---- actors ---------------------------------------------------------------------------------- */

void
trpi_node_serve_send(trp_node *node, trpi_call *call)
{
    target to;
    trp_ref ref, nobody = TRP_REF_NONE;
    message m;
    char path[PATH_TEXT_BYTES];
    if (!message_make(call, &m)) {
        return;
    }
    if (is_entity_path(call->request.path)) {
        entity_send(node, call, &m);
        trpi_free(m.owned);
        return;
    }
    bool may = target_resolve(node, call, &to, &ref) && fits_frame(node, call, &to, &m);
    if (may && trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, "send");
    } else if (may) {
        trp_system_tell_traced(node->system, ref, nobody, trace_of(call), m.type, m.payload,
                               m.bytes);
        cJSON *reply = trpi_call_reply();
        (void)trpi_json_add_text(reply, "path", full_path(node, &to, ref, path, sizeof path));
        trpi_call_answer(call, reply);
    }
    trpi_free(m.owned);
}

/* Refuse with the text of a status failure. */
static void
refuse_failure(trp_node *node, trpi_call *call, trp_err err, const char *path,
               const trp_msg *answer)
{
    char reason[sizeof(((trp_status_failure *)0)->reason) + 1] = "";
    if (answer && trp_msg_is(answer, &trp_status_failure_type) &&
        trp_msg_bytes(answer) == sizeof(trp_status_failure)) {
        const trp_status_failure *failure = trp_msg_payload(answer);
        memcpy(reason, failure->reason, sizeof failure->reason);
    }
    if (!answer) { /* the actor did not fail: its node cannot be reached */
        refuse_err(node, call, err, path);
    } else {
        int code = err == TRP_EDATA ? TRPI_CTL_EXIT_DATA : TRPI_CTL_EXIT_NO;
        trpi_call_refuse_text(call, code, NULL, "%s refused: %s%s%s", path,
                              *reason ? reason : trp_strerror(err), *reason ? ": " : "",
                              *reason ? trp_strerror(err) : "");
    }
}

void
trpi_node_serve_ask(trp_node *node, trpi_call *call)
{
    target to;
    trp_ref ref;
    message m;
    trp_msg *answer = NULL;
    char path[PATH_TEXT_BYTES], from[PATH_TEXT_BYTES + 32];
    if (!message_make(call, &m)) {
        return;
    }
    if (is_entity_path(call->request.path)) {
        entity_ask(node, call, &m);
        trpi_free(m.owned);
        return;
    }
    bool may = target_resolve(node, call, &to, &ref);
    if (may && trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, "ask");
        may = false;
    }
    if (!may) {
        trpi_free(m.owned);
        return;
    }
    uint64_t before_ns = trpi_call_elapsed_ns(call);
    const trpi_patience patience = patience_of(call);
    trp_err err = patience.timeout_ms > 0
                      ? trpi_system_ask_whole(node->system, ref, m.type, m.payload, m.bytes,
                                              trace_of(call), &patience, &answer)
                      : TRP_ETIMEDOUT;
    double elapsed_ms = (double)(trpi_call_elapsed_ns(call) - before_ns) / 1e6;
    (void)full_path(node, &to, ref, path, sizeof path);
    if (err != TRP_OK) {
        refuse_failure(node, call, err, path, answer);
    } else {
        (void)snprintf(from, sizeof from, "%s#%llu", path,
                       (unsigned long long)ref.generation << 32 | ref.slot);
        reply_give(node, call, from, elapsed_ms, answer);
    }
    trp_msg_free(answer);
    trpi_free(m.owned);
}

/* ---- watch ----------------------------------------------------------------------------------- */

#define WATCH_LOOK_MS 200u /* is the client still there? */

/* Wait for the end of the actor that the inbox watches. TRP_ETIMEDOUT: it lives on. */
static trp_err
end_wait(trpi_call *call, trp_inbox *inbox, trp_terminated *ret_end)
{
    for (;;) {
        uint32_t left_ms = trpi_call_left_ms(call);
        trp_msg *msg = NULL;
        trp_ref sender;
        trp_err err = trp_inbox_receive(inbox, left_ms < WATCH_LOOK_MS ? left_ms : WATCH_LOOK_MS,
                                        &msg, &sender);
        bool ends = err == TRP_OK && trp_msg_is(msg, &trp_terminated_type);
        if (ends) {
            *ret_end = *(const trp_terminated *)trp_msg_payload(msg);
        }
        trp_msg_free(msg);
        if (ends || (err != TRP_OK && (err != TRP_ETIMEDOUT || left_ms == 0))) {
            return err;
        }
        if (trpi_call_wanted(call) != TRP_OK) {
            return trpi_call_left_ms(call) == 0 ? TRP_ETIMEDOUT
                   : trpi_call_ends(call)       ? TRP_ECLOSED
                                                : TRP_ECANCELED;
        }
    }
}

void
trpi_node_serve_watch(trp_node *node, trpi_call *call)
{
    target to;
    trp_ref ref;
    trp_inbox *inbox = NULL;
    trp_terminated end = { 0 };
    char path[PATH_TEXT_BYTES];
    if (!target_resolve(node, call, &to, &ref)) {
        return;
    }
    (void)full_path(node, &to, ref, path, sizeof path);
    trp_err err = trp_inbox_open(node->system, NULL, &inbox);
    err = err == TRP_OK ? trp_inbox_watch(inbox, ref) : err;
    if (err == TRP_OK) {
        trpi_call_progress(call, "watching %s", path);
        err = end_wait(call, inbox, &end);
    }
    trp_inbox_close(inbox);
    if (err == TRP_ETIMEDOUT) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL, "%s lives after %u ms", path,
                              call->request.timeout_ms);
    } else if (err != TRP_OK) {
        refuse_err(node, call, err, path);
    } else {
        cJSON *reply = trpi_call_reply();
        bool ok = trpi_json_add_text(reply, "path", path) &&
                  trpi_json_add_bool(reply, "addressTerminated", end.address_terminated != 0) &&
                  trpi_call_add_elapsed(call, reply);
        trpi_call_answer_if(call, ok, reply);
    }
}

/* ---- topics ---------------------------------------------------------------------------------- */

void
trpi_node_serve_publish(trp_node *node, trpi_call *call)
{
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    const char *topic = call->request.path;
    trp_publish_report report;
    trp_mediator *mediator;
    message m;
    if (!message_make(call, &m)) {
        return;
    }
    options.timeout_ms = trpi_call_left_ms(call);
    if (options.timeout_ms > TRP_PUBLISH_TIMEOUT_MS_MAX) {
        options.timeout_ms = TRP_PUBLISH_TIMEOUT_MS_MAX;
    }
    trp_err err = trpi_call_wanted(call);
    if (err != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, "publish");
        trpi_free(m.owned);
        return;
    }
    err = options.timeout_ms == 0 ? TRP_ETIMEDOUT : trp_mediator_of(node->system, NULL, &mediator);
    err = err != TRP_OK ? err
                        : trp_mediator_publish_wait(mediator, topic, &options, m.type, m.payload,
                                                    m.bytes, &report);
    trpi_free(m.owned);
    if (err == TRP_EROLE) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO,
                              "ask a node that has the role: troupe members --role ROLE",
                              "this node has no mediator: it does not have cluster.pub-sub.role");
    } else if (topic[0] == '\0' || strlen(topic) > TRP_TOPIC_BYTES_MAX) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "a topic has 1 to %u bytes",
                              TRP_TOPIC_BYTES_MAX);
    } else if (err != TRP_OK) {
        refuse_err(node, call, err, topic);
    } else {
        cJSON *reply = trpi_call_reply();
        bool ok = trpi_json_add_text(reply, "topic", topic) &&
                  trpi_json_add_i64(reply, "delivered", (int64_t)report.delivered) &&
                  trpi_json_add_i64(reply, "nodes", report.nodes) &&
                  trpi_json_add_i64(reply, "silent", report.silent);
        trpi_call_answer_if(call, ok, reply);
    }
}

/* ---- ping ------------------------------------------------------------------------------------ */

void
trpi_node_serve_ping(trp_node *node, trpi_call *call)
{
    target to;
    trp_ref ref;
    char text[PATH_TEXT_BYTES], path[PATH_TEXT_BYTES];
    const char *given = call->request.path, *slash = strstr(given, "://");
    slash = strchr(slash ? slash + 3 : given, '/');
    if (!slash) { /* a member: its guardian of user actors answers */
        trp_member member;
        trpi_control_refusal refusal;
        if (!trpi_member_find(node, given, &member, &refusal)) {
            trpi_call_refuse(call, &refusal);
            return;
        }
        (void)snprintf(text, sizeof text, "%s/user", member.address);
        call->request.path = text;
    }
    if (target_resolve(node, call, &to, &ref)) {
        double elapsed_ms = (double)trpi_call_elapsed_ns(call) / 1e6;
        cJSON *reply = trpi_call_reply();
        (void)trpi_json_add_text(reply, "from", full_path(node, &to, ref, path, sizeof path));
        (void)cJSON_AddNumberToObject(reply, "elapsedMs", elapsed_ms);
        trpi_call_answer(call, reply);
    }
    call->request.path = given;
}

/* ---- stop, kill, restart --------------------------------------------------------------------- */

void
trpi_node_serve_stop(trp_node *node, trpi_call *call)
{
    target to;
    trp_ref ref;
    char path[PATH_TEXT_BYTES];
    const char *given = strstr(call->request.path, "/user/");
    if (given == NULL || given[strlen("/user/")] == '\0') {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "troupe tree /user",
                              "only actors below /user are stopped, killed or restarted, not %s",
                              call->request.path);
        return;
    }
    if (!target_resolve(node, call, &to, &ref)) {
        return;
    }
    if (trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, call->request.action);
        return;
    }
    bool restarts = strcmp(call->request.action, "restart") == 0;
    if (restarts && ref.node != TRPI_NODE_SELF) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "run it on that node",
                              "%s is an actor of another node: restarts are ordered on its own",
                              call->request.path);
        return;
    }
    if (!call->request.dry_run && restarts) {
        trpi_system_restart_actor(node->system, ref);
    } else if (!call->request.dry_run && strcmp(call->request.action, "kill") == 0) {
        trp_system_tell(node->system, ref, &trp_kill_type, NULL, 0);
    } else if (!call->request.dry_run) {
        trp_system_stop_actor(node->system, ref);
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "path", full_path(node, &to, ref, path, sizeof path)) &&
              trpi_json_add_text(reply, "action", call->request.action) &&
              trpi_json_add_bool(reply, "dryRun", call->request.dry_run);
    trpi_call_answer_if(call, ok, reply);
}

/* ---- tree ------------------------------------------------------------------------------------ */

typedef struct tree_row {
    char *path;
    char behaviour[64];
    uint64_t processed;
    uint32_t depth, restarts, children, pending;
    bool active, suspended;
} tree_row;

typedef struct tree {
    tree_row *rows;
    uint32_t count, room;
    bool truncated, no_memory;
} tree;

static int
tree_take(void *arg, const trp_tree_entry *entry)
{
    tree *t = arg;
    trp_err err =
        trpi_array_reserve(&t->rows, t->count, &t->room, sizeof *t->rows, 1, TREE_ENTRIES_MAX);
    if (err != TRP_OK) {
        t->truncated = err == TRP_ELIMIT;
        t->no_memory = err == TRP_ENOMEM;
        return 1;
    }
    tree_row *row = &t->rows[t->count];
    memset(row, 0, sizeof *row);
    row->path = trpi_strdup(entry->path);
    if (!row->path) {
        t->no_memory = true;
        return 1;
    }
    (void)snprintf(row->behaviour, sizeof row->behaviour, "%s",
                   entry->behaviour ? entry->behaviour : "");
    row->processed = entry->processed;
    row->depth = entry->depth;
    row->restarts = entry->restarts;
    row->children = entry->children;
    row->pending = entry->pending;
    row->active = entry->active != 0;
    row->suspended = entry->suspended != 0;
    t->count++;
    return 0;
}

/* Order children by name: '/' sorts before all other characters, so that parents stay before their
 * children. */
static int
row_compare(const void *a, const void *b)
{
    const unsigned char *p = (const unsigned char *)((const tree_row *)a)->path;
    const unsigned char *q = (const unsigned char *)((const tree_row *)b)->path;
    while (*p && *p == *q) {
        p++;
        q++;
    }
    int x = *p == '/' ? 1 : *p ? *p + 1 : 0, y = *q == '/' ? 1 : *q ? *q + 1 : 0;
    return x - y;
}

static bool
row_add(cJSON *list, const tree_row *row)
{
    cJSON *object = cJSON_CreateObject();
    bool ok = trpi_json_add_text(object, "path", row->path) &&
              trpi_json_add_i64(object, "depth", row->depth) &&
              trpi_json_add_text(object, "behaviour", row->behaviour) &&
              trpi_json_add_i64(object, "processed", (int64_t)row->processed) &&
              trpi_json_add_i64(object, "restarts", row->restarts) &&
              trpi_json_add_i64(object, "children", row->children) &&
              trpi_json_add_i64(object, "pending", row->pending) &&
              trpi_json_add_bool(object, "active", row->active) &&
              trpi_json_add_bool(object, "suspended", row->suspended);
    return trpi_json_append(list, object, ok);
}

static void
tree_answer(trp_node *node, trpi_call *call, const target *to, tree *t)
{
    char path[PATH_TEXT_BYTES];
    if (t->count > 0) {
        qsort(t->rows, t->count, sizeof *t->rows, row_compare);
    }
    cJSON *reply = trpi_call_reply();
    (void)snprintf(path, sizeof path, "%s%s", node->address, to->path);
    bool ok = !t->no_memory && trpi_json_add_text(reply, "path", path);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "entries") : NULL;
    for (size_t i = 0; ok && i < t->count; i++) {
        ok = row_add(list, &t->rows[i]);
    }
    ok = ok && trpi_json_add_bool(reply, "truncated", t->truncated);
    trpi_call_answer_if(call, ok, reply);
}

static void
tree_carry(trp_node *node, trpi_call *call, const target *to)
{
    cJSON *request = cJSON_CreateObject(), *reply = NULL;
    bool ok = trpi_json_add_text(request, "cmd", "tree") &&
              trpi_json_add_text(request, "path", to->path) &&
              trpi_json_add_i64(request, "depth", call->request.depth) &&
              trpi_json_add_i64(request, "timeoutMs", trpi_call_left_ms(call));
    char *text = ok ? trpi_json_print(request) : NULL;
    trp_err err = text ? trpi_carry_ask(node->carry, &to->address, text, trpi_call_left_ms(call),
                                        call, &reply)
                       : TRP_ENOMEM;
    cJSON_free(text);
    cJSON_Delete(request);
    /* the lane is not full: the link is down and pauses before it dials again */
    if (err == TRP_EAGAIN) {
        char hint[TRPI_ADDRESS_TEXT_BYTES + 256];
        silence_hint(node, to->text, hint, sizeof hint);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, hint[0] ? hint : NULL,
                              "this node has no connection to the node of %s at the moment",
                              to->text);
        return;
    }
    if (err != TRP_OK) {
        refuse_err(node, call, err, to->text);
        return;
    }
    trpi_call_answer(call, reply); /* the other node's answer as it is, also a refusal */
}

void
trpi_node_serve_tree(trp_node *node, trpi_call *call)
{
    target to;
    tree t = { NULL, 0, 0, false, false };
    if (!target_parse(node, call, call->request.path, &to)) {
        return;
    }
    if (to.remote) {
        tree_carry(node, call, &to);
        return;
    }
    uint32_t left_ms = trpi_call_left_ms(call);
    trp_err err = trp_system_tree(node->system, to.path, call->request.depth, left_ms ? left_ms : 1,
                                  tree_take, &t);
    if (err != TRP_OK) {
        refuse_err(node, call, err, to.path);
    } else {
        tree_answer(node, call, &to, &t);
    }
    for (size_t i = 0; i < t.count; i++) {
        trpi_free(t.rows[i].path);
    }
    trpi_free(t.rows);
}
