/* cmd_run.c - node, demo, sim, config, cert, cookie, journal and fsm: commands that run in the
 *   library.
 *
 * Why.     They get all words behind the name; global flags before it are passed on to commands
 *          that are about a node.
 * Tests.   tests/system/cli.sh, tests/system/cert.sh
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

/* Flags before the command that a node has as well. */
static const trpi_cli_flag handed_on[] = { TRPI_CLI_SYSTEM, TRPI_CLI_SOCKET, TRPI_CLI_OUTPUT };

static int
library_run(trpi_cli *cli, const char *function)
{
    size_t words_max = (size_t)cli->rest_count + 2 + 2 * sizeof handed_on / sizeof handed_on[0];
    static char name[32]; /* argv[0] of the library's main, for as long as it runs */
    static char flags[sizeof handed_on / sizeof handed_on[0]][24];
    char **words = trpi_alloc(words_max * sizeof *words);
    int count = 0;
    if (words == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    (void)snprintf(name, sizeof name, "troupe %s", cli->command->name);
    words[count++] = name;
    for (size_t index = 0; index < sizeof handed_on / sizeof handed_on[0]; index++) {
        const char *value = trpi_cli_text(cli, handed_on[index]);
        bool is_theirs = handed_on[index] == TRPI_CLI_SYSTEM && /* a key: read by them */
                         (cli->from_env >> TRPI_CLI_SYSTEM & 1) != 0;
        if (cli->command->takes_node && value != NULL && !is_theirs) {
            (void)snprintf(flags[index], sizeof flags[index], "--%s",
                           trpi_cli_flags[handed_on[index]].name);
            words[count++] = flags[index];
            words[count++] =
                (char *)(uintptr_t)value; /* argv is char ** by tradition; it is not written to */
        }
    }
    for (int index = 0; index < cli->rest_count; index++) {
        words[count++] = cli->rest[index];
    }
    int code = trpi_cli_library_call(function, count, words);
    trpi_free(words);
    return code;
}

int
trpi_cli_run_node(trpi_cli *cli)
{
    return library_run(cli, "trp_node_main");
}

int
trpi_cli_run_demo(trpi_cli *cli)
{
    return library_run(cli, "trp_demo_main");
}

int
trpi_cli_run_sim(trpi_cli *cli)
{
    return library_run(cli, "trp_sim_main");
}

int
trpi_cli_run_config(trpi_cli *cli)
{
    return library_run(cli, "trp_config_main");
}

int
trpi_cli_run_config_reload(trpi_cli *cli)
{
    cJSON *reply = NULL;
    const cJSON *row;
    int code = trpi_cli_call(cli, trpi_cli_request_new(cli, "reload"), NULL, NULL, &reply);
    if (code != 0) {
        return code;
    }
    const cJSON *changed = cJSON_GetObjectItemCaseSensitive(reply, "changed");
    const cJSON *rest = cJSON_GetObjectItemCaseSensitive(reply, "needRestart");
    if (cli->output != TRPI_CLI_TABLE) {
        trpi_cli_print_json(cli, reply);
    } else if (cJSON_GetArraySize(changed) + cJSON_GetArraySize(rest) == 0) {
        (void)puts("no key has changed; cookies, the files of TLS and of tokens were read again");
    } else {
        cJSON_ArrayForEach(row, changed)
        {
            (void)printf("changed         %s: %s -> %s\n", trpi_cli_get(row, "key"),
                         trpi_cli_get(row, "from"), trpi_cli_get(row, "to"));
        }
        cJSON_ArrayForEach(row, rest)
        {
            (void)printf("needs a restart %s\n", cJSON_IsString(row) ? row->valuestring : "-");
        }
    }
    cJSON_Delete(reply);
    return 0;
}

int
trpi_cli_run_cert(trpi_cli *cli)
{
    return library_run(cli, "trp_cert_main");
}

int
trpi_cli_run_journal(trpi_cli *cli)
{
    return library_run(cli, "trp_journal_main");
}

int
trpi_cli_run_cookie(trpi_cli *cli)
{
    return library_run(cli, "trp_cookie_main");
}

int
trpi_cli_run_fsm(trpi_cli *cli)
{
    return library_run(cli, "trp_fsm_main");
}
