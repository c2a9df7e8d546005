/* route_again.c - the usual message of a teller: like the one before it, and small.
 *
 * Why.    A payload that joins the MANY frame of the one before needs no look at holds, lanes and
 *         names. All checks come before the first effect; what fails one goes the general way
 *         (route.c).
 * Must hold. route-O3 to route-O5 (route.c).
 * Tests.  tests/unit/remote/remote_test.c, full_lane_test.c
 */
#include <string.h>

#include "base/assert.h"
#include "base/wire.h"
#include "remote/association/context.h"
#include "remote/association/hold.h"
#include "remote/association/peer.h"
#include "remote/association/route.h"
#include "remote/wire/codec.h"

/* Is there room in the lane beside what waits? bounded: for trp_try_tell(). */
static inline bool
has_room(const trpi_route *route, enum trpi_lane lane, size_t promise, bool bounded)
{
    size_t others = trpi_peer_reserved(route->peer) + route->admitted;
    size_t most = bounded ? trpi_lane_admit_max(route->remote, lane)
                          : trpi_lane_bytes_max(route->remote, lane);
    return others + trpi_lane_bytes_acquire(&route->peer->lanes[lane]) + promise <= most;
}

bool
trpi_route_again(trpi_route *route, const trp_msg *msg, const void *payload, size_t bytes,
                 bool bounded)
{
    enum trpi_lane lane = (enum trpi_lane)route->last_lane;
    trpi_batch *batch = &route->batches[lane];
    const trpi_remote *remote = route->remote;
    size_t at = batch->last.many_at, promise = trpi_route_reservation(bytes);
    /* a message above the threshold changes the lane; in a batch that was handed over type is NULL,
     * and while one was not, the lanes of recipients stay as they are */
    if (!trpi_route_is_like_last(batch, trp_msg_type(msg), msg) || at == SIZE_MAX ||
        batch->last.serializer != NULL || bytes > remote->options.large_threshold_bytes ||
        trpi_peer_holds_any(route->peer) ||
        batch->announced_epoch != trpi_lane_epoch(&route->peer->lanes[lane]) ||
        atomic_load_explicit(&remote->stopped, memory_order_relaxed) || remote->traces_messages ||
        batch->frames.count - at + TRPI_MANY_RECORD_BYTES + bytes > TRPI_MANY_BYTES_MAX ||
        batch->frames.capacity - batch->frames.count < TRPI_MANY_RECORD_BYTES + bytes ||
        !has_room(route, lane, promise, bounded)) {
        return false;
    }
    uint8_t *record = batch->frames.data + batch->frames.count;
    trpi_put_u32(record, (uint32_t)bytes);
    memcpy(record + TRPI_MANY_RECORD_BYTES, payload, bytes);
    batch->frames.count += TRPI_MANY_RECORD_BYTES + bytes;
    trpi_put_u32(batch->frames.data + at,
                 (uint32_t)(batch->frames.count - at - TRPI_FRAME_HEADER_BYTES));
    batch->messages++;
    route->admitted += promise;
    return true;
}
