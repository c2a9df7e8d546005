/* sim_local.c - Unix-domain streams of a simulated host: what one end does the other sees at once.
 *
 * Why.     The answers follow Linux call by call (unix_stream_connect, unix_stream_sendmsg,
 *          unix_stream_read_generic, unix_release_sock, unix_shutdown and unix_poll of Linux 6.1).
 */
#include <errno.h>

#include "sim/sim_socket.h"

static bool
local_is_writable(const sim_socket *s)
{
    return s->state != SIM_CONNECTED || s->peer->in.count * 4 <= trpi_sim_buffer(s, SO_SNDBUF) / 2;
}

uint32_t
trpi_sim_local_mask(sim_socket *s)
{
    uint32_t mask = 0;

    if (s->error != 0 || s->shut == SIM_SHUT_BOTH || s->state == SIM_CLOSED) {
        mask |= TRPI_NET_END;
    }
    if ((s->shut & SIM_SHUT_READ) != 0) {
        mask |= TRPI_NET_IN | TRPI_NET_DRAIN;
    } else if (s->in.arrived > 0 || s->accepted.count > 0) {
        mask |= TRPI_NET_IN;
    }
    if (s->state == SIM_LISTENING) {
        return mask;
    }
    if (local_is_writable(s)) {
        mask |= TRPI_NET_OUT;
    } else {
        s->full = true;
    }
    return mask;
}

static bool
is_name(const trpi_net_address *address)
{
    return address->bytes > sizeof(sa_family_t) && address->bytes <= sizeof address->of.local &&
           address->of.any.sa_family == AF_UNIX;
}

int
trpi_sim_local_connect(sim_socket *s, const trpi_net_address *address)
{
    sim_socket *listener, *made = NULL;
    sim_name *name = is_name(address) ? trpi_sim_name_find(s->net, s->host, address) : NULL;
    int result;

    if (name == NULL) {
        return !is_name(address)                       ? -EINVAL
               : address->of.local.sun_path[0] == '\0' ? -ECONNREFUSED
                                                       : -ENOENT;
    }
    listener = name->socket;
    if (listener->state != SIM_LISTENING || (listener->shut & SIM_SHUT_READ) != 0) {
        return -ECONNREFUSED;
    }
    if (listener->accepted.count > listener->backlog) {
        return -EAGAIN;
    }
    if (s->state != SIM_CLOSED) {
        return s->state == SIM_CONNECTED ? -EISCONN : -EINVAL;
    }
    result = trpi_sim_socket_new(s->net, s->host, AF_UNIX, SOCK_STREAM, &made);
    if (result != 0) {
        return result;
    }
    made->state = s->state = SIM_CONNECTED;
    made->local = s->remote = listener->local;
    made->remote = s->local;
    made->peer = s;
    s->references++;
    s->peer = made;
    made->references++;
    trpi_sim_buffers_draw(made);
    trpi_sim_accepted_put(listener, made);
    trpi_sim_wake(s);
    return 0;
}

ssize_t
trpi_sim_local_read(sim_socket *s, const struct iovec *iov, int count)
{
    size_t bytes = trpi_sim_iov_bytes(iov, count);

    if (s->state != SIM_CONNECTED) {
        return -EINVAL;
    }
    if (s->in.arrived > 0) {
        bytes = bytes < s->in.arrived ? bytes : s->in.arrived;
        trpi_sim_flow_take(&s->in, iov, bytes);
        if (s->peer->full && local_is_writable(s->peer)) {
            s->peer->full = false;
            trpi_sim_wake(s->peer);
        }
        return (ssize_t)bytes;
    }
    if (s->error != 0) {
        return trpi_sim_error_take(s);
    }
    return (s->shut & SIM_SHUT_READ) != 0 ? 0 : -EAGAIN;
}

ssize_t
trpi_sim_local_write(sim_socket *s, const struct iovec *iov, int count)
{
    size_t bytes = trpi_sim_iov_bytes(iov, count), most = trpi_sim_buffer(s, SO_SNDBUF), room;
    sim_socket *peer = s->peer;

    if (s->state != SIM_CONNECTED) {
        return -ENOTCONN;
    }
    if ((s->shut & SIM_SHUT_WRITE) != 0) {
        return -EPIPE;
    }
    if (bytes > 0 && s->error != 0) {
        return trpi_sim_error_take(s);
    }
    if (bytes > 0 && (peer->state == SIM_CLOSED || (peer->shut & SIM_SHUT_READ) != 0)) {
        return -EPIPE;
    }
    room = peer->in.count < most ? most - peer->in.count : 0;
    room = bytes < room ? bytes : room;
    if (room > 0 && !trpi_sim_flow_append(&peer->in, iov, room)) {
        return -ENOBUFS;
    }
    peer->in.arrived += room;
    s->full = s->full || room < bytes;
    if (room > 0) {
        trpi_sim_wake(peer);
    }
    return room == 0 && bytes > 0 ? -EAGAIN : (ssize_t)room;
}

int
trpi_sim_local_shutdown(sim_socket *s, uint32_t how)
{
    s->shut |= how;
    if (s->state == SIM_CONNECTED) {
        s->peer->shut |= ((how & SIM_SHUT_READ) != 0 ? SIM_SHUT_WRITE : 0u) |
                         ((how & SIM_SHUT_WRITE) != 0 ? SIM_SHUT_READ : 0u);
        trpi_sim_wake(s->peer);
    }
    trpi_sim_wake(s);
    return 0;
}

/* An end of a connection is gone. */
static void
local_part(sim_socket *s, bool reset)
{
    s->state = SIM_CLOSED;
    if (s->peer != NULL) {
        s->peer->shut = SIM_SHUT_BOTH;
        if (reset) {
            s->peer->error = ECONNRESET;
        }
        trpi_sim_wake(s->peer);
    }
    trpi_sim_detach(s);
}

void
trpi_sim_local_close(sim_socket *s)
{
    sim_socket *waiting;

    while ((waiting = trpi_sim_accepted_take(s)) != NULL) {
        local_part(waiting, true);
        trpi_sim_socket_unref(waiting);
    }
    trpi_sim_name_release(s);
    local_part(s, s->in.arrived > 0);
}
