/* audience.c - who of this node subscribes to what.
 *
 * Shape.   key -> seats [ref, ref, ...], dense; actor -> list of its seats
 * Must hold.
 *   audience-A1  refs[i] and places[i] are of one actor, and places[i]->index is i.
 *   audience-A2  An actor is in by_ref exactly while it has a seat.
 * Cost.    Adding walks the shorter of the actor's seats and the key's.
 * Tests.   tests/unit/cluster/audience_test.c
 */
#include "cluster/pubsub/audience.h"

#include <string.h>

#include <troupe/pubsub.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/hash.h"

typedef struct holder {
    trp_ref ref;
    trpi_seat *first;
    uint32_t count;
} holder;

static bool
holder_is_empty(const void *element)
{
    return ((const holder *)element)->first == NULL;
}

static uint64_t
ref_hash(trp_ref ref)
{
    uint32_t words[2] = { ref.slot, ref.generation };
    return trpi_hash(words, sizeof words, 0);
}

static uint64_t
holder_hash(const void *arg, const void *element)
{
    (void)arg;
    return ref_hash(((const holder *)element)->ref);
}

static bool
holder_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trp_ref_equal(((const holder *)element)->ref, *(const trp_ref *)key) != 0;
}

static const trpi_table_kind holders = { sizeof(holder), holder_is_empty, holder_hash,
                                         holder_is_key };

static bool
seats_is_empty(const void *element)
{
    return *(trpi_seats *const *)element == NULL;
}

static uint64_t
seats_hash(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_seats *const *)element)->hash;
}

static bool
seats_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trpi_pubsub_key_equal(&(*(trpi_seats *const *)element)->key, key);
}

static const trpi_table_kind keys = { sizeof(trpi_seats *), seats_is_empty, seats_hash,
                                      seats_is_key };

/* ---- looking --------------------------------------------------------------------------------- */

trpi_seats *
trpi_audience_find(const trpi_audience *audience, const trpi_pubsub_key *key, uint64_t hash)
{
    trpi_seats **found = trpi_table_find(&keys, &audience->by_key, NULL, hash, key);
    return found == NULL ? NULL : *found;
}

static holder *
holder_find(const trpi_audience *audience, trp_ref ref)
{
    return trpi_table_find(&holders, &audience->by_ref, NULL, ref_hash(ref), &ref);
}

trpi_seat *
trpi_audience_any(const trpi_audience *audience, trp_ref ref)
{
    const holder *h = holder_find(audience, ref);
    return h == NULL ? NULL : h->first;
}

trpi_seat *
trpi_audience_seat(const trpi_audience *audience, const trpi_seats *seats, trp_ref ref)
{
    const holder *h = holder_find(audience, ref);
    if (h == NULL) {
        return NULL;
    }
    if (h->count <= seats->refs_count) {
        for (trpi_seat *seat = h->first; seat != NULL; seat = seat->next) {
            if (seat->seats == seats) {
                return seat;
            }
        }
        return NULL;
    }
    for (uint32_t i = 0; i < seats->refs_count; i++) {
        if (trp_ref_equal(seats->refs[i], ref)) {
            return seats->places[i];
        }
    }
    return NULL;
}

bool
trpi_audience_next(const trpi_audience *audience, uint32_t *position, trp_ref *ret_ref)
{
    const holder *h = trpi_table_next(&holders, &audience->by_ref, position);
    if (h != NULL) {
        *ret_ref = h->ref;
    }
    return h != NULL;
}

trpi_seats *
trpi_audience_next_key(const trpi_audience *audience, uint32_t *position)
{
    trpi_seats *const *found = trpi_table_next(&keys, &audience->by_key, position);
    return found == NULL ? NULL : *found;
}

/* ---- changing -------------------------------------------------------------------------------- */

static void
seats_free(trpi_seats *seats)
{
    for (uint32_t i = 0; i < seats->places_count; i++) {
        trpi_free(seats->places[i]);
    }
    trpi_free(seats->places);
    trpi_free(seats->refs);
    trpi_free(seats);
}

/* The seats and a copy of the key's bytes in one block. */
static trpi_seats *
seats_new(const trpi_pubsub_key *key)
{
    trpi_seats *seats = trpi_alloc(sizeof *seats + key->name_bytes + key->group_bytes);
    if (seats != NULL) {
        char *bytes = (char *)(seats + 1);
        memcpy(bytes, key->name, key->name_bytes);
        if (key->group_bytes > 0) {
            memcpy(bytes + key->name_bytes, key->group, key->group_bytes);
        }
        seats->key = *key;
        seats->key.name = bytes;
        seats->key.group = bytes + key->name_bytes;
        seats->hash = trpi_pubsub_key_hash(key);
    }
    return seats;
}

/* Find or add them. NULL: no memory. */
static trpi_seats *
seats_of(trpi_audience *audience, const trpi_pubsub_key *key)
{
    trpi_seats *seats = trpi_audience_find(audience, key, trpi_pubsub_key_hash(key));
    if (seats != NULL || trpi_table_reserve(&keys, &audience->by_key, NULL,
                                            audience->by_key.count + 1ull) != TRP_OK) {
        return seats;
    }
    seats = seats_new(key);
    if (seats != NULL) {
        trpi_seats **place =
            trpi_table_place(&keys, &audience->by_key, NULL, seats->hash, &seats->key);
        *place = seats;
        audience->by_key.count++;
    }
    return seats;
}

static void
flags_set(trpi_seat *seat, uint32_t flags)
{
    seat->seats->askers += (flags & TRP_SUBSCRIBE_TELLS_MISSED) != 0;
    seat->seats->askers -= (seat->flags & TRP_SUBSCRIBE_TELLS_MISSED) != 0;
    seat->flags = flags;
}

/* Memory for one more seat is there. */
static void
seat_take(trpi_audience *audience, trpi_seats *seats, trpi_seat *seat, trp_ref ref, uint32_t flags,
          bool *ret_first)
{
    holder *h = trpi_table_place(&holders, &audience->by_ref, NULL, ref_hash(ref), &ref);
    *ret_first = h->first == NULL;
    audience->by_ref.count += h->first == NULL;
    h->ref = ref;
    h->count++;
    seat->next = h->first;
    if (h->first != NULL) {
        h->first->previous = seat;
    }
    h->first = seat;
    seat->seats = seats;
    seat->index = seats->refs_count;
    seats->refs[seats->refs_count++] = ref; /* audience-A1 */
    seats->places[seats->places_count++] = seat;
    flags_set(seat, flags);
}

trp_err
trpi_audience_add(trpi_audience *audience, const trpi_pubsub_key *key, trp_ref ref, uint32_t flags,
                  trpi_seats **ret_seats, bool *ret_first)
{
    trpi_seats *seats = seats_of(audience, key);
    if (seats == NULL) {
        return TRP_ENOMEM;
    }
    trpi_seat *seat = trpi_audience_seat(audience, seats, ref);
    *ret_seats = seats;
    *ret_first = false;
    if (seat != NULL) {
        flags_set(seat, flags);
        return TRP_EEXIST;
    }
    trp_err err = TRPI_ARRAY_RESERVE(seats, refs, 1, TRP_TOPIC_SUBSCRIBERS_MAX);
    err = err != TRP_OK ? err : TRPI_ARRAY_RESERVE(seats, places, 1, TRP_TOPIC_SUBSCRIBERS_MAX);
    err = err != TRP_OK ? err
                        : trpi_table_reserve(&holders, &audience->by_ref, NULL,
                                             audience->by_ref.count + 1ull);
    seat = err == TRP_OK ? trpi_alloc(sizeof *seat) : NULL;
    if (seat == NULL) {
        trpi_audience_tidy(audience, seats);
        return err == TRP_OK ? TRP_ENOMEM : err;
    }
    seat_take(audience, seats, seat, ref, flags, ret_first);
    return TRP_OK;
}

bool
trpi_audience_leave(trpi_audience *audience, trpi_seat *seat, trp_ref ref)
{
    trpi_seats *seats = seat->seats;
    holder *h = holder_find(audience, ref);
    flags_set(seat, 0);
    uint32_t last = --seats->refs_count;
    seats->places_count--;
    seats->refs[seat->index] = seats->refs[last];
    seats->places[seat->index] = seats->places[last];
    seats->places[seat->index]->index = seat->index;
    if (seat->previous != NULL) {
        seat->previous->next = seat->next;
    } else {
        h->first = seat->next;
    }
    if (seat->next != NULL) {
        seat->next->previous = seat->previous;
    }
    trpi_free(seat);
    if (--h->count > 0) {
        return false;
    }
    h->first = NULL;
    trpi_table_remove(&holders, &audience->by_ref, NULL, h); /* audience-A2 */
    return true;
}

void
trpi_audience_tidy(trpi_audience *audience, trpi_seats *seats)
{
    if (seats->refs_count == 0) {
        trpi_table_remove(
            &keys, &audience->by_key, NULL,
            trpi_table_place(&keys, &audience->by_key, NULL, seats->hash, &seats->key));
        seats_free(seats);
    }
}

void
trpi_audience_fini(trpi_audience *audience)
{
    for (uint32_t i = 0; i < audience->by_key.capacity; i++) {
        trpi_seats **seats = trpi_table_at(&keys, &audience->by_key, i);
        if (*seats != NULL) {
            seats_free(*seats);
        }
    }
    trpi_table_fini(&audience->by_key);
    trpi_table_fini(&audience->by_ref);
}
