/* conn_write.c - what a connection sends: its own frames, then its share of a lane.
 *
 * Shape.     trpi_conn_take() by the pump -> trpi_conn_write() without locks -> done, or written()
 *            later -> what gathered meanwhile, as one write
 *            A write that is done at once is ended by its writer, which goes on in a loop (pump.c),
 *            not by recursion, and TRPI_WRITES_AT_ONCE times at most.
 * Must hold. conn-N2 and conn-N3.
 * Tests.     tests/unit/remote/remote_test.c, pressure_test.c, done_test.c
 */
#include "remote/association/conn.h"

#include "base/assert.h"
#include "remote/association/control_lane.h"
#include "remote/association/peer.h"

trp_err
trpi_conn_head(trpi_conn *conn, enum trpi_frame_kind kind, uint8_t flags, const void *body,
               size_t bytes)
{ /* too much: a peer that asks and does not read its answers */
    return conn->write.head.count > conn->remote->options.control_bytes_max
               ? TRP_EAGAIN
               : trpi_frame_append(&conn->write.head, kind, flags, 0, body, bytes);
}

trp_err
trpi_conn_preamble(trpi_conn *conn)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES];
    trpi_preamble preamble = { TRPI_WIRE_VERSION, conn->lane, 0, conn->remote->uid };
    if (conn->write.preamble_sent) {
        return TRP_OK;
    }
    conn->write.preamble_sent = true;
    trpi_preamble_encode(bytes, &preamble);
    return trpi_buffer_append(&conn->write.head, bytes, sizeof bytes, TRPI_BUFFER_NO_LIMIT);
}

bool
trpi_conn_take(trpi_conn *conn)
{
    if (conn->write.busy || conn->closing || conn->link == NULL) {
        return false;
    }
    trpi_lane_state *lane = conn->peer != NULL ? &conn->peer->lanes[conn->lane] : NULL;
    bool lane_goes = lane != NULL && trpi_lane_out(lane) == conn && !trpi_lane_is_empty(lane) &&
                     /* else it waits for a handshake: another incarnation may be connected */
                     (trpi_lane_uid(lane) == 0 || trpi_lane_uid(lane) == conn->uid) &&
                     (conn->lane != TRPI_LANE_LARGE || !trpi_large_is_held(conn->peer));
    if (conn->write.head.count == 0 && !lane_goes) {
        return false;
    }
    trpi_assert(conn->write.taken_head.count == 0 && conn->write.taken.count == 0);
    trpi_buffer empty = conn->write.taken_head;
    conn->write.taken_head = conn->write.head;
    conn->write.head = empty;
    if (lane_goes) {
        trpi_lane_queue_take(&lane->queue, &conn->write.taken);
        trpi_fence_left(&lane->fence);
        atomic_fetch_add_explicit(&conn->uses, 1, memory_order_relaxed);
    }
    conn->write.at = 0;
    conn->write.busy = true; /* conn-N2 */
    conn->write.settled = false;
    trpi_conn_ref(conn);
    return true;
}

/* A slice is written; true: there is another one. By the owner of the write. */
static bool
slice_next(trpi_conn *conn)
{
    trpi_buffer_clear(&conn->write.taken_head);
    conn->write.at += conn->write.slice_bytes;
    return conn->write.at < conn->write.taken.count;
}

bool
trpi_conn_write(trpi_conn *conn, uint32_t *writes_left)
{
    bool done = true;
    do {
        trpi_iov iov[2];
        size_t count = 0;
        if (conn->write.taken_head.count > 0) {
            iov[count++] = (trpi_iov){ conn->write.taken_head.data, conn->write.taken_head.count };
        }
        size_t left = conn->write.taken.count - conn->write.at;
        conn->write.slice_bytes = left < TRPI_WRITE_BYTES_MAX ? left : TRPI_WRITE_BYTES_MAX;
        if (conn->write.slice_bytes > 0) {
            iov[count++] =
                (trpi_iov){ conn->write.taken.data + conn->write.at, conn->write.slice_bytes };
        }
        trpi_assert(count > 0 && *writes_left > 0);
        done = false;
        bool *late_or_done = *writes_left > 1 ? &done : NULL;
        trp_err err = conn->control != NULL
                          ? trpi_control_write(conn->control, iov, count, late_or_done)
                          : conn->remote->ops->write(conn->link, iov, count, late_or_done);
        if (err != TRP_OK) {
            /* nothing was taken; closed() comes or came, and settles the account */
            conn->write.slice_bytes = 0;
        }
        *writes_left -= done;
    } while (done && slice_next(conn));
    if (!done) {
        trpi_conn_unref(conn);
    }
    return done;
}

void
trpi_conn_give_up(trpi_conn *conn)
{
    size_t given = conn->write.at + conn->write.slice_bytes, at = 0, end = 0;
    /* conn-N3: the first that was not given whole */
    while (end <= given && end < conn->write.taken.count) {
        trpi_frame frame;
        at = end;
        trpi_frame_header_decode(conn->write.taken.data + at, &frame);
        end = at + TRPI_FRAME_HEADER_BYTES + frame.bytes;
    }
    if (end > given) {
        trpi_buffer rest = { conn->write.taken.data + at, conn->write.taken.count - at, 0 };
        trpi_node_id id = { *trpi_peer_address(conn->peer), conn->uid };
        trpi_lane_dead_letters(conn->peer, trpi_node_find(conn->remote->system, &id), &rest,
                               TRP_DEAD_NOT_CONNECTED);
    }
}

void
trpi_conn_write_over(trpi_conn *conn)
{
    trpi_peer *peer = conn->peer;
    conn->write.busy = false;
    if (peer != NULL && !conn->write.settled) {
        trpi_lane_state *lane = &peer->lanes[conn->lane];
        trpi_lane_queue_sent(&lane->queue, conn->write.taken.count);
    }
    if (peer != NULL) {
        trpi_traffic_bytes_out_add(&peer->traffic, conn->write.taken.count);
    }
    trpi_buffer_clear(&conn->write.taken_head);
    trpi_buffer_clear(&conn->write.taken);
    if (conn->write.taken.capacity > TRPI_BUFFER_KEPT_BYTES) {
        trpi_buffer_fini(&conn->write.taken);
    }
    if (conn->close_when_sent && conn->write.head.count == 0) {
        trpi_conn_close(conn);
    }
}

void
trpi_conn_write_settle(trpi_conn *conn)
{
    if (conn->write.busy) { /* conn-N3; its owner may be in write() and not know yet */
        conn->write.settled = true;
        trpi_lane_queue_sent(&conn->peer->lanes[conn->lane].queue, conn->write.taken.count);
    }
}

bool
trpi_conn_write_rest(trpi_conn *conn, uint32_t *writes_left)
{
    trpi_conn_ref(conn);
    return !slice_next(conn) || trpi_conn_write(conn, writes_left);
}

void
trpi_conn_write_alone_over(trpi_conn *conn, uint32_t *writes_left)
{
    trpi_remote *remote = conn->remote;
    bool more = true;
    while (more) {
        pthread_mutex_lock(&remote->lock);
        trpi_conn_write_over(conn);
        bool taken = trpi_conn_take(conn);
        pthread_mutex_unlock(&remote->lock);
        trpi_conn_unref(conn);
        more = taken && trpi_conn_write(conn, writes_left);
    }
}

void
trpi_conn_write_trim(trpi_conn *conn)
{
    if (!conn->write.busy && conn->write.head.count == 0) {
        trpi_buffer_fini(&conn->write.head);
        trpi_buffer_fini(&conn->write.taken_head);
        trpi_buffer_fini(&conn->write.taken);
    }
}

trp_err
trpi_conn_handshake(trpi_conn *conn, enum trpi_frame_kind kind, const trpi_handshake *handshake)
{
    trp_err err = trpi_conn_preamble(conn);
    return err == TRP_OK ? trpi_handshake_append(&conn->write.head, kind, handshake) : err;
}
