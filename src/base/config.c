/* config.c - the table of values in force, and where each came from.
 *
 * Shape.     One slot per key of the schema (in its order, filled with the default), then titled
 *            keys (cluster.role.NAME...) and keys below app, in the order in which they were met.
 * Must hold. I1 a value of a lower layer never replaces one of a higher layer        (slot_replace)
 *            I2 every value in a slot has passed the check of its row                (put, adopt)
 * Limits.    TRPI_CONFIG_LIST_MAX values, TRPI_CONFIG_TEXT_BYTES_MAX each.
 * Not here.  The file (config_load.c), the schema (config_schema.c), numbers (config_value.c).
 * Tests.     tests/unit/node/config_test.c
 */
#include "base/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/config_store.h"
#include "base/nearest.h"

struct trpi_config {
    trpi_config_slots slots;
};

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

static void
slot_values_free(trpi_config_slot *slot)
{
    for (size_t i = 0; i < slot->count; i++) {
        trpi_free(slot->values[i]);
    }
    trpi_free(slot->values);
    slot->values = NULL;
    slot->count = 0;
}

static void
slot_fini(trpi_config_slot *slot)
{
    slot_values_free(slot);
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

trpi_config_slot *
trpi_config_slots_find(const trpi_config_slots *slots, const char *key)
{
    for (size_t i = 0; i < slots->count; i++) {
        if (strcmp(slots->slots[i].key, key) == 0) {
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
    if (slots->count == slots->room) {
        size_t room = slots->room ? slots->room * 2 : 64;
        trpi_config_slot *grown = trpi_realloc(slots->slots, room * sizeof *grown);
        if (!grown) {
            return TRP_ENOMEM;
        }
        slots->slots = grown;
        slots->room = room;
    }
    char *name = trpi_strdup(key);
    if (!name) {
        return TRP_ENOMEM;
    }
    trpi_config_slot *slot = &slots->slots[slots->count++];
    memset(slot, 0, sizeof *slot);
    slot->key = name;
    slot->row = row;
    *ret_slot = slot;
    return TRP_OK;
}

trp_err
trpi_config_slot_append(trpi_config_slot *slot, const char *value)
{
    trpi_assert(slot->count < TRPI_CONFIG_LIST_MAX);
    char **grown = trpi_realloc(slot->values, (slot->count + 1) * sizeof *grown);
    if (!grown) {
        return TRP_ENOMEM;
    }
    slot->values = grown;
    grown[slot->count] = trpi_strdup(value);
    if (!grown[slot->count]) {
        return TRP_ENOMEM;
    }
    slot->count++;
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

/* ---- rows and checks ------------------------------------------------------------------------- */

bool
trpi_config_key_is_app(const char *key)
{
    return strncmp(key, "app.", 4) == 0 && key[4] != '\0';
}

const trpi_config_row *
trpi_config_row_find(const char *key)
{
    size_t count = strlen(key);
    for (const trpi_config_row *row = trpi_config_rows; row->key; row++) {
        const char *star = strchr(row->key, '*');
        if (!star) {
            if (strcmp(row->key, key) == 0) {
                return row;
            }
            continue;
        }
        size_t before = (size_t)(star - row->key), after = strlen(star + 1);
        if (count > before + after && strncmp(key, row->key, before) == 0 &&
            strcmp(key + count - after, star + 1) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool
choice_holds(const char *choices, const char *value)
{
    size_t count = strlen(value);
    for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
        if (strncmp(p, value, count) == 0 && (p[count] == '|' || p[count] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool
word_is_plain(const char *text, const char *extra)
{
    for (const char *p = text; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr(extra, *p)) {
            return false;
        }
    }
    return *text != '\0';
}

static trp_err
seed_check(const char *value, char *ret_what, size_t what_bytes)
{
    trpi_address address;
    const char *hint = NULL;
    if (strcmp(value, "self") == 0 || trpi_address_parse(value, &address, NULL, &hint) == TRP_OK) {
        return TRP_OK;
    }
    (void)snprintf(ret_what, what_bytes, "'%s' is no address: %s", value,
                   hint ? hint : "write troupe.tcp://system@host:port");
    return TRP_ECONFIG;
}

/* What a type cannot say. */
static trp_err
meaning_check(const trpi_config_row *row, const char *value, char *ret_what, size_t what_bytes)
{
    if (strcmp(row->key, "cluster.seed-nodes") == 0) {
        return seed_check(value, ret_what, what_bytes);
    }
    if (strcmp(row->key, "system") == 0 &&
        (!word_is_plain(value, "-_") || strlen(value) > TRPI_SYSTEM_BYTES_MAX)) {
        (void)snprintf(ret_what, what_bytes,
                       "'%s' is no system name: 1 to %d letters, digits, '-' and '_'", value,
                       TRPI_SYSTEM_BYTES_MAX);
        return TRP_ECONFIG;
    }
    if (strcmp(row->key, "cluster.roles") == 0 &&
        (!word_is_plain(value, "-_.") || strlen(value) > 63)) {
        (void)snprintf(ret_what, what_bytes,
                       "'%s' is no role: 1 to 63 letters, digits, '-', '_', '.'", value);
        return TRP_ECONFIG;
    }
    if (strcmp(row->key, "remote.hostname") == 0 &&
        (strcmp(value, "0.0.0.0") == 0 || strcmp(value, "::") == 0 || strcmp(value, "*") == 0 ||
         *value == '\0')) {
        (void)snprintf(ret_what, what_bytes,
                       "'%s' cannot be advertised: the others must be able to reach it; set "
                       "remote.hostname to this host's address, and remote.bind-hostname to '%s'",
                       value, *value ? value : "0.0.0.0");
        return TRP_ECONFIG;
    }
    return TRP_OK;
}

static void
bound_format(trpi_config_type type, double bound, char *buffer, size_t bytes)
{
    if (type == TRPI_CONFIG_DURATION) {
        bool whole = bound >= 1000 && bound / 1000 == (double)(int64_t)(bound / 1000);
        (void)snprintf(buffer, bytes, "%.0f%s", whole ? bound / 1000 : bound, whole ? "s" : "ms");
    } else if (type == TRPI_CONFIG_SIZE) {
        bool whole = bound >= 1024 && bound / 1024 == (double)(int64_t)(bound / 1024);
        (void)snprintf(buffer, bytes, "%.0f%s", whole ? bound / 1024 : bound, whole ? "KiB" : "B");
    } else {
        (void)snprintf(buffer, bytes, "%g", bound);
    }
}

static trp_err
number_check(const trpi_config_row *row, const char *value, char *ret_what, size_t what_bytes)
{
    double number = 0;
    const char *what = "";
    if (row->type == TRPI_CONFIG_INT && *row->initial == '\0' && *value == '\0') {
        return TRP_OK; /* an optional number */
    }
    if (trpi_config_parse_number(row->type, value, &number, &what) != TRP_OK) {
        (void)snprintf(ret_what, what_bytes, "'%s': %s", value, what);
        return TRP_ECONFIG;
    }
    if ((row->min != 0 || row->max != 0) && (number < row->min || number > row->max)) {
        char low[48], high[48];
        bound_format(row->type, row->min, low, sizeof low);
        bound_format(row->type, row->max, high, sizeof high);
        (void)snprintf(ret_what, what_bytes, "%s is out of range: %s to %s", value, low, high);
        return TRP_ECONFIG;
    }
    return TRP_OK;
}

trp_err
trpi_config_value_check(const trpi_config_row *row, const char *value, char *ret_what,
                        size_t what_bytes)
{
    if (strlen(value) > TRPI_CONFIG_TEXT_BYTES_MAX) {
        (void)snprintf(ret_what, what_bytes, "the value is longer than %d bytes",
                       TRPI_CONFIG_TEXT_BYTES_MAX);
        return TRP_ECONFIG;
    }
    if (!row) {
        return TRP_OK; /* below app: any text */
    }
    switch (row->type) {
    case TRPI_CONFIG_TEXT:
    case TRPI_CONFIG_LIST:
        return meaning_check(row, value, ret_what, what_bytes);
    case TRPI_CONFIG_CHOICE:
        if (!choice_holds(row->choices, value)) {
            (void)snprintf(ret_what, what_bytes, "'%s' is not one of %s", value, row->choices);
            return TRP_ECONFIG;
        }
        return TRP_OK;
    case TRPI_CONFIG_INT:
    case TRPI_CONFIG_FLOAT:
    case TRPI_CONFIG_DURATION:
    case TRPI_CONFIG_SIZE:
    case TRPI_CONFIG_BOOL:
        break;
    }
    return number_check(row, value, ret_what, what_bytes);
}

/* ---- making, setting ------------------------------------------------------------------------- */

trp_err
trpi_config_new(trpi_config **ret_config)
{
    trpi_config *config = trpi_alloc(sizeof *config);
    if (!config) {
        return TRP_ENOMEM;
    }
    for (const trpi_config_row *row = trpi_config_rows; row->key; row++) {
        trpi_config_slot *slot = NULL;
        if (strchr(row->key, '*')) {
            continue;
        }
        if (trpi_config_slots_add(&config->slots, row->key, row, &slot) != TRP_OK ||
            trpi_config_slot_origin(slot, TRPI_CONFIG_DEFAULT, "default") != TRP_OK ||
            (row->type != TRPI_CONFIG_LIST &&
             trpi_config_slot_append(slot, row->initial) != TRP_OK)) {
            trpi_config_free(config);
            return TRP_ENOMEM;
        }
    }
    *ret_config = config;
    return TRP_OK;
}

void
trpi_config_free(trpi_config *config)
{
    if (config) {
        trpi_config_slots_clear(&config->slots);
        trpi_free(config);
    }
}

/* I1. Takes the contents of `from`, which stays valid and empty. */
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
    char **values = slot->values, *origin = slot->origin;
    size_t count = slot->count;
    slot->values = from->values;
    slot->count = from->count;
    slot->origin = from->origin;
    slot->layer = from->layer;
    from->values = values;
    from->count = count;
    from->origin = origin;
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

trp_err
trpi_config_put(trpi_config *config, trpi_config_layer layer, const char *key,
                const char *const *values, size_t count, const char *origin,
                trpi_config_error *ret_error)
{
    char what[512], hint[256];
    const trpi_config_row *row = trpi_config_row_find(key);
    if (strlen(key) > TRPI_CONFIG_KEY_BYTES_MAX) {
        return trpi_config_fail(ret_error, "%s: a key is longer than %d bytes", origin,
                                TRPI_CONFIG_KEY_BYTES_MAX);
    }
    if (!row && !trpi_config_key_is_app(key)) {
        return trpi_config_fail(ret_error, "%s: no such key '%s'%s", origin, key,
                                trpi_config_hint(key, hint, sizeof hint));
    }
    if (count > TRPI_CONFIG_LIST_MAX) {
        return trpi_config_fail(ret_error, "%s: %s has more than %d values", origin, key,
                                TRPI_CONFIG_LIST_MAX);
    }
    trpi_assert(count == 1 || !row || row->type == TRPI_CONFIG_LIST);
    for (size_t i = 0; i < count; i++) {
        if (trpi_config_value_check(row, values[i], what, sizeof what) != TRP_OK) {
            return trpi_config_fail(ret_error, "%s: %s: %s", origin, key, what);
        }
    }
    trpi_config_slots one = { NULL, 0, 0 };
    trpi_config_slot *slot = NULL;
    trp_err err = trpi_config_slots_add(&one, key, row, &slot);
    if (err == TRP_OK) {
        err = trpi_config_slot_origin(slot, layer, origin);
    }
    for (size_t i = 0; err == TRP_OK && i < count; i++) {
        err = trpi_config_slot_append(slot, values[i]);
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

/* One text for a key: a list is cut at its commas, blanks around them go. */
static trp_err
text_put(trpi_config *config, trpi_config_layer layer, const char *key, const char *text,
         const char *origin, trpi_config_error *ret_error)
{
    const trpi_config_row *row = trpi_config_row_find(key);
    if (!row || row->type != TRPI_CONFIG_LIST) {
        return trpi_config_put(config, layer, key, &text, 1, origin, ret_error);
    }
    char *copy TRPI_AUTO_FREE = trpi_strdup(text);
    const char *values[TRPI_CONFIG_LIST_MAX + 1];
    size_t count = 0;
    char *rest = copy, *piece = NULL;
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
    if (bytes >= sizeof key) {
        bytes = sizeof key - 1; /* one past the limit, so that put() refuses it */
    }
    memcpy(key, assignment, bytes);
    key[bytes] = '\0';
    return text_put(config, TRPI_CONFIG_FLAG, key, equals + 1, origin, ret_error);
}

/* ---- environment ----------------------------------------------------------------------------- */

/* Does `name` (upper case) begin with the name of a section, so that it can only be meant as a
 * key? */
static bool
env_looks_like_key(const char *name)
{
    static const char *const sections[] = { "ACTOR_", "REMOTE_", "CLUSTER_", "CONTROL_", "LOG_" };
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strncmp(name, sections[i], strlen(sections[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* One letter wrong in a short name, two in a longer one: more is somebody else's variable. */
static bool
env_is_near(const char *name, const char *known)
{
    return trpi_edit_distance(name, known) <= (strlen(name) <= 5 ? 1u : 2u);
}

/* A section that is misspelt, as CLUSTR_GOSSIP_INTERVAL. */
static bool
env_section_is_near(const char *name)
{
    static const char *const sections[] = { "ACTOR", "REMOTE", "CLUSTER", "CONTROL", "LOG" };
    char first[24];
    size_t bytes = strcspn(name, "_");
    if (!name[bytes] || bytes >= sizeof first) {
        return false;
    }
    memcpy(first, name, bytes);
    first[bytes] = '\0';
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (env_is_near(first, sections[i])) {
            return true;
        }
    }
    return false;
}

/* The name without sections, of a node's key or a client's flag, that `name` misspells; NULL:
 * none. It is no error in itself to have variables that belong to neither. */
static const char *
env_word_nearest(const char *name)
{
    static const char *const words[] = { "SYSTEM",  "PLUGINS", "SOCKET",  "OUTPUT",
                                         "WATCH",   "TIMEOUT", "DRY_RUN", "YES",
                                         "NO_WAIT", "QUIET",   "VERBOSE", "COLOR" };
    const char *near = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i]) == 0) {
            return NULL;
        }
        near = env_is_near(name, words[i]) ? words[i] : near;
    }
    return near;
}

static void
env_to_key(const char *name, char separator, char *key, size_t bytes)
{
    size_t count = 0;
    for (; *name && count + 1 < bytes; name++) {
        key[count++] = *name == '_' ? separator : (char)tolower((unsigned char)*name);
    }
    key[count] = '\0';
}

/* Find the key of TROUPE_<name>. Keys that are known (schema, titles, app of the file) are compared
 * through their environment names; a role or an app key that nobody has named yet is made up. */
static bool
env_key_find(const trpi_config *config, const char *name, char *key, size_t bytes)
{
    char env[TRPI_CONFIG_KEY_BYTES_MAX + 16], lower[TRPI_CONFIG_KEY_BYTES_MAX - 40];
    static const char role[] = "CLUSTER_ROLE_", role_end[] = "_MIN_NR_OF_MEMBERS";
    for (size_t i = 0; i < config->slots.count; i++) {
        if (strcmp(trpi_config_env_name(config->slots.slots[i].key, env, sizeof env) + 7, name) ==
            0) {
            (void)snprintf(key, bytes, "%s", config->slots.slots[i].key);
            return true;
        }
    }
    size_t count = strlen(name), ends = sizeof role - 1 + sizeof role_end - 1;
    if (count > ends && strncmp(name, role, sizeof role - 1) == 0 &&
        strcmp(name + count - (sizeof role_end - 1), role_end) == 0) {
        char title[128];
        (void)snprintf(title, sizeof title, "%.*s", (int)(count - ends), name + sizeof role - 1);
        env_to_key(title, '-', lower, sizeof lower);
        (void)snprintf(key, bytes, "cluster.role.%s.min-nr-of-members", lower);
        return true;
    }
    if (strncmp(name, "APP_", 4) == 0 && name[4]) {
        env_to_key(name + 4, '-', lower, sizeof lower);
        (void)snprintf(key, bytes, "app.%s", lower);
        return true;
    }
    return false;
}

/* The nearest key of a variable that is none: by its environment name. */
static const char *
env_nearest(const char *name, char *buffer, size_t bytes)
{
    char dashed[TRPI_CONFIG_KEY_BYTES_MAX + 1], env[TRPI_CONFIG_KEY_BYTES_MAX + 16];
    env_to_key(name, '-', dashed, sizeof dashed);
    const char *section_end = strchr(dashed, '-');
    if (section_end) {
        dashed[section_end - dashed] = '.';
    }
    const char *near = trpi_config_nearest(dashed);
    buffer[0] = '\0';
    if (near && !strchr(near, '*')) {
        (void)snprintf(buffer, bytes, "; did you mean %s?",
                       trpi_config_env_name(near, env, sizeof env));
    }
    return buffer;
}

trp_err
trpi_config_load_env(trpi_config *config, char *const *environment, trpi_config_error *ret_error)
{
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (strncmp(*environment, "TROUPE_", 7) != 0 || !equals) {
            continue;
        }
        char name[TRPI_CONFIG_KEY_BYTES_MAX + 8], key[TRPI_CONFIG_KEY_BYTES_MAX + 16], hint[256];
        size_t bytes = (size_t)(equals - *environment) - 7;
        if (bytes == 0 || bytes >= sizeof name) {
            continue;
        }
        memcpy(name, *environment + 7, bytes);
        name[bytes] = '\0';
        if (!env_key_find(config, name, key, sizeof key)) {
            const char *word = env_word_nearest(name);
            if (word) {
                return trpi_config_fail(
                    ret_error, "environment TROUPE_%s: no such variable; did you mean TROUPE_%s?",
                    name, word);
            }
            if (env_looks_like_key(name) ||
                (env_section_is_near(name) && *env_nearest(name, hint, sizeof hint))) {
                return trpi_config_fail(ret_error, "environment TROUPE_%s: no such key%s", name,
                                        env_nearest(name, hint, sizeof hint));
            }
            continue; /* the client's: TROUPE_SOCKET, TROUPE_TIMEOUT, ... */
        }
        char origin[TRPI_CONFIG_KEY_BYTES_MAX + 32];
        (void)snprintf(origin, sizeof origin, "environment TROUPE_%s", name);
        trp_err err = text_put(config, TRPI_CONFIG_ENV, key, equals + 1, origin, ret_error);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

static const trpi_config_slot *
slot_get(const trpi_config *config, const char *key)
{
    const trpi_config_slot *slot = trpi_config_slots_find(&config->slots, key);
    trpi_assert(slot != NULL);
    trpi_assert(slot->row != NULL);
    return slot;
}

const char *
trpi_config_text(const trpi_config *config, const char *key)
{
    const trpi_config_slot *slot = slot_get(config, key);
    trpi_assert(slot->count == 1);
    return slot->values[0];
}

static double
number_get(const trpi_config *config, const char *key)
{
    const trpi_config_slot *slot = slot_get(config, key);
    double number = -1;
    const char *what = NULL;
    trpi_assert(slot->count == 1);
    if (*slot->values[0] == '\0') {
        return -1;
    }
    trp_err err = trpi_config_parse_number(slot->row->type, slot->values[0], &number, &what);
    trpi_assert(err == TRP_OK); /* I2 */
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
    return slot_get(config, key)->count;
}

const char *
trpi_config_list_at(const trpi_config *config, const char *key, size_t index)
{
    const trpi_config_slot *slot = slot_get(config, key);
    trpi_assert(index < slot->count);
    return slot->values[index];
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
}

bool
trpi_config_find(const trpi_config *config, const char *key, trpi_config_entry *ret_entry)
{
    const trpi_config_slot *slot = trpi_config_slots_find(&config->slots, key);
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
