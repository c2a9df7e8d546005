/* peer.c - what is known of the peer of a session: its certificate, a key that both share.
 *
 * Tests. tests/unit/remote/secure_test.c, reload_test.c, tests/unit/tls/hello_test.c
 */
#include "tls/tls_inner.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

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

void
trpi_tls_session_peer(const trpi_tls_session *session, trp_tls_peer *ret_peer)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    char text[TRPI_TLS_NAME_BYTES];

    memset(ret_peer, 0, sizeof *ret_peer);
    ret_peer->version = (uint32_t)SSL_version(session->ssl);
    (void)snprintf(ret_peer->protocol, sizeof ret_peer->protocol, "%s", session->protocol);
    (void)snprintf(ret_peer->asked, sizeof ret_peer->asked, "%s",
                   session->dialled ? "" : trpi_tls_session_asked(session));
    if (cert == NULL) {
        return;
    }
    ret_peer->has_certificate = 1;
    ret_peer->until_ms = trpi_tls_time_ms(X509_get0_notAfter(cert));
    trpi_tls_common_name(X509_get_subject_name(cert), text);
    (void)snprintf(ret_peer->name, sizeof ret_peer->name, "%s", text);
    trpi_tls_common_name(X509_get_issuer_name(cert), text);
    (void)snprintf(ret_peer->issuer, sizeof ret_peer->issuer, "%s", text);
    trpi_tls_digest_text(cert, text);
    (void)snprintf(ret_peer->sha256, sizeof ret_peer->sha256, "%s", text);
    ERR_clear_error();
}

/* Whole and alone: a part of a name, or one of two, is another person's. */
static bool
common_name_take(const X509_NAME *name, char *ret_text, size_t bytes)
{
    uint8_t *text = NULL;
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(name, NID_commonName, at) >= 0) {
        return false;
    }
    int length =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    bool fits = length > 0 && (size_t)length < bytes;
    for (int i = 0; fits && i < length; i++) {
        fits = text[i] >= ' ' && text[i] != 0x7f;
    }
    if (fits) {
        memcpy(ret_text, text, (size_t)length);
        ret_text[length] = '\0';
    }
    OPENSSL_free(text);
    return fits;
}

bool
trpi_tls_ssl_common_name(const void *ssl, char *ret_text, size_t bytes)
{
    const X509 *cert = ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;
    bool has = cert != NULL && SSL_get_verify_result(ssl) == X509_V_OK &&
               common_name_take(X509_get_subject_name(cert), ret_text, bytes);
    ERR_clear_error();
    return has;
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
    *ret_why = TRPI_REFUSED_NONE;
    if (context->peer == TRPI_TLS_PEER_UNCHECKED ||
        (context->peer == TRPI_TLS_PEER_OPTIONAL && cert == NULL)) {
        return true;
    }
    long error = cert != NULL
                     ? trpi_tls_chain_verify(context, cert, SSL_get_peer_cert_chain(session->ssl),
                                             wall_ms, NULL, NULL)
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
