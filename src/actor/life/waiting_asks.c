/* waiting_asks.c - see waiting_asks.h.
 *
 * Why.     Two actors that wait for each other's answer look idle: no thread is held, and their
 *          asks end one by one in timeouts. The promise of an ask has both actors.
 * Shape.   cells of kind promise --copy by the kernel--> asker, asked, timer --> age
 * Must hold.
 *   waiting-asks-W1  A promise may be freed at any instant: it is copied by the kernel, which
 *       refuses what is not mapped, and counts only if the cell shows the same incarnation and
 *       state before and after. It does not change between its publication and its end.
 *       (promise_copy)
 * Cost.    None until a look: the promise has both actors, its timer knows since when. Then a load
 *          a cell, and a system call and the lock of the timers a promise.
 * Tests.   tests/unit/actor/waiting_asks_test.c
 * Sources. process_vm_readv(2)
 */
#include "actor/life/waiting_asks.h"

#include <sys/uio.h>
#include <unistd.h>

#include "actor/kernel/cells.h"
#include "actor/life/life.h"
#include "actor/life/promise.h"

#define CELLS_A_SLICE 16384u /* then the system is left for a moment */

typedef struct seen {
    uint32_t generation;
    const trpi_promise *promise; /* NULL: none */
} seen;

/* waiting-asks-W1; the state is a hint, as the fields in look.c. */
__attribute__((no_sanitize("thread"), noinline)) static seen
cell_see(const trpi_cell *cell)
{
    seen s = { atomic_load_explicit(&cell->generation, memory_order_acquire), NULL };

    if (atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_PROMISE &&
        (s.generation & 1u) != 0) {
        s.promise = *(void *const volatile *)&cell->state;
    }
    /* acquire fence: what is read next is not older */
    atomic_thread_fence(memory_order_acquire);
    return s;
}

/* By the kernel. */
static bool
memory_copy(const void *from, void *to, size_t bytes)
{
    struct iovec here = { to, bytes };
    struct iovec there = { (void *)(uintptr_t)from, bytes };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool
promise_copy(const trpi_cell *cell, trpi_promise *ret_promise, uint32_t *ret_generation)
{
    seen before = cell_see(cell);

    if (before.promise == NULL || !memory_copy(before.promise, ret_promise, sizeof *ret_promise)) {
        return false;
    }
    seen after = cell_see(cell);
    *ret_generation = before.generation;
    return after.promise == before.promise && after.generation == before.generation;
}

static bool
waiting_take(trp_system *system, const trpi_cell *cell, trpi_waiting_ask *ret)
{
    trpi_promise promise;
    uint32_t generation;
    uint64_t waited_ns;

    if (!promise_copy(cell, &promise, &generation) || promise.purpose == TRPI_FOR_REF ||
        trp_ref_is_none(promise.asker) || trp_ref_is_none(promise.asked) ||
        !trpi_timer_age(system->sched, promise.timer_id, &waited_ns)) {
        return false; /* the last: its time is over */
    }
    *ret = (trpi_waiting_ask){ trpi_ref_local(trpi_cell_slot(cell), generation), promise.asker,
                               promise.asked, waited_ns };
    return true;
}

bool
trpi_waiting_asks_seen(void)
{
    const int from = 1;
    int to = 0;

    return memory_copy(&from, &to, sizeof to) && to == 1;
}

uint32_t
trpi_system_waiting_asks(trp_system *system, trpi_waiting_ask *ret, uint32_t max)
{
    uint32_t count = 0, used, slot = 1;

    do {
        trp_ctx *ctx = trpi_enter(system);
        const trpi_cells *cells = ctx->cells;

        used = atomic_load_explicit(&cells->used, memory_order_relaxed);
        for (uint32_t i = 0; i < CELLS_A_SLICE && slot <= used && count < max; i++, slot++) {
            const trpi_cell *cell = trpi_cells_at(cells, slot);

            if (cell != NULL && waiting_take(system, cell, &ret[count])) {
                count++;
            }
        }
        trpi_leave(ctx);
    } while (slot <= used && count < max);
    return count;
}
