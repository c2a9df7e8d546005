/* exclusive.h - when a node suspends what must not live twice in a cluster, and when it goes on.
 *
 * Others may start elsewhere what this node hosts as soon as they have removed it. So it must stop
 * handling before that can be, on what it knows alone: its own view, and whether it stood still.
 */
#ifndef TRPI_CLUSTER_EXCLUSIVE_H
#define TRPI_CLUSTER_EXCLUSIVE_H

#include "cluster/engine/membership.h"

#define TRPI_EXCLUSIVE_WHY_BYTES 256u

typedef enum trpi_exclusive_cause {
    TRPI_EXCLUSIVE_NONE = 0,
    TRPI_EXCLUSIVE_LOSES = 1,   /* the strategy would have this node stop */
    TRPI_EXCLUSIVE_LEASE = 2,   /* members are unreachable, and it does not hold the lease */
    TRPI_EXCLUSIVE_ACCUSED = 3, /* a member reports this node as unreachable */
    TRPI_EXCLUSIVE_STOOD = 4,   /* it stood still */
    TRPI_EXCLUSIVE_ENDED = 5    /* it is no member any more */
} trpi_exclusive_cause;

typedef enum trpi_exclusive_order {
    TRPI_EXCLUSIVE_AS_IT_IS = 0,
    TRPI_EXCLUSIVE_SUSPEND = 1,
    TRPI_EXCLUSIVE_ROLL_CALL = 2, /* step the engine with TRPI_MEMBER_ROLL_CALL */
    TRPI_EXCLUSIVE_RESUME = 3
} trpi_exclusive_order;

typedef struct trpi_exclusive { /* zero at first */
    trpi_exclusive_cause doubt; /* the present reason to suspend, if it lasts */
    uint64_t doubt_ms;          /* since when there has been one; 0: there is none */
    uint64_t calm_ms;           /* since when there is none any more; 0: there is one */
    bool suspended;
    trpi_exclusive_cause cause; /* why it is suspended */
    uint64_t since_ms;          /* since when */
    uint64_t wanted;            /* own counter in the version to converge on; 0: not made yet */
    uint64_t closings;          /* of the guard, as known */
    uint64_t looked_ms, looked; /* when the view was looked at, and its digest */
    trpi_exclusive_cause found; /* then */
} trpi_exclusive;

typedef struct trpi_exclusive_now {
    uint64_t mono_ms;
    bool waking;       /* trpi_member_now */
    uint64_t closings; /* how often the guard has closed itself because the node stood still */
} trpi_exclusive_now;

/* Decide with the engine's present view. Pure but for *exclusive; to be called after each step of
 * the engine, and when trpi_exclusive_wake_ms() says so. */
trpi_exclusive_order trpi_exclusive_step(trpi_exclusive *exclusive, const trpi_member_core *core,
                                         trpi_exclusive_now now);
/* When it is to be asked again at the latest; UINT64_MAX: after the next step. */
uint64_t trpi_exclusive_wake_ms(const trpi_exclusive *exclusive, const trpi_member_core *core);
/* Write why it is suspended, and what ends that; returns buffer. */
const char *trpi_exclusive_cause_text(trpi_exclusive_cause cause); /* static */
const char *trpi_exclusive_awaits_text(const trpi_exclusive *exclusive,
                                       const trpi_member_core *core); /* static */

/* Return TRP_OK, or TRP_ESTATE and why a node with these times cannot promise that: the time until
 * it suspends would end after the others have taken over. */
trp_err trpi_exclusive_check(uint32_t stable_after_ms, uint32_t acceptable_pause_ms,
                             uint32_t heartbeat_interval_ms, char *why, size_t why_bytes);

#endif
