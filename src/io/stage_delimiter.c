/* stage_delimiter.c - frames that end with a delimiter, and lines, whose ends are LF or CR LF.
 *
 * Must hold.
 *   stage-delimiter-E1  What a command would become at the reader is one frame, or several that
 *       each end with the delimiter: the same as what was written.
 *   stage-delimiter-E2  Bytes are looked at once: a search goes on where the last one ended.
 *   stage-delimiter-E3  Of a frame that is too long no more is kept than bytes_max, a delimiter
 *       and the piece in which that was found out.
 * Tests.   tests/unit/io/frames_test.c, tests/fuzz/frames_fuzz.c
 * Sources. PIPE-13.
 */
#include <stdbool.h>
#include <string.h>

#include <troupe/pipeline.h>

#include "base/sized.h"
#include "io/gather.h"

typedef struct cutter {
    uint8_t delimiter[TRP_DELIMITER_BYTES_MAX];
    uint32_t delimiter_bytes;
    uint32_t bytes_max; /* of a frame, without the delimiter */
    bool is_included, is_line, ends_crlf;
    trp_err broken;
    size_t searched; /* no delimiter begins before: stage-delimiter-E2 */
    trpi_gather gather;
} cutter;

static trp_err
delimiter_open(trp_port *port, void *state, const void *options)
{
    trp_delimiter_options own = TRP_DELIMITER_OPTIONS_INIT;
    cutter *c = state;

    (void)port;
    if (!TRPI_SIZED_COPY((const trp_delimiter_options *)options, &own, zero) || own.zero != 0) {
        return TRP_EINVAL;
    }
    if (own.delimiter == NULL) {
        own.delimiter = "\n";
        own.delimiter_bytes = 1;
    }
    own.bytes_max = own.bytes_max != 0 ? own.bytes_max : TRP_LINE_BYTES_DEFAULT;
    if (own.delimiter_bytes == 0 || own.delimiter_bytes > TRP_DELIMITER_BYTES_MAX ||
        own.is_included > 1 || own.bytes_max > TRP_BYTES_MAX - TRP_DELIMITER_BYTES_MAX) {
        return TRP_EINVAL;
    }
    memcpy(c->delimiter, own.delimiter, own.delimiter_bytes);
    c->delimiter_bytes = own.delimiter_bytes;
    c->bytes_max = own.bytes_max;
    c->is_included = own.is_included != 0;
    return TRP_OK;
}

static trp_err
line_open(trp_port *port, void *state, const void *options)
{
    trp_line_options own = TRP_LINE_OPTIONS_INIT;
    cutter *c = state;

    (void)port;
    if (!TRPI_SIZED_COPY((const trp_line_options *)options, &own, ends_crlf) || own.ends_crlf > 1 ||
        own.bytes_max > TRP_BYTES_MAX - TRP_DELIMITER_BYTES_MAX) {
        return TRP_EINVAL;
    }
    c->delimiter[0] = '\n';
    c->delimiter_bytes = 1;
    c->bytes_max = own.bytes_max != 0 ? own.bytes_max : TRP_LINE_BYTES_DEFAULT;
    c->is_line = true;
    c->ends_crlf = own.ends_crlf != 0;
    return TRP_OK;
}

static void
cutter_close(void *state)
{
    trpi_gather_fini(&((cutter *)state)->gather);
}

static bool
ends_in_cr(trp_bytes bytes)
{
    uint8_t last = 0;

    return trp_bytes_length(bytes) > 0 &&
           trp_bytes_copy_out(bytes, trp_bytes_length(bytes) - 1, &last, 1) == 1 && last == '\r';
}

/* ---- commands -------------------------------------------------------------------------------- */

static trp_err
too_long(trp_port *port, const cutter *c, size_t bytes)
{
    return trp_port_fail(port, TRP_EMSGSIZE, "a frame of %zu bytes to send, at most %u", bytes,
                         c->bytes_max);
}

/* stage-delimiter-E1 for frames with their delimiters: the last one ends the command. */
static trp_err
included_check(trp_port *port, const cutter *c, trp_bytes bytes)
{
    size_t length = trp_bytes_length(bytes), at = 0;

    do {
        size_t end = trp_bytes_find(bytes, at, c->delimiter, c->delimiter_bytes);

        if (end == TRP_BYTES_NOT_FOUND) {
            return trp_port_fail(port, TRP_EINVAL, "a frame to send has no delimiter at its end");
        }
        if (end - at > c->bytes_max) {
            return too_long(port, c, end - at);
        }
        at = end + c->delimiter_bytes;
    } while (at < length);
    return TRP_OK;
}

static trp_err
frame_end(trp_port *port, const cutter *c, trp_bytes *frame)
{
    static const uint8_t crlf[] = { '\r', '\n' };
    size_t length = trp_bytes_length(*frame);
    const uint8_t *end = c->ends_crlf ? crlf : c->delimiter;
    size_t end_bytes = c->ends_crlf ? sizeof crlf : c->delimiter_bytes;
    trp_bytes_writer out = TRP_BYTES_WRITER(TRP_BIG_ENDIAN);
    trp_bytes whole;
    trp_err err;

    if (length > c->bytes_max) {
        return too_long(port, c, length);
    }
    trp_bytes_put_bytes(&out, *frame);
    trp_bytes_put(&out, 1, end_bytes, end);
    err = trp_bytes_written(&out, &whole);
    if (err != TRP_OK) {
        return err;
    }
    /* the delimiter may begin in the frame and end in its own: "x;" and ";;" */
    if (trp_bytes_find(whole, 0, c->delimiter, c->delimiter_bytes) !=
            trp_bytes_length(whole) - c->delimiter_bytes ||
        (c->is_line && ends_in_cr(*frame))) {
        trp_bytes_unref(&whole);
        return trp_port_fail(port, TRP_EDATA, "a frame to send has %s inside",
                             c->is_line ? "the end of a line" : "the delimiter");
    }
    *frame = whole;
    return TRP_OK;
}

static trp_err
cutter_command(trp_port *port, void *state, trp_item *command)
{
    const cutter *c = state;
    trp_item out;
    trp_err err;

    if (command->type != &trp_item_bytes) {
        return trp_port_emit_command(port, command);
    }
    if (c->is_included) {
        err = included_check(port, c, command->as.bytes);
        return err == TRP_OK ? trp_port_emit_command(port, command) : err;
    }
    out = trp_item_of_bytes(command->as.bytes); /* borrowed, until it is ended */
    err = frame_end(port, c, &out.as.bytes);
    return err == TRP_OK ? trp_port_emit_command(port, &out) : err;
}

/* ---- events ---------------------------------------------------------------------------------- */

static trp_err
break_stream(trp_port *port, cutter *c)
{
    c->broken = TRP_EMSGSIZE;
    c->searched = 0;
    trpi_gather_fini(&c->gather);
    return trp_port_fail(port, TRP_EMSGSIZE, "a frame of more than %u bytes has come",
                         c->bytes_max);
}

/* Cut off the frame before a delimiter that stands here. */
static trp_err
frame_cut(trp_port *port, cutter *c, size_t end)
{
    trp_item out = trp_item_of_bytes(trp_bytes_take(c->gather.held, end));

    if (c->is_line && ends_in_cr(out.as.bytes)) {
        trp_bytes line = trp_bytes_drop_right(out.as.bytes, 1);

        trp_bytes_unref(&out.as.bytes);
        out.as.bytes = line;
    }
    if (trp_bytes_length(out.as.bytes) > c->bytes_max) {
        trp_item_clear(&out);
        return break_stream(port, c);
    }
    if (c->is_included) {
        trp_bytes_unref(&out.as.bytes);
        out.as.bytes = trp_bytes_take(c->gather.held, end + c->delimiter_bytes);
    }
    trpi_gather_skip(&c->gather, end + c->delimiter_bytes);
    c->searched = 0;
    return trp_port_emit_event(port, &out);
}

static trp_err
frames_cut(trp_port *port, cutter *c)
{
    bool has_cut = false;
    size_t left;

    for (;;) {
        trp_err err;
        size_t end = trp_bytes_find(c->gather.held, c->searched, c->delimiter, c->delimiter_bytes);

        if (end == TRP_BYTES_NOT_FOUND) {
            break;
        }
        err = frame_cut(port, c, end);
        if (err != TRP_OK) {
            return err;
        }
        has_cut = true;
    }
    left = trp_bytes_length(c->gather.held);
    c->searched = left >= c->delimiter_bytes ? left - (c->delimiter_bytes - 1) : 0;
    if (c->is_line && ends_in_cr(c->gather.held)) {
        left--;
    }
    if (left >= c->delimiter_bytes && left - (c->delimiter_bytes - 1) > c->bytes_max) {
        return break_stream(port, c); /* stage-delimiter-E3 */
    }
    if (has_cut) {
        trpi_gather_settle(&c->gather);
    }
    return TRP_OK;
}

static trp_err
cutter_event(trp_port *port, void *state, trp_item *event)
{
    cutter *c = state;
    trp_err err;

    if (event->type != &trp_item_bytes) {
        if (event->type == &trp_item_end && trp_bytes_length(c->gather.held) > 0) {
            c->broken = TRP_EPROTO;
            trpi_gather_fini(&c->gather);
            return trp_port_fail(port, TRP_EPROTO, "the stream has ended inside a frame");
        }
        return trp_port_emit_event(port, event);
    }
    if (c->broken != TRP_OK) {
        return trp_port_fail(port, c->broken, "the stream is broken since an earlier frame");
    }
    err = trpi_gather_add(&c->gather, &event->as.bytes);
    return err == TRP_OK ? frames_cut(port, c) : err;
}

static uint32_t
cutter_holds(const void *state)
{
    return trp_bytes_length(((const cutter *)state)->gather.held) > 0;
}

const trp_stage trp_delimiter_stage = { .size = sizeof(trp_stage),
                                        .name = "delimiter",
                                        .state_bytes = sizeof(cutter),
                                        .open = delimiter_open,
                                        .close = cutter_close,
                                        .command = cutter_command,
                                        .event = cutter_event,
                                        .holds = cutter_holds };

const trp_stage trp_line_stage = { .size = sizeof(trp_stage),
                                   .name = "line",
                                   .state_bytes = sizeof(cutter),
                                   .open = line_open,
                                   .close = cutter_close,
                                   .command = cutter_command,
                                   .event = cutter_event,
                                   .holds = cutter_holds };
