/* complete_node.c - one complete node: what `troupe node` opens, without its process. */
#include "cluster/sim/complete.h"

#include <stdio.h>
#include <string.h>

#include <troupe/shutdown.h>

#include "actor/actor.h"
#include "pattern/pattern.h"
#include "sched/sched.h"

#define MILLISECOND_NS 1000000u
#define UNSTABLE_MS 15000u /* down-all-when-unstable, as the configuration has it */

static void
take_line(void *arg, const trp_log_line *line)
{
    const struct sim_whole *n = arg;
    const trp_sim_options *options = &n->sim->options;
    if (options->log != NULL) {
        options->log(options->log_arg, trp_sim_now_ms(n->sim), n->number, line);
    }
}

static void
membership_ended(void *arg, trpi_member_stop why)
{
    struct sim_whole *n = arg;
    n->stop = why;
    sim_operated_ended(n);
    n->over = true;
}

/* A node with a program's actors leaves as `troupe node` does: it stays Exiting until its shards
 * are handed over, and the tasks of the phase cluster-exiting are done. */
static void
exiting_begin(void *arg, const trpi_cluster_event *event)
{
    const struct sim_whole *n = arg;
    if (event->member->member.self != 0 &&
        trp_shutdown_run(n->system, TRP_SHUTDOWN_LEAVING,
                         TRP_SHUTDOWN_CLUSTER_SHARDING_SHUTDOWN_REGION) != TRP_OK) {
        (void)trpi_cluster_release(n->cluster);
    }
}

static void
exiting_done(void *arg, uint64_t task)
{
    const struct sim_whole *n = arg;
    (void)trpi_cluster_release(n->cluster); /* fails when the membership has ended */
    trp_shutdown_done(n->system, task, TRP_OK);
}

static void
phases_over(void *arg)
{
    (void)arg; /* the simulation ends the system, when its membership has ended */
}

static trp_err
prepare_shutdown(struct sim_whole *n)
{
    uint64_t listener;
    trp_err err = trpi_shutdown_over_set(n->system, phases_over, n);
    if (err == TRP_OK) {
        err = trpi_shutdown_add_own(n->system, TRP_SHUTDOWN_CLUSTER_EXITING_DONE, "exiting-done",
                                    exiting_done, n);
    }
    if (err == TRP_OK) {
        err =
            trpi_cluster_listen(n->cluster, TRP_CLUSTER_MEMBER_EXITED, exiting_begin, n, &listener);
    }
    return err;
}

/* The cookies of a step of their rotation: of two steps side by side nodes have one in common. */
static void
cookies_of(uint32_t step, char cookie[32], char before[32])
{
    uint32_t secret = step / 3, phase = step % 3;
    (void)snprintf(cookie, 32, "secret-%u", phase == 2 ? secret + 1 : secret);
    (void)snprintf(before, 32, "secret-%u", phase == 2 ? secret : secret + 1);
    before[0] = phase == 0 ? '\0' : before[0];
}

void
sim_whole_rotate(struct sim_whole *n)
{
    char cookie[32], before[32], digest[TRPI_REMOTE_SECRETS_BYTES];
    n->rotation++;
    if (n->system == NULL) {
        return; /* it takes them when it starts */
    }
    cookies_of(n->rotation, cookie, before);
    trp_err err = trpi_remote_secrets_reload(n->remote, cookie, before);
    err = err == TRP_OK ? trpi_remote_secrets_digest(cookie, before, digest) : err;
    if (err != TRP_OK) {
        trp_sim_fail(n->sim, __FILE__, __LINE__, trp_strerror(err));
        return;
    }
    trpi_cluster_compat_set(n->cluster, SIM_COMPLETE_COOKIE_KEY, digest);
}

static trp_err
open_remote(struct sim_whole *n)
{
    trpi_remote_options remote = { .bind_port = -1 };
    remote.transport = &trpi_mem_transport_ops;
    remote.transport_arg = n->sim->network;
    char cookie[32], before[32];
    remote.host = n->advertises[0] != '\0' ? n->advertises : n->host;
    remote.bind_host = n->host;
    if (n->sim->operated != NULL) {
        cookies_of(n->rotation, cookie, before);
        remote.cookie = cookie;
        remote.cookie_before = before;
        remote.pending_handshakes_max = SIM_COMPLETE_PENDING;
        remote.receiver_bytes_max = SIM_COMPLETE_RECEIVER_BYTES;
        remote.receivers_bytes_max = 4 * SIM_COMPLETE_RECEIVER_BYTES;
    }
    remote.port = SIM_COMPLETE_PORT;
    remote.flush_on_shutdown_ms = 1; /* a killed node sends nothing */
    return trpi_remote_start(n->system, &remote, &n->remote);
}

uint32_t sim_complete_broken;

static trp_err
open_cluster(struct sim_whole *n)
{
    const char *seeds[SIM_OPERATED_SEEDS];
    /* Where nodes may leave, all are: else the first seed, when it starts again after the others
     * have left or were killed, may not know who is left, and makes a cluster of its own. */
    bool all = n->sim->operated != NULL || n->sim->options.started != NULL;
    uint32_t most = all ? SIM_OPERATED_SEEDS : SIM_COMPLETE_SEEDS;
    trpi_cluster_options cluster = { .seed_nodes = seeds };
    trpi_compat compat = { .count = 0 };
    trp_err err = TRP_OK;
    if (n->sim->operated != NULL) {
        char cookie[32], before[32], digest[TRPI_REMOTE_SECRETS_BYTES];
        cookies_of(n->rotation, cookie, before);
        err = trpi_remote_secrets_digest(cookie, before, digest);
        err = err == TRP_OK ? trpi_compat_add(&compat, SIM_COMPLETE_COOKIE_KEY, digest) : err;
        cluster.member.compat = &compat;
    }
    while (!n->starts_alone && cluster.seed_nodes_count < most &&
           cluster.seed_nodes_count < n->sim->nodes_count) {
        seeds[cluster.seed_nodes_count] = n->sim->nodes[cluster.seed_nodes_count].address;
        cluster.seed_nodes_count++;
    }
    const char *const *roles = n->sim->options.roles;
    if (roles != NULL && roles[n->number] != NULL) {
        cluster.roles = &roles[n->number];
        cluster.roles_count = 1;
    }
    uint32_t stable_ms = n->sim->options.stable_after_ms;
    cluster.member.downing.stable_after_ms = stable_ms;
    cluster.member.downing.unstable_after_ms = stable_ms != 0 ? stable_ms / 4 * 3 : UNSTABLE_MS;
    cluster.member.downing_strategy = n->sim->options.downing;
    cluster.member.exiting_waits = n->sim->options.started != NULL;
    cluster.metrics.collector = trpi_metrics_collector_find("simulated"); /* NULL: no figures */
    cluster.member.broken = sim_complete_broken;
    cluster.stopped = membership_ended;
    cluster.stopped_arg = n;
    err = err == TRP_OK ? trpi_cluster_start(n->system, n->remote, &cluster, &n->cluster) : err;
    if (err == TRP_OK && n->sim->options.started != NULL) {
        err = prepare_shutdown(n);
    }
    return err == TRP_OK && n->sim->operated != NULL ? sim_operated_watch(n) : err;
}

static void
close_all(struct sim_whole *n)
{
    trpi_cluster_stop(n->cluster);
    if (n->system != NULL && trp_system_stop(n->system, 10000) != TRP_OK) {
        trp_sim_fail(n->sim, __FILE__, __LINE__, "a node does not end: an actor is stuck");
        return; /* and what it holds is leaked */
    }
    if (n->remote != NULL) {
        trpi_remote_stop(n->remote);
    }
    trpi_cluster_free(n->cluster);
    trp_system_free(n->system);
}

/* From here on what runs outside of turns and timers runs on this host. Return the one before. */
static uint32_t
host_enter(struct sim_whole *n, uint32_t host)
{
    trpi_world *world = trpi_virtual_world(n->sim->virt);
    uint32_t before = world->host;
    world->host = host;
    return before;
}

void
sim_whole_start(struct sim_whole *n)
{
    uint32_t host = host_enter(n, n->number);
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.log = take_line;
    options.log_arg = n;
    options.workers = 1;
    options.log_level = TRP_LOG_DEBUG; /* always: the turns of loggers are part of the history */
    n->unplugged = n->over = false;
    n->woke_ns = sim_complete_now_ns(n->sim);
    n->restart_ns = 0;
    n->remote = NULL;
    n->cluster = NULL;
    sim_journal_restart(n);
    trp_err err = trpi_system_new_in(trpi_virtual_world(n->sim->virt), "sim", &options, &n->system);
    if (err == TRP_OK) {
        err = open_remote(n);
    }
    if (err == TRP_OK) {
        err = open_cluster(n);
    }
    if (err != TRP_OK) {
        close_all(n);
        n->system = NULL;
        trp_sim_fail(n->sim, __FILE__, __LINE__, trp_strerror(err));
    } else if (n->sim->options.started != NULL) {
        n->sim->options.started(n->sim, n->number, n->sim->arg);
    }
    (void)host_enter(n, host);
}

/* As the process of a node ends. Its system has closed what it had. */
static void
close_sockets(struct sim_whole *n)
{
    if (trpi_sim_net_open(n->sim->sockets, n->number) != 0) {
        trp_sim_fail(n->sim, __FILE__, __LINE__, "a system has left sockets open");
        trpi_sim_net_end(n->sim->sockets, n->number);
    }
}

void
sim_whole_end(struct sim_whole *n)
{
    bool may_jump = n->sim->may_jump;
    n->sim->may_jump = false; /* complete-K2: ending lets the others run */
    n->unplugged = true;
    trpi_mem_network_cut(n->sim->network, n->host, NULL);
    trpi_sim_net_reset(n->sim->sockets, n->number);
    trpi_sched_stand_still(trpi_system_sched(n->system), 0);
    uint32_t host = host_enter(n, n->number);
    if (!n->over) {
        sim_journal_crash(n);
    }
    close_all(n);
    close_sockets(n);
    (void)host_enter(n, host);
    n->system = NULL;
    n->remote = NULL;
    n->cluster = NULL;
    n->over = false;
    n->still_until_ns = 0;
    n->sim->may_jump = may_jump;
}

bool
sim_whole_all_up(trp_sim *sim)
{
    uint64_t version = 0;
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        trpi_cluster_snapshot *look = NULL;
        struct sim_whole *n = &sim->nodes[i];
        if (n->system == NULL || trpi_cluster_snapshot_get(n->cluster, &look) != TRP_OK) {
            return false;
        }
        bool up = look->members_count == sim->nodes_count && look->converged &&
                  look->observations_count == 0 && (i == 0 || look->version == version);
        for (uint32_t k = 0; k < look->members_count; k++) {
            up = up && look->members[k].member.status == TRP_MEMBER_UP && look->members[k].seen;
        }
        version = look->version;
        trpi_cluster_snapshot_free(look);
        if (!up) {
            return false;
        }
    }
    return true;
}

/* ---- what a program does to nodes ------------------------------------------------------------ */

uint32_t
trp_sim_nodes(const trp_sim *sim)
{
    return sim->nodes_count;
}

trp_system *
trp_sim_system(trp_sim *sim, uint32_t node)
{
    return node < sim->nodes_count ? sim->nodes[node].system : NULL;
}

const char *
trp_sim_address(const trp_sim *sim, uint32_t node)
{
    return node < sim->nodes_count ? sim->nodes[node].address : NULL;
}

const char *
trp_sim_host(const trp_sim *sim, uint32_t node)
{
    return node < sim->nodes_count ? sim->nodes[node].sockets_host : NULL;
}

void
trp_sim_start(trp_sim *sim, uint32_t node)
{
    if (node < sim->nodes_count && sim->nodes[node].system == NULL) {
        sim_whole_start(&sim->nodes[node]);
    }
}

void
trp_sim_kill(trp_sim *sim, uint32_t node)
{
    if (trp_sim_system(sim, node) != NULL) {
        sim_whole_end(&sim->nodes[node]);
    }
}

void
trp_sim_pause(trp_sim *sim, uint32_t node, uint32_t ms)
{
    if (trp_sim_system(sim, node) != NULL) {
        struct sim_whole *n = &sim->nodes[node];
        n->still_until_ns = sim_complete_now_ns(sim) + (uint64_t)ms * MILLISECOND_NS;
        n->woke_ns = n->still_until_ns;
        trpi_sched_stand_still(trpi_system_sched(n->system), n->still_until_ns);
    }
}

void
trp_sim_leave(trp_sim *sim, uint32_t node)
{
    if (trp_sim_system(sim, node) != NULL) {
        trp_err err = trpi_cluster_leave(sim->nodes[node].cluster, NULL, 0, NULL, NULL);
        if (err != TRP_OK) {
            trp_sim_fail(sim, __FILE__, __LINE__, trp_strerror(err));
        }
    }
}
