/* transport.h - the transport service provider interface: ordered byte streams between hosts.
 *
 * Why.   Remoting frames, batches and associates; a driver only moves bytes. Drivers: tcp on nng
 *        streams (remote/nng/link_nng.c) and the in-memory network (src/sim/mem_transport.c). No
 *        type of a third party appears here.
 * Shape. open -> [listen -> accept] -> links: connect() or accepted() makes one; connected() once
 *        for a dialled one; then bytes() and written() until closed(), exactly once, the last
 *        callback.
 * Must hold.
 *   transport-T1  No callback is made from inside a call of this interface.
 *   transport-T2  bytes() and paused() of one link never overlap; written() may run beside bytes().
 *   transport-T3  closed() comes exactly once for each link, after every other callback of it has
 *       returned. It comes after close(), after a failure, and when connect() reaches no host.
 *   transport-T4  A link stays valid memory until release(); after closed() write() answers
 *       TRP_ECLOSED.
 *   transport-T5  A callback may call write() and close() of any link, connect(), and release() of
 *       its own link in closed(). It must not block and must not call stop().
 */
#ifndef TRPI_BASE_TRANSPORT_H
#define TRPI_BASE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/world.h"

#define TRPI_TRANSPORT_IOV_MAX 8 /* what nng takes in one send */

typedef struct trpi_transport trpi_transport; /* one instance, for one system */
typedef struct trpi_link trpi_link;           /* one connection */
typedef struct trpi_waker trpi_waker;         /* of a link that was handed over */

typedef struct trpi_iov {
    const void *data;
    size_t bytes;
} trpi_iov;

/* Reasons why a connection is refused: a number for counting, and a word for the log. */
#define TRPI_REFUSALS(R)                                                                           \
    R(NOT_TLS, "not-tls")          /* plain bytes on an encrypted port */                          \
    R(PEER_TLS, "peer-speaks-tls") /* encrypted bytes on a plain port */                           \
    R(TLS_VERSION, "tls-version")  /* older than TLS 1.3 */                                        \
    R(NO_CERTIFICATE, "no-certificate")                                                            \
    R(UNKNOWN_CA, "unknown-ca") /* by an unknown authority */                                      \
    R(EXPIRED, "expired")                                                                          \
    R(NOT_YET_VALID, "not-yet-valid")                                                              \
    R(REVOKED, "revoked")                                                                          \
    R(REVOCATION_LIST, "revocation-list") /* none of that authority, or it is too old */           \
    R(WRONG_NAME, "wrong-name")           /* certificate does not cover the address */             \
    R(NOT_ALLOWED, "not-allowed")         /* name is not on the list of allowed ones */            \
    R(CERTIFICATE, "certificate")         /* another fault of it */                                \
    R(TLS, "tls")                         /* another fault */                                      \
    R(BY_PEER, "refused-by-peer")         /* the peer refused: an alert, or our cookie */          \
    R(COOKIE, "cookie")                   /* wrong, or none */                                     \
    R(BYTES, "handshake-bytes")           /* too many before the peer was known */                 \
    R(PENDING, "pending-handshakes")      /* too many at once */                                   \
    R(TIMEOUT, "handshake-timeout")                                                                \
    R(NO_PROTOCOL, "no-protocol") /* no application protocol in common (ALPN) */                   \
    R(TRUNCATED, "truncated")     /* the connection ended, the TLS session did not */

typedef enum trpi_refusal {
    TRPI_REFUSED_NONE = 0,
#define TRPI_REFUSAL_ENUM(name, text) TRPI_REFUSED_##name,
    TRPI_REFUSALS(TRPI_REFUSAL_ENUM)
#undef TRPI_REFUSAL_ENUM
        TRPI_REFUSAL_COUNT
} trpi_refusal;
const char *trpi_refusal_text(trpi_refusal why); /* "" for none */

typedef struct trpi_transport_events {
    /* A peer connected; `peer` is its address as text, for logs. Put what later callbacks get into
     * *ret_user. False: refuse it; the link is closed, closed() is not called and the driver
     * releases it. */
    bool (*accepted)(void *arg, trpi_link *link, const char *peer, void **ret_user);
    void (*connected)(void *user, trpi_link *link);
    void (*bytes)(void *user, trpi_link *link, const uint8_t *bytes, size_t count);
    /* All bytes of the last write() were handed to the network; the buffers are the caller's again.
     * Not for a write() that has answered *ret_done. */
    void (*written)(void *user, trpi_link *link);
    /* reason is borrowed until return. A write in progress will not be reported any more. */
    void (*closed)(void *user, trpi_link *link, trp_err err, const char *reason);
    /* Every few milliseconds while the link is paused, like bytes(): true: wait on. NULL: the user
     * never calls pause(). */
    bool (*paused)(void *user, trpi_link *link);
    /* On the thread for control lanes, after nudge(). NULL: the user never calls hand_over(). */
    void (*nudged)(void *user, trpi_link *link);
    /* The peer failed authentication here, or we failed it there; at most once for a link, closed()
     * follows. detail is borrowed until return. NULL: not wanted. */
    void (*refused)(void *user, trpi_link *link, trpi_refusal why, const char *detail);
    /* A connection could not be accepted because the process has no descriptor left; the next try
     * comes soon. NULL: not wanted. */
    void (*starved)(void *arg);
} trpi_transport_events;

struct trpi_transport_ops {
    const char *scheme; /* "tcp": the address protocol is "troupe.tcp" */
    /* Borrows events until free. Errors: TRP_ENOMEM, TRP_EIO. */
    trp_err (*open)(void *transport_arg, trpi_world *world, const trpi_transport_events *events,
                    void *arg, trpi_transport **ret_transport);
    /* Take host:port (host "", "*": all; port 0: any). *ret_port: the real one. Once. Errors:
     * TRP_EADDRINUSE, TRP_EINVAL (host is not known here), TRP_EIO, TRP_ENOMEM. Thread: owner; may
     * block for name resolution. */
    trp_err (*listen)(trpi_transport *transport, const char *host, uint16_t port,
                      uint16_t *ret_port);
    /* Call accepted() from now on, also for peers that connected since listen(): the caller had
     * time to learn its own port. Once, after listen(). Thread: owner. */
    void (*accept)(trpi_transport *transport);
    /* Begin to connect; all addresses of host are tried within timeout_ms. user goes to the
     * callbacks, which may come before this returns. Errors: TRP_ENOMEM, TRP_ECLOSED. Thread: any.
     */
    trp_err (*connect)(trpi_transport *transport, const char *host, uint16_t port,
                       uint32_t timeout_ms, void *user, trpi_link **ret_link);
    /* Send count (1 .. TRPI_TRANSPORT_IOV_MAX) buffers. One write at a time.
     * *ret_done, false before the call: true: all bytes were handed to the network, the buffers are
     * the caller's again, and written() does not come. Else they stay untouched until written() or
     * closed(). NULL: the caller has written much from one call and wants to go on in written(),
     * which comes as if the network had been full.
     * Errors: TRP_ECLOSED (nothing was taken, *ret_done stays false). Thread: any. */
    trp_err (*write)(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done);
    /* From inside bytes() of this link: read no more until paused() returns false: back-pressure on
     * the peer. close() ends a pause. NULL: this driver cannot. Used by an adapter whose queue is
     * full (remote/faults/faults_link.c). */
    void (*pause)(trpi_link *link);
    /* From inside bytes() of this link, which is idle otherwise: when that has returned, all
     * callbacks of the link come on the thread that the driver has for control lanes; they run no
     * user code, and the driver makes them without an allocation or a lock that is held while user
     * code runs. write() is called on that thread alone then, and a pause() ends after a nudge().
     * false: it cannot be done now. NULL: this driver has no such thread. */
    bool (*hand_over)(trpi_link *link);
    /* Call nudged() of a link that was handed over, soon, on that thread: there is something to
     * write, or a pause may be over. Without an allocation. Thread: any. NULL: as hand_over. */
    void (*nudge)(trpi_link *link);
    /* Return what wakes a link that was handed over; it is good until the transport is freed. On
     * that thread. NULL: as hand_over. */
    trpi_waker *(*waker)(trpi_link *link);
    /* As nudge() of the link whose waker this is, but without a lock. The link may have ended: then
     * nobody is woken, or another link that was handed over. Thread: any. NULL: as hand_over. */
    void (*wake)(trpi_transport *transport, trpi_waker *waker);
    /* Check that the peer of this link may use this address as its own. NULL: this driver does not
     * know its peers. Errors: TRP_EPERM; detail names the subject of its certificate. From inside
     * bytes(). */
    trp_err (*claims)(trpi_link *link, const char *host, uint16_t port, char *ret_detail,
                      size_t detail_bytes);
    /* Return a key of the certificate of the peer of this link; 0: it has shown none. NULL: this
     * driver does not know its peers. From inside bytes(). */
    uint64_t (*whose)(trpi_link *link);
    /* Write the common name in the certificate of the peer of this link; "": it has shown none.
     * NULL: this driver does not know its peers. From inside bytes(). */
    void (*named)(trpi_link *link, char *ret_name, size_t bytes);
    /* Return when the certificate of the peer of this link expires, by the wall clock; 0: it has
     * shown none. NULL: this driver does not know its peers. From inside bytes(). */
    int64_t (*until)(trpi_link *link);
    /* Return whether this link began with a certificate or cookie that was replaced. NULL: this
     * driver has none. Thread: any. */
    bool (*outdated)(trpi_link *link);
    void (*close)(trpi_link *link);   /* any thread; idempotent; unsent bytes may be lost */
    void (*release)(trpi_link *link); /* gives the link back; after closed() */
    /* Close the listener and all links; returns when every closed() has returned. Thread: owner. */
    void (*stop)(trpi_transport *transport);
    void (*free)(
        trpi_transport *transport); /* after stop; all links must be released. NULL is fine */
};
typedef struct trpi_transport_ops trpi_transport_ops;

#endif
