/* unit.h - a thin layer over CUnit: one file is one suite, one program holds the suites of a room.
 *
 *     #include "tests/unit/unit.h"
 *
 *     // SYS-17
 *     static void
 *     refs_are_equal_when_they_name_the_same_incarnation(void)
 *     {
 *         UNIT_TRUE(trp_ref_equal(a, b));
 *         UNIT_EQUAL(trp_something(), TRP_OK);
 *         UNIT_WAIT(atomic_load(&done), 5000); // polls until true, or its deadline
 *     }
 *
 *     UNIT_BEGIN("ref")
 *     UNIT(refs_are_equal_when_they_name_the_same_incarnation)
 *     UNIT_END
 *
 * tests/unit/local.mk lists the files of each room; tests/unit/actor/actor_tests, for instance:
 *
 *     actor_tests                     every suite, each in a process of its own
 *     actor_tests ref_test            one suite in this process; only the tests named behind it
 *     actor_tests --list              the suites
 *     actor_tests --alone             every test in a process of its own: none needs an earlier one
 *
 * A suite prints `PASS suite:test` or `FAIL suite:test file:line expression` a line; exits 0 or 1.
 * UNIT_EQUAL prints both values. A suite that cannot run in this build is UNIT_SKIPPED(name, why).
 *
 * Assertions do not leave the test (CUnit records them); UNIT_REQUIRE does. All may be called from
 * any thread except UNIT_REQUIRE, which is for the test's own.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct unit_test {
    const char *name;
    void (*run)(void);
} unit_test;

typedef struct unit_suite {
    const char *file;       /* __FILE__: the suite is called as the file is */
    const char *name;       /* printed before each test's name */
    const char *skip;       /* the reason why it cannot run, or NULL */
    const unit_test *tests; /* count of them */
    size_t count;
    struct unit_suite *next;
} unit_suite;

/* Called by UNIT_END before main: the suite is one of this program's. */
void unit_suite_add(unit_suite *suite);

/* The top of the sources: of the environment (TROUPE_SRCDIR), or as built. */
const char *unit_srcdir(void);

/* Record an assertion and return whether it held; a fatal one that did not leaves the test. Any
 * thread may call them, since CUnit's list has a lock here. */
bool unit_check(bool holds, int line, const char *text, const char *file, bool fatal);
bool unit_check_equal(long long got, long long want, int line, const char *text, const char *file);
bool unit_check_text(const char *got, const char *want, int line, const char *text,
                     const char *file);

unsigned unit_failures(void); /* assertions of the running test that did not hold */

uint64_t unit_now_ms(void); /* monotonic */

/* The processor time that this process has used so far: it does not grow while the machine runs
 * something else. For limits of cost; elapsed time has lower limits only. */
uint64_t unit_cpu_us(void);

void unit_pause(void); /* between two looks at a condition, never instead of one */

/* Sanitizers slow a test down up to 20 times; deadlines are stretched, never the conditions.
 * UNIT_SANITIZED is defined under gcc and clang alike, for figures that shadow memory falsifies. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define UNIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define UNIT_SANITIZED 1
#endif
#endif
#ifdef UNIT_SANITIZED
#define UNIT_STRETCH 10u
#else
#define UNIT_STRETCH 3u
#endif

#define UNIT_TRUE(expression)                                                                      \
    unit_check((expression) ? true : false, __LINE__, #expression, __FILE__, false)
#define UNIT_FALSE(expression)                                                                     \
    unit_check(!(expression), __LINE__, "!(" #expression ")", __FILE__, false)
/* As UNIT_TRUE, but a failure ends the test: for conditions that the rest needs. */
#define UNIT_REQUIRE(expression)                                                                   \
    unit_check((expression) ? true : false, __LINE__, #expression, __FILE__, true)
/* Integers, enums, bools. */
#define UNIT_EQUAL(got, want)                                                                      \
    unit_check_equal((long long)(got), (long long)(want), __LINE__, #got " == " #want, __FILE__)
#define UNIT_TEXT(got, want) unit_check_text((got), (want), __LINE__, #got " == " #want, __FILE__)
#define UNIT_FAIL(text) unit_check(false, __LINE__, text, __FILE__, false)

/* When a wait of so many ms gives up: stretched, and after a minute at the earliest, since a busy
 * machine may take seconds from a thread. Only a condition that never comes takes so long. */
static inline uint64_t
unit_deadline_ms(uint64_t ms)
{
    uint64_t stretched = ms * UNIT_STRETCH;

    return unit_now_ms() + (stretched < 60000 ? 60000 : stretched);
}

/* Poll until condition holds; fail after ms (stretched: 3 times, 10 under sanitizers; at least a
 * minute). Evaluates to whether it held. */
#define UNIT_WAIT(condition, ms)                                                                   \
    __extension__({                                                                                \
        uint64_t unit_deadline_ = unit_deadline_ms((uint64_t)(ms));                                \
        bool unit_held_ = false;                                                                   \
        while (!(unit_held_ = (condition) ? true : false) && unit_now_ms() < unit_deadline_) {     \
            unit_pause();                                                                          \
        }                                                                                          \
        unit_check(unit_held_, __LINE__, "within " #ms " ms: " #condition, __FILE__, false);       \
    })

#define UNIT_BEGIN(suite)                                                                          \
    static const char unit_name[] = suite;                                                         \
    static const unit_test unit_tests[] = {
#define UNIT(function) { #function, function },
#define UNIT_END                                                                                   \
    }                                                                                              \
    ;                                                                                              \
    static void __attribute__((constructor)) unit_add(void)                                        \
    {                                                                                              \
        static unit_suite suite = { __FILE__,                                                      \
                                    unit_name,                                                     \
                                    NULL,                                                          \
                                    unit_tests,                                                    \
                                    sizeof(unit_tests) / sizeof(unit_tests[0]),                    \
                                    NULL };                                                        \
        unit_suite_add(&suite);                                                                    \
    }
#define UNIT_SKIPPED(suite_name, why)                                                              \
    static void __attribute__((constructor)) unit_add(void)                                        \
    {                                                                                              \
        static unit_suite suite = { __FILE__, suite_name, why, NULL, 0, NULL };                    \
        unit_suite_add(&suite);                                                                    \
    }

#endif
