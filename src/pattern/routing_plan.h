/* routing_plan.h - the settings of a router: options of code and keys of configuration in one
 * value.
 *
 * Configuration beats code: a plan is made from the options, then each key of the deployment
 * section of its path is set in it, then it is checked.
 */
#ifndef TRPI_PATTERN_ROUTING_PLAN_H
#define TRPI_PATTERN_ROUTING_PLAN_H

#include <stdbool.h>

#include <troupe/router.h>

#include "actor/actor.h"

typedef struct trpi_texts {
    char **texts;
    uint32_t texts_count, texts_room;
} trpi_texts;

typedef struct trpi_router_plan {
    char *logic; /* NULL: custom, else round-robin */
    uint32_t instances;
    trp_ref *routees;
    uint32_t routees_count;
    trpi_texts paths; /* a NULL is a routee that was found */
    uint32_t within_ms, interval_ms, virtual_nodes;
    bool resizes, resizes_own;
    trp_resizer_options resizer;
    trp_resizer own_resizer;
    const trp_strategy *strategy;
    char *dispatcher;
    trp_hash_key_fn hash_mapping;
    void *hash_arg;
    const trp_routing_logic *custom;
    trpi_texts settings;         /* "key=value"; later ones win */
    trpi_texts nodes;            /* of children, in turn */
    trp_cluster_routees cluster; /* texts are owned */
    bool clustered;
    uint32_t instances_said, total_said; /* set by the configuration; 0: not set */
    bool clustered_said, cluster_key_said;
    bool from_config, configured;
    bool any_logic; /* accept unknown logics, which may be registered later */
} trpi_router_plan;

/* Copy options; NULL: all defaults. Errors: TRP_EINVAL, TRP_ENOMEM; then the plan is empty. */
trp_err trpi_router_plan_init(trpi_router_plan *plan, const trp_router_options *options);
void trpi_router_plan_fini(trpi_router_plan *plan);
/* Set one key of a deployment section: router, nr-of-instances, routees.paths (separated by commas
 * or blanks; "routees.paths+" adds to them; target.nodes likewise), within, interval (both also
 * tail-chopping-router.interval), virtual-nodes-factor, router-dispatcher, resizer.*; others are
 * settings of the custom logic. Durations are "5 s", "10ms", "1m"; a bare number is milliseconds.
 * Errors: TRP_ECONFIG, with a sentence in error (error_bytes large); TRP_ENOMEM. */
trp_err trpi_router_plan_set(trpi_router_plan *plan, const char *key, const char *value,
                             char *error, size_t error_bytes);
/* routing_deploy.c: set the keys of a deployment section. Errors: as above. */
trp_err trpi_router_plan_deploy(trpi_router_plan *plan, const trpi_deployment *deployment,
                                char *error, size_t error_bytes);
/* Check all ranges and bounds, and fill in defaults. Errors: TRP_EINVAL. */
trp_err trpi_router_plan_check(trpi_router_plan *plan, char *error, size_t error_bytes);
/* Add "key=value", which overrides earlier ones. Errors: TRP_ENOMEM. */
trp_err trpi_router_plan_setting_add(trpi_router_plan *plan, const char *setting);
/* Add a node for children. Errors: TRP_ENOMEM. */
trp_err trpi_router_plan_node_add(trpi_router_plan *plan, const char *node);
/* routing_cluster.c: the same for options.cluster (NULL: none) and for the keys below "cluster.".
 * has_routee: children can be made; placed: the code says where. */
trp_err trpi_cluster_plan_init(trpi_router_plan *plan, const trp_cluster_routees *cluster);
void trpi_cluster_plan_fini(trpi_router_plan *plan);
trp_err trpi_cluster_plan_set(trpi_router_plan *plan, const char *key, const char *value,
                              char *error, size_t error_bytes);
trp_err trpi_cluster_plan_check(trpi_router_plan *plan, bool has_routee, bool placed, char *error,
                                size_t error_bytes);
/* Forget a path, whose routee was found: it becomes NULL. */
void trpi_router_plan_path_drop(trpi_router_plan *plan, uint32_t index);
/* Write the error and return TRP_ECONFIG. */
trp_err trpi_router_plan_wrong(char *error, size_t error_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The value of a setting; NULL: none. */
const char *trpi_router_plan_setting(const trpi_router_plan *plan, const char *key);

#endif
