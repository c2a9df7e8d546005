/* echo.h - an echo connection and its client, run by readiness, on the sockets of base/net.h.
 *
 * Each reads and writes until both would block, as an edge asks for. The user closes the socket of
 * what is done.
 */
#ifndef TESTS_UNIT_SIM_ECHO_H
#define TESTS_UNIT_SIM_ECHO_H

#include <errno.h>

#include "base/hash.h"
#include "base/net.h"
#include "tests/unit/unit.h"

#define ECHO_BYTES 4096u

typedef struct echo { /* a connection of the server */
    int socket;
    uint8_t bytes[ECHO_BYTES];
    uint32_t count;
    bool no_more; /* to read */
    bool done;
} echo;

typedef struct client { /* sends bytes of its own, ends, and reads until the end */
    int socket;
    uint32_t number;
    uint32_t asked, sent, got; /* bytes */
    bool done, ended;          /* ended: the server has */
    bool wrong;                /* what came back is not what was sent */
    int error;                 /* -errno */
} client;

static inline void
echo_read(const trpi_net_ops *net, trpi_world *world, echo *e, bool *moved)
{
    struct iovec iov = { e->bytes + e->count, ECHO_BYTES - e->count };
    ssize_t part;

    if (e->no_more || iov.iov_len == 0) {
        return;
    }
    part = net->read(world, e->socket, &iov, 1);
    e->done = part < 0 && part != -EAGAIN;
    e->no_more = part == 0;
    e->count += part > 0 ? (uint32_t)part : 0;
    *moved = *moved || part > 0;
}

static inline void
echo_write(const trpi_net_ops *net, trpi_world *world, echo *e, bool *moved)
{
    struct iovec iov = { e->bytes, e->count };
    ssize_t part;

    if (e->count == 0) {
        return;
    }
    part = net->write(world, e->socket, &iov, 1);
    e->done = part < 0 && part != -EAGAIN;
    if (part > 0) {
        memmove(e->bytes, e->bytes + part, e->count - (size_t)part);
        e->count -= (uint32_t)part;
        *moved = true;
    }
}

static inline void
echo_run(const trpi_net_ops *net, trpi_world *world, echo *e)
{
    for (bool moved = true; moved && !e->done;) {
        moved = false;
        echo_read(net, world, e, &moved);
        if (!e->done) {
            echo_write(net, world, e, &moved);
        }
        e->done = e->done || (e->no_more && e->count == 0);
    }
}

static inline uint8_t
client_byte(const client *c, uint32_t at)
{
    return (uint8_t)trpi_hash_u64((uint64_t)c->number << 32 | at);
}

static inline void
client_fail(client *c, int error)
{
    c->error = error;
    c->done = true;
}

static inline void
client_write(const trpi_net_ops *net, trpi_world *world, client *c)
{
    uint8_t bytes[900];
    struct iovec iov = { bytes, 0 };
    ssize_t part = 1;

    while (!c->done && c->sent < c->asked && part > 0) {
        uint32_t left = c->asked - c->sent;

        iov.iov_len = left < sizeof bytes ? left : sizeof bytes;
        for (uint32_t i = 0; i < iov.iov_len; i++) {
            bytes[i] = client_byte(c, c->sent + i);
        }
        part = net->write(world, c->socket, &iov, 1);
        c->sent += part > 0 ? (uint32_t)part : 0;
        if (part < 0 && part != -EAGAIN) {
            client_fail(c, (int)part);
        } else if (c->sent == c->asked) {
            (void)net->shutdown(world, c->socket, SHUT_WR); /* it may have been reset meanwhile */
        }
    }
}

static inline void
client_read(const trpi_net_ops *net, trpi_world *world, client *c)
{
    uint8_t bytes[700];
    struct iovec iov = { bytes, sizeof bytes };
    ssize_t part;

    while ((part = net->read(world, c->socket, &iov, 1)) > 0) {
        for (ssize_t i = 0; i < part; i++) {
            c->wrong = c->wrong || bytes[i] != client_byte(c, c->got + (uint32_t)i);
        }
        c->got += (uint32_t)part;
        c->wrong = c->wrong || c->got > c->sent;
    }
    if (part == 0) {
        c->ended = c->done = true;
    } else if (part != -EAGAIN) {
        client_fail(c, (int)part);
    }
}

static inline void
client_run(const trpi_net_ops *net, trpi_world *world, client *c)
{
    int error = 0;
    socklen_t bytes = sizeof error;

    if (net->option_get(world, c->socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ||
        error != 0) {
        client_fail(c, -error);
    }
    client_write(net, world, c);
    if (!c->done) {
        client_read(net, world, c);
    }
}

#endif
