/* handoff.c - three processes, 300 shards, 10,000 entities, 20,000 messages a second: the oldest
 * node leaves; then the oldest is killed. Default settings.
 *
 * Shape.  The parent starts itself three times as `bench handoff --child`; a child gets "start
 *         SEED", answers with its address when it is Up, and leaves on "leave". The parent's node
 *         joins last, and one actor of it tells all. All processes have one monotonic clock, so
 *         that what an entity says of when it handled a message tells its order: lost has no
 *         answer, doubled has two, reordered was handled before the one that was told before it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/cluster.h>
#include <troupe/node.h>
#include <troupe/sharding.h>
#include <troupe/singleton.h>

#include "tests/bench/bench.h"
#include "tests/bench/nodes.h"

enum {
    SHARDS = 300,
    ENTITIES = 10000,
    RATE = 20000,
    CALM_MS = 3000,   /* before a node goes */
    LEAVE_MS = 15000, /* afterwards: three times the limit of a leave */
    CRASH_MS = 60000, /* detector, stable-after, and as much again */
    MESSAGES_MAX = RATE * 120,
    ASKS_MAX = 200 * 120,
    NODES = 3
};

#define HANDOFF_MESSAGE(F, S) F(S, u64, number) F(S, u64, told_ns)
#define HANDOFF_ANSWER(F, S)                                                                       \
    F(S, u64, number) F(S, u64, handled_ns) F(S, u64, started_ns) F(S, u64, pid)
#define HANDOFF_EMPTY(F, S) F(S, u64, unused)
#define HANDOFF_MESSAGES(M, P)                                                                     \
    M(P, message, HANDOFF_MESSAGE)                                                                 \
    M(P, answer, HANDOFF_ANSWER)                                                                   \
    M(P, ask, HANDOFF_MESSAGE)                                                                     \
    M(P, asked, HANDOFF_MESSAGE)                                                                   \
    M(P, tick, HANDOFF_EMPTY)                                                                      \
    M(P, end, HANDOFF_EMPTY)
TRP_PROTOCOL(handoff, HANDOFF_MESSAGES)

/* ---- on each node: entities and the singleton ------------------------------------------------ */

typedef struct place {
    uint64_t started_ns;
} place;

static trp_err
place_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)args;
    ((place *)state)->started_ns = bench_now_ns();
    return TRP_OK;
}

static trp_err
place_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const handoff_message *m = trp_msg_payload(msg);
    if (!trp_msg_is(msg, &handoff_message_type)) {
        return TRP_EUNHANDLED;
    }
    handoff_answer answer = { m->number, bench_now_ns(), ((place *)state)->started_ns,
                              (uint64_t)getpid() };
    trp_reply(ctx, &handoff_answer_type, &answer, sizeof answer);
    return TRP_OK;
}

static const trp_behaviour place_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "place",
                                               .version = 1,
                                               .state_bytes = sizeof(place),
                                               .receive = place_receive,
                                               .pre_start = place_start };

static trp_err
single_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &handoff_end_type)) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (!trp_msg_is(msg, &handoff_ask_type)) {
        return TRP_EUNHANDLED;
    }
    trp_reply(ctx, &handoff_asked_type, trp_msg_payload(msg), sizeof(handoff_message));
    return TRP_OK;
}

static const trp_behaviour single_behaviour = TRP_BEHAVIOUR_INIT("single", char, single_receive);

static uint32_t
shard_of(const void *id, size_t id_bytes, uint32_t shards)
{
    char text[16] = "";
    memcpy(text, id, id_bytes < sizeof text ? id_bytes : sizeof text - 1);
    return (uint32_t)strtoul(text, NULL, 10) % shards;
}

static trp_node *
node_start(const char *seed)
{
    static const handoff_end end = { 0 };
    char why[512] = "";
    trp_sharding_options sharding = TRP_SHARDING_OPTIONS_INIT;
    trp_singleton_options single = TRP_SINGLETON_OPTIONS_INIT;
    trp_ref manager;

    bench_check(trp_protocol_register(&handoff_protocol), "trp_protocol_register");
    trp_node *node = bench_node_open(seed);
    single.name = "single";
    single.behaviour = &single_behaviour;
    single.end_type = &handoff_end_type;
    single.end = &end;
    single.end_bytes = sizeof end;
    bench_check(trp_singleton_start(trp_node_system(node), &single, &manager),
                "trp_singleton_start");
    sharding.type = "place";
    sharding.behaviour = &place_behaviour;
    sharding.shards = SHARDS;
    sharding.shard = shard_of;
    sharding.members_min = NODES - 1;
    sharding.buffer_bytes_max = 1u << 30;
    bench_check(trp_sharding_start(trp_node_system(node), &sharding, why, sizeof why), why);
    return node;
}

/* ---- child ----------------------------------------------------------------------------------- */

static int
run_child(void)
{
    char line[512];
    trp_node *node = NULL;
    trp_node_end end;
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "start ", 6) == 0) {
            node = node_start(line + 6);
            bench_members_wait(node, 1);
            (void)printf("%s\n", trp_node_address(node));
        } else {
            trp_node_leave(node);
            trp_err err = trp_node_await(node, LEAVE_MS, &end);
            trp_node_close(node);
            (void)printf("%s\n", err == TRP_OK && end == TRP_NODE_LEFT ? "left" : "not left");
            node = NULL;
        }
        (void)fflush(stdout);
    }
    return 0;
}

/* ---- parent: the teller ---------------------------------------------------------------------- */

typedef struct record {
    uint64_t told_ns, handled_ns;
    uint32_t answers, zero;
} record;

typedef struct place_seen {
    uint64_t started_ns; /* of the incarnation that answered last */
    uint64_t first_ns;   /* first handled after the mark */
    uint32_t pid;        /* where */
    uint32_t starts;     /* since the mark */
} place_seen;

static struct {
    record *records; /* of message i: entity i % ENTITIES */
    place_seen places[ENTITIES];
    uint64_t ask_told_ns[ASKS_MAX], ask_ns[ASKS_MAX];
    uint64_t begin_ns, unreachable_ns;
    _Atomic uint64_t told, answered, asked;
    _Atomic bool stopped;
    trp_ref proxy;
} run;

static trp_err
teller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    handoff_tick tick = { 0 };
    (void)state;
    (void)args;
    run.begin_ns = bench_now_ns();
    return trp_timer_repeat(ctx, 1, 1, 1, &handoff_tick_type, &tick, sizeof tick);
}

static void
on_tick(trp_ctx *ctx)
{
    uint64_t now_ns = bench_now_ns(), ms = (now_ns - run.begin_ns) / 1000000;
    uint64_t due = ms * RATE / 1000, told = run.told, asked = run.asked;
    uint64_t type = trp_entity_type("place");
    for (; told < due && told < MESSAGES_MAX && !run.stopped; told++) {
        char id[16];
        int bytes = snprintf(id, sizeof id, "%08u", (unsigned)(told % ENTITIES));
        trp_entity entity = trp_entity_of(type, id, (size_t)bytes);
        handoff_message message = { told, bench_now_ns() };
        run.records[told].told_ns = message.told_ns;
        trp_entity_tell(ctx, &entity, &handoff_message_type, &message, sizeof message);
    }
    run.told = told;
    if (asked < ASKS_MAX && asked < ms / 5 && !run.stopped) {
        handoff_ask ask = { asked, bench_now_ns() };
        run.ask_told_ns[asked] = ask.told_ns;
        trp_tell(ctx, run.proxy, &handoff_ask_type, &ask, sizeof ask);
        run.asked = asked + 1;
    }
}

static void
on_answer(const handoff_answer *answer)
{
    record *r = &run.records[answer->number];
    place_seen *seen = &run.places[answer->number % ENTITIES];
    r->answers++;
    r->handled_ns = answer->handled_ns;
    seen->first_ns = seen->first_ns == 0 ? answer->handled_ns : seen->first_ns;
    if (answer->started_ns > seen->started_ns) {
        seen->started_ns = answer->started_ns;
        seen->pid = (uint32_t)answer->pid;
        seen->starts++;
    }
    run.answered++;
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &handoff_tick_type)) {
        on_tick(ctx);
    } else if (trp_msg_is(msg, &handoff_answer_type)) {
        on_answer(trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &handoff_asked_type)) {
        run.ask_ns[((const handoff_message *)trp_msg_payload(msg))->number] = bench_now_ns();
    } else if (trp_msg_is(msg, &trp_member_unreachable_type) && run.unreachable_ns == 0) {
        run.unreachable_ns = bench_now_ns();
    }
    return TRP_OK;
}

static const trp_behaviour teller_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "teller",
                                                .version = 1,
                                                .state_bytes = 1,
                                                .receive = teller_receive,
                                                .pre_start = teller_start };

/* ---- parent: figures ------------------------------------------------------------------------- */

typedef struct mark {
    uint64_t ns, told, asked;
    place_seen places[ENTITIES]; /* as they were */
} mark;

/* Of what was told up to `until`: some has no answer, two answers, or was handled too early. */
static uint64_t
judge(const char *phase, const mark *from, uint64_t until, bool crash)
{
    uint64_t lost = 0, doubled = 0, reordered = 0;
    char name[32];
    for (uint64_t i = from->told; i < until; i++) {
        const record *r = &run.records[i], *before = i < ENTITIES ? r : r - ENTITIES;
        lost += r->answers == 0;
        doubled += r->answers > 1;
        reordered += r->answers > 0 && r->handled_ns < before->handled_ns;
    }
    (void)snprintf(name, sizeof name, "%s_lost", phase);
    bench_print("handoff", name, (double)lost, "messages");
    (void)snprintf(name, sizeof name, "%s_reordered", phase);
    bench_print("handoff", name, (double)reordered, "messages");
    (void)snprintf(name, sizeof name, "%s_doubled", phase);
    bench_print("handoff", name, (double)doubled, "messages");
    return reordered + doubled + (crash ? 0 : lost);
}

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* How long a message for a shard that moved waited at most, of all shards of the node `pid`. */
static void
stalls_print(const mark *from, uint64_t until, uint32_t pid)
{
    uint64_t stalls[SHARDS] = { 0 }, moved[SHARDS];
    uint32_t count = 0;
    for (uint64_t i = from->told; i < until; i++) {
        const record *r = &run.records[i];
        uint32_t shard = (uint32_t)(i % ENTITIES % SHARDS);
        if (r->answers > 0 && from->places[i % ENTITIES].pid == pid &&
            r->handled_ns - r->told_ns > stalls[shard]) {
            stalls[shard] = r->handled_ns - r->told_ns;
        }
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (stalls[i] > 0) {
            moved[count++] = stalls[i];
        }
    }
    bench_print("handoff", "moved", count, "shards");
    if (count > 0) {
        qsort(moved, count, sizeof moved[0], compare);
        bench_print("handoff", "stall_p50", (double)moved[count / 2] / 1e6, "ms");
        bench_print("handoff", "stall_p99", (double)moved[count * 99 / 100] / 1e6, "ms");
    }
}

static void
mark_set(mark *m)
{
    m->ns = bench_now_ns();
    m->told = run.told;
    m->asked = run.asked;
    memcpy(m->places, run.places, sizeof m->places);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        run.places[i].starts = 0;
        run.places[i].first_ns = 0;
    }
}

static void
singleton_print(const char *name, const mark *from, uint64_t until)
{
    uint64_t most_ns = 0;
    for (uint64_t i = from->asked; i < until; i++) { /* what came to a stopped one has no answer */
        uint64_t ns = run.ask_ns[i] == 0 ? 0 : run.ask_ns[i] - run.ask_told_ns[i];
        most_ns = ns > most_ns ? ns : most_ns;
    }
    bench_print("handoff", name, (double)most_ns / 1e6, "ms");
}

/* All that was told a while ago is answered, or waits no longer. */
static uint64_t
answers_wait(uint32_t wait_ms)
{
    uint64_t until;
    (void)usleep(wait_ms * 1000);
    until = run.told;
    (void)usleep(3000000);
    return until;
}

/* Do the entities that lived at `pid` live elsewhere, and since when? ret_since_ns: the latest. */
static bool
all_moved(const mark *from, uint32_t pid, uint64_t *ret_since_ns)
{
    *ret_since_ns = 0;
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const place_seen *now = &run.places[i];
        if (from->places[i].pid == pid) {
            if (now->pid == pid) {
                return false;
            }
            *ret_since_ns = now->started_ns > *ret_since_ns ? now->started_ns : *ret_since_ns;
        }
    }
    return true;
}

static uint32_t
others_started(const mark *from, uint32_t pid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTITIES; i++) {
        count += from->places[i].pid != pid && run.places[i].starts > 0;
    }
    return count;
}

/* ---- parent: the run ------------------------------------------------------------------------- */

static uint64_t
run_leave(bench_child *child, mark *m)
{
    char answer[64];
    uint64_t until, bad, begin_ns = bench_now_ns();
    mark_set(m);
    bench_child_say(child, "leave", "", answer, sizeof answer);
    bench_check(strcmp(answer, "left") == 0 ? TRP_OK : TRP_ETIMEDOUT, "the node does not leave");
    bench_print("handoff", "leave_total", (double)(bench_now_ns() - begin_ns) / 1e9, "s");
    until = answers_wait(3000);
    bad = judge("leave", m, until, false);
    stalls_print(m, until, (uint32_t)child->pid);
    bench_print("handoff", "leave_others_started", others_started(m, (uint32_t)child->pid),
                "entities");
    singleton_print("singleton_leave", m, run.asked - 200);
    return bad;
}

static uint64_t
run_crash(bench_child *child, mark *m)
{
    uint64_t since_ns = 0, bad;
    bool moved = false;
    mark_set(m);
    run.unreachable_ns = 0;
    (void)kill(child->pid, SIGKILL);
    for (uint32_t i = 0; i < CRASH_MS / 100 && !moved; i++) {
        (void)usleep(100000);
        moved = all_moved(m, (uint32_t)child->pid, &since_ns);
    }
    bad = judge("crash", m, answers_wait(1000), true) + !moved;
    bench_print("handoff", "crash_after_unreachable",
                moved ? ((double)since_ns - (double)run.unreachable_ns) / 1e9 : -1, "s");
    bench_print("handoff", "crash_others_started", others_started(m, (uint32_t)child->pid),
                "entities");
    return bad;
}

static int
run_handoff(const bench_options *options)
{
    static mark m;
    bench_child children[NODES];
    const char *const arguments[] = { "handoff", "--child", "1", NULL };
    trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    char address[512], other[512];
    uint64_t bad;
    trp_node *node;

    if (bench_option_value(options, "--child") != NULL) {
        return run_child();
    }
    for (uint32_t i = 0; i < NODES; i++) { /* before any thread of ours exists */
        bench_child_start(&children[i], arguments);
    }
    run.records = calloc(MESSAGES_MAX, sizeof *run.records);
    bench_check(run.records == NULL ? TRP_ENOMEM : TRP_OK, "calloc");
    bench_child_say(&children[0], "start ", "self", address, sizeof address);
    bench_child_say(&children[1], "start ", address, other, sizeof other);
    node = node_start(address);
    bench_members_wait(node, NODES);
    proxy.name = "single";
    bench_check(trp_singleton_proxy(trp_node_system(node), &proxy, &run.proxy),
                "trp_singleton_proxy");
    trp_ref teller = bench_spawn(trp_node_system(node), &teller_behaviour);
    bench_check(trp_cluster_subscribe(trp_node_system(node), teller, TRP_CLUSTER_UNREACHABLE),
                "trp_cluster_subscribe");
    (void)usleep(CALM_MS * 1000);
    bad = run_leave(&children[0], &m);
    bench_child_say(&children[2], "start ", trp_node_address(node), address, sizeof address);
    bench_members_wait(node, NODES);
    (void)usleep(CALM_MS * 1000);
    bad += run_crash(&children[1], &m);
    run.stopped = true;
    trp_node_close(node);
    (void)kill(children[2].pid, SIGKILL);
    for (uint32_t i = 0; i < NODES; i++) {
        bench_child_end(&children[i]);
    }
    free(run.records);
    return bad == 0 ? 0 : 1;
}

const bench_workload bench_handoff[] = {
    { "handoff", "3 processes, 300 shards, 10,000 entities, 20,000 messages/s: leave, kill -9",
      run_handoff },
    { NULL, NULL, NULL },
};
