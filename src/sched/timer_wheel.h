/* timer_wheel.h - a hierarchical timer wheel: a pure data structure without clock, thread or memory
 * of its own.
 */
#ifndef TRPI_SCHED_TIMER_WHEEL_H
#define TRPI_SCHED_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At least 2^36 ticks: at 1 ms, 2 years; timers that are further off are placed again then. */
#define TRPI_WHEEL_RANGE_BITS 36u
#define TRPI_WHEEL_SLOTS_MIN 2u
#define TRPI_WHEEL_SLOTS_MAX 4096u

/* Part of the caller's object. prev NULL: in no wheel (next may link nodes that advance() gave). A
 * zeroed node is in no wheel. */
typedef struct trpi_wheel_node {
    struct trpi_wheel_node *next, *prev;
    uint64_t due;   /* tick */
    uint16_t place; /* level * slots of a level + slot */
} trpi_wheel_node;

typedef struct trpi_timer_wheel {
    uint64_t now;           /* advance() has returned all nodes with due <= now */
    unsigned bits, levels;  /* 2^bits slots a level */
    unsigned words;         /* of a level's bits in occupied */
    uint64_t *occupied;     /* the caller's memory, as are the slots */
    trpi_wheel_node *slots; /* list heads */
} trpi_timer_wheel;

/* Memory for a wheel of `slots` a level, a power of two in the limits above. */
size_t trpi_wheel_bytes(unsigned slots);
void trpi_wheel_init(trpi_timer_wheel *wheel, unsigned slots, void *memory, uint64_t now);
/* Add a node that is in no wheel; one that is overdue is due at the next tick. O(1). */
void trpi_wheel_add(trpi_timer_wheel *wheel, trpi_wheel_node *node, uint64_t due);
/* Remove a node; false: it is in no wheel. O(1). */
bool trpi_wheel_remove(trpi_timer_wheel *wheel, trpi_wheel_node *node);
/* The tick at which advance() has work to do; false: the wheel is empty. Never later than the first
 * due node, perhaps earlier (nodes move to a finer level then). */
bool trpi_wheel_next(const trpi_timer_wheel *wheel, uint64_t *ret_tick);
/* Move to `now` (not backwards), remove all due nodes and return them: a list linked by next, in
 * order of their due ticks, those of one tick in the order of adding or cascading. */
trpi_wheel_node *trpi_wheel_advance(trpi_timer_wheel *wheel, uint64_t now);

#endif
