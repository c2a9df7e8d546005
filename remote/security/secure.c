/* secure.c - the links of a transport that authenticates its peers: first TLS, then the cookie,
 *            then the bytes of the upper room.
 *
 * Why.     An unauthenticated peer gets no further than this file: no frame of it is read and no
 *          actor is reached before it has shown a certificate, or proved that it knows the secret.
 * Shape.   inner link --bytes--> [TLS] --> [cookie] --> bytes() of the upper room ("user")
 *          write() of the upper room --> [TLS] --> batch --> flight --> inner link
 *          While one chunk is in flight the next one is encrypted.
 * States.  CONNECTING -> TLS -> COOKIE -> OPEN -> closed;   TLS, COOKIE, OPEN -> REFUSED -> closed
 *          (a step that is not configured is left out)
 * Must hold.
 *   secure-V1  connected() and bytes() come only when the link is OPEN.
 *   secure-V2  Only one thing is being sent at a time: `flight` or, without TLS, the upper room's
 *       own buffers.
 *   secure-V3  A write is done, or written() is called, when the inner link has sent everything of
 *       it.
 *   secure-V4  A refused link sends its alert before it is closed, and is closed after LINGER_MS at
 *       the latest: closing at once would reset the connection, and the peer would not read the
 *       reason.
 *   secure-V5  The peer may send handshake_bytes_max bytes before the link is OPEN.
 * Locks.   link->lock, then transport->lock, then the inner transport's. No callback with one held.
 * Limits.  handshake_bytes_max, TRPI_TLS_WIRE_BYTES_MAX, CHUNK_BYTES; the number of links that are
 *          not OPEN, and their time, are bounded by the upper room (conn.c).
 * Tests.   tests/unit/remote/secure_test.c, reload_test.c, tests/fuzz/secure_fuzz.c
 */
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "remote/security/secure_inner.h"

enum {
    CHUNK_BYTES = 131072, /* encrypted at a time: about 60 us, so that a callback stays short */
    PLAIN_BYTES = 5 * TRPI_TLS_RECORD_BYTES, /* a read of the inner link, the rest of a record */
    KEPT_BYTES = 65536,                      /* larger buffers are freed after a burst */
    HANDED_BYTES = 8192, /* a write of control_lane.c, and an answer to new keys */
    WRITES_AT_ONCE = 4,  /* of chunks, each done at once; then in_written() goes on */
    LINGER_MS = 1000
};

/* ---- life of a link -------------------------------------------------------------------------- */

void
trpi_secure_link_ref(trpi_secure_link *link)
{
    atomic_fetch_add_explicit(&link->references, 1, memory_order_relaxed);
}

void
trpi_secure_link_unref(trpi_secure_link *link)
{
    if (atomic_fetch_sub_explicit(&link->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (link->inner != NULL) {
        link->transport->inner->release(link->inner);
    }
    trpi_tls_session_free(link->session);
    trpi_credentials_unref(link->credentials);
    trpi_buffer_fini(&link->batch);
    trpi_buffer_fini(&link->flight);
    trpi_free(link->plain);
    trpi_mutex_destroy(&link->lock);
    trpi_free(link);
}

static trp_err
session_new(trpi_secure_link *link, const char *host)
{
    const trpi_tls_session_options options = { .host = host,
                                               .wall_ms =
                                                   trpi_world_wall_ms(link->transport->world) };
    return trpi_tls_session_new(link->credentials->tls, &options, &link->session);
}

/* Make a link with two references, the inner link's and the user's. host: dialled; NULL: accepted.
 */
static trpi_secure_link *
link_new(trpi_secure *secure, const char *host)
{
    trpi_secure_link *link = trpi_alloc(sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->transport = secure;
    link->dialled = host != NULL;
    atomic_init(&link->references, 2);
    pthread_mutex_init(&link->lock, NULL);
    link->credentials = trpi_credentials_get(secure);
    if (secure->is_tls &&
        ((link->plain = trpi_alloc(PLAIN_BYTES)) == NULL || session_new(link, host) != TRP_OK)) {
        trpi_secure_link_unref(link);
        trpi_secure_link_unref(link);
        return NULL;
    }
    return link;
}

/* The caller holds link->lock. */
static void
link_shut(trpi_secure_link *link, const char *reason)
{
    if (!link->closing) {
        link->closing = true;
        if (link->reason[0] == '\0') {
            (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
        }
        link->transport->inner->close(link->inner);
    }
}

void
trpi_secure_link_end(trpi_secure_link *link, const char *reason)
{
    pthread_mutex_lock(&link->lock);
    if (link->reason[0] == '\0') {
        (void)snprintf(link->reason, sizeof link->reason, "%s", reason);
    }
    pthread_mutex_unlock(&link->lock);
    link->transport->inner->close(link->inner);
}

/* ---- writing: all with link->lock ------------------------------------------------------------ */

/* Encrypt all of the bytes, at most a record. TRPI_TLS_WIRE_BYTES_MAX is far above CHUNK_BYTES:
 * only a peer that asks for answers and does not read them fills the batch. */
static bool
session_write(trpi_secure_link *link, const void *bytes, size_t count)
{
    size_t done = 0;
    return trpi_tls_session_write(link->session, bytes, count, &done, &link->batch) == TRPI_TLS_OK;
}

static void
link_encrypt(trpi_secure_link *link)
{
    while (link->iov_at < link->iov_count && link->batch.count < CHUNK_BYTES && !link->closing) {
        trpi_iov *part = &link->iov[link->iov_at];
        size_t bytes =
            part->bytes < TRPI_TLS_RECORD_BYTES ? part->bytes : (size_t)TRPI_TLS_RECORD_BYTES;
        if (bytes > 0 && !session_write(link, part->data, bytes)) {
            const char *detail = "";
            (void)trpi_tls_session_failure(link->session, &detail);
            link_shut(link, detail);
            return;
        }
        part->data = (const uint8_t *)part->data + bytes;
        part->bytes -= bytes;
        link->iov_at += part->bytes == 0;
    }
}

/* Write on the inner link; in flight until it is done, which is told by in_written() in any case if
 * `late`. A result TRP_ECLOSED is ignored: closed() follows, or was called. */
static void
inner_write(trpi_secure_link *link, const trpi_iov *iov, size_t count, bool late)
{
    bool done = false;
    (void)link->transport->inner->write(link->inner, iov, count, late ? NULL : &done);
    link->in_flight = !done;
}

/* Write on the inner link until something is in flight, or nothing is left. */
static void
link_pump_late(trpi_secure_link *link, bool late)
{
    for (int writes_left = WRITES_AT_ONCE; !link->closing; writes_left--) {
        late = late || writes_left == 1;
        if (link->session != NULL) {
            link_encrypt(link); /* also while the last chunk is being sent */
        }
        if (link->in_flight || link->closing) {
            return;
        }
        if (link->batch.count > 0) { /* secure-V2 */
            trpi_buffer swap = link->flight;
            link->flight = link->batch;
            link->batch = swap;
            trpi_buffer_clear(&link->batch);
            trpi_iov iov = { link->flight.data, link->flight.count };
            inner_write(link, &iov, 1, late);
        } else if (link->session == NULL && link->writing && !link->direct) {
            link->direct = true;
            inner_write(link, link->iov, link->iov_count, late);
        } else {
            return;
        }
    }
}

static void
link_pump(trpi_secure_link *link)
{
    link_pump_late(link, false);
}

static void
link_buffers_trim(trpi_secure_link *link)
{
    if (link->flight.capacity > KEPT_BYTES && link->flight.count <= KEPT_BYTES / 4) {
        trpi_buffer_fini(&link->flight);
        trpi_buffer_fini(&link->batch);
    }
    trpi_buffer_clear(&link->flight);
}

/* After the pump. true: the upper room's write is over. */
static bool
link_write_over(trpi_secure_link *link)
{
    bool done = link->writing && !link->in_flight && link->batch.count == 0 &&
                (link->session != NULL ? link->iov_at == link->iov_count : link->direct);
    if (!link->in_flight) {
        link_buffers_trim(link);
    }
    if (done) {
        link->writing = link->direct = false;
        link->iov_count = link->iov_at = 0;
    }
    return done;
}

static void
in_written(void *user, trpi_link *inner)
{
    trpi_secure_link *link = user;
    (void)inner;
    pthread_mutex_lock(&link->lock);
    link->in_flight = false;
    link_pump(link);
    bool done = link_write_over(link);
    pthread_mutex_unlock(&link->lock);
    if (done) {
        link->transport->events->written(link->user, (trpi_link *)link); /* secure-V3 */
    }
}

trp_err
trpi_secure_write(trpi_link *outer, const trpi_iov *iov, size_t count, bool *ret_done)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    trp_err err = TRP_ECLOSED;
    trpi_assert(count >= 1 && count <= TRPI_TRANSPORT_IOV_MAX);
    pthread_mutex_lock(&link->lock);
    if (!link->closing && link->stage == TRPI_SECURE_OPEN) {
        trpi_assert(!link->writing);
        memcpy(link->iov, iov, count * sizeof *iov);
        link->iov_count = count;
        link->iov_at = 0;
        link->writing = true;
        link_pump_late(link, ret_done == NULL);
        if (link_write_over(link)) { /* only of no bytes when it is late */
            trpi_assert(ret_done != NULL);
            *ret_done = true;
        }
        err = TRP_OK;
    }
    pthread_mutex_unlock(&link->lock);
    return err;
}

/* ---- refusing -------------------------------------------------------------------------------- */

/* The caller holds link->lock, is in a callback of the inner link, and calls refused() later. */
static void
link_refuse(trpi_secure_link *link, trpi_refusal why, const char *detail)
{
    if (link->stage == TRPI_SECURE_REFUSED || link->closing) {
        return;
    }
    link->stage = TRPI_SECURE_REFUSED;
    link->refusal = why;
    (void)snprintf(link->reason, sizeof link->reason, "%s: %s", trpi_refusal_text(why), detail);
    bool says = link->in_flight || link->batch.count > 0;
    link_pump(link);
    if (why == TRPI_REFUSED_BY_PEER || why == TRPI_REFUSED_BYTES || !says) {
        link_shut(link, ""); /* nothing to say that the peer would wait for */
    } else {
        trpi_secure_end_in(link, LINGER_MS); /* secure-V4 */
    }
}

static void
link_refuse_session(trpi_secure_link *link)
{
    const char *detail = "";
    trpi_refusal why = trpi_tls_session_failure(link->session, &detail);
    link_refuse(link, why, detail);
}

/* ---- steps of the authentication: with link->lock, in a callback of the inner link ----------- */

/* Refuse for a cookie. For a cookie that this user's nodes share the detail names its file. */
static void
link_refuse_cookie(trpi_secure_link *link, trpi_refusal why, const char *users,
                   const char *configured)
{
    char detail[sizeof link->reason];
    const char *file = link->transport->options.cookie_file;
    bool is_users = file != NULL && file[0] != '\0';
    (void)snprintf(detail, sizeof detail, "%s%s", is_users ? users : configured,
                   is_users ? file : "");
    link_refuse(link, why, detail);
}

/* Act on the result of a step. said: bytes of the step for the peer; freed here. */
static void
cookie_result(trpi_secure_link *link, trpi_cookie_result result, trpi_buffer *said)
{
    bool batched = true;
    if (said->count > 0) {
        batched = link->session != NULL ? session_write(link, said->data, said->count)
                                        : trpi_buffer_append(&link->batch, said->data, said->count,
                                                             TRPI_TLS_WIRE_BYTES_MAX) == TRP_OK;
    }
    trpi_buffer_fini(said);
    if (!batched) {
        result = TRPI_COOKIE_BROKEN;
    }
    switch (result) {
    case TRPI_COOKIE_MORE:
        link_pump(link);
        break;
    case TRPI_COOKIE_DONE:
        link->stage = TRPI_SECURE_OPEN;
        link_pump(link);
        break;
    case TRPI_COOKIE_MISSING:
        link_refuse_cookie(link, TRPI_REFUSED_COOKIE,
                           "the peer shows none; this node asks for that of ",
                           "the peer shows none; require-cookie is on here");
        break;
    case TRPI_COOKIE_WRONG:
        link_refuse_cookie(link, TRPI_REFUSED_COOKIE, "the peer has another cookie than ",
                           "the peer has another secure-cookie");
        break;
    case TRPI_COOKIE_REFUSED:
        link_refuse_cookie(link, TRPI_REFUSED_BY_PEER, "the peer has another cookie than ",
                           "the peer has another secure-cookie");
        break;
    case TRPI_COOKIE_BROKEN:
        link_shut(link, "out of memory");
        break;
    }
}

static void
cookie_begin(trpi_secure_link *link)
{
    uint8_t nonce[TRPI_COOKIE_NONCE_BYTES], binding[32] = { 0 };
    if (link->credentials->secrets.count == 0 || link->no_cookie) {
        link->stage = TRPI_SECURE_OPEN;
        return;
    }
    for (size_t i = 0; i < sizeof nonce; i += 8) {
        uint64_t random = trpi_world_random(link->transport->world);
        memcpy(nonce + i, &random, 8);
    }
    if (link->session != NULL &&
        !trpi_tls_session_export(link->session, TRPI_COOKIE_BINDING_LABEL, binding)) {
        link_shut(link, "no key of the session");
        return;
    }
    if (link->dialled && link->transport->self[0] != '\0' &&
        !trpi_cookie_nonce(nonce, &link->credentials->secrets, link->transport->self, link->to)) {
        link_shut(link, "no digest");
        return;
    }
    trpi_buffer said = { 0 };
    link->stage = TRPI_SECURE_COOKIE;
    trpi_cookie_result result =
        trpi_cookie_begin(&link->cookie, link->dialled, nonce, binding, &said);
    cookie_result(link, result, &said);
}

static void
step_tls(trpi_secure_link *link)
{
    switch (trpi_tls_session_handshake(link->session, &link->batch)) {
    case TRPI_TLS_OK:
        cookie_begin(link);
        link_pump(link);
        break;
    case TRPI_TLS_MORE:
        link_pump(link);
        break;
    default:
        link_refuse_session(link);
        break;
    }
}

/* Take exactly the bytes of the cookie; those after them belong to the user. */
static void
step_cookie(trpi_secure_link *link, const uint8_t **bytes, size_t *count)
{
    uint8_t step[TRPI_COOKIE_STEP_BYTES_MAX];
    while (link->stage == TRPI_SECURE_COOKIE && !link->closing) {
        size_t want = trpi_cookie_wants(&link->cookie), got = 0, used = 0;
        const uint8_t *in = step;
        if (link->session != NULL) {
            trpi_tls_result result =
                trpi_tls_session_read(link->session, step, want, &got, &link->batch);
            if (result == TRPI_TLS_FAILED) {
                link_refuse_session(link);
                return;
            }
            if (result == TRPI_TLS_ENDED || result == TRPI_TLS_FULL) {
                link_shut(link, "ended before the cookie was shown");
                return;
            }
        } else {
            in = *bytes;
            got = *count < want ? *count : want;
            *bytes += got;
            *count -= got;
        }
        if (got == 0) {
            return;
        }
        trpi_buffer said = { 0 };
        trpi_cookie_result result =
            trpi_cookie_feed(&link->cookie, &link->credentials->secrets, in, got, &used, &said);
        cookie_result(link, result, &said);
    }
}

/* ---- callbacks of the inner transport -------------------------------------------------------- */

static bool
in_accepted(void *arg, trpi_link *inner, const char *peer, void **ret_user)
{
    trpi_secure *secure = arg;
    trpi_secure_link *link = link_new(secure, NULL);
    if (link == NULL) {
        return false;
    }
    link->inner = inner;
    link->stage = TRPI_SECURE_TLS;
    trpi_secure_list(link);
    bool wanted = secure->events->accepted(secure->arg, (trpi_link *)link, peer, &link->user);
    if (!wanted) { /* the inner transport then releases its link itself, without closed() */
        trpi_secure_unlist(link);
        link->inner = NULL;
        trpi_secure_link_unref(link);
        trpi_secure_link_unref(link);
        return false;
    }
    pthread_mutex_lock(&link->lock);
    if (link->session == NULL) {
        cookie_begin(link);
    }
    pthread_mutex_unlock(&link->lock);
    *ret_user = link;
    return true;
}

static void
in_starved(void *arg)
{
    trpi_secure *secure = arg;
    if (secure->events->starved != NULL) {
        secure->events->starved(secure->arg);
    }
}

static void
in_connected(void *user, trpi_link *inner)
{
    trpi_secure_link *link = user;
    trpi_assert(link->inner == inner);
    trpi_secure_list(link);
    pthread_mutex_lock(&link->lock);
    link->stage = TRPI_SECURE_TLS;
    if (link->session != NULL) {
        step_tls(link);
    } else {
        cookie_begin(link);
    }
    bool is_open = link->stage == TRPI_SECURE_OPEN && !link->closing;
    pthread_mutex_unlock(&link->lock);
    if (is_open) {                                                         /* no cookie follows */
        link->transport->events->connected(link->user, (trpi_link *)link); /* secure-V1 */
    }
}

/* Pass decrypted bytes to the user. The caller holds link->lock, which is released during the
 * callback. */
static void
session_read(trpi_secure_link *link)
{
    trpi_tls_result result = TRPI_TLS_OK;
    while (result == TRPI_TLS_OK && !link->closing && link->stage == TRPI_SECURE_OPEN) {
        size_t count = 0;
        result =
            trpi_tls_session_read(link->session, link->plain, PLAIN_BYTES, &count, &link->batch);
        link_pump(link); /* sends the answer to a key update */
        if (count > 0) {
            pthread_mutex_unlock(&link->lock);
            link->transport->events->bytes(link->user, (trpi_link *)link, link->plain, count);
            pthread_mutex_lock(&link->lock);
        }
    }
    if (result == TRPI_TLS_FAILED) {
        link_refuse_session(link);
    } else if (result == TRPI_TLS_ENDED) {
        link_shut(link, "ended by the peer");
    } else if (result == TRPI_TLS_FULL) {
        link_shut(link, "the peer asks for new keys and does not read");
    }
}

/* The caller holds link->lock. */
static void
link_advance(trpi_secure_link *link, const uint8_t *bytes, size_t count)
{
    const trpi_transport_events *events = link->transport->events;
    bool was_open = link->stage == TRPI_SECURE_OPEN;
    if (link->stage == TRPI_SECURE_TLS) {
        step_tls(link);
    }
    if (link->stage == TRPI_SECURE_COOKIE) {
        step_cookie(link, &bytes, &count);
    }
    trpi_refusal why = TRPI_REFUSED_NONE;
    if (link->stage == TRPI_SECURE_OPEN && !was_open && !trpi_secure_judge_again(link, &why)) {
        link_refuse(link, why, "by the reloaded files");
    }
    /* secure-V1 */
    if (link->stage == TRPI_SECURE_OPEN && !was_open && link->dialled && !link->closing) {
        pthread_mutex_unlock(&link->lock);
        events->connected(link->user, (trpi_link *)link);
        pthread_mutex_lock(&link->lock);
    }
    if (link->stage != TRPI_SECURE_OPEN || link->closing) {
        return;
    }
    if (link->session != NULL) {
        session_read(link);
    } else if (count > 0) {
        pthread_mutex_unlock(&link->lock);
        events->bytes(link->user, (trpi_link *)link, bytes, count);
        pthread_mutex_lock(&link->lock);
    }
}

static void
in_bytes(void *user, trpi_link *inner, const uint8_t *bytes, size_t count)
{
    trpi_secure_link *link = user;
    (void)inner;
    pthread_mutex_lock(&link->lock);
    if (link->stage == TRPI_SECURE_REFUSED || link->closing) {
        pthread_mutex_unlock(&link->lock);
        return;
    }
    if (link->session != NULL) {
        trpi_tls_session_input(link->session, bytes, count);
    }
    link_advance(link, bytes, count);
    if (link->session != NULL) {
        (void)trpi_tls_session_input_end(link->session); /* it has read all, or has failed */
    }
    if (link->stage < TRPI_SECURE_OPEN) {
        link->early_bytes += count;
        if (link->early_bytes > link->transport->options.handshake_bytes_max) { /* secure-V5 */
            link_refuse(link, TRPI_REFUSED_BYTES, "more than remote.handshake-bytes-max");
        }
    }
    trpi_refusal why = link->refusal;
    link->refusal = TRPI_REFUSED_NONE;
    pthread_mutex_unlock(&link->lock);
    /* the reason does not change any more */
    if (why != TRPI_REFUSED_NONE && link->transport->events->refused != NULL) {
        const char *detail = link->reason + strlen(trpi_refusal_text(why)) + 2;
        link->transport->events->refused(link->user, (trpi_link *)link, why, detail);
    }
}

static void
in_closed(void *user, trpi_link *inner, trp_err err, const char *reason)
{
    trpi_secure_link *link = user;
    (void)inner;
    trpi_secure_unlist(link);
    pthread_mutex_lock(&link->lock);
    bool early = link->stage == TRPI_SECURE_TLS || link->stage == TRPI_SECURE_COOKIE;
    err = link->stage == TRPI_SECURE_REFUSED ? TRP_EPERM : err;
    if (link->reason[0] == '\0') {
        (void)snprintf(link->reason, sizeof link->reason, "%s%s", reason,
                       early && link->dialled && !link->closing
                           ? " during authentication (do the TLS and cookie settings agree?)"
                           : "");
    }
    link->closing = true;
    pthread_mutex_unlock(&link->lock);
    link->transport->events->closed(link->user, (trpi_link *)link, err, link->reason);
    trpi_secure_link_unref(link);
}

static bool
in_paused(void *user, trpi_link *inner)
{
    trpi_secure_link *link = user;
    (void)inner;
    return link->transport->events->paused(link->user, (trpi_link *)link);
}

static void
in_nudged(void *user, trpi_link *inner)
{
    trpi_secure_link *link = user;
    (void)inner;
    link->transport->events->nudged(link->user, (trpi_link *)link);
}

const trpi_transport_events trpi_secure_events = {
    .accepted = in_accepted,
    .starved = in_starved,
    .connected = in_connected,
    .bytes = in_bytes,
    .written = in_written,
    .closed = in_closed,
    .paused = in_paused,
    .nudged = in_nudged,
};

/* ---- the other ops of a link ----------------------------------------------------------------- */

trp_err
trpi_secure_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
                    void *user, trpi_link **ret_link)
{
    trpi_secure *secure = (trpi_secure *)transport;
    trpi_secure_link *link = link_new(secure, host);
    if (link == NULL) {
        return TRP_ENOMEM;
    }
    link->user = user;
    (void)snprintf(link->to, sizeof link->to, "%.253s:%u", host, port);
    link->no_cookie = secure->options.cookie_file != NULL &&
                      secure->options.cookie_file[0] != '\0' && !trpi_host_is_loopback(host);
    *ret_link = (trpi_link *)link; /* before the first callback may come */
    trp_err err =
        secure->inner->connect(secure->inner_transport, host, port, timeout_ms, link, &link->inner);
    if (err != TRP_OK) {
        link->inner = NULL;
        trpi_secure_link_unref(link);
        trpi_secure_link_unref(link);
    }
    return err;
}

void
trpi_secure_pause(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    if (link->transport->inner->pause != NULL) {
        link->transport->inner->pause(link->inner);
    }
}

/* With memory for all that is encrypted at a time: the thread for control lanes allocates none. */
bool
trpi_secure_hand_over(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    trp_err err = TRP_OK;
    if (link->transport->inner->hand_over == NULL) {
        return false;
    }
    if (link->session != NULL) {
        pthread_mutex_lock(&link->lock);
        err = trpi_buffer_reserve(&link->batch, HANDED_BYTES, TRPI_TLS_WIRE_BYTES_MAX);
        err = err != TRP_OK || link->flight.count > 0
                  ? TRP_EAGAIN
                  : trpi_buffer_reserve(&link->flight, HANDED_BYTES, TRPI_TLS_WIRE_BYTES_MAX);
        pthread_mutex_unlock(&link->lock);
    }
    return err == TRP_OK && link->transport->inner->hand_over(link->inner);
}

void
trpi_secure_nudge(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    link->transport->inner->nudge(link->inner);
}

trpi_waker *
trpi_secure_waker(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    return link->transport->inner->waker(link->inner);
}

void
trpi_secure_wake(trpi_transport *transport, trpi_waker *waker)
{
    const trpi_secure *secure = (const trpi_secure *)transport;
    secure->inner->wake(secure->inner_transport, waker);
}

trp_err
trpi_secure_claims(trpi_link *outer, const char *host, uint16_t port, char *ret_detail,
                   size_t detail_bytes)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    const trpi_secrets *secrets = &link->credentials->secrets;
    char from[TRPI_COOKIE_PLACE_BYTES];
    trp_err err = TRP_OK;
    (void)snprintf(from, sizeof from, "%.253s:%u", host, port);
    pthread_mutex_lock(&link->lock);
    if (!link->dialled && secrets->count > 0 && link->transport->self[0] != '\0' &&
        !trpi_cookie_is_meant(&link->cookie, secrets, from, link->transport->self)) {
        (void)snprintf(ret_detail, detail_bytes,
                       "its cookie was made for a connection between two other addresses");
        err = TRP_EPERM;
    } else if (link->session != NULL && host[0] != TRPI_NAMELESS_MARK) { /* a client has no host */
        err = trpi_tls_session_claims(link->session, host, ret_detail, detail_bytes);
    }
    pthread_mutex_unlock(&link->lock);
    return err;
}

uint64_t
trpi_secure_whose(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    uint64_t key = 0;
    if (link->session != NULL) {
        pthread_mutex_lock(&link->lock);
        key = trpi_tls_session_key(link->session);
        pthread_mutex_unlock(&link->lock);
    }
    return key;
}

void
trpi_secure_named(trpi_link *outer, char *ret_name, size_t bytes)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    trp_tls_peer peer;
    ret_name[0] = '\0';
    if (link->session != NULL) {
        pthread_mutex_lock(&link->lock);
        trpi_tls_session_peer(link->session, &peer);
        pthread_mutex_unlock(&link->lock);
        (void)snprintf(ret_name, bytes, "%s", peer.name);
    }
}

int64_t
trpi_secure_until(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    int64_t until_ms = 0;
    if (link->session != NULL) {
        pthread_mutex_lock(&link->lock);
        until_ms = trpi_tls_session_until(link->session);
        pthread_mutex_unlock(&link->lock);
    }
    return until_ms;
}

bool
trpi_secure_outdated(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    pthread_mutex_lock(&link->transport->lock);
    bool is = link->credentials != link->transport->credentials;
    pthread_mutex_unlock(&link->transport->lock);
    return is;
}

void
trpi_secure_close(trpi_link *outer)
{
    trpi_secure_link *link = (trpi_secure_link *)outer;
    link->transport->inner->close(link->inner);
}

void
trpi_secure_release(trpi_link *outer)
{
    trpi_secure_link_unref((trpi_secure_link *)outer);
}
