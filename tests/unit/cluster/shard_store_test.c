/* shard_store_test.c - what a shard keeps in the journal, over the journal in memory. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/sharding/shard_store.h"
#include "cluster/sharding/sharding.h"

#define NOW 1000000u /* wall clock */

typedef struct scene {
    trp_journal_memory *memory;
    const trp_journal_driver *driver;
    trpi_shard_store *store;
    bool answered;
} scene;

static void
on_done(trp_journal_op *op)
{
    ((scene *)op->user)->answered = true;
}

/* Carry out what the store wants, until it wants nothing or so many operations were made. */
static uint32_t
run(scene *s, uint32_t ops_max)
{
    uint32_t ops = 0;
    trp_journal_op *op = NULL;

    while (ops < ops_max && (op = trpi_shard_store_next(s->store, NOW)) != NULL) {
        op->done = on_done;
        op->user = s;
        s->answered = false;
        UNIT_TRUE(trpi_shard_store_next(s->store, NOW) == NULL); /* shard-store-K1 */
        s->driver->submit(s->driver->arg, op);
        UNIT_REQUIRE(s->answered); /* in memory it is at once */
        trpi_shard_store_answered(s->store, op);
        ops++;
    }
    trpi_check check;
    UNIT_TRUE(trpi_shard_store_check(s->store, &check) == NULL);
    return ops;
}

static void
open_with(scene *s, trpi_shard_store_options options)
{
    options.type = "cart";
    options.shard = 7;
    options.writer = "node-a";
    UNIT_REQUIRE(trpi_shard_store_new(&options, &s->store) == TRP_OK);
    run(s, 100);
}

static void
start(scene *s)
{
    *s = (scene){ 0 };
    UNIT_REQUIRE(trp_journal_memory_new(&s->memory) == TRP_OK);
    s->driver = trp_journal_memory_driver(s->memory);
    open_with(s, (trpi_shard_store_options){ .memory = true });
    UNIT_EQUAL(trpi_shard_store_state_get(s->store), TRPI_SHARD_STORE_READY);
}

static void
reopen(scene *s, uint32_t snapshot_every)
{
    trpi_shard_store_free(s->store);
    open_with(s, (trpi_shard_store_options){ .memory = true, .snapshot_every = snapshot_every });
}

static void
end(scene *s)
{
    trpi_shard_store_free(s->store);
    trp_journal_memory_free(s->memory);
}

/* Take one effect and compare it. */
static void
expect(scene *s, trpi_shard_change_kind kind, uint64_t token, trp_err err)
{
    trpi_shard_effect effect = { 0 };

    UNIT_REQUIRE(trpi_shard_store_effect(s->store, &effect));
    UNIT_EQUAL(effect.kind, kind);
    UNIT_EQUAL(effect.token, token);
    UNIT_EQUAL(effect.err, err);
    UNIT_EQUAL(effect.why[0] == '\0', err == TRP_OK);
}

static void
expect_none(scene *s)
{
    trpi_shard_effect effect;

    UNIT_TRUE(!trpi_shard_store_effect(s->store, &effect));
}

static trpi_shard_reminder
reminder(const char *id, const char *name, uint64_t due_ms, uint64_t period_ms)
{
    return (trpi_shard_reminder){ .id = id,
                                  .name = name,
                                  .due_ms = due_ms,
                                  .period_ms = period_ms,
                                  .type = "wake",
                                  .version = 3,
                                  .data = "payload",
                                  .bytes = 7 };
}

static void
what_was_remembered_is_there_for_the_next_owner(void)
{
    scene s;
    start(&s);
    UNIT_EQUAL(trpi_shard_store_epoch(s.store), 1);
    UNIT_TEXT(trpi_shard_store_scope(s.store), "sharding/cart/7");
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "bert", 2), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_remove(s.store, "anna", 3), TRP_OK);
    UNIT_TRUE(!trpi_shard_store_remembers(s.store, "bert")); /* shard-store-K2 */
    UNIT_EQUAL(run(&s, 100), 1);                             /* one append for all three */
    expect(&s, TRPI_SHARD_ADD, 1, TRP_OK);
    expect(&s, TRPI_SHARD_ADD, 2, TRP_OK);
    expect(&s, TRPI_SHARD_REMOVE, 3, TRP_OK);
    expect_none(&s);
    reopen(&s, 0);
    UNIT_EQUAL(trpi_shard_store_epoch(s.store), 2);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), 1);
    UNIT_TRUE(trpi_shard_store_remembers(s.store, "bert"));
    uint32_t position = 0;
    UNIT_TEXT(trpi_shard_store_entity(s.store, &position), "bert");
    UNIT_TRUE(trpi_shard_store_entity(s.store, &position) == NULL);
    end(&s);
}

static void
an_owner_that_was_replaced_loses_the_store_and_is_told_by_whom(void)
{
    scene s, other;
    start(&s);
    other = s;
    open_with(&other, (trpi_shard_store_options){ .memory = true });
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_OK);
    run(&s, 1);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "late", 2), TRP_ESTATE);
    expect(&s, TRPI_SHARD_ADD, 1, TRP_EFENCED);
    const char *why = NULL;
    UNIT_EQUAL(trpi_shard_store_state_get(s.store), TRPI_SHARD_STORE_LOST);
    UNIT_EQUAL(trpi_shard_store_error(s.store, &why), TRP_EFENCED);
    UNIT_TRUE(strstr(why, "node-a") != NULL);
    UNIT_TRUE(trpi_shard_store_next(s.store, NOW) == NULL);
    trpi_shard_store_free(other.store);
    end(&s);
}

static void
a_refused_append_changes_nothing_and_the_store_goes_on(void)
{
    scene s;
    start(&s);
    trp_journal_memory_fail(s.memory, TRP_JOURNAL_APPEND, 0, 1, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_OK);
    run(&s, 1);
    expect(&s, TRPI_SHARD_ADD, 1, TRP_EAGAIN);
    UNIT_TRUE(!trpi_shard_store_remembers(s.store, "anna"));
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 2), TRP_OK);
    run(&s, 1);
    expect(&s, TRPI_SHARD_ADD, 2, TRP_OK);
    UNIT_TRUE(trpi_shard_store_remembers(s.store, "anna"));
    end(&s);
}

static void
an_append_of_unknown_outcome_loses_the_store_with_all_that_waits(void)
{
    scene s;
    start(&s);
    trp_journal_memory_fail(s.memory, TRP_JOURNAL_APPEND, 0, 1, TRP_JOURNAL_FAILED, TRP_EIO);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_OK);
    trp_journal_op *op = trpi_shard_store_next(s.store, NOW);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "bert", 2), TRP_OK); /* behind the one under way */
    op->done = on_done;
    op->user = &s;
    s.driver->submit(s.driver->arg, op);
    trpi_shard_store_answered(s.store, op);
    expect(&s, TRPI_SHARD_ADD, 1, TRP_EIO);
    expect(&s, TRPI_SHARD_ADD, 2, TRP_EIO);
    expect_none(&s);
    reopen(&s, 0); /* claims anew, and reads what has happened */
    UNIT_EQUAL(trpi_shard_store_state_get(s.store), TRPI_SHARD_STORE_READY);
    end(&s);
}

static void
events_are_deleted_behind_a_snapshot_that_another_one_follows(void)
{
    scene s;
    char id[16];
    start(&s);
    reopen(&s, 4);
    for (uint32_t i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(trpi_shard_store_add(s.store, id, i), TRP_OK);
        run(&s, 100);
        expect(&s, TRPI_SHARD_ADD, i, TRP_OK);
    }
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "/sharding/cart/7";
    UNIT_EQUAL(trp_journal_call(s.driver, &op), TRP_OK);
    UNIT_EQUAL(op.ret_number, 20);
    UNIT_EQUAL(op.ret_count, 4); /* behind the snapshot of 16; that of 20 is newer */
    reopen(&s, 4);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), 20);
    end(&s);
}

/* Save something that is no snapshot of ours under a number. */
static void
spoil(scene *s, uint64_t number)
{
    const trp_journal_event event = { .number = number,
                                      .type = TRPI_SHARD_STORE_SNAPSHOT,
                                      .version = TRPI_SHARD_STORE_VERSION,
                                      .data = "\x93garbage",
                                      .bytes = 8 };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_SNAPSHOT_SAVE;
    op.id = "/sharding/cart/7";
    op.scope = "sharding/cart/7";
    op.epoch = trpi_shard_store_epoch(s->store);
    op.events = &event;
    op.events_count = 1;
    UNIT_EQUAL(trp_journal_call(s->driver, &op), TRP_OK);
}

static void
an_unreadable_snapshot_falls_back_to_the_one_before(void)
{
    scene s;
    char id[16];
    start(&s);
    reopen(&s, 4);
    for (uint32_t i = 0; i < 9; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(trpi_shard_store_add(s.store, id, i), TRP_OK);
        run(&s, 100);
    }
    spoil(&s, 8);
    reopen(&s, 4);
    UNIT_EQUAL(trpi_shard_store_state_get(s.store), TRPI_SHARD_STORE_READY);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), 9);
    /* The next snapshots do not trust the spoilt one either. */
    for (uint32_t i = 9; i < 30; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(trpi_shard_store_add(s.store, id, i), TRP_OK);
        run(&s, 100);
        reopen(&s, 4);
        UNIT_EQUAL(trpi_shard_store_entities_count(s.store), i + 1);
    }
    end(&s);
}

static void
events_that_are_gone_without_a_snapshot_are_told(void)
{
    scene s;
    start(&s);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_OK);
    run(&s, 10);
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_DELETE;
    op.id = "/sharding/cart/7";
    op.scope = "sharding/cart/7";
    op.epoch = trpi_shard_store_epoch(s.store);
    op.to = 1;
    UNIT_EQUAL(trp_journal_call(s.driver, &op), TRP_OK);
    reopen(&s, 0);
    const char *why = NULL;
    UNIT_EQUAL(trpi_shard_store_error(s.store, &why), TRP_EDATA);
    UNIT_TRUE(strstr(why, "/sharding/cart/7") != NULL && strstr(why, "number 1") != NULL);
    end(&s);
}

static void
an_event_of_a_type_that_nobody_reads_is_named(void)
{
    scene s;
    const trp_journal_event event = {
        .type = "troupe.shard", .version = 9, .data = "", .bytes = 0
    };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    start(&s);
    op.kind = TRP_JOURNAL_APPEND;
    op.id = "/sharding/cart/7";
    op.scope = "sharding/cart/7";
    op.epoch = trpi_shard_store_epoch(s.store);
    op.from = 1;
    op.events = &event;
    op.events_count = 1;
    UNIT_EQUAL(trp_journal_call(s.driver, &op), TRP_OK);
    reopen(&s, 0);
    const char *why = NULL;
    UNIT_EQUAL(trpi_shard_store_state_get(s.store), TRPI_SHARD_STORE_LOST);
    UNIT_EQUAL(trpi_shard_store_error(s.store, &why), TRP_EDATA);
    UNIT_TRUE(strstr(why, "number 1") != NULL && strstr(why, "version 9") != NULL);
    end(&s);
}

static void
a_reminder_outlives_its_owner_and_comes_until_it_is_handed_over(void)
{
    scene s;
    trpi_shard_reminder due;
    start(&s);
    const trpi_shard_reminder once = reminder("anna", "bill", NOW + 50, 0);
    const trpi_shard_reminder often = reminder("anna", "tick", NOW + 10, 100);
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &once, 1), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &often, 2), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_next_due(s.store), UINT64_MAX);
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_next_due(s.store), NOW + 10);
    UNIT_TRUE(!trpi_shard_store_due(s.store, NOW + 9, &due));
    UNIT_REQUIRE(trpi_shard_store_due(s.store, NOW + 10, &due));
    UNIT_TEXT(due.name, "tick");
    UNIT_TEXT(due.type, "wake");
    UNIT_EQUAL(due.version, 3);
    UNIT_TRUE(due.bytes == 7 && memcmp(due.data, "payload", 7) == 0);
    UNIT_TRUE(!trpi_shard_store_due(s.store, NOW + 10, &due)); /* it is handed over once */
    reopen(&s, 0); /* nobody has said that it was: it comes again */
    UNIT_REQUIRE(trpi_shard_store_due(s.store, NOW + 260, &due));
    UNIT_TEXT(due.name, "tick");
    UNIT_EQUAL(trpi_shard_store_fired(s.store, "anna", "tick", NOW + 10, NOW + 260, 3), TRP_OK);
    UNIT_REQUIRE(trpi_shard_store_due(s.store, NOW + 260, &due));
    UNIT_TEXT(due.name, "bill");
    UNIT_EQUAL(trpi_shard_store_fired(s.store, "anna", "bill", NOW + 50, NOW + 260, 4), TRP_OK);
    run(&s, 10);
    reopen(&s, 0);
    UNIT_EQUAL(trpi_shard_store_reminders_count(s.store), 1);
    UNIT_EQUAL(trpi_shard_store_next_due(s.store),
               NOW + 310); /* two were missed, and come as one */
    UNIT_EQUAL(trpi_shard_store_cancel(s.store, "anna", "tick", 5), TRP_OK);
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_reminders_count(s.store), 0);
    UNIT_EQUAL(trpi_shard_store_fired(s.store, "anna", "tick", NOW + 310, NOW, 6), TRP_ENOENT);
    end(&s);
}

static void
a_reminder_that_is_set_anew_is_not_ended_by_the_earlier_one(void)
{
    scene s;
    trpi_shard_reminder due;
    start(&s);
    const trpi_shard_reminder first = reminder("anna", "bill", NOW + 10, 0);
    const trpi_shard_reminder second = reminder("anna", "bill", NOW + 90, 0);
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &first, 1), TRP_OK);
    run(&s, 10);
    UNIT_REQUIRE(trpi_shard_store_due(s.store, NOW + 10, &due));
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &second, 2), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_fired(s.store, "anna", "bill", NOW + 10, NOW + 10, 3), TRP_OK);
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_next_due(s.store), NOW + 90);
    end(&s);
}

static void
limits_hold_at_their_number_and_refuse_one_past(void)
{
    scene s;
    char text[TRPI_SHARD_ID_BYTES_MAX + 2];
    static char data[TRPI_SHARD_REMINDER_BYTES_MAX + 1];
    start(&s);
    memset(text, 'x', sizeof text);
    text[TRPI_SHARD_ID_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_shard_store_add(s.store, text, 1), TRP_EINVAL);
    text[TRPI_SHARD_ID_BYTES_MAX] = '\0';
    UNIT_EQUAL(trpi_shard_store_add(s.store, text, 1), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "", 1), TRP_EINVAL);
    trpi_shard_reminder of = reminder("anna", text, NOW, 0);
    text[TRPI_SHARD_REMINDER_NAME_MAX + 1] = '\0';
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &of, 1), TRP_EINVAL);
    text[TRPI_SHARD_REMINDER_NAME_MAX] = '\0';
    of.data = data;
    of.bytes = sizeof data;
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &of, 1), TRP_EMSGSIZE);
    of.bytes = sizeof data - 1;
    UNIT_EQUAL(trpi_shard_store_remind(s.store, &of, 1), TRP_OK);
    run(&s, 10);
    reopen(&s, 0);
    UNIT_EQUAL(trpi_shard_store_reminders_count(s.store), 1);
    trpi_shard_store_free(s.store);
    const trpi_shard_store_options big = { .type = "cart",
                                           .writer = "w",
                                           .bytes_max = TRPI_SHARD_STORE_BYTES_MAX + 1 };
    UNIT_EQUAL(trpi_shard_store_new(&big, &s.store), TRP_EINVAL);
    trp_journal_memory_free(s.memory);
    UNIT_EQUAL(trp_journal_memory_new(&s.memory), TRP_OK);
    s.driver = trp_journal_memory_driver(s.memory);
    open_with(&s, (trpi_shard_store_options){ .memory = true, .bytes_max = 3 * 66 });
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e1", 1), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e2", 2), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e3", 3), TRP_OK);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e4", 4), TRP_ELIMIT); /* also before they are there */
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e4", 4), TRP_ELIMIT);
    UNIT_EQUAL(trpi_shard_store_remove(s.store, "e1", 5), TRP_OK);
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "e4", 6), TRP_OK);
    end(&s);
}

static void
a_group_has_a_thousand_changes_at_most_and_the_rest_follows(void)
{
    scene s;
    char id[16];
    start(&s);
    for (uint32_t i = 0; i < TRPI_SHARD_STORE_GROUP_MAX + 1; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(trpi_shard_store_add(s.store, id, i), TRP_OK);
    }
    UNIT_EQUAL(run(&s, 1), 1);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), TRPI_SHARD_STORE_GROUP_MAX);
    UNIT_EQUAL(run(&s, 10), 1);
    reopen(&s, 0);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), TRPI_SHARD_STORE_GROUP_MAX + 1);
    end(&s);
}

static void
a_shard_without_memory_only_claims(void)
{
    scene s = { 0 };
    UNIT_REQUIRE(trp_journal_memory_new(&s.memory) == TRP_OK);
    s.driver = trp_journal_memory_driver(s.memory);
    open_with(&s, (trpi_shard_store_options){ .memory = false });
    UNIT_EQUAL(trpi_shard_store_state_get(s.store), TRPI_SHARD_STORE_READY);
    UNIT_EQUAL(trpi_shard_store_epoch(s.store), 1);
    UNIT_EQUAL(trpi_shard_store_add(s.store, "anna", 1), TRP_ESTATE);
    end(&s);
}

/* ---- a model over random histories ----------------------------------------------------------- */

#define MODEL_IDS 24u

typedef struct model {
    bool lives[MODEL_IDS];   /* by what was told to be in the journal */
    bool unknown[MODEL_IDS]; /* a change of it was lost: either is right */
    uint64_t due[MODEL_IDS]; /* of its one reminder; 0: none */
    bool due_unknown[MODEL_IDS];
} model;

/* Settle what the store tells. A token is id * 8 + kind, and above it the reminder's time. */
static void
model_settle(model *m, scene *s)
{
    trpi_shard_effect effect;

    while (trpi_shard_store_effect(s->store, &effect)) {
        uint32_t of = (uint32_t)(effect.token & 0xffff) >> 3;
        uint64_t due = effect.token >> 16;

        if (effect.kind == TRPI_SHARD_ADD || effect.kind == TRPI_SHARD_REMOVE) {
            m->unknown[of] = m->unknown[of] || effect.err == TRP_EIO;
            m->lives[of] = effect.err == TRP_OK ? effect.kind == TRPI_SHARD_ADD : m->lives[of];
        } else {
            m->due_unknown[of] = m->due_unknown[of] || effect.err == TRP_EIO;
            m->due[of] = effect.err != TRP_OK               ? m->due[of]
                         : effect.kind == TRPI_SHARD_REMIND ? due
                                                            : 0;
        }
    }
}

static void
model_compare(model *m, const trpi_shard_store *store)
{
    char id[16];

    for (uint32_t i = 0; i < MODEL_IDS; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        bool lives = trpi_shard_store_remembers(store, id);
        UNIT_TRUE(m->unknown[i] || lives == m->lives[i]);
        m->lives[i] = lives;
        m->unknown[i] = false;
    }
}

/* Reminders are compared by their number and the next one. After a lost change they begin anew. */
static void
model_compare_reminders(model *m, scene *s)
{
    char id[16];
    uint32_t count = 0;
    uint64_t next = UINT64_MAX;
    bool unknown = false;

    for (uint32_t i = 0; i < MODEL_IDS; i++) {
        count += m->due[i] != 0;
        next = m->due[i] != 0 && m->due[i] < next ? m->due[i] : next;
        unknown = unknown || m->due_unknown[i];
    }
    if (!unknown) {
        UNIT_EQUAL(trpi_shard_store_reminders_count(s->store), count);
        UNIT_EQUAL(trpi_shard_store_next_due(s->store), next);
        return;
    }
    for (uint32_t i = 0; i < MODEL_IDS; i++) {
        (void)snprintf(id, sizeof id, "e%u", i);
        UNIT_EQUAL(trpi_shard_store_cancel(s->store, id, "n", i * 8 + TRPI_SHARD_CANCEL), TRP_OK);
        m->due_unknown[i] = false;
    }
    run(s, 100);
    model_settle(m, s);
    UNIT_EQUAL(trpi_shard_store_reminders_count(s->store), 0);
}

static void
model_change(scene *s, uint64_t *random, uint64_t now)
{
    char id[16];
    uint64_t draw = *random = trpi_hash_u64(*random + 0x9e3779b97f4a7c15u);
    uint32_t of = (uint32_t)(draw % MODEL_IDS);
    uint64_t kind = 1 + (draw >> 8) % 4, due = now + 1 + (draw >> 20) % 100;
    uint64_t token = of * 8 + kind + (due << 16);

    (void)snprintf(id, sizeof id, "e%u", of);
    const trpi_shard_reminder wanted = reminder(id, "n", due, 0);
    trp_err err = kind == TRPI_SHARD_ADD      ? trpi_shard_store_add(s->store, id, token)
                  : kind == TRPI_SHARD_REMOVE ? trpi_shard_store_remove(s->store, id, token)
                  : kind == TRPI_SHARD_REMIND ? trpi_shard_store_remind(s->store, &wanted, token)
                                              : trpi_shard_store_cancel(s->store, id, "n", token);
    UNIT_TRUE(err == TRP_OK || err == TRP_ESTATE);
}

static void
model_run(uint64_t seed)
{
    scene s;
    model m = { 0 };
    uint64_t random = seed;

    start(&s);
    reopen(&s, 3);
    for (uint32_t step = 0; step < 200; step++) {
        uint64_t draw = random = trpi_hash_u64(random + 0x9e3779b97f4a7c15u);

        if (draw % 16 == 0) {
            trp_journal_memory_fail(s.memory, 0, (uint32_t)(draw >> 8) % 4, 1,
                                    (draw & 32) != 0 ? TRP_JOURNAL_FAILED : TRP_JOURNAL_REFUSED,
                                    (draw & 32) != 0 ? TRP_EIO : TRP_EAGAIN);
        } else if (draw % 16 < 3) {
            run(&s, (uint32_t)(draw >> 8) % 4);
        } else if (draw % 16 == 3) {
            run(&s, 100);
            model_settle(&m, &s);
            trp_journal_memory_fail(s.memory, 0, 0, 0, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
            reopen(&s, 3);
            UNIT_REQUIRE(trpi_shard_store_state_get(s.store) == TRPI_SHARD_STORE_READY);
            model_compare(&m, s.store);
            model_compare_reminders(&m, &s);
        } else {
            model_change(&s, &random, NOW + step);
        }
    }
    end(&s);
}

static void
random_histories_leave_what_was_told(void)
{
    const char *wanted = getenv("SHARD_STORE_SEED");
    uint64_t first = wanted != NULL ? strtoull(wanted, NULL, 10) : 1, count = wanted ? 1 : 300;

    for (uint64_t seed = first; seed < first + count && unit_failures() == 0; seed++) {
        model_run(seed);
        if (unit_failures() != 0) {
            printf("# seed %llu; again: SHARD_STORE_SEED=%llu tests/unit/cluster/cluster_tests "
                   "shard_store_test random_histories_leave_what_was_told\n",
                   (unsigned long long)seed, (unsigned long long)seed);
        }
    }
}

static void
no_memory_anywhere_changes_nothing(void)
{
    scene s;
    start(&s);
    const trpi_shard_reminder of = reminder("anna", "bill", NOW, 0);
    for (long n = 0;; n++) {
        trpi_alloc_fail_here_after(n);
        trp_err err = trpi_shard_store_add(s.store, "anna", 1);
        err = err == TRP_OK ? trpi_shard_store_remind(s.store, &of, 2) : err;
        trpi_alloc_fail_here_after(-1);
        trpi_check check;
        UNIT_TRUE(trpi_shard_store_check(s.store, &check) == NULL);
        if (err == TRP_OK) {
            break;
        }
        UNIT_EQUAL(err, TRP_ENOMEM);
        UNIT_REQUIRE(n < 100);
    }
    run(&s, 10);
    UNIT_EQUAL(trpi_shard_store_entities_count(s.store), 1);
    UNIT_EQUAL(trpi_shard_store_reminders_count(s.store), 1);
    end(&s);
}

/* ---- fewer shards ---------------------------------------------------------------------------- */

static trpi_shard_store *
store_of_shard(scene *s, uint32_t shard)
{
    trpi_shard_store_options options = {
        .type = "cart", .shard = shard, .writer = "node-a", .memory = true
    };
    trpi_shard_store_free(s->store);
    UNIT_REQUIRE(trpi_shard_store_new(&options, &s->store) == TRP_OK);
    run(s, 100);
    UNIT_EQUAL(trpi_shard_store_state_get(s->store), TRPI_SHARD_STORE_READY);
    return s->store;
}

static uint32_t
is_kept(scene *s, uint32_t shard, const char *id, uint64_t due_ms)
{
    const trpi_shard_store *store = store_of_shard(s, shard);
    uint32_t position = 0;
    const trpi_shard_reminder *reminder = trpi_shard_store_reminder(store, id, &position);
    return trpi_shard_store_remembers(store, id) &&
           (due_ms == 0 ? reminder == NULL : reminder != NULL && reminder->due_ms == due_ms);
}

/* ClusterShardingRememberEntitiesNewExtractorSpec; sharding-fold-F1, -F2 */
static void
shards_that_exist_no_longer_are_folded_into_those_that_do(void)
{
    enum { SHARDS = 10, LEFT = 4, APPENDS = 24 };
    for (uint32_t appends = 0; appends <= APPENDS; appends++) { /* an end at each of them */
        scene s;
        trpi_sharding_folded folded;
        char id[16], why[TRP_JOURNAL_WHY_BYTES] = "";
        uint32_t tries = 0, entities = 0;
        start(&s);
        for (uint32_t i = 0; i < SHARDS; i++) {
            (void)snprintf(id, sizeof id, "id-%u", i);
            const trpi_shard_reminder reminder = {
                .id = id, .name = "wake", .due_ms = NOW + i, .type = "t", .data = "x", .bytes = 1
            };
            trpi_shard_store *store = store_of_shard(&s, i);
            UNIT_EQUAL(trpi_shard_store_add(store, id, 0), TRP_OK);
            if (i % 2 == 1) {
                UNIT_EQUAL(trpi_shard_store_remind(store, &reminder, 0), TRP_OK);
            }
            run(&s, 100);
        }
        const trpi_shard_reminder newer = {
            .id = "id-5", .name = "wake", .due_ms = NOW * 2, .type = "t", .data = "y", .bytes = 1
        };
        UNIT_EQUAL(trpi_shard_store_remind(store_of_shard(&s, 5 % LEFT), &newer, 0), TRP_OK);
        run(&s, 100);
        trp_journal_memory_fail(s.memory, TRP_JOURNAL_APPEND, appends, 1,
                                appends % 2 == 0 ? TRP_JOURNAL_REFUSED : TRP_JOURNAL_FAILED,
                                TRP_EIO);
        while (trpi_sharding_fold(s.driver, "cart", LEFT, NOW, &folded, why, sizeof why) !=
               TRP_OK) {
            UNIT_TRUE(why[0] != '\0' && ++tries < 3);
            entities += folded.entities;
        }
        UNIT_TRUE(tries <= 1 && entities + folded.entities <= SHARDS - LEFT);
        UNIT_EQUAL(trpi_sharding_fold(s.driver, "cart", LEFT, NOW, &folded, why, sizeof why),
                   TRP_OK);
        UNIT_TRUE(folded.shards == 0 && folded.entities == 0 && folded.reminders == 0);
        for (uint32_t i = 0; i < SHARDS; i++) {
            (void)snprintf(id, sizeof id, "id-%u", i);
            uint64_t due_ms = i == 5 ? NOW * 2 : i % 2 == 1 ? NOW + i : 0;
            UNIT_TRUE(is_kept(&s, i % LEFT, id, due_ms));
            UNIT_TRUE(i < LEFT || trpi_shard_store_entities_count(store_of_shard(&s, i)) == 0);
        }
        end(&s);
    }
}

static void
a_fold_into_too_few_shards_is_refused(void)
{
    trpi_sharding_folded folded;
    char why[TRP_JOURNAL_WHY_BYTES] = "", id[200];
    scene s;
    uint32_t count = 0;
    trp_err err = TRP_OK;
    start(&s);
    for (uint32_t shard = 0; shard < 2; shard++) {
        trpi_shard_store *store = store_of_shard(&s, shard);
        for (err = TRP_OK; err == TRP_OK; count++) {
            (void)snprintf(id, sizeof id, "%0150u", count);
            err = trpi_shard_store_add(store, id, 0);
        }
        UNIT_EQUAL(err, TRP_ELIMIT);
        run(&s, 1000);
    }
    UNIT_EQUAL(trpi_sharding_fold(s.driver, "cart", 1, NOW, &folded, why, sizeof why), TRP_ELIMIT);
    UNIT_TRUE(strstr(why, "choose more shards") != NULL && folded.entities == 0);
    UNIT_TRUE(trpi_shard_store_entities_count(store_of_shard(&s, 1)) > 0);
    UNIT_EQUAL(trpi_sharding_fold(s.driver, "cart", 0, NOW, &folded, why, sizeof why), TRP_EINVAL);
    UNIT_EQUAL(trpi_sharding_fold(s.driver, "cart", TRP_SHARDING_SHARDS_MAX, NOW, &folded, why,
                                  sizeof why),
               TRP_OK);
    UNIT_EQUAL(trpi_sharding_fold(s.driver, "cart", TRP_SHARDING_SHARDS_MAX + 1, NOW, &folded, why,
                                  sizeof why),
               TRP_EINVAL);
    end(&s);
}

UNIT_BEGIN("shard_store")
UNIT(what_was_remembered_is_there_for_the_next_owner)
UNIT(an_owner_that_was_replaced_loses_the_store_and_is_told_by_whom)
UNIT(a_refused_append_changes_nothing_and_the_store_goes_on)
UNIT(an_append_of_unknown_outcome_loses_the_store_with_all_that_waits)
UNIT(events_are_deleted_behind_a_snapshot_that_another_one_follows)
UNIT(an_unreadable_snapshot_falls_back_to_the_one_before)
UNIT(events_that_are_gone_without_a_snapshot_are_told)
UNIT(an_event_of_a_type_that_nobody_reads_is_named)
UNIT(a_reminder_outlives_its_owner_and_comes_until_it_is_handed_over)
UNIT(a_reminder_that_is_set_anew_is_not_ended_by_the_earlier_one)
UNIT(limits_hold_at_their_number_and_refuse_one_past)
UNIT(a_group_has_a_thousand_changes_at_most_and_the_rest_follows)
UNIT(a_shard_without_memory_only_claims)
UNIT(random_histories_leave_what_was_told)
UNIT(no_memory_anywhere_changes_nothing)
UNIT(shards_that_exist_no_longer_are_folded_into_those_that_do)
UNIT(a_fold_into_too_few_shards_is_refused)
UNIT_END
