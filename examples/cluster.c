/* cluster.c - a program that is a member: it sees members come and go, and gives work to workers.
 *
 *     cc cluster.c $(pkg-config --cflags --libs troupe) -o cluster
 *     ./cluster remote.port=2552 cluster.seed-nodes=self cluster.roles=worker
 *     seed=cluster.seed-nodes=troupe.tcp://demo@127.0.0.1:2552
 *     ./cluster remote.port=0 $seed cluster.roles=worker
 *     troupe members
 *     troupe ask /user/manager 7     prints: 49, by troupe.tcp://demo@127.0.0.1:... (a worker)
 *     troupe leave                   the program ends when its membership has ended
 *
 * Every argument is a key of the configuration. Members with the role "worker" have an actor
 * /user/worker; the manager finds them by their role as they come Up, and takes turns.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/cluster.h>
#include <troupe/node.h>
#include <troupe/troupe.h>

#define WORKERS_MAX 64
#define SETTINGS_MAX 64

#define WORK_SQUARE(F, S) F(S, i64, number)
#define WORK_RESULT(F, S) F(S, i64, number) F(S, text128, by)
#define WORK_MESSAGES(M, P) M(P, square, WORK_SQUARE) M(P, result, WORK_RESULT)
TRP_PROTOCOL(work, WORK_MESSAGES)

/* ---- worker: squares numbers -------------------------------------------- */

static char own_address[TRP_ADDRESS_BYTES];

typedef struct worker {
    uint64_t done;
} worker;

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    worker *w = state;
    if (trp_msg_is(msg, &work_square_type)) {
        const work_square *square = trp_msg_payload(msg);
        work_result result = { square->number * square->number, "" };
        snprintf(result.by, sizeof result.by, "%.127s", own_address);
        trp_reply(ctx, &work_result_type, &result, sizeof result);
        w->done++;
    }
    return TRP_OK;
}

/* ---- manager: knows the workers by the events of the cluster ------------ */

typedef struct manager {
    size_t count, next;
    trp_member members[WORKERS_MAX];
} manager;

typedef struct asker { /* waits for an answer */
    trp_ref ref;
} asker;

static void
worker_forget(manager *m, const trp_member *member)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->members[i].uid == member->uid) {
            m->members[i] = m->members[--m->count];
            return;
        }
    }
}

static void
worker_note(manager *m, const trp_member *member)
{
    worker_forget(m, member);
    if (member->status == TRP_MEMBER_UP && trp_member_has_role(member, "worker") &&
        m->count < WORKERS_MAX) {
        m->members[m->count++] = *member;
    }
}

/* Pass the answer of a worker on to the sender that asked the manager. */
static trp_err
worker_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    asker *a = arg;
    char text[256];
    (void)state;
    if (err == TRP_OK && trp_msg_is(reply, &work_result_type)) {
        const work_result *result = trp_msg_payload(reply);
        snprintf(text, sizeof text, "%lld, by %s", (long long)result->number, result->by);
        trp_tell_text(ctx, a->ref, text);
    } else {
        trp_status_failure failure = { (int32_t)(err == TRP_OK ? TRP_EPROTO : err),
                                       "the worker did not answer" };
        trp_tell(ctx, a->ref, &trp_status_failure_type, &failure, sizeof failure);
    }
    trp_alloc_free(ctx, a);
    return TRP_OK;
}

typedef struct order {
    asker *from;
    int64_t number;
} order;

static trp_err
worker_found(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    order *o = arg;
    asker *from = o->from;
    work_square square = { o->number };
    trp_alloc_free(ctx, o);
    if (err == TRP_OK) {
        const trp_actor_identity *identity = trp_msg_payload(reply);
        err = trp_ask(ctx, identity->ref, &work_square_type, &square, sizeof square, 2000,
                      worker_answered, from);
    }
    return err == TRP_OK ? TRP_OK : worker_answered(ctx, state, from, err, NULL);
}

static trp_err
manager_order(trp_ctx *ctx, manager *m, const trp_msg *msg)
{
    char text[32] = "", path[TRP_ADDRESS_BYTES + 16];
    size_t bytes = trp_msg_bytes(msg) < sizeof text - 1 ? trp_msg_bytes(msg) : sizeof text - 1;
    if (m->count == 0) {
        trp_reply_failure(ctx, TRP_EAGAIN, "there is no worker");
        return TRP_OK;
    }
    memcpy(text, trp_msg_payload(msg), bytes);
    order *o = trp_alloc(ctx, sizeof *o);
    o->from = trp_alloc(ctx, sizeof *o->from);
    o->from->ref = trp_sender(ctx);
    o->number = strtoll(text, NULL, 10);
    snprintf(path, sizeof path, "%s/user/worker", m->members[m->next++ % m->count].address);
    return trp_resolve(ctx, path, 2000, worker_found, o);
}

static trp_err
manager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    manager *m = state;
    const trp_member_event *event = trp_msg_payload(msg);
    switch (trp_msg_tag(msg)) {
    case trp_cluster_state_tag: {
        const trp_current_cluster_state *present = trp_msg_payload(msg);
        for (uint32_t i = 0; i < present->members_count; i++) {
            worker_note(m, &trp_current_cluster_state_members(present)[i]);
        }
        return TRP_OK;
    }
    case trp_member_up_tag:
    case trp_member_reachable_tag:
        worker_note(m, &event->member);
        trp_log(ctx, TRP_LOG_INFO, "%s %s, %zu workers", event->member.address,
                trp_msg_tag(msg) == trp_member_up_tag ? "is up" : "is reachable again", m->count);
        return TRP_OK;
    case trp_member_left_tag:
    case trp_member_removed_tag:
    case trp_member_unreachable_tag:
        worker_forget(m, &event->member);
        trp_log(ctx, TRP_LOG_INFO, "%s is gone, %zu workers", event->member.address, m->count);
        return TRP_OK;
    case trp_json_tag:
    case trp_string_tag:
        return manager_order(ctx, m, msg);
    default:
        return TRP_OK;
    }
}

static trp_err
manager_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_cluster_subscribe(trp_ctx_system(ctx), trp_self(ctx),
                                 TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS);
}

/* ---- the program -------------------------------------------------------- */

static trp_err
actors_start(trp_node *node)
{
    static const trp_behaviour worker_behaviour =
        TRP_BEHAVIOUR_INIT("worker", worker, worker_receive);
    static trp_behaviour manager_behaviour =
        TRP_BEHAVIOUR_INIT("manager", manager, manager_receive);
    trp_system *system = trp_node_system(node);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    manager_behaviour.pre_start = manager_start;
    snprintf(own_address, sizeof own_address, "%s", trp_node_address(node));
    trp_err err = trp_protocol_register(&work_protocol);
    options.name = "worker";
    err = err == TRP_OK ? trp_system_spawn(system, &worker_behaviour, &options, &ref) : err;
    options.name = "manager";
    return err == TRP_OK ? trp_system_spawn(system, &manager_behaviour, &options, &ref) : err;
}

int
main(int argc, char **argv)
{
    const char *settings[SETTINGS_MAX + 2] = { "cluster.control-socket=on" };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error;
    trp_node *node = NULL;
    trp_node_end end;
    for (int i = 1; i < argc && i < SETTINGS_MAX; i++) {
        settings[i] = argv[i];
    }
    options.settings = settings;
    if (trp_node_open(&options, &node, &error) != TRP_OK) {
        fprintf(stderr, "cluster: %s\n", error.text);
        return 1;
    }
    trp_err err = actors_start(node);
    if (err == TRP_OK) {
        printf("%s\n", trp_node_address(node));
        fflush(stdout);
        err = trp_node_await(node, 0, &end); /* until `troupe leave`, or it is downed */
    }
    if (err == TRP_OK) {
        printf("%s\n", end == TRP_NODE_LEFT ? "left the cluster" : "was taken out of the cluster");
    }
    trp_node_close(node);
    return err == TRP_OK && end == TRP_NODE_LEFT ? 0 : 1;
}
