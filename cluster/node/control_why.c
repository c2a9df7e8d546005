/* control_why.c - `troupe why`, `troupe status`: the reasons why the members do not agree, with
 * advice.
 *
 * Why.     A cluster that does not converge admits no members and lets none leave, and looks the
 *          same as one that does. So each reason is named: member, state, age, observers, next
 *          step.
 * Must hold.
 *   control-why-Y1  While the view is not converged, the reasons are those of
 *       trpi_gossip_blocked_by: one at least. While it is, they are members that wait in spite of
 *       it.
 * Tests.   tests/unit/node/why_test.c, tests/system/cli.sh
 */
#include "cluster/node/control_why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "remote/remote.h"

#define HELP_BYTES 768
#define ON_ITS_WAY_MS 5000u /* gossip needs some seconds, also where frames are lost */

#define KEY "key" /* in a row while it is made: its advice for several members */

/* The advice for one member (one) and for several (many, the same for all of them). */
typedef struct advice {
    char one[HELP_BYTES], many[HELP_BYTES];
} advice;

static void __attribute__((format(printf, 2, 3)))
advice_format(char text[HELP_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, HELP_BYTES, format, args); /* cut is fine */
    va_end(args);
}

static bool
text_is(const cJSON *row, const char *key, const char *text)
{
    const char *is = trpi_json_get_text(row, key);
    return is != NULL && strcmp(is, text) == 0;
}

static bool
list_has(const cJSON *list, const char *text)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (strcmp(item->valuestring, text) == 0) {
            return true;
        }
    }
    return false;
}

static bool
observers_join(cJSON *row, const trpi_view_member *about)
{
    cJSON *observers = cJSON_GetObjectItemCaseSensitive(row, "observedBy");
    bool ok = observers != NULL;
    for (size_t i = 0; ok && i < about->observers_count; i++) {
        ok = list_has(observers, about->observers[i]) ||
             cJSON_AddItemToArray(observers, cJSON_CreateString(about->observers[i]));
    }
    return ok;
}

/* Count one more member in a row that is there already for another one. */
static bool
row_join(cJSON *row, const trpi_view_member *about, uint64_t since_ms, const advice *help)
{
    cJSON *count = cJSON_GetObjectItemCaseSensitive(row, "count");
    cJSON *since = cJSON_GetObjectItemCaseSensitive(row, "sinceMs");
    (void)cJSON_SetNumberValue(count, count->valuedouble + 1);
    if ((double)since_ms > since->valuedouble) {
        (void)cJSON_SetNumberValue(since, (double)since_ms);
    }
    return cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(row, "nodes"),
                                cJSON_CreateString(about->m.address)) &&
           (text_is(row, "help", help->many) ||
            cJSON_ReplaceItemInObjectCaseSensitive(row, "help", cJSON_CreateString(help->many)));
}

/* One reason; false: no memory. */
static bool
reason_put(cJSON *list, const trpi_view_member *about, const char *kind, uint64_t since_ms,
           const advice *help)
{
    bool on_their_word = strcmp(kind, "unreachable") == 0; /* no other reason concerns them */
    const char *status = about != NULL ? trp_member_status_name(about->m.status) : NULL;
    cJSON *row;
    cJSON_ArrayForEach(row, list)
    {
        if (about != NULL && text_is(row, "kind", kind) && text_is(row, "status", status) &&
            text_is(row, KEY, help->many)) {
            return row_join(row, about, since_ms, help) &&
                   (!on_their_word || observers_join(row, about));
        }
    }
    row = cJSON_CreateObject();
    bool ok = trpi_json_add_text(row, "kind", kind) &&
              trpi_json_add_text(row, "node", about != NULL ? about->m.address : NULL) &&
              trpi_json_add_text(row, "status", status) &&
              trpi_json_add_i64(row, "sinceMs", (int64_t)since_ms) &&
              cJSON_AddArrayToObject(row, "observedBy") != NULL &&
              (!on_their_word || observers_join(row, about)) &&
              trpi_json_add_text(row, "help", help->one) && trpi_json_add_i64(row, "count", 1);
    cJSON *nodes = ok ? cJSON_AddArrayToObject(row, "nodes") : NULL;
    ok = nodes != NULL &&
         (about == NULL || cJSON_AddItemToArray(nodes, cJSON_CreateString(about->m.address))) &&
         trpi_json_add_text(row, KEY, help->many);
    return trpi_json_append(list, row, ok);
}

/* Add a reason whose advice names no member. */
static bool __attribute__((format(printf, 5, 6)))
reason_add(cJSON *list, const trpi_view_member *about, const char *kind, uint64_t since_ms,
           const char *format, ...)
{
    advice help;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(help.one, sizeof help.one, format, args); /* cut is fine */
    va_end(args);
    memcpy(help.many, help.one, sizeof help.many);
    return reason_put(list, about, kind, since_ms, &help);
}

static unsigned
seconds_of(uint64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

/* Write what decides about an unreachable member, and how: "keep-majority marks it Down in 14
 * s". */
static void
decides_tell(const trpi_view *view, const trpi_view_member *v, char *text, size_t bytes)
{
    const trpi_downing_forecast *f = &view->forecast;
    uint64_t limit_ms = view->auto_down_after_ms;
    uint64_t left_ms = limit_ms > v->unreachable_ms ? limit_ms - v->unreachable_ms : 0;
    char when[32] = "now";
    bool is_auto = strcmp(view->strategy, "auto-down-after") == 0;
    bool foresees = view->foresees && f->kind != TRPI_FORECAST_NONE;
    if (foresees || is_auto) {
        uint64_t ms = is_auto ? left_ms : f->in_ms;
        (void)snprintf(when, sizeof when, ms > 0 ? "in %u s" : "now", seconds_of(ms));
    }
    if (is_auto) {
        (void)snprintf(text, bytes, "auto-down-after: the leader marks it Down %s", when);
    } else if (strcmp(view->strategy, "manual") == 0) {
        (void)snprintf(text, bytes, "no strategy decides (downing is manual)");
    } else if (!foresees) {
        (void)snprintf(text, bytes, "%s decides when nothing has changed for %u s (stable-after)",
                       view->strategy, view->stable_after_ms / 1000);
    } else if (f->kind == TRPI_FORECAST_GOES_ON) {
        (void)snprintf(text, bytes, "%s goes on here and marks it Down %s, if nothing changes (%s)",
                       view->strategy, when, f->reason);
    } else if (f->kind == TRPI_FORECAST_STOPS) {
        (void)snprintf(text, bytes,
                       "this side does not go on: %s stops %s %s, if nothing changes "
                       "(%s)",
                       view->strategy, f->who, when, f->reason);
    } else {
        (void)snprintf(text, bytes,
                       "the side that acquires the lease survives; this side requests it %s (%s)",
                       when, f->reason);
    }
}

/* Add the unreachable members. The advice to mark one Down is given only on a side that may go
 * on. */
static bool
unreachable_add(cJSON *list, const trpi_view *view, const trpi_view_member *v)
{
    char decides[HELP_BYTES / 2], cause[128] = "";
    const char *where = v->observers_count == 1 ? v->observers[0] : "the members that observe it";
    advice help;
    decides_tell(view, v, decides, sizeof decides);
    if (v->cause[0] != '\0') {
        (void)snprintf(cause, sizeof cause, " (from here: %s)", v->cause);
    }
    if (!view->foresees || view->forecast.may_down) {
        advice_format(help.one,
                      "%s; if it lives, look at the link between it and %s%s; if it is dead: "
                      "troupe down %s",
                      decides, where, cause, v->m.address);
        advice_format(help.many,
                      "%s; if they live, look at the links between them and %s%s; if they are "
                      "dead: troupe down --unreachable",
                      decides, where, cause);
    } else {
        advice_format(help.one,
                      "%s; look at the link between it and %s%s, and at the cluster from the "
                      "other side; do not mark it Down here while it may live: that makes two "
                      "clusters",
                      decides, where, cause);
        memcpy(help.many, help.one, sizeof help.many);
    }
    return reason_put(list, v, "unreachable", v->unreachable_ms, &help);
}

static bool
unseen_add(cJSON *list, const trpi_view *view, const trpi_view_member *v)
{
    if (!v->m.reachable) {
        return reason_add(list, v, "not-seen", view->converged_ms,
                          "it is unreachable: it sees the view when it is reachable again; once it "
                          "is Down it need not");
    }
    if (view->converged_ms < ON_ITS_WAY_MS) {
        return reason_add(list, v, "not-seen", view->converged_ms,
                          "gossip is on its way; it takes some seconds");
    }
    advice help;
    advice_format(
        help.one,
        "it answers heartbeats, but no gossip arrives by which it has seen this view: run "
        "troupe why there, look at the link to it (troupe peers here); if it hangs: troupe down "
        "%s",
        v->m.address);
    advice_format(help.many,
                  "they answer heartbeats, but no gossip arrives by which they have seen this "
                  "view: run troupe why there, look at the links (troupe peers here)");
    return reason_put(list, v, "not-seen", view->converged_ms, &help);
}

static bool
blockers_add(cJSON *list, const trpi_view *view)
{
    bool ok = true;
    for (size_t i = 0; ok && i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        uint32_t status = v->m.status;
        if (!v->m.reachable && status != TRP_MEMBER_DOWN && status != TRP_MEMBER_EXITING) {
            ok = unreachable_add(list, view, v);
        }
        bool awaited = v->awaited || status == TRP_MEMBER_UP || status == TRP_MEMBER_LEAVING;
        if (ok && !v->seen && awaited) {
            ok = unseen_add(list, view, v);
        }
    }
    return ok;
}

/* Add the members that have removed this node and gone on without it; convergence does not end
 * that. */
static bool
removed_add(cJSON *list, const trpi_view *view)
{
    bool ok = !view->waking ||
              reason_add(list, NULL, "stood-still", 0,
                         "this node checks which members are reachable, and does not act as leader "
                         "until each has answered or is unreachable: some seconds");
    if (ok && view->exclusive.suspended) {
        ok = reason_add(list, NULL, "suspended", view->exclusive.for_ms,
                        "singletons and entities of this node handle nothing, for it may have been "
                        "given up: %s; this ends when %s",
                        view->exclusive.cause, view->exclusive.awaits);
    }
    for (size_t i = 0; ok && i < view->count; i++) {
        if (view->members[i].remover) {
            ok = reason_add(list, &view->members[i], "two-clusters", view->removed_ms,
                            "it has removed this node from its cluster; if the members that have "
                            "done so may go on by %s, this node ends with exit code 76; else "
                            "decide which side is to go on, stop the nodes of the other one, and "
                            "start them again: docs/operating.md, Two clusters at once",
                            view->strategy);
        }
    }
    return ok;
}

/* Add members that answer heartbeats, perhaps on a connection of their own, and cannot be dialled
 * from here. */
static bool
links_add(cJSON *list, const trpi_view *view)
{
    bool ok = true;
    for (size_t i = 0; ok && i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        ok = v->link[0] == '\0' ||
             reason_add(list, v, "undialled", 0, "messages from here to it wait: %s; %s", v->link,
                        trpi_remote_problem_is_refusal(v->link)
                            ? "its port answers, and one of the two refuses what the other shows: "
                              "troupe check certs and troupe check clock here and there"
                            : "its port must be reachable from here at the address that it "
                              "advertises: troupe reach");
    }
    return ok;
}

/* Add the problems of this node's files: they will cut it off some day, or keep its old
 * settings. */
static bool
files_add(cJSON *list, const trpi_view *view)
{
    bool ok = true;
    for (size_t i = 0; ok && i < view->troubles_count; i++) {
        ok = reason_add(list, NULL, "credentials", 0, "%s: %s", view->troubles[i].what,
                        view->troubles[i].help);
    }
    return ok;
}

/* Add seed nodes that are alive and no members. */
static bool
foreign_add(cJSON *list, const trpi_view *view)
{
    bool ok = true;
    for (size_t i = 0; ok && i < view->foreign_count; i++) {
        ok = reason_add(list, &view->foreign[i], "two-clusters", view->foreign[i].age_ms,
                        "a seed node that is alive and no member of this cluster: it is in another "
                        "one of this name, or was removed and goes on; look at it (troupe members "
                        "there), decide which side is to go on, stop the other one's nodes and "
                        "start them again: docs/operating.md, Two clusters at once");
    }
    return ok;
}

/* Add members that wait although the view has converged. */
static bool
waiting_add(cJSON *list, const trpi_view *view)
{
    bool ok = true;
    for (size_t i = 0; ok && i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (v->m.status == TRP_MEMBER_JOINING && view->lacking[0] != '\0') {
            ok = reason_add(list, v, "too-few", v->age_ms, "%s: start more nodes", view->lacking);
        } else if (v->m.status == TRP_MEMBER_EXITING && v->m.reachable) {
            ok = reason_add(list, v, "exiting", view->converged_ms,
                            "it finishes its work, and is removed when it reports that, or becomes "
                            "unreachable");
        }
    }
    return ok;
}

static bool
not_joined_add(cJSON *list, const trpi_view *view)
{
    if (view->seeking_why[0] != '\0') {
        return reason_add(list, NULL, "not-joined", 0,
                          "this node asks %s to join: %s; it keeps asking", view->seeking,
                          view->seeking_why);
    }
    return view->seeking[0] != '\0'
               ? reason_add(list, NULL, "not-joined", 0,
                            "this node asks %s to join and has no answer: check that a node of "
                            "this system runs there and can be reached from here (troupe peers)",
                            view->seeking)
               : reason_add(list, NULL, "not-joined", 0,
                            "troupe join ADDRESS (its own address starts a cluster)");
}

static bool
gossip_add(cJSON *reply, const trpi_member_stats *s)
{
    cJSON *gossip = cJSON_AddObjectToObject(reply, "gossip");
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = { { "framesIn", s->frames_in },     { "framesOut", s->frames_out },
                 { "bytesIn", s->bytes_in },       { "bytesOut", s->bytes_out },
                 { "same", s->received_same },     { "newer", s->received_newer },
                 { "older", s->received_older },   { "merged", s->merged },
                 { "tooOld", s->expired },         { "ignored", s->ignored },
                 { "undecodable", s->undecodable } };
    bool ok = gossip != NULL;
    for (size_t i = 0; ok && i < sizeof rows / sizeof rows[0]; i++) {
        ok = trpi_json_add_i64(gossip, rows[i].key, (int64_t)rows[i].value);
    }
    return ok;
}

/* Add "outlook": the decision that the strategy will make. */
static bool
outlook_add(cJSON *reply, const trpi_view *view)
{
    static const char *const words[] = { [TRPI_FORECAST_NONE] = "undecided",
                                         [TRPI_FORECAST_GOES_ON] = "goes-on",
                                         [TRPI_FORECAST_STOPS] = "stops",
                                         [TRPI_FORECAST_LEASE] = "lease" };
    const trpi_downing_forecast *f = &view->forecast;
    if (!view->foresees) {
        return cJSON_AddNullToObject(reply, "outlook") != NULL;
    }
    cJSON *outlook = cJSON_AddObjectToObject(reply, "outlook");
    return outlook != NULL && trpi_json_add_text(outlook, "verdict", words[f->kind]) &&
           trpi_json_add_i64(outlook, "inMs", (int64_t)f->in_ms) &&
           trpi_json_add_bool(outlook, "mayDown", f->may_down) &&
           trpi_json_add_text(outlook, "reason", f->reason) &&
           trpi_json_add_text(outlook, "who", f->who);
}

/* Drained members keep nobody from agreeing: they are told beside the reasons, when there are. */
static bool
drained_add(cJSON *reply, const trpi_view *view)
{
    cJSON *list = NULL;
    for (size_t i = 0; i < view->count; i++) {
        const trp_member *m = &view->members[i].m;
        if (!trpi_member_has_drained(m)) {
            continue;
        }
        list = list != NULL ? list : cJSON_AddArrayToObject(reply, "drained");
        if (list == NULL || !cJSON_AddItemToArray(list, cJSON_CreateString(m->address))) {
            return false;
        }
    }
    return true;
}

bool
trpi_why_add_reasons(cJSON *reply, const trpi_view *view)
{
    trpi_assert(view->strategy != NULL);
    cJSON *list = cJSON_AddArrayToObject(reply, "reasons"), *row;
    bool ok = list != NULL && removed_add(list, view) && foreign_add(list, view) &&
              (view->count == 0  ? not_joined_add(list, view)
               : view->converged ? waiting_add(list, view)
                                 : blockers_add(list, view)) &&
              links_add(list, view) && files_add(list, view);
    cJSON_ArrayForEach(row, list)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(row, KEY);
    }
    return ok && outlook_add(reply, view) && drained_add(reply, view);
}

bool
trpi_why_fill(cJSON *reply, const char *self_address, const trpi_view *view)
{
    const trpi_view_member *self = view->self;
    bool ok = trpi_json_add_text(reply, "selfNode", self_address) &&
              trpi_json_add_text(
                  reply, "selfStatus",
                  trp_member_status_name(self != NULL ? self->m.status : TRP_MEMBER_REMOVED)) &&
              trpi_json_add_text(reply, "leader", view->leader ? view->leader->address : NULL) &&
              trpi_json_add_i64(reply, "members", (int64_t)view->count) &&
              trpi_json_add_bool(reply, "converged", view->converged) &&
              trpi_json_add_i64(reply, "sinceMs", (int64_t)view->converged_ms);
    return ok && trpi_why_add_reasons(reply, view) && gossip_add(reply, &view->stats);
}

void
trpi_node_serve_why(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    trpi_view_look_at_links(node, &view);
    trpi_view_foresee(node, &view);
    trpi_view_look_at_files(node, &view);
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_why_fill(reply, node->address, &view) && trpi_node_singletons_why(node, reply) &&
              trpi_node_shards_why(node, reply);
    trpi_view_fini(&view);
    trpi_call_answer_if(call, ok, reply);
}
