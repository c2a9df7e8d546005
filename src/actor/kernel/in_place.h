/* in_place.h - turns of a proxy on the thread of an actor that tells another node. */
#ifndef TRPI_ACTOR_KERNEL_IN_PLACE_H
#define TRPI_ACTOR_KERNEL_IN_PLACE_H

#include <string.h>

#include "actor/kernel/run.h"
#include "base/wire.h"

/* Take the token of a proxy without mail, to deliver one message; then call one of the next two.
 * false: push the message instead. */
bool trpi_in_place_begin(trp_ctx *ctx, trpi_cell *proxy);
/* Deliver msg, which stays the caller's. true: call trpi_in_place_look(). */
bool trpi_in_place_deliver(trp_ctx *ctx, trpi_cell *proxy, trp_msg *msg);
enum trpi_in_place {
    TRPI_IN_PLACE_DONE,
    TRPI_IN_PLACE_LOOK,   /* done; look */
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
void trpi_in_place_look(trp_ctx *ctx, trpi_cell *proxy);

/* ---- messages that are gathered (trpi_gather) ---- */
/* Is there room for the record of a payload? */
static inline bool
trpi_gather_has_room(const trpi_gather *gather, size_t bytes)
{
    /* none of 0 bytes: their payload may be NULL */
    return bytes - 1 < TRPI_GATHER_BYTES &&
           (size_t)(gather->end - gather->at) >= TRPI_RECORD_BYTES + bytes;
}
/* Deliver what was gathered, look, and make room for one of so many bytes. false: there is none. */
bool trpi_gather_renew(trp_ctx *ctx, size_t bytes);

/* Gather a message that is like those that the running actor told another node before. false:
 * nothing was done. */
static inline __attribute__((always_inline)) bool
trpi_tell_gathered(trp_ctx *ctx, trp_ref to, const trp_type *type, const void *payload,
                   size_t bytes)
{
    trpi_gather *gather = &ctx->gather;

    if (type != gather->type || to.slot != gather->to.slot || to.node != gather->to.node ||
        to.generation != gather->to.generation || ctx->fast_path_node != TRPI_NODE_SELF) {
        return false;
    }
    if ((type->flags & TRP_TYPE_VARIABLE) == 0) {
        bytes = type->bytes;
    } else if (bytes < type->bytes) {
        return false;
    }
    if (!trpi_gather_has_room(gather, bytes) && !trpi_gather_renew(ctx, bytes)) {
        return false;
    }
    trpi_put_u32(gather->at, (uint32_t)bytes);
    memcpy(gather->at + TRPI_RECORD_BYTES, payload, bytes);
    gather->at += TRPI_RECORD_BYTES + bytes;
    gather->count++;
    return true;
}

#endif
