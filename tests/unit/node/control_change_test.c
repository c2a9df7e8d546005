/* control_change_test.c - leave and down: the members that an order reaches, and its answer. */
#include <inttypes.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>

#include <troupe/shutdown.h>

#include "cluster/node/control_change.h"
#include "tests/unit/node/inside.h"

#define QUICK "cluster.gossip-interval=20ms", "cluster.leader-actions-interval=20ms"
#define SUSPICIOUS                                                                                 \
    "cluster.failure-detector.heartbeat-interval=50ms",                                            \
        "cluster.failure-detector.acceptable-heartbeat-pause=200ms",                               \
        "cluster.failure-detector.min-std-deviation=20ms"

static char control_path[128];

#define CONTROLLED                                                                                 \
    "cluster.control-socket=on", (socket_setting(control_path, sizeof control_path), control_path)

/* Ask the node; gives the reply (cJSON_Delete), returns its exit code. */
static int
asked(const trp_node *node, cJSON **ret_reply, const char *format, ...)
{
    char request[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(request, sizeof request, format, list);
    va_end(list);
    *ret_reply = control_ask(trp_node_control_path(node), request);
    UNIT_TRUE(*ret_reply != NULL);
    const cJSON *code = cJSON_GetObjectItemCaseSensitive(*ret_reply, "exit");
    return code ? (int)cJSON_GetNumberValue(code) : 0;
}

/* An order for a member: its exit code. */
static int
ordered(const trp_node *node, const char *command, uint64_t uid)
{
    cJSON *reply;
    int code = asked(node, &reply, "{\"cmd\":\"%s\",\"member\":\"%016" PRIx64 "\",\"wait\":false}",
                     command, uid);
    cJSON_Delete(reply);
    return code;
}

/* Of this one incarnation, if it is unreachable: how many were downed, or less the exit code. */
static int
unreachables_downed(const trp_node *node, uint64_t uid)
{
    cJSON *reply;
    int code = asked(node, &reply, "{\"cmd\":\"down\",\"uids\":[\"%" PRIu64 "\"]}", uid);
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(reply, "nodes"));
    cJSON_Delete(reply);
    return code == 0 ? count : -code;
}

/* The member of that uid as node sees it; without a status: there is none. */
static trp_member
seen_by(trp_node *node, uint64_t uid)
{
    trp_member members[8] = { { .status = 0 } };
    size_t count = 0;
    UNIT_EQUAL(trp_cluster_members(trp_node_system(node), members, 8, &count), TRP_OK);
    for (size_t i = 0; i < count; i++) {
        if (members[i].uid == uid) {
            return members[i];
        }
    }
    return (trp_member){ .status = 0 };
}

static uint64_t
uid_of(trp_node *node)
{
    trp_member self = { .status = 0 };
    UNIT_EQUAL(trp_cluster_self(trp_node_system(node), &self), TRP_OK);
    return self.uid;
}

/* ---- the members that an order reaches ------------------------------------------------------- */

/* CLI-03, CLI-04: a silent member keeps the view from converging, so the previous incarnation of a
 * restarted node is still there, Down, beside the new one. */
static void
orders_by_uid_reach_that_incarnation_and_no_other(void)
{
    char port[64];
    const char *settings[] = { "cluster.seed-nodes=self", QUICK, SUSPICIOUS, CONTROLLED, NULL };
    const char *more[] = { QUICK, SUSPICIOUS, port, NULL };
    trp_node *first = up(settings);
    snprintf(port, sizeof port, "remote.port=0");
    trp_node *silent = up_beside(first, more), *old = up_beside(first, more);
    uint64_t silent_uid = uid_of(silent), old_uid = uid_of(old);
    snprintf(port, sizeof port, "remote.port=%s", strrchr(trp_node_address(old), ':') + 1);
    trp_node_close(silent);
    trp_node_close(old);
    trp_node *new = open_beside(first, more);
    uint64_t new_uid = uid_of(new);
    UNIT_WAIT(seen_by(first, new_uid).status == TRP_MEMBER_JOINING, 60000);
    UNIT_EQUAL(seen_by(first, old_uid).status, TRP_MEMBER_DOWN);

    UNIT_EQUAL(ordered(first, "down", old_uid), 0);
    UNIT_EQUAL(seen_by(first, new_uid).status, TRP_MEMBER_JOINING);
    UNIT_EQUAL(ordered(first, "leave", old_uid), TRPI_CTL_EXIT_NO);
    UNIT_EQUAL(seen_by(first, new_uid).status, TRP_MEMBER_JOINING);

    /* of those that are unreachable, the ones that a plan has named */
    UNIT_WAIT(!seen_by(first, silent_uid).reachable, 60000);
    UNIT_EQUAL(unreachables_downed(first, new_uid), 0);
    UNIT_EQUAL(seen_by(first, silent_uid).status, TRP_MEMBER_UP);
    UNIT_EQUAL(unreachables_downed(first, silent_uid), 1); /* waits until it is gone */
    UNIT_EQUAL(seen_by(first, silent_uid).status, 0);
    UNIT_WAIT(own_status(new) == TRP_MEMBER_UP, 60000);
    UNIT_EQUAL(ordered(first, "down", old_uid), TRPI_CTL_EXIT_NOT_FOUND);
    trp_node_close(new);
    trp_node_close(first);
}

/* ---- an order that was taken back ------------------------------------------------------------ */

static _Atomic bool stands, let_go;

/* On the cluster's thread: all orders wait behind it. */
static void
stand_still(void *arg, trp_err err)
{
    (void)arg;
    (void)err;
    atomic_store(&stands, true);
    while (!atomic_load(&let_go)) {
        sched_yield();
    }
}

static void
cluster_stops(trp_node *node)
{
    atomic_store(&stands, false);
    atomic_store(&let_go, false);
    UNIT_EQUAL(trpi_cluster_leave(trpi_cluster_of(trp_node_system(node)), "troupe.tcp://x@none:1",
                                  0, stand_still, NULL),
               TRP_OK);
    UNIT_WAIT(atomic_load(&stands), 60000);
}

/* Returns when it has come to what was ordered meanwhile. */
static void
cluster_goes_on(trp_node *node)
{
    atomic_store(&let_go, true);
    for (int i = 0; i < 20; i++) {
        UNIT_EQUAL(trp_cluster_down(trp_node_system(node), "troupe.tcp://x@none:1"), TRP_ENOENT);
        sched_yield();
    }
}

/* Order, and hang up when the node has read it. */
static void
order_and_hang_up(const trp_node *node, const char *request)
{
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    int fd = -1, unread = -1;
    UNIT_REQUIRE(trpi_ctl_connect(trp_node_control_path(node), 60000, &fd) == TRP_OK);
    trpi_ctl_header_encode(header, (uint32_t)strlen(request));
    UNIT_EQUAL(send(fd, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    UNIT_EQUAL(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    UNIT_WAIT(ioctl(fd, SIOCOUTQ, &unread) == 0 && unread == 0, 60000);
    close(fd);
}

/* CLI-03 */
static void
an_order_that_was_taken_back_is_never_carried_out(void)
{
    static const char *const commands[] = { "down", "leave" };
    const char *settings[] = { "cluster.seed-nodes=self", QUICK, CONTROLLED, NULL };
    trp_node *first = up(settings), *other = up_beside(first, NULL);
    uint64_t uid = uid_of(other);
    UNIT_WAIT(seen_by(first, uid).status == TRP_MEMBER_UP, 60000);
    for (size_t i = 0; i < 2; i++) {
        char request[256];
        cJSON *reply;
        snprintf(request, sizeof request, "{\"cmd\":\"%s\",\"member\":\"%016" PRIx64 "\"}",
                 commands[i], uid);
        cluster_stops(first);
        order_and_hang_up(first, request);
        cluster_goes_on(first);
        UNIT_EQUAL(seen_by(first, uid).status, TRP_MEMBER_UP);

        cluster_stops(first);
        UNIT_EQUAL(asked(first, &reply,
                         "{\"cmd\":\"%s\",\"member\":\"%016" PRIx64 "\",\"timeoutMs\":400}",
                         commands[i], uid),
                   TRPI_CTL_EXIT_TIMEOUT);
        const char *error = trpi_json_get_text(reply, "error");
        UNIT_TRUE(error != NULL && strstr(error, "the order is dropped") != NULL);
        cJSON_Delete(reply);
        cluster_goes_on(first);
        UNIT_EQUAL(seen_by(first, uid).status, TRP_MEMBER_UP);
    }
    UNIT_EQUAL(ordered(first, "down", uid), 0); /* and one that is wanted is */
    UNIT_WAIT(seen_by(first, uid).status != TRP_MEMBER_UP, 60000);
    trp_node_close(other);
    trp_node_close(first);
}

/* ---- what is waited for ---------------------------------------------------------------------- */

static char told[256]; /* by the call, in short */

static void
note(trpi_call *call, const char *text, bool final)
{
    (void)call;
    (void) final;
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s", text);
}

/* A timeout names a member that is still there, though others were ordered before it. */
static void
the_first_that_is_left_is_waited_for(void)
{
    trpi_view_member rows[3] = { { .m = { .uid = 2, .status = TRP_MEMBER_DOWN } },
                                 { .m = { .uid = 3, .status = TRP_MEMBER_UP } },
                                 { .m = { .uid = 4, .status = TRP_MEMBER_UP, .self = 1 } } };
    trpi_view view = { .members = rows, .count = 3 };
    trpi_departure departures[4] = {
        { .uid = 1, .address = "a", .status = TRP_MEMBER_UP },
        { .uid = 2, .address = "b", .status = TRP_MEMBER_UP },
        { .uid = 3, .address = "c", .status = TRP_MEMBER_UP },
        { .uid = 4, .address = "d", .status = TRP_MEMBER_UP, .self = true }
    };
    trpi_call call = { .emit = note };
    told[0] = '\0';
    UNIT_TRUE(trpi_departures_look(&call, departures, 4, &view, false) == &departures[1]);
    UNIT_TRUE(trpi_departures_look(&call, departures, 1, &view, false) == NULL);
    UNIT_TEXT(told, "{\"progress\":\"b Down\"}"); /* once */
    /* a node that has ended sees no members; a node that sees none has not always ended */
    view.count = 0;
    UNIT_TRUE(trpi_departures_look(&call, departures, 4, &view, false) == &departures[3]);
    UNIT_TRUE(trpi_departures_look(&call, departures, 4, &view, true) == NULL);
}

/* ---- the members that a down order means ----------------------------------------------------- */

#define MANY 600

/* Of so many members the last ones are unreachable. */
static trpi_downs
picked(const trpi_control_request *request, size_t members, size_t unreachable, size_t found)
{
    static trpi_view_member rows[MANY];
    static trpi_departure departures[TRPI_CONTROL_DOWNS_MAX];
    trpi_view view = { .members = rows, .count = members };
    for (size_t i = 0; i < members; i++) {
        rows[i] = (trpi_view_member){
            .m = { .uid = i + 1, .status = TRP_MEMBER_UP, .reachable = i < members - unreachable }
        };
    }
    return trpi_downs_pick(request, &view, found != 0 ? &rows[found - 1] : NULL, departures);
}

static void
of_many_unreachable_ones_all_count_though_one_order_takes_some(void)
{
    trpi_control_request request = { .unreachable = true };
    trpi_downs downs = picked(&request, MANY, 360, 0);
    UNIT_EQUAL(downs.count, TRPI_CONTROL_DOWNS_MAX);
    UNIT_EQUAL(downs.meant, 360);
    UNIT_EQUAL(downs.remaining, 240);
    UNIT_TRUE(!downs.majority);
    downs = picked(&request, MANY, TRPI_CONTROL_DOWNS_MAX, 0);
    UNIT_EQUAL(downs.meant, downs.count);
    UNIT_EQUAL(downs.remaining, MANY - TRPI_CONTROL_DOWNS_MAX);
    UNIT_TRUE(downs.majority);
    downs = picked(&request, MANY, TRPI_CONTROL_DOWNS_MAX + 1, 0);
    UNIT_EQUAL(downs.meant, downs.count + 1);
    UNIT_EQUAL(downs.remaining, MANY - TRPI_CONTROL_DOWNS_MAX - 1);
}

/* Two of five that down the other three one by one keep no majority at any of them. */
static void
a_majority_is_of_those_that_are_reached(void)
{
    trpi_control_request request = { .member = "4" };
    trpi_downs downs = picked(&request, 5, 3, 4);
    UNIT_EQUAL(downs.count, 1);
    UNIT_EQUAL(downs.remaining, 2);
    UNIT_TRUE(!downs.majority);
    downs = picked(&request, 5, 1, 5);
    UNIT_EQUAL(downs.remaining, 4);
    UNIT_TRUE(downs.majority);
    downs = picked(&request, 5, 0, 5); /* a reachable one may be downed, too */
    UNIT_EQUAL(downs.remaining, 4);
}

/* ---- ends of another kind -------------------------------------------------------------------- */

static void
refuses(const trp_node *node, const char *command, int code, const char *words)
{
    cJSON *reply;
    UNIT_EQUAL(asked(node, &reply, "{\"cmd\":\"%s\"}", command), code);
    const char *error = trpi_json_get_text(reply, "error");
    UNIT_TRUE(error != NULL && strstr(error, words) != NULL);
    cJSON_Delete(reply);
}

/* CLI-03 */
static void
who_gave_up_leaving_does_not_say_that_it_has_left(void)
{
    const char *settings[] = { "cluster.seed-nodes=self", "cluster.leave-timeout=100ms", QUICK,
                               CONTROLLED, NULL };
    trp_node *first = up(settings);
    trp_node_close(up_beside(first, NULL)); /* silent: no member can leave */
    refuses(first, "leave", TRPI_CTL_EXIT_TIMEOUT, "longer than cluster.leave-timeout (100");
    closes(first, TRP_NODE_LEAVE_TIMEOUT);
}

static void
hang(void *arg, uint64_t task)
{
    (void)arg;
    (void)task;
}

static void
whose_shutdown_was_cut_does_not_say_that_it_has_left(void)
{
    static const char *const commands[] = { "leave", "shutdown" };
    const char *settings[] = { "cluster.seed-nodes=self",
                               "coordinated-shutdown.phases.service-stop.recover=off",
                               "coordinated-shutdown.phases.service-stop.timeout=10ms",
                               QUICK,
                               CONTROLLED,
                               NULL };
    uint64_t task;
    for (size_t i = 0; i < 2; i++) {
        trp_node *node = up(settings);
        UNIT_EQUAL(trp_shutdown_add(trp_node_system(node), TRP_SHUTDOWN_SERVICE_STOP, "hang", hang,
                                    NULL, &task),
                   TRP_OK);
        refuses(node, commands[i], TRPI_CTL_EXIT_TIMEOUT, "recover is off");
        closes(node, TRP_NODE_SHUTDOWN_CUT);
    }
}

static void *
down_when_it_leaves(void *arg)
{
    trp_node **nodes = arg; /* the node that orders, the node that is to leave */
    UNIT_WAIT(own_status(nodes[1]) == TRP_MEMBER_LEAVING, 60000);
    UNIT_EQUAL(trp_cluster_down(trp_node_system(nodes[0]), trp_node_address(nodes[1])), TRP_OK);
    return NULL;
}

static void
who_is_downed_while_it_leaves_hears_it(void)
{
    const char *quick[] = { "cluster.seed-nodes=self", QUICK, NULL };
    const char *settings[] = { QUICK, CONTROLLED, NULL };
    pthread_t thread;
    trp_node *nodes[2] = { up(quick), NULL };
    nodes[1] = up_beside(nodes[0], settings);
    trp_node_close(up_beside(nodes[0], quick + 1)); /* silent: it stays Leaving */
    UNIT_REQUIRE(pthread_create(&thread, NULL, down_when_it_leaves, nodes) == 0);
    refuses(nodes[1], "leave", TRPI_CTL_EXIT_TIMEOUT, "told to leave, and was downed");
    (void)pthread_join(thread, NULL);
    closes(nodes[1], TRP_NODE_LEAVE_DOWNED);
    trp_node_close(nodes[0]);
}

UNIT_BEGIN("control_change")
UNIT(orders_by_uid_reach_that_incarnation_and_no_other)
UNIT(an_order_that_was_taken_back_is_never_carried_out)
UNIT(the_first_that_is_left_is_waited_for)
UNIT(of_many_unreachable_ones_all_count_though_one_order_takes_some)
UNIT(a_majority_is_of_those_that_are_reached)
UNIT(who_gave_up_leaving_does_not_say_that_it_has_left)
UNIT(whose_shutdown_was_cut_does_not_say_that_it_has_left)
UNIT(who_is_downed_while_it_leaves_hears_it)
UNIT_END
