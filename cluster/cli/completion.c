/* completion.c - `completion SHELL` and the hidden `__complete` that it calls.
 *
 * Why.     The script is a few lines; the candidates are computed here from the command table and,
 *          for members, requested from the node with a limit of 200 ms. So a new flag is completed
 *          without touching the script.
 * Tests.   tests/system/completion.sh
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/cli.h"

static const char bash_script[] =
    "# bash completion for troupe: source <(troupe completion bash)\n"
    "_troupe() {\n"
    "    local word=${COMP_LINE:0:COMP_POINT} line words\n"
    "    # Split at blanks only: readline's own words break addresses at ':' and '@'.\n"
    "    read -ra words <<<\"$word\"\n"
    "    [[ $word == *[[:space:]] ]] && words+=(\"\")\n"
    "    local last=${words[${#words[@]} - 1]} cut=${COMP_WORDS[COMP_CWORD]}\n"
    "    local prefix=${last%\"$cut\"}\n"
    "    [[ $cut == ':' || $cut == '@' || $cut == '=' ]] && prefix=$last\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        [[ $line == \"$last\"* ]] && COMPREPLY+=(\"${line#\"$prefix\"}\")\n"
    "    done < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _troupe -o default troupe\n";

static const char zsh_script[] =
    "#compdef troupe\n"
    "# zsh completion for troupe: in a directory of $fpath as _troupe, or\n"
    "# source <(troupe completion zsh) behind compinit\n"
    "_troupe() {\n"
    "    local -a offered\n"
    "    offered=(${(f)\"$(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
    "    compadd -a offered\n"
    "}\n"
    "if [[ \"$funcstack[1]\" == _troupe ]]; then _troupe \"$@\"; else compdef _troupe troupe; fi\n";

static const char fish_script[] =
    "# fish completion for troupe: troupe completion fish | source\n"
    "function __troupe_complete\n"
    "    set -l before (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    command $before[1] __complete $before[2..-1] \"$word\" 2>/dev/null\n"
    "end\n"
    "complete -c troupe -f -a '(__troupe_complete)'\n";

static const struct {
    const char *name, *script;
} shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

int
trpi_cli_run_completion(trpi_cli *cli)
{
    for (size_t index = 0; index < sizeof shells / sizeof shells[0]; index++) {
        if (strcmp(cli->args[0], shells[index].name) == 0) {
            (void)fputs(shells[index].script, stdout);
            return 0;
        }
    }
    return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no completion for '%s'; there are: bash, zsh, fish",
                         cli->args[0]);
}

static void
complete_commands(void)
{
    for (size_t index = 0; index < trpi_cli_commands_count; index++) {
        const char *name = trpi_cli_commands[index].name;
        if (name[0] != '_' && strchr(name, ' ') == NULL) {
            (void)puts(trpi_cli_commands[index].name);
        }
    }
}

/* Flags of commands that read their own line: node_options.c, config_main.c, cert_main.c. */
static bool
complete_own_flags(const trpi_cli_command *command)
{
    static const char node[] =
        "--config\n--set\n--system\n--host\n--port\n--bind-host\n--bind-port\n--seed\n--role\n"
        "--load\n--apps\n--socket\n--log-level\n--log-format\n--log-file\n--help";
    static const struct {
        const char *command, *flags;
    } own[] = {
        { "node", node },
        { "dev", "--config\n--set\n--role\n--load\n--log-level\n--log-format\n--help" },
        { "demo", "--list\n--once\n--threads\n--actors\n--steps\n--pace\n--directory\n--port\n"
                  "--help" },
        { "config", "--config\n--set\n--origin\n--reference\n--keys-only\n--output\n--help" },
        { "cert", "--dir\n--san\n--days\n--force\n--within\n--output\n--help" },
        { "journal", "--config\n--set\n--output\n--help" },
        { "sim", "--nodes\n--seed\n--seeds\n--scenario\n--until\n--trace\n--faults\n--shrink\n"
                 "--break\n--help" },
    };
    for (size_t index = 0; command != NULL && index < sizeof own / sizeof own[0]; index++) {
        if (strcmp(command->name, own[index].command) == 0) {
            (void)puts(own[index].flags);
            return true;
        }
    }
    return false;
}

static void
complete_flags(const trpi_cli_command *command)
{
    if (complete_own_flags(command)) {
        return;
    }
    for (unsigned flag = 0; flag < TRPI_CLI_FLAG_COUNT; flag++) {
        uint64_t accepted = TRPI_CLI_EVERYWHERE | (command != NULL ? command->flags : 0);
        if ((accepted >> flag & 1) != 0 ||
            (flag == TRPI_CLI_OUTPUT && (command == NULL || command->outputs != 0))) {
            (void)printf("--%s\n", trpi_cli_flags[flag].name);
        }
    }
}

/* Print the addresses of the members, if a node answers; no error when none does. */
static void
complete_members(trpi_cli *cli)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDERR_FILENO) < 0) {
        return;
    }
    cJSON *reply = NULL;
    cli->timeout_ms = 200;
    if (trpi_cli_call(cli, trpi_cli_request_new(cli, "members"), NULL, NULL, &reply) == 0) {
        const cJSON *member;
        cJSON_ArrayForEach(member, cJSON_GetObjectItemCaseSensitive(reply, "members"))
        {
            const char *address = trpi_cli_get(member, "node");
            const char *at = strchr(address, '@');
            (void)printf("%s\n%s\n", address, at != NULL ? at + 1 : address);
        }
        cJSON_Delete(reply);
    }
}

/* Print the files that plugins were loaded from, if a node answers. */
static void
complete_plugins(trpi_cli *cli)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDERR_FILENO) < 0) {
        return;
    }
    cJSON *reply = NULL;
    cli->timeout_ms = 200;
    if (trpi_cli_call(cli, trpi_cli_request_new(cli, "config"), NULL, NULL, &reply) == 0) {
        const cJSON *all = cJSON_GetObjectItemCaseSensitive(reply, "config"), *plugin;
        const cJSON *row = cJSON_GetObjectItemCaseSensitive(all, "plugins");
        cJSON_ArrayForEach(plugin, cJSON_GetObjectItemCaseSensitive(row, "value"))
        {
            const char *path = cJSON_GetStringValue(plugin);
            if (path != NULL) {
                size_t bytes = strcspn(path, ":");
                const char *slash = memrchr(path, '/', bytes);
                size_t from = slash == NULL ? 0 : (size_t)(slash + 1 - path);
                (void)printf("%.*s\n", (int)(bytes - from), path + from);
            }
        }
        cJSON_Delete(reply);
    }
}

/* Values of the flag word before the one that is being written. True: they were printed. */
static bool
complete_value(trpi_cli *cli, const char *flag)
{
    if (strcmp(flag, "-o") == 0 || strcmp(flag, "--output") == 0) {
        (void)puts("table\nwide\njson\njsonl\nname\nprom");
    } else if (strcmp(flag, "--color") == 0) {
        (void)puts("auto\nalways\nnever");
    } else if (strcmp(flag, "--status") == 0) {
        (void)puts("Joining\nWeaklyUp\nUp\nLeaving\nExiting\nDown");
    } else if (strcmp(flag, "--level") == 0) {
        (void)puts("error\nwarning\ninfo\ndebug");
    } else if (strcmp(flag, "--lang") == 0) {
        (void)puts("c\nc++");
    } else if (strcmp(flag, "--gone") == 0 || strcmp(flag, "--on") == 0) {
        complete_members(cli);
    } else if (strcmp(flag, "--type") == 0) {
        for (size_t index = 0; index < trpi_cli_event_types_count; index++) {
            (void)puts(trpi_cli_event_types[index]);
        }
    } else {
        return false;
    }
    return true;
}

/* rest is the line behind `troupe`, the last word being the one that is being written ("" for a new
 * one). */
int
trpi_cli_run_complete(trpi_cli *cli)
{
    const trpi_cli_command *command = NULL;
    const char *word = cli->rest_count > 0 ? cli->rest[cli->rest_count - 1] : "";
    const char *before = cli->rest_count > 1 ? cli->rest[cli->rest_count - 2] : "";
    for (int index = 0; index + 1 < cli->rest_count && command == NULL; index++) {
        command = trpi_cli_command_find(cli->rest[index]);
    }
    if (complete_value(cli, before)) {
        return 0;
    }
    if (word[0] == '-') {
        complete_flags(command);
    } else if (command == NULL || command->completes == 'c') {
        complete_commands();
    } else if (command->completes == 'u') {
        complete_plugins(cli);
    } else if (command->completes == 'm' || command->completes == 'p') {
        complete_members(cli);
    } else if (strcmp(command->name, "completion") == 0) {
        (void)puts("bash\nzsh\nfish");
    } else if (strcmp(command->name, "new") == 0) {
        (void)puts("app\nactor\nplugin");
    } else if (strcmp(command->name, "demo") == 0) {
        (void)puts("countdown\nproducer-consumer\nmap-reduce\nvirus-scan\nall\nsequence");
    } else if (strcmp(command->name, "fsm") == 0) {
        (void)puts("dot");
    } else if (strcmp(command->name, "check") == 0) {
        (void)puts("ready\nalive\ncerts\nclock\nports\nversions");
    } else if (strcmp(command->name, "config") == 0) {
        (void)puts("show\ncheck\nreload");
    } else if (strcmp(command->name, "cert") == 0) {
        (void)puts("ca\nnode\nrenew\nrevoke\nshow");
    } else if (strcmp(command->name, "cookie") == 0) {
        (void)puts("gen\nhash");
    }
    return 0;
}
