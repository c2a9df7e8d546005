/* exclusive_test.c - when a node suspends what must not live twice, when it goes on, and when
 * another node may start what it hosted. */
#include "tests/unit/cluster/mesh.h"

#include "cluster/engine/exclusive.h"

static void
times_that_are_too_short_are_refused_with_both_figures(void)
{
    char why[TRPI_EXCLUSIVE_WHY_BYTES] = "";
    UNIT_EQUAL(trpi_exclusive_check(8000, 3000, 1000, why, sizeof why), TRP_OK);
    UNIT_EQUAL(trpi_exclusive_check(7999, 3000, 1000, why, sizeof why), TRP_ESTATE);
    UNIT_TRUE(strstr(why, "is 7999 ms") != NULL);
    UNIT_TRUE(strstr(why, "at least 8000 ms") != NULL);
}

static uint64_t
takeover_ms(const struct mesh *m, uint32_t at, uint64_t key)
{
    uint64_t in_ms = 0;
    return trpi_member_takeover(m->cores[at], m->now_ms, key, &in_ms) ? in_ms : UINT64_MAX;
}

static void
what_an_operator_marked_down_waits_for_the_margin(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    uint64_t key = trpi_member_self(m->cores[2])->key;
    UNIT_TRUE(takeover_ms(m, 0, key) == UINT64_MAX); /* a member */
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    uint64_t left_ms = takeover_ms(m, 0, key);
    UNIT_TRUE(left_ms > 15000 && left_ms <= 20000);
    UNIT_TRUE(takeover_ms(m, 1, key) > 15000);
    mesh_run(m, 20000);
    UNIT_EQUAL(takeover_ms(m, 0, key), 0);
    UNIT_EQUAL(takeover_ms(m, 1, key), 0);
    mesh_free(m);
}

static void
the_word_of_an_operator_spreads_and_skips_the_margin(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    uint64_t key = trpi_member_self(m->cores[2])->key;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DEAD_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(takeover_ms(m, 0, key), 0);
    UNIT_EQUAL(takeover_ms(m, 1, key), 0);
    mesh_free(m);
}

static void
what_a_member_hosted_that_has_left_may_start_at_once(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    uint64_t key = trpi_member_self(m->cores[2])->key;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_LEFT);
    UNIT_EQUAL(takeover_ms(m, 0, key), 0);
    UNIT_EQUAL(takeover_ms(m, 1, key), 0);
    mesh_free(m);
}

static trpi_exclusive_order
ask(trpi_exclusive *x, const struct mesh *m, uint32_t at, uint64_t later_ms, bool waking,
    uint64_t closings)
{
    trpi_exclusive_now now = { m->now_ms + later_ms, waking, closings };
    return trpi_exclusive_step(x, m->cores[at], now);
}

static void
a_node_that_stood_still_goes_on_when_all_have_seen_its_new_version(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    trpi_exclusive x = { .suspended = false };
    UNIT_EQUAL(ask(&x, m, 1, 0, false, 0), TRPI_EXCLUSIVE_AS_IT_IS);
    UNIT_EQUAL(ask(&x, m, 1, 1, false, 1), TRPI_EXCLUSIVE_SUSPEND); /* the guard has seen it */
    UNIT_EQUAL(x.cause, TRPI_EXCLUSIVE_STOOD);
    UNIT_EQUAL(ask(&x, m, 1, 2, true, 1), TRPI_EXCLUSIVE_AS_IT_IS); /* waking */
    UNIT_EQUAL(ask(&x, m, 1, 3, false, 1), TRPI_EXCLUSIVE_ROLL_CALL);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_ROLL_CALL, 1), TRP_OK);
    UNIT_EQUAL(ask(&x, m, 1, 4, false, 1), TRPI_EXCLUSIVE_AS_IT_IS);
    UNIT_TRUE(x.suspended);
    mesh_run(m, 3000);
    UNIT_EQUAL(ask(&x, m, 1, 5, false, 1), TRPI_EXCLUSIVE_RESUME);
    UNIT_FALSE(x.suspended);
    mesh_free(m);
}

static void
a_node_without_a_membership_stays_suspended(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    trpi_exclusive x = { .suspended = false };
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 1), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(ask(&x, m, 1, 0, false, 0), TRPI_EXCLUSIVE_SUSPEND);
    UNIT_EQUAL(x.cause, TRPI_EXCLUSIVE_ENDED);
    UNIT_EQUAL(ask(&x, m, 1, 100000, false, 0), TRPI_EXCLUSIVE_AS_IT_IS);
    mesh_free(m);
}

UNIT_BEGIN("exclusive")
UNIT(times_that_are_too_short_are_refused_with_both_figures)
UNIT(what_an_operator_marked_down_waits_for_the_margin)
UNIT(the_word_of_an_operator_spreads_and_skips_the_margin)
UNIT(what_a_member_hosted_that_has_left_may_start_at_once)
UNIT(a_node_that_stood_still_goes_on_when_all_have_seen_its_new_version)
UNIT(a_node_without_a_membership_stays_suspended)
UNIT_END
