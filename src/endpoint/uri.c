/* uri.c - scheme:path?name=value&name=value, as the name of an endpoint.
 *
 * Must hold.
 *   uri-U1  Each text lies in the struct's own buffer and ends by a NUL that is the only one in it:
 *       %00 is refused, and decoding never makes a text longer.
 * Tests.   tests/unit/endpoint/uri_test.c, tests/fuzz/uri_fuzz.c
 * Sources. CAM-01
 */
#include "endpoint/uri.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static int
hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decode %XX in place; false: it is none, or a NUL. */
static bool
text_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++, to++) {
        if (*from == '%') {
            int high = hex_value(from[1]), low = high < 0 ? -1 : hex_value(from[2]);
            if (low < 0 || high * 16 + low == 0) {
                return false;
            }
            *to = (char)(high * 16 + low);
            from += 2;
        } else {
            *to = *from;
        }
    }
    *to = '\0';
    return true;
}

/* Split the options; the sentence of what is wrong, NULL: nothing. */
static const char *
options_split(trpi_uri *uri, char *at)
{
    while (at != NULL && *at != '\0') {
        char *next = strchr(at, '&'), *value;
        if (next != NULL) {
            *next++ = '\0';
        }
        value = strchr(at, '=');
        if (value == NULL || value == at) {
            return "an option is not NAME=VALUE";
        }
        *value++ = '\0';
        if (uri->options_count == TRPI_URI_OPTIONS_MAX) {
            return "more than 32 options";
        }
        if (!text_decode(at) || !text_decode(value)) {
            return "a % that is not followed by two hexadecimal digits, or is %00";
        }
        uri->options[uri->options_count].name = at;
        uri->options[uri->options_count].value = value;
        uri->options_count++;
        at = next;
    }
    return NULL;
}

trp_err
trpi_uri_parse(const char *text, trpi_uri *ret_uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *wrong = NULL;
    size_t bytes = strnlen(text, TRP_ENDPOINT_URI_BYTES_MAX + 1);
    memset(ret_uri, 0, sizeof *ret_uri);
    if (bytes > TRP_ENDPOINT_URI_BYTES_MAX) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "the URI is longer than %d bytes",
                       TRP_ENDPOINT_URI_BYTES_MAX);
        return TRP_EINVAL;
    }
    memcpy(ret_uri->text, text, bytes);
    size_t scheme = strspn(ret_uri->text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    char *path = ret_uri->text + scheme, *options;
    if (scheme == 0 || *path != ':') {
        wrong = "there is no scheme: write SCHEME:PATH";
    } else {
        *path++ = '\0';
        options = strchr(path, '?');
        if (options != NULL) {
            *options++ = '\0';
        }
        wrong = options_split(ret_uri, options);
        if (wrong == NULL && !text_decode(path)) {
            wrong = "a % that is not followed by two hexadecimal digits, or is %00";
        }
        ret_uri->scheme = ret_uri->text;
        ret_uri->path = path;
    }
    if (wrong != NULL) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "%.90s: %s", text, wrong);
        return TRP_EINVAL;
    }
    return TRP_OK;
}

const char *
trpi_uri_option(const trpi_uri *uri, const char *name, uint32_t n)
{
    for (uint32_t i = 0; i < uri->options_count; i++) {
        if (strcmp(uri->options[i].name, name) == 0 && n-- == 0) {
            return uri->options[i].value;
        }
    }
    return NULL;
}

trp_err
trpi_uri_number(const trpi_uri *uri, const char *name, uint32_t least, uint32_t most,
                uint32_t *ret_number, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *value = trpi_uri_option(uri, name, 0);
    uint64_t number = 0;
    size_t digits = value == NULL ? 0 : strspn(value, "0123456789");
    trpi_assert(least <= most);
    if (value == NULL) {
        return TRP_OK;
    }
    for (size_t i = 0; i < digits && digits <= 10; i++) {
        number = number * 10 + (uint64_t)(value[i] - '0');
    }
    if (digits == 0 || digits > 10 || value[digits] != '\0' || number < least || number > most) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                       "%.20s: %.30s=%.30s is not a whole number from %u to %u", uri->scheme, name,
                       value, (unsigned)least, (unsigned)most);
        return TRP_EINVAL;
    }
    *ret_number = (uint32_t)number;
    return TRP_OK;
}

trp_err
trpi_uri_address(const trpi_uri *uri, const char **ret_address,
                 char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const char *address = strncmp(uri->path, "//", 2) == 0 ? uri->path + 2 : uri->path;
    const char *port = strrchr(address, ':');
    size_t digits = port == NULL ? 0 : strspn(port + 1, "0123456789");
    if (port == NULL || port == address || digits == 0 || digits > 5 || port[1 + digits] != '\0' ||
        strlen(address) > 255 || address[strcspn(address, "/ ")] != '\0' ||
        strtoul(port + 1, NULL, 10) > UINT16_MAX) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "%.20s:%.80s is not %.20s:HOST:PORT",
                       uri->scheme, uri->path, uri->scheme);
        return TRP_EINVAL;
    }
    *ret_address = address;
    return TRP_OK;
}
