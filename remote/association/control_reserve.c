/* control_reserve.c - chunks of blocks, and the stack of those that came back.
 *
 * Cost.   A chunk's memory is touched when a block of it is used the first time, and blocks that
 *         came back last are used first: what lanes never need stays with the kernel.
 * Tests.  tests/unit/remote/control_scan_test.c
 */
#include "remote/association/control_reserve.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

enum { CHUNK_BLOCKS = TRPI_CONTROL_COMMON };

typedef struct chunk {
    struct chunk *next; /* before it was made */
    struct chunk *fresh_next;
    uint32_t used; /* by the thread */
    trpi_control_block blocks[CHUNK_BLOCKS];
} chunk;

struct trpi_control_reserve {
    pthread_mutex_t lock; /* guards the next three */
    uint32_t lanes, chunks;
    chunk *all;
    _Atomic(chunk *) fresh;             /* that the thread has not seen; release */
    chunk *present;                     /* the thread's: chunks with unused blocks */
    _Atomic(trpi_control_block *) back; /* release */
    atomic_uint in_use;                 /* blocks */
};

trpi_control_reserve *
trpi_control_reserve_new(void)
{
    trpi_control_reserve *reserve = trpi_alloc(sizeof *reserve);
    if (reserve != NULL) {
        pthread_mutex_init(&reserve->lock, NULL);
    }
    return reserve;
}

void
trpi_control_reserve_free(trpi_control_reserve *reserve)
{
    if (reserve == NULL) {
        return;
    }
    while (reserve->all != NULL) {
        chunk *gone = reserve->all;
        reserve->all = gone->next;
        trpi_free(gone);
    }
    trpi_mutex_destroy(&reserve->lock);
    trpi_free(reserve);
}

static trp_err
chunk_add(trpi_control_reserve *reserve)
{
    chunk *added = trpi_realloc(NULL, sizeof *added);
    if (added == NULL) {
        return TRP_ENOMEM;
    }
    added->used = 0;
    added->next = reserve->all;
    reserve->all = added;
    reserve->chunks++;
    added->fresh_next = atomic_load_explicit(&reserve->fresh, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&reserve->fresh, &added->fresh_next, added,
                                                  memory_order_release, memory_order_relaxed)) {
    }
    return TRP_OK;
}

trp_err
trpi_control_reserve_join(trpi_control_reserve *reserve)
{
    trp_err err = TRP_OK;
    pthread_mutex_lock(&reserve->lock);
    uint64_t blocks = TRPI_CONTROL_COMMON + (reserve->lanes + 1ull) * TRPI_CONTROL_SHARE;
    while (err == TRP_OK && (uint64_t)reserve->chunks * CHUNK_BLOCKS < blocks) {
        err = chunk_add(reserve);
    }
    reserve->lanes += err == TRP_OK;
    pthread_mutex_unlock(&reserve->lock);
    return err;
}

void
trpi_control_reserve_leave(trpi_control_reserve *reserve)
{
    pthread_mutex_lock(&reserve->lock);
    trpi_assert(reserve->lanes > 0);
    reserve->lanes--;
    pthread_mutex_unlock(&reserve->lock);
}

/* A block that was never used; NULL: there is none. */
static trpi_control_block *
unused_take(trpi_control_reserve *reserve)
{
    if (reserve->present == NULL) {
        reserve->present = atomic_exchange_explicit(&reserve->fresh, NULL, memory_order_acquire);
    }
    chunk *of = reserve->present;
    if (of == NULL) {
        return NULL;
    }
    trpi_control_block *block = &of->blocks[of->used++];
    if (of->used == CHUNK_BLOCKS) {
        reserve->present = of->fresh_next;
    }
    return block;
}

trpi_control_block *
trpi_control_block_take(trpi_control_reserve *reserve)
{
    /* acquire: pairs with the giver, who wrote next */
    trpi_control_block *block = atomic_load_explicit(&reserve->back, memory_order_acquire);
    while (block != NULL && !atomic_compare_exchange_weak_explicit(
                                &reserve->back, &block, block->next, /* control-reserve-R1 */
                                memory_order_acquire, memory_order_acquire)) {
    }
    block = block != NULL ? block : unused_take(reserve);
    if (block != NULL) {
        block->count = 0;
        atomic_fetch_add_explicit(&reserve->in_use, 1, memory_order_relaxed);
    }
    return block;
}

void
trpi_control_block_give(trpi_control_reserve *reserve, trpi_control_block *block)
{
    trpi_control_block *first = atomic_load_explicit(&reserve->back, memory_order_relaxed);
    do {
        block->next = first;
        /* release: pairs with trpi_control_block_take() */
    } while (!atomic_compare_exchange_weak_explicit(&reserve->back, &first, block,
                                                    memory_order_release, memory_order_relaxed));
    atomic_fetch_sub_explicit(&reserve->in_use, 1, memory_order_relaxed);
}

bool
trpi_control_may_read(const trpi_control_reserve *reserve, uint32_t waiting)
{
    return waiting == 0 || /* control-reserve-R2 */
           atomic_load_explicit(&reserve->in_use, memory_order_relaxed) + TRPI_CONTROL_SHARE <=
               TRPI_CONTROL_COMMON;
}
