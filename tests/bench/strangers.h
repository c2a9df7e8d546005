/* strangers.h - heartbeats of a node, by turns without and beside a crowd of connections to it.
 *
 * The crowd is a child of this program, so that its processor time is not the node's. A workload
 * says what its strangers send, and which node is looked at.
 */
#ifndef TESTS_BENCH_STRANGERS_H
#define TESTS_BENCH_STRANGERS_H

#include "tests/bench/two.h"

/* Return the next bytes of the stranger of this number, which has sent so many since it called.
 * *ret_bytes 0: none. Valid until the next call. */
typedef const uint8_t *(*bench_stranger_words)(uint32_t number, uint32_t sent, size_t *ret_bytes);
uint64_t bench_stranger_random(void); /* 31 bits */

/* The child: obey what is read from stdin. */
int bench_crowd_run(bench_stranger_words say);
/* As many descriptors as allowed; of the children too. */
void bench_descriptors_raise(void);
/* The rounds against two's child, whose actor "sink" names it; the crowd calls `port`. Prints the
 * figures and ends both. Options: --count (beats in a round), --rounds, --strangers. Returns 0,
 * or 1 when a beat had no answer. */
int bench_beside_run(const char *workload, const bench_options *options, bench_two *two,
                     bench_child *crowd, const char *port);

#endif
