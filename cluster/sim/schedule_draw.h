/* schedule_draw.h - a schedule while it is drawn; private to those schedule*.c that draw one. */
#ifndef TRPI_CLUSTER_SIM_SCHEDULE_DRAW_H
#define TRPI_CLUSTER_SIM_SCHEDULE_DRAW_H

#include "cluster/sim/schedule.h"
#include "cluster/sim/world.h"

struct draw {
    struct sim_world dice; /* its generator only */
    uint32_t nodes;
    uint64_t at_ms, unstable_ms, exiting_ms;
    trpi_sim_schedule *schedule;
    trp_err err; /* of the first action that could not be added */
};

static inline void
draw_action(struct draw *d, trpi_sim_action action)
{
    action.at_ms = d->at_ms;
    if (d->err == TRP_OK) {
        d->err = trpi_sim_schedule_add(d->schedule, action);
    }
}

#define ADD(d, ...) draw_action((d), (trpi_sim_action){ __VA_ARGS__ })

#endif
