/* config_env.c - TROUPE_* variables as keys of the configuration.
 *
 * Shape.     A variable is compared with the environment names of the keys that are known (table,
 *            titles and app of the file). One that looks like a key and is none is refused; others
 *            belong to the client (TROUPE_SOCKET, TROUPE_TIMEOUT, ...).
 * Tests.     tests/unit/node/config_test.c
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/config_store.h"
#include "base/nearest.h"

/* Return whether `name` (upper case) begins with the name of a section, and so must be a key. */
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

/* One letter wrong in a short name, two in a longer one: with more it is another program's
 * variable. */
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

/* Return the name without sections, of a node's key or a client's flag, that `name` misspells;
 * NULL: none. Variables that belong to neither are no error. */
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
 * through their environment names; a role or an app key that is not known yet is added. */
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
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        if (!strchr(row->key, '*') &&
            strcmp(trpi_config_env_name(row->key, env, sizeof env) + 7, name) == 0) {
            (void)snprintf(key, bytes, "%s", row->key);
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

/* Return the key whose environment name is nearest to a variable that matches none. */
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
        trp_err err =
            trpi_config_put_text(config, TRPI_CONFIG_ENV, key, equals + 1, origin, ret_error);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}
