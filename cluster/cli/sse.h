/* sse.h - takes a stream of server-sent events apart, in pieces of any size. Pure.
 *
 * Must hold.
 *   sse-S1  An event is given when it is whole, and its id is kept then and no earlier: a reader
 *       that comes back with the id misses nothing.                          (line_take)
 * Limits.  TRPI_SSE_BYTES_MAX of one line, and of the data of one event.
 * Tests.   tests/unit/cli/sse_test.c
 * Sources. HTML, server-sent events: 9.2.5 and 9.2.6.
 */
#ifndef TRPI_CLI_SSE_H
#define TRPI_CLI_SSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define TRPI_SSE_BYTES_MAX (1u << 20)
#define TRPI_SSE_NAME_BYTES 64u /* of a type or an id, with its NUL; what is longer is no event */

typedef struct trpi_sse {
    char id[TRPI_SSE_NAME_BYTES]; /* of the last event that was whole; "": none had one */
    uint32_t retry_ms;            /* before the reader comes back; 0: the stream has not said */
    /* what is being read */
    char type[TRPI_SSE_NAME_BYTES], next_id[TRPI_SSE_NAME_BYTES];
    trpi_buffer line, data;
    bool after_cr, has_id, too_long;
} trpi_sse;

/* Called with each event; type "": it has none. false: no more. */
typedef bool (*trpi_sse_fn)(void *arg, const char *type, const char *data);

/* Take bytes of the stream. Errors: TRP_ECANCELED (fn has said so), TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_sse_take(trpi_sse *sse, const char *bytes, size_t count, trpi_sse_fn fn, void *arg);
/* Forget what is not whole, before the stream begins anew. The id and retry_ms stay. */
void trpi_sse_again(trpi_sse *sse);
void trpi_sse_fini(trpi_sse *sse);

#endif
