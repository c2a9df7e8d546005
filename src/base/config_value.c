/* config_value.c - one value of the configuration: from text to number, and the nearest names.
 *
 * Limits.  Durations, sizes and whole numbers are computed in integers, and at most 2^53, for they
 *          are kept as doubles.
 * Tests.   tests/unit/node/config_test.c, tests/fuzz/config_fuzz.c
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/config.h"
#include "base/config_store.h"
#include "base/decimal.h"
#include "base/nearest.h"
#include "base/units.h"

#define NUMBER_MAX 9007199254740992 /* 2^53: whole numbers are exact up to it */

static trp_err
value_refuse(const char **ret_what, const char *what)
{
    *ret_what = what;
    return TRP_ECONFIG;
}

static trp_err
bool_parse(const char *text, double *ret_number, const char **ret_what)
{
    static const char *const yes[] = { "on", "yes", "true" }, *const no[] = { "off", "no",
                                                                              "false" };
    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *ret_number = strcasecmp(text, yes[i]) == 0;
            return TRP_OK;
        }
    }
    return value_refuse(ret_what, "expected on or off (or yes, no, true, false)");
}

trp_err
trpi_config_parse_number(trpi_config_type type, const char *text, double *ret_number,
                         const char **ret_what)
{
    trpi_assert(text != NULL);
    trpi_assert(ret_number != NULL);
    if (type == TRPI_CONFIG_BOOL) {
        return bool_parse(text, ret_number, ret_what);
    }
    if (type == TRPI_CONFIG_DURATION && strcasecmp(text, "off") == 0) {
        *ret_number = 0; /* refused where 0 is refused */
        return TRP_OK;
    }
    trpi_decimal decimal;
    const char *rest = NULL;
    const trpi_unit *u = NULL;
    int64_t whole = 0;
    if (!trpi_decimal_take(text, &decimal, &rest)) {
        return value_refuse(ret_what,
                            type == TRPI_CONFIG_DURATION ? "expected a duration like 500ms, 5s, 2m"
                            : type == TRPI_CONFIG_SIZE   ? "expected a size like 512B, 256KiB, 4MiB"
                            : type == TRPI_CONFIG_FLOAT  ? "expected a number like 8.0"
                                                         : "expected a whole number");
    }
    if (type == TRPI_CONFIG_DURATION && !(u = trpi_unit_find(trpi_units_time, rest))) {
        return value_refuse(ret_what, *rest ? "no such unit of time; use ms, s, m, h or d"
                                            : "a duration needs a unit: ms, s, m, h or d");
    }
    if (type == TRPI_CONFIG_SIZE && !(u = trpi_unit_find(trpi_units_size, rest))) {
        return value_refuse(ret_what, "no such unit of size; use B, KiB or MiB");
    }
    if (!u && *rest != '\0') {
        return value_refuse(ret_what, type == TRPI_CONFIG_FLOAT ? "expected a number like 8.0"
                                                                : "expected a whole number");
    }
    double number = trpi_decimal_f64(&decimal) * (u ? (double)u->factor : 1.0);
    if (number > (double)NUMBER_MAX || number < -(double)NUMBER_MAX) {
        return value_refuse(ret_what, "the number is too large");
    }
    if (type == TRPI_CONFIG_FLOAT) {
        *ret_number = number;
        return TRP_OK;
    }
    if (!trpi_decimal_times(&decimal, u ? u->factor : 1, &whole)) {
        return value_refuse(ret_what, type == TRPI_CONFIG_INT ? "expected a whole number"
                                      : type == TRPI_CONFIG_SIZE
                                          ? "not a whole number of bytes"
                                          : "not a whole number of milliseconds");
    }
    if (whole > NUMBER_MAX || whole < -NUMBER_MAX) { /* 2^53 + 1 */
        return value_refuse(ret_what, "the number is too large");
    }
    *ret_number = (double)whole;
    return TRP_OK;
}

static const char *
leaf_of(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

/* Whole keys are compared, and, so that a right name in a wrong section is found, last elements
 * too. */
const char *
trpi_config_nearest(const char *name)
{
    const char *best = NULL;
    size_t best_distance = 1 + strlen(leaf_of(name)) / 3; /* one edit in three letters */
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        if (strcmp(leaf_of(row->key), name) == 0) {
            return row->key; /* its section alone is missing */
        }
    }
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        size_t whole = trpi_edit_distance(name, row->key);
        if (whole < best_distance || (whole == best_distance && !best)) {
            best = row->key;
            best_distance = whole;
        }
    }
    if (best) {
        return best;
    }
    best_distance = 1 + strlen(leaf_of(name)) / 4;
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        size_t leaf = trpi_edit_distance(leaf_of(name), leaf_of(row->key));
        if (leaf < best_distance) {
            best = row->key;
            best_distance = leaf;
        }
    }
    return best;
}

/* Find the first section of the schema whose dotted name is near. Return its length; 0: none. */
static size_t
section_nearest(const char *name, const char **ret_section)
{
    char section[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    size_t limit = strlen(leaf_of(name)) / 3;
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        for (const char *dot = strchr(row->key, '.'); dot; dot = strchr(dot + 1, '.')) {
            size_t bytes = (size_t)(dot - row->key);
            memcpy(section, row->key, bytes);
            section[bytes] = '\0';
            if (trpi_edit_distance(name, section) <= limit) {
                *ret_section = row->key;
                return bytes;
            }
        }
    }
    return 0;
}

/* Return what to know about a key of Akka's io that is missing here (CONF-11 to -14). NULL: it is
 * no such key. */
static const char *
instead_of_io(const char *name)
{
    static const char workers[] = "leave it out, the workers themselves wait for sockets";
    static const struct {
        const char *akka, *instead;
    } table[] = {
        { "nr-of-selectors", workers },
        { "selector-association-retries", workers },
        { "selector-dispatcher", workers },
        { "select-timeout", workers },
        { "select-interval", workers },
        { "pinned-dispatcher", workers },
        { "direct-buffer-pool-limit", "leave it out, a datagram has memory of its own" },
        { "read-buffer-size", "write io { tcp { direct-buffer-size = 8KiB } }" },
        { "default-backlog", "set the option backlog of trp_tcp_bind()" },
        { "finish-connect-retries", "leave it out, a connect is waited for until its timeout" },
        { "file-io-dispatcher", "write io { tcp { worker-dispatcher = NAME } }" },
        { "direct-buffer-size", "leave it out, a datagram of any size is read whole" },
        { "management-dispatcher", "write io { udp { management-dispatcher = NAME } }" },
    };
    const char *last = strrchr(name, '.');

    for (size_t i = 0; strncmp(name, "io.", 3) == 0 && i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(last + 1, table[i].akka) == 0) {
            return table[i].instead;
        }
    }
    return NULL;
}

/* Return what to write in place of a key of Akka's that is missing here, or has another place or
 * other values (CONF-22, decision 242). NULL: it is no such key. */
static const char *
instead_of(const char *name)
{
    static const struct {
        const char *akka, *instead;
    } table[] = {
        { "cluster.auto-down-unreachable-after",
          "write cluster { downing { active-strategy = auto-down-after  auto-down-after = 5s } }" },
        { "cluster.split-brain-resolver", "write cluster { downing { ... } }" },
        { "cluster.downing-provider-class",
          "write cluster { downing { active-strategy = keep-majority } }" },
        { "cluster.failure-detector.heartbeat-request",
          "write cluster { failure-detector { expected-response-after = 3s } }" },
        { "cluster.periodic-tasks-initial-delay",
          "leave it out, gossip begins an interval after the join" },
        { "cluster.jmx", "leave it out, a node has a control socket for troupe; a program that "
                         "embeds the library gets one by cluster { control-socket = on }" },
        { "cluster.use-dispatcher", "leave it out, the cluster has a thread of its own" },
        { "cluster.scheduler", "leave it out, the system's timer is precise enough" },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        size_t count = strlen(table[i].akka);
        if (strncmp(name, table[i].akka, count) == 0 &&
            (name[count] == '\0' || name[count] == '.')) {
            return table[i].instead;
        }
    }
    return instead_of_io(name);
}

const char *
trpi_config_hint(const char *name, char *buffer, size_t bytes)
{
    const char *section = NULL;
    const char *instead = instead_of(name);
    size_t section_bytes = instead ? 0 : section_nearest(name, &section);
    const char *near = section_bytes ? NULL : trpi_config_nearest(name);
    buffer[0] = '\0';
    if (instead) {
        (void)snprintf(buffer, bytes, "; %s", instead);
    } else if (section_bytes) {
        (void)snprintf(buffer, bytes, "; did you mean the section '%.*s'?", (int)section_bytes,
                       section);
    } else if (near) {
        (void)snprintf(buffer, bytes, "; did you mean '%s'?", near);
    }
    return buffer;
}

char *
trpi_config_env_name(const char *key, char *buffer, size_t bytes)
{
    trpi_assert(bytes > 8);
    memcpy(buffer, "TROUPE_", 7);
    size_t count = 7;
    for (; *key && count + 1 < bytes; key++) {
        buffer[count++] = *key == '.' || *key == '-' ? '_' : (char)toupper((unsigned char)*key);
    }
    buffer[count] = '\0';
    return buffer;
}
