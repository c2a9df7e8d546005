/* link_poll_way.c - the options of a link's socket, and how much the kernel may hold of the link
 * (remote/nng/bottleneck.h, as the other driver; its reasons stand in link_nng_socket.c).
 *
 * Must hold.
 *   link-poll-way-W1  All is best effort: where the kernel (or the simulated network) has no
 *       TCP_INFO, nothing is bounded.
 * Tests. tests/unit/remote/poll_test.c, tests/multinode/bad_links.sh
 */
#include "remote/poll/link_poll_inner.h"

#include <linux/tcp.h>

#include "remote/nng/bottleneck.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* since Linux 6.15 */
#endif

enum { RTO_MS_MAX = 1000, STALE_WAITS = 3 };

static void
option_set(const trpi_link *link, int level, int name, int value)
{
    const trpi_transport *transport = link->transport;
    (void)transport->net->option_set(transport->world, link->socket, level, name, &value,
                                     sizeof value); /* link-poll-way-W1 */
}

/* false: it is not known. *ret_acked: of all bytes ever. */
static bool
look_at(const trpi_link *link, trpi_bottleneck *look, uint64_t *ret_acked)
{
    const trpi_transport *transport = link->transport;
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    memset(&info, 0, sizeof info);
    if (transport->net->option_get(transport->world, link->socket, IPPROTO_TCP, TCP_INFO, &info,
                                   &bytes) < 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) {
        return false;
    }
    memset(look, 0, sizeof *look);
    look->rtt_us = info.tcpi_rtt;
    look->min_rtt_us = info.tcpi_min_rtt; /* 0 on a kernel that does not tell it */
    *ret_acked = info.tcpi_bytes_acked;
    return true;
}

void
trpi_link_way_open(trpi_link *link)
{
    trpi_bottleneck look;
    trpi_link_way *way = &link->way;
    memset(way, 0, sizeof *way);
    option_set(link, IPPROTO_TCP, TCP_NODELAY, 1);
    option_set(link, SOL_SOCKET, SO_KEEPALIVE, 1);
    option_set(link, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
    option_set(link, IPPROTO_TCP, TCP_RTO_MAX_MS, RTO_MS_MAX);
    way->limit = look_at(link, &look, &way->acked_base) ? trpi_bottleneck_first(look.rtt_us) : 0;
}

/* Between two looks, when it had something to send all the time; 0: it is not known. */
static uint64_t
rate_of(trpi_link_way *way, const trpi_bottleneck *look, uint64_t now_ns)
{
    uint64_t acked = way->handed - look->in_kernel, rate = 0;
    uint64_t wait_ns = (uint64_t)trpi_bottleneck_wait_us(look, way->limit) * 1000u;
    uint64_t elapsed_ns = now_ns - way->looked_ns;
    if ((way->was_held || way->was_busy) && elapsed_ns < STALE_WAITS * wait_ns) {
        rate = (acked - way->acked) * 1000u / (elapsed_ns / 1000000u + 1);
    }
    way->acked = acked;
    way->looked_ns = now_ns;
    way->was_busy = look->in_kernel > 0;
    return rate;
}

size_t
trpi_link_way_room(trpi_link *link)
{
    trpi_link_way *way = &link->way;
    trpi_bottleneck look;
    uint64_t now_ns = trpi_world_mono_ns(link->transport->world), acked = 0;
    if ((way->limit == 0 && now_ns < way->look_ns) || !look_at(link, &look, &acked)) {
        return SIZE_MAX;
    }
    uint64_t held = way->handed - (acked - way->acked_base);
    look.in_kernel = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
    if (now_ns >= way->look_ns) {
        look.rate = rate_of(way, &look, now_ns);
        look.held = way->was_held;
        way->was_held = false;
        way->limit = trpi_bottleneck_limit(&look, way->limit);
        way->look_ns = now_ns + (uint64_t)trpi_bottleneck_wait_us(&look, way->limit) * 1000u;
    }
    size_t room = trpi_bottleneck_room(&look, way->limit);
    way->was_held = way->was_held || room == 0;
    return room;
}
