/* route_again.c - the usual message of a teller: like the one before it, and small.
 *
 * Why.    A payload that joins the MANY frame of the one before needs no look at holds, lanes and
 *         names. All checks come before the first effect; what fails one goes the general way
 *         (route.c).
 *         A teller of several gathers them as records (in_place.c): room for them is reserved, and
 *         they come back together, into the last MANY frame or one of their own.
 * Must hold. route-O3 to route-O5 (route.c).
 * Tests.  tests/unit/remote/remote_test.c, full_lane_test.c
 */
#include <string.h>

#include "base/assert.h"
#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/association/context.h"
#include "remote/association/hold.h"
#include "remote/association/peer.h"
#include "remote/association/route.h"
#include "remote/wire/codec.h"

_Static_assert(TRPI_RECORD_BYTES == TRPI_MANY_RECORD_BYTES, "records go as they are");
_Static_assert(TRPI_GATHER_BYTES >= TRPI_MANY_BYTES_MAX, "they fill a frame");

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

/* ---- gathered messages ----------------------------------------------------------------------- */

/* Room for records behind the header of a MANY frame. */
enum { RECORDS_MAX = TRPI_MANY_BYTES_MAX - TRPI_FRAME_HEADER_BYTES - TRPI_USER_FIXED_BYTES };

size_t
trpi_route_gather(trpi_route *route, size_t need)
{
    enum trpi_lane lane = (enum trpi_lane)route->last_lane;
    const trpi_batch *batch = &route->batches[lane];
    trpi_peer *peer = route->peer;
    if (batch->last.type == NULL || route->remote->traces_messages) {
        return 0; /* handed over: the next one has a frame of its own; or each has its line */
    }
    size_t used = batch->last.many_at == SIZE_MAX ? TRPI_MANY_BYTES_MAX
                                                  : batch->frames.count - batch->last.many_at;
    size_t room = used + need <= TRPI_MANY_BYTES_MAX ? TRPI_MANY_BYTES_MAX - used : RECORDS_MAX;
    if (need > room || route->remote->options.large_threshold_bytes < TRPI_MANY_BYTES_MAX) {
        return 0; /* a large one would take another lane */
    }
    size_t others = trpi_peer_reserve(peer, room);
    if (others + route->admitted + trpi_lane_bytes_acquire(&peer->lanes[lane]) + room <=
        trpi_lane_admit_max(route->remote, lane)) {
        return room;
    }
    trpi_peer_unreserve(peer, room);
    return 0;
}

/* Begin a MANY frame behind a message that is like these. false: no memory. */
static bool
many_begin(trpi_batch *batch, const trp_msg *msg)
{
    size_t at = batch->frames.count;
    trpi_message message = { 0 };
    message.to_slot = msg->priv_to_slot;
    message.to_generation = msg->priv_to_generation;
    message.sender = trpi_route_sender_of(msg);
    message.wire_id = trpi_type_wire_id(msg->priv_type);
    message.serializer = batch->last.serializer_id;
    if (trpi_many_begin(&batch->frames, &message, batch->last.sender_code) != TRP_OK) {
        return false;
    }
    batch->last.many_at = at;
    return true;
}

bool
trpi_route_gathered(trpi_route *route, const trp_msg *msg, const trpi_gathered *gathered)
{
    enum trpi_lane lane = (enum trpi_lane)route->last_lane;
    trpi_batch *batch = &route->batches[lane];
    size_t before = batch->frames.count, at = batch->last.many_at;
    if (!trpi_route_is_like_last(batch, trp_msg_type(msg), msg) ||
        (batch->last.serializer != NULL) != gathered->carries || trpi_peer_holds_any(route->peer) ||
        batch->announced_epoch != trpi_lane_epoch(&route->peer->lanes[lane]) ||
        atomic_load_explicit(&route->remote->stopped, memory_order_relaxed)) {
        return false;
    }
    bool joins = at != SIZE_MAX && before - at + gathered->bytes <= TRPI_MANY_BYTES_MAX;
    if (!joins && !many_begin(batch, msg)) {
        return false;
    }
    if (trpi_buffer_append(&batch->frames, gathered->records, gathered->bytes,
                           TRPI_BUFFER_NO_LIMIT) != TRP_OK) {
        batch->frames.count = before;
        batch->last.many_at = at;
        return false;
    }
    trpi_put_u32(batch->frames.data + batch->last.many_at,
                 (uint32_t)(batch->frames.count - batch->last.many_at - TRPI_FRAME_HEADER_BYTES));
    batch->messages += gathered->count;
    route->kept += gathered->granted; /* route-O3: until they are handed over */
    return true;
}

/* In a MANY frame, from and to our own node and that one. */
static trpi_node_map
map_of(const trpi_route *route)
{
    return (trpi_node_map){ .serializers = route->remote->serializers,
                            .sending = TRPI_NODE_SELF,
                            .receiving = route->node,
                            .arg = route->remote,
                            .get = trpi_route_node_get };
}

bool
trpi_route_carry(void *route, const trpi_carrier *what, trpi_buffer *out)
{
    trpi_node_map map = map_of(route);
    size_t before = out->count;
    if (what->type != &trpi_entity_envelope_type || trpi_entity_encode(what, &map, out) != TRP_OK) {
        return false;
    }
    out->count = map.third_count == 0 ? out->count : before;
    return map.third_count == 0;
}

trp_err
trpi_route_restore(void *route, const trp_type *type, const uint8_t *record, size_t bytes,
                   trpi_buffer *out)
{
    trpi_node_map map = map_of(route);
    trpi_assert(type == &trpi_entity_envelope_type);
    return trpi_decode(&trpi_serializer_entity, type, record, bytes, &map, out);
}

void
trpi_route_reserve_each(trpi_route *route, size_t granted, uint32_t count, size_t bytes)
{
    (void)trpi_peer_reserve(route->peer, count * trpi_route_reservation(0) + bytes);
    trpi_peer_unreserve(route->peer, granted);
}
