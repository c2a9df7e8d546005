/* resolver.c - see the header.
 *
 * Limits. TRPI_RESOLVER_CACHE_MAX names (the oldest goes), TRPI_RESOLVER_ADDRESSES_MAX addresses a
 *         name.
 * Threads. One lock, held for list work only, never around getaddrinfo or a callback. A thread that
 *         is in getaddrinfo at the end is not waited for; the last one frees the resolver.
 * Tests.  tests/unit/remote/link_test.c
 */
#include "io/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/mutex.h"

typedef struct job {
    struct job *next;
    trpi_resolved_fn fn;
    void *arg;
    char host[TRPI_HOST_BYTES_MAX + 1];
} job;

typedef struct cached {
    uint64_t until_ns; /* 0: free */
    char host[TRPI_HOST_BYTES_MAX + 1];
    trpi_resolved resolved;
} cached;

typedef struct server {
    trpi_resolver *resolver;
    pthread_t thread;
    bool resolving, left; /* by lock; left: nobody joins it */
} server;

struct trpi_resolver {
    trpi_world *world;
    trpi_resolve_fn resolve;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    server servers[TRPI_RESOLVER_THREADS];
    uint32_t servers_count;
    uint32_t references; /* the owner's, and of each thread that is left; by lock */
    bool stopping;
    job *first, **last;
    cached *cache; /* TRPI_RESOLVER_CACHE_MAX */
};

static const trpi_resolved stopping = { 0, { "" }, "stopping" };

static bool
resolve_numeric(const char *host, trpi_resolved *ret_resolved)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1) {
        return false;
    }
    memset(ret_resolved, 0, sizeof *ret_resolved);
    ret_resolved->count = 1;
    (void)snprintf(ret_resolved->hosts[0], TRPI_NUMERIC_BYTES, "%s", host);
    return true;
}

void
trpi_resolved_take(const struct addrinfo *found, trpi_resolved *ret_resolved)
{
    for (; found != NULL && ret_resolved->count < TRPI_RESOLVER_ADDRESSES_MAX;
         found = found->ai_next) {
        char *host = ret_resolved->hosts[ret_resolved->count];
        if (getnameinfo(found->ai_addr, found->ai_addrlen, host, TRPI_NUMERIC_BYTES, NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            strchr(host, '%') == NULL) { /* no scope ids in nng */
            ret_resolved->count++;
        }
    }
    if (ret_resolved->count == 0) {
        (void)snprintf(ret_resolved->reason, sizeof ret_resolved->reason, "no usable address");
    }
}

void
trpi_resolve_blocking(const char *host, trpi_resolved *ret_resolved)
{
    if (resolve_numeric(host, ret_resolved)) {
        return;
    }
    memset(ret_resolved, 0, sizeof *ret_resolved);
    struct addrinfo hints = { 0 };
    struct addrinfo *found = NULL;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed != 0) {
        (void)snprintf(ret_resolved->reason, sizeof ret_resolved->reason, "%s",
                       gai_strerror(failed));
        return;
    }
    trpi_resolved_take(found, ret_resolved);
    freeaddrinfo(found);
}

static cached *
cache_find(trpi_resolver *resolver, const char *host)
{
    for (size_t i = 0; i < TRPI_RESOLVER_CACHE_MAX; i++) {
        if (resolver->cache[i].until_ns != 0 && strcmp(resolver->cache[i].host, host) == 0) {
            return &resolver->cache[i];
        }
    }
    return NULL;
}

/* The entry of host, a free one, or the one that ends first. */
static void
cache_put(trpi_resolver *resolver, const char *host, const trpi_resolved *resolved)
{
    cached *entry = cache_find(resolver, host);
    for (size_t i = 0; entry == NULL && i < TRPI_RESOLVER_CACHE_MAX; i++) {
        if (resolver->cache[i].until_ns == 0) {
            entry = &resolver->cache[i];
        }
    }
    if (entry == NULL) {
        entry = &resolver->cache[0];
        for (size_t i = 1; i < TRPI_RESOLVER_CACHE_MAX; i++) {
            entry = resolver->cache[i].until_ns < entry->until_ns ? &resolver->cache[i] : entry;
        }
    }
    entry->until_ns = trpi_world_mono_ns(resolver->world) + TRPI_RESOLVER_TTL_MS * 1000000ull;
    entry->resolved = *resolved;
    (void)snprintf(entry->host, sizeof entry->host, "%s", host);
}

static void
resolver_unref(trpi_resolver *resolver)
{
    pthread_mutex_lock(&resolver->lock);
    bool last = --resolver->references == 0;
    pthread_mutex_unlock(&resolver->lock);
    if (last) {
        pthread_cond_destroy(&resolver->wake);
        trpi_mutex_destroy(&resolver->lock);
        trpi_free(resolver->cache);
        trpi_free(resolver);
    }
}

static void *
resolver_thread(void *arg)
{
    server *self = arg;
    trpi_resolver *resolver = self->resolver;
    pthread_mutex_lock(&resolver->lock);
    for (;;) {
        while (resolver->first == NULL && !resolver->stopping) {
            pthread_cond_wait(&resolver->wake, &resolver->lock);
        }
        if (resolver->stopping) {
            break;
        }
        job *next = resolver->first;
        resolver->first = next->next;
        if (resolver->first == NULL) {
            resolver->last = &resolver->first;
        }
        self->resolving = true;
        pthread_mutex_unlock(&resolver->lock);
        trpi_resolved resolved = { 0 };
        resolver->resolve(next->host, &resolved);
        pthread_mutex_lock(&resolver->lock);
        self->resolving = false;
        if (resolver->stopping) {
            resolved = stopping;
        } else if (resolved.count > 0) {
            cache_put(resolver, next->host, &resolved);
        }
        pthread_mutex_unlock(&resolver->lock);
        next->fn(next->arg, &resolved);
        trpi_free(next);
        pthread_mutex_lock(&resolver->lock);
    }
    bool left = self->left;
    pthread_mutex_unlock(&resolver->lock);
    if (left) {
        resolver_unref(resolver);
    }
    return NULL;
}

trp_err
trpi_resolver_new(trpi_world *world, trpi_resolve_fn resolve, trpi_resolver **ret_resolver)
{
    trpi_resolver *resolver = trpi_alloc(sizeof *resolver);
    if (resolver == NULL) {
        return TRP_ENOMEM;
    }
    resolver->world = world;
    resolver->resolve = resolve;
    resolver->references = 1;
    resolver->last = &resolver->first;
    pthread_mutex_init(&resolver->lock, NULL);
    pthread_cond_init(&resolver->wake, NULL);
    resolver->cache = trpi_alloc(TRPI_RESOLVER_CACHE_MAX * sizeof *resolver->cache);
    if (resolver->cache == NULL) {
        trpi_resolver_free(resolver);
        return TRP_ENOMEM;
    }
    *ret_resolver = resolver;
    return TRP_OK;
}

void
trpi_resolver_free(trpi_resolver *resolver)
{
    bool joinable[TRPI_RESOLVER_THREADS];
    if (resolver == NULL) {
        return;
    }
    pthread_mutex_lock(&resolver->lock);
    resolver->stopping = true;
    job *waiting = resolver->first;
    resolver->first = NULL;
    for (uint32_t i = 0; i < resolver->servers_count; i++) {
        server *each = &resolver->servers[i];
        each->left = each->resolving;
        resolver->references += each->left;
        joinable[i] = !each->left;
    }
    pthread_cond_broadcast(&resolver->wake);
    pthread_mutex_unlock(&resolver->lock);
    while (waiting != NULL) {
        job *next = waiting->next;
        waiting->fn(waiting->arg, &stopping);
        trpi_free(waiting);
        waiting = next;
    }
    for (uint32_t i = 0; i < resolver->servers_count; i++) {
        if (joinable[i]) {
            pthread_join(resolver->servers[i].thread, NULL);
        } else {
            pthread_detach(resolver->servers[i].thread);
        }
    }
    resolver_unref(resolver);
}

bool
trpi_resolver_now(trpi_resolver *resolver, const char *host, trpi_resolved *ret_resolved)
{
    if (resolve_numeric(host, ret_resolved)) {
        return true;
    }
    pthread_mutex_lock(&resolver->lock);
    cached *entry = cache_find(resolver, host);
    bool fresh = entry != NULL && trpi_world_mono_ns(resolver->world) < entry->until_ns;
    if (fresh) {
        *ret_resolved = entry->resolved;
    }
    pthread_mutex_unlock(&resolver->lock);
    return fresh;
}

trp_err
trpi_resolver_start(trpi_resolver *resolver, const char *host, trpi_resolved_fn fn, void *arg)
{
    job *added = trpi_alloc(sizeof *added);
    if (added == NULL) {
        return TRP_ENOMEM;
    }
    added->fn = fn;
    added->arg = arg;
    (void)snprintf(added->host, sizeof added->host, "%s", host);
    pthread_mutex_lock(&resolver->lock);
    trp_err err = resolver->stopping ? TRP_ECLOSED : TRP_OK;
    /* Threads are made when the first name that is not numeric comes: most systems never need
     * them. */
    while (err == TRP_OK && resolver->servers_count < TRPI_RESOLVER_THREADS) {
        server *next = &resolver->servers[resolver->servers_count];
        next->resolver = resolver;
        if (pthread_create(&next->thread, NULL, resolver_thread, next) != 0) {
            err = resolver->servers_count == 0 ? TRP_ENOMEM : TRP_OK;
            break;
        }
        resolver->servers_count++;
    }
    if (err == TRP_OK) {
        *resolver->last = added;
        resolver->last = &added->next;
        pthread_cond_signal(&resolver->wake);
    }
    pthread_mutex_unlock(&resolver->lock);
    if (err != TRP_OK) {
        trpi_free(added);
    }
    return err;
}

void
trpi_resolver_forget(trpi_resolver *resolver, const char *host)
{
    pthread_mutex_lock(&resolver->lock);
    cached *entry = cache_find(resolver, host);
    if (entry != NULL) {
        entry->until_ns = 0;
    }
    pthread_mutex_unlock(&resolver->lock);
}

void
trpi_numeric_text(const void *address, size_t address_bytes, uint16_t port, char *text,
                  size_t bytes)
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    char host[INET6_ADDRSTRLEN] = "?";
    const uint8_t *raw = address;
    bool v4 = address_bytes == 4;
    if (!v4 && memcmp(raw, mapped, sizeof mapped) == 0) { /* link-nng-H11 */
        v4 = true;
        raw += sizeof mapped;
    }
    (void)inet_ntop(v4 ? AF_INET : AF_INET6, raw, host, sizeof host);
    (void)snprintf(text, bytes, v4 ? "%s:%u" : "[%s]:%u", host, port);
}
