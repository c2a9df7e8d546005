/* options.c - the command line: flags anywhere, one command word, its arguments.
 *
 * Why.     Flags of all commands stand in one table (cli.h), so that parsing, help, completion and
 *          the "did you mean" cannot disagree, and a flag may stand before or after the command.
 * Must hold.
 *   options-O1  A flag that the command does not know is refused, never ignored; abbreviations too.
 *   options-O2  The command line wins over TROUPE_*, which wins over the default.
 * Tests.   tests/unit/cli/options_test.c, tests/system/cli.sh
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cluster/cli/cli.h"

#define DAY_MS 86400000u
#define DIGITS_MAX 10u /* of a count */

const trpi_cli_flag_info trpi_cli_flags[TRPI_CLI_FLAG_COUNT] = {
#define FLAG_INFO(id, name, letter, value, text) [TRPI_CLI_##id] = { name, letter, value, text },
    TRPI_CLI_FLAGS(FLAG_INFO)
#undef FLAG_INFO
};

/* The flags that have a twin in the environment: TROUPE_NO_WAIT=1 and so on. */
static const trpi_cli_flag env_flags[] = {
    TRPI_CLI_SYSTEM,      TRPI_CLI_SOCKET,   TRPI_CLI_OUTPUT,    TRPI_CLI_WATCH, TRPI_CLI_TIMEOUT,
    TRPI_CLI_DRY_RUN,     TRPI_CLI_YES,      TRPI_CLI_NO_WAIT,   TRPI_CLI_QUIET, TRPI_CLI_VERBOSE,
    TRPI_CLI_COLOR,       TRPI_CLI_VIA,      TRPI_CLI_CACERT,    TRPI_CLI_CERT,  TRPI_CLI_KEY,
    TRPI_CLI_COOKIE_FILE, TRPI_CLI_ENDPOINT, TRPI_CLI_TOKEN_FILE
};

bool
trpi_cli_duration_parse(const char *text, uint32_t *ret_ms)
{
    uint64_t ms = 0;
    if (!trpi_duration_parse(text, 0, 1, DAY_MS, &ms)) {
        return false;
    }
    *ret_ms = (uint32_t)ms;
    return true;
}

bool
trpi_cli_number(const trpi_cli *cli, trpi_cli_flag flag, uint32_t low, uint32_t high,
                uint32_t fallback, uint32_t *ret_number)
{
    const char *text = trpi_cli_text(cli, flag);
    if (text == NULL) {
        *ret_number = fallback;
        return true;
    }
    if (strlen(text) <= DIGITS_MAX && trpi_whole32_parse(text, low, high, ret_number)) {
        return true;
    }
    (void)trpi_cli_fail(0, "--%s takes a number from %u to %u, not '%s'", trpi_cli_flags[flag].name,
                        low, high, text); /* the caller returns 64 */
    return false;
}

static int
fail_unknown_flag(const trpi_cli *cli, const char *word)
{
    const char *names[TRPI_CLI_FLAG_COUNT];
    size_t names_count = 0;
    for (unsigned flag = 0; flag < TRPI_CLI_FLAG_COUNT; flag++) {
        if (cli->command == NULL ||
            (cli->command->flags | TRPI_CLI_EVERYWHERE) & (UINT64_C(1) << flag) ||
            (flag == TRPI_CLI_OUTPUT && cli->command->outputs != 0)) {
            names[names_count++] = trpi_cli_flags[flag].name;
        }
    }
    char name[64];
    size_t dashes = strspn(word, "-");
    size_t bytes = strcspn(word + dashes, "=");
    (void)snprintf(name, sizeof name, "%.*s", (int)(bytes < 63 ? bytes : 63), word + dashes);
    const char *meant = dashes == 2 ? trpi_cli_suggest(name, names, names_count) : NULL;
    const char *of = cli->command != NULL ? cli->command->name : NULL;
    char where[64] = "";
    if (of != NULL) {
        (void)snprintf(where, sizeof where, " of '%s'", of);
    }
    if (meant != NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no flag '%.*s%s'%s; did you mean '--%s'?",
                             (int)dashes, word, name, where, meant);
    }
    return trpi_cli_fail(
        TRPI_CTL_EXIT_USAGE, "no flag '%.*s%s'%s; see troupe %s%s--help%s", (int)dashes, word, name,
        where, of != NULL ? of : "", of != NULL ? " " : "",
        isdigit((unsigned char)name[0]) ? " (text that begins with a dash: write -- before it)"
                                        : "");
}

static int
flag_add(trpi_cli *cli, unsigned flag, const char *value)
{
    if (cli->flags[flag].count == TRPI_CLI_REPEAT_MAX) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--%s is given more than %u times",
                             trpi_cli_flags[flag].name, TRPI_CLI_REPEAT_MAX);
    }
    cli->flags[flag].values[cli->flags[flag].count++] = value;
    return 0;
}

/* One "--name", "--name=value" or "--name value" at argv[*index]. */
static int
parse_long(trpi_cli *cli, int argc, char **argv, int *index)
{
    const char *word = argv[*index] + 2;
    size_t bytes = strcspn(word, "=");
    const char *value = word[bytes] == '=' ? word + bytes + 1 : NULL;
    for (unsigned flag = 0; flag < TRPI_CLI_FLAG_COUNT; flag++) {
        const trpi_cli_flag_info *info = &trpi_cli_flags[flag];
        if (strlen(info->name) != bytes || memcmp(info->name, word, bytes) != 0) {
            continue;
        }
        bool optional = info->value != NULL && info->value[0] == '[';
        if (info->value == NULL && value != NULL) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--%s takes no value", info->name);
        }
        if (info->value != NULL && !optional && value == NULL) {
            if (*index + 1 >= argc) {
                return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--%s needs a value: %s", info->name,
                                     info->value);
            }
            value = argv[++*index];
        }
        return flag_add(cli, flag, value != NULL ? value : "");
    }
    return fail_unknown_flag(cli, argv[*index]);
}

/* "-q", "-o json", "-ojson", "-w2"; several letters in one word only when none takes a value. */
static int
parse_short(trpi_cli *cli, int argc, char **argv, int *index)
{
    for (const char *letter = argv[*index] + 1; *letter != '\0'; letter++) {
        unsigned flag = 0;
        while (flag < TRPI_CLI_FLAG_COUNT && trpi_cli_flags[flag].letter != *letter) {
            flag++;
        }
        if (flag == TRPI_CLI_FLAG_COUNT) {
            return fail_unknown_flag(cli, argv[*index]);
        }
        const char *wants = trpi_cli_flags[flag].value;
        if (wants == NULL) {
            int code = flag_add(cli, flag, "");
            if (code != 0) {
                return code;
            }
            continue;
        }
        const char *value = letter[1] == '=' ? letter + 2 : letter + 1;
        if (letter[1] == '\0' && wants[0] != '[') {
            if (*index + 1 >= argc) {
                return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "-%c needs a value: %s", *letter, wants);
            }
            value = argv[++*index];
        }
        return flag_add(cli, flag, value);
    }
    return 0;
}

int
trpi_cli_fail_command(const char *word)
{
    const char *names[64];
    size_t names_count = 0;
    for (size_t index = 0; index < trpi_cli_commands_count && names_count < 64; index++) {
        if (trpi_cli_commands[index].name[0] != '_') {
            names[names_count++] = trpi_cli_commands[index].name;
        }
    }
    const char *meant = trpi_cli_suggest(word, names, names_count);
    if (meant != NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no command '%s'; did you mean '%s'?", word,
                             meant);
    }
    return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "no command '%s'; see troupe help", word);
}

const trpi_cli_command *
trpi_cli_command_find(const char *name)
{
    for (size_t index = 0; index < trpi_cli_commands_count; index++) {
        if (strcmp(trpi_cli_commands[index].name, name) == 0) {
            return &trpi_cli_commands[index];
        }
    }
    return NULL;
}

/* Is it a command whose name has two words, as "config reload"? */
static bool
command_of_two(trpi_cli *cli, int argc, char **argv, int index)
{
    char both[64];
    if (index + 1 >= argc ||
        snprintf(both, sizeof both, "%s %s", argv[index], argv[index + 1]) >= (int)sizeof both) {
        return false;
    }
    cli->command = trpi_cli_command_find(both);
    cli->command_second = cli->command != NULL ? index + 1 : 0;
    return cli->command != NULL;
}

static int
parse_word(trpi_cli *cli, int argc, char **argv, int index)
{
    if (cli->command == NULL && command_of_two(cli, argc, argv, index)) {
        return 0;
    }
    if (index == cli->command_second && index > 0) {
        return 0;
    }
    if (cli->command == NULL) {
        cli->command = trpi_cli_command_find(argv[index]);
        if (cli->command == NULL) {
            return trpi_cli_fail_command(argv[index]);
        }
        if (cli->command->passes_through) {
            cli->rest = argv + index + 1;
            cli->rest_count = argc - index - 1;
        }
        return 0;
    }
    if (cli->args_count == TRPI_CLI_ARGS_MAX) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "more than %u arguments", TRPI_CLI_ARGS_MAX);
    }
    cli->args[cli->args_count++] = argv[index];
    return 0;
}

/* Is word, behind a command that passes its words on, a flag of every command? A node has --system
 * and --socket itself, and each command its own help. */
static bool
is_of_all(const char *word)
{
    static const trpi_cli_flag of_all[] = { TRPI_CLI_TIMEOUT, TRPI_CLI_YES,   TRPI_CLI_QUIET,
                                            TRPI_CLI_VERBOSE, TRPI_CLI_COLOR, TRPI_CLI_VERSION };
    size_t bytes = strcspn(word, "=");
    if (word[0] != '-' || word[1] != '-') {
        return word[0] == '-' && word[1] != '\0' && strchr("styqv", word[1]) != NULL;
    }
    for (size_t index = 0; index < sizeof of_all / sizeof of_all[0]; index++) {
        const char *name = trpi_cli_flags[of_all[index]].name;
        if (strlen(name) == bytes - 2 && memcmp(name, word + 2, bytes - 2) == 0) {
            return true;
        }
    }
    return false;
}

/* Take those flags out of the words that are passed on. Words behind "--" belong to the command in
 * any case. */
static int
parse_rest(trpi_cli *cli)
{
    int kept = 0, code = 0, count = cli->rest_count;
    bool only_words = false;
    for (int index = 0; index < count && code == 0; index++) {
        char *word = cli->rest[index];
        only_words = only_words || strcmp(word, "--") == 0;
        if (only_words || !is_of_all(word)) {
            cli->rest[kept++] = word;
        } else if (word[1] == '-') {
            code = parse_long(cli, count, cli->rest, &index);
        } else {
            code = parse_short(cli, count, cli->rest, &index);
        }
    }
    cli->rest_count = kept;
    return code;
}

static void
env_name(unsigned flag, char name[64])
{
    (void)snprintf(name, 64, "TROUPE_%s", trpi_cli_flags[flag].name);
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
}

/* Return where the value of flag is set: "--timeout", or "TROUPE_TIMEOUT". */
static const char *
flag_origin(const trpi_cli *cli, unsigned flag, char name[64])
{
    if ((cli->from_env >> flag & 1) != 0) {
        env_name(flag, name);
    } else {
        (void)snprintf(name, 64, "--%s", trpi_cli_flags[flag].name);
    }
    return name;
}

static bool
env_says_no(const char *value)
{
    return value[0] == '\0' || strcmp(value, "0") == 0 || strcmp(value, "no") == 0 ||
           strcmp(value, "off") == 0 || strcmp(value, "false") == 0;
}

/* The twins of the flags: TROUPE_ and the name in capitals, '-' as '_'. */
static void
environment_apply(trpi_cli *cli)
{
    for (size_t index = 0; index < sizeof env_flags / sizeof env_flags[0]; index++) {
        unsigned flag = env_flags[index];
        const trpi_cli_flag_info *info = &trpi_cli_flags[flag];
        char name[64];
        env_name(flag, name);
        const char *value = getenv(name);
        bool wanted =
            value != NULL && (info->value != NULL ? value[0] != '\0' : !env_says_no(value));
        uint64_t accepted = cli->command->flags | TRPI_CLI_EVERYWHERE;
        bool is_accepted =
            flag == TRPI_CLI_OUTPUT ? cli->command->outputs != 0 : (accepted >> flag & 1) != 0;
        if (wanted && is_accepted && cli->flags[flag].count == 0) {
            (void)flag_add(cli, flag, value); /* the first one always fits */
            cli->from_env |= UINT64_C(1) << flag;
        }
    }
}

static int
output_apply(trpi_cli *cli)
{
    const char *text = trpi_cli_text(cli, TRPI_CLI_OUTPUT);
    char allowed[64], name[64];
    for (unsigned format = 0; format < TRPI_CLI_OUTPUT_COUNT; format++) {
        if ((cli->command->outputs >> format & 1) != 0 && text != NULL &&
            strcmp(text, trpi_cli_output_names[format]) == 0) {
            cli->output = (trpi_cli_output)format;
            return 0;
        }
    }
    if (text == NULL) {
        return 0;
    }
    return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s: '%s' cannot be printed as '%s'; one of: %s",
                         flag_origin(cli, TRPI_CLI_OUTPUT, name), cli->command->name, text,
                         trpi_cli_outputs(cli->command, allowed));
}

static int
watch_apply(trpi_cli *cli)
{
    const char *text = trpi_cli_text(cli, TRPI_CLI_WATCH);
    if (text == NULL) {
        return 0;
    }
    char *end, name[64];
    double seconds = text[0] == '\0' ? 1 : strtod(text, &end);
    if (text[0] != '\0' && (*end != '\0' || !(seconds >= 0.1 && seconds <= 86400))) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s takes seconds from 0.1 to 86400, not '%s'",
                             flag_origin(cli, TRPI_CLI_WATCH, name), text);
    }
    cli->watch_ms = (uint32_t)(seconds * 1000);
    return 0;
}

static int
color_apply(trpi_cli *cli)
{
    const char *text = trpi_cli_text(cli, TRPI_CLI_COLOR);
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    char name[64];
    if (text == NULL || strcmp(text, "auto") == 0) {
        cli->color = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0') &&
                     term != NULL && strcmp(term, "dumb") != 0;
        return 0;
    }
    cli->color = strcmp(text, "always") == 0;
    if (!cli->color && strcmp(text, "never") != 0) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "%s takes auto, always or never, not '%s'",
                             flag_origin(cli, TRPI_CLI_COLOR, name), text);
    }
    return 0;
}

/* options-O1: check that the command knows each given flag. */
static int
flags_check(const trpi_cli *cli)
{
    uint64_t accepted = cli->command->flags | TRPI_CLI_EVERYWHERE;
    for (unsigned flag = 0; flag < TRPI_CLI_FLAG_COUNT; flag++) {
        bool is_accepted =
            flag == TRPI_CLI_OUTPUT ? cli->command->outputs != 0 : (accepted >> flag & 1) != 0;
        if (cli->flags[flag].count > 0 && !is_accepted) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "'%s' has no flag --%s; see troupe %s --help",
                                 cli->command->name, trpi_cli_flags[flag].name, cli->command->name);
        }
    }
    return 0;
}

/* A command speaks to one node: of the ways to name it the command line takes one. */
static int
ways_check(const trpi_cli *cli)
{
    static const trpi_cli_flag ways[][2] = { { TRPI_CLI_ENDPOINT, TRPI_CLI_SOCKET },
                                             { TRPI_CLI_ENDPOINT, TRPI_CLI_SYSTEM },
                                             { TRPI_CLI_ENDPOINT, TRPI_CLI_VIA },
                                             { TRPI_CLI_VIA, TRPI_CLI_SOCKET } };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (cli->flags[ways[i][0]].count > 0 && cli->flags[ways[i][1]].count > 0) {
            return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "--%s and --%s name two nodes: give one",
                                 trpi_cli_flags[ways[i][0]].name, trpi_cli_flags[ways[i][1]].name);
        }
    }
    return 0;
}

static int
arguments_check(const trpi_cli *cli)
{
    const trpi_cli_command *command = cli->command;
    if (cli->args_count < command->args_min) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "'%s' needs more arguments: troupe %s %s",
                             command->name, command->name, command->usage);
    }
    if (cli->args_count > command->args_max) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "'%s' does not take '%s': troupe %s%s%s",
                             command->name, cli->args[command->args_max], command->name,
                             command->usage[0] != '\0' ? " " : "", command->usage);
    }
    return 0;
}

static int
values_apply(trpi_cli *cli)
{
    const char *timeout = trpi_cli_text(cli, TRPI_CLI_TIMEOUT);
    char name[64];
    cli->timeout_ms = cli->command->timeout_ms;
    if (timeout != NULL && !trpi_cli_duration_parse(timeout, &cli->timeout_ms)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE,
                             "%s takes a duration as 500ms, 5s or 2m, not '%s'",
                             flag_origin(cli, TRPI_CLI_TIMEOUT, name), timeout);
    }
    cli->quiet = trpi_cli_has(cli, TRPI_CLI_QUIET);
    cli->verbose = trpi_cli_has(cli, TRPI_CLI_VERBOSE) && !cli->quiet;
    int code = output_apply(cli);
    code = code != 0 ? code : watch_apply(cli);
    return code != 0 ? code : color_apply(cli);
}

/* All words of the command line, into flags, the command, its arguments. */
static int
parse_words(trpi_cli *cli, int argc, char **argv)
{
    bool only_words = false;
    for (int index = 1; index < argc && cli->rest == NULL; index++) {
        const char *word = argv[index];
        int code = 0;
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1] == '-') {
            code = parse_long(cli, argc, argv, &index);
        } else if (!only_words && word[0] == '-' && word[1] != '\0') {
            code = parse_short(cli, argc, argv, &index);
        } else {
            code = parse_word(cli, argc, argv, index);
        }
        if (code != 0) {
            return code;
        }
    }
    return cli->rest != NULL && cli->command->of_all_behind ? parse_rest(cli) : 0;
}

/* Without a command the flags --version and --help are one; --version is, beside any other. */
static int
command_settle(trpi_cli *cli)
{
    bool version = trpi_cli_has(cli, TRPI_CLI_VERSION), help = trpi_cli_has(cli, TRPI_CLI_HELP);
    int code = cli->command != NULL ? flags_check(cli) : 0;
    code = code == 0 ? ways_check(cli) : code;
    if (code != 0 || (cli->command != NULL && (!version || help))) {
        return code;
    }
    if (!version && !help) {
        trpi_cli_help_all(stderr);
        return TRPI_CTL_EXIT_USAGE;
    }
    cli->command = trpi_cli_command_find(version ? "version" : "help");
    cli->flags[TRPI_CLI_HELP].count = 0;
    cli->args_count = 0;
    return 0;
}

int
trpi_cli_parse(trpi_cli *cli, int argc, char **argv)
{
    cli->fd = -1;
    cli->program = argv[0];
    int code = parse_words(cli, argc, argv);
    code = code != 0 ? code : command_settle(cli);
    if (code != 0 || trpi_cli_has(cli, TRPI_CLI_HELP)) {
        return code;
    }
    environment_apply(cli);
    code = arguments_check(cli);
    return code != 0 ? code : values_apply(cli);
}
