/* downing_forecast.h - what the downing strategy will decide if nothing changes: for operators who
 * may act before it does (`why`, `status`, `down`). */
#ifndef TRPI_CLUSTER_DOWNING_FORECAST_H
#define TRPI_CLUSTER_DOWNING_FORECAST_H

#include "cluster/engine/downing.h"

typedef enum trpi_forecast_kind {
    TRPI_FORECAST_NONE = 0,    /* none: no member is unreachable, or the strategy is manual */
    TRPI_FORECAST_GOES_ON = 1, /* this side marks its unreachable members Down */
    TRPI_FORECAST_STOPS = 2,   /* this node stops itself */
    TRPI_FORECAST_LEASE = 3    /* the owner of the lease goes on */
} trpi_forecast_kind;

typedef struct trpi_downing_forecast {
    trpi_forecast_kind kind;
    uint64_t in_ms; /* time until the decision, if nothing changes */
    /* This side would be the one that goes on, as the strategy counts (manual, auto-down-after: as
     * keep-majority does). Only then may an operator mark its unreachable members Down here. */
    bool may_down;
    char reason[192]; /* how the sides were counted */
    char who[256];    /* members marked Down; STOPS: members that stop, this node included */
} trpi_downing_forecast;

/* Ask the strategy with later times. Pure. indexes, later_ms: room for all members. Costs a few
 * decisions. */
void trpi_downing_forecast_make(const trpi_downing_ops *ops, const trpi_downing_options *options,
                                const trpi_downing_input *input, uint32_t *indexes,
                                uint64_t *later_ms, trpi_downing_forecast *ret_forecast);

/* Return NULL, or the invariant that a forecast breaks: downing-forecast-F3..F6 (downing_check.c).
 */
const char *trpi_downing_forecast_check(const trpi_downing_ops *ops,
                                        const trpi_downing_options *options,
                                        const trpi_gossip *gossip,
                                        const trpi_downing_forecast *forecast, trpi_check *check);

#endif
