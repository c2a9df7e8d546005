/* control_cluster.c - see control_cluster.h. */
#include "tests/unit/remote/control_cluster.h"

#include "cluster/cluster.h"
#include "cluster/shell/shell.h"

void *
control_cluster_start(trp_system *system, trpi_remote *remote, pthread_mutex_t **ret_lock)
{
    const trpi_cluster_options options = { .seed_nodes_count = 0 };
    trpi_cluster *cluster = NULL;

    if (trpi_cluster_start(system, remote, &options, &cluster) != TRP_OK) {
        return NULL;
    }
    *ret_lock = &cluster->engine.lock;
    return cluster;
}

void
control_cluster_stop(void *cluster)
{
    trpi_cluster_stop(cluster);
}

void
control_cluster_free(void *cluster)
{
    trpi_cluster_free(cluster);
}
