/* journal_kit_test.c - the conformance kit: each law holds on the journal in memory, and fails on a
 * driver that breaks it. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include <troupe/journal_kit.h>

/* The one thing that a wrapped driver does wrong. */
typedef enum fault {
    RIGHT,
    FORGIVES_EPOCHS,
    FORGIVES_NUMBERS,
    CUTS_GROUPS,
    REFUSES_THE_NEXT,
    SWAPS_OPERATIONS,
    ARRIVES_LATE,
    FORGETS_NUMBERS,
    REFUSES_BACKUPS,
    READS_ONCE,
    LOSES_TAGGED,
    SKIPS_OFFSETS,
    KEEPS_OLD_SNAPSHOTS,
    LOSES_IDS,
    FORGETS_AT_CLOSE,
    COUNTS_NOTHING,
    CUTS_LIMITS,
    CUTS_DATA,
    TAKES_ANYTHING,
    FAULTS
} fault;

/* A driver around the one in memory, with one fault. */
typedef struct wrapper {
    trp_journal_memory *memory;
    trp_journal_driver driver;
    fault wrong;
    bool is_stale;        /* the operation before was refused */
    trp_journal_op *kept; /* SWAPS_OPERATIONS */
    uint32_t given;
    bool is_disturbed;
    trp_journal_op late; /* ARRIVES_LATE: failed, and on its way */
    trp_journal_event late_event;
    char late_data[32];
    uint32_t late_reads; /* that overtake it */
} wrapper;

/* Functions of an operation before the wrapper changed them; in its driver[1]. */
typedef struct original {
    wrapper *w;
    trp_journal_done_fn done;
    trp_journal_give_fn give;
} original;

static void
wrong_done(trp_journal_op *op)
{
    original *was = op->driver[1];
    const wrapper *w = was->w;
    op->done = was->done;
    op->give = was->give;
    if (w->wrong == REFUSES_THE_NEXT) {
        was->w->is_stale = op->outcome == TRP_JOURNAL_REFUSED;
    }
    free(was);
    if (w->wrong == READS_ONCE) {
        op->ret_more = 0;
    }
    if (w->wrong == SKIPS_OFFSETS && op->kind == TRP_JOURNAL_TAGGED && op->ret_count != 0) {
        op->ret_offset++;
    }
    op->done(op);
}

static trp_err
wrong_give(trp_journal_op *op, const trp_journal_event *item)
{
    const original *was = op->driver[1];
    wrapper *w = was->w;
    trp_journal_event lie = *item;
    bool is_lost = false;
    if (w->wrong == LOSES_TAGGED && op->kind == TRP_JOURNAL_TAGGED) {
        is_lost = ++w->given % 7 == 0;
    }
    if (w->wrong == LOSES_IDS && op->kind == TRP_JOURNAL_IDS) {
        is_lost = ++w->given % 7 == 0;
    }
    if (w->wrong == CUTS_DATA && lie.bytes > 1000000) {
        lie.bytes--;
    }
    return is_lost || was->give == NULL ? TRP_OK : was->give(op, &lie);
}

/* Answer what the journal in memory says now. */
static uint64_t
inner_says(wrapper *w, trp_journal_kind kind, const char *name)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    uint64_t epoch = 0;
    const trp_journal_driver *inner = trp_journal_memory_driver(w->memory);
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = name;
    if (kind == TRP_JOURNAL_EVENTS) {
        (void)trp_journal_call(inner, &op);
        return op.ret_number;
    }
    op = (trp_journal_op)TRP_JOURNAL_OP_INIT; /* the epochs of tests are small: try them */
    for (epoch = 1; epoch < 10; epoch++) {
        op.kind = TRP_JOURNAL_DELETE;
        op.id = "nobody has this id";
        op.scope = name;
        op.epoch = epoch;
        if (trp_journal_call(inner, &op) == TRP_OK) {
            return epoch;
        }
    }
    return 0;
}

/* Bend the operation as the fault wants it. */
static void
bend(wrapper *w, trp_journal_op *op)
{
    bool is_change = op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_DELETE ||
                     op->kind == TRP_JOURNAL_SNAPSHOT_SAVE ||
                     op->kind == TRP_JOURNAL_SNAPSHOT_DELETE;
    if (w->wrong == FORGIVES_EPOCHS && is_change && op->scope != NULL && op->scope[0] != '\0' &&
        strlen(op->scope) < 256) {
        op->epoch = inner_says(w, TRP_JOURNAL_SCOPES, op->scope);
    }
    if (w->wrong == FORGIVES_NUMBERS && op->kind == TRP_JOURNAL_APPEND && !op->restore) {
        op->from = inner_says(w, TRP_JOURNAL_EVENTS, op->id) + 1;
    }
    if (w->wrong == CUTS_GROUPS && op->kind == TRP_JOURNAL_APPEND && op->events_count > 9) {
        op->events_count--;
    }
    if (w->wrong == REFUSES_BACKUPS) {
        op->restore = 0;
    }
    if (w->wrong == KEEPS_OLD_SNAPSHOTS && op->kind == TRP_JOURNAL_SNAPSHOT_LOAD && op->to == 30) {
        op->to = 29;
    }
    if (w->wrong == FORGETS_NUMBERS && op->kind == TRP_JOURNAL_APPEND && op->from == 1) {
        op->from = inner_says(w, TRP_JOURNAL_EVENTS, op->id) + 1;
    }
    if (w->wrong == CUTS_LIMITS && op->kind == TRP_JOURNAL_APPEND && op->events_count == 1 &&
        op->events->tags_count == TRP_JOURNAL_TAGS_MAX) {
        op->events_count = 0;
    }
    if (w->wrong == TAKES_ANYTHING && op->kind == TRP_JOURNAL_APPEND && op->from == 0) {
        op->from = 1;
    }
}

static void
late_done(trp_journal_op *op)
{
    (void)op; /* nobody waits for it */
}

/* Fail an append, which arrives behind some reads. */
static void
late_keep(wrapper *w, trp_journal_op *op)
{
    w->late = *op;
    w->late_event = op->events[0];
    UNIT_TRUE(op->events[0].bytes < sizeof w->late_data);
    memcpy(w->late_data, op->events[0].data, op->events[0].bytes);
    w->late_event.data = w->late_data;
    w->late.id = "late";
    w->late.events = &w->late_event;
    w->late.done = late_done;
    w->late_reads = 3;
    trp_journal_op_finish(op, TRP_JOURNAL_FAILED, TRP_ECONN, "no answer");
}

/* Was it dealt with by the fault? */
static bool
late_submit(wrapper *w, trp_journal_op *op)
{
    if (w->late_reads != 0 && op->kind == TRP_JOURNAL_EVENTS && --w->late_reads == 0) {
        const trp_journal_driver *inner = trp_journal_memory_driver(w->memory);
        inner->submit(inner->arg, &w->late);
    }
    if (w->is_disturbed && op->kind == TRP_JOURNAL_APPEND) {
        late_keep(w, op);
        return true;
    }
    return false;
}

static void
wrong_submit(void *arg, trp_journal_op *op)
{
    wrapper *w = arg;
    const trp_journal_driver *inner = trp_journal_memory_driver(w->memory);
    original *was = NULL;
    if (w->wrong == RIGHT) {
        inner->submit(inner->arg, op);
        return;
    }
    if (w->wrong == ARRIVES_LATE && late_submit(w, op)) {
        return;
    }
    if (w->wrong == SWAPS_OPERATIONS && op->id != NULL && strcmp(op->id, "same") == 0 &&
        op->kind == TRP_JOURNAL_APPEND) {
        trp_journal_op *kept = w->kept;
        w->kept = kept == NULL ? op : NULL;
        if (kept != NULL) {
            inner->submit(inner->arg, op);
            inner->submit(inner->arg, kept);
        }
        return;
    }
    if (w->wrong == REFUSES_THE_NEXT && w->is_stale && op->kind == TRP_JOURNAL_APPEND) {
        w->is_stale = false;
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_EIO, "the one before was wrong");
        return;
    }
    bend(w, op);
    was = malloc(sizeof *was);
    if (was == NULL) {
        abort();
    }
    *was = (original){ w, op->done, op->give };
    op->driver[1] = was;
    op->done = wrong_done;
    op->give = wrong_give;
    inner->submit(inner->arg, op);
}

static void
wrong_health(void *arg, trp_journal_health *ret_health)
{
    wrapper *w = arg;
    const trp_journal_driver *inner = trp_journal_memory_driver(w->memory);
    inner->health(inner->arg, ret_health);
    if (w->wrong == COUNTS_NOTHING) {
        ret_health->groups = 0;
    }
}

static trp_err
wrapper_forget(void *arg)
{
    wrapper *w = arg;
    trp_journal_memory_free(w->memory);
    w->memory = NULL;
    w->kept = NULL;
    w->is_stale = false;
    return trp_journal_memory_new(&w->memory);
}

static void
wrong_close(void *arg)
{
    wrapper *w = arg;
    if (w->wrong == FORGETS_AT_CLOSE) {
        UNIT_EQUAL(wrapper_forget(w), TRP_OK);
    }
}

static trp_err
wrapper_open(void *arg, const trp_journal_driver **ret_driver)
{
    wrapper *w = arg;
    w->driver = (trp_journal_driver){ sizeof w->driver, "wrapped",    w,          1, 0,
                                      wrong_submit,     wrong_health, wrong_close };
    *ret_driver = &w->driver;
    return TRP_OK;
}

static trp_err
wrapper_disturb(void *arg, int on)
{
    wrapper *w = arg;
    w->is_disturbed = on != 0;
    if (w->wrong != ARRIVES_LATE) {
        trp_journal_memory_fail(w->memory, TRP_JOURNAL_APPEND, 0, on ? 1000 : 0, TRP_JOURNAL_FAILED,
                                TRP_EIO);
    }
    return TRP_OK;
}

static uint32_t
law_of(const char *name)
{
    for (uint32_t i = 0; i < trp_journal_kit_laws_count(); i++) {
        if (strcmp(trp_journal_kit_law(i), name) == 0) {
            return i;
        }
    }
    UNIT_TRUE(false);
    return 0;
}

/* Play one law on a driver with this fault. */
static trp_err
play(fault wrong, uint32_t law, char *why, size_t why_bytes)
{
    wrapper w = { .wrong = wrong };
    trp_journal_kit kit = { sizeof kit, &w, wrapper_open, wrapper_forget, wrapper_disturb };
    trp_err err = trp_journal_kit_run(&kit, law, why, why_bytes);
    trp_journal_memory_free(w.memory);
    return err;
}

/* A4J-28 */
static void
the_journal_in_memory_keeps_every_law(void)
{
    char why[TRP_JOURNAL_KIT_WHY_BYTES];
    for (uint32_t law = 0; law < trp_journal_kit_laws_count(); law++) {
        trp_err err = play(RIGHT, law, why, sizeof why);
        if (err != TRP_OK) {
            printf("%s: %s\n", trp_journal_kit_law(law), why);
        }
        UNIT_EQUAL(err, TRP_OK);
        UNIT_EQUAL(why[0], '\0');
    }
}

static void
each_law_fails_on_a_driver_that_breaks_it(void)
{
    static const struct {
        fault wrong;
        const char *law;
    } pairs[] = {
        { FORGIVES_EPOCHS, "one writer" },
        { FORGIVES_NUMBERS, "numbers have no gap" },
        { CUTS_GROUPS, "a group is stored whole or not at all" },
        { REFUSES_THE_NEXT, "a refused operation costs no other" },
        { SWAPS_OPERATIONS, "operations of one id keep their order" },
        { ARRIVES_LATE, "a failed operation keeps its place" },
        { FORGETS_NUMBERS, "deletion keeps the highest number" },
        { REFUSES_BACKUPS, "a backup is restored with its numbers" },
        { READS_ONCE, "reads end at their limits and go on" },
        { LOSES_TAGGED, "tagged events are read in the order of offsets" },
        { SKIPS_OFFSETS, "a reader misses no event of a writer" },
        { KEEPS_OLD_SNAPSHOTS, "snapshots" },
        { LOSES_IDS, "ids and scopes" },
        { FORGETS_AT_CLOSE, "what is done is there after reopening" },
        { COUNTS_NOTHING, "health counts what was done" },
        { CUTS_LIMITS, "limits hold, and one past them is refused" },
        { CUTS_DATA, "data of the largest size" },
        { TAKES_ANYTHING, "wrong arguments are refused" },
    };
    char why[TRP_JOURNAL_KIT_WHY_BYTES];
    UNIT_EQUAL(sizeof pairs / sizeof *pairs, FAULTS - 1);
    UNIT_EQUAL(sizeof pairs / sizeof *pairs, trp_journal_kit_laws_count());
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        trp_err err = play(pairs[i].wrong, law_of(pairs[i].law), why, sizeof why);
        if (err != TRP_EFAILED || why[0] == '\0') {
            printf("%s: not broken\n", pairs[i].law);
        }
        UNIT_EQUAL(err, TRP_EFAILED);
        UNIT_TRUE(why[0] != '\0');
    }
}

static void
a_kit_without_its_functions_is_refused(void)
{
    char why[8];
    wrapper w = { .wrong = RIGHT };
    trp_journal_kit kit = { sizeof kit, &w, wrapper_open, wrapper_forget, wrapper_disturb };
    UNIT_EQUAL(trp_journal_kit_run(NULL, 0, why, sizeof why), TRP_EINVAL);
    UNIT_EQUAL(trp_journal_kit_run(&kit, 0, NULL, sizeof why), TRP_EINVAL);
    UNIT_EQUAL(trp_journal_kit_run(&kit, 0, why, 0), TRP_EINVAL);
    UNIT_EQUAL(trp_journal_kit_run(&kit, trp_journal_kit_laws_count(), why, sizeof why),
               TRP_EINVAL);
    UNIT_EQUAL(strcmp(trp_journal_kit_law(trp_journal_kit_laws_count()), ""), 0);
    kit.forget = NULL;
    UNIT_EQUAL(trp_journal_kit_run(&kit, 0, why, sizeof why), TRP_EINVAL);
    kit = (trp_journal_kit){ sizeof kit, &w, NULL, wrapper_forget, NULL };
    UNIT_EQUAL(trp_journal_kit_run(&kit, 0, why, sizeof why), TRP_EINVAL);
}

UNIT_BEGIN("journal_kit")
UNIT(the_journal_in_memory_keeps_every_law)
UNIT(each_law_fails_on_a_driver_that_breaks_it)
UNIT(a_kit_without_its_functions_is_refused)
UNIT_END
