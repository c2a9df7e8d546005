/* unit.c - record assertions; the clocks of the tests. */
#include "tests/unit/unit.h"

#ifndef HAVE_CUNIT
#error "CUnit not found: apt-get install libcunit1-dev, then configure again"
#endif

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of CUnit's list */

bool
unit_check(bool holds, int line, const char *text, const char *file, bool fatal)
{
    pthread_mutex_lock(&lock);
    if (!holds) {
        printf("  %s:%d: %s\n", file, line, text);
        fflush(stdout);
    }
    /* Fatal leaves by longjmp: not with the lock held. CUnit itself only counts here. */
    CU_assertImplementation(holds ? CU_TRUE : CU_FALSE, (unsigned)line, text, file, "", CU_FALSE);
    pthread_mutex_unlock(&lock);
    if (!holds && fatal) {
        CU_assertImplementation(CU_FALSE, (unsigned)line, text, file, "", CU_TRUE);
    }
    return holds;
}

bool
unit_check_equal(long long got, long long want, int line, const char *text, const char *file)
{
    char detail[320];

    if (got == want) {
        return unit_check(true, line, text, file, false);
    }
    snprintf(detail, sizeof detail, "%s (got %lld, want %lld)", text, got, want);
    return unit_check(false, line, detail, file, false);
}

bool
unit_check_text(const char *got, const char *want, int line, const char *text, const char *file)
{
    char detail[1024];

    if (got != NULL && want != NULL && strcmp(got, want) == 0) {
        return unit_check(true, line, text, file, false);
    }
    snprintf(detail, sizeof detail, "%s (got \"%s\", want \"%s\")", text,
             got == NULL ? "(null)" : got, want == NULL ? "(null)" : want);
    return unit_check(false, line, detail, file, false);
}

unsigned
unit_failures(void)
{
    unsigned failures;

    pthread_mutex_lock(&lock);
    failures = CU_get_number_of_failures();
    pthread_mutex_unlock(&lock);
    return failures;
}

uint64_t
unit_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t
unit_cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void
unit_pause(void)
{
    struct timespec one_ms = { 0, 1000000 };

    nanosleep(&one_ms, NULL);
}

const char *
unit_srcdir(void)
{
    const char *srcdir = getenv("TROUPE_SRCDIR");

    return srcdir != NULL ? srcdir : TESTS_SRCDIR;
}
