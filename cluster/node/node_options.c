/* node_options.c - flags of `troupe node`: each is a key of the configuration.
 *
 * Tests. tests/unit/node/node_options_test.c
 */
#include "cluster/node/node_options.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "cluster/node/ctl_proto.h"

static const struct flag {
    const char *name;
    const char *key; /* NULL: handled apart */
    bool has_value;
    bool of_config; /* not of node */
} flags[] = {
    { "--config", NULL, true },
    { "--set", NULL, true },
    { "--system", "system", true },
    { "--host", "remote.hostname", true },
    { "--port", "remote.port", true },
    { "--bind-host", "remote.bind-hostname", true },
    { "--bind-port", "remote.bind-port", true },
    { "--seed", "cluster.seed-nodes", true },
    { "--role", "cluster.roles", true },
    { "--load", "plugins", true },
    { "--apps", "apps.directory", true },
    { "--socket", "control.socket", true },
    { "--log-level", "log.level", true },
    { "--log-format", "log.format", true },
    { "--log-file", "log.file", true },
    { "--help", NULL, false },
    { "--origin", NULL, false, .of_config = true },
    { "--reference", NULL, false, .of_config = true },
    { "--keys-only", NULL, false, .of_config = true },
    { "--output", NULL, true, .of_config = true },
};
#define FLAGS_COUNT (sizeof flags / sizeof flags[0])

static int
usage_error(const char *format, const char *what, const char *more)
{
    (void)fputs("troupe: ", stderr);
    (void)fprintf(stderr, format, what, more);
    (void)fputs("\n", stderr);
    return TRPI_CTL_EXIT_USAGE;
}

static const struct flag *
flag_find(const char *text, size_t bytes, bool of_config)
{
    for (size_t i = 0; i < FLAGS_COUNT; i++) {
        if (flags[i].of_config <= of_config && strlen(flags[i].name) == bytes &&
            memcmp(flags[i].name, text, bytes) == 0) {
            return &flags[i];
        }
    }
    return NULL;
}

static int
flag_unknown(const char *text, size_t bytes, bool of_config)
{
    char name[64];
    const char *names[FLAGS_COUNT];
    (void)snprintf(name, sizeof name, "%.*s", (int)bytes, text);
    size_t count = 0;
    for (size_t i = 0; i < FLAGS_COUNT; i++) {
        if (flags[i].of_config <= of_config) {
            names[count++] = flags[i].name;
        }
    }
    const char *near = trpi_nearest(name, names, count);
    return near ? usage_error("unknown option %s; did you mean %s?", name, near)
                : usage_error("unknown option %s%s", name, "");
}

static int
flag_take(trpi_node_options *options, const struct flag *flag, const char *value)
{
    if (strcmp(flag->name, "--config") == 0) {
        options->config_file = value;
        return 0;
    }
    if (strcmp(flag->name, "--output") == 0) {
        options->on_one_line = strcmp(value, "jsonl") == 0;
        options->as_json = options->on_one_line || strcmp(value, "json") == 0;
        return options->as_json || strcmp(value, "table") == 0
                   ? 0
                   : usage_error("unknown output format %s: table, json or jsonl%s", value, "");
    }
    options->help |= strcmp(flag->name, "--help") == 0;
    options->origin |= strcmp(flag->name, "--origin") == 0;
    options->reference |= strcmp(flag->name, "--reference") == 0;
    options->keys_only |= strcmp(flag->name, "--keys-only") == 0;
    if (!flag->has_value) {
        return 0;
    }
    if (options->settings_count == TRPI_NODE_SETTINGS_MAX) {
        return usage_error("too many options%s%s", "", "");
    }
    options->settings[options->settings_count].origin = flag->name;
    options->settings[options->settings_count].key = flag->key;
    options->settings[options->settings_count++].value = value;
    return 0;
}

static const char *
short_expand(const char *text)
{
    return strcmp(text, "-h") == 0 ? "--help" : strcmp(text, "-o") == 0 ? "--output" : text;
}

int
trpi_node_options_parse(int argc, char **argv, size_t positional_max,
                        trpi_node_options *ret_options)
{
    trpi_assert(positional_max <=
                sizeof ret_options->positional / sizeof ret_options->positional[0]);
    memset(ret_options, 0, sizeof *ret_options);
    for (int i = 1; i < argc; i++) {
        const char *text = short_expand(argv[i]);
        if (text[0] != '-') {
            if (ret_options->positional_count == positional_max) {
                return usage_error("unexpected argument '%s'%s", text, "");
            }
            ret_options->positional[ret_options->positional_count++] = text;
            continue;
        }
        size_t bytes = strcspn(text, "=");
        const struct flag *flag = flag_find(text, bytes, positional_max > 0);
        const char *value = text[bytes] ? text + bytes + 1 : NULL;
        if (!flag) {
            return flag_unknown(text, bytes, positional_max > 0);
        }
        if (!flag->has_value && value) {
            return usage_error("%s takes no value%s", flag->name, "");
        }
        if (flag->has_value && !value) {
            if (i + 1 == argc) {
                return usage_error("%s needs a value%s", flag->name, "");
            }
            value = argv[++i];
        }
        int rc = flag_take(ret_options, flag, value);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* All values given to one list flag, once, at its first appearance. */
static trp_err
list_apply(const trpi_node_options *options, size_t at, trpi_config *config,
           trpi_config_error *ret_error)
{
    const char *values[TRPI_NODE_SETTINGS_MAX], *key = options->settings[at].key;
    size_t count = 0;
    for (size_t i = 0; i < options->settings_count; i++) {
        if (options->settings[i].key && strcmp(options->settings[i].key, key) == 0) {
            if (i < at) {
                return TRP_OK; /* done there */
            }
            values[count++] = options->settings[i].value;
        }
    }
    return trpi_config_put(config, TRPI_CONFIG_FLAG, key, values, count,
                           options->settings[at].origin, ret_error);
}

static bool
key_is_list(const char *key)
{
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        if (strcmp(row->key, key) == 0) {
            return row->type == TRPI_CONFIG_LIST;
        }
    }
    return false;
}

static trp_err
flags_apply(const trpi_node_options *options, trpi_config *config, trpi_config_error *ret_error)
{
    trp_err err = TRP_OK;
    for (size_t i = 0; err == TRP_OK && i < options->settings_count; i++) {
        const char *origin = options->settings[i].origin, *key = options->settings[i].key;
        if (!key) {
            err = trpi_config_set(config, options->settings[i].value, origin, ret_error);
        } else if (key_is_list(key)) {
            err = list_apply(options, i, config, ret_error);
        } else {
            err = trpi_config_put(config, TRPI_CONFIG_FLAG, key, &options->settings[i].value, 1,
                                  origin, ret_error);
        }
    }
    return err;
}

/* The file comes first: its titles and app keys decide which key a variable sets. */
/* Akka 2.2's switch is a strategy here. A configured strategy counts (node_check.c). */
static trp_err
auto_down_apply(trpi_config *config, trpi_config_error *ret_error)
{
    static const char strategy[] = "cluster.downing.active-strategy";
    static const char *const value[] = { "auto-down-after" };
    trpi_config_entry entry;
    if (!trpi_config_bool(config, "cluster.auto-down") ||
        !trpi_config_find(config, strategy, &entry) || entry.layer != TRPI_CONFIG_DEFAULT) {
        return TRP_OK;
    }
    return trpi_config_put(config, TRPI_CONFIG_FLAG, strategy, value, 1, "cluster.auto-down",
                           ret_error);
}

trp_err
trpi_node_config_build(const trpi_node_options *options, char *const *environment,
                       trpi_config **ret_config, trpi_config_error *ret_error)
{
    trpi_config *config = NULL;
    trp_err err = trpi_config_new(&config);
    if (err != TRP_OK) {
        (void)snprintf(ret_error->text, sizeof ret_error->text, "out of memory");
        return err;
    }
    if (options->config_file) {
        err = trpi_config_load_file(config, options->config_file, ret_error);
    }
    if (err == TRP_OK && environment) {
        err = trpi_config_load_env(config, environment, ret_error);
    }
    if (err == TRP_OK) {
        err = flags_apply(options, config, ret_error);
    }
    if (err == TRP_OK) {
        err = auto_down_apply(config, ret_error);
    }
    if (err != TRP_OK) {
        trpi_config_free(config);
        return err;
    }
    *ret_config = config;
    return TRP_OK;
}
