/* units.h - durations, sizes and numbers as people write them: one table of units for files,
 * command lines, scenarios and tests.
 *
 * Durations, sizes and whole numbers are computed in integers: 1.1 h is 3,960,000 ms, and a value
 * that is not a whole number of milliseconds or bytes is refused. No sign, no blank at either end,
 * no exponent.
 */
#ifndef TRPI_BASE_UNITS_H
#define TRPI_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trpi_unit {
    const char *name;
    uint64_t factor;
} trpi_unit;

extern const trpi_unit trpi_units_time[]; /* factors in ms; NULL ends it */
extern const trpi_unit trpi_units_size[]; /* factors in bytes */

/* Return the unit that text names, without blanks before it; NULL: none. */
const trpi_unit *trpi_unit_find(const trpi_unit *units, const char *text);

enum {
    TRPI_DURATION_BARE = 1,  /* without a unit it is ms */
    TRPI_DURATION_BLANKS = 2 /* blanks may stand before the unit */
};

/* "500ms", "1.5s", "2m": false unless it is a duration from low_ms to high_ms. */
bool trpi_duration_parse(const char *text, unsigned flags, uint64_t low_ms, uint64_t high_ms,
                         uint64_t *ret_ms);
/* Decimal digits and nothing else: false unless they are a number from low to high. */
bool trpi_whole_parse(const char *text, uint64_t low, uint64_t high, uint64_t *ret_number);
/* The same with an optional minus. */
bool trpi_integer_parse(const char *text, int64_t low, int64_t high, int64_t *ret_number);
/* Digits with an optional minus and point ("-0.25"), whatever the locale: no exponent, no "nan".
 * False unless the number is from low to high. */
bool trpi_float_parse(const char *text, double low, double high, double *ret_number);
/* trpi_whole_parse() into 32 bits. */
bool trpi_whole32_parse(const char *text, uint32_t low, uint32_t high, uint32_t *ret_number);

#endif
