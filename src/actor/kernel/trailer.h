/* trailer.h - private to the kernel: what tell.c and trace.c know of trailers. */
#ifndef TRPI_ACTOR_KERNEL_TRAILER_H
#define TRPI_ACTOR_KERNEL_TRAILER_H

#include "actor/kernel/run.h"
#include "actor/kernel/trace.h"

/* sent_ns of a carried trailer: the message comes from another node, and has its span already. */
#define TRPI_TRAILER_ARRIVES UINT64_MAX

/* Fill the trailer of a message that is told while one is carried. */
void trpi_trailer_pass(trp_ctx *ctx, trpi_trailer *ret_trailer);
/* Make msg, which is about to be sent, part of the trace that is carried, if one is: with a span of
 * its own. Takes msg, returns it or the message that replaces it. Out of memory: it stays out. */
trp_msg *trpi_trailer_put(trp_ctx *ctx, trp_msg *msg);

#endif
