/* traced_test.c - traces that cross from one node to another, and messages that do without. */
#include <troupe/trace.h>

#include "tests/unit/remote/pair.h"

static const trp_trace outside = { 0x0102030405060708, 0x1112131415161718, 99, 0, 0 };
static trp_ref far;
static char far_path[TRP_PATH_BYTES_MAX + 1];
static _Atomic int answers;

static trp_err
noted(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)reply;
    UNIT_EQUAL(err, TRP_OK);
    atomic_fetch_add(&answers, 1);
    return TRP_OK;
}

/* Asks the actor of the other node, or tells it. */
static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_bytes(msg) == 6) {
        UNIT_EQUAL(trp_select_tell(ctx, far_path, &trp_string_type, "question", 8), TRP_OK);
    } else if (trp_msg_bytes(msg) == 4) {
        for (int i = 0; i < 3; i++) { /* alike: without a trace they would share a frame */
            trp_tell_text(ctx, far, "plain");
        }
    } else if (trp_msg_bytes(msg) == 3) {
        UNIT_EQUAL(trp_ask(ctx, far, &trp_string_type, "question", 8, 60000, noted, NULL), TRP_OK);
    } else if (trp_ref_is_none(trp_sender(ctx))) {
        trp_tell_text(ctx, far, "plain");
    }
    return TRP_OK;
}
static const trp_behaviour front = {
    .size = sizeof(trp_behaviour), .name = "front", .version = 1, .receive = front_receive
};

typedef struct seen {
    uint32_t count;
    trp_trace_hop last[8];
} seen;

static trp_err
hop_see(void *arg, const trp_trace_hop *hop)
{
    seen *s = arg;
    if (s->count < 8) {
        s->last[s->count] = *hop;
    }
    s->count++;
    return TRP_OK;
}

static uint32_t
hops_see(trp_system *system, seen *ret_seen)
{
    ret_seen->count = 0;
    UNIT_EQUAL(trp_trace_hops(system, 0, hop_see, ret_seen), TRP_OK);
    return ret_seen->count;
}

/* Begin with a question in no trace: what waits for the first connection is encoded before anybody
 * knows what the other node takes. */
static trp_ref
fronts_begin(pair *p, const trpi_remote_options *left, const trpi_remote_options *right)
{
    memset(p, 0, sizeof *p);
    p->mem = true;
    UNIT_REQUIRE(trpi_mem_network_new(&p->network) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_network_thread_start(p->network) == TRP_OK);
    for (int i = 0; i < 2; i++) {
        p->system[i] = pair_system(i == 0 ? "left" : "right");
        pair_remote(p, i, i == 0 ? left : right, 0);
    }
    far = pair_abroad(p, pair_spawn(p->system[1], &pair_echo, "echo", NULL, NULL, 0));
    trp_ref from = pair_spawn(p->system[0], &front, "front", NULL, NULL, 0);
    atomic_store(&answers, 0);
    trp_system_tell(p->system[0], from, &trp_string_type, "ask", 3);
    UNIT_WAIT(atomic_load(&answers) == 1, 60000);
    return from;
}

static void
ask_traced(pair *p, trp_ref from)
{
    trp_system_tell_traced(p->system[0], from, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                           "ask", 3);
}

/* HOW-09: a question that is told in a trace is a hop of the other node, its answer one of this.
 */
static void
a_question_to_another_node_and_its_answer_are_in_its_trace(void)
{
    pair p;
    seen here, there;
    trp_ref from = fronts_begin(&p, NULL, NULL);
    ask_traced(&p, from);
    UNIT_WAIT(hops_see(p.system[0], &here) == 2 && hops_see(p.system[1], &there) == 1, 60000);
    const trp_trace_hop *question = &here.last[0], *far_hop = &there.last[0],
                        *answer = &here.last[1];
    UNIT_EQUAL(question->parent, outside.span);
    UNIT_EQUAL(question->net_ns, 0);
    UNIT_EQUAL(far_hop->trace.id_high, outside.id_high);
    UNIT_EQUAL(far_hop->trace.id_low, outside.id_low);
    UNIT_EQUAL(far_hop->parent, question->trace.span);
    UNIT_TRUE(far_hop->net_ns > 0);
    UNIT_EQUAL(answer->parent, far_hop->trace.span);
    UNIT_TRUE(answer->net_ns > 0);
    pair_end(&p);
}

/* HOW-09: each tell is a hop of the other node, with a span of its own. */
static void
tells_to_another_node_are_in_the_trace(void)
{
    pair p;
    seen here, there;
    trp_ref from = fronts_begin(&p, NULL, NULL);
    trp_system_tell_traced(p.system[0], from, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                           "tell", 4);
    UNIT_WAIT(hops_see(p.system[1], &there) == 3, 60000);
    UNIT_WAIT(hops_see(p.system[0], &here) == 1 + 3, 60000); /* with the echoes */
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_EQUAL(there.last[i].trace.id_low, outside.id_low);
        UNIT_EQUAL(there.last[i].parent, here.last[0].trace.span);
        UNIT_TRUE(there.last[i].net_ns > 0);
        UNIT_TRUE(there.last[i].trace.span != there.last[(i + 1) % 3].trace.span);
    }
    pair_end(&p);
}

static void
messages_without_a_trace_have_none_behind_one(void)
{
    pair p;
    seen here, there;
    trp_ref from = fronts_begin(&p, NULL, NULL);
    ask_traced(&p, from);
    UNIT_WAIT(hops_see(p.system[1], &there) == 1, 60000);
    for (int i = 0; i < 100; i++) {
        trp_system_tell(p.system[0], from, &trp_string_type, "plain", 5);
    }
    ask_traced(&p, from);
    UNIT_WAIT(hops_see(p.system[1], &there) == 2, 60000); /* behind all of them */
    UNIT_WAIT(hops_see(p.system[0], &here) == 4, 60000);  /* the questions and their answers */
    pair_end(&p);
}

/* A node of an earlier minor version gets the message, and nothing of its trace. */
static void
a_peer_that_takes_no_traces_gets_the_message_alone(void)
{
    trpi_remote_options before = { .wire_minor = 4 };
    for (int side = 0; side < 2; side++) {
        pair p;
        seen here, there;
        trpi_remote_stats stats;
        trp_ref from = fronts_begin(&p, side == 0 ? &before : NULL, side == 1 ? &before : NULL);
        ask_traced(&p, from);
        /* the answer is in no trace: the question's goes on where it comes, and is no hop */
        UNIT_WAIT(atomic_load(&answers) == 2, 60000);
        UNIT_EQUAL(hops_see(p.system[0], &here), 1);
        UNIT_EQUAL(hops_see(p.system[1], &there), 0);
        trpi_remote_stats_get(p.remote[1], &stats);
        UNIT_EQUAL(stats.garbage, 0);
        pair_end(&p);
    }
}

/* A selection goes with its trace to a node that takes traces, and without to another. */
static void
a_message_to_a_selection_of_another_node_is_in_its_trace(void)
{
    trpi_remote_options before = { .wire_minor = 4 };
    for (int old = 0; old < 2; old++) {
        pair p;
        seen there;
        trpi_remote_stats stats;
        trp_ref from = fronts_begin(&p, NULL, old == 1 ? &before : NULL);
        (void)pair_path(&p, 1, "/user/echo", far_path, sizeof far_path);
        trp_system_tell_traced(p.system[0], from, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                               "select", 6);
        trp_system_tell(p.system[0], from, &trp_string_type, "ask", 3); /* behind it */
        UNIT_WAIT(atomic_load(&answers) == 2, 60000);
        UNIT_WAIT(hops_see(p.system[1], &there) == (old == 1 ? 0 : 1), 60000);
        if (old == 0) {
            UNIT_EQUAL(there.last[0].trace.id_low, outside.id_low);
            UNIT_TRUE(there.last[0].net_ns > 0);
        }
        trpi_remote_stats_get(p.remote[1], &stats);
        UNIT_EQUAL(stats.garbage, 0);
        pair_end(&p);
    }
}

UNIT_BEGIN("traced")
UNIT(a_message_to_a_selection_of_another_node_is_in_its_trace)
UNIT(a_question_to_another_node_and_its_answer_are_in_its_trace)
UNIT(tells_to_another_node_are_in_the_trace)
UNIT(messages_without_a_trace_have_none_behind_one)
UNIT(a_peer_that_takes_no_traces_gets_the_message_alone)
UNIT_END
