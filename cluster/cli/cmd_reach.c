/* cmd_reach.c - `troupe reach`: which member can dial which other one.
 *
 * Tests.   tests/system/reach.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

enum { COLUMNS = 4 };

static bool
is_ok(const cJSON *way)
{
    return trpi_cli_get_true(way, "ok");
}

static bool
row_add(trpi_cli_table *table, const cJSON *way)
{
    bool asked = cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(way, "ok"));
    const char *cells[COLUMNS] = { trpi_cli_get(way, "from"), trpi_cli_get(way, "to"),
                                   is_ok(way) ? "yes"
                                   : asked    ? "no"
                                              : "unknown",
                                   trpi_cli_get(way, "reason") };
    return trpi_cli_table_row(table, COLUMNS, cells);
}

static int
table_print(const trpi_cli *cli, const cJSON *ways)
{
    static const char *const head[COLUMNS] = { "FROM", "TO", "REACHES", "REASON" };
    trpi_cli_table table = { 0 };
    unsigned all = 0, shown = 0, open = 0;
    bool done = true;
    const cJSON *way;
    cJSON_ArrayForEach(way, ways)
    {
        all++;
        open += is_ok(way);
        if (!is_ok(way) || cli->output == TRPI_CLI_WIDE) {
            done = done && (shown > 0 || trpi_cli_table_row(&table, COLUMNS, head)) &&
                   row_add(&table, way);
            shown++;
        }
    }
    if (done) {
        trpi_cli_table_print(&table, "");
        (void)printf("%u of %u ways can be dialled\n", open, all);
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
reach_once(trpi_cli *cli)
{
    cJSON *reply;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "reach"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    const cJSON *ways = cJSON_GetObjectItemCaseSensitive(reply, "ways"), *way;
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        cJSON_ArrayForEach(way, ways)
        {
            const char *to = trpi_json_get_text(way, "to"); /* NULL: of one that did not answer */
            if (!is_ok(way)) {
                (void)puts(to != NULL ? trpi_cli_get(way, "to") : trpi_cli_get(way, "from"));
            }
        }
    } else {
        code = table_print(cli, ways);
    }
    if (code == 0 && trpi_cli_get_number(reply, "failed", 0) > 0) {
        code = TRPI_CTL_EXIT_NO;
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_reach(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, reach_once);
}
