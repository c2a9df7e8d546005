/* dev.c - `troupe dev N`: a cluster of N nodes on this machine, ended by Ctrl-C.
 *
 * Why.     The shortest way to a running cluster. The nodes are ordinary `troupe node` processes on
 *          127.0.0.1; the first one starts the cluster, the others join it.
 * Must hold.
 *   dev-D1  No node outlives this process: SIGTERM to all at the end, SIGKILL after STOP_MS, and
 *       the kernel sends SIGTERM should this process be killed itself.
 *   dev-D2  The nodes are not in the terminal's foreground group: Ctrl-C reaches them once, through
 *       this process, since a second signal makes a node end at once.
 *   dev-D3  Two that run at once choose different ports: each reserves its ports by names that it
 *       holds.
 *   dev-D4  The output of the nodes passes through this process, each line with its node in front;
 *       a reader that does not read loses lines, and does not delay the end.
 * Limits.  DEV_NODES_MAX nodes; a line of DEV_LINE_BYTES, longer ones become several.
 * Tests.   tests/system/dev.sh
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/units.h"
#include "cluster/cli/cli.h"

#define DEV_NODES_MAX 64u
#define DEV_NODES_DEFAULT 3u
#define DEV_PORT_FIRST 2552u
/* Nodes of one machine may lose what moves: for trials a journal of each node is enough. */
#define DEV_LOCAL_STORE "persistence.local-store-is-enough=on"
#define DEV_SYSTEM "demo"
#define STOP_MS 50000u       /* above the default of cluster.leave-timeout (45 s) */
#define DEV_LINE_BYTES 4096u /* PIPE_BUF: a pipe that has room takes all of it */
#define DEV_PATIENCE_MS 250  /* for the reader of our output, once; then lines are lost */

typedef struct dev_output { /* of a node: its standard output, or error */
    int fd;                 /* -1: closed */
    int to;
    size_t head, held; /* bytes of the node's name, and of the text behind it, in line */
    char line[DEV_LINE_BYTES];
} dev_output;

typedef struct dev {
    const char *system;
    unsigned nodes_count;
    unsigned alive;
    unsigned ports[DEV_NODES_MAX];
    pid_t pids[DEV_NODES_MAX];
    dev_output outputs[2 * DEV_NODES_MAX];
    bool is_full; /* no reader */
    char **extra;
    int extra_count;
} dev;

static volatile sig_atomic_t stop_signals;

static void
on_stop(int signal_number)
{
    (void)signal_number;
    stop_signals++;
}

static bool
port_is_free(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    bool is_free = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                   bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
        (void)close(fd); /* it carried nothing */
    }
    return is_free;
}

/* dev-D3. A port that is free now is the node's in a while only. The name in the abstract
 * namespace, which belongs to the network as ports do, is held until this process ends. */
static bool
port_reserve(unsigned port)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int bytes = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "troupe-dev-port-%u", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        bind(fd, (const struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes)) == 0 &&
        port_is_free(port)) {
        return true;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return false;
}

/* ---- output of the nodes (dev-D4) ------------------------------------------------------------ */

/* A pipe to us in the place of `to`. Returns the end for the node, or -1. */
static int
output_open(dev_output *output, int to, unsigned port)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* of the end that we read */
    output->fd = ends[0];
    output->to = to;
    output->head = (size_t)snprintf(output->line, sizeof output->line, "127.0.0.1:%u | ", port);
    output->held = output->head;
    return ends[1];
}

static void
output_line(dev *d, dev_output *output)
{
    struct pollfd reader = { output->to, POLLOUT, 0 };
    output->line[output->held++] = '\n';
    bool has_room = poll(&reader, 1, d->is_full ? 0 : DEV_PATIENCE_MS) > 0;
    if (has_room) {
        (void)!write(output->to, output->line, output->held); /* the line is lost */
    }
    d->is_full = !has_room;
    output->held = output->head;
}

static void
output_take(dev *d, dev_output *output)
{
    char bytes[DEV_LINE_BYTES];
    ssize_t count = read(output->fd, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || output->held == sizeof output->line - 1) {
            output_line(d, output);
        }
        if (bytes[i] != '\n') {
            output->line[output->held++] = bytes[i];
        }
    }
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
        if (output->held > output->head) {
            output_line(d, output);
        }
        (void)close(output->fd);
        output->fd = -1;
    }
}

/* Pass on the output of nodes, or wait for some for wait_ms, or a signal. false: there was none. */
static bool
outputs_pass(dev *d, int wait_ms)
{
    struct pollfd fds[2 * DEV_NODES_MAX];
    nfds_t count = 2 * d->nodes_count;
    for (nfds_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){ d->outputs[i].fd, POLLIN, 0 };
    }
    if (poll(fds, count, wait_ms) <= 0) {
        return false;
    }
    for (nfds_t i = 0; i < count; i++) {
        if (fds[i].revents != 0) {
            output_take(d, &d->outputs[i]);
        }
    }
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The node's process: `troupe node ...`, in a group of its own. Does not return. */
static void
node_exec(const dev *d, unsigned index, pid_t parent)
{
    char port[16], seed[192];
    char **words = trpi_alloc(((size_t)d->extra_count + 16) * sizeof *words);
    int count = 0;
    if (words == NULL) {
        _exit(TRPI_CTL_EXIT_INTERNAL);
    }
    (void)setpgid(0, 0);                    /* dev-D2 */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* dev-D1 */
    if (getppid() != parent) {
        _exit(0);
    }
    (void)unsetenv("TROUPE_SOCKET"); /* commands look there; here all nodes would use the same */
    (void)unsetenv("NOTIFY_SOCKET"); /* the service manager of this process is not the nodes' */
    (void)snprintf(port, sizeof port, "%u", d->ports[index]);
    (void)snprintf(seed, sizeof seed, "troupe.tcp://%s@127.0.0.1:%u", d->system, d->ports[0]);
    const char *fixed[] = { "troupe", "node", "--system", d->system, "--host", "127.0.0.1",
                            "--port", port,   "--seed",   seed,      "--set",  DEV_LOCAL_STORE };
    for (size_t word = 0; word < sizeof fixed / sizeof fixed[0]; word++) {
        words[count++] = (char *)(uintptr_t)fixed[word]; /* argv is char ** by tradition */
    }
    for (int word = 0; word < d->extra_count; word++) {
        words[count++] = d->extra[word];
    }
    (void)execv("/proc/self/exe", words);
    _exit(TRPI_CTL_EXIT_INTERNAL);
}

/* Returns 0, or the exit code. */
static int
node_start(dev *d, unsigned index, pid_t self)
{
    int out = output_open(&d->outputs[2 * index], STDOUT_FILENO, d->ports[index]);
    int err = output_open(&d->outputs[2 * index + 1], STDERR_FILENO, d->ports[index]);
    d->pids[index] = out >= 0 && err >= 0 ? fork() : -1;
    if (d->pids[index] == 0) {
        if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
            _exit(TRPI_CTL_EXIT_INTERNAL);
        }
        node_exec(d, index, self);
    }
    int error = errno;
    if (out >= 0) {
        (void)close(out);
    }
    if (err >= 0) {
        (void)close(err);
    }
    return d->pids[index] > 0 ? 0
                              : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL,
                                              "a node cannot be started: %s", strerror(error));
}

static int
nodes_start(dev *d)
{
    unsigned port = DEV_PORT_FIRST;
    pid_t self = getpid();
    for (unsigned index = 0; index < d->nodes_count; index++) {
        while (port <= UINT16_MAX && !port_reserve(port)) {
            port++;
        }
        if (port > UINT16_MAX) {
            return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE, "no free port on 127.0.0.1");
        }
        d->ports[index] = port++;
        int code = node_start(d, index, self);
        if (code != 0) {
            return code;
        }
        d->alive++;
    }
    return 0;
}

static void
nodes_signal(const dev *d, int signal_number)
{
    for (unsigned index = 0; index < d->nodes_count; index++) {
        if (d->pids[index] > 0) {
            (void)kill(d->pids[index], signal_number); /* ESRCH: it has just ended */
        }
    }
}

/* Collect the nodes that have ended. Returns the exit code of a node that ended with an error, or
 * 0. */
static int
nodes_reap(dev *d, bool stopping)
{
    int code = 0, status;
    for (unsigned index = 0; index < d->nodes_count; index++) {
        if (d->pids[index] <= 0 || waitpid(d->pids[index], &status, WNOHANG) != d->pids[index]) {
            continue;
        }
        while (outputs_pass(d, 0)) { /* its last output comes first */
        }
        int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        (void)fprintf(stderr, "node 127.0.0.1:%u ended%s%d\n", d->ports[index],
                      ended == 0 ? " (left), exit " : ", exit ", ended);
        d->pids[index] = 0;
        d->alive--;
        if (ended != 0 && !stopping) {
            code = ended;
        }
    }
    return code;
}

static void
banner_print(const dev *d)
{
    (void)printf("%u nodes of system %s:\n", d->nodes_count, d->system);
    for (unsigned index = 0; index < d->nodes_count; index++) {
        (void)printf("  troupe.tcp://%s@127.0.0.1:%u   pid %d\n", d->system, d->ports[index],
                     (int)d->pids[index]);
    }
    (void)puts("In another terminal: troupe members      Ctrl-C makes all of them leave.");
    trpi_cli_flush();
}

static int
nodes_run(dev *d)
{
    int code = nodes_start(d);
    if (code == 0) {
        banner_print(d);
    }
    while (code == 0 && stop_signals == 0 && d->alive > 0) {
        (void)outputs_pass(d, 100);
        int ended = nodes_reap(d, false);
        if (ended != 0 &&
            d->alive == 0) { /* users kill single nodes to try that out; all gone is an error */
            code = ended;
        }
    }
    nodes_signal(d, SIGTERM);
    uint64_t deadline = trpi_cli_now_ms() + STOP_MS;
    sig_atomic_t seen = stop_signals;
    while (d->alive > 0 && trpi_cli_now_ms() < deadline && stop_signals <= seen) {
        (void)outputs_pass(d, 20);
        (void)nodes_reap(d, true); /* reported; we are stopping anyway */
    }
    nodes_signal(d, SIGKILL);
    while (d->alive > 0) {
        (void)outputs_pass(d, 5);
        (void)nodes_reap(d, true);
    }
    return code;
}

/* The settings that dev makes for each node itself, as an option and as a key. */
static const struct {
    const char *option, *key, *why;
} own[] = {
    { "--host", "remote.hostname", "all nodes of it are on 127.0.0.1" },
    { "--port", "remote.port", "it takes free ports from 2552 on" },
    { "--bind-port", "remote.bind-port", "it takes free ports from 2552 on" },
    { "--seed", "cluster.seed-nodes", "all nodes of it join through its first one" },
    { "--socket", "control.socket", "each node has its own, which commands find" },
};

/* Is text NAME, or NAME=...? */
static bool
is_named(const char *text, const char *name)
{
    size_t bytes = strlen(name);
    return strncmp(text, name, bytes) == 0 && (text[bytes] == '\0' || text[bytes] == '=');
}

/* Options of `troupe node` that dev has to know, or gives to each node itself. 0, or 64. */
static int
extra_check(dev *d)
{
    for (int word = 0; word < d->extra_count; word++) {
        const char *text = d->extra[word];
        const char *next = word + 1 < d->extra_count ? d->extra[word + 1] : "";
        const char *setting = strncmp(text, "--set=", 6) == 0 ? text + 6
                              : strcmp(text, "--set") == 0    ? next
                                                              : "";
        for (size_t index = 0; index < sizeof own / sizeof own[0]; index++) {
            if (is_named(text, own[index].option) || is_named(setting, own[index].key)) {
                return trpi_cli_fail(
                    TRPI_CTL_EXIT_USAGE,
                    "dev sets %s (%s) itself: %s; leave it out, or start nodes one "
                    "by one: troupe node %s ...",
                    own[index].option, own[index].key, own[index].why, own[index].option);
            }
        }
        if (is_named(setting, "system")) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                                 "dev must know the system's name: write --system NAME");
        }
        if (strncmp(text, "--system=", 9) == 0) {
            d->system = text + 9;
        } else if (strcmp(text, "--system") == 0 && *next != '\0') {
            d->system = d->extra[++word];
        }
    }
    return 0;
}

int
trpi_cli_run_dev(trpi_cli *cli)
{
    static dev d; /* zeroed */
    const char *system = trpi_cli_text(cli, TRPI_CLI_SYSTEM);
    d.system = system != NULL ? system : DEV_SYSTEM;
    d.nodes_count = DEV_NODES_DEFAULT;
    for (size_t index = 0; index < 2 * DEV_NODES_MAX; index++) {
        d.outputs[index].fd = -1;
    }
    d.extra = cli->rest;
    d.extra_count = cli->rest_count;
    if (cli->rest_count > 0 &&
        (strcmp(cli->rest[0], "--help") == 0 || strcmp(cli->rest[0], "-h") == 0)) {
        trpi_cli_help_command(cli->command, stdout);
        return 0;
    }
    if (cli->rest_count > 0 && cli->rest[0][0] != '-') {
        if (!trpi_whole32_parse(cli->rest[0], 1, DEV_NODES_MAX, &d.nodes_count)) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                                 "dev takes a number of nodes from 1 to %u, not '%s'",
                                 DEV_NODES_MAX, cli->rest[0]);
        }
        d.extra++;
        d.extra_count--;
    }
    int code = extra_check(&d);
    if (code != 0) {
        return code;
    }
    struct sigaction action = { .sa_handler = on_stop };
    (void)sigaction(SIGINT, &action, NULL); /* EINVAL only for a wrong number */
    (void)sigaction(SIGTERM, &action, NULL);
    return nodes_run(&d);
}
