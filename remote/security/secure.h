/* secure.h - a transport around another one that authenticates peers, by TLS, a cookie, or both.
 *
 * transport_arg of both is a trpi_secure_options, borrowed until open() returns.
 */
#ifndef TRPI_REMOTE_SECURE_H
#define TRPI_REMOTE_SECURE_H

#include "base/transport.h"
#include "remote/security/cookie.h"
#include "tls/tls.h"
#include "remote/security/trouble.h"

typedef struct trpi_secure_options {
    const trpi_transport_ops *inner; /* carries the bytes */
    void *inner_arg;
    const trpi_tls_options *tls; /* of trpi_secure_tls_ops; else NULL */
    trpi_secrets secrets;        /* count 0: no cookie */
    /* The file with the secrets of one user's nodes on loopback, which are shown only to peers on
     * loopback. Borrowed while the transport lives. NULL or "": the secrets were configured. */
    const char *cookie_file;
    uint32_t handshake_bytes_max; /* limit for a peer that is not authenticated yet */
    uint32_t reload_interval_ms;  /* check the files for changes; 0: only on request */
    uint32_t old_end_ms;          /* lifetime of older connections after a reload */
    /* Called with the result of each reload, on the keeper thread. May be NULL. */
    void (*reloaded)(void *arg, trp_err err, const char *what);
    void *reloaded_arg;
    int64_t warn_ms; /* a certificate that expires this soon is a problem */
    /* Called for a new problem, and again each day while it lasts, on the keeper thread. May be
     * NULL. */
    void (*troubled)(void *arg, const trpi_trouble_text *text);
    /* For open() only: gets why it failed, for a person; at least 200 bytes. May be NULL. */
    char *why;
    size_t why_bytes;
} trpi_secure_options;

extern const trpi_transport_ops trpi_secure_tls_ops; /* scheme "tls" */
extern const trpi_transport_ops trpi_secure_tcp_ops; /* scheme "tcp": a cookie alone */

/* Read the files again and take these secrets (NULL: keep the present ones), soon, on the keeper
 * thread; the result goes to reloaded(). Thread: any; never blocks. */
void trpi_secure_reload(trpi_transport *transport, const trpi_secrets *secrets);
/* Is every reload that was asked for over? Thread: any. */
bool trpi_secure_is_reloaded(trpi_transport *transport);
/* Set the address that this node advertises, before it dials or accepts anybody; cookie proofs are
 * made for it. Without it they name no address, as in earlier minor versions. */
void trpi_secure_self(trpi_transport *transport, const char *host, uint16_t port);
/* Set the host that this node advertises, which its own certificate should name. Thread: any. */
void trpi_secure_host(trpi_transport *transport, const char *host);
/* Describe the certificates in use. false: no TLS. */
bool trpi_secure_info(trpi_transport *transport, trpi_tls_info *ret_info);
/* Describe the present problem of that kind. false: none. Thread: any. */
bool trpi_secure_trouble(trpi_transport *transport, trpi_trouble kind, trpi_trouble_text *ret_text);

#endif
