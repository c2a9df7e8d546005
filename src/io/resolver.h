/* resolver.h - names to numeric addresses, on threads of its own, with a small cache.
 *
 * getaddrinfo blocks for seconds when a name server is away; nng's own resolver takes the first
 * address only and can panic when it is cancelled.
 */
#ifndef TRPI_IO_RESOLVER_H
#define TRPI_IO_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/world.h"

#define TRPI_RESOLVER_ADDRESSES_MAX 8
#define TRPI_RESOLVER_CACHE_MAX 256
#define TRPI_RESOLVER_TTL_MS 30000
#define TRPI_RESOLVER_THREADS 2
#define TRPI_NUMERIC_BYTES 64 /* a numeric host, IPv6 without brackets */

typedef struct trpi_resolver trpi_resolver;

typedef struct trpi_resolved {
    uint32_t count; /* 0: the name is not known */
    char hosts[TRPI_RESOLVER_ADDRESSES_MAX][TRPI_NUMERIC_BYTES];
    char reason[96]; /* when count is 0 */
} trpi_resolved;

/* Called once for each trpi_resolver_start(), on a resolver thread; at stop with count 0: then in
 * trpi_resolver_free(), or, for a name that a server was being asked for, at any time after it. */
typedef void (*trpi_resolved_fn)(void *arg, const trpi_resolved *resolved);
typedef void (*trpi_resolve_fn)(const char *host, trpi_resolved *ret_resolved);

/* resolve: may block; trpi_resolve_blocking. */
trp_err trpi_resolver_new(trpi_world *world, trpi_resolve_fn resolve, trpi_resolver **ret_resolver);
/* Answers waiting requests with "stopping" and waits for no name server: a thread that waits for
 * one ends when that has answered, and does not use the world any more. NULL is fine. */
void trpi_resolver_free(trpi_resolver *resolver);
/* true: host is numeric or cached, *ret_resolved is filled. Thread: any; lock for a moment. */
bool trpi_resolver_now(trpi_resolver *resolver, const char *host, trpi_resolved *ret_resolved);
/* Errors: TRP_ENOMEM, TRP_ECLOSED; then fn is not called. */
trp_err trpi_resolver_start(trpi_resolver *resolver, const char *host, trpi_resolved_fn fn,
                            void *arg);
/* None of the addresses answered: ask anew next time. */
void trpi_resolver_forget(trpi_resolver *resolver, const char *host);
/* The usable ones of what a name server found, at most TRPI_RESOLVER_ADDRESSES_MAX: the first. */
struct addrinfo;
void trpi_resolved_take(const struct addrinfo *found, trpi_resolved *ret_resolved);
/* Resolve in the calling thread, for listen. */
void trpi_resolve_blocking(const char *host, trpi_resolved *ret_resolved);
/* Write "10.0.0.1:80" or "[fe80::1]:80" from 4 or 16 address bytes in network order; v4-mapped
 * IPv6 as IPv4. */
void trpi_numeric_text(const void *address, size_t address_bytes, uint16_t port, char *text,
                       size_t bytes);

#endif
