/* cmd_all.c - --all-members: the answers of every member to one command, and one exit code.
 *
 * Why.     At night one question is enough: which member sees what. A member that is silent is
 *          never taken for one that is well.
 * Tests.   tests/system/cli_fake.sh, tests/multinode/all_members.sh
 */
#include "cluster/cli/cli.h"

/* The members that have not answered: "demo@h:1 (why), demo@h:2 (why)"; returns their number. */
static unsigned
silent_name(const cJSON *members, char *text, size_t bytes)
{
    unsigned count = 0;
    size_t used = 0;
    const cJSON *row;
    text[0] = '\0';
    cJSON_ArrayForEach(row, members)
    {
        if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(row, "answer"))) {
            count++;
            int more = used < bytes
                           ? snprintf(text + used, bytes - used, "%s%s (%s)", used > 0 ? ", " : "",
                                      trpi_cli_short(trpi_cli_get(row, "node")),
                                      trpi_cli_get(row, "error"))
                           : 0; /* cut is fine */
            used += more > 0 ? (size_t)more : 0;
        }
    }
    return count;
}

static int
answers_print(trpi_cli *cli, const cJSON *members, int (*print)(trpi_cli *cli, const cJSON *answer))
{
    const cJSON *row;
    const char *before = "";
    int code = 0;
    cJSON_ArrayForEach(row, members)
    {
        const cJSON *answer = cJSON_GetObjectItemCaseSensitive(row, "answer");
        if (cli->output != TRPI_CLI_NAME) {
            (void)printf("%s== %s\n", before, trpi_cli_get(row, "node"));
            before = "\n";
        }
        if (cJSON_IsObject(answer)) {
            code = code == 0 ? print(cli, answer) : code;
        } else if (cli->output != TRPI_CLI_NAME) {
            (void)printf("no answer: %s\n", trpi_cli_get(row, "error"));
        }
    }
    trpi_cli_flush();
    return code;
}

int
trpi_cli_all_once(trpi_cli *cli, const char *cmd, int (*print)(trpi_cli *cli, const cJSON *answer))
{
    char silent[1024];
    cJSON *reply, *request;
    if (cli->output == TRPI_CLI_PROM) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "--all-members: -o prom has the figures of one node; ask each one");
    }
    request = trpi_cli_request_new(cli, cmd);
    if (!trpi_json_add_bool(request, "allMembers", true)) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    const cJSON *members = cJSON_GetObjectItemCaseSensitive(reply, "members"), *row;
    if (!cJSON_IsArray(members)) {
        cJSON_Delete(reply);
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "this node is of a version that does not know --all-members");
    }
    trpi_cli_watch_begin(cli);
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        code = answers_print(cli, members, print);
    }
    bool says_no = false;
    cJSON_ArrayForEach(row, members)
    {
        says_no = says_no || cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(row, "yes"));
    }
    unsigned count = silent_name(members, silent, sizeof silent);
    cJSON_Delete(reply);
    if (code == 0 && count > 0) {
        code = trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT, "%u member%s not answered: %s", count,
                             count == 1 ? " has" : "s have", silent);
    }
    return says_no && (code == 0 || code == TRPI_CTL_EXIT_TIMEOUT) ? TRPI_CTL_EXIT_NO : code;
}
