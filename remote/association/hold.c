/* hold.c - flow control at the sender's node: messages for a receiver elsewhere without credit.
 *
 * Why.    A slow receiver's node says so (CREDIT, receiver.c). From then on messages for that
 *         receiver are kept here, apart from the lane, so that they delay no other recipient's;
 *         they go to the lane as far as there is credit. Their senders are throttled, others are
 *         not.
 * Shape.  proxy's turn -> route.c -> [is it held?] -> chunks of frames, in order
 *                                                          | credit
 *                                    the lane  <-- a little at a time (pump) --'
 * Must hold.
 *   hold-H1  A recipient's messages keep their order: a held recipient gets none by another way,
 *       the batches of its route are on the lane first (trpi_hold_enter), and a hold ends when it
 *       is empty. It gives to the lane that its recipient takes at that moment: route-lane-G1.
 *   hold-H2  A hold is of one incarnation of the peer, which has sent CREDIT, and ends with it.
 *   hold-H3  A hold without credit asks for it again, and so does an empty one that is not free: a
 *       lost CREDIT delays it only. The question goes by the lane, behind all that was sent, so
 *       that the answer covers it; none is appended to a lane that has enough.
 *   hold-H4  A lane that has enough to send gets no more: other holds come in between.
 * Limits. remote.receiver-limit, remote.receivers-limit (dead letters: receiver-full); messages
 *         with reserved room are kept. HOLDS_MAX receivers of a peer; further ones are not held,
 *         and their own node bounds what arrives.
 * Tests.  tests/unit/remote/pressure_test.c
 */
#include "remote/association/hold.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

enum {
    PLACES = 4096,
    HOLDS_MAX = 65536,
    CHUNK_BYTES = 65536,
    LANE_ENOUGH_BYTES = 262144, /* on a lane: hold-H4 */
    GIVE_BYTES = 16384,         /* of one hold in a row */
    ASK_MS = 1000,
    ASKS_MAX = 64 /* a tick */
};

typedef struct trpi_held_chunk {
    struct trpi_held_chunk *next;
    trpi_buffer frames; /* whole ones */
    size_t at;          /* those before it are gone */
    uint64_t uid;       /* when it becomes dead letters, as the next */
    trp_dead_reason reason;
} held_chunk;

typedef struct hold {
    struct hold *next;          /* in its place */
    struct hold *older, *newer; /* by news_ms */
    struct hold *ready_next;
    uint32_t slot, generation;
    uint64_t uid;
    trpi_route *route; /* the route whose batches hold nothing for it; NULL: not known of any */
    held_chunk *first, *last;
    uint64_t bytes; /* of frames */
    uint64_t credit;
    uint64_t news_ms;
    bool free;    /* no limit: it ends when it is empty */
    bool ready;   /* stands in line */
    bool refused; /* trp_try_tell() was */
} hold;

struct trpi_holds {
    hold *places[PLACES];
    _Atomic uint64_t any[PLACES / 64]; /* a bit a place; written by peer->lock, read relaxed */
    hold *oldest, *newest;
    hold *ready_first, *ready_last;
    uint32_t count;
    uint64_t bytes;
};

/* ---- which ----------------------------------------------------------------------------------- */

static uint32_t
place_of(uint32_t slot)
{
    return (uint32_t)(trpi_hash_u64(slot) % PLACES);
}

bool
trpi_hold_may_be(const trpi_peer *peer, uint32_t slot)
{
    uint32_t place = place_of(slot);
    /* relaxed: looked at again under the lock; holds is set once, before `holding` */
    uint64_t word = atomic_load_explicit(&peer->holds->any[place / 64], memory_order_relaxed);
    return (word >> place % 64 & 1) != 0;
}

static void
place_note(trpi_holds *holds, uint32_t place)
{
    uint64_t bit = UINT64_C(1) << place % 64;
    if (holds->places[place] != NULL) {
        atomic_fetch_or_explicit(&holds->any[place / 64], bit, memory_order_relaxed);
    } else {
        atomic_fetch_and_explicit(&holds->any[place / 64], ~bit, memory_order_relaxed);
    }
}

static hold *
hold_find(const trpi_peer *peer, uint32_t slot, uint32_t generation)
{
    hold *h = peer->holds != NULL ? peer->holds->places[place_of(slot)] : NULL;
    while (h != NULL && (h->slot != slot || h->generation != generation)) {
        h = h->next;
    }
    return h;
}

/* Of any incarnation of that slot. */
static hold *
hold_of_slot(const trpi_peer *peer, uint32_t slot)
{
    hold *h = peer->holds != NULL ? peer->holds->places[place_of(slot)] : NULL;
    while (h != NULL && h->slot != slot) {
        h = h->next;
    }
    return h;
}

static void
news_remove(trpi_holds *holds, hold *h)
{
    *(h->newer != NULL ? &h->newer->older : &holds->newest) = h->older;
    *(h->older != NULL ? &h->older->newer : &holds->oldest) = h->newer;
}

static void
news_add(trpi_holds *holds, hold *h, uint64_t now_ms)
{
    h->news_ms = now_ms;
    h->newer = NULL;
    h->older = holds->newest;
    *(h->older != NULL ? &h->older->newer : &holds->oldest) = h;
    holds->newest = h;
}

/* Tell the proxies whether senders have to look at each recipient. */
static void
routes_tell(trpi_peer *peer)
{
    bool holding = peer->holds->count > 0;
    if (holding != atomic_load_explicit(&peer->holding, memory_order_relaxed)) {
        atomic_store_explicit(&peer->holding, holding, memory_order_release);
        for (trpi_route *route = trpi_peer_routes(peer); route != NULL; route = route->next) {
            trpi_proxy_slow(trpi_peer_remote(peer)->system, route->node, holding);
        }
    }
}

static hold *
hold_new(trpi_peer *peer, const trpi_credit_frame *frame, uint64_t uid)
{
    if (peer->holds == NULL) {
        peer->holds = trpi_alloc(sizeof *peer->holds);
    }
    trpi_holds *holds = peer->holds;
    hold *h = holds != NULL && holds->count < HOLDS_MAX ? trpi_alloc(sizeof *h) : NULL;
    if (h != NULL) {
        uint32_t place = place_of(frame->slot);
        h->slot = frame->slot;
        h->generation = frame->generation;
        h->uid = uid;
        h->next = holds->places[place];
        holds->places[place] = h;
        holds->count++;
        news_add(holds, h, trpi_remote_now_ms(trpi_peer_remote(peer)));
        place_note(holds, place);
        routes_tell(peer);
    }
    return h;
}

/* It is in no line of those that are ready. Its chunks are the caller's. */
static void
hold_end(trpi_peer *peer, hold *h)
{
    trpi_holds *holds = peer->holds;
    uint32_t place = place_of(h->slot);
    hold **at = &holds->places[place];
    trpi_assert(!h->ready);
    while (*at != h) {
        at = &(*at)->next;
    }
    *at = h->next;
    news_remove(holds, h);
    holds->count--;
    place_note(holds, place);
    trpi_free(h);
    routes_tell(peer);
}

static void
ready_add(trpi_holds *holds, hold *h)
{
    if (!h->ready && h->first != NULL && h->credit > 0) {
        h->ready = true;
        h->ready_next = NULL;
        *(holds->ready_last != NULL ? &holds->ready_last->ready_next : &holds->ready_first) = h;
        holds->ready_last = h;
    }
}

/* ---- in -------------------------------------------------------------------------------------- */

void
trpi_holds_credited(trpi_peer *peer, uint64_t uid, const trpi_credit_frame *word, uint8_t flags)
{
    bool current = trpi_peer_is_active_as(peer, uid); /* hold-H2 */
    hold *h = current ? hold_find(peer, word->slot, word->generation) : NULL;
    bool free = (flags & TRPI_CREDIT_FREE) != 0;
    if (current && h == NULL && !free) {
        h = hold_new(peer, word, uid); /* no memory: the receiver's node bounds its mail itself */
    }
    if (h != NULL) {
        uint64_t before = (flags & TRPI_CREDIT_SET) != 0 ? 0 : h->credit;
        h->free = free;
        h->credit = before + word->bytes >= before ? before + word->bytes : UINT64_MAX;
        news_remove(peer->holds, h);
        news_add(peer->holds, h, trpi_remote_now_ms(trpi_peer_remote(peer)));
        if (free && h->first == NULL) {
            hold_end(peer, h);
        } else {
            ready_add(peer->holds, h);
        }
    }
}

bool
trpi_hold_is_held(const trpi_route *route, uint32_t slot, uint32_t generation, bool *ret_first)
{
    const hold *h = hold_find(route->peer, slot, generation);
    bool held = h != NULL && h->uid == route->uid;
    *ret_first = held && h->route != route;
    return held;
}

bool
trpi_hold_own(trpi_route *route, uint32_t slot, uint32_t generation)
{
    hold *h = hold_find(route->peer, slot, generation);
    bool held = h != NULL && h->uid == route->uid;
    if (held) {
        h->route = route;
    }
    return held;
}

static bool
chunk_append(hold *h, const trpi_buffer *frame)
{
    held_chunk *chunk = h->last;
    if (chunk == NULL || chunk->frames.count + frame->count > CHUNK_BYTES) {
        chunk = trpi_alloc(sizeof *chunk);
        if (chunk == NULL) {
            return false;
        }
        *(h->last != NULL ? &h->last->next : &h->first) = chunk;
        h->last = chunk;
    }
    return trpi_buffer_append(&chunk->frames, frame->data, frame->count, TRPI_BUFFER_NO_LIMIT) ==
           TRP_OK;
}

enum trpi_held
trpi_hold_put(trpi_route *route, uint32_t slot, uint32_t generation, const trpi_buffer *frame,
              bool promised)
{
    trpi_peer *peer = route->peer;
    trpi_remote *remote = trpi_peer_remote(peer);
    hold *h = hold_find(peer, slot, generation);
    if (h == NULL || h->uid != route->uid || h->route != route ||
        atomic_load_explicit(&remote->closed, memory_order_relaxed)) {
        return TRPI_HELD_NOT;
    }
    uint64_t most = trpi_credit_most(
        &remote->flow.limits, atomic_load_explicit(&remote->flow.held_bytes, memory_order_relaxed));
    if ((!promised && h->bytes + frame->count > most) || !chunk_append(h, frame)) {
        return TRPI_HELD_FULL;
    }
    h->bytes += frame->count;
    peer->holds->bytes += frame->count;
    atomic_fetch_add_explicit(&remote->flow.held_bytes, frame->count, memory_order_relaxed);
    ready_add(peer->holds, h);
    return TRPI_HELD;
}

bool
trpi_hold_slows(trpi_peer *peer, uint32_t slot)
{
    pthread_mutex_lock(&peer->lock);
    const hold *h = hold_of_slot(peer, slot);
    bool slows = h != NULL && h->first != NULL && h->credit == 0;
    pthread_mutex_unlock(&peer->lock);
    return slows;
}

/* Bytes of a hold that trp_try_tell() may fill. */
static uint64_t
admit_max(const trpi_remote *remote)
{
    uint64_t quarter = remote->flow.limits.one / 4;
    return quarter < TRPI_ADMIT_BYTES_MAX ? quarter : TRPI_ADMIT_BYTES_MAX;
}

bool
trpi_hold_has_room(trpi_peer *peer, uint32_t slot, size_t bytes, bool refused)
{
    pthread_mutex_lock(&peer->lock);
    hold *h = hold_of_slot(peer, slot);
    /* bytes: with those that were promised to others and have not arrived yet */
    bool room = h == NULL || h->bytes == 0 || h->bytes + bytes <= admit_max(trpi_peer_remote(peer));
    if (!room && refused) {
        h->refused = true;
    }
    pthread_mutex_unlock(&peer->lock);
    return room;
}

/* ---- out ------------------------------------------------------------------------------------- */

static enum trpi_lane
lane_of(const trpi_peer *peer, const hold *h) /* hold-H1 */
{
    uint32_t spread = trpi_agreed_spread(&peer->agreed);
    return spread != 0 && h->route != NULL && h->route->era == trpi_large_era(&peer->large) &&
                   trpi_route_is_large(h->route, h->slot)
               ? TRPI_LANE_LARGE
               : trpi_lane_of(spread, h->slot);
}

/* hold-H3 */
static void
credit_ask(trpi_peer *peer, const hold *h)
{
    enum trpi_lane lane = lane_of(peer, h);
    trpi_credit_frame frame = { h->slot, h->generation, 0 };
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_buffer frames = { 0 };
    if (trpi_lane_bytes(&peer->lanes[lane]) >= LANE_ENOUGH_BYTES) {
        return; /* the last CREDIT_ASK waits there still, if the connection does not move */
    }
    trpi_credit_encode(body, &frame);
    if (trpi_frame_append(&frames, TRPI_FRAME_CREDIT_ASK, 0, 0, body, TRPI_CREDIT_ASK_BYTES) ==
        TRP_OK) {
        (void)trpi_peer_append(peer, lane, h->uid, &frames, true); /* else: the tick */
    }
    trpi_buffer_fini(&frames);
}

/* Send some of its frames, as far as there is credit. Errors: as trpi_peer_append(). */
static trp_err
held_send(trpi_peer *peer, hold *h, enum trpi_lane lane)
{
    held_chunk *chunk = h->first;
    trpi_buffer frames = { 0 };
    size_t end = chunk->at, messages = 0;
    uint64_t spent = 0;
    while (end < chunk->frames.count && end - chunk->at < GIVE_BYTES && spent < h->credit) {
        trpi_frame frame;
        trpi_frame_header_decode(chunk->frames.data + end, &frame);
        end += TRPI_FRAME_HEADER_BYTES + frame.bytes;
        spent += frame.bytes - TRPI_USER_FIXED_BYTES + TRPI_CREDIT_MESSAGE_BYTES;
        messages++;
    }
    size_t bytes = end - chunk->at;
    trp_err err =
        trpi_buffer_append(&frames, chunk->frames.data + chunk->at, bytes, TRPI_BUFFER_NO_LIMIT);
    err = err == TRP_OK ? trpi_peer_append(peer, lane, h->uid, &frames, true) : err;
    trpi_buffer_fini(&frames);
    if (err != TRP_OK) {
        return err;
    }
    trpi_traffic_messages_out_add(&peer->traffic, messages);
    trpi_count(&trpi_peer_remote(peer)->stats.frames_out, messages);
    h->credit -= spent < h->credit ? spent : h->credit;
    h->bytes -= bytes;
    peer->holds->bytes -= bytes;
    atomic_fetch_sub_explicit(&trpi_peer_remote(peer)->flow.held_bytes, bytes,
                              memory_order_relaxed);
    chunk->at = end;
    if (end == chunk->frames.count) {
        h->first = chunk->next;
        h->last = h->first != NULL ? h->last : NULL;
        trpi_buffer_fini(&chunk->frames);
        trpi_free(chunk);
    }
    return TRP_OK;
}

void
trpi_holds_release(trpi_peer *peer, trpi_deferred *deferred)
{
    trpi_holds *holds = peer->holds;
    hold *h;
    while (holds != NULL && trpi_peer_is_active(peer) && (h = holds->ready_first) != NULL) {
        enum trpi_lane lane = lane_of(peer, h);
        if (h->credit > 0 && /* else it was taken back while it stood in line */
            (trpi_lane_bytes(&peer->lanes[lane]) >=
                 LANE_ENOUGH_BYTES || /* hold-H4; the end of its write comes by here */
             held_send(peer, h, lane) != TRP_OK)) {
            return;
        }
        holds->ready_first = h->ready_next;
        holds->ready_last = holds->ready_first != NULL ? holds->ready_last : NULL;
        h->ready = false;
        if (h->refused && h->bytes <= admit_max(trpi_peer_remote(peer)) / 2) {
            h->refused = false;
            deferred->ready = true;
        }
        if (h->free && h->first == NULL) {
            deferred->ready = true;
            hold_end(peer, h);
            continue;
        }
        if (h->free && h->credit == 0) {
            credit_ask(peer, h);
        }
        ready_add(holds, h); /* behind the others */
    }
}

void
trpi_holds_tick(trpi_peer *peer, uint64_t now_ms, trpi_deferred *deferred)
{
    trpi_holds *holds = peer->holds;
    bool active = trpi_peer_is_active(peer);
    if (holds == NULL || holds->count == 0) {
        return;
    }
    if (!active &&
        now_ms - holds->newest->news_ms >= trpi_peer_remote(peer)->options.handshake_timeout_ms) {
        trpi_holds_drop(peer, 0, TRP_DEAD_NOT_CONNECTED, deferred);
        return;
    }
    for (int i = 0; active && i < ASKS_MAX && now_ms - holds->oldest->news_ms >= ASK_MS; i++) {
        hold *h = holds->oldest;
        if (h->credit == 0 || h->first == NULL) { /* empty: the CREDIT that frees it may be lost */
            credit_ask(peer, h);
        }
        news_remove(holds, h);
        news_add(holds, h, now_ms);
    }
}

/* ---- never ----------------------------------------------------------------------------------- */

void
trpi_holds_drop(trpi_peer *peer, uint64_t uid, trp_dead_reason reason, trpi_deferred *deferred)
{
    trpi_holds *holds = peer->holds;
    if (holds == NULL) {
        return;
    }
    struct trpi_held_chunk **end = &deferred->held;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    for (hold *h = holds->ready_first; h != NULL; h = h->ready_next) {
        h->ready = false; /* the line is made again below */
    }
    holds->ready_first = holds->ready_last = NULL;
    for (hold *h = holds->oldest, *newer; h != NULL; h = newer) {
        newer = h->newer;
        if (uid != 0 && h->uid != uid) {
            ready_add(holds, h);
            continue;
        }
        for (held_chunk *chunk = h->first; chunk != NULL; chunk = chunk->next) {
            chunk->uid = h->uid;
            chunk->reason = reason;
        }
        *end = h->first;
        end = h->first != NULL ? &h->last->next : end;
        holds->bytes -= h->bytes;
        atomic_fetch_sub_explicit(&trpi_peer_remote(peer)->flow.held_bytes, h->bytes,
                                  memory_order_relaxed);
        deferred->ready = true;
        hold_end(peer, h);
    }
}

void
trpi_held_dead_letters(trpi_peer *peer, trpi_deferred *deferred)
{
    while (deferred->held != NULL) {
        held_chunk *chunk = deferred->held;
        trpi_node_id id = { *trpi_peer_address(peer), chunk->uid };
        trpi_buffer rest = { chunk->frames.data + chunk->at, chunk->frames.count - chunk->at, 0 };
        deferred->held = chunk->next;
        trpi_lane_dead_letters(peer, trpi_node_find(trpi_peer_remote(peer)->system, &id), &rest,
                               chunk->reason);
        trpi_buffer_fini(&chunk->frames);
        trpi_free(chunk);
    }
}

void
trpi_holds_forget(trpi_peer *peer, const trpi_route *route)
{
    for (hold *h = peer->holds != NULL ? peer->holds->oldest : NULL; h != NULL; h = h->newer) {
        h->route = h->route == route ? NULL : h->route;
    }
}

bool
trpi_holds_any(const trpi_peer *peer)
{
    return peer->holds != NULL && peer->holds->count > 0;
}

void
trpi_holds_info(const trpi_peer *peer, trpi_peer_info *info)
{
    info->slow_there = peer->holds != NULL ? peer->holds->count : 0;
    info->held_bytes = peer->holds != NULL ? peer->holds->bytes : 0;
}

void
trpi_holds_free(trpi_holds *holds)
{
    for (hold *h = holds != NULL ? holds->oldest : NULL, *newer; h != NULL; h = newer) {
        newer = h->newer;
        trpi_free(h);
    }
    trpi_free(holds);
}
