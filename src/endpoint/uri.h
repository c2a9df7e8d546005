/* uri.h - scheme:path?name=value&name=value, as the name of an endpoint. */
#ifndef TRPI_ENDPOINT_URI_H
#define TRPI_ENDPOINT_URI_H

#include <stdint.h>

#include <troupe/endpoint.h>

#define TRPI_URI_OPTIONS_MAX 32

/* The texts stand in `text`, decoded. */
typedef struct trpi_uri {
    const char *scheme, *path;
    uint32_t options_count;
    struct {
        const char *name, *value;
    } options[TRPI_URI_OPTIONS_MAX];
    char text[TRP_ENDPOINT_URI_BYTES_MAX + 2];
} trpi_uri;

/* Errors: TRP_EINVAL, with a sentence. */
trp_err trpi_uri_parse(const char *text, trpi_uri *ret_uri,
                       char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
/* The value of the n-th option of this name, from 0; NULL: there is none. */
const char *trpi_uri_option(const trpi_uri *uri, const char *name, uint32_t n);
/* Read a whole number of an option; without it *ret_number stays. Errors: TRP_EINVAL, with a
 * sentence. */
trp_err trpi_uri_number(const trpi_uri *uri, const char *name, uint32_t least, uint32_t most,
                        uint32_t *ret_number, char ret_reason[TRP_ENDPOINT_REASON_BYTES]);
/* Read HOST:PORT, or //HOST:PORT, of the path. Borrows the path. Errors: TRP_EINVAL, with a
 * sentence. */
trp_err trpi_uri_address(const trpi_uri *uri, const char **ret_address,
                         char ret_reason[TRP_ENDPOINT_REASON_BYTES]);

#endif
