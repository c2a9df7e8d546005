/* ping.c - two processes: one waits, the other one sends to its path and counts the replies.
 *
 *     cc ping.c $(pkg-config --cflags --libs troupe) -o ping
 *     ./ping serve &                                    prints the address to ping
 *     ./ping troupe.tcp://ping@127.0.0.1:PORT/user/pong 1000
 *     ./ping troupe.tcp://ping@127.0.0.1:PORT/user/pong stop
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/node.h>
#include <troupe/troupe.h>

/* Messages are structs; the field lists give their JSON form, too. */
#define PING_BALL(F, S) F(S, u64, round)
#define PING_MESSAGES(M, P) M(P, ball, PING_BALL)
TRP_PROTOCOL(ping, PING_MESSAGES)

typedef struct pong {
    uint64_t count;
} pong;

static trp_err
pong_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    pong *p = state;
    if (trp_msg_is(msg, &ping_ball_type)) {
        p->count++;
        trp_reply(ctx, &ping_ball_type, trp_msg_payload(msg), sizeof(ping_ball));
    } else if (trp_msg_is(msg, &trp_string_type)) { /* "stop" */
        trp_reply_text(ctx, "bye");
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static void
pong_stopped(trp_ctx *ctx, void *state)
{
    printf("%llu balls\n", (unsigned long long)((pong *)state)->count);
    trp_system_shutdown(trp_ctx_system(ctx));
}

static int
serve(trp_node *node)
{
    trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("pong", pong, pong_receive);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_node_end end;
    behaviour.post_stop = pong_stopped;
    options.name = "pong";
    if (trp_system_spawn(trp_node_system(node), &behaviour, &options, &ref) != TRP_OK) {
        return 1;
    }
    printf("%s/user/pong\n", trp_node_address(node));
    fflush(stdout);
    return trp_node_await(node, 0, &end) == TRP_OK ? 0 : 1;
}

static int
say_stop(trp_node *node, const char *path)
{
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask_path(trp_node_system(node), path, &trp_string_type, "stop", 4, 5000, &reply);
    if (err != TRP_OK) {
        fprintf(stderr, "ping: %s: %s\n", path, trp_strerror(err));
        return 1;
    }
    trp_msg_free(reply);
    return 0;
}

static int
play(trp_node *node, const char *path, unsigned long rounds)
{
    struct timespec start, now;
    trp_ref to;
    trp_system *system = trp_node_system(node);
    trp_err err = trp_system_resolve(system, path, 5000, &to);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned long i = 0; err == TRP_OK && i < rounds; i++) {
        ping_ball ball = { i };
        trp_msg *reply = NULL;
        err = trp_system_ask(system, to, &ping_ball_type, &ball, sizeof ball, 5000, &reply);
        if (err == TRP_OK && ((const ping_ball *)trp_msg_payload(reply))->round != i) {
            err = TRP_EPROTO;
        }
        trp_msg_free(reply);
    }
    if (err != TRP_OK) {
        fprintf(stderr, "ping: %s: %s\n", path, trp_strerror(err));
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    double us =
        (double)(now.tv_sec - start.tv_sec) * 1e6 + (double)(now.tv_nsec - start.tv_nsec) / 1e3;
    printf("%lu round trips, %.1f us each\n", rounds, us / (double)(rounds ? rounds : 1));
    return 0;
}

int
main(int argc, char **argv)
{
    const char *settings[] = { "system=ping", "remote.port=0", "log.level=warning", NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error;
    trp_node *node = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: ping serve | ping ADDRESS/user/pong [ROUNDS|stop]\n");
        return 64;
    }
    options.settings = settings;
    if (trp_node_open(&options, &node, &error) != TRP_OK ||
        trp_protocol_register(&ping_protocol) != TRP_OK) {
        fprintf(stderr, "ping: %s\n", node ? "protocol" : error.text);
        return 1;
    }
    int rc = strcmp(argv[1], "serve") == 0 ? serve(node)
             : argc > 2 && strcmp(argv[2], "stop") == 0
                 ? say_stop(node, argv[1])
                 : play(node, argv[1], argc > 2 ? strtoul(argv[2], NULL, 10) : 1000);
    trp_node_close(node);
    return rc;
}
