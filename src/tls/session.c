/* session.c - TLS sessions by OpenSSL, of bytes in memory.
 *
 * Why.   nng's own TLS (1.5.2) is TLS 1.2 and does not show the peer's names. Here OpenSSL reads
 *        and writes memory, so any transport can carry the bytes.
 * Shape. input -> [BIO that reads the borrowed bytes] -> SSL -> [BIO that appends to `wire`]
 * Limits. TRPI_TLS_WIRE_BYTES_MAX; the bytes of a handshake are bounded by the caller (secure.c).
 * Tests. tests/unit/remote/secure_test.c
 */
#include "tls/tls_inner.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { ALERTS = SSL_AD_REASON_OFFSET };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *bio_method;
static int session_index;

/* ---- the BIO --------------------------------------------------------------------------------- */

static int
bio_read(BIO *bio, char *out, size_t max, size_t *ret_count)
{
    trpi_tls_session *session = BIO_get_data(bio);
    size_t count = session->in_count < max ? session->in_count : max;
    BIO_clear_retry_flags(bio);
    if (count == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(out, session->in, count);
    session->in += count;
    session->in_count -= count;
    *ret_count = count;
    return 1;
}

static int
bio_write(BIO *bio, const char *bytes, size_t count, size_t *ret_count)
{
    trpi_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (session->wire == NULL ||
        trpi_buffer_append(session->wire, bytes, count, TRPI_TLS_WIRE_BYTES_MAX) != TRP_OK) {
        return 0; /* no retry: the session fails */
    }
    *ret_count = count;
    return 1;
}

static long
bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void
library_prepare(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe");
    session_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    if (bio_method != NULL) {
        (void)BIO_meth_set_read_ex(bio_method, bio_read);
        (void)BIO_meth_set_write_ex(bio_method, bio_write);
        (void)BIO_meth_set_ctrl(bio_method, bio_control);
    }
}

bool
trpi_tls_library_prepare(void)
{
    (void)pthread_once(&once, library_prepare);
    return bio_method != NULL;
}

int
trpi_tls_session_index(void)
{
    return session_index;
}

/* ---- sessions -------------------------------------------------------------------------------- */

trp_err
trpi_tls_session_new(trpi_tls_context *context, const char *host, int64_t wall_ms,
                     trpi_tls_session **ret_session)
{
    trpi_tls_session *session = trpi_alloc(sizeof *session);
    SSL *ssl = session != NULL ? SSL_new(context->ssl) : NULL;
    BIO *bio = ssl != NULL ? BIO_new(bio_method) : NULL;
    if (bio == NULL) {
        SSL_free(ssl);
        trpi_free(session);
        ERR_clear_error();
        return TRP_ENOMEM;
    }
    session->context = trpi_tls_context_ref(context);
    session->ssl = ssl;
    session->dialled = host != NULL;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    bool built = SSL_set_ex_data(ssl, session_index, session) == 1;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_time(param, (time_t)(wall_ms / 1000)); /* tls-verify-T2 */
    if (host != NULL) {
        SSL_set_connect_state(ssl);
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (!context->ignore_address) {
            built = built && (trpi_tls_host_is_numeric(host)
                                  ? X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1
                                  : X509_VERIFY_PARAM_set1_host(param, host, 0) == 1);
        }
    } else {
        SSL_set_accept_state(ssl);
    }
    if (!built) {
        trpi_tls_session_free(session);
        ERR_clear_error();
        return TRP_ENOMEM;
    }
    *ret_session = session;
    return TRP_OK;
}

void
trpi_tls_session_free(trpi_tls_session *session)
{
    if (session == NULL) {
        return;
    }
    SSL_free(session->ssl);
    trpi_tls_context_unref(session->context);
    trpi_free(session);
}

void
trpi_tls_session_input(trpi_tls_session *session, const uint8_t *bytes, size_t count)
{
    trpi_assert(session->in_count == 0);
    session->in = bytes;
    session->in_count = count;
}

void
trpi_tls_session_input_end(trpi_tls_session *session)
{
    session->in = NULL;
    session->in_count = 0; /* the rest is of no use to a session that has ended */
}

static trpi_tls_result TRP_PRINTF(3, 4)
    session_fail(trpi_tls_session *session, trpi_refusal refusal, const char *format, ...)
{
    va_list args;
    if (session->refusal == TRPI_REFUSED_NONE) {
        session->refusal = refusal;
        va_start(args, format);
        (void)vsnprintf(session->detail, sizeof session->detail, format, args);
        va_end(args);
        trpi_tls_text_sanitize(session->detail);
    }
    session->in_count = 0;
    ERR_clear_error();
    return TRPI_TLS_FAILED;
}

/* Translate OpenSSL's error into one of our reasons; the detail is OpenSSL's text. */
static trpi_tls_result
session_fail_openssl(trpi_tls_session *session)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_REASON(error);
    const char *text = ERR_reason_error_string(error);
    text = text != NULL ? text : "out of memory, or the connection broke";
    if (session->verify_error != X509_V_OK) {
        return session_fail(session, trpi_tls_refusal_of_verify(session->verify_error),
                            "%s; subject=%s issuer=%s sha256=%.16s own-ca-sha256=%.16s",
                            X509_verify_cert_error_string(session->verify_error),
                            session->peer_name, session->peer_issuer, session->peer_digest,
                            session->context->ca_digest);
    }
    if (reason == ALERTS + SSL_AD_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL ||
        reason == SSL_R_NO_PROTOCOLS_AVAILABLE) {
        return session_fail(session, TRPI_REFUSED_TLS_VERSION, "%s: TLS 1.3 is required", text);
    }
    if (reason >= ALERTS) {
        return session_fail(session, TRPI_REFUSED_BY_PEER,
                            "%s; own certificate: subject=%s issuer=%s sha256=%.16s", text,
                            session->context->info.subject, session->context->info.issuer,
                            session->context->info.digest);
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        return session_fail(session, TRPI_REFUSED_NO_CERTIFICATE, "%s", text);
    }
    return session_fail(session, TRPI_REFUSED_TLS, "%s", text);
}

/* Return whether the first byte is that of a handshake or alert record. */
static bool
looks_like_tls(trpi_tls_session *session)
{
    if (session->heard || session->in_count == 0) {
        return true;
    }
    session->heard = true;
    return session->in[0] == SSL3_RT_HANDSHAKE ||
           (session->dialled && session->in[0] == SSL3_RT_ALERT);
}

trpi_tls_result
trpi_tls_session_handshake(trpi_tls_session *session, trpi_buffer *wire)
{
    if (!looks_like_tls(session)) {
        /* a node that speaks plain tcp recognises TLS by this alert */
        static const uint8_t alert[] = {
            SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_UNEXPECTED_MESSAGE
        };
        (void)trpi_buffer_append(wire, alert, sizeof alert, TRPI_TLS_WIRE_BYTES_MAX);
        return session_fail(session, TRPI_REFUSED_NOT_TLS,
                            "the peer does not speak TLS: plain troupe.tcp, or another protocol");
    }
    ERR_clear_error();
    session->wire = wire;
    int done = SSL_do_handshake(session->ssl);
    session->wire = NULL;
    if (done == 1) {
        return TRPI_TLS_OK;
    }
    return SSL_get_error(session->ssl, done) == SSL_ERROR_WANT_READ ? TRPI_TLS_MORE
                                                                    : session_fail_openssl(session);
}

trpi_tls_result
trpi_tls_session_read(trpi_tls_session *session, uint8_t *out, size_t max, size_t *ret_count,
                      trpi_buffer *wire)
{
    size_t count = 0, part = 0;
    int done = 1;
    ERR_clear_error();
    session->wire = wire;
    while (count < max &&
           (done = SSL_read_ex(session->ssl, out + count, max - count, &part)) == 1) {
        count += part;
    }
    session->wire = NULL;
    *ret_count = count;
    if (done == 1) {
        return TRPI_TLS_OK;
    }
    switch (SSL_get_error(session->ssl, done)) {
    case SSL_ERROR_WANT_READ:
        return TRPI_TLS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        session->in_count = 0;
        return TRPI_TLS_ENDED;
    default:
        return session_fail_openssl(session);
    }
}

trpi_tls_result
trpi_tls_session_write(trpi_tls_session *session, const void *bytes, size_t count,
                       trpi_buffer *wire)
{
    size_t written = 0;
    ERR_clear_error();
    if (session->written_bytes >= session->context->rekey_bytes) {
        session->written_bytes = 0;
        (void)SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); /* sent with this write */
    }
    session->wire = wire;
    int done = SSL_write_ex(session->ssl, bytes, count, &written);
    session->wire = NULL;
    session->written_bytes += written;
    return done == 1 && written == count ? TRPI_TLS_OK : session_fail_openssl(session);
}

trpi_refusal
trpi_tls_session_failure(const trpi_tls_session *session, const char **ret_detail)
{
    *ret_detail = session->detail;
    return session->refusal;
}

trp_err
trpi_tls_session_claims(const trpi_tls_session *session, const char *host, char *ret_detail,
                        size_t detail_bytes)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    if (session->context->ignore_address || (cert != NULL && trpi_tls_cert_covers(cert, host))) {
        return TRP_OK;
    }
    char subject[TRPI_TLS_NAME_BYTES] = "";
    if (cert != NULL) {
        trpi_tls_common_name(X509_get_subject_name(cert), subject);
    }
    (void)snprintf(ret_detail, detail_bytes, "certificate of %s does not cover %s", subject, host);
    trpi_tls_text_sanitize(ret_detail);
    return TRP_EPERM;
}

uint64_t
trpi_tls_session_key(const trpi_tls_session *session)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    uint64_t key = 0;
    if (cert != NULL && X509_pubkey_digest(cert, EVP_sha256(), digest, &bytes) == 1) {
        memcpy(&key, digest, sizeof key);
    }
    return key;
}

int64_t
trpi_tls_session_until(const trpi_tls_session *session)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    return cert != NULL ? trpi_tls_time_ms(X509_get0_notAfter(cert)) : 0;
}

bool
trpi_tls_session_stands(const trpi_tls_session *session, trpi_tls_context *context, int64_t wall_ms,
                        trpi_refusal *ret_why)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    long error = cert != NULL
                     ? trpi_tls_chain_verify(context, cert, SSL_get_peer_cert_chain(session->ssl),
                                             wall_ms, NULL)
                     : X509_V_ERR_UNSPECIFIED;
    if (error == X509_V_OK && !trpi_tls_is_allowed(context, cert)) {
        error = X509_V_ERR_APPLICATION_VERIFICATION;
    }
    *ret_why = error != X509_V_OK ? trpi_tls_refusal_of_verify(error) : TRPI_REFUSED_NONE;
    return error == X509_V_OK;
}

const trpi_tls_context *
trpi_tls_session_context(const trpi_tls_session *session)
{
    return session->context;
}

bool
trpi_tls_session_export(const trpi_tls_session *session, const char *label, uint8_t ret_bytes[32])
{
    bool made = SSL_export_keying_material(session->ssl, ret_bytes, 32, label, strlen(label), NULL,
                                           0, 0) == 1;
    ERR_clear_error();
    return made;
}
