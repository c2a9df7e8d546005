/* sse_test.c - server-sent events are taken apart in whatever pieces they come. */
#include "cluster/cli/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

typedef struct taken {
    char text[4096]; /* "TYPE=DATA;" each */
    unsigned left;   /* until no more is wanted; 0: all is */
} taken;

static bool
event_take(void *arg, const char *type, const char *data)
{
    taken *t = arg;
    size_t used = strlen(t->text);
    (void)snprintf(t->text + used, sizeof t->text - used, "%s=%s;", type, data);
    return t->left == 0 || --t->left > 0;
}

/* Take the stream in pieces of so many bytes: the events, and the last id. */
static void
stream_is(const char *stream, size_t piece, const char *events, const char *id)
{
    trpi_sse sse = { .id = "" };
    taken t = { .text = "" };
    for (size_t at = 0, bytes = strlen(stream); at < bytes; at += piece) {
        size_t count = bytes - at < piece ? bytes - at : piece;
        UNIT_EQUAL(trpi_sse_take(&sse, stream + at, count, event_take, &t), TRP_OK);
    }
    UNIT_TEXT(t.text, events);
    UNIT_TEXT(sse.id, id);
    trpi_sse_fini(&sse);
}

static void
events_come_whole_in_whatever_pieces(void)
{
    static const char stream[] = "retry:1000\n\ndata:{\"type\":\"Reset\"}\nevent:Reset\n\n"
                                 "id:7-1\ndata: a\nevent: MemberUp\n\n:\n\nid:7-2\n\n"
                                 "data:one\ndata:two\n\nunknown:x\ndata\n\nid:7-3\ndata:cut";
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        stream_is(stream, piece, "Reset={\"type\":\"Reset\"};MemberUp=a;=one\ntwo;", "7-2");
    }
    stream_is("id:1\r\ndata:a\r\n\r\ndata:b\r\rdata:c\n\n", 1, "=a;=b;=c;", "1");
}

/* sse-S1 */
static void
the_id_of_an_event_that_is_cut_off_is_not_kept(void)
{
    trpi_sse sse = { .id = "" };
    taken t = { .text = "" };
    static const char first[] = "retry:250\nid:7-1\ndata:a\n\nid:7-2\ndata:b\n";
    static const char second[] = "id:7-2\ndata:b\n\n";
    UNIT_EQUAL(trpi_sse_take(&sse, first, sizeof first - 1, event_take, &t), TRP_OK);
    UNIT_TEXT(sse.id, "7-1");
    UNIT_EQUAL(sse.retry_ms, 250);
    trpi_sse_again(&sse);
    UNIT_TEXT(sse.id, "7-1");
    UNIT_EQUAL(trpi_sse_take(&sse, second, sizeof second - 1, event_take, &t), TRP_OK);
    UNIT_TEXT(t.text, "=a;=b;");
    UNIT_TEXT(sse.id, "7-2");
    trpi_sse_fini(&sse);
}

static void
a_reader_that_has_enough_ends_the_stream(void)
{
    trpi_sse sse = { .id = "" };
    taken t = { .text = "", .left = 1 };
    static const char stream[] = "id:1\ndata:a\n\nid:2\ndata:b\n\n";
    UNIT_EQUAL(trpi_sse_take(&sse, stream, sizeof stream - 1, event_take, &t), TRP_ECANCELED);
    UNIT_TEXT(t.text, "=a;");
    UNIT_TEXT(sse.id, "1");
    trpi_sse_fini(&sse);
}

/* Each limit, at it and one past it. */
static void
what_is_too_long_is_refused(void)
{
    trpi_sse sse = { .id = "" };
    taken t = { .text = "" };
    char *line = malloc(TRPI_SSE_BYTES_MAX + 1), id[2 * TRPI_SSE_NAME_BYTES];
    UNIT_REQUIRE(line != NULL);
    memset(line, ':', TRPI_SSE_BYTES_MAX + 1);
    UNIT_EQUAL(trpi_sse_take(&sse, line, TRPI_SSE_BYTES_MAX, event_take, &t), TRP_OK);
    UNIT_EQUAL(trpi_sse_take(&sse, "\n", 1, event_take, &t), TRP_OK);
    UNIT_EQUAL(trpi_sse_take(&sse, line, TRPI_SSE_BYTES_MAX + 1, event_take, &t), TRP_ELIMIT);
    trpi_sse_again(&sse);
    free(line);
    (void)snprintf(id, sizeof id, "id:%0*d\n\n", (int)TRPI_SSE_NAME_BYTES - 1, 1);
    UNIT_EQUAL(trpi_sse_take(&sse, id, strlen(id), event_take, &t), TRP_OK);
    UNIT_EQUAL(strlen(sse.id), TRPI_SSE_NAME_BYTES - 1);
    (void)snprintf(id, sizeof id, "id:%0*d\n\n", (int)TRPI_SSE_NAME_BYTES, 1);
    UNIT_EQUAL(trpi_sse_take(&sse, id, strlen(id), event_take, &t), TRP_ELIMIT);
    trpi_sse_fini(&sse);
}

UNIT_BEGIN("sse")
UNIT(events_come_whole_in_whatever_pieces)
UNIT(the_id_of_an_event_that_is_cut_off_is_not_kept)
UNIT(a_reader_that_has_enough_ends_the_stream)
UNIT(what_is_too_long_is_refused)
UNIT_END
