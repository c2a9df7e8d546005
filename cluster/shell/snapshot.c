/* snapshot.c - snapshots for the node program, and the public API (include/troupe/cluster.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "cluster/cluster.h"
#include "cluster/shell/shell.h"

#define COMMAND_TIMEOUT_MS 5000u

/* ---- snapshots ------------------------------------------------------------------------------- */

static const struct shell_known *
known_of(const trpi_cluster *cluster, uint64_t uid)
{
    for (uint32_t i = 0; i < cluster->known_count; i++) {
        if (cluster->known[i].uid == uid) {
            return &cluster->known[i];
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
    trpi_member_fill(cluster->core, m, &ret->member);
    trpi_heartbeat_peer peer = trpi_heartbeat_look(cluster->heartbeat, m->ident->key, now_us);
    ret->phi = peer.monitored ? peer.phi : -1.0;
    ret->round_trip_us = peer.round_trip_us;
    ret->heartbeats = peer.heard_count;
    ret->seen = trpi_seen_get(trpi_member_seen(cluster->core), index);
    ret->awaited = trpi_gossip_awaits(view, index);
    const struct shell_known *known = known_of(cluster, m->ident->id.uid);
    if (known != NULL) {
        ret->age_ms = now_us / 1000 - known->first_seen_ms;
    }
    ret->up_since_wall_ms = (int64_t)m->up_since_s * 1000;
    memcpy(ret->build, m->ident->build, sizeof(ret->build));
    ret->remover = trpi_member_is_remover(cluster->core, m->ident->key);
    uint64_t since_ms = trpi_member_unreachable_since_ms(cluster->core, m->ident->key);
    if (m->unreachable != 0) {
        ret->unreachable_ms = since_ms < now_us / 1000 ? now_us / 1000 - since_ms : 1;
    }
}

static void
fill_view(const trpi_cluster *cluster, const trpi_gossip *view, trpi_cluster_snapshot *s)
{
    uint64_t self = trpi_member_self(cluster->core)->key;
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
        trpi_gossip_blocked_by(view, trpi_member_seen(cluster->core));
    s->unseen = blockers.unseen;
    s->blocking = blockers.unreachable;
    s->converged = trpi_member_is_converged(cluster->core);
    uint64_t since_ms = trpi_member_converged_since_ms(cluster->core);
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    s->converged_ms = since_ms < now_ms ? now_ms - since_ms : 0;
    s->version = trpi_member_version(cluster->core);
    since_ms = trpi_member_removed_since_ms(cluster->core);
    s->removed_ms = since_ms == 0 ? 0 : since_ms < now_ms ? now_ms - since_ms : 1;
    trpi_node_id id;
    while (s->foreign_count < TRPI_CLUSTER_FOREIGN_MAX &&
           trpi_member_foreign(cluster->core, s->foreign_count, &id, &since_ms)) {
        (void)trpi_address_format(&id.address, s->foreign[s->foreign_count].address,
                                  sizeof(s->foreign[0].address));
        s->foreign[s->foreign_count].uid = id.uid;
        s->foreign[s->foreign_count++].since_ms = now_ms - since_ms;
    }
    s->waking = trpi_heartbeat_is_waking(cluster->heartbeat, shell_now_us(cluster));
    (void)trpi_member_lacking(cluster->core, s->lacking, sizeof(s->lacking));
}

trp_err
trpi_cluster_snapshot_get(trpi_cluster *cluster, trpi_cluster_snapshot **ret_snapshot)
{
    pthread_mutex_lock(&cluster->engine);
    const trpi_gossip *view = trpi_member_view(cluster->core);
    size_t members = view == NULL ? 0 : view->members_count;
    size_t rows = view == NULL ? 0 : view->rows_count;
    trpi_cluster_snapshot *s = trpi_alloc(sizeof(*s) + members * sizeof(trpi_cluster_member) +
                                          rows * sizeof(trpi_cluster_observation));
    if (s != NULL) {
        s->members = (trpi_cluster_member *)(void *)(s + 1);
        s->observations = (trpi_cluster_observation *)(void *)(s->members + members);
        s->phase = trpi_member_phase_get(cluster->core);
        s->stop = trpi_member_stop_reason(cluster->core);
        (void)trpi_member_seek_text(cluster->core, s->seeking, sizeof(s->seeking));
        (void)snprintf(s->seeking_why, sizeof(s->seeking_why), "%s",
                       trpi_member_seek_why(cluster->core));
        s->self = s->leader = s->oldest = TRPI_CLUSTER_NONE;
        s->strategy = cluster->strategy;
        s->stable_after_ms = cluster->stable_after_ms;
        s->auto_down_after_ms = cluster->auto_down_after_ms;
        trpi_member_stats_get(cluster->core, &s->stats);
        if (view != NULL) {
            fill_view(cluster, view, s);
        }
    }
    pthread_mutex_unlock(&cluster->engine);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    *ret_snapshot = s;
    return TRP_OK;
}

bool
trpi_cluster_is_waking(trpi_cluster *cluster)
{
    pthread_mutex_lock(&cluster->engine);
    bool waking = trpi_heartbeat_is_waking(cluster->heartbeat, shell_now_us(cluster));
    pthread_mutex_unlock(&cluster->engine);
    return waking;
}

bool
trpi_cluster_forecast(trpi_cluster *cluster, trpi_downing_forecast *ret_forecast)
{
    pthread_mutex_lock(&cluster->engine);
    bool made = trpi_member_forecast(cluster->core, ret_forecast);
    pthread_mutex_unlock(&cluster->engine);
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
    *ret_next = (trpi_cluster_next_crash){ .strategy = cluster->strategy };
    pthread_mutex_lock(&cluster->engine);
    const trpi_gossip *view = trpi_member_view(cluster->core);
    for (uint32_t i = 0; view != NULL && i < view->members_count && err == TRP_ENOENT; i++) {
        trpi_downing_next_crash cast;
        if (view->members[i].ident->id.uid != uid) {
            continue;
        }
        err = trpi_member_next_crash(cluster->core, view->members[i].ident->key, &cast)
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
    pthread_mutex_unlock(&cluster->engine);
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
    pthread_mutex_lock(&cluster->engine);
    const trpi_gossip *view = trpi_member_view(cluster->core);
    size_t count = view == NULL ? 0 : view->members_count;
    for (size_t i = 0; i < count && i < max; i++) {
        trpi_member_fill(cluster->core, &view->members[i], &members[i]);
    }
    pthread_mutex_unlock(&cluster->engine);
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
    pthread_mutex_lock(&cluster->engine);
    const trpi_gossip *view = trpi_member_view(cluster->core);
    const trpi_ident *self = trpi_member_self(cluster->core);
    uint32_t index = view == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(view, self->key);
    trpi_gossip_member absent = { .ident = (trpi_ident *)(uintptr_t)self };
    trpi_member_fill(cluster->core, index == TRPI_GOSSIP_NONE ? &absent : &view->members[index],
                     ret_member);
    pthread_mutex_unlock(&cluster->engine);
    return TRP_OK;
}

trp_err
trp_cluster_leader(trp_system *system, const char *role, trp_member *ret_member)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    pthread_mutex_lock(&cluster->engine);
    const trpi_gossip *view = trpi_member_view(cluster->core);
    uint32_t index = TRPI_GOSSIP_NONE;
    if (view != NULL) {
        index = trpi_gossip_leader(view, trpi_member_self(cluster->core)->key, role);
    }
    if (index != TRPI_GOSSIP_NONE) {
        trpi_member_fill(cluster->core, &view->members[index], ret_member);
    }
    pthread_mutex_unlock(&cluster->engine);
    return index == TRPI_GOSSIP_NONE ? TRP_ENOENT : TRP_OK;
}

/* ---- public: events -------------------------------------------------------------------------- */

static trp_err
put_simple(trp_system *system, struct shell_item filled)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    struct shell_item *item = shell_item_new(filled.kind, 0);
    if (item == NULL) {
        return TRP_ENOMEM;
    }
    item->ref = filled.ref;
    item->events = filled.events;
    item->on_up = filled.on_up;
    item->arg = filled.arg;
    trp_err err = shell_put(cluster, item);
    if (err != TRP_OK) {
        shell_item_free(item);
        return TRP_ESTATE; /* closed: no cluster node any more */
    }
    return TRP_OK;
}

trp_err
trp_cluster_subscribe(trp_system *system, trp_ref subscriber, uint32_t events)
{
    uint32_t all = TRP_CLUSTER_DOMAIN_EVENTS | TRP_CLUSTER_SEEN_CHANGED |
                   TRP_CLUSTER_METRICS_CHANGED;
    if (trp_ref_is_none(subscriber) || events == 0 || (events & ~all) != 0) {
        return TRP_EINVAL;
    }
    return put_simple(system, (struct shell_item){ .kind = SHELL_SUBSCRIBE,
                                                   .ref = subscriber,
                                                   .events = events });
}

void
trp_cluster_unsubscribe(trp_system *system, trp_ref subscriber, uint32_t events)
{
    (void)put_simple(system, (struct shell_item){ .kind = SHELL_UNSUBSCRIBE,
                                                  .ref = subscriber,
                                                  .events = events }); /* void by contract */
}

trp_err
trp_cluster_send_state(trp_system *system, trp_ref receiver)
{
    return put_simple(system, (struct shell_item){ .kind = SHELL_SEND_STATE, .ref = receiver });
}

trp_err
trp_cluster_on_member_up(trp_system *system, void (*fn)(void *arg), void *arg)
{
    if (fn == NULL) {
        return TRP_EINVAL;
    }
    return put_simple(system, (struct shell_item){ .kind = SHELL_ON_UP, .on_up = fn, .arg = arg });
}

/* ---- public: commands ------------------------------------------------------------------------ */

struct trpi_cluster_order { /* counted: whoever comes last frees it, the caller may have given up */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t refs;
    bool begun, done, given_up;
    trp_err err;
    void (*fn)(void *arg); /* NULL, or run before the answer, unless it was given up */
    void *fn_arg;
    trpi_cluster_patience patience; /* of an order */
};

static struct trpi_cluster_order *
waiter_new(void)
{
    struct trpi_cluster_order *w = trpi_alloc(sizeof(*w));
    if (w != NULL) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->answered, &monotonic);
        pthread_condattr_destroy(&monotonic);
        w->refs = 2;
    }
    return w;
}

static void
waiter_drop(struct trpi_cluster_order *w)
{
    pthread_mutex_lock(&w->lock);
    uint32_t left = --w->refs;
    pthread_mutex_unlock(&w->lock);
    if (left == 0) {
        trpi_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->answered);
        trpi_free(w);
    }
}

void
shell_waiter_answer(void *waiter, trp_err err)
{
    struct trpi_cluster_order *w = waiter;
    pthread_mutex_lock(&w->lock);
    if (w->fn != NULL && err == TRP_OK && !w->given_up) {
        w->fn(w->fn_arg); /* under this lock only: who waits cannot give up meanwhile */
    }
    w->done = true;
    w->err = err;
    pthread_cond_signal(&w->answered);
    pthread_mutex_unlock(&w->lock);
    waiter_drop(w);
}

/* The waiter has not given up while this lock is held: it still owns what is_wanted looks at. */
bool
shell_waiter_begins(void *waiter)
{
    struct trpi_cluster_order *w = waiter;
    pthread_mutex_lock(&w->lock);
    const trpi_cluster_patience *p = &w->patience;
    w->begun = !w->given_up && (p->is_wanted == NULL || p->is_wanted(p->arg));
    bool begun = w->begun;
    pthread_mutex_unlock(&w->lock);
    return begun;
}

/* With the lock. false: nobody has answered in that time. */
static bool
waiter_wait_for(struct trpi_cluster_order *w, uint32_t ms)
{
    struct timespec until;
    /* of the condition variable, not of the system's world */
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!w->done && pthread_cond_timedwait(&w->answered, &w->lock, &until) != ETIMEDOUT) {
    }
    return w->done;
}

/* With the lock, which it gives back: the answer so far. Nobody waits from now on. */
static trp_err
waiter_give_up(struct trpi_cluster_order *w)
{
    /* begun, and no answer: a refusal would be here; what takes so long is to tell everybody */
    trp_err err = w->done ? w->err : w->begun ? TRP_OK : TRP_ETIMEDOUT;
    w->given_up = !w->done;
    pthread_mutex_unlock(&w->lock);
    waiter_drop(w);
    return err;
}

static trp_err
waiter_wait(struct trpi_cluster_order *w)
{
    uint32_t begin_ms = w->patience.begin_ms;
    pthread_mutex_lock(&w->lock);
    bool done = waiter_wait_for(w, begin_ms == 0 ? COMMAND_TIMEOUT_MS : begin_ms);
    if (!done && w->begun) { /* it is being carried out, and cannot be taken back */
        (void)waiter_wait_for(w, COMMAND_TIMEOUT_MS);
    }
    return waiter_give_up(w);
}

trp_err
trpi_cluster_between(trpi_cluster *cluster, void (*fn)(void *arg), void *arg)
{
    struct trpi_cluster_order *w = waiter_new();
    struct shell_item *item = w == NULL ? NULL : shell_item_new(SHELL_BETWEEN, 0);
    trp_err err = item == NULL ? TRP_ENOMEM : TRP_OK;
    if (err == TRP_OK) {
        w->fn = fn;
        w->fn_arg = arg;
        item->done = shell_waiter_answer;
        item->arg = w;
        err = shell_put(cluster, item);
    }
    if (err != TRP_OK) {
        shell_item_free(item);
        if (w != NULL) {
            waiter_drop(w);
            waiter_drop(w);
        }
        return err;
    }
    return waiter_wait(w);
}

trp_err
trpi_cluster_order_begin(trpi_cluster *cluster, trpi_member_event_kind kind,
                         const char *const *addresses, size_t count, uint64_t uid,
                         const trpi_cluster_patience *patience, trpi_cluster_order **ret_order)
{
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    struct trpi_cluster_order *w = waiter_new();
    if (w == NULL) {
        return TRP_ENOMEM;
    }
    if (patience != NULL) {
        w->patience = *patience;
    }
    const char *first = count > 0 ? addresses[0] : NULL;
    trpi_cluster_done_fn fn = shell_waiter_answer;
    trp_err err = kind == TRPI_MEMBER_JOIN    ? trpi_cluster_join(cluster, addresses, count, fn, w)
                  : kind == TRPI_MEMBER_LEAVE ? trpi_cluster_leave(cluster, first, uid, fn, w)
                                              : trpi_cluster_down(cluster, first, uid, fn, w);
    if (err != TRP_OK) {
        waiter_drop(w);
        waiter_drop(w);
        return err == TRP_ECLOSED ? TRP_ESTATE : err;
    }
    *ret_order = w;
    return TRP_OK;
}

trp_err
trpi_cluster_order_end(trpi_cluster_order *order)
{
    pthread_mutex_lock(&order->lock);
    return waiter_give_up(order);
}

/* Run one of the three orders and wait for the engine's answer. cluster NULL: there is none. */
static trp_err
order_and_wait(trpi_cluster *cluster, trpi_member_event_kind kind, const char *const *addresses,
               size_t count, uint64_t uid, const trpi_cluster_patience *patience)
{
    trpi_cluster_order *order = NULL;
    trp_err err = trpi_cluster_order_begin(cluster, kind, addresses, count, uid, patience, &order);
    return err != TRP_OK ? err : waiter_wait(order);
}

trp_err
trpi_cluster_join_and_wait(trpi_cluster *cluster, const char *const *addresses, size_t count,
                           const trpi_cluster_patience *patience)
{
    if (addresses == NULL || count == 0) {
        return TRP_EINVAL;
    }
    return order_and_wait(cluster, TRPI_MEMBER_JOIN, addresses, count, 0, patience);
}

trp_err
trpi_cluster_leave_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                            const trpi_cluster_patience *patience)
{
    return order_and_wait(cluster, TRPI_MEMBER_LEAVE, &address, address == NULL ? 0 : 1, uid,
                          patience);
}

trp_err
trpi_cluster_down_and_wait(trpi_cluster *cluster, const char *address, uint64_t uid,
                           const trpi_cluster_patience *patience)
{
    return address == NULL
               ? TRP_EINVAL
               : order_and_wait(cluster, TRPI_MEMBER_DOWN_CMD, &address, 1, uid, patience);
}

trp_err
trp_cluster_join(trp_system *system, const char *const *addresses, size_t count)
{
    return trpi_cluster_join_and_wait(trpi_cluster_of(system), addresses, count, NULL);
}

trp_err
trp_cluster_leave(trp_system *system, const char *address)
{
    return trpi_cluster_leave_and_wait(trpi_cluster_of(system), address, 0, NULL);
}

trp_err
trp_cluster_down(trp_system *system, const char *address)
{
    return trpi_cluster_down_and_wait(trpi_cluster_of(system), address, 0, NULL);
}
