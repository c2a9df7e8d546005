/* node_main.c - the program `troupe node`, and every program that is a node by trp_node_run():
 * options, signals, banner, exit codes.
 *
 * Shape.   The main thread opens the node and then waits for a signal or the end of the membership,
 *          whichever comes first. TERM, INT, HUP, USR1, USR2 are blocked before any thread is made
 *          and read from a signalfd, so that no code runs in a signal handler.
 * States.  running --TERM, INT--> leaving
 *          running or leaving --left--> exit 0; running --downed--> exit 76
 *          leaving --leave-timeout, downed--> exit 75
 *          leaving or closing --TERM, INT TRPI_END_SAME_MS later or more--> exit 1 (node_again.c)
 * Tests.   tests/system/node.sh
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <troupe/log.h>

#include "base/assert.h"
#include "base/errno_name.h"
#include "base/sized.h"
#include "cluster/node/node_again.h"
#include "cluster/node/node_management.h"
#include "cluster/node/node_notify.h"
#include "cluster/node/node_private.h"
#include "cluster/node/node_start.h"
#include "cluster/node/start_pages.h"

#define STARTED_MS 5000 /* most nodes have joined by then */

static const char help[] =
    "\n"
    "Start a node in the foreground. Every option is also a key of the configuration file and an\n"
    "environment variable (cluster.downing.stable-after: TROUPE_CLUSTER_DOWNING_STABLE_AFTER).\n"
    "\n"
    "  --config FILE          read FILE (see deploy/troupe.conf)\n"
    "  --set KEY=VALUE        set any key; `troupe config show` lists them\n"
    "  --system NAME          name of the actor system (system)\n"
    "  --host HOST            host by which the others reach this node (remote.hostname)\n"
    "  --port PORT            its port; 0: any free one (remote.port)\n"
    "  --bind-host HOST       host to listen on, if it is another one (remote.bind-hostname)\n"
    "  --bind-port PORT       port to listen on, if it is another one (remote.bind-port)\n"
    "  --seed ADDRESS|self    node to join through; may be repeated (cluster.seed-nodes)\n"
    "  --role ROLE            may be repeated (cluster.roles)\n"
    "  --load PLUGIN[:ARGS]   shared object with actors; may be repeated (plugins)\n"
    "  --apps DIR             directory of applications, which are restarted when they change\n"
    "                         (apps.directory)\n"
    "  --socket PATH          control socket (control.socket)\n"
    "  --log-level LEVEL      error, warning, info, debug (log.level)\n"
    "  --log-format FORMAT    text, json or journald (log.format)\n"
    "  --log-file FILE        append log lines to FILE, not to standard error (log.file)\n"
    "\n"
    "Exit codes: 0 left the cluster; 1 ended by a second signal; 64 usage; 69 cannot listen, or "
    "runs\n"
    "already; 70 internal error; 75 told to leave, and did not within cluster.leave-timeout or\n"
    "was downed; 76 downed by the others; 77 the control socket may not be made; 78 configuration\n"
    "or plugin, or the cluster refuses it.\n"
    "Signals: TERM, INT leave the cluster, again after half a second or more: end at once; HUP "
    "reads\n"
    "log.level, remote.secure-cookie and the files of remote.tls again; USR1 opens log.file again; "
    "USR2\n"
    "logs what the node knows of itself, its cluster and its peers.\n";

static int
end_exit(trp_node *node, trp_node_end end)
{
    char text[TRPI_NODE_END_BYTES];
    int code = trpi_node_end_tell(node, end, text);
    trp_system_log(node->system, code == TRPI_CTL_EXIT_OK ? TRP_LOG_INFO : TRP_LOG_ERROR, "node",
                   "%s", text);
    return code;
}

/* ---- banner ---------------------------------------------------------------------------------- */

static void
banner_list(const trp_node *node, const char *label, const char *key)
{
    size_t count = trpi_config_list_count(node->config, key);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(stderr, "  %-10s %s\n", i ? "" : label,
                      trpi_config_list_at(node->config, key, i));
    }
}

static bool
has_no_seeds(const trp_node *node)
{
    return trpi_config_list_count(node->config, "cluster.seed-nodes") == 0 &&
           *trpi_config_text(node->config, "cluster.seed-dns.name") == '\0';
}

static void
banner_print(const trp_node *node, const trpi_node_options *options)
{
    const char *host = trpi_config_text(node->config, "remote.hostname");
    const char *bind_host = trpi_config_text(node->config, "remote.bind-hostname");
    int64_t bind_port = trpi_config_int(node->config, "remote.bind-port");
    bind_host = *bind_host ? bind_host : host;
    (void)fprintf(stderr, "troupe %s, pid %d\n  %-10s %s   uid %016llx\n", trp_version(),
                  (int)getpid(), "node", node->address,
                  (unsigned long long)trpi_system_self(node->system)->uid);
    trpi_tls_state tls;
    (void)fprintf(stderr, "  %-10s %s:%d   %s%s\n", "listen", bind_host,
                  bind_port >= 0 ? (int)bind_port : (int)trpi_remote_address(node->remote)->port,
                  trpi_remote_tls_state(node->remote, &tls) ? "TLS 1.3 mutual" : "not encrypted",
                  node->has_cookie ? ", cookie" : "");
    (void)fprintf(stderr, "  %-10s %s\n", "control",
                  trp_node_control_path(node) ? trp_node_control_path(node) : "none");
    if (options->config_file) {
        (void)fprintf(stderr, "  %-10s %s\n", "config", options->config_file);
    }
    banner_list(node, "seeds", "cluster.seed-nodes");
    banner_list(node, "roles", "cluster.roles");
    banner_list(node, "plugins", "plugins");
    (void)fprintf(stderr, "  %-10s %s, stable after %s\n", "downing",
                  trpi_config_text(node->config, "cluster.downing.active-strategy"),
                  trpi_config_text(node->config, "cluster.downing.stable-after"));
    if (has_no_seeds(node)) {
        (void)fprintf(stderr,
                      "not joined: no seed nodes. To join a cluster:  troupe join ADDRESS\n"
                      "            To start a new one:             troupe join %s\n",
                      node->address);
    }
}

/* Structured lines instead of the banner, where standard error is no terminal. */
static void
banner_log(const trp_node *node)
{
    const char *control = trp_node_control_path(node);
    trp_system_log(node->system, TRP_LOG_INFO, "node",
                   "started version=%s address=%s uid=%016llx control=%s pid=%d", trp_version(),
                   node->address, (unsigned long long)trpi_system_self(node->system)->uid,
                   control ? control : "none", (int)getpid());
    if (has_no_seeds(node)) {
        trp_system_log(
            node->system, TRP_LOG_INFO, "node",
            "not joined: no seed nodes; to join a cluster: troupe join ADDRESS; to start "
            "a new one: troupe join %s",
            node->address);
    }
}

/* ---- signals --------------------------------------------------------------------------------- */

static int
signals_open(void)
{
    static const int taken[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
    sigset_t set;
    struct sigaction ignore;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        (void)sigaddset(&set, taken[i]);
    }
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a closed stderr is no reason to die */
    (void)sigaction(SIGXFSZ, &ignore, NULL); /* nor is a file at its limit of size: EFBIG */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Keep the reason of a refused reload as a problem until a reload succeeds; "": it has. */
static void
reload_note(trp_node *node, const char *refused)
{
    pthread_mutex_lock(&node->lock);
    (void)snprintf(node->reload_refused, sizeof node->reload_refused, "%s", refused);
    pthread_mutex_unlock(&node->lock);
}

/* Reload the cookies, of the configuration or a file, and the files of TLS, and log the outcome. */
static void
secrets_reload(trp_node *node, const trpi_config *config)
{
    trpi_node_secrets secrets;
    trpi_tls_state tls;
    trpi_config_error error = { "" };
    char digest[TRPI_REMOTE_SECRETS_BYTES];
    /* A change between no cookie, a configured one and the user's one needs a restart. */
    if (!node->has_cookie || trpi_node_has_users_cookie(config) != node->secrets.is_users) {
        reload_note(node, "");
        (void)trpi_remote_secrets_reload(node->remote, NULL, NULL); /* ESTATE: no files either */
        return;
    }
    if (trpi_node_secrets_load(config, TRPI_SECRETS_READ, &secrets, &error) != TRP_OK) {
        reload_note(node, error.text);
        trp_system_log(node->system, TRP_LOG_ERROR, "node", "reload: %s; the old cookie stays",
                       error.text);
        if (trpi_remote_tls_state(node->remote, &tls)) { /* its files all the same */
            (void)trpi_remote_secrets_reload(node->remote, NULL, NULL);
        }
        return;
    }
    reload_note(node, "");
    if (secrets.is_users && node->secrets.is_users && /* connections need not begin anew */
        strcmp(secrets.now, node->secrets.now) == 0 &&
        strcmp(secrets.before, node->secrets.before) == 0) {
        return;
    }
    trp_err err = trpi_remote_secrets_reload(node->remote, secrets.now, secrets.before);
    if (err == TRP_EINVAL) {
        trp_system_log(node->system, TRP_LOG_ERROR, "node",
                       "reload: remote.secure-cookie-before without remote.secure-cookie; the old "
                       "cookies stay");
        reload_note(node, "remote.secure-cookie-before without remote.secure-cookie");
    }
    if (err == TRP_OK && secrets.now[0] != '\0' &&
        trpi_remote_secrets_digest(secrets.now, secrets.before, digest) == TRP_OK) {
        trpi_cluster_compat_set(node->cluster, TRPI_NODE_COOKIE_KEY, digest); /* for joiners */
    }
    if (err == TRP_OK) {
        node->secrets = secrets;
    }
}

/* Is a key taken from the configuration at a reload? */
static bool
is_reloaded(const char *key)
{
    return strcmp(key, "log.level") == 0 ||
           strncmp(key, "remote.secure-cookie", strlen("remote.secure-cookie")) == 0;
}

/* Compare one key with what the node runs with, and report the difference. report NULL: no memory
 * for one. */
static void
key_compare(trp_node *node, const trpi_config_entry *now, cJSON *report)
{
    trpi_config_entry then = { 0 };
    const char *level = node->reload.log_level;
    bool same = trpi_config_find(node->config, now->key, &then) && then.count == now->count;
    if (strcmp(now->key, "log.level") == 0 && level[0] != '\0') {
        then.values = &level; /* that of the reload before */
    }
    for (size_t j = 0; same && j < now->count; j++) {
        same = strcmp(now->values[j], then.values[j]) == 0;
    }
    if (same) {
        return;
    }
    if (is_reloaded(now->key)) {
        trpi_reload_changed(report, &then, now);
        return;
    }
    trp_system_log(node->system, TRP_LOG_WARNING, "node",
                   "reload: %s has changed; that needs a restart", now->key);
    trpi_reload_restart(report, now->key);
}

/* Read the configuration again and take log.level and the cookies from it, the files of TLS, and
 * those of tokens; the rest needs a restart. Gives a report; NULL: no memory for it. */
static cJSON *
node_reload(trp_node *node, const trpi_node_options *options)
{
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    if (trpi_node_config_build(options, options->environment_ignored ? NULL : environ, &config,
                               &error) != TRP_OK) {
        trp_system_log(node->system, TRP_LOG_ERROR, "node", "reload refused, nothing changed: %s",
                       error.text);
        reload_note(node, error.text);
        return NULL;
    }
    cJSON *report = trpi_reload_report();
    const char *name = trpi_config_text(config, "log.level");
    trp_log_level level = trpi_log_level_parse(name);
    for (size_t i = 0; i < trpi_config_count(config); i++) {
        trpi_config_entry now;
        trpi_config_at(config, i, &now);
        key_compare(node, &now, report);
    }
    (void)snprintf(node->reload.log_level, sizeof node->reload.log_level, "%s", name);
    atomic_store_explicit(&node->log.level, (int)level, memory_order_relaxed);
    trp_log_level_set(node->system, level);
    trp_system_log(node->system, TRP_LOG_INFO, "node", "reloaded: log.level is %s", name);
    secrets_reload(node, config);
    trpi_config_free(config);
    char why[TRPI_NODE_RELOAD_BYTES];
    if (!trpi_node_management_reload(node, why)) {
        trp_system_log(node->system, TRP_LOG_ERROR, "node", "reload: %s", why);
        reload_note(node, why);
    }
    return report;
}

/* Reload for all requests that have come up to now. */
static void
reload_serve(trp_node *node, const trpi_node_options *options)
{
    uint32_t wanted = trpi_reload_wanted(node);
    trpi_notify_reloading();
    cJSON *report = node_reload(node, options);
    trpi_notify_reloaded();
    trpi_reload_done(node, wanted, report);
}

static void
logs_reopen(trp_node *node)
{
    const char *file = trpi_config_text(node->config, "log.file");
    if (!node->log_own) {
        trp_system_log(node->system, TRP_LOG_INFO, "node",
                       "SIGUSR1: the program writes the log itself: nothing is opened again");
        return;
    }
    trp_err err = trpi_node_log_reopen(&node->log);
    if (err == TRP_EIO) {
        trp_system_log(node->system, TRP_LOG_ERROR, "node",
                       "SIGUSR1: %s cannot be opened: %s (%s); the old file stays", file,
                       strerror(errno), trpi_errno_name(errno));
    } else {
        trp_system_log(node->system, TRP_LOG_INFO, "node",
                       err == TRP_OK
                           ? "SIGUSR1: %s was opened again"
                           : "SIGUSR1: the log goes to standard error%s: there is nothing "
                             "to open again (log.file)",
                       file);
    }
}

/* When this node was told to leave; 0: not yet. */
typedef struct leaving {
    uint64_t since_ms;
} leaving;

/* true: at once. */
static bool
end_take(trp_node *node, const struct signalfd_siginfo *info, leaving *l)
{
    const char *name = info->ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT";
    uint64_t now_ms = trpi_world_mono_ns(trpi_system_world(node->system)) / 1000000u;
    if (l->since_ms == 0) {
        l->since_ms = now_ms;
        trpi_audit_signal(node, "leave", name, info->ssi_uid, info->ssi_pid);
        trpi_notify_stopping();
        trp_system_log(node->system, TRP_LOG_INFO, "node",
                       "%s: leaving the cluster (once more to end at once)", name);
        trp_node_leave(node);
        return false;
    }
    if (now_ms - l->since_ms < TRPI_END_SAME_MS) {
        return false;
    }
    trpi_audit_signal(node, "end-at-once", name, info->ssi_uid, info->ssi_pid);
    trp_system_log(node->system, TRP_LOG_WARNING, "node", "%s again: ending at once", name);
    return true;
}

/* Read the signals that have arrived. true: a second request to end. */
static bool
signals_take(int fd, trp_node *node, const trpi_node_options *options, leaving *l)
{
    struct signalfd_siginfo info;
    bool at_once = false;
    while (!at_once && read(fd, &info, sizeof info) == sizeof info) {
        switch (info.ssi_signo) {
        case SIGHUP:
            trpi_audit_signal(node, "reload", "SIGHUP", info.ssi_uid, info.ssi_pid);
            trpi_notify_reloading();
            cJSON_Delete(node_reload(node, options));
            trpi_notify_reloaded();
            break;
        case SIGUSR1:
            logs_reopen(node);
            break;
        case SIGUSR2:
            trpi_node_dump(node);
            break;
        default:
            at_once = end_take(node, &info, l);
            break;
        }
    }
    return at_once;
}

static int
node_run(trp_node *node, const trpi_node_options *options, int signal_fd, leaving *l)
{
    struct pollfd fds[3] = { { signal_fd, POLLIN, 0 },
                             { trp_node_end_fd(node), POLLIN, 0 },
                             { trpi_reload_open(node) == TRP_OK ? node->reload.fd : -1, POLLIN,
                               0 } };
    int quiet_ms = STARTED_MS; /* then what only the start needed is given back, once */
    for (;;) {
        trp_node_end end;
        int count = poll(fds, 3, quiet_ms);
        if (count < 0 && errno != EINTR) {
            return TRPI_CTL_EXIT_INTERNAL;
        }
        if (count == 0) {
            trpi_start_pages_drop();
            quiet_ms = -1;
        }
        if (signals_take(signal_fd, node, options, l)) {
            _exit(TRPI_CTL_EXIT_NO); /* at once: without waiting for other nodes */
        }
        if (fds[2].revents & POLLIN) {
            reload_serve(node, options);
        }
        if ((fds[1].revents & POLLIN) && trp_node_await(node, 1, &end) == TRP_OK) {
            return end_exit(node, end);
        }
    }
}

/* Put the program's own settings before those of the command line, which are stronger. */
static trp_err
settings_add(trpi_node_options *options, const trp_node_options *given)
{
    size_t count = 0;
    while (given->settings && given->settings[count]) {
        count++;
    }
    if (count > TRPI_NODE_SETTINGS_MAX - options->settings_count) {
        return TRP_ECONFIG;
    }
    memmove(options->settings + count, options->settings,
            options->settings_count * sizeof options->settings[0]);
    for (size_t i = 0; i < count; i++) {
        options->settings[i].origin = "settings";
        options->settings[i].key = NULL;
        options->settings[i].value = given->settings[i];
    }
    options->settings_count += count;
    options->config_file = options->config_file ? options->config_file : given->config_file;
    options->environment_ignored = given->environment_ignored != 0;
    return TRP_OK;
}

/* Raise the number of descriptors: a node needs many connections, but some libraries make a table
 * of that size. */
static void
descriptors_raise(void)
{
    enum { ENOUGH = 65536 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max &&
        limit.rlim_cur < ENOUGH) {
        limit.rlim_cur = limit.rlim_max < ENOUGH ? limit.rlim_max : ENOUGH;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* else the node goes on with the present limit */
    }
}

static void
node_end(trp_node *node, int signal_fd, const leaving *l)
{
    trpi_end_again *again = trpi_end_again_start(node, signal_fd, l->since_ms);
    trpi_notify_stopping();
    trpi_reload_close(node);
    trp_node_close(node);
    trpi_notify_end();
    trpi_end_again_stop(again);
}

/* Open the node and let the program begin. Returns 0, or the exit code. */
static int
node_begin(const trpi_node_options *options, const trp_node_options *given, int signal_fd,
           trp_node_start_fn start, void *arg, trp_node **ret_node)
{
    trpi_config *config = NULL;
    trpi_config_error config_error = { "" };
    trp_node_error error = { "" };
    trp_node_options node_options = *given;
    if (trpi_node_config_build(options, options->environment_ignored ? NULL : environ, &config,
                               &config_error) != TRP_OK) {
        (void)fprintf(stderr, "troupe: %s\n", config_error.text);
        return TRPI_CTL_EXIT_CONFIG;
    }
    node_options.control_socket_forced = 1;
    /* signals are the program's to choose */
    node_options.fault_trap = given->fault_trap ? given->fault_trap : TRP_FAULT_TRAP_REPORT;
    trp_err err = trpi_node_open(config, &node_options, ret_node, &error);
    if (err != TRP_OK) {
        (void)fprintf(stderr, "troupe: %s\n", error.text);
        trpi_config_free(config);
        return trpi_node_open_exit(err);
    }
    err = start ? start(*ret_node, arg) : TRP_OK;
    if (err != TRP_OK) {
        trp_system_log((*ret_node)->system, TRP_LOG_ERROR, "node",
                       "the program failed at its start, the node ends: %s", trp_strerror(err));
        node_end(*ret_node, signal_fd, &(leaving){ 0 });
        return err == TRP_ECONFIG ? TRPI_CTL_EXIT_CONFIG : TRPI_CTL_EXIT_INTERNAL;
    }
    return 0;
}

int
trp_node_run(int argc, char **argv, const trp_node_options *options, trp_node_start_fn start,
             void *arg)
{
    trp_node_options given = TRP_NODE_OPTIONS_INIT;
    trpi_node_options flags;
    trp_node *node = NULL;
    int rc = trpi_node_options_parse(argc, argv, 0, &flags);
    if (rc != 0) {
        return rc;
    }
    if (flags.help) {
        (void)printf("usage: %s [OPTION]...\n%s", argc > 0 ? argv[0] : "node", help);
        return fflush(stdout) == 0 ? 0 : TRPI_CTL_EXIT_OUTPUT;
    }
    if (!TRPI_SIZED_COPY(options, &given, fault_trap)) {
        (void)fputs("troupe: the size of trp_node_options is not one of a release, or a newer "
                    "program asks for more than this library can do\n",
                    stderr);
        return TRPI_CTL_EXIT_CONFIG;
    }
    if (settings_add(&flags, &given) != TRP_OK) {
        (void)fprintf(stderr, "troupe: more than %d settings\n", TRPI_NODE_SETTINGS_MAX);
        return TRPI_CTL_EXIT_CONFIG;
    }
    descriptors_raise();
    int signal_fd = signals_open();
    if (signal_fd < 0) {
        (void)fprintf(stderr, "troupe: cannot wait for signals\n");
        return TRPI_CTL_EXIT_INTERNAL;
    }
    rc = node_begin(&flags, &given, signal_fd, start, arg, &node);
    if (rc == 0) {
        if (node->log.format == 0 && isatty(STDERR_FILENO)) {
            banner_print(node, &flags);
        } else {
            banner_log(node);
        }
        trpi_notify_begin(node, has_no_seeds(node));
        leaving l = { 0 };
        rc = node_run(node, &flags, signal_fd, &l);
        node_end(node, signal_fd, &l);
    }
    (void)close(signal_fd);
    return rc;
}

int
trp_node_main(int argc, char **argv)
{
    char name[] = "troupe node";
    /* the output of plugins may be read through a pipe, too */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 0) {
        argv[0] = name;
    }
    return trp_node_run(argc, argv, NULL, NULL, NULL);
}
