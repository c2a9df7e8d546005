/* units.c - durations, sizes and numbers from text.
 *
 * Tests.   tests/unit/base/units_test.c, tests/fuzz/config_fuzz.c
 */
#include "base/units.h"

#include <stddef.h>
#include <string.h>

#include "base/decimal.h"

const trpi_unit trpi_units_time[] = {
    { "ms", 1 },          { "millis", 1 },      { "milliseconds", 1 }, { "s", 1000 },
    { "second", 1000 },   { "seconds", 1000 },  { "m", 60000 },        { "min", 60000 },
    { "minute", 60000 },  { "minutes", 60000 }, { "h", 3600000 },      { "hour", 3600000 },
    { "hours", 3600000 }, { "d", 86400000 },    { "day", 86400000 },   { "days", 86400000 },
    { NULL, 0 },
};
const trpi_unit trpi_units_size[] = {
    { "", 1 },
    { "b", 1 },
    { "B", 1 },
    { "KiB", 1024 },
    { "k", 1024 },
    { "K", 1024 },
    { "MiB", 1048576 },
    { "m", 1048576 },
    { "M", 1048576 },
    { "GiB", 1073741824 },
    { "g", 1073741824 },
    { "G", 1073741824 },
    { "kB", 1000 },
    { "MB", 1000000 },
    { "GB", 1000000000 },
    { NULL, 0 },
};

const trpi_unit *
trpi_unit_find(const trpi_unit *units, const char *text)
{
    text += strspn(text, " \t");
    for (; units->name != NULL; units++) {
        if (strcmp(units->name, text) == 0) {
            return units;
        }
    }
    return NULL;
}

bool
trpi_duration_parse(const char *text, unsigned flags, uint64_t low_ms, uint64_t high_ms,
                    uint64_t *ret_ms)
{
    trpi_decimal decimal;
    const char *rest = NULL;
    const trpi_unit *unit;
    int64_t ms = 0;

    if (!trpi_decimal_take(text, &decimal, &rest)) {
        return false;
    }
    if ((*rest == ' ' || *rest == '\t') && (flags & TRPI_DURATION_BLANKS) == 0) {
        return false;
    }
    unit = *rest == '\0' && (flags & TRPI_DURATION_BARE) != 0
               ? &trpi_units_time[0]
               : trpi_unit_find(trpi_units_time, rest);
    if (unit == NULL || !trpi_decimal_times(&decimal, unit->factor, &ms) || ms < 0 ||
        decimal.negative || (uint64_t)ms < low_ms || (uint64_t)ms > high_ms) {
        return false;
    }
    *ret_ms = (uint64_t)ms;
    return true;
}

bool
trpi_whole_parse(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number)) {
            return false;
        }
    }
    if (number < low || number > high) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool
trpi_whole32_parse(const char *text, uint32_t low, uint32_t high, uint32_t *ret_number)
{
    uint64_t number = 0;

    if (!trpi_whole_parse(text, low, high, &number)) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

bool
trpi_integer_parse(const char *text, int64_t low, int64_t high, int64_t *ret_number)
{
    bool negative = text[0] == '-';
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1u : (uint64_t)INT64_MAX, digits = 0;
    int64_t number;

    if (!trpi_whole_parse(text + (negative ? 1 : 0), 0, most, &digits)) {
        return false;
    }
    number = !negative ? (int64_t)digits : digits == most ? INT64_MIN : -(int64_t)digits;
    if (number < low || number > high) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool
trpi_float_parse(const char *text, double low, double high, double *ret_number)
{
    trpi_decimal decimal;
    const char *rest = NULL;
    double number;

    if (!trpi_decimal_take(text, &decimal, &rest) || *rest != '\0') {
        return false;
    }
    number = trpi_decimal_f64(&decimal);
    if (number < low || number > high) {
        return false;
    }
    *ret_number = number;
    return true;
}
