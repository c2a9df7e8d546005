/* route_hold.c - the side of a proxy's run: messages for a recipient that has no credit.
 *
 * Tests.  tests/unit/remote/pressure_test.c
 */
#include "remote/association/hold.h"

#include "remote/association/route.h"

bool
trpi_hold_enter(trpi_route *route, uint32_t slot, uint32_t generation)
{
    trpi_peer *peer = route->peer;
    bool first = false;
    pthread_mutex_lock(&peer->lock);
    bool held = trpi_hold_is_held(route, slot, generation, &first);
    pthread_mutex_unlock(&peer->lock);
    if (!first) {
        return held;
    }
    if (route->touched != 0) {
        (void)trpi_route_hand_over(route); /* hold-H1 */
    }
    pthread_mutex_lock(&peer->lock);
    held =
        trpi_hold_own(route, slot, generation); /* it may have ended meanwhile, or be a new one */
    pthread_mutex_unlock(&peer->lock);
    return held;
}

enum trpi_held
trpi_hold_take(trpi_route *route, uint32_t slot, uint32_t generation, const trpi_buffer *frame,
               bool promised)
{
    trpi_peer *peer = route->peer;
    trpi_deferred deferred = { 0 };
    pthread_mutex_lock(&peer->lock);
    enum trpi_held held = trpi_hold_put(route, slot, generation, frame, promised);
    if (held == TRPI_HELD) {
        trpi_peer_pump(peer, &deferred);
    }
    trpi_peer_unlock(peer, &deferred);
    return held;
}
