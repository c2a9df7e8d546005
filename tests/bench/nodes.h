/* nodes.h - nodes of a cluster in several processes, for the workloads handoff and entity. */
#ifndef TESTS_BENCH_NODES_H
#define TESTS_BENCH_NODES_H

#include <troupe/cluster.h>
#include <troupe/node.h>

#include "tests/bench/two.h"

/* A node at default settings on any port, which joins `seed`; "self": it is the first one. Its log
 * is dropped; with BENCH_LOG in the environment it goes to the standard error. */
trp_node *bench_node_open(const char *seed);
/* Wait until it sees so many members that are Up. */
void bench_members_wait(trp_node *node, uint32_t least);
/* Write a line to a child, and read one of it. */
void bench_child_say(bench_child *child, const char *command, const char *argument, char *answer,
                     size_t bytes);

#endif
