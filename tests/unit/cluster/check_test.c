/* Check functions of the engines: a state that is right has nothing to say; one field of it broken,
 * and the check names the label. Each label that a check function states has its line here. */
#include "base/alloc.h"
#include "cluster/engine/heartbeat_inner.h"
#include "cluster/engine/membership_core.h"
#include "tests/unit/cluster/histories.h"

static char found[TRPI_CHECK_BYTES];
static trpi_check check;

/* The label of what a check function has found, "" for nothing. */
static const char *
label_of(const char *broken)
{
    snprintf(found, sizeof found, "%s", broken == NULL ? "" : broken);
    found[strcspn(found, ":")] = '\0';
    return found;
}

/* Break `place` by `value`, expect `label`, mend it, expect nothing. */
#define BREAK(place, value, label, call)                                                           \
    do {                                                                                           \
        __typeof__(place) kept = (place);                                                          \
        (place) = (value);                                                                         \
        UNIT_TEXT(label_of(call), label);                                                          \
        (place) = kept;                                                                            \
        UNIT_TEXT(label_of(call), "");                                                             \
    } while (0)

/* ---- views ----------------------------------------------------------------------------------- */

/* Six members, of which 1 accuses 2, two are Down, one is Exiting, and one was removed. */
static trpi_gossip *
view_of_all(void)
{
    static const uint32_t status[IDENTS] = {
        TRP_MEMBER_UP,      TRP_MEMBER_UP,      TRP_MEMBER_UP,
        TRP_MEMBER_JOINING, TRP_MEMBER_EXITING, TRP_MEMBER_DOWN
    };
    trpi_gossip *g = trpi_gossip_new();
    for (uint32_t i = 0; i < IDENTS; i++) {
        uint32_t up = status[i] == TRP_MEMBER_JOINING ? 0 : i + 1;
        UNIT_EQUAL(trpi_gossip_add(g, idents[i], status[i], up), TRP_OK);
        g->members[i].up_since_s = 100 * up;
        UNIT_EQUAL(trpi_gossip_count_up(g, idents[i]->key), TRP_OK);
    }
    UNIT_EQUAL(trpi_gossip_observe(g, idents[0]->key, &idents[2]->key, 1), TRP_OK);
    UNIT_EQUAL(trpi_gossip_observe(g, idents[1]->key, &idents[2]->key, 1), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_tombstone(g, (trpi_tombstone){ 1, 5, TRP_MEMBER_DOWN, 0 }), TRP_OK);
    UNIT_EQUAL(trpi_gossip_add_tombstone(g, (trpi_tombstone){ 2, 5, TRP_MEMBER_DOWN, 0 }), TRP_OK);
    UNIT_REQUIRE(trpi_gossip_freeze(g) == TRP_OK);
    return g;
}

static void
a_check_names_what_is_broken_in_a_view(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    uint32_t away = trpi_gossip_find(g, idents[2]->key);
    UNIT_REQUIRE(g->rows_count == 2 && g->members[away].unreachable == 1);
#define VIEW(place, value, label) BREAK(place, value, label, trpi_gossip_check(g, &check))
    VIEW(g->members[1].ident, g->members[0].ident, "gossip-G1");
    VIEW(g->tombstones[0].key, 3, "gossip-G1");
    VIEW(g->tombstones[1].key, idents[0]->key, "gossip-G1");
    VIEW(g->rows[1].subject, 77, "gossip-G2");
    VIEW(g->rows[0].observer, g->rows[0].subject, "gossip-G2");
    VIEW(g->rows[0], g->rows[1], "gossip-G2");
    VIEW(g->versions[0].observer, 77, "gossip-G2");
    VIEW(g->versions[0].observer, g->versions[1].observer, "gossip-G2");
    VIEW(g->clock[0].key, 77, "gossip-G2");
    VIEW(g->clock[1].key, g->clock[0].key, "gossip-G2");
    VIEW(g->digest, g->digest + 1, "gossip-G3");
    VIEW(g->clock[0].counter, 9, "gossip-G3");
    VIEW(g->unreachable_count, 2, "gossip-G4");
    VIEW(g->blocking_count, 0, "gossip-G4");
    VIEW(g->deciders[0], g->deciders[0] ^ 1, "gossip-G4");
    VIEW(g->slots, (trpi_table){ 0 }, "gossip-G4");
    VIEW(g->members[0].status, 6, "gossip-G5");
    VIEW(g->members[0].status, 0, "gossip-G5");
    VIEW(g->members[0].weakly_up, 1, "gossip-G5");
    VIEW(g->members[0].unreachable, 1, "gossip-G6");
#undef VIEW
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_a_seen_set(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    trpi_seen seen;
    UNIT_REQUIRE(trpi_seen_init(&seen, IDENTS) == TRP_OK);
    trpi_seen_set(&seen, IDENTS - 1);
    BREAK(seen.bits, IDENTS - 1, "gossip-G7", trpi_seen_check(&seen, g, &check));
    BREAK(seen.words_count, 2, "gossip-G7", trpi_seen_check(&seen, g, &check));
    BREAK(seen.words[0], (uint64_t)1 << IDENTS, "gossip-G7", trpi_seen_check(&seen, g, &check));
    trpi_seen_fini(&seen);
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_a_step_between_views(void)
{
    idents_make();
    trpi_gossip *old = view_of_all(), *new = view_of_all();
    uint32_t last = trpi_gossip_find(new, idents[5]->key); /* Down */
    uint32_t joins = trpi_gossip_find(new, idents[3]->key),
             first = trpi_gossip_find(new, idents[0]->key);
#define STEP(place, value, label)                                                                  \
    BREAK(place, value, label, trpi_gossip_check_step(old, new, &check))
    STEP(new->members[last].status, TRP_MEMBER_UP, "gossip-merge-M2");
    STEP(old->members[joins].weakly_up, 1, "gossip-merge-M2");
    STEP(new->members[first].up_number, 2, "gossip-merge-M2");
    STEP(new->members[first].up_number, 0, "gossip-merge-M2");
    STEP(new->members[first].up_since_s, 101, "gossip-merge-M2");
    STEP(old->tombstones[0].key, idents[1]->key, "gossip-merge-M3");
    STEP(new->versions[0].version, 0, "gossip-merge-M4");
    STEP(new->clock[0].counter, 0, "gossip-merge-M5");
#undef STEP
    trpi_gossip *gone = trpi_gossip_copy(new); /* a member less, and no tombstone of it */
    UNIT_EQUAL(trpi_gossip_remove(gone, last, 7), TRP_OK);
    gone->tombstones_count--;
    UNIT_REQUIRE(trpi_gossip_freeze(gone) == TRP_OK);
    UNIT_TEXT(label_of(trpi_gossip_check_step(old, gone, &check)), "gossip-merge-M3");
    trpi_gossip_unref(gone);
    trpi_gossip_unref(old);
    trpi_gossip_unref(new);
    idents_free();
}

static void
a_check_names_what_is_broken_in_the_votes(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    uint32_t up = trpi_gossip_find(g, idents[0]->key), down = trpi_gossip_find(g, idents[5]->key);
    trpi_votes votes;
    UNIT_REQUIRE(trpi_votes_init(&votes, g) == TRP_OK);
#define VOTES(place, value) BREAK(place, value, "votes-N4", trpi_votes_check(&votes, g, &check))
    VOTES(votes.sure.bits, 5);
    VOTES(votes.out.bits, 5);
    VOTES(votes.told.bits, 5);
    VOTES(votes.out.words[0], votes.out.words[0] | (uint64_t)1 << up);
    VOTES(votes.out.words[0], 0); /* one is Exiting */
    VOTES(votes.told.words[0], (uint64_t)1 << up);
    trpi_seen_set(&votes.sure, down); /* Down, and was never Exiting */
    VOTES(votes.told.words[0], (uint64_t)1 << down);
#undef VOTES
    trpi_votes_fini(&votes);
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_a_decision(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    uint32_t indexes[IDENTS] = { trpi_gossip_find(g, idents[2]->key) };
    trpi_downing_input input = { .gossip = g, .self = idents[0]->key };
    trpi_downing_decision d = { .verdict = TRPI_DOWNING_DOWN_MEMBERS,
                                .indexes = indexes,
                                .indexes_count = 1,
                                .members = 3,
                                .reachable = 2 };
#define DECISION(place, value, label)                                                              \
    BREAK(place, value, label, trpi_downing_check(&input, &d, &check))
    DECISION(d.verdict, TRPI_DOWNING_WAIT, "downing-D13");
    DECISION(d.indexes_count, 0, "downing-D13");
    DECISION(d.indexes_count, 2, "downing-D13"); /* the second is no later one */
    DECISION(indexes[0], IDENTS, "downing-D13");
    DECISION(indexes[0], trpi_gossip_find(g, idents[5]->key), "downing-D13");
    DECISION(indexes[0], trpi_gossip_find(g, idents[0]->key), "downing-D13");
    DECISION(g->unreachable_count, 0, "downing-D14");
    DECISION(d.reachable, 4, "downing-D15");
#undef DECISION
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_a_forecast(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    const trpi_downing_options options = { .stable_after_ms = 5000, .auto_down_after_ms = 3000 };
    const trpi_downing_ops *majority = trpi_downing_find("keep-majority"), *ops = majority;
    trpi_downing_forecast f = { .kind = TRPI_FORECAST_GOES_ON,
                                .in_ms = 20000,
                                .may_down = true,
                                .reason = "majority",
                                .who = "a:1" };
#define FORECAST(place, value, label)                                                              \
    BREAK(place, value, label, trpi_downing_forecast_check(ops, &options, g, &f, &check))
    FORECAST(f.in_ms, 20001, "downing-forecast-F3");
    FORECAST(f.kind, TRPI_FORECAST_LEASE + 1, "downing-forecast-F3");
    FORECAST(f.kind, TRPI_FORECAST_NONE, "downing-forecast-F3"); /* and a time */
    FORECAST(f.may_down, false, "downing-forecast-F4");
    FORECAST(g->blocking_count, 0, "downing-forecast-F5");
    FORECAST(f.who[0], '\0', "downing-forecast-F6");
    FORECAST(f.reason[0], '\0', "downing-forecast-F6");
    f.may_down = false;
    f.kind = TRPI_FORECAST_STOPS;
    FORECAST(f.kind, TRPI_FORECAST_LEASE, "downing-forecast-F4"); /* of keep-majority */
    FORECAST(f.who[0], '\0', "downing-forecast-F6");
    ops = trpi_downing_find("manual");
    f = (trpi_downing_forecast){ .kind = TRPI_FORECAST_NONE };
    FORECAST(f.in_ms, 1, "downing-forecast-F3");
    FORECAST(f.kind, TRPI_FORECAST_STOPS, "downing-forecast-F4");
    ops = trpi_downing_find("auto-down-after");
    f = (trpi_downing_forecast){ .kind = TRPI_FORECAST_GOES_ON, .in_ms = 3000 };
    FORECAST(f.in_ms, 3001, "downing-forecast-F3");
#undef FORECAST
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_the_next_crash(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    uint32_t self = trpi_gossip_find(g, idents[0]->key),
             other = trpi_gossip_find(g, idents[1]->key);
    trpi_downing_next_crash crash = { .votes = 3, .fatal = 1, .first = other };
#define CRASH(place, value)                                                                        \
    BREAK(place, value, "downing-forecast-F7",                                                     \
          trpi_downing_next_crash_check(g, self, &crash, &check))
    CRASH(crash.first, self);                                /* it leaves */
    CRASH(crash.first, TRPI_GOSSIP_NONE);                    /* and there is one */
    CRASH(crash.first, trpi_gossip_find(g, idents[2]->key)); /* unreachable */
    CRASH(crash.first, trpi_gossip_find(g, idents[3]->key)); /* Joining */
    CRASH(crash.first, trpi_gossip_find(g, idents[4]->key)); /* Exiting */
    CRASH(crash.fatal, 0);
    CRASH(crash.fatal, IDENTS + 1);
    CRASH(crash.votes, IDENTS + 1);
#undef CRASH
    trpi_gossip_unref(g);
    idents_free();
}

/* ---- one node's engine ----------------------------------------------------------------------- */

static void
a_check_names_what_is_broken_in_an_engine(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "keep-majority" };
    struct mesh *m = mesh_cluster(3, &options);
    trpi_member_core *core = m->cores[0];
    trpi_ident *self = core->self;
    uint32_t at = trpi_core_self_index(core);
    UNIT_REQUIRE(core->phase == TRPI_PHASE_MEMBER && at != TRPI_GOSSIP_NONE);
#define CORE(place, value, label) BREAK(place, value, label, trpi_member_check(core, &check))
    CORE(core->stop, TRPI_STOP_LEFT, "membership-E4");
    CORE(core->phase, TRPI_PHASE_STOPPED, "membership-E4");
    CORE(core->phase, TRPI_PHASE_SEEKING, "membership-E6");
    CORE(core->gossip, NULL, "membership-E6");
    CORE(core->stability.stable_ms, core->now.mono_ms + 1, "membership-E6");
    CORE(core->version.since_ms, core->now.mono_ms + 1, "membership-E6");
    CORE(core->seen.words[0], core->seen.words[0] & ~((uint64_t)1 << at), "membership-E7");
    CORE(core->seen.bits, 2, "gossip-G7");
    CORE(core->votes.sure.bits, 2, "votes-N4");
    CORE(core->due.wake_ms, UINT64_MAX, "membership-E8");
    CORE(core->published.view, NULL, "membership-events-V3");
    trpi_remover removers[2] = { { 5, false }, { 6, false } };
    core->removers.removers = removers;
    core->removers.removers_count = 2;
    CORE(removers[1].key, 5, "membership-removed-X6");
    CORE(removers[0].key, self->key, "membership-removed-X6");
    core->removers.removers = NULL;
    core->removers.removers_count = 0;
    trpi_ident *waiting[2] = { m->cores[1]->self, m->cores[2]->self };
    trpi_ident **joiners = core->admission.joiners;
    core->admission.joiners = waiting;
    core->admission.joiners_count = 2;
    CORE(waiting[1], waiting[0], "membership-contact-J16");
    CORE(waiting[0], self, "membership-contact-J16");
    core->admission.joiners = joiners;
    core->admission.joiners_count = 0;
    trpi_ident *stranger;
    trpi_node_id id = mesh_id(9, 900);
    UNIT_REQUIRE(trpi_ident_new(&id, NULL, 0, "1", &stranger) == TRP_OK);
    CORE(core->self, stranger, "membership-E6"); /* a member that is not in its view */
    trpi_ident_unref(stranger);
#undef CORE
    mesh_free(m);
}

static void
a_check_names_what_is_broken_in_a_lease(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "lease" };
    struct mesh *m = mesh_cluster(3, &options);
    trpi_member_core *core = m->cores[0];
    trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
    trpi_member_now now = { core->now.mono_ms + 60000, core->now.wall_ms, false };
    UNIT_EQUAL(trpi_member_step(core, now, &tick), TRP_OK); /* with a round of the leader */
#define LEASE(place, value, label) BREAK(place, value, label, trpi_lease_check(core, &check))
    core->split.lease = TRPI_LEASE_HELD;
    LEASE(core->split.lease_ms, now.mono_ms + 1, "membership-downing-W6");
    LEASE(core->downing, trpi_downing_find("keep-majority"), "membership-downing-W6");
    LEASE(core->split.apart_ms, 5, "membership-downing-W9"); /* and all members are reachable */
    core->split.apart_ms = 5;
    core->gossip->unreachable_count = 1;
    core->split.lease_ms = now.mono_ms;
    LEASE(core->split.lease_ms, now.mono_ms - 1, "membership-downing-W9");
    core->split.apart_ms = core->gossip->unreachable_count = 0;
    core->split.lease = TRPI_LEASE_ASKED;
    LEASE(core->split.lease_ms, now.mono_ms - 5000, "membership-downing-W8");
    trpi_member_action *last = &core->out.actions[core->out.actions_count - 1];
    trpi_member_action_kind kind = last->kind;
    UNIT_REQUIRE(core->out.actions_count > 0);
    LEASE(last->kind, TRPI_ACTION_LEASE_RELEASE, "membership-downing-W7");
    last->kind = TRPI_ACTION_LEASE_ACQUIRE;
    LEASE(core->split.lease, TRPI_LEASE_UNASKED, "membership-downing-W7");
    LEASE(core->split.lease_ms, now.mono_ms - 1, "membership-downing-W7");
    last->kind = kind;
    core->split.lease = TRPI_LEASE_UNASKED;
    UNIT_TEXT(label_of(trpi_forecast_check(core, &check)), "");
#undef LEASE
    mesh_free(m);
}

static void
a_check_names_what_is_broken_in_a_step(void)
{
    trpi_member_options options = { .seed = 7, .downing_strategy = "keep-majority" };
    struct mesh *m = mesh_cluster(3, &options);
    trpi_member_core *core = m->cores[0];
    trpi_member_event tick = { .kind = TRPI_MEMBER_TICK };
    trpi_member_now now = { core->now.mono_ms + 60000, core->now.wall_ms, false };
    UNIT_EQUAL(trpi_member_step(core, now, &tick), TRP_OK); /* a round: it sends digests */
    UNIT_TEXT(label_of(trpi_member_check(core, &check)), "");
    trpi_member_action *sends = NULL;
    for (uint32_t i = 0; i < core->out.actions_count && sends == NULL; i++) {
        trpi_member_action *a = &core->out.actions[i];
        sends = a->kind == TRPI_ACTION_SEND && a->bytes.data[3] == TRPI_FRAME_DIGEST ? a : NULL;
    }
    UNIT_REQUIRE(sends != NULL);
    uint8_t *seen = memmem(sends->bytes.data, sends->bytes.count, "seen", 4);
    UNIT_REQUIRE(seen != NULL);
    BREAK(*seen, 'S', "membership-gossip-W3", trpi_member_check(core, &check));
    trpi_core_stop(core, TRPI_STOP_LEFT);
    UNIT_TEXT(label_of(trpi_member_check(core, &check)), "");
    core->out.actions[core->out.actions_count - 1].kind = TRPI_ACTION_SEND;
    core->out.actions[0].kind = TRPI_ACTION_STOPPED;
    UNIT_TEXT(label_of(trpi_member_check(core, &check)), "membership-E4");
    core->out.actions[core->out.actions_count - 1].kind = TRPI_ACTION_STOPPED;
    core->out.actions[0].kind = TRPI_ACTION_LOG;
    BREAK(core->due.leader_ms, 5, "membership-E4", trpi_member_check(core, &check));
    mesh_free(m);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static void
a_check_names_what_is_broken_in_the_heartbeats(void)
{
    idents_make();
    trpi_gossip *g = view_of_all();
    trpi_heartbeat *hb;
    UNIT_REQUIRE(trpi_heartbeat_new(idents[0], NULL, &hb) == TRP_OK);
    UNIT_REQUIRE(trpi_heartbeat_members(hb, 1000000, g) == TRP_OK);
    trpi_heartbeat_tick(hb, 1000000);
    UNIT_REQUIRE(hb->peers_count >= 3 && hb->targets_count > 0);
#define BEAT(place, value, label) BREAK(place, value, label, trpi_heartbeat_check(hb, &check))
    BEAT(hb->peers[1].ident, hb->peers[0].ident, "heartbeat-H8");
    BEAT(hb->self, hb->peers[0].ident, "heartbeat-H8");
    BEAT(hb->targets_count, hb->peers_count + 1, "heartbeat-H8");
    BEAT(hb->peers[0].silent, true, "heartbeat-H9");
    BEAT(hb->unreachable_count, 1, "heartbeat-H9");
    hb->peers[0].late = true;
    BEAT(hb->peers[0].answers, true, "heartbeat-H10");
    BEAT(hb->peers[0].first_asked_us, 0, "heartbeat-H10");
    hb->peers[0].late = false;
    BEAT(hb->peers[0].answers, true, "heartbeat-H10"); /* and was never heard */
    BEAT(hb->peers[0].unproved, true, "heartbeat-H6");
    BEAT(hb->ask_us, UINT64_MAX, "heartbeat-H11");
#undef BEAT
    trpi_heartbeat_free(hb);
    trpi_gossip_unref(g);
    idents_free();
}

static void
a_check_names_what_is_broken_in_a_detector(void)
{
    trpi_detector detector;
    trpi_phi_options options = { .acceptable_pause_ms = 3000 };
    UNIT_REQUIRE(trpi_detector_init(&detector, NULL, &options) == TRP_OK);
    for (uint64_t ms = 1000; ms < 8000; ms += 1000) {
        trpi_detector_heartbeat(&detector, ms);
    }
    trpi_phi *phi = (trpi_phi *)(void *)&detector.state;
    UNIT_REQUIRE(phi->count > 3);
#define PHI(place, value, label) BREAK(place, value, label, trpi_detector_check(&detector, &check))
    PHI(phi->intervals_ms[1], 100, "phi-P4");
    PHI(phi->intervals_ms[1], 4001, "phi-P5");
    PHI(phi->sum_ms, phi->sum_ms + 1, "phi-P6");
    PHI(phi->intervals_ms[1], 1001, "phi-P6");
    PHI(phi->count, phi->capacity + 1, "phi-P6");
#undef PHI
    trpi_detector_fini(&detector);
}

UNIT_BEGIN("check")
UNIT(a_check_names_what_is_broken_in_a_view)
UNIT(a_check_names_what_is_broken_in_a_seen_set)
UNIT(a_check_names_what_is_broken_in_a_step_between_views)
UNIT(a_check_names_what_is_broken_in_the_votes)
UNIT(a_check_names_what_is_broken_in_a_decision)
UNIT(a_check_names_what_is_broken_in_a_forecast)
UNIT(a_check_names_what_is_broken_in_the_next_crash)
UNIT(a_check_names_what_is_broken_in_an_engine)
UNIT(a_check_names_what_is_broken_in_a_lease)
UNIT(a_check_names_what_is_broken_in_a_step)
UNIT(a_check_names_what_is_broken_in_the_heartbeats)
UNIT(a_check_names_what_is_broken_in_a_detector)
UNIT_END
