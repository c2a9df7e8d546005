/* downing.h - who is to be marked Down when members stay unreachable.
 *
 * A strategy is a pure function of one view. It runs on every member; what it returns says whether
 * this node acts (marks others Down, or stops itself) and why, in words that an operator reads.
 */
#ifndef TRPI_CLUSTER_DOWNING_H
#define TRPI_CLUSTER_DOWNING_H

#include "cluster/engine/gossip.h"
#include "cluster/engine/votes.h"

typedef enum trpi_downing_verdict {
    TRPI_DOWNING_WAIT = 0,        /* nothing to do now */
    TRPI_DOWNING_DOWN_MEMBERS = 1, /* mark decision.indexes Down */
    TRPI_DOWNING_DOWN_SELF = 2,    /* this node must stop; indexes: the marks of downing_sides.h */
    TRPI_DOWNING_ACQUIRE = 3,      /* ask for the lease, and decide again when it has answered */
    TRPI_DOWNING_DOWN_SIDE = 4,    /* mark decision.indexes Down: this node's whole side */
    TRPI_DOWNING_ROLL_CALL = 5     /* make a new version: who sees it is still there */
} trpi_downing_verdict;

typedef enum trpi_lease_state {
    TRPI_LEASE_UNASKED = 0,
    TRPI_LEASE_ASKED = 1,
    TRPI_LEASE_HELD = 2,
    TRPI_LEASE_REFUSED = 3
} trpi_lease_state;

typedef struct trpi_downing_options {
    uint32_t stable_after_ms;       /* 20000 */
    uint32_t unstable_after_ms;     /* down-all-when-unstable, beyond stable_after_ms; 0: never */
    uint32_t auto_down_after_ms;    /* 5000 */
    uint32_t quorum_size;           /* static-quorum: 3 */
    uint32_t least_nodes;           /* keep-referee: its side stops with fewer; 1 */
    uint32_t lease_minority_delay_ms; /* lease: the smaller side asks later by so much; 2000 */
    uint32_t lease_release_after_ms;  /* 40000; the least: trpi_downing_lease_hold_ms */
    uint32_t lease_timeout_ms;        /* no answer by then is a refusal; 5000 */
    bool keep_lone_oldest;          /* keep-oldest: also when it is alone (down-if-alone = off) */
    trpi_address referee;           /* keep-referee; port 0: none */
    char role[TRPI_ROLE_BYTES_MAX + 1]; /* only these are counted; "": all */
} trpi_downing_options;

typedef struct trpi_downing_input {
    const trpi_gossip *gossip;
    const trpi_seen *seen;
    const trpi_votes *votes; /* what this node knows of them, for the same view */
    uint64_t self;
    uint64_t stable_ms;                /* since members or reachability changed */
    uint64_t unstable_ms; /* for how long reachability has kept changing, and somebody was missed
                           * all the time; 0: it rests */
    uint64_t unsure_ms;   /* of that, since decision.sure: for how long it has not been */
    const uint64_t *unreachable_ms;    /* per member: for how long it has been unreachable */
    const uint64_t *reachable_ms; /* since it was missed last; 0: it is; UINT64_MAX: not lately */
    uint64_t apart_ms; /* since nobody was unreachable, own pauses counted */
    uint64_t version_ms; /* since this node has the present version */
    uint64_t word_ms;    /* since it last made one: who has seen this one has been heard since */
    uint64_t doubt_ms;   /* since decision.doubtful last was not 0; UINT64_MAX: it never was */
    uint64_t leaver; /* key of the oldest, when it has seen a view in which it is Exiting; else 0 */
    trpi_lease_state lease;
} trpi_downing_input;

typedef struct trpi_downing_decision {
    trpi_downing_verdict verdict;
    uint32_t *indexes; /* of members to be marked Down; room for all, given by the caller */
    uint32_t indexes_count;
    uint32_t members, reachable, unreachable, indirectly_connected; /* what was counted */
    uint32_t doubtful; /* under suspicion, though they have seen the version */
    uint32_t open;     /* changes of votes that are not known to be seen by all */
    bool sure;         /* who is steady on this side is enough for it to stay (downing-D12) */
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

/* For so long, counted from when nobody was unreachable, the lease may be asked for: the most that
 * a side needs which comes to rest once. After that it stops instead. */
uint64_t trpi_downing_lease_ask_ms(const trpi_downing_options *options);
/* For so long a lease is kept when nobody is unreachable any more. */
uint64_t trpi_downing_lease_hold_ms(const trpi_downing_options *options);

/* ---- advice ---------------------------------------------------------------------------------- */
/* The internal interface for whatever advises an operator, or has to know before it happens (`why`,
 * `status`, `leave`, a node that others have removed): it counts the sides as the decision itself
 * does, and waits for nothing. */

typedef enum trpi_downing_mark { /* of one member */
    TRPI_MARK_CLEAR = 0,         /* on the side that is asked about */
    TRPI_MARK_AWAY = 1,          /* not on it: unreachable and has not seen the version */
    TRPI_MARK_UNSURE = 2,        /* reachable, has not seen the version */
    TRPI_MARK_BROKEN = 3,        /* on the side, but indirectly connected: given up, too */
    TRPI_MARK_GONE = 4           /* counts as if it was no member any more */
} trpi_downing_mark;

typedef struct trpi_downing_count { /* votes, with those that are open */
    uint32_t side, all;
    uint32_t open;   /* changes of votes that are not known to be seen by all */
    const char *why; /* "majority", ...; static */
} trpi_downing_count;

/* May the members that `marks` (of all members) call clear go on without all others? As the
 * strategy counts a side, in every combination of the open votes; where it has no answer (manual,
 * auto-down-after, down-all) more than half may, or the half with the lowest address; of lease it
 * is the side that asks first. Of input only gossip, votes and leaver count. Pure. */
bool trpi_downing_may_go_on(const trpi_downing_ops *ops, const trpi_downing_options *options,
                            const trpi_downing_input *input, const uint32_t *marks,
                            trpi_downing_count *ret_count);
/* Once members[leaver] has left: of whom is it that a crash would stop the rest, or leave nobody?
 * Of input gossip, votes and leaver count. */
typedef struct trpi_downing_next_crash {
    uint32_t votes; /* without the leaver */
    uint32_t fatal; /* whose crash would; manual, auto-down-after, lease: who leaves nobody */
    uint32_t first; /* index of one of them; TRPI_GOSSIP_NONE */
} trpi_downing_next_crash;
/* marks: room for all members. Costs a decision for each member; of more than
 * TRPI_DOWNING_FORESEEN the first so many are asked about, the oldest and the referee: the others
 * are like them. */
#define TRPI_DOWNING_FORESEEN 128u
trpi_downing_next_crash trpi_downing_next_crash_find(const trpi_downing_ops *ops,
                                                     const trpi_downing_options *options,
                                                     const trpi_downing_input *input,
                                                     uint32_t leaver, uint32_t *marks);
/* Is it the lease that decides? */
bool trpi_downing_asks_lease(const trpi_downing_ops *ops);

/* Is it under suspicion, and not on its way out? */
bool trpi_downing_suspect(const trpi_gossip_member *m);

#endif
