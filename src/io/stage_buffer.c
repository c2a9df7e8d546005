/* stage_buffer.c - the document's back-pressure buffer, and the stage that only ticks.
 *
 * Why.     A connection takes one write at a time. A program that writes as it likes needs a buffer
 *          with a bound, and a word when it grows and when it is small again.
 * Must hold.
 *   stage-buffer-F1  At most one write is below; what waits is passed down as one, in order.
 *   stage-buffer-F2  bytes = those below and those that wait, at most bytes_max.
 *   stage-buffer-F3  high and low alternate, high first: high when bytes rise above high_bytes, low
 *       when they have fallen to low_bytes.
 *   stage-buffer-F4  A close goes down behind the last byte; nothing is taken after it.
 * Tests.   tests/unit/io/stages_test.c
 * Sources. PIPE-13 (BackpressureBuffer).
 */
#include <stdbool.h>

#include <troupe/pipeline.h>

#include "base/assert.h"
#include "base/sized.h"

typedef struct buffer {
    uint32_t low, high, max;
    bool aborts;
    bool is_high;   /* stage-buffer-F3 */
    bool is_closed; /* by a command, or by an abort */
    bool owes_close;
    uint64_t below; /* bytes of the write that is below; 0: none */
    trp_bytes waiting;
} buffer;

static trp_err
buffer_open(trp_port *port, void *state, const void *options)
{
    trp_buffer_options own = TRP_BUFFER_OPTIONS_INIT;
    buffer *b = state;

    (void)port;
    if (!TRPI_SIZED_COPY((const trp_buffer_options *)options, &own, aborts) || own.aborts > 1) {
        return TRP_EINVAL;
    }
    b->low = own.low_bytes != 0 ? own.low_bytes : TRP_BUFFER_LOW_DEFAULT;
    b->high = own.high_bytes != 0 ? own.high_bytes : TRP_BUFFER_HIGH_DEFAULT;
    b->max = own.bytes_max != 0 ? own.bytes_max : TRP_BUFFER_BYTES_DEFAULT;
    b->aborts = own.aborts != 0;
    return b->low <= b->high && b->high <= b->max && b->max <= TRP_BYTES_MAX ? TRP_OK : TRP_EINVAL;
}

static void
buffer_close(void *state)
{
    trp_bytes_unref(&((buffer *)state)->waiting);
}

static uint64_t
bytes_of(const buffer *b)
{
    return b->below + trp_bytes_length(b->waiting);
}

static trp_err
tell_up(trp_port *port, const buffer *b, const trp_item_type *type)
{
    trp_item item = trp_item_of(type);

    item.as.number = bytes_of(b);
    return trp_port_emit_event(port, &item);
}

/* Pass down what waits: stage-buffer-F1. */
static trp_err
pass_down(trp_port *port, buffer *b)
{
    trp_item out;

    if (b->below > 0 || trp_bytes_length(b->waiting) == 0) {
        return TRP_OK;
    }
    out = trp_item_of_bytes(b->waiting);
    b->below = trp_bytes_length(b->waiting);
    b->waiting = TRP_BYTES_EMPTY;
    return trp_port_emit_command(port, &out);
}

static trp_err
close_down(trp_port *port, buffer *b)
{
    trp_item out = trp_item_of(&trp_item_close);

    if (!b->owes_close || bytes_of(b) > 0) {
        return TRP_OK; /* stage-buffer-F4 */
    }
    b->owes_close = false;
    return trp_port_emit_command(port, &out);
}

static trp_err
buffer_overflow(trp_port *port, buffer *b, size_t more)
{
    trp_item out = trp_item_of(&trp_item_abort);

    if (!b->aborts) {
        return trp_port_fail(port, TRP_EAGAIN, "%zu bytes more than the buffer of %u can hold",
                             more - (size_t)(b->max - bytes_of(b)), b->max);
    }
    trp_bytes_unref(&b->waiting);
    b->is_closed = true;
    return trp_port_emit_command(port, &out);
}

static trp_err
write_take(trp_port *port, buffer *b, trp_item *command)
{
    size_t more = trp_bytes_length(command->as.bytes);
    trp_err err;

    if (b->is_closed) {
        return trp_port_fail(port, TRP_ECLOSED, "a write after the connection was closed");
    }
    if (more > b->max - bytes_of(b)) {
        return buffer_overflow(port, b, more); /* stage-buffer-F2 */
    }
    err = trp_bytes_append(&b->waiting, command->as.bytes);
    if (err != TRP_OK) {
        return err;
    }
    trp_item_clear(command);
    err = pass_down(port, b);
    if (err == TRP_OK && !b->is_high && bytes_of(b) > b->high) {
        b->is_high = true;
        err = tell_up(port, b, &trp_item_high);
    }
    return err;
}

static trp_err
buffer_command(trp_port *port, void *state, trp_item *command)
{
    buffer *b = state;

    if (command->type == &trp_item_bytes) {
        return write_take(port, b, command);
    }
    if (command->type == &trp_item_close) {
        b->owes_close = !b->is_closed;
        b->is_closed = true;
        return close_down(port, b);
    }
    if (command->type == &trp_item_abort) {
        trp_bytes_unref(&b->waiting);
        b->is_closed = true;
        b->owes_close = false;
    }
    return trp_port_emit_command(port, command);
}

static trp_err
buffer_event(trp_port *port, void *state, trp_item *event)
{
    buffer *b = state;
    trp_err err;

    if (event->type != &trp_item_written) {
        return trp_port_emit_event(port, event);
    }
    if (event->as.number > b->below) {
        return trp_port_fail(port, TRP_EPROTO, "more bytes were written than there were");
    }
    b->below -= event->as.number;
    err = pass_down(port, b);
    if (err == TRP_OK && b->is_high && bytes_of(b) <= b->low) {
        b->is_high = false;
        err = tell_up(port, b, &trp_item_low);
    }
    return err == TRP_OK ? close_down(port, b) : err;
}

const trp_stage trp_buffer_stage = { .size = sizeof(trp_stage),
                                     .name = "buffer",
                                     .state_bytes = sizeof(buffer),
                                     .open = buffer_open,
                                     .close = buffer_close,
                                     .command = buffer_command,
                                     .event = buffer_event };

/* ---- ticks ----------------------------------------------------------------------------------- */

static trp_err
ticks_open(trp_port *port, void *state, const void *options)
{
    trp_ticks_options own = TRP_TICKS_OPTIONS_INIT;

    (void)state;
    if (!TRPI_SIZED_COPY((const trp_ticks_options *)options, &own, zero) || own.interval_ms == 0 ||
        own.zero != 0) {
        return TRP_EINVAL;
    }
    trp_port_tick_every(port, own.interval_ms);
    return TRP_OK;
}

const trp_stage trp_ticks_stage = { .size = sizeof(trp_stage),
                                    .name = "ticks",
                                    .open = ticks_open };
