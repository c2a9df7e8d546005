/* entity.h - what the files of the workload `entity` share. */
#ifndef TESTS_BENCH_ENTITY_H
#define TESTS_BENCH_ENTITY_H

#include "tests/bench/bench.h"

enum { ENTITY_TARGETS = 10000, ENTITY_ID_BYTES = 16, ENTITY_ROUNDS = 7 };

/* --rounds N, at most ENTITY_ROUNDS. */
uint32_t entity_rounds_of(const bench_options *options);

/* entity_nodes.c; absent where remoting is not built. A node of another process, until its input
 * ends. */
int bench_entity_child(void) __attribute__((weak));
void bench_entity_idle(const bench_options *options) __attribute__((weak));
void bench_entity_remote(const bench_options *options) __attribute__((weak));

#endif
