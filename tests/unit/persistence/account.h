/* account.h - for tests: a persistent account, and what its functions were called for, in order. */
#ifndef TESTS_UNIT_PERSISTENCE_ACCOUNT_H
#define TESTS_UNIT_PERSISTENCE_ACCOUNT_H

#include <stdlib.h>

#include <troupe/persistence.h>

#include "tests/unit/persistence/book.h"

#define ACCOUNT_ADDED(F, S) F(S, i64, amount)
#define ACCOUNT_ADD(F, S) F(S, i64, amount) F(S, u32, count) F(S, u32, how)
#define ACCOUNT_GET(F, S) F(S, u32, zero)
#define ACCOUNT_KEEP(F, S) F(S, u32, what) F(S, u32, keep) F(S, u64, to)
#define ACCOUNT_TOTAL(F, S) F(S, i64, amount) F(S, u64, number)
#define ACCOUNT_MESSAGES(M, P)                                                                     \
    M(P, added, ACCOUNT_ADDED)                                                                     \
    M(P, add, ACCOUNT_ADD)                                                                         \
    M(P, get, ACCOUNT_GET)                                                                         \
    M(P, keep, ACCOUNT_KEEP)                                                                       \
    M(P, total, ACCOUNT_TOTAL)
TRP_PROTOCOL_DECLARE(account, ACCOUNT_MESSAGES) /* defined in persistent_test.c */

/* How an add is persisted. */
enum {
    ACCOUNT_SYNC,    /* one by one */
    ACCOUNT_ALL,     /* as a group */
    ACCOUNT_ASYNC,   /* one by one, while commands go on */
    ACCOUNT_DEFER,   /* asynchronously, and a deferred callback */
    ACCOUNT_FAILS,   /* one by one, then the command fails */
    ACCOUNT_JUMPS,   /* as that, by trp_fail() */
    ACCOUNT_CALLBACK /* the callback persists the amount once more */
};
enum { ACCOUNT_SNAPSHOT, ACCOUNT_DELETE, ACCOUNT_SNAPSHOTS_DELETE };

typedef struct account {
    trp_persistent_state persistent; /* the first member */
    int64_t amount;
} account;

/* Notes of the functions of the account, "e5" for an event of 5; the tests have one thread. */
static char account_notes[4096];
static trp_err account_last_err;
static char account_id[TRP_JOURNAL_ID_BYTES_MAX + 1];
static uint64_t account_to;
static uint32_t account_no_snapshot;
static int account_event_err;

static void account_note(const char *format, ...) TRP_PRINTF(1, 2);
static void
account_note(const char *format, ...)
{
    size_t at = strlen(account_notes);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(account_notes + at, sizeof account_notes - at, format, list);
    va_end(list);
}

static trp_err
account_persisted(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    account_total total = { ((account *)state)->amount, trp_persistent_number(ctx) };

    account_note("c%lld ", event == NULL ? -1 : (long long)account_added_as(event)->amount);
    if (arg != NULL) {
        account_added added = { account_added_as(event)->amount };
        return trp_persist(ctx, &account_added_type, &added, 0, account_persisted, NULL);
    }
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trp_reply(ctx, &account_total_type, &total, 0);
    }
    return TRP_OK;
}

static trp_err
account_add_handle(trp_ctx *ctx, const account_add *add)
{
    trp_event events[16];
    account_added added[16];
    trp_err err = TRP_OK;
    uint32_t count = add->count == 0 ? 1 : add->count;

    for (uint32_t i = 0; i < count; i++) {
        added[i].amount = add->amount + i;
        events[i] = (trp_event){ &account_added_type, &added[i], 0 };
    }
    if (add->how == ACCOUNT_ALL) {
        return trp_persist_all(ctx, events, count, 0, account_persisted, NULL);
    }
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err =
            add->how == ACCOUNT_ASYNC || add->how == ACCOUNT_DEFER
                ? trp_persist_async(ctx, &account_added_type, &added[i], 0, account_persisted, NULL)
                : trp_persist(ctx, &account_added_type, &added[i], 0, account_persisted,
                              add->how == ACCOUNT_CALLBACK ? &account_last_err : NULL);
    }
    if (err == TRP_OK && add->how == ACCOUNT_DEFER) {
        err = trp_persist_defer(ctx, account_persisted, NULL);
    }
    if (add->how == ACCOUNT_JUMPS) {
        trp_fail(ctx, 1, "on order");
    }
    return add->how == ACCOUNT_FAILS ? TRP_EFAILED : err;
}

static trp_err
account_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    account_total total = { ((account *)state)->amount, trp_persistent_number(ctx) };
    const account_keep *keep;

    switch (trp_msg_tag(msg)) {
    case account_add_tag:
        account_note("a%lld ", (long long)account_add_as(msg)->amount);
        account_last_err = account_add_handle(ctx, account_add_as(msg));
        return account_last_err == TRP_EAGAIN ? TRP_OK : account_last_err;
    case account_get_tag:
        trp_reply(ctx, &account_total_type, &total, 0);
        return TRP_OK;
    case account_keep_tag:
        keep = account_keep_as(msg);
        account_last_err = keep->what == ACCOUNT_SNAPSHOT ? trp_snapshot_save(ctx)
                           : keep->what == ACCOUNT_DELETE
                               ? trp_events_delete(ctx, keep->to)
                               : trp_snapshots_delete(ctx, keep->to, keep->keep);
        return TRP_OK;
    default:
        return TRP_EUNHANDLED;
    }
}

static trp_err
account_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    account_added more = { 1 };

    if (!trp_msg_is(event, &account_added_type)) {
        return TRP_EUNHANDLED;
    }
    account_note("e%lld ", (long long)account_added_as(event)->amount);
    if (trp_persistent_recovers(ctx)) {
        UNIT_EQUAL(trp_persist(ctx, &account_added_type, &more, 0, NULL, NULL), TRP_ESTATE);
        UNIT_EQUAL(trp_snapshot_save(ctx), TRP_ESTATE);
    }
    ((account *)state)->amount += account_added_as(event)->amount;
    return account_event_err != 0 ? TRP_EFAILED : TRP_OK;
}

static trp_err
account_start(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how)
{
    (void)ctx;
    (void)state;
    (void)args;
    account_note("start ");
    how->to = account_to;
    how->no_snapshot = account_no_snapshot;
    if (account_id[0] != '\0') {
        (void)snprintf(how->id, sizeof how->id, "%s", account_id);
    }
    return TRP_OK;
}

static trp_err
account_recovered(trp_ctx *ctx, void *state)
{
    account_note("recovered%lld ", (long long)((account *)state)->amount);
    UNIT_FALSE(trp_persistent_recovers(ctx));
    return TRP_OK;
}

static trp_err
account_rejected(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)state;
    UNIT_TRUE(why[0] != '\0');
    account_note("rejected%lld ", (long long)account_added_as(event)->amount);
    trp_reply_failure(ctx, err, why);
    return TRP_OK;
}

static void
account_failed(trp_ctx *ctx, void *state, const trp_msg *event, trp_err err, const char *why)
{
    (void)ctx;
    (void)state;
    UNIT_TRUE(why[0] != '\0');
    account_note("failed%lld:%s ", event == NULL ? 0 : (long long)account_added_as(event)->amount,
                 trp_err_name(err));
}

static trp_err
account_snapshot(trp_ctx *ctx, const void *state, trp_msg **ret_msg)
{
    void *place;
    trp_err err = trp_msg_new(&account_total_type, 0, ret_msg, &place);

    if (err == TRP_OK) {
        ((account_total *)place)->amount = ((const account *)state)->amount;
        ((account_total *)place)->number = trp_persistent_number(ctx);
    }
    return err;
}

static trp_err
account_restore(trp_ctx *ctx, void *state, const trp_msg *snapshot)
{
    const account_total *total = account_total_as(snapshot);

    (void)ctx;
    if (total == NULL) {
        return TRP_EUNHANDLED;
    }
    account_note("restore%lld ", (long long)total->amount);
    ((account *)state)->amount = total->amount;
    return TRP_OK;
}

static void
account_kept(trp_ctx *ctx, void *state, trp_journal_kind kind, uint64_t number, trp_err err,
             const char *why)
{
    (void)ctx;
    (void)state;
    (void)why;
    account_note("kept%d:%llu:%d ", (int)kind, (unsigned long long)number, (int)err);
}

static const trp_protocol *const account_protocols[] = { &account_protocol, NULL };

static trp_persistent
account_make(void)
{
    trp_persistent what = TRP_PERSISTENT_INIT("account", account, account_command, account_event);

    what.start = account_start;
    what.recovered = account_recovered;
    what.rejected = account_rejected;
    what.failed = account_failed;
    what.snapshot = account_snapshot;
    what.restore = account_restore;
    what.kept = account_kept;
    what.events = account_protocols;
    UNIT_EQUAL(trp_protocol_register(&account_protocol), TRP_OK);
    account_notes[0] = '\0';
    account_id[0] = '\0';
    account_to = 0;
    account_no_snapshot = 0;
    account_event_err = 0;
    account_last_err = TRP_OK;
    return what;
}

static inline trp_ref
account_spawn(const book *b, const trp_persistent *what, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = name;
    book_run(b, 0); /* the name of one that has ended is free */
    UNIT_EQUAL(trp_system_spawn(b->system, &what->behaviour, &options, &ref), TRP_OK);
    return ref;
}

static inline void
account_tell_add(const book *b, trp_ref ref, int64_t amount, uint32_t count, uint32_t how)
{
    account_add add = { amount, count, how };

    trp_probe_tell(b->probe, ref, &account_add_type, &add, 0);
}

static inline void
account_tell_keep(const book *b, trp_ref ref, uint32_t what, uint64_t to, uint32_t keep)
{
    account_keep order = { what, keep, to };

    trp_probe_tell(b->probe, ref, &account_keep_type, &order, 0);
    book_run(b, 0);
}

/* Ask for its total; INT64_MIN: it does not answer. */
static inline int64_t
account_total_of(const book *b, trp_ref ref)
{
    account_get get = { 0 };
    trp_msg *reply = NULL;
    int64_t amount = INT64_MIN;

    if (trp_system_ask(b->system, ref, &account_get_type, &get, 0, 1000, &reply) == TRP_OK) {
        amount = account_total_as(reply)->amount;
        trp_msg_free(reply);
    }
    return amount;
}

static inline void
account_stop(const book *b, trp_ref ref)
{
    UNIT_EQUAL(trp_system_graceful_stop(b->system, ref, 1000), TRP_OK);
    book_run(b, 0);
}

/* Return what was noted since the last call. */
static inline const char *
account_said(void)
{
    static char said[sizeof account_notes];

    memcpy(said, account_notes, sizeof said);
    account_notes[0] = '\0';
    return said;
}

#endif
