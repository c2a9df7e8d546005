/* membership_marks.c - drain and undrain: an order raises a member's mark, gossip spreads it.
 *
 * Why.     A mark is no part of the view, which members without the feature would pass on without
 *          it. It has a frame of its own, MARKS, which the shell sends only to peers that announced
 *          the feature. Each frame has all marks: a lost one is made up for by the next round.
 * Shape.   order, or MARKS with news --> a burst to MARKS_TARGETS members; while there is a mark
 *          each gossip round sends them to one more, and a WELCOME is followed by them
 * Must hold.
 *   membership-marks-A1  The counter of a member never falls while it is a member; a removed
 *       incarnation's is forgotten.
 *   membership-marks-A2  MARKS is answered only when its sender lacks a mark, with a smaller ttl.
 *   membership-marks-A3  Without a mark nothing is sent: the bytes are those of version 0.1.0.
 * Limits.  TRPI_GOSSIP_MEMBERS_MAX marks.
 * Tests.   tests/unit/cluster/marks_test.c
 */
#include "cluster/engine/membership_core.h"

#include "base/assert.h"

#define MARKS_TARGETS 16u /* all members of a small cluster hear of it at once */
#define MARKS_TTL 2u

bool
trpi_core_is_drained(const trpi_member_core *core, uint64_t key)
{
    return trpi_mark_is_drained(trpi_marks_get(&core->marks.set, key));
}

bool
trpi_member_is_drained(const trpi_member_core *core, uint64_t key)
{
    return core->phase == TRPI_PHASE_MEMBER && trpi_core_is_drained(core, key);
}

void
trpi_marks_tell(trpi_member_core *core, const trpi_node_id *to, uint32_t ttl)
{
    if (core->marks.set.entries_count == 0) {
        return; /* membership-marks-A3 */
    }
    trpi_frame frame = { .kind = TRPI_FRAME_MARKS,
                         .to_uid = to->uid,
                         .ttl = ttl,
                         .clock = core->marks.set.entries,
                         .clock_count = core->marks.set.entries_count };
    trpi_core_send(core, to, &frame, NULL);
}

void
trpi_marks_round(trpi_member_core *core, const trpi_node_id *to)
{
    trpi_marks_tell(core, to, MARKS_TTL);
}

/* A change is sent at once to as many members as a burst may have, from a random one on. */
static void
tell_some(trpi_member_core *core)
{
    const trpi_gossip *g = core->gossip;
    uint32_t start = trpi_core_random_below(core, g->members_count), told = 0;
    for (uint32_t n = 0; n < g->members_count && told < MARKS_TARGETS; n++) {
        const trpi_gossip_member *m = &g->members[(start + n) % g->members_count];
        if (m->ident->key != core->self->key && m->ident->key != core->heard_from &&
            m->status != TRP_MEMBER_DOWN && m->unreachable == 0) {
            trpi_marks_tell(core, &m->ident->id, MARKS_TTL);
            told++;
        }
    }
}

/* Raise a member's mark; say so if its meaning has changed. */
static trp_err
raise_mark(trpi_member_core *core, uint32_t index, uint64_t counter)
{
    const trpi_ident *ident = core->gossip->members[index].ident;
    bool was = trpi_core_is_drained(core, ident->key), raised;
    trp_err err = trpi_marks_raise(&core->marks.set, ident->key, counter, &raised);
    if (err != TRP_OK || !raised) {
        return err;
    }
    core->marks.news = true;
    if (trpi_core_is_drained(core, ident->key) != was) {
        core->marks.changed = true;
        trpi_core_log(core, TRP_LOG_INFO, "%s is %s", ident->address,
                      was ? "drained no more: it may be given shards and routees again"
                          : "drained: it hands its shards over, and is given no shard and no "
                            "routee until troupe undrain");
    }
    return TRP_OK;
}

trp_err
trpi_marks_order(trpi_member_core *core, uint32_t index, bool drain)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    const trpi_gossip_member *m = &core->gossip->members[index];
    uint64_t counter = trpi_marks_get(&core->marks.set, m->ident->key);
    if (trpi_mark_is_drained(counter) == drain) {
        return TRP_OK; /* already */
    }
    if (drain && m->status >= TRP_MEMBER_LEAVING) {
        return TRP_ESTATE; /* it is on its way out */
    }
    if (counter >= TRPI_GOSSIP_COUNTER_MAX) {
        return TRP_ELIMIT; /* a peer said so: a higher one is read by nobody */
    }
    return raise_mark(core, index, counter + 1);
}

void
trpi_marks_frame(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_MARKS);
    uint32_t known = 0;
    for (uint32_t i = 0; i < frame->clock_count; i++) {
        uint32_t index = trpi_gossip_find(core->gossip, frame->clock[i].key);
        if (index == TRPI_GOSSIP_NONE) {
            continue; /* of a member that this node does not know yet, or no more */
        }
        (void)raise_mark(core, index, frame->clock[i].counter); /* no memory: it comes again */
        known += trpi_marks_get(&core->marks.set, frame->clock[i].key) == frame->clock[i].counter;
    }
    if (frame->ttl > 0 && known < core->marks.set.entries_count) { /* membership-marks-A2 */
        trpi_marks_tell(core, from, frame->ttl - 1);
    }
}

void
trpi_marks_finish(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (core->changed_here || core->changed_there) {
        trpi_marks_retain(&core->marks.set, core->gossip); /* membership-marks-A1 */
    }
    if (core->marks.news) {
        tell_some(core);
        core->marks.news = false;
    }
    if (core->marks.changed && trpi_core_action(core, TRPI_ACTION_MARKS) != NULL) {
        core->marks.changed = false; /* without memory it is said with the next step */
    }
}
