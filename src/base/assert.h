/* assert.h - assertions that stay on in release. For our own mistakes only: peer input, user input
 * and failing allocations are errors, never assertions. */
#ifndef TRPI_BASE_ASSERT_H
#define TRPI_BASE_ASSERT_H

void trpi_assert_failed(const char *expression, const char *file, int line)
    __attribute__((noreturn, cold));

#define trpi_assert(e)                                                                             \
    do {                                                                                           \
        if (__builtin_expect(!(e), 0)) {                                                           \
            trpi_assert_failed(#e, __FILE__, __LINE__);                                            \
        }                                                                                          \
    } while (0)

#ifdef TRPI_DEBUG
#define trpi_assert_slow(e) trpi_assert(e)
#else
#define trpi_assert_slow(e) ((void)sizeof((e) ? 1 : 0)) /* not evaluated, but used */
#endif

#endif
