/* Gossip rounds: their targets and intervals, dropped frames, dropped tombstones (GOSSIP-06, -07,
 * -10; MEMB-31). */
#include "cluster/engine/gossip_codec.h"
#include "tests/unit/cluster/mesh.h"

/* ---- one node is watched at its work: called when it asks to be, and nothing is delivered ---- */

struct sent {
    uint32_t views[MESH_NODES_MAX];   /* by target */
    uint32_t digests[MESH_NODES_MAX]; /* that it began, not answers */
    uint32_t rounds;
};

static void
take_sent(struct mesh *m, struct sent *sent)
{
    while (m->head != m->tail) {
        struct mesh_frame f = m->queue[m->head++ % 4096];
        trpi_frame frame;
        UNIT_REQUIRE(trpi_frame_decode(f.bytes.data, f.bytes.count, &m->ids[f.from], NULL, NULL,
                                       &frame) == TRP_OK);
        sent->views[f.to] += frame.kind == TRPI_FRAME_ENVELOPE;
        sent->digests[f.to] += frame.kind == TRPI_FRAME_DIGEST;
        trpi_frame_fini(&frame);
        trpi_buffer_fini(&f.bytes);
    }
}

static struct sent
watch_rounds(struct mesh *m, uint32_t node, uint32_t rounds)
{
    struct sent sent = { .rounds = rounds };
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t wake_ms = trpi_member_wake_ms(m->cores[node]);
        m->now_ms = wake_ms > m->now_ms ? wake_ms : m->now_ms;
        trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
        (void)mesh_step(m, node, &event);
        take_sent(m, &sent);
    }
    return sent;
}

/* Six members and a new one of which 3, 4 and 5 have not heard. Node 1 leads nothing. */
static struct mesh *
half_seen(const trpi_member_options *options)
{
    struct mesh *m = mesh_cluster(6, options);
    mesh_add(m, options);
    m->cut[3] = m->cut[4] = m->cut[5] = true;
    UNIT_EQUAL(mesh_join(m, 6, 0), TRP_OK);
    mesh_run(m, 5000);
    m->cut[3] = m->cut[4] = m->cut[5] = false;
    UNIT_EQUAL(trpi_seen_count(trpi_member_seen(m->cores[1])), 4);
    return m;
}

/* GOSSIP-07, GOSSIP-01: with its probability to a member with another view, else to any: 3 of 6
 * have one */
static void
a_peer_with_another_view_is_chosen_with_the_set_probability(void)
{
    static const struct {
        double probability, expected;
    } cases[] = { { -1, 0.5 }, { 0.4, 0.7 }, { 0.8, 0.9 }, { 1.0, 1.0 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trpi_member_options options = { .seed = 5,
                                        .downing_strategy = "manual",
                                        .gossip_different_view_probability = cases[i].probability };
        struct mesh *m = half_seen(&options);
        struct sent sent =
            watch_rounds(m, 1, 4000); /* every other time the leader's tick, not a round */
        uint32_t unseen = sent.views[3] + sent.views[4] + sent.views[5];
        uint32_t seen = sent.digests[0] + sent.digests[2] + sent.digests[6];
        double share = (double)unseen / (unseen + seen);
        UNIT_TRUE(unseen + seen >= 1500);
        if (!UNIT_TRUE(share > cases[i].expected - 0.04 && share < cases[i].expected + 0.04)) {
            printf("  %.2f: %.3f, not %.2f\n", cases[i].probability, share, cases[i].expected);
        }
        for (uint32_t to = 3; to < 6; to++) { /* evenly */
            UNIT_TRUE(sent.views[to] * 3 > unseen * 8 / 10);
        }
        mesh_free(m);
    }
}

/* Milliseconds of `rounds` rounds of node 1. */
static uint64_t
rounds_take_ms(struct mesh *m, uint32_t rounds)
{
    struct sent sent;
    uint64_t begin_ms = m->now_ms;
    for (uint32_t sends = 0; sends < rounds;) {
        sent = watch_rounds(m, 1, 1);
        for (uint32_t i = 0; i < m->count; i++) {
            sends += sent.views[i] + sent.digests[i];
        }
    }
    return m->now_ms - begin_ms;
}

/* MEMB-31, GOSSIP-06: each gossip-interval; three times as often while few have seen the view */
static void
rounds_come_at_their_interval_and_faster_while_few_have_seen_the_view(void)
{
    for (uint32_t interval_ms = 200; interval_ms <= 2000; interval_ms *= 10) {
        trpi_member_options options = { .seed = 5,
                                        .gossip_interval_ms = interval_ms,
                                        .leader_actions_interval_ms = 60000,
                                        .downing_strategy = "manual" };
        struct mesh *m = mesh_cluster(6, &options);
        mesh_run(m, 20000);
        uint64_t calm_ms = rounds_take_ms(m, 100);
        UNIT_TRUE(calm_ms > 95 * interval_ms && calm_ms < 106 * interval_ms);
        uint64_t subject = trpi_ident_key(&m->ids[5]); /* its own change, that no member hears of */
        trpi_member_event observe = { .kind = TRPI_MEMBER_OBSERVE,
                                      .keys = &subject,
                                      .keys_count = 1 };
        struct sent at_once = { .rounds = 0 };
        take_sent(m, &at_once);
        UNIT_EQUAL(mesh_step(m, 1, &observe), TRP_OK);
        take_sent(m, &at_once);
        uint32_t told = 0;
        for (uint32_t i = 0; i < m->count; i++) {
            told += at_once.views[i];
        }
        UNIT_TRUE(told >= 2); /* gossip at once on an own change */
        (void)watch_rounds(m, 1, 3);
        uint64_t eager_ms = rounds_take_ms(m, 60);
        UNIT_TRUE(eager_ms < 60 * interval_ms / 2);
        mesh_free(m);
    }
}

/* ---- what is dropped ------------------------------------------------------------------------- */

/* The view of `of` as a frame for node 0. */
static trpi_buffer
envelope_of(struct mesh *m, uint32_t of, uint64_t to_uid)
{
    trpi_buffer bytes = { 0 };
    trpi_frame frame = { .kind = TRPI_FRAME_ENVELOPE,
                         .to_uid = to_uid,
                         .gossip = trpi_member_view(m->cores[of]) };
    UNIT_REQUIRE(trpi_frame_encode(&frame, trpi_member_seen(m->cores[of]), &bytes) == TRP_OK);
    return bytes;
}

/* Node 0 is handed it as from `from`, after it waited; is its view another one now? */
static bool
changes_view(struct mesh *m, const trpi_buffer *bytes, trpi_node_id from, uint64_t waited_ms)
{
    uint64_t before = trpi_member_view(m->cores[0])->digest;
    trpi_member_event event = { .kind = TRPI_MEMBER_FRAME,
                                .from = from,
                                .bytes = bytes->data,
                                .count = bytes->count,
                                .arrived_ms = m->now_ms - waited_ms };
    UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
    return trpi_member_view(m->cores[0])->digest != before;
}

/* GOSSIP-10, and gossip-time-to-live at its limit and one past it */
static void
gossip_for_another_incarnation_of_a_stranger_without_us_or_too_old_changes_nothing(void)
{
    trpi_member_options options = { .seed = 5, .gossip_ttl_ms = 700, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options), *other = mesh_new();
    (void)mesh_add_as(other, mesh_id(6, 66), NULL, &options);
    UNIT_EQUAL(mesh_join(other, 0, 0), TRP_OK);
    trpi_member_stats before, after;
    m->cut[0] = true; /* it does not hear of what comes */
    mesh_observe(m, 1, 1u << 2);
    mesh_run(m, 100);
    trpi_buffer news = envelope_of(m, 1, m->ids[0].uid);
    trpi_buffer for_predecessor = envelope_of(m, 1, m->ids[0].uid - 1);
    trpi_buffer without_us = envelope_of(other, 0, m->ids[0].uid);
    trpi_node_id stranger = mesh_id(7, 77), successor = m->ids[1];
    successor.uid++;
    trpi_member_stats_get(m->cores[0], &before);
    UNIT_FALSE(changes_view(m, &for_predecessor, m->ids[1], 0));
    UNIT_FALSE(changes_view(m, &news, stranger, 0));
    UNIT_FALSE(changes_view(m, &news, successor, 0)); /* not the one that is a member */
    UNIT_FALSE(changes_view(m, &without_us, m->ids[1], 0));
    trpi_member_stats_get(m->cores[0], &after);
    UNIT_EQUAL(after.ignored - before.ignored, 4);
    UNIT_FALSE(changes_view(m, &news, m->ids[1], 701));
    trpi_member_stats_get(m->cores[0], &after);
    UNIT_EQUAL(after.expired - before.expired, 1);
    UNIT_TRUE(changes_view(m, &news, m->ids[1], 700));
    trpi_buffer_fini(&news);
    trpi_buffer_fini(&for_predecessor);
    trpi_buffer_fini(&without_us);
    mesh_free(other);
    mesh_free(m);
}

/* GOSSIP-10, ours: an unreachable member may have news all the same; so partitions heal sooner */
static void
gossip_of_an_unreachable_member_is_heard(void)
{
    trpi_member_options options = { .seed = 5, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    m->cut[0] = true;
    mesh_observe(m, 1, 1u << 2);
    mesh_run(m, 100);
    trpi_buffer news = envelope_of(m, 1, m->ids[0].uid);
    mesh_observe(m, 0, 1u << 1);
    UNIT_TRUE(changes_view(m, &news, m->ids[1], 0));
    trpi_buffer_fini(&news);
    mesh_free(m);
}

/* ---- what counts, and what is forgotten ------------------------------------------------------ */

/* GAP-07: a joiner that is silent keeps no other from becoming Up */
static void
joiners_need_not_have_seen_the_view(void)
{
    trpi_member_options options = { .seed = 5, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(2, &options);
    m->cut[1] = true; /* not noticed yet: a joiner waits */
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 2, 0), TRP_OK);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_JOINING);
    m->cut[2] = true; /* from now on it hears nothing */
    m->cut[1] = false;
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 3, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_UP);
    UNIT_FALSE(trpi_member_is_converged(m->cores[0])); /* as one that is Up it counts */
    mesh_free(m);
}

/* GAP-07: Any of them may lead, so two could make members Up at one time. */
static void
where_nobody_is_up_all_who_join_must_have_seen_the_view(void)
{
    trpi_member_options options = { .seed = 5,
                                    .min_nr_of_members = 4,
                                    .downing_strategy = "manual" };
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < 4; i++) {
        mesh_add(m, &options);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
        mesh_run(m, 1000);
        m->cut[2] = i >= 2;
    }
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(mesh_status(m, 0, i), TRP_MEMBER_JOINING);
    }
    m->cut[2] = false;
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < 4; i++) {
        UNIT_EQUAL(mesh_status(m, 0, i), TRP_MEMBER_UP);
        UNIT_EQUAL(mesh_status(m, 2, i), TRP_MEMBER_UP);
    }
    mesh_free(m);
}

/* GAP-10: a removed member leaves no entry in the clock, and its tombstone ends with its age */
static void
who_was_removed_is_forgotten_after_the_age_of_its_tombstone(void)
{
    trpi_member_options options = { .seed = 5,
                                    .prune_tombstones_after_ms = 60000,
                                    .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 5000);
    for (uint32_t i = 0; i < 2; i++) {
        const trpi_gossip *g = trpi_member_view(m->cores[i]);
        UNIT_EQUAL(g->tombstones_count, 1);
        UNIT_TRUE(g->clock_count <= 2);
        UNIT_EQUAL(trpi_vclock_get(g->clock, g->clock_count, trpi_ident_key(&m->ids[2])), 0);
    }
    mesh_run(m, 50000);
    UNIT_EQUAL(trpi_member_view(m->cores[0])->tombstones_count, 1);
    mesh_run(m, 10000);
    for (uint32_t i = 0; i < 2; i++) {
        UNIT_EQUAL(trpi_member_view(m->cores[i])->tombstones_count, 0);
        UNIT_TRUE(trpi_member_is_converged(m->cores[i]));
    }
    mesh_free(m);
}

/* GAP-10: membership-leader-L4: neither when the one that removes a member is a day behind, nor
 * when one that hears of it is a day ahead. A member that did not see the removal uses the wall
 * clock, and drops the tombstone at once. */
static void
a_wrong_wall_clock_ends_no_tombstone_before_its_age(void)
{
    enum { BEHIND, AHEAD, RIGHT, GONE, LATE };
    trpi_member_options options = { .seed = 5,
                                    .prune_tombstones_after_ms = 60000,
                                    .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(4, &options);
    m->ahead_ms[AHEAD] = 86400000;
    m->ahead_ms[BEHIND] = -86400000;
    trpi_frame stale = { .kind = TRPI_FRAME_ENVELOPE,
                         .to_uid = m->ids[AHEAD].uid,
                         .gossip = trpi_gossip_ref(
                             (trpi_gossip *)(uintptr_t)trpi_member_view(m->cores[GONE])) };
    UNIT_EQUAL(mesh_order(m, GONE, TRPI_MEMBER_LEAVE, GONE), TRP_OK);
    mesh_run(m, 50000);
    mesh_hand(m, AHEAD, m->ids[RIGHT], &stale, NULL);
    UNIT_EQUAL(mesh_status(m, AHEAD, GONE), 0);
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, LATE, AHEAD), TRP_OK);
    mesh_run(m, 5000);
    for (uint32_t i = BEHIND; i <= RIGHT; i++) {
        UNIT_EQUAL(trpi_member_view(m->cores[i])->tombstones_count, 1);
    }
    UNIT_EQUAL(trpi_member_view(m->cores[LATE])->tombstones_count, 0);
    mesh_run(m, 10000);
    for (uint32_t i = BEHIND; i <= RIGHT; i++) {
        UNIT_EQUAL(mesh_members(m, i), 4);
        UNIT_EQUAL(trpi_member_view(m->cores[i])->tombstones_count, 0);
    }
    trpi_gossip_unref(stale.gossip);
    mesh_free(m);
}

/* The time between two of the leader's rounds, each of which comes 3 ms late, on a grid of 250 ms
 * whose points are 13, 263, ...; and how far the last of them was due after a point. */
static uint64_t
leaders_gap(uint32_t interval_ms, uint64_t *ret_after_ms)
{
    const trpi_member_options options = { .gossip_interval_ms = 600000,
                                          .leader_actions_interval_ms = interval_ms,
                                          .grid_ms = 250,
                                          .grid_begin_ms = 13 };
    struct mesh *m = mesh_cluster(2, &options);
    trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
    uint64_t due_ms = 0, before_ms = 0;
    for (int i = 0; i < 10; i++) {
        before_ms = due_ms;
        due_ms = trpi_member_wake_ms(m->cores[0]);
        m->now_ms = (due_ms > m->now_ms ? due_ms : m->now_ms) + 3;
        (void)mesh_step(m, 0, &event);
        UNIT_TRUE(trpi_member_wake_ms(m->cores[0]) > m->now_ms);
    }
    *ret_after_ms = (due_ms - options.grid_begin_ms) % options.grid_ms;
    mesh_free(m);
    return due_ms - before_ms;
}

/* MEMB-31 */
static void
the_leaders_rounds_come_at_points_of_the_nodes_grid(void)
{
    uint64_t after_ms = 1;
    UNIT_EQUAL(leaders_gap(1000, &after_ms), 1000);
    UNIT_EQUAL(after_ms, 0);
    UNIT_EQUAL(leaders_gap(250, &after_ms), 250);
    UNIT_EQUAL(after_ms, 0);
    /* no multiple of the grid: from when it was done */
    UNIT_EQUAL(leaders_gap(251, &after_ms), 254);
}

UNIT_BEGIN("rounds")
UNIT(a_peer_with_another_view_is_chosen_with_the_set_probability)
UNIT(rounds_come_at_their_interval_and_faster_while_few_have_seen_the_view)
UNIT(gossip_for_another_incarnation_of_a_stranger_without_us_or_too_old_changes_nothing)
UNIT(gossip_of_an_unreachable_member_is_heard)
UNIT(joiners_need_not_have_seen_the_view)
UNIT(where_nobody_is_up_all_who_join_must_have_seen_the_view)
UNIT(who_was_removed_is_forgotten_after_the_age_of_its_tombstone)
UNIT(a_wrong_wall_clock_ends_no_tombstone_before_its_age)
UNIT(the_leaders_rounds_come_at_points_of_the_nodes_grid)
UNIT_END
