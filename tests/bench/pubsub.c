/* pubsub.c - one publication to three nodes with 100,000 subscribers each, beside a local fan-out
 * to as many; then 10,000 topics: until when all nodes know them, and what they cost afterwards.
 *
 * Shape.  A child is `bench pubsub --child 1`: three are nodes with subscribers, one is a system
 *         with as many actors as those together, which trp_tell_each() tells. The parent's node has
 *         no subscribers and publishes. Both ways take turns; a time is from the call to the
 *         last receipt, by the clock that all processes share. A child looks at its count each
 *         LOOK_US. Frames are counted where they arrive, the registry's bytes where they are sent.
 *         --count N: so many subscribers of a node and so many topics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/inbox.h>
#include <troupe/pubsub.h>

#include "cluster/node/node_private.h"
#include "tests/bench/nodes.h"

enum {
    NODES = 3,
    SUBSCRIBERS = 100000, /* of each node */
    ROUNDS = 9,
    TOPICS = 10000,
    IDLE_S = 10,
    CELLS = 64,
    LOOK_US = 100,
    LOOKS = 600000,
    PEERS = 8
};
#define TOPIC "news"
#define ACK_MS 60000u

#define NEWS_NUMBER(F, S) F(S, u64, number)
#define NEWS_MESSAGES(M, P) M(P, flash, NEWS_NUMBER) M(P, go, NEWS_NUMBER)
TRP_PROTOCOL(news, NEWS_MESSAGES)

/* ---- receivers ------------------------------------------------------------------------------- */

/* Each cell has a cache line, so that workers do not contend for one. */
static struct {
    _Atomic uint64_t count;
    char fill[56];
} handled[CELLS];

static uint64_t
handled_sum(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < CELLS; i++) {
        sum += atomic_load_explicit(&handled[i].count, memory_order_relaxed);
    }
    return sum;
}

static trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &news_flash_type)) { /* else an acknowledgement */
        atomic_fetch_add_explicit(&handled[trp_self(ctx).slot % CELLS].count, 1,
                                  memory_order_relaxed);
    }
    return TRP_OK;
}

static const trp_behaviour receiver = TRP_BEHAVIOUR_INIT("receiver", char, receiver_receive);

static trp_ref *
receivers_spawn(trp_system *system, uint32_t count)
{
    trp_ref *refs = malloc(count * sizeof *refs);
    bench_check(refs == NULL ? TRP_ENOMEM : TRP_OK, "receivers");
    for (uint32_t i = 0; i < count; i++) {
        refs[i] = bench_spawn(system, &receiver);
    }
    return refs;
}

/* ---- the local fan-out ----------------------------------------------------------------------- */

static struct {
    trp_ref *refs;
    uint32_t count;
} local;

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const news_flash flash = { 1 };
    (void)state;
    (void)msg;
    return trp_tell_each(ctx, local.refs, local.count, &news_flash_type, &flash, sizeof flash,
                         NULL);
}

static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", char, teller_receive);

/* ---- child ----------------------------------------------------------------------------------- */

static trp_node *
node_open(const char *seed, trp_mediator **ret_mediator)
{
    trp_node *node = bench_node_open(seed);
    bench_check(trp_mediator_of(trp_node_system(node), NULL, ret_mediator), "trp_mediator_of");
    return node;
}

/* Subscribe to `topics` topics; the last acknowledgement comes when all nodes know of it. */
static void
topics_subscribe(trp_system *system, trp_mediator *mediator, trp_ref subscriber, const char *topic,
                 uint32_t topics)
{
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    trp_inbox *inbox = NULL;
    char name[32];
    bench_check(trp_inbox_open(system, NULL, &inbox), "trp_inbox_open");
    for (uint32_t i = 0; i < topics; i++) {
        trp_msg *ack = NULL;
        bool last = i + 1 == topics;
        (void)snprintf(name, sizeof name, topics == 1 ? "%s" : "%s/%u", topic, i);
        options.flags = last ? TRP_SUBSCRIBE_ACK_EVERYWHERE : 0;
        options.answer_to = trp_inbox_ref(inbox);
        bench_check(trp_mediator_subscribe(mediator, name, subscriber, last ? &options : NULL),
                    "subscribe");
        if (last) {
            bench_check(trp_inbox_receive(inbox, ACK_MS, &ack, NULL), "acknowledgement");
            trp_msg_free(ack);
        }
    }
    trp_inbox_close(inbox);
}

static void
receivers_subscribe(trp_system *system, trp_mediator *mediator, uint32_t count)
{
    trp_ref *refs = receivers_spawn(system, count);
    for (uint32_t i = 0; i + 1 < count; i++) {
        bench_check(trp_mediator_subscribe(mediator, TOPIC, refs[i], NULL), "subscribe");
    }
    topics_subscribe(system, mediator, refs[count - 1], TOPIC, 1);
    free(refs);
}

/* Wait until fn() is `least`; returns the time of that. */
static uint64_t
time_of(uint64_t (*fn)(void *arg), void *arg, uint64_t least)
{
    uint32_t looks = 0;
    for (; looks < LOOKS && fn(arg) < least; looks++) {
        (void)usleep(LOOK_US);
    }
    bench_check(looks == LOOKS ? TRP_ETIMEDOUT : TRP_OK, "something was lost");
    return bench_now_ns();
}

static uint64_t
received(void *arg)
{
    (void)arg;
    return handled_sum();
}

static uint64_t
topics_seen(void *mediator)
{
    return trp_mediator_topics_count(mediator);
}

static void
status_add(void *arg, trp_mediator *mediator, const trpi_pubsub_status *status)
{
    (void)mediator;
    *(uint64_t *)arg += status->bytes_sent;
}

/* Messages that came from other nodes, and bytes sent to them: by the registry, and by all. */
static void
traffic_print(trp_node *node)
{
    trpi_peer_info peers[PEERS];
    size_t count = 0;
    uint64_t in = 0, registry = 0, out = 0;
    trpi_remote_peers(node->remote, peers, PEERS, &count);
    for (size_t i = 0; i < count && i < PEERS; i++) {
        in += peers[i].messages_in;
        out += peers[i].bytes_out;
    }
    trpi_pubsub_each(trp_node_system(node), status_add, &registry);
    (void)printf("%llu %llu %llu\n", (unsigned long long)in, (unsigned long long)registry,
                 (unsigned long long)out);
}

typedef struct child_state {
    trp_node *node; /* NULL: the local fan-out */
    trp_system *system;
    trp_mediator *mediator;
    trp_ref teller;
} child_state;

/* The local fan-out: tell all once; returns how long it took. */
static uint64_t
local_tell(const child_state *child)
{
    const news_go go = { 0 };
    uint64_t goal = handled_sum() + local.count, begin_ns = bench_now_ns();
    trp_system_tell(child->system, child->teller, &news_go_type, &go, sizeof go);
    return time_of(received, NULL, goal) - begin_ns;
}

/* Do what a line asks that is answered with a number. */
static uint64_t
child_do(child_state *child, const bench_options *options, const char *line)
{
    const char *behind = strchr(line, ' ');
    uint64_t number = behind == NULL ? 0 : strtoull(behind, NULL, 10), begin_ns = bench_now_ns();
    if (strncmp(line, "local ", 6) == 0) {
        child->system = bench_system(options);
        local.refs = receivers_spawn(child->system, (uint32_t)number);
        local.count = (uint32_t)number;
        child->teller = bench_spawn(child->system, &teller);
    } else if (strcmp(line, "tell") == 0) {
        return local_tell(child);
    } else if (strncmp(line, "host ", 5) == 0) {
        receivers_subscribe(child->system, child->mediator, (uint32_t)number);
    } else if (strncmp(line, "wait ", 5) == 0) {
        return time_of(received, NULL, number);
    } else if (strncmp(line, "topics ", 7) == 0) {
        topics_subscribe(child->system, child->mediator, bench_spawn(child->system, &receiver),
                         "topic", (uint32_t)number);
        return begin_ns;
    } else if (strncmp(line, "seen ", 5) == 0) {
        return time_of(topics_seen, child->mediator, number);
    }
    return 0;
}

/* A node, or the system of the local fan-out, until its input ends. */
static int
run_child(const bench_options *options)
{
    char line[512];
    child_state child = { .node = NULL };
    bench_check(trp_protocol_register(&news_protocol), "trp_protocol_register");
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "start ", 6) == 0) {
            child.node = node_open(line + 6, &child.mediator);
            child.system = trp_node_system(child.node);
            bench_members_wait(child.node, 1);
            (void)printf("%s\n", trp_node_address(child.node));
        } else if (strcmp(line, "traffic") == 0) {
            traffic_print(child.node);
        } else {
            (void)printf("%llu\n", (unsigned long long)child_do(&child, options, line));
        }
        (void)fflush(stdout);
    }
    if (child.node != NULL) {
        trp_node_close(child.node);
    } else {
        bench_system_end(child.system);
    }
    return 0;
}

/* ---- parent ---------------------------------------------------------------------------------- */

typedef struct scene {
    bench_child nodes[NODES], local;
    trp_node *node;
    trp_mediator *mediator;
    uint64_t subscribers, topics, idle_s;
} scene;

/* Ask all nodes at once, or `first` and those behind it; do not wait. */
static void
nodes_ask(scene *s, uint32_t first, const char *command, uint64_t number)
{
    for (uint32_t i = first; i < NODES; i++) {
        (void)fprintf(s->nodes[i].in, "%s%llu\n", command, (unsigned long long)number);
        (void)fflush(s->nodes[i].in);
    }
}

static uint64_t
child_answer(bench_child *child)
{
    char line[64];
    if (fgets(line, sizeof line, child->out) == NULL) {
        bench_check(TRP_EIO, "a child ended");
    }
    return strtoull(line, NULL, 10);
}

static uint64_t
nodes_answer(scene *s, uint32_t first) /* the greatest */
{
    uint64_t greatest = 0;
    for (uint32_t i = first; i < NODES; i++) {
        uint64_t answer = child_answer(&s->nodes[i]);
        greatest = answer > greatest ? answer : greatest;
    }
    return greatest;
}

/* Numbers of traffic_print(): messages that came (sum), bytes of the registry and of all (greatest
 * of a node). */
typedef struct traffic {
    uint64_t in, registry[NODES], out[NODES];
} traffic;

static traffic
nodes_traffic(scene *s)
{
    traffic t = { 0 };
    char line[128], *end;
    for (uint32_t i = 0; i < NODES; i++) {
        bench_child_say(&s->nodes[i], "traffic", "", line, sizeof line);
        t.in += strtoull(line, &end, 10);
        t.registry[i] = strtoull(end, &end, 10);
        t.out[i] = strtoull(end, &end, 10);
    }
    return t;
}

static uint64_t
publish_round(scene *s, uint64_t goal)
{
    const news_flash flash = { 1 };
    const trp_ref nobody = TRP_REF_NONE;
    nodes_ask(s, 0, "wait ", goal);
    uint64_t begin_ns = bench_now_ns();
    bench_check(
        trp_mediator_publish(s->mediator, nobody, TOPIC, &news_flash_type, &flash, sizeof flash),
        "trp_mediator_publish");
    return nodes_answer(s, 0) - begin_ns;
}

static void
fanout_run(scene *s)
{
    double here[ROUNDS], there[ROUNDS], ratio[ROUNDS];
    double receivers = (double)(s->subscribers * NODES);
    char answer[64];
    (void)publish_round(s, s->subscribers);
    bench_child_say(&s->local, "tell", "", answer, sizeof answer);
    uint64_t frames = nodes_traffic(s).in;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        there[i] = receivers * 1e9 / (double)publish_round(s, (i + 2) * s->subscribers);
        bench_child_say(&s->local, "tell", "", answer, sizeof answer);
        here[i] = receivers * 1e9 / strtod(answer, NULL);
        ratio[i] = there[i] / here[i];
    }
    frames = nodes_traffic(s).in - frames;
    bench_print("pubsub", "frames_per_node", (double)frames / (NODES * ROUNDS), "frames");
    bench_print("pubsub", "local_rate", bench_median(here, ROUNDS), "messages/s");
    bench_print("pubsub", "publish_rate", bench_median(there, ROUNDS), "messages/s");
    bench_print("pubsub", "fanout_ratio", bench_median(ratio, ROUNDS), "times");
}

static double
most_per_s(const uint64_t *before, const uint64_t *after, uint64_t seconds)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        most = after[i] - before[i] > most ? after[i] - before[i] : most;
    }
    return (double)most / (double)seconds;
}

static void
topics_run(scene *s)
{
    uint64_t all = s->topics + 1; /* and that of the publications */
    nodes_ask(s, 1, "seen ", all);
    (void)fprintf(s->nodes[0].in, "topics %llu\n", (unsigned long long)s->topics);
    (void)fflush(s->nodes[0].in);
    uint64_t here_ns = time_of(topics_seen, s->mediator, all), there_ns = nodes_answer(s, 1);
    uint64_t begin_ns = child_answer(&s->nodes[0]);
    uint64_t end_ns = here_ns > there_ns ? here_ns : there_ns;
    bench_print("pubsub", "topics_seen", (double)(end_ns - begin_ns) / 1e9, "s");
    (void)sleep(1); /* the last acknowledgements */
    traffic before = nodes_traffic(s);
    (void)sleep((unsigned)s->idle_s);
    traffic after = nodes_traffic(s);
    bench_print("pubsub", "registry_idle_bytes_per_s",
                most_per_s(before.registry, after.registry, s->idle_s), "bytes/s");
    bench_print("pubsub", "node_idle_bytes_per_s", most_per_s(before.out, after.out, s->idle_s),
                "bytes/s");
}

static void
scene_begin(scene *s, const bench_options *options)
{
    const char *const arguments[] = { "pubsub", "--child", "1", NULL };
    char seed[512], address[512], number[32];
    for (uint32_t i = 0; i < NODES; i++) { /* before any thread of ours exists */
        bench_child_start(&s->nodes[i], arguments);
    }
    bench_child_start(&s->local, arguments);
    for (uint32_t i = 0; i < NODES; i++) {
        bench_child_say(&s->nodes[i], "start ", i == 0 ? "self" : seed, address, sizeof address);
        if (i == 0) {
            memcpy(seed, address, sizeof seed);
        }
    }
    bench_check(trp_protocol_register(&news_protocol), "trp_protocol_register");
    s->node = node_open(seed, &s->mediator);
    bench_members_wait(s->node, NODES + 1);
    s->subscribers = options->count != 0 ? options->count : SUBSCRIBERS;
    s->topics = options->count != 0 ? options->count : TOPICS;
    s->idle_s = options->count != 0 ? 1 : IDLE_S;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)s->subscribers * NODES);
    bench_child_say(&s->local, "local ", number, address, sizeof address);
    nodes_ask(s, 0, "host ", s->subscribers);
    (void)nodes_answer(s, 0);
}

static int
run_pubsub(const bench_options *options)
{
    static scene s;
    if (bench_option_value(options, "--child") != NULL) {
        return run_child(options);
    }
    scene_begin(&s, options);
    fanout_run(&s);
    topics_run(&s);
    trp_node_close(s.node);
    for (uint32_t i = NODES; i-- > 0;) {
        bench_child_end(&s.nodes[i]);
    }
    bench_child_end(&s.local);
    return 0;
}

const bench_workload bench_pubsub[] = {
    { "pubsub", "one publication to three nodes beside a local fan-out; 10,000 topics",
      run_pubsub },
    { NULL, NULL, NULL }
};
