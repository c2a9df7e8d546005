/* control_events.c - the cluster's events as JSON objects for `troupe events`.
 *
 * Shape.   A listener hears all events of the cluster, on the cluster's thread. Each becomes one
 *          stream object, built only while somebody wants it, and goes to every stream of its type.
 * Tests.   tests/system
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/world.h"
#include "cluster/management/management.h"
#include "cluster/node/bridge.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

/* Indexes of trpi_control_event_name(). */
enum {
    EVENT_JOINED = 0,
    EVENT_WEAKLY_UP = 1,
    EVENT_UP = 2,
    EVENT_LEFT = 3,
    EVENT_EXITED = 4,
    EVENT_DOWNED = 5,
    EVENT_REMOVED = 6,
    EVENT_UNREACHABLE = 7,
    EVENT_REACHABLE = 8,
    EVENT_LEADER = 9,
    EVENT_ROLE_LEADER = 10,
    EVENT_SEEN = 11,
    EVENT_DOWNING = 12,
    EVENT_CLUSTER_ENDS = 13
};

/* ---- objects --------------------------------------------------------------------------------- */

static cJSON *
event_new(unsigned index, int64_t wall_ms)
{
    char time_text[32];
    cJSON *event = cJSON_CreateObject();
    if (!trpi_json_add_text(event, "time",
                            trpi_time_format(wall_ms, time_text, sizeof time_text)) ||
        !trpi_json_add_text(event, "type", trpi_control_event_name(index))) {
        cJSON_Delete(event);
        return NULL;
    }
    return event;
}

/* Add the observers that see the member as unreachable, as far as this node knows. */
static bool
observers_add(trp_node *node, cJSON *event, uint64_t uid)
{
    trpi_view view;
    if (trpi_view_take(node, &view) != TRP_OK) {
        return false;
    }
    cJSON *list = cJSON_AddArrayToObject(event, "observedBy");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < view.count; i++) {
        const trpi_view_member *v = &view.members[i];
        for (size_t j = 0; ok && v->m.uid == uid && j < v->observers_count; j++) {
            ok = cJSON_AddItemToArray(list, cJSON_CreateString(v->observers[j]));
        }
        if (ok && v->m.uid == uid && v->phi >= 0) {
            ok = cJSON_AddNumberToObject(event, "phi", v->phi) != NULL;
        }
    }
    trpi_view_fini(&view);
    return ok;
}

/* previous: the last status of a removed member (EVENTS-05). */
static cJSON *
member_event(trp_node *node, unsigned index, const trp_member *member, uint32_t previous,
             int64_t wall_ms)
{
    cJSON *event = event_new(index, wall_ms);
    bool ok = trpi_member_add(event ? cJSON_AddObjectToObject(event, "member") : NULL, member);
    if (ok && index == EVENT_UNREACHABLE) {
        ok = observers_add(node, event, member->uid);
    } else if (ok && index == EVENT_REMOVED) {
        ok = trpi_json_add_text(event, "previousStatus", trp_member_status_name(previous));
    }
    if (!ok) {
        cJSON_Delete(event);
        return NULL;
    }
    return event;
}

static cJSON *
leader_event(unsigned index, const trp_leader_event *leader, int64_t wall_ms)
{
    cJSON *event = event_new(index, wall_ms);
    bool ok = (index == EVENT_LEADER || trpi_json_add_text(event, "role", leader->role)) &&
              trpi_json_add_text(event, "leader", leader->address[0] ? leader->address : NULL);
    if (!ok) {
        cJSON_Delete(event);
        return NULL;
    }
    return event;
}

static cJSON *
seen_event(const trp_seen_event *seen, int64_t wall_ms)
{
    cJSON *event = event_new(EVENT_SEEN, wall_ms);
    bool ok = trpi_json_add_i64(event, "members", seen->members) &&
              trpi_json_add_i64(event, "seenBy", seen->seen_by) &&
              trpi_json_add_bool(event, "converged", seen->converged);
    if (!ok) {
        cJSON_Delete(event);
        return NULL;
    }
    return event;
}

static cJSON *
downing_event(const trp_downing_event *downing, int64_t wall_ms)
{
    cJSON *event = event_new(EVENT_DOWNING, wall_ms);
    bool ok = trpi_json_add_text(event, "strategy", downing->strategy);
    cJSON *inputs = ok ? cJSON_AddObjectToObject(event, "inputs") : NULL;
    ok = trpi_json_add_i64(inputs, "members", downing->members) &&
         trpi_json_add_i64(inputs, "reachable", downing->reachable) &&
         trpi_json_add_i64(inputs, "unreachable", downing->unreachable) &&
         trpi_json_add_i64(inputs, "indirectlyConnected", downing->indirectly_connected) &&
         trpi_json_add_text(event, "decision", downing->decision) &&
         trpi_json_add_text(event, "reason", downing->reason);
    if (!ok) {
        cJSON_Delete(event);
        return NULL;
    }
    return event;
}

/* {"event":{...}} as text; takes event. NULL: no memory. */
static char *
event_print(cJSON *event)
{
    cJSON *object = cJSON_CreateObject();
    char *text = NULL;
    if (event && cJSON_AddItemToObject(object, "event", event)) {
        text = trpi_json_print(object);
    } else {
        cJSON_Delete(event);
    }
    cJSON_Delete(object);
    return text;
}

/* ---- listening ------------------------------------------------------------------------------- */

/* NULL: no memory. */
static cJSON *
event_make(trp_node *node, const trpi_cluster_event *heard, unsigned *ret_index)
{
    static const struct {
        uint32_t bit;
        unsigned index;
    } kinds[] = { { TRP_CLUSTER_MEMBER_JOINED, EVENT_JOINED },
                  { TRP_CLUSTER_MEMBER_WEAKLY_UP, EVENT_WEAKLY_UP },
                  { TRP_CLUSTER_MEMBER_UP, EVENT_UP },
                  { TRP_CLUSTER_MEMBER_LEFT, EVENT_LEFT },
                  { TRP_CLUSTER_MEMBER_EXITED, EVENT_EXITED },
                  { TRP_CLUSTER_MEMBER_DOWNED, EVENT_DOWNED },
                  { TRP_CLUSTER_MEMBER_REMOVED, EVENT_REMOVED },
                  { TRP_CLUSTER_UNREACHABLE, EVENT_UNREACHABLE },
                  { TRP_CLUSTER_REACHABLE, EVENT_REACHABLE },
                  { TRP_CLUSTER_LEADER_CHANGED, EVENT_LEADER },
                  { TRP_CLUSTER_ROLE_LEADER_CHANGED, EVENT_ROLE_LEADER },
                  { TRP_CLUSTER_SEEN_CHANGED, EVENT_SEEN },
                  { TRP_CLUSTER_DOWNING_DECISION, EVENT_DOWNING } };
    size_t i = 0;
    while (i < sizeof kinds / sizeof kinds[0] && kinds[i].bit != heard->event) {
        i++;
    }
    trpi_assert(i < sizeof kinds / sizeof kinds[0]); /* no other event is subscribed to */
    *ret_index = kinds[i].index;
    if (heard->member) {
        return member_event(node, *ret_index, &heard->member->member,
                            heard->member->previous_status, heard->wall_ms);
    }
    if (heard->leader) {
        return leader_event(*ret_index, heard->leader, heard->wall_ms);
    }
    if (heard->seen) {
        return seen_event(heard->seen, heard->wall_ms);
    }
    return heard->downing ? downing_event(heard->downing, heard->wall_ms) : NULL;
}

/* Does anybody want events? Those of the management API are kept, for readers that come back. */
static bool
is_heard(trp_node *node)
{
    return node->management != NULL || trpi_bridges_hear(node) ||
           (node->control != NULL && trpi_control_has_streams(node->control));
}

/* No text: it ends the streams. */
static void
event_give(trp_node *node, unsigned index, const char *text)
{
    if (node->control != NULL) {
        trpi_control_publish(node->control, index, text);
    }
    if (node->management != NULL) {
        trpi_management_event(node->management, text);
    }
    trpi_bridges_event(node, index, text);
}

/* The cluster's thread. */
static void
on_event(void *arg, const trpi_cluster_event *heard)
{
    trp_node *node = arg;
    unsigned index = 0;
    if (!is_heard(node)) {
        return;
    }
    cJSON *event = event_make(node, heard, &index);
    char *text = event ? event_print(event) : NULL;
    event_give(node, index, text);
    cJSON_free(text);
}

void
trpi_node_events_cluster_ends(trp_node *node)
{
    if (is_heard(node)) {
        int64_t wall_ms = trpi_world_wall_ms(trpi_system_world(node->system));
        char *text = event_print(event_new(EVENT_CLUSTER_ENDS, wall_ms));
        if (text != NULL) {
            event_give(node, EVENT_CLUSTER_ENDS, text);
            cJSON_free(text);
        }
    }
}

trp_err
trpi_node_events_start(trp_node *node)
{
    trp_err err =
        trpi_cluster_listen(node->cluster, TRP_CLUSTER_DOMAIN_EVENTS | TRP_CLUSTER_SEEN_CHANGED,
                            on_event, node, &node->listener);
    if (err == TRP_OK && node->management != NULL) {
        (void)trpi_management_events_last(node->management, true);
    }
    return err;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool
is_wanted(const trpi_call *call, unsigned index)
{
    return (call->request.event_bits & 1u << index) != 0;
}

/* Emit an event of the snapshot: a present state, not a change. Takes event. false: no memory. */
static bool
present_emit(trpi_call *call, cJSON *event)
{
    if (!trpi_json_add_bool(event, "snapshot", true)) {
        cJSON_Delete(event);
        event = NULL;
    }
    char *text = event_print(event);
    if (text == NULL) {
        return false;
    }
    call->emit(call, text, false);
    cJSON_free(text);
    return true;
}

struct snapshot {
    const trpi_view *view;
    trpi_call *call;
    int64_t wall_ms;
};

/* role: among those that have it; NULL: all. */
static bool
leader_emit(void *arg, const char *role)
{
    struct snapshot *s = arg;
    trp_leader_event event = { .uid = 0 };
    const trp_member *leader = role ? trpi_view_leader(s->view, role) : s->view->leader;
    if (leader != NULL) {
        memcpy(event.address, leader->address, sizeof event.address);
    }
    (void)snprintf(event.role, sizeof event.role, "%s", role ? role : "");
    unsigned index = role ? EVENT_ROLE_LEADER : EVENT_LEADER;
    return present_emit(s->call, leader_event(index, &event, s->wall_ms));
}

/* Emit the leaders, and the members that have seen the view. false: no memory. */
static bool
summary_emit(struct snapshot *s)
{
    const trpi_view *view = s->view;
    trp_seen_event seen = { .members = (uint32_t)view->count, .converged = view->converged };
    for (size_t i = 0; i < view->count; i++) {
        seen.seen_by += view->members[i].seen ? 1 : 0;
    }
    return (!is_wanted(s->call, EVENT_LEADER) || leader_emit(s, NULL)) &&
           (!is_wanted(s->call, EVENT_ROLE_LEADER) || trpi_view_each_role(view, leader_emit, s)) &&
           (!is_wanted(s->call, EVENT_SEEN) ||
            present_emit(s->call, seen_event(&seen, s->wall_ms)));
}

/* false: no memory. */
static bool
snapshot_emit(trp_node *node, trpi_call *call)
{
    static const unsigned index_of[] = {
        EVENT_JOINED, EVENT_JOINED, EVENT_UP,      EVENT_LEFT,
        EVENT_EXITED, EVENT_DOWNED, EVENT_REMOVED, EVENT_WEAKLY_UP
    };
    trpi_view view;
    int64_t wall_ms = trpi_world_wall_ms(trpi_system_world(node->system));
    bool ok = trpi_view_take(node, &view) == TRP_OK;
    if (!ok) {
        return false;
    }
    for (size_t i = 0; ok && i < view.count; i++) {
        const trp_member *m = &view.members[i].m;
        unsigned indexes[2] = { index_of[m->status <= TRP_MEMBER_WEAKLY_UP ? m->status : 0],
                                EVENT_UNREACHABLE };
        for (size_t j = 0; ok && j < (m->reachable ? 1u : 2u); j++) {
            ok = !is_wanted(call, indexes[j]) ||
                 present_emit(call, member_event(node, indexes[j], m, 0, wall_ms));
        }
    }
    ok = ok && summary_emit(&(struct snapshot){ &view, call, wall_ms });
    trpi_view_fini(&view);
    return ok;
}

struct beginning {
    trp_node *node;
    trpi_call *call;
    uint64_t after; /* over HTTP: number of the last event before the snapshot */
    bool ok;
};

/* On the cluster's thread: no event is published between snapshot and stream, so a replay gives the
 * state. */
static void
begin_with_snapshot(void *arg)
{
    struct beginning *beginning = arg;
    trpi_call_stream(beginning->call);
    if (!snapshot_emit(beginning->node, beginning->call)) {
        trpi_call_stream_fail(beginning->call);
    }
}

/* The same for a stream of the management API, which follows the events itself. */
static void
snapshot_between(void *arg)
{
    struct beginning *beginning = arg;
    beginning->after = trpi_management_events_last(beginning->node->management, false);
    beginning->ok = snapshot_emit(beginning->node, beginning->call);
}

static void
refuse_silent(trpi_call *call)
{
    trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL,
                          "the cluster actor of this node does not answer; try again");
}

/* {"ok":true,"after":"17"} */
static void
serve_snapshot(trp_node *node, trpi_call *call)
{
    struct beginning beginning = { .node = node, .call = call };
    if (trpi_cluster_between(node->cluster, snapshot_between, &beginning) != TRP_OK) {
        refuse_silent(call);
        return;
    }
    cJSON *reply = trpi_call_reply();
    trpi_call_answer_if(
        call, beginning.ok && trpi_json_add_u64_string(reply, "after", beginning.after), reply);
}

void
trpi_node_serve_events(trp_node *node, trpi_call *call)
{
    if (call->request.event_bits == 0) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "field 'types': the list is empty");
        return;
    }
    if (call->by_text[0] != '\0') { /* over HTTP */
        serve_snapshot(node, call);
        return;
    }
    struct beginning beginning = { .node = node, .call = call };
    if (!call->request.snapshot) {
        trpi_call_stream(call);
    } else if (trpi_cluster_between(node->cluster, begin_with_snapshot, &beginning) != TRP_OK) {
        refuse_silent(call);
    }
}
