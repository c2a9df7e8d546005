/* config_tree.c - configurations as immutable values: combined, lifted, and read.
 *
 * Shape.     A value is a table of slots without the defaults; a key that it does not have is
 *            looked up among the rows of the schema. Combining copies slots, each with its origin.
 * Must hold.
 *   config-tree-I1  a config that was handed out is never changed
 * Cost.      A getter hashes the key and walks the slots; combining n with m keys is O(n * m)
 *            comparisons of integers. Meant for start-up, not for the handling of messages.
 * Tests.     tests/unit/base/config_tree_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/config.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/config_store.h"
#include "base/nearest.h"
#include "base/sized.h"

/* ---- reading --------------------------------------------------------------------------------- */

trp_err
trp_config_parse_text(const char *name, const char *text, trp_config **ret_config,
                      trp_config_error *ret_error)
{
    trp_config_error unread;
    trp_config *config = NULL;
    if (!name || !text || !ret_config) {
        return TRP_EINVAL;
    }
    trp_err err = trpi_config_empty_new(&config);
    if (err == TRP_OK) {
        err = trpi_config_load_text(config, name, text, ret_error ? ret_error : &unread);
    }
    if (err != TRP_OK) {
        trpi_config_free(config);
        return err;
    }
    *ret_config = config;
    return TRP_OK;
}

trp_err
trp_config_parse_file(const char *path, trp_config **ret_config, trp_config_error *ret_error)
{
    return path ? trp_config_load(path, NULL, NULL, ret_config, ret_error) : TRP_EINVAL;
}

/* The file first: its titles and app keys decide which key a variable means. */
trp_err
trp_config_load(const char *path, char *const *environment, const char *const *settings,
                trp_config **ret_config, trp_config_error *ret_error)
{
    trp_config_error unread;
    trp_config_error *error = ret_error ? ret_error : &unread;
    trp_config *config = NULL;
    if (!ret_config) {
        return TRP_EINVAL;
    }
    trp_err err = trpi_config_empty_new(&config);
    if (err == TRP_OK && path) {
        err = trpi_config_load_file(config, path, error);
    }
    if (err == TRP_OK) {
        err = trpi_config_load_env(config, environment, error);
    }
    for (; err == TRP_OK && settings && *settings; settings++) {
        err = trpi_config_set(config, *settings, "--set", error);
    }
    if (err != TRP_OK) {
        trpi_config_free(config);
        return err;
    }
    *ret_config = config;
    return TRP_OK;
}

/* ---- sharing and combining ------------------------------------------------------------------- */

trp_config *
trp_config_ref(const trp_config *config)
{
    trp_config *shared = (trp_config *)(uintptr_t)config; /* the counter is not part of the value */
    if (shared) {
        /* relaxed: the caller has a share already */
        (void)atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    }
    return shared;
}

void
trp_config_unref(trp_config *config)
{
    trpi_config_free(config);
}

/* Selects the slots of one config that another one gets, and their keys there. */
typedef struct filter {
    const char *path; /* NULL: all */
    bool without;     /* all but path */
    bool lifted;      /* path is cut off the keys */
} filter;

/* Return the key that a slot gets; NULL: the filter leaves it out. */
static const char *
filter_pass(const filter *f, const char *key)
{
    size_t bytes = f->path ? strlen(f->path) : 0;
    bool below =
        bytes > 0 && strncmp(key, f->path, bytes) == 0 && (key[bytes] == '.' || key[bytes] == '\0');
    if (!f->path) {
        return key;
    }
    if (f->lifted) {
        return below && key[bytes] == '.' ? key + bytes + 1 : NULL;
    }
    return below != f->without ? key : NULL;
}

/* Copy the slots that pass the filter and are not there yet. */
static trp_err
slots_copy(trp_config *to, const trp_config *from, const filter *f)
{
    trp_err err = TRP_OK;
    for (size_t i = 0; err == TRP_OK && i < from->slots.count; i++) {
        const trpi_config_slot *slot = &from->slots.slots[i];
        const char *key = filter_pass(f, slot->key);
        if (key && !trpi_config_slots_find(&to->slots, key)) {
            err = trpi_config_slot_copy(&to->slots, key, slot);
        }
    }
    return err;
}

/* Make a copy of config, and of the keys of `under` (NULL: none) that config lacks. */
static trp_err
configs_combine(const trp_config *config, const filter *f, const trp_config *under,
                trp_config **ret_config)
{
    static const filter all = { NULL, false, false };
    trp_config *made = NULL;
    trp_err err = trpi_config_empty_new(&made);
    if (err == TRP_OK) {
        err = slots_copy(made, config, f ? f : &all);
    }
    if (err == TRP_OK && under) {
        err = slots_copy(made, under, &all);
    }
    if (err != TRP_OK) {
        trpi_config_free(made);
        return err;
    }
    *ret_config = made;
    return TRP_OK;
}

trp_err
trp_config_with_fallback(const trp_config *config, const trp_config *fallback,
                         trp_config **ret_config)
{
    if (!config || !fallback || !ret_config) {
        return TRP_EINVAL;
    }
    return configs_combine(config, NULL, fallback, ret_config);
}

trp_err
trp_config_with_setting(const trp_config *config, const char *assignment, const char *origin,
                        trp_config **ret_config, trp_config_error *ret_error)
{
    trp_config_error unread;
    trp_config *made = NULL;
    if (!config || !assignment || !origin || !ret_config) {
        return TRP_EINVAL;
    }
    trp_err err = configs_combine(config, NULL, NULL, &made);
    if (err == TRP_OK) {
        err = trpi_config_set(made, assignment, origin, ret_error ? ret_error : &unread);
    }
    if (err != TRP_OK) {
        trpi_config_free(made);
        return err;
    }
    *ret_config = made;
    return TRP_OK;
}

trp_err
trp_config_with_only_path(const trp_config *config, const char *path, trp_config **ret_config)
{
    filter f = { path, false, false };
    return config && path && ret_config ? configs_combine(config, &f, NULL, ret_config)
                                        : TRP_EINVAL;
}

trp_err
trp_config_without_path(const trp_config *config, const char *path, trp_config **ret_config)
{
    filter f = { path, true, false };
    return config && path && ret_config ? configs_combine(config, &f, NULL, ret_config)
                                        : TRP_EINVAL;
}

trp_err
trp_config_get_subtree(const trp_config *config, const char *path, trp_config **ret_config)
{
    filter f = { path, false, true };
    trp_config *made = NULL;
    if (!config || !path || !ret_config) {
        return TRP_EINVAL;
    }
    trp_err err = configs_combine(config, &f, NULL, &made);
    if (err == TRP_OK && made->slots.count == 0) {
        trpi_config_free(made);
        return TRP_ENOENT;
    }
    if (err == TRP_OK) {
        *ret_config = made;
    }
    return err;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Return the key of config, or of the schema, that resembles `key` most. */
static const char *
key_nearest(const trp_config *config, const char *key, char *buffer, size_t bytes)
{
    const char *near = NULL;
    size_t best = 2 + strlen(key) / 6;
    for (size_t i = 0; i < config->slots.count; i++) {
        size_t distance = trpi_edit_distance(key, config->slots.slots[i].key);
        if (distance < best) {
            best = distance;
            near = config->slots.slots[i].key;
        }
    }
    if (!near) {
        return trpi_config_hint(key, buffer, bytes);
    }
    (void)snprintf(buffer, bytes, "; did you mean '%s'?", near);
    return buffer;
}

/* Where a value is; without values, where it would be. */
typedef struct found {
    const char *const *values;
    size_t count;
    const char *origin;
} found;

static trp_err
value_find(const trp_config *config, const char *key, found *ret_found, trp_config_error *ret_error)
{
    char hint[256];
    const trpi_config_slot *slot = trpi_config_slots_find(&config->slots, key);
    const trpi_config_row *row = slot ? slot->row : trpi_config_row_find(key);
    if (!slot && (!row || (*row->initial == '\0' && row->type != TRPI_CONFIG_TEXT &&
                           row->type != TRPI_CONFIG_LIST))) {
        (void)trpi_config_fail(ret_error, "'%s' is not set%s", key,
                               row ? "" : key_nearest(config, key, hint, sizeof hint));
        return TRP_ENOENT;
    }
    ret_found->values = slot ? (const char *const *)slot->values : &row->initial;
    ret_found->count = slot ? slot->count : row->type != TRPI_CONFIG_LIST;
    ret_found->origin = slot ? slot->origin : "default";
    return TRP_OK;
}

static trp_err
find_one(const trp_config *config, const char *key, const void *ret, const char **ret_text,
         const char **ret_origin, trp_config_error *ret_error)
{
    found f;
    if (!config || !key || !ret) {
        return TRP_EINVAL;
    }
    trp_err err = value_find(config, key, &f, ret_error);
    if (err != TRP_OK) {
        return err;
    }
    if (f.count != 1) {
        return trpi_config_fail(ret_error, "%s: %s is a list of %zu values", f.origin, key,
                                f.count);
    }
    *ret_text = f.values[0];
    *ret_origin = f.origin;
    return TRP_OK;
}

trp_err
trp_config_get_text(const trp_config *config, const char *key, const char **ret_text,
                    trp_config_error *ret_error)
{
    trp_config_error unread;
    const char *text = NULL, *origin = NULL;
    trp_err err = find_one(config, key, ret_text, &text, &origin, ret_error ? ret_error : &unread);
    if (err == TRP_OK) {
        *ret_text = text;
    }
    return err;
}

static trp_err
number_read(const trp_config *config, const char *key, trpi_config_type type, const void *ret,
            double *ret_number, trp_config_error *ret_error)
{
    trp_config_error unread;
    trp_config_error *error = ret_error ? ret_error : &unread;
    const char *text = NULL, *origin = NULL, *what = NULL;
    trp_err err = find_one(config, key, ret, &text, &origin, error);
    if (err == TRP_OK && trpi_config_parse_number(type, text, ret_number, &what) != TRP_OK) {
        err = trpi_config_fail(error, "%s: %s: '%s': %s", origin, key, text, what);
    }
    return err;
}

static trp_err
whole_read(const trp_config *config, const char *key, trpi_config_type type, int64_t *ret_number,
           trp_config_error *ret_error)
{
    double number = 0;
    trp_err err = number_read(config, key, type, ret_number, &number, ret_error);
    if (err == TRP_OK) {
        *ret_number = (int64_t)number;
    }
    return err;
}

trp_err
trp_config_get_int(const trp_config *config, const char *key, int64_t *ret_number,
                   trp_config_error *ret_error)
{
    return whole_read(config, key, TRPI_CONFIG_INT, ret_number, ret_error);
}

trp_err
trp_config_get_float(const trp_config *config, const char *key, double *ret_number,
                     trp_config_error *ret_error)
{
    double number = 0;
    trp_err err = number_read(config, key, TRPI_CONFIG_FLOAT, ret_number, &number, ret_error);
    if (err == TRP_OK) {
        *ret_number = number;
    }
    return err;
}

trp_err
trp_config_get_bool(const trp_config *config, const char *key, int *ret_holds,
                    trp_config_error *ret_error)
{
    double number = 0;
    trp_err err = number_read(config, key, TRPI_CONFIG_BOOL, ret_holds, &number, ret_error);
    if (err == TRP_OK) {
        *ret_holds = number > 0;
    }
    return err;
}

trp_err
trp_config_get_duration(const trp_config *config, const char *key, int64_t *ret_ms,
                        trp_config_error *ret_error)
{
    return whole_read(config, key, TRPI_CONFIG_DURATION, ret_ms, ret_error);
}

trp_err
trp_config_get_size(const trp_config *config, const char *key, int64_t *ret_bytes,
                    trp_config_error *ret_error)
{
    return whole_read(config, key, TRPI_CONFIG_SIZE, ret_bytes, ret_error);
}

trp_err
trp_config_get_list(const trp_config *config, const char *key, const char *const **ret_values,
                    size_t *ret_count, trp_config_error *ret_error)
{
    trp_config_error unread;
    found f;
    if (!config || !key || !ret_values || !ret_count) {
        return TRP_EINVAL;
    }
    trp_err err = value_find(config, key, &f, ret_error ? ret_error : &unread);
    if (err == TRP_OK) {
        *ret_values = f.values;
        *ret_count = f.count;
    }
    return err;
}

int
trp_config_is_set(const trp_config *config, const char *key)
{
    return config && key && trpi_config_is_set(config, key);
}

const char *
trp_config_origin(const trp_config *config, const char *key)
{
    if (!config || !key) {
        return NULL;
    }
    const trpi_config_slot *slot = trpi_config_slots_find(&config->slots, key);
    return slot ? slot->origin : trpi_config_row_find(key) ? "default" : NULL;
}

int
trp_config_at(const trp_config *config, size_t index, trp_config_entry *ret_entry)
{
    trp_config_entry entry;
    if (!config || !ret_entry) {
        return 0;
    }
    for (size_t i = 0; i < config->slots.count; i++) {
        const trpi_config_slot *slot = &config->slots.slots[i];
        if (slot->layer == TRPI_CONFIG_DEFAULT || index-- > 0) {
            continue;
        }
        entry.size = sizeof entry;
        entry.key = slot->key;
        entry.values = (const char *const *)slot->values;
        entry.values_count = slot->count;
        entry.origin = slot->origin;
        return TRPI_SIZED_FILL(ret_entry, &entry, origin);
    }
    return 0;
}
