/* decimal.h - numbers as people write them, computed in integers: 1.1 h is 3,960,000 ms. */
#ifndef TRPI_BASE_DECIMAL_H
#define TRPI_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#define TRPI_DECIMAL_SCALE_MAX 30u /* digits behind the point, without zeros at the end */

typedef struct trpi_decimal { /* digits / 10^scale */
    bool negative;
    uint64_t digits;
    uint32_t scale;
} trpi_decimal;

/* Take "12", "-0.5", "1.25" from the start of text, whatever the locale; *ret_rest is what follows.
 * False: no digit at the start (or behind a minus), a point without digits behind it, or more
 * digits than 64 bits hold. */
bool trpi_decimal_take(const char *text, trpi_decimal *ret_decimal, const char **ret_rest);

/* Return the nearest double, whatever the locale. With more digits than 2^53 has, or more than 22
 * behind the point, it may be the next one. */
double trpi_decimal_f64(const trpi_decimal *decimal);
/* Multiply; false: the product is no whole number, or does not fit. */
bool trpi_decimal_times(const trpi_decimal *decimal, uint64_t factor, int64_t *ret_product);

#endif
