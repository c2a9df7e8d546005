/* program.h - what the files of the ABI test share. */
#ifndef TESTS_ABI_PROGRAM_H
#define TESTS_ABI_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

extern trp_system *stage;

/* Record a condition, and say which one did not hold. */
void check_at(int line, bool holds, const char *name, const char *what);
#define CHECK(holds, name, what) check_at(__LINE__, (holds), (name), (what))
extern int failures;

/* Check each struct that begins with its size by each rule. */
void sizes_are_checked(void);

#endif
