/* scheme_http_client.c - http: and https: as a producer: each message is a request, whose answer is
 * the reply.
 *
 * Why.     libcurl has waits of its own. One thread of the endpoint runs all of its requests; the
 *          actor only makes them and takes their ends.
 * Shape.   send -> exchange: QUEUED -> the thread: curl_multi -> ENDED, message -> finish()
 *          Connections are kept for later requests; a name is looked up, a certificate verified,
 *          by libcurl.
 * Must hold.
 *   http-client-H1  An exchange is the actor's while it is FREE or ENDED, and the thread's else.
 *   http-client-H2  What a server sends is kept up to message_bytes_max and TRPI_HTTP_FIELDS_BYTES,
 *       and for timeout_ms.
 *   http-client-H3  A request goes to the URI's host only; with `redirects` to others, from https
 *       to https only.
 * Threads. One, which takes no lock: an exchange's phase is passed by release and acquire.
 * Limits.  parallel; timeout_ms; connect-timeout; redirects.
 * Tests.   tests/unit/endpoint/http_client_test.c
 * Sources. CAM-01, CAM-05, CAM-08
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/curl.h"
#include "endpoint/endpoint.h"
#include "endpoint/http_request.h"

enum { PARALLEL = 8, PARALLEL_MOST = 64, REDIRECTS_MOST = 10, CONNECT_MS = 10000 };

typedef struct settings {
    uint32_t parallel, redirects, connect_ms;
    const char *ca, *cert, *key;
} settings;

static trp_err
client_read(const trpi_uri *uri, settings *s, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    char method[TRPI_HTTP_METHOD_BYTES];
    s->parallel = PARALLEL;
    s->redirects = 0;
    s->connect_ms = CONNECT_MS;
    s->ca = trpi_uri_option(uri, "ca", 0);
    s->cert = trpi_uri_option(uri, "cert", 0);
    s->key = trpi_uri_option(uri, "key", 0);
    trp_err err = trpi_http_target_check(uri, reason);
    err = err == TRP_OK ? trpi_http_method_choose(uri, NULL, method, reason) : err;
    err = err == TRP_OK ? trpi_uri_number(uri, "parallel", 1, PARALLEL_MOST, &s->parallel, reason)
                        : err;
    err = err == TRP_OK
              ? trpi_uri_number(uri, "redirects", 0, REDIRECTS_MOST, &s->redirects, reason)
              : err;
    err = err != TRP_OK
              ? err
              : trpi_uri_number(uri, "connect-timeout", 1, INT32_MAX, &s->connect_ms, reason);
    if (err == TRP_OK && (s->cert == NULL) != (s->key == NULL)) {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES, "https: cert and key belong together");
        err = TRP_EINVAL;
    }
    return err;
}

static trp_err
client_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    settings s;
    return client_read(uri, &s, ret_reason);
}

#ifdef HAVE_LIBCURL

enum { FREE, QUEUED, RUNNING, ENDED };

typedef struct exchange {
    _Atomic uint32_t phase; /* http-client-H1 */
    uint32_t turn;
    trp_msg *ran; /* told at the end; NULL: it was */
    CURL *easy;   /* kept; NULL: not made yet */
    struct curl_slist *sent;
    trp_bytes body;
    trpi_buffer reply;
    uint32_t bytes_max;
    trpi_http_fields fields;
    bool too_long;
    CURLcode code;
    long status;
    char url[TRPI_HTTP_URL_BYTES], reason[CURL_ERROR_SIZE];
} exchange;

typedef struct client {
    settings settings;
    const trpi_curl *curl;
    CURLM *multi;
    pthread_t thread;
    bool has_thread;
    _Atomic bool ends;
    trp_system *system;
    trp_ref owner;
    exchange *exchanges;
} client;

/* ---- the thread ------------------------------------------------------------------------------ */

static void
exchange_end(const client *c, exchange *x, CURLcode code)
{
    trp_msg *ran = x->ran; /* the exchange is the actor's before it is told */
    x->ran = NULL;
    x->code = code;
    x->status = 0;
    (void)c->curl->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
    atomic_store_explicit(&x->phase, ENDED, memory_order_release); /* of client_receive() */
    trpi_endpoint_ran_tell(c->system, c->owner, ran);
}

/* Begin what is queued, and end what is over. */
static void
client_step(client *c)
{
    int running, left;
    CURLMsg *done;
    for (uint32_t i = 0; i < c->settings.parallel; i++) {
        exchange *x = &c->exchanges[i];
        if (atomic_load_explicit(&x->phase, memory_order_acquire) == QUEUED) { /* client_send() */
            atomic_store_explicit(&x->phase, RUNNING, memory_order_relaxed);
            if (c->curl->curl_multi_add_handle(c->multi, x->easy) != CURLM_OK) {
                exchange_end(c, x, CURLE_OUT_OF_MEMORY);
            }
        }
    }
    (void)c->curl->curl_multi_perform(c->multi, &running);
    while ((done = c->curl->curl_multi_info_read(c->multi, &left)) != NULL) {
        CURL *easy = done->easy_handle;
        CURLcode code = done->data.result;
        char *owner = NULL;
        if (done->msg == CURLMSG_DONE &&
            c->curl->curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner) == CURLE_OK) {
            (void)c->curl->curl_multi_remove_handle(c->multi, easy);
            exchange_end(c, (exchange *)(void *)owner, code);
        }
    }
}

static void *
client_thread(void *arg)
{
    client *c = arg;
    while (!atomic_load_explicit(&c->ends, memory_order_acquire)) { /* client_stop() */
        client_step(c);
        (void)c->curl->curl_multi_poll(c->multi, NULL, 0, 1000, NULL);
    }
    for (uint32_t i = 0; i < c->settings.parallel; i++) {
        if (atomic_load_explicit(&c->exchanges[i].phase, memory_order_relaxed) == RUNNING) {
            (void)c->curl->curl_multi_remove_handle(c->multi, c->exchanges[i].easy);
        }
    }
    return NULL;
}

/* http-client-H2 */
static size_t
on_body(char *data, size_t size, size_t count, void *arg)
{
    exchange *x = arg;
    trp_err err = trpi_buffer_append(&x->reply, data, size * count, x->bytes_max);
    x->too_long = err == TRP_ELIMIT;
    return err == TRP_OK ? size * count : 0;
}

static size_t
on_field(char *data, size_t size, size_t count, void *arg)
{
    exchange *x = arg;
    trpi_http_fields_add(&x->fields, data, size * count);
    if (size * count >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        trpi_buffer_clear(&x->reply); /* the body of a redirect is nobody's */
    }
    return size * count;
}

/* ---- a request, in the actor ----------------------------------------------------------------- */

/* Add "name: value". */
static bool
field_add(const client *c, exchange *x, const char *name, const char *value)
{
    char line[2 * TRP_ENDPOINT_HEADER_BYTES_MAX + 8];
    (void)snprintf(line, sizeof line, value[0] != '\0' ? "%s: %s" : "%s;", name, value);
    struct curl_slist *longer = c->curl->curl_slist_append(x->sent, line);
    x->sent = longer != NULL ? longer : x->sent;
    return longer != NULL;
}

/* Errors: TRP_EINVAL, with a sentence. */
static trp_err
fields_make(const client *c, exchange *x, const trpi_endpoint_send *send,
            char reason[TRP_ENDPOINT_REASON_BYTES])
{
    bool has_type = false;
    for (uint32_t i = 0; i < send->headers_count; i++) {
        const trp_endpoint_header *header = &send->headers[i];
        if (!trpi_http_field_is_sent(header)) {
            continue;
        }
        if (!trpi_http_field_is_good(header)) {
            (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                           "the header %.60s is no field of HTTP, or has the end of a line",
                           header->name);
            return TRP_EINVAL;
        }
        has_type = has_type || strcasecmp(header->name, "content-type") == 0;
        if (!field_add(c, x, header->name, header->value)) {
            return TRP_ENOMEM;
        }
    }
    bool added = has_type || field_add(c, x, "Content-Type", "application/octet-stream");
    return added ? TRP_OK : TRP_ENOMEM;
}

static bool
tls_set(const client *c, CURL *easy)
{
    const trpi_curl *l = c->curl;
    const settings *s = &c->settings;
    return l->curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           (s->ca == NULL || (l->curl_easy_setopt(easy, CURLOPT_CAINFO, s->ca) == CURLE_OK &&
                              l->curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK)) &&
           (s->cert == NULL || (l->curl_easy_setopt(easy, CURLOPT_SSLCERT, s->cert) == CURLE_OK &&
                                l->curl_easy_setopt(easy, CURLOPT_SSLKEY, s->key) == CURLE_OK));
}

/* A POST is followed by a GET, or as it is (307, 308): libcurl's way, as a browser's. The redirect
 * of another method is the reply. */
static bool
method_follows(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "POST") == 0;
}

/* http-client-H3 */
static bool
target_set(const client *c, CURL *easy, const char *url, const char *scheme, const char *method)
{
    const trpi_curl *l = c->curl;
    bool is_tls = strcmp(scheme, "https") == 0;
    bool follows = c->settings.redirects > 0 && method_follows(method);
    return l->curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, scheme) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                               is_tls ? "https" : "http,https") == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, follows ? 1L : 0L) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)c->settings.redirects) == CURLE_OK;
}

static bool
body_set(const client *c, exchange *x, const char *method)
{
    const trpi_curl *l = c->curl;
    size_t bytes = trp_bytes_length(x->body);
    if (strcmp(method, "HEAD") == 0) {
        return l->curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
    }
    if (strcmp(method, "GET") == 0 && bytes == 0) {
        return l->curl_easy_setopt(x->easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    }
    const void *data = bytes > 0 ? (const void *)trp_bytes_flat(x->body) : "";
    return l->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes) ==
               CURLE_OK &&
           l->curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, data) == CURLE_OK &&
           (strcmp(method, "POST") == 0 || /* else a redirect would repeat it, without its body */
            l->curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK);
}

static bool
exchange_set(const trpi_endpoint *e, exchange *x, const char *method)
{
    const client *c = e->state;
    const trpi_curl *l = c->curl;
    CURL *easy = x->easy;
    l->curl_easy_reset(easy);
#if LIBCURL_VERSION_NUM >= 0x075700 /* an older library that is loaded does not know it */
    (void)l->curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                              1L); /* no wait for a thread that resolves */
#endif
    return target_set(c, easy, x->url, e->uri.scheme, method) && tls_set(c, easy) &&
           body_set(c, x, method) && l->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)e->args.options.timeout_ms) ==
               CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)c->settings.connect_ms) ==
               CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, x->sent) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, x->reason) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_WRITEDATA, x) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_field) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_HEADERDATA, x) == CURLE_OK &&
           l->curl_easy_setopt(easy, CURLOPT_PRIVATE, x) == CURLE_OK;
}

/* Give back what belongs to one request. */
static void
exchange_clear(const client *c, exchange *x)
{
    trp_bytes_unref(&x->body);
    trp_msg_free(x->ran);
    x->ran = NULL;
    c->curl->curl_slist_free_all(x->sent);
    x->sent = NULL;
    trpi_buffer_fini(&x->reply);
    trpi_buffer_fini(&x->fields.texts);
    x->fields.count = 0;
    atomic_store_explicit(&x->phase, FREE, memory_order_relaxed);
}

static void
client_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    client *c = e->state;
    exchange *x = &c->exchanges[slot];
    char method[TRPI_HTTP_METHOD_BYTES], reason[TRP_ENDPOINT_REASON_BYTES] = "no memory";
    trpi_assert(atomic_load_explicit(&x->phase, memory_order_relaxed) == FREE);
    x->turn = trpi_endpoint_turn();
    x->bytes_max = e->args.options.message_bytes_max;
    x->too_long = false;
    x->reason[0] = '\0';
    x->body = trp_bytes_ref(send->body);
    x->ran = trpi_endpoint_ran_new((trpi_endpoint_slot){ slot, x->turn });
    x->easy = x->easy != NULL ? x->easy : c->curl->curl_easy_init();
    trp_err err = trpi_http_url_write(&e->uri, send, x->url, reason);
    err = err == TRP_OK ? trpi_http_method_choose(&e->uri, send, method, reason) : err;
    err = err == TRP_OK ? fields_make(c, x, send, reason) : err;
    err = err == TRP_OK && trp_bytes_length(x->body) > 0 ? trp_bytes_compact(&x->body) : err;
    err = err == TRP_OK && (x->ran == NULL || x->easy == NULL || !exchange_set(e, x, method))
              ? TRP_ENOMEM
              : err;
    if (err != TRP_OK) {
        exchange_clear(c, x);
        trpi_producer_finish(ctx, e, slot, err, reason, NULL, NULL, 0);
        return;
    }
    atomic_store_explicit(&x->phase, QUEUED, memory_order_release); /* of client_step() */
    (void)c->curl->curl_multi_wakeup(c->multi);
}

static trp_err
code_err(const exchange *x)
{
    return x->code == CURLE_OK                   ? TRP_OK
           : x->too_long                         ? TRP_EMSGSIZE
           : x->code == CURLE_OPERATION_TIMEDOUT ? TRP_ETIMEDOUT
           : x->code == CURLE_OUT_OF_MEMORY      ? TRP_ENOMEM
           : x->code == CURLE_PEER_FAILED_VERIFICATION || x->code == CURLE_SSL_CACERT_BADFILE ||
                   x->code == CURLE_SSL_CERTPROBLEM
               ? TRP_EPERM
               : TRP_EIO;
}

static bool
client_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    client *c = e->state;
    if (!trp_msg_is(msg, &trpi_endpoint_ran_type)) {
        return false;
    }
    const trpi_endpoint_slot *at = trp_msg_payload(msg);
    exchange *x = at->slot < c->settings.parallel ? &c->exchanges[at->slot] : NULL;
    if (x == NULL || x->turn != at->turn ||
        atomic_load_explicit(&x->phase, memory_order_acquire) != ENDED) { /* exchange_end() */
        return true;
    }
    trp_endpoint_header headers[TRP_ENDPOINT_HEADERS_MAX];
    char status[16], reason[TRP_ENDPOINT_REASON_BYTES];
    trp_bytes reply = TRP_BYTES_EMPTY;
    trp_err err = code_err(x);
    (void)snprintf(status, sizeof status, "%ld", x->status);
    headers[0] = (trp_endpoint_header){ "http.status", status };
    uint32_t count = trpi_http_fields_headers(&x->fields, headers, 1);
    (void)snprintf(reason, sizeof reason, "%.60s: %.120s", x->url,
                   x->too_long            ? "the answer is longer than message_bytes_max"
                   : x->reason[0] != '\0' ? x->reason
                                          : c->curl->curl_easy_strerror(x->code));
    if (err == TRP_OK && x->reply.count > 0) {
        err = trp_bytes_copy(x->reply.data, x->reply.count, &reply);
    }
    trpi_producer_finish(ctx, e, at->slot, err, reason, &reply, headers, count);
    trp_bytes_unref(&reply);
    exchange_clear(c, x);
    return true;
}

/* ---- start and end --------------------------------------------------------------------------- */

static trp_err
client_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    client *c = trpi_alloc(sizeof *c);
    if (c == NULL) {
        return TRP_ENOMEM;
    }
    e->state = c;
    trp_err err = client_read(&e->uri, &c->settings, e->reason);
    if (err != TRP_OK) {
        return err;
    }
    c->curl = trpi_curl_get(e->reason, sizeof e->reason);
    if (c->curl == NULL) {
        return TRP_EUNSUPPORTED;
    }
    c->system = trp_ctx_system(ctx);
    c->owner = trp_self(ctx);
    c->exchanges = trpi_alloc(c->settings.parallel * sizeof *c->exchanges);
    c->multi = c->curl->curl_multi_init();
    if (c->exchanges == NULL || c->multi == NULL) {
        return TRP_ENOMEM;
    }
    c->has_thread = trpi_endpoint_thread(&c->thread, client_thread, c);
    return c->has_thread ? TRP_OK : TRP_EIO;
}

static uint32_t
client_parallel(const trpi_endpoint *e)
{
    return ((const client *)e->state)->settings.parallel;
}

static void
client_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    client *c = e->state;
    (void)ctx;
    if (c == NULL) {
        return;
    }
    if (c->has_thread) {
        atomic_store_explicit(&c->ends, true, memory_order_release); /* of client_thread() */
        (void)c->curl->curl_multi_wakeup(c->multi);
        (void)pthread_join(c->thread, NULL);
    }
    for (uint32_t i = 0; c->exchanges != NULL && i < c->settings.parallel; i++) {
        exchange_clear(c, &c->exchanges[i]);
        c->curl->curl_easy_cleanup(c->exchanges[i].easy);
    }
    if (c->multi != NULL) {
        (void)c->curl->curl_multi_cleanup(c->multi);
    }
    trpi_free(c->exchanges);
    trpi_free(c);
    e->state = NULL;
}

#else

static trp_err
client_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    (void)ctx;
    (void)snprintf(e->reason, sizeof e->reason,
                   "this build speaks no HTTP as a client: configure found no libcurl "
                   "(apt-get install libcurl4-openssl-dev)");
    return TRP_EUNSUPPORTED;
}

#define client_stop NULL
#define client_send NULL
#define client_receive NULL
#define client_parallel NULL

#endif

#define CLIENT(name_)                                                                              \
    {                                                                                              \
        .name = name_, .producer_options = options, .check = client_check,                         \
        .produce = client_produce, .stop = client_stop, .send = client_send,                       \
        .receive = client_receive, .parallel = client_parallel                                     \
    }
static const char *const options[] = { "method", "parallel", "redirects",       "ca",
                                       "cert",   "key",      "connect-timeout", NULL };
const trpi_scheme trpi_scheme_http_client = CLIENT("http");
const trpi_scheme trpi_scheme_https_client = CLIENT("https");
