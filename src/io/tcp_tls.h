/* tcp_tls.h - TLS between a connection's socket and its brain.
 *
 * The brain (tcp_conn.h) knows nothing of it: to it plain bytes are read and written, the peer's
 * close_notify is the peer's end, and its own end of sending is a close_notify.
 */
#ifndef TRPI_IO_TCP_TLS_H
#define TRPI_IO_TCP_TLS_H

#include "base/buffer.h"
#include "io/tcp_actor.h"
#include "io/tls_program.h"

typedef struct trpi_tcp_tls {
    trpi_tls_session *session;
    trpi_buffer wire; /* for the peer; its first `sent` bytes are with the kernel */
    size_t sent;
    uint64_t plain;   /* bytes of the brain's queue, its first, that stand in wire */
    trpi_buffer rest; /* of the peer; its first `taken` bytes were decrypted */
    size_t taken;
    uint32_t handshake_bytes; /* of the peer, so far */
    uint32_t register_ms;
    uint64_t number;  /* of the options of connect */
    bool has_more;    /* the session may have something without another byte of the peer */
    bool blocked;     /* reading waits until wire is sent */
    bool end_due;     /* when wire is sent, the sending direction is shut down */
    bool drains;      /* lingering: what the peer sends is read and dropped, until its end */
    bool told;        /* the peer is told of the failure */
    bool failed;      /* for good: */
    int error;        /* errno */
    char reason[128]; /* for people */
} trpi_tcp_tls;

/* A connection begins with these, which are borrowed. */
typedef struct trpi_tcp_secure {
    trp_tls *tls;
    const char *host; /* of a client; NULL: a server */
    uint64_t number;
    uint32_t handshake_ms, register_ms;
} trpi_tcp_secure;

/* Begin the handshake on the socket, which is connected. a->asker is told how it ends. Returns 0 or
 * an errno. */
int trpi_tcp_tls_begin(trp_ctx *ctx, trpi_tcp_actor *a, const trpi_tcp_secure *how);
/* Go on with the handshake after a report; end it, since its time is over. */
void trpi_tcp_tls_shake(trp_ctx *ctx, trpi_tcp_actor *a);
void trpi_tcp_tls_late(trp_ctx *ctx, trpi_tcp_actor *a);

/* Read plain bytes once, at most max. Returns their number, 0 at the peer's end, or -errno;
 * -EAGAIN: see trpi_tcp_has_input(). */
ssize_t trpi_tcp_tls_read(trpi_tcp_actor *a, size_t max, trp_bytes *ret_bytes);
void trpi_tcp_tls_write_some(trp_ctx *ctx, trpi_tcp_actor *a);
/* Say that this side writes no more, then shut the sending direction down. */
void trpi_tcp_tls_say_end(trpi_tcp_actor *a);

/* At the end of a connection, which was told: true: something must be sent first. The socket is
 * closed, and the actor stops, when that is done or its time is over. */
bool trpi_tcp_tls_lingers(trp_ctx *ctx, trpi_tcp_actor *a, bool reset);
void trpi_tcp_linger_go_on(trp_ctx *ctx, trpi_tcp_actor *a);
void trpi_tcp_linger_end(trp_ctx *ctx, trpi_tcp_actor *a);

/* Return why the session failed; NULL: it did not, or with another errno. */
const char *trpi_tcp_tls_reason(const trpi_tcp_actor *a, int error);
void trpi_tcp_tls_free(trpi_tcp_tls *tls); /* NULL is fine */

/* May a read give something? */
static inline bool
trpi_tcp_has_input(const trpi_tcp_actor *a)
{
    const trpi_tcp_tls *t = a->tls;

    return t == NULL ? a->readable
                     : !a->lingering && !t->blocked &&
                           (a->readable || t->has_more || t->taken < t->rest.count);
}

/* Is there something to write? */
static inline bool
trpi_tcp_has_output(const trpi_tcp_actor *a)
{
    return trpi_tcp_conn_writes(&a->conn) ||
           (a->tls != NULL && !a->lingering && a->tls->wire.count > 0);
}

#endif
