/* utf8.c - validate and repair UTF-8.
 *
 * Tests.   tests/unit/base/json_test.c
 * Sources. RFC 3629, section 4.
 */
#include "base/utf8.h"

#include <stdint.h>

/* Return how many bytes follow a first byte, and the bounds of the second one. 0: no sequence
 * begins with it. */
static size_t
sequence_rest(uint8_t first, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *ret_high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return first < 0x80                    ? 1
           : first >= 0xc2 && first < 0xe0 ? 2
           : first >= 0xe0 && first < 0xf0 ? 3
           : first >= 0xf0 && first < 0xf5 ? 4
                                           : 0;
}

size_t
trpi_utf8_valid(const void *text, size_t bytes)
{
    const uint8_t *p = text;
    size_t at = 0;

    while (at < bytes) {
        uint8_t low, high;
        size_t count = sequence_rest(p[at], &low, &high);

        if (count == 0 || count > bytes - at ||
            (count > 1 && (p[at + 1] < low || p[at + 1] > high))) {
            return at;
        }
        for (size_t i = 2; i < count; i++) {
            if ((p[at + i] & 0xc0) != 0x80) {
                return at;
            }
        }
        at += count;
    }
    return bytes;
}

void
trpi_utf8_mend(char *text, size_t bytes)
{
    for (size_t at = trpi_utf8_valid(text, bytes); at < bytes;
         at += trpi_utf8_valid(text + at, bytes - at)) {
        text[at] = '?';
    }
}
