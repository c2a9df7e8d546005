/* control_change.c - leave, down: order the change, then watch the view until it happened.
 *
 * Shape.   Both run on the call's own thread. The order is the cluster actor's (trp_cluster_leave
 *          and so on); the effect is read from the view, as everybody else sees it.
 * Not here. join (control_join.c), the end of all (control_shutdown.c).
 * Tests.   tests/system/cli.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"
#include "pattern/pattern.h"

#define PROGRESS_MS 5000u /* at least this often the client hears what is waited for */
#define DOWN_MAX 256u     /* members downed by one command */

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

/* What keeps the members from agreeing, as a sentence's end; "" nothing that is known. */
typedef struct blockers {
    char text[768];
    char unreachable[TRP_ADDRESS_BYTES]; /* the first of those; "" none */
} blockers;

static size_t
blocker_add(blockers *b, size_t count, const char *address)
{
    int more =
        snprintf(b->text + count, sizeof b->text - count, "%s%s", count ? ", " : "", address);
    size_t room = sizeof b->text - count - 1;
    return count + (more > 0 && (size_t)more < room ? (size_t)more : room);
}

/* Unreachable members, or, when all are reachable, those that have not seen the present view. */
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

typedef struct leaver {
    uint64_t uid;
    char address[TRP_ADDRESS_BYTES];
    bool self;
    uint32_t status;  /* as last told */
    uint32_t reports; /* self: phases of its shutdown that were told */
} leaver;

static void
phases_tell(trp_node *node, trpi_call *call, leaver *self)
{
    char text[512];
    while (trpi_shutdown_report(node->system, self->reports, text, sizeof text)) {
        self->reports++;
        trpi_call_progress(call, "phase %s", text);
    }
}

/* How many of these are still members; tells each change of status. */
static size_t
leavers_look(trp_node *node, trpi_call *call, leaver *leavers, size_t count, const trpi_view *view)
{
    size_t left = 0;
    (void)pthread_mutex_lock(&node->lock);
    bool ended = node->end != 0;
    (void)pthread_mutex_unlock(&node->lock);
    for (size_t i = 0; i < count; i++) {
        const trpi_view_member *v = member_by_uid(view, leavers[i].uid);
        if (leavers[i].self) {
            phases_tell(node, call, &leavers[i]);
        }
        if (!v || (leavers[i].self && ended)) {
            continue;
        }
        left++;
        if (v->m.status != leavers[i].status) {
            leavers[i].status = v->m.status;
            trpi_call_progress(call, "%s %s", leavers[i].address,
                               trp_member_status_name(v->m.status));
        }
    }
    return left;
}

static void
refuse_leavers(trpi_call *call, const leaver *first, const blockers *b)
{
    char hint[TRP_ADDRESS_BYTES + 32];
    bool unreachable = *b->unreachable != '\0';
    (void)snprintf(hint, sizeof hint, "troupe down %s", b->unreachable);
    trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, unreachable ? hint : NULL,
                          "%s still %s after %.0f s: waiting for %s%s%s", first->address,
                          trp_member_status_name(first->status), trpi_call_elapsed_ms(call) / 1000,
                          unreachable ? "unreachable " : "", *b->text ? b->text : "the leader",
                          unreachable ? " to be seen or downed" : *b->text ? " to see it" : "");
}

/* true: all are gone. false: answered. */
static bool
leavers_wait(trp_node *node, trpi_call *call, leaver *leavers, size_t count)
{
    blockers b;
    uint64_t told_ms = 0;
    for (;;) {
        trpi_view view;
        if (!trpi_view_take_for(node, call, &view)) {
            return false;
        }
        size_t left = leavers_look(node, call, leavers, count, &view);
        blockers_find(&view, &b);
        trpi_view_fini(&view);
        if (left == 0) {
            return true;
        }
        if (trpi_call_left_ms(call) == 0) {
            refuse_leavers(call, &leavers[0], &b);
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

static void
leave_answer(trpi_call *call, const char *address, const char *status)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "node", address) &&
              trpi_json_add_text(reply, "status", status) &&
              trpi_call_add_elapsed(call, reply);
    trpi_call_answer_if(call, ok, reply);
}

/* Whom the request means; false: answered. A node that is no member ends at once. */
static bool
leaver_find(trp_node *node, trpi_call *call, leaver *ret_leaver)
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
    } else if (!found) {
        leave_answer(call, node->address, "Removed");
        trp_node_leave(node);
    } else {
        memset(ret_leaver, 0, sizeof *ret_leaver);
        ret_leaver->uid = found->m.uid;
        ret_leaver->self = found->m.self;
        memcpy(ret_leaver->address, found->m.address, sizeof ret_leaver->address);
    }
    bool go_on = err == TRP_OK && found != NULL;
    trpi_view_fini(&view);
    return go_on;
}

void
trpi_node_serve_leave(trp_node *node, trpi_call *call)
{
    leaver who;
    if (!leaver_find(node, call, &who)) {
        return;
    }
    trp_err err = TRP_OK;
    if (who.self) {
        trp_node_leave(node); /* all phases of its shutdown, of which leaving is one */
    } else {
        err = trp_cluster_leave(node->system, who.address);
    }
    if (err != TRP_OK && err != TRP_ENOENT) { /* gone in between is what was wanted */
        trpi_call_refuse_order(call, err, "leave");
        return;
    }
    if (!call->request.wait) {
        leave_answer(call, who.address, "Leaving");
        return;
    }
    if (leavers_wait(node, call, &who, 1)) {
        leave_answer(call, who.address, "Removed");
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

/* Whom the request means. Gives the reply with the list of them as they are now; NULL: answered. */
static cJSON *
downs_find(trp_node *node, trpi_call *call, leaver *leavers, size_t *ret_count)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!trpi_view_take_for(node, call, &view)) {
        return NULL;
    }
    if (!call->request.unreachable &&
        trpi_view_find(&view, call->request.member, &found, &refusal) != TRP_OK) {
        trpi_call_refuse(call, &refusal);
        trpi_view_fini(&view);
        return NULL;
    }
    cJSON *reply = trpi_call_reply(), *list = trpi_call_plan(call, reply);
    bool ok = list != NULL;
    size_t count = 0;
    for (size_t i = 0; ok && i < view.count && count < DOWN_MAX; i++) {
        const trpi_view_member *v = &view.members[i];
        if (call->request.unreachable ? v->m.reachable : v != found) {
            continue;
        }
        leavers[count].uid = v->m.uid;
        leavers[count].self = v->m.self;
        leavers[count].status = v->m.status;
        memcpy(leavers[count++].address, v->m.address, sizeof leavers[0].address);
        ok = down_row_add(list, v);
    }
    ok = ok && trpi_json_add_i64(reply, "members", (int64_t)view.count) &&
         trpi_json_add_i64(reply, "remaining", (int64_t)(view.count - count)) &&
         trpi_json_add_bool(reply, "majorityKept", (view.count - count) * 2 > view.count);
    trpi_view_fini(&view);
    if (!ok) {
        trpi_call_answer_if(call, ok, reply);
        return NULL;
    }
    *ret_count = count;
    return reply;
}

static trp_err
downs_order(trp_node *node, const leaver *leavers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trp_err err = trp_cluster_down(node->system, leavers[i].address);
        if (err != TRP_OK && err != TRP_ENOENT) { /* gone in between is what was wanted */
            return err;
        }
    }
    return TRP_OK;
}

void
trpi_node_serve_down(trp_node *node, trpi_call *call)
{
    size_t count = 0;
    leaver *leavers = trpi_alloc(DOWN_MAX * sizeof *leavers);
    if (!leavers) {
        trpi_call_answer(call, NULL);
        return;
    }
    cJSON *reply = downs_find(node, call, leavers, &count);
    if (reply && !call->request.dry_run) {
        trp_err err = downs_order(node, leavers, count);
        if (err != TRP_OK) {
            trpi_call_refuse_order(call, err, "down");
        } else if (call->request.wait) {
            (void)leavers_wait(node, call, leavers, count); /* false: answered */
        }
    }
    if (reply && !call->answered) {
        (void)trpi_call_add_elapsed(call, reply); /* without memory: absent */
        trpi_call_answer(call, reply);
    } else {
        cJSON_Delete(reply);
    }
    trpi_free(leavers);
}
