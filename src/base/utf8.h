/* utf8.h - validate and repair UTF-8. */
#ifndef TRPI_BASE_UTF8_H
#define TRPI_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Return the count of bytes before the first that is not UTF-8 of RFC 3629 (no overlong form, no
 * surrogate, nothing above U+10FFFF); `bytes` when all are. A NUL is a character like others. */
size_t trpi_utf8_valid(const void *text, size_t bytes);

/* Replace each byte that is in no valid sequence with a '?'. */
void trpi_utf8_mend(char *text, size_t bytes);

static inline bool
trpi_utf8_is_valid(const void *text, size_t bytes)
{
    return trpi_utf8_valid(text, bytes) == bytes;
}

#endif
