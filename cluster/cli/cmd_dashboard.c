/* cmd_dashboard.c - `troupe dashboard`: the address of the node's page, with a code that opens it.
 *
 * Tests.   tests/system/dashboard.sh, tests/system/cli_fake.sh
 */
#include "cluster/cli/cli.h"

int
trpi_cli_run_dashboard(trpi_cli *cli)
{
    cJSON *reply = NULL;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "dashboard"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)puts(trpi_cli_get(reply, "url"));
    }
    cJSON_Delete(reply);
    return 0;
}
