/* local_program.h - random actor programs, and the laws that hold when they have come to rest.
 *
 * Actors spawn, tell, ask, watch, unwatch, fail, restart, resume, escalate, stop, kill, stash,
 * become, set timers and tell through a router, as drawn from a seed; a ledger outside of the
 * system says what should have come of it. The same programs run under seeds (tests/sim/local_test)
 * and on real threads (tests/stress/local_stress).
 */
#ifndef TESTS_SIM_LOCAL_PROGRAM_H
#define TESTS_SIM_LOCAL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <troupe/testkit.h>

typedef struct local_options {
    uint64_t seed;      /* of what the actors do */
    uint32_t actors;    /* at most so many ever */
    uint32_t jobs;      /* told from outside */
    uint32_t fuel;      /* of each: what it leads to ends after so many steps */
    uint32_t settle_ms; /* real clocks: how long it may take to come to rest; 0: a virtual clock */
} local_options;

typedef struct local_totals {
    uint64_t sent, received, dead, stashed, spawned, watches, terminated, restarts, asks;
} local_totals;

/* Run one program in the kit and stop its system. Broken laws are failures of the kit. */
void local_program(trp_testkit *kit, const local_options *options, local_totals *ret_totals);

#endif
