/* node_end_test.c - a node ends in phases: when it leaves, when it is told to, when it is downed.
 */
#include <troupe/shutdown.h>

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

static uint32_t
own_status(trp_node *node)
{
    trp_member self;
    return trp_cluster_self(trp_node_system(node), &self) == TRP_OK ? self.status : 0;
}

typedef struct hook {
    trp_node *node;
    const char *name;
    uint64_t task;
} hook;

/* What this node is in the cluster while the phase runs. */
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

static trp_node *
up(const char *const *extra)
{
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

/* A second member, joined through the first. */
static trp_node *
up_beside(const trp_node *first, const char *setting)
{
    char seed[512];
    snprintf(seed, sizeof seed, "cluster.seed-nodes=%s", trp_node_address(first));
    const char *extra[] = { seed, setting, NULL };
    return up(extra);
}

static const char *const alone[] = { "cluster.seed-nodes=self", NULL };

static void
closes(trp_node *node, trp_node_end want)
{
    trp_node_end end = (trp_node_end)0;
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_EQUAL(end, want);
    trp_node_close(node);
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

/* Z1: a hook of cluster-exiting that takes its time keeps the member in the others' view */
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
    trp_node *third = up_beside(first, "cluster.run-coordinated-shutdown-when-down=off");
    hook_add(&h, third, TRP_SHUTDOWN_SERVICE_STOP, hook_hang);
    book[0] = '\0';
    UNIT_EQUAL(trp_cluster_down(trp_node_system(first), trp_node_address(third)), TRP_OK);
    closes(third, TRP_NODE_DOWNED);
    UNIT_TEXT(book, "");
    closes((trp_node_leave(first), first), TRP_NODE_LEFT);
}

/* Z2 */
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

static void
wrong_phases_are_refused_before_the_node_starts(void)
{
    const char *extra[] = { "coordinated-shutdown.phases.service-stp.timeout=1s", NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_EQUAL(node_open(extra, &node, &error), TRP_ECONFIG);
    UNIT_TRUE(strstr(error.text, "did you mean 'service-stop'?") != NULL);
}

UNIT_BEGIN("node_end")
UNIT(a_leaving_node_hands_over_while_it_is_exiting_and_ends_behind_the_last_phase)
UNIT(it_is_removed_only_when_its_hand_over_is_done)
UNIT(a_downed_node_runs_its_phases_too)
UNIT(what_hangs_is_given_up_and_the_phases_behind_it_run)
UNIT(wrong_phases_are_refused_before_the_node_starts)
UNIT_END
