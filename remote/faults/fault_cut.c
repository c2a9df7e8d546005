/* fault_cut.c - see the header. */
#include "remote/faults/fault_cut.h"

#include "remote/wire/frame.h"

/* Return the length of the unit that begins at bytes; 0: it is not complete yet. */
static size_t
unit_bytes(trpi_fault_cutter *cutter, const uint8_t *bytes, size_t count,
           enum trpi_fault_unit *ret_unit)
{
    trpi_preamble preamble;
    trpi_frame frame;

    *ret_unit = TRPI_FAULT_RAW;
    if (cutter->raw) {
        return count;
    }
    if (!cutter->preamble_seen) {
        if (count < TRPI_PREAMBLE_BYTES) {
            return 0;
        }
        if (trpi_preamble_decode(bytes, &preamble) == TRP_EPROTO) {
            cutter->raw = true;
            return count;
        }
        cutter->preamble_seen = true;
        *ret_unit = TRPI_FAULT_PREAMBLE;
        return TRPI_PREAMBLE_BYTES;
    }
    if (count < TRPI_FRAME_HEADER_BYTES) {
        return 0;
    }
    trpi_frame_header_decode(bytes, &frame);
    if (frame.bytes > TRPI_FAULT_FRAME_BYTES_MAX) {
        cutter->raw = true;
        return count;
    }
    *ret_unit = TRPI_FAULT_FRAME;
    return count - TRPI_FRAME_HEADER_BYTES < frame.bytes ? 0
                                                         : TRPI_FRAME_HEADER_BYTES + frame.bytes;
}

trp_err
trpi_fault_cutter_feed(trpi_fault_cutter *cutter, const uint8_t *bytes, size_t count,
                       trpi_fault_unit_fn fn, void *arg)
{
    trp_err err =
        trpi_buffer_append(&cutter->rest, bytes, count, TRPI_BUFFER_NO_LIMIT /* a frame, a read */);
    size_t at = 0;

    while (err == TRP_OK && at < cutter->rest.count) {
        enum trpi_fault_unit unit;
        size_t n = unit_bytes(cutter, cutter->rest.data + at, cutter->rest.count - at, &unit);

        if (n == 0) {
            break;
        }
        err = fn(arg, unit, cutter->rest.data + at, n);
        at += n;
    }
    trpi_buffer_drop(&cutter->rest, at);
    return err;
}

void
trpi_fault_cutter_fini(trpi_fault_cutter *cutter)
{
    trpi_buffer_fini(&cutter->rest);
}
