/* Growable bytes: limits, failing allocations, dropping from the front. */
#include "base/buffer.h"

#include "base/alloc.h"
#include "tests/unit/unit.h"

static void
appended_bytes_come_back_in_order(void)
{
    trpi_buffer buffer = { 0 };

    for (unsigned i = 0; i < 1000; i++) {
        uint8_t byte = (uint8_t)i;

        UNIT_EQUAL(trpi_buffer_append(&buffer, &byte, 1, 1000), TRP_OK);
    }
    UNIT_EQUAL(buffer.count, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        UNIT_REQUIRE(buffer.data[i] == (uint8_t)i);
    }
    trpi_buffer_fini(&buffer);
    UNIT_TRUE(buffer.data == NULL);
}

static void
at_the_limit_it_takes_and_one_past_it_refuses(void)
{
    trpi_buffer buffer = { 0 };

    UNIT_EQUAL(trpi_buffer_append(&buffer, "abcd", 4, 4), TRP_OK);
    UNIT_EQUAL(trpi_buffer_append(&buffer, "e", 1, 4), TRP_ELIMIT);
    UNIT_EQUAL(trpi_buffer_append(&buffer, NULL, 0, 4), TRP_OK);
    UNIT_EQUAL(trpi_buffer_reserve(&buffer, SIZE_MAX, TRPI_BUFFER_NO_LIMIT), TRP_ELIMIT);
    UNIT_EQUAL(buffer.count, 4);
    UNIT_EQUAL(memcmp(buffer.data, "abcd", 4), 0);
    trpi_buffer_fini(&buffer);
}

static void
a_failed_allocation_changes_nothing(void)
{
    trpi_buffer buffer = { 0 };
    uint8_t big[4096] = { 0 };

    UNIT_EQUAL(trpi_buffer_append_text(&buffer, "kept", 100), TRP_OK);
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_buffer_append(&buffer, big, sizeof big, TRPI_BUFFER_NO_LIMIT), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_EQUAL(buffer.count, 4);
    UNIT_EQUAL(memcmp(buffer.data, "kept", 4), 0);
    trpi_buffer_fini(&buffer);
}

static void
printf_appends_text_and_its_nul_is_not_counted(void)
{
    trpi_buffer buffer = { 0 };
    char *text;

    UNIT_EQUAL(trpi_buffer_printf(&buffer, 7, "%s-%d", "ab", 1234), TRP_OK);
    UNIT_EQUAL(buffer.count, 7);
    UNIT_EQUAL(trpi_buffer_printf(&buffer, 7, "x"), TRP_ELIMIT);
    text = trpi_buffer_take_text(&buffer);
    UNIT_TEXT(text, "ab-1234");
    UNIT_EQUAL(buffer.count, 0);
    trpi_free(text);
}

static void
dropping_from_the_front_keeps_the_rest(void)
{
    trpi_buffer buffer = { 0 };

    UNIT_EQUAL(trpi_buffer_append_text(&buffer, "abcdef", 100), TRP_OK);
    trpi_buffer_drop(&buffer, 0);
    trpi_buffer_drop(&buffer, 2);
    UNIT_EQUAL(buffer.count, 4);
    UNIT_EQUAL(memcmp(buffer.data, "cdef", 4), 0);
    trpi_buffer_drop(&buffer, 4);
    UNIT_EQUAL(buffer.count, 0);
    trpi_buffer_fini(&buffer);
}

UNIT_BEGIN("buffer")
UNIT(appended_bytes_come_back_in_order)
UNIT(at_the_limit_it_takes_and_one_past_it_refuses)
UNIT(a_failed_allocation_changes_nothing)
UNIT(printf_appends_text_and_its_nul_is_not_counted)
UNIT(dropping_from_the_front_keeps_the_rest)
UNIT_END
