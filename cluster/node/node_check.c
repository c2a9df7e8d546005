/* node_check.c - checks the keys of the configuration against each other: keys that are valid alone
 * may contradict each other.
 *
 * Why.     A node refuses to start with them, and `troupe config check` reports them before; both
 *          call this file.
 * Must hold.
 *   node-check-I1  A name that a plugin or the program may still register (a dispatcher, a mailbox,
 *       a router's logic) is a note of `config check`, never an error.
 * Tests.   tests/unit/node/node_options_test.c, tests/unit/node/node_test.c
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <troupe/lease.h>

#include "base/address.h"
#include "base/nearest.h"
#include "cluster/cluster.h"
#include "cluster/node/cookie_file.h"
#include "cluster/node/node_management.h"
#include "cluster/node/node_options.h"
#include "cluster/node/otlp.h"
#include "cluster/node/seed_dns.h"
#include "pattern/pattern.h"

#define NOTICED_MS 7000 /* a crash, beyond acceptable-heartbeat-pause; gossip included */
#define NAMES_MAX 64    /* candidates for "did you mean"; more are not needed */

/* "my.conf:7: remote.port: ..." */
static trp_err
key_refuse(const trpi_config *config, trpi_config_error *ret_error, const char *key,
           const char *format, ...)
{
    trpi_config_entry entry;
    va_list list;
    size_t at = 0;
    if (trpi_config_find(config, key, &entry) && entry.layer != TRPI_CONFIG_DEFAULT) {
        at = (size_t)snprintf(ret_error->text, sizeof ret_error->text, "%.300s: ", entry.origin);
    }
    at += (size_t)snprintf(ret_error->text + at, sizeof ret_error->text - at, "%.200s: ", key);
    va_start(list, format);
    if (at < sizeof ret_error->text) {
        (void)vsnprintf(ret_error->text + at, sizeof ret_error->text - at, format, list);
    }
    va_end(list);
    return TRP_ECONFIG;
}

/* ---- a lower bound and its upper one --------------------------------------------------------- */

static trp_err
bounds_check(const trpi_config *config, const char *low, const char *high, const char *why,
             trpi_config_error *ret_error)
{
    trpi_config_entry first, second;
    const char *what;
    double lower, upper;
    if (!trpi_config_find(config, low, &first) || !trpi_config_find(config, high, &second) ||
        trpi_config_parse_number(first.type, first.values[0], &lower, &what) != TRP_OK ||
        trpi_config_parse_number(second.type, second.values[0], &upper, &what) != TRP_OK ||
        lower <= upper) {
        return TRP_OK;
    }
    return key_refuse(config, ret_error, first.layer != TRPI_CONFIG_DEFAULT ? low : high,
                      "%s = %s is more than %s = %s%s; lower the one or raise the other", low,
                      first.values[0], high, second.values[0], why);
}

/* Check prefix title suffix_low against prefix title suffix_high in each section with a title. */
static trp_err
titled_check(const trpi_config *config, const char *prefix, const char *low, const char *high,
             trpi_config_error *ret_error)
{
    trp_err err = TRP_OK;
    for (size_t i = 0; i < trpi_config_count(config) && err == TRP_OK; i++) {
        trpi_config_entry entry;
        trpi_config_at(config, i, &entry);
        size_t bytes = strlen(entry.key);
        const char *words[] = { low, high };
        for (size_t k = 0; k < 2 && err == TRP_OK; k++) {
            size_t end = strlen(words[k]);
            if (strncmp(entry.key, prefix, strlen(prefix)) == 0 && bytes > end &&
                strcmp(entry.key + bytes - end, words[k]) == 0) {
                char first[TRPI_CONFIG_KEY_BYTES_MAX + 1], second[sizeof first];
                (void)snprintf(first, sizeof first, "%.*s%s", (int)(bytes - end), entry.key, low);
                (void)snprintf(second, sizeof second, "%.*s%s", (int)(bytes - end), entry.key,
                               high);
                err = bounds_check(config, first, second, "", ret_error);
            }
        }
    }
    return err;
}

static trp_err
numbers_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const struct {
        const char *low, *high, *why;
    } bounds[] = {
        { "remote.retry-backoff-min", "remote.retry-backoff-max", "" },
        { "remote.maximum-frame-size", "remote.lane-buffer-size",
          ": no message of that size would fit" },
        { "remote.maximum-frame-size", "remote.large-lane-buffer-size",
          ": no message of that size would fit" },
        { "remote.maximum-frame-size", "remote.receiver-limit",
          ": no message of that size would fit" },
        { "remote.receiver-limit", "remote.receivers-limit", ": all are more than one" },
        { "remote.resend-interval", "remote.give-up-system-message-after",
          ": nothing would be sent again" },
    };
    trp_err err = TRP_OK;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0] && err == TRP_OK; i++) {
        err = bounds_check(config, bounds[i].low, bounds[i].high, bounds[i].why, ret_error);
    }
    if (err == TRP_OK) {
        err = titled_check(config, "dispatcher.", ".fork-join-executor.parallelism-min",
                           ".fork-join-executor.parallelism-max", ret_error);
    }
    return err != TRP_OK ? err
                         : titled_check(config, "deployment.", ".resizer.lower-bound",
                                        ".resizer.upper-bound", ret_error);
}

/* ---- who may talk to this node --------------------------------------------------------------- */

static trp_err
security_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char *const files[] = { "remote.tls.ca", "remote.tls.cert", "remote.tls.key",
                                         "remote.tls.crl" };
    trpi_node_secrets secrets;
    trp_err err = trpi_node_secrets_load(config, TRPI_SECRETS_KEYS, &secrets, ret_error);
    explicit_bzero(&secrets, sizeof secrets);
    if (err != TRP_OK) {
        return err;
    }
    if (strcmp(trpi_config_text(config, "remote.transport"), "tls") != 0) {
        return TRP_OK;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *file = trpi_config_text(config, files[i]);
        if (*file == '\0' && i < 3) {
            return key_refuse(config, ret_error, "remote.transport",
                              "TLS needs the files remote.tls.ca, .cert and .key, and %s is empty; "
                              "`troupe cert` makes them",
                              files[i]);
        }
        if (*file != '\0' && access(file, R_OK) != 0) {
            return key_refuse(config, ret_error, files[i], "%s: %s", file, strerror(errno));
        }
    }
    return TRP_OK;
}

/* ---- other nodes ----------------------------------------------------------------------------- */

static const char *
own_protocol(const trpi_config *config)
{
    bool tls = strcmp(trpi_config_text(config, "remote.transport"), "tls") == 0;
    if (trpi_config_bool(config, "remote.test-adapters") &&
        trpi_config_bool(config, "remote.adapters-in-address")) {
        return tls ? "troupe." TRPI_FAULT_SCHEMES "tls" : "troupe." TRPI_FAULT_SCHEMES "tcp";
    }
    return tls ? "troupe.tls" : "troupe.tcp";
}

/* false: its port is not chosen yet, or remoting will refuse its host. */
static bool
own_address(const trpi_config *config, trpi_address *ret_address)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    const char *host = trpi_config_text(config, "remote.hostname");
    int bytes = snprintf(text, sizeof text, strchr(host, ':') ? "%s://%s@[%s]:%d" : "%s://%s@%s:%d",
                         own_protocol(config), trpi_config_text(config, "system"), host,
                         (int)trpi_config_int(config, "remote.port"));
    return bytes > 0 && (size_t)bytes < sizeof text &&
           trpi_address_parse(text, ret_address, NULL, NULL) == TRP_OK;
}

/* Can the node at this key's address be a member of this cluster? */
static trp_err
member_check(const trpi_config *config, const char *key, const char *text,
             trpi_address *ret_address, trpi_config_error *ret_error)
{
    const char *system = trpi_config_text(config, "system"), *hint = "";
    const char *protocol = own_protocol(config);
    if (trpi_address_parse(text, ret_address, NULL, &hint) != TRP_OK) {
        return key_refuse(config, ret_error, key, "%s: %s", text, hint);
    }
    if (strcmp(ret_address->system, system) != 0 || strcmp(ret_address->protocol, protocol) != 0) {
        return key_refuse(
            config, ret_error, key,
            "%s: this node is %s://%s (--system); members have the same system name and "
            "protocol",
            text, protocol, system);
    }
    return TRP_OK;
}

/* A forgotten --host: this node's address is on loopback, a seed node's is not, or the reverse. */
static trp_err
loopback_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char seeds[] = "cluster.seed-nodes";
    const char *host = trpi_config_text(config, "remote.hostname");
    trpi_address address;
    for (size_t i = 0; i < trpi_config_list_count(config, seeds); i++) {
        const char *seed = trpi_config_list_at(config, seeds, i);
        if (strcmp(seed, "self") != 0 && trpi_address_parse(seed, &address, NULL, NULL) == TRP_OK &&
            trpi_host_is_loopback(address.host) != trpi_host_is_loopback(host)) {
            return key_refuse(config, ret_error, "remote.hostname",
                              "%.100s, and the seed node is %.300s: " TRPI_LOOPBACK_HELP, host,
                              seed);
        }
    }
    return TRP_OK;
}

static trp_err
members_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char seeds[] = "cluster.seed-nodes";
    static const char referee[] = "cluster.downing.keep-referee.address";
    size_t count = trpi_config_list_count(config, seeds);
    const char *text = trpi_config_text(config, referee);
    trpi_address address, own;
    bool only_self = count > 0, own_known = own_address(config, &own);
    trp_err err = TRP_OK;
    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        const char *seed = trpi_config_list_at(config, seeds, i);
        if (strcmp(seed, "self") != 0) {
            err = member_check(config, seeds, seed, &address, ret_error);
            only_self =
                only_self && err == TRP_OK && own_known && trpi_address_equal(&address, &own);
        }
    }
    if (err == TRP_OK) {
        err = loopback_check(config, ret_error);
    }
    if (err == TRP_OK && only_self && !trpi_config_bool(config, "cluster.may-create-cluster")) {
        return key_refuse(config, ret_error, seeds,
                          "it names only this node, and cluster.may-create-cluster is off, so this "
                          "node could never join; name another seed node, or set that key to on");
    }
    if (err == TRP_OK && *text != '\0') {
        err = member_check(config, referee, text, &address, ret_error);
    } else if (err == TRP_OK && strcmp(trpi_config_text(config, "cluster.downing.active-strategy"),
                                       "keep-referee") == 0) {
        return key_refuse(config, ret_error, "cluster.downing.active-strategy",
                          "keep-referee needs %s, the node whose side stays, as in "
                          "troupe.tcp://demo@10.0.0.1:2552",
                          referee);
    }
    return err;
}

static trp_err
seed_dns_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char key[] = "cluster.seed-dns.name";
    const char *name = trpi_config_text(config, key);
    if (*name == '\0') {
        return TRP_OK;
    }
    if (!trpi_seed_dns_is_built()) {
        return key_refuse(
            config, ret_error, key,
            "this build has no c-ares; apt-get install libc-ares-dev, configure again");
    }
    if (trpi_config_list_count(config, "cluster.seed-nodes") > 0) {
        return key_refuse(config, ret_error, key,
                          "cluster.seed-nodes is given, too; leave one of them out");
    }
    if (strchr(name, '/') != NULL || strlen(name) > TRPI_SEED_DNS_NAME_BYTES_MAX) {
        return key_refuse(config, ret_error, key,
                          "'%.64s' is no name; write seeds.example.org, or "
                          "_troupe._tcp.example.org for SRV records",
                          name);
    }
    return TRP_OK;
}

static trp_err
auto_down_check(const trpi_config *config, trpi_config_error *ret_error)
{
    const char *strategy = trpi_config_text(config, "cluster.downing.active-strategy");
    return !trpi_config_bool(config, "cluster.auto-down") ||
                   strcmp(strategy, "auto-down-after") == 0
               ? TRP_OK
               : key_refuse(
                     config, ret_error, "cluster.auto-down",
                     "it is on, and cluster.downing.active-strategy is %s; leave one of them "
                     "out",
                     strategy);
}

/* A name that is cut short could be that of another cluster's lease. */
static trp_err
lease_name_check(const trpi_config *config, trpi_config_error *ret_error)
{
    static const char key[] = "cluster.downing.lease.name";
    return strlen(trpi_config_text(config, key)) <= TRP_LEASE_NAME_BYTES_MAX
               ? TRP_OK
               : key_refuse(config, ret_error, key, "longer than %d bytes",
                            TRP_LEASE_NAME_BYTES_MAX);
}

trp_err
trpi_node_config_check(const trpi_config *config, trpi_config_error *ret_error)
{
    trp_err err = numbers_check(config, ret_error);
    if (err == TRP_OK) {
        err = security_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = trpi_shutdown_config_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = trpi_router_config_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = seed_dns_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = lease_name_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = auto_down_check(config, ret_error);
    }
    if (err == TRP_OK) {
        err = trpi_node_management_keys(config, ret_error);
    }
    if (err == TRP_OK) {
        err = trpi_otlp_check(config, ret_error);
    }
    return err != TRP_OK ? err : members_check(config, ret_error);
}

/* ---- names that nothing here defines ----------------------------------------------------------
 */

/* Is `section "id" { }` defined here? Collect the titles of that section for a hint. */
static bool
is_defined(const trpi_config *config, const char *section, const char *id,
           char names[NAMES_MAX][64], const char *near[NAMES_MAX], size_t *ret_count)
{
    size_t before = strlen(section) + 1, id_bytes = strlen(id);
    for (size_t i = 0; i < trpi_config_count(config); i++) {
        trpi_config_entry entry;
        trpi_config_at(config, i, &entry);
        const char *title = entry.key + before;
        if (entry.row == NULL || strncmp(entry.row->key, section, before - 1) != 0 ||
            strncmp(entry.row->key + before - 1, ".*", 2) != 0) {
            continue;
        }
        size_t bytes = strlen(entry.key) - before - strlen(entry.row->key + before + 1);
        if (bytes == id_bytes && memcmp(title, id, bytes) == 0) {
            return true;
        }
        if (*ret_count < NAMES_MAX && bytes < sizeof names[0]) {
            memcpy(names[*ret_count], title, bytes);
            names[*ret_count][bytes] = '\0';
            near[*ret_count] = names[*ret_count];
            ++*ret_count;
        }
    }
    return false;
}

static bool
is_built_in(const char *words, const char *id)
{
    size_t bytes = strlen(id);
    for (const char *p = words; *p; p += *p == '|') {
        size_t count = strcspn(p, "|");
        if (count == bytes && memcmp(p, id, bytes) == 0) {
            return true;
        }
        p += count;
    }
    return false;
}

/* "-pool" and "-group" may stand behind the name of a logic. */
static bool
is_built_in_logic(const char *words, const char *id)
{
    static const char *const endings[] = { "", "-pool", "-group" };
    char word[64];
    bool found = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && !found; i++) {
        size_t bytes = strlen(id), end = strlen(endings[i]);
        if (bytes > end && bytes - end < sizeof word && strcmp(id + bytes - end, endings[i]) == 0) {
            (void)snprintf(word, sizeof word, "%.*s", (int)(bytes - end), id);
            found = is_built_in(words, word);
        }
    }
    return found;
}

/* A node that is told to leave just after a crash waits until the crashed one is marked Down:
 * detection, stable-after without a change, and half of that again when members see it late. */
uint64_t
trpi_node_leave_need_ms(const trpi_config *config)
{
    const char *strategy = trpi_config_text(config, "cluster.downing.active-strategy");
    bool by_time = strcmp(strategy, "auto-down-after") == 0;
    int64_t limit_ms = trpi_config_int(config, by_time ? "cluster.downing.auto-down-after"
                                                       : "cluster.downing.stable-after");
    int64_t pause_ms =
        trpi_config_int(config, "cluster.failure-detector.acceptable-heartbeat-pause");
    int64_t need_ms = limit_ms + (by_time ? 0 : limit_ms / 2) + pause_ms + NOTICED_MS;
    return strcmp(strategy, "manual") == 0 ? 0 : (uint64_t)need_ms;
}

static void
leave_timeout_note(const trpi_config *config, FILE *out)
{
    static const char key[] = "cluster.leave-timeout";
    const char *strategy = trpi_config_text(config, "cluster.downing.active-strategy");
    const char *limit = strcmp(strategy, "auto-down-after") == 0 ? "cluster.downing.auto-down-after"
                                                                 : "cluster.downing.stable-after";
    int64_t leave_ms = trpi_config_int(config, key);
    int64_t need_ms = (int64_t)trpi_node_leave_need_ms(config);
    if (leave_ms < need_ms) {
        (void)fprintf(out,
                      "warning: %s = %s and %s = %s: a node that is told to leave when another one "
                      "has just crashed gives up before %s decides, and counts as a second crash; "
                      "make %s %u s at least\n",
                      key, trpi_config_text(config, key), limit, trpi_config_text(config, limit),
                      strategy, key, (unsigned)((need_ms + 999) / 1000));
    }
}

/* The owner of the lease that leaves after a partition stays Exiting as long as it keeps the lease:
 * when it ends before, the other side may acquire it. */
static void
lease_leave_note(const trpi_config *config, FILE *out)
{
    static const char key[] = "cluster.leave-timeout";
    static const struct {
        const char *key;
        size_t at;
    } times[] = {
        { "cluster.downing.stable-after", offsetof(trpi_downing_options, stable_after_ms) },
        { "cluster.downing.down-all-when-unstable",
          offsetof(trpi_downing_options, unstable_after_ms) },
        { "cluster.downing.lease.acquire-lease-delay-for-minority",
          offsetof(trpi_downing_options, lease_minority_delay_ms) },
        { "cluster.downing.lease.release-after",
          offsetof(trpi_downing_options, lease_release_after_ms) },
        { "cluster.downing.lease.operation-timeout",
          offsetof(trpi_downing_options, lease_timeout_ms) },
    };
    trpi_downing_options options;
    memset(&options, 0, sizeof options);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        *(uint32_t *)(void *)((char *)&options + times[i].at) =
            (uint32_t)trpi_config_int(config, times[i].key);
    }
    uint64_t need_ms = trpi_downing_lease_hold_ms(&options);
    if (strcmp(trpi_config_text(config, "cluster.downing.active-strategy"), "lease") == 0 &&
        (uint64_t)trpi_config_int(config, key) < need_ms) {
        (void)fprintf(out,
                      "warning: %s = %s: a node that owns the lease and is told to leave after a "
                      "partition keeps the lease for up to %u s; it gives up before, ends, and the "
                      "other side may acquire the lease; make %s %u s at least, or leave so long "
                      "after the last partition\n",
                      key, trpi_config_text(config, key), (unsigned)((need_ms + 999) / 1000), key,
                      (unsigned)((need_ms + 999) / 1000));
    }
}

/* Singletons and sharding do not start with times that let two nodes run one at once. */
static void
exclusive_note(const trpi_config *config, FILE *out)
{
    char why[TRPI_EXCLUSIVE_WHY_BYTES];
    int64_t stable_ms = trpi_config_int(config, "cluster.downing.stable-after");
    int64_t pause_ms =
        trpi_config_int(config, "cluster.failure-detector.acceptable-heartbeat-pause");
    int64_t interval_ms = trpi_config_int(config, "cluster.failure-detector.heartbeat-interval");
    if (trpi_exclusive_check((uint32_t)stable_ms, (uint32_t)pause_ms, (uint32_t)interval_ms, why,
                             sizeof why) != TRP_OK) {
        (void)fprintf(out, "note: singletons and sharding will not start: %s\n", why);
    }
}

const char *
trpi_node_config_idle(const trpi_config_entry *entry)
{
    static const struct {
        const char *key, *why;
    } idle[] = {
        { "cluster.unreachable-nodes-reaper-interval",
          "silence is looked for four times a heartbeat-interval" },
        { "cluster.failure-detector.nr-of-end-heartbeats",
          "each heartbeat is a request that is answered" },
    };
    for (size_t i = 0; entry->layer != TRPI_CONFIG_DEFAULT && i < sizeof idle / sizeof idle[0];
         i++) {
        size_t bytes = strlen(idle[i].key);
        if (strncmp(entry->key, idle[i].key, bytes) == 0 &&
            (idle[i].key[bytes - 1] == '.' || entry->key[bytes] == '\0')) {
            return idle[i].why;
        }
    }
    if (strcmp(entry->key, "cluster.auto-down") == 0 && entry->layer != TRPI_CONFIG_DEFAULT &&
        strcmp(entry->values[0], "off") == 0) {
        return "cluster.downing.active-strategy decides; manual is what off was";
    }
    return NULL;
}

void
trpi_node_config_notes(const trpi_config *config, FILE *out)
{
    static const struct {
        const char *row, *section, *built_in;
    } uses[] = {
        { "deployment.*.dispatcher", "dispatcher",
          "default|system|pinned|blocking|affinity|calling-thread" },
        { "deployment.*.mailbox", "mailbox",
          "default-mailbox|unbounded|single-consumer|bounded|unbounded-deque|bounded-deque|"
          "control-aware|counted|bounded-control-aware" },
        { "dispatcher.*.mailbox-type", "mailbox",
          "default-mailbox|unbounded|single-consumer|bounded|unbounded-deque|bounded-deque|"
          "control-aware|counted|bounded-control-aware" },
    };
    char why[TRPI_COOKIE_FILE_WHY_BYTES];
    leave_timeout_note(config, out);
    lease_leave_note(config, out);
    exclusive_note(config, out);
    if (trpi_node_secret_stands_open(config, why)) {
        (void)fprintf(out, "note: %s\n", why);
    }
    for (size_t i = 0; i < trpi_config_count(config); i++) {
        trpi_config_entry entry;
        trpi_config_at(config, i, &entry);
        const char *idle = trpi_node_config_idle(&entry);
        if (idle != NULL) {
            (void)fprintf(out, "note: %s: %s has no effect: %s\n", entry.origin, entry.key, idle);
        }
        if (entry.row != NULL && strcmp(entry.row->key, "deployment.*.router") == 0 &&
            !is_built_in_logic(entry.row->choices, entry.values[0])) {
            (void)fprintf(out,
                          "note: %s: %s: no routing logic is called \"%s\" here; see that a plugin "
                          "registers it\n",
                          entry.origin, entry.key, entry.values[0]);
        }
        for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++) {
            char names[NAMES_MAX][64];
            const char *near[NAMES_MAX];
            size_t count = 0;
            if (entry.row == NULL || strcmp(entry.row->key, uses[k].row) != 0 ||
                entry.values[0][0] == '\0' || is_built_in(uses[k].built_in, entry.values[0]) ||
                is_defined(config, uses[k].section, entry.values[0], names, near, &count)) {
                continue;
            }
            const char *nearest = trpi_nearest(entry.values[0], near, count);
            (void)fprintf(out,
                          "note: %s: %s: no %s \"%s\" stands here; define it, or see that a plugin "
                          "does%s%s%s\n",
                          entry.origin, entry.key, uses[k].section, entry.values[0],
                          nearest ? "; did you mean '" : "", nearest ? nearest : "",
                          nearest ? "'?" : "");
        }
    }
}
