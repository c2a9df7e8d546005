/* cells.h - private to the kernel: the cell table's fields, for lookups in line. */
#ifndef TRPI_ACTOR_KERNEL_CELLS_H
#define TRPI_ACTOR_KERNEL_CELLS_H

#include <pthread.h>

#include "actor/kernel/cell.h"
#include "actor/kernel/msg.h"
#include "base/atomics.h"

/* Slot s is at place s + TRPI_PLACE_FIRST of the directory: the first slab is the short end of a
 * slab of full size, so that a lookup has no special case. */
#define TRPI_PLACE_FIRST (TRPI_SLAB_CELLS - TRPI_SLAB_FIRST_CELLS)

#define TRPI_CELLS_CACHING_MIN 1000000u

struct trpi_cells {
    uint32_t slabs_max;
    uint32_t cells_max;
    uint64_t generation_key;
    bool caching; /* workers cache free slots; not with a low limit, where others would lack them */
    _Atomic uint32_t used; /* slots 1 .. used were made; written under the lock */
    /* directory: the address of place 0 of the slab, 0: none yet. Release; pairs with acquire of
     * lookups. */
    _Atomic uintptr_t *slabs;
    _Alignas(TRPI_CACHE_LINE) pthread_mutex_t lock; /* the free list, growth */
    uint32_t free_first, free_last;                 /* FIFO through next_sibling */
    uint32_t free_count;
};

/* All threads have ended: drop cells that wait for an answer (promises, services). Their drop
 * functions may still tell: the generations of these cells have ended. */
void trpi_cells_drop(trpi_cells *cells);
/* All threads have ended: free the messages left in mailboxes. */
void trpi_cells_drain(trp_system *system, trpi_msg_cache *cache);

static inline trpi_cell *
trpi_cells_at(const trpi_cells *cells, uint32_t slot)
{
    uint64_t place = (uint64_t)slot + TRPI_PLACE_FIRST;
    uint64_t slab = place >> TRPI_SLAB_SHIFT;
    uintptr_t base;

    if (__builtin_expect(slab >= cells->slabs_max, 0)) {
        return NULL;
    }
    base = atomic_load_explicit(&cells->slabs[slab], memory_order_acquire);
    if (__builtin_expect(base == 0, 0)) {
        return NULL;
    }
    base += (place & (TRPI_SLAB_CELLS - 1u)) * sizeof(trpi_cell);
    if (base == 0) {
        __builtin_unreachable(); /* so that the caller's test for NULL is dropped */
    }
    return (trpi_cell *)base;
}

#endif
