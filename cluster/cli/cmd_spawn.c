/* cmd_spawn.c - spawn and watch: the beginning and the end of an actor.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/spawn.sh
 */
#include "base/alloc.h"
#include "cluster/cli/cli.h"

static bool
text_add(const trpi_cli *cli, cJSON *request, trpi_cli_flag flag, const char *key)
{
    const char *text = trpi_cli_text(cli, flag);
    return text == NULL || trpi_json_add_text(request, key, text);
}

int
trpi_cli_run_spawn(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "spawn");
    if (!trpi_cli_has(cli, TRPI_CLI_PLUGIN)) {
        cJSON_Delete(request);
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "spawn needs --plugin FILE, the name of a file in plugins-dir");
    }
    if (!trpi_json_add_text(request, "path", cli->args[0]) ||
        !text_add(cli, request, TRPI_CLI_PLUGIN, "plugin") ||
        !text_add(cli, request, TRPI_CLI_ARGS, "text")) {
        cJSON_Delete(request);
        request = NULL;
    }
    cli->order = "the actor may have been started: troupe ls /user";
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (!cli->quiet) {
        (void)puts(trpi_cli_get(reply, "path"));
    }
    cJSON_Delete(reply);
    return 0;
}

int
trpi_cli_run_watch(trpi_cli *cli)
{
    char *path TRPI_AUTO_FREE = NULL;
    cJSON *reply = NULL;
    int code = trpi_cli_path_resolve(cli, cli->args[0], &path);
    if (code != 0) {
        return code;
    }
    cJSON *request = trpi_cli_request_new(cli, "watch");
    if (!trpi_json_add_text(request, "path", path)) {
        cJSON_Delete(request);
        request = NULL;
    }
    code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else if (!cli->quiet) {
        (void)printf("%s  %s (%.1f s)\n", trpi_cli_get(reply, "path"),
                     trpi_cli_get_true(reply, "addressTerminated") ? "is lost with its node"
                                                                   : "has ended",
                     trpi_cli_get_number(reply, "elapsedMs", 0) / 1000);
    }
    cJSON_Delete(reply);
    return 0;
}
