/* exclusive.c - closes and opens the guard of a node as the engine decides (engine/exclusive.h).
 *
 * Must hold.
 *   shell-exclusive-X1  The guard is closed before the actions of the step that gave the reason are
 *       carried out: what they tell other nodes may let these take over.
 *   shell-exclusive-X2  It is opened by this actor alone, and only as long as no stall came after
 *       the one that it knows (trpi_guard_open()).
 *   shell-exclusive-X3  Without trpi_exclusive_open() nothing here does anything.
 * Tests.   tests/unit/cluster/exclusive_test.c
 */
#include "cluster/shell/exclusive.h"

#include <stdio.h>

#include "cluster/shell/shell.h"

#define LOOKS_IN_A_PAUSE 16u /* a look at the clock so often in acceptable-heartbeat-pause */
#define LOOK_MS_MIN 10u
#define LOOK_MS_MAX 250u

static uint32_t
look_period_ms(const trpi_cluster *cluster)
{
    uint32_t ms = cluster->settings.acceptable_pause_ms / LOOKS_IN_A_PAUSE;
    return ms < LOOK_MS_MIN ? LOOK_MS_MIN : ms > LOOK_MS_MAX ? LOOK_MS_MAX : ms;
}

trp_err
trpi_exclusive_open(trp_system *system, const char *what, trpi_guard **ret_guard, char *why,
                    size_t why_bytes)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    char reason[TRPI_EXCLUSIVE_WHY_BYTES];
    if (cluster == NULL) {
        (void)snprintf(why, why_bytes, "%s needs a cluster: this system is in none", what);
        return TRP_ESTATE;
    }
    const struct shell_settings *s = &cluster->settings;
    trp_err err = trpi_exclusive_check(s->stable_after_ms, s->acceptable_pause_ms,
                                       s->heartbeat_interval_ms, reason, sizeof reason);
    if (err != TRP_OK) {
        (void)snprintf(why, why_bytes, "%s does not start: %s", what, reason);
        return err;
    }
    *ret_guard = trpi_guard_of(system);
    if (!atomic_load_explicit(&cluster->exclusive.in_use, memory_order_acquire)) {
        bool blind = (trpi_cluster_broken(cluster) & TRPI_BROKEN_NO_STALLS) != 0;
        trpi_guard_limits limits = { .period_ms = look_period_ms(cluster),
                                     .limit_ms =
                                         s->acceptable_pause_ms > 0 ? s->acceptable_pause_ms : 1,
                                     .window_ms = s->stable_after_ms };
        limits.limit_ms = blind ? UINT32_MAX : limits.limit_ms;
        trpi_guard_watch(*ret_guard, &limits);
        /* release: who sees it finds the guard watching */
        atomic_store_explicit(&cluster->exclusive.in_use, true, memory_order_release);
        (void)shell_put(cluster, &shell_tick_type, NULL, 0); /* no memory: the next tick does it */
    }
    return TRP_OK;
}

trp_err
trpi_exclusive_takeover_ms(trp_system *system, const char *address, uint64_t uid, uint64_t *ret_ms)
{
    trpi_cluster *cluster = trpi_cluster_of(system);
    trpi_node_id id = { .uid = uid };
    if (cluster == NULL) {
        return TRP_ESTATE;
    }
    trp_err err = trpi_address_parse(address, &id.address, NULL, NULL);
    if (err != TRP_OK) {
        return TRP_EINVAL;
    }
    uint64_t in_ms = TRPI_EXCLUSIVE_NEVER;
    pthread_mutex_lock(&cluster->engine.lock);
    if (!trpi_member_takeover(cluster->engine.core, shell_now_us(cluster) / 1000,
                              trpi_ident_key(&id), &in_ms)) {
        in_ms = TRPI_EXCLUSIVE_NEVER;
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    *ret_ms = in_ms;
    return TRP_OK;
}

void
trpi_exclusive_look(trpi_cluster *cluster, trpi_exclusive_view *ret_view)
{
    *ret_view = (trpi_exclusive_view){ .cause = "", .awaits = "" };
    ret_view->in_use = atomic_load_explicit(&cluster->exclusive.in_use, memory_order_acquire);
    pthread_mutex_lock(&cluster->engine.lock);
    const trpi_exclusive *x = &cluster->exclusive.state;
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    ret_view->suspended = x->suspended;
    ret_view->cause = trpi_exclusive_cause_text(x->cause);
    ret_view->awaits = trpi_exclusive_awaits_text(x, cluster->engine.core);
    ret_view->for_ms = x->suspended && x->since_ms < now_ms ? now_ms - x->since_ms : 0;
    pthread_mutex_unlock(&cluster->engine.lock);
}

uint32_t
trpi_cluster_broken(const trpi_cluster *cluster)
{
    return trpi_member_broken(cluster->engine.core); /* constant */
}

/* ---- the actor ------------------------------------------------------------------------------- */

static void
guarded_suspend(trpi_cluster *cluster)
{
    trpi_guard_close(trpi_guard_of(cluster->system));
    trpi_log(cluster->system, TRP_LOG_WARNING, "cluster",
             "singletons and entities of this node are suspended: %s; messages to them are kept "
             "until all members have seen a version of the membership that this node makes after "
             "that is over (troupe why)",
             trpi_exclusive_cause_text(cluster->exclusive.state.cause));
}

static void
guarded_resume(trpi_cluster *cluster)
{
    if (trpi_guard_open(trpi_guard_of(cluster->system), cluster->exclusive.state.closings)) {
        trpi_log(cluster->system, TRP_LOG_INFO, "cluster",
                 "singletons and entities of this node go on: all members agree that it is one of "
                 "them");
    } /* else it stood still again: the next look suspends it */
}

bool
shell_exclusive_update(trpi_cluster *cluster, bool waking)
{
    if (!atomic_load_explicit(&cluster->exclusive.in_use, memory_order_acquire)) {
        return false; /* shell-exclusive-X3 */
    }
    trpi_guard *guard = trpi_guard_of(cluster->system);
    (void)trpi_guard_look(guard);
    trpi_exclusive_now now = { .mono_ms = shell_now_us(cluster) / 1000,
                               .waking = waking,
                               .closings = trpi_guard_closings(guard) };
    pthread_mutex_lock(&cluster->engine.lock);
    trpi_exclusive_order order =
        trpi_exclusive_step(&cluster->exclusive.state, cluster->engine.core, now);
    pthread_mutex_unlock(&cluster->engine.lock);
    switch (order) {
    case TRPI_EXCLUSIVE_AS_IT_IS:
        break;
    case TRPI_EXCLUSIVE_SUSPEND:
        guarded_suspend(cluster);
        break;
    case TRPI_EXCLUSIVE_ROLL_CALL:
        return true;
    case TRPI_EXCLUSIVE_RESUME:
        guarded_resume(cluster);
        break;
    }
    return false;
}

uint64_t
shell_exclusive_wake_ms(trpi_cluster *cluster)
{
    if (!atomic_load_explicit(&cluster->exclusive.in_use, memory_order_acquire)) {
        return UINT64_MAX;
    }
    uint64_t look_ms = shell_now_us(cluster) / 1000 + look_period_ms(cluster);
    uint64_t wake_ms = trpi_exclusive_wake_ms(&cluster->exclusive.state, cluster->engine.core);
    return wake_ms < look_ms ? wake_ms : look_ms;
}
