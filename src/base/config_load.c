/* config_load.c - a configuration file, read with libconfuse.
 *
 * Why.     libconfuse is the grammar; what it accepts in silence is refused here: a key given
 *          twice, a value of the wrong type, and with better words what it refuses itself.
 * Shape.   All scalars are strings to libconfuse, so that our own value parser judges them; lists
 *          are lists of strings. The option tables are made from the schema, one per section.
 *            app { } may hold any key, which libconfuse cannot: a name it does not know below app
 *            is
 *          learned (first as a list, which also takes a single value; as a section when no equal
 *          sign follows) and the text is read again. Each reading learns one name, so the number of
 *          readings is bounded by TRPI_CONFIG_APP_KEYS_MAX.
 * Must hold. I1 values reach the config only when the whole file is right
 *            (trpi_config_load_text)
 *            I2 one loader at a time: libconfuse's scanner is global, and its callbacks carry no
 *               argument of ours, so `loading` is what they find it by         (lock)
 * Limits.  TRPI_CONFIG_FILE_BYTES_MAX, TRPI_CONFIG_APP_KEYS_MAX, TRPI_CONFIG_APP_DEPTH_MAX.
 * Cost.    app with n names is read 2n times at most: 100 names are a few milliseconds.
 * Not here. include(): one node, one file.
 * Tests.   tests/unit/node/config_test.c, tests/fuzz/config_fuzz.c
 */
#include <confuse.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/config_store.h"

#define SECTIONS_MAX 64 /* sections of the schema; asserted */
/* Put behind the text: libconfuse takes the end of the file for a closing brace, and then this is
 * met inside a section, where it is unknown. */
#define END_MARK "troupe-end-of-file"
#define PATH_BYTES (TRPI_CONFIG_KEY_BYTES_MAX + 1)

typedef struct learned_name {
    char path[PATH_BYTES]; /* "app.limits" */
    bool is_section;
} learned_name;

typedef struct loader {
    const char *file;
    trpi_config_error *error;
    bool failed; /* error is filled; later complaints are consequences */
    bool again;  /* a name was learned */
    int lines;   /* of the text without END_MARK */
    trp_err err; /* TRP_ENOMEM, else TRP_ECONFIG */
    cfg_t *root;
    trpi_config_slots slots; /* what the file says, this reading */
    learned_name *learned;
    size_t learned_count;
    cfg_opt_t *tables[SECTIONS_MAX + TRPI_CONFIG_APP_KEYS_MAX];
    char *names[SECTIONS_MAX * 4 + TRPI_CONFIG_APP_KEYS_MAX];
    size_t tables_count, names_count;
    char last_key[PATH_BYTES]; /* the key set last, to explain "1 s" */
    int last_line;
    trpi_config_type last_type;
} loader;

/* I2; taken last, nothing is called out with it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loader *loading; /* I2; only with lock */

/* ---- where are we ---------------------------------------------------------------------------- */

/* Write the dotted path of section `wanted` behind path; libconfuse knows no parents. */
static bool
section_path(cfg_t *at, const cfg_t *wanted, char *path, size_t bytes)
{
    if (at == wanted) {
        return true;
    }
    size_t start = strlen(path);
    for (cfg_opt_t *opt = at->opts; opt->name; opt++) {
        if (opt->type != CFGT_SEC) {
            continue;
        }
        for (unsigned int i = 0; i < opt->nvalues; i++) {
            cfg_t *section = opt->values[i]->section;
            if (!section) {
                continue;
            }
            (void)snprintf(path + start, bytes - start, "%s%s%s%s", start ? "." : "", opt->name,
                           section->title ? "." : "", section->title ? section->title : "");
            if (section_path(section, wanted, path, bytes)) {
                return true;
            }
            path[start] = '\0';
        }
    }
    return false;
}

static void
key_path(const loader *l, const cfg_t *section, const char *name, char *path, size_t bytes)
{
    path[0] = '\0';
    (void)section_path(l->root, section, path, bytes);
    size_t count = strlen(path);
    (void)snprintf(path + count, bytes - count, "%s%s", count ? "." : "", name);
}

static void complain(loader *l, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void
complain(loader *l, int line, const char *format, ...)
{
    if (l->failed) {
        return;
    }
    l->failed = true;
    line = line < l->lines ? line : l->lines; /* not that of END_MARK */
    int count = snprintf(l->error->text, sizeof l->error->text, "%s:%d: ", l->file, line);
    if (count < 0 || (size_t)count >= sizeof l->error->text) {
        return;
    }
    va_list list;
    va_start(list, format);
    (void)vsnprintf(l->error->text + count, sizeof l->error->text - (size_t)count, format, list);
    va_end(list);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Did the user leave a space between number and unit, so that the unit looks like a key? */
static bool
unit_strayed(const loader *l, const char *name, int line)
{
    static const char *const units[] = { "ms",     "s",       "m", "h", "d",   "seconds",
                                         "second", "minutes", "B", "b", "KiB", "MiB",
                                         "GiB",    "k",       "K", "M", "G",   NULL };
    for (size_t i = 0; units[i]; i++) {
        if (l->last_key[0] && line == l->last_line && strcmp(name, units[i]) == 0) {
            return true;
        }
    }
    return false;
}

static trpi_config_slot *
slot_for(loader *l, const cfg_t *section, const cfg_opt_t *opt, const char *key)
{
    char origin[1024];
    trpi_config_slot *slot = trpi_config_slots_find(&l->slots, key);
    if (slot) {
        bool is_list = (opt->flags & CFGF_LIST) != 0;
        if (is_list && opt->nvalues > 1) {
            return slot; /* the next value of one list, or += */
        }
        complain(l, section->line, "%s is given twice; the first stands at %s", key, slot->origin);
        return NULL;
    }
    (void)snprintf(origin, sizeof origin, "%s:%d", l->file, section->line);
    if (trpi_config_slots_add(&l->slots, key, trpi_config_row_find(key), &slot) != TRP_OK ||
        trpi_config_slot_origin(slot, TRPI_CONFIG_FILE, origin) != TRP_OK) {
        complain(l, section->line, "out of memory");
        l->err = TRP_ENOMEM;
        return NULL;
    }
    return slot;
}

/* libconfuse calls this for each value of each key. */
static int
on_value(cfg_t *section, cfg_opt_t *opt, const char *value, void *result)
{
    loader *l = loading;
    char key[PATH_BYTES], what[512];
    if (strcmp(opt->name, END_MARK) == 0) {
        *(const char **)result = value;
        return 0;
    }
    key_path(l, section, opt->name, key, sizeof key);
    trpi_config_slot *slot = slot_for(l, section, opt, key);
    if (!slot) {
        return -1;
    }
    if (slot->count == TRPI_CONFIG_LIST_MAX) {
        complain(l, section->line, "%s has more than %d values", key, TRPI_CONFIG_LIST_MAX);
        return -1;
    }
    /* A number that a unit follows after a space is judged when the stray unit is met: without it
     * the complaint would be about the missing unit. */
    bool judged = trpi_config_value_check(slot->row, value, what, sizeof what) == TRP_OK;
    (void)snprintf(l->last_key, sizeof l->last_key, "%s", key);
    l->last_line = section->line;
    l->last_type = slot->row ? slot->row->type : TRPI_CONFIG_TEXT;
    if (!judged) {
        double number = 0;
        const char *why = NULL;
        if (l->last_type == TRPI_CONFIG_DURATION &&
            trpi_config_parse_number(TRPI_CONFIG_FLOAT, value, &number, &why) == TRP_OK) {
            complain(l, section->line, "%s = %s: a duration needs a unit: write %ss or \"%s s\"",
                     key, value, value, value);
        } else {
            complain(l, section->line, "%s: %s", key, what);
        }
        return -1;
    }
    if (trpi_config_slot_append(slot, value) != TRP_OK) {
        complain(l, section->line, "out of memory");
        l->err = TRP_ENOMEM;
        return -1;
    }
    *(const char **)result = value;
    return 0;
}

/* ---- libconfuse's complaints ----------------------------------------------------------------- */

static learned_name *
learned_find(const loader *l, const char *path)
{
    for (size_t i = 0; i < l->learned_count; i++) {
        if (strcmp(l->learned[i].path, path) == 0) {
            return &l->learned[i];
        }
    }
    return NULL;
}

static size_t
depth_of(const char *path)
{
    size_t depth = 0;
    for (; *path; path++) {
        depth += *path == '.';
    }
    return depth;
}

static void
learn(loader *l, const char *path, int line)
{
    if (l->learned_count == TRPI_CONFIG_APP_KEYS_MAX) {
        complain(l, line, "app has more than %d keys", TRPI_CONFIG_APP_KEYS_MAX);
    } else if (depth_of(path) > TRPI_CONFIG_APP_DEPTH_MAX) {
        complain(l, line, "app has more than %d sections inside one another",
                 TRPI_CONFIG_APP_DEPTH_MAX);
    } else if (strlen(path) >= TRPI_CONFIG_KEY_BYTES_MAX) {
        complain(l, line, "a key is longer than %d bytes", TRPI_CONFIG_KEY_BYTES_MAX);
    } else {
        learned_name *name = &l->learned[l->learned_count++];
        (void)snprintf(name->path, sizeof name->path, "%s", path);
        name->is_section = false;
        l->again = true;
    }
}

static void
dotted_complain(loader *l, const char *name, int line)
{
    char nested[512], copy[PATH_BYTES], *rest = copy, *piece;
    size_t count = 0, depth = 0;
    (void)snprintf(copy, sizeof copy, "%s", name);
    while ((piece = strsep(&rest, ".")) != NULL && count < sizeof nested - 8) {
        count += (size_t)snprintf(nested + count, sizeof nested - count,
                                  rest ? "%s { " : "%s = ...", piece);
        depth += rest != NULL;
    }
    for (; depth > 0 && count + 3 < sizeof nested; depth--) {
        count += (size_t)snprintf(nested + count, sizeof nested - count, " }");
    }
    complain(l, line, "'%s': a file has no dotted keys; write %s", name, nested);
}

static void
unknown_complain(loader *l, cfg_t *section, const char *name)
{
    char path[PATH_BYTES], where[PATH_BYTES] = "", hint[256];
    key_path(l, section, name, path, sizeof path);
    (void)section_path(l->root, section, where, sizeof where);
    if (strcmp(name, END_MARK) == 0) {
        complain(l, section->line, "the file ends inside %s: a closing brace is missing", where);
    } else if (strncmp(path, "app.", 4) == 0 && !strchr(name, '.')) {
        learn(l, path, section->line);
    } else if (unit_strayed(l, name, section->line)) {
        trpi_config_slot *slot = trpi_config_slots_find(&l->slots, l->last_key);
        const char *value = slot && slot->count > 0 ? slot->values[slot->count - 1] : "1";
        complain(l, section->line, "%s: a space splits the value: write %s%s or \"%s %s\"",
                 l->last_key, value, name, value, name);
    } else if (!*where && (strcmp(name, "akka") == 0 || strncmp(name, "akka.", 5) == 0)) {
        complain(l, section->line,
                 "no such option '%s': the names are Akka's without the leading 'akka', as in "
                 "cluster { gossip-interval = 1s }",
                 name);
    } else if (strchr(name, '.')) {
        dotted_complain(l, name, section->line);
    } else {
        complain(l, section->line, "no such option '%s'%s%s%s", name, *where ? " in " : "", where,
                 trpi_config_hint(path, hint, sizeof hint));
    }
}

/* A learned name that no equal sign follows is a section. */
static bool
section_learned(loader *l, const cfg_t *section, const char *name)
{
    char path[PATH_BYTES];
    key_path(l, section, name, path, sizeof path);
    learned_name *known = learned_find(l, path);
    if (!known || known->is_section || trpi_config_slots_find(&l->slots, path)) {
        return false;
    }
    known->is_section = true;
    l->again = true;
    return true;
}

static void
on_error(cfg_t *section, const char *format, va_list list)
{
    loader *l = loading;
    char text[512], name[PATH_BYTES];
    (void)vsnprintf(text, sizeof text, format, list); /* cut is fine */
    if (l->failed || l->again) {
        return;
    }
    if (sscanf(text, "no such option '%191[^']'", name) == 1) {
        unknown_complain(l, section, name);
        return;
    }
    if (sscanf(text, "missing equal sign after option '%191[^']'", name) == 1 &&
        section_learned(l, section, name)) {
        return;
    }
    if (strcmp(text, "unexpected token '{'") == 0) {
        complain(l, section->line, "a list or section stands where one value is expected");
        return;
    }
    complain(l, section->line, "%s", text);
}

/* ---- option tables --------------------------------------------------------------------------- */

static char *
name_keep(loader *l, const char *start, size_t bytes)
{
    trpi_assert(l->names_count < sizeof l->names / sizeof l->names[0]);
    char *name = trpi_alloc(bytes + 1);
    if (name) {
        memcpy(name, start, bytes);
        l->names[l->names_count++] = name;
    }
    return name;
}

static bool
option_known(const cfg_opt_t *table, size_t count, const char *name, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(table[i].name) == bytes && memcmp(table[i].name, name, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static cfg_opt_t *table_make(loader *l, const char *prefix);

/* Add the option that `path`, below prefix, needs in prefix's table: a value, or a section. */
static bool
option_add(loader *l, const char *prefix, const char *path, bool is_list, bool is_section,
           cfg_opt_t *table, size_t *count)
{
    const char *name = path + strlen(prefix);
    size_t bytes = strcspn(name, ".");
    if (bytes == 0 || option_known(table, *count, name, bytes)) {
        return true;
    }
    cfg_opt_t *opt = &table[(*count)++];
    char *kept = name_keep(l, name, bytes);
    if (!kept) {
        return false;
    }
    if (name[bytes] == '\0' && !is_section) {
        cfg_opt_t scalar = CFG_STR_CB(kept, NULL, CFGF_NODEFAULT, on_value);
        cfg_opt_t list = CFG_STR_LIST_CB(kept, NULL, CFGF_NODEFAULT, on_value);
        *opt = is_list ? list : scalar;
        return true;
    }
    char below[PATH_BYTES + 4];
    bool titled = strncmp(name + bytes, ".*.", 3) == 0;
    (void)snprintf(below, sizeof below, "%.*s%s", (int)(name + bytes - path), path,
                   titled ? ".*." : ".");
    cfg_opt_t *options = table_make(l, below);
    if (!options) {
        return false;
    }
    cfg_opt_t plain = CFG_SEC(kept, options, CFGF_NONE);
    cfg_opt_t multi = CFG_SEC(kept, options, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
    *opt = titled ? multi : plain;
    return true;
}

/* The options of one section; prefix is "" or ends with a dot. */
static cfg_opt_t *
table_make(loader *l, const char *prefix)
{
    size_t room = 3, count = 0; /* app, END_MARK, and the end */
    for (const trpi_config_row *row = trpi_config_rows; row->key; row++) {
        room += strncmp(row->key, prefix, strlen(prefix)) == 0;
    }
    for (size_t i = 0; i < l->learned_count; i++) {
        room += strncmp(l->learned[i].path, prefix, strlen(prefix)) == 0;
    }
    cfg_opt_t *table = trpi_alloc(room * sizeof *table);
    if (!table) {
        return NULL;
    }
    trpi_assert(l->tables_count < sizeof l->tables / sizeof l->tables[0]);
    l->tables[l->tables_count++] = table;
    bool ok = true;
    for (const trpi_config_row *row = trpi_config_rows; ok && row->key; row++) {
        if (strncmp(row->key, prefix, strlen(prefix)) == 0) {
            ok = option_add(l, prefix, row->key, row->type == TRPI_CONFIG_LIST, false, table,
                            &count);
        }
    }
    for (size_t i = 0; ok && i < l->learned_count; i++) {
        const learned_name *name = &l->learned[i];
        if (strncmp(name->path, prefix, strlen(prefix)) == 0) {
            ok = option_add(l, prefix, name->path, true, name->is_section, table, &count);
        }
    }
    if (ok && *prefix == '\0') {
        ok = option_add(l, prefix, "app", false, true, table, &count) &&
             option_add(l, prefix, END_MARK, false, false, table, &count);
    }
    cfg_opt_t end = CFG_END();
    table[count] = end;
    trpi_assert(count < room);
    return ok ? table : NULL;
}

static void
tables_free(loader *l)
{
    for (size_t i = 0; i < l->tables_count; i++) {
        trpi_free(l->tables[i]);
    }
    for (size_t i = 0; i < l->names_count; i++) {
        trpi_free(l->names[i]);
    }
    l->tables_count = l->names_count = 0;
}

/* ---- comments
 * ------------------------------------------------------------------------------------ */

/* The end of what must not be looked into: a quoted text or ${...}; p itself when it is neither. */
static char *
opaque_end(char *p)
{
    if (*p == '$' && p[1] == '{') {
        char *end = strchr(p, '}');
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

/* Where a comment that begins at p ends; p itself when none does. */
static char *
comment_end(char *p, bool token_starts)
{
    if (*p == '#' || (token_starts && p[0] == '/' && p[1] == '/')) {
        return p + strcspn(p, "\n");
    }
    if (token_starts && p[0] == '/' && p[1] == '*') {
        char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    return p;
}

/* Replace comments by blanks, keeping the lines: libconfuse 3.3 counts the line of a comment up to
 * three times, and its complaints would point elsewhere. What a comment is, is its own rule. */
static void
comments_blank(char *text)
{
    bool token_starts = true;
    for (char *p = text; *p;) {
        char *end = opaque_end(p);
        if (end == p) {
            end = comment_end(p, token_starts);
            for (; p < end; p++) {
                *p = *p == '\n' ? '\n' : ' ';
            }
        }
        if (end == p) {
            end = p + 1;
        }
        p = end;
        token_starts = p > text && strchr(" \t\n\r={}(),+", p[-1]) != NULL;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* `x = {}` gives no value to call us with. */
static bool
empty_lists_take(loader *l, cfg_t *section)
{
    for (cfg_opt_t *opt = section->opts; opt->name; opt++) {
        if (opt->type == CFGT_SEC) {
            for (unsigned int i = 0; i < opt->nvalues; i++) {
                if (opt->values[i]->section && !empty_lists_take(l, opt->values[i]->section)) {
                    return false;
                }
            }
        } else if ((opt->flags & CFGF_LIST) && opt->nvalues == 0 && (opt->flags & CFGF_MODIFIED)) {
            char key[PATH_BYTES];
            key_path(l, section, opt->name, key, sizeof key);
            if (!trpi_config_slots_find(&l->slots, key) && !slot_for(l, section, opt, key)) {
                return false;
            }
        }
    }
    return true;
}

/* One reading. Leaves its values in l->slots. */
static void
read_once(loader *l, const char *text)
{
    l->again = false;
    l->last_key[0] = '\0';
    trpi_config_slots_clear(&l->slots);
    cfg_opt_t *table = table_make(l, "");
    l->root = table ? cfg_init(table, CFGF_NONE) : NULL;
    if (!l->root) {
        complain(l, 0, "out of memory");
        l->err = TRP_ENOMEM;
    } else {
        (void)cfg_set_error_function(l->root, on_error);
        int rc = cfg_parse_buf(l->root, text);
        if (rc != CFG_SUCCESS && !l->failed && !l->again) {
            complain(l, l->root->line, "cannot be read");
        }
        if (rc == CFG_SUCCESS && !l->failed) {
            (void)empty_lists_take(l, l->root); /* failure has been noted */
        }
        (void)cfg_free(l->root);
        l->root = NULL;
    }
    tables_free(l);
}

trp_err
trpi_config_load_text(trpi_config *config, const char *name, const char *text,
                      trpi_config_error *ret_error)
{
    loader *l = trpi_alloc(sizeof *l);
    if (!l || !(l->learned = trpi_alloc(TRPI_CONFIG_APP_KEYS_MAX * sizeof *l->learned))) {
        trpi_free(l);
        (void)trpi_config_fail(ret_error, "%s: out of memory", name);
        return TRP_ENOMEM;
    }
    size_t bytes = strlen(text) + sizeof "\n" END_MARK " = x\n";
    char *marked TRPI_AUTO_FREE = trpi_alloc(bytes);
    if (!marked) {
        trpi_free(l->learned);
        trpi_free(l);
        (void)trpi_config_fail(ret_error, "%s: out of memory", name);
        return TRP_ENOMEM;
    }
    (void)snprintf(marked, bytes, "%s\n", text);
    comments_blank(marked);
    (void)memcpy(marked + strlen(marked), END_MARK " = x\n", sizeof END_MARK " = x\n");
    l->file = name;
    l->lines = 1;
    for (const char *p = text; *p; p++) {
        l->lines += *p == '\n' && p[1] != '\0';
    }
    l->error = ret_error;
    l->err = TRP_ECONFIG;
    (void)pthread_mutex_lock(&lock);
    loading = l;
    do {
        read_once(l, marked);
    } while (l->again && !l->failed);
    loading = NULL;
    (void)pthread_mutex_unlock(&lock);
    trp_err err = l->failed ? l->err : trpi_config_adopt(config, &l->slots); /* I1 */
    trpi_config_slots_clear(&l->slots);
    trpi_free(l->learned);
    trpi_free(l);
    return err;
}

trp_err
trpi_config_load_file(trpi_config *config, const char *path, trpi_config_error *ret_error)
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
            err = trpi_config_fail(ret_error, "%s: a byte of value 0: that is no text", path);
        } else {
            text[bytes] = '\0';
            err = trpi_config_load_text(config, path, text, ret_error);
        }
    }
    trpi_free(text);
    (void)fclose(file);
    return err;
}
