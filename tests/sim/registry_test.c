/* registry_test.c - the registry by typed key in complete nodes, under seeds: actors are
 * registered, taken out and end all the time, while nodes are killed and start again, stand still
 * and are cut off. An actor of each node subscribes to each key (TYPED-4).
 *
 *     TROUPE_SIM_SEEDS=1000 [TROUPE_SIM_FIRST=SEED] tests/sim/registry_test    a tenth of them
 *
 * Must hold.
 *   registry-sim-L1  After the faults each subscriber's latest listing, and what each node finds,
 *       are the actors that are registered, each once: all answer, and tell their numbers.
 */
#include <stdlib.h>

#include <troupe/registry.h>
#include <troupe/sim.h>

#include "tests/unit/unit.h"

#define DOT_NUMBER(F, S) F(S, i64, number)
#define DOT_MESSAGES(M, P) M(P, who, TRP_NO_FIELDS) M(P, me, DOT_NUMBER)
TRP_PROTOCOL(dot, DOT_MESSAGES)
#define DOT_CALLS(C, O, P) C(P, who, me)
TRP_TYPED(dot, DOT_CALLS)
TRP_REGISTRY(dot)

enum {
    NODES = 5,
    KEYS = 3,
    DOTS = 12,
    LISTED_MAX = NODES * DOTS + 8,
    TICK_MS = 150,
    SETTLE_MS = 60000
};
static const dot_registry_key keys[KEYS] = { { "a" }, { "b" }, { "long name of a key" } };

struct dot {
    dot_ref ref;
    int64_t number;   /* 0: none is here */
    bool under[KEYS]; /* it is registered */
};
struct node { /* of its present incarnation */
    struct dot dots[DOTS];
    dot_ref listed[KEYS][LISTED_MAX];
    uint32_t listed_count[KEYS];
    uint64_t listings;
};
static struct {
    struct node nodes[NODES];
    int64_t numbers;
    uint64_t random, changes;
    bool still;
    trp_sim *sim;
} w;

static uint32_t
draw(uint32_t below)
{
    w.random = w.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w.random >> 33) % below);
}

/* ---- the actors of a node -------------------------------------------------------------------- */

struct dot_state {
    int64_t number;
};

static trp_err
dot_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((struct dot_state *)state)->number, trp_msg_payload(args), sizeof(int64_t));
    return TRP_OK;
}

static trp_err
on_who(trp_ctx *ctx, void *state, const dot_who *m, dot_me *ret_me)
{
    (void)ctx;
    (void)m;
    ret_me->number = ((struct dot_state *)state)->number;
    return TRP_OK;
}

static trp_err
dot_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const dot_methods methods = { on_who };
    return dot_serve(ctx, state, msg, &methods);
}
static const trp_protocol *const accepts[] = { &dot_protocol, NULL };
static const trp_behaviour dot_behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "sim-dot",
                                             .state_bytes = sizeof(struct dot_state),
                                             .accepts = accepts,
                                             .pre_start = dot_begin,
                                             .receive = dot_receive };

struct keeper {
    uint32_t node;
};

static void
dot_change(trp_ctx *ctx, struct node *node)
{
    struct dot *dot = &node->dots[draw(DOTS)];
    trp_system *system = trp_ctx_system(ctx);
    uint32_t key = draw(KEYS);
    w.changes++;
    if (dot->number == 0) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        dot->number = ++w.numbers;
        options.args_type = &trp_i64_type;
        options.args = &dot->number;
        options.args_bytes = sizeof dot->number;
        UNIT_EQUAL(dot_spawn(ctx, &dot_behaviour, &options, &dot->ref), TRP_OK);
    } else if (draw(5) == 0) {
        trp_stop(ctx, dot->ref.ref);
        memset(dot, 0, sizeof *dot);
        return;
    }
    if (dot->under[key]) {
        UNIT_EQUAL(dot_registry_remove(system, keys[key], dot->ref), TRP_OK);
    } else {
        UNIT_EQUAL(dot_registry_add(system, keys[key], dot->ref), TRP_OK);
    }
    dot->under[key] = !dot->under[key];
}

static trp_err
keeper_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct keeper *keeper = state;
    memcpy(&keeper->node, trp_msg_payload(args), sizeof keeper->node);
    memset(&w.nodes[keeper->node], 0, sizeof w.nodes[0]);
    for (uint32_t i = 0; i < KEYS; i++) {
        UNIT_EQUAL(dot_registry_subscribe(trp_ctx_system(ctx), keys[i], trp_self(ctx)), TRP_OK);
    }
    return trp_timer_repeat(ctx, 1, TICK_MS, TICK_MS, &trp_bytes_type, NULL, 0);
}

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct node *node = &w.nodes[((struct keeper *)state)->node];
    for (uint32_t key = 0; key < KEYS; key++) {
        uint32_t count;
        const dot_ref *refs = dot_registry_listing_of(msg, keys[key], &count);
        if (refs != NULL) {
            TRP_SIM_CHECK(w.sim, count <= LISTED_MAX);
            node->listings++;
            node->listed_count[key] = count < LISTED_MAX ? count : LISTED_MAX;
            memcpy(node->listed[key], refs, node->listed_count[key] * sizeof *refs);
            return TRP_OK;
        }
    }
    if (!w.still) {
        dot_change(ctx, node);
    }
    return TRP_OK;
}
static const trp_behaviour keeper_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "sim-keeper",
                                                .state_bytes = sizeof(struct keeper),
                                                .pre_start = keeper_begin,
                                                .receive = keeper_receive };

static void
node_started(trp_sim *sim, uint32_t node, void *arg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    options.args_type = &trp_bytes_type;
    options.args = &node;
    options.args_bytes = sizeof node;
    UNIT_EQUAL(trp_system_spawn(trp_sim_system(sim, node), &keeper_behaviour, &options, &ref),
               TRP_OK);
}

/* ---- the law --------------------------------------------------------------------------------- */

static uint32_t
registered(uint32_t key)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < trp_sim_nodes(w.sim); n++) {
        for (uint32_t i = 0; i < DOTS; i++) {
            count += w.nodes[n].dots[i].under[key];
        }
    }
    return count;
}

static int
all_know(void *arg)
{
    (void)arg;
    for (uint32_t n = 0; n < trp_sim_nodes(w.sim); n++) {
        for (uint32_t key = 0; key < KEYS; key++) {
            size_t count = 0;
            if (w.nodes[n].listed_count[key] != registered(key) ||
                dot_registry_find(trp_sim_system(w.sim, n), keys[key], NULL, 0, &count) != TRP_OK ||
                count != registered(key)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Ask one that a node was told of who it is. */
static int64_t
number_of(uint32_t node, dot_ref ref)
{
    dot_me me = { 0 };
    dot_who who = { 0 };
    trp_err err = dot_who_call(trp_sim_system(w.sim, node), ref, who, 10000, &me);
    return err == TRP_OK ? me.number : 0;
}

static bool
is_registered(int64_t number, uint32_t key)
{
    for (uint32_t n = 0; n < trp_sim_nodes(w.sim); n++) {
        for (uint32_t i = 0; i < DOTS; i++) {
            if (w.nodes[n].dots[i].number == number) {
                return w.nodes[n].dots[i].under[key];
            }
        }
    }
    return false;
}

static void
check_listing(uint32_t node, uint32_t key)
{
    int64_t seen[LISTED_MAX];
    for (uint32_t i = 0; i < w.nodes[node].listed_count[key]; i++) {
        seen[i] = number_of(node, w.nodes[node].listed[key][i]);
        TRP_SIM_CHECK(w.sim, is_registered(seen[i], key));
        for (uint32_t k = 0; k < i; k++) {
            TRP_SIM_CHECK(w.sim, seen[k] != seen[i]);
        }
    }
}

static void
all_find_all(trp_sim *sim, void *arg)
{
    (void)arg;
    trp_sim_faults(sim, 20000);
    trp_sim_calm(sim, 120000);
    w.still = true;
    trp_sim_pass(sim, 3000); /* equal numbers may be of other actors before */
    trp_sim_await(sim, all_know, NULL, SETTLE_MS);
    for (uint32_t n = 0; n < trp_sim_nodes(sim); n++) {
        for (uint32_t key = 0; key < KEYS; key++) {
            check_listing(n, key);
        }
        TRP_SIM_CHECK(sim, w.nodes[n].listings > KEYS);
    }
    TRP_SIM_CHECK(sim, w.changes > 20);
}

static uint64_t seed_now;

/* The program has no call before its nodes start: the first of them begins the world. */
static void
world_started(trp_sim *sim, uint32_t node, void *arg)
{
    uint64_t *begun = arg;
    if (*begun != seed_now) {
        *begun = seed_now;
        memset(&w, 0, sizeof w);
        w.sim = sim;
        w.random = seed_now;
    }
    node_started(sim, node, NULL);
}

/* TYPED-4 */
static void
all_find_all_that_are_registered_after_all_faults(void)
{
    static const uint32_t sizes[] = { 3, 5, 2, 4 };
    const char *seeds = getenv("TROUPE_SIM_SEEDS"), *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1, begun = 0;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) / 10 + 1 : 5;
    for (seed_now = from; seed_now < from + count; seed_now++) {
        trp_sim_options options = TRP_SIM_OPTIONS_INIT;
        char replay[96];
        (void)snprintf(replay, sizeof replay, "TROUPE_SIM_FIRST=%llu tests/sim/registry_test",
                       (unsigned long long)seed_now);
        options.seed = seed_now;
        options.nodes = sizes[seed_now % 4];
        options.started = world_started;
        options.replay = replay;
        options.stable_after_ms = 3000;
        UNIT_EQUAL(trp_sim_run(all_find_all, &begun, &options, NULL), TRP_OK);
    }
}

UNIT_BEGIN("registry_sim")
UNIT(all_find_all_that_are_registered_after_all_faults)
UNIT_END
