/* downing_sides.c - the sides of a partition, and broken links within this side.
 *
 * Must hold. downing-D2, downing-D16, downing-D17.
 * Indirectly connected: two members of one side, one of which cannot reach the other. As few as
 *          possible are marked Down, so that the rest is fully connected; of a single broken link
 *          the later one in order.
 * Tests.   tests/unit/cluster/downing_test.c, downing_strategies_test.c
 */
#include "cluster/engine/downing_sides.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* Return whether a member of this side reports it, whether or not that counts (downing-D5). */
static bool
is_missed_here(const trpi_downing_input *input, const uint32_t *marks, uint64_t key)
{
    trpi_assert_slow(input->gossip->frozen);
    const trpi_gossip *g = input->gossip;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        uint32_t observer =
            g->rows[i].subject == key ? trpi_gossip_find(g, g->rows[i].observer) : TRPI_GOSSIP_NONE;
        if (observer != TRPI_GOSSIP_NONE && marks[observer] == TRPI_MARK_CLEAR &&
            g->members[observer].status < TRP_MEMBER_EXITING) {
            return true;
        }
    }
    return false;
}

static void
mark_sides(const trpi_downing_options *options, const trpi_downing_input *input, uint32_t *marks,
           trpi_sides *sides)
{
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool seen = m->ident->key == input->self || trpi_seen_get(input->seen, i);
        marks[i] = seen                      ? TRPI_MARK_CLEAR
                   : trpi_downing_suspect(m) ? TRPI_MARK_AWAY
                                             : TRPI_MARK_UNSURE;
    }
    bool patient = input->stable_ms < 3 * (uint64_t)options->stable_after_ms;
    for (uint32_t i = 0; i < g->members_count; i++) {
        if (marks[i] == TRPI_MARK_UNSURE && !patient && /* downing-D17 */
            is_missed_here(input, marks, g->members[i].ident->key)) {
            marks[i] = TRPI_MARK_AWAY;
        }
        sides->away_members += marks[i] == TRPI_MARK_AWAY ? 1 : 0;
    }
    trpi_assert_slow(sides->away_members <= g->members_count);
}

uint32_t
trpi_sides_suspected(const trpi_downing_input *input)
{
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->members_count && g->blocking_count > 0; i++) {
        const trpi_gossip_member *m = &g->members[i];
        count +=
            trpi_downing_suspect(m) && m->ident->key != input->self && trpi_seen_get(input->seen, i)
                ? 1
                : 0;
    }
    trpi_assert_slow(count <= g->blocking_count);
    return count;
}

bool
trpi_sides_is_broken_end(const trpi_gossip *g, const uint32_t *marks, uint32_t index)
{
    trpi_assert_slow(index < g->members_count);
    trpi_assert_slow(marks[index] <= TRPI_MARK_GONE);
    uint64_t key = g->members[index].ident->key;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        trpi_reach_row r = g->rows[i];
        if (r.observer == key || r.subject == key) {
            uint32_t other = trpi_gossip_find(g, r.observer == key ? r.subject : r.observer);
            if ((marks[other] == TRPI_MARK_CLEAR || marks[other] == TRPI_MARK_BROKEN) &&
                g->members[other].status < TRP_MEMBER_EXITING) {
                return true;
            }
        }
    }
    return false;
}

trpi_accusation
trpi_sides_accusation(const trpi_downing_input *input, const uint32_t *marks, uint32_t index,
                      uint64_t old_ms)
{
    trpi_assert_slow(index < input->gossip->members_count);
    trpi_assert_slow(input->seen->bits == input->gossip->members_count);
    const trpi_gossip *g = input->gossip;
    trpi_accusation worth = TRPI_ACCUSATION_VOID;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        if (g->rows[i].subject != g->members[index].ident->key) {
            continue;
        }
        uint32_t observer = trpi_gossip_find(g, g->rows[i].observer);
        bool ours = g->rows[i].observer == input->self;
        if (observer == TRPI_GOSSIP_NONE ||
            (marks != NULL && marks[observer] == TRPI_MARK_BROKEN) ||
            g->members[observer].status >= TRP_MEMBER_EXITING) {
            continue;
        }
        if (ours || (input->made_ms <= old_ms && trpi_seen_get(input->seen, observer))) {
            return TRPI_ACCUSATION_STANDS;
        }
        worth = input->made_ms <= old_ms ? worth : TRPI_ACCUSATION_OLD;
    }
    return worth;
}

/* Count the broken links of members[index] within this side, between members not marked yet. */
static uint32_t
broken_links(const trpi_gossip *g, const uint32_t *marks, uint32_t index)
{
    trpi_assert_slow(index < g->members_count);
    trpi_assert_slow(marks[index] == TRPI_MARK_CLEAR);
    uint64_t key = g->members[index].ident->key;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->rows_count; i++) {
        trpi_reach_row r = g->rows[i];
        if (r.observer != key && r.subject != key) {
            continue;
        }
        uint32_t other = trpi_gossip_find(g, r.observer == key ? r.subject : r.observer);
        bool counts =
            marks[other] == TRPI_MARK_CLEAR && g->members[other].status < TRP_MEMBER_EXITING;
        /* a link that both ends report has two rows: count the one of the lower key */
        bool twice = r.observer > r.subject && trpi_gossip_observes(g, r.subject, r.observer);
        count += counts && !twice ? 1 : 0;
    }
    trpi_assert_slow(count <= g->rows_count);
    return count;
}

/* Mark members BROKEN until the rest of this side is fully connected: the member with the most
 * broken links first, of equals the later in order. Returns their number. */
static uint32_t
mark_broken(const trpi_gossip *g, uint32_t spared, uint32_t *marks)
{
    trpi_assert_slow(spared == TRPI_GOSSIP_NONE || spared < g->members_count);
    uint32_t marked = 0;
    while (true) {
        uint32_t worst = TRPI_GOSSIP_NONE;
        uint32_t most = 0;
        for (uint32_t i = 0; i < g->members_count; i++) {
            bool candidate = marks[i] == TRPI_MARK_CLEAR && i != spared &&
                             g->members[i].status < TRP_MEMBER_EXITING;
            uint32_t links = candidate ? broken_links(g, marks, i) : 0;
            if (links > 0 && links >= most) {
                most = links;
                worst = i;
            }
        }
        if (worst == TRPI_GOSSIP_NONE) {
            return marked;
        }
        marks[worst] = TRPI_MARK_BROKEN;
        marked++;
    }
}

static uint32_t
referee_of(const trpi_gossip *g, const trpi_address *referee)
{
    trpi_assert_slow(g->frozen);
    for (uint32_t i = 0; i < g->members_count && referee->port != 0; i++) {
        if (trpi_address_equal(&g->members[i].ident->id.address, referee)) {
            return i;
        }
    }
    return TRPI_GOSSIP_NONE;
}

trpi_side
trpi_side_sum(trpi_side a, trpi_side b)
{
    trpi_assert_slow(!(a.lowest && b.lowest));
    trpi_assert_slow(!(a.oldest && b.oldest));
    return (trpi_side){ a.votes + b.votes, a.lowest || b.lowest, a.oldest || b.oldest,
                        a.referee || b.referee };
}

uint64_t
trpi_sides_exiting_oldest(const trpi_downing_options *options, const trpi_gossip *g,
                          const trpi_votes *votes, const trpi_seen *seen)
{
    trpi_assert_slow(seen->bits == g->members_count);
    trpi_assert_slow(votes->sure.bits == g->members_count);
    trpi_votes_question q = { .options = options, .gossip = g, .votes = votes };
    uint32_t oldest = trpi_votes_oldest(&q, false);
    return oldest != TRPI_GOSSIP_NONE && g->members[oldest].status == TRP_MEMBER_EXITING &&
                   trpi_seen_get(seen, oldest)
               ? g->members[oldest].ident->key
               : 0;
}

void
trpi_sides_find(const trpi_downing_options *options, const trpi_downing_input *input,
                trpi_spare spare, uint32_t *marks, trpi_sides *ret_sides)
{
    trpi_assert_slow(input->gossip->frozen);
    trpi_assert_slow(spare <= TRPI_SPARE_SELF);
    const trpi_gossip *g = input->gossip;
    trpi_votes_question q = { .options = options,
                              .gossip = g,
                              .votes = input->votes,
                              .exiting_oldest = input->exiting_oldest };
    trpi_sides members = { 0 };
    mark_sides(options, input, marks, &members);
    uint32_t spared = spare == TRPI_SPARE_OLDEST    ? trpi_votes_oldest(&q, true)
                      : spare == TRPI_SPARE_REFEREE ? referee_of(g, &options->referee)
                      : spare == TRPI_SPARE_SELF    ? trpi_gossip_find(g, input->self)
                                                    : TRPI_GOSSIP_NONE;
    members.broken_members = mark_broken(g, spared, marks);
    q.marks = marks;
    trpi_votes_count(&q, ret_sides);
    ret_sides->away_members = members.away_members;
    ret_sides->broken_members = members.broken_members;
    trpi_assert_slow(ret_sides->away_members + ret_sides->broken_members <= g->members_count);
}

char *
trpi_sides_text(const trpi_gossip *g, const uint32_t *marks, bool mine, char *buffer, size_t bytes)
{
    trpi_assert_slow(bytes > sizeof("nobody"));
    size_t used = 0;
    uint32_t shown = 0, count = 0;
    (void)snprintf(buffer, bytes, "nobody");
    for (uint32_t i = 0; i < g->members_count; i++) {
        bool here = marks[i] == TRPI_MARK_CLEAR || marks[i] == TRPI_MARK_BROKEN;
        const trpi_address *a = &g->members[i].ident->id.address;
        size_t need = strlen(a->host) + sizeof(", :65535 and 4294967295 more");
        count += here == mine ? 1 : 0;
        if (here == mine && shown + 1 == count && used + need < bytes) {
            int more = snprintf(buffer + used, bytes - used, "%s%s:%u", shown > 0 ? ", " : "",
                                a->host, a->port);
            used += more > 0 ? (size_t)more : 0;
            shown++;
        }
    }
    if (shown < count) {
        (void)snprintf(buffer + used, bytes - used, "%s%u%s", shown > 0 ? " and " : "",
                       count - shown, shown > 0 ? " more" : " members");
    }
    trpi_assert_slow(shown <= count);
    trpi_assert_slow(strlen(buffer) < bytes);
    return buffer;
}
