/* keep-majority as a pure function of a view (DOWN; sim-S12). */
#include "tests/unit/cluster/scene.h"

static trpi_downing_verdict
decide_for(struct scene *s, uint32_t self, uint32_t mask, const char *role)
{
    trpi_downing_options options = { .stable_after_ms = 20000 };
    snprintf(options.role, sizeof options.role, "%s", role);
    return scene_decide(s, "keep-majority", &options, self, mask);
}

static void
the_majority_downs_the_others_and_the_minority_stops(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 3);
    scene_row(&s, 1, 4);
    UNIT_EQUAL(decide_for(&s, 0, 0x07, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 2);
    UNIT_EQUAL(s.decision.indexes[0], 3);
    UNIT_EQUAL(s.decision.indexes[1], 4);
    UNIT_EQUAL(decide_for(&s, 1, 0x07, ""), TRPI_DOWNING_WAIT); /* one acts */
    scene_end(&s);
    scene_make(&s, 5, NULL); /* what the other side sees */
    scene_row(&s, 3, 0);
    scene_row(&s, 3, 1);
    scene_row(&s, 4, 2);
    UNIT_EQUAL(decide_for(&s, 3, 0x18, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

static void
nobody_decides_before_the_view_is_stable(void)
{
    struct scene s;
    scene_make(&s, 3, NULL);
    scene_row(&s, 0, 2);
    s.stable_ms = 19999;
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = 20000;
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
}

static void
a_tie_goes_to_the_side_of_the_lowest_address(void)
{
    struct scene s;
    scene_make(&s, 4, NULL);
    scene_row(&s, 0, 2);
    scene_row(&s, 0, 3);
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
    scene_make(&s, 4, NULL);
    scene_row(&s, 2, 0);
    scene_row(&s, 2, 1);
    UNIT_EQUAL(decide_for(&s, 2, 0x0c, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

/* downing-votes-D6: what this side has marked Down may be Up on the other */
static void
who_is_down_but_not_removed_counts_for_the_others(void)
{
    struct scene s;
    uint32_t status[SCENE_MEMBERS_MAX] = { 0, 0, 0, TRP_MEMBER_DOWN, TRP_MEMBER_DOWN };
    scene_make(&s, 5, status);
    scene_row(&s, 0, 2);
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

/* downing-D5: a deaf node reports all others; its reports do not count */
static void
the_accusations_of_a_node_that_is_away_do_not_count(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    for (uint32_t i = 1; i < 5; i++) {
        scene_row(&s, 0, i);
    }
    UNIT_EQUAL(trpi_gossip_add_row(s.view, s.idents[1]->key, s.idents[0]->key), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_version(s.view, s.idents[1]->key, 1), TRP_OK);
    UNIT_EQUAL(decide_for(&s, 1, 0x1e, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 0);
    UNIT_EQUAL(decide_for(&s, 0, 0x01, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

/* two that cannot reach each other, though a third reaches both: the later in order is given up */
static void
of_a_single_broken_link_the_later_end_is_given_up(void)
{
    struct scene s;
    scene_make(&s, 3, NULL);
    scene_row(&s, 0, 1);
    scene_row(&s, 1, 0);
    UNIT_EQUAL(decide_for(&s, 0, 0x07, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 1);
    UNIT_EQUAL(s.decision.indirectly_connected, 1);
    UNIT_EQUAL(decide_for(&s, 1, 0x07, ""), TRPI_DOWNING_DOWN_SELF);
    UNIT_EQUAL(decide_for(&s, 2, 0x07, ""), TRPI_DOWNING_WAIT);
    scene_end(&s);
}

/* a reachable member that has not seen the version: half as long again, then it counts against us;
 * but while such members could make this side the majority, it does not give itself up */
static void
an_unsure_member_delays_the_decision(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 4);
    s.stable_ms = 25000;
    UNIT_EQUAL(decide_for(&s, 0, 0x07, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = 30000;
    UNIT_EQUAL(decide_for(&s, 0, 0x07, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_WAIT); /* two are sure, two are not */
    s.stable_ms = 59999;
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = 60000;
    UNIT_EQUAL(decide_for(&s, 0, 0x03, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 2);
    scene_row(&s, 0, 3);
    scene_row(&s, 0, 4);
    s.stable_ms = 29999;
    UNIT_EQUAL(decide_for(&s, 0, 0x01, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = 30000; /* the one unsure makes two of five */
    UNIT_EQUAL(decide_for(&s, 0, 0x01, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

static void
with_a_role_only_its_members_vote(void)
{
    struct scene s;
    scene_make(&s, 5, NULL); /* even: 0, 2, 4 */
    scene_row(&s, 1, 0);
    scene_row(&s, 1, 2);
    UNIT_EQUAL(decide_for(&s, 1, 0x1a, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(decide_for(&s, 1, 0x1a, "even"), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

static void
joiners_have_no_vote(void)
{
    struct scene s;
    uint32_t status[SCENE_MEMBERS_MAX] = { 0, 0, 0, TRP_MEMBER_JOINING, TRP_MEMBER_JOINING };
    scene_make(&s, 5, status);
    scene_row(&s, 2, 0);
    scene_row(&s, 2, 1);
    UNIT_EQUAL(decide_for(&s, 2, 0x1c, ""), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

/* downing-D17: 1 and 2 reported 0 before they crashed, so what 0 reports does not count */
static void
who_is_reported_by_the_dead_gives_them_up_in_the_end(void)
{
    trpi_downing_options options = { .stable_after_ms = 20000, .keep_lone_oldest = true };
    struct scene s;
    scene_make(&s, 3, NULL);
    for (uint32_t other = 1; other < 3; other++) {
        scene_row(&s, 0, other);
        UNIT_EQUAL(trpi_gossip_add_row(s.view, s.idents[other]->key, s.idents[0]->key), TRP_OK);
        UNIT_EQUAL(trpi_gossip_add_version(s.view, s.idents[other]->key, 1), TRP_OK);
    }
    s.stable_ms = 59999;
    UNIT_EQUAL(scene_decide(&s, "keep-oldest", &options, 0, 0x1), TRPI_DOWNING_WAIT);
    s.stable_ms = 60000;
    UNIT_EQUAL(scene_decide(&s, "keep-oldest", &options, 0, 0x1), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 2);
    scene_end(&s);
    scene_make(&s, 3, NULL); /* nobody on this side reports 2 */
    scene_row(&s, 0, 1);
    s.stable_ms = 60000;
    UNIT_EQUAL(scene_decide(&s, "keep-oldest", &options, 0, 0x1), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    scene_end(&s);
}

/* downing-D9: 2 has seen the version, though 0 does not reach it: is it still there? */
static void
who_is_under_suspicion_counts_only_when_it_was_heard_lately(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 2);
    scene_row(&s, 2, 0);
    s.stable_ms = s.version_ms = s.made_ms = 9999;
    UNIT_EQUAL(decide_for(&s, 0, 0x1f, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = s.version_ms = s.made_ms = 10001; /* half-way */
    UNIT_EQUAL(decide_for(&s, 0, 0x1f, ""), TRPI_DOWNING_ROLL_CALL);
    UNIT_EQUAL(s.decision.suspected, 1);                             /* but for itself */
    UNIT_EQUAL(decide_for(&s, 2, 0x1f, ""), TRPI_DOWNING_ROLL_CALL); /* the other end */
    UNIT_EQUAL(decide_for(&s, 1, 0x1f, ""), TRPI_DOWNING_ROLL_CALL); /* would act without the two */
    UNIT_EQUAL(decide_for(&s, 3, 0x1f, ""), TRPI_DOWNING_WAIT);
    UNIT_EQUAL(decide_for(&s, 0, 0x1b, ""), TRPI_DOWNING_WAIT); /* no member to ask for */
    s.stable_ms = s.version_ms = s.made_ms = 20001;             /* it has not been asked */
    UNIT_EQUAL(decide_for(&s, 0, 0x1f, ""), TRPI_DOWNING_ROLL_CALL);
    s.made_ms = 20000; /* it has answered */
    UNIT_EQUAL(decide_for(&s, 0, 0x1f, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indirectly_connected, 1);
    s.version_ms = s.made_ms = 4999; /* it may still answer */
    s.suspicion_ms = 19999;
    UNIT_EQUAL(decide_for(&s, 0, 0x1b, ""), TRPI_DOWNING_WAIT);
    s.version_ms = s.made_ms = 5000; /* it has not */
    UNIT_EQUAL(decide_for(&s, 0, 0x1b, ""), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.unreachable, 1);
    const trpi_downing_options quick = { .stable_after_ms = 6000 }; /* a third of it is less */
    s.stable_ms = 6000;
    s.suspicion_ms = 5999;
    s.version_ms = s.made_ms = 1999;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &quick, 0, 0x1b), TRPI_DOWNING_WAIT);
    s.version_ms = s.made_ms = 2000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &quick, 0, 0x1b), TRPI_DOWNING_DOWN_MEMBERS);
    s.stable_ms = 20000;
    s.version_ms = 0; /* a new version for another reason: it is not known to have been there */
    s.suspicion_ms = 20000;
    UNIT_EQUAL(decide_for(&s, 0, 0x1b, ""), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
}

/* downing-D9: so does the end that is kept, which neither acts nor would act without the other
 * end */
static void
both_ends_of_a_broken_link_call_the_roll(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 1, 3);
    scene_row(&s, 3, 1);
    s.stable_ms = s.version_ms = s.made_ms = 10001;
    for (uint32_t self = 0; self < 5; self++) {
        bool calls = self == 0 || self == 1 || self == 3;
        UNIT_EQUAL(decide_for(&s, self, 0x1f, ""),
                   calls ? TRPI_DOWNING_ROLL_CALL : TRPI_DOWNING_WAIT);
    }
    scene_end(&s);
}

/* downing-D9: a member that is left asks, and none of its answers is from before */
static void
who_is_left_alone_asks_and_then_stops(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee",  "down-all",      "lease" };
    trpi_downing_options options = { .stable_after_ms = 20000,
                                     .lease_minority_delay_ms = 2000,
                                     .quorum_size = 2,
                                     .least_nodes = 1,
                                     .referee = mesh_id(1, 0).address };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        struct scene s;
        scene_make(&s, 3, NULL);
        scene_row(&s, 0, 1); /* 0 is the oldest and the lowest */
        scene_row(&s, 0, 2);
        s.version_ms = s.made_ms = 10001;
        s.stable_ms = 9999;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0x7), TRPI_DOWNING_WAIT);
        s.stable_ms = 10000; /* half-way */
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0x7), TRPI_DOWNING_ROLL_CALL);
        if (strcmp(strategies[i], "lease") == 0) {
            scene_end(&s);
            continue; /* which does not stop, but asks for it (downing_lease_test) */
        }
        s.stable_ms = 20000;
        s.version_ms = s.made_ms = s.suspicion_ms = 9999;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0x1), TRPI_DOWNING_DOWN_SELF);
        scene_end(&s);
    }
}

/* downing-D4: 0 acts, if it is there; 4, which is away, has said that it is not, and of the two
 * nobody knows whose word counts */
static void
nobody_waits_for_ever_for_one_under_suspicion(void)
{
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 4, 0);
    scene_row(&s, 0, 4);
    s.stable_ms = 79999;
    UNIT_EQUAL(decide_for(&s, 1, 0x0f, ""), TRPI_DOWNING_WAIT);
    s.stable_ms = 80000;
    UNIT_EQUAL(decide_for(&s, 1, 0x0f, ""), TRPI_DOWNING_DOWN_SELF);
    UNIT_TRUE(strstr(s.decision.reason, "the member that should act does not") != NULL);
    UNIT_EQUAL(decide_for(&s, 0, 0x0f, ""), TRPI_DOWNING_DOWN_MEMBERS); /* it is there */
    scene_end(&s);
}

/* downing-D7: two broken links, and no three without one */
static void
a_side_that_is_too_small_without_the_indirectly_connected_stops_in_the_end(void)
{
    trpi_downing_options options = { .stable_after_ms = 20000, .quorum_size = 3 };
    struct scene s;
    scene_make(&s, 4, NULL);
    scene_row(&s, 0, 1);
    scene_row(&s, 2, 3);
    s.stable_ms = 59999;
    UNIT_EQUAL(scene_decide(&s, "static-quorum", &options, 0, 0xf), TRPI_DOWNING_WAIT);
    s.stable_ms = 60000;
    for (uint32_t self = 0; self < 4; self++) {
        UNIT_EQUAL(scene_decide(&s, "static-quorum", &options, self, 0xf), TRPI_DOWNING_DOWN_SELF);
    }
    UNIT_TRUE(strstr(s.decision.reason, "not without the indirectly connected") != NULL);
    scene_end(&s);
}

static void
strategies_are_found_by_name(void)
{
    UNIT_TRUE(trpi_downing_find("manual") != NULL);
    UNIT_TRUE(trpi_downing_find("auto-down-after") != NULL);
    UNIT_TRUE(trpi_downing_find("keep-oldst") == NULL);
}

UNIT_BEGIN("downing")
UNIT(the_majority_downs_the_others_and_the_minority_stops)
UNIT(nobody_decides_before_the_view_is_stable)
UNIT(a_tie_goes_to_the_side_of_the_lowest_address)
UNIT(who_is_down_but_not_removed_counts_for_the_others)
UNIT(the_accusations_of_a_node_that_is_away_do_not_count)
UNIT(of_a_single_broken_link_the_later_end_is_given_up)
UNIT(an_unsure_member_delays_the_decision)
UNIT(with_a_role_only_its_members_vote)
UNIT(joiners_have_no_vote)
UNIT(who_is_reported_by_the_dead_gives_them_up_in_the_end)
UNIT(who_is_under_suspicion_counts_only_when_it_was_heard_lately)
UNIT(both_ends_of_a_broken_link_call_the_roll)
UNIT(who_is_left_alone_asks_and_then_stops)
UNIT(nobody_waits_for_ever_for_one_under_suspicion)
UNIT(a_side_that_is_too_small_without_the_indirectly_connected_stops_in_the_end)
UNIT(strategies_are_found_by_name)
UNIT_END
