/* Joiners work while nodes cannot agree: allow-weakly-up-members (MEMB-17, MEMB-22, MEMB-23). */
#include "tests/unit/cluster/mesh.h"

#define AFTER_MS 3000u

static const trpi_member_options options = { .seed = 3,
                                             .weakly_up_after_ms = AFTER_MS,
                                             .downing_strategy = "manual" };

/* Two nodes, of which the second, which is unreachable, cannot agree; and a joiner. */
static struct mesh *
blocked_cluster(const trpi_member_options *o)
{
    struct mesh *m = mesh_cluster(2, o);
    m->cut[1] = true;
    mesh_observe(m, 0, 1u << 1);
    mesh_add(m, o);
    UNIT_EQUAL(mesh_join(m, 2, 0), TRP_OK);
    return m;
}

static void
a_joiner_is_weakly_up_after_the_delay_and_up_when_nodes_agree_again(void)
{
    struct mesh *m = blocked_cluster(&options);
    mesh_run(m, AFTER_MS - 100);
    UNIT_EQUAL(mesh_status(m, 2, 2), TRP_MEMBER_JOINING);
    mesh_run(m, 1200); /* the leader looks once a second */
    for (uint32_t i = 0; i < 3; i += 2) {
        UNIT_EQUAL(mesh_status(m, i, 2), TRP_MEMBER_WEAKLY_UP);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_WEAKLY_UP, 2), 1);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_UP, 2), 0);
        const trpi_gossip *g = trpi_member_view(m->cores[i]);
        uint32_t index = trpi_gossip_find(g, trpi_ident_key(&m->ids[2]));
        UNIT_EQUAL(g->members[index].up_number, 0); /* it is older than none */
        UNIT_TRUE(trpi_gossip_leader(g, 0, NULL) != index);
    }
    m->cut[1] = false;
    mesh_observe(m, 0, 0);
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_status(m, i, 2), TRP_MEMBER_UP);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_UP, 2), 1);
    }
    mesh_free(m);
}

static void
without_the_option_a_joiner_waits(void)
{
    trpi_member_options off = options;
    off.weakly_up_after_ms = 0;
    struct mesh *m = blocked_cluster(&off);
    mesh_run(m, 20000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_JOINING);
    mesh_free(m);
}

/* MemberWeaklyUp of the scenarios: each side of a cut has its own, and all are Up after the heal */
static void
both_sides_of_a_cut_take_joiners_in_and_merge(void)
{
    struct mesh *sides = mesh_cluster(2, &options), *m = sides;
    uint32_t joiners[2] = { mesh_add(m, &options), mesh_add(m, &options) };
    for (uint32_t side = 0; side < 2; side++) { /* one side runs at a time: so they are cut */
        m->cut[1 - side] = m->cut[joiners[1 - side]] = true;
        m->cut[side] = m->cut[joiners[side]] = false;
        mesh_observe(m, side, 1u << (1 - side));
        UNIT_EQUAL(mesh_join(m, joiners[side], side), TRP_OK);
        mesh_run(m, AFTER_MS + 2000);
        UNIT_EQUAL(mesh_status(m, side, joiners[side]), TRP_MEMBER_WEAKLY_UP);
        UNIT_EQUAL(mesh_status(m, side, joiners[1 - side]), 0);
    }
    memset(m->cut, 0, sizeof m->cut);
    for (uint32_t i = 0; i < 2; i++) {
        mesh_observe(m, i, 0);
    }
    mesh_run(m, 5000);
    for (uint32_t i = 0; i < m->count; i++) {
        UNIT_EQUAL(mesh_members(m, i), 4);
        for (uint32_t k = 0; k < m->count; k++) {
            UNIT_EQUAL(mesh_status(m, i, k), TRP_MEMBER_UP);
        }
    }
    mesh_free(m);
}

/* a node may leave, or be downed, before it is Up */
static void
a_weakly_up_member_leaves_or_is_downed_like_any_other(void)
{
    static const trpi_member_event_kind orders[2] = { TRPI_MEMBER_LEAVE, TRPI_MEMBER_DOWN_CMD };
    static const uint32_t events[2] = { TRP_CLUSTER_MEMBER_LEFT, TRP_CLUSTER_MEMBER_DOWNED };
    for (uint32_t i = 0; i < 2; i++) {
        struct mesh *m = blocked_cluster(&options);
        mesh_run(m, AFTER_MS + 2000);
        UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_WEAKLY_UP);
        UNIT_EQUAL(mesh_order(m, 0, orders[i], 2), TRP_OK);
        mesh_run(m, 1000);
        UNIT_EQUAL(mesh_events(m, 0, events[i], 2), 1);
        UNIT_EQUAL(mesh_events(m, 0, TRP_CLUSTER_MEMBER_UP, 2), 0);
        m->cut[1] = false;
        mesh_observe(m, 0, 0);
        mesh_run(m, 8000);
        UNIT_EQUAL(mesh_members(m, 0), 2);
        UNIT_EQUAL(m->stopped[2], i == 0 ? TRPI_STOP_LEFT : TRPI_STOP_DOWNED);
        mesh_free(m);
    }
}

/* The minimum holds for WeaklyUp, too */
static void
nobody_is_weakly_up_before_the_minimum_number_is_there(void)
{
    trpi_member_options four = options;
    four.min_nr_of_members = 4;
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 4; i++) {
        mesh_add(m, &four);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
        mesh_run(m, 1000);
        if (i == 1) {
            m->cut[1] = true;
            mesh_observe(m, 0, 1u << 1);
        }
        if (i == 2) {
            mesh_run(m, 2 * AFTER_MS);
            UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_JOINING);
        }
    }
    mesh_run(m, 2 * AFTER_MS);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_WEAKLY_UP);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_WEAKLY_UP);
    UNIT_EQUAL(mesh_status(m, 0, 1), TRP_MEMBER_JOINING); /* an unreachable member is not */
    mesh_free(m);
}

/* MEMB-22 */
static void
a_cluster_that_shrinks_below_the_minimum_goes_on(void)
{
    trpi_member_options three = { .seed = 3, .min_nr_of_members = 3, .downing_strategy = "manual" };
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, &three);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
    }
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 1), TRP_OK);
    mesh_run(m, 8000);
    UNIT_EQUAL(mesh_members(m, 0), 1);
    UNIT_EQUAL(mesh_status(m, 0, 0), TRP_MEMBER_UP);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
    mesh_add(m, &three); /* the next joiner waits until there are three again */
    UNIT_EQUAL(mesh_join(m, 3, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_JOINING);
    mesh_add(m, &three);
    UNIT_EQUAL(mesh_join(m, 4, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 0, 4), TRP_MEMBER_UP);
    mesh_free(m);
}

/* GAP-11: one that cannot be reached counts for the minimum, one that is Down does not */
static void
members_that_are_down_do_not_count_for_a_minimum(void)
{
    trpi_member_options two = { .seed = 1, .role_minima_count = 1, .downing_strategy = "manual" };
    char lacking[160];
    snprintf(two.role_minima[0].role, sizeof two.role_minima[0].role, "backend");
    two.role_minima[0].members = 2;
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 4; i++) {
        mesh_add_as(m, mesh_id(i, 11 + i), i == 0 ? "frontend" : "backend", &two);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
    }
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_UP);
    for (uint32_t i = 2; i < 4; i++) { /* 3 is not seen by the others: no removal */
        m->cut[i] = true;
        mesh_observe(m, 0, i == 2 ? 1u << 2 : 1u << 2 | 1u << 3);
    }
    mesh_run(m, 1000);
    UNIT_TEXT(trpi_member_lacking(m->cores[0], lacking, sizeof lacking), "");
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_DOWN);
    UNIT_TEXT(trpi_member_lacking(m->cores[0], lacking, sizeof lacking), "");
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 1), TRP_OK); /* Leaving counts */
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 0, 1), TRP_MEMBER_LEAVING);
    UNIT_TEXT(trpi_member_lacking(m->cores[0], lacking, sizeof lacking), "");
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 3), TRP_OK);
    UNIT_TEXT(trpi_member_lacking(m->cores[0], lacking, sizeof lacking),
              "1 of 2 members with role backend are there");
    mesh_free(m);
}

UNIT_BEGIN("weakly_up")
UNIT(a_joiner_is_weakly_up_after_the_delay_and_up_when_nodes_agree_again)
UNIT(without_the_option_a_joiner_waits)
UNIT(both_sides_of_a_cut_take_joiners_in_and_merge)
UNIT(a_weakly_up_member_leaves_or_is_downed_like_any_other)
UNIT(nobody_is_weakly_up_before_the_minimum_number_is_there)
UNIT(a_cluster_that_shrinks_below_the_minimum_goes_on)
UNIT(members_that_are_down_do_not_count_for_a_minimum)
UNIT_END
