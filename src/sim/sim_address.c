/* sim_address.c - addresses of the simulated network: hosts, ports, and Unix-domain names.
 *
 * Limits.  A name in the file system ends with its socket, as if the server had unlinked it. Ports
 *          that connects choose are not shared by destinations.
 * Sources. inet_bind, inet_csk_get_port and unix_bind of Linux 6.1.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "sim/sim_socket.h"

#define PORT_FIRST 32768u /* of those that connect and bind choose */
#define PORTS 28232u
#define PORTS_ALL 65536u
#define NETWORK 0x0a00u /* 10.0.0.0/16 */

enum where { WHERE_ANY, WHERE_LOOPBACK, WHERE_HOST, WHERE_NOBODY, WHERE_NOWHERE };

/* ---- IP addresses ---------------------------------------------------------------------------- */

uint16_t
trpi_sim_port(const trpi_net_address *address)
{
    return address->bytes == 0 ? 0 : ntohs(address->of.v4.sin_port); /* at the same place in v6 */
}

static void
port_set(trpi_net_address *address, uint16_t port)
{
    address->of.v4.sin_port = htons(port);
}

static enum where
where_v4(uint32_t address, uint32_t *ret_host)
{
    uint32_t host = (address & 0xffffu) - 1;

    if (address == INADDR_ANY) {
        return WHERE_ANY;
    }
    if (address >> 24 == 127) {
        return WHERE_LOOPBACK;
    }
    if (address >> 16 != NETWORK) {
        return WHERE_NOWHERE;
    }
    *ret_host = host;
    return host < TRPI_SIM_HOSTS_MAX ? WHERE_HOST : WHERE_NOBODY;
}

static enum where
where_is(const trpi_net_address *address, uint32_t *ret_host)
{
    const struct in6_addr *v6 = &address->of.v6.sin6_addr;
    static const uint8_t prefix[12] = { 0xfd };
    uint32_t last;

    if (address->of.any.sa_family == AF_INET) {
        return where_v4(ntohl(address->of.v4.sin_addr.s_addr), ret_host);
    }
    memcpy(&last, v6->s6_addr + 12, sizeof last);
    last = ntohl(last);
    if (IN6_IS_ADDR_V4MAPPED(v6)) {
        return where_v4(last, ret_host);
    }
    if (IN6_IS_ADDR_UNSPECIFIED(v6) || IN6_IS_ADDR_LOOPBACK(v6)) {
        return IN6_IS_ADDR_LOOPBACK(v6) ? WHERE_LOOPBACK : WHERE_ANY;
    }
    if (memcmp(v6->s6_addr, prefix, sizeof prefix) != 0) {
        return WHERE_NOWHERE;
    }
    *ret_host = last - 1;
    return last - 1 < TRPI_SIM_HOSTS_MAX ? WHERE_HOST : WHERE_NOBODY;
}

static bool
is_v4(const trpi_net_address *address)
{
    return address->of.any.sa_family == AF_INET ||
           IN6_IS_ADDR_V4MAPPED(&address->of.v6.sin6_addr) != 0;
}

trpi_net_address
trpi_sim_address_as(const trpi_net_address *address, int family)
{
    trpi_net_address as = { .bytes = 0 };
    struct in6_addr *v6 = &as.of.v6.sin6_addr;

    if (address->bytes == 0 || address->of.any.sa_family == family) {
        return *address;
    }
    as.of.any.sa_family = (sa_family_t)family;
    as.of.v4.sin_port = address->of.v4.sin_port;
    if (family == AF_INET) {
        as.bytes = sizeof(struct sockaddr_in);
        memcpy(&as.of.v4.sin_addr, address->of.v6.sin6_addr.s6_addr + 12, 4);
    } else {
        as.bytes = sizeof(struct sockaddr_in6);
        memset(v6->s6_addr + 10, 0xff, 2);
        memcpy(v6->s6_addr + 12, &address->of.v4.sin_addr, 4);
    }
    return as;
}

/* Do two addresses name the same place, or may they? v6_only: of the first one's socket. */
static bool
address_covers(const trpi_net_address *a, bool v6_only, const trpi_net_address *b)
{
    uint32_t host_a = 0, host_b = 0;
    enum where at = where_is(a, &host_a), bt = where_is(b, &host_b);
    trpi_net_address as_b;

    if (at == WHERE_ANY) {
        return is_v4(a) == is_v4(b) || (!is_v4(a) && !v6_only);
    }
    if (is_v4(a) != is_v4(b) || at != bt) {
        return false;
    }
    as_b = trpi_sim_address_as(b, a->of.any.sa_family);
    return a->of.any.sa_family == AF_INET
               ? a->of.v4.sin_addr.s_addr == as_b.of.v4.sin_addr.s_addr
               : IN6_ARE_ADDR_EQUAL(&a->of.v6.sin6_addr, &as_b.of.v6.sin6_addr) != 0;
}

static bool
is_v6_only(const sim_socket *s)
{
    return s->family == AF_INET6 && trpi_sim_option_on(s, IPPROTO_IPV6, IPV6_V6ONLY);
}

static int
address_check(const sim_socket *s, const trpi_net_address *address)
{
    size_t least = s->family == AF_INET ? sizeof(struct sockaddr_in)
                                        : offsetof(struct sockaddr_in6, sin6_scope_id);

    if (address->bytes < least) {
        return -EINVAL;
    }
    return address->of.any.sa_family == s->family ? 0 : -EAFNOSUPPORT;
}

int
trpi_sim_host_of(const sim_socket *s, const trpi_net_address *address, uint32_t *ret_host)
{
    int result = address_check(s, address);
    uint32_t host = s->host;

    if (result != 0) {
        return result;
    }
    if (is_v6_only(s) && is_v4(address)) {
        return -ENETUNREACH;
    }
    switch (where_is(address, &host)) {
    case WHERE_NOWHERE:
        return -ENETUNREACH;
    case WHERE_NOBODY:
        host = TRPI_SIM_HOSTS_MAX;
        break;
    case WHERE_ANY:
    case WHERE_LOOPBACK:
        host = s->host;
        break;
    case WHERE_HOST:
        break;
    }
    *ret_host = host;
    return 0;
}

static void
address_loopback(trpi_net_address *address, bool v4)
{
    uint32_t loopback = htonl(INADDR_LOOPBACK);

    if (address->of.any.sa_family == AF_INET) {
        address->of.v4.sin_addr.s_addr = loopback;
    } else if (v4) {
        memset(address->of.v6.sin6_addr.s6_addr + 10, 0xff, 2);
        memcpy(address->of.v6.sin6_addr.s6_addr + 12, &loopback, 4);
    } else {
        address->of.v6.sin6_addr = in6addr_loopback;
    }
}

static void
address_of_host(trpi_net_address *address, uint32_t host, bool v4)
{
    uint32_t number = htonl((v4 ? NETWORK << 16 : 0) | (host + 1));

    if (address->of.any.sa_family == AF_INET) {
        address->of.v4.sin_addr.s_addr = number;
        return;
    }
    memset(&address->of.v6.sin6_addr, 0, sizeof address->of.v6.sin6_addr);
    memset(address->of.v6.sin6_addr.s6_addr + 10, v4 ? 0xff : 0, 2);
    address->of.v6.sin6_addr.s6_addr[0] = v4 ? 0 : 0xfd;
    memcpy(address->of.v6.sin6_addr.s6_addr + 12, &number, 4);
}

void
trpi_sim_address_complete(sim_socket *s)
{
    uint32_t host;

    if (where_is(&s->remote, &host) == WHERE_ANY) {
        address_loopback(&s->remote, is_v4(&s->remote));
    }
    if (where_is(&s->local, &host) == WHERE_ANY) {
        if (where_is(&s->remote, &host) == WHERE_LOOPBACK) {
            address_loopback(&s->local, is_v4(&s->remote));
        } else {
            address_of_host(&s->local, s->host, is_v4(&s->remote));
        }
    }
}

void
trpi_sim_address_reset(sim_socket *s)
{
    if (!s->bound_by_user) {
        trpi_sim_port_release(s);
        s->local.bytes = 0;
    }
}

/* ---- ports ----------------------------------------------------------------------------------- */

static uint16_t **
ports_of(const sim_socket *s)
{
    return &s->net->hosts[s->host].ports[s->type == SOCK_DGRAM];
}

void
trpi_sim_port_hold(sim_socket *s)
{
    uint16_t **ports = ports_of(s);

    trpi_assert(*ports != NULL && !s->port_held);
    (*ports)[trpi_sim_port(&s->local)]++;
    s->port_held = true;
}

void
trpi_sim_port_release(sim_socket *s)
{
    if (s->port_held) {
        (*ports_of(s))[trpi_sim_port(&s->local)]--;
        s->port_held = false;
    }
}

static bool
both_on(const sim_socket *a, const sim_socket *b, int option)
{
    return trpi_sim_option_on(a, SOL_SOCKET, option) && trpi_sim_option_on(b, SOL_SOCKET, option);
}

static bool
is_taken(const sim_socket *s, const trpi_net_address *address)
{
    const sim_socket *other = s->net->sockets;

    if ((*ports_of(s))[trpi_sim_port(address)] == 0) {
        return false;
    }
    for (; other != NULL; other = other->next) {
        bool same = other != s && other->port_held && other->host == s->host &&
                    other->type == s->type &&
                    trpi_sim_port(&other->local) == trpi_sim_port(address) &&
                    (address_covers(address, is_v6_only(s), &other->local) ||
                     address_covers(&other->local, is_v6_only(other), address));

        if (same && !both_on(s, other, SO_REUSEPORT) &&
            !(both_on(s, other, SO_REUSEADDR) && other->state != SIM_LISTENING)) {
            return true;
        }
    }
    return false;
}

bool
trpi_sim_listen_conflicts(const sim_socket *s)
{
    const sim_socket *other = s->net->hosts[s->host].places;

    for (; other != NULL && !trpi_sim_is_local(s); other = other->place_next) {
        if (other->type == SOCK_STREAM && other != s &&
            trpi_sim_port(&other->local) == trpi_sim_port(&s->local) &&
            (address_covers(&s->local, is_v6_only(s), &other->local) ||
             address_covers(&other->local, is_v6_only(other), &s->local)) &&
            !both_on(s, other, SO_REUSEPORT)) {
            return true;
        }
    }
    return false;
}

static int
ports_make(const sim_socket *s)
{
    uint16_t **ports = ports_of(s);

    if (*ports == NULL) {
        *ports = trpi_alloc(PORTS_ALL * sizeof **ports);
    }
    return *ports != NULL ? 0 : -ENOMEM;
}

/* A port that nobody holds; 0: there is none. */
static uint16_t
port_choose(sim_socket *s)
{
    sim_host *host = &s->net->hosts[s->host];

    for (uint32_t i = 0; i < PORTS; i++) {
        uint32_t port = PORT_FIRST + host->port_next++ % PORTS;

        if ((*ports_of(s))[port] == 0) {
            return (uint16_t)port;
        }
    }
    return 0;
}

static int
bind_to(sim_socket *s, const trpi_net_address *address)
{
    trpi_net_address local = *address;
    int result = ports_make(s);

    if (result != 0) {
        return result;
    }
    if (trpi_sim_port(&local) == 0) {
        port_set(&local, port_choose(s));
        result = trpi_sim_port(&local) == 0 ? -EADDRINUSE : 0;
    } else if (is_taken(s, &local)) {
        result = -EADDRINUSE;
    }
    if (result == 0) {
        local.bytes = s->family == AF_INET ? sizeof local.of.v4 : sizeof local.of.v6;
        s->local = local;
        trpi_sim_port_hold(s);
        if (s->type == SOCK_DGRAM) {
            trpi_sim_place_add(s);
        }
    }
    return result;
}

int
trpi_sim_bind_some(sim_socket *s, const trpi_net_address *towards)
{
    trpi_net_address any = { .bytes = sizeof any.of };
    int result;

    any.of.any.sa_family = (sa_family_t)s->family;
    result = bind_to(s, &any);
    return result == -EADDRINUSE && towards != NULL ? -EADDRNOTAVAIL : result;
}

/* ---- Unix-domain names ----------------------------------------------------------------------- */

#define NAME_AT offsetof(struct sockaddr_un, sun_path)

/* Its length without what follows the path's end. An abstract name has none. */
static size_t
name_bytes(const trpi_net_address *address)
{
    size_t bytes = address->bytes - NAME_AT;

    return address->of.local.sun_path[0] == '\0' ? bytes
                                                 : strnlen(address->of.local.sun_path, bytes);
}

sim_name *
trpi_sim_name_find(trpi_sim_net *net, uint32_t host, const trpi_net_address *address)
{
    sim_name *name = net->names;

    while (name != NULL &&
           (name->host != host || name_bytes(&name->address) != name_bytes(address) ||
            memcmp(name->address.of.local.sun_path, address->of.local.sun_path,
                   name_bytes(address)) != 0)) {
        name = name->next;
    }
    return name;
}

void
trpi_sim_name_release(sim_socket *s)
{
    sim_name **link = &s->net->names;

    while (*link != NULL) {
        sim_name *name = *link;

        if (name->socket == s) {
            *link = name->next;
            trpi_free(name);
        } else {
            link = &name->next;
        }
    }
}

static int
bind_local(sim_socket *s, const trpi_net_address *address)
{
    sim_name *name;
    trpi_net_address local = *address;

    if (address->bytes < sizeof(sa_family_t) || address->bytes > sizeof address->of.local ||
        address->of.any.sa_family != AF_UNIX) {
        return -EINVAL;
    }
    if (address->bytes == sizeof(sa_family_t)) { /* a name of five digits */
        local.bytes = NAME_AT + 6;
        local.of.local.sun_path[0] = '\0';
        (void)snprintf(local.of.local.sun_path + 1, 6, "%05x",
                       s->net->hosts[s->host].autobinds++ & 0xfffffu);
    }
    if (s->local.bytes != 0) {
        return -EINVAL;
    }
    if (trpi_sim_name_find(s->net, s->host, &local) != NULL) {
        return -EADDRINUSE;
    }
    name = trpi_alloc(sizeof *name);
    if (name == NULL) {
        return -ENOMEM;
    }
    if (local.of.local.sun_path[0] != '\0') { /* as the machine gives it back: with its end */
        size_t bytes = name_bytes(&local);

        local.bytes = (socklen_t)(NAME_AT + bytes + 1);
        if (bytes < sizeof local.of.local.sun_path) {
            local.of.local.sun_path[bytes] = '\0';
        }
    }
    name->host = s->host;
    name->socket = s;
    name->address = local;
    name->next = s->net->names;
    s->net->names = name;
    s->local = local;
    return 0;
}

int
trpi_sim_bind(sim_socket *s, const trpi_net_address *address)
{
    uint32_t host = s->host;
    enum where where;
    int result;

    if (trpi_sim_is_local(s)) {
        return bind_local(s, address);
    }
    result = address_check(s, address);
    if (result != 0) {
        return result;
    }
    where = where_is(address, &host);
    if (is_v6_only(s) && is_v4(address)) {
        return -EINVAL;
    }
    if (where == WHERE_NOBODY || where == WHERE_NOWHERE || host != s->host) {
        return -EADDRNOTAVAIL;
    }
    if (s->local.bytes != 0 || s->state != SIM_CLOSED) {
        return -EINVAL;
    }
    result = bind_to(s, address);
    s->bound_by_user = result == 0;
    return result;
}

/* ---- listeners and datagram sockets of a host ----------------------------------------------- */

void
trpi_sim_place_add(sim_socket *s)
{
    sim_socket **link = &s->net->hosts[s->host].places;

    while (*link != NULL) {
        link = &(*link)->place_next;
    }
    s->place_next = NULL;
    *link = s;
    s->placed = true;
}

void
trpi_sim_place_remove(sim_socket *s)
{
    sim_socket **link = &s->net->hosts[s->host].places;

    if (s->placed) {
        for (; *link != s; link = &(*link)->place_next) {
        }
        *link = s->place_next;
        s->placed = false;
    }
}

/* How well a socket fits; 0: not at all. */
static int
place_fits(const sim_socket *s, const trpi_net_address *to, const trpi_net_address *from)
{
    uint32_t host;

    if (trpi_sim_port(&s->local) != trpi_sim_port(to) ||
        !address_covers(&s->local, is_v6_only(s), to)) {
        return 0;
    }
    if (s->type == SOCK_DGRAM && s->remote.bytes != 0) {
        return trpi_sim_port(&s->remote) == trpi_sim_port(from) &&
                       address_covers(&s->remote, true, from)
                   ? 3
                   : 0;
    }
    return where_is(&s->local, &host) == WHERE_ANY ? 1 : 2;
}

sim_socket *
trpi_sim_place_find(trpi_sim_net *net, uint32_t host, int type, const trpi_net_address *to,
                    const trpi_net_address *from)
{
    sim_socket *best = NULL;
    int best_fits = 0;

    for (sim_socket *s = host < TRPI_SIM_HOSTS_MAX ? net->hosts[host].places : NULL; s != NULL;
         s = s->place_next) {
        int fits = s->type == type ? place_fits(s, to, from) : 0;

        if (fits > best_fits) {
            best = s;
            best_fits = fits;
        }
    }
    return best;
}
