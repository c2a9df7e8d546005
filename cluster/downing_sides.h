/* downing_sides.h - which members are on this node's side of a cut, and what each side counts. */
#ifndef TRPI_CLUSTER_DOWNING_SIDES_H
#define TRPI_CLUSTER_DOWNING_SIDES_H

#include "cluster/downing.h"

enum trpi_downing_mark {     /* per member */
    TRPI_MARK_CLEAR = 0,  /* on my side */
    TRPI_MARK_AWAY = 1,   /* unreachable and has not seen the version: down it */
    TRPI_MARK_UNSURE = 2, /* reachable, has not seen the version */
    TRPI_MARK_BROKEN = 3  /* on my side, but indirectly connected: down it, too */
};

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
/* Of the input only gossip and leaver: *ret_sides as `marks` say. */
void trpi_sides_count(const trpi_downing_options *options, const trpi_downing_input *input,
                      const uint32_t *marks, trpi_sides *ret_sides);
/* The oldest is the leaver of the input: *ret_sides as those count who have removed it already.
 * false: it is not, or nobody asks who is the oldest. */
bool trpi_sides_without_leaver(const trpi_downing_options *options, const trpi_downing_input *input,
                               trpi_spare spare, const uint32_t *marks, trpi_sides *ret_sides);
/* Key of the oldest when it is Exiting and knows it; else 0. */
uint64_t trpi_sides_leaver(const trpi_downing_options *options, const trpi_gossip *g,
                           const trpi_seen *seen);
/* Members, but for this node, that are under suspicion and have seen the version all the same. */
uint32_t trpi_sides_doubtful(const trpi_downing_input *input);
/* Is members[index] an end of a broken link of this side? */
bool trpi_sides_is_broken_end(const trpi_gossip *g, const uint32_t *marks, uint32_t index);
trpi_side trpi_side_sum(trpi_side a, trpi_side b);
/* "host:port, host:port and 3 more" of one side, by the marks. Returns buffer. */
char *trpi_sides_text(const trpi_gossip *g, const uint32_t *marks, bool mine, char *buffer,
                      size_t bytes);

#endif
