/* persistent_recover_test.c - from the journal to the state: order, limits, adapters, what cannot
 * be read. */
#include "tests/unit/persistence/account.h"

#define OLD_CREDITED(F, S) F(S, i64, cents)
#define OLD_NOTED(F, S) F(S, text32, text)
#define OLD_MESSAGES(M, P) M(P, credited, OLD_CREDITED) M(P, noted, OLD_NOTED)
TRP_PROTOCOL(old, OLD_MESSAGES)

static uint64_t
dead_of(const book *b, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(b->system, &stats);
    return stats.dead_letters[reason];
}

/* Store an event of the account at /user/a, as a program of another time did. */
static void
store_bytes(const book *b, uint64_t number, const char *type, uint32_t version, const void *data,
            size_t bytes)
{
    trp_journal_event event = { .type = type, .version = version, .data = data, .bytes = bytes };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_APPEND;
    op.id = "/user/a";
    op.scope = "book";
    op.epoch = b->epoch;
    op.from = number;
    op.events = &event;
    op.events_count = 1;
    book_call(b, &op);
}

static void
store(const book *b, uint64_t number, uint32_t version, const trp_type *type, const void *payload)
{
    trpi_buffer bytes = { 0 };

    UNIT_EQUAL(trp_protocol_register(&account_protocol), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&old_protocol), TRP_OK);
    UNIT_EQUAL(trpi_stored_write(b->system, type, payload, type->bytes, &bytes), TRP_OK);
    store_bytes(b, number, type->name, version, bytes.data, bytes.count);
    trpi_buffer_fini(&bytes);
}

static void
store_added(const book *b, uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++) {
        account_added added = { 1 };

        store(b, number, 1, &account_added_type, &added);
    }
}

static void
many_events_are_read_in_batches(void)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    store_added(&b, 1, 2 * TRP_JOURNAL_READ_EVENTS_DEFAULT + 1);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 2 * TRP_JOURNAL_READ_EVENTS_DEFAULT + 1);
    b.journal->health(b.journal->arg, &health);
    UNIT_EQUAL(health.refused, 0);
    book_close(&b);
}

static void
a_recovery_may_end_at_a_number_and_then_persists_nothing(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    store_added(&b, 1, 9);
    account_to = 4;
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 4);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_EQUAL(account_last_err, TRP_ESTATE);
    book_close(&b);
}

/* A4J-18 */
static void
no_more_actors_recover_at_once_than_may(void)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_persistent what = account_make();
    trp_ref refs[TRP_PERSISTENCE_RECOVERIES_DEFAULT + 2];
    char name[16];
    book b;

    book_open(&b);
    trp_journal_memory_hold(b.memory, 1);
    for (int i = 0; i < TRP_PERSISTENCE_RECOVERIES_DEFAULT + 2; i++) {
        (void)snprintf(name, sizeof name, "a%d", i);
        refs[i] = account_spawn(&b, &what, name);
        book_run(&b, 0);
        b.journal->health(b.journal->arg, &health);
        UNIT_EQUAL(health.waiting, i < TRP_PERSISTENCE_RECOVERIES_DEFAULT
                                       ? i + 1
                                       : TRP_PERSISTENCE_RECOVERIES_DEFAULT);
    }
    account_stop(&b, refs[TRP_PERSISTENCE_RECOVERIES_DEFAULT]); /* it waits: its place is free */
    account_stop(&b, refs[0]);                                  /* it recovers: the next one does */
    b.journal->health(b.journal->arg, &health);
    UNIT_EQUAL(health.waiting, TRP_PERSISTENCE_RECOVERIES_DEFAULT + 1); /* one is of nobody */
    trp_journal_memory_hold(b.memory, 0);
    for (int i = 1; i < TRP_PERSISTENCE_RECOVERIES_DEFAULT + 2; i++) {
        UNIT_EQUAL(account_total_of(&b, refs[i]),
                   i == TRP_PERSISTENCE_RECOVERIES_DEFAULT ? INT64_MIN : 0);
    }
    book_close(&b);
}

/* A4J-18 */
static void
a_journal_that_does_not_answer_ends_the_recovery_and_its_commands_have_the_reason(void)
{
    trp_persistent what = account_make();
    account_get get = { 0 };
    book b;

    book_open(&b);
    trp_journal_memory_hold(b.memory, 1);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(trp_probe_watch(b.probe, ref), TRP_OK);
    trp_probe_tell(b.probe, ref, &account_get_type, &get, 0);
    book_run(&b, TRP_PERSISTENT_RECOVERY_MS_DEFAULT - 1);
    UNIT_TEXT(account_said(), "start ");
    UNIT_EQUAL(dead_of(&b, TRP_DEAD_RECOVERY), 0);
    book_run(&b, 2);
    UNIT_TEXT(account_said(), "failed0:TRP_EJOURNAL ");
    UNIT_EQUAL(dead_of(&b, TRP_DEAD_RECOVERY), 1);
    UNIT_TRUE(trp_probe_expect_type(b.probe, 1000, &trp_terminated_type) != NULL);
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    book_close(&b);
}

static void
a_read_that_fails_ends_the_recovery(void)
{
    static const trp_journal_kind kinds[] = { TRP_JOURNAL_CLAIM, TRP_JOURNAL_SNAPSHOT_LOAD,
                                              TRP_JOURNAL_EVENTS };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        trp_persistent what = account_make();
        book b;

        book_open(&b);
        trp_journal_memory_fail(b.memory, kinds[i], 0, 1, TRP_JOURNAL_FAILED, TRP_EIO);
        trp_ref ref = account_spawn(&b, &what, "a");
        UNIT_EQUAL(account_total_of(&b, ref), INT64_MIN);
        UNIT_TEXT(account_said(), "start failed0:TRP_EJOURNAL ");
        ref = account_spawn(&b, &what, "a");
        UNIT_EQUAL(account_total_of(&b, ref), 0);
        book_close(&b);
    }
}

static void
bytes_that_nobody_understands_end_the_recovery(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    store_added(&b, 1, 2);
    store_bytes(&b, 3, "account.added", 1, "?", 1);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), INT64_MIN);
    UNIT_TEXT(account_said(), "start e1 e1 failed0:TRP_EJOURNAL ");
    book_close(&b);
}

static void
an_event_that_the_actor_does_not_handle_ends_the_recovery(void)
{
    trp_persistent what = account_make();
    old_credited credited = { 100 };
    book b;

    book_open(&b);
    store(&b, 1, 1, &old_credited_type, &credited);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), INT64_MIN);
    book_close(&b);
}

/* Cents of version 1 become units; the note means nothing any more. */
static trp_err
credited_read(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg)
{
    const old_credited *credited = msg == NULL ? NULL : old_credited_as(msg);

    (void)state;
    if (credited == NULL) {
        return TRP_EDATA;
    }
    UNIT_EQUAL(stored->version, 1);
    account_added added[2] = { { credited->cents / 100 }, { credited->cents % 100 } };
    trp_err err = trp_event_put(ctx, &account_added_type, &added[0], 0);
    return err == TRP_OK && added[1].amount != 0
               ? trp_event_put(ctx, &account_added_type, &added[1], 0)
               : err;
}

static trp_err
noted_read(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)stored;
    (void)msg;
    return TRP_OK;
}

/* Bytes of a type that no program knows any more. */
static trp_err
lost_read(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg)
{
    account_added added = { (int64_t)stored->bytes };

    (void)state;
    UNIT_TRUE(msg == NULL);
    return trp_event_put(ctx, &account_added_type, &added, 0);
}

/* A4J-28 */
static void
adapters_read_what_is_no_event_of_today(void)
{
    static const trp_event_adapter adapters[] = { { "old.credited", 1, 0, credited_read },
                                                  { "old.noted", 0, 0, noted_read },
                                                  { "lost.event", 0, 0, lost_read } };
    trp_persistent what = account_make();
    old_credited credited = { 507 };
    old_noted noted = { "for the rent" };
    account_added more = { 1 };
    book b;

    what.adapters = adapters;
    what.adapters_count = 3;
    book_open(&b);
    store(&b, 1, 1, &old_credited_type, &credited);
    store(&b, 2, 1, &old_noted_type, &noted);
    store_bytes(&b, 3, "lost.event", 7, "1234", 4);
    store(&b, 4, 1, &account_added_type, &more);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 17);
    UNIT_TEXT(account_said(), "start e5 e7 e4 e1 recovered17 ");
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "a1 e1 c1 ");
    book_close(&b);
}

static void
an_adapter_is_not_asked_for_versions_above_its_own(void)
{
    static const trp_event_adapter adapters[] = { { "account.added", 1, 0, noted_read } };
    trp_persistent what = account_make();
    account_added added = { 3 };
    book b;

    what.adapters = adapters;
    what.adapters_count = 1;
    book_open(&b);
    store(&b, 1, 1, &account_added_type, &added);
    store(&b, 2, 2, &account_added_type, &added);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 3);
    book_close(&b);
}

/* ---- events of earlier releases -------------------------------------------------------------- */

/* Today's form of a type that was {i64 cents} when tests/golden/events-1.txt was written. */
#define CORPUS_MOVED(F, S) F(S, i64, cents) F(S, text32, note) F(S, u32, branch)
#define CORPUS_MESSAGES(M, P) M(P, moved, CORPUS_MOVED)
TRP_PROTOCOL(corpus, CORPUS_MESSAGES)

typedef struct corpus_state {
    trp_persistent_state persistent;
    int64_t cents;
    uint32_t moved, renamed, gone, notes;
} corpus_state;

static corpus_state corpus_seen;

static trp_err
corpus_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static trp_err
corpus_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    corpus_state *own = state;
    const corpus_moved *moved = corpus_moved_as(event);

    (void)ctx;
    if (moved == NULL) {
        return TRP_EUNHANDLED;
    }
    own->cents += moved->cents;
    own->moved++;
    own->notes += moved->note[0] != '\0' || moved->branch != 0;
    return TRP_OK;
}

static trp_err
corpus_recovered(trp_ctx *ctx, void *state)
{
    (void)ctx;
    corpus_seen = *(const corpus_state *)state;
    return TRP_OK;
}

/* A text with an amount in cents: of the type's name before the release that wrote "moved". */
static trp_err
corpus_renamed(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg)
{
    corpus_moved moved = { .cents = 0 };
    char text[32] = "";

    (void)stored;
    if (msg == NULL || trp_msg_bytes(msg) >= sizeof text) {
        return TRP_EDATA;
    }
    memcpy(text, trp_msg_payload(msg), trp_msg_bytes(msg));
    moved.cents = strtoll(text, NULL, 10);
    ((corpus_state *)state)->renamed++;
    return trp_event_put(ctx, &corpus_moved_type, &moved, 0);
}

static trp_err
corpus_gone(trp_ctx *ctx, void *state, const trp_journal_event *stored, const trp_msg *msg)
{
    (void)ctx;
    (void)stored;
    UNIT_TRUE(msg == NULL); /* no program has the type any more */
    ((corpus_state *)state)->gone++;
    return TRP_OK;
}

/* "corpus.moved 1 0100..." a line */
static uint64_t
corpus_store(const book *b, const char *name)
{
    char path[512], line[4096], type[128];
    uint64_t number = 0;
    uint32_t version;
    int at;

    (void)snprintf(path, sizeof path, "%s/tests/golden/%s", unit_srcdir(), name);
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        uint8_t bytes[2048];
        size_t count = 0;
        unsigned byte;

        if (line[0] == '#' || sscanf(line, "%127s %u %n", type, &version, &at) < 2) {
            continue;
        }
        for (const char *hex = line + at; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
            bytes[count++] = (uint8_t)byte;
        }
        store_bytes(b, ++number, type, version, bytes, count);
    }
    (void)fclose(file);
    return number;
}

static void
events_of_earlier_releases_are_read(void)
{
    static const trp_protocol *const events[] = { &corpus_protocol, NULL };
    static const trp_event_adapter adapters[] = { { "troupe.string", 1, 0, corpus_renamed },
                                                  { "corpus.audited", 0, 0, corpus_gone } };
    trp_persistent what = TRP_PERSISTENT_INIT("corpus", corpus_state, corpus_command, corpus_event);
    book b;

    what.recovered = corpus_recovered;
    what.events = events;
    what.adapters = adapters;
    what.adapters_count = 2;
    book_open(&b);
    UNIT_EQUAL(corpus_store(&b, "events-1.txt"), 4);
    (void)account_spawn(&b, &what, "a");
    book_run(&b, 0);
    UNIT_EQUAL(corpus_seen.cents, 12 - 5 + 300);
    UNIT_EQUAL(corpus_seen.moved, 3);
    UNIT_EQUAL(corpus_seen.renamed, 1);
    UNIT_EQUAL(corpus_seen.gone, 1);
    UNIT_EQUAL(corpus_seen.notes, 0); /* fields that the writer did not know are zero */
    book_close(&b);
}

static bool
scope_lend(void *arg, trp_ctx *ctx, char *id, char *scope, uint64_t *epoch)
{
    const book *b = arg;

    (void)ctx;
    (void)snprintf(id, TRP_JOURNAL_ID_BYTES_MAX + 1, "lent");
    (void)snprintf(scope, TRP_JOURNAL_SCOPE_BYTES_MAX + 1, "book");
    *epoch = b->epoch;
    return true;
}

static void
an_owner_lends_its_scope_and_epoch(void)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    UNIT_EQUAL(trpi_persistent_scope_set(b.system, scope_lend, &b), TRP_OK);
    UNIT_EQUAL(trpi_persistent_scope_set(b.system, scope_lend, &b), TRP_EEXIST);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 e1 c1 ");
    op.scope = "book"; /* the shard goes elsewhere */
    op.writer = "elsewhere";
    book_call(&b, &op);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "a1 failed1:TRP_EFENCED ");
    book_close(&b);
}

UNIT_BEGIN("persistent_recover")
UNIT(many_events_are_read_in_batches)
UNIT(a_recovery_may_end_at_a_number_and_then_persists_nothing)
UNIT(no_more_actors_recover_at_once_than_may)
UNIT(a_journal_that_does_not_answer_ends_the_recovery_and_its_commands_have_the_reason)
UNIT(a_read_that_fails_ends_the_recovery)
UNIT(bytes_that_nobody_understands_end_the_recovery)
UNIT(an_event_that_the_actor_does_not_handle_ends_the_recovery)
UNIT(adapters_read_what_is_no_event_of_today)
UNIT(an_adapter_is_not_asked_for_versions_above_its_own)
UNIT(events_of_earlier_releases_are_read)
UNIT(an_owner_lends_its_scope_and_epoch)
UNIT_END
