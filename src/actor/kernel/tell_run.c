/* tell_run.c - telling several messages of one sender and type to one actor: those of a frame.
 *
 * Why.     The receiver is looked up once, and its mailbox takes all of them by one exchange.
 * Must hold. tell-H1 and tell-H3 (tell.c).
 * Tests.   tests/unit/actor/inbound_test.c
 */
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"
#include "actor/kernel/schedule.h"
#include "base/atomics.h"
#include "base/wire.h"

/* The cell of an actor that takes a whole run; NULL: its messages are told one by one. */
static trpi_cell *
run_target(const trp_ctx *ctx, trp_ref to, const trp_type *type)
{
    trpi_cell *cell =
        ctx->fast_path_node == TRPI_NODE_SELF && type->number != 0 && to.node == TRPI_NODE_SELF
            ? trpi_cells_at(ctx->cells, to.slot)
            : NULL;

    return cell != NULL && atomic_load_explicit(&cell->kind, RELAXED) < TRPI_KIND_ROUTER &&
                   atomic_load_explicit(&cell->generation, RELAXED) == to.generation
               ? cell
               : NULL;
}

/* As a tell of each: what this ctx has chained for the cell goes first (tell-H1). */
static void
run_push(trp_ctx *ctx, trpi_cell *cell, trp_msg *first, trp_msg *last)
{
    uint32_t index = trpi_cell_slot(cell) % TRPI_CHAINS;

    if (ctx->chains[index].cell == cell && (ctx->chains_open & 1ull << index) != 0) {
        trpi_chains_flush(ctx);
    }
    if (first != NULL && trpi_mailbox_push(cell, first, last)) {
        trpi_schedule(ctx, cell);
    }
}

/* Make a message of a run: header is that of all of them. NULL: no memory. */
static inline trp_msg *
run_msg_make(const trp_ctx *ctx, const trp_msg *header, const trp_type *type,
             const uint8_t *payload, size_t bytes)
{
    bool inside = bytes <= TRP_INLINE_PAYLOAD_MAX && !TRPI_LINES_CHECKED;
    uint32_t class_index = inside ? trpi_class_of(TRPI_MSG_HEADER_BYTES + bytes) : 0;
    trpi_magazine *magazine = ctx->cache->classes[class_index].current;
    trp_msg *msg;

    if (UNLIKELY(!inside || magazine == NULL || magazine->count == 0)) {
        return trpi_msg_make(ctx->cache,
                             trpi_ref_local(header->priv_to_slot, header->priv_to_generation),
                             trpi_msg_sender(header), type, payload, bytes);
    }
    msg = magazine->blocks[--magazine->count];
    *msg = *header;
    msg->priv_bytes = (uint16_t)bytes;
    memcpy((char *)msg + TRPI_MSG_HEADER_BYTES, payload, bytes);
    return msg;
}

/* Tell them one by one. */
static NOINLINE void
run_tell_each(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
              const uint8_t *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = trpi_get_u32(records);

        trpi_tell(ctx, to, sender, type, records + TRPI_RECORD_BYTES, bytes);
        records += TRPI_RECORD_BYTES + bytes;
    }
}

void
trpi_tell_run(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type,
              const uint8_t *records, uint32_t count)
{
    trpi_cell *cell = run_target(ctx, to, type);
    trp_msg header = { .priv_to_slot = to.slot, .priv_to_generation = to.generation };
    trp_msg *first = NULL, *last = NULL;

    if (UNLIKELY(cell == NULL)) {
        run_tell_each(ctx, to, sender, type, records, count);
        return;
    }
    trpi_msg_sender_set(&header, sender);
    header.priv_type = (uint16_t)type->number;
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = trpi_get_u32(records);
        trp_msg *msg = run_msg_make(ctx, &header, type, records + TRPI_RECORD_BYTES, bytes);

        if (UNLIKELY(msg == NULL)) { /* this tell reports it */
            run_push(ctx, cell, first, last);
            first = NULL;
            trpi_tell(ctx, to, sender, type, records + TRPI_RECORD_BYTES, bytes);
        } else if (first == NULL) {
            first = last = msg;
        } else {
            trpi_msg_next_set(last, msg, __ATOMIC_RELAXED); /* private until pushed */
            last = msg;
        }
        records += TRPI_RECORD_BYTES + bytes;
    }
    run_push(ctx, cell, first, last);
}
