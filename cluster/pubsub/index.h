/* index.h - of all buckets together: key -> the nodes that have it. Private to the registry. */
#ifndef TRPI_CLUSTER_PUBSUB_INDEX_H
#define TRPI_CLUSTER_PUBSUB_INDEX_H

#include "base/table.h"
#include "cluster/pubsub/registry.h"

typedef struct trpi_index { /* zeroed: an empty one */
    trpi_table entries;     /* trpi_pubreg_entry * */
    uint64_t changes;
    uint64_t published; /* numbers given so far: none of any topic is above it */
    uint32_t topics;
    bool broken; /* TRPI_PUBREG_BROKEN_STAMP */
} trpi_index;

void trpi_index_fini(trpi_index *index);
trpi_pubreg_entry *trpi_index_find(const trpi_index *index, const trpi_pubsub_key *key,
                                   uint64_t hash);
trpi_pubreg_entry *trpi_index_next(const trpi_index *index, uint32_t *position);
/* A node has so many under a key; *entries counts the keys of that node. Errors: TRP_ENOMEM (not
 * when count is 0): nothing has changed. */
trp_err trpi_index_set(trpi_index *index, const trpi_pubsub_key *key, uint64_t hash, uint32_t node,
                       uint32_t count, uint64_t begun, uint32_t *entries);
void trpi_index_drop(trpi_index *index, uint32_t node, uint32_t *entries); /* all its keys */
/* NULL: the node has nothing there. */
trpi_pubreg_place *trpi_index_place(const trpi_pubreg_entry *entry, uint32_t node);
const char *trpi_index_check(const trpi_index *index, trpi_check *check);

#endif
