/* Structs that begin with their size: programs older and newer than the library. */
#include "base/sized.h"

#include <stdint.h>

#include "tests/unit/unit.h"

/* The same struct in three releases; the library is of the second. */
typedef struct first {
    size_t size;
    uint32_t a, b;
} first;
typedef struct known {
    size_t size;
    uint32_t a, b;
    const char *text;
} known;
typedef struct later {
    size_t size;
    uint32_t a, b;
    const char *text;
    uint64_t more;
} later;

/* Read a struct of any release as the library does. */
static bool
accepts(const void *given, known *ret_read)
{
    const known *options = given;
    known own = { .size = sizeof own, .text = "default" };

    if (!TRPI_SIZED_TAKE(options, &own, b)) {
        return false;
    }
    *ret_read = *options;
    return true;
}

static void
an_older_struct_is_read_as_far_as_it_goes(void)
{
    first old = { sizeof(old), 1, 2 };
    known read, copy = { sizeof copy, 7, 8, "default" };
    const known *given = (const known *)(const void *)&old;

    UNIT_REQUIRE(accepts(&old, &read));
    UNIT_TRUE(read.size == sizeof(known) && read.a == 1 && read.b == 2 && read.text == NULL);
    UNIT_TRUE(TRPI_SIZED_COPY(given, &copy, b));
    UNIT_TRUE(copy.size == sizeof copy && copy.a == 1 && copy.b == 2 && copy.text == NULL);
}

static void
a_struct_of_the_same_release_is_not_copied(void)
{
    known given = { sizeof given, 1, 2, "x" }, own;
    const known *options = &given;

    UNIT_TRUE(TRPI_SIZED_TAKE(options, &own, b) && options == &given);
    options = NULL;
    UNIT_TRUE(TRPI_SIZED_TAKE(options, &own, b) && options == NULL);
}

static void
a_newer_struct_is_refused_when_unknown_bytes_are_set(void)
{
    later new = { sizeof(new), 1, 2, "x", 0 };
    known read;

    UNIT_REQUIRE(accepts(&new, &read));
    UNIT_TRUE(read.size == sizeof read && read.a == 1 && read.b == 2 && read.text == new.text);
    for (unsigned i = 0; i < sizeof new.more; i++) {
        new.more = (uint64_t)1 << (8 * i);
        UNIT_TRUE(!accepts(&new, &read));
    }
}

static void
a_size_that_no_release_had_is_refused(void)
{
    static union {
        size_t size;
        known known;
        unsigned char bytes[TRPI_SIZED_BYTES_MAX + 1];
    } given;
    known read;
    const struct {
        size_t size;
        bool fits;
    } sizes[] = { { 0, false },
                  { sizeof(size_t), false },
                  { sizeof(first) - 1, false },
                  { sizeof(first), true },
                  { sizeof(known) - 1, true },
                  { TRPI_SIZED_BYTES_MAX, true },
                  { TRPI_SIZED_BYTES_MAX + 1, false },
                  { SIZE_MAX, false } };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        given.size = sizes[i].size;
        UNIT_EQUAL(accepts(&given, &read), sizes[i].fits);
        UNIT_EQUAL(TRPI_SIZED_FITS(&given.known, b), sizes[i].fits);
        UNIT_EQUAL(TRPI_SIZED_FILL(&given.known, &read, b), sizes[i].fits);
        UNIT_TRUE(given.size == sizes[i].size);
    }
}

static void
a_struct_to_be_filled_is_written_as_far_as_it_goes(void)
{
    known own = { sizeof own, 1, 2, "x" };
    struct {
        first old;
        uint64_t behind;
    } older = { { sizeof(first), 9, 9 }, 77 };
    later newer = { sizeof newer, 9, 9, "y", 9 };

    UNIT_TRUE(TRPI_SIZED_FILL((known *)(void *)&older, &own, b));
    UNIT_TRUE(older.old.size == sizeof(first) && older.old.a == 1 && older.old.b == 2);
    UNIT_EQUAL(older.behind, 77);
    UNIT_TRUE(TRPI_SIZED_FILL((known *)(void *)&newer, &own, b));
    UNIT_TRUE(newer.size == sizeof newer && newer.a == 1 && newer.text == own.text);
    UNIT_EQUAL(newer.more, 0);
}

static void
a_member_that_an_older_struct_lacks_reads_as_zero(void)
{
    struct {
        first old;
        const char *behind;
    } older = { { sizeof(first), 1, 2 }, "not its own" };
    const known *borrowed = (const known *)(const void *)&older;

    UNIT_TRUE(TRPI_SIZED_MEMBER(borrowed, text) == NULL);
    UNIT_EQUAL(TRPI_SIZED_MEMBER(borrowed, b), 2);
    older.old.size = sizeof(known);
    UNIT_TRUE(TRPI_SIZED_MEMBER(borrowed, text) != NULL);
}

UNIT_BEGIN("sized")
UNIT(an_older_struct_is_read_as_far_as_it_goes)
UNIT(a_struct_of_the_same_release_is_not_copied)
UNIT(a_newer_struct_is_refused_when_unknown_bytes_are_set)
UNIT(a_size_that_no_release_had_is_refused)
UNIT(a_struct_to_be_filled_is_written_as_far_as_it_goes)
UNIT(a_member_that_an_older_struct_lacks_reads_as_zero)
UNIT_END
