/* downing.c - manual, auto-down-after, keep-majority.
 *
 * Why.     A failure detector cannot tell a dead node from a cut cable. Somebody has to decide, and two
 *          halves that cannot talk must decide differently. keep-majority needs no talk: both halves count
 *          the same last common membership, and at most one can have more than half of it.
 * Must hold.
 *   D1  While members or reachability change, nobody decides (stable_ms counts from the last change).
 *   D2  keep-majority counts *my side* as those who have seen the present version: they are connected to
 *       me by gossip, whatever the detectors say. Everybody else counts against us. So two sides which
 *       cannot gossip with each other never both have the majority, even if rows are stale.
 *   D3  A tie goes to the side of the lowest member in order.
 *   D4  Only one node of a side acts, its leader; and none that is itself under suspicion.
 * Indirectly connected: a member that is unreachable for some, but has seen the present version through
 *          others. In a majority these are marked Down too, so that what stays is fully connected; when
 *          nobody is above suspicion, all stop.
 * Tests.   tests/unit/cluster/downing_test.c
 * Sources. DOWN-01 .. -05; Akka's split brain resolver (keep-majority); membership_notes S12.
 */
#include "cluster/downing.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static bool
is_counted(const trpi_gossip_member *m, const char *role, bool joining_too)
{
    bool alive = m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING ||
                 (joining_too && m->status == TRP_MEMBER_JOINING);
    return alive && (role[0] == '\0' || trpi_ident_has_role(m->ident, role));
}

static bool
is_suspect(const trpi_gossip_member *m)
{
    return m->unreachable != 0 && m->status < TRP_MEMBER_EXITING;
}

static void
decide_manual(const trpi_downing_options *options, const trpi_downing_input *input,
              trpi_downing_decision *decision)
{
    (void)options;
    (void)input;
    (void)decision; /* waits for the operator */
}

static void
decide_auto(const trpi_downing_options *options, const trpi_downing_input *input,
            trpi_downing_decision *decision)
{
    const trpi_gossip *g = input->gossip;
    uint32_t leader = trpi_gossip_leader(g, input->self, NULL);
    if (leader == TRPI_GOSSIP_NONE || g->members[leader].ident->key != input->self) {
        return;
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        decision->members++;
        if (!is_suspect(&g->members[i]) || g->members[i].ident->key == input->self) {
            decision->reachable++;
            continue;
        }
        decision->unreachable++;
        if (input->unreachable_ms[i] >= options->auto_down_after_ms) {
            decision->indexes[decision->indexes_count++] = i;
        }
    }
    if (decision->indexes_count > 0) {
        decision->verdict = TRPI_DOWNING_DOWN_MEMBERS;
        snprintf(decision->reason, sizeof(decision->reason),
                 "%u of %u members unreachable for auto-down-after (%u ms)", decision->indexes_count,
                 decision->members, options->auto_down_after_ms);
    }
}

/* What keep-majority counts. */
struct tally {
    uint32_t ours, theirs;    /* counted members on my side, and all others */
    uint32_t undecided;       /* of theirs: reachable, but has not seen the version */
    uint32_t suspects;        /* members that are unreachable for somebody */
    uint32_t clear_on_side;   /* on my side and above suspicion */
    bool lowest_is_ours;
    bool self_is_suspect;
};

static struct tally
tally_of(const trpi_downing_input *input, const char *role, bool joining_too,
         trpi_downing_decision *decision)
{
    const trpi_gossip *g = input->gossip;
    struct tally t = { 0 };
    bool lowest_known = false;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool self = m->ident->key == input->self;
        bool suspect = is_suspect(m);
        bool seen = self || trpi_seen_get(input->seen, i);
        t.suspects += suspect ? 1 : 0;
        t.self_is_suspect = t.self_is_suspect || (self && suspect);
        decision->unreachable += suspect && !seen ? 1 : 0;
        decision->indirectly_connected += suspect && seen ? 1 : 0;
        t.clear_on_side += !suspect && seen && m->status < TRP_MEMBER_EXITING ? 1 : 0;
        if (!is_counted(m, role, joining_too)) {
            continue;
        }
        decision->members++;
        t.ours += seen ? 1 : 0;
        t.theirs += seen ? 0 : 1;
        t.undecided += !seen && !suspect ? 1 : 0;
        if (!lowest_known) {
            lowest_known = true;
            t.lowest_is_ours = seen;
        }
    }
    decision->reachable = t.ours;
    return t;
}

/* D4: the first in order that is Up or Leaving, on my side and above suspicion; else such a joiner. */
static bool
self_acts(const trpi_downing_input *input)
{
    const trpi_gossip *g = input->gossip;
    const trpi_gossip_member *first = NULL;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (is_suspect(m) || !trpi_seen_get(input->seen, i) || m->status >= TRP_MEMBER_EXITING) {
            continue;
        }
        if (m->status != TRP_MEMBER_JOINING) {
            return m->ident->key == input->self;
        }
        first = first == NULL ? m : first;
    }
    return first != NULL && first->ident->key == input->self;
}

static void
decide_majority(const trpi_downing_options *options, const trpi_downing_input *input,
                trpi_downing_decision *decision)
{
    const trpi_gossip *g = input->gossip;
    if (input->stable_ms < options->stable_after_ms) {
        return; /* D1 */
    }
    struct tally t = tally_of(input, options->role, false, decision);
    if (t.suspects == 0) {
        return;
    }
    if (decision->members == 0) { /* nobody is Up yet */
        *decision = (trpi_downing_decision){ .indexes = decision->indexes };
        t = tally_of(input, options->role, true, decision);
    }
    /* Reachable, but the version has not come round: give it half as long again (D2 afterwards). */
    if (t.undecided > 0 && input->stable_ms < options->stable_after_ms + options->stable_after_ms / 2) {
        return;
    }
    bool tie = t.ours == t.theirs;
    bool majority = t.ours > t.theirs || (tie && t.lowest_is_ours); /* D3 */
    const char *how = tie ? (majority ? "tie, lowest address on this side" : "tie, lowest address on the other side")
                          : (majority ? "majority" : "minority");
    snprintf(decision->reason, sizeof(decision->reason),
             "%s: %u of %u members on this side, %u unreachable, %u indirectly connected", how, t.ours,
             decision->members, decision->unreachable, decision->indirectly_connected);
    if (!majority || t.clear_on_side == 0) {
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
        return;
    }
    if (t.self_is_suspect || !self_acts(input)) {
        return; /* D4: the one who acts will mark me, or the others */
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (is_suspect(&g->members[i])) {
            decision->indexes[decision->indexes_count++] = i;
        }
    }
    decision->verdict = TRPI_DOWNING_DOWN_MEMBERS;
}

const trpi_downing_ops *
trpi_downing_find(const char *name)
{
    static const trpi_downing_ops strategies[] = {
        { "manual", decide_manual },
        { "auto-down-after", decide_auto },
        { "keep-majority", decide_majority },
    };
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        if (strcmp(strategies[i].name, name) == 0) {
            return &strategies[i];
        }
    }
    return NULL;
}
