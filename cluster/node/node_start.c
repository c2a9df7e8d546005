/* node_start.c - keys of the configuration become options of system and remoting; and stopping.
 *
 * Must hold.
 *   node-start-I1  stopping: membership is silent first, then the management server, then the
 *       actors end (their messages are flushed), then the control server (its calls use the
 *       system, and end because it has ended), then remoting; memory last (trpi_node_stop)
 * Tests.   tests/unit/node/node_test.c
 */
#include "cluster/node/node_start.h"

#include "cluster/node/apps.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <troupe/log.h>

#include "base/assert.h"
#include "base/errno_name.h"
#include "cluster/management/management.h"
#include "cluster/node/health.h"
#include "cluster/node/node_management.h"
#include "cluster/node/otlp.h"
#include "pattern/pattern.h"

trp_err
trpi_node_fail(trp_node_error *ret_error, trp_err err, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(ret_error->text, sizeof ret_error->text, format, list); /* cut is fine */
    va_end(list);
    return err;
}

uint32_t
trpi_node_number(const trp_node *node, const char *key)
{
    int64_t value = trpi_config_int(node->config, key);
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* ---- the actor that notices the end of the system -------------------------------------------- */

typedef struct watchman {
    trp_node *node;
} watchman;

static trp_err
watchman_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static trp_err
watchman_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((watchman *)state)->node, trp_msg_payload(args), sizeof(trp_node *));
    return TRP_OK;
}

/* /system is stopped last: the system was ended by a user of it, or by trp_node_close, which came
 * first. */
static void
watchman_stopped(trp_ctx *ctx, void *state)
{
    (void)ctx;
    trpi_node_end(((watchman *)state)->node, TRP_NODE_TERMINATED);
}

static const trp_behaviour watchman_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "node",
                                                  .version = 1,
                                                  .state_bytes = sizeof(watchman),
                                                  .receive = watchman_receive,
                                                  .pre_start = watchman_start,
                                                  .post_stop = watchman_stopped };

static trp_err
watchman_spawn(trp_node *node)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = "node";
    options.args_type = &trp_bytes_type;
    options.args = &node;
    options.args_bytes = sizeof node;
    return trpi_system_spawn_internal(node->system, &watchman_behaviour, &options, &ref);
}

static void
line_dropped(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

/* A line that this node's log writes. */
static void
line_keep(void *arg, const trp_log_line *line)
{
    trp_node *node = arg;
    trpi_node_log_keep(&node->log_ring, line);
}

/* A line for the opener's log function. */
static void
line_give(void *arg, const trp_log_line *line)
{
    trp_node *node = arg;
    trpi_node_log_keep(&node->log_ring, line);
    node->program_log(node->program_log_arg, line);
}

/* Open the log of the configuration. A check makes no file and no line. */
static trp_err
log_start(trp_node *node, trp_system_options *options, trp_node_error *ret_error)
{
    trp_log_level level = trpi_log_level_parse(trpi_config_text(node->config, "log.level"));
    int format = trpi_log_format_parse(trpi_config_text(node->config, "log.format"));
    const char *file = trpi_config_text(node->config, "log.file");
    bool is_new = node->only_check && *file && access(file, F_OK) != 0;
    if (trpi_node_log_open(&node->log, format, level, file) != TRP_OK) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "log.file %s: %s (%s)", file, strerror(errno),
                              trpi_errno_name(errno));
    }
    node->log_own = true;
    node->log.also = line_keep;
    node->log.also_arg = node;
    options->log = node->only_check ? line_dropped : trpi_node_log_line;
    options->log_arg = &node->log;
    if (is_new) {
        (void)unlink(file);
    }
    return TRP_OK;
}

/* Log each given key that has no effect. */
static void
idle_keys_log(const trp_node *node)
{
    for (size_t i = 0; i < trpi_config_count(node->config); i++) {
        trpi_config_entry entry;
        trpi_config_at(node->config, i, &entry);
        const char *idle = trpi_node_config_idle(&entry);
        if (idle != NULL) {
            trp_system_log(node->system, TRP_LOG_WARNING, "node", "%s: %s has no effect: %s",
                           entry.origin, entry.key, idle);
        }
    }
}

trp_err
trpi_node_system_start(trp_node *node, const trp_node_options *given, trp_node_error *ret_error)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.config = node->config;
    options.fault_trap = given->fault_trap;
    options.log = given->log ? line_give : NULL;
    options.log_arg = node;
    node->program_log = given->log;
    node->program_log_arg = given->log_arg;
    trp_err err = given->log ? TRP_OK : log_start(node, &options, ret_error);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_system_new(trpi_config_text(node->config, "system"), &options, &node->system);
    if (err == TRP_OK) {
        trpi_node_deadletters_start(node);
        node->start_ns = trpi_world_mono_ns(trpi_system_world(node->system));
        err = watchman_spawn(node);
        idle_keys_log(node);
    }
    if (err == TRP_OK && given->log && trpi_config_text(node->config, "log.file")[0] != '\0') {
        trpi_log(node->system, TRP_LOG_WARNING, "node",
                 "log.file is not used: this program takes the lines of the log itself file=%s",
                 trpi_config_text(node->config, "log.file"));
    }
    return err == TRP_OK ? TRP_OK
                         : trpi_node_fail(ret_error, err, "cannot start the actor system: %s",
                                          trp_strerror(err));
}

/* Return why host cannot be part of an address; NULL: it can. */
static const char *
address_hint(const trp_node *node, const char *host)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_address address;
    const char *hint = NULL;
    int length = snprintf(text, sizeof text, strchr(host, ':') ? "%s://%s@[%s]:1" : "%s://%s@%s:1",
                          "troupe.tcp", trp_system_name(node->system), host);
    if (length < 0 || (size_t)length >= sizeof text) {
        return "it is too long";
    }
    return trpi_address_parse(text, &address, NULL, &hint) == TRP_OK ? NULL
           : hint                                                    ? hint
                                                                     : "it is no host name";
}

static trp_err
remote_fail(trp_node *node, const trpi_remote_options *options, trp_err err,
            trp_node_error *ret_error)
{
    const char *host =
        options->bind_host && *options->bind_host ? options->bind_host : options->host;
    int64_t bind_port = trpi_config_int(node->config, "remote.bind-port");
    int port = bind_port >= 0 ? (int)bind_port : (int)options->port;
    const char *hint = address_hint(node, options->host);
    switch (err) {
    case TRP_EADDRINUSE:
        return trpi_node_fail(
            ret_error, err,
            "cannot listen on %s:%d: another program has the port; choose another one with "
            "--port (0: any free one)",
            host, port);
    case TRP_EINVAL:
        if (hint) {
            return trpi_node_fail(ret_error, TRP_ECONFIG,
                                  "remote.hostname '%.253s' cannot be advertised: %s",
                                  options->host, hint);
        }
        return trpi_node_fail(
            ret_error, TRP_EADDRINUSE,
            "cannot listen on %s:%d: that is no address of this host, or no name that "
            "resolves; where the others reach this host by an address that it does not "
            "have itself, say on which one to listen: --bind-host (remote.bind-hostname)",
            host, port);
    default:
        return trpi_node_fail(ret_error, TRP_EADDRINUSE, "cannot listen on %s:%d: %s", host, port,
                              trp_strerror(err));
    }
}

/* "on", "off", or the name of a level. */
static int32_t
lifecycle_log(const char *text)
{
    static const char *const levels[] = { [TRP_LOG_ERROR] = "error",
                                          [TRP_LOG_WARNING] = "warning",
                                          [TRP_LOG_INFO] = "info",
                                          [TRP_LOG_DEBUG] = "debug" };
    for (int32_t i = TRP_LOG_ERROR; i <= TRP_LOG_DEBUG; i++) {
        if (strcmp(text, levels[i]) == 0) {
            return i;
        }
    }
    return strcmp(text, "off") == 0 ? TRPI_LIFECYCLE_OFF : TRPI_LIFECYCLE_EACH;
}

/* remote.when-quarantined = end */
static void
node_quarantined(void *arg)
{
    trpi_node_membership_ended(arg, TRPI_STOP_DOWNED);
}

/* Take the options of failure detectors, redelivery and logging. */
static void
more_options(trp_node *node, trpi_remote_options *options)
{
#define WATCH "remote.watch-failure-detector."
#define LINK "remote.transport-failure-detector."
    options->watch_samples_max = trpi_node_number(node, WATCH "max-sample-size");
    options->watch_deviation_ms = trpi_node_number(node, WATCH "min-std-deviation");
    options->watch_expected_ms = trpi_node_number(node, WATCH "expected-response-after");
    options->link_detector =
        trp_failure_detector_find(trpi_config_text(node->config, LINK "implementation-class"));
    options->watch_detector =
        trp_failure_detector_find(trpi_config_text(node->config, WATCH "implementation-class"));
    options->link_threshold = trpi_config_float(node->config, LINK "threshold");
    options->link_heartbeat_ms = trpi_node_number(node, LINK "heartbeat-interval");
    options->link_pause_ms = trpi_node_number(node, LINK "acceptable-heartbeat-pause");
    options->link_samples_max = trpi_node_number(node, LINK "max-sample-size");
    options->link_deviation_ms = trpi_node_number(node, LINK "min-std-deviation");
#undef WATCH
#undef LINK
    options->resend_ms = trpi_node_number(node, "remote.resend-interval");
    options->give_up_ms = trpi_node_number(node, "remote.give-up-system-message-after");
    options->lifecycle_log =
        lifecycle_log(trpi_config_text(node->config, "remote.log-remote-lifecycle-events"));
    options->log_sent = trpi_config_bool(node->config, "remote.log-sent-messages");
    options->log_received = trpi_config_bool(node->config, "remote.log-received-messages");
    options->log_size_exceeding = trpi_node_number(node, "remote.log-frame-size-exceeding");
    if (strcmp(trpi_config_text(node->config, "remote.when-quarantined"), "end") == 0) {
        options->on_quarantined = node_quarantined;
        options->on_quarantined_arg = node;
    }
    options->test_adapters = trpi_config_bool(node->config, "remote.test-adapters");
    options->adapters_in_address = trpi_config_bool(node->config, "remote.adapters-in-address");
}

/* Take the options that decide which peers may connect: TLS, a cookie. allowed: room for the list
 * of names. */
static trp_err
security_fill(trp_node *node, trpi_remote_options *options, const char **allowed,
              const char **trusted, const char **deployable, char *ciphers, size_t ciphers_bytes,
              trp_node_error *ret_error)
{
    trpi_config_error error = { "" };
    trpi_secrets_use use = node->only_check ? TRPI_SECRETS_CHECK : TRPI_SECRETS_MAKE;
    if (trpi_node_secrets_load(node->config, use, &node->secrets, &error) != TRP_OK) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "%s", error.text);
    }
    node->has_cookie = node->secrets.now[0] != '\0';
    options->cookie = node->secrets.now;
    options->cookie_before = node->secrets.before;
    options->cookie_file = node->secrets.is_users ? node->secrets.file : NULL;
    options->pending_handshakes_max = trpi_node_number(node, "remote.pending-handshakes-max");
    options->unfinished_bytes_max = trpi_node_number(node, "remote.unfinished-frames-max");
    options->peer_watches_max = trpi_node_number(node, "remote.watches-per-peer");
    options->peers_max = trpi_node_number(node, "remote.peers-max");
    options->host_peers_max = trpi_node_number(node, "remote.peers-per-host");
    options->host_nodes_max = trpi_node_number(node, "remote.named-nodes-per-host");
    options->handshake_bytes_max = trpi_node_number(node, "remote.handshake-bytes-max");
    options->tls = strcmp(trpi_config_text(node->config, "remote.transport"), "tls") == 0;
    options->tls_ca = trpi_config_text(node->config, "remote.tls.ca");
    options->tls_cert = trpi_config_text(node->config, "remote.tls.cert");
    options->tls_key = trpi_config_text(node->config, "remote.tls.key");
    options->tls_crl = trpi_config_text(node->config, "remote.tls.crl");
    options->tls_ignore_address = !trpi_config_bool(node->config, "remote.tls.verify-peer-address");
    options->tls_reload_interval_ms = trpi_node_number(node, "remote.tls.reload-interval");
    options->tls_old_end_ms = trpi_node_number(node, "remote.tls.old-connections-end-after");
    options->tls_warn_ms = trpi_node_number(node, "remote.tls.expiry-warning");
    options->tls_allowed_count = trpi_config_list_count(node->config, "remote.tls.allowed-names");
    for (size_t i = 0; i < options->tls_allowed_count; i++) {
        allowed[i] = trpi_config_list_at(node->config, "remote.tls.allowed-names", i);
    }
    options->tls_allowed = allowed;
    options->untrusted = trpi_config_bool(node->config, "remote.untrusted-mode");
    options->trusted_paths_count =
        trpi_config_list_count(node->config, "remote.trusted-selection-paths");
    for (size_t i = 0; i < options->trusted_paths_count; i++) {
        trusted[i] = trpi_config_list_at(node->config, "remote.trusted-selection-paths", i);
    }
    options->trusted_paths = trusted;
    options->deployable_count = trpi_config_list_count(node->config, "remote.deployment-allowed");
    for (size_t i = 0; i < options->deployable_count; i++) {
        deployable[i] = trpi_config_list_at(node->config, "remote.deployment-allowed", i);
    }
    options->deployable = options->deployable_count > 0 ? deployable : NULL;
    size_t at = 0;
    for (size_t i = 0; i < trpi_config_list_count(node->config, "remote.tls.enabled-algorithms");
         i++) {
        int part = snprintf(ciphers + at, ciphers_bytes - at, "%s%s", i > 0 ? ":" : "",
                            trpi_config_list_at(node->config, "remote.tls.enabled-algorithms", i));
        if (part < 0 || (size_t)part >= ciphers_bytes - at) {
            return trpi_node_fail(ret_error, TRP_ECONFIG,
                                  "remote.tls.enabled-algorithms: longer than %zu bytes",
                                  ciphers_bytes - 1);
        }
        at += (size_t)part;
    }
    options->tls_ciphers = ciphers;
    return TRP_OK;
}

/* Check the failure detectors now that extensions may have registered one. */
static trp_err
detectors_check(const trp_node *node, trp_node_error *ret_error)
{
    static const char *const keys[] = {
        "cluster.failure-detector.implementation-class",
        "remote.watch-failure-detector.implementation-class",
        "remote.transport-failure-detector.implementation-class",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *name = trpi_config_text(node->config, keys[i]);
        if (trp_failure_detector_find(name) == NULL) {
            return trpi_node_fail(ret_error, TRP_ECONFIG,
                                  "%s: no failure detector '%s' is registered: phi-accrual and "
                                  "deadline are built in, others are brought by an extension or "
                                  "the program before the node starts",
                                  keys[i], name);
        }
    }
    return TRP_OK;
}

trp_err
trpi_node_remote_start(trp_node *node, trp_node_error *ret_error)
{
    const char *allowed[TRPI_CONFIG_LIST_MAX], *trusted[TRPI_CONFIG_LIST_MAX];
    const char *deployable[TRPI_CONFIG_LIST_MAX];
    char ciphers[512] = "", why[400] = "";
    trpi_remote_options options;
    const char *bind_host = trpi_config_text(node->config, "remote.bind-hostname");
    memset(&options, 0, sizeof options);
    options.host = trpi_config_text(node->config, "remote.hostname");
    options.port = (uint16_t)trpi_node_number(node, "remote.port");
    options.bind_host = *bind_host ? bind_host : NULL;
    options.bind_port = (int32_t)trpi_config_int(node->config, "remote.bind-port");
    options.accepts_later = true; /* node.c: when the plugins have begun */
    if (node->only_check) {
        options.bind_port = 0; /* a running node itself may have it */
    }
    options.handshake_timeout_ms = trpi_node_number(node, "remote.handshake-timeout");
    options.frame_bytes_max = trpi_node_number(node, "remote.maximum-frame-size");
    options.lane_bytes_max = trpi_node_number(node, "remote.lane-buffer-size");
    options.receiver_bytes_max = trpi_node_number(node, "remote.receiver-limit");
    options.receivers_bytes_max = trpi_node_number(node, "remote.receivers-limit");
    options.ordinary_lanes = trpi_node_number(node, "remote.ordinary-lanes");
    options.large_threshold_bytes = trpi_node_number(node, "remote.large-message-threshold");
    options.large_lane_bytes_max = trpi_node_number(node, "remote.large-lane-buffer-size");
    options.lane_idle_ms = trpi_node_number(node, "remote.lane-idle-timeout");
    options.driver = trpi_config_text(node->config, "remote.driver");
    options.compress = strcmp(trpi_config_text(node->config, "remote.compression"), "lz4") == 0;
    options.wire_minor = trpi_node_number(node, "remote.wire-minor");
    options.control_bytes_max = trpi_node_number(node, "remote.control-buffer-size");
    options.system_messages_max = trpi_node_number(node, "remote.system-message-buffer-size");
    options.backoff_min_ms = trpi_node_number(node, "remote.retry-backoff-min");
    options.backoff_max_ms = trpi_node_number(node, "remote.retry-backoff-max");
    options.flush_on_shutdown_ms = trpi_node_number(node, "remote.flush-wait-on-shutdown");
    options.watch_threshold =
        trpi_config_float(node->config, "remote.watch-failure-detector.threshold");
    options.watch_heartbeat_ms =
        trpi_node_number(node, "remote.watch-failure-detector.heartbeat-interval");
    options.watch_pause_ms =
        trpi_node_number(node, "remote.watch-failure-detector.acceptable-heartbeat-pause");
    more_options(node, &options);
    options.why = why;
    options.why_bytes = sizeof why;
    trp_err err = detectors_check(node, ret_error);
    if (err == TRP_OK) {
        err = security_fill(node, &options, allowed, trusted, deployable, ciphers, sizeof ciphers,
                            ret_error);
    }
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_remote_start(node->system, &options, &node->remote);
    if (err == TRP_ECONFIG) {
        return trpi_node_fail(ret_error, err, "remote.transport: %s",
                              *why ? why
                                   : "remote.secure-cookie-before without remote.secure-cookie");
    }
    if (err != TRP_OK) {
        return remote_fail(node, &options, err, ret_error);
    }
    (void)trpi_address_format(trpi_remote_address(node->remote), node->address,
                              sizeof node->address);
    char open[TRPI_COOKIE_FILE_WHY_BYTES];
    if (trpi_node_secret_stands_open(node->config, open)) {
        trp_system_log(node->system, TRP_LOG_WARNING, "node", "%s", open);
    }
    return TRP_OK;
}

/* ---- stopping -------------------------------------------------------------------------------- */

bool
trpi_node_stop(trp_node *node)
{
    if (node->cluster && node->listener) {
        trpi_cluster_unlisten(node->cluster, node->listener);
    }
    if (node->cluster && node->ending.listener) {
        trpi_cluster_unlisten(node->cluster, node->ending.listener);
    }
    bool apps_ended = trpi_apps_stop(node);
    trpi_seed_dns_stop(node->seed_dns);
    node->seed_dns = NULL;
    trpi_cluster_stop(node->cluster);
    trpi_management_stop(node->management); /* its calls are the control server's */
    trpi_otlp_stop(node->otlp);             /* while paths are known */
    bool ended = true;
    if (node->system) {
        uint32_t timeout_ms =
            trpi_shutdown_timeout_ms(node->system, TRP_SHUTDOWN_ACTOR_SYSTEM_TERMINATE);
        timeout_ms = timeout_ms == 0 ? TRPI_NODE_STOP_MS : timeout_ms; /* no phases yet */
        trp_err err = trp_system_stop(node->system, timeout_ms);
        ended = err == TRP_OK;
        if (!ended) {
            trp_system_log(node->system, TRP_LOG_ERROR, "node",
                           "phase " TRP_SHUTDOWN_ACTOR_SYSTEM_TERMINATE
                           ": actors are left after %u ms: %s; no plugin is ended, and the node "
                           "leaks: its memory is not given back",
                           timeout_ms, trp_strerror(err));
        }
    }
    trpi_control_close(node->control, TRPI_NODE_LINGER_MS, TRPI_NODE_FLUSH_MS);
    node->control = NULL;
    trpi_node_management_settle(node); /* these calls have threads of their own */
    trpi_otlp_free(node->otlp);        /* which both kinds of calls count */
    node->otlp = NULL;
    trpi_management_free(node->management);
    node->management = NULL;
    trpi_health_stop(node->health);
    trpi_remote_stop(node->remote);
    ended = ended && apps_ended;
    /* actors that are left may use it, and the system, which leaks itself: node-start-I1 */
    if (ended) {
        trpi_cluster_free(node->cluster);
    }
    if (apps_ended) {
        trp_system_free(node->system);
    }
    if (ended) {
        trpi_health_free(node->health);
        trpi_apps_free(node);
    }
    return ended;
}
