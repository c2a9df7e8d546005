/* control_cluster.h - a cluster of one node for control_lane_test.c, which cannot include the
 * engine's headers: those and remoting's both have frames. */
#ifndef TESTS_UNIT_REMOTE_CONTROL_CLUSTER_H
#define TESTS_UNIT_REMOTE_CONTROL_CLUSTER_H

#include <pthread.h>

#include "remote/remote.h"

/* Start it; *ret_lock: the engine's. NULL: it cannot be started. */
void *control_cluster_start(trp_system *system, trpi_remote *remote, pthread_mutex_t **ret_lock);
void control_cluster_stop(void *cluster);
void control_cluster_free(void *cluster); /* after the system has stopped */

#endif
