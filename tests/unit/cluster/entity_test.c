/* entity_test.c - entities of one node: start, order, passivation, limits, failures. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <troupe/sharding.h>
#include <troupe/system.h>

#include "tests/unit/unit.h"

enum { IDS_MAX = 64 };

typedef struct number {
    uint32_t sender, value;
} number;
static trp_type number_type = { .name = "entities.number", .bytes = sizeof(number), .tag = 1 };
static trp_type ask_type = { .name = "entities.ask", .bytes = 0, .tag = 2 };
static trp_type answer_type = { .name = "entities.answer", .bytes = sizeof(trp_entity), .tag = 3 };
static trp_type stop_type = { .name = "entities.stop", .bytes = 0, .tag = 4 };
static trp_type fail_type = { .name = "entities.fail", .bytes = 0, .tag = 5 };
static trp_type go_type = { .name = "entities.go", .bytes = 0, .tag = 6 };
static trp_type *const types[] = { &number_type, &ask_type,  &answer_type,
                                   &stop_type,   &fail_type, &go_type };
static const trp_protocol protocol = { .name = "entities", .types = types, .types_count = 6 };

/* Facts about all incarnations of an id. */
typedef struct seen {
    _Atomic uint32_t starts, ends, handled, last[8];
    _Atomic bool reordered; /* or one is missing */
    _Atomic bool back, two, lives;
} seen;
static seen ids[IDS_MAX];
static _Atomic uint32_t stops_by_hand, ends_by_itself;

typedef struct entity_state {
    uint32_t id;
} entity_state;

static trp_err
entity_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    entity_state *s = state;
    trp_entity self;
    char text[TRP_ENTITY_ID_BYTES_MAX + 1] = "";
    (void)args;
    if (trp_entity_self(ctx, &self) != TRP_OK) {
        return TRP_EINTERNAL;
    }
    memcpy(text, self.id, self.id_bytes);
    s->id = (uint32_t)atoi(text) % IDS_MAX;
    atomic_fetch_add(&ids[s->id].starts, 1);
    if (atomic_exchange(&ids[s->id].lives, true)) {
        atomic_store(&ids[s->id].two, true);
    }
    return TRP_OK;
}

static void
entity_stopped(trp_ctx *ctx, void *state)
{
    entity_state *s = state;
    (void)ctx;
    atomic_store(&ids[s->id].lives, false);
    atomic_fetch_add(&ids[s->id].ends, 1);
}

static trp_err
entity_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    entity_state *s = state;
    const number *n = trp_msg_as(msg, &number_type);
    trp_entity self;
    if (n != NULL) {
        if (n->value != atomic_load(&ids[s->id].last[n->sender]) + 1) {
            atomic_store(&ids[s->id].reordered, true);
        }
        if (n->value <= atomic_load(&ids[s->id].last[n->sender])) {
            atomic_store(&ids[s->id].back, true);
        }
        atomic_store(&ids[s->id].last[n->sender], n->value);
        atomic_fetch_add(&ids[s->id].handled, 1);
        if (n->value % 64 == 0 && atomic_load(&stops_by_hand) > 0) {
            UNIT_EQUAL(trp_entity_passivate(ctx), TRP_OK);
        } else if (n->value % 48 == 0 && atomic_load(&ends_by_itself) > 0) {
            trp_stop(ctx, trp_self(ctx));
        }
        return TRP_OK;
    }
    if (trp_msg_is(msg, &ask_type)) {
        UNIT_EQUAL(trp_entity_self(ctx, &self), TRP_OK);
        trp_reply(ctx, &answer_type, &self, sizeof self);
        return TRP_OK;
    }
    if (trp_msg_is(msg, &fail_type)) {
        return TRP_EIO;
    }
    if (trp_msg_is(msg, &stop_type)) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_behaviour entity = TRP_BEHAVIOUR_INIT("entity", entity_state, entity_receive);
static trp_system *sys;
static char why[256];

static void
begin(trp_sharding_options *options)
{
    trp_system_options o = TRP_SYSTEM_OPTIONS_INIT;
    memset(ids, 0, sizeof ids);
    atomic_store(&stops_by_hand, 0);
    atomic_store(&ends_by_itself, 0);
    entity.pre_start = entity_start;
    entity.post_stop = entity_stopped;
    UNIT_REQUIRE(trp_protocol_register(&protocol) == TRP_OK);
    UNIT_REQUIRE(trp_system_new("entities", &o, &sys) == TRP_OK);
    options->type = "thing";
    options->behaviour = &entity;
    UNIT_EQUAL(trp_sharding_start(sys, options, why, sizeof why), TRP_OK);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(sys, 10000), TRP_OK);
    trp_system_free(sys);
}

static trp_entity
named(uint32_t id)
{
    char text[16];
    int bytes = snprintf(text, sizeof text, "%u", id);
    return trp_entity_of(trp_entity_type("thing"), text, (size_t)bytes);
}

static void
tell(uint32_t id, uint32_t value)
{
    trp_entity to = named(id);
    number n = { 0, value };
    UNIT_EQUAL(trp_system_entity_tell(sys, &to, &number_type, &n, sizeof n), TRP_OK);
}

/* FUTURE-20 */
static void
an_entity_starts_at_its_first_message_and_knows_its_name(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_entity to = named(7);
    trp_msg *reply = NULL;
    begin(&options);
    tell(7, 1);
    UNIT_EQUAL(trp_system_entity_ask(sys, &to, &ask_type, NULL, 0, 5000, &reply), TRP_OK);
    UNIT_REQUIRE(reply != NULL);
    UNIT_EQUAL(memcmp(trp_msg_payload(reply), &to, sizeof to), 0);
    trp_msg_free(reply);
    UNIT_EQUAL(atomic_load(&ids[7].handled), 1);
    UNIT_EQUAL(atomic_load(&ids[7].starts), 1);
    end();
    UNIT_EQUAL(atomic_load(&ids[7].ends), 1);
}

static void
a_type_is_started_once_and_its_options_are_checked(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT, other = TRP_SHARDING_OPTIONS_INIT;
    begin(&options);
    UNIT_EQUAL(trp_sharding_start(sys, &options, why, sizeof why), TRP_EEXIST);
    UNIT_TRUE(strstr(why, "thing") != NULL);
    other.type = "no/name";
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    other.type = "other";
    other.shards = TRP_SHARDING_SHARDS_MAX + 1;
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    other.shards = TRP_SHARDING_SHARDS_MAX;
    other.hand_off = TRP_HAND_OFF_KEEPS_ACTIVE | TRP_HAND_OFF_DROPS;
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    other.hand_off = TRP_HAND_OFF_DROPS_LATE * 2;
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    other.hand_off = TRP_HAND_OFF_DROPS | TRP_HAND_OFF_DROPS_LATE;
    other.allocation = TRP_ALLOCATION_USER; /* without a function */
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    UNIT_TRUE(strstr(why, "allocate") != NULL);
    other.allocation = TRP_ALLOCATION_USER + 1;
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_EINVAL);
    other.allocation = TRP_ALLOCATION_METRICS;
    UNIT_EQUAL(trp_sharding_start(sys, &other, why, sizeof why), TRP_OK);
    end();
}

static void
wait_handled(uint32_t id, uint32_t handled)
{
    UNIT_WAIT(atomic_load(&ids[id].handled) >= handled, 20000);
    UNIT_EQUAL(atomic_load(&ids[id].handled), handled);
    UNIT_FALSE(atomic_load(&ids[id].reordered));
    UNIT_FALSE(atomic_load(&ids[id].two));
}

/* ClusterShardingSpec */
static void
an_idle_entity_is_passivated_and_starts_again(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    options.passivate_after_ms = 100;
    begin(&options);
    tell(1, 1);
    UNIT_WAIT(atomic_load(&ids[1].ends) == 1, 10000);
    tell(1, 2);
    wait_handled(1, 2);
    UNIT_EQUAL(atomic_load(&ids[1].starts), 2);
    end();
}

static void
the_entity_told_longest_ago_makes_room_for_another(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    options.entities_max = 2;
    begin(&options);
    tell(1, 1);
    wait_handled(1, 1);
    tell(2, 1);
    wait_handled(2, 1);
    tell(1, 2);
    wait_handled(1, 2);
    tell(3, 1);
    UNIT_WAIT(atomic_load(&ids[2].ends) == 1, 10000);
    wait_handled(3, 1);
    UNIT_EQUAL(atomic_load(&ids[1].ends), 0);
    end();
}

static void
a_failed_entity_starts_again_for_what_waits(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_entity to = named(4);
    options.backoff_min_ms = 20;
    begin(&options);
    UNIT_EQUAL(trp_system_entity_tell(sys, &to, &fail_type, NULL, 0), TRP_OK);
    for (uint32_t i = 1; i <= 100; i++) {
        tell(4, i);
    }
    wait_handled(4, 100);
    UNIT_EQUAL(atomic_load(&ids[4].starts), 2);
    end();
}

static uint64_t
dead_of_buffer(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(sys, &stats);
    return stats.dead_letters[TRP_DEAD_ENTITY_BUFFER];
}

static void
what_is_above_the_buffer_is_a_dead_letter(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_entity to = named(5);
    options.backoff_min_ms = 1000;
    options.buffer_bytes_max = 10000;
    begin(&options);
    UNIT_EQUAL(trp_system_entity_tell(sys, &to, &fail_type, NULL, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&ids[5].ends) == 1, 5000);
    for (uint32_t i = 1; i <= 1000; i++) {
        tell(5, i);
    }
    /* Where to tell them takes longer than the back-off, the last ones find it alive. */
    UNIT_WAIT(dead_of_buffer() + atomic_load(&ids[5].handled) == 1000, 10000);
    UNIT_FALSE(atomic_load(&ids[5].back));
    UNIT_TRUE(dead_of_buffer() > 0);
    end();
}

/* ---- order under passivation ----------------------------------------------------------------- */

enum { TELLERS = 4, ENTITIES = 8, ROUNDS = 400, BURST = 8, AHEAD_MAX = 256 };

typedef struct teller_state {
    uint32_t number, round, value;
} teller_state;
static _Atomic uint32_t tellers_started, tellers_done;

static trp_err
teller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)args;
    ((teller_state *)state)->number = atomic_fetch_add(&tellers_started, 1);
    trp_tell(ctx, trp_self(ctx), &go_type, NULL, 0);
    return TRP_OK;
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    teller_state *s = state;
    (void)msg;
    /* Tellers that are far ahead make few ends, and each moves a long mailbox. They look again
     * after a while, since who tells itself at once takes the entities' turns. */
    if (s->value > AHEAD_MAX + atomic_load(&ids[s->number].handled) / TELLERS) {
        return trp_timer_once(ctx, 1, 1, &go_type, NULL, 0);
    }
    for (uint32_t i = 0; i < BURST; i++) {
        s->value++;
        for (uint32_t id = 0; id < ENTITIES; id++) {
            trp_entity to = named(id);
            number n = { s->number, s->value };
            trp_entity_tell(ctx, &to, &number_type, &n, sizeof n);
        }
    }
    if (++s->round < ROUNDS) {
        trp_tell(ctx, trp_self(ctx), &go_type, NULL, 0);
    } else {
        atomic_fetch_add(&tellers_done, 1);
    }
    return TRP_OK;
}

static void
storm(void)
{
    static trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", teller_state, teller_receive);
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    uint32_t by_hand = atomic_load(&stops_by_hand), by_itself = atomic_load(&ends_by_itself);
    trp_ref ref;
    options.shards = 4;
    options.buffer_bytes_max = 1u << 30;
    begin(&options);
    atomic_store(&stops_by_hand, by_hand);
    atomic_store(&ends_by_itself, by_itself);
    atomic_store(&tellers_started, 0);
    atomic_store(&tellers_done, 0);
    teller.pre_start = teller_start;
    for (uint32_t i = 0; i < TELLERS; i++) {
        UNIT_EQUAL(trp_system_spawn(sys, &teller, NULL, &ref), TRP_OK);
    }
    for (uint32_t id = 0; id < ENTITIES; id++) {
        UNIT_WAIT(atomic_load(&ids[id].handled) >= TELLERS * ROUNDS * BURST, 60000);
        wait_handled(id, TELLERS * ROUNDS * BURST);
    }
    end();
}

static void
order_holds_while_entities_live(void)
{
    storm();
}

static void
order_holds_while_entities_are_passivated_by_hand(void)
{
    atomic_store(&stops_by_hand, 1);
    storm();
    UNIT_TRUE(atomic_load(&ids[0].starts) > 2);
}

static void
order_holds_while_entities_end_by_themselves(void)
{
    atomic_store(&ends_by_itself, 1);
    storm();
    UNIT_TRUE(atomic_load(&ids[0].starts) > 2);
}

/* FUTURE-20 */
static void
an_entity_has_a_path_without_a_host(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_entity made = trp_entity_of(trp_entity_type("thing"), "a b/\xff", 5), read;
    char path[TRP_ENTITY_PATH_BYTES_MAX];
    begin(&options);
    size_t bytes = trp_entity_path(sys, &made, path, sizeof path);
    UNIT_EQUAL(bytes, strlen(path));
    UNIT_TEXT(path, "/cluster/thing/a%20b%2F%FF");
    UNIT_EQUAL(trp_entity_parse(path, &read), TRP_OK);
    UNIT_EQUAL(memcmp(&made, &read, sizeof made), 0);
    UNIT_EQUAL(trp_entity_parse("/cluster/thing/", &read), TRP_EINVAL);
    UNIT_EQUAL(trp_entity_parse("/cluster//x", &read), TRP_EINVAL);
    UNIT_EQUAL(trp_entity_parse("/cluster/thing/a%2", &read), TRP_EINVAL);
    UNIT_EQUAL(trp_entity_parse("/cluster/thing/a b", &read), TRP_EINVAL);
    UNIT_EQUAL(trp_entity_parse("/user/thing/a", &read), TRP_EINVAL);
    char longest[sizeof "/cluster/thing/" + TRP_ENTITY_ID_BYTES_MAX + 1] = "/cluster/thing/";
    memset(longest + strlen(longest), 'x', TRP_ENTITY_ID_BYTES_MAX);
    UNIT_EQUAL(trp_entity_parse(longest, &read), TRP_OK);
    longest[sizeof "/cluster/thing/" - 1 + TRP_ENTITY_ID_BYTES_MAX] = 'x';
    UNIT_EQUAL(trp_entity_parse(longest, &read), TRP_EINVAL);
    end();
}

UNIT_BEGIN("entity")
UNIT(an_entity_starts_at_its_first_message_and_knows_its_name)
UNIT(a_type_is_started_once_and_its_options_are_checked)
UNIT(an_idle_entity_is_passivated_and_starts_again)
UNIT(the_entity_told_longest_ago_makes_room_for_another)
UNIT(a_failed_entity_starts_again_for_what_waits)
UNIT(what_is_above_the_buffer_is_a_dead_letter)
UNIT(order_holds_while_entities_live)
UNIT(order_holds_while_entities_are_passivated_by_hand)
UNIT(order_holds_while_entities_end_by_themselves)
UNIT(an_entity_has_a_path_without_a_host)
UNIT_END
