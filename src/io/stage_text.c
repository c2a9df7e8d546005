/* stage_text.c - text above, bytes below; both are UTF-8.
 *
 * Must hold.
 *   stage-text-X1  What is emitted as text is UTF-8 of whole characters.
 *   stage-text-X2  Of a stream at most three bytes wait: the beginning of one character.
 * Tests.   tests/unit/io/stages_test.c
 * Sources. PIPE-13 (StringByteStringAdapter).
 */
#include <stdbool.h>
#include <string.h>

#include <troupe/pipeline.h>

#include "base/sized.h"
#include "base/utf8.h"

typedef struct text_state {
    bool is_stream;
    trp_bytes held; /* stage-text-X2 */
} text_state;

static trp_err
text_open(trp_port *port, void *state, const void *options)
{
    trp_text_options own = TRP_TEXT_OPTIONS_INIT;
    text_state *t = state;

    (void)port;
    if (!TRPI_SIZED_COPY((const trp_text_options *)options, &own, zero) || own.is_stream > 1 ||
        own.zero != 0) {
        return TRP_EINVAL;
    }
    t->is_stream = own.is_stream != 0;
    return TRP_OK;
}

static void
text_close(void *state)
{
    trp_bytes_unref(&((text_state *)state)->held);
}

/* Can these bytes, which are no UTF-8, become a character when others come? */
static bool
is_beginning(const uint8_t *at, size_t count)
{
    uint8_t lead = at[0], low = 0x80, high = 0xbf;
    size_t whole = lead >= 0xc2 && lead <= 0xdf   ? 2
                   : lead >= 0xe0 && lead <= 0xef ? 3
                   : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                  : 0;

    if (count >= whole) {
        return false;
    }
    low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : low; /* RFC 3629, section 4 */
    high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : high;
    for (size_t i = 1; i < count; i++) {
        if (at[i] < low || at[i] > high) {
            return false;
        }
        low = 0x80;
        high = 0xbf;
    }
    return true;
}

/* Return how many of the bytes, in one piece, are text to be passed on; *ret_rest: how many behind
 * them wait for others. Errors: TRP_EDATA. */
static trp_err
text_check(trp_port *port, const text_state *t, trp_bytes bytes, size_t *ret_rest)
{
    size_t length = trp_bytes_length(bytes);
    const uint8_t *data = trp_bytes_flat(bytes);
    size_t valid = length > 0 ? trpi_utf8_valid(data, length) : 0;

    *ret_rest = length - valid;
    if (valid == length || (t->is_stream && is_beginning(data + valid, length - valid))) {
        return TRP_OK;
    }
    return trp_port_fail(port, TRP_EDATA, "byte %zu is not UTF-8", valid);
}

static trp_err
bytes_flatten(trp_bytes *bytes)
{
    return trp_bytes_length(*bytes) > 0 && trp_bytes_flat(*bytes) == NULL ? trp_bytes_compact(bytes)
                                                                          : TRP_OK;
}

static trp_err
text_command(trp_port *port, void *state, trp_item *command)
{
    static const text_state whole = { false, { NULL, NULL, 0, 0 } };
    size_t rest;
    trp_err err;

    (void)state;
    if (command->type != &trp_item_text) {
        return trp_port_emit_command(port, command);
    }
    err = bytes_flatten(&command->as.bytes);
    err = err == TRP_OK ? text_check(port, &whole, command->as.bytes, &rest) : err;
    if (err != TRP_OK) {
        return err;
    }
    command->type = &trp_item_bytes;
    return trp_port_emit_command(port, command);
}

static trp_err
text_event(trp_port *port, void *state, trp_item *event)
{
    text_state *t = state;
    size_t rest = 0;
    trp_err err;

    if (event->type == &trp_item_end && trp_bytes_length(t->held) > 0) {
        trp_bytes_unref(&t->held);
        return trp_port_fail(port, TRP_EDATA, "the stream has ended inside a character");
    }
    if (event->type != &trp_item_bytes) {
        return trp_port_emit_event(port, event);
    }
    if (trp_bytes_length(t->held) > 0) {
        err = trp_bytes_append(&t->held, event->as.bytes);
        if (err != TRP_OK) {
            return err;
        }
        trp_bytes_unref(&event->as.bytes);
        event->as.bytes = t->held;
        t->held = TRP_BYTES_EMPTY;
    }
    err = bytes_flatten(&event->as.bytes);
    err = err == TRP_OK ? text_check(port, t, event->as.bytes, &rest) : err;
    if (err != TRP_OK) {
        return err;
    }
    if (rest > 0) {
        trp_bytes text = trp_bytes_drop_right(event->as.bytes, rest);

        t->held = trp_bytes_take_right(event->as.bytes, rest);
        trp_bytes_unref(&event->as.bytes);
        event->as.bytes = text;
        err = trp_bytes_compact(&t->held); /* the piece that it came in may go */
        if (err != TRP_OK || trp_bytes_length(text) == 0) {
            return err;
        }
    }
    event->type = &trp_item_text;
    return trp_port_emit_event(port, event);
}

static uint32_t
text_holds(const void *state)
{
    return trp_bytes_length(((const text_state *)state)->held) > 0;
}

const trp_stage trp_text_stage = { .size = sizeof(trp_stage),
                                   .name = "text",
                                   .state_bytes = sizeof(text_state),
                                   .open = text_open,
                                   .close = text_close,
                                   .command = text_command,
                                   .event = text_event,
                                   .holds = text_holds };
