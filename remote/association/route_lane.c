/* route_lane.c - which lane a message takes: its recipient's ordinary one, or the large one.
 *
 * Must hold.
 *   route-lane-G1  A recipient enters the large lane with its first large message, behind a fence,
 *       and all its messages take it until the era ends (fence.c).
 *   route-lane-G2  A route holds something for the large lane only while it is pinned.
 * Limits. TRPI_LARGE_PLACES; recipients that share one take the same way.
 * Tests.  tests/unit/remote/lanes_test.c
 */
#include "remote/association/route.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "remote/association/peer.h"

enum { LARGE_WORDS = TRPI_LARGE_PLACES / 64 };

static void
large_places_clear(atomic_uint_least64_t *words)
{
    for (int i = 0; i < LARGE_WORDS; i++) {
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    }
}

/* route-lane-G1. Take the large lane for slot from now on, if it takes it already in this era or
 * this message is large. */
static bool
large_enter(trpi_route *route, uint32_t slot, size_t bytes)
{
    trpi_peer *peer = route->peer;
    atomic_uint_least64_t *words = atomic_load_explicit(&route->large, memory_order_relaxed);
    uint64_t place = trpi_hash_u64(slot) % TRPI_LARGE_PLACES;
    if (route->touched != 0) {
        (void)trpi_route_hand_over(route); /* the fence stands behind the batches */
    }
    if (words == NULL) {
        words = trpi_alloc(LARGE_WORDS * sizeof *words);
        if (words == NULL) {
            return false; /* no memory: it goes with the others, in order */
        }
        large_places_clear(words);
        atomic_store_explicit(&route->large, words, memory_order_release); /* for is_large() */
    }
    pthread_mutex_lock(&peer->lock);
    if (route->era != trpi_large_era(&peer->large)) {
        large_places_clear(words);
        route->era = trpi_large_era(&peer->large);
    }
    bool large = trpi_route_is_large(route, slot);
    if (!large && bytes > route->remote->options.large_threshold_bytes &&
        route->spread == trpi_agreed_spread(&peer->agreed) &&
        trpi_fence_append(peer, trpi_lane_of(route->spread, slot)) == TRP_OK) {
        atomic_fetch_or_explicit(&words[place / 64], UINT64_C(1) << place % 64,
                                 memory_order_relaxed);
        large = true;
        trpi_large_use(&peer->large);
    }
    if (large && !route->pinned) { /* it is, when what was to be sent before could not be */
        route->pinned = true;
        trpi_large_pin(&peer->large);
    }
    pthread_mutex_unlock(&peer->lock);
    return large;
}

enum trpi_lane
trpi_route_lane(trpi_route *route, uint32_t slot, size_t bytes)
{
    if (route->touched == 0) {
        route->spread = trpi_agreed_spread(&route->peer->agreed);
    }
    if (route->spread == 0) {
        return TRPI_LANE_ORDINARY;
    }
    bool known = trpi_route_is_large(route, slot);
    if ((known && route->pinned) ||
        ((known || bytes > route->remote->options.large_threshold_bytes) &&
         large_enter(route, slot, bytes))) {
        return TRPI_LANE_LARGE;
    }
    return trpi_lane_of(route->spread, slot);
}

enum trpi_lane
trpi_route_lane_guess(const trpi_route *route, uint32_t slot, size_t bytes)
{
    uint32_t spread = trpi_agreed_spread(&route->peer->agreed);
    return spread == 0 ? TRPI_LANE_ORDINARY
           : bytes > route->remote->options.large_threshold_bytes ||
                   trpi_route_is_large(route, slot)
               ? TRPI_LANE_LARGE
               : trpi_lane_of(spread, slot);
}
