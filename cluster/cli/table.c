/* table.c - rows of text in aligned columns.
 *
 * Why.     Columns are as wide as their widest cell, in characters, so that a long host name does
 *          not break the lines of the others. The last cell of a row is not padded: no trailing
 *          spaces.
 * Limits.  TRPI_CLI_COLUMNS_MAX columns.
 * Tests.   tests/unit/cli/options_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/cli/cli.h"

/* Characters of UTF-8 text; escape sequences (colour) take no room. */
static size_t
text_columns(const char *text)
{
    size_t columns = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\033') {
            c += strcspn(c, "m");
            if (*c == '\0') {
                break;
            }
        } else {
            columns += ((unsigned char)*c & 0xc0) != 0x80;
        }
    }
    return columns;
}

bool
trpi_cli_table_row(trpi_cli_table *table, unsigned columns, const char *const *cells)
{
    if (columns > TRPI_CLI_COLUMNS_MAX || (table->rows_count > 0 && columns != table->columns)) {
        return false;
    }
    if (trpi_array_reserve(&table->cells, table->rows_count, &table->rows_room,
                           columns * sizeof *table->cells, 1, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        return false;
    }
    table->columns = columns;
    char **row = table->cells + table->rows_count * columns;
    for (unsigned column = 0; column < columns; column++) {
        row[column] = trpi_strdup(cells[column]);
        if (row[column] == NULL) {
            while (column > 0) {
                trpi_free(row[--column]);
            }
            return false;
        }
    }
    table->rows_count++;
    return true;
}

void
trpi_cli_table_print(const trpi_cli_table *table, const char *indent)
{
    size_t widths[TRPI_CLI_COLUMNS_MAX] = { 0 };
    for (size_t index = 0; index < table->rows_count * table->columns; index++) {
        size_t columns = text_columns(table->cells[index]);
        size_t *width = &widths[index % table->columns];
        *width = columns > *width ? columns : *width;
    }
    for (size_t row = 0; row < table->rows_count; row++) {
        char **cells = table->cells + row * table->columns;
        unsigned last = table->columns - 1;
        while (last > 0 && cells[last][0] == '\0') {
            last--;
        }
        (void)fputs(indent, stdout);
        for (unsigned column = 0; column <= last; column++) {
            int padding =
                column == last ? 0 : (int)(widths[column] - text_columns(cells[column])) + 2;
            (void)printf("%s%*s", cells[column], padding, "");
        }
        (void)putchar('\n');
    }
}

void
trpi_cli_table_fini(trpi_cli_table *table)
{
    for (size_t index = 0; index < table->rows_count * table->columns; index++) {
        trpi_free(table->cells[index]);
    }
    trpi_free(table->cells);
    *table = (trpi_cli_table){ 0 };
}
