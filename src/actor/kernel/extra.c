/* extra.c - the side block of an actor, allocated on first use.
 *
 * Tests.   tests/unit/actor/memory_test.c
 */
#include "actor/kernel/extra.h"

#include "base/alloc.h"

trpi_extra *
trpi_extra_get(trpi_cell *cell)
{
    if (cell->extra == NULL) {
        cell->extra = trpi_alloc(sizeof *cell->extra);
        if (cell->extra != NULL) {
            cell->extra->parked_end = &cell->extra->parked;
        }
    }
    return cell->extra;
}
