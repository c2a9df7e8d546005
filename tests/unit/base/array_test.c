/* The growable array: limits, failing allocations, and that it keeps what is in it. */
#include "base/array.h"

#include "base/alloc.h"
#include "tests/unit/unit.h"

typedef struct owner {
    uint32_t *items;
    uint32_t items_count, items_room;
} owner;

static void
an_array_keeps_what_is_added(void)
{
    owner o = { 0 };
    uint32_t moves = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t before = o.items_room;

        UNIT_REQUIRE(TRPI_ARRAY_HAS_ROOM(&o, items));
        UNIT_REQUIRE(o.items_count < o.items_room);
        moves += before != o.items_room ? 1 : 0;
        o.items[o.items_count++] = i;
    }
    for (uint32_t i = 0; i < 100000; i++) {
        UNIT_REQUIRE(o.items[i] == i);
    }
    UNIT_TRUE(moves < 30);
    UNIT_TRUE(o.items_room <= 100000 + 100000 / 2 + 8);
    trpi_free(o.items);
}

static void
at_the_limit_it_takes_and_one_past_it_refuses(void)
{
    owner o = { 0 };

    for (uint32_t i = 0; i < 10; i++) {
        UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 10), TRP_OK);
        o.items[o.items_count++] = i;
    }
    UNIT_EQUAL(o.items_room, 10);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 0, 10), TRP_OK);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 10), TRP_ELIMIT);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 9), TRP_ELIMIT); /* a limit that was lowered */
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, UINT32_MAX, TRPI_ARRAY_NO_LIMIT), TRP_ELIMIT);
    UNIT_EQUAL(o.items_count, 10);
    UNIT_EQUAL(o.items[9], 9);
    trpi_free(o.items);
}

static void
room_for_many_is_made_at_once(void)
{
    owner o = { 0 };

    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1000, 2000), TRP_OK);
    UNIT_TRUE(o.items_room >= 1000 && o.items_room <= 2000);
    o.items_count = 1000;
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1000, 2000), TRP_OK);
    UNIT_EQUAL(o.items_room, 2000);
    trpi_free(o.items);
}

static void
a_failed_allocation_changes_nothing(void)
{
    owner o = { 0 };
    const uint32_t *before;

    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 10), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(o.items == NULL && o.items_room == 0);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 100), TRP_OK);
    o.items_count = o.items_room;
    o.items[0] = 4711;
    before = o.items;
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(TRPI_ARRAY_RESERVE(&o, items, 1, 100), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(o.items == before && o.items_room == o.items_count && o.items[0] == 4711);
    trpi_free(o.items);
}

/* The product of count and size does not fit. */
static void
a_size_that_overflows_is_out_of_memory(void)
{
    void *items = NULL;
    uint32_t room = 0;

    UNIT_EQUAL(trpi_array_reserve(&items, 0, &room, SIZE_MAX / 4, 5, TRPI_ARRAY_NO_LIMIT),
               TRP_ENOMEM);
    UNIT_TRUE(items == NULL && room == 0);
}

UNIT_BEGIN("array")
UNIT(an_array_keeps_what_is_added)
UNIT(at_the_limit_it_takes_and_one_past_it_refuses)
UNIT(room_for_many_is_made_at_once)
UNIT(a_failed_allocation_changes_nothing)
UNIT(a_size_that_overflows_is_out_of_memory)
UNIT_END
