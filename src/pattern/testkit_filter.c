/* testkit_filter.c - expected log lines: taken out of the log and counted.
 *
 * Must hold.
 *   testkit-filter-F1  A line is taken by one filter, the innermost that fits; others do not see
 *       it.
 *   testkit-filter-F2  Lines come from any thread: filters are read and counted under filters_cond.
 * Limits.  TRPI_TEST_FILTERS_MAX filters inside one another.
 * Tests.   tests/unit/pattern/testkit_test.c
 * Sources. TEST-10: the leeway counts from the end of the block.
 */
#include "pattern/testkit.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/sized.h"

/* Match text against a pattern with *; NULL matches anything. Iterative: backing up to the last *
 * is enough. */
static bool
pattern_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *after = NULL;

    if (pattern == NULL) {
        return true;
    }
    while (*text != 0) {
        if (*pattern == '*') {
            star = ++pattern;
            after = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++after;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == 0;
}

static bool
filter_takes(const trp_filter *filter, const trp_log_line *line)
{
    return (filter->level == 0 || filter->level == (uint32_t)line->level) &&
           pattern_fits(filter->source, line->source) && pattern_fits(filter->text, line->text);
}

void
trpi_testkit_log(void *arg, const trp_log_line *line)
{
    static const char *const levels[] = { "?", "ERROR", "WARNING", "INFO", "DEBUG" };
    trp_testkit *kit = arg;
    bool taken = false;

    pthread_mutex_lock(&kit->filters_cond.lock);                  /* testkit-filter-F2 */
    for (uint32_t i = kit->filters_count; i > 0 && !taken; i--) { /* testkit-filter-F1 */
        trpi_filtering *filtering = &kit->filters[i - 1];

        if (filter_takes(filtering->filter, line)) {
            filtering->seen++;
            taken = true;
            trpi_cond_broadcast(&kit->filters_cond);
        }
    }
    pthread_mutex_unlock(&kit->filters_cond.lock);
    if (taken) {
        return;
    }
    if (kit->system_options.log != NULL) {
        kit->system_options.log(kit->system_options.log_arg, line);
    } else {
        (void)fprintf(stderr, "%-7s %s: %s\n",
                      levels[(unsigned)line->level <= TRP_LOG_DEBUG ? line->level : 0],
                      line->source, line->text);
    }
}

int
trp_filter_begin(const char *file, int line, trp_testkit *kit, const trp_filter *filter)
{
    bool room;

    if (!kit->owns || filter == NULL || !TRPI_SIZED_FITS(filter, text)) {
        trp_testkit_fail_at(kit, file, line, "no filter: %s",
                            kit->owns ? "its size is not set" : "the system is not the kit's own");
        return 0;
    }
    pthread_mutex_lock(&kit->filters_cond.lock);
    room = kit->filters_count < TRPI_TEST_FILTERS_MAX;
    if (room) {
        kit->filters[kit->filters_count++] = (trpi_filtering){ filter, file, line, 0 };
    }
    pthread_mutex_unlock(&kit->filters_cond.lock);
    if (!room) {
        trp_testkit_fail_at(kit, file, line, "more than %u filters inside one another",
                            TRPI_TEST_FILTERS_MAX);
    }
    return room;
}

static bool
has_seen_all(void *arg)
{
    const trpi_filtering *filtering = arg;

    return filtering->seen >= filtering->filter->occurrences;
}

int
trp_filter_end(trp_testkit *kit)
{
    trpi_filtering filtering;

    pthread_mutex_lock(&kit->filters_cond.lock);
    if (kit->filters_count == 0) { /* a failure inside has cleared it */
        pthread_mutex_unlock(&kit->filters_cond.lock);
        return 0;
    }
    if (kit->filters[kit->filters_count - 1].filter->occurrences != 0) {
        uint64_t deadline = trpi_testkit_now_ns(kit) + trpi_testkit_ns(kit, kit->options.leeway_ms);

        (void)trpi_cond_wait(&kit->filters_cond, trpi_testkit_sched(kit), has_seen_all,
                             &kit->filters[kit->filters_count - 1], deadline);
    }
    filtering = kit->filters[--kit->filters_count];
    pthread_mutex_unlock(&kit->filters_cond.lock);
    if (filtering.filter->occurrences != 0 && filtering.seen != filtering.filter->occurrences) {
        trp_testkit_fail_at(
            kit, filtering.file, filtering.line,
            "expected %u log lines (source %s, text %s), got %u", filtering.filter->occurrences,
            filtering.filter->source != NULL ? filtering.filter->source : "any",
            filtering.filter->text != NULL ? filtering.filter->text : "any", filtering.seen);
    }
    return 0;
}
