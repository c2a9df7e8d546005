/* control_shutdown.c - the end of the whole cluster: every node is told that all nodes end, then
 * all leave.
 *
 * Shape.   prepare, carried to each other member: it sends ClusterShuttingDown to its event
 *          streams, and its own shutdown will have the reason TRP_SHUTDOWN_CLUSTER: it need not
 *          hand over work.
 *          Then the others are ordered to leave, all at one time; this node is the last.
 *          The ordering node may fail meanwhile. The others then drop the preparation after its
 *          time: a node that goes on, and ends later, hands over its work.
 *          Akka Management's Prepare-for-full-shutdown is the first half alone, for longer: whoever
 *          asked ends the nodes.
 * Tests.   tests/system/shutdown.sh, tests/unit/node/node_end_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"
#include "pattern/pattern.h"

#define PREPARE_MS 2000u /* for one member to answer, at most */
#define KEEP_MS 300000u  /* a preparation is kept whose nodes are ended from outside */

/* How long after this request the order to leave may come: each member is prepared before the first
 * one is ordered. */
static uint64_t
mark_ms(trp_node *node)
{
    size_t members = 0;
    if (trp_cluster_members(node->system, NULL, 0, &members) != TRP_OK || members == 0) {
        members = 1; /* the membership has ended: no order follows */
    }
    return (uint64_t)trpi_config_int(node->config, "cluster.leave-timeout") +
           (members - 1) * (uint64_t)PREPARE_MS;
}

void
trpi_node_prepare_end(trp_node *node, uint32_t keep_ms)
{
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(node->system));
    uint64_t mark = mark_ms(node), kept_ms = keep_ms > mark ? keep_ms : mark;
    uint64_t until_ns = now_ns + kept_ms * 1000000u;
    pthread_mutex_lock(&node->lock);
    bool first = now_ns >= node->cluster_ends_ns;
    node->cluster_ends_ns = until_ns;
    pthread_mutex_unlock(&node->lock);
    trpi_singletons_cluster_ends(node->system, kept_ms);
    if (first) {
        trp_system_log(node->system, TRP_LOG_INFO, "node", "the whole cluster is being shut down");
        trpi_node_events_cluster_ends(node);
    }
}

bool
trpi_node_ends_with_all(trp_node *node)
{
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(node->system));
    pthread_mutex_lock(&node->lock);
    bool marked = node->cluster_ends_ns != 0, all = now_ns < node->cluster_ends_ns;
    node->cluster_ends_ns = all ? node->cluster_ends_ns : 0;
    pthread_mutex_unlock(&node->lock);
    if (marked && !all) {
        trp_system_log(node->system, TRP_LOG_WARNING, "node",
                       "the shutdown of the whole cluster was given up: when this node ends, it "
                       "hands over its work");
    }
    return all;
}

/* Time for each member to answer: half of the call's time is for them to leave. A member that does
 * not answer (it accepts no commands of other nodes, or stands still) must not use up the call. */
static uint32_t
prepare_ms(const trpi_call *call, size_t members)
{
    size_t share_ms = trpi_call_left_ms(call) / 2 / (members > 0 ? members : 1);
    return share_ms < PREPARE_MS ? (uint32_t)share_ms : PREPARE_MS;
}

/* Prepare one other member. One that cannot be prepared leaves like any other. keep_ms: as in
 * trpi_node_prepare_end(). */
static bool
member_prepare(trp_node *node, trpi_call *call, const char *member, uint32_t limit_ms,
               uint32_t keep_ms)
{
    char text[128];
    cJSON *reply = NULL;
    trpi_address address;
    (void)snprintf(text, sizeof text,
                   "{\"v\":1,\"cmd\":\"shutdown\",\"prepare\":true,\"keepMs\":%" PRIu32
                   ",\"timeoutMs\":%u}",
                   keep_ms, PREPARE_MS);
    trp_err err = trpi_address_parse(member, &address, NULL, NULL);
    if (err == TRP_OK) {
        err = trpi_carry_ask(node->carry, &address, text, limit_ms, call, &reply);
    }
    bool told = err == TRP_OK && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    cJSON_Delete(reply);
    trpi_call_progress(call,
                       told ? "%s is prepared for the shutdown"
                            : "%s could not be prepared for the shutdown",
                       member);
    return told;
}

/* Return the first unreachable member, which would keep the others from leaving; "": none. */
static const char *
unreachable_of(const trpi_view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        if (!view->members[i].m.reachable) {
            return view->members[i].m.address;
        }
    }
    return "";
}

/* Make the list of members; NULL: refused. */
static cJSON *
plan_make(trp_node *node, trpi_call *call, const trpi_view *view)
{
    char hint[TRP_ADDRESS_BYTES + 16];
    const char *away = unreachable_of(view);
    if (away[0] != '\0') {
        (void)snprintf(hint, sizeof hint, "troupe down %s", away);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, hint,
                              "%s is unreachable: no member can leave while it is", away);
        return NULL;
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "node", node->address);
    cJSON *list = trpi_call_plan(call, reply);
    ok = ok && list != NULL;
    for (size_t i = 0; ok && i < view->count; i++) {
        ok = cJSON_AddItemToArray(list, cJSON_CreateString(view->members[i].m.address));
    }
    if (!ok) {
        trpi_call_answer_if(call, ok, reply);
        return NULL;
    }
    return reply;
}

static trp_err
order_all(trp_node *node, trpi_call *call, const trpi_view *view)
{
    trp_err err = TRP_OK;
    uint32_t limit_ms = prepare_ms(call, view->count);
    for (size_t i = 0; i < view->count; i++) {
        if (!view->members[i].m.self) {
            (void)member_prepare(node, call, view->members[i].m.address, limit_ms, 0);
        }
    }
    err = trpi_call_wanted(call);
    if (err != TRP_OK) {
        return err; /* the prepared ones drop it after a while (trpi_node_prepare_end) */
    }
    trpi_call_go_on(call); /* a part of the cluster must not stay */
    trpi_node_prepare_end(node, 0);
    for (size_t i = 0; i < view->count && err == TRP_OK; i++) {
        if (!view->members[i].m.self) {
            err = trp_cluster_leave(node->system, view->members[i].m.address);
            err = err == TRP_ENOENT || err == TRP_ESTATE ? TRP_OK : err; /* gone, or going */
        }
    }
    return err;
}

/* Count the other members that are left, and give the first of them in name; SIZE_MAX: no
 * memory. */
static size_t
others_left(trp_node *node, char name[TRP_ADDRESS_BYTES])
{
    trpi_view view;
    size_t left = 0;
    if (trpi_view_take(node, &view) != TRP_OK) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < view.count; i++) {
        if (!view.members[i].m.self && left++ == 0) {
            memcpy(name, view.members[i].m.address, TRP_ADDRESS_BYTES);
        }
    }
    trpi_view_fini(&view);
    return left;
}

/* true: this node has ended, or (self false) all others have. false: answered. */
static bool
ends_wait(trp_node *node, trpi_call *call, bool self)
{
    char name[TRP_ADDRESS_BYTES] = "", text[512];
    uint32_t reports = 0;
    size_t told = 0;
    for (;;) {
        pthread_mutex_lock(&node->lock);
        trp_node_end end = node->end;
        pthread_mutex_unlock(&node->lock);
        bool ended = end != 0;
        while (self && trpi_shutdown_report(node->system, reports, text, sizeof text)) {
            trpi_call_progress(call, "phase %s", text);
            reports++;
        }
        if (ended && end != TRP_NODE_LEFT) {
            trpi_node_refuse_end(node, call, end);
            return false;
        }
        size_t left = self ? (ended ? 0 : 1) : others_left(node, name);
        if (left == 0 || ended) {
            return true;
        }
        if (!self && left != told) {
            trpi_call_progress(call, "%zu other nodes have not left yet, such as %s", left, name);
            told = left;
        }
        if (trpi_call_left_ms(call) == 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "troupe why",
                                  self ? "%s has not ended yet; it goes on"
                                       : "%s has not left yet; the nodes go on leaving",
                                  self ? node->address : name);
            return false;
        }
        if (!trpi_call_look_again(call)) {
            return false;
        }
    }
}

static void
shutdown_answer(trpi_call *call, cJSON *reply)
{
    (void)trpi_call_add_elapsed(call, reply); /* without memory: absent */
    trpi_call_answer(call, reply);
}

/* Prepare all members, this one last; none is ended. */
static void
serve_prepare_all(trp_node *node, trpi_call *call, const trpi_view *view)
{
    uint32_t limit_ms = prepare_ms(call, view->count);
    const char *missed = NULL;
    size_t missed_count = 0;
    cJSON *reply = plan_make(node, call, view);
    if (reply == NULL) {
        return;
    }
    for (size_t i = 0; i < view->count; i++) {
        const char *member = view->members[i].m.address;
        if (!view->members[i].m.self && !member_prepare(node, call, member, limit_ms, KEEP_MS)) {
            missed = missed_count++ == 0 ? member : missed;
        }
    }
    trpi_node_prepare_end(node, KEEP_MS);
    if (missed == NULL) {
        shutdown_answer(call, reply);
        return;
    }
    cJSON_Delete(reply);
    trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe shutdown",
                          "%zu members could not be prepared, such as %s: they hand over their "
                          "work when they end; the others are prepared",
                          missed_count, missed);
}

void
trpi_node_serve_shutdown(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (call->request.prepare && !call->request.everywhere) {
        trpi_node_prepare_end(node, call->request.keep_ms);
        shutdown_answer(call, trpi_call_reply());
        return;
    }
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    if (call->request.prepare) {
        serve_prepare_all(node, call, &view);
        trpi_view_fini(&view);
        return;
    }
    cJSON *reply = plan_make(node, call, &view);
    trp_err err = TRP_OK;
    if (reply != NULL && !call->request.dry_run) {
        err = order_all(node, call, &view);
    }
    trpi_view_fini(&view);
    if (reply == NULL) {
        return;
    }
    if (err != TRP_OK) {
        cJSON_Delete(reply);
        trpi_call_refuse_order(call, err, "shutdown");
        return;
    }
    if (!call->request.dry_run) {
        trpi_call_confirm(call);
        bool gone = !call->request.wait || ends_wait(node, call, false);
        if (gone) {                         /* else this node stays, and can report the problem */
            trpi_node_prepare_end(node, 0); /* the others may have used up the time */
            trp_node_leave(node);
        }
        if (!gone || (call->request.wait && !ends_wait(node, call, true))) {
            cJSON_Delete(reply);
            return;
        }
    }
    shutdown_answer(call, reply);
}
