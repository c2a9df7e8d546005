/* deployment_test.c - children that live on another node, and are supervised from here. */
#include <troupe/serialization.h>

#include "actor/life/life.h"
#include "tests/unit/remote/deploy.h"

/* REMOTE-16 REMOTE-20 REMOTE-23 SYS-14 SYS-15, REMOTE-06, REMOTE-17, NewRemoteActorSpec: a child is
 * created on the other node, with its arguments, and has both of its paths; messages from before
 * its creation come first. */
static void
a_child_is_made_on_another_node_and_answers(void)
{
    int64_t first = 100;
    char expected[TRP_PATH_BYTES_MAX], path[TRP_PATH_BYTES_MAX + 1];
    trp_ref found = TRP_REF_NONE;
    deploy_start(NULL);
    trp_ref child = deploy_child("child", &first);
    for (int i = 1; i <= 10; i++) {
        UNIT_EQUAL(deploy_ask(child, "ping"), 100 + i);
    }
    UNIT_TEXT(deploy_said()->system, "right");
    deploy_tell(child, "path");
    UNIT_WAIT(atomic_load(&deploy_seen.paths) == 1, 60000);
    (void)snprintf(expected, sizeof expected, "/remote/%s/user/parent/child",
                   strstr(d.pair.address[0], "://") + 3);
    UNIT_TEXT(deploy_said()->path, expected); /* its path on its own node */
    UNIT_TEXT(trp_path(d.pair.system[0], child, path, sizeof path), "/user/parent/child");
    trp_path(d.pair.system[1], deploy_said()->parent, path, sizeof path);
    UNIT_TRUE(strstr(path, "/user/parent") != NULL);
    UNIT_EQUAL(deploy_said()->parent.slot, d.parent.slot); /* its supervisor is on this side */
    UNIT_EQUAL(deploy_said()->parent.generation, d.parent.generation);
    UNIT_TRUE(deploy_said()->parent.node != d.parent.node);
    /* found by either path, from either side */
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], "/user/parent/child", 60000, &found), TRP_OK);
    trp_ref direct = found; /* the actor itself answers */
    UNIT_TRUE(found.node != child.node);
    UNIT_EQUAL(deploy_ask(direct, "ping"), 112);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0],
                                  pair_path(&d.pair, 1, expected, path, sizeof path), 60000,
                                  &found),
               TRP_OK);
    UNIT_TRUE(trp_ref_equal(found, direct));
    UNIT_EQUAL(trp_system_resolve(d.pair.system[1], expected, 60000, &found), TRP_OK);
    UNIT_EQUAL(found.slot, direct.slot);
    trp_path(d.pair.system[0], direct, path, sizeof path);
    UNIT_TRUE(strstr(path, expected) != NULL);
    deploy_end();
    UNIT_EQUAL(atomic_load(&deploy_seen.stopped), 1);
}

static _Atomic uint32_t turned;

/* Both ways: bytes upside down. */
static trp_err
bytes_reverse(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    trp_err err = TRP_OK;
    (void)arg;
    (void)type;
    atomic_fetch_add(&turned, 1);
    for (size_t i = bytes; i-- > 0 && err == TRP_OK;) {
        err = trp_wire_put(wire, (const char *)payload + i, 1);
    }
    return err;
}
static const trp_serializer turner = {
    sizeof turner, TRP_SERIALIZER_ID_FIRST, { 0 }, "turner", NULL, bytes_reverse, bytes_reverse
};

/* SERIAL-17 */
static void
its_arguments_go_through_the_serializer_that_is_bound(void)
{
    int64_t first = 100;
    deploy_start(NULL);
    atomic_store(&turned, 0);
    for (int side = 0; side < 2; side++) {
        UNIT_EQUAL(trp_serializer_add(d.pair.system[side], &turner), TRP_OK);
    }
    UNIT_EQUAL(trp_serializer_bind(d.pair.system[0], trp_i64_type.name, "turner"), TRP_OK);
    trp_ref child = deploy_child("child", &first);
    UNIT_EQUAL(deploy_ask(child, "ping"), 101);
    UNIT_TRUE(atomic_load(&turned) >= 2); /* on both nodes */
    deploy_end();
}

static trp_err
egg_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&deploy_seen.paths, 1);
    return TRP_OK;
}
static const trp_behaviour egg_behaviour = TRP_BEHAVIOUR_INIT("egg", char, egg_receive);

/* A child of the child is found below the logical path, which continues on the other node. */
static trp_err
nest_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)state;
    (void)args;
    options.name = "egg";
    return trp_spawn(ctx, &egg_behaviour, &options, &ref);
}
static const trp_behaviour nest = { .size = sizeof(trp_behaviour),
                                    .name = "nest",
                                    .version = 1,
                                    .receive = pair_echo_receive,
                                    .pre_start = nest_start };

/* SYS-15, REMOTE-17 */
static void
what_is_below_it_is_found_by_its_logical_path(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref child, egg = TRP_REF_NONE, same = TRP_REF_NONE;
    char path[TRP_PATH_BYTES_MAX + 1], physical[TRP_PATH_BYTES_MAX + 1];
    deploy_start(NULL);
    UNIT_EQUAL(trp_behaviour_register(d.pair.system[1], &nest), TRP_OK);
    options.name = "child";
    options.node = d.pair.address[1];
    UNIT_EQUAL(deploy_spawn_with(&nest, &options, &child), TRP_OK);
    UNIT_TRUE(deploy_ask(child, "are you there") != -1);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], "/user/parent/child/egg", 60000, &egg), TRP_OK);
    (void)snprintf(physical, sizeof physical, "/remote/%s/user/parent/child/e?g",
                   strstr(d.pair.address[0], "://") + 3);
    /* wildcards, too, by either path */
    pair_path(&d.pair, 1, physical, path, sizeof path);
    UNIT_EQUAL(trp_system_select_tell(d.pair.system[0], path, &trp_string_type, "hi", 2), TRP_OK);
    UNIT_EQUAL(
        trp_system_select_tell(d.pair.system[0], "/user/parent/child/*", &trp_string_type, "hi", 2),
        TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.paths) == 2, 60000);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], "/user/parent/child/none", 60000, &same),
               TRP_ENOENT);
    deploy_end();
}

/* ---- failures -------------------------------------------------------------------------------- */

/* HEADLINE-4 REMOTE-23: the failure is sent with its reason; the directive is sent back. */
static void
its_failure_is_decided_by_its_parent(void)
{
    int64_t first = 100;
    deploy_start(NULL);
    trp_ref child = deploy_child("child", &first);
    UNIT_EQUAL(deploy_ask(child, "ping"), 101);
    deploy_tell(child, "fail");
    UNIT_WAIT(atomic_load(&deploy_seen.restarted) == 1, 60000);
    UNIT_TEXT(deploy_said()->reason, "no more paper");
    UNIT_EQUAL(deploy_said()->code, 42);
    UNIT_TRUE(trp_ref_equal(deploy_said()->child, child));
    UNIT_EQUAL(deploy_ask(child, "ping"), 101); /* a fresh state from the same arguments */
    d.directive = TRP_RESUME;
    deploy_tell(child, "fail");
    UNIT_WAIT(atomic_load(&deploy_seen.failures) == 2, 60000);
    UNIT_EQUAL(deploy_ask(child, "ping"), 103); /* the state as it was */
    d.directive = TRP_STOP;
    deploy_tell(child, "fail");
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.stopped), 2); /* before: at the restart, without a hook */
    UNIT_TRUE(trp_ref_equal(deploy_said()->child, child));
    UNIT_EQUAL(atomic_load(&deploy_seen.restarted), 1);
    UNIT_WAIT(pair_logged("failed: no more paper"), 60000);
    deploy_end();
}

static trp_err
stillborn_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_fail(ctx, 43, "not today");
    return TRP_OK;
}
static const trp_behaviour stillborn = { .size = sizeof(trp_behaviour),
                                         .name = "stillborn",
                                         .version = 1,
                                         .receive = pair_echo_receive,
                                         .pre_start = stillborn_start };

/* An actor that starts on the thread that creates it fails before its creation is reported. */
static void
its_failure_at_its_birth_is_decided_too(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref child;
    deploy_start(NULL);
    d.directive = TRP_STOP;
    UNIT_EQUAL(trp_behaviour_register(d.pair.system[1], &stillborn), TRP_OK);
    options.node = d.pair.address[1];
    options.dispatcher = "calling-thread";
    UNIT_EQUAL(deploy_spawn_with(&stillborn, &options, &child), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.failures), 1);
    UNIT_TEXT(deploy_said()->reason, "not today");
    UNIT_TRUE(trp_ref_equal(deploy_said()->child, child));
    deploy_end();
}

/* A peer's orders are not believed to be right: suspensions without end, a second order by a
 * proxy that has its actor. */
static void
orders_that_no_proxy_gives_do_no_harm(void)
{
    char path[TRP_PATH_BYTES_MAX + 1], other[TRP_PATH_BYTES_MAX + 1];
    trp_ref direct = TRP_REF_NONE, gate = TRP_REF_NONE, none = TRP_REF_NONE;
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], "/user/parent/child", 60000, &direct), TRP_OK);
    for (int i = 0; i < 300; i++) {
        UNIT_TRUE(trpi_remote_signal(d.pair.system[0], TRPI_SIGNAL_SUSPEND, direct, child, 0));
    }
    for (int i = 0; i < 300; i++) {
        UNIT_TRUE(trpi_remote_signal(d.pair.system[0], TRPI_SIGNAL_RESUME, direct, child, 0));
    }
    UNIT_EQUAL(deploy_ask(child, "ping"), 2);
    pair_path(&d.pair, 1, "/remote", path, sizeof path);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], path, 60000, &gate), TRP_OK);
    trpi_deploy deploy = {
        .behaviour = "worker", .version = 1, .path = "/user/parent/other", .supervisor = d.parent
    };
    trpi_order order = { &deploy, NULL };
    UNIT_EQUAL(
        trpi_remote_order(d.pair.system[0], gate.node, TRPI_SIGNAL_DEPLOY, gate, child, &order),
        TRP_OK);
    UNIT_EQUAL(deploy_ask(deploy_child("later", NULL), "ping"), 1); /* orders are done in turn */
    (void)snprintf(other, sizeof other, "/remote/%s/user/parent/other",
                   strstr(d.pair.address[0], "://") + 3);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[1], other, 60000, &none), TRP_ENOENT);
    UNIT_EQUAL(atomic_load(&deploy_seen.started), 2);
    UNIT_EQUAL(deploy_ask(child, "ping"), 3);
    deploy_end();
}

/* While the parent decides, the child takes no messages. */
static void
escalating_restarts_the_parent_which_stops_its_children(void)
{
    trp_ref again = TRP_REF_NONE;
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    d.directive = TRP_ESCALATE;
    deploy_tell(child, "fail");
    UNIT_WAIT(atomic_load(&deploy_seen.stopped) == 1, 60000);
    UNIT_EQUAL(deploy_ask(child, "ping"), -1);
    again = deploy_child("child", NULL); /* the name is free */
    UNIT_EQUAL(deploy_ask(again, "ping"), 1);
    deploy_tell(d.parent, "fail"); /* its own failure does the same */
    UNIT_WAIT(atomic_load(&deploy_seen.stopped) == 2, 60000);
    deploy_end();
}

static void
a_parent_that_keeps_its_children_restarts_them(void)
{
    deploy_start_with(NULL, &deploy_keeper);
    trp_ref child = deploy_child("child", NULL), other = deploy_child("other", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    UNIT_EQUAL(deploy_ask(other, "ping"), 1);
    deploy_tell(d.parent, "fail");
    UNIT_WAIT(atomic_load(&deploy_seen.restarted) == 2, 60000);
    UNIT_TEXT(deploy_said()->reason, "the parent has had enough");
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    deploy_tell(child, "fail"); /* all for one: the siblings, too */
    UNIT_WAIT(atomic_load(&deploy_seen.restarted) == 4, 60000);
    UNIT_EQUAL(deploy_ask(other, "ping"), 1);
    UNIT_EQUAL(atomic_load(&deploy_seen.terminated), 0);
    deploy_end();
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
stopping_it_waits_for_its_end_over_there(void)
{
    int64_t stop = 0;
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trp_system_tell(d.pair.system[0], d.parent, &trp_i64_type, &stop, sizeof stop);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.stopped), 1); /* before the parent was told */
    UNIT_EQUAL(atomic_load(&deploy_seen.lost), 0);
    child = deploy_child("child", NULL); /* a poison pill takes the way of messages */
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trp_system_tell(d.pair.system[0], child, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 2, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.stopped), 2);
    deploy_end();
}

/* Stopped before the other node has answered: nothing is left there. */
static void
stopping_it_at_once_leaves_nothing_behind(void)
{
    int64_t stop = 0;
    trp_ref ref = TRP_REF_NONE;
    deploy_start(NULL);
    for (int i = 0; i < 20; i++) {
        uint32_t ended = atomic_load(&deploy_seen.terminated);
        (void)deploy_child("child", NULL);
        trp_system_tell(d.pair.system[0], d.parent, &trp_i64_type, &stop, sizeof stop);
        UNIT_WAIT(atomic_load(&deploy_seen.terminated) == ended + 1, 60000);
    }
    UNIT_WAIT(atomic_load(&deploy_seen.stopped) == atomic_load(&deploy_seen.started), 60000);
    UNIT_EQUAL(trp_system_resolve(d.pair.system[0], "/user/parent/child", 60000, &ref), TRP_ENOENT);
    deploy_end();
}

/* WATCH-8, HEADLINE-4, RemoteDeploymentDeathWatchSpec: the death of its node is its end. */
static void
the_loss_of_its_node_is_its_end(void)
{
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trpi_node_id id = { *trpi_remote_address(d.pair.remote[1]), pair_uid(&d.pair, 1) };
    trpi_remote_quarantine(d.pair.remote[0], &id, "the test says so");
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_TRUE(trp_ref_equal(deploy_said()->child, child));
    UNIT_EQUAL(deploy_ask(child, "ping"), -1);
    deploy_end();
}

/* REMOTE-23: the other way round: an actor that has lost its supervisor's node is stopped. */
static void
the_loss_of_its_parents_node_stops_it(void)
{
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trpi_node_id id = { *trpi_remote_address(d.pair.remote[0]), pair_uid(&d.pair, 0) };
    trpi_remote_quarantine(d.pair.remote[1], &id, "the test says so");
    UNIT_WAIT(atomic_load(&deploy_seen.stopped) == 1, 60000);
    id = (trpi_node_id){ *trpi_remote_address(d.pair.remote[1]), pair_uid(&d.pair, 1) };
    trpi_remote_quarantine(d.pair.remote[0], &id, "the test says so, too");
    deploy_end();
}

/* NewRemoteActorSpec: The system of the parent ends although the child's node does not answer any
 * more; so does one whose remoting has ended first. */
static void
a_system_ends_without_its_remoting(void)
{
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trpi_remote_stop(d.pair.remote[0]);
    d.pair.remote[0] = NULL;
    UNIT_WAIT(atomic_load(&deploy_seen.stopped) == 1, 60000); /* its parent's node said goodbye */
    deploy_end();
}

/* RemoteDeploymentDeathWatchSpec: Nor does it wait for the detector when the connection is gone: it
 * would take ten minutes. */
static void
a_system_ends_without_its_connection(void)
{
    deploy_left.watch_pause_ms = 600000;
    deploy_start(NULL);
    deploy_left.watch_pause_ms = 0;
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    trpi_mem_network_fault_set(d.pair.network, pair_cut_all, NULL);
    trpi_mem_network_cut(d.pair.network, NULL, NULL);
    UNIT_EQUAL(trp_system_stop(d.pair.system[0], 60000), TRP_OK);
    deploy_end();
}

/* REMOTE-24: a system that stops ends the actors that peers created there, and the peers are told.
 */
static void
the_end_of_its_system_is_its_end(void)
{
    deploy_start(NULL);
    trp_ref child = deploy_child("child", NULL);
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    UNIT_EQUAL(trp_system_stop(d.pair.system[1], 60000), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.stopped), 1);
    deploy_end();
}

UNIT_BEGIN("deployment")
UNIT(a_child_is_made_on_another_node_and_answers)
UNIT(its_arguments_go_through_the_serializer_that_is_bound)
UNIT(what_is_below_it_is_found_by_its_logical_path)
UNIT(its_failure_is_decided_by_its_parent)
UNIT(its_failure_at_its_birth_is_decided_too)
UNIT(orders_that_no_proxy_gives_do_no_harm)
UNIT(escalating_restarts_the_parent_which_stops_its_children)
UNIT(a_parent_that_keeps_its_children_restarts_them)
UNIT(stopping_it_waits_for_its_end_over_there)
UNIT(stopping_it_at_once_leaves_nothing_behind)
UNIT(the_loss_of_its_node_is_its_end)
UNIT(the_loss_of_its_parents_node_stops_it)
UNIT(a_system_ends_without_its_remoting)
UNIT(a_system_ends_without_its_connection)
UNIT(the_end_of_its_system_is_its_end)
UNIT_END
