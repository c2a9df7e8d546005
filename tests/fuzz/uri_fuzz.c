/* uri_fuzz.c - the URI of an endpoint: what passes the check is read again by its scheme.
 *
 * Corpus: tests/fuzz/corpus/uri.
 */
#include <string.h>

#include "base/assert.h"
#include "endpoint/endpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
text_check(const trpi_uri *uri, const char *text)
{
    trpi_assert(text >= uri->text && text < uri->text + sizeof uri->text);
    trpi_assert(memchr(text, '\0', (size_t)(uri->text + sizeof uri->text - text)) != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2048], reason[TRP_ENDPOINT_REASON_BYTES] = "";
    trpi_uri uri;
    uint32_t number = 7;
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    trp_err err = trpi_uri_parse(text, &uri, reason);
    if (err != TRP_OK) {
        trpi_assert(err == TRP_EINVAL && reason[0] != '\0');
    } else {
        text_check(&uri, uri.scheme);
        text_check(&uri, uri.path);
        trpi_assert(uri.options_count <= TRPI_URI_OPTIONS_MAX);
        for (uint32_t i = 0; i < uri.options_count; i++) {
            text_check(&uri, uri.options[i].name);
            text_check(&uri, uri.options[i].value);
            if (trpi_uri_number(&uri, uri.options[i].name, 5, 500, &number, reason) == TRP_OK) {
                trpi_assert(number >= 5 && number <= 500);
            }
        }
    }
    for (int produces = 0; produces < 2; produces++) {
        reason[0] = '\0';
        err = trp_endpoint_check(text, produces, reason);
        trpi_assert((err == TRP_OK) == (reason[0] == '\0'));
    }
    return 0;
}
