/* written.h - failures of a kit and lines of its log, written down. */
#ifndef TESTS_UNIT_PATTERN_WRITTEN_H
#define TESTS_UNIT_PATTERN_WRITTEN_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

static char failures[4096];
static int failed_line;

static void
write_failure(void *arg, const char *file, int line, const char *text)
{
    (void)arg;
    UNIT_TRUE(strstr(file, "testkit_test.c") != NULL);
    failed_line = line;
    snprintf(failures, sizeof failures, "%s", text);
}

static char lines[65536];
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static void
write_line(void *arg, const trp_log_line *line)
{
    size_t used;

    (void)arg;
    pthread_mutex_lock(&lines_lock);
    used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "[%d %s: %s]", (int)line->level, line->source,
             line->text);
    pthread_mutex_unlock(&lines_lock);
}

static bool
logged(const char *text)
{
    bool found;

    pthread_mutex_lock(&lines_lock);
    found = strstr(lines, text) != NULL;
    pthread_mutex_unlock(&lines_lock);
    return found;
}

#endif
