/* address.c - read, write and order node addresses.
 *
 * Why.     Addresses are typed by people and sent by peers. Both get the same strict parser: what
 *          it accepts has exactly one text, so equal nodes have equal bytes. A person also gets a
 *          hint.
 * Must hold.
 *   address-I1  format(parse(text)) == text without the path, except that an IPv6 host is written
 *       in its shortest form.
 *   address-I2  Bytes behind the NUL of each member are zero, so that an address can be hashed
 *       whole.
 * Limits.  TRPI_PROTOCOL_BYTES_MAX, TRPI_SYSTEM_BYTES_MAX, TRPI_HOST_BYTES_MAX, port 1 to 65535.
 * Not here. Resolving names (remote/), paths behind the address (src/actor/naming/path.c).
 * Tests.   tests/unit/base/address_test.c, tests/fuzz/address_fuzz.c
 */
#include "base/address.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

#define FORM "troupe.tcp://system@host:port"

/* The rest of the text, and a hint for the person who typed it. */
typedef struct cursor {
    const char *at;
    const char *hint;
} cursor;

static bool
parse_fail(cursor *c, const char *hint)
{
    c->hint = hint;
    return false;
}

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool
is_path_or_end(char c)
{
    return c == 0 || c == '/';
}

static bool
parse_protocol(cursor *c, trpi_address *address)
{
    const char *end = strstr(c->at, "://");
    size_t bytes;

    if (end == NULL) {
        return parse_fail(c, "no \"://\": write " FORM);
    }
    bytes = (size_t)(end - c->at);
    if (bytes >= 4 && memcmp(c->at, "akka", 4) == 0) {
        return parse_fail(c, bytes == 4 ? "akka: did you mean troupe?"
                                        : "akka.tcp: did you mean troupe.tcp?");
    }
    if (bytes < 6 || memcmp(c->at, "troupe", 6) != 0 || (bytes > 6 && c->at[6] != '.')) {
        return parse_fail(
            c, "unknown protocol: write troupe.tcp:// (or troupe.tls:// when encrypted)");
    }
    if (bytes > TRPI_PROTOCOL_BYTES_MAX) {
        return parse_fail(c, "protocol is longer than 24 bytes: write troupe.tcp://");
    }
    for (size_t i = 7; i < bytes; i++) {
        char at = c->at[i];
        if (!((at >= 'a' && at <= 'z') || (at >= '0' && at <= '9') || at == '.')) {
            return parse_fail(
                c, "protocol has other characters than a-z and 0-9: write troupe.tcp://");
        }
        if (at == '.' && c->at[i - 1] == '.') {
            return parse_fail(c, "protocol has an empty part: write troupe.tcp://");
        }
    }
    if (bytes > 6 && c->at[bytes - 1] == '.') {
        return parse_fail(c, "transport is missing behind \"troupe.\": write troupe.tcp://");
    }
    memcpy(address->protocol, c->at, bytes);
    c->at = end + 3;
    return true;
}

static bool
parse_system(cursor *c, trpi_address *address, bool local)
{
    size_t bytes = 0;

    while (is_alnum(c->at[bytes]) || (bytes > 0 && (c->at[bytes] == '-' || c->at[bytes] == '_'))) {
        bytes++;
    }
    if (bytes > TRPI_SYSTEM_BYTES_MAX) {
        return parse_fail(c, "system name is longer than 63 bytes");
    }
    if (!local && c->at[bytes] != '@') {
        /* "troupe.tcp://10.0.0.1:2552": say that the system is missing, not "bad character". */
        if (strchr(c->at, '@') == NULL) {
            return parse_fail(c, "system name is missing: write " FORM);
        }
        return parse_fail(c, bytes == 0
                                 ? "system name is empty or starts with a character other than"
                                   " a-z, A-Z, 0-9"
                                 : "system name has other characters than a-z, A-Z, 0-9, - and _");
    }
    if (bytes == 0) {
        return parse_fail(c, "system name is empty: write " FORM);
    }
    if (local && !is_path_or_end(c->at[bytes])) {
        return parse_fail(c,
                          c->at[bytes] == '@'
                              ? "a local address has no host: write troupe.tcp:// for a remote one"
                              : "system name has other characters than a-z, A-Z, 0-9, - and _");
    }
    memcpy(address->system, c->at, bytes);
    c->at += bytes + (local ? 0 : 1);
    return true;
}

/* "[::1]", made canonical because the text of a host is its identity. */
static bool
parse_host_ipv6(cursor *c, trpi_address *address)
{
    const char *end = strchr(c->at, ']');
    char text[INET6_ADDRSTRLEN];
    struct in6_addr binary;
    size_t bytes;

    if (end == NULL) {
        return parse_fail(c, "the ']' behind the IPv6 address is missing: write [::1]:2552");
    }
    bytes = (size_t)(end - c->at) - 1;
    if (bytes >= sizeof text) {
        return parse_fail(c, "the text in [ ] is no IPv6 address: write [::1]:2552");
    }
    memcpy(text, c->at + 1, bytes);
    text[bytes] = 0;
    if (inet_pton(AF_INET6, text, &binary) != 1) {
        return parse_fail(c, "the text in [ ] is no IPv6 address: write [::1]:2552");
    }
    (void)inet_ntop(AF_INET6, &binary, address->host, sizeof address->host); /* fits: 253 >= 45 */
    c->at = end + 1;
    return true;
}

/* "~00c0ffee00c0ffee": the uid of a node that cannot be dialled, and no port behind it. */
static bool
parse_nameless(cursor *c, trpi_address *address)
{
    size_t digits = 1;

    while ((c->at[digits] >= '0' && c->at[digits] <= '9') ||
           (c->at[digits] >= 'a' && c->at[digits] <= 'f')) {
        digits++;
    }
    if (digits != TRPI_NAMELESS_BYTES || !is_path_or_end(c->at[digits])) {
        return parse_fail(c, "behind '~' stand the 16 hexadecimal digits of a client's uid");
    }
    memcpy(address->host, c->at, digits);
    c->at += digits;
    return true;
}

static bool
parse_host(cursor *c, trpi_address *address)
{
    size_t bytes = 0;

    if (c->at[0] == '[') {
        return parse_host_ipv6(c, address);
    }
    if (c->at[0] == TRPI_NAMELESS_MARK) {
        return parse_nameless(c, address);
    }
    while (is_alnum(c->at[bytes]) || c->at[bytes] == '.' || c->at[bytes] == '-' ||
           c->at[bytes] == '_') {
        bytes++;
    }
    if (bytes == 0 && (is_path_or_end(c->at[0]) || (c->at[0] == ':' && c->at[1] != ':'))) {
        return parse_fail(c, "host is missing: write " FORM);
    }
    if (c->at[bytes] == '@') {
        return parse_fail(c, "there are two '@': write " FORM);
    }
    if (c->at[bytes] != ':' && !is_path_or_end(c->at[bytes])) {
        return parse_fail(c, "host has other characters than a-z, A-Z, 0-9, '.', '-' and '_'");
    }
    if (c->at[bytes] == ':') { /* a second colon before the path: IPv6 without brackets */
        const char *more = c->at + bytes + 1;

        if (more[strcspn(more, ":/")] == ':') {
            return parse_fail(c, "an IPv6 address stands in brackets: write [::1]:2552");
        }
    }
    if (bytes > TRPI_HOST_BYTES_MAX) {
        return parse_fail(c, "host is longer than 253 bytes");
    }
    memcpy(address->host, c->at, bytes);
    c->at += bytes;
    return true;
}

static bool
parse_port(cursor *c, trpi_address *address)
{
    unsigned port = 0;
    size_t digits = 1;

    if (c->at[0] != ':' || is_path_or_end(c->at[1])) {
        return parse_fail(c, "port is missing: write host:port, for example host:2552");
    }
    while (c->at[digits] >= '0' && c->at[digits] <= '9' && digits <= 6) {
        port = port * 10 + (unsigned)(c->at[digits] - '0');
        digits++;
    }
    if (!is_path_or_end(c->at[digits]) && digits <= 6) {
        return parse_fail(c, "port is no number: write host:port, for example host:2552");
    }
    if (port == 0 || port > UINT16_MAX) {
        return parse_fail(c, "port is out of range: 1 to 65535");
    }
    if (c->at[1] == '0') {
        return parse_fail(c, "port starts with 0");
    }
    address->port = (uint16_t)port;
    c->at += digits;
    return true;
}

trp_err
trpi_address_parse(const char *text, trpi_address *ret_address, const char **ret_rest,
                   const char **ret_hint)
{
    trpi_address address;
    cursor c = { text, "address is empty: write " FORM };
    bool local;
    bool ok;

    memset(&address, 0, sizeof address); /* address-I2, padding included */
    if (text == NULL || text[0] == 0) {
        goto refused;
    }
    ok = parse_protocol(&c, &address);
    local = strcmp(address.protocol, "troupe") == 0;
    ok = ok && parse_system(&c, &address, local);
    ok = ok && (local || parse_host(&c, &address));
    ok = ok && (local || trpi_address_is_nameless(&address) || parse_port(&c, &address));
    if (ok && ret_rest == NULL && c.at[0] != 0) {
        ok = parse_fail(&c, "a path is not expected here: write " FORM);
    }
    if (!ok) {
        goto refused;
    }
    trpi_assert(is_path_or_end(c.at[0]));
    memcpy(ret_address, &address, sizeof address);
    if (ret_rest != NULL) {
        *ret_rest = c.at;
    }
    return TRP_OK;

refused:
    if (ret_hint != NULL) {
        *ret_hint = c.hint;
    }
    return TRP_EINVAL;
}

char *
trpi_address_format(const trpi_address *address, char *buffer, size_t bytes)
{
    if (bytes == 0) {
        return buffer;
    }
    if (address->host[0] == 0) {
        snprintf(buffer, bytes, "%s://%s", address->protocol, address->system);
    } else if (trpi_address_is_nameless(address)) {
        snprintf(buffer, bytes, "%s://%s@%s", address->protocol, address->system, address->host);
    } else if (strchr(address->host, ':') != NULL) {
        snprintf(buffer, bytes, "%s://%s@[%s]:%u", address->protocol, address->system,
                 address->host, (unsigned)address->port);
    } else {
        snprintf(buffer, bytes, "%s://%s@%s:%u", address->protocol, address->system, address->host,
                 (unsigned)address->port);
    }
    return buffer;
}

void
trpi_address_nameless(uint64_t uid, trpi_address *address)
{
    address->port = 0;
    memset(address->host, 0, sizeof address->host); /* address-I2 */
    (void)snprintf(address->host, sizeof address->host, "%c%016" PRIx64, TRPI_NAMELESS_MARK, uid);
}

bool
trpi_address_is_valid(const trpi_address *address)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_address parsed;

    return trpi_address_parse(trpi_address_format(address, text, sizeof text), &parsed, NULL,
                              NULL) == TRP_OK &&
           trpi_address_equal(&parsed, address);
}

static int
compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int
trpi_address_compare(const trpi_address *a, const trpi_address *b)
{
    int order = strcmp(a->host, b->host); /* bytes, as unsigned char */

    if (order == 0) {
        order = compare_u64(a->port, b->port);
    }
    if (order == 0) {
        order = strcmp(a->system, b->system);
    }
    if (order == 0) {
        order = strcmp(a->protocol, b->protocol);
    }
    return (order > 0) - (order < 0);
}

bool
trpi_host_is_loopback(const char *host)
{
    size_t digits = strspn(host, "0123456789.");
    return (strncmp(host, "127.", 4) == 0 && host[digits] == '\0') || strcmp(host, "::1") == 0 ||
           strncmp(host, "::ffff:127.", 11) == 0 || strcmp(host, "localhost") == 0;
}

bool
trpi_address_is_same_place(const trpi_address *a, const trpi_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool
trpi_address_equal(const trpi_address *a, const trpi_address *b)
{
    return trpi_address_compare(a, b) == 0;
}

uint64_t
trpi_address_hash(const trpi_address *address)
{
    uint64_t hash = trpi_hash(address->protocol, strlen(address->protocol), address->port);

    /* Field by field, seeded by the one before: padding and bytes behind a NUL do not matter. */
    hash = trpi_hash(address->system, strlen(address->system), hash);
    return trpi_hash(address->host, strlen(address->host), hash);
}

int
trpi_node_id_compare(const trpi_node_id *a, const trpi_node_id *b)
{
    int order = strcmp(a->address.host, b->address.host);

    if (order == 0) {
        order = compare_u64(a->address.port, b->address.port);
    }
    if (order == 0) { /* the uid comes before system and protocol (address.h) */
        order = compare_u64(a->uid, b->uid);
    }
    return order != 0 ? (order > 0) - (order < 0) : trpi_address_compare(&a->address, &b->address);
}

bool
trpi_node_id_equal(const trpi_node_id *a, const trpi_node_id *b)
{
    return a->uid == b->uid && trpi_address_equal(&a->address, &b->address);
}
