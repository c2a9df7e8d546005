/* timer_wheel_test.c - the wheel against a plain list. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "sched/timer_wheel.h"

#define NODES 500

typedef struct entry {
    trpi_wheel_node node; /* first: what advance() gives */
    uint64_t due;         /* what the model expects; 0: not in the wheel */
} entry;

static trpi_timer_wheel wheel;

static unsigned wheel_slots = 64;
static trpi_wheel_node memory[600000 / sizeof(trpi_wheel_node)];

static void
wheel_init(uint64_t now)
{
    UNIT_REQUIRE(trpi_wheel_bytes(wheel_slots) <= sizeof memory);
    trpi_wheel_init(&wheel, wheel_slots, memory, now);
}

static uint64_t
random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void
an_empty_wheel_has_no_next_tick(void)
{
    uint64_t tick;

    wheel_init(1000);
    UNIT_FALSE(trpi_wheel_next(&wheel, &tick));
    UNIT_TRUE(trpi_wheel_advance(&wheel, 1u << 30) == NULL);
    UNIT_FALSE(trpi_wheel_next(&wheel, &tick));
}

static void
a_node_is_due_at_its_tick_and_not_before(void)
{
    static const uint64_t delays[] = { 1,          2,
                                       63,         64,
                                       65,         4095,
                                       4096,       4097,
                                       262143,     262144,
                                       1u << 24,   (1ull << 36) - 1,
                                       1ull << 36, (1ull << 36) + 5,
                                       1ull << 37 };

    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        trpi_wheel_node node = { NULL, NULL, 0, 0 };
        uint64_t start = 123456789, tick;

        wheel_init(start);
        trpi_wheel_add(&wheel, &node, start + delays[i]);
        while (trpi_wheel_next(&wheel, &tick)) {
            trpi_wheel_node *due;

            UNIT_REQUIRE(tick > start && tick <= start + delays[i]);
            UNIT_TRUE(trpi_wheel_advance(&wheel, tick - 1) == NULL);
            due = trpi_wheel_advance(&wheel, tick);
            UNIT_TRUE(due == NULL || (due == &node && tick == start + delays[i]));
        }
        UNIT_TRUE(node.prev == NULL);
    }
}

/* A thread that sleeps until then wakes up once for it, not at each level on its way. */
static void
the_next_tick_of_few_nodes_is_the_first_that_is_due(void)
{
    static const uint64_t starts[] = { 0, 5, 123456789, (3ull << 30) + 7 };

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        trpi_wheel_node nodes[17] = { { NULL, NULL, 0, 0 } };
        uint64_t tick, slot = (starts[i] / 4096 + 1) * 4096; /* of the third level, 64 slots each */

        wheel_init(starts[i]);
        for (unsigned j = 0; j < 16; j++) {
            trpi_wheel_add(&wheel, &nodes[j], slot + 70 + (j * 7) % 16);
        }
        UNIT_TRUE(trpi_wheel_next(&wheel, &tick));
        UNIT_EQUAL(tick, slot + 70);
        trpi_wheel_add(&wheel, &nodes[16], slot + 69); /* more than it looks at */
        UNIT_TRUE(trpi_wheel_next(&wheel, &tick));
        UNIT_TRUE(tick > starts[i] && tick <= slot + 69);
        UNIT_TRUE(trpi_wheel_advance(&wheel, slot + 68) == NULL);
        UNIT_TRUE(trpi_wheel_advance(&wheel, slot + 69) == &nodes[16]);
    }
}

static void
a_due_time_that_has_passed_is_the_next_tick(void)
{
    trpi_wheel_node node = { NULL, NULL, 0, 0 };

    wheel_init(50);
    trpi_wheel_add(&wheel, &node, 7);
    UNIT_TRUE(trpi_wheel_advance(&wheel, 50) == NULL);
    UNIT_TRUE(trpi_wheel_advance(&wheel, 51) == &node);
}

static void
a_removed_node_is_never_due(void)
{
    trpi_wheel_node node = { NULL, NULL, 0, 0 };
    uint64_t tick;

    wheel_init(0);
    trpi_wheel_add(&wheel, &node, 5000);
    UNIT_TRUE(trpi_wheel_remove(&wheel, &node));
    UNIT_FALSE(trpi_wheel_remove(&wheel, &node));
    UNIT_FALSE(trpi_wheel_next(&wheel, &tick));
    UNIT_TRUE(trpi_wheel_advance(&wheel, 10000) == NULL);
}

/* Advance both; the wheel must return the nodes of the model, in order of due ticks. */
static void
advance_both(entry *entries, uint64_t now)
{
    trpi_wheel_node *node = trpi_wheel_advance(&wheel, now);
    uint64_t last = 0;

    while (node != NULL) {
        entry *e = (entry *)(void *)node;

        node = node->next;
        e->node.next = NULL;
        UNIT_TRUE(e->due != 0 && e->due <= now);
        UNIT_TRUE(e->due >= last);
        last = e->due;
        e->due = 0;
    }
    for (int i = 0; i < NODES; i++) {
        UNIT_TRUE(entries[i].due == 0 || entries[i].due > now);
    }
}

static void
random_adds_removes_and_jumps_agree_with_a_list(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static entry entries[NODES];
        uint64_t random = seed * 0x9e3779b97f4a7c15u, now = random % 1000000;

        memset(entries, 0, sizeof entries);
        wheel_init(now);
        for (int step = 0; step < 3000; step++) {
            uint64_t r = random_next(&random);
            entry *e = &entries[r % NODES];
            uint64_t range = 1ull << (4 + (r >> 32) % 28);

            if (e->due == 0) {
                e->due = now + 1 + random_next(&random) % range;
                trpi_wheel_add(&wheel, &e->node, e->due);
            } else if ((r >> 40) % 3 == 0) {
                UNIT_TRUE(trpi_wheel_remove(&wheel, &e->node));
                e->due = 0;
            }
            if ((r >> 44) % 4 == 0) {
                now += random_next(&random) % (range / 4 + 1);
                advance_both(entries, now);
            }
        }
        advance_both(entries, now + (1ull << 33));
        for (int i = 0; i < NODES; i++) {
            UNIT_EQUAL(entries[i].due, 0);
        }
    }
}

/* DISP-14, SCH-02: the size of the wheel is a setting and changes no time */
static void
wheels_of_every_size_agree(void)
{
    static const unsigned sizes[] = { 2, 4, 512, 4096 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        wheel_slots = sizes[i];
        a_node_is_due_at_its_tick_and_not_before();
        random_adds_removes_and_jumps_agree_with_a_list();
    }
    wheel_slots = 64;
}

/* timer-wheel-W1: one that waits in the top level's last slot does not hide what is due before
 * it. */
static void
a_timer_far_away_delays_no_nearer_one(void)
{
    static const uint64_t starts[] = { 0, 5, 123456789, (1ull << 36) - 1, (3ull << 30) + 7 };

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        for (unsigned shift = 0; shift <= 36; shift += 6) {
            trpi_wheel_node far = { NULL, NULL, 0, 0 }, near = far;
            uint64_t due = starts[i] + (1ull << shift) + 3, tick;

            wheel_init(starts[i]);
            trpi_wheel_add(&wheel, &far, starts[i] + (1ull << 36) + 100);
            trpi_wheel_add(&wheel, &near, due);
            UNIT_TRUE(trpi_wheel_next(&wheel, &tick) && tick <= due);
            UNIT_TRUE(trpi_wheel_advance(&wheel, due - 1) == NULL);
            UNIT_TRUE(trpi_wheel_advance(&wheel, due) == &near);
            UNIT_TRUE(trpi_wheel_advance(&wheel, starts[i] + (1ull << 36) + 99) == NULL);
            UNIT_TRUE(trpi_wheel_advance(&wheel, starts[i] + (1ull << 36) + 100) == &far);
        }
    }
}

UNIT_BEGIN("timer_wheel")
UNIT(an_empty_wheel_has_no_next_tick)
UNIT(a_node_is_due_at_its_tick_and_not_before)
UNIT(the_next_tick_of_few_nodes_is_the_first_that_is_due)
UNIT(a_due_time_that_has_passed_is_the_next_tick)
UNIT(a_removed_node_is_never_due)
UNIT(random_adds_removes_and_jumps_agree_with_a_list)
UNIT(a_timer_far_away_delays_no_nearer_one)
UNIT(wheels_of_every_size_agree)
UNIT_END
