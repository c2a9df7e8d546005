/* testkit_seeded.c - run an actor program under seeds, and find the shortest schedule that breaks
 * it.
 *
 * Shape.   seed -> virtual world (decisions are drawn, and recorded when they are not 0) -> kit ->
 *          program -> stop. A failure: the record is replayed with parts of it left out, for as
 *          long as the same expectation fails; the rest is printed.
 * Must hold.
 *   testkit-seeded-S1  A replay differs from the run that it repeats in nothing but its decisions:
 *       the world's random numbers come from the seed alone.
 *   testkit-seeded-S2  Shrinking keeps a schedule only when it fails at the same file and line.
 * Limits.  shrink_max runs; a schedule of TRP_SEEDED_SCHEDULE_BYTES is printed.
 * Tests.   tests/unit/pattern/seeded_test.c, tests/sim/local_test.c
 * Sources. A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (ddmin).
 */
#include <troupe/seeded.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "pattern/testkit.h"

#define LINE_BYTES (TRP_SEEDED_SCHEDULE_BYTES + 256u)

typedef struct schedule {
    trpi_deviation *list;
    uint32_t count;
} schedule;

typedef struct seeded {
    trp_seeded_program program;
    void *arg;
    trp_seeded_options options; /* defaults filled in */
    trp_testkit_options kit_options;
    trp_system_options system_options;
    /* of the present run */
    bool failed;
    const char *file;
    int line;
    char text[512];
} seeded;

/* The result of a run. */
typedef struct outcome {
    trp_err err; /* TRP_ENOMEM: no run took place */
    bool failed;
    const char *file;
    int line;
    uint64_t hash, turns;
    uint32_t choices;
    schedule made; /* owned */
} outcome;

/* ---- one run --------------------------------------------------------------------------------- */

static void
note_failure(void *arg, const char *file, int line, const char *text)
{
    seeded *s = arg;

    if (!s->failed) { /* the first is the cause */
        s->failed = true;
        s->file = file;
        s->line = line;
        (void)snprintf(s->text, sizeof s->text, "%s", text);
    }
}

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static bool
schedule_copy(schedule *to, const trpi_deviation *list, uint32_t count)
{
    to->list = trpi_alloc((count + 1u) * sizeof *to->list);
    to->count = to->list != NULL ? count : 0;
    if (to->list != NULL && count > 0) {
        memcpy(to->list, list, count * sizeof *list);
    }
    return to->list != NULL;
}

static void
outcome_fill(const seeded *s, trpi_virtual *virt, outcome *ret_outcome)
{
    uint32_t count;
    const trpi_deviation *made = trpi_virtual_deviations(virt, &count);

    ret_outcome->failed = s->failed;
    ret_outcome->file = s->file;
    ret_outcome->line = s->line;
    ret_outcome->hash = trpi_virtual_hash(virt);
    ret_outcome->turns = trpi_virtual_turns(virt);
    ret_outcome->choices = trpi_virtual_choices(virt);
    if (!schedule_copy(&ret_outcome->made, made, count)) {
        ret_outcome->err = TRP_ENOMEM;
    }
}

/* Run the program once; replay NULL: draw decisions. The caller frees the outcome's schedule. */
static void
run_once(seeded *s, uint64_t seed, const schedule *replay, outcome *ret_outcome)
{
    trpi_virtual_options world = {
        .seed = seed,
        .calm = replay != NULL,
        .turns_max = s->options.turns_max,
        .stall_ms_max = s->options.stall_ms_max,
        .deviations = replay != NULL ? replay->list : NULL,
        .deviations_count = replay != NULL ? replay->count : 0,
    };
    trpi_virtual *virt;
    trp_testkit *kit;

    memset(ret_outcome, 0, sizeof *ret_outcome);
    s->failed = false;
    ret_outcome->err = trpi_virtual_new(&world, &virt);
    if (ret_outcome->err != TRP_OK) {
        return;
    }
    ret_outcome->err = trpi_testkit_open_in(&s->kit_options, virt, &kit);
    if (ret_outcome->err != TRP_OK) {
        trpi_world_free(trpi_virtual_world(virt));
        return;
    }
    (void)trp_testkit_run(kit, s->program, s->arg);
    if (!s->failed && !trpi_virtual_is_over(virt) &&
        trp_system_stop(kit->system, trp_testkit_timeout_ms(kit)) != TRP_OK &&
        !trpi_virtual_is_over(virt)) {
        note_failure(s, __FILE__, __LINE__, "the system does not stop: an actor is stuck");
    }
    if (!s->failed && trpi_virtual_is_over(virt)) {
        note_failure(s, __FILE__, __LINE__, "more turns than turns_max: actors talk without end");
    }
    outcome_fill(s, virt, ret_outcome);
    trpi_virtual_calm(virt);
    (void)trp_testkit_close(kit); /* a stuck system is leaked; it was reported above */
}

/* ---- schedules as text ----------------------------------------------------------------------- */

/* An entry is "12t3": before turn 12, task 3 instead of 0; s: a stall, b: a batch. In the order of
 * trpi_choice. */
static const char letters[] = "stb";

static bool
entry_parse(const char **text, trpi_deviation *ret_entry)
{
    char *letter, *end;
    unsigned long long turn = strtoull(*text, &letter, 10), value;
    const char *known = *letter != 0 ? strchr(letters, *letter) : NULL;

    if (letter == *text || known == NULL || turn >= UINT32_MAX) {
        return false;
    }
    value = strtoull(letter + 1, &end, 10);
    if (end == letter + 1 || (*end != ' ' && *end != 0) || value > UINT16_MAX) {
        return false;
    }
    *ret_entry = (trpi_deviation){ (uint32_t)turn, (uint16_t)(known - letters), (uint16_t)value };
    *text = end + strspn(end, " ");
    return true;
}

static bool
comes_before(const trpi_deviation *a, const trpi_deviation *b)
{
    return a->turn < b->turn || (a->turn == b->turn && a->what < b->what);
}

static bool
schedule_parse(const char *text, schedule *ret_schedule)
{
    trpi_deviation *list = trpi_alloc((strlen(text) / 3 + 2) * sizeof *list);
    uint32_t count = 0;

    while (list != NULL && *text != 0) {
        if (!entry_parse(&text, &list[count]) ||
            (count > 0 && !comes_before(&list[count - 1], &list[count]))) {
            trpi_free(list);
            return false;
        }
        count++;
    }
    *ret_schedule = (schedule){ list, count };
    return list != NULL;
}

static void
schedule_print(const schedule *from, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const trpi_deviation *entry = &from->list[i];
        char one[32];
        int length = snprintf(one, sizeof one, "%s%" PRIu32 "%c%u", i == 0 ? "" : " ", entry->turn,
                              letters[entry->what], (unsigned)entry->value);

        if (length < 0 || used + (size_t)length + 1 > bytes) {
            return;
        }
        memcpy(text + used, one, (size_t)length + 1);
        used += (size_t)length;
    }
}

/* ---- shrinking ------------------------------------------------------------------------------- */

typedef struct shrinking {
    seeded *s;
    uint64_t seed;
    const char *file; /* testkit-seeded-S2 */
    int line;
    uint32_t runs;
    schedule best; /* owned */
} shrinking;

/* Run the candidate. If it still fails, the decisions of that run are the best schedule so far:
 * they have no entries that were never reached. Takes the candidate's list in either case. */
static bool
try_schedule(shrinking *shrink, schedule candidate)
{
    outcome out;
    bool better;

    if (candidate.list == NULL || shrink->runs >= shrink->s->options.shrink_max) {
        trpi_free(candidate.list);
        return false;
    }
    shrink->runs++;
    run_once(shrink->s, shrink->seed, &candidate, &out);
    trpi_free(candidate.list);
    better = out.err == TRP_OK && out.failed && strcmp(out.file, shrink->file) == 0 &&
             out.line == shrink->line && out.made.count <= shrink->best.count;
    if (!better) {
        trpi_free(out.made.list);
        return false;
    }
    trpi_free(shrink->best.list);
    shrink->best = out.made;
    return true;
}

/* Return the best schedule without entries from .. from + count - 1. */
static schedule
schedule_without(const schedule *from, uint32_t first, uint32_t count)
{
    schedule less = { NULL, 0 };

    if (schedule_copy(&less, from->list, from->count)) {
        memmove(less.list + first, less.list + first + count,
                (from->count - first - count) * sizeof *less.list);
        less.count -= count;
    }
    return less;
}

/* ddmin: leave out ever smaller parts, as long as any can be left out. */
static void
leave_out(shrinking *shrink)
{
    uint32_t part = shrink->best.count;

    while (part > 0 && shrink->runs < shrink->s->options.shrink_max) {
        bool shorter = false;

        /* from the end: late decisions depend on earlier ones, not the other way round */
        for (uint32_t end = shrink->best.count; end > 0;) {
            uint32_t first = end > part ? end - part : 0;
            uint32_t before = shrink->best.count;

            if (try_schedule(shrink, schedule_without(&shrink->best, first, end - first)) &&
                shrink->best.count < before) {
                shorter = true;
            }
            end = first < shrink->best.count ? first : shrink->best.count;
        }
        if (!shorter || part > shrink->best.count) {
            part = part > shrink->best.count ? shrink->best.count : part / 2;
        }
    }
}

/* Smaller decisions are easier to follow: the second in the queue rather than the seventeenth. */
static void
make_smaller(shrinking *shrink)
{
    for (uint32_t i = 0; i < shrink->best.count; i++) {
        for (uint16_t value = 1; i < shrink->best.count && value < shrink->best.list[i].value;
             value++) {
            schedule small = { NULL, 0 };

            if (schedule_copy(&small, shrink->best.list, shrink->best.count)) {
                small.list[i].value = value;
            }
            if (try_schedule(shrink, small)) {
                break;
            }
        }
    }
}

/* ---- telling --------------------------------------------------------------------------------- */

static void line_print(const seeded *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void
line_print(const seeded *s, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (s->options.print != NULL) {
        s->options.print(s->options.print_arg, line);
    } else {
        (void)fprintf(stderr, "%s\n", line);
    }
}

static void
print_failure(const seeded *s, const trp_seeded_result *result)
{
    line_print(s, "%s:%d: %s", result->file, result->line, result->text);
    line_print(s,
               "  seed %" PRIu64 ": %" PRIu64 " turns, %" PRIu32 " choices, %" PRIu32 " not calm",
               result->seed, result->turns, result->choices, result->deviations);
    if (s->options.replay != NULL) {
        line_print(s, "  replay: %s %" PRIu64, s->options.replay, result->seed);
    } else {
        line_print(s, "  replay: trp_seeded_run() with options.seed = %" PRIu64, result->seed);
    }
    if (s->options.shrink_max > 0) {
        line_print(s,
                   "  shrunk in %" PRIu32 " runs to %" PRIu32 " choices: options.schedule = \"%s\"",
                   result->shrink_runs, result->shrunk, result->schedule);
    }
}

/* ---- all runs -------------------------------------------------------------------------------- */

static void
shrink_failure(seeded *s, const outcome *failure, trp_seeded_result *result)
{
    shrinking shrink = { s, result->seed, failure->file, failure->line, 0, { NULL, 0 } };
    uint32_t count;

    if (!schedule_copy(&shrink.best, failure->made.list, failure->made.count)) {
        return;
    }
    do { /* smaller decisions may make others superfluous */
        count = shrink.best.count;
        leave_out(&shrink);
        make_smaller(&shrink);
    } while (shrink.best.count < count);
    result->shrunk = shrink.best.count;
    result->shrink_runs = shrink.runs;
    schedule_print(&shrink.best, result->schedule, sizeof result->schedule);
    trpi_free(shrink.best.list);
}

static void
result_fill(const seeded *s, const outcome *out, trp_seeded_result *result)
{
    result->failed = out->failed;
    result->hash = out->hash;
    result->turns = out->turns;
    result->choices = out->choices;
    result->deviations = result->shrunk = out->made.count;
    if (out->failed) {
        result->file = s->file;
        result->line = s->line;
        (void)snprintf(result->text, sizeof result->text, "%s", s->text);
        schedule_print(&out->made, result->schedule, sizeof result->schedule);
    }
}

/* False: refused. */
static bool
options_fill(seeded *s, const trp_seeded_options *given)
{
    static const trp_seeded_options none = TRP_SEEDED_OPTIONS_INIT;
    static const trp_testkit_options kit_none = TRP_TESTKIT_OPTIONS_INIT;
    trp_seeded_options *options = &s->options;

    *options = none;
    s->kit_options = kit_none;
    if (!TRPI_SIZED_COPY(given, options, print_arg) ||
        !TRPI_SIZED_COPY(options->kit, &s->kit_options, quiet_dead_letters) ||
        s->kit_options.system != NULL || !trpi_options_are_valid(s->kit_options.system_options)) {
        return false;
    }
    options->seed = options->seed != 0 ? options->seed : 1;
    options->seeds = options->seeds != 0 ? options->seeds : 1;
    options->turns_max = options->turns_max != 0 ? options->turns_max : TRP_SEEDED_TURNS_DEFAULT;
    options->stall_ms_max = options->stall_ms_max == 0         ? TRP_SEEDED_STALL_MS_DEFAULT
                            : options->stall_ms_max == TRP_OFF ? 0
                                                               : options->stall_ms_max;
    options->shrink_max = options->shrink_max == 0         ? TRP_SEEDED_SHRINK_DEFAULT
                          : options->shrink_max == TRP_OFF ? 0
                                                           : options->shrink_max;
    s->kit_options.clock = TRP_CLOCK_VIRTUAL;
    s->kit_options.on_fail = TRP_FAIL_JUMP;
    s->kit_options.fail = note_failure;
    s->kit_options.fail_arg = s;
    trpi_options_copy(s->kit_options.system_options, &s->system_options);
    if (s->system_options.log == NULL) {
        s->system_options.log = drop_line;
    }
    s->kit_options.system_options = &s->system_options;
    return true;
}

trp_err
trp_seeded_run(trp_seeded_program program, void *arg, const trp_seeded_options *options,
               trp_seeded_result *ret_result)
{
    trp_seeded_result result = { .size = sizeof result };
    schedule given = { NULL, 0 };
    trp_err err = TRP_OK;
    seeded s = { .program = program, .arg = arg };

    if (program == NULL || !options_fill(&s, options) ||
        (ret_result != NULL && !TRPI_SIZED_FILL(ret_result, &result, schedule))) {
        return TRP_EINVAL;
    }
    if (s.options.schedule != NULL && !schedule_parse(s.options.schedule, &given)) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; err == TRP_OK && i < s.options.seeds; i++) {
        outcome out;

        result.seed = s.options.seed + i;
        result.runs++;
        run_once(&s, result.seed, given.list != NULL ? &given : NULL, &out);
        err = out.err;
        if (err == TRP_OK) {
            result_fill(&s, &out, &result);
        }
        if (err == TRP_OK && out.failed) {
            err = TRP_EFAILED;
            if (s.options.shrink_max > 0) {
                shrink_failure(&s, &out, &result);
            }
            print_failure(&s, &result);
        }
        trpi_free(out.made.list);
    }
    trpi_free(given.list);
    if (ret_result != NULL) {
        (void)TRPI_SIZED_FILL(ret_result, &result, schedule); /* its size was checked above */
    }
    return err;
}

uint64_t
trp_seeded_random(trp_testkit *kit)
{
    return trpi_world_random(trpi_system_world(kit->system));
}

void
trp_seeded_note(trp_testkit *kit, uint64_t what)
{
    if (kit->virt != NULL) {
        trpi_virtual_mix(kit->virt, what);
    }
}
