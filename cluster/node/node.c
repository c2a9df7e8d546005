/* node.c - a node: its parts are started in order and stopped in reverse order.
 *
 * Shape.   config -> control socket free? -> system -> plugins loaded -> remoting -> membership
 *          -> carry -> control server -> listener -> plugins begun -> port open -> join
 *          Membership comes after the address is known, plugins begin after all parts that they may
 *          use, the join is last: no other node sees one whose actors are missing.
 * Must hold.
 *   node-I1  `end` is set once; end_fd becomes readable with it (trpi_node_end)
 *   node-I5  The control server and the management API are served when all parts are there that
 *       their commands look at: these are set once, before the threads begin. (node_begin)
 *   node-I2  on failure trp_node_close() closes the parts that are there (node_start)
 *   node-I4  All checks that may refuse a node are in node_prepare(), which `troupe config check`
 *       runs, too: it leaves out only steps that others would notice. (node->only_check)
 *   node-I3  a node with actors left is not freed: they may run code of a plugin, log, and read the
 *       node (trp_node_close)
 * Not here. Signals, exit codes, the banner: those are the program's (node_main.c).
 * Tests.   tests/unit/node/node_test.c, tests/system/node.sh
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "cluster/node/bridge.h"
#include "cluster/node/control_socket.h"
#include "cluster/node/node.h"
#include "cluster/node/node_limits.h"
#include "cluster/node/doctor_look.h"
#include "cluster/node/health.h"
#include "cluster/node/node_management.h"
#include "cluster/node/otlp.h"
#include "cluster/node/apps.h"
#include "cluster/node/node_private.h"
#include "cluster/node/node_start.h"

/* ---- the end --------------------------------------------------------------------------------- */

void
trpi_node_end(trp_node *node, trp_node_end end)
{
    uint64_t one = 1;
    pthread_mutex_lock(&node->lock);
    bool first = node->end == 0; /* node-I1 */
    if (first) {
        node->end = end;
    }
    pthread_mutex_unlock(&node->lock);
    if (first) {
        (void)!write(node->end_fd, &one, sizeof one); /* cannot fail: it was 0 */
    }
}

trp_err
trp_node_await(trp_node *node, uint32_t timeout_ms, trp_node_end *ret_end)
{
    trpi_assert(node->magic == TRPI_NODE_MAGIC);
    struct pollfd fd = { node->end_fd, POLLIN, 0 };
    int timeout = timeout_ms == 0 ? -1 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
    int rc;
    do {
        rc = poll(&fd, 1, timeout); /* end_fd is never read: it stays readable (node-I1) */
    } while (rc < 0 && errno == EINTR);
    if (rc <= 0) {
        return rc == 0 ? TRP_ETIMEDOUT : TRP_EIO;
    }
    pthread_mutex_lock(&node->lock);
    *ret_end = node->end;
    pthread_mutex_unlock(&node->lock);
    return TRP_OK;
}

int
trp_node_end_fd(const trp_node *node)
{
    return node->end_fd;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Choose the path of the control socket; "": none. port 0: not known yet, so not chosen. */
static trp_err
control_path_decide(trp_node *node, const trp_node_options *options, unsigned port,
                    trp_node_error *ret_error)
{
    const char *given = trpi_config_text(node->config, "control.socket");
    char dir[TRPI_CTL_PATH_BYTES];
    if (!options->control_socket_forced &&
        !trpi_config_bool(node->config, "cluster.control-socket")) {
        return TRP_OK;
    }
    if (*given) {
        if (strlen(given) >= sizeof node->control_path) {
            return trpi_node_fail(ret_error, TRP_ECONFIG,
                                  "control.socket: the path is longer than %zu bytes: %s",
                                  sizeof node->control_path - 1, given);
        }
        memcpy(node->control_path, given, strlen(given) + 1);
        return TRP_OK;
    }
    if (port == 0) {
        return TRP_OK;
    }
    trp_err err = trpi_ctl_dir_prepare(dir);
    if (err == TRP_OK) {
        err = trpi_ctl_socket_path(dir, trpi_config_text(node->config, "system"), port,
                                   node->control_path);
    }
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, TRP_EPERM,
                              "no directory for the control socket can be used (%s): set "
                              "control.socket or --socket PATH",
                              trp_strerror(err));
    }
    return TRP_OK;
}

static trp_err
fail_running(const trp_node *node, int pid, trp_node_error *ret_error)
{
    if (pid == 0) {
        return trpi_node_fail(ret_error, TRP_EEXIST,
                              "already running: a process listens at %s, but does not accept: it "
                              "is stopped (SIGSTOP), or hangs",
                              node->control_path);
    }
    char process[TRPI_CTL_PROCESS_BYTES];
    if (trpi_ctl_process_is_stopped(pid, process)) {
        return trpi_node_fail(ret_error, TRP_EEXIST, "already running: %s%s", node->control_path,
                              process);
    }
    return trpi_node_fail(ret_error, TRP_EEXIST, "already running: %s answers, pid %d",
                          node->control_path, pid);
}

/* A clearer error than "address in use", before any part is started. */
static trp_err
running_check(trp_node *node, trp_node_error *ret_error)
{
    int pid = 0;
    if (node->control_path[0] && trpi_control_is_live(node->control_path, &pid)) {
        return fail_running(node, pid, ret_error);
    }
    return TRP_OK;
}

static trp_err
control_start(trp_node *node, trp_node_error *ret_error)
{
    int pid = 0;
    trpi_control_options options = { node->control_path, trpi_system_world(node->system),
                                     trpi_node_command_is_quick, trpi_node_command_serve, node };
    if (!node->control_path[0]) {
        return TRP_OK;
    }
    trp_err err = trpi_control_open(&options, &node->control, &pid);
    switch (err) {
    case TRP_OK:
        return TRP_OK;
    case TRP_EEXIST:
        return fail_running(node, pid, ret_error);
    case TRP_ENOENT: /* since the check */
        return trpi_node_fail(ret_error, TRP_ECONFIG, "control socket %s: no such directory",
                              node->control_path);
    default:
        return trpi_node_fail(ret_error, err == TRP_EIO ? TRP_EPERM : err, "control socket %s: %s",
                              node->control_path,
                              err == TRP_EIO
                                  ? "it cannot be made there; is something else than a socket "
                                    "of that name in the way?"
                                  : trp_strerror(err));
    }
}

/* Plugins are loaded before the node can be reached: a missing one must not cost the others a
 * peer. */
static trp_err
plugins_open(trp_node *node, trp_node_error *ret_error)
{
    size_t count = trpi_config_list_count(node->config, "plugins");
    if (count > TRPI_PLUGINS_MAX) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "plugins: more than %d", TRPI_PLUGINS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const char *specification = trpi_config_list_at(node->config, "plugins", i);
        trp_err err = trpi_plugin_open(specification, &node->plugins[i], ret_error);
        if (err != TRP_OK) {
            return err;
        }
        node->plugins_count++;
    }
    return TRP_OK;
}

static trp_err
plugins_begin(trp_node *node, trp_node_error *ret_error)
{
    for (size_t i = 0; i < node->plugins_count; i++) {
        trp_err err = trpi_plugin_begin(node, &node->plugins[i], ret_error);
        if (err != TRP_OK) {
            return err;
        }
        trp_system_log(node->system, TRP_LOG_INFO, "node", "plugin %s loaded from %s",
                       node->plugins[i].plugin->name ? node->plugins[i].plugin->name : "?",
                       node->plugins[i].path);
    }
    return TRP_OK;
}

static void
seeds_taken(void *arg, trp_err err)
{
    trp_node *node = arg;
    if (err == TRP_ESTATE || err == TRP_ECLOSED) {
        atomic_store_explicit(&node->seeds_over, true, memory_order_relaxed);
    }
}

static bool
seeds_found(void *arg, const trpi_address *addresses, uint32_t count)
{
    trp_node *node = arg;
    /* no memory: asked again */
    (void)trpi_cluster_seeds_found(node->cluster, addresses, count, seeds_taken, node);
    return !atomic_load_explicit(&node->seeds_over, memory_order_relaxed);
}

static trp_err
seeds_look_up(trp_node *node, trp_node_error *ret_error)
{
    trpi_seed_dns_options options = {
        .name = trpi_config_text(node->config, "cluster.seed-dns.name"),
        .nameserver = trpi_config_text(node->config, "cluster.seed-dns.nameserver"),
        .port = (uint16_t)trpi_node_number(node, "cluster.seed-dns.port"),
        .interval_ms = trpi_node_number(node, "cluster.seed-dns.interval"),
        .like = *trpi_remote_address(node->remote),
        .found = seeds_found,
        .arg = node,
    };
    if (options.name[0] == '\0') {
        return TRP_OK;
    }
    trp_err err = trpi_seed_dns_start(node->system, &options, &node->seed_dns);
    if (err == TRP_ECONFIG) { /* that it is built in was checked (node_check.c) */
        return trpi_node_fail(ret_error, err,
                              "cluster.seed-dns.nameserver: '%s': write 10.0.0.53, or "
                              "10.0.0.53:5353",
                              options.nameserver);
    }
    return err == TRP_OK
               ? TRP_OK
               : trpi_node_fail(ret_error, err, "cannot look up seed nodes: %s", trp_strerror(err));
}

static trp_err
seeds_check(const trp_node *node, trp_node_error *ret_error)
{
    return trpi_config_list_count(node->config, "cluster.seed-nodes") <= TRP_CLUSTER_SEEDS_MAX
               ? TRP_OK
               : trpi_node_fail(ret_error, TRP_ECONFIG, "cluster.seed-nodes: more than %d",
                                TRP_CLUSTER_SEEDS_MAX);
}

/* "self" becomes the own address. */
static trp_err
seeds_join(trp_node *node, trp_node_error *ret_error)
{
    const char *addresses[TRP_CLUSTER_SEEDS_MAX];
    size_t count = trpi_config_list_count(node->config, "cluster.seed-nodes");
    if (count == 0) {
        return seeds_look_up(node, ret_error);
    }
    for (size_t i = 0; i < count; i++) {
        const char *seed = trpi_config_list_at(node->config, "cluster.seed-nodes", i);
        addresses[i] = strcmp(seed, "self") == 0 ? node->address : seed;
    }
    trp_err err = trpi_cluster_join(node->cluster, addresses, count, NULL, NULL);
    return err == TRP_OK ? TRP_OK
                         : trpi_node_fail(ret_error, err, "cannot join the seed nodes: %s",
                                          trp_strerror(err));
}

/* node-I4. Check the place of the control socket, and whether a node runs there already. */
static trp_err
control_check(trp_node *node, trp_node_error *ret_error)
{
    char why[256];
    if (!node->control_path[0]) {
        return TRP_OK;
    }
    trp_err err = trpi_control_socket_check(node->control_path, why, sizeof why);
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err, "control socket %s: %s", node->control_path, why);
    }
    return node->only_check ? TRP_OK : running_check(node, ret_error);
}

/* node-I4. Run all checks, before other processes can notice this node. */
static trp_err
node_prepare(trp_node *node, const trp_node_options *options, trp_node_error *ret_error)
{
    unsigned port = (unsigned)trpi_config_int(node->config, "remote.port");
    trp_err err = seeds_check(node, ret_error);
    err = err == TRP_OK ? control_path_decide(node, options, port, ret_error) : err;
    err = err == TRP_OK ? control_check(node, ret_error) : err;
    err = err == TRP_OK ? trpi_node_system_start(node, options, ret_error) : err;
    err = err == TRP_OK ? trpi_node_management_check(node, ret_error) : err;
    err = err == TRP_OK ? trpi_node_persistence_start(node, ret_error) : err;
    err = err == TRP_OK ? plugins_open(node, ret_error) : err;
    err = err == TRP_OK ? trpi_node_remote_start(node, ret_error) : err;
    if (err == TRP_OK && !node->control_path[0]) {
        err =
            control_path_decide(node, options, trpi_remote_address(node->remote)->port, ret_error);
    }
    err = err == TRP_OK ? trpi_node_cluster_start(node, ret_error) : err;
    err = err == TRP_OK && node->plugins_count == 0 ? trpi_node_lease_check(node, ret_error) : err;
    return err == TRP_OK ? trpi_node_shutdown_start(node, ret_error) : err;
}

static trp_err
node_begin(trp_node *node, trp_node_error *ret_error)
{
    char what[512] = "";
    trp_err err = trpi_carry_new(node, &node->carry);
    err = err == TRP_OK ? trpi_health_start(node, &node->health) : err;
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err, "out of memory");
    }
    err = control_start(node, ret_error);
    node->commands.is_quick = trpi_node_command_is_quick;
    node->commands.serve = trpi_node_command_serve;
    err = err == TRP_OK ? trpi_otlp_start(node, &node->otlp, ret_error) : err;
    err = err == TRP_OK ? trpi_node_management_start(node, ret_error) : err;
    if (err == TRP_OK && (node->control || node->management) &&
        (err = trpi_node_events_start(node)) != TRP_OK) {
        return trpi_node_fail(ret_error, err, "control: %s", trp_strerror(err));
    }
    if (err == TRP_OK && node->control && (err = trpi_control_begin(node->control)) != TRP_OK) {
        return trpi_node_fail(ret_error, err, "control: %s", trp_strerror(err)); /* node-I5 */
    }
    if (err == TRP_OK) {
        trpi_carry_bind(node->carry, true);
    }
    err = err == TRP_OK ? plugins_begin(node, ret_error) : err;
    err = err == TRP_OK ? trpi_apps_start(node, ret_error) : err;
    err = err == TRP_OK ? trpi_node_lease_check(node, ret_error) : err; /* of a plugin */
    if (err == TRP_OK && (err = trpi_bridges_begin(node, what, sizeof what)) != TRP_OK) {
        return trpi_node_fail(ret_error, err, "%s", what);
    }
    if (err != TRP_OK) {
        return err;
    }
    trpi_remote_accept(node->remote);
    return seeds_join(node, ret_error);
}

/* Give *ret_node; only_check: none of its parts has begun. */
static trp_err
node_make(trpi_config *config, const trp_node_options *options, bool only_check,
          trp_node **ret_node, trp_node_error *ret_error)
{
    trpi_config_error error = { "" };
    if (trpi_node_config_check(config, &error) != TRP_OK) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "%s", error.text);
    }
    trpi_node_limits limits;
    trpi_node_limits_look(&limits);
    if (!only_check && !trpi_node_limits_suffice(&limits, error.text, sizeof error.text)) {
        return trpi_node_fail(ret_error, TRP_ECONFIG, "%s", error.text);
    }
    trp_node *node = trpi_alloc(sizeof *node);
    if (!node) {
        return trpi_node_fail(ret_error, TRP_ENOMEM, "out of memory");
    }
    node->magic = TRPI_NODE_MAGIC;
    node->config = config;
    node->only_check = only_check;
    pthread_mutex_init(&node->lock, NULL);
    pthread_cond_init(&node->own_ended, NULL);
    node->probes = &trpi_doctor_probes_real;
    trpi_record_ring_init(&node->dead_ring, TRPI_DEAD_RING_BYTES);
    trpi_record_ring_init(&node->log_ring, TRPI_LOG_RING_BYTES);
    node->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    trp_err err =
        node->end_fd < 0 ? trpi_node_fail(ret_error, TRP_EIO, "no file descriptor") : TRP_OK;
    err = err == TRP_OK ? node_prepare(node, options, ret_error) : err;
    err = err == TRP_OK && !only_check ? node_begin(node, ret_error) : err;
    if (err != TRP_OK) {
        node->config = NULL;  /* still the caller's */
        trp_node_close(node); /* node-I2 */
        return err;
    }
    *ret_node = node;
    return TRP_OK;
}

trp_err
trpi_node_open(trpi_config *config, const trp_node_options *options, trp_node **ret_node,
               trp_node_error *ret_error)
{
    return node_make(config, options, false, ret_node, ret_error);
}

trp_err
trpi_node_check(trpi_config *config, const trp_node_options *options, trp_node_error *ret_error)
{
    trp_node *node = NULL;
    trp_err err = node_make(config, options, true, &node, ret_error);
    if (err == TRP_OK) {
        node->config = NULL; /* the caller's */
        trp_node_close(node);
    }
    return err;
}

int
trpi_node_open_exit(trp_err err)
{
    switch (err) {
    case TRP_ECONFIG:
    case TRP_EINVAL:
        return TRPI_CTL_EXIT_CONFIG;
    case TRP_EADDRINUSE:
    case TRP_EEXIST:
        return TRPI_CTL_EXIT_UNREACHABLE;
    case TRP_EPERM:
        return TRPI_CTL_EXIT_PERMISSION;
    default:
        return TRPI_CTL_EXIT_INTERNAL;
    }
}

trp_err
trp_node_open(const trp_node_options *options, trp_node **ret_node, trp_node_error *ret_error)
{
    trp_node_options given = TRP_NODE_OPTIONS_INIT;
    trp_node_error error_unwanted;
    trpi_config_error config_error = { "" };
    trpi_config *config = NULL;
    ret_error = ret_error ? ret_error : &error_unwanted;
    ret_error->text[0] = '\0';
    if (!ret_node) {
        return trpi_node_fail(ret_error, TRP_EINVAL, "ret_node is NULL");
    }
    if (!TRPI_SIZED_COPY(options, &given, fault_trap)) {
        return trpi_node_fail(ret_error, TRP_EINVAL,
                              "the size of trp_node_options is not one of a release, or a newer "
                              "program asks for more than this library can do");
    }
    trpi_node_options flags;
    memset(&flags, 0, sizeof flags);
    flags.config_file = given.config_file;
    for (size_t i = 0; given.settings && given.settings[i]; i++) {
        if (flags.settings_count == TRPI_NODE_SETTINGS_MAX) {
            return trpi_node_fail(ret_error, TRP_ECONFIG, "more than %d settings",
                                  TRPI_NODE_SETTINGS_MAX);
        }
        flags.settings[flags.settings_count].origin = "settings";
        flags.settings[flags.settings_count++].value = given.settings[i];
    }
    trp_err err = trpi_node_config_build(&flags, given.environment_ignored ? NULL : environ,
                                         &config, &config_error);
    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err == TRP_ENOMEM ? err : TRP_ECONFIG, "%s",
                              config_error.text);
    }
    err = trpi_node_open(config, &given, ret_node, ret_error);
    if (err != TRP_OK) {
        trpi_config_free(config);
    }
    return err;
}

/* ---- looking --------------------------------------------------------------------------------- */

trp_system *
trp_node_system(trp_node *node)
{
    return node->system;
}

const char *
trp_node_address(const trp_node *node)
{
    return node->address;
}

const char *
trp_node_control_path(const trp_node *node)
{
    return node->control ? trpi_control_path(node->control) : NULL;
}

const char *
trp_node_config_get(const trp_node *node, const char *key, size_t index)
{
    trpi_config_entry entry;
    if (!key || !trpi_config_find(node->config, key, &entry) || index >= entry.count) {
        return NULL;
    }
    return entry.values[index];
}

/* ---- stopping -------------------------------------------------------------------------------- */

void
trp_node_close(trp_node *node)
{
    if (!node) {
        return;
    }
    trpi_assert(node->magic == TRPI_NODE_MAGIC);
    /* for threads that wait, unless it has ended already */
    trpi_node_end(node, TRP_NODE_TERMINATED);
    if (node->carry) {
        trpi_carry_bind(node->carry, false);
    }
    if (!trpi_node_stop(node)) {
        return; /* node-I3 */
    }
    trpi_carry_free(node->carry);
    trpi_bridges_free(node);
    for (size_t i = node->plugins_count; i > 0; i--) {
        trpi_plugin_fini(&node->plugins[i - 1]);
    }
    if (node->end_fd >= 0) {
        (void)close(node->end_fd);
    }
    if (node->log_own) {
        trpi_node_log_close(&node->log);
    }
    trpi_config_free(node->config);
    trpi_record_ring_fini(&node->dead_ring);
    trpi_record_ring_fini(&node->log_ring);
    pthread_cond_destroy(&node->own_ended);
    trpi_mutex_destroy(&node->lock);
    node->magic = 0;
    trpi_free(node);
}

trpi_faults *
trpi_node_faults(trp_node *node)
{
    return trpi_remote_faults(node->remote);
}
