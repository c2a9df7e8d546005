/* traced_test.c - traces through shards and topics: of two nodes, while shards have no home, and
 * when they have one. */
#include <troupe/sharding.h>

#include "tests/unit/actor/hops.h"
#include "tests/unit/cluster/host.h"
#include "tests/unit/cluster/mediators.h"

enum { NODES = 2, IDS = 16 };
static struct host hosts[NODES];
static trp_mediator *mediator;
static _Atomic uint32_t answers;

/* ---- actors ---------------------------------------------------------------------------------- */

static trp_err
thing_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "question")) {
        trp_reply_text(ctx, "answer");
    }
    return TRP_OK;
}
static const trp_behaviour thing = {
    .size = sizeof(trp_behaviour), .name = "thing", .version = 1, .receive = thing_receive
};

static trp_entity
thing_of(uint32_t number)
{
    char text[16];
    int bytes = snprintf(text, sizeof text, "%u", number);
    return trp_entity_of(trp_entity_type("thing"), text, (size_t)bytes);
}

static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)ctx;
    (void)state;
    (void)arg;
    (void)reply;
    UNIT_EQUAL(err, TRP_OK);
    atomic_fetch_add(&answers, 1);
    return TRP_OK;
}

static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char large[4096] = "question";
    (void)state;
    if (stage_said(msg, "publish")) {
        memset(large, 'l', sizeof large);
        UNIT_EQUAL(
            trp_mediator_publish(mediator, trp_self(ctx), "all", &trp_string_type, "small", 5),
            TRP_OK);
        UNIT_EQUAL(trp_mediator_publish(mediator, trp_self(ctx), "all", &trp_string_type, large,
                                        sizeof large),
                   TRP_OK);
        return TRP_OK;
    }
    for (uint32_t i = 0; i < IDS; i++) {
        trp_entity to = thing_of(i);
        if (stage_said(msg, "ask")) {
            UNIT_EQUAL(
                trp_entity_ask(ctx, &to, &trp_string_type, "question", 8, 60000, answered, NULL),
                TRP_OK);
        } else if (stage_said(msg, "forward")) {
            trp_entity_forward(ctx, &to, msg);
        } else {
            trp_entity_tell(ctx, &to, &trp_string_type, "told", 4);
        }
    }
    return TRP_OK;
}
static const trp_behaviour front_behaviour = {
    .size = sizeof(trp_behaviour), .name = "front", .version = 1, .receive = front_receive
};

/* ---- two nodes ------------------------------------------------------------------------------- */

static bool
both_are_up(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        trp_member members[NODES + 1];
        size_t all = 0, up = 0;
        if (trp_cluster_members(hosts[i].system, members, NODES + 1, &all) != TRP_OK) {
            return false;
        }
        for (size_t k = 0; k < all && k <= NODES; k++) {
            up += members[k].status == TRP_MEMBER_UP;
        }
        if (up != NODES) {
            return false;
        }
    }
    return true;
}

static trp_ref
cluster_begin(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref front = TRP_REF_NONE;
    for (uint32_t i = 0; i < NODES; i++) {
        host_start(&hosts[i], i == 0 ? "self" : hosts[0].address);
    }
    UNIT_WAIT(both_are_up(), TAKE_MS);
    options.name = "front";
    UNIT_REQUIRE(trp_system_spawn(hosts[0].system, &front_behaviour, &options, &front) == TRP_OK);
    return front;
}

static void
shards_begin(void)
{
    char why[256];
    for (uint32_t i = 0; i < NODES; i++) {
        trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
        options.type = "thing";
        options.behaviour = &thing;
        options.shards = IDS;
        UNIT_REQUIRE(trp_sharding_start(hosts[i].system, &options, why, sizeof why) == TRP_OK);
    }
}

static void
cluster_end(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        host_end(&hosts[i]);
    }
}

static void
begin(trp_ref front, const char *text)
{
    trp_system_tell_traced(hosts[0].system, front, (trp_ref)TRP_REF_NONE, &outside,
                           &trp_string_type, text, strlen(text));
}

/* Count the hops of all nodes whose parent is `parent` (0: any), and whose actor's path begins
 * so. */
static uint32_t
hops_of(const char *begins, uint64_t parent, uint32_t *ret_far)
{
    uint32_t count = 0;
    *ret_far = 0;
    for (uint32_t n = 0; n < NODES; n++) {
        static hops h;
        hops_take(hosts[n].system, &h);
        for (uint32_t i = 0; i < h.count; i++) {
            char path[TRP_PATH_BYTES_MAX + 1];
            trp_path(hosts[n].system, h.all[i].actor, path, sizeof path);
            const char *local =
                strstr(path, "://") == NULL ? path : strchr(strstr(path, "://") + 3, '/');
            if (local != NULL && strncmp(local, begins, strlen(begins)) == 0 &&
                (parent == 0 || h.all[i].parent == parent) &&
                h.all[i].trace.id_low == outside.id_low) {
                count++;
                *ret_far += h.all[i].net_ns > 0;
            }
        }
    }
    return count;
}

/* The span of the message of the front actor that was handled last. */
static uint64_t
front_span(trp_ref front)
{
    static hops h;
    uint64_t span = 0;
    hops_take(hosts[0].system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        if (trp_ref_equal(h.all[i].actor, front) && h.all[i].parent == outside.span) {
            span = h.all[i].trace.span;
        }
    }
    return span;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* HOW-09: the region keeps them until the coordinator has given the shards a home; half of them go
 * to the other node. */
static void
messages_that_wait_for_the_home_of_a_shard_stay_in_their_trace(void)
{
    uint32_t far = 0;
    trp_ref front = cluster_begin();
    shards_begin();
    begin(front, "tell"); /* no shard has a home */
    UNIT_WAIT(front_span(front) != 0 &&
                  hops_of("/system/sharding-thing/", front_span(front), &far) == IDS,
              TAKE_MS);
    UNIT_TRUE(far > 0 && far < IDS);
    begin(front, "tell"); /* all have one */
    UNIT_WAIT(hops_of("/system/sharding-thing/", 0, &far) == 2 * IDS, TAKE_MS);
    UNIT_EQUAL(hops_of("/system/sharding-thing/", front_span(front), &far), IDS);
    begin(front, "forward");
    UNIT_WAIT(hops_of("/system/sharding-thing/", 0, &far) == 3 * IDS, TAKE_MS);
    cluster_end();
}

static void
asks_of_entities_and_their_answers_are_in_the_trace(void)
{
    uint32_t far = 0;
    trp_ref front = cluster_begin();
    shards_begin();
    atomic_store(&answers, 0);
    begin(front, "ask");
    UNIT_WAIT(atomic_load(&answers) == IDS, TAKE_MS);
    UNIT_WAIT(hops_of("/user/front", 0, &far) == 1 + IDS, TAKE_MS); /* with those of the answers */
    UNIT_EQUAL(hops_of("/system/sharding-thing/", front_span(front), &far), IDS);
    cluster_end();
}

/* HOW-09 */
static void
a_publication_is_in_the_trace_on_all_nodes(void)
{
    static const trp_ref nobody = TRP_REF_NONE;
    trp_ref front = cluster_begin();
    uint32_t far = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        trp_subscribe_options subscribe_options = TRP_SUBSCRIBE_OPTIONS_INIT;
        trp_mediator *m = mediator_of(hosts[i].system);
        trp_inbox *acks = inbox_of(hosts[i].system);
        for (uint32_t k = 0; k < 2; k++) {
            trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
            trp_ref ref = nobody;
            options.name = k == 0 ? "reader-a" : "reader-b";
            UNIT_REQUIRE(trp_system_spawn(hosts[i].system, &thing, &options, &ref) == TRP_OK);
            subscribe_options.flags = TRP_SUBSCRIBE_ACK_EVERYWHERE;
            subscribe_options.answer_to = trp_inbox_ref(acks);
            UNIT_EQUAL(trp_mediator_subscribe(m, "all", ref, &subscribe_options), TRP_OK);
            take_ack(acks, true, "all", TRP_OK);
        }
        trp_inbox_close(acks);
    }
    mediator = mediator_of(hosts[0].system);
    begin(front, "publish");
    UNIT_WAIT(hops_of("/user/reader-", 0, &far) == 2 * 2 * NODES, TAKE_MS);
    UNIT_EQUAL(hops_of("/user/front", 0, &far), 1);
    cluster_end();
}

UNIT_BEGIN("traced")
UNIT(messages_that_wait_for_the_home_of_a_shard_stay_in_their_trace)
UNIT(asks_of_entities_and_their_answers_are_in_the_trace)
UNIT(a_publication_is_in_the_trace_on_all_nodes)
UNIT_END
