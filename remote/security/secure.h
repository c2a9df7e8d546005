/* secure.h - a transport around another one: TLS, a cookie, or both, before anything is told.
 *
 * transport_arg of both is a trpi_secure_options, borrowed until open() returns.
 */
#ifndef TRPI_REMOTE_SECURE_H
#define TRPI_REMOTE_SECURE_H

#include "base/transport.h"
#include "remote/security/cookie.h"
#include "remote/security/tls.h"

typedef struct trpi_secure_options {
    const trpi_transport_ops *inner; /* moves the bytes */
    void *inner_arg;
    const trpi_tls_options *tls; /* of trpi_secure_tls_ops; else NULL */
    trpi_secrets secrets;        /* count 0: no cookie */
    /* The secrets are those of one user's nodes on loopback, from this file: only a peer there is
     * shown them. Borrowed as long as the transport lives; NULL or "": configured. */
    const char *cookie_file;
    uint32_t handshake_bytes_max; /* of the peer, before it is known who it is */
    uint32_t reload_interval_ms;  /* look whether the files have changed; 0: only when told */
    uint32_t old_end_ms;          /* connections of old files end so long after a reload */
    /* What a reading of the files brought; from the keeper thread. May be NULL. */
    void (*reloaded)(void *arg, trp_err err, const char *what);
    void *reloaded_arg;
    int64_t warn_ms; /* certificates: trouble from so long before their end */
    /* A trouble that has come, or that is still there a day after it was told; from the keeper
     * thread. May be NULL. */
    void (*troubled)(void *arg, const trpi_trouble_text *text);
    /* open() only: why it failed, for a person; at least 200 bytes. May be NULL. */
    char *why;
    size_t why_bytes;
} trpi_secure_options;

extern const trpi_transport_ops trpi_secure_tls_ops; /* scheme "tls" */
extern const trpi_transport_ops trpi_secure_tcp_ops; /* scheme "tcp": a cookie alone */

/* Read the files again and take these secrets (NULL: as they are), soon, on the keeper thread; what
 * came of it goes to reloaded(). Thread: any; never blocks. */
void trpi_secure_reload(trpi_transport *transport, const trpi_secrets *secrets);
/* What this node advertises, once it is known and before anybody is dialled or accepted: what a
 * cookie is made for. Not said: for nobody in particular, as earlier versions do. */
void trpi_secure_self(trpi_transport *transport, const char *host, uint16_t port);
/* The host that this node advertises: its own certificate should be for it. Thread: any. */
void trpi_secure_host(trpi_transport *transport, const char *host);
/* Of the files in use. false: no TLS. */
bool trpi_secure_info(trpi_transport *transport, trpi_tls_info *ret_info);
/* What is wrong now, of that kind. false: nothing. Thread: any. */
bool trpi_secure_trouble(trpi_transport *transport, trpi_trouble kind, trpi_trouble_text *ret_text);

#endif
