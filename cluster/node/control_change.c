/* control_change.c - leave, down: order the change, then watch the view until it happened.
 *
 * Shape.   Both run on the call's own thread. The cluster actor gets the order, for the incarnation
 *          that was found; the effect is read from the view, as other members see it, and for this
 *          node from how it ends.
 * Not here. join (control_join.c), the end of all (control_shutdown.c).
 * Tests.   tests/unit/node/control_change_test.c, tests/system/cli.sh
 */
#include "cluster/node/control_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/node_private.h"
#include "pattern/pattern.h"

#define PROGRESS_MS 5000u /* the client gets a progress line at least this often */

trpi_cluster_patience
trpi_call_patience(trpi_call *call)
{
    uint32_t left_ms = trpi_call_left_ms(call);
    left_ms = left_ms < TRPI_CONTROL_BEGIN_MS ? left_ms : TRPI_CONTROL_BEGIN_MS;
    return (trpi_cluster_patience){ .begin_ms = left_ms == 0 ? 1 : left_ms,
                                    .is_wanted = trpi_call_is_wanted,
                                    .arg = call };
}

static const trpi_view_member *
member_by_uid(const trpi_view *view, uint64_t uid)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->members[i].m.uid == uid) {
            return &view->members[i];
        }
    }
    return NULL;
}

/* The members that keep the view from converging, as the end of a sentence; "": none is known. */
typedef struct blockers {
    char text[768];
    char unreachable[TRP_ADDRESS_BYTES]; /* the first of them; "": none */
} blockers;

static size_t
blocker_add(blockers *b, size_t count, const char *address)
{
    int more =
        snprintf(b->text + count, sizeof b->text - count, "%s%s", count ? ", " : "", address);
    size_t room = sizeof b->text - count - 1;
    return count + (more > 0 && (size_t)more < room ? (size_t)more : room);
}

/* Find the unreachable members, or, when all are reachable, those that have not seen the present
 * view. */
static void
blockers_find(const trpi_view *view, blockers *ret)
{
    size_t count = 0;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < view->count; i++) {
        const trp_member *m = &view->members[i].m;
        bool counts = m->status != TRP_MEMBER_DOWN && m->status != TRP_MEMBER_EXITING;
        if (counts && !m->reachable) {
            count = blocker_add(ret, count, m->address);
            if (!*ret->unreachable) {
                memcpy(ret->unreachable, m->address, sizeof ret->unreachable);
            }
        }
    }
    for (size_t i = 0; !*ret->unreachable && i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (!v->seen && (v->m.status == TRP_MEMBER_UP || v->m.status == TRP_MEMBER_LEAVING)) {
            count = blocker_add(ret, count, v->m.address);
        }
    }
}

/* ---- waiting for members to go --------------------------------------------------------------- */

static void
phases_tell(trp_node *node, trpi_call *call, trpi_departure *departures, size_t count)
{
    char text[512];
    for (size_t i = 0; i < count; i++) {
        while (departures[i].self &&
               trpi_shutdown_report(node->system, departures[i].reports, text, sizeof text)) {
            departures[i].reports++;
            trpi_call_progress(call, "phase %s", text);
        }
    }
}

const trpi_departure *
trpi_departures_look(trpi_call *call, trpi_departure *departures, size_t count,
                     const trpi_view *view, bool ended)
{
    const trpi_departure *first = NULL;
    for (size_t i = 0; i < count; i++) {
        const trpi_view_member *v = member_by_uid(view, departures[i].uid);
        if (v != NULL && v->m.status != departures[i].status) {
            departures[i].status = v->m.status;
            trpi_call_progress(call, "%s %s", departures[i].address,
                               trp_member_status_name(v->m.status));
        }
        bool gone = departures[i].self ? ended : v == NULL;
        first = first == NULL && !gone ? &departures[i] : first;
    }
    return first;
}

static void
departures_refuse(trpi_call *call, const trpi_departure *first, const blockers *b)
{
    char hint[TRP_ADDRESS_BYTES + 32];
    bool unreachable = *b->unreachable != '\0';
    (void)snprintf(hint, sizeof hint, "troupe down %s", b->unreachable);
    trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, unreachable ? hint : NULL,
                          "%s still %s after %.0f s: waiting for %s%s%s", first->address,
                          trp_member_status_name(first->status), trpi_call_elapsed_ms(call) / 1000,
                          unreachable ? "unreachable " : "", *b->text ? b->text : "the leader",
                          unreachable ? " to be seen or downed"
                          : *b->text  ? " to see it"
                                      : "");
}

/* true: all are gone. false: answered. */
static bool
departures_wait(trp_node *node, trpi_call *call, trpi_departure *departures, size_t count)
{
    blockers b;
    uint64_t told_ms = 0;
    for (;;) {
        trpi_view view;
        if (!trpi_view_take_for(node, call, &view)) {
            return false;
        }
        phases_tell(node, call, departures, count);
        const trpi_departure *left =
            trpi_departures_look(call, departures, count, &view, trpi_node_fate(node) != 0);
        blockers_find(&view, &b);
        trpi_view_fini(&view);
        if (left == NULL) {
            return true;
        }
        if (trpi_call_left_ms(call) == 0) {
            departures_refuse(call, left, &b);
            return false;
        }
        uint64_t now_ms = trpi_call_elapsed_ns(call) / 1000000;
        if (now_ms - told_ms >= PROGRESS_MS) {
            told_ms = now_ms;
            trpi_call_progress(call, "waiting for %s%s%s", *b.unreachable ? "unreachable " : "",
                               *b.text ? b.text : "the leader",
                               *b.unreachable || !*b.text ? "" : " to see it");
        }
        if (!trpi_call_look_again(call)) {
            return false;
        }
    }
}

/* ---- leave ----------------------------------------------------------------------------------- */

bool
trpi_next_crash_add(cJSON *reply, const trpi_cluster_next_crash *cast)
{
    cJSON *object = cJSON_AddObjectToObject(reply, "nextCrash");
    return object != NULL && trpi_json_add_text(object, "strategy", cast->strategy) &&
           trpi_json_add_i64(object, "votes", cast->votes) &&
           trpi_json_add_i64(object, "stopsTheRest", cast->fatal) &&
           trpi_json_add_text(object, "of", cast->fatal > 0 ? cast->first : NULL);
}

/* cast NULL: it is no member. */
static void
leave_answer(trpi_call *call, const char *address, const char *status,
             const trpi_cluster_next_crash *cast)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "node", address) &&
              trpi_json_add_text(reply, "status", status) && trpi_call_add_elapsed(call, reply) &&
              (cast == NULL || trpi_next_crash_add(reply, cast));
    trpi_call_answer_if(call, ok, reply);
}

void
trpi_node_refuse_end(trp_node *node, trpi_call *call, trp_node_end end)
{
    char text[TRPI_NODE_END_BYTES];
    int code = trpi_node_end_tell(node, end, text);
    trpi_call_refuse_text(call, code, NULL, "%s", text);
}

/* Find the member that the request names; false: answered. A node that is no member ends at
 * once. */
static bool
departure_find(trp_node *node, trpi_call *call, trpi_departure *ret_departure)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!trpi_view_take_for(node, call, &view)) {
        return false;
    }
    trp_err err = TRP_OK;
    if (call->request.member && (view.self || strcmp(call->request.member, node->address) != 0)) {
        err = trpi_view_find(&view, call->request.member, &found, &refusal);
    } else {
        found = view.self;
    }
    if (err != TRP_OK) {
        trpi_call_refuse(call, &refusal);
    } else if (!found && trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, "leave");
    } else if (!found) {
        leave_answer(call, node->address, "Removed", NULL);
        trp_node_leave(node);
    } else {
        memset(ret_departure, 0, sizeof *ret_departure);
        ret_departure->uid = found->m.uid;
        ret_departure->self = found->m.self;
        memcpy(ret_departure->address, found->m.address, sizeof ret_departure->address);
    }
    bool go_on = err == TRP_OK && found != NULL;
    trpi_view_fini(&view);
    return go_on;
}

void
trpi_node_serve_leave(trp_node *node, trpi_call *call)
{
    trpi_departure who;
    trpi_cluster_next_crash cast;
    if (!departure_find(node, call, &who)) {
        return;
    }
    bool known = trpi_cluster_next_crash_get(node->cluster, who.uid, &cast) == TRP_OK;
    trp_err err = trpi_call_wanted(call);
    if (who.self && err == TRP_OK) {
        trp_node_leave(node); /* all phases of its shutdown, of which leaving is one */
    } else if (!who.self) {   /* that incarnation: another one may have its address by now */
        trpi_cluster_patience patience = trpi_call_patience(call);
        err = trpi_cluster_leave_and_wait(node->cluster, who.address, who.uid, &patience);
    }
    if (err == TRP_ESTATE && !who.self && trpi_node_fate(node) == 0) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe why",
                              "%s (uid %016" PRIx64 ") is Down: it is removed, and cannot leave",
                              who.address, who.uid);
        return;
    }
    if (err != TRP_OK && err != TRP_ENOENT) { /* it has left meanwhile: the wanted result */
        trpi_call_refuse_order(call, err, "leave");
        return;
    }
    if (!call->request.wait) {
        leave_answer(call, who.address, "Leaving", known ? &cast : NULL);
        return;
    }
    trpi_call_confirm(call);
    if (!departures_wait(node, call, &who, 1)) {
        return;
    }
    trp_node_end end = who.self ? trpi_node_fate(node) : TRP_NODE_LEFT;
    if (end == TRP_NODE_LEFT) {
        leave_answer(call, who.address, "Removed", known ? &cast : NULL);
    } else {
        trpi_node_refuse_end(node, call, end);
    }
}

/* ---- down ------------------------------------------------------------------------------------ */

static bool
down_row_add(cJSON *list, const trpi_view_member *v)
{
    cJSON *row = cJSON_CreateObject();
    bool ok =
        trpi_json_add_text(row, "node", v->m.address) &&
        trpi_json_add_u64_string(row, "nodeUid", v->m.uid) &&
        trpi_json_add_text(row, "status", trp_member_status_name(v->m.status)) &&
        trpi_json_add_bool(row, "reachable", v->m.reachable) &&
        (v->m.reachable ? cJSON_AddNullToObject(row, "unreachableForMs") != NULL
                        : trpi_json_add_i64(row, "unreachableForMs", (int64_t)v->unreachable_ms));
    return trpi_json_append(list, row, ok);
}

/* Does the request mean this member? found: the member of that name, if the request has a name. */
static bool
is_meant(const trpi_control_request *request, const trpi_view_member *v,
         const trpi_view_member *found)
{
    bool named = request->unreachable;
    for (size_t i = 0; i < request->uids_count && !named; i++) {
        named = request->uids[i] == v->m.uid;
    }
    return request->member ? v == found : named && !v->m.reachable;
}

trpi_downs
trpi_downs_pick(const trpi_control_request *request, const trpi_view *view,
                const trpi_view_member *found, trpi_departure *departures)
{
    trpi_downs downs = { 0 };
    for (size_t i = 0; i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (!is_meant(request, v, found)) {
            /* Is the member on this side? An unreachable one may be part of another majority. */
            downs.remaining += v->m.reachable && v->m.status != TRP_MEMBER_DOWN;
            continue;
        }
        downs.meant++;
        if (downs.count < TRPI_CONTROL_DOWNS_MAX) {
            trpi_departure *departure = &departures[downs.count++];
            *departure =
                (trpi_departure){ .uid = v->m.uid, .self = v->m.self, .status = v->m.status };
            memcpy(departure->address, v->m.address, sizeof departure->address);
        }
    }
    downs.majority = downs.remaining * 2 > view->count;
    return downs;
}

/* Would the order leave two clusters, if its targets are still alive? A reachable member learns of
 * it and ends. */
static bool
leaves_two_clusters(const trpi_view *view, const trpi_departure *departures, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const trpi_view_member *v = member_by_uid(view, departures[i].uid);
        any = any || (v != NULL && !v->m.reachable && v->m.status != TRP_MEMBER_DOWN);
    }
    return any && view->foresees && !view->forecast.may_down;
}

static void
refuse_split(trpi_call *call, const trpi_view *view)
{
    trpi_call_refuse_text(
        call, TRPI_CTL_EXIT_NO,
        "make sure that they are stopped, on every host; then: troupe down ... --dead",
        "nothing was changed: this side does not survive by %s (%s); members that are still alive "
        "would go on as a second cluster of this name",
        view->strategy, view->forecast.reason[0] != '\0' ? view->forecast.reason : "no majority");
}

/* Find the members that the request means, and return a reply with their list; NULL: answered. */
static cJSON *
downs_find(trp_node *node, trpi_call *call, trpi_departure *departures, size_t *ret_count)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!trpi_view_take_for(node, call, &view)) {
        return NULL;
    }
    if (call->request.member &&
        trpi_view_find(&view, call->request.member, &found, &refusal) != TRP_OK) {
        trpi_call_refuse(call, &refusal);
        trpi_view_fini(&view);
        return NULL;
    }
    trpi_downs downs = trpi_downs_pick(&call->request, &view, found, departures);
    trpi_view_foresee(node, &view);
    bool is_split = leaves_two_clusters(&view, departures, downs.count);
    if (is_split && call->request.cautious && !call->request.dry_run) {
        refuse_split(call, &view);
        trpi_view_fini(&view);
        return NULL;
    }
    cJSON *reply = trpi_call_reply(), *list = trpi_call_plan(call, reply);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < downs.count; i++) {
        ok = down_row_add(list, member_by_uid(&view, departures[i].uid));
    }
    ok = ok && trpi_json_add_i64(reply, "members", (int64_t)view.count) &&
         trpi_json_add_i64(reply, "remaining", (int64_t)downs.remaining) &&
         trpi_json_add_bool(reply, "majorityKept", downs.majority) &&
         trpi_json_add_bool(reply, "mayGoOn", !is_split) &&
         trpi_json_add_i64(reply, "left", (int64_t)(downs.meant - downs.count));
    trpi_view_fini(&view);
    if (!ok) {
        trpi_call_answer_if(call, ok, reply);
        return NULL;
    }
    *ret_count = downs.count;
    return reply;
}

/* Order the members Down. The first one decides whether the order is carried out at all. */
static trp_err
downs_order(trp_node *node, trpi_call *call, const trpi_departure *departures, size_t count)
{
    trpi_cluster_patience patience = trpi_call_patience(call);
    for (size_t i = 0; i < count; i++) {
        trp_err err =
            trpi_cluster_down_and_wait(node->cluster, departures[i].address, departures[i].uid,
                                       call->request.dead, i == 0 ? &patience : NULL);
        if (err != TRP_OK && err != TRP_ENOENT) { /* it has left meanwhile: the wanted result */
            return err;
        }
    }
    return TRP_OK;
}

void
trpi_node_serve_down(trp_node *node, trpi_call *call)
{
    size_t count = 0;
    trpi_departure *departures = trpi_alloc(TRPI_CONTROL_DOWNS_MAX * sizeof *departures);
    if (!departures) {
        trpi_call_answer(call, NULL);
        return;
    }
    cJSON *reply = downs_find(node, call, departures, &count);
    if (reply && !call->request.dry_run) {
        trp_err err = downs_order(node, call, departures, count);
        if (err != TRP_OK) {
            trpi_call_refuse_order(call, err, "down");
        } else if (call->request.wait) {
            trpi_call_confirm(call);
            (void)departures_wait(node, call, departures, count); /* false: answered */
        }
    }
    if (reply && !call->answered) {
        (void)trpi_call_add_elapsed(call, reply); /* without memory: absent */
        trpi_call_answer(call, reply);
    } else {
        cJSON_Delete(reply);
    }
    trpi_free(departures);
}
