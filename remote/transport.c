/* transport.c - opens the transport that the options ask for: TLS, cookies, fault injection around
 * tcp.
 *
 * Tests.  tests/unit/remote/secure_test.c
 */
#include "remote/transport.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "remote/poll/link_poll.h"
#include "remote/remote.h"
#include "remote/security/secure.h"
#include "tls/digest.h"

static bool
is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* Errors: TRP_EINVAL (too long, or only the previous cookie). */
static trp_err
secrets_fill(const char *cookie, const char *before, trpi_secrets *ret_secrets)
{
    const char *texts[TRPI_SECRETS_MAX] = { cookie, before };
    memset(ret_secrets, 0, sizeof *ret_secrets);
    for (size_t i = 0; i < TRPI_SECRETS_MAX; i++) {
        if (is_set(texts[i])) {
            size_t bytes = strlen(texts[i]);
            if (bytes > TRPI_SECRET_BYTES_MAX || ret_secrets->count != i) {
                return TRP_EINVAL;
            }
            memcpy(ret_secrets->text[ret_secrets->count++], texts[i], bytes + 1);
        }
    }
    return TRP_OK;
}

static void
on_reloaded(void *arg, trp_err err, const char *what)
{
    trpi_remote *remote = arg;
    trpi_tls_state state = { "", "", 0 };
    (void)trpi_remote_tls_state(remote, &state);
    if (err == TRP_OK) {
        trpi_log(remote->system, TRP_LOG_INFO, "remote", "credentials read again subject=%s %s",
                 state.subject, what);
    } else {
        trpi_log(remote->system, TRP_LOG_ERROR, "remote",
                 "credentials not read again, the old ones stay reason=\"%s\"", what);
    }
}

static void
on_troubled(void *arg, const trpi_trouble_text *text)
{
    trpi_remote *remote = arg;
    trpi_log(remote->system, TRP_LOG_WARNING, "remote", "%s: %s", text->what, text->help);
}

/* Open remote->ops, with the adapters around them if they are on: outside TLS, so that they see
 * frames. */
static trp_err
transport_open(trpi_remote *remote, void *arg)
{
    if (remote->options.test_adapters) {
        trp_err err = trpi_faults_new(remote->ops, arg, &remote->faults);
        if (err != TRP_OK) {
            return err;
        }
        remote->ops = trpi_faults_ops(remote->faults);
        arg = remote->faults;
    }
    return remote->ops->open(arg, remote->world, &trpi_conn_events, remote, &remote->transport);
}

static trpi_transport *
secure_transport(trpi_remote *remote)
{
    return remote->faults != NULL ? trpi_faults_inner_transport(remote->faults) : remote->transport;
}

void
trpi_remote_secure_self(trpi_remote *remote)
{
    if (remote->secure) {
        trpi_secure_host(secure_transport(remote),
                         remote->options.nameless ? "" : remote->address.host);
    }
    if (remote->secure && remote->options.wire_minor >= 4) {
        trpi_secure_self(secure_transport(remote), remote->address.host, remote->address.port);
    }
}

trpi_faults *
trpi_remote_faults(trpi_remote *remote)
{
    return remote->faults;
}

trp_err
trpi_remote_transport_open(trpi_remote *remote)
{
    const trpi_remote_options *o = &remote->options;
    trpi_link_poll_arg poll = { 0 };
    void *inner_arg = o->transport_arg;
    if (o->transport == &trpi_link_poll_ops && inner_arg == NULL) {
        trp_err err = trpi_system_poller(remote->system, &poll.poller);
        if (err != TRP_OK) {
            return err;
        }
        poll.sched = trpi_system_sched(remote->system);
        inner_arg = &poll;
    }
    trpi_secure_options secure = { .inner = o->transport,
                                   .inner_arg = inner_arg,
                                   .handshake_bytes_max = o->handshake_bytes_max,
                                   .reload_interval_ms = o->tls_reload_interval_ms,
                                   .old_end_ms = o->tls_old_end_ms,
                                   .cookie_file = remote->cookie_file,
                                   .reloaded = on_reloaded,
                                   .reloaded_arg = remote,
                                   .troubled = on_troubled,
                                   .warn_ms = o->tls_warn_ms,
                                   .why = o->why,
                                   .why_bytes = o->why_bytes };
    const trpi_tls_options tls = { .ca = o->tls_ca,
                                   .cert = o->tls_cert,
                                   .key = o->tls_key,
                                   .crl = o->tls_crl,
                                   .ciphers = o->tls_ciphers,
                                   .allowed = o->tls_allowed,
                                   .allowed_count = o->tls_allowed_count,
                                   .ignore_address = o->tls_ignore_address };
    const char *file = o->cookie_file != NULL ? o->cookie_file : "";
    trpi_assert(strlen(file) < sizeof remote->cookie_file);
    (void)snprintf(remote->cookie_file, sizeof remote->cookie_file, "%s", file);
    trp_err err = secrets_fill(o->cookie, o->cookie_before, &secure.secrets);
    if (err != TRP_OK) {
        return TRP_ECONFIG;
    }
    remote->secure = o->tls || secure.secrets.count > 0;
    if (!remote->secure) {
        return transport_open(remote, inner_arg);
    }
    if (o->tls) {
        if (!is_set(o->tls_ca) || !is_set(o->tls_cert) || !is_set(o->tls_key)) {
            if (o->why != NULL) {
                (void)snprintf(o->why, o->why_bytes,
                               "TLS needs the files remote.tls.ca, .cert and .key");
            }
            return TRP_ECONFIG;
        }
        secure.tls = &tls;
    }
    remote->ops = o->tls ? &trpi_secure_tls_ops : &trpi_secure_tcp_ops;
    err = transport_open(remote, &secure);
    trpi_cleanse(&secure.secrets, sizeof secure.secrets);
    return err;
}

/* 64 bits of a keyed digest: too few to guess a strong secret from, enough to tell two apart. */
trp_err
trpi_remote_secrets_digest(const char *cookie, const char *cookie_before,
                           char ret_text[TRPI_REMOTE_SECRETS_BYTES])
{
    static const char label[] = "troupe join";
    const char *texts[TRPI_SECRETS_MAX] = { cookie, cookie_before };
    size_t at = (size_t)snprintf(ret_text, TRPI_REMOTE_SECRETS_BYTES, "#");
    for (size_t i = 0; i < TRPI_SECRETS_MAX && is_set(texts[i]); i++) {
        uint8_t digest[32];
        if (!trpi_hmac_sha256(texts[i], strlen(texts[i]), (const uint8_t *)label, sizeof label - 1,
                              digest)) {
            return TRP_EIO;
        }
        at += (size_t)snprintf(ret_text + at, TRPI_REMOTE_SECRETS_BYTES - at, "%s",
                               i == 0 ? "" : ",#");
        for (size_t k = 0; k < 8; k++) {
            at +=
                (size_t)snprintf(ret_text + at, TRPI_REMOTE_SECRETS_BYTES - at, "%02x", digest[k]);
        }
    }
    return TRP_OK;
}

trp_err
trpi_remote_secrets_reload(trpi_remote *remote, const char *cookie, const char *cookie_before)
{
    trpi_secrets secrets;
    if (!remote->secure) {
        return TRP_ESTATE;
    }
    trp_err err = secrets_fill(cookie, cookie_before, &secrets);
    if (err == TRP_OK) {
        trpi_secure_reload(secure_transport(remote), is_set(cookie) ? &secrets : NULL);
        trpi_cleanse(&secrets, sizeof secrets);
    }
    return err;
}

bool
trpi_remote_secrets_are_reloaded(trpi_remote *remote)
{
    return !remote->secure || remote->transport == NULL ||
           trpi_secure_is_reloaded(secure_transport(remote));
}

bool
trpi_remote_tls_state(trpi_remote *remote, trpi_tls_state *ret_state)
{
    trpi_tls_info info;
    if (!remote->secure || remote->transport == NULL ||
        !trpi_secure_info(secure_transport(remote), &info)) {
        return false;
    }
    memcpy(ret_state->subject, info.subject, sizeof ret_state->subject);
    memcpy(ret_state->issuer, info.issuer, sizeof ret_state->issuer);
    ret_state->not_after_ms = info.not_after_ms;
    return true;
}

bool
trpi_remote_trouble(trpi_remote *remote, trpi_trouble kind, trpi_trouble_text *ret_text)
{
    return remote->secure && remote->transport != NULL &&
           trpi_secure_trouble(secure_transport(remote), kind, ret_text);
}

int64_t
trpi_remote_certificate_until(trpi_remote *remote, const trpi_address *address)
{
    trpi_peer *peer = NULL;
    if (!remote->options.tls || trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return 0;
    }
    pthread_mutex_lock(&peer->lock);
    int64_t until_ms = trpi_agreed_cert_until_ms(&peer->agreed);
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return until_ms;
}
