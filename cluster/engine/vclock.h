/* vclock.h - vector clocks: which of two states is newer, or neither (GOSSIP-02, -12).
 *
 * A clock is an array of {key of the node, counter} sorted by key, without zero counters.
 * Counters, not wall time: a clock that steps back cannot make a new state look old.
 */
#ifndef TRPI_CLUSTER_VCLOCK_H
#define TRPI_CLUSTER_VCLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trpi_vclock_entry {
    uint64_t key;
    uint64_t counter;
} trpi_vclock_entry;

typedef enum trpi_vclock_order {
    TRPI_VCLOCK_SAME = 0,
    TRPI_VCLOCK_BEFORE = 1, /* a is older than b */
    TRPI_VCLOCK_AFTER = 2,  /* a is newer than b */
    TRPI_VCLOCK_CONCURRENT = 3
} trpi_vclock_order;

/* Return whether to ignore this key: entries of removed nodes are pruned on one side earlier. */
typedef bool (*trpi_vclock_ignore_fn)(const void *arg, uint64_t key);

/* Compare, leaving out entries of a that ignore_a names and entries of b that ignore_b names. */
trpi_vclock_order trpi_vclock_compare(const trpi_vclock_entry *a, uint32_t a_count,
                                      const trpi_vclock_entry *b, uint32_t b_count,
                                      trpi_vclock_ignore_fn ignore, const void *ignore_a,
                                      const void *ignore_b);
/* Write the pointwise maximum to `out` (room for a_count + b_count); returns its count. */
uint32_t trpi_vclock_merge(const trpi_vclock_entry *a, uint32_t a_count, const trpi_vclock_entry *b,
                           uint32_t b_count, trpi_vclock_entry *out);
/* Add one to key's counter; entries must have room for one more. Returns the new count. */
uint32_t trpi_vclock_increment(trpi_vclock_entry *entries, uint32_t count, uint64_t key);
uint64_t trpi_vclock_get(const trpi_vclock_entry *entries, uint32_t count, uint64_t key);

#endif
