/* unfinished.c - frames that have begun to come: how much of them is kept, and for how long.
 *
 * Why.     A frame that a read has cut is kept until its rest is there. A host that sends all but
 *          the last byte, on many connections, makes a node keep much, for as long as it likes.
 * Must hold.
 *   unfinished-K1  What is kept grows with what has come, not with what was announced. (frame.c)
 *   unfinished-K2  remote->flow.unfinished_bytes is the memory of all decoders; above
 *       unfinished_bytes_max a connection that wants more than SMALL of it is closed, one of a
 *       member above twice that.
 *   unfinished-K3  Frames of TRPI_CONTROL_FRAME_BYTES_MAX are taken from members, and from those
 *       that we have told of the cluster: a node that joins is answered with a view.
 *   unfinished-K4  A frame comes within FRAME_MS, and a second for each SLOWEST bytes.
 * Tests.   tests/sim/strangers_test.c
 */
#include "remote/association/conn.h"

#include <stdio.h>

#include "remote/association/peer.h"

enum { SMALL = 65536, FRAME_MS = 60000, SLOWEST = 4096 };

trp_err
trpi_unfinished_carry(void *arg, size_t before, size_t after)
{
    trpi_conn *conn = arg;
    trpi_remote *remote = trpi_conn_remote(conn);
    uint64_t max = remote->options.unfinished_bytes_max;
    uint64_t more = (uint64_t)after - before; /* wraps when it is less: so does the sum */
    uint64_t held =
        atomic_fetch_add_explicit(&remote->flow.unfinished_bytes, more, memory_order_relaxed) +
        more;
    bool member =
        trpi_conn_peer(conn) != NULL && trpi_watch_is_member(&trpi_conn_peer(conn)->watch);
    if (after <= before || after <= SMALL || held <= (member ? 2 * max : max)) {
        return TRP_OK;
    }
    atomic_fetch_sub_explicit(&remote->flow.unfinished_bytes, more,
                              memory_order_relaxed); /* unfinished-K2 */
    (void)snprintf(conn->failure, sizeof conn->failure,
                   "unfinished frames hold remote.unfinished-frames-max");
    return TRP_ELIMIT;
}

void
trpi_unfinished_before(trpi_conn *conn)
{
    if (trpi_conn_is_ready(conn) && trpi_conn_peer(conn) != NULL) {
        uint32_t max = trpi_conn_remote(conn)->options.frame_bytes_max;
        bool wide = trpi_watch_is_member(&trpi_conn_peer(conn)->watch) ||
                    trpi_watch_is_told(&trpi_conn_peer(conn)->watch);
        trpi_frame_decoder_limit(
            &conn->decoder, conn->decoder.frame_bytes_max,
            /* unfinished-K3 */
            wide ? trpi_control_frame_max(trpi_features_own(trpi_conn_remote(conn)), max) : max);
    }
}

void
trpi_unfinished_after(trpi_conn *conn)
{
    const trpi_frame_decoder *decoder = &conn->decoder;
    uint64_t since = atomic_load_explicit(&conn->unfinished.since_ms, memory_order_relaxed);
    if (decoder->carry_bytes == 0 || !trpi_conn_is_ready(conn)) {
        if (since != 0) {
            atomic_store_explicit(&conn->unfinished.since_ms, 0, memory_order_relaxed);
        }
    } else if (since == 0 || conn->frames != conn->unfinished.frames_noted) {
        conn->unfinished.frames_noted = conn->frames;
        atomic_store_explicit(&conn->unfinished.since_ms,
                              trpi_remote_now_ms(trpi_conn_remote(conn)), memory_order_relaxed);
        if (trpi_conn_lane(conn) == TRPI_LANE_CONTROL) { /* others do not let their peer rest */
            pthread_mutex_lock(&trpi_conn_peer(conn)->lock);
            trpi_peer_make_active(trpi_conn_peer(conn));
            pthread_mutex_unlock(&trpi_conn_peer(conn)->lock);
        }
    }
    atomic_store_explicit(&conn->unfinished.bytes, (uint32_t)decoder->carry_goal,
                          memory_order_relaxed);
}

bool
trpi_unfinished_is_late(const trpi_conn *conn, uint64_t now_ms)
{
    uint64_t since = atomic_load_explicit(&conn->unfinished.since_ms, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&conn->unfinished.bytes, memory_order_relaxed);
    return since != 0 && now_ms > since && now_ms - since >= FRAME_MS + bytes / SLOWEST * 1000;
}

void
trpi_unfinished_log_late(trpi_peer *peer, uint32_t count)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    uint32_t suppressed = 0;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    trpi_count(&remote->stats.unfinished_late, count);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_UNFINISHED, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "connection dropped peer=%s reason=\"a frame was not finished in time\" "
                 "suppressed=%u",
                 trpi_address_format(trpi_peer_address(peer), address, sizeof address), suppressed);
    }
}
