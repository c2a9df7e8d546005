/* conn.h - one connection: its life, what it sends and what is heard on it. */
#ifndef TRPI_REMOTE_CONN_H
#define TRPI_REMOTE_CONN_H

#include "base/transport.h"
#include "remote/association/conn_state.h"
#include "remote/association/peer.h"

/* ---- conn.c: the share of a connection ---- */
/* Key of the host in the text of a connection's other end, without the port; of IPv6 the net. */
uint64_t trpi_host_key(const char *peer_text);
/* Key of the peer at the other end: what the link knows of it, else its host. */
uint64_t trpi_conn_share_key(const trpi_conn *conn);

/* ---- conn.c ---- */
/* NULL: no memory. */
trpi_conn *trpi_conn_new(trpi_remote *remote, bool dialled);
/* In the list of all. By remote->lock. */
void trpi_conns_add(trpi_conn *conn);
void trpi_conns_remove(trpi_conn *conn);
void trpi_conn_free(trpi_conn *conn); /* which nobody refers to any more */
static inline void
trpi_conn_ref(trpi_conn *conn)
{
    atomic_fetch_add_explicit(&conn->references, 1, memory_order_relaxed);
}
static inline void
trpi_conn_unref(trpi_conn *conn)
{
    if (atomic_fetch_sub_explicit(&conn->references, 1, memory_order_acq_rel) == 1) {
        trpi_conn_free(conn);
    }
}
void trpi_conn_dial(trpi_peer *peer, enum trpi_lane lane);
static inline pthread_mutex_t *
trpi_conn_lock_of(trpi_conn *conn)
{
    return conn->peer != NULL ? &conn->peer->lock : &conn->remote->lock;
}
/* The caller holds trpi_conn_lock_of(), or is its only user. */
void trpi_conn_close(trpi_conn *conn);
void trpi_conns_expire(trpi_remote *remote, uint64_t now_ms);

/* Close it when its last frames are sent. By trpi_conn_lock_of(). */
static inline void
trpi_conn_close_when_sent(trpi_conn *conn)
{
    conn->close_when_sent = true;
}

/* ---- conn_write.c ---- */
/* Take what is to be sent; true: the caller owns the write and a reference, and calls
 * trpi_conn_write() without locks. */
bool trpi_conn_take(trpi_conn *conn);
/* Write it. true: all of it is written, and the caller owns the write still: it ends it with
 * trpi_conn_write_over() and drops the reference. false: written() or closed() goes on.
 * *writes_left: of this thread; the last one is not done at once. */
bool trpi_conn_write(trpi_conn *conn, uint32_t *writes_left);
/* Make dead letters of what the transport was never given whole. The caller is the only user. */
void trpi_conn_give_up(trpi_conn *conn);
/* A frame in front of the lane's. Errors: TRP_ENOMEM; TRP_EAGAIN: control_bytes_max wait. */
trp_err trpi_conn_head(trpi_conn *conn, enum trpi_frame_kind kind, uint8_t flags, const void *body,
                       size_t bytes);
trp_err trpi_conn_preamble(trpi_conn *conn);
/* The preamble, if it is not sent yet, and a frame of the handshake. Errors: TRP_ENOMEM. */
trp_err trpi_conn_handshake(trpi_conn *conn, enum trpi_frame_kind kind,
                            const trpi_handshake *handshake);
/* written() came for a slice: write the rest, as trpi_conn_write(). */
bool trpi_conn_write_rest(trpi_conn *conn, uint32_t *writes_left);
/* End a write of a connection without a peer, and write what gathered meanwhile. Without locks. */
void trpi_conn_write_alone_over(trpi_conn *conn, uint32_t *writes_left);
/* The write is over. By trpi_conn_lock_of(), as the next two. */
void trpi_conn_write_over(trpi_conn *conn);
/* The connection has ended: what it writes counts no more. */
void trpi_conn_write_settle(trpi_conn *conn);
/* Give back the memory of buffers that are empty. */
void trpi_conn_write_trim(trpi_conn *conn);

/* ---- conn_events.c ---- */
extern const trpi_transport_events trpi_conn_events;

/* ---- pending.c: connections without a handshake. By remote->lock ---- */
enum { TRPI_PENDING_TEXT_BYTES = 300 };
/* So many places, with the descriptors that there are. Without locks, as for the last two. */
uint32_t trpi_pending_places(uint32_t wanted);
/* gone: the peer of the connection that was closed for it, "": none. */
void trpi_pending_add(trpi_conn *conn, char gone[TRPI_PENDING_TEXT_BYTES]);
void trpi_pending_remove(trpi_conn *conn); /* if it is there */
/* Its address is a member's: places are kept for it. By remote->lock; and all of a peer's, by
 * peer->lock. */
void trpi_pending_member_host(const trpi_conn *conn);
void trpi_pending_member(trpi_peer *peer);
void trpi_pending_starved(void *remote); /* of trpi_transport_events */

/* ---- unfinished.c: frames that have begun to come ---- */
trp_err trpi_unfinished_carry(void *conn, size_t before, size_t after); /* of the decoder */
/* Around a read, by the bytes() callback: on the control lane; and when a frame is unfinished, or
 * was before. */
void trpi_unfinished_before(trpi_conn *conn);
void trpi_unfinished_after(trpi_conn *conn);
static inline bool
trpi_unfinished_is_any(const trpi_conn *conn)
{
    return conn->decoder.carry_bytes != 0 ||
           atomic_load_explicit(&conn->unfinished.since_ms, memory_order_relaxed) != 0;
}
bool trpi_unfinished_is_late(const trpi_conn *conn, uint64_t now_ms);
void trpi_unfinished_log_late(trpi_peer *peer, uint32_t count); /* without locks */

/* ---- graceful_close.c: the end of one lane's connection. The caller holds peer->lock ---- */
void trpi_graceful_close_tick(trpi_peer *peer, uint64_t now_ms);
/* Is the lane on a connection whose certificate or cookie was replaced? Never the control lane. */
bool trpi_lane_is_renewing(const trpi_peer *peer, int lane);
/* GOODBYE or GOODBYE_ACK of one lane came. */
void trpi_graceful_close_frame(trpi_conn *conn, enum trpi_frame_kind kind);

#endif
