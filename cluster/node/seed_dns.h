/* seed_dns.h - contact points by a name: looked up again and again, until the node has joined.
 *
 * A name that begins with '_' is one of SRV records ("_troupe._tcp.example.org"): each target, a
 * host name, with its port. Any other is a host name: each of its addresses, with one port. An
 * address that is found counts only if a node advertises it in that form (remote.hostname). */
#ifndef TRPI_NODE_SEED_DNS_H
#define TRPI_NODE_SEED_DNS_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/cluster.h>
#include <troupe/system.h>

#include "base/address.h"

#define TRPI_SEED_DNS_NAME_BYTES_MAX 253
#define TRPI_SEED_DNS_TIMEOUT_MS 1000 /* of one question to one server; asked twice */

typedef struct trpi_seed_dns trpi_seed_dns;

typedef struct trpi_seed_dns_options { /* texts are borrowed until stop */
    const char *name;
    const char *nameserver; /* "10.0.0.53", "[::1]:5353"; NULL or "": those of the system */
    uint16_t port;          /* of the addresses of a host name */
    uint32_t interval_ms;   /* from one answer to the next question */
    trpi_address like;      /* protocol and system of the addresses */
    /* On a thread of its own: the addresses, sorted, each once, 1 to TRP_CLUSTER_SEEDS_MAX. false:
     * no more are needed. */
    bool (*found)(void *arg, const trpi_address *addresses, uint32_t count);
    void *arg;
} trpi_seed_dns_options;

/* Gives *ret_dns. Errors: TRP_ECONFIG (this build has no c-ares; nameserver is none), TRP_ENOMEM.
 */
trp_err trpi_seed_dns_start(trp_system *system, const trpi_seed_dns_options *options,
                            trpi_seed_dns **ret_dns);
/* No call is in progress afterwards. NULL is fine. */
void trpi_seed_dns_stop(trpi_seed_dns *dns);
bool trpi_seed_dns_is_built(void);

#endif
