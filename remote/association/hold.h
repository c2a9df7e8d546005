/* hold.h - what is kept for receivers elsewhere that have no credit. */
#ifndef TRPI_REMOTE_HOLD_H
#define TRPI_REMOTE_HOLD_H

#include "remote/association/effects.h"
#include "remote/association/peer.h"
#include "remote/association/routes.h"

/* ---- hold.c: what is kept for receivers elsewhere that have no credit ---- */
/* A CREDIT frame of that incarnation came. By peer->lock. */
void trpi_holds_credited(trpi_peer *peer, uint64_t uid, const trpi_credit_frame *word,
                         uint8_t flags);
/* Is anything held for the peer? Without a lock; acquire: pairs with the first hold. */
static inline bool
trpi_peer_holds_any(const trpi_peer *peer)
{
    return atomic_load_explicit(&peer->holding, memory_order_acquire);
}
enum trpi_held { TRPI_HELD_NOT, TRPI_HELD, TRPI_HELD_FULL };
/* May this recipient be held? Without a lock; true for others now and then. */
bool trpi_hold_may_be(const trpi_peer *peer, uint32_t slot);
static inline bool
trpi_hold_may(const trpi_peer *peer, uint32_t slot)
{
    /* with none, which is usual, nothing is hashed */
    return trpi_peer_holds_any(peer) && trpi_hold_may_be(peer, slot);
}
/* Is a recipient of route held? first: and a batch of the route may hold something for it.
 * By peer->lock, as the next two. */
bool trpi_hold_is_held(const trpi_route *route, uint32_t slot, uint32_t generation,
                       bool *ret_first);
/* The same, and from now on the route batches nothing for it. */
bool trpi_hold_own(trpi_route *route, uint32_t slot, uint32_t generation);
/* Keep frame, of one message for a recipient of route; NOT: it is not held. Takes no memory of
 * frame. */
enum trpi_held trpi_hold_put(trpi_route *route, uint32_t slot, uint32_t generation,
                             const trpi_buffer *frame, bool promised);

/* ---- route_hold.c ---- */
/* The same, without the lock, and what has credit goes. By the runner. */
enum trpi_held trpi_hold_take(trpi_route *route, uint32_t slot, uint32_t generation,
                              const trpi_buffer *frame, bool promised);
/* Is it held? Before it is, the batches of route are handed to their lanes. By the runner. */
bool trpi_hold_enter(trpi_route *route, uint32_t slot, uint32_t generation);
/* Any thread: has it something and no credit? and: is there room for so many bytes more? */
bool trpi_hold_slows(trpi_peer *peer, uint32_t slot);
bool trpi_hold_has_room(trpi_peer *peer, uint32_t slot, size_t bytes, bool refused);
/* Give lanes what has credit; ask where no word comes. The caller holds peer->lock, as for all of
 * the next. */
void trpi_holds_release(trpi_peer *peer, trpi_deferred *deferred);
void trpi_holds_tick(trpi_peer *peer, uint64_t now_ms, trpi_deferred *deferred);
/* The mail kept for uid (0: for all) becomes dead letters. */
void trpi_holds_drop(trpi_peer *peer, uint64_t uid, trp_dead_reason reason,
                     trpi_deferred *deferred);
bool trpi_holds_any(const trpi_peer *peer);
/* Was anything held for the peer, ever? */
static inline bool
trpi_holds_exist(const trpi_peer *peer)
{
    return peer->holds != NULL;
}
void trpi_holds_forget(trpi_peer *peer, const trpi_route *route); /* which ends */
void trpi_holds_info(const trpi_peer *peer, trpi_peer_info *info);
void trpi_holds_free(trpi_holds *holds); /* NULL is fine; nothing is in it */
void trpi_held_dead_letters(trpi_peer *peer, trpi_deferred *deferred); /* without the lock */

#endif
