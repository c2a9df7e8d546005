/* help.c - `troupe help`, `--help` and `version`, written from the command table.
 *
 * Tests.   tests/system/cli.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

const char *const trpi_cli_output_names[TRPI_CLI_OUTPUT_COUNT] = { "table", "wide", "json",
                                                                   "jsonl", "name", "prom" };

char *
trpi_cli_outputs(const trpi_cli_command *command, char text[64])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned format = 0; format < TRPI_CLI_OUTPUT_COUNT; format++) {
        if ((command->outputs >> format & 1) != 0) {
            (void)snprintf(text + used, 64 - used, "%s%s", used > 0 ? ", " : "",
                           trpi_cli_output_names[format]);
            used = strlen(text);
        }
    }
    return text;
}

/* command NULL: in the list of all. */
static void
flag_print(unsigned flag, const trpi_cli_command *command, FILE *stream)
{
    const trpi_cli_flag_info *info = &trpi_cli_flags[flag];
    char left[48];
    char letter[8] = "    ";
    if (info->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", info->letter);
    }
    bool optional = info->value != NULL && info->value[0] == '[';
    (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, info->name,
                   info->value != NULL && !optional ? " " : "",
                   info->value != NULL ? info->value : "");
    char own[64] = "";
    if (command != NULL && flag == TRPI_CLI_OUTPUT) {
        (void)trpi_cli_outputs(command, own);
    }
    (void)fprintf(stream, "  %-26s %s", left, own[0] != '\0' ? own : info->text);
    if (command != NULL && flag == TRPI_CLI_TIMEOUT && command->timeout_ms != 0) {
        (void)fprintf(stream, " (default %s)", trpi_cli_age(command->timeout_ms, own));
    }
    (void)fputs("\n", stream);
}

void
trpi_cli_help_all(FILE *stream)
{
    static const char *const titles[] = { "RUN", "CLUSTER", "ACTORS", "OBSERVE", "OPERATE" };
    (void)fputs("troupe " TRP_VERSION
                " - run a node of an actor cluster, look after it, talk to its actors\n\n"
                "Usage: troupe [FLAG]... COMMAND [ARGUMENT]...\n",
                stream);
    for (unsigned group = 0; group < sizeof titles / sizeof titles[0]; group++) {
        (void)fprintf(stream, "\n%s\n", titles[group]);
        for (size_t index = 0; index < trpi_cli_commands_count; index++) {
            const trpi_cli_command *command = &trpi_cli_commands[index];
            if (command->group == group && command->name[0] != '_') {
                (void)fprintf(stream, "  %-16s %s\n", command->name, command->summary);
            }
        }
    }
    (void)fputs(
        "\nFLAGS (each has a twin in the environment: TROUPE_SYSTEM, TROUPE_NO_WAIT=1, ...)\n",
        stream);
    for (unsigned flag = 0; flag <= TRPI_CLI_VERSION; flag++) {
        flag_print(flag, NULL, stream);
    }
    (void)fputs("\nDurations: 500ms, 5s, 2m. Data goes to stdout, all else to stderr.\n"
                "Exit codes: 0 done or yes, 1 no, 64 usage, 65 bad data, 68 no such member or "
                "actor, 69 no node,\n"
                "            70 internal, 74 output cannot be written, 75 timed out, 76 this node "
                "was downed,\n"
                "            77 not permitted, 78 configuration\n"
                "More: troupe help COMMAND\n",
                stream);
}

void
trpi_cli_help_command(const trpi_cli_command *command, FILE *stream)
{
    (void)fprintf(stream, "troupe %s - %s\n\nUsage: troupe %s%s%s\n", command->name,
                  command->summary, command->name, command->usage[0] != '\0' ? " " : "",
                  command->usage);
    if (command->text != NULL) {
        (void)fprintf(stream, "\n%s", command->text);
    }
    (void)fputs("\nFlags:\n", stream);
    for (unsigned flag = 0; flag < TRPI_CLI_FLAG_COUNT; flag++) {
        uint64_t accepted = command->flags | TRPI_CLI_EVERYWHERE;
        if ((accepted >> flag & 1) != 0 || (flag == TRPI_CLI_OUTPUT && command->outputs != 0)) {
            flag_print(flag, command, stream);
        }
    }
}

int
trpi_cli_run_help(trpi_cli *cli)
{
    if (cli->args_count == 0) {
        trpi_cli_help_all(stdout);
        return 0;
    }
    const trpi_cli_command *command = trpi_cli_command_find(cli->args[0]);
    if (command == NULL) {
        return trpi_cli_fail_command(cli->args[0]);
    }
    if (command->passes_through) { /* the library describes its own options */
        char *rest[] = { "--help", NULL };
        cli->command = command;
        cli->rest = rest;
        cli->rest_count = 1;
        return command->run(cli);
    }
    trpi_cli_help_command(command, stdout);
    return 0;
}

int
trpi_cli_run_version(trpi_cli *cli)
{
    if (cli->output == TRPI_CLI_TABLE) {
        (void)puts("troupe " TRP_VERSION);
        return 0;
    }
    cJSON *json = cJSON_CreateObject();
    if (!trpi_json_add_text(json, "version", TRP_VERSION) ||
        !trpi_json_add_i64(json, "protocol", TRPI_CTL_VERSION)) {
        cJSON_Delete(json);
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    trpi_cli_print_json(cli, json);
    cJSON_Delete(json);
    return 0;
}
