/* membership.c - the membership engine: life, events in, actions out.
 *
 * Why.     All decisions about members are made in one state machine without a socket, a
 *          thread or a clock, so that the simulator runs exactly what production runs.
 * Shape.   step: event --> handler (seed, gossip, leader, command) --> new view? --> leader actions
 *          --> events published --> gossip spread --> next wake
 * States.  IDLE --JOIN--> SEEKING --WELCOME, or alone--> MEMBER --Down, removed--> STOPPED
 * Must hold.
 *   membership-E1  A view never goes back: it is replaced by a merge with itself, or by an own edit
 *       of it.
 *   membership-E2  Only the leader of its own converged view makes a member Up, Exiting or removed;
 *       a leader without convergence may make one WeaklyUp, where that is allowed.
 *   membership-E3  Only this node changes the rows of which it is the observer, and counts their
 *       version.
 *   membership-E4  After STOPPED it sends nothing and answers nothing.
 *   membership-E5  Gossip for another incarnation, from a stranger, or without this node in it,
 *       changes nothing.
 * Limits.  TRPI_GOSSIP_*_MAX; TRPI_SEEDS_MAX addresses in a JOIN. A view that cannot be sent is an
 *          error in the log.
 * Not here. Heartbeats (heartbeat.c), bytes (gossip_codec.c), threads (shell.c).
 * Tests.   tests/unit/cluster/join_test.c, leader_test.c, tests/sim/sim_test.c
 */
#include "cluster/engine/membership_core.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define EXITING_TIMEOUT_MS 5000u
#define OWN_PAUSE_MS 500u /* a step later than this after its time means that we were stopped */

/* ---- life ------------------------------------------------------------------------------------ */

static void
default_u32(uint32_t *value, uint32_t standard)
{
    if (*value == 0) {
        *value = standard;
    }
}

static trp_err
options_check(trpi_member_options *o)
{
    default_u32(&o->gossip_interval_ms, TRPI_MEMBER_GOSSIP_INTERVAL_S_DEFAULT * 1000u);
    default_u32(&o->leader_actions_interval_ms,
                TRPI_MEMBER_LEADER_ACTIONS_INTERVAL_S_DEFAULT * 1000u);
    default_u32(&o->gossip_ttl_ms, TRPI_MEMBER_GOSSIP_TTL_S_DEFAULT * 1000u);
    default_u32(&o->seed_node_timeout_ms, TRPI_MEMBER_SEED_NODE_TIMEOUT_S_DEFAULT * 1000u);
    default_u32(&o->seed_check_ms, TRPI_MEMBER_SEED_CHECK_S_DEFAULT * 1000u);
    default_u32(&o->retry_unsuccessful_join_after_ms, TRPI_MEMBER_JOIN_RETRY_S_DEFAULT * 1000u);
    default_u32(&o->exiting_timeout_ms, EXITING_TIMEOUT_MS);
    default_u32(&o->prune_tombstones_after_ms, TRPI_MEMBER_PRUNE_AFTER_H_DEFAULT * 3600u * 1000u);
    default_u32(&o->min_nr_of_members, TRPI_MEMBER_MIN_MEMBERS_DEFAULT);
    default_u32(&o->required_contact_points, TRPI_MEMBER_CONTACT_POINTS_DEFAULT);
    default_u32(&o->downing.stable_after_ms, TRPI_DOWNING_STABLE_AFTER_S_DEFAULT * 1000u);
    default_u32(&o->downing.auto_down_after_ms, TRPI_DOWNING_AUTO_DOWN_AFTER_S_DEFAULT * 1000u);
    default_u32(&o->downing.quorum_size, TRPI_DOWNING_QUORUM_SIZE_DEFAULT);
    default_u32(&o->downing.least_nodes, TRPI_DOWNING_LEAST_NODES_DEFAULT);
    default_u32(&o->downing.lease_minority_delay_ms,
                TRPI_DOWNING_LEASE_MINORITY_DELAY_S_DEFAULT * 1000u);
    default_u32(&o->downing.lease_release_after_ms,
                TRPI_DOWNING_LEASE_RELEASE_AFTER_S_DEFAULT * 1000u);
    default_u32(&o->downing.lease_timeout_ms, TRPI_DOWNING_LEASE_TIMEOUT_S_DEFAULT * 1000u);
    if (o->gossip_different_view_probability == 0.0) {
        o->gossip_different_view_probability = TRPI_MEMBER_DIFFERENT_VIEW_DEFAULT;
    } else if (o->gossip_different_view_probability < 0.0) {
        o->gossip_different_view_probability = 0.0;
    }
    if (!(o->gossip_different_view_probability <= 1.0) ||
        o->role_minima_count > TRPI_ROLE_MINIMA_MAX ||
        o->min_nr_of_members > TRPI_JOIN_MEMBERS_MAX) {
        return TRP_EINVAL;
    }
    return TRP_OK;
}

trp_err
trpi_member_new(const trpi_node_id *self, const char *const *roles, uint32_t roles_count,
                const char *app_version, const trpi_member_options *options,
                trpi_member_core **ret_core)
{
    trpi_assert(self != NULL && ret_core != NULL);
    trpi_member_options checked = { 0 };
    if (options != NULL) {
        checked = *options;
    }
    const char *strategy =
        checked.downing_strategy == NULL ? TRPI_DOWNING_STRATEGY_DEFAULT : checked.downing_strategy;
    const trpi_downing_ops *downing = trpi_downing_find(strategy);
    trp_err err = options_check(&checked);
    if (err != TRP_OK || downing == NULL) {
        return TRP_EINVAL;
    }
    trpi_member_core *core = trpi_alloc(sizeof *core);
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    err = trpi_ident_new(self, roles, roles_count, app_version, &core->self);
    if (err != TRP_OK) {
        trpi_member_free(core);
        return err;
    }
    if (checked.build != NULL) {
        trpi_ident_set_build(core->self, checked.build);
    }
    core->self = trpi_gossip_cache_ident(checked.cache, core->self);
    if (checked.compat != NULL) {
        core->compat = trpi_alloc(sizeof *core->compat);
        if (core->compat == NULL) {
            trpi_member_free(core);
            return TRP_ENOMEM;
        }
        *core->compat = *checked.compat;
    }
    core->options = checked;
    core->options.compat = NULL; /* the caller's */
    core->options.build = NULL;
    core->options.downing_strategy = trpi_downing_name(downing);
    core->downing = downing;
    core->random = trpi_hash_u64(checked.seed ^ core->self->key);
    trpi_core_due_none(core);
    core->due.wake_ms = TRPI_NEVER;
    *ret_core = core;
    trpi_assert_slow(core->phase == TRPI_PHASE_IDLE);
    trpi_assert_slow(core->due.wake_ms == TRPI_NEVER && core->out.actions_count == 0);
    return TRP_OK;
}

void
trpi_member_free(trpi_member_core *core)
{
    if (core == NULL) {
        return;
    }
    trpi_core_actions_clear(core);
    trpi_free(core->out.actions);
    trpi_free(core->leading.confirmed);
    trpi_contact_forget(core, core->admission.joiners_count);
    trpi_free(core->admission.joiners);
    trpi_prove_forget_all(core);
    trpi_free(core->removals.of_tombstones);
    trpi_free(core->removals.near_downs);
    trpi_free(core->removers.removers);
    trpi_marks_fini(&core->marks.set);
    trpi_free(core->stability.since);
    trpi_seen_fini(&core->seen);
    trpi_votes_fini(&core->votes);
    trpi_gossip_unref(core->gossip);
    trpi_gossip_unref(core->published.view);
    trpi_ident_unref(core->self);
    trpi_free(core->compat);
    trpi_free(core);
}

/* ---- for the other files --------------------------------------------------------------------- */

trp_err
trpi_core_adopt(trpi_member_core *core, trpi_gossip *gossip, const trpi_seen *seen)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    trpi_assert(gossip->frozen);
    trpi_seen fresh;
    trpi_votes votes;
    uint32_t self = trpi_gossip_find(gossip, core->self->key);
    trp_err err = trpi_seen_init(&fresh, gossip->members_count);
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_votes_init(&votes, gossip);
    if (err != TRP_OK) {
        trpi_seen_fini(&fresh);
        return err;
    }
    if (core->gossip != NULL) {
        (void)trpi_votes_join(&votes, gossip, &core->votes, core->gossip);
    }
    if (seen != NULL && seen->bits == fresh.bits) {
        (void)trpi_seen_join(&fresh, seen);
    }
    if (self != TRPI_GOSSIP_NONE) {
        trpi_seen_set(&fresh, self);
    }
    if (core->gossip == NULL || core->gossip->digest != gossip->digest) {
        core->version.since_ms = core->now.mono_ms;
    }
    trpi_core_note_removals(core, gossip);
    trpi_seen_fini(&core->seen);
    trpi_votes_fini(&core->votes);
    core->seen = fresh;
    core->votes = votes;
    trpi_gossip_ref(gossip);
    trpi_gossip_unref(core->gossip);
    core->gossip = gossip;
    trpi_assert_slow(core->seen.bits == gossip->members_count &&
                     core->votes.sure.bits == gossip->members_count);
    trpi_assert_slow(self == TRPI_GOSSIP_NONE || trpi_seen_get(&core->seen, self));
    return TRP_OK;
}

trp_err
trpi_core_commit(trpi_member_core *core, trpi_gossip *edited)
{
    trpi_assert_slow(!edited->frozen);
    trp_err err = trpi_gossip_count_up(edited, core->self->key);
    if (err == TRP_OK) {
        err = trpi_gossip_freeze(edited);
    }
    if (err == TRP_OK) {
        err = trpi_core_adopt(core, edited, NULL);
    }
    if (err == TRP_OK) {
        core->changed_here = true;
        core->version.made_ms = core->now.mono_ms;
    }
    trpi_gossip_unref(edited);
    return err;
}

void
trpi_core_learn_votes(trpi_member_core *core)
{
    trpi_assert_slow(core->votes.sure.bits == core->seen.bits);
    if (trpi_votes_learn(&core->votes, core->gossip, &core->seen)) {
        core->votes_news = true;
    }
}

void
trpi_core_hear_votes(trpi_member_core *core, const trpi_gossip *theirs, const trpi_frame *frame)
{
    trpi_assert_slow(core->votes.sure.bits == core->gossip->members_count);
    trpi_assert_slow(theirs->frozen);
    trpi_seen told;
    bool news = false;
    if (trpi_seen_init(&told, theirs->members_count) != TRP_OK) {
        return; /* told again */
    }
    if (trpi_frame_seen(&frame->sure, &told) && /* no memory: told again */
        trpi_votes_hear(&core->votes, core->gossip, &told, theirs, &news) == TRP_OK && news) {
        core->votes_news = true;
    }
    trpi_seen_fini(&told);
}

void
trpi_core_stop(trpi_member_core *core, trpi_member_stop stop)
{
    trpi_assert_slow(stop != TRPI_STOP_NONE);
    if (core->phase == TRPI_PHASE_STOPPED) {
        return;
    }
    core->phase = TRPI_PHASE_STOPPED;
    core->stop = stop;
    trpi_core_due_none(core);
    trpi_events_stopped(core);
    trpi_member_action *action = trpi_core_action(core, TRPI_ACTION_STOPPED);
    if (action != NULL) {
        action->stop = stop;
    }
    trpi_assert_slow(core->phase == TRPI_PHASE_STOPPED && core->stop != TRPI_STOP_NONE);
}

/* ---- commands -------------------------------------------------------------------------------- */

static trp_err
command_join(trpi_member_core *core, const trpi_member_event *event)
{
    trpi_assert_slow(event->kind == TRPI_MEMBER_JOIN || event->kind == TRPI_MEMBER_SEEDS);
    if (event->addresses_count == 0 || event->addresses_count > TRPI_SEEDS_MAX) {
        return TRP_EINVAL;
    }
    if (core->phase == TRPI_PHASE_MEMBER) {
        if (event->kind == TRPI_MEMBER_JOIN) {
            trpi_core_log(core, TRP_LOG_INFO, "already a member of a cluster, join ignored");
        }
        return TRP_ESTATE; /* MEMB-05 */
    }
    return event->kind == TRPI_MEMBER_JOIN
               ? trpi_seek_start(core, event->addresses, event->addresses_count)
               : trpi_seek_found(core, event->addresses, event->addresses_count);
}

static trp_err
change_status(trpi_member_core *core, uint32_t index, uint32_t status)
{
    trpi_assert_slow(
        trpi_member_transition_is_legal(trpi_member_status(&core->gossip->members[index]), status));
    trpi_assert_slow(index < core->gossip->members_count);
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    if (edited == NULL) {
        return TRP_ENOMEM;
    }
    trpi_gossip_set_status(edited, index, status);
    return trpi_core_commit(core, edited);
}

static bool
target_is_self(const trpi_member_core *core, const trpi_node_id *target)
{
    return target->address.host[0] == '\0' || /* none named: this node */
           (trpi_address_equal(&target->address, &core->self->id.address) &&
            (target->uid == 0 || target->uid == core->self->id.uid));
}

static trp_err
command_leave(trpi_member_core *core, const trpi_node_id *target)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    if (core->phase != TRPI_PHASE_MEMBER) {
        if (!target_is_self(core, target)) {
            return TRP_ENOENT;
        }
        trpi_core_log(core, TRP_LOG_INFO, "leaving before having joined");
        trpi_core_stop(core, TRPI_STOP_LEFT);
        return TRP_OK;
    }
    uint32_t index = target_is_self(core, target) ? trpi_core_self_index(core)
                                                  : trpi_gossip_find_address(core->gossip, target);
    if (index == TRPI_GOSSIP_NONE) {
        return TRP_ENOENT;
    }
    switch (core->gossip->members[index].status) {
    case TRP_MEMBER_JOINING:
    case TRP_MEMBER_UP:
        return change_status(core, index, TRP_MEMBER_LEAVING);
    case TRP_MEMBER_DOWN:
        return TRP_ESTATE;
    default:
        return TRP_OK; /* leaving already */
    }
}

static trp_err
command_down(trpi_member_core *core, const trpi_node_id *target, bool dead)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    if (core->phase != TRPI_PHASE_MEMBER) {
        return TRP_ESTATE;
    }
    uint32_t index = target_is_self(core, target) ? trpi_core_self_index(core)
                                                  : trpi_gossip_find_address(core->gossip, target);
    if (index == TRPI_GOSSIP_NONE) {
        return TRP_ENOENT;
    }
    bool is_down = core->gossip->members[index].status == TRP_MEMBER_DOWN;
    if (is_down && (!dead || core->gossip->members[index].settled != 0)) {
        return TRP_OK;
    }
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    if (edited == NULL) {
        return TRP_ENOMEM;
    }
    if (!is_down) {
        trpi_gossip_set_status(edited, index, TRP_MEMBER_DOWN);
    }
    edited->members[index].settled |= dead ? 1 : 0; /* the operator's word */
    return trpi_core_commit(core, edited);
}

static trp_err
command_drain(trpi_member_core *core, const trpi_node_id *target, bool drain)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    if (core->phase != TRPI_PHASE_MEMBER) {
        return TRP_ESTATE;
    }
    uint32_t index = target_is_self(core, target) ? trpi_core_self_index(core)
                                                  : trpi_gossip_find_address(core->gossip, target);
    return index == TRPI_GOSSIP_NONE ? TRP_ENOENT : trpi_marks_order(core, index, drain);
}

/* Make a new version, which says nothing new: a member that has seen it did so after this. */
static trp_err
make_version(trpi_member_core *core)
{
    trpi_gossip *edited = core->phase == TRPI_PHASE_MEMBER && !core->now.waking
                              ? trpi_gossip_copy(core->gossip)
                              : NULL;
    return edited != NULL ? trpi_core_commit(core, edited) : TRP_ESTATE;
}

static bool
is_down(const trpi_gossip *g, uint64_t key)
{
    uint32_t index = trpi_gossip_find(g, key);
    return index != TRPI_GOSSIP_NONE && g->members[index].status == TRP_MEMBER_DOWN;
}

/* A Down member is monitored no longer: this node's last observation of it stands until it is
 * removed. */
static trp_err
keep_rows_of_downed(const trpi_member_core *core, trpi_gossip *edited)
{
    trpi_assert_slow(!edited->frozen);
    const trpi_gossip *g = core->gossip;
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < g->rows_count && err == TRP_OK; i++) {
        if (g->rows[i].observer == core->self->key && is_down(g, g->rows[i].subject)) {
            err = trpi_gossip_add_row(edited, core->self->key, g->rows[i].subject);
        }
    }
    return err;
}

/* membership-E3. keys: all members that this node's detector holds unreachable now. */
static trp_err
apply_observations(trpi_member_core *core, const uint64_t *keys, uint32_t count)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    if (core->phase != TRPI_PHASE_MEMBER) {
        return TRP_OK;
    }
    const trpi_gossip *g = core->gossip;
    uint32_t known = 0;
    uint32_t changed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (trpi_gossip_find(g, keys[i]) != TRPI_GOSSIP_NONE && keys[i] != core->self->key) {
            known += is_down(g, keys[i]) ? 0 : 1;
            changed += trpi_gossip_observes(g, core->self->key, keys[i]) ? 0 : 1;
        }
    }
    uint32_t rows = 0;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        bool own = g->rows[i].observer == core->self->key;
        rows += own && !is_down(g, g->rows[i].subject) ? 1 : 0;
    }
    if (changed == 0 && rows == known) {
        return TRP_OK;
    }
    trpi_gossip *edited = trpi_gossip_copy(g);
    if (edited == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = trpi_gossip_observe(edited, core->self->key, keys, count);
    if (err == TRP_OK) {
        err = keep_rows_of_downed(core, edited);
    }
    if (err != TRP_OK) {
        trpi_gossip_unref(edited);
        return err;
    }
    trpi_assert_slow(!edited->frozen);
    return trpi_core_commit(core, edited);
}

/* ---- step ------------------------------------------------------------------------------------ */

/* Decode a frame, drop one for another incarnation or one that is too old, and pass it on by its
 * kind. */
static trp_err
take_frame(trpi_member_core *core, const trpi_member_event *event)
{
    trpi_assert_slow(event->kind == TRPI_MEMBER_FRAME);
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    trpi_frame frame;
    core->stats.frames_in++;
    core->stats.bytes_in += event->count;
    trp_err err = trpi_frame_decode(event->bytes, event->count, &event->from, core->gossip,
                                    core->options.cache, &frame);
    if (err != TRP_OK) {
        core->stats.undecodable++;
        return err == TRP_ENOMEM ? err : TRP_OK;
    }
    bool late = event->arrived_ms != 0 &&
                event->arrived_ms + core->options.gossip_ttl_ms < core->now.mono_ms;
    if (frame.to_uid != 0 && frame.to_uid != core->self->id.uid) {
        core->stats.ignored++; /* membership-E5: for a predecessor of this node */
    } else if (late && frame.kind >= TRPI_FRAME_DIGEST && frame.kind <= TRPI_FRAME_ENVELOPE) {
        core->stats.expired++;
    } else if (frame.kind <= TRPI_FRAME_JOIN) {
        trpi_seek_frame(core, &event->from, &frame);
    } else if (frame.kind == TRPI_FRAME_WELCOME) {
        trpi_core_welcome_frame(core, &event->from, &frame);
    } else if (frame.kind < TRPI_FRAME_KIND_COUNT) {
        trpi_gossip_frame(core, &event->from, &frame);
    } else {
        core->stats.ignored++; /* a later version's */
    }
    trpi_frame_fini(&frame);
    return TRP_OK;
}

static trp_err
dispatch_event(trpi_member_core *core, const trpi_member_event *event)
{
    if (core->phase == TRPI_PHASE_STOPPED) { /* membership-E4 */
        return event->kind == TRPI_MEMBER_JOIN || event->kind == TRPI_MEMBER_DOWN_CMD ||
                       event->kind == TRPI_MEMBER_DEAD_CMD || event->kind == TRPI_MEMBER_SEEDS ||
                       event->kind == TRPI_MEMBER_DRAIN || event->kind == TRPI_MEMBER_UNDRAIN
                   ? TRP_ESTATE
                   : TRP_OK;
    }
    switch (event->kind) {
    case TRPI_MEMBER_TICK:
        return TRP_OK;
    case TRPI_MEMBER_FRAME:
        return take_frame(core, event);
    case TRPI_MEMBER_JOIN:
    case TRPI_MEMBER_SEEDS:
        return command_join(core, event);
    case TRPI_MEMBER_LEAVE:
        return command_leave(core, &event->target);
    case TRPI_MEMBER_DOWN_CMD:
    case TRPI_MEMBER_DEAD_CMD:
        return command_down(core, &event->target, event->kind == TRPI_MEMBER_DEAD_CMD);
    case TRPI_MEMBER_DRAIN:
    case TRPI_MEMBER_UNDRAIN:
        return command_drain(core, &event->target, event->kind == TRPI_MEMBER_DRAIN);
    case TRPI_MEMBER_OBSERVE:
        return apply_observations(core, event->keys, event->keys_count);
    case TRPI_MEMBER_ROLL_CALL:
        return make_version(core);
    case TRPI_MEMBER_RELEASE:
        core->options.exiting_waits = false;
        return TRP_OK;
    case TRPI_MEMBER_LEASE:
        trpi_lease_answered(core, event->count != 0, event->text);
        return TRP_OK;
    case TRPI_MEMBER_REFUSED:
        trpi_seek_refused(core, &event->target.address, event->text);
        return TRP_OK;
    case TRPI_MEMBER_RIVAL:
        trpi_seek_rival(core, &event->target.address);
        return TRP_OK;
    case TRPI_MEMBER_FOREIGN:
        trpi_foreign_heard(core, &event->target);
        return TRP_OK;
    case TRPI_MEMBER_REMOVED_BY:
        if (core->phase == TRPI_PHASE_SEEKING) {
            trpi_seek_removed(core, &event->target.address);
            return TRP_OK;
        }
        return trpi_removed_by(core, &event->target, NULL);
    case TRPI_MEMBER_REACHED:
        trpi_prove_reached(core, &event->target, event->text);
        return TRP_OK;
    }
    return TRP_EINVAL;
}

static uint64_t
earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A pause of this node is no time in which the others were quiet: it does not count. */
static void
notice_own_pause(trpi_member_core *core)
{
    if (core->due.wake_ms != TRPI_NEVER && core->now.mono_ms > core->due.wake_ms + OWN_PAUSE_MS) {
        uint64_t pause_ms = core->now.mono_ms - core->due.wake_ms;
        trpi_core_move(core, &core->version.since_ms, pause_ms);
        trpi_core_track_pause(core, pause_ms);
        trpi_leader_own_pause(core, pause_ms);
        trpi_downing_own_pause(core, pause_ms);
        trpi_seek_own_pause(core, pause_ms);
        trpi_contact_own_pause(core, pause_ms);
    }
}

/* Do what each step ends with, whatever its event was. */
static void
finish_step(trpi_member_core *core)
{
    if (core->phase == TRPI_PHASE_SEEKING) {
        trpi_seek_tick(core);
    }
    if (core->phase == TRPI_PHASE_STOPPED && core->published.view != NULL) {
        trpi_events_stopped(core); /* there was no memory for it */
    }
    if (core->phase != TRPI_PHASE_MEMBER) {
        return;
    }
    trpi_prove_tick(core);
    trpi_contact_tick(core);
    uint32_t self = trpi_core_self_index(core);
    if (self != TRPI_GOSSIP_NONE && core->gossip->members[self].status != TRP_MEMBER_DOWN &&
        !core->now.waking) {
        trpi_seek_down_own_predecessors(core);
    }
    trpi_core_track(core);
    trpi_core_learn_votes(core);
    trpi_leader_tick(core);
    if (core->phase != TRPI_PHASE_MEMBER) {
        return; /* the downing strategy decided against this node */
    }
    trpi_leader_act(core);
    trpi_core_track(core);
    trpi_core_learn_votes(core); /* a node alone has seen its own changes at once */
    self = trpi_core_self_index(core);
    bool downed = self != TRPI_GOSSIP_NONE && core->gossip->members[self].status == TRP_MEMBER_DOWN;
    if (self == TRPI_GOSSIP_NONE) { /* removed, as the last member or by a merged view */
        const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, core->self->key);
        bool left = t != NULL && t->status == TRP_MEMBER_EXITING;
        trpi_core_stop(core, left ? TRPI_STOP_LEFT : TRPI_STOP_DOWNED);
        return;
    }
    trpi_events_publish(core);
    if (!downed || core->changed_here) { /* a node that marks itself Down spreads that once */
        trpi_gossip_spread(core);
    }
    if (downed) {
        trpi_core_stop(core, TRPI_STOP_DOWNED);
        return;
    }
    trpi_marks_finish(core);
    trpi_gossip_tick(core);
    trpi_foreign_tick(core);
    trpi_exiting_tick(core);
}

trp_err
trpi_member_step(trpi_member_core *core, trpi_member_now now, const trpi_member_event *event)
{
    trpi_assert(core != NULL && event != NULL);
    trpi_core_actions_clear(core);
    if (now.mono_ms < core->now.mono_ms) {
        now.mono_ms = core->now.mono_ms;
    }
    core->now = now;
    core->changed_here = false;
    core->changed_there = false;
    core->heard_from = 0;
    notice_own_pause(core);
    trp_err err = dispatch_event(core, event);
    finish_step(core);
    uint64_t wake = earlier_of(core->due.gossip_ms, core->due.extra_gossip_ms);
    wake = earlier_of(wake, core->due.leader_ms);
    if (core->phase == TRPI_PHASE_SEEKING) {
        wake = earlier_of(earlier_of(wake, core->seek.next_ms), core->seek.give_up_ms);
    } else if (core->phase == TRPI_PHASE_MEMBER) {
        wake = core->leading.exiting_ms != 0 ? earlier_of(wake, core->leading.confirm_ms) : wake;
        bool admits =
            core->admission.joiners_count > 0 && !now.waking; /* the detector wakes it from that */
        wake = admits ? earlier_of(wake, core->admission.admit_ms) : wake;
        wake = earlier_of(wake, trpi_prove_wake_ms(core));
    } else if (core->phase == TRPI_PHASE_STOPPED) {
        wake = core->published.view == NULL
                   ? TRPI_NEVER
                   : now.mono_ms + core->options.leader_actions_interval_ms;
    }
    core->due.wake_ms = wake;
    return err;
}

void
trpi_member_end(trpi_member_core *core)
{
    trpi_core_actions_clear(core);
    trpi_events_stopped(core);
    trpi_assert_slow(core->out.err != TRP_OK || core->published.view == NULL);
}

const trpi_member_action *
trpi_member_actions(const trpi_member_core *core, uint32_t *ret_count)
{
    trpi_assert_slow(core->out.actions_count <= core->out.actions_room);
    *ret_count = core->out.actions_count;
    return core->out.actions;
}

trpi_buffer
trpi_member_take_bytes(trpi_member_core *core, uint32_t action)
{
    trpi_assert_slow(core->out.actions[action].kind == TRPI_ACTION_SEND);
    trpi_assert(action < core->out.actions_count);
    trpi_buffer bytes = core->out.actions[action].bytes;
    memset(&core->out.actions[action].bytes, 0, sizeof bytes);
    return bytes;
}

uint64_t
trpi_member_wake_ms(const trpi_member_core *core)
{
    return core->due.wake_ms;
}

uint32_t
trpi_member_broken(const trpi_member_core *core)
{
    (void)core;
#ifdef TRPI_DEBUG
    return core->options.broken;
#else
    return 0;
#endif
}
