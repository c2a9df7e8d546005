/* look.c - hints about an actor that another thread runs.
 *
 * Tests.   tests/unit/pattern/router_test.c
 */
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/cells.h"
#include "actor/kernel/mailbox.h"
#include "actor/life/life.h"

/* Read fields of line B while the runner writes them: suspended and processed are an aligned byte
 * and word, read once (volatile), and old values do no harm. An atomic counter would cost the run
 * loop two instructions a message for a hint; so the thread sanitizer is switched off for these two
 * loads. */
__attribute__((no_sanitize("thread"))) static void
look_at(const trpi_cell *cell, trpi_look *ret_look)
{
    uintptr_t head = atomic_load_explicit(&cell->head, memory_order_relaxed);

    ret_look->busy = (head & TRPI_TOKEN) == 0;
    ret_look->empty =
        head == ((uintptr_t)trpi_cell_stub((trpi_cell *)(uintptr_t)cell) | TRPI_TOKEN);
    ret_look->suspended = *(const volatile uint8_t *)&cell->suspended != 0;
    ret_look->handled = *(const volatile uint64_t *)&cell->processed;
}

/* The behaviour is written before publication, and again by the next incarnation, perhaps during
 * this read. */
__attribute__((no_sanitize("thread"))) const trp_behaviour *
trpi_look_behaviour(const trpi_cell *cell, uint32_t generation)
{
    const trp_behaviour *behaviour;

    if (cell == NULL ||
        !trpi_kind_is_actor(atomic_load_explicit(&cell->kind, memory_order_relaxed))) {
        return NULL;
    }
    behaviour = *(const trp_behaviour *const volatile *)&cell->behaviour;
    /* acquire fence: the generation is read after the behaviour */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&cell->generation, memory_order_relaxed) == generation ? behaviour
                                                                                       : NULL;
}

void
trpi_actor_look(trp_ctx *ctx, trp_ref ref, trpi_look *ret_look)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, ref);

    *ret_look = (trpi_look){ .local = ref.node == TRPI_NODE_SELF, .alive = cell != NULL };
    if (cell != NULL &&
        atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_CHILD_PROXY) {
        ret_look->local = false; /* the mailbox of a proxy says nothing about that of its actor */
    } else if (cell != NULL) {
        const trpi_bounded_mailbox *mailbox = trpi_bounded_get(cell, ref.generation);

        look_at(cell, ret_look);
        if (mailbox != NULL) {
            ret_look->counted = true;
            ret_look->pending = trpi_bounded_waiting(mailbox);
        }
    }
}

uint32_t
trpi_actors_busy(trp_ctx *ctx, trp_ref *ret_refs, uint32_t max)
{
    const trpi_cells *cells = ctx->cells;
    uint32_t used = atomic_load_explicit(&cells->used, memory_order_relaxed), count = 0;

    for (uint32_t slot = 1; slot <= used && count < max; slot++) {
        const trpi_cell *cell = trpi_cells_at(cells, slot);
        trp_ref ref = { TRPI_NODE_SELF, slot, 0, 0 };
        trpi_look look;

        if (cell == NULL ||
            !trpi_kind_is_actor(atomic_load_explicit(&cell->kind, memory_order_relaxed))) {
            continue;
        }
        ref.generation = atomic_load_explicit(&cell->generation, memory_order_relaxed);
        trpi_actor_look(ctx, ref, &look); /* it also says whether the actor lives */
        if (look.local && look.alive && (!look.empty || look.pending > 0) && !look.suspended &&
            !trp_ref_equal(ref, ctx->self)) {
            ret_refs[count++] = ref;
        }
    }
    return count;
}
