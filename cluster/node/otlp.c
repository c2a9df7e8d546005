/* otlp.c - see otlp.h.
 *
 * Why.     A collector wants all traces, as they come, and asks nobody for them.
 * Shape.   ring of hops (kernel) --every interval, by number--> a request --> the collector
 *          The ring is the queue: it is bounded, and nobody waits for the collector. A number that
 *          is missing when the thread looks was overwritten, and is counted.
 * Must hold.
 *   otlp-O1  Hops are sent in order, and none twice after the collector has taken it.
 *   otlp-O2  A collector that does not answer costs a request an interval, and two log lines: when
 *       it begins, and when it ends.
 *   otlp-O3  A node ends, whatever goes on meanwhile: behind the order to end at most as many hops
 *       are sent as waited then, for TRPI_OTLP_END_MS at most. A request whose answer has not
 *       come by then is ended: the collector has its hops, or they are lost.
 * Threads. Its own, which alone uses libcurl; the lock guards the counts, and is a leaf.
 * Limits.  TRP_TRACE_HOPS_MAX hops wait; TRPI_OTLP_SPANS_MAX go at once.
 * Tests.   tests/system/otlp.sh, tests/unit/node/otlp_test.c
 * Sources. OpenTelemetry protocol 1.x, OTLP/HTTP; HOW-09.
 */
#include "cluster/node/otlp.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <troupe/trace.h>

#include "base/alloc.h"
#include "base/curl.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/span_json.h"

static bool
is_url(const char *text)
{
    const char *host = strncasecmp(text, "http://", 7) == 0    ? text + 7
                       : strncasecmp(text, "https://", 8) == 0 ? text + 8
                                                               : "";
    return host[0] != '\0' && host[0] != '/' && strpbrk(host, " #@") == NULL;
}

trp_err
trpi_otlp_check(const trpi_config *config, trpi_config_error *ret_error)
{
    const char *url = trpi_config_text(config, "trace.otlp-endpoint");
    if (url[0] == '\0' || is_url(url)) {
        return TRP_OK;
    }
    (void)snprintf(ret_error->text, sizeof ret_error->text,
                   "trace.otlp-endpoint: '%.128s' is no URL of a collector, as "
                   "http://127.0.0.1:4318/v1/traces",
                   url);
    return TRP_ECONFIG;
}

static trp_err
start_refuse(trp_node_error *ret_error, trp_err err, const char *why)
{
    (void)snprintf(ret_error->text, sizeof ret_error->text, "trace.otlp-endpoint: %s", why);
    return err;
}

#ifdef HAVE_LIBCURL

struct trpi_otlp {
    trp_node *node;
    const trpi_curl *curl;
    CURL *easy;
    struct curl_slist *headers;
    const char *url; /* of the configuration */
    uint32_t interval_ms;
    pthread_t thread;
    uint64_t after; /* number of the last hop that was sent, or dropped; the thread's */
    bool fails;     /* the last request was not taken; the thread's */
    char reason[CURL_ERROR_SIZE];
    int wake_fd; /* eventfd: the thread is to end */
    pthread_mutex_t lock;
    _Atomic uint64_t end_ns; /* when to end at the latest; 0: not yet. relaxed: only a time */
    trpi_otlp_counts counts;
};

/* ---- the body -------------------------------------------------------------------------------- */

typedef struct batch {
    trpi_otlp *otlp;
    cJSON *spans;
    uint64_t first, last; /* numbers */
    uint32_t count;
    bool ok;
} batch;

static void
hex_write(char text[20], uint64_t number)
{
    (void)snprintf(text, 20, "%016llx", (unsigned long long)number);
}

static const char *
failure_of(const trp_trace_hop *hop)
{
    return hop->end == TRP_HOP_HANDLED  ? NULL
           : hop->end == TRP_HOP_DEAD   ? trpi_dead_reason_text((trp_dead_reason)hop->dead_reason)
           : hop->end == TRP_HOP_FAILED ? trp_strerror(hop->err)
                                        : "unhandled";
}

/* A trp_trace_hops() function. */
static trp_err
span_add(void *arg, const trp_trace_hop *hop)
{
    batch *b = arg;
    char path[TRP_PATH_BYTES_MAX + 1] = "nobody";
    if (b->count == TRPI_OTLP_SPANS_MAX) {
        return TRP_ELIMIT;
    }
    if (!trp_ref_is_none(hop->actor)) {
        trp_path(b->otlp->node->system, hop->actor, path, sizeof path);
    }
    char trace_id[36], span_id[20], parent_id[20] = "";
    hex_write(trace_id, hop->trace.id_high);
    hex_write(trace_id + 16, hop->trace.id_low);
    hex_write(span_id, hop->trace.span);
    if (hop->parent != 0) {
        hex_write(parent_id, hop->parent);
    }
    trpi_span span = { .trace_id = trace_id,
                       .span_id = span_id,
                       .parent_id = parent_id,
                       .name = hop->type != NULL ? hop->type->name : "?",
                       .actor = path,
                       .failure = failure_of(hop),
                       .begun_ns = hop->wall_ns,
                       .run_ns = hop->run_ns,
                       .attempt = hop->trace.attempt };
    b->ok = trpi_span_add(b->spans, &span);
    b->first = b->count == 0 ? hop->number : b->first;
    b->last = hop->number;
    b->count++;
    return b->ok ? TRP_OK : TRP_ENOMEM;
}

/* Make the body of the next hops; count 0: there are none. NULL: out of memory. */
static char *
body_make(trpi_otlp *otlp, batch *ret_batch)
{
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "resourceSpans");
    *ret_batch = (batch){ .otlp = otlp, .ok = true };
    bool ok = list != NULL && trpi_span_resource_add(list, otlp->node->address, &ret_batch->spans);
    if (ok) {
        (void)!trp_trace_hops(otlp->node->system, otlp->after, span_add, ret_batch); /* count */
    }
    ok = ok && ret_batch->ok;
    char *text = ok && ret_batch->count > 0 ? trpi_json_print(root) : NULL;
    cJSON_Delete(root);
    return text;
}

/* ---- requests -------------------------------------------------------------------------------- */

static size_t
answer_skip(char *bytes, size_t one, size_t count, void *arg)
{
    (void)bytes, (void)arg;
    return one * count;
}

static uint64_t
now_ns(const trpi_otlp *otlp)
{
    return trpi_world_mono_ns(trpi_system_world(otlp->node->system));
}

static bool
is_ending(const trpi_otlp *otlp)
{
    return atomic_load_explicit(&otlp->end_ns, memory_order_relaxed) != 0;
}

/* The node ends: do not wait for the collector. */
static bool
is_late(const trpi_otlp *otlp)
{
    uint64_t end_ns = atomic_load_explicit(&otlp->end_ns, memory_order_relaxed);
    return end_ns != 0 && (otlp->fails || now_ns(otlp) >= end_ns);
}

static int
on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    const trpi_otlp *otlp = arg;
    (void)down_all, (void)down, (void)up_all, (void)up;
    return is_late(otlp) ? 1 : 0;
}

static bool
options_set(trpi_otlp *otlp)
{
    const trpi_curl *c = otlp->curl;
    CURL *easy = otlp->easy;
    return otlp->headers != NULL && c->curl_easy_setopt(easy, CURLOPT_URL, otlp->url) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TRPI_OTLP_TIMEOUT_MS) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, otlp->headers) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, otlp->reason) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, answer_skip) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_XFERINFODATA, otlp) == CURLE_OK &&
           c->curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
}

/* Did the collector take it? Else otlp->reason says why. */
static bool
request_send(trpi_otlp *otlp, const char *body)
{
    const trpi_curl *c = otlp->curl;
    long status = 0;
    otlp->reason[0] = '\0';
    CURLcode code = c->curl_easy_setopt(otlp->easy, CURLOPT_POSTFIELDS, body);
    code = code == CURLE_OK ? c->curl_easy_perform(otlp->easy) : code;
    if (code != CURLE_OK) {
        if (otlp->reason[0] == '\0') {
            (void)snprintf(otlp->reason, sizeof otlp->reason, "%s", c->curl_easy_strerror(code));
        }
        return false;
    }
    (void)c->curl_easy_getinfo(otlp->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)snprintf(otlp->reason, sizeof otlp->reason, "HTTP %ld", status);
    return status >= 200 && status < 300;
}

static void
batch_count(trpi_otlp *otlp, const batch *b, bool sent)
{
    pthread_mutex_lock(&otlp->lock);
    otlp->counts.dropped += b->first - otlp->after - 1; /* overwritten since */
    otlp->counts.sent += sent ? b->count : 0;
    otlp->counts.failures += !sent;
    pthread_mutex_unlock(&otlp->lock);
    otlp->after = sent ? b->last : b->first - 1;
}

/* Send what there is, request by request. otlp-O3 */
static void
hops_send(trpi_otlp *otlp)
{
    batch b;
    char *body;
    bool sent = true;
    uint64_t left = TRP_TRACE_HOPS_MAX; /* to send while the node ends */
    while (sent && left > 0 && !is_late(otlp) && (body = body_make(otlp, &b)) != NULL) {
        sent = request_send(otlp, body);
        cJSON_free(body);
        batch_count(otlp, &b, sent);
        left -= !is_ending(otlp) ? 0 : b.count < left ? b.count : left;
        if (sent == otlp->fails) { /* otlp-O2 */
            otlp->fails = !sent;
            trpi_log(otlp->node->system, sent ? TRP_LOG_INFO : TRP_LOG_WARNING, "node",
                     sent ? "traces are taken again by %s%.0s"
                          : "traces are not taken by %s: %s; the latest %u messages are kept, and "
                            "sent when it answers",
                     otlp->url, otlp->reason, TRP_TRACE_HOPS_MAX);
        }
    }
}

static void *
otlp_run(void *arg)
{
    trpi_otlp *otlp = arg;
    struct pollfd wake = { .fd = otlp->wake_fd, .events = POLLIN };
    while (!is_ending(otlp)) {
        (void)poll(&wake, 1, (int)otlp->interval_ms); /* EINTR: a little early */
        hops_send(otlp);
    }
    return NULL;
}

/* ---- its life -------------------------------------------------------------------------------- */

void
trpi_otlp_free(trpi_otlp *otlp)
{
    if (otlp == NULL) {
        return;
    }
    otlp->curl->curl_easy_cleanup(otlp->easy);
    otlp->curl->curl_slist_free_all(otlp->headers);
    trpi_mutex_destroy(&otlp->lock);
    if (otlp->wake_fd >= 0) {
        (void)close(otlp->wake_fd);
    }
    trpi_free(otlp);
}

trp_err
trpi_otlp_start(trp_node *node, trpi_otlp **ret_otlp, trp_node_error *ret_error)
{
    const char *url = trpi_config_text(node->config, "trace.otlp-endpoint");
    char why[640];
    *ret_otlp = NULL;
    if (url[0] == '\0') {
        return TRP_OK;
    }
    const trpi_curl *curl = trpi_curl_get(why, sizeof why);
    if (curl == NULL) {
        return start_refuse(ret_error, TRP_ECONFIG, why);
    }
    trpi_otlp *otlp = trpi_alloc(sizeof *otlp);
    if (otlp == NULL) {
        return start_refuse(ret_error, TRP_ENOMEM, "out of memory");
    }
    otlp->node = node;
    otlp->curl = curl;
    otlp->url = url;
    otlp->interval_ms = (uint32_t)trpi_config_int(node->config, "trace.otlp-interval");
    pthread_mutex_init(&otlp->lock, NULL);
    otlp->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    otlp->easy = curl->curl_easy_init();
    otlp->headers = curl->curl_slist_append(NULL, "Content-Type: application/json");
    if (otlp->wake_fd < 0 || otlp->easy == NULL || !options_set(otlp) ||
        pthread_create(&otlp->thread, NULL, otlp_run, otlp) != 0) {
        trpi_otlp_free(otlp);
        return start_refuse(ret_error, TRP_ENOMEM, "out of memory");
    }
    *ret_otlp = otlp;
    return TRP_OK;
}

void
trpi_otlp_stop(trpi_otlp *otlp)
{
    if (otlp != NULL) {
        uint64_t end_ns = now_ns(otlp) + TRPI_OTLP_END_MS * UINT64_C(1000000);
        atomic_store_explicit(&otlp->end_ns, end_ns, memory_order_relaxed);
        (void)!write(otlp->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
        (void)pthread_join(otlp->thread, NULL);
    }
}

trpi_otlp_counts
trpi_otlp_count(trpi_otlp *otlp)
{
    trpi_otlp_counts counts = { 0, 0, 0 };
    if (otlp != NULL) {
        pthread_mutex_lock(&otlp->lock);
        counts = otlp->counts;
        pthread_mutex_unlock(&otlp->lock);
    }
    return counts;
}

#else

trp_err
trpi_otlp_start(trp_node *node, trpi_otlp **ret_otlp, trp_node_error *ret_error)
{
    *ret_otlp = NULL;
    if (trpi_config_text(node->config, "trace.otlp-endpoint")[0] == '\0') {
        return TRP_OK;
    }
    return start_refuse(ret_error, TRP_ECONFIG,
                        "this build exports no traces (configure found no libcurl: apt-get "
                        "install libcurl4-openssl-dev)");
}

void
trpi_otlp_stop(trpi_otlp *otlp)
{
    (void)otlp;
}

trpi_otlp_counts
trpi_otlp_count(trpi_otlp *otlp)
{
    (void)otlp;
    return (trpi_otlp_counts){ 0, 0, 0 };
}

#endif
