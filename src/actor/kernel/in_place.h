/* in_place.h - turns of a proxy on the thread of an actor that tells another node. */
#ifndef TRPI_ACTOR_KERNEL_IN_PLACE_H
#define TRPI_ACTOR_KERNEL_IN_PLACE_H

#include "actor/kernel/run.h"

/* Take the token of a proxy without mail, to deliver one message; then call one of the next two.
 * false: push the message instead. */
bool trpi_in_place_begin(trp_ctx *ctx, trpi_cell *proxy);
/* Deliver msg, which stays the caller's. true: so much waits that the caller is to flush its chains
 * now. */
bool trpi_in_place_deliver(trp_ctx *ctx, trpi_cell *proxy, trp_msg *msg);
/* The same for a message that was not made. Borrows payload. */
bool trpi_in_place_tell(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, trp_ref sender,
                        const trp_type *type, const void *payload, size_t bytes);
/* Deliver nothing, and flush what is owed: there was no room for the message beside it. */
void trpi_in_place_cancel(trp_ctx *ctx, trpi_cell *proxy);
/* The chain is no chain: its proxy has messages of this run that are not flushed. */
static inline bool
trpi_in_place_is_owed(const trpi_chain *chain)
{
    return chain->first == NULL;
}
/* Flush them; the caller has closed the entry. */
void trpi_in_place_flush(trp_ctx *ctx, uint32_t index);

#endif
