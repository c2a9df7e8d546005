/* gather.c - see gather.h. */
#include "io/gather.h"

#include <string.h>

#define GATHER_SHARED_MIN 256u /* longer pieces are shared */
#define GATHER_REST_MAX 4096u  /* longer rests stay in their piece, of 64 KiB as a rule */
#define CHUNK_MIN 512u
#define CHUNK_MAX (64u << 10)

/* Let the chunk have room for some bytes more. */
static trp_err
chunk_reserve(trpi_gather *g, size_t more)
{
    size_t room = trp_bytes_length(g->chunk);
    trp_bytes fresh;
    uint8_t *data;
    trp_err err;

    if (room - g->used >= more) {
        return TRP_OK;
    }
    room = room == 0 ? CHUNK_MIN : 2 * room;
    err = trp_bytes_new(room < CHUNK_MAX ? room : CHUNK_MAX, &data, &fresh);
    if (err == TRP_OK) {
        trp_bytes_unref(&g->chunk);
        g->chunk = fresh;
        g->used = 0;
    }
    return err;
}

static trp_err
add_copied(trpi_gather *g, trp_bytes piece)
{
    size_t count = trp_bytes_length(piece);
    trp_err err = chunk_reserve(g, count);
    trp_bytes copy;

    if (err != TRP_OK) {
        return err;
    }
    /* nobody reads the chunk behind `used` yet */
    (void)trp_bytes_copy_out(piece, 0, (uint8_t *)(uintptr_t)trp_bytes_flat(g->chunk) + g->used,
                             count);
    copy = trp_bytes_slice(g->chunk, g->used, g->used + count);
    err = trp_bytes_append(&g->held, copy);
    if (err == TRP_OK) {
        g->used += (uint32_t)count;
    }
    trp_bytes_unref(&copy);
    return err;
}

trp_err
trpi_gather_add(trpi_gather *gather, trp_bytes *piece)
{
    size_t count = trp_bytes_length(*piece);
    trp_err err = TRP_OK;

    if (trp_bytes_length(gather->held) == 0) {
        gather->held = *piece;
        *piece = TRP_BYTES_EMPTY;
        return TRP_OK;
    }
    if (count > 0) {
        err = count < GATHER_SHARED_MIN ? add_copied(gather, *piece)
                                        : trp_bytes_append(&gather->held, *piece);
    }
    if (err == TRP_OK) {
        trp_bytes_unref(piece);
    }
    return err;
}

void
trpi_gather_skip(trpi_gather *gather, size_t count)
{
    trp_bytes_skip(&gather->held, count);
    if (trp_bytes_length(gather->held) == 0) { /* gather-G1 */
        trpi_gather_fini(gather);
    }
}

void
trpi_gather_settle(trpi_gather *gather)
{
    if (trp_bytes_length(gather->held) <= GATHER_REST_MAX &&
        trp_bytes_compact(&gather->held) != TRP_OK) {
        return; /* it keeps more memory than it needs */
    }
}

void
trpi_gather_fini(trpi_gather *gather)
{
    trp_bytes_unref(&gather->held);
    trp_bytes_unref(&gather->chunk);
    gather->used = 0;
}
