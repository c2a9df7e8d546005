/* config_main.c - `troupe config show [--origin]`, `troupe config show --reference` and `troupe
 * config check [FILE]`, as text or JSON.
 *
 * Both read what `troupe node` with the same options and environment would read. `check` runs the
 * node's own start up to where other programs would notice it (trpi_node_check), so that both
 * refuse the same.
 * Tests. tests/system, tests/unit/node/node_options_test.c
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/node.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_options.h"
#include "cluster/node/node_private.h"

static const char help[] =
    "usage: troupe config show [KEY] [--origin] [-o table|json|jsonl] [--config FILE] [--set "
    "KEY=VALUE]...\n"
    "       troupe config show --reference\n"
    "       troupe config check [FILE] [--keys-only] [-o table|json|jsonl]\n"
    "\n"
    "show    print every key with the value that a node started with the same options would use\n"
    "check   read FILE (and the environment) as a node would, and say what is wrong, with the "
    "exit\n"
    "        code of a node that does not start for it: 78 for unknown keys, wrong values, keys "
    "that\n"
    "        contradict each other, files of TLS, plugins, lease and log; 77 for the control "
    "socket;\n"
    "        69 for a host name or address that is not this host's. It runs the node's own start, "
    "as\n"
    "        the user who calls it, up to where others would notice: no port is opened, no "
    "plugin's\n"
    "        init is run, and a node that runs here is no error. JSON has file (null: none), ok, "
    "exit\n"
    "        and findings, each with its level, error or note, and its text\n"
    "\n"
    "  --keys-only       check: keys and values alone, for a file of another host\n"
    "  --reference       print a file with every key, its default and what it means\n"
    "  --origin          say where each value comes from\n"
    "  -o, --output FMT  table (default), json, or jsonl: on one line\n"
    "  --config FILE     the configuration file\n"
    "  --set KEY=VALUE   set one key; stronger than environment and file\n";

static bool
word_is_bare(const char *text)
{
    return *text && !text[strcspn(text, " \t\n\"'#={}(),\\$")];
}

/* Print a value; return how many columns it took. */
static int
value_print(const char *text)
{
    if (word_is_bare(text)) {
        return printf("%s", text);
    }
    int column = printf("\"");
    for (; *text; text++) {
        column += printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    return column + printf("\"");
}

static void
entry_print(const trpi_config_entry *entry, bool origin)
{
    int column = printf("%s = ", entry->key);
    if (entry->type == TRPI_CONFIG_LIST) {
        column += printf("{");
        for (size_t i = 0; i < entry->count; i++) {
            column += printf(i ? ", " : " ");
            column += value_print(trpi_config_shown(entry, i));
        }
        column += printf(" }");
    } else {
        column += value_print(trpi_config_shown(entry, 0));
    }
    if (origin) {
        (void)printf("%*s# %s", column < 56 ? 56 - column : 1, "", entry->origin);
    }
    (void)fputs("\n", stdout);
}

static bool
entry_add(cJSON *object, const trpi_config_entry *entry, bool origin)
{
    bool list = entry->type == TRPI_CONFIG_LIST;
    cJSON *value = list ? cJSON_CreateArray() : cJSON_CreateString(trpi_config_shown(entry, 0));
    for (size_t i = 0; list && i < entry->count; i++) {
        (void)cJSON_AddItemToArray(value, cJSON_CreateString(trpi_config_shown(entry, i)));
    }
    if (origin) {
        cJSON *pair = cJSON_CreateObject();
        (void)cJSON_AddItemToObject(pair, "value", value);
        (void)trpi_json_add_text(pair, "origin", entry->origin);
        value = pair;
    }
    return value && cJSON_AddItemToObject(object, entry->key, value);
}

/* Print it, and release it. */
static void
json_print(cJSON *object, const trpi_node_options *options)
{
    char *text = options->on_one_line ? cJSON_PrintUnformatted(object) : cJSON_Print(object);
    if (text != NULL) {
        trpi_utf8_mend(text, strlen(text));
    }
    (void)puts(text != NULL ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(object);
}

static int
config_show(const trpi_config *config, const trpi_node_options *options)
{
    const char *wanted = options->positional_count > 1 ? options->positional[1] : NULL;
    cJSON *object = options->as_json ? cJSON_CreateObject() : NULL;
    size_t shown = 0;
    for (size_t i = 0; i < trpi_config_count(config); i++) {
        trpi_config_entry entry;
        trpi_config_at(config, i, &entry);
        size_t bytes = wanted ? strlen(wanted) : 0;
        if (wanted && (strncmp(entry.key, wanted, bytes) != 0 ||
                       (entry.key[bytes] && entry.key[bytes] != '.'))) {
            continue;
        }
        shown++;
        if (options->as_json) {
            (void)entry_add(object, &entry, options->origin); /* without memory: not shown */
        } else {
            entry_print(&entry, options->origin);
        }
    }
    if (object) {
        json_print(object, options);
    }
    if (wanted && shown == 0) {
        const char *near = trpi_config_nearest(wanted);
        (void)fprintf(stderr, "troupe: no such key '%s'%s%s%s\n", wanted,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return TRPI_CTL_EXIT_NOT_FOUND;
    }
    return 0;
}

static int
reference_show(void)
{
    char *text = NULL;
    trp_err err =
        trp_config_render(NULL, TRP_CONFIG_RENDER_DEFAULTS | TRP_CONFIG_RENDER_DOCS, &text);
    if (err != TRP_OK) {
        (void)fprintf(stderr, "troupe: %s\n", trp_strerror(err));
        return TRPI_CTL_EXIT_INTERNAL;
    }
    (void)fputs("# The reference configuration: every key, what it means, and its default.\n"
                "# `troupe config show --reference` writes it from the table that the code reads.\n"
                "# Names are Akka's without the leading \"akka.\"; other names of it are told.\n"
                "\n",
                stdout);
    (void)fputs(text, stdout);
    trp_config_text_free(text);
    return fflush(stdout) == 0 ? 0 : TRPI_CTL_EXIT_OUTPUT;
}

/* A node starts also with a name that does not resolve, and keeps resolving it: write a note, since
 * it may be a mistake. */
static void
name_note(const char *what, const char *host, FILE *out)
{
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, NULL, NULL, &found);
    if (rc != 0) {
        (void)fprintf(out, "note: %s: the name %s does not resolve here: %s\n", what, host,
                      gai_strerror(rc));
    } else {
        freeaddrinfo(found);
    }
}

static void
names_note(const trpi_config *config, FILE *out)
{
    static const char seeds[] = "cluster.seed-nodes";
    trpi_address address;
    name_note("remote.hostname", trpi_config_text(config, "remote.hostname"), out);
    for (size_t i = 0; i < trpi_config_list_count(config, seeds); i++) {
        const char *seed = trpi_config_list_at(config, seeds, i);
        if (trpi_address_parse(seed, &address, NULL, NULL) == TRP_OK) { /* else: self */
            name_note(seeds, address.host, out);
        }
    }
}

static bool
finding_add(cJSON *findings, const char *level, const char *text)
{
    cJSON *finding = cJSON_CreateObject();
    return trpi_json_append(findings, finding,
                            trpi_json_add_text(finding, "level", level) &&
                                trpi_json_add_text(finding, "text", text));
}

/* Add the lines of notes, which are changed. */
static bool
notes_add(cJSON *findings, char *notes)
{
    static const char mark[] = "note: ";
    char *rest = NULL;
    bool ok = true;
    for (char *line = strtok_r(notes, "\n", &rest); ok && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        bool marked = strncmp(line, mark, sizeof mark - 1) == 0;
        ok = finding_add(findings, "note", marked ? line + sizeof mark - 1 : line);
    }
    return ok;
}

/* Print what a check has found: error "", or why a node does not start, also on standard error.
 * Returns rc, the exit code. */
static int
check_print(const trpi_node_options *options, int rc, const char *error, char *notes)
{
    if (*error) {
        (void)fprintf(stderr, "troupe: %s\n", error);
    }
    if (options->as_json) {
        cJSON *object = cJSON_CreateObject(), *findings = NULL;
        bool ok = trpi_json_add_text(object, "file", options->config_file) &&
                  trpi_json_add_bool(object, "ok", rc == 0) &&
                  trpi_json_add_i64(object, "exit", rc) &&
                  (findings = cJSON_AddArrayToObject(object, "findings")) != NULL &&
                  (!*error || finding_add(findings, "error", error)) &&
                  (notes == NULL || notes_add(findings, notes));
        if (!ok) {
            cJSON_Delete(object);
            (void)fputs("troupe: out of memory\n", stderr);
            return TRPI_CTL_EXIT_INTERNAL;
        }
        json_print(object, options);
    } else if (rc == 0) {
        (void)fputs(notes != NULL ? notes : "", stderr);
        (void)printf("%s: ok\n",
                     options->config_file ? options->config_file : "defaults and environment");
    }
    return rc;
}

/* Returns the exit code. */
static int
config_check(trpi_config *config, const trpi_node_options *options)
{
    trpi_config_error error = { "" };
    trp_node_error node_error = { "" };
    trp_node_options node_options = TRP_NODE_OPTIONS_INIT;
    node_options.control_socket_forced = 1; /* as `troupe node` */
    if (options->keys_only) {
        if (trpi_node_config_check(config, &error) != TRP_OK) {
            return check_print(options, TRPI_CTL_EXIT_CONFIG, error.text, NULL);
        }
    } else {
        trp_err err = trpi_node_check(config, &node_options, &node_error);
        if (err != TRP_OK) {
            return check_print(options, trpi_node_open_exit(err), node_error.text, NULL);
        }
    }
    char *notes = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&notes, &bytes);
    if (out != NULL) {
        if (!options->keys_only) {
            names_note(config, out);
        }
        trpi_node_config_notes(config, out);
        (void)fclose(out);
    }
    int rc = check_print(options, 0, "", notes);
    free(notes); /* of the C library */
    return rc;
}

int
trp_config_main(int argc, char **argv)
{
    trpi_node_options options;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    int rc = trpi_node_options_parse(argc, argv, 2, &options);
    if (rc != 0) {
        return rc;
    }
    if (options.help) {
        (void)fputs(help, stdout);
        return 0;
    }
    const char *verb = options.positional_count ? options.positional[0] : "";
    bool check = strcmp(verb, "check") == 0;
    if (!check && strcmp(verb, "show") != 0) {
        static const char *const verbs[] = { "show", "check" };
        const char *near = *verb ? trpi_nearest(verb, verbs, 2) : NULL;
        (void)fprintf(stderr, "troupe: config: %s%s%sexpected show or check%s%s%s\n",
                      *verb ? "no '" : "", verb, *verb ? "'; " : "", near ? "; did you mean '" : "",
                      near ? near : "", near ? "'?" : "; see troupe config --help");
        return TRPI_CTL_EXIT_USAGE;
    }
    if (options.reference && !check) {
        return reference_show();
    }
    if (check && options.positional_count > 1) {
        options.config_file = options.positional[1];
    }
    if (trpi_node_config_build(&options, environ, &config, &error) != TRP_OK) {
        if (check) {
            rc = check_print(&options, TRPI_CTL_EXIT_CONFIG, error.text, NULL);
            return fflush(stdout) == 0 ? rc : TRPI_CTL_EXIT_OUTPUT;
        }
        (void)fprintf(stderr, "troupe: %s\n", error.text);
        return TRPI_CTL_EXIT_CONFIG;
    }
    rc = check ? config_check(config, &options) : config_show(config, &options);
    trpi_config_free(config);
    return fflush(stdout) == 0 ? rc : TRPI_CTL_EXIT_OUTPUT;
}
