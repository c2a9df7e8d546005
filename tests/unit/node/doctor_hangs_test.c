/* doctor_hangs_test.c - what the doctor of real nodes says of a cluster in which something hangs:
 * a singleton that does not end, shards without a home, a node whose membership stands still. Each
 * is made by its real cause, named, mended and gone. */
#include <stdatomic.h>
#include <stdio.h>

#include <troupe/dispatcher.h>
#include <troupe/sharding.h>
#include <troupe/singleton.h>

#include "tests/unit/node/doctor_ask.h"

static atomic_bool let_go, held;

static void
hold(void)
{
    atomic_store(&held, true);
    while (!atomic_load(&let_go)) {
        unit_pause();
    }
}

/* A node with a control socket, which joins through `first`, or is the first one. */
static trp_node *
node_at(const char *name, const trp_node *first)
{
    char path[128], seed[512];
    const char *settings[] = { "cluster.control-socket=on",
                               path,
                               seed,
                               "cluster.downing.active-strategy=keep-oldest",
                               "cluster.failure-detector.acceptable-heartbeat-pause=120s",
                               "cluster.downing.stable-after=600s",
                               "cluster.leave-timeout=700s",
                               NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(path, sizeof path, "control.socket=/tmp/troupe-hangs-%s-%d.sock", name, (int)getpid());
    snprintf(seed, sizeof seed, "cluster.seed-nodes=%s",
             first == NULL ? "self" : trp_node_address(first));
    UNIT_EQUAL(node_open(settings, &node, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(node != NULL);
    return node;
}

static trp_node *
up_at(const char *name, const trp_node *first)
{
    trp_node *node = node_at(name, first);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

static void
begin(void)
{
    atomic_store(&let_go, false);
    atomic_store(&held, false);
}

/* ---- hand-overs ------------------------------------------------------------------------------ */

static trp_err
holding_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    hold();
    return TRP_OK;
}
static const trp_behaviour holding = {
    .size = sizeof(trp_behaviour), .name = "holding", .version = 1, .receive = holding_receive
};

static void
boss_start(trp_node *node)
{
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_ref manager;
    options.name = "boss";
    options.behaviour = &holding;
    UNIT_EQUAL(trp_singleton_start(trp_node_system(node), &options, &manager), TRP_OK);
}

/* Its node leaves while it handles a message: the end message waits behind that. */
static void
a_singleton_that_does_not_end_is_named_here_and_there(void)
{
    begin();
    trp_node *one = up_at("one", NULL);
    boss_start(one);
    trp_node *two = up_at("two", one);
    boss_start(two);
    UNIT_TRUE(says(one, "hand-overs", "ok", ""));
    UNIT_WAIT(trp_system_select_tell(trp_node_system(one), "/system/singleton-boss/singleton",
                                     &trp_string_type, "x", 1) == TRP_OK &&
                  atomic_load(&held),
              60000);
    cJSON_Delete(control_ask(trp_node_control_path(one), "{\"cmd\":\"leave\",\"wait\":false}"));
    UNIT_WAIT(says(two, "hand-overs", "fail", "has not handed it over yet"), 60000);
    UNIT_WAIT(says(one, "hand-overs", "fail", "it has not stopped since its end message"), 60000);
    atomic_store(&let_go, true);
    closes(one, TRP_NODE_LEFT);
    UNIT_WAIT(says(two, "hand-overs", "ok", ""), 60000);
    trp_node_close(two);
}

/* ---- shards and views ------------------------------------------------------------------------ */

static _Atomic int told;

static trp_err
thing_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    atomic_fetch_add(&told, 1);
    return TRP_OK;
}
static const trp_behaviour thing = {
    .size = sizeof(trp_behaviour), .name = "thing", .version = 1, .receive = thing_receive
};

static void
thing_start(trp_node *node)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    char why[256] = "";
    options.type = "thing";
    options.behaviour = &thing;
    options.members_min = 2;
    UNIT_EQUAL(trp_sharding_start(trp_node_system(node), &options, why, sizeof why), TRP_OK);
}

static void
thing_tell(trp_node *node, const char *id)
{
    trp_entity entity = trp_entity_of(trp_entity_type("thing"), id, strlen(id));
    UNIT_EQUAL(trp_system_entity_tell(trp_node_system(node), &entity, &trp_string_type, "x", 1),
               TRP_OK);
}

static void
hold_job(void *arg)
{
    (void)arg;
    hold();
}

/* Hold the thread of a node on which the library's own actors run, those of membership and of
 * shards among them: the node answers heartbeats and the tool as before. */
static void
a_node_whose_membership_stands_still_is_named(void)
{
    begin();
    trp_node *one = up_at("one", NULL);
    thing_start(one);
    trp_node *two = up_at("two", one);
    UNIT_WAIT(says(one, "shards", "fail", "fewer nodes than members_min have started the type"),
              60000);
    thing_start(two);
    UNIT_WAIT(says(one, "shards", "ok", ""), 60000);
    UNIT_WAIT(says(one, "views", "ok", "the view is the same on 1 of 1 other members"), 60000);

    UNIT_EQUAL(trp_dispatcher_execute(trp_node_system(one), "system", hold_job, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&held), 60000);
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        thing_tell(two, id);
    }
    trp_node *three = node_at("three", two);
    UNIT_WAIT(says(two, "shards", "fail", "which coordinates the type, has given them no home"),
              60000);
    UNIT_WAIT(says(one, "views", "warn", "has another view of the members"), 60000);

    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&told) == 20, 60000);
    UNIT_WAIT(says(two, "shards", "ok", "no shard waits for long"), 60000);
    UNIT_WAIT(own_status(three) == TRP_MEMBER_UP, 60000);
    UNIT_WAIT(says(one, "views", "ok", "the view is the same on 2 of 2 other members"), 60000);
    trp_node_close(three);
    trp_node_close(two);
    trp_node_close(one);
}

UNIT_BEGIN("doctor_hangs")
UNIT(a_singleton_that_does_not_end_is_named_here_and_there)
UNIT(a_node_whose_membership_stands_still_is_named)
UNIT_END
