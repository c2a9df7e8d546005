/* gossip_reachability.c - which observations count, and so which members are unreachable
 * (downing-D5).
 *
 * Why.     A node that receives nothing reports all members unreachable, and a crashed node cannot
 *          withdraw what it reported of a healthy one. So the observations of an observer that is
 *          unreachable itself do not count. All strategies, the leader's choice, convergence,
 *          events, `members` and `why` read the result, trpi_gossip_member.unreachable, and nothing
 *          else.
 * Shape.   An observer counts when no observer that counts reports it unreachable. If that is
 *          circular (two sides, or a deaf node and all others, report one another), those of the
 *          circle that most observers report do not count; if all are reported by equally many,
 *          all count. A member that reports none of the others is in no circle: else it could
 *          happen that nobody counts, and a view in which nobody is unreachable is never decided.
 * Must hold.
 *   gossip-reachability-R1  The result is a function of the view alone: equal views give equal
 *       results.
 *   gossip-reachability-R2  A member that no observer reports is reachable; one that is reported by
 *       an observer that counts is unreachable.
 * Cost.    Nothing without rows; else a walk over them for each round, ROUNDS_MAX at most: an
 *          observer that is undecided then counts.
 * Tests.   tests/unit/cluster/gossip_test.c, leader_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/engine/gossip.h"
#include "base/assert.h"

#define ROUNDS_MAX 64u

enum observer { OBSERVER_OPEN, OBSERVER_COUNTS, OBSERVER_AWAY };

struct verdicts {
    const trpi_gossip *g;
    uint32_t *observers, *subjects; /* of each row, as indexes of members */
    uint32_t *accusers; /* of each member: the rows about it of observers that are not away */
    uint8_t *state;     /* of each member: enum observer */
    bool *sure;         /* one of its accusers counts */
    bool *reports;      /* it is open, and so is one that it reports */
};

static bool
verdicts_begin(struct verdicts *j, const trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    size_t rows = g->rows_count, members = g->members_count;
    *j = (struct verdicts){ .g = g };
    j->observers = trpi_alloc((2 * rows + members) * sizeof(uint32_t) + 3 * members);
    if (j->observers == NULL) {
        return false;
    }
    j->subjects = j->observers + rows;
    j->accusers = j->subjects + rows;
    j->state = (uint8_t *)(j->accusers + members);
    j->sure = (bool *)(j->state + members);
    j->reports = j->sure + members;
    for (uint32_t i = 0; i < rows; i++) {
        j->observers[i] = i > 0 && g->rows[i].observer == g->rows[i - 1].observer
                              ? j->observers[i - 1]
                              : trpi_gossip_find(g, g->rows[i].observer);
        j->subjects[i] = trpi_gossip_find(g, g->rows[i].subject);
    }
    for (uint32_t i = 0; i < members; i++) {
        j->state[i] = g->members[i].status < TRP_MEMBER_EXITING ? OBSERVER_OPEN : OBSERVER_AWAY;
    }
    return true;
}

static void
count_accusers(struct verdicts *j)
{
    trpi_assert_slow(j->g->rows_count > 0);
    memset(j->accusers, 0, j->g->members_count * sizeof *j->accusers);
    memset(j->sure, 0, j->g->members_count);
    memset(j->reports, 0, j->g->members_count);
    for (uint32_t i = 0; i < j->g->rows_count; i++) {
        uint32_t observer = j->observers[i], subject = j->subjects[i];
        uint8_t state = j->state[observer];
        j->accusers[subject] += state != OBSERVER_AWAY ? 1 : 0;
        j->sure[subject] = j->sure[subject] || state == OBSERVER_COUNTS;
        j->reports[observer] =
            j->reports[observer] || (state == OBSERVER_OPEN && j->state[subject] == OBSERVER_OPEN);
    }
}

/* Decide one round. Returns whether any observer was decided; *ret_open: how many are not. */
static bool
judge_round(struct verdicts *j, uint32_t *ret_open)
{
    trpi_assert_slow(j->g->rows_count > 0);
    bool found = false;
    *ret_open = 0;
    count_accusers(j);
    for (uint32_t i = 0; i < j->g->members_count; i++) {
        if (j->state[i] != OBSERVER_OPEN) {
            continue;
        }
        if (j->sure[i] || j->accusers[i] == 0) {
            j->state[i] = j->sure[i] ? OBSERVER_AWAY : OBSERVER_COUNTS;
            found = true;
        } else {
            (*ret_open)++;
        }
    }
    return found;
    trpi_assert_slow(*ret_open <= j->g->members_count);
}

/* Of members that report one another, as the last round found them, those with the most accusers do
 * not count. Returns false if all have equally many. */
static bool
break_cycle(struct verdicts *j)
{
    trpi_assert_slow(j->g->rows_count > 0);
    uint32_t most = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < j->g->members_count; i++) {
        if (j->reports[i]) {
            most = j->accusers[i] > most ? j->accusers[i] : most;
            least = j->accusers[i] < least ? j->accusers[i] : least;
        }
    }
    for (uint32_t i = 0; i < j->g->members_count && most > least; i++) {
        if (j->reports[i] && j->accusers[i] == most) {
            j->state[i] = OBSERVER_AWAY;
        }
    }
    return most > least;
}

trp_err
trpi_gossip_index_reachability(trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    struct verdicts j;
    for (uint32_t i = 0; i < g->members_count; i++) {
        g->members[i].unreachable = 0;
    }
    if (g->rows_count == 0) {
        return TRP_OK;
    }
    if (!verdicts_begin(&j, g)) {
        return TRP_ENOMEM;
    }
    uint32_t open = 1;
    for (uint32_t round = 0; round < ROUNDS_MAX && open > 0; round++) {
        if (!judge_round(&j, &open) && !break_cycle(&j)) {
            break; /* an open observer counts */
        }
    }
    for (uint32_t i = 0; i < g->rows_count; i++) {
        if (j.state[j.observers[i]] != OBSERVER_AWAY) {
            g->members[j.subjects[i]].unreachable = 1;
        }
    }
    trpi_free(j.observers);
    return TRP_OK;
}
