/* tls_openssl.c - TLS sessions by OpenSSL. The only file of remoting that includes its headers.
 *
 * Why.   nng's own TLS (1.5.2) is TLS 1.2 and does not show the peer's names. Here OpenSSL reads
 *        and writes memory, so any transport can carry the bytes.
 * Shape. input -> [BIO that reads the borrowed bytes] -> SSL -> [BIO that appends to `wire`]
 * Must hold.
 *   tls-openssl-T1  Only TLS 1.3; both ends show a certificate; no resumption and no early data, so
 *       every new connection is judged by the present files. (context_limits)
 *   tls-openssl-T2  Certificates are verified at the world's wall clock, passed by the caller.
 *   tls-openssl-T3  Texts of a stranger's certificate are made printable before they are logged.
 *       (text_sanitize)
 *   tls-openssl-T4  The peer's names are those of its SAN; its common name is ignored.
 * Limits. TRPI_TLS_WIRE_BYTES_MAX; the bytes of a handshake are bounded by the caller (secure.c).
 * Tests. tests/unit/remote/secure_test.c
 */
#include "remote/security/tls.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { NAME_BYTES = 65, DETAIL_BYTES = 320, ALERTS = SSL_AD_REASON_OFFSET };

struct trpi_tls_context {
    atomic_int references; /* acq_rel at the end: the last one sees all uses */
    SSL_CTX *ssl;
    char **allowed;
    size_t allowed_count;
    bool ignore_address;
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
    uint64_t written_bytes; /* since the last key update */
    long verify_error;      /* X509_V_*, of the first error */
    char peer_name[NAME_BYTES], peer_issuer[NAME_BYTES], peer_digest[65];
    trpi_refusal refusal;
    char detail[DETAIL_BYTES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *bio_method;
static int session_index; /* of a session in its SSL */

/* ---- texts ----------------------------------------------------------------------------------- */

static void /* tls-openssl-T3 */
text_sanitize(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

static void
common_name(const X509_NAME *name, char text[NAME_BYTES])
{
    text[0] = '\0';
    (void)X509_NAME_get_text_by_NID(name, NID_commonName, text, NAME_BYTES);
    text_sanitize(text);
}

static void
digest_text(const X509 *cert, char text[65])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    text[0] = '\0';
    if (X509_digest(cert, EVP_sha256(), digest, &bytes) == 1) {
        for (unsigned i = 0; i < 32; i++) {
            (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
        }
    }
}

static int64_t
time_ms(const ASN1_TIME *time)
{
    struct tm parts = { 0 };
    return time != NULL && ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) * 1000 : 0;
}

static trp_err TRP_PRINTF(4, 5)
    why_set(trp_err err, char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, why_bytes, format, args);
    va_end(args);
    text_sanitize(why);
    ERR_clear_error();
    return err;
}

static trp_err
why_set_openssl(char *why, size_t why_bytes, const char *what, const char *file)
{
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    if (error == 0 || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) {
        return why_set(TRP_ENOMEM, why, why_bytes, "%s %s: out of memory", what, file);
    }
    unsigned long first = ERR_peek_error(); /* the system's, when a file cannot be opened */
    if (ERR_SYSTEM_ERROR(first)) {
        reason = strerror(ERR_GET_REASON(first));
    } else if (ERR_GET_REASON(error) == ERR_R_PEM_LIB || ERR_GET_REASON(error) == ERR_R_ASN1_LIB) {
        reason = ERR_reason_error_string(first); /* "PEM lib" names only the library */
    }
    return why_set(TRP_ECONFIG, why, why_bytes, "%s %s: %s", what, file,
                   reason != NULL ? reason : "cannot be read");
}

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

/* ---- verification ---------------------------------------------------------------------------- */

static bool
host_is_numeric(const char *host)
{
    uint8_t address[16];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool /* tls-openssl-T4 */
cert_covers(X509 *cert, const char *host)
{
    return host_is_numeric(host) ? X509_check_ip_asc(cert, host, 0) == 1
                                 : X509_check_host(cert, host, 0,
                                                   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                       X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                                                   NULL) == 1;
}

static bool
is_allowed(const trpi_tls_context *context, X509 *cert)
{
    for (size_t i = 0; i < context->allowed_count; i++) {
        if (cert_covers(cert, context->allowed[i])) {
            return true;
        }
    }
    return context->allowed_count == 0;
}

static trpi_refusal
refusal_of_verify(long error)
{
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return TRPI_REFUSED_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return TRPI_REFUSED_NOT_YET_VALID;
    case X509_V_ERR_CERT_REVOKED:
        return TRPI_REFUSED_REVOKED;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
        return TRPI_REFUSED_REVOCATION_LIST;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return TRPI_REFUSED_UNKNOWN_CA;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return TRPI_REFUSED_WRONG_NAME;
    case X509_V_ERR_APPLICATION_VERIFICATION:
        return TRPI_REFUSED_NOT_ALLOWED;
    default:
        return TRPI_REFUSED_CERTIFICATE;
    }
}

/* OpenSSL calls this for each certificate of the peer's chain, and for each error. */
static int
on_verify(int holds, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    trpi_tls_session *session = ssl != NULL ? SSL_get_ex_data(ssl, session_index) : NULL;
    X509 *cert = X509_STORE_CTX_get0_cert(store);
    if (session == NULL || cert == NULL) {
        return 0;
    }
    if (holds && X509_STORE_CTX_get_error_depth(store) == 0 &&
        !is_allowed(session->context, cert)) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
        holds = 0;
    }
    if (!holds && session->verify_error == X509_V_OK) {
        session->verify_error = X509_STORE_CTX_get_error(store);
        common_name(X509_get_subject_name(cert), session->peer_name);
        common_name(X509_get_issuer_name(cert), session->peer_issuer);
        digest_text(cert, session->peer_digest);
    }
    return holds;
}

/* Store the certificate of the chain, without the first one, that expires first. */
static void
authority_note(const STACK_OF(X509) * chain, trpi_tls_info *info)
{
    for (int i = 1; i < sk_X509_num(chain); i++) {
        X509 *cert = sk_X509_value(chain, i);
        int64_t end_ms = time_ms(X509_get0_notAfter(cert));
        if (info->authority_end_ms == 0 || end_ms < info->authority_end_ms) {
            info->authority_end_ms = end_ms;
            common_name(X509_get_subject_name(cert), info->authority);
        }
    }
}

/* Verify cert and its chain against the context's authorities. Returns X509_V_*. info: gets the
 * facts about the authorities; may be NULL. */
static long
chain_verify(trpi_tls_context *context, X509 *cert, STACK_OF(X509) * chain, int64_t wall_ms,
             trpi_tls_info *info)
{
    X509_STORE_CTX *store = X509_STORE_CTX_new();
    long error = X509_V_ERR_OUT_OF_MEM;
    if (store != NULL &&
        X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(context->ssl), cert, chain) == 1) {
        X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(store),
                                   (time_t)(wall_ms / 1000)); /* tls-openssl-T2 */
        error = X509_verify_cert(store) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(store);
        if (error == X509_V_OK && info != NULL) {
            authority_note(X509_STORE_CTX_get0_chain(store), info);
        }
    }
    X509_STORE_CTX_free(store);
    ERR_clear_error();
    return error;
}

/* ---- contexts -------------------------------------------------------------------------------- */

trpi_tls_context *
trpi_tls_context_ref(trpi_tls_context *context)
{
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

void
trpi_tls_context_unref(trpi_tls_context *context)
{
    if (context == NULL ||
        atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; context->allowed != NULL && i < context->allowed_count; i++) {
        trpi_free(context->allowed[i]);
    }
    trpi_free(context->allowed);
    SSL_CTX_free(context->ssl);
    trpi_free(context);
}

void
trpi_tls_context_info(const trpi_tls_context *context, const char *host, trpi_tls_info *ret_info)
{
    *ret_info = context->info;
    if (host[0] != '\0' && !context->ignore_address &&
        !cert_covers(SSL_CTX_get0_certificate(context->ssl), host)) {
        (void)snprintf(ret_info->uncovered, sizeof ret_info->uncovered, "%s", host);
    }
    ERR_clear_error();
}

static int
no_password(char *buffer, int bytes, int writing, void *arg)
{
    (void)buffer;
    (void)bytes;
    (void)writing;
    (void)arg;
    return -1; /* never prompt */
}

static bool /* tls-openssl-T1 */
context_limits(SSL_CTX *ssl, const char *ciphers)
{
    (void)SSL_CTX_set_options(ssl,
                              SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verify);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(ssl, 0) == 1 && SSL_CTX_set_ciphersuites(ssl, ciphers) == 1;
}

static trp_err
list_load(trpi_tls_context *context, const char *path, char *why, size_t why_bytes)
{
    if (path == NULL || path[0] == '\0') {
        return TRP_OK;
    }
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    BIO *bio = BIO_new_file(path, "r");
    int count = 0;
    bool taken = true;
    X509_CRL *list = NULL;
    while (bio != NULL && (list = PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL)) != NULL) {
        int64_t next_ms = time_ms(X509_CRL_get0_nextUpdate(list));
        if (context->info.crl_next_ms == 0 || next_ms < context->info.crl_next_ms) {
            context->info.crl_next_ms = next_ms;
            context->info.crl_from_ms = time_ms(X509_CRL_get0_lastUpdate(list));
        }
        X509_REVOKED *found = NULL; /* OpenSSL sorts at the first lookup: now */
        (void)X509_CRL_get0_by_cert(list, &found, SSL_CTX_get0_certificate(context->ssl));
        taken = taken && X509_STORE_add_crl(store, list) == 1;
        count++;
        X509_CRL_free(list);
    }
    (void)BIO_free(bio);
    /* no further list begins at the end; a damaged list must not pass for that */
    unsigned long end = ERR_peek_last_error();
    if (count == 0 || !taken || ERR_GET_LIB(end) != ERR_LIB_PEM ||
        ERR_GET_REASON(end) != PEM_R_NO_START_LINE) {
        return why_set_openssl(why, why_bytes, "revocation list", path);
    }
    ERR_clear_error();
    (void)X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return TRP_OK;
}

static trp_err
files_load(trpi_tls_context *context, const trpi_tls_options *options, char *why, size_t why_bytes)
{
    SSL_CTX *ssl = context->ssl;
    if (SSL_CTX_load_verify_file(ssl, options->ca) != 1) {
        return why_set_openssl(why, why_bytes, "authorities", options->ca);
    }
    if (SSL_CTX_use_certificate_chain_file(ssl, options->cert) != 1) {
        return why_set_openssl(why, why_bytes, "certificate", options->cert);
    }
    if (!trpi_tls_key_is_private(options->key, why, why_bytes)) {
        return TRP_ECONFIG;
    }
    if (SSL_CTX_use_PrivateKey_file(ssl, options->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ssl) != 1) {
        return why_set_openssl(why, why_bytes, "key", options->key);
    }
    return list_load(context, options->crl, why, why_bytes);
}

/* Check the own certificate as a peer would. */
static trp_err
own_check(trpi_tls_context *context, const trpi_tls_options *options, int64_t wall_ms, char *why,
          size_t why_bytes)
{
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    STACK_OF(X509) *chain = NULL;
    (void)SSL_CTX_get0_chain_certs(context->ssl, &chain);
    common_name(X509_get_subject_name(cert), context->info.subject);
    common_name(X509_get_issuer_name(cert), context->info.issuer);
    digest_text(cert, context->info.digest);
    context->info.not_before_ms = time_ms(X509_get0_notBefore(cert));
    context->info.not_after_ms = time_ms(X509_get0_notAfter(cert));
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
    for (int i = sk_X509_OBJECT_num(all) - 1; i >= 0; i--) { /* the first one's digest is kept */
        X509 *ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (ca != NULL) {
            (void)X509_check_purpose(ca, -1, 0); /* OpenSSL parses them at first use: now */
            digest_text(ca, context->ca_digest);
        }
    }
    long error = chain_verify(context, cert, chain, wall_ms, &context->info);
    if (error == X509_V_OK) {
        return TRP_OK;
    }
    return why_set(TRP_ECONFIG, why, why_bytes, "certificate %s: reason=%s (%s)", options->cert,
                   trpi_refusal_text(refusal_of_verify(error)),
                   X509_verify_cert_error_string(error));
}

static trp_err
allowed_copy(trpi_tls_context *context, const trpi_tls_options *options)
{
    if (options->allowed_count == 0) {
        return TRP_OK;
    }
    context->allowed = trpi_alloc(options->allowed_count * sizeof *context->allowed);
    for (size_t i = 0; context->allowed != NULL && i < options->allowed_count; i++) {
        context->allowed[i] = trpi_strdup(options->allowed[i]);
        if (context->allowed[i] == NULL) {
            return TRP_ENOMEM;
        }
        context->allowed_count++;
    }
    return context->allowed != NULL ? TRP_OK : TRP_ENOMEM;
}

trp_err
trpi_tls_context_load(const trpi_tls_options *options, int64_t wall_ms,
                      trpi_tls_context **ret_context, char *why, size_t why_bytes)
{
    (void)pthread_once(&once, library_prepare);
    trpi_tls_context *context = trpi_alloc(sizeof *context);
    if (context == NULL || bio_method == NULL) {
        trpi_free(context);
        return why_set(TRP_ENOMEM, why, why_bytes, "out of memory");
    }
    atomic_init(&context->references, 1);
    context->ignore_address = options->ignore_address;
    context->rekey_bytes = options->rekey_bytes != 0 ? options->rekey_bytes : TRPI_TLS_REKEY_BYTES;
    context->ssl = SSL_CTX_new(TLS_method());
    const char *ciphers = options->ciphers != NULL && options->ciphers[0] != '\0'
                              ? options->ciphers
                              : TRPI_TLS_CIPHERS;
    trp_err err = TRP_OK;
    if (context->ssl == NULL || allowed_copy(context, options) != TRP_OK) {
        err = why_set(TRP_ENOMEM, why, why_bytes, "out of memory");
    } else if (!context_limits(context->ssl, ciphers)) {
        err =
            why_set(TRP_ECONFIG, why, why_bytes, "algorithms %s: not all are of TLS 1.3", ciphers);
    } else {
        err = files_load(context, options, why, why_bytes);
    }
    err = err != TRP_OK ? err : own_check(context, options, wall_ms, why, why_bytes);
    if (err != TRP_OK) {
        trpi_tls_context_unref(context);
        return err;
    }
    *ret_context = context;
    return TRP_OK;
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
    X509_VERIFY_PARAM_set_time(param, (time_t)(wall_ms / 1000)); /* tls-openssl-T2 */
    if (host != NULL) {
        SSL_set_connect_state(ssl);
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                   X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (!context->ignore_address) {
            built =
                built && (host_is_numeric(host) ? X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1
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
        text_sanitize(session->detail);
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
        return session_fail(session, refusal_of_verify(session->verify_error),
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
    if (session->context->ignore_address || (cert != NULL && cert_covers(cert, host))) {
        return TRP_OK;
    }
    char subject[NAME_BYTES] = "";
    if (cert != NULL) {
        common_name(X509_get_subject_name(cert), subject);
    }
    (void)snprintf(ret_detail, detail_bytes, "certificate of %s does not cover %s", subject, host);
    text_sanitize(ret_detail);
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
    return cert != NULL ? time_ms(X509_get0_notAfter(cert)) : 0;
}

bool
trpi_tls_session_stands(const trpi_tls_session *session, trpi_tls_context *context, int64_t wall_ms,
                        trpi_refusal *ret_why)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    long error = cert != NULL ? chain_verify(context, cert, SSL_get_peer_cert_chain(session->ssl),
                                             wall_ms, NULL)
                              : X509_V_ERR_UNSPECIFIED;
    if (error == X509_V_OK && !is_allowed(context, cert)) {
        error = X509_V_ERR_APPLICATION_VERIFICATION;
    }
    *ret_why = error != X509_V_OK ? refusal_of_verify(error) : TRPI_REFUSED_NONE;
    return error == X509_V_OK;
}

const trpi_tls_context *
trpi_tls_session_context(const trpi_tls_session *session)
{
    return session->context;
}

bool
trpi_tls_session_binding(const trpi_tls_session *session, uint8_t ret_binding[32])
{
    static const char label[] = "EXPORTER-troupe-cookie";
    bool made = SSL_export_keying_material(session->ssl, ret_binding, 32, label, sizeof label - 1,
                                           NULL, 0, 0) == 1;
    ERR_clear_error();
    return made;
}

/* ---- digests --------------------------------------------------------------------------------- */

bool
trpi_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                 uint8_t ret_digest[32])
{
    unsigned count = 0;
    trpi_assert(key_bytes <= INT32_MAX);
    return HMAC(EVP_sha256(), key, (int)key_bytes, data, bytes, ret_digest, &count) != NULL &&
           count == 32;
}

bool
trpi_equal_secret(const void *a, const void *b, size_t bytes)
{
    return CRYPTO_memcmp(a, b, bytes) == 0;
}

void
trpi_cleanse(void *memory, size_t bytes)
{
    OPENSSL_cleanse(memory, bytes);
}
