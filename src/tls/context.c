/* context.c - one reading of the files: own certificate, authorities, revoked certificates.
 *
 * Must hold.
 *   tls-context-T1  TLS 1.3, or 1.2 where that is asked for; no renegotiation, no resumption and no
 *       early data, so every new connection is judged by the present files. (context_limits)
 *   tls-context-T2  No peer is left unchecked but by an option that says so. (options_fault)
 * Tests. tests/unit/tls/hello_test.c, tests/unit/remote/secure_test.c, reload_test.c
 */
#include "tls/tls_inner.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

/* ---- texts ----------------------------------------------------------------------------------- */

static trp_err TRP_PRINTF(4, 5)
    why_set(trp_err err, char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, why_bytes, format, args);
    va_end(args);
    trpi_tls_text_sanitize(why);
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
    for (size_t i = 0; i < context->protocols_count; i++) {
        trpi_free(context->protocols[i]);
    }
    for (size_t i = 0; i < context->more_count; i++) {
        SSL_CTX_free(context->more[i]);
    }
    trpi_free(context->allowed);
    trpi_free(context->protocols);
    trpi_free(context->more);
    SSL_CTX_free(context->ssl);
    trpi_free(context);
}

void
trpi_tls_context_info(const trpi_tls_context *context, const char *host, trpi_tls_info *ret_info)
{
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    *ret_info = context->info;
    if (host[0] != '\0' && !context->ignore_address && cert != NULL &&
        !trpi_tls_cert_covers(cert, host)) {
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

static bool /* tls-context-T1 */
context_limits(const trpi_tls_context *context, const char *ciphers)
{
    SSL_CTX *ssl = context->ssl;
    bool is_1_3 = context->version_min == TRPI_TLS_1_3;
    (void)SSL_CTX_set_options(ssl,
                              SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_clear_mode(ssl, SSL_MODE_AUTO_RETRY); /* tls-session-T5 */
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    switch (context->peer) {
    case TRPI_TLS_PEER_REQUIRED:
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           trpi_tls_on_verify);
        break;
    case TRPI_TLS_PEER_OPTIONAL:
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, trpi_tls_on_verify);
        break;
    case TRPI_TLS_PEER_UNCHECKED:
        SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        break;
    }
    return SSL_CTX_set_min_proto_version(ssl, is_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(ssl, 0) == 1 && SSL_CTX_set_ciphersuites(ssl, ciphers) == 1 &&
           (is_1_3 || SSL_CTX_set_cipher_list(ssl, TRPI_TLS_CIPHERS_1_2) == 1);
}

static trp_err
list_load(trpi_tls_context *context, const char *path, char *why, size_t why_bytes)
{
    if (path == NULL || path[0] == '\0') {
        return TRP_OK;
    }
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    X509 *own = SSL_CTX_get0_certificate(context->ssl);
    BIO *bio = BIO_new_file(path, "r");
    int count = 0;
    bool taken = true;
    X509_CRL *list = NULL;
    while (bio != NULL && (list = PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL)) != NULL) {
        int64_t next_ms = trpi_tls_time_ms(X509_CRL_get0_nextUpdate(list));
        if (context->info.crl_next_ms == 0 || next_ms < context->info.crl_next_ms) {
            context->info.crl_next_ms = next_ms;
            context->info.crl_from_ms = trpi_tls_time_ms(X509_CRL_get0_lastUpdate(list));
        }
        X509_REVOKED *found = NULL; /* OpenSSL sorts at the first lookup: now */
        if (own != NULL) {
            (void)X509_CRL_get0_by_cert(list, &found, own);
        }
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

/* Return whether only the owner can read a key file, as sshd demands. The file of another user is
 * not judged. false, with *why: other users can read it. */
static bool
key_is_private(const char *key, char *why, size_t why_bytes)
{
    struct stat status;
    if (stat(key, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & 077) == 0) {
        return true; /* reading the file reports other errors */
    }
    (void)snprintf(why, why_bytes, "key %s: others may read it (mode %04o): chmod 600", key,
                   (unsigned)status.st_mode & 07777);
    return false;
}

static bool
is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static trp_err
pair_load(SSL_CTX *ssl, const char *cert, const char *key, char *why, size_t why_bytes)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, cert) != 1) {
        return why_set_openssl(why, why_bytes, "certificate", cert);
    }
    if (!key_is_private(key, why, why_bytes)) {
        return TRP_ECONFIG;
    }
    if (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ssl) != 1) {
        return why_set_openssl(why, why_bytes, "key", key);
    }
    return TRP_OK;
}

/* Load the certificates for other names, each in an SSL_CTX of its own (hello.c). */
static trp_err
more_load(trpi_tls_context *context, const trpi_tls_options *options, char *why, size_t why_bytes)
{
    trp_err err = TRP_OK;
    if (options->more_count == 0) {
        return TRP_OK;
    }
    context->more = trpi_alloc(options->more_count * sizeof *context->more);
    for (size_t i = 0; err == TRP_OK && i < options->more_count; i++) {
        SSL_CTX *ssl = context->more != NULL ? SSL_CTX_new(TLS_method()) : NULL;
        if (ssl == NULL) {
            return why_set(TRP_ENOMEM, why, why_bytes, "out of memory");
        }
        SSL_CTX_set_default_passwd_cb(ssl, no_password);
        context->more[context->more_count++] = ssl;
        err = pair_load(ssl, options->more[i].cert, options->more[i].key, why, why_bytes);
    }
    return err;
}

static trp_err
files_load(trpi_tls_context *context, const trpi_tls_options *options, char *why, size_t why_bytes)
{
    SSL_CTX *ssl = context->ssl;
    bool needs_ca = context->peer != TRPI_TLS_PEER_UNCHECKED,
         dials = context->use == TRPI_TLS_CLIENT;
    if (is_set(options->ca) || (needs_ca && !dials)) {
        if (SSL_CTX_load_verify_file(ssl, options->ca) != 1) {
            return why_set_openssl(why, why_bytes, "authorities", options->ca);
        }
    } else if (needs_ca && SSL_CTX_set_default_verify_paths(ssl) != 1) {
        return why_set_openssl(why, why_bytes, "authorities", "of the system");
    }
    trp_err err = dials && !is_set(options->cert) && !is_set(options->key)
                      ? TRP_OK
                      : pair_load(ssl, options->cert, options->key, why, why_bytes);
    err = err != TRP_OK ? err : more_load(context, options, why, why_bytes);
    return err != TRP_OK ? err : list_load(context, options->crl, why, why_bytes);
}

/* Store the facts about the own certificate and the first authority. */
static void
info_fill(trpi_tls_context *context)
{
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    if (cert != NULL) {
        trpi_tls_common_name(X509_get_subject_name(cert), context->info.subject);
        trpi_tls_common_name(X509_get_issuer_name(cert), context->info.issuer);
        trpi_tls_digest_text(cert, context->info.digest);
        context->info.not_before_ms = trpi_tls_time_ms(X509_get0_notBefore(cert));
        context->info.not_after_ms = trpi_tls_time_ms(X509_get0_notAfter(cert));
    }
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context->ssl));
    for (int i = sk_X509_OBJECT_num(all) - 1; i >= 0; i--) { /* the first one's digest is kept */
        X509 *ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
        if (ca != NULL) {
            (void)X509_check_purpose(ca, -1, 0); /* OpenSSL parses them at first use: now */
            trpi_tls_digest_text(ca, context->ca_digest);
        }
    }
}

/* Return X509_V_* of a certificate that need not be of the peers' authorities, and its dates. */
static long
validity_check(const X509 *cert, int64_t wall_ms, char when[TRPI_TLS_WHEN_BYTES])
{
    long error =
        trpi_tls_time_ms(X509_get0_notBefore(cert)) > wall_ms  ? X509_V_ERR_CERT_NOT_YET_VALID
        : trpi_tls_time_ms(X509_get0_notAfter(cert)) < wall_ms ? X509_V_ERR_CERT_HAS_EXPIRED
                                                               : X509_V_OK;
    trpi_tls_when_write(cert, error, wall_ms, when);
    return error;
}

/* Check the own certificates as a peer would: a node's against its authorities, of others only the
 * time. */
static trp_err
own_check(trpi_tls_context *context, const trpi_tls_options *options, int64_t wall_ms, char *why,
          size_t why_bytes)
{
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    STACK_OF(X509) *chain = NULL;
    const char *file = options->cert;
    long error = X509_V_OK;
    char when[TRPI_TLS_WHEN_BYTES] = "";
    info_fill(context);
    if (context->use == TRPI_TLS_NODE) {
        (void)SSL_CTX_get0_chain_certs(context->ssl, &chain);
        error = trpi_tls_chain_verify(context, cert, chain, wall_ms, &context->info, when);
    } else if (cert != NULL) {
        error = validity_check(cert, wall_ms, when);
    }
    for (size_t i = 0; error == X509_V_OK && i < context->more_count; i++) {
        file = options->more[i].cert;
        error = validity_check(SSL_CTX_get0_certificate(context->more[i]), wall_ms, when);
    }
    if (error == X509_V_OK) {
        return TRP_OK;
    }
    return why_set(TRP_ECONFIG, why, why_bytes, "certificate %s: reason=%s (%s%s)", file,
                   trpi_refusal_text(trpi_tls_refusal_of_verify(error)),
                   X509_verify_cert_error_string(error), when);
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

/* Refuse options that contradict each other. Returns NULL, or what to do. */
static const char *
options_fault(const trpi_tls_options *options)
{
    if (options->peer == TRPI_TLS_PEER_OPTIONAL && options->use != TRPI_TLS_SERVER) {
        return "only a server may leave the certificate of its peer optional";
    }
    if (options->peer == TRPI_TLS_PEER_UNCHECKED && options->use == TRPI_TLS_NODE) {
        return "a node checks its peers";
    }
    if (options->use == TRPI_TLS_SERVER && (!is_set(options->cert) || !is_set(options->key))) {
        return "a server needs a certificate and its key";
    }
    if (is_set(options->cert) != is_set(options->key)) {
        return "a certificate and its key go together";
    }
    if (options->more_count > 0 && options->use != TRPI_TLS_SERVER) {
        return "only a server has certificates for several names";
    }
    return NULL;
}

static trp_err
context_fill(trpi_tls_context *context, const trpi_tls_options *options, int64_t wall_ms, char *why,
             size_t why_bytes)
{
    const char *ciphers = is_set(options->ciphers) ? options->ciphers : TRPI_TLS_CIPHERS;
    if (context->ssl == NULL || allowed_copy(context, options) != TRP_OK) {
        return why_set(TRP_ENOMEM, why, why_bytes, "out of memory");
    }
    if (!context_limits(context, ciphers)) {
        return why_set(TRP_ECONFIG, why, why_bytes, "algorithms %s: not all are of TLS 1.3",
                       ciphers);
    }
    trp_err err = files_load(context, options, why, why_bytes);
    err = err != TRP_OK ? err : own_check(context, options, wall_ms, why, why_bytes);
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_tls_hello_prepare(context, options);
    return err == TRP_EINVAL ? why_set(TRP_ECONFIG, why, why_bytes,
                                       "protocols: each has 1 to 255 bytes, all together 64 KiB")
           : err != TRP_OK   ? why_set(err, why, why_bytes, "out of memory")
                             : TRP_OK;
}

trp_err
trpi_tls_context_load(const trpi_tls_options *options, int64_t wall_ms,
                      trpi_tls_context **ret_context, char *why, size_t why_bytes)
{
    const char *fault = options_fault(options);
    if (fault != NULL) {
        return why_set(TRP_ECONFIG, why, why_bytes, "%s", fault);
    }
    trpi_tls_context *context = trpi_alloc(sizeof *context);
    if (context == NULL || !trpi_tls_library_prepare()) {
        trpi_free(context);
        return why_set(TRP_ENOMEM, why, why_bytes, "out of memory");
    }
    atomic_init(&context->references, 1);
    context->use = options->use;
    context->peer = options->peer;
    context->version_min = options->version_min;
    context->ignore_address = options->ignore_address;
    context->rekey_bytes = options->rekey_bytes != 0 ? options->rekey_bytes : TRPI_TLS_REKEY_BYTES;
    context->ssl = SSL_CTX_new(TLS_method());
    trp_err err = context_fill(context, options, wall_ms, why, why_bytes);
    if (err != TRP_OK) {
        trpi_tls_context_unref(context);
        return err;
    }
    *ret_context = context;
    return TRP_OK;
}

trp_err
trpi_tls_context_lend(const trpi_tls_context *context, void *ssl_ctx)
{
    SSL_CTX *to = ssl_ctx;
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    STACK_OF(X509) *chain = NULL;
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    const STACK_OF(X509_NAME) *names = SSL_CTX_get_client_CA_list(context->ssl);
    STACK_OF(X509_NAME) *copy = names != NULL ? SSL_dup_CA_list(names) : NULL;
    trpi_assert(cert != NULL && context->use == TRPI_TLS_SERVER);
    (void)SSL_CTX_get0_chain_certs(context->ssl, &chain);
    if ((names != NULL && copy == NULL) ||
        SSL_CTX_use_cert_and_key(to, cert, SSL_CTX_get0_privatekey(context->ssl), chain, 1) != 1) {
        sk_X509_NAME_pop_free(copy, X509_NAME_free);
        ERR_clear_error();
        return TRP_ENOMEM;
    }
    if (X509_STORE_up_ref(store) == 1) {
        SSL_CTX_set_cert_store(to, store); /* takes it */
    }
    SSL_CTX_set_client_CA_list(to, copy); /* takes it */
    return TRP_OK;
}

void
trpi_tls_verify_own(void *ssl_ctx, trpi_tls_peer peer)
{
    int mode = peer == TRPI_TLS_PEER_REQUIRED   ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
               : peer == TRPI_TLS_PEER_OPTIONAL ? SSL_VERIFY_PEER
                                                : SSL_VERIFY_NONE;
    SSL_CTX_set_verify(ssl_ctx, mode, NULL);
}
