/* quick_clock.h - the clock of a machine that can be read before each message. */
#ifndef TRPI_BASE_QUICK_CLOCK_H
#define TRPI_BASE_QUICK_CLOCK_H

#include <stdint.h>

#include "base/world.h"

/* Measure the rate of the processor's counter, which takes 0.2 ms once in a process. */
void trpi_quick_clock_open(trpi_world *world);
/* Return nanoseconds since some moment; the world is not used. */
uint64_t trpi_quick_clock_ns(trpi_world *world);
/* world_real.c: read CLOCK_MONOTONIC_COARSE. */
uint64_t trpi_world_coarse_ns(trpi_world *world);
/* Return how it reads: "tsc", "cntvct", "monotonic-coarse". */
const char *trpi_quick_clock_source(void);

#endif
