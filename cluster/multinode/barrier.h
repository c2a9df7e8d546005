/* barrier.h - named barriers of a test over several nodes, and the nodes that must enter them.
 * Pure.
 *
 * Why.     A test must end when one of its nodes is gone or has taken another way, instead of
 *          waiting until its time is over. So an event that breaks a barrier breaks all later ones.
 * Must hold.
 *   barrier-B1  the first node that enters names the barrier; it opens when all known nodes have
 *       entered
 *   barrier-B2  another name, a node lost without notice, one known twice, or its deadline: it has
 *       failed, for good
 *   barrier-B3  a node whose end is planned (removed) is waited for no longer
 *   barrier-B4  a deadline only comes nearer
 * Tests.   tests/unit/multinode/barrier_test.c
 * Sources. MNT-08, MNT-16
 */
#ifndef TRPI_MULTINODE_BARRIER_H
#define TRPI_MULTINODE_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#define TRPI_BARRIER_NODES_MAX 64 /* a bit each */
#define TRPI_BARRIER_NAME_BYTES 128
#define TRPI_BARRIER_WHY_BYTES 256

typedef struct trpi_barrier { /* zeroed at first */
    uint64_t known, entered;  /* nodes, by index */
    uint64_t deadline_ms;
    bool waiting, failed;
    char name[TRPI_BARRIER_NAME_BYTES];
    char why[TRPI_BARRIER_WHY_BYTES]; /* the barrier has failed */
} trpi_barrier;

/* The nodes to be told now, and the outcome: passed, or failed (why). No nodes: all go on
 * waiting. */
typedef struct trpi_barrier_step {
    uint64_t told;
    bool passed;
} trpi_barrier_step;

/* roles: names of the nodes, for why. */
trpi_barrier_step trpi_barrier_add(trpi_barrier *barrier, const char *const *roles, uint32_t index);
trpi_barrier_step trpi_barrier_remove(trpi_barrier *barrier, uint32_t index); /* planned */
trpi_barrier_step trpi_barrier_lose(trpi_barrier *barrier, const char *const *roles,
                                    uint32_t index);
/* A node gives the test up, and says why. */
trpi_barrier_step trpi_barrier_give_up(trpi_barrier *barrier, const char *const *roles,
                                       uint32_t index, const char *why);
trpi_barrier_step trpi_barrier_enter(trpi_barrier *barrier, const char *const *roles,
                                     uint32_t index, const char *name, uint64_t deadline_ms);
trpi_barrier_step trpi_barrier_tick(trpi_barrier *barrier, const char *const *roles,
                                    uint64_t now_ms);

#endif
