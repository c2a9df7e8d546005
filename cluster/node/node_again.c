/* node_again.c - see the header.
 *
 * Why.     The close of a node may hang, in the `fini` of a plugin or in a file system, and the
 *          thread that closes it reads no signals, which are blocked.
 * Must hold.
 *   node-again-A1  Nothing that hangs may hold the thread: it takes no lock of the node, and its
 *       lines go to an output of its own, which waits for a reader TRPI_LOG_PATIENCE_MS at most.
 *   node-again-A2  The node is gone some day, while the thread reads: it has copies of what it
 *       needs.
 * Tests.   tests/system/node.sh
 */
#include "cluster/node/node_again.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/node/ctl_proto.h"

struct trpi_end_again {
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trpi_world *world; /* node-again-A2 */
    trpi_node_log log; /* node-again-A1 */
    int signal_fd, stop_fd;
    uint64_t since_ms; /* the thread's */
    pthread_t thread;
};

static void
line_say(trpi_end_again *again, trp_log_level level, const char *source, const char *text)
{
    trp_log_line line = { .level = level, .source = source, .text = text };
    line.wall_ms = trpi_world_wall_ms(again->world);
    line.mono_ns = trpi_world_mono_ns(again->world);
    trpi_node_log_line(&again->log, &line);
}

static void
order_audit(trpi_end_again *again, const char *order, const char *name,
            const struct signalfd_siginfo *info)
{
    char text[sizeof again->address + 128];
    (void)snprintf(text, sizeof text,
                   "order=%s on=%s by-uid=%" PRIu32 " by-pid=%" PRIu32 " signal=%s", order,
                   again->address, info->ssi_uid, info->ssi_pid, name);
    line_say(again, TRP_LOG_INFO, "audit", text);
}

static void
signal_take(trpi_end_again *again, const struct signalfd_siginfo *info)
{
    const char *name = info->ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT";
    char text[96];
    if (info->ssi_signo != SIGTERM && info->ssi_signo != SIGINT) {
        return;
    }
    uint64_t now_ms = trpi_world_mono_ns(again->world) / 1000000u;
    if (again->since_ms == 0) {
        again->since_ms = now_ms;
        order_audit(again, "end", name, info);
        (void)snprintf(text, sizeof text, "%s: the node ends already (once more to end at once)",
                       name);
        line_say(again, TRP_LOG_INFO, "node", text);
    } else if (now_ms - again->since_ms >= TRPI_END_SAME_MS) {
        order_audit(again, "end-at-once", name, info);
        (void)snprintf(text, sizeof text, "%s again: ending at once", name);
        line_say(again, TRP_LOG_WARNING, "node", text);
        _exit(TRPI_CTL_EXIT_NO);
    }
}

static void *
again_run(void *arg)
{
    trpi_end_again *again = arg;
    struct pollfd fds[2] = { { again->signal_fd, POLLIN, 0 }, { again->stop_fd, POLLIN, 0 } };
    struct signalfd_siginfo info;
    (void)pthread_setname_np(pthread_self(), "trp-end");
    while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
        while (read(again->signal_fd, &info, sizeof info) == sizeof info) {
            signal_take(again, &info);
        }
        if (fds[1].revents & POLLIN) {
            break;
        }
    }
    return NULL;
}

static void
log_open(trpi_end_again *again, trp_node *node)
{
    /* the program's own log may hang with the node: standard error then */
    const char *file = node->log_own ? trpi_config_text(node->config, "log.file") : NULL;
    trp_log_level level =
        (trp_log_level)atomic_load_explicit(&node->log.level, memory_order_relaxed);
    level = node->log_own ? level : TRP_LOG_INFO;
    if (trpi_node_log_open(&again->log, node->log.format, level, file) != TRP_OK) {
        trpi_node_log_close(&again->log);
        (void)trpi_node_log_open(&again->log, node->log.format, level, NULL); /* cannot fail */
    }
    again->log.file = NULL; /* node-again-A2 */
}

static void
again_free(trpi_end_again *again)
{
    if (again->stop_fd >= 0) {
        (void)close(again->stop_fd);
    }
    trpi_node_log_close(&again->log);
    trpi_world_free(again->world);
    trpi_free(again);
}

trpi_end_again *
trpi_end_again_start(trp_node *node, int signal_fd, uint64_t since_ms)
{
    trpi_end_again *again = trpi_alloc(sizeof *again);
    if (again != NULL) {
        (void)snprintf(again->address, sizeof again->address, "%s", node->address);
        log_open(again, node);
        again->signal_fd = signal_fd;
        again->since_ms = since_ms;
        again->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (again->stop_fd >= 0 && trpi_world_real_new(&again->world) == TRP_OK &&
            pthread_create(&again->thread, NULL, again_run, again) == 0) {
            return again;
        }
        again_free(again);
    }
    trp_system_log(node->system, TRP_LOG_WARNING, "node",
                   "no memory, descriptor or thread is free: while the node closes, only SIGKILL "
                   "ends it at once");
    return NULL;
}

void
trpi_end_again_stop(trpi_end_again *again)
{
    if (again != NULL) {
        (void)!write(again->stop_fd, &(uint64_t){ 1 },
                     sizeof(uint64_t)); /* cannot fail: it was 0 */
        (void)pthread_join(again->thread, NULL);
        again_free(again);
    }
}
