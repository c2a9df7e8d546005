/* verify.c - which certificates of a peer hold, and the words for those that do not.
 *
 * Must hold.
 *   tls-verify-T2  Certificates are verified at the world's wall clock, passed by the caller.
 *   tls-verify-T3  Texts of a stranger's certificate are made printable before they are logged.
 *       (trpi_tls_text_sanitize)
 *   tls-verify-T4  The peer's names are those of its SAN; its common name is ignored.
 * Tests. tests/unit/remote/secure_test.c
 */
#include "tls/tls_inner.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- texts ----------------------------------------------------------------------------------- */

void /* tls-verify-T3 */
trpi_tls_text_sanitize(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

void
trpi_tls_common_name(const X509_NAME *name, char text[TRPI_TLS_NAME_BYTES])
{
    text[0] = '\0';
    (void)X509_NAME_get_text_by_NID(name, NID_commonName, text, TRPI_TLS_NAME_BYTES);
    trpi_tls_text_sanitize(text);
}

void
trpi_tls_digest_text(const X509 *cert, char text[65])
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

int64_t
trpi_tls_time_ms(const ASN1_TIME *time)
{
    struct tm parts = { 0 };
    return time != NULL && ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) * 1000 : 0;
}

static void
date_write(int64_t wall_ms, char text[32])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        (void)snprintf(text, 32, "%" PRId64 " s", wall_ms / 1000); /* of a year beyond int */
    }
}

void
trpi_tls_when_write(const X509 *cert, long error, int64_t wall_ms, char text[TRPI_TLS_WHEN_BYTES])
{
    bool early = error == X509_V_ERR_CERT_NOT_YET_VALID;
    char bound[32], now[32];
    text[0] = '\0';
    if (cert != NULL && (early || error == X509_V_ERR_CERT_HAS_EXPIRED)) {
        date_write(trpi_tls_time_ms(early ? X509_get0_notBefore(cert) : X509_get0_notAfter(cert)),
                   bound);
        date_write(wall_ms, now);
        (void)snprintf(text, TRPI_TLS_WHEN_BYTES, "; valid %s %s, this host's clock says %s",
                       early ? "from" : "until", bound, now);
    }
}

/* ---- verification ---------------------------------------------------------------------------- */

bool
trpi_tls_host_is_numeric(const char *host)
{
    uint8_t address[16];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

bool /* tls-verify-T4 */
trpi_tls_cert_covers(X509 *cert, const char *host)
{
    return trpi_tls_host_is_numeric(host)
               ? X509_check_ip_asc(cert, host, 0) == 1
               : X509_check_host(cert, host, 0,
                                 X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                     X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                                 NULL) == 1;
}

bool
trpi_tls_is_allowed(const trpi_tls_context *context, X509 *cert)
{
    for (size_t i = 0; i < context->allowed_count; i++) {
        if (trpi_tls_cert_covers(cert, context->allowed[i])) {
            return true;
        }
    }
    return context->allowed_count == 0;
}

trpi_refusal
trpi_tls_refusal_of_verify(long error)
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

int
trpi_tls_on_verify(int holds, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    trpi_tls_session *session = ssl != NULL ? SSL_get_ex_data(ssl, trpi_tls_session_index()) : NULL;
    X509 *cert = X509_STORE_CTX_get0_cert(store);
    if (session == NULL || cert == NULL) {
        return 0;
    }
    if (holds && X509_STORE_CTX_get_error_depth(store) == 0 &&
        !trpi_tls_is_allowed(session->context, cert)) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
        holds = 0;
    }
    if (!holds && session->verify_error == X509_V_OK) {
        session->verify_error = X509_STORE_CTX_get_error(store);
        trpi_tls_when_write(X509_STORE_CTX_get_current_cert(store), session->verify_error,
                            (int64_t)X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(store)) *
                                1000,
                            session->when);
        trpi_tls_common_name(X509_get_subject_name(cert), session->peer_name);
        trpi_tls_common_name(X509_get_issuer_name(cert), session->peer_issuer);
        trpi_tls_digest_text(cert, session->peer_digest);
    }
    return holds;
}

/* Store the certificate of the chain, without the first one, that expires first. */
static void
authority_note(const STACK_OF(X509) * chain, trpi_tls_info *info)
{
    for (int i = 1; i < sk_X509_num(chain); i++) {
        X509 *cert = sk_X509_value(chain, i);
        int64_t end_ms = trpi_tls_time_ms(X509_get0_notAfter(cert));
        if (info->authority_end_ms == 0 || end_ms < info->authority_end_ms) {
            info->authority_end_ms = end_ms;
            trpi_tls_common_name(X509_get_subject_name(cert), info->authority);
        }
    }
}

long
trpi_tls_chain_verify(trpi_tls_context *context, X509 *cert, STACK_OF(X509) * chain,
                      int64_t wall_ms, trpi_tls_info *info, char *when)
{
    X509_STORE_CTX *store = X509_STORE_CTX_new();
    long error = X509_V_ERR_OUT_OF_MEM;
    if (store != NULL &&
        X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(context->ssl), cert, chain) == 1) {
        X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(store),
                                   (time_t)(wall_ms / 1000)); /* tls-verify-T2 */
        error = X509_verify_cert(store) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(store);
        if (error == X509_V_OK && info != NULL) {
            authority_note(X509_STORE_CTX_get0_chain(store), info);
        }
        if (when != NULL) {
            trpi_tls_when_write(X509_STORE_CTX_get_current_cert(store), error, wall_ms, when);
        }
    }
    X509_STORE_CTX_free(store);
    ERR_clear_error();
    return error;
}
