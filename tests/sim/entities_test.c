/* entities_test.c - entities on complete nodes, in virtual time: each lives once, messages keep
 * their order while shards move, and what is told is handled, unless a node or a connection ends
 * (CONTRIB-48, FUTURE-20, and the scenarios of the cluster-sharding specs).
 *
 * TROUPE_SIM_SEEDS=300 sets the number of seeds of the random ones. */
#include "tests/sim/entities_shell.h"

/* ---- programs -------------------------------------------------------------------------------- */

struct table {
    uint32_t coordinators, homes, given, here, counted, lives;
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

static void
lives_add(void *arg, uint32_t shard, uint32_t entities)
{
    ((struct table *)arg)->counted += shard < SHARDS;
    ((struct table *)arg)->lives += entities;
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
    for (uint32_t i = 0; i < NODES; i++) {
        trp_system *system = trp_sim_system(sim, i);
        TRP_SIM_CHECK(sim, trpi_sharding_counts(system, "pupil", lives_add, &table) == TRP_OK);
        TRP_SIM_CHECK(sim, trpi_sharding_counts(system, "x", lives_add, &table) == TRP_ENOENT);
    }
    TRP_SIM_CHECK(sim, table.counted == table.here && table.lives == ENTITIES);
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
    play_await_gone(sim, *going, 30000);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
    TRP_SIM_CHECK(sim, handled == told_in_all());
    for (uint32_t i = 0; i < ENTITIES; i++) {
        TRP_SIM_CHECK(sim, ask(sim, *going == 0 ? 1 : 0, i) != *going);
    }
}

/* ---- drain ----------------------------------------------------------------------------------- */

/* An operator orders at one node that another is drained, or drained no more. */
static void
order_drain(trp_sim *sim, uint32_t at, uint32_t of, bool drain)
{
    const char *address = trp_sim_address(sim, of);
    trpi_cluster_order *order = NULL;
    UNIT_REQUIRE(trpi_cluster_order_begin(trpi_cluster_of(trp_sim_system(sim, at)),
                                          drain ? TRPI_MEMBER_DRAIN : TRPI_MEMBER_UNDRAIN, &address,
                                          1, 0, NULL, &order) == TRP_OK);
    trp_sim_pass(sim, 100);
    TRP_SIM_CHECK(sim, trpi_cluster_order_end(order) == TRP_OK);
}

static uint32_t
shards_at(trp_sim *sim, uint32_t node)
{
    struct table table = { 0 };
    trpi_sharding_each(trp_sim_system(sim, node), table_add, &table);
    return table.here;
}

struct drained {
    uint32_t node;
    bool coordinator_leaves; /* while the shards move */
};

static int
has_no_shard(void *arg)
{
    const struct drained *d = arg;
    return shards_at(present, d->node) == 0;
}

static int
has_shards(void *arg)
{
    return !has_no_shard(arg);
}

/* A node is drained under messages, and undrained: nothing is lost, doubled, reordered; while it is
 * drained it has no shard, also under the next coordinator. */
static void
drained_under_messages(trp_sim *sim, void *arg)
{
    struct drained *d = arg;
    uint32_t orderer = d->node == NODES - 1 ? 1 : NODES - 1;
    uint32_t silent = d->coordinator_leaves ? 0 : NODES;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, hosted_by(d->node) > 0);
    order_drain(sim, orderer, d->node, true);
    if (d->coordinator_leaves) {
        trp_sim_leave(sim, 0);
    }
    tell_for(sim, 200, silent);
    if (d->coordinator_leaves) {
        play_await_gone(sim, 0, 30000);
    }
    trp_sim_await(sim, has_no_shard, d, 20000);
    tell_for(sim, 200, silent);
    TRP_SIM_CHECK(sim, has_no_shard(d));
    trp_sim_await(sim, all_heard, NULL, 20000);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        TRP_SIM_CHECK(sim, ask(sim, orderer, i) != d->node);
    }
    order_drain(sim, d->node, d->node, false);
    tell_for(sim, 300, silent);
    trp_sim_await(sim, has_shards, d, 60000);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
    TRP_SIM_CHECK(sim, handled == told_in_all() + ENTITIES); /* and the questions */
}

/* Where all nodes that host the type are drained, the shards stay and answer. */
static void
all_are_drained(trp_sim *sim, void *arg)
{
    struct drained *d = arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    for (uint32_t i = 0; i < NODES; i++) {
        order_drain(sim, 0, i, true);
    }
    trp_sim_pass(sim, 10000);
    tell_all(sim, 0, ENTITIES); /* what moved before the last one was drained starts */
    trp_sim_await(sim, all_heard, NULL, 20000);
    uint32_t before = started;
    trp_sim_pass(sim, 10000);
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, started == before);
    order_drain(sim, 0, d->node, false); /* it may take all of them */
    trp_sim_pass(sim, 10000);
    tell_all(sim, 0, ENTITIES);
    trp_sim_await(sim, all_heard, NULL, 20000);
    TRP_SIM_CHECK(sim, hosted_by(d->node) == ENTITIES);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
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

/* A collector: what a node has left is a tenth of its number, and one. */
static trp_err
figures_open(void *arg, trp_system *system, void **ret_state)
{
    (void)arg;
    *ret_state = system;
    return TRP_OK;
}

static uint32_t
figures_collect(void *state, trp_metric *metrics, uint32_t max)
{
    double left = 0;
    for (uint32_t i = 0; i < nodes_count; i++) {
        left = trp_sim_system(present, i) == state ? (i + 1) / 10.0 : left;
    }
    UNIT_TRUE(max >= 2);
    (void)snprintf(metrics[0].name, sizeof metrics[0].name, "%s", TRP_METRIC_HEAP_USED);
    metrics[0].value = 1000 * (1 - left);
    (void)snprintf(metrics[1].name, sizeof metrics[1].name, "%s", TRP_METRIC_HEAP_MAX);
    metrics[1].value = 1000;
    return left == 0 ? 0 : 2; /* not known yet */
}

/* Shards follow what nodes have left: 1 to 4 tenths, so 24 shards are shared out as 2, 5, 7, 10. */
static void
shards_follow_the_load(trp_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 40; i++) {
        tell_all(sim, 0, ENTITIES);
        trp_sim_pass(sim, 1000);
    }
    trp_sim_await(sim, all_heard, NULL, 20000);
    struct table table = { 0 };
    uint32_t here[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        table.here = 0;
        trpi_sharding_each(trp_sim_system(sim, i), table_add, &table);
        here[i] = table.here;
    }
    for (uint32_t i = 1; i < NODES; i++) {
        TRP_SIM_CHECK(sim, here[i] > here[i - 1]);
    }
    TRP_SIM_CHECK(sim, here[NODES - 1] >= 3 * here[0]);
    TRP_SIM_CHECK(sim, disordered + doubled + dead_letters(sim) == 0);
}

/* ClusterShardingMinMembersSpec: no shard has a home before so many nodes have started the type. */
static void
waits_for_members(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    trp_sim_pass(sim, 20000);
    TRP_SIM_CHECK(sim, started == 0 && handled == 0);
    starts_late = 0;
    UNIT_EQUAL(type_start(sim, NODES - 1), TRP_OK);
    trp_sim_pass(sim, 5000);
    TRP_SIM_CHECK(sim, started == ENTITIES && handled == (NODES - 1) * ENTITIES);
    for (uint32_t i = 0; i < NODES; i++) {
        TRP_SIM_CHECK(sim, hosted_by(i) > 0);
    }
    TRP_SIM_CHECK(sim, disordered + doubled == 0);
}

/* Each entity has a shard of its own, as the program says. */
static uint32_t
own_shard(const void *id, size_t id_bytes, uint32_t shards)
{
    char text[16] = "";
    UNIT_REQUIRE(id_bytes < sizeof text);
    memcpy(text, id, id_bytes);
    return (uint32_t)strtoul(text + sizeof "pupil-" - 1, NULL, 10) % shards;
}

static void
each_has_its_shard(trp_sim *sim, void *arg)
{
    uint32_t *going = arg;
    struct table table = { 0 };
    trpi_sharding_place place;
    leaves_under_messages(sim, going);
    for (uint32_t i = 0; i < NODES; i++) {
        if (i != *going) {
            trpi_sharding_each(trp_sim_system(sim, i), table_add, &table);
        }
    }
    TRP_SIM_CHECK(sim, table.here == ENTITIES);
    TRP_SIM_CHECK(sim, trpi_sharding_find(trp_sim_system(sim, 0), "pupil", "pupil-17", 8, &place) ==
                           TRP_OK);
    TRP_SIM_CHECK(sim, place.shard == 17);
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

/* Is that node drained, as one node knows? */
static bool
knows_drained(trp_sim *sim, uint32_t at, uint32_t of)
{
    trp_member members[NODES_MAX * 2];
    size_t count = 0;
    bool drained = false;
    UNIT_EQUAL(trp_cluster_members(trp_sim_system(sim, at), members, NODES_MAX * 2, &count),
               TRP_OK);
    for (size_t i = 0; i < count && i < NODES_MAX * 2; i++) {
        drained =
            drained || (strcmp(members[i].address, trp_sim_address(sim, of)) == 0 &&
                        members[i].status == TRP_MEMBER_UP && trpi_member_has_drained(&members[i]));
    }
    return drained;
}

/* As faults_and_messages(), and nodes are drained and undrained: in the end all nodes say of each
 * member the same, and a drained one has no shard while another is there to take it. */
static void
faults_and_drains(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, 0, ENTITIES);
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t k = 0; k < 10; k++) {
            if (k % 3 == 0) {
                drain_some(sim);
            }
            tell_all(sim, (uint32_t)trp_sim_random(sim) % ENTITIES, 8);
            trp_sim_pass(sim, 100);
        }
        trp_sim_faults(sim, 8000);
    }
    trp_sim_calm(sim, 180000);
    order_drain(sim, 0, 0, false); /* one that takes all */
    for (uint32_t i = 1; i < nodes_count; i++) {
        order_drain(sim, i, i, i % 2 == 0);
    }
    for (uint32_t i = 0; i < ENTITIES; i++) {
        (void)ask(sim, i % nodes_count, i);
    }
    trp_sim_pass(sim, 20000);
    for (uint32_t i = 0; i < nodes_count; i++) {
        for (uint32_t at = 0; at < nodes_count; at++) {
            TRP_SIM_CHECK(sim, knows_drained(sim, at, i) == (i != 0 && i % 2 == 0));
        }
        TRP_SIM_CHECK(sim, i == 0 || i % 2 != 0 || shards_at(sim, i) == 0);
    }
    TRP_SIM_CHECK(sim, disordered + doubled == 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* FUTURE-02 FUTURE-21; ClusterShardingSpec, ClusterShardingGetStatsSpec,
 * ClusterShardingGetStateSpec */
static void
entities_start_where_there_is_room_and_answer_everywhere(void)
{
    trp_sim_options options = options_of(NODES);
    play(starts_and_answers, NULL, &options);
}

/* FUTURE-09 FUTURE-12 FUTURE-13; ClusterShardingGracefulShutdownSpec */
static void
a_leaving_node_hands_all_over_in_order(void)
{
    uint32_t going = NODES - 1;
    trp_sim_options options = options_of(NODES);
    play(leaves_under_messages, &going, &options);
}

/* FUTURE-09; ClusterShardingLeavingSpec, ClusterShardingGracefulShutdownOldestSpec */
static void
the_leaving_coordinator_hands_all_over_in_order(void)
{
    uint32_t going = 0;
    trp_sim_options options = options_of(NODES);
    play(leaves_under_messages, &going, &options);
}

static void
a_drained_node_hands_all_over_in_order_and_gets_shards_back(void)
{
    for (uint32_t node = 0; node < NODES; node++) {
        struct drained d = { node, false };
        trp_sim_options options = options_of(NODES);
        play(drained_under_messages, &d, &options);
    }
}

static void
a_drained_node_stays_so_under_the_next_coordinator(void)
{
    struct drained d = { 2, true };
    trp_sim_options options = options_of(NODES);
    play(drained_under_messages, &d, &options);
}

static void
shards_stay_where_all_nodes_are_drained(void)
{
    struct drained d = { 1, false };
    trp_sim_options options = options_of(NODES);
    play(all_are_drained, &d, &options);
}

/* ClusterShardingGracefulShutdownSpec */
static void
a_node_that_hosts_none_leaves_too(void)
{
    uint32_t going = NODES - 1;
    trp_sim_options options = options_of(NODES);
    proxies = 1u << going;
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

/* FUTURE-09; ClusterShardCoordinatorDowning2Spec */
static void
entities_of_a_killed_node_answer_elsewhere(void)
{
    uint32_t victim = NODES - 1;
    trp_sim_options options = options_of(NODES);
    play(a_host_is_killed, &victim, &options);
}

/* ClusterShardingSpec, ClusterShardCoordinatorDowningSpec */
static void
entities_answer_when_the_coordinator_was_killed(void)
{
    uint32_t victim = 0;
    trp_sim_options options = options_of(NODES);
    play(a_host_is_killed, &victim, &options);
}

/* FUTURE-02 FUTURE-08; ClusterShardingSpec */
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

/* ClusterShardingSingleShardPerEntitySpec */
static void
each_entity_may_have_a_shard_of_its_own(void)
{
    uint32_t going = NODES - 1;
    trp_sim_options options = options_of(NODES);
    shard_of = own_shard;
    for (uint32_t i = 0; i < NODES; i++) {
        shards_of_node[i] = ENTITIES;
    }
    play(each_has_its_shard, &going, &options);
}

/* FUTURE-10; ClusterShardingCustomShardAllocationSpec, ExternalShardAllocationSpec */
static void
shards_live_where_the_program_says(void)
{
    trp_sim_options options = options_of(NODES);
    allocation = TRP_ALLOCATION_USER;
    allocate = pin_shards;
    play(the_program_places, NULL, &options);
}

/* FUTURE-10; ClusterShardingCustomShardAllocationSpec */
static void
what_the_program_names_wrongly_is_refused(void)
{
    trp_sim_options options = options_of(NODES);
    allocation = TRP_ALLOCATION_USER;
    allocate = name_nonsense;
    play(the_program_names_nonsense, NULL, &options);
}

/* FUTURE-10 */
static void
shards_move_to_nodes_that_have_more_left(void)
{
    static const trp_metrics_collector figures = { sizeof figures,  "simulated", figures_open,
                                                   figures_collect, NULL,        NULL };
    trp_sim_options options = options_of(NODES);
    trp_err err = trp_metrics_collector_register(&figures);
    UNIT_TRUE(err == TRP_OK || err == TRP_EEXIST);
    allocation = TRP_ALLOCATION_METRICS;
    play(shards_follow_the_load, NULL, &options);
}

/* FUTURE-09; ClusterShardingMinMembersSpec */
static void
no_shard_has_a_home_before_the_least_members_are_there(void)
{
    trp_sim_options options = options_of(NODES);
    starts_late = 1u << (NODES - 1);
    members_min = NODES;
    play(waits_for_members, NULL, &options);
}

/* ClusterShardingIncorrectSetupSpec */
static void
another_number_of_shards_is_refused(void)
{
    trp_sim_options options = options_of(NODES);
    starts_late = 1u << (NODES - 1);
    play(another_number_is_refused, NULL, &options);
}

/* ClusterShardingSpec */
static void
a_node_without_a_recipe_tells_entities_and_hosts_none(void)
{
    trp_sim_options options = options_of(NODES);
    proxies = 1u << 0 | 1u << 2;
    play(proxies_tell, NULL, &options);
}

/* FUTURE-11 FUTURE-14 CONTRIB-48; ClusterShardCoordinatorDowningSpec */
static void
under_faults_never_two_live_and_messages_keep_their_order(void)
{
    play_seeds(faults_and_messages, options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/entities_test");
}

static void
under_faults_drained_nodes_end_without_shards(void)
{
    play_seeds(faults_and_drains, options_of, NODES, 10,
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
UNIT(a_drained_node_hands_all_over_in_order_and_gets_shards_back)
UNIT(a_drained_node_stays_so_under_the_next_coordinator)
UNIT(shards_stay_where_all_nodes_are_drained)
UNIT(a_node_that_hosts_none_leaves_too)
UNIT(orders_that_are_given_again_change_nothing)
UNIT(entities_of_a_killed_node_answer_elsewhere)
UNIT(entities_answer_when_the_coordinator_was_killed)
UNIT(a_node_that_starts_the_type_later_gets_shards)
UNIT(messages_are_dropped_while_a_shard_moves_where_the_type_says_so)
UNIT(each_entity_may_have_a_shard_of_its_own)
UNIT(shards_live_where_the_program_says)
UNIT(what_the_program_names_wrongly_is_refused)
UNIT(no_shard_has_a_home_before_the_least_members_are_there)
UNIT(another_number_of_shards_is_refused)
UNIT(a_node_without_a_recipe_tells_entities_and_hosts_none)
UNIT(under_faults_never_two_live_and_messages_keep_their_order)
UNIT(under_faults_drained_nodes_end_without_shards)
UNIT(a_mark_that_meets_an_association_is_reached)
/* the last one: from its collector on, nodes measure themselves */
UNIT(shards_move_to_nodes_that_have_more_left)
UNIT_END
