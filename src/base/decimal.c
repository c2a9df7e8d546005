/* decimal.c - numbers as people write them, computed in integers.
 *
 * Why.     1.1 * 3600000 is not a whole number in doubles, and 2^53 + 1 is not a double at all.
 * Tests.   tests/unit/base/units_test.c, tests/unit/node/config_test.c
 */
#include "base/decimal.h"

#define EXACT_MAX 9007199254740992u /* 2^53: whole numbers up to it are doubles */
#define EXACT_SCALE_MAX 22u         /* and so are powers of ten up to 10^22 */

#include <stddef.h>

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
digit_add(uint64_t *digits, char c)
{
    return !__builtin_mul_overflow(*digits, 10u, digits) &&
           !__builtin_add_overflow(*digits, (uint64_t)(c - '0'), digits);
}

/* Take the digits behind the point, up to the last one that is not 0. */
static bool
fraction_take(const char *text, trpi_decimal *d, const char **ret_rest)
{
    size_t count = 0, used = 0;

    while (is_digit(text[count])) {
        count++;
        used = text[count - 1] != '0' ? count : used;
    }
    for (size_t i = 0; i < used; i++) {
        if (i >= TRPI_DECIMAL_SCALE_MAX || !digit_add(&d->digits, text[i])) {
            return false;
        }
    }
    d->scale = (uint32_t)used;
    *ret_rest = text + count;
    return count > 0;
}

bool
trpi_decimal_take(const char *text, trpi_decimal *ret_decimal, const char **ret_rest)
{
    trpi_decimal d = { .negative = text[0] == '-' };
    const char *p = text + (d.negative ? 1 : 0);

    if (!is_digit(*p)) {
        return false;
    }
    for (; is_digit(*p); p++) {
        if (!digit_add(&d.digits, *p)) {
            return false;
        }
    }
    if (*p == '.' && !fraction_take(p + 1, &d, &p)) {
        return false;
    }
    *ret_decimal = d;
    *ret_rest = p;
    return true;
}

double
trpi_decimal_f64(const trpi_decimal *decimal)
{
    long double value = (long double)decimal->digits, power = 1;

    if (decimal->digits <= EXACT_MAX && decimal->scale <= EXACT_SCALE_MAX) { /* one rounding */
        double divisor = 1;

        for (uint32_t i = 0; i < decimal->scale; i++) {
            divisor *= 10;
        }
        return (decimal->negative ? -(double)decimal->digits : (double)decimal->digits) / divisor;
    }
    for (uint32_t i = 0; i < decimal->scale; i++) {
        power *= 10;
    }
    return (double)((decimal->negative ? -value : value) / power);
}

bool
trpi_decimal_times(const trpi_decimal *decimal, uint64_t factor, int64_t *ret_product)
{
    unsigned __int128 product = (unsigned __int128)decimal->digits * factor;

    for (uint32_t i = 0; i < decimal->scale; i++) {
        if (product % 10 != 0) {
            return false;
        }
        product /= 10;
    }
    if (product > INT64_MAX) {
        return false;
    }
    *ret_product = decimal->negative ? -(int64_t)product : (int64_t)product;
    return true;
}
