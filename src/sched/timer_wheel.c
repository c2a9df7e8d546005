/* timer_wheel.c - a hierarchical timer wheel.
 *
 * Why.     Receive timeouts are set and cancelled by the million and hardly ever fire: adding and
 *          removing must be O(1), and knowing the next tick with work must not mean ticking.
 * Shape.   Level L has 64 slots of 64^L ticks. A node stands at the level of the highest 6-bit
 *          digit in which its due tick differs from `now`, in the slot of that digit. When `now`
 *          reaches the start of a slot of a higher level, its nodes move down (each at most once a
 *          level).
 * Must hold.
 *   W1  A node of level L > 0 is in a slot whose start lies after `now`; so next() of a level is
 *       its first occupied slot from now's digit on.
 *       (place, advance)
 *   W2  `occupied` has the bit of a slot exactly when its list has a node.           (link, unlink)
 * Limits.  Nodes farther than 2^36 ticks wait in the last slot of the top level and are placed
 *          again.
 * Tests.   tests/unit/sched/timer_wheel_test.c
 * Sources. G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels" (1987).
 */
#include "sched/timer_wheel.h"

#include <stddef.h>

#include "base/assert.h"

#define WHEEL_TICKS (1ull << (TRPI_WHEEL_BITS * TRPI_WHEEL_LEVELS))

void
trpi_wheel_init(trpi_timer_wheel *wheel, uint64_t now)
{
    wheel->now = now;
    for (unsigned level = 0; level < TRPI_WHEEL_LEVELS; level++) {
        wheel->occupied[level] = 0;
    }
    for (unsigned i = 0; i < TRPI_WHEEL_LEVELS * TRPI_WHEEL_SLOTS; i++) {
        wheel->slots[i] = (trpi_wheel_node){ &wheel->slots[i], &wheel->slots[i], 0, 0 };
    }
}

static void
link_node(trpi_timer_wheel *wheel, trpi_wheel_node *node, unsigned level, unsigned slot)
{
    trpi_wheel_node *head;

    node->place = (uint16_t)(level * TRPI_WHEEL_SLOTS + slot);
    head = &wheel->slots[node->place];
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
    wheel->occupied[level] |= 1ull << slot;
}

/* Level and slot of a due tick after now (W1). */
static void
place(trpi_timer_wheel *wheel, trpi_wheel_node *node)
{
    uint64_t due = node->due;
    uint64_t differing;
    unsigned level;

    trpi_assert(due > wheel->now);
    if (due - wheel->now >= WHEEL_TICKS) {
        due = wheel->now + WHEEL_TICKS - 1;
    }
    differing = (due ^ wheel->now) | (TRPI_WHEEL_SLOTS - 1);
    level = (unsigned)(63 - __builtin_clzll(differing)) / TRPI_WHEEL_BITS;
    if (level >= TRPI_WHEEL_LEVELS) { /* now is just below a multiple of WHEEL_TICKS */
        level = TRPI_WHEEL_LEVELS - 1;
    }
    link_node(wheel, node, level,
              (unsigned)(due >> (TRPI_WHEEL_BITS * level)) & (TRPI_WHEEL_SLOTS - 1));
}

void
trpi_wheel_add(trpi_timer_wheel *wheel, trpi_wheel_node *node, uint64_t due)
{
    trpi_assert(node->prev == NULL);
    node->due = due > wheel->now ? due : wheel->now + 1;
    place(wheel, node);
}

bool
trpi_wheel_remove(trpi_timer_wheel *wheel, trpi_wheel_node *node)
{
    unsigned level = node->place / TRPI_WHEEL_SLOTS;
    unsigned slot = node->place % TRPI_WHEEL_SLOTS;

    if (node->prev == NULL) { /* next may link a list that advance() handed out */
        return false;
    }
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
    if (wheel->slots[node->place].next == &wheel->slots[node->place]) {
        wheel->occupied[level] &= ~(1ull << slot);
    }
    return true;
}

/* First occupied slot of a level and the tick at which it starts. */
static uint64_t
slot_start(const trpi_timer_wheel *wheel, unsigned level, unsigned *ret_slot)
{
    unsigned shift = TRPI_WHEEL_BITS * level;
    unsigned digit = (unsigned)(wheel->now >> shift) & (TRPI_WHEEL_SLOTS - 1);
    uint64_t occupied = wheel->occupied[level];
    uint64_t turned = digit == 0 ? occupied : occupied >> digit | occupied << (64 - digit);
    unsigned slot = (digit + (unsigned)__builtin_ctzll(turned)) & (TRPI_WHEEL_SLOTS - 1);
    uint64_t round = 1ull << (shift + TRPI_WHEEL_BITS);
    uint64_t start = (wheel->now & ~(round - 1)) + ((uint64_t)slot << shift);

    if (start <= wheel->now) { /* only the top level goes round */
        start += round;
    }
    *ret_slot = slot;
    return start;
}

static bool
next_slot(const trpi_timer_wheel *wheel, unsigned *ret_level, unsigned *ret_slot,
          uint64_t *ret_tick)
{
    for (unsigned level = 0; level < TRPI_WHEEL_LEVELS; level++) {
        if (wheel->occupied[level] != 0) {
            *ret_level = level;
            *ret_tick = slot_start(wheel, level, ret_slot);
            return true;
        }
    }
    return false;
}

bool
trpi_wheel_next(const trpi_timer_wheel *wheel, uint64_t *ret_tick)
{
    unsigned level, slot;

    return next_slot(wheel, &level, &slot, ret_tick);
}

trpi_wheel_node *
trpi_wheel_advance(trpi_timer_wheel *wheel, uint64_t now)
{
    trpi_wheel_node *first = NULL;
    trpi_wheel_node **last = &first;
    unsigned level, slot;
    uint64_t tick;

    while (next_slot(wheel, &level, &slot, &tick) && tick <= now) {
        trpi_wheel_node *head = &wheel->slots[level * TRPI_WHEEL_SLOTS + slot];
        trpi_wheel_node *node = head->next;

        head->next = head->prev = head; /* the slot is emptied as a whole (W2) */
        wheel->occupied[level] &= ~(1ull << slot);
        wheel->now = tick;
        while (node != head) {
            trpi_wheel_node *following = node->next;

            node->next = node->prev = NULL;
            if (node->due <= tick) {
                *last = node;
                last = &node->next;
            } else {
                place(wheel, node);
            }
            node = following;
        }
    }
    if (now > wheel->now) {
        wheel->now = now;
    }
    return first;
}
