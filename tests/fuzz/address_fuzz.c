/* address_fuzz.c - any text through the address parser: what it accepts, it writes back the
 * same. */
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = trpi_alloc(size + 1);
    trpi_address address;
    trpi_address again;
    const char *rest = NULL;
    const char *hint = NULL;
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    memset(&address, 0, sizeof address);
    memset(&again, 0, sizeof again);
    if (trpi_address_parse(text, &address, &rest, &hint) == TRP_OK) {
        char written[TRPI_ADDRESS_TEXT_BYTES];
        trpi_assert(rest >= text && rest <= text + strlen(text));
        (void)trpi_address_format(&address, written, sizeof written);
        trpi_assert(trpi_address_parse(written, &again, NULL, NULL) == TRP_OK);
        trpi_assert(trpi_address_equal(&address, &again));
        trpi_assert(trpi_address_hash(&address) == trpi_address_hash(&again));
    }
    trpi_free(text);
    return 0;
}
