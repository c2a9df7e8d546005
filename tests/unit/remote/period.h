/* period.h - many bytes whose order shows: the numbers below PERIOD, again and again. All of them
 * are looked at, but not one by one, which the thread sanitizer makes dear. */
#ifndef TESTS_UNIT_REMOTE_PERIOD_H
#define TESTS_UNIT_REMOTE_PERIOD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PERIOD = 251 };

static inline void
period_fill(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count && i < PERIOD; i++) {
        bytes[i] = (uint8_t)i;
    }
    for (size_t made = PERIOD; made < count; made *= 2) {
        memcpy(bytes + made, bytes, made < count - made ? made : count - made);
    }
}

/* Return 0 when the bytes are those that stand at `at`. */
static inline uint64_t
period_wrong(const uint8_t *bytes, size_t count, uint64_t at)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < count && i < PERIOD; i++) {
        wrong += bytes[i] != (uint8_t)((at + i) % PERIOD);
    }
    if (count > PERIOD) { /* each of the others is as the one a period before it */
        wrong += memcmp(bytes + PERIOD, bytes, count - PERIOD) != 0;
    }
    return wrong;
}

#endif
