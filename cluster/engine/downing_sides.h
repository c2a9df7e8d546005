/* downing_sides.h - which members are on this node's side of a partition, and the votes of each. */
#ifndef TRPI_CLUSTER_DOWNING_SIDES_H
#define TRPI_CLUSTER_DOWNING_SIDES_H

#include "cluster/engine/downing.h"

/* The votes of one kind of members. Addresses are counted, since a restarted node has the vote of
 * its previous incarnation. */
typedef struct trpi_side {
    uint32_t votes;
    bool lowest;  /* it has the first voter in order */
    bool oldest;  /* it has the voter that has been Up for longest */
    bool referee; /* it has the address of the options */
} trpi_side;

typedef struct trpi_sides {
    trpi_side clear, broken, unsure, away;
    uint32_t away_members, broken_members;
} trpi_sides;

/* The member that is never marked Down for a broken link; the other end of the link is. */
typedef enum trpi_spare {
    TRPI_SPARE_NOBODY,
    TRPI_SPARE_OLDEST,
    TRPI_SPARE_REFEREE,
    TRPI_SPARE_SELF
} trpi_spare;

/* Fill marks (room for all members) and ret_sides. */
void trpi_sides_find(const trpi_downing_options *options, const trpi_downing_input *input,
                     trpi_spare spare, uint32_t *marks, trpi_sides *ret_sides);
/* Return the key of the oldest member if it is Exiting and has seen that, else 0. */
uint64_t trpi_sides_exiting_oldest(const trpi_downing_options *options, const trpi_gossip *g,
                                   const trpi_votes *votes, const trpi_seen *seen);
/* Count the members other than this node that are suspected but have seen the version. */
uint32_t trpi_sides_suspected(const trpi_downing_input *input);
/* Return whether members[index] is an end of a broken link within this side. */
bool trpi_sides_is_broken_end(const trpi_gossip *g, const uint32_t *marks, uint32_t index);
trpi_side trpi_side_sum(trpi_side a, trpi_side b);

/* downing-D16: what reports about a member are worth */
typedef enum trpi_accusation {
    TRPI_ACCUSATION_VOID, /* nobody who is known to be alive reports it */
    TRPI_ACCUSATION_OLD,  /* a new version will show who is alive */
    TRPI_ACCUSATION_STANDS
} trpi_accusation;

/* Return what the reports about members[index] are worth: they stand if one of them is this node's
 * own, or of an observer that has seen the version, and this node made one within old_ms. Observers
 * that are marked BROKEN do not count (marks NULL: none is). */
trpi_accusation trpi_sides_accusation(const trpi_downing_input *input, const uint32_t *marks,
                                      uint32_t index, uint64_t old_ms);

/* ---- downing_votes.c ------------------------------------------------------------------------- */

/* Return whether the side `mine` stays when `others` has all other votes. Must be true for at most
 * one of two disjoint parts of a cluster. *ret_why is static. */
typedef bool (*trpi_stays_fn)(const trpi_downing_options *options, trpi_side mine, trpi_side others,
                              const char **ret_why);

/* Which members count as the side: only clear ones; plus indirectly connected; plus unsure. */
typedef enum trpi_side_part { TRPI_PART_CLEAR, TRPI_PART_OURS, TRPI_PART_HOPED } trpi_side_part;

typedef struct trpi_votes_question {
    const trpi_downing_options *options;
    const trpi_gossip *gossip;
    const trpi_votes *votes;
    const uint32_t *marks;
    uint64_t exiting_oldest; /* downing-votes-D10 */
    trpi_stays_fn stays;
    bool by_age; /* the result depends on which member has been Up for longest */
} trpi_votes_question;

/* Return whether the part stays in every combination of the open votes. *ret_why: the reason in the
 * first combination in which it does not. */
bool trpi_votes_stay(const trpi_votes_question *q, trpi_side_part part, const char **ret_why);
/* Count the votes of each kind of members, open ones included; the counts of members become 0. */
void trpi_votes_count(const trpi_votes_question *q, trpi_sides *ret_sides);
/* Return the index of the oldest member that has a vote or may have one; living: that is not
 * Exiting or Down. TRPI_GOSSIP_NONE: there is none. */
uint32_t trpi_votes_oldest(const trpi_votes_question *q, bool living);

/* Write the members of one side, by marks, as "host:port, host:port and 3 more". Returns buffer. */
char *trpi_sides_text(const trpi_gossip *g, const uint32_t *marks, bool mine, char *buffer,
                      size_t bytes);

#endif
