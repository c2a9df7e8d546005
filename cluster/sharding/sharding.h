/* sharding.h - the door of the sharding room: functions for the rooms above it. */
#ifndef TRPI_CLUSTER_SHARDING_SHARDING_H
#define TRPI_CLUSTER_SHARDING_SHARDING_H

#include <troupe/sharding.h>

/* Return how many shards of this node wait for the journal, which refuses them or cannot be read.
 * Thread: any; lock-free. */
uint32_t trpi_sharding_unopened(const trp_system *system);

#endif
