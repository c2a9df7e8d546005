/* The simulated ports, names, options and datagrams are as the machine's. */
#include "tests/unit/sim/twin.h"

static void
names_script(void)
{
    trpi_net_address address = named("twin"), none = { .bytes = sizeof(sa_family_t) }, from;
    int s = net->socket(world, AF_UNIX, SOCK_STREAM), made;
    int client = net->socket(world, AF_UNIX, SOCK_STREAM);

    none.of.any.sa_family = AF_UNIX;
    SAME(net->connect(world, client, &none));
    SAME(net->connect(world, client, &address));
    SAME(net->listen(world, s, 1));
    SAME(net->bind(world, s, &none)); /* a name is chosen */
    SAME(net->local_address(world, s, &from));
    SAME(from.bytes);
    SAME(from.of.local.sun_path[0]);
    SAME(net->bind(world, s, &address));
    SAME(net->connect(world, client, &from));
    SAME(net->listen(world, s, 0));
    SAME(net->connect(world, client, &from));
    SAME(net->connect(world, client, &from)); /* the queue is full */
    SAME((made = net->accept(world, s, &from)) >= 0);
    SAME(from.bytes);
    SAME(net->bind(world, client, &address)); /* connected, and without a name */
    SAME(net->close(world, made));
    SAME(net->close(world, client));
    SAME(net->shutdown(world, s, SHUT_RD));
    SAME(net->accept(world, s, &from));
    SAME(mask(s));
    SAME(net->close(world, s));
    client = net->socket(world, AF_UNIX, SOCK_STREAM);
    memset(&address, 0, sizeof address);
    address.of.local.sun_family = AF_UNIX;
    address.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(address.of.local.sun_path, 64,
                                                 "/tmp/twin-no-such-%d", (int)getpid()));
    SAME(net->connect(world, client, &address));
    SAME(net->close(world, client));
}

static void
ports_script(void)
{
    trpi_net_address any = loopback(AF_INET), six = loopback(AF_INET6), other, from;
    int a = net->socket(world, AF_INET, SOCK_STREAM), b, c;

    any.of.v4.sin_addr.s_addr = htonl(INADDR_ANY);
    SAME(net->bind(world, a, &any));
    SAME(net->local_address(world, a, &from));
    b = net->socket(world, AF_INET, SOCK_STREAM);
    other = loopback(AF_INET);
    other.of.v4.sin_port = from.of.v4.sin_port;
    SAME(net->bind(world, b, &other)); /* the wildcard has it */
    SAME(opt(a, SOL_SOCKET, SO_REUSEADDR, 1));
    SAME(opt(b, SOL_SOCKET, SO_REUSEADDR, 1));
    SAME(net->bind(world, b, &other));
    SAME(net->listen(world, a, 1));
    SAME(net->listen(world, b, 1));
    c = net->socket(world, AF_INET6, SOCK_STREAM);
    six.of.v6.sin6_addr = in6addr_any;
    six.of.v6.sin6_port = from.of.v4.sin_port;
    SAME(net->bind(world, c, &six));
    SAME(opt(c, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    SAME(net->bind(world, c, &six));
    SAME(opt(c, IPPROTO_IPV6, IPV6_V6ONLY, 0));
    SAME(net->close(world, a));
    SAME(net->close(world, b));
    SAME(net->close(world, c));
    a = net->socket(world, AF_INET, SOCK_STREAM);
    other.of.v4.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1 */
    SAME(net->bind(world, a, &other));
    SAME(net->listen(world, a, 1)); /* chooses a port */
    SAME(net->local_address(world, a, &from));
    SAME(from.of.v4.sin_port != 0);
    SAME(net->close(world, a));
}

/* A listener of IPv6 serves IPv4 too. */
static void
mapped_script(void)
{
    trpi_net_address any = loopback(AF_INET6), to = loopback(AF_INET), from, local;
    int server = net->socket(world, AF_INET6, SOCK_STREAM), made;
    int s = net->socket(world, AF_INET, SOCK_STREAM);

    any.of.v6.sin6_addr = in6addr_any;
    SAME(net->bind(world, server, &any));
    SAME(net->listen(world, server, 4));
    SAME(net->local_address(world, server, &local));
    to.of.v4.sin_port = local.of.v6.sin6_port;
    SAME(net->connect(world, s, &to));
    SAME((made = net->accept(world, server, &from)) >= 0);
    SAME(from.of.any.sa_family);
    SAME(IN6_IS_ADDR_V4MAPPED(&from.of.v6.sin6_addr));
    SAME(net->local_address(world, made, &from));
    SAME(IN6_IS_ADDR_V4MAPPED(&from.of.v6.sin6_addr));
    SAME(put(made, 9));
    SAME(get(s, 20));
    SAME(net->close(world, made));
    SAME(net->close(world, s));
    SAME(net->close(world, server));
}

static void
options_script(void)
{
    static const int names[][2] = {
        { SOL_SOCKET, SO_REUSEADDR },
        { SOL_SOCKET, SO_KEEPALIVE },
        { SOL_SOCKET, SO_BROADCAST },
        { SOL_SOCKET, SO_OOBINLINE },
        { SOL_SOCKET, SO_TYPE },
        { SOL_SOCKET, SO_DOMAIN },
        { SOL_SOCKET, SO_PROTOCOL },
        { SOL_SOCKET, SO_ACCEPTCONN },
        { SOL_SOCKET, SO_ERROR },
        { SOL_SOCKET, 9999 },
        { IPPROTO_TCP, TCP_NODELAY },
        { IPPROTO_TCP, TCP_KEEPIDLE },
        { IPPROTO_TCP, TCP_KEEPINTVL },
        { IPPROTO_TCP, TCP_KEEPCNT },
        { IPPROTO_TCP, TCP_CORK },
        { IPPROTO_TCP, TCP_USER_TIMEOUT },
        { IPPROTO_IP, IP_TTL },
        { IPPROTO_IP, IP_TOS },
        { IPPROTO_TCP, 9999 },
        { IPPROTO_IPV6, IPV6_V6ONLY },
        { IPPROTO_IPV6, IPV6_UNICAST_HOPS },
    };
    static const int values[] = { 1, 0, 7, -3, 40000, 300 };
    int type = (int)script_seed, s = net->socket(world, script_family, type);

    UNIT_REQUIRE(s >= 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        SAME(opt_get(s, names[i][0], names[i][1]));
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            bool tos = names[i][1] == IP_TOS && names[i][0] == IPPROTO_IP;

            if (!tos || (values[k] >= 0 && values[k] < 256)) {
                SAME(opt(s, names[i][0], names[i][1], values[k]));
                SAME(opt_get(s, names[i][0], names[i][1]));
            }
        }
        SAME(net->option_set(world, s, names[i][0], names[i][1], values, 1) < 0);
    }
    for (int name = SO_SNDBUF; name <= SO_RCVBUF; name++) {
        SAME(opt(s, SOL_SOCKET, name, 1));
        SAME(opt_get(s, SOL_SOCKET, name));
        SAME(opt(s, SOL_SOCKET, name, 20000));
        SAME(opt_get(s, SOL_SOCKET, name));
    }
    SAME(net->close(world, s));
}

static ssize_t
receive(int s, size_t bytes, trpi_net_address *ret_from, int *ret_flags)
{
    char text[128];
    struct iovec iov = { text, bytes };

    return net->receive(world, s, &iov, 1, ret_from, ret_flags);
}

static ssize_t
send_to(int s, size_t bytes, const trpi_net_address *to)
{
    static char text[70000];
    struct iovec iov = { text, bytes };

    return net->send(world, s, &iov, 1, to);
}

static void
datagram_script(void)
{
    trpi_net_address a_at, b_at, to = loopback(script_family), from;
    int a = net->socket(world, script_family, SOCK_DGRAM), flags = 0;
    int b = net->socket(world, script_family, SOCK_DGRAM);

    SAME(mask(a));
    SAME(receive(a, 10, &from, &flags));
    SAME(send_to(a, 10, NULL));
    SAME(peer(a));
    SAME(net->listen(world, a, 1));
    SAME(net->accept(world, a, &from));
    SAME(send_to(a, 10, &to)); /* to port 0 */
    SAME(net->bind(world, b, &to));
    SAME(net->local_address(world, b, &b_at));
    SAME(send_to(a, 66000, &b_at));
    SAME(send_to(a, 10, &b_at));
    SAME(send_to(a, 0, &b_at));
    SAME(send_to(a, 30, &b_at));
    SAME(mask(b));
    SAME(receive(b, 20, &from, &flags));
    SAME(flags);
    SAME(from.bytes);
    SAME(net->local_address(world, a, &a_at));
    SAME(from.of.v4.sin_port == a_at.of.v4.sin_port);
    SAME(receive(b, 20, &from, &flags));
    SAME(flags);
    SAME(receive(b, 20, &from, &flags));
    SAME(flags);
    SAME(receive(b, 20, &from, &flags));
    SAME(net->connect(world, a, &b_at));
    SAME(peer(a));
    SAME(put(a, 7));
    SAME(get(b, 20));
    SAME(net->shutdown(world, b, SHUT_WR));
    SAME(net->close(world, b));
    SAME(put(a, 7)); /* nobody has the port */
    SAME(mask(a));
    SAME(put(a, 7));
    SAME(mask(a));
    SAME(error_of(a));
    SAME(put(a, 7));
    SAME(mask(a) & TRPI_NET_END);
    SAME(get(a, 7));
    SAME(get(a, 7));
    SAME(net->shutdown(world, a, SHUT_WR));
    SAME(put(a, 7));
    SAME(mask(a));
    SAME(net->close(world, a));
}

/* A connection whose ends do what is drawn. */
/* ---- tests ----------------------------------------------------------------------------------- */

static void
ports_and_names_are_as_the_machines(void)
{
    both(names_script, 1);
    both(ports_script, 1);
    both(mapped_script, 1);
}

static void
options_are_as_the_machines(void)
{
    in_families(options_script, 3, SOCK_STREAM);
    in_families(options_script, 2, SOCK_DGRAM);
}

static void
datagrams_are_as_the_machines(void)
{
    in_families(datagram_script, 2, 1);
}

UNIT_BEGIN("sim_twin_option")
UNIT(ports_and_names_are_as_the_machines)
UNIT(options_are_as_the_machines)
UNIT(datagrams_are_as_the_machines)
UNIT_END
