/* cmd_doctor.c - `doctor`: the faults of this node and its cluster, with evidence and advice.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/observe.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

static void
finding_print(const trpi_cli *cli, const cJSON *finding)
{
    const char *level = trpi_cli_get(finding, "level");
    const char *advice = trpi_json_get_text(finding, "advice");
    bool is_ok = strcmp(level, "ok") == 0;
    (void)printf(" %-5s %-20s %s\n", strcmp(level, "fail") == 0 ? "FAIL" : level,
                 trpi_cli_get(finding, "id"), trpi_cli_get(finding, "evidence"));
    if (!is_ok && advice != NULL && trpi_cli_has(cli, TRPI_CLI_FIX_HINTS)) {
        (void)printf("       %-20s do: %s\n       %-20s see: %s#%s\n", "", advice, "",
                     trpi_cli_get(finding, "page"), trpi_cli_get(finding, "id"));
    }
}

static void
summary_print(const trpi_cli *cli, const cJSON *reply)
{
    double failures = trpi_cli_get_number(reply, "failures", 0);
    double warnings = trpi_cli_get_number(reply, "warnings", 0);
    bool hints = failures + warnings == 0 || trpi_cli_has(cli, TRPI_CLI_FIX_HINTS);
    trpi_cli_note(cli, "%.0f failure%s, %.0f warning%s%s", failures, failures == 1 ? "" : "s",
                  warnings, warnings == 1 ? "" : "s",
                  hints ? "" : "; troupe doctor --fix-hints says what to do");
}

static int
doctor_print(trpi_cli *cli, const cJSON *reply)
{
    const cJSON *finding;
    cJSON_ArrayForEach(finding, cJSON_GetObjectItemCaseSensitive(reply, "findings"))
    {
        if (cli->output == TRPI_CLI_TABLE) {
            finding_print(cli, finding);
        } else if (strcmp(trpi_cli_get(finding, "level"), "ok") != 0) {
            (void)puts(trpi_cli_get(finding, "id"));
        }
    }
    if (cli->output == TRPI_CLI_TABLE) {
        trpi_cli_flush();
        summary_print(cli, reply);
    }
    return 0;
}

int
trpi_cli_run_doctor(trpi_cli *cli)
{
    cJSON *reply = NULL;
    if (trpi_cli_has(cli, TRPI_CLI_ALL_MEMBERS)) {
        return trpi_cli_all_once(cli, "doctor", doctor_print);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "doctor"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)doctor_print(cli, reply); /* it cannot fail */
    }
    code = trpi_cli_get_true(reply, "healthy") ? 0 : TRPI_CTL_EXIT_NO;
    cJSON_Delete(reply);
    return code;
}
