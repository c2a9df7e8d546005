/* alive.h - does a node still do its work? Decided from counts and times alone. Pure.
 *
 * Why.     A supervisor of processes kills what is not alive, so this must never fail because of
 *          peers, load, or a machine that stood still.
 * Shape.   look(now, turns ended so far, does the probe wait?) -> is a probe to be sent?
 *          A probe is a message to an actor of the default dispatcher. It is sent only when no turn
 *          has ended since the last look: a busy system is not asked, an idle one has work then.
 * Must hold.
 *   alive-L1  Time counts only while a probe waits and no turn of any worker ends.     (look)
 *   alive-L2  Of the time between two looks at most a third of the limit counts: a process that
 *       was stopped is not found dead when it goes on.                               (look)
 * Tests.   tests/unit/node/alive_test.c
 */
#ifndef TRPI_NODE_ALIVE_H
#define TRPI_NODE_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trpi_alive {
    uint64_t limit_ns;
    uint64_t looked_ns; /* the last look; meant when has_looked */
    uint64_t turns;     /* ended then */
    uint64_t waited_ns; /* work has waited, and no turn has ended, for so long */
    bool has_looked;
} trpi_alive;

void trpi_alive_init(trpi_alive *alive, uint64_t limit_ns);
/* Look at the system. turns: that its workers have ended so far, in any unit that moves with them.
 * waits: a probe was sent before and has not been handled. true: send a probe. */
bool trpi_alive_look(trpi_alive *alive, uint64_t now_ns, uint64_t turns, bool waits);
bool trpi_alive_is(const trpi_alive *alive);

#endif
