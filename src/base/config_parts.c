/* config_parts.c - the keys of all rooms as one list.
 *
 * Why.   A key stands in the room that reads it, in its keys.c (config_keys.h). This room knows
 *        nothing of those above it: it walks the list of the uppermost room (trpi_config_parts).
 * Tests. tests/unit/base/config_tree_test.c, tests/unit/node/config_test.c
 */
#include "base/config.h"

const trpi_config_row *
trpi_config_row_next(const trpi_config_row *row)
{
    if (row != NULL && row[1].key != NULL) {
        return row + 1;
    }
    const trpi_config_part *const *part = trpi_config_parts;
    if (row != NULL) { /* the last one of its part */
        while (row != &(*part)->rows[(*part)->count - 1]) {
            part++;
        }
        part++;
    }
    return *part != NULL ? (*part)->rows : NULL;
}

const trpi_config_alias *
trpi_config_alias_next(const trpi_config_alias *alias)
{
    if (alias != NULL && alias[1].akka != NULL) {
        return alias + 1;
    }
    bool found = alias == NULL;
    for (const trpi_config_part *const *part = trpi_config_parts; *part != NULL; part++) {
        const trpi_config_alias *first = (*part)->aliases;
        if (found && first != NULL) {
            return first;
        }
        for (const trpi_config_alias *a = first; !found && a != NULL && a->akka != NULL; a++) {
            found = a == alias;
        }
    }
    return NULL;
}

const char *
trpi_config_shown(const trpi_config_entry *entry, size_t index)
{
    const char *value = entry->values[index];
    bool is_secret = entry->row != NULL && entry->row->is_secret;
    return *value != '\0' && is_secret ? "(secret)" : value;
}
