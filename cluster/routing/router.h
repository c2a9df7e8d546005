/* router.h - which routees a cluster-aware router should have, and on which nodes. Pure: no clock,
 * no thread, no message. router.c is the shell.
 *
 * A router reads the whole view of its node again after each change, and compares the present
 * routees with the wanted ones: it cannot miss an order of events. */
#ifndef TRPI_CLUSTER_ROUTER_H
#define TRPI_CLUSTER_ROUTER_H

#include <stdbool.h>

#include <troupe/cluster.h>
#include <troupe/router.h>

/* From a routee that ended, was refused or was not there to the next try on its node; doubled with
 * each failure, forgotten after a while without. */
#define TRPI_ROUTER_RETRY_MS 500u
#define TRPI_ROUTER_RETRY_MS_MAX 10000u
#define TRPI_ROUTER_FORGET_MS 60000u

/* ---- how many -------------------------------------------------------------------------------- */

typedef struct trpi_router_share { /* of one node */
    uint32_t have;
    uint32_t most; /* it may have */
    uint32_t want; /* it should have: the result */
} trpi_router_share;
/* Distribute `total` routees: the node with the fewest gets the next one, and where there are too
 * many the node with the most gives one up; of equal nodes the first in order gets one first and
 * gives one up last. No routee is moved without need. (CROUTE-06, -12) */
void trpi_router_spread(trpi_router_share *shares, size_t count, uint32_t total);

/* ---- which ----------------------------------------------------------------------------------- */

typedef struct trpi_router_rules {
    uint32_t total, per_node;
    bool finds;       /* routees are found on the nodes, not made there */
    bool local;       /* the router's own node counts */
    const char *role; /* borrowed; NULL: all nodes */
} trpi_router_rules;

/* Of a node. */
typedef enum trpi_router_standing {
    TRPI_ROUTER_OUT = 0, /* not Up or WeaklyUp, leaving, without the
                                                            role: no routees, for good */
    TRPI_ROUTER_CUT = 1, /* unreachable: its routees wait */
    TRPI_ROUTER_IN = 2
} trpi_router_standing;
trpi_router_standing trpi_router_standing_of(const trpi_router_rules *rules,
                                             const trp_member *member);

typedef enum trpi_router_action_kind {
    TRPI_ROUTER_PUT = 1,     /* ref into the table */
    TRPI_ROUTER_TAKE = 2,    /* ref out of it; it may come back */
    TRPI_ROUTER_DISMISS = 3, /* ref out of it, if it is there, for good */
    TRPI_ROUTER_MAKE = 4,    /* a routee on a node: trpi_router_made() or _failed() at once */
    TRPI_ROUTER_FIND = 5 /* look up the one on a node: trpi_router_found() or _missing() later */
} trpi_router_action_kind;

typedef struct trpi_router_action {
    trpi_router_action_kind kind;
    uint32_t member; /* PUT, MAKE, FIND: index in the view */
    uint32_t number; /* FIND: the number that the answer names */
    uint64_t uid;    /* of the node */
    trp_ref ref;
} trpi_router_action;

typedef struct trpi_router_routee {
    uint64_t uid; /* of its node */
    trp_ref ref;
    bool active; /* in the table */
} trpi_router_routee;

typedef struct trpi_router_core trpi_router_core;

/* Borrows rules. Errors: TRP_ENOMEM. */
trp_err trpi_router_core_new(const trpi_router_rules *rules, trpi_router_core **ret_core);
void trpi_router_core_free(trpi_router_core *core); /* NULL is fine */
/* Hold all routees back from the next step on, or (false, as at first) follow the view. */
void trpi_router_hold(trpi_router_core *core, bool held);
/* Compare with this view, in the order of members; *ret_actions until the next call. Routees of PUT
 * and TAKE actions are in or out of the table from now on. Errors: TRP_ENOMEM: nothing has
 * changed. */
trp_err trpi_router_step(trpi_router_core *core, uint64_t now_ms, const trp_member *members,
                         size_t count, const trpi_router_action **ret_actions,
                         uint32_t *ret_actions_count);
/* When to step again although nothing has changed; UINT64_MAX: never. */
uint64_t trpi_router_wake_ms(const trpi_router_core *core);

/* The answer to MAKE: it is in the table from now on. */
void trpi_router_made(trpi_router_core *core, uint64_t uid, trp_ref ref);
void trpi_router_failed(trpi_router_core *core, uint64_t now_ms, uint64_t uid);
/* The answer to FIND. false: it is too late, and not used. The next step puts it into the table. */
bool trpi_router_found(trpi_router_core *core, uint32_t number, trp_ref ref);
void trpi_router_missing(trpi_router_core *core, uint64_t now_ms, uint32_t number);
/* The routee has ended; its place is free again after a while. false: it was no routee. */
bool trpi_router_ended(trpi_router_core *core, uint64_t now_ms, trp_ref ref);
/* Forget all FIND actions that are not answered yet. */
void trpi_router_forget_finds(trpi_router_core *core);
const trpi_router_routee *trpi_router_routees(const trpi_router_core *core, uint32_t *ret_count);

#endif
