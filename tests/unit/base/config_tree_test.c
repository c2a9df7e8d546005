/* config_tree_test.c - configurations as values: layers, subtrees, includes, and back to text. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/config.h>

#include "base/alloc.h"
#include "base/config.h"
#include "tests/unit/unit.h"

static trp_config *
text_parse(const char *text)
{
    trp_config *config = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(config != NULL);
    return config;
}

static const char *
text_of(const trp_config *config, const char *key)
{
    const char *text = NULL;
    return trp_config_get_text(config, key, &text, NULL) == TRP_OK ? text : "(not set)";
}

/* ---- files in a directory of their own ------------------------------------------------------- */

static char dir[64];

static void
file_write(const char *name, const char *text)
{
    char path[128];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "config_tree_test.XXXXXX");
        UNIT_REQUIRE(mkdtemp(dir) != NULL);
    }
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    UNIT_REQUIRE(file != NULL);
    UNIT_TRUE(fputs(text, file) >= 0);
    UNIT_EQUAL(fclose(file), 0);
}

static void
files_remove(const char *const *names)
{
    char path[128];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", dir, *names);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    dir[0] = '\0';
}

/* Parse the file of dir and compare the complaint, in which @ stands for the directory. */
static void
file_gives(const char *name, const char *want)
{
    char path[128], full[1024] = "";
    trp_config *config = NULL;
    trp_config_error error = { "" };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (const char *p = want; *p; p++) {
        size_t count = strlen(full);
        snprintf(full + count, sizeof full - count, *p == '@' ? "%s" : "%.1s", *p == '@' ? dir : p);
    }
    UNIT_EQUAL(trp_config_parse_file(path, &config, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, full);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

/* CONF-4: the two applications of the document's example, with their results */
static void
subtrees_of_one_file_are_lifted_for_several_systems(void)
{
    trp_config *file =
        text_parse("myapp1 {\n  loglevel = WARNING\n"
                   "  app { my { own { setting = 43 } } }\n}\n"
                   "myapp2 {\n  loglevel = ERROR\n"
                   "  app { app2 { setting = appname } }\n}\n"
                   "app { my { own { setting = 42 } other { setting = hello } } }\n");
    trp_config *tree = NULL, *app1 = NULL, *app2 = NULL, *library = NULL;
    /* config.getConfig("myapp1").withFallback(config) */
    UNIT_EQUAL(trp_config_get_subtree(file, "myapp1", &tree), TRP_OK);
    UNIT_EQUAL(trp_config_with_fallback(tree, file, &app1), TRP_OK);
    trp_config_unref(tree);
    UNIT_TEXT(text_of(app1, "log.level"), "warning");
    UNIT_TEXT(text_of(app1, "app.my.own.setting"), "43");
    UNIT_TEXT(text_of(app1, "app.my.other.setting"), "hello");
    UNIT_TEXT(text_of(app1, "myapp2.log.level"), "error"); /* plus both subtrees */
    UNIT_TEXT(text_of(app1, "myapp1.app.my.own.setting"), "43");
    UNIT_TEXT(trp_config_origin(app1, "app.my.own.setting"), "t.conf:3");
    UNIT_TEXT(trp_config_origin(app1, "app.my.other.setting"), "t.conf:9");
    /* config.getConfig("myapp2").withOnlyPath("akka").withFallback(config) */
    UNIT_EQUAL(trp_config_get_subtree(file, "myapp2", &tree), TRP_OK);
    UNIT_EQUAL(trp_config_without_path(tree, "app", &library), TRP_OK);
    UNIT_EQUAL(trp_config_with_fallback(library, file, &app2), TRP_OK);
    trp_config_unref(tree);
    trp_config_unref(library);
    UNIT_TEXT(text_of(app2, "log.level"), "error");
    UNIT_TEXT(text_of(app2, "app.my.own.setting"), "42");
    UNIT_TEXT(text_of(app2, "app.my.other.setting"), "hello");
    UNIT_TEXT(text_of(app2, "app.app2.setting"), "(not set)");
    UNIT_EQUAL(trp_config_with_only_path(app2, "log", &library), TRP_OK);
    UNIT_TEXT(text_of(library, "log.level"), "error");
    UNIT_FALSE(trp_config_is_set(library, "app.my.own.setting"));
    trp_config_unref(library);
    UNIT_EQUAL(trp_config_get_subtree(file, "myapp3", &tree), TRP_ENOENT);
    trp_config_unref(app2);
    trp_config_unref(app1);
    trp_config_unref(file);
}

/* A subtree is checked like a file of its own. */
static void
mistakes_in_a_subtree_are_refused_with_the_right_name(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "one {\n log { levle = info } }",
          "t.conf:2: no such option 'levle' in one.log; did you mean 'log.level'?" },
        { "one { log { level = loud } }",
          "t.conf:1: one.log.level: 'loud' is not one of error|warning|info|debug|off" },
        { "one { two { } }", "t.conf:1: no such option 'two' in one" },
        { "lgo { level = info }",
          "t.conf:1: no such option 'lgo'; did you mean the section 'log'?" },
        { "one { app { a = 1 }\n app { a = 2 } }",
          "t.conf:2: one.app.a is given twice; the first stands at t.conf:1" },
        { "one = 1", "t.conf:1: no such option 'one'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_config *config = NULL;
        trp_config_error error = { "" };
        UNIT_EQUAL(trp_config_parse_text("t.conf", rows[i].text, &config, &error), TRP_ECONFIG);
        UNIT_TEXT(error.text, rows[i].want);
    }
}

/* 0 is the default of the engine: it would be taken for 20 s, and 5 s. */
static void
times_of_downing_are_not_zero(void)
{
    static const char *const keys[] = { "stable-after", "auto-down-after" };
    static const char *const values[] = { "1ms", "0s", "off" };
    for (size_t i = 0; i < 6; i++) {
        const char *key = keys[i % 2];
        char text[96], want[160];
        trp_config *config = NULL;
        trp_config_error error = { "" };
        snprintf(text, sizeof text, "cluster { downing { %s = %s } }", key, values[i / 2]);
        snprintf(want, sizeof want, "t.conf:1: cluster.downing.%s: %s is out of range: 1ms to ",
                 key, values[i / 2]);
        UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error),
                   i < 2 ? TRP_OK : TRP_ECONFIG);
        UNIT_TRUE(i < 2 || strncmp(error.text, want, strlen(want)) == 0);
        trp_config_unref(config);
    }
}

static void
subtrees_are_limited(void)
{
    char text[4096];
    for (int extra = 0; extra < 2; extra++) {
        size_t count = 0;
        trp_config *config = NULL;
        trp_config_error error = { "" };
        for (int i = 0; i < TRPI_CONFIG_SUBTREES_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, sizeof text - count,
                                      "tenant%d { log { level = info } }\n", i);
        }
        UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error),
                   extra ? TRP_ECONFIG : TRP_OK);
        UNIT_TEXT(error.text, extra ? "t.conf:17: more than 16 subtrees" : "");
        trp_config_unref(config);
    }
}

/* CONF-3, CONF-5, CONF-1 */
static void
later_keys_win_whether_included_or_not(void)
{
    static const char *const names[] = { "main.conf", "base.conf", "sub.conf", NULL };
    char path[128], want[160];
    trp_config *config = NULL;
    trp_config_error error = { "" };
    file_write("base.conf", "# the base\n"
                            "/* over\n   lines */ log { level = debug dead-letters = 3 }\n"
                            "cluster { roles = { a, b }\n gossip-interval = 2s }\n");
    file_write("sub.conf", "min-nr-of-members = 3");
    file_write("main.conf",
               "log { level = error }\n"
               "include( 'base.conf' ) system = late\n"
               "log { dead-letters = 4 }\n"
               "cluster { roles += c include(\"sub.conf\") seed-node-timeout = 7s }\n");
    snprintf(path, sizeof path, "%s/main.conf", dir);
    UNIT_EQUAL(trp_config_parse_file(path, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(config != NULL);
    UNIT_TEXT(text_of(config, "log.level"), "debug");    /* the include stands behind it */
    UNIT_TEXT(text_of(config, "log.dead-letters"), "4"); /* and before this one */
    UNIT_TEXT(text_of(config, "cluster.min-nr-of-members"), "3");
    snprintf(want, sizeof want, "%s/base.conf:3", dir);
    UNIT_TEXT(trp_config_origin(config, "log.level"), want);
    snprintf(want, sizeof want, "%s/base.conf:5", dir);
    UNIT_TEXT(trp_config_origin(config, "cluster.gossip-interval"), want);
    snprintf(want, sizeof want, "%s/main.conf:2", dir);
    UNIT_TEXT(trp_config_origin(config, "system"), want);
    snprintf(want, sizeof want, "%s/main.conf:3", dir);
    UNIT_TEXT(trp_config_origin(config, "log.dead-letters"), want);
    snprintf(want, sizeof want, "%s/sub.conf:1", dir);
    UNIT_TEXT(trp_config_origin(config, "cluster.min-nr-of-members"), want);
    snprintf(want, sizeof want, "%s/main.conf:4", dir);
    UNIT_TEXT(trp_config_origin(config, "cluster.seed-node-timeout"), want);
    const char *const *roles = NULL;
    size_t count = 0;
    UNIT_EQUAL(trp_config_get_list(config, "cluster.roles", &roles, &count, NULL), TRP_OK);
    UNIT_EQUAL(count, 3);
    UNIT_TEXT(roles[2], "c");
    trp_config_unref(config);
    files_remove(names);
}

/* TRPI_CONFIG_FILE_BYTES_MAX: one file, and with what it includes; TRPI_CONFIG_INCLUDE_DEPTH_MAX */
static void
files_are_limited_in_size_and_depth(void)
{
    static const char *const names[] = { "0.conf", "1.conf", "2.conf", "3.conf", "4.conf", "5.conf",
                                         "6.conf", "7.conf", "8.conf", "9.conf", NULL };
    char path[128], line[64];
    char *text = trpi_alloc(TRPI_CONFIG_FILE_BYTES_MAX + 2);
    trp_config *config = NULL;
    trp_config_error error = { "" };
    UNIT_REQUIRE(text != NULL);
    memset(text, '#', TRPI_CONFIG_FILE_BYTES_MAX); /* a comment */
    file_write("1.conf", text);
    snprintf(path, sizeof path, "%s/1.conf", dir);
    UNIT_EQUAL(trp_config_parse_file(path, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    trp_config_unref(config);
    file_write("0.conf", "include(\"1.conf\")\n");
    file_gives("0.conf", "@/1.conf: larger than 1048576 bytes, with what includes it");
    text[TRPI_CONFIG_FILE_BYTES_MAX] = '#';
    file_write("1.conf", text);
    file_gives("1.conf", "@/1.conf: larger than 1048576 bytes");
    trpi_free(text);
    for (int i = 0; i < TRPI_CONFIG_INCLUDE_DEPTH_MAX; i++) {
        snprintf(line, sizeof line, "include(\"%d.conf\")\n", i + 1);
        file_write(names[i], line);
    }
    file_write(names[TRPI_CONFIG_INCLUDE_DEPTH_MAX], "system = deep\n");
    snprintf(path, sizeof path, "%s/0.conf", dir);
    config = NULL;
    UNIT_EQUAL(trp_config_parse_file(path, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_TEXT(text_of(config, "system"), "deep");
    trp_config_unref(config);
    file_write(names[TRPI_CONFIG_INCLUDE_DEPTH_MAX], "include(\"9.conf\")\n");
    file_write("9.conf", "system = deeper\n");
    file_gives("0.conf", "@/8.conf:1: more than 8 files include one another");
    files_remove(names);
}

/* CONF-3 */
static void
mistakes_in_included_files_are_told_with_their_place(void)
{
    static const char *const names[] = { "a.conf", "b.conf", "c.conf", NULL };
    char text[4096];
    size_t count = 0;
    file_write("a.conf", "system = x\ninclude(\"b.conf\")\nlog { levle = info }\n");
    file_write("b.conf", "log { level = info }\n");
    file_gives("a.conf", "@/a.conf:3: no such option 'levle' in log; did you mean 'log.level'?");
    file_write("b.conf", "\n\nlog {\n levle = info }\n");
    file_gives("a.conf", "@/b.conf:4: no such option 'levle' in log; did you mean 'log.level'?");
    file_write("b.conf", "log { level = info }\nlog { level = debug }\n");
    file_gives("a.conf", "@/b.conf:2: log.level is given twice; the first stands at @/b.conf:1");
    file_write("b.conf", "system = \"open\n");
    file_gives("a.conf", "@/b.conf:1: a quote is not closed");
    file_write("b.conf", "include(\"none.conf\")\n");
    file_gives("a.conf", "@/b.conf:1: include: @/none.conf: No such file or directory");
    file_write("b.conf", "include(\"a.conf\")\n");
    file_gives("a.conf", "@/a.conf:2: more than 8 files include one another");
    file_write("b.conf", "# nothing\n");
    for (int extra = 0; extra < 2; extra++) {
        trp_config *config = NULL;
        trp_config_error error = { "" };
        char path[128];
        count = 0;
        text[0] = '\0';
        for (int i = 1; i < TRPI_CONFIG_INCLUDES_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, sizeof text - count, "include(\"b.conf\")\n");
        }
        file_write("c.conf", text);
        snprintf(path, sizeof path, "%s/c.conf", dir);
        UNIT_EQUAL(trp_config_parse_file(path, &config, &error), extra ? TRP_ECONFIG : TRP_OK);
        UNIT_EQUAL(strstr(error.text, "more than 64 files") != NULL, extra);
        trp_config_unref(config);
    }
    files_remove(names);
}

/* CONF-1, -4, -25 */
static void
getters_read_types_and_say_what_is_wrong_and_where(void)
{
    trp_config *config =
        text_parse("app { wait = \"3 seconds\" body = 128KiB\n retries = 3 rate = 0.25 loud = yes\n"
                   "names = { a, b } word = hello }\n");
    trp_config_error error = { "" };
    const char *text = NULL;
    const char *const *values = NULL;
    size_t count = 0;
    int64_t number = 0;
    double rate = 0;
    int holds = 0;
    UNIT_EQUAL(trp_config_get_duration(config, "app.wait", &number, &error), TRP_OK);
    UNIT_EQUAL(number, 3000);
    UNIT_EQUAL(trp_config_get_size(config, "app.body", &number, &error), TRP_OK);
    UNIT_EQUAL(number, 131072);
    UNIT_EQUAL(trp_config_get_int(config, "app.retries", &number, &error), TRP_OK);
    UNIT_EQUAL(number, 3);
    UNIT_EQUAL(trp_config_get_float(config, "app.rate", &rate, &error), TRP_OK);
    UNIT_TRUE(rate > 0.249 && rate < 0.251);
    UNIT_EQUAL(trp_config_get_bool(config, "app.loud", &holds, &error), TRP_OK);
    UNIT_TRUE(holds);
    UNIT_EQUAL(trp_config_get_list(config, "app.names", &values, &count, &error), TRP_OK);
    UNIT_EQUAL(count, 2);
    /* what is not set is as in the reference */
    UNIT_EQUAL(trp_config_get_duration(config, "cluster.gossip-interval", &number, &error), TRP_OK);
    UNIT_EQUAL(number, 1000);
    UNIT_FALSE(trp_config_is_set(config, "cluster.gossip-interval"));
    UNIT_TEXT(trp_config_origin(config, "cluster.gossip-interval"), "default");
    UNIT_TEXT(error.text, "");
    UNIT_EQUAL(trp_config_get_int(config, "app.word", &number, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:3: app.word: 'hello': expected a whole number");
    UNIT_EQUAL(trp_config_get_duration(config, "app.retries", &number, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:2: app.retries: '3': a duration needs a unit: ms, s, m, h or d");
    UNIT_EQUAL(trp_config_get_text(config, "app.names", &text, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:3: app.names is a list of 2 values");
    UNIT_EQUAL(trp_config_get_text(config, "app.retires", &text, &error), TRP_ENOENT);
    UNIT_TEXT(error.text, "'app.retires' is not set; did you mean 'app.retries'?");
    UNIT_EQUAL(trp_config_get_int(config, "remote.bind-port", &number, &error), TRP_ENOENT);
    UNIT_EQUAL(trp_config_get_text(NULL, "app.word", &text, &error), TRP_EINVAL);
    UNIT_TRUE(text == NULL);
    trp_config_unref(config);
}

/* CONF-2, -4, REMOTE-69 */
static void
layers_are_values_that_stay_as_they_were(void)
{
    char variable[] = "TROUPE_LOG_LEVEL=error";
    char *environment[] = { variable, NULL };
    const char *const settings[] = { "system=cli", NULL };
    trp_config *base = text_parse("system = base\nlog { level = debug }"), *over = NULL,
               *both = NULL;
    trp_config *loaded = NULL, *set = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(trp_config_load(NULL, environment, settings, &loaded, &error), TRP_OK);
    UNIT_TEXT(text_of(loaded, "log.level"), "error");
    UNIT_TEXT(trp_config_origin(loaded, "log.level"), "environment TROUPE_LOG_LEVEL");
    /* fallback loses whatever layer its values came from */
    UNIT_EQUAL(trp_config_with_fallback(base, loaded, &both), TRP_OK);
    UNIT_TEXT(text_of(both, "log.level"), "debug");
    UNIT_TEXT(text_of(both, "system"), "base");
    trp_config_unref(both);
    UNIT_EQUAL(trp_config_with_setting(base, "app.x = 1", "code", &set, &error), TRP_OK);
    UNIT_TEXT(text_of(set, "app.x"), "1");
    UNIT_TEXT(trp_config_origin(set, "app.x"), "code");
    UNIT_FALSE(trp_config_is_set(base, "app.x"));
    UNIT_EQUAL(trp_config_with_setting(set, "log.levle=info", "code", &over, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "code: no such key 'log.levle'; did you mean 'log.level'?");
    UNIT_TRUE(over == NULL);
    trp_config_unref(set);
    /* shared, not copied */
    over = trp_config_ref(base);
    UNIT_TRUE(over == base);
    trp_config_unref(base);
    UNIT_TEXT(text_of(over, "system"), "base");
    trp_config_unref(over);
    trp_config_unref(loaded);
}

/* Do both say the same of all keys? */
static void
configs_equal(const trp_config *a, const trp_config *b)
{
    trp_config_entry entry = { .size = sizeof entry };
    size_t count = 0, others = 0;
    for (; trp_config_at(a, count, &entry); count++) {
        const char *const *values = NULL;
        size_t values_count = 0;
        UNIT_EQUAL(trp_config_get_list(b, entry.key, &values, &values_count, NULL), TRP_OK);
        UNIT_EQUAL(values_count, entry.values_count);
        for (size_t i = 0; i < values_count && i < entry.values_count; i++) {
            UNIT_TEXT(values[i], entry.values[i]);
        }
    }
    while (trp_config_at(b, others, &entry)) {
        others++;
    }
    UNIT_EQUAL(others, count);
}

/* CONF-4, -5, SYS-2 */
static void
what_is_rendered_reads_back(void)
{
    trp_config *config = text_parse(
        "system = bank log { level = error }\n"
        "deployment \"/a.b/*\" { dispatcher = pinned }\n"
        "cluster { role \"db\" { min-nr-of-members = 2 } roles = { a, \"b-c\" } }\n"
        "app { odd = \"a \\\"q\\\" \\\\ \\$x # {y}\" none = {} limits { retries = 3 } }\n"
        "one { log { level = info } deployment \"/x\" { dispatcher = pinned } app { k = v } }\n");
    char *text = NULL;
    trp_config *back = NULL;
    trp_config_error error = { "" };
    UNIT_TEXT(text_of(config, "app.odd"), "a \"q\" \\ $x # {y}");
    for (unsigned flags = 0; flags < 8; flags++) {
        UNIT_EQUAL(trp_config_render(config, flags, &text), TRP_OK);
        UNIT_REQUIRE(text != NULL);
        UNIT_EQUAL(trp_config_parse_text("r.conf", text, &back, &error), TRP_OK);
        UNIT_TEXT(error.text, "");
        UNIT_EQUAL(strstr(text, "# t.conf:2") != NULL, (flags & TRP_CONFIG_RENDER_ORIGINS) != 0);
        if ((flags & TRP_CONFIG_RENDER_DEFAULTS) == 0) {
            configs_equal(config, back);
        } else {
            UNIT_TEXT(text_of(back, "one.log.level"), "info");
            UNIT_TRUE(trp_config_is_set(back, "cluster.gossip-interval"));
        }
        trp_config_text_free(text);
        trp_config_unref(back);
        text = NULL;
        back = NULL;
    }
    trp_config_unref(config);
}

/* CONF-26, HEADLINE-13: nothing is lost when a default is written down and read */
static void
reference_has_every_key_with_its_default_and_a_sentence(void)
{
    char *text = NULL;
    trp_config *reference = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(trp_config_render(NULL, TRP_CONFIG_RENDER_DEFAULTS | TRP_CONFIG_RENDER_DOCS, &text),
               TRP_OK);
    UNIT_EQUAL(trp_config_parse_text("reference", text, &reference, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(reference != NULL);
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        char doc[33];
        snprintf(doc, sizeof doc, "%s", row->doc);
        UNIT_TRUE(strstr(text, doc) != NULL);
        UNIT_EQUAL(trp_config_is_set(reference, row->key), strchr(row->key, '*') == NULL);
        if (!strchr(row->key, '*') && row->type != TRPI_CONFIG_LIST) {
            UNIT_TEXT(text_of(reference, row->key), row->initial);
        }
    }
    trp_config_text_free(text);
    trp_config_unref(reference);
}

/* CONF-26: what is shipped is what the code has; after a change of the table: make reference */
static void
shipped_reference_is_the_table(void)
{
    static char shipped[256 * 1024];
    char path[512], *text = NULL;
    snprintf(path, sizeof path, "%s/docs/reference.conf", unit_srcdir());
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(file != NULL);
    size_t bytes = fread(shipped, 1, sizeof shipped - 1, file);
    UNIT_EQUAL(fclose(file), 0);
    UNIT_EQUAL(trp_config_render(NULL, TRP_CONFIG_RENDER_DEFAULTS | TRP_CONFIG_RENDER_DOCS, &text),
               TRP_OK);
    UNIT_REQUIRE(text != NULL && strlen(text) <= bytes);
    bool same = strcmp(shipped + bytes - strlen(text), text) == 0;
    if (!same) {
        printf("  docs/reference.conf is not what the table says: make reference\n");
    }
    UNIT_TRUE(same);
    trp_config_text_free(text);
}

/* CONF-8 */
static void
file_of_another_version_is_refused(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "version = 0.1", "" },
        { "version = \"" TRP_VERSION "\"", "" },
        { "version = \"\"", "" },
        { "version = 2.2.5", "t.conf:1: version: written for Troupe 2.2.5, this is " TRP_VERSION },
        { "version = 0.1.", "t.conf:1: version: written for Troupe 0.1., this is " TRP_VERSION },
        { "version = 0.10", "t.conf:1: version: written for Troupe 0.10, this is " TRP_VERSION },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_config *config = NULL;
        trp_config_error error = { "" };
        UNIT_EQUAL(trp_config_parse_text("t.conf", rows[i].text, &config, &error),
                   *rows[i].want ? TRP_ECONFIG : TRP_OK);
        UNIT_TEXT(error.text, rows[i].want);
        trp_config_unref(config);
    }
}

/* LOG-11, CONF-7: Akka's name, and its words for a number */
static void
akka_names_and_words_are_understood(void)
{
    static const struct {
        const char *text, *key, *value;
        int64_t number;
    } rows[] = {
        { "log-dead-letters = on", "log.dead-letters", "on", 4294967294 },
        { "log-dead-letters = OFF", "log.dead-letters", "off", 0 },
        { "log-dead-letters = 7", "log.dead-letters", "7", 7 },
        { "log { dead-letters = 8 }", "log.dead-letters", "8", 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_config *config = text_parse(rows[i].text);
        UNIT_TEXT(text_of(config, rows[i].key), rows[i].value);
        UNIT_EQUAL(trpi_config_int(config, rows[i].key), rows[i].number);
        trp_config_unref(config);
    }
    trp_config *config = text_parse("loglevel = \"DEBUG\"");
    UNIT_TEXT(text_of(config, "log.level"), "debug");
    trp_config_unref(config);
    config = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(
        trp_config_parse_text("t.conf", "loglevel = info\nlog { level = debug }", &config, &error),
        TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:2: log.level is given twice; the first stands at t.conf:1");
    UNIT_EQUAL(trp_config_parse_text("t.conf", "log-dead-letters = some", &config, &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text,
              "t.conf:1: log.dead-letters: 'some': expected a whole number, or one of on|off");
}

static void
deployment_paths_are_checked(void)
{
    static const struct {
        const char *title, *want;
    } rows[] = {
        { "/a/*", NULL },
        { "/user/a", NULL },
        { "a", "write the path below /user: \"/parent/child\", \"/service/*\"" },
        { "/a//b", "an element of the path is empty" },
        { "/a/", "an element of the path is empty" },
        { "/a/w*", "'*' stands for a whole element: \"/service/*\"" },
        { "/system/x", "actors below /system are not deployed by configuration" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256], want[256] = "";
        trp_config *config = NULL;
        trp_config_error error = { "" };
        snprintf(text, sizeof text, "deployment \"%s\" { dispatcher = pinned }", rows[i].title);
        if (rows[i].want) {
            snprintf(want, sizeof want, "t.conf:1: deployment \"%s\": %s", rows[i].title,
                     rows[i].want);
        }
        UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error),
                   rows[i].want ? TRP_ECONFIG : TRP_OK);
        UNIT_TEXT(error.text, want);
        trp_config_unref(config);
    }
}

static void
deployments_are_limited_in_number_and_depth(void)
{
    for (int extra = 0; extra < 2; extra++) {
        size_t room = 256 * 1024, count = 0;
        char *text = malloc(room);
        trp_config *config = NULL;
        trp_config_error error = { "" };
        UNIT_REQUIRE(text != NULL);
        for (int i = 0; i < TRPI_CONFIG_TITLES_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, room - count,
                                      "deployment \"/a%d\" { dispatcher = pinned }\n", i);
        }
        UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error),
                   extra ? TRP_ECONFIG : TRP_OK);
        UNIT_TEXT(error.text, extra ? "t.conf:1025: more than 1024 sections 'deployment'" : "");
        trp_config_unref(config);
        config = NULL;
        count = (size_t)snprintf(text, room, "deployment \"");
        for (int i = 0; i < TRPI_CONFIG_DEPLOYMENT_DEPTH_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, room - count, "/a");
        }
        snprintf(text + count, room - count, "\" { dispatcher = pinned }");
        UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error),
                   extra ? TRP_ECONFIG : TRP_OK);
        UNIT_EQUAL(strstr(error.text, "the path is too deep") != NULL, extra);
        trp_config_unref(config);
        free(text);
    }
}

static void
without_memory_nothing_is_made_and_nothing_leaks(void)
{
    int64_t failed = 0;
    for (int64_t n = 0; n < 100000; n++) {
        trp_config *config = NULL, *lifted = NULL, *both = NULL;
        trp_config_error error = { "" };
        char *text = NULL;
        trpi_alloc_fail_after(n);
        trp_err err = trp_config_parse_text(
            "t.conf", "a { log { level = info } app { x = {1, 2} } } app { y = 1 }", &config,
            &error);
        if (err == TRP_OK) {
            err = trp_config_get_subtree(config, "a", &lifted);
        }
        if (err == TRP_OK) {
            err = trp_config_with_fallback(lifted, config, &both);
        }
        if (err == TRP_OK) {
            err = trp_config_render(both, 7, &text);
        }
        trpi_alloc_fail_after(-1);
        UNIT_TRUE(err == TRP_OK || err == TRP_ENOMEM);
        trp_config_text_free(text);
        trp_config_unref(both);
        trp_config_unref(lifted);
        trp_config_unref(config);
        if (err == TRP_OK) {
            break;
        }
        failed++;
        n += failed / 50 * 7; /* the first ones one by one, later ones in steps */
    }
    UNIT_TRUE(failed > 50);
}

UNIT_BEGIN("config_tree")
UNIT(subtrees_of_one_file_are_lifted_for_several_systems)
UNIT(mistakes_in_a_subtree_are_refused_with_the_right_name)
UNIT(times_of_downing_are_not_zero)
UNIT(subtrees_are_limited)
UNIT(later_keys_win_whether_included_or_not)
UNIT(files_are_limited_in_size_and_depth)
UNIT(mistakes_in_included_files_are_told_with_their_place)
UNIT(getters_read_types_and_say_what_is_wrong_and_where)
UNIT(layers_are_values_that_stay_as_they_were)
UNIT(what_is_rendered_reads_back)
UNIT(reference_has_every_key_with_its_default_and_a_sentence)
UNIT(shipped_reference_is_the_table)
UNIT(file_of_another_version_is_refused)
UNIT(akka_names_and_words_are_understood)
UNIT(deployment_paths_are_checked)
UNIT(deployments_are_limited_in_number_and_depth)
UNIT(without_memory_nothing_is_made_and_nothing_leaks)
UNIT_END
