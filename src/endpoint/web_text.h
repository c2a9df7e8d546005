/* web_text.h - texts of endpoints over HTTP and WebSocket: their URIs, and the heads of responses.
 * Pure. */
#ifndef TRPI_ENDPOINT_WEB_TEXT_H
#define TRPI_ENDPOINT_WEB_TEXT_H

#include <stdbool.h>

#include "base/address.h"
#include "base/buffer.h"
#include "endpoint/uri.h"

#define TRPI_WEB_CONNECTIONS_DEFAULT 128
#define TRPI_WEB_CONNECTIONS_MAX 4096
#define TRPI_WEB_HEADER_BYTES_DEFAULT 8192 /* of a request: its line and all fields */
#define TRPI_WEB_HEADER_BYTES_MIN 1024
#define TRPI_WEB_HEADER_BYTES_MAX 65000
#define TRPI_WEB_IDLE_MS_DEFAULT 30000
#define TRPI_WEB_IDLE_MS_MAX 3600000
#define TRPI_WEB_TARGET_BYTES (3 * TRP_ENDPOINT_URI_BYTES_MAX + 2)

/* The values of a URI. Texts are borrowed from it. */
typedef struct trpi_web_settings {
    const trpi_uri *uri;
    char host[TRPI_HOST_BYTES_MAX + 1]; /* IPv6 without brackets */
    uint16_t port;
    bool tls;
    const char *path; /* begins with '/' */
    uint32_t prefix;  /* paths below it are meant, too */
    uint32_t connections, header_bytes, idle_ms;
    const char *cert, *key, *ca; /* NULL: none */
    const char *query;           /* of a client; NULL: none */
    uint32_t text;               /* a client sends messages of text */
} trpi_web_settings;

/* Errors: TRP_EINVAL, with a sentence. */
trp_err trpi_web_settings_read(const trpi_uri *uri, bool produces, trpi_web_settings *ret_settings,
                               char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
bool trpi_web_path_fits(const trpi_web_settings *settings, const char *path);
/* Write what a client asks for, path and query, each byte that could end or split it encoded. */
void trpi_web_target_write(const trpi_web_settings *settings, char ret_text[TRPI_WEB_TARGET_BYTES]);

/* Append the head of a response without the empty line that ends it, so that more fields can
 * follow. http.status is its status, 200 without; fields about the connection and the length are
 * left out, as they are the server's, and those of endpoints ("http.path"). *ret_bodiless: a
 * response of this status has no body. Errors: TRP_EINVAL, with a sentence: a status, name or value
 * that is none; TRP_ENOMEM. */
trp_err trpi_web_head_write(const trp_endpoint_header *headers, uint32_t count, size_t body_bytes,
                            trpi_buffer *out, bool *ret_bodiless,
                            char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
#endif
