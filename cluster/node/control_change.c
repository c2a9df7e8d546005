/* control_change.c - join, leave, down: order the change, then watch the view until it happened.
 *
 * Shape.   All run on the call's own thread. The order is the cluster actor's (trp_cluster_join and
 *          so on); the effect is read from the view, as everybody else sees it.
 * Tests.   tests/system/cli.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"
#include "pattern/pattern.h"

#define LOOK_MS 50u       /* how often the view is looked at */
#define PROGRESS_MS 5000u /* at least this often the client hears what is waited for */
#define DOWN_MAX 256u     /* members downed by one command */

static bool
view_take(trp_node *node, trpi_call *call, trpi_view *ret_view)
{
    if (trpi_view_take(node, ret_view) == TRP_OK) {
        return true;
    }
    trpi_call_answer(call, NULL);
    return false;
}

static void
refuse_order(trpi_call *call, trp_err err, const char *what)
{
    if (err == TRP_ETIMEDOUT) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL,
                              "%s: the node is too busy to take the order", what);
    } else if (err == TRP_ECLOSED) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
    } else {
        trpi_call_refuse_text(call, trpi_ctl_exit_of(err), NULL, "%s: %s", what, trp_strerror(err));
    }
}

static double
elapsed_ms(const trpi_call *call)
{
    return (double)(trpi_call_elapsed_ns(call) / 1000000u);
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

/* ---- join ------------------------------------------------------------------------------------ */

static bool
addresses_check(trp_node *node, trpi_call *call)
{
    const trpi_address *self = &trpi_system_self(node->system)->address;
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        const char *text = call->request.addresses[i], *hint = NULL;
        trpi_address address;
        if (trpi_address_parse(text, &address, NULL, &hint) != TRP_OK) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "'%.256s' is no address: %s",
                                  text, hint ? hint : "write troupe.tcp://system@host:port");
            return false;
        }
        if (strcmp(address.system, self->system) != 0 ||
            strcmp(address.protocol, self->protocol) != 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL,
                                  "%s: this node is %s://%s, it cannot join another "
                                  "system or protocol",
                                  text, self->protocol, self->system);
            return false;
        }
    }
    return true;
}

static void
join_answer(trp_node *node, trpi_call *call, const trpi_view_member *self)
{
    cJSON *reply = trpi_call_reply();
    bool ok =
        trpi_json_add_text(reply, "node", node->address) &&
        trpi_json_add_text(reply, "status",
                           trp_member_status_name(self ? self->m.status : TRP_MEMBER_REMOVED)) &&
        (self && self->m.up_number ? trpi_json_add_i64(reply, "upNumber", self->m.up_number)
                                   : cJSON_AddNullToObject(reply, "upNumber") != NULL) &&
        cJSON_AddNumberToObject(reply, "elapsedMs", elapsed_ms(call)) != NULL;
    if (!ok) {
        cJSON_Delete(reply);
        reply = NULL;
    }
    trpi_call_answer(call, reply);
}

/* How often each has been tried in vain; false: not all of them refused the last attempt, for a
 * certificate or a cookie, or were refused by us. */
static bool
join_attempts(trp_node *node, const trpi_call *call, uint32_t attempts[TRPI_CONTROL_ADDRESSES_MAX],
              char *ret_reason, size_t reason_bytes)
{
    bool refused = true;
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        trpi_address address; /* addresses_check() has read it before */
        refused = trpi_address_parse(call->request.addresses[i], &address, NULL, NULL) == TRP_OK &&
                  trpi_remote_is_refused(node->remote, &address, &attempts[i], ret_reason,
                                         reason_bytes) &&
                  refused;
    }
    return refused;
}

/* Nobody lets us in, or we nobody: nothing changes by itself. */
static bool
join_is_refused(trp_node *node, trpi_call *call,
                const uint32_t before[TRPI_CONTROL_ADDRESSES_MAX])
{
    uint32_t attempts[TRPI_CONTROL_ADDRESSES_MAX] = { 0 };
    char reason[256];
    bool refused = join_attempts(node, call, attempts, reason, sizeof reason);
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        refused = refused && attempts[i] > before[i]; /* since the order */
    }
    if (refused) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_PERMISSION, "troupe peers",
                              "%s: %s; the node keeps trying", call->request.addresses[0], reason);
    }
    return refused;
}

/* Look once. true: done, answered. */
static bool
join_look(trp_node *node, trpi_call *call, uint32_t *last_status)
{
    trpi_view view;
    if (!view_take(node, call, &view)) {
        return true;
    }
    const trpi_view_member *self = view.self;
    uint32_t status = self ? self->m.status : 0;
    bool done = status == TRP_MEMBER_UP || (!call->request.wait) || status > TRP_MEMBER_UP;
    if (done) {
        join_answer(node, call, self);
    } else if (status != *last_status) {
        trpi_call_progress(call, "%s, %zu members", trp_member_status_name(status), view.count);
    }
    *last_status = status;
    trpi_view_fini(&view);
    return done;
}

void
trpi_node_serve_join(trp_node *node, trpi_call *call)
{
    trp_member self;
    uint32_t last_status = 0, before[TRPI_CONTROL_ADDRESSES_MAX] = { 0 };
    char ignored[8];
    if (!addresses_check(node, call)) {
        return;
    }
    (void)join_attempts(node, call, before, ignored, sizeof ignored);
    if (trp_cluster_self(node->system, &self) == TRP_OK && self.status != 0) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe members",
                              "already a member of the cluster, as %s (%s)", self.address,
                              trp_member_status_name(self.status));
        return;
    }
    trp_err err =
        trp_cluster_join(node->system, call->request.addresses, call->request.addresses_count);
    if (err != TRP_OK) {
        refuse_order(call, err, "join");
        return;
    }
    if (call->request.wait) {
        trpi_call_progress(call, "asking %s", call->request.addresses[0]);
    }
    while (!join_look(node, call, &last_status)) {
        if (trpi_call_left_ms(call) == 0) {
            trpi_call_refuse_text(
                call, TRPI_CTL_EXIT_TIMEOUT, last_status ? "troupe members" : NULL,
                last_status ? "still %s after %.0f s; the node keeps joining"
                            : "%s has not answered after %.0f s; the node keeps trying",
                last_status ? trp_member_status_name(last_status) : call->request.addresses[0],
                elapsed_ms(call) / 1000);
            return;
        }
        if (last_status == 0 && join_is_refused(node, call, before)) {
            return;
        }
        if (!trpi_call_pause(call, LOOK_MS)) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
            return;
        }
    }
}

/* ---- waiting for members to go
 * ---------------------------------------------------------------------------- */

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
                          trp_member_status_name(first->status), elapsed_ms(call) / 1000,
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
        if (!view_take(node, call, &view)) {
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
        if (!trpi_call_pause(call, LOOK_MS)) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
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
              cJSON_AddNumberToObject(reply, "elapsedMs", elapsed_ms(call)) != NULL;
    if (!ok) {
        cJSON_Delete(reply);
        reply = NULL;
    }
    trpi_call_answer(call, reply);
}

/* Whom the request means; false: answered. A node that is no member ends at once. */
static bool
leaver_find(trp_node *node, trpi_call *call, leaver *ret_leaver)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!view_take(node, call, &view)) {
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
        refuse_order(call, err, "leave");
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
                        : trpi_json_add_i64(row, "unreachableForMs", (int64_t)v->unreachable_ms)) &&
        cJSON_AddItemToArray(list, row);
    if (!ok) {
        cJSON_Delete(row);
    }
    return ok;
}

/* Whom the request means. Gives the reply with the list of them as they are now; NULL: answered. */
static cJSON *
downs_find(trp_node *node, trpi_call *call, leaver *leavers, size_t *ret_count)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!view_take(node, call, &view)) {
        return NULL;
    }
    if (!call->request.unreachable &&
        trpi_view_find(&view, call->request.member, &found, &refusal) != TRP_OK) {
        trpi_call_refuse(call, &refusal);
        trpi_view_fini(&view);
        return NULL;
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_bool(reply, "dryRun", call->request.dry_run);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "nodes") : NULL;
    ok = list != NULL;
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
        cJSON_Delete(reply);
        trpi_call_answer(call, NULL);
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
            refuse_order(call, err, "down");
        } else if (call->request.wait) {
            (void)leavers_wait(node, call, leavers, count); /* false: answered */
        }
    }
    if (reply && !call->answered) {
        (void)cJSON_AddNumberToObject(reply, "elapsedMs",
                                      elapsed_ms(call)); /* without memory: absent */
        trpi_call_answer(call, reply);
    } else {
        cJSON_Delete(reply);
    }
    trpi_free(leavers);
}
