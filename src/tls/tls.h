/* tls.h - TLS 1.3 without sockets: contexts made of files, sessions that turn bytes into bytes.
 *
 * A context is one reading of the files: immutable, reference counted, shared by the sessions that
 * began with it. A session belongs to one connection and has no lock: its calls must not overlap.
 * It appends bytes for the peer to the buffer `wire`.
 */
#ifndef TRPI_TLS_H
#define TRPI_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/buffer.h"
#include "base/transport.h"

#define TRPI_TLS_RECORD_BYTES 16384
#define TRPI_TLS_WIRE_BYTES_MAX 1048576     /* unsent bytes; above it a session fails */
#define TRPI_TLS_REKEY_BYTES 34359738368ull /* 2^35: 2^21 records, a tenth of AES-GCM's bound */

typedef struct trpi_tls_context trpi_tls_context;
typedef struct trpi_tls_session trpi_tls_session;

typedef struct trpi_tls_options {
    const char *ca;             /* PEM: trusted authorities, one or more */
    const char *cert;           /* PEM: own certificate, then its chain up to the authority */
    const char *key;            /* PEM: its key, not encrypted */
    const char *crl;            /* PEM: revoked certificates; NULL or "": no list */
    const char *ciphers;        /* "A:B"; NULL or "": TRPI_TLS_CIPHERS */
    const char *const *allowed; /* names of accepted peers; none: all of the authority */
    size_t allowed_count;
    bool ignore_address;  /* do not compare a peer's address with its certificate */
    uint64_t rekey_bytes; /* 0: TRPI_TLS_REKEY_BYTES */
} trpi_tls_options;
#define TRPI_TLS_CIPHERS                                                                           \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

typedef struct trpi_tls_info {
    char subject[65], issuer[65];
    char digest[65]; /* SHA-256 of the certificate, hexadecimal */
    int64_t not_before_ms, not_after_ms;
    char authority[65];                      /* the one in its chain that expires first; "": none */
    int64_t authority_end_ms;                /* its expiry; 0: none */
    int64_t crl_from_ms, crl_next_ms;        /* validity of the revocation list; 0: no list */
    char uncovered[TRPI_HOST_BYTES_MAX + 1]; /* own host, if not in the certificate */
} trpi_tls_info;

/* Read the files and check them at wall_ms: the key belongs to the certificate, the authority has
 * signed it, and it is neither expired nor revoked. Gives *ret_context (unref). why: for a person.
 * Errors: TRP_ECONFIG, TRP_ENOMEM. May block for the file system. */
trp_err trpi_tls_context_load(const trpi_tls_options *options, int64_t wall_ms,
                              trpi_tls_context **ret_context, char *why, size_t why_bytes);
trpi_tls_context *trpi_tls_context_ref(trpi_tls_context *context);
void trpi_tls_context_unref(trpi_tls_context *context); /* NULL is fine */
/* host: what this node advertises; "": not known yet. */
void trpi_tls_context_info(const trpi_tls_context *context, const char *host,
                           trpi_tls_info *ret_info);

typedef enum trpi_tls_result {
    TRPI_TLS_OK,    /* done, or the output is full */
    TRPI_TLS_MORE,  /* all input was used; more is needed */
    TRPI_TLS_ENDED, /* the peer has closed the session */
    TRPI_TLS_FAILED /* see trpi_tls_session_failure(); `wire` may have an alert */
} trpi_tls_result;

/* host: the host that was dialled, which the peer's certificate must name. NULL: accepted. Shares
 * context. Errors: TRP_ENOMEM. */
trp_err trpi_tls_session_new(trpi_tls_context *context, const char *host, int64_t wall_ms,
                             trpi_tls_session **ret_session);
void trpi_tls_session_free(trpi_tls_session *session); /* NULL is fine */

/* Set the next bytes of the peer; borrowed until trpi_tls_session_input_end(). */
void trpi_tls_session_input(trpi_tls_session *session, const uint8_t *bytes, size_t count);
void trpi_tls_session_input_end(trpi_tls_session *session);
trpi_tls_result trpi_tls_session_handshake(trpi_tls_session *session, trpi_buffer *wire);
/* Decrypt at most max bytes; *ret_count is set also when the result is MORE or ENDED. */
trpi_tls_result trpi_tls_session_read(trpi_tls_session *session, uint8_t *out, size_t max,
                                      size_t *ret_count, trpi_buffer *wire);
trpi_tls_result trpi_tls_session_write(trpi_tls_session *session, const void *bytes, size_t count,
                                       trpi_buffer *wire);
trpi_refusal trpi_tls_session_failure(const trpi_tls_session *session, const char **ret_detail);
/* Return a hash of the peer's public key; 0: it has shown none. */
uint64_t trpi_tls_session_key(const trpi_tls_session *session);
/* Return when the peer's certificate expires; 0: it has shown none. */
int64_t trpi_tls_session_until(const trpi_tls_session *session);
/* Check that the peer's certificate names host. Errors: TRP_EPERM. */
trp_err trpi_tls_session_claims(const trpi_tls_session *session, const char *host, char *ret_detail,
                                size_t detail_bytes);
/* Return whether context accepts the peer now, for a session that began with an older context. */
bool trpi_tls_session_stands(const trpi_tls_session *session, trpi_tls_context *context,
                             int64_t wall_ms, trpi_refusal *ret_why);
const trpi_tls_context *trpi_tls_session_context(const trpi_tls_session *session);
/* Give 32 bytes for that label that only the two ends of this session know. false: it is not open.
 */
bool trpi_tls_session_export(const trpi_tls_session *session, const char *label,
                             uint8_t ret_bytes[32]);

#endif
