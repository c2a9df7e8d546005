/* inflow.c - receivers of a peer's messages that have mail: found, counted, given back.
 *
 * A peer has a table of receivers with marks in their mail; each lane has a table of what it has
 * told a receiver since its last mark, which belongs to its recv lock. What is done with them:
 * receiver.c.
 * Tests.  tests/unit/remote/pressure_test.c
 */
#include "remote/association/receiver.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "remote/association/peer.h"

enum { PLACES_FIRST = 16, BUCKETS = 1024 };

static trpi_receiver **
bucket_of(trpi_peer *peer, uint32_t slot)
{
    return &peer->receivers[trpi_hash_u64(slot) % BUCKETS];
}

/* A counted one that somebody counts already; NULL: none. The caller holds peer->lock. */
trpi_receiver *
trpi_receiver_find(trpi_peer *peer, uint32_t slot, uint32_t generation)
{
    trpi_receiver *receiver = peer->receivers != NULL ? *bucket_of(peer, slot) : NULL;
    for (; receiver != NULL; receiver = receiver->next) {
        unsigned references = atomic_load_explicit(&receiver->references, memory_order_relaxed);
        while (receiver->slot == slot && receiver->generation == generation && references > 0) {
            if (atomic_compare_exchange_weak_explicit(&receiver->references, &references,
                                                      references + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                return receiver;
            }
        }
    }
    return NULL;
}

/* Of all lanes of the peer. NULL: no memory. */
trpi_receiver *
trpi_receiver_get(trpi_peer *peer, uint32_t slot, uint32_t generation)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->receivers == NULL) {
        peer->receivers = trpi_alloc(BUCKETS * sizeof *peer->receivers);
    }
    trpi_receiver *receiver = trpi_receiver_find(peer, slot, generation);
    if (receiver == NULL && peer->receivers != NULL) {
        receiver = trpi_alloc(sizeof *receiver);
        if (receiver != NULL) {
            trpi_receiver **bucket = bucket_of(peer, slot);
            receiver->peer = peer;
            receiver->slot = slot;
            receiver->generation = generation;
            atomic_init(&receiver->references, 1);
            receiver->next = *bucket;
            *bucket = receiver;
        }
    }
    pthread_mutex_unlock(&peer->lock);
    return receiver;
}

void
trpi_receiver_unref(trpi_receiver *receiver)
{
    trpi_peer *peer = receiver->peer;
    if (atomic_fetch_sub_explicit(&receiver->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    trpi_receiver **at = bucket_of(peer, receiver->slot);
    while (*at != receiver) {
        at = &(*at)->next;
    }
    *at = receiver->next;
    peer->receivers_limited -= receiver->credit.limited;
    pthread_mutex_unlock(&peer->lock);
    trpi_free(receiver);
}

static trpi_inflow_place *
place_of(trpi_inflow *inflow, uint32_t slot)
{
    uint32_t at = (uint32_t)trpi_hash_u64(slot) & (inflow->size - 1);
    while (inflow->places[at].slot != 0 && inflow->places[at].slot != slot) {
        at = (at + 1) & (inflow->size - 1);
    }
    return &inflow->places[at];
}

static void
place_drop(trpi_inflow_place *place)
{
    if (place->receiver != NULL) {
        trpi_receiver_unref(place->receiver);
    }
}

void
trpi_inflow_fini(trpi_inflow *inflow)
{
    for (uint32_t i = 0; i < inflow->size; i++) {
        place_drop(&inflow->places[i]);
    }
    trpi_free(inflow->places);
    *inflow = (trpi_inflow){ NULL, NULL, 0, 0 };
}

/* Room for one more: places of receivers that have no mail any more are given back. */
static bool
make_room(trpi_inflow *inflow, trp_system *system)
{
    if (inflow->count < inflow->size / 2) {
        return true;
    }
    trpi_inflow before = *inflow;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < before.size; i++) {
        trpi_inflow_place *place = &before.places[i];
        bool waits = place->slot != 0 &&
                     trpi_inbound_mail(system, place->slot, place->generation) == TRPI_MAIL_WAITS;
        place->keep = waits;
        kept += waits;
    }
    uint32_t size = before.size == 0          ? PLACES_FIRST
                    : kept >= before.size / 4 ? before.size * 2
                                              : before.size;
    trpi_inflow_place *places = trpi_alloc(size * sizeof *places);
    if (places == NULL) {
        return false;
    }
    *inflow = (trpi_inflow){ places, NULL, size, kept };
    for (uint32_t i = 0; i < before.size; i++) {
        if (before.places[i].keep) {
            *place_of(inflow, before.places[i].slot) = before.places[i];
        } else {
            place_drop(&before.places[i]);
        }
    }
    trpi_free(before.places);
    return true;
}

/* NULL: nothing waits there, or it is not ours to count, or no memory. */
trpi_inflow_place *
trpi_inflow_find(trpi_inflow *inflow, trp_system *system, uint32_t slot, uint32_t generation)
{
    trpi_inflow_place *place = inflow->size != 0 ? place_of(inflow, slot) : NULL;
    if (place != NULL && place->slot == slot && place->generation == generation) {
        return inflow->last = place;
    }
    if (slot == 0 || trpi_inbound_mail(system, slot, generation) != TRPI_MAIL_WAITS) {
        return NULL; /* receiver-I1 */
    }
    if (place != NULL && place->slot == slot) { /* of an actor that has ended */
        place_drop(place);
    } else if (!make_room(inflow, system)) {
        return NULL;
    } else {
        place = place_of(inflow, slot);
        inflow->count++;
    }
    *place = (trpi_inflow_place){ .slot = slot, .generation = generation };
    return inflow->last = place;
}
