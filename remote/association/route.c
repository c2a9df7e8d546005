/* route.c - from the actor room to a lane: proxies' messages, selections.
 *
 * Why.    A proxy's turn hands out up to some hundred messages one by one. They are encoded into
 *         batches of the route, without a lock, and handed to the lanes at the end of the turn
 *         under one lock; an empty lane takes the buffer of the batch itself.
 * Must hold.
 *   route-O1  The batches belong to the runner of the proxy: one thread at a time.
 *   route-O2  A message that cannot be sent is a dead letter with its reason; others are sent.
 *   route-O3  peer->reserved is the room that trp_try_tell() was granted and that is not handed
 *       over yet. Messages with reserved room are never dropped for want of it: tells count it as
 *       taken. A hand-over adds to what is queued before it takes from reserved, under peer->lock.
 *   route-O4  Only messages that follow one another in a batch share a MANY frame, so they keep
 *       their order.
 *   route-O5  No message for a recipient that is held (hold.c) is in a batch.
 * Limits. TRPI_ADMIT_BYTES_MAX for trp_try_tell(), frame_bytes_max (too-large), lane_bytes_max
 *         (lane-full), TRPI_BATCH_BYTES_MAX a hand-over.
 * Tests.  tests/unit/remote/remote_test.c, full_lane_test.c, lanes_test.c, garbage_test.c
 */
#include "remote/association/route.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "pattern/pattern.h"
#include "remote/association/conn.h"
#include "remote/association/hold.h"
#include "remote/association/refusal.h"
#include "remote/wire/compress.h"
#include "remote/wire/deployment.h"

static trp_dead_reason
reason_of(trp_err err)
{
    switch (err) {
    case TRP_EMSGSIZE:
        return TRP_DEAD_TOO_LARGE;
    case TRP_ENOMEM:
        return TRP_DEAD_NO_MEMORY;
    case TRP_EAGAIN:
        return TRP_DEAD_LANE_FULL;
    case TRP_EQUARANTINED:
        return TRP_DEAD_QUARANTINED;
    case TRP_ECLOSED:
        return TRP_DEAD_STALE;
    case TRP_ECONN:
    case TRP_ELIMIT:
        return TRP_DEAD_NOT_CONNECTED;
    default:
        return TRP_DEAD_NOT_ENCODABLE;
    }
}

/* Return the dead-letter reason of a message that could not be encoded. */
static trp_dead_reason
dead_reason_of(trp_err err)
{
    return err == TRP_ELIMIT ? TRP_DEAD_NOT_ENCODABLE : reason_of(err);
}

/* It would fail again. */
static bool
is_unsendable(trp_err err)
{
    return err == TRP_EMSGSIZE || err == TRP_ENOTYPE || err == TRP_ELIMIT || err == TRP_EINVAL;
}

static void
report_unsendable(trpi_remote *remote, const trp_type *type, size_t bytes, trp_err err)
{
    uint32_t suppressed = 0;
    if (is_unsendable(err) &&
        trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_TOO_LARGE, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "message not sent type=%s bytes=%zu reason=\"%s\" suppressed=%u", type->name,
                 bytes,
                 err == TRP_EMSGSIZE ? "larger than maximum-frame-size"
                 : err == TRP_ELIMIT ? "names too many other nodes"
                 : err == TRP_EINVAL ? "a ref in it was never given out"
                                     : "the type does not travel",
                 suppressed);
    }
}

/* Was the name of this type said on the lane's present connection? */
static inline bool
is_announced(const trpi_route *route, enum trpi_lane lane, const trp_type *type)
{
    const trpi_batch *batch = &route->batches[lane];
    const trpi_lane_state *state = &route->peer->lanes[lane];
    return batch->announced != NULL && batch->announced_epoch == trpi_lane_epoch(state) &&
           (batch->announced[type->number >> 3] & 1u << (type->number & 7u)) != 0;
}

/* The name goes before the first message of a type on each connection, so that the peer can
 * compare. */
static void
type_announce(trpi_route *route, enum trpi_lane lane, const trp_type *type)
{
    trpi_batch *batch = &route->batches[lane];
    uint32_t epoch = trpi_lane_epoch(&route->peer->lanes[lane]);
    if (batch->announced == NULL) {
        batch->announced = trpi_alloc(TRPI_ANNOUNCED_BYTES);
        if (batch->announced == NULL) {
            return; /* advice only */
        }
    }
    if (batch->announced_epoch != epoch) {
        memset(batch->announced, 0, TRPI_ANNOUNCED_BYTES);
        batch->announced_epoch = epoch;
    }
    uint8_t bit = (uint8_t)(1u << (type->number & 7u));
    if ((batch->announced[type->number >> 3] & bit) == 0 &&
        trpi_manifest_append(&batch->frames, trpi_type_wire_id(type->number), type->name) ==
            TRP_OK) {
        batch->announced[type->number >> 3] |= bit;
    }
}

/* The number of lanes has changed since the batches were filled: sort them again. Frames
 * that find no memory are left in lost. The caller holds peer->lock. */
static void
batches_sort(trpi_route *route, trpi_buffer *lost)
{
    trpi_buffer sorted[TRPI_LANE_COUNT];
    uint32_t messages = 0;
    uint8_t announced[TRPI_ANNOUNCED_BYTES] = { 0 };
    memset(sorted, 0, sizeof sorted);
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        trpi_batch *batch = &route->batches[i];
        trpi_frames_sort(trpi_agreed_spread(&route->peer->agreed), &batch->frames, sorted,
                         announced, lost);
        trpi_buffer_fini(&batch->frames);
        messages += batch->messages;
        batch->messages = 0;
    }
    for (int i = TRPI_LANE_ORDINARY; i < TRPI_LANE_COUNT; i++) {
        route->batches[i].frames = sorted[i];
        route->touched |= sorted[i].count > 0 ? 1u << i : 0;
    }
    route->batches[TRPI_LANE_ORDINARY].messages = messages;
}

/* Append a batch to its lane. The caller holds peer->lock. */
static trp_err
batch_append(trpi_route *route, enum trpi_lane lane)
{
    trpi_batch *batch = &route->batches[lane];
    if (batch->frames.count == 0) {
        return TRP_OK;
    }
    return atomic_load_explicit(&route->remote->closed, memory_order_relaxed)
               ? TRP_ECONN
               : trpi_peer_append(route->peer, lane, route->uid, &batch->frames, true);
}

/* After the append, without the lock. route-O2 */
static void
batch_over(trpi_route *route, enum trpi_lane lane, trp_err err)
{
    trpi_batch *batch = &route->batches[lane];
    if (err == TRP_OK) {
        trpi_traffic_messages_out_add(&route->peer->traffic, batch->messages);
        trpi_count(&route->remote->stats.frames_out, batch->messages);
    } else {
        trpi_lane_dead_letters(route->peer, route->node, &batch->frames, reason_of(err));
    }
    batch->messages = 0;
    batch->last.type = NULL;
    if (batch->frames.capacity > TRPI_BUFFER_KEPT_BYTES) {
        trpi_buffer_fini(&batch->frames);
    }
    trpi_buffer_clear(&batch->frames);
}

bool
trpi_route_hand_over(trpi_route *route)
{
    trpi_peer *peer = route->peer;
    trpi_deferred deferred = { 0 };
    trpi_buffer lost = { 0 };
    trp_err errs[TRPI_LANE_COUNT];
    bool above = false;
    pthread_mutex_lock(&peer->lock);
    if (route->touched != 0 && route->spread != trpi_agreed_spread(&peer->agreed)) {
        batches_sort(route, &lost);
    }
    for (uint32_t left = route->touched; left != 0; left &= left - 1) {
        enum trpi_lane lane = (enum trpi_lane)__builtin_ctz(left);
        errs[lane] = batch_append(route, lane);
        above = above || trpi_lane_is_over_high_water(&peer->lane_marks, lane);
    }
    atomic_fetch_sub_explicit(&peer->reserved, route->kept, memory_order_release); /* route-O3 */
    route->kept = route->admitted = 0;
    route->over_high_water = above;
    if (route->pinned) {
        route->pinned = false;
        trpi_large_unpin(&peer->large);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    for (; route->touched != 0; route->touched &= route->touched - 1) {
        enum trpi_lane lane = (enum trpi_lane)__builtin_ctz(route->touched);
        batch_over(route, lane, errs[lane]);
    }
    if (lost.count > 0) {
        trpi_lane_dead_letters(peer, route->node, &lost, TRP_DEAD_NO_MEMORY);
        trpi_buffer_fini(&lost);
    }
    return above;
}

/* For the log of messages. */
static void
message_trace(trpi_remote *remote, const trpi_peer *peer, const trp_type *type, const trp_msg *msg)
{
    trpi_message message = { 0 };
    message.to_slot = msg->priv_to_slot;
    message.payload_bytes = trp_msg_bytes(msg);
    trpi_message_trace(remote, peer, true, type, &message);
}

/* ---- one after the other --------------------------------------------------------------------- */

/* After a USER frame in batch: note the messages that may follow it in a MANY frame. */
static void
last_set(trpi_route *route, trpi_batch *batch, const trp_type *type,
         const trpi_serializer *serializer, const trp_msg *msg, const trpi_node_map *map,
         uint8_t flags)
{
    uint32_t fields_count = 0;
    bool raw = serializer == &trpi_serializer_raw && trpi_type_fields(type, &fields_count) == NULL;
    bool plain = raw || serializer == &trpi_serializer_text;
    uint32_t features = trpi_agreed_features(&route->peer->agreed);
    bool many = (features & TRPI_FEATURE_MANY) != 0 &&
                /* features are those of the present incarnation */
                route->uid != 0 && trpi_peer_seems_active_as(route->peer, route->uid) &&
                map->third_count == 0;
    batch->last.type = many ? type : NULL;
    batch->last.serializer = plain ? NULL : serializer;
    batch->last.serializer_id = serializer->id;
    batch->last.to_slot = msg->priv_to_slot;
    batch->last.to_generation = msg->priv_to_generation;
    batch->last.from_slot = msg->priv_from_slot;
    batch->last.from_generation = msg->priv_from_generation;
    batch->last.from_node = msg->priv_from_node_flags & 0xffffffu; /* without a trailer */
    batch->last.from_mask =
        (features & TRPI_FEATURE_TRACE) != 0 ? 0xffffffu | TRPI_MSG_TRAILER : 0xffffffu;
    batch->last.sender_code = flags & TRPI_MESSAGE_SENDER_MASK;
    batch->last.many_at = SIZE_MAX;
}

/* Encode one that is like the last. false: it needs a frame of its own. */
static bool
encode_again(trpi_route *route, trpi_batch *batch, const trp_type *type, const trp_msg *msg,
             size_t bytes)
{
    const void *payload = trp_msg_payload(msg);
    trpi_node_map map;
    map.sending = TRPI_NODE_SELF;
    map.receiving = route->node;
    map.serializers = route->remote->serializers;
    map.arg = route->remote;
    map.get = trpi_route_node_get;
    if (batch->last.many_at != SIZE_MAX &&
        trpi_many_append(&batch->frames, batch->last.many_at, batch->last.serializer, &map, type,
                         payload, bytes) == TRP_OK) {
        return true;
    }
    size_t at = batch->frames.count;
    trpi_message message = { 0 };
    message.to_slot = msg->priv_to_slot;
    message.to_generation = msg->priv_to_generation;
    message.sender = trpi_route_sender_of(msg);
    message.wire_id = trpi_type_wire_id(type->number);
    message.serializer = batch->last.serializer_id;
    if (trpi_many_begin(&batch->frames, &message, batch->last.sender_code) != TRP_OK ||
        trpi_many_append(&batch->frames, at, batch->last.serializer, &map, type, payload, bytes) !=
            TRP_OK) {
        batch->frames.count = at;
        return false;
    }
    batch->last.many_at = at;
    return true;
}

static void
message_batched(trpi_route *route, enum trpi_lane lane)
{
    trpi_batch *batch = &route->batches[lane];
    route->touched |= 1u << lane;
    route->last_lane = (uint8_t)lane;
    batch->messages++;
    if (batch->frames.count >= TRPI_BATCH_BYTES_MAX) {
        (void)trpi_route_hand_over(route); /* flush() says whether the lane is full */
    }
}

/* The lane of a message, and its room. */
typedef struct delivery {
    enum trpi_lane lane;
    size_t bytes; /* of payload */
    size_t waiting;
    size_t room;
} delivery;

/* The usual message: like the one before it, and there is room. */
static bool
deliver_again(trpi_route *route, const trp_type *type, const trp_msg *msg, const delivery *d)
{
    trpi_batch *batch = &route->batches[d->lane];
    const trpi_lane_state *lane = &route->peer->lanes[d->lane];
    if (!trpi_route_is_like_last(batch, type, msg) ||
        batch->announced_epoch != trpi_lane_epoch(lane) ||
        d->waiting + trpi_route_reservation(d->bytes) > d->room ||
        atomic_load_explicit(&route->remote->stopped, memory_order_relaxed) ||
        route->remote->traces_messages || /* each has its line */
        !encode_again(route, batch, type, msg, d->bytes)) {
        return false;
    }
    message_batched(route, d->lane);
    return true;
}

/* The message in a parcel cannot be sent: it is a dead letter, and the parcel goes without it, for
 * its number must not be missing. */
static trp_err
encode_empty_parcel(trpi_route *route, trpi_buffer *out, trpi_node_map *map,
                    uint32_t frame_bytes_max, const trpi_message *message, trp_err why)
{
    const trpi_parcel *full = (const void *)message->payload;
    const trp_type *inner = trpi_type_get(full->type);
    size_t bytes = message->payload_bytes - sizeof *full;
    trp_ref recipient = { route->node, message->to_slot, message->to_generation, 0 };
    trpi_parcel hollow = *full;
    trpi_message less = *message;
    hollow.type = 0;
    if (why == TRP_EINVAL) { /* it may be the ref that cannot be sent */
        hollow.sender = (trp_ref)TRP_REF_NONE;
    }
    less.payload = (const uint8_t *)&hollow;
    less.payload_bytes = sizeof hollow;
    trp_err err = trpi_message_encode(out, &trpi_serializer_parcel, map, frame_bytes_max, &less);
    if (err == TRP_OK && inner != NULL) {
        report_unsendable(route->remote, inner, bytes, why);
        trpi_dead_letter_of(route->remote->system, full->sender, recipient, dead_reason_of(why),
                            inner, full + 1, bytes);
    }
    return err;
}

/* Compress a message that takes the large lane and is large, if both ends want that. */
static void
message_compress(trpi_route *route, trpi_batch *batch, size_t at, const delivery *d)
{
    const trpi_remote_options *o = &route->remote->options;
    uint32_t features = trpi_agreed_features(&route->peer->agreed);
    if (o->compress && d->lane == TRPI_LANE_LARGE && route->uid != 0 &&
        trpi_peer_seems_active_as(route->peer, route->uid) && d->bytes > o->large_threshold_bytes &&
        (features & TRPI_FEATURE_LZ4) != 0) {
        (void)trpi_message_compress(&batch->frames, at, &route->scratch);
    }
}

trp_err
trpi_route_encode(trpi_route *route, trpi_buffer *out, const trpi_serializer *serializer,
                  const trp_type *type, const trp_msg *msg, trpi_node_map *ret_map)
{
    trpi_remote *remote = route->remote;
    if (serializer == NULL || atomic_load_explicit(&remote->stopped, memory_order_relaxed)) {
        return serializer == NULL ? TRP_ENOTYPE : TRP_ECONN;
    }
    ret_map->sending = TRPI_NODE_SELF;
    ret_map->receiving = route->node;
    ret_map->serializers = remote->serializers;
    ret_map->arg = remote;
    ret_map->get = trpi_route_node_get;
    trpi_message message = { 0 };
    message.to_slot = msg->priv_to_slot;
    message.to_generation = msg->priv_to_generation;
    message.sender = trpi_route_sender_of(msg);
    message.type = type;
    message.wire_id = trpi_type_wire_id(type->number);
    message.payload = trp_msg_payload(msg);
    message.payload_bytes = trp_msg_bytes(msg);
    message.anyone = route->uid == 0;
    message.traced = trpi_route_trace(route, msg, &message.trace);
    uint32_t frame_bytes_max = trpi_agreed_frame_bytes_max(&route->peer->agreed);
    trp_err err = trpi_message_encode(out, serializer, ret_map, frame_bytes_max, &message);
    if (type == &trpi_parcel_type && is_unsendable(err)) {
        err = encode_empty_parcel(route, out, ret_map, frame_bytes_max, &message, err);
    }
    return err;
}

/* A frame of its own. */
static trp_err
message_encode(trpi_route *route, const trp_type *type, const trp_msg *msg, const delivery *d)
{
    trpi_batch *batch = &route->batches[d->lane];
    const trpi_serializer *serializer = trpi_serializers_for(route->remote->serializers, type);
    trpi_node_map map;
    batch->last.type = NULL;
    if (!is_announced(route, d->lane, type)) {
        type_announce(route, d->lane, type);
    }
    size_t before = batch->frames.count;
    trp_err err = trpi_route_encode(route, &batch->frames, serializer, type, msg, &map);
    if (err != TRP_OK) {
        return err;
    }
    uint8_t flags = batch->frames.data[before + 5];
    message_compress(route, batch, before, d);
    if (d->waiting + batch->frames.count - before > d->room) {
        batch->frames.count = before;
        return TRP_EAGAIN;
    }
    last_set(route, batch, type, serializer, msg, &map, flags);
    return TRP_OK;
}

static void
message_lost(trpi_route *route, const trp_type *type, const trp_msg *msg, trp_err err,
             trp_dead_reason reason)
{
    trp_ref recipient = { route->node, msg->priv_to_slot, msg->priv_to_generation, 0 };
    trpi_traffic_dropped_add(&route->peer->traffic, 1);
    report_unsendable(route->remote, type, trp_msg_bytes(msg), err);
    trpi_dead_letter_of(route->remote->system, trpi_route_sender_of(msg), recipient, reason, type,
                        trp_msg_payload(msg), trp_msg_bytes(msg));
}

/* The recipient is slow, and what it is told is kept apart (hold.c). false: it is not. */
static NOINLINE bool
deliver_held(trpi_route *route, const trp_type *type, const trp_msg *msg, bool promised)
{
    trpi_node_map map;
    if (route->uid == 0 || !trpi_hold_enter(route, msg->priv_to_slot, msg->priv_to_generation)) {
        return false;
    }
    trpi_buffer_clear(&route->held);
    trp_err err =
        trpi_route_encode(route, &route->held,
                          trpi_serializers_for(route->remote->serializers, type), type, msg, &map);
    enum trpi_held held = err != TRP_OK
                              ? TRPI_HELD_FULL
                              : trpi_hold_take(route, msg->priv_to_slot, msg->priv_to_generation,
                                               &route->held, promised);
    if (held == TRPI_HELD_FULL) {
        message_lost(route, type, msg, err,
                     err != TRP_OK ? dead_reason_of(err) : TRP_DEAD_RECEIVER_FULL);
    } else if (held == TRPI_HELD && route->remote->traces_messages) {
        message_trace(route->remote, route->peer, type, msg);
    }
    if (route->held.capacity > TRPI_HELD_KEPT_BYTES) {
        trpi_buffer_fini(&route->held);
    }
    return held != TRPI_HELD_NOT;
}

/* Encode one message of the proxy's turn into the batch of its lane, or hold it. */
static void
proxy_deliver(void *arg, trp_system *system, trp_msg *msg)
{
    trpi_route *route = arg;
    trpi_peer *peer = route->peer;
    const trp_type *type = trp_msg_type(msg);
    delivery d;
    (void)system;
    d.bytes = trp_msg_bytes(msg);
    bool promised = (msg->priv_from_node_flags & TRPI_MSG_RESERVED) != 0;
    route->kept += promised ? trpi_route_reservation(d.bytes) : 0;
    if (trpi_hold_may(peer, msg->priv_to_slot) && deliver_held(route, type, msg, promised)) {
        return;
    }
    d.lane = trpi_route_lane(route, msg->priv_to_slot, d.bytes);
    d.room = promised ? SIZE_MAX : trpi_lane_bytes_max(route->remote, d.lane);
    /* the sum is for all lanes: no more of it than one may have promised counts for this one */
    size_t others = atomic_load_explicit(&peer->reserved, memory_order_relaxed) - route->kept;
    size_t most = trpi_lane_admit_max(route->remote, d.lane);
    d.waiting = trpi_lane_bytes(&peer->lanes[d.lane]) + (others < most ? others : most) +
                route->batches[d.lane].frames.count;
    if (deliver_again(route, type, msg, &d)) {
        return;
    }
    trp_err err = message_encode(route, type, msg, &d);
    if (err != TRP_OK) {
        message_lost(route, type, msg, err, dead_reason_of(err));
        return;
    }
    if (route->remote->traces_messages) {
        message_trace(route->remote, peer, type, msg);
    }
    message_batched(route, d.lane);
}

_Static_assert(TRPI_FLUSH_BYTES_LEAST + TRPI_MANY_BYTES_MAX <= TRPI_SEGMENT_BYTES - 128,
               "a write, encrypted, is one segment");

static bool
proxy_flush(void *arg, trp_system *system, bool more)
{
    trpi_route *route = arg;
    size_t batched = 0;
    (void)system;
    for (uint32_t left = route->touched; left != 0; left &= left - 1) {
        batched += route->batches[__builtin_ctz(left)].frames.count;
    }
    /* A write of little costs as much as one of much. */
    bool wait = more && batched < TRPI_FLUSH_BYTES_LEAST && !route->over_high_water;
    return wait ? false : trpi_route_hand_over(route);
}

static void
proxy_release(void *arg)
{
    trpi_route *route = arg;
    trpi_remote *remote = route->remote;
    trpi_peer *peer = route->peer;
    trpi_assert(route->touched == 0);
    pthread_mutex_lock(&peer->lock);
    trpi_route_unlink(route);
    trpi_holds_forget(peer, route);
    pthread_mutex_unlock(&peer->lock);
    trpi_route_free(route);
    trpi_peer_unpin(peer);
    trpi_remote_unref(remote);
}

/* Is there room beside what waits and what was promised to others? Promises are read first: what
 * hand_over() moves may then be counted twice, but not overlooked (route-O3). */
static bool
has_room(const trpi_route *route, enum trpi_lane lane, size_t others, size_t promise)
{
    const trpi_lane_state *state = &route->peer->lanes[lane];
    size_t before = others + trpi_lane_bytes_acquire(state);
    /* an empty lane takes one of any size */
    return before == 0 || before + promise <= trpi_lane_admit_max(route->remote, lane);
}

/* A message that is batched counts as if it were promised, until it is handed over. */
static bool
proxy_admits(void *arg, uint32_t slot, size_t bytes)
{
    trpi_route *route = arg;
    trpi_peer *peer = route->peer;
    enum trpi_lane lane = trpi_route_lane_guess(route, slot, bytes);
    size_t promise = trpi_route_reservation(bytes);
    size_t others = atomic_load_explicit(&peer->reserved, memory_order_acquire) + route->admitted;
    bool room = !trpi_hold_may(peer, slot) && has_room(route, lane, others, promise);
    route->admitted += room ? promise : 0;
    return room;
}

static bool
proxy_again(void *arg, const trp_msg *msg, const void *payload, size_t bytes, bool bounded)
{
    return trpi_route_again(arg, msg, payload, bytes, bounded);
}

static size_t
proxy_gather(void *arg, size_t need)
{
    return trpi_route_gather(arg, need);
}

static bool
proxy_gathered(void *arg, const trp_msg *msg, const trpi_gathered *gathered)
{
    return trpi_route_gathered(arg, msg, gathered);
}

static void
proxy_reserve_each(void *arg, size_t granted, uint32_t count, size_t bytes)
{
    trpi_route_reserve_each(arg, granted, count, bytes);
}

static bool
proxy_reserve(void *arg, uint32_t slot, size_t bytes)
{
    trpi_route *route = arg;
    trpi_peer *peer = route->peer;
    enum trpi_lane lane = trpi_route_lane_guess(route, slot, bytes);
    size_t promise = trpi_route_reservation(bytes);
    size_t others = atomic_fetch_add_explicit(&peer->reserved, promise, memory_order_acquire);
    if (trpi_hold_may(peer, slot) && !trpi_hold_has_room(peer, slot, others + promise, false)) {
        atomic_fetch_sub_explicit(&peer->reserved, promise, memory_order_relaxed);
        return false;
    }
    if (has_room(route, lane, others, promise)) {
        return true;
    }
    /* a refusal costs a lock anyway, and under it nothing is counted twice */
    pthread_mutex_lock(&peer->lock);
    others = atomic_load_explicit(&peer->reserved, memory_order_acquire) - promise;
    bool room = has_room(route, lane, others, promise);
    pthread_mutex_unlock(&peer->lock);
    if (!room) {
        atomic_fetch_sub_explicit(&peer->reserved, promise, memory_order_relaxed);
    }
    return room;
}

static void
proxy_unreserve(void *arg, size_t bytes)
{
    trpi_route *route = arg;
    atomic_fetch_sub_explicit(&route->peer->reserved, trpi_route_reservation(bytes),
                              memory_order_relaxed);
}

static void
proxy_refused(void *arg, uint32_t slot, size_t bytes)
{
    trpi_route *route = arg;
    trpi_peer *peer = route->peer;
    trpi_deferred deferred = { 0 };
    if (trpi_hold_may(peer, slot) &&
        !trpi_hold_has_room(peer, slot, trpi_route_reservation(bytes), true)) {
        return; /* told when some of it has gone */
    }
    pthread_mutex_lock(&peer->lock);
    trpi_lane_refuse_room(&peer->lane_marks, trpi_route_lane_guess(route, slot, bytes));
    trpi_peer_make_active(peer); /* released reservations make room, which only the tick sees */
    trpi_lanes_room_notify(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

static bool
proxy_slows(void *arg, uint32_t slot)
{
    const trpi_route *route = arg;
    return trpi_hold_may(route->peer, slot) && trpi_hold_slows(route->peer, slot);
}

static const trpi_proxy_ops proxy_ops = { proxy_deliver,    proxy_flush,       proxy_release,
                                          proxy_reserve,    proxy_unreserve,   proxy_refused,
                                          proxy_slows,      proxy_admits,      proxy_again,
                                          proxy_gather,     proxy_gathered,    proxy_reserve_each,
                                          trpi_route_carry, trpi_route_restore };

/* ---- what the actor room asks for ------------------------------------------------------------ */

/* The route of a node, linked before a proxy has it: this list tells refused senders of room. A
 * new one keeps the caller's pin, else it is given back. NULL: no memory. */
static trpi_route *
route_get(trpi_remote *remote, trpi_peer *peer, uint32_t node, uint64_t uid)
{
    bool made = false;
    pthread_mutex_lock(&peer->lock);
    trpi_route *route = trpi_peer_routes(peer);
    while (route != NULL && route->node != node) {
        route = route->next;
    }
    if (route == NULL) {
        route = trpi_alloc(sizeof *route);
        if (route != NULL) {
            route->remote = remote;
            route->peer = peer;
            route->node = node;
            route->uid = uid;
            trpi_route_link(route);
            made = true;
        }
    }
    if (route != NULL) {
        route->tries++;
    }
    pthread_mutex_unlock(&peer->lock);
    if (!made) {
        trpi_peer_unpin(peer);
    }
    return route;
}

/* After a try to make its proxy: unlink a route that has none. */
static void
route_settle(trpi_route *route, bool attached)
{
    trpi_peer *peer = route->peer;
    pthread_mutex_lock(&peer->lock);
    route->tries--;
    route->attached = route->attached || attached;
    bool is_unused = !route->attached && route->tries == 0;
    if (is_unused) {
        trpi_route_unlink(route);
    }
    pthread_mutex_unlock(&peer->lock);
    if (is_unused) {
        trpi_route_free(route);
        trpi_peer_unpin(peer);
    }
}

static trp_err
op_connect(void *arg, trp_system *system, uint32_t node)
{
    trpi_remote *remote = arg;
    trpi_peer *peer = NULL;
    const trpi_node_id *id = trpi_node_id_get(system, node);
    trp_err err = id == NULL ? TRP_EINVAL : trpi_route_address_check(remote, &id->address);
    if (err == TRP_OK && atomic_load_explicit(&remote->stopping, memory_order_relaxed)) {
        err = TRP_ECLOSED;
    }
    bool make = id != NULL && !trpi_address_is_nameless(&id->address); /* clients-C3 */
    err = err != TRP_OK ? err : trpi_peer_get(remote, &id->address, make, &peer);
    if (err != TRP_OK) {
        return err;
    }
    trpi_route *route = route_get(remote, peer, node, id->uid);
    if (route == NULL) {
        return TRP_ENOMEM;
    }
    trpi_remote_ref(remote);
    err = trpi_proxy_attach(system, node, &proxy_ops, route);
    if (err != TRP_OK) {
        trpi_remote_unref(remote); /* the user's reference is still there */
    }
    if (trpi_peer_holds_any(route->peer)) {
        trpi_proxy_slow(system, node, true); /* perhaps once too often: senders find no hold */
    }
    route_settle(route, err == TRP_OK || err == TRP_EEXIST);
    return err == TRP_EEXIST ? TRP_OK : err;
}

static void
op_select(void *arg, trp_system *system, const trpi_address *address, const char *path,
          trp_ref sender, const trp_msg *msg)
{
    trpi_remote *remote = arg;
    trpi_peer *peer = NULL;
    const trp_type *type = trp_msg_type(msg);
    const trpi_serializer *serializer = trpi_serializers_for(remote->serializers, type);
    trp_err err = trpi_route_address_check(remote, address);
    err = err == TRP_OK && serializer == NULL ? TRP_ENOTYPE : err == TRP_OK ? TRP_OK : TRP_ECONN;
    /* no room for one more peer: nothing is wrong with the message */
    bool make = !trpi_address_is_nameless(address);
    err = err == TRP_OK && trpi_peer_get(remote, address, make, &peer) != TRP_OK ? TRP_ECONN : err;
    if (err == TRP_OK) {
        err = trpi_selection_append(remote, peer, path, sender, msg);
    }
    if (err != TRP_OK) {
        if (err == TRP_EQUARANTINED) {
            trpi_selection_failed(system, sender, err);
        }
        report_unsendable(remote, type, trp_msg_bytes(msg), err);
        trpi_dead_letter_of(system, sender, (trp_ref)TRP_REF_NONE, dead_reason_of(err), type,
                            trp_msg_payload(msg), trp_msg_bytes(msg));
    } else {
        trpi_traffic_messages_out_add(&peer->traffic, 1);
        trpi_count(&remote->stats.frames_out, 1);
        if (remote->traces_messages) {
            trpi_message said = { 0 };
            said.path = path;
            said.path_bytes = strlen(path);
            said.payload_bytes = trp_msg_bytes(msg);
            trpi_message_trace(remote, peer, true, type, &said);
        }
    }
    trpi_peer_unpin(peer);
}

const trpi_remote_ops trpi_route_remote_ops = { op_connect, trpi_signal_send, op_select,
                                                trpi_signal_order, trpi_signal_is_connected };
