/* address.h - "troupe.tcp://system@host:port" as a value, and node identity (address, uid).
 *
 * Order (leader, member lists): host bytes, then port as a number, then uid; then system and
 * protocol, so that the order is total (docs/architecture.md#membership).
 */
#ifndef TRPI_BASE_ADDRESS_H
#define TRPI_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_PROTOCOL_BYTES_MAX 24 /* "troupe.trttl.gremlin.tcp" */
#define TRPI_SYSTEM_BYTES_MAX 63
#define TRPI_HOST_BYTES_MAX 253
/* "protocol://system@host:port" and the NUL; a host in brackets is a short one */
#define TRPI_ADDRESS_TEXT_BYTES                                                                    \
    (TRPI_PROTOCOL_BYTES_MAX + 3 + TRPI_SYSTEM_BYTES_MAX + 1 + TRPI_HOST_BYTES_MAX + 1 + 5 + 1)

/* In place of a host and a port: a node that listens nowhere has '~' and its uid in 16 hexadecimal
 * digits. It is never dialled. */
#define TRPI_NAMELESS_MARK '~'
#define TRPI_NAMELESS_BYTES 17

/* A local-only system has protocol "troupe", an empty host and port 0. Zero the struct before
 * filling it: it is compared field by field, but hashed and copied whole. IPv6 hosts stand without
 * brackets. */
typedef struct trpi_address {
    uint16_t port;
    char protocol[TRPI_PROTOCOL_BYTES_MAX + 1]; /* "troupe.tcp"; adapters stand before the tcp */
    char system[TRPI_SYSTEM_BYTES_MAX + 1];
    char host[TRPI_HOST_BYTES_MAX + 1];
} trpi_address;

typedef struct trpi_node_id {
    trpi_address address;
    uint64_t uid; /* 0: any incarnation at the address */
} trpi_node_id;

/* Parse "troupe.tcp://sys@host:port" with or without a path behind it. On success *ret_rest points
 * into text at the path ("/user/a", or "" at the end); NULL ret_rest refuses a path. *ret_hint,
 * when not NULL, gets a static sentence that says what is wrong and what to write ("akka.tcp: did
 * you mean troupe.tcp?").
 * Errors: TRP_EINVAL. */
trp_err trpi_address_parse(const char *text, trpi_address *ret_address, const char **ret_rest,
                           const char **ret_hint);
/* Write "protocol://system@host:port"; returns buffer, cut at bytes - 1. */
char *trpi_address_format(const trpi_address *address, char *buffer, size_t bytes);
/* Replace host and port by the name that is made of uid. */
void trpi_address_nameless(uint64_t uid, trpi_address *address);
/* Return whether the node cannot be dialled: its host is such a name. */
static inline bool
trpi_address_is_nameless(const trpi_address *address)
{
    return address->host[0] == TRPI_NAMELESS_MARK;
}
/* Return whether the parser would give this address. For fields that came over the wire. */
bool trpi_address_is_valid(const trpi_address *address);
int trpi_address_compare(const trpi_address *a, const trpi_address *b); /* total order, see head */
bool trpi_address_equal(const trpi_address *a, const trpi_address *b);
/* Compare host and port alone. */
bool trpi_address_is_same_place(const trpi_address *a, const trpi_address *b);
/* Return whether only the host itself can dial it: 127.0.0.0/8, ::1, localhost. */
bool trpi_host_is_loopback(const char *host);
uint64_t trpi_address_hash(const trpi_address *address); /* fixed seed */
int trpi_node_id_compare(const trpi_node_id *a, const trpi_node_id *b);
bool trpi_node_id_equal(const trpi_node_id *a, const trpi_node_id *b);

#endif
