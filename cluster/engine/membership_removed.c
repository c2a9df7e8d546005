/* membership_removed.c - how a node learns that it was removed while it was cut off or stood still.
 *
 * Why.     A node that cannot be reached cannot be told that it is removed. When it is back, the
 *          members that have removed it answer its gossip with GONE for quarantine-removed-node-
 *          after, and from then on refuse its handshakes. If it does not listen, it goes on with
 *          its old view as a second cluster, for ever under the strategies that do not decide.
 * Shape.   GONE, a refused handshake --> removers: the members that say so, once each --> all
 *          others are asked --> may the removers go on, counted over this node's view?
 *             yes: STOPPED(downed)       no, for TWO_CLUSTERS_MS: two clusters, in the log
 * Must hold.
 *   membership-removed-X1  One remover does not end a node: the removers do when they are a side
 *       that may go on by this node's strategy, so that an operator who downs the majority from a
 *       lost minority ends no node. GONE speaks for all members of its sender's cluster: all have
 *       seen that the node was Down before it was removed. A refused handshake speaks for one.
 *       A node that was removed while it was reachable was not cut off: an operator ordered it, and
 *       half of the votes are enough, whatever the strategy. (Of two, one orders the other's end.)
 *       So are all other members that are not Down, even if none of them has a vote: a joiner may
 *       order the end of the last member that is Up.
 *   membership-removed-X2  With a lease the sender of GONE owns it, or gives up its own side
 *       (membership-downing-W2), and is obeyed at once.
 *   membership-removed-X3  A frame of another kind takes a member's GONE back; its removal from
 *       this node's view makes it forgotten. The same holds for its report that this node was
 *       reachable.
 *   membership-removed-X4  When there is a remover, all other members are dialled again, whatever
 *       the pause between attempts, so that TWO_CLUSTERS_MS after the first refusal all have been
 *       asked.
 *   membership-removed-X5  A remover may have been restarted since. The present incarnation at the
 *       address of an unreachable member, which is asked from time to time (membership_foreign.c),
 *       says so in its place: the previous incarnation has ended.
 * Limits.  ASKED_LEAST members, and a quarter of all, are asked in each round of the leader.
 * Tests.   tests/unit/cluster/removed_test.c, tests/sim/split_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/engine/downing_sides.h"
#include "base/assert.h"

#define TWO_CLUSTERS_MS 10000u
#define AGAIN_MS 60000u /* then the log says it once more */
#define ASKED_LEAST 8u
#define ASK_TTL 4u

/* ---- removers -------------------------------------------------------------------------------- */

/* Return the index of key, or the one where it is inserted. */
static uint32_t
remover_index(const trpi_member_core *core, uint64_t key)
{
    trpi_assert_slow(core->removers.removers_count <= core->removers.removers_room);
    uint32_t low = 0;
    uint32_t high = core->removers.removers_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (core->removers.removers[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    trpi_assert_slow(low <= core->removers.removers_count);
    return low;
}

bool
trpi_member_is_remover(const trpi_member_core *core, uint64_t key)
{
    uint32_t at = remover_index(core, key);
    return at < core->removers.removers_count && core->removers.removers[at].key == key;
}

uint64_t
trpi_member_removed_since_ms(const trpi_member_core *core)
{
    return core->removers.removers_count == 0 ? 0 : core->removers.since_ms;
}

static trp_err
insert_remover(trpi_member_core *core, uint64_t key)
{
    trpi_assert_slow(key != core->self->key);
    trpi_assert_slow(!trpi_member_is_remover(core, key));
    uint32_t at = remover_index(core, key);
    if (!TRPI_ARRAY_HAS_ROOM(&core->removers, removers)) {
        return TRP_ENOMEM;
    }
    memmove(core->removers.removers + at + 1, core->removers.removers + at,
            (core->removers.removers_count - at) * sizeof *core->removers.removers);
    core->removers.removers[at] = (trpi_remover){ key, false };
    core->removers.removers_count++;
    return TRP_OK;
}

static void
drop_remover(trpi_member_core *core, uint32_t at)
{
    trpi_assert_slow(at < core->removers.removers_count);
    core->removers.removers_count--;
    memmove(core->removers.removers + at, core->removers.removers + at + 1,
            (core->removers.removers_count - at) * sizeof *core->removers.removers);
}

void
trpi_removed_heard(trpi_member_core *core, uint64_t key) /* membership-removed-X3 */
{
    trpi_assert_slow(key != core->self->key);
    if (core->removers.removers_count > 0 && trpi_member_is_remover(core, key)) {
        drop_remover(core, remover_index(core, key));
    }
    trpi_assert_slow(!trpi_member_is_remover(core, key));
}

/* ---- asking the others (membership-removed-X4) ----------------------------------------------- */

static void
ask_others(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    const trpi_gossip *g = core->gossip;
    uint32_t count = g->members_count, asked = 0, n = 0;
    uint32_t limit = count / 4 > ASKED_LEAST ? count / 4 : ASKED_LEAST;
    uint32_t start = core->removers.next < count ? core->removers.next : 0;
    for (; n < count && asked < limit; n++) {
        const trpi_gossip_member *m = &g->members[(start + n) % count];
        if (m->ident->key == core->self->key || m->status == TRP_MEMBER_DOWN ||
            trpi_member_is_remover(core, m->ident->key)) {
            continue;
        }
        trpi_member_action *dial = trpi_core_action(core, TRPI_ACTION_DIAL);
        if (dial != NULL) { /* no memory: in the next round */
            dial->to = m->ident->id;
        }
        trpi_gossip_ask(core, &m->ident->id);
        asked++;
    }
    core->removers.next = (start + n) % count;
    trpi_assert_slow(asked <= limit && core->removers.next < count);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static void
log_two_clusters(trpi_member_core *core, const trpi_downing_count *count, const char *names)
{
    trpi_assert_slow(core->removers.removers_count > 0);
    if (core->now.mono_ms >= core->removers.log_ms) {
        core->removers.log_ms = core->now.mono_ms + AGAIN_MS;
        trpi_core_log(core, TRP_LOG_WARNING,
                      "two clusters: %s removed this node from their cluster, and %u of %u votes "
                      "may not go on by %s, so this node stays; end the side that is not to go on "
                      "(troupe why, docs/operating.md, Two clusters at once)",
                      names, count->side, count->all, trpi_downing_name(core->downing));
    }
}

/* Return whether a remover reports that this node was reachable (membership-removed-X3). */
static bool
was_near(const trpi_member_core *core)
{
    for (uint32_t i = 0; i < core->removers.removers_count; i++) {
        if (core->removers.removers[i].near) {
            return true;
        }
    }
    return false;
}

/* membership-removed-X1 */
static bool
is_ordered_by_all(const trpi_member_core *core, const uint32_t *marks)
{
    trpi_assert_slow(core->removers.removers_count > 0);
    const trpi_gossip *g = core->gossip;
    bool near = was_near(core), any = false;
    for (uint32_t i = 0; i < g->members_count && near; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (m->ident->key == core->self->key || m->status == TRP_MEMBER_DOWN) {
            continue;
        }
        if (marks[i] != TRPI_MARK_CLEAR) {
            return false;
        }
        any = true;
    }
    return any;
}

/* membership-removed-X1 */
static void
judge_removers(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER && core->removers.removers_count > 0);
    const trpi_gossip *g = core->gossip;
    uint32_t *marks = trpi_alloc((g->members_count + 1) * sizeof *marks);
    if (marks == NULL) {
        return; /* at the next round */
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        marks[i] = trpi_member_is_remover(core, g->members[i].ident->key) ? TRPI_MARK_CLEAR
                                                                          : TRPI_MARK_AWAY;
    }
    trpi_downing_count count;
    char names[160];
    (void)trpi_sides_text(g, marks, true, names, sizeof names);
    if (trpi_member_may_go_on(core, marks, &count) ||
        (was_near(core) && 2 * count.side >= count.all) || is_ordered_by_all(core, marks)) {
        trpi_core_log(core, TRP_LOG_WARNING,
                      "this node was removed%s: %s say so, %u of %u votes, which may go on by %s; "
                      "it stops; what next: start it again, it joins them",
                      was_near(core) ? "" : " while it was cut off or stood still", names,
                      count.side, count.all, trpi_downing_name(core->downing));
        trpi_core_stop(core, TRPI_STOP_DOWNED);
    } else {
        log_two_clusters(core, &count, names);
    }
    trpi_free(marks);
}

/* Note one remover if it is a member; *ret_new becomes true if something of this is new. */
static trp_err
note_remover(trpi_member_core *core, uint64_t key, bool near, bool *ret_new)
{
    bool known = trpi_member_is_remover(core, key);
    if (key == core->self->key || trpi_gossip_find(core->gossip, key) == TRPI_GOSSIP_NONE) {
        return TRP_OK;
    }
    if (!known && insert_remover(core, key) != TRP_OK) {
        return TRP_ENOMEM;
    }
    trpi_remover *remover = &core->removers.removers[remover_index(core, key)];
    *ret_new = *ret_new || !known || (near && !remover->near);
    remover->near = remover->near || near;
    return TRP_OK;
}

/* Note the remover and the members that it speaks for, and whether this node was reachable. */
static trp_err
note_removers(trpi_member_core *core, const trpi_node_id *id, const trpi_frame *gone, bool *ret_new)
{
    trpi_assert_slow(gone == NULL || gone->kind == TRPI_FRAME_GONE);
    bool near = gone != NULL && gone->near;
    *ret_new = false;
    trp_err err = note_remover(core, trpi_ident_key(id), near, ret_new);
    for (uint32_t i = 0; gone != NULL && i < gone->keys_count; i++) {
        trp_err added = note_remover(core, gone->keys[i], near, ret_new);
        err = err != TRP_OK ? err : added;
    }
    return err;
}

trp_err
trpi_removed_by(trpi_member_core *core, const trpi_node_id *id, const trpi_frame *gone)
{
    trpi_assert_slow(gone == NULL || gone->kind == TRPI_FRAME_GONE);
    bool first = core->removers.removers_count == 0;
    bool is_new;
    if (core->phase != TRPI_PHASE_MEMBER) {
        return TRP_OK;
    }
    trp_err err = note_removers(core, id, gone, &is_new);
    if (!is_new) {
        return err;
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_core_log(core, TRP_LOG_WARNING, "%s %s: it has removed this node from its cluster",
                  trpi_address_format(&id->address, text, sizeof text),
                  gone != NULL ? "says that this node is gone" : "refuses this node");
    if (first) {
        core->removers.since_ms = core->now.mono_ms;
        core->removers.log_ms = core->now.mono_ms + TWO_CLUSTERS_MS;
        ask_others(core);
    }
    judge_removers(core);
    return err;
}

void
trpi_removed_by_successor(trpi_member_core *core, const trpi_node_id *id)
{
    const trpi_gossip *g = core->gossip;
    if (core->phase != TRPI_PHASE_MEMBER || g == NULL) {
        return;
    }
    for (uint32_t i = trpi_gossip_lower(g, &id->address);
         i < g->members_count && trpi_address_equal(&g->members[i].ident->id.address, &id->address);
         i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (m->ident->id.uid != id->uid && trpi_core_misses(core, m) &&
            m->status < TRP_MEMBER_EXITING) {
            (void)trpi_removed_by(core, &m->ident->id, NULL); /* its next frame says so again */
            return;
        }
    }
}

void
trpi_removed_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    for (uint32_t i = core->removers.removers_count; i-- > 0;) {
        if (trpi_gossip_find(core->gossip, core->removers.removers[i].key) == TRPI_GOSSIP_NONE) {
            drop_remover(core, i); /* membership-removed-X3 */
        }
    }
    if (core->removers.removers_count == 0) {
        return;
    }
    if (core->now.mono_ms < core->removers.since_ms + TWO_CLUSTERS_MS) {
        ask_others(core);
    }
    judge_removers(core);
}
