/* node_management.c - see node_management.h.
 *
 * Must hold.
 *   node-management-M1  A request over HTTP becomes a call of the control server's commands, with
 *       the same checks, limits and audit as one of `troupe`.                  (request_ask)
 *   node-management-M2  The server's thread serves only what is answered from memory; other calls
 *       have threads of the control server, which ends them first.             (request_ask)
 *   node-management-M3  A probe of readiness, or a stream of events, is answered also where there
 *       is no control server, or all its threads are busy: these calls have threads of their own,
 *       which end before the health is freed.
 *       (own_begin, trpi_node_management_settle)
 *   node-management-M4  A client that has gone does not keep its call.          (request_cancel)
 * Tests.   tests/system/management.sh
 */
#include "cluster/node/node_management.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "cluster/management/management.h"

#define LISTS_MAX 256u   /* names in one list of management */
#define OWN_CALLS_MAX 8u /* calls with threads of their own; one more is 503 */
#define LINES_BYTES_MAX (64u << 20)

/* A call for the management API, and the question that it answers. */
typedef struct asked {
    trpi_call call; /* first: the control server frees it as a call */
    uint64_t id;
    trp_node *node;
    trpi_buffer lines; /* "\n" and an event, each */
    bool failed;       /* one of them found no memory */
} asked;

/* ---- requests -------------------------------------------------------------------------------- */

/* Gather what comes before the final object: of events, a line each; elsewhere it is progress, for
 * clients that wait. */
static void
asked_emit(trpi_call *call, const char *text, bool final)
{
    asked *a = (asked *)call;
    bool gathers = call->request.command == TRPI_CONTROL_EVENTS;
    if (!final) {
        a->failed =
            a->failed ||
            (gathers && (trpi_buffer_append(&a->lines, "\n", 1, LINES_BYTES_MAX) != TRP_OK ||
                         trpi_buffer_append_text(&a->lines, text, LINES_BYTES_MAX) != TRP_OK));
        return;
    }
    trpi_buffer reply = { 0 };
    if (a->lines.count == 0 || a->failed) {
        trpi_management_reply(call->emit_arg, a->id, a->failed ? trpi_call_no_memory : text);
    } else if (trpi_buffer_append_text(&reply, text, LINES_BYTES_MAX) == TRP_OK &&
               trpi_buffer_append(&reply, a->lines.data, a->lines.count, LINES_BYTES_MAX) ==
                   TRP_OK &&
               trpi_buffer_append(&reply, "", 1, LINES_BYTES_MAX) == TRP_OK) {
        trpi_management_reply(call->emit_arg, a->id, (const char *)reply.data);
    } else {
        trpi_management_reply(call->emit_arg, a->id, trpi_call_no_memory);
    }
    trpi_buffer_fini(&reply);
}

static void
asked_free(asked *a)
{
    trpi_control_request_fini(&a->call.request);
    trpi_buffer_fini(&a->lines);
    trpi_free(a);
}

/* busy: there was no place for it, so nothing was tried. */
static void
refusal_reply(trpi_management *management, uint64_t id, int exit_code, const char *error, bool busy)
{
    char text[1200];
    cJSON *reply = cJSON_CreateObject();
    bool ok = trpi_json_add_bool(reply, "ok", false) &&
              trpi_json_add_i64(reply, "exit", exit_code) &&
              trpi_json_add_text(reply, "error", error) &&
              (!busy || trpi_json_add_bool(reply, "busy", true));
    char *printed = ok ? trpi_json_print(reply) : NULL;
    (void)snprintf(text, sizeof text, "%s", printed != NULL ? printed : trpi_call_no_memory);
    trpi_management_reply(management, id, text);
    cJSON_free(printed);
    cJSON_Delete(reply);
}

/* A thread of its own for one call. */
static void *
own_main(void *arg)
{
    asked *a = arg;
    trp_node *node = a->node;
    node->commands.serve(node, &a->call);
    asked_free(a);
    pthread_mutex_lock(&node->lock);
    node->own_calls--;
    pthread_cond_broadcast(&node->own_ended);
    pthread_mutex_unlock(&node->lock);
    return NULL;
}

/* node-management-M3. Takes a, on success only. */
static trp_err
own_begin(trp_node *node, asked *a)
{
    pthread_t thread;
    pthread_mutex_lock(&node->lock);
    bool fits = node->own_calls < OWN_CALLS_MAX;
    node->own_calls += fits ? 1 : 0;
    pthread_mutex_unlock(&node->lock);
    if (!fits) {
        return TRP_ELIMIT;
    }
    trp_err err = trpi_thread_start(&thread, own_main, a);
    if (err == TRP_OK) {
        (void)pthread_detach(thread);
        return TRP_OK;
    }
    pthread_mutex_lock(&node->lock);
    node->own_calls--;
    pthread_mutex_unlock(&node->lock);
    return err;
}

void
trpi_node_management_settle(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    while (node->own_calls > 0) {
        pthread_cond_wait(&node->own_ended, &node->lock);
    }
    pthread_mutex_unlock(&node->lock);
}

/* Give a call that takes time to a thread. Takes a, on success only. */
static trp_err
slow_begin(trp_node *node, asked *a)
{
    if (a->call.request.command == TRPI_CONTROL_READY ||
        a->call.request.command == TRPI_CONTROL_EVENTS) {
        return own_begin(node, a);
    }
    return node->control != NULL ? trpi_control_run(node->control, &a->call) : TRP_ESTATE;
}

/* node-management-M1, -M2. The management server's thread. */
static void
request_ask(void *arg, trpi_management *management, uint64_t id, const char *command,
            const char *from)
{
    trp_node *node = arg;
    trpi_control_refusal refusal;
    asked *a = trpi_alloc(sizeof *a);
    if (a == NULL) {
        refusal_reply(management, id, TRPI_CTL_EXIT_INTERNAL, "out of memory", false);
        return;
    }
    if (trpi_control_request_parse((const uint8_t *)command, strlen(command), &a->call.request,
                                   &refusal) != TRP_OK) {
        refusal_reply(management, id, refusal.exit, refusal.error, false);
        trpi_free(a);
        return;
    }
    a->id = id;
    a->node = node;
    a->call.emit = asked_emit;
    a->call.emit_arg = management;
    a->call.emit_id = id;
    a->call.control = node->control;
    a->call.world = trpi_system_world(node->system);
    a->call.start_ns = trpi_world_mono_ns(a->call.world);
    a->call.deadline_ns = a->call.start_ns + (uint64_t)a->call.request.timeout_ms * 1000000u;
    (void)snprintf(a->call.by_text, sizeof a->call.by_text, "%s", from);
    trp_err err = TRP_OK;
    if (node->commands.is_quick(&a->call.request)) {
        node->commands.serve(node, &a->call);
    } else if ((err = slow_begin(node, a)) == TRP_OK) {
        return; /* its thread frees it */
    } else {
        refusal_reply(management, id, TRPI_CTL_EXIT_TIMEOUT,
                      err == TRP_ESTATE    ? "this node has no control socket, whose threads "
                                             "such requests need"
                      : err == TRP_ECLOSED ? "the node is stopping"
                                           : "this node is busy with other commands",
                      true);
    }
    asked_free(a);
}

/* node-management-M4. The management server's thread. */
static void
request_cancel(void *arg, trpi_management *management, uint64_t id)
{
    trp_node *node = arg;
    if (node->control != NULL) {
        trpi_control_cancel(node->control, management, id);
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The path of a TLS file: management's own, or remoting's. */
static const char *
tls_file(const trpi_config *config, const char *own, const char *remote)
{
    const char *file = trpi_config_text(config, own);
    return file[0] != '\0' ? file : trpi_config_text(config, remote);
}

static const char *
certificate_file(const trpi_config *config)
{
    return tls_file(config, "management.tls.cert", "remote.tls.cert");
}

/* Does the API speak TLS: always beyond loopback, and on it where a certificate of its own is
 * given? */
static bool
has_tls(const trpi_config *config)
{
    return trpi_config_text(config, "management.tls.cert")[0] != '\0' ||
           !trpi_host_is_loopback(trpi_config_text(config, "management.bind"));
}

bool
trpi_node_management_has_tls(const trp_node *node)
{
    return has_tls(node->config);
}

static trp_err __attribute__((format(printf, 2, 3)))
keys_refuse(trpi_config_error *ret_error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(ret_error->text, sizeof ret_error->text, format, list); /* cut is fine */
    va_end(list);
    return TRP_ECONFIG;
}

trp_err
trpi_node_management_keys(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char *const lists[] = { "management.hosts", "management.readers",
                                         "management.writers" };
    unsigned char address[sizeof(struct in6_addr)];
    const char *bind = trpi_config_text(config, "management.bind");
    if (!trpi_config_bool(config, "management.enabled")) {
        return TRP_OK;
    }
    if (inet_pton(AF_INET, bind, address) != 1 && inet_pton(AF_INET6, bind, address) != 1) {
        return keys_refuse(ret_error, "management.bind: '%s' is no numeric address", bind);
    }
    if (has_tls(config) && (certificate_file(config)[0] == '\0' ||
                            tls_file(config, "management.tls.key", "remote.tls.key")[0] == '\0' ||
                            tls_file(config, "management.tls.ca", "remote.tls.ca")[0] == '\0')) {
        return keys_refuse(ret_error,
                           "management.bind: %s is no loopback address, and beyond loopback the "
                           "management API speaks TLS only: set management.tls.cert, .key and .ca "
                           "(or those of remote.tls)",
                           bind);
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (trpi_config_list_count(config, lists[i]) > LISTS_MAX) {
            return keys_refuse(ret_error, "%s: more than %u", lists[i], LISTS_MAX);
        }
    }
    return TRP_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The cookie that the token of loopback is derived from; "": none. */
static const char *
cookie_of(const trp_node *node)
{
    return node->secrets.is_users ? node->secrets.now : "";
}

static trp_err
tokens_load(const trp_node *node, trpi_management_tokens *ret_tokens,
            char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    static const struct {
        const char *key;
        trpi_management_level level;
    } files[] = { { "management.token-file", TRPI_MANAGEMENT_WRITER },
                  { "management.reader-token-file", TRPI_MANAGEMENT_READER } };
    char token[65];
    trp_err err = TRP_OK;
    memset(ret_tokens, 0, sizeof *ret_tokens);
    for (size_t i = 0; err == TRP_OK && i < sizeof files / sizeof files[0]; i++) {
        const char *path = trpi_config_text(node->config, files[i].key);
        char text[TRPI_MANAGEMENT_WHY_BYTES];
        if (path[0] != '\0') {
            err = trpi_management_tokens_load(ret_tokens, path, files[i].level, text);
        }
        if (err != TRP_OK) {
            (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES, "%s: %s", files[i].key, text);
        }
    }
    bool local = trpi_host_is_loopback(trpi_config_text(node->config, "management.bind"));
    if (err == TRP_OK && local && cookie_of(node)[0] != '\0' &&
        (!trpi_management_token_derive(cookie_of(node), trp_system_name(node->system), token) ||
         trpi_management_tokens_add(ret_tokens, token, 64, TRPI_MANAGEMENT_WRITER) != TRP_OK)) {
        (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES, "OpenSSL makes no digest");
        err = TRP_ECONFIG;
    }
    return err;
}

/* ---- start, reload --------------------------------------------------------------------------- */

static trp_err
start_refuse(trp_node_error *ret_error, trp_err err, const char *why)
{
    (void)snprintf(ret_error->text, sizeof ret_error->text, "management: %s",
                   why); /* cut is fine */
    return err;
}

trp_err
trpi_node_management_check(trp_node *node, trp_node_error *ret_error)
{
    trpi_management_tokens tokens;
    char why[TRPI_MANAGEMENT_WHY_BYTES] = "";
    if (!trpi_config_bool(node->config, "management.enabled")) {
        return TRP_OK;
    }
    trp_err err = trpi_management_check(why);
    err = err == TRP_OK ? tokens_load(node, &tokens, why) : err;
    return err == TRP_OK ? TRP_OK : start_refuse(ret_error, err, why);
}

/* Borrow the texts of a list. */
static size_t
list_take(const trp_node *node, const char *key, const char *ret_list[LISTS_MAX])
{
    size_t count = trpi_config_list_count(node->config, key);
    trpi_assert(count <= LISTS_MAX); /* trpi_node_management_keys() */
    for (size_t i = 0; i < count; i++) {
        ret_list[i] = trpi_config_list_at(node->config, key, i);
    }
    return count;
}

trp_err
trpi_node_management_start(trp_node *node, trp_node_error *ret_error)
{
    const char *hosts[LISTS_MAX], *readers[LISTS_MAX], *writers[LISTS_MAX];
    char why[TRPI_MANAGEMENT_WHY_BYTES] = "";
    const trpi_config *config = node->config;
    if (!trpi_config_bool(config, "management.enabled")) {
        return TRP_OK;
    }
    bool tls = has_tls(config);
    trpi_management_options options = {
        .bind = trpi_config_text(config, "management.bind"),
        .port = (uint16_t)trpi_config_int(config, "management.port"),
        .read_only = trpi_config_bool(config, "management.read-only"),
        .hosts = hosts,
        .hosts_count = list_take(node, "management.hosts", hosts),
        .readers = readers,
        .readers_count = list_take(node, "management.readers", readers),
        .writers = writers,
        .writers_count = list_take(node, "management.writers", writers),
        .cert = tls ? certificate_file(config) : "",
        .key = tls_file(config, "management.tls.key", "remote.tls.key"),
        .ca = tls_file(config, "management.tls.ca", "remote.tls.ca"),
        .connections_max = (uint32_t)trpi_config_int(config, "management.connections-max"),
        .request_ms = (uint32_t)trpi_config_int(config, "management.request-timeout"),
        .streams_max = (uint32_t)trpi_config_int(config, "management.streams-max"),
        .uid = trpi_system_self(node->system)->uid,
        .world = trpi_system_world(node->system),
        .ask = request_ask,
        .cancel = request_cancel,
        .arg = node,
    };
    trp_err err = tokens_load(node, &options.tokens, why);
    err = err == TRP_OK ? trpi_management_open(&options, &node->management, why) : err;
    if (err != TRP_OK) {
        return start_refuse(ret_error, err, why);
    }
    trpi_log(node->system, TRP_LOG_INFO, "node", "management API at %s://%s:%u%s",
             tls ? "https" : "http", options.bind, trpi_management_port(node->management),
             options.read_only ? ", read-only" : "");
    return TRP_OK;
}

bool
trpi_node_management_reload(trp_node *node, char why[TRPI_NODE_RELOAD_BYTES])
{
    trpi_management_tokens tokens;
    char text[TRPI_MANAGEMENT_WHY_BYTES] = "";
    if (node->management == NULL) {
        return true;
    }
    bool tokens_hold = tokens_load(node, &tokens, text) == TRP_OK;
    if (tokens_hold) {
        trpi_management_tokens_set(node->management, &tokens);
    } else {
        (void)snprintf(why, TRPI_NODE_RELOAD_BYTES, "%.*s; the old tokens stay",
                       TRPI_NODE_RELOAD_BYTES - 32, text);
    }
    int64_t wall_ms = trpi_world_wall_ms(trpi_system_world(node->system));
    if (trpi_management_tls_reload(node->management, wall_ms, text) == TRP_OK) {
        return tokens_hold;
    }
    size_t used = tokens_hold ? 0 : strlen(why);
    (void)snprintf(why + used, TRPI_NODE_RELOAD_BYTES - used,
                   "%smanagement.tls: %.*s; the old certificate stays", used > 0 ? "; " : "",
                   TRPI_NODE_RELOAD_BYTES / 2, text); /* cut is fine */
    return false;
}
