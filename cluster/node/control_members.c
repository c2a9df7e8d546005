/* control_members.c - members, member-status, status: answered at once from this node's own state.
 *
 * Key order and names are CONTROL.md's (Akka Management's and ours behind them).
 * Tests. tests/system, tests/unit/node/node_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_change.h"
#include "cluster/node/control_member.h"
#include "cluster/node/control_why.h"
#include "cluster/node/node_private.h"

#define JOINING_LONG_MS 10000u /* then `status` calls it a problem */
#define CROWD_RECENT_MS 60000u /* and refused connections for so long */
#define PROBLEM_BYTES 512
#define DAY_MS INT64_C(86400000)
#define RATE_WINDOW_NS 1000000000u

static const char *
address_of(const trp_member *member)
{
    return member ? member->address : NULL;
}

static const char *
self_status(const trpi_view *view)
{
    return trp_member_status_name(view->self ? view->self->m.status : TRP_MEMBER_REMOVED);
}

static bool
number_or_null_add(cJSON *object, const char *key, double number, bool known)
{
    return known ? cJSON_AddNumberToObject(object, key, number) != NULL
                 : cJSON_AddNullToObject(object, key) != NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

struct per_role {
    cJSON *object;
    const trpi_view *view;
    const trp_member *(*who)(const trpi_view *view, const char *role);
};

static bool
role_add(void *arg, const char *role)
{
    struct per_role *p = arg;
    const trp_member *member = p->who(p->view, role);
    return !member || trpi_json_add_text(p->object, role, member->address);
}

/* Add one entry for each role of any member, in order. */
static bool
per_role_add(cJSON *reply, const char *key, const trpi_view *view,
             const trp_member *(*who)(const trpi_view *view, const char *role))
{
    struct per_role p = { cJSON_AddObjectToObject(reply, key), view, who };
    return p.object != NULL && trpi_view_each_role(view, role_add, &p);
}

/* Whole days; less than 0 when it has ended. */
static int64_t
days_until(int64_t end_ms, int64_t wall_ms)
{
    return end_ms >= wall_ms ? (end_ms - wall_ms) / DAY_MS : -1;
}

static bool
member_row_add(cJSON *list, const trpi_view_member *v, int64_t wall_ms)
{
    char time_text[32];
    bool was_up = v->up_since_wall_ms != 0;
    double age_ms = wall_ms < v->up_since_wall_ms ? 0 : (double)(wall_ms - v->up_since_wall_ms);
    cJSON *row = cJSON_CreateObject();
    bool ok =
        trpi_member_add(row, &v->m) && trpi_json_add_bool(row, "reachable", v->m.reachable) &&
        (!trpi_member_has_drained(&v->m) || trpi_json_add_bool(row, "drained", true)) &&
        number_or_null_add(row, "upNumber", v->m.up_number, v->m.up_number != 0) &&
        trpi_json_add_text(
            row, "upSince",
            was_up ? trpi_time_format(v->up_since_wall_ms, time_text, sizeof time_text) : NULL) &&
        number_or_null_add(row, "ageMs", age_ms, was_up) &&
        number_or_null_add(row, "rttMs", v->round_trip_ms, v->round_trip_ms >= 0) &&
        number_or_null_add(row, "phi", v->phi, v->phi >= 0) &&
        number_or_null_add(row, "heartbeats", (double)v->heartbeats, v->phi >= 0) &&
        trpi_json_add_text(row, "appVersion", v->m.app_version) &&
        trpi_json_add_text(row, "troupeVersion", v->build[0] != '\0' ? v->build : NULL) &&
        trpi_json_add_text(row, "certificateNotAfter",
                           v->cert_until_ms
                               ? trpi_time_format(v->cert_until_ms, time_text, sizeof time_text)
                               : NULL) &&
        number_or_null_add(row, "certificateDaysLeft",
                           (double)days_until(v->cert_until_ms, wall_ms), v->cert_until_ms != 0);
    return trpi_json_append(list, row, ok);
}

static bool
unreachable_row_add(cJSON *list, const trpi_view_member *v)
{
    cJSON *row = cJSON_CreateObject();
    bool ok = trpi_json_add_text(row, "node", v->m.address);
    cJSON *observers = ok ? cJSON_AddArrayToObject(row, "observedBy") : NULL;
    ok = observers != NULL;
    for (size_t i = 0; ok && i < v->observers_count; i++) {
        ok = cJSON_AddItemToArray(observers, cJSON_CreateString(v->observers[i]));
    }
    ok = ok && trpi_json_add_i64(row, "sinceMs", (int64_t)v->unreachable_ms);
    return trpi_json_append(list, row, ok);
}

void
trpi_node_serve_members(trp_node *node, trpi_call *call)
{
    trpi_view view;
    char version[20];
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    trpi_view_look_at_certificates(node, &view);
    int64_t wall_ms = trpi_world_wall_ms(trpi_system_world(node->system));
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_text(reply, "selfStatus", self_status(&view)) &&
              trpi_json_add_text(reply, "leader", address_of(view.leader)) &&
              trpi_json_add_text(reply, "oldest", address_of(view.oldest)) &&
              per_role_add(reply, "oldestPerRole", &view, trpi_view_oldest) &&
              per_role_add(reply, "leaderPerRole", &view, trpi_view_leader);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "members") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < view.count; i++) {
        ok = member_row_add(list, &view.members[i], wall_ms);
    }
    list = ok ? cJSON_AddArrayToObject(reply, "unreachable") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < view.count; i++) {
        ok = view.members[i].m.reachable || unreachable_row_add(list, &view.members[i]);
    }
    (void)snprintf(version, sizeof version, "%016llx", (unsigned long long)view.version);
    ok = ok && trpi_json_add_bool(reply, "converged", view.converged) &&
         trpi_json_add_text(reply, "version", version) &&
         trpi_json_add_text(reply, "notJoined",
                            view.count == 0 && view.seeking_why[0] != '\0' ? view.seeking_why
                                                                           : NULL);
    trpi_view_fini(&view);
    trpi_call_answer_if(call, ok, reply);
}

/* ---- member-status --------------------------------------------------------------------------- */

void
trpi_node_serve_member_status(trp_node *node, trpi_call *call)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    trp_err err = TRP_OK;
    if (call->request.member) {
        err = trpi_view_find(&view, call->request.member, &found, &refusal);
    } else {
        found = view.self;
    }
    if (err != TRP_OK) {
        trpi_call_refuse(call, &refusal);
    } else {
        cJSON *reply = trpi_call_reply();
        const trpi_node_id *self = trpi_system_self(node->system);
        trpi_cluster_next_crash cast;
        bool known = call->request.dry_run && found != NULL &&
                     trpi_cluster_next_crash_get(node->cluster, found->m.uid, &cast) == TRP_OK;
        bool ok = found ? trpi_member_add(reply, &found->m)
                        : trpi_json_add_text(reply, "node", node->address) &&
                              trpi_json_add_u64_string(reply, "nodeUid", self->uid) &&
                              trpi_json_add_text(reply, "status",
                                                 trp_member_status_name(TRP_MEMBER_REMOVED)) &&
                              cJSON_AddArrayToObject(reply, "roles") != NULL;
        ok = ok && trpi_json_add_bool(reply, "reachable", !found || found->m.reachable) &&
             (!known || trpi_next_crash_add(reply, &cast));
        trpi_call_answer_if(call, ok, reply);
    }
    trpi_view_fini(&view);
}

/* ---- status ---------------------------------------------------------------------------------- */

static bool
problem_add(cJSON *problems, const char *text)
{
    cJSON *item = cJSON_CreateString(text);
    return item && cJSON_AddItemToArray(problems, item);
}

/* Add the problems that this node has by itself, whatever the view is. */
static bool
standing_problems_add(cJSON *problems, const trpi_view *view)
{
    char text[PROBLEM_BYTES];
    uint32_t removers = 0;
    const trp_member *first = NULL;
    for (size_t i = 0; i < view->count; i++) {
        first = first == NULL && view->members[i].remover ? &view->members[i].m : first;
        removers += view->members[i].remover ? 1 : 0;
    }
    bool ok = !view->waking ||
              problem_add(problems, "this node stood still: until its peers have answered, or are "
                                    "unreachable, it does not act as leader and its cluster "
                                    "routers route no messages");
    if (ok && view->exclusive.suspended) {
        (void)snprintf(text, sizeof text,
                       "singletons and entities of this node are suspended for %" PRIu64
                       " s: %s; this ends when %s",
                       view->exclusive.for_ms / 1000, view->exclusive.cause,
                       view->exclusive.awaits);
        ok = problem_add(problems, text);
    }
    if (ok && first != NULL) {
        char more[32] = "";
        if (removers > 1) {
            (void)snprintf(more, sizeof more, " and %u more", removers - 1);
        }
        (void)snprintf(text, sizeof text,
                       "two clusters: %s%s removed this node from their cluster (%llu s): troupe "
                       "why",
                       first->address, more, (unsigned long long)(view->removed_ms / 1000));
        ok = problem_add(problems, text);
    }
    return ok;
}

static bool
is_missed(const trpi_view *view, const trpi_view_member *v)
{
    (void)view;
    return !v->m.reachable;
}

static bool
is_down(const trpi_view *view, const trpi_view_member *v)
{
    (void)view;
    return v->m.status == TRP_MEMBER_DOWN;
}

static bool
joins_long(const trpi_view *view, const trpi_view_member *v)
{
    (void)view;
    return v->m.status == TRP_MEMBER_JOINING && v->age_ms > JOINING_LONG_MS;
}

static bool
member_lags(const trpi_view *view, const trpi_view_member *v)
{
    return !v->seen && v->m.reachable && view->converged_ms > JOINING_LONG_MS &&
           (v->awaited || v->m.status == TRP_MEMBER_UP || v->m.status == TRP_MEMBER_LEAVING);
}

/* A problem that a member may have, as it reads for one member and for several. */
typedef struct finding {
    bool (*holds)(const trpi_view *view, const trpi_view_member *v);
    const char *one, *many, *behind;
    enum { NO_AGE, UNREACHABLE_FOR, VIEW_FOR } age;
} finding;

static const finding findings[] = {
    { is_missed, "is unreachable", "are unreachable", "", UNREACHABLE_FOR },
    { is_down, "is Down", "are Down", "", NO_AGE },
    { joins_long, "is Joining", "are Joining", "", NO_AGE },
    { member_lags, "has not seen the present view", "have not seen the present view",
      ": troupe why", VIEW_FOR },
};

/* "A is unreachable (6 s)", "7 members are unreachable: A, B, C and 4 more (6 s)". */
static bool
finding_add(cJSON *problems, const trpi_view *view, const finding *f)
{
    enum { SHOWN = 3 };
    char names[SHOWN * (TRP_ADDRESS_BYTES + 2)] = "", text[sizeof names + 128], age[32] = "";
    uint64_t age_ms = f->age == VIEW_FOR ? view->converged_ms : 0;
    size_t count = 0, used = 0;
    for (size_t i = 0; i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (!f->holds(view, v)) {
            continue;
        }
        if (count++ < SHOWN) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", v->m.address);
        }
        if (f->age == UNREACHABLE_FOR && v->unreachable_ms > age_ms) {
            age_ms = v->unreachable_ms;
        }
    }
    if (count == 0) {
        return true;
    }
    if (f->age != NO_AGE) {
        (void)snprintf(age, sizeof age, " (%llu s)", (unsigned long long)(age_ms / 1000));
    }
    if (count == 1) {
        (void)snprintf(text, sizeof text, "%s %s%s%s", names, f->one, age, f->behind);
    } else if (count <= SHOWN) {
        (void)snprintf(text, sizeof text, "%zu members %s: %s%s%s", count, f->many, names, age,
                       f->behind);
    } else {
        (void)snprintf(text, sizeof text, "%zu members %s: %s and %zu more%s%s", count, f->many,
                       names, count - SHOWN, age, f->behind);
    }
    return problem_add(problems, text);
}

/* Add the members that will stop, and in how many seconds. */
static bool
outlook_problem_add(cJSON *problems, const trpi_view *view)
{
    const trpi_downing_forecast *f = &view->forecast;
    char text[PROBLEM_BYTES + sizeof f->who], when[32] = "now";
    if (!view->foresees || f->kind != TRPI_FORECAST_STOPS) {
        return true;
    }
    if (f->in_ms > 0) {
        (void)snprintf(when, sizeof when, "in %llu s",
                       (unsigned long long)((f->in_ms + 999) / 1000));
    }
    (void)snprintf(text, sizeof text,
                   "this node stops %s, if nothing changes, with its side (%s): %s counts %s", when,
                   f->who, view->strategy, f->reason);
    return problem_add(problems, text);
}

static bool
foreign_problem_add(cJSON *problems, const trpi_view *view)
{
    char text[PROBLEM_BYTES], more[32] = "";
    if (view->foreign_count == 0) {
        return true;
    }
    if (view->foreign_count > 1) {
        (void)snprintf(more, sizeof more, " and %zu more", view->foreign_count - 1);
    }
    (void)snprintf(text, sizeof text,
                   "two clusters: seed node %s%s is alive and no member of this one (%llu s): "
                   "troupe why",
                   view->foreign[0].m.address, more,
                   (unsigned long long)(view->foreign[0].age_ms / 1000));
    return problem_add(problems, text);
}

/* One sentence for each reason why the cluster is not healthy. */
static bool
problems_add(cJSON *problems, const trpi_view *view)
{
    char text[PROBLEM_BYTES];
    bool ok = standing_problems_add(problems, view) && foreign_problem_add(problems, view);
    if (!ok) {
        return false;
    }
    if (!view->self) {
        (void)snprintf(text, sizeof text, "this node has not joined a cluster%s%s",
                       view->seeking_why[0] != '\0' ? ": " : "", view->seeking_why);
        ok = problem_add(problems, text);
    } else if (view->self->m.status != TRP_MEMBER_UP &&
               view->self->m.status != TRP_MEMBER_WEAKLY_UP) {
        (void)snprintf(text, sizeof text, "this node is %s",
                       trp_member_status_name(view->self->m.status));
        ok = problem_add(problems, text);
    }
    for (size_t i = 0; ok && i < sizeof findings / sizeof findings[0]; i++) {
        ok = finding_add(problems, view, &findings[i]);
    }
    for (size_t i = 0; ok && i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (v->link[0] != '\0') {
            (void)snprintf(text, sizeof text, "messages to %s wait: %s", v->m.address, v->link);
            ok = problem_add(problems, text);
        }
    }
    return ok && outlook_problem_add(problems, view);
}

static bool
peers_problem_add(trp_node *node, cJSON *problems, const trpi_view *view)
{
    enum { ROOM = 16 }; /* for peers that come between counting and copying */
    char text[PROBLEM_BYTES];
    size_t count = 0;
    trpi_peer_info first;
    if (view->count < 2) {
        return true;
    }
    trpi_remote_peers(node->remote, &first, 1, &count);
    size_t room = count + ROOM;
    trpi_peer_info *peers = trpi_alloc(room * sizeof *peers);
    if (peers == NULL) {
        return false;
    }
    trpi_remote_peers(node->remote, peers, room, &count);
    bool is = trpi_peers_problem(view, peers, count < room ? count : room, text, sizeof text);
    trpi_free(peers);
    return !is || problem_add(problems, text);
}

/* Messages per second since the last request at least a second ago. */
static double
rate_take(trp_node *node, uint64_t processed)
{
    uint64_t now = trpi_world_mono_ns(trpi_system_world(node->system));
    pthread_mutex_lock(&node->lock);
    uint64_t since_ns = node->rate.since_ns == 0 ? node->start_ns : node->rate.since_ns;
    if (now - since_ns >= RATE_WINDOW_NS) {
        node->rate.per_second =
            (double)(processed - node->rate.messages) * 1e9 / (double)(now - since_ns);
        node->rate.since_ns = now;
        node->rate.messages = processed;
    }
    double rate = node->rate.per_second;
    pthread_mutex_unlock(&node->lock);
    return rate;
}

static bool
actors_add(trp_node *node, cJSON *reply)
{
    trp_system_stats stats;
    uint64_t dead = trpi_node_stats(node, &stats);
    return trpi_json_add_i64(reply, "actors", (int64_t)stats.actors) &&
           cJSON_AddNumberToObject(reply, "messagesPerSecond",
                                   rate_take(node, stats.messages_processed)) &&
           trpi_json_add_i64(reply, "deadLetters", (int64_t)dead);
}

static bool
downing_add(trp_node *node, cJSON *reply)
{
    cJSON *downing = cJSON_AddObjectToObject(reply, "downing");
    return trpi_json_add_text(downing, "strategy",
                              trpi_config_text(node->config, "cluster.downing.active-strategy")) &&
           trpi_json_add_i64(downing, "stableAfterMs",
                             trpi_config_int(node->config, "cluster.downing.stable-after"));
}

/* How links are protected, and by which certificate. */
static bool
links_add(trp_node *node, cJSON *reply)
{
    trpi_tls_state tls;
    char until[32];
    bool is_tls = trpi_remote_tls_state(node->remote, &tls);
    bool ok = trpi_json_add_text(reply, "encryption", is_tls ? "TLS 1.3 mutual" : "none") &&
              trpi_json_add_bool(reply, "cookie", node->has_cookie);
    if (!is_tls) {
        return ok && cJSON_AddNullToObject(reply, "certificate") != NULL;
    }
    cJSON *certificate = ok ? cJSON_AddObjectToObject(reply, "certificate") : NULL;
    return certificate != NULL && trpi_json_add_text(certificate, "subject", tls.subject) &&
           trpi_json_add_text(certificate, "issuer", tls.issuer) &&
           trpi_json_add_text(certificate, "notAfter",
                              trpi_time_format(tls.not_after_ms, until, sizeof until)) &&
           trpi_json_add_i64(
               certificate, "daysLeft",
               days_until(tls.not_after_ms, trpi_world_wall_ms(trpi_system_world(node->system))));
}

/* Connections that were refused since the start, by the word for it. */
static bool
refusals_add(trp_node *node, cJSON *reply)
{
    trpi_remote_stats stats;
    cJSON *refused = cJSON_AddObjectToObject(reply, "refused");
    bool ok = refused != NULL;
    trpi_remote_stats_get(node->remote, &stats);
    for (int why = TRPI_REFUSED_NONE + 1; ok && why < TRPI_REFUSAL_COUNT; why++) {
        ok = stats.refused[why] == 0 ||
             trpi_json_add_i64(refused, trpi_refusal_text((trpi_refusal)why),
                               (int64_t)stats.refused[why]);
    }
    return ok;
}

/* Add the cost of membership: entries of the view besides the members, and frames since the start,
 * those of actors among them. */
static bool
gossip_add(trp_node *node, cJSON *reply, const trpi_view *view)
{
    trpi_remote_stats stats;
    cJSON *gossip = cJSON_AddObjectToObject(reply, "gossip");
    trpi_remote_stats_get(node->remote, &stats);
    return gossip != NULL && trpi_json_add_i64(gossip, "clock", view->clock_count) &&
           trpi_json_add_i64(gossip, "tombstones", view->tombstones_count) &&
           trpi_json_add_i64(reply, "framesIn", (int64_t)stats.frames_in) &&
           trpi_json_add_i64(reply, "framesOut", (int64_t)stats.frames_out);
}

/* Add the problems of this node's own files, its log among them. */
static bool
file_problems_add(trp_node *node, cJSON *problems, const trpi_view *view)
{
    char text[160];
    bool ok = !trpi_node_log_problem(&node->log, text, sizeof text) || problem_add(problems, text);
    for (size_t i = 0; ok && i < view->troubles_count; i++) {
        ok = problem_add(problems, view->troubles[i].what);
    }
    return ok;
}

/* Add the problem of too many connections without a handshake, or of no free descriptor. */
static bool
crowd_problems_add(trp_node *node, cJSON *problems)
{
    trpi_remote_stats stats;
    char text[160];
    bool ok = true;
    trpi_remote_stats_get(node->remote, &stats);
    if (stats.starved_ago_ms < CROWD_RECENT_MS) {
        ok = problem_add(problems, "no descriptor was free for a connection: raise LimitNOFILE= of "
                                   "the service (ulimit -n)");
    }
    if (ok && stats.displaced_ago_ms < CROWD_RECENT_MS) {
        (void)snprintf(text, sizeof text,
                       "%u connections wait for their handshake; with more than %u the oldest is "
                       "closed: remote.pending-handshakes-max",
                       stats.pending, stats.pending_max);
        ok = problem_add(problems, text);
    }
    return ok;
}

static bool
counts_add(cJSON *reply, const trpi_view *view)
{
    int64_t up = 0, unreachable = 0;
    for (size_t i = 0; i < view->count; i++) {
        up += view->members[i].m.status == TRP_MEMBER_UP;
        unreachable += !view->members[i].m.reachable;
    }
    return trpi_json_add_i64(reply, "members", (int64_t)view->count) &&
           trpi_json_add_i64(reply, "up", up) &&
           trpi_json_add_i64(reply, "unreachable", unreachable) &&
           trpi_json_add_bool(reply, "converged", view->converged) &&
           number_or_null_add(reply, "convergedForMs", (double)view->converged_ms,
                              view->converged) &&
           trpi_json_add_text(reply, "leader", address_of(view->leader)) &&
           trpi_json_add_text(reply, "oldest", address_of(view->oldest));
}

void
trpi_node_serve_status(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    trpi_view_foresee(node, &view);
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(node->system));
    trpi_view_look_at_links(node, &view);
    trpi_view_look_at_files(node, &view);
    cJSON *reply = trpi_call_reply(), *problems = cJSON_CreateArray();
    bool ok = problems_add(problems, &view) && peers_problem_add(node, problems, &view) &&
              file_problems_add(node, problems, &view) &&
              trpi_node_singletons_problems(node, problems) &&
              trpi_node_shards_problems(node, problems) && crowd_problems_add(node, problems) &&
              trpi_node_journal_add(node, reply, problems);
    bool healthy = cJSON_GetArraySize(problems) == 0;
    ok = ok && trpi_json_add_text(reply, "system", trp_system_name(node->system)) &&
         trpi_json_add_text(reply, "selfNode", node->address) &&
         trpi_json_add_u64_string(reply, "selfUid", trpi_system_self(node->system)->uid) &&
         trpi_json_add_text(reply, "selfStatus", self_status(&view)) &&
         trpi_json_add_i64(reply, "uptimeMs", (int64_t)((now_ns - node->start_ns) / 1000000)) &&
         trpi_json_add_i64(reply, "pid", getpid()) &&
         trpi_json_add_text(reply, "version", trp_version()) &&
         trpi_json_add_bool(reply, "healthy", healthy);
    if (ok && cJSON_AddItemToObject(reply, "problems", problems)) {
        problems = NULL; /* belongs to reply */
    }
    ok = ok && !problems && counts_add(reply, &view) && actors_add(node, reply) &&
         downing_add(node, reply) && links_add(node, reply) && refusals_add(node, reply) &&
         gossip_add(node, reply, &view) && trpi_why_add_reasons(reply, &view) &&
         trpi_node_singletons_why(node, reply) && trpi_node_shards_why(node, reply) &&
         trpi_json_add_text(reply, "controlSocket", trp_node_control_path(node));
    cJSON_Delete(problems);
    trpi_view_fini(&view);
    trpi_call_answer_if(call, ok, reply);
}
