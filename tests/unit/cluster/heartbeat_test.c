/* The heartbeat ring and the detector in it (FD-12, -13, -16, own pauses). */
#include "cluster/engine/heartbeat.h"

#include "base/wire.h"
#include "tests/unit/cluster/mesh.h"

#define SECOND 1000000u
#define NODES 12

static trpi_ident *idents[NODES];

static trpi_gossip *
view_of(uint32_t count)
{
    trpi_gossip *g = trpi_gossip_new();
    for (uint32_t i = 0; i < count; i++) {
        trpi_node_id id = mesh_id(i, 100 + i);
        UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &idents[i]) == TRP_OK);
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], TRP_MEMBER_UP, i + 1), TRP_OK);
        trpi_ident_unref(idents[i]); /* the view holds it */
    }
    UNIT_EQUAL(trpi_gossip_freeze(g), TRP_OK);
    return g;
}

static trpi_heartbeat *
heartbeat_of(uint32_t self, const trpi_heartbeat_options *options, const trpi_gossip *view)
{
    trpi_heartbeat *hb = NULL;
    UNIT_REQUIRE(trpi_heartbeat_new(idents[self], options, &hb) == TRP_OK);
    UNIT_EQUAL(trpi_heartbeat_members(hb, SECOND, view), TRP_OK);
    return hb;
}

/* When all others have heard the dead ones for the last time, as they say when they are asked: 0:
 * they say nothing, ALWAYS: just now. */
#define ALWAYS UINT64_MAX
static uint64_t others_heard_us;
static uint32_t questions_asked;

/* heartbeat-H7: the other observers of a late peer are queried. */
static void
answer_questions(trpi_heartbeat *hb, uint64_t now_us, uint32_t dead)
{
    const trpi_heartbeat_query *questions;
    uint32_t count = trpi_heartbeat_queries(hb, &questions);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t age_us = others_heard_us == ALWAYS ? 1000 : now_us - others_heard_us;
        uint8_t word[TRPI_HEARTBEAT_REPORT_BYTES];
        memcpy(word, questions[i].bytes, sizeof word);
        for (uint32_t node = 0; node < NODES; node++) { /* no late observer is queried */
            UNIT_FALSE(others_heard_us != 0 && (dead >> node & 1) != 0 &&
                       questions[i].to == idents[node]);
        }
        UNIT_EQUAL(word[0], 3);
        word[0] = 4;
        trpi_put_u64(word + 9, age_us / 1000);
        questions_asked++;
        if (others_heard_us != 0) {
            trpi_heartbeat_answer(hb, now_us + 400, &questions[i].to->id, word, sizeof word);
        }
    }
}

/* Tick when due until `until_us`; those of `dead`, bit i is node i, do not answer, all others at
 * once. */
static uint64_t
beat_without(trpi_heartbeat *hb, uint64_t now_us, uint64_t until_us, uint32_t dead)
{
    while (now_us < until_us) {
        uint64_t due_us = trpi_heartbeat_wake_us(hb);
        now_us = due_us > now_us ? due_us : now_us;
        if (now_us >= until_us) {
            return until_us;
        }
        uint8_t request[TRPI_HEARTBEAT_BYTES];
        uint8_t answer[TRPI_HEARTBEAT_BYTES];
        const trpi_ident *const *targets;
        trpi_heartbeat_tick(hb, now_us);
        uint32_t count = trpi_heartbeat_targets(hb, &targets, request);
        answer_questions(hb, now_us, dead);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t node = 0;
            while (targets[i] != idents[node]) {
                node++;
            }
            if ((dead >> node & 1) == 0) {
                UNIT_TRUE(trpi_heartbeat_reply(request, sizeof request, answer));
                trpi_heartbeat_answer(hb, now_us + 300, &targets[i]->id, answer, sizeof answer);
            }
        }
        now_us += 1000;
    }
    return now_us;
}

/* dead: one node; NODES: none. */
static uint64_t
run_rounds(trpi_heartbeat *hb, uint64_t now_us, uint64_t until_us, uint32_t dead)
{
    return beat_without(hb, now_us, until_us, dead == NODES ? 0 : 1u << dead);
}

static uint32_t
silent_count(trpi_heartbeat *hb)
{
    const uint64_t *keys;
    return trpi_heartbeat_unreachable(hb, &keys);
}

/* Return the node after `node` on the ring: the one of its peers that monitors all the others. */
static uint32_t
next_of(const bool (*peers)[NODES], uint32_t node)
{
    uint32_t next = NODES;
    for (uint32_t j = 0; j < NODES; j++) {
        bool first = peers[node][j];
        for (uint32_t k = 0; k < NODES && first; k++) {
            first = k == j || !peers[node][k] || peers[j][k];
        }
        UNIT_TRUE(!first || next == NODES); /* one at most */
        next = first ? j : next;
    }
    return next;
}

/* FD-12, FD-13: each asks as many as configured, and so many ask each; what all compute by
 * themselves is one ring, and not in the order of the addresses */
static void
every_member_is_asked_by_monitored_by_nr_of_members(void)
{
    trpi_gossip *view = view_of(NODES);
    trpi_heartbeat_options options = { .monitored_by_nr_of_members = 3 };
    static bool peers[NODES][NODES];
    uint32_t asked[NODES] = { 0 };
    for (uint32_t i = 0; i < NODES; i++) {
        trpi_heartbeat *hb = heartbeat_of(i, &options, view);
        UNIT_EQUAL(trpi_heartbeat_peers_count(hb), 3);
        for (uint32_t k = 0; k < NODES; k++) {
            peers[i][k] = trpi_heartbeat_look(hb, idents[k]->key, SECOND).monitored;
            asked[k] += peers[i][k] ? 1 : 0;
        }
        trpi_heartbeat_free(hb);
    }
    for (uint32_t k = 0; k < NODES; k++) {
        UNIT_EQUAL(asked[k], 3);
    }
    uint32_t steps = 0, neighbours = 0;
    for (uint32_t node = 0, next; steps == 0 || node != 0; node = next, steps++) {
        next = next_of(peers, node);
        UNIT_REQUIRE(next < NODES && steps < NODES);
        neighbours += next == (node + 1) % NODES ? 1 : 0;
    }
    UNIT_EQUAL(steps, NODES); /* around once, past all */
    UNIT_TRUE(neighbours < NODES / 2);
    trpi_gossip_unref(view);
}

static void
in_a_small_cluster_everybody_asks_everybody(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    UNIT_EQUAL(trpi_heartbeat_peers_count(hb), 3);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* After steady beating, found within 6 s */
static void
a_silent_member_is_found_within_six_seconds_of_its_last_answer(void)
{
    trpi_gossip *view = view_of(3);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
    UNIT_EQUAL(silent_count(hb), 0);
    now_us = run_rounds(hb, now_us, now_us + 3 * SECOND, 1);
    UNIT_EQUAL(silent_count(hb), 0);
    now_us = run_rounds(hb, now_us, now_us + 3 * SECOND, 1);
    UNIT_EQUAL(silent_count(hb), 1);
    UNIT_TRUE(trpi_heartbeat_has_changed(hb));
    UNIT_FALSE(trpi_heartbeat_has_changed(hb));
    UNIT_FALSE(trpi_heartbeat_look(hb, idents[1]->key, now_us).available);
    run_rounds(hb, now_us, now_us + 2 * SECOND, NODES); /* it answers again: asked all the time */
    UNIT_EQUAL(silent_count(hb), 0);
    UNIT_TRUE(trpi_heartbeat_has_changed(hb));
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* FD-06 */
static void
requests_go_out_at_the_interval_that_is_set(void)
{
    static const uint32_t intervals_ms[] = { 250, 1000, 4000 };
    trpi_gossip *view = view_of(2);
    for (size_t i = 0; i < sizeof intervals_ms / sizeof intervals_ms[0]; i++) {
        trpi_heartbeat_options options = { .phi = { .heartbeat_interval_ms = intervals_ms[i] } };
        trpi_heartbeat *hb = heartbeat_of(0, &options, view);
        uint32_t asked = 0;
        for (uint64_t now_us = SECOND; now_us < 41 * SECOND; now_us += 1000) {
            uint8_t request[TRPI_HEARTBEAT_BYTES];
            const trpi_ident *const *targets;
            if (trpi_heartbeat_wake_us(hb) <= now_us) {
                trpi_heartbeat_tick(hb, now_us);
                asked += trpi_heartbeat_targets(hb, &targets, request);
            }
        }
        UNIT_EQUAL(asked, 40000 / intervals_ms[i]);
        trpi_heartbeat_free(hb);
    }
    trpi_gossip_unref(view);
}

/* FD-16 */
/* However late its ticks are, a node wakes up at the points of its grid, and asks once an
 * interval. */
static void
requests_and_checks_come_at_the_points_of_the_grid(void)
{
    const trpi_heartbeat_options options = { .grid_us = SECOND / 4, .grid_begin_us = 37000 };
    trpi_gossip *view = view_of(3);
    trpi_heartbeat *hb = heartbeat_of(0, &options, view);
    uint64_t now_us = SECOND, asked_us = 0;
    uint32_t asked = 0;
    trpi_heartbeat_tick(hb, now_us);
    for (uint32_t i = 0; i < 400; i++) {
        const trpi_ident *const *targets;
        uint8_t request[TRPI_HEARTBEAT_BYTES];
        uint64_t due_us = trpi_heartbeat_wake_us(hb);
        UNIT_EQUAL((due_us - options.grid_begin_us) % options.grid_us, 0);
        UNIT_TRUE(due_us > now_us && due_us <= now_us + options.grid_us);
        now_us = due_us + i * 613 % 200000;
        trpi_heartbeat_tick(hb, now_us);
        if (trpi_heartbeat_targets(hb, &targets, request) > 0) {
            UNIT_TRUE(asked < 2 || due_us == asked_us + SECOND);
            asked_us = due_us;
            asked++;
        }
    }
    UNIT_TRUE(asked >= 99 && asked <= 101);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

static void
a_member_that_never_answered_is_found_too(void)
{
    trpi_gossip *view = view_of(2);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = run_rounds(hb, SECOND, 4 * SECOND, 1);
    UNIT_EQUAL(silent_count(hb), 0);
    run_rounds(hb, now_us, now_us + 8 * SECOND, 1);
    UNIT_EQUAL(silent_count(hb), 1);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* a node that was stopped itself does not report all others */
static void
an_own_pause_accuses_nobody(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
    now_us += 60 * SECOND; /* SIGSTOP */
    trpi_heartbeat_tick(hb, now_us);
    UNIT_EQUAL(silent_count(hb), 0);
    now_us = run_rounds(hb, now_us + 1000, now_us + 10 * SECOND, NODES);
    UNIT_EQUAL(silent_count(hb), 0);
    run_rounds(hb, now_us, now_us + 8 * SECOND, 2); /* and is not blind afterwards */
    UNIT_EQUAL(silent_count(hb), 1);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* The answers that waited for this node to go on are read before its tick, on another thread: the
 * pause is no sample, and is counted once. */
static void
answers_that_come_before_the_tick_after_an_own_pause_do_not_lengthen_the_rhythm(void)
{
    double phi[2];
    for (uint32_t first = 0; first < 2; first++) {
        trpi_gossip *view = view_of(3);
        trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
        uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
        uint8_t request[TRPI_HEARTBEAT_BYTES], answer[TRPI_HEARTBEAT_BYTES];
        const trpi_ident *const *targets;
        now_us = trpi_heartbeat_wake_us(hb);
        while (trpi_heartbeat_tick(hb, now_us),
               trpi_heartbeat_targets(hb, &targets, request) == 0) {
            now_us = trpi_heartbeat_wake_us(hb);
        }
        UNIT_TRUE(trpi_heartbeat_reply(request, sizeof request, answer));
        now_us += 3300000; /* SIGSTOP, with the answers under way */
        if (first == 1) {
            trpi_heartbeat_tick(hb, now_us - 1);
        }
        for (uint32_t i = 1; i < 3; i++) {
            trpi_heartbeat_answer(hb, now_us, &idents[i]->id, answer, sizeof answer);
        }
        UNIT_EQUAL(silent_count(hb), 0);
        now_us = run_rounds(hb, now_us, now_us + 4 * SECOND, NODES);
        run_rounds(hb, now_us, now_us + 5 * SECOND, 1);
        phi[first] = trpi_heartbeat_look(hb, idents[1]->key, now_us + 5 * SECOND).phi;
        UNIT_EQUAL(silent_count(hb), 1);
        trpi_heartbeat_free(hb);
        trpi_gossip_unref(view);
    }
    UNIT_TRUE(phi[0] > 30 && phi[1] > 30);
}

/* akka#16624: more neighbours die together than one has */
static void
neighbours_that_are_unreachable_do_not_use_up_the_number(void)
{
    trpi_gossip *view = view_of(NODES);
    trpi_heartbeat_options options = { .monitored_by_nr_of_members = 2 };
    trpi_heartbeat *hb = heartbeat_of(0, &options, view);
    uint32_t neighbours = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        neighbours |= trpi_heartbeat_look(hb, idents[i]->key, SECOND).monitored ? 1u << i : 0;
    }
    beat_without(hb, SECOND, 15 * SECOND, neighbours);
    UNIT_EQUAL(silent_count(hb), 2);
    const uint64_t *keys;
    uint32_t count = trpi_heartbeat_unreachable(hb, &keys);
    trpi_gossip *next = trpi_gossip_copy(view);
    UNIT_EQUAL(trpi_gossip_observe(next, idents[0]->key, keys, count), TRP_OK);
    UNIT_EQUAL(trpi_gossip_freeze(next), TRP_OK);
    UNIT_EQUAL(trpi_heartbeat_members(hb, 15 * SECOND, next), TRP_OK);
    UNIT_EQUAL(trpi_heartbeat_peers_count(hb), 4); /* two reachable ones, and the silent two */
    UNIT_EQUAL(silent_count(hb), 2);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(next);
    trpi_gossip_unref(view);
}

/* heartbeat-H5: the second of two neighbours that die together, and the peer behind them, is not
 * looked for when the first is found, but as soon as they are late. */
static void
crashes_of_many_neighbours_at_once_are_found_in_twice_the_time_of_one(void)
{
    for (uint32_t dead = 1; dead < NODES; dead++) {
        trpi_gossip *view = view_of(NODES);
        trpi_heartbeat_options options = { .monitored_by_nr_of_members = 2 };
        trpi_heartbeat *hb = heartbeat_of(0, &options, view);
        uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES), begin_us = now_us;
        uint32_t left = 0; /* those that are furthest behind on the ring */
        for (uint32_t i = 1; i < NODES; i++) {
            uint32_t before = 0;
            for (uint32_t k = 1; k < NODES; k++) {
                bool i_behind = idents[i]->ring_hash > idents[0]->ring_hash;
                bool k_behind = idents[k]->ring_hash > idents[0]->ring_hash;
                before +=
                    k_behind != i_behind ? k_behind : idents[k]->ring_hash < idents[i]->ring_hash;
            }
            left |= before >= dead ? 1u << i : 0;
        }
        uint32_t away = ((1u << NODES) - 2) & ~left;
        while (silent_count(hb) < dead && now_us < begin_us + 60 * SECOND) {
            now_us = beat_without(hb, now_us, now_us + SECOND / 10, away);
        }
        UNIT_EQUAL(silent_count(hb), dead);
        UNIT_TRUE(now_us - begin_us <= (dead == 1 ? 4700000 : 2 * 4700000));
        now_us = beat_without(hb, now_us, now_us + 3 * SECOND, away);
        /* its number of those that answer, and no more */
        uint32_t others = NODES - 1 - dead;
        UNIT_EQUAL(trpi_heartbeat_peers_count(hb), dead + (others < 2 ? others : 2));
        run_rounds(hb, now_us, now_us + 3 * SECOND, NODES);
        UNIT_EQUAL(silent_count(hb), 0);
        trpi_heartbeat_free(hb);
        trpi_gossip_unref(view);
    }
}

/* One that misses an answer and gives the next is not silent, and a peer asked beside it is let go
 * again. */
static void
one_that_is_late_is_no_more_than_late(void)
{
    trpi_gossip *view = view_of(NODES);
    trpi_heartbeat_options options = { .monitored_by_nr_of_members = 2 };
    trpi_heartbeat *hb = heartbeat_of(0, &options, view);
    uint32_t neighbour = 0;
    while (!trpi_heartbeat_look(hb, idents[neighbour]->key, SECOND).monitored) {
        neighbour++;
    }
    uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
    now_us = run_rounds(hb, now_us, now_us + 2500000, neighbour);
    UNIT_EQUAL(trpi_heartbeat_peers_count(hb), 3); /* one more, in its place */
    run_rounds(hb, now_us, now_us + 3 * SECOND, NODES);
    UNIT_EQUAL(trpi_heartbeat_peers_count(hb), 2);
    UNIT_FALSE(trpi_heartbeat_has_changed(hb));
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* heartbeat-H6 */
static void
who_stood_still_for_long_is_waking_until_each_peer_has_answered_or_is_silent_anew(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
    uint64_t due_us = trpi_heartbeat_wake_us(hb);
    UNIT_FALSE(trpi_heartbeat_is_waking(hb, due_us + 3 * SECOND)); /* acceptable-heartbeat-pause */
    now_us = run_rounds(hb, due_us + 3 * SECOND, due_us + 5 * SECOND, NODES);
    due_us = trpi_heartbeat_wake_us(hb);
    now_us = due_us + 3 * SECOND + 1;
    UNIT_TRUE(trpi_heartbeat_is_waking(hb, now_us)); /* also before the first tick */
    uint8_t stale[TRPI_HEARTBEAT_BYTES] = { 2, 1 };  /* to a request of before */
    for (uint32_t i = 1; i < 4; i++) {
        trpi_heartbeat_answer(hb, now_us, &idents[i]->id, stale, sizeof stale);
    }
    UNIT_TRUE(trpi_heartbeat_is_waking(hb, now_us));
    uint64_t woke_us = now_us;
    now_us = run_rounds(hb, now_us, now_us + 2 * SECOND, 2);
    UNIT_TRUE(trpi_heartbeat_is_waking(hb, now_us)); /* one has not answered */
    UNIT_EQUAL(silent_count(hb), 0);
    while (trpi_heartbeat_is_waking(hb, now_us) && now_us < woke_us + 60 * SECOND) {
        now_us = run_rounds(hb, now_us, now_us + SECOND / 10, 2);
    }
    UNIT_EQUAL(silent_count(hb), 1);
    UNIT_TRUE(now_us >= woke_us + 4 * SECOND && now_us < woke_us + 12 * SECOND);
    now_us =
        run_rounds(hb, now_us, now_us + 5 * SECOND, 2) + 10 * SECOND; /* the silent one as well: */
    woke_us = now_us;
    UNIT_TRUE(trpi_heartbeat_is_waking(hb, now_us));
    now_us = run_rounds(hb, now_us, now_us + 3 * SECOND, 2);
    UNIT_TRUE(trpi_heartbeat_is_waking(hb, now_us)); /* not on the word of before */
    now_us = run_rounds(hb, now_us, woke_us + 4100000, 2);
    UNIT_FALSE(trpi_heartbeat_is_waking(hb, now_us));
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* FD-18: heartbeat-H4 */
static void
an_answer_of_another_incarnation_does_not_count(void)
{
    trpi_gossip *view = view_of(2);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint8_t answer[TRPI_HEARTBEAT_BYTES] = { 2 };
    trpi_node_id other = mesh_id(1, 999);
    trpi_heartbeat_tick(hb, SECOND);
    trpi_heartbeat_answer(hb, SECOND + 100, &other, answer, sizeof answer);
    UNIT_EQUAL(trpi_heartbeat_look(hb, idents[1]->key, SECOND).round_trip_us, 0);
    UNIT_EQUAL(trpi_heartbeat_look(hb, idents[1]->key, SECOND).heard_count, 0);
    UNIT_FALSE(trpi_heartbeat_reply(answer, sizeof answer, answer)); /* an answer is no request */
    UNIT_FALSE(trpi_heartbeat_reply(answer, 3, answer));
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* FD-18: another incarnation of an address has none of what was heard of the one before it */
static void
a_node_that_joins_again_has_a_clean_history(void)
{
    trpi_gossip *view = view_of(2), *again = trpi_gossip_new();
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = run_rounds(hb, SECOND, 60 * SECOND, NODES);
    uint64_t heard = trpi_heartbeat_look(hb, idents[1]->key, now_us).heard_count;
    UNIT_TRUE(heard >= 58 && heard <= 60);
    now_us = run_rounds(hb, now_us, now_us + 10 * SECOND, 1); /* it has died */
    UNIT_EQUAL(trpi_heartbeat_look(hb, idents[1]->key, now_us).heard_count, heard);
    UNIT_EQUAL(silent_count(hb), 1);
    UNIT_TRUE(trpi_heartbeat_look(hb, idents[1]->key, now_us).phi >= 8.0);

    trpi_node_id id = mesh_id(1, 999);
    UNIT_EQUAL(trpi_gossip_add(again, idents[0], TRP_MEMBER_UP, 1), TRP_OK);
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &idents[1]) == TRP_OK);
    UNIT_EQUAL(trpi_gossip_add(again, idents[1], TRP_MEMBER_UP, 2), TRP_OK);
    trpi_ident_unref(idents[1]);
    UNIT_EQUAL(trpi_gossip_freeze(again), TRP_OK);
    UNIT_EQUAL(trpi_heartbeat_members(hb, now_us, again), TRP_OK);
    UNIT_EQUAL(silent_count(hb), 0);
    UNIT_TRUE(trpi_heartbeat_look(hb, idents[1]->key, now_us).phi < 1.0);
    UNIT_EQUAL(trpi_heartbeat_look(hb, idents[1]->key, now_us).round_trip_us, 0);
    UNIT_EQUAL(trpi_heartbeat_look(hb, idents[1]->key, now_us).heard_count, 0);
    run_rounds(hb, now_us, now_us + 5 * SECOND, NODES);
    UNIT_EQUAL(silent_count(hb), 0);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(again);
    trpi_gossip_unref(view);
}

/* FD-08: the deadline is interval and pause, whatever the rhythm was */
static void
a_deadline_detector_judges_by_interval_and_pause_alone(void)
{
    trpi_gossip *view = view_of(3);
    trpi_heartbeat_options options = { .detector = &trp_deadline_failure_detector };
    trpi_heartbeat *hb = heartbeat_of(0, &options, view);
    uint64_t now_us = run_rounds(hb, SECOND, 30 * SECOND, NODES);
    uint64_t last_us = now_us;
    now_us = run_rounds(hb, now_us, last_us + 2900000, 1);
    UNIT_EQUAL(silent_count(hb), 0);
    now_us = run_rounds(hb, now_us, last_us + 4500000, 1);
    UNIT_EQUAL(silent_count(hb), 1);
    UNIT_TRUE(trpi_heartbeat_look(hb, idents[1]->key, now_us).phi >= 8.0);
    run_rounds(hb, now_us, now_us + 2 * SECOND, NODES);
    UNIT_EQUAL(silent_count(hb), 0);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* 20 stops of 3 s, one every 10 s, of this node */
static void
own_pauses_again_and_again_accuse_nobody(void)
{
    static const trp_failure_detector *const kinds[] = { &trp_phi_accrual_failure_detector,
                                                         &trp_deadline_failure_detector };
    for (uint32_t kind = 0; kind < 2; kind++) {
        trpi_gossip *view = view_of(4);
        trpi_heartbeat_options options = { .detector = kinds[kind] };
        trpi_heartbeat *hb = heartbeat_of(0, &options, view);
        uint64_t now_us = SECOND;
        for (uint32_t stop = 0; stop < 20; stop++) {
            now_us = run_rounds(hb, now_us, now_us + 7 * SECOND, NODES) + 3 * SECOND;
        }
        run_rounds(hb, now_us, now_us + 3 * SECOND, NODES);
        UNIT_FALSE(trpi_heartbeat_has_changed(hb)); /* not even for a moment */
        UNIT_EQUAL(silent_count(hb), 0);
        trpi_heartbeat_free(hb);
        trpi_gossip_unref(view);
    }
}

/* The stops of the other one, as seen from here: its answers wait for 3 s and come together. */
static void
a_member_that_is_stopped_for_three_seconds_again_and_again_stays_reachable(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = SECOND;
    for (uint32_t stop = 0; stop < 20; stop++) {
        now_us = run_rounds(hb, now_us, now_us + 7 * SECOND, NODES);
        now_us = run_rounds(hb, now_us, now_us + 3 * SECOND, 1);
        for (uint32_t answer = 0; answer < 3; answer++) {
            uint8_t bytes[TRPI_HEARTBEAT_BYTES] = { 2 };
            trpi_heartbeat_answer(hb, now_us, &idents[1]->id, bytes, sizeof bytes);
        }
    }
    UNIT_FALSE(trpi_heartbeat_has_changed(hb));
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* heartbeat-H7: 20 % of the packets to one of five are lost, and its connection to this node
 * stalls. */
static void
who_is_heard_by_another_observer_gets_twice_the_time(void)
{
    for (uint32_t nodes = 4; nodes <= NODES; nodes += 8) {
        trpi_gossip *view = view_of(nodes);
        trpi_heartbeat_options options = { .monitored_by_nr_of_members = nodes };
        trpi_heartbeat *hb = heartbeat_of(0, &options, view);
        uint64_t now_us = run_rounds(hb, SECOND, 10 * SECOND, NODES);
        others_heard_us = ALWAYS;
        questions_asked = 0;
        now_us = run_rounds(hb, now_us, 16 * SECOND, 1);
        UNIT_EQUAL(silent_count(hb), 0); /* without their word since 14.5 s */
        UNIT_TRUE(questions_asked >= 6);
        now_us = run_rounds(hb, now_us, 18 * SECOND + SECOND / 2, 1);
        UNIT_EQUAL(silent_count(hb), 1); /* it is the link: that is told, too */
        questions_asked = 0;
        now_us = run_rounds(hb, now_us, 25 * SECOND, 1);
        UNIT_EQUAL(silent_count(hb), 1); /* an unreachable peer is so until it answers */
        UNIT_EQUAL(questions_asked, 0);
        run_rounds(hb, now_us, 27 * SECOND, NODES);
        UNIT_EQUAL(silent_count(hb), 0);
        others_heard_us = 0;
        trpi_heartbeat_free(hb);
        trpi_gossip_unref(view);
    }
}

/* heartbeat-H7: the word of others is about its last answer to this node, and there was none. */
static void
nobody_is_asked_after_who_was_never_heard(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint64_t now_us = SECOND;
    others_heard_us = ALWAYS;
    questions_asked = 0;
    while (silent_count(hb) == 0 && now_us < 30 * SECOND) {
        now_us = run_rounds(hb, now_us, now_us + SECOND / 2, 1);
    }
    UNIT_EQUAL(silent_count(hb), 1);
    UNIT_TRUE(now_us > 3 * SECOND); /* it was late for a while */
    UNIT_EQUAL(questions_asked, 0);
    others_heard_us = 0;
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

/* When a peer dies in the second after its last answer to this node, others have heard it later. */
static void
a_crash_is_found_as_early_whatever_the_others_have_heard(void)
{
    uint64_t found_us[2] = { 0, 0 };
    for (uint32_t words = 0; words < 2; words++) {
        trpi_gossip *view = view_of(5);
        trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
        uint64_t now_us = run_rounds(hb, SECOND, 10 * SECOND, NODES);
        others_heard_us = words == 0 ? 0 : 10 * SECOND + SECOND * 9 / 10;
        while (silent_count(hb) == 0 && now_us < 20 * SECOND) {
            now_us = run_rounds(hb, now_us, now_us + SECOND / 20, 1);
        }
        found_us[words] = now_us;
        others_heard_us = 0;
        trpi_heartbeat_free(hb);
        trpi_gossip_unref(view);
    }
    UNIT_TRUE(found_us[0] < 15 * SECOND);
    UNIT_EQUAL(found_us[0], found_us[1]);
}

static void
a_node_says_when_it_heard_those_whom_it_asks_and_of_others_nothing(void)
{
    trpi_gossip *view = view_of(4);
    trpi_heartbeat *hb = heartbeat_of(0, NULL, view);
    uint8_t question[TRPI_HEARTBEAT_REPORT_BYTES] = { 3 }, word[TRPI_HEARTBEAT_REPORT_BYTES];
    trpi_put_u64(question + 1, idents[1]->key);
    UNIT_FALSE(trpi_heartbeat_report(hb, SECOND, question, sizeof question, word)); /* not yet */
    run_rounds(hb, SECOND, 5 * SECOND + 300, NODES);
    UNIT_TRUE(trpi_heartbeat_report(hb, 7 * SECOND, question, sizeof question, word));
    UNIT_EQUAL(word[0], 4);
    UNIT_TRUE(trpi_get_u64(word + 1) == idents[1]->key);
    UNIT_TRUE(trpi_get_u64(word + 9) >= 1900 && trpi_get_u64(word + 9) <= 3000);
    UNIT_FALSE(trpi_heartbeat_report(hb, 7 * SECOND, question, sizeof question - 1, word));
    question[0] = 1;
    UNIT_FALSE(trpi_heartbeat_report(hb, 7 * SECOND, question, sizeof question, word));
    question[0] = 3;
    trpi_put_u64(question + 1, idents[0]->key); /* itself; and nobody */
    UNIT_FALSE(trpi_heartbeat_report(hb, 7 * SECOND, question, sizeof question, word));
    trpi_put_u64(question + 1, 1);
    UNIT_FALSE(trpi_heartbeat_report(hb, 7 * SECOND, question, sizeof question, word));
    question[0] = 4; /* a report of no member, and one of the future */
    trpi_heartbeat_answer(hb, 7 * SECOND, &idents[2]->id, question, sizeof question);
    trpi_put_u64(question + 1, idents[1]->key);
    trpi_put_u64(question + 9, UINT64_MAX);
    trpi_heartbeat_answer(hb, 7 * SECOND, &idents[2]->id, question, sizeof question);
    run_rounds(hb, 7 * SECOND, 13 * SECOND, 1);
    UNIT_EQUAL(silent_count(hb), 1);
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(view);
}

UNIT_BEGIN("heartbeat")
UNIT(who_is_heard_by_another_observer_gets_twice_the_time)
UNIT(nobody_is_asked_after_who_was_never_heard)
UNIT(a_crash_is_found_as_early_whatever_the_others_have_heard)
UNIT(a_node_says_when_it_heard_those_whom_it_asks_and_of_others_nothing)
UNIT(every_member_is_asked_by_monitored_by_nr_of_members)
UNIT(in_a_small_cluster_everybody_asks_everybody)
UNIT(a_silent_member_is_found_within_six_seconds_of_its_last_answer)
UNIT(requests_go_out_at_the_interval_that_is_set)
UNIT(requests_and_checks_come_at_the_points_of_the_grid)
UNIT(a_member_that_never_answered_is_found_too)
UNIT(an_own_pause_accuses_nobody)
UNIT(answers_that_come_before_the_tick_after_an_own_pause_do_not_lengthen_the_rhythm)
UNIT(neighbours_that_are_unreachable_do_not_use_up_the_number)
UNIT(crashes_of_many_neighbours_at_once_are_found_in_twice_the_time_of_one)
UNIT(one_that_is_late_is_no_more_than_late)
UNIT(who_stood_still_for_long_is_waking_until_each_peer_has_answered_or_is_silent_anew)
UNIT(an_answer_of_another_incarnation_does_not_count)
UNIT(a_node_that_joins_again_has_a_clean_history)
UNIT(a_deadline_detector_judges_by_interval_and_pause_alone)
UNIT(own_pauses_again_and_again_accuse_nobody)
UNIT(a_member_that_is_stopped_for_three_seconds_again_and_again_stays_reachable)
UNIT_END
