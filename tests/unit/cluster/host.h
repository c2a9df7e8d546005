/* host.h - a system that is a node of a cluster on loopback, and what its cluster has logged. */
#ifndef TESTS_UNIT_CLUSTER_HOST_H
#define TESTS_UNIT_CLUSTER_HOST_H

#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/log.h>

#include "cluster/cluster.h"
#include "tests/unit/unit.h"

struct host {
    trp_system *system;
    trpi_remote *remote;
    trpi_cluster *cluster;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    bool silent;         /* its cluster was stopped on the way */
    _Atomic int stopped; /* trpi_member_stop */
    pthread_mutex_t lines_lock;
    uint32_t lines_count;
    char lines[256][400];
};

static inline void
host_stopped(void *arg, trpi_member_stop why)
{
    atomic_store(&((struct host *)arg)->stopped, (int)why);
}

static inline void
host_log(void *arg, const trp_log_line *line)
{
    struct host *h = arg;
    pthread_mutex_lock(&h->lines_lock);
    if (strcmp(line->source, "cluster") == 0 && h->lines_count < 256) {
        (void)snprintf(h->lines[h->lines_count++], sizeof h->lines[0], "%s", line->text);
    }
    pthread_mutex_unlock(&h->lines_lock);
}

/* How many lines have this text followed by that; *ret_first: the first of them. */
static inline uint32_t
lines_with(struct host *h, const char *text, const char *behind, uint32_t *ret_first)
{
    uint32_t count = 0;
    pthread_mutex_lock(&h->lines_lock);
    for (uint32_t i = h->lines_count; i-- > 0;) {
        const char *at = strstr(h->lines[i], text);
        if (at != NULL && strstr(at + strlen(text), behind) != NULL) {
            count++;
            *ret_first = i;
        }
    }
    pthread_mutex_unlock(&h->lines_lock);
    return count;
}

/* wire_minor: of the version that it speaks; 0: the newest. */
static inline void
host_open_as(struct host *h, uint32_t wire_minor)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    /* patient: a machine that stands still for seconds breaks no link, and loses no message */
    trpi_remote_options remote_options = { .driver = getenv("TROUPE_REMOTE_DRIVER"),
                                           .bind_port = -1,
                                           .link_pause_ms = 60000,
                                           .wire_minor = wire_minor };
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lines_lock, NULL);
    system_options.workers = 1;
    system_options.log = host_log;
    system_options.log_arg = h;
    UNIT_REQUIRE(trp_system_new("test", &system_options, &h->system) == TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(h->system, &remote_options, &h->remote) == TRP_OK);
    (void)trpi_address_format(trpi_remote_address(h->remote), h->address, sizeof h->address);
}

static inline void
host_open(struct host *h)
{
    host_open_as(h, 0);
}

/* With the role worker. seed: an address, "self", NULL: none yet. */
static inline void
host_join(struct host *h, const char *seed, trpi_cluster_options options)
{
    const char *roles[1] = { "worker" };
    options.stopped = host_stopped;
    options.stopped_arg = h;
    options.roles = roles;
    options.roles_count = 1;
    options.seed_nodes = &seed;
    options.seed_nodes_count = seed == NULL ? 0 : 1;
    UNIT_REQUIRE(trpi_cluster_start(h->system, h->remote, &options, &h->cluster) == TRP_OK);
}

static inline void
host_start(struct host *h, const char *seed)
{
    trpi_cluster_options options = { .quiet = false };
    host_open(h);
    host_join(h, seed, options);
}

static inline void
host_end(struct host *h)
{
    if (!h->silent) {
        trpi_cluster_stop(h->cluster);
    }
    trpi_remote_stop(h->remote);
    UNIT_EQUAL(trp_system_stop(h->system, 60000), TRP_OK);
    trp_system_free(h->system);
    trpi_cluster_free(h->cluster);
}

#endif
