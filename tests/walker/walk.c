/* walk.c - for tests/walk: run a remote tell and a gossip frame, and write down each call.
 *
 * Three complete nodes run in one thread and in virtual time (troupe/sim.h), so each run makes the
 * same calls. The library is compiled with -finstrument-functions: each function calls two hooks
 * below. Between two marks they write a line a call to standard output: ">" or "<" and the address,
 * as an offset from this program's first byte; before them, "=", the calls that had begun.
 *
 *   tell     from trp_tell() in a behaviour of node 0 to the behaviour of node 1 that is told; some
 *            tells one after the other
 *   gossip   a leave of node 2, as nodes 0 and 1 hear of it
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/cluster.h>
#include <troupe/sim.h>

#define QUIET __attribute__((no_instrument_function))
#define WARM_UP 50 /* tells before those that count */
#define TELLS 80

extern const char __executable_start;

void __cyg_profile_func_enter(void *function, void *caller) QUIET;
void __cyg_profile_func_exit(void *function, void *caller) QUIET;
static void mark(bool on, const char *name) QUIET;

static bool is_on;
static void *stack[4096]; /* calls that have not returned */
static unsigned depth;

static void line(char kind, const void *function) QUIET;
static void
line(char kind, const void *function)
{
    printf("%c %zx\n", kind, (size_t)((const char *)function - &__executable_start));
}

static void
mark(bool on, const char *name)
{
    is_on = on;
    printf("%s %s\n", on ? "begin" : "end", name);
    for (unsigned i = 0; on && i < depth; i++) {
        line('=', stack[i]);
    }
}

void
__cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    stack[depth++ % 4096] = function;
    if (is_on) {
        line('>', function);
    }
}

void
__cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    depth--;
    if (is_on) {
        line('<', function);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static uint32_t told, heard;

static QUIET trp_err
sender_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t number = ++told;
    trp_ref to;

    (void)state;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    if (told > WARM_UP) {
        mark(true, "tell");
    }
    trp_tell(ctx, to, &trp_i64_type, &number, sizeof number);
    return TRP_OK;
}
static const trp_behaviour sender = TRP_BEHAVIOUR_INIT("sender", char, sender_receive);

static QUIET trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    if (++heard > WARM_UP) {
        mark(false, "tell");
    }
    return TRP_OK;
}
static const trp_behaviour receiver = TRP_BEHAVIOUR_INIT("receiver", char, receiver_receive);

static void
started(trp_sim *sim, uint32_t node, void *arg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    (void)arg;
    options.name = "walker";
    TRP_SIM_CHECK(sim, trp_system_spawn(trp_sim_system(sim, node), node == 0 ? &sender : &receiver,
                                        &options, &ref) == TRP_OK);
}

static int
members_are_two(void *arg)
{
    trp_member members[4];
    size_t count = 0;

    return trp_cluster_members(trp_sim_system(arg, 0), members, 4, &count) == TRP_OK && count == 2;
}

static void
program(trp_sim *sim, void *arg)
{
    trp_system *system = trp_sim_system(sim, 0);
    char path[128];
    trp_ref from, to;

    (void)arg;
    TRP_SIM_CHECK(sim, trp_system_resolve(system, "/user/walker", 1000, &from) == TRP_OK);
    snprintf(path, sizeof path, "%s/user/walker", trp_sim_address(sim, 1));
    TRP_SIM_CHECK(sim, trp_system_resolve(system, path, 5000, &to) == TRP_OK);
    for (uint32_t i = 0; i < TELLS; i++) {
        trp_system_tell(system, from, &trp_bytes_type, &to, sizeof to);
        trp_sim_pass(sim, 20);
    }
    TRP_SIM_CHECK(sim, heard == TELLS);
    mark(true, "gossip");
    trp_sim_leave(sim, 2);
    trp_sim_await(sim, members_are_two, sim, 30000);
    mark(false, "gossip");
}

int
main(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;

    options.nodes = 3;
    options.calm = 1;
    options.started = started;
    return trp_sim_run(program, NULL, &options, NULL) == TRP_OK ? 0 : 1;
}
