/* cmd_upgrade.c - upgrade: a newer version of a plugin, while its actors live.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/upgrade.sh
 */
#include "cluster/cli/cli.h"

static void
print_upgrade(const cJSON *reply)
{
    const cJSON *row, *kept = cJSON_GetObjectItemCaseSensitive(reply, "kept");
    double changed = trpi_cli_get_number(reply, "changed", 0);
    double count = trpi_cli_get_number(reply, "keptCount", 0);
    (void)printf("%s  upgraded (%.1f s): %.0f actor%s changed\n", trpi_cli_get(reply, "plugin"),
                 trpi_cli_get_number(reply, "elapsedMs", 0) / 1000, changed,
                 changed == 1 ? "" : "s");
    cJSON_ArrayForEach(row, kept)
    {
        (void)printf("%s  keeps its old code: %s\n", trpi_cli_get(row, "path"),
                     trpi_cli_get(row, "why"));
    }
    if (count > cJSON_GetArraySize(kept)) {
        (void)printf("... and %.0f more, which the log names\n", count - cJSON_GetArraySize(kept));
    }
    if (count > 0) {
        (void)puts("troupe restart PATH makes such an actor anew, with the new code and a fresh "
                   "state; or upgrade again, with a file\nthat can change it");
    }
}

int
trpi_cli_run_upgrade(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "upgrade");
    if (request != NULL && !trpi_json_add_text(request, "plugin", cli->args[0])) {
        cJSON_Delete(request);
        request = NULL;
    }
    cli->order = "the upgrade goes on; the log says how it ends (troupe logs)";
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (!cli->quiet) {
        print_upgrade(reply);
    }
    if (trpi_cli_get_number(reply, "keptCount", 0) > 0) {
        code = TRPI_CTL_EXIT_NO;
    }
    cJSON_Delete(reply);
    return code;
}
