/* tcp_conn_test.c - how a TCP connection reads, writes and ends: tables of its decisions. Pure. */
#include "io/tcp_conn.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static const trpi_tcp_settings suspending = { .mode = TRPI_TCP_SUSPENDING };
static const trpi_tcp_settings refusing = { .mode = TRPI_TCP_REFUSING };
static const trpi_tcp_settings buffered = { .mode = TRPI_TCP_BUFFERED,
                                            .buffer = { .low = 100, .high = 500, .max = 1000 } };

/* ---- what came out, as text ------------------------------------------------------------------ */

static char trace[512];

static void
say(const char *word)
{
    size_t used = strlen(trace);

    snprintf(trace + used, sizeof trace - used, "%s%s", used == 0 ? "" : " ", word);
}

static const char *
error_text(int err)
{
    return err == EAGAIN         ? "again"
           : err == EPIPE        ? "pipe"
           : err == ECONNRESET   ? "reset-by-peer"
           : err == ECONNABORTED ? "aborted"
           : err == ENOBUFS      ? "full"
           : err == ENOTCONN     ? "unregistered"
           : err == EALREADY     ? "already"
           : err == EMSGSIZE     ? "size"
           : err == EIO          ? "io"
                                 : "?";
}

static void
say_error(const char *word, int err)
{
    char text[64];

    snprintf(text, sizeof text, "%s:%s", word, error_text(err));
    say(text);
}

static void
say_effects(const trpi_tcp_effects *effects)
{
    static const char *const ends[] = {
        "", "closed", "aborted", "confirmed", "peer-closed", "error"
    };

    for (const trpi_tcp_part *part = effects->done; part != NULL; part = part->next) {
        say("ack");
    }
    for (const trpi_tcp_part *part = effects->failed; part != NULL; part = part->next) {
        say_error("fail", part->err);
    }
    if (effects->refused != 0) {
        say_error("refused", effects->refused);
    }
    const struct {
        bool is;
        const char *word;
    } flags[] = { { effects->deliver, "bytes" },   { effects->high, "high" },
                  { effects->low, "low" },         { effects->resumed, "resumed" },
                  { effects->peer_closed, "eof" }, { effects->flush_timer, "timer" },
                  { effects->send_end, "fin" },    { effects->reset, "rst" } };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (flags[i].is) {
            say(flags[i].word);
        }
    }
    if (effects->end == TRPI_TCP_ERROR_CLOSED) {
        say_error("error", effects->err);
    } else if (effects->end != TRPI_TCP_GOES_ON) {
        say(ends[effects->end]);
    }
}

static trpi_tcp_effects
step(trpi_tcp_conn *conn, trpi_tcp_event event)
{
    trpi_tcp_effects effects;

    trpi_tcp_conn_step(conn, &event, &effects);
    say_effects(&effects);
    return effects;
}

#define DO(conn, kind_) step((conn), (trpi_tcp_event){ .kind = TRPI_TCP_##kind_ })
#define BYTES(conn, kind_, bytes_)                                                                 \
    step((conn), (trpi_tcp_event){ .kind = TRPI_TCP_##kind_, .bytes = (bytes_) })
#define ERR(conn, kind_, err_)                                                                     \
    step((conn), (trpi_tcp_event){ .kind = TRPI_TCP_##kind_, .err = (err_) })

static void
write_part(trpi_tcp_conn *conn, trpi_tcp_part *part, uint64_t bytes)
{
    *part = (trpi_tcp_part){ .left = bytes, .memory = bytes };
    step(conn, (trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = part });
}

static trpi_tcp_conn
connected(const trpi_tcp_settings *settings)
{
    trpi_tcp_conn conn;

    trpi_tcp_conn_init(&conn);
    trace[0] = '\0';
    if (settings != NULL) {
        step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_REGISTER, .settings = settings });
    }
    return conn;
}

/* The text since the last look. */
static void
expect(const char *want, int line)
{
    unit_check_text(trace, want, line, "effects", __FILE__);
    trace[0] = '\0';
}
#define EXPECT(want) expect((want), __LINE__)

/* ---- the five ways to end -------------------------------------------------------------------- */

enum half { OPEN, PEER_ENDED, WE_ENDED, BOTH_ENDED };
enum cause { CLOSE, CONFIRMED, ABORT, PEER_ENDS, READ_FAILS, WRITE_FAILS };
/* The effects of the event; of the flush, if something waits then; of the peer's end, if it is
 * still read. */
static const struct row {
    enum half half;
    enum cause cause;
    const char *none, *pending; /* with no write that waits, and with one; NULL: cannot happen */
} rows[] = {
    { OPEN, CLOSE, "fin closed", "| ack fin closed" },
    { OPEN, CONFIRMED, "fin | confirmed", "| ack fin | confirmed" },
    { OPEN, ABORT, "rst aborted", "fail:aborted rst aborted" },
    { OPEN, PEER_ENDS, "fin peer-closed", "| ack fin peer-closed" },
    { OPEN, READ_FAILS, "rst error:reset-by-peer", "fail:reset-by-peer rst error:reset-by-peer" },
    { OPEN, WRITE_FAILS, NULL, "fail:pipe | rst error:pipe" },
    { PEER_ENDED, CLOSE, "fin closed", "| ack fin closed" },
    { PEER_ENDED, CONFIRMED, "fin confirmed", "| ack fin confirmed" },
    { PEER_ENDED, ABORT, "rst aborted", "fail:aborted rst aborted" },
    { PEER_ENDED, PEER_ENDS, NULL, NULL },
    { PEER_ENDED, READ_FAILS, NULL, NULL },
    { PEER_ENDED, WRITE_FAILS, NULL, "fail:pipe rst error:pipe" },
    { WE_ENDED, CLOSE, "closed", "| ack fin closed" },
    { WE_ENDED, CONFIRMED, "| confirmed", "| ack fin | confirmed" },
    { WE_ENDED, ABORT, "rst aborted", "fail:aborted rst aborted" },
    { WE_ENDED, PEER_ENDS, "confirmed", "| ack fin confirmed" },
    { WE_ENDED, READ_FAILS, "rst error:reset-by-peer",
      "fail:reset-by-peer rst error:reset-by-peer" },
    { WE_ENDED, WRITE_FAILS, NULL, "fail:pipe | rst error:pipe" },
    { BOTH_ENDED, CLOSE, "", "| ack fin closed" },
    { BOTH_ENDED, CONFIRMED, "", "| ack fin confirmed" },
    { BOTH_ENDED, ABORT, "", "fail:aborted rst aborted" },
    { BOTH_ENDED, PEER_ENDS, NULL, NULL },
    { BOTH_ENDED, READ_FAILS, NULL, NULL },
    { BOTH_ENDED, WRITE_FAILS, NULL, "fail:pipe rst error:pipe" },
};

static void
cause_happens(trpi_tcp_conn *conn, enum cause cause)
{
    switch (cause) {
    case CLOSE:
        DO(conn, CLOSE);
        return;
    case CONFIRMED:
        DO(conn, CONFIRMED_CLOSE);
        return;
    case ABORT:
        DO(conn, ABORT);
        return;
    case PEER_ENDS:
        DO(conn, READ_END);
        return;
    case READ_FAILS:
        ERR(conn, READ_ERROR, ECONNRESET);
        return;
    case WRITE_FAILS:
        ERR(conn, WRITE_ERROR, EPIPE);
        return;
    }
}

static void
row_check(const struct row *row, bool pending, const char *want)
{
    trpi_tcp_settings settings = suspending;
    settings.keep_open = row->half == PEER_ENDED || row->half == BOTH_ENDED;
    trpi_tcp_conn conn = connected(&settings);
    trpi_tcp_part part;

    if (settings.keep_open) {
        DO(&conn, READ_END);
        EXPECT("eof");
    }
    if (pending) {
        write_part(&conn, &part, 10);
    }
    if (row->half == WE_ENDED || row->half == BOTH_ENDED) {
        DO(&conn, CONFIRMED_CLOSE);
    }
    trace[0] = '\0';
    UNIT_TRUE(trpi_tcp_conn_writes(&conn) == pending);
    /* an event that cannot happen: nothing is read, nothing written */
    if (row->cause == PEER_ENDS || row->cause == READ_FAILS) {
        UNIT_TRUE(trpi_tcp_conn_reads(&conn) == (want != NULL));
    }
    if (want == NULL) {
        UNIT_TRUE(row->cause != WRITE_FAILS || !pending);
        return;
    }
    cause_happens(&conn, row->cause);
    if (trpi_tcp_conn_writes(&conn)) {
        say("|");
        BYTES(&conn, WROTE, 10);
    }
    if (trpi_tcp_conn_reads(&conn)) {
        say("|");
        DO(&conn, READ_END);
    }
    if (strcmp(trace, want) != 0) {
        printf("  row: half %d cause %d pending %d\n", row->half, row->cause, pending);
    }
    EXPECT(want);
    UNIT_TRUE(!trpi_tcp_conn_writes(&conn) && !trpi_tcp_conn_reads(&conn) && conn.ended);
}

/* TCP-13, TCP-08 to -13: both halves, what happens, a write that waits or none */
static void
every_end_of_every_state_comes_once_and_takes_its_writes_along(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_check(&rows[i], false, rows[i].none);
        row_check(&rows[i], true, rows[i].pending);
    }
}

static void
a_second_order_to_close_is_ignored_and_close_overtakes_a_confirmed_one(void)
{
    trpi_tcp_conn conn = connected(&suspending);
    trpi_tcp_part part;

    write_part(&conn, &part, 10);
    DO(&conn, CLOSE);
    DO(&conn, CLOSE);
    DO(&conn, CONFIRMED_CLOSE);
    EXPECT("");
    BYTES(&conn, WROTE, 10);
    EXPECT("ack fin closed");
    DO(&conn, CLOSE);
    DO(&conn, ABORT);
    DO(&conn, TIMEOUT);
    DO(&conn, HANDLER_ENDED);
    EXPECT(""); /* tcp-conn-C3 */
    write_part(&conn, &part, 10);
    EXPECT("fail:pipe");
    DO(&conn, RESUME_READING);
    EXPECT("refused:pipe");
}

static void
no_write_is_taken_after_an_order_to_close(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part, late;

    write_part(&conn, &part, 10);
    DO(&conn, CONFIRMED_CLOSE);
    write_part(&conn, &late, 10);
    EXPECT("fail:pipe");
    DO(&conn, RESUME_WRITING);
    EXPECT("refused:pipe");
    BYTES(&conn, WROTE, 10);
    EXPECT("ack fin");
    BYTES(&conn, READ, 5); /* goes on until the peer ends */
    DO(&conn, READ_END);
    EXPECT("bytes confirmed");
}

/* ---- before REGISTER ------------------------------------------------------------------------- */

/* TCP-03, TRP-08 */
static void
nothing_is_read_or_written_before_the_handler_registers(void)
{
    trpi_tcp_conn conn = connected(NULL);
    trpi_tcp_part part;

    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    write_part(&conn, &part, 1);
    EXPECT("fail:unregistered");
    DO(&conn, SUSPEND_READING);
    DO(&conn, RESUME_READING);
    DO(&conn, RESUME_WRITING);
    EXPECT("refused:unregistered refused:unregistered refused:unregistered");
    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_REGISTER, .settings = &suspending });
    UNIT_TRUE(trpi_tcp_conn_reads(&conn));
    step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_REGISTER, .settings = &suspending });
    EXPECT("refused:already");
    DO(&conn, TIMEOUT); /* it rang at the same moment */
    EXPECT("");

    conn = connected(NULL);
    DO(&conn, TIMEOUT);
    EXPECT("rst aborted");
    conn = connected(NULL);
    DO(&conn, CLOSE);
    EXPECT("fin closed");
    conn = connected(NULL);
    DO(&conn, CONFIRMED_CLOSE); /* its bytes have no handler: only Register or Abort go on */
    step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_REGISTER, .settings = &suspending });
    EXPECT("fin refused:pipe");
    DO(&conn, TIMEOUT);
    EXPECT("rst aborted");
}

/* ---- the three raw modes --------------------------------------------------------------------- */

/* IO-05, TCP-20, TCP-25, TRP-07 */
static void
after_a_refused_write_all_fail_until_writing_is_resumed(void)
{
    trpi_tcp_conn conn = connected(&suspending);
    trpi_tcp_part w1, w2, w3, w4;

    write_part(&conn, &w1, 10);
    write_part(&conn, &w2, 10);
    BYTES(&conn, WROTE, 10);
    EXPECT("fail:again ack");
    write_part(&conn, &w3, 10); /* there is room, but it would overtake w2 */
    EXPECT("fail:again");
    DO(&conn, RESUME_WRITING);
    write_part(&conn, &w2, 10);
    EXPECT("resumed");
    write_part(&conn, &w3, 10);
    DO(&conn, RESUME_WRITING);
    write_part(&conn, &w4, 10); /* was sent before the answer came */
    DO(&conn, RESUME_WRITING);
    EXPECT("fail:again fail:again refused:already");
    BYTES(&conn, WROTE, 4);
    EXPECT("");
    BYTES(&conn, WROTE, 6);
    EXPECT("ack resumed");
    write_part(&conn, &w3, 10); /* tcp-conn-C4 */
    BYTES(&conn, WROTE, 10);
    EXPECT("ack");
}

/* TCP-19 */
static void
without_suspending_a_write_fails_only_while_another_one_waits(void)
{
    trpi_tcp_conn conn = connected(&refusing);
    trpi_tcp_part w1, w2, w3;

    write_part(&conn, &w1, 10);
    write_part(&conn, &w2, 10);
    BYTES(&conn, WROTE, 10);
    write_part(&conn, &w3, 10);
    BYTES(&conn, WROTE, 10);
    EXPECT("fail:again ack ack");
}

/* IO-04, TCP-14, TCP-16 */
static void
parts_of_one_command_are_acknowledged_one_by_one_and_fail_together(void)
{
    trpi_tcp_conn conn = connected(&suspending);
    trpi_tcp_part parts[4] = {
        { .next = &parts[1], .left = 0 }, /* an ack of its own */
        { .next = &parts[2], .left = 10, .memory = 10 },
        { .next = &parts[3], .left = 20 }, /* of a file */
        { .left = 0 },
    };
    trpi_tcp_event write = { .kind = TRPI_TCP_WRITE, .parts = parts };

    step(&conn, write);
    EXPECT("ack");
    UNIT_EQUAL(conn.waiting, 10);
    BYTES(&conn, WROTE, 11);
    EXPECT("ack");
    UNIT_EQUAL(conn.waiting, 0);
    UNIT_EQUAL(conn.parts, 2);
    trpi_tcp_part more[2] = { { .next = &more[1], .left = 5, .memory = 5 }, { .left = 0 } };
    step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = more });
    EXPECT("fail:again fail:again");
    BYTES(&conn, WROTE, 19);
    EXPECT("ack ack"); /* the last one and the empty one behind it */
    UNIT_FALSE(trpi_tcp_conn_writes(&conn));
}

static void
a_command_may_have_the_most_parts_and_not_one_more(void)
{
    trpi_tcp_part *parts = calloc(TRPI_TCP_PARTS_MAX + 1, sizeof *parts);
    const trpi_tcp_settings *const modes[] = { &suspending, &refusing, &buffered };

    UNIT_REQUIRE(parts != NULL);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        trpi_tcp_conn conn = connected(modes[m]);
        for (uint32_t i = 0; i <= TRPI_TCP_PARTS_MAX; i++) {
            parts[i] = (trpi_tcp_part){ .next = &parts[i + 1], .left = 1 };
        }
        parts[TRPI_TCP_PARTS_MAX - 1].next = NULL;
        parts[TRPI_TCP_PARTS_MAX].next = NULL;
        step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = parts });
        UNIT_EQUAL(conn.parts, TRPI_TCP_PARTS_MAX);
        conn = connected(modes[m]);
        parts[TRPI_TCP_PARTS_MAX - 1].next = &parts[TRPI_TCP_PARTS_MAX];
        trpi_tcp_effects effects;
        trpi_tcp_conn_step(&conn, &(trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = parts },
                           &effects);
        UNIT_TRUE(effects.failed == parts && parts[0].err == EMSGSIZE);
        UNIT_TRUE(effects.end == TRPI_TCP_GOES_ON && conn.parts == 0);
    }
    free(parts);
}

/* ---- the writer with a buffer ---------------------------------------------------------------- */

/* TCP-17, PIPE-13 */
static void
a_buffer_tells_its_marks_once_each_way_and_ends_one_byte_above_its_bound(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part w[8];

    write_part(&conn, &w[0], 500);
    EXPECT("");
    write_part(&conn, &w[1], 1);
    EXPECT("high");
    write_part(&conn, &w[2], 499);
    EXPECT("");
    UNIT_EQUAL(conn.waiting, 1000); /* at the bound */
    BYTES(&conn, WROTE, 899);
    EXPECT("ack ack");
    BYTES(&conn, WROTE, 1);
    EXPECT("low");
    write_part(&conn, &w[3], 401);
    BYTES(&conn, WROTE, 501);
    EXPECT("high ack ack low");
    write_part(&conn, &w[4], 1);
    write_part(&conn, &w[5], 1000);
    EXPECT("fail:aborted fail:full rst error:full");
}

static void
a_command_above_the_bound_ends_the_connection_and_a_piece_of_a_file_does_not_count(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part;
    trpi_tcp_part file = { .left = UINT64_C(5) << 30 };

    step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = &file });
    write_part(&conn, &part, 1000);
    EXPECT("high");
    BYTES(&conn, WROTE, UINT64_C(5) << 30);
    EXPECT("ack");
    BYTES(&conn, WROTE, 1000);
    EXPECT("ack low");
    write_part(&conn, &part, 1001);
    EXPECT("fail:full rst error:full");
}

static void
a_buffer_takes_the_most_parts_and_not_one_more(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part *parts = calloc(TRPI_TCP_PARTS_MAX + 1, sizeof *parts);

    UNIT_REQUIRE(parts != NULL);
    parts[0].left = 1; /* of a file: it stands before the empty ones */
    for (uint32_t i = 0; i < TRPI_TCP_PARTS_MAX; i++) {
        step(&conn, (trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = &parts[i] });
    }
    EXPECT("");
    trpi_tcp_effects effects;
    trpi_tcp_conn_step(
        &conn, &(trpi_tcp_event){ .kind = TRPI_TCP_WRITE, .parts = &parts[TRPI_TCP_PARTS_MAX] },
        &effects);
    UNIT_EQUAL(effects.err, ENOBUFS);
    UNIT_EQUAL(effects.end, TRPI_TCP_ERROR_CLOSED);
    UNIT_TRUE(effects.failed == parts);
    free(parts);
}

static void
a_buffered_writer_may_ask_when_all_is_written(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part;

    DO(&conn, RESUME_WRITING);
    EXPECT("resumed");
    write_part(&conn, &part, 10);
    DO(&conn, RESUME_WRITING);
    EXPECT("");
    BYTES(&conn, WROTE, 10);
    EXPECT("ack resumed");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* TCP-22 */
static void
reading_stops_and_goes_on_by_order(void)
{
    trpi_tcp_conn conn = connected(&suspending);

    BYTES(&conn, READ, 10);
    DO(&conn, SUSPEND_READING);
    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    DO(&conn, RESUME_READING);
    UNIT_TRUE(trpi_tcp_conn_reads(&conn));
    BYTES(&conn, READ, 10);
    BYTES(&conn, READ, 10);
    EXPECT("bytes bytes bytes");
}

static void
a_handler_that_pulls_gets_one_piece_for_each_demand(void)
{
    trpi_tcp_settings settings = buffered;
    settings.pull = true;
    trpi_tcp_conn conn = connected(&settings);

    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    DO(&conn, RESUME_READING);
    DO(&conn, RESUME_READING);
    BYTES(&conn, READ, 10);
    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    DO(&conn, RESUME_READING);
    DO(&conn, SUSPEND_READING);
    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    EXPECT("bytes");
}

/* TCP-12: Bytes that came before a reset are read first. */
static void
a_broken_sending_direction_ends_the_connection_when_all_has_been_read(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part, late;

    write_part(&conn, &part, 10);
    ERR(&conn, WRITE_ERROR, EPIPE);
    EXPECT("fail:pipe");
    write_part(&conn, &late, 10);
    EXPECT("fail:pipe");
    BYTES(&conn, READ, 100);
    ERR(&conn, READ_ERROR, ECONNRESET);
    EXPECT("bytes rst error:pipe"); /* the first error is the cause */

    conn = connected(&buffered);
    write_part(&conn, &part, 10);
    ERR(&conn, WRITE_ERROR, EPIPE);
    BYTES(&conn, READ, 100);
    DO(&conn, READ_NONE);
    EXPECT("fail:pipe bytes rst error:pipe");

    conn = connected(&buffered); /* a handler that wants no bytes would wait for ever */
    DO(&conn, SUSPEND_READING);
    write_part(&conn, &part, 10);
    ERR(&conn, WRITE_ERROR, EPIPE);
    EXPECT("fail:pipe rst error:pipe");

    conn = connected(&buffered);
    write_part(&conn, &part, 10);
    ERR(&conn, WRITE_ERROR, EPIPE);
    DO(&conn, SUSPEND_READING);
    EXPECT("fail:pipe rst error:pipe");
}

static void
a_file_that_cannot_be_read_ends_the_connection_by_a_reset(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part;

    write_part(&conn, &part, 10);
    ERR(&conn, PART_ERROR, EIO);
    EXPECT("fail:io rst error:io");
}

/* TCP-04, TRP-09 */
static void
the_end_of_the_handler_flushes_for_a_while_and_closes(void)
{
    trpi_tcp_conn conn = connected(&buffered);
    trpi_tcp_part part;

    DO(&conn, HANDLER_ENDED);
    EXPECT("fin closed");
    conn = connected(&buffered);
    write_part(&conn, &part, 10);
    DO(&conn, HANDLER_ENDED);
    EXPECT("timer");
    UNIT_FALSE(trpi_tcp_conn_reads(&conn));
    BYTES(&conn, WROTE, 10);
    EXPECT("ack fin closed");
    conn = connected(&buffered);
    write_part(&conn, &part, 10);
    DO(&conn, HANDLER_ENDED);
    DO(&conn, TIMEOUT);
    EXPECT("timer fail:aborted rst aborted");
}

/* ---- all of it at random --------------------------------------------------------------------- */

#define RUN_PARTS 400u

typedef struct life {
    trpi_tcp_conn conn;
    trpi_tcp_settings settings;
    trpi_tcp_part parts[RUN_PARTS];
    uint8_t fate[RUN_PARTS]; /* 0 with its owner, 1 given, 2 back */
    uint32_t used, last_done;
    uint32_t ends;
    bool failed;
    uint64_t random;
} life;

static uint64_t
draw(life *l, uint64_t below)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->random % below;
}

static void
parts_back(life *l, const trpi_tcp_part *part, bool done)
{
    uint32_t last = 0;

    for (; part != NULL; part = part->next) {
        uint32_t index = (uint32_t)(part - l->parts);
        l->failed |= l->fate[index] != 1 || (last != 0 && index + 1 <= last); /* tcp-conn-C1 */
        l->fate[index] = 2;
        last = index + 1;
        if (done) {
            l->failed |= index + 1 <= l->last_done || part->left != 0;
            l->last_done = index + 1;
        } else {
            l->failed |= part->err == 0;
        }
    }
}

static trpi_tcp_event
event_draw(life *l)
{
    static const trpi_tcp_event_kind commands[] = {
        TRPI_TCP_RESUME_WRITING,  TRPI_TCP_RESUME_WRITING, TRPI_TCP_SUSPEND_READING,
        TRPI_TCP_RESUME_READING,  TRPI_TCP_RESUME_READING, TRPI_TCP_CLOSE,
        TRPI_TCP_CONFIRMED_CLOSE, TRPI_TCP_ABORT,          TRPI_TCP_TIMEOUT,
        TRPI_TCP_HANDLER_ENDED
    };
    trpi_tcp_event event = { .err = ECONNRESET, .settings = &l->settings };
    uint64_t kind = draw(l, 100);

    if (kind < 45 && l->used + 3 < RUN_PARTS) {
        uint32_t count = 1 + (uint32_t)draw(l, 3);
        event.kind = TRPI_TCP_WRITE;
        event.parts = &l->parts[l->used];
        for (uint32_t i = 0; i < count; i++) {
            trpi_tcp_part *part = &l->parts[l->used];
            part->left = draw(l, 4) == 0 ? 0 : draw(l, 200);
            part->memory = draw(l, 5) == 0 ? 0 : part->left;
            part->next = i + 1 < count ? part + 1 : NULL;
            l->fate[l->used++] = 1;
        }
    } else if (kind < 70 && trpi_tcp_conn_writes(&l->conn)) {
        uint64_t most = 0;
        for (const trpi_tcp_part *part = l->conn.first; part != NULL; part = part->next) {
            most += part->left;
        }
        event.kind = draw(l, 60) != 0  ? TRPI_TCP_WROTE
                     : draw(l, 2) == 0 ? TRPI_TCP_WRITE_ERROR
                                       : TRPI_TCP_PART_ERROR;
        event.bytes = draw(l, 3) == 0 ? most : draw(l, most + 1);
    } else if (kind < 90 && trpi_tcp_conn_reads(&l->conn)) {
        event.bytes = 1 + draw(l, 100);
        event.kind = draw(l, 30) != 0   ? TRPI_TCP_READ
                     : draw(l, 2) == 0  ? TRPI_TCP_READ_NONE
                     : draw(l, 10) != 0 ? TRPI_TCP_READ_END
                                        : TRPI_TCP_READ_ERROR;
    } else if (!l->conn.registered) {
        event.kind = TRPI_TCP_REGISTER;
    } else {
        event.kind = commands[draw(l, draw(l, 4) == 0 ? 10 : 5)];
    }
    return event;
}

static void
bounds_check(life *l)
{
    uint64_t waiting = 0;
    uint32_t parts = 0;

    for (const trpi_tcp_part *part = l->conn.first; part != NULL; part = part->next) {
        waiting += part->memory;
        parts++;
    }
    l->failed |= waiting != l->conn.waiting || parts != l->conn.parts; /* tcp-conn-C2 */
    l->failed |= l->conn.mode == TRPI_TCP_BUFFERED ? waiting > l->conn.buffer.max : parts > 3;
}

static void
event_happens(life *l, trpi_tcp_event event)
{
    bool credit = l->conn.credit != 0, ended = l->conn.ended;
    trpi_tcp_effects effects;

    trpi_tcp_conn_step(&l->conn, &event, &effects);
    parts_back(l, effects.done, true);
    parts_back(l, effects.failed, false);
    l->ends += effects.end != TRPI_TCP_GOES_ON;
    l->failed |= ended && (effects.deliver || effects.send_end || effects.done != NULL);
    l->failed |= effects.deliver && !(credit && l->conn.registered); /* tcp-conn-C5 */
    /* tcp-conn-C4 */
    l->failed |= effects.resumed && (l->conn.refusing || l->conn.first != NULL);
    bounds_check(l);
}

static void
run(life *l, uint64_t seed)
{
    static const trpi_tcp_mode modes[] = { TRPI_TCP_BUFFERED, TRPI_TCP_SUSPENDING,
                                           TRPI_TCP_REFUSING };
    memset(l, 0, sizeof *l);
    l->random = seed * 0x9e3779b97f4a7c15u;
    l->settings = buffered;
    l->settings.mode = modes[draw(l, 3)];
    l->settings.keep_open = draw(l, 2) != 0;
    l->settings.pull = draw(l, 4) == 0;
    trpi_tcp_conn_init(&l->conn);
    for (int i = 0; i < 300; i++) {
        event_happens(l, event_draw(l));
    }
    event_happens(l, (trpi_tcp_event){ .kind = TRPI_TCP_ABORT });
    for (uint32_t i = 0; i < l->used; i++) {
        l->failed |= l->fate[i] != 2;
    }
    l->failed |= l->ends != 1; /* tcp-conn-C3 */
}

/* TCP-14 */
static void
random_lives_answer_each_write_once_in_order_and_within_bounds(void)
{
    static life l;
    const char *only = getenv("TCP_CONN_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    uint64_t last = only != NULL ? first : 3000;

    for (uint64_t seed = first; seed <= last; seed++) {
        run(&l, seed);
        if (l.failed) {
            printf("  replay: TCP_CONN_SEED=%llu io_tests tcp_conn_test\n",
                   (unsigned long long)seed);
            UNIT_FAIL("a life broke a rule");
            return;
        }
    }
}

UNIT_BEGIN("tcp-conn")
UNIT(every_end_of_every_state_comes_once_and_takes_its_writes_along)
UNIT(a_second_order_to_close_is_ignored_and_close_overtakes_a_confirmed_one)
UNIT(no_write_is_taken_after_an_order_to_close)
UNIT(nothing_is_read_or_written_before_the_handler_registers)
UNIT(after_a_refused_write_all_fail_until_writing_is_resumed)
UNIT(without_suspending_a_write_fails_only_while_another_one_waits)
UNIT(parts_of_one_command_are_acknowledged_one_by_one_and_fail_together)
UNIT(a_command_may_have_the_most_parts_and_not_one_more)
UNIT(a_buffer_tells_its_marks_once_each_way_and_ends_one_byte_above_its_bound)
UNIT(a_command_above_the_bound_ends_the_connection_and_a_piece_of_a_file_does_not_count)
UNIT(a_buffer_takes_the_most_parts_and_not_one_more)
UNIT(a_buffered_writer_may_ask_when_all_is_written)
UNIT(reading_stops_and_goes_on_by_order)
UNIT(a_handler_that_pulls_gets_one_piece_for_each_demand)
UNIT(a_broken_sending_direction_ends_the_connection_when_all_has_been_read)
UNIT(a_file_that_cannot_be_read_ends_the_connection_by_a_reset)
UNIT(the_end_of_the_handler_flushes_for_a_while_and_closes)
UNIT(random_lives_answer_each_write_once_in_order_and_within_bounds)
UNIT_END
