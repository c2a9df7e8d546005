/* stall.h - private to the room: the look for actors that hold a worker too long. */
#ifndef TRPI_ACTOR_STALL_H
#define TRPI_ACTOR_STALL_H

#include <troupe/dispatcher.h>

#include "actor/run.h"

typedef struct trpi_stall trpi_stall; /* NULL in a system: off */

/* Errors: TRP_ENOMEM. The scheduler exists. */
trp_err trpi_stall_new(trp_system *system);
void trpi_stall_free(trp_system *system); /* every thread has ended */
/* trpi_sched_ops.awake; arg: the trp_system. */
void trpi_stall_awake(void *arg, trpi_worker *worker);

#endif
