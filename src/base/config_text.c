/* config_text.c - a configuration file as one text: comments blanked, includes in place.
 *
 * Why.     libconfuse 3.3 counts the lines of a comment up to three times, and keeps only the name
 *          of an included file, not its lines. So the text is prepared here, and a table says for
 *          each line of it in which file it stands.
 * Shape.   a.conf     system = a          joined: 1  system = a       a.conf:1
 *                     include("b.conf")           2
 *                     log { level = info }        3  remote { ... }   b.conf:1
 *                                                 4                   a.conf:2
 *                                                 5  log { ... }      a.conf:3
 *          include("FILE") may stand wherever a key may, also inside a section. A relative name is
 *          looked for beside the file that includes. A later value replaces an earlier
 *          one, included or not (CONF-3); within one file a key given twice is a mistake
 *          (config_load.c).
 * Must hold.
 *   config-text-I1  a newline of a file is a newline of the joined text, so lines can be counted
 *       back
 * Limits.  TRPI_CONFIG_FILE_BYTES_MAX for all text together, TRPI_CONFIG_INCLUDES_MAX files,
 *          TRPI_CONFIG_INCLUDE_DEPTH_MAX files inside one another.
 * Tests.   tests/unit/node/config_test.c, tests/unit/base/config_tree_test.c
 */
#include "base/config_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/config_store.h"

#define PATH_BYTES_MAX 4095

/* ---- the table of lines ---------------------------------------------------------------------- */

static trp_err
stretch_begin(trpi_config_joined *text, uint32_t file, uint32_t instance, int line)
{
    if (!TRPI_ARRAY_HAS_ROOM(text, stretches)) {
        return TRP_ENOMEM;
    }
    trpi_config_stretch *stretch = &text->stretches[text->stretches_count++];
    stretch->joined_line = text->lines;
    stretch->line = line;
    stretch->file = file;
    stretch->instance = instance;
    return TRP_OK;
}

void
trpi_config_text_at(const trpi_config_joined *text, int joined_line, const char **ret_file,
                    int *ret_line, uint32_t *ret_instance)
{
    size_t at = 0;
    trpi_assert(text->stretches_count > 0);
    while (at + 1 < text->stretches_count && text->stretches[at + 1].joined_line <= joined_line) {
        at++;
    }
    const trpi_config_stretch *stretch = &text->stretches[at];
    *ret_file = text->files[stretch->file];
    *ret_line = stretch->line + joined_line - stretch->joined_line;
    if (stretch->instance == 0 && *ret_line > text->lines_shown) {
        *ret_line = text->lines_shown;
    }
    *ret_instance = stretch->instance;
}

static trp_err
file_add(trpi_config_joined *text, const char *name)
{
    char *copy = NULL;
    if (!TRPI_ARRAY_HAS_ROOM(text, files) || !(copy = trpi_strdup(name))) {
        return TRP_ENOMEM;
    }
    text->files[text->files_count++] = copy;
    return TRP_OK;
}

void
trpi_config_text_fini(trpi_config_joined *text)
{
    for (size_t i = 0; i < text->files_count; i++) {
        trpi_free(text->files[i]);
    }
    trpi_free(text->files);
    trpi_free(text->stretches);
    trpi_buffer_fini(&text->joined);
    memset(text, 0, sizeof *text);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Return the end of a quoted text or ${...} that begins at p; p itself when neither does. */
static const char *
opaque_end(const char *p)
{
    if (*p == '$' && p[1] == '{') {
        const char *end = strchr(p, '}');
        return end ? end + 1 : p + strlen(p);
    }
    if (*p != '"' && *p != '\'') {
        return p;
    }
    char quote = *p++;
    while (*p && *p != quote) {
        if (*p == '\\' && p[1]) {
            p += 2;
        } else if (quote == '"' && *p == '$' && p[1] == '{') {
            p = opaque_end(p);
        } else {
            p++;
        }
    }
    return *p ? p + 1 : p;
}

/* Return the end of a comment that begins at p, by libconfuse's rule; p itself when none does. */
static const char *
comment_end(const char *p, bool token_starts)
{
    if (*p == '#' || (token_starts && p[0] == '/' && p[1] == '/')) {
        return p + strcspn(p, "\n");
    }
    if (token_starts && p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    return p;
}

/* Return the end of include("NAME") that begins at p; p itself when none does. The name is cut at
 * PATH_BYTES_MAX, which is longer than any path. */
static const char *
include_end(const char *p, char *name)
{
    const char *at = p;
    if (strncmp(at, "include", 7) != 0) {
        return p;
    }
    at += 7;
    at += strspn(at, " \t\r\n");
    if (*at++ != '(') {
        return p;
    }
    at += strspn(at, " \t\r\n");
    const char *end = opaque_end(at);
    if (*at == '$' || end < at + 2 || end[-1] != *at) {
        return p;
    }
    (void)snprintf(name, PATH_BYTES_MAX + 1, "%.*s", (int)(end - at - 2), at + 1);
    end += strspn(end, " \t\r\n");
    return *end == ')' ? end + 1 : p;
}

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct joiner {
    trpi_config_joined *text;
    trpi_config_error *error;
    const char *file;
    uint32_t file_index, instance;
    unsigned depth;
} joiner;

static trp_err
no_memory(const joiner *j)
{
    (void)trpi_config_fail(j->error, "%s: out of memory", j->file);
    return TRP_ENOMEM;
}

static trp_err
joined_append(joiner *j, const char *bytes, size_t count)
{
    trp_err err =
        trpi_buffer_append(&j->text->joined, bytes, count, TRPI_CONFIG_FILE_BYTES_MAX * 2);
    if (err == TRP_ENOMEM) {
        return no_memory(j);
    }
    if (err != TRP_OK || j->text->joined.count > TRPI_CONFIG_FILE_BYTES_MAX) {
        return trpi_config_fail(j->error, "%s: larger than %d bytes%s", j->file,
                                TRPI_CONFIG_FILE_BYTES_MAX,
                                j->depth ? ", with what includes it" : "");
    }
    for (size_t i = 0; i < count; i++) {
        j->text->lines += bytes[i] == '\n';
    }
    return TRP_OK;
}

/* Append as many blanks and newlines as the comment has. */
static trp_err
append_blank(joiner *j, const char *from, const char *to)
{
    trp_err err = TRP_OK;
    for (; err == TRP_OK && from < to; from++) {
        err = joined_append(j, *from == '\n' ? "\n" : " ", 1);
    }
    return err;
}

static trp_err text_join(joiner *j, const char *text);

/* A relative name is relative to the file that includes it. */
static void
include_path(const joiner *j, const char *name, char *path, size_t bytes)
{
    const char *slash = strrchr(j->file, '/');
    if (*name == '/' || !slash) {
        (void)snprintf(path, bytes, "%s", name);
    } else {
        (void)snprintf(path, bytes, "%.*s%s", (int)(slash + 1 - j->file), j->file, name);
    }
}

static trp_err
include_join(joiner *j, const char *name, int line)
{
    char path[2 * PATH_BYTES_MAX + 2];
    char *content TRPI_AUTO_FREE = NULL;
    trpi_config_error why = { "" };
    joiner inner = *j;
    if (j->depth == TRPI_CONFIG_INCLUDE_DEPTH_MAX) {
        return trpi_config_fail(j->error, "%s:%d: more than %d files include one another", j->file,
                                line, TRPI_CONFIG_INCLUDE_DEPTH_MAX);
    }
    if (j->text->files_count == TRPI_CONFIG_INCLUDES_MAX) {
        return trpi_config_fail(j->error, "%s:%d: more than %d files", j->file, line,
                                TRPI_CONFIG_INCLUDES_MAX);
    }
    include_path(j, name, path, sizeof path);
    trp_err err = trpi_config_file_read(path, &content, &why);
    if (err != TRP_OK) {
        (void)trpi_config_fail(j->error, "%s:%d: include: %s", j->file, line, why.text);
        return err == TRP_ENOMEM ? err : TRP_ECONFIG;
    }
    inner.file_index = (uint32_t)j->text->files_count;
    inner.instance = inner.file_index;
    inner.depth++;
    if (file_add(j->text, path) != TRP_OK) {
        return no_memory(j);
    }
    inner.file = j->text->files[inner.file_index];
    err = joined_append(j, "\n", 1);
    if (err == TRP_OK) {
        err = text_join(&inner, content);
    }
    return err == TRP_OK ? joined_append(j, "\n", 1) : err;
}

static trp_err
text_join(joiner *j, const char *p)
{
    char name[PATH_BYTES_MAX + 1];
    bool token_starts = true;
    int line = 1; /* of this file */
    if (stretch_begin(j->text, j->file_index, j->instance, line) != TRP_OK) {
        return no_memory(j);
    }
    while (*p) {
        trp_err err = TRP_OK;
        const char *start = p, *end = opaque_end(p);
        if (end > p) {
            if (j->depth && !*end && (end == p + 1 || end[-1] != *p) && *p != '$') {
                return trpi_config_fail(j->error, "%s:%d: a quote is not closed", j->file, line);
            }
            err = joined_append(j, p, (size_t)(end - p));
        } else if ((end = comment_end(p, token_starts)) > p) {
            if (!*end && *p == '/' && p[1] == '*' && (end < p + 4 || strcmp(end - 2, "*/") != 0)) {
                return trpi_config_fail(j->error, "%s:%d: a comment is not closed: */ is missing",
                                        j->file, line);
            }
            err = append_blank(j, p, end);
        } else if (token_starts && (end = include_end(p, name)) > p) {
            for (const char *c = p; c < end; c++) {
                line += *c == '\n';
            }
            start = end; /* counted */
            err = include_join(j, name, line);
            if (err == TRP_OK &&
                stretch_begin(j->text, j->file_index, j->instance, line) != TRP_OK) {
                err = no_memory(j);
            }
        } else {
            end = p + 1;
            err = joined_append(j, p, 1);
        }
        if (err != TRP_OK) {
            return err;
        }
        for (; start < end; start++) {
            line += *start == '\n';
        }
        p = end;
        token_starts = strchr(" \t\n\r={}(),+", p[-1]) != NULL;
    }
    return TRP_OK;
}

trp_err
trpi_config_text_make(const char *name, const char *text, trpi_config_joined *ret_text,
                      trpi_config_error *ret_error)
{
    joiner j = { ret_text, ret_error, name, 0, 0, 0 };
    memset(ret_text, 0, sizeof *ret_text);
    ret_text->lines = 1;
    ret_text->lines_shown = 1;
    for (const char *p = text; *p; p++) {
        ret_text->lines_shown += *p == '\n' && p[1] != '\0';
    }
    return file_add(ret_text, name) == TRP_OK ? text_join(&j, text) : no_memory(&j);
}

/* ---- files ----------------------------------------------------------------------------------- */

trp_err
trpi_config_file_read(const char *path, char **ret_text, trpi_config_error *ret_error)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        int why = errno;
        (void)trpi_config_fail(ret_error, "%s: %s", path, strerror(why));
        return why == ENOENT ? TRP_ENOENT : TRP_ECONFIG;
    }
    trp_err err = TRP_OK;
    char *text = trpi_alloc(TRPI_CONFIG_FILE_BYTES_MAX + 2);
    if (!text) {
        (void)trpi_config_fail(ret_error, "%s: out of memory", path);
        err = TRP_ENOMEM;
    } else {
        size_t bytes = fread(text, 1, TRPI_CONFIG_FILE_BYTES_MAX + 1, file);
        if (ferror(file)) {
            err = trpi_config_fail(ret_error, "%s: %s", path, strerror(errno));
        } else if (bytes > TRPI_CONFIG_FILE_BYTES_MAX) {
            err = trpi_config_fail(ret_error, "%s: larger than %d bytes", path,
                                   TRPI_CONFIG_FILE_BYTES_MAX);
        } else if (memchr(text, '\0', bytes)) {
            err = trpi_config_fail(ret_error, "%s: a byte of value 0: not a text file", path);
        } else {
            size_t mark = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
            memmove(text, text + mark, bytes - mark); /* skip the byte order mark */
            text[bytes - mark] = '\0';
        }
    }
    (void)fclose(file);
    if (err != TRP_OK) {
        trpi_free(text);
        return err;
    }
    *ret_text = text;
    return TRP_OK;
}
