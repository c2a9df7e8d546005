/* singleton_test.c - singletons and their proxies on complete nodes, in virtual time: never two
 * handle messages at once, what is told is handled or is a dead letter, hand-over data arrives
 * (CONTRIB-01 to -09, and the scenarios of the singleton specs of cluster-tools).
 *
 * TROUPE_SIM_SEEDS=300 sets the number of seeds of the random ones. */
#include <stdlib.h>

#include <troupe/troupe.h>

#include "tests/sim/play.h"

enum { NODES = 5, NODES_MAX = 7 };

static trp_sim *present;
static trp_ref proxies[NODES_MAX];
static trp_ref managers[NODES_MAX];
static uint32_t nodes_count;
static int32_t alive[NODES_MAX];   /* instances, by node; as the actors themselves count */
static uint32_t newest[NODES_MAX]; /* instance of each node that runs one; 0: none */
static uint32_t started, handled, handed_on, host;
static uint64_t last[NODES_MAX];    /* of each sender: the last number that arrived, */
static uint32_t last_at[NODES_MAX]; /* and at which instance */
static uint32_t disordered, dead;
static int has_lease, lease_holder;
static uint32_t stop_after, stop_ms; /* behind so many messages the host stands still; 0: not */

/* ---- the singleton: it counts, and hands its count over -------------------------------------- */

#define WORK_JOB(F, S) F(S, u64, from) F(S, u64, number)
#define WORK_COUNT(F, S) F(S, u64, jobs)
#define WORK_END(F, S) F(S, u32, unused)
#define WORK_MESSAGES(M, P) M(P, job, WORK_JOB) M(P, count, WORK_COUNT) M(P, end, WORK_END)
TRP_PROTOCOL(work, WORK_MESSAGES)

struct worker {
    uint64_t jobs;
    uint32_t number; /* of this instance */
};

static trp_err
worker_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct worker *w = state;
    if (args != NULL && trp_msg_is(args, &work_count_type)) {
        w->jobs = ((const struct work_count *)trp_msg_payload(args))->jobs;
        handed_on++;
    }
    host = play_node_of(present, ctx);
    alive[host]++;
    w->number = newest[host] = ++started;
    return TRP_OK;
}

static void
worker_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    alive[play_node_of(present, ctx)]--;
    newest[play_node_of(present, ctx)] = 0;
}

/* Return whether a later one lives. After the crash of all that had removed this one's node the
 * earlier one may go on: they have started again, and have joined it. */
static bool
is_succeeded(const struct worker *w)
{
    for (uint32_t i = 0; i < nodes_count; i++) {
        if (trp_sim_system(present, i) != NULL && newest[i] > w->number) {
            return true;
        }
    }
    return false;
}

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct worker *w = state;
    if (trp_msg_is(msg, &work_job_type)) {
        const struct work_job *job = trp_msg_payload(msg);
        if (is_succeeded(w)) {
            trp_sim_fail(present, __FILE__, __LINE__, "two singletons handle messages at once");
        }
        if (w->number >= last_at[job->from]) { /* not an earlier one that goes on */
            disordered += job->number <= last[job->from];
            last[job->from] = job->number;
            last_at[job->from] = w->number;
        }
        handled++;
        if (stop_after > 0 && --stop_after == 0) {
            trp_sim_pause(present, play_node_of(present, ctx), stop_ms);
        }
        w->jobs++;
        struct work_count count = { w->jobs };
        if (!trp_ref_is_none(trp_sender(ctx))) {
            trp_reply(ctx, &work_count_type, &count, sizeof count);
        }
    } else if (trp_msg_is(msg, &work_end_type)) {
        struct work_count count = { w->jobs };
        trp_tell(ctx, trp_parent(ctx), &work_count_type, &count, sizeof count);
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .state_bytes = sizeof(struct worker),
                                      .receive = worker_receive,
                                      .pre_start = worker_start,
                                      .post_stop = worker_stop };

/* ---- a lease for the test that wants one ----------------------------------------------------- */

static char held_by[TRP_LEASE_OWNER_BYTES_MAX + 1];

static trp_err
lease_acquire(void *arg, const char *name, const char *owner, uint32_t timeout_ms, char *why,
              size_t why_bytes)
{
    (void)arg;
    (void)timeout_ms;
    UNIT_TEXT(name, "sim-singleton-work");
    if (lease_holder != 0 && strcmp(held_by, owner) != 0) {
        (void)snprintf(why, why_bytes, "%s has it", held_by);
        return TRP_EAGAIN;
    }
    lease_holder = 1;
    (void)snprintf(held_by, sizeof held_by, "%s", owner);
    return TRP_OK;
}
static void
lease_give_back(void *arg, const char *name, const char *owner)
{
    (void)arg;
    (void)name;
    if (strcmp(held_by, owner) == 0) {
        lease_holder = 0;
    }
}
static const trp_lease_ops lease_ops = { sizeof(trp_lease_ops), "test", lease_acquire,
                                         lease_give_back };

/* ---- nodes ----------------------------------------------------------------------------------- */

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    (void)arg;
    present = sim;
    nodes_count = trp_sim_nodes(sim);
    alive[node] = 0; /* of the process before, which is gone */
    newest[node] = 0;
    options.name = "work";
    options.behaviour = &worker;
    static const struct work_end end = { 0 };
    options.end_type = &work_end_type;
    options.end = &end;
    options.lease = has_lease ? &lease_ops : NULL;
    options.dispatcher = "one"; /* so that a stop comes between any two messages */
    proxy.name = "work";
    trp_dispatcher_options one = TRP_DISPATCHER_OPTIONS_INIT;
    one.kind = TRP_DISPATCHER_POOL;
    one.throughput = 1;
    UNIT_EQUAL(trp_dispatcher_register(trp_sim_system(sim, node), "one", &one), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&work_protocol), TRP_OK);
    UNIT_EQUAL(trp_singleton_start(trp_sim_system(sim, node), &options, &managers[node]), TRP_OK);
    UNIT_EQUAL(trp_singleton_proxy(trp_sim_system(sim, node), &proxy, &proxies[node]), TRP_OK);
}

static void
forget(void)
{
    memset(alive, 0, sizeof alive);
    memset(newest, 0, sizeof newest);
    memset(last, 0, sizeof last);
    memset(last_at, 0, sizeof last_at);
    started = handled = handed_on = disordered = dead = stop_after = 0;
    host = UINT32_MAX;
    lease_holder = 0;
}

static trp_sim_options
options_of(uint32_t nodes)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = nodes;
    options.started = start_actors;
    options.log = play_line;
    has_lease = 0;
    forget();
    return options;
}

static uint32_t
running(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes_count; i++) {
        count += trp_sim_system(present, i) != NULL && alive[i] > 0 ? (uint32_t)alive[i] : 0;
    }
    return count;
}

static int
one_runs(void *arg)
{
    (void)arg;
    return running() == 1;
}

static int
runs_at(void *arg)
{
    const uint32_t *node = arg;
    return running() == 1 && alive[*node] == 1;
}

/* Ask through the proxy of a node, until it answers. Returns the count. */
static uint64_t
ask(trp_sim *sim, uint32_t node, uint64_t number)
{
    struct work_job job = { node, number };
    trp_msg *reply = NULL;
    TRP_SIM_CHECK(sim, trp_system_ask(trp_sim_system(sim, node), proxies[node], &work_job_type,
                                      &job, sizeof job, 60000, &reply) == TRP_OK);
    uint64_t jobs = ((const struct work_count *)trp_msg_payload(reply))->jobs;
    trp_msg_free(reply);
    return jobs;
}

static void
work_job_tell(trp_sim *sim, uint32_t node, uint64_t number)
{
    struct work_job job = { node, number };
    trp_system_tell(trp_sim_system(sim, node), proxies[node], &work_job_type, &job, sizeof job);
}

/* ClusterSingletonManagerStartupSpec, ClusterSingletonManagerSpec: routing by proxies */
static void
starts_and_answers(trp_sim *sim, void *arg)
{
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    for (uint32_t i = 0; i < NODES; i++) {
        (void)ask(sim, i, 1);
    }
    TRP_SIM_CHECK(sim, handled == NODES && started == 1);
}

/* ClusterSingletonManagerLeaveSpec, -Leave2Spec: one by one, down to one node, with its data */
static void
leaves_in_steps(trp_sim *sim, void *arg)
{
    uint64_t jobs = 0;
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    for (uint32_t left = 0; left < NODES - 1; left++) {
        uint32_t at = host;
        uint32_t asker = at == NODES - 1 ? NODES - 2 : NODES - 1;
        while (trp_sim_system(sim, asker) == NULL || asker == at) {
            asker--;
        }
        jobs = ask(sim, asker, 10 + left);
        TRP_SIM_CHECK(sim, jobs == left + 1);
        uint64_t began_ms = trp_sim_now_ms(sim);
        trp_sim_leave(sim, at);
        play_await_gone(sim, at, 30000);
        alive[at] = 0;
        trp_sim_await(sim, one_runs, NULL, 5000);
        trp_sim_note(sim, trp_sim_now_ms(sim) - began_ms);
    }
    TRP_SIM_CHECK(sim, handed_on == NODES - 1 && disordered == 0);
}

/* ClusterSingletonManagerSpec: one crash, then two at once; -ChaosSpec: the three oldest at once */
static void
three_oldest_crash(trp_sim *sim, void *arg)
{
    trp_member members[NODES_MAX];
    size_t count = 0;
    uint32_t killed[3], next = 0;
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    TRP_SIM_CHECK(sim, trp_cluster_members(trp_sim_system(sim, 0), members, NODES_MAX, &count) ==
                           TRP_OK);
    for (uint32_t k = 0; k < 4; k++) { /* the four oldest, in order */
        size_t oldest = 0;
        for (size_t i = 1; i < count; i++) {
            oldest = trp_member_is_older_than(&members[i], &members[oldest]) ? i : oldest;
        }
        for (uint32_t i = 0; i < nodes_count; i++) {
            if (strcmp(trp_sim_address(sim, i), members[oldest].address) == 0) {
                next = i;
            }
        }
        if (k < 3) {
            killed[k] = next;
        }
        members[oldest] = members[--count];
    }
    for (uint32_t k = 0; k < 3; k++) {
        trp_sim_kill(sim, killed[k]);
        alive[killed[k]] = 0;
    }
    uint32_t before = started;
    trp_sim_await(sim, runs_at, &next, 60000);
    TRP_SIM_CHECK(sim, started == before + 1);
    (void)ask(sim, next, 1000);
}

/* ClusterSingletonManagerDownedSpec: the node of the instance is downed while it lives */
static void
host_is_downed(trp_sim *sim, void *arg)
{
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    uint32_t at = host, other = at == 0 ? 1 : 0;
    for (uint32_t i = 0; i < nodes_count; i++) {
        if (i != at) {
            trp_sim_cut(sim, at, i, 90000);
            trp_sim_cut(sim, i, at, 90000);
        }
    }
    for (uint64_t number = 1; trp_sim_system(sim, at) != NULL && number < 800; number++) {
        work_job_tell(sim, at, number); /* it may handle them as long as no other has started */
        trp_sim_pass(sim, 100);
    }
    play_await_gone(sim, at, 1000); /* it was stopped by its own strategy, */
    alive[at] = 0;
    trp_sim_await(sim, one_runs, NULL, 30000);
    TRP_SIM_CHECK(sim, host != at);
    (void)ask(sim, other, 1000); /* and the others have one */
}

/* ClusterSingletonManagerLeaseSpec */
static void
lease_is_needed(trp_sim *sim, void *arg)
{
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    TRP_SIM_CHECK(sim, lease_holder == 1);
    uint32_t at = host;
    trp_sim_leave(sim, at);
    play_await_gone(sim, at, 30000);
    alive[at] = 0;
    trp_sim_await(sim, one_runs, NULL, 10000);
    TRP_SIM_CHECK(sim, lease_holder == 1 && host != at);
}

/* Each node tells it some; number: the last that each has told. */
static void
jobs_tell(trp_sim *sim, uint64_t *number)
{
    for (uint32_t i = 0; i < nodes_count; i++) {
        for (uint32_t k = 0; k < 10 && trp_sim_system(sim, i) != NULL; k++) {
            work_job_tell(sim, i, ++number[i]);
        }
    }
}

/* The first seed is started again only while the others answer: else it makes a cluster of its own,
 * which is documented, and no fault (cluster/sim/complete_faults.c). So nothing else happens while
 * it leaves, or stands still and is removed. */
static void
alone_with(trp_sim *sim, uint32_t node)
{
    if (node == 0) {
        trp_sim_calm(sim, 180000);
    }
}

static void
node_leaves(trp_sim *sim, uint32_t node)
{
    alone_with(sim, node);
    trp_sim_leave(sim, node); /* nothing, if it does not run */
    if (node == 0) {
        play_await_gone(sim, node, 60000);
    }
    alone_with(sim, node);
}

/* The host leaves, alone or with another, or stands still between two of its messages, for so long
 * that another one starts. */
static void
change_host(trp_sim *sim, uint64_t *number)
{
    uint32_t other = (uint32_t)(trp_sim_random(sim) % nodes_count), at = host;
    uint32_t ms = 1000 + (uint32_t)(trp_sim_random(sim) % 60000);
    switch (trp_sim_random(sim) % 6) {
    case 0:
        node_leaves(sim, other);
        node_leaves(sim, host);
        break;
    case 1:
        node_leaves(sim, host);
        break;
    case 2:
        alone_with(sim, at);
        trp_sim_pause(sim, at, ms);
        trp_sim_pass(sim, at == 0 ? ms + 30000 : 0); /* and is removed */
        alone_with(sim, at);
        break;
    case 3:
        alone_with(sim, at);
        stop_after = 1 + (uint32_t)(trp_sim_random(sim) % 40);
        stop_ms = ms;
        jobs_tell(sim, number);
        trp_sim_pass(sim, ms + 2000);
        alone_with(sim, at);
        break;
    default:
        break;
    }
}

/* Messages in a crowd of faults: sent = handled + told, in order, never two. */
static void
jobs_under_faults(trp_sim *sim, void *arg)
{
    uint64_t number[NODES_MAX] = { 0 };
    (void)arg;
    trp_sim_await(sim, one_runs, NULL, 5000);
    for (uint32_t round = 0; round < 6; round++) {
        jobs_tell(sim, number);
        trp_sim_faults(sim, 8000);
        change_host(sim, number);
    }
    stop_after = 0;
    trp_sim_calm(sim, 180000);
    trp_sim_pass(sim, 10000); /* a node that stood still when it was told to leave does so now */
    trp_sim_calm(sim, 180000);
    trp_sim_await(sim, one_runs, NULL, 60000);
    for (uint32_t i = 0; i < nodes_count; i++) {
        (void)ask(sim, i, ++number[i] + 1000);
        number[i] += 1000;
    }
    TRP_SIM_CHECK(sim, disordered == 0);
}

/* CONTRIB-01 CONTRIB-09 CONTRIB-11 CONTRIB-48; ClusterSingletonManagerStartupSpec,
 * ClusterSingletonManagerSpec */
static void
it_starts_once_and_every_proxy_finds_it(void)
{
    trp_sim_options options = options_of(NODES);
    play(starts_and_answers, NULL, &options);
}

/* CONTRIB-02 CONTRIB-04 CONTRIB-05; ClusterSingletonManagerSpec,
 * ClusterSingletonManagerLeaveSpec, ClusterSingletonManagerLeave2Spec */
static void
leaving_hosts_hand_it_over_one_after_the_other_with_its_data(void)
{
    trp_sim_options options = options_of(NODES);
    play(leaves_in_steps, NULL, &options);
}

/* CONTRIB-06; ClusterSingletonManagerSpec, ClusterSingletonManagerChaosSpec */
static void
when_the_three_oldest_crash_at_once_the_next_starts_it_once(void)
{
    trp_sim_options options = options_of(NODES_MAX);
    play(three_oldest_crash, NULL, &options);
}

/* ClusterSingletonManagerDownedSpec */
static void
a_downed_host_stops_it_and_the_others_start_it(void)
{
    trp_sim_options options = options_of(NODES);
    play(host_is_downed, NULL, &options);
}

/* ClusterSingletonManagerLeaseSpec */
static void
with_a_lease_it_runs_where_the_lease_is(void)
{
    trp_sim_options options = options_of(3);
    has_lease = 1;
    play(lease_is_needed, NULL, &options);
}

static void
under_faults_never_two_run_and_messages_keep_their_order(void)
{
    play_seeds(jobs_under_faults, options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/singleton_test");
}

UNIT_BEGIN("singleton")
UNIT(it_starts_once_and_every_proxy_finds_it)
UNIT(leaving_hosts_hand_it_over_one_after_the_other_with_its_data)
UNIT(when_the_three_oldest_crash_at_once_the_next_starts_it_once)
UNIT(a_downed_host_stops_it_and_the_others_start_it)
UNIT(with_a_lease_it_runs_where_the_lease_is)
UNIT(under_faults_never_two_run_and_messages_keep_their_order)
UNIT_END
