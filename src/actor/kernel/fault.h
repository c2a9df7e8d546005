/* fault.h - signals that an actor's own code raises: reported, or turned into its failure. */
#ifndef TRPI_ACTOR_KERNEL_FAULT_H
#define TRPI_ACTOR_KERNEL_FAULT_H

#include "actor/kernel/run.h"
#include "actor/kernel/system.h"

/* Install the handlers for a system whose options ask for them; counted over all systems. Before
 * its threads are made. Errors: TRP_EUNSUPPORTED, TRP_EIO. Thread: owner. */
trp_err trpi_fault_open(trp_system *system);
/* Take them out again with the last such system. NULL-safe for systems that never asked. */
void trpi_fault_close(trp_system *system);

/* (trpi_fault_trust(), of what plugins bring: actor.h) */

/* A worker's thread begins: give it an alternate stack, and let its faults be found. Does nothing
 * when the system did not ask. */
void trpi_fault_thread_begin(trp_ctx *ctx);
void trpi_fault_thread_end(trp_ctx *ctx);

#endif
