/* membership_check.c - the invariants of one node's engine between two steps, as code.
 *
 * Why.     A step has many ways through a dozen files. The invariants that hold after each of them
 *          stand here. The simulator and developer builds check them after each step.
 * Must hold. Besides membership-E4 and membership-events-V3:
 *   membership-E6  A member has a view, and is in it; before that there is none. No time at which
 *       something began lies in the future.
 *   membership-E7  The node itself has seen the view that it has, and the seen set and the votes
 *       are of that view.
 *   membership-E8  A member's next wake is no later than its next round.
 *   membership-gossip-W3  A digest or a view that is sent has its seen set, the sender in it at
 *       least.
 *   membership-removed-X6  Removers are sorted and unique, and this node is not among them.
 *   membership-contact-J16  Those that wait to be let in are different incarnations, and none of
 *       them is this node.
 * Cost.    A walk over the bits of the seen set, the votes, and this step's actions.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include <string.h>

#include "cluster/engine/membership_core.h"

#define SEEN_BEFORE_BYTES 96u /* pack_frame() writes "seen" behind a few numbers */

static const char *
check_phase(const trpi_member_core *core, trpi_check *check)
{
    bool member = core->phase == TRPI_PHASE_MEMBER, stopped = core->phase == TRPI_PHASE_STOPPED;
    if (stopped != (core->stop != TRPI_STOP_NONE)) {
        return trpi_check_broken(check, "membership-E4: phase %u with reason %u to stop",
                                 core->phase, core->stop);
    }
    if (stopped && (core->due.gossip_ms != TRPI_NEVER || core->due.extra_gossip_ms != TRPI_NEVER ||
                    core->due.leader_ms != TRPI_NEVER)) {
        return trpi_check_broken(check,
                                 "membership-E4: a round is due though the node has stopped");
    }
    if (member != (core->gossip != NULL) && !stopped) {
        return trpi_check_broken(check, "membership-E6: phase %u %s a view", core->phase,
                                 core->gossip == NULL ? "without" : "with");
    }
    if (member && trpi_core_self_index(core) == TRPI_GOSSIP_NONE) {
        return trpi_check_broken(check, "membership-E6: a member that is not in its view");
    }
    return NULL;
}

static const char *
check_times(const trpi_member_core *core, trpi_check *check)
{
    const uint64_t times[] = { core->stability.stable_ms,   core->stability.reach_ms,
                               core->stability.flapping_ms, core->version.since_ms,
                               core->split.sure_ms,         core->version.made_ms,
                               core->split.suspicion_ms,    core->split.apart_ms,
                               core->leading.exiting_ms,    core->welcome_ms,
                               core->removers.since_ms };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (times[i] > core->now.mono_ms) {
            return trpi_check_broken(check, "membership-E6: time %zu is %llu, and now is %llu", i,
                                     (unsigned long long)times[i],
                                     (unsigned long long)core->now.mono_ms);
        }
    }
    uint64_t due_ms = core->due.gossip_ms < core->due.extra_gossip_ms ? core->due.gossip_ms
                                                                      : core->due.extra_gossip_ms;
    due_ms = due_ms < core->due.leader_ms ? due_ms : core->due.leader_ms;
    if (core->phase == TRPI_PHASE_MEMBER && core->due.wake_ms > due_ms) {
        return trpi_check_broken(check, "membership-E8: woken at %llu, a round is due at %llu",
                                 (unsigned long long)core->due.wake_ms, (unsigned long long)due_ms);
    }
    return NULL;
}

static const char *
check_view(const trpi_member_core *core, trpi_check *check)
{
    const char *broken = trpi_seen_check(&core->seen, core->gossip, check);
    if (broken != NULL) {
        return broken;
    }
    uint32_t self = trpi_core_self_index(core);
    if (self != TRPI_GOSSIP_NONE && !trpi_seen_get(&core->seen, self)) {
        return trpi_check_broken(check,
                                 "membership-E7: the node has not seen the view that it has");
    }
    return trpi_votes_check(&core->votes, core->gossip, check);
}

static const char *
check_lists(const trpi_member_core *core, trpi_check *check)
{
    for (uint32_t i = 0; i < core->removers.removers_count; i++) {
        if (core->removers.removers[i].key == core->self->key ||
            (i > 0 && core->removers.removers[i - 1].key >= core->removers.removers[i].key)) {
            return trpi_check_broken(check,
                                     "membership-removed-X6: remover %u of %u is this node, "
                                     "or out of order",
                                     i, core->removers.removers_count);
        }
    }
    for (uint32_t i = 0; i < core->admission.joiners_count; i++) {
        bool twice = core->admission.joiners[i]->key == core->self->key;
        for (uint32_t k = 0; k < i && core->admission.joiners_count <= 16 && !twice; k++) {
            twice = core->admission.joiners[k]->key == core->admission.joiners[i]->key;
        }
        if (twice) {
            return trpi_check_broken(check, "membership-contact-J16: %s waits twice, or for itself",
                                     core->admission.joiners[i]->address);
        }
    }
    return NULL;
}

/* Return whether a frame of trpi_frame_encode() is a digest or a view without its seen set. */
static bool
hides_seen(const trpi_buffer *frame)
{
    size_t count = frame->count < SEEN_BEFORE_BYTES ? frame->count : SEEN_BEFORE_BYTES;
    if (count < 4 || memcmp(frame->data + 1, "\xa1k", 2) != 0) {
        return false;
    }
    uint8_t kind = frame->data[3];
    return (kind == TRPI_FRAME_DIGEST || kind == TRPI_FRAME_ENVELOPE) &&
           memmem(frame->data, count, "\xa4seen", 5) == NULL;
}

static const char *
check_actions(const trpi_member_core *core, trpi_check *check)
{
    bool stopped = false;
    for (uint32_t i = 0; i < core->out.actions_count; i++) {
        const trpi_member_action *a = &core->out.actions[i];
        stopped = stopped || a->kind == TRPI_ACTION_STOPPED;
        if (a->kind == TRPI_ACTION_SEND && stopped) {
            return trpi_check_broken(check, "membership-E4: action %u sends after the stop", i);
        }
        if (a->kind == TRPI_ACTION_SEND && hides_seen(&a->bytes)) {
            return trpi_check_broken(check,
                                     "membership-gossip-W3: action %u is a frame that does "
                                     "not say who has seen the view",
                                     i);
        }
    }
    if (core->phase == TRPI_PHASE_MEMBER && core->out.err == TRP_OK &&
        core->published.view != core->gossip) {
        return trpi_check_broken(check,
                                 "membership-events-V3: the events of a view are not published");
    }
    return NULL;
}

const char *
trpi_member_check(const trpi_member_core *core, trpi_check *check)
{
    const char *broken = check_phase(core, check);
    broken = broken != NULL ? broken : check_times(core, check);
    broken = broken != NULL || core->gossip == NULL ? broken : check_view(core, check);
    broken = broken != NULL ? broken : check_lists(core, check);
    broken = broken != NULL ? broken : trpi_marks_check(&core->marks.set, check);
    return broken != NULL ? broken : check_actions(core, check);
}
