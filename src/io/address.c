/* address.c - addresses as text, as events have them and as sockets want them; options of sockets.
 *
 * Tests.   tests/unit/io/address_test.c
 * Sources. TCP-01, TCP-02, TCP-05
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <net/if.h>

#include "base/address.h"
#include "base/assert.h"
#include "base/sized.h"
#include "io/io.h"

#define LOCAL_PREFIX "unix:"

static bool
port_read(const char *text, uint16_t *ret_port)
{
    uint32_t port = 0;
    size_t digits = 0;

    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 6; digits++) {
        port = port * 10 + (uint32_t)(text[digits] - '0');
    }
    if (digits == 0 || text[digits] != '\0' || port > UINT16_MAX) {
        return false;
    }
    *ret_port = (uint16_t)port;
    return true;
}

/* Cut "host:port" or "[host]:port" into its parts. */
static bool
host_read(const char *text, char *ret_host, size_t host_bytes, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    const char *from = text;
    size_t bytes;

    if (colon == NULL || !port_read(colon + 1, ret_port)) {
        return false;
    }
    bytes = (size_t)(colon - text);
    if (bytes >= 2 && text[0] == '[' && text[bytes - 1] == ']') {
        from = text + 1;
        bytes -= 2;
    } else if (memchr(text, ':', bytes) != NULL) {
        return false; /* an IPv6 address wants brackets */
    }
    if (bytes >= host_bytes) {
        return false;
    }
    memcpy(ret_host, from, bytes);
    ret_host[bytes] = '\0';
    return true;
}

static bool
numeric_read(char *host, uint16_t port, trp_io_address *ret_address)
{
    trp_io_address address = { .port = port };
    char *scope = strchr(host, '%');

    if (scope != NULL) {
        *scope++ = '\0';
        address.scope = if_nametoindex(scope);
        if (address.scope == 0) {
            return false;
        }
    }
    if (scope == NULL && inet_pton(AF_INET, host, address.ip) == 1) {
        address.kind = TRP_IO_IPV4;
    } else if (inet_pton(AF_INET6, host, address.ip) == 1) {
        address.kind = TRP_IO_IPV6;
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

static bool
local_read(const char *text, trp_io_address *ret_address)
{
    size_t bytes = strlen(text);

    if (bytes == 0 || bytes > TRP_IO_PATH_BYTES_MAX) {
        return false;
    }
    memset(ret_address, 0, sizeof *ret_address);
    ret_address->kind = TRP_IO_LOCAL;
    memcpy(ret_address->path, text, bytes + 1);
    return true;
}

trp_err
trp_io_address_parse(const char *text, trp_io_address *ret_address)
{
    char host[TRP_IO_ADDRESS_BYTES_MAX];
    uint16_t port;

    if (text == NULL || ret_address == NULL) {
        return TRP_EINVAL;
    }
    if (strncmp(text, LOCAL_PREFIX, strlen(LOCAL_PREFIX)) == 0) {
        return local_read(text + strlen(LOCAL_PREFIX), ret_address) ? TRP_OK : TRP_EINVAL;
    }
    return host_read(text, host, sizeof host, &port) && numeric_read(host, port, ret_address)
               ? TRP_OK
               : TRP_EINVAL;
}

char *
trp_io_address_text(const trp_io_address *address, char *text, size_t bytes)
{
    char host[INET6_ADDRSTRLEN];

    switch (address->kind) {
    case TRP_IO_IPV4:
        (void)inet_ntop(AF_INET, address->ip, host, sizeof host);
        (void)snprintf(text, bytes, "%s:%u", host, address->port);
        break;
    case TRP_IO_IPV6:
        (void)inet_ntop(AF_INET6, address->ip, host, sizeof host);
        if (address->scope != 0) {
            (void)snprintf(text, bytes, "[%s%%%u]:%u", host, address->scope, address->port);
        } else {
            (void)snprintf(text, bytes, "[%s]:%u", host, address->port);
        }
        break;
    case TRP_IO_LOCAL:
        (void)snprintf(text, bytes, LOCAL_PREFIX "%s", address->path);
        break;
    default:
        (void)snprintf(text, bytes, "%s", "");
        break;
    }
    return text;
}

trp_err
trpi_io_target_set(trpi_io_target *target, const char *text, bool passive)
{
    char host[TRP_IO_ADDRESS_BYTES_MAX];
    uint16_t port;

    memset(target, 0, sizeof *target);
    if (strlen(text) >= sizeof target->text) {
        return TRP_EINVAL;
    }
    memcpy(target->text, text, strlen(text) + 1);
    if (trp_io_address_parse(text, &target->addresses[0]) == TRP_OK) {
        target->count = 1;
    } else if (strncmp(text, LOCAL_PREFIX, strlen(LOCAL_PREFIX)) == 0 ||
               !host_read(text, host, sizeof host, &port) || strlen(host) > TRPI_HOST_BYTES_MAX) {
        return TRP_EINVAL;
    } else if (host[0] == '\0' || strcmp(host, "*") == 0) {
        target->addresses[0].kind = TRP_IO_IPV4;
        target->addresses[0].port = port;
        target->count = 1;
        return passive ? TRP_OK : TRP_EINVAL;
    }
    /* nothing listens on port 0 */
    return passive || target->count == 0 || target->addresses[0].kind == TRP_IO_LOCAL ||
                   target->addresses[0].port != 0
               ? TRP_OK
               : TRP_EINVAL;
}

void
trpi_io_target_host(const trpi_io_target *target, char *ret_host)
{
    uint16_t port;
    bool is_name = host_read(target->text, ret_host, TRP_IO_ADDRESS_BYTES_MAX, &port);

    trpi_assert(is_name); /* trpi_io_target_set() saw to it */
    (void)is_name;
}

/* ---- as sockets want them -------------------------------------------------------------------- */

void
trpi_io_address_in(const trp_io_address *address, trpi_net_address *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    switch (address->kind) {
    case TRP_IO_IPV4:
        ret_address->of.v4.sin_family = AF_INET;
        ret_address->of.v4.sin_port = htons(address->port);
        memcpy(&ret_address->of.v4.sin_addr, address->ip, 4);
        ret_address->bytes = sizeof ret_address->of.v4;
        break;
    case TRP_IO_IPV6:
        ret_address->of.v6.sin6_family = AF_INET6;
        ret_address->of.v6.sin6_port = htons(address->port);
        ret_address->of.v6.sin6_scope_id = address->scope;
        memcpy(&ret_address->of.v6.sin6_addr, address->ip, 16);
        ret_address->bytes = sizeof ret_address->of.v6;
        break;
    case TRP_IO_LOCAL:
        ret_address->of.local.sun_family = AF_UNIX;
        memcpy(ret_address->of.local.sun_path, address->path,
               sizeof ret_address->of.local.sun_path);
        ret_address->bytes = sizeof ret_address->of.local;
        break;
    default:
        ret_address->bytes = 0;
        break;
    }
}

void
trpi_io_address_out(const trpi_net_address *address, trp_io_address *ret_address)
{
    memset(ret_address, 0, sizeof *ret_address);
    switch (address->bytes >= sizeof address->of.any.sa_family ? address->of.any.sa_family
                                                               : AF_UNSPEC) {
    case AF_INET:
        ret_address->kind = TRP_IO_IPV4;
        ret_address->port = ntohs(address->of.v4.sin_port);
        memcpy(ret_address->ip, &address->of.v4.sin_addr, 4);
        break;
    case AF_INET6:
        ret_address->kind = TRP_IO_IPV6;
        ret_address->port = ntohs(address->of.v6.sin6_port);
        ret_address->scope = address->of.v6.sin6_scope_id;
        memcpy(ret_address->ip, &address->of.v6.sin6_addr, 16);
        break;
    case AF_UNIX:
        ret_address->kind = TRP_IO_LOCAL;
        if (address->bytes > offsetof(struct sockaddr_un, sun_path)) {
            (void)snprintf(ret_address->path, sizeof ret_address->path, "%s",
                           address->of.local.sun_path);
        }
        break;
    default:
        break;
    }
}

/* ---- options --------------------------------------------------------------------------------- */

bool
trpi_io_options_take(const trp_socket_options *given, trp_socket_options *ret_options)
{
    trp_socket_options options = TRP_SOCKET_OPTIONS_INIT;

    if (!TRPI_SIZED_COPY(given, &options, zero) || options.traffic_class > UINT8_MAX ||
        options.receive_buffer_bytes > INT32_MAX || options.send_buffer_bytes > INT32_MAX) {
        return false;
    }
    *ret_options = options;
    return true;
}

int
trpi_io_options_set(const trpi_io *io, int number, int family, bool stream,
                    const trp_socket_options *options)
{
    const bool ip = family != AF_UNIX;
    const struct {
        bool wanted;
        int level, name, value;
    } rows[] = {
        { options->receive_buffer_bytes != 0, SOL_SOCKET, SO_RCVBUF,
          (int)options->receive_buffer_bytes },
        { options->send_buffer_bytes != 0, SOL_SOCKET, SO_SNDBUF, (int)options->send_buffer_bytes },
        { ip && options->no_reuse_address == 0, SOL_SOCKET, SO_REUSEADDR, stream },
        { ip && stream, IPPROTO_TCP, TCP_NODELAY, options->delay == 0 },
        { ip && stream && options->keep_alive != 0, SOL_SOCKET, SO_KEEPALIVE, 1 },
        { ip && stream && options->oob_inline != 0, SOL_SOCKET, SO_OOBINLINE, 1 },
        { family == AF_INET && options->traffic_class != 0, IPPROTO_IP, IP_TOS,
          (int)options->traffic_class },
        { family == AF_INET6 && options->traffic_class != 0, IPPROTO_IPV6, IPV6_TCLASS,
          (int)options->traffic_class },
        { ip && !stream && options->broadcast != 0, SOL_SOCKET, SO_BROADCAST, 1 },
        { family == AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only != 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].wanted) {
            int err = io->net->option_set(io->world, number, rows[i].level, rows[i].name,
                                          &rows[i].value, sizeof rows[i].value);
            if (err < 0) {
                return err;
            }
        }
    }
    return 0;
}

/* The commonest ones in words, the others by the C library. */
const char *
trpi_io_reason(int error)
{
    const char *text;

    switch (error) {
    case EAGAIN:
        return "another write waits";
    case ENOBUFS:
        return "the writer's buffer is full (max_bytes of trp_tcp_register)";
    case ENOTCONN:
        return "no handler is registered yet (trp_tcp_register)";
    case EPIPE:
        return "the connection is closing, or the peer has closed it";
    case ECONNABORTED:
        return "the connection was aborted here";
    case EALREADY:
        return "this was asked for already";
    case EADDRNOTAVAIL:
        return "the name is not known, or the address is not one of this machine";
    default:
        text = strerrordesc_np(error);
        return text != NULL ? text : "unknown error";
    }
}
