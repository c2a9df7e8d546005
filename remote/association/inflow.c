/* inflow.c - receivers of a peer's messages that have mail: found, counted, given back.
 *
 * A peer has a table of receivers with marks in their mail; each lane has a table of what it has
 * told a receiver since its last mark, which belongs to its recv lock. receiver.c uses both.
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

static bool
place_is_empty(const void *element)
{
    return ((const trpi_inflow_place *)element)->slot == 0;
}

static uint64_t
place_hash(const void *arg, const void *element)
{
    (void)arg;
    return trpi_hash_u64(((const trpi_inflow_place *)element)->slot);
}

static bool
place_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return ((const trpi_inflow_place *)element)->slot == *(const uint32_t *)key;
}

static const trpi_table_kind by_slot = { sizeof(trpi_inflow_place), place_is_empty, place_hash,
                                         place_is_key };

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
    uint32_t at = 0;
    trpi_inflow_place *place;
    while ((place = trpi_table_next(&by_slot, &inflow->places, &at)) != NULL) {
        place_drop(place);
    }
    trpi_table_fini(&inflow->places);
    inflow->last = NULL;
}

/* Room for one more: places of receivers that have no mail any more are given back. */
static bool
make_room(trpi_inflow *inflow, trp_ctx *ctx)
{
    trpi_table *before = &inflow->places, after = { 0 };
    trpi_inflow_place *place;
    uint32_t kept = 0, at = 0;
    if (before->count < before->capacity / 2) {
        return true;
    }
    while ((place = trpi_table_next(&by_slot, before, &at)) != NULL) {
        place->keep = trpi_inbound_mail(ctx, place->slot, place->generation) == TRPI_MAIL_WAITS;
        kept += place->keep;
    }
    uint32_t size = before->capacity == 0          ? PLACES_FIRST
                    : kept >= before->capacity / 4 ? before->capacity * 2
                                                   : before->capacity;
    if (trpi_table_reserve(&by_slot, &after, NULL, size / 4 * 3) != TRP_OK) {
        return false;
    }
    at = 0;
    while ((place = trpi_table_next(&by_slot, before, &at)) != NULL) {
        if (place->keep) {
            *(trpi_inflow_place *)trpi_table_add(&by_slot, &after, NULL, trpi_hash_u64(place->slot),
                                                 &place->slot) = *place;
        } else {
            place_drop(place);
        }
    }
    trpi_table_fini(before);
    *inflow = (trpi_inflow){ after, NULL };
    return true;
}

/* NULL: nothing waits there, or it is not ours to count, or no memory. */
trpi_inflow_place *
trpi_inflow_find(trpi_inflow *inflow, trp_ctx *ctx, uint32_t slot, uint32_t generation)
{
    uint64_t hash = trpi_hash_u64(slot);
    trpi_inflow_place *place = trpi_table_find(&by_slot, &inflow->places, NULL, hash, &slot);
    if (place != NULL && place->generation == generation) {
        return inflow->last = place;
    }
    if (slot == 0 || trpi_inbound_mail(ctx, slot, generation) != TRPI_MAIL_WAITS) {
        return NULL; /* receiver-I1 */
    }
    if (place != NULL) { /* of an actor that has ended */
        place_drop(place);
    } else if (!make_room(inflow, ctx)) {
        return NULL;
    } else {
        place = trpi_table_add(&by_slot, &inflow->places, NULL, hash, &slot);
    }
    *place = (trpi_inflow_place){ .slot = slot, .generation = generation };
    return inflow->last = place;
}
