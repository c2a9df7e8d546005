/* troupe/metrics.h - how busy the nodes of a cluster are, and where work goes because of it.
 *
 * Each member measures itself once in cluster.metrics.collect-interval. Figures that jump are
 * smoothed: each sample counts half as much after moving-average-half-life. Nodes exchange their
 * figures by a gossip of its own. A figure that is not known is left out: no value means "none".
 *
 * The routing logic "adaptive" (troupe/router.h) sends more to nodes that have more left. How much
 * a node has left, its capacity from 0 to 1, is said by a selector: "heap" (or "memory"), "load",
 * "cpu", "mix" (the mean of those three that are known; the default), or one of the program's own:
 *
 *     options.logic = "adaptive";
 *     options.settings = (const char *const[]){ "metrics-selector=heap", NULL };
 *
 *     deployment "/front" { router = adaptive  metrics-selector = heap }
 *
 * Routees on a node of which nothing is known get as much as the mean of the others; while nothing
 * is known of any, or when none has anything left, all get the same.
 */
#ifndef TROUPE_METRICS_H
#define TROUPE_METRICS_H

#include <troupe/base.h>
#include <troupe/cluster.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_METRICS_MAX 16       /* figures of one node */
#define TRP_METRIC_NAME_BYTES 32 /* with the NUL; printable characters without blanks */
#define TRP_METRICS_NAMED_MAX 64 /* collectors, and selectors, that programs register */

/* The figures that every node has, unless its collector leaves them out. Memory is in bytes: of the
 * machine, or what the control group allows where that is less. */
#define TRP_METRIC_HEAP_USED "heap-memory-used" /* smoothed. Without what can be taken back */
#define TRP_METRIC_HEAP_COMMITTED "heap-memory-committed" /* smoothed. With it */
#define TRP_METRIC_HEAP_MAX "heap-memory-max"
#define TRP_METRIC_LOAD "system-load-average" /* of the last minute; not in a part of a machine */
#define TRP_METRIC_PROCESSORS "processors"    /* that this node may use */
#define TRP_METRIC_CPU "cpu-combined"         /* smoothed. 0 to 1: user, system, nice and wait */

/* One figure. */
typedef struct trp_metric {
    char name[TRP_METRIC_NAME_BYTES];
    double value;    /* finite and not negative, or it is left out */
    uint32_t smooth; /* of a collector: 1: give the moving average to others. Else 0 */
    uint32_t zero;
} trp_metric;

/* The figures that one node has measured. */
typedef struct trp_node_metrics {
    char address[TRP_ADDRESS_BYTES];
    uint64_t uid;
    uint64_t number; /* of the measurement, from 1 on: the higher, the newer */
    int64_t wall_ms; /* when it was made, by the clock of that node: for people */
    uint32_t count;
    uint32_t zero;
    trp_metric metrics[TRP_METRICS_MAX];
} trp_node_metrics;

/* Find a figure by name; 0: the node has none.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CMETRIC-11, -12.  Since: 0.1 */
TRP_API int trp_metrics_find(const trp_node_metrics *node, const char *name, double *ret_value);

typedef struct trp_heap_metrics {
    double used, committed; /* bytes */
    double max;             /* 0: not known */
} trp_heap_metrics;

/* Take the figures of memory out; 0: used or committed is not known.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CMETRIC-11.  Since: 0.1 */
TRP_API int trp_metrics_heap(const trp_node_metrics *node, trp_heap_metrics *ret_heap);

typedef struct trp_cpu_metrics {
    double processors;
    double load;     /* if has_load */
    double combined; /* if has_combined */
    uint32_t has_load, has_combined;
} trp_cpu_metrics;

/* Take the figures of processors out; 0: their number is not known.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CMETRIC-11.  Since: 0.1 */
TRP_API int trp_metrics_cpu(const trp_node_metrics *node, trp_cpu_metrics *ret_cpu);

/* ---- looking, and being told ----------------------------------------------------------------- */

/* Copy at most max nodes' figures; *ret_count is how many there are. Those of a member that is
 * unreachable, Exiting, Down or removed are forgotten.
 *
 * Errors:    TRP_ESTATE  this system is no cluster node; TRP_EINVAL  ret_count is NULL
 * Thread:    any; takes a lock for a moment.
 * Source:    CMETRIC-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_metrics(trp_system *system, trp_node_metrics *nodes,
                                                   size_t max, size_t *ret_count);

/* Payload of trp_metrics_changed_type, which subscribers of TRP_CLUSTER_METRICS_CHANGED
 * (trp_cluster_subscribe()) get whenever something has changed: this, then nodes_count
 * trp_node_metrics. */
typedef struct trp_metrics_changed {
    uint32_t nodes_count;
    uint32_t zero;
} trp_metrics_changed;
enum { trp_metrics_changed_tag = 0xff50 };
TRP_API extern trp_type trp_metrics_changed_type;

/* Return the nodes of a received event. */
static inline const trp_node_metrics *
trp_metrics_changed_nodes(const trp_metrics_changed *event)
{
    return (const trp_node_metrics *)(const void *)(event + 1);
}

/* ---- collectors ------------------------------------------------------------------------------ */

/* Where a node's figures come from. One of them is called by one thread at a time; it may block a
 * little, for the cluster does not wait for it. */
typedef struct trp_metrics_collector {
    size_t size;      /* sizeof(trp_metrics_collector) */
    const char *name; /* for cluster.metrics.collector-class; "proc" is the built-in one */
    /* Begin to measure for this system. An error is logged, and the node measures nothing. NULL:
     * the state is arg. */
    trp_err (*open)(void *arg, trp_system *system, void **ret_state);
    /* Fill in at most max figures and return how many there are. Names are unique; invalid figures
     * (negative, not finite, nameless) are left out. */
    uint32_t (*collect)(void *state, trp_metric *metrics, uint32_t max);
    void (*close)(void *state); /* NULL: nothing to do */
    void *arg;
} trp_metrics_collector;

/* Let nodes measure themselves by this collector, when cluster.metrics.collector-class says its
 * name. Process-wide; before the node joins (a plugin's init is early enough). Nodes of a
 * simulation (troupe/sim.h) measure nothing, unless a collector is called "simulated".
 *
 * Ownership: borrows collector until the process ends.
 * Errors:    TRP_EINVAL  collect or name is missing; TRP_EEXIST  another one has the name
 *            TRP_ELIMIT  TRP_METRICS_NAMED_MAX are registered
 * Thread:    any; takes a lock for a moment.
 * Source:    CMETRIC-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err
trp_metrics_collector_register(const trp_metrics_collector *collector);

/* ---- selectors ------------------------------------------------------------------------------- */

/* How much a node has left. A function of its arguments, for any thread. */
typedef struct trp_metrics_selector {
    size_t size; /* sizeof(trp_metrics_selector) */
    const char *name;
    /* Give the capacity, 0 for none; a negative one counts as 0. 0: it is not known. */
    int (*capacity)(void *arg, const trp_node_metrics *node, double *ret_capacity);
    void *arg;
} trp_metrics_selector;

/* Let adaptive routers use this selector by its name. Process-wide.
 *
 * Ownership: borrows selector until the process ends.
 * Errors:    TRP_EINVAL  capacity or name is missing; TRP_EEXIST  another one has the name
 *            TRP_ELIMIT  TRP_METRICS_NAMED_MAX are registered
 * Thread:    any; takes a lock for a moment.
 * Source:    CMETRIC-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_metrics_selector_register(const trp_metrics_selector *selector);

/* Ask a selector, built in or registered, for the capacity of a node; 0: it is not known, or no
 * selector has that name.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    CMETRIC-04 to -08.  Since: 0.1 */
TRP_API int trp_metrics_capacity(const char *selector, const trp_node_metrics *node,
                                 double *ret_capacity);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_METRICS_H */
