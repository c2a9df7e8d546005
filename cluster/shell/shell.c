/* shell.c - the actor /system/cluster: it feeds the engine and carries out its actions.
 *
 * Shape.   transport threads --frames--> mailbox --> actor --step--> engine --actions--> remote,
 *          subscribers, log;  heartbeats: sent by the actor, answered in the transport's callback,
 *          or, of the driver poll, by its thread for control lanes
 * Must hold.
 *   shell-C1  Only the actor steps the engine, so actions are carried out in the order in which
 *       they were decided.
 *   shell-C2  A heartbeat request is answered without the actor: a loaded node is not a silent one.
 *   shell-C3  After the engine has stopped nothing is sent, and heartbeats are not answered.
 *   shell-C4  Before it handles a message, the actor checks whether this node stood still: the
 *       engine, the routers and the log learn of that first.
 *   shell-C5  Work that is due by the clock is done with the next message at the latest: a tick
 *       that waits behind frames, or was lost for want of memory, delays nothing.
 * Limits. SHELL_*_MAX in shell.h: beyond them gossip is dropped; it repeats itself.
 * Tests.   tests/unit/cluster/shell_test.c, tests/multinode/
 */
#include "cluster/shell/shell.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

#define SEND_LOG_MS 10000u
#define REFUSED_LOOK_MS 500u
#define BARRED_LOOK_MS 250u
/* a timer at least this often: a late one shows that this node stood still */
#define WAKE_MS_MAX 1000u

struct shell_state {
    trpi_cluster *cluster;
};

/* ---- what carries a value, not a decision ---------------------------------------------------- */

uint64_t
shell_now_us(const trpi_cluster *cluster)
{
    return trpi_world_mono_ns(cluster->world) / 1000;
}

trpi_member_now
shell_now(const trpi_cluster *cluster)
{
    return (trpi_member_now){ trpi_world_mono_ns(cluster->world) / 1000000,
                              trpi_world_wall_ms(cluster->world) };
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
send_frame(trpi_cluster *cluster, const trpi_member_action *a)
{
    if (a->marks && trpi_remote_takes_marks(cluster->remote, &a->to) != TRPI_TAKES_YES) {
        return; /* it does not know them, or was not met: it is told when it was */
    }
    trp_err err = trpi_remote_control_send(cluster->remote, &a->to, TRPI_CHANNEL_GOSSIP,
                                           a->bytes.data, a->bytes.count);
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    if (err == TRP_EMSGSIZE && now_ms >= cluster->own.send_log_ms) {
        cluster->own.send_log_ms = now_ms + SEND_LOG_MS;
        trpi_log(cluster->system, TRP_LOG_ERROR, "cluster",
                 "a gossip frame of %zu bytes is too large to be sent; run fewer members, or raise "
                 "remote.maximum-frame-size",
                 a->bytes.count);
    } /* other errors lose the frame: gossip repeats itself */
}

static void
plan_quarantine(trpi_cluster *cluster, const trpi_node_id *id)
{
    if (TRPI_ARRAY_HAS_ROOM(&cluster->own, quarantines)) {
        cluster->own.quarantines[cluster->own.quarantines_count++] =
            (struct shell_quarantine){ *id, shell_now_us(cluster) / 1000 +
                                                cluster->settings.quarantine_after_ms };
    } else {
        trpi_remote_quarantine(cluster->remote, id, "removed from the cluster");
    }
}

/* Quarantine the members that were removed after Down and whose time has come. */
static uint64_t
quarantine_due(trpi_cluster *cluster, uint64_t now_ms)
{
    uint64_t next_ms = UINT64_MAX;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cluster->own.quarantines_count; i++) {
        struct shell_quarantine *q = &cluster->own.quarantines[i];
        if (now_ms >= q->due_ms) {
            trpi_remote_quarantine(cluster->remote, &q->id, "removed from the cluster");
            continue;
        }
        next_ms = q->due_ms < next_ms ? q->due_ms : next_ms;
        cluster->own.quarantines[kept++] = *q;
    }
    cluster->own.quarantines_count = kept;
    return next_ms;
}

static const char *
stop_text(trpi_member_stop stop)
{
    return stop == TRPI_STOP_LEFT     ? "has left"
           : stop == TRPI_STOP_DOWNED ? "was downed or removed: it is no longer in"
                                      : "gives up joining";
}

/* Carry out the actions of the last step, in their order. */
static void
carry_out(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint32_t count;
    /* shell-C1: no lock */
    const trpi_member_action *actions = trpi_member_actions(cluster->engine.core, &count);
    for (uint32_t i = 0; i < count; i++) {
        const trpi_member_action *a = &actions[i];
        switch (a->kind) {
        case TRPI_ACTION_SEND:
            send_frame(cluster, a);
            break;
        case TRPI_ACTION_PUBLISH:
            shell_publish(cluster, ctx, a);
            break;
        case TRPI_ACTION_LOG:
            if (!cluster->settings.quiet || a->level < TRP_LOG_INFO) {
                trpi_log(cluster->system, a->level, "cluster", "%s", a->text);
            }
            break;
        case TRPI_ACTION_QUARANTINE:
            plan_quarantine(cluster, &a->to);
            break;
        case TRPI_ACTION_LEASE_ACQUIRE:
            trpi_lease_acquire(cluster->lease, trpi_world_is_driven(cluster->world));
            break;
        case TRPI_ACTION_LEASE_RELEASE:
            trpi_lease_release(cluster->lease, trpi_world_is_driven(cluster->world));
            break;
        case TRPI_ACTION_DIAL:
            trpi_remote_hurry(cluster->remote, &a->to.address);
            break;
        case TRPI_ACTION_REACH:
            shell_reach_begin(cluster, &a->to);
            break;
        case TRPI_ACTION_MARKS:
            shell_tell_drained(cluster);
            break;
        case TRPI_ACTION_STOPPED:
            break; /* the phase shows it too, and needs no memory: membership_stopped() */
        }
    }
}

/* shell-C3, once */
static void
membership_stopped(trpi_cluster *cluster)
{
    trpi_member_stop stop = trpi_member_stop_reason(cluster->engine.core);
    if (!atomic_exchange_explicit(&cluster->silent, true, memory_order_relaxed)) {
        trpi_remote_beats_answer(cluster->remote, NULL);
        trpi_log(cluster->system, stop == TRPI_STOP_LEFT ? TRP_LOG_INFO : TRP_LOG_WARNING,
                 "cluster", "this node %s the cluster", stop_text(stop));
        if (cluster->settings.stopped != NULL) {
            cluster->settings.stopped(cluster->settings.stopped_arg, stop);
        }
    }
}

trp_err
shell_step(trpi_cluster *cluster, trp_ctx *ctx, const trpi_member_event *event)
{
    pthread_mutex_lock(&cluster->engine.lock);
    trpi_member_now now = shell_now(cluster);
    now.waking = trpi_heartbeat_is_waking(cluster->engine.heartbeat, shell_now_us(cluster));
    trp_err err = trpi_member_step(cluster->engine.core, now, event);
    trpi_assert_check(trpi_member_check, cluster->engine.core);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    if (view != NULL && view->digest != cluster->own.view_digest) {
        cluster->own.view_digest = view->digest;
        if (trpi_heartbeat_members(cluster->engine.heartbeat, shell_now_us(cluster), view) !=
            TRP_OK) {
            cluster->own.view_digest = 0; /* tried again with the next view */
        }
    }
    pthread_mutex_unlock(&cluster->engine.lock);
    cluster->exclusive.roll_call |= shell_exclusive_update(cluster, now.waking);
    carry_out(cluster, ctx);
    if (trpi_member_phase_get(cluster->engine.core) == TRPI_PHASE_STOPPED) {
        membership_stopped(cluster);
    }
    return err;
}

/* ---- the actor ------------------------------------------------------------------------------- */

static void
heartbeats_send(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint8_t bytes[TRPI_HEARTBEAT_BYTES];
    const trpi_ident *const *targets;
    const trpi_heartbeat_query *questions;
    const uint64_t *keys;
    if (atomic_load_explicit(&cluster->silent, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&cluster->engine.lock);
    trpi_heartbeat_tick(cluster->engine.heartbeat, shell_now_us(cluster));
    trpi_assert_check(trpi_heartbeat_check, cluster->engine.heartbeat);
    uint32_t targets_count = trpi_heartbeat_targets(cluster->engine.heartbeat, &targets, bytes);
    uint32_t questions_count = trpi_heartbeat_queries(cluster->engine.heartbeat, &questions);
    uint32_t keys_count = trpi_heartbeat_unreachable(cluster->engine.heartbeat, &keys);
    bool changed = trpi_heartbeat_has_changed(cluster->engine.heartbeat);
    pthread_mutex_unlock(&cluster->engine.lock);
    for (uint32_t i = 0; i < targets_count; i++) { /* replaced by this actor only: stable here */
        (void)trpi_remote_control_send(cluster->remote, &targets[i]->id, TRPI_CHANNEL_HEARTBEAT,
                                       bytes,
                                       sizeof bytes); /* the failure detector bears lost ones */
    }
    for (uint32_t i = 0; i < questions_count; i++) { /* likewise */
        (void)trpi_remote_control_send(cluster->remote, &questions[i].to->id,
                                       TRPI_CHANNEL_HEARTBEAT, questions[i].bytes,
                                       sizeof questions[i].bytes);
    }
    if (changed || keys_count > 0 || cluster->own.unheard) {
        /* An answer may shorten the list meanwhile; then the engine sees that member as silent for
         * one tick more. */
        trpi_member_event event = { .kind = TRPI_MEMBER_OBSERVE,
                                    .keys = keys,
                                    .keys_count = keys_count };
        cluster->own.unheard = shell_step(cluster, ctx, &event) == TRP_ENOMEM;
    }
}

static void
set_timer(trpi_cluster *cluster, trp_ctx *ctx)
{
    pthread_mutex_lock(&cluster->engine.lock);
    uint64_t core_ms = trpi_member_wake_ms(cluster->engine.core);
    uint64_t beat_us = trpi_heartbeat_wake_us(cluster->engine.heartbeat);
    pthread_mutex_unlock(&cluster->engine.lock);
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    uint64_t wake_ms = core_ms;
    bool silent = atomic_load_explicit(&cluster->silent, memory_order_relaxed); /* beats no more */
    if (!silent && beat_us != UINT64_MAX && beat_us / 1000 + 1 < wake_ms) {
        wake_ms = beat_us / 1000 + 1;
    }
    for (uint32_t i = 0; i < cluster->own.quarantines_count; i++) {
        wake_ms = cluster->own.quarantines[i].due_ms < wake_ms ? cluster->own.quarantines[i].due_ms
                                                               : wake_ms;
    }
    uint64_t reach_ms = shell_reach_wake_ms(cluster);
    wake_ms = reach_ms < wake_ms ? reach_ms : wake_ms;
    uint64_t look_ms = shell_exclusive_wake_ms(cluster);
    wake_ms = look_ms < wake_ms ? look_ms : wake_ms;
    if (wake_ms > now_ms + WAKE_MS_MAX) {
        wake_ms = now_ms + WAKE_MS_MAX;
    } else if (wake_ms <= now_ms) {
        wake_ms = now_ms + 1;
    }
    if (cluster->own.timer_ms != 0 && cluster->own.timer_ms <= wake_ms) {
        return; /* it is set already, and not too late */
    }
    trp_err err = trp_timer_once(ctx, 1, (uint32_t)(wake_ms - now_ms), &shell_tick_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "no timer: %s", trp_strerror(err));
    }
    cluster->own.timer_ms = wake_ms;
}

/* MEMB-32 */
static void
log_stats(trpi_cluster *cluster, uint64_t now_ms)
{
    trpi_member_stats s;
    const trpi_gossip *view = trpi_member_view(cluster->engine.core);
    uint32_t interval_ms = cluster->settings.stats_interval_ms;
    trpi_member_stats_get(cluster->engine.core, &s);
    uint64_t frames = s.frames_in + s.frames_out;
    if (interval_ms == TRPI_STATS_ALWAYS
            ? frames == cluster->own.stats_frames
            : interval_ms == 0 || now_ms - cluster->own.stats_log_ms < interval_ms) {
        return;
    }
    cluster->own.stats_log_ms = now_ms;
    cluster->own.stats_frames = frames;
    trpi_log(cluster->system, TRP_LOG_INFO, "cluster",
             "gossip: in %llu (same %llu, newer %llu, older %llu, merged %llu, too old %llu, "
             "ignored %llu), out %llu, bytes in %llu, out %llu; members %u, seen by %u, clock %u, "
             "tombstones %u",
             (unsigned long long)s.frames_in, (unsigned long long)s.received_same,
             (unsigned long long)s.received_newer, (unsigned long long)s.received_older,
             (unsigned long long)s.merged, (unsigned long long)s.expired,
             (unsigned long long)(s.ignored + s.undecodable), (unsigned long long)s.frames_out,
             (unsigned long long)s.bytes_in, (unsigned long long)s.bytes_out,
             view == NULL ? 0 : view->members_count,
             view == NULL ? 0 : trpi_seen_count(trpi_member_seen(cluster->engine.core)),
             view == NULL ? 0 : view->clock_count, view == NULL ? 0 : view->tombstones_count);
}

static void
take_frame(trpi_cluster *cluster, trp_ctx *ctx, const trp_msg *msg)
{
    const struct shell_frame *frame = trp_msg_payload(msg);
    size_t count = trp_msg_bytes(msg) - sizeof *frame;
    trpi_member_event event = { .kind = TRPI_MEMBER_FRAME,
                                .from = frame->from,
                                .bytes = frame->bytes,
                                .count = count,
                                .arrived_ms = frame->arrived_ms };
    (void)shell_frame_taken(&cluster->mailbox, count);
    (void)shell_step(cluster, ctx, &event);
}

static void
take_command(trpi_cluster *cluster, trp_ctx *ctx, struct shell_command *command)
{
    trpi_member_event event = { .kind = command->kind,
                                .target = command->target,
                                .addresses = command->addresses,
                                .addresses_count = command->addresses_count };
    if (command->kind == TRPI_MEMBER_LEASE) {
        event.count = command->granted ? 1 : 0;
        event.text = command->text[0] != '\0' ? command->text : NULL;
    }
    trp_err err = TRP_OK;
    if (command->begins != NULL && !command->begins(command->arg)) {
        err = TRP_ECANCELED;
    } else if (command->kind != 0) {
        err = shell_step(cluster, ctx, &event);
    }
    shell_command_answer(command, err);
}

/* The command that a message owns: it is answered here, and freed with the message. */
static struct shell_command *
command_of(const trp_msg *msg)
{
    return (struct shell_command *)(uintptr_t)trp_msg_payload(msg);
}

/* Handle a message. false: it is not one of this actor's types. */
static bool
message_take(trpi_cluster *cluster, trp_ctx *ctx, const trp_msg *msg)
{
    if (trp_msg_is(msg, &shell_frame_type)) {
        take_frame(cluster, ctx, msg);
    } else if (trp_msg_is(msg, &shell_command_type)) {
        take_command(cluster, ctx, command_of(msg));
    } else if (trp_msg_is(msg, &shell_subscribe_type)) {
        const struct shell_subscriber *what = trp_msg_payload(msg);
        shell_subscribe(cluster, ctx, what->ref, what->events);
    } else if (trp_msg_is(msg, &shell_unsubscribe_type)) {
        const struct shell_subscriber *what = trp_msg_payload(msg);
        shell_unsubscribe(cluster, ctx, what->ref, what->events);
    } else if (trp_msg_is(msg, &shell_send_state_type)) {
        const struct shell_subscriber *what = trp_msg_payload(msg);
        shell_send_state(cluster, ctx, what->ref);
    } else if (trp_msg_is(msg, &shell_on_up_type)) {
        shell_on_up(cluster, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &shell_metrics_type)) {
        shell_publish_metrics(cluster, ctx);
    } else {
        return trp_msg_is(msg, &shell_tick_type);
    }
    return true;
}

/* Tell the engine of a seed that has quarantined this node, which asks to join: it was removed
 * before it knew that it was in (membership-seed-J16). */
static void
report_barring_seed(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint32_t count;
    const trpi_address *seeds =
        trpi_member_seeds(cluster->engine.core, &count); /* shell-C1: no lock */
    if (count == 0 || trpi_remote_barred_count(cluster->remote) == 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        trpi_member_event event = { .kind = TRPI_MEMBER_REMOVED_BY };
        event.target.address = seeds[i];
        if (trpi_remote_is_barred_by(cluster->remote, &event.target)) {
            (void)shell_step(cluster, ctx, &event);
            return; /* it has ended */
        }
    }
}

/* Tell the engine of seed nodes with which the transport cannot make an association. */
static void
report_refusals(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint32_t count;
    const trpi_address *seeds =
        trpi_member_seeds(cluster->engine.core, &count); /* shell-C1: no lock */
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    if (count == 0 || now_ms < cluster->own.refused_look_ms) {
        return;
    }
    cluster->own.refused_look_ms = now_ms + REFUSED_LOOK_MS;
    report_barring_seed(cluster, ctx);
    seeds = trpi_member_seeds(cluster->engine.core, &count);
    for (uint32_t i = 0; i < count; i++) {
        char why[TRPI_FRAME_REASON_BYTES];
        bool refused = trpi_remote_is_incompatible(cluster->remote, &seeds[i], why, sizeof why);
        if (refused || trpi_remote_has_rival(cluster->remote, &seeds[i])) {
            trpi_member_event event = { .kind = refused ? TRPI_MEMBER_REFUSED : TRPI_MEMBER_RIVAL };
            event.text = refused ? why : NULL;
            event.target.address = seeds[i];
            (void)shell_step(cluster, ctx, &event);
            seeds = trpi_member_seeds(cluster->engine.core, &count);
        }
    }
}

/* Tell the engine which members have quarantined this node, when there is one more. */
static void
report_removers(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint64_t count = trpi_remote_barred_count(cluster->remote);
    const trpi_gossip *view = trpi_member_view(cluster->engine.core); /* shell-C1: no lock */
    if (view == NULL || count == cluster->own.barred_count) {
        return;
    }
    trp_err err = TRP_OK;
    trpi_gossip *kept = trpi_gossip_ref((trpi_gossip *)(uintptr_t)view); /* a step replaces it */
    for (uint32_t i = 0; i < kept->members_count; i++) {
        const trpi_node_id *id = &kept->members[i].ident->id;
        if (trpi_remote_is_barred_by(cluster->remote, id)) {
            trpi_member_event event = { .kind = TRPI_MEMBER_REMOVED_BY, .target = *id };
            trp_err taken = shell_step(cluster, ctx, &event);
            err = err != TRP_OK ? err : taken;
        }
    }
    trpi_gossip_unref(kept);
    /* without memory the engine is told again at the next tick */
    cluster->own.barred_count = err == TRP_ENOMEM ? count - 1 : count;
}

/* shell-C4 */
static void
waking_update(trpi_cluster *cluster)
{
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    bool was = cluster->own.waking_ms != 0;
    bool waking = trpi_cluster_is_waking(cluster);
    if (waking == was) {
        return;
    }
    if (waking) {
        trpi_log(cluster->system, TRP_LOG_WARNING, "cluster",
                 "this node stood still for longer than acceptable-heartbeat-pause: until each "
                 "member that it monitors has answered, or is unreachable, it does not act as "
                 "leader, marks no member Down, and its cluster routers route no messages");
    } else {
        trpi_log(cluster->system, TRP_LOG_INFO, "cluster",
                 "the reachability of all members is known again, %llu ms after this node stood "
                 "still",
                 (unsigned long long)(now_ms - cluster->own.waking_ms));
    }
    cluster->own.waking_ms = waking ? now_ms : 0;
    shell_tell_waking(cluster);
}

/* Tell the engine of seed nodes that are alive and no members: one may have removed this node, or
 * was removed by it. */
static void
report_foreigners(trpi_cluster *cluster, trp_ctx *ctx)
{
    const trpi_address *seed; /* shell-C1: no lock */
    for (uint32_t at = 0; (seed = trpi_member_absent_seed(cluster->engine.core, &at)) != NULL;) {
        trpi_member_event event = { .kind = TRPI_MEMBER_FOREIGN };
        event.target.address = *seed;
        if (trpi_remote_foreign_heard(cluster->remote, seed, &event.target.uid)) {
            (void)shell_step(cluster, ctx, &event);
        }
    }
}

/* Do the work that is due by the clock. */
static void
tick_handle(trpi_cluster *cluster, trp_ctx *ctx)
{
    trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
    cluster->own.timer_ms = 0;
    heartbeats_send(cluster, ctx);
    report_refusals(cluster, ctx);
    report_removers(cluster, ctx);
    report_foreigners(cluster, ctx);
    shell_reach_look(cluster, ctx);
    (void)shell_step(cluster, ctx, &event);
    (void)quarantine_due(cluster, shell_now_us(cluster) / 1000);
}

/* The behaviour of /system/cluster: frames, commands and ticks become steps of the engine. */
static trp_err
cluster_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trpi_cluster *cluster = ((struct shell_state *)state)->cluster;
    bool closed = atomic_load_explicit(&cluster->mailbox.closed, memory_order_acquire);
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *terminated = trp_msg_payload(msg);
        shell_unsubscribe(cluster, ctx, terminated->ref, UINT32_MAX);
        return TRP_OK;
    }
    if (closed && !trp_msg_is(msg, &shell_tick_type)) {
        return TRP_OK; /* a command is answered TRP_ECLOSED when its message is freed */
    }
    waking_update(cluster);
    if (!message_take(cluster, ctx, msg)) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    /* shell-C5 */
    if (trp_msg_is(msg, &shell_tick_type) ||
        (cluster->own.timer_ms != 0 && cluster->own.timer_ms <= shell_now_us(cluster) / 1000)) {
        tick_handle(cluster, ctx);
    }
    if (cluster->exclusive.roll_call) {
        trpi_member_event roll_call = { .kind = TRPI_MEMBER_ROLL_CALL };
        cluster->exclusive.roll_call = false;
        (void)shell_step(cluster, ctx, &roll_call); /* without memory it is asked again */
    }
    log_stats(cluster, shell_now_us(cluster) / 1000);
    set_timer(cluster, ctx);
    return TRP_OK;
}

static trp_err
cluster_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trpi_cluster *cluster;
    if (args == NULL || trp_msg_bytes(args) != sizeof cluster) {
        return TRP_EINVAL;
    }
    memcpy(&cluster, trp_msg_payload(args), sizeof cluster);
    ((struct shell_state *)state)->cluster = cluster;
    set_timer(cluster, ctx);
    return TRP_OK;
}

/* MEMB-36: an engine whose actor has ended is not restarted on old knowledge; the membership ends.
 */
static void
end_membership(trpi_cluster *cluster, const char *why)
{
    if (!atomic_exchange_explicit(&cluster->silent, true, memory_order_relaxed)) {
        trpi_remote_beats_answer(cluster->remote, NULL);
        trpi_log(cluster->system, TRP_LOG_ERROR, "cluster",
                 "the cluster actor has ended (%s): this node is leaving the cluster without "
                 "notifying the members",
                 why);
        if (cluster->settings.stopped != NULL) {
            cluster->settings.stopped(cluster->settings.stopped_arg, TRPI_STOP_DOWNED);
        }
    }
}

static trp_err
cluster_pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)msg;
    end_membership(((struct shell_state *)state)->cluster, why->reason);
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

/* A regular stop has set `silent` before, or ends the whole system. */
static void
cluster_post_stop(trp_ctx *ctx, void *state)
{
    trpi_cluster *cluster = ((struct shell_state *)state)->cluster;
    if (!trpi_system_is_ending(trp_ctx_system(ctx))) {
        end_membership(cluster, "it was stopped");
    }
    pthread_mutex_lock(&cluster->engine.lock);
    trpi_member_end(cluster->engine.core);
    pthread_mutex_unlock(&cluster->engine.lock);
    carry_out(cluster, ctx); /* EVENTS-14 */
}

const trp_behaviour trpi_cluster_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "cluster",
    .version = 1,
    .state_bytes = sizeof(struct shell_state),
    .receive = cluster_receive,
    .pre_start = cluster_pre_start,
    .pre_restart = cluster_pre_restart,
    .post_stop = cluster_post_stop,
};
