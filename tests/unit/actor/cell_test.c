/* cell_test.c - slots: taking, publishing, giving back, generations, the limit. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"
#include "base/alloc.h"

/* A ctx that belongs to no system: enough for slots, which look at cells, stats and cache only. */
static trp_ctx *
ctx_new(trpi_cells *cells)
{
    trp_ctx *ctx = trpi_alloc_aligned(64, sizeof *ctx);

    UNIT_REQUIRE(ctx != NULL);
    ctx->cells = cells;
    ctx->stats = &ctx->own_stats;
    ctx->cache = trpi_msg_cache_get();
    return ctx;
}

static void
a_slot_that_never_was_is_not_found(void)
{
    trpi_cells *cells;

    UNIT_REQUIRE(trpi_cells_new(1000000, 10, &cells) == TRP_OK);
    UNIT_TRUE(trpi_cells_find(cells, 0) == NULL);
    UNIT_TRUE(trpi_cells_find(cells, 1) == NULL);
    UNIT_TRUE(trpi_cells_find(cells, UINT32_MAX) == NULL);
    trpi_cells_free(cells);
}

static void
an_acquired_cell_is_found_and_even_until_published(void)
{
    trpi_cells *cells;
    trpi_cell *cell;
    trp_ctx *ctx;

    UNIT_REQUIRE(trpi_cells_new(1000000, 10, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK);
    UNIT_TRUE(trpi_cells_find(cells, trpi_cell_slot(cell)) == cell);
    uint32_t first = atomic_load(&cell->generation);
    UNIT_EQUAL(first & 1, 0);
    UNIT_EQUAL(trpi_slot_ref(cell).generation, first + 1);
    UNIT_EQUAL(cell->life, TRPI_LIFE_STARTING);
    UNIT_FALSE(trpi_mailbox_claim(cell)); /* the token is ours */
    trpi_slot_publish_idle(ctx, cell, TRPI_KIND_PROMISE);
    UNIT_EQUAL(atomic_load(&cell->generation), first + 1);
    UNIT_TRUE(trpi_mailbox_claim(cell));
    trpi_free(ctx);
    trpi_cells_free(cells);
}

static void
an_abandoned_slot_comes_back_with_another_generation(void)
{
    trpi_cells *cells;
    trpi_cell *cell, *again;
    trp_ctx *ctx;

    UNIT_REQUIRE(trpi_cells_new(1, 10, &cells) == TRP_OK); /* one slot: it must be the same */
    ctx = ctx_new(cells);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK);
    uint32_t before = trpi_slot_ref(cell).generation;
    trpi_slot_abandon(ctx, cell);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &again) == TRP_OK);
    UNIT_TRUE(again == cell);
    UNIT_EQUAL(trpi_slot_ref(again).generation, before + 2);
    trpi_free(ctx);
    trpi_cells_free(cells);
}

static void
slots_end_at_their_limit_and_come_back(void)
{
    enum { MAX = TRPI_SLAB_FIRST_CELLS + TRPI_SLAB_CELLS + 3 };
    trpi_cell **taken = calloc(MAX, sizeof(trpi_cell *));
    trpi_cells *cells = NULL;
    trpi_cell *more;
    trp_ctx *ctx;

    UNIT_REQUIRE(taken != NULL && trpi_cells_new(MAX, 2, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    for (uint32_t i = 0; i < MAX; i++) {
        UNIT_REQUIRE(trpi_slot_acquire(ctx, &taken[i]) == TRP_OK);
        UNIT_EQUAL(trpi_cell_slot(taken[i]), i + 1);
        UNIT_EQUAL((uintptr_t)taken[i] % 128, 0);
    }
    UNIT_EQUAL(trpi_slot_acquire(ctx, &more), TRP_ELIMIT);
    trpi_slot_abandon(ctx, taken[5]);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &more) == TRP_OK);
    UNIT_TRUE(more == taken[5]);
    UNIT_EQUAL(trpi_slot_acquire(ctx, &more), TRP_ELIMIT);
    free(taken);
    trpi_free(ctx);
    trpi_cells_free(cells);
}

/* cell-C2: a late message is being drained there; the next slot is taken, and this one is not
 * lost. */
static void
a_slot_whose_token_is_held_is_passed_over(void)
{
    trpi_cells *cells;
    trpi_cell *held, *other;
    trp_ctx *ctx;
    trp_msg *done;

    UNIT_REQUIRE(trpi_cells_new(2, 10, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &held) == TRP_OK);
    trpi_slot_abandon(ctx, held);
    UNIT_TRUE(trpi_mailbox_claim(held)); /* as a late push would */
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &other) == TRP_ELIMIT || other != held);
    UNIT_TRUE(trpi_mailbox_go_idle(held, &done));
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &other) == TRP_OK);
    trpi_free(ctx);
    trpi_cells_free(cells);
}

/* A worker takes what was freed last: slots that are busy there must not hide the free ones. */
static void
slots_that_are_busy_hide_no_free_ones(void)
{
    enum { BUSY = 64, FREE = 8 };
    static trpi_cell *taken[FREE + BUSY];
    trpi_cells *cells;
    trpi_cell *cell;
    trp_ctx *ctx;
    int none = 0;

    UNIT_REQUIRE(trpi_cells_new(TRPI_CELLS_CACHING_MIN, 10, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    ctx->worker = (trpi_worker *)&none; /* only whether there is one is looked at */
    for (int i = 0; i < FREE + BUSY; i++) {
        UNIT_REQUIRE(trpi_slot_acquire(ctx, &taken[i]) == TRP_OK);
    }
    for (int i = 0; i < FREE + BUSY; i++) {
        trpi_slot_abandon(ctx, taken[i]);
        UNIT_TRUE(i < FREE || trpi_mailbox_claim(taken[i])); /* as a late push would */
    }
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK); /* has met all that are busy */
    uint32_t used = atomic_load(&cells->used);
    for (int i = 0; i < FREE; i++) {
        UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK);
    }
    UNIT_EQUAL(atomic_load(&cells->used), used); /* none was made anew */
    trpi_free(ctx);
    trpi_cells_free(cells);
}

/* cell-C3 */
static void
a_slot_whose_generation_came_round_is_used_no_more(void)
{
    trpi_cells *cells;
    trpi_cell *cell, *again;
    trp_ctx *ctx;

    UNIT_REQUIRE(trpi_cells_new(1, 0, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK);
    trpi_slot_abandon(ctx, cell);
    cell->generation_run = UINT32_MAX - 3; /* as if it had lived two thousand million times */
    atomic_store(&cell->generation, UINT32_MAX - 3);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &again) == TRP_OK);
    UNIT_EQUAL(trpi_slot_ref(again).generation, UINT32_MAX - 2);
    trpi_slot_abandon(ctx, again);
    UNIT_REQUIRE(trpi_slot_acquire(ctx, &again) == TRP_OK);
    UNIT_EQUAL(trpi_slot_ref(again).generation, UINT32_MAX);
    trpi_slot_abandon(ctx, again);
    UNIT_EQUAL(trpi_slot_acquire(ctx, &again), TRP_ELIMIT);
    trpi_free(ctx);
    trpi_cells_free(cells);
}

enum { NEIGHBOURS = TRPI_SLAB_FIRST_CELLS + 512 }; /* in two slabs */

static void
first_generations_of(uint64_t key, uint32_t *generations)
{
    trpi_cells *cells;
    trpi_cell *cell;
    trp_ctx *ctx;

    UNIT_REQUIRE(trpi_cells_new(NEIGHBOURS, key, &cells) == TRP_OK);
    ctx = ctx_new(cells);
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        UNIT_REQUIRE(trpi_slot_acquire(ctx, &cell) == TRP_OK);
        UNIT_EQUAL(trpi_cell_slot(cell), i + 1);
        generations[i] = trpi_slot_ref(cell).generation;
    }
    trpi_free(ctx);
    trpi_cells_free(cells);
}

/* REMOTE-55: cell-C4: neither equal, nor at a distance that comes again, nor alike in any bit.
 * cell-C3: room upwards. */
static void
a_ref_does_not_tell_the_generation_of_another_slot(void)
{
    static uint32_t seen[NEIGHBOURS], again[NEIGHBOURS], other[NEIGHBOURS];
    uint32_t same_distance = 0, same_as_other = 0;

    first_generations_of(10, seen);
    first_generations_of(10, again);
    first_generations_of(11, other);
    UNIT_TRUE(memcmp(seen, again, sizeof seen) == 0); /* a seed of the simulator repeats */
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        UNIT_TRUE((seen[i] & 1) != 0 && seen[i] < 1u << 31);
        same_as_other += seen[i] == other[i];
        for (uint32_t j = 0; j < i; j++) {
            UNIT_TRUE(seen[i] != seen[j]);
            same_distance += i > j + 1 && seen[i] - seen[i - 1] == seen[j + 1] - seen[j];
        }
    }
    UNIT_EQUAL(same_as_other, 0);
    UNIT_EQUAL(same_distance, 0);
    for (unsigned bit = 1; bit < 31; bit++) {
        uint32_t differ = 0;

        for (uint32_t i = 1; i < NEIGHBOURS; i++) {
            differ += (seen[i] ^ seen[i - 1]) >> bit & 1;
        }
        UNIT_TRUE(differ > NEIGHBOURS * 2 / 5 && differ < NEIGHBOURS * 3 / 5);
    }
}

UNIT_BEGIN("cell")
UNIT(a_slot_that_never_was_is_not_found)
UNIT(an_acquired_cell_is_found_and_even_until_published)
UNIT(an_abandoned_slot_comes_back_with_another_generation)
UNIT(slots_end_at_their_limit_and_come_back)
UNIT(a_slot_whose_token_is_held_is_passed_over)
UNIT(slots_that_are_busy_hide_no_free_ones)
UNIT(a_slot_whose_generation_came_round_is_used_no_more)
UNIT(a_ref_does_not_tell_the_generation_of_another_slot)
UNIT_END
