/* cmd_graph.c - `graph`: the members, and which are unreachable for which, as a drawing.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/cli.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

static unsigned
number_of(const cJSON *members, const char *address)
{
    unsigned number = 0;
    const cJSON *member;
    cJSON_ArrayForEach(member, members)
    {
        if (strcmp(trpi_cli_get(member, "node"), address) == 0) {
            return number;
        }
        number++;
    }
    return number; /* one that is no member any more: nothing is drawn there */
}

/* Print an address without what would end a label. */
static void
label_print(const char *text)
{
    for (; *text != '\0'; text++) {
        (void)putchar(strchr("\"\\<>[]", *text) != NULL || (unsigned char)*text < ' ' ? '?'
                                                                                      : *text);
    }
}

static void
member_print(const cJSON *reply, const cJSON *member, unsigned number, bool mermaid)
{
    const char *node = trpi_cli_get(member, "node");
    const char *line = mermaid ? "<br/>" : "\\n";
    const cJSON *role;
    bool away = !trpi_cli_get_true(member, "reachable");
    (void)printf(mermaid ? "  m%u[\"" : "  m%u [label=\"", number);
    label_print(trpi_cli_short(node));
    (void)printf("%s%s", line, trpi_cli_get(member, "status"));
    cJSON_ArrayForEach(role, cJSON_GetObjectItemCaseSensitive(member, "roles"))
    {
        (void)fputs(" ", stdout);
        label_print(cJSON_GetStringValue(role) != NULL ? role->valuestring : "?");
    }
    if (strcmp(trpi_cli_get(reply, "leader"), node) == 0) {
        (void)printf("%sleader", line);
    }
    (void)puts(mermaid ? "\"]" : away ? "\", color=red];" : "\"];");
}

static void
drawing_print(const cJSON *reply, bool mermaid)
{
    const cJSON *members = cJSON_GetObjectItemCaseSensitive(reply, "members"), *member, *row;
    unsigned number = 0;
    (void)puts(mermaid ? "graph LR" : "digraph cluster {\n  node [shape=box];");
    cJSON_ArrayForEach(member, members)
    {
        member_print(reply, member, number++, mermaid);
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "unreachable"))
    {
        unsigned to = number_of(members, trpi_cli_get(row, "node"));
        cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(row, "observedBy"))
        {
            const char *observer = cJSON_GetStringValue(member);
            unsigned from = number_of(members, observer != NULL ? observer : "");
            if (from < number && to < number) {
                (void)printf(mermaid ? "  m%u -. unreachable .-> m%u\n"
                                     : "  m%u -> m%u [color=red, label=\"unreachable\"];\n",
                             from, to);
            }
        }
    }
    if (!mermaid) {
        (void)puts("}");
    }
}

int
trpi_cli_run_graph(trpi_cli *cli)
{
    const char *format = trpi_cli_text(cli, TRPI_CLI_FORMAT);
    cJSON *reply;
    bool json = cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL ||
                (format != NULL && strcmp(format, "json") == 0);
    if (format != NULL && strcmp(format, "dot") != 0 && strcmp(format, "mermaid") != 0 && !json) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--format of graph takes dot, mermaid or json");
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "members"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    if (json) {
        trpi_cli_print_json(cli, reply);
    } else {
        drawing_print(reply, format != NULL && strcmp(format, "mermaid") == 0);
        trpi_cli_flush();
    }
    cJSON_Delete(reply);
    return 0;
}
