/* persistent_keep_test.c - snapshots and deletions of persistent actors. */
#include "tests/unit/persistence/account.h"

static void
add_many(const book *b, trp_ref ref, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        account_tell_add(b, ref, 1, 1, ACCOUNT_SYNC);
    }
    book_run(b, 0);
    (void)account_said();
}

/* Count the events of /user/a that are left. */
static uint32_t
events_left(const book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "/user/a";
    op.from = 1;
    book_call(b, &op);
    return op.ret_count;
}

/* A4J-28 A4J-14 */
static void
the_latest_snapshot_and_the_events_behind_it_make_the_state(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    add_many(&b, ref, 3);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    UNIT_TEXT(account_said(), "kept6:3:0 ");
    add_many(&b, ref, 2);
    account_stop(&b, ref);
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 5);
    UNIT_TEXT(account_said(), "start restore3 e1 e1 recovered5 ");
    account_stop(&b, ref);
    account_no_snapshot = 1;
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 5);
    UNIT_TEXT(account_said(), "start e1 e1 e1 e1 e1 recovered5 ");
    account_stop(&b, ref);
    account_no_snapshot = 0;
    account_to = 2; /* before the snapshot */
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 2);
    book_close(&b);
}

static void
snapshots_come_every_so_many_events_and_the_last_are_kept(void)
{
    trp_persistent what = account_make();
    book b;

    what.snapshot_every = 4;
    what.snapshots_keep = 2;
    what.events_forget = 1;
    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    for (int i = 0; i < 3; i++) {
        account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
        book_run(&b, 0);
    }
    UNIT_TRUE(strstr(account_said(), "kept") == NULL);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "a1 e1 c1 kept6:4:0 kept8:4:0 ");
    UNIT_EQUAL(events_left(&b), 4); /* one snapshot alone allows no deletion */
    for (int i = 4; i < 13; i++) {
        account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
        book_run(&b, 0);
    }
    UNIT_EQUAL(events_left(&b), 5); /* above 8, the older of the two that are kept */
    account_stop(&b, ref);
    (void)account_said();
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 13);
    UNIT_TEXT(account_said(), "start restore12 e1 recovered13 ");
    book_close(&b);
}

static void
save_bytes(const book *b, uint64_t number, const char *data)
{
    trp_journal_event snapshot = {
        .number = number, .type = "account.total", .version = 1, .data = data, .bytes = strlen(data)
    };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_SNAPSHOT_SAVE;
    op.id = "/user/a";
    op.scope = "book";
    op.epoch = b->epoch;
    op.events = &snapshot;
    op.events_count = 1;
    book_call(b, &op);
}

/* A4J-28 */
static void
a_snapshot_that_cannot_be_read_is_passed_over(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    add_many(&b, ref, 2);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    add_many(&b, ref, 3);
    account_stop(&b, ref);
    save_bytes(&b, 4, "?");
    save_bytes(&b, 5, "");
    (void)account_said();
    ref = account_spawn(&b, &what, "a"); /* an older one */
    UNIT_EQUAL(account_total_of(&b, ref), 5);
    UNIT_TEXT(account_said(), "start restore2 e1 e1 e1 recovered5 ");
    account_stop(&b, ref);
    save_bytes(&b, 2, "?");
    ref = account_spawn(&b, &what, "a"); /* then the events */
    UNIT_EQUAL(account_total_of(&b, ref), 5);
    UNIT_TEXT(account_said(), "start e1 e1 e1 e1 e1 recovered5 ");
    account_tell_keep(&b, ref, ACCOUNT_DELETE, 1, 0);
    account_stop(&b, ref);
    (void)account_said();
    ref = account_spawn(&b, &what, "a"); /* then nothing can be known */
    UNIT_EQUAL(account_total_of(&b, ref), INT64_MIN);
    UNIT_TEXT(account_said(), "start failed0:TRP_EJOURNAL ");
    book_close(&b);
}

static void
a_snapshot_that_is_not_stored_costs_nothing(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    add_many(&b, ref, 2);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_SNAPSHOT_SAVE, 0, 1, TRP_JOURNAL_FAILED, TRP_EIO);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    UNIT_TEXT(account_said(), "kept6:2:16 ");
    UNIT_EQUAL(account_total_of(&b, ref), 2);
    trp_journal_memory_hold(b.memory, 1);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    UNIT_EQUAL(account_last_err, TRP_OK);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    UNIT_EQUAL(account_last_err, TRP_EAGAIN); /* one at a time */
    trp_journal_memory_hold(b.memory, 0);
    book_close(&b);
}

static void
events_and_snapshots_are_deleted_up_to_a_number(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    add_many(&b, ref, 3);
    account_tell_keep(&b, ref, ACCOUNT_DELETE, 3, 0);
    UNIT_TEXT(account_said(), "kept5:3:0 ");
    UNIT_EQUAL(events_left(&b), 0);
    account_stop(&b, ref);
    ref = account_spawn(&b, &what, "a"); /* nothing is left, and its numbers go on */
    UNIT_EQUAL(account_total_of(&b, ref), 0);
    add_many(&b, ref, 1);
    account_stop(&b, ref);
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 1);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOT, 0, 0);
    account_tell_keep(&b, ref, ACCOUNT_SNAPSHOTS_DELETE, 4, 0);
    account_stop(&b, ref);
    (void)account_said();
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 1);
    UNIT_TEXT(account_said(), "start e1 recovered1 ");
    book_close(&b);
}

static uint32_t
account_tags(trp_ctx *ctx, const void *state, const trp_msg *event,
             const char *ret_tags[TRP_JOURNAL_TAGS_MAX])
{
    (void)ctx;
    (void)state;
    ret_tags[0] = "all";
    ret_tags[1] = "large";
    return account_added_as(event)->amount >= 100 ? 2 : 1;
}

static uint32_t
tagged(const book *b, const char *tag)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    op.kind = TRP_JOURNAL_TAGGED;
    op.tag = tag;
    book_call(b, &op);
    return op.ret_count;
}

static void
events_have_the_tags_that_the_actor_gives_them(void)
{
    trp_persistent what = account_make();
    book b;

    what.tags = account_tags;
    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 99, 3, ACCOUNT_ALL); /* 99, 100, 101 */
    book_run(&b, 0);
    UNIT_EQUAL(tagged(&b, "all"), 3);
    UNIT_EQUAL(tagged(&b, "large"), 2);
    book_close(&b);
}

UNIT_BEGIN("persistent_keep")
UNIT(the_latest_snapshot_and_the_events_behind_it_make_the_state)
UNIT(snapshots_come_every_so_many_events_and_the_last_are_kept)
UNIT(a_snapshot_that_cannot_be_read_is_passed_over)
UNIT(a_snapshot_that_is_not_stored_costs_nothing)
UNIT(events_and_snapshots_are_deleted_up_to_a_number)
UNIT(events_have_the_tags_that_the_actor_gives_them)
UNIT_END
