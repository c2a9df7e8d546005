/* entity_keep_test.c - what a shard keeps in the journal: its permission to write, and the state of
 * its entities. */
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/journal.h>
#include <troupe/persistence.h>
#include <troupe/sharding.h>
#include <troupe/system.h>

#include "cluster/sharding/region.h"
#include "tests/unit/cluster/entities.h"
#include "tests/unit/unit.h"

/* ---- a persistent entity: a counter ---------------------------------------------------------- */

#define COUNTER_ADDED(F, S) F(S, i64, amount)
#define COUNTER_ADD(F, S) F(S, i64, amount)
#define COUNTER_GET(F, S) F(S, u32, zero)
#define COUNTER_TOTAL(F, S) F(S, i64, amount)
#define COUNTER_MESSAGES(M, P)                                                                     \
    M(P, added, COUNTER_ADDED)                                                                     \
    M(P, add, COUNTER_ADD)                                                                         \
    M(P, get, COUNTER_GET)                                                                         \
    M(P, total, COUNTER_TOTAL)
TRP_PROTOCOL(counter, COUNTER_MESSAGES)

typedef struct counter {
    trp_persistent_state persistent;
    int64_t amount;
} counter;

static _Atomic uint32_t refused, recoveries;
static char persistence_id[TRP_JOURNAL_ID_BYTES_MAX + 1];

static trp_err
counter_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    counter_total total = { ((counter *)state)->amount };
    if (trp_msg_is(msg, &counter_get_type)) {
        trp_reply(ctx, &counter_total_type, &total, 0);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &counter_add_type)) {
        counter_added added = { counter_add_as(msg)->amount };
        return trp_persist(ctx, &counter_added_type, &added, 0, NULL, NULL);
    }
    return TRP_EUNHANDLED;
}

static trp_err
counter_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((counter *)state)->amount += counter_added_as(event)->amount;
    return TRP_OK;
}

static trp_err
counter_rejected(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)ctx;
    (void)state;
    (void)event;
    (void)why;
    atomic_fetch_add(&refused, err == TRP_EFENCED ? 1 : 0);
    return TRP_OK;
}

static void
counter_failed(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)counter_rejected(ctx, state, event, err, why);
}

static trp_err
counter_recovered(trp_ctx *ctx, void *state)
{
    (void)state;
    atomic_fetch_add(&recoveries, 1);
    if (strstr(trp_persistent_id(ctx), "c7") != NULL) {
        (void)snprintf(persistence_id, sizeof persistence_id, "%s", trp_persistent_id(ctx));
    }
    return TRP_OK;
}

static trp_persistent persistent =
    TRP_PERSISTENT_INIT("counter", struct counter, counter_command, counter_event);

/* Recipes that fail before the next one is good. */
static _Atomic uint32_t bad_recipes;

static trp_err
counter_args(void *arg, const trp_entity *entity, void *args)
{
    (void)arg;
    (void)entity;
    ((counter_get *)args)->zero = 0;
    if (atomic_load(&bad_recipes) > 0) {
        atomic_fetch_sub(&bad_recipes, 1);
        return TRP_ENOMEM;
    }
    return TRP_OK;
}

static trp_err
counter_open_with(entities *e, uint32_t remember)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    UNIT_REQUIRE(trp_protocol_register(&counter_protocol) == TRP_OK);
    persistent.rejected = counter_rejected;
    persistent.failed = counter_failed;
    persistent.recovered = counter_recovered;
    options.type = "counter";
    options.behaviour = &persistent.behaviour;
    options.shards = 4;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 50;
    options.remember_entities = remember;
    options.args = counter_args;
    options.args_type = &counter_get_type;
    atomic_store(&recoveries, 0);
    return trp_sharding_start(e->system, &options, e->why, sizeof e->why);
}

static trp_err
counter_open(entities *e)
{
    return counter_open_with(e, 0);
}

static void
add(const entities *e, const char *id, int64_t amount)
{
    trp_entity to = entities_named("counter", id);
    counter_add msg = { amount };
    UNIT_EQUAL(trp_system_entity_tell(e->system, &to, &counter_add_type, &msg, sizeof msg), TRP_OK);
}

/* -1: no answer */
static int64_t
total(const entities *e, const char *id, uint32_t timeout_ms)
{
    trp_entity to = entities_named("counter", id);
    counter_get msg = { 0 };
    trp_msg *reply = NULL;
    int64_t amount = -1;
    if (trp_system_entity_ask(e->system, &to, &counter_get_type, &msg, sizeof msg, timeout_ms,
                              &reply) == TRP_OK) {
        amount = counter_total_as(reply)->amount;
        trp_msg_free(reply);
    }
    return amount;
}

static uint64_t
claims(const entities *e, const char *scope)
{
    return entities_scope(e, scope);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
an_entity_is_recovered_and_its_shard_is_claimed_once(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    for (uint32_t i = 0; i < 40; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "c%u", i);
        add(&e, id, 1 + i);
        add(&e, id, 1);
    }
    UNIT_EQUAL(total(&e, "c7", 20000), 9);
    UNIT_TEXT(persistence_id, "counter|c7");
    UNIT_EQUAL(total(&e, "c39", 20000), 41);
    uint64_t epochs = 0;
    for (uint32_t i = 0; i < 4; i++) {
        char scope[64];
        (void)snprintf(scope, sizeof scope, "sharding/counter/%u", i);
        epochs += claims(&e, scope);
    }
    UNIT_EQUAL(epochs, 4); /* 40 entities */
    UNIT_EQUAL(claims(&e, "counter|c7"), 0);
    entities_restart(&e);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    UNIT_EQUAL(total(&e, "c7", 20000), 9);
    UNIT_EQUAL(total(&e, "c39", 20000), 41);
    entities_end(&e);
}

static void
claim_all(const entities *e)
{
    for (uint32_t i = 0; i < 4; i++) { /* another node takes all shards */
        char scope[64];
        (void)snprintf(scope, sizeof scope, "sharding/counter/%u", i);
        (void)entities_claim(e, scope);
    }
}

/* CONTRIB-48 */
static void
an_old_incarnation_of_a_shard_cannot_append(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    atomic_store(&refused, 0);
    add(&e, "x", 5);
    UNIT_EQUAL(total(&e, "x", 20000), 5);
    claim_all(&e);
    uint64_t events = entities_events(&e, "counter|x");
    add(&e, "x", 7);
    UNIT_WAIT(atomic_load(&refused) > 0, 20000);
    UNIT_EQUAL(entities_events(&e, "counter|x"), events);
    /* The region learns of it, gives the shard up, and claims it anew: there is no cluster. */
    UNIT_WAIT(total(&e, "x", 200) == 5, 20000);
    add(&e, "x", 1);
    UNIT_EQUAL(total(&e, "x", 20000), 6);
    entities_end(&e);
}

static void
hand_all_off(entities *e)
{
    trpi_region *region = entities_region(e, "counter");
    trp_ctx *ctx = trpi_enter(e->system);
    for (uint32_t i = 0; i < 4; i++) {
        trpi_region_order(ctx, region, TRPI_REQUEST_STOP, i, 0, NULL);
    }
    trpi_leave(ctx);
}

/* region-keep-K4: the first append of the lost shard is refused, and what comes behind that
 * message is for the next owner. It is being handed off then, or not. */
static void
what_waits_for_a_lost_shard_is_for_its_next_owner(uint32_t remember, bool hands_off)
{
    enum { COUNT = 50 };
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(counter_open_with(&e, remember), TRP_OK);
    add(&e, "x", 1);
    UNIT_EQUAL(total(&e, "x", 20000), 1);
    atomic_store(&refused, 0);
    claim_all(&e);
    trp_journal_memory_hold(e.memory, 1); /* until all are told */
    for (uint32_t i = 0; i < COUNT; i++) {
        add(&e, "x", 1);
    }
    if (hands_off) {
        hand_all_off(&e);
    }
    trp_journal_memory_hold(e.memory, 0);
    UNIT_WAIT(atomic_load(&refused) > 0, 20000);
    UNIT_EQUAL(total(&e, "x", 20000), COUNT); /* all but the one that was refused */
    UNIT_EQUAL(atomic_load(&refused), 1);
    entities_end(&e);
}

/* ClusterShardingFailureSpec */
static void
a_lost_shard_costs_one_message(void)
{
    what_waits_for_a_lost_shard_is_for_its_next_owner(0, false);
    what_waits_for_a_lost_shard_is_for_its_next_owner(1, false);
}

/* ClusterShardingFailureSpec */
static void
a_shard_that_is_lost_while_it_is_handed_off_costs_one_message(void)
{
    what_waits_for_a_lost_shard_is_for_its_next_owner(0, true);
    what_waits_for_a_lost_shard_is_for_its_next_owner(1, true);
}

/* ClusterShardingFailureSpec. It starts behind the order that ended all others, and ends all the
 * same. */
static void
one_that_cannot_start_does_not_hold_a_hand_off_up(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    atomic_store(&bad_recipes, 1000000);
    add(&e, "x", 1);
    UNIT_WAIT(atomic_load(&bad_recipes) < 1000000, 20000);
    hand_all_off(&e);
    uint32_t left = atomic_load(&bad_recipes);
    UNIT_WAIT(atomic_load(&bad_recipes) + 4 < left, 20000);
    atomic_store(&bad_recipes, 0);
    UNIT_EQUAL(total(&e, "x", 20000), 1); /* it was handled, and the shard is here again */
    add(&e, "x", 1);
    UNIT_EQUAL(total(&e, "x", 20000), 2);
    entities_end(&e);
}

/* ClusterShardingFailureSpec */
static void
messages_wait_while_the_store_of_a_shard_cannot_be_opened(void)
{
    entities e;
    entities_begin(&e);
    trp_journal_memory_fail(e.memory, TRP_JOURNAL_CLAIM, 0, 1u << 30, TRP_JOURNAL_REFUSED,
                            TRP_EAGAIN);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    add(&e, "x", 1);
    add(&e, "x", 2);
    UNIT_WAIT(trpi_sharding_unopened(e.system) == 1, 20000); /* what `status` says */
    trp_journal_memory_fail(e.memory, TRP_JOURNAL_CLAIM, 0, 0, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
    UNIT_EQUAL(total(&e, "x", 20000), 3);
    UNIT_EQUAL(trpi_sharding_unopened(e.system), 0);
    entities_end(&e);
}

static void
a_held_journal_ends_with_the_system(void)
{
    entities e;
    entities_begin(&e);
    trp_journal_memory_hold(e.memory, 1);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    add(&e, "x", 1);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    UNIT_WAIT((e.journal->health(e.journal->arg, &health), health.waiting > 0), 20000);
    UNIT_EQUAL(trp_system_stop(e.system, 10000), TRP_OK);
    trp_journal_memory_hold(e.memory, 0); /* the answer comes when the region has ended */
    trp_system_free(e.system);
    trp_journal_memory_free(e.memory);
}

static void
a_shard_moves_away_behind_its_last_event(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    for (uint32_t round = 0; round < 20; round++) {
        for (int64_t i = 0; i < 10; i++) {
            add(&e, "x", 1);
        }
        hand_all_off(&e);
    }
    UNIT_EQUAL(total(&e, "x", 20000), 200); /* none is lost, none is doubled */
    UNIT_TRUE(entities_events(&e, "counter|x") == 200);
    entities_end(&e);
}

static void
remembered_ones_recover_without_a_message(void)
{
    enum { COUNT = 5000 }; /* more than recover at once */
    entities e;
    char id[16];
    entities_begin(&e);
    UNIT_EQUAL(counter_open_with(&e, 1), TRP_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(id, sizeof id, "r%u", i);
        add(&e, id, i);
    }
    UNIT_WAIT(atomic_load(&recoveries) == COUNT, 60000);
    entities_restart(&e);
    UNIT_EQUAL(counter_open_with(&e, 1), TRP_OK);
    trpi_region *region = entities_region(&e, "counter");
    UNIT_WAIT(atomic_load(&recoveries) == COUNT, 60000);
    UNIT_WAIT(atomic_load(&region->restarting_bytes) == 0, 20000); /* region-remember-M3 */
    UNIT_EQUAL(total(&e, "r4711", 20000), 4711);
    /* The next system ends while they recover. */
    entities_stop(&e);
    entities_start(&e);
    UNIT_EQUAL(counter_open_with(&e, 1), TRP_OK);
    UNIT_WAIT(atomic_load(&recoveries) > 0, 20000);
    entities_end(&e);
}

static void
what_moves_between_hosts_needs_a_journal_that_they_share(void)
{
    entities e;
    entities_begin_without(&e);
    UNIT_EQUAL(counter_open(&e), TRP_ESTATE);
    UNIT_TRUE(strstr(e.why, "persistence.journal") != NULL);
    trp_journal_memory_shared(e.memory, 0);
    UNIT_EQUAL(trp_persistence_start(e.system, e.journal, NULL), TRP_OK);
    UNIT_EQUAL(counter_open(&e), TRP_ECONFIG);
    UNIT_TRUE(strstr(e.why, "local-store-is-enough") != NULL);
    UNIT_TRUE(strstr(e.why, "'counter'") != NULL);
    entities_end(&e);
    entities_begin_without(&e);
    trp_persistence_options enough = TRP_PERSISTENCE_OPTIONS_INIT;
    enough.local_store_is_enough = 1;
    trp_journal_memory_shared(e.memory, 0);
    UNIT_EQUAL(trp_persistence_start(e.system, e.journal, &enough), TRP_OK);
    UNIT_EQUAL(counter_open(&e), TRP_OK);
    entities_end(&e);
}

static void
an_id_of_any_bytes_has_a_name_in_the_journal(void)
{
    static const struct {
        const char *id;
        size_t bytes;
        const char *name;
    } ids[] = { { "4711", 4, "4711" },
                { "a%b", 3, "a%25b" },
                { "\0\x7f", 2, "%00%7F" },
                { "\xc3\xa4", 2, "\xc3\xa4" },
                { "\xc3\xa4\xff", 3, "%C3%A4%FF" } };
    char name[TRPI_ENTITY_NAME_BYTES], id[TRP_ENTITY_ID_BYTES_MAX],
        long_id[TRP_ENTITY_ID_BYTES_MAX];
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        UNIT_EQUAL(trpi_entity_name(ids[i].id, ids[i].bytes, name), strlen(ids[i].name));
        UNIT_TEXT(name, ids[i].name);
        UNIT_EQUAL(trpi_entity_unname(name, id), ids[i].bytes);
        UNIT_EQUAL(memcmp(id, ids[i].id, ids[i].bytes), 0);
    }
    memset(long_id, 'a', sizeof long_id);
    UNIT_EQUAL(trpi_entity_name(long_id, sizeof long_id, name), sizeof long_id);
    memset(long_id, 1, sizeof long_id);
    UNIT_EQUAL(trpi_entity_name(long_id, 63, name), 189);
    UNIT_EQUAL(trpi_entity_name(long_id, 64, name), 0);
    UNIT_EQUAL(trpi_entity_unname("a%2", id), 0);
    UNIT_EQUAL(trpi_entity_unname("a%zz", id), 0);
}

UNIT_BEGIN("entity_keep")
UNIT(an_entity_is_recovered_and_its_shard_is_claimed_once)
UNIT(an_old_incarnation_of_a_shard_cannot_append)
UNIT(a_lost_shard_costs_one_message)
UNIT(a_shard_that_is_lost_while_it_is_handed_off_costs_one_message)
UNIT(one_that_cannot_start_does_not_hold_a_hand_off_up)
UNIT(messages_wait_while_the_store_of_a_shard_cannot_be_opened)
UNIT(a_held_journal_ends_with_the_system)
UNIT(a_shard_moves_away_behind_its_last_event)
UNIT(remembered_ones_recover_without_a_message)
UNIT(what_moves_between_hosts_needs_a_journal_that_they_share)
UNIT(an_id_of_any_bytes_has_a_name_in_the_journal)
UNIT_END
