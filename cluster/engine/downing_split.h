/* downing_split.h - what the strategies that resolve a split have in common. */
#ifndef TRPI_CLUSTER_DOWNING_SPLIT_H
#define TRPI_CLUSTER_DOWNING_SPLIT_H

#include "cluster/engine/downing_sides.h"

struct trpi_downing_ops {
    const char *name;
    void (*decide)(const trpi_downing_ops *ops, const trpi_downing_options *options,
                   const trpi_downing_input *input, trpi_downing_decision *decision);
    trpi_stays_fn stays;
    trpi_spare spare;
};

/* downing-D9, downing-D16: return the time that a new version has to be answered in, of a strategy
 * that waits for so long. */
uint64_t trpi_split_answer_ms(uint32_t patience_ms);

/* Decide by ops->stays, and by the lease. */
void trpi_split_decide(const trpi_downing_ops *ops, const trpi_downing_options *options,
                       const trpi_downing_input *input, trpi_downing_decision *decision);
void trpi_split_decide_lease(const trpi_downing_ops *ops, const trpi_downing_options *options,
                             const trpi_downing_input *input, trpi_downing_decision *decision);

#endif
