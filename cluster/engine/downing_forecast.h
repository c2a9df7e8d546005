/* downing_forecast.h - what the downing strategy will decide if nothing changes: for people who
 * have to act before it does (`why`, `status`, `down`). */
#ifndef TRPI_CLUSTER_DOWNING_FORECAST_H
#define TRPI_CLUSTER_DOWNING_FORECAST_H

#include "cluster/engine/downing.h"

typedef enum trpi_forecast_kind {
    TRPI_FORECAST_NONE = 0,    /* nothing will be decided: nobody is missed, or it is manual */
    TRPI_FORECAST_GOES_ON = 1, /* this side marks those that it misses Down */
    TRPI_FORECAST_STOPS = 2,   /* this node stops itself */
    TRPI_FORECAST_LEASE = 3    /* the lease says which */
} trpi_forecast_kind;

typedef struct trpi_downing_forecast {
    trpi_forecast_kind kind;
    uint64_t in_ms; /* if nothing changes till then */
    /* Would this side be the one that goes on, as the strategy counts (manual, auto-down-after: as
     * keep-majority does)? Only then an operator may mark Down here whom it misses. */
    bool may_down;
    char reason[192]; /* how the sides were counted */
    char who[256];    /* who is marked Down; STOPS: who stops, this node among them */
} trpi_downing_forecast;

/* Ask the strategy itself, as if it was later. Pure. indexes, later_ms: room for all members. Takes
 * as long as some decisions. */
void trpi_downing_forecast_make(const trpi_downing_ops *ops, const trpi_downing_options *options,
                                const trpi_downing_input *input, uint32_t *indexes,
                                uint64_t *later_ms, trpi_downing_forecast *ret_forecast);

#endif
