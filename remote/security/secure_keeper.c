/* secure_keeper.c - the secure transport itself: its files, and the thread that reloads them.
 *
 * Why.     Certificates are renewed while a node runs. Reading files may block, so a thread of its
 *          own (the keeper) does it; it also closes links that are due. A driven world has no
 *          threads: there all of this happens when a reload is requested, and at no other time.
 * Must hold.
 *   secure-keeper-W1  New files are taken as a whole or not at all: when they do not match each
 *       other, the old ones stay in use. (credentials_reload)
 *   secure-keeper-W2  After a reload no link of older files outlives old_end_ms, and none whose
 *       peer the new files would refuse outlives the reload, or becomes open after it.
 *                                                  (links_judge, trpi_secure_judge_again)
 *   secure-keeper-W3  After a failed reload the files are read again each reload_interval_ms,
 *       changed or not: a certificate may only have been too early. (files_changed)
 * Tests.   tests/unit/remote/secure_test.c, reload_test.c
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "remote/security/secure_inner.h"
#include "tls/digest.h"

enum {
    WHY_BYTES = TRPI_SECURE_WHY_BYTES,
    TELL_AGAIN_MS = 600000, /* of a failure that lasts */
    TROUBLE_LOOK_MS = 60000,
    TROUBLE_AGAIN_MS = 86400000
};

/* ---- credentials ----------------------------------------------------------------------------- */

trpi_credentials *
trpi_credentials_get(trpi_secure *secure)
{
    pthread_mutex_lock(&secure->lock);
    trpi_credentials *credentials = secure->credentials;
    atomic_fetch_add_explicit(&credentials->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&secure->lock);
    return credentials;
}

void
trpi_credentials_unref(trpi_credentials *credentials)
{
    if (credentials == NULL ||
        atomic_fetch_sub_explicit(&credentials->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    trpi_tls_context_unref(credentials->tls);
    trpi_cleanse(&credentials->secrets, sizeof credentials->secrets);
    trpi_free(credentials);
}

static trp_err
credentials_read(trpi_secure *secure, const trpi_secrets *secrets, trpi_credentials **ret_made,
                 char *why, size_t why_bytes)
{
    trpi_credentials *made = trpi_alloc(sizeof *made);
    if (made == NULL) {
        (void)snprintf(why, why_bytes, "out of memory");
        return TRP_ENOMEM;
    }
    atomic_init(&made->references, 1);
    made->secrets = *secrets;
    /* before reading: a change during it is seen at the next check */
    uint64_t mark = trpi_tls_files_mark(&secure->tls);
    trp_err err = secure->is_tls
                      ? trpi_tls_context_load(&secure->tls, trpi_world_wall_ms(secure->world),
                                              &made->tls, why, why_bytes)
                      : TRP_OK;
    if (err != TRP_OK) {
        trpi_credentials_unref(made);
        return err;
    }
    secure->files_mark = mark; /* secure-keeper-W3 */
    *ret_made = made;
    return TRP_OK;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* A link is to be closed at end_ms: the keeper wakes up then. The caller holds secure->lock. */
static void
link_ends_at(trpi_secure_link *link, uint64_t end_ms)
{
    trpi_secure *secure = link->transport;
    link->listing.end_ms = end_ms;
    if (end_ms < secure->wake_ms) {
        pthread_cond_broadcast(&secure->wake);
    }
}

void
trpi_secure_list(trpi_secure_link *link)
{
    trpi_secure *secure = link->transport;
    pthread_mutex_lock(&secure->lock);
    link->listing.listed = true;
    link->listing.next = secure->links;
    if (link->listing.next != NULL) {
        link->listing.next->listing.previous = link;
    }
    secure->links = link;
    if (link->credentials != secure->credentials) { /* secure-keeper-W2: a reload came first */
        link_ends_at(link,
                     trpi_world_mono_ns(secure->world) / 1000000 + secure->options.old_end_ms);
    }
    pthread_mutex_unlock(&secure->lock);
}

void
trpi_secure_unlist(trpi_secure_link *link)
{
    trpi_secure *secure = link->transport;
    pthread_mutex_lock(&secure->lock);
    if (link->listing.listed) {
        link->listing.listed = false;
        if (link->listing.previous != NULL) {
            link->listing.previous->listing.next = link->listing.next;
        } else {
            secure->links = link->listing.next;
        }
        if (link->listing.next != NULL) {
            link->listing.next->listing.previous = link->listing.previous;
        }
        link->listing.next = link->listing.previous = NULL;
    }
    pthread_mutex_unlock(&secure->lock);
}

void
trpi_secure_end_in(trpi_secure_link *link, uint64_t ms)
{
    trpi_secure *secure = link->transport;
    pthread_mutex_lock(&secure->lock);
    link_ends_at(link, trpi_world_mono_ns(secure->world) / 1000000 + ms);
    pthread_mutex_unlock(&secure->lock);
}

static void
link_take(trpi_secure_link *link, trpi_secure_link **chain)
{
    trpi_secure_link_ref(link);
    link->listing.keeper_next = *chain;
    *chain = link;
}

/* The caller holds secure->lock, which is released meanwhile. */
static void
links_end_due(trpi_secure *secure)
{
    trpi_secure_link *chain = NULL;
    uint64_t now_ms = trpi_world_mono_ns(secure->world) / 1000000;
    for (trpi_secure_link *link = secure->links; link != NULL; link = link->listing.next) {
        if (link->listing.end_ms != 0 && now_ms >= link->listing.end_ms) {
            link->listing.end_ms = 0;
            link_take(link, &chain);
        }
    }
    pthread_mutex_unlock(&secure->lock);
    while (chain != NULL) {
        trpi_secure_link *link = chain;
        chain = link->listing.keeper_next;
        trpi_secure_link_end(link, "began with a certificate or cookie that was replaced");
        trpi_secure_link_unref(link);
    }
    pthread_mutex_lock(&secure->lock);
}

/* Set the end of links with older credentials, and close those whose peer the new ones refuse
 * (secure-keeper-W2). Returns how many were closed. */
static uint32_t
links_judge(trpi_secure *secure, trpi_credentials *credentials)
{
    trpi_secure_link *chain = NULL;
    uint32_t closed = 0;
    uint64_t end_ms = trpi_world_mono_ns(secure->world) / 1000000 + secure->options.old_end_ms;
    pthread_mutex_lock(&secure->lock);
    for (trpi_secure_link *link = secure->links; link != NULL; link = link->listing.next) {
        if (link->credentials != credentials) {
            link->listing.end_ms = link->listing.end_ms != 0 && link->listing.end_ms < end_ms
                                       ? link->listing.end_ms
                                       : end_ms;
            link_take(link, &chain);
        }
    }
    pthread_mutex_unlock(&secure->lock);
    while (chain != NULL) {
        trpi_secure_link *link = chain;
        trpi_refusal why = TRPI_REFUSED_NONE;
        chain = link->listing.keeper_next;
        pthread_mutex_lock(&link->lock);
        bool stands = link->session == NULL || link->stage != TRPI_SECURE_OPEN ||
                      trpi_tls_session_stands(link->session, credentials->tls,
                                              trpi_world_wall_ms(secure->world), &why);
        pthread_mutex_unlock(&link->lock);
        if (!stands) {
            char reason[WHY_BYTES];
            (void)snprintf(reason, sizeof reason, "%s: by the reloaded files",
                           trpi_refusal_text(why));
            closed++;
            trpi_secure_link_end(link, reason);
        }
        trpi_secure_link_unref(link);
    }
    return closed;
}

/* The same for a link that was in its handshake during the reload (secure-keeper-W2). It is judged
 * here or, once it is open, by links_judge(): both hold link->lock. */
bool
trpi_secure_judge_again(trpi_secure_link *link, trpi_refusal *ret_why)
{
    trpi_secure *secure = link->transport;
    trpi_credentials *present = trpi_credentials_get(secure);
    bool stands = present == link->credentials || link->session == NULL ||
                  trpi_tls_session_stands(link->session, present->tls,
                                          trpi_world_wall_ms(secure->world), ret_why);
    trpi_credentials_unref(present);
    return stands;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Store the error of a reload ("": it succeeded) until the next one (trpi_secure_trouble). Returns
 * whether to report it. */
static bool
failure_note(trpi_secure *secure, bool asked, const char *why)
{
    uint64_t now_ms = trpi_world_mono_ns(secure->world) / 1000000;
    pthread_mutex_lock(&secure->lock);
    bool is =
        asked || strcmp(secure->failure, why) != 0 || now_ms - secure->failure_ms >= TELL_AGAIN_MS;
    if (is) {
        (void)snprintf(secure->failure, sizeof secure->failure, "%s", why);
        secure->failure_ms = now_ms;
    }
    pthread_mutex_unlock(&secure->lock);
    return is;
}

bool
trpi_secure_trouble(trpi_transport *transport, trpi_trouble kind, trpi_trouble_text *ret_text)
{
    trpi_secure *secure = (trpi_secure *)transport;
    trpi_tls_info info;
    if (kind == TRPI_TROUBLE_RELOAD) {
        pthread_mutex_lock(&secure->lock);
        bool failed = secure->failure[0] != '\0';
        if (failed) {
            (void)snprintf(ret_text->what, sizeof ret_text->what,
                           "certificates and cookies were not read again, the old ones stay: %s",
                           secure->failure);
            (void)snprintf(ret_text->help, sizeof ret_text->help, "mend that, then SIGHUP");
        }
        pthread_mutex_unlock(&secure->lock);
        return failed;
    }
    return trpi_secure_info(transport, &info) &&
           trpi_tls_trouble(&info, kind, trpi_world_wall_ms(secure->world), secure->options.warn_ms,
                            ret_text);
}

/* Report new problems, and lasting ones once a day. (Failed reloads are reported by reloaded().) */
static void
troubles_check(trpi_secure *secure)
{
    trpi_trouble_text text;
    uint64_t now_ms = trpi_world_mono_ns(secure->world) / 1000000;
    pthread_mutex_lock(&secure->lock);
    bool due = !secure->looked_for_trouble || now_ms - secure->troubles_ms >= TROUBLE_LOOK_MS;
    secure->looked_for_trouble = true;
    pthread_mutex_unlock(&secure->lock);
    if (!due) {
        return;
    }
    secure->troubles_ms = now_ms;
    for (int kind = TRPI_TROUBLE_RELOAD + 1; kind < TRPI_TROUBLE_COUNT; kind++) {
        uint64_t *told_ms = &secure->told_ms[kind];
        if (!trpi_secure_trouble((trpi_transport *)secure, (trpi_trouble)kind, &text)) {
            *told_ms = 0;
        } else if (*told_ms == 0 || now_ms - *told_ms >= TROUBLE_AGAIN_MS) {
            *told_ms = now_ms > 0 ? now_ms : 1;
            if (secure->options.troubled != NULL) {
                secure->options.troubled(secure->options.reloaded_arg, &text);
            }
        }
    }
}

/* Reload the files (secure-keeper-W1). The caller holds secure->lock, which is released meanwhile.
 */
static void
credentials_reload(trpi_secure *secure)
{
    char what[WHY_BYTES + 100], why[WHY_BYTES] = "";
    trpi_credentials *made = NULL;
    trpi_secrets secrets = secure->secrets_next;
    bool asked = secure->reload_asked;
    uint32_t number = secure->reloads_asked;
    secure->reload_asked = false;
    pthread_mutex_unlock(&secure->lock);
    trp_err err = credentials_read(secure, &secrets, &made, why, sizeof why);
    trpi_cleanse(&secrets, sizeof secrets);
    if (err == TRP_OK) {
        pthread_mutex_lock(&secure->lock);
        secure->looked_for_trouble = false; /* for the new files */
        trpi_credentials *old = secure->credentials;
        secure->credentials = made;
        pthread_mutex_unlock(&secure->lock);
        trpi_credentials_unref(old);
        uint32_t closed = links_judge(secure, made);
        (void)snprintf(what, sizeof what, "closed=%u next=\"older connections end within %u ms\"",
                       closed, secure->options.old_end_ms);
    } else {
        (void)snprintf(what, sizeof what, "%s", why);
    }
    /* a success is always reported */
    if ((failure_note(secure, asked, why) || err == TRP_OK) && secure->options.reloaded != NULL) {
        secure->options.reloaded(secure->options.reloaded_arg, err, what);
    }
    pthread_mutex_lock(&secure->lock);
    secure->reloads_done = number;
}

static bool
files_changed(trpi_secure *secure)
{
    uint64_t now_ms = trpi_world_mono_ns(secure->world) / 1000000;
    if (secure->options.reload_interval_ms == 0 ||
        now_ms - secure->looked_ms < secure->options.reload_interval_ms) {
        return false;
    }
    secure->looked_ms = now_ms;
    uint64_t mark = trpi_tls_files_mark(&secure->tls);
    if (secure->failure[0] != '\0') { /* secure-keeper-W3; only this thread writes it */
        return true;
    }
    return mark != secure->files_mark;
}

/* The caller holds secure->lock, which is released meanwhile. */
static void
keeper_check(trpi_secure *secure)
{
    pthread_mutex_unlock(&secure->lock);
    troubles_check(secure);
    bool changed = files_changed(secure); /* may block: without the lock */
    pthread_mutex_lock(&secure->lock);
    if ((changed || secure->reload_asked) && !secure->ending) {
        credentials_reload(secure);
    }
    links_end_due(secure);
}

/* Return when the keeper has something to do next; 0: now. The caller holds secure->lock. */
static uint64_t
keeper_wake_ms(const trpi_secure *secure)
{
    uint64_t wake_ms = secure->troubles_ms + TROUBLE_LOOK_MS;
    if (secure->reload_asked || !secure->looked_for_trouble) {
        return 0;
    }
    if (secure->options.reload_interval_ms != 0 &&
        secure->looked_ms + secure->options.reload_interval_ms < wake_ms) {
        wake_ms = secure->looked_ms + secure->options.reload_interval_ms;
    }
    for (const trpi_secure_link *link = secure->links; link != NULL; link = link->listing.next) {
        if (link->listing.end_ms != 0 && link->listing.end_ms < wake_ms) {
            wake_ms = link->listing.end_ms;
        }
    }
    return wake_ms;
}

/* The caller holds secure->lock, which is released meanwhile. */
static void
keeper_wait(trpi_secure *secure)
{
    uint64_t now_ms = trpi_world_mono_ns(secure->world) / 1000000;
    secure->wake_ms = keeper_wake_ms(secure);
    if (secure->wake_ms > now_ms) {
        uint64_t wait_ms = secure->wake_ms - now_ms;
        struct timespec at; /* the world's clock need not be the condition's */
        (void)clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_sec += (time_t)(wait_ms / 1000);
        at.tv_nsec += (long)(wait_ms % 1000) * 1000000l;
        at.tv_sec += at.tv_nsec / 1000000000l;
        at.tv_nsec %= 1000000000l;
        pthread_cond_timedwait(&secure->wake, &secure->lock, &at);
    }
    secure->wake_ms = 0;
}

static void *
keeper_thread(void *arg)
{
    trpi_secure *secure = arg;
    pthread_mutex_lock(&secure->lock);
    while (!secure->ending) {
        keeper_wait(secure);
        keeper_check(secure);
    }
    pthread_mutex_unlock(&secure->lock);
    return NULL;
}

void
trpi_secure_reload(trpi_transport *transport, const trpi_secrets *secrets)
{
    trpi_secure *secure = (trpi_secure *)transport;
    pthread_mutex_lock(&secure->lock);
    if (secrets != NULL) {
        secure->secrets_next = *secrets;
    }
    secure->reload_asked = true;
    secure->reloads_asked++;
    if (trpi_world_is_driven(secure->world)) {
        keeper_check(secure);
    }
    pthread_cond_broadcast(&secure->wake);
    pthread_mutex_unlock(&secure->lock);
}

bool
trpi_secure_is_reloaded(trpi_transport *transport)
{
    trpi_secure *secure = (trpi_secure *)transport;
    pthread_mutex_lock(&secure->lock);
    bool done = secure->reloads_done == secure->reloads_asked;
    pthread_mutex_unlock(&secure->lock);
    return done;
}

void
trpi_secure_self(trpi_transport *transport, const char *host, uint16_t port)
{
    trpi_secure *secure = (trpi_secure *)transport;
    (void)snprintf(secure->self, sizeof secure->self, "%.253s:%u", host, port);
}

void
trpi_secure_host(trpi_transport *transport, const char *host)
{
    trpi_secure *secure = (trpi_secure *)transport;
    pthread_mutex_lock(&secure->lock);
    (void)snprintf(secure->host, sizeof secure->host, "%s", host);
    secure->looked_for_trouble = false;
    pthread_cond_broadcast(&secure->wake);
    pthread_mutex_unlock(&secure->lock);
}

bool
trpi_secure_info(trpi_transport *transport, trpi_tls_info *ret_info)
{
    trpi_secure *secure = (trpi_secure *)transport;
    if (!secure->is_tls) {
        return false;
    }
    trpi_credentials *credentials = trpi_credentials_get(secure);
    pthread_mutex_lock(&secure->lock);
    char host[sizeof secure->host];
    memcpy(host, secure->host, sizeof host);
    pthread_mutex_unlock(&secure->lock);
    trpi_tls_context_info(credentials->tls, host, ret_info);
    trpi_credentials_unref(credentials);
    return true;
}

/* ---- the transport --------------------------------------------------------------------------- */

static void
keeper_end(trpi_secure *secure)
{
    pthread_mutex_lock(&secure->lock);
    secure->ending = true;
    pthread_cond_broadcast(&secure->wake);
    pthread_mutex_unlock(&secure->lock);
    if (secure->keeper_runs) {
        secure->keeper_runs = false;
        pthread_join(secure->keeper, NULL);
    }
}

static void
secure_free(trpi_transport *transport)
{
    trpi_secure *secure = (trpi_secure *)transport;
    if (secure == NULL) {
        return;
    }
    keeper_end(secure);
    if (secure->inner_transport != NULL) {
        secure->inner->free(secure->inner_transport);
    }
    trpi_assert(secure->links == NULL);
    trpi_credentials_unref(secure->credentials);
    trpi_cleanse(&secure->options.secrets, sizeof secure->options.secrets);
    trpi_cleanse(&secure->secrets_next, sizeof secure->secrets_next);
    trpi_tls_options_fini(&secure->tls);
    pthread_cond_destroy(&secure->wake);
    trpi_mutex_destroy(&secure->lock);
    trpi_free(secure);
}

static trp_err
secure_open(const trpi_secure_options *options, bool is_tls, trpi_world *world,
            const trpi_transport_events *events, void *arg, trpi_transport **ret_transport)
{
    char why[WHY_BYTES] = "";
    trpi_secure *secure = trpi_alloc(sizeof *secure);
    trpi_assert(options->inner != NULL && is_tls == (options->tls != NULL));
    if (secure == NULL) {
        return TRP_ENOMEM;
    }
    secure->inner = options->inner;
    secure->world = world;
    secure->events = events;
    secure->arg = arg;
    secure->options = *options;
    secure->is_tls = is_tls;
    secure->secrets_next = options->secrets;
    secure->looked_ms = trpi_world_mono_ns(world) / 1000000;
    pthread_mutex_init(&secure->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&secure->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    trp_err err = is_tls ? trpi_tls_options_copy(&secure->tls, options->tls) : TRP_OK;
    err = err != TRP_OK
              ? err
              : credentials_read(secure, &options->secrets, &secure->credentials, why, sizeof why);
    if (err != TRP_OK && options->why != NULL) {
        (void)snprintf(options->why, options->why_bytes, "%s", why);
    }
    secure->options.why = NULL;
    err = err != TRP_OK ? err
                        : options->inner->open(options->inner_arg, world, &trpi_secure_events,
                                               secure, &secure->inner_transport);
    bool has_keeper = !trpi_world_is_driven(world);
    if (err == TRP_OK && has_keeper &&
        pthread_create(&secure->keeper, NULL, keeper_thread, secure) != 0) {
        secure->inner->stop(secure->inner_transport);
        err = TRP_EIO;
    }
    secure->keeper_runs = err == TRP_OK && has_keeper;
    if (err != TRP_OK) {
        secure_free((trpi_transport *)secure);
        return err;
    }
    *ret_transport = (trpi_transport *)secure;
    return TRP_OK;
}

static trp_err
tls_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
         trpi_transport **ret_transport)
{
    return secure_open(transport_arg, true, world, events, arg, ret_transport);
}

static trp_err
tcp_open(void *transport_arg, trpi_world *world, const trpi_transport_events *events, void *arg,
         trpi_transport **ret_transport)
{
    return secure_open(transport_arg, false, world, events, arg, ret_transport);
}

static trp_err
secure_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    trpi_secure *secure = (trpi_secure *)transport;
    return secure->inner->listen(secure->inner_transport, host, port, ret_port);
}

static void
secure_accept(trpi_transport *transport)
{
    trpi_secure *secure = (trpi_secure *)transport;
    secure->inner->accept(secure->inner_transport);
}

static void
secure_stop(trpi_transport *transport)
{
    trpi_secure *secure = (trpi_secure *)transport;
    keeper_end(secure); /* first: it uses links of the inner transport */
    secure->inner->stop(secure->inner_transport);
}

#define OPS(name, opener)                                                                          \
    {                                                                                              \
        .scheme = name, .open = (opener), .listen = secure_listen, .accept = secure_accept,        \
        .connect = trpi_secure_connect, .write = trpi_secure_write, .pause = trpi_secure_pause,    \
        .hand_over = trpi_secure_hand_over, .nudge = trpi_secure_nudge,                            \
        .waker = trpi_secure_waker, .wake = trpi_secure_wake, .claims = trpi_secure_claims,        \
        .whose = trpi_secure_whose, .named = trpi_secure_named, .until = trpi_secure_until,        \
        .outdated = trpi_secure_outdated, .close = trpi_secure_close,                              \
        .release = trpi_secure_release, .stop = secure_stop, .free = secure_free,                  \
    }
const trpi_transport_ops trpi_secure_tls_ops = OPS("tls", tls_open);
const trpi_transport_ops trpi_secure_tcp_ops = OPS("tcp", tcp_open);
