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

static const char *
text_or(const cJSON *json, const char *key, const char *fallback)
{
    const char *text = trpi_json_get_text(json, key);
    return text == NULL ? fallback : text;
}

static bool
row_add(trpi_cli_table *table, const char *type, const char *node, double count, const char *state,
        const char *note)
{
    char shards[24];
    (void)snprintf(shards, sizeof shards, "%.0f", count);
    const char *cells[COLUMNS] = { type, node, shards, state, note };
    return trpi_cli_table_row(table, COLUMNS, cells);
}

/* The coordinator's table of a type; without it the row of this node alone. */
static bool
rows_add(trpi_cli_table *table, const cJSON *type, const char *self)
{
    const cJSON *home, *homes = cJSON_GetObjectItemCaseSensitive(type, "nodes");
    const char *name = trpi_cli_get(type, "type"), *coordinator = text_or(type, "coordinator", "");
    bool done = true;
    if (cJSON_GetArraySize(homes) == 0) {
        return row_add(table, name, self, trpi_cli_get_number(type, "here", 0),
                       trpi_cli_get(type, "state"), "");
    }
    cJSON_ArrayForEach(home, homes)
    {
        const char *node = trpi_cli_get(home, "node");
        done = done && row_add(table, name, node, trpi_cli_get_number(home, "shards", 0),
                               trpi_cli_get(home, "state"),
                               strcmp(coordinator, node) == 0 ? "coordinator" : "");
        name = "";
    }
    return done;
}

/* Prints what the table does not show: that a node is silent, a refusal, and what is waited for. */
static void
notes_print(const cJSON *type)
{
    const char *name = trpi_cli_get(type, "type"), *waits = trpi_json_get_text(type, "waits");
    const char *why = trpi_json_get_text(type, "why"), *silent = trpi_json_get_text(type, "silent");
    char age[24];
    if (trpi_json_get_text(type, "coordinator") == NULL) {
        (void)printf("%s: no member coordinates it yet\n", name);
    }
    if (silent != NULL) {
        (void)printf("%s: its coordinator did not tell (%s): this is what the node knows\n", name,
                     silent);
    }
    if (why != NULL) {
        (void)printf("%s: refused on this node: %s\n", name, why);
    }
    if (waits != NULL) {
        (void)trpi_cli_age(trpi_cli_get_number(type, "waitsMs", 0), age);
        (void)printf("%s: waits for %s: %s\n", name, age, waits);
    }
}

static int
table_print(const cJSON *list, const char *self)
{
    static const char *const head[COLUMNS] = { "TYPE", "NODE", "SHARDS", "STATE", "" };
    trpi_cli_table table = { 0 };
    const cJSON *type;
    bool done = cJSON_GetArraySize(list) == 0 || trpi_cli_table_row(&table, COLUMNS, head);
    cJSON_ArrayForEach(type, list)
    {
        done = done && rows_add(&table, type, self);
    }
    if (done) {
        trpi_cli_table_print(&table, "");
    }
    trpi_cli_table_fini(&table);
    cJSON_ArrayForEach(type, list)
    {
        notes_print(type);
    }
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

/* Ask another member, through this node. Gives *ret_final, its answer or why there is none; NULL:
 * there is none. */
static cJSON *
member_ask(trpi_cli *cli, cJSON *request, const char *member, cJSON **ret_final)
{
    *ret_final = NULL;
    if (!trpi_json_add_text(request, "member", member)) {
        cJSON_Delete(request);
        return NULL;
    }
    int code = trpi_cli_call_quiet(cli, request, ret_final);
    return code == 0 ? *ret_final : NULL;
}

/* Put the coordinator's row of a type in the place of this node's, if it can be had. */
static bool
row_complete(trpi_cli *cli, cJSON *list, int at)
{
    cJSON *type = cJSON_GetArrayItem(list, at), *final;
    const char *coordinator = trpi_json_get_text(type, "coordinator");
    if (coordinator == NULL ||
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(type, "coordinates"))) {
        return true;
    }
    cJSON *reply = member_ask(cli, trpi_cli_request_new(cli, "shards"), coordinator, &final);
    cJSON *theirs = cJSON_GetObjectItemCaseSensitive(reply, "types");
    bool done = reply != NULL || trpi_json_add_text(type, "silent", text_or(final, "error", "?"));
    for (int i = cJSON_GetArraySize(theirs) - 1; i >= 0; i--) {
        if (strcmp(trpi_cli_get(cJSON_GetArrayItem(theirs, i), "type"),
                   trpi_cli_get(type, "type")) == 0) {
            (void)cJSON_ReplaceItemInArray(list, at, cJSON_DetachItemFromArray(theirs, i));
            break;
        }
    }
    cJSON_Delete(final);
    return done;
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
        return table_print(list, trpi_cli_get(reply, "selfNode"));
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
        } else if (!row_complete(cli, list, i)) {
            code = trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
        }
    }
    if (cli->args_count > 0 && cJSON_GetArraySize(list) == 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_NOT_FOUND, "this node knows no type of entities %s",
                             cli->args[0]);
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

static cJSON *
entity_request(const trpi_cli *cli)
{
    cJSON *request = trpi_cli_request_new(cli, "entity");
    if (!trpi_json_add_text(request, "type", cli->args[0]) ||
        !trpi_json_add_text(request, "text", cli->args[1])) {
        cJSON_Delete(request);
        request = NULL;
    }
    return request;
}

int
trpi_cli_run_entity(trpi_cli *cli)
{
    cJSON *reply, *theirs = NULL, *final = NULL;
    int code = trpi_cli_call(cli, entity_request(cli), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    const char *node = trpi_json_get_text(reply, "node");
    if (node != NULL && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "here"))) {
        theirs = member_ask(cli, entity_request(cli), node, &final); /* else what this node knows */
    }
    const cJSON *known = theirs != NULL ? theirs : reply;
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, known);
    } else {
        (void)printf("shard   %.0f\nnode    %s\nstate   %s\n",
                     trpi_cli_get_number(known, "shard", 0), text_or(known, "node", "-"),
                     trpi_cli_get(known, "state"));
    }
    cJSON_Delete(final);
    cJSON_Delete(reply);
    return 0;
}
