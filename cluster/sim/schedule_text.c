/* schedule_text.c - schedules as lines, `TIME ACTION ARGUMENTS`, read and written by one table.
 *
 * Must hold. A schedule that is written and read again is the same.
 * Tests.     tests/unit/cluster/schedule_test.c
 */
#include "cluster/sim/schedule.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cluster/engine/downing.h"

#define WORDS_MAX 8

/* Arguments: n node, c count, d duration, i duration that may be negative, p per cent, o on|off,
 * s a side for each node, w both|one-way, x a strategy. */
static const struct form {
    const char *name, *arguments;
    enum { ANYBODY, ENGINES, NODES } of; /* simulated engines, or complete nodes only */
} forms[TRPI_SIM_ACTS] = {
    [TRPI_SIM_STABLE_AFTER] = { "stable-after", "d", ANYBODY },
    [TRPI_SIM_UNSTABLE_AFTER] = { "down-all-when-unstable", "d", ENGINES },
    [TRPI_SIM_DOWNING] = { "downing", "x", ANYBODY },
    [TRPI_SIM_QUORUM] = { "quorum-size", "c", ENGINES },
    [TRPI_SIM_MONITORED_BY] = { "monitored-by", "c", ENGINES },
    [TRPI_SIM_MIN_MEMBERS] = { "min-members", "c", ENGINES },
    [TRPI_SIM_DELAY] = { "delay", "dd", ANYBODY },
    [TRPI_SIM_BUGGIFY] = { "buggify", "o", ENGINES },
    [TRPI_SIM_EXITING_TAKES] = { "exiting-takes", "d", ENGINES },
    [TRPI_SIM_COMPLETE] = { "complete", "o", ANYBODY },
    [TRPI_SIM_CAREFUL] = { "careful", "o", ANYBODY },
    [TRPI_SIM_SUPERVISED] = { "supervised", "o", ANYBODY },
    [TRPI_SIM_KILL] = { "kill", "n", ANYBODY },
    [TRPI_SIM_START] = { "start", "n", ANYBODY },
    [TRPI_SIM_PAUSE] = { "pause", "nd", ANYBODY },
    [TRPI_SIM_LEAVE] = { "leave", "nn", ANYBODY },
    [TRPI_SIM_DOWN] = { "down", "nn", ANYBODY },
    [TRPI_SIM_CUT] = { "cut", "sdw", ANYBODY },
    [TRPI_SIM_LINK] = { "link", "nndw", ANYBODY },
    [TRPI_SIM_HEAL] = { "heal", "", ANYBODY },
    [TRPI_SIM_LOSS] = { "loss", "p", ENGINES },
    [TRPI_SIM_DUPLICATE] = { "duplicate", "p", ENGINES },
    [TRPI_SIM_CORRUPT] = { "corrupt", "p", ENGINES },
    [TRPI_SIM_SKEW] = { "skew", "ni", ENGINES },
    [TRPI_SIM_JOIN] = { "join", "nn", NODES },
    [TRPI_SIM_SHUTDOWN] = { "shutdown", "n", NODES },
    [TRPI_SIM_LEAVE_BACK] = { "leave-back", "nnd", NODES },
    [TRPI_SIM_DOWN_BACK] = { "down-back", "nnd", NODES },
    [TRPI_SIM_PORT] = { "port", "nd", NODES },
    [TRPI_SIM_DIAL] = { "dial", "nnd", NODES },
    [TRPI_SIM_RESET] = { "reset", "n", NODES },
    [TRPI_SIM_ROTATE] = { "rotate", "n", NODES },
    [TRPI_SIM_STRANGERS] = { "strangers", "ncd", NODES },
    [TRPI_SIM_SLOW] = { "slow", "nd", NODES },
    [TRPI_SIM_START_ALONE] = { "start-alone", "n", NODES },
    [TRPI_SIM_START_WRONG] = { "start-wrong", "n", NODES },
    [TRPI_SIM_START_DOUBLED] = { "start-doubled", "nn", NODES },
    [TRPI_SIM_END] = { "end", "", ANYBODY },
};

/* ---- writing --------------------------------------------------------------------------------- */

static size_t append_text(char *text, size_t bytes, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t
append_text(char *text, size_t bytes, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wrote = at < bytes ? vsnprintf(text + at, bytes - at, format, args) : 0;
    va_end(args);
    return at + (wrote > 0 ? (size_t)wrote : 0);
}

const char *
trpi_sim_action_text(const trpi_sim_action *action, char *text, size_t bytes)
{
    uint32_t nodes[2] = { action->a, action->b };
    int64_t durations[2] = { action->ms, action->ms2 };
    uint32_t node = 0;
    uint32_t duration = 0;
    size_t at = append_text(text, bytes, 0, "%llums %s", (unsigned long long)action->at_ms,
                            forms[action->act].name);
    for (const char *form = forms[action->act].arguments; *form != '\0'; form++) {
        switch (*form) {
        case 'n':
        case 'c':
            at = append_text(text, bytes, at, " %u", nodes[node++]);
            break;
        case 'd':
        case 'i':
            at = append_text(text, bytes, at, " %lldms", (long long)durations[duration++]);
            break;
        case 'p':
            at = append_text(text, bytes, at, " %u.%u%%", action->a / 10, action->a % 10);
            break;
        case 'o':
            at = append_text(text, bytes, at, " %s", action->a != 0 ? "on" : "off");
            break;
        case 'w':
            at = append_text(text, bytes, at, " %s", action->one_way ? "one-way" : "both");
            break;
        default:
            at = append_text(text, bytes, at, " %s", action->text);
            break;
        }
    }
    return text;
}

void
trpi_sim_schedule_write(const trpi_sim_schedule *schedule, FILE *file)
{
    char line[TRPI_SIM_LINE_BYTES_MAX];
    for (uint32_t i = 0; i < schedule->count; i++) {
        fprintf(file, "%s\n", trpi_sim_action_text(&schedule->actions[i], line, sizeof line));
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    uint32_t nodes;
    char *error;
    size_t error_bytes;
    unsigned line;
};

static bool reader_fail(const struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool
reader_fail(const struct reader *r, const char *format, ...)
{
    int at = snprintf(r->error, r->error_bytes, "line %u: ", r->line);
    va_list args;
    va_start(args, format);
    vsnprintf(r->error + at, r->error_bytes - (size_t)at, format, args);
    va_end(args);
    return false;
}

bool
trpi_sim_duration(const char *word, int64_t *ret_ms)
{
    uint64_t ms = 0;
    bool good = trpi_duration_parse(word, 0, 0, TRPI_SIM_TIME_MS_MAX, &ms);
    *ret_ms = (int64_t)ms;
    return good;
}

/* "12%" or "12.5%" */
static bool
read_per_mille(const char *word, uint32_t *ret)
{
    trpi_decimal decimal;
    const char *rest = NULL;
    int64_t per_mille = 0;
    bool good = trpi_decimal_take(word, &decimal, &rest) && strcmp(rest, "%") == 0 &&
                trpi_decimal_times(&decimal, 10, &per_mille) && per_mille >= 0 && per_mille <= 1000;
    *ret = (uint32_t)per_mille;
    return good && !decimal.negative;
}

static bool
read_sides(const struct reader *r, const char *word, trpi_sim_action *action)
{
    size_t bytes = strlen(word);
    if (bytes != r->nodes || strspn(word, "01") != bytes) {
        return reader_fail(r, "'%s': write 0 or 1 for each of the %u nodes", word, r->nodes);
    }
    action->text = trpi_strdup(word);
    return action->text != NULL || reader_fail(r, "out of memory");
}

static bool
read_strategy(const struct reader *r, const char *word, trpi_sim_action *action)
{
    if (trpi_downing_find(word) == NULL) {
        return reader_fail(r, "'%s' is no downing strategy", word);
    }
    action->text = trpi_strdup(word);
    return action->text != NULL || reader_fail(r, "out of memory");
}

/* One of two words, the first of which is 1. */
static bool
read_choice(const struct reader *r, const char *word, const char *one, const char *zero, bool *ret)
{
    *ret = strcmp(word, one) == 0;
    return *ret || strcmp(word, zero) == 0 ||
           reader_fail(r, "'%s': write %s or %s", word, one, zero);
}

static bool
read_duration(const struct reader *r, const char *word, bool negative_too, int64_t *ret)
{
    bool negative = negative_too && word[0] == '-';
    if (!trpi_sim_duration(word + (negative ? 1 : 0), ret)) {
        return reader_fail(r, "'%s' is no duration of at most a day: write 500ms, 5s or 2m", word);
    }
    *ret = negative ? -*ret : *ret;
    return true;
}

static bool
read_argument(const struct reader *r, char form, const char *word, trpi_sim_action *action,
              uint32_t *number, uint32_t *duration)
{
    uint32_t *numbers[2] = { &action->a, &action->b };
    int64_t *durations[2] = { &action->ms, &action->ms2 };
    bool on = false;
    bool ok;
    switch (form) {
    case 'n':
        return (trpi_whole32_parse(word, 0, UINT32_MAX, numbers[*number]) &&
                *numbers[(*number)++] < r->nodes) ||
               reader_fail(r, "'%s' is no node: they are 0 to %u", word, r->nodes - 1);
    case 'c':
        return trpi_whole32_parse(word, 0, 100000, numbers[(*number)++]) ||
               reader_fail(r, "'%s' is no number up to 100000", word);
    case 'd':
    case 'i':
        return read_duration(r, word, form == 'i', durations[(*duration)++]);
    case 'p':
        return read_per_mille(word, &action->a) ||
               reader_fail(r, "'%s': write per cent as 12%% or 12.5%%, at most 100%%", word);
    case 'o':
        ok = read_choice(r, word, "on", "off", &on);
        action->a = on;
        return ok;
    case 'w':
        return read_choice(r, word, "one-way", "both", &action->one_way);
    case 's':
        return read_sides(r, word, action);
    default:
        return read_strategy(r, word, action);
    }
}

static bool
find_act(const struct reader *r, const char *word, trpi_sim_act *ret_act)
{
    const char *names[TRPI_SIM_ACTS];
    for (uint32_t i = 0; i < TRPI_SIM_ACTS; i++) {
        names[i] = forms[i].name;
        if (strcmp(word, names[i]) == 0) {
            *ret_act = (trpi_sim_act)i;
            return true;
        }
    }
    const char *near = trpi_nearest(word, names, TRPI_SIM_ACTS);
    return near != NULL ? reader_fail(r, "'%s' is no action; did you mean %s?", word, near)
                        : reader_fail(r, "'%s' is no action", word);
}

static bool
read_words(const struct reader *r, char *const *words, uint32_t count, trpi_sim_action *action)
{
    int64_t at_ms;
    uint32_t number = 0;
    uint32_t duration = 0;
    if (count < 2) {
        return reader_fail(r, "a line is TIME ACTION ARGUMENTS");
    }
    if (!read_duration(r, words[0], false, &at_ms) || !find_act(r, words[1], &action->act)) {
        return false;
    }
    action->at_ms = (uint64_t)at_ms;
    const struct form *form = &forms[action->act];
    if (count - 2 != strlen(form->arguments)) {
        return reader_fail(r, "%s takes %zu arguments", form->name, strlen(form->arguments));
    }
    if (action->act <= TRPI_SIM_SUPERVISED && at_ms != 0) {
        return reader_fail(r, "%s is a setting: it stands at 0s", form->name);
    }
    for (uint32_t i = 2; i < count; i++) {
        if (!read_argument(r, form->arguments[i - 2], words[i], action, &number, &duration)) {
            return false;
        }
    }
    return true;
}

static trp_err
read_line(struct reader *r, char *line, trpi_sim_schedule *schedule)
{
    char *words[WORDS_MAX];
    uint32_t count = 0;
    char *rest = NULL;
    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (count == WORDS_MAX) {
            reader_fail(r, "more than %d words", WORDS_MAX);
            return TRP_ECONFIG;
        }
        words[count++] = word;
    }
    if (count == 0) {
        return TRP_OK;
    }
    trpi_sim_action action = { 0 };
    if (!read_words(r, words, count, &action)) {
        trpi_free(action.text);
        return TRP_ECONFIG;
    }
    if (schedule->count > 0 && schedule->actions[schedule->count - 1].at_ms > action.at_ms) {
        reader_fail(r, "the line above is later; write them in order of time");
        trpi_free(action.text);
        return TRP_ECONFIG;
    }
    trp_err err = trpi_sim_schedule_add(schedule, action);
    if (err == TRP_ELIMIT) {
        reader_fail(r, "more than %u actions", TRPI_SIM_ACTIONS_MAX);
        return TRP_ECONFIG;
    }
    return err;
}

bool
trpi_sim_schedule_is_complete(const trpi_sim_schedule *schedule)
{
    bool complete = false;
    for (uint32_t i = 0; i < schedule->count; i++) {
        const trpi_sim_action *a = &schedule->actions[i];
        complete = a->act == TRPI_SIM_COMPLETE ? a->a != 0 : complete;
    }
    return complete;
}

/* Return whether the world of this schedule (engines, or complete nodes) has all of its actions. */
static bool
is_of_one_world(struct reader *r, const trpi_sim_schedule *schedule)
{
    bool complete = trpi_sim_schedule_is_complete(schedule);
    for (uint32_t i = 0; i < schedule->count; i++) {
        const struct form *form = &forms[schedule->actions[i].act];
        if (form->of == (complete ? ENGINES : NODES)) {
            (void)snprintf(r->error, r->error_bytes,
                           complete ? "%s is not for complete nodes (complete on)"
                                    : "%s is for complete nodes: write 0s complete on",
                           form->name);
            return false;
        }
    }
    return true;
}

trp_err
trpi_sim_schedule_read(FILE *file, uint32_t nodes, trpi_sim_schedule **ret_schedule, char *error,
                       size_t error_bytes)
{
    struct reader r = { nodes, error, error_bytes, 0 };
    char line[TRPI_SIM_LINE_BYTES_MAX + 1];
    trpi_sim_schedule *schedule = trpi_alloc(sizeof *schedule);
    trp_err err = schedule == NULL ? TRP_ENOMEM : TRP_OK;
    while (err == TRP_OK && fgets(line, sizeof line, file) != NULL) {
        r.line++;
        if (strchr(line, '\n') == NULL && !feof(file)) {
            reader_fail(&r, "longer than %u bytes", TRPI_SIM_LINE_BYTES_MAX - 1);
            err = TRP_ECONFIG;
        } else {
            err = read_line(&r, line, schedule);
        }
    }
    if (err == TRP_OK && !is_of_one_world(&r, schedule)) {
        err = TRP_ECONFIG;
    }
    if (err == TRP_OK) {
        *ret_schedule = schedule;
        return TRP_OK;
    }
    trpi_sim_schedule_free(schedule);
    return err;
}
