/* exchange.c - one request on one connection: headers and body come, an answer goes, and the
 * connection is closed.
 *
 * States.  (accepted) --headers--> body awaited --all of it--> judged --reply--> writing --> closed
 *          A request that is refused by its headers is answered without its body.
 * Must hold.
 *   exchange-X1  Every answer is the last one of its connection: bytes that follow a request are
 *       never read as another one.                                            (answer_write)
 *   exchange-X2  After request_ms a connection that is no stream is ended, however slowly its
 *       client sends or reads, also within TLS's handshake; the library waits as long again for the
 *       client to close it.                                             (connection_begin)
 *   exchange-X3  A client's certificate counts only if OpenSSL has verified its chain: the
 *       library leaves the verdict to this callback.                (trpi_exchange_callback)
 *       Its name is the whole of its one common name; that of libwebsockets is what follows the
 *       first "/CN=" in any part of the subject.                            (certificate_take)
 *   exchange-X4  A client that goes while the node works on its question is noticed within LOOK_MS,
 *       and its call cancelled: the library does not look at a connection that nothing is written
 *       to.                                                      (wait_go_on, exchange_free)
 * Limits.  TRPI_MANAGEMENT_*_MAX; a header block above its limit is closed by libwebsockets.
 * Tests.   tests/system/management.sh
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/management/server.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/json.h"
#include "tls/digest.h"
#include "tls/tls.h"

#define CHUNK_BYTES 16384u /* written at one time */
#define LOOK_MS 1000u

static trpi_management *
management_of(struct lws *wsi, const trpi_lws *lws)
{
    return lws->lws_context_user(lws->lws_get_context(wsi));
}

/* ---- answers --------------------------------------------------------------------------------- */

int
trpi_exchange_answer(trpi_management *m, trpi_exchange *x, trpi_management_answer *answer)
{
    char head[TRPI_MANAGEMENT_HEAD_BYTES];
    static char nothing[] = "{\"error\":\"no-memory\"}";
    bool has_body = answer->body != NULL;
    trpi_management_answer given = *answer;
    given.body = has_body ? answer->body : nothing;
    given.status = has_body ? answer->status : 500;
    size_t head_bytes = trpi_management_head_write(&given, head);
    size_t body_bytes = x->is_head ? 0 : strlen(given.body);
    trpi_assert(x->out == NULL);
    x->out = head_bytes > 0 ? trpi_alloc(LWS_PRE + head_bytes + body_bytes) : NULL;
    if (x->out != NULL) {
        memcpy(x->out + LWS_PRE, head, head_bytes);
        memcpy(x->out + LWS_PRE + head_bytes, given.body, body_bytes);
        x->out_bytes = head_bytes + body_bytes;
    }
    trpi_management_answer_fini(answer);
    x->id = 0;
    return x->out != NULL && m->lws->lws_callback_on_writable(x->wsi) >= 0 ? 0 : -1;
}

static int
answer_error(trpi_management *m, trpi_exchange *x, int status, const char *error,
             const char *message)
{
    trpi_management_answer answer = { 0 };
    trpi_management_answer_error(&answer, status, error, message);
    return trpi_exchange_answer(m, x, &answer);
}

/* exchange-X1: -1 after the last byte. */
static int
answer_write(trpi_management *m, trpi_exchange *x)
{
    if (x->out == NULL) {
        return 0;
    }
    size_t left = x->out_bytes - x->out_sent;
    size_t count = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    enum lws_write_protocol kind = count == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP;
    if (m->lws->lws_write(x->wsi, x->out + LWS_PRE + x->out_sent, count, kind) < (int)count) {
        return -1;
    }
    x->out_sent += count;
    if (x->out_sent == x->out_bytes) {
        return -1;
    }
    return m->lws->lws_callback_on_writable(x->wsi) >= 0 ? 0 : -1;
}

void
trpi_exchange_replied(trpi_management *m, uint64_t id, const char *reply)
{
    for (trpi_exchange *x = m->exchanges; x != NULL; x = x->next) {
        if (x->id == id && x->plan.operation == TRPI_MANAGEMENT_EVENTS) {
            x->id = 0;
            (void)!trpi_stream_snapshot(m, x, reply); /* on an error it ends with its time */
            return;
        }
        if (x->id == id) {
            trpi_management_answer answer = { 0 };
            trpi_management_plan_answer(&x->plan, reply, &answer);
            /* without memory for an answer the connection ends with its time */
            (void)!trpi_exchange_answer(m, x, &answer);
            return;
        }
    }
}

bool
trpi_exchange_orders_wait(const trpi_management *m)
{
    for (const trpi_exchange *x = m->exchanges; x != NULL; x = x->next) {
        if (x->plan.is_write && (x->id != 0 || x->out != NULL)) {
            return true;
        }
    }
    return false;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Copy a header. *ret_text: NULL if it is absent. false: it is too long. */
static bool
header_take(trpi_management *m, struct lws *wsi, enum lws_token_indexes token, char *text,
            size_t text_bytes, const char **ret_text)
{
    int length = m->lws->lws_hdr_total_length(wsi, token);
    *ret_text = NULL;
    if (length <= 0) {
        text[0] = '\0';
        return true;
    }
    if ((size_t)length >= text_bytes ||
        m->lws->lws_hdr_copy(wsi, text, (int)text_bytes, token) < 0) {
        return false;
    }
    *ret_text = text;
    return true;
}

/* Put the arguments of the path together. false: they are too long, or one holds a '&', which would
 * look like two. */
static bool
query_take(trpi_management *m, trpi_exchange *x)
{
    char part[TRPI_MANAGEMENT_FIELD_BYTES_MAX * 2];
    int length_all = m->lws->lws_hdr_total_length(x->wsi, WSI_TOKEN_HTTP_URI_ARGS);
    size_t used = 0, total = length_all > 0 ? (size_t)length_all : 0;
    if (total == 0) {
        return true;
    }
    for (int i = 0;; i++) {
        int length = m->lws->lws_hdr_copy_fragment(x->wsi, part, (int)sizeof part,
                                                   WSI_TOKEN_HTTP_URI_ARGS, i);
        if (length < 0) { /* no further one, or it is too long: then bytes are missing */
            return used + (size_t)i + 1 >= total;
        }
        size_t bytes = strlen(part);
        if (strchr(part, '&') != NULL || used + bytes + 2 > sizeof x->query) {
            return false;
        }
        x->query[used] = '&';
        used += used > 0 ? 1 : 0;
        memcpy(x->query + used, part, bytes + 1);
        used += bytes;
    }
}

/* exchange-X3 */
static void
certificate_take(trpi_management *m, trpi_exchange *x)
{
    if (trpi_tls_ssl_common_name(m->lws->lws_get_ssl(x->wsi), x->certificate,
                                 sizeof x->certificate)) {
        x->request.certificate = x->certificate;
    }
}

/* Read Content-Length: digits only. false: it is malformed. */
static bool
length_take(trpi_management *m, struct lws *wsi, size_t *ret_bytes)
{
    char text[24];
    const char *found = NULL;
    *ret_bytes = 0;
    if (!header_take(m, wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, text, sizeof text, &found)) {
        return false;
    }
    if (found == NULL) {
        return true;
    }
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0' || strlen(text) > 15) {
        return false;
    }
    *ret_bytes = (size_t)strtoull(text, NULL, 10);
    return true;
}

/* Copy a header that the library has no number for; name ends with a colon. NULL: there is none, or
 * it is too long. */
static const char *
custom_take(trpi_management *m, trpi_exchange *x, const char *name, char *text, size_t text_bytes)
{
    int name_bytes = (int)strlen(name);
    int bytes = m->lws->lws_hdr_custom_length(x->wsi, name, name_bytes);
    if (bytes <= 0 || (size_t)bytes >= text_bytes ||
        m->lws->lws_hdr_custom_copy(x->wsi, text, (int)text_bytes, name, name_bytes) < 0) {
        return NULL;
    }
    return text;
}

/* Find our cookie among those that the browser has for this host, ports of other programs included:
 * a header that is too long for us is none. */
static void
session_take(trpi_management *m, trpi_exchange *x)
{
    char text[TRPI_MANAGEMENT_HEADER_BYTES_MAX];
    const char *found = NULL;
    if (header_take(m, x->wsi, WSI_TOKEN_HTTP_COOKIE, text, sizeof text, &found) && found != NULL &&
        trpi_management_cookie_get(found, m->port, x->session)) {
        x->request.session = x->session;
    }
}

/* false: a part is too long. */
static bool
request_take(trpi_management *m, trpi_exchange *x, const char *path, size_t path_bytes)
{
    static const enum lws_token_indexes tokens[TRPI_HEADERS] = {
        [TRPI_HEADER_HOST] = WSI_TOKEN_HOST,
        [TRPI_HEADER_ORIGIN] = WSI_TOKEN_ORIGIN,
        [TRPI_HEADER_AUTHORIZATION] = WSI_TOKEN_HTTP_AUTHORIZATION,
        [TRPI_HEADER_CONTENT_TYPE] = WSI_TOKEN_HTTP_CONTENT_TYPE,
        [TRPI_HEADER_ACCEPT] = WSI_TOKEN_HTTP_ACCEPT,
        [TRPI_HEADER_TRANSFER_ENCODING] = WSI_TOKEN_HTTP_TRANSFER_ENCODING,
    };
    const char *found[TRPI_HEADERS] = { NULL };
    bool fits = path_bytes < sizeof x->path && query_take(m, x);
    for (size_t i = 0; fits && i < TRPI_HEADERS; i++) {
        fits =
            header_take(m, x->wsi, tokens[i], x->headers[i], TRPI_EXCHANGE_TEXT_BYTES, &found[i]);
    }
    if (!fits) {
        return false;
    }
    memcpy(x->path, path, path_bytes);
    x->path[path_bytes] = '\0';
    x->request.method = trpi_lws_method(m->lws, x->wsi);
    x->request.path = x->path;
    x->request.query = x->query;
    x->request.host = found[TRPI_HEADER_HOST];
    x->request.origin = found[TRPI_HEADER_ORIGIN];
    x->request.authorization = found[TRPI_HEADER_AUTHORIZATION];
    x->request.content_type = found[TRPI_HEADER_CONTENT_TYPE];
    x->request.accept = found[TRPI_HEADER_ACCEPT];
    x->request.transfer_encoding = found[TRPI_HEADER_TRANSFER_ENCODING];
    x->request.last_event_id =
        custom_take(m, x, "last-event-id:", x->last_event_id, sizeof x->last_event_id);
    x->request.traceparent =
        custom_take(m, x, "traceparent:", x->traceparent, sizeof x->traceparent);
    x->is_head = strcmp(x->request.method, "HEAD") == 0;
    certificate_take(m, x);
    session_take(m, x);
    char peer[64] = "";
    (void)m->lws->lws_get_peer_simple(x->wsi, peer, sizeof peer);
    (void)snprintf(x->from, sizeof x->from, "management from=%s", peer);
    return true;
}

/* Exchange a code for a cookie. */
static int
session_begin(trpi_management *m, trpi_exchange *x)
{
    char secret[TRPI_MANAGEMENT_SECRET_TEXT];
    uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES];
    if (!trpi_random(random, sizeof random)) {
        return answer_error(m, x, 500, "internal", "OpenSSL has no random bytes");
    }
    pthread_mutex_lock(&m->lock);
    bool ok = trpi_management_sessions_open(&m->sessions, x->plan.subject,
                                            trpi_management_now_ms(m), random, secret);
    pthread_mutex_unlock(&m->lock);
    trpi_cleanse(random, sizeof random);
    if (!ok) {
        return answer_error(m, x, 403, "bad-code",
                            "this code was used, is older than a minute, or is none of this node: "
                            "`troupe dashboard` prints another one");
    }
    trpi_management_answer answer = { .status = 200, .content_type = "application/json" };
    cJSON *json = cJSON_CreateObject();
    if (trpi_json_add_i64(json, "expiresMs", TRPI_MANAGEMENT_SESSION_MS)) {
        answer.body = trpi_json_print(json);
    }
    cJSON_Delete(json);
    trpi_management_cookie_write(m->port, secret, m->cert[0] != '\0', answer.cookie);
    trpi_cleanse(secret, sizeof secret);
    return trpi_exchange_answer(m, x, &answer);
}

static int
event_log_answer(trpi_management *m, trpi_exchange *x)
{
    trpi_management_answer answer = { .status = 200, .content_type = "application/json" };
    pthread_mutex_lock(&m->lock);
    answer.body = trpi_management_feed_list(&m->feed, x->plan.event_bits, x->plan.count);
    pthread_mutex_unlock(&m->lock);
    return trpi_exchange_answer(m, x, &answer);
}

bool
trpi_exchange_hung_up(const trpi_management *m, const trpi_exchange *x)
{
    struct pollfd fd = { m->lws->lws_get_socket_fd(x->wsi), POLLRDHUP, 0 };
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* exchange-X4. The question has time of its own: set the timer for the next look at its client. -1:
 * the client has gone, or the time is over. */
static int
wait_go_on(trpi_management *m, trpi_exchange *x)
{
    uint64_t step_ms = x->left_ms < LOOK_MS ? x->left_ms : LOOK_MS;
    if (step_ms == 0 || (x->id != 0 && trpi_exchange_hung_up(m, x))) {
        return -1;
    }
    x->left_ms -= step_ms;
    m->lws->lws_set_timer_usecs(x->wsi, (lws_usec_t)step_ms * 1000);
    return 0;
}

/* Judge a request, all of which is here, and answer it or ask the node. */
static int
request_serve(trpi_management *m, trpi_exchange *x)
{
    x->request.body = x->body;
    x->request.body_bytes = x->body_bytes;
    pthread_mutex_lock(&m->lock); /* the tokens, the sessions */
    m->policy.now_ms = trpi_management_now_ms(m);
    trpi_management_plan_make(&m->policy, &x->request, &x->plan);
    pthread_mutex_unlock(&m->lock);
    if (x->plan.operation == 0) {
        return trpi_exchange_answer(m, x, &x->plan.answer);
    }
    if (x->plan.operation == TRPI_MANAGEMENT_EVENTS) {
        return trpi_stream_begin(m, x);
    }
    if (x->plan.operation == TRPI_MANAGEMENT_SESSION) {
        return session_begin(m, x);
    }
    if (x->plan.operation == TRPI_MANAGEMENT_EVENT_LOG) {
        return event_log_answer(m, x);
    }
    if (x->plan.wait_ms > 0) { /* forward-F2. The library's own limit for headers would cut it */
        m->lws->lws_set_timeout(x->wsi, NO_PENDING_TIMEOUT, 0);
        x->left_ms = (uint64_t)x->plan.wait_ms + m->request_ms;
        if (wait_go_on(m, x) != 0) {
            return -1;
        }
    }
    if (x->plan.who[0] != '\0') {
        size_t used = strlen(x->from);
        (void)snprintf(x->from + used, sizeof x->from - used, " %s", x->plan.who);
    }
    x->id = ++m->id_next;
    m->ask(m->arg, m, x->id, x->plan.command, x->from);
    return 0;
}

/* The headers are here. */
static int
request_begin(trpi_management *m, trpi_exchange *x, const char *path, size_t path_bytes)
{
    trpi_management_plan *plan = &x->plan;
    size_t wanted = 0;
    if (!request_take(m, x, path, path_bytes)) {
        return answer_error(m, x, 431, "too-long", "the path, the query or a header is too long");
    }
    if (!length_take(m, x->wsi, &wanted)) {
        return answer_error(m, x, 400, "bad-length", "Content-Length is no number");
    }
    if (wanted == 0 || x->request.transfer_encoding != NULL) {
        return request_serve(m, x);
    }
    if (wanted > TRPI_MANAGEMENT_BODY_BYTES_MAX) {
        return answer_error(m, x, 413, "too-large", "the body is too large");
    }
    /* a request that is refused whatever its body is: routes-R3 */
    pthread_mutex_lock(&m->lock);
    m->policy.now_ms = trpi_management_now_ms(m);
    bool goes_on = trpi_management_plan_admits(&m->policy, &x->request, plan);
    pthread_mutex_unlock(&m->lock);
    if (!goes_on) {
        return trpi_exchange_answer(m, x, &plan->answer);
    }
    x->body = trpi_alloc(wanted);
    x->body_wanted = wanted;
    return x->body != NULL ? 0 : answer_error(m, x, 500, "no-memory", NULL);
}

static int
body_take(trpi_exchange *x, const void *bytes, size_t count)
{
    if (x->out != NULL) {
        return 0; /* it is answered already */
    }
    if (count > x->body_wanted - x->body_bytes) {
        return -1;
    }
    memcpy(x->body + x->body_bytes, bytes, count);
    x->body_bytes += count;
    return 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static trpi_exchange *
exchange_new(trpi_management *m, struct lws *wsi)
{
    trpi_exchange *x = trpi_alloc(sizeof *x);
    if (x != NULL) {
        x->wsi = wsi;
        x->next = m->exchanges;
        m->exchanges = x;
    }
    return x;
}

static void
exchange_free(trpi_management *m, trpi_exchange *x)
{
    for (trpi_exchange **at = &m->exchanges; *at != NULL; at = &(*at)->next) {
        if (*at == x) {
            *at = x->next;
            break;
        }
    }
    if (x->id != 0 && m->cancel != NULL &&
        !atomic_load_explicit(&m->stopping, memory_order_acquire)) {
        m->cancel(m->arg, m, x->id); /* a node that ends lets orders go on for a while */
    }
    trpi_stream_end(m, x);
    trpi_free(x->body);
    trpi_free(x->out);
    trpi_free(x);
}

/* exchange-X2. */
static void
connection_begin(trpi_management *m, struct lws *wsi)
{
    m->lws->lws_set_opaque_user_data(wsi, m); /* counted */
    m->connections_count++;
    m->lws->lws_set_timer_usecs(wsi, (lws_usec_t)m->request_ms * 1000);
}

static void
connection_end(trpi_management *m, struct lws *wsi)
{
    if (m->lws->lws_get_opaque_user_data(wsi) != NULL) {
        m->lws->lws_set_opaque_user_data(wsi, NULL);
        trpi_assert(m->connections_count > 0);
        m->connections_count--;
    }
}

static int
http_callback(trpi_management *m, struct lws *wsi, enum lws_callback_reasons reason,
              trpi_exchange **place, const void *in, size_t length)
{
    trpi_exchange *x = *place;
    switch (reason) {
    case LWS_CALLBACK_HTTP:
        if (x != NULL) {
            return -1; /* exchange-X1 */
        }
        x = *place = exchange_new(m, wsi);
        return x != NULL ? request_begin(m, x, in, length) : -1;
    case LWS_CALLBACK_HTTP_BODY:
        return x != NULL ? body_take(x, in, length) : -1;
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return x == NULL ? -1 : x->out != NULL || x->id != 0 ? 0 : request_serve(m, x);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return x == NULL ? -1 : x->streams ? trpi_stream_write(m, x) : answer_write(m, x);
    case LWS_CALLBACK_CLOSED_HTTP:
        if (x != NULL) {
            *place = NULL;
            exchange_free(m, x);
        }
        return 0;
    default:
        return 0;
    }
}

int
trpi_exchange_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                       size_t length)
{
    char why[TRPI_MANAGEMENT_WHY_BYTES];
    const trpi_lws *lws = trpi_lws_get(why, sizeof why);
    switch (reason) {
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION: {
        trpi_management *m = management_of(wsi, lws);
        bool full = m->connections_count >= m->connections_max;
        if (full) {
            trpi_streams_sweep(m);
        }
        return full ? 1 : 0;
    }
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        connection_begin(management_of(wsi, lws), wsi);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        connection_end(management_of(wsi, lws), wsi);
        return 0;
    case LWS_CALLBACK_TIMER: { /* exchange-X2 */
        trpi_exchange *x = user != NULL ? *(trpi_exchange **)user : NULL;
        return x == NULL    ? -1
               : x->streams ? trpi_stream_timer(management_of(wsi, lws), x)
                            : wait_go_on(management_of(wsi, lws), x);
    }
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS: { /* of a vhost, not a connection */
        trpi_management *m = lws->lws_context_user(lws->lws_get_context(wsi));
        m->ssl_ctx = user;
        return 0;
    }
    case LWS_CALLBACK_OPENSSL_PERFORM_CLIENT_CERT_VERIFICATION: /* exchange-X3: what OpenSSL says */
        return length != 0 ? 0 : 1;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return -1; /* HTTP/1.1 and nothing else */
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        trpi_management_replies_give(management_of(wsi, lws));
        trpi_management_tls_take(management_of(wsi, lws));
        trpi_streams_wake(management_of(wsi, lws));
        return 0;
    case LWS_CALLBACK_HTTP:
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
    case LWS_CALLBACK_HTTP_WRITEABLE:
    case LWS_CALLBACK_CLOSED_HTTP:
        return user != NULL ? http_callback(management_of(wsi, lws), wsi, reason, user, in, length)
                            : (reason == LWS_CALLBACK_CLOSED_HTTP ? 0 : -1);
    default:
        return 0;
    }
}

#endif
