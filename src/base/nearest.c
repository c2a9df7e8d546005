/* nearest.c - distance between short names (optimal string alignment).
 *
 * Limits. TRPI_NEAREST_BYTES_MAX, so that the three rows are on the stack.
 * Tests.  tests/unit/node/control_request_test.c, tests/unit/node/config_test.c
 */
#include "base/nearest.h"

#include <string.h>

size_t
trpi_edit_distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    if (m > TRPI_NEAREST_BYTES_MAX || n > TRPI_NEAREST_BYTES_MAX) {
        return (size_t)-1;
    }
    size_t rows[3][TRPI_NEAREST_BYTES_MAX + 1];
    for (size_t j = 0; j <= n; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < best) {
                best = above2[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[m % 3][n];
}

const char *
trpi_nearest(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(name) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t edits = trpi_edit_distance(name, names[i]);
        if (edits < best_distance || (edits == best_distance && !best)) {
            best = names[i];
            best_distance = edits;
        }
    }
    return best;
}
