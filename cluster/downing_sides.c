/* downing_sides.c - see the header.
 *
 * Must hold. D2, D5, D6 and D10 of downing.c.
 * Indirectly connected: two members of one side, one of which cannot reach the other. As few as
 *          possible are given up so that what stays is fully connected; of a single broken link the
 *          later in order.
 * Tests.   tests/unit/cluster/downing_test.c, downing_strategies_test.c
 */
#include "cluster/downing_sides.h"

#include <stdio.h>
#include <string.h>

/* D6: does this incarnation give its address a vote? Only who has been Up has an Up-number; that it
 * was told to leave, or marked Down, before that, the other side need not have heard. */
static bool
holds_vote(const trpi_gossip_member *m, const char *role, bool joining_too)
{
    return (m->up_number != 0 || joining_too) &&
           (role[0] == '\0' || trpi_ident_has_role(m->ident, role));
}

static void
mark_sides(const trpi_downing_input *input, uint32_t *marks, trpi_sides *sides)
{
    const trpi_gossip *g = input->gossip;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool seen = m->ident->key == input->self || trpi_seen_get(input->seen, i);
        marks[i] = seen                     ? TRPI_MARK_CLEAR
                   : trpi_downing_suspect(m) ? TRPI_MARK_AWAY
                                            : TRPI_MARK_UNSURE;
        sides->away_members += marks[i] == TRPI_MARK_AWAY ? 1 : 0;
    }
}

uint32_t
trpi_sides_doubtful(const trpi_downing_input *input)
{
    const trpi_gossip *g = input->gossip;
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->members_count && g->blocking_count > 0; i++) {
        const trpi_gossip_member *m = &g->members[i];
        count += trpi_downing_suspect(m) && m->ident->key != input->self &&
                         trpi_seen_get(input->seen, i)
                     ? 1
                     : 0;
    }
    return count;
}

bool
trpi_sides_is_broken_end(const trpi_gossip *g, const uint32_t *marks, uint32_t index)
{
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
        bool counts =
            marks[other] == TRPI_MARK_CLEAR && g->members[other].status < TRP_MEMBER_EXITING;
        /* a link that both ends call broken has two rows: count it once, at the lower key's */
        bool twice = r.observer > r.subject && trpi_gossip_observes(g, r.subject, r.observer);
        count += counts && !twice ? 1 : 0;
    }
    return count;
}

/* Mark whom to give up so that the rest of my side is fully connected: those with the most broken
 * links first, the later in order of equals. Returns their number. */
static uint32_t
mark_broken(const trpi_gossip *g, uint32_t spared, uint32_t *marks)
{
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

/* Who of the voters, but for `without`, has been Up for longest; of none, the first in order. */
static uint32_t
oldest_of(const trpi_gossip *g, const char *role, bool joining_too, uint64_t without)
{
    uint32_t oldest = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        if (holds_vote(m, role, joining_too) && m->ident->key != without &&
            (oldest == TRPI_GOSSIP_NONE ||
             m->up_number - 1 < g->members[oldest].up_number - 1)) { /* 0, not Up, is the last */
            oldest = i;
        }
    }
    return oldest;
}

static uint32_t
referee_of(const trpi_gossip *g, const trpi_address *referee)
{
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
    return (trpi_side){ a.votes + b.votes, a.lowest || b.lowest, a.oldest || b.oldest,
                        a.referee || b.referee };
}

static bool
lives(const trpi_gossip_member *m)
{
    return m->status <= TRP_MEMBER_LEAVING;
}

/* Where an address belongs whose incarnations are members[from..to): the best of what is alive. */
static trpi_side *
side_of(const trpi_gossip *g, const uint32_t *marks, uint32_t from, uint32_t to, trpi_sides *sides)
{
    trpi_side *best_first[] = { &sides->clear, &sides->broken, &sides->unsure, &sides->away };
    static const uint32_t rank[] = { [TRPI_MARK_CLEAR] = 0,
                                     [TRPI_MARK_BROKEN] = 1,
                                     [TRPI_MARK_UNSURE] = 2,
                                     [TRPI_MARK_AWAY] = 3 };
    uint32_t best = 3;
    for (uint32_t i = from; i < to; i++) {
        best = lives(&g->members[i]) && rank[marks[i]] < best ? rank[marks[i]] : best;
    }
    return best_first[best];
}

/* D10: the leaver of the input is still there, and still Exiting. */
static bool
leaves(const trpi_gossip *g, uint64_t leaver)
{
    uint32_t index = trpi_gossip_find(g, leaver);
    return index != TRPI_GOSSIP_NONE && g->members[index].status == TRP_MEMBER_EXITING;
}

/* As if `without` was removed. */
static uint32_t
count_of(const trpi_downing_options *options, const trpi_downing_input *input,
         const uint32_t *marks, bool joining_too, uint64_t without, trpi_sides *sides)
{
    const trpi_gossip *g = input->gossip;
    uint32_t oldest = oldest_of(g, options->role, joining_too, without);
    uint32_t votes = 0;
    /* One that is Down or Exiting here may be removed over there, where another is the oldest: not
     * even its successor on this address may make two sides have it. */
    if (oldest != TRPI_GOSSIP_NONE && !lives(&g->members[oldest])) {
        bool here = g->members[oldest].ident->key == input->leaver && leaves(g, input->leaver);
        *(here ? &sides->clear.oldest : &sides->away.oldest) = true; /* D10; its vote is away */
    }
    for (uint32_t i = 0, next; i < g->members_count; i = next) {
        trpi_side found = { 0, false, false, false };
        for (next = i; next < g->members_count &&
                       trpi_address_equal(&g->members[next].ident->id.address,
                                          &g->members[i].ident->id.address);
             next++) { /* incarnations of one address stand next to each other */
            bool votes_too = holds_vote(&g->members[next], options->role, joining_too) &&
                             g->members[next].ident->key != without;
            found.votes = votes_too ? 1 : found.votes;
            found.oldest = found.oldest || (next == oldest && lives(&g->members[next]));
        }
        found.lowest = found.votes != 0 && votes == 0;
        found.referee = options->referee.port != 0 &&
                        trpi_address_equal(&g->members[i].ident->id.address, &options->referee);
        trpi_side *side = side_of(g, marks, i, next, sides);
        *side = trpi_side_sum(*side, found);
        votes += found.votes;
    }
    return votes;
}

static void
count_sides(const trpi_downing_options *options, const trpi_downing_input *input,
            const uint32_t *marks, uint64_t without, trpi_sides *sides)
{
    if (count_of(options, input, marks, false, without, sides) == 0) { /* nobody is Up yet */
        trpi_side none = { 0, false, false, false };
        sides->clear = sides->broken = sides->unsure = sides->away = none;
        (void)count_of(options, input, marks, true, without, sides);
    }
}

void
trpi_sides_count(const trpi_downing_options *options, const trpi_downing_input *input,
                 const uint32_t *marks, trpi_sides *ret_sides)
{
    *ret_sides = (trpi_sides){ 0 };
    count_sides(options, input, marks, 0, ret_sides);
}

bool
trpi_sides_without_leaver(const trpi_downing_options *options, const trpi_downing_input *input,
                          trpi_spare spare, const uint32_t *marks, trpi_sides *ret_sides)
{
    uint32_t oldest = oldest_of(input->gossip, options->role, false, 0);
    if (spare != TRPI_SPARE_OLDEST || oldest == TRPI_GOSSIP_NONE ||
        input->gossip->members[oldest].ident->key != input->leaver ||
        !leaves(input->gossip, input->leaver)) {
        return false;
    }
    *ret_sides = (trpi_sides){ 0 };
    count_sides(options, input, marks, input->leaver, ret_sides);
    return true;
}

uint64_t
trpi_sides_leaver(const trpi_downing_options *options, const trpi_gossip *g, const trpi_seen *seen)
{
    uint32_t oldest = oldest_of(g, options->role, false, 0);
    return oldest != TRPI_GOSSIP_NONE && g->members[oldest].status == TRP_MEMBER_EXITING &&
                   trpi_seen_get(seen, oldest)
               ? g->members[oldest].ident->key
               : 0;
}

void
trpi_sides_find(const trpi_downing_options *options, const trpi_downing_input *input,
                trpi_spare spare, uint32_t *marks, trpi_sides *ret_sides)
{
    const trpi_gossip *g = input->gossip;
    *ret_sides = (trpi_sides){ 0 };
    mark_sides(input, marks, ret_sides);
    uint64_t leaver = leaves(g, input->leaver) ? input->leaver : 0;
    uint32_t spared = spare == TRPI_SPARE_OLDEST    ? oldest_of(g, options->role, false, leaver)
                      : spare == TRPI_SPARE_REFEREE ? referee_of(g, &options->referee)
                      : spare == TRPI_SPARE_SELF    ? trpi_gossip_find(g, input->self)
                                                    : TRPI_GOSSIP_NONE;
    ret_sides->broken_members = mark_broken(g, spared, marks);
    count_sides(options, input, marks, 0, ret_sides);
}

char *
trpi_sides_text(const trpi_gossip *g, const uint32_t *marks, bool mine, char *buffer, size_t bytes)
{
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
    return buffer;
}
