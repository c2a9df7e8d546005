/* http_request.h - a message as a request of HTTP: its URL, method and fields; and the fields of an
 * answer as headers. No library, no socket. */
#ifndef TRPI_ENDPOINT_HTTP_REQUEST_H
#define TRPI_ENDPOINT_HTTP_REQUEST_H

#include <stdbool.h>

#include "base/buffer.h"
#include "endpoint/endpoint.h"

#define TRPI_HTTP_URL_BYTES 4096
#define TRPI_HTTP_METHOD_BYTES 17
#define TRPI_HTTP_FIELDS_BYTES 32768 /* of an answer; what is beyond is left away */

/* Check the path of a URI: //HOST[:PORT][/PATH]. Errors: TRP_EINVAL, with a sentence. */
trp_err trpi_http_target_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES]);

/* Write the URL of a message: http.path goes behind the URI's path, http.query behind a '?'; what
 * may not stand in a URL is encoded. Errors: TRP_EINVAL, with a sentence: it is too long, or has a
 * part of ".." in http.path. */
trp_err trpi_http_url_write(const trpi_uri *uri, const trpi_endpoint_send *send,
                            char ret_url[TRPI_HTTP_URL_BYTES],
                            char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
/* The method: http.method, or the URI's, or GET without a body and POST with one. Errors:
 * TRP_EINVAL, with a sentence. */
trp_err trpi_http_method_choose(const trpi_uri *uri, const trpi_endpoint_send *send,
                                char ret_method[TRPI_HTTP_METHOD_BYTES],
                                char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
/* Is this header a field that is sent? Not those of endpoints, which have a dot in their name, and
 * not those of one connection. */
bool trpi_http_field_is_sent(const trp_endpoint_header *header);
/* May it be sent: a name and a value of HTTP, without an end of line? */
bool trpi_http_field_is_good(const trp_endpoint_header *header);

/* The fields of an answer, each "name\0value\0". */
typedef struct trpi_http_fields {
    trpi_buffer texts;
    uint32_t count;
} trpi_http_fields;
/* Add a line of the answer's head, with or without its end. A status line forgets all. */
void trpi_http_fields_add(trpi_http_fields *fields, const char *line, size_t bytes);
/* Point headers at them; how many. */
uint32_t trpi_http_fields_headers(const trpi_http_fields *fields,
                                  trp_endpoint_header ret_headers[TRP_ENDPOINT_HEADERS_MAX],
                                  uint32_t first);

#endif
