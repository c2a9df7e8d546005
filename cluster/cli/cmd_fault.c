/* cmd_fault.c - fault: inject faults into the network of a node, list the rules, remove them.
 *
 * Tests.   tests/system/cli_fake.sh, tests/unit/node/fault_test.c
 */
#include <string.h>

#include "cluster/cli/cli.h"

/* Read the words behind `set PEER`: an optional direction, and the rule. 0, or 64. */
static int
rule_take(const trpi_cli *cli, cJSON *request)
{
    trpi_buffer rule = { 0 };
    unsigned at = 2;
    const char *word = cli->args_count > at ? cli->args[at] : "";
    bool ok = true;
    if (strcmp(word, "send") == 0 || strcmp(word, "receive") == 0 || strcmp(word, "both") == 0) {
        ok = trpi_json_add_text(request, "direction", word);
        at++;
    }
    if (at >= cli->args_count) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "set needs a rule, such as blackhole or lose=10%%; see troupe fault "
                             "--help");
    }
    for (; ok && at < cli->args_count; at++) {
        ok =
            trpi_buffer_append_text(&rule, cli->args[at], SIZE_MAX) == TRP_OK &&
            trpi_buffer_append_text(&rule, at + 1 < cli->args_count ? " " : "", SIZE_MAX) == TRP_OK;
    }
    ok = ok && trpi_buffer_append(&rule, "", 1, SIZE_MAX) == TRP_OK &&
         trpi_json_add_text(request, "rule", (const char *)rule.data);
    trpi_buffer_fini(&rule);
    return ok ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

static int
request_fill(const trpi_cli *cli, cJSON *request)
{
    const char *action = cli->args_count > 0 ? cli->args[0] : "list";
    const char *peer = cli->args_count > 1 ? cli->args[1] : NULL;
    bool is_set = strcmp(action, "set") == 0, is_clear = strcmp(action, "clear") == 0;
    bool is_list = strcmp(action, "list") == 0;
    if (!is_set && !is_clear && !is_list && strcmp(action, "disconnect") != 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "fault takes list, set, clear or disconnect, not '%s'", action);
    }
    if (peer == NULL && !is_list && !is_clear) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s needs a peer: host:port, or all", action);
    }
    if (cli->args_count > (is_set ? 16u : is_list ? 1u : 2u)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s does not take '%s'", action,
                             cli->args[cli->args_count - 1]);
    }
    if (!trpi_json_add_text(request, "action", action) ||
        (peer != NULL && !trpi_json_add_text(request, "peer", peer))) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    return is_set ? rule_take(cli, request) : 0;
}

static int
rules_print(const trpi_cli *cli, const cJSON *reply)
{
    static const char *const head[] = { "PEER", "SEND", "RECEIVE" };
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "rules"), *row;
    trpi_cli_table table = { 0 };
    bool done = cJSON_GetArraySize(list) == 0 || trpi_cli_table_row(&table, 3, head);
    cJSON_ArrayForEach(row, list)
    {
        const char *cells[] = { trpi_cli_get(row, "peer"), trpi_cli_get(row, "send"),
                                trpi_cli_get(row, "receive") };
        done = done && trpi_cli_table_row(&table, 3, cells);
    }
    if (done) {
        trpi_cli_table_print(&table, "");
        trpi_cli_flush();
        trpi_cli_note(
            cli, "%d rule%s; frames: %.0f passed, %.0f lost, %.0f repeated, %.0f delayed",
            cJSON_GetArraySize(list), cJSON_GetArraySize(list) == 1 ? "" : "s",
            trpi_cli_get_number(reply, "passed", 0), trpi_cli_get_number(reply, "lost", 0),
            trpi_cli_get_number(reply, "repeated", 0), trpi_cli_get_number(reply, "delayed", 0));
    }
    trpi_cli_table_fini(&table);
    return done ? 0 : trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
}

int
trpi_cli_run_fault(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "fault");
    /* NULL: the call prints the error */
    int code = request != NULL ? request_fill(cli, request) : 0;
    if (code != 0) {
        cJSON_Delete(request);
        return code;
    }
    bool is_list = cli->args_count == 0 || strcmp(cli->args[0], "list") == 0;
    cli->order = is_list ? NULL : "the node has taken it (troupe fault shows it)";
    code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (cli->output == TRPI_CLI_TABLE) {
        code = rules_print(cli, reply);
    } else {
        trpi_cli_print_json(cli, reply);
    }
    cJSON_Delete(reply);
    return code;
}
