/* histories.h - random histories of a view, and whether two views are the same. */
#ifndef TESTS_UNIT_CLUSTER_HISTORIES_H
#define TESTS_UNIT_CLUSTER_HISTORIES_H

#include "cluster/engine/gossip.h"
#include "cluster/engine/gossip_codec.h"
#include "tests/unit/cluster/mesh.h"

static uint64_t random_state;

static inline uint32_t
below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

#define IDENTS 6
static trpi_ident *idents[IDENTS];

static inline void
idents_make(void)
{
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        const char *roles[2] = { "a", i % 2 == 0 ? "even" : "odd" };
        UNIT_REQUIRE(trpi_ident_new(&id, roles, 2, "1.0", &idents[i]) == TRP_OK);
    }
}

static inline void
idents_free(void)
{
    for (uint32_t i = 0; i < IDENTS; i++) {
        trpi_ident_unref(idents[i]);
    }
}

/* One random, legal edit by node `by`. Takes view, gives its successor. */
static inline trpi_gossip *
edit(trpi_gossip *view, uint32_t by)
{
    trpi_gossip *g = trpi_gossip_copy(view);
    uint32_t n = below(IDENTS);
    uint32_t at = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        at = g->members[i].ident == idents[n] ? i : at;
    }
    if (at == TRPI_GOSSIP_NONE) {
        UNIT_EQUAL(trpi_gossip_add(g, idents[n], TRP_MEMBER_JOINING, 0), TRP_OK);
    } else if (below(3) == 0) {
        uint64_t subjects[1] = { idents[n]->key };
        UNIT_EQUAL(trpi_gossip_observe(g, idents[by]->key, subjects, below(2)), TRP_OK);
    } else if (below(12) == 0 && n != by) {
        UNIT_EQUAL(trpi_gossip_remove(g, at, 1000 + (int64_t)below(100)), TRP_OK);
    } else if (below(6) == 0 && trpi_member_status(&g->members[at]) == TRP_MEMBER_JOINING) {
        trpi_gossip_set_status(g, at, TRP_MEMBER_WEAKLY_UP);
    } else {
        uint32_t status = g->members[at].status + 1 + below(2);
        if (status <= TRP_MEMBER_DOWN &&
            trpi_member_transition_is_legal(trpi_member_status(&g->members[at]), status)) {
            trpi_gossip_set_status(g, at, status);
            if (status == TRP_MEMBER_UP) {
                g->members[at].up_number = 1 + below(9);
                g->members[at].up_since_s = 1000 * g->members[at].up_number; /* one moment each */
            }
        }
    }
    UNIT_EQUAL(trpi_gossip_count_up(g, idents[by]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    trpi_gossip_unref(view);
    return g;
}

static inline trpi_gossip *
merge(trpi_gossip *a, trpi_gossip *b)
{
    trpi_gossip *merged = NULL;
    UNIT_REQUIRE(trpi_gossip_merge(a, b, &merged) == TRP_OK);
    return merged;
}

static inline bool
equal_views(trpi_gossip *a, trpi_gossip *b)
{
    UNIT_EQUAL(trpi_gossip_encode(a), TRP_OK);
    UNIT_EQUAL(trpi_gossip_encode(b), TRP_OK);
    return a->digest == b->digest && a->encoded_bytes == b->encoded_bytes &&
           memcmp(a->encoded, b->encoded, a->encoded_bytes) == 0;
}

#endif
