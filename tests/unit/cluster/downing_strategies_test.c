/* static-quorum, keep-oldest, keep-referee, down-all and down-all-when-unstable, as pure functions
 * of a view (DOWN; Akka's split brain resolver; sim-S12). */
#include "base/hash.h"
#include "tests/unit/cluster/scene.h"

static trpi_downing_options
options_of(uint32_t quorum, uint32_t least)
{
    trpi_downing_options options = { .stable_after_ms = 20000,
                                     .quorum_size = quorum,
                                     .least_nodes = least };
    return options;
}

struct split {
    const char *strategy;
    uint32_t left, right; /* members 0 .. left-1, and the others; up numbers in this order */
    enum fate left_fate, right_fate;
};

/* The pairs of Akka's SplitBrainResolverIntegrationSpec. */
static void
each_strategy_keeps_the_side_that_it_is_for(void)
{
    static const struct split splits[] = {
        { "static-quorum", 1, 2, FATE_STOPS, FATE_STOPS },
        { "static-quorum", 4, 4, FATE_STOPS, FATE_STOPS },
        { "static-quorum", 5, 4, FATE_STAYS, FATE_STOPS },
        { "static-quorum", 1, 5, FATE_STOPS, FATE_STAYS },
        { "static-quorum", 4, 5, FATE_STOPS, FATE_STAYS },
        { "static-quorum", 5, 5, FATE_STOPS, FATE_STOPS }, /* ten are too many for five */
        { "keep-majority", 2, 1, FATE_STAYS, FATE_STOPS },
        { "keep-majority", 1, 2, FATE_STOPS, FATE_STAYS },
        { "keep-majority", 4, 5, FATE_STOPS, FATE_STAYS },
        { "keep-majority", 4, 4, FATE_STAYS, FATE_STOPS },
        { "keep-oldest", 3, 3, FATE_STAYS, FATE_STOPS },
        { "keep-oldest", 1, 1, FATE_STAYS, FATE_STOPS },
        { "keep-oldest", 1, 2, FATE_STOPS, FATE_STAYS },
        { "keep-oldest", 2, 5, FATE_STAYS, FATE_STOPS },
        { "keep-referee", 2, 5, FATE_STOPS, FATE_STAYS },
        { "keep-referee", 6, 1, FATE_STAYS, FATE_STOPS },
        { "down-all", 4, 1, FATE_STOPS, FATE_STOPS },
    };
    trpi_downing_options options = options_of(5, 1);
    options.referee = mesh_id(5, 0).address; /* of the referee rows: on the right, on the left */
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        const struct split *p = &splits[i];
        uint32_t n = p->left + p->right;
        uint32_t left = (1u << p->left) - 1;
        enum fate of_left = fate_of(p->strategy, &options, n, left, NULL);
        enum fate of_right = fate_of(p->strategy, &options, n, ((1u << n) - 1) & ~left, NULL);
        if (of_left != p->left_fate || of_right != p->right_fate) {
            printf("  %s %u | %u\n", p->strategy, p->left, p->right);
        }
        UNIT_EQUAL(of_left, p->left_fate);
        UNIT_EQUAL(of_right, p->right_fate);
    }
}

static void
a_lone_oldest_is_kept_when_asked_for(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.keep_lone_oldest = true; /* down-if-alone = off */
    UNIT_EQUAL(fate_of("keep-oldest", &options, 4, 0x1, NULL), FATE_STAYS);
    UNIT_EQUAL(fate_of("keep-oldest", &options, 4, 0xe, NULL), FATE_STOPS);
}

static void
the_oldest_of_a_role_is_meant_when_there_is_a_role(void)
{
    trpi_downing_options options = options_of(3, 1);
    snprintf(options.role, sizeof options.role, "odd"); /* 1 is the oldest of 1, 3, 5 */
    UNIT_EQUAL(fate_of("keep-oldest", &options, 6, 0x2a, NULL), FATE_STAYS);
    UNIT_EQUAL(fate_of("keep-oldest", &options, 6, 0x15, NULL), FATE_STOPS);
}

/* downing-votes-D6: the oldest may be Down here and alive over there */
static void
an_oldest_that_is_down_but_not_removed_counts_for_the_others(void)
{
    trpi_downing_options options = options_of(3, 1);
    uint32_t status[SCENE_MEMBERS_MAX] = { TRP_MEMBER_DOWN };
    struct scene s;
    scene_make(&s, 4, status);
    scene_row(&s, 1, 3);
    UNIT_EQUAL(scene_decide(&s, "keep-oldest", &options, 1, 0x6), TRPI_DOWNING_DOWN_SELF);
    UNIT_TRUE(strstr(s.decision.reason, "oldest on the other side") != NULL);
    scene_end(&s);
}

/* Of a role the oldest is another one than the first in order, which has no vote. */
static void
a_broken_link_does_not_cost_the_oldest_of_a_role_its_place(void)
{
    trpi_downing_options options = options_of(3, 1);
    snprintf(options.role, sizeof options.role, "odd");
    struct scene s;
    scene_make(&s, 5, NULL);
    s.view->members[3].up_number = 1; /* 3 has been Up for longer than 1 */
    s.view->members[0].up_number = 4;
    scene_row(&s, 1, 3);
    scene_row(&s, 3, 1);
    UNIT_EQUAL(scene_decide(&s, "keep-oldest", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 1);
    scene_end(&s);
}

/* downing-votes-D10: it ended before it could be removed, and 4 crashed; or the next oldest is
 * away, too */
static void
an_oldest_that_leaves_is_asked_about_twice(void)
{
    trpi_downing_options options = options_of(3, 1);
    uint32_t status[SCENE_MEMBERS_MAX] = { TRP_MEMBER_EXITING };
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 5, 0x0e, status, 0), FATE_STAYS);
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 6, 0x1c, status, 0), FATE_STOPS);
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 5, 0x1c, status, 0), FATE_STAYS); /* alone */
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 5, 0x0e, status, 5), FATE_STOPS);
    status[0] = SCENE_REMOVED; /* what the others see if they have removed it */
    UNIT_EQUAL(fate_of("keep-oldest", &options, 6, 0x22, status), FATE_STAYS);
    UNIT_EQUAL(fate_of("keep-oldest", &options, 5, 0x02, status), FATE_STOPS);
    status[0] = TRP_MEMBER_EXITING; /* by itself with one other: two may be away */
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 3, 0x02, status, 0), FATE_STOPS);
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 2, 0x02, status, 0), FATE_STAYS);
    status[1] = TRP_MEMBER_EXITING; /* the next one leaves, too: of that nothing is known */
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 6, 0x1c, status, 0), FATE_STOPS);
    status[0] = TRP_MEMBER_DOWN; /* it may live over there */
    UNIT_EQUAL(fate_beside("keep-oldest", &options, 5, 0x0e, status, 0), FATE_STOPS);
}

/* downing-votes-D6: told to leave in the cut, which the other side does not hear; the lowest
 * address or not */
static void
a_joiner_that_leaves_brings_no_vote(void)
{
    trpi_downing_options options = options_of(3, 1);
    uint32_t joining[SCENE_MEMBERS_MAX] = { 0, 0, 0, 0, TRP_MEMBER_JOINING };
    uint32_t leaving[SCENE_MEMBERS_MAX] = { 0, 0, 0, 0, TRP_MEMBER_LEAVING | SCENE_NEVER_UP };
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x03, joining), FATE_STAYS);
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x1c, leaving), FATE_STOPS);
    uint32_t lowest_joining[SCENE_MEMBERS_MAX] = { TRP_MEMBER_JOINING };
    uint32_t lowest_leaving[SCENE_MEMBERS_MAX] = { TRP_MEMBER_LEAVING | SCENE_NEVER_UP };
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x06, lowest_joining), FATE_STAYS);
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x19, lowest_leaving), FATE_STOPS);
    for (uint32_t i = 0; i < 4; i++) { /* no member is Up yet: all count, also those that go */
        joining[i] = TRP_MEMBER_JOINING;
        leaving[i] = i < 2 ? TRP_MEMBER_JOINING : TRP_MEMBER_LEAVING | SCENE_NEVER_UP;
    }
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x03, joining), FATE_STOPS);
    UNIT_EQUAL(fate_of("keep-majority", &options, 5, 0x1c, leaving), FATE_STAYS);
}

static void
a_side_of_the_referee_that_is_too_small_stops(void)
{
    trpi_downing_options options = options_of(3, 3);
    options.referee = mesh_id(0, 0).address;
    UNIT_EQUAL(fate_of("keep-referee", &options, 5, 0x3, NULL), FATE_STOPS); /* one short */
    UNIT_EQUAL(fate_of("keep-referee", &options, 5, 0x7, NULL), FATE_STAYS); /* exactly */
    options.referee = mesh_id(9, 0).address;                                 /* is no member */
    UNIT_EQUAL(fate_of("keep-referee", &options, 5, 0xf, NULL), FATE_STOPS);
}

/* of a broken link it is never the oldest, or the referee, that is given up */
static void
a_broken_link_costs_the_other_end_its_place(void)
{
    static const char *const strategies[] = { "keep-oldest", "keep-referee" };
    for (size_t i = 0; i < 2; i++) {
        trpi_downing_options options = options_of(3, 1);
        options.referee = mesh_id(4, 0).address;
        struct scene s;
        scene_make(&s, 5, NULL);
        if (i == 0) { /* 4 has been Up for longest */
            for (uint32_t m = 0; m < 5; m++) {
                s.view->members[m].up_number = 5 - m;
            }
        }
        scene_row(&s, 4, 1);
        scene_row(&s, 1, 4);
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
        UNIT_EQUAL(s.decision.indexes_count, 1);
        UNIT_EQUAL(s.decision.indexes[0], 1);
        scene_end(&s);
    }
}

/* The first in order cannot talk to two others: it goes, unless it is the one that is kept. */
static void
two_broken_links_cost_two_members_where_their_end_is_kept(void)
{
    static const char *const strategies[] = { "keep-majority", "keep-oldest", "keep-referee" };
    for (size_t i = 0; i < 3; i++) {
        trpi_downing_options options = options_of(3, 1);
        options.referee = mesh_id(0, 0).address;
        struct scene s;
        scene_make(&s, 5, NULL);
        scene_row(&s, 0, 3);
        scene_row(&s, 3, 0);
        scene_row(&s, 0, 4);
        scene_row(&s, 4, 0);
        bool kept = i > 0;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, kept ? 0 : 1, 0x1f),
                   TRPI_DOWNING_DOWN_MEMBERS);
        UNIT_EQUAL(s.decision.indexes_count, kept ? 2 : 1);
        UNIT_EQUAL(s.decision.indexes[0], kept ? 3 : 0);
        scene_end(&s);
    }
}

/* where no member is spared the later end goes, however old it is */
static void
a_broken_link_costs_the_later_end_its_place(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "lease" };
    for (size_t i = 0; i < 3; i++) {
        trpi_downing_options options = options_of(3, 1);
        struct scene s;
        scene_make(&s, 5, NULL);
        for (uint32_t m = 0; m < 5; m++) {
            s.view->members[m].up_number = 5 - m;
        }
        scene_row(&s, 4, 1);
        scene_row(&s, 1, 4);
        s.lease = TRPI_LEASE_HELD;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
        UNIT_EQUAL(s.decision.indexes_count, 1);
        UNIT_EQUAL(s.decision.indexes[0], 4);
        scene_end(&s);
    }
}

/* Nobody is Up yet: all that join have a vote, and are counted in what is said of the sides. */
static void
joiners_are_counted_where_nobody_is_up(void)
{
    trpi_downing_options options = options_of(3, 1);
    static const uint32_t joining[SCENE_MEMBERS_MAX] = { TRP_MEMBER_JOINING, TRP_MEMBER_JOINING,
                                                         TRP_MEMBER_JOINING };
    struct scene s;
    scene_make(&s, 3, joining);
    scene_row(&s, 0, 2);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x3), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.reachable, 2);
    UNIT_EQUAL(s.decision.members, 3);
    UNIT_EQUAL(s.decision.unreachable, 1);
    scene_end(&s);
}

/* downing-D4: of a Leaving one and a joiner, with none Up and clear, the Leaving one acts */
static void
who_leaves_acts_before_who_joins(void)
{
    trpi_downing_options options = options_of(1, 1);
    static const uint32_t status[SCENE_MEMBERS_MAX] = { TRP_MEMBER_JOINING, TRP_MEMBER_LEAVING, 0 };
    struct scene s;
    scene_make(&s, 3, status);
    scene_row(&s, 0, 2);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x3), TRPI_DOWNING_WAIT);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 1, 0x3), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
}

/* downing-D1: at stable-after and down-all-when-unstable together, not one millisecond before */
static void
everybody_stops_when_reachability_does_not_come_to_rest(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.unstable_after_ms = 15000;
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 4);
    s.stable_ms = 19999;
    s.reachable_ms[2] = s.reachable_ms[3] = 0; /* back this moment: two of five are steady */
    s.unstable_ms = s.unsure_ms = 34999;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0xf), TRPI_DOWNING_WAIT);
    s.unstable_ms = s.unsure_ms = 35000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0xf), TRPI_DOWNING_DOWN_SELF);
    UNIT_TRUE(strstr(s.decision.reason, "unstable") != NULL);
    s.stable_ms = 20000; /* it has come to rest: the strategy decides */
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0xf), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
    scene_make(&s, 5, NULL); /* with a lease, too; 0 is given up, not the two that it misses */
    for (uint32_t other = 3; other < 5; other++) {
        scene_row(&s, 0, other);
        scene_row(&s, other, 0);
    }
    s.stable_ms = 19999;
    s.unstable_ms = s.unsure_ms = 35000;
    UNIT_EQUAL(scene_decide(&s, "lease", &options, 1, 0x1f), TRPI_DOWNING_DOWN_SELF);
    UNIT_EQUAL(s.decision.indirectly_connected, 1);
    s.stable_ms = 0;
    options.unstable_after_ms = 0; /* off */
    s.unstable_ms = s.unsure_ms = 1000000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0xf), TRPI_DOWNING_WAIT);
    scene_end(&s);
}

/* downing-D12: a member missed within stable-after counts against us, at its end and one
 * millisecond before / */
static void
who_is_steady_goes_on_in_unrest_if_that_is_enough(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee" };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        trpi_downing_options options = options_of(3, 1);
        options.unstable_after_ms = 15000;
        options.referee = mesh_id(0, 100).address;
        struct scene s;
        scene_make(&s, 5, NULL);
        scene_row(&s, 0, 4);
        s.stable_ms = 0;
        s.unreachable_ms[4] = 1;
        s.unstable_ms = s.unsure_ms = 35000;
        s.reachable_ms[3] = 19999;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0xf), TRPI_DOWNING_DOWN_MEMBERS);
        UNIT_TRUE(s.decision.sure);
        UNIT_EQUAL(s.decision.indexes_count, 1);
        UNIT_EQUAL(s.decision.indexes[0], 4);
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 1, 0xf), TRPI_DOWNING_WAIT);
        s.reachable_ms[0] = s.reachable_ms[2] = 19999;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0xf), TRPI_DOWNING_DOWN_SELF);
        UNIT_FALSE(s.decision.sure);
        s.unsure_ms = 34999;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0xf), TRPI_DOWNING_WAIT);
        s.reachable_ms[0] = s.reachable_ms[2] = 20000;
        UNIT_EQUAL(scene_decide(&s, strategies[i], &options, 0, 0xf), TRPI_DOWNING_DOWN_MEMBERS);
        /* a member that has not seen the version is no evidence */
        UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x3), TRPI_DOWNING_WAIT);
        UNIT_FALSE(s.decision.sure);
        scene_end(&s);
    }
}

/* downing-D12: after stable-after who was silent all that time, after too long whoever is silent
 * then */
static void
in_unrest_who_comes_and_goes_is_given_up_later_than_who_is_gone(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.unstable_after_ms = 15000;
    struct scene s;
    scene_make(&s, 7, NULL);
    scene_row(&s, 0, 5);
    scene_row(&s, 0, 6);
    s.stable_ms = 0;
    s.unstable_ms = 21000;
    s.unreachable_ms[5] = 19999;
    s.unreachable_ms[6] = 3000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_WAIT);
    s.unreachable_ms[5] = 20000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 5);
    s.unstable_ms = 0; /* an ordinary change: all wait for stable-after */
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_WAIT);
    s.unstable_ms = 35000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 2);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x5f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1); /* the other one has just been heard */
    options.unstable_after_ms = 0;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    scene_end(&s);
}

/* downing-D12 */
static void
in_unrest_one_end_of_a_broken_link_is_enough(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.unstable_after_ms = 15000;
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 3, 4);
    scene_row(&s, 4, 3);
    s.stable_ms = 0;
    s.unstable_ms = 30000;
    s.unreachable_ms[3] = s.unreachable_ms[4] = 20000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 4);
    scene_end(&s);
}

/* downing-D16: 4 reports 2; it has seen a version of the last 5 s of 20 s, or it has not */
static void
in_unrest_a_report_counts_only_if_its_observer_lives(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.unstable_after_ms = 15000;
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 4, 2);
    s.stable_ms = 0;
    s.unstable_ms = 30000;
    s.made_ms = 1000000;
    s.unreachable_ms[2] = 14999;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_WAIT);
    s.unreachable_ms[2] = 15000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_ROLL_CALL);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 1, 0x1f), TRPI_DOWNING_WAIT);
    s.made_ms = 0;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x0f), TRPI_DOWNING_WAIT);
    s.unreachable_ms[2] = 20000;
    s.made_ms = 5000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes_count, 1);
    UNIT_EQUAL(s.decision.indexes[0], 2);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x0f), TRPI_DOWNING_WAIT);
    s.made_ms = 5001; /* 4 may have died since it saw that */
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1f), TRPI_DOWNING_ROLL_CALL);
    s.unreachable_ms[2] = 1000000; /* once is enough */
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x0f), TRPI_DOWNING_WAIT);
    s.unreachable_ms[2] = 3000; /* given up because it comes and goes: 4 must have seen this, too */
    s.unstable_ms = 35000;
    s.made_ms = 1000000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x0b), TRPI_DOWNING_WAIT);
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1b), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
    scene_make(&s, 5, NULL); /* its own report needs no proof */
    scene_row(&s, 0, 2);
    s.stable_ms = 0;
    s.unstable_ms = 30000;
    s.unreachable_ms[2] = 20000;
    s.made_ms = 1000000;
    UNIT_EQUAL(scene_decide(&s, "keep-majority", &options, 0, 0x1b), TRPI_DOWNING_DOWN_MEMBERS);
    scene_end(&s);
}

/* downing-D16: the leader 0 has not reported 2 itself; 4 has */
static void
auto_down_believes_no_observer_that_may_be_dead(void)
{
    trpi_downing_options options = { .auto_down_after_ms = 6000 };
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 4, 2);
    s.made_ms = 1000000;
    s.unreachable_ms[2] = 3999;
    UNIT_EQUAL(scene_decide(&s, "auto-down-after", &options, 0, 0x1f), TRPI_DOWNING_WAIT);
    s.unreachable_ms[2] = 4000;
    UNIT_EQUAL(scene_decide(&s, "auto-down-after", &options, 0, 0x1f), TRPI_DOWNING_ROLL_CALL);
    s.made_ms = 1999;
    s.unreachable_ms[2] = 5999;
    UNIT_EQUAL(scene_decide(&s, "auto-down-after", &options, 0, 0x1f), TRPI_DOWNING_WAIT);
    s.made_ms = 2000;
    s.unreachable_ms[2] = 6000;
    UNIT_EQUAL(scene_decide(&s, "auto-down-after", &options, 0, 0x0f), TRPI_DOWNING_WAIT);
    UNIT_EQUAL(scene_decide(&s, "auto-down-after", &options, 0, 0x1f), TRPI_DOWNING_DOWN_MEMBERS);
    UNIT_EQUAL(s.decision.indexes[0], 2);
    scene_end(&s);
}

/* downing-D12: what keeps two sides of a lease apart is the lease, and down-all keeps no member */
static void
lease_and_down_all_stop_in_unrest_whoever_is_steady(void)
{
    trpi_downing_options options = options_of(3, 1);
    options.unstable_after_ms = 15000;
    struct scene s;
    scene_make(&s, 5, NULL);
    scene_row(&s, 0, 4);
    s.stable_ms = 0;
    s.unstable_ms = s.unsure_ms = 35000;
    UNIT_EQUAL(scene_decide(&s, "lease", &options, 0, 0xf), TRPI_DOWNING_DOWN_SELF);
    UNIT_EQUAL(scene_decide(&s, "down-all", &options, 0, 0xf), TRPI_DOWNING_DOWN_SELF);
    scene_end(&s);
}

static trpi_downing_next_crash
next_crash_of(const char *strategy, uint32_t n, const uint32_t *status, uint32_t leaving)
{
    struct scene s;
    uint32_t marks[SCENE_MEMBERS_MAX];
    trpi_downing_options options = options_of(n / 2 + 1, 1);
    options.referee = mesh_id(0, 0).address;
    scene_make(&s, n, status);
    UNIT_EQUAL(trpi_gossip_freeze(s.view), TRP_OK);
    scene_votes(&s);
    trpi_downing_input input = { .gossip = s.view, .votes = &s.votes };
    trpi_downing_next_crash cast =
        trpi_downing_next_crash_find(trpi_downing_find(strategy), &options, &input, leaving, marks);
    scene_end(&s);
    return cast;
}

/* The forecast of `leave`: the members whose crash would stop the rest, once this one has left. */
static void
a_leave_foretells_what_the_next_crash_does(void)
{
    static const struct {
        const char *strategy;
        uint32_t n, leaving, votes, fatal, first;
    } lines[] = {
        { "keep-majority", 4, 3, 3, 0, TRPI_GOSSIP_NONE },
        { "keep-majority", 3, 2, 2, 1, 0 }, /* then 1 is alone, and not the lowest */
        { "keep-majority", 3, 0, 2, 1, 1 },
        { "keep-majority", 2, 1, 1, 1, 0 },
        { "keep-majority", 1, 0, 0, 0, TRPI_GOSSIP_NONE },
        { "static-quorum", 5, 4, 4, 0, TRPI_GOSSIP_NONE },
        { "static-quorum", 3, 2, 2, 2, 0 },
        { "keep-oldest", 3, 2, 2, 1, 0 }, /* the oldest; of 1 it is not */
        { "keep-referee", 4, 3, 3, 1, 0 },
        { "down-all", 4, 3, 3, 3, 0 },
        { "manual", 3, 2, 2, 0, TRPI_GOSSIP_NONE },
        { "auto-down-after", 2, 1, 1, 1, 0 }, /* none is left */
        { "lease", 3, 2, 2, 0, TRPI_GOSSIP_NONE },
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        trpi_downing_next_crash cast =
            next_crash_of(lines[i].strategy, lines[i].n, NULL, lines[i].leaving);
        if (!UNIT_EQUAL(cast.votes, lines[i].votes) || !UNIT_EQUAL(cast.fatal, lines[i].fatal) ||
            !UNIT_EQUAL(cast.first, lines[i].first)) {
            printf("  %s, %u members\n", lines[i].strategy, lines[i].n);
        }
    }
    uint32_t exits[SCENE_MEMBERS_MAX] = { 0, 0, 0, TRP_MEMBER_EXITING | SCENE_SURE };
    UNIT_EQUAL(next_crash_of("keep-majority", 4, exits, 2).fatal, 1); /* two leave */
}

static uint32_t
draw_below(uint64_t *state, uint32_t bound)
{
    *state = trpi_hash_u64(*state + 0x9e3779b97f4a7c15u);
    return (uint32_t)(*state % bound);
}

struct drawn_cluster {
    uint32_t n, joins;
    uint32_t leaves, ended; /* an ended member knew that it was Exiting */
    uint32_t parts[3];
    uint32_t status[SCENE_MEMBERS_MAX];
};

/* Draw what one part knows of leaving members (downing-votes-D10) and of joiners' views. Returns
 * the member that it remembers as having known that it is Exiting; n: none. */
static uint32_t
draw_knowledge(uint64_t *state, struct drawn_cluster *c, uint32_t part)
{
    static const uint32_t known[] = { 0,
                                      TRP_MEMBER_LEAVING,
                                      TRP_MEMBER_EXITING,
                                      TRP_MEMBER_DOWN,
                                      TRP_MEMBER_EXITING,
                                      SCENE_REMOVED };
    uint32_t leaving = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        if ((c->joins >> i & 1) != 0) {
            c->status[i] = draw_below(state, 3) == 0 ? TRP_MEMBER_LEAVING | SCENE_NEVER_UP
                                                     : TRP_MEMBER_JOINING;
        } else if ((c->leaves >> i & 1) != 0) {
            bool ended = (c->ended >> i & 1) != 0;
            c->status[i] = known[draw_below(state, (c->parts[part] >> i & 1) != 0 ? 2
                                                   : ended                        ? 6
                                                                                  : 4)];
            bool remembered =
                ended && c->status[i] == TRP_MEMBER_EXITING && draw_below(state, 2) == 0;
            leaving = leaving == c->n && remembered ? i : leaving;
        }
    }
    return leaving;
}

/* One cluster that falls into up to three parts: at most one of them stays, whatever the strategy,
 * and all members of a part decide alike. The parts know different views of joiners and of leaving
 * members. */
static void
of_any_parts_at_most_one_stays(void)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest",
                                              "keep-referee", "down-all" };
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t state = seed;
        struct drawn_cluster c = { .n = 2 + draw_below(&state, SCENE_MEMBERS_MAX - 1) };
        for (uint32_t i = 0; i < c.n; i++) {
            uint32_t kind = draw_below(&state, 8);
            c.joins |= kind == 0 ? 1u << i : 0;
            c.leaves |= i < 2 && kind >= 4 ? 1u << i : 0;
            c.ended |= i < 2 && kind >= 5 ? 1u << i : 0;
            c.status[i] = kind == 1 ? TRP_MEMBER_LEAVING : 0;
            c.parts[draw_below(&state, 3)] |= 1u << i & ~c.ended;
        }
        trpi_downing_options options =
            options_of(1 + draw_below(&state, c.n), 1 + draw_below(&state, c.n / 2 + 1));
        options.keep_lone_oldest = draw_below(&state, 2) == 0;
        options.referee = mesh_id(draw_below(&state, c.n), 0).address;
        snprintf(options.role, sizeof options.role, "%s", draw_below(&state, 3) == 0 ? "odd" : "");
        const char *strategy = strategies[seed % 5];
        uint32_t staying = 0;
        uint32_t mixed = 0;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t leaving = draw_knowledge(&state, &c, i);
            enum fate fate =
                c.parts[i] == 0 || c.parts[i] == (1u << c.n) - 1
                    ? FATE_STOPS
                    : fate_beside(strategy, &options, c.n, c.parts[i], c.status, leaving);
            staying += fate == FATE_STAYS ? 1 : 0;
            mixed += fate == FATE_MIXED ? 1 : 0;
        }
        if (staying > 1 || mixed > 0) {
            printf("  seed %llu: %s, %u members\n", (unsigned long long)seed, strategy, c.n);
        }
        UNIT_TRUE(staying <= 1);
        UNIT_EQUAL(mixed, 0);
    }
}

UNIT_BEGIN("downing_strategies")
UNIT(each_strategy_keeps_the_side_that_it_is_for)
UNIT(a_lone_oldest_is_kept_when_asked_for)
UNIT(the_oldest_of_a_role_is_meant_when_there_is_a_role)
UNIT(an_oldest_that_is_down_but_not_removed_counts_for_the_others)
UNIT(a_broken_link_does_not_cost_the_oldest_of_a_role_its_place)
UNIT(an_oldest_that_leaves_is_asked_about_twice)
UNIT(a_joiner_that_leaves_brings_no_vote)
UNIT(a_side_of_the_referee_that_is_too_small_stops)
UNIT(a_broken_link_costs_the_other_end_its_place)
UNIT(two_broken_links_cost_two_members_where_their_end_is_kept)
UNIT(a_broken_link_costs_the_later_end_its_place)
UNIT(joiners_are_counted_where_nobody_is_up)
UNIT(who_leaves_acts_before_who_joins)
UNIT(everybody_stops_when_reachability_does_not_come_to_rest)
UNIT(who_is_steady_goes_on_in_unrest_if_that_is_enough)
UNIT(in_unrest_who_comes_and_goes_is_given_up_later_than_who_is_gone)
UNIT(in_unrest_one_end_of_a_broken_link_is_enough)
UNIT(in_unrest_a_report_counts_only_if_its_observer_lives)
UNIT(auto_down_believes_no_observer_that_may_be_dead)
UNIT(lease_and_down_all_stop_in_unrest_whoever_is_steady)
UNIT(a_leave_foretells_what_the_next_crash_does)
UNIT(of_any_parts_at_most_one_stays)
UNIT_END
