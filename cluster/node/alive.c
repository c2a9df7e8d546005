/* alive.c - see alive.h. */
#include "cluster/node/alive.h"

#include "base/assert.h"

#define GAP_PARTS 3u /* alive-L2 */

void
trpi_alive_init(trpi_alive *alive, uint64_t limit_ns)
{
    trpi_assert(limit_ns >= GAP_PARTS);
    *alive = (trpi_alive){ .limit_ns = limit_ns };
}

bool
trpi_alive_look(trpi_alive *alive, uint64_t now_ns, uint64_t turns, bool waits)
{
    bool moved = !alive->has_looked || turns != alive->turns;
    uint64_t gap_ns =
        alive->has_looked && now_ns > alive->looked_ns ? now_ns - alive->looked_ns : 0;
    uint64_t most_ns = alive->limit_ns / GAP_PARTS + 1; /* three of them reach the limit */
    if (moved || !waits) {
        alive->waited_ns = 0; /* alive-L1 */
    } else if (alive->waited_ns < alive->limit_ns) {
        alive->waited_ns += gap_ns < most_ns ? gap_ns : most_ns; /* alive-L2 */
    }
    alive->looked_ns = now_ns;
    alive->turns = turns;
    alive->has_looked = true;
    return !moved && !waits;
}

bool
trpi_alive_is(const trpi_alive *alive)
{
    return alive->waited_ns < alive->limit_ns;
}
