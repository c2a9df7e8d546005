/* client.c - asks of a client from outside against asks of a node, in one run.
 *
 * Shape.  The parent forks a child, a cluster node with a receptionist and an echo. Then it
 *         asks that echo, one ask at a time, by turns as a node that has its ref and as a client
 *         that has its name. Median of ROUNDS rounds each. Then --clients N (default 100) clients,
 *         each a system of its own, are connected at once and each asks once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/client.h>
#include <troupe/node.h>

#include "tests/bench/bench.h"

enum { ROUNDS = 5, ASKS = 4000, CLIENTS_MAX = 1000, ASK_MS = 60000 };

static void
line_drop(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", char, echo_receive);

static trp_node *
node_open(const char *seed)
{
    const char *settings[] = { "system=shop",
                               "remote.port=0",
                               "remote.cookie=off",
                               "cluster.control-socket=off",
                               seed,
                               "cluster.client.receptionist.enabled=on",
                               NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error;
    trp_node *node = NULL;
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = line_drop;
    if (trp_node_open(&options, &node, &error) != TRP_OK) {
        (void)fprintf(stderr, "bench client: %s\n", error.text);
        exit(1);
    }
    return node;
}

/* The child: say the address, and end with the parent. */
static int
serve(int to_parent, int from_parent)
{
    char end;
    trp_node *node = node_open("cluster.seed-nodes=self");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = "echo";
    bench_check(trp_system_spawn(trp_node_system(node), &echo, &options, &ref), "echo");
    bench_check(trp_receptionist_register(trp_node_system(node), "echo", ref), "register");
    const char *address = trp_node_address(node);
    (void)!write(to_parent, address, strlen(address));
    (void)!read(from_parent, &end, 1);
    trp_node_close(node);
    return 0;
}

/* Microseconds of an ask. */
static double
asks_time(trp_system *system, trp_ref to, uint32_t count)
{
    uint64_t start_ns = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        trp_msg *reply = NULL;
        bench_check(trp_system_ask(system, to, &trp_string_type, "0123456789", 10, ASK_MS, &reply),
                    "ask");
        trp_msg_free(reply);
    }
    return (double)(bench_now_ns() - start_ns) / 1000.0 / count;
}

typedef struct outside {
    trp_system *system;
    trp_client *client;
    trp_ref echo;
} outside;

static void
outside_open(outside *o, const char *address)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    trp_system_options quiet = TRP_SYSTEM_OPTIONS_INIT;
    options.contacts = &address;
    options.contacts_count = 1;
    quiet.log = line_drop;
    quiet.workers = 1;
    bench_check(trp_system_new("outside", &quiet, &o->system), "system");
    bench_check(trp_client_open(o->system, &options, &o->client), "client");
    bench_check(trp_client_service(o->client, "echo", &o->echo), "service");
}

static void
outside_close(outside *o)
{
    trp_client_close(o->client);
    bench_check(trp_system_stop(o->system, ASK_MS), "stop");
    trp_system_free(o->system);
}

static void
many_run(const char *address, uint32_t count)
{
    outside *all = calloc(count, sizeof *all);
    bench_check(all == NULL ? TRP_ENOMEM : TRP_OK, "clients");
    uint64_t start_ns = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        outside_open(&all[i], address);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)asks_time(all[i].system, all[i].echo, 1);
    }
    bench_print("client", "clients", count, "count");
    bench_print("client", "connected_and_answered",
                (double)(bench_now_ns() - start_ns) / 1000000000.0, "s");
    double again = 0;
    for (uint32_t i = 0; i < count; i++) {
        again += asks_time(all[i].system, all[i].echo, 10);
    }
    bench_print("client", "ask_with_so_many", again / count, "us");
    for (uint32_t i = 0; i < count; i++) {
        outside_close(&all[i]);
    }
    free(all);
}

static void
ratio_run(const char *address)
{
    double as_node[ROUNDS], as_client[ROUNDS];
    char path[400];
    outside o;
    trp_ref ref;
    trp_node *node = node_open("cluster.seed-nodes=");
    (void)snprintf(path, sizeof path, "%s/user/echo", address);
    bench_check(trp_system_resolve(trp_node_system(node), path, ASK_MS, &ref), "resolve");
    outside_open(&o, address);
    (void)asks_time(trp_node_system(node), ref, 200);
    (void)asks_time(o.system, o.echo, 200);
    for (int i = 0; i < ROUNDS; i++) {
        as_node[i] = asks_time(trp_node_system(node), ref, ASKS);
        as_client[i] = asks_time(o.system, o.echo, ASKS);
    }
    double node_us = bench_median(as_node, ROUNDS), client_us = bench_median(as_client, ROUNDS);
    bench_print("client", "ask_of_a_node", node_us, "us");
    bench_print("client", "ask_of_a_client", client_us, "us");
    bench_print("client", "client_to_node", client_us / node_us, "ratio");
    outside_close(&o);
    trp_node_close(node);
}

static int
client_run(const bench_options *options)
{
    const char *given = bench_option_value(options, "--clients");
    uint32_t count = given == NULL ? 100 : (uint32_t)strtoul(given, NULL, 10);
    int up[2], down[2];
    char address[400] = "";
    if (count > CLIENTS_MAX || pipe(up) != 0 || pipe(down) != 0) {
        (void)fprintf(stderr, "bench client: --clients is at most %d\n", CLIENTS_MAX);
        return 1;
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)close(up[0]);
        (void)close(down[1]);
        _exit(serve(up[1], down[0]));
    }
    (void)close(up[1]);
    (void)close(down[0]);
    ssize_t bytes = child < 0 ? -1 : read(up[0], address, sizeof address - 1);
    if (bytes <= 0) {
        (void)fprintf(stderr, "bench client: the node did not start\n");
        return 1;
    }
    ratio_run(address);
    many_run(address, count);
    (void)close(down[1]);
    (void)waitpid(child, NULL, 0);
    return 0;
}

const bench_workload bench_client[] = {
    { "client", "asks of a client from outside, against those of a node; --clients N", client_run },
    { NULL, NULL, NULL },
};
