/* fault_cut.h - cuts a byte stream of the wire into units, the preamble and then frames, which a
 * faulty network loses or delays as a whole. Pure. Bytes of another protocol are passed on as they
 * come.
 */
#ifndef TRPI_REMOTE_FAULT_CUT_H
#define TRPI_REMOTE_FAULT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define TRPI_FAULT_FRAME_BYTES_MAX 67108864 /* a longer one: another protocol */

enum trpi_fault_unit { TRPI_FAULT_PREAMBLE, TRPI_FAULT_FRAME, TRPI_FAULT_RAW };

typedef struct trpi_fault_cutter { /* zeroed at first */
    trpi_buffer rest;              /* of an incomplete unit */
    bool preamble_seen, raw;
} trpi_fault_cutter;

/* bytes are borrowed until return. */
typedef trp_err (*trpi_fault_unit_fn)(void *arg, enum trpi_fault_unit unit, const uint8_t *bytes,
                                      size_t count);

/* Errors: TRP_ENOMEM, and those of fn; after any error the stream is broken. */
trp_err trpi_fault_cutter_feed(trpi_fault_cutter *cutter, const uint8_t *bytes, size_t count,
                               trpi_fault_unit_fn fn, void *arg);
void trpi_fault_cutter_fini(trpi_fault_cutter *cutter);

#endif
