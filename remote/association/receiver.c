/* receiver.c - what waits here for each receiver of a peer's messages, and what the peer is told.
 *
 * Why.    One slow actor must not hold up what others are told on its connection, so nothing waits
 *         in the network for it: its messages are taken, counted, and its senders' node is told to
 *         keep what it cannot handle (credit.h, hold.c).
 * Shape.  bytes() -> trpi_receiver_take(): a place of the lane's table, bytes since the last mark
 *           every TRPI_CREDIT_MARK_BYTES: a mark goes into the receiver's mail; `waiting` grows
 *         the receiver reaches the mark (marks.c, any worker): `waiting` shrinks, credit is said
 * Must hold.
 *   receiver-I1  What counts is what waits: who has no mail has no count, and each receiver has its
 *       own.
 *   receiver-I2  What is above the limit is a dead letter, and nothing is ever waited for here.
 *   receiver-I3  limited and waiting are a Dekker pair, seq_cst: who makes a receiver limited reads
 *       waiting afterwards, who takes from waiting reads limited afterwards. So one of the two
 *       frees it.
 *   receiver-I4  Each mark that is in a receiver's mail pins the peer and counts remoting till its
 *       passed() is over: two of them may overlap, where a mark found no memory and is passed at
 *       once.
 * Limits. remote.receiver-limit, remote.receivers-limit. The table has a place for each receiver
 *         that was busy when it was told; it is swept before it grows. Bounded mailboxes, those
 *         with an order of the program's own, and routers bound what they have themselves.
 * Tests.  tests/unit/remote/pressure_test.c
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "remote/association/internal.h"

enum { PLACES_FIRST = 16, BUCKETS = 1024 };

/* ---- receivers with marks in their mail ------------------------------------------------------ */

static trpi_receiver **
bucket_of(trpi_peer *peer, uint32_t slot)
{
    return &peer->receivers[trpi_hash_u64(slot) % BUCKETS];
}

/* A counted one that somebody counts already; NULL: none. The caller holds peer->lock. */
static trpi_receiver *
receiver_find(trpi_peer *peer, uint32_t slot, uint32_t generation)
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
static trpi_receiver *
receiver_get(trpi_peer *peer, uint32_t slot, uint32_t generation)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->receivers == NULL) {
        peer->receivers = trpi_alloc(BUCKETS * sizeof *peer->receivers);
    }
    trpi_receiver *receiver = receiver_find(peer, slot, generation);
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

static void
receiver_unref(trpi_receiver *receiver)
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

static uint64_t
window_of(trpi_remote *remote)
{
    return trpi_credit_window(&remote->limits,
                              atomic_load_explicit(&remote->waiting_bytes, memory_order_relaxed));
}

/* ---- credit ---------------------------------------------------------------------------------- */

/* Lost, when the control lane is full: the peer asks. The caller holds peer->lock. */
static void
say(trpi_peer *peer, const trpi_receiver *receiver, trpi_credit_word word)
{
    trpi_credit_frame frame = { receiver->slot, receiver->generation, word.bytes };
    trpi_buffer frames = { 0 };
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_credit_encode(body, &frame);
    if (trpi_frame_append(&frames, TRPI_FRAME_CREDIT, word.flags, 0, body, sizeof body) == TRP_OK) {
        (void)trpi_peer_append(peer, TRPI_LANE_CONTROL, peer->assoc.uid, &frames, false);
    }
    trpi_buffer_fini(&frames);
}

static bool
takes_credit(const trpi_peer *peer)
{
    return (atomic_load_explicit(&peer->features, memory_order_relaxed) & TRPI_FEATURE_CREDIT) !=
               0 &&
           peer->assoc.state == TRPI_ASSOC_ACTIVE &&
           !atomic_load_explicit(&peer->remote->closed, memory_order_relaxed);
}

enum step { CAME, PASSED, ASKED };

/* One step of credit.c, and its word to the peer. true: it is limited now, and was not. */
static bool
step(trpi_receiver *receiver, enum step what, uint64_t bytes)
{
    trpi_peer *peer = receiver->peer;
    trpi_later later = { 0 };
    trpi_credit_word word = { false, 0, 0 };
    pthread_mutex_lock(&peer->lock);
    bool before = receiver->credit.limited, can = takes_credit(peer);
    if (can || before) {
        uint64_t window = window_of(peer->remote);
        atomic_store_explicit(&receiver->limited, true, memory_order_seq_cst); /* receiver-I3 */
        uint64_t waiting = atomic_load_explicit(&receiver->waiting, memory_order_seq_cst);
        word = what == CAME     ? trpi_credit_came(&receiver->credit, window, waiting, bytes)
               : what == PASSED ? trpi_credit_passed(&receiver->credit, window, waiting)
                                : trpi_credit_asked(&receiver->credit, window, waiting);
        atomic_store_explicit(&receiver->limited, receiver->credit.limited, memory_order_seq_cst);
    }
    bool now = receiver->credit.limited;
    peer->receivers_limited += now;
    peer->receivers_limited -= before;
    if (word.say && can) {
        say(peer, receiver, word);
        trpi_peer_pump(peer, &later);
    }
    trpi_peer_unlock(peer, &later);
    return now && !before;
}

/* A mark was reached: by any thread. */
static void
passed(void *arg, uint64_t bytes)
{
    trpi_receiver *receiver = arg;
    trpi_peer *peer = receiver->peer;
    trpi_remote *remote = peer->remote;
    atomic_fetch_sub_explicit(&remote->waiting_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&receiver->waiting, bytes, memory_order_seq_cst);
    if (atomic_load_explicit(&receiver->limited, memory_order_seq_cst)) { /* receiver-I3 */
        (void)step(receiver, PASSED, 0);
    }
    receiver_unref(receiver);
    trpi_peer_unpin(peer); /* receiver-I4 */
    trpi_remote_unref(remote);
}

static void
tell_slow(const trpi_conn *conn, const trpi_receiver *receiver, const char *next)
{
    trpi_remote *remote = conn->remote;
    uint32_t suppressed = 0;
    if (trpi_log_gate_open(remote, TRPI_GATE_RECEIVER, &suppressed)) {
        char path[TRP_PATH_BYTES_MAX + 1];
        trp_ref ref = { TRPI_NODE_SELF, receiver->slot, receiver->generation, 0 };
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "receiver is slower than its senders actor=%s peer=%s waiting-bytes=%" PRIu64
                 " next=\"%s\" suppressed=%u",
                 trp_path(remote->system, ref, path, sizeof path), conn->peer_text,
                 (uint64_t)atomic_load_explicit(&receiver->waiting, memory_order_relaxed), next,
                 suppressed);
    }
}

void
trpi_receiver_asked(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = conn->peer;
    trpi_credit_frame ask;
    if (frame->bytes < TRPI_CREDIT_ASK_BYTES) {
        return;
    }
    trpi_credit_decode(frame->body, TRPI_CREDIT_ASK_BYTES, &ask);
    pthread_mutex_lock(&peer->lock);
    trpi_receiver *receiver = receiver_find(peer, ask.slot, ask.generation);
    if (receiver == NULL && takes_credit(peer)) {
        trpi_later later = { 0 };
        trpi_receiver nobody = { .slot = ask.slot, .generation = ask.generation };
        trpi_credit nothing = { false, 0, 0 };
        say(peer, &nobody, trpi_credit_asked(&nothing, window_of(peer->remote), 0));
        trpi_peer_pump(peer, &later);
        trpi_peer_unlock(peer, &later);
        return;
    }
    pthread_mutex_unlock(&peer->lock);
    if (receiver != NULL) {
        (void)step(receiver, ASKED, 0);
        receiver_unref(receiver);
    }
}

/* ---- the table of a lane; by its recv lock --------------------------------------------------- */

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
        receiver_unref(place->receiver);
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
static trpi_inflow_place *
place_find(trpi_inflow *inflow, trp_system *system, uint32_t slot, uint32_t generation)
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

/* Behind what was told so far. */
static void
mark(trpi_conn *conn, trpi_inflow_place *place)
{
    trpi_remote *remote = conn->remote;
    trpi_peer *peer = conn->peer;
    uint64_t bytes = place->bytes;
    place->bytes = 0;
    place->near = false;
    if (trpi_inbound_mail(remote->system, place->slot, place->generation) != TRPI_MAIL_WAITS) {
        return; /* receiver-I1 */
    }
    if (place->receiver == NULL) {
        place->receiver = receiver_get(peer, place->slot, place->generation);
    }
    trpi_receiver *receiver = place->receiver;
    if (receiver == NULL) {
        return; /* no memory: it counts from here on */
    }
    atomic_fetch_add_explicit(&receiver->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&remote->waiting_bytes, bytes, memory_order_relaxed);
    uint64_t waiting =
        atomic_fetch_add_explicit(&receiver->waiting, bytes, memory_order_seq_cst) + bytes;
    trpi_remote_ref(remote); /* receiver-I4 */
    pthread_mutex_lock(&remote->lock);
    peer->pins++;
    pthread_mutex_unlock(&remote->lock);
    trpi_inbound_mark(remote->system, place->slot, place->generation, passed, receiver, bytes);
    place->near = waiting > window_of(remote);
    if ((place->near || atomic_load_explicit(&receiver->limited, memory_order_relaxed)) &&
        step(receiver, CAME, bytes)) {
        tell_slow(conn, receiver,
                  "its senders there are slowed, others are not; troupe peers says how much waits");
    }
}

/* receiver-I2 */
static bool
is_full(trpi_conn *conn, const trpi_inflow_place *place, uint64_t bytes)
{
    trpi_receiver *receiver = place->receiver;
    trpi_remote *remote = conn->remote;
    uint64_t most = trpi_credit_most(
        &remote->limits, atomic_load_explicit(&remote->waiting_bytes, memory_order_relaxed));
    bool full =
        atomic_load_explicit(&receiver->waiting, memory_order_relaxed) + place->bytes + bytes >
        most;
    if (full) {
        (void)step(receiver, CAME, bytes); /* the peer may not know */
        tell_slow(conn, receiver,
                  "more is dead letters until it has handled some (remote.receiver-limit)");
    }
    return full;
}

bool
trpi_receiver_take(trpi_conn *conn, uint32_t slot, uint32_t generation, size_t payload_bytes)
{
    trpi_inflow *inflow = &conn->peer->lanes[conn->lane].inflow;
    trpi_inflow_place *place = inflow->last;
    if (place == NULL || place->slot != slot || place->generation != generation) {
        place = place_find(inflow, conn->remote->system, slot, generation);
        if (place == NULL) {
            return true;
        }
    }
    if (place->bytes >= TRPI_CREDIT_MARK_BYTES) {
        mark(conn, place); /* before this one is told: the mark stands behind all that it counts */
    }
    uint64_t bytes = payload_bytes + TRPI_CREDIT_MESSAGE_BYTES;
    if (place->near && is_full(conn, place, bytes)) {
        return false;
    }
    place->bytes += bytes;
    return true;
}
