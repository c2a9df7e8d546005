/* node_end_test.c - a node ends in phases: when it leaves, when it is told to, when it is downed.
 */
#include <troupe/shutdown.h>

#include "cluster/node/node_private.h"
#include "tests/unit/node/inside.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char book[4096]; /* what happened, in order; with lock */

static void
note(const char *text)
{
    pthread_mutex_lock(&lock);
    size_t used = strlen(book);
    snprintf(book + used, sizeof book - used, "%s%s", used ? " " : "", text);
    pthread_mutex_unlock(&lock);
}

static bool
noted(const char *text)
{
    pthread_mutex_lock(&lock);
    bool found = strstr(book, text) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

typedef struct hook {
    trp_node *node;
    const char *name;
    uint64_t task;
} hook;

/* Record this node's status in the cluster while the phase runs. */
static void
hook_run(void *arg, uint64_t task)
{
    hook *h = arg;
    char text[64];
    snprintf(text, sizeof text, "%s=%s/%d", h->name, trp_member_status_name(own_status(h->node)),
             (int)trp_shutdown_reason_get(trp_node_system(h->node)));
    note(text);
    trp_shutdown_done(trp_node_system(h->node), task, TRP_OK);
}

static void
hook_hang(void *arg, uint64_t task)
{
    (void)task;
    note(((hook *)arg)->name);
}

static void
hook_add(hook *h, trp_node *node, const char *phase, trp_shutdown_fn fn)
{
    h->node = node;
    h->name = phase;
    UNIT_EQUAL(trp_shutdown_add(trp_node_system(node), phase, phase, fn, h, &h->task), TRP_OK);
}

static void
a_leaving_node_hands_over_while_it_is_exiting_and_ends_behind_the_last_phase(void)
{
    static const char *const phases[] = { TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND,
                                          TRP_SHUTDOWN_BEFORE_CLUSTER_SHUTDOWN,
                                          TRP_SHUTDOWN_CLUSTER_EXITING,
                                          TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE };
    hook hooks[4];
    book[0] = '\0';
    trp_node *first = up(alone), *second = up_beside(first, NULL);
    for (size_t i = 4; i-- > 0;) {
        hook_add(&hooks[i], second, phases[i], hook_run);
    }
    trp_node_leave(second);
    trp_node_leave(second);
    closes(second, TRP_NODE_LEFT);
    UNIT_TRUE(noted("before-service-unbind=Up/1 before-cluster-shutdown=Up/1 cluster-exiting="));
    UNIT_TRUE(noted("before-actor-system-terminate=Exiting/1") ||
              noted("before-actor-system-terminate=Removed/1") ||
              noted("before-actor-system-terminate=?/1"));
    /* the task of the library and this one begin together: this node may still be Leaving */
    UNIT_TRUE(noted("cluster-exiting=Exiting/1") || noted("cluster-exiting=Leaving/1"));
    size_t members = 0;
    UNIT_WAIT(trp_cluster_members(trp_node_system(first), NULL, 0, &members) == TRP_OK &&
                  members == 1,
              60000);
    closes((trp_node_leave(first), first), TRP_NODE_LEFT);
}

/* node-shutdown-Z1: a hook of cluster-exiting that takes its time keeps the member in the others'
 * view */
static void
it_is_removed_only_when_its_hand_over_is_done(void)
{
    hook h;
    size_t members = 0;
    book[0] = '\0';
    trp_node *first = up(alone), *second = up_beside(first, NULL);
    hook_add(&h, second, TRP_SHUTDOWN_CLUSTER_EXITING, hook_hang);
    UNIT_EQUAL(trp_cluster_leave(trp_node_system(first), trp_node_address(second)), TRP_OK);
    UNIT_WAIT(own_status(second) == TRP_MEMBER_EXITING && noted("cluster-exiting"), 60000);
    UNIT_EQUAL(trp_shutdown_reason_get(trp_node_system(second)), TRP_SHUTDOWN_LEAVING);
    UNIT_EQUAL(trp_cluster_members(trp_node_system(first), NULL, 0, &members), TRP_OK);
    UNIT_EQUAL(members, 2);
    trp_shutdown_done(trp_node_system(second), h.task, TRP_OK);
    closes(second, TRP_NODE_LEFT);
    closes((trp_node_leave(first), first), TRP_NODE_LEFT);
}

static void
a_downed_node_runs_its_phases_too(void)
{
    hook h;
    book[0] = '\0';
    trp_node *first = up(alone), *second = up_beside(first, NULL);
    hook_add(&h, second, TRP_SHUTDOWN_SERVICE_STOP, hook_run);
    UNIT_EQUAL(trp_cluster_down(trp_node_system(first), trp_node_address(second)), TRP_OK);
    closes(second, TRP_NODE_DOWNED);
    UNIT_TRUE(noted("/3")); /* TRP_SHUTDOWN_DOWNED */
    static const char *const extra[] = { "cluster.run-coordinated-shutdown-when-down=off", NULL };
    trp_node *third = up_beside(first, extra);
    hook_add(&h, third, TRP_SHUTDOWN_SERVICE_STOP, hook_hang);
    book[0] = '\0';
    UNIT_EQUAL(trp_cluster_down(trp_node_system(first), trp_node_address(third)), TRP_OK);
    closes(third, TRP_NODE_DOWNED);
    UNIT_TEXT(book, "");
    closes((trp_node_leave(first), first), TRP_NODE_LEFT);
}

/* node-shutdown-Z4: 76 would be started again; the order came by the program, or by another
 * member */
static void
who_is_told_to_leave_and_is_downed_meanwhile_ends_with_75(void)
{
    char text[TRPI_NODE_END_BYTES];
    for (int by_another = 0; by_another < 2; by_another++) {
        hook h;
        book[0] = '\0';
        trp_node *first = up(alone), *second = up_beside(first, NULL);
        hook_add(&h, second, TRP_SHUTDOWN_CLUSTER_EXITING, hook_hang);
        if (by_another) {
            UNIT_EQUAL(trp_cluster_leave(trp_node_system(first), trp_node_address(second)), TRP_OK);
        } else {
            trp_node_leave(second);
        }
        UNIT_WAIT(own_status(second) == TRP_MEMBER_EXITING && noted("cluster-exiting"), 60000);
        UNIT_EQUAL(trp_cluster_down(trp_node_system(first), trp_node_address(second)), TRP_OK);
        UNIT_WAIT(trpi_node_fate(second) == TRP_NODE_LEAVE_DOWNED, 60000);
        UNIT_EQUAL(trpi_node_end_tell(second, TRP_NODE_LEAVE_DOWNED, text), 75);
        trp_shutdown_done(trp_node_system(second), h.task, TRP_OK);
        closes(second, TRP_NODE_LEAVE_DOWNED);
        closes((trp_node_leave(first), first), TRP_NODE_LEFT);
    }
}

/* node-shutdown-Z2 */
static void
what_hangs_is_given_up_and_the_phases_behind_it_run(void)
{
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.leave-timeout=300ms", NULL };
    hook hang, last;
    book[0] = '\0';
    trp_node *node = up(extra);
    hook_add(&hang, node, TRP_SHUTDOWN_CLUSTER_LEAVE, hook_hang);
    hook_add(&last, node, TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE, hook_run);
    trp_node_leave(node);
    trp_node_end end = (trp_node_end)0;
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_TRUE(noted("cluster-leave before-actor-system-terminate="));
    trp_node_close(node);
}

/* Ordered for all, and then not carried out: the mark does not stay for ever. */
static void
an_end_of_all_that_was_given_up_is_none(void)
{
    static const char *const extra[] = { "cluster.seed-nodes=self", "cluster.leave-timeout=300ms",
                                         NULL };
    for (int given_up = 0; given_up < 2; given_up++) {
        trp_node *node = up(given_up ? extra : alone);
        trp_node_end end;
        UNIT_FALSE(trpi_node_ends_with_all(node));
        uint64_t before_ms = unit_now_ms();
        trpi_node_prepare_end(node, 0);
        bool marked = trpi_node_ends_with_all(node);
        /* or its time is over; whole milliseconds of two clocks */
        UNIT_TRUE(marked || (given_up && unit_now_ms() - before_ms >= 299));
        UNIT_WAIT(!given_up || !trpi_node_ends_with_all(node), 60000);
        trp_node_leave(node);
        UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
        UNIT_EQUAL(trp_shutdown_reason_get(trp_node_system(node)),
                   given_up ? TRP_SHUTDOWN_PROGRAM : TRP_SHUTDOWN_CLUSTER);
        trp_node_close(node);
    }
}

static _Atomic int gate, finished, fini_calls;
static trp_node *used;

/* It ends at last, when the node has given it up. */
static void
open_gate(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (strstr(line->text, "the node leaks") != NULL) {
        atomic_store(&gate, 1);
    }
}

static trp_err
hold(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    while (atomic_load(&gate) == 0) {
        unit_pause();
    }
    trp_log(ctx, TRP_LOG_WARNING, "late, on %s", trp_node_address(used));
    atomic_store(&finished, 1);
    return TRP_OK;
}
static const trp_behaviour holder = TRP_BEHAVIOUR_INIT("holder", char, hold);

static void
count_fini(void *state)
{
    (void)state;
    atomic_fetch_add(&fini_calls, 1);
}

/* An actor that runs on may use the node and its plugin: both stay. */
static void
what_actors_use_stays_when_they_do_not_end(void)
{
    static const trp_plugin plugin = { TRP_PLUGIN_ABI, 0, "held", NULL, count_fini };
    static const char *const extra[] = {
        "coordinated-shutdown.phases.actor-system-terminate.timeout=50ms", NULL
    };
    for (int stuck = 0; stuck < 2; stuck++) {
        trp_node_error error = { "" };
        trp_ref ref;
        atomic_store(&gate, !stuck);
        atomic_store(&finished, 0);
        atomic_store(&fini_calls, 0);
        node_log = open_gate;
        UNIT_REQUIRE(node_open(stuck ? extra : NULL, &used, &error) == TRP_OK);
        node_log = quiet;
        used->plugins[used->plugins_count].begun = true;
        used->plugins[used->plugins_count++].plugin = &plugin;
        UNIT_EQUAL(trp_system_spawn(trp_node_system(used), &holder, NULL, &ref), TRP_OK);
        trp_system_tell(trp_node_system(used), ref, &trp_string_type, "x", 1);
        UNIT_WAIT(stuck || atomic_load(&finished) == 1, 60000);
        trp_node_close(used);
        atomic_store(&gate, 1); /* if the line has found no logger */
        UNIT_WAIT(atomic_load(&finished) == 1, 60000);
        UNIT_EQUAL(atomic_load(&fini_calls), !stuck);
        UNIT_TRUE(!stuck || strcmp(trp_node_config_get(used, "system", 0), "demo") == 0);
    }
}

/* The phases behind are left out, those of the membership too: it has not left, and no timeout of
 * its leaving has passed. */
static void
a_crucial_phase_that_is_late_is_named_as_the_reason(void)
{
    const char *extra[] = { "cluster.seed-nodes=self",
                            "coordinated-shutdown.phases.service-stop.recover=off",
                            "coordinated-shutdown.phases.service-stop.timeout=100ms", NULL };
    hook hang;
    book[0] = '\0';
    trp_node *node = up(extra);
    hook_add(&hang, node, TRP_SHUTDOWN_SERVICE_STOP, hook_hang);
    closes((trp_node_leave(node), node), TRP_NODE_SHUTDOWN_CUT);
}

static void
wrong_phases_are_refused_before_the_node_starts(void)
{
    const char *extra[] = { "coordinated-shutdown.phases.service-stp.timeout=1s", NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_EQUAL(node_open(extra, &node, &error), TRP_ECONFIG);
    UNIT_TRUE(strstr(error.text, "did you mean 'service-stop'?") != NULL);
}

/* Two programs without a cluster: one was given up by the other while it stood still, and ends,
 * because it is to */
static void
who_is_quarantined_ends_if_it_is_to(void)
{
    const char *end[] = { "remote.when-quarantined=end", NULL };
    trp_node *first = NULL, *second = NULL;
    trp_node_error error = { "" };
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref;
    UNIT_REQUIRE(node_open(end, &first, &error) == TRP_OK);
    UNIT_REQUIRE(node_open(NULL, &second, &error) == TRP_OK);
    snprintf(path, sizeof path, "%s/system", trp_node_address(second));
    UNIT_EQUAL(trp_system_resolve(trp_node_system(first), path, 60000, &ref), TRP_OK);
    trpi_node_id id = { *trpi_remote_address(first->remote),
                        trpi_system_self(trp_node_system(first))->uid };
    trpi_remote_quarantine(second->remote, &id, "watched node does not answer");
    UNIT_WAIT(trp_system_resolve(trp_node_system(first), path, 20000, &ref) != TRP_OK, 60000);
    closes(first, TRP_NODE_DOWNED);
    closes((trp_node_leave(second), second), TRP_NODE_LEFT);
}

UNIT_BEGIN("node_end")
UNIT(a_leaving_node_hands_over_while_it_is_exiting_and_ends_behind_the_last_phase)
UNIT(it_is_removed_only_when_its_hand_over_is_done)
UNIT(a_downed_node_runs_its_phases_too)
UNIT(who_is_told_to_leave_and_is_downed_meanwhile_ends_with_75)
UNIT(what_hangs_is_given_up_and_the_phases_behind_it_run)
UNIT(an_end_of_all_that_was_given_up_is_none)
UNIT(what_actors_use_stays_when_they_do_not_end)
UNIT(a_crucial_phase_that_is_late_is_named_as_the_reason)
UNIT(wrong_phases_are_refused_before_the_node_starts)
UNIT(who_is_quarantined_ends_if_it_is_to)
UNIT_END
