/* conductor.h - the actor of the first node that keeps the barriers and addresses and passes orders
 * on. */
#ifndef TRPI_MULTINODE_CONDUCTOR_H
#define TRPI_MULTINODE_CONDUCTOR_H

#include <troupe/actor.h>

/* Its argument (trp_bytes_type) is a pointer to a trpi_multinode_plan that outlives it. */
extern const trp_behaviour trpi_conductor_behaviour;

#endif
