/* gossip_word.c - whose word counts when it says that a member is unreachable (downing-D5).
 *
 * Why.     A node that hears nobody accuses all, and one that has crashed cannot take back what it
 *          said of a healthy one. So the word of an observer that is away itself does not count.
 *          All strategies, the leader's choice, convergence, events, `members` and `why` look at
 *          what comes of this, trpi_gossip_member.unreachable, and at nothing else.
 * Shape.   An observer counts when nobody whose word counts accuses it. Where that goes round in a
 *          circle (two sides, or a deaf node and all others, accuse one another), those whom most
 *          accuse are away; where all are accused by as many, all count.
 * Must hold.
 *   gossip-word-R1  It is a function of the view alone: who has the same view finds the same.
 *   gossip-word-R2  Who accuses nobody need not be looked at; who is accused by one that counts is
 *       unreachable.
 * Cost.    Nothing without rows; else a walk over them for each round, ROUNDS_MAX at most: what is
 *          open then counts.
 * Tests.   tests/unit/cluster/gossip_test.c, leader_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/engine/gossip.h"
#include "base/assert.h"

#define ROUNDS_MAX 64u

enum word { WORD_OPEN, WORD_COUNTS, WORD_AWAY };

struct judge {
    const trpi_gossip *g;
    uint32_t *observers, *subjects; /* of each row, as indexes of members */
    uint32_t *accusers;             /* of each member: rows of observers that are not away */
    uint8_t *word;                  /* of each member */
    bool *sure;                     /* one of its accusers counts */
};

static bool
judge_begin(struct judge *j, const trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    size_t rows = g->rows_count, members = g->members_count;
    *j = (struct judge){ .g = g };
    j->observers = trpi_alloc((2 * rows + members) * sizeof(uint32_t) + 2 * members);
    if (j->observers == NULL) {
        return false;
    }
    j->subjects = j->observers + rows;
    j->accusers = j->subjects + rows;
    j->word = (uint8_t *)(j->accusers + members);
    j->sure = (bool *)(j->word + members);
    for (uint32_t i = 0; i < rows; i++) {
        j->observers[i] = i > 0 && g->rows[i].observer == g->rows[i - 1].observer
                              ? j->observers[i - 1]
                              : trpi_gossip_find(g, g->rows[i].observer);
        j->subjects[i] = trpi_gossip_find(g, g->rows[i].subject);
    }
    for (uint32_t i = 0; i < members; i++) {
        j->word[i] = g->members[i].status < TRP_MEMBER_EXITING ? WORD_OPEN : WORD_AWAY;
    }
    return true;
}

static void
count_accusers(struct judge *j)
{
    trpi_assert_slow(j->g->rows_count > 0);
    memset(j->accusers, 0, j->g->members_count * sizeof *j->accusers);
    memset(j->sure, 0, j->g->members_count);
    for (uint32_t i = 0; i < j->g->rows_count; i++) {
        uint8_t word = j->word[j->observers[i]];
        j->accusers[j->subjects[i]] += word != WORD_AWAY ? 1 : 0;
        j->sure[j->subjects[i]] = j->sure[j->subjects[i]] || word == WORD_COUNTS;
    }
}

/* One round. true: something was found out. *ret_open: of how many nothing is. */
static bool
settle(struct judge *j, uint32_t *ret_open)
{
    trpi_assert_slow(j->g->rows_count > 0);
    bool found = false;
    *ret_open = 0;
    count_accusers(j);
    for (uint32_t i = 0; i < j->g->members_count; i++) {
        if (j->word[i] != WORD_OPEN) {
            continue;
        }
        if (j->sure[i] || j->accusers[i] == 0) {
            j->word[i] = j->sure[i] ? WORD_AWAY : WORD_COUNTS;
            found = true;
        } else {
            (*ret_open)++;
        }
    }
    return found;
    trpi_assert_slow(*ret_open <= j->g->members_count);
}

/* Of those that accuse one another: whom most accuse. false: as many accuse each of them. */
static bool
break_circle(struct judge *j)
{
    trpi_assert_slow(j->g->rows_count > 0);
    uint32_t most = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < j->g->members_count; i++) {
        if (j->word[i] == WORD_OPEN) {
            most = j->accusers[i] > most ? j->accusers[i] : most;
            least = j->accusers[i] < least ? j->accusers[i] : least;
        }
    }
    for (uint32_t i = 0; i < j->g->members_count && most > least; i++) {
        if (j->word[i] == WORD_OPEN && j->accusers[i] == most) {
            j->word[i] = WORD_AWAY;
        }
    }
    return most > least;
}

trp_err
trpi_gossip_judge(trpi_gossip *g)
{
    trpi_assert_slow(!g->frozen);
    struct judge j;
    for (uint32_t i = 0; i < g->members_count; i++) {
        g->members[i].unreachable = 0;
    }
    if (g->rows_count == 0) {
        return TRP_OK;
    }
    if (!judge_begin(&j, g)) {
        return TRP_ENOMEM;
    }
    uint32_t open = 1;
    for (uint32_t round = 0; round < ROUNDS_MAX && open > 0; round++) {
        if (!settle(&j, &open) && !break_circle(&j)) {
            break; /* what is open counts */
        }
    }
    for (uint32_t i = 0; i < g->rows_count; i++) {
        if (j.word[j.observers[i]] != WORD_AWAY) {
            g->members[j.subjects[i]].unreachable = 1;
        }
    }
    trpi_free(j.observers);
    return TRP_OK;
}
