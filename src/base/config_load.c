/* config_load.c - a configuration file, read with libconfuse.
 *
 * Why.     libconfuse is the grammar. Mistakes that it accepts in silence are refused here: a key
 *          given twice, a value of the wrong type. Its own errors are reported in better words.
 * Shape.   All scalars are strings to libconfuse, so that our own value parser judges them; lists
 *          are lists of strings. The option tables are made from the schema, one per section.
 *          app { } may hold any key, and beside the sections may stand subtrees, myapp1 { }, each
 *          a configuration of its own; libconfuse can neither. A name that it does not know there
 *          is learned (first as a list, which also takes a single value; as a section when no
 *          equal sign follows) and the text is read again. Each reading learns one name, so the
 *          number of readings is bounded.
 * Must hold.
 *   config-load-I1  values reach the config only when the whole file is right
 *       (trpi_config_load_text)
 *   config-load-I2  one loader at a time: libconfuse's scanner is global, and its callbacks carry
 *       no argument of ours, so they find the loader in `loading` (lock)
 * Limits.  TRPI_CONFIG_APP_KEYS_MAX, TRPI_CONFIG_APP_DEPTH_MAX, TRPI_CONFIG_SUBTREES_MAX,
 *          TRPI_CONFIG_TITLES_MAX; those of config_text.c.
 * Cost.    app with n names is read 2n times at most: 100 names are a few milliseconds.
 * Not here. Comments, includes and lines: config_text.c.
 * Tests.   tests/unit/node/config_test.c, tests/unit/base/config_tree_test.c,
 *          tests/fuzz/config_fuzz.c
 */
#include <confuse.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/config_store.h"
#include "base/config_text.h"

/* Put behind the text: libconfuse takes the end of the file for a closing brace, and then this is
 * met inside a section, where it is unknown. */
#define END_MARK "troupe-end-of-file"
#define PATH_BYTES (TRPI_CONFIG_KEY_BYTES_MAX + 1)

typedef struct learned_name {
    char path[PATH_BYTES]; /* "app.limits" */
    bool is_section;
} learned_name;

typedef struct loader {
    trpi_config_joined text;
    trpi_config_error *error;
    bool failed; /* error is filled; later errors are consequences */
    bool again;  /* a name was learned */
    trp_err err; /* TRP_ENOMEM, else TRP_ECONFIG */
    cfg_t *root;
    trpi_config_slots slots; /* values of the file, of this reading */
    uint32_t *instances;     /* of the file that each slot was read from */
    uint32_t instances_room;
    learned_name *learned;
    size_t learned_count, subtrees_count;
    void **kept; /* option tables and names of this reading */
    uint32_t kept_count, kept_room;
    char last_key[PATH_BYTES]; /* the key set last, to explain "1 s" */
    int last_line;
    trpi_config_type last_type;
} loader;

/* config-load-I2; a leaf */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loader *loading; /* config-load-I2; only with lock */

/* ---- where are we ---------------------------------------------------------------------------- */

/* A section and those that hold it. */
typedef struct step {
    const struct step *up; /* NULL: the file */
    const char *name, *title;
} step;

/* Write the dotted path of a step, the outermost section first. */
static void
step_write(const step *s, char *path, size_t bytes)
{
    if (s->up) {
        step_write(s->up, path, bytes);
    }
    size_t count = strlen(path);
    (void)snprintf(path + count, bytes - count, "%s%s%s%s", count ? "." : "", s->name,
                   s->title ? "." : "", s->title ? s->title : "");
}

/* Write the dotted path of section `wanted`, which libconfuse does not know: a section has no
 * parent there. */
static bool
section_path(cfg_t *at, const cfg_t *wanted, const step *up, char *path, size_t bytes)
{
    if (at == wanted) {
        if (up) {
            step_write(up, path, bytes);
        }
        return true;
    }
    for (cfg_opt_t *opt = at->opts; opt->name; opt++) {
        if (opt->type != CFGT_SEC) {
            continue;
        }
        for (unsigned int i = 0; i < opt->nvalues; i++) {
            cfg_t *section = opt->values[i]->section;
            step down = { up, opt->name, section ? section->title : NULL };
            if (section && section_path(section, wanted, &down, path, bytes)) {
                return true;
            }
        }
    }
    return false;
}

static void
key_path(const loader *l, const cfg_t *section, const char *name, char *path, size_t bytes)
{
    path[0] = '\0';
    (void)section_path(l->root, section, NULL, path, bytes);
    size_t count = strlen(path);
    (void)snprintf(path + count, bytes - count, "%s%s", count ? "." : "", name);
}

static void error_report(loader *l, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void
error_report(loader *l, int line, const char *format, ...)
{
    if (l->failed) {
        return;
    }
    l->failed = true;
    const char *file = NULL;
    uint32_t instance = 0;
    trpi_config_text_at(&l->text, line, &file, &line, &instance);
    int count = snprintf(l->error->text, sizeof l->error->text, "%s:%d: ", file, line);
    if (count < 0 || (size_t)count >= sizeof l->error->text) {
        return;
    }
    va_list list;
    va_start(list, format);
    (void)vsnprintf(l->error->text + count, sizeof l->error->text - (size_t)count, format, list);
    va_end(list);
}

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

/* The bytes of "myapp1." before a key of a subtree; 0: it belongs to the root. */
static size_t
subtree_bytes(const loader *l, const char *key)
{
    char first[PATH_BYTES];
    size_t bytes = strcspn(key, ".");
    if (!key[bytes] || l->subtrees_count == 0 || bytes >= sizeof first) {
        return 0;
    }
    memcpy(first, key, bytes);
    first[bytes] = '\0';
    return learned_find(l, first) ? bytes + 1 : 0;
}

/* Write the path of a value; one that has two names is kept under ours. */
static void
value_path(const loader *l, const cfg_t *section, const char *name, char *path, size_t bytes)
{
    key_path(l, section, name, path, bytes);
    size_t before = subtree_bytes(l, path);
    const char *ours = trpi_config_alias_of(path + before);
    if (ours) {
        (void)snprintf(path + before, bytes - before, "%s", ours);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Return whether a space between number and unit makes the unit look like a key. */
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

/* Record the file that slot `index` was read from. */
static bool
instance_note(loader *l, uint32_t index, uint32_t instance)
{
    if (trpi_array_reserve(&l->instances, index, &l->instances_room, sizeof *l->instances, 1,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        return false;
    }
    l->instances[index] = instance;
    return true;
}

static void
no_memory(loader *l, int line)
{
    error_report(l, line, "out of memory");
    l->err = TRP_ENOMEM;
}

/* Return whether one more title fits that has a value for row. */
static bool
title_fits(loader *l, const trpi_config_row *row, int line)
{
    size_t count = 0;
    if (!row || !strchr(row->key, '*')) {
        return true;
    }
    for (size_t i = 0; i < l->slots.count; i++) {
        count += l->slots.slots[i].row == row;
    }
    if (count >= TRPI_CONFIG_TITLES_MAX) {
        error_report(l, line, "more than %d sections '%.*s'", TRPI_CONFIG_TITLES_MAX,
                     (int)(strchr(row->key, '*') - 1 - row->key), row->key);
    }
    return count < TRPI_CONFIG_TITLES_MAX;
}

/* The slot for a value of key, which stands on `line` of the joined text. The value of another
 * file, included before or including this one, is replaced (CONF-3). */
static trpi_config_slot *
slot_for(loader *l, const cfg_t *section, const cfg_opt_t *opt, const char *key)
{
    char origin[1024];
    const char *file = NULL;
    int line = 0;
    uint32_t instance = 0;
    trpi_config_text_at(&l->text, section->line, &file, &line, &instance);
    (void)snprintf(origin, sizeof origin, "%s:%d", file, line);
    trpi_config_slot *slot = trpi_config_slots_find(&l->slots, key);
    if (slot) {
        size_t index = (size_t)(slot - l->slots.slots);
        if ((opt->flags & CFGF_LIST) != 0 && opt->nvalues > 1) {
            return slot; /* the next value of one list, or += */
        }
        if (l->instances[index] == instance) {
            error_report(l, section->line, "%s is given twice; the first stands at %s", key,
                         slot->origin);
            return NULL;
        }
        l->instances[index] = instance;
        trpi_config_slot_clear(slot);
    } else {
        const trpi_config_row *row = trpi_config_row_find(key + subtree_bytes(l, key));
        if (!title_fits(l, row, section->line)) {
            return NULL;
        }
        if (trpi_config_slots_add(&l->slots, key, row, &slot) != TRP_OK ||
            !instance_note(l, l->slots.count - 1, instance)) {
            no_memory(l, section->line);
            return NULL;
        }
    }
    if (trpi_config_slot_origin(slot, TRPI_CONFIG_FILE, origin) != TRP_OK) {
        no_memory(l, section->line);
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
    value_path(l, section, opt->name, key, sizeof key);
    if (!strchr(key, '.') && learned_find(l, key)) { /* learned as a subtree, but it is a value */
        error_report(l, section->line, "no such option '%s'", opt->name);
        return -1;
    }
    trpi_config_slot *slot = slot_for(l, section, opt, key);
    if (!slot) {
        return -1;
    }
    if (trpi_config_title_check(key + subtree_bytes(l, key), slot->row, what, sizeof what) !=
        TRP_OK) {
        error_report(l, section->line, "%s", what);
        return -1;
    }
    if (slot->count == TRPI_CONFIG_LIST_MAX) {
        error_report(l, section->line, "%s has more than %d values", key, TRPI_CONFIG_LIST_MAX);
        return -1;
    }
    /* A number that a unit follows after a space is judged when the stray unit is met: else the
     * error would be about the missing unit. */
    bool judged = trpi_config_value_check(slot->row, value, what, sizeof what) == TRP_OK;
    (void)snprintf(l->last_key, sizeof l->last_key, "%s", key);
    l->last_line = section->line;
    l->last_type = slot->row ? slot->row->type : TRPI_CONFIG_TEXT;
    if (!judged) {
        double number = 0;
        const char *why = NULL;
        if (l->last_type == TRPI_CONFIG_DURATION &&
            trpi_config_parse_number(TRPI_CONFIG_FLOAT, value, &number, &why) == TRP_OK) {
            error_report(l, section->line,
                         "%s = %s: a duration needs a unit: write %ss or \"%s s\"", key, value,
                         value, value);
        } else {
            error_report(l, section->line, "%s: %s", key, what);
        }
        return -1;
    }
    char folded[64];
    value = trpi_config_value_fold(slot->row, value, folded, sizeof folded);
    if (trpi_config_slot_append(slot, value) != TRP_OK) {
        no_memory(l, section->line);
        return -1;
    }
    *(const char **)result = slot->values[slot->count - 1]; /* valid during this reading */
    return 0;
}

/* ---- libconfuse's complaints ----------------------------------------------------------------- */

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
name_learn(loader *l, const char *path, int line)
{
    if (strlen(path) >= TRPI_CONFIG_KEY_BYTES_MAX) {
        error_report(l, line, "a key is longer than %d bytes", TRPI_CONFIG_KEY_BYTES_MAX);
        return;
    }
    learned_name *name = &l->learned[l->learned_count++];
    (void)snprintf(name->path, sizeof name->path, "%s", path);
    name->is_section = false;
    l->again = true;
}

static void
app_learn(loader *l, const char *path, int line)
{
    if (l->learned_count - l->subtrees_count == TRPI_CONFIG_APP_KEYS_MAX) {
        error_report(l, line, "app has more than %d keys", TRPI_CONFIG_APP_KEYS_MAX);
    } else if (depth_of(path + subtree_bytes(l, path)) > TRPI_CONFIG_APP_DEPTH_MAX) {
        error_report(l, line, "app has more than %d sections inside one another",
                     TRPI_CONFIG_APP_DEPTH_MAX);
    } else {
        name_learn(l, path, line);
    }
}

/* A word beside the sections that resembles no known name may be a subtree. */
static void
subtree_learn(loader *l, const char *name, int line)
{
    if (l->subtrees_count == TRPI_CONFIG_SUBTREES_MAX) {
        error_report(l, line, "more than %d subtrees", TRPI_CONFIG_SUBTREES_MAX);
        return;
    }
    name_learn(l, name, line);
    l->subtrees_count += l->again;
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
    error_report(l, line, "'%s': a file has no dotted keys; write %s", name, nested);
}

static void
unknown_complain(loader *l, cfg_t *section, const char *name)
{
    char path[PATH_BYTES], where[PATH_BYTES] = "", hint[256];
    key_path(l, section, name, path, sizeof path);
    (void)section_path(l->root, section, NULL, where, sizeof where);
    if (strcmp(name, END_MARK) == 0) {
        error_report(l, section->line, "the file ends inside %s: a closing brace is missing",
                     where);
    } else if (trpi_config_key_is_app(path + subtree_bytes(l, path)) && !strchr(name, '.')) {
        app_learn(l, path, section->line);
    } else if (unit_strayed(l, name, section->line)) {
        trpi_config_slot *slot = trpi_config_slots_find(&l->slots, l->last_key);
        const char *value = slot && slot->count > 0 ? slot->values[slot->count - 1] : "1";
        error_report(l, section->line, "%s: a space splits the value: write %s%s or \"%s %s\"",
                     l->last_key, value, name, value, name);
    } else if (!*where && (strcmp(name, "akka") == 0 || strncmp(name, "akka.", 5) == 0)) {
        error_report(l, section->line,
                     "no such option '%s': the names are Akka's without the leading 'akka', as in "
                     "cluster { gossip-interval = 1s }",
                     name);
    } else if (strchr(name, '.')) {
        dotted_complain(l, name, section->line);
    } else if (!*where && !*trpi_config_hint(path, hint, sizeof hint)) {
        subtree_learn(l, name, section->line);
    } else {
        error_report(l, section->line, "no such option '%s'%s%s%s", name, *where ? " in " : "",
                     where, trpi_config_hint(path + subtree_bytes(l, path), hint, sizeof hint));
    }
}

/* Note that a learned name without an equal sign is a section. */
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
    if (sscanf(text, "missing title for section '%191[^']'", name) == 1) {
        error_report(l, section->line, "%s needs a title: write %s \"NAME\" { ... }", name, name);
        return;
    }
    if (strcmp(text, "unexpected token '{'") == 0) {
        error_report(l, section->line, "a list or section stands where one value is expected");
        return;
    }
    error_report(l, section->line, "%s", text);
}

/* ---- option tables --------------------------------------------------------------------------- */

/* Allocate memory that is freed after this reading. NULL: out of memory. */
static void *
reading_alloc(loader *l, size_t bytes)
{
    void *kept = TRPI_ARRAY_HAS_ROOM(l, kept) ? trpi_alloc(bytes) : NULL;
    if (kept) {
        l->kept[l->kept_count++] = kept;
    }
    return kept;
}

static void
kept_free(loader *l)
{
    for (size_t i = 0; i < l->kept_count; i++) {
        trpi_free(l->kept[i]);
    }
    l->kept_count = 0;
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

/* The options of a section that is being made, of "myapp1." and "cluster.". */
typedef struct table {
    const char *base, *prefix; /* "" or with a dot at the end */
    cfg_opt_t *options;
    size_t count;
} table;

static cfg_opt_t *table_make(loader *l, const char *base, const char *prefix);

static cfg_opt_t *
section_make(loader *l, const table *in, const char *path, size_t name_end, bool titled)
{
    char below[PATH_BYTES + 4];
    (void)snprintf(below, sizeof below, "%.*s%s", (int)name_end, path, titled ? ".*." : ".");
    bool is_subtree = !*in->base && !strchr(path, '.') && learned_find(l, path);
    return is_subtree ? table_make(l, below, "") : table_make(l, in->base, below);
}

/* Add the option that `path`, below prefix, needs in the table: a value, or a section. */
static bool
option_add(loader *l, table *to, const char *path, bool is_list, bool is_section)
{
    size_t prefix = strlen(to->prefix);
    if (strncmp(path, to->prefix, prefix) != 0) {
        return true;
    }
    const char *name = path + prefix;
    size_t bytes = strcspn(name, ".");
    if (bytes == 0 || option_known(to->options, to->count, name, bytes)) {
        return true;
    }
    cfg_opt_t *opt = &to->options[to->count++];
    char *kept = reading_alloc(l, bytes + 1);
    if (!kept) {
        return false;
    }
    memcpy(kept, name, bytes);
    if (name[bytes] == '\0' && !is_section) {
        cfg_opt_t scalar = CFG_STR_CB(kept, NULL, CFGF_NODEFAULT, on_value);
        cfg_opt_t list = CFG_STR_LIST_CB(kept, NULL, CFGF_NODEFAULT, on_value);
        *opt = is_list ? list : scalar;
        return true;
    }
    bool titled = strncmp(name + bytes, ".*.", 3) == 0;
    cfg_opt_t *options = section_make(l, to, path, prefix + bytes, titled);
    if (!options) {
        return false;
    }
    cfg_opt_t plain = CFG_SEC(kept, options, CFGF_NONE);
    cfg_opt_t multi = CFG_SEC(kept, options, CFGF_MULTI | CFGF_TITLE);
    *opt = titled ? multi : plain;
    return true;
}

/* Return an upper bound of the options of a table: rows, their aliases, learned names, app,
 * END_MARK, and the end. */
static size_t
table_room(const loader *l, const char *prefix)
{
    size_t room = 3 + l->learned_count, bytes = strlen(prefix);
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        room += strncmp(row->key, prefix, bytes) == 0;
    }
    for (const trpi_config_alias *alias = NULL; (alias = trpi_config_alias_next(alias)) != NULL;) {
        room += strncmp(alias->akka, prefix, bytes) == 0;
    }
    return room;
}

/* The options of one section. */
static cfg_opt_t *
table_make(loader *l, const char *base, const char *prefix)
{
    size_t room = table_room(l, prefix), base_bytes = strlen(base);
    table made = { base, prefix, reading_alloc(l, room * sizeof(cfg_opt_t)), 0 };
    bool ok = made.options != NULL;
    for (const trpi_config_row *row = NULL; ok && (row = trpi_config_row_next(row)) != NULL;) {
        ok = option_add(l, &made, row->key, row->type == TRPI_CONFIG_LIST, false);
    }
    const trpi_config_alias *alias = NULL;
    while (ok && (alias = trpi_config_alias_next(alias)) != NULL) {
        if (strncmp(alias->akka, prefix, strlen(prefix)) == 0) { /* a walk finds the row */
            bool is_list = trpi_config_row_find(alias->ours)->type == TRPI_CONFIG_LIST;
            ok = option_add(l, &made, alias->akka, is_list, false);
        }
    }
    for (size_t i = 0; ok && i < l->learned_count; i++) {
        const learned_name *name = &l->learned[i];
        if (strncmp(name->path, base, base_bytes) == 0) {
            ok = option_add(l, &made, name->path + base_bytes, true, name->is_section);
        }
    }
    if (ok && *prefix == '\0') {
        ok = option_add(l, &made, "app", false, true);
    }
    if (ok && *prefix == '\0' && *base == '\0') {
        ok = option_add(l, &made, END_MARK, false, false);
    }
    if (!ok) {
        return NULL;
    }
    cfg_opt_t end = CFG_END();
    trpi_assert(made.count < room);
    made.options[made.count] = end;
    return made.options;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* libconfuse does not call on_value() for `x = {}`: add these empty lists. */
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
            value_path(l, section, opt->name, key, sizeof key);
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
    cfg_opt_t *options = table_make(l, "", "");
    l->root = options ? cfg_init(options, CFGF_NONE) : NULL;
    if (!l->root) {
        no_memory(l, 0);
    } else {
        (void)cfg_set_error_function(l->root, on_error);
        int rc = cfg_parse_buf(l->root, text);
        if (rc != CFG_SUCCESS && !l->failed && !l->again) {
            error_report(l, l->root->line, "cannot be read");
        }
        if (rc == CFG_SUCCESS && !l->failed) {
            (void)empty_lists_take(l, l->root); /* a failure has been recorded */
        }
        (void)cfg_free(l->root);
        l->root = NULL;
    }
    kept_free(l);
}

static void
loader_free(loader *l)
{
    trpi_config_text_fini(&l->text);
    trpi_config_slots_clear(&l->slots);
    trpi_free(l->instances);
    trpi_free(l->learned);
    trpi_free(l->kept);
    trpi_free(l);
}

/* Read the joined text until a reading learns no new name. */
static void
read_all(loader *l)
{
    pthread_mutex_lock(&lock);
    loading = l;
    do {
        read_once(l, (const char *)l->text.joined.data);
    } while (l->again && !l->failed);
    loading = NULL;
    pthread_mutex_unlock(&lock);
}

trp_err
trpi_config_load_text(trpi_config *config, const char *name, const char *text,
                      trpi_config_error *ret_error)
{
    static const char mark[] = "\n" END_MARK " = x\n"; /* with its NUL */
    loader *l = trpi_alloc(sizeof *l);
    trp_err err = l ? TRP_OK : TRP_ENOMEM;
    if (l) {
        l->error = ret_error;
        l->err = TRP_ECONFIG;
        l->learned =
            trpi_alloc((TRPI_CONFIG_APP_KEYS_MAX + TRPI_CONFIG_SUBTREES_MAX) * sizeof *l->learned);
        err = l->learned ? trpi_config_text_make(name, text, &l->text, ret_error) : TRP_ENOMEM;
    }
    if (err == TRP_OK) {
        err = trpi_buffer_append(&l->text.joined, mark, sizeof mark, TRPI_BUFFER_NO_LIMIT);
    }
    if (err == TRP_OK) {
        read_all(l);
        err = l->failed ? l->err : trpi_config_adopt(config, &l->slots); /* config-load-I1 */
    }
    if (err == TRP_ENOMEM) {
        (void)trpi_config_fail(ret_error, "%s: out of memory", name);
    }
    if (l) {
        loader_free(l);
    }
    return err;
}

trp_err
trpi_config_load_file(trpi_config *config, const char *path, trpi_config_error *ret_error)
{
    char *text TRPI_AUTO_FREE = NULL;
    trp_err err = trpi_config_file_read(path, &text, ret_error);
    return err == TRP_OK ? trpi_config_load_text(config, path, text, ret_error) : err;
}
