/* dialer.c - a context of OpenSSL for the connections that another library dials.
 *
 * Why.     libwebsockets finds the connection whose certificate it verifies, and the context that
 *          it is to free, by numbers of the process that each new context of it changes, also one
 *          that the program makes itself. It does neither for a context that it is given.
 * Must hold.
 *   tls-dialer-D1  OpenSSL alone judges, whatever callback the library has set, and by the name
 *       that the dialer was made with.                                            (on_chain)
 * Tests.   tests/unit/endpoint/web_secure_test.c
 */
#include "tls/tls_inner.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/assert.h"

struct trpi_tls_dialer {
    SSL_CTX *ssl;
    char *host;
    long failure; /* X509_V_* of the last certificate */
};

static int
as_openssl_says(int holds, X509_STORE_CTX *store)
{
    (void)store;
    return holds;
}

/* tls-dialer-D1. In place of the verification of the chain. */
static int
on_chain(X509_STORE_CTX *store, void *arg)
{
    trpi_tls_dialer *dialer = arg;
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(store);
    bool is_numeric = trpi_tls_host_is_numeric(dialer->host);
    X509_STORE_CTX_set_verify_cb(store, as_openssl_says);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    /* the library has set its own reading of the name: it cuts "[::1]" at the first colon */
    int named = X509_VERIFY_PARAM_set1_host(param, is_numeric ? NULL : dialer->host, 0);
    named &= is_numeric ? X509_VERIFY_PARAM_set1_ip_asc(param, dialer->host)
                        : X509_VERIFY_PARAM_set1_ip(param, NULL, 0);
    if (named != 1) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
    }
    int holds = named == 1 ? X509_verify_cert(store) : 0;
    dialer->failure = holds == 1 ? X509_V_OK : X509_STORE_CTX_get_error(store);
    return holds == 1 ? 1 : 0;
}

/* Give it the certificate and the authorities of context. */
static bool
dialer_fill(const trpi_tls_dialer *dialer, const trpi_tls_context *context)
{
    X509 *cert = SSL_CTX_get0_certificate(context->ssl);
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    STACK_OF(X509) *chain = NULL;
    (void)SSL_CTX_get0_chain_certs(context->ssl, &chain);
    if (cert != NULL &&
        SSL_CTX_use_cert_and_key(dialer->ssl, cert, SSL_CTX_get0_privatekey(context->ssl), chain,
                                 1) != 1) {
        return false;
    }
    if (X509_STORE_up_ref(store) != 1) {
        return false;
    }
    SSL_CTX_set_cert_store(dialer->ssl, store); /* takes it */
    return true;
}

trp_err
trpi_tls_dialer_new(const trpi_tls_context *context, const char *host, trpi_tls_dialer **ret_dialer)
{
    trpi_assert(context == NULL || context->use == TRPI_TLS_CLIENT);
    trpi_tls_dialer *dialer = trpi_alloc(sizeof *dialer);
    if (dialer == NULL) {
        return TRP_ENOMEM;
    }
    dialer->host = trpi_strdup(host);
    dialer->ssl = SSL_CTX_new(TLS_client_method());
    if (dialer->host == NULL || dialer->ssl == NULL ||
        SSL_CTX_set_min_proto_version(dialer->ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(dialer->ssl, TRPI_TLS_CIPHERS_1_2) != 1 ||
        (context != NULL && !dialer_fill(dialer, context))) {
        trpi_tls_dialer_free(dialer);
        ERR_clear_error();
        return TRP_ENOMEM;
    }
    (void)SSL_CTX_set_options(dialer->ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(dialer->ssl,
                           SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(dialer->ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(dialer->ssl, on_chain, dialer);
    *ret_dialer = dialer;
    return TRP_OK;
}

void
trpi_tls_dialer_free(trpi_tls_dialer *dialer)
{
    if (dialer != NULL) {
        SSL_CTX_free(dialer->ssl);
        trpi_free(dialer->host);
        trpi_free(dialer);
    }
}

void *
trpi_tls_dialer_ssl_ctx(const trpi_tls_dialer *dialer)
{
    return dialer->ssl;
}

const char *
trpi_tls_dialer_failure(trpi_tls_dialer *dialer)
{
    long failure = dialer->failure;
    dialer->failure = X509_V_OK;
    return failure == X509_V_OK ? NULL : X509_verify_cert_error_string(failure);
}
