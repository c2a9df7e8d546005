/* downing_split.h - what the strategies that resolve a split have in common. */
#ifndef TRPI_CLUSTER_DOWNING_SPLIT_H
#define TRPI_CLUSTER_DOWNING_SPLIT_H

#include "cluster/downing_sides.h"

/* Does `mine` stay, when `others` is all the rest? Of any two parts of one cluster at most one may
 * get yes. *ret_why is static. */
typedef bool (*trpi_stays_fn)(const trpi_downing_options *options, trpi_side mine, trpi_side others,
                              const char **ret_why);

struct trpi_downing_ops {
    const char *name;
    void (*decide)(const trpi_downing_ops *ops, const trpi_downing_options *options,
                   const trpi_downing_input *input, trpi_downing_decision *decision);
    trpi_stays_fn stays;
    trpi_spare spare;
};

/* As trpi_downing_may_go_on, by ops->stays. */
bool trpi_split_may_go_on(const trpi_downing_ops *ops, const trpi_downing_options *options,
                          const trpi_downing_input *input, const uint32_t *marks,
                          trpi_downing_count *ret_count);
/* Decide by ops->stays, and by the lease. */
void trpi_split_decide(const trpi_downing_ops *ops, const trpi_downing_options *options,
                       const trpi_downing_input *input, trpi_downing_decision *decision);
void trpi_split_decide_lease(const trpi_downing_ops *ops, const trpi_downing_options *options,
                             const trpi_downing_input *input, trpi_downing_decision *decision);

#endif
