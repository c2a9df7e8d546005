/* link_nng_open.c - how a link of the tcp transport comes to be: dialled, or accepted.
 *
 * Shape. connect -> [resolver] -> dial, one address after the other -> OPEN;  accept -> OPEN
 * Must hold.  link-nng-L1 and link-nng-L2; the hazards link-nng-H4, link-nng-H5, link-nng-H8 and
 * link-nng-H11 there.
 * Tests. tests/unit/remote/link_test.c
 */
#include "remote/nng/link_nng_inner.h"

/* ---- dialling -------------------------------------------------------------------------------- */

static void
url_of(char *url, size_t bytes, const char *host, uint16_t port)
{
    bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(url, bytes, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", host, port);
}

/* Dial the next address, each with its share of the time that is left. The caller holds link->lock
 * and has tested `closing`. */
static void
dial_next(trpi_link *link, int last_code)
{
    uint64_t now = trpi_world_mono_ns(link->transport->world);
    for (; link->dial_index < link->addresses.count && now < link->deadline_ns;
         link->dial_index++) {
        char url[TRPI_NUMERIC_BYTES + 32];
        uint32_t i = link->dial_index;
        url_of(url, sizeof url, link->addresses.hosts[i], link->port);
        last_code = nng_stream_dialer_alloc(&link->dialers[i], url);
        if (last_code != 0) {
            continue;
        }
        uint64_t left_ms = (link->deadline_ns - now) / 1000000u;
        uint64_t share_ms = left_ms / (link->addresses.count - i);
        share_ms = share_ms > DIAL_LEAST_MS ? share_ms : DIAL_LEAST_MS;
        nng_aio_set_timeout(link->dial, (nng_duration)share_ms); /* link-nng-H4: the one timeout */
        link->dial_index++;
        nng_stream_dialer_dial(link->dialers[i], link->dial);
        return;
    }
    trpi_resolver_forget(link->transport->resolver, link->host);
    trpi_link_shut(link, trpi_link_err(last_code), nng_strerror(last_code));
}

static void
on_dialled(void *arg)
{
    trpi_link *link = arg;
    int code = nng_aio_result(link->dial);
    pthread_mutex_lock(&link->lock);
    if (code == 0) {
        link->stream = nng_aio_get_output(link->dial, 0);
        if (link->closing) {
            nng_stream_close(link->stream); /* the reaper frees it, it waits for us */
        } else {
            trpi_link_open_stream(link);
        }
    } else if (!link->closing) {
        dial_next(link, code);
    }
    bool open = code == 0 && !link->closing;
    pthread_mutex_unlock(&link->lock);
    if (open) {
        link->transport->events->connected(link->user, link);
        pthread_mutex_lock(&link->lock); /* the reaper waits for this callback */
        if (!link->closing) {
            trpi_link_post_read(link);
        }
        pthread_mutex_unlock(&link->lock);
    }
}

static void
on_resolved(void *arg, const trpi_resolved *resolved)
{
    trpi_link *link = arg;
    pthread_mutex_lock(&link->lock);
    if (!link->closing) {
        if (resolved->count == 0) {
            char reason[sizeof link->reason];
            (void)snprintf(reason, sizeof reason, "name not resolved: %s", resolved->reason);
            trpi_link_shut(link, TRP_ECONN, reason);
        } else {
            link->addresses = *resolved;
            dial_next(link, NNG_EADDRINVAL);
        }
    }
    pthread_mutex_unlock(&link->lock);
    trpi_link_unref(link);
}

trp_err
trpi_link_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
                  void *user, trpi_link **ret_link)
{
    trpi_link *link = trpi_link_new(transport);
    if (link == NULL) {
        return TRP_ENOMEM;
    }
    link->user = user;
    link->port = port;
    (void)snprintf(link->host, sizeof link->host, "%s", host);
    link->deadline_ns = trpi_world_mono_ns(transport->world) + timeout_ms * 1000000ull;
    trp_err err = nng_aio_alloc(&link->dial, on_dialled, link) == 0 ? TRP_OK : TRP_ENOMEM;
    if (err == TRP_OK && !trpi_link_add(link)) {
        err = TRP_ECLOSED;
    }
    if (err != TRP_OK) {
        trpi_link_free_nng(link);
        trpi_link_unref(link);
        trpi_link_unref(link);
        return err;
    }
    *ret_link = link; /* before the first callback may come */
    pthread_mutex_lock(&link->lock);
    if (link->closing) {
        /* stop() was faster */
    } else if (trpi_resolver_now(transport->resolver, host, &link->addresses)) {
        dial_next(link, NNG_EADDRINVAL);
    } else {
        atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
        if (trpi_resolver_start(transport->resolver, host, on_resolved, link) != TRP_OK) {
            /* never the last */
            atomic_fetch_sub_explicit(&link->references, 1, memory_order_relaxed);
            trpi_link_shut(link, TRP_ENOMEM, "no resolver");
        }
    }
    pthread_mutex_unlock(&link->lock);
    return TRP_OK;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void
peer_text(nng_stream *stream, char *text, size_t bytes)
{
    nng_sockaddr peer;
    memset(&peer, 0, sizeof peer);
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &peer) == 0 && peer.s_family == NNG_AF_INET) {
        trpi_numeric_text(&peer.s_in.sa_addr, 4, ntohs(peer.s_in.sa_port), text, bytes);
    } else if (peer.s_family == NNG_AF_INET6) {
        trpi_numeric_text(peer.s_in6.sa_addr, 16, ntohs(peer.s_in6.sa_port), text, bytes);
    } else {
        (void)snprintf(text, bytes, "?");
    }
}

static void
accept_stream(trpi_transport *transport, nng_stream *stream)
{
    trpi_link *link = trpi_link_new(transport);
    if (link == NULL) {
        nng_stream_free(stream);
        return;
    }
    link->accepting = true; /* stop() closes links only after this callback has ended */
    link->stream = stream;
    if (!trpi_link_add(link)) {
        trpi_link_free_nng(link);
        trpi_link_unref(link);
        trpi_link_unref(link);
        return;
    }
    char peer[INET6_ADDRSTRLEN + 16];
    peer_text(stream, peer, sizeof peer);
    trpi_link_open_stream(link);
    void *user = NULL;
    bool wanted = transport->events->accepted(transport->arg, link, peer, &user);
    pthread_mutex_lock(&link->lock);
    link->user = user;
    link->refused = !wanted;
    link->accepting = false;
    if (link->closing) {
        trpi_link_reap_later(link);
    } else if (!wanted) {
        trpi_link_shut(link, TRP_ECLOSED, "refused");
    } else {
        trpi_link_post_read(link);
    }
    pthread_mutex_unlock(&link->lock); /* from here the reaper may free it */
}

static void
on_accepted(void *arg)
{
    trpi_transport *transport = arg;
    int code = nng_aio_result(transport->accept);
    nng_stream *stream = code == 0 ? nng_aio_get_output(transport->accept, 0) : NULL;
    if (stream != NULL) {
        accept_stream(transport, stream);
    }
    if (code == NNG_ENOFILES && transport->events->starved != NULL) {
        transport->events->starved(transport->arg);
    }
    pthread_mutex_lock(&transport->lock);
    if (!transport->stopping && code == 0) {
        nng_stream_listener_accept(transport->listener, transport->accept);
    } else if (!transport->stopping && code != NNG_ECLOSED) { /* link-nng-H8 */
        transport->accept_retry_at = trpi_link_time_after_ms(ACCEPT_RETRY_MS);
        transport->accept_retry = true;
        pthread_cond_broadcast(&transport->wake);
    }
    pthread_mutex_unlock(&transport->lock);
}

trp_err
trpi_link_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    char url[TRPI_NUMERIC_BYTES + 32];
    trpi_assert(transport->listener == NULL);
    if (host[0] == '\0' || strcmp(host, "*") == 0) {
        (void)snprintf(url, sizeof url, "tcp://*:%u", port);
    } else {
        trpi_resolved resolved;
        trpi_resolve_blocking(host, &resolved);
        if (resolved.count == 0) {
            return TRP_EINVAL;
        }
        url_of(url, sizeof url, resolved.hosts[0], port);
    }
    int code = nng_stream_listener_alloc(&transport->listener, url);
    code = code == 0 ? nng_aio_alloc(&transport->accept, on_accepted, transport) : code;
    code = code == 0 ? nng_stream_listener_listen(transport->listener) : code;
    int bound = port;
    code = code == 0
               ? nng_stream_listener_get_int(transport->listener, NNG_OPT_TCP_BOUND_PORT, &bound)
               : code;
    if (code != 0) {
        if (transport->listener != NULL) {
            nng_stream_listener_free(transport->listener);
            transport->listener = NULL;
        }
        trpi_link_aio_end(&transport->accept);
        trp_err err = trpi_link_err(code);
        return err == TRP_ECONN ? TRP_EIO : err;
    }
    *ret_port = (uint16_t)bound;
    return TRP_OK;
}

void
trpi_link_accept(trpi_transport *transport)
{
    nng_stream_listener_accept(transport->listener, transport->accept);
}
