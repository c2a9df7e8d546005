/* cmd_shards.c - `troupe shards [TYPE] [--rebalance]`: where the shards of each type live;
 * `troupe entity TYPE ID`: where one entity lives.
 *
 * Shape.   The node says which member coordinates a type; that one has the table, and is asked
 *          through the node.
 * Tests.   tests/system/cli_fake.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

enum { COLUMNS = 5 };

static bool
is_wanted(const trpi_cli *cli, const cJSON *type)
{
    return cli->args_count == 0 || strcmp(trpi_cli_get(type, "type"), cli->args[0]) == 0;
}

static bool
rows_add(trpi_cli_table *table, const cJSON *type)
{
    const cJSON *home;
    bool done = true, first = true;
    cJSON_ArrayForEach(home, cJSON_GetObjectItemCaseSensitive(type, "nodes"))
    {
        char shards[24];
        (void)snprintf(shards, sizeof shards, "%.0f", trpi_cli_get_number(home, "shards", 0));
        const char *coordinator = trpi_json_get_text(type, "coordinator");
        const char *node = trpi_cli_get(home, "node");
        const char *cells[COLUMNS] = {
            first ? trpi_cli_get(type, "type") : "", node, shards, trpi_cli_get(home, "state"),
            coordinator != NULL && strcmp(coordinator, node) == 0 ? "coordinator" : ""
        };
        done = done && trpi_cli_table_row(table, COLUMNS, cells);
        first = false;
    }
    return done;
}

static int
table_print(const cJSON *list)
{
    static const char *const head[COLUMNS] = { "TYPE", "NODE", "SHARDS", "STATE", "" };
    trpi_cli_table table = { 0 };
    const cJSON *type;
    bool done = cJSON_GetArraySize(list) == 0 || trpi_cli_table_row(&table, COLUMNS, head);
    cJSON_ArrayForEach(type, list)
    {
        done = done && rows_add(&table, type);
    }
    if (done) {
        trpi_cli_table_print(&table, "");
    }
    trpi_cli_table_fini(&table);
    cJSON_ArrayForEach(type, list)
    {
        const char *waits = trpi_json_get_text(type, "waits"),
                   *why = trpi_json_get_text(type, "why");
        const char *coordinator = trpi_json_get_text(type, "coordinator");
        char age[24];
        if (coordinator == NULL) {
            (void)printf("%s: no member coordinates it yet\n", trpi_cli_get(type, "type"));
        }
        if (why != NULL) {
            (void)printf("%s: refused on this node: %s\n", trpi_cli_get(type, "type"), why);
        }
        if (waits != NULL) {
            (void)trpi_cli_age(trpi_cli_get_number(type, "waitsMs", 0), age);
            (void)printf("%s: waits for %s: %s\n", trpi_cli_get(type, "type"), age, waits);
        }
    }
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

/* Put the coordinator's row of a type in the place of this node's, if it can be had. */
static int
row_complete(trpi_cli *cli, cJSON *list, int at)
{
    const cJSON *type = cJSON_GetArrayItem(list, at);
    const char *coordinator = trpi_json_get_text(type, "coordinator");
    cJSON *reply = NULL, *request;
    if (coordinator == NULL ||
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(type, "coordinates"))) {
        return 0;
    }
    request = trpi_cli_request_new(cli, "shards");
    if (!trpi_json_add_text(request, "member", coordinator)) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    cJSON *theirs = code == 0 ? cJSON_GetObjectItemCaseSensitive(reply, "types") : NULL;
    for (int i = cJSON_GetArraySize(theirs) - 1; i >= 0; i--) {
        if (strcmp(trpi_cli_get(cJSON_GetArrayItem(theirs, i), "type"),
                   trpi_cli_get(type, "type")) == 0) {
            cJSON_ReplaceItemInArray(list, at, cJSON_DetachItemFromArray(theirs, i));
            break;
        }
    }
    cJSON_Delete(reply);
    return code;
}

static int
shards_print(const trpi_cli *cli, cJSON *reply, cJSON *list)
{
    const cJSON *type;
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (cli->output == TRPI_CLI_NAME) {
        cJSON_ArrayForEach(type, list)
        {
            (void)puts(trpi_cli_get(type, "type"));
        }
    } else {
        return table_print(list);
    }
    return 0;
}

static int
shards_once(trpi_cli *cli)
{
    bool rebalances = trpi_cli_has(cli, TRPI_CLI_REBALANCE);
    cJSON *reply, *request = trpi_cli_request_new(cli, "shards");
    if (rebalances && cli->args_count == 0) {
        cJSON_Delete(request);
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--rebalance needs a TYPE");
    }
    if (rebalances && (!trpi_json_add_bool(request, "rebalance", true) ||
                       !trpi_json_add_text(request, "type", cli->args[0]))) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "types");
    for (int i = cJSON_GetArraySize(list) - 1; i >= 0; i--) {
        if (!is_wanted(cli, cJSON_GetArrayItem(list, i))) {
            cJSON_DeleteItemFromArray(list, i);
        } else if (code == 0) {
            code = row_complete(cli, list, i);
        }
    }
    if (cli->args_count > 0 && cJSON_GetArraySize(list) == 0) {
        code =
            trpi_cli_fail(TRPI_CTL_EXIT_NO, "this node knows no type of entities %s", cli->args[0]);
    } else if (code == 0) {
        code = shards_print(cli, reply, list);
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_shards(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, shards_once);
}

int
trpi_cli_run_entity(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "entity");
    if (!trpi_json_add_text(request, "type", cli->args[0]) ||
        !trpi_json_add_text(request, "text", cli->args[1])) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        const char *node = trpi_json_get_text(reply, "node");
        (void)printf("shard   %.0f\nnode    %s\nstate   %s\n",
                     trpi_cli_get_number(reply, "shard", 0), node == NULL ? "-" : node,
                     trpi_cli_get(reply, "state"));
    }
    cJSON_Delete(reply);
    return 0;
}
