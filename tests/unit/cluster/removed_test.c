/* A node that was removed and does not know it: whose word ends it, and what one that has stood
 * still leaves alone until it knows which members are there (MEMB-12, DOWN). */
#include "cluster/engine/downing_sides.h"
#include "tests/unit/cluster/scene.h"

/* ---- whose word ------------------------------------------------------------------------------ */

/* That of a side that may go on, as the strategy itself says. */
static void
a_side_may_go_on_by_its_word_where_its_strategy_lets_it(void)
{
    static const struct {
        const char *name, *counts_as;
    } strategies[] = { { "keep-majority", "keep-majority" }, { "static-quorum", "static-quorum" },
                       { "keep-oldest", "keep-oldest" },     { "keep-referee", "keep-referee" },
                       { "manual", "keep-majority" },        { "auto-down-after", "keep-majority" },
                       { "down-all", "keep-majority" },      { "lease", "keep-majority" } };
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        for (uint32_t n = 2; n <= 5; n++) {
            trpi_downing_options options = { .stable_after_ms = 20000,
                                             .quorum_size = n / 2 + 1,
                                             .least_nodes = 1,
                                             .referee = mesh_id(n - 1, 0).address };
            for (uint32_t mask = 1; mask < (1u << n) - 1; mask++) {
                struct scene s;
                uint32_t marks[SCENE_MEMBERS_MAX];
                trpi_downing_count count;
                scene_make(&s, n, NULL);
                UNIT_EQUAL(trpi_gossip_freeze(s.view), TRP_OK);
                for (uint32_t k = 0; k < n; k++) {
                    marks[k] = (mask >> k & 1) != 0 ? TRPI_MARK_CLEAR : TRPI_MARK_AWAY;
                }
                scene_votes(&s);
                trpi_downing_input input = { .gossip = s.view, .votes = &s.votes };
                bool stays =
                    fate_of(strategies[i].counts_as, &options, n, mask, NULL) == FATE_STAYS;
                UNIT_EQUAL(trpi_downing_may_go_on(trpi_downing_find(strategies[i].name), &options,
                                                  &input, marks, &count),
                           stays);
                UNIT_EQUAL(count.side, (uint32_t)__builtin_popcount(mask));
                UNIT_EQUAL(count.all, n);
                scene_end(&s);
            }
        }
    }
}

/* downing-votes-D10: 0 is Exiting and knows it, so it is on no side; of the others the oldest may
 * be away. */
static void
a_side_without_the_next_oldest_may_not_go_on_by_its_word(void)
{
    static const uint32_t status[SCENE_MEMBERS_MAX] = { TRP_MEMBER_EXITING };
    trpi_downing_options options = { .stable_after_ms = 20000 };
    struct scene s;
    scene_make(&s, 6, status);
    UNIT_EQUAL(trpi_gossip_freeze(s.view), TRP_OK);
    scene_votes(&s);
    trpi_downing_input input = { .gossip = s.view,
                                 .votes = &s.votes,
                                 .exiting_oldest = s.idents[0]->key };
    for (uint32_t first = 1; first <= 2; first++) {
        uint32_t marks[SCENE_MEMBERS_MAX];
        trpi_downing_count count;
        for (uint32_t k = 0; k < 6; k++) {
            marks[k] = k >= first && k < first + 3 ? TRPI_MARK_CLEAR : TRPI_MARK_AWAY;
        }
        UNIT_EQUAL(trpi_downing_may_go_on(trpi_downing_find("keep-oldest"), &options, &input, marks,
                                          &count),
                   first == 1);
    }
    scene_end(&s);
}

static void
refuse_handshake(struct mesh *m, uint32_t node, uint32_t by)
{
    trpi_member_event event = { .kind = TRPI_MEMBER_REMOVED_BY, .target = m->ids[by] };
    UNIT_EQUAL(mesh_step(m, node, &event), TRP_OK);
}

/* membership-removed-X1: a report that found no memory is an error to its caller, and counts when
 * it comes again */
static void
a_refusal_without_memory_counts_when_it_comes_again(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    trpi_member_event event = { .kind = TRPI_MEMBER_REMOVED_BY, .target = m->ids[0] };
    m->cut[2] = true;
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(mesh_step(m, 2, &event), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_EQUAL(trpi_member_removed_since_ms(m->cores[2]), 0);
    refuse_handshake(m, 2, 0);
    UNIT_TRUE(trpi_member_is_remover(m->cores[2], trpi_ident_key(&m->ids[0])));
    mesh_free(m);
}

/* membership-removed-X1: more than half, each counted once, and none that is no member */
static void
refusals_end_a_node_when_they_are_of_more_than_half(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(5, &options);
    m->cut[4] = true;
    m->ids[7] = mesh_id(7, 7777);
    refuse_handshake(m, 4, 7);
    refuse_handshake(m, 4, 4);
    UNIT_EQUAL(trpi_member_removed_since_ms(m->cores[4]), 0);
    UNIT_EQUAL(m->dials[4], 0);
    refuse_handshake(m, 4, 0);
    UNIT_EQUAL(m->dials[4], 3); /* membership-removed-X4: all others */
    refuse_handshake(m, 4, 0);
    refuse_handshake(m, 4, 3);
    UNIT_EQUAL(m->dials[4], 3);
    UNIT_EQUAL(trpi_member_removed_since_ms(m->cores[4]), m->now_ms);
    UNIT_TRUE(trpi_member_is_remover(m->cores[4], trpi_ident_key(&m->ids[3])));
    UNIT_FALSE(trpi_member_is_remover(m->cores[4], trpi_ident_key(&m->ids[1])));
    UNIT_EQUAL(m->stopped[4], TRPI_STOP_NONE);
    mesh_run(m, 9900);
    UNIT_TRUE(strstr(m->warning, "two clusters") == NULL); /* the others may say so yet */
    UNIT_TRUE(m->dials[4] >= 3 + 9 * 2);                   /* 1 and 2 once a second */
    mesh_run(m, 1200);
    uint32_t dials = m->dials[4];
    mesh_run(m, 3000);
    UNIT_EQUAL(m->dials[4], dials);
    UNIT_TRUE(strstr(m->warning, "two clusters: host0:2552, host3:2555 removed this node") != NULL);
    UNIT_TRUE(strstr(m->warning, "2 of 5 votes") != NULL);
    refuse_handshake(m, 4, 1);
    UNIT_EQUAL(m->stopped[4], TRPI_STOP_DOWNED);
    UNIT_TRUE(strstr(m->sides, "3 of 5 votes, which may go on by manual; it stops") != NULL);
    mesh_free(m);
}

/* membership-removed-X3 */
static void
who_talks_to_the_node_after_all_has_not_removed_it(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    m->cut[2] = true;
    refuse_handshake(m, 2, 0);
    m->cut[2] = false;
    mesh_run(m, 5000);
    UNIT_EQUAL(trpi_member_removed_since_ms(m->cores[2]), 0);
    m->cut[2] = true;
    refuse_handshake(m, 2, 1);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_NONE);
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, 0), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, 1), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_members(m, 2), 1);
    UNIT_EQUAL(trpi_member_removed_since_ms(m->cores[2]), 0); /* it is gone from the view */
    mesh_free(m);
}

/* GONE speaks for a cluster, and an older peer's for its sender. */
static void
gone_counts_for_those_that_it_names(void)
{
    for (uint32_t named = 0; named <= 2; named++) {
        trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
        struct mesh *m = mesh_cluster(5, &options);
        uint64_t keys[2] = { trpi_ident_key(&m->ids[1]), trpi_ident_key(&m->ids[2]) };
        trpi_frame gone = { .kind = TRPI_FRAME_GONE,
                            .to_uid = m->ids[4].uid,
                            .code = TRP_MEMBER_DOWN,
                            .keys = keys,
                            .keys_count = named };
        m->cut[4] = true;
        mesh_hand(m, 4, m->ids[0], &gone, NULL);
        UNIT_EQUAL(m->stopped[4], named == 2 ? TRPI_STOP_DOWNED : TRPI_STOP_NONE);
        mesh_free(m);
    }
}

/* A healthy node that an operator takes out with the other half of the votes, or with more of them
 * which by its strategy could not go on: there is no cut. */
static void
who_was_reachable_when_it_was_removed_ends_by_half_of_the_votes(void)
{
    static const struct {
        const char *strategy;
        uint32_t nodes, orders, downed; /* who orders whose end */
        bool near, ends;
    } cases[] = {
        { "manual", 2, 1, 0, true, true },        { "manual", 2, 1, 0, false, false },
        { "keep-majority", 2, 1, 0, true, true }, { "keep-referee", 3, 1, 0, true, true },
        { "manual", 3, 1, 0, true, false },       { "keep-oldest", 2, 1, 0, true, true }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trpi_member_options options = { .seed = 7,
                                        .downing_strategy = cases[i].strategy,
                                        .downing.referee = mesh_id(0, 0).address };
        struct mesh *m = mesh_cluster(cases[i].nodes, &options);
        uint64_t keys[2] = { trpi_ident_key(&m->ids[1]), trpi_ident_key(&m->ids[2]) };
        trpi_frame gone = { .kind = TRPI_FRAME_GONE,
                            .to_uid = m->ids[0].uid,
                            .code = TRP_MEMBER_DOWN,
                            .near = cases[i].near,
                            .keys = keys,
                            .keys_count = i == 3 ? 2 : 1 };
        m->cut[0] = true;
        mesh_hand(m, 0, m->ids[cases[i].orders], &gone, NULL);
        UNIT_EQUAL(m->stopped[cases[i].downed], cases[i].ends ? TRPI_STOP_DOWNED : TRPI_STOP_NONE);
        mesh_free(m);
    }
}

/* As above, with the frames that the engines themselves send, also when the first is lost. */
static void
one_of_two_that_is_downed_by_the_other_ends(void)
{
    for (uint32_t lost = 0; lost < 2; lost++) {
        struct mesh *m = mesh_cluster(2, NULL);
        m->cut[0] = lost == 1;
        UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_DOWN_CMD, 0), TRP_OK);
        m->cut[0] = false;
        mesh_run(m, 3000);
        UNIT_EQUAL(mesh_members(m, 1), 1);
        UNIT_EQUAL(m->stopped[0], TRPI_STOP_DOWNED);
        mesh_free(m);
    }
}

/* Of four, two are cut off and downed by the others one after the other; the detector leaves out
 * the first of them as soon as it is Down. Both are the half with the lowest address: they stay. */
static void
who_was_cut_off_when_it_was_downed_was_not_near(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(4, &options);
    m->cut[0] = m->cut[1] = true;
    mesh_observe(m, 2, 3);
    mesh_observe(m, 3, 3);
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, 0), TRP_OK);
    mesh_run(m, 1000);
    mesh_observe(m, 2, 2);
    mesh_observe(m, 3, 2);
    mesh_run(m, 1000);
    uint32_t first = trpi_gossip_find(trpi_member_view(m->cores[2]), trpi_ident_key(&m->ids[0]));
    UNIT_REQUIRE(first != TRPI_GOSSIP_NONE);
    UNIT_TRUE(trpi_gossip_is_unreachable(trpi_member_view(m->cores[2]), first));
    UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, 1), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 2), 2);
    m->cut[0] = m->cut[1] = false;
    mesh_run(m, 5000);
    UNIT_TRUE(trpi_member_removed_since_ms(m->cores[0]) != 0);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_NONE);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_NONE);
    mesh_free(m);
}

/* Of four, two are cut off. Their observer is itself Down when they are removed; at that moment no
 * observer that counts reports them. */
static void
who_was_cut_off_was_not_near_when_its_observer_is_down_with_it(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(4, &options);
    m->cut[0] = m->cut[1] = true;
    mesh_observe(m, 3, 3);
    mesh_run(m, 1000);
    mesh_add(m, &options); /* stays Joining, and has no vote */
    UNIT_EQUAL(mesh_join(m, 4, 2), TRP_OK);
    mesh_run(m, 2000);
    mesh_observe(m, 4, 3);
    mesh_run(m, 1000);
    mesh_observe(m, 3, 0);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 2, 4), TRP_MEMBER_JOINING);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, i < 2 ? i : 4), TRP_OK);
    }
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 2), 2);
    m->cut[0] = m->cut[1] = false;
    mesh_run(m, 5000);
    UNIT_TRUE(trpi_member_removed_since_ms(m->cores[0]) != 0);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
    UNIT_EQUAL(m->stopped[1], TRPI_STOP_NONE);
    mesh_free(m);
}

/* A Joining member is not monitored: whether it was cut off is not known. */
static void
who_was_joining_when_it_was_downed_was_not_near(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(4, &options);
    m->waking[0] = true; /* leads nothing */
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 4, 1), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_status(m, 4, 4), TRP_MEMBER_JOINING);
    m->cut[0] = m->cut[1] = m->cut[4] = true;
    mesh_observe(m, 2, 3);
    mesh_observe(m, 3, 3);
    mesh_run(m, 1000);
    UNIT_EQUAL(mesh_status(m, 2, 4), TRP_MEMBER_JOINING);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(mesh_order(m, 2, TRPI_MEMBER_DOWN_CMD, i < 2 ? i : 4), TRP_OK);
    }
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 2), 2);
    m->cut[4] = false;
    mesh_run(m, 5000);
    UNIT_TRUE(trpi_member_removed_since_ms(m->cores[4]) != 0);
    UNIT_EQUAL(m->stopped[4], TRPI_STOP_NONE);
    mesh_free(m);
}

/* membership-removed-X3: that the node was reachable is a part of a word, and taken back with it */
static void
a_word_that_was_taken_back_does_not_say_that_the_node_was_near(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(6, &options);
    trpi_frame gone = {
        .kind = TRPI_FRAME_GONE, .to_uid = m->ids[0].uid, .code = TRP_MEMBER_DOWN, .near = true
    };
    trpi_frame other = { .kind = TRPI_FRAME_DIGEST,
                         .to_uid = m->ids[0].uid,
                         .digest = trpi_member_view(m->cores[0])->digest };
    m->cut[0] = true;
    mesh_hand(m, 0, m->ids[1], &gone, NULL);
    refuse_handshake(m, 0, 3);
    mesh_hand(m, 0, m->ids[1], &other, NULL);
    UNIT_FALSE(trpi_member_is_remover(m->cores[0], trpi_ident_key(&m->ids[1])));
    refuse_handshake(m, 0, 4);
    refuse_handshake(m, 0, 5);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE); /* half of the votes, without the lowest address */
    mesh_hand(m, 0, m->ids[3], &gone, NULL);   /* known before, but not this */
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_DOWNED);
    mesh_free(m);
}

/* Its removers have been restarted since, one after the other. When the node was cut off, it had
 * heard that the others do not reach it, or not. */
static void
successors_of_removers_end_a_node(bool was_told)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(3, &options);
    if (was_told) {
        mesh_observe(m, 0, 1u << 2);
        mesh_observe(m, 1, 1u << 2);
        mesh_run(m, 2000);
    }
    m->cut[2] = true;
    UNIT_EQUAL(mesh_order(m, 0, TRPI_MEMBER_DOWN_CMD, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    for (uint32_t i = 0; i < 2; i++) {
        m->cut[i] = true;
        mesh_add_as(m, mesh_id(i, 5000 + i), NULL, &options);
        UNIT_EQUAL(mesh_join(m, 3 + i, i == 0 ? 1 : 3), TRP_OK);
        mesh_run(m, 3000);
        UNIT_EQUAL(mesh_status(m, 3 + i, 3 + i), TRP_MEMBER_UP);
    }
    UNIT_EQUAL(mesh_members(m, 3), 2);
    mesh_observe(m, 2, 3);
    m->cut[2] = false;
    mesh_run(m, 30000);
    UNIT_EQUAL(m->stopped[2], TRPI_STOP_DOWNED);
    UNIT_EQUAL(m->stopped[3], TRPI_STOP_NONE);
    mesh_free(m);
}

/* membership-removed-X5 */
static void
the_successors_of_its_removers_end_a_node(void)
{
    successors_of_removers_end_a_node(false);
}

/* membership-foreign-G4: by its own view the node is the one that is unreachable, and what it
 * reports of the others does not count. */
static void
the_successors_of_its_removers_end_a_node_whose_reports_do_not_count(void)
{
    successors_of_removers_end_a_node(true);
}

/* membership-removed-X2, membership-downing-W2 */
static void
with_a_lease_one_word_is_enough(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "lease" };
    struct mesh *m = mesh_cluster(5, &options);
    trpi_frame gone = { .kind = TRPI_FRAME_GONE, .to_uid = m->ids[4].uid, .code = TRP_MEMBER_DOWN };
    mesh_hand(m, 4, m->ids[0], &gone, NULL);
    UNIT_EQUAL(m->stopped[4], TRPI_STOP_DOWNED);
    mesh_free(m);
}

/* membership-removed-X4 */
static void
one_refusal_makes_the_node_dial_all_others_anew(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "manual" };
    struct mesh *m = mesh_cluster(5, &options);
    m->cut[4] = true;
    refuse_handshake(m, 4, 0);
    uint32_t count, dialled = 0;
    const trpi_member_action *actions = trpi_member_actions(m->cores[4], &count);
    for (uint32_t i = 0; i < count; i++) {
        dialled |= actions[i].kind == TRPI_ACTION_DIAL ? 1u << mesh_find(m, &actions[i].to) : 0;
    }
    UNIT_EQUAL(dialled, 14); /* 1, 2 and 3 */
    mesh_free(m);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* membership-leader-L5: it would lead, and does when it knows which members are there. */
static void
a_leader_that_is_waking_makes_nobody_up_and_removes_nobody(void)
{
    trpi_member_options options = { .seed = 3,
                                    .downing_strategy = "manual",
                                    .weakly_up_after_ms = 1000 };
    struct mesh *m = mesh_cluster(3, &options);
    m->waking[0] = true;
    mesh_add(m, &options);
    UNIT_EQUAL(mesh_join(m, 3, 1), TRP_OK);
    UNIT_EQUAL(mesh_order(m, 1, TRPI_MEMBER_LEAVE, 2), TRP_OK);
    mesh_run(m, 8000);
    UNIT_EQUAL(mesh_status(m, 0, 3), TRP_MEMBER_JOINING);
    UNIT_EQUAL(mesh_status(m, 1, 3), TRP_MEMBER_JOINING);
    UNIT_EQUAL(mesh_status(m, 1, 2), TRP_MEMBER_LEAVING);
    m->waking[0] = false;
    mesh_run(m, 4000);
    UNIT_EQUAL(mesh_status(m, 1, 3), TRP_MEMBER_UP);
    UNIT_EQUAL(mesh_status(m, 1, 2), 0);
    mesh_free(m);
}

/* membership-downing-W5, with each strategy that would act by then; it decides as always when it is
 * awake. */
static void
a_node_that_is_waking_marks_nobody_down_and_does_not_stop_itself(void)
{
    static const char *const strategies[] = { "auto-down-after", "keep-majority", "keep-majority",
                                              "lease" };
    for (uint32_t i = 0; i < 4; i++) {
        trpi_member_options options = { .seed = 3,
                                        .downing_strategy = strategies[i],
                                        .downing.stable_after_ms = 5000 };
        struct mesh *m = mesh_cluster(3, &options);
        uint32_t lost = i == 2 ? 6 : 4;
        m->cut[2] = true;
        m->cut[1] = i == 2;
        m->waking[0] = true;
        mesh_observe(m, 0, lost);
        mesh_run(m, 12000);
        UNIT_EQUAL(mesh_status(m, 0, 2), TRP_MEMBER_UP);
        UNIT_EQUAL(m->stopped[0], TRPI_STOP_NONE);
        UNIT_FALSE(m->asks_lease[0]);
        m->waking[0] = false;
        mesh_run(m, 6000);
        UNIT_TRUE(i == 2   ? m->stopped[0] == TRPI_STOP_DOWNED
                  : i == 3 ? m->asks_lease[0]
                           : mesh_status(m, 0, 2) == 0);
        mesh_free(m);
    }
}

/* membership-contact-J12: a joiner goes through another one, and makes no cluster of its own
 * meanwhile. */
static void
a_contact_that_is_waking_lets_nobody_in(void)
{
    struct mesh *m = mesh_cluster(2, NULL);
    m->waking[0] = m->waking[1] = true;
    mesh_add_as(m, mesh_id(2, 1002), NULL, NULL);
    trpi_address seeds[3] = { m->ids[2].address, m->ids[0].address, m->ids[1].address };
    trpi_member_event join = { .kind = TRPI_MEMBER_JOIN, .addresses = seeds, .addresses_count = 3 };
    UNIT_EQUAL(mesh_step(m, 2, &join), TRP_OK);
    mesh_run(m, 8000);
    UNIT_EQUAL(mesh_members(m, 2), 0);
    UNIT_EQUAL(mesh_members(m, 0), 2);
    m->waking[1] = false;
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_members(m, 1), 3);
    mesh_free(m);
}

/* membership-contact-J10: a joiner waits for the next version when its contact stands still. The
 * contact is awake when its detector says so; till then it has nothing to wake for at once, again
 * and again. */
static void
who_waits_to_be_let_in_does_not_keep_a_waking_contact_busy(void)
{
    bool waits = false;
    for (uint64_t seed = 1; seed <= 50 && !waits; seed++) {
        trpi_member_options options = { .seed = seed, .buggify = true };
        struct mesh *m = mesh_cluster(2, &options);
        mesh_add(m, NULL);
        mesh_add(m, NULL);
        UNIT_EQUAL(mesh_join(m, 2, 0), TRP_OK);
        UNIT_EQUAL(mesh_join(m, 3, 0), TRP_OK);
        mesh_drain(m);
        waits = mesh_status(m, 0, 2) != 0 && mesh_status(m, 0, 3) == 0;
        m->waking[0] = true;
        m->now_ms += 400;
        trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
        UNIT_EQUAL(mesh_step(m, 0, &event), TRP_OK);
        UNIT_TRUE(trpi_member_wake_ms(m->cores[0]) > m->now_ms);
        m->waking[0] = false;
        mesh_run(m, 3000);
        UNIT_TRUE(mesh_status(m, 0, 3) != 0);
        mesh_free(m);
    }
    UNIT_TRUE(waits);
}

/* ---- letting nodes in meanwhile (membership-contact-J13) ------------------------------------- */

/* Of three, 0 is cut off from the others for so long; then it is reached by a new incarnation of 1,
 * which 2 may have lost since: returns its number. */
static uint32_t
successor_of_one_that_was_away(struct mesh *m, uint64_t ms)
{
    m->cut[0] = true;
    mesh_observe(m, 0, 1u << 1 | 1u << 2);
    mesh_run(m, ms);
    m->cut[0] = false;
    m->cut[1] = m->cut[2] = true;
    uint32_t successor = mesh_add_as(m, mesh_id(1, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, successor, 0), TRP_OK);
    mesh_run(m, 3000);
    return successor;
}

static void
a_vote_that_was_away_for_long_does_not_come_back_with_a_new_incarnation(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    uint32_t successor = successor_of_one_that_was_away(m, 11000);
    UNIT_EQUAL(mesh_status(m, 0, successor), 0);
    UNIT_EQUAL(trpi_member_phase_get(m->cores[successor]), TRPI_PHASE_SEEKING);
    UNIT_TRUE(strstr(trpi_member_seek_why(m->cores[successor]), "may have removed it") != NULL);
    mesh_run(m, 10000);
    UNIT_EQUAL(m->stopped[0], TRPI_STOP_DOWNED); /* and its side is a minority */
    mesh_free(m);
}

static void
a_vote_that_was_away_for_a_moment_comes_back_with_a_new_incarnation(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    uint32_t successor = successor_of_one_that_was_away(m, 5000);
    UNIT_EQUAL(mesh_status(m, 0, successor), TRP_MEMBER_JOINING);
    mesh_run(m, 30000);
    UNIT_EQUAL(m->stopped[0], 0);
    UNIT_EQUAL(mesh_status(m, 0, successor), TRP_MEMBER_UP);
    mesh_free(m);
}

/* All others report the contact, so what it reports does not count: nobody is unreachable in its
 * view but itself. It was removed in this way in seed 8561 of state_test. */
static void
a_contact_whose_reports_do_not_count_misses_members_all_the_same(void)
{
    struct mesh *m = mesh_cluster(4, NULL);
    for (uint32_t i = 1; i < 4; i++) {
        mesh_observe(m, i, 1u << 0);
    }
    mesh_run(m, 2000);
    m->cut[1] = m->cut[2] = m->cut[3] = true;
    mesh_observe(m, 0, 1u << 1 | 1u << 2 | 1u << 3);
    UNIT_EQUAL(trpi_member_unreachable_since_ms(m->cores[0], trpi_ident_key(&m->ids[1])), 0);
    uint32_t successor = mesh_add_as(m, mesh_id(1, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, successor, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, successor), 0);
    UNIT_TRUE(strstr(trpi_member_seek_why(m->cores[successor]), "may have removed it") != NULL);
    mesh_free(m);
}

static void
a_pause_of_the_contact_is_time_in_which_members_were_away(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[1] = m->cut[2] = true;
    m->now_ms += 11000;
    mesh_run(m, 100);
    mesh_observe(m, 0, 1u << 1 | 1u << 2);
    uint32_t successor = mesh_add_as(m, mesh_id(1, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, successor, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, successor), 0);
    mesh_free(m);
}

static void
a_pause_is_over_when_all_have_seen_a_later_version(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->now_ms += 11000;
    mesh_run(m, 100);
    uint32_t fourth = mesh_add(m, NULL); /* makes versions */
    UNIT_EQUAL(mesh_join(m, fourth, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, fourth), TRP_MEMBER_UP);
    m->cut[1] = m->cut[2] = m->cut[fourth] = true;
    mesh_observe(m, 0, 1u << 1 | 1u << 2 | 1u << fourth);
    mesh_run(m, 2000);
    uint32_t successor = mesh_add_as(m, mesh_id(1, 5000), NULL, NULL);
    UNIT_EQUAL(mesh_join(m, successor, 0), TRP_OK);
    mesh_run(m, 3000);
    UNIT_EQUAL(mesh_status(m, 0, successor), TRP_MEMBER_JOINING);
    mesh_free(m);
}

/* Else those that end and start again would let each other in for ever. */
static void
a_small_side_lets_nobody_in_and_a_large_one_does(void)
{
    struct mesh *m = mesh_cluster(3, NULL);
    m->cut[2] = true;
    mesh_observe(m, 0, 1u << 2);
    mesh_observe(m, 1, 1u << 2);
    mesh_observe(m, 2, 1u << 0 | 1u << 1);
    mesh_run(m, 11000);
    uint32_t of_two = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, of_two, 0), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_status(m, 0, of_two), TRP_MEMBER_JOINING);
    m->cut[0] = m->cut[1] = m->cut[of_two] = true;
    m->cut[2] = false;
    uint32_t of_one = mesh_add(m, NULL);
    UNIT_EQUAL(mesh_join(m, of_one, 2), TRP_OK);
    mesh_run(m, 2000);
    UNIT_EQUAL(mesh_status(m, 2, of_one), 0);
    mesh_free(m);
}

UNIT_BEGIN("removed")
UNIT(a_side_may_go_on_by_its_word_where_its_strategy_lets_it)
UNIT(a_side_without_the_next_oldest_may_not_go_on_by_its_word)
UNIT(a_refusal_without_memory_counts_when_it_comes_again)
UNIT(refusals_end_a_node_when_they_are_of_more_than_half)
UNIT(who_talks_to_the_node_after_all_has_not_removed_it)
UNIT(gone_counts_for_those_that_it_names)
UNIT(who_was_reachable_when_it_was_removed_ends_by_half_of_the_votes)
UNIT(one_of_two_that_is_downed_by_the_other_ends)
UNIT(who_was_cut_off_when_it_was_downed_was_not_near)
UNIT(who_was_cut_off_was_not_near_when_its_observer_is_down_with_it)
UNIT(who_was_joining_when_it_was_downed_was_not_near)
UNIT(a_word_that_was_taken_back_does_not_say_that_the_node_was_near)
UNIT(the_successors_of_its_removers_end_a_node)
UNIT(the_successors_of_its_removers_end_a_node_whose_reports_do_not_count)
UNIT(with_a_lease_one_word_is_enough)
UNIT(one_refusal_makes_the_node_dial_all_others_anew)
UNIT(a_leader_that_is_waking_makes_nobody_up_and_removes_nobody)
UNIT(a_node_that_is_waking_marks_nobody_down_and_does_not_stop_itself)
UNIT(a_contact_that_is_waking_lets_nobody_in)
UNIT(who_waits_to_be_let_in_does_not_keep_a_waking_contact_busy)
UNIT(a_vote_that_was_away_for_long_does_not_come_back_with_a_new_incarnation)
UNIT(a_vote_that_was_away_for_a_moment_comes_back_with_a_new_incarnation)
UNIT(a_contact_whose_reports_do_not_count_misses_members_all_the_same)
UNIT(a_pause_of_the_contact_is_time_in_which_members_were_away)
UNIT(a_pause_is_over_when_all_have_seen_a_later_version)
UNIT(a_small_side_lets_nobody_in_and_a_large_one_does)
UNIT_END
