/* votes.h - what one node knows of the changes of votes: which members became Up or Exiting, and
 * whether all have seen it.
 *
 * The side of a cut that stays is decided by votes, and both sides must count the same ones. A
 * change that a node has seen is *sure* when it knows that every member has seen it, too; until
 * then it is open, and its vote may be counted or not (downing_votes.c asks for both). This is no
 * part of a view, for it changes without a new version, as the seen set does.
 */
#ifndef TRPI_CLUSTER_VOTES_H
#define TRPI_CLUSTER_VOTES_H

#include "cluster/engine/gossip.h"

typedef struct trpi_votes { /* bit i: of members[i] of the view that they belong to */
    trpi_seen sure; /* its last change (it joined, was made Up, was made Exiting) is seen by all */
    trpi_seen out;  /* it was made Exiting; it may be Down since */
    trpi_seen told; /* what others are told: sure, but of a Down member only that it was Exiting */
} trpi_votes;

typedef enum trpi_vote {
    TRPI_VOTE_NO = 0,
    TRPI_VOTE_YES = 1,
    TRPI_VOTE_OPEN = 2 /* other sides may count it or not */
} trpi_vote;

/* Initialise for a view of which nothing is sure. Errors: TRP_ENOMEM. */
trp_err trpi_votes_init(trpi_votes *votes, const trpi_gossip *gossip);
void trpi_votes_fini(trpi_votes *votes); /* all-zero is fine */

/* Add to `votes` of a view what `from` says of an earlier one, which the view knows all of.
 * true: something has become sure. */
bool trpi_votes_join(trpi_votes *votes, const trpi_gossip *gossip, const trpi_votes *from,
                     const trpi_gossip *earlier);
/* The same from what another node has told of this very view, or of an earlier one.
 * Errors: TRP_ENOMEM: nothing is added. */
trp_err trpi_votes_hear(trpi_votes *votes, const trpi_gossip *gossip, const trpi_seen *told,
                        const trpi_gossip *earlier, bool *ret_news);
/* If all members that votes-N1 needs have seen the view, its changes are sure. Returns whether one
 * has become so. */
bool trpi_votes_learn(trpi_votes *votes, const trpi_gossip *gossip, const trpi_seen *seen);

/* Return whether members[index] has a vote or, when no member has one, counts as joined. */
trpi_vote trpi_votes_of(const trpi_votes *votes, uint32_t index);
/* Count the open changes of votes, of members made Up or Exiting. */
uint32_t trpi_votes_open(const trpi_votes *votes, const trpi_gossip *gossip);

/* Return NULL, or the invariant that is broken: votes-N3, votes-N4. */
const char *trpi_votes_check(const trpi_votes *votes, const trpi_gossip *gossip, trpi_check *check);

#endif
