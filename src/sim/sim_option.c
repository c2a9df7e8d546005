/* sim_option.c - options of simulated sockets: what the machine accepts and gives back. A few of
 * them change something here: SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF, SO_RCVBUF, SO_LINGER,
 * IPV6_V6ONLY, TCP_USER_TIMEOUT.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/assert.h"
#include "sim/sim_socket.h"

#define CONGESTION_BITS 3
#define BUFFER_MAX 212992 /* net.core.wmem_max, rmem_max */
#define BUFFER_DEFAULT 131072
#define SEND_LEAST 4608
#define RECEIVE_LEAST 2304
#define DRAWN_LEAST 512u
#define DRAWN_STEPS 8u
#define MILLISECOND_NS 1000000u
#define PATIENCE_NS (924600ull * MILLISECOND_NS) /* net.ipv4.tcp_retries2 = 15 */

enum { OF_STREAM = 1, OF_DATAGRAM = 2, OF_LOCAL = 4, OF_V6 = 8 };
#define OF_IP (OF_STREAM | OF_DATAGRAM)
#define OF_ALL (OF_IP | OF_LOCAL)

static const struct option {
    int level, name, of, start, least, most; /* most 1: a switch, which any number but 0 turns on */
} rows[] = {
    { SOL_SOCKET, SO_REUSEADDR, OF_ALL, 0, 0, 1 },
    { SOL_SOCKET, SO_REUSEPORT, OF_ALL, 0, 0, 1 },
    { SOL_SOCKET, SO_KEEPALIVE, OF_ALL, 0, 0, 1 },
    { SOL_SOCKET, SO_BROADCAST, OF_ALL, 0, 0, 1 },
    { SOL_SOCKET, SO_OOBINLINE, OF_ALL, 0, 0, 1 },
    { SOL_SOCKET, SO_SNDBUF, OF_ALL, BUFFER_DEFAULT, INT_MIN, INT_MAX },
    { SOL_SOCKET, SO_RCVBUF, OF_ALL, BUFFER_DEFAULT, INT_MIN, INT_MAX },
    { IPPROTO_TCP, TCP_NODELAY, OF_STREAM, 0, 0, 1 },
    { IPPROTO_TCP, TCP_CORK, OF_STREAM, 0, 0, 1 },
    { IPPROTO_TCP, TCP_KEEPIDLE, OF_STREAM, 7200, 1, 32767 },
    { IPPROTO_TCP, TCP_KEEPINTVL, OF_STREAM, 75, 1, 32767 },
    { IPPROTO_TCP, TCP_KEEPCNT, OF_STREAM, 9, 1, 127 },
    { IPPROTO_TCP, TCP_USER_TIMEOUT, OF_STREAM, 0, 0, INT_MAX },
    { IPPROTO_IP, IP_TTL, OF_IP, 64, 1, 255 },
    { IPPROTO_IP, IP_TOS, OF_IP, 0, 0, 255 },
    { IPPROTO_IPV6, IPV6_V6ONLY, OF_V6, 0, 0, 1 },
    { IPPROTO_IPV6, IPV6_UNICAST_HOPS, OF_V6, 64, 0, 255 },
    { IPPROTO_IPV6, IPV6_TCLASS, OF_V6, 0, 0, 255 },
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))
_Static_assert(sizeof rows / sizeof rows[0] <= SIM_OPTIONS_MAX, "too many options");

/* Its row, or -errno. */
static int
row_of(const sim_socket *s, int level, int name)
{
    int of = trpi_sim_is_local(s) ? OF_LOCAL : s->type == SOCK_STREAM ? OF_STREAM : OF_DATAGRAM;

    of |= s->family == AF_INET6 ? OF_V6 : 0;
    if (trpi_sim_is_local(s) && level != SOL_SOCKET) {
        return -EOPNOTSUPP;
    }
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].level == level && rows[i].name == name && (rows[i].of & of) != 0) {
            return i;
        }
    }
    return -ENOPROTOOPT;
}

static bool
is_set(const sim_socket *s, int row)
{
    return (s->options_set >> row & 1) != 0;
}

static int
value_of(const sim_socket *s, int level, int name)
{
    int row = row_of(s, level, name);

    trpi_assert(row >= 0);
    return s->options[row] != 0 || is_set(s, row) ? s->options[row] : rows[row].start;
}

bool
trpi_sim_option_on(const sim_socket *s, int level, int name)
{
    return value_of(s, level, name) != 0;
}

size_t
trpi_sim_buffer(const sim_socket *s, int name)
{
    return (size_t)value_of(s, SOL_SOCKET, name) / 2; /* the machine's books take the other half */
}

/* With parts by chance, buffers that nobody has set are small ones. */
void
trpi_sim_buffers_draw(sim_socket *s)
{
    trpi_sim_net *net = s->net;
    static const int names[] = { SO_SNDBUF, SO_RCVBUF };

    for (int i = 0; i < 2 && net->faults.partial != 0; i++) {
        int row = row_of(s, SOL_SOCKET, names[i]);

        if (!is_set(s, row)) {
            s->options[row] = (int)(2 * DRAWN_LEAST << trpi_sim_draw(net) % DRAWN_STEPS);
        }
    }
}

uint64_t
trpi_sim_patience_ns(const sim_socket *s)
{
    int ms = value_of(s, IPPROTO_TCP, TCP_USER_TIMEOUT);

    return ms != 0 ? (uint64_t)ms * MILLISECOND_NS : PATIENCE_NS;
}

void
trpi_sim_options_inherit(sim_socket *to, const sim_socket *from)
{
    memcpy(to->options, from->options, sizeof to->options);
    to->options_set = from->options_set;
    to->linger = from->linger;
}

static int
buffer_of(int name, int value)
{
    int least = name == SO_SNDBUF ? SEND_LEAST : RECEIVE_LEAST;

    value = value < 0 || value > BUFFER_MAX ? BUFFER_MAX : value;
    return 2 * value < least ? least : 2 * value;
}

static int
option_set(sim_socket *s, int row, int value)
{
    const struct option *option = &rows[row];

    if (option->name == SO_SNDBUF || option->name == SO_RCVBUF) {
        value = option->level == SOL_SOCKET ? buffer_of(option->name, value) : value;
    }
    if (option->level == IPPROTO_IPV6 && option->name == IPV6_V6ONLY && s->local.bytes != 0) {
        return -EINVAL;
    }
    if (option->most == 1) {
        value = value != 0;
    }
    if (s->type == SOCK_STREAM &&
        ((option->level == IPPROTO_IP && option->name == IP_TOS) ||
         (option->level == IPPROTO_IPV6 && option->name == IPV6_TCLASS))) {
        value &= ~CONGESTION_BITS; /* which are TCP's own */
    }
    if (value == -1 && (option->name == IP_TTL || option->name == IPV6_UNICAST_HOPS) &&
        option->level != SOL_SOCKET && option->level != IPPROTO_TCP) {
        value = option->start;
    }
    if (value < option->least || value > option->most) {
        return -EINVAL;
    }
    s->options[row] = value;
    s->options_set |= 1ull << row;
    return 0;
}

int
trpi_sim_option_set(trpi_world *world, int number, int level, int name, const void *value,
                    socklen_t bytes)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    int row = s == NULL ? -EBADF : row_of(s, level, name);
    int given;

    if (s != NULL && level == SOL_SOCKET && name == SO_LINGER) {
        if (bytes < sizeof s->linger) {
            return -EINVAL;
        }
        memcpy(&s->linger, value, sizeof s->linger);
        return 0;
    }
    if (row < 0 && row != -ENOPROTOOPT) {
        return row;
    }
    if (bytes >= sizeof given) {
        memcpy(&given, value, sizeof given);
    } else if (level == IPPROTO_IP && bytes > 0) {
        given = *(const uint8_t *)value; /* which takes a byte too */
    } else {
        return -EINVAL;
    }
    if (row < 0) {
        return row;
    }
    return option_set(s, row, given);
}

/* Give an option that can only be read; false: there is no such one. */
static bool
fact_of(sim_socket *s, int name, int *ret_value)
{
    switch (name) {
    case SO_ERROR:
        *ret_value = -trpi_sim_error_take(s);
        return true;
    case SO_TYPE:
        *ret_value = s->type;
        return true;
    case SO_DOMAIN:
        *ret_value = s->family;
        return true;
    case SO_PROTOCOL:
        *ret_value = trpi_sim_is_local(s) ? 0 : s->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
        return true;
    case SO_ACCEPTCONN:
        *ret_value = s->state == SIM_LISTENING;
        return true;
    default:
        return false;
    }
}

/* The machine's IPv4 has no word for what is read of another level. */
static bool
is_foreign_level(const sim_socket *s, int level)
{
    return s->family == AF_INET && level != SOL_SOCKET && level != IPPROTO_IP &&
           (level != IPPROTO_TCP || s->type != SOCK_STREAM);
}

int
trpi_sim_option_get(trpi_world *world, int number, int level, int name, void *ret_value,
                    socklen_t *bytes)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    int value = 0, row;

    if (s == NULL) {
        return -EBADF;
    }
    if (level == SOL_SOCKET && name == SO_LINGER) {
        *bytes = *bytes < sizeof s->linger ? *bytes : (socklen_t)sizeof s->linger;
        memcpy(ret_value, &s->linger, *bytes);
        return 0;
    }
    if (level != SOL_SOCKET || !fact_of(s, name, &value)) {
        row = row_of(s, level, name);
        if (row < 0) {
            return row == -ENOPROTOOPT && is_foreign_level(s, level) ? -EOPNOTSUPP : row;
        }
        value = value_of(s, level, name);
    }
    *bytes = *bytes < sizeof value ? *bytes : (socklen_t)sizeof value;
    memcpy(ret_value, &value, *bytes);
    return 0;
}
