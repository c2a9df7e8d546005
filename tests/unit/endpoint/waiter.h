/* waiter.h - the fixture of tests of endpoints over HTTP and WebSocket: a handler that replies as
 * the path or the body says, and a client of plain sockets.
 */
#ifndef TESTS_UNIT_ENDPOINT_WAITER_H
#define TESTS_UNIT_ENDPOINT_WAITER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/endpoint.h>

#include "tests/unit/actor/stage.h"

/* Written by the actor, read by the test where it is atomic. */
typedef struct waiter {
    char uri[512];
    trp_endpoint_options options;
    trp_ref self, endpoint;
    trp_err opened;
    _Atomic uint32_t started, stopped, got, errors;
    _Atomic uint64_t held; /* exchange of "/hold"; 0: none */
    _Atomic int32_t err;   /* of the last error, or of the end */
    _Atomic bool ready;
    uint16_t port; /* written before started */
    char reason[TRP_ENDPOINT_REASON_BYTES];
    trp_msg *kept[16]; /* with options.acknowledges 0 and "keep" */
    _Atomic uint32_t kept_count;
} waiter;

typedef void (*waiter_fn)(trp_ctx *ctx, waiter *w);
typedef struct waiter_order {
    waiter_fn fn;
} waiter_order;
static trp_type waiter_order_type = {
    .name = "waiter.order", .bytes = sizeof(waiter_order), .tag = 1, .flags = TRP_TYPE_LOCAL
};
static trp_type *const waiter_types[] = { &waiter_order_type };
static const trp_protocol waiter_protocol = { "waiter", waiter_types, 1, 0 };

static inline void
waiter_reply(trp_ctx *ctx, const waiter *w, uint64_t exchange, const char *text,
             const trp_endpoint_header *headers, uint32_t count)
{
    trp_bytes body;
    UNIT_EQUAL(trp_bytes_copy(text, strlen(text), &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_reply(ctx, w->endpoint, exchange, body, headers, count), TRP_OK);
    trp_bytes_unref(&body);
}

static inline const char *
waiter_header(const trp_endpoint_message *m, const char *name)
{
    const char *value = trp_endpoint_header_get(m, name);
    return value != NULL ? value : "";
}

/* So many bytes. */
static inline void
waiter_reply_long(trp_ctx *ctx, const waiter *w, uint64_t exchange, size_t bytes)
{
    char *text = malloc(bytes + 1);
    UNIT_REQUIRE(text != NULL);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    waiter_reply(ctx, w, exchange, text, NULL, 0);
    free(text);
}

static inline void
waiter_got(trp_ctx *ctx, waiter *w, const trp_endpoint_message *m, const trp_msg *msg)
{
    static const trp_endpoint_header teapot[] = { { "http.status", "418" },
                                                  { "x-pot", "tea" },
                                                  { "connection", "x" } };
    static const trp_endpoint_header split[] = { { "x-a", "b\r\nx-c: d" } };
    static const trp_endpoint_header wrong[] = { { "http.status", "99" } };
    char text[4096], body[1024];
    size_t bytes = trp_bytes_copy_out(m->body, 0, body, sizeof body);
    const char *path = waiter_header(m, "http.path");
    const char *word = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    atomic_fetch_add(&w->got, 1);
    if (strcmp(word, "hold") == 0 || (bytes == 4 && memcmp(body, "hold", 4) == 0)) {
        atomic_store(&w->held, m->exchange);
    } else if (bytes == 4 && memcmp(body, "keep", 4) == 0) {
        UNIT_EQUAL(trp_msg_dup(msg, &w->kept[atomic_load(&w->kept_count)]), TRP_OK);
        atomic_fetch_add(&w->kept_count, 1);
    } else if (bytes > 5 && bytes < sizeof body && memcmp(body, "long ", 5) == 0) {
        body[bytes] = '\0';
        waiter_reply_long(ctx, w, m->exchange, (size_t)atol(body + 5));
    } else if (strcmp(word, "ack") == 0) {
        trp_endpoint_ack(ctx, w->endpoint, m->exchange);
    } else if (strcmp(word, "fail") == 0) {
        trp_endpoint_fail(ctx, w->endpoint, m->exchange, "on purpose");
    } else if (strcmp(word, "teapot") == 0) {
        waiter_reply(ctx, w, m->exchange, "short", teapot, 3);
    } else if (strcmp(word, "split") == 0) {
        waiter_reply(ctx, w, m->exchange, "x", split, 1);
    } else if (strcmp(word, "wrong") == 0) {
        waiter_reply(ctx, w, m->exchange, "x", wrong, 1);
    } else if (m->exchange != 0) {
        const char *who = waiter_header(m, "tls.subject");
        snprintf(text, sizeof text, "<%s %s?%s %s %.*s>", waiter_header(m, "http.method"), path,
                 waiter_header(m, "http.query"),
                 who[0] != '\0' ? who : waiter_header(m, "user-agent"), (int)bytes, body);
        if (waiter_header(m, "ws.kind")[0] != '\0') {
            snprintf(text, sizeof text, "%s:%s:%.*s", waiter_header(m, "ws.kind"),
                     waiter_header(m, "ws.path"), (int)bytes, body);
        }
        waiter_reply(ctx, w, m->exchange, text, NULL, 0);
    }
}

static inline trp_err
waiter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    waiter *w = *(waiter **)state;
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    if (m != NULL) {
        waiter_got(ctx, w, m, msg);
    } else if (trp_msg_is(msg, &waiter_order_type)) {
        ((const waiter_order *)trp_msg_payload(msg))->fn(ctx, w);
    } else if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        const trp_endpoint_event *e = trp_msg_payload(msg);
        const char *port = strrchr(e->reason, ':');
        snprintf(w->reason, sizeof w->reason, "%s", e->reason);
        w->port =
            port != NULL && e->event == TRP_ENDPOINT_STARTED ? (uint16_t)atoi(port + 1) : w->port;
        atomic_store(&w->err, e->err);
        atomic_fetch_add(e->event == TRP_ENDPOINT_STARTED ? &w->started : &w->stopped, 1);
    } else if (trp_msg_is(msg, &trp_endpoint_error_type)) {
        const trp_endpoint_error *e = trp_msg_payload(msg);
        UNIT_TRUE(e->reason[0] != '\0');
        atomic_store(&w->err, e->err);
        atomic_fetch_add(&w->errors, 1);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static inline trp_err
waiter_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    waiter *w;
    memcpy(&w, trp_msg_payload(args), sizeof w);
    *(waiter **)state = w;
    w->self = trp_self(ctx);
    w->opened = trp_consumer_open(ctx, w->uri, &w->options, &w->endpoint);
    atomic_store(&w->ready, true);
    return TRP_OK;
}

static const trp_behaviour waiter_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "waiter",
                                                .version = 1,
                                                .state_bytes = sizeof(waiter *),
                                                .receive = waiter_receive,
                                                .pre_start = waiter_pre_start };

static inline void
waiter_init(waiter *w, const char *uri)
{
    memset(w, 0, sizeof *w);
    snprintf(w->uri, sizeof w->uri, "%s", uri);
    w->options = (trp_endpoint_options)TRP_ENDPOINT_OPTIONS_INIT;
}

/* Start the actor, and wait until its endpoint listens, or does not. */
static inline void
waiter_start(trp_system *system, waiter *w)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    UNIT_REQUIRE(trp_protocol_register(&waiter_protocol) == TRP_OK);
    options.args_type = &trp_bytes_type;
    options.args = &w;
    options.args_bytes = sizeof w;
    UNIT_REQUIRE(trp_system_spawn(system, &waiter_behaviour, &options, &ref) == TRP_OK);
    UNIT_WAIT(atomic_load(&w->ready), 60000);
    if (w->opened == TRP_OK) {
        UNIT_WAIT(atomic_load(&w->started) > 0 || atomic_load(&w->stopped) > 0, 60000);
    }
}

static inline void
waiter_do(trp_system *system, const waiter *w, waiter_fn fn)
{
    waiter_order order = { fn };
    trp_system_tell(system, w->self, &waiter_order_type, &order, sizeof order);
}

/* ---- a client of plain sockets --------------------------------------------------------------- */

static inline int
guest_connect(uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UNIT_REQUIRE(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static inline void
guest_write(int fd, const void *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t put = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
        if (put <= 0) {
            return; /* the server has closed: what it said is read */
        }
        done += (size_t)put;
    }
}

static inline void
guest_say(int fd, const char *text)
{
    guest_write(fd, text, strlen(text));
}

/* Read until `until` is there, or (NULL) the connection is closed. Static; at most 64 KiB. */
static inline const char *
guest_read(int fd, const char *until)
{
    static char text[65536];
    size_t used = 0;
    text[0] = '\0';
    while ((until == NULL || strstr(text, until) == NULL) && used < sizeof text - 1) {
        struct pollfd ready = { fd, POLLIN, 0 };
        if (poll(&ready, 1, 60000) != 1) {
            UNIT_FAIL("nothing came for a minute");
            return text;
        }
        ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0) {
            break;
        }
        for (ssize_t i = 0; i < got; i++) { /* strstr() goes on behind a NUL */
            text[used] = text[used] == '\0' ? '0' : text[used];
            used++;
        }
        text[used] = '\0';
    }
    return text;
}

/* One connection, one text, all that comes back until it is closed. */
static inline const char *
guest_ask(uint16_t port, const char *text)
{
    int fd = guest_connect(port);
    guest_say(fd, text);
    const char *answer = guest_read(fd, NULL);
    close(fd);
    return answer;
}

static inline bool
starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

#endif
