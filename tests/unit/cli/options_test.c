/* options_test.c - the command line: flags anywhere, limits of their values, suggestions, tables.
 * */
#include <stdlib.h>
#include <unistd.h>

#include "cluster/cli/cli.h"
#include "tests/unit/unit.h"

static trpi_cli cli;

/* Parse words (NULL at the end); returns the exit code. stderr is ignored. */
static int
parse(const char *const *words)
{
    static char *argv[TRPI_CLI_ARGS_MAX + 16]; /* cli points into it */
    int argc = 0;
    memset(&cli, 0, sizeof cli);
    while (words[argc] != NULL) {
        argv[argc] = (char *)(uintptr_t)words[argc];
        argc++;
    }
    argv[argc] = NULL;
    return trpi_cli_parse(&cli, argc, argv);
}
/* As parse, and whether stderr has text. */
static bool
says(const char *text, const char *const *words)
{
    char said[2048];
    FILE *file = tmpfile();
    int stderr_before = dup(STDERR_FILENO);
    UNIT_REQUIRE(file != NULL && stderr_before >= 0);
    UNIT_REQUIRE(dup2(fileno(file), STDERR_FILENO) >= 0);
    int code = parse(words);
    UNIT_REQUIRE(dup2(stderr_before, STDERR_FILENO) >= 0);
    (void)close(stderr_before);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    (void)fclose(file);
    return code == 64 && strstr(said, text) != NULL;
}
#define SAYS(text, ...) says(text, (const char *const[]){ "troupe", __VA_ARGS__, NULL })
#define PARSE(...) parse((const char *const[]){ "troupe", __VA_ARGS__, NULL })

static void
flags_stand_before_or_after_the_command(void)
{
    UNIT_EQUAL(PARSE("-o", "json", "-t", "2s", "members", "--role=a"), 0);
    UNIT_EQUAL(cli.output, TRPI_CLI_JSON);
    UNIT_EQUAL(cli.timeout_ms, 2000);
    UNIT_TEXT(trpi_cli_text(&cli, TRPI_CLI_ROLE), "a");
    UNIT_EQUAL(PARSE("members", "-ojsonl", "--timeout=500ms"), 0);
    UNIT_EQUAL(cli.output, TRPI_CLI_JSONL);
    UNIT_EQUAL(cli.timeout_ms, 500);
}

static void
two_dashes_end_the_flags(void)
{
    UNIT_EQUAL(PARSE("ask", "/user/a", "--", "-5"), 0);
    UNIT_EQUAL(cli.args_count, 2);
    UNIT_TEXT(cli.args[1], "-5");
    UNIT_EQUAL(PARSE("ask", "/user/a", "-5"), 64);
    UNIT_EQUAL(PARSE("ask", "/user/a", "-"), 0);
}

static void
unknown_words_and_abbreviations_are_refused(void)
{
    UNIT_EQUAL(PARSE("membres"), 64);
    UNIT_EQUAL(PARSE("mem"), 64);
    UNIT_EQUAL(PARSE("members", "--outp", "json"), 64);
    UNIT_EQUAL(PARSE("members", "-z"), 64);
    UNIT_EQUAL(PARSE("members", "--quiet=1"), 64);
    UNIT_EQUAL(PARSE("members", "--role"), 64);
    UNIT_EQUAL(parse((const char *const[]){ "troupe", NULL }), 64);
}

/* Only what the command knows is suggested; without a command, every flag. */
static void
mistyped_flag_of_the_command_is_suggested(void)
{
    UNIT_TRUE(SAYS("did you mean '--unreachable'?", "members", "--unreachble"));
    UNIT_TRUE(
        SAYS("no flag '--dryrun' of 'members'; see troupe members --help", "members", "--dryrun"));
    UNIT_TRUE(SAYS("did you mean '--dry-run'?", "leave", "--dryrun"));
    UNIT_TRUE(SAYS("did you mean '--output'?", "members", "--ouput=json"));
    UNIT_TRUE(SAYS("did you mean '--timeout'?", "leave", "--timeot"));
    UNIT_TRUE(SAYS("no flag '--dryrun'; did you mean '--dry-run'?", "--dryrun"));
    UNIT_TRUE(SAYS("no flag '-5' of 'ask'; see troupe ask --help (text that begins with a dash: "
                   "write -- before it)",
                   "ask", "/user/a", "-5"));
}

static void
flag_that_means_nothing_to_a_command_is_never_ignored(void)
{
    UNIT_EQUAL(PARSE("send", "/user/a", "x", "--dry-run"), 64);
    UNIT_EQUAL(PARSE("--dry-run", "members"), 64);
    UNIT_EQUAL(PARSE("ask", "/user/a", "x", "--watch"), 64);
    UNIT_EQUAL(PARSE("wait", "-o", "json"), 64);
    UNIT_EQUAL(PARSE("leader", "-o", "wide"), 64);
}

static void
argument_counts_are_checked(void)
{
    UNIT_EQUAL(PARSE("ask"), 64);
    UNIT_EQUAL(PARSE("ask", "/a", "b", "c"), 64);
    UNIT_EQUAL(PARSE("members", "x"), 64);
    UNIT_EQUAL(PARSE("leave"), 0);
    UNIT_EQUAL(PARSE("upgrade"), 64);
    UNIT_EQUAL(PARSE("upgrade", "a.so", "b.so"), 64);
    UNIT_EQUAL(PARSE("upgrade", "a.so", "-t", "2m"), 0);
    UNIT_EQUAL(cli.timeout_ms, 120000);
    UNIT_EQUAL(PARSE("upgrade", "a.so", "--endpoint", "http://127.0.0.1:1"), 64);
    UNIT_EQUAL(PARSE("spawn", "a", "--plugin", "x.so:y", "--args", "{}"), 0);
    UNIT_TEXT(trpi_cli_text(&cli, TRPI_CLI_PLUGIN), "x.so:y");
    UNIT_TEXT(trpi_cli_text(&cli, TRPI_CLI_ARGS), "{}");
    UNIT_EQUAL(PARSE("spawn", "a", "--plugin", "x.so", "--endpoint", "http://127.0.0.1:1"), 64);
    UNIT_EQUAL(PARSE("members", "--plugin", "x.so"), 64);
    UNIT_EQUAL(PARSE("watch"), 64);
    UNIT_EQUAL(PARSE("watch", "/user/a", "--on", "b:1"), 0);
}

static void
passing_commands_take_everything_behind_the_name(void)
{
    UNIT_EQUAL(PARSE("--system", "demo", "node", "--port", "0", "--bogus"), 0);
    UNIT_EQUAL(cli.rest_count, 3);
    UNIT_TEXT(cli.rest[2], "--bogus");
    UNIT_TEXT(trpi_cli_text(&cli, TRPI_CLI_SYSTEM), "demo");
}

static void
flags_of_all_commands_stand_behind_those_too(void)
{
    UNIT_EQUAL(PARSE("node", "-s", "demo", "--port", "0", "-t", "2s", "-qv", "--color=never"), 0);
    UNIT_TEXT(trpi_cli_text(&cli, TRPI_CLI_SYSTEM), "demo");
    UNIT_EQUAL(cli.timeout_ms, 2000);
    UNIT_TRUE(cli.quiet);
    UNIT_EQUAL(cli.rest_count, 2);
    UNIT_TEXT(cli.rest[1], "0");
    UNIT_EQUAL(PARSE("config", "show", "--system", "demo"), 0); /* a key: its own */
    UNIT_EQUAL(cli.rest_count, 3);
    UNIT_EQUAL(PARSE("sim", "--timeout", "three"), 64);
    UNIT_EQUAL(PARSE("node", "--", "-q"), 0);
    UNIT_EQUAL(cli.rest_count, 2);
    UNIT_EQUAL(PARSE("multinode", "-q"), 0); /* whose words belong to another program */
    UNIT_EQUAL(cli.rest_count, 1);
    UNIT_EQUAL(PARSE("-o", "json", "config", "show"), 0);
    UNIT_EQUAL(PARSE("-o", "json", "node"), 64);
}

static void
version_is_printed_beside_any_command(void)
{
    static const char *const words[][5] = { { "troupe", "--version", "node", NULL },
                                            { "troupe", "node", "--version", NULL },
                                            { "troupe", "leave", "x", "--version", NULL },
                                            { "troupe", "--version", NULL } };
    for (size_t index = 0; index < sizeof words / sizeof words[0]; index++) {
        UNIT_EQUAL(parse(words[index]), 0);
        UNIT_TEXT(cli.command->name, "version");
    }
    UNIT_EQUAL(PARSE("leave", "--version", "--help"), 0);
    UNIT_TEXT(cli.command->name, "leave");
}

static void
durations_have_units_and_limits(void)
{
    uint32_t ms = 0;
    UNIT_TRUE(trpi_cli_duration_parse("1ms", &ms) && ms == 1);
    UNIT_TRUE(trpi_cli_duration_parse("1.5s", &ms) && ms == 1500);
    UNIT_TRUE(trpi_cli_duration_parse("2m", &ms) && ms == 120000);
    UNIT_TRUE(trpi_cli_duration_parse("24h", &ms) && ms == 86400000);
    UNIT_TRUE(trpi_cli_duration_parse("1.1h", &ms) && ms == 3960000);
    UNIT_TRUE(trpi_cli_duration_parse("1.001s", &ms) && ms == 1001);
    UNIT_FALSE(trpi_cli_duration_parse("0.0001s", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("25h", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("0.5ms", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("5", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("5 s", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("-5s", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("", &ms));
    UNIT_FALSE(trpi_cli_duration_parse("nans", &ms));
}

static void
environment_is_weaker_than_the_command_line(void)
{
    setenv("TROUPE_OUTPUT", "json", 1);
    setenv("TROUPE_TIMEOUT", "3s", 1);
    UNIT_EQUAL(PARSE("members"), 0);
    UNIT_EQUAL(cli.output, TRPI_CLI_JSON);
    UNIT_EQUAL(cli.timeout_ms, 3000);
    UNIT_EQUAL(PARSE("members", "-o", "name"), 0);
    UNIT_EQUAL(cli.output, TRPI_CLI_NAME);
    setenv("TROUPE_TIMEOUT", "three", 1);
    UNIT_EQUAL(PARSE("members"), 64);
    unsetenv("TROUPE_OUTPUT");
    unsetenv("TROUPE_TIMEOUT");
    setenv("TROUPE_YES", "0", 1);
    UNIT_EQUAL(PARSE("members"), 0);
    UNIT_FALSE(trpi_cli_has(&cli, TRPI_CLI_YES));
    unsetenv("TROUPE_YES");
}

static void
environment_of_a_flag_that_the_command_lacks_is_passed_over(void)
{
    setenv("TROUPE_DRY_RUN", "1", 1);
    setenv("TROUPE_OUTPUT", "json", 1);
    UNIT_EQUAL(PARSE("wait", "--up"), 0);
    UNIT_EQUAL(PARSE("down", "x"), 0);
    UNIT_TRUE(trpi_cli_has(&cli, TRPI_CLI_DRY_RUN));
    unsetenv("TROUPE_DRY_RUN");
    unsetenv("TROUPE_OUTPUT");
}

static void
repeated_flag_is_refused_one_above_the_limit(void)
{
    const char *words[2 * TRPI_CLI_REPEAT_MAX + 5] = { "troupe", "wait" };
    unsigned count = 2;
    for (unsigned index = 0; index < TRPI_CLI_REPEAT_MAX; index++) {
        words[count++] = "--role";
        words[count++] = "a=1";
    }
    UNIT_EQUAL(parse(words), 0);
    words[count++] = "--role";
    words[count++] = "a=1";
    UNIT_EQUAL(parse(words), 64);
}

static void
counts_have_a_limit(void)
{
    char flag[32];
    uint32_t count = 0;
    for (uint32_t past = 0; past < 2; past++) {
        snprintf(flag, sizeof flag, "--count=%u", TRPI_CLI_COUNT_MAX + past);
        UNIT_EQUAL(PARSE("events", flag), 0);
        UNIT_EQUAL(trpi_cli_number(&cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &count),
                   past == 0);
        UNIT_EQUAL(count, TRPI_CLI_COUNT_MAX);
    }
    /* as many digits as there may be, and one more */
    UNIT_EQUAL(PARSE("events", "--count=0000000005"), 0);
    UNIT_TRUE(trpi_cli_number(&cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &count));
    UNIT_EQUAL(count, 5);
    UNIT_EQUAL(PARSE("events", "--count=00000000005"), 0);
    UNIT_FALSE(trpi_cli_number(&cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &count));
    UNIT_EQUAL(PARSE("events", "--count=0"), 0);
    UNIT_FALSE(trpi_cli_number(&cli, TRPI_CLI_COUNT, 1, TRPI_CLI_COUNT_MAX, 0, &count));
}

static void
watch_takes_seconds_or_nothing(void)
{
    UNIT_EQUAL(PARSE("members", "--watch"), 0);
    UNIT_EQUAL(cli.watch_ms, 1000);
    UNIT_EQUAL(PARSE("members", "-w2"), 0);
    UNIT_EQUAL(cli.watch_ms, 2000);
    UNIT_EQUAL(PARSE("members", "--watch=0.01"), 64);
    UNIT_EQUAL(PARSE("members", "--watch=x"), 64);
}

static void
nearest_word_is_suggested_and_nonsense_is_not(void)
{
    static const char *const names[] = { "members", "member-status", "leave",
                                         "leader",  "status",        "send" };
    UNIT_TEXT(trpi_cli_suggest("membres", names, 6), "members");
    UNIT_TEXT(trpi_cli_suggest("sned", names, 6), "send");
    UNIT_TEXT(trpi_cli_suggest("stat", names, 6), "status");
    UNIT_TRUE(trpi_cli_suggest("xyzzy", names, 6) == NULL);
    UNIT_TRUE(trpi_cli_suggest("", names, 6) == NULL);
    char word[64];
    memset(word, 'm', 63);
    word[63] = '\0';
    UNIT_TRUE(trpi_cli_suggest(word, names, 6) == NULL);
    word[47] = '\0'; /* a letter less than the longest name that is suggested */
    static const char longest[] = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";
    static const char longer[] = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";
    UNIT_TEXT(trpi_cli_suggest(word, (const char *const[]){ longer, longest }, 2), longest);
    UNIT_TRUE(trpi_cli_suggest(word, (const char *const[]){ longer }, 1) == NULL);
}

static void
ages_and_numbers_are_for_people(void)
{
    char buffer[32];
    UNIT_TEXT(trpi_cli_age(999, buffer), "999ms");
    UNIT_TEXT(trpi_cli_age(1000, buffer), "1s");
    UNIT_TEXT(trpi_cli_age(192000, buffer), "3m12s");
    UNIT_TEXT(trpi_cli_age(3600000, buffer), "1h00m");
    UNIT_TEXT(trpi_cli_age(90000000, buffer), "1d01h");
    UNIT_TEXT(trpi_cli_age(-1, buffer), "-");
    UNIT_TEXT(trpi_cli_grouped(0, buffer), "0");
    UNIT_TEXT(trpi_cli_grouped(999, buffer), "999");
    UNIT_TEXT(trpi_cli_grouped(1204, buffer), "1,204");
    UNIT_TEXT(trpi_cli_grouped(1000000, buffer), "1,000,000");
}

static void
table_takes_columns_up_to_the_limit(void)
{
    trpi_cli_table table = { 0 };
    const char *cells[TRPI_CLI_COLUMNS_MAX + 1];
    for (unsigned index = 0; index <= TRPI_CLI_COLUMNS_MAX; index++) {
        cells[index] = "x";
    }
    UNIT_FALSE(trpi_cli_table_row(&table, TRPI_CLI_COLUMNS_MAX + 1, cells));
    for (unsigned row = 0; row < 40; row++) {
        UNIT_TRUE(trpi_cli_table_row(&table, TRPI_CLI_COLUMNS_MAX, cells));
    }
    UNIT_FALSE(trpi_cli_table_row(&table, 1, cells));
    trpi_cli_table_fini(&table);
}

static void
every_command_is_described(void)
{
    for (size_t index = 0; index < trpi_cli_commands_count; index++) {
        const trpi_cli_command *command = &trpi_cli_commands[index];
        UNIT_TRUE(command->run != NULL && command->summary[0] != '\0' && command->usage != NULL);
        UNIT_TRUE(command->args_min <= command->args_max && command->args_max <= TRPI_CLI_ARGS_MAX);
        UNIT_TRUE(trpi_cli_command_find(command->name) == command);
    }
}

static void
an_endpoint_yields_to_a_node_that_the_command_line_names(void)
{
    UNIT_EQUAL(PARSE("members", "--endpoint", "http://h:1"), 0);
    UNIT_TRUE(trpi_cli_is_remote(&cli));
    UNIT_EQUAL(PARSE("members"), 0);
    UNIT_TRUE(!trpi_cli_is_remote(&cli));
    UNIT_REQUIRE(setenv("TROUPE_ENDPOINT", "http://h:1", 1) == 0);
    UNIT_REQUIRE(setenv("TROUPE_SOCKET", "/tmp/x.sock", 1) == 0);
    UNIT_EQUAL(PARSE("members"), 0);
    UNIT_TRUE(trpi_cli_is_remote(&cli));
    UNIT_EQUAL(PARSE("members", "--socket", "/tmp/y.sock"), 0);
    UNIT_TRUE(!trpi_cli_is_remote(&cli));
    UNIT_EQUAL(PARSE("members", "--system", "demo"), 0);
    UNIT_TRUE(!trpi_cli_is_remote(&cli));
    UNIT_EQUAL(PARSE("ping", "/user/a"), 0); /* it has no such flag: the environment is not read */
    UNIT_TRUE(!trpi_cli_is_remote(&cli));
    (void)unsetenv("TROUPE_ENDPOINT");
    (void)unsetenv("TROUPE_SOCKET");
    UNIT_TRUE(SAYS("--token-file needs a value: FILE", "members", "--token-file"));
    UNIT_TRUE(SAYS("'ping' has no flag --endpoint", "ping", "/user/a", "--endpoint", "http://h:1"));
}

static void
a_command_of_two_words_is_found_by_both(void)
{
    UNIT_EQUAL(PARSE("-o", "json", "config", "reload", "--timeout", "2s"), 0);
    UNIT_TEXT(cli.command->name, "config reload");
    UNIT_EQUAL(cli.timeout_ms, 2000);
    UNIT_EQUAL(cli.args_count, 0);
    UNIT_EQUAL(PARSE("config", "check", "--port", "1"), 0);
    UNIT_TEXT(cli.command->name, "config");
    UNIT_EQUAL(PARSE("config", "reload", "reload"), 64);
    UNIT_EQUAL(PARSE("config reload"), 0); /* one word is as good */
    UNIT_EQUAL(PARSE("members", "config", "reload"), 64);
}

UNIT_BEGIN("options")
UNIT(flags_stand_before_or_after_the_command)
UNIT(two_dashes_end_the_flags)
UNIT(an_endpoint_yields_to_a_node_that_the_command_line_names)
UNIT(a_command_of_two_words_is_found_by_both)
UNIT(unknown_words_and_abbreviations_are_refused)
UNIT(mistyped_flag_of_the_command_is_suggested)
UNIT(flag_that_means_nothing_to_a_command_is_never_ignored)
UNIT(argument_counts_are_checked)
UNIT(passing_commands_take_everything_behind_the_name)
UNIT(flags_of_all_commands_stand_behind_those_too)
UNIT(version_is_printed_beside_any_command)
UNIT(durations_have_units_and_limits)
UNIT(environment_is_weaker_than_the_command_line)
UNIT(environment_of_a_flag_that_the_command_lacks_is_passed_over)
UNIT(repeated_flag_is_refused_one_above_the_limit)
UNIT(counts_have_a_limit)
UNIT(watch_takes_seconds_or_nothing)
UNIT(nearest_word_is_suggested_and_nonsense_is_not)
UNIT(ages_and_numbers_are_for_people)
UNIT(table_takes_columns_up_to_the_limit)
UNIT(every_command_is_described)
UNIT_END
