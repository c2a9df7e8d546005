/* base64.c - RFC 4648 with padding; blanks and missing padding are refused.
 *
 * Tests. tests/unit/node/control_request_test.c
 */
#include "base/base64.h"

#include <string.h>

#include "base/alloc.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
digit_of(char c)
{
    const char *p = c ? strchr(alphabet, c) : NULL;
    return p ? (int)(p - alphabet) : -1;
}

trp_err
trpi_base64_decode(const char *text, size_t count, uint8_t **ret_bytes, size_t *ret_count)
{
    if (count % 4 != 0) {
        return TRP_EDATA;
    }
    uint8_t *bytes = trpi_alloc(count / 4 * 3 + 1);
    if (!bytes) {
        return TRP_ENOMEM;
    }
    size_t written = 0;
    for (size_t i = 0; i < count; i += 4) {
        int pads =
            i + 4 == count ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
        uint32_t group = 0;
        for (size_t j = 0; j < 4; j++) {
            int digit = j >= 4 - (size_t)pads ? 0 : digit_of(text[i + j]);
            if (digit < 0) {
                trpi_free(bytes);
                return TRP_EDATA;
            }
            group = group << 6 | (uint32_t)digit;
        }
        for (int j = 0; j < 3 - pads; j++) {
            bytes[written++] = (uint8_t)(group >> (16 - 8 * j));
        }
    }
    *ret_bytes = bytes;
    *ret_count = written;
    return TRP_OK;
}

char *
trpi_base64_encode(const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    char *text = trpi_alloc((count + 2) / 3 * 4 + 1), *out = text;
    if (!text) {
        return NULL;
    }
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                         (left > 2 ? (uint32_t)p[i + 2] : 0);
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *out = '\0';
    return text;
}
