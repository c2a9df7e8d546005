/* config_check.c - the row of a key, and whether a value is allowed for it.
 *
 * Shape.     A row's "*" stands for a title; what a title may be is checked with the key
 *            (trpi_config_title_check). Before a key may stand the name of a subtree: "myapp1.".
 * Not here.  From text to number: config_value.c.
 * Tests.     tests/unit/node/config_test.c
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "base/config.h"
#include "base/config_store.h"
#include "base/nearest.h"

bool
trpi_config_key_is_app(const char *key)
{
    return strncmp(key, "app.", 4) == 0 && key[4] != '\0';
}

const trpi_config_row *
trpi_config_row_find(const char *key)
{
    size_t count = strlen(key);
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
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

const char *
trpi_config_alias_of(const char *key)
{
    for (const trpi_config_alias *alias = NULL; (alias = trpi_config_alias_next(alias)) != NULL;) {
        if (strcmp(alias->akka, key) == 0) {
            return alias->ours;
        }
    }
    return NULL;
}

bool
trpi_config_word_is_ours(const char *word, size_t bytes)
{
    if (bytes == 3 && memcmp(word, "app", 3) == 0) {
        return true;
    }
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        if (strncmp(row->key, word, bytes) == 0 &&
            (row->key[bytes] == '.' || row->key[bytes] == '\0')) {
            return true;
        }
    }
    return false;
}

size_t
trpi_config_subtree_bytes(const trpi_config_slots *slots, const char *key)
{
    size_t bytes = strcspn(key, ".");
    if (!key[bytes] || trpi_config_word_is_ours(key, bytes)) {
        return 0;
    }
    for (size_t i = 0; i < slots->count; i++) {
        if (strncmp(slots->slots[i].key, key, bytes + 1) == 0) {
            return bytes + 1;
        }
    }
    return 0;
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

/* Return the mistake in the path of a deployment; NULL: none. */
static const char *
deployment_wrong(const char *path)
{
    size_t elements = 0;
    if (*path != '/') {
        return "write the path below /user: \"/parent/child\", \"/service/*\"";
    }
    if (strncmp(path, "/system/", 8) == 0) {
        return "actors below /system are not deployed by configuration";
    }
    while (*path == '/') {
        size_t bytes = strcspn(++path, "/");
        elements++;
        if (bytes == 0) {
            return "an element of the path is empty";
        }
        if (memchr(path, '*', bytes) && bytes > 1) {
            return "'*' stands for a whole element: \"/service/*\"";
        }
        path += bytes;
    }
    return elements > TRPI_CONFIG_DEPLOYMENT_DEPTH_MAX ? "the path is too deep" : NULL;
}

/* Return the mistake in the name of a dispatcher; NULL: none. */
static const char *
dispatcher_wrong(const char *id)
{
    static const char *const fixed[] = { "default",  "system",         "pinned", "blocking",
                                         "affinity", "calling-thread", NULL };
    for (size_t i = 0; fixed[i]; i++) {
        if (strcmp(fixed[i], id) == 0) {
            return "this dispatcher is built in; take another name";
        }
    }
    return word_is_plain(id, "-_.") ? NULL : "letters, digits, '-', '_' and '.' only";
}

/* Return the mistake in the name of a mailbox; NULL: none. */
static const char *
mailbox_wrong(const char *id)
{
    static const char *const fixed[] = { "default-mailbox",       "unbounded",
                                         "single-consumer",       "bounded",
                                         "unbounded-deque",       "bounded-deque",
                                         "control-aware",         "counted",
                                         "bounded-control-aware", NULL };
    for (size_t i = 0; fixed[i]; i++) {
        if (strcmp(fixed[i], id) == 0) {
            return "this mailbox is built in; take another name, or set actor { "
                   "default-mailbox { } }";
        }
    }
    return word_is_plain(id, "-_.") ? NULL : "letters, digits, '-', '_' and '.' only";
}

trp_err
trpi_config_title_check(const char *key, const trpi_config_row *row, char *ret_what,
                        size_t what_bytes)
{
    const char *star = row ? strchr(row->key, '*') : NULL;
    if (!star) {
        return TRP_OK;
    }
    char title[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    size_t before = (size_t)(star - row->key), after = strlen(star + 1);
    (void)snprintf(title, sizeof title, "%.*s", (int)(strlen(key) - before - after), key + before);
    const char *wrong = strncmp(row->key, "deployment.", 11) == 0   ? deployment_wrong(title)
                        : strncmp(row->key, "dispatcher.", 11) == 0 ? dispatcher_wrong(title)
                        : strncmp(row->key, "mailbox.", 8) == 0     ? mailbox_wrong(title)
                        : word_is_plain(title, "-_.")               ? NULL
                                                      : "letters, digits, '-', '_' and '.' only";
    if (wrong) {
        (void)snprintf(ret_what, what_bytes, "%.*s \"%s\": %s", (int)before - 1, row->key, title,
                       wrong);
    }
    return wrong ? TRP_ECONFIG : TRP_OK;
}

const char *
trpi_config_value_fold(const trpi_config_row *row, const char *value, char *buffer, size_t bytes)
{
    size_t count = strlen(value);
    if (!row || !row->choices || row->type == TRPI_CONFIG_TEXT || isdigit((unsigned char)*value) ||
        count >= bytes) {
        return value;
    }
    for (size_t i = 0; i <= count; i++) {
        buffer[i] = (char)tolower((unsigned char)value[i]);
    }
    return buffer;
}

static trp_err
node_check(const char *value, char *ret_what, size_t what_bytes)
{
    trpi_address address;
    const char *hint = NULL, *rest = NULL;
    if (value[0] == '\0' || (trpi_address_parse(value, &address, &rest, &hint) == TRP_OK &&
                             rest[0] == '\0' && address.port != 0)) {
        return TRP_OK;
    }
    (void)snprintf(ret_what, what_bytes, "'%s' is no node: %s", value,
                   hint ? hint : "write troupe.tcp://system@host:port");
    return TRP_ECONFIG;
}

static bool
choice_holds(const char *choices, const char *value)
{
    size_t count = strlen(value);
    for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
        if (strncasecmp(p, value, count) == 0 && (p[count] == '|' || p[count] == '\0')) {
            return true;
        }
    }
    return false;
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

/* Whole numbers are compared: "0.1" is 0.1.0 and 0.1.7, not 0.10.0. */
static bool
version_matches(const char *value)
{
    size_t count = strlen(value);
    return count == 0 || (strncmp(TRP_VERSION, value, count) == 0 &&
                          (TRP_VERSION[count] == '.' || TRP_VERSION[count] == '\0'));
}

/* Return whether value names a role. The role of a router may be empty. */
static bool
names_role(const char *key, const char *value)
{
    static const char *const keys[] = { "deployment.*.cluster.use-role",
                                        "cluster.downing.static-quorum.role",
                                        "cluster.downing.keep-majority.role",
                                        "cluster.downing.keep-oldest.role",
                                        "cluster.downing.lease.role" };
    bool found = strcmp(key, "cluster.roles") == 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !found; i++) {
        found = value[0] != '\0' && strcmp(key, keys[i]) == 0;
    }
    return found;
}

/* Check the conditions of a row that its type cannot express. */
static trp_err
meaning_check(const trpi_config_row *row, const char *value, char *ret_what, size_t what_bytes)
{
    if (strcmp(row->key, "deployment.*.remote") == 0 ||
        strcmp(row->key, "deployment.*.target.nodes") == 0) {
        return node_check(value, ret_what, what_bytes);
    }
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
    if (strcmp(row->key, "version") == 0 && !version_matches(value)) {
        (void)snprintf(ret_what, what_bytes, "written for Troupe %s, this is %s", value,
                       TRP_VERSION);
        return TRP_ECONFIG;
    }
    if (strcmp(row->key, "deployment.*.logic-settings") == 0 &&
        (strchr(value, '=') == NULL || *value == '=')) {
        (void)snprintf(ret_what, what_bytes, "'%s' is no setting: write KEY=VALUE", value);
        return TRP_ECONFIG;
    }
    if (names_role(row->key, value) && (!word_is_plain(value, "-_.") || strlen(value) > 63)) {
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

/* A word other than the usual ones may be the program's own, unless it is close to a usual one. */
static trp_err
word_check(const trpi_config_row *row, const char *value, char *ret_what, size_t what_bytes)
{
    char word[64];
    if (choice_holds(row->choices, value)) {
        return TRP_OK;
    }
    for (const char *p = row->choices; *p; p += *p == '|') {
        size_t count = strcspn(p, "|");
        (void)snprintf(word, sizeof word, "%.*s", (int)count, p);
        if (trpi_edit_distance(word, value) <= (count <= 5 ? 1u : 2u)) {
            (void)snprintf(ret_what, what_bytes, "'%s' is unknown; did you mean '%s'?", value,
                           word);
            return TRP_ECONFIG;
        }
        p += count;
    }
    return TRP_OK;
}

/* The value is none of the row's choices: list them, and name the nearest. */
static trp_err
choice_fail(const trpi_config_row *row, const char *value, char *ret_what, size_t what_bytes)
{
    char words[256], *next = words;
    const char *names[32];
    size_t count = 0;
    (void)snprintf(words, sizeof words, "%s", row->choices);
    while (next && count < sizeof names / sizeof names[0]) {
        names[count++] = strsep(&next, "|");
    }
    const char *near = trpi_nearest(value, names, count);
    (void)snprintf(ret_what, what_bytes, "'%s' is not one of %s%s%s%s", value, row->choices,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return TRP_ECONFIG;
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
    if (row->choices && choice_holds(row->choices, value)) {
        return TRP_OK; /* a word for a number */
    }
    if (trpi_config_parse_number(row->type, value, &number, &what) != TRP_OK) {
        (void)snprintf(ret_what, what_bytes, "'%s': %s%s%s", value, what,
                       row->choices ? ", or one of " : "", row->choices ? row->choices : "");
        return TRP_ECONFIG;
    }
    if (strcmp(row->key, "scheduler.ticks-per-wheel") == 0 &&
        ((uint64_t)number & ((uint64_t)number - 1)) != 0) {
        (void)snprintf(ret_what, what_bytes, "%s is no power of two", value);
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
        if (row->choices) {
            return word_check(row, value, ret_what, what_bytes);
        }
        return meaning_check(row, value, ret_what, what_bytes);
    case TRPI_CONFIG_LIST:
        if (row->choices && !choice_holds(row->choices, value)) {
            return choice_fail(row, value, ret_what, what_bytes);
        }
        return meaning_check(row, value, ret_what, what_bytes);
    case TRPI_CONFIG_CHOICE:
        return choice_holds(row->choices, value) ? TRP_OK
                                                 : choice_fail(row, value, ret_what, what_bytes);
    case TRPI_CONFIG_INT:
    case TRPI_CONFIG_FLOAT:
    case TRPI_CONFIG_DURATION:
    case TRPI_CONFIG_SIZE:
    case TRPI_CONFIG_BOOL:
        break;
    }
    return number_check(row, value, ret_what, what_bytes);
}
