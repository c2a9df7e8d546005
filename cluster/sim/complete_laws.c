/* complete_laws.c - the scenario `actors`: complete nodes whose actors talk while everything fails.
 *
 * Each node has a counter, which answers, and a teller, which numbers what it sends to the counters
 * of all nodes, and a listener to the events of the cluster. Laws:
 *   complete-law-A1  What a teller sends arrives in its order, each at most once, and never from an
 *       incarnation before one that was heard.
 *   complete-law-A2  A listener hears of each incarnation that it is Up at most once, that it is
 *       removed at most once, and nothing of it afterwards.
 *   complete-law-A3  When all faults have ended, all nodes are one cluster again, and when each
 *       link had time to be dialled again, each reaches the counters of all others.
 * Tests. tests/sim/complete_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/actor.h>
#include <troupe/cluster.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/sim/complete.h"

#define TELL_EVERY_MS 250u
#define FAULTS_MS 60000u
#define CALM_MS 180000u
#define DIALS_MS 11000u /* retry-backoff-max: a link may be gated so long after the faults */
#define ANSWER_MS 10000u
#define HEARD_MAX 1024u /* incarnations in one run */

struct number { /* what a teller sends */
    uint32_t node, incarnation;
    uint64_t number;
};

struct birth { /* arguments of the actors */
    struct sim_laws *laws;
    uint32_t node, incarnation;
};

/* ---- counter --------------------------------------------------------------------------------- */

struct counter {
    struct birth birth;
    uint64_t received;
    struct number last[TRP_SIM_NODES_MAX];
};

static trp_err
take_birth(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(struct birth));
    return TRP_OK;
}

static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct counter *c = state;
    struct sim_laws *laws = c->birth.laws;
    struct number n;
    if (trp_msg_is(msg, &trp_i64_type)) {
        int64_t received = (int64_t)c->received;
        trp_reply(ctx, &trp_i64_type, &received, sizeof received);
        return TRP_OK;
    }
    if (!trp_msg_is(msg, &trp_bytes_type) || trp_msg_bytes(msg) != sizeof n) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    memcpy(&n, trp_msg_payload(msg), sizeof n);
    struct number *last = &c->last[n.node % TRP_SIM_NODES_MAX];
    TRP_SIM_CHECK(laws->sim, n.incarnation > last->incarnation ||
                                 (n.incarnation == last->incarnation && n.number > last->number));
    *last = n; /* complete-law-A1 */
    laws->arrived[c->birth.node][n.node % TRP_SIM_NODES_MAX].ns = sim_complete_now_ns(laws->sim);
    laws->arrived[c->birth.node][n.node % TRP_SIM_NODES_MAX].uid =
        trpi_system_self(trp_sim_system(laws->sim, c->birth.node))->uid;
    c->received++;
    laws->received++;
    trp_sim_note(laws->sim, n.number << 16 ^ (uint64_t)n.node << 8 ^ c->birth.node);
    return TRP_OK;
}

static const trp_behaviour counter_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "sim-counter",
                                                 .version = 1,
                                                 .state_bytes = sizeof(struct counter),
                                                 .receive = counter_receive,
                                                 .pre_start = take_birth };

/* ---- teller ---------------------------------------------------------------------------------- */

struct teller {
    struct birth birth;
    uint64_t number;
};

static trp_err
teller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    memcpy(state, trp_msg_payload(args), sizeof(struct birth));
    return trp_timer_repeat(ctx, 1, TELL_EVERY_MS, TELL_EVERY_MS, &trp_i64_type, &(int64_t){ 0 },
                            sizeof(int64_t));
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct teller *t = state;
    trp_sim *sim = t->birth.laws->sim;
    (void)msg;
    for (uint32_t i = 0; i < trp_sim_nodes(sim); i++) {
        char path[96];
        struct number n = { t->birth.node, t->birth.incarnation, ++t->number };
        (void)snprintf(path, sizeof path, "%s/user/counter", trp_sim_address(sim, i));
        if (i != t->birth.node) {
            trp_err err = trp_select_tell(ctx, path, &trp_bytes_type, &n, sizeof n);
            TRP_SIM_CHECK(sim, err == TRP_OK); /* which says nothing of its arrival */
        }
    }
    return TRP_OK;
}

static const trp_behaviour teller_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "sim-teller",
                                                .version = 1,
                                                .state_bytes = sizeof(struct teller),
                                                .receive = teller_receive,
                                                .pre_start = teller_start };

/* ---- listener -------------------------------------------------------------------------------- */

struct heard {
    uint64_t uid;
    bool up, removed;
};

struct listener {
    struct birth birth;
    uint32_t heard_count;
    struct heard heard[HEARD_MAX];
};

static struct heard *
heard_of(struct listener *l, uint64_t uid)
{
    uint32_t at = 0;
    while (at < l->heard_count && l->heard[at].uid != uid) {
        at++;
    }
    if (at == l->heard_count && l->heard_count < HEARD_MAX - 1) {
        l->heard[l->heard_count++] = (struct heard){ .uid = uid };
    }
    return &l->heard[at];
}

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct listener *l = state;
    trp_sim *sim = l->birth.laws->sim;
    bool up = trp_msg_is(msg, &trp_member_up_type);
    bool removed = trp_msg_is(msg, &trp_member_removed_type);
    (void)ctx;
    if (!up && !removed && !trp_msg_is(msg, &trp_member_unreachable_type) &&
        !trp_msg_is(msg, &trp_member_reachable_type)) {
        return TRP_OK;
    }
    const trp_member_event *event = trp_msg_payload(msg);
    struct heard *h = heard_of(l, event->member.uid);
    TRP_SIM_CHECK(sim, !h->removed); /* complete-law-A2 */
    TRP_SIM_CHECK(sim, !up || !h->up);
    h->up = h->up || up;
    h->removed = removed;
    trp_sim_note(sim, event->member.uid ^ (uint64_t)event->member.status << 4 ^ removed);
    return TRP_OK;
}

static const trp_behaviour listener_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "sim-listener",
                                                  .version = 1,
                                                  .state_bytes = sizeof(struct listener),
                                                  .receive = listener_receive,
                                                  .pre_start = take_birth };

/* ---- program --------------------------------------------------------------------------------- */

static trp_ref
spawn_actor(trp_sim *sim, uint32_t node, const trp_behaviour *behaviour, const char *name,
            const struct birth *birth)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = name;
    options.args_type = &trp_bytes_type;
    options.args = birth;
    options.args_bytes = sizeof *birth;
    TRP_SIM_CHECK(sim,
                  trp_system_spawn(trp_sim_system(sim, node), behaviour, &options, &ref) == TRP_OK);
    return ref;
}

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    sim_laws_start(sim, node, arg);
}

void
sim_laws_start(trp_sim *sim, uint32_t node, struct sim_laws *laws)
{
    struct birth birth = { laws, node, ++laws->incarnations[node] };
    laws->sim = sim;
    (void)spawn_actor(sim, node, &counter_behaviour, "counter", &birth);
    (void)spawn_actor(sim, node, &teller_behaviour, "teller", &birth);
    trp_ref listener = spawn_actor(sim, node, &listener_behaviour, "listener", &birth);
    TRP_SIM_CHECK(sim, trp_cluster_subscribe(trp_sim_system(sim, node), listener,
                                             TRP_CLUSTER_MEMBER_EVENTS |
                                                 TRP_CLUSTER_REACHABILITY_EVENTS) == TRP_OK);
}

void
sim_laws_everybody_answers(trp_sim *sim, const char *name)
{
    for (uint32_t from = 0; from < trp_sim_nodes(sim); from++) {
        for (uint32_t to = 0; to < trp_sim_nodes(sim); to++) {
            char path[96];
            int64_t question = 0;
            trp_msg *answer = NULL;
            (void)snprintf(path, sizeof path, "%s/user/%s", trp_sim_address(sim, to), name);
            trp_err err = trp_system_ask_path(trp_sim_system(sim, from), path, &trp_i64_type,
                                              &question, sizeof question, ANSWER_MS, &answer);
            trp_msg_free(answer);
            TRP_SIM_CHECK(sim, err == TRP_OK); /* complete-law-A3 */
        }
    }
}

struct wanted {           /* of the program */
    struct sim_laws laws; /* first */
    uint32_t faults_ms;
};

static void
run_program(trp_sim *sim, void *arg)
{
    struct wanted *wanted = arg;
    trp_sim_pass(sim, 5000);
    trp_sim_faults(sim, wanted->faults_ms);
    trp_sim_calm(sim, CALM_MS);
    trp_sim_pass(sim, DIALS_MS); /* what is told to a gated one is a dead letter */
    sim_laws_everybody_answers(sim, "counter");
    trp_sim_note(sim, wanted->laws.received);
}

static void
trace_line(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line)
{
    fprintf(arg, "%10.4f node %u: %s: %s\n", (double)now_ms / 1e3, node, line->source, line->text);
}

void
sim_complete_trace(const trpi_sim_options *options, trp_sim_options *ret)
{
    ret->log = options->trace != NULL ? trace_line : NULL;
    ret->log_arg = options->trace;
}

trp_err
sim_complete_result(trp_err err, const trp_sim_result *result, trpi_sim_result *ret_result)
{
    memset(ret_result, 0, sizeof *ret_result);
    ret_result->hash = result->hash;
    ret_result->events = result->turns;
    ret_result->virtual_ms = result->virtual_ms;
    ret_result->failed = result->failed != 0;
    (void)snprintf(ret_result->failure, sizeof ret_result->failure, "%.*s",
                   TRPI_SIM_FAILURE_BYTES - 1, result->text);
    return err == TRP_EFAILED ? TRP_OK : err;
}

trp_err
sim_complete_run(const trpi_sim_options *options, trpi_sim_result *ret_result)
{
    struct wanted wanted = { .faults_ms = FAULTS_MS };
    trp_sim_options o = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    char replay[96];
    if (options->nodes > TRP_SIM_NODES_MAX || options->until_ms > UINT32_MAX) {
        return TRP_EINVAL;
    }
    wanted.faults_ms = options->until_ms != 0 ? (uint32_t)options->until_ms : FAULTS_MS;
    o.seed = options->seed;
    o.nodes = options->nodes;
    o.started = start_actors;
    (void)snprintf(replay, sizeof replay,
                   "troupe sim --scenario actors --nodes %u --until %ums --seed", options->nodes,
                   wanted.faults_ms);
    o.replay = replay;
    sim_complete_trace(options, &o);
    return sim_complete_result(trp_sim_run(run_program, &wanted, &o, &result), &result, ret_result);
}
