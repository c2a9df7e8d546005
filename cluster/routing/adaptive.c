/* adaptive.c - the routing logic "adaptive": more work for nodes with more free capacity.
 *
 * Shape.   figures --selector--> capacity of each node --> weights --> sums over the routees
 *          a message: one random ticket, a binary search over the sums
 * Must hold.
 *   adaptive-A1  Sums belong to one table of routees and one table of figures. When either has been
 *       replaced, the first sender that notices makes new ones; no sender waits for it.
 *   adaptive-A2  Sums are replaced as a whole and retired: senders take no lock.
 * Cost.    A message: two loads more than "random", and the search. After a change: a sort of the
 *          routees, and one call of the selector for each node that has any.
 * Tests.   tests/unit/cluster/adaptive_test.c
 * Sources. CMETRIC-09, -10, GAP-13.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/engine/ident.h"
#include "cluster/metrics/metrics.h"
#include "cluster/routing/router_shell.h"
#include "cluster/shell/snapshot.h"
#include "pattern/pattern.h"

struct sums {                  /* immutable */
    uint64_t routees, figures; /* serials; figures 0: none */
    uint32_t count;
    uint32_t sum[]; /* of the weights of routees 0 to i */
};

struct adaptive { /* of one router */
    trp_system *system;
    const trp_metrics_selector *selector;
    _Atomic(struct sums *) sums; /* release; senders acquire. NULL: none yet */
};

struct seat {
    uint32_t node, routee;
};

static int
seats_compare(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

static const trp_node_metrics *
figures_of(trp_system *system, const trpi_metrics_table *table, uint32_t node)
{
    const trpi_node_id *id = trpi_node_id_get(system, node);
    char address[TRPI_ADDRESS_TEXT_BYTES];
    if (id == NULL || table == NULL) {
        return NULL;
    }
    if (id->uid != 0) {
        return trpi_metrics_of(table, trpi_ident_key(id));
    }
    (void)trpi_address_format(&id->address, address, sizeof address);
    for (uint32_t i = 0; i < table->count; i++) { /* of any incarnation */
        if (strcmp(table->entries[i]->node.address, address) == 0) {
            return &table->entries[i]->node;
        }
    }
    return NULL;
}

/* Weights of the nodes that have seats, in the order of the seats; returns how many nodes. */
static uint32_t
weigh_nodes(const struct adaptive *adaptive, const trpi_metrics_table *table,
            const struct seat *seats, uint32_t count, double *capacities, bool *known,
            uint32_t *weights)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && seats[i].node == seats[i - 1].node) {
            continue;
        }
        const trp_node_metrics *figures = figures_of(adaptive->system, table, seats[i].node);
        const trp_metrics_selector *selector = adaptive->selector;
        known[nodes] = figures != NULL &&
                       selector->capacity(selector->arg, figures, &capacities[nodes]) != 0 &&
                       isfinite(capacities[nodes]);
        nodes++;
    }
    trpi_metrics_weights(capacities, known, nodes, weights);
    return nodes;
}

/* NULL: no memory. */
static struct sums *
sums_new(const struct adaptive *adaptive, const trp_route *route, const trpi_metrics_table *table)
{
    uint32_t count = trp_route_count(route);
    struct sums *sums = trpi_alloc(sizeof *sums + count * sizeof sums->sum[0]);
    struct seat *seats TRPI_AUTO_FREE = trpi_alloc(count * sizeof *seats);
    double *capacities TRPI_AUTO_FREE = trpi_alloc(count * sizeof *capacities);
    uint32_t *weights TRPI_AUTO_FREE = trpi_alloc(count * sizeof *weights);
    bool *known TRPI_AUTO_FREE = trpi_alloc(count * sizeof *known);
    if (sums == NULL || seats == NULL || capacities == NULL || weights == NULL || known == NULL) {
        trpi_free(sums);
        return NULL;
    }
    sums->routees = trpi_route_serial(route);
    sums->figures = table == NULL ? 0 : table->serial;
    sums->count = count;
    for (uint32_t i = 0; i < count; i++) {
        seats[i] = (struct seat){ trpi_route_node(route, i), i };
    }
    qsort(seats, count, sizeof *seats, seats_compare);
    (void)weigh_nodes(adaptive, table, seats, count, capacities, known, weights);
    for (uint32_t i = 0, node = 0; i < count; i++) {
        node += i > 0 && seats[i].node != seats[i - 1].node ? 1 : 0;
        sums->sum[seats[i].routee] = weights[node];
    }
    for (uint32_t i = 1; i < count; i++) {
        sums->sum[i] += sums->sum[i - 1];
    }
    return sums;
}

/* adaptive-A1 */
static const struct sums *
sums_present(struct adaptive *adaptive, const trp_route *route)
{
    const trpi_metrics_table *table = trpi_metrics_present(trpi_cluster_of(adaptive->system));
    struct sums *sums = atomic_load_explicit(&adaptive->sums, memory_order_acquire);
    if (sums != NULL && sums->routees == trpi_route_serial(route) &&
        sums->figures == (table == NULL ? 0 : table->serial)) {
        return sums;
    }
    sums = sums_new(adaptive, route, table);
    if (sums != NULL) { /* adaptive-A2 */
        struct sums *before = atomic_exchange_explicit(&adaptive->sums, sums, memory_order_acq_rel);
        if (before != NULL) {
            trpi_system_retire(adaptive->system, trpi_free, before);
        }
    }
    return sums;
}

static void
adaptive_route(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    uint32_t count = trp_route_count(route);
    (void)sender;
    (void)msg;
    if (count == 0) {
        trpi_route_nobody(route);
        return;
    }
    const struct sums *sums = sums_present(state, route);
    uint64_t random = trpi_route_random(route);
    if (sums == NULL) { /* no memory: as if no metrics were known */
        trpi_route_to_index(route, (uint32_t)(random % count));
        return;
    }
    uint32_t ticket = 1 + (uint32_t)(random % sums->sum[count - 1]);
    trpi_route_to_index(route, trpi_metrics_pick(sums->sum, count, ticket));
}

static void
adaptive_destroy(void *state)
{
    struct adaptive *adaptive = state;
    if (adaptive != NULL) {
        trpi_free(atomic_load_explicit(&adaptive->sums, memory_order_relaxed));
        trpi_free(adaptive);
    }
}

static trp_err
adaptive_create(void *arg, trp_routee_provider *provider, void **ret_state)
{
    trp_system *system = trpi_routees_system(provider);
    const char *name = trp_routee_setting(provider, "metrics-selector");
    const trp_metrics_selector *selector = trpi_metrics_selector_find(name == NULL ? "mix" : name);
    (void)arg;
    if (selector == NULL) {
        trpi_log(system, TRP_LOG_ERROR, "cluster",
                 "metrics-selector: no selector is called \"%s\"; say mix, heap, cpu, load, or "
                 "the name of one that was registered (trp_metrics_selector_register)",
                 name);
        return TRP_EINVAL;
    }
    struct adaptive *adaptive = trpi_alloc(sizeof *adaptive);
    if (adaptive == NULL) {
        return TRP_ENOMEM;
    }
    adaptive->system = system;
    adaptive->selector = selector;
    trp_err err = trpi_routees_of_options(provider);
    if (err != TRP_OK) {
        adaptive_destroy(adaptive);
        return err;
    }
    *ret_state = adaptive;
    return TRP_OK;
}

const trp_routing_logic trpi_adaptive_logic = {
    sizeof(trp_routing_logic),
    "adaptive",
    adaptive_create,
    adaptive_route,
    adaptive_destroy,
    NULL,
    NULL,
};
