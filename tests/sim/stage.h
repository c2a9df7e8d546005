/* stage.h - a simulated cluster that a test directs: it starts nodes, cuts links, and reads a
 * node's view at any moment. The simulator is cluster/sim, so all invariants of S are checked on
 * the way. Delays come from a seed; a failure prints it, and TROUPE_SIM_FIRST=SEED replays it.
 */
#ifndef TESTS_SIM_STAGE_H
#define TESTS_SIM_STAGE_H

#include <stdlib.h>

#include "cluster/sim/world.h"
#include "tests/unit/unit.h"

#define STAGE_EVENTS_MAX 4096

struct stage_event {
    uint64_t at_us;
    uint32_t node, event;
    uint64_t uid;
};
static struct stage_event stage_events[STAGE_EVENTS_MAX];
static uint32_t stage_events_count;

static inline void
stage_heard(struct sim_world *w, uint32_t node, const trpi_member_action *action)
{
    if (action->event <= TRP_CLUSTER_REACHABLE && stage_events_count < STAGE_EVENTS_MAX) {
        stage_events[stage_events_count++] =
            (struct stage_event){ w->now_us, node, action->event,
                                  action->published.member.member.uid };
    }
}

static inline uint64_t
stage_first_seed(void)
{
    const char *text = getenv("TROUPE_SIM_FIRST");
    return text == NULL ? 1 : strtoull(text, NULL, 10);
}

/* n nodes, of which none has started. */
static inline struct sim_world *
stage_new(uint32_t nodes, uint64_t seed)
{
    trpi_sim_options options = { .nodes = nodes, .seed = seed };
    struct sim_world *w;
    UNIT_REQUIRE(sim_world_new(&options, &w) == TRP_OK);
    w->on_event = stage_heard;
    stage_events_count = 0;
    return w;
}

/* No invariant broke. */
static inline void
stage_end(struct sim_world *w)
{
    if (!UNIT_TRUE(!w->result.failed)) {
        printf("  seed %llu: %s\n", (unsigned long long)w->options.seed, w->result.failure);
    }
    sim_world_free(w);
}

static inline void
stage_run(struct sim_world *w, uint64_t ms)
{
    sim_run_until(w, w->now_us + ms * 1000);
}

/* Play until the condition holds, at most for so long; evaluates to whether it does. */
#define STAGE_AWAIT(w, condition, limit_ms)                                                        \
    __extension__({                                                                                \
        uint64_t stage_end_us_ = (w)->now_us + (uint64_t)(limit_ms)*1000;                          \
        while (!(w)->result.failed && (w)->now_us < stage_end_us_ && !(condition)) {               \
            stage_run((w), 10);                                                                    \
        }                                                                                          \
        UNIT_TRUE(condition);                                                                      \
    })

/* ---- what `at` knows ------------------------------------------------------------------------- */

static inline const trpi_gossip_member *
stage_member(const struct sim_world *w, uint32_t at, uint32_t of)
{
    const trpi_gossip *g = w->nodes[at].running ? trpi_member_view(w->nodes[at].core) : NULL;
    uint32_t i = TRPI_GOSSIP_NONE;
    if (g != NULL && w->nodes[of].incarnation > 0) {
        i = trpi_gossip_find(g, trpi_ident_key(&w->nodes[of].id));
    }
    return i == TRPI_GOSSIP_NONE ? NULL : &g->members[i];
}

/* 0: it is no member there. */
static inline uint32_t
stage_status(const struct sim_world *w, uint32_t at, uint32_t of)
{
    const trpi_gossip_member *m = stage_member(w, at, of);
    return m == NULL ? 0 : m->status;
}

static inline bool
stage_unreachable(const struct sim_world *w, uint32_t at, uint32_t of)
{
    const trpi_gossip_member *m = stage_member(w, at, of);
    return m != NULL && m->unreachable != 0;
}

static inline uint32_t
stage_members(const struct sim_world *w, uint32_t at)
{
    const trpi_gossip *g = w->nodes[at].running ? trpi_member_view(w->nodes[at].core) : NULL;
    return g == NULL ? 0 : g->members_count;
}

/* Node of a member of a view; UINT32_MAX: none. */
static inline uint32_t
stage_node(const struct sim_world *w, const trpi_gossip *g, uint32_t member)
{
    for (uint32_t i = 0; i < w->nodes_count && member != TRPI_GOSSIP_NONE; i++) {
        if (w->nodes[i].id.uid == g->members[member].ident->id.uid) {
            return i;
        }
    }
    return UINT32_MAX;
}

static inline uint32_t
stage_leader(const struct sim_world *w, uint32_t at)
{
    const trpi_gossip *g = trpi_member_view(w->nodes[at].core);
    return stage_node(w, g, trpi_gossip_leader(g, trpi_member_self(w->nodes[at].core)->key, NULL));
}

static inline uint32_t
stage_oldest(const struct sim_world *w, uint32_t at)
{
    const trpi_gossip *g = trpi_member_view(w->nodes[at].core);
    return stage_node(w, g, trpi_gossip_oldest(g, NULL));
}

/* Return the nodes that have seen the version of `at`, as it knows; bit n is node n. */
static inline uint32_t
stage_seen(const struct sim_world *w, uint32_t at)
{
    const trpi_gossip *g = trpi_member_view(w->nodes[at].core);
    uint32_t mask = 0;
    for (uint32_t i = 0; g != NULL && i < g->members_count; i++) {
        uint32_t node = stage_node(w, g, i); /* none: of an incarnation that is over */
        if (node != UINT32_MAX && trpi_seen_get(trpi_member_seen(w->nodes[at].core), i)) {
            mask |= 1u << node;
        }
    }
    return mask;
}

/* ---- knowledge of all nodes of a set; bit n of `who` is node n ------------------------------- */

static inline bool
stage_all(const struct sim_world *w, uint32_t who, uint32_t of, uint32_t status)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if ((who >> i & 1) != 0 && stage_status(w, i, of) != status) {
            return false;
        }
    }
    return true;
}

static inline bool
stage_all_unreachable(const struct sim_world *w, uint32_t who, uint32_t of, bool unreachable)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if ((who >> i & 1) != 0 && stage_unreachable(w, i, of) != unreachable) {
            return false;
        }
    }
    return true;
}

/* Exactly these are members, all Up, and each knows that all have seen it. */
static inline bool
stage_agree(const struct sim_world *w, uint32_t who)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if ((who >> i & 1) != 0 &&
            (!sim_is_member(&w->nodes[i]) || stage_seen(w, i) != who ||
             stage_members(w, i) != (uint32_t)__builtin_popcount(who) ||
             !trpi_member_is_converged(w->nodes[i].core) || !stage_all(w, who, i, TRP_MEMBER_UP))) {
            return false;
        }
    }
    return true;
}

/* Bit n: node n runs as a member. */
static inline uint32_t
stage_alive(const struct sim_world *w)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        mask |= sim_is_member(&w->nodes[i]) ? 1u << i : 0;
    }
    return mask;
}

/* How often node `at` was told it of the present incarnation of `of`, since the last clearing. */
static inline uint32_t
stage_told(const struct sim_world *w, uint32_t at, uint32_t event, uint32_t of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage_events_count; i++) {
        const struct stage_event *e = &stage_events[i];
        count += e->node == at && e->event == event && e->uid == w->nodes[of].id.uid ? 1 : 0;
    }
    return count;
}

/* ---- direction ------------------------------------------------------------------------------- */

/* Set the seeds of nodes that start from now on. */
static inline void
stage_seeds(struct sim_world *w, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        w->addresses[i] = w->nodes[first + i].id.address;
    }
    w->seeds_count = count;
}

/* Start all nodes of the set at once: they start and become one cluster. */
static inline void
stage_up(struct sim_world *w, uint32_t who)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        if ((who >> i & 1) != 0 && !w->nodes[i].running) {
            sim_node_start(w, i);
        }
    }
    STAGE_AWAIT(w, stage_agree(w, who), 20000);
    stage_run(w, 5000); /* some heartbeats */
}

static inline struct sim_world *
stage_cluster(uint32_t nodes, const char *strategy)
{
    struct sim_world *w = stage_new(nodes, stage_first_seed());
    w->member.downing_strategy = strategy;
    w->member.downing.stable_after_ms = 5000;
    stage_up(w, (1u << nodes) - 1);
    return w;
}

/* The link between two nodes, both ways, until it is mended. */
static inline void
stage_link(struct sim_world *w, uint32_t a, uint32_t b, bool cut)
{
    w->cut[a * w->nodes_count + b] = cut;
    w->cut[b * w->nodes_count + a] = cut;
    w->any_cut = w->any_cut || cut;
    w->faults++;
}

/* All links between nodes of the set and the others. */
static inline void
stage_split(struct sim_world *w, uint32_t side, bool cut)
{
    for (uint32_t a = 0; a < w->nodes_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            if ((side >> a & 1) != (side >> b & 1)) {
                stage_link(w, a, b, cut);
            }
        }
    }
}

#endif
