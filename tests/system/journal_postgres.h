/* journal_postgres.h - what the files of the program journal_postgres share. */
#ifndef TESTS_SYSTEM_JOURNAL_POSTGRES_H
#define TESTS_SYSTEM_JOURNAL_POSTGRES_H

#include <stdbool.h>

#include <troupe/journal_postgres.h>

extern int failures;
void check(bool holds, const char *name, const char *detail); /* prints PASS or FAIL */

/* Run one statement; *ret_number is its first value, if it has one. */
trp_err sql(const char *url, const char *text, long *ret_number);
trp_journal_postgres_options options_of(const char *url);

int delete_run(const char *url); /* the exit code */

#endif
