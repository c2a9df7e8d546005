/* cmd_singleton.c - `troupe singleton [NAME]`: where each singleton runs, since when, and the state
 * of a hand-over.
 *
 * Tests.   tests/system/cli_fake.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

enum { COLUMNS = 6 };

static bool
is_wanted(const trpi_cli *cli, const cJSON *singleton)
{
    return cli->args_count == 0 || strcmp(trpi_cli_get(singleton, "name"), cli->args[0]) == 0;
}

static bool
row_add(trpi_cli_table *table, const cJSON *singleton)
{
    char since[24], state[24];
    const char *host = trpi_json_get_text(singleton, "host");
    const char *waits = trpi_json_get_text(singleton, "waits");
    (void)trpi_cli_age(trpi_cli_get_number(singleton, "hostMs", 0), since);
    (void)trpi_cli_age(trpi_cli_get_number(singleton, "stateMs", 0), state);
    const char *cells[COLUMNS] = { trpi_cli_get(singleton, "name"),
                                   host == NULL ? "-" : host,
                                   host == NULL ? "-" : since,
                                   trpi_cli_get(singleton, "state"),
                                   state,
                                   waits == NULL ? "-" : waits };
    return trpi_cli_table_row(table, COLUMNS, cells);
}

static int
table_print(const trpi_cli *cli, const cJSON *list)
{
    static const char *const head[COLUMNS] = {
        "NAME", "HOST", "SINCE", "STATE", "FOR", "WAITS FOR"
    };
    trpi_cli_table table = { 0 };
    const cJSON *singleton;
    unsigned shown = 0;
    bool done = true;
    cJSON_ArrayForEach(singleton, list)
    {
        if (is_wanted(cli, singleton)) {
            done = done && (shown > 0 || trpi_cli_table_row(&table, COLUMNS, head)) &&
                   row_add(&table, singleton);
            shown++;
        }
    }
    if (done) {
        trpi_cli_table_print(&table, "");
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
singleton_once(trpi_cli *cli)
{
    cJSON *reply, *singleton;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "singleton"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "singletons");
    int found = 0;
    for (int i = cJSON_GetArraySize(list) - 1; i >= 0; i--) {
        if (is_wanted(cli, cJSON_GetArrayItem(list, i))) {
            found++;
        } else {
            cJSON_DeleteItemFromArray(list, i);
        }
    }
    if (cli->args_count > 0 && found == 0) {
        code =
            trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "this node knows no singleton %s", cli->args[0]);
    } else if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        cJSON_ArrayForEach(singleton, list)
        {
            (void)puts(trpi_cli_get(singleton, "name"));
        }
    } else {
        code = table_print(cli, list);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_singleton(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, singleton_once);
}
