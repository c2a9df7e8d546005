/* trace.h - the traces of a system: their numbers, what is sampled, and the hops of this node.
 *
 * One a system. The public contract is troupe/trace.h.
 */
#ifndef TRPI_ACTOR_KERNEL_TRACE_H
#define TRPI_ACTOR_KERNEL_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "actor/kernel/run.h"

trp_err trpi_trace_system_new(trp_system *system);
void trpi_trace_system_free(trp_system *system);

/* A span that no other message has, but by chance: never 0. Thread: any; lock-free. */
uint64_t trpi_trace_span(trp_system *system);
/* Begin a trace whose first message has a span. */
void trpi_trace_root(trp_system *system, trp_trace *ret_trace);

/* Keep the hop of a message that the running actor has handled since begun_ns. err: as its handler
 * returned it. */
void trpi_trace_handled(trp_ctx *ctx, const trpi_trailer *trailer, const trp_msg *msg,
                        uint64_t begun_ns, trp_err err);
/* Keep the hop of a message that reached no actor. */
void trpi_trace_dead(trp_system *system, const trpi_trailer *trailer, trp_ref recipient,
                     uint32_t type, trp_dead_reason reason);

/* ---- what is sampled; life/sample.c ---------------------------------------------------------- */
/* Is any path sampled? Thread: any; a hint. */
bool trpi_trace_samples_any(const trp_system *system);
/* Add a path, or change its rate; 0 removes it. Errors: TRP_ELIMIT, TRP_ENOENT. */
trp_err trpi_trace_sample_set(trp_system *system, const char *path, uint32_t one_in);
/* The rate of an actor's path: that of the first sampled path that matches; 0: none does. */
uint32_t trpi_trace_sample_of(trp_system *system, const char *path,
                              bool (*matches)(const char *pattern, const char *path));

#endif
