/* gossip.h - one shared view of the cluster: an immutable, reference-counted snapshot under a
 * vector clock.
 *
 * A snapshot is made by copying one, editing the copy and freezing it; after that it never
 * changes, so that it can be shared and its encoding kept. Two snapshots are merged into the least
 * one that has everything of both: commutative, associative, idempotent, and no status ever goes
 * back. The set of members that have *seen* a snapshot is a trpi_seen outside it, because it
 * changes without a new version.
 *
 * Nothing here reads a clock or a random source, takes a lock, or iterates in pointer order.
 */
#ifndef TRPI_CLUSTER_GOSSIP_H
#define TRPI_CLUSTER_GOSSIP_H

#include <troupe/cluster.h>

#include "base/check.h"
#include "base/table.h"
#include "cluster/engine/ident.h"
#include "cluster/engine/vclock.h"

/* A node is let in while there are fewer members than this besides those that it replaces. When
 * several contacts let nodes in at one time there may be more: the rest is room for them. */
#define TRPI_JOIN_MEMBERS_MAX TRP_CLUSTER_MEMBERS_MAX
#define TRPI_GOSSIP_MEMBERS_MAX (TRPI_JOIN_MEMBERS_MAX + 240u) /* of one view */
#define TRPI_GOSSIP_TOMBSTONES_MAX 20000u /* beyond, the oldest are dropped before their age */
#define TRPI_GOSSIP_ROWS_MAX 200000u
/* Likewise for different roles: a node that brings a new one is let in up to this number. */
#define TRPI_JOIN_ROLES_MAX 960u
#define TRPI_GOSSIP_ROLES_MAX (TRPI_JOIN_ROLES_MAX + 64u) /* of all members of one view */
/* A larger counter is refused when it is read, and none is counted beyond it: a member that sends
 * the largest number for another one must not make that member's own gossip unreadable. */
#define TRPI_GOSSIP_COUNTER_MAX (UINT64_MAX / 4) /* of clocks and observers */
#define TRPI_GOSSIP_UP_NUMBER_MAX 0x7fffffffu

typedef struct trpi_gossip_member {
    trpi_ident *ident;
    uint32_t up_number;  /* 0: never was Up */
    uint16_t status;     /* trp_member_status, in the order of a life: never WEAKLY_UP */
    uint8_t weakly_up;   /* of a Joining member; nothing else looks at it but trpi_member_status */
    uint8_t unreachable; /* computed by freeze from the rows */
    uint32_t up_since_s; /* by the leader's wall clock; 0: unknown, or never was Up */
    /* of a Down or Exiting one: 1: it handles nothing any more, for a strategy, the member itself
     * or an operator said so (gossip-merge-M6) */
    uint32_t settled;
} trpi_gossip_member;

typedef struct trpi_reach_row { /* observer says: subject is unreachable */
    uint64_t observer, subject;
} trpi_reach_row;

typedef struct trpi_reach_version { /* how often the observer changed its rows */
    uint64_t observer, version;
} trpi_reach_version;

typedef struct trpi_tombstone { /* removed; must not come back */
    uint64_t key;
    int64_t wall_ms;
    uint32_t status;  /* the last one: TRP_MEMBER_EXITING or TRP_MEMBER_DOWN */
    uint32_t settled; /* as of a member */
} trpi_tombstone;

typedef struct trpi_gossip {
    uint32_t refs;
    bool frozen;
    uint32_t members_count, rows_count, versions_count, tombstones_count, clock_count;
    uint32_t members_room, rows_room, versions_room, tombstones_room, clock_room;
    trpi_gossip_member *members;  /* by node identity: host bytes, port, uid */
    trpi_reach_row *rows;         /* by observer, subject; both are members */
    trpi_reach_version *versions; /* by observer; all are members */
    trpi_tombstone *tombstones;   /* by key */
    trpi_vclock_entry *clock;     /* by key; all are members */
    uint64_t digest;              /* of everything but the tombstones */
    /* computed by freeze; gossip_index.c */
    trpi_table slots;           /* of members, by key: index and 1 */
    uint64_t *deciders;         /* bit i: convergence waits for members[i] */
    uint32_t unreachable_count; /* of members */
    uint32_t blocking_count;    /* of them, those that keep the others from agreeing */
    uint64_t shape; /* hash of members and reachability; joiners only if all are; no leave */
    uint64_t reach; /* hash of the unreachable members that are settled; 0: none */
    uint32_t *ring; /* kept by trpi_gossip_ring(); NULL: not yet */
    uint32_t ring_count;
    const trpi_ident **kinds; /* kept by trpi_gossip_kinds(); NULL: not yet */
    uint32_t kinds_count;
    uint8_t *encoded; /* kept by gossip_codec.c; NULL: not yet */
    size_t encoded_bytes;
} trpi_gossip;

typedef struct trpi_seen { /* bit i: members[i] has seen this version */
    uint64_t *words;
    uint32_t words_count;
    uint32_t bits;
} trpi_seen;

/* ---- life ------------------------------------------------------------------------------------ */
/* Gives an unfrozen, empty snapshot. NULL: no memory. */
trpi_gossip *trpi_gossip_new(void);
/* Gives an unfrozen copy. NULL: no memory. */
trpi_gossip *trpi_gossip_copy(const trpi_gossip *from);
trpi_gossip *trpi_gossip_ref(trpi_gossip *gossip);
void trpi_gossip_unref(trpi_gossip *gossip); /* NULL is fine */

/* ---- editing an unfrozen snapshot; errors: TRP_ENOMEM, TRP_ELIMIT ---------------------------- */
/* A copy may hold twice as much as a view: freezing checks the result of the edits. */
/* Shares ident. Keeps the higher status when the member is there. */
trp_err trpi_gossip_add(trpi_gossip *gossip, trpi_ident *ident, uint32_t status,
                        uint32_t up_number);
/* Return the status that users see: WEAKLY_UP for a Joining member that is weakly up. */
uint32_t trpi_member_status(const trpi_gossip_member *member);
/* Status change by index; asserts that it is legal (trpi_member_transition_is_legal). */
void trpi_gossip_set_status(trpi_gossip *gossip, uint32_t index, uint32_t status);
/* Replace the rows of one observer and count its version up. subjects: keys in any order. */
trp_err trpi_gossip_observe(trpi_gossip *gossip, uint64_t observer, const uint64_t *subjects,
                            uint32_t subjects_count);
/* Remove members[index] from members, rows and clock; a tombstone stays. Later indexes move. */
trp_err trpi_gossip_remove(trpi_gossip *gossip, uint32_t index, int64_t wall_ms);
/* Forget the tombstones for which is_old(arg, index) is true. Returns how many. */
uint32_t trpi_gossip_prune(trpi_gossip *gossip, bool (*is_old)(const void *arg, uint32_t index),
                           const void *arg);
trp_err trpi_gossip_count_up(trpi_gossip *gossip, uint64_t key); /* vector clock */
/* Raw parts, for the decoder and tests. */
trp_err trpi_gossip_add_row(trpi_gossip *gossip, uint64_t observer, uint64_t subject);
trp_err trpi_gossip_add_version(trpi_gossip *gossip, uint64_t observer, uint64_t version);
trp_err trpi_gossip_add_tombstone(trpi_gossip *gossip, trpi_tombstone tombstone);
trp_err trpi_gossip_add_clock(trpi_gossip *gossip, uint64_t key, uint64_t counter);
/* Sort, drop what names no member, compute the digest. Errors: TRP_ENOMEM (the copy stays
 * unfrozen). */
trp_err trpi_gossip_freeze(trpi_gossip *gossip);
/* For freeze only, in this order; gossip_index.c, gossip_reachability.c. Errors: TRP_ENOMEM. */
trp_err trpi_gossip_index_keys(trpi_gossip *gossip);
trp_err trpi_gossip_index_reachability(trpi_gossip *gossip);
trp_err trpi_gossip_index_state(trpi_gossip *gossip);
/* Compute what freeze keeps as `digest`. */
uint64_t trpi_gossip_digest(const trpi_gossip *gossip);

/* ---- two frozen snapshots -------------------------------------------------------------------- */
trpi_vclock_order trpi_gossip_compare(const trpi_gossip *a, const trpi_gossip *b);
/* Gives *ret_merged, which is a or b itself (a new reference) when that knows everything already.
 * Errors: TRP_ENOMEM, TRP_ELIMIT. */
trp_err trpi_gossip_merge(trpi_gossip *a, trpi_gossip *b, trpi_gossip **ret_merged);

/* ---- looking; frozen snapshots only ---------------------------------------------------------- */
#define TRPI_GOSSIP_NONE UINT32_MAX
uint32_t trpi_gossip_find(const trpi_gossip *gossip, uint64_t key); /* index or TRPI_GOSSIP_NONE */
/* The first member in order that does not stand before this host and port; members_count: none.
 * Also of a copy in which no member was added or removed. */
uint32_t trpi_gossip_lower(const trpi_gossip *gossip, const trpi_address *address);
/* Members that are not Down, by ring_hash and key; gives *ret_ring, kept in the snapshot, and their
 * count. Errors: TRP_ENOMEM. */
trp_err trpi_gossip_ring(const trpi_gossip *gossip, const uint32_t **ret_ring, uint32_t *ret_count);
/* Of members with the same roles the first; gives *ret_kinds, in the order of members, kept in the
 * snapshot, and their count. Errors: TRP_ENOMEM. */
trp_err trpi_gossip_kinds(const trpi_gossip *gossip, const trpi_ident *const **ret_kinds,
                          uint32_t *ret_count);
/* Return the member of an address that is not Down; else a Down one; any uid if id->uid is 0. */
uint32_t trpi_gossip_find_address(const trpi_gossip *gossip, const trpi_node_id *id);
const trpi_tombstone *trpi_gossip_tombstone(const trpi_gossip *gossip, uint64_t key);
/* Return whether an observer that counts (gossip_reachability.c) reports it unreachable. */
bool trpi_gossip_is_unreachable(const trpi_gossip *gossip, uint32_t index);
bool trpi_gossip_observes(const trpi_gossip *gossip, uint64_t observer, uint64_t subject);
/* Everything that keeps members from agreeing; counts only, 0 and 0 is convergence (GOSSIP-04). */
typedef struct trpi_gossip_blockers {
    uint32_t unseen;      /* members it waits for that have not seen the version */
    uint32_t unreachable; /* unreachable members that are neither Down nor Exiting */
} trpi_gossip_blockers;
trpi_gossip_blockers trpi_gossip_blocked_by(const trpi_gossip *gossip, const trpi_seen *seen);
/* Return whether convergence waits until members[index] has seen the version: a member that is Up
 * or Leaving; a joiner at the address of a Down one that had been Up, for it votes in its place; if
 * no member is Up or Leaving, each joiner. */
bool trpi_gossip_awaits(const trpi_gossip *gossip, uint32_t index);
/* First reachable member in order that is Up or Leaving; else Joining; else Exiting. `self` counts
 * as reachable. role: among those that have it; NULL: all. TRPI_GOSSIP_NONE: none (MEMB-14,
 * -16). */
uint32_t trpi_gossip_leader(const trpi_gossip *gossip, uint64_t self, const char *role);
/* Return the Up or Leaving member with the lowest up-number, ties by order (MEMB-24). role as
 * above. */
uint32_t trpi_gossip_oldest(const trpi_gossip *gossip, const char *role);
uint32_t trpi_gossip_up_number_max(const trpi_gossip *gossip);

/* MEMB-23 and WeaklyUp, plus Joining and WeaklyUp -> Leaving: a node may leave before it is Up. */
bool trpi_member_transition_is_legal(uint32_t from, uint32_t to);

/* ---- seen ------------------------------------------------------------------------------------ */
trp_err trpi_seen_init(trpi_seen *seen, uint32_t bits); /* all clear; TRP_ENOMEM */
void trpi_seen_fini(trpi_seen *seen);
bool trpi_seen_get(const trpi_seen *seen, uint32_t index);
void trpi_seen_set(trpi_seen *seen, uint32_t index);
/* OR b into a (same bits); true: a changed. */
bool trpi_seen_join(trpi_seen *a, const trpi_seen *b);
bool trpi_seen_covers(const trpi_seen *a, const trpi_seen *b); /* a has all of b */
uint32_t trpi_seen_count(const trpi_seen *seen);

/* ---- invariants (gossip_check.c): NULL, or what is broken in check->text --------------------- */
/* gossip-G1..G6. Of a frozen snapshot. */
const char *trpi_gossip_check(const trpi_gossip *gossip, trpi_check *check);
/* gossip-G7 */
const char *trpi_seen_check(const trpi_seen *seen, const trpi_gossip *gossip, trpi_check *check);
/* gossip-merge-M2..M5, membership-E1: may a node that had `older` have `newer` now? */
const char *trpi_gossip_check_step(const trpi_gossip *older, const trpi_gossip *newer,
                                   trpi_check *check);

#endif
