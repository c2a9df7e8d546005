/* snapshot.c - snapshots for the node program, and the members of the public API
 * (include/troupe/cluster.h). See snapshot.h.
 */
#include "cluster/shell/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/shell/shell.h"

/* ---- snapshots ------------------------------------------------------------------------------- */

static const struct shell_known *
known_of(const trpi_cluster *cluster, uint64_t uid)
{
    for (uint32_t i = 0; i < cluster->engine.known_count; i++) {
        if (cluster->engine.known[i].uid == uid) {
            return &cluster->engine.known[i];
        }
    }
    return NULL;
}

static void
fill_member(const trpi_cluster *cluster, const trpi_gossip *view, uint32_t index,
            trpi_cluster_member *ret)
{
    const trpi_gossip_member *m = &view->members[index];
    uint64_t now_us = shell_now_us(cluster);
    trpi_member_fill(cluster->engine.core, m, &ret->member);
    trpi_heartbeat_peer peer =
        trpi_heartbeat_look(cluster->engine.heartbeat, m->ident->key, now_us);
    ret->phi = peer.monitored ? peer.phi : -1.0;
    ret->round_trip_us = peer.round_trip_us;
    ret->heartbeats = peer.heard_count;
    ret->seen = trpi_seen_get(trpi_member_seen(cluster->engine.core), index);
    ret->awaited = trpi_gossip_awaits(view, index);
    const struct shell_known *known = known_of(cluster, m->ident->id.uid);
    if (known != NULL) {
        ret->age_ms = now_us / 1000 - known->first_seen_ms;
    }
    ret->up_since_wall_ms = (int64_t)m->up_since_s * 1000;
    memcpy(ret->build, m->ident->build, sizeof ret->build);
    ret->remover = trpi_member_is_remover(cluster->engine.core, m->ident->key);
    uint64_t since_ms = trpi_member_unreachable_since_ms(cluster->engine.core, m->ident->key);
    if (m->unreachable != 0) {
        ret->unreachable_ms = since_ms < now_us / 1000 ? now_us / 1000 - since_ms : 1;
    }
}

static void
fill_view(const trpi_cluster *cluster, const trpi_gossip *view, trpi_cluster_snapshot *s)
{
    uint64_t self = trpi_member_self(cluster->engine.core)->key;
    for (uint32_t i = 0; i < view->members_count; i++) {
        fill_member(cluster, view, i, &s->members[i]);
    }
    for (uint32_t i = 0; i < view->rows_count; i++) {
        s->observations[i] =
            (trpi_cluster_observation){ trpi_gossip_find(view, view->rows[i].observer),
                                        trpi_gossip_find(view, view->rows[i].subject) };
    }
    s->members_count = view->members_count;
    s->observations_count = view->rows_count;
    s->clock_count = view->clock_count;
    s->tombstones_count = view->tombstones_count;
    s->self = trpi_gossip_find(view, self);
    s->leader = trpi_gossip_leader(view, self, NULL);
    s->oldest = trpi_gossip_oldest(view, NULL);
    trpi_gossip_blockers blockers =
        trpi_gossip_blocked_by(view, trpi_member_seen(cluster->engine.core));
    s->unseen = blockers.unseen;
    s->blocking = blockers.unreachable;
    s->converged = trpi_member_is_converged(cluster->engine.core);
    uint64_t since_ms = trpi_member_converged_since_ms(cluster->engine.core);
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    s->converged_ms = since_ms < now_ms ? now_ms - since_ms : 0;
    s->version = trpi_member_version(cluster->engine.core);
    since_ms = trpi_member_removed_since_ms(cluster->engine.core);
    s->removed_ms = since_ms == 0 ? 0 : since_ms < now_ms ? now_ms - since_ms : 1;
    trpi_node_id id;
    while (s->foreign_count < TRPI_CLUSTER_FOREIGN_MAX &&
           trpi_member_foreign(cluster->engine.core, s->foreign_count, &id, &since_ms)) {
        (void)trpi_address_format(&id.address, s->foreign[s->foreign_count].address,
                                  sizeof s->foreign[0].address);
        s->foreign[s->foreign_count].uid = id.uid;
        s->foreign[s->foreign_count++].since_ms = now_ms - since_ms;
    }
    s->waking = trpi_heartbeat_is_waking(cluster->engine.heartbeat, shell_now_us(cluster));
    (void)trpi_member_lacking(cluster->engine.core, s->lacking, sizeof s->lacking);
}

trp_err
trpi_cluster_snapshot_get(trpi_cluster *cluster, trpi_cluster_snapshot **ret_snapshot)
{
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    size_t members = view == NULL ? 0 : view->members_count;
    size_t rows = view == NULL ? 0 : view->rows_count;
    trpi_cluster_snapshot *s = trpi_alloc(sizeof *s + members * sizeof(trpi_cluster_member) +
                                          rows * sizeof(trpi_cluster_observation));
    if (s != NULL) {
        s->members = (trpi_cluster_member *)(void *)(s + 1);
        s->observations = (trpi_cluster_observation *)(void *)(s->members + members);
        s->phase = trpi_member_phase_get(cluster->engine.core);
        s->stop = trpi_member_stop_reason(cluster->engine.core);
        (void)trpi_member_seek_text(cluster->engine.core, s->seeking, sizeof s->seeking);
        (void)snprintf(s->seeking_why, sizeof s->seeking_why, "%s",
                       trpi_member_seek_why(cluster->engine.core));
        s->self = s->leader = s->oldest = TRPI_CLUSTER_NONE;
        s->strategy = cluster->settings.strategy;
        s->stable_after_ms = cluster->settings.stable_after_ms;
        s->auto_down_after_ms = cluster->settings.auto_down_after_ms;
        trpi_member_stats_get(cluster->engine.core, &s->stats);
        if (view != NULL) {
            fill_view(cluster, view, s);
        }
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    *ret_snapshot = s;
    return TRP_OK;
}

bool
trpi_cluster_is_waking(trpi_cluster *cluster)
{
    pthread_mutex_lock(&cluster->engine.lock);
    bool waking = trpi_heartbeat_is_waking(cluster->engine.heartbeat, shell_now_us(cluster));
    pthread_mutex_unlock(&cluster->engine.lock);
    return waking;
}

bool
trpi_cluster_is_drained(trpi_cluster *cluster)
{
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_member_core *core = cluster->engine.core;
    bool drained = trpi_member_is_drained(core, trpi_member_self(core)->key);
    pthread_mutex_unlock(&cluster->engine.lock);
    return drained;
}

bool
trpi_cluster_forecast(trpi_cluster *cluster, trpi_downing_forecast *ret_forecast)
{
    pthread_mutex_lock(&cluster->engine.lock);
    bool made = trpi_member_forecast(cluster->engine.core, ret_forecast);
    pthread_mutex_unlock(&cluster->engine.lock);
    return made;
}

void
trpi_cluster_snapshot_free(trpi_cluster_snapshot *snapshot)
{
    trpi_free(snapshot);
}

trp_err
trpi_cluster_next_crash_get(trpi_cluster *cluster, uint64_t uid, trpi_cluster_next_crash *ret_next)
{
    trp_err err = TRP_ENOENT;
    *ret_next = (trpi_cluster_next_crash){ .strategy = cluster->settings.strategy };
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    for (uint32_t i = 0; view != NULL && i < view->members_count && err == TRP_ENOENT; i++) {
        trpi_downing_next_crash cast;
        if (view->members[i].ident->id.uid != uid) {
            continue;
        }
        err = trpi_member_next_crash(cluster->engine.core, view->members[i].ident->key, &cast)
                  ? TRP_OK
                  : TRP_ENOMEM;
        if (err == TRP_OK) {
            ret_next->votes = cast.votes;
            ret_next->fatal = cast.fatal;
        }
        if (err == TRP_OK && cast.fatal > 0) {
            const char *first = view->members[cast.first].ident->address;
            memcpy(ret_next->first, first, strlen(first));
        }
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    return err;
}

uint32_t
trpi_cluster_snapshot_leader(const trpi_cluster_snapshot *snapshot, const char *role)
{
    static const uint8_t rank_of[8] = { 9, 1, 0, 0, 2, 9, 9, 1 }; /* as trpi_gossip_leader */
    uint32_t best = TRPI_CLUSTER_NONE;
    uint32_t best_rank = 9;
    for (uint32_t i = 0; i < snapshot->members_count; i++) {
        const trp_member *m = &snapshot->members[i].member;
        uint32_t rank = m->status < 8 ? rank_of[m->status] : 9;
        if (m->status == TRP_MEMBER_LEAVING && m->up_number == 0) {
            rank = rank_of[TRP_MEMBER_JOINING];
        }
        if (rank < best_rank && (m->reachable || m->self) &&
            (role == NULL || trp_member_has_role(m, role))) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

uint32_t
trpi_cluster_snapshot_oldest(const trpi_cluster_snapshot *snapshot, const char *role)
{
    uint32_t oldest = TRPI_CLUSTER_NONE;
    for (uint32_t i = 0; i < snapshot->members_count; i++) {
        const trp_member *m = &snapshot->members[i].member;
        if (m->up_number != 0 && (m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING) &&
            (role == NULL || trp_member_has_role(m, role)) &&
            (oldest == TRPI_CLUSTER_NONE ||
             m->up_number < snapshot->members[oldest].member.up_number)) {
            oldest = i;
        }
    }
    return oldest;
}

/* ---- public: members ------------------------------------------------------------------------- */

int
trp_member_has_role(const trp_member *member, const char *role)
{
    if (member == NULL || role == NULL || role[0] == '\0') {
        return 0;
    }
    size_t bytes = strlen(role);
    for (const char *at = member->roles; *at != '\0';) {
        const char *comma = strchr(at, ',');
        size_t length = comma == NULL ? strlen(at) : (size_t)(comma - at);
        if (length == bytes && memcmp(at, role, bytes) == 0) {
            return 1;
        }
        at += length + (comma == NULL ? 0 : 1);
    }
    return 0;
}

int
trp_member_is_older_than(const trp_member *a, const trp_member *b)
{
    if (a->up_number == b->up_number) {
        trpi_address x;
        trpi_address y;
        if (trpi_address_parse(a->address, &x, NULL, NULL) != TRP_OK ||
            trpi_address_parse(b->address, &y, NULL, NULL) != TRP_OK) {
            return 0; /* no member of any cluster */
        }
        int order = trpi_address_compare(&x, &y);
        return order != 0 ? order < 0 : a->uid < b->uid;
    }
    return a->up_number != 0 && (b->up_number == 0 || a->up_number < b->up_number);
}

trp_err
trp_cluster_members(trp_system *system, trp_member *members, size_t max, size_t *ret_count)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    if (ret_count == NULL || (members == NULL && max > 0)) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    size_t count = view == NULL ? 0 : view->members_count;
    for (size_t i = 0; i < count && i < max; i++) {
        trpi_member_fill(cluster->engine.core, &view->members[i], &members[i]);
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    *ret_count = count;
    return TRP_OK;
}

trp_err
trp_cluster_self(trp_system *system, trp_member *ret_member)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    const trpi_ident *self = trpi_member_self(cluster->engine.core);
    uint32_t index = view == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(view, self->key);
    trpi_gossip_member absent = { .ident = (trpi_ident *)(uintptr_t)self };
    trpi_member_fill(cluster->engine.core,
                     index == TRPI_GOSSIP_NONE ? &absent : &view->members[index], ret_member);
    pthread_mutex_unlock(&cluster->engine.lock);
    return TRP_OK;
}

trp_err
trp_cluster_leader(trp_system *system, const char *role, trp_member *ret_member)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    uint32_t index = TRPI_GOSSIP_NONE;
    if (view != NULL) {
        index = trpi_gossip_leader(view, trpi_member_self(cluster->engine.core)->key, role);
    }
    if (index != TRPI_GOSSIP_NONE) {
        trpi_member_fill(cluster->engine.core, &view->members[index], ret_member);
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    return index == TRPI_GOSSIP_NONE ? TRP_ENOENT : TRP_OK;
}
