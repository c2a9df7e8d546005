/* settings_dispatch.c - register the mailboxes and dispatchers of the configuration.
 *
 * Why.     Spawn options and sections name both by id, so they are registered before the first
 *          actor is spawned: mailboxes first, then the requirements, then dispatchers, which name
 *          mailboxes.
 * Tests.   tests/unit/actor/settings_test.c, switches_test.c
 * Sources. MBOX-8, -9, -13, DISP-2, -8.
 */
#include "actor/settings/settings.h"
#include "actor/settings/options.h"

#include <stdio.h>
#include <string.h>

#include <troupe/dispatcher.h>
#include <troupe/mailbox.h>

#include "actor/log/log.h"
#include "actor/kernel/system.h"
#include "base/config.h"

bool
trpi_setting_title(const trpi_config_entry *entry, const char *prefix, const char **ret_title,
                   size_t *ret_bytes)
{
    const trpi_config_row *row = entry->row;
    size_t bytes = strlen(prefix);
    if (row == NULL || strncmp(row->key, prefix, bytes) != 0 ||
        strncmp(entry->key, prefix, bytes) != 0) {
        return false;
    }
    *ret_title = entry->key + bytes;
    *ret_bytes = strlen(*ret_title) - strlen(strchr(row->key, '*') + 1);
    return true;
}

const char *
trpi_setting_text_or_null(const char *text)
{
    return text != NULL && *text != 0 ? text : NULL;
}

/* ---- mailboxes ------------------------------------------------------------------------------- */

/* The words of the configuration for the properties that a mailbox may have. */
static const struct {
    const char *word;
    uint32_t bit;
} requirements[] = {
    { "unbounded", TRP_MAILBOX_UNBOUNDED }, { "bounded", TRP_MAILBOX_BOUNDED },
    { "deque", TRP_MAILBOX_DEQUE },         { "multi-consumer", TRP_MAILBOX_MULTI_CONSUMER },
    { "priority", TRP_MAILBOX_PRIORITY },   { "stable", TRP_MAILBOX_STABLE },
    { "durable", TRP_MAILBOX_DURABLE },     { "control-aware", TRP_MAILBOX_CONTROL_AWARE },
    { "counted", TRP_MAILBOX_COUNTED },
};
#define REQUIREMENTS (sizeof requirements / sizeof requirements[0])

/* Read a list of words as bits; config_check.c has refused all other words. */
uint32_t
trpi_settings_requirement(const trp_config *config, const char *key)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < trpi_config_list_count(config, key); i++) {
        for (size_t k = 0; k < REQUIREMENTS; k++) {
            if (strcmp(trpi_config_list_at(config, key, i), requirements[k].word) == 0) {
                bits |= requirements[k].bit;
            }
        }
    }
    return bits;
}

void
trpi_settings_standard_dispatcher(const trp_config *config, trp_dispatcher_options *options)
{
    options->throughput_deadline_ms =
        trpi_setting_pick(config, "actor.default-dispatcher.throughput-deadline-time", 0);
    options->mailbox_requirement =
        trpi_settings_requirement(config, "actor.default-dispatcher.mailbox-requirement");
}

/* Register the section below prefix, "mailbox.ID" or "actor.default-mailbox", under an id. */
static trp_err
mailbox_register(trp_system *system, const trp_config *config, const char *prefix, const char *id)
{
    static const struct {
        const char *type;
        trp_mailbox_kind kind;
    } kinds[] = { { "unbounded", TRP_MAILBOX_KIND_UNBOUNDED },
                  { "bounded", TRP_MAILBOX_KIND_BOUNDED },
                  { "control-aware", TRP_MAILBOX_KIND_CONTROL_AWARE },
                  { "bounded-control-aware", TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE },
                  { "counted", TRP_MAILBOX_KIND_COUNTED },
                  { "peek", TRP_MAILBOX_KIND_PEEK } };
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    (void)snprintf(full, sizeof full, "%s.mailbox-type", prefix);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(trpi_config_text(config, full), kinds[i].type) == 0) {
            options.kind = (uint32_t)kinds[i].kind;
        }
    }
    bool is_bounded = options.kind == TRP_MAILBOX_KIND_BOUNDED ||
                      options.kind == TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE;
    if (is_bounded) {
        (void)snprintf(full, sizeof full, "%s.mailbox-capacity", prefix);
        options.capacity = trpi_setting_pick(config, full, 0);
        (void)snprintf(full, sizeof full, "%s.mailbox-push-timeout-time", prefix);
        int64_t wait_ms = trpi_config_int(config, full);
        options.push_timeout_ms = wait_ms == 0  ? TRP_OFF
                                  : wait_ms < 0 ? TRP_FOREVER
                                                : (uint32_t)wait_ms;
        (void)snprintf(full, sizeof full, "%s.overflow", prefix);
        options.overflow = strcmp(trpi_config_text(config, full), "notify") == 0
                               ? TRP_MAILBOX_NOTIFY
                               : TRP_MAILBOX_DROP;
    }
    if (options.kind == TRP_MAILBOX_KIND_PEEK) { /* GAP-09 */
        (void)snprintf(full, sizeof full, "%s.max-tries", prefix);
        options.max_retries = trpi_setting_pick(config, full, 0);
        (void)snprintf(full, sizeof full, "%s.max-retries", prefix);
        options.max_retries = trpi_setting_pick(config, full, options.max_retries);
    }
    return trp_mailbox_register(system, id, &options);
}

/* MBOX-8: actor.mailbox.requirements { bounded = my-mailbox } */
static trp_err
requirements_serve(trp_system *system, const trp_config *config)
{
    for (size_t i = 0; i < REQUIREMENTS; i++) {
        char key[TRPI_CONFIG_KEY_BYTES_MAX + 1];
        (void)snprintf(key, sizeof key, "actor.mailbox.requirements.%s", requirements[i].word);
        const char *id = trpi_setting_text_or_null(trpi_config_text(config, key));
        if (id == NULL || !trpi_config_is_set(config, key)) {
            continue;
        }
        trp_err err = trp_mailbox_require(system, requirements[i].bit, id);
        trpi_config_entry entry;
        if (err != TRP_OK && trpi_config_find(config, key, &entry)) {
            trpi_log_direct(system, TRP_LOG_ERROR, "config",
                            "%s: %s: no mailbox \"%s\", or it is not %s", entry.origin, key, id,
                            requirements[i].word);
            return TRP_ECONFIG;
        }
    }
    return TRP_OK;
}

trp_err
trpi_settings_mailboxes(trp_system *system)
{
    const trp_config *config = trpi_system_config(system);
    trp_err err = TRP_OK;
    if (trpi_config_is_set(config, "actor.default-mailbox.mailbox-type")) {
        err = mailbox_register(system, config, "actor.default-mailbox", "default-mailbox");
    }
    for (size_t i = 0; err == TRP_OK && config != NULL && i < trpi_config_count(config); i++) {
        char id[TRPI_CONFIG_KEY_BYTES_MAX + 1], name[TRPI_CONFIG_KEY_BYTES_MAX + 1];
        trpi_config_entry entry;
        trp_mailbox_info info = { .size = sizeof info };
        const char *title = NULL;
        size_t bytes = 0;
        trpi_config_at(config, i, &entry);
        if (!trpi_setting_title(&entry, "mailbox.", &title, &bytes)) {
            continue;
        }
        (void)snprintf(id, sizeof id, "%.*s", (int)bytes, title);
        (void)snprintf(name, sizeof name, "%.*s", (int)(title + bytes - entry.key), entry.key);
        /* else: registered at another key of the section */
        if (trp_mailbox_find(system, id, &info) != TRP_OK) {
            err = mailbox_register(system, config, name, id);
        }
        if (err != TRP_OK) {
            trpi_log_direct(system, TRP_LOG_ERROR, "config", "%s: mailbox \"%s\" is refused: %s",
                            entry.origin, id, trp_strerror(err));
        }
    }
    return err == TRP_OK       ? requirements_serve(system, config)
           : err == TRP_ENOMEM ? err
                               : TRP_ECONFIG;
}

/* ---- dispatchers ----------------------------------------------------------------------------- */

static uint32_t
dispatcher_kind_of(const char *type)
{
    static const struct {
        const char *type;
        trp_dispatcher_kind kind;
    } kinds[] = {
        { "pinned", TRP_DISPATCHER_PINNED },
        { "pinneddispatcher", TRP_DISPATCHER_PINNED },
        { "blocking", TRP_DISPATCHER_BLOCKING },
        { "affinity", TRP_DISPATCHER_AFFINITY },
        { "calling-thread", TRP_DISPATCHER_CALLING },
        { "balancing", TRP_DISPATCHER_BALANCING },
        { "balancingdispatcher", TRP_DISPATCHER_BALANCING },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) == 0) {
            return (uint32_t)kinds[i].kind;
        }
    }
    return TRP_DISPATCHER_POOL;
}

/* Read a key of the section dispatcher "id" { }; NULL: not set. */
static const char *
dispatcher_text(const trp_config *config, const char *id, const char *key, char *full)
{
    (void)snprintf(full, TRPI_CONFIG_KEY_BYTES_MAX + 1, "dispatcher.%s.%s", id, key);
    return trpi_config_is_set(config, full) ? trpi_config_text(config, full) : NULL;
}

static uint32_t
dispatcher_number(const trp_config *config, const char *id, const char *key)
{
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    return dispatcher_text(config, id, key, full) != NULL ? trpi_setting_pick(config, full, 0) : 0;
}

/* Register one; zero is the default, which trp_dispatcher_register() fills in. */
static trp_err
dispatcher_register(trp_system *system, const trp_config *config, const char *id)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    const char *type = dispatcher_text(config, id, "type", full);
    options.kind = type != NULL ? dispatcher_kind_of(type) : TRP_DISPATCHER_POOL;
    options.throughput = dispatcher_number(config, id, "throughput");
    options.throughput_deadline_ms = dispatcher_number(config, id, "throughput-deadline-time");
    options.threads_min = dispatcher_number(config, id, "fork-join-executor.parallelism-min");
    options.threads_max = dispatcher_number(config, id, "fork-join-executor.parallelism-max");
    if (dispatcher_text(config, id, "fork-join-executor.parallelism-factor", full) != NULL) {
        options.threads_factor = trpi_config_float(config, full);
    }
    char mailbox[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    options.mailbox =
        trpi_setting_text_or_null(dispatcher_text(config, id, "mailbox-type", mailbox));
    (void)snprintf(full, sizeof full, "dispatcher.%s.mailbox-requirement", id);
    options.mailbox_requirement = trpi_settings_requirement(config, full);
    options.keep_alive_ms = dispatcher_number(config, id, "thread-pool-executor.keep-alive-time");
    options.shutdown_timeout_ms = dispatcher_number(config, id, "shutdown-timeout");
    options.no_teamwork = dispatcher_text(config, id, "attempt-teamwork", full) != NULL &&
                          options.kind == TRP_DISPATCHER_BALANCING &&
                          !trpi_config_bool(config, full);
    return trp_dispatcher_register(system, id, &options);
}

/* Register the dispatchers that have a section dispatcher "id" { }. */
trp_err
trpi_settings_dispatchers(trp_system *system)
{
    const trp_config *config = trpi_system_config(system);
    for (size_t i = 0; config != NULL && i < trpi_config_count(config); i++) {
        char id[TRPI_CONFIG_KEY_BYTES_MAX + 1];
        trpi_config_entry entry;
        trp_dispatcher_info info = { .size = sizeof info };
        const char *title = NULL;
        size_t bytes = 0;
        trpi_config_at(config, i, &entry);
        if (!trpi_setting_title(&entry, "dispatcher.", &title, &bytes)) {
            continue;
        }
        (void)snprintf(id, sizeof id, "%.*s", (int)bytes, title);
        /* registered at another key */
        bool is_ours = trp_dispatcher_find(system, id, &info) == TRP_OK;
        trp_err err = is_ours ? TRP_OK : dispatcher_register(system, config, id);
        if (err != TRP_OK) {
            trpi_log_direct(system, TRP_LOG_ERROR, "config", "%s: dispatcher \"%s\" is refused: %s",
                            entry.origin, id, trp_strerror(err));
            return err == TRP_ENOMEM ? err : TRP_ECONFIG;
        }
    }
    return TRP_OK;
}
