/* cmd_drain.c - drain and undrain: a member hands its shards over, and is given none until undrain.
 *
 * Tests.   tests/system/cli_fake.sh, tests/multinode/drain.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

static bool
is_json(const trpi_cli *cli)
{
    return cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL;
}

/* "consumer, ids" */
static void
print_list(const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        (void)printf("%s%s", item == list->child ? "" : ", ", cJSON_GetStringValue(item));
    }
}

static void
print_drained(const trpi_cli *cli, const cJSON *reply)
{
    const cJSON *singletons = cJSON_GetObjectItemCaseSensitive(reply, "singletons");
    const cJSON *stays = cJSON_GetObjectItemCaseSensitive(reply, "stays");
    const char *node = trpi_cli_short(trpi_cli_get(reply, "node"));
    double before = trpi_cli_get_number(reply, "shardsBefore", 0);
    double left = trpi_cli_get_number(reply, "shards", 0);
    if (trpi_cli_has(cli, TRPI_CLI_NO_WAIT)) {
        (void)printf("%s  drained (ordered)\n", node);
        return;
    }
    (void)printf("%s  drained (%.1f s", node, trpi_cli_get_number(reply, "elapsedMs", 0) / 1000);
    if (before > left) {
        (void)printf(", %.0f shards were handed over", before - left);
    }
    (void)puts(")");
    if (cJSON_GetArraySize(stays) > 0) {
        (void)printf("%.0f shards stay, since no other node that is not drained hosts their type: ",
                     left);
        print_list(stays);
        (void)puts("\nstart another node of these types, then they move by themselves");
    }
    if (cJSON_GetArraySize(singletons) > 0) {
        (void)fputs("singletons stay, since the oldest member has them: ", stdout);
        print_list(singletons);
        (void)printf("\nto move them: troupe leave %s\n", node);
    }
}

static int
drain_run(trpi_cli *cli, const char *cmd)
{
    const char *member = cli->args_count > 0 ? cli->args[0] : NULL;
    cJSON *reply, *request = trpi_cli_request_new(cli, cmd);
    bool drains = strcmp(cmd, "drain") == 0;
    if (request != NULL &&
        (!trpi_json_add_bool(request, "wait", !trpi_cli_has(cli, TRPI_CLI_NO_WAIT)) ||
         (member != NULL && !trpi_json_add_text(request, "member", member)))) {
        cJSON_Delete(request);
        request = NULL;
    }
    cli->order = drains ? "the member is drained, and its shards go on moving (troupe shards)"
                        : "the member is drained no more";
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (is_json(cli)) {
        trpi_cli_print_json(cli, reply);
    } else if (drains && !cli->quiet) {
        print_drained(cli, reply);
    } else if (!cli->quiet) {
        (void)printf("%s  drained no more\n", trpi_cli_short(trpi_cli_get(reply, "node")));
    }
    if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(reply, "stays")) > 0 &&
        !trpi_cli_has(cli, TRPI_CLI_NO_WAIT)) {
        code = TRPI_CTL_EXIT_NO; /* a script must not stop it now */
    }
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_drain(trpi_cli *cli)
{
    return drain_run(cli, "drain");
}

int
trpi_cli_run_undrain(trpi_cli *cli)
{
    return drain_run(cli, "undrain");
}
