/* cell.c - the cell table: growth, free slots, taking a slot and giving it back.
 *
 * Why.     A stale reference must always lead to a cell, whose generation shows that it is stale:
 *          memory of cells is never returned while the system lives, and a slot is reused only
 *          with another generation.
 * States.  free (generation even, life FREE, token free or held by a thread that drains it)
 *            --acquire--> STARTING, token ours --publish--> alive (generation odd)
 *            --ended--> draining (even again) --release by the parent's runner--> free
 * Must hold.
 *   cell-C1  A slot is in at most one free list; it is put there once per use: by release, or by
 *       abandon.
 *   cell-C2  Only the holder of the token changes line B; a free slot whose token is held by the
 *       runner of a late message is skipped, not waited for.
 *   cell-C3  A generation is used once: it begins in the lower half, and when it has wrapped to 0
 *       the slot is not used any more.
 *   cell-C4  The first generations of slots are independent: an untrusted holder of one ref cannot
 *       derive others from it.
 * Threads. cells->lock guards the free list and growth; a worker caches up to TRPI_SLOTS_CACHED
 *          free slots (none where actors-max is below TRPI_CELLS_CACHING_MIN: the limit is exact
 *          then). From its cache it takes the slot that was freed last, which is still in the
 *          processor's cache; the shared free list is FIFO. A slot that was busy goes to the end,
 *          so that the next acquire does not meet it again.
 * Tests.   tests/unit/actor/cell_test.c, tests/stress/churn_test.c
 */
#include "actor/kernel/cells.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/stats.h"
#include "actor/kernel/schedule.h"
#include "actor/kernel/run.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/hash.h"
#include "base/mutex.h"

#define SLOTS_MOVED 64u /* between a worker's cache and the free list, at a time */
#define SLOTS_AHEAD 1u  /* prefetch the slot this far ahead: spawns come in series */
#define BUSY_MAX 64u    /* slots passed over by one acquire before it takes fresh ones */

trp_err
trpi_cells_new(uint32_t cells_max, uint64_t generation_key, trpi_cells **ret_cells)
{
    trpi_cells *cells = trpi_alloc_aligned(64, sizeof *cells);

    trpi_assert(cells_max > 0 && cells_max <= TRPI_CELLS_MAX);
    if (cells == NULL) {
        return TRP_ENOMEM;
    }
    cells->slabs_max = (uint32_t)(((uint64_t)cells_max + TRPI_PLACE_FIRST) / TRPI_SLAB_CELLS + 1);
    cells->cells_max = cells_max;
    cells->generation_key = generation_key;
    cells->caching = cells_max >= TRPI_CELLS_CACHING_MIN;
    cells->slabs = trpi_alloc(cells->slabs_max * sizeof *cells->slabs);
    if (cells->slabs == NULL) {
        trpi_free(cells);
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&cells->lock, NULL);
    *ret_cells = cells;
    return TRP_OK;
}

/* Return the start of a slab's memory; the first slab is short. */
static void *
slab_memory(uint32_t slab, uintptr_t base)
{
    return (void *)(slab == 0 ? base + TRPI_PLACE_FIRST * sizeof(trpi_cell) : base);
}

void
trpi_cells_drop(trpi_cells *cells)
{
    /* read `used` each time: drop functions may acquire slots, which are never published */
    for (uint32_t slot = 1; slot <= atomic_load_explicit(&cells->used, RELAXED); slot++) {
        trpi_cell *cell = trpi_cells_at(cells, slot);

        if (cell->ops != NULL && cell->ops->drop != NULL) {
            atomic_store_explicit(&cell->generation, cell->generation_run + 1, RELAXED);
            atomic_store_explicit(&cell->kind, TRPI_KIND_NONE, RELAXED);
            cell->ops->drop(cell);
            trpi_cell_ops_set(cell, NULL);
        }
    }
}

/* Free the messages that late senders left in a mailbox when the threads ended. */
static void
cell_drain(trp_system *system, trpi_cell *cell, trpi_msg_cache *cache)
{
    trpi_sysmsg *sysmsg = trpi_mailbox_take_system(cell);
    trp_msg *msg, *done;

    while (sysmsg != NULL) {
        trpi_sysmsg *next = sysmsg->next;

        system->hooks->order_drop(system, sysmsg);
        trpi_block_free(cache, sysmsg, sizeof *sysmsg);
        sysmsg = next;
    }
    while (trpi_mailbox_take(cell, &msg, &done) == TRPI_TAKE_MSG) {
        if (done != NULL) {
            trpi_msg_free(cache, done);
        }
        if (msg->priv_type == TRPI_TYPE_MARK) {
            system->hooks->mark_reached(msg); /* marks-K1 */
        }
    }
    if (cell->tail != trpi_cell_stub(cell)) {
        trpi_msg_free(cache, cell->tail);
        trpi_mailbox_init(cell);
    }
}

void
trpi_cells_drain(trp_system *system, trpi_msg_cache *cache)
{
    trpi_cells *cells = system->cells;
    uint32_t used = atomic_load_explicit(&cells->used, RELAXED);

    for (uint32_t slot = 1; slot <= used; slot++) {
        cell_drain(system, trpi_cells_at(cells, slot), cache);
    }
}

void
trpi_cells_free(trpi_cells *cells)
{
    if (cells == NULL) {
        return;
    }
    for (uint32_t slab = 0; slab < cells->slabs_max; slab++) {
        uintptr_t base = atomic_load_explicit(&cells->slabs[slab], RELAXED);

        if (base == 0) {
            break; /* slabs are made in order */
        }
        trpi_free(slab_memory(slab, base));
    }
    trpi_mutex_destroy(&cells->lock);
    trpi_free((void *)cells->slabs);
    trpi_free(cells);
}

trpi_cell *
trpi_cells_find(trpi_cells *cells, uint32_t slot)
{
    return slot != 0 ? trpi_cells_at(cells, slot) : NULL;
}

trpi_cell *
trpi_cell_peek(trp_ctx *ctx, trp_ref ref)
{
    trpi_cell *cell = ref.node == TRPI_NODE_SELF ? trpi_cells_find(ctx->cells, ref.slot) : NULL;

    if (cell == NULL || (ref.generation & 1) == 0 ||
        /* acquire: pairs with publish; kind, parent and name of this incarnation are written */
        atomic_load_explicit(&cell->generation, memory_order_acquire) != ref.generation) {
        return NULL;
    }
    return cell;
}

/* cell-C3, cell-C4: the first generations of slots 2 * pair and 2 * pair + 1, both from one
 * hash. */
static uint64_t
first_generations(const trpi_cells *cells, uint32_t pair)
{
    return trpi_hash_keyed(cells->generation_key, 0, pair) & 0x7ffffffe7ffffffeu;
}

/* Under the lock. */
static trp_err
slab_make(trpi_cells *cells, uint32_t slab)
{
    uint32_t count = slab == 0 ? TRPI_SLAB_FIRST_CELLS : TRPI_SLAB_CELLS;
    uint32_t slot = slab == 0 ? 0 : slab * TRPI_SLAB_CELLS - TRPI_PLACE_FIRST;
    trpi_cell *memory = trpi_alloc_aligned(128, count * sizeof *memory);
    uintptr_t base = (uintptr_t)memory;

    if (memory == NULL) {
        return TRP_ENOMEM;
    }
    uint64_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        first = (i & 1) == 0 ? first_generations(cells, (slot + i) / 2) : first >> 32;
        memory[i].task.id = slot + i;
        memory[i].generation_run = (uint32_t)first;
        atomic_store_explicit(&memory[i].generation, (uint32_t)first, RELAXED);
        trpi_mailbox_init(&memory[i]);
    }
    if (slab == 0) {
        base -= TRPI_PLACE_FIRST * sizeof *memory;
    }
    atomic_store_explicit(&cells->slabs[slab], base, memory_order_release);
    return TRP_OK;
}

/* ---- free slots ------------------------------------------------------------------------------ */

/* Under the lock. */
static void
free_list_push(trpi_cells *cells, uint32_t slot)
{
    trpi_cell *cell = trpi_cells_at(cells, slot);

    cell->next_sibling = 0; /* the parent's runner, which owns the links, released the slot */
    if (cells->free_last != 0) {
        trpi_cells_at(cells, cells->free_last)->next_sibling = slot;
    } else {
        cells->free_first = slot;
    }
    cells->free_last = slot;
    cells->free_count++;
}

/* Take up to `max` free slots, else unused ones (fresh: only these). Under the lock. */
static trp_err
slots_get(trpi_cells *cells, bool fresh, uint32_t max, uint32_t *slots, uint32_t *ret_count)
{
    uint32_t count = 0;
    uint32_t used = atomic_load_explicit(&cells->used, RELAXED);

    while (!fresh && count < max && cells->free_first != 0) {
        slots[count++] = cells->free_first;
        cells->free_first = trpi_cells_at(cells, cells->free_first)->next_sibling;
        cells->free_count--;
        if (cells->free_first == 0) {
            cells->free_last = 0;
        }
    }
    if (count == 0) {
        if (used >= cells->cells_max) {
            return TRP_ELIMIT;
        }
        while (count < max && used < cells->cells_max) {
            if (trpi_cells_at(cells, used + 1) == NULL &&
                slab_make(cells, (used + 1 + TRPI_PLACE_FIRST) / TRPI_SLAB_CELLS) != TRP_OK) {
                break;
            }
            slots[count++] = ++used;
        }
        atomic_store_explicit(&cells->used, used, RELAXED);
    }
    if (count == 0) {
        return TRP_ENOMEM;
    }
    *ret_count = count;
    return TRP_OK;
}

static inline bool
is_caching(const trp_ctx *ctx)
{
    return ctx->worker != NULL && ctx->cells->caching;
}

static trp_err
slot_pop(trp_ctx *ctx, bool fresh, uint32_t *ret_slot)
{
    struct trpi_slot_list *cache = &ctx->slots;
    trpi_cells *cells = ctx->cells;
    uint32_t slots[SLOTS_MOVED];
    uint32_t count = 0;
    trp_err err;

    if (cache->count > 0 && !fresh) {
        *ret_slot = cache->slots[(cache->head + --cache->count) % TRPI_SLOTS_CACHED];
        if (cache->count > SLOTS_AHEAD) {
            uint32_t next = cache->head + cache->count - 1 - SLOTS_AHEAD;
            const trpi_cell *ahead = trpi_cells_at(cells, cache->slots[next % TRPI_SLOTS_CACHED]);

            __builtin_prefetch(&ahead->head, 1);
            __builtin_prefetch(&ahead->tail, 1);
        }
        return TRP_OK;
    }
    pthread_mutex_lock(&cells->lock);
    err = slots_get(cells, fresh, is_caching(ctx) && !fresh ? SLOTS_MOVED : 1, slots, &count);
    pthread_mutex_unlock(&cells->lock);
    if (err != TRP_OK) {
        return err;
    }
    *ret_slot = slots[0];
    for (uint32_t i = 1; i < count; i++) {
        cache->slots[(cache->head + cache->count++) % TRPI_SLOTS_CACHED] = slots[i];
    }
    return TRP_OK;
}

static void
slot_push(trp_ctx *ctx, uint32_t slot)
{
    struct trpi_slot_list *cache = &ctx->slots;

    if (is_caching(ctx) && cache->count < TRPI_SLOTS_CACHED) {
        cache->slots[(cache->head + cache->count++) % TRPI_SLOTS_CACHED] = slot;
        return;
    }
    pthread_mutex_lock(&ctx->cells->lock);
    free_list_push(ctx->cells, slot);
    for (uint32_t i = 0; is_caching(ctx) && i < SLOTS_MOVED; i++) {
        free_list_push(ctx->cells, cache->slots[cache->head++ % TRPI_SLOTS_CACHED]);
        cache->count--;
    }
    pthread_mutex_unlock(&ctx->cells->lock);
}

/* Put back a slot that is busy, behind the others. */
static void
slot_put_behind(trp_ctx *ctx, uint32_t slot)
{
    struct trpi_slot_list *cache = &ctx->slots;

    if (is_caching(ctx) && cache->count < TRPI_SLOTS_CACHED) {
        cache->slots[--cache->head % TRPI_SLOTS_CACHED] = slot;
        cache->count++;
        return;
    }
    slot_push(ctx, slot);
}

/* ---- acquire and release --------------------------------------------------------------------- */

/* cell-C2: claim the token of a free cell, unless a late message is being drained there. */
static bool
claim_free(trpi_cell *cell)
{
    uintptr_t idle = (uintptr_t)trpi_cell_stub(cell) | TRPI_TOKEN;

    /* acquire: pairs with the last runner's going idle */
    return atomic_compare_exchange_strong_explicit(
        &cell->head, &idle, (uintptr_t)trpi_cell_stub(cell), memory_order_acq_rel, RELAXED);
}

static void
cell_reset(trpi_cell *cell)
{
    trpi_assert(cell->life == TRPI_LIFE_FREE);
    trpi_assert((cell->generation_run & 1) == 0);
    trpi_assert(cell->extra == NULL);
    cell->generation_run++;
    cell->life = TRPI_LIFE_STARTING;
    cell->suspended = 0;
    cell->marks = 0;
    cell->dying = 0;
    cell->subscribed = 0;
    cell->processed = 0;
    cell->behaviour = NULL;
    cell->state = NULL;
    trpi_cell_ops_set(cell, NULL);
    __atomic_store_n(&cell->parent, 0, __ATOMIC_RELEASE); /* read by any thread: path-H1 */
    __atomic_store_n(&cell->name, 0, __ATOMIC_RELEASE);
    cell->first_child = 0;
    cell->next_sibling = 0;
    cell->prev_sibling = 0;
    __atomic_store_n(&cell->task.dispatch, TRPI_DISPATCH_POOL, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->task.number, 0, __ATOMIC_RELAXED); /* both: hints to others */
    atomic_store_explicit(&cell->task.home, 0, RELAXED);
    atomic_store_explicit(&cell->overloaded, 0, RELAXED);
}

trp_err
trpi_slot_acquire(trp_ctx *ctx, trpi_cell **ret_cell)
{
    uint32_t busy[BUSY_MAX];
    uint32_t busy_count = 0;
    trp_err err;
    uint32_t slot;

    for (;;) {
        trpi_cell *cell;

        err = slot_pop(ctx, busy_count == BUSY_MAX, &slot);
        if (err != TRP_OK) {
            break;
        }
        cell = trpi_cells_at(ctx->cells, slot);
        if (claim_free(cell)) {
            cell_reset(cell);
            *ret_cell = cell;
            break;
        }
        trpi_assert(busy_count < BUSY_MAX); /* a fresh slot is never busy */
        busy[busy_count++] = slot;
    }
    while (busy_count > 0) {
        slot_put_behind(ctx, busy[--busy_count]);
    }
    return err;
}

trp_ref
trpi_slot_ref(const trpi_cell *cell)
{
    return (trp_ref){ TRPI_NODE_SELF, cell->task.id, cell->generation_run, 0 };
}

void
trpi_slot_reveal(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind)
{
    atomic_store_explicit(&cell->kind, (uint8_t)kind,
                          RELAXED); /* ordered by generation's release */
    atomic_store_explicit(&cell->generation, cell->generation_run, memory_order_release);
    trpi_count(ctx, &ctx->stats->spawned, 1);
}

void
trpi_slot_publish(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind)
{
    trpi_slot_reveal(ctx, cell, kind);
    trpi_schedule(ctx, cell);
}

void
trpi_slot_publish_idle(trp_ctx *ctx, trpi_cell *cell, enum trpi_kind kind)
{
    cell->life = TRPI_LIFE_RUNNING;
    atomic_store_explicit(&cell->kind, (uint8_t)kind, RELAXED);
    atomic_store_explicit(&cell->generation, cell->generation_run, memory_order_release);
    trpi_run_release(ctx, cell);
}

void
trpi_slot_abandon(trp_ctx *ctx, trpi_cell *cell)
{
    uint32_t slot = trpi_cell_slot(cell);

    cell->life = TRPI_LIFE_FREE;
    cell->generation_run++; /* even again; no thread has seen the odd one */
    atomic_store_explicit(&cell->generation, cell->generation_run, memory_order_release);
    atomic_store_explicit(&cell->kind, TRPI_KIND_NONE, RELAXED);
    trpi_run_release(ctx, cell);
    trpi_slot_release(ctx, slot);
}

void
trpi_slot_release(trp_ctx *ctx, uint32_t slot)
{
    trpi_cell *cell = trpi_cells_at(ctx->cells, slot);
    uint32_t generation = atomic_load_explicit(&cell->generation, RELAXED);

    trpi_assert((generation & 1) == 0);
    if (generation == 0) { /* cell-C3: it wrapped around */
        return;
    }
    slot_push(ctx, slot);
}

void
trpi_run_release(trp_ctx *ctx, trpi_cell *cell)
{
    trp_msg *done;

    if (!trpi_mailbox_go_idle(cell, &done)) {
        trpi_schedule(ctx, cell);
        return;
    }
    if (done != NULL) {
        trpi_msg_free(ctx->cache, done);
    }
    if (atomic_load_explicit(&cell->sys_head, memory_order_seq_cst) != NULL &&
        trpi_mailbox_claim(cell)) {
        trpi_schedule(ctx, cell);
    }
}
