/* conn.h - one connection: its members, its life, what it sends and what is heard on it. */
#ifndef TRPI_REMOTE_CONN_H
#define TRPI_REMOTE_CONN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/transport.h"
#include "remote/association/context.h"
#include "remote/wire/codec.h"

#define TRPI_PEER_CONNS_MAX 64        /* connections of one peer: it needs two a lane at most */
#define TRPI_WRITE_BYTES_MAX 1048576  /* one write of a lane */
#define TRPI_BUFFER_KEPT_BYTES                                                                     \
    1048576 /* a lane's buffer that grew beyond is given back when empty */
#define TRPI_TYPE_CACHE 64            /* a power of two */

struct trpi_conn {
    trpi_remote *remote;
    trpi_link *link;  /* set once, before any other thread can see the connection */
    trpi_peer *peer;  /* NULL until the handshake names it; then never changes */
    atomic_int references; /* transport until closed(), a writer while it writes; acq_rel */
    bool dialled;
    uint8_t lane;
    char peer_text[300];
    uint64_t uid;          /* of the peer's incarnation; by trpi_conn_lock_of() */
    uint32_t host;         /* share of its host; set once, as peer_text */
    bool pending;          /* in the line of pending.c; by remote->lock, as the next */
    struct trpi_conn *pending_next, *pending_before;
    uint64_t whose;        /* key of the host or certificate at the other end (strangers.c) */
    uint64_t deadline_ms;  /* to be ready; by remote->lock */
    uint64_t early_bytes;  /* while not ready; by the bytes() callback */
    bool ready;            /* may carry the lane's frames; by trpi_conn_lock_of() */
    bool closing;          /* by trpi_conn_lock_of() */
    bool close_when_sent;  /* by trpi_conn_lock_of() */
    bool preamble_sent;    /* by trpi_conn_lock_of() */
    /* Closing one lane's connection in good order (graceful_close.c); by peer->lock */
    bool parting;          /* our GOODBYE was said: we send nothing of the lane on it any more */
    bool parting_acked;    /* and everything before it was handled */
    bool parting_heard;    /* the peer's was: nothing of the lane comes any more */
    uint64_t parting_ms;   /* when ours was said last */
    /* writes and reads: relaxed, they only have to change; the other two by the tick */
    atomic_uint uses;
    unsigned uses_seen;
    uint64_t idle_since_ms;
    /* a write is in progress, its owner has the three below; by trpi_conn_lock_of() */
    bool busy;
    /* frames of this very connection, before the lane's; by trpi_conn_lock_of() */
    trpi_buffer head;
    trpi_buffer writing_head, writing; /* by whoever made busy true */
    size_t writing_at;
    size_t slice_bytes;
    /* Reading: by the transport's bytes() callback, which does not overlap with itself. */
    trpi_frame_decoder decoder;
    uint32_t recv_epoch;
    uint32_t recv_node;  /* the number of that incarnation here; 0: not asked for yet */
    bool in_batch;   /* holds the lane's recv lock and an open trpi_inbound_begin */
    bool ack_due;
    uint32_t frames, frames_noted; /* by the bytes() callback */
    /* since when a frame is not finished, 0: none; and how long it will be. Relaxed: the tick's */
    _Atomic uint64_t unfinished_ms;
    _Atomic uint32_t unfinished_bytes;
    struct {
        enum { TRPI_NUMBERS_NONE, TRPI_NUMBERS_RECEIVER, TRPI_NUMBERS_ANY } who;
        uint32_t slot, generation;
    } numbers; /* for whom third nodes of the present frame get numbers (strangers.c) */
    trpi_buffer scratch, expanded;
    char failure[160];
    struct {
        uint64_t wire_id;
        const trp_type *type;
    } types[TRPI_TYPE_CACHE];
    struct trpi_conn *peer_next;              /* by peer->lock */
    struct trpi_conn *all_next, *all_previous; /* by remote->lock */
};

/* ---- conn.c: whose a connection is ---- */
/* Key of the host in the text of a connection's other end, without the port; of IPv6 the net. */
uint64_t trpi_whose_text(const char *peer_text);
/* Key of who is at the other end; what the link knows of it goes before the host. */
uint64_t trpi_whose(const trpi_conn *conn);

/* ---- conn.c ---- */
/* NULL: no memory. */
trpi_conn *trpi_conn_new(trpi_remote *remote, bool dialled);
/* In the list of all. By remote->lock. */
void trpi_conns_add(trpi_conn *conn);
void trpi_conns_remove(trpi_conn *conn);
void trpi_conn_ref(trpi_conn *conn);
void trpi_conn_unref(trpi_conn *conn);
void trpi_conn_dial(trpi_peer *peer, enum trpi_lane lane);
pthread_mutex_t *trpi_conn_lock_of(trpi_conn *conn);
/* The caller holds trpi_conn_lock_of(), or is its only user. */
void trpi_conn_close(trpi_conn *conn);
void trpi_conns_expire(trpi_remote *remote, uint64_t now_ms);

/* ---- conn_write.c ---- */
/* Take what is to be sent; true: the caller owns the write and calls trpi_conn_write() without
 * locks. */
bool trpi_conn_take(trpi_conn *conn);
void trpi_conn_write(trpi_conn *conn);
/* What the transport was never given whole becomes dead letters. Nobody else uses it any more. */
void trpi_conn_give_up(trpi_conn *conn);
/* A frame in front of the lane's. Errors: TRP_ENOMEM; TRP_EAGAIN: control_bytes_max wait. */
trp_err trpi_conn_head(trpi_conn *conn, enum trpi_frame_kind kind, uint8_t flags, const void *body,
                       size_t bytes);
trp_err trpi_conn_preamble(trpi_conn *conn);

/* ---- conn_events.c ---- */
extern const trpi_transport_events trpi_conn_events;

/* ---- pending.c: connections that have not said who they are. By remote->lock ---- */
enum { TRPI_PENDING_TEXT_BYTES = 300 };
/* So many places, with the descriptors that there are. Without locks, as for the last two. */
uint32_t trpi_pending_places(uint32_t wanted);
/* gone: who had to give way for it, "": nobody. */
void trpi_pending_add(trpi_conn *conn, char gone[TRPI_PENDING_TEXT_BYTES]);
void trpi_pending_remove(trpi_conn *conn); /* if it is there */
/* Its addresses are a member's: places are kept for them. By peer->lock. */
void trpi_pending_member(trpi_peer *peer);
void trpi_pending_starved(void *remote); /* of trpi_transport_events */

/* ---- unfinished.c: frames that have begun to come ---- */
trp_err trpi_unfinished_carry(void *conn, size_t before, size_t after); /* of the decoder */
/* Around a read, by the bytes() callback. */
void trpi_unfinished_before(trpi_conn *conn);
void trpi_unfinished_after(trpi_conn *conn);
bool trpi_unfinished_is_late(const trpi_conn *conn, uint64_t now_ms);
void trpi_unfinished_say_late(trpi_peer *peer, uint32_t count); /* without locks */

/* ---- graceful_close.c: the end of one lane's connection. The caller holds peer->lock ---- */
void trpi_parting_tick(trpi_peer *peer, uint64_t now_ms);
/* Is the lane on a connection whose certificate or cookie was replaced? Never the control lane. */
bool trpi_lane_is_renewing(const trpi_peer *peer, int lane);
/* GOODBYE or GOODBYE_ACK of one lane came. */
void trpi_parting_frame(trpi_conn *conn, enum trpi_frame_kind kind);

#endif
