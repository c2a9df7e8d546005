/* router_core.c - which routees a cluster-aware router should have.
 *
 * Shape.   view -> standing of each node -> routees of nodes that are out are dismissed, of
 *          unreachable nodes taken out of the table -> spread -> waiting routees are put back,
 *          missing ones made or looked up, surplus ones dismissed
 * Must hold.
 *   router-core-R1  Never more than `total` routees on nodes that are in, and `per_node` on one of
 *       them.
 *   router-core-R2  Each routee in the table lives on a node that is in.
 *   router-core-R3  A dismissed routee is never put back; one that was taken out is, unless there
 *       are enough others when its node is back.
 *   router-core-R4  A node where a routee failed gets no new one before its retry time; the others
 *       have its share meanwhile.
 *   router-core-R6  A drained node gets no new routee; those that it has stay.
 *   router-core-R5  While the router is held, every node counts as unreachable, this one too: no
 *       routee is in the table.
 * Limits.  TRP_ROUTEES_MAX.
 * Cost.    O(n log n) in members and routees for each step.
 * Tests.   tests/unit/cluster/router_core_test.c
 * Sources. CROUTE-02, -06 to -10, -12; Akka 2.2.5, ClusterRouterActor; decision 124.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "cluster/engine/membership.h"
#include "cluster/routing/router.h"

typedef struct router_node {
    uint64_t uid;
    uint32_t member; /* index in the view */
    trpi_router_standing standing;
    bool drained;    /* router-core-R6 */
    uint32_t lookup; /* number of the one under way; 0: none */
    uint32_t failures;
    uint64_t failed_ms, retry_ms;
    uint32_t kept; /* in a step: routees that stay */
} router_node;

struct trpi_router_core {
    trpi_router_rules rules;
    router_node *nodes; /* by uid */
    size_t nodes_count;
    trpi_router_routee *routees; /* the oldest first */
    uint32_t routees_count, routees_room;
    trpi_router_action *actions;
    uint32_t actions_count, actions_room;
    uint32_t numbers; /* of lookups so far */
    uint64_t wake_ms;
    bool held; /* router-core-R5 */
};

trpi_router_standing
trpi_router_standing_of(const trpi_router_rules *rules, const trp_member *member)
{
    if ((member->status != TRP_MEMBER_UP && member->status != TRP_MEMBER_WEAKLY_UP) ||
        (member->self != 0 && !rules->local) ||
        (rules->role != NULL && !trp_member_has_role(member, rules->role))) {
        return TRPI_ROUTER_OUT;
    }
    return member->reachable != 0 || member->self != 0 ? TRPI_ROUTER_IN : TRPI_ROUTER_CUT;
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_router_core_new(const trpi_router_rules *rules, trpi_router_core **ret_core)
{
    trpi_router_core *core = trpi_alloc(sizeof *core);

    trpi_assert(rules->total > 0 && rules->total <= TRP_ROUTEES_MAX);
    trpi_assert(rules->per_node > 0 && (!rules->finds || rules->per_node == 1));
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    core->rules = *rules;
    core->wake_ms = UINT64_MAX;
    *ret_core = core;
    return TRP_OK;
}

void
trpi_router_core_free(trpi_router_core *core)
{
    if (core == NULL) {
        return;
    }
    trpi_free(core->nodes);
    trpi_free(core->routees);
    trpi_free(core->actions);
    trpi_free(core);
}

void
trpi_router_hold(trpi_router_core *core, bool held)
{
    core->held = held;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int
nodes_compare(const void *a, const void *b)
{
    const router_node *x = a, *y = b;

    return x->uid < y->uid ? -1 : x->uid > y->uid;
}

static router_node *
node_find(const trpi_router_core *core, uint64_t uid)
{
    const router_node key = { .uid = uid };

    return core->nodes_count == 0 ? NULL
                                  : bsearch(&key, core->nodes, core->nodes_count,
                                            sizeof core->nodes[0], nodes_compare);
}

static router_node *
node_of_lookup(trpi_router_core *core, uint32_t number)
{
    for (size_t i = 0; i < core->nodes_count; i++) {
        if (core->nodes[i].lookup == number) {
            return &core->nodes[i];
        }
    }
    return NULL;
}

/* Take the nodes of this view, and keep what was known about them. */
static trp_err
nodes_renew(trpi_router_core *core, const trp_member *members, size_t count)
{
    router_node *fresh = trpi_alloc((count + 1) * sizeof *fresh);

    if (fresh == NULL) {
        return TRP_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const router_node *before = node_find(core, members[i].uid);

        if (before != NULL) {
            fresh[i] = *before;
        }
        fresh[i].uid = members[i].uid;
        fresh[i].member = (uint32_t)i;
        fresh[i].standing = trpi_router_standing_of(&core->rules, &members[i]);
        if (core->held && fresh[i].standing == TRPI_ROUTER_IN) {
            fresh[i].standing = TRPI_ROUTER_CUT; /* router-core-R5 */
        }
        fresh[i].drained = trpi_member_has_drained(&members[i]);
        fresh[i].kept = 0;
    }
    qsort(fresh, count, sizeof *fresh, nodes_compare);
    trpi_free(core->nodes);
    core->nodes = fresh;
    core->nodes_count = count;
    return TRP_OK;
}

/* router-core-R4 */
static void
node_failed(router_node *node, uint64_t now_ms)
{
    uint64_t pause_ms = TRPI_ROUTER_RETRY_MS;

    if (now_ms - node->failed_ms > TRPI_ROUTER_FORGET_MS) {
        node->failures = 0;
    }
    for (uint32_t i = 0; i < node->failures && pause_ms < TRPI_ROUTER_RETRY_MS_MAX; i++) {
        pause_ms *= 2;
    }
    node->failures++;
    node->failed_ms = now_ms;
    node->retry_ms =
        now_ms + (pause_ms < TRPI_ROUTER_RETRY_MS_MAX ? pause_ms : TRPI_ROUTER_RETRY_MS_MAX);
}

static trpi_router_standing
standing_of_routee(const trpi_router_core *core, const trpi_router_routee *routee,
                   router_node **ret_node)
{
    *ret_node = node_find(core, routee->uid);
    return *ret_node == NULL ? TRPI_ROUTER_OUT : (*ret_node)->standing;
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Give the shares in the order of the view; a node that is not in has none. */
static trp_err
shares_make(trpi_router_core *core, uint64_t now_ms, trpi_router_share **ret_shares)
{
    trpi_router_share *shares = trpi_alloc((core->nodes_count + 1) * sizeof *shares);

    if (shares == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < core->routees_count; i++) {
        router_node *node;

        if (standing_of_routee(core, &core->routees[i], &node) == TRPI_ROUTER_IN) {
            shares[node->member].have++;
        }
    }
    core->wake_ms = UINT64_MAX;
    for (size_t i = 0; i < core->nodes_count; i++) {
        const router_node *node = &core->nodes[i];
        trpi_router_share *share = &shares[node->member];

        if (node->standing != TRPI_ROUTER_IN) {
            continue;
        }
        share->have += node->lookup != 0 ? 1 : 0;
        share->most = core->rules.per_node;
        if (node->drained && share->have < share->most) { /* router-core-R6 */
            share->most = share->have;
        } else if (node->retry_ms > now_ms && share->have < share->most) { /* router-core-R4 */
            share->most = share->have;
            core->wake_ms = node->retry_ms < core->wake_ms ? node->retry_ms : core->wake_ms;
        }
    }
    trpi_router_spread(shares, core->nodes_count, core->rules.total); /* router-core-R1 */
    *ret_shares = shares;
    return TRP_OK;
}

/* Reserve room for the most actions that a step can lead to, so that it cannot fail half-way. */
static trp_err
room_make(trpi_router_core *core, const trpi_router_share *shares)
{
    uint64_t more = 0;
    trp_err err;

    for (size_t i = 0; i < core->nodes_count; i++) {
        more += shares[i].want > shares[i].have ? shares[i].want - shares[i].have : 0;
        more += core->nodes[i].lookup != 0 ? 1 : 0;
    }
    more += core->routees_count;
    trpi_assert(more <= UINT32_MAX);
    err = trpi_array_reserve(&core->routees, 0, &core->routees_room, sizeof *core->routees,
                             (uint32_t)more, TRPI_ARRAY_NO_LIMIT);
    return err != TRP_OK
               ? err
               : trpi_array_reserve(&core->actions, 0, &core->actions_room, sizeof *core->actions,
                                    (uint32_t)more, TRPI_ARRAY_NO_LIMIT);
}

/* ---- step ------------------------------------------------------------------------------------ */

static void
action_add(trpi_router_core *core, trpi_router_action action)
{
    trpi_assert(core->actions_count < core->actions_room);
    core->actions[core->actions_count++] = action;
}

static void
act_on(trpi_router_core *core, trpi_router_action_kind kind, const trpi_router_routee *routee,
       uint32_t member)
{
    action_add(core, (trpi_router_action){ kind, member, 0, routee->uid, routee->ref });
}

/* Keep as many routees as their node's share allows, in the table or waiting; the oldest come
 * first. A dismissed routee has no node from then on. */
static void
routees_keep(trpi_router_core *core, const trpi_router_share *shares, bool active)
{
    for (uint32_t i = 0; i < core->routees_count; i++) {
        trpi_router_routee *routee = &core->routees[i];
        router_node *node;
        trpi_router_standing standing = standing_of_routee(core, routee, &node);

        if (routee->active != active || standing != TRPI_ROUTER_IN) {
            continue;
        }
        if (node->kept < shares[node->member].want) {
            node->kept++;
        } else {
            routee->uid = 0;
        }
    }
}

static void
routees_settle(trpi_router_core *core)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < core->routees_count; i++) {
        trpi_router_routee routee = core->routees[i];
        router_node *node;
        trpi_router_standing standing = standing_of_routee(core, &routee, &node);

        if (standing == TRPI_ROUTER_OUT) {
            act_on(core, TRPI_ROUTER_DISMISS, &routee, 0); /* router-core-R3 */
            continue;
        }
        if (routee.active != (standing == TRPI_ROUTER_IN)) { /* router-core-R2 */
            routee.active = !routee.active;
            act_on(core, routee.active ? TRPI_ROUTER_PUT : TRPI_ROUTER_TAKE, &routee, node->member);
        }
        core->routees[left++] = routee;
    }
    core->routees_count = left;
}

static void
routees_add(trpi_router_core *core, const trpi_router_share *shares)
{
    for (size_t i = 0; i < core->nodes_count; i++) {
        router_node *node = &core->nodes[i];
        trpi_router_action action = { .member = node->member, .uid = node->uid };
        uint32_t have = node->kept + (node->lookup != 0 ? 1 : 0);

        action.kind = core->rules.finds ? TRPI_ROUTER_FIND : TRPI_ROUTER_MAKE;
        for (; have < shares[node->member].want; have++) {
            if (core->rules.finds) {
                core->numbers = core->numbers == UINT32_MAX ? 1 : core->numbers + 1;
                action.number = node->lookup = core->numbers;
            }
            action_add(core, action);
        }
    }
}

trp_err
trpi_router_step(trpi_router_core *core, uint64_t now_ms, const trp_member *members, size_t count,
                 const trpi_router_action **ret_actions, uint32_t *ret_actions_count)
{
    trpi_router_share *shares = NULL;
    trp_err err = nodes_renew(core, members, count);

    if (err == TRP_OK) {
        err = shares_make(core, now_ms, &shares);
    }
    if (err == TRP_OK) {
        err = room_make(core, shares);
    }
    if (err != TRP_OK) {
        trpi_free(shares);
        return err;
    }
    core->actions_count = 0;
    routees_keep(core, shares, true);
    routees_keep(core, shares, false);
    routees_settle(core);
    routees_add(core, shares);
    trpi_free(shares);
    *ret_actions = core->actions;
    *ret_actions_count = core->actions_count;
    return TRP_OK;
}

uint64_t
trpi_router_wake_ms(const trpi_router_core *core)
{
    return core->wake_ms;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
routee_add(trpi_router_core *core, uint64_t uid, trp_ref ref, bool active)
{
    trpi_assert(core->routees_count < core->routees_room);
    core->routees[core->routees_count++] = (trpi_router_routee){ uid, ref, active };
}

void
trpi_router_made(trpi_router_core *core, uint64_t uid, trp_ref ref)
{
    routee_add(core, uid, ref, true);
}

void
trpi_router_failed(trpi_router_core *core, uint64_t now_ms, uint64_t uid)
{
    router_node *node = node_find(core, uid);

    if (node != NULL) {
        node_failed(node, now_ms);
        core->wake_ms = node->retry_ms < core->wake_ms ? node->retry_ms : core->wake_ms;
    }
}

bool
trpi_router_found(trpi_router_core *core, uint32_t number, trp_ref ref)
{
    router_node *node = node_of_lookup(core, number);

    if (node == NULL) {
        return false;
    }
    node->lookup = 0;
    node->failures = 0;
    routee_add(core, node->uid, ref, false);
    return true;
}

void
trpi_router_missing(trpi_router_core *core, uint64_t now_ms, uint32_t number)
{
    router_node *node = node_of_lookup(core, number);

    if (node != NULL) {
        node->lookup = 0;
        trpi_router_failed(core, now_ms, node->uid);
    }
}

bool
trpi_router_ended(trpi_router_core *core, uint64_t now_ms, trp_ref ref)
{
    for (uint32_t i = 0; i < core->routees_count; i++) {
        if (trp_ref_equal(core->routees[i].ref, ref)) {
            trpi_router_failed(core, now_ms, core->routees[i].uid);
            core->routees_count--;
            memmove(&core->routees[i], &core->routees[i + 1],
                    (core->routees_count - i) * sizeof core->routees[0]);
            return true;
        }
    }
    return false;
}

void
trpi_router_forget_finds(trpi_router_core *core)
{
    for (size_t i = 0; i < core->nodes_count; i++) {
        core->nodes[i].lookup = 0;
    }
}

const trpi_router_routee *
trpi_router_routees(const trpi_router_core *core, uint32_t *ret_count)
{
    *ret_count = core->routees_count;
    return core->routees;
}
