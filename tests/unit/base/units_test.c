/* Durations and whole numbers: units, limits, and what is refused. */
#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "tests/unit/unit.h"

#define DAY_MS 86400000u

static uint64_t
duration(const char *text, unsigned flags)
{
    uint64_t ms = 0;

    return trpi_duration_parse(text, flags, 0, DAY_MS, &ms) ? ms : UINT64_MAX;
}

static void
a_duration_has_a_unit(void)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = { { "1ms", 1 },        { "500millis", 500 }, { "5s", 5000 },
                 { "1.5s", 1500 },    { "2m", 120000 },     { "2min", 120000 },
                 { "1.1h", 3960000 }, { "1d", DAY_MS },     { "24hours", DAY_MS },
                 { "0s", 0 },         { "1.0010s", 1001 },  { "86400000ms", DAY_MS } };
    static const char *const wrong[] = { "",          "5",
                                         "s",         "-5s",
                                         "+5s",       " 5s",
                                         "5 s",       "5s ",
                                         "5S",        "0.5ms",
                                         "1e3s",      "infs",
                                         "nans",      "0x5s",
                                         "5ss",       "1.s",
                                         ".5s",       "25h",
                                         "1d1ms",     "5,0s",
                                         "-0s",       "99999999999999999999s",
                                         "86400001ms" };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (!UNIT_TRUE(duration(good[i].text, 0) == good[i].ms)) {
            printf("  %s\n", good[i].text);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (!UNIT_TRUE(duration(wrong[i], 0) == UINT64_MAX)) {
            printf("  %s\n", wrong[i]);
        }
    }
}

static void
a_file_may_leave_the_unit_out_and_blanks_in(void)
{
    UNIT_TRUE(duration("250", TRPI_DURATION_BARE) == 250);
    UNIT_TRUE(duration("250 ", TRPI_DURATION_BARE) == UINT64_MAX);
    UNIT_TRUE(duration("5 \t s", TRPI_DURATION_BLANKS) == 5000);
    UNIT_TRUE(duration("5", TRPI_DURATION_BLANKS) == UINT64_MAX);
    UNIT_TRUE(duration("5 s", TRPI_DURATION_BARE) == UINT64_MAX);
}

static void
a_duration_has_limits(void)
{
    uint64_t ms = 7;

    UNIT_TRUE(trpi_duration_parse("10ms", 0, 10, 20, &ms) && ms == 10);
    UNIT_TRUE(trpi_duration_parse("20ms", 0, 10, 20, &ms) && ms == 20);
    UNIT_FALSE(trpi_duration_parse("9ms", 0, 10, 20, &ms));
    UNIT_FALSE(trpi_duration_parse("21ms", 0, 10, 20, &ms));
    UNIT_EQUAL(ms, 20); /* as it was */
}

static void
a_whole_number_has_digits_and_limits(void)
{
    static const char *const wrong[] = { "",
                                         " 1",
                                         "1 ",
                                         "+1",
                                         "-1",
                                         "0x1",
                                         "1.0",
                                         "1e1",
                                         "a",
                                         "1a",
                                         "18446744073709551616",
                                         "99999999999999999999999" };
    uint64_t number = 7;
    uint32_t small = 7;

    UNIT_TRUE(trpi_whole_parse("0", 0, 9, &number) && number == 0);
    UNIT_TRUE(trpi_whole_parse("18446744073709551615", 0, UINT64_MAX, &number) &&
              number == UINT64_MAX);
    UNIT_TRUE(trpi_whole_parse("00000000000000000000042", 0, UINT64_MAX, &number) && number == 42);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_FALSE(trpi_whole_parse(wrong[i], 0, UINT64_MAX, &number));
    }
    UNIT_EQUAL(number, 42);
    UNIT_TRUE(trpi_whole_parse("5", 5, 5, &number));
    UNIT_FALSE(trpi_whole_parse("4", 5, 5, &number));
    UNIT_FALSE(trpi_whole_parse("6", 5, 5, &number));
    UNIT_TRUE(trpi_whole32_parse("4294967295", 0, UINT32_MAX, &small) && small == UINT32_MAX);
    UNIT_FALSE(trpi_whole32_parse("4294967296", 0, UINT32_MAX, &small));
}

/* Against the C library, over drawn digits. A seed that is printed is the number of a round. */
static void
whole_numbers_agree_with_the_c_library(void)
{
    for (uint64_t round = 1; round <= 2000; round++) {
        uint64_t value = trpi_hash_u64(round) >> round % 64, number = 0;
        char text[32];

        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        if (!UNIT_TRUE(trpi_whole_parse(text, 0, UINT64_MAX, &number) &&
                       number == strtoull(text, NULL, 10) && number == value)) {
            printf("  round %llu\n", (unsigned long long)round);
        }
    }
}

static void
sizes_have_units(void)
{
    UNIT_EQUAL(trpi_unit_find(trpi_units_size, "KiB")->factor, 1024);
    UNIT_EQUAL(trpi_unit_find(trpi_units_size, "kB")->factor, 1000);
    UNIT_EQUAL(trpi_unit_find(trpi_units_size, "")->factor, 1);
    UNIT_TRUE(trpi_unit_find(trpi_units_size, "kb") == NULL);
    UNIT_TRUE(trpi_unit_find(trpi_units_time, "") == NULL);
}

static void
an_integer_may_have_a_minus(void)
{
    int64_t number = 7;

    UNIT_TRUE(trpi_integer_parse("-9223372036854775808", INT64_MIN, INT64_MAX, &number) &&
              number == INT64_MIN);
    UNIT_TRUE(trpi_integer_parse("9223372036854775807", INT64_MIN, INT64_MAX, &number) &&
              number == INT64_MAX);
    UNIT_FALSE(trpi_integer_parse("-9223372036854775809", INT64_MIN, INT64_MAX, &number));
    UNIT_FALSE(trpi_integer_parse("9223372036854775808", INT64_MIN, INT64_MAX, &number));
    UNIT_FALSE(trpi_integer_parse("-", INT64_MIN, INT64_MAX, &number));
    UNIT_FALSE(trpi_integer_parse("--1", INT64_MIN, INT64_MAX, &number));
    UNIT_FALSE(trpi_integer_parse(" 1", INT64_MIN, INT64_MAX, &number));
    UNIT_TRUE(trpi_integer_parse("-5", -5, 5, &number) && number == -5);
    UNIT_FALSE(trpi_integer_parse("-6", -5, 5, &number));
    UNIT_FALSE(trpi_integer_parse("6", -5, 5, &number));
    UNIT_EQUAL(number, -5);
}

/* A float is read alike in every locale, and as the C library reads it. */
static void
a_float_is_the_nearest_double(void)
{
    static const char *const wrong[] = { "",    ".5",  "5.", "0x1", "1e1",
                                         "nan", "inf", " 1", "1,5", "1 " };
    double number = 7;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_FALSE(trpi_float_parse(wrong[i], -9, 9, &number));
    }
    UNIT_TRUE(number == 7);
    UNIT_TRUE(trpi_float_parse("-0.25", -0.25, 0, &number) && number == -0.25);
    UNIT_FALSE(trpi_float_parse("-0.26", -0.25, 0, &number));
    UNIT_FALSE(trpi_float_parse("0.01", -0.25, 0, &number));
    for (uint64_t round = 1; round <= 2000; round++) {
        uint64_t digits = trpi_hash_u64(round) >> (11 + round % 53);
        char text[64];

        (void)snprintf(text, sizeof text, "%" PRIu64 ".%06" PRIu64, digits / 1000000,
                       digits % 1000000);
        if (!UNIT_TRUE(trpi_float_parse(text, 0, 1e20, &number) && number == strtod(text, NULL))) {
            printf("  round %llu: %s\n", (unsigned long long)round, text);
        }
    }
}

UNIT_BEGIN("units")
UNIT(a_duration_has_a_unit)
UNIT(a_file_may_leave_the_unit_out_and_blanks_in)
UNIT(a_duration_has_limits)
UNIT(a_whole_number_has_digits_and_limits)
UNIT(whole_numbers_agree_with_the_c_library)
UNIT(sizes_have_units)
UNIT(an_integer_may_have_a_minus)
UNIT(a_float_is_the_nearest_double)
UNIT_END
