/* request.h - a request of the management API, taken apart, and its answer; without sockets.
 *
 * Why.     Which request is carried out, and how it is answered, is decided by functions of the
 *          request and the settings alone, so tests and the fuzzer see all of it. The server
 *          fills the request in and writes the answer.
 * Limits.  TRPI_MANAGEMENT_*_MAX below; beyond one the answer is 400, 413, 414 or 431.
 */
#ifndef TRPI_MANAGEMENT_REQUEST_H
#define TRPI_MANAGEMENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_MANAGEMENT_PATH_BYTES_MAX 1024u    /* decoded */
#define TRPI_MANAGEMENT_QUERY_BYTES_MAX 1024u   /* decoded */
#define TRPI_MANAGEMENT_HEADER_BYTES_MAX 8192u  /* request line and all headers */
#define TRPI_MANAGEMENT_BODY_BYTES_MAX 65536u   /* of a request */
#define TRPI_MANAGEMENT_FIELD_BYTES_MAX 512u    /* of one form field or query value, with its NUL */
#define TRPI_MANAGEMENT_TOKEN_BYTES_MAX 256u    /* of a bearer token */
#define TRPI_MANAGEMENT_TOKEN_BYTES_MIN 32u     /* a shorter one could be guessed */
#define TRPI_MANAGEMENT_TOKENS_MAX 16u          /* in one file */
#define TRPI_MANAGEMENT_TRACEPARENT_BYTES 128u  /* of one, with its NUL; a longer one is ignored */
#define TRPI_MANAGEMENT_DIGEST_BYTES 32u        /* of a token, as it is kept */
#define TRPI_MANAGEMENT_COMMAND_BYTES_MAX 8192u /* of a request to the node */

/* A request. Texts are NUL-terminated and borrowed; NULL: absent. */
typedef struct trpi_management_request {
    const char *method;            /* "GET" */
    const char *path;              /* percent-decoded, without the query */
    const char *query;             /* "a=b&c=d", percent-decoded; "" none */
    const char *host, *origin;     /* headers */
    const char *authorization;     /* header */
    const char *content_type;      /* header */
    const char *accept;            /* header */
    const char *transfer_encoding; /* header: no body is taken with one */
    const char *last_event_id;     /* header: of a reader that comes back */
    const char *session;           /* our cookie of the Cookie header */
    const char *traceparent;       /* header: of W3C Trace Context */
    const uint8_t *body;
    size_t body_bytes;
    const char *certificate; /* common name of the client's certificate, whose chain has been
                              * verified; NULL: it has shown none */
} trpi_management_request;

typedef enum trpi_management_level {
    TRPI_MANAGEMENT_NOBODY = 0, /* no credential, or one that is not known */
    TRPI_MANAGEMENT_READER = 1,
    TRPI_MANAGEMENT_WRITER = 2 /* a reader, too */
} trpi_management_level;

typedef struct trpi_management_token {
    uint8_t digest[TRPI_MANAGEMENT_DIGEST_BYTES];
    trpi_management_level level;
    uint32_t line; /* of its file; 0: the derived one */
} trpi_management_token;

#define TRPI_MANAGEMENT_WHO_BYTES 96 /* of a credential as the audit names it, with its NUL */

/* The accepted bearer tokens: of the writers' file, of the readers' file, the derived one. */
typedef struct trpi_management_tokens {
    trpi_management_token list[2 * TRPI_MANAGEMENT_TOKENS_MAX + 1];
    size_t count;
} trpi_management_tokens;

struct trpi_management_sessions;

/* The settings by which requests are judged. Lists are borrowed. */
typedef struct trpi_management_policy {
    const char *bound;        /* the host of management.bind */
    bool is_local;            /* bound is a loopback address: reads need no credential */
    bool read_only;           /* writes are refused */
    const char *const *hosts; /* accepted in the Host header besides */
    size_t hosts_count;
    const char *const *readers; /* names of client certificates */
    size_t readers_count;
    const char *const *writers;
    size_t writers_count;
    const trpi_management_tokens *tokens;
    const struct trpi_management_sessions *sessions; /* of browsers; NULL: none */
    uint64_t now_ms;                                 /* by which they end */
    uint32_t request_ms; /* of a request that may not choose its time itself */
} trpi_management_policy;

/* The answer, as it is written back. */
typedef struct trpi_management_answer {
    int status;               /* of HTTP */
    const char *content_type; /* static */
    const char *allow;        /* 405: the methods of this path, static; else NULL */
    char *body;               /* NUL-terminated, owned (cJSON_free); NULL: out of memory */
    bool streams;             /* the body has no end: events follow it */
    const char *policy;       /* Content-Security-Policy, static; NULL: nothing is loaded */
    char cookie[192];         /* Set-Cookie; "": none */
} trpi_management_answer;

void trpi_management_answer_fini(trpi_management_answer *answer);

/* Set *ret_answer to {"error":error,"message":message}; message NULL: {"error":error}. */
void trpi_management_answer_error(trpi_management_answer *ret_answer, int status, const char *error,
                                  const char *message);

#endif
