/* doctor_look.c - the doctor's facts that a node knows by itself: its view, its links, its
 * configuration, its actors.
 *
 * Tests.   tests/unit/node/doctor_node_test.c, doctor_causes_test.c, doctor_hangs_test.c
 */
#include "cluster/node/doctor_look.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <troupe/live.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "persistence/persistence.h"

#define JOINING_LONG_MS 10000u
#define HANGS_MS 5000u
#define RECENT_MS 60000u
#define DEAD_WINDOW_MS 300000u
#define SAMPLE_MS 200u       /* for the actors to answer */
#define BUSY 0.99            /* share of the time that one behaviour held its thread */
#define MAILBOX_LONG 1000u   /* messages */
#define LOOKED_AT_MAX 20000u /* actors */
#define DAY_MS INT64_C(86400000)

/* ---- the cluster ----------------------------------------------------------------------------- */

static void
member_look(const trpi_view *view, const trpi_view_member *v, trpi_doctor_facts *facts,
            int64_t now_ms)
{
    const char *address = v->m.address;
    facts->up += v->m.status == TRP_MEMBER_UP;
    if (!v->m.reachable) {
        trpi_doctor_case(&facts->unreachable,
                         "%s is unreachable for %" PRIu64 " s, say %zu of %zu%s%s", address,
                         v->unreachable_ms / 1000, v->observers_count, view->count - 1,
                         v->cause[0] != '\0' ? ": " : "", v->cause);
    }
    if (v->m.status == TRP_MEMBER_DOWN) {
        trpi_doctor_case(&facts->down, "%s is Down", address);
    }
    if (trpi_member_has_drained(&v->m)) {
        trpi_doctor_case(&facts->drained, "%s is drained: it is given no shard and no routee",
                         address);
    }
    if (v->m.status == TRP_MEMBER_JOINING && v->age_ms > JOINING_LONG_MS) {
        trpi_doctor_case(&facts->joining_long, "%s is Joining for %" PRIu64 " s", address,
                         v->age_ms / 1000);
    }
    if (v->link[0] != '\0') {
        trpi_doctor_case(&facts->links_wait, "messages to %s wait: %s", address, v->link);
    }
    if (v->remover) {
        trpi_doctor_case(&facts->removers, "%s has removed this node from its cluster", address);
    }
    if (v != view->self && v->cert_until_ms != 0 &&
        v->cert_until_ms - now_ms < TRPI_DOCTOR_CERTIFICATE_DAYS * DAY_MS) {
        trpi_doctor_case(
            &facts->member_certificates, "the certificate of %s %s %" PRId64 " days", address,
            v->cert_until_ms >= now_ms ? "ends in" : "has ended for",
            (v->cert_until_ms >= now_ms ? v->cert_until_ms - now_ms : now_ms - v->cert_until_ms) /
                DAY_MS);
    }
}

static void
view_look(trp_node *node, const trpi_view *view, trpi_doctor_facts *facts,
          trpi_doctor_member *members)
{
    int64_t now_ms = node->probes->wall_ms(node);
    facts->joined = view->self != NULL;
    facts->converged = view->converged;
    facts->converged_ms = view->converged_ms;
    facts->view = view->version;
    facts->standing_still = view->waking;
    facts->members = members;
    (void)snprintf(facts->status, sizeof facts->status, "%s",
                   view->self != NULL ? trp_member_status_name(view->self->m.status) : "Removed");
    (void)snprintf(facts->seeking, sizeof facts->seeking, "%s%s%s", view->seeking,
                   view->seeking_why[0] != '\0' ? ": " : "", view->seeking_why);
    (void)snprintf(facts->lacking, sizeof facts->lacking, "%s", view->lacking);
    for (size_t i = 0; i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        member_look(view, v, facts, now_ms);
        if (v != view->self) {
            trpi_doctor_member *m = &members[facts->members_count++];
            memset(m, 0, sizeof *m);
            (void)snprintf(m->address, sizeof m->address, "%s", v->m.address);
            m->reachable = v->m.reachable;
        }
    }
    for (size_t i = 0; i < view->foreign_count; i++) {
        trpi_doctor_case(&facts->foreign,
                         "seed node %s is alive and no member of this cluster, for %" PRIu64 " s",
                         view->foreign[i].m.address, view->foreign[i].age_ms / 1000);
    }
    for (size_t i = 0; i < view->troubles_count; i++) {
        trpi_doctor_case(&facts->troubles, "%s", view->troubles[i].what);
    }
}

static void
hand_over_look(void *arg, const trpi_singleton_status *status)
{
    trpi_doctor_facts *facts = arg;
    if (status->waits[0] != '\0' && status->state_ms >= HANGS_MS) {
        trpi_doctor_case(&facts->hand_overs, "singleton %s is %s for %" PRIu64 " s: %s",
                         status->name, status->state, status->state_ms / 1000, status->waits);
    }
}

static void
shards_look(void *arg, const trpi_sharding_status *status)
{
    trpi_doctor_facts *facts = arg;
    char text[TRPI_SHARDING_WAITS_BYTES + 160];
    if (trpi_sharding_problem(status, HANGS_MS, text, sizeof text)) {
        trpi_doctor_case(&facts->shards, "%s", text);
    }
}

static void
downing_look(trp_node *node, const trpi_view *view, trpi_doctor_facts *facts)
{
    const trpi_downing_forecast *f = &view->forecast;
    const char *strategy = trpi_config_text(node->config, "cluster.downing.active-strategy");
    (void)snprintf(facts->strategy, sizeof facts->strategy, "%s", strategy);
    facts->quorum_size =
        (uint32_t)trpi_config_int(node->config, "cluster.downing.static-quorum.quorum-size");
    if (view->foresees && f->kind != TRPI_FORECAST_NONE) {
        facts->stops = f->kind == TRPI_FORECAST_STOPS;
        (void)snprintf(facts->outlook, sizeof facts->outlook, "%s in %" PRIu64 " s: %s (%s)",
                       facts->stops                     ? "its side stops"
                       : f->kind == TRPI_FORECAST_LEASE ? "the owner of the lease goes on"
                                                        : "this side goes on",
                       (f->in_ms + 999) / 1000, f->reason, f->who);
    }
    facts->leave_timeout_ms = (uint64_t)trpi_config_int(node->config, "cluster.leave-timeout");
    facts->leave_need_ms = trpi_node_leave_need_ms(node->config);
    if (strcmp(strategy, "lease") == 0) {
        trpi_downing_options options;
        trpi_node_downing_times(node, &options);
        facts->lease_hold_ms = trpi_downing_lease_hold_ms(&options);
    }
}

/* ---- links and protection -------------------------------------------------------------------- */

static void
refusals_look(trp_node *node, trpi_doctor_facts *facts)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(node->remote, &stats);
    for (int why = TRPI_REFUSED_NONE + 1; why < TRPI_REFUSAL_COUNT; why++) {
        size_t used = strlen(facts->refused_text);
        if (stats.refused[why] > 0 && used < sizeof facts->refused_text) {
            facts->refused += stats.refused[why];
            (void)snprintf(facts->refused_text + used, sizeof facts->refused_text - used,
                           "%s%s %" PRIu64, used > 0 ? ", " : "",
                           trpi_refusal_text((trpi_refusal)why), stats.refused[why]);
        }
    }
    facts->starved = stats.starved_ago_ms < RECENT_MS;
    if (stats.displaced_ago_ms < RECENT_MS) {
        facts->handshakes = stats.pending;
        facts->handshakes_max = stats.pending_max;
    }
}

static bool
peers_look(trp_node *node, trpi_doctor_facts *facts)
{
    enum { ROOM = 16 }; /* for peers that come between counting and copying */
    trpi_peer_info first;
    size_t count = 0;
    trpi_remote_peers(node->remote, &first, 1, &count);
    size_t room = count + ROOM;
    trpi_peer_info *peers = trpi_alloc(room * sizeof *peers);
    if (peers == NULL) {
        return false;
    }
    trpi_remote_peers(node->remote, peers, room, &count);
    for (size_t i = 0; i < count && i < room; i++) {
        char address[TRPI_ADDRESS_TEXT_BYTES];
        if (strcmp(peers[i].state, "quarantined") == 0 &&
            strcmp(peers[i].reason, TRPI_PEER_SAID_GOODBYE) != 0) { /* else it has left */
            trpi_doctor_case(&facts->quarantined, "%s is quarantined: %s",
                             trpi_address_format(&peers[i].id.address, address, sizeof address),
                             peers[i].reason);
        }
    }
    trpi_free(peers);
    return true;
}

static void
protection_look(trp_node *node, trpi_doctor_facts *facts)
{
    const char *host = trpi_remote_address(node->remote)->host;
    trpi_tls_state tls;
    facts->loopback =
        strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
    facts->cookie = node->has_cookie;
    facts->tls = trpi_remote_tls_state(node->remote, &tls);
    if (facts->tls) {
        int64_t left_ms = tls.not_after_ms - node->probes->wall_ms(node);
        (void)snprintf(facts->subject, sizeof facts->subject, "%s", tls.subject);
        facts->certificate_days = left_ms >= 0 ? left_ms / DAY_MS : -1;
    }
}

static void
configuration_look(trp_node *node, trpi_doctor_facts *facts)
{
    facts->test_adapters = trpi_config_bool(node->config, "remote.test-adapters");
    facts->log_debug = trp_log_level_get(node->system) == TRP_LOG_DEBUG;
    for (size_t i = 0; i < trpi_config_count(node->config); i++) {
        trpi_config_entry entry;
        trpi_config_at(node->config, i, &entry);
        const char *idle = trpi_node_config_idle(&entry);
        if (idle != NULL) {
            trpi_doctor_case(&facts->idle_keys, "%s: %s has no effect: %s", entry.origin, entry.key,
                             idle);
        }
    }
}

static void
journal_look(trp_node *node, trpi_doctor_facts *facts)
{
    static const char *const states[] = { "open", "away", "read-only", "closed" };
    const trp_journal_driver *driver = trpi_persistence_journal(node->system);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    facts->has_journal = driver != NULL;
    if (driver != NULL) {
        driver->health(driver->arg, &health);
        (void)snprintf(facts->journal, sizeof facts->journal, "%s",
                       (size_t)health.state < 4 ? states[health.state] : "unknown");
        (void)snprintf(facts->journal_why, sizeof facts->journal_why, "%s", health.why);
        facts->journal_waiting = health.waiting;
        facts->journal_local =
            driver->shared == 0 && trpi_persistence_is_local_enough(node->system);
        facts->shards_unopened = trpi_sharding_unopened(node->system);
    }
}

/* ---- actors ---------------------------------------------------------------------------------- */

trp_live *
trpi_doctor_live_begin(trp_node *node)
{
    trp_live *live = NULL;
    trpi_observed *seen = trpi_alloc(sizeof *seen);
    if (seen != NULL) {
        (void)!trpi_system_observe(node->system, seen); /* the walk begins; read at the end */
    }
    trpi_free(seen);
    if (trp_live_open(node->system, &live) != TRP_OK) {
        return NULL;
    }
    (void)!trp_live_sample(live, SAMPLE_MS); /* late: actors as before */
    return live;
}

/* Find the row of an actor in the last walk; NULL: it has none. */
static const trpi_observed_actor *
row_of(const trpi_observed *seen, trp_ref actor)
{
    for (uint32_t i = 0; seen != NULL && i < seen->rows_count; i++) {
        if (trp_ref_equal(seen->rows[i].ref, actor)) {
            return &seen->rows[i];
        }
    }
    return NULL;
}

/* An actor that holds a thread: with what message, and for how long. */
static void
stuck_look(trp_node *node, const trp_live_thread *thread, const trpi_observed *seen,
           trpi_doctor_facts *facts)
{
    char path[TRP_PATH_BYTES_MAX + 1] = "", what[TRPI_HELD_TYPE_BYTES + 32] = "one message";
    trpi_held_turn turn;
    const trpi_observed_actor *row = row_of(seen, thread->actor);
    trp_path(node->system, thread->actor, path, sizeof path);
    if (trpi_system_held(node->system, thread->actor, &turn) && turn.type[0] != '\0') {
        (void)snprintf(what, sizeof what, "one message of type %s", turn.type);
    }
    if (facts->held_count < TRPI_DOCTOR_HELD_MAX) {
        trpi_doctor_held *held = &facts->held[facts->held_count++];
        (void)snprintf(held->actor, sizeof held->actor, "%s", path);
        held->thread = turn.thread;
    }
    if (row != NULL && row->held_ns > 0) {
        trpi_doctor_case(
            &facts->stuck,
            "%s (behaviour %s) has held a thread of dispatcher %s with %s for at least %.1f "
            "s",
            path, row->behaviour, thread->dispatcher, what, (double)row->held_ns / 1e9);
    } else {
        trpi_doctor_case(&facts->stuck,
                         "%s has held a thread of dispatcher %s with %s since it was looked at "
                         "first",
                         path, thread->dispatcher, what);
    }
}

/* Threads that one behaviour has held between the samples. */
static void
threads_look(trp_live *live, trp_node *node, const trpi_observed *seen, trpi_doctor_facts *facts)
{
    uint32_t count = trp_live_threads(live, NULL, 0);
    trp_live_thread *threads = trpi_alloc((count + 1) * sizeof *threads);
    if (threads == NULL) {
        return;
    }
    uint32_t all = trp_live_threads(live, threads, count);
    for (uint32_t i = 0; i < count && i < all; i++) {
        const trp_live_thread *t = &threads[i];
        if (!trp_ref_is_none(t->actor) && t->busy >= BUSY && !(t->completions_per_s > 0) &&
            strstr(t->dispatcher, "blocking") == NULL) {
            stuck_look(node, t, seen, facts);
        }
    }
    trpi_free(threads);
}

static void
mailboxes_look(trp_live *live, trp_node *node, trpi_doctor_facts *facts)
{
    uint32_t count = trp_live_actors(live, NULL, 0);
    count = count < LOOKED_AT_MAX ? count : LOOKED_AT_MAX;
    trp_live_actor *actors = trpi_alloc((count + 1) * sizeof *actors);
    if (actors == NULL) {
        return;
    }
    uint32_t all = trp_live_actors(live, actors, count);
    for (uint32_t i = 0; i < count && i < all; i++) {
        char path[TRP_PATH_BYTES_MAX + 1] = "";
        const trp_live_actor *a = &actors[i];
        bool grows = a->pending >= MAILBOX_LONG && a->accepts_per_s > a->completions_per_s;
        if (grows || a->suspended) {
            trp_path(node->system, a->ref, path, sizeof path);
        }
        if (grows) {
            trpi_doctor_case(&facts->mailboxes,
                             "%" PRIu64 " messages wait for %s: %.0f/s come, %.0f/s are handled",
                             a->pending, path, a->accepts_per_s, a->completions_per_s);
        }
        if (a->suspended) {
            trpi_doctor_case(&facts->suspended,
                             "%s waits for the decision of its supervisor, and "
                             "%" PRIu64 " messages wait for it",
                             path, a->pending);
        }
    }
    trpi_free(actors);
}

/* Actors below a supervisor that is stuck do not answer in time; the walk asks none, and sees
 * them. */
static void
suspended_look(trp_node *node, const trpi_observed *seen, trpi_doctor_facts *facts)
{
    if (seen->suspended <= facts->suspended.count) {
        return;
    }
    facts->suspended = (trpi_doctor_cases){ 0, "" };
    for (uint32_t i = 0; i < seen->rows_count && facts->suspended.count == 0; i++) {
        char path[TRP_PATH_BYTES_MAX + 1] = "";
        if (seen->rows[i].suspended) {
            trp_path(node->system, seen->rows[i].ref, path, sizeof path);
            trpi_doctor_case(&facts->suspended, "%s waits for the decision of its supervisor",
                             path);
        }
    }
    if (facts->suspended.count == 0) {
        trpi_doctor_case(&facts->suspended, "an actor waits for the decision of its supervisor");
    }
    facts->suspended.count = (uint32_t)seen->suspended;
}

void
trpi_doctor_live_end(trp_live *live, trp_node *node, trpi_doctor_facts *facts)
{
    trpi_observed *seen = trpi_alloc(sizeof *seen);
    if (seen != NULL && (trpi_system_observe(node->system, seen) != TRP_OK || !seen->complete)) {
        trpi_free(seen);
        seen = NULL;
    }
    if (live != NULL) {
        (void)!trp_live_sample(live, SAMPLE_MS);
        threads_look(live, node, seen, facts);
        mailboxes_look(live, node, facts);
        trp_live_close(live);
    }
    if (seen != NULL) {
        suspended_look(node, seen, facts);
    }
    trpi_free(seen);
}

bool
trpi_doctor_look(trp_node *node, const trpi_view *view, trpi_doctor_facts *facts,
                 trpi_doctor_member *members)
{
    (void)snprintf(facts->version, sizeof facts->version, "%s", node->probes->version());
    view_look(node, view, facts, members);
    downing_look(node, view, facts);
    trpi_singletons_each(node->system, hand_over_look, facts);
    trpi_sharding_each(node->system, shards_look, facts);
    refusals_look(node, facts);
    protection_look(node, facts);
    configuration_look(node, facts);
    journal_look(node, facts);
    trpi_doctor_look_at_host(node, facts);
    facts->log_lost = trpi_node_log_lost(&node->log);
    facts->log_dropped = trp_log_dropped(node->system);
    if (!node->log_own ||
        !trpi_node_log_problem(&node->log, facts->log_trouble, sizeof facts->log_trouble)) {
        facts->log_trouble[0] = '\0';
    }
    trpi_node_deadletters_recent(node, DEAD_WINDOW_MS, facts);
    return peers_look(node, facts);
}
