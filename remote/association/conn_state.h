/* conn_state.h - the members of a connection, and what other files ask about them.
 *
 * conn.c, conn_events.c and conn_write.c know the members; a part that is a module of its own is
 * known to that one, too (tests/tidy, rule readers). No source above is
 * called from here.
 */
#ifndef TRPI_REMOTE_CONN_STATE_H
#define TRPI_REMOTE_CONN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/transport.h"
#include "remote/association/peer_state.h"

#define TRPI_PEER_CONNS_MAX 64       /* connections of one peer: it needs two a lane at most */
#define TRPI_WRITE_BYTES_MAX 1048576 /* one write of a lane */
#define TRPI_WRITES_AT_ONCE 8        /* of one peer by one thread; then written() goes on */
#define TRPI_BUFFER_KEPT_BYTES                                                                     \
    1048576                /* a lane's buffer that grew beyond is given back when empty */
#define TRPI_TYPE_CACHE 64 /* a power of two */

/* The write of a connection (conn_write.c). While it is in progress it has one owner, to which the
 * three members belong that say so; the rest by trpi_conn_lock_of(). */
typedef struct trpi_conn_writing {
    bool busy;    /* a write is in progress */
    bool settled; /* and its connection has ended: it is off the lane's account */
    bool preamble_sent;
    trpi_buffer head;              /* frames of this very connection, before the lane's */
    trpi_buffer taken_head, taken; /* being written; by the owner, as the next two */
    size_t at;
    size_t slice_bytes;
} trpi_conn_writing;

enum trpi_numbers_scope { TRPI_NUMBERS_NONE, TRPI_NUMBERS_RECEIVER, TRPI_NUMBERS_ANY };

/* The reading side of a connection (inbound.c). By the transport's bytes() callback, which does not
 * overlap with itself. */
typedef struct trpi_conn_reading {
    /* of the batch that the present read has begun, with the lane's recv lock; NULL: none */
    trp_ctx *ctx;
    uint64_t arrived_ns; /* when the present bytes of a control lane were read */
    uint32_t epoch;      /* of its LANE_OPEN; 0: none yet */
    uint32_t node;       /* number of the peer's incarnation here; 0: not asked for yet */
    bool ack_due;
    struct {
        enum trpi_numbers_scope scope;
        uint32_t slot, generation;
    } numbers; /* receivers for which third nodes of the present frame get numbers (strangers.c) */
    trpi_buffer scratch, expanded;
    struct {
        uint64_t wire_id;
        const trp_type *type;
    } types[TRPI_TYPE_CACHE];
} trpi_conn_reading;

/* Graceful close of one lane's connection (graceful_close.c); by peer->lock. */
typedef struct trpi_conn_goodbye {
    bool said;  /* ours: we send nothing of the lane on it any more */
    bool acked; /* and everything before it was handled */
    bool heard; /* the peer's: nothing of the lane comes any more */
    uint64_t said_ms;
    unsigned uses_seen;
    uint64_t idle_since_ms;
} trpi_conn_goodbye;

struct trpi_conn {
    trpi_remote *remote;
    trpi_link *link;       /* set once, before any other thread can see the connection */
    trpi_peer *peer;       /* NULL until the handshake names it; then never changes */
    atomic_int references; /* transport until closed(), a writer while it writes; acq_rel */
    bool dialled;
    uint8_t lane;
    char peer_text[300];
    uint64_t uid;         /* of the peer's incarnation; by trpi_conn_lock_of() */
    uint32_t host;        /* share of its host; set once, as peer_text */
    uint64_t share_key;   /* key of the host or certificate at the other end (strangers.c) */
    uint64_t deadline_ms; /* to be ready; by remote->lock */
    uint64_t early_bytes; /* while not ready; by the bytes() callback */
    bool ready;           /* may carry the lane's frames; by trpi_conn_lock_of() */
    bool closing;         /* by trpi_conn_lock_of() */
    bool of_client;       /* it counts as a client's control connection; by bytes(), closed() */
    bool reached;         /* dialled, and the peer's host has answered; by trpi_conn_lock_of() */
    bool close_when_sent; /* by trpi_conn_lock_of() */
    atomic_uint uses;     /* writes and reads; relaxed, it only has to change */
    trpi_conn_writing write;
    trpi_frame_decoder decoder; /* by the bytes() callback */
    uint32_t frames;            /* the same */
    char failure[160];
    trpi_conn_reading read;
    trpi_control *control; /* NULL: not on the thread for control lanes; by peer->lock, set once */
    bool stays;            /* it will not be; by the bytes() callback */
    trpi_conn_goodbye goodbye;
    struct {
        /* since when a frame is not finished, 0: none; and how long it will be. Relaxed: the
         * tick's */
        _Atomic uint64_t since_ms;
        _Atomic uint32_t bytes;
        uint32_t frames_noted; /* by the bytes() callback */
    } unfinished;              /* unfinished.c */
    struct {
        bool listed;
        struct trpi_conn *next, *before;
    } waits;                                   /* for a handshake (pending.c); by remote->lock */
    struct trpi_conn *peer_next;               /* by peer->lock */
    struct trpi_conn *all_next, *all_previous; /* by remote->lock */
};

/* Set once; the peer, by the handshake. */
static inline trpi_remote *
trpi_conn_remote(const trpi_conn *conn)
{
    return conn->remote;
}
static inline trpi_peer *
trpi_conn_peer(const trpi_conn *conn)
{
    return conn->peer;
}
static inline trpi_link *
trpi_conn_link(const trpi_conn *conn)
{
    return conn->link;
}
static inline uint8_t
trpi_conn_lane(const trpi_conn *conn)
{
    return conn->lane;
}
static inline bool
trpi_conn_is_dialled(const trpi_conn *conn)
{
    return conn->dialled;
}
/* Address of the other end, as the transport writes it. */
static inline const char *
trpi_conn_peer_text(const trpi_conn *conn)
{
    return conn->peer_text;
}
/* Has its peer, which is known, no host? */
static inline bool
trpi_conn_is_client(const trpi_conn *conn)
{
    return trpi_peer_is_client(conn->peer);
}
/* Share of its host; and the key that it counts by. */
static inline uint32_t
trpi_conn_host(const trpi_conn *conn)
{
    return conn->host;
}
static inline uint64_t
trpi_conn_counts_by(const trpi_conn *conn)
{
    return conn->share_key;
}
/* By trpi_conn_lock_of(), as the next eight. The incarnation of the peer. */
static inline uint64_t
trpi_conn_uid(const trpi_conn *conn)
{
    return conn->uid;
}
static inline bool
trpi_conn_is_ready(const trpi_conn *conn)
{
    return conn->ready;
}
static inline bool
trpi_conn_is_closing(const trpi_conn *conn)
{
    return conn->closing;
}
static inline bool
trpi_conn_is_open(const trpi_conn *conn)
{
    return conn->ready && !conn->closing;
}
/* May its peer's lane be on it? */
static inline bool
trpi_conn_carries(const trpi_conn *conn, int lane)
{
    return conn->lane == lane && conn->ready && !conn->closing && !conn->goodbye.said &&
           conn->uid == trpi_peer_uid(conn->peer);
}
/* Do frames of this very connection wait? */
static inline bool
trpi_conn_has_own_frames(const trpi_conn *conn)
{
    return conn->write.head.count > 0;
}
static inline bool
trpi_conn_is_writing(const trpi_conn *conn)
{
    return conn->write.busy;
}
/* The next connection of its peer. */
static inline trpi_conn *
trpi_conn_next(const trpi_conn *conn)
{
    return conn->peer_next;
}
/* Is it a ready control connection on which no frame is unfinished? */
static inline bool
trpi_conn_may_rest(const trpi_conn *conn)
{
    return conn->lane == TRPI_LANE_CONTROL && conn->ready &&
           atomic_load_explicit(&conn->unfinished.since_ms, memory_order_relaxed) == 0;
}
/* When it is to be ready; and was it not? */
static inline uint64_t
trpi_conn_deadline_ms(const trpi_conn *conn)
{
    return conn->deadline_ms;
}
static inline bool
trpi_conn_is_overdue(const trpi_conn *conn, uint64_t now_ms)
{
    return !conn->ready && now_ms >= conn->deadline_ms;
}
/* A number that changes with each write and read. */
static inline unsigned
trpi_conn_uses(const trpi_conn *conn)
{
    return atomic_load_explicit(&conn->uses, memory_order_relaxed);
}
/* The batch that the present read has begun; NULL: none. By bytes(), as the next. */
static inline trp_ctx *
trpi_conn_batch(const trpi_conn *conn)
{
    return conn->read.ctx;
}
/* The receivers for which third nodes of the present frame get numbers. */
static inline enum trpi_numbers_scope
trpi_conn_numbers(const trpi_conn *conn, uint32_t *ret_slot, uint32_t *ret_generation)
{
    *ret_slot = conn->read.numbers.slot;
    *ret_generation = conn->read.numbers.generation;
    return conn->read.numbers.scope;
}

#endif
