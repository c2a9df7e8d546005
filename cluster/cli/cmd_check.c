/* cmd_check.c - `check`: one question, for scripts and probes: yes is 0, no is 1.
 *
 * Shape.   ready, alive: the node's own probes. The others are questions of the doctor's: the node
 *          examines all, and the checks of the question are printed. A warning is a no: a probe of
 *          certificates is told before they have ended.
 * Tests.   tests/system/cli_fake.sh, tests/system/management.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

#define IDS_MAX 3u

static const struct {
    const char *question;
    const char *ids[IDS_MAX]; /* of findings; NULL: no more */
} questions[] = {
    { "certs", { "certificate", "member-certificates", "files" } },
    { "clock", { "clock", NULL, NULL } },
    { "ports", { "links", "waiting", "seeds" } },
    { "versions", { "versions", "configuration", NULL } },
};
#define QUESTIONS_COUNT (sizeof questions / sizeof questions[0])

static bool
is_asked(size_t question, const char *id)
{
    for (size_t i = 0; i < IDS_MAX && questions[question].ids[i] != NULL; i++) {
        if (strcmp(questions[question].ids[i], id) == 0) {
            return true;
        }
    }
    return false;
}

/* Take out of the findings those that were not asked for; count the rest, and those of them that
 * are not ok. */
static unsigned
findings_choose(cJSON *findings, size_t question, unsigned *ret_bad)
{
    unsigned count = 0;
    *ret_bad = 0;
    for (cJSON *finding = findings != NULL ? findings->child : NULL, *next; finding != NULL;
         finding = next) {
        next = finding->next;
        if (!is_asked(question, trpi_cli_get(finding, "id"))) {
            cJSON_Delete(cJSON_DetachItemViaPointer(findings, finding));
            continue;
        }
        count++;
        *ret_bad += strcmp(trpi_cli_get(finding, "level"), "ok") != 0;
    }
    return count;
}

static void
findings_print(const cJSON *findings)
{
    const cJSON *finding;
    cJSON_ArrayForEach(finding, findings)
    {
        const char *advice = trpi_json_get_text(finding, "advice");
        (void)printf("%s: %s: %s%s%s\n", trpi_cli_get(finding, "id"),
                     trpi_cli_get(finding, "level"), trpi_cli_get(finding, "evidence"),
                     advice != NULL ? "; " : "", advice != NULL ? advice : "");
    }
}

static int
health_check(trpi_cli *cli)
{
    cJSON *reply = NULL;
    const cJSON *check;
    cli->timeout_ms =
        trpi_cli_has(cli, TRPI_CLI_TIMEOUT) ? cli->timeout_ms : TRPI_CTL_TIMEOUT_MS_DEFAULT;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, cli->args[0]), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(reply, "ok");
    if (cli->output != TRPI_CLI_TABLE) {
        trpi_cli_print_json(cli, reply);
    } else {
        cJSON_ArrayForEach(check, cJSON_GetObjectItemCaseSensitive(reply, "checks"))
        {
            (void)printf("%s: %s: %s\n", trpi_cli_get(check, "name"),
                         trpi_cli_get_true(check, "ok") ? "ok" : "fail",
                         trpi_cli_get(check, "detail"));
        }
    }
    code = strcmp(trpi_cli_get(reply, "status"), "up") == 0 ? 0 : TRPI_CTL_EXIT_NO;
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_check(trpi_cli *cli)
{
    cJSON *reply = NULL;
    size_t question = 0;
    unsigned bad = 0;
    if (strcmp(cli->args[0], "ready") == 0 || strcmp(cli->args[0], "alive") == 0) {
        return health_check(cli);
    }
    while (question < QUESTIONS_COUNT && strcmp(questions[question].question, cli->args[0]) != 0) {
        question++;
    }
    if (question == QUESTIONS_COUNT) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "nothing to check is called '%s'; there are: ready, alive, certs, "
                             "clock, ports, versions",
                             cli->args[0]);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "doctor"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    cJSON *findings = cJSON_GetObjectItemCaseSensitive(reply, "findings");
    unsigned count = findings_choose(findings, question, &bad);
    if (cli->output != TRPI_CLI_TABLE && findings != NULL) {
        trpi_cli_print_json(cli, findings);
    } else {
        findings_print(findings);
    }
    if (count == 0) {
        (void)trpi_cli_fail(0,
                            "the node has not answered the question: its version is another one");
    }
    cJSON_Delete(reply);
    return count > 0 && bad == 0 ? 0 : TRPI_CTL_EXIT_NO;
}
