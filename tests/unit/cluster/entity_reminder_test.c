/* entity_reminder_test.c - messages to entities at times that outlive them. */
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/unit/cluster/entities.h"

#define ALARM_RING(F, S) F(S, i64, amount)
#define ALARM_RANG(F, S) F(S, i64, amount)
#define ALARM_GET(F, S) F(S, u32, zero)
#define ALARM_TOTAL(F, S) F(S, i64, amount)
#define ALARM_MESSAGES(M, P)                                                                       \
    M(P, ring, ALARM_RING)                                                                         \
    M(P, rang, ALARM_RANG)                                                                         \
    M(P, get, ALARM_GET)                                                                           \
    M(P, total, ALARM_TOTAL)
TRP_PROTOCOL(alarm, ALARM_MESSAGES)

static _Atomic uint32_t rings;
static _Atomic uint64_t rang_ms; /* the first one */
static uint32_t bell_shards = 4;

static trp_err
bell_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &alarm_ring_type)) {
        if (atomic_fetch_add(&rings, 1) == 0) {
            atomic_store(&rang_ms, unit_now_ms());
        }
    }
    return TRP_OK;
}
static trp_behaviour bell = TRP_BEHAVIOUR_INIT("bell", char, bell_receive);

static trp_err
bells_open(entities *e, uint32_t reminders)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    UNIT_REQUIRE(trp_protocol_register(&alarm_protocol) == TRP_OK);
    atomic_store(&rings, 0);
    options.type = "bell";
    options.behaviour = &bell;
    options.shards = bell_shards;
    options.reminders = reminders;
    options.persistent = 1;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 50;
    return trp_sharding_start(e->system, &options, e->why, sizeof e->why);
}

static trp_err
set(const entities *e, const char *type, const char *id, const char *name, uint64_t in_ms,
    uint64_t period_ms)
{
    trp_entity to = entities_named(type, id);
    alarm_ring ring = { 5 };
    trp_reminder reminder = TRP_REMINDER_INIT;
    reminder.name = name;
    reminder.in_ms = in_ms;
    reminder.period_ms = period_ms;
    reminder.type = &alarm_ring_type;
    reminder.payload = &ring;
    return trp_system_reminder_set(e->system, &to, &reminder, 20000);
}

static uint32_t
count(const entities *e, const char *id)
{
    trp_entity of = entities_named("bell", id);
    trp_reminder_view view;
    trp_msg *list = NULL;
    uint32_t count = 0;
    size_t position = 0;
    UNIT_EQUAL(trp_system_reminder_list(e->system, &of, 20000, &list), TRP_OK);
    while (trp_reminder_next(list, &position, &view) != 0) {
        UNIT_TEXT(view.type, "alarm.ring");
        count++;
    }
    trp_msg_free(list);
    return count;
}

static void
a_reminder_starts_its_entity_once(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    uint64_t before_ms = unit_now_ms();
    UNIT_EQUAL(set(&e, "bell", "a", "wake", 100, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&rings) == 1, 20000);
    UNIT_TRUE(atomic_load(&rang_ms) >= before_ms + 90);
    UNIT_WAIT(count(&e, "a") == 0, 20000); /* the journal has noted it */
    UNIT_EQUAL(atomic_load(&rings), 1);
    entities_end(&e);
}

static void
reminders_are_listed_replaced_and_cancelled(void)
{
    entities e;
    entities_begin(&e);
    trp_entity a = entities_named("bell", "a");
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "a", "one", 3600000, 0), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "a", "two", 3600000, 1000), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "b", "one", 3600000, 0), TRP_OK);
    UNIT_EQUAL(count(&e, "a"), 2);
    UNIT_EQUAL(set(&e, "bell", "a", "one", 7200000, 0), TRP_OK);
    UNIT_EQUAL(count(&e, "a"), 2);
    UNIT_EQUAL(trp_system_reminder_cancel(e.system, &a, "one", 20000), TRP_OK);
    UNIT_EQUAL(trp_system_reminder_cancel(e.system, &a, "one", 20000), TRP_ENOENT);
    UNIT_EQUAL(count(&e, "a"), 1);
    UNIT_EQUAL(count(&e, "b"), 1);
    UNIT_EQUAL(count(&e, "c"), 0);
    UNIT_EQUAL(atomic_load(&rings), 0);
    entities_end(&e);
}

static void
what_is_wrong_is_refused(void)
{
    entities e;
    entities_begin(&e);
    trp_entity a = entities_named("bell", "a");
    trp_reminder wrong = TRP_REMINDER_INIT;
    UNIT_EQUAL(bells_open(&e, 0), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "a", "one", 1000, 0), TRP_ESTATE); /* this type has none */
    UNIT_EQUAL(set(&e, "other", "a", "one", 1000, 0), TRP_ENOENT);
    UNIT_EQUAL(set(&e, "bell", "a", "", 1000, 0), TRP_EINVAL);
    UNIT_EQUAL(set(&e, "bell", "a", "one", 1000, TRP_REMINDER_PERIOD_MS_MIN - 1), TRP_EINVAL);
    UNIT_EQUAL(trp_system_reminder_set(e.system, &a, &wrong, 1000), TRP_EINVAL);
    UNIT_EQUAL(trp_system_reminder_set(e.system, &a, NULL, 1000), TRP_EINVAL);
    wrong.name = "large";
    wrong.type = &trp_bytes_type;
    wrong.bytes = TRP_REMINDER_BYTES_MAX + 1;
    wrong.payload = calloc(1, wrong.bytes);
    UNIT_EQUAL(trp_system_reminder_set(e.system, &a, &wrong, 1000), TRP_EMSGSIZE);
    free((void *)(uintptr_t)wrong.payload);
    entities_end(&e);
}

static void
an_entity_has_so_many_and_no_more(void)
{
    entities e;
    char name[16];
    entities_begin(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    for (uint32_t i = 0; i < TRP_REMINDERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "r%u", i);
        UNIT_EQUAL(set(&e, "bell", "a", name, 3600000, 0), TRP_OK);
    }
    UNIT_EQUAL(set(&e, "bell", "a", "more", 3600000, 0), TRP_ELIMIT);
    UNIT_EQUAL(set(&e, "bell", "a", "r7", 3600000, 0), TRP_OK); /* a replacement */
    UNIT_EQUAL(set(&e, "bell", "b", "more", 3600000, 0), TRP_OK);
    UNIT_EQUAL(count(&e, "a"), TRP_REMINDERS_MAX);
    entities_end(&e);
}

static void
one_with_a_period_comes_again_until_it_is_cancelled(void)
{
    entities e;
    entities_begin(&e);
    trp_entity a = entities_named("bell", "a");
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "a", "tick", 100, 100), TRP_OK);
    UNIT_WAIT(atomic_load(&rings) >= 3, 20000);
    UNIT_EQUAL(trp_system_reminder_cancel(e.system, &a, "tick", 20000), TRP_OK);
    UNIT_EQUAL(count(&e, "a"), 0);
    entities_end(&e);
}

static void
late_ones_come_at_once(entities *e)
{
    /* They become due while nobody runs; on a slow machine, at a later try. */
    for (uint64_t in_ms = 200;; in_ms *= 4) {
        UNIT_EQUAL(bells_open(e, 1), TRP_OK);
        UNIT_EQUAL(set(e, "bell", "a", "once", in_ms, 0), TRP_OK);
        UNIT_EQUAL(set(e, "bell", "b", "often", in_ms, 3600000), TRP_OK);
        UNIT_EQUAL(set(e, "bell", "c", "later", 3600000, 0), TRP_OK);
        entities_stop(e);
        uint64_t due_ms = unit_now_ms() + in_ms;
        UNIT_WAIT(unit_now_ms() > due_ms, in_ms * 2);
        bool rang = atomic_load(&rings) > 0;
        entities_start(e);
        if (!rang) {
            break;
        }
    }
    UNIT_EQUAL(bells_open(e, 1), TRP_OK); /* nobody tells anything */
    UNIT_WAIT(atomic_load(&rings) == 2, 20000);
    UNIT_WAIT(count(e, "a") == 0, 20000);
    UNIT_EQUAL(count(e, "b"), 1);
    UNIT_EQUAL(count(e, "c"), 1);
    UNIT_EQUAL(atomic_load(&rings), 2);
    entities_end(e);
}

static void
reminders_outlive_the_system(void)
{
    entities e;
    entities_begin(&e);
    late_ones_come_at_once(&e);
}

/* CONTRIB-48 */
static void
reminders_outlive_the_system_in_lmdb(void)
{
    entities e;
    if (entities_begin_lmdb(&e)) {
        late_ones_come_at_once(&e);
    }
}

static void
a_hand_off_takes_them_along(void)
{
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    trpi_region *region = entities_region(&e, "bell");
    for (uint32_t i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(set(&e, "bell", id, "wake", 100, 0), TRP_OK);
    }
    trp_ctx *ctx = trpi_enter(e.system);
    for (uint32_t i = 0; i < 4; i++) {
        trpi_region_order(ctx, region, TRPI_REQUEST_STOP, i, 0, NULL);
    }
    trpi_leave(ctx);
    UNIT_WAIT(atomic_load(&rings) >= 10, 20000);
    for (uint32_t i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_WAIT(count(&e, id) == 0, 20000);
    }
    entities_end(&e);
}

/* region-remember-M5, region-move-V1: each is handed to the shard of its entity, and told once. */
static void
those_of_another_number_of_shards_are_handed_to_their_own(void)
{
    enum { BELLS = 16 };
    char id[16];
    entities e;
    entities_begin(&e);
    for (uint64_t in_ms = 200;; in_ms *= 4) { /* due while nobody runs; or at a later try */
        UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
        for (uint32_t i = 0; i < BELLS; i++) {
            (void)snprintf(id, sizeof id, "e%u", i);
            UNIT_EQUAL(set(&e, "bell", id, "wake", in_ms, 0), TRP_OK);
        }
        UNIT_EQUAL(set(&e, "bell", "e0", "later", 3600000, 0), TRP_OK);
        entities_stop(&e);
        uint64_t due_ms = unit_now_ms() + in_ms;
        UNIT_WAIT(unit_now_ms() > due_ms, in_ms * 2);
        bool rang = atomic_load(&rings) > 0;
        entities_start(&e);
        if (!rang) {
            break;
        }
    }
    bell_shards = 5;
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    for (uint32_t i = 0; i < BELLS; i++) { /* open all shards */
        (void)snprintf(id, sizeof id, "e%u", i);
        (void)count(&e, id);
    }
    UNIT_WAIT(atomic_load(&rings) >= BELLS, 20000);
    UNIT_EQUAL(set(&e, "bell", "e1", "end", 2100, 0), TRP_OK); /* behind two looks at all shards */
    UNIT_WAIT(atomic_load(&rings) > BELLS, 20000);
    UNIT_EQUAL(atomic_load(&rings), BELLS + 1);
    UNIT_EQUAL(count(&e, "e0"), 1); /* it is not due, and has come along */
    entities_restart(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    UNIT_EQUAL(count(&e, "e0"), 1);
    bell_shards = 4;
    entities_end(&e);
}

/* ---- of a persistent entity ------------------------------------------------------------------ */

typedef struct purse {
    trp_persistent_state persistent;
    int64_t amount;
} purse;

static trp_err
purse_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    alarm_total total = { ((purse *)state)->amount };
    if (trp_msg_is(msg, &alarm_get_type)) {
        trp_reply(ctx, &alarm_total_type, &total, 0);
    } else if (trp_msg_is(msg, &alarm_ring_type)) {
        alarm_rang rang = { alarm_ring_as(msg)->amount };
        return trp_persist(ctx, &alarm_rang_type, &rang, 0, NULL, NULL);
    }
    return TRP_OK;
}

static trp_err
purse_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((purse *)state)->amount += alarm_rang_as(event)->amount;
    return TRP_OK;
}

static trp_persistent purse_behaviour =
    TRP_PERSISTENT_INIT("purse", struct purse, purse_command, purse_event);

static int64_t
purse_amount(const entities *e)
{
    trp_entity to = entities_named("purse", "a");
    alarm_get msg = { 0 };
    trp_msg *reply = NULL;
    int64_t amount = -1;
    if (trp_system_entity_ask(e->system, &to, &alarm_get_type, &msg, sizeof msg, 500, &reply) ==
        TRP_OK) {
        amount = alarm_total_as(reply)->amount;
        trp_msg_free(reply);
    }
    return amount;
}

static void
what_was_not_stored_is_told_again(void)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    entities e;
    entities_begin(&e);
    UNIT_REQUIRE(trp_protocol_register(&alarm_protocol) == TRP_OK);
    options.type = "purse";
    options.behaviour = &purse_behaviour.behaviour;
    options.shards = 1;
    options.reminders = 1;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 50;
    UNIT_EQUAL(trp_sharding_start(e.system, &options, e.why, sizeof e.why), TRP_OK);
    UNIT_WAIT(purse_amount(&e) == 0, 20000);
    UNIT_EQUAL(set(&e, "purse", "a", "pay", 500, 0), TRP_OK);
    /* The next append is the entity's; its outcome is unknown, and it was not stored. */
    trp_journal_memory_fail(e.memory, TRP_JOURNAL_APPEND, 0, 1, TRP_JOURNAL_FAILED, TRP_EIO);
    UNIT_WAIT(purse_amount(&e) >= 5, 20000);
    trp_reminder_view view;
    trp_entity a = entities_named("purse", "a");
    bool is_over = false;
    while (!is_over) { /* and then no more */
        trp_msg *list = NULL;
        size_t position = 0;
        UNIT_REQUIRE(trp_system_reminder_list(e.system, &a, 20000, &list) == TRP_OK);
        is_over = trp_reminder_next(list, &position, &view) == 0;
        trp_msg_free(list);
    }
    entities_end(&e);
}

/* ---- from an actor --------------------------------------------------------------------------- */

static _Atomic int told_err, listed;

static trp_err
list_told(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trp_reminder_view view;
    size_t position = 0;
    (void)ctx;
    (void)state;
    (void)arg;
    UNIT_EQUAL(err, TRP_OK);
    UNIT_EQUAL(trp_reminder_next(reply, &position, &view), 1);
    UNIT_TEXT(view.name, "mine");
    UNIT_EQUAL(view.period_ms, 60000);
    UNIT_EQUAL(trp_reminder_next(reply, &position, &view), 0);
    atomic_store(&listed, 1);
    return TRP_OK;
}

static trp_err
set_told(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trp_entity a = entities_named("bell", "a");
    (void)state;
    (void)arg;
    (void)reply;
    atomic_store(&told_err, err == TRP_OK ? 1 : -1);
    UNIT_EQUAL(trp_reminder_list(ctx, &a, 20000, list_told, NULL), TRP_OK);
    return TRP_OK;
}

static trp_err
cancel_told(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trp_entity a = entities_named("bell", "a");
    alarm_ring ring = { 1 };
    trp_reminder reminder = TRP_REMINDER_INIT;
    (void)state;
    (void)arg;
    (void)reply;
    UNIT_EQUAL(err, TRP_ENOENT);
    reminder.name = "mine";
    reminder.in_ms = 3600000;
    reminder.period_ms = 60000;
    reminder.type = &alarm_ring_type;
    reminder.payload = &ring;
    UNIT_EQUAL(trp_reminder_set(ctx, &a, &reminder, 20000, set_told, NULL), TRP_OK);
    return TRP_OK;
}

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_entity a = entities_named("bell", "a");
    (void)state;
    (void)msg;
    return trp_reminder_cancel(ctx, &a, "none", 20000, cancel_told, NULL);
}

static void
an_actor_sets_and_lists_them(void)
{
    static const trp_behaviour asker = TRP_BEHAVIOUR_INIT("asker", char, asker_receive);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    atomic_store(&told_err, 0);
    atomic_store(&listed, 0);
    UNIT_EQUAL(trp_system_spawn(e.system, &asker, &options, &ref), TRP_OK);
    trp_system_tell(e.system, ref, &alarm_get_type, &(alarm_get){ 0 }, 0);
    UNIT_WAIT(atomic_load(&listed) == 1, 20000);
    UNIT_EQUAL(atomic_load(&told_err), 1);
    entities_end(&e);
}

static _Atomic int cancelled;

static trp_err
cancelled_told(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)reply;
    atomic_store(&cancelled, err == TRP_OK ? 1 : -1);
    return TRP_OK;
}

static trp_err
hasty_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_entity a = entities_named("bell", "a");
    alarm_ring ring = { 1 };
    trp_reminder reminder = TRP_REMINDER_INIT;
    (void)state;
    (void)msg;
    reminder.name = "hasty";
    reminder.in_ms = 3600000;
    reminder.type = &alarm_ring_type;
    reminder.payload = &ring;
    UNIT_EQUAL(trp_reminder_set(ctx, &a, &reminder, 20000, NULL, NULL), TRP_OK);
    return trp_reminder_cancel(ctx, &a, "hasty", 20000, cancelled_told, NULL);
}

/* CONTRIB-48. The journal has not answered the one when the other comes. */
static void
one_is_cancelled_while_it_is_on_its_way_into_the_journal(void)
{
    static const trp_behaviour hasty = TRP_BEHAVIOUR_INIT("hasty", char, hasty_receive);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_ref ref;
    entities e;
    entities_begin(&e);
    UNIT_EQUAL(bells_open(&e, 1), TRP_OK);
    UNIT_EQUAL(set(&e, "bell", "a", "stays", 3600000, 0), TRP_OK);
    atomic_store(&cancelled, 0);
    UNIT_EQUAL(trp_system_spawn(e.system, &hasty, NULL, &ref), TRP_OK);
    trp_journal_memory_hold(e.memory, 1);
    trp_system_tell(e.system, ref, &alarm_get_type, &(alarm_get){ 0 }, 0);
    UNIT_WAIT((e.journal->health(e.journal->arg, &health), health.waiting > 0), 20000);
    UNIT_EQUAL(count(&e, "a"), 1); /* the orders are in front of this one */
    trp_journal_memory_hold(e.memory, 0);
    UNIT_WAIT(atomic_load(&cancelled) != 0, 20000);
    UNIT_EQUAL(atomic_load(&cancelled), 1);
    UNIT_EQUAL(count(&e, "a"), 1);
    entities_end(&e);
}

UNIT_BEGIN("entity_reminder")
UNIT(one_is_cancelled_while_it_is_on_its_way_into_the_journal)
UNIT(a_reminder_starts_its_entity_once)
UNIT(reminders_are_listed_replaced_and_cancelled)
UNIT(what_is_wrong_is_refused)
UNIT(an_entity_has_so_many_and_no_more)
UNIT(one_with_a_period_comes_again_until_it_is_cancelled)
UNIT(reminders_outlive_the_system)
UNIT(reminders_outlive_the_system_in_lmdb)
UNIT(a_hand_off_takes_them_along)
UNIT(those_of_another_number_of_shards_are_handed_to_their_own)
UNIT(what_was_not_stored_is_told_again)
UNIT(an_actor_sets_and_lists_them)
UNIT_END
