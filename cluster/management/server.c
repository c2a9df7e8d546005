/* server.c - see management.h. The thread and its replies; connections are exchange.c's.
 *
 * Why.     libwebsockets has one thread for a context, and only lws_cancel_service() may be called
 *          from others: what they have to say waits in a list until the thread has woken.
 * Must hold.
 *   server-S1  The context and its connections are touched by the server's thread alone, which
 *       ends them, but for lws_cancel_service() (thread_wake), and by its opener before.
 *   server-S2  A reply is given to its connection, or dropped: ids are used once. (replies_give)
 *   server-S4  The library's SSL_CTX is changed by the server's thread, which also makes all
 *       sessions of it, after its opener; to files that were read and checked as a whole.
 *       (trpi_management_tls_take)
 *   server-S5  OpenSSL alone judges clients' certificates: the library's own callback finds its
 *       connection by a number of the process that each new context, as of an endpoint, changes,
 *       and crashes without; it would not free a context for clients of its own.  (context_make)
 *   server-S3  The thread takes no signal.                                   (thread_start)
 * Limits.  connections_max; request_ms for a connection as a whole; one request a connection.
 * Tests.   tests/system/management.sh
 */
#include "cluster/management/server.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "tls/digest.h"
#include "tls/tls.h"

#define STACK_BYTES (512u * 1024u)
#define LINGER_MS 1000u
#define LINGER_STEP_MS 5

static const struct lws_protocols protocols[] = {
    { "http", trpi_exchange_callback, sizeof(trpi_exchange *), 0, 0, NULL, 0 },
    { NULL, NULL, 0, 0, 0, NULL, 0 },
};

/* ---- settings -------------------------------------------------------------------------------- */

static void
list_free(const char **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trpi_free((char *)list[i]);
    }
    trpi_free(list);
}

/* Copy a list of texts. false: no memory. */
static bool
list_copy(const char *const *from, size_t count, const char ***ret_list)
{
    const char **list = trpi_alloc((count + 1) * sizeof *list);
    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i] = trpi_strdup(from[i]);
        if (list[i] == NULL) {
            list_free(list, i);
            list = NULL;
        }
    }
    *ret_list = list;
    return list != NULL;
}

static bool
settings_copy(trpi_management *m, const trpi_management_options *options)
{
    m->bind = trpi_strdup(options->bind);
    m->cert = trpi_strdup(options->cert);
    m->key = trpi_strdup(options->key);
    m->ca = trpi_strdup(options->ca);
    bool ok = m->bind != NULL && m->cert != NULL && m->key != NULL && m->ca != NULL &&
              list_copy(options->hosts, options->hosts_count, &m->hosts) &&
              list_copy(options->readers, options->readers_count, &m->readers) &&
              list_copy(options->writers, options->writers_count, &m->writers);
    m->tokens = options->tokens;
    m->policy = (trpi_management_policy){ .bound = m->bind,
                                          .is_local = trpi_host_is_loopback(options->bind),
                                          .read_only = options->read_only,
                                          .hosts = m->hosts,
                                          .hosts_count = options->hosts_count,
                                          .readers = m->readers,
                                          .readers_count = options->readers_count,
                                          .writers = m->writers,
                                          .writers_count = options->writers_count,
                                          .tokens = &m->tokens,
                                          .sessions = &m->sessions,
                                          .request_ms = options->request_ms };
    m->world = options->world;
    m->connections_max = options->connections_max;
    m->request_ms = options->request_ms;
    m->streams_max = options->streams_max;
    trpi_management_feed_init(&m->feed, options->uid);
    m->ask = options->ask;
    m->cancel = options->cancel;
    m->arg = options->arg;
    return ok;
}

/* ---- the context ----------------------------------------------------------------------------- */

static void
info_fill(struct lws_context_creation_info *info, trpi_management *m,
          const trpi_management_options *options)
{
    trpi_lws_info_fill(info, m->bind, options->port, options->connections_max,
                       TRPI_MANAGEMENT_HEADER_BYTES_MAX, options->request_ms); /* exchange-X2 */
    info->protocols = protocols;
    info->user = m;
    if (options->cert[0] != '\0') {
        info->options |=
            LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
        info->provided_client_ssl_ctx = trpi_tls_dialer_ssl_ctx(m->dialer);
        info->ssl_cert_filepath = options->cert;
        info->ssl_private_key_filepath = options->key;
        info->ssl_options_set =
            SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2;
        if (options->ca[0] != '\0') { /* a certificate may be shown; one that is shown must hold */
            info->options |= LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT |
                             LWS_SERVER_OPTION_PEER_CERT_NOT_REQUIRED;
            info->ssl_ca_filepath = options->ca;
        }
    }
}

/* server-S1, server-S5. */
static trp_err
context_make(trpi_management *m, const trpi_management_options *options,
             char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    struct lws_context_creation_info info;
    int reason = 0;
    if (options->cert[0] != '\0' && trpi_tls_dialer_new(NULL, "", &m->dialer) != TRP_OK) {
        (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES, "out of memory");
        return TRP_ENOMEM;
    }
    info_fill(&info, m, options);
    struct lws_vhost *host = trpi_lws_open(m->lws, &info, &m->context, &reason);
    if (m->context == NULL) {
        (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES, "libwebsockets makes no context");
        return TRP_ENOMEM;
    }
    if (host == NULL) {
        m->lws->lws_context_destroy(m->context);
        m->context = NULL;
        (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES,
                       options->cert[0] != '\0'
                           ? "cannot listen on %s:%u, or the files of management.tls do not go "
                             "together: %s"
                           : "cannot listen on %s:%u: %s",
                       options->bind, options->port,
                       reason != 0 ? strerror(reason) : "another program has the port");
        return TRP_EADDRINUSE;
    }
    if (m->ssl_ctx != NULL && options->ca[0] != '\0') { /* server-S5 */
        trpi_tls_verify_own(m->ssl_ctx, TRPI_TLS_PEER_OPTIONAL);
    }
    m->port = (uint16_t)m->lws->lws_get_vhost_listen_port(host);
    return TRP_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* With the lock. */
static void
thread_wake(trpi_management *m)
{
    if (m->context != NULL) {
        m->lws->lws_cancel_service(m->context);
    }
}

trp_err
trpi_management_tls_reload(trpi_management *management, int64_t wall_ms,
                           char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    trpi_tls_options options = { .use = TRPI_TLS_SERVER,
                                 .peer = TRPI_TLS_PEER_OPTIONAL,
                                 .version_min = TRPI_TLS_1_3,
                                 .ca = management->ca,
                                 .cert = management->cert,
                                 .key = management->key };
    trpi_tls_context *fresh = NULL;
    if (management->cert[0] == '\0') {
        return TRP_OK;
    }
    trp_err err = trpi_tls_context_load(&options, wall_ms, &fresh, why, TRPI_MANAGEMENT_WHY_BYTES);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&management->lock);
    trpi_tls_context *unused = management->tls;
    management->tls = fresh;
    thread_wake(management);
    pthread_mutex_unlock(&management->lock);
    trpi_tls_context_unref(unused);
    return TRP_OK;
}

/* server-S4. The server's thread. */
void
trpi_management_tls_take(trpi_management *m)
{
    pthread_mutex_lock(&m->lock);
    trpi_tls_context *fresh = m->tls;
    m->tls = NULL;
    pthread_mutex_unlock(&m->lock);
    if (fresh != NULL && m->ssl_ctx != NULL) {
        (void)trpi_tls_context_lend(fresh, m->ssl_ctx); /* no memory: the present ones stay */
    }
    trpi_tls_context_unref(fresh);
}

/* server-S2. The server's thread. */
void
trpi_management_replies_give(trpi_management *m)
{
    pthread_mutex_lock(&m->lock);
    trpi_management_waiting *first = m->replies;
    m->replies = NULL;
    pthread_mutex_unlock(&m->lock);
    while (first != NULL) {
        trpi_management_waiting *next = first->next;
        trpi_exchange_replied(m, first->id, first->text);
        trpi_free(first);
        first = next;
    }
}

/* A node that leaves answers the client that has ordered it: serve on, for LINGER_MS, while an
 * order waits for its answer. */
static void
orders_await(trpi_management *m)
{
    const struct timespec pause = { 0, LINGER_STEP_MS * 1000000 };
    for (uint32_t waited_ms = 0; waited_ms < LINGER_MS && trpi_exchange_orders_wait(m);
         waited_ms += LINGER_STEP_MS) {
        if (m->lws->lws_service(m->context, -1) < 0) { /* -1: it does not wait */
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
}

void
trpi_management_event(trpi_management *management, const char *object)
{
    pthread_mutex_lock(&management->lock);
    trpi_management_feed_add(&management->feed, object);
    if (management->streams_count > 0) {
        thread_wake(management);
    }
    pthread_mutex_unlock(&management->lock);
}

uint64_t
trpi_management_events_last(trpi_management *management, bool open)
{
    pthread_mutex_lock(&management->lock);
    management->feed_open |= open;
    uint64_t last = management->feed.next - 1;
    pthread_mutex_unlock(&management->lock);
    return last;
}

static void *
server_main(void *arg)
{
    trpi_management *m = arg;
    while (!atomic_load_explicit(&m->stopping, memory_order_acquire)) {
        if (m->lws->lws_service(m->context, 0) < 0) {
            break;
        }
    }
    orders_await(m);
    pthread_mutex_lock(&m->lock);
    struct lws_context *context = m->context;
    m->context = NULL;
    pthread_mutex_unlock(&m->lock);
    m->lws->lws_context_destroy(context); /* closes all connections: their exchanges end */
    return NULL;
}

static trp_err
thread_start(trpi_management *m)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) {
        return TRP_ENOMEM;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* server-S3: the thread inherits it */
    int rc = pthread_create(&m->thread, &attributes, server_main, m);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    m->runs = rc == 0;
    return rc == 0 ? TRP_OK : TRP_ENOMEM;
}

trp_err
trpi_management_check(char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    return trpi_lws_get(why, TRPI_MANAGEMENT_WHY_BYTES) != NULL ? TRP_OK : TRP_ECONFIG;
}

trp_err
trpi_management_open(const trpi_management_options *options, trpi_management **ret_management,
                     char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    const trpi_lws *lws = trpi_lws_get(why, TRPI_MANAGEMENT_WHY_BYTES);
    trpi_assert(options->connections_max > 0 &&
                options->connections_max <= TRPI_MANAGEMENT_CONNECTIONS_MAX);
    trpi_assert(options->cert[0] != '\0' || trpi_host_is_loopback(options->bind));
    if (lws == NULL) {
        return TRP_ECONFIG;
    }
    trpi_management *m = trpi_alloc(sizeof *m);
    if (m == NULL) {
        (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES, "out of memory");
        return TRP_ENOMEM;
    }
    m->lws = lws;
    pthread_mutex_init(&m->lock, NULL);
    trp_err err = settings_copy(m, options) ? TRP_OK : TRP_ENOMEM;
    err = err == TRP_OK ? context_make(m, options, why) : err;
    *ret_management = m; /* before the thread, whose requests may ask the owner for it */
    err = err == TRP_OK ? thread_start(m) : err;
    if (err != TRP_OK) {
        *ret_management = NULL;
        if (m->context != NULL) {
            m->lws->lws_context_destroy(m->context);
        }
        trpi_management_free(m);
        return err;
    }
    return TRP_OK;
}

uint16_t
trpi_management_port(const trpi_management *management)
{
    return management->port;
}

void
trpi_management_tokens_set(trpi_management *management, const trpi_management_tokens *tokens)
{
    pthread_mutex_lock(&management->lock);
    management->tokens = *tokens;
    pthread_mutex_unlock(&management->lock);
}

uint64_t
trpi_management_now_ms(const trpi_management *m)
{
    return m->world != NULL ? trpi_world_mono_ns(m->world) / 1000000u : 0;
}

trp_err
trpi_management_code(trpi_management *management, char ret_code[TRPI_MANAGEMENT_SECRET_TEXT])
{
    uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES];
    if (!trpi_random(random, sizeof random)) {
        return TRP_EIO;
    }
    pthread_mutex_lock(&management->lock);
    bool ok = trpi_management_code_make(&management->sessions, trpi_management_now_ms(management),
                                        random, ret_code);
    pthread_mutex_unlock(&management->lock);
    trpi_cleanse(random, sizeof random);
    return ok ? TRP_OK : TRP_EIO;
}

void
trpi_management_reply(trpi_management *management, uint64_t id, const char *reply)
{
    size_t bytes = strlen(reply) + 1;
    trpi_management_waiting *waiting = trpi_alloc(sizeof *waiting + bytes);
    if (waiting == NULL) {
        return; /* the connection ends with its time */
    }
    waiting->id = id;
    memcpy(waiting->text, reply, bytes);
    pthread_mutex_lock(&management->lock);
    waiting->next = management->replies;
    management->replies = waiting;
    thread_wake(management);
    pthread_mutex_unlock(&management->lock);
}

void
trpi_management_stop(trpi_management *management)
{
    if (management == NULL || management->stopped) {
        return;
    }
    atomic_store_explicit(&management->stopping, true, memory_order_release);
    pthread_mutex_lock(&management->lock);
    thread_wake(management);
    pthread_mutex_unlock(&management->lock);
    (void)pthread_join(management->thread, NULL);
    management->stopped = true;
}

void
trpi_management_free(trpi_management *management)
{
    if (management == NULL) {
        return;
    }
    trpi_assert(!management->runs || management->stopped);
    while (management->replies != NULL) {
        trpi_management_waiting *next = management->replies->next;
        trpi_free(management->replies);
        management->replies = next;
    }
    if (management->hosts != NULL) {
        list_free(management->hosts, management->policy.hosts_count);
    }
    if (management->readers != NULL) {
        list_free(management->readers, management->policy.readers_count);
    }
    if (management->writers != NULL) {
        list_free(management->writers, management->policy.writers_count);
    }
    trpi_management_feed_fini(&management->feed);
    trpi_tls_context_unref(management->tls);
    trpi_tls_dialer_free(management->dialer);
    trpi_free(management->cert);
    trpi_free(management->key);
    trpi_free(management->ca);
    trpi_free(management->bind);
    trpi_mutex_destroy(&management->lock);
    trpi_free(management);
}

#else /* without libwebsockets */

#include <stdio.h>

#include "base/assert.h"

trp_err
trpi_management_check(char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    (void)snprintf(why, TRPI_MANAGEMENT_WHY_BYTES,
                   "this build has no management API (configure found no libwebsockets: apt-get "
                   "install libwebsockets-dev)");
    return TRP_ECONFIG;
}

trp_err
trpi_management_open(const trpi_management_options *options, trpi_management **ret_management,
                     char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    (void)options;
    (void)ret_management;
    return trpi_management_check(why);
}

uint16_t
trpi_management_port(const trpi_management *management)
{
    trpi_assert(management == NULL); /* there is none */
    return 0;
}

trp_err
trpi_management_tls_reload(trpi_management *management, int64_t wall_ms,
                           char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    (void)management;
    (void)wall_ms;
    return trpi_management_check(why);
}

void
trpi_management_tokens_set(trpi_management *management, const trpi_management_tokens *tokens)
{
    (void)management;
    (void)tokens;
}

trp_err
trpi_management_code(trpi_management *management, char ret_code[TRPI_MANAGEMENT_SECRET_TEXT])
{
    trpi_assert(management == NULL);
    (void)ret_code;
    return TRP_ESTATE;
}

void
trpi_management_reply(trpi_management *management, uint64_t id, const char *reply)
{
    (void)management;
    (void)id;
    (void)reply;
}

void
trpi_management_event(trpi_management *management, const char *object)
{
    (void)management;
    (void)object;
}

uint64_t
trpi_management_events_last(trpi_management *management, bool open)
{
    (void)management;
    (void)open;
    return 0;
}

void
trpi_management_stop(trpi_management *management)
{
    (void)management;
}

void
trpi_management_free(trpi_management *management)
{
    (void)management;
}

#endif
