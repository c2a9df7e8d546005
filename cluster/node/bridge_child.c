/* bridge_child.c - the process of a bridge that the node starts.
 *
 * Shape.   socket pair 1: the program's standard input and output; socket pair 2: its standard
 *          error, whose lines an actor logs. The process leads a group of its own, so that what it
 *          starts ends with it.
 * Must hold.
 *   bridge-child-H1  A process that was started is waited for: by its session, or when the node
 *       ends.
 *   bridge-child-H2  Of a line of standard error TRPI_BRIDGE_ERROR_BYTES are kept.
 *   bridge-child-H3  What the process has started, and has left in its group, ends with it: it is
 *       told to when the process has ended, and is killed if it does not.
 * Tests.   tests/system/bridge_child.sh
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/node/bridge_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/io.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/node_private.h"
#include "io/adopt.h"

#define KEY_BYTES (TRP_NAME_BYTES_MAX + 32)
#define END_STEP_MS 10
#define END_STEPS 100 /* before a kill */

/* ---- settings -------------------------------------------------------------------------------- */

static void
argv_free(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++) {
        trpi_free(argv[i]);
    }
    trpi_free(argv);
}

/* NULL: no memory. */
static char **
argv_copy(const trpi_config_entry *entry)
{
    char **argv = trpi_alloc((entry->count + 1) * sizeof *argv);
    for (size_t i = 0; argv != NULL && i < entry->count; i++) {
        argv[i] = trpi_strdup(entry->values[i]);
        if (argv[i] == NULL) {
            argv_free(argv);
            return NULL;
        }
    }
    return argv;
}

static uint32_t
pause_of(const trpi_config *config, const char *name, const char *key, uint32_t default_ms)
{
    char text[KEY_BYTES];
    trpi_config_entry entry;
    double number = 0;
    const char *what = NULL;
    (void)snprintf(text, sizeof text, "bridge.%s.%s", name, key);
    return trpi_config_find(config, text, &entry) &&
                   trpi_config_parse_number(TRPI_CONFIG_DURATION, entry.values[0], &number,
                                            &what) == TRP_OK
               ? (uint32_t)number
               : default_ms;
}

trp_err
trpi_bridge_child_new(const trpi_config *config, const char *name, trpi_bridge_child **ret_child)
{
    char key[KEY_BYTES];
    trpi_config_entry entry = { 0 };
    (void)snprintf(key, sizeof key, "bridge.%s.command", name);
    (void)trpi_config_find(config, key, &entry);
    trpi_bridge_child *child = trpi_alloc(sizeof *child);
    if (child == NULL || (child->argv = argv_copy(&entry)) == NULL) {
        trpi_free(child);
        return TRP_ENOMEM;
    }
    child->min_ms = pause_of(config, name, "min-backoff", TRPI_BRIDGE_BACKOFF_S_DEFAULT * 1000u);
    child->max_ms =
        pause_of(config, name, "max-backoff", TRPI_BRIDGE_BACKOFF_MAX_S_DEFAULT * 1000u);
    *ret_child = child;
    return TRP_OK;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int
process_spawn(trpi_bridge_child *child, int stream, int errors)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGKILL);
    (void)sigdelset(&all, SIGSTOP);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    error = posix_spawn_file_actions_adddup2(&actions, stream, STDIN_FILENO);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, stream, STDOUT_FILENO);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
#if __GLIBC_PREREQ(2, 34) /* else those that some library opened without O_CLOEXEC are inherited */
    error =
        error != 0 ? error : posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
    error = error != 0 ? error
                       : posix_spawnp(&child->pid, child->argv[0], &actions, &attributes,
                                      child->argv, environ);
    child->pid = error != 0 ? 0 : child->pid;
    child->group = 0;
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The program's end blocks, as programs expect; ours does not. Returns 0 or an errno. */
static int
pair_open(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return errno;
    }
    int flags = fcntl(pair[0], F_GETFL);
    return flags >= 0 && fcntl(pair[0], F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : errno;
}

static void
pair_close(const int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            (void)close(pair[i]);
        }
    }
}

int
trpi_bridge_child_start(trpi_bridge_child *child, uint64_t now_ms, int *ret_stream, int *ret_errors)
{
    int stream[2] = { -1, -1 }, errors[2] = { -1, -1 };
    int error = pair_open(stream);
    error = error != 0 ? error : pair_open(errors);
    error = error != 0 ? error : process_spawn(child, stream[1], errors[1]);
    child->started_ms = now_ms;
    if (error != 0) {
        pair_close(stream);
        pair_close(errors);
        return error;
    }
    (void)close(stream[1]);
    (void)close(errors[1]);
    *ret_stream = stream[0];
    *ret_errors = errors[0];
    return 0;
}

bool
trpi_bridge_child_is_over(const trpi_bridge_child *child)
{
    siginfo_t info = { 0 };
    return child->pid != 0 &&
           waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

/* Is something left of the group? Its number is not given anew before all of it has gone, and is
 * not looked at after that. EPERM: what is left is not ours to end. */
static bool
group_is_left(const trpi_bridge_child *child)
{
    if (child->group == 0) {
        return false;
    }
    while (waitpid(-child->group, NULL, WNOHANG) > 0) {
        /* orphans are ours if this is the first process of a container */
    }
    return kill(-child->group, 0) == 0;
}

bool
trpi_bridge_child_reap(trpi_bridge_child *child)
{
    int status = 0;
    pid_t got = child->pid == 0 ? 0 : waitpid(child->pid, &status, WNOHANG);
    if (child->pid != 0 && got == 0) {
        return false;
    }
    if (got > 0 && WIFSIGNALED(status)) {
        (void)snprintf(child->how, sizeof child->how, "was killed by signal %d", WTERMSIG(status));
    } else if (child->pid != 0) {
        (void)snprintf(child->how, sizeof child->how, "ended with %d",
                       got > 0 ? WEXITSTATUS(status) : 0);
    }
    if (child->pid != 0) { /* bridge-child-H3 */
        child->group = child->pid;
        child->pid = 0;
        trpi_bridge_child_signal(child, SIGTERM);
    }
    child->group = group_is_left(child) ? child->group : 0;
    return child->group == 0;
}

void
trpi_bridge_child_signal(const trpi_bridge_child *child, int number)
{
    pid_t group = child->pid != 0 ? child->pid : child->group;
    if (group > 0) {
        (void)kill(-group, number); /* ESRCH: it has just ended */
    }
}

uint32_t
trpi_bridge_child_pause(trpi_bridge_child *child, uint64_t now_ms)
{
    bool anew = child->pause_ms == 0 || now_ms - child->started_ms > child->max_ms;
    uint64_t pause_ms = anew ? child->min_ms : (uint64_t)child->pause_ms * 2;
    child->pause_ms = (uint32_t)(pause_ms < child->max_ms ? pause_ms : child->max_ms);
    return child->pause_ms;
}

void
trpi_bridge_child_free(trpi_bridge_child *child)
{
    if (child == NULL) {
        return;
    }
    for (int i = 0; i < 2 * END_STEPS && !trpi_bridge_child_reap(child); i++) {
        if (i >= END_STEPS) {
            trpi_bridge_child_signal(child, SIGKILL);
        }
        (void)poll(NULL, 0, END_STEP_MS); /* bridge-child-H1; a process has no event to wait for */
    }
    argv_free(child->argv);
    trpi_free(child);
}

/* ---- standard error -------------------------------------------------------------------------- */

typedef struct errors {
    trpi_bridge *bridge;
    size_t count;
    bool cut; /* the rest of the line is left out */
    char line[TRPI_BRIDGE_ERROR_BYTES + 1];
} errors;

typedef struct errors_args {
    trpi_bridge *bridge;
    int stream;
    uint32_t zero;
} errors_args;

static void
line_log(errors *e)
{
    e->line[e->count] = '\0';
    if (e->count > 0) {
        trp_system_log(e->bridge->system, TRP_LOG_INFO, "bridge", "%s: %s%s", e->bridge->name,
                       e->line, e->cut ? "..." : "");
    }
    e->count = 0;
    e->cut = false;
}

static void
bytes_take(errors *e, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            line_log(e);
        } else if (e->count < TRPI_BRIDGE_ERROR_BYTES) { /* bridge-child-H2 */
            e->line[e->count++] = bytes[i] == '\0' ? '?' : bytes[i];
        } else {
            e->cut = true;
        }
    }
}

static trp_err
errors_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    errors *e = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    trp_tcp_register_options options = TRP_TCP_REGISTER_OPTIONS_INIT;
    if (received != NULL) {
        trp_bytes rest = trp_bytes_ref(received->bytes);
        trp_bytes_part part;
        while (trp_bytes_length(rest) > 0 && trp_bytes_parts(rest, &part, 1) > 0) {
            bytes_take(e, part.data, part.bytes);
            trp_bytes_skip(&rest, part.bytes);
        }
        trp_bytes_unref(&rest);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        return trp_tcp_register(ctx, trp_sender(ctx), trp_self(ctx), &options);
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        line_log(e);
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static trp_err
errors_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const errors_args *a = trp_msg_payload(args);
    errors *e = state;
    e->bridge = a->bridge;
    return trpi_io_adopt(ctx, a->stream, trp_self(ctx));
}

static const trp_behaviour errors_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "bridge-errors",
                                                .version = 1,
                                                .state_bytes = sizeof(errors),
                                                .receive = errors_receive,
                                                .pre_start = errors_start };

trp_err
trpi_bridge_errors_spawn(trp_ctx *ctx, trpi_bridge *bridge, int stream)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    errors_args args = { bridge, stream, 0 };
    trp_ref ref;
    options.node = TRP_NODE_HERE;
    options.args_type = &trp_bytes_type;
    options.args = &args;
    options.args_bytes = sizeof args;
    trp_err err = trp_spawn(ctx, &errors_behaviour, &options, &ref);
    if (err != TRP_OK) {
        (void)close(stream);
    }
    return err;
}
