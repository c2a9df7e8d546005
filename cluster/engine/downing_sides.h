/* downing_sides.h - which members are on this node's side of a cut, and what each side counts. */
#ifndef TRPI_CLUSTER_DOWNING_SIDES_H
#define TRPI_CLUSTER_DOWNING_SIDES_H

#include "cluster/engine/downing.h"

/* What one kind of members has. Addresses are counted, because a restarted node votes in its
 * predecessor's place. */
typedef struct trpi_side {
    uint32_t votes;
    bool lowest;  /* the first voter in order is among them */
    bool oldest;  /* the voter that has been Up for longest is */
    bool referee; /* the address of the options is */
} trpi_side;

typedef struct trpi_sides {
    trpi_side clear, broken, unsure, away;
    uint32_t away_members, broken_members;
} trpi_sides;

/* Of a broken link of this member it is always the other end that is given up. */
typedef enum trpi_spare {
    TRPI_SPARE_NOBODY,
    TRPI_SPARE_OLDEST,
    TRPI_SPARE_REFEREE,
    TRPI_SPARE_SELF
} trpi_spare;

/* Fill marks (room for all members) and ret_sides. */
void trpi_sides_find(const trpi_downing_options *options, const trpi_downing_input *input,
                     trpi_spare spare, uint32_t *marks, trpi_sides *ret_sides);
/* Key of the oldest when it is Exiting and knows it; else 0. */
uint64_t trpi_sides_leaver(const trpi_downing_options *options, const trpi_gossip *g,
                           const trpi_votes *votes, const trpi_seen *seen);
/* Members, but for this node, that are under suspicion and have seen the version all the same. */
uint32_t trpi_sides_doubtful(const trpi_downing_input *input);
/* Is members[index] an end of a broken link of this side? */
bool trpi_sides_is_broken_end(const trpi_gossip *g, const uint32_t *marks, uint32_t index);
trpi_side trpi_side_sum(trpi_side a, trpi_side b);

/* ---- downing_votes.c ------------------------------------------------------------------------- */

/* Does `mine` stay, when `others` is all the rest? Of any two parts of one cluster at most one may
 * get yes. *ret_why is static. */
typedef bool (*trpi_stays_fn)(const trpi_downing_options *options, trpi_side mine, trpi_side others,
                              const char **ret_why);

/* Which part of a side is meant: the clear members, with the indirectly connected, and with
 * the unsure. */
typedef enum trpi_side_part { TRPI_PART_CLEAR, TRPI_PART_OURS, TRPI_PART_HOPED } trpi_side_part;

typedef struct trpi_votes_question {
    const trpi_downing_options *options;
    const trpi_gossip *gossip;
    const trpi_votes *votes;
    const uint32_t *marks;
    uint64_t leaver; /* downing-votes-D10 */
    trpi_stays_fn stays;
    bool by_age; /* it matters who has been Up for longest */
} trpi_votes_question;

/* In every combination of the open votes? *ret_why: of the first in which it does not. */
bool trpi_votes_stay(const trpi_votes_question *q, trpi_side_part part, const char **ret_why);
/* What each kind of members has, with all open votes; fills the counts of members with 0. */
void trpi_votes_count(const trpi_votes_question *q, trpi_sides *ret_sides);
/* Of those that have a vote, or may have one; living: not Exiting or Down. TRPI_GOSSIP_NONE. */
uint32_t trpi_votes_oldest(const trpi_votes_question *q, bool living);

/* "host:port, host:port and 3 more" of one side, by the marks. Returns buffer. */
char *trpi_sides_text(const trpi_gossip *g, const uint32_t *marks, bool mine, char *buffer,
                      size_t bytes);

#endif
