/* node_limits.h - does this process have the descriptors and address space that a node needs? Pure,
 * but for the reading of the limits. */
#ifndef TRPI_NODE_NODE_LIMITS_H
#define TRPI_NODE_NODE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRPI_NODE_DESCRIPTORS_LEAST 16u /* 13 of a node at rest, and for a first connection */

typedef struct trpi_node_limits {
    uint64_t descriptors; /* UINT64_MAX: no limit, as below */
    uint64_t address_bytes;
    uint64_t stack_bytes; /* of a thread; UINT64_MAX: libc's own choice */
    uint32_t processors;
} trpi_node_limits;

void trpi_node_limits_look(trpi_node_limits *ret_limits);
/* false: *why names the limit, the need, and what to set. */
bool trpi_node_limits_suffice(const trpi_node_limits *limits, char *why, size_t why_bytes);
/* Address space that a node should have. */
uint64_t trpi_node_address_need(const trpi_node_limits *limits);

#endif
