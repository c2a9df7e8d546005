/* config.c - the table of values in force, and where each came from.
 *
 * Shape.     One slot per key of the schema (in its order, filled with the default), then titled
 *            keys (cluster.role.NAME...) and keys below app, in the order in which they were met.
 * Must hold.
 *   config-I1  a value of a lower layer never replaces one of a higher layer (slot_replace)
 *   config-I2  every value in a slot has passed the check of its row (trpi_config_put,
 *      trpi_config_adopt)
 * Limits.    TRPI_CONFIG_LIST_MAX values, TRPI_CONFIG_TEXT_BYTES_MAX each.
 * Not here.  The file (config_load.c), the keys (keys.c of each room), numbers (config_value.c),
 *            which value may stand where (config_check.c), the environment (config_env.c), the
 *            functions for programs (config_tree.c).
 * Tests.     tests/unit/node/config_test.c
 */
#include "base/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/config_store.h"
#include "base/hash.h"

/* ---- errors ---------------------------------------------------------------------------------- */

trp_err
trpi_config_fail(trpi_config_error *ret_error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(ret_error->text, sizeof ret_error->text, format, list); /* cut is fine */
    va_end(list);
    return TRP_ECONFIG;
}

/* ---- slots ----------------------------------------------------------------------------------- */

void
trpi_config_slot_clear(trpi_config_slot *slot)
{
    for (size_t i = 0; i < slot->count; i++) {
        trpi_free(slot->values[i]);
    }
    trpi_free(slot->values);
    slot->values = NULL;
    slot->count = slot->room = 0;
}

static void
slot_fini(trpi_config_slot *slot)
{
    trpi_config_slot_clear(slot);
    trpi_free(slot->key);
    trpi_free(slot->origin);
}

void
trpi_config_slots_clear(trpi_config_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++) {
        slot_fini(&slots->slots[i]);
    }
    trpi_free(slots->slots);
    memset(slots, 0, sizeof *slots);
}

static uint32_t
key_hash(const char *key)
{
    return (uint32_t)trpi_hash_text(key);
}

trpi_config_slot *
trpi_config_slots_find(const trpi_config_slots *slots, const char *key)
{
    uint32_t hash = key_hash(key);
    for (size_t i = 0; i < slots->count; i++) {
        if (slots->slots[i].hash == hash && strcmp(slots->slots[i].key, key) == 0) {
            return &slots->slots[i];
        }
    }
    return NULL;
}

trp_err
trpi_config_slots_add(trpi_config_slots *slots, const char *key, const trpi_config_row *row,
                      trpi_config_slot **ret_slot)
{
    trpi_assert(trpi_config_slots_find(slots, key) == NULL);
    char *name = NULL;
    if (trpi_array_reserve(&slots->slots, slots->count, &slots->room, sizeof *slots->slots, 1,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK ||
        !(name = trpi_strdup(key))) {
        return TRP_ENOMEM;
    }
    trpi_config_slot *slot = &slots->slots[slots->count++];
    memset(slot, 0, sizeof *slot);
    slot->key = name;
    slot->hash = key_hash(key);
    slot->row = row;
    *ret_slot = slot;
    return TRP_OK;
}

trp_err
trpi_config_slot_append(trpi_config_slot *slot, const char *value)
{
    trpi_assert(slot->count < TRPI_CONFIG_LIST_MAX);
    char *copy = NULL;
    if (trpi_array_reserve(&slot->values, slot->count, &slot->room, sizeof *slot->values, 1,
                           TRPI_CONFIG_LIST_MAX) != TRP_OK ||
        !(copy = trpi_strdup(value))) {
        return TRP_ENOMEM;
    }
    slot->values[slot->count++] = copy;
    return TRP_OK;
}

trp_err
trpi_config_slot_origin(trpi_config_slot *slot, trpi_config_layer layer, const char *origin)
{
    char *text = trpi_strdup(origin);
    if (!text) {
        return TRP_ENOMEM;
    }
    trpi_free(slot->origin);
    slot->origin = text;
    slot->layer = layer;
    return TRP_OK;
}

trp_err
trpi_config_slot_copy(trpi_config_slots *slots, const char *key, const trpi_config_slot *slot)
{
    trpi_config_slot *copy = NULL;
    trp_err err = trpi_config_slots_add(slots, key, slot->row, &copy);
    if (err == TRP_OK) {
        err = trpi_config_slot_origin(copy, slot->layer, slot->origin);
    }
    for (size_t i = 0; err == TRP_OK && i < slot->count; i++) {
        err = trpi_config_slot_append(copy, slot->values[i]);
    }
    return err;
}

/* ---- making, setting ------------------------------------------------------------------------- */

trp_err
trpi_config_empty_new(trpi_config **ret_config)
{
    trpi_config *config = trpi_alloc(sizeof *config);
    if (!config) {
        return TRP_ENOMEM;
    }
    atomic_store_explicit(&config->refs, 1, memory_order_relaxed);
    *ret_config = config;
    return TRP_OK;
}

trp_err
trpi_config_new(trpi_config **ret_config)
{
    trpi_config *config = NULL;
    trp_err err = trpi_config_empty_new(&config);
    const trpi_config_row *row = NULL;
    while (err == TRP_OK && (row = trpi_config_row_next(row)) != NULL) {
        trpi_config_slot *slot = NULL;
        if (strchr(row->key, '*')) {
            continue;
        }
        err = trpi_config_slots_add(&config->slots, row->key, row, &slot);
        if (err == TRP_OK) {
            err = trpi_config_slot_origin(slot, TRPI_CONFIG_DEFAULT, "default");
        }
        if (err == TRP_OK && row->type != TRPI_CONFIG_LIST) {
            err = trpi_config_slot_append(slot, row->initial);
        }
    }
    if (err != TRP_OK) {
        trpi_config_free(config);
        return err;
    }
    *ret_config = config;
    return TRP_OK;
}

void
trpi_config_free(trpi_config *config)
{
    /* acq_rel: the freeing thread has seen all uses by others */
    if (config && atomic_fetch_sub_explicit(&config->refs, 1, memory_order_acq_rel) == 1) {
        trpi_config_slots_clear(&config->slots);
        trpi_free(config);
    }
}

/* config-I1. Takes the contents of `from`, which stays valid and empty. */
static trp_err
slot_replace(trpi_config *config, trpi_config_slot *from)
{
    trpi_config_slot *slot = trpi_config_slots_find(&config->slots, from->key);
    if (!slot) {
        trp_err err = trpi_config_slots_add(&config->slots, from->key, from->row, &slot);
        if (err != TRP_OK) {
            return err;
        }
    } else if (slot->layer > from->layer) {
        return TRP_OK;
    }
    trpi_config_slot before = *slot;
    slot->values = from->values;
    slot->count = from->count;
    slot->room = from->room;
    slot->origin = from->origin;
    slot->layer = from->layer;
    from->values = before.values;
    from->count = before.count;
    from->room = before.room;
    from->origin = before.origin;
    return TRP_OK;
}

trp_err
trpi_config_adopt(trpi_config *config, trpi_config_slots *from)
{
    for (size_t i = 0; i < from->count; i++) {
        trp_err err = slot_replace(config, &from->slots[i]);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

/* Find the row of a key of config, and refuse a key that may not be there. */
static trp_err
key_check(const trpi_config *config, const char *key, const char *origin,
          const trpi_config_row **ret_row, trpi_config_error *ret_error)
{
    char what[512], hint[256];
    const char *own = key + trpi_config_subtree_bytes(&config->slots, key);
    const trpi_config_row *row = trpi_config_row_find(own);
    if (strlen(key) > TRPI_CONFIG_KEY_BYTES_MAX) {
        return trpi_config_fail(ret_error, "%s: a key is longer than %d bytes", origin,
                                TRPI_CONFIG_KEY_BYTES_MAX);
    }
    if (!row && !trpi_config_key_is_app(own)) {
        return trpi_config_fail(ret_error, "%s: no such key '%s'%s", origin, key,
                                trpi_config_hint(own, hint, sizeof hint));
    }
    if (trpi_config_title_check(own, row, what, sizeof what) != TRP_OK) {
        return trpi_config_fail(ret_error, "%s: %s", origin, what);
    }
    *ret_row = row;
    return TRP_OK;
}

static trp_err
values_check(const trpi_config_row *row, const char *key, const char *const *values, size_t count,
             const char *origin, trpi_config_error *ret_error)
{
    char what[512];
    if (count > TRPI_CONFIG_LIST_MAX) {
        return trpi_config_fail(ret_error, "%s: %s has more than %d values", origin, key,
                                TRPI_CONFIG_LIST_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (trpi_config_value_check(row, values[i], what, sizeof what) != TRP_OK) {
            return trpi_config_fail(ret_error, "%s: %s: %s", origin, key, what);
        }
    }
    return TRP_OK;
}

trp_err
trpi_config_put(trpi_config *config, trpi_config_layer layer, const char *key,
                const char *const *values, size_t count, const char *origin,
                trpi_config_error *ret_error)
{
    const trpi_config_row *row = NULL;
    trpi_config_slots one = { NULL, 0, 0 };
    trpi_config_slot *slot = NULL;
    char folded[64];
    trp_err err = key_check(config, key, origin, &row, ret_error);
    trpi_assert(err != TRP_OK || count == 1 || !row || row->type == TRPI_CONFIG_LIST);
    if (err == TRP_OK) {
        err = values_check(row, key, values, count, origin, ret_error);
    }
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_config_slots_add(&one, key, row, &slot);
    if (err == TRP_OK) {
        err = trpi_config_slot_origin(slot, layer, origin);
    }
    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        err = trpi_config_slot_append(
            slot, trpi_config_value_fold(row, values[i], folded, sizeof folded));
    }
    if (err == TRP_OK) {
        err = trpi_config_adopt(config, &one);
    }
    trpi_config_slots_clear(&one);
    if (err != TRP_OK) {
        (void)trpi_config_fail(ret_error, "%s: %s", origin, trp_strerror(err));
    }
    return err;
}

trp_err
trpi_config_put_text(trpi_config *config, trpi_config_layer layer, const char *key,
                     const char *text, const char *origin, trpi_config_error *ret_error)
{
    char *copy TRPI_AUTO_FREE = NULL;
    const char *values[TRPI_CONFIG_LIST_MAX + 1];
    size_t count = 0, before = trpi_config_subtree_bytes(&config->slots, key);
    char *rest, *piece = NULL, ours[TRPI_CONFIG_KEY_BYTES_MAX + 2];
    if (trpi_config_alias_of(key + before)) {
        (void)snprintf(ours, sizeof ours, "%.*s%s", (int)before, key,
                       trpi_config_alias_of(key + before));
        key = ours;
    }
    const trpi_config_row *row = trpi_config_row_find(key + before);
    if (!row || row->type != TRPI_CONFIG_LIST) {
        return trpi_config_put(config, layer, key, &text, 1, origin, ret_error);
    }
    rest = copy = trpi_strdup(text);
    if (!copy) {
        (void)trpi_config_fail(ret_error, "%s: out of memory", origin);
        return TRP_ENOMEM;
    }
    while (count <= TRPI_CONFIG_LIST_MAX && (piece = strsep(&rest, ",")) != NULL) {
        piece += strspn(piece, " \t");
        size_t bytes = strlen(piece);
        while (bytes > 0 && (piece[bytes - 1] == ' ' || piece[bytes - 1] == '\t')) {
            piece[--bytes] = '\0';
        }
        if (bytes > 0) {
            values[count++] = piece;
        }
    }
    return trpi_config_put(config, layer, key, values, count, origin, ret_error);
}

trp_err
trpi_config_set(trpi_config *config, const char *assignment, const char *origin,
                trpi_config_error *ret_error)
{
    const char *equals = strchr(assignment, '=');
    char key[TRPI_CONFIG_KEY_BYTES_MAX + 2];
    if (!equals || equals == assignment) {
        return trpi_config_fail(ret_error, "%s %s: expected KEY=VALUE, like log.level=debug",
                                origin, assignment);
    }
    size_t bytes = (size_t)(equals - assignment);
    while (bytes > 1 && assignment[bytes - 1] == ' ') {
        bytes--;
    }
    if (bytes >= sizeof key) {
        bytes = sizeof key - 1; /* one past the limit, so that put() refuses it */
    }
    memcpy(key, assignment, bytes);
    key[bytes] = '\0';
    return trpi_config_put_text(config, TRPI_CONFIG_FLAG, key, equals + 1 + strspn(equals + 1, " "),
                                origin, ret_error);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* The first value of key, its default when it is not set. */
static const char *
value_get(const trpi_config *config, const char *key, const trpi_config_row **ret_row)
{
    const trpi_config_slot *slot = config ? trpi_config_slots_find(&config->slots, key) : NULL;
    *ret_row = slot ? slot->row : trpi_config_row_find(key);
    trpi_assert(*ret_row != NULL);
    trpi_assert(!slot || slot->count == 1);
    return slot ? slot->values[0] : (*ret_row)->initial;
}

const char *
trpi_config_text(const trpi_config *config, const char *key)
{
    const trpi_config_row *row = NULL;
    return value_get(config, key, &row);
}

static double
number_get(const trpi_config *config, const char *key)
{
    const trpi_config_row *row = NULL;
    const char *value = value_get(config, key, &row), *what = NULL;
    double number = -1;
    if (*value == '\0') {
        return -1;
    }
    if (row->choices && row->type != TRPI_CONFIG_CHOICE && !isdigit((unsigned char)*value)) {
        if (row->type != TRPI_CONFIG_DURATION || strcmp(value, "on") != 0) {
            return strcmp(value, "on") == 0 || strcmp(value, "unlimited") == 0 ? row->max
                                                                               : row->min;
        }
        value = row->initial; /* "on" alone: the default time */
    }
    trp_err err = trpi_config_parse_number(row->type, value, &number, &what);
    trpi_assert(err == TRP_OK); /* config-I2 */
    return number;
}

int64_t
trpi_config_int(const trpi_config *config, const char *key)
{
    return (int64_t)number_get(config, key);
}

double
trpi_config_float(const trpi_config *config, const char *key)
{
    return number_get(config, key);
}

bool
trpi_config_bool(const trpi_config *config, const char *key)
{
    return number_get(config, key) > 0;
}

size_t
trpi_config_list_count(const trpi_config *config, const char *key)
{
    const trpi_config_slot *slot = config ? trpi_config_slots_find(&config->slots, key) : NULL;
    trpi_assert(slot || trpi_config_row_find(key) != NULL);
    return slot ? slot->count : 0; /* the default of every list is the empty one */
}

const char *
trpi_config_list_at(const trpi_config *config, const char *key, size_t index)
{
    const trpi_config_slot *slot = trpi_config_slots_find(&config->slots, key);
    trpi_assert(slot != NULL);
    trpi_assert(index < slot->count);
    return slot->values[index];
}

bool
trpi_config_is_set(const trpi_config *config, const char *key)
{
    const trpi_config_slot *slot = config ? trpi_config_slots_find(&config->slots, key) : NULL;
    return slot && slot->layer != TRPI_CONFIG_DEFAULT;
}

static void
entry_fill(const trpi_config_slot *slot, trpi_config_entry *ret_entry)
{
    ret_entry->key = slot->key;
    ret_entry->values = (const char *const *)slot->values;
    ret_entry->count = slot->count;
    ret_entry->type = slot->row          ? slot->row->type
                      : slot->count == 1 ? TRPI_CONFIG_TEXT
                                         : TRPI_CONFIG_LIST;
    ret_entry->layer = slot->layer;
    ret_entry->origin = slot->origin;
    ret_entry->doc = slot->row ? slot->row->doc : NULL;
    ret_entry->row = slot->row;
}

bool
trpi_config_find(const trpi_config *config, const char *key, trpi_config_entry *ret_entry)
{
    const trpi_config_slot *slot = config ? trpi_config_slots_find(&config->slots, key) : NULL;
    if (slot) {
        entry_fill(slot, ret_entry);
    }
    return slot != NULL;
}

size_t
trpi_config_count(const trpi_config *config)
{
    return config->slots.count;
}

void
trpi_config_at(const trpi_config *config, size_t index, trpi_config_entry *ret_entry)
{
    trpi_assert(index < config->slots.count);
    entry_fill(&config->slots.slots[index], ret_entry);
}
