/* churn_test.c - links that are bad for a while, and a large cluster in which a node is always
 * unreachable; played by whole simulated nodes with the default timings.
 *
 *     TROUPE_SIM_SEEDS=1000 [TROUPE_SIM_FIRST=SEED] tests/sim/churn_test    a 33rd in the large one
 */
#include "tests/sim/stage.h"

static uint64_t
seeds_count(uint64_t otherwise)
{
    const char *text = getenv("TROUPE_SIM_SEEDS");
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static struct sim_world *
default_cluster(uint32_t nodes, uint32_t alive, uint64_t seed)
{
    struct sim_world *w = stage_new(nodes, seed);
    w->member.downing_strategy = "keep-majority";
    w->member.downing.stable_after_ms = 20000;
    w->member.downing.unstable_after_ms = 15000;
    stage_up(w, 1);
    stage_up(w, alive);
    return w;
}

/* A connection that loses packets stalls for seconds; the other observers hear. */
static void
a_link_that_is_silent_for_six_seconds_makes_nobody_unreachable(void)
{
    for (uint32_t nodes = 3; nodes <= 12; nodes += 3) {
        struct sim_world *w = default_cluster(nodes, (1u << nodes) - 1, stage_first_seed());
        stage_events_count = 0;
        for (uint32_t other = 1; other < nodes; other++) {
            stage_link(w, 0, other, true);
            stage_run(w, 6000);
            stage_link(w, 0, other, false);
            stage_run(w, 3000);
        }
        for (uint32_t i = 0; i < stage_events_count; i++) {
            UNIT_TRUE(stage_events[i].event != TRP_CLUSTER_UNREACHABLE);
        }
        stage_end(w);
    }
}

/* A link that stays broken is found, by both ends: a strategy has to decide about it. */
static void
a_link_that_stays_broken_is_found_within_ten_seconds(void)
{
    struct sim_world *w = default_cluster(5, 31, stage_first_seed());
    stage_link(w, 1, 3, true);
    STAGE_AWAIT(w, stage_unreachable(w, 4, 1) || stage_unreachable(w, 4, 3), 10000);
    stage_link(w, 1, 3, false);
    STAGE_AWAIT(w, stage_agree(w, 31), 10000);
    stage_end(w);
}

/* Whether node 7 hears `other`, which hears node 7 all the time. */
static void
hears_from(struct sim_world *w, uint32_t other, bool cut)
{
    w->cut[other * w->nodes_count + 7] = cut;
    w->any_cut = true;
    w->faults++;
}

/* downing-D16: Node 7 hears nobody for 5 s, and node 2 for longer. When both can hear each other
 * again, node 7 dies before it has said so. Meanwhile 9 and 8 crash, so reachability changes. */
static void
what_a_dead_node_said_removes_nobody(void)
{
    uint64_t last = stage_first_seed() + seeds_count(32);
    for (uint64_t seed = stage_first_seed(); seed < last; seed++) {
        struct sim_world *w = stage_new(10, seed);
        w->member.downing_strategy = "keep-majority";
        w->member.downing.stable_after_ms = 5000;
        w->heartbeat.monitored_by_nr_of_members = 9;
        stage_up(w, 0x3ff);
        sim_node_kill(w, 9);
        stage_run(w, 2000);
        for (uint32_t other = 0; other < 10; other++) {
            hears_from(w, other, true);
        }
        stage_run(w, 5000);
        for (uint32_t other = 0; other < 10; other++) {
            hears_from(w, other, other == 2);
        }
        stage_run(w, 1000);
        sim_node_kill(w, 8);
        stage_run(w, 2000);
        hears_from(w, 2, false);
        STAGE_AWAIT(w, !stage_unreachable(w, 2, 7), 5000);
        sim_node_kill(w, 7);
        if (!STAGE_AWAIT(w, stage_agree(w, 0x7f), 60000)) {
            printf("  TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1\n", (unsigned long long)seed);
        }
        stage_end(w);
    }
}

/* ---- a node is always unreachable ------------------------------------------------------------ */

#define CHURN_NODES 30u
#define CHURN_AFTER_S 240u
#define NOT_YET UINT64_MAX

enum pattern {
    TURNS,  /* each 3 s another one is cut off for 8 s: hardly a view is seen by all */
    FLAKY,  /* the same one to three, 5 to 12 s cut off, 1 to 5 s there */
    RANDOM, /* every 3 s in the mean another one, for 5 to 15 s: three at a time */
    PATTERNS
};

struct churn {
    struct sim_world *w;
    enum pattern pattern;
    uint32_t from, to; /* nodes that may be cut off */
    uint32_t faster;   /* than said above */
    uint32_t side;     /* of a cut beside it; 0: none */
    uint64_t next_us;  /* when the next one is cut off */
    struct churn_node {
        bool off, flaky, ran;
        uint64_t change_us;  /* when it is cut off, or back; 0: not planned */
        uint64_t off_us;     /* when it last was */
        uint64_t restart_us; /* when it is started again; 0: not planned */
    } nodes[32];
    uint32_t ended, healthy; /* nodes that stopped; those not cut off for a minute before */
};

static uint64_t
between_us(struct churn *c, uint32_t from_ms, uint32_t to_ms)
{
    return (from_ms + sim_below(c->w, to_ms - from_ms + 1)) * UINT64_C(1000) / c->faster;
}

static void
churn_off(struct churn *c, uint32_t node, uint64_t us)
{
    c->nodes[node].off = true;
    c->nodes[node].off_us = c->w->now_us;
    c->nodes[node].change_us = c->w->now_us + us;
}

static uint32_t
churn_any(struct churn *c)
{
    return c->from + sim_below(c->w, c->to - c->from);
}

static void
churn_begin(struct churn *c, struct sim_world *w, enum pattern pattern, uint32_t flaky)
{
    c->w = w;
    c->pattern = pattern;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        c->nodes[i].ran = w->nodes[i].wanted = w->nodes[i].running;
    }
    for (uint32_t i = 0; pattern == FLAKY && i < flaky; i++) {
        uint32_t node = churn_any(c);
        c->nodes[node].flaky = true;
        c->nodes[node].change_us = w->now_us + 1 + between_us(c, 0, 3000);
    }
}

/* All are back, and stay. */
static void
churn_end(struct churn *c)
{
    for (uint32_t i = 0; i < c->w->nodes_count; i++) {
        c->nodes[i].off = c->nodes[i].flaky = false;
        c->nodes[i].change_us = 0;
    }
    c->next_us = UINT64_MAX;
    c->side = 0;
}

static void
churn_links(struct churn *c)
{
    struct sim_world *w = c->w;
    for (uint32_t a = 0; a < w->nodes_count; a++) {
        for (uint32_t b = 0; b < w->nodes_count; b++) {
            bool apart = ((c->side >> a ^ c->side >> b) & 1) != 0;
            w->cut[a * w->nodes_count + b] =
                a != b && (apart || c->nodes[a].off || c->nodes[b].off);
        }
    }
    w->any_cut = true;
    w->faults++;
}

static void
churn_flap(struct churn *c)
{
    uint64_t now_us = c->w->now_us;
    for (uint32_t i = 0; i < c->w->nodes_count; i++) {
        struct churn_node *n = &c->nodes[i];
        if (n->change_us != 0 && now_us >= n->change_us && n->off) {
            n->off = false;
            n->off_us = now_us;
            n->change_us = n->flaky ? now_us + between_us(c, 1000, 5000) : 0;
        } else if (n->change_us != 0 && now_us >= n->change_us) {
            churn_off(c, i, between_us(c, 5000, 12000));
        }
    }
    if (c->pattern != FLAKY && now_us >= c->next_us) {
        uint32_t node = churn_any(c);
        c->next_us =
            now_us + (c->pattern == TURNS ? between_us(c, 3000, 3000) : between_us(c, 500, 6000));
        if (!c->nodes[node].off) {
            churn_off(c, node,
                      c->pattern == TURNS ? between_us(c, 8000, 8000) : between_us(c, 5000, 15000));
        }
    }
    churn_links(c);
}

/* As systemd does; but not while it is cut off, for the first seed would make a cluster. */
static void
churn_restart(struct churn *c)
{
    uint64_t now_us = c->w->now_us;
    for (uint32_t i = 0; i < c->w->nodes_count; i++) {
        struct churn_node *n = &c->nodes[i];
        bool runs = c->w->nodes[i].running;
        if (n->ran && !runs && c->w->nodes[i].wanted) {
            c->ended++;
            c->healthy += now_us > n->off_us + 60000000 ? 1 : 0;
            n->restart_us = now_us + 3000000;
        }
        if (!runs && n->restart_us != 0 && now_us >= n->restart_us && !n->off && c->side == 0) {
            n->restart_us = 0;
            sim_node_start(c->w, i);
        }
        n->ran = c->w->nodes[i].running;
    }
}

static void
churn_run(struct churn *c, uint64_t ms)
{
    uint64_t end_us = c->w->now_us + ms * 1000;
    while (c->w->now_us < end_us && !c->w->result.failed) {
        churn_flap(c);
        churn_restart(c);
        stage_run(c->w, 100);
    }
}

struct waits { /* until node 0 knows it */
    uint64_t works_ms, up_ms, down_ms, removed_ms, left_ms;
};

static void
note_when(uint64_t *time_ms, bool is_so, uint64_t from_us, const struct sim_world *w)
{
    *time_ms = *time_ms == NOT_YET && is_so ? (w->now_us - from_us) / 1000 : *time_ms;
}

/* After a minute one joins, one crashes and one leaves. */
static struct waits
churn_play(struct churn *c)
{
    struct sim_world *w = c->w;
    struct waits waits = { NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET };
    uint32_t joiner = CHURN_NODES, dead = CHURN_NODES - 1, leaving = CHURN_NODES - 2;
    churn_run(c, 60000);
    uint64_t from_us = w->now_us;
    w->nodes[joiner].wanted = true;
    sim_node_start(w, joiner);
    w->nodes[dead].wanted = w->nodes[leaving].wanted = false;
    sim_node_kill(w, dead);
    sim_node_command(w, leaving, TRPI_MEMBER_LEAVE, leaving);
    while (w->now_us < from_us + CHURN_AFTER_S * 1000000 && !w->result.failed) {
        churn_run(c, 100);
        const trpi_gossip_member *at = stage_member(w, 0, joiner);
        uint32_t status = stage_status(w, 0, dead);
        uint32_t joined = at == NULL ? 0 : trpi_member_status(at);
        bool runs = stage_members(w, 0) > 0;
        note_when(&waits.works_ms, joined == TRP_MEMBER_UP || joined == TRP_MEMBER_WEAKLY_UP,
                  from_us, w);
        note_when(&waits.up_ms, joined == TRP_MEMBER_UP, from_us, w);
        note_when(&waits.down_ms, runs && (status == 0 || status == TRP_MEMBER_DOWN), from_us, w);
        note_when(&waits.removed_ms, runs && status == 0, from_us, w);
        note_when(&waits.left_ms, runs && stage_status(w, 0, leaving) == 0, from_us, w);
    }
    return waits;
}

/* DownAllUnstable5NodeSpec where the steady ones are enough; with the defaults */
static void
a_minority_that_comes_and_goes_ends_nobody_else(void)
{
    static const char *const names[] = { "turns", "flaky", "random" };
    const char *strategy = getenv("TROUPE_SIM_STRATEGY");
    uint64_t seeds = (seeds_count(200) + 32) / 33, last = stage_first_seed() + seeds, late = 0;
    for (uint64_t seed = stage_first_seed(); seed < last; seed++) {
        bool weakly = (seed / PATTERNS & 1) != 0;
        struct churn c = { .from = 3, .to = CHURN_NODES - 3, .faster = 1 };
        struct sim_world *w = stage_new(CHURN_NODES + 1, seed);
        w->member.downing_strategy = strategy != NULL ? strategy : "keep-majority";
        w->member.downing.quorum_size = CHURN_NODES / 2 + 1;
        w->member.downing.referee = w->nodes[1].id.address;
        w->member.downing.stable_after_ms = 20000;
        w->member.downing.unstable_after_ms = 15000;
        w->member.weakly_up_after_ms = weakly ? 7000 : 0;
        stage_up(w, 1);
        stage_up(w, (1u << CHURN_NODES) - 1);
        churn_begin(&c, w, (enum pattern)(seed % PATTERNS), 1 + (uint32_t)(seed / PATTERNS % 3));
        struct waits t = churn_play(&c);
        printf("  seed %llu, %s%s: works %lld, up %lld, down %lld, removed %lld, left %lld ms; %u "
               "ended, %u of them healthy\n",
               (unsigned long long)seed, names[c.pattern], weakly ? " (weakly up)" : "",
               (long long)t.works_ms, (long long)t.up_ms, (long long)t.down_ms,
               (long long)t.removed_ms, (long long)t.left_ms, c.ended, c.healthy);
        UNIT_TRUE(c.healthy <= 2); /* 1 of 200 seeds has one; when all stopped it was 28 */
        UNIT_TRUE(t.down_ms < 120000);
        UNIT_TRUE(!weakly || t.works_ms < 60000);
        late += c.pattern != TURNS && (t.up_ms == NOT_YET || t.removed_ms == NOT_YET) ? 1 : 0;
        churn_end(&c);
        churn_run(&c, 60000);
        UNIT_TRUE(stage_agree(w, 0x4fffffff));
        stage_end(w);
    }
    UNIT_TRUE(late * 10 <= seeds); /* 9 of 200 seeds: not within four minutes */
}

/* All running nodes have one view. */
static bool
is_one_cluster(const struct sim_world *w)
{
    uint32_t alive = stage_alive(w);
    return __builtin_popcount(alive) <= 1 || stage_agree(w, alive);
}

/* Times are a fourth of the defaults. A node crashes, another joins, and then two sides are cut off
 * from one another while on both members come and go. (Not lease: its owner may stop as unstable,
 * and the lock with it, which is the price that the handbook names.) */
static void
a_cut_beside_it_never_leaves_two_sides(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee" };
    const char *only = getenv("TROUPE_SIM_STRATEGY");
    uint64_t last = stage_first_seed() + seeds_count(40), survived = 0;
    for (uint64_t seed = stage_first_seed(); seed < last; seed++) {
        const char *strategy = only != NULL ? only : strategies[seed % 4];
        uint32_t nodes = 3 + (uint32_t)(seed / 4 % 8);
        struct churn c = { .from = 0, .to = nodes, .faster = 2 };
        struct sim_world *w = stage_new(nodes, seed);
        w->member.downing_strategy = strategy;
        w->member.downing.quorum_size = nodes / 2 + 1;
        w->member.downing.referee = w->nodes[seed % nodes].id.address;
        w->member.downing.stable_after_ms = 5000;
        w->member.downing.unstable_after_ms = 4000;
        uint32_t late = sim_chance(w, 0.5) ? nodes - 1 : nodes;
        stage_up(w, (1u << late) - 1);
        churn_begin(&c, w, (enum pattern)sim_below(w, PATTERNS), 1 + sim_below(w, 3));
        w->nodes[0].wanted = false; /* the first seed would make a cluster */
        churn_run(&c, sim_below(w, 20000));
        if (late < nodes) {
            sim_node_start(w, late);
            w->nodes[late].wanted = true;
        }
        if (sim_chance(w, 0.5)) {
            uint32_t dead = sim_below(w, nodes);
            w->nodes[dead].wanted = false;
            sim_node_kill(w, dead);
        }
        churn_run(&c, sim_below(w, 10000));
        c.side = 1 + sim_below(w, (1u << nodes) - 2);
        churn_run(&c, 10000 + sim_below(w, 50000));
        for (uint32_t i = 0; i < nodes; i++) {
            w->nodes[i].wanted =
                false; /* an ended node does not come back: sides stay to be seen */
        }
        churn_run(&c, 10000);
        churn_end(&c);
        churn_links(&c);
        if (!STAGE_AWAIT(w, is_one_cluster(w), 60000)) {
            printf("  not one cluster: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 "
                   "TROUPE_SIM_STRATEGY=%s\n",
                   (unsigned long long)seed, strategy);
        }
        survived += stage_alive(w) != 0;
        stage_end(w);
    }
    printf("  in %llu runs a cluster is left\n", (unsigned long long)survived);
}

UNIT_BEGIN("churn")
UNIT(a_link_that_is_silent_for_six_seconds_makes_nobody_unreachable)
UNIT(a_link_that_stays_broken_is_found_within_ten_seconds)
UNIT(what_a_dead_node_said_removes_nobody)
UNIT(a_minority_that_comes_and_goes_ends_nobody_else)
UNIT(a_cut_beside_it_never_leaves_two_sides)
UNIT_END
