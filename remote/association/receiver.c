/* receiver.c - flow control at the receiver's node: the bytes that wait for each receiver, and its
 * credit.
 *
 * Why.    One slow actor must not delay messages to others on the same connection, so no message
 *         waits in the network for it: its messages are taken and counted, and the sender's node is
 *         told to keep what it cannot handle (credit.h, hold.c).
 * Shape.  bytes() -> trpi_receiver_take(): a place of the lane's table, bytes since the last mark
 *           every TRPI_CREDIT_MARK_BYTES: a mark goes into the mailbox; `waiting` grows
 *         the receiver reaches the mark (marks.c, any worker): `waiting` shrinks, CREDIT is sent
 * Must hold.
 *   receiver-I1  Bytes are counted while they wait: a receiver without mail has no count, and each
 *       receiver has its own.
 *   receiver-I2  A message above the limit is a dead letter; this code never waits.
 *   receiver-I3  limited and waiting are a Dekker pair, seq_cst: a thread that makes a receiver
 *       limited reads waiting afterwards, a thread that takes from waiting reads limited
 *       afterwards. So one of the two frees it.
 *   receiver-I4  Each mark in a mailbox pins the peer and has a reference to remoting until its
 *       callback has returned: two of them may overlap, where a mark found no memory and is passed
 *       at once.
 * Limits. remote.receiver-limit, remote.receivers-limit. The table has a place for each receiver
 *         that was busy when a message came; it is swept before it grows. Bounded mailboxes, those
 *         with an order of the program's own, and routers bound their queues themselves.
 * Tests.  tests/unit/remote/pressure_test.c
 */
#include "remote/association/receiver.h"

#include <inttypes.h>

#include "remote/association/conn.h"
#include "remote/association/peer.h"

static uint64_t
window_of(trpi_remote *remote)
{
    return trpi_credit_window(
        &remote->flow.limits,
        atomic_load_explicit(&remote->flow.waiting_bytes, memory_order_relaxed));
}

/* ---- credit ---------------------------------------------------------------------------------- */

/* Lost, when the control lane is full: the peer asks. The caller holds peer->lock. */
static void
credit_send(trpi_peer *peer, const trpi_receiver *receiver, trpi_credit_word word)
{
    trpi_credit_frame frame = { receiver->slot, receiver->generation, word.bytes };
    trpi_buffer frames = { 0 };
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_credit_encode(body, &frame);
    if (trpi_frame_append(&frames, TRPI_FRAME_CREDIT, word.flags, 0, body, sizeof body) == TRP_OK) {
        (void)trpi_peer_append(peer, TRPI_LANE_CONTROL, trpi_peer_uid(peer), &frames, false);
    }
    trpi_buffer_fini(&frames);
}

static bool
takes_credit(const trpi_peer *peer)
{
    return (trpi_agreed_features(&peer->agreed) & TRPI_FEATURE_CREDIT) != 0 &&
           trpi_peer_is_active(peer) &&
           !atomic_load_explicit(&trpi_peer_remote(peer)->closed, memory_order_relaxed);
}

enum step { CAME, PASSED, ASKED };

/* One step of credit.c, and its CREDIT to the peer. true: it is limited now, and was not. */
static bool
credit_step(trpi_receiver *receiver, enum step what, uint64_t bytes)
{
    trpi_peer *peer = receiver->peer;
    trpi_deferred deferred = { 0 };
    trpi_credit_word word = { false, 0, 0 };
    pthread_mutex_lock(&peer->lock);
    bool before = receiver->credit.limited, can = takes_credit(peer);
    if (can || before) {
        uint64_t window = window_of(trpi_peer_remote(peer));
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
        credit_send(peer, receiver, word);
        trpi_peer_pump(peer, &deferred);
    }
    trpi_peer_unlock(peer, &deferred);
    return now && !before;
}

/* A mark was reached: by any thread. */
static void
mark_passed(void *arg, uint64_t bytes)
{
    trpi_receiver *receiver = arg;
    trpi_peer *peer = receiver->peer;
    trpi_remote *remote = trpi_peer_remote(peer);
    atomic_fetch_sub_explicit(&remote->flow.waiting_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&receiver->waiting, bytes, memory_order_seq_cst);
    if (atomic_load_explicit(&receiver->limited, memory_order_seq_cst)) { /* receiver-I3 */
        (void)credit_step(receiver, PASSED, 0);
    }
    trpi_receiver_unref(receiver);
    trpi_peer_unpin(peer); /* receiver-I4 */
    trpi_remote_unref(remote);
}

static void
slow_receiver_log(const trpi_conn *conn, const trpi_receiver *receiver, const char *next)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    uint32_t suppressed = 0;
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_RECEIVER, &suppressed)) {
        char path[TRP_PATH_BYTES_MAX + 1];
        trp_ref ref = { TRPI_NODE_SELF, receiver->slot, receiver->generation, 0 };
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "receiver is slower than its senders actor=%s peer=%s waiting-bytes=%" PRIu64
                 " next=\"%s\" suppressed=%u",
                 trp_path(remote->system, ref, path, sizeof path), trpi_conn_peer_text(conn),
                 (uint64_t)atomic_load_explicit(&receiver->waiting, memory_order_relaxed), next,
                 suppressed);
    }
}

void
trpi_receiver_asked(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_credit_frame ask;
    if (frame->bytes < TRPI_CREDIT_ASK_BYTES) {
        return;
    }
    trpi_credit_decode(frame->body, TRPI_CREDIT_ASK_BYTES, &ask);
    pthread_mutex_lock(&peer->lock);
    trpi_receiver *receiver = trpi_receiver_find(peer, ask.slot, ask.generation);
    if (receiver == NULL && takes_credit(peer)) {
        trpi_deferred deferred = { 0 };
        trpi_receiver unknown = { .slot = ask.slot, .generation = ask.generation };
        trpi_credit nothing = { false, 0, 0 };
        credit_send(peer, &unknown,
                    trpi_credit_asked(&nothing, window_of(trpi_peer_remote(peer)), 0));
        trpi_peer_pump(peer, &deferred);
        trpi_peer_unlock(peer, &deferred);
        return;
    }
    pthread_mutex_unlock(&peer->lock);
    if (receiver != NULL) {
        (void)credit_step(receiver, ASKED, 0);
        trpi_receiver_unref(receiver);
    }
}

/* ---- messages and marks ---------------------------------------------------------------------- */

/* Behind what was told so far. */
static void
mark_put(trpi_conn *conn, trpi_inflow_place *place)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    trpi_peer *peer = trpi_conn_peer(conn);
    uint64_t bytes = place->bytes;
    place->bytes = 0;
    place->near = false;
    if (trpi_inbound_mail(trpi_conn_batch(conn), place->slot, place->generation) !=
        TRPI_MAIL_WAITS) {
        return; /* receiver-I1 */
    }
    if (place->receiver == NULL) {
        place->receiver = trpi_receiver_get(peer, place->slot, place->generation);
    }
    trpi_receiver *receiver = place->receiver;
    if (receiver == NULL) {
        return; /* no memory: it counts from here on */
    }
    atomic_fetch_add_explicit(&receiver->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&remote->flow.waiting_bytes, bytes, memory_order_relaxed);
    uint64_t waiting =
        atomic_fetch_add_explicit(&receiver->waiting, bytes, memory_order_seq_cst) + bytes;
    trpi_remote_ref(remote); /* receiver-I4 */
    pthread_mutex_lock(&remote->lock);
    trpi_peer_pin_more(peer);
    pthread_mutex_unlock(&remote->lock);
    trpi_inbound_mark(trpi_conn_batch(conn), place->slot, place->generation, mark_passed, receiver,
                      bytes);
    place->near = waiting > window_of(remote);
    if ((place->near || atomic_load_explicit(&receiver->limited, memory_order_relaxed)) &&
        credit_step(receiver, CAME, bytes)) {
        slow_receiver_log(
            conn, receiver,
            "senders to this actor on that node are slowed, other senders are not; troupe "
            "peers shows how much is queued");
    }
}

/* receiver-I2 */
static bool
is_full(trpi_conn *conn, const trpi_inflow_place *place, uint64_t bytes)
{
    trpi_receiver *receiver = place->receiver;
    trpi_remote *remote = trpi_conn_remote(conn);
    uint64_t most =
        trpi_credit_most(&remote->flow.limits,
                         atomic_load_explicit(&remote->flow.waiting_bytes, memory_order_relaxed));
    bool full =
        atomic_load_explicit(&receiver->waiting, memory_order_relaxed) + place->bytes + bytes >
        most;
    if (full) {
        (void)credit_step(receiver, CAME, bytes); /* the peer may not know */
        slow_receiver_log(conn, receiver,
                          "further messages become dead letters until it has handled some "
                          "(remote.receiver-limit)");
    }
    return full;
}

bool
trpi_receiver_take(trpi_conn *conn, uint32_t slot, uint32_t generation, size_t payload_bytes)
{
    trpi_inflow *inflow = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)].inflow;
    trpi_inflow_place *place = inflow->last;
    if (place == NULL || place->slot != slot || place->generation != generation) {
        place = trpi_inflow_find(inflow, trpi_conn_batch(conn), slot, generation);
        if (place == NULL) {
            return true;
        }
    }
    if (place->bytes >= TRPI_CREDIT_MARK_BYTES) {
        mark_put(conn,
                 place); /* before this one is told: the mark stands behind all that it counts */
    }
    uint64_t bytes = payload_bytes + TRPI_CREDIT_MESSAGE_BYTES;
    if (place->near && is_full(conn, place, bytes)) {
        return false;
    }
    place->bytes += bytes;
    return true;
}
