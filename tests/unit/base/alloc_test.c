/* The heap wrapper: zeroed, aligned, and failing on order. */
#include "base/alloc.h"

#include "tests/unit/unit.h"

static void
blocks_are_zeroed_and_16_aligned(void)
{
    for (size_t bytes = 0; bytes < 200; bytes++) {
        unsigned char *block = trpi_alloc(bytes);

        UNIT_REQUIRE(block != NULL);
        UNIT_EQUAL((uintptr_t)block % 16, 0);
        for (size_t i = 0; i < bytes; i++) {
            UNIT_REQUIRE(block[i] == 0);
            block[i] = 0xff;
        }
        trpi_free(block);
    }
}

static void
aligned_blocks_are_zeroed_and_aligned(void)
{
    for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        unsigned char *block = trpi_alloc_aligned(alignment, 300);

        UNIT_REQUIRE(block != NULL);
        UNIT_EQUAL((uintptr_t)block % alignment, 0);
        UNIT_EQUAL(block[0] | block[299], 0);
        trpi_free(block);
    }
}

static void
the_nth_allocation_fails_and_only_that_one(void)
{
    void *first, *second, *third;

    trpi_alloc_fail_after(1);
    first = trpi_alloc(8);
    second = trpi_alloc(8);
    third = trpi_alloc(8);
    trpi_alloc_fail_after(-1);
    UNIT_TRUE(first != NULL);
    UNIT_TRUE(second == NULL);
    UNIT_TRUE(third != NULL);
    trpi_free(first);
    trpi_free(third);
}

static void
each_way_to_the_heap_can_fail(void)
{
    char *kept = trpi_strdup("kept");

    UNIT_REQUIRE(kept != NULL);
    trpi_alloc_fail_after(0);
    UNIT_TRUE(trpi_alloc(1) == NULL);
    trpi_alloc_fail_after(0);
    UNIT_TRUE(trpi_alloc_aligned(64, 1) == NULL);
    trpi_alloc_fail_after(0);
    UNIT_TRUE(trpi_strdup("x") == NULL);
    trpi_alloc_fail_after(0);
    UNIT_TRUE(trpi_realloc(kept, 100) == NULL);
    trpi_alloc_fail_after(-1);
    UNIT_TEXT(kept, "kept");
    trpi_free(kept);
}

static void
an_auto_pointer_frees_itself(void)
{
    char *text TRPI_AUTO_FREE = trpi_strdup("the leak checker is the witness");
    char *nothing TRPI_AUTO_FREE = NULL;

    UNIT_TRUE(text != NULL);
    UNIT_TRUE(nothing == NULL);
}

UNIT_BEGIN("alloc")
UNIT(blocks_are_zeroed_and_16_aligned)
UNIT(aligned_blocks_are_zeroed_and_aligned)
UNIT(the_nth_allocation_fails_and_only_that_one)
UNIT(each_way_to_the_heap_can_fail)
UNIT(an_auto_pointer_frees_itself)
UNIT_END
