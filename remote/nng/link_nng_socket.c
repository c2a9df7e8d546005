/* link_nng_socket.c - the socket below a stream, which nng's options do not reach.
 *
 * Why.   Heartbeats need two things of TCP that nng cannot ask for. When packets are lost, a
 *        connection that carries little waits twice as long before each further attempt: after five
 *        lost ones a heartbeat is seconds late. And data sent through a narrow link must not fill
 *        the queue in front of it (bottleneck.h).
 * Shape. nng does not tell the descriptor of a stream. The one whose two addresses are the stream's
 *        is its: the four numbers are unique in a host. New ones stand next to each other, so it is
 *        looked for around the last one, and among all only when it is not there.
 * Must hold.
 *   link-nng-socket-S1  The descriptor is used between open_stream and the end of the stream, under
 *       link->lock: nng closes it when the stream is freed (trpi_link_free_nng), and not before.
 *   link-nng-socket-S2  All is best effort. Without a descriptor, or on a kernel without an option,
 *       TCP's defaults apply.
 *   link-nng-socket-S3  The size of the kernel's send buffer is left alone: it is no bound (bytes
 *       appended to the last packet that was not sent are not counted), and once set it grows no
 *       more. So a write is held back (link_nng.c, held) until the kernel has room within the
 *       bound.
 *   link-nng-socket-S4  nng takes a socket for connected now and then while its SYN is on the way
 *       (a new one is "hung up" for epoll, and has no error). It has no peer's address then and is
 *       not found; it is looked for again before each of the next writes, which are short ones
 *       meanwhile.
 * Tests. tests/unit/remote/link_test.c, tests/multinode/bad_links.sh
 */
#include "remote/nng/link_nng_inner.h"

#include <dirent.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* since Linux 6.15 */
#endif

enum { NEAR = 32, RTO_MS_MAX = 1000, SEARCHES_MAX = 8 };

static atomic_int last_found = 16; /* relaxed: a hint */

typedef struct endpoint { /* IPv4 as mapped */
    uint8_t host[16];
    uint16_t port; /* in network order */
} endpoint;

static void
map_v4(endpoint *e, const void *four, uint16_t port)
{
    memset(e, 0, sizeof *e);
    e->host[10] = e->host[11] = 0xff;
    memcpy(e->host + 12, four, 4);
    e->port = port;
}

static bool
endpoint_of_stream(nng_stream *stream, const char *which, endpoint *e)
{
    nng_sockaddr a;
    memset(&a, 0, sizeof a);
    if (nng_stream_get_addr(stream, which, &a) != 0) {
        return false;
    }
    if (a.s_family == NNG_AF_INET) {
        map_v4(e, &a.s_in.sa_addr, a.s_in.sa_port);
        return true;
    }
    memset(e, 0, sizeof *e);
    memcpy(e->host, a.s_in6.sa_addr, sizeof e->host);
    e->port = a.s_in6.sa_port;
    return a.s_family == NNG_AF_INET6;
}

static bool
is_endpoint(const struct sockaddr_storage *a, const endpoint *want)
{
    endpoint is;
    memset(&is, 0, sizeof is);
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)a;
        map_v4(&is, &in->sin_addr, in->sin_port);
    } else if (a->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
        memcpy(is.host, &in6->sin6_addr, sizeof is.host);
        is.port = in6->sin6_port;
    }
    return memcmp(is.host, want->host, sizeof is.host) == 0 && is.port == want->port;
}

static bool
is_between(int fd, const endpoint *here, const endpoint *there)
{
    struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
    socklen_t bytes = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &bytes) != 0 || !is_endpoint(&a, here)) {
        return false;
    }
    a.ss_family = AF_UNSPEC;
    bytes = sizeof a;
    return getpeername(fd, (struct sockaddr *)&a, &bytes) == 0 && is_endpoint(&a, there);
}

static int
find_among_all(const endpoint *here, const endpoint *there)
{
    DIR *all = opendir("/proc/self/fd");
    int found = -1;
    const struct dirent *entry;
    while (all != NULL && found < 0 && (entry = readdir(all)) != NULL) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        bool number = *end == '\0' && end != entry->d_name;
        found = number && is_between((int)fd, here, there) ? (int)fd : -1;
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return found;
}

static int
find_socket(nng_stream *stream)
{
    endpoint here, there;
    if (!endpoint_of_stream(stream, NNG_OPT_LOCADDR, &here) ||
        !endpoint_of_stream(stream, NNG_OPT_REMADDR, &there)) {
        return -1;
    }
    int last = atomic_load_explicit(&last_found, memory_order_relaxed), found = -1;
    for (int fd = last > NEAR ? last - NEAR : 0; fd < last + NEAR && found < 0; fd++) {
        found = is_between(fd, &here, &there) ? fd : -1;
    }
    found = found >= 0 ? found : find_among_all(&here, &there);
    if (found >= 0) {
        atomic_store_explicit(&last_found, found, memory_order_relaxed);
    }
    return found;
}

static bool
set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static bool
look_at(int fd, trpi_bottleneck *look)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    int queued = 0;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        ioctl(fd, SIOCOUTQ, &queued) != 0) {
        return false;
    }
    memset(look, 0, sizeof *look);
    look->in_kernel = queued > 0 ? (uint32_t)queued : 0;
    look->rtt_us = info.tcpi_rtt;
    look->min_rtt_us = info.tcpi_min_rtt; /* 0 on a kernel that does not tell it */
    return true;
}

void
trpi_link_socket_open(trpi_link *link)
{
    trpi_bottleneck look;
    link->searches++;
    link->socket = find_socket(link->stream);
    uint64_t handed = link->bottleneck.handed;
    link->bottleneck = (trpi_bottleneck_state){ .handed = handed };
    if (link->socket < 0) {
        return; /* link-nng-socket-S2 */
    }
    (void)set_int(link->socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
    (void)set_int(link->socket, IPPROTO_TCP, TCP_RTO_MAX_MS, RTO_MS_MAX);
    if (look_at(link->socket, &look)) {
        trpi_bottleneck_begin(&link->bottleneck, look.rtt_us);
        link->bottleneck.handed = handed;
    }
}

size_t
trpi_link_socket_room(trpi_link *link)
{
    if (link->socket < 0 && link->searches < SEARCHES_MAX) { /* link-nng-socket-S4 */
        trpi_link_socket_open(link);
        if (link->socket < 0) {
            return TRPI_BOTTLENECK_BYTES_MIN;
        }
    }
    uint64_t now_ns = link->socket < 0 ? 0 : trpi_world_mono_ns(link->transport->world);
    trpi_bottleneck look;
    if (link->socket < 0 || !trpi_bottleneck_is_asked(&link->bottleneck, now_ns) ||
        !look_at(link->socket, &look)) {
        return SIZE_MAX;
    }
    return trpi_bottleneck_allow(&link->bottleneck, &look, now_ns);
}
