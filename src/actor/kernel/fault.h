/* fault.h - signals raised by an actor's own code: reported, or turned into its failure. */
#ifndef TRPI_ACTOR_KERNEL_FAULT_H
#define TRPI_ACTOR_KERNEL_FAULT_H

#include "actor/kernel/run.h"
#include "actor/kernel/system.h"

/* Install the handlers if the system's options ask for them; counted over all systems. Before its
 * threads start. Errors: TRP_EUNSUPPORTED, TRP_EIO. Thread: owner. */
trp_err trpi_fault_open(trp_system *system);
/* Remove them with the last such system. Does nothing for a system that did not ask. */
void trpi_fault_close(trp_system *system);

/* A worker's thread begins: give it an alternate stack, and register its ctx. Does nothing when the
 * system did not ask. */
void trpi_fault_thread_begin(trp_ctx *ctx);
void trpi_fault_thread_end(trp_ctx *ctx);

#endif
