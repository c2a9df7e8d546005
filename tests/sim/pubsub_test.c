/* pubsub_test.c - the registries of publish and subscribe under seeds, in virtual time: lost,
 * doubled and late frames, cuts, long stops, crashes, restarts on the same address, leaves, joins,
 * mediators that end and start again. Actors subscribe, end and publish all the time (CONTRIB-18).
 *
 *     tests/sim/pubsub_test [--seeds N] [--seed S]
 *                           [--break prune|life|gap|leaving|retry|begun|era|stamp]
 *
 * With --break the engine is faulty, and a run in which no law breaks fails.
 * Must hold.
 *   pubsub-sim-L1  The check function holds after every event.
 *   pubsub-sim-L2  After the faults all registries are equal: no ended subscriber is left, no live
 *       one is missing.
 *   pubsub-sim-L3  What a subscriber is told that it missed is what it missed: what was published
 *       after the publisher knew of its subscription, and came before what has come now. Where a
 *       peer was told all again it may be less, never more.
 *   pubsub-sim-L4  A publication goes once to each node that is known to subscribe, to no other,
 *       and to one of each group.
 *   pubsub-sim-L5  When nothing changes nothing is said.
 *   pubsub-sim-L6  The bucket of a node that is not Up counts nowhere where that is known.
 *   pubsub-sim-L7  A mediator that a publication is for has been met, and not been lost since.
 *   pubsub-sim-L8  While the number of changes of a topic is the same, so are its groups and who is
 *       in them: what a registry's listener is not told has not changed.
 */
#include "tests/sim/pubsub_world.h"

static uint64_t total_incs, total_published, total_arrived, total_missed, total_frames;

/* ---- membership ------------------------------------------------------------------------------ */

static void
start_node(uint32_t place)
{
    uint32_t node = w.incs_count;
    struct inc *inc = &w.incs[node];
    if (node >= INCS || alive_at(place) != INCS || w.views_count + 2 >= VIEWS) {
        return;
    }
    w.incs_count++;
    memset(inc, 0, sizeof *inc);
    inc->place = place;
    inc->alive = true;
    inc->id.uid = node + 1;
    inc->id.address.port = (uint16_t)(2551 + place);
    (void)snprintf(inc->id.address.host, sizeof inc->id.address.host, "10.0.0.1");
    end_mediator(node); /* nothing is there yet */
    struct view *view = next_view();
    for (uint32_t i = 0; i < view->count; i++) { /* the one before is dead for certain */
        if (w.incs[view->members[i].node].place == place) {
            view->members[i].status = TRP_MEMBER_DOWN;
        }
    }
    view->members[view->count].node = node;
    view->members[view->count++].status = TRP_MEMBER_JOINING;
    inc->view = w.views_count - 1;
    start_mediator(node);
}

/* One step of one member, as the leader would. */
static void
lead_cluster(void)
{
    const struct view *last = &w.views[w.views_count - 1];
    if (w.views_count + 2 >= VIEWS || last->count == 0) {
        return;
    }
    uint32_t at = (uint32_t)draw(last->count);
    trp_member_status status = last->members[at].status, next = status;
    struct inc *inc = &w.incs[last->members[at].node];
    uint64_t since = silent_since(inc);
    if (since != 0 && w.now_ms - since > DETECT_MS && status != TRP_MEMBER_DOWN) {
        next = TRP_MEMBER_DOWN;
    } else if (status == TRP_MEMBER_JOINING) {
        next = draw(4) == 0 ? TRP_MEMBER_WEAKLY_UP : TRP_MEMBER_UP;
    } else if (status == TRP_MEMBER_WEAKLY_UP) {
        next = TRP_MEMBER_UP;
    } else if (inc->leaves && status == TRP_MEMBER_UP) {
        next = TRP_MEMBER_LEAVING;
    } else if (status == TRP_MEMBER_LEAVING && draw(4) == 0) {
        next = TRP_MEMBER_EXITING;
    } else if (status == TRP_MEMBER_EXITING || (status == TRP_MEMBER_DOWN && !inc->alive)) {
        next = TRP_MEMBER_REMOVED;
    }
    if (next == TRP_MEMBER_REMOVED) {
        struct view *view = next_view();
        if (status == TRP_MEMBER_EXITING) {
            kill_node(view->members[at].node);
        }
        view->members[at] = view->members[--view->count];
    } else if (next != status) {
        next_view()->members[at].status = next;
    }
}

static bool
is_out(uint32_t node) /* Down or removed, in the latest view */
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->members[i].node == node) {
            return view->members[i].status == TRP_MEMBER_DOWN;
        }
    }
    return true;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void
heal_cuts(void)
{
    memset(w.cut, 0, sizeof w.cut);
    w.cut_until_ms = 0;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        w.incs[i].isolated = false;
    }
}

static void
cut_network(void)
{
    uint32_t place = (uint32_t)draw(PLACES), other = (uint32_t)draw(PLACES);
    uint32_t node = alive_at(place);
    bool both = draw(2) == 0;
    for (uint32_t i = 0; both && i < PLACES; i++) {
        w.cut[place][i] = w.cut[i][place] = i != place;
    }
    if (both && node != INCS) {
        w.incs[node].isolated = true;
        w.incs[node].isolated_ms = w.now_ms;
    }
    w.cut[place][other] |= place != other;
    w.cut_until_ms = w.now_ms + 200 + draw(4000);
}

static void
make_fault(void)
{
    uint32_t place = (uint32_t)draw(PLACES), node = alive_at(place);
    struct inc *inc = &w.incs[node == INCS ? 0 : node];
    switch (draw(7)) {
    case 0:
        if (node != INCS && draw(2) == 0) {
            kill_node(node);
        }
        break;
    case 1:
        if (w.cut_until_ms == 0) {
            cut_network();
        }
        break;
    case 2:
        if (node != INCS && !is_paused(inc)) {
            inc->pause_began_ms = w.now_ms;
            inc->paused_ms = w.now_ms + 20 * (5 + draw(draw(3) == 0 ? 200 : 25));
        }
        break;
    case 3:
        if (node != INCS && draw(3) == 0) {
            inc->leaves = true;
        }
        break;
    case 4:
        if (node != INCS && inc->registry != NULL && inc->life + 1 < LIVES) {
            end_mediator(node);
            inc->absent_ms = w.now_ms + draw(2) * draw(3000);
        }
        break;
    default:
        if (node == INCS) {
            start_node(place);
        }
        break;
    }
}

static void
end_troubles(void)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        struct inc *inc = &w.incs[i];
        bool back = inc->alive && !inc->isolated && !is_paused(inc);
        if (back && is_out(i)) { /* it is told, and ends */
            kill_node(i);
        } else if (back && inc->registry == NULL && inc->absent_ms <= w.now_ms) {
            start_mediator(i);
        }
    }
    if (w.cut_until_ms != 0 && w.cut_until_ms <= w.now_ms) {
        heal_cuts();
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void
take_frame(const struct event *event)
{
    struct inc *inc = &w.incs[event->to];
    const trpi_node_id *from = &w.incs[event->from].id;
    trpi_pubsub_frame frame, answer;
    trpi_assert(trpi_pubsub_frame_decode(event->bytes.data, event->bytes.count, &frame) == TRP_OK);
    if (inc->registry != NULL) {
        trpi_assert(trpi_pubreg_frame(inc->registry, w.now_ms, from, &frame) == TRP_OK);
        after_event(event->to);
    } else if (trpi_pubsub_frame_absent(&frame, from->uid, &answer)) {
        trpi_buffer bytes = { 0 };
        trpi_assert(trpi_pubsub_frame_encode(&answer, &bytes) == TRP_OK);
        send_frame(event->to, from, &bytes);
        trpi_buffer_fini(&bytes);
    }
    trpi_pubsub_frame_fini(&frame);
}

static void
run_events(uint64_t until_ms)
{
    while (w.heap_count > 0 && w.heap[0].at_ms <= until_ms && w.why[0] == '\0') {
        struct event event = take_event();
        struct inc *inc = &w.incs[event.to];
        w.now_ms = event.at_ms > w.now_ms ? event.at_ms : w.now_ms;
        if (inc->alive && is_paused(inc)) {
            post_event(event, inc->paused_ms);
            continue;
        }
        if (inc->alive && event.kind == FRAME) {
            take_frame(&event);
        } else if (inc->alive) {
            take_publication(&event);
        }
        trpi_buffer_fini(&event.bytes);
    }
    w.now_ms = until_ms;
}

static void
run_node(uint32_t node, bool works)
{
    struct inc *inc = &w.incs[node];
    if (!inc->isolated && inc->view + 1 < w.views_count && draw(3) == 0) {
        show_view(node, inc->view + 1);
    }
    if (inc->registry == NULL) {
        return;
    }
    if (trpi_pubreg_wake_ms(inc->registry) <= w.now_ms) {
        trpi_pubreg_tick(inc->registry, w.now_ms);
        after_event(node);
    }
    if (works && draw(8) == 0 && w.sessions_count + 1 < SESSIONS) {
        uint32_t key = (uint32_t)draw(KEYS);
        change_count(node, key, (uint32_t)(draw(2) * (1 + draw(3))));
        if (draw(6) == 0 && w.sessions_count + 1 < SESSIONS) { /* at once the other way */
            change_count(node, key, inc->counts[key] == 0);
        }
    }
    if (works && draw(4) == 0) {
        publish(node, (uint32_t)draw(TOPICS));
    }
}

/* ---- laws at the end ------------------------------------------------------------------------- */

static bool
is_up(uint32_t node)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->members[i].node == node) {
            return view->members[i].status == TRP_MEMBER_UP;
        }
    }
    return false;
}

/* pubsub-sim-L2, of one registry and one key. */
static void
check_key(uint32_t node, uint32_t key)
{
    const trpi_pubreg *registry = w.incs[node].registry;
    trpi_pubsub_key name = key_at(key);
    const trpi_pubreg_entry *entry = trpi_pubreg_find(registry, &name);
    uint32_t here = 0;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        uint32_t at = trpi_pubreg_node_of(registry, &w.incs[i].id);
        const trpi_pubreg_place *place =
            entry == NULL || at == TRPI_PUBREG_NOWHERE ? NULL : trpi_index_place(entry, at);
        uint32_t count = w.incs[i].alive && (i == node || is_up(i)) ? w.incs[i].counts[key] : 0;
        here += count > 0;
        if ((place == NULL ? 0 : place->count) != count) {
            char text[96];
            (void)snprintf(text, sizeof text, "key %u of node %u: %u are seen, it has %u", key, i,
                           place == NULL ? 0 : place->count, count);
            fail("pubsub-sim-L2", node, text);
        }
    }
    if (here != (entry == NULL ? 0 : entry->places_count)) {
        fail("pubsub-sim-L2", node, "somebody is left who is nowhere");
    }
}

static void
check_end(uint64_t frames)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        if (!w.incs[i].alive) {
            continue;
        }
        for (uint32_t key = 0; key < KEYS; key++) {
            check_key(i, key);
        }
        if (!trpi_pubreg_is_settled(w.incs[i].registry) ||
            trpi_pubreg_wake_ms(w.incs[i].registry) != UINT64_MAX) {
            fail("pubsub-sim-L5", i, "it is not settled");
        }
        if (w.incs[i].registry->went_count > 0) {
            fail("pubsub-sim-L2", i, "removed entries are kept that all know to be");
        }
    }
    if (w.frames != frames) {
        fail("pubsub-sim-L5", 0, "something is said, and nothing has changed");
    }
}

static void
begin_run(uint64_t seed)
{
    struct session *sessions = w.sessions;
    struct event *heap = w.heap;
    uint32_t heap_room = w.heap_room;
    trpi_route route = w.route;
    memset(&w, 0, sizeof w);
    w.sessions = sessions;
    w.heap = heap;
    w.heap_room = heap_room;
    w.route = route;
    w.random = seed * 0x2545f4914f6cdd1du;
    w.now_ms = 1000;
    w.views_count = 1;
    w.faulty = draw(8) != 0;
    w.loss = w.faulty ? (uint32_t)(draw(3) == 0 ? 200 : draw(200)) : 0;
    w.doubles = w.faulty ? (uint32_t)draw(60) : 0;
    w.counts_all = seed % 5 != 0;
    for (uint32_t i = 0; i < 2 + draw(PLACES - 1); i++) {
        start_node(i);
    }
}

static bool
run_seed(uint64_t seed)
{
    uint64_t frames = 0;
    begin_run(seed);
    for (uint64_t at = 1020; at < END_MS + QUIET_MS && w.why[0] == '\0'; at += 20) {
        run_events(at);
        end_troubles();
        if (draw(4) == 0) {
            lead_cluster();
        }
        if (w.faulty && at > 2000 && at < END_MS && draw(20) == 0) {
            make_fault();
        }
        if (at >= END_MS && at < END_MS + 20) { /* the faults end, and a node is there */
            w.loss = w.doubles = 0;
            heal_cuts();
            start_node(0);
            start_node(1);
        }
        for (uint32_t i = 0; i < w.incs_count; i++) {
            if (w.incs[i].alive && !is_paused(&w.incs[i])) {
                run_node(i, at < END_MS);
            }
        }
        if (at < END_MS + QUIET_MS - STILL_MS) {
            frames = w.frames;
        }
    }
    if (w.why[0] == '\0') {
        check_end(frames);
    }
    total_incs += w.incs_count;
    total_published += w.published;
    total_arrived += w.arrived;
    total_missed += w.missed;
    total_frames += w.frames;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        kill_node(i);
    }
    for (uint32_t i = 0; i < w.heap_count; i++) {
        trpi_buffer_fini(&w.heap[i].bytes);
    }
    return w.why[0] == '\0';
}

static const struct fault {
    const char *name;
    uint32_t bit;
} faults[] = {
    { "prune", TRPI_PUBREG_BROKEN_PRUNE }, { "life", TRPI_PUBREG_BROKEN_LIFE },
    { "gap", TRPI_PUBREG_BROKEN_GAP },     { "leaving", TRPI_PUBREG_BROKEN_LEAVING },
    { "retry", TRPI_PUBREG_BROKEN_RETRY }, { "begun", TRPI_PUBREG_BROKEN_BEGUN },
    { "era", TRPI_PUBREG_BROKEN_ERA },     { "stamp", TRPI_PUBREG_BROKEN_STAMP },
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

/* Run seeds; without a fault none may break a law, with one some must. */
static bool
run_seeds(const struct fault *fault, uint64_t first, uint64_t seeds)
{
    uint64_t failed = 0, most = fault == NULL ? 5 : 1;
    broken = fault == NULL ? 0 : fault->bit;
    for (uint64_t seed = first; seed < first + seeds && failed < most; seed++) {
        if (!run_seed(seed)) {
            failed++;
            printf("seed %llu: %s\n  replay: tests/sim/pubsub_test --seed %llu%s%s\n",
                   (unsigned long long)seed, w.why, (unsigned long long)seed,
                   fault == NULL ? "" : " --break ", fault == NULL ? "" : fault->name);
        }
    }
    bool good = fault == NULL ? failed == 0 : failed > 0;
    printf("%s pubsub_sim:%s%s\n", good ? "PASS" : "FAIL",
           fault == NULL ? "registries_keep_the_laws_under_all_seeds" : "a_fault_is_caught_",
           fault == NULL ? "" : fault->name);
    return good;
}

int
main(int argc, char **argv)
{
    const char *from_environment = getenv("TROUPE_SIM_SEEDS");
    uint64_t seeds = from_environment != NULL ? strtoull(from_environment, NULL, 10) : 100;
    uint64_t first = 1;
    const struct fault *fault = NULL;
    bool one = false, good;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
            seeds = 1;
            one = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--break") == 0) {
            for (uint32_t f = 0; f < FAULTS; f++) {
                fault = strcmp(argv[i + 1], faults[f].name) == 0 ? &faults[f] : fault;
            }
            trpi_assert(fault != NULL);
        }
    }
    w.sessions = trpi_alloc(SESSIONS * sizeof *w.sessions);
    trpi_assert(w.sessions != NULL);
    good = run_seeds(fault, first, seeds);
    printf("%llu seeds: %llu nodes, %llu frames, published %llu, arrived %llu, missed %llu\n",
           (unsigned long long)seeds, (unsigned long long)total_incs,
           (unsigned long long)total_frames, (unsigned long long)total_published,
           (unsigned long long)total_arrived, (unsigned long long)total_missed);
    if (fault == NULL && !one && seeds >= 100 && total_missed == 0) {
        printf("FAIL pubsub_sim: nothing was missed\n");
        good = false;
    }
    for (uint32_t i = 0; fault == NULL && !one && i < FAULTS; i++) {
        good = run_seeds(&faults[i], 1, 300) && good;
    }
    trpi_route_fini(&w.route);
    trpi_free(w.sessions);
    trpi_free(w.heap);
    return good ? 0 : 1;
}
