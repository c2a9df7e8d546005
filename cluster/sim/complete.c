/* complete.c - runs of complete nodes: the world, time, failure. See troupe/sim.h.
 *
 * Why.     A program on a cluster goes wrong in orders of events that no test bench produces twice.
 *          Systems, remoting and membership read no clock but the world's and start no thread in a
 *          driven world; so a cluster is a few systems in one world and a network in memory.
 * Shape.   program --trp_sim_pass--> pump: tasks of all nodes, in the order that the seed draws
 *                                    ground's timer: the network delivers what is due
 *                  <-- a node whose membership has ended is ended, as its process would be
 * Must hold.
 *   complete-K1  Everything that is drawn comes from the seed: the world's two streams (order; what
 *       systems ask for), the network's, the two of sockets (chance; links), the journal's, the
 *       program's. One does not move another.
 *   complete-K2  A jump out of the program passes no frame but the program's: none while a pump
 *       runs.
 * Tests.   tests/sim/complete_test.c
 */
#include "cluster/sim/complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/sized.h"
#include "sched/sched.h"

#define STEP_MS 20u /* of waiting; between steps conditions are looked at */
#define MILLISECOND_NS 1000000u

uint64_t
sim_complete_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t
sim_complete_now_ns(const trp_sim *sim)
{
    return trpi_world_mono_ns(trpi_virtual_world(sim->virt));
}

uint64_t
trp_sim_now_ms(const trp_sim *sim)
{
    return (sim_complete_now_ns(sim) - sim->began_ns) / MILLISECOND_NS;
}

/* ---- chance and failure ---------------------------------------------------------------------- */

uint64_t
trp_sim_random(trp_sim *sim)
{
    return sim_complete_draw(&sim->random);
}

void
trp_sim_note(trp_sim *sim, uint64_t what)
{
    trpi_virtual_mix(sim->virt, what);
}

void
trp_sim_fail(trp_sim *sim, const char *file, int line, const char *text)
{
    if (!sim->failed) {
        sim->failed = true;
        sim->result.failed = 1;
        sim->result.file = file;
        sim->result.line = line;
        (void)snprintf(sim->result.text, sizeof sim->result.text, "t=%.3fs: %s",
                       (double)trp_sim_now_ms(sim) / 1e3, text);
    }
    /* an ask of the program pumps too, and a behaviour may fail in it */
    if (sim->may_jump && !trpi_sched_is_pumping(trpi_system_sched(sim->ground))) {
        longjmp(sim->end, 1); /* complete-K2 */
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool
network_moves(void *arg)
{
    trp_sim *sim = arg;
    trpi_mem_network_advance(sim->network, sim_complete_now_ns(sim));
    sim_journal_advance(sim);
    return true;
}

/* End nodes whose membership has ended, as `troupe node` exits. */
static void
end_those_who_are_over(trp_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        if (sim->nodes[i].over && sim->nodes[i].system != NULL) {
            sim_whole_end(&sim->nodes[i]);
        }
    }
}

static void
sim_advance(trp_sim *sim, uint32_t ms)
{
    bool may_jump = sim->may_jump;
    sim->may_jump = false;
    while (ms > 0 && !sim->failed) {
        uint32_t step = ms < STEP_MS ? ms : STEP_MS;
        trpi_system_pass(sim->ground, step);
        end_those_who_are_over(sim);
        ms -= step;
    }
    sim->may_jump = may_jump;
    if (sim->failed && may_jump) {
        longjmp(sim->end, 1);
    }
}

void
trp_sim_pass(trp_sim *sim, uint32_t ms)
{
    sim_advance(sim, ms);
}

void
trp_sim_await(trp_sim *sim, int (*holds)(void *arg), void *arg, uint32_t ms)
{
    uint64_t end_ms = trp_sim_now_ms(sim) + ms;
    while (!holds(arg)) {
        if (trp_sim_now_ms(sim) >= end_ms) {
            trp_sim_fail(sim, __FILE__, __LINE__, "what was awaited has not happened in time");
            return;
        }
        sim_advance(sim, STEP_MS);
    }
}

void
sim_complete_mend(trp_sim *sim)
{
    memset(sim->cut_until_ns, 0, sizeof sim->cut_until_ns);
    memset(sim->dial_until_ns, 0, sizeof sim->dial_until_ns);
    sim->delay_ms = 1;
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        sim->nodes[i].alone_until_ns = sim->nodes[i].port_until_ns = 0;
        if (sim->nodes[i].still_until_ns > sim_complete_now_ns(sim)) {
            trp_sim_pause(sim, i, 0);
        }
    }
    /* a link that a cut or a lonely node holds back would do so to the cut's old end */
    trpi_mem_network_hasten(sim->network, sim_complete_now_ns(sim));
    trpi_sim_net_hasten(sim->sockets);
    trpi_sim_net_faults_set(sim->sockets, &sim->socket_faults);
    sim_journal_phase(sim, false);
}

void
trp_sim_calm(trp_sim *sim, uint32_t ms)
{
    uint64_t end_ms = trp_sim_now_ms(sim) + ms;
    sim_complete_mend(sim);
    sim_advance(sim, STEP_MS); /* the last fault may be the reset of a connection: its peers hear */
    while (!sim->failed && !sim_whole_all_up(sim)) {
        if (trp_sim_now_ms(sim) >= end_ms) {
            trp_sim_fail(sim, __FILE__, __LINE__, "not one cluster of all nodes in time");
            return;
        }
        for (uint32_t i = 0; i < sim->nodes_count; i++) {
            trp_sim_start(sim, i); /* also a node that was marked Down meanwhile */
        }
        sim_advance(sim, STEP_MS);
    }
    sim_advance(sim, 0); /* if a behaviour has failed, the program ends here */
}

/* ---- one run --------------------------------------------------------------------------------- */

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static trp_err
sockets_make(trp_sim *sim)
{
    trpi_world *world = trpi_virtual_world(sim->virt);
    trp_err err = trpi_sim_net_new(world, trpi_hash_u64(sim->result.seed) + 3, &sim->sockets);
    if (err != TRP_OK) {
        return err;
    }
    world->host = SIM_COMPLETE_GROUND;
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        trpi_sim_net_name(sim->sockets, i, sim->nodes[i].host);
    }
    trpi_sim_net_link_set(sim->sockets, sim_complete_socket_fault, sim);
    return TRP_OK;
}

static trp_err
world_make(trp_sim *sim)
{
    trpi_virtual_options world = { .seed = sim->result.seed,
                                   .calm = sim->options.calm != 0,
                                   .net = &trpi_sim_net_ops };
    trp_system_options ground = TRP_SYSTEM_OPTIONS_INIT;
    uint64_t id;
    ground.log = drop_line;
    ground.workers = 1;
    trp_err err = trpi_virtual_new(&world, &sim->virt);
    if (err == TRP_OK) {
        err = trpi_mem_network_new(&sim->network);
    }
    if (err == TRP_OK) {
        err = sockets_make(sim);
    }
    if (err == TRP_OK) {
        err = trpi_system_new_in(trpi_virtual_world(sim->virt), "ground", &ground, &sim->ground);
    }
    if (err == TRP_OK) {
        trpi_mem_network_fault_set(sim->network, sim_complete_fault, sim);
        err = trpi_system_every(sim->ground, 1, network_moves, NULL, sim, &id);
    }
    if (err == TRP_OK) {
        err = sim_operated_begin(sim);
    }
    return err;
}

static void
world_end(trp_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        if (sim->nodes[i].system != NULL) {
            sim_whole_end(&sim->nodes[i]);
        }
    }
    if (sim->ground != NULL) {
        trp_err err = trp_system_stop(sim->ground, 1000);
        trpi_assert(err == TRP_OK); /* it has no actors */
        trp_system_free(sim->ground);
    }
    sim_operated_end(sim);
    sim_journal_end(sim);
    trpi_mem_network_free(sim->network);
    trpi_sim_net_free(sim->sockets);
    if (sim->virt != NULL) {
        trpi_world_free(trpi_virtual_world(sim->virt));
    }
}

static void
nodes_name(trp_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        struct sim_whole *n = &sim->nodes[i];
        n->sim = sim;
        n->number = i;
        (void)snprintf(n->host, sizeof n->host, "n%u", i % TRP_SIM_NODES_MAX);
        (void)snprintf(n->address, sizeof n->address, "troupe.mem://sim@%s:%d", n->host,
                       SIM_COMPLETE_PORT);
        trpi_sim_net_address(i, n->sockets_host, sizeof n->sockets_host);
    }
}

static void
program_run(trp_sim *sim)
{
    sim->began_ns = sim_complete_now_ns(sim);
    if (setjmp(sim->end) == 0) {
        sim->may_jump = true;
        trp_sim_calm(sim, 60000);
        sim->program(sim, sim->arg);
    }
    sim->may_jump = false;
}

static trp_err
run_once(const trp_sim_options *options, trp_sim_program program, void *arg, uint64_t seed,
         trp_sim_result *result)
{
    trp_sim *sim = trpi_alloc(sizeof *sim);
    if (sim == NULL) {
        return TRP_ENOMEM;
    }
    sim->options = *options;
    sim->program = program;
    sim->arg = arg;
    sim->nodes_count = options->nodes;
    sim->result = *result;
    sim->result.seed = seed;
    sim->random = trpi_hash_u64(seed) + 1;
    sim->network_random = trpi_hash_u64(seed) + 2;
    sim->socket_random = trpi_hash_u64(seed) + 4;
    sim->delay_ms = 1;
    nodes_name(sim);
    trp_err err = world_make(sim);
    if (err == TRP_OK) {
        program_run(sim);
        sim->result.hash = trpi_virtual_hash(sim->virt);
        sim->result.turns = trpi_virtual_turns(sim->virt);
        sim->result.virtual_ms = trp_sim_now_ms(sim);
        trpi_virtual_calm(sim->virt);
    }
    world_end(sim);
    *result = sim->result;
    trpi_free(sim);
    return err;
}

static bool
options_are_valid(const trp_sim_options *options)
{
    return options->nodes <= TRP_SIM_NODES_MAX &&
           (options->downing == NULL || trpi_downing_find(options->downing) != NULL);
}

trp_err
sim_complete_run_once(trp_sim_program program, void *arg, const trp_sim_options *options,
                      trp_sim_result *ret_result)
{
    return options_are_valid(options) ? run_once(options, program, arg, options->seed, ret_result)
                                      : TRP_EINVAL;
}

static void
print_failure(const trp_sim_options *options, const trp_sim_result *result)
{
    fprintf(stderr, "%s:%d: %s\n", result->file, result->line, result->text);
    if (options->replay != NULL) {
        fprintf(stderr, "  replay: %s %" PRIu64 "\n", options->replay, result->seed);
    } else {
        fprintf(stderr, "  replay: trp_sim_run() with options.seed = %" PRIu64 "\n", result->seed);
    }
}

trp_err
trp_sim_run(trp_sim_program program, void *arg, const trp_sim_options *options,
            trp_sim_result *ret_result)
{
    trp_sim_options o = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    trp_err err = TRP_OK;
    if (program == NULL || !TRPI_SIZED_COPY(options, &o, log_arg) || !options_are_valid(&o) ||
        (ret_result != NULL && !TRPI_SIZED_FILL(ret_result, &result, text))) {
        return TRP_EINVAL;
    }
    o.nodes = o.nodes != 0 ? o.nodes : TRP_SIM_NODES_DEFAULT;
    o.seed = o.seed != 0 ? o.seed : 1;
    o.seeds = o.seeds != 0 ? o.seeds : 1;
    for (uint32_t i = 0; i < o.seeds && err == TRP_OK; i++) {
        result.runs++;
        err = run_once(&o, program, arg, o.seed + i, &result);
        if (err == TRP_OK && result.failed) {
            print_failure(&o, &result);
            err = TRP_EFAILED;
        }
    }
    if (ret_result != NULL) {
        (void)TRPI_SIZED_FILL(ret_result, &result, text); /* its size was looked at above */
    }
    return err;
}
