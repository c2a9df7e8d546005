/* stall.h - private to the room: actors that block a worker too long, or delay a stop. */
#ifndef TRPI_ACTOR_SYSTEM_STALL_H
#define TRPI_ACTOR_SYSTEM_STALL_H

#include <troupe/dispatcher.h>

#include "actor/kernel/run.h"

typedef struct trpi_stall trpi_stall; /* NULL in a system: off */

/* Errors: TRP_ENOMEM. The scheduler exists. */
trp_err trpi_stall_new(trp_system *system);
void trpi_stall_free(trp_system *system); /* every thread has ended */
/* A stop has timed out: log which actors hold a thread with one message for grace_ms, how many wait
 * for them, and which have another reason. Takes grace_ms. Thread: none of the system's. */
void trpi_stuck_log(trp_system *system, uint32_t grace_ms);
/* trpi_sched_ops.awake; arg: the trp_system. */
void trpi_stall_awake(void *arg, trpi_worker *worker);

#endif
