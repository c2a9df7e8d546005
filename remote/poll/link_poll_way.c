/* link_poll_way.c - the options of a link's socket, and how much the kernel may hold of the link
 * (remote/wire/bottleneck.h).
 *
 * Must hold.
 *   link-poll-way-W1  All is best effort: where the kernel (or the simulated network) has no
 *       TCP_INFO, nothing is bounded.
 * Tests. tests/unit/remote/poll_test.c, tests/multinode/bad_links.sh
 */
#include "remote/poll/link_poll_inner.h"

#include <linux/tcp.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* since Linux 6.15 */
#endif

enum { RTO_MS_MAX = 1000 };

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
    if (look_at(link, &look, &way->acked_base)) {
        trpi_bottleneck_begin(&way->bottleneck, look.rtt_us);
    }
}

size_t
trpi_link_way_room(trpi_link *link)
{
    trpi_link_way *way = &link->way;
    trpi_bottleneck look;
    uint64_t now_ns = trpi_world_mono_ns(link->transport->world), acked = 0;
    if (link->own || /* link-poll-control-C2 */
        !trpi_bottleneck_is_asked(&way->bottleneck, now_ns) || !look_at(link, &look, &acked)) {
        return SIZE_MAX;
    }
    uint64_t held = way->bottleneck.handed - (acked - way->acked_base);
    look.in_kernel = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
    return trpi_bottleneck_allow(&way->bottleneck, &look, now_ns);
}
