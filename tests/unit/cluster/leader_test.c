/* Leader, leaving, downing, unreachable and back: the life of a cluster (MEMB, DOWN, EVENTS). */
#include "tests/unit/cluster/mesh.h"

/* MEMB-14, MEMB-16: host bytes, port as a number, uid */
static void
the_leader_is_the_first_in_order_on_every_node(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        const trpi_gossip *g = trpi_member_view(m->cores[i]);
        UNIT_EQUAL(trpi_gossip_leader(g, trpi_ident_key(&m->ids[i]), NULL), 0);
    }
    mesh_free(m);
}

/* MEMB-11, MEMB-12, EVENTS-04, EVENTS-05, MEMB-08, MEMB-09: any member may order it; Left, Exited,
 * Removed once each */
static void
a_member_that_leaves_is_gone_everywhere_within_four_seconds(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_LEFT);
    for (uint32_t i = 0; i < 2; i++) {
        UNIT_EQUAL(mesh_members(m, i), 2);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_LEFT, 2), 1);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_EXITED, 2), 1);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_MEMBER_REMOVED, 2), 1);
        UNIT_EQUAL(mesh_events(m, i, TRP_CLUSTER_UNREACHABLE, 2), 0);
    }
    mesh_free(m);
}

/* MEMB-27 */
static void
a_leader_that_leaves_hands_over_to_the_next(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    uint32_t exits = 0;
    for (uint32_t i = 0; i < m->events_count; i++) { /* it said so itself: no member missed it */
        UNIT_TRUE(m->events[i] != TRP_CLUSTER_UNREACHABLE);
        exits += m->events[i] == TRP_CLUSTER_MEMBER_EXITED && m->event_node[i] != 0 ? 1 : 0;
    }
    UNIT_EQUAL(exits, 2);
    for (uint32_t i = 1; i < 3; i++) {
        const trpi_gossip *g = trpi_member_view(m->cores[i]);
        UNIT_EQUAL(g->members_count, 2);
        uint32_t leader = trpi_gossip_leader(g, trpi_member_self(m->cores[i])->key, NULL);
        UNIT_EQUAL(g->members[leader].ident->id.uid, m->ids[1].uid);
    }
    mesh_free(m);
}

static void
leaving_twice_is_leaving_once(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 1), TRP_OK);
    mesh_run(m, 4000);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_LEFT);
    mesh_free(m);
}

/* a single node, and all at once */
/* it hands over, in the phase cluster-exiting, when it is cut off for so long that it is removed */
static void
who_is_removed_while_it_hands_over_has_left(void)
{
    trpi_member_options options = { .seed = 7, .exiting_waits = true };
    struct mesh *m = mesh_cluster(3, &options);
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_status(m, 2, 2), TRP_MEMBER_EXITING);
    m->cut[2] = true;
    mesh_observe(m, 0, 1u << 2);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_NONE);
    m->cut[2] = false;
    mesh_run(m, 3000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_LEFT);
    mesh_free(m);
}

static void
the_last_ones_leave_too(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 1), TRP_OK);
    mesh_run(m, 8000);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_LEFT);
    mesh_free(m);
}

static void
a_node_that_never_joined_leaves_at_once(void)
{
    struct mesh *m = mesh_new();
    mesh_add(m, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 0), TRP_OK);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_LEFT);
    mesh_free(m);
}

/* DOWN-04, DOWN-05, MEMB-28, MEMB-08, EVENTS-05, GAP-05 */
static void
a_healthy_member_that_is_downed_stops_and_is_removed(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_DOWNED);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    uint32_t previous = 0;
    for (uint32_t i = 0; i < m->events_count; i++) {
        if (m->event_node[i] == 1 && m->events[i] == TRP_CLUSTER_MEMBER_REMOVED) {
            previous = m->members[i].previous_status;
        }
    }
    UNIT_EQUAL(previous, TRP_MEMBER_DOWN);                         /* EVENTS-05 */
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_DOWN_CMD, 1), TRP_OK); /* MEMB-28: oneself */
    mesh_run(m, 2000);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_DOWNED);
    UNIT_EQUAL(mesh_members(m, 0), 1);
    UNIT_EQUAL(mesh_events(m, 0, TRP_CLUSTER_MEMBER_DOWNED, 1), 1);
    mesh_free(m);
}

/* membership-gossip-W1: the word of a removal that waited on its way leads to no other */
static void
two_that_have_removed_each_other_do_not_echo(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->cut[1] = true;
    for (uint32_t i = 0; i < 2; i++) {
        mesh_observe(m, i, 1u << (1 - i));
        UNIT_EQUAL(mesh_order(m, i, TRPI_MEMBER_DOWN_CMD, 1 - i), TRP_OK);
    }
    mesh_run(m, 2000);
    m->cut[1] = false;
    UNIT_EQUAL(mesh_members(m, 0), 1);
    UNIT_EQUAL(mesh_members(m, 1), 1);
    trpi_frame frame = { .kind = TRPI_FRAME_GONE,
                         .to_uid = m->ids[1].uid,
                         .code = TRP_MEMBER_DOWN };
    mesh_hand(m, 1, m->ids[0], &frame, NULL);
    UNIT_EQUAL(m->tail, m->head);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_NONE); /* the word of one that was thrown out */
    frame = (trpi_frame){ .kind = TRPI_FRAME_DIGEST, .to_uid = m->ids[1].uid };
    mesh_hand(m, 1, m->ids[0], &frame, NULL);
    UNIT_EQUAL(m->tail, m->head + 1); /* anything else is answered, once */
    mesh_deliver(m);
    UNIT_EQUAL(m->tail, m->head);
    mesh_free(m);
}

static void
a_command_for_a_stranger_says_so(void)
{
    struct mesh *m = mesh_cluster(1, NULL);
    mesh_add(m, NULL);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 1), TRP_ENOENT);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_LEAVE, 1), TRP_ENOENT);
    mesh_free(m);
}

/* MEMB-17, GOSSIP-04, MEMB-10, EVENTS-06: no joiner becomes Up while a member is unreachable;
 * MEMB-07: it heals */
static void
an_unreachable_member_blocks_the_leader_until_it_is_reachable_again(void)
{
    trpi_member_options options = { .seed = 3, .downing.stable_after_ms = 60000 };
    struct mesh *m = mesh_cluster(3, &options);
    mesh_observe(m, 0, 1u << 2);
    mesh_run(m, 500);
    UNIT_EQUAL(mesh_events(m, 1, TRP_CLUSTER_UNREACHABLE, 2), 1);
    UNIT_FALSE(trpi_member_is_converged(m->cores[1]));
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 3, 0), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_JOINING);
    mesh_observe(m, 0, 0);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_events(m, 1, TRP_CLUSTER_REACHABLE, 2), 1);
    UNIT_EQUAL(mesh_status(m, 2, 3), TRP_MEMBER_UP);
    m->cut[2] = true; /* again, and for good: the next joiner waits until it is Down */
    mesh_observe(m, 0, 1u << 2);
    mesh_run(m, 500);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 4, 0), TRP_OK);
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_status(m, 0, 4), TRP_MEMBER_JOINING);
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 4), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 1, 4), TRP_MEMBER_UP);
    mesh_free(m);
}

/* GAP-05: akka#21999: the rows of an observer that is gone pin no member */
static void
rows_of_an_observer_that_was_downed_do_not_count(void)
{
    trpi_member_options options = { .seed = 3, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    mesh_observe(m, 2, 1u << 1);
    mesh_run(m, 500);
    UNIT_FALSE(trpi_member_is_converged(m->cores[0]));
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_TRUE(trpi_member_is_converged(m->cores[0]));
    UNIT_EQUAL(mesh_events(m, 0, TRP_CLUSTER_REACHABLE, 1), 1);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    mesh_free(m);
}

/* MEMB-13, DOWN-04: the default strategy, from the observation to the removal */
static void
keep_majority_removes_a_dead_member_after_stable_after(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[2] = true;
    mesh_observe(m, 0, 1u << 2);
    mesh_observe(m, 1, 1u << 2);
    mesh_run(m, 19000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_UP);
    mesh_run(m, 5000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    UNIT_EQUAL(mesh_members(m, 1), 2);
    UNIT_TEXT(m->decision.strategy, "keep-majority");
    UNIT_TEXT(m->decision.decision, "down-unreachable");
    UNIT_EQUAL(m->decision.members, 3);
    UNIT_EQUAL(m->decision.unreachable, 1);
    mesh_free(m);
}

static void
keep_majority_stops_the_minority(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[2] = true;
    mesh_observe(m, 2, 3u);
    mesh_run(m, 40000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_DOWNED);
    mesh_free(m);
}

/* DOWN-01, DOWN-03 */
static void
the_word_of_an_observer_that_died_removes_nobody(void) /* downing-D5: it cannot take it back */
{
    trpi_member_options options = { .seed = 3,
                                    .downing_strategy = "auto-down-after",
                                    .downing.auto_down_after_ms = 2000 };
    struct mesh *m = mesh_cluster(4, &options);
    mesh_observe(m, 3, 1u << 1);
    mesh_run(m, 1000);
    UNIT_TRUE(trpi_gossip_is_unreachable(trpi_member_view(m->cores[0]), 1));
    m->cut[3] = true;
    mesh_observe(m, 0, 1u << 3);
    mesh_run(m, 200);
    UNIT_FALSE(trpi_gossip_is_unreachable(trpi_member_view(m->cores[2]), 1));
    UNIT_TRUE(trpi_gossip_is_unreachable(trpi_member_view(m->cores[2]), 3));
    UNIT_EQUAL(mesh_events(m, 2, TRP_CLUSTER_REACHABLE, 1), 1);
    mesh_run(m, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_members(m, i), 3);
        UNIT_EQUAL(mesh_status(m, i, 1), TRP_MEMBER_UP);
    }
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_NONE);
    mesh_free(m);
}

/* DOWN-03, GAP-06 */
static void
auto_down_after_marks_an_unreachable_member_down(void)
{
    trpi_member_options options = { .seed = 3,
                                    .downing_strategy = "auto-down-after",
                                    .downing.auto_down_after_ms = 2000 };
    /* Nobody can have heard of it from the one that is cut off, so the views do not converge. The
     * leader itself is one of those: then the next that can be reached acts. */
    for (uint32_t dead = 2; dead != UINT32_MAX; dead = dead == 2 ? 0 : UINT32_MAX) {
        struct mesh *m = mesh_cluster(3, &options);
        uint32_t live = 2 - dead;
        m->cut[dead] = true;
        mesh_observe(m, 1, 1u << dead);
        mesh_run(m, 1500);
        UNIT_EQUAL(mesh_status(m, live, dead), TRP_MEMBER_UP);
        mesh_run(m, 4000);
        UNIT_EQUAL(mesh_members(m, live), 2);
        UNIT_EQUAL(mesh_members(m, 1), 2);
        mesh_free(m);
    }
}

/* one is away all the time and a link beside it breaks and mends; the two others are no majority,
 * nor are they sure of the lowest address: no side may decide, so all stop */
static void
a_cluster_that_does_not_come_to_rest_stops(void)
{
    trpi_member_options options = {
        .seed = 3, .downing = { .stable_after_ms = 20000, .unstable_after_ms = 15000 }
    };
    struct mesh *m = mesh_cluster(4, &options);
    for (int second = 0; second < 34; second += 2) {
        mesh_observe(m, 3, second % 8 < 4 ? 1u << 0 : 1u << 0 | 1u << 1);
        mesh_run(m, 2000);
    }
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE); /* 34 s */
    mesh_observe(m, 3, 1u << 1);
    mesh_run(m, 3000);
    UNIT_TEXT(m->decision.decision, "down-self");
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(m->stopped[i], TRPI_STOP_DOWNED);
        trp_member self;
        const trpi_gossip *view = trpi_member_view(m->cores[i]); /* in which no member is Down */
        uint32_t index = trpi_gossip_find(view, trpi_member_self(m->cores[i])->key);
        trpi_member_fill(m->cores[i], &view->members[index], &self);
        UNIT_EQUAL(self.status, TRP_MEMBER_DOWN);
    }
    mesh_free(m);
}

/* a member that is missed and back again and again crashes: the others go on */
static void
a_cluster_that_is_whole_each_time_goes_on(void)
{
    trpi_member_options options = {
        .seed = 3, .downing = { .stable_after_ms = 20000, .unstable_after_ms = 15000 }
    };
    struct mesh *m = mesh_cluster(4, &options);
    for (int second = 0; second < 120; second += 2) {
        mesh_observe(m, 0, second % 4 == 0 ? 1u << 2 : 0);
        mesh_run(m, 2000);
    }
    for (int second = 0; second < 34; second += 2) { /* its time begins anew */
        mesh_observe(m, 3, second % 8 < 4 ? 1u << 0 : 1u << 0 | 1u << 1);
        mesh_run(m, 2000);
    }
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(m->stopped[i], TRPI_STOP_NONE);
    }
    mesh_free(m);
}

/* one that falls silent in a cluster that was quiet is an ordinary case, however long it takes */
static void
members_that_die_one_after_the_other_are_no_unrest(void)
{
    trpi_member_options options = {
        .seed = 3, .downing = { .stable_after_ms = 20000, .unstable_after_ms = 15000 }
    };
    struct mesh *m = mesh_cluster(5, &options);
    m->cut[4] = true;
    mesh_observe(m, 0, 1u << 4);
    mesh_run(m, 16000);
    m->cut[3] = true;
    mesh_observe(m, 0, 1u << 4 | 1u << 3);
    mesh_run(m, 25000); /* 41 s since the first, 20 s of rest */
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
    UNIT_EQUAL(mesh_members(m, 0), 3);
    mesh_free(m);
}

/* DOWN-02 */
static void
manual_downing_waits_for_the_operator(void)
{
    trpi_member_options options = { .seed = 3, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    m->cut[2] = true;
    mesh_observe(m, 1, 1u << 2);
    mesh_run(m, 120000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    mesh_free(m);
}

/* MEMB-24 */
static void
up_numbers_follow_the_order_of_becoming_up(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    const trpi_gossip *g = trpi_member_view(m->cores[3]);
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(g->members[trpi_gossip_find(g, trpi_ident_key(&m->ids[i]))].up_number, i + 1);
    }
    UNIT_EQUAL(trpi_gossip_oldest(g, NULL), 0);
    mesh_free(m);
}

/* a broken member says the largest numbers there are: what comes behind can still be read */
static void
largest_numbers_of_a_peer_do_not_stop_the_cluster(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    trpi_node_id id = mesh_id(7, 4711);
    trpi_ident *ident;
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &ident) == TRP_OK);
    trpi_gossip *g = trpi_gossip_copy(trpi_member_view(m->cores[1]));
    UNIT_EQUAL(trpi_gossip_add(g, ident, TRP_MEMBER_EXITING, TRPI_GOSSIP_UP_NUMBER_MAX), TRP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t key = trpi_ident_key(&m->ids[i]);
        UNIT_EQUAL(trpi_gossip_add_clock(g, key, TRPI_GOSSIP_COUNTER_MAX), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    trpi_frame frame = { .kind = TRPI_FRAME_ENVELOPE, .to_uid = m->ids[0].uid, .gossip = g };
    trpi_seen seen;
    UNIT_EQUAL(trpi_seen_init(&seen, g->members_count), TRP_OK);
    mesh_hand(m, 0, m->ids[1], &frame, &seen);
    UNIT_EQUAL(mesh_members(m, 0), 3);
    for (uint32_t node = 2; node < 4; node++) { /* at the limit, and one past it */
        mesh_add(m, NULL);
        UNIT_EQUAL(mesh_join(m, node, 0), TRP_OK);
        mesh_run(m, 3000);
        for (uint32_t at = 0; at <= node; at++) {
            UNIT_EQUAL(mesh_status(m, at, node), TRP_MEMBER_UP);
        }
    }
    trpi_seen_fini(&seen);
    trpi_gossip_unref(g);
    trpi_ident_unref(ident);
    mesh_free(m);
}

/* GOSSIP-15, GOSSIP-06, GOSSIP-08, sim-Q8: a converged cluster sends digests only, about one a
 * second and node */
static void
an_idle_cluster_is_nearly_silent(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    mesh_run(m, 5000);
    uint64_t before = m->frames;
    trpi_member_stats was, is;
    trpi_member_stats_get(m->cores[0], &was);
    mesh_run(m, 10000);
    UNIT_TRUE(m->frames - before <= 4 * 11);
    UNIT_TRUE(m->frames - before >= 4 * 8);
    trpi_member_stats_get(m->cores[0], &is); /* GOSSIP-08: versions, and no view */
    UNIT_TRUE(is.received_same > was.received_same);
    UNIT_EQUAL(is.received_newer + is.received_older + is.merged,
               was.received_newer + was.received_older + was.merged);
    UNIT_TRUE(is.bytes_out - was.bytes_out <
              (is.frames_out - was.frames_out) * trpi_member_view(m->cores[0])->encoded_bytes);
    mesh_free(m);
}

static void
options_out_of_range_are_refused(void)
{
    trpi_member_core *core = NULL;
    trpi_node_id id = mesh_id(0, 1);
    trpi_member_options options = { .downing_strategy = "keep-oldst" };
    UNIT_EQUAL(trpi_member_new(&id, NULL, 0, "1", &options, &core), TRP_EINVAL);
    options = (trpi_member_options){ .gossip_different_view_probability = 1.5 };
    UNIT_EQUAL(trpi_member_new(&id, NULL, 0, "1", &options, &core), TRP_EINVAL);
    options = (trpi_member_options){ .role_minima_count = TRPI_ROLE_MINIMA_MAX };
    UNIT_EQUAL(trpi_member_new(&id, NULL, 0, "1", &options, &core), TRP_OK);
    trpi_member_free(core);
    options.role_minima_count++;
    UNIT_EQUAL(trpi_member_new(&id, NULL, 0, "1", &options, &core), TRP_EINVAL);
}

UNIT_BEGIN("leader")
UNIT(the_leader_is_the_first_in_order_on_every_node)
UNIT(a_member_that_leaves_is_gone_everywhere_within_four_seconds)
UNIT(a_leader_that_leaves_hands_over_to_the_next)
UNIT(leaving_twice_is_leaving_once)
UNIT(who_is_removed_while_it_hands_over_has_left)
UNIT(the_last_ones_leave_too)
UNIT(a_node_that_never_joined_leaves_at_once)
UNIT(a_healthy_member_that_is_downed_stops_and_is_removed)
UNIT(two_that_have_removed_each_other_do_not_echo)
UNIT(a_command_for_a_stranger_says_so)
UNIT(an_unreachable_member_blocks_the_leader_until_it_is_reachable_again)
UNIT(rows_of_an_observer_that_was_downed_do_not_count)
UNIT(keep_majority_removes_a_dead_member_after_stable_after)
UNIT(keep_majority_stops_the_minority)
UNIT(auto_down_after_marks_an_unreachable_member_down)
UNIT(the_word_of_an_observer_that_died_removes_nobody)
UNIT(a_cluster_that_does_not_come_to_rest_stops)
UNIT(a_cluster_that_is_whole_each_time_goes_on)
UNIT(members_that_die_one_after_the_other_are_no_unrest)
UNIT(manual_downing_waits_for_the_operator)
UNIT(up_numbers_follow_the_order_of_becoming_up)
UNIT(largest_numbers_of_a_peer_do_not_stop_the_cluster)
UNIT(an_idle_cluster_is_nearly_silent)
UNIT(options_out_of_range_are_refused)
UNIT_END
