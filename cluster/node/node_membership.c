/* node_membership.c - keys of the configuration become options of the membership.
 *
 * Tests.   tests/unit/node/node_test.c, config_test.c
 */
#include "cluster/node/node_start.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The cluster's thread. */
static void
membership_stopped(void *arg, trpi_member_stop why)
{
    trpi_node_membership_ended(arg, why);
}

/* A thread of the system: a type of entities is started with other shards elsewhere. */
static void
type_refused(void *arg, const char *type, const char *why)
{
    (void)type;
    (void)why; /* logged */
    trpi_node_refused(arg);
}

/* cluster.role.NAME.min-nr-of-members */
static trp_err
role_minima_take(const trp_node *node, trpi_member_options *options, trp_node_error *ret_error)
{
    static const char before[] = "cluster.role.", after[] = ".min-nr-of-members";
    for (size_t i = 0; i < trpi_config_count(node->config); i++) {
        trpi_config_entry entry;
        trpi_config_at(node->config, i, &entry);
        size_t bytes = strlen(entry.key), frame = sizeof before - 1 + sizeof after - 1;
        if (strncmp(entry.key, before, sizeof before - 1) != 0 || bytes <= frame) {
            continue;
        }
        trpi_role_minimum *minimum = &options->role_minima[options->role_minima_count];
        if (options->role_minima_count == TRPI_ROLE_MINIMA_MAX ||
            bytes - frame >= sizeof minimum->role) {
            return trpi_node_fail(
                ret_error, TRP_ECONFIG, "%s: %s: at most %u roles with names up to %zu bytes",
                entry.origin, entry.key, TRPI_ROLE_MINIMA_MAX, sizeof minimum->role - 1);
        }
        memcpy(minimum->role, entry.key + sizeof before - 1, bytes - frame);
        minimum->members = trpi_node_number(node, entry.key);
        options->role_minima_count++;
    }
    return TRP_OK;
}

/* Take the role of a strategy: each has a key of its own. */
static trp_err
downing_role_take(const trp_node *node, trpi_member_options *options, trp_node_error *ret_error)
{
    static const char *const with_role[] = { "keep-majority", "static-quorum", "keep-oldest",
                                             "lease" };
    for (size_t i = 0; i < sizeof with_role / sizeof with_role[0]; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "cluster.downing.%s.role", with_role[i]);
        const char *role = trpi_config_text(node->config, key);
        if (strlen(role) >= sizeof options->downing.role) {
            return trpi_node_fail(ret_error, TRP_ECONFIG, "%s: longer than %zu bytes", key,
                                  sizeof options->downing.role - 1);
        }
        if (strcmp(options->downing_strategy, with_role[i]) == 0) {
            memcpy(options->downing.role, role, strlen(role) + 1);
        }
    }
    return TRP_OK;
}

static trp_err
referee_take(const trp_node *node, trpi_member_options *options, trp_node_error *ret_error)
{
    static const char key[] = "cluster.downing.keep-referee.address";
    const char *text = trpi_config_text(node->config, key);
    const char *wrong = "";
    if (text[0] == '\0') { /* another strategy (node_check.c) */
        return TRP_OK;
    }
    if (trpi_address_parse(text, &options->downing.referee, NULL, &wrong) != TRP_OK) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "%s: %s", key, wrong);
    }
    return TRP_OK;
}

void
trpi_node_downing_times(const trp_node *node, trpi_downing_options *downing)
{
    downing->stable_after_ms = trpi_node_number(node, "cluster.downing.stable-after");
    downing->removal_margin_ms = trpi_node_number(node, "cluster.down-removal-margin");
    downing->unstable_after_ms = trpi_node_number(node, "cluster.downing.down-all-when-unstable");
    downing->auto_down_after_ms = trpi_node_number(node, "cluster.downing.auto-down-after");
    downing->quorum_size = trpi_node_number(node, "cluster.downing.static-quorum.quorum-size");
    downing->least_nodes =
        trpi_node_number(node, "cluster.downing.keep-referee.down-all-if-less-than-nodes");
    downing->lease_minority_delay_ms =
        trpi_node_number(node, "cluster.downing.lease.acquire-lease-delay-for-minority");
    downing->lease_release_after_ms = trpi_node_number(node, "cluster.downing.lease.release-after");
    downing->lease_timeout_ms = trpi_node_number(node, "cluster.downing.lease.operation-timeout");
}

static trp_err
downing_fill(const trp_node *node, trpi_member_options *options, trp_node_error *ret_error)
{
    trpi_downing_options *downing = &options->downing;
    options->downing_strategy = trpi_config_text(node->config, "cluster.downing.active-strategy");
    trpi_node_downing_times(node, downing);
    downing->keep_lone_oldest =
        !trpi_config_bool(node->config, "cluster.downing.keep-oldest.down-if-alone");
    trp_err err = downing_role_take(node, options, ret_error);
    return err != TRP_OK ? err : referee_take(node, options, ret_error);
}

/* Fill in the settings that all members must share: with different downing strategies both sides of
 * a partition may stay; a node without the secret of the others could not be reached by a third
 * one. The name of the system is part of every address. */
static trp_err
compat_fill(const trp_node *node, trpi_compat *ret_compat, trp_node_error *ret_error)
{
    static const char *const keys[] = {
        "cluster.downing.%s.role",          "cluster.downing.%s.quorum-size",
        "cluster.downing.%s.down-if-alone", "cluster.downing.%s.address",
        "cluster.downing.%s.name",          "cluster.downing.%s.down-all-if-less-than-nodes"
    };
    static const char strategy_key[] = "cluster.downing.active-strategy";
    const char *strategy = trpi_config_text(node->config, strategy_key);
    char secrets[TRPI_REMOTE_SECRETS_BYTES];
    trp_err err = trpi_compat_add(ret_compat, strategy_key, strategy);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && err == TRP_OK; i++) {
        char key[TRPI_COMPAT_KEY_BYTES + 64];
        trpi_config_entry entry;
        (void)snprintf(key, sizeof key, keys[i], strategy);
        if (trpi_config_find(node->config, key, &entry) && entry.row != NULL) {
            err = trpi_compat_add(ret_compat, key, entry.values[0]);
        }
    }
    if (err == TRP_OK) {
        err = trpi_remote_secrets_digest(node->secrets.now, node->secrets.before, secrets);
    }
    if (err == TRP_OK) {
        err = trpi_compat_add(ret_compat, TRPI_NODE_COOKIE_KEY, secrets);
    }
    return err == TRP_OK
               ? TRP_OK
               : trpi_node_fail(ret_error, err, "%s: %s", strategy_key, trp_strerror(err));
}

static trp_err
member_options_fill(const trp_node *node, trpi_member_options *options, trp_node_error *ret_error)
{
    options->seed = trpi_world_random(trpi_system_world(node->system));
    options->gossip_interval_ms = trpi_node_number(node, "cluster.gossip-interval");
    options->leader_actions_interval_ms = trpi_node_number(node, "cluster.leader-actions-interval");
    options->gossip_ttl_ms = trpi_node_number(node, "cluster.gossip-time-to-live");
    options->prune_tombstones_after_ms =
        trpi_node_number(node, "cluster.prune-gossip-tombstones-after");
    options->seed_check_ms = trpi_node_number(node, "cluster.seed-check-interval");
    options->seed_check_ms = options->seed_check_ms == 0 ? TRPI_MEMBER_OFF : options->seed_check_ms;
    options->seed_node_timeout_ms = trpi_node_number(node, "cluster.seed-node-timeout");
    options->retry_unsuccessful_join_after_ms =
        trpi_node_number(node, "cluster.retry-unsuccessful-join-after");
    if (options->retry_unsuccessful_join_after_ms == 0) {
        options->retry_unsuccessful_join_after_ms = TRPI_MEMBER_OFF;
    }
    options->weakly_up_after_ms = trpi_node_number(node, "cluster.allow-weakly-up-members");
    options->min_nr_of_members = trpi_node_number(node, "cluster.min-nr-of-members");
    options->gossip_different_view_probability =
        trpi_config_float(node->config, "cluster.gossip-different-view-probability");
    if (options->gossip_different_view_probability <= 0) {
        options->gossip_different_view_probability = -1; /* 0 would be its default */
    }
    options->exiting_waits = true; /* for the phase cluster-exiting; node_shutdown.c lets go */
    options->required_contact_points =
        trpi_node_number(node, "cluster.seed-dns.required-contact-point-nr");
    options->may_not_create_cluster = !trpi_config_bool(node->config, "cluster.may-create-cluster");
    options->incompatible_warns = !trpi_config_bool(node->config, "cluster.enforce-compatible");
    trp_err err = downing_fill(node, options, ret_error);
    return err != TRP_OK ? err : role_minima_take(node, options, ret_error);
}

static void
heartbeat_options_fill(const trp_node *node, trpi_heartbeat_options *options)
{
    options->detector = trp_failure_detector_find(
        trpi_config_text(node->config, "cluster.failure-detector.implementation-class"));
    options->phi.threshold = trpi_config_float(node->config, "cluster.failure-detector.threshold");
    options->phi.heartbeat_interval_ms =
        trpi_node_number(node, "cluster.failure-detector.heartbeat-interval");
    options->phi.acceptable_pause_ms =
        trpi_node_number(node, "cluster.failure-detector.acceptable-heartbeat-pause");
    options->phi.min_std_deviation_ms =
        trpi_node_number(node, "cluster.failure-detector.min-std-deviation");
    options->phi.max_samples = trpi_node_number(node, "cluster.failure-detector.max-sample-size");
    options->expected_response_after_ms =
        trpi_node_number(node, "cluster.failure-detector.expected-response-after");
    options->monitored_by_nr_of_members =
        trpi_node_number(node, "cluster.failure-detector.monitored-by-nr-of-members");
}

static void
metrics_options_fill(const trp_node *node, trpi_metrics_options *options)
{
    options->disabled = !trpi_config_bool(node->config, "cluster.metrics.enabled");
    options->collector_name = trpi_config_text(node->config, "cluster.metrics.collector-class");
    options->collect_interval_ms = trpi_node_number(node, "cluster.metrics.collect-interval");
    options->gossip_interval_ms = trpi_node_number(node, "cluster.metrics.gossip-interval");
    options->half_life_ms = trpi_node_number(node, "cluster.metrics.moving-average-half-life");
}

static void
lease_file_end(void *arg)
{
    trpi_lease_file_free(arg);
}

/* Take the lease on a file; a plugin may register another one. */
static trp_err
lease_file_take(trp_node *node, trp_node_error *ret_error)
{
    const char *path = trpi_config_text(node->config, "cluster.downing.lease.file");
    trpi_lease_file *file = NULL;
    char why[512];
    if (path[0] == '\0') {
        return TRP_OK;
    }
    bool needed =
        strcmp(trpi_config_text(node->config, "cluster.downing.active-strategy"), "lease") == 0;
    if (needed && !trpi_lease_file_check(path, why, sizeof why)) { /* not at the first split */
        return trpi_node_fail(ret_error, TRP_ECONFIG, "cluster.downing.lease.file: %s", why);
    }
    trp_err err = trpi_lease_file_new(path, &file);
    if (err == TRP_OK) { /* an acquire that hangs may outlive the node */
        trpi_cluster_lease_keep(node->cluster, lease_file_end, file);
        err = trp_cluster_lease_set(node->system, &trpi_lease_file_ops, file);
    }
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err, "cluster.downing.lease.file: %s", trp_strerror(err));
    }
    bool shared = trpi_lease_file_is_shared(path, why, sizeof why);
    trp_system_log(node->system, shared ? TRP_LOG_INFO : TRP_LOG_WARNING, "node",
                   "cluster.downing.lease.file: %s",
                   shared ? "all nodes must see this very file, and its locks" : why);
    return TRP_OK;
}

trp_err
trpi_node_lease_check(trp_node *node, trp_node_error *ret_error)
{
    bool needed =
        strcmp(trpi_config_text(node->config, "cluster.downing.active-strategy"), "lease") == 0;
    return !needed || trpi_cluster_has_lease(node->cluster)
               ? TRP_OK
               : trpi_node_fail(ret_error, TRP_ECONFIG,
                                "cluster.downing.active-strategy: lease needs "
                                "cluster.downing.lease.file, a file on a file system that all "
                                "nodes share, or a plugin that brings a lease (troupe/lease.h)");
}

/* MEMB-32: off is never, 0s whenever there is something new. */
static uint32_t
stats_interval(const trp_node *node)
{
    static const char key[] = "cluster.publish-stats-interval";
    uint32_t ms = trpi_node_number(node, key);
    bool off = strcasecmp(trpi_config_text(node->config, key), "off") == 0;
    return ms == 0 && !off ? TRPI_STATS_ALWAYS : ms;
}

/* cluster.client.receptionist. A node without its role takes no clients. */
static trp_err
receptionist_start(trp_node *node, trp_node_error *ret_error)
{
#define KEY "cluster.client.receptionist."
    const char *permissions[TRPI_CONFIG_LIST_MAX],
        *role = trpi_config_text(node->config, KEY "role");
    trpi_receptionist_options options = {
        .contacts = trpi_node_number(node, KEY "number-of-contacts"),
        .tunnel_ms = trpi_node_number(node, KEY "response-tunnel-receive-timeout"),
        .silence_ms = trpi_node_number(node, KEY "silence-timeout"),
        .clients_max = trpi_node_number(node, KEY "clients-max"),
        .role = role,
        .permissions = permissions,
        .permissions_count = trpi_config_list_count(node->config, KEY "permissions"),
    };
    bool has_role = role[0] == '\0';
    for (size_t i = 0; i < trpi_config_list_count(node->config, "cluster.roles"); i++) {
        has_role =
            has_role || strcmp(trpi_config_list_at(node->config, "cluster.roles", i), role) == 0;
    }
    if (!trpi_config_bool(node->config, KEY "enabled") || !has_role) {
        return TRP_OK;
    }
    for (size_t i = 0; i < options.permissions_count; i++) {
        permissions[i] = trpi_config_list_at(node->config, KEY "permissions", i);
    }
#undef KEY
    trp_err err = trpi_receptionist_open(node->system, node->remote, &options);
    return err == TRP_OK ? TRP_OK
                         : trpi_node_fail(ret_error, err == TRP_EINVAL ? TRP_ECONFIG : err,
                                          "cluster.client.receptionist: %s", trp_strerror(err));
}

trp_err
trpi_node_cluster_start(trp_node *node, trp_node_error *ret_error)
{
    trpi_cluster_options options;
    trpi_compat compat = { .count = 0 };
    const char *roles[TRPI_ROLES_MAX];
    size_t count = trpi_config_list_count(node->config, "cluster.roles");
    memset(&options, 0, sizeof options);
    if (count > TRPI_ROLES_MAX) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "cluster.roles: more than %d",
                              TRPI_ROLES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        roles[i] = trpi_config_list_at(node->config, "cluster.roles", i);
    }
    trp_err err = member_options_fill(node, &options.member, ret_error);
    if (err == TRP_OK) {
        err = compat_fill(node, &compat, ret_error);
    }
    if (err != TRP_OK) {
        return err;
    }
    options.member.compat = &compat;
    heartbeat_options_fill(node, &options.heartbeat);
    metrics_options_fill(node, &options.metrics);
    options.pubsub.role = trpi_config_text(node->config, "cluster.pub-sub.role");
    options.pubsub.interval_ms = trpi_node_number(node, "cluster.pub-sub.gossip-interval");
    options.pubsub.bytes_max = trpi_node_number(node, "cluster.pub-sub.gossip-bytes");
    options.roles = roles;
    options.roles_count = (uint32_t)count;
    options.app_version = trpi_config_text(node->config, "cluster.app-version");
    options.quarantine_removed_after_ms =
        trpi_node_number(node, "cluster.quarantine-removed-node-after");
    options.publish_stats_interval_ms = stats_interval(node);
    options.quiet = !trpi_config_bool(node->config, "cluster.log-info");
    options.lease_name = trpi_config_text(node->config, "cluster.downing.lease.name");
    options.stopped = membership_stopped;
    options.stopped_arg = node;
    err = trpi_cluster_start(node->system, node->remote, &options, &node->cluster);
    trpi_sharding_refused_set(node->system, type_refused, node);
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err == TRP_EINVAL ? TRP_ECONFIG : err,
                              "cannot start the membership: %s", trp_strerror(err));
    }
    err = receptionist_start(node, ret_error);
    return err == TRP_OK ? lease_file_take(node, ret_error) : err;
}
