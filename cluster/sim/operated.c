/* operated.c - the scenario `operated`: complete nodes under a schedule of faults, and of orders
 * and mistakes of an operator, at any instant of one another; and the nodes are asked what they
 * report of themselves.
 *
 * Why.     Severe mistakes lie between parts that are right by themselves: engine and remoting,
 *          node and operator. So complete nodes run, and what `status`, `why` and `peers` report
 *          must be true.
 * Shape.   schedule_complete.c draws actions, do_action() carries one out, operated_load.c loads
 *          the nodes, operated_laws.c checks twice a second. At the end all faults end, all nodes
 *          that do not run are started, and they are one cluster, reach each other and say that
 *          they are healthy.
 * Careful (a setting, on in a swarm) leaves out what makes two clusters by itself: an operator who
 *          marks a member Down while anything is cut off or stands still; a first seed that starts
 *          then. And at least half of the nodes are not killed.
 * Tests.   tests/sim/operated_test.c
 */
#include "cluster/sim/operated.h"

#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"

#define MILLISECOND_NS 1000000u
#define STEP_MS 20u
#define LOOK_NS (500u * MILLISECOND_NS)
#define ORDER_MS 5000u      /* for so long the operator waits for the begin of an order */
#define AFTER_DOWN_MS 5000u /* nothing is cut before all know of it */
#define CALM_MS 180000u
#define PEACE_MS 15000u
#define RESTART_MS 6000u
#define LEAVE_MS 45000u

/* ---- orders ---------------------------------------------------------------------------------- */

/* The operator waits no longer. An order that has begun stays given; one that has not is as good as
 * never given. */
static void
order_end(struct sim_operated *o, struct sim_order *order)
{
    trp_err err = trpi_cluster_order_end(order->order);
    bool dropped = err == TRP_ETIMEDOUT || err == TRP_ECANCELED || err == TRP_ECLOSED;
    order->order = NULL;
    if (!dropped && order->kind != TRPI_MEMBER_JOIN) {
        sim_laws_note_order(o, order);
    }
    trp_sim_note(o->sim, (uint64_t)err);
}

static void
orders_end(struct sim_operated *o, uint64_t now_ns)
{
    for (uint32_t i = 0; i < OPERATED_ORDERS_MAX; i++) {
        if (o->orders[i].order != NULL && o->orders[i].until_ns <= now_ns) {
            order_end(o, &o->orders[i]);
        }
    }
}

/* Give an order to node at, about the incarnation uid of the node at address. */
static void
give_order(struct sim_operated *o, const struct sim_whole *at, trpi_member_event_kind kind,
           const char *address, uint64_t uid, uint64_t back_ms)
{
    trpi_cluster_patience patience = { .begin_ms = ORDER_MS };
    for (uint32_t i = 0; i < OPERATED_ORDERS_MAX && at->system != NULL; i++) {
        struct sim_order *free_one = &o->orders[i];
        if (free_one->order != NULL) {
            continue;
        }
        trp_err err = trpi_cluster_order_begin(at->cluster, kind, &address, 1,
                                               kind == TRPI_MEMBER_JOIN ? 0 : uid, &patience,
                                               &free_one->order);
        if (err == TRP_OK) {
            free_one->kind = kind;
            free_one->uid = uid;
            free_one->until_ns =
                sim_complete_now_ns(o->sim) + (back_ms != 0 ? back_ms : ORDER_MS) * MILLISECOND_NS;
        }
        return;
    }
}

static void
order_shutdown(struct sim_operated *o, const struct sim_whole *at)
{
    trpi_cluster_snapshot *s = NULL;
    if (at->system == NULL || trpi_cluster_snapshot_get(at->cluster, &s) != TRP_OK) {
        return;
    }
    for (uint32_t i = 0; i < s->members_count; i++) {
        const trp_member *m = &s->members[i].member;
        give_order(o, at, TRPI_MEMBER_LEAVE, m->address, m->uid, 0);
    }
    trpi_cluster_snapshot_free(s);
}

/* ---- may it be done? ------------------------------------------------------------------------- */

/* Is a node cut off, does one stand still, is a port closed? */
static bool
is_troubled(const trp_sim *sim)
{
    uint64_t now_ns = sim_complete_now_ns(sim);
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        const struct sim_whole *n = &sim->nodes[i];
        if (n->still_until_ns > now_ns || n->port_until_ns > now_ns) {
            return true;
        }
        for (uint32_t k = 0; k < sim->nodes_count; k++) {
            if (sim->cut_until_ns[i][k] > now_ns || sim->dial_until_ns[i][k] > now_ns) {
                return true;
            }
        }
    }
    return false;
}

bool
sim_whole_is_up(const struct sim_whole *n)
{
    trpi_cluster_snapshot *s = NULL;
    if (n->system == NULL || n->over || trpi_cluster_snapshot_get(n->cluster, &s) != TRP_OK) {
        return false;
    }
    bool up = s->self != TRPI_CLUSTER_NONE && s->members[s->self].member.status == TRP_MEMBER_UP;
    trpi_cluster_snapshot_free(s);
    return up;
}

/* Does the first seed run, and ask whether there is a cluster? */
static bool
first_seed_asks(const trp_sim *sim)
{
    return sim->nodes[0].system != NULL && !sim_whole_is_up(&sim->nodes[0]);
}

/* The first seed makes a cluster of its own when no node says that it is in one. So it starts only
 * while the members can say so, and are not about to leave. */
static bool
first_seed_may_start(const struct sim_operated *o)
{
    if (!o->careful || o->mended) {
        return true;
    }
    for (uint32_t i = 1; i < o->sim->nodes_count; i++) {
        const struct sim_whole *n = &o->sim->nodes[i];
        trpi_cluster_snapshot *s = NULL;
        if (n->system == NULL || trpi_cluster_snapshot_get(n->cluster, &s) != TRP_OK) {
            continue;
        }
        bool member = s->members_count > 0;
        trpi_cluster_snapshot_free(s);
        if (n->over || n->advertises[0] != '\0' || (member && !sim_whole_is_up(n))) {
            return false;
        }
    }
    return !is_troubled(o->sim);
}

static bool
may_be_killed(const struct sim_operated *o, uint32_t node)
{
    const trp_sim *sim = o->sim;
    uint32_t gone = 0;
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        gone += !sim_whole_is_up(&sim->nodes[i]) ? 1 : 0;
    }
    return !o->careful ||
           (((gone + 1) * 2 <= sim->nodes_count || !sim_whole_is_up(&sim->nodes[node])));
}

/* Everything is well from where the operator looks at it. */
static bool
may_be_downed(const struct sim_operated *o, const struct sim_whole *at)
{
    trpi_cluster_snapshot *s = NULL;
    if (!o->careful) {
        return true;
    }
    if (is_troubled(o->sim) || !sim_whole_is_awake(at) ||
        trpi_cluster_snapshot_get(at->cluster, &s) != TRP_OK) {
        return false;
    }
    bool calm = s->converged && s->members_count > 2;
    trpi_cluster_snapshot_free(s);
    return calm;
}

/* A member that cannot hear from a node takes another one with its address for its successor. */
static bool
is_doubled(const trp_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        if (sim->nodes[i].system != NULL && sim->nodes[i].advertises[0] == 'n') {
            return true;
        }
    }
    return false;
}

static bool
may_be_cut(const struct sim_operated *o)
{
    if (o->careful && is_doubled(o->sim)) {
        return false;
    }
    return !o->careful ||
           sim_complete_now_ns(o->sim) >= o->downed_ns + (uint64_t)AFTER_DOWN_MS * MILLISECOND_NS;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
start_as(struct sim_operated *o, struct sim_whole *n, bool alone, const char *host)
{
    if (n->system != NULL || (o->careful && n->number == 0)) {
        return;
    }
    n->starts_alone = alone;
    (void)snprintf(n->advertises, sizeof n->advertises, "%s", host);
    trp_sim_start(o->sim, n->number);
}

static void
start_right(struct sim_operated *o, struct sim_whole *n)
{
    if (n->system != NULL) {
        return;
    }
    n->starts_alone = false;
    n->advertises[0] = '\0';
    trp_sim_start(o->sim, n->number);
}

static void
kill_node(struct sim_operated *o, uint32_t node)
{
    trp_sim_kill(o->sim, node);
    o->sim->nodes[node].restart_ns = 0;
}

/* All nodes are at the operator's step or one before it: steps must not lie further apart. */
static void
rotate_cookie(struct sim_operated *o, struct sim_whole *n)
{
    bool behind = false;
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        behind = behind || o->sim->nodes[i].rotation < o->rotation;
    }
    if (n->rotation == o->rotation && behind) {
        return;
    }
    o->rotation += n->rotation == o->rotation ? 1 : 0;
    sim_whole_rotate(n);
}

static void
cut_links(struct sim_operated *o, const trpi_sim_action *a)
{
    trp_sim *sim = o->sim;
    if (a->act == TRPI_SIM_LINK) {
        trp_sim_cut(sim, a->a, a->b, (uint32_t)a->ms);
        if (!a->one_way) {
            trp_sim_cut(sim, a->b, a->a, (uint32_t)a->ms);
        }
        return;
    }
    for (uint32_t from = 0; from < sim->nodes_count; from++) {
        for (uint32_t to = 0; to < sim->nodes_count; to++) {
            if (a->text[from] != a->text[to] && (!a->one_way || a->text[from] < a->text[to])) {
                trp_sim_cut(sim, from, to, (uint32_t)a->ms);
            }
        }
    }
}

static void
act_on_network(struct sim_operated *o, const trpi_sim_action *a, struct sim_whole *n)
{
    trp_sim *sim = o->sim;
    uint64_t until_ns = sim_complete_now_ns(sim) + (uint64_t)a->ms * MILLISECOND_NS;
    switch (a->act) {
    case TRPI_SIM_CUT:
    case TRPI_SIM_LINK:
        cut_links(o, a);
        break;
    case TRPI_SIM_PORT:
        n->port_until_ns = until_ns;
        break;
    case TRPI_SIM_DIAL:
        sim->dial_until_ns[a->a][a->b] = until_ns;
        break;
    case TRPI_SIM_PAUSE:
        if (until_ns > n->still_until_ns) { /* else the pause that is under way lasts longer */
            trp_sim_pause(sim, a->a, (uint32_t)a->ms);
        }
        break;
    default:
        memset(sim->cut_until_ns, 0, sizeof sim->cut_until_ns);
        break;
    }
}

static void
act_on_members(struct sim_operated *o, const trpi_sim_action *a, struct sim_whole *n)
{
    struct sim_whole *at = &o->sim->nodes[a->b < o->sim->nodes_count ? a->b : 0];
    uint64_t uid = sim_whole_uid(n), back_ms = a->ms > 0 ? (uint64_t)a->ms : 1;
    switch (a->act) {
    case TRPI_SIM_LEAVE:
        give_order(o, at, TRPI_MEMBER_LEAVE, n->address, uid, 0);
        break;
    case TRPI_SIM_LEAVE_BACK:
        give_order(o, at, TRPI_MEMBER_LEAVE, n->address, uid, back_ms);
        break;
    case TRPI_SIM_DOWN:
        if (uid != 0 && may_be_downed(o, at)) {
            o->downed_ns = sim_complete_now_ns(o->sim);
            give_order(o, at, TRPI_MEMBER_DOWN_CMD, n->address, uid, 0);
        }
        break;
    case TRPI_SIM_DOWN_BACK: /* at a node that cannot begin it: else it is a DOWN, with its care */
        if (uid != 0 && !sim_whole_is_awake(at) &&
            at->still_until_ns > sim_complete_now_ns(o->sim) + (back_ms + 100) * MILLISECOND_NS) {
            give_order(o, at, TRPI_MEMBER_DOWN_CMD, n->address, uid, back_ms);
        }
        break;
    case TRPI_SIM_JOIN:
        /* its own address, or the one that it advertises, starts a cluster */
        if (n != at && (!o->careful || (n->number != 0 && strcmp(n->advertises, at->host) != 0))) {
            give_order(o, n, TRPI_MEMBER_JOIN, at->address, uid, 0);
        }
        break;
    default:
        order_shutdown(o, n);
        break;
    }
}

static void
do_action(struct sim_operated *o, const trpi_sim_action *a)
{
    trp_sim *sim = o->sim;
    struct sim_whole *n = &sim->nodes[a->a < sim->nodes_count ? a->a : 0];
    switch (a->act) {
    case TRPI_SIM_KILL:
        if (may_be_killed(o, a->a)) {
            kill_node(o, a->a);
        }
        break;
    case TRPI_SIM_START:
        if (a->a != 0 || first_seed_may_start(o)) {
            start_right(o, n);
        }
        break;
    case TRPI_SIM_START_ALONE:
        start_as(o, n, true, "");
        break;
    case TRPI_SIM_START_WRONG:
        start_as(o, n, false, "w");
        break;
    case TRPI_SIM_START_DOUBLED:
        if (!o->careful || !is_troubled(sim)) {
            start_as(o, n, false, a->a == a->b ? "" : sim->nodes[a->b].host);
        }
        break;
    case TRPI_SIM_RESET:
        if (may_be_cut(o)) {
            trp_sim_reset(sim, a->a);
        }
        break;
    case TRPI_SIM_ROTATE:
        rotate_cookie(o, n);
        break;
    case TRPI_SIM_STRANGERS:
        sim_strangers_come(o, n, a->b, (uint64_t)a->ms);
        break;
    case TRPI_SIM_SLOW:
        o->slow_until_ns[n->number] = sim_complete_now_ns(sim) + (uint64_t)a->ms * MILLISECOND_NS;
        break;
    case TRPI_SIM_CUT:
    case TRPI_SIM_LINK:
    case TRPI_SIM_PORT:
    case TRPI_SIM_DIAL:
    case TRPI_SIM_PAUSE:
    case TRPI_SIM_HEAL:
        if (may_be_cut(o)) {
            act_on_network(o, a, n);
        }
        break;
    case TRPI_SIM_LEAVE:
    case TRPI_SIM_LEAVE_BACK:
    case TRPI_SIM_DOWN:
    case TRPI_SIM_DOWN_BACK:
    case TRPI_SIM_JOIN:
    case TRPI_SIM_SHUTDOWN:
        act_on_members(o, a, n);
        break;
    default:
        break; /* settings, end */
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

/* A node that leaves and does not end is ended all the same: cluster.leave-timeout. */
static void
end_overdue_leaves(struct sim_operated *o, uint64_t now_ns)
{
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        if (o->leaving_ns[i] != 0 &&
            now_ns >= o->leaving_ns[i] + LEAVE_MS * (uint64_t)MILLISECOND_NS) {
            o->leaving_ns[i] = 0;
            kill_node(o, i);
        }
    }
}

/* A node that has ended is started again some seconds later. */
static void
restart_ended(struct sim_operated *o, uint64_t now_ns)
{
    for (uint32_t i = 0; i < o->sim->nodes_count && o->supervised; i++) {
        struct sim_whole *n = &o->sim->nodes[i];
        if (n->system != NULL) {
            continue;
        }
        if (n->restart_ns == 0) {
            n->restart_ns =
                now_ns +
                (200 + sim_complete_draw(&o->sim->network_random) % RESTART_MS) * MILLISECOND_NS;
        } else if (now_ns >= n->restart_ns && (i != 0 || first_seed_may_start(o))) {
            start_right(o, n);
        }
    }
}

static void
operated_advance(struct sim_operated *o, uint64_t ms)
{
    uint64_t end_ms = trp_sim_now_ms(o->sim) + ms;
    while (trp_sim_now_ms(o->sim) < end_ms) {
        uint64_t left_ms = end_ms - trp_sim_now_ms(o->sim);
        trp_sim_pass(o->sim, left_ms < STEP_MS ? (uint32_t)left_ms : STEP_MS);
        uint64_t now_ns = sim_complete_now_ns(o->sim);
        orders_end(o, now_ns);
        sim_strangers_go(o, now_ns);
        end_overdue_leaves(o, now_ns);
        restart_ended(o, now_ns);
        if (now_ns >= o->looked_ns + LOOK_NS) {
            o->looked_ns = now_ns;
            sim_laws_look(o);
        }
    }
}

static void
end_mistakes(struct sim_operated *o)
{
    orders_end(o, UINT64_MAX);
    sim_strangers_go(o, UINT64_MAX);
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        struct sim_whole *n = &o->sim->nodes[i];
        if (n->system != NULL &&
            (n->advertises[0] != '\0' || (n->starts_alone && !sim_whole_is_up(n)))) {
            kill_node(o, i);
        }
        n->starts_alone = false;
        n->advertises[0] = '\0';
        o->slow_until_ns[i] = 0;
        while (n->rotation < o->rotation) {
            sim_whole_rotate(n);
        }
    }
}

/* Until all are one cluster, and all know it. */
static void
await_one_cluster(struct sim_operated *o)
{
    uint64_t end_ms = trp_sim_now_ms(o->sim) + CALM_MS;
    sim_complete_mend(o->sim);
    o->mended = true;
    while (!sim_whole_all_up(o->sim)) {
        if (trp_sim_now_ms(o->sim) >= end_ms) {
            sim_operated_fail(o, "Q: not one cluster of all nodes in time; node 0 says: %s",
                              o->said[0].first);
            return;
        }
        for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
            if (i != 0 || first_seed_may_start(o)) {
                start_right(o, &o->sim->nodes[i]);
            }
        }
        operated_advance(o, STEP_MS);
    }
}

static void
run_schedule(trp_sim *sim, void *arg)
{
    struct sim_operated *o = arg;
    char line[TRPI_SIM_LINE_BYTES_MAX];
    trp_sim_delay(sim, o->delay_ms);
    operated_advance(o, 5000);
    uint64_t began_ms = trp_sim_now_ms(sim);
    for (uint32_t i = 0; i < o->schedule->count; i++) {
        const trpi_sim_action *a = &o->schedule->actions[i];
        uint64_t now_ms = trp_sim_now_ms(sim);
        operated_advance(o, began_ms + a->at_ms > now_ms ? began_ms + a->at_ms - now_ms : 0);
        if (a->act == TRPI_SIM_END) {
            break;
        }
        if (sim->options.log_arg != NULL && a->act > TRPI_SIM_SUPERVISED) {
            fprintf(sim->options.log_arg, "%10.4f %s\n", (double)trp_sim_now_ms(sim) / 1e3,
                    trpi_sim_action_text(a, line, sizeof line));
        }
        if (!o->careful || !first_seed_asks(sim)) {
            do_action(o, a);
        }
    }
    end_mistakes(o);
    await_one_cluster(o);
    operated_advance(o, PEACE_MS);
    sim_laws_everybody_answers(sim, "counter");
    sim_laws_everybody_answers(sim, "sluggard");
    sim_laws_look(o);
    sim_laws_peace(o);
    trp_sim_note(sim, o->laws.received);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    struct sim_operated *o = arg;
    sim_laws_start(sim, node, &o->laws);
    sim_load_start(o, node);
}

trp_err
sim_operated_begin(trp_sim *sim)
{
    struct sim_operated *o = sim->arg;
    if (sim->options.started != start_actors) {
        return TRP_OK; /* another program */
    }
    sim->operated = o;
    o->sim = sim;
    return trpi_mem_transport_ops.open(sim->network, trpi_virtual_world(sim->virt),
                                       &sim_stranger_events, o, &o->outside);
}

void
sim_operated_end(trp_sim *sim)
{
    struct sim_operated *o = sim->operated;
    if (o == NULL) {
        return;
    }
    orders_end(o, UINT64_MAX);
    if (o->outside != NULL) {
        trpi_mem_transport_ops.stop(o->outside);
        trpi_mem_transport_ops.free(o->outside);
    }
    sim->operated = NULL;
}

static void
options_take(struct sim_operated *o, trp_sim_options *ret)
{
    for (uint32_t i = 0; i < o->schedule->count; i++) {
        const trpi_sim_action *a = &o->schedule->actions[i];
        o->supervised = a->act == TRPI_SIM_SUPERVISED ? a->a != 0 : o->supervised;
        o->careful = a->act == TRPI_SIM_CAREFUL ? a->a != 0 : o->careful;
        ret->downing = a->act == TRPI_SIM_DOWNING ? a->text : ret->downing;
        ret->stable_after_ms =
            a->act == TRPI_SIM_STABLE_AFTER ? (uint32_t)a->ms : ret->stable_after_ms;
        o->delay_ms = a->act == TRPI_SIM_DELAY ? (uint32_t)(a->ms + a->ms2) : o->delay_ms;
    }
}

static trp_err
run_nodes(struct sim_operated *o, const trpi_sim_options *options, trpi_sim_result *ret_result)
{
    trp_sim_options sim = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    sim.seed = options->seed;
    sim.nodes = options->nodes;
    sim.started = start_actors;
    sim_complete_trace(options, &sim);
    options_take(o, &sim);
    return sim_complete_result(sim_complete_run_once(run_schedule, o, &sim, &result), &result,
                               ret_result);
}

trp_err
sim_operated_run(const trpi_sim_options *options, trpi_sim_result *ret_result)
{
    struct sim_operated *o = trpi_alloc(sizeof *o);
    trpi_sim_schedule *drawn = NULL;
    uint32_t nodes = options->nodes != 0 ? options->nodes : TRPI_SIM_NODES;
    if (o == NULL || nodes > TRP_SIM_NODES_MAX) {
        trpi_free(o);
        return o == NULL ? TRP_ENOMEM : TRP_EINVAL;
    }
    trpi_sim_options all = *options;
    all.nodes = nodes;
    o->schedule = options->schedule;
    if (o->schedule == NULL) {
        o->schedule = drawn =
            trpi_sim_schedule_draw_complete(nodes, options->seed, options->until_ms);
    }
    trp_err err = o->schedule == NULL ? TRP_ENOMEM : trpi_config_new(&o->config);
    pthread_mutex_init(&o->node.lock, NULL);
    if (err == TRP_OK) {
        err = run_nodes(o, &all, ret_result);
    }
    trpi_mutex_destroy(&o->node.lock);
    trpi_config_free(o->config);
    trpi_sim_schedule_free(drawn);
    trpi_free(o);
    return err;
}
