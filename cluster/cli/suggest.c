/* suggest.c - "did you mean": the nearest known word.
 *
 * Why.     A wrong word is refused, never guessed: scripts must not change their meaning when a
 *          command is added. But the error names the nearest known word.
 * Limits.  Words above WORD_BYTES_MAX get no suggestion.
 * Tests.   tests/unit/cli/options_test.c
 */
#include <string.h>

#include "base/nearest.h"
#include "cluster/cli/cli.h"

#define WORD_BYTES_MAX 48u

const char *
trpi_cli_suggest(const char *word, const char *const *names, size_t names_count)
{
    size_t bytes = strlen(word);
    if (bytes == 0 || bytes > WORD_BYTES_MAX) {
        return NULL;
    }
    const char *best = NULL;
    size_t best_edits = bytes / 3 + 1;
    for (size_t index = 0; index < names_count; index++) {
        size_t name_bytes = strlen(names[index]);
        if (name_bytes > WORD_BYTES_MAX) {
            continue;
        }
        size_t edits = trpi_edit_distance(word, names[index]);
        bool is_start = bytes >= 3 && bytes < name_bytes && memcmp(word, names[index], bytes) == 0;
        if (is_start) { /* an abbreviation is nearer than any misspelling but a single letter */
            edits = edits < 1 ? edits : 1;
        }
        if (edits < best_edits || (edits == best_edits && best == NULL)) {
            best = names[index];
            best_edits = edits;
        }
    }
    return best;
}
