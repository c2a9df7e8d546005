/* suggest.c - "did you mean": the nearest known word.
 *
 * Why.     A wrong word is refused, never guessed: scripts must not change their meaning when a
 *          command is added. But the error names what was probably meant.
 * Limits.  Words above WORD_BYTES_MAX get no suggestion.
 * Tests.   tests/unit/cli/options_test.c
 */
#include <string.h>

#include "cluster/cli/cli.h"

#define WORD_BYTES_MAX 48u

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) between two words of at most WORD_BYTES_MAX.
 * */
static unsigned
distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    unsigned rows[3][WORD_BYTES_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_bytes; j++) {
        last[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            unsigned cost = a[i - 1] != b[j - 1];
            row[j] = smaller(smaller(row[j - 1] + 1, last[j] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], before[j - 2] + 1);
            }
        }
        unsigned *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_bytes];
}

const char *
trpi_cli_suggest(const char *word, const char *const *names, size_t names_count)
{
    size_t bytes = strlen(word);
    if (bytes == 0 || bytes > WORD_BYTES_MAX) {
        return NULL;
    }
    const char *best = NULL;
    unsigned best_edits = (unsigned)bytes / 3 + 1;
    for (size_t index = 0; index < names_count; index++) {
        size_t name_bytes = strlen(names[index]);
        if (name_bytes > WORD_BYTES_MAX) {
            continue;
        }
        unsigned edits = distance(word, bytes, names[index], name_bytes);
        bool is_start = bytes >= 3 && bytes < name_bytes && memcmp(word, names[index], bytes) == 0;
        if (is_start) { /* an abbreviation is nearer than any misspelling but a single letter */
            edits = smaller(edits, 1);
        }
        if (edits < best_edits || (edits == best_edits && best == NULL)) {
            best = names[index];
            best_edits = edits;
        }
    }
    return best;
}
