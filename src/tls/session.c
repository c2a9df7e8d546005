/* session.c - TLS sessions by OpenSSL, of bytes in memory.
 *
 * Why.   nng's own TLS (1.5.2) is TLS 1.2 and does not show the peer's names. Here OpenSSL reads
 *        and writes memory, so any transport can carry the bytes.
 * Shape. input -> [BIO that reads the borrowed bytes] -> SSL -> [BIO that appends to `wire`]
 * Must hold.
 *   tls-session-T5  After the handshake `wire` has at most wire_max bytes. A record is written only
 *       if it fits whole, and one is read only if its answer fits (a key update, an alert). So
 *       OpenSSL has no half of a record when it has to answer one, which it refuses.
 *   tls-session-T6  The first reason of a failure stays, and a session that has failed neither
 *       reads nor writes.
 *   tls-session-T7  No call leaves an error in OpenSSL's queue, which belongs to the thread.
 * Limits. wire_max; a handshake's own messages, TRPI_TLS_WIRE_BYTES_MAX; the bytes of the peer's
 *        handshake are bounded by the caller (remote/security/secure.c).
 * Tests. tests/unit/tls/session_test.c, stream_test.c, memory_test.c, tests/unit/remote
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

enum {
    ALERTS = SSL_AD_REASON_OFFSET,
    ANSWER_BYTES =
        128, /* most that OpenSSL writes while it reads a record: a key update, an alert */
    RESERVE_BYTES = 768, /* of `wire`, left by writes: a record's own bytes (at most 256), a key
                          * update, and some answers */
    SMALL_BYTES = 1024   /* no record with less than that is made because `wire` is nearly full */
};
_Static_assert(RESERVE_BYTES + SMALL_BYTES <= TRPI_TLS_WIRE_BYTES_MIN, "an empty wire takes some");

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
        session->starved = true;
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

/* The host that was dialled: its certificate must name it, and it may be told so. */
static bool
host_set(trpi_tls_session *session, const trpi_tls_session_options *options)
{
    const trpi_tls_context *context = session->context;
    X509_VERIFY_PARAM *param = SSL_get0_param(session->ssl);
    const char *host = options->host;
    bool numeric = trpi_tls_host_is_numeric(host), set = true;
    SSL_set_connect_state(session->ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (!context->ignore_address && context->peer != TRPI_TLS_PEER_UNCHECKED) {
        set = numeric ? X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1
                      : X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
    }
    if (options->sends_name && !numeric) {
        set = set && SSL_set_tlsext_host_name(session->ssl, host) == 1;
    }
    return set;
}

trp_err
trpi_tls_session_new(trpi_tls_context *context, const trpi_tls_session_options *options,
                     trpi_tls_session **ret_session)
{
    trpi_tls_session *session = trpi_alloc(sizeof *session);
    SSL *ssl = session != NULL ? SSL_new(context->ssl) : NULL;
    BIO *bio = ssl != NULL ? BIO_new(bio_method) : NULL;
    trpi_assert(options->wire_max <= TRPI_TLS_WIRE_BYTES_MAX);
    trpi_assert(options->wire_max == 0 || options->wire_max >= TRPI_TLS_WIRE_BYTES_MIN);
    trpi_assert(context->use != (options->host != NULL ? TRPI_TLS_SERVER : TRPI_TLS_CLIENT));
    if (bio == NULL) {
        SSL_free(ssl);
        trpi_free(session);
        ERR_clear_error();
        return TRP_ENOMEM;
    }
    session->context = trpi_tls_context_ref(context);
    session->ssl = ssl;
    session->dialled = options->host != NULL;
    if (options->keeps_buffers) {
        (void)SSL_clear_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    }
    session->wire_max = options->wire_max != 0 ? options->wire_max : TRPI_TLS_WIRE_BYTES_MAX;
    session->protocol = "";
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    bool built = SSL_set_ex_data(ssl, session_index, session) == 1;
    X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl),
                               (time_t)(options->wall_ms / 1000)); /* tls-verify-T2 */
    if (session->dialled) {
        built = built && host_set(session, options);
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

size_t
trpi_tls_session_input_end(trpi_tls_session *session)
{
    size_t unread = session->in_count;
    session->in = NULL;
    session->in_count = 0;
    return unread;
}

trpi_tls_result
trpi_tls_session_fail(trpi_tls_session *session, trpi_refusal refusal, const char *format, ...)
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
        return trpi_tls_session_fail(session, trpi_tls_refusal_of_verify(session->verify_error),
                                     "%s%s; subject=%s issuer=%s sha256=%.16s own-ca-sha256=%.16s",
                                     X509_verify_cert_error_string(session->verify_error),
                                     session->when, session->peer_name, session->peer_issuer,
                                     session->peer_digest, session->context->ca_digest);
    }
    if (reason == ALERTS + SSL_AD_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL ||
        reason == SSL_R_NO_PROTOCOLS_AVAILABLE) {
        return trpi_tls_session_fail(session, TRPI_REFUSED_TLS_VERSION, "%s: TLS %s is required",
                                     text,
                                     session->context->version_min == TRPI_TLS_1_3 ? "1.3" : "1.2");
    }
    if (reason == ALERTS + SSL_AD_NO_APPLICATION_PROTOCOL) {
        return trpi_tls_session_fail(
            session, TRPI_REFUSED_NO_PROTOCOL,
            "the server speaks none of the protocols that this client offers");
    }
    if (reason >= ALERTS) {
        return trpi_tls_session_fail(session, TRPI_REFUSED_BY_PEER,
                                     "%s; own certificate: subject=%s issuer=%s sha256=%.16s", text,
                                     session->context->info.subject, session->context->info.issuer,
                                     session->context->info.digest);
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        return trpi_tls_session_fail(session, TRPI_REFUSED_NO_CERTIFICATE, "%s", text);
    }
    return trpi_tls_session_fail(session, TRPI_REFUSED_TLS, "%s", text);
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
        return trpi_tls_session_fail(
            session, TRPI_REFUSED_NOT_TLS,
            "the peer does not speak TLS: plain troupe.tcp, or another protocol");
    }
    if (session->open || session->refusal != TRPI_REFUSED_NONE) {
        return session->refusal == TRPI_REFUSED_NONE ? TRPI_TLS_OK : TRPI_TLS_FAILED;
    }
    ERR_clear_error();
    session->wire = wire;
    int done = SSL_do_handshake(session->ssl);
    if (done == 1 && !trpi_tls_hello_agreed(session)) {
        (void)SSL_shutdown(session->ssl); /* the server takes it for a connection without bytes */
        done = 0;
    }
    session->wire = NULL;
    if (done == 1) {
        session->open = true;
        return TRPI_TLS_OK;
    }
    return done < 0 && SSL_get_error(session->ssl, done) == SSL_ERROR_WANT_READ
               ? TRPI_TLS_MORE
               : session_fail_openssl(session);
}

/* Return how many bytes `wire` may still take. */
static size_t
wire_room(const trpi_tls_session *session, const trpi_buffer *wire)
{
    return wire->count < session->wire_max ? session->wire_max - wire->count : 0;
}

/* The reason why a call of OpenSSL has not returned bytes. */
static trpi_tls_result
read_result(trpi_tls_session *session, int done)
{
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

/* OpenSSL reads one record a call, which it may answer (tls-session-T5). */
trpi_tls_result
trpi_tls_session_read(trpi_tls_session *session, uint8_t *out, size_t max, size_t *ret_count,
                      trpi_buffer *wire)
{
    trpi_tls_result result = session->refusal == TRPI_REFUSED_NONE ? TRPI_TLS_OK : TRPI_TLS_FAILED;
    size_t part = 0;
    trpi_assert(session->open || result == TRPI_TLS_FAILED);
    *ret_count = 0;
    ERR_clear_error();
    session->wire = wire;
    while (result == TRPI_TLS_OK && *ret_count < max) {
        session->starved = false;
        if (wire_room(session, wire) < ANSWER_BYTES) {
            result = TRPI_TLS_FULL;
            break;
        }
        int done = SSL_read_ex(session->ssl, out + *ret_count, max - *ret_count, &part);
        if (done == 1) {
            *ret_count += part;
            continue;
        }
        result = read_result(session, done);
        if (result == TRPI_TLS_MORE && !session->starved) {
            result = TRPI_TLS_OK; /* it was a record without bytes for the user */
        }
    }
    session->wire = NULL;
    return result;
}

trpi_tls_result
trpi_tls_session_write(trpi_tls_session *session, const void *bytes, size_t count,
                       size_t *ret_count, trpi_buffer *wire)
{
    trpi_tls_result result = TRPI_TLS_OK;
    *ret_count = 0;
    if (session->refusal != TRPI_REFUSED_NONE || session->said_end || !session->open) {
        return session->refusal != TRPI_REFUSED_NONE ? TRPI_TLS_FAILED
               : session->said_end                   ? TRPI_TLS_ENDED
                                                     : TRPI_TLS_MORE;
    }
    ERR_clear_error();
    session->wire = wire;
    while (result == TRPI_TLS_OK && *ret_count < count) {
        size_t part = count - *ret_count, room = wire_room(session, wire), written = 0;
        part = part < TRPI_TLS_RECORD_BYTES ? part : TRPI_TLS_RECORD_BYTES;
        if (room < RESERVE_BYTES + SMALL_BYTES) {
            result = TRPI_TLS_FULL;
            break;
        }
        part = part < room - RESERVE_BYTES ? part : room - RESERVE_BYTES;
        if (session->written_bytes >= session->context->rekey_bytes) {
            session->written_bytes = 0;
            if (SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
                ERR_clear_error(); /* it is on its way already; sent with this record */
            }
        }
        if (SSL_write_ex(session->ssl, (const uint8_t *)bytes + *ret_count, part, &written) != 1 ||
            written != part) {
            result = session_fail_openssl(session);
        }
        *ret_count += written;
        session->written_bytes += written;
    }
    session->wire = NULL;
    return result;
}

trpi_tls_result
trpi_tls_session_close(trpi_tls_session *session, trpi_buffer *wire)
{
    if (session->refusal != TRPI_REFUSED_NONE) {
        return TRPI_TLS_FAILED;
    }
    if (session->said_end || !session->open) {
        return session->open ? TRPI_TLS_OK : TRPI_TLS_MORE;
    }
    if (wire_room(session, wire) < ANSWER_BYTES) {
        return TRPI_TLS_FULL;
    }
    ERR_clear_error();
    session->wire = wire;
    int done = SSL_shutdown(session->ssl);
    session->wire = NULL;
    session->said_end = done >= 0;
    return done >= 0 ? TRPI_TLS_OK : session_fail_openssl(session);
}

trpi_tls_result
trpi_tls_session_end(trpi_tls_session *session)
{
    if (session->refusal != TRPI_REFUSED_NONE) {
        return TRPI_TLS_FAILED;
    }
    if ((SSL_get_shutdown(session->ssl) & SSL_RECEIVED_SHUTDOWN) != 0) {
        return TRPI_TLS_ENDED;
    }
    return trpi_tls_session_fail(
        session, TRPI_REFUSED_TRUNCATED,
        session->open ? "the connection ended without close_notify: bytes may be missing"
                      : "the connection ended during the handshake");
}

trpi_refusal
trpi_tls_session_failure(const trpi_tls_session *session, const char **ret_detail)
{
    *ret_detail = session->detail;
    return session->refusal;
}
