/* entities_shell.h - the nodes, entities and tellers of entities_test.c, and what is counted of
 * them. One file includes it. */
#ifndef TESTS_SIM_ENTITIES_SHELL_H
#define TESTS_SIM_ENTITIES_SHELL_H

#include <troupe/troupe.h>

#include "cluster/sharding/keeper.h"
#include "tests/sim/play.h"

enum { NODES = 4, NODES_MAX = 6, ENTITIES = 40, SHARDS = 24, TELLERS_MAX = 64 };

static trp_sim *present;
static uint32_t nodes_count, tellers; /* a teller is an incarnation of a node */
static trp_ref teller_refs[NODES_MAX];
static uint32_t teller_of[NODES_MAX];
static uint64_t told[TELLERS_MAX][ENTITIES], heard[TELLERS_MAX][ENTITIES];
static uint32_t home[ENTITIES], starts[ENTITIES], generation[ENTITIES];
static uint32_t started, handled, disordered, doubled;
static uint64_t expected;                  /* to be told */
static uint32_t shards_of_node[NODES_MAX]; /* 0: SHARDS */
static uint32_t starts_late; /* nodes that do not start the type by themselves: bits */
static uint32_t hand_off, allocation;
static trp_allocation_fn allocate;
static uint32_t refused_answers; /* of it, logged */
static uint32_t members_min;
static trp_entity_shard_fn shard_of; /* NULL: by the id's hash */
static uint32_t homes_from;          /* pin_shards(): node */
static uint32_t proxies;             /* nodes that host no entity: bits */
static bool repeats_orders;          /* all keepers give all orders again and again */
static char refusal[512];

/* ---- the entity and its tellers -------------------------------------------------------------- */

#define PUPIL_JOB(F, S) F(S, u32, teller) F(S, u32, entity) F(S, u64, number)
#define PUPIL_COUNT(F, S) F(S, u32, node) F(S, u32, unused) F(S, u64, jobs)
#define PUPIL_GO(F, S) F(S, u32, first) F(S, u32, count)
#define PUPIL_MESSAGES(M, P) M(P, job, PUPIL_JOB) M(P, count, PUPIL_COUNT) M(P, go, PUPIL_GO)
TRP_PROTOCOL(pupil, PUPIL_MESSAGES)

static trp_entity
entity_at(uint32_t number)
{
    char id[16];
    int bytes = snprintf(id, sizeof id, "pupil-%u", number);
    return trp_entity_of(trp_entity_type("pupil"), id, (size_t)bytes);
}

struct pupil {
    uint64_t jobs;
    uint32_t entity, generation; /* of this instance */
};

static trp_err
pupil_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct pupil *p = state;
    trp_entity self;
    (void)args;
    TRP_SIM_CHECK(present, trp_entity_self(ctx, &self) == TRP_OK);
    p->entity = (uint32_t)strtoul(self.id + sizeof "pupil-" - 1, NULL, 10);
    p->generation = ++generation[p->entity];
    home[p->entity] = play_node_of(present, ctx);
    starts[p->entity]++;
    started++;
    return TRP_OK;
}

static trp_err
pupil_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct pupil *p = state;
    const struct pupil_job *job = trp_msg_payload(msg);
    if (!trp_msg_is(msg, &pupil_job_type)) {
        return TRP_EUNHANDLED;
    }
    if (p->generation != generation[p->entity]) {
        trp_sim_fail(present, __FILE__, __LINE__, "an entity with a successor is told");
    }
    TRP_SIM_CHECK(present, job->entity == p->entity);
    p->jobs++;
    handled++;
    if (job->number > 0) {
        uint64_t *last = &heard[job->teller][p->entity];
        disordered += job->number < *last;
        doubled += job->number == *last;
        *last = job->number;
    }
    if (!trp_ref_is_none(trp_sender(ctx)) && job->number == 0) {
        struct pupil_count count = { home[p->entity], 0, p->jobs };
        trp_reply(ctx, &pupil_count_type, &count, sizeof count);
    }
    return TRP_OK;
}

static const trp_behaviour pupil = { .size = sizeof(trp_behaviour),
                                     .name = "pupil",
                                     .version = 1,
                                     .state_bytes = sizeof(struct pupil),
                                     .receive = pupil_receive,
                                     .pre_start = pupil_start };

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct pupil_go *go = trp_msg_payload(msg);
    (void)state;
    if (trp_msg_is(msg, &pupil_go_type)) {
        uint32_t teller = teller_of[play_node_of(present, ctx)];
        for (uint32_t i = 0; i < go->count; i++) {
            uint32_t number = (go->first + i) % ENTITIES;
            trp_entity entity = entity_at(number);
            struct pupil_job job = { teller, number, ++told[teller][number] };
            trp_entity_tell(ctx, &entity, &pupil_job_type, &job, sizeof job);
        }
    }
    return TRP_OK;
}

static const trp_behaviour teller = {
    .size = sizeof(trp_behaviour), .name = "teller", .version = 1, .receive = teller_receive
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static trp_err
type_start(trp_sim *sim, uint32_t node)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    options.type = "pupil";
    options.behaviour = (proxies & 1u << node) != 0 ? NULL : &pupil;
    options.shards = shards_of_node[node] == 0 ? SHARDS : shards_of_node[node];
    options.rebalance_ms = 2000;
    options.hand_off = hand_off;
    options.members_min = members_min;
    options.shard = shard_of;
    options.allocation = allocation;
    options.allocate = allocate;
    options.allocate_arg = &homes_from;
    refusal[0] = '\0';
    return trp_sharding_start(trp_sim_system(sim, node), &options, refusal, sizeof refusal);
}

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    (void)arg;
    present = sim;
    nodes_count = trp_sim_nodes(sim);
    teller_of[node] = tellers++ % TELLERS_MAX;
    memset(told[teller_of[node]], 0, sizeof told[0]);
    memset(heard[teller_of[node]], 0, sizeof heard[0]);
    UNIT_EQUAL(trp_protocol_register(&pupil_protocol), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(trp_sim_system(sim, node), &teller, NULL, &teller_refs[node]),
               TRP_OK);
    if ((starts_late & 1u << node) == 0) {
        UNIT_EQUAL(type_start(sim, node), TRP_OK);
    }
}

static void
on_line(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line)
{
    refused_answers += strstr(line->text, "the allocation of 'pupil' by the program") != NULL;
    play_line(arg, now_ms, node, line);
}

static trp_sim_options
options_of(uint32_t nodes)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = nodes;
    options.started = start_actors;
    options.log = on_line;
    memset(told, 0, sizeof told);
    memset(heard, 0, sizeof heard);
    memset(starts, 0, sizeof starts);
    memset(generation, 0, sizeof generation);
    memset(shards_of_node, 0, sizeof shards_of_node);
    tellers = started = handled = disordered = doubled = starts_late = 0;
    expected = 0;
    proxies = hand_off = allocation = refused_answers = homes_from = members_min = 0;
    allocate = NULL;
    shard_of = NULL;
    repeats_orders = false;
    return options;
}

/* Ask an entity from a node until it answers (a question to a node that was killed is lost);
 * returns the node of the entity. */
static uint32_t
ask(trp_sim *sim, uint32_t node, uint32_t number)
{
    trp_entity entity = entity_at(number);
    struct pupil_job job = { teller_of[node], number, 0 };
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;
    for (uint32_t i = 0; i < 30 && err == TRP_ETIMEDOUT; i++) {
        err = trp_system_entity_ask(trp_sim_system(sim, node), &entity, &pupil_job_type, &job,
                                    sizeof job, 2000, &reply);
    }
    TRP_SIM_CHECK(sim, err == TRP_OK);
    uint32_t at = err == TRP_OK ? ((const struct pupil_count *)trp_msg_payload(reply))->node : 0;
    trp_msg_free(reply);
    return at;
}

/* Each node tells count entities, from first on. */
static void
tell_all(trp_sim *sim, uint32_t first, uint32_t count)
{
    struct pupil_go go = { first, count };
    for (uint32_t i = 0; i < nodes_count; i++) {
        if (trp_sim_system(sim, i) != NULL) {
            trp_system_tell(trp_sim_system(sim, i), teller_refs[i], &pupil_go_type, &go, sizeof go);
            expected += count;
        }
    }
}

/* Of one reason; 0: of all. */
static uint64_t
dead_letters_of(trp_sim *sim, uint32_t reason)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes_count; i++) {
        trp_system_stats stats = { .size = sizeof stats };
        if (trp_sim_system(sim, i) != NULL) {
            trp_system_stats_get(trp_sim_system(sim, i), &stats);
        }
        for (uint32_t r = 0; r < TRP_DEAD_REASONS_MAX; r++) {
            sum += reason == 0 || reason == r ? stats.dead_letters[r] : 0;
        }
    }
    return sum;
}

static uint64_t
dead_letters(trp_sim *sim)
{
    return dead_letters_of(sim, 0);
}

static uint64_t
told_in_all(void)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < TELLERS_MAX; t++) {
        for (uint32_t e = 0; e < ENTITIES; e++) {
            sum += told[t][e];
        }
    }
    return sum;
}

static int
all_heard(void *arg)
{
    (void)arg;
    return told_in_all() == expected && memcmp(told, heard, sizeof told) == 0;
}

static uint32_t
hosted_by(uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTITIES; i++) {
        count += starts[i] > 0 && home[i] == node;
    }
    return count;
}

/* Each node but one tells entities for so many rounds. */
static void
tell_for(trp_sim *sim, uint32_t rounds, uint32_t but)
{
    for (uint32_t i = 0; i < rounds; i++) {
        struct pupil_go go = { i, 5 };
        for (uint32_t k = 0; k < nodes_count; k++) { /* a teller ends with its node */
            if (k != but && trp_sim_system(sim, k) != NULL) {
                trp_system_tell(trp_sim_system(sim, k), teller_refs[k], &pupil_go_type, &go,
                                sizeof go);
                expected += go.count;
            }
        }
        trp_sim_pass(sim, 20);
    }
}

/* An operator drains a node somewhere, or takes that back, if there is somebody to ask. */
static void
drain_some(trp_sim *sim)
{
    uint32_t at = (uint32_t)trp_sim_random(sim) % nodes_count;
    uint32_t of = (uint32_t)trp_sim_random(sim) % nodes_count;
    const char *address = trp_sim_address(sim, of);
    bool drain = trp_sim_random(sim) % 3 != 0;
    trpi_cluster_order *order = NULL;
    if (trp_sim_system(sim, at) != NULL &&
        trpi_cluster_order_begin(trpi_cluster_of(trp_sim_system(sim, at)),
                                 drain ? TRPI_MEMBER_DRAIN : TRPI_MEMBER_UNDRAIN, &address, 1, 0,
                                 NULL, &order) == TRP_OK) {
        (void)trpi_cluster_order_end(order); /* it may be refused, or dropped with its node */
    }
}

#endif
