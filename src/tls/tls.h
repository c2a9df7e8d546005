/* tls.h - TLS without sockets: contexts made of files, sessions that turn bytes into bytes.
 *
 * A context is one reading of the files: immutable, reference counted, shared by the sessions that
 * began with it. A session belongs to one connection and has no lock: its calls must not overlap.
 * It appends bytes for the peer to the buffer `wire`.
 *
 * A loop over a connection: give the bytes that came (input), then handshake() until OK, then
 * read() until MORE or ENDED; take back what was not read (input_end). Send `wire`; write() while
 * it answers OK. close() says that this side writes no more; the other direction goes on. At the
 * end of the connection end() tells an orderly end from a truncation.
 */
#ifndef TRPI_TLS_H
#define TRPI_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/tls.h>

#include "base/address.h"
#include "base/buffer.h"
#include "base/transport.h"

#define TRPI_TLS_RECORD_BYTES 16384
#define TRPI_TLS_WIRE_BYTES_MAX 1048576     /* unsent bytes, also those of a handshake */
#define TRPI_TLS_WIRE_BYTES_MIN 2048        /* the least bound of unsent bytes */
#define TRPI_TLS_REKEY_BYTES 34359738368ull /* 2^35: 2^21 records, a tenth of AES-GCM's bound */

typedef struct trpi_tls_context trpi_tls_context;
typedef struct trpi_tls_session trpi_tls_session;

typedef enum trpi_tls_use {
    TRPI_TLS_NODE,   /* dials and accepts, by a certificate that its own authorities have signed */
    TRPI_TLS_CLIENT, /* dials; its certificate is optional */
    TRPI_TLS_SERVER  /* accepts */
} trpi_tls_use;

typedef enum trpi_tls_peer {
    TRPI_TLS_PEER_REQUIRED, /* the peer shows a certificate that holds */
    TRPI_TLS_PEER_OPTIONAL, /* a client may show none; one that it shows holds. Servers only */
    TRPI_TLS_PEER_UNCHECKED /* a server asks for none; a client accepts any, of any host */
} trpi_tls_peer;

typedef enum trpi_tls_version { TRPI_TLS_1_3, TRPI_TLS_1_2 } trpi_tls_version;

typedef struct trpi_tls_pair {
    const char *cert, *key; /* as in the options */
} trpi_tls_pair;

typedef struct trpi_tls_options {
    trpi_tls_use use;
    trpi_tls_peer peer;
    trpi_tls_version version_min;
    const char *ca;   /* PEM: trusted authorities. A client may leave it out: those of the system */
    const char *cert; /* PEM: own certificate, then its chain up to the authority */
    const char *key;  /* PEM: its key, not encrypted */
    const trpi_tls_pair *more; /* of a server: certificates for other names; the first above is
                                * shown to clients that name none of them */
    size_t more_count;
    /* Application protocols by preference (ALPN): a client offers them, a server chooses. None in
     * common: the handshake fails, unless protocol_optional. */
    const char *const *protocols;
    size_t protocols_count;
    bool protocol_optional;
    const char *crl;            /* PEM: revoked certificates; NULL or "": no list */
    const char *ciphers;        /* of TLS 1.3, "A:B"; NULL or "": TRPI_TLS_CIPHERS */
    const char *const *allowed; /* names of accepted peers; none: all of the authority */
    size_t allowed_count;
    bool ignore_address;  /* do not compare a peer's address with its certificate */
    uint64_t rekey_bytes; /* 0: TRPI_TLS_REKEY_BYTES */
} trpi_tls_options;
#define TRPI_TLS_CIPHERS                                                                           \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define TRPI_TLS_CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20" /* those with forward secrecy */

typedef struct trpi_tls_info {
    char subject[65], issuer[65];
    char digest[65]; /* SHA-256 of the certificate, hexadecimal */
    int64_t not_before_ms, not_after_ms;
    char authority[65];                      /* the one in its chain that expires first; "": none */
    int64_t authority_end_ms;                /* its expiry; 0: none */
    int64_t crl_from_ms, crl_next_ms;        /* validity of the revocation list; 0: no list */
    char uncovered[TRPI_HOST_BYTES_MAX + 1]; /* own host, if not in the certificate */
} trpi_tls_info;

/* Read the files and check them at wall_ms: the key belongs to the certificate, which has not
 * expired; that of a node is signed by its authority and not revoked. Gives *ret_context (unref).
 * why: for a person. Errors: TRP_ECONFIG, TRP_ENOMEM. May block for the file system. */
trp_err trpi_tls_context_load(const trpi_tls_options *options, int64_t wall_ms,
                              trpi_tls_context **ret_context, char *why, size_t why_bytes);
trpi_tls_context *trpi_tls_context_ref(trpi_tls_context *context);
void trpi_tls_context_unref(trpi_tls_context *context); /* NULL is fine */
/* host: what this node advertises; "": not known yet. */
void trpi_tls_context_info(const trpi_tls_context *context, const char *host,
                           trpi_tls_info *ret_info);

/* Put the certificate, its chain and key, and the authorities of clients into another context of
 * OpenSSL (SSL_CTX *), of a server whose connections this library does not make. Connections that
 * are open keep theirs. Errors: TRP_ENOMEM; then some may be the new ones. Thread: the one that
 * begins that server's connections. */
trp_err trpi_tls_context_lend(const trpi_tls_context *context, void *ssl_ctx);
/* Let OpenSSL alone judge the certificates of another context's clients, in place of a callback of
 * the library that it belongs to. Thread: as trpi_tls_context_lend(). */
void trpi_tls_verify_own(void *ssl_ctx, trpi_tls_peer peer);
/* Read the common name of the peer's certificate in a session of another library (SSL *; NULL:
 * none). False: there is no certificate, OpenSSL has not verified it, or it has not exactly one
 * common name that fits and has neither control characters nor NUL. */
bool trpi_tls_ssl_common_name(const void *ssl, char *ret_text, size_t bytes);

/* ---- a context for connections that another library dials ------------------------------------ */
typedef struct trpi_tls_dialer trpi_tls_dialer;
/* Make one: TLS 1.2 or later, with the certificate and the authorities of a client's context; the
 * peer's certificate must name host. context: NULL trusts no peer, for a library that wants one
 * though it dials none. Gives *ret_dialer (free), which outlives the library's use of it. Errors:
 * TRP_ENOMEM. */
trp_err trpi_tls_dialer_new(const trpi_tls_context *context, const char *host,
                            trpi_tls_dialer **ret_dialer);
void trpi_tls_dialer_free(trpi_tls_dialer *dialer);           /* NULL is fine */
void *trpi_tls_dialer_ssl_ctx(const trpi_tls_dialer *dialer); /* SSL_CTX *, borrowed */
/* Return why the last certificate was refused, once; NULL: it was not. Static. Thread: that of the
 * connections. */
const char *trpi_tls_dialer_failure(trpi_tls_dialer *dialer);

/* Copy options with all their texts. Errors: TRP_ENOMEM; nothing is copied then. */
trp_err trpi_tls_options_copy(trpi_tls_options *to, const trpi_tls_options *from);
void trpi_tls_options_fini(trpi_tls_options *options); /* of a copy; a zeroed one is fine */
/* Return a number that changes when one of the files is written again. May block for the file
 * system. */
uint64_t trpi_tls_files_mark(const trpi_tls_options *options);

/* ---- the present context of files that change ------------------------------------------------ */
typedef struct trpi_tls_source trpi_tls_source;
/* Copies options and reads the files. Errors: as trpi_tls_context_load(). */
trp_err trpi_tls_source_new(const trpi_tls_options *options, int64_t wall_ms,
                            trpi_tls_source **ret_source, char *why, size_t why_bytes);
void trpi_tls_source_free(trpi_tls_source *source); /* NULL is fine */
/* Return the present context, for the caller to unref. Thread: any; takes a lock for a moment. */
trpi_tls_context *trpi_tls_source_context(trpi_tls_source *source);
/* Read the files again if they have changed, or if the last reading failed. On an error the present
 * context stays. Errors: as trpi_tls_context_load(). Thread: one at a time; may block for the file
 * system. */
trp_err trpi_tls_source_check(trpi_tls_source *source, int64_t wall_ms, bool *ret_changed,
                              char *why, size_t why_bytes);

/* ---- sessions -------------------------------------------------------------------------------- */
typedef enum trpi_tls_result {
    TRPI_TLS_OK,    /* done, or the output is full */
    TRPI_TLS_MORE,  /* all input was used; more is needed */
    TRPI_TLS_FULL,  /* `wire` is full: send of it first, then repeat the call */
    TRPI_TLS_ENDED, /* read: the peer writes no more; write: this side has closed */
    TRPI_TLS_FAILED /* see trpi_tls_session_failure(); `wire` may have an alert */
} trpi_tls_result;

typedef struct trpi_tls_session_options {
    const char *host;   /* dialled: the peer's certificate must name it. NULL: accepted */
    bool sends_name;    /* tell the server that host is meant (SNI), unless it is an address */
    size_t wire_max;    /* bound of `wire` after the handshake; 0: TRPI_TLS_WIRE_BYTES_MAX */
    bool keeps_buffers; /* 34 KiB more for each session; without, OpenSSL allocates its buffers for
                         * each record */
    int64_t wall_ms;    /* now: the certificates are judged by it */
} trpi_tls_session_options;
/* Shares context. Errors: TRP_ENOMEM. */
trp_err trpi_tls_session_new(trpi_tls_context *context, const trpi_tls_session_options *options,
                             trpi_tls_session **ret_session);
void trpi_tls_session_free(trpi_tls_session *session); /* NULL is fine */

/* Set the next bytes of the peer; borrowed until trpi_tls_session_input_end(). */
void trpi_tls_session_input(trpi_tls_session *session, const uint8_t *bytes, size_t count);
/* Return how many of them, the last ones, were not read: give them again. A session that has ended
 * or failed reads none. */
size_t trpi_tls_session_input_end(trpi_tls_session *session);
/* Result: OK, MORE, FAILED. OK again after it is over. */
trpi_tls_result trpi_tls_session_handshake(trpi_tls_session *session, trpi_buffer *wire);
/* Decrypt at most max bytes; *ret_count is set also when the result is another one than OK. FULL:
 * the peer asks for answers (key updates) that it does not take. After the handshake. */
trpi_tls_result trpi_tls_session_read(trpi_tls_session *session, uint8_t *out, size_t max,
                                      size_t *ret_count, trpi_buffer *wire);
/* Encrypt up to count bytes; *ret_count are done, and the rest is given again after FULL. MORE: the
 * handshake is not over. `wire` does not grow beyond wire_max. */
trpi_tls_result trpi_tls_session_write(trpi_tls_session *session, const void *bytes, size_t count,
                                       size_t *ret_count, trpi_buffer *wire);
/* Say that this side writes no more (close_notify); it may go on reading. Result: OK (said; also
 * again), FULL, MORE (the handshake is not over: nothing is said), FAILED. */
trpi_tls_result trpi_tls_session_close(trpi_tls_session *session, trpi_buffer *wire);
/* Judge the end of the connection, after everything that came was read. Result: ENDED (the peer had
 * said so), FAILED (TRPI_REFUSED_TRUNCATED: bytes may be missing). */
trpi_tls_result trpi_tls_session_end(trpi_tls_session *session);
/* Return the application protocol that both agreed on; "": none. Lives as long as the session. */
const char *trpi_tls_session_protocol(const trpi_tls_session *session);
/* Return the host that the client asked for (SNI); "": none, or no host's name. As long. */
const char *trpi_tls_session_asked(const trpi_tls_session *session);
/* Tell what is known of the peer, after the handshake. */
void trpi_tls_session_peer(const trpi_tls_session *session, trp_tls_peer *ret_peer);
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
