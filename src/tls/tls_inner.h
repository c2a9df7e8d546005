/* tls_inner.h - what the files of the TLS layer share. Nothing outside of it includes this. */
#ifndef TRPI_TLS_INNER_H
#define TRPI_TLS_INNER_H

#include "tls/tls.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

enum { TRPI_TLS_NAME_BYTES = 65, TRPI_TLS_DETAIL_BYTES = 320, TRPI_TLS_LIST_BYTES = 120 };
enum { TRPI_TLS_WHEN_BYTES = 100 };

struct trpi_tls_context {
    atomic_int references; /* acq_rel at the end: the last one sees all uses */
    SSL_CTX *ssl;
    char **allowed;
    size_t allowed_count;
    bool ignore_address, protocol_optional;
    trpi_tls_use use;
    trpi_tls_peer peer;
    trpi_tls_version version_min;
    SSL_CTX **more; /* certificates for other names */
    size_t more_count;
    char **protocols; /* by preference */
    size_t protocols_count;
    char protocols_text[TRPI_TLS_LIST_BYTES]; /* for people */
    uint64_t rekey_bytes;
    trpi_tls_info info;
    char ca_digest[65]; /* of the first authority */
};

struct trpi_tls_session {
    trpi_tls_context *context;
    SSL *ssl;
    const uint8_t *in; /* borrowed: the BIO's input */
    size_t in_count;
    trpi_buffer *wire; /* of the call in progress: the BIO's output */
    bool dialled, heard;
    bool open;     /* the handshake is over */
    bool said_end; /* this side writes no more */
    bool starved;  /* the BIO was asked for more bytes than there are */
    size_t wire_max;
    const char *protocol;   /* agreed on: one of the context's; "": none */
    uint64_t written_bytes; /* since the last key update */
    long verify_error;      /* X509_V_*, of the first error */
    char peer_name[TRPI_TLS_NAME_BYTES], peer_issuer[TRPI_TLS_NAME_BYTES], peer_digest[65];
    char when[TRPI_TLS_WHEN_BYTES]; /* of verify_error */
    trpi_refusal refusal;
    char detail[TRPI_TLS_DETAIL_BYTES];
};

/* session.c: prepare OpenSSL for sessions, once in the process. false: out of memory. */
bool trpi_tls_library_prepare(void);
int trpi_tls_session_index(void); /* of a session in its SSL */
/* Set the reason of a failure, unless there is one. */
trpi_tls_result trpi_tls_session_fail(trpi_tls_session *session, trpi_refusal refusal,
                                      const char *format, ...) TRP_PRINTF(3, 4);

/* ---- hello.c: what a client asks for --------------------------------------------------------- */
/* Take the protocols and the choice of a certificate by name. Errors: TRP_ECONFIG, TRP_ENOMEM. */
trp_err trpi_tls_hello_prepare(trpi_tls_context *context, const trpi_tls_options *options);
/* At the end of a handshake: take what was agreed on. false: nothing, and something had to be. */
bool trpi_tls_hello_agreed(trpi_tls_session *session);

/* ---- verify.c -------------------------------------------------------------------------------- */
void trpi_tls_text_sanitize(char *text); /* tls-verify-T3 */
void trpi_tls_common_name(const X509_NAME *name, char text[TRPI_TLS_NAME_BYTES]);
void trpi_tls_digest_text(const X509 *cert, char text[65]); /* SHA-256; "": out of memory */
int64_t trpi_tls_time_ms(const ASN1_TIME *time);            /* 0: none */
/* Write, for an error of cert's validity, "; valid from DATE, this host's clock says DATE" (until
 * DATE, when it has expired): a wrong clock is a frequent cause. Else "". */
void trpi_tls_when_write(const X509 *cert, long error, int64_t wall_ms,
                         char text[TRPI_TLS_WHEN_BYTES]);
bool trpi_tls_host_is_numeric(const char *host);
bool trpi_tls_cert_covers(X509 *cert, const char *host); /* tls-verify-T4 */
bool trpi_tls_is_allowed(const trpi_tls_context *context, X509 *cert);
trpi_refusal trpi_tls_refusal_of_verify(long error); /* X509_V_* */
/* OpenSSL calls this for each certificate of the peer's chain, and for each error. */
int trpi_tls_on_verify(int holds, X509_STORE_CTX *store);
/* Verify cert and its chain against the context's authorities. Returns X509_V_*. info: gets the
 * facts about the authorities; may be NULL. when: TRPI_TLS_WHEN_BYTES for the dates of the error,
 * or NULL. */
long trpi_tls_chain_verify(trpi_tls_context *context, X509 *cert, STACK_OF(X509) * chain,
                           int64_t wall_ms, trpi_tls_info *info, char *when);

#endif
