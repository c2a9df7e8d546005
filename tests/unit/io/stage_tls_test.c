/* stage_tls_test.c - two pipelines with TLS, and the bytes between them. */
#include "tests/unit/draw.h"
#include "tests/unit/tls/ends.h"

#include "base/bytes.h"
#include "io/stage_tls.h"

static ends_files files;

typedef struct side {
    trpi_tls_context *context;
    trp_pipeline *pipeline;
    trp_bytes heard; /* plain */
    bool heard_end, closed;
    trp_err err;
} side;

static trp_err
side_hear(void *arg, trp_item *item)
{
    side *s = arg;

    if (item->type == &trp_item_end) {
        s->heard_end = true;
        return TRP_OK;
    }
    return trp_bytes_append(&s->heard, item->as.bytes);
}

/* host: of a client; NULL: a server. */
static void
side_open(side *s, const trpi_tls_options *options, const char *host, uint32_t waiting_max)
{
    trpi_tls_stage_options tls = { .waiting_max = waiting_max };
    trp_pipeline_options given = TRP_PIPELINE_OPTIONS_INIT;
    trp_stage_use use = { &trpi_tls_stage, &tls };
    char why[300] = "";

    memset(s, 0, sizeof *s);
    UNIT_REQUIRE(trpi_tls_context_load(options, files.pki.now_ms, &s->context, why, sizeof why) ==
                 TRP_OK);
    tls.context = s->context;
    tls.session.host = host;
    tls.session.sends_name = true;
    tls.session.wall_ms = files.pki.now_ms;
    given.on_event = side_hear;
    given.arg = s;
    UNIT_REQUIRE(trp_pipeline_new(&use, 1, &given, &s->pipeline) == TRP_OK);
}

static void
side_close(side *s)
{
    trp_pipeline_free(s->pipeline);
    trpi_tls_context_unref(s->context);
    trp_bytes_unref(&s->heard);
}

static void
pair_open(side *client, side *server)
{
    ends_files_start(&files);
    trpi_tls_options of_client = ends_client(&files), of_server = ends_server(&files);

    side_open(client, &of_client, "echo.example", 0);
    side_open(server, &of_server, NULL, 0);
}

static void
pair_close(side *client, side *server)
{
    side_close(client);
    side_close(server);
    pki_end(&files.pki);
}

static trp_err
side_say(side *s, const void *data, size_t bytes)
{
    trp_item item = trp_item_of(&trp_item_bytes);
    trp_err err;

    UNIT_REQUIRE(trp_bytes_copy(data, bytes, &item.as.bytes) == TRP_OK);
    err = trp_pipeline_command(s->pipeline, &item);
    trp_item_clear(&item);
    return err;
}

static trp_err
side_order(side *s, const trp_item_type *type, bool is_event)
{
    trp_item item = trp_item_of(type);

    return is_event ? trp_pipeline_event(s->pipeline, &item)
                    : trp_pipeline_command(s->pipeline, &item);
}

/* Carry what one has sent to the other, in pieces of at most so many bytes; true: there was some.
 */
static bool
carry(side *from, side *to, unit_draw *draw, uint32_t piece_max)
{
    bool some = false;
    trp_item item;

    while (trp_pipeline_next_command(from->pipeline, &item)) {
        from->closed = from->closed || item.type == &trp_item_close;
        while (item.type == &trp_item_bytes && trp_bytes_length(item.as.bytes) > 0) {
            trp_item piece =
                trp_item_of_bytes(trp_bytes_split(&item.as.bytes, 1 + unit_drawn(draw, piece_max)));

            if (to->err == TRP_OK) {
                to->err = trp_pipeline_event(to->pipeline, &piece);
            }
            trp_item_clear(&piece);
            some = true;
        }
        trp_item_clear(&item);
    }
    return some;
}

static void
talk(side *a, side *b, unit_draw *draw, uint32_t piece_max)
{
    bool some = true;

    while (some) {
        some = carry(a, b, draw, piece_max);
        some = carry(b, a, draw, piece_max) || some;
    }
}

static bool
heard_is(side *s, const void *want, size_t bytes)
{
    bool is = trp_bytes_length(s->heard) == bytes &&
              trp_bytes_equal(s->heard, (trp_bytes){ NULL, want, (uint32_t)bytes, 0 });

    trp_bytes_unref(&s->heard);
    return is;
}

/* PIPE-13: both directions, whatever the cuts; PIPE-14: also more than any buffer of a socket */
static void
bytes_pass_encrypted_in_order_however_they_are_cut(void)
{
    static const uint32_t cuts[] = { 1000000, 1, 100, 5000 };
    static uint8_t large[300000];
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stage_tls_test");

    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = (uint8_t)unit_drawn(&draw, 256);
    }
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        size_t bytes = cuts[i] == 1 ? 3000 : sizeof large;
        side c, s;
        trp_item item;

        pair_open(&c, &s);
        UNIT_EQUAL(side_say(&c, "hello", 5), TRP_OK); /* waits for the handshake */
        talk(&c, &s, &draw, cuts[i]);
        UNIT_TRUE(heard_is(&s, "hello", 5));
        UNIT_EQUAL(side_say(&s, large, bytes), TRP_OK);
        UNIT_EQUAL(side_say(&c, large, bytes), TRP_OK);
        talk(&c, &s, &draw, cuts[i]);
        UNIT_TRUE(heard_is(&s, large, bytes));
        UNIT_TRUE(heard_is(&c, large, bytes));
        UNIT_EQUAL(side_say(&c, "secret secret", 13), TRP_OK);
        UNIT_REQUIRE(trp_pipeline_next_command(c.pipeline, &item));
        UNIT_EQUAL(trp_bytes_find(item.as.bytes, 0, "secret", 6), TRP_BYTES_NOT_FOUND);
        trp_item_clear(&item);
        UNIT_EQUAL(c.err, TRP_OK);
        UNIT_EQUAL(s.err, TRP_OK);
        pair_close(&c, &s);
    }
}

/* The server speaks first; an empty command begins. */
static void
an_empty_command_begins_the_handshake(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stage_tls_test");
    side c, s;

    pair_open(&c, &s);
    UNIT_EQUAL(side_say(&s, "welcome", 7), TRP_OK);
    UNIT_EQUAL(side_say(&c, "", 0), TRP_OK);
    talk(&c, &s, &draw, 1000);
    UNIT_TRUE(heard_is(&c, "welcome", 7));
    pair_close(&c, &s);
}

static void
an_orderly_end_passes_and_a_truncation_is_an_error(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stage_tls_test");
    side c, s;

    pair_open(&c, &s);
    UNIT_EQUAL(side_say(&c, "last", 4), TRP_OK);
    talk(&c, &s, &draw, 1000);
    UNIT_EQUAL(side_order(&c, &trp_item_close, false), TRP_OK);
    UNIT_EQUAL(side_say(&c, "x", 1), TRP_ECLOSED);
    talk(&c, &s, &draw, 1000);
    UNIT_TRUE(c.closed);
    UNIT_EQUAL(side_order(&s, &trp_item_end, true), TRP_OK);
    UNIT_TRUE(s.heard_end);
    UNIT_EQUAL(side_order(&c, &trp_item_end, true), TRP_EPROTO); /* the server has said nothing */
    UNIT_FALSE(c.heard_end);
    UNIT_EQUAL(side_order(&c, &trp_item_end, true), TRP_EPROTO);
    pair_close(&c, &s);
}

static void
a_failure_sends_its_alert_and_stays(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stage_tls_test");
    trp_item item;
    side c, s;

    pair_open(&c, &s);
    UNIT_EQUAL(side_say(&c, "hello", 5), TRP_OK);
    talk(&c, &s, &draw, 1000);
    item = trp_item_of_bytes(TRP_BYTES_LITERAL("\x17\x03\x03\x00\x05wrong"));
    UNIT_EQUAL(trp_pipeline_event(s.pipeline, &item), TRP_EPROTO);
    trp_item_clear(&item);
    UNIT_TRUE(strlen(trp_pipeline_reason(s.pipeline)) > strlen("tls: "));
    UNIT_TRUE(carry(&s, &c, &draw, 1000)); /* the alert */
    UNIT_EQUAL(c.err, TRP_EPROTO);
    UNIT_EQUAL(side_say(&s, "x", 1), TRP_EPROTO);
    pair_close(&c, &s);
}

static void
a_stranger_is_refused(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/io/io_tests", "stage_tls_test");
    side c, s;

    ends_files_start(&files);
    trpi_tls_options of_client = ends_client(&files), of_server = ends_server(&files);

    of_server.cert = ends_path(&files, "stranger.pem");
    of_server.key = ends_path(&files, "stranger.key");
    side_open(&c, &of_client, "echo.example", 0);
    side_open(&s, &of_server, NULL, 0);
    UNIT_EQUAL(side_say(&c, "secret", 6), TRP_OK);
    talk(&c, &s, &draw, 1000);
    UNIT_EQUAL(c.err, TRP_EPROTO);
    UNIT_EQUAL(trp_bytes_length(s.heard), 0);
    pair_close(&c, &s);
}

/* PIPE-14 */
static void
only_so_much_waits_for_the_handshake(void)
{
    trp_item item;
    side c;

    ends_files_start(&files);
    trpi_tls_options of_client = ends_client(&files);

    side_open(&c, &of_client, "echo.example", 10);
    UNIT_EQUAL(side_say(&c, "0123456789", 10), TRP_OK);
    UNIT_EQUAL(side_say(&c, "x", 1), TRP_EAGAIN);
    UNIT_TRUE(trp_pipeline_next_command(c.pipeline, &item));
    trp_item_clear(&item);
    side_close(&c);
    pki_end(&files.pki);
}

static void
a_handshake_that_does_not_end_is_refused(void)
{
    static uint8_t junk[16000];
    trp_err err = TRP_OK;
    side c, s;

    pair_open(&c, &s);
    for (unsigned i = 0; i < 100 && err == TRP_OK; i++) {
        /* records of a handshake message that announces 16 MiB */
        static const uint8_t head[] = { 22, 3, 1, 0x3e, 0x7b, 1, 0xff, 0xff, 0xff };
        trp_item item = trp_item_of(&trp_item_bytes);

        memcpy(junk, head, i == 0 ? sizeof head : 5);
        UNIT_REQUIRE(trp_bytes_copy(junk, sizeof junk, &item.as.bytes) == TRP_OK);
        err = trp_pipeline_event(s.pipeline, &item);
        trp_item_clear(&item);
    }
    UNIT_EQUAL(err, TRP_EPROTO);
    pair_close(&c, &s);
}

UNIT_BEGIN("stage_tls")
UNIT(bytes_pass_encrypted_in_order_however_they_are_cut)
UNIT(an_empty_command_begins_the_handshake)
UNIT(an_orderly_end_passes_and_a_truncation_is_an_error)
UNIT(a_failure_sends_its_alert_and_stays)
UNIT(a_stranger_is_refused)
UNIT(only_so_much_waits_for_the_handshake)
UNIT(a_handshake_that_does_not_end_is_refused)
UNIT_END
