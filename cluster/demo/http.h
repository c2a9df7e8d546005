/* http.h - a small server of HTTP/1.1 on loopback, in the caller's thread; see http.c. */
#ifndef TRPI_DEMO_HTTP_H
#define TRPI_DEMO_HTTP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/buffer.h"

#define TRPI_DEMO_HTTP_CONNECTIONS_MAX 16u
#define TRPI_DEMO_HTTP_HEAD_BYTES_MAX 8192u /* request line and headers */
#define TRPI_DEMO_HTTP_BODY_BYTES_MAX 1024u /* of a request */
#define TRPI_DEMO_HTTP_IDLE_MS 30000u       /* a connection that is silent so long is closed */
#define TRPI_DEMO_HTTP_FULL_MS 1000u   /* until it is tried again to accept without descriptors */
#define TRPI_DEMO_HTTP_TEXT_BYTES 128u /* of a header that is looked at, with its NUL */

/* A request. */
typedef struct trpi_demo_request {
    char method[8];
    char target[256];                     /* path and query, as sent */
    char host[TRPI_DEMO_HTTP_TEXT_BYTES]; /* "": there is none, as in the next ones */
    char origin[TRPI_DEMO_HTTP_TEXT_BYTES];
    char authorization[TRPI_DEMO_HTTP_TEXT_BYTES];
    char body[TRPI_DEMO_HTTP_BODY_BYTES_MAX + 1];
    bool closes; /* the client wants the connection to end after it */
} trpi_demo_request;

/* Take a request apart. Returns the bytes that it had; 0: more are needed; less than 0: it is
 * refused with that status of HTTP, negated. */
int trpi_demo_http_parse(const char *bytes, size_t count, trpi_demo_request *ret_request);

/* Give the value of a field of "a=b&c=d", whose values are of letters, digits, '-' and '.'. false:
 * it is not there, or too long. */
bool trpi_demo_http_field(const char *text, const char *name, char *ret_value, size_t value_bytes);

typedef struct trpi_demo_answer {
    int status;
    const char *type; /* static */
    trpi_buffer body; /* given away */
} trpi_demo_answer;

typedef void (*trpi_demo_http_fn)(void *arg, const trpi_demo_request *request,
                                  trpi_demo_answer *ret_answer);

typedef struct trpi_demo_http trpi_demo_http;

/* Listen on 127.0.0.1; port 0: any. Errors: TRP_EADDRINUSE, TRP_EIO, TRP_ENOMEM. */
trp_err trpi_demo_http_open(uint16_t port, trpi_demo_http_fn fn, void *arg,
                            trpi_demo_http **ret_http);
uint16_t trpi_demo_http_port(const trpi_demo_http *http);
/* A connection could not be taken for want of a descriptor, and none has been since. */
bool trpi_demo_http_is_starved(const trpi_demo_http *http);
/* Wait at most wait_ms, with the signals of `mask` blocked alone, and serve what is there. */
void trpi_demo_http_serve(trpi_demo_http *http, uint32_t wait_ms, uint64_t now_ms,
                          const void *mask);
void trpi_demo_http_close(trpi_demo_http *http); /* NULL is fine */

#endif
