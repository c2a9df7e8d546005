/* allocation.h - which region gets a shard, and which shards should move. Pure.
 *
 * Sources: FUTURE-06, -07, -10. Tests: tests/unit/cluster/sharding_test.c.
 */
#ifndef TRPI_CLUSTER_ALLOCATION_H
#define TRPI_CLUSTER_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/sharding.h>

#include "base/address.h"

#define TRPI_ALLOCATION_NONE UINT32_MAX

typedef enum trpi_allocation_kind { /* wire numbers */
                                    TRPI_ALLOCATION_LEAST_SHARDS = 0,
                                    TRPI_ALLOCATION_METRICS = 1, /* fewest shards for its weight */
                                    TRPI_ALLOCATION_FIRST_FIT =
                                        2, /* round the ring of nodes, in the order of addresses */
                                    TRPI_ALLOCATION_USER = 3
} trpi_allocation_kind;

/* A region that may be granted shards. In an array sorted by node. */
typedef struct trpi_allocation_region {
    const trpi_node_id *node;
    const char *app_version;
    uint32_t shards; /* that it has, or will have */
    uint32_t weight; /* 0: unknown, counts as the average */
    bool may_get;    /* not leaving; of the newest version where several are there */
} trpi_allocation_region;

typedef struct trpi_allocation_view {
    const trpi_allocation_region *regions;
    uint32_t regions_count;
    uint32_t shards;      /* of the type */
    const uint32_t *home; /* [shards]: index of regions; NONE: no home, or it is moving */
    uint32_t last;        /* region that was given the last shard; NONE: none yet */
} trpi_allocation_view;

/* A question to the program, with room for the answer; one block of memory (trpi_free). */
typedef struct trpi_allocation_question {
    uint64_t serial;
    trp_allocation_round ask;
    trpi_node_id nodes[]; /* of ask.regions */
} trpi_allocation_question;
/* NULL: no memory. wanted is copied. */
trpi_allocation_question *trpi_allocation_question_new(const char *type,
                                                       const trpi_allocation_view *view,
                                                       const uint32_t *wanted,
                                                       uint32_t wanted_count, uint32_t moves_max);

/* Return the index of the region that gets a shard; NONE: none may. Of kind USER: the fewest
 * shards, for want of an answer. */
uint32_t trpi_allocation_choose(trpi_allocation_kind kind, const trpi_allocation_view *view);
/* Write at most max shards that should move, and return how many; of kind USER none. counts: room
 * for one number a region. */
uint32_t trpi_allocation_rebalance(trpi_allocation_kind kind, const trpi_allocation_view *view,
                                   uint32_t max, uint32_t *counts, uint32_t *ret_shards);
/* How many shards a round may move: the lesser of both limits, at least 1. */
uint32_t trpi_allocation_round(uint32_t shards, uint32_t moves_max, uint32_t moves_permille);

/* Compare versions: numbers between dots and dashes as numbers, the rest as text. */
int trpi_app_version_compare(const char *a, const char *b);

/* ---- the ring of FUTURE-06 and -07 ----------------------------------------------------------- */
/* Spread partitions with so many instances each round a ring of nodes, numbered from 1, each in the
 * first free place: ret_nodes has the sum of instances. */
void trpi_allocation_ring(uint32_t nodes, const uint32_t *instances, uint32_t partitions,
                          uint32_t *ret_nodes);
/* The new ordinals of count old ones, when nodes join: joined[i], sorted, is the old ordinal behind
 * which one more node stands in the order (0: before all). */
void trpi_allocation_renumber(const uint32_t *joined, uint32_t joined_count, uint32_t *nodes,
                              uint32_t count);

#endif
