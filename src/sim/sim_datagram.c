/* sim_datagram.c - UDP of the simulated network: each datagram is an event of its own, so that
 * delays change their order; chance loses and doubles them.
 *
 * Sources. udp_sendmsg, udp_recvmsg and datagram_poll of Linux 6.1.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/sim_socket.h"

#define BYTES_MAX_V4 65507u
#define BYTES_MAX_V6 65527u

uint32_t
trpi_sim_datagram_mask(sim_socket *s)
{
    uint32_t mask = s->error != 0 || s->shut == SIM_SHUT_BOTH ? TRPI_NET_END : 0;

    if ((s->shut & SIM_SHUT_READ) != 0 || s->received.count > 0) {
        mask |= TRPI_NET_IN;
    }
    if (s->sending * 2 < trpi_sim_buffer(s, SO_SNDBUF)) {
        mask |= TRPI_NET_OUT;
    } else {
        s->full = true;
    }
    return mask;
}

int
trpi_sim_datagram_connect(sim_socket *s, const trpi_net_address *address)
{
    uint32_t host = 0;
    int result;

    if (address->bytes >= sizeof(sa_family_t) && address->of.any.sa_family == AF_UNSPEC) {
        s->remote.bytes = 0;
        return 0;
    }
    result = trpi_sim_host_of(s, address, &host);
    if (result == 0 && s->local.bytes == 0) {
        result = trpi_sim_bind_some(s, address);
    }
    if (result == 0) {
        s->remote = *address;
        trpi_sim_address_complete(s);
    }
    return result;
}

static int
send_check(sim_socket *s, size_t bytes, const trpi_net_address *to)
{
    uint32_t host = 0;
    int result;

    if (bytes > (s->family == AF_INET ? BYTES_MAX_V4 : BYTES_MAX_V6)) {
        return -EMSGSIZE;
    }
    if (to == NULL) {
        return -EDESTADDRREQ;
    }
    result = trpi_sim_host_of(s, to, &host);
    if (result == 0 && trpi_sim_port(to) == 0) {
        result = -EINVAL;
    }
    if (result == 0 && s->error != 0) {
        result = trpi_sim_error_take(s);
    }
    if (result == 0 && (s->shut & SIM_SHUT_WRITE) != 0) {
        result = -EPIPE;
    }
    if (result == 0 && s->local.bytes == 0) {
        result = trpi_sim_bind_some(s, to);
    }
    return result;
}

/* From where a receiver sees it come. */
static trpi_net_address
source_of(sim_socket *s, const trpi_net_address *to)
{
    trpi_net_address local = s->local, remote = s->remote, source;

    s->remote = *to;
    trpi_sim_address_complete(s);
    source = s->local;
    s->local = local;
    s->remote = remote;
    return source;
}

static void
datagram_fly(sim_socket *s, sim_event *event, uint32_t to_host)
{
    trpi_sim_net *net = s->net;
    trpi_mem_verdict verdict = trpi_sim_link(net, s, to_host, trpi_sim_port(&event->address), false,
                                             event->datagram->bytes, &event->due_ns);
    bool lost = to_host != s->host && trpi_sim_chance(net, net->faults.lost);

    if (verdict != TRPI_MEM_PASS || lost) {
        trpi_free(event->datagram);
        return;
    }
    s->sending += event->datagram->bytes;
    trpi_sim_event_add(net, event);
}

static sim_datagram *
datagram_new(const struct iovec *iov, int count, const trpi_net_address *from)
{
    sim_datagram *datagram = trpi_alloc(sizeof *datagram + trpi_sim_iov_bytes(iov, count));

    for (int i = 0; i < count && datagram != NULL; i++) {
        if (iov[i].iov_len > 0) {
            memcpy(datagram->data + datagram->bytes, iov[i].iov_base, iov[i].iov_len);
        }
        datagram->bytes += iov[i].iov_len;
    }
    if (datagram != NULL) {
        datagram->from = *from;
    }
    return datagram;
}

ssize_t
trpi_sim_datagram_send(sim_socket *s, const struct iovec *iov, int count,
                       const trpi_net_address *to)
{
    trpi_sim_net *net = s->net;
    size_t bytes = trpi_sim_iov_bytes(iov, count);
    sim_event event = { .kind = SIM_EVENT_DATAGRAM, .socket = s, .host_a = s->host };
    trpi_net_address from;
    uint32_t host = 0, copies = 1;
    int result;

    to = to == NULL && s->remote.bytes != 0 ? &s->remote : to;
    result = send_check(s, bytes, to);
    if (result != 0) {
        return result;
    }
    if (s->sending > 0 && s->sending + bytes > trpi_sim_buffer(s, SO_SNDBUF)) {
        s->full = true;
        return -EAGAIN;
    }
    (void)trpi_sim_host_of(s, to, &host); /* send_check() has looked at it */
    if (host == TRPI_SIM_HOSTS_MAX) {
        return (ssize_t)bytes;
    }
    from = source_of(s, to);
    event.address = *to;
    event.host_b = host;
    copies += host != s->host && trpi_sim_chance(net, net->faults.duplicated);
    for (; copies > 0; copies--) {
        event.datagram = trpi_sim_events_reserve(net, 1) ? datagram_new(iov, count, &from) : NULL;
        if (event.datagram == NULL) {
            return -ENOBUFS;
        }
        datagram_fly(s, &event, host);
    }
    return (ssize_t)bytes;
}

/* Nobody has the port: a connected sender is told so. */
static void
sender_refuse(sim_socket *s, const trpi_net_address *to)
{
    if (s->open && s->remote.bytes != 0 && trpi_sim_port(&s->remote) == trpi_sim_port(to)) {
        s->error = ECONNREFUSED;
        trpi_sim_wake(s);
    }
}

void
trpi_sim_datagram_event(sim_event *event)
{
    sim_socket *s = event->socket, *to;
    sim_datagram *datagram = event->datagram, *last;

    s->sending -= datagram->bytes;
    if (s->full && s->sending * 2 < trpi_sim_buffer(s, SO_SNDBUF)) {
        s->full = false;
        trpi_sim_wake(s);
    }
    to = trpi_sim_place_find(s->net, event->host_b, SOCK_DGRAM, &event->address, &datagram->from);
    if (to == NULL) {
        sender_refuse(s, &event->address);
    }
    if (to == NULL || (to->received.count > 0 &&
                       to->received.bytes + datagram->bytes > trpi_sim_buffer(to, SO_RCVBUF))) {
        trpi_free(datagram);
        return;
    }
    last = to->received.last;
    if (to->received.count == 0) {
        to->received.first = datagram;
    } else {
        last->next = datagram;
    }
    to->received.last = datagram;
    to->received.count++;
    to->received.bytes += datagram->bytes;
    trpi_sim_wake(to);
}

ssize_t
trpi_sim_datagram_receive(sim_socket *s, const struct iovec *iov, int count,
                          trpi_net_address *ret_from, int *ret_flags)
{
    sim_datagram *datagram = s->received.first;
    size_t at = 0;

    if (s->error != 0) {
        return trpi_sim_error_take(s);
    }
    if (datagram == NULL) {
        return -EAGAIN;
    }
    for (int i = 0; i < count && at < datagram->bytes; i++) {
        size_t part = datagram->bytes - at;

        part = iov[i].iov_len < part ? iov[i].iov_len : part;
        memcpy(iov[i].iov_base, datagram->data + at, part);
        at += part;
    }
    *ret_from = trpi_sim_address_as(&datagram->from, s->family);
    *ret_flags = at < datagram->bytes ? MSG_TRUNC : 0;
    s->received.first = datagram->next;
    s->received.count--;
    s->received.bytes -= datagram->bytes;
    trpi_free(datagram);
    return (ssize_t)at;
}

int
trpi_sim_datagram_shutdown(sim_socket *s, uint32_t how)
{
    s->shut |= how;
    trpi_sim_wake(s);
    return s->remote.bytes != 0 ? 0 : -ENOTCONN;
}

void
trpi_sim_datagram_close(sim_socket *s)
{
    trpi_sim_place_remove(s);
    trpi_sim_port_release(s);
}
