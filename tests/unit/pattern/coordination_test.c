/* coordination_test.c - transactions of several actors: all or nothing, in time, whoever ends. */
#include <troupe/coordination.h>

#include <troupe/seeded.h>
#include <troupe/testkit.h>

#include <stdatomic.h>

#include "tests/unit/unit.h"

#define COUNTER_INCREMENT(F, S)                                                                    \
    F(S, ref, coordination) F(S, ref, friend) F(S, u32, mode) F(S, u32, unused)
#define COUNTER_MESSAGES(M, P) M(P, increment, COUNTER_INCREMENT)
TRP_PROTOCOL(counter, COUNTER_MESSAGES)

enum { PLAIN, FAILS, SILENT, ENDS, JOINS_TWICE, STOPS };

static trp_stm *stm;
static bool cells_stay; /* when their counters end: the test frees them */

/* A counter whose count is a cell; the outcome of each join is noted. */
struct counter {
    trp_stm_cell *count;
    uint32_t outcomes;
    trp_err last, second;
};

static trp_err
add_one(trp_txn *txn, void *arg)
{
    trp_stm_cell *cell = *(trp_stm_cell **)arg;
    int64_t value = 0;
    trp_err err = trp_stm_read(txn, cell, &value);
    value++;
    return err != TRP_OK ? err : trp_stm_write(txn, cell, &value);
}

static trp_err
add_and_fail(trp_txn *txn, void *arg)
{
    trp_err err = add_one(txn, arg);
    return err != TRP_OK ? err : TRP_EDATA;
}

static trp_err
on_outcome(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    struct counter *c = state;
    (void)ctx;
    (void)reply;
    if (arg != NULL) {
        c->second = err;
    } else {
        c->last = err;
        c->outcomes++;
    }
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct counter *c = state;
    const counter_increment *m = counter_increment_as(msg);
    static int again;
    if (m == NULL) {
        return TRP_EUNHANDLED;
    }
    if (!trp_ref_is_none(m->friend)) {
        counter_increment next = { m->coordination, TRP_REF_NONE, PLAIN, 0 };
        trp_coordination_include(ctx, m->coordination, m->friend);
        trp_tell(ctx, m->friend, &counter_increment_type, &next, 0);
    }
    if (m->mode == SILENT) {
        return TRP_OK;
    }
    if (m->mode == STOPS) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (m->mode == JOINS_TWICE) {
        UNIT_EQUAL(trp_coordination_join(ctx, m->coordination, add_one, &c->count, sizeof c->count,
                                         10000, on_outcome, NULL),
                   TRP_OK);
        return trp_coordination_join(ctx, m->coordination, add_one, &c->count, sizeof c->count,
                                     10000, on_outcome, &again);
    }
    return trp_coordination_join(ctx, m->coordination, m->mode == FAILS ? add_and_fail : add_one,
                                 &c->count, sizeof c->count, 10000, on_outcome, NULL);
}

static trp_err
counter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct counter *c = state;
    (void)ctx;
    (void)args;
    c->last = c->second = TRP_EAGAIN; /* none yet */
    return trp_stm_cell_new(stm, NULL, sizeof(int64_t), &c->count);
}

static void
counter_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    if (!cells_stay) {
        trp_stm_cell_free(((struct counter *)state)->count);
    }
}
static const trp_behaviour counter = { .size = sizeof counter,
                                       .name = "counter",
                                       .version = 1,
                                       .state_bytes = sizeof(struct counter),
                                       .receive = counter_receive,
                                       .pre_start = counter_start,
                                       .post_stop = counter_stop };

typedef struct scene {
    trp_testkit *kit;
    trp_ref refs[3];
} scene;

static void
scene_fill(scene *s)
{
    UNIT_EQUAL(trp_protocol_register(&counter_protocol), TRP_OK);
    UNIT_REQUIRE(trp_stm_new(&stm) == TRP_OK);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_system_spawn(trp_testkit_system(s->kit), &counter, NULL, &s->refs[i]),
                   TRP_OK);
    }
    (void)trp_testkit_advance(s->kit, 0);
}

static scene
scene_open(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    scene s = { NULL, { TRP_REF_NONE } };
    options.clock = TRP_CLOCK_MANUAL;
    options.on_fail = TRP_FAIL_RETURN;
    UNIT_REQUIRE(trp_testkit_open(&options, &s.kit) == TRP_OK);
    scene_fill(&s);
    return s;
}

static void
scene_close(scene *s)
{
    UNIT_EQUAL(trp_testkit_failures(s->kit), 0);
    UNIT_EQUAL(trp_testkit_close(s->kit), TRP_OK);
    trp_stm_free(stm);
}

static struct counter *
counter_of(const scene *s, int i)
{
    return trp_testkit_state(s->kit, s->refs[i]);
}

static int64_t
count_of(const scene *s, int i)
{
    int64_t value = 0;
    trp_stm_get(counter_of(s, i)->count, &value);
    return value;
}

static trp_ref
begin(const scene *s, uint32_t count, uint32_t timeout_ms)
{
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_coordination_start(trp_testkit_system(s->kit), stm, s->refs, count,
                                             timeout_ms, &ref),
               TRP_OK);
    return ref;
}

static void
tell(const scene *s, int i, trp_ref coordination, trp_ref friend, uint32_t mode)
{
    counter_increment m = { coordination, friend, mode, 0 };
    trp_system_tell(trp_testkit_system(s->kit), s->refs[i], &counter_increment_type, &m, 0);
    (void)trp_testkit_advance(s->kit, 0);
}

static const trp_ref nobody = TRP_REF_NONE;

/* TRANSACT-1 TRANSACT-2 HEADLINE-6: nothing is written before the last one has joined. */
static void
all_parties_commit_together(void)
{
    scene s = scene_open();
    trp_ref c = begin(&s, 2, 5000);
    tell(&s, 0, c, nobody, PLAIN);
    UNIT_EQUAL(count_of(&s, 0), 0);
    UNIT_EQUAL(counter_of(&s, 0)->outcomes, 0);
    tell(&s, 1, c, nobody, PLAIN);
    for (int i = 0; i < 2; i++) {
        UNIT_EQUAL(count_of(&s, i), 1);
        UNIT_EQUAL(counter_of(&s, i)->last, TRP_OK);
        UNIT_EQUAL(counter_of(&s, i)->outcomes, 1);
    }
    tell(&s, 2, c, nobody, PLAIN); /* it is over */
    UNIT_EQUAL(counter_of(&s, 2)->last, TRP_ENOENT);
    scene_close(&s);
}

/* TRANSACT-1: a party includes another one: the document's sample. */
static void
a_party_includes_its_friend(void)
{
    scene s = scene_open();
    tell(&s, 0, begin(&s, 1, 5000), s.refs[1], PLAIN);
    UNIT_EQUAL(count_of(&s, 0), 1);
    UNIT_EQUAL(count_of(&s, 1), 1);
    UNIT_EQUAL(counter_of(&s, 1)->last, TRP_OK);
    scene_close(&s);
}

/* TRANSACT-2 HEADLINE-6 */
static void
one_that_fails_fails_all(void)
{
    scene s = scene_open();
    trp_ref c = begin(&s, 3, 5000);
    tell(&s, 0, c, nobody, PLAIN);
    tell(&s, 1, c, nobody, FAILS);
    tell(&s, 2, c, nobody, PLAIN);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(count_of(&s, i), 0);
        UNIT_EQUAL(counter_of(&s, i)->last, TRP_EDATA);
    }
    scene_close(&s);
}

/* TRANSACT-2 */
static void
one_that_does_not_join_in_time_fails_all(void)
{
    scene s = scene_open();
    trp_ref c = begin(&s, 2, 0);
    tell(&s, 0, c, nobody, PLAIN);
    tell(&s, 1, c, nobody, SILENT);
    UNIT_EQUAL(trp_testkit_advance(s.kit, TRP_COORDINATION_TIMEOUT_MS_DEFAULT - 1), TRP_OK);
    UNIT_EQUAL(counter_of(&s, 0)->outcomes, 0);
    UNIT_EQUAL(trp_testkit_advance(s.kit, 1), TRP_OK);
    UNIT_EQUAL(counter_of(&s, 0)->last, TRP_ETIMEDOUT);
    UNIT_EQUAL(count_of(&s, 0), 0);
    tell(&s, 1, c, nobody, PLAIN); /* too late */
    UNIT_EQUAL(counter_of(&s, 1)->last, TRP_ENOENT);
    UNIT_EQUAL(count_of(&s, 1), 0);
    scene_close(&s);
}

/* TRANSACT-2: one that ends before it joins fails all, at once. */
static void
a_party_that_ends_before_it_joins_fails_all(void)
{
    scene s = scene_open();
    trp_ref c = begin(&s, 2, 5000);
    tell(&s, 0, c, nobody, PLAIN);
    tell(&s, 1, c, nobody, STOPS);
    UNIT_EQUAL(counter_of(&s, 0)->last, TRP_ENOENT);
    UNIT_EQUAL(count_of(&s, 0), 0);
    c = begin(&s, 2, 5000); /* it has ended already */
    tell(&s, 0, c, nobody, PLAIN);
    UNIT_EQUAL(counter_of(&s, 0)->outcomes, 2);
    UNIT_EQUAL(counter_of(&s, 0)->last, TRP_ENOENT);
    scene_close(&s);
}

/* TRANSACT-3: joining twice is an error of the second, and no deadlock. */
static void
an_actor_joins_once(void)
{
    scene s = scene_open();
    trp_ref c = begin(&s, 2, 5000);
    tell(&s, 0, c, nobody, JOINS_TWICE);
    UNIT_EQUAL(counter_of(&s, 0)->second, TRP_EEXIST);
    tell(&s, 2, c, nobody, PLAIN);
    UNIT_EQUAL(counter_of(&s, 2)->last, TRP_EPERM); /* it is no party */
    tell(&s, 1, c, nobody, PLAIN);
    UNIT_EQUAL(counter_of(&s, 0)->last, TRP_OK);
    UNIT_EQUAL(count_of(&s, 0), 1);
    UNIT_EQUAL(count_of(&s, 1), 1);
    scene_close(&s);
}

/* TRANSACT-1 */
static void
misuse_is_an_error_and_parties_have_a_limit(void)
{
    scene s = scene_open();
    trp_system *system = trp_testkit_system(s.kit);
    static trp_ref many[TRP_COORDINATION_PARTIES_MAX + 1];
    trp_ref ref = TRP_REF_NONE, twice[2] = { s.refs[0], s.refs[0] };
    UNIT_EQUAL(trp_system_coordination_start(system, NULL, s.refs, 1, 0, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_coordination_start(system, stm, s.refs, 0, 0, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_coordination_start(system, stm, twice, 2, 0, &ref), TRP_EEXIST);
    UNIT_EQUAL(trp_system_coordination_start(system, stm, &nobody, 1, 0, &ref), TRP_EUNSUPPORTED);
    for (uint32_t i = 0; i <= TRP_COORDINATION_PARTIES_MAX; i++) {
        many[i] = s.refs[0];
        many[i].generation += 2 * i; /* names of actors that are none */
    }
    UNIT_EQUAL(
        trp_system_coordination_start(system, stm, many, TRP_COORDINATION_PARTIES_MAX + 1, 0, &ref),
        TRP_ELIMIT);
    UNIT_TRUE(trp_ref_is_none(ref));
    UNIT_EQUAL(
        trp_system_coordination_start(system, stm, many, TRP_COORDINATION_PARTIES_MAX, 0, &ref),
        TRP_OK);
    tell(&s, 0, ref, nobody, PLAIN); /* some of them have never been */
    UNIT_EQUAL(counter_of(&s, 0)->last, TRP_ENOENT);
    scene_close(&s);
}

static _Atomic uint32_t ends_nothing, ends_all; /* seeds in which one ended, by their outcome */

/* Three coordinations over three counters, told in an order that the seed draws; in some one party
 * fails, is silent, or, in the last one, is stopped: before it joins, or after. Each is all or
 * nothing. */
static void
rivals(trp_testkit *kit, void *arg)
{
    scene s = { kit, { TRP_REF_NONE } };
    trp_system *system = trp_testkit_system(kit);
    trp_stm_cell *cells[3];
    int64_t expected = 0;
    (void)arg;
    scene_fill(&s);
    for (int i = 0; i < 3; i++) {
        cells[i] = counter_of(&s, i)->count;
    }
    for (int round = 0; round < 3; round++) {
        uint32_t mode = (uint32_t)(trp_seeded_random(kit) % (round < 2 ? ENDS : ENDS + 1));
        trp_ref c = TRP_REF_NONE;
        TRP_TESTKIT_CHECK(kit,
                          trp_system_coordination_start(system, stm, s.refs, 3, 50, &c) == TRP_OK);
        for (int i = 0; i < 3; i++) {
            counter_increment m = { c, TRP_REF_NONE, i == round && mode != ENDS ? mode : PLAIN, 0 };
            trp_system_tell(system, s.refs[i], &counter_increment_type, &m, 0);
            if (i == round && mode == ENDS) { /* behind the message, or, by force, before it */
                trp_system_tell(system, s.refs[i], &trp_poison_pill_type, NULL, 0);
                if (trp_seeded_random(kit) % 2 == 0) {
                    trp_system_stop_actor(system, s.refs[i]);
                }
            }
        }
        (void)trp_testkit_advance(kit, 200); /* also with actors that are late */
        int64_t counts[3];
        for (int i = 0; i < 3; i++) {
            trp_stm_get(cells[i], &counts[i]);
        }
        bool is_all = counts[0] == expected + 1;
        TRP_TESTKIT_CHECK(kit, counts[0] == counts[1] && counts[1] == counts[2]);
        TRP_TESTKIT_CHECK(kit,
                          counts[0] == expected || (is_all && (mode == PLAIN || mode == ENDS)));
        expected = counts[0];
        if (mode == ENDS) {
            atomic_fetch_add(is_all ? &ends_all : &ends_nothing, 1);
        }
    }
    TRP_TESTKIT_CHECK(kit, trp_system_stop(system, 60000) == TRP_OK);
    for (int i = 0; i < 3; i++) { /* before their space */
        trp_stm_cell_free(cells[i]);
    }
    trp_stm_free(stm);
}

/* TRANSACT-2 */
static void
rivals_are_all_or_nothing_in_any_order(void)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    options.seeds = 300;
    cells_stay = true;
    UNIT_EQUAL(trp_seeded_run(rivals, NULL, &options, NULL), TRP_OK);
    cells_stay = false;
    UNIT_TRUE(atomic_load(&ends_nothing) > 0 && atomic_load(&ends_all) > 0);
    printf("  one ended: %u all, %u nothing\n", (unsigned)atomic_load(&ends_all),
           (unsigned)atomic_load(&ends_nothing));
}

UNIT_BEGIN("coordination")
UNIT(all_parties_commit_together)
UNIT(a_party_includes_its_friend)
UNIT(one_that_fails_fails_all)
UNIT(one_that_does_not_join_in_time_fails_all)
UNIT(a_party_that_ends_before_it_joins_fails_all)
UNIT(an_actor_joins_once)
UNIT(misuse_is_an_error_and_parties_have_a_limit)
UNIT(rivals_are_all_or_nothing_in_any_order)
UNIT_END
