/* echo_peer.h - for echo_ack.c and echo_nack.c: what came and is not written back yet, and a peer
 * that sends until nothing more fits, and only then begins to read. */
#ifndef ECHO_PEER_H
#define ECHO_PEER_H

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/troupe.h>

enum { STORED_MAX = 16 << 20, HIGH_MARK = STORED_MAX / 10 * 5, LOW_MARK = STORED_MAX / 10 * 3 };

typedef struct piece {
    struct piece *next;
    trp_bytes bytes;
} piece;

typedef struct store {
    piece *first, *last;
    size_t stored, transferred;
    int suspended;
} store;

/* Keep bytes; above the high mark let the peer wait. */
static void
store_add(trp_ctx *ctx, trp_ref connection, store *s, trp_bytes bytes)
{
    piece *p = malloc(sizeof *p);
    if (p == NULL) {
        trp_fail(ctx, ENOMEM, "out of memory");
    }
    p->next = NULL;
    p->bytes = trp_bytes_ref(bytes); /* shared, not copied */
    *(s->first != NULL ? &s->last->next : &s->first) = p;
    s->last = p;
    s->stored += trp_bytes_length(bytes);
    if (s->stored > STORED_MAX) {
        trp_log(ctx, TRP_LOG_WARNING, "drop connection (buffer overrun)");
        trp_stop(ctx, trp_self(ctx));
    } else if (s->stored > HIGH_MARK && !s->suspended) {
        trp_tell(ctx, connection, &trp_tcp_suspend_reading_type, NULL, 0);
        s->suspended = 1;
    }
}

/* The oldest piece is written. */
static void
store_drop(trp_ctx *ctx, trp_ref connection, store *s)
{
    piece *p = s->first;
    s->stored -= trp_bytes_length(p->bytes);
    s->transferred += trp_bytes_length(p->bytes);
    s->first = p->next;
    trp_bytes_unref(&p->bytes);
    free(p);
    if (s->suspended && s->stored < LOW_MARK) {
        trp_tell(ctx, connection, &trp_tcp_resume_reading_type, NULL, 0);
        s->suspended = 0;
    }
}

static void
store_clear(store *s)
{
    while (s->first != NULL) {
        piece *p = s->first;
        s->first = p->next;
        trp_bytes_unref(&p->bytes);
        free(p);
    }
}

/* Send so many bytes to the server and read them back, late. Returns whether all came in order. */
static int
peer_run(uint16_t port, size_t bytes)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    static uint8_t out[65536], in[65536];
    size_t sent = 0, read = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0), right = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        return 0;
    }
    while (read < bytes) {
        for (size_t i = 0; i < sizeof out; i++) {
            out[i] = (uint8_t)((sent + i) * 31 + (sent + i) / 256);
        }
        size_t now = bytes - sent < sizeof out ? bytes - sent : sizeof out;
        ssize_t done = now > 0 ? send(fd, out, now, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
        if (done > 0) {
            sent += (size_t)done;
            if (sent == bytes) {
                shutdown(fd, SHUT_WR); /* what is on its way back comes all the same */
            }
            continue;
        }
        ssize_t got = recv(fd, in, sizeof in, 0);
        for (ssize_t i = 0; i < got; i++, read++) {
            right = right && in[i] == (uint8_t)(read * 31 + read / 256);
        }
        if (got <= 0) {
            break;
        }
    }
    right = right && read == bytes && recv(fd, in, 1, 0) == 0;
    close(fd);
    return right;
}

#endif
