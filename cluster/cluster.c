/* cluster.c - the door of the room: start, stop, free. See cluster.h.
 *
 * Life.    start: engine, detector, actor, channels bound, seeds queued -> stop: channels unbound,
 *          mailbox closed (a command that waits there is answered TRP_ECLOSED), actor told to
 *          stop -> the system stops -> free
 */
#include "cluster/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "cluster/routing/router_shell.h"
#include "cluster/shell/shell.h"

/* ---- transport callbacks --------------------------------------------------------------------- */

_Static_assert(TRPI_HEARTBEAT_BYTES == TRPI_BEAT_BYTES, "remoting has room for an answer");

static void
heartbeat_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                  uint64_t arrived_ns)
{
    trpi_cluster *cluster = arg;
    uint8_t answer[TRPI_HEARTBEAT_BYTES];
    if (atomic_load_explicit(&cluster->silent, memory_order_relaxed)) {
        return;
    }
    if (trpi_heartbeat_reply(bytes, count, answer)) {
        (void)trpi_remote_control_send(cluster->remote, from, TRPI_CHANNEL_HEARTBEAT, answer,
                                       /* the sender of a request that gets no answer asks again */
                                       sizeof answer);
        return;
    }
    uint8_t word[TRPI_HEARTBEAT_REPORT_BYTES];
    pthread_mutex_lock(&cluster->engine.lock);
    bool heard =
        trpi_heartbeat_report(cluster->engine.heartbeat, shell_now_us(cluster), bytes, count, word);
    if (!heard) {
        trpi_heartbeat_answer(cluster->engine.heartbeat, arrived_ns / 1000, from, bytes, count);
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    if (heard) {
        (void)trpi_remote_control_send(cluster->remote, from, TRPI_CHANNEL_HEARTBEAT, word,
                                       sizeof word); /* a lost frame is requested again */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
make_engine(trpi_cluster *cluster, const trpi_cluster_options *options)
{
    trpi_node_id self = *trpi_system_self(cluster->system);
    self.address = *trpi_remote_address(cluster->remote);
    trpi_member_options member = options->member;
    member.dial_back = true;
    member.build = trp_version();
    uint64_t grid_ns = trpi_sched_grid_ns(trpi_system_sched(cluster->system));
    member.grid_ms = grid_ns != 0 ? TRPI_GRID_NS / 1000000 : 0;
    member.grid_begin_ms = grid_ns / 1000000;
    if (member.seed == 0) {
        member.seed = trpi_world_random(cluster->world);
    }
    const char *version =
        options->app_version == NULL ? TRPI_CLUSTER_APP_VERSION_DEFAULT : options->app_version;
    trp_err err = trpi_member_new(&self, options->roles, options->roles_count, version, &member,
                                  &cluster->engine.core);
    if (err != TRP_OK) {
        return err;
    }
    cluster->settings.strategy = trpi_downing_name(trpi_downing_find(
        member.downing_strategy == NULL ? TRPI_DOWNING_STRATEGY_DEFAULT : member.downing_strategy));
    cluster->settings.stable_after_ms = member.downing.stable_after_ms == 0
                                            ? TRPI_DOWNING_STABLE_AFTER_S_DEFAULT * 1000u
                                            : member.downing.stable_after_ms;
    cluster->settings.auto_down_after_ms = member.downing.auto_down_after_ms == 0
                                               ? TRPI_DOWNING_AUTO_DOWN_AFTER_S_DEFAULT * 1000u
                                               : member.downing.auto_down_after_ms;
    uint32_t pause_ms = options->heartbeat.phi.acceptable_pause_ms;
    uint32_t interval_ms = options->heartbeat.phi.heartbeat_interval_ms;
    cluster->settings.acceptable_pause_ms = pause_ms == 0 ? TRPI_PHI_PAUSE_S_DEFAULT * 1000u
                                            : pause_ms == TRPI_PHI_NO_PAUSE ? 0
                                                                            : pause_ms;
    cluster->settings.heartbeat_interval_ms =
        interval_ms == 0 ? TRPI_PHI_INTERVAL_S_DEFAULT * 1000u : interval_ms;
    trpi_ident *ident = (trpi_ident *)(uintptr_t)trpi_member_self(cluster->engine.core);
    trpi_heartbeat_options heartbeat = options->heartbeat;
    heartbeat.grid_us = grid_ns != 0 ? TRPI_GRID_NS / 1000 : 0;
    heartbeat.grid_begin_us = grid_ns / 1000 - (grid_ns != 0 ? 1000 : 0); /* shell.c adds 1 ms */
    return trpi_heartbeat_new(ident, &heartbeat, &cluster->engine.heartbeat);
}

/* The lease's thread. */
static void
lease_answered(void *arg, bool granted, const char *why)
{
    trpi_cluster *cluster = arg;
    size_t bytes = why == NULL ? 0 : strlen(why);
    struct shell_command *command = shell_command_new(TRPI_MEMBER_LEASE, bytes + 1);
    if (command == NULL) {
        return; /* a request without an answer counts as refused after operation-timeout */
    }
    command->granted = granted;
    memcpy(command->text, why == NULL ? "" : why, bytes + 1);
    if (shell_command_put(cluster, command) != TRP_OK) {
        shell_command_free(command);
    }
}

static trp_err
make_lease(trpi_cluster *cluster, const trpi_cluster_options *options)
{
    char owner[TRPI_LEASE_OWNER_BYTES], name[TRP_LEASE_NAME_BYTES_MAX + 1];
    uint32_t timeout_ms = options->member.downing.lease_timeout_ms;
    trpi_node_id self = { .address = *trpi_remote_address(cluster->remote),
                          .uid = trpi_system_self(cluster->system)->uid };
    (void)snprintf(name, sizeof name, "%.100s-lease", trp_system_name(cluster->system));
    bool named = options->lease_name != NULL && options->lease_name[0] != '\0';
    return trpi_lease_new(named ? options->lease_name : name, trpi_lease_owner(&self, owner),
                          timeout_ms == 0 ? TRPI_DOWNING_LEASE_TIMEOUT_S_DEFAULT * 1000u
                                          : timeout_ms,
                          lease_answered, cluster, &cluster->lease);
}

static trp_err
make_actor(trpi_cluster *cluster)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.name = "cluster";
    spawn.mailbox = "unbounded"; /* shell-messages-Q2, whatever actor.default-mailbox is */
    spawn.args_type = &trp_bytes_type;
    spawn.args = &cluster;
    spawn.args_bytes = sizeof cluster;
    trp_err err = trp_protocol_register(&trp_cluster_protocol);
    return err != TRP_OK ? err
                         : trpi_system_spawn_internal(cluster->system, &trpi_cluster_behaviour,
                                                      &spawn, &cluster->actor);
}

static trp_err
join_seeds(trpi_cluster *cluster, const trpi_cluster_options *options)
{
    char self[TRPI_ADDRESS_TEXT_BYTES];
    const char *addresses[TRPI_SEEDS_MAX];
    if (options->seed_nodes_count == 0) {
        return TRP_OK;
    }
    if (options->seed_nodes_count > TRPI_SEEDS_MAX) {
        return TRP_EINVAL;
    }
    (void)trpi_address_format(trpi_remote_address(cluster->remote), self, sizeof self);
    for (uint32_t i = 0; i < options->seed_nodes_count; i++) {
        addresses[i] = strcmp(options->seed_nodes[i], "self") == 0 ? self : options->seed_nodes[i];
    }
    return trpi_cluster_join(cluster, addresses, options->seed_nodes_count, NULL, NULL);
}

trp_err
trpi_cluster_start(trp_system *system, trpi_remote *remote, const trpi_cluster_options *options,
                   trpi_cluster **ret_cluster)
{
    static const trpi_cluster_options defaults = { .seed_nodes = NULL };
    if (system == NULL || remote == NULL || ret_cluster == NULL) {
        return TRP_EINVAL;
    }
    *ret_cluster = NULL;
    if (trpi_system_cluster_get(system) != NULL) {
        return TRP_EEXIST;
    }
    options = options == NULL ? &defaults : options;
    trpi_cluster *cluster = trpi_alloc(sizeof *cluster);
    if (cluster == NULL) {
        return TRP_ENOMEM;
    }
    cluster->system = system;
    cluster->remote = remote;
    cluster->world = trpi_system_world(system);
    cluster->settings.quiet = options->quiet;
    cluster->settings.stats_interval_ms = options->publish_stats_interval_ms;
    cluster->settings.stopped = options->stopped;
    cluster->settings.stopped_arg = options->stopped_arg;
    cluster->settings.quarantine_after_ms = options->quarantine_removed_after_ms == 0
                                                ? TRPI_CLUSTER_QUARANTINE_AFTER_S_DEFAULT * 1000u
                                                : options->quarantine_removed_after_ms;
    pthread_mutex_init(&cluster->engine.lock, NULL);
    pthread_mutex_init(&cluster->listen.lock, NULL);
    pthread_cond_init(&cluster->listen.returned, NULL);
    trp_err err = make_engine(cluster, options);
    if (err == TRP_OK) {
        err = trpi_metrics_new(cluster, &options->metrics);
    }
    if (err == TRP_OK) {
        err = trp_routing_logic_register(&trpi_adaptive_logic);
    }
    if (err == TRP_OK) {
        err = make_lease(cluster, options);
    }
    if (err == TRP_OK) {
        err = make_actor(cluster);
    }
    if (err != TRP_OK) {
        trpi_cluster_free(cluster);
        return err;
    }
    trpi_system_cluster_set(system, cluster);
    trpi_cluster_routers_register();
    err = trpi_singletons_open(system, remote);
    if (err == TRP_OK) {
        err = trpi_keeper_start(cluster, system, remote);
    }
    if (err == TRP_OK) {
        err = trpi_pubsub_open(system, remote, &options->pubsub);
    }
    if (err == TRP_OK) {
        err = trpi_metrics_start(cluster);
    }
    if (err == TRP_OK) {
        err = join_seeds(cluster, options);
    }
    if (err != TRP_OK) { /* the actor runs: the system must end before the memory is freed */
        trpi_cluster_stop(cluster);
        *ret_cluster = cluster;
        return err;
    }
    trpi_remote_control_bind(remote, TRPI_CHANNEL_HEARTBEAT, heartbeat_arrived, cluster);
    trpi_remote_control_bind(remote, TRPI_CHANNEL_GOSSIP, shell_frame_arrived, cluster);
    trpi_remote_beats_answer(remote, trpi_heartbeat_reply);
    trpi_remote_beats_read(remote, trpi_heartbeat_asked);
    *ret_cluster = cluster;
    return TRP_OK;
}

void
trpi_cluster_stop(trpi_cluster *cluster)
{
    if (cluster == NULL) {
        return;
    }
    atomic_store_explicit(&cluster->silent, true, memory_order_relaxed);
    trpi_remote_beats_answer(cluster->remote, NULL);
    trpi_remote_control_bind(cluster->remote, TRPI_CHANNEL_GOSSIP, NULL, NULL);
    trpi_remote_control_bind(cluster->remote, TRPI_CHANNEL_HEARTBEAT, NULL, NULL);
    trpi_receptionist_close(cluster->system);
    trpi_pubsub_close(cluster->system);
    trpi_singletons_close(cluster->system);
    trpi_keeper_stop(cluster->system);
    trpi_metrics_stop(cluster);
    shell_close(cluster);
    /* Ended before stop returns, so that nothing is sent through a remote that is being stopped. */
    if (trp_system_graceful_stop(cluster->system, cluster->actor, 5000) != TRP_OK) {
        trp_system_stop_actor(cluster->system, cluster->actor);
    }
    pthread_mutex_lock(
        &cluster->engine.lock); /* an actor that has not ended in time may still use it */
    bool needs_lease = trpi_member_needs_lease(cluster->engine.core);
    pthread_mutex_unlock(&cluster->engine.lock);
    if (needs_lease) {
        trpi_log(cluster->system, TRP_LOG_WARNING, "cluster",
                 "this node stops while it holds the lease by which its side of a split survives: "
                 "if the lease expires with it, the other side may acquire it");
    }
}

void
trpi_cluster_free(trpi_cluster *cluster)
{
    if (cluster == NULL) {
        return;
    }
    trpi_metrics_free(cluster->metrics);
    trpi_lease_close(cluster->lease, cluster->engine.core == NULL ||
                                         !trpi_member_needs_lease(cluster->engine.core));
    trpi_member_free(cluster->engine.core);
    trpi_heartbeat_free(cluster->engine.heartbeat);
    trpi_free(cluster->engine.known);
    trpi_free(cluster->listen.listeners);
    trpi_free(cluster->audience.subscribers);
    trpi_free(cluster->audience.on_up);
    trpi_free(cluster->own.quarantines);
    trpi_free(cluster->dialled.reaching);
    trpi_mutex_destroy(&cluster->engine.lock);
    trpi_mutex_destroy(&cluster->listen.lock);
    pthread_cond_destroy(&cluster->listen.returned);
    trpi_free(cluster);
}
