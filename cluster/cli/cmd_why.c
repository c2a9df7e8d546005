/* cmd_why.c - `troupe why`: the reasons why the members do not agree, with advice.
 *
 * Tests.   tests/system/cli_fake.sh, tests/system/cli.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

/* "demo@h:1", "7 members: demo@h:1, demo@h:2, demo@h:3 and 4 more". */
static void
whom_print(const cJSON *reason)
{
    enum { SHOWN = 3 };
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(reason, "nodes"), *node;
    int count = cJSON_GetArraySize(nodes), shown = 0;
    if (count < 2) {
        (void)printf(" %s", trpi_cli_short(trpi_cli_get(reason, "node")));
        return;
    }
    (void)printf(" %d members:", count);
    cJSON_ArrayForEach(node, nodes)
    {
        const char *text = cJSON_GetStringValue(node);
        if (shown < SHOWN) {
            (void)printf("%s %s", shown > 0 ? "," : "", text != NULL ? trpi_cli_short(text) : "?");
        }
        shown++;
    }
    if (count > SHOWN) {
        (void)printf(" and %d more", count - SHOWN);
    }
}

/* "unreachable demo@10.0.0.3:2552 (Up), 42s, says demo@10.0.0.1:2552", and the advice below it. */
static void
reason_print(const cJSON *reason)
{
    const char *node = trpi_json_get_text(reason, "node");
    double since_ms = trpi_cli_get_number(reason, "sinceMs", 0);
    char age[24];
    const char *before = ", says ";
    const cJSON *observer;
    (void)printf("  %-11s", trpi_cli_get(reason, "kind"));
    if (node != NULL) {
        whom_print(reason);
        (void)printf(" (%s), %s", trpi_cli_get(reason, "status"), trpi_cli_age(since_ms, age));
    }
    cJSON_ArrayForEach(observer, cJSON_GetObjectItemCaseSensitive(reason, "observedBy"))
    {
        const char *text = cJSON_GetStringValue(observer);
        (void)printf("%s%s", before, text != NULL ? trpi_cli_short(text) : "?");
        before = ", ";
    }
    (void)printf("\n  %-11s %s\n", "", trpi_cli_get(reason, "help"));
}

void
trpi_cli_print_reasons(const cJSON *reply)
{
    const cJSON *reason;
    cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(reply, "reasons"))
    {
        reason_print(reason);
    }
}

void
trpi_cli_print_drained(const cJSON *reply)
{
    const cJSON *node;
    cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(reply, "drained"))
    {
        const char *text = cJSON_GetStringValue(node);
        const char *name = text != NULL ? trpi_cli_short(text) : "?";
        (void)printf("  drained     %s: it is given no shard and no routee; to end that: troupe "
                     "undrain %s\n",
                     name, name);
    }
}

static void
table_print(const cJSON *reply)
{
    char age[24];
    const char *leader = trpi_json_get_text(reply, "leader");
    bool converged = trpi_cli_get_true(reply, "converged");
    if (trpi_cli_get_number(reply, "members", 0) == 0) {
        (void)printf("this node has not joined a cluster\n");
    } else {
        (void)printf("%s for %s; %.0f members, leader %s\n",
                     converged ? "all agree" : "the members do not agree",
                     trpi_cli_age(trpi_cli_get_number(reply, "sinceMs", 0), age),
                     trpi_cli_get_number(reply, "members", 0),
                     leader != NULL ? trpi_cli_short(leader) : "none");
    }
    trpi_cli_print_reasons(reply);
    trpi_cli_print_drained(reply);
}

static void
names_print(const cJSON *reason)
{
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(reason, "nodes"), *node;
    if (cJSON_GetArraySize(nodes) == 0) {
        (void)puts(trpi_cli_get(reason, "node"));
    }
    cJSON_ArrayForEach(node, nodes)
    {
        (void)puts(node->valuestring != NULL ? node->valuestring : "-");
    }
}

static int
why_print(trpi_cli *cli, const cJSON *reply)
{
    const cJSON *reason;
    if (cli->output != TRPI_CLI_NAME) {
        table_print(reply);
        return 0;
    }
    cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(reply, "reasons"))
    {
        names_print(reason);
    }
    return 0;
}

static int
why_once(trpi_cli *cli)
{
    cJSON *reply;
    if (trpi_cli_has(cli, TRPI_CLI_ALL_MEMBERS)) {
        return trpi_cli_all_once(cli, "why", why_print);
    }
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "why"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    trpi_cli_watch_begin(cli);
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(reply, "reasons");
    if (cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL) {
        trpi_cli_print_json(cli, reply);
    } else {
        (void)why_print(cli, reply); /* it cannot fail */
    }
    code = cJSON_GetArraySize(reasons) == 0 ? TRPI_CTL_EXIT_OK : TRPI_CTL_EXIT_NO;
    cJSON_Delete(reply);
    return code;
}

int
trpi_cli_run_why(trpi_cli *cli)
{
    return trpi_cli_repeat(cli, why_once);
}
