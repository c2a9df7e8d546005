/* receiver.h - receivers here whose mail has messages of a peer: the bytes that wait, and the
 * credit of the peer.
 */
#ifndef TRPI_REMOTE_RECEIVER_H
#define TRPI_REMOTE_RECEIVER_H

#include <stdatomic.h>

#include "actor/actor.h"
#include "base/table.h"
#include "remote/association/credit.h"
#include "remote/wire/frame.h"

typedef struct trpi_peer trpi_peer;
typedef struct trpi_conn trpi_conn;

/* receiver.c: an actor in whose mail are marks of one peer's messages, of all its lanes. */
typedef struct trpi_receiver {
    trpi_peer *peer;
    uint32_t slot, generation;
    atomic_uint references; /* a place of a lane's table, a mark; the last one frees: acq_rel */
    atomic_bool limited;    /* credit.limited; seq_cst, as waiting: receiver-I3 */
    atomic_uint_least64_t waiting; /* bytes that marks in its mail stand for */
    trpi_credit credit;            /* by peer->lock, as next */
    struct trpi_receiver *next;    /* in its bucket */
} trpi_receiver;

/* Bytes that a lane has told a receiver since its last mark. */
typedef struct trpi_inflow_place {
    uint32_t slot, generation; /* 0: free */
    uint64_t bytes;
    trpi_receiver *receiver; /* NULL: no mark yet */
    bool near;               /* it has more than its window: its limit is looked at */
    bool keep;               /* while the table is swept */
} trpi_inflow_place;

typedef struct trpi_inflow {
    trpi_table places;       /* of trpi_inflow_place, by slot; at most half full */
    trpi_inflow_place *last; /* of the message before; NULL: none */
} trpi_inflow;

/* ---- receiver.c ---- */
/* A message for it has come; within a batch of the connection, before it is told. false: its limit
 * waits for it already. */
bool trpi_receiver_take(trpi_conn *conn, uint32_t slot, uint32_t generation, size_t payload_bytes);
/* Its place, if the last call was for it; NULL: it has no mail, receiver-I1. */
static inline trpi_inflow_place *
trpi_receiver_last(const trpi_inflow *inflow, uint32_t slot, uint32_t generation)
{
    trpi_inflow_place *place = inflow->last;
    return place != NULL && place->slot == slot && place->generation == generation ? place : NULL;
}
/* Before so many bytes more, as they count, neither a mark nor its limit is due. The last call was
 * for it, as for the next. */
static inline uint64_t
trpi_receiver_room(const trpi_inflow *inflow, uint32_t slot, uint32_t generation)
{
    const trpi_inflow_place *place = trpi_receiver_last(inflow, slot, generation);
    return place == NULL ? UINT64_MAX
           : place->near || place->bytes >= TRPI_CREDIT_MARK_BYTES
               ? 0
               : TRPI_CREDIT_MARK_BYTES - place->bytes;
}
/* Count further messages for it, which have so many. */
static inline void
trpi_receiver_count(trpi_inflow *inflow, uint32_t slot, uint32_t generation, uint64_t bytes)
{
    trpi_inflow_place *place = trpi_receiver_last(inflow, slot, generation);
    if (place != NULL) {
        place->bytes += bytes;
    }
}
void trpi_receiver_asked(trpi_conn *conn, const trpi_frame *frame); /* CREDIT_ASK */

/* ---- inflow.c ---- */
void trpi_inflow_fini(trpi_inflow *inflow);
/* The place of a receiver in the table of a lane, by its recv lock; NULL: nothing waits there, or
 * it is not ours to count, or no memory. */
trpi_inflow_place *trpi_inflow_find(trpi_inflow *inflow, trp_ctx *ctx, uint32_t slot,
                                    uint32_t generation);
/* Find a receiver that has references, and take one; NULL: none. The caller holds peer->lock. */
trpi_receiver *trpi_receiver_find(trpi_peer *peer, uint32_t slot, uint32_t generation);
/* Find or make; NULL: no memory. Without locks, as the next. */
trpi_receiver *trpi_receiver_get(trpi_peer *peer, uint32_t slot, uint32_t generation);
void trpi_receiver_unref(trpi_receiver *receiver);

#endif
