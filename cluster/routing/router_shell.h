/* router_shell.h - cluster-aware routers: see router.h and troupe/router.h. */
#ifndef TRPI_CLUSTER_ROUTER_SHELL_H
#define TRPI_CLUSTER_ROUTER_SHELL_H

#include <troupe/router.h>

/* Let routers of the pattern room have routees on the nodes of a cluster. Idempotent. Thread: any.
 */
void trpi_cluster_routers_register(void);

extern const trp_routing_logic trpi_adaptive_logic; /* adaptive.c */

#endif
