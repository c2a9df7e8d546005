/* entity_nodes.c - entities of other nodes: what telling them costs beside refs, and what a million
 *                  of them takes while nothing happens.
 *
 * Shape.  A child is `bench entity --child 1`. It gets "start SEED" and answers with its address
 *         when its node is Up; "tell FROM TO" tells the entities of these numbers once; "handled"
 *         answers how many messages its entities have had, "rss" its memory when that is steady.
 *         idle:   three children, which host all entities; the parent only counts.
 *         remote: one child hosts, and the parent's node tells. Refs and names take turns, and lead
 *                 to the same actors; `--way ref|name`: one of them, once (instructions.sh). An
 *                 acknowledgement comes for each ACK messages, and WINDOW of them are on their way
 *                 at most, so that no queue is full and nothing is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/sharding.h>

#include "tests/bench/entity.h"
#include "tests/bench/nodes.h"

enum {
    IDLE = 1000000,
    IDLE_STEP = 20000, /* told before the next are */
    IDLE_NODES = 3,
    BYTES = 100, /* of a message to another node */
    ACK = 4096,
    WINDOW = 8 * ACK,
    TELLS = 500 * ACK,
    BURST = 1000,
    WAIT_LOOKS = 12000 /* of 5 ms */
};

#define PLACE_WHO(F, S) F(S, u64, number)
#define PLACE_ACK(F, S) F(S, u64, unused)
#define PLACE_GO(F, S) F(S, u64, tells) F(S, u32, by_name)
#define PLACE_MESSAGES(M, P)                                                                       \
    M(P, who, PLACE_WHO) M(P, here, PLACE_WHO) M(P, ack, PLACE_ACK) M(P, go, PLACE_GO)
TRP_PROTOCOL(place, PLACE_MESSAGES)

static void
id_write(uint64_t number, char id[ENTITY_ID_BYTES + 1])
{
    (void)snprintf(id, ENTITY_ID_BYTES + 1, "%016llx",
                   (unsigned long long)(number * 0x9e3779b97f4a7c15u));
}

/* ---- entities -------------------------------------------------------------------------------- */

static _Atomic uint64_t handled; /* by all entities of this process */

static trp_err
place_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const place_ack ack = { 0 };
    ++*(uint64_t *)state;
    if (trp_msg_is(msg, &place_who_type)) {
        trp_reply(ctx, &place_here_type, trp_msg_payload(msg), sizeof(place_who));
    } else if (trp_ref_is_none(trp_sender(ctx))) {
        handled++;
    } else if (++handled % ACK == 0) {
        trp_reply(ctx, &place_ack_type, &ack, sizeof ack);
    }
    return TRP_OK;
}

static const trp_behaviour place_behaviour = TRP_BEHAVIOUR_INIT("place", uint64_t, place_receive);

/* behaviour NULL: none of the entities lives here. */
static trp_node *
node_start(const char *seed, const trp_behaviour *behaviour)
{
    trp_sharding_options sharding = TRP_SHARDING_OPTIONS_INIT;
    char why[512] = "";
    bench_check(trp_protocol_register(&place_protocol), "trp_protocol_register");
    trp_node *node = bench_node_open(seed);
    sharding.type = "place";
    sharding.behaviour = behaviour;
    sharding.passivate_after_ms = TRP_OFF;
    sharding.buffer_bytes_max = 1u << 30;
    bench_check(trp_sharding_start(trp_node_system(node), &sharding, why, sizeof why), why);
    return node;
}

/* ---- child ----------------------------------------------------------------------------------- */

static void
child_tell(trp_node *node, const char *range)
{
    char *end = NULL, id[ENTITY_ID_BYTES + 1];
    uint64_t type = trp_entity_type("place"), from = strtoull(range, &end, 10);
    uint64_t to = strtoull(end, NULL, 10);
    for (uint64_t i = from; i < to; i++) {
        id_write(i, id);
        trp_entity entity = trp_entity_of(type, id, ENTITY_ID_BYTES);
        bench_check(trp_system_entity_tell(trp_node_system(node), &entity, &trp_bytes_type, "", 0),
                    "trp_system_entity_tell");
    }
}

int
bench_entity_child(void)
{
    char line[512];
    trp_node *node = NULL;
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "start ", 6) == 0) {
            node = node_start(line + 6, &place_behaviour);
            bench_members_wait(node, 1);
            (void)printf("%s\n", trp_node_address(node));
        } else if (strncmp(line, "tell ", 5) == 0) {
            child_tell(node, line + 5);
            (void)printf("told\n");
        } else {
            bool is_rss = strcmp(line, "rss") == 0;
            (void)printf("%llu\n",
                         (unsigned long long)(is_rss ? (uint64_t)bench_rss_idle_bytes() : handled));
        }
        (void)fflush(stdout);
    }
    if (node != NULL) {
        trp_node_close(node);
    }
    return 0;
}

static uint64_t
child_number(bench_child *child, const char *command)
{
    char answer[64];
    bench_child_say(child, command, "", answer, sizeof answer);
    return strtoull(answer, NULL, 10);
}

/* ---- idle ones ------------------------------------------------------------------------------- */

static uint64_t
children_number(bench_child *children, const char *command)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < IDLE_NODES; i++) {
        sum += child_number(&children[i], command);
    }
    return sum;
}

/* Each of them is told once, and answers to nobody. */
static void
idle_start(bench_child *children, uint64_t count)
{
    char range[64], answer[64];
    for (uint64_t from = 0; from < count; from += IDLE_STEP) {
        uint64_t to = from + IDLE_STEP < count ? from + IDLE_STEP : count;
        (void)snprintf(range, sizeof range, "%llu %llu", (unsigned long long)from,
                       (unsigned long long)to);
        bench_child_say(&children[0], "tell ", range, answer, sizeof answer);
        for (uint32_t i = 0; i < WAIT_LOOKS && children_number(children, "handled") < to; i++) {
            (void)usleep(5000);
        }
        bench_check(children_number(children, "handled") < to ? TRP_ETIMEDOUT : TRP_OK,
                    "entities do not start");
    }
}

void
bench_entity_idle(const bench_options *options)
{
    uint64_t count = options->count != 0 ? options->count : IDLE;
    const char *const arguments[] = { "entity", "--child", "1", NULL };
    bench_child children[IDLE_NODES];
    char seed[512], address[512];
    for (uint32_t i = 0; i < IDLE_NODES; i++) {
        bench_child_start(&children[i], arguments);
        bench_child_say(&children[i], "start ", i == 0 ? "self" : seed, address, sizeof address);
        if (i == 0) {
            memcpy(seed, address, sizeof seed);
        }
    }
    uint64_t before = children_number(children, "rss");
    idle_start(children, count);
    uint64_t after = children_number(children, "rss");
    uint64_t most = 0;
    for (uint32_t i = 0; i < IDLE_NODES; i++) {
        uint64_t here = child_number(&children[i], "handled");
        most = here > most ? here : most;
    }
    bench_print("entity", "idle_entities", (double)count, "entities");
    bench_print("entity", "idle_most_on_a_node", (double)most, "entities");
    bench_print("entity", "bytes_per_idle_entity",
                ((double)after - (double)before) / (double)count - sizeof(uint64_t), "bytes");
    for (uint32_t i = 0; i < IDLE_NODES; i++) {
        bench_child_end(&children[i]);
    }
}

/* ---- telling another node -------------------------------------------------------------------- */

static struct {
    trp_ref refs[ENTITY_TARGETS];
    char ids[ENTITY_TARGETS][ENTITY_ID_BYTES + 1];
    uint64_t type;
    uint64_t here; /* refs that are known */
} far;

typedef struct caller_state {
    uint64_t told, acked, goal;
    uint32_t at, by_name, runs; /* runs: it has told itself to go on */
} caller_state;

static void
caller_go_on(trp_ctx *ctx, caller_state *s)
{
    static const uint8_t payload[BYTES] = { 1 };
    static const place_who go_on = { 0 };
    uint32_t i = 0;
    for (; i < BURST && s->told < s->goal && s->told - s->acked < WINDOW; i++) {
        if (s->by_name != 0) {
            trp_entity entity;
            trp_entity_set(&entity, far.type, far.ids[s->at], ENTITY_ID_BYTES);
            trp_entity_tell(ctx, &entity, &trp_bytes_type, payload, sizeof payload);
        } else {
            trp_tell(ctx, far.refs[s->at], &trp_bytes_type, payload, sizeof payload);
        }
        s->told++;
        s->at = s->at + 1 == ENTITY_TARGETS ? 0 : s->at + 1;
    }
    s->runs = i == BURST; /* else an acknowledgement is to come */
    if (s->runs != 0) {
        trp_tell(ctx, trp_self(ctx), &place_who_type, &go_on, sizeof go_on);
    }
}

static trp_err
caller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    caller_state *s = state;
    if (trp_msg_is(msg, &place_here_type)) {
        far.refs[((const place_here *)trp_msg_payload(msg))->number] = trp_sender(ctx);
        if (++far.here == ENTITY_TARGETS) {
            bench_done();
        }
    } else if (trp_msg_is(msg, &place_go_type)) {
        const place_go *go = trp_msg_payload(msg);
        *s = (caller_state){ .goal = go->tells, .by_name = go->by_name };
        if (go->tells == 0) { /* ask all who they are */
            for (uint64_t i = 0; i < ENTITY_TARGETS; i++) {
                place_who who = { i };
                trp_entity entity = trp_entity_of(far.type, far.ids[i], ENTITY_ID_BYTES);
                trp_entity_tell(ctx, &entity, &place_who_type, &who, sizeof who);
            }
        }
        caller_go_on(ctx, s);
    } else if (trp_msg_is(msg, &place_ack_type)) {
        s->acked += ACK;
        if (s->acked == s->goal) {
            bench_done();
        } else if (s->runs == 0) {
            caller_go_on(ctx, s);
        }
    } else {
        caller_go_on(ctx, s);
    }
    return TRP_OK;
}

static const trp_behaviour caller_behaviour =
    TRP_BEHAVIOUR_INIT("caller", caller_state, caller_receive);

/* Returns messages a second. */
static double
far_round(trp_system *system, trp_ref caller, uint64_t tells, uint32_t by_name)
{
    place_go go = { tells, by_name };
    uint64_t begin_ns = bench_now_ns();
    trp_system_tell(system, caller, &place_go_type, &go, sizeof go);
    bench_wait();
    return (double)tells * 1e9 / (double)(bench_now_ns() - begin_ns);
}

/* Each way in turn; or only one of them, once. */
static void
far_measure(trp_system *system, trp_ref caller, uint64_t tells, const bench_options *options)
{
    const char *way = bench_option_value(options, "--way");
    uint32_t rounds = entity_rounds_of(options);
    double by_ref[ENTITY_ROUNDS], by_name[ENTITY_ROUNDS], ratio[ENTITY_ROUNDS];
    if (way != NULL) {
        bool by = strcmp(way, "name") == 0;
        bench_print("entity", by ? "remote_name" : "remote_ref",
                    far_round(system, caller, tells, by), "messages/s");
        return;
    }
    (void)far_round(system, caller, tells, 1);
    for (uint32_t i = 0; i < rounds; i++) {
        by_ref[i] = far_round(system, caller, tells, 0);
        by_name[i] = far_round(system, caller, tells, 1);
        ratio[i] = by_name[i] / by_ref[i];
    }
    bench_print("entity", "remote_ref", bench_median(by_ref, rounds), "messages/s");
    bench_print("entity", "remote_name", bench_median(by_name, rounds), "messages/s");
    bench_print("entity", "remote_ratio", bench_median(ratio, rounds), "times");
}

void
bench_entity_remote(const bench_options *options)
{
    uint64_t tells = (options->count != 0 ? options->count : TELLS) / ACK * ACK;
    const char *const arguments[] = { "entity", "--child", "1", NULL };
    bench_child child;
    char address[512];
    tells = tells == 0 ? ACK : tells;
    bench_child_start(&child, arguments); /* before any thread of ours exists */
    bench_child_say(&child, "start ", "self", address, sizeof address);
    trp_node *node = node_start(address, NULL);
    trp_system *system = trp_node_system(node);
    bench_members_wait(node, 2);
    far.type = trp_entity_type("place");
    for (uint32_t i = 0; i < ENTITY_TARGETS; i++) {
        id_write(i, far.ids[i]);
    }
    trp_ref caller = bench_spawn(system, &caller_behaviour);
    (void)far_round(system, caller, 0, 0); /* they start, and say who they are */
    far_measure(system, caller, tells, options);
    trp_node_close(node);
    bench_child_end(&child);
}
