/* unit.h - a thin layer over CUnit for one-program-per-file unit tests.
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
 * Prints `PASS suite:test` or `FAIL suite:test file:line expression` a line; exits 0 or 1. Test
 * names may be given as arguments: only those run. UNIT_EQUAL prints both values.
 *
 * Assertions do not leave the test (CUnit records them); UNIT_REQUIRE does. All may be called from
 * any thread except UNIT_REQUIRE, which is for the test's own.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#ifndef HAVE_CUNIT
#error "CUnit not found: apt-get install libcunit1-dev, then configure again"
#endif

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct unit_test {
    const char *name;
    void (*run)(void);
} unit_test;

/* Assertions may come from actors' threads; CUnit's list is not thread-safe. */
static pthread_mutex_t unit_lock __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;

static inline bool
unit_check(bool holds, int line, const char *text, const char *file, bool fatal)
{
    pthread_mutex_lock(&unit_lock);
    if (!holds) {
        printf("  %s:%d: %s\n", file, line, text);
        fflush(stdout);
    }
    /* Fatal leaves by longjmp: not with the lock held. CUnit itself only counts here. */
    CU_assertImplementation(holds ? CU_TRUE : CU_FALSE, (unsigned)line, text, file, "", CU_FALSE);
    pthread_mutex_unlock(&unit_lock);
    if (!holds && fatal) {
        CU_assertImplementation(CU_FALSE, (unsigned)line, text, file, "", CU_TRUE);
    }
    return holds;
}

static inline bool
unit_check_equal(long long got, long long want, int line, const char *text, const char *file)
{
    char detail[320];

    if (got == want) {
        return unit_check(true, line, text, file, false);
    }
    snprintf(detail, sizeof(detail), "%s (got %lld, want %lld)", text, got, want);
    return unit_check(false, line, detail, file, false);
}

static inline bool
unit_check_text(const char *got, const char *want, int line, const char *text, const char *file)
{
    char detail[1024];

    if (got != NULL && want != NULL && strcmp(got, want) == 0) {
        return unit_check(true, line, text, file, false);
    }
    snprintf(detail, sizeof(detail), "%s (got \"%s\", want \"%s\")", text,
             got == NULL ? "(null)" : got, want == NULL ? "(null)" : want);
    return unit_check(false, line, detail, file, false);
}

static inline uint64_t
unit_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What this process has computed so far: who is not run, because the machine is busy, computes
 * nothing. For limits of cost; time itself has lower limits only. */
static inline uint64_t
unit_cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline void
unit_pause(void) /* between two looks at a condition, never instead of one */
{
    struct timespec one_ms = { 0, 1000000 };

    nanosleep(&one_ms, NULL);
}

/* Sanitizers slow a test down up to 20 times; deadlines are stretched, never the conditions.
 * UNIT_SANITIZED is defined under gcc and clang alike, for what shadow memory falsifies. */
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
/* As UNIT_TRUE, but a failure ends the test: for what the rest of it stands on. */
#define UNIT_REQUIRE(expression)                                                                   \
    unit_check((expression) ? true : false, __LINE__, #expression, __FILE__, true)
/* Integers, enums, bools. */
#define UNIT_EQUAL(got, want)                                                                      \
    unit_check_equal((long long)(got), (long long)(want), __LINE__, #got " == " #want, __FILE__)
#define UNIT_TEXT(got, want) unit_check_text((got), (want), __LINE__, #got " == " #want, __FILE__)
#define UNIT_FAIL(text) unit_check(false, __LINE__, text, __FILE__, false)

/* When who waits so long gives up: stretched, and after a minute at the earliest, since a busy
 * machine may take seconds from a thread anywhere. Only what never comes takes so long. */
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

static inline bool
unit_wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return argc <= 1;
}

static inline void
unit_report(const char *suite, const char *name)
{
    CU_pFailureRecord failure = CU_get_failure_list();
    const char *file = failure == NULL ? "" : failure->strFileName;
    const char *text = failure == NULL ? "" : failure->strCondition;

    if (failure == NULL) {
        printf("PASS %s:%s\n", suite, name);
    } else {
        printf("FAIL %s:%s %s:%u %s\n", suite, name, file, failure->uiLineNumber, text);
    }
    fflush(stdout);
}

static inline int
unit_main(int argc, char **argv, const char *suite, const unit_test *tests, size_t count)
{
    CU_pSuite cu_suite;
    unsigned failed = 0;
    unsigned ran = 0;

    if (CU_initialize_registry() != CUE_SUCCESS ||
        (cu_suite = CU_add_suite(suite, NULL, NULL)) == NULL) {
        fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
        return 1;
    }
    CU_set_error_action(CUEA_IGNORE);
    for (size_t i = 0; i < count; i++) {
        CU_pTest test;

        if (!unit_wanted(argc, argv, tests[i].name)) {
            continue;
        }
        test = CU_add_test(cu_suite, tests[i].name, tests[i].run);
        if (test == NULL) {
            fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
            failed++;
            continue;
        }
        ran++;
        CU_run_test(cu_suite, test);
        failed += CU_get_number_of_failures() > 0;
        unit_report(suite, tests[i].name);
    }
    CU_cleanup_registry();
    if (ran == 0) {
        fprintf(stderr, "%s: no test of this name\n", suite);
        return 1;
    }
    return failed > 0;
}

#define UNIT_BEGIN(suite)                                                                          \
    static const char *const unit_suite = suite;                                                   \
    static const unit_test unit_tests[] = {
#define UNIT(function) { #function, function },
#define UNIT_END                                                                                   \
    }                                                                                              \
    ;                                                                                              \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return unit_main(argc, argv, unit_suite, unit_tests,                                       \
                         sizeof(unit_tests) / sizeof(unit_tests[0]));                              \
    }

#endif
