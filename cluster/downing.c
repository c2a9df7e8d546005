/* downing.c - manual, auto-down-after, keep-majority.
 *
 * Why.     A failure detector cannot tell a dead node from a cut cable. Somebody has to decide,
 *          and two halves that cannot talk must decide differently. keep-majority needs no talk:
 *          both halves count the same last common membership, and at most one can have more than
 *          half of it.
 * Must hold.
 *   D1  While members or reachability change, nobody decides (stable_ms counts from the last
 *       change).
 *   D2  keep-majority counts *my side* as those who have seen the present version: they are
 *       connected to me by gossip, whatever the detectors say. Everybody else counts against us.
 *       So two sides which cannot gossip with each other never both have the majority, even if
 *       rows are stale.
 *   D3  A tie goes to the side of the lowest member in order.
 *   D4  Only one node of a side acts, its leader; and none that is itself under suspicion.
 *   D5  The word of an observer that is away does not count: a node that hears nobody would accuse
 *       all.
 *   D6  Both sides count the same addresses: all that have been Up and are not removed yet, also
 *       those which are Exiting or Down. What is Down here may be alive and Up over there; a
 *       restarted node votes in its predecessor's place. Joiners have no vote.
 *   D7  Who stays must be a majority by itself, without the indirectly connected that are given up.
 * Indirectly connected: two members of one side, one of which cannot reach the other. As few as
 *          possible are given up so that what stays is fully connected; of a single broken link the
 *          later in order.
 * Tests.   tests/unit/cluster/downing_test.c
 * Sources. DOWN-01 .. -05; Akka's split brain resolver (keep-majority); membership_notes S12.
 */
#include "cluster/downing.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

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
                 "%u of %u members unreachable for auto-down-after (%u ms)",
                 decision->indexes_count, decision->members, options->auto_down_after_ms);
    }
}

/* ---- keep-majority --------------------------------------------------------------------------- */

enum mark { /* per member, in scratch memory: decision->indexes before it holds the answer */
    MARK_CLEAR = 0,  /* on my side */
    MARK_AWAY = 1,   /* unreachable and has not seen the version: down it */
    MARK_UNSURE = 2, /* reachable, has not seen the version */
    MARK_BROKEN = 3  /* on my side, but indirectly connected: down it, too */
};

/* What keep-majority counts: addresses, because a restarted node votes in its predecessor's place.
 */
struct tally {
    uint32_t ours, theirs; /* on my side, and all others */
    uint32_t clear;        /* of ours: above suspicion */
    uint32_t unsure;       /* of theirs: reachable, but the version has not come round */
    bool lowest_is_ours;
};

/* D6: does this incarnation give its address a vote? */
static bool
holds_vote(const trpi_gossip_member *m, const char *role, bool joining_too)
{
    bool holds = m->status == TRP_MEMBER_JOINING ? joining_too
                 : m->status == TRP_MEMBER_DOWN  ? m->up_number != 0
                                                 : true;
    return holds && (role[0] == '\0' || trpi_ident_has_role(m->ident, role));
}

static uint32_t
mark_sides(const trpi_downing_input *input, uint32_t *marks)
{
    const trpi_gossip *g = input->gossip;
    uint32_t away = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool seen = m->ident->key == input->self || trpi_seen_get(input->seen, i);
        marks[i] = seen ? MARK_CLEAR : is_suspect(m) ? MARK_AWAY : MARK_UNSURE;
        away += marks[i] == MARK_AWAY ? 1 : 0;
    }
    return away;
}

static struct tally
tally_of(const trpi_gossip *g, const uint32_t *marks, const char *role, bool joining_too)
{
    struct tally t = { 0, 0, 0, 0, false };
    for (uint32_t i = 0, next; i < g->members_count; i = next) {
        bool votes = false;
        bool ours = false;
        bool clear = false;
        bool unsure = false;
        for (next = i; next < g->members_count &&
                       trpi_address_equal(&g->members[next].ident->id.address,
                                          &g->members[i].ident->id.address);
             next++) { /* incarnations of one address stand next to each other */
            const trpi_gossip_member *m = &g->members[next];
            bool alive = m->status <= TRP_MEMBER_LEAVING;
            votes = votes || holds_vote(m, role, joining_too);
            ours = ours || (alive && (marks[next] == MARK_CLEAR || marks[next] == MARK_BROKEN));
            clear = clear || (alive && marks[next] == MARK_CLEAR);
            unsure = unsure || (alive && marks[next] == MARK_UNSURE);
        }
        if (votes) {
            t.lowest_is_ours = t.ours + t.theirs == 0 ? ours : t.lowest_is_ours;
            t.ours += ours ? 1 : 0;
            t.theirs += ours ? 0 : 1;
            t.clear += clear ? 1 : 0;
            t.unsure += unsure && !ours ? 1 : 0;
        }
    }
    return t;
}

/* With how many of my side can members[index] not talk, as far as nobody of the two is marked? */
static uint32_t
broken_links(const trpi_gossip *g, const uint32_t *marks, uint32_t index)
{
    uint64_t key = g->members[index].ident->key;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        trpi_reach_row r = g->rows[i];
        if (r.observer != key && r.subject != key) {
            continue;
        }
        uint32_t other = trpi_gossip_find(g, r.observer == key ? r.subject : r.observer);
        bool counts = marks[other] == MARK_CLEAR && g->members[other].status < TRP_MEMBER_EXITING;
        /* a link that both ends call broken has two rows: count it once, at the lower key's */
        bool twice = r.observer > r.subject && trpi_gossip_observes(g, r.subject, r.observer);
        count += counts && !twice ? 1 : 0;
    }
    return count;
}

/* Mark whom to give up so that the rest of my side is fully connected: those with the most broken
 * links first, the later in order of equals. */
static uint32_t
mark_broken(const trpi_gossip *g, uint32_t *marks)
{
    uint32_t marked = 0;
    while (true) {
        uint32_t worst = TRPI_GOSSIP_NONE;
        uint32_t most = 0;
        for (uint32_t i = 0; i < g->members_count; i++) {
            bool candidate = marks[i] == MARK_CLEAR && g->members[i].status < TRP_MEMBER_EXITING;
            uint32_t links = candidate ? broken_links(g, marks, i) : 0;
            if (links > 0 && links >= most) {
                most = links;
                worst = i;
            }
        }
        if (worst == TRPI_GOSSIP_NONE) {
            return marked;
        }
        marks[worst] = MARK_BROKEN;
        marked++;
    }
}

/* D4: the first in order that is Up or Leaving and clear; else such a joiner. */
static uint32_t
who_acts(const trpi_gossip *g, const uint32_t *marks)
{
    uint32_t first = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (marks[i] != MARK_CLEAR || m->status >= TRP_MEMBER_EXITING) {
            continue;
        }
        if (m->status != TRP_MEMBER_JOINING) {
            return i;
        }
        first = first == TRPI_GOSSIP_NONE ? i : first;
    }
    return first;
}

/* The indexes of the marked, in place of the marks. */
static void
collect_marked(const trpi_gossip *g, trpi_downing_decision *decision)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->members_count; i++) {
        uint32_t mark = decision->indexes[i]; /* read before index count <= i is written */
        if ((mark == MARK_AWAY || mark == MARK_BROKEN) &&
            g->members[i].status < TRP_MEMBER_EXITING) {
            decision->indexes[count++] = i;
        }
    }
    decision->indexes_count = count;
}

static bool
is_majority(const struct tally *t, uint32_t votes)
{
    uint32_t all = t->ours + t->theirs;
    return votes * 2 > all || (votes * 2 == all && t->lowest_is_ours); /* D3 */
}

/* How long the version may take to come round (D2 afterwards). Half as long again; but a side that
 * the unsure could still make the majority must not give itself up for being slow: in a large half
 * one whose observers are all on the other side is found late, and each new observer's row is a
 * version that everybody has to see anew. */
static uint64_t
patience_ms(const trpi_downing_options *options, const struct tally *t, bool majority)
{
    uint64_t stable_after_ms = options->stable_after_ms;
    return !majority && is_majority(t, t->ours + t->unsure)
               ? 3 * stable_after_ms
               : stable_after_ms + stable_after_ms / 2;
}

static void
decide_majority(const trpi_downing_options *options, const trpi_downing_input *input,
                trpi_downing_decision *decision)
{
    const trpi_gossip *g = input->gossip;
    if (input->stable_ms < options->stable_after_ms) {
        return; /* D1 */
    }
    decision->unreachable = mark_sides(input, decision->indexes);
    decision->indirectly_connected = mark_broken(g, decision->indexes);
    struct tally t = tally_of(g, decision->indexes, options->role, false);
    if (t.ours + t.theirs == 0) { /* nobody is Up yet */
        t = tally_of(g, decision->indexes, options->role, true);
    }
    bool majority = is_majority(&t, t.ours);
    if (t.unsure > 0 && input->stable_ms < patience_ms(options, &t, majority)) {
        return;
    }
    decision->members = t.ours + t.theirs;
    decision->reachable = t.ours;
    snprintf(decision->reason, sizeof(decision->reason),
             "%s: %u of %u members on this side, %u unreachable, %u indirectly connected",
             t.ours == t.theirs ? (majority ? "tie, lowest address on this side"
                                            : "tie, lowest address on the other side")
                                : (majority ? "majority" : "minority"),
             t.ours, decision->members, decision->unreachable, decision->indirectly_connected);
    uint32_t self = trpi_gossip_find(g, input->self);
    trpi_assert(self != TRPI_GOSSIP_NONE);
    if (!majority) {
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
        return;
    }
    if (!is_majority(&t, t.clear)) {
        return; /* D7 */
    }
    if (decision->indexes[self] == MARK_BROKEN) {
        decision->verdict = TRPI_DOWNING_DOWN_SELF;
    } else if (who_acts(g, decision->indexes) == self) {
        collect_marked(g, decision);
        decision->verdict =
            decision->indexes_count > 0 ? TRPI_DOWNING_DOWN_MEMBERS : TRPI_DOWNING_WAIT;
    }
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
