/* in_place.h - turns of a proxy on the thread of an actor that tells another node. */
#ifndef TRPI_ACTOR_KERNEL_IN_PLACE_H
#define TRPI_ACTOR_KERNEL_IN_PLACE_H

#include "actor/kernel/run.h"

/* Take the token of a proxy without mail, to deliver one message; then call one of the next two.
 * false: push the message instead. */
bool trpi_in_place_begin(trp_ctx *ctx, trpi_cell *proxy);
/* Deliver msg, which stays the caller's. true: the caller is to count what was delivered, and to
 * call trpi_in_place_look(). */
bool trpi_in_place_deliver(trp_ctx *ctx, trpi_cell *proxy, trp_msg *msg);
enum trpi_in_place {
    TRPI_IN_PLACE_DONE,
    TRPI_IN_PLACE_LOOK,   /* done; count it and look */
    TRPI_IN_PLACE_NO_ROOM /* nothing was delivered: ask for a reservation */
};
/* A payload where its teller has it. */
typedef struct trpi_in_place_payload {
    const trp_type *type;
    const void *data;
    size_t bytes;
} trpi_in_place_payload;
/* Deliver a message that was not made. bounded: if there is room for trp_try_tell(). */
enum trpi_in_place trpi_in_place_tell(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, trp_ref sender,
                                      const trpi_in_place_payload *what, bool bounded);
/* The chain is no chain: its proxy has messages of this run that are not flushed. */
static inline bool
trpi_in_place_is_owed(const trpi_chain *chain)
{
    return chain->first == NULL;
}
/* Flush them; the caller has closed the entry. */
void trpi_in_place_flush(trp_ctx *ctx, uint32_t index);
/* TRPI_CHAIN_MSGS_MAX were delivered since the last look, and more may follow. */
void trpi_in_place_look(trp_ctx *ctx, uint32_t index);

#endif
