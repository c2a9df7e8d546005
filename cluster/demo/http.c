/* http.c - a small server of HTTP/1.1 on loopback, in the caller's thread.
 *
 * Why.     The page of a demonstration has one reader, its files and three requests. The server of
 *          the management API is the node's, and needs libwebsockets; this one needs nothing.
 * Shape.   accept --> in: bytes --parse--> fn --> out: bytes --> again, until the client closes
 * Must hold.
 *   http-H1  A connection has at most one request in work: what follows it waits in `in`.
 *                                                                              (connection_serve)
 *   http-H2  A refused request ends its connection: nothing behind it is read.  (connection_serve)
 * Limits.  TRPI_DEMO_HTTP_*_MAX; one more connection is closed at once. No chunked bodies.
 * Tests.   tests/unit/demo/http_test.c, tests/system/demo.sh
 */
#include "cluster/demo/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/units.h"

#define IN_BYTES (TRPI_DEMO_HTTP_HEAD_BYTES_MAX + TRPI_DEMO_HTTP_BODY_BYTES_MAX)
#define OUT_BYTES_MAX (2u << 20)

typedef struct connection {
    int fd; /* -1: free */
    uint64_t active_ms;
    size_t in_bytes;
    trpi_buffer out;
    size_t out_sent;
    bool ends; /* when out has been written */
    char in[IN_BYTES];
} connection;

struct trpi_demo_http {
    int fd;
    uint16_t port;
    trpi_demo_http_fn fn;
    void *arg;
    uint64_t full_until_ms; /* none is accepted: there were no descriptors */
    bool starved;           /* that is so, and none has been accepted since */
    connection connections[TRPI_DEMO_HTTP_CONNECTIONS_MAX];
};

/* ---- requests -------------------------------------------------------------------------------- */

/* Copy a word that ends before `end`. false: it is empty or too long. */
static bool
word_take(const char **at, const char *end, char separator, char *ret_word, size_t word_bytes)
{
    const char *stop = memchr(*at, separator, (size_t)(end - *at));
    size_t bytes = stop != NULL ? (size_t)(stop - *at) : 0;
    if (bytes == 0 || bytes >= word_bytes) {
        return false;
    }
    memcpy(ret_word, *at, bytes);
    ret_word[bytes] = '\0';
    *at = stop + 1;
    return true;
}

/* Read a header "Name: value" of `bytes` bytes. Returns 0, or the status that refuses it. */
static int
header_take(const char *line, size_t bytes, trpi_demo_request *request, uint64_t *body_bytes)
{
    char number[8];
    const char *colon = memchr(line, ':', bytes);
    if (colon == NULL || colon == line || memchr(line, '\0', bytes) != NULL) {
        return 400;
    }
    size_t name_bytes = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + bytes;
    value += value < end && *value == ' ' ? 1 : 0;
    const struct {
        const char *name;
        char *to;
        size_t to_bytes;
    } wanted[] = {
        { "host", request->host, sizeof request->host },
        { "origin", request->origin, sizeof request->origin },
        { "authorization", request->authorization, sizeof request->authorization },
        { "content-length", number, sizeof number },
    };
    if (name_bytes == 17 && strncasecmp(line, "transfer-encoding", name_bytes) == 0) {
        return 400;
    }
    if (name_bytes == 10 && strncasecmp(line, "connection", name_bytes) == 0) {
        request->closes = end - value == 5 && strncasecmp(value, "close", 5) == 0;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strlen(wanted[i].name) != name_bytes ||
            strncasecmp(line, wanted[i].name, name_bytes) != 0) {
            continue;
        }
        if ((size_t)(end - value) >= wanted[i].to_bytes ||
            (wanted[i].to != number && wanted[i].to[0] != '\0')) { /* or given twice */
            return 400;
        }
        memcpy(wanted[i].to, value, (size_t)(end - value));
        wanted[i].to[end - value] = '\0';
        if (wanted[i].to == number && !trpi_whole_parse(number, 0, 9999999, body_bytes)) {
            return 400;
        }
    }
    return 0;
}

int
trpi_demo_http_parse(const char *bytes, size_t count, trpi_demo_request *ret_request)
{
    char version[16];
    uint64_t body_bytes = 0;
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    if (end == NULL || (size_t)(end - bytes) > TRPI_DEMO_HTTP_HEAD_BYTES_MAX - 4) {
        return end != NULL || count >= TRPI_DEMO_HTTP_HEAD_BYTES_MAX ? -431 : 0;
    }
    memset(ret_request, 0, sizeof *ret_request);
    const char *at = bytes, *head_end = end + 2;
    if (!word_take(&at, head_end, ' ', ret_request->method, sizeof ret_request->method) ||
        !word_take(&at, head_end, ' ', ret_request->target, sizeof ret_request->target) ||
        !word_take(&at, head_end, '\r', version, sizeof version) ||
        strcmp(version, "HTTP/1.1") != 0 || ret_request->target[0] != '/' || *at++ != '\n') {
        return -400;
    }
    while (at < head_end) {
        const char *stop = memmem(at, (size_t)(head_end - at), "\r\n", 2);
        int status = header_take(at, (size_t)(stop - at), ret_request, &body_bytes);
        if (status != 0) {
            return -status;
        }
        at = stop + 2;
    }
    if (body_bytes > TRPI_DEMO_HTTP_BODY_BYTES_MAX) {
        return -413;
    }
    size_t head_bytes = (size_t)(end + 4 - bytes);
    if (count - head_bytes < body_bytes) {
        return 0;
    }
    if (memchr(bytes + head_bytes, '\0', body_bytes) != NULL) {
        return -400;
    }
    memcpy(ret_request->body, bytes + head_bytes, body_bytes);
    return (int)(head_bytes + body_bytes);
}

bool
trpi_demo_http_field(const char *text, const char *name, char *ret_value, size_t value_bytes)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t name_bytes = strlen(name);
    while (text != NULL && *text != '\0') {
        size_t bytes = strcspn(text, "&");
        if (bytes > name_bytes && strncmp(text, name, name_bytes) == 0 && text[name_bytes] == '=') {
            const char *value = text + name_bytes + 1;
            bytes -= name_bytes + 1;
            if (bytes >= value_bytes || strspn(value, allowed) < bytes) {
                return false;
            }
            memcpy(ret_value, value, bytes);
            ret_value[bytes] = '\0';
            return true;
        }
        text += bytes + (text[bytes] == '&' ? 1 : 0);
    }
    return false;
}

/* ---- connections ----------------------------------------------------------------------------- */

static const char *
reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Internal Server Error";
    }
}

static void
connection_close(connection *c)
{
    (void)close(c->fd);
    trpi_buffer_fini(&c->out);
    c->fd = -1;
}

/* Write an answer into c->out. false: no memory. */
static bool
answer_write(connection *c, trpi_demo_answer *answer)
{
    trp_err err = trpi_buffer_printf(
        &c->out, OUT_BYTES_MAX,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
        "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n%s\r\n",
        answer->status, reason_of(answer->status), answer->type, answer->body.count,
        c->ends ? "Connection: close\r\n" : "");
    err = err == TRP_OK
              ? trpi_buffer_append(&c->out, answer->body.data, answer->body.count, OUT_BYTES_MAX)
              : err;
    trpi_buffer_fini(&answer->body);
    return err == TRP_OK;
}

/* Answer the request that is there, if one is whole. false: the connection is to be closed. */
static bool
request_answer(trpi_demo_http *http, connection *c)
{
    trpi_demo_request request;
    trpi_demo_answer answer = { .status = 500, .type = "text/plain; charset=utf-8" };
    int bytes = trpi_demo_http_parse(c->in, c->in_bytes, &request);
    if (bytes == 0) {
        return true;
    }
    if (bytes < 0) { /* http-H2 */
        answer.status = -bytes;
        c->ends = true;
        c->in_bytes = 0;
        (void)trpi_buffer_printf(&answer.body, 64, "%s\n", reason_of(-bytes));
    } else {
        c->ends = request.closes;
        http->fn(http->arg, &request, &answer);
        c->in_bytes -= (size_t)bytes;
        memmove(c->in, c->in + bytes, c->in_bytes);
    }
    return answer_write(c, &answer);
}

/* Read, answer and write as far as it goes. */
static void
connection_serve(trpi_demo_http *http, connection *c, uint64_t now_ms)
{
    bool goes_on = true;
    if (c->out.count == 0 && c->in_bytes < sizeof c->in) {
        ssize_t got = recv(c->fd, c->in + c->in_bytes, sizeof c->in - c->in_bytes, 0);
        goes_on = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
        c->in_bytes += got > 0 ? (size_t)got : 0;
        c->active_ms = got > 0 ? now_ms : c->active_ms;
    }
    while (goes_on) {
        if (c->out.count == 0) { /* http-H1 */
            goes_on = request_answer(http, c);
        }
        if (!goes_on || c->out.count == 0) {
            break;
        }
        ssize_t sent =
            send(c->fd, c->out.data + c->out_sent, c->out.count - c->out_sent, MSG_NOSIGNAL);
        if (sent < 0) {
            goes_on = errno == EAGAIN || errno == EINTR;
            break;
        }
        c->active_ms = now_ms;
        c->out_sent += (size_t)sent;
        if (c->out_sent == c->out.count) {
            trpi_buffer_clear(&c->out);
            c->out_sent = 0;
            goes_on = !c->ends;
        }
    }
    if (!goes_on) {
        connection_close(c);
    }
}

static void
connection_accept(trpi_demo_http *http, uint64_t now_ms)
{
    int fd = accept4(http->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    http->starved = fd < 0 && (http->starved || errno == EMFILE || errno == ENFILE);
    if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        http->full_until_ms =
            now_ms + TRPI_DEMO_HTTP_FULL_MS; /* else poll ends at once, for ever */
    }
    for (uint32_t i = 0; i < TRPI_DEMO_HTTP_CONNECTIONS_MAX && fd >= 0; i++) {
        connection *c = &http->connections[i];
        if (c->fd < 0) {
            c->fd = fd;
            c->active_ms = now_ms;
            c->in_bytes = c->out_sent = 0;
            c->ends = false;
            return;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

bool
trpi_demo_http_is_starved(const trpi_demo_http *http)
{
    return http->starved;
}

void
trpi_demo_http_serve(trpi_demo_http *http, uint32_t wait_ms, uint64_t now_ms, const void *mask)
{
    struct pollfd fds[TRPI_DEMO_HTTP_CONNECTIONS_MAX + 1];
    connection *of[TRPI_DEMO_HTTP_CONNECTIONS_MAX + 1];
    nfds_t count = 1; /* those in use: poll refuses more than the process may have open */
    const struct timespec wait = { wait_ms / 1000, (long)(wait_ms % 1000) * 1000000 };
    fds[0] =
        (struct pollfd){ .fd = now_ms < http->full_until_ms ? -1 : http->fd, .events = POLLIN };
    for (uint32_t i = 0; i < TRPI_DEMO_HTTP_CONNECTIONS_MAX; i++) {
        connection *c = &http->connections[i];
        if (c->fd >= 0) {
            of[count] = c;
            fds[count++] =
                (struct pollfd){ .fd = c->fd, .events = c->out.count > 0 ? POLLOUT : POLLIN };
        }
    }
    if (ppoll(fds, count, &wait, mask) < 0) {
        return; /* a signal */
    }
    for (nfds_t i = 1; i < count; i++) {
        if (fds[i].revents != 0) {
            connection_serve(http, of[i], now_ms);
        } else if (now_ms - of[i]->active_ms > TRPI_DEMO_HTTP_IDLE_MS) {
            connection_close(of[i]);
        }
    }
    if ((fds[0].revents & POLLIN) != 0) {
        connection_accept(http, now_ms);
    }
}

trp_err
trpi_demo_http_open(uint16_t port, trpi_demo_http_fn fn, void *arg, trpi_demo_http **ret_http)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t bytes = sizeof address;
    const int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    trpi_demo_http *http = trpi_alloc(sizeof *http);
    if (http == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < TRPI_DEMO_HTTP_CONNECTIONS_MAX; i++) {
        http->connections[i].fd = -1;
    }
    http->fn = fn;
    http->arg = arg;
    http->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (http->fd < 0 || setsockopt(http->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(http->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(http->fd, TRPI_DEMO_HTTP_CONNECTIONS_MAX) != 0 ||
        getsockname(http->fd, (struct sockaddr *)&address, &bytes) != 0) {
        trp_err err = errno == EADDRINUSE ? TRP_EADDRINUSE : TRP_EIO;
        trpi_demo_http_close(http);
        return err;
    }
    http->port = ntohs(address.sin_port);
    *ret_http = http;
    return TRP_OK;
}

uint16_t
trpi_demo_http_port(const trpi_demo_http *http)
{
    return http->port;
}

void
trpi_demo_http_close(trpi_demo_http *http)
{
    if (http == NULL) {
        return;
    }
    for (uint32_t i = 0; i < TRPI_DEMO_HTTP_CONNECTIONS_MAX; i++) {
        if (http->connections[i].fd >= 0) {
            connection_close(&http->connections[i]);
        }
    }
    if (http->fd >= 0) {
        (void)close(http->fd);
    }
    trpi_free(http);
}
