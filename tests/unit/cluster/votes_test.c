/* Changes of votes: what a node knows of them, and that it stays only when it would in every
 * combination of those that are open (DOWN; votes.c says why that is enough). */
#include "base/hash.h"
#include "cluster/engine/downing_split.h"
#include "tests/unit/cluster/scene.h"

static uint32_t
draw_below(uint64_t *state, uint32_t bound)
{
    *state = trpi_hash_u64(*state + 0x9e3779b97f4a7c15u);
    return (uint32_t)(*state % bound);
}

/* ---- what is known --------------------------------------------------------------------------- */

struct known {
    trpi_ident *idents[5];
    trpi_gossip *view;
    trpi_votes votes;
};

/* Statuses of members 0, 1, ...; 0: it is not there. A member that is Up or later has an Up-number.
 */
static struct known
known_of(const uint32_t *status, uint32_t n)
{
    struct known k = { .view = trpi_gossip_new() };
    for (uint32_t i = 0; i < n; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        const char *role = "r";
        UNIT_REQUIRE(trpi_ident_new(&id, &role, 1, "1", &k.idents[i]) == TRP_OK);
        if (status[i] != 0) {
            UNIT_EQUAL(trpi_gossip_add(k.view, k.idents[i], status[i],
                                       status[i] == TRP_MEMBER_JOINING ? 0 : i + 1),
                       TRP_OK);
        }
    }
    UNIT_REQUIRE(trpi_gossip_freeze(k.view) == TRP_OK);
    UNIT_REQUIRE(trpi_votes_init(&k.votes, k.view) == TRP_OK);
    return k;
}

static void
known_end(struct known *k)
{
    for (uint32_t i = 0; i < 5; i++) {
        trpi_ident_unref(k->idents[i]);
    }
    trpi_votes_fini(&k->votes);
    trpi_gossip_unref(k->view);
}

static bool
learn_votes(struct known *k, uint32_t mask)
{
    trpi_seen seen;
    UNIT_REQUIRE(trpi_seen_init(&seen, k->view->members_count) == TRP_OK);
    for (uint32_t i = 0; i < k->view->members_count; i++) {
        if ((mask >> i & 1) != 0) {
            trpi_seen_set(&seen, i);
        }
    }
    bool news = trpi_votes_learn(&k->votes, k->view, &seen);
    trpi_seen_fini(&seen);
    return news;
}

#define VOTES(k, index) trpi_votes_of(&(k).votes, (index))

/* votes-N1: also a Down or Joining member, but not one known to know that it leaves */
static void
a_change_is_sure_when_every_member_has_seen_it(void)
{
    static const uint32_t first[] = { TRP_MEMBER_UP, TRP_MEMBER_EXITING, TRP_MEMBER_UP };
    static const uint32_t then[] = { TRP_MEMBER_UP, TRP_MEMBER_EXITING, TRP_MEMBER_LEAVING,
                                     TRP_MEMBER_JOINING, TRP_MEMBER_DOWN };
    struct known a = known_of(first, 3);
    UNIT_FALSE(learn_votes(&a, 0x3));
    UNIT_EQUAL(VOTES(a, 0), TRPI_VOTE_OPEN);
    UNIT_EQUAL(VOTES(a, 1), TRPI_VOTE_OPEN);
    UNIT_EQUAL(trpi_votes_open(&a.votes, a.view), 3);
    UNIT_TRUE(learn_votes(&a, 0x7));
    UNIT_FALSE(learn_votes(&a, 0x7)); /* no news */
    UNIT_EQUAL(VOTES(a, 0), TRPI_VOTE_YES);
    UNIT_EQUAL(VOTES(a, 1), TRPI_VOTE_NO);
    UNIT_EQUAL(trpi_votes_open(&a.votes, a.view), 0);
    struct known b = known_of(then, 5);
    UNIT_FALSE(trpi_votes_join(&b.votes, b.view, &b.votes, b.view));
    UNIT_TRUE(trpi_votes_join(&b.votes, b.view, &a.votes, a.view));
    UNIT_EQUAL(VOTES(b, 1), TRPI_VOTE_NO);
    UNIT_EQUAL(VOTES(b, 2), TRPI_VOTE_YES); /* Leaving is no change of a vote */
    UNIT_EQUAL(VOTES(b, 4), TRPI_VOTE_OPEN);
    UNIT_FALSE(learn_votes(&b, 0x17));
    UNIT_FALSE(learn_votes(&b, 0x0f));
    UNIT_TRUE(learn_votes(&b, 0x1d)); /* 1 knows that it leaves */
    UNIT_EQUAL(VOTES(b, 4), TRPI_VOTE_YES);
    known_end(&a);
    known_end(&b);
}

/* votes-N2, votes-N3 */
static void
what_is_sure_of_one_change_is_not_of_the_next(void)
{
    static const uint32_t up[] = { TRP_MEMBER_UP, TRP_MEMBER_UP, TRP_MEMBER_JOINING };
    static const uint32_t exiting[] = { TRP_MEMBER_UP, TRP_MEMBER_EXITING, TRP_MEMBER_UP };
    static const uint32_t down[] = { TRP_MEMBER_UP, TRP_MEMBER_DOWN, TRP_MEMBER_UP };
    struct known a = known_of(up, 3), b = known_of(exiting, 3), c = known_of(down, 3);
    UNIT_TRUE(learn_votes(&a, 0x7));
    UNIT_TRUE(trpi_votes_join(&b.votes, b.view, &a.votes, a.view));
    UNIT_EQUAL(VOTES(b, 0), TRPI_VOTE_YES);
    UNIT_EQUAL(VOTES(b, 1), TRPI_VOTE_OPEN); /* it was sure to be Up */
    UNIT_EQUAL(VOTES(b, 2), TRPI_VOTE_OPEN); /* it was sure to have joined */
    UNIT_TRUE(trpi_votes_join(&c.votes, c.view, &a.votes, a.view));
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_YES); /* no node here has heard that it was Exiting */
    UNIT_FALSE(trpi_votes_join(&c.votes, c.view, &b.votes, b.view));
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_OPEN);
    UNIT_TRUE(learn_votes(&c, 0x7)); /* all have seen it Down: not Exiting */
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_OPEN);
    UNIT_EQUAL(VOTES(c, 2), TRPI_VOTE_YES);
    UNIT_TRUE(learn_votes(&b, 0x7));
    UNIT_TRUE(trpi_votes_join(&c.votes, c.view, &b.votes, b.view));
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_NO);
    UNIT_FALSE(trpi_votes_join(&c.votes, c.view, &a.votes, a.view)); /* older news change nothing */
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_NO);
    known_end(&a);
    known_end(&b);
    known_end(&c);
}

/* Of a Down member only that it was Exiting: a bit cannot say more. */
static void
what_is_told_to_others_is_what_they_need(void)
{
    static const uint32_t before[] = { TRP_MEMBER_UP, TRP_MEMBER_EXITING, TRP_MEMBER_UP };
    static const uint32_t down[] = { TRP_MEMBER_UP, TRP_MEMBER_DOWN, TRP_MEMBER_DOWN };
    struct known a = known_of(before, 3), b = known_of(down, 3), c = known_of(down, 3);
    bool news = false;
    UNIT_TRUE(learn_votes(&a, 0x7));
    UNIT_TRUE(trpi_votes_join(&b.votes, b.view, &a.votes, a.view));
    UNIT_EQUAL(VOTES(b, 1), TRPI_VOTE_NO);
    UNIT_EQUAL(VOTES(b, 2), TRPI_VOTE_YES);
    UNIT_EQUAL(trpi_votes_hear(&c.votes, c.view, &b.votes.told, b.view, &news), TRP_OK);
    UNIT_TRUE(news);
    UNIT_EQUAL(VOTES(c, 0), TRPI_VOTE_YES);
    UNIT_EQUAL(VOTES(c, 1), TRPI_VOTE_NO);
    UNIT_EQUAL(VOTES(c, 2), TRPI_VOTE_OPEN);
    UNIT_EQUAL(trpi_votes_hear(&c.votes, c.view, &b.votes.told, b.view, &news), TRP_OK);
    UNIT_FALSE(news);
    known_end(&a);
    known_end(&b);
    known_end(&c);
}

/* ---- every combination ----------------------------------------------------------------------- */

/* A strategy's decision for exactly these voters; bit i: members[i]. It shares no code with it. */
static bool
stays_with(const trpi_votes_question *q, uint32_t voters, uint32_t ours)
{
    const trpi_gossip *g = q->gossip;
    trpi_side mine = { 0 }, others = { 0 };
    uint32_t oldest = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if ((voters >> i & 1) != 0 &&
            (oldest == TRPI_GOSSIP_NONE ||
             g->members[i].up_number - 1 < g->members[oldest].up_number - 1)) {
            oldest = i;
        }
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        trpi_side *side = (ours >> i & 1) != 0 ? &mine : &others;
        if ((voters >> i & 1) != 0) {
            side->lowest = side->lowest || (mine.votes + others.votes) == 0;
            side->oldest = side->oldest || i == oldest;
            side->votes++;
        }
        side->referee = side->referee ||
                        trpi_address_equal(&g->members[i].ident->id.address, &q->options->referee);
    }
    const char *why;
    return q->stays(q->options, mine, others, &why);
}

static bool
stays_with_all(const trpi_votes_question *q, uint32_t ours, bool joined)
{
    const trpi_gossip *g = q->gossip;
    uint32_t yes = 0, open = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (g->members[i].up_number != 0 || joined) {
            trpi_vote vote = trpi_votes_of(q->votes, i);
            yes |= vote == TRPI_VOTE_YES ? 1u << i : 0;
            open |= vote == TRPI_VOTE_OPEN ? 1u << i : 0;
        }
    }
    for (uint32_t some = open;; some = (some - 1) & open) {
        bool stays = (yes | some) == 0 && !joined ? stays_with_all(q, ours, true)
                                                  : stays_with(q, yes | some, ours);
        if (!stays || some == 0) {
            return stays;
        }
    }
}

static void
the_worst_combinations_stand_for_all(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee" };
    static const uint32_t kinds[] = { 0,
                                      0,
                                      SCENE_OPEN,
                                      SCENE_OPEN,
                                      TRP_MEMBER_JOINING,
                                      TRP_MEMBER_JOINING | SCENE_OPEN,
                                      TRP_MEMBER_EXITING,
                                      TRP_MEMBER_EXITING | SCENE_SURE,
                                      TRP_MEMBER_LEAVING };
    uint32_t stayed = 0;
    for (uint64_t seed = 1; seed <= 40000; seed++) {
        uint64_t state = seed;
        uint32_t n = 1 + draw_below(&state, 6), ours = 0, marks[SCENE_MEMBERS_MAX];
        uint32_t status[SCENE_MEMBERS_MAX], few = draw_below(&state, 3) == 0 ? 2 : 0;
        trpi_downing_options options = { .quorum_size = 1 + draw_below(&state, n),
                                         .least_nodes = 1 + draw_below(&state, 3),
                                         .keep_lone_oldest = draw_below(&state, 2) == 0,
                                         .referee = mesh_id(draw_below(&state, n), 0).address };
        trpi_side_part part = (trpi_side_part)draw_below(&state, 3);
        for (uint32_t i = 0; i < n; i++) {
            status[i] = kinds[few + draw_below(&state, 9 - few)];
            marks[i] = draw_below(&state, 4);
            bool here = marks[i] == TRPI_MARK_CLEAR ||
                        (marks[i] == TRPI_MARK_BROKEN && part >= TRPI_PART_OURS) ||
                        (marks[i] == TRPI_MARK_UNSURE && part >= TRPI_PART_HOPED);
            ours |= here && status[i] % SCENE_NEVER_UP != TRP_MEMBER_EXITING ? 1u << i : 0;
        }
        struct scene s;
        scene_make(&s, n, status);
        for (uint32_t i = 0; i < n; i++) { /* not the order of the addresses */
            s.view->members[i].up_number =
                s.view->members[i].up_number == 0 ? 0 : 1 + (s.view->members[i].up_number * 5) % 7;
        }
        UNIT_EQUAL(trpi_gossip_freeze(s.view), TRP_OK);
        scene_votes(&s);
        const trpi_downing_ops *ops = trpi_downing_find(strategies[seed % 4]);
        trpi_votes_question q = { .options = &options,
                                  .gossip = s.view,
                                  .votes = &s.votes,
                                  .marks = marks,
                                  .stays = ops->stays,
                                  .by_age = ops->spare == TRPI_SPARE_OLDEST };
        const char *why = NULL;
        bool stays = trpi_votes_stay(&q, part, &why);
        if (!UNIT_EQUAL(stays, stays_with_all(&q, ours, false))) {
            printf("  seed %llu: %s\n", (unsigned long long)seed, ops->name);
        }
        stayed += stays ? 1 : 0;
        scene_end(&s);
    }
    UNIT_TRUE(stayed > 4000);
}

/* ---- at most one side ------------------------------------------------------------------------ */

struct change {
    uint32_t member, seen; /* bit i: member i has seen it */
    uint32_t knows;        /* and knows that all have */
    bool up;
};

struct model {
    uint32_t n, changes_count, parts[3];
    struct change changes[3];
};

static void
draw_model(uint64_t *state, struct model *m)
{
    static const uint32_t odds[] = { 3, 7, 10 };
    *m = (struct model){ .n = 2 + draw_below(state, 6) };
    uint32_t wanted = 1 + draw_below(state, 3), taken = 0;
    for (uint32_t k = 0; k < wanted; k++) {
        struct change c = { .member = draw_below(state, m->n), .up = draw_below(state, 2) == 0 };
        uint32_t likely = odds[draw_below(state, 3)];
        for (uint32_t i = 0; i < m->n; i++) {
            c.seen |= draw_below(state, 10) < likely ? 1u << i : 0;
            c.knows |= draw_below(state, 2) == 0 ? 1u << i : 0;
        }
        c.seen |= 1u << draw_below(state, m->n);
        c.knows = c.seen == (1u << m->n) - 1 ? c.knows : 0;
        if ((taken >> c.member & 1) == 0) {
            taken |= 1u << c.member;
            m->changes[m->changes_count++] = c;
        }
    }
    for (uint32_t i = 0; i < m->n; i++) {
        m->parts[draw_below(state, 3)] |= 1u << i;
    }
}

/* How one part sees all members. Returns those of it that decide: an Exiting member does not. */
static uint32_t
part_statuses(uint64_t *state, const struct model *m, uint32_t part, uint32_t *status)
{
    uint32_t decides = part;
    for (uint32_t i = 0; i < m->n; i++) {
        status[i] = draw_below(state, 6) == 0 ? TRP_MEMBER_LEAVING : 0;
    }
    for (uint32_t k = 0; k < m->changes_count; k++) {
        const struct change *c = &m->changes[k];
        bool seen = (c->seen & part) != 0, sure = (c->knows & part) != 0;
        if (c->up) {
            status[c->member] = !seen ? TRP_MEMBER_JOINING : sure ? 0 : SCENE_OPEN;
        } else if (seen) {
            status[c->member] = TRP_MEMBER_EXITING | (sure ? SCENE_SURE : 0);
            decides &= ~(1u << c->member);
        }
    }
    return decides;
}

/* The model of the rule: some made Up, some Exiting, each seen by some, and where all have seen it
 * some know that. However it falls apart, at most one part stays, and its members decide alike. */
static void
of_any_parts_at_most_one_stays_while_votes_change(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee", "down-all" };
    const char *text = getenv("TROUPE_VOTES_SEEDS");
    uint64_t count = text == NULL ? 15000 : strtoull(text, NULL, 10);
    uint64_t stayed = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t state = seed;
        struct model m;
        draw_model(&state, &m);
        trpi_downing_options options = { .stable_after_ms = 20000,
                                         .quorum_size = m.n / 2 + 1,
                                         .least_nodes = 1,
                                         .keep_lone_oldest = draw_below(&state, 2) == 0,
                                         .referee = mesh_id(draw_below(&state, m.n), 0).address };
        uint32_t staying = 0, mixed = 0;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t status[SCENE_MEMBERS_MAX];
            uint32_t decides = part_statuses(&state, &m, m.parts[i], status);
            enum fate fate = decides == 0 || m.parts[i] == (1u << m.n) - 1
                                 ? FATE_STOPS
                                 : fate_of(strategies[seed % 5], &options, m.n, decides, status);
            staying += fate == FATE_STAYS ? 1 : 0;
            mixed += fate == FATE_MIXED ? 1 : 0;
        }
        if (staying > 1 || mixed > 0) {
            printf("  seed %llu: %s, %u members\n", (unsigned long long)seed, strategies[seed % 5],
                   m.n);
        }
        UNIT_TRUE(staying <= 1);
        UNIT_EQUAL(mixed, 0);
        stayed += staying;
    }
    UNIT_TRUE(stayed > count / 5);
}

/* Decision 150: of three the oldest, 0, has left and started again as 3. One is alone, and one is
 * with the successor. */
static enum trpi_downing_verdict
with_a_restarted_oldest(uint32_t self, uint32_t oldest, bool successor, uint32_t mask)
{
    struct scene s;
    trpi_downing_options options = { .stable_after_ms = 20000 };
    uint32_t status[SCENE_MEMBERS_MAX] = { oldest };
    const char *role = "even";
    trpi_node_id id = mesh_id(0, 777);
    scene_make(&s, 3, status);
    UNIT_REQUIRE(trpi_ident_new(&id, &role, 1, "1", &s.idents[3]) == TRP_OK);
    if (successor) {
        UNIT_EQUAL(trpi_gossip_add(s.view, s.idents[3], TRP_MEMBER_JOINING, 0), TRP_OK);
    }
    scene_row(&s, self, self == 1 ? 2 : 1);
    trpi_downing_verdict verdict = scene_decide(&s, "keep-majority", &options, self, mask);
    scene_end(&s);
    return verdict;
}

static void
of_one_alone_and_one_with_a_restarted_oldest_at_most_one_stays(void)
{
    const uint32_t exiting = TRP_MEMBER_EXITING, sure = TRP_MEMBER_EXITING | SCENE_SURE;
    /* both have seen it Exiting, and neither knows of the other */
    UNIT_EQUAL(with_a_restarted_oldest(1, exiting, false, 0x2), TRPI_DOWNING_DOWN_SELF);
    UNIT_EQUAL(with_a_restarted_oldest(2, exiting, true, 0xc), TRPI_DOWNING_DOWN_SELF);
    /* a node alone knows that the other has seen it: they are two */
    UNIT_EQUAL(with_a_restarted_oldest(1, sure, false, 0x2), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(with_a_restarted_oldest(2, exiting, true, 0xc), TRPI_DOWNING_DOWN_SELF);
    /* the other knows */
    UNIT_EQUAL(with_a_restarted_oldest(2, sure, true, 0xc), TRPI_DOWNING_DOWN_SELF);
    /* the other has not seen it: the successor stands in its place */
    UNIT_EQUAL(with_a_restarted_oldest(1, exiting, false, 0x2), TRPI_DOWNING_DOWN_SELF);
    UNIT_EQUAL(with_a_restarted_oldest(2, TRP_MEMBER_DOWN, true, 0xc), TRPI_DOWNING_DOWN_MEMBERS);
}

UNIT_BEGIN("votes")
UNIT(a_change_is_sure_when_every_member_has_seen_it)
UNIT(what_is_sure_of_one_change_is_not_of_the_next)
UNIT(what_is_told_to_others_is_what_they_need)
UNIT(the_worst_combinations_stand_for_all)
UNIT(of_any_parts_at_most_one_stays_while_votes_change)
UNIT(of_one_alone_and_one_with_a_restarted_oldest_at_most_one_stays)
UNIT_END
