/* kept_test.c - persistent, remembered entities and their reminders on complete nodes that share a
 * journal, in virtual time: what was acknowledged is there wherever an entity lives next, each
 * lives again without a message, and reminders come (FUTURE-17, A4J-14; the remember-entities and
 * persistence scenarios of the cluster-sharding specs).
 *
 * TROUPE_SIM_SEEDS=200 sets the number of seeds of the random ones. */
#include <troupe/troupe.h>

#include "tests/sim/play.h"

enum { NODES = 4, NODES_MAX = 6, ENTITIES = 16, SHARDS = 12 };

static trp_sim *present;
static uint32_t nodes_count;
static uint64_t acked[ENTITIES]; /* additions that the journal has acknowledged */
static uint32_t home[ENTITIES], generation[ENTITIES], reminded[ENTITIES];
static uint32_t shards_now;
static uint64_t lost; /* acknowledged, and not there after a recovery */

#define SAVING_ADD(F, S) F(S, u32, entity) F(S, u32, unused)
#define SAVING_COUNT(F, S) F(S, u64, additions)
#define SAVING_DUE(F, S) F(S, u32, entity) F(S, u32, unused)
#define SAVING_MESSAGES(M, P)                                                                      \
    M(P, add, SAVING_ADD)                                                                          \
    M(P, added, SAVING_ADD)                                                                        \
    M(P, get, SAVING_ADD)                                                                          \
    M(P, count, SAVING_COUNT)                                                                      \
    M(P, due, SAVING_DUE)
TRP_PROTOCOL(saving, SAVING_MESSAGES)

/* ---- the entity ------------------------------------------------------------------------------ */

typedef struct saving {
    trp_persistent_state persistent;
    uint64_t additions;
    uint32_t entity, generation;
} saving;

static trp_entity
entity_at(uint32_t number)
{
    char id[16];
    int bytes = snprintf(id, sizeof id, "saving-%u", number);
    return trp_entity_of(trp_entity_type("saving"), id, (size_t)bytes);
}

static trp_err
saving_start(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how)
{
    saving *s = state;
    trp_entity self;
    (void)args;
    (void)how;
    TRP_SIM_CHECK(present, trp_entity_self(ctx, &self) == TRP_OK);
    s->entity = (uint32_t)strtoul(self.id + sizeof "saving-" - 1, NULL, 10);
    return TRP_OK;
}

static trp_err
saving_recovered(trp_ctx *ctx, void *state)
{
    saving *s = state;
    lost += s->additions < acked[s->entity];
    acked[s->entity] = s->additions; /* stored, but never acknowledged: it counts from now on */
    s->generation = ++generation[s->entity];
    home[s->entity] = play_node_of(present, ctx);
    return TRP_OK;
}

static trp_err
saving_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    (void)event;
    ((saving *)state)->additions++;
    return TRP_OK;
}

static trp_err
saving_added_now(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    const saving *s = state;
    saving_count count = { s->additions };
    (void)event;
    (void)arg;
    if (s->generation != generation[s->entity]) {
        trp_sim_fail(present, __FILE__, __LINE__, "an entity with a successor has written");
    }
    acked[s->entity] = s->additions;
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trp_reply(ctx, &saving_count_type, &count, sizeof count);
    }
    return TRP_OK;
}

static trp_err
saving_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    saving *s = state;
    if (trp_msg_is(msg, &saving_add_type)) {
        saving_added added = { s->entity, 0 };
        return trp_persist(ctx, &saving_added_type, &added, sizeof added, saving_added_now, NULL);
    }
    if (trp_msg_is(msg, &saving_due_type)) {
        reminded[s->entity]++;
        return TRP_OK;
    }
    if (trp_msg_is(msg, &saving_get_type)) {
        saving_count count = { s->additions };
        trp_reply(ctx, &saving_count_type, &count, sizeof count);
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_persistent behaviour =
    TRP_PERSISTENT_INIT("saving", saving, saving_command, saving_event);

/* ---- nodes ----------------------------------------------------------------------------------- */

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    char why[512] = "";
    (void)arg;
    present = sim;
    nodes_count = trp_sim_nodes(sim);
    behaviour.start = saving_start;
    behaviour.recovered = saving_recovered;
    UNIT_EQUAL(trp_protocol_register(&saving_protocol), TRP_OK);
    UNIT_EQUAL(trp_persistence_start(trp_sim_system(sim, node), trp_sim_journal(sim, node), NULL),
               TRP_OK);
    options.type = "saving";
    options.behaviour = &behaviour.behaviour;
    options.shards = shards_now;
    options.remember_entities = 1;
    options.reminders = 1;
    options.rebalance_ms = 2000;
    options.members_min = NODES - 1; /* of one that goes, the others go on */
    UNIT_EQUAL(trp_sharding_start(trp_sim_system(sim, node), &options, why, sizeof why), TRP_OK);
    UNIT_TEXT(why, "");
}

static trp_sim_options
options_of(uint32_t nodes)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = nodes;
    options.started = start_actors;
    options.log = play_line;
    memset(acked, 0, sizeof acked);
    memset(generation, 0, sizeof generation);
    memset(reminded, 0, sizeof reminded);
    lost = 0;
    shards_now = SHARDS;
    return options;
}

/* Ask until it answers: a question, or an addition that was perhaps made, may be lost in a
 * crash. */
static uint64_t
ask(trp_sim *sim, uint32_t node, uint32_t number, const trp_type *type)
{
    trp_entity entity = entity_at(number);
    saving_add add = { number, 0 };
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;
    for (uint32_t i = 0; i < 30 && err == TRP_ETIMEDOUT; i++) {
        err = trp_system_entity_ask(trp_sim_system(sim, node), &entity, type, &add, sizeof add,
                                    2000, &reply);
    }
    TRP_SIM_CHECK(sim, err == TRP_OK);
    uint64_t count = err == TRP_OK ? ((const saving_count *)trp_msg_payload(reply))->additions : 0;
    trp_msg_free(reply);
    return count;
}

static uint32_t
running(trp_sim *sim)
{
    uint32_t node = 0;
    while (trp_sim_system(sim, node) == NULL) {
        node++;
    }
    return node;
}

static void
add_to_all(trp_sim *sim)
{
    for (uint32_t i = 0; i < nodes_count; i++) {
        for (uint32_t e = 0; e < ENTITIES && trp_sim_system(sim, i) != NULL; e++) {
            trp_entity entity = entity_at(e);
            saving_add add = { e, 0 };
            TRP_SIM_CHECK(sim,
                          trp_system_entity_tell(trp_sim_system(sim, i), &entity, &saving_add_type,
                                                 &add, sizeof add) == TRP_OK);
        }
    }
}

static void
all_have_what_was_acknowledged(trp_sim *sim, uint32_t node)
{
    for (uint32_t e = 0; e < ENTITIES; e++) {
        uint64_t before = acked[e];
        TRP_SIM_CHECK(sim, ask(sim, node, e, &saving_get_type) >= before);
    }
    TRP_SIM_CHECK(sim, lost == 0);
}

/* Has each entity started again on a node that runs, since it was at `arg`? */
static int
none_is_at(void *arg)
{
    const uint32_t *node = arg;
    for (uint32_t e = 0; e < ENTITIES; e++) {
        if (home[e] == *node) {
            return 0;
        }
    }
    return 1;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* ClusterShardingRememberEntitiesSpec: after a leave, and after a crash, all live elsewhere without
 * a message, with what they had. */
static void
a_node_goes(trp_sim *sim, void *arg)
{
    const uint32_t *leaves = arg;
    uint32_t going = 0; /* some home, and not the node that asks */
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, ask(sim, 0, e, &saving_add_type) == 1);
        going = home[e] == 0 ? going : home[e];
    }
    TRP_SIM_CHECK(sim, going > 0);
    if (*leaves) {
        trp_sim_leave(sim, going);
        play_await_gone(sim, going, 30000);
    } else {
        trp_sim_kill(sim, going);
    }
    trp_sim_await(sim, none_is_at, &going, 60000);
    TRP_SIM_CHECK(sim, lost == 0);
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, ask(sim, 0, e, &saving_get_type) == 1);
    }
}

static void
remind_all(trp_sim *sim, uint32_t in_ms)
{
    saving_due due = { 0 };
    for (uint32_t e = 0; e < ENTITIES; e++) {
        trp_reminder reminder = TRP_REMINDER_INIT;
        trp_entity entity = entity_at(e);
        due.entity = e;
        reminder.name = "due";
        reminder.in_ms = in_ms;
        reminder.type = &saving_due_type;
        reminder.payload = &due;
        reminder.bytes = sizeof due;
        TRP_SIM_CHECK(sim, trp_system_reminder_set(trp_sim_system(sim, 0), &entity, &reminder,
                                                   5000) == TRP_OK);
    }
}

/* A reminder of an entity whose node is killed before it is due comes where the entity lives. */
static void
reminders_come(trp_sim *sim, void *arg)
{
    uint32_t going = NODES - 1;
    (void)arg;
    remind_all(sim, 60000);
    trp_sim_kill(sim, going);
    trp_sim_pass(sim, 120000);
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, reminded[e] >= 1); /* at least once */
    }
}

static void
additions_under_faults(trp_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t k = 0; k < 5; k++) {
            add_to_all(sim);
            trp_sim_pass(sim, 200);
        }
        trp_sim_faults(sim, 8000);
    }
    trp_sim_calm(sim, 180000);
    uint32_t node = running(sim);
    all_have_what_was_acknowledged(sim, node);
    for (uint32_t e = 0; e < ENTITIES; e++) {
        uint64_t before = ask(sim, node, e, &saving_get_type);
        TRP_SIM_CHECK(sim, ask(sim, node, e, &saving_add_type) == before + 1);
    }
}

static int
all_have_started_since(void *arg)
{
    const uint32_t *before = arg;
    for (uint32_t e = 0; e < ENTITIES; e++) {
        if (generation[e] == before[e]) {
            return 0;
        }
    }
    return 1;
}

/* All nodes end, and begin with another number of shards: what shards keep for others is handed
 * over, also under faults. Each lives without a message, once, and its reminder comes. */
static void
shards_change(trp_sim *sim, void *arg)
{
    static const uint32_t numbers[] = { 17, 5, 29 }; /* of 5, some shards are nobody's any more */
    const uint32_t *faults = arg;
    uint32_t before[ENTITIES];
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, ask(sim, 0, e, &saving_add_type) == 1);
    }
    remind_all(sim, 900000);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < nodes_count; i++) {
            trp_sim_kill(sim, i);
        }
        trp_sim_pass(sim, 1000);
        memcpy(before, generation, sizeof before);
        shards_now = numbers[k];
        for (uint32_t i = 0; i < nodes_count; i++) {
            trp_sim_start(sim, i);
        }
        if (faults != NULL && *faults) {
            trp_sim_pass(sim, (uint32_t)(trp_sim_random(sim) % 3000));
            trp_sim_faults(sim, 4000);
            trp_sim_calm(sim, 180000);
        }
        if (k != 1) {
            trp_sim_await(sim, all_have_started_since, before, 120000);
        } else { /* it gets what the ones that are left keep; the next change finds the rest */
            trp_sim_pass(sim, 30000);
        }
    }
    TRP_SIM_CHECK(sim, lost == 0);
    trp_sim_pass(sim, 1000000);
    for (uint32_t e = 0; e < ENTITIES; e++) {
        TRP_SIM_CHECK(sim, ask(sim, running(sim), e, &saving_get_type) == 1);
        TRP_SIM_CHECK(sim, reminded[e] >= 1);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
what_a_leaving_node_had_lives_elsewhere_without_a_message(void)
{
    trp_sim_options options = options_of(NODES);
    uint32_t leaves = 1;
    play(a_node_goes, &leaves, &options);
}

/* ClusterShardingRememberEntitiesSpec */
static void
what_a_killed_node_had_lives_elsewhere_without_a_message(void)
{
    trp_sim_options options = options_of(NODES);
    uint32_t leaves = 0;
    play(a_node_goes, &leaves, &options);
}

static void
reminders_of_a_killed_node_come_elsewhere(void)
{
    trp_sim_options options = options_of(NODES);
    play(reminders_come, NULL, &options);
}

/* ClusterShardingRememberEntitiesNewExtractorSpec; region-move-V1, -V2 */
static void
another_number_of_shards_takes_all_along(void)
{
    trp_sim_options options = options_of(NODES);
    play(shards_change, NULL, &options);
}

static uint32_t under_faults = 1;

static void
shards_change_under_faults(trp_sim *sim, void *arg)
{
    (void)arg;
    shards_change(sim, &under_faults);
}

/* ClusterShardingRememberEntitiesNewExtractorSpec; region-move-V1, -V2 */
static void
another_number_of_shards_takes_all_along_under_faults(void)
{
    play_seeds(shards_change_under_faults, options_of, NODES, 5,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/kept_test");
}

/* ClusterShardingFailureSpec */
static void
under_faults_nothing_acknowledged_is_lost(void)
{
    play_seeds(additions_under_faults, options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/kept_test");
}

/* A shard lost its permission to write while its coordinator was out of reach: its end was said
 * once, and its home was asked for, for ever. */
static void
an_end_that_was_not_heard_is_said_again(void)
{
    trp_sim_options options = options_of(NODES);
    options.seed = 1446;
    play(additions_under_faults, NULL, &options);
}

UNIT_BEGIN("kept")
UNIT(what_a_leaving_node_had_lives_elsewhere_without_a_message)
UNIT(what_a_killed_node_had_lives_elsewhere_without_a_message)
UNIT(reminders_of_a_killed_node_come_elsewhere)
UNIT(another_number_of_shards_takes_all_along)
UNIT(another_number_of_shards_takes_all_along_under_faults)
UNIT(under_faults_nothing_acknowledged_is_lost)
UNIT(an_end_that_was_not_heard_is_said_again)
UNIT_END
