/* downing.h - split brain resolution: which members are marked Down when members stay unreachable.
 *
 * A strategy is a pure function of one view and runs on every member. Its decision says whether
 * this node acts (marks others Down, or stops itself) and gives the reason as text for operators.
 */
#ifndef TRPI_CLUSTER_DOWNING_H
#define TRPI_CLUSTER_DOWNING_H

#include "cluster/engine/gossip.h"
#include "cluster/engine/votes.h"

typedef enum trpi_downing_verdict {
    TRPI_DOWNING_WAIT = 0,         /* nothing to do now */
    TRPI_DOWNING_DOWN_MEMBERS = 1, /* mark decision.indexes Down */
    TRPI_DOWNING_DOWN_SELF = 2,    /* this node must stop; indexes: the marks of downing_sides.h */
    TRPI_DOWNING_ACQUIRE = 3,      /* ask for the lease, and decide again when it has answered */
    TRPI_DOWNING_DOWN_SIDE = 4,    /* mark decision.indexes Down: this node's whole side */
    TRPI_DOWNING_ROLL_CALL = 5     /* make a new version: a member that sees it is alive */
} trpi_downing_verdict;

typedef enum trpi_lease_state {
    TRPI_LEASE_UNASKED = 0,
    TRPI_LEASE_ASKED = 1,
    TRPI_LEASE_HELD = 2,
    TRPI_LEASE_REFUSED = 3
} trpi_lease_state;

/* Defaults, also of the keys of the configuration. */
#define TRPI_DOWNING_STRATEGY_DEFAULT "keep-majority"
#define TRPI_DOWNING_STABLE_AFTER_S_DEFAULT 20
#define TRPI_DOWNING_AUTO_DOWN_AFTER_S_DEFAULT 5
#define TRPI_DOWNING_LEASE_MINORITY_DELAY_S_DEFAULT 2
#define TRPI_DOWNING_LEASE_RELEASE_AFTER_S_DEFAULT 40
#define TRPI_DOWNING_LEASE_TIMEOUT_S_DEFAULT 5
#define TRPI_DOWNING_QUORUM_SIZE_DEFAULT 3
#define TRPI_DOWNING_LEAST_NODES_DEFAULT 1

typedef struct trpi_downing_options {
    uint32_t stable_after_ms;
    uint32_t unstable_after_ms; /* down-all-when-unstable, beyond stable_after_ms; 0: never */
    uint32_t auto_down_after_ms;
    /* from a removal that no strategy decided until what the member hosted may start elsewhere; 0:
     * stable_after_ms; TRPI_MEMBER_OFF: at once */
    uint32_t removal_margin_ms;
    uint32_t quorum_size;               /* static-quorum */
    uint32_t least_nodes;               /* keep-referee: smaller sides stop */
    uint32_t lease_minority_delay_ms;   /* lease: delay of the smaller side */
    uint32_t lease_release_after_ms;    /* at least trpi_downing_lease_hold_ms() */
    uint32_t lease_timeout_ms;          /* without an answer by then it is refused */
    bool keep_lone_oldest;              /* keep-oldest: even if it is alone (down-if-alone = off) */
    trpi_address referee;               /* keep-referee; port 0: none */
    char role[TRPI_ROLE_BYTES_MAX + 1]; /* only members with this role count; "": all */
} trpi_downing_options;

typedef struct trpi_downing_input {
    const trpi_gossip *gossip;
    const trpi_seen *seen;
    const trpi_votes *votes; /* of the same view, as far as this node knows them */
    uint64_t self;
    uint64_t stable_ms; /* time since members or reachability changed */
    /* how long reachability has been flapping with at least one member unreachable all that time;
     * 0: it is stable */
    uint64_t unstable_ms;
    uint64_t unsure_ms;             /* of unstable_ms, the time since decision.sure was last true */
    const uint64_t *unreachable_ms; /* per member: how long it has been unreachable */
    /* per member: time since it was last unreachable; 0: it is now; UINT64_MAX: not recently */
    const uint64_t *reachable_ms;
    uint64_t apart_ms;     /* time since no member was unreachable, pauses of this node included */
    uint64_t version_ms;   /* time since this node got the present version */
    uint64_t made_ms;      /* time since it last made one */
    uint64_t suspicion_ms; /* time since decision.suspected was last not 0; UINT64_MAX: never */
    /* key of the oldest member, when it has seen a view in which it is Exiting; else 0 */
    uint64_t exiting_oldest;
    trpi_lease_state lease;
} trpi_downing_input;

typedef struct trpi_downing_decision {
    trpi_downing_verdict verdict;
    uint32_t *indexes; /* of members to be marked Down; room for all, given by the caller */
    uint32_t indexes_count;
    uint32_t members, reachable, unreachable, indirectly_connected; /* what was counted */
    uint32_t suspected; /* suspected members that have seen the version */
    uint32_t open;      /* vote changes not known to be seen by all members */
    bool sure;          /* the stable members of this side suffice for it to stay (downing-D12) */
    char reason[192];
} trpi_downing_decision;

typedef struct trpi_downing_ops trpi_downing_ops;

/* "manual", "auto-down-after", "keep-majority", "static-quorum", "keep-oldest", "keep-referee",
 * "down-all", "lease"; NULL: no such strategy. */
const trpi_downing_ops *trpi_downing_find(const char *name);
const char *trpi_downing_name(const trpi_downing_ops *ops); /* static */
/* Decide. decision->indexes is given, everything else is 0. */
void trpi_downing_decide(const trpi_downing_ops *ops, const trpi_downing_options *options,
                         const trpi_downing_input *input, trpi_downing_decision *decision);

/* Return NULL, or the invariant that a decision breaks: downing-D13..D15 (downing_check.c). */
const char *trpi_downing_check(const trpi_downing_input *input,
                               const trpi_downing_decision *decision, trpi_check *check);

/* Return how long after no member was unreachable a side may ask for the lease: the longest time
 * that a side needs to become stable once. Later it stops instead of asking. */
uint64_t trpi_downing_lease_ask_ms(const trpi_downing_options *options);
/* Return for how long after a removal that is not settled nothing is started elsewhere. */
uint64_t trpi_downing_removal_margin_ms(const trpi_downing_options *options);
/* Return how long the owner keeps the lease after all members are reachable again. */
uint64_t trpi_downing_lease_hold_ms(const trpi_downing_options *options);

/* ---- advice ---------------------------------------------------------------------------------- */
/* For code that advises an operator, or must know the result before the decision (`why`, `status`,
 * `leave`, a node that others have removed). It counts the sides exactly as the decision does, and
 * applies none of its delays. */

/* Of one member. */
typedef enum trpi_downing_mark {
    TRPI_MARK_CLEAR = 0,  /* on the side in question */
    TRPI_MARK_AWAY = 1,   /* on another side: unreachable, has not seen the version */
    TRPI_MARK_UNSURE = 2, /* reachable, has not seen the version */
    TRPI_MARK_BROKEN = 3, /* on the side, but indirectly connected: marked Down, too */
    TRPI_MARK_GONE = 4    /* counts as removed */
} trpi_downing_mark;

typedef struct trpi_downing_count { /* votes, open ones included */
    uint32_t side, all;
    uint32_t open;   /* vote changes not known to be seen by all members */
    const char *why; /* "majority", ...; static */
} trpi_downing_count;

/* Return whether the members marked TRPI_MARK_CLEAR may go on without all others. The strategy
 * counts them as a side, in every combination of the open votes. For strategies that do not compare
 * sides (manual, auto-down-after, down-all) it is the majority, or the half with the lowest
 * address; for lease, the side that asks first. Reads gossip, votes and exiting_oldest of input.
 * Pure. */
bool trpi_downing_may_go_on(const trpi_downing_ops *ops, const trpi_downing_options *options,
                            const trpi_downing_input *input, const uint32_t *marks,
                            trpi_downing_count *ret_count);
/* Find the members whose crash would stop the rest, or leave no member, once members[leaving] has
 * left. Reads gossip, votes and exiting_oldest of input. */
typedef struct trpi_downing_next_crash {
    uint32_t votes; /* without the leaving member */
    uint32_t fatal; /* their number; manual, auto-down-after, lease: those that leave none */
    uint32_t first; /* index of one of them; TRPI_GOSSIP_NONE */
} trpi_downing_next_crash;
/* marks: room for all members. Costs one decision for each member. In a larger cluster it examines
 * the first TRPI_DOWNING_FORESEEN members, the oldest and the referee; the others are equivalent to
 * one of these. */
#define TRPI_DOWNING_FORESEEN 128u
trpi_downing_next_crash trpi_downing_next_crash_find(const trpi_downing_ops *ops,
                                                     const trpi_downing_options *options,
                                                     const trpi_downing_input *input,
                                                     uint32_t leaving, uint32_t *marks);
/* Return NULL, or downing-forecast-F7 if it is broken (downing_check.c). */
const char *trpi_downing_next_crash_check(const trpi_gossip *gossip, uint32_t leaving,
                                          const trpi_downing_next_crash *crash, trpi_check *check);
/* Return whether both sides of a split come to one decision by this strategy: not manual, not
 * auto-down-after. */
bool trpi_downing_resolves(const trpi_downing_ops *ops);
/* Return whether the strategy uses a lease. */
bool trpi_downing_asks_lease(const trpi_downing_ops *ops);

/* Return whether a member is unreachable for some observer and neither Exiting nor Down. */
bool trpi_downing_suspect(const trpi_gossip_member *m);

#endif
