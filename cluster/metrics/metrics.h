/* metrics.h - the figures of nodes: how they are smoothed, spread and weighed. Private to the
 * cluster room; pure but for the last part.
 *
 * An entry has the figures of one node, a table the entries that one node knows; both are immutable
 * and counted, so that any thread may hold one. Two tables are merged into one that has the newest
 * of each node: commutative, associative, idempotent. The newest entry has the highest number,
 * which the node itself counts up: wall clocks do not matter. */
#ifndef TRPI_CLUSTER_METRICS_H
#define TRPI_CLUSTER_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/metrics.h>

#include "base/address.h"
#include "base/buffer.h"

#define TRPI_METRICS_FRAME_NODES_MAX 40u /* so that a round costs the same in every cluster */
#define TRPI_METRICS_NUMBER_MAX (UINT64_MAX / 4) /* of measurements; more is refused */
#define TRPI_METRICS_WEIGHT_MAX 10000u

/* ---- figures --------------------------------------------------------------------------------- */
bool trpi_metric_is_valid(const trp_metric *metric); /* CMETRIC-12 */
/* The share of a new sample: 1 - 0.5^(elapsed / half-life). */
double trpi_metrics_alpha(uint64_t elapsed_ms, uint32_t half_life_ms);
/* Make the next measurement from samples: invalid ones are left out, smoothed ones are averaged
 * with `before` (NULL: none). address, uid, wall_ms are the caller's. */
void trpi_metrics_next(const trp_node_metrics *before, const trp_metric *samples, uint32_t count,
                       double alpha, trp_node_metrics *ret_next);

/* ---- weights --------------------------------------------------------------------------------- */
/* NULL: no selector has that name. Thread: any. */
const trp_metrics_selector *trpi_metrics_selector_find(const char *name);
const trp_metrics_collector *trpi_metrics_collector_find(const char *name);
/* The lowest capacity, but 0.01 at least, is weight 1, the others by proportion. known[i] false:
 * the mean of the known ones. All 0, or none known: all 1. CMETRIC-10, GAP-13. */
void trpi_metrics_weights(const double *capacities, const bool *known, uint32_t count,
                          uint32_t *ret_weights);
/* First i with sums[i] >= ticket; sums rise, 1 <= ticket <= sums[count - 1]. */
uint32_t trpi_metrics_pick(const uint32_t *sums, uint32_t count, uint32_t ticket);

/* ---- tables ---------------------------------------------------------------------------------- */
typedef struct trpi_metrics_entry {
    _Atomic uint32_t refs;
    uint64_t key; /* of the member */
    trp_node_metrics node;
} trpi_metrics_entry;

typedef struct trpi_metrics_table {
    _Atomic uint32_t refs;
    uint32_t count;
    uint64_t serial;               /* of the change, at one core */
    trpi_metrics_entry *entries[]; /* by key */
} trpi_metrics_table;

trpi_metrics_entry *trpi_metrics_entry_new(uint64_t key); /* NULL: no memory */
void trpi_metrics_entry_unref(trpi_metrics_entry *entry); /* NULL is fine */
trpi_metrics_table *trpi_metrics_table_ref(trpi_metrics_table *table);
void trpi_metrics_table_unref(void *table); /* NULL is fine */
/* Shares the entries, in any order; of one key the newest stays. NULL: no memory. */
trpi_metrics_table *trpi_metrics_table_new(trpi_metrics_entry *const *entries, uint32_t count);
/* Gives *ret_merged, which is a itself (a new reference) when b knows nothing new. Errors:
 * TRP_ENOMEM. */
trp_err trpi_metrics_merge(trpi_metrics_table *a, trpi_metrics_table *b,
                           trpi_metrics_table **ret_merged);
/* NULL: nothing is known of that member. */
const trp_node_metrics *trpi_metrics_of(const trpi_metrics_table *table, uint64_t key);

/* ---- frames: the bytes of TRPI_CHANNEL_METRICS; docs/wire.md --------------------------------- */
/* Wire numbers, never reused. */
enum trpi_metrics_frame_kind {
    TRPI_METRICS_TELL = 1, /* the sender's table; the receiver answers with its own */
    TRPI_METRICS_ANSWER = 2
};
typedef struct trpi_metrics_peer { /* a member, for the gossip of metrics */
    uint64_t key;
    trpi_node_id id;
    bool hears; /* it is Up and reachable */
} trpi_metrics_peer;

/* Errors: TRP_ENOMEM. entries_count <= TRPI_METRICS_FRAME_NODES_MAX. */
trp_err trpi_metrics_encode(enum trpi_metrics_frame_kind kind, trpi_metrics_entry *const *entries,
                            uint32_t entries_count, trpi_buffer *ret_bytes);
/* Decode untrusted bytes. peers, sorted by key: figures of other nodes are skipped. Gives
 * *ret_table.
 * Errors: TRP_EDATA, TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_metrics_decode(const uint8_t *bytes, size_t count, const trpi_metrics_peer *peers,
                            uint32_t peers_count, uint32_t *ret_kind,
                            trpi_metrics_table **ret_table);

/* ---- core: the metrics of one node ----------------------------------------------------------- */
#define TRPI_METRICS_COLLECT_S_DEFAULT 3
#define TRPI_METRICS_GOSSIP_S_DEFAULT 3
#define TRPI_METRICS_HALF_LIFE_S_DEFAULT 12

typedef struct trpi_metrics_options { /* a zero field is its default */
    bool disabled;
    uint32_t collect_interval_ms;
    uint32_t gossip_interval_ms;
    uint32_t half_life_ms;
    /* NULL: the one that collector_name says when this node is a member; in a driven world none */
    const trp_metrics_collector *collector;
    const char *collector_name; /* NULL: "proc" */
} trpi_metrics_options;

typedef struct trpi_metrics_core trpi_metrics_core;
/* Gives *ret_core. Errors: TRP_ENOMEM. */
trp_err trpi_metrics_core_new(const trpi_node_id *self, const trpi_metrics_options *options,
                              uint64_t seed, trpi_metrics_core **ret_core);
void trpi_metrics_core_free(trpi_metrics_core *core); /* NULL is fine */
/* Set the members whose figures are kept, this node among them, in any order; those of other nodes
 * are dropped. Takes peers (trpi_free), on success only. Errors: TRP_ENOMEM. */
trp_err trpi_metrics_core_members(trpi_metrics_core *core, trpi_metrics_peer *peers,
                                  uint32_t count);
/* Return the tasks that are due now, as bits, once. None is due before this node is a member. */
enum trpi_metrics_due { TRPI_METRICS_COLLECT = 1, TRPI_METRICS_GOSSIP = 2 };
uint32_t trpi_metrics_core_due(trpi_metrics_core *core, uint64_t now_ms);
uint64_t trpi_metrics_core_wake_ms(const trpi_metrics_core *core); /* UINT64_MAX: never */
/* Add a measurement of this node. Errors: TRP_ENOMEM, TRP_ESTATE (it is no member). */
trp_err trpi_metrics_core_sample(trpi_metrics_core *core, uint64_t now_ms, int64_t wall_ms,
                                 const trp_metric *samples, uint32_t count);
/* Choose a member for the next frame of metrics, own figures and those of others, and encode it.
 * Gives *ret_bytes (trpi_buffer_fini). Errors: TRP_ENOENT (no other member, or nothing measured
 * yet), TRP_ENOMEM. */
trp_err trpi_metrics_core_gossip(trpi_metrics_core *core, trpi_node_id *ret_to,
                                 trpi_buffer *ret_bytes);
/* Merge a frame into the table. Give the answer for its sender (ret_answer->count 0: none).
 * Errors: TRP_EDATA, TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_metrics_core_frame(trpi_metrics_core *core, const uint8_t *bytes, size_t count,
                                trpi_buffer *ret_answer);
/* Borrowed until the next call; never NULL. */
trpi_metrics_table *trpi_metrics_core_table(const trpi_metrics_core *core);

/* ---- the figures of this machine (metrics_proc.c) -------------------------------------------- */
extern const trp_metrics_collector trpi_metrics_proc;
/* The same with all files below a directory, for tests. Figures that the first measurement does not
 * find are logged by system; NULL: they are not. Gives *ret_state, for the functions of
 * trpi_metrics_proc.
 * Errors: TRP_ENOMEM. */
trp_err trpi_metrics_proc_open(const char *root, trp_system *system, void **ret_state);

#endif
