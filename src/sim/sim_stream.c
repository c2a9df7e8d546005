/* sim_stream.c - TCP of the simulated network.
 *
 * Why.     The answers follow Linux call by call (tcp_poll, tcp_sendmsg, tcp_recvmsg, tcp_close,
 *          tcp_reset and inet_stream_connect of Linux 6.1): a program that handles them here
 *          handles them there.
 * Shape.   connect: DIAL -> the listener's queue, ESTABLISHED -> the dialler; or FAIL
 *          write:   into the flow of the peer; BYTES move a part of it to what has arrived, as far
 *                   as the receiver's buffer has room
 *          END goes behind the bytes, RESET behind those that are on their way.
 *          A closed socket lives on without its number until its connection has ended.
 * Must hold.
 *   sim-stream-S1  The due times of one direction never decrease (sim-net-N2).
 *   sim-stream-S2  A writer that found no room is woken when a third of its buffer is free.
 */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "sim/sim_socket.h"

#define SECOND_NS 1000000000ull
#define DIALS_MAX 6u /* then a connect has timed out, as with net.ipv4.tcp_syn_retries = 6 */
#define NOBODY_NS (3u * SECOND_NS)
#define TIME_WAIT_NS (60u * SECOND_NS)
#define SQUEEZED_NS 2000000u
#define BACKLOG_MAX 4096u /* net.core.somaxconn */
#define FILE_BYTES 65536u

/* ---- the end of a connection ----------------------------------------------------------------- */

int
trpi_sim_error_take(sim_socket *s)
{
    int error = s->error;

    s->error = 0;
    return -error;
}

static bool
is_needed(const sim_socket *s)
{
    return s->open || s->embryo || s->state != SIM_CLOSED;
}

void
trpi_sim_detach(sim_socket *s)
{
    sim_socket *peer = s->peer;

    if (!s->open && s->state == SIM_CLOSED && !s->time_waits) {
        trpi_sim_port_release(s);
    }
    if (peer != NULL && !is_needed(s) && !is_needed(peer)) {
        s->references++;
        s->peer = NULL;
        if (peer->peer == s) {
            peer->peer = NULL;
            trpi_sim_socket_unref(s);
        }
        trpi_sim_socket_unref(peer);
        trpi_sim_socket_unref(s);
    }
}

static void
stream_fail(sim_socket *s, int error)
{
    s->error = error;
    s->state = SIM_CLOSED;
    s->shut = SIM_SHUT_BOTH;
    trpi_sim_flow_cut(&s->in);
    trpi_sim_wake(s);
    trpi_sim_detach(s);
}

/* Of the listener, in both directions. */
static uint16_t
link_port(const sim_socket *s)
{
    return trpi_sim_port(s->dialled ? &s->remote : &s->local);
}

static void
event_send(sim_socket *to, enum sim_event_kind kind, size_t what, uint64_t due_ns)
{
    sim_event event = { .due_ns = due_ns,
                        .kind = kind,
                        .socket = to,
                        .what = what,
                        .host_a = to->host,
                        .host_b = to->peer != NULL ? to->peer->host : to->host };

    trpi_sim_event_add(to->net, &event);
}

/* To the peer, behind what is on its way. Bytes that wait are lost. */
static void
reset_send(sim_socket *from)
{
    sim_socket *to = from->peer;
    uint64_t due_ns;

    if (to == NULL || to->state == SIM_CLOSED) {
        return;
    }
    (void)trpi_sim_link(from->net, from, to->host, link_port(from), false, 0, &due_ns);
    to->in.due_ns = due_ns > to->in.due_ns ? due_ns : to->in.due_ns;
    to->in.count = to->in.arrived + to->in.flying;
    event_send(to, SIM_EVENT_RESET, 0, to->in.due_ns);
}

static void
on_reset(sim_socket *s)
{
    sim_socket *peer = s->peer;
    bool ended_by_peer_only = s->in.end_arrived && (s->shut & SIM_SHUT_WRITE) == 0;

    if (peer != NULL) {
        peer->references++; /* to part them may end it */
    }
    if (s->state != SIM_CLOSED) {
        stream_fail(s, s->state == SIM_CONNECTING ? ECONNREFUSED
                       : ended_by_peer_only       ? EPIPE
                                                  : ECONNRESET);
    }
    if (peer != NULL && peer->peer == s && peer->state != SIM_CLOSED && !peer->open &&
        !peer->embryo) {
        peer->state = SIM_CLOSED; /* its last words have found nobody */
        trpi_sim_detach(peer);
    }
    if (peer != NULL) {
        trpi_sim_socket_unref(peer);
    }
}

void
trpi_sim_stream_reset(sim_socket *s)
{
    trpi_sim_net *net = s->net;

    s->references++;
    if (trpi_sim_events_reserve(net, 0)) {
        reset_send(s);
    }
    on_reset(s);
    trpi_sim_socket_unref(s); /* nobody may have it any more */
    trpi_sim_advance(net);
}

/* ---- bytes on their way ---------------------------------------------------------------------- */

static size_t
flow_waiting(const sim_flow *flow)
{
    return flow->count - flow->arrived - flow->flying;
}

static size_t
send_room(const sim_socket *s)
{
    const sim_flow *flow = &s->peer->in;
    size_t used = flow->count - flow->arrived, most = trpi_sim_buffer(s, SO_SNDBUF);

    return flow->squeezed || used > most ? 0 : most - used;
}

static bool
is_writable(const sim_socket *s)
{
    return send_room(s) * 3 >= trpi_sim_buffer(s, SO_SNDBUF);
}

/* How much of what waits may go now. */
static size_t
segment_of(const sim_socket *from, const sim_socket *to)
{
    const sim_flow *flow = &to->in;
    size_t window = trpi_sim_buffer(to, SO_RCVBUF), used = flow->arrived + flow->flying;
    size_t bytes = flow_waiting(flow);

    if (to->open || to->embryo) { /* else it will be reset: its end must not wait for a reader */
        window = used < window ? window - used : 0;
        bytes = bytes < window ? bytes : window;
    }
    if (bytes > 1 && trpi_sim_chance(from->net, from->net->faults.partial)) {
        bytes = 1 + trpi_sim_draw(from->net) % bytes;
    }
    return bytes;
}

/* The link's word about what goes out; false: nothing goes. */
static bool
link_lets(sim_socket *from, sim_socket *to, size_t bytes)
{
    trpi_sim_net *net = from->net;
    uint64_t due_ns;
    trpi_mem_verdict verdict =
        trpi_sim_link(net, from, to->host, link_port(from), false, bytes, &due_ns);

    to->in.due_ns = due_ns > to->in.due_ns ? due_ns : to->in.due_ns; /* sim-stream-S1 */
    if (verdict == TRPI_MEM_CUT) {
        event_send(from, SIM_EVENT_RESET, 0, trpi_sim_now(net));
        reset_send(from);
        to->in.broken = true;
    } else if (verdict == TRPI_MEM_DROP) {
        event_send(from, SIM_EVENT_FAIL, ETIMEDOUT, trpi_sim_now(net) + trpi_sim_patience_ns(from));
        to->in.broken = true;
    }
    return verdict == TRPI_MEM_PASS;
}

static void
flow_transmit(sim_socket *from)
{
    trpi_sim_net *net = from->net;
    sim_socket *to = from->peer;
    sim_flow *flow = &to->in;

    while (!flow->broken && flow_waiting(flow) > 0) {
        size_t bytes = segment_of(from, to);

        if (bytes == 0 || !trpi_sim_events_reserve(net, 1) || !link_lets(from, to, bytes)) {
            break;
        }
        flow->flying += bytes;
        event_send(to, SIM_EVENT_BYTES, bytes, flow->due_ns);
        if (from->host != to->host && trpi_sim_chance(net, net->faults.reset)) {
            event_send(from, SIM_EVENT_RESET, 0, flow->due_ns);
            reset_send(from);
            flow->broken = true;
        }
    }
    if (flow->end_written && !flow->end_flying && !flow->broken && flow_waiting(flow) == 0 &&
        link_lets(from, to, 0)) {
        flow->end_flying = true;
        event_send(to, SIM_EVENT_END, 0, flow->due_ns);
    }
}

static void
on_bytes(sim_socket *s, size_t bytes)
{
    sim_socket *peer = s->peer;
    bool deaf = !s->open && !s->embryo;

    deaf = deaf || (s->shut == SIM_SHUT_BOTH && !s->in.end_arrived);
    if (s->state == SIM_CLOSED || deaf) {
        reset_send(s);
        if (s->state != SIM_CLOSED) {
            stream_fail(s, ECONNRESET);
        }
        return;
    }
    s->in.flying -= bytes;
    s->in.arrived += bytes;
    trpi_sim_wake(s);
    if (peer->full && is_writable(peer)) { /* sim-stream-S2 */
        peer->full = false;
        trpi_sim_wake(peer);
    }
    flow_transmit(peer);
}

static void
on_end(sim_socket *s)
{
    sim_socket *peer = s->peer;

    if (s->state == SIM_CLOSED) {
        reset_send(s);
        return;
    }
    s->in.end_arrived = true;
    s->shut |= SIM_SHUT_READ;
    if (peer->in.end_arrived) { /* its own arrived first: it holds the port for a while */
        s->state = peer->state = SIM_CLOSED;
        s->time_waits = true;
        event_send(s, SIM_EVENT_FREE, 0, trpi_sim_now(s->net) + TIME_WAIT_NS);
        trpi_sim_wake(peer);
        s->references++;
        trpi_sim_detach(peer);
        trpi_sim_wake(s);
        trpi_sim_detach(s);
        trpi_sim_socket_unref(s);
        return;
    }
    trpi_sim_wake(s);
}

/* ---- connections ----------------------------------------------------------------------------- */

void
trpi_sim_accepted_put(sim_socket *listener, sim_socket *s)
{
    sim_socket *last = listener->accepted.last;

    s->embryo = true;
    if (last == NULL) {
        listener->accepted.first = s;
    } else {
        last->accept_next = s;
    }
    listener->accepted.last = s;
    listener->accepted.count++;
    trpi_sim_wake(listener);
}

sim_socket *
trpi_sim_accepted_take(sim_socket *listener)
{
    sim_socket *s = listener->accepted.first;

    if (s != NULL) {
        listener->accepted.first = s->accept_next;
        listener->accepted.count--;
        if (listener->accepted.first == NULL) {
            listener->accepted.last = NULL;
        }
        s->accept_next = NULL;
        s->embryo = false;
    }
    return s;
}

static void
socket_dial_again(sim_socket *s)
{
    uint64_t wait_ns = SECOND_NS << s->tries;
    uint64_t now_ns = s->net->advancing ? s->net->event_ns : trpi_sim_now(s->net);
    bool last = s->tries == DIALS_MAX;

    s->tries++;
    event_send(s, last ? SIM_EVENT_FAIL : SIM_EVENT_DIAL, last ? ETIMEDOUT : 1, now_ns + wait_ns);
}

static void
socket_dial(sim_socket *s)
{
    trpi_sim_net *net = s->net;
    uint32_t host = TRPI_SIM_HOSTS_MAX;
    uint64_t due_ns = 0;
    trpi_mem_verdict verdict = TRPI_MEM_PASS;

    (void)trpi_sim_host_of(s, &s->remote, &host); /* connect has looked at it */
    if (host == TRPI_SIM_HOSTS_MAX) {
        event_send(s, SIM_EVENT_FAIL, EHOSTUNREACH, trpi_sim_now(net) + NOBODY_NS);
        return;
    }
    verdict = trpi_sim_link(net, s, host, trpi_sim_port(&s->remote), true, 0, &due_ns);
    if (host != s->host && trpi_sim_chance(net, net->faults.refused)) {
        verdict = trpi_sim_draw(net) % 2 == 0 ? TRPI_MEM_CUT : TRPI_MEM_DROP;
    }
    if (verdict == TRPI_MEM_CUT) {
        event_send(s, SIM_EVENT_FAIL, ECONNREFUSED, due_ns);
    } else if (verdict == TRPI_MEM_DROP) {
        socket_dial_again(s);
    } else {
        sim_event event = {
            .due_ns = due_ns, .kind = SIM_EVENT_DIAL, .socket = s, .host_a = s->host, .host_b = host
        };

        trpi_sim_event_add(net, &event);
    }
}

static void
on_dial(sim_socket *s)
{
    trpi_sim_net *net = s->net;
    uint32_t host = TRPI_SIM_HOSTS_MAX;
    sim_socket *listener, *made = NULL;
    uint64_t due_ns;

    if (s->state != SIM_CONNECTING || !s->open) {
        return;
    }
    (void)trpi_sim_host_of(s, &s->remote, &host);
    listener = trpi_sim_place_find(net, host, SOCK_STREAM, &s->remote, NULL);
    if (listener == NULL) {
        stream_fail(s, ECONNREFUSED);
        return;
    }
    if (listener->accepted.count > listener->backlog ||
        trpi_sim_socket_new(net, host, listener->family, SOCK_STREAM, &made) != 0) {
        socket_dial_again(s); /* the machine drops the packet */
        return;
    }
    made->state = SIM_CONNECTED;
    made->local = trpi_sim_address_as(&s->remote, made->family);
    made->remote = trpi_sim_address_as(&s->local, made->family);
    made->peer = s;
    s->references++;
    s->peer = made;
    made->references++;
    trpi_sim_options_inherit(made, listener);
    trpi_sim_buffers_draw(made);
    trpi_sim_port_hold(made);
    trpi_sim_accepted_put(listener, made);
    (void)trpi_sim_link(net, made, s->host, trpi_sim_port(&s->remote), false, 0, &due_ns);
    s->in.due_ns = due_ns;
    event_send(s, SIM_EVENT_ESTABLISHED, 0, due_ns);
}

void
trpi_sim_stream_event(sim_event *event)
{
    sim_socket *s = event->socket;

    switch (event->kind) {
    case SIM_EVENT_DIAL:
        if (event->what == 0) {
            on_dial(s);
        } else if (s->state == SIM_CONNECTING) {
            socket_dial(s);
        }
        break;
    case SIM_EVENT_ESTABLISHED:
        if (s->state == SIM_CONNECTING) {
            s->state = SIM_CONNECTED;
            trpi_sim_wake(s);
        }
        break;
    case SIM_EVENT_FAIL:
        if (s->state != SIM_CLOSED) {
            stream_fail(s, (int)event->what);
        }
        break;
    case SIM_EVENT_BYTES:
        on_bytes(s, event->what);
        break;
    case SIM_EVENT_END:
        on_end(s);
        break;
    case SIM_EVENT_RESET:
        on_reset(s);
        break;
    case SIM_EVENT_ROOM:
        if (s->state == SIM_CONNECTED) {
            s->peer->in.squeezed = false;
            if (s->full && is_writable(s)) {
                s->full = false;
                trpi_sim_wake(s);
            }
        }
        break;
    case SIM_EVENT_FREE:
        s->time_waits = false;
        trpi_sim_detach(s);
        break;
    case SIM_EVENT_DATAGRAM:
        trpi_assert(event->kind != SIM_EVENT_DATAGRAM); /* trpi_sim_datagram_event() */
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

uint32_t
trpi_sim_stream_mask(sim_socket *s)
{
    uint32_t mask = 0;

    if (trpi_sim_is_local(s)) {
        return trpi_sim_local_mask(s);
    }
    if (s->state == SIM_LISTENING) {
        return s->accepted.count > 0 ? TRPI_NET_IN : 0;
    }
    if (s->shut == SIM_SHUT_BOTH || s->state == SIM_CLOSED || s->error != 0) {
        mask |= TRPI_NET_END;
    }
    if ((s->shut & SIM_SHUT_READ) != 0) {
        mask |= TRPI_NET_IN | TRPI_NET_DRAIN;
    } else if (s->in.arrived > 0) {
        mask |= TRPI_NET_IN;
    }
    if (s->state == SIM_CONNECTED && (s->shut & SIM_SHUT_WRITE) == 0 && !is_writable(s)) {
        s->full = true;
    } else if (s->state != SIM_CONNECTING) {
        mask |= TRPI_NET_OUT;
    }
    return mask;
}

int
trpi_sim_stream_listen(sim_socket *s, int backlog)
{
    int result = 0;

    if (s->state == SIM_CONNECTING || s->state == SIM_CONNECTED ||
        (trpi_sim_is_local(s) && s->local.bytes == 0)) {
        return -EINVAL;
    }
    if (s->state == SIM_CLOSED) {
        if (s->local.bytes == 0) {
            result = trpi_sim_bind_some(s, NULL);
        }
        if (result == 0 && trpi_sim_listen_conflicts(s)) {
            result = -EADDRINUSE;
        }
        if (result != 0) {
            return result;
        }
        s->state = SIM_LISTENING;
        s->shut = 0;
        if (!trpi_sim_is_local(s)) {
            trpi_sim_place_add(s);
        }
    }
    s->backlog = (unsigned)backlog > BACKLOG_MAX ? BACKLOG_MAX : (uint32_t)backlog;
    return 0;
}

int
trpi_sim_stream_accept(sim_socket *s, trpi_net_address *ret_peer)
{
    sim_socket *made;
    int number;

    if (s->state != SIM_LISTENING) {
        return -EINVAL;
    }
    made = s->accepted.first;
    if (s->net->hosts[s->host].open >= s->net->hosts[s->host].open_max) {
        return -EMFILE;
    }
    if (made == NULL) {
        return -EAGAIN;
    }
    number = trpi_sim_socket_number(made);
    if (number < 0) {
        return number;
    }
    (void)trpi_sim_accepted_take(s);
    made->told = SIM_TOLD_CONNECTED;
    *ret_peer = made->remote;
    if (made->remote.bytes == 0) { /* a Unix-domain socket without a name */
        ret_peer->of.any.sa_family = AF_UNIX;
        ret_peer->bytes = sizeof(sa_family_t);
    }
    return number;
}

static void
listen_stop(sim_socket *s)
{
    sim_socket *waiting;

    while ((waiting = trpi_sim_accepted_take(s)) != NULL) {
        reset_send(waiting);
        waiting->state = SIM_CLOSED;
        trpi_sim_detach(waiting);
        trpi_sim_socket_unref(waiting);
    }
    trpi_sim_place_remove(s);
    s->state = SIM_CLOSED;
}

/* The answers of a connect that is under way, or was; 1: none, a new one begins. */
static int
connect_again(sim_socket *s)
{
    int error;

    if (s->told == SIM_TOLD_CONNECTED || (s->told == SIM_UNTOLD && s->state != SIM_CLOSED)) {
        return -EISCONN;
    }
    if (s->told == SIM_UNTOLD) {
        return 1;
    }
    if (s->state == SIM_CONNECTING) {
        return -EALREADY;
    }
    if (s->state == SIM_CONNECTED) {
        s->told = SIM_TOLD_CONNECTED;
        return 0;
    }
    error = trpi_sim_error_take(s);
    s->told = SIM_UNTOLD;
    s->shut = 0;
    s->remote.bytes = 0;
    trpi_sim_address_reset(s);
    return error != 0 ? error : -ECONNABORTED;
}

int
trpi_sim_stream_connect(sim_socket *s, const trpi_net_address *address)
{
    uint32_t host = 0;
    int result;

    if (trpi_sim_is_local(s)) {
        return trpi_sim_local_connect(s, address);
    }
    result = connect_again(s);
    if (result != 1) {
        return result;
    }
    result = trpi_sim_host_of(s, address, &host);
    if (result == 0 && (s->local.bytes == 0 || trpi_sim_port(&s->local) == 0)) {
        result = trpi_sim_bind_some(s, address);
    }
    if (result != 0) {
        return result;
    }
    s->remote = *address;
    trpi_sim_address_complete(s);
    s->state = SIM_CONNECTING;
    s->told = SIM_TOLD_WAIT;
    s->dialled = true;
    s->shut = 0;
    s->tries = 0;
    socket_dial(s);
    return -EINPROGRESS;
}

ssize_t
trpi_sim_stream_read(sim_socket *s, const struct iovec *iov, int count)
{
    size_t bytes = trpi_sim_iov_bytes(iov, count);

    if (trpi_sim_is_local(s)) {
        return trpi_sim_local_read(s, iov, count);
    }
    if (s->state == SIM_LISTENING) {
        return -ENOTCONN;
    }
    bytes = bytes < s->in.arrived ? bytes : s->in.arrived;
    if (bytes > 0) {
        trpi_sim_flow_take(&s->in, iov, bytes);
        if (s->state == SIM_CONNECTED && s->peer->state == SIM_CONNECTED) {
            flow_transmit(s->peer);
        }
        return (ssize_t)bytes;
    }
    if (s->in.end_arrived || s->in.arrived > 0) {
        return 0;
    }
    if (s->error != 0) {
        return trpi_sim_error_take(s);
    }
    if ((s->shut & SIM_SHUT_READ) != 0) {
        return 0;
    }
    return s->state == SIM_CLOSED ? -ENOTCONN : -EAGAIN;
}

/* How much of a write is taken now. */
static size_t
write_part(sim_socket *s, size_t bytes)
{
    trpi_sim_net *net = s->net;
    size_t room = send_room(s), part = bytes < room ? bytes : room;

    if (part > 0 && trpi_sim_chance(net, net->faults.partial) && trpi_sim_events_reserve(net, 1)) {
        part = trpi_sim_draw(net) % (part + 1);
        if (part < bytes) { /* sim-net-N4: until then it is full */
            s->peer->in.squeezed = true;
            event_send(s, SIM_EVENT_ROOM, 0, trpi_sim_now(net) + trpi_sim_draw(net) % SQUEEZED_NS);
        }
    }
    return part;
}

ssize_t
trpi_sim_stream_write(sim_socket *s, const struct iovec *iov, int count)
{
    size_t bytes = trpi_sim_iov_bytes(iov, count), part;

    if (trpi_sim_is_local(s)) {
        return trpi_sim_local_write(s, iov, count);
    }
    if (s->error != 0) {
        return trpi_sim_error_take(s);
    }
    if (s->state == SIM_CONNECTING) {
        return -EAGAIN;
    }
    if (s->state != SIM_CONNECTED || (s->shut & SIM_SHUT_WRITE) != 0) {
        return -EPIPE;
    }
    part = write_part(s, bytes);
    if (part > 0 && !trpi_sim_flow_append(&s->peer->in, iov, part)) {
        return -ENOBUFS;
    }
    s->full = s->full || part < bytes;
    flow_transmit(s);
    return part == 0 && bytes > 0 ? -EAGAIN : (ssize_t)part;
}

int
trpi_sim_stream_shutdown(sim_socket *s, uint32_t how)
{
    if (trpi_sim_is_local(s)) {
        return trpi_sim_local_shutdown(s, how);
    }
    switch (s->state) {
    case SIM_LISTENING:
        if ((how & SIM_SHUT_READ) != 0) {
            listen_stop(s);
        }
        break;
    case SIM_CONNECTING:
        reset_send(s);
        s->state = SIM_CLOSED;
        s->told = SIM_UNTOLD;
        s->error = ECONNRESET;
        break;
    case SIM_CONNECTED:
        s->shut |= how;
        if ((how & SIM_SHUT_WRITE) != 0 && !s->peer->in.end_written) {
            s->peer->in.end_written = true;
            flow_transmit(s);
        }
        break;
    case SIM_CLOSED:
        s->shut |= how;
        trpi_sim_wake(s);
        return -ENOTCONN;
    }
    trpi_sim_wake(s);
    return 0;
}

void
trpi_sim_stream_close(sim_socket *s)
{
    if (trpi_sim_is_local(s)) {
        trpi_sim_local_close(s);
        return;
    }
    if (s->state == SIM_LISTENING) {
        listen_stop(s);
    } else if (s->state == SIM_CONNECTING ||
               (s->state == SIM_CONNECTED &&
                (s->in.arrived > 0 || (s->linger.l_onoff != 0 && s->linger.l_linger == 0)))) {
        reset_send(s);
        s->state = SIM_CLOSED;
    } else if (s->state == SIM_CONNECTED) {
        s->shut = SIM_SHUT_BOTH;
        s->peer->in.end_written = true;
        flow_transmit(s);
        flow_transmit(s->peer); /* what waits for its reader finds out that there is none */
    }
    trpi_sim_detach(s);
}

ssize_t
trpi_sim_send_file(trpi_world *world, int number, int file, off_t *offset, size_t count)
{
    sim_socket *s = trpi_sim_socket_of(world, number);
    struct iovec iov = { NULL, count < FILE_BYTES ? count : FILE_BYTES };
    ssize_t result;

    if (s == NULL || s->type != SOCK_STREAM) {
        return s == NULL ? -EBADF : -EINVAL;
    }
    iov.iov_base = trpi_alloc(iov.iov_len + 1);
    if (iov.iov_base == NULL) {
        return -ENOMEM;
    }
    result = pread(file, iov.iov_base, iov.iov_len, *offset);
    if (result < 0) {
        result = -errno;
    } else if (result > 0) {
        iov.iov_len = (size_t)result;
        result = trpi_sim_stream_write(s, &iov, 1);
        *offset += result > 0 ? result : 0;
    }
    trpi_free(iov.iov_base);
    trpi_sim_advance(s->net);
    return result;
}
