/* nng_parts_fuzz.c - the body of a stranger's message, cut into parts; and a list of addresses.
 *
 * Parts that were read are written again, and must be the same bytes. Corpus:
 * tests/fuzz/corpus/nng_parts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "endpoint/nng_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t count, lengths[TRP_NNG_PARTS_MAX];
    char url[TRPI_NNG_URL_BYTES], text[2048];
    if (trpi_nng_lengths_read(data, size, &count, lengths)) {
        trp_bytes parts[TRP_NNG_PARTS_MAX], whole;
        uint8_t again[4 * (TRP_NNG_PARTS_MAX + 1)];
        size_t at = 0;
        if (trp_bytes_copy(data, size, &whole) != TRP_OK) {
            return 0;
        }
        trpi_assert(count >= 1 && count <= TRP_NNG_PARTS_MAX);
        for (uint32_t i = 0; i < count; i++) {
            parts[i] = trp_bytes_slice(whole, at, at + lengths[i]);
            trpi_assert(trp_bytes_length(parts[i]) == lengths[i]);
            at += lengths[i];
        }
        trpi_nng_lengths_write(parts, count, again);
        trpi_assert(at + trpi_nng_lengths_bytes(count) == size);
        trpi_assert(memcmp(again, data + at, size - at) == 0);
        for (uint32_t i = 0; i < count; i++) {
            trp_bytes_unref(&parts[i]);
        }
        trp_bytes_unref(&whole);
    }
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    const char *list = text;
    while (trpi_nng_address_next(&list, url)) {
        trpi_assert(trpi_nng_address_check(url) != TRP_OK || strstr(url, "://") != NULL);
    }
    return 0;
}
