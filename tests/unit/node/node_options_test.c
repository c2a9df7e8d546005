/* node_options_test.c - flags of `troupe node`, and log lines. */
#include "cluster/node/node_log.h"
#include "cluster/node/node_options.h"
#include "tests/unit/unit.h"

static int
parse(trpi_node_options *options, int argc, const char *const *argv)
{
    char *copy[16];
    for (int i = 0; i < argc; i++) {
        copy[i] = (char *)(uintptr_t)argv[i];
    }
    return trpi_node_options_parse(argc, copy, 0, options);
}
#define PARSE(options, ...)                                                                        \
    parse((options), (int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),              \
          (const char *[]){ __VA_ARGS__ })

/* CONF-2 */
static void
flags_are_keys_and_lists_gather(void)
{
    static trpi_node_options options;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    trpi_config_entry entry;
    UNIT_EQUAL(PARSE(&options, "node", "--port=0", "--seed", "self", "--role", "a", "--seed",
                     "troupe.tcp://demo@h:1", "--set", "log.level=debug", "--host", "h"),
               0);
    UNIT_REQUIRE(trpi_node_config_build(&options, NULL, &config, &error) == TRP_OK);
    UNIT_EQUAL(trpi_config_int(config, "remote.port"), 0);
    UNIT_TEXT(trpi_config_text(config, "remote.hostname"), "h");
    UNIT_TEXT(trpi_config_text(config, "log.level"), "debug");
    UNIT_EQUAL(trpi_config_list_count(config, "cluster.seed-nodes"), 2);
    UNIT_TEXT(trpi_config_list_at(config, "cluster.seed-nodes", 1), "troupe.tcp://demo@h:1");
    UNIT_EQUAL(trpi_config_list_count(config, "cluster.roles"), 1);
    UNIT_REQUIRE(trpi_config_find(config, "remote.port", &entry));
    UNIT_TEXT(entry.origin, "--port");
    trpi_config_free(config);
}

static void
wrong_flags_are_usage_errors(void)
{
    static trpi_node_options options;
    UNIT_EQUAL(PARSE(&options, "node", "--prot", "1"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "--port"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "--help=1"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "stray"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "-h"), 0);
    UNIT_TRUE(options.help);
}

static void
wrong_values_name_the_flag(void)
{
    static trpi_node_options options;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    UNIT_EQUAL(PARSE(&options, "node", "--port", "70000"), 0);
    UNIT_EQUAL(trpi_node_config_build(&options, NULL, &config, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "--port: remote.port: 70000 is out of range: 0 to 65535");
}

static void
log_lines_are_one_line_each(void)
{
    char buffer[512];
    trp_log_line line = { .level = TRP_LOG_WARNING,
                          .source = "clu\"ster",
                          .text = "a\nb\x01 \"c\"",
                          .wall_ms = 1763640181204 };
    size_t bytes = trp_log_format(&line, false, buffer, sizeof buffer);
    buffer[bytes] = '\0';
    UNIT_TEXT(buffer, "2025-11-20T12:03:01.204Z warning clu\"ster a\\x0ab\\x01 \"c\"\n");
    bytes = trp_log_format(&line, true, buffer, sizeof buffer);
    buffer[bytes] = '\0';
    UNIT_TEXT(
        buffer,
        "{\"time\":\"2025-11-20T12:03:01.204Z\",\"level\":\"warning\",\"source\":\"clu\\\"ster\","
        "\"message\":\"a\\u000ab\\u0001 \\\"c\\\"\"}\n");
}

static void
long_log_lines_are_cut_and_stay_whole_lines(void)
{
    char text[8192], buffer[TRPI_LOG_LINE_BYTES_MAX];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    trp_log_line line = { .level = TRP_LOG_INFO, .source = "s", .text = text };
    for (int json = 0; json < 2; json++) {
        size_t bytes = trp_log_format(&line, json, buffer, sizeof buffer);
        UNIT_TRUE(bytes <= sizeof buffer);
        UNIT_TRUE(buffer[bytes - 1] == '\n');
        UNIT_TRUE(!json || memcmp(buffer + bytes - 3, "\"}\n", 3) == 0);
    }
}

UNIT_BEGIN("node_options")
UNIT(flags_are_keys_and_lists_gather)
UNIT(wrong_flags_are_usage_errors)
UNIT(wrong_values_name_the_flag)
UNIT(log_lines_are_one_line_each)
UNIT(long_log_lines_are_cut_and_stay_whole_lines)
UNIT_END
