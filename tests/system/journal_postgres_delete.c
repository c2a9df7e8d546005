/* journal_postgres_delete.c - `journal_postgres delete URL`: deletions of many events go in slices,
 * and others write meanwhile. Expects tables without events. */
#include "tests/system/journal_postgres.h"

#ifdef HAVE_POSTGRES

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIG_GROUPS 20u
#define BIG_EVENTS 1000u /* of a group */
#define SMALL_IDS 300u

typedef struct deletions {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t answered; /* under lock, as all that follows */
    uint32_t done;
    uint64_t first; /* number that the read was given */
    uint32_t given;
} deletions;

static void
deletion_done(trp_journal_op *op)
{
    deletions *d = op->user;
    pthread_mutex_lock(&d->lock);
    d->answered++;
    d->done += op->outcome == TRP_JOURNAL_DONE;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static uint32_t
deletions_answered(deletions *d, uint32_t at_least)
{
    pthread_mutex_lock(&d->lock);
    while (d->answered < at_least) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    uint32_t answered = d->answered;
    pthread_mutex_unlock(&d->lock);
    return answered;
}

static trp_err
give_first(trp_journal_op *op, const trp_journal_event *item)
{
    deletions *d = op->user;
    d->first = d->given++ == 0 ? item->number : d->first;
    return TRP_OK;
}

static trp_err
append_many(const trp_journal_driver *driver, const char *id, uint64_t epoch, uint64_t from,
            uint32_t count)
{
    static trp_journal_event events[BIG_EVENTS];
    static const char *const tag = "deleted";
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    for (uint32_t i = 0; i < count; i++) {
        events[i] = (trp_journal_event){ .type = "d", .data = "x", .bytes = 1, .tags = &tag };
        events[i].tags_count = 1;
    }
    op.kind = TRP_JOURNAL_APPEND;
    op.id = id;
    op.scope = "deletions";
    op.epoch = epoch;
    op.from = from;
    op.events = events;
    op.events_count = count;
    op.timeout_ms = 60000;
    return trp_journal_call(driver, &op);
}

static trp_journal_op
deletion_of(deletions *d, const char *id, uint64_t epoch, uint64_t to)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_DELETE;
    op.id = id;
    op.scope = "deletions";
    op.epoch = epoch;
    op.to = to;
    op.done = deletion_done;
    op.user = d;
    op.timeout_ms = 60000;
    return op;
}

/* One id of 20,000 events: others write, and a claim comes between two slices. */
static void
delete_large(const trp_journal_driver *driver, uint64_t epoch)
{
    static deletions d = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    const uint64_t to = (uint64_t)(BIG_GROUPS - 1) * BIG_EVENTS;
    uint32_t between = 0;
    char detail[64];
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < BIG_GROUPS && err == TRP_OK; i++) {
        err = append_many(driver, "big", epoch, (uint64_t)i * BIG_EVENTS + 1, BIG_EVENTS);
    }
    check(err == TRP_OK, "many_events_are_stored", trp_err_name(err));
    trp_journal_op deletion = deletion_of(&d, "big", epoch, to), read = TRP_JOURNAL_OP_INIT;
    read.kind = TRP_JOURNAL_EVENTS;
    read.id = "big";
    read.from = 1;
    read.max_events = 10;
    read.give = give_first;
    read.done = deletion_done;
    read.user = &d;
    read.timeout_ms = 60000;
    driver->submit(driver->arg, &deletion);
    driver->submit(driver->arg, &read);
    trp_journal_op claim = TRP_JOURNAL_OP_INIT;
    claim.kind = TRP_JOURNAL_CLAIM;
    claim.scope = "deletions";
    claim.writer = "later";
    claim.timeout_ms = 60000;
    err = trp_journal_call(driver, &claim);
    while (err == TRP_OK && deletions_answered(&d, 0) == 0) {
        err = append_many(driver, "beside", claim.ret_epoch, ++between, 1);
    }
    check(err == TRP_OK, "others_are_written_beside_a_large_deletion", trp_err_name(err));
    (void)deletions_answered(&d, 2);
    (void)snprintf(detail, sizeof detail, "%" PRIu32 " appends", between);
    check(between >= 4, "they_do_not_wait_for_all_of_it", detail);
    check(deletion.outcome == TRP_JOURNAL_DONE && deletion.ret_number == to + BIG_EVENTS,
          "a_claim_between_two_slices_does_not_take_it_back", deletion.why);
    check(d.done == 2 && d.first == to + 1 && d.given == 10, "a_read_of_its_id_comes_behind_it",
          read.why);
}

/* Many ids of three events share slices. */
static void
delete_many(const trp_journal_driver *driver, uint64_t epoch)
{
    static deletions d = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    static trp_journal_op ops[SMALL_IDS];
    static char ids[SMALL_IDS][16];
    trp_journal_health before = TRP_JOURNAL_HEALTH_INIT, behind = TRP_JOURNAL_HEALTH_INIT;
    char detail[64];
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < SMALL_IDS && err == TRP_OK; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "small-%" PRIu32, i);
        err = append_many(driver, ids[i], epoch, 1, 3);
    }
    check(err == TRP_OK, "many_ids_are_stored", trp_err_name(err));
    driver->health(driver->arg, &before);
    for (uint32_t i = 0; i < SMALL_IDS; i++) {
        ops[i] = deletion_of(&d, ids[i], epoch, i % 2 == 0 ? 0 : 2);
        driver->submit(driver->arg, &ops[i]);
    }
    (void)deletions_answered(&d, SMALL_IDS);
    driver->health(driver->arg, &behind);
    check(d.done == SMALL_IDS, "small_deletions_are_done", ops[0].why);
    (void)snprintf(detail, sizeof detail, "%" PRIu64 " commits", behind.commits - before.commits);
    check(behind.commits - before.commits < SMALL_IDS, "small_deletions_share_commits", detail);
}

int
delete_run(const char *url)
{
    trp_journal_postgres_options options = options_of(url);
    const trp_journal_driver *driver = NULL;
    long events = 0, tags = 0, lost = 0;
    char why[512], detail[64];
    if (trp_journal_postgres_open(&options, &driver, why, sizeof why) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (int round = 0; round < 2; round++) {
        trp_journal_op claim = TRP_JOURNAL_OP_INIT;
        claim.kind = TRP_JOURNAL_CLAIM;
        claim.scope = "deletions";
        claim.writer = "w";
        claim.timeout_ms = 60000;
        check(trp_journal_call(driver, &claim) == TRP_OK, "the_scope_is_claimed", claim.why);
        (round == 0 ? delete_large : delete_many)(driver, claim.ret_epoch);
    }
    driver->close(driver->arg);
    (void)sql(url, "SELECT count(*) FROM troupe.event WHERE id <> 'beside'", &events);
    (void)sql(url, "SELECT count(*) FROM troupe.tag", &tags);
    (void)sql(url,
              "SELECT count(*) FROM troupe.event e LEFT JOIN troupe.tag t ON t.position ="
              " e.position WHERE t.tag IS NULL",
              &lost);
    (void)snprintf(detail, sizeof detail, "%ld events, %ld tags, %ld without", events, tags, lost);
    check(events == (long)(BIG_EVENTS + SMALL_IDS / 2) && tags > events && lost == 0,
          "what_is_left_is_what_was_to_stay", detail);
    return failures != 0;
}

#endif
