/* timer_wheel.c - a hierarchical timer wheel.
 *
 * Why.     Receive timeouts are set and cancelled by the million and hardly ever fire: adding and
 *          removing must be O(1), and knowing the next tick with work must not mean ticking.
 * Shape.   Level L has S slots of S^L ticks, S a power of two. A node stands at the level of the
 *          highest digit (base S) in which its due tick differs from `now`, in the slot of that
 *          digit. When `now` reaches the start of a slot of a higher level, its nodes move down
 *          (each at most once a level).
 * Must hold.
 *   timer-wheel-W1  A node of level L > 0 is in a slot whose start lies after `now`; so the next
 *       slot of a level is its first occupied one from now's digit on.
 *       (node_place, advance)
 *       On the top level, which goes round, no slot but those before now's own one comes again.
 *   timer-wheel-W2  `occupied` has the bit of a slot exactly when its list has a node. (link,
 *       unlink)
 * Limits.  Nodes farther than S^levels (at least 2^36) ticks wait in the last slot of the top
 *          level and are placed again.
 * Tests.   tests/unit/sched/timer_wheel_test.c
 * Sources. G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels" (1987).
 */
#include "sched/timer_wheel.h"

#include <stddef.h>

#include "base/assert.h"

#define NEXT_LOOKS_MAX 16u

static unsigned
levels_of(unsigned bits)
{
    return (TRPI_WHEEL_RANGE_BITS + bits - 1) / bits;
}

static unsigned
words_of(unsigned slots)
{
    return slots <= 64 ? 1 : slots / 64;
}

size_t
trpi_wheel_bytes(unsigned slots)
{
    unsigned levels = levels_of((unsigned)__builtin_ctz(slots));

    return levels * (slots * sizeof(trpi_wheel_node) + words_of(slots) * sizeof(uint64_t));
}

void
trpi_wheel_init(trpi_timer_wheel *wheel, unsigned slots, void *memory, uint64_t now)
{
    trpi_assert(slots >= TRPI_WHEEL_SLOTS_MIN && slots <= TRPI_WHEEL_SLOTS_MAX);
    trpi_assert((slots & (slots - 1)) == 0);
    wheel->now = now;
    wheel->bits = (unsigned)__builtin_ctz(slots);
    wheel->levels = levels_of(wheel->bits);
    wheel->words = words_of(slots);
    wheel->slots = memory;
    wheel->occupied = (uint64_t *)(void *)(wheel->slots + wheel->levels * slots);
    for (unsigned i = 0; i < wheel->levels * wheel->words; i++) {
        wheel->occupied[i] = 0;
    }
    for (unsigned i = 0; i < wheel->levels * slots; i++) {
        wheel->slots[i] = (trpi_wheel_node){ &wheel->slots[i], &wheel->slots[i], 0, 0 };
    }
}

static uint64_t *
word_of(const trpi_timer_wheel *wheel, unsigned level, unsigned slot)
{
    return &wheel->occupied[level * wheel->words + slot / 64];
}

static void
link_node(trpi_timer_wheel *wheel, trpi_wheel_node *node, unsigned level, unsigned slot)
{
    trpi_wheel_node *head;

    node->place = (uint16_t)((level << wheel->bits) + slot);
    head = &wheel->slots[node->place];
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
    *word_of(wheel, level, slot) |= 1ull << (slot % 64);
}

/* Level and slot of a due tick after now (timer-wheel-W1). */
static void
node_place(trpi_timer_wheel *wheel, trpi_wheel_node *node)
{
    const unsigned top = wheel->bits * (wheel->levels - 1);
    const unsigned slots = 1u << wheel->bits;
    uint64_t due = node->due;
    uint64_t differing;
    unsigned level;

    trpi_assert(due > wheel->now);
    /* timer-wheel-W1: never round to now's own slot */
    if ((due >> top) - (wheel->now >> top) >= slots) {
        due = ((wheel->now >> top) + slots - 1) << top;
    }
    differing = (due ^ wheel->now) | (slots - 1);
    level = (unsigned)(63 - __builtin_clzll(differing)) / wheel->bits;
    if (level >= wheel->levels) { /* now is just below a multiple of the range */
        level = wheel->levels - 1;
    }
    link_node(wheel, node, level, (unsigned)(due >> (wheel->bits * level)) & (slots - 1));
}

void
trpi_wheel_add(trpi_timer_wheel *wheel, trpi_wheel_node *node, uint64_t due)
{
    trpi_assert(node->prev == NULL);
    node->due = due > wheel->now ? due : wheel->now + 1;
    node_place(wheel, node);
}

bool
trpi_wheel_remove(trpi_timer_wheel *wheel, trpi_wheel_node *node)
{
    unsigned level = node->place >> wheel->bits;
    unsigned slot = node->place & ((1u << wheel->bits) - 1);

    if (node->prev == NULL) { /* next may link a list that advance() handed out */
        return false;
    }
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
    if (wheel->slots[node->place].next == &wheel->slots[node->place]) {
        *word_of(wheel, level, slot) &= ~(1ull << (slot % 64));
    }
    return true;
}

/* Find the first occupied slot of a level from `digit` on, wrapping around. false: none. */
static bool
slot_from(const trpi_timer_wheel *wheel, unsigned level, unsigned digit, unsigned *ret_slot)
{
    const uint64_t *words = &wheel->occupied[level * wheel->words];
    const unsigned first = digit / 64;
    uint64_t set = words[first] >> (digit % 64) << (digit % 64);

    for (unsigned i = 0; i <= wheel->words; i++) { /* the first word once more at the end */
        unsigned at = (first + i) % wheel->words;

        set = i == 0 ? set : words[at];
        if (set != 0) {
            *ret_slot = at * 64 + (unsigned)__builtin_ctzll(set);
            return true;
        }
    }
    return false;
}

/* Find the next slot of a level, and the tick at which it starts. */
static bool
slot_start(const trpi_timer_wheel *wheel, unsigned level, unsigned *ret_slot, uint64_t *ret_tick)
{
    unsigned shift = wheel->bits * level;
    unsigned digit = (unsigned)(wheel->now >> shift) & ((1u << wheel->bits) - 1);
    uint64_t round = 1ull << (shift + wheel->bits);

    if (!slot_from(wheel, level, digit, ret_slot)) {
        return false;
    }
    *ret_tick = (wheel->now & ~(round - 1)) + ((uint64_t)*ret_slot << shift);
    if (*ret_tick <= wheel->now) { /* only the top level goes round */
        *ret_tick += round;
    }
    return true;
}

static bool
next_slot(const trpi_timer_wheel *wheel, unsigned *ret_level, unsigned *ret_slot,
          uint64_t *ret_tick)
{
    for (unsigned level = 0; level < wheel->levels; level++) {
        if (slot_start(wheel, level, ret_slot, ret_tick)) {
            *ret_level = level;
            return true;
        }
    }
    return false;
}

/* The next slot of the finest level that has one holds the node that is due first (timer-wheel-W1).
 * A few nodes are looked at: they need not move to finer levels on their way. */
bool
trpi_wheel_next(const trpi_timer_wheel *wheel, uint64_t *ret_tick)
{
    unsigned level, slot, looks = NEXT_LOOKS_MAX;
    uint64_t start, least = UINT64_MAX;

    if (!next_slot(wheel, &level, &slot, &start)) {
        return false;
    }
    const trpi_wheel_node *head = &wheel->slots[(level << wheel->bits) + slot];
    const trpi_wheel_node *node = head->next;
    for (; level > 0 && level < wheel->levels - 1 && node != head && looks > 0; looks--) {
        least = node->due < least ? node->due : least;
        node = node->next;
    }
    *ret_tick = node == head ? least : start;
    return true;
}

trpi_wheel_node *
trpi_wheel_advance(trpi_timer_wheel *wheel, uint64_t now)
{
    trpi_wheel_node *first = NULL;
    trpi_wheel_node **last = &first;
    unsigned level, slot;
    uint64_t tick;

    while (next_slot(wheel, &level, &slot, &tick) && tick <= now) {
        trpi_wheel_node *head = &wheel->slots[(level << wheel->bits) + slot];
        trpi_wheel_node *node = head->next;

        head->next = head->prev = head; /* the slot is emptied as a whole (timer-wheel-W2) */
        *word_of(wheel, level, slot) &= ~(1ull << (slot % 64));
        wheel->now = tick;
        while (node != head) {
            trpi_wheel_node *following = node->next;

            node->next = node->prev = NULL;
            if (node->due <= tick) {
                *last = node;
                last = &node->next;
            } else {
                node_place(wheel, node);
            }
            node = following;
        }
    }
    if (now > wheel->now) {
        wheel->now = now;
    }
    return first;
}
