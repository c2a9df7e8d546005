/* journal_kit_writes.c - the laws of what changes a journal. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "persistence/journal_kit.h"

bool
trpi_kit_numbers(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "a", "w");

    TRPI_KIT_CHECK(run, epoch != 0, "a claim was refused");
    TRPI_KIT_CHECK(run,
                   trpi_kit_append(run, "a", "a", epoch, 1, 1, NULL) == TRP_OK &&
                       trpi_kit_append(run, "a", "a", epoch, 2, 3, "t") == TRP_OK &&
                       trpi_kit_append(run, "a", "a", epoch, 5, 100, NULL) == TRP_OK,
                   "an append with the next number was refused");
    for (uint64_t from = 1; from <= 1000; from += from < 103 ? 51 : 400) {
        if (from != 105) {
            trp_err err = trpi_kit_append(run, "a", "a", epoch, from, 2, NULL);
            TRPI_KIT_CHECK(run, err == TRP_EFENCED,
                           "an append from %" PRIu64 " behind 104 was answered %s", from,
                           trp_err_name(err));
        }
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "b", "a", epoch, 2, 1, NULL) == TRP_EFENCED,
                   "the first event of an id had number 2");
    return trpi_kit_has_events(run, "a", 1, 104) && trpi_kit_has_events(run, "b", 1, 0);
}

bool
trpi_kit_groups(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "g", "w");
    uint64_t taken = 0;

    TRPI_KIT_CHECK(
        run, trpi_kit_append(run, "g", "g", epoch, 1, TRP_JOURNAL_GROUP_EVENTS_MAX, "t") == TRP_OK,
        "the largest group was refused");
    if (!trpi_kit_has_events(run, "g", 1, TRP_JOURNAL_GROUP_EVENTS_MAX)) {
        return false;
    }
    taken = trpi_kit_claim(run, "g", "other");
    TRPI_KIT_CHECK(run, taken > epoch, "a second claim took epoch %" PRIu64 ", behind %" PRIu64,
                   taken, epoch);
    TRPI_KIT_CHECK(run,
                   trpi_kit_append(run, "g", "g", epoch, TRP_JOURNAL_GROUP_EVENTS_MAX + 1, 8,
                                   "t") == TRP_EFENCED,
                   "a group of an earlier epoch was taken");
    return trpi_kit_has_events(run, "g", 1, TRP_JOURNAL_GROUP_EVENTS_MAX);
}

/* Check that what changes something is refused with a reason that names both writers. */
static bool
is_fenced_everywhere(trpi_kit_run *run, uint64_t epoch)
{
    static const trp_journal_kind kinds[] = { TRP_JOURNAL_APPEND, TRP_JOURNAL_DELETE,
                                              TRP_JOURNAL_SNAPSHOT_SAVE,
                                              TRP_JOURNAL_SNAPSHOT_DELETE };
    trp_journal_event event = { .number = 1, .type = "kit", .data = "x", .bytes = 1 };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        trp_journal_op op = trpi_kit_op(kinds[i], "one", "scope", epoch);
        op.writer = "first";
        op.from = 3;
        op.events = &event;
        op.events_count = 1;
        (void)trpi_kit_call(run, &op);
        TRPI_KIT_CHECK(run, op.err == TRP_EFENCED && op.outcome == TRP_JOURNAL_REFUSED,
                       "operation %d of an earlier epoch was answered %s", (int)kinds[i],
                       trp_err_name(op.err));
        TRPI_KIT_CHECK(run, strstr(op.why, "first") != NULL && strstr(op.why, "second") != NULL,
                       "the reason does not name both writers: %s", op.why);
    }
    return true;
}

bool
trpi_kit_one_writer(trpi_kit_run *run)
{
    uint64_t first = trpi_kit_claim(run, "scope", "first");
    uint64_t second = 0;

    TRPI_KIT_CHECK(run, trpi_kit_append(run, "one", "scope", first, 1, 2, NULL) == TRP_OK,
                   "the only writer was refused");
    second = trpi_kit_claim(run, "scope", "second");
    TRPI_KIT_CHECK(run, second > first, "epoch %" PRIu64 " was followed by %" PRIu64, first,
                   second);
    if (!is_fenced_everywhere(run, first) || !is_fenced_everywhere(run, second + 1)) {
        return false;
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "one", "scope", second, 3, 1, NULL) == TRP_OK,
                   "the present writer was refused");
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "x", "never", 1, 1, 1, NULL) == TRP_EFENCED,
                   "an epoch that nobody has claimed was taken");
    return trpi_kit_has_events(run, "one", 1, 3);
}

#define MANY 500u

/* Operations that were submitted together. */
typedef struct crowd {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t answers; /* under lock */
    trp_journal_op ops[MANY];
    trp_journal_event events[MANY];
    char ids[MANY][32];
    char data[MANY][32];
} crowd;

static void
crowd_done(trp_journal_op *op)
{
    crowd *all = op->user;

    pthread_mutex_lock(&all->lock);
    all->answers++;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

static crowd *
crowd_new(void)
{
    crowd *all = trpi_alloc(sizeof *all);

    if (all != NULL) {
        pthread_mutex_init(&all->lock, NULL);
        pthread_cond_init(&all->changed, NULL);
    }
    return all;
}

static void
crowd_free(crowd *all)
{
    trpi_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->changed);
    trpi_free(all);
}

/* Append one event of id without waiting for the answer. */
static void
crowd_append(trpi_kit_run *run, crowd *all, uint32_t i, uint64_t epoch, uint64_t number)
{
    trp_journal_op *op = &all->ops[i];

    *op = trpi_kit_op(TRP_JOURNAL_APPEND, all->ids[i], "crowd", epoch);
    char id[sizeof all->ids[i]];

    memcpy(id, all->ids[i], sizeof id);
    (void)snprintf(all->data[i], sizeof all->data[i], "%.8s/%" PRIu64, id, number);
    all->events[i] = (trp_journal_event){ .time_ms = 1700000000000u,
                                          .type = "kit",
                                          .version = 3,
                                          .data = all->data[i],
                                          .bytes = strlen(all->data[i]) };
    op->events = &all->events[i];
    op->events_count = 1;
    op->from = number;
    op->done = crowd_done;
    op->user = all;
    run->driver->submit(run->driver->arg, op);
}

static void
crowd_wait(crowd *all, uint32_t answers)
{
    pthread_mutex_lock(&all->lock);
    while (all->answers < answers) {
        pthread_cond_wait(&all->changed, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
}

/* Check the answers: each third was wrong. */
static bool
third_is_refused(trpi_kit_run *run, crowd *all)
{
    for (uint32_t i = 0; i < MANY; i++) {
        trp_err wanted = i % 3 == 1 ? TRP_EFENCED : TRP_OK;
        TRPI_KIT_CHECK(run, all->ops[i].err == wanted,
                       "append %" PRIu32 " of %u submitted together was answered %s, not %s", i,
                       MANY, trp_err_name(all->ops[i].err), trp_err_name(wanted));
    }
    for (uint32_t i = 0; i < MANY; i += 37) {
        if (!trpi_kit_has_events(run, all->ids[i], 1, i % 3 == 1 ? 0 : 1)) {
            return false;
        }
    }
    return true;
}

bool
trpi_kit_refusals(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "crowd", "w");
    crowd *all = crowd_new();
    bool is_right = false;

    TRPI_KIT_CHECK(run, all != NULL, "out of memory");
    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(all->ids[i], sizeof all->ids[i], "c%" PRIu32, i);
        crowd_append(run, all, i, i % 6 == 4 ? epoch + 1 : epoch, i % 6 == 1 ? 2 : 1);
    }
    crowd_wait(all, MANY);
    is_right = third_is_refused(run, all);
    crowd_free(all);
    return is_right;
}

bool
trpi_kit_order(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "crowd", "w");
    crowd *all = crowd_new();
    bool is_right = true;

    TRPI_KIT_CHECK(run, all != NULL, "out of memory");
    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(all->ids[i], sizeof all->ids[i], "same");
        crowd_append(run, all, i, epoch, i + 1);
    }
    crowd_wait(all, MANY);
    for (uint32_t i = 0; is_right && i < MANY; i++) {
        if (all->ops[i].err != TRP_OK) {
            is_right = trpi_kit_fail(run, "append %" PRIu32 " of one id was answered %s: %s", i + 1,
                                     trp_err_name(all->ops[i].err), all->ops[i].why);
        }
    }
    crowd_free(all);
    return is_right && trpi_kit_has_events(run, "same", 1, MANY);
}

/* ---- failures -------------------------------------------------------------------------------- */

#define FAILURES 4u /* that are looked for */
#define ROUNDS_MAX 300u
#define CLAIMS 20u
#define LOOKS 2000u /* how often the highest number is read behind a failure */

/* The highest number of "late", read behind all that was submitted. */
static bool
late_number(trpi_kit_run *run, uint64_t *ret_number)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_EVENTS, "late", NULL, 0);

    op.from = UINT32_MAX; /* no event is given */
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK, "a read was answered %s: %s",
                   trp_err_name(op.err), op.why);
    *ret_number = op.ret_number;
    return true;
}

/* Append the next event, and read behind it, before or after it is answered. */
static bool
late_round(trpi_kit_run *run, crowd *all, uint64_t epoch, uint32_t round, uint64_t *highest)
{
    const trp_journal_op *op = &all->ops[0];
    uint64_t number = 0;
    uint64_t again = 0;

    crowd_append(run, all, 0, epoch, *highest + 1);
    if (round % 2 == 0) {
        crowd_wait(all, round + 1);
    }
    if (!late_number(run, &number)) {
        return false;
    }
    crowd_wait(all, round + 1);
    TRPI_KIT_CHECK(run, op->err != TRP_EFENCED,
                   "append %" PRIu64 " behind a read was refused, though its writer alone writes: "
                   "%s",
                   *highest + 1, op->why);
    bool may_be_there = op->outcome != TRP_JOURNAL_REFUSED;
    bool may_be_missing = op->outcome != TRP_JOURNAL_DONE;
    TRPI_KIT_CHECK(
        run, (may_be_there && number == *highest + 1) || (may_be_missing && number == *highest),
        "a read behind append %" PRIu64 " (%s) found %" PRIu64 " as the highest number",
        *highest + 1, trp_err_name(op->err), number);
    for (uint32_t i = 0; op->outcome == TRP_JOURNAL_FAILED && i < LOOKS; i++) {
        if (!late_number(run, &again)) {
            return false;
        }
        TRPI_KIT_CHECK(run, again == number,
                       "append %" PRIu64 " had failed, and arrived behind a read: %s", *highest + 1,
                       op->why);
    }
    *highest = number;
    return true;
}

/* While the journal is disturbed, what a read has told stays true. */
static bool
late_play(trpi_kit_run *run, crowd *all, uint64_t epoch, uint64_t *highest)
{
    uint32_t failures = 0;

    (void)snprintf(all->ids[0], sizeof all->ids[0], "late");
    for (uint32_t round = 0; round < ROUNDS_MAX && failures < FAILURES; round++) {
        if (!late_round(run, all, epoch, round, highest)) {
            return false;
        }
        failures += all->ops[0].outcome == TRP_JOURNAL_FAILED;
    }
    TRPI_KIT_CHECK(run, failures != 0, "no append has failed while the journal was disturbed");
    return true;
}

bool
trpi_kit_failures(trpi_kit_run *run)
{
    const trp_journal_kit *kit = run->kit;
    uint64_t epoch = 0;
    uint64_t highest = 0;

    if (kit->disturb == NULL) {
        return true;
    }
    /* A journal that gives connections up soon may do so on a slow machine: then it is unknown
     * whether the claim was carried out, and the writer claims again. */
    for (uint32_t i = 0; i < CLAIMS && epoch == 0; i++) {
        epoch = trpi_kit_claim(run, "crowd", "w");
    }
    TRPI_KIT_CHECK(run, epoch != 0, "%u claims in a row have failed", CLAIMS);
    crowd *all = crowd_new();
    TRPI_KIT_CHECK(run, all != NULL, "out of memory");
    bool is_right = kit->disturb(kit->arg, 1) == TRP_OK && late_play(run, all, epoch, &highest);
    if (kit->disturb(kit->arg, 0) != TRP_OK && is_right) {
        is_right = trpi_kit_fail(run, "the journal could not be disturbed");
    }
    crowd_free(all);
    if (!is_right) {
        return false;
    }
    TRPI_KIT_CHECK(run,
                   trpi_kit_append(run, "late", "crowd", epoch, highest + 1, 1, NULL) == TRP_OK,
                   "the append behind failed ones was not done");
    return trpi_kit_has_events(run, "late", 1, (uint32_t)highest + 1);
}

/* ---- deletion and backups -------------------------------------------------------------------- */

/* Delete up to a number (0: all). */
static trp_err
delete_to(trpi_kit_run *run, uint64_t epoch, uint64_t to, uint64_t *ret_highest)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_DELETE, "d", "d", epoch);
    trp_err err = TRP_OK;

    op.to = to;
    err = trpi_kit_call(run, &op);
    *ret_highest = op.ret_number;
    return err;
}

bool
trpi_kit_deletion(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "d", "w");
    uint64_t highest = 0;

    TRPI_KIT_CHECK(run, trpi_kit_append(run, "d", "d", epoch, 1, 200, "t") == TRP_OK,
                   "an append was refused");
    TRPI_KIT_CHECK(run, delete_to(run, epoch, 70, &highest) == TRP_OK && highest == 200,
                   "a deletion up to 70 of 200 answered the highest number %" PRIu64, highest);
    if (!trpi_kit_has_events(run, "d", 71, 130)) {
        return false;
    }
    TRPI_KIT_CHECK(run, delete_to(run, epoch, 5000, &highest) == TRP_OK && highest == 200,
                   "a deletion of all answered the highest number %" PRIu64, highest);
    if (!trpi_kit_has_events(run, "d", 201, 0) || !trpi_kit_reopen(run)) {
        return false;
    }
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "d", "d", epoch, 1, 1, NULL) == TRP_EFENCED,
                   "numbers began anew after all events had been deleted");
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "d", "d", epoch, 201, 3, NULL) == TRP_OK,
                   "the number behind deleted ones was refused");
    TRPI_KIT_CHECK(run, delete_to(run, epoch, 0, &highest) == TRP_OK && highest == 203,
                   "a deletion without end answered the highest number %" PRIu64, highest);
    return trpi_kit_has_events(run, "d", 204, 0);
}

/* A claim that restores takes its epoch, and never a lower one than the next. */
static bool
epoch_is_restored(trpi_kit_run *run)
{
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_CLAIM, NULL, "restored", 7);

    op.writer = "backup";
    op.restore = 1;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK && op.ret_epoch == 7,
                   "a claim that restores epoch 7 took %" PRIu64 ": %s", op.ret_epoch, op.why);
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK && op.ret_epoch == 8,
                   "a claim that restores epoch 7 behind 7 took %" PRIu64 ": %s", op.ret_epoch,
                   op.why);
    TRPI_KIT_CHECK(run, trpi_kit_claim(run, "restored", "w") == 9,
                   "the claim behind a restored epoch did not take the next one");
    op.restore = 0;
    op.epoch = 77;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK && op.ret_epoch == 10,
                   "a claim that restores nothing took %" PRIu64 ", not the next epoch",
                   op.ret_epoch);
    return true;
}

bool
trpi_kit_restore(trpi_kit_run *run)
{
    uint64_t epoch = trpi_kit_claim(run, "r", "w");
    trp_journal_event event = {
        .time_ms = 1700000000000u, .type = "kit", .version = 3, .data = "r/41", .bytes = 4
    };
    trp_journal_op op = trpi_kit_op(TRP_JOURNAL_APPEND, "r", "r", epoch);

    op.restore = 1;
    op.from = 41;
    op.events = &event;
    op.events_count = 1;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK, "a backup was refused: %s", op.why);
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_EFENCED,
                   "a backup was restored over present events");
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "r", "r", epoch, 42, 9, NULL) == TRP_OK,
                   "the number behind a restored one was refused");
    if (!trpi_kit_has_events(run, "r", 41, 10)) {
        return false;
    }
    op.id = "empty";
    op.events_count = 0;
    TRPI_KIT_CHECK(run, trpi_kit_call(run, &op) == TRP_OK, "a backup without events: %s", op.why);
    TRPI_KIT_CHECK(run, trpi_kit_append(run, "empty", "r", epoch, 41, 1, NULL) == TRP_OK,
                   "the number behind a restored highest one was refused");
    return trpi_kit_has_events(run, "empty", 41, 1) && epoch_is_restored(run);
}
