/* nng_address.c - addresses of nng's sockets, and the lengths of the parts of a message.
 *
 * Why.     A peer sees one body. The lengths stand behind the parts, so that the first bytes of a
 *          body stay those of the first part: subscriptions are prefixes.
 *
 *            part 1 | ... | part n | length 1 | ... | length n | n      4 bytes each, big-endian
 * Must hold.
 *   nng-parts-F1  1 to TRP_NNG_PARTS_MAX lengths, whose sum and their own bytes are the body's, or
 *       the body is refused: nothing outside of it is ever read.
 * Tests.   tests/unit/endpoint/nng_address_test.c, tests/fuzz/nng_parts_fuzz.c
 * Sources. ZMQ-03, -04
 */
#include "endpoint/nng_address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/assert.h"

#define SCHEME_TCP "tcp://"

bool
trpi_nng_address_next(const char **list, char ret_url[TRPI_NNG_URL_BYTES])
{
    if (*list == NULL) {
        return false;
    }
    const char *from = *list + strspn(*list, " ");
    size_t bytes = strcspn(from, " ");
    *list = from + bytes;
    (void)snprintf(ret_url, TRPI_NNG_URL_BYTES, "%.*s", (int)bytes, from);
    return bytes != 0;
}

/* Split tcp://HOST:PORT; false: it is none. */
static bool
tcp_split(const char *url, char host[TRPI_NNG_URL_BYTES], const char **ret_port)
{
    const char *from = url + sizeof SCHEME_TCP - 1, *port = strrchr(from, ':');
    if (port == NULL || strlen(port + 1) == 0 || strlen(port + 1) > 5 ||
        strspn(port + 1, "0123456789") != strlen(port + 1)) {
        return false;
    }
    uint32_t number = 0;
    for (const char *c = port + 1; *c != '\0'; c++) {
        number = number * 10 + (uint32_t)(*c - '0');
    }
    size_t bytes = (size_t)(port - from);
    bool bracketed = bytes > 2 && from[0] == '[' && from[bytes - 1] == ']';
    if (number > UINT16_MAX || (!bracketed && memchr(from, ':', bytes) != NULL) ||
        strcspn(from, "/?#@%") != strlen(from)) {
        return false;
    }
    (void)snprintf(host, TRPI_NNG_URL_BYTES, "%.*s", (int)(bracketed ? bytes - 2 : bytes),
                   bracketed ? from + 1 : from);
    *ret_port = port + 1;
    return true;
}

trp_err
trpi_nng_address_check(const char *url)
{
    static const char *const others[] = { "ipc://", "abstract://", "inproc://" };
    char host[TRPI_NNG_URL_BYTES];
    const char *port;
    if (strlen(url) >= TRPI_NNG_URL_BYTES - 1) {
        return TRP_EINVAL;
    }
    if (strncmp(url, SCHEME_TCP, sizeof SCHEME_TCP - 1) == 0) {
        return tcp_split(url, host, &port) ? TRP_OK : TRP_EINVAL;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(url, others[i], strlen(others[i])) == 0) {
            size_t bytes = strlen(url + strlen(others[i]));
            return bytes > 0 && bytes <= 107 ? TRP_OK : TRP_EINVAL; /* a sun_path */
        }
    }
    return strstr(url, "://") != NULL ? TRP_EUNSUPPORTED : TRP_EINVAL;
}

trp_err
trpi_nng_address_resolve(const char *url, char ret_url[TRPI_NNG_URL_BYTES])
{
    char host[TRPI_NNG_URL_BYTES], numeric[NI_MAXHOST];
    const char *port;
    struct in6_addr ip;
    struct addrinfo hints, *found = NULL;
    (void)snprintf(ret_url, TRPI_NNG_URL_BYTES, "%s", url);
    if (strncmp(url, SCHEME_TCP, sizeof SCHEME_TCP - 1) != 0 || !tcp_split(url, host, &port) ||
        host[0] == '\0' || strcmp(host, "*") == 0 || inet_pton(AF_INET, host, &ip) == 1 ||
        inet_pton(AF_INET6, host, &ip) == 1) {
        return TRP_OK;
    }
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) {
        return TRP_ECONN;
    }
    bool v6 = found->ai_family == AF_INET6;
    bool known = getnameinfo(found->ai_addr, found->ai_addrlen, numeric, sizeof numeric, NULL, 0,
                             NI_NUMERICHOST) == 0 &&
                 strlen(numeric) < INET6_ADDRSTRLEN;
    freeaddrinfo(found);
    if (!known) {
        return TRP_ECONN;
    }
    (void)snprintf(ret_url, TRPI_NNG_URL_BYTES, v6 ? "tcp://[%.*s]:%s" : "tcp://%.*s:%s",
                   INET6_ADDRSTRLEN, numeric, port);
    return TRP_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static uint32_t
u32_read(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void
u32_write(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

size_t
trpi_nng_lengths_bytes(uint32_t count)
{
    return 4 * ((size_t)count + 1);
}

void
trpi_nng_lengths_write(const trp_bytes *parts, uint32_t count, uint8_t *ret_bytes)
{
    trpi_assert(count >= 1 && count <= TRP_NNG_PARTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        u32_write(ret_bytes + 4 * (size_t)i, (uint32_t)trp_bytes_length(parts[i]));
    }
    u32_write(ret_bytes + 4 * (size_t)count, count);
}

/* nng-parts-F1 */
bool
trpi_nng_lengths_read(const uint8_t *body, size_t bytes, uint32_t *ret_count,
                      uint32_t ret_lengths[TRP_NNG_PARTS_MAX])
{
    if (bytes < 8) {
        return false;
    }
    uint32_t count = u32_read(body + bytes - 4);
    if (count == 0 || count > TRP_NNG_PARTS_MAX || trpi_nng_lengths_bytes(count) > bytes) {
        return false;
    }
    uint64_t left = bytes - trpi_nng_lengths_bytes(count);
    const uint8_t *from = body + left;
    for (uint32_t i = 0; i < count; i++) {
        ret_lengths[i] = u32_read(from + 4 * (size_t)i);
        if (ret_lengths[i] > left) {
            return false;
        }
        left -= ret_lengths[i];
    }
    *ret_count = count;
    return left == 0;
}
