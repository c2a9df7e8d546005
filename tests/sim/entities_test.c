/* entities_test.c - entities on complete nodes, in virtual time: each lives once, messages keep
 * their order while shards move, and what is told is handled, unless a node or a connection ends
 * (CONTRIB-48, FUTURE-20, and the scenarios of the cluster-sharding specs).
 *
 * TROUPE_SIM_SEEDS=300 sets the number of seeds of the random ones. */
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
static uint32_t homes_from;      /* pin_shards(): node */
static uint32_t proxies;         /* nodes that host no entity: bits */
static bool repeats_orders;      /* all keepers give all orders again and again */
static char refusal[512];

static uint32_t
node_of(const trp_ctx *ctx)
{
    uint32_t node = 0;
    while (node < nodes_count - 1 && trp_sim_system(present, node) != trp_ctx_system(ctx)) {
        node++;
    }
    return node;
}

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
    home[p->entity] = node_of(ctx);
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
        uint32_t teller = teller_of[node_of(ctx)];
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
    const char *verbose = getenv("TROUPE_SIM_LOG");
    (void)arg;
    refused_answers += strstr(line->text, "the allocation of 'pupil' by the program") != NULL;
    if (verbose != NULL) {
        printf("  %8llu node %u: %s\n", (unsigned long long)now_ms, node, line->text);
    }
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
    proxies = hand_off = allocation = refused_answers = homes_from = 0;
    allocate = NULL;
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

static int
is_gone(void *arg)
{
    const uint32_t *node = arg;
    return trp_sim_system(present, *node) == NULL;
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

/* ---- programs -------------------------------------------------------------------------------- */

struct table {
    uint32_t coordinators, homes, given, here;
};

static void
table_add(void *arg, const trpi_sharding_status *status)
{
    struct table *t = arg;
    t->coordinators += status->coordinates;
    t->homes += status->homes_count;
    t->here += status->here;
    for (uint32_t i = 0; i < status->homes_count; i++) {
        t->given += status->homes[i].shards;
    }
}

/* ClusterShardingSpec: entities start at their first message, on any node, and are shared out. */
static void
starts_and_answers(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, handled == NODES * ENTITIES && started == ENTITIES);
    for (uint32_t i = 0; i < NODES; i++) {
        TRP_SIM_CHECK(sim, hosted_by(i) > 0);
        TRP_SIM_CHECK(sim, ask(sim, i, i) == home[i]);
    }
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
    struct table table = { 0 };
    for (uint32_t i = 0; i < NODES; i++) {
        trpi_sharding_each(trp_sim_system(sim, i), table_add, &table);
    }
    TRP_SIM_CHECK(sim, table.coordinators == 1 && table.homes == NODES);
    TRP_SIM_CHECK(sim, table.given == table.here && table.here > 0 && table.here <= SHARDS);
    trpi_sharding_place place;
    TRP_SIM_CHECK(sim, trpi_sharding_find(trp_sim_system(sim, home[0]), "pupil", "pupil-0", 7,
                                          &place) == TRP_OK);
    TRP_SIM_CHECK(sim, place.known && place.here && place.alive && !place.moves);
}

/* As if orders of all keepers had been lost for want of memory: they give all again. */
static void
orders_again(trp_sim *sim)
{
    for (uint32_t i = 0; i < nodes_count; i++) {
        trp_system *system = trp_sim_system(sim, i);
        trpi_keeper_type *type = system == NULL ? NULL : trpi_keeper_of(system)->types;
        for (; type != NULL; type = type->next) {
            type->unsaid = true;
        }
    }
}

/* ClusterShardingLeavingSpec: a node leaves under messages; nothing is lost, doubled, reordered. */
static void
leaves_under_messages(trp_sim *sim, void *arg)
{
    uint32_t *going = arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    trp_sim_leave(sim, *going);
    for (uint32_t i = 0; i < 300 && trp_sim_system(sim, *going) != NULL; i++) {
        struct pupil_go go = { i, 5 };
        if (repeats_orders) {
            orders_again(sim);
        }
        for (uint32_t k = 0; k < nodes_count; k++) { /* a teller ends with its node */
            if (k != *going) {
                trp_system_tell(trp_sim_system(sim, k), teller_refs[k], &pupil_go_type, &go,
                                sizeof go);
                expected += go.count;
            }
        }
        trp_sim_pass(sim, 20);
    }
    trp_sim_await(sim, is_gone, going, 30000);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
    TRP_SIM_CHECK(sim, handled == told_in_all());
    for (uint32_t i = 0; i < ENTITIES; i++) {
        TRP_SIM_CHECK(sim, ask(sim, *going == 0 ? 1 : 0, i) != *going);
    }
}

/* ClusterShardingFailureSpec: a node is killed; its entities live on the others. */
static void
a_host_is_killed(trp_sim *sim, void *arg)
{
    const uint32_t *victim = arg;
    uint32_t asker = *victim == 0 ? 1 : 0, before[ENTITIES];
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    memcpy(before, starts, sizeof before);
    trp_sim_kill(sim, *victim);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        bool stays = home[i] != *victim;
        TRP_SIM_CHECK(sim, ask(sim, asker, i) != *victim);
        TRP_SIM_CHECK(sim, !stays || starts[i] == before[i]); /* survivors do not restart */
    }
}

/* A node that starts the type later gets shards from the others, in order. */
static void
a_newcomer_gets_shards(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_pass(sim, 5000);
    TRP_SIM_CHECK(sim, hosted_by(NODES - 1) == 0);
    starts_late = 0;
    UNIT_EQUAL(type_start(sim, NODES - 1), TRP_OK);
    for (uint32_t i = 0; i < 1500 && hosted_by(NODES - 1) == 0; i++) {
        tell_all(sim, i, 3);
        trp_sim_pass(sim, 20);
    }
    TRP_SIM_CHECK(sim, hosted_by(NODES - 1) > 0);
    trp_sim_pass(sim, 5000);
    TRP_SIM_CHECK(sim, disordered + doubled == 0);
    for (uint32_t t = 0; t < NODES; t++) { /* what the newcomer told before was a dead letter */
        for (uint32_t e = 0; t != teller_of[NODES - 1] && e < ENTITIES; e++) {
            TRP_SIM_CHECK(sim, told[t][e] == heard[t][e]);
        }
    }
}

/* FUTURE-13, FUTURE-16: shards move under messages, and the type drops meanwhile. Each
 * message is handled, or a dead letter with its reason. */
static void
shards_move_and_drop(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_pass(sim, 5000);
    uint64_t not_started = dead_letters(sim);
    TRP_SIM_CHECK(sim, not_started == ENTITIES && hosted_by(NODES - 1) == 0);
    starts_late = 0;
    UNIT_EQUAL(type_start(sim, NODES - 1), TRP_OK);
    for (uint32_t i = 0; i < 1500 && hosted_by(NODES - 1) == 0; i++) {
        tell_all(sim, 0, ENTITIES);
        trp_sim_pass(sim, 3);
    }
    trp_sim_pass(sim, 10000);
    uint64_t dropped = dead_letters_of(sim, TRP_DEAD_SHARD_MOVES);
    TRP_SIM_CHECK(sim, hosted_by(NODES - 1) > 0 && dropped > 0);
    TRP_SIM_CHECK(sim, dead_letters(sim) == dropped + not_started);
    TRP_SIM_CHECK(sim, expected == handled + dead_letters(sim));
    TRP_SIM_CHECK(sim, doubled == 0);
    TRP_SIM_CHECK(sim, disordered == 0 || (hand_off & TRP_HAND_OFF_UNORDERED) != 0);
    memset(heard, 0, sizeof heard);
    tell_all(sim, 0, ENTITIES); /* who does not know the new home learns it now */
    trp_sim_pass(sim, 5000);
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
}

/* The program's: even and odd shards live on two nodes, from homes_from on. */
static void
pin_shards(void *arg, trp_allocation_round *round)
{
    uint32_t wanted[2] = { TRP_ALLOCATION_NONE, TRP_ALLOCATION_NONE };
    TRP_SIM_CHECK(present, arg == &homes_from && strcmp(round->type, "pupil") == 0);
    for (uint32_t i = 0; i < round->regions_count; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            const char *address = trp_sim_address(present, homes_from + k);
            wanted[k] = strcmp(round->regions[i].address, address) == 0 ? i : wanted[k];
        }
    }
    for (uint32_t i = 0; i < round->wanted_count; i++) {
        round->wanted_homes[i] = wanted[round->wanted[i] % 2];
    }
    for (uint32_t i = 0; i < round->shards && round->moves_count < round->moves_max; i++) {
        if (round->homes[i] != TRP_ALLOCATION_NONE && round->homes[i] != wanted[i % 2]) {
            round->moves[round->moves_count++] = i;
        }
    }
}

static int
all_are_pinned(void *arg)
{
    (void)arg;
    return hosted_by(homes_from) + hosted_by(homes_from + 1) == ENTITIES &&
           hosted_by(homes_from) > 0 && hosted_by(homes_from + 1) > 0;
}

/* CustomShardAllocationSpec, ExternalShardAllocationSpec */
static void
the_program_places(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, all_are_pinned(NULL));
    homes_from = 2;
    for (uint32_t i = 0; i < 2000 && !all_are_pinned(NULL); i++) {
        tell_all(sim, i, ENTITIES / 2);
        trp_sim_pass(sim, 50);
    }
    TRP_SIM_CHECK(sim, all_are_pinned(NULL));
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) + refused_answers == 0);
}

/* The program's: nothing of it can be done. */
static void
name_nonsense(void *arg, trp_allocation_round *round)
{
    (void)arg;
    for (uint32_t i = 0; i < round->wanted_count; i++) {
        round->wanted_homes[i] = round->regions_count + i % 3;
    }
    for (; round->moves_count < round->moves_max; round->moves_count++) {
        round->moves[round->moves_count] = round->shards + round->moves_count;
    }
    round->moves_count++;
}

static void
the_program_names_nonsense(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    uint32_t logged = refused_answers;
    TRP_SIM_CHECK(sim, logged > 0);
    for (uint32_t i = 0; i < NODES; i++) {
        TRP_SIM_CHECK(sim, hosted_by(i) > 0); /* where the fewest are */
    }
    trp_sim_pass(sim, 6000);
    TRP_SIM_CHECK(sim, refused_answers > logged && started == ENTITIES);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
}

/* A type with another number of shards is refused, and both numbers are named. */
static void
another_number_is_refused(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_pass(sim, 5000);
    shards_of_node[NODES - 1] = SHARDS + 1;
    starts_late = 0;
    UNIT_EQUAL(type_start(sim, NODES - 1), TRP_ECONFIG);
    TRP_SIM_CHECK(sim, strstr(refusal, "25") != NULL && strstr(refusal, "24") != NULL);
    TRP_SIM_CHECK(sim, strstr(refusal, trp_sim_address(sim, NODES - 1)) != NULL);
    uint64_t before = dead_letters(sim);
    tell_all(sim, 0, 1);
    trp_sim_pass(sim, 5000);
    TRP_SIM_CHECK(sim, dead_letters(sim) == before + 1); /* the refused node's */
}

/* ClusterShardingSpec, proxies: they tell entities, and host none. */
static void
proxies_tell(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, hosted_by(0) == 0 && hosted_by(2) == 0);
    TRP_SIM_CHECK(sim, hosted_by(1) + hosted_by(3) == ENTITIES);
    TRP_SIM_CHECK(sim, ask(sim, 0, 0) == home[0]);
}

static void
faults_and_messages(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t k = 0; k < 10; k++) {
            tell_all(sim, (uint32_t)trp_sim_random(sim) % ENTITIES, 8);
            trp_sim_pass(sim, 100);
        }
        trp_sim_faults(sim, 8000);
    }
    trp_sim_calm(sim, 180000);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        (void)ask(sim, i % nodes_count, i);
    }
    TRP_SIM_CHECK(sim, disordered + doubled == 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* FUTURE-02 FUTURE-21 */
static void
entities_start_where_there_is_room_and_answer_everywhere(void)
{
    trp_sim_options options = options_of(NODES);
    play(starts_and_answers, NULL, &options);
}

/* FUTURE-09 FUTURE-12 FUTURE-13 */
static void
a_leaving_node_hands_all_over_in_order(void)
{
    uint32_t going = NODES - 1;
    trp_sim_options options = options_of(NODES);
    play(leaves_under_messages, &going, &options);
}

/* FUTURE-09 */
static void
the_leaving_coordinator_hands_all_over_in_order(void)
{
    uint32_t going = 0;
    trp_sim_options options = options_of(NODES);
    play(leaves_under_messages, &going, &options);
}

/* keeper-step-S3, region-shard-S4 */
static void
orders_that_are_given_again_change_nothing(void)
{
    for (uint32_t going = 0; going < NODES; going++) {
        trp_sim_options options = options_of(NODES);
        repeats_orders = true;
        play(leaves_under_messages, &going, &options);
    }
}

/* FUTURE-09 */
static void
entities_of_a_killed_node_answer_elsewhere(void)
{
    uint32_t victim = NODES - 1;
    trp_sim_options options = options_of(NODES);
    play(a_host_is_killed, &victim, &options);
}

static void
entities_answer_when_the_coordinator_was_killed(void)
{
    uint32_t victim = 0;
    trp_sim_options options = options_of(NODES);
    play(a_host_is_killed, &victim, &options);
}

/* FUTURE-02 FUTURE-08 */
static void
a_node_that_starts_the_type_later_gets_shards(void)
{
    trp_sim_options options = options_of(NODES);
    starts_late = 1u << (NODES - 1);
    play(a_newcomer_gets_shards, NULL, &options);
}

/* FUTURE-13 FUTURE-16 */
static void
messages_are_dropped_while_a_shard_moves_where_the_type_says_so(void)
{
    static const uint32_t choices[] = { TRP_HAND_OFF_DROPS,
                                        TRP_HAND_OFF_DROPS | TRP_HAND_OFF_DROPS_LATE,
                                        TRP_HAND_OFF_UNORDERED | TRP_HAND_OFF_DROPS_LATE,
                                        TRP_HAND_OFF_UNORDERED | TRP_HAND_OFF_DROPS |
                                            TRP_HAND_OFF_DROPS_LATE };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        trp_sim_options options = options_of(NODES);
        starts_late = 1u << (NODES - 1);
        hand_off = choices[i];
        play(shards_move_and_drop, NULL, &options);
    }
}

/* FUTURE-10 */
static void
shards_live_where_the_program_says(void)
{
    trp_sim_options options = options_of(NODES);
    allocation = TRP_ALLOCATION_USER;
    allocate = pin_shards;
    play(the_program_places, NULL, &options);
}

/* FUTURE-10 */
static void
what_the_program_names_wrongly_is_refused(void)
{
    trp_sim_options options = options_of(NODES);
    allocation = TRP_ALLOCATION_USER;
    allocate = name_nonsense;
    play(the_program_names_nonsense, NULL, &options);
}

static void
another_number_of_shards_is_refused(void)
{
    trp_sim_options options = options_of(NODES);
    starts_late = 1u << (NODES - 1);
    play(another_number_is_refused, NULL, &options);
}

static void
a_node_without_a_recipe_tells_entities_and_hosts_none(void)
{
    trp_sim_options options = options_of(NODES);
    proxies = 1u << 0 | 1u << 2;
    play(proxies_tell, NULL, &options);
}

/* FUTURE-11 FUTURE-14 CONTRIB-48 */
static void
under_faults_never_two_live_and_messages_keep_their_order(void)
{
    play_seeds(faults_and_messages, options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/entities_test");
}

/* An entity's slot became that of an association while the mark behind its mailbox was on its way:
 * its shard never stopped. */
static void
a_mark_that_meets_an_association_is_reached(void)
{
    trp_sim_options options = options_of(NODES);
    options.seed = 1083;
    play(faults_and_messages, NULL, &options);
}

UNIT_BEGIN("entities")
UNIT(entities_start_where_there_is_room_and_answer_everywhere)
UNIT(a_leaving_node_hands_all_over_in_order)
UNIT(the_leaving_coordinator_hands_all_over_in_order)
UNIT(orders_that_are_given_again_change_nothing)
UNIT(entities_of_a_killed_node_answer_elsewhere)
UNIT(entities_answer_when_the_coordinator_was_killed)
UNIT(a_node_that_starts_the_type_later_gets_shards)
UNIT(messages_are_dropped_while_a_shard_moves_where_the_type_says_so)
UNIT(shards_live_where_the_program_says)
UNIT(what_the_program_names_wrongly_is_refused)
UNIT(another_number_of_shards_is_refused)
UNIT(a_node_without_a_recipe_tells_entities_and_hosts_none)
UNIT(under_faults_never_two_live_and_messages_keep_their_order)
UNIT(a_mark_that_meets_an_association_is_reached)
UNIT_END
