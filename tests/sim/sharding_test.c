/* sharding_test.c - the engines of sharding under seeds: nodes with regions and coordinators in
 * virtual time; lost, doubled and late frames, cuts, long stops, crashes, restarts on the same
 * address, leaves, joins, drains. Entities are counters of messages.
 *
 *     tests/sim/sharding_test [--seeds N] [--seed S] [--break fence|epoch|answers|buffers]
 *
 * With --break the part is faulty, and a run in which no law breaks fails.
 * Must hold.
 *   sharding-sim-L1  No message is handled while another node runs the shard.
 *   sharding-sim-L2  Of one sender and shard, messages are handled in order, each once.
 *   sharding-sim-L3  Each message sent is handled, told, or destroyed in a crashed node; it is
 *       dropped only where the hand-off is to drop.
 *   sharding-sim-L4  After the faults every shard has one home, and nothing waits.
 *   sharding-sim-L6  After the faults no shard is on a drained node, if a node that is not drained
 *       is there to take it.
 *   sharding-sim-L5  The check functions hold after every step.
 */
#include "tests/sim/sharding_shell.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

static void
destroy_queue(struct queue *queue)
{
    for (struct msg *msg = take_msg(queue); msg != NULL; msg = take_msg(queue)) {
        w.destroyed++;
        trpi_free(msg);
    }
}

static void
destroy_link(struct link *link)
{
    while (link->first != NULL) {
        struct item *item = link->first;
        link->first = item->next;
        w.destroyed += item->msg != NULL;
        trpi_free(item->msg);
        trpi_free(item);
    }
}

static void
kill_node(uint32_t node)
{
    struct inc *inc = &w.incs[node];
    if (!inc->alive) {
        return;
    }
    inc->alive = false;
    inc->dead_ms = w.now_ms;
    for (uint32_t i = 0; i < SHARDS; i++) {
        destroy_queue(&inc->shells[i].front);
        destroy_queue(&inc->shells[i].back);
        destroy_queue(&inc->shells[i].mailbox);
    }
    for (uint32_t i = 0; i < INCS; i++) {
        destroy_link(&w.links[i][node]);
        destroy_link(&w.links[node][i]);
    }
    trpi_region_core_free(inc->region);
    trpi_coordinator_free(inc->coordinator);
    inc->region = NULL;
    inc->coordinator = NULL;
}

static void
show_view(uint32_t node, uint32_t number)
{
    struct inc *inc = &w.incs[node];
    const struct view *view = &w.views[number];
    trpi_shard_gone gone[INCS];
    uint32_t gone_count = 0;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        if (w.removed[i] && w.until_ms[i] > w.now_ms) {
            gone[gone_count++] = (trpi_shard_gone){ w.incs[i].id, true, w.until_ms[i] - w.now_ms };
        } else if (w.removed[i]) {
            gone[gone_count++] = (trpi_shard_gone){ w.incs[i].id, true, 0 };
        }
    }
    inc->view = number;
    step_region(node, (trpi_region_event){ .kind = TRPI_REGION_MEMBERS,
                                           .members = view->members,
                                           .members_count = view->count });
    step_coordinator(node, (trpi_coordinator_event){ .kind = TRPI_COORDINATOR_MEMBERS,
                                                     .members = view->members,
                                                     .members_count = view->count,
                                                     .gone = gone,
                                                     .gone_count = gone_count });
}

static void
start_node(uint32_t place)
{
    uint32_t node = w.incs_count, flags = 0;
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
    (void)snprintf(inc->id.address.protocol, sizeof inc->id.address.protocol, "troupe.tcp");
    (void)snprintf(inc->id.address.system, sizeof inc->id.address.system, "sim");
    (void)snprintf(inc->id.address.host, sizeof inc->id.address.host, "10.0.0.1");
    flags |= strcmp(broken, "fence") == 0 ? TRPI_SHARD_BROKEN_FENCE : 0u;
    flags |= strcmp(broken, "answers") == 0 ? TRPI_SHARD_BROKEN_ANSWERS : 0u;
    trpi_region_core_options region = { .broken = flags };
    trpi_coordinator_options coordinator = { .answer_ms = 300, .broken = flags };
    trpi_assert(trpi_region_core_new(&inc->id, "order", &region, &inc->region) == TRP_OK);
    trpi_assert(trpi_coordinator_new(&inc->id, "order", "", &coordinator, &inc->coordinator) ==
                TRP_OK);
    trpi_coordinator_asks_set(inc->coordinator, node % 4 != 3); /* a node without the function */
    struct view *view = next_view();
    for (uint32_t i = 0; i < view->count; i++) { /* the one before is dead for certain */
        if (view->members[i].id.address.port == inc->id.address.port) {
            view->members[i].status = TRP_MEMBER_DOWN;
        }
    }
    view->members[view->count++] =
        (trpi_shard_member){ .id = inc->id, .status = TRP_MEMBER_JOINING, .has_role = true };
    step_region(node, (trpi_region_event){
                          .kind = TRPI_REGION_START, .settings = &w.settings, .hosts = true });
    step_coordinator(
        node, (trpi_coordinator_event){ .kind = TRPI_COORDINATOR_START, .settings = &w.settings });
    show_view(node, w.views_count - 1);
}

/* ---- membership ------------------------------------------------------------------------------ */

static void
down_silent(void)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        uint32_t node = inc_of(&view->members[i].id);
        uint64_t since = silent_since(&w.incs[node]);
        uint64_t after = DETECT_MS + (w.manual ? 100 : STABLE_MS);
        if (since != 0 && w.now_ms - since > after && view->members[i].status != TRP_MEMBER_DOWN) {
            next_view()->members[i].status = TRP_MEMBER_DOWN;
            w.until_ms[node] = w.manual ? w.now_ms + SUSPEND_MS + 500 : w.now_ms;
            return;
        }
    }
}

static bool
is_converged(void)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        const struct inc *inc = &w.incs[inc_of(&view->members[i].id)];
        bool counts = view->members[i].status == TRP_MEMBER_JOINING ||
                      view->members[i].status == TRP_MEMBER_UP ||
                      view->members[i].status == TRP_MEMBER_LEAVING;
        if (counts && (silent_since(inc) != 0 || inc->view + 1 != w.views_count)) {
            return false;
        }
    }
    return true;
}

static void
lead_cluster(void)
{
    const struct view *last = &w.views[w.views_count - 1];
    down_silent();
    if (w.views_count + 2 >= VIEWS || !is_converged()) {
        return;
    }
    last = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < last->count; i++) {
        uint32_t node = inc_of(&last->members[i].id), status = last->members[i].status;
        if (status == TRP_MEMBER_JOINING) {
            trpi_shard_member *member = &next_view()->members[i];
            member->status = TRP_MEMBER_UP;
            member->up_number = ++w.up_number;
            return;
        }
        if (w.incs[node].left && (status == TRP_MEMBER_UP || status == TRP_MEMBER_LEAVING)) {
            next_view()->members[i].status =
                status == TRP_MEMBER_UP ? TRP_MEMBER_LEAVING : TRP_MEMBER_EXITING;
            return;
        }
        if (status == TRP_MEMBER_EXITING || status == TRP_MEMBER_DOWN) {
            struct view *view = next_view();
            w.removed[node] = true;
            if (status == TRP_MEMBER_EXITING) {
                kill_node(node);
            }
            view->members[i] = view->members[--view->count];
            return;
        }
    }
}

static bool
is_out(uint32_t node) /* Down or removed, in the latest view */
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        if (trpi_node_id_equal(&view->members[i].id, &w.incs[node].id)) {
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
        struct inc *inc = &w.incs[i];
        if (inc->isolated && inc->alive) {
            inc->isolated = false;
            if (is_out(i)) {
                kill_node(i); /* it is told that it was removed, and ends */
            }
            inc->suspended = false;
        }
    }
}

static void
cut_network(void)
{
    uint32_t place = (uint32_t)draw(PLACES), other = (uint32_t)draw(PLACES);
    bool both = draw(2) == 0;
    if (both) {
        for (uint32_t i = 0; i < PLACES; i++) {
            w.cut[place][i] = w.cut[i][place] = i != place;
        }
        uint32_t node = alive_at(place);
        if (node != INCS) {
            w.incs[node].isolated = true;
            w.incs[node].isolated_ms = w.now_ms;
        }
    } else {
        w.cut[place][other] = place != other;
    }
    w.cut_until_ms = w.now_ms + (both ? 300 + draw(5000) : 100 + draw(800));
}

/* A shard's permission to write is lost: it ends, and no coordinator has asked for that. */
static void
lose_store(uint32_t node)
{
    uint32_t shard = (uint32_t)draw(SHARDS);
    if (node != INCS && w.incs[node].shells[shard].state == OWN) {
        w.incs[node].shells[shard].state = STOPPING;
        pump_mailbox(node, shard);
    }
}

/* An operator drains a member, or takes that back. */
static void
drain_or_undrain(uint32_t node)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; node != INCS && w.views_count + 2 < VIEWS && i < view->count; i++) {
        if (trpi_node_id_equal(&view->members[i].id, &w.incs[node].id)) {
            trpi_shard_member *member = &next_view()->members[i];
            member->drained = !member->drained;
            total_drains += member->drained;
            return;
        }
    }
}

/* Is a node there that may be given shards? */
static bool
has_taker(void)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        const struct inc *inc = &w.incs[inc_of(&view->members[i].id)];
        if (inc->alive && !inc->leaves && !view->members[i].drained &&
            view->members[i].status <= TRP_MEMBER_UP) {
            return true;
        }
    }
    return false;
}

static bool
is_drained(uint32_t node)
{
    const struct view *view = &w.views[w.views_count - 1];
    for (uint32_t i = 0; i < view->count; i++) {
        if (trpi_node_id_equal(&view->members[i].id, &w.incs[node].id)) {
            return view->members[i].drained;
        }
    }
    return false;
}

static void
undrain_all(void)
{
    struct view *view = next_view();
    for (uint32_t i = 0; i < view->count; i++) {
        view->members[i].drained = false;
    }
}

static void
make_fault(void)
{
    uint32_t place = (uint32_t)draw(PLACES), node = alive_at(place);
    struct inc *inc = &w.incs[node == INCS ? 0 : node];
    switch (draw(9)) {
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
            inc->paused_ms = w.now_ms + 100 + draw(draw(3) == 0 ? 5000 : 500);
        }
        break;
    case 3:
        if (node != INCS && !inc->leaves && draw(2) == 0) {
            inc->leaves = true;
            step_region(node, (trpi_region_event){ .kind = TRPI_REGION_LEAVE });
        }
        break;
    case 4:
    case 5:
        lose_store(node);
        break;
    case 6:
        drain_or_undrain(node);
        break;
    default:
        if (node == INCS) {
            start_node(place);
        }
        break;
    }
}

static void
end_pauses(void)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        struct inc *inc = &w.incs[i];
        if (inc->alive && inc->paused_ms != 0 && inc->paused_ms <= w.now_ms) {
            inc->paused_ms = 0;
            if (is_out(i)) { /* it stood still for too long: it suspends, learns it, and ends */
                kill_node(i);
            }
        }
        if (inc->alive && inc->isolated && w.now_ms - inc->isolated_ms >= SUSPEND_MS) {
            inc->suspended = true;
        }
    }
    if (w.cut_until_ms != 0 && w.cut_until_ms <= w.now_ms) {
        heal_cuts();
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void
take_frame(struct event *event)
{
    trpi_shard_frame frame;
    const trpi_node_id *from = &w.incs[event->from].id;
    trpi_assert(trpi_shard_frame_decode(event->bytes.data, event->bytes.count, &frame) == TRP_OK);
    step_region(event->to,
                (trpi_region_event){ .kind = TRPI_REGION_FRAME, .from = *from, .frame = &frame });
    step_coordinator(
        event->to,
        (trpi_coordinator_event){ .kind = TRPI_COORDINATOR_FRAME, .from = *from, .frame = &frame });
    trpi_shard_frame_fini(&frame);
}

static void
run_events(uint64_t until_ms)
{
    while (w.heap_count > 0 && w.heap[0].at_ms <= until_ms && w.why[0] == '\0') {
        struct event event = take_event();
        w.now_ms = event.at_ms > w.now_ms ? event.at_ms : w.now_ms;
        if (event.kind == PUMP) {
            pump_link(event.from, event.to);
        } else if (event.kind == HANDLE) {
            handle_one(event.to, event.shard);
        } else if (w.incs[event.to].alive && is_paused(&w.incs[event.to])) {
            post_event(event, w.now_ms + 20);
            continue;
        } else if (w.incs[event.to].alive && event.kind == ANSWER) {
            step_coordinator(event.to, (trpi_coordinator_event){ .kind = TRPI_COORDINATOR_ANSWER,
                                                                 .question = event.question });
        } else if (w.incs[event.to].alive) {
            take_frame(&event);
        }
        trpi_buffer_fini(&event.bytes);
        trpi_free(event.question);
    }
    w.now_ms = until_ms;
}

static void
run_nodes(bool sends)
{
    for (uint32_t i = 0; i < w.incs_count; i++) {
        struct inc *inc = &w.incs[i];
        if (!inc->alive || is_paused(inc)) {
            continue;
        }
        if (!inc->isolated && inc->view + 1 < w.views_count && draw(3) == 0) {
            show_view(i, inc->view + 1);
        }
        if (trpi_region_core_wake_ms(inc->region) <= w.now_ms) {
            step_region(i, (trpi_region_event){ .kind = TRPI_REGION_TICK });
        }
        if (trpi_coordinator_wake_ms(inc->coordinator) <= w.now_ms) {
            step_coordinator(i, (trpi_coordinator_event){ .kind = TRPI_COORDINATOR_TICK });
        }
        if (sends && !inc->leaves && !inc->suspended) {
            /* after the faults each shard in turn: one that nobody tells may have no home */
            tell_shard(i, (uint32_t)(w.now_ms < END_MS ? draw(SHARDS) : w.now_ms / 20 % SHARDS));
        }
    }
}

static void
check_end(void)
{
    for (uint32_t shard = 0; shard < SHARDS && w.why[0] == '\0'; shard++) {
        uint32_t homes = 0, alive = 0;
        for (uint32_t i = 0; i < w.incs_count; i++) {
            const struct shell *shell = &w.incs[i].shells[shard];
            if (!w.incs[i].alive) {
                continue;
            }
            alive++;
            homes += shell->state == OWN;
            if (shell->state == OWN && is_drained(i) && has_taker()) {
                fail("sharding-sim-L6", i, shard, "it stays on a drained node");
            }
            if (shell->front.count + shell->back.count + shell->mailbox.count > 0 ||
                shell->state == STOPPING) {
                fail("sharding-sim-L4", i, shard, "messages still wait");
            }
        }
        if (homes != 1 && alive > 0) { /* the last faults may have ended every node */
            fail("sharding-sim-L4", 0, shard, homes == 0 ? "it has no home" : "it has two homes");
        }
    }
    if (w.dropped > 0 && !w.settings.drops && !w.settings.late_drops) {
        fail("sharding-sim-L3", 0, 0, "a message was dropped");
    }
    if (w.sent != w.handled + w.told + w.dropped + w.destroyed && w.why[0] == '\0') {
        (void)snprintf(w.why, sizeof w.why,
                       "sharding-sim-L3: sent %llu, handled %llu, told %llu, dropped %llu, "
                       "destroyed %llu",
                       (unsigned long long)w.sent, (unsigned long long)w.handled,
                       (unsigned long long)w.told, (unsigned long long)w.dropped,
                       (unsigned long long)w.destroyed);
    }
}

static void
begin_run(uint64_t seed)
{
    struct view *views = w.views;
    memset(&w, 0, sizeof w);
    w.views = views;
    w.random = seed * 0x2545f4914f6cdd1du;
    w.now_ms = 1000;
    w.views_count = 1;
    w.views[0].count = 0;
    w.manual = draw(3) == 0;
    w.faulty = draw(8) != 0;
    w.loss = w.faulty ? (uint32_t)draw(60) : 0;
    w.doubles = w.faulty ? (uint32_t)draw(60) : 0;
    w.settings = (trpi_sharding_settings){ .shards = SHARDS,
                                           .rebalance_ms = 1500,
                                           .moves_max = 3,
                                           .moves_permille = 500,
                                           .allocation = (uint32_t)draw(3),
                                           .keeps_active = draw(2) == 0 };
    w.settings.drops = !w.settings.keeps_active && seed % 4 == 1;
    if (seed % 5 == 2) {
        w.settings.allocation = TRPI_ALLOCATION_USER;
    }
    w.settings.late_drops = seed % 8 < 2;
    for (uint32_t i = 0; i < 2 + draw(PLACES - 1); i++) {
        start_node(i);
    }
}

static bool
run_seed(uint64_t seed)
{
    begin_run(seed);
    for (uint64_t at = 1020; at < END_MS + QUIET_MS && w.why[0] == '\0'; at += 20) {
        run_events(at);
        end_pauses();
        if (at % 100 == 0) {
            lead_cluster();
        }
        if (w.faulty && at > 2500 && at < END_MS && draw(20) == 0) {
            make_fault();
        }
        if (at >= END_MS && at < END_MS + 20) { /* the faults end, and a node is there */
            w.loss = w.doubles = 0;
            heal_cuts();
            start_node(0);
            start_node(1);
        }
        if (at >= END_MS + 3000 && at < END_MS + 3020 && !has_taker()) {
            undrain_all();
        }
        run_nodes(at < END_MS || (at > END_MS + 5500 && at < END_MS + 6000));
    }
    check_end();
    total_handled += w.handled;
    total_told += w.told;
    total_dropped += w.dropped;
    total_asked += w.asked;
    total_destroyed += w.destroyed;
    total_incs += w.incs_count;
    for (uint32_t i = 0; i < w.incs_count; i++) {
        kill_node(i);
    }
    for (uint32_t i = 0; i < w.heap_count; i++) {
        trpi_buffer_fini(&w.heap[i].bytes);
        trpi_free(w.heap[i].question);
    }
    trpi_free(w.heap);
    return w.why[0] == '\0';
}

/* Run seeds; without a fault none may break a law, with one some must. */
static bool
run_seeds(const char *name, uint64_t first, uint64_t seeds)
{
    uint64_t failed = 0, most = name[0] == '\0' ? 5 : 1;
    broken = name;
    for (uint64_t seed = first; seed < first + seeds && failed < most; seed++) {
        if (!run_seed(seed)) {
            failed++;
            printf("seed %llu: %s\n  replay: tests/sim/sharding_test --seed %llu%s%s\n",
                   (unsigned long long)seed, w.why, (unsigned long long)seed,
                   name[0] == '\0' ? "" : " --break ", name);
        }
    }
    bool good = name[0] == '\0' ? failed == 0 : failed > 0;
    printf("%s sharding_sim:%s%s\n", good ? "PASS" : "FAIL",
           name[0] == '\0' ? "shards_keep_the_laws_under_all_seeds" : "a_fault_is_caught_", name);
    return good;
}

int
main(int argc, char **argv)
{
    static const char *const faults[] = { "fence", "epoch", "answers", "buffers" };
    const char *from_environment = getenv("TROUPE_SIM_SEEDS"), *fault = NULL;
    uint64_t seeds = from_environment != NULL ? strtoull(from_environment, NULL, 10) : 300;
    uint64_t first = 1;
    bool one = false, good;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
            seeds = 1;
            one = true;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--break") == 0) {
            fault = argv[i + 1];
        }
    }
    w.views = trpi_alloc(VIEWS * sizeof *w.views);
    trpi_assert(w.views != NULL);
    good = run_seeds(fault == NULL ? "" : fault, first, seeds);
    if (fault == NULL && !one && seeds >= 100 &&
        (total_dropped == 0 || total_asked == 0 || total_drains == 0)) {
        printf("FAIL sharding_sim: nothing was dropped, asked of a program, or drained\n");
        good = false;
    }
    printf("%llu seeds: %llu nodes, handled %llu, told %llu, dropped %llu, destroyed %llu\n",
           (unsigned long long)seeds, (unsigned long long)total_incs,
           (unsigned long long)total_handled, (unsigned long long)total_told,
           (unsigned long long)total_dropped, (unsigned long long)total_destroyed);
    for (size_t i = 0; fault == NULL && !one && i < sizeof faults / sizeof faults[0]; i++) {
        good = run_seeds(faults[i], 1, 300) && good;
    }
    trpi_free(w.views);
    return good ? 0 : 1;
}
