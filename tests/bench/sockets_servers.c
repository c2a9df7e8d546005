/* sockets_servers.c - see sockets.h. */
#include "tests/bench/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/io.h>

#define WRITES_WAITING 8u /* of a source: enough that the kernel always has some */

static sockets_server now; /* of this process */
static uint8_t slice[SOCKETS_SLICE_BYTES];
static trp_bytes shared; /* the same for actors, which write it without copying */

void
sockets_check(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void
port_tell(uint16_t port)
{
    sockets_check(write(now.ready, &port, sizeof port) == (ssize_t)sizeof port, "port");
}

/* ---- actors ---------------------------------------------------------------------------------- */

typedef struct handler {
    trp_ref connection;
    uint64_t left; /* bytes to come, or to write */
} handler;

static trp_err
source_write(trp_ctx *ctx, handler *h)
{
    uint64_t bytes = h->left < sizeof slice ? h->left : sizeof slice;
    trp_bytes part = trp_bytes_take(shared, (size_t)bytes);
    trp_err err = TRP_OK;

    if (bytes > 0) {
        h->left -= bytes;
        err = trp_tcp_write(ctx, h->connection, part, 1);
        if (h->left == 0) {
            trp_tell(ctx, h->connection, &trp_tcp_close_type, NULL, 0);
        }
    }
    trp_bytes_unref(&part);
    return err;
}

static trp_err
handler_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    handler *h = state;
    trp_err err;

    h->connection = *(const trp_ref *)trp_msg_payload(args);
    h->left = now.bytes;
    err = trp_tcp_register(ctx, h->connection, trp_self(ctx), NULL);
    for (uint32_t i = 0; err == TRP_OK && now.work == SOCKETS_SOURCE && i < WRITES_WAITING; i++) {
        err = source_write(ctx, h);
    }
    return err;
}

static trp_err
handler_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    handler *h = state;

    if (received != NULL && now.work == SOCKETS_ECHO) {
        return trp_tcp_write(ctx, h->connection, received->bytes, 0);
    }
    if (received != NULL) {
        h->left -= trp_bytes_length(received->bytes);
        return h->left == 0 ? trp_tcp_write_copy(ctx, h->connection, "", 1, 0) : TRP_OK;
    }
    if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        return source_write(ctx, h);
    }
    if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}

static const trp_behaviour handler_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "handler",
                                                 .version = 1,
                                                 .state_bytes = sizeof(handler),
                                                 .receive = handler_receive,
                                                 .pre_start = handler_start };

static trp_err
acceptor_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_tcp_bind_options options = TRP_TCP_BIND_OPTIONS_INIT;

    (void)state;
    (void)args;
    options.backlog = SOMAXCONN;
    return trp_tcp_bind(ctx, "127.0.0.1:0", &options);
}

static trp_err
acceptor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref connection = trp_sender(ctx), child;

    (void)state;
    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        port_tell(((const trp_tcp_bound *)trp_msg_payload(msg))->local.port);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        options.args_type = &trp_bytes_type;
        options.args = &connection;
        options.args_bytes = sizeof connection;
        return trp_spawn(ctx, &handler_behaviour, &options, &child);
    }
    return TRP_OK;
}

static const trp_behaviour acceptor_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "acceptor",
                                                  .version = 1,
                                                  .receive = acceptor_receive,
                                                  .pre_start = acceptor_start };

void
sockets_serve_actors(const sockets_server *server)
{
    bench_options options = { .threads = server->threads };
    trp_system *system;
    char byte;

    now = *server;
    bench_check(trp_bytes_copy(slice, sizeof slice, &shared), "trp_bytes_copy");
    system = bench_system(&options);
    (void)bench_spawn(system, &acceptor_behaviour);
    (void)(read(now.end, &byte, 1) == 0);
    bench_system_end(system);
    trp_bytes_unref(&shared);
}

/* ---- bare epoll ------------------------------------------------------------------------------ */

typedef struct peer {
    int fd;
    uint64_t left;
} peer;

static int
listener_open(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    sockets_check(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                      listen(fd, SOMAXCONN) == 0 &&
                      getsockname(fd, (struct sockaddr *)&address, &bytes) == 0,
                  "listen");
    port_tell(ntohs(address.sin_port));
    return fd;
}

static void
peer_add(int epoll, int fd)
{
    struct epoll_event event = { .events = now.work == SOCKETS_SOURCE ? EPOLLOUT : EPOLLIN };
    peer *p = malloc(sizeof *p);
    int on = 1;

    sockets_check(p != NULL && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0,
                  "accept");
    *p = (peer){ fd, now.bytes };
    event.data.ptr = p;
    sockets_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* Read or write once. False: the peer has ended. */
static int
peer_serve(peer *p)
{
    static uint8_t bytes[SOCKETS_READ_BYTES];
    ssize_t n;

    if (now.work == SOCKETS_SOURCE) {
        n = send(p->fd, slice, p->left < sizeof slice ? p->left : sizeof slice, MSG_NOSIGNAL);
        p->left -= n > 0 ? (uint64_t)n : 0;
        return (n > 0 || errno == EAGAIN) && p->left > 0;
    }
    n = recv(p->fd, bytes, now.work == SOCKETS_ECHO ? 4096 : sizeof bytes, 0);
    if (n > 0 && now.work == SOCKETS_ECHO) {
        return send(p->fd, bytes, (size_t)n, MSG_NOSIGNAL) == n;
    }
    p->left -= n > 0 ? (uint64_t)n : 0;
    if (n > 0 && p->left == 0) {
        return send(p->fd, bytes, 1, MSG_NOSIGNAL) == 1;
    }
    return n > 0 || (n < 0 && errno == EAGAIN);
}

void
sockets_serve_bare(const sockets_server *server)
{
    struct epoll_event events[64], event = { .events = EPOLLIN };
    int listener, epoll = epoll_create1(0);
    int fd;

    now = *server;
    listener = listener_open();
    event.data.ptr = &listener;
    sockets_check(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
    event.data.ptr = &now;
    sockets_check(epoll_ctl(epoll, EPOLL_CTL_ADD, now.end, &event) == 0, "epoll_ctl");
    for (;;) {
        int count = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &now) {
                return;
            }
            if (events[i].data.ptr == &listener) {
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    peer_add(epoll, fd);
                }
            } else if (!peer_serve(events[i].data.ptr)) {
                (void)close(((peer *)events[i].data.ptr)->fd);
                free(events[i].data.ptr);
            }
        }
    }
}
