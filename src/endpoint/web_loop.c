/* web_loop.c - a server or a client over libwebsockets: its context, its thread, and the two lists
 * between that thread and the endpoint's actor.
 *
 * Why.     libwebsockets has one thread for a context, and lives by callbacks of it. An endpoint
 *          has one of its own, which no dispatcher and no control lane waits for.
 * Shape.   thread: request, message -> arrived -> poll message -> actor: trpi_web_take()
 *          actor: response, message -> jobs -> lws_cancel_service() -> thread
 * Must hold.
 *   web-loop-L1  The context and its connections are touched by the thread alone, but for
 *       lws_cancel_service() with the lock, and by the opener before.
 *   web-loop-L2  A job finds its connection by a token that is used once, or is dropped.
 *   web-loop-L3  The thread takes no signal.                           (trpi_endpoint_thread)
 *   web-loop-L4  When pending_max events wait for the actor, WebSockets are not read.
 *   web-loop-L5  Peers' certificates are judged by OpenSSL: the callback of libwebsockets finds its
 *       connection by a number of the process that each new context changes, and by another the
 *       context that it frees: it gets ours, also for a server.                 (context_make)
 * Limits.  connections, headers, idle (web_text.h); pending_max, message_bytes_max.
 * Tests.   tests/unit/endpoint/web_server_test.c, tests/unit/endpoint/web_socket_test.c
 * Sources. CAM-01
 */
#include "endpoint/web.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/world.h"

#ifdef HAVE_LIBWEBSOCKETS
#include "tls/tls.h"

#define TOKEN_BITS 12 /* of an index: TRPI_WEB_CONNECTIONS_MAX */
_Static_assert(TRPI_WEB_CONNECTIONS_MAX == 1 << TOKEN_BITS, "an index has so many bits");

static int web_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                        size_t length);

static const struct lws_protocols protocols[] = {
    { "troupe-endpoint", web_callback, 0, 0, 0, NULL, 0 },
    { NULL, NULL, 0, 0, 0, NULL, 0 },
};
static const trpi_lws *_Atomic library; /* set before the first context, always to the same */

/* ---- events and jobs ------------------------------------------------------------------------- */

trpi_web_fields *
trpi_web_fields_new(const trpi_web *web)
{
    /* a header has a name beside its value, and some are ours */
    size_t bytes = 2 * (size_t)web->settings.header_bytes + 4096;
    trpi_web_fields *fields = trpi_alloc(sizeof *fields + bytes);
    if (fields != NULL) {
        fields->bytes = bytes;
    }
    return fields;
}

bool
trpi_web_field_add(trpi_web_fields *fields, const char *name, const char *value)
{
    size_t name_bytes = strlen(name) + 1, value_bytes = strlen(value) + 1;
    if (fields->count == TRP_ENDPOINT_HEADERS_MAX || name_bytes > TRP_ENDPOINT_HEADER_BYTES_MAX ||
        value_bytes > TRP_ENDPOINT_HEADER_BYTES_MAX + 1 ||
        name_bytes + value_bytes > fields->bytes - fields->used) {
        return false;
    }
    trp_endpoint_header *h = &fields->list[fields->count++];
    h->name = memcpy(fields->text + fields->used, name, name_bytes);
    h->value = memcpy(fields->text + fields->used + name_bytes, value, value_bytes);
    fields->used += name_bytes + value_bytes;
    return true;
}

trpi_web_fields *
trpi_web_fields_dup(const trpi_web_fields *fields, const char *name, const char *value)
{
    size_t more = name != NULL ? strlen(name) + strlen(value) + 2 : 0;
    trpi_web_fields *copy = trpi_alloc(sizeof *copy + fields->used + more);
    if (copy == NULL) {
        return NULL;
    }
    copy->bytes = fields->used + more;
    bool fits = true;
    for (uint32_t i = 0; i < fields->count; i++) {
        fits &= trpi_web_field_add(copy, fields->list[i].name, fields->list[i].value);
    }
    trpi_assert(fits);
    if (name != NULL && !trpi_web_field_add(copy, name, value)) {
        trpi_free(copy);
        return NULL;
    }
    return copy;
}

trpi_web_event *
trpi_web_event_new(uint64_t token)
{
    trpi_web_event *event = trpi_alloc(sizeof *event);
    if (event != NULL) {
        event->token = token;
    }
    return event;
}

void
trpi_web_event_free(trpi_web_event *event)
{
    if (event != NULL) {
        trp_bytes_unref(&event->body);
        trpi_free(event->fields);
        trpi_free(event);
    }
}

trpi_web_job *
trpi_web_job_new(uint64_t token)
{
    trpi_web_job *job = trpi_alloc(sizeof *job);
    if (job != NULL) {
        job->token = token;
    }
    return job;
}

void
trpi_web_job_free(trpi_web_job *job)
{
    if (job != NULL) {
        trpi_buffer_fini(&job->head);
        trp_bytes_unref(&job->body);
        trpi_web_event_free(job->end);
        trpi_free(job);
    }
}

void
trpi_web_job_add(trpi_web_connection *c, trpi_web_job *job)
{
    job->next = NULL;
    *c->queue_last = job;
    c->queue_last = &job->next;
    c->queue_count++;
    c->queue_bytes += trp_bytes_length(job->body);
}

void
trpi_web_job_drop(trpi_web_connection *c)
{
    trpi_web_job *job = c->queue;
    trpi_assert(job != NULL && c->queue_count > 0);
    c->queue = job->next;
    c->queue_last = c->queue == NULL ? &c->queue : c->queue_last;
    c->queue_count--;
    c->queue_bytes -= trp_bytes_length(job->body);
    c->written = 0;
    trpi_web_job_free(job);
}

/* ---- the two lists --------------------------------------------------------------------------- */

/* Tell the actor that something has come, unless it knows. A word that was lost for want of memory
 * is told again with the next event, or when the thread next wakes (not `fresh`). */
static void
owner_tell(trpi_web *web, bool fresh)
{
    pthread_mutex_lock(&web->lock);
    bool tells = !web->told && (fresh || web->untold);
    web->told |= tells;
    web->untold = false;
    pthread_mutex_unlock(&web->lock);
    if (!tells) {
        return;
    }
    trp_ctx *ctx = trpi_enter(web->system);
    trp_err err = trpi_offer(ctx, web->owner, TRP_REF_NONE, &trpi_endpoint_poll_type, NULL, 0);
    trpi_leave(ctx);
    if (err == TRP_ENOMEM) {
        pthread_mutex_lock(&web->lock);
        web->told = false;
        web->untold = true;
        pthread_mutex_unlock(&web->lock);
    }
}

void
trpi_web_tell(trpi_web *web, trpi_web_event *event)
{
    pthread_mutex_lock(&web->lock);
    event->next = NULL;
    *web->arrived_last = event;
    web->arrived_last = &event->next;
    web->arrived_count++;
    pthread_mutex_unlock(&web->lock);
    owner_tell(web, true);
}

bool
trpi_web_is_full(trpi_web *web)
{
    pthread_mutex_lock(&web->lock);
    bool full = web->arrived_count >= web->pending_max;
    web->resume_wanted |= full;
    pthread_mutex_unlock(&web->lock);
    return full;
}

/* With the lock. */
static void
thread_wake(trpi_web *web)
{
    if (web->context != NULL) {
        web->lws->lws_cancel_service(web->context);
    }
}

trpi_web_event *
trpi_web_take(trpi_web *web, bool answers_only)
{
    pthread_mutex_lock(&web->lock);
    trpi_web_event **at = &web->arrived;
    while (answers_only && *at != NULL && (*at)->token == 0) {
        at = &(*at)->next;
    }
    trpi_web_event *event = *at;
    if (event == NULL) {
        web->told = false;
    } else {
        *at = event->next;
        web->arrived_last = *at == NULL ? at : web->arrived_last;
        web->arrived_count--;
    }
    if (web->resume_wanted && web->arrived_count <= web->pending_max / 2) {
        web->resume_wanted = false;
        thread_wake(web);
    }
    pthread_mutex_unlock(&web->lock);
    return event;
}

void
trpi_web_post(trpi_web *web, trpi_web_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&web->lock);
    *web->jobs_last = job;
    web->jobs_last = &job->next;
    thread_wake(web);
    pthread_mutex_unlock(&web->lock);
}

void
trpi_web_check(trp_ctx *ctx, trpi_web *web)
{
    pthread_mutex_lock(&web->lock);
    bool failed = web->failed;
    pthread_mutex_unlock(&web->lock);
    if (failed) {
        trp_fail(ctx, TRP_EIO, "libwebsockets serves this endpoint no more");
    }
}

bool
trpi_web_poll(trp_ctx *ctx, trpi_endpoint *e, trpi_web *web)
{
    trpi_web_check(ctx, web);
    while (trpi_consumer_room(e) > 0) {
        trpi_web_event *event = trpi_web_take(web, false);
        if (event == NULL) {
            return false;
        }
        trp_bytes body = event->body;
        event->body = TRP_BYTES_EMPTY;
        (void)trpi_consumer_deliver(ctx, e, event->token, body, event->fields->list,
                                    event->fields->count);
        trpi_web_event_free(event);
    }
    return true;
}

/* ---- connections ----------------------------------------------------------------------------- */

void
trpi_web_timer_set(const trpi_web *web, trpi_web_connection *c, uint32_t ms)
{
    c->timed = true;
    web->lws->lws_set_timer_usecs(c->wsi, (lws_usec_t)ms * 1000);
}

void
trpi_web_timer_end(trpi_web_connection *c)
{
    c->timed = false;
}

void
trpi_web_token_new(trpi_web *web, trpi_web_connection *c)
{
    c->token = ++web->tokens << TOKEN_BITS | c->index;
    atomic_store_explicit(&web->live[c->index], c->token, memory_order_relaxed);
}

void
trpi_web_token_end(trpi_web *web, trpi_web_connection *c)
{
    c->token = 0;
    atomic_store_explicit(&web->live[c->index], 0, memory_order_relaxed);
}

bool
trpi_web_is_live(const trpi_web *web, uint64_t token)
{
    uint64_t index = token & ((1u << TOKEN_BITS) - 1);
    return index < web->settings.connections &&
           atomic_load_explicit(&web->live[index], memory_order_relaxed) == token;
}

/* web-loop-L2 */
static trpi_web_connection *
connection_find(const trpi_web *web, uint64_t token)
{
    trpi_web_connection *c = NULL;
    uint64_t index = token & ((1u << TOKEN_BITS) - 1);
    if (index < web->settings.connections) {
        c = web->connections[index];
    }
    return c != NULL && c->token == token ? c : NULL;
}

/* False: there are too many. */
static bool
connection_begin(trpi_web *web, struct lws *wsi)
{
    uint32_t index = 0;
    while (index < web->settings.connections && web->connections[index] != NULL) {
        index++;
    }
    trpi_web_connection *c = index < web->settings.connections ? trpi_alloc(sizeof *c) : NULL;
    if (c == NULL) {
        return false;
    }
    c->wsi = wsi;
    c->index = index;
    c->queue_last = &c->queue;
    web->connections[index] = c;
    web->connections_count++;
    web->lws->lws_set_opaque_user_data(wsi, c);
    trpi_web_timer_set(web, c, web->settings.idle_ms);
    return true;
}

static void
connection_end(trpi_web *web, trpi_web_connection *c)
{
    trpi_assert(web->connections[c->index] == c && web->connections_count > 0);
    web->lws->lws_set_opaque_user_data(c->wsi, NULL);
    web->connections[c->index] = NULL;
    web->connections_count--;
    web->paused -= c->paused ? 1 : 0;
    trpi_web_exchange_end(web, c);
    while (c->queue != NULL) {
        trpi_web_job_drop(c);
    }
    trpi_buffer_fini(&c->in);
    trpi_free(c);
}

static void
jobs_do(trpi_web *web)
{
    pthread_mutex_lock(&web->lock);
    trpi_web_job *job = web->jobs;
    web->jobs = NULL;
    web->jobs_last = &web->jobs;
    pthread_mutex_unlock(&web->lock);
    while (job != NULL) {
        trpi_web_job *next = job->next;
        trpi_web_connection *c = connection_find(web, job->token);
        if (web->role == TRPI_WEB_CLIENT) {
            trpi_web_client_job(web, job);
        } else if (web->role == TRPI_WEB_HTTP) {
            trpi_web_http_job(web, c, job);
        } else {
            trpi_web_socket_job(web, c, job);
        }
        job = next;
    }
    if (web->paused > 0 && !trpi_web_is_full(web)) {
        trpi_web_sockets_resume(web);
    }
}

static int
web_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    const trpi_lws *lws = atomic_load_explicit(&library, memory_order_acquire);
    trpi_web *web = lws->lws_context_user(lws->lws_get_context(wsi));
    switch (reason) {
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS: /* of a vhost, not a connection */
        web->ssl_ctx = user;
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        jobs_do(web);
        return 0;
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
        return web->connections_count >= web->settings.connections ? 1 : 0;
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        return connection_begin(web, wsi) ? 0 : -1;
    default:
        break;
    }
    if (web->role == TRPI_WEB_CLIENT) {
        return trpi_web_client_callback(web, wsi, reason, in, length);
    }
    trpi_web_connection *c = lws->lws_get_opaque_user_data(wsi);
    if (c == NULL) {
        return 0;
    }
    if (reason == LWS_CALLBACK_WSI_DESTROY) {
        connection_end(web, c);
        return 0;
    }
    return web->role == TRPI_WEB_HTTP ? trpi_web_http_callback(web, c, reason, in, length)
                                      : trpi_web_socket_callback(web, c, reason, in, length);
}

/* ---- the context ----------------------------------------------------------------------------- */

static void
info_fill(struct lws_context_creation_info *info, trpi_web *web)
{
    const trpi_web_settings *s = &web->settings;
    trpi_lws_info_fill(info, web->role == TRPI_WEB_CLIENT ? NULL : s->host, s->port, s->connections,
                       s->header_bytes, s->idle_ms);
    info->protocols = protocols;
    info->user = web;
    info->options |= LWS_SERVER_OPTION_VALIDATE_UTF8;
    info->keepalive_timeout = (int)((s->idle_ms + 999) / 1000);
    web->idle.secs_since_valid_ping = (uint16_t)((s->idle_ms + 999) / 1000);
    web->idle.secs_since_valid_hangup = (uint16_t)(2 * web->idle.secs_since_valid_ping);
    info->retry_and_idle_policy = &web->idle;
    if (!s->tls) {
        return;
    }
    info->options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info->provided_client_ssl_ctx = trpi_tls_dialer_ssl_ctx(web->dialer);
    if (web->role != TRPI_WEB_CLIENT) {
        info->options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
        info->ssl_options_set = SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1;
        info->ssl_cert_filepath = s->cert;
        info->ssl_private_key_filepath = s->key;
    }
}

/* Read the files of TLS, so that a wrong one is named. NULL in *ret: there are none. */
static trp_err
tls_load(trpi_endpoint *e, const trpi_web *web, trpi_tls_context **ret)
{
    const trpi_web_settings *s = &web->settings;
    bool client = web->role == TRPI_WEB_CLIENT;
    trpi_tls_options options = { .use = client ? TRPI_TLS_CLIENT : TRPI_TLS_SERVER,
                                 .peer = client || s->ca != NULL ? TRPI_TLS_PEER_REQUIRED
                                                                 : TRPI_TLS_PEER_UNCHECKED,
                                 .version_min = TRPI_TLS_1_2,
                                 .ca = s->ca != NULL ? s->ca : "",
                                 .cert = s->cert != NULL ? s->cert : "",
                                 .key = s->key != NULL ? s->key : "" };
    *ret = NULL;
    return s->tls
               ? trpi_tls_context_load(&options, trpi_world_wall_ms(trpi_system_world(web->system)),
                                       ret, e->reason, sizeof e->reason)
               : TRP_OK;
}

/* web-loop-L1, web-loop-L5 */
static trp_err
context_make(trpi_endpoint *e, trpi_web *web)
{
    struct lws_context_creation_info info;
    trpi_tls_context *tls;
    int reason = 0;
    trp_err err = tls_load(e, web, &tls);
    if (err == TRP_OK && web->settings.tls) {
        err = trpi_tls_dialer_new(web->role == TRPI_WEB_CLIENT ? tls : NULL, web->settings.host,
                                  &web->dialer);
    }
    if (err != TRP_OK) {
        trpi_tls_context_unref(tls);
        return err;
    }
    info_fill(&info, web);
    web->vhost = trpi_lws_open(web->lws, &info, &web->context, &reason);
    if (web->vhost != NULL && web->ssl_ctx != NULL && web->role != TRPI_WEB_CLIENT) {
        err = trpi_tls_context_lend(tls, web->ssl_ctx);
        trpi_tls_verify_own(web->ssl_ctx, web->settings.ca != NULL ? TRPI_TLS_PEER_REQUIRED
                                                                   : TRPI_TLS_PEER_UNCHECKED);
    }
    trpi_tls_context_unref(tls);
    if (web->context == NULL) {
        (void)snprintf(e->reason, sizeof e->reason, "libwebsockets makes no context");
        return TRP_ENOMEM;
    }
    if (web->vhost == NULL) {
        (void)snprintf(e->reason, sizeof e->reason, "cannot listen on %.60s:%u: %s",
                       web->settings.host, web->settings.port,
                       reason != 0 ? strerrordesc_np(reason)
                                   : "it is no address of this host, or another program has it");
        return TRP_EADDRINUSE;
    }
    if (web->settings.tls && web->role != TRPI_WEB_CLIENT && web->ssl_ctx == NULL) {
        (void)snprintf(e->reason, sizeof e->reason,
                       "libwebsockets has made no context of TLS: clients would not be verified");
        return TRP_ECONFIG; /* web-loop-L5 */
    }
    int port = web->role == TRPI_WEB_CLIENT ? 0 : web->lws->lws_get_vhost_listen_port(web->vhost);
    web->port = (uint16_t)port;
    return err;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The endpoint fails: it would serve nobody, and say nothing. */
static void
service_failed(trpi_web *web)
{
    pthread_mutex_lock(&web->lock);
    web->failed = true;
    web->told = false;
    pthread_mutex_unlock(&web->lock);
    owner_tell(web, true);
}

static void *
web_main(void *arg)
{
    trpi_web *web = arg;
    while (!atomic_load_explicit(&web->stopping, memory_order_acquire)) {
        if (web->lws->lws_service(web->context, 0) < 0) {
            service_failed(web);
            break;
        }
        owner_tell(web, false);
    }
    pthread_mutex_lock(&web->lock);
    struct lws_context *context = web->context;
    web->context = NULL;
    pthread_mutex_unlock(&web->lock);
    web->lws->lws_context_destroy(context); /* closes all connections */
    return NULL;
}

static trp_err
web_make(trp_ctx *ctx, trpi_endpoint *e, trpi_web *web)
{
    const trp_endpoint_options *o = &e->args.options;
    trp_err err =
        trpi_web_settings_read(&e->uri, web->role == TRPI_WEB_CLIENT, &web->settings, e->reason);
    web->system = trp_ctx_system(ctx);
    web->owner = trp_self(ctx);
    web->pending_max = o->pending_max;
    web->message_bytes_max = o->message_bytes_max;
    web->timeout_ms = o->timeout_ms;
    web->lws = trpi_lws_get(e->reason, sizeof e->reason);
    if (err != TRP_OK || web->lws == NULL) {
        return err != TRP_OK ? err : TRP_ECONFIG;
    }
    atomic_store_explicit(&library, web->lws, memory_order_release);
    web->chunk = trpi_alloc(LWS_PRE + TRPI_WEB_CHUNK_BYTES);
    web->connections = trpi_alloc(web->settings.connections * sizeof(trpi_web_connection *));
    web->live = trpi_alloc(web->settings.connections * sizeof *web->live);
    if (web->chunk == NULL || web->connections == NULL || web->live == NULL) {
        return TRP_ENOMEM;
    }
    err = context_make(e, web);
    if (err == TRP_OK) {
        web->runs = trpi_endpoint_thread(&web->thread, web_main, web); /* web-loop-L3 */
        err = web->runs ? TRP_OK : TRP_ENOMEM;
    }
    return err;
}

trp_err
trpi_web_open(trp_ctx *ctx, trpi_endpoint *e, trpi_web_role role, trpi_web **ret_web)
{
    trpi_web *web = trpi_alloc(sizeof *web);
    if (web == NULL) {
        return TRP_ENOMEM;
    }
    web->role = role;
    web->arrived_last = &web->arrived;
    web->jobs_last = &web->jobs;
    pthread_mutex_init(&web->lock, NULL);
    trp_err err = web_make(ctx, e, web);
    if (err != TRP_OK) {
        trpi_web_close(web);
        return err;
    }
    *ret_web = web;
    return TRP_OK;
}

void
trpi_web_close(trpi_web *web)
{
    if (web == NULL) {
        return;
    }
    if (web->runs) {
        atomic_store_explicit(&web->stopping, true, memory_order_release);
        pthread_mutex_lock(&web->lock);
        thread_wake(web);
        pthread_mutex_unlock(&web->lock);
        (void)pthread_join(web->thread, NULL);
    } else if (web->context != NULL) {
        web->lws->lws_context_destroy(web->context);
    }
    while (web->arrived != NULL) {
        trpi_web_event *next = web->arrived->next;
        trpi_web_event_free(web->arrived);
        web->arrived = next;
    }
    while (web->jobs != NULL) {
        trpi_web_job *next = web->jobs->next;
        trpi_web_job_free(web->jobs);
        web->jobs = next;
    }
    trpi_web_job_free(web->unsent);
    trpi_web_event_free(web->end);
    trpi_tls_dialer_free(web->dialer);
    trpi_free(web->connections);
    trpi_free(web->live);
    trpi_free(web->chunk);
    trpi_mutex_destroy(&web->lock);
    trpi_free(web);
}

void
trpi_web_where(const trpi_web *web, char ret_text[TRP_ENDPOINT_REASON_BYTES])
{
    bool is_v6 = strchr(web->settings.host, ':') != NULL;
    (void)snprintf(ret_text, TRP_ENDPOINT_REASON_BYTES, is_v6 ? "[%.120s]:%u" : "%.120s:%u",
                   web->settings.host, web->port);
}

#else

/* Built without the header of libwebsockets: nothing is ever opened. */
trp_err
trpi_web_open(trp_ctx *ctx, trpi_endpoint *e, trpi_web_role role, trpi_web **ret_web)
{
    (void)ctx;
    (void)role;
    (void)ret_web;
    (void)snprintf(e->reason, sizeof e->reason,
                   "%s: this library was built without libwebsockets (apt-get install "
                   "libwebsockets-dev, and build it again)",
                   e->uri.scheme);
    return TRP_EUNSUPPORTED;
}

void
trpi_web_close(trpi_web *web)
{
    trpi_assert(web == NULL);
    (void)web;
}

void
trpi_web_where(const trpi_web *web, char ret_text[TRP_ENDPOINT_REASON_BYTES])
{
    (void)web;
    ret_text[0] = '\0';
}

void
trpi_web_check(trp_ctx *ctx, trpi_web *web)
{
    (void)ctx;
    (void)web;
}

trpi_web_event *
trpi_web_take(trpi_web *web, bool answers_only)
{
    (void)web;
    (void)answers_only;
    return NULL;
}

trpi_web_event *
trpi_web_event_new(uint64_t token)
{
    (void)token;
    return NULL;
}

void
trpi_web_event_free(trpi_web_event *event)
{
    (void)event;
}

trpi_web_job *
trpi_web_job_new(uint64_t token)
{
    (void)token;
    return NULL;
}

void
trpi_web_job_free(trpi_web_job *job)
{
    (void)job;
}

void
trpi_web_post(trpi_web *web, trpi_web_job *job)
{
    (void)web;
    (void)job;
}

bool
trpi_web_is_live(const trpi_web *web, uint64_t token)
{
    (void)web;
    (void)token;
    return false;
}

bool
trpi_web_poll(trp_ctx *ctx, trpi_endpoint *e, trpi_web *web)
{
    (void)ctx;
    (void)e;
    (void)web;
    return false;
}

#endif
