/* golden.h - compare the bytes that this build writes with those of an older one. */
#ifndef TESTS_UNIT_GOLDEN_H
#define TESTS_UNIT_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Check that the output of `write` equals the file tests/golden/NAME, and return its text (until
 * the next call). To make the file of a new version: TROUPE_GOLDEN_WRITE=1. */
static inline char *
unit_golden(const char *name, void (*write)(FILE *))
{
    static char expected[16384], got[16384];
    char path[512];

    (void)snprintf(path, sizeof path, "%s/tests/golden/%s", unit_srcdir(), name);
    if (getenv("TROUPE_GOLDEN_WRITE") != NULL) {
        FILE *made = fopen(path, "w");
        UNIT_REQUIRE(made != NULL);
        write(made);
        (void)fclose(made);
    }
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    (void)fclose(file);
    FILE *memory = fmemopen(got, sizeof got, "w");
    UNIT_REQUIRE(memory != NULL);
    write(memory);
    (void)fclose(memory);
    UNIT_TRUE(strcmp(expected, got) == 0);
    return expected;
}

#endif
