/* check.h - what a check function answers: NULL, or the first invariant that is broken.
 *
 * An engine's check function states its numbered invariants as code. It is pure: it reads the
 * state, changes nothing, takes no memory and no lock. The simulator calls it after each step; a
 * developer build calls it elsewhere, through trpi_assert_check().
 */
#ifndef TRPI_BASE_CHECK_H
#define TRPI_BASE_CHECK_H

#include "base/assert.h"

#define TRPI_CHECK_BYTES 192 /* with the NUL; a longer text is cut */

typedef struct trpi_check { /* the caller's, on its stack */
    char text[TRPI_CHECK_BYTES];
} trpi_check;

/* Return check->text, filled in: the invariant's label, a colon, and the values that break it. */
const char *trpi_check_broken(trpi_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* In a developer build, end the process when a check function finds something:
 *     trpi_assert_check(trpi_member_check, core); */
#ifdef TRPI_DEBUG
#define trpi_assert_check(function, ...)                                                           \
    do {                                                                                           \
        trpi_check trpi_check_here;                                                                \
        const char *trpi_broken_here = function(__VA_ARGS__, &trpi_check_here);                    \
        if (__builtin_expect(trpi_broken_here != NULL, 0)) {                                       \
            trpi_assert_failed(trpi_broken_here, __FILE__, __LINE__);                              \
        }                                                                                          \
    } while (0)
#else
#define trpi_assert_check(function, ...) ((void)0)
#endif

/* The same on the path of messages and tasks: only in builds with a sanitizer, so that neither a
 * release nor a measured build pays for it. */
#if defined(TRPI_DEBUG) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define TRPI_CHECK_HOT 1
#elif defined(TRPI_DEBUG) && defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRPI_CHECK_HOT 1
#endif
#endif
#ifdef TRPI_CHECK_HOT
#define trpi_assert_hot_check(function, ...) trpi_assert_check(function, __VA_ARGS__)
#else
#define trpi_assert_hot_check(function, ...) ((void)0)
#endif

#endif
