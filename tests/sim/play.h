/* play.h - run a program of troupe/sim.h in a suite, under one seed or under many. */
#ifndef TESTS_SIM_PLAY_H
#define TESTS_SIM_PLAY_H

#include <stdlib.h>

#include <troupe/sim.h>

#include "tests/unit/unit.h"

static inline void
play(trp_sim_program program, void *arg, const trp_sim_options *options)
{
    trp_sim_result result = { .size = sizeof result };
    if (!UNIT_EQUAL(trp_sim_run(program, arg, options, &result), TRP_OK)) {
        printf("  seed %llu: %s:%d: %s\n", (unsigned long long)result.seed, result.file,
               result.line, result.text);
    }
}

/* The node whose system runs this. */
static inline uint32_t
play_node_of(trp_sim *sim, const trp_ctx *ctx)
{
    uint32_t node = 0;
    while (node < trp_sim_nodes(sim) - 1 && trp_sim_system(sim, node) != trp_ctx_system(ctx)) {
        node++;
    }
    return node;
}

/* For options.log: all lines, if TROUPE_SIM_LOG is set. */
static inline void
play_line(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line)
{
    (void)arg;
    if (getenv("TROUPE_SIM_LOG") != NULL) {
        printf("  %8llu node %u: %s\n", (unsigned long long)now_ms, node, line->text);
    }
}

struct play_node {
    trp_sim *sim;
    uint32_t number;
};

static inline int
play_is_gone(void *arg)
{
    const struct play_node *node = arg;
    return trp_sim_system(node->sim, node->number) == NULL;
}

/* Wait until a node that leaves, or stops itself, has ended. */
static inline void
play_await_gone(trp_sim *sim, uint32_t number, uint32_t ms)
{
    struct play_node node = { sim, number };
    trp_sim_await(sim, play_is_gone, &node, ms);
}

/* Under seeds from TROUPE_SIM_FIRST (1) on, TROUPE_SIM_SEEDS of them (usual), until one fails.
 * options_of: forgets the run before, and gives the options of the next. */
static inline void
play_seeds(trp_sim_program program, trp_sim_options (*options_of)(uint32_t nodes), uint32_t nodes,
           uint32_t usual, const char *replay)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS"), *first = getenv("TROUPE_SIM_FIRST");
    uint32_t count = seeds == NULL ? usual : (uint32_t)strtoul(seeds, NULL, 10);
    uint64_t from = first == NULL ? 1 : strtoull(first, NULL, 10);
    for (uint32_t i = 0; i < count && unit_failures() == 0; i++) {
        trp_sim_options options = options_of(nodes);
        options.seed = from + i;
        options.replay = replay;
        play(program, NULL, &options);
    }
}

#endif
