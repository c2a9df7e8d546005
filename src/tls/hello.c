/* hello.c - what a client asks for in its first message: a protocol (ALPN), a host's name (SNI).
 *
 * Why.   A server may have certificates for several names, and both ends must know which protocol
 *        the bytes after the handshake are, before the first one is read.
 * Must hold.
 *   tls-hello-T1  With protocols on this side, either one of them is agreed on or the handshake
 *       fails (unless protocol_optional): a peer that knows no ALPN is told so, too.
 *   tls-hello-T2  Only a certificate that names the host asked for is shown instead of the first.
 * Tests. tests/unit/tls/hello_test.c
 */
#include "tls/tls_inner.h"

#include <openssl/err.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { PROTOCOL_BYTES_MAX = 255, OFFER_BYTES_MAX = 65535, LIST_BYTES = TRPI_TLS_LIST_BYTES };

/* ---- texts ----------------------------------------------------------------------------------- */

/* Write "a, b" into out, as much as fits. names: as on the wire, each after a byte of length. */
static void
offer_put(const uint8_t *names, size_t bytes, char out[LIST_BYTES])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < bytes && i + 1 + names[i] <= bytes; i += 1u + names[i]) {
        size_t more = names[i] + (at > 0 ? 2u : 0u);
        if (at + more >= LIST_BYTES) {
            return;
        }
        memcpy(out + at, ", ", at > 0 ? 2 : 0);
        memcpy(out + at + more - names[i], names + i + 1, names[i]);
        at += more;
        out[at] = '\0';
    }
}

static trpi_tls_session *
session_of(SSL *ssl)
{
    return SSL_get_ex_data(ssl, trpi_tls_session_index());
}

/* ---- a server: the protocol ------------------------------------------------------------------ */

/* OpenSSL calls this for a client that offers protocols. */
static int /* tls-hello-T1 */
on_offer(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_bytes,
         const unsigned char *offer, unsigned offer_bytes, void *arg)
{
    const trpi_tls_context *context = arg;
    for (size_t own = 0; own < context->protocols_count; own++) {
        size_t bytes = strlen(context->protocols[own]);
        for (size_t i = 0; i < offer_bytes && i + 1 + offer[i] <= offer_bytes; i += 1u + offer[i]) {
            if (offer[i] == bytes && memcmp(offer + i + 1, context->protocols[own], bytes) == 0) {
                *ret_name = offer + i + 1;
                *ret_bytes = offer[i];
                return SSL_TLSEXT_ERR_OK;
            }
        }
    }
    if (context->protocol_optional) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    char theirs[LIST_BYTES];
    offer_put(offer, offer_bytes, theirs);
    (void)trpi_tls_session_fail(session_of(ssl), TRPI_REFUSED_NO_PROTOCOL,
                                "the client offers %s; this server speaks %s", theirs,
                                context->protocols_text);
    return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol */
}

/* OpenSSL calls this before it has looked at anything of the client's message. */
static int /* tls-hello-T1 */
on_client_hello(SSL *ssl, int *ret_alert, void *arg)
{
    const trpi_tls_context *context = arg;
    const unsigned char *offer = NULL;
    size_t bytes = 0;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &offer,
                                  &bytes) == 1) {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    (void)trpi_tls_session_fail(session_of(ssl), TRPI_REFUSED_NO_PROTOCOL,
                                "the client offers none (ALPN); this server speaks %s",
                                context->protocols_text);
    *ret_alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

/* ---- a server: the certificate --------------------------------------------------------------- */

/* OpenSSL calls this with the name that the client asks for, if it asks for one. */
static int /* tls-hello-T2 */
on_name(SSL *ssl, int *ret_alert, void *arg)
{
    const trpi_tls_context *context = arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)ret_alert;
    if (name == NULL || trpi_tls_cert_covers(SSL_CTX_get0_certificate(context->ssl), name)) {
        return SSL_TLSEXT_ERR_OK;
    }
    for (size_t i = 0; i < context->more_count; i++) {
        X509 *cert = SSL_CTX_get0_certificate(context->more[i]);
        STACK_OF(X509) *chain = NULL;
        if (!trpi_tls_cert_covers(cert, name)) {
            continue;
        }
        (void)SSL_CTX_get0_chain_certs(context->more[i], &chain);
        SSL_certs_clear(ssl); /* one of another kind of key would be shown beside it */
        return SSL_use_cert_and_key(ssl, cert, SSL_CTX_get0_privatekey(context->more[i]), chain,
                                    1) == 1
                   ? SSL_TLSEXT_ERR_OK
                   : SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    return SSL_TLSEXT_ERR_OK;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Copy the names, and write them as on the wire into offer. Errors: TRP_ENOMEM, TRP_EINVAL. */
static trp_err
protocols_copy(trpi_tls_context *context, const trpi_tls_options *options, trpi_buffer *offer)
{
    context->protocols = trpi_alloc(options->protocols_count * sizeof *context->protocols);
    if (context->protocols == NULL) {
        return TRP_ENOMEM;
    }
    for (size_t i = 0; i < options->protocols_count; i++) {
        size_t bytes = strlen(options->protocols[i]);
        uint8_t head = (uint8_t)bytes;
        if (bytes == 0 || bytes > PROTOCOL_BYTES_MAX) {
            return TRP_EINVAL;
        }
        context->protocols[i] = trpi_strdup(options->protocols[i]);
        if (context->protocols[i] == NULL) {
            return TRP_ENOMEM;
        }
        context->protocols_count++;
        trp_err err = trpi_buffer_append(offer, &head, 1, OFFER_BYTES_MAX);
        err = err != TRP_OK
                  ? err
                  : trpi_buffer_append(offer, options->protocols[i], bytes, OFFER_BYTES_MAX);
        if (err != TRP_OK) {
            return err == TRP_ELIMIT ? TRP_EINVAL : err;
        }
    }
    offer_put(offer->data, offer->count, context->protocols_text);
    return TRP_OK;
}

trp_err
trpi_tls_hello_prepare(trpi_tls_context *context, const trpi_tls_options *options)
{
    if (context->more_count > 0) {
        (void)SSL_CTX_set_tlsext_servername_callback(context->ssl, on_name);
        (void)SSL_CTX_set_tlsext_servername_arg(context->ssl, context);
    }
    if (options->protocols_count == 0) {
        return TRP_OK;
    }
    trpi_buffer offer = { 0 };
    context->protocol_optional = options->protocol_optional;
    trp_err err = protocols_copy(context, options, &offer);
    if (err == TRP_OK && context->use != TRPI_TLS_SERVER &&
        SSL_CTX_set_alpn_protos(context->ssl, offer.data, (unsigned)offer.count) != 0) {
        err = TRP_ENOMEM;
    }
    trpi_buffer_fini(&offer);
    if (err == TRP_OK && context->use != TRPI_TLS_CLIENT) {
        SSL_CTX_set_alpn_select_cb(context->ssl, on_offer, context);
        if (!context->protocol_optional) {
            SSL_CTX_set_client_hello_cb(context->ssl, on_client_hello, context);
        }
    }
    return err;
}

/* ---- sessions -------------------------------------------------------------------------------- */

bool /* tls-hello-T1 */
trpi_tls_hello_agreed(trpi_tls_session *session)
{
    const trpi_tls_context *context = session->context;
    const unsigned char *name = NULL;
    unsigned bytes = 0;
    SSL_get0_alpn_selected(session->ssl, &name, &bytes);
    for (size_t i = 0; i < context->protocols_count && bytes > 0; i++) {
        if (strlen(context->protocols[i]) == bytes &&
            memcmp(name, context->protocols[i], bytes) == 0) {
            session->protocol = context->protocols[i];
            return true;
        }
    }
    if (context->protocols_count == 0 || (context->protocol_optional && bytes == 0)) {
        return true;
    }
    (void)trpi_tls_session_fail(session, TRPI_REFUSED_NO_PROTOCOL,
                                "the peer chooses none (ALPN); this side speaks %s",
                                context->protocols_text);
    return false;
}

const char *
trpi_tls_session_protocol(const trpi_tls_session *session)
{
    return session->protocol;
}

const char *
trpi_tls_session_asked(const trpi_tls_session *session)
{
    const char *name = SSL_get_servername(session->ssl, TLSEXT_NAMETYPE_host_name);
    for (const char *c = name; c != NULL && *c != '\0'; c++) {
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c) ==
            NULL) {
            return "";
        }
    }
    return name != NULL ? name : "";
}
