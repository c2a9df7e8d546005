/* health_test.c - the health of real nodes: each check is made to fail by its cause, and mended. */
#include <stdatomic.h>

#include <troupe/shutdown.h>

#include "io/poller.h"
#include "tests/unit/node/inside.h"

enum { WORKERS = 2 };

static char path_setting[128];
static atomic_bool held;
static _Atomic uint32_t inside; /* threads that are held */

static trp_node *
node_with(const char *more, const char *seeds)
{
    const char *extra[] = { path_setting,
                            "cluster.control-socket=on",
                            "actor.default-dispatcher.workers=2",
                            "management.alive-after=1s",
                            more,
                            seeds,
                            NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    socket_setting(path_setting, sizeof path_setting);
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    return node;
}

static trp_node *
node_up(void)
{
    trp_node *node = node_with("log.level=error", "cluster.seed-nodes=self");
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

/* Does the node answer `command` with this verdict; and what does the check say? NULL check: any.
 */
static bool
says(trp_node *node, const char *command, const char *status, const char *check, bool ok,
     const char *detail)
{
    char request[64];
    (void)snprintf(request, sizeof request, "{\"cmd\":\"%s\"}", command);
    cJSON *reply = control_ask(trp_node_control_path(node), request);
    const cJSON *row = NULL;
    const char *found = trpi_json_get_text(reply, "status");
    bool matches = found != NULL && strcmp(found, status) == 0;
    bool any = check == NULL;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "checks"))
    {
        bool row_ok = !ok;
        const char *name = trpi_json_get_text(row, "name");
        const char *text = trpi_json_get_text(row, "detail");
        any = any || (name != NULL && strcmp(name, check) == 0 && text != NULL &&
                      strstr(text, detail) != NULL && trpi_json_get_bool(row, "ok", &row_ok) &&
                      row_ok == ok);
    }
    cJSON_Delete(reply);
    return matches && any;
}

static void
hold_here(void)
{
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&held)) {
        unit_pause();
    }
    atomic_fetch_sub(&inside, 1);
}

static trp_err
holder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    hold_here();
    return TRP_OK;
}

static const trp_behaviour holder = TRP_BEHAVIOUR_INIT("holder", char, holder_receive);

/* All workers of the default dispatcher are in a turn that does not end. */
static void
workers_hold(trp_node *node)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    atomic_store(&held, true);
    for (int i = 0; i < WORKERS; i++) {
        trp_ref ref;
        UNIT_REQUIRE(trp_system_spawn(trp_node_system(node), &holder, &options, &ref) == TRP_OK);
        trp_system_tell(trp_node_system(node), ref, &trp_string_type, "hold", 4);
    }
    UNIT_WAIT(atomic_load(&inside) == WORKERS, 60000);
}

static void
a_node_that_is_up_is_ready_and_alive(void)
{
    trp_node *node = node_up();
    UNIT_TRUE(says(node, "ready", "up", "cluster-membership", true, "Up"));
    UNIT_TRUE(says(node, "ready", "up", "drain", true, ""));
    UNIT_TRUE(says(node, "ready", "up", "default-dispatcher", true, "answers"));
    UNIT_TRUE(says(node, "ready", "up", "inbound", true, "answers"));
    UNIT_TRUE(says(node, "alive", "up", "default-dispatcher", true, ""));
    trp_node_close(node);
}

static void
a_node_that_is_no_member_is_not_ready_and_is_alive(void)
{
    trp_node *node = node_with("log.level=error", NULL);
    UNIT_TRUE(says(node, "ready", "down", "cluster-membership", false, "not a member"));
    UNIT_TRUE(says(node, "ready", "down", "inbound", true, "answers"));
    UNIT_TRUE(says(node, "alive", "up", NULL, true, ""));
    trp_node_close(node);
}

static void
blocked_workers_are_not_ready_at_once_and_not_alive_after_a_while(void)
{
    trp_node *node = node_up();
    workers_hold(node);
    UNIT_TRUE(says(node, "ready", "down", "default-dispatcher", false, "not answered within"));
    UNIT_TRUE(says(node, "ready", "down", "cluster-membership", true, "Up"));
    /* frames are read by another thread then, and their receiver has one of its own */
    UNIT_WAIT(says(node, "ready", "down", "inbound", true, "answers"), 60000);
    UNIT_WAIT(
        says(node, "alive", "down", "default-dispatcher", false, "no worker has ended a turn"),
        60000);
    atomic_store(&held, false);
    UNIT_WAIT(says(node, "alive", "up", NULL, true, ""), 60000);
    UNIT_WAIT(says(node, "ready", "up", NULL, true, ""), 60000);
    trp_node_close(node);
}

static uint32_t
hold_ready(void *user, uint32_t events)
{
    (void)user;
    (void)events;
    hold_here();
    return 0;
}

static void
hold_removed(void *user)
{
    (void)user;
}

static const trpi_watch_events hold_events = { hold_ready, hold_removed };

static void
an_inbound_path_that_no_thread_serves_is_not_ready(void)
{
    trp_node *node = node_up();
    trpi_poller *poller = NULL;
    trpi_watch *watch = NULL;
    UNIT_REQUIRE(trpi_system_poller(trp_node_system(node), &poller) == TRP_OK);
    UNIT_REQUIRE(trpi_watch_new(poller, -1, &hold_events, NULL, &watch) == TRP_OK);
    UNIT_TRUE(says(node, "ready", "up", "inbound", true, "answers"));
    workers_hold(node);
    trpi_watch_again(watch, TRPI_NET_IN); /* the thread that helps out is held, too */
    UNIT_WAIT(atomic_load(&inside) == WORKERS + 1, 60000);
    UNIT_TRUE(says(node, "ready", "down", "inbound", false, "not answered within"));
    UNIT_WAIT(says(node, "alive", "down", NULL, true, ""), 60000); /* without that thread's looks */
    atomic_store(&held, false);
    UNIT_WAIT(says(node, "ready", "up", NULL, true, ""), 60000);
    trpi_watch_remove(watch);
    trp_node_close(node);
}

static atomic_bool task_runs;
static _Atomic uint64_t task_number;

static void
task_wait(void *arg, uint64_t task)
{
    (void)arg;
    atomic_store(&task_number, task);
    atomic_store(&task_runs, true);
}

static void
a_node_that_was_told_to_leave_is_not_ready_though_it_is_up(void)
{
    trp_node *node = node_up();
    uint64_t task = 0;
    atomic_store(&task_runs, false);
    UNIT_REQUIRE(trp_shutdown_add(trp_node_system(node), TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND, "wait",
                                  task_wait, NULL, &task) == TRP_OK);
    trp_node_leave(node);
    UNIT_WAIT(atomic_load(&task_runs), 60000);
    UNIT_TRUE(says(node, "ready", "down", "drain", false, "told to leave"));
    UNIT_TRUE(says(node, "ready", "down", "cluster-membership", true, "Up"));
    UNIT_TRUE(says(node, "alive", "up", NULL, true, ""));
    trp_shutdown_done(trp_node_system(node), atomic_load(&task_number), TRP_OK);
    closes(node, TRP_NODE_LEFT);
}

UNIT_BEGIN("health")
UNIT(a_node_that_is_up_is_ready_and_alive)
UNIT(a_node_that_is_no_member_is_not_ready_and_is_alive)
UNIT(blocked_workers_are_not_ready_at_once_and_not_alive_after_a_while)
UNIT(an_inbound_path_that_no_thread_serves_is_not_ready)
UNIT(a_node_that_was_told_to_leave_is_not_ready_though_it_is_up)
UNIT_END
