/* stage_length.c - frames with their length in front.
 *
 * Must hold.
 *   stage-length-L1  Nothing is kept of a length that is impossible: what is held is at most one
 *       frame, and the piece in which it began.
 *   stage-length-L2  A broken stream stays broken, since nobody knows where a frame begins.
 * Tests.   tests/unit/io/frames_test.c, tests/fuzz/frames_fuzz.c
 * Sources. PIPE-10.
 */
#include <stdbool.h>
#include <string.h>

#include <troupe/pipeline.h>

#include "base/sized.h"
#include "io/gather.h"

#define FIELD_BYTES_DEFAULT 4u
#define FIELD_BYTES_MAX 8u

typedef struct framer {
    trp_length_options options; /* checked, with the defaults filled in */
    trpi_gather gather;
    trp_err broken; /* stage-length-L2 */
} framer;

static bool
field_is_good(uint32_t bytes)
{
    return (bytes >= 1 && bytes <= 4) || bytes == FIELD_BYTES_MAX;
}

static trp_err
length_open(trp_port *port, void *state, const void *options)
{
    trp_length_options own = TRP_LENGTH_OPTIONS_INIT;
    framer *f = state;

    (void)port;
    if (!TRPI_SIZED_COPY((const trp_length_options *)options, &own, counts)) {
        return TRP_EINVAL;
    }
    own.bytes_max = own.bytes_max != 0 ? own.bytes_max : TRP_FRAME_BYTES_DEFAULT;
    own.field_bytes = own.field_bytes != 0 ? own.field_bytes : FIELD_BYTES_DEFAULT;
    own.order = own.order != 0 ? own.order : TRP_BIG_ENDIAN;
    if (!field_is_good(own.field_bytes) || (unsigned)own.order > TRP_LITTLE_ENDIAN ||
        (unsigned)own.counts > TRP_LENGTH_OF_PAYLOAD ||
        own.bytes_max > TRP_BYTES_MAX - FIELD_BYTES_MAX) {
        return TRP_EINVAL;
    }
    if (own.field_bytes < 4 && own.bytes_max >= 1u << (8 * own.field_bytes)) {
        own.bytes_max = (1u << (8 * own.field_bytes)) - 1; /* what the field can say */
    }
    f->options = own;
    return TRP_OK;
}

static void
length_close(void *state)
{
    trpi_gather_fini(&((framer *)state)->gather);
}

/* How many bytes does the length count besides the payload? */
static size_t
counted_field(const framer *f)
{
    return f->options.counts == TRP_LENGTH_OF_FRAME ? f->options.field_bytes : 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
field_write(const framer *f, uint64_t length, uint8_t *field)
{
    for (uint32_t i = 0; i < f->options.field_bytes; i++) {
        uint32_t low = f->options.order == TRP_BIG_ENDIAN ? f->options.field_bytes - 1 - i : i;

        field[i] = (uint8_t)(length >> (8 * low));
    }
}

/* Put the field in front: of a short payload by copying it, so that the frame is one piece. */
static trp_err
frame_make(const framer *f, trp_bytes payload, trp_bytes *ret_frame)
{
    size_t bytes = trp_bytes_length(payload);
    bool copies = bytes < TRP_BYTES_SHARED_MIN;
    trp_bytes frame;
    uint8_t *data;
    trp_err err = trp_bytes_new(f->options.field_bytes + (copies ? bytes : 0), &data, &frame);

    if (err != TRP_OK) {
        return err;
    }
    field_write(f, bytes + counted_field(f), data);
    if (copies) {
        (void)trp_bytes_copy_out(payload, 0, data + f->options.field_bytes, bytes);
    } else {
        err = trp_bytes_append(&frame, payload);
    }
    if (err != TRP_OK) {
        trp_bytes_unref(&frame);
        return err;
    }
    *ret_frame = frame;
    return TRP_OK;
}

static trp_err
length_command(trp_port *port, void *state, trp_item *command)
{
    const framer *f = state;
    trp_item out;
    size_t bytes;
    trp_err err;

    if (command->type != &trp_item_bytes) {
        return trp_port_emit_command(port, command);
    }
    bytes = trp_bytes_length(command->as.bytes) + counted_field(f);
    if (bytes > f->options.bytes_max) {
        return trp_port_fail(port, TRP_EMSGSIZE, "a frame of %zu bytes to send, at most %u", bytes,
                             f->options.bytes_max);
    }
    out = trp_item_of(&trp_item_bytes);
    err = frame_make(f, command->as.bytes, &out.as.bytes);
    return err == TRP_OK ? trp_port_emit_command(port, &out) : err;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Look at the length of the next frame. *ret_bytes: of the whole frame; 0: it has not come. */
static trp_err
frame_look(trp_port *port, const framer *f, size_t *ret_bytes)
{
    trp_bytes_reader in = trp_bytes_read(f->gather.held, f->options.order);
    uint64_t length = 0;

    *ret_bytes = 0;
    if (trp_bytes_get_part(&in, f->options.field_bytes, &length) != TRP_OK) {
        return TRP_OK;
    }
    if (length > f->options.bytes_max) {
        return trp_port_fail(port, TRP_EMSGSIZE, "a frame of %llu bytes has come, at most %u",
                             (unsigned long long)length, f->options.bytes_max);
    }
    if (length < counted_field(f)) {
        return trp_port_fail(port, TRP_EPROTO, "a length of %llu counts less than itself",
                             (unsigned long long)length);
    }
    length += f->options.field_bytes - counted_field(f);
    *ret_bytes = length <= trp_bytes_length(f->gather.held) ? (size_t)length : 0;
    return TRP_OK;
}

static trp_err
frames_emit(trp_port *port, framer *f)
{
    bool has_cut = false;
    size_t bytes;

    while (trp_bytes_length(f->gather.held) > 0) {
        trp_item out;
        trp_err err = frame_look(port, f, &bytes);

        if (err != TRP_OK) {
            f->broken = err;
            trpi_gather_fini(&f->gather); /* stage-length-L1 */
            return err;
        }
        if (bytes == 0) {
            if (has_cut) {
                trpi_gather_settle(&f->gather);
            }
            return TRP_OK;
        }
        out = trp_item_of_bytes(trp_bytes_slice(f->gather.held, f->options.field_bytes, bytes));
        trpi_gather_skip(&f->gather, bytes);
        has_cut = true;
        err = trp_port_emit_event(port, &out);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

static trp_err
length_event(trp_port *port, void *state, trp_item *event)
{
    framer *f = state;
    trp_err err;

    if (event->type != &trp_item_bytes) {
        if (event->type == &trp_item_end && trp_bytes_length(f->gather.held) > 0) {
            f->broken = TRP_EPROTO;
            trpi_gather_fini(&f->gather);
            return trp_port_fail(port, TRP_EPROTO, "the stream has ended inside a frame");
        }
        return trp_port_emit_event(port, event);
    }
    if (f->broken != TRP_OK) {
        return trp_port_fail(port, f->broken, "the stream is broken since an earlier frame");
    }
    err = trpi_gather_add(&f->gather, &event->as.bytes);
    return err == TRP_OK ? frames_emit(port, f) : err;
}

static uint32_t
length_holds(const void *state)
{
    return trp_bytes_length(((const framer *)state)->gather.held) > 0;
}

const trp_stage trp_length_stage = { .size = sizeof(trp_stage),
                                     .name = "length",
                                     .state_bytes = sizeof(framer),
                                     .open = length_open,
                                     .close = length_close,
                                     .command = length_command,
                                     .event = length_event,
                                     .holds = length_holds };
