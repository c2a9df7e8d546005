/* restart_test.c - days on which a cluster ends easily: it is started, or restarted node by node,
 * and meanwhile one node crashes, and in half of the seeds the network is cut as well, each at any
 * instant.
 *
 * TROUPE_SIM_FIRST=SEED TROUPE_SIM_SEEDS=1 plays one seed again; TROUPE_SIM_STRATEGY names one
 * strategy, TROUPE_SIM_TRACE=1 tells everything. Its figures of windows and crashes stand in
 * docs/operating.md and decision 160.
 */
#include "tests/sim/stage.h"

enum {
    LEAVE_MS = 45000,
    UP_MS = 30000,
    AFTER_MS = 130000,
    AFTER_LEASE_MS = 260000,
    IN_FLIGHT_US = 6000000,
    LEASE_US = 150000000 /* after a cut a node has got the lease, or none wants it */
};

static const char *const strategies[] = { "keep-majority", "keep-oldest", "static-quorum",
                                          "keep-referee",  "lease",       "down-all" };

/* ---- the operator ---------------------------------------------------------------------------- */

struct operator_day {
    bool cold;
    uint32_t next;       /* whose turn it is */
    uint32_t gone;       /* bit n: node n crashed, or ended otherwise than by leaving */
    uint64_t ordered_ms; /* when the present one was told to leave; 0: not yet */
    uint64_t started_ms; /* when it was started again; 0: not yet */
    uint64_t ended_ms;   /* when it had left; 0: not yet */
    uint64_t install_ms; /* before it is started again */
    uint64_t pause_ms;   /* between two */
    uint64_t resume_ms;
    bool done;
};

static uint64_t
now_ms(const struct sim_world *w)
{
    return w->now_us / 1000;
}

static void
next_one(struct sim_world *w, struct operator_day *day)
{
    day->next++;
    day->ordered_ms = day->started_ms = day->ended_ms = 0;
    day->resume_ms = now_ms(w) + day->pause_ms;
    day->done = day->next >= w->nodes_count;
}

/* The youngest first: restarts give the last the lowest numbers. */
static void
restart_step(struct sim_world *w, struct operator_day *day)
{
    uint32_t node = w->nodes_count - 1 - day->next;
    struct sim_node *n = &w->nodes[node];
    if (day->done || now_ms(w) < day->resume_ms) {
        return;
    }
    if ((day->gone >> node & 1) != 0 || (!n->running && day->ordered_ms == 0)) {
        next_one(w, day);
    } else if (day->ordered_ms == 0) {
        if (w->lease_holder == node + 1 && sim_is_member(n)) {
            return; /* as the handbook says: the lease ends with it, and the other side may come */
        }
        day->ordered_ms = now_ms(w);
        sim_node_command(w, node, TRPI_MEMBER_LEAVE, node);
    } else if (day->started_ms == 0 && n->running) {
        if (now_ms(w) >= day->ordered_ms + LEAVE_MS) {
            sim_node_kill(w, node); /* cluster.leave-timeout: it ends all the same */
            day->gone |= 1u << node;
        }
    } else if (day->started_ms == 0) {
        if (n->stop != TRPI_STOP_LEFT) {
            day->gone |= 1u << node; /* downed: it is not started again */
            return;
        }
        day->ended_ms = day->ended_ms == 0 ? now_ms(w) : day->ended_ms;
        if (now_ms(w) >= day->ended_ms + day->install_ms) {
            day->started_ms = now_ms(w);
            sim_node_start(w, node);
        }
    } else if (!n->running || now_ms(w) >= day->started_ms + UP_MS ||
               stage_status(w, node, node) == TRP_MEMBER_UP) {
        next_one(w, day);
    }
}

static void
cold_step(struct sim_world *w, struct operator_day *day)
{
    if (day->done || now_ms(w) < day->resume_ms) {
        return;
    }
    if ((day->gone >> day->next & 1) == 0) {
        sim_node_start(w, day->next);
        w->member.may_not_create_cluster = true; /* the first one alone */
    }
    next_one(w, day);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

struct fault {
    uint64_t at_ms;    /* not before; UINT64_MAX: when the event comes */
    uint32_t at_event; /* this one of all that are told */
    uint64_t at_us;    /* then, at last */
    bool over;
};

static uint32_t events_heard;

static void
note_event(struct sim_world *w, uint32_t node, const trpi_member_action *action)
{
    stage_heard(w, node, action);
    events_heard++;
}

/* Half of them some time after the beginning, half a few milliseconds after something was told. */
static struct fault
draw_fault(struct sim_world *w, uint64_t span_ms, uint32_t events)
{
    struct fault f = { .at_ms = now_ms(w) + sim_below(w, (uint32_t)span_ms), .at_us = UINT64_MAX };
    if (sim_chance(w, 0.5)) {
        f.at_ms = UINT64_MAX;
        f.at_event = events_heard + sim_below(w, events);
    }
    return f;
}

static bool
is_due(struct sim_world *w, struct fault *f)
{
    if (f->at_us == UINT64_MAX &&
        (now_ms(w) >= f->at_ms || (f->at_ms == UINT64_MAX && events_heard > f->at_event))) {
        f->at_us = w->now_us + sim_below(w, sim_chance(w, 0.5) ? 3000 : 100000);
    }
    if (f->over || w->now_us < f->at_us) {
        return false;
    }
    f->over = true;
    return true;
}

/* ---- what must come of it -------------------------------------------------------------------- */

struct verdict {
    bool calm;  /* no node knew of a change of votes that not all are known to have seen */
    bool go_on; /* then the table says so */
    uint32_t left;
};

/* The table of docs/operating.md for the loss of one, applied to those with a vote. */
static bool
table_says(const struct sim_world *w, const trpi_gossip *g, uint32_t crashes, const char *strategy)
{
    uint32_t votes = 0, lost = 0, lowest = UINT32_MAX, oldest = UINT32_MAX, youth = UINT32_MAX;
    bool referee = false, is_missed = false;
    for (uint32_t k = 0; k < g->members_count; k++) {
        const trpi_gossip_member *m = &g->members[k];
        uint32_t node = stage_node(w, g, k);
        is_missed = is_missed || (node == crashes && m->status < TRP_MEMBER_EXITING);
        referee =
            referee || (node != crashes && node != UINT32_MAX &&
                        trpi_address_equal(&m->ident->id.address, &w->member.downing.referee));
        if (m->up_number == 0 || m->status > TRP_MEMBER_LEAVING) {
            continue;
        }
        lowest = votes == 0 ? node : lowest;
        oldest = m->up_number < youth ? node : oldest;
        youth = m->up_number < youth ? m->up_number : youth;
        votes++;
        lost += node == crashes ? 1 : 0;
    }
    uint32_t left = votes - lost, quorum = w->member.downing.quorum_size;
    switch (is_missed ? strategy[0] == 'k' ? strategy[5] : strategy[0] : '-') {
    case 'm': /* keep-majority */
        return left > lost || (left == lost && lowest != crashes);
    case 'o': /* keep-oldest */
        return oldest != crashes || left > 1;
    case 'r': /* keep-referee */
        return referee;
    case 's': /* static-quorum */
        return left >= quorum && votes <= 2 * quorum - 1;
    case 'd': /* down-all */
        return false;
    default: /* lease; or no member is unreachable */
        return true;
    }
}

/* The fate of the nodes that are left, as things are now. */
static struct verdict
forecast_of(struct sim_world *w, uint32_t crashes, const char *strategy)
{
    struct verdict v = { .calm = true, .go_on = true };
    uint64_t all = 0;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (!sim_is_member(n)) {
            continue;
        }
        const trpi_gossip *g = trpi_member_view(n->core);
        uint32_t self = trpi_gossip_find(g, trpi_member_self(n->core)->key);
        uint64_t its = 0;
        for (uint32_t k = 0; k < g->members_count; k++) {
            its = its * 31 + g->members[k].ident->key * g->members[k].up_number +
                  (g->members[k].status >= TRP_MEMBER_EXITING ? 1 : 0);
        }
        v.calm = v.calm && trpi_votes_open(trpi_member_votes(n->core), g) == 0 &&
                 (all == 0 || its == all);
        all = its;
        if (i != crashes && self != TRPI_GOSSIP_NONE &&
            g->members[self].status < TRP_MEMBER_EXITING) {
            v.left |= 1u << i;
            v.go_on = v.go_on && table_says(w, g, crashes, strategy);
        }
    }
    v.go_on = v.go_on && v.left != 0;
    return v;
}

/* Does a node count a vote in both ways? */
static bool
is_unsure(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        const struct sim_node *n = &w->nodes[i];
        if (sim_is_member(n) &&
            trpi_votes_open(trpi_member_votes(n->core), trpi_member_view(n->core)) > 0) {
            return true;
        }
    }
    return false;
}

struct tally {
    uint64_t owners, came; /* crashes of the lease's owner; the other side got it, and both live */
    uint64_t days, alive, crashes, calm, calm_go_on, open, open_stopped;
};

static bool
is_one_cluster(const struct sim_world *w)
{
    uint32_t alive = stage_alive(w);
    return alive == 0 || stage_agree(w, alive);
}

/* Does a node of each cluster hold it for two? */
static bool
all_know(const struct sim_world *w)
{
    uint32_t knowing = 0;
    bool all = true;
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        trpi_node_id id;
        uint64_t since_ms;
        if (sim_is_member(&w->nodes[i]) &&
            (trpi_member_removed_since_ms(w->nodes[i].core) != 0 ||
             trpi_member_foreign(w->nodes[i].core, 0, &id, &since_ms))) {
            knowing |= 1u << i;
        }
    }
    for (uint32_t i = 0; i < w->nodes_count; i++) {
        bool known = !sim_is_member(&w->nodes[i]);
        for (uint32_t k = 0; k < w->nodes_count && !known; k++) {
            known = (knowing >> k & 1) != 0 && stage_status(w, i, k) == TRP_MEMBER_UP;
        }
        all = all && known;
    }
    return all;
}

static void
print_failure(const struct sim_world *w, const char *what, const char *strategy)
{
    printf("  %s: TROUPE_SIM_FIRST=%llu TROUPE_SIM_SEEDS=1 TROUPE_SIM_STRATEGY=%s; alive %x\n",
           what, (unsigned long long)w->options.seed, strategy, stage_alive(w));
}

static struct sim_world *
play_morning(uint64_t seed, const char *strategy, struct operator_day *day)
{
    uint32_t nodes = 3 + (uint32_t)(seed / 6 % 3);
    struct sim_world *w = stage_new(nodes, seed);
    w->options.trace = getenv("TROUPE_SIM_TRACE") != NULL ? stdout : NULL;
    w->member.quiet = w->options.trace == NULL;
    w->on_event = note_event;
    events_heard = 0;
    w->member.downing_strategy = strategy;
    w->member.downing.stable_after_ms = 20000;
    w->member.downing.unstable_after_ms = 15000;
    w->member.downing.quorum_size = nodes / 2 + 1;
    w->member.downing.referee = w->nodes[sim_below(w, nodes)].id.address;
    w->exiting_ms = sim_chance(w, 0.5) ? 1 + sim_below(w, 4000) : 0;
    w->member.exiting_waits = w->exiting_ms != 0;
    *day = (struct operator_day){ .cold = sim_chance(w, 0.3) };
    day->pause_ms = sim_below(w, sim_chance(w, 0.5) ? 300 : 8000);
    day->install_ms = sim_below(w, sim_chance(w, 0.5) ? 300 : 30000);
    if (!day->cold) {
        for (uint32_t i = 0; i < nodes; i++) {
            stage_up(w, (2u << i) - 1);
        }
        w->member.may_not_create_cluster = true;
    }
    day->resume_ms = now_ms(w) + 1;
    return w;
}

/* In the evening. healed: the cut during which the lease's owner crashed is over. */
static void
count_day(struct sim_world *w, const char *strategy, bool cut_too, const struct verdict *verdict,
          bool healed, bool owner_crashed, struct tally *tally)
{
    if (owner_crashed && !is_one_cluster(w)) { /* as the handbook says: the other side has come */
        tally->came++;
        if (!UNIT_TRUE(!healed || all_know(w))) {
            print_failure(w, "two clusters that do not know it", strategy);
        }
    } else if (!UNIT_TRUE(is_one_cluster(w))) {
        print_failure(w, "not one cluster", strategy);
        sim_explain(w);
    }
    tally->days++;
    tally->alive += stage_alive(w) != 0 ? 1 : 0;
    if (!cut_too) {
        tally->crashes++;
        tally->calm += verdict->calm ? 1 : 0;
        tally->open += verdict->calm ? 0 : 1;
        if (verdict->calm && verdict->go_on) {
            tally->calm_go_on++;
            if (!UNIT_TRUE(w->downed == 0)) {
                print_failure(w, "stopped though the rest may go on", strategy);
            }
        }
        tally->open_stopped += !verdict->calm && w->downed > 0 ? 1 : 0;
    }
}

static void
play_day(uint64_t seed, const char *strategy, bool cut_too, struct tally *tally)
{
    struct operator_day day;
    struct sim_world *w = play_morning(seed, strategy, &day);
    uint32_t n = w->nodes_count, all = (1u << n) - 1;
    uint64_t span_ms = (day.pause_ms + day.install_ms + w->exiting_ms + 800) * n;
    uint32_t events = (day.cold ? 2 : 5) * n * n;
    struct fault crash = draw_fault(w, span_ms, events), cut = draw_fault(w, span_ms, events);
    uint32_t side = 1 + sim_below(w, all - 1), victim = sim_below(w, n);
    uint64_t heal_ms = sim_chance(w, 0.5) ? 1000 + sim_below(w, 60000) : UINT64_MAX;
    uint64_t end_ms = UINT64_MAX, healed_ms = UINT64_MAX;
    struct verdict verdict = { .left = 0 };
    uint64_t owner_ms = UINT64_MAX; /* after it got the lease its owner crashes */
    bool owner_crashed = false;
    cut.over = !cut_too;
    if (strategy[0] == 'l' && cut_too) {
        owner_ms = sim_below(w, sim_chance(w, 0.5) ? 1000 : 60000);
        crash.at_ms = UINT64_MAX;
        crash.at_event = UINT32_MAX;
    }
    while (now_ms(w) < end_ms && !w->result.failed) {
        sim_run_until(w, w->now_us + (crash.over && cut.over ? 20000 : 250));
        day.cold ? cold_step(w, &day) : restart_step(w, &day);
        if (owner_ms != UINT64_MAX && w->lease_holder != 0 && crash.at_us == UINT64_MAX) {
            crash.at_us = w->now_us + owner_ms * 1000;
        }
        if (is_due(w, &crash)) {
            victim = owner_ms != UINT64_MAX && w->lease_holder != 0 ? w->lease_holder - 1 : victim;
            for (uint32_t i = 0; i < n && !w->nodes[victim].running; i++) {
                victim = (victim + 1) % n;
            }
            verdict = forecast_of(w, victim, strategy);
            owner_crashed = w->lease_holder == victim + 1;
            tally->owners += owner_crashed ? 1 : 0;
            sim_node_kill(w, victim);
            day.gone |= 1u << victim;
        }
        if (crash.over && w->now_us < crash.at_us + IN_FLIGHT_US && is_unsure(w)) {
            verdict.calm = false; /* the leader had an answer from before the crash */
        }
        if (is_due(w, &cut)) {
            stage_split(w, side, true);
            healed_ms = heal_ms == UINT64_MAX ? UINT64_MAX : now_ms(w) + heal_ms;
        }
        if (now_ms(w) >= healed_ms) {
            stage_split(w, side, false);
            healed_ms = UINT64_MAX;
        }
        if (day.done && !cut.over && cut.at_us == UINT64_MAX) {
            cut.at_us = w->now_us;
        }
        bool waits = owner_ms != UINT64_MAX && (!cut.over || w->now_us < cut.at_us + LEASE_US);
        if (day.done && crash.at_us == UINT64_MAX && !waits) {
            crash.at_us = w->now_us; /* its event has not come */
        }
        if (day.done && crash.over && cut.over && end_ms == UINT64_MAX) {
            end_ms = now_ms(w) + (strategy[0] == 'l' ? AFTER_LEASE_MS : AFTER_MS);
        }
    }
    count_day(w, strategy, cut_too, &verdict, owner_crashed && heal_ms != UINT64_MAX, owner_crashed,
              tally);
    stage_end(w);
}

static void
whatever_crashes_while_nodes_restart_no_two_sides_stay_and_the_rest_does(void)
{
    const char *text = getenv("TROUPE_SIM_SEEDS"), *only = getenv("TROUPE_SIM_STRATEGY");
    uint64_t count = text == NULL ? 600 : strtoull(text, NULL, 10);
    struct tally tally = { 0 };
    for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + count; seed++) {
        play_day(seed, only != NULL ? only : strategies[seed % 6], seed / 18 % 2 == 1, &tally);
    }
    printf(
        "  %llu seeds, in %llu of them a cluster is left; %llu crashes alone: %llu when all votes "
        "were known to all, of which %llu were to leave a cluster, %llu before that, of which %llu "
        "stopped somebody; %llu crashes of the lease's owner, after which the other side came "
        "in %llu\n",
        (unsigned long long)tally.days, (unsigned long long)tally.alive,
        (unsigned long long)tally.crashes, (unsigned long long)tally.calm,
        (unsigned long long)tally.calm_go_on, (unsigned long long)tally.open,
        (unsigned long long)tally.open_stopped, (unsigned long long)tally.owners,
        (unsigned long long)tally.came);
    UNIT_TRUE(tally.owners > 0 || count < 100 || (only != NULL && strcmp(only, "lease") != 0));
}

/* Default times; the crash is found after 5 s, and no node decides before 25 s. */
static void
a_crash_and_an_orderly_stop_soon_after_do_not_end_three(void)
{
    for (uint64_t stop_ms = 500; stop_ms < 25000; stop_ms += 2500) {
        struct sim_world *w = stage_new(3, stage_first_seed());
        w->member.downing.stable_after_ms = 20000;
        w->member.downing.unstable_after_ms = 15000;
        stage_up(w, 7);
        sim_node_kill(w, 2);
        stage_run(w, stop_ms);
        uint64_t before_ms = now_ms(w);
        sim_node_command(w, 1, TRPI_MEMBER_LEAVE, 1);
        STAGE_AWAIT(w, !w->nodes[1].running, LEAVE_MS);
        UNIT_EQUAL(w->nodes[1].stop, TRPI_STOP_LEFT);
        UNIT_TRUE(now_ms(w) + stop_ms < before_ms + 28000); /* the leave delays nothing */
        STAGE_AWAIT(w, stage_agree(w, 1), 10000);
        stage_run(w, 60000);
        UNIT_TRUE(stage_agree(w, 1));
        stage_end(w);
    }
}

/* Node 3 of four hands over; when all have seen it Exiting it counts no more, nor does its
 * successor. */
static void
a_crash_while_another_node_hands_over_does_not_stop_four(void)
{
    for (uint32_t back = 0; back < 2; back++) {
        struct sim_world *w = stage_new(4, stage_first_seed());
        w->member.downing.stable_after_ms = 20000;
        w->exiting_ms = 15000;
        w->member.exiting_waits = true;
        stage_up(w, 15);
        sim_node_command(w, 3, TRPI_MEMBER_LEAVE, 3);
        STAGE_AWAIT(w, stage_all(w, 15, 3, TRP_MEMBER_EXITING), 2000);
        stage_run(w, 1000);
        sim_node_kill(w, 0); /* 1 and 2 are left of 0, 1 and 2 */
        if (back != 0) {
            STAGE_AWAIT(w, !w->nodes[3].running, 30000);
            sim_node_start(w, 3); /* it waits for the decision */
        }
        STAGE_AWAIT(w, stage_agree(w, back != 0 ? 14 : 6), 60000);
        stage_end(w);
    }
}

/* How long it takes after a change of votes until each member knows that all have seen it. */
static void
measure_window(double loss, uint32_t nodes, uint64_t seed, uint64_t *ret_ms, uint64_t *ret_most_ms,
               uint32_t *ret_changes)
{
    struct operator_day day = { .pause_ms = 3000 };
    struct sim_world *w = stage_new(nodes, seed);
    stage_up(w, (1u << nodes) - 1);
    w->loss = loss;
    w->faults += loss > 0 ? 1 : 0;
    w->member.may_not_create_cluster = true;
    uint64_t open_us = 0;
    while (!day.done && !w->result.failed) {
        sim_run_until(w, w->now_us + 1000);
        restart_step(w, &day);
        bool open = is_unsure(w);
        if (open && open_us == 0) {
            open_us = w->now_us;
            (*ret_changes)++;
        } else if (!open && open_us != 0) {
            uint64_t ms = (w->now_us - open_us) / 1000;
            *ret_ms += ms;
            *ret_most_ms = ms > *ret_most_ms ? ms : *ret_most_ms;
            open_us = 0;
        }
    }
    stage_end(w);
}

static void
a_change_of_votes_is_soon_known_to_be_known_to_all(void)
{
    static const struct {
        double loss;
        uint64_t limit_ms; /* on the mean */
    } lines[] = { { 0, 100 }, { 0.2, 2000 } };
    for (size_t line = 0; line < 2; line++) {
        uint64_t sum_ms = 0, most_ms = 0;
        uint32_t changes = 0;
        for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 30; seed++) {
            measure_window(lines[line].loss, 3 + (uint32_t)(seed % 3), seed, &sum_ms, &most_ms,
                           &changes);
        }
        UNIT_REQUIRE(changes > 0);
        printf(
            "  %.0f%% of the frames lost: %llu ms after a change of votes all know that all have "
            "seen it, at most %llu ms, in %u restarts\n",
            lines[line].loss * 100, (unsigned long long)(sum_ms / changes),
            (unsigned long long)most_ms, changes);
        UNIT_TRUE(sum_ms / changes < lines[line].limit_ms);
    }
}

/* Nodes 0, 1 and 2 are Up, and the leader has just made `joiners` Up; of the three only 0 knows. */
static bool
made_up_on_one_side(struct sim_world *w, uint32_t joiners)
{
    stage_up(w, 1);
    stage_up(w, 7);
    for (uint32_t i = 3; i < 3 + joiners; i++) {
        sim_node_start(w, i);
    }
    uint64_t end_us = w->now_us + 5000000;
    uint32_t last = 2 + joiners;
    while (w->now_us < end_us && !w->result.failed && stage_status(w, 0, last) != TRP_MEMBER_UP) {
        sim_run_until(w, w->now_us + 20);
    }
    bool others = false;
    for (uint32_t i = 3; i < 3 + joiners; i++) {
        others = others || stage_status(w, 0, i) != TRP_MEMBER_UP ||
                 stage_status(w, 1, i) == TRP_MEMBER_UP || stage_status(w, 2, i) == TRP_MEMBER_UP;
    }
    return !others;
}

/* 0 and the joiners, here and there Up, from 1 and 2: three of five, or two of three? Of 0 and one
 * joiner: the oldest with one, or the oldest alone? */
static void
a_cut_while_joiners_are_made_up_leaves_one_side_at_most(void)
{
    static const struct {
        const char *strategy;
        uint32_t joiners;
    } cases[] = { { "keep-majority", 2 }, { "keep-oldest", 1 } };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint32_t met = 0;
        for (uint64_t seed = stage_first_seed(); seed < stage_first_seed() + 100 && met < 10;
             seed++) {
            struct sim_world *w = stage_new(3 + cases[c].joiners, seed);
            w->member.downing_strategy = cases[c].strategy;
            w->member.downing.stable_after_ms = 5000;
            if (made_up_on_one_side(w, cases[c].joiners)) {
                met++;
                stage_split(w, 6, true);
                stage_run(w, 30000);
                if (!UNIT_TRUE(is_one_cluster(w))) {
                    print_failure(w, "two sides", cases[c].strategy);
                }
            }
            stage_end(w);
        }
        UNIT_TRUE(met > 0);
    }
}

UNIT_BEGIN("restart")
UNIT(a_crash_and_an_orderly_stop_soon_after_do_not_end_three)
UNIT(a_crash_while_another_node_hands_over_does_not_stop_four)
UNIT(a_cut_while_joiners_are_made_up_leaves_one_side_at_most)
UNIT(a_change_of_votes_is_soon_known_to_be_known_to_all)
UNIT(whatever_crashes_while_nodes_restart_no_two_sides_stay_and_the_rest_does)
UNIT_END
