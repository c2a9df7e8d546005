/* memory.c - memory and clean-up that belong to one instance of an actor.
 *
 * Why.     A failure leaves a behaviour by a jump at any call. Memory from trp_alloc() and calls
 *          from trp_defer() are known to the runtime, which releases them at restart and stop;
 *          anything else would leak.
 * Must hold.
 *   memory-M1  Deferred calls run before the memory is freed, last registered first; the state
 *       still exists.
 *   memory-M2  A block is in the list of its actor from its allocation to its release.
 *   memory-M3  A deferred call that fails neither skips the others nor leaks memory.
 * Tests.   tests/unit/actor/memory_test.c
 * Sources. docs/architecture.md#failure.
 */
#include "actor/kernel/misuse.h"
#include "actor/life/life.h"

#include "base/alloc.h"
#include "base/assert.h"

_Static_assert(sizeof(trpi_block) == 16, "what follows a block's head is 16-aligned");

void *
trp_alloc(trp_ctx *ctx, size_t bytes)
{
    trpi_extra *extra;
    trpi_block *block = NULL;

    TRPI_USE(ctx);
    extra = trpi_extra_get(ctx->cell);
    if (extra != NULL && bytes <= SIZE_MAX - sizeof *block) {
        block = trpi_alloc(sizeof *block + bytes);
    }
    if (block == NULL) {
        trpi_life_throw(ctx, TRP_ENOMEM, "out of memory: %zu bytes", bytes);
    }
    block->next = extra->blocks;
    if (extra->blocks != NULL) {
        extra->blocks->prev = block;
    }
    extra->blocks = block;
    return block + 1;
}

void
trp_alloc_free(trp_ctx *ctx, void *memory)
{
    trpi_extra *extra = ctx->cell->extra;
    trpi_block *block;

    if (memory == NULL) {
        return;
    }
    trpi_assert(extra != NULL);
    block = (trpi_block *)memory - 1;
    if (block->next != NULL) {
        block->next->prev = block->prev;
    }
    if (block->prev != NULL) {
        block->prev->next = block->next;
    } else {
        /* memory-M2: a block of another actor, or freed twice */
        trpi_assert(extra->blocks == block);
        extra->blocks = block->next;
    }
    trpi_free(block);
}

trp_err
trp_defer(trp_ctx *ctx, void (*fn)(void *arg), void *arg)
{
    trpi_extra *extra;
    trpi_deferred *deferred;

    TRPI_USE(ctx);
    if (fn == NULL) {
        return TRP_EINVAL;
    }
    extra = trpi_extra_get(ctx->cell);
    deferred = extra == NULL ? NULL : trpi_alloc(sizeof *deferred);
    if (deferred == NULL) {
        return TRP_ENOMEM;
    }
    deferred->fn = fn;
    deferred->arg = arg;
    deferred->next = extra->deferred;
    extra->deferred = deferred;
    return TRP_OK;
}

static trp_err
call_deferred(trp_ctx *ctx, void *arg)
{
    const trpi_deferred *deferred = arg;

    (void)ctx;
    deferred->fn(deferred->arg);
    return TRP_OK;
}

void
trpi_memory_drop(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;

    while (extra->deferred != NULL) { /* memory-M1 */
        trpi_deferred *deferred = extra->deferred;

        extra->deferred = deferred->next;
        if (trpi_run_guarded(ctx, call_deferred, deferred) != TRP_OK) { /* memory-M3 */
            char path[TRP_PATH_BYTES_MAX + 1];

            trpi_path_local(ctx->system, trpi_cell_ref(cell), path, sizeof path);
            trp_system_log(ctx->system, TRP_LOG_ERROR, path,
                           "a deferred call failed: %s; the others go on", ctx->failure.reason);
        }
        trpi_free(deferred);
    }
    while (extra->blocks != NULL) {
        trpi_block *block = extra->blocks;

        extra->blocks = block->next;
        trpi_free(block);
    }
}
