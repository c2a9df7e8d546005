/* entity_remember_test.c - entities that are to live: noted, started again, forgotten. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "tests/unit/cluster/entities.h"

enum { IDS = 2000 };

static trp_type poke_type = { .name = "remembered.poke", .bytes = 0, .tag = 1 };
static trp_type leave_type = { .name = "remembered.leave", .bytes = 0, .tag = 2 };
static trp_type end_type = { .name = "remembered.end", .bytes = 0, .tag = 3 };
static trp_type fail_type = { .name = "remembered.fail", .bytes = 0, .tag = 4 };
static trp_type *const types[] = { &poke_type, &leave_type, &end_type, &fail_type };
static const trp_protocol protocol = { .name = "remembered", .types = types, .types_count = 4 };

static struct {
    _Atomic uint32_t starts, pokes;
    _Atomic bool lives, two;
} seen[IDS];
static _Atomic uint32_t lives;
static entities *scene;
static _Atomic uint32_t handled_unnoted;

typedef struct state {
    uint32_t id;
} state;

static trp_err
entity_start(trp_ctx *ctx, void *arg, const trp_msg *args)
{
    state *s = arg;
    trp_entity self;
    char text[TRP_ENTITY_ID_BYTES_MAX + 1] = "";
    (void)args;
    UNIT_EQUAL(trp_entity_self(ctx, &self), TRP_OK);
    memcpy(text, self.id, self.id_bytes);
    s->id = (uint32_t)atoi(text) % IDS;
    atomic_fetch_add(&seen[s->id].starts, 1);
    if (atomic_exchange(&seen[s->id].lives, true)) {
        atomic_store(&seen[s->id].two, true);
    }
    atomic_fetch_add(&lives, 1);
    return TRP_OK;
}

static void
entity_stopped(trp_ctx *ctx, void *arg)
{
    (void)ctx;
    atomic_store(&seen[((state *)arg)->id].lives, false);
    atomic_fetch_sub(&lives, 1);
}

static trp_err
entity_receive(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    state *s = arg;
    if (trp_msg_is(msg, &poke_type)) {
        /* region-remember-M1: the events of all shards' stores, before anything is handled */
        if (entities_events(scene, "/sharding/thing/0") == 0) {
            atomic_fetch_add(&handled_unnoted, 1);
        }
        atomic_fetch_add(&seen[s->id].pokes, 1);
    } else if (trp_msg_is(msg, &leave_type)) {
        UNIT_EQUAL(trp_entity_passivate(ctx), TRP_OK);
    } else if (trp_msg_is(msg, &end_type)) {
        trp_stop(ctx, trp_self(ctx));
    } else if (trp_msg_is(msg, &fail_type)) {
        return TRP_EIO;
    }
    return TRP_OK;
}

static trp_behaviour entity = TRP_BEHAVIOUR_INIT("thing", state, entity_receive);

static trp_err
things_open(entities *e, uint32_t shards)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    UNIT_REQUIRE(trp_protocol_register(&protocol) == TRP_OK);
    memset(seen, 0, sizeof seen);
    atomic_store(&lives, 0);
    atomic_store(&handled_unnoted, 0);
    scene = e;
    entity.pre_start = entity_start;
    entity.post_stop = entity_stopped;
    options.type = "thing";
    options.behaviour = &entity;
    options.shards = shards;
    options.remember_entities = 1;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 50;
    return trp_sharding_start(e->system, &options, e->why, sizeof e->why);
}

static void
tell(const entities *e, uint32_t id, const trp_type *type)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", id);
    trp_entity to = entities_named("thing", text);
    UNIT_EQUAL(trp_system_entity_tell(e->system, &to, type, NULL, 0), TRP_OK);
}

static void
an_entity_is_noted_before_it_handles_a_message(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 1), TRP_OK);
    trpi_region *region = entities_region(&e, "thing");
    UNIT_WAIT(atomic_load(&region->shards[0].route) == TRPI_ROUTE_LOCAL, 20000);
    trp_journal_memory_hold(e.memory, 1);
    tell(&e, 1, &poke_type);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    UNIT_WAIT((e.journal->health(e.journal->arg, &health), health.waiting == 1), 20000);
    UNIT_EQUAL(atomic_load(&seen[1].starts), 0);
    tell(&e, 1, &poke_type);
    trp_journal_memory_hold(e.memory, 0);
    UNIT_WAIT(atomic_load(&seen[1].pokes) == 2, 20000);
    UNIT_EQUAL(atomic_load(&seen[1].starts), 1);
    UNIT_EQUAL(atomic_load(&handled_unnoted), 0);
    entities_end(&e);
}

/* ClusterShardingRememberEntitiesSpec */
static void
all_start_again_with_the_system(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 8), TRP_OK);
    for (uint32_t i = 0; i < IDS; i++) {
        tell(&e, i, &poke_type);
    }
    UNIT_WAIT(atomic_load(&lives) == IDS, 60000);
    entities_restart(&e);
    UNIT_EQUAL(things_open(&e, 8), TRP_OK); /* and nobody tells them anything */
    UNIT_WAIT(atomic_load(&lives) == IDS, 60000);
    for (uint32_t i = 0; i < IDS; i++) {
        UNIT_EQUAL(atomic_load(&seen[i].starts), 1);
        UNIT_EQUAL(atomic_load(&seen[i].pokes), 0);
    }
    entities_end(&e);
}

static void
what_is_passivated_is_forgotten_and_what_ends_or_fails_is_not(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 2), TRP_OK);
    for (uint32_t i = 0; i < 4; i++) {
        tell(&e, i, &poke_type);
    }
    UNIT_WAIT(atomic_load(&lives) == 4, 20000);
    tell(&e, 1, &leave_type);
    tell(&e, 2, &end_type);
    tell(&e, 3, &fail_type);
    UNIT_WAIT(!atomic_load(&seen[1].lives), 20000);
    UNIT_WAIT(atomic_load(&seen[2].starts) == 2 && atomic_load(&seen[2].lives), 20000);
    UNIT_WAIT(atomic_load(&seen[3].starts) == 2 && atomic_load(&seen[3].lives), 20000);
    trpi_region *region = entities_region(&e, "thing");
    UNIT_WAIT(atomic_load(&region->live) == 3, 20000);
    UNIT_EQUAL(atomic_load(&seen[0].starts), 1);
    UNIT_EQUAL(atomic_load(&seen[1].starts), 1);
    entities_restart(&e);
    UNIT_EQUAL(things_open(&e, 2), TRP_OK);
    UNIT_WAIT(atomic_load(&lives) == 3, 20000);
    tell(&e, 9, &poke_type); /* started behind the others of its shard */
    UNIT_WAIT(atomic_load(&seen[9].pokes) == 1, 20000);
    UNIT_EQUAL(atomic_load(&seen[1].starts), 0);
    tell(&e, 1, &poke_type); /* it may come back */
    UNIT_WAIT(atomic_load(&seen[1].pokes) == 1, 20000);
    entities_end(&e);
}

static void
a_message_behind_a_passivation_keeps_it(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 1), TRP_OK);
    for (uint32_t i = 0; i < 200; i++) {
        tell(&e, 1, i % 2 == 0 ? &leave_type : &poke_type);
    }
    UNIT_WAIT(atomic_load(&seen[1].pokes) == 100, 20000);
    UNIT_FALSE(atomic_load(&seen[1].two));
    entities_end(&e);
}

/* CONTRIB-48 */
static void
a_hand_off_forgets_nothing(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 4), TRP_OK);
    trpi_region *region = entities_region(&e, "thing");
    for (uint32_t round = 1; round <= 10; round++) {
        for (uint32_t i = 0; i < 50; i++) {
            tell(&e, i, &poke_type);
        }
        trp_ctx *ctx = trpi_enter(e.system);
        for (uint32_t i = 0; i < 4; i++) {
            trpi_region_order(ctx, region, TRPI_REQUEST_STOP, i, 0, NULL);
        }
        trpi_leave(ctx);
    }
    for (uint32_t i = 0; i < 50; i++) {
        UNIT_WAIT(atomic_load(&seen[i].pokes) == 10, 20000);
        UNIT_FALSE(atomic_load(&seen[i].two));
    }
    UNIT_WAIT(atomic_load(&lives) == 50, 20000); /* also those that nobody has told since */
    entities_end(&e);
}

static void
a_refused_note_is_tried_again(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 1), TRP_OK);
    trpi_region *region = entities_region(&e, "thing");
    UNIT_WAIT(atomic_load(&region->shards[0].route) == TRPI_ROUTE_LOCAL, 20000);
    trp_journal_memory_fail(e.memory, TRP_JOURNAL_APPEND, 0, 2, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
    tell(&e, 1, &poke_type);
    UNIT_WAIT(atomic_load(&seen[1].pokes) == 1, 20000);
    /* An outcome that is unknown: the shard is given up and opened again, and nothing is lost. */
    trp_journal_memory_fail(e.memory, TRP_JOURNAL_APPEND, 0, 2, TRP_JOURNAL_FAILED, TRP_EIO);
    tell(&e, 2, &poke_type);
    UNIT_WAIT(atomic_load(&seen[2].pokes) == 1, 20000);
    UNIT_WAIT(atomic_load(&lives) == 2, 20000);
    entities_end(&e);
}

/* How many ids the stores of so many shards have, each in the shard that it belongs to. */
static uint32_t
remembered(const entities *e, uint32_t shards)
{
    uint32_t count = 0;
    for (uint32_t number = 0; number < shards; number++) {
        trpi_shard_store_options options = {
            .type = "thing", .shard = number, .writer = "test", .memory = true
        };
        trpi_shard_store *store;
        trp_journal_op *op;
        const char *name;
        uint32_t position = 0;
        UNIT_REQUIRE(trpi_shard_store_new(&options, &store) == TRP_OK);
        while ((op = trpi_shard_store_next(store, 1)) != NULL) {
            UNIT_EQUAL(trp_journal_call(e->journal, op), TRP_OK);
            trpi_shard_store_answered(store, op);
        }
        while ((name = trpi_shard_store_entity(store, &position)) != NULL) {
            uint64_t hash = trpi_hash(name, strlen(name), 0);
            count += (uint32_t)(((hash >> 32) * shards) >> 32) == number;
        }
        UNIT_EQUAL(trpi_shard_store_state_get(store), TRPI_SHARD_STORE_READY);
        trpi_shard_store_free(store);
    }
    return count;
}

/* region-move-V1, -V2: each is handed to its own
 * shard, lives there once, and is forgotten where it was. The first so many appends succeed. */
static void
handed_over_with(uint32_t appends, trp_journal_outcome outcome)
{
    enum { THINGS = 40 };
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(things_open(&e, 2), TRP_OK);
    for (uint32_t i = 0; i < THINGS; i++) {
        tell(&e, i, &poke_type);
    }
    UNIT_WAIT(atomic_load(&lives) == THINGS, 20000);
    for (uint32_t shards = 3; shards <= 5; shards++) {
        entities_restart(&e);
        if (outcome != TRP_JOURNAL_DONE) {
            trp_journal_memory_fail(e.memory, TRP_JOURNAL_APPEND, appends, 2, outcome, TRP_EIO);
        }
        UNIT_EQUAL(things_open(&e, shards), TRP_OK); /* and nobody tells them anything */
        UNIT_WAIT(atomic_load(&lives) == THINGS, 20000);
        for (uint32_t i = 0; i < THINGS; i++) {
            UNIT_FALSE(atomic_load(&seen[i].two));
            tell(&e, i, &poke_type);
        }
        for (uint32_t i = 0; i < THINGS; i++) {
            UNIT_WAIT(atomic_load(&seen[i].pokes) == 1, 20000);
        }
    }
    entities_stop(&e);
    for (uint32_t tries = 0; remembered(&e, 5) < THINGS && tries < 20; tries++) {
        entities_start(&e); /* the last ones were handed over when it ended */
        UNIT_EQUAL(things_open(&e, 5), TRP_OK);
        UNIT_WAIT(atomic_load(&lives) == THINGS, 20000);
        entities_stop(&e);
    }
    UNIT_EQUAL(remembered(&e, 5), THINGS);
    entities_start(&e);
    entities_end(&e);
}

/* ClusterShardingRememberEntitiesNewExtractorSpec */
static void
entities_of_another_number_of_shards_are_handed_to_their_own(void)
{
    handed_over_with(0, TRP_JOURNAL_DONE);
}

/* ClusterShardingRememberEntitiesNewExtractorSpec */
static void
a_hand_over_that_is_cut_short_goes_on(void)
{
    for (uint32_t appends = 0; appends < 6; appends++) {
        handed_over_with(appends, TRP_JOURNAL_REFUSED);
        handed_over_with(appends, TRP_JOURNAL_FAILED);
    }
}

static void
passivation_by_time_or_number_is_refused(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    entities e;
    entities_begin(&e);
    options.type = "thing";
    options.behaviour = &entity;
    options.remember_entities = 1;
    options.passivate_after_ms = 1000;
    UNIT_EQUAL(trp_sharding_start(e.system, &options, e.why, sizeof e.why), TRP_EINVAL);
    options.passivate_after_ms = TRP_OFF;
    options.entities_max = 10;
    UNIT_EQUAL(trp_sharding_start(e.system, &options, e.why, sizeof e.why), TRP_EINVAL);
    options.entities_max = 0;
    UNIT_EQUAL(trp_sharding_start(e.system, &options, e.why, sizeof e.why), TRP_OK);
    entities_end(&e);
}

UNIT_BEGIN("entity_remember")
UNIT(an_entity_is_noted_before_it_handles_a_message)
UNIT(all_start_again_with_the_system)
UNIT(what_is_passivated_is_forgotten_and_what_ends_or_fails_is_not)
UNIT(a_message_behind_a_passivation_keeps_it)
UNIT(a_hand_off_forgets_nothing)
UNIT(a_refused_note_is_tried_again)
UNIT(entities_of_another_number_of_shards_are_handed_to_their_own)
UNIT(a_hand_over_that_is_cut_short_goes_on)
UNIT(passivation_by_time_or_number_is_refused)
UNIT_END
