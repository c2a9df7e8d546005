/* router_core_test.c - which routees there should be: by example, and over drawn shares and
 * histories of views. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/engine/membership.h"
#include "cluster/routing/router.h"
#include "tests/unit/unit.h"

/* ---- drawing --------------------------------------------------------------------------------- */

static uint64_t drawn;
static uint32_t
draw_below(uint32_t bound)
{
    return (uint32_t)(trpi_hash_u64(drawn++ * 0x9e3779b97f4a7c15u) % bound);
}

/* ---- how many -------------------------------------------------------------------------------- */

/* One by one: the law. */
static void
spread_slowly(trpi_router_share *shares, size_t count, uint32_t total)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        shares[i].want = shares[i].have < shares[i].most ? shares[i].have : shares[i].most;
        sum += shares[i].want;
    }
    for (; sum > total; sum--) { /* the one with the most, of equals the last */
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            at = shares[i].want >= shares[at].want ? i : at;
        }
        shares[at].want--;
    }
    for (; sum < total; sum++) { /* the one with the fewest, of equals the first */
        size_t at = count;
        for (size_t i = 0; i < count; i++) {
            if (shares[i].want < shares[i].most &&
                (at == count || shares[i].want < shares[at].want)) {
                at = i;
            }
        }
        if (at == count) {
            return;
        }
        shares[at].want++;
    }
}

/* CROUTE-12 */
static void
spreading_at_once_is_spreading_one_by_one(void)
{
    for (uint32_t seed = 0; seed < 20000; seed++) {
        trpi_router_share shares[8], slow[8];
        drawn = (uint64_t)seed << 32;
        size_t count = draw_below(9);
        uint32_t total = 1 + draw_below(20);
        for (size_t i = 0; i < count; i++) {
            shares[i] = (trpi_router_share){ draw_below(6), draw_below(6), 99 };
            slow[i] = shares[i];
        }
        trpi_router_spread(shares, count, total);
        spread_slowly(slow, count, total);
        for (size_t i = 0; i < count; i++) {
            if (shares[i].want != slow[i].want) {
                fprintf(stderr, "seed %u: node %zu of %zu: %u instead of %u\n", seed, i, count,
                        shares[i].want, slow[i].want);
            }
            UNIT_REQUIRE(shares[i].want == slow[i].want);
        }
    }
}

/* CROUTE-06: 50 in all, 2 on a node, up to 25 nodes; and at the bounds */
static void
totals_and_maxima_hold(void)
{
    static trpi_router_share shares[30];
    for (uint32_t nodes = 1; nodes <= 30; nodes++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < nodes; i++) {
            shares[i] = (trpi_router_share){ 0, 2, 0 };
        }
        trpi_router_spread(shares, nodes, 50);
        for (uint32_t i = 0; i < nodes; i++) {
            UNIT_TRUE(shares[i].want <= 2 && (nodes > 25 || shares[i].want == 2));
            sum += shares[i].want;
        }
        UNIT_EQUAL(sum, nodes < 25 ? 2 * nodes : 50);
    }
    shares[0] = (trpi_router_share){ 0, TRP_ROUTEES_MAX, 0 };
    trpi_router_spread(shares, 1, TRP_ROUTEES_MAX);
    UNIT_EQUAL(shares[0].want, TRP_ROUTEES_MAX);
    trpi_router_spread(shares, 0, 5);
}

/* ---- a table and its nodes ------------------------------------------------------------------- */

enum { NODES = 6, REFS = 4096 };

struct scene {
    trpi_router_core *core;
    trpi_router_rules rules;
    trp_member members[NODES];
    size_t count;
    uint64_t now_ms;
    uint32_t refs;
    bool in_table[REFS], dismissed[REFS];
    uint64_t node_of[REFS];
    uint32_t finds[64]; /* under way */
    uint32_t finds_count;
    uint32_t made, failing; /* MAKEs that fail from now on */
    uint32_t dismissals, takes, puts;
};

static void
scene_start(struct scene *s, trpi_router_rules rules)
{
    memset(s, 0, sizeof *s);
    s->rules = rules;
    s->now_ms = 1000;
    UNIT_REQUIRE(trpi_router_core_new(&s->rules, &s->core) == TRP_OK);
}

static trp_member *
scene_node(struct scene *s, uint64_t uid, const char *roles)
{
    trp_member *m = &s->members[s->count++];
    memset(m, 0, sizeof *m);
    snprintf(m->address, sizeof m->address, "troupe.tcp://demo@host%llu:2552",
             (unsigned long long)uid);
    snprintf(m->roles, sizeof m->roles, "%s", roles);
    m->uid = uid;
    m->status = TRP_MEMBER_UP;
    m->reachable = 1;
    return m;
}

static trp_ref
ref_of(uint32_t number)
{
    return (trp_ref){ 1, number, 1, 0 };
}

static void
scene_step(struct scene *s)
{
    const trpi_router_action *actions;
    uint32_t count;
    UNIT_REQUIRE(trpi_router_step(s->core, s->now_ms, s->members, s->count, &actions, &count) ==
                 TRP_OK);
    for (uint32_t i = 0; i < count; i++) {
        const trpi_router_action *a = &actions[i];
        uint32_t slot = a->ref.slot;
        switch (a->kind) {
        case TRPI_ROUTER_PUT:
            UNIT_TRUE(!s->in_table[slot] && !s->dismissed[slot]);
            UNIT_EQUAL(s->members[a->member].uid, s->node_of[slot]);
            s->in_table[slot] = true;
            s->puts++;
            break;
        case TRPI_ROUTER_TAKE:
            UNIT_TRUE(s->in_table[slot]);
            s->in_table[slot] = false;
            s->takes++;
            break;
        case TRPI_ROUTER_DISMISS:
            UNIT_FALSE(s->dismissed[slot]);
            s->in_table[slot] = false;
            s->dismissed[slot] = true;
            s->dismissals++;
            break;
        case TRPI_ROUTER_MAKE:
            UNIT_FALSE(s->rules.finds);
            UNIT_EQUAL(s->members[a->member].uid, a->uid);
            if (s->failing > 0) {
                s->failing--;
                trpi_router_failed(s->core, s->now_ms, a->uid);
                break;
            }
            s->made++;
            s->node_of[++s->refs] = a->uid;
            s->in_table[s->refs] = true;
            trpi_router_made(s->core, a->uid, ref_of(s->refs));
            break;
        case TRPI_ROUTER_FIND:
            UNIT_TRUE(s->rules.finds);
            UNIT_EQUAL(s->members[a->member].uid, a->uid);
            UNIT_REQUIRE(s->finds_count < 64);
            s->finds[s->finds_count++] = a->number;
            break;
        }
    }
}

/* All that is looked for is found, on the node that is asked. */
static void
scene_find_all(struct scene *s)
{
    while (s->finds_count > 0) {
        uint32_t before, after;
        const trpi_router_routee *routees;
        (void)trpi_router_routees(s->core, &before);
        bool taken = trpi_router_found(s->core, s->finds[--s->finds_count], ref_of(s->refs + 1));
        routees = trpi_router_routees(s->core, &after);
        UNIT_EQUAL(after, before + (taken ? 1 : 0));
        if (taken) {
            s->node_of[++s->refs] = routees[after - 1].uid;
        }
    }
    scene_step(s);
}

static uint32_t
table_count(const struct scene *s, uint64_t uid) /* 0: all */
{
    uint32_t count = 0;
    for (uint32_t i = 1; i <= s->refs; i++) {
        count += s->in_table[i] && (uid == 0 || s->node_of[i] == uid) ? 1 : 0;
    }
    return count;
}

static void
scene_end(struct scene *s)
{
    trpi_router_core_free(s->core);
}

static const trpi_router_rules pool = { 100, 2, false, true, NULL };

/* CROUTE-02, -04: a node comes, is cut off, comes back, leaves */
static void
routees_come_and_go_with_their_nodes(void)
{
    struct scene s;
    scene_start(&s, pool);
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 0), 0); /* CROUTE-14: waits */
    trp_member *one = scene_node(&s, 11, "");
    trp_member *two = scene_node(&s, 22, "");
    one->self = 1;
    two->status = TRP_MEMBER_JOINING;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 11), 2);
    UNIT_EQUAL(table_count(&s, 22), 0);
    two->status = TRP_MEMBER_UP;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 22), 2);
    two->reachable = 0;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 22), 0);
    UNIT_EQUAL(s.dismissals, 0);
    two->reachable = 1;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 22), 2);
    UNIT_EQUAL(s.made, 4); /* the same ones */
    two->status = TRP_MEMBER_LEAVING;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 22), 0);
    UNIT_EQUAL(s.dismissals, 2);
    two->uid = 33; /* the next incarnation of the address */
    two->status = TRP_MEMBER_UP;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 33), 2);
    one->reachable = 0; /* a node does not cut itself off */
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 11), 2);
    UNIT_EQUAL(trpi_router_wake_ms(s.core), UINT64_MAX);
    scene_end(&s);
}

/* CROUTE-02, -06: while a node is cut off the others have its share; a node with too many
 * afterwards gives one up */
static void
a_share_moves_and_is_evened_out(void)
{
    struct scene s;
    trpi_router_rules rules = pool;
    rules.total = 4;
    rules.per_node = 3;
    scene_start(&s, rules);
    (void)scene_node(&s, 11, "");
    trp_member *two = scene_node(&s, 22, "");
    scene_step(&s);
    UNIT_TRUE(table_count(&s, 11) == 2 && table_count(&s, 22) == 2);
    two->reachable = 0;
    scene_step(&s);
    UNIT_TRUE(table_count(&s, 11) == 3 && table_count(&s, 22) == 0);
    two->reachable = 1;
    scene_step(&s);
    UNIT_TRUE(table_count(&s, 11) == 2 && table_count(&s, 22) == 2);
    UNIT_TRUE(s.in_table[1] && s.dismissals == 1); /* the youngest went */
    scene_end(&s);
}

/* router-core-R6: of pools and groups */
static void
a_drained_node_keeps_its_routees_and_gets_no_new_one(void)
{
    for (int finds = 0; finds < 2; finds++) {
        uint32_t per_node = finds ? 1 : 2;
        struct scene s;
        trpi_router_rules rules = pool;
        rules.finds = finds != 0;
        rules.per_node = per_node;
        scene_start(&s, rules);
        trp_member *one = scene_node(&s, 11, "");
        scene_step(&s);
        scene_find_all(&s);
        one->zero[TRPI_MEMBER_DRAINED_AT] = 1;
        trp_member *two = scene_node(&s, 22, "");
        two->zero[TRPI_MEMBER_DRAINED_AT] = 1;
        scene_step(&s);
        scene_find_all(&s);
        UNIT_EQUAL(table_count(&s, 11), per_node);
        UNIT_EQUAL(table_count(&s, 22), 0);
        UNIT_EQUAL(trpi_router_wake_ms(s.core), UINT64_MAX);
        one->reachable = 0; /* cut off and back: it has what it had */
        scene_step(&s);
        one->reachable = 1;
        scene_step(&s);
        UNIT_EQUAL(table_count(&s, 11), per_node);
        UNIT_EQUAL(s.dismissals, 0);
        two->zero[TRPI_MEMBER_DRAINED_AT] = 0;
        scene_step(&s);
        scene_find_all(&s);
        UNIT_EQUAL(table_count(&s, 22), per_node);
        scene_end(&s);
    }
}

/* CROUTE-08, -09, ROLES-03: UseRoleIgnoredSpec, 6 in all and 2 on a node */
static void
roles_and_the_own_node_decide_who_has_routees(void)
{
    static const struct {
        const char *role;
        bool local;
        uint32_t here, b1, b2;
    } cases[] = { { "b", false, 0, 2, 2 }, { "b", true, 0, 2, 2 },  { "a", false, 0, 0, 0 },
                  { "a", true, 2, 0, 0 },  { "c", false, 0, 2, 2 }, { "c", true, 2, 2, 2 },
                  { NULL, true, 2, 2, 2 }, { "d", true, 0, 0, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int finds = 0; finds < 2; finds++) {
            uint32_t per_node = finds ? 1 : 2;
            trpi_router_rules rules = { 6, per_node, finds != 0, cases[i].local, cases[i].role };
            struct scene s;
            scene_start(&s, rules);
            scene_node(&s, 11, "a,c")->self = 1;
            (void)scene_node(&s, 22, "b,c");
            (void)scene_node(&s, 33, "b,c");
            scene_step(&s);
            scene_find_all(&s);
            UNIT_EQUAL(table_count(&s, 11), cases[i].here / 2 * per_node);
            UNIT_EQUAL(table_count(&s, 22), cases[i].b1 / 2 * per_node);
            UNIT_EQUAL(table_count(&s, 33), cases[i].b2 / 2 * per_node);
            scene_end(&s);
        }
    }
}

/* router-core-R5: its own node as well, and the very same routees are back in the end */
static void
a_router_that_is_held_has_an_empty_table_and_dismisses_nobody(void)
{
    for (int finds = 0; finds < 2; finds++) {
        trpi_router_rules rules = { 6, finds ? 1 : 2, finds != 0, true, NULL };
        struct scene s;
        scene_start(&s, rules);
        scene_node(&s, 11, "")->self = 1;
        (void)scene_node(&s, 22, "");
        scene_step(&s);
        scene_find_all(&s);
        uint32_t before = table_count(&s, 0);
        UNIT_EQUAL(before, finds ? 2 : 4);
        trpi_router_hold(s.core, true);
        scene_step(&s);
        UNIT_EQUAL(table_count(&s, 0), 0);
        (void)scene_node(&s, 33, ""); /* nor is anything looked for or made */
        s.now_ms += 60000;
        scene_step(&s);
        UNIT_EQUAL(table_count(&s, 0), 0);
        UNIT_EQUAL(s.finds_count, 0);
        UNIT_EQUAL(s.dismissals, 0);
        s.count = 2;
        trpi_router_hold(s.core, false);
        scene_step(&s);
        UNIT_EQUAL(table_count(&s, 0), before);
        UNIT_EQUAL(s.refs, before);
        scene_end(&s);
    }
}

/* CROUTE-03, -07, -10: found, not there, ended, found again */
static void
what_is_not_there_is_looked_for_again(void)
{
    struct scene s;
    trpi_router_rules rules = { 100, 1, true, true, NULL };
    scene_start(&s, rules);
    trp_member *one = scene_node(&s, 11, "");
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 1);
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 1); /* one question at a time */
    trpi_router_missing(s.core, s.now_ms, s.finds[0]);
    s.finds_count = 0;
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 0);
    UNIT_EQUAL(trpi_router_wake_ms(s.core), s.now_ms + TRPI_ROUTER_RETRY_MS);
    s.now_ms += TRPI_ROUTER_RETRY_MS;
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 1);
    scene_find_all(&s);
    UNIT_EQUAL(table_count(&s, 11), 1);
    s.in_table[1] = false;
    UNIT_TRUE(trpi_router_ended(s.core, s.now_ms, ref_of(1)));
    UNIT_FALSE(trpi_router_ended(s.core, s.now_ms, ref_of(1)));
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 0);
    s.now_ms = trpi_router_wake_ms(s.core);
    scene_step(&s);
    uint32_t old = s.finds[0];
    trpi_router_forget_finds(s.core); /* the router was restarted */
    scene_step(&s);
    UNIT_EQUAL(s.finds_count, 2);
    UNIT_FALSE(trpi_router_found(s.core, old, ref_of(9)));
    one->status = TRP_MEMBER_DOWN; /* found when it is too late */
    s.finds_count = 0;
    UNIT_TRUE(trpi_router_found(s.core, old + 1, ref_of(2)));
    s.node_of[++s.refs] = 11;
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 0), 0);
    UNIT_TRUE(s.dismissed[2]);
    scene_end(&s);
}

/* router-core-R4: refused on one node: the others have its share, and its pauses grow to a bound */
static void
a_node_that_refuses_is_asked_more_rarely(void)
{
    struct scene s;
    trpi_router_rules rules = { 2, 2, false, true, NULL };
    uint64_t pause_ms = TRPI_ROUTER_RETRY_MS;
    scene_start(&s, rules);
    (void)scene_node(&s, 11, "");
    s.failing = 2; /* both shares are refused */
    scene_step(&s);
    UNIT_EQUAL(s.made, 0);
    (void)scene_node(&s, 22, "");
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 22), 2);
    rules.total = 1;
    scene_end(&s);

    scene_start(&s, rules);
    (void)scene_node(&s, 11, "");
    s.failing = 7;
    while (s.failing > 0) {
        uint64_t before_ms = s.now_ms;
        scene_step(&s);
        UNIT_EQUAL(trpi_router_wake_ms(s.core) - before_ms, pause_ms);
        s.now_ms = trpi_router_wake_ms(s.core) - 1;
        uint32_t left = s.failing;
        scene_step(&s);
        UNIT_EQUAL(s.failing, left); /* not yet */
        s.now_ms++;
        pause_ms =
            pause_ms * 2 < TRPI_ROUTER_RETRY_MS_MAX ? pause_ms * 2 : TRPI_ROUTER_RETRY_MS_MAX;
    }
    UNIT_EQUAL(pause_ms, TRPI_ROUTER_RETRY_MS_MAX);
    scene_step(&s);
    UNIT_EQUAL(table_count(&s, 11), 1);
    s.now_ms += TRPI_ROUTER_FORGET_MS + 1;
    s.in_table[1] = false;
    UNIT_TRUE(trpi_router_ended(s.core, s.now_ms, ref_of(1)));
    UNIT_EQUAL(trpi_router_wake_ms(s.core), s.now_ms + TRPI_ROUTER_RETRY_MS);
    scene_end(&s);
}

/* ---- drawn histories ------------------------------------------------------------------------- */

static void
change_something(struct scene *s)
{
    static const uint32_t status[] = { TRP_MEMBER_JOINING, TRP_MEMBER_UP,   TRP_MEMBER_UP,
                                       TRP_MEMBER_LEAVING, TRP_MEMBER_DOWN, TRP_MEMBER_UP };
    trp_member *m = &s->members[draw_below(NODES)];
    switch (draw_below(6)) {
    case 0:
        m->status = status[draw_below(6)];
        break;
    case 1:
        m->reachable ^= 1;
        break;
    case 2: /* the next incarnation */
        m->uid = m->self ? m->uid : 1000 + drawn;
        m->status = TRP_MEMBER_JOINING;
        break;
    case 3:
        for (uint32_t i = 1 + draw_below(s->refs + 1); i <= s->refs; i++) { /* one ends */
            if (s->in_table[i]) {
                s->in_table[i] = false;
                UNIT_TRUE(trpi_router_ended(s->core, s->now_ms, ref_of(i)));
                break;
            }
        }
        break;
    case 4:
        s->failing = draw_below(3);
        break;
    default:
        if (s->finds_count > 0 && draw_below(2) == 0) {
            trpi_router_missing(s->core, s->now_ms, s->finds[--s->finds_count]);
        } else {
            scene_find_all(s);
        }
        break;
    }
    s->now_ms += draw_below(3000);
}

static void
check_laws(const struct scene *s, bool calm)
{
    uint32_t all = table_count(s, 0), room = 0, count;
    const trpi_router_routee *routees = trpi_router_routees(s->core, &count);
    UNIT_REQUIRE(all <= s->rules.total); /* router-core-R1 */
    for (size_t i = 0; i < s->count; i++) {
        const trp_member *m = &s->members[i];
        bool in = trpi_router_standing_of(&s->rules, m) == TRPI_ROUTER_IN;
        uint32_t here = table_count(s, m->uid);
        UNIT_REQUIRE(here <= (in ? s->rules.per_node : 0)); /* router-core-R1, router-core-R2 */
        room += in ? s->rules.per_node : 0;
        all -= here;
    }
    UNIT_REQUIRE(all == 0); /* router-core-R2: nor on a node that has gone */
    for (uint32_t i = 0; i < count; i++) {
        UNIT_REQUIRE(routees[i].active == s->in_table[routees[i].ref.slot]);
    }
    if (calm) { /* as many as there can be */
        UNIT_REQUIRE(table_count(s, 0) == (room < s->rules.total ? room : s->rules.total));
    }
}

/* CROUTE-02 */
static void
laws_hold_over_drawn_histories(void)
{
    unsigned failures_before = unit_failures();
    for (uint32_t seed = 1; seed <= 1000; seed++) {
        struct scene s;
        drawn = (uint64_t)seed << 32;
        bool finds = draw_below(2) == 0;
        trpi_router_rules rules = { 1 + draw_below(14), finds ? 1 : 1 + draw_below(4), finds,
                                    draw_below(2) == 0, draw_below(3) == 0 ? "b" : NULL };
        scene_start(&s, rules);
        for (uint32_t i = 0; i < NODES; i++) {
            (void)scene_node(&s, 1 + i, draw_below(2) == 0 ? "a" : "a,b");
        }
        s.members[draw_below(NODES)].self = 1;
        for (uint32_t i = 0; i < 60; i++) {
            change_something(&s);
            scene_step(&s);
            check_laws(&s, false);
        }
        s.failing = 0;
        for (uint32_t i = 0; i < 8; i++) { /* nothing happens any more, all is found */
            s.now_ms += TRPI_ROUTER_RETRY_MS_MAX;
            scene_step(&s);
            scene_find_all(&s);
        }
        check_laws(&s, true);
        scene_end(&s);
        if (unit_failures() != failures_before) {
            fprintf(stderr, "laws_hold_over_drawn_histories: seed %u\n", seed);
            return;
        }
    }
}

UNIT_BEGIN("router_core")
UNIT(spreading_at_once_is_spreading_one_by_one)
UNIT(totals_and_maxima_hold)
UNIT(routees_come_and_go_with_their_nodes)
UNIT(a_share_moves_and_is_evened_out)
UNIT(a_drained_node_keeps_its_routees_and_gets_no_new_one)
UNIT(roles_and_the_own_node_decide_who_has_routees)
UNIT(a_router_that_is_held_has_an_empty_table_and_dismisses_nobody)
UNIT(what_is_not_there_is_looked_for_again)
UNIT(a_node_that_refuses_is_asked_more_rarely)
UNIT(laws_hold_over_drawn_histories)
UNIT_END
