/* new_files.c - the texts of a new project's files.
 *
 * Why.     `troupe new` must work wherever the program is, so it carries the files along. They are
 *          files of cluster/cli/new and no strings of C: they can be read and edited as what they
 *          will be.
 * Shape.   Each file is embedded as it is (base/embed.h); a table says which files a kind of
 *          project has; @words@ are replaced on the way out. One text serves C and C++.
 * Tests.   tests/system/new.sh, tests/examples/new.sh
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cluster/cli/new_files.h"

#include "base/embed.h"

#define TEXT(symbol, file) TRPI_EMBED(trpi_new_##symbol, "cluster/cli/new/" file)

TEXT(actor_h, "actor.h.in")
TEXT(actor, "actor.in")
TEXT(test, "test.in")
TEXT(main, "main.in")
TEXT(plugin, "plugin.in")
TEXT(node_test, "node_test.in")
TEXT(app_mk, "app.mk.in")
TEXT(actor_mk, "actor.mk.in")
TEXT(plugin_mk, "plugin.mk.in")
TEXT(app_md, "app.md.in")
TEXT(actor_md, "actor.md.in")
TEXT(plugin_md, "plugin.md.in")
TEXT(gitignore, "gitignore.in")

#define COMMON                                                                                     \
    { ".gitignore", trpi_new_gitignore }, { "@name@.h", trpi_new_actor_h },                        \
        { "@name@.@ext@", trpi_new_actor },                                                        \
    {                                                                                              \
        "@name@_test.@ext@", trpi_new_test                                                         \
    }

static const struct {
    const char *kind;
    struct {
        const char *name, *text;
    } files[TRPI_NEW_FILES_MAX];
} kinds[] = {
    { "app",
      { { "Makefile", trpi_new_app_mk },
        { "README.md", trpi_new_app_md },
        COMMON,
        { "main.@ext@", trpi_new_main } } },
    { "actor", { { "Makefile", trpi_new_actor_mk }, { "README.md", trpi_new_actor_md }, COMMON } },
    { "plugin",
      { { "Makefile", trpi_new_plugin_mk },
        { "README.md", trpi_new_plugin_md },
        COMMON,
        { "@name@_plugin.@ext@", trpi_new_plugin },
        { "@name@_node_test.@ext@", trpi_new_node_test } } },
};
#define KINDS_COUNT (sizeof kinds / sizeof kinds[0])

bool
trpi_new_kind_is(const char *kind)
{
    for (size_t index = 0; index < KINDS_COUNT; index++) {
        if (strcmp(kinds[index].kind, kind) == 0) {
            return true;
        }
    }
    return false;
}

/* Names that mean something else to make, or to a header that the project includes. */
static const char *const taken[] = { "all",   "check",  "clean", "run",     "main",
                                     "errno", "stderr", "stdin", "stdout",  "bool",
                                     "true",  "false",  "unix",  "linux",   "i386",
                                     "trp",   "troupe", "test",  "complex", "start" };

const char *
trpi_new_name_fault(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > TRPI_NEW_NAME_BYTES_MAX) {
        return "it has 1 to 40 characters";
    }
    if (!islower((unsigned char)name[0]) || name[length - 1] == '-' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length) {
        return "it begins with a-z and goes on with a-z, 0-9, _ and -, the last no -";
    }
    if (strncmp(name, "trp_", 4) == 0 || strncmp(name, "trp-", 4) == 0) {
        return "names that begin with trp_ are the library's";
    }
    for (size_t index = 0; index < sizeof taken / sizeof taken[0]; index++) {
        if (strcmp(taken[index], name) == 0) {
            return "make, C or Troupe has something else of that name";
        }
    }
    return NULL;
}

/* The name as part of a C identifier, in small letters or in capitals. */
static void
identifier_of(const char *name, bool capitals, char id[TRPI_NEW_NAME_BYTES_MAX + 1])
{
    size_t length = strlen(name);
    for (size_t index = 0; index < length; index++) {
        char letter = name[index] == '-' ? '_' : name[index];
        id[index] = capitals ? (char)toupper((unsigned char)letter) : letter;
    }
    id[length] = '\0';
}

static trp_err
text_fill(const trpi_new_project *project, const char *from, trpi_buffer *text)
{
    char small[TRPI_NEW_NAME_BYTES_MAX + 1], capitals[TRPI_NEW_NAME_BYTES_MAX + 1];
    char cast[TRPI_NEW_NAME_BYTES_MAX + 40], answer[TRPI_NEW_NAME_BYTES_MAX + 64];
    identifier_of(project->name, false, small);
    identifier_of(project->name, true, capitals);
    (void)snprintf(cast, sizeof cast, "static_cast<%s_state *>(state)", small);
    (void)snprintf(answer, sizeof answer,
                   project->cpp ? "static_cast<const %s_total *>(trp_msg_payload(reply))"
                                : "((const %s_total *)trp_msg_payload(reply))",
                   small);
    const char *const words[][2] = {
        { "@name@", project->name },
        { "@id@", small },
        { "@ID@", capitals },
        { "@ext@", project->cpp ? "cc" : "c" },
        { "@CC@", project->cpp ? "CXX" : "CC" },
        { "@FLAGS@", project->cpp ? "CXXFLAGS" : "CFLAGS" },
        { "@std@", project->cpp ? "c++17" : "c11" },
        { "@null@", project->cpp ? "nullptr" : "NULL" },
        { "@state@", project->cpp ? cast : "state" },
        { "@answer@", answer },
    };
    trp_err err = TRP_OK;
    while (err == TRP_OK && from[0] != '\0') {
        size_t plain = strcspn(from, "@");
        size_t skipped = plain;
        err = trpi_buffer_append(text, from, plain, TRPI_BUFFER_NO_LIMIT); /* texts of our own */
        const char *word = NULL;
        for (size_t i = 0; from[plain] == '@' && i < sizeof words / sizeof words[0]; i++) {
            if (strncmp(from + plain, words[i][0], strlen(words[i][0])) == 0) {
                word = words[i][1];
                skipped += strlen(words[i][0]);
                break;
            }
        }
        if (word == NULL && from[plain] == '@') { /* `$@` of a Makefile, an address */
            word = "@";
            skipped++;
        }
        if (err == TRP_OK && word != NULL) {
            err = trpi_buffer_append_text(text, word, TRPI_BUFFER_NO_LIMIT);
        }
        from += skipped;
    }
    return err;
}

trp_err
trpi_new_file(const trpi_new_project *project, size_t index, char *name, size_t name_bytes,
              trpi_buffer *text)
{
    size_t kind = 0;
    while (kind < KINDS_COUNT && strcmp(kinds[kind].kind, project->kind) != 0) {
        kind++;
    }
    if (kind == KINDS_COUNT || index >= TRPI_NEW_FILES_MAX ||
        kinds[kind].files[index].name == NULL) {
        return TRP_ENOENT;
    }
    trpi_buffer filled = { 0 };
    trp_err err = text_fill(project, kinds[kind].files[index].name, &filled);
    if (err == TRP_OK) {
        (void)snprintf(name, name_bytes, "%.*s", (int)filled.count, (const char *)filled.data);
        err = text_fill(project, kinds[kind].files[index].text, text);
    }
    trpi_buffer_fini(&filled);
    return err;
}
