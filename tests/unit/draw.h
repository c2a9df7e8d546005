/* draw.h - random numbers and seeds for tests: a seed is printed with the command that replays it.
 * TROUPE_TEST_SEED sets the one of random numbers. */
#ifndef TESTS_UNIT_DRAW_H
#define TESTS_UNIT_DRAW_H

#include <stdlib.h>

#include "tests/unit/unit.h"

typedef struct unit_draw {
    uint64_t state;
} unit_draw;

static inline unit_draw
unit_draw_begin(const char *program, const char *suite)
{
    const char *given = getenv("TROUPE_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 1 + unit_now_ms() % 1000000;

    printf("seed %llu; again: TROUPE_TEST_SEED=%llu %s %s\n", (unsigned long long)seed,
           (unsigned long long)seed, program, suite);
    return (unit_draw){ seed * 0x9e3779b97f4a7c15u };
}

/* From 0 up to below (at least 1), which is not included: splitmix64. */
static inline uint32_t
unit_drawn(unit_draw *draw, uint32_t below)
{
    uint64_t z = draw->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % below);
}

/* Play each seed from TROUPE_SEED (1) on, TROUPE_SEEDS of them (usual), until one fails; that one
 * is printed with the command that replays it. */
static inline void
unit_seeds_play(void (*play)(uint64_t seed), uint64_t usual, const char *program, const char *suite)
{
    const char *first = getenv("TROUPE_SEED"), *many = getenv("TROUPE_SEEDS");
    uint64_t from = first == NULL ? 1 : strtoull(first, NULL, 10);
    uint64_t count = many == NULL ? usual : strtoull(many, NULL, 10);

    for (uint64_t seed = from; seed < from + count; seed++) {
        unsigned before = unit_failures();

        play(seed);
        if (unit_failures() != before) {
            printf("    TROUPE_SEED=%llu TROUPE_SEEDS=1 %s %s\n", (unsigned long long)seed, program,
                   suite);
            return;
        }
    }
}

#endif
