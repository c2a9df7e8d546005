/* foreign_test.c - seeds that are no members are asked; one that lives in another cluster is told.
 */
#include "tests/unit/cluster/mesh.h"

static bool
knows_foreign(const struct mesh *m, uint32_t at, uint32_t of)
{
    trpi_node_id id;
    uint64_t since_ms;
    return trpi_member_foreign(m->cores[at], 0, &id, &since_ms) &&
           trpi_node_id_equal(&id, &m->ids[of]);
}

static bool
tells_nothing(const struct mesh *m, uint32_t at)
{
    trpi_node_id id;
    uint64_t since_ms;
    return !trpi_member_foreign(m->cores[at], 0, &id, &since_ms);
}

/* Node 0, whose seeds are 0 and 1, makes a cluster; node 1 makes another one. */
static struct mesh *
two_clusters(const trpi_member_options *options)
{
    struct mesh *m = mesh_new();
    mesh_add(m, options);
    mesh_add(m, options);
    UNIT_EQUAL(mesh_join_seeds(m, 0, 2), TRP_OK);
    mesh_run(m, 7000); /* 1 is in no cluster: it says so, or nothing */
    UNIT_EQUAL(mesh_members(m, 0), 1);
    UNIT_EQUAL(mesh_join(m, 1, 1), TRP_OK);
    UNIT_EQUAL(mesh_members(m, 1), 1);
    return m;
}

static void
a_seed_in_another_cluster_is_told_after_two_answers(void)
{
    struct mesh *m = two_clusters(NULL);
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_run(m, 25000);
    UNIT_TRUE(knows_foreign(m, 0, 1));
    UNIT_TRUE(strstr(m->warning, "two clusters: the seed node") != NULL);
    UNIT_TRUE(tells_nothing(m, 1));    /* it has no seeds but itself */
    UNIT_EQUAL(mesh_members(m, 0), 1); /* an answer is no invitation */
    UNIT_EQUAL(mesh_members(m, 1), 1);
    m->cut[1] = true;
    mesh_run(m, 45000); /* silent: it may have ended */
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_free(m);
}

static void
who_has_removed_this_node_is_told(void)
{
    struct mesh *m = mesh_new();
    trpi_member_event event = { .kind = TRPI_MEMBER_FOREIGN };
    mesh_add(m, NULL);
    mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join_seeds(m, 0, 2), TRP_OK);
    m->cut[1] = true; /* the transport alone knows: one of both has the other quarantined */
    mesh_run(m, 7000);
    event.target = m->ids[1];
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK); /* at one time: once */
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_run(m, 6000);
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
    UNIT_TRUE(knows_foreign(m, 0, 1));
    event.target.uid++; /* it has been started again */
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_free(m);
}

static void
members_nodes_without_a_cluster_and_others_are_not_told(void)
{
    trpi_member_options off = { .seed_check_ms = TRPI_MEMBER_OFF };
    struct mesh *m = two_clusters(&off);
    mesh_run(m, 40000);
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_free(m);
    m = mesh_new();
    for (uint32_t i = 0; i < 3; i++) {
        mesh_add(m, NULL);
    }
    UNIT_EQUAL(mesh_join_seeds(m, 0, 3), TRP_OK);
    mesh_run(m, 30000);
    UNIT_EQUAL(mesh_members(m, 0), 1);
    UNIT_TRUE(tells_nothing(m, 0)); /* 1 and 2 are in no cluster */
    UNIT_EQUAL(mesh_join(m, 1, 0), TRP_OK);
    mesh_run(m, 30000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_TRUE(tells_nothing(m, 0)); /* 1 is a member */
    trpi_member_event event = { .kind = TRPI_MEMBER_FOREIGN, .target = mesh_id(7, 77) };
    for (int i = 0; i < 3; i++) { /* no seed of ours */
        UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
        mesh_run(m, 6000);
    }
    UNIT_TRUE(tells_nothing(m, 0));
    mesh_free(m);
}

UNIT_BEGIN("foreign")
UNIT(a_seed_in_another_cluster_is_told_after_two_answers)
UNIT(who_has_removed_this_node_is_told)
UNIT(members_nodes_without_a_cluster_and_others_are_not_told)
UNIT_END
