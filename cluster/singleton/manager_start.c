/* manager_start.c - trp_singleton_start(): options, refusals, and what a manager owns.
 *
 * Tests.   tests/unit/cluster/singleton_test.c
 * Sources. CONTRIB-03; ROLES-03, -05
 */
#include <stdio.h>
#include <string.h>

#include <troupe/shutdown.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "cluster/shell/exclusive.h"
#include "cluster/singleton/manager.h"
#include "persistence/persistence.h"

static void
manager_free(singleton_entry *entry)
{
    manager *m = entry->own;
    trpi_lease_close(m->lease, true);
    trpi_singleton_free(m->core);
    trpi_free(m->askers);
    trpi_free(m->aged);
    for (int i = 0; i < 2; i++) {
        trpi_free(m->texts[i]);
        trpi_free(m->payloads[i]);
    }
    trpi_free(m);
    trpi_free(entry);
}

/* The lease's thread. */
static void
lease_answered(void *arg, bool granted, const char *why)
{
    const manager *m = arg;
    uint64_t answer = granted;
    if (!granted) {
        trpi_log(m->entry->registry->system, TRP_LOG_INFO, "singleton",
                 "singleton \"%s\": its lease is not granted%s%s", m->entry->name,
                 why == NULL || why[0] == '\0' ? "" : ": ", why == NULL ? "" : why);
    }
    trp_system_tell(m->entry->registry->system, m->entry->actor, &singleton_lease_type, &answer,
                    sizeof answer);
}

static bool
text_copy(const char **text, char **ret_copy)
{
    if (*text == NULL) {
        return true;
    }
    size_t bytes = strlen(*text) + 1;
    *ret_copy = trpi_alloc(bytes);
    if (*ret_copy != NULL) {
        memcpy(*ret_copy, *text, bytes);
        *text = *ret_copy;
    }
    return *ret_copy != NULL;
}

static bool
payload_copy(const trp_type *type, const void **payload, size_t *bytes, void **ret_copy)
{
    *bytes = *bytes == 0 && type != NULL ? type->bytes : *bytes;
    if (type == NULL || *payload == NULL || *bytes == 0) {
        return true;
    }
    *ret_copy = trpi_alloc(*bytes);
    if (*ret_copy != NULL) {
        memcpy(*ret_copy, *payload, *bytes);
        *payload = *ret_copy;
    }
    return *ret_copy != NULL;
}

static uint32_t
or_default(uint32_t value, uint32_t default_value)
{
    return value == 0 ? default_value : value;
}

static bool
options_take(const trp_singleton_options *given, trp_singleton_options *own)
{
    if (given == NULL || !TRPI_SIZED_COPY(given, own, lease_arg) || own->name == NULL ||
        own->behaviour == NULL || own->name[0] == '\0' || own->name[0] == '$' ||
        strlen(own->name) > TRP_SINGLETON_NAME_BYTES_MAX ||
        (own->role != NULL && strlen(own->role) >= TRP_ROLE_BYTES) ||
        (own->lease != NULL && own->lease->acquire == NULL)) {
        return false;
    }
    own->retry_ms = or_default(own->retry_ms, TRP_SINGLETON_RETRY_MS_DEFAULT);
    own->hand_over_retries =
        or_default(own->hand_over_retries, TRP_SINGLETON_HAND_OVER_RETRIES_DEFAULT);
    own->take_over_retries =
        or_default(own->take_over_retries, TRP_SINGLETON_TAKE_OVER_RETRIES_DEFAULT);
    own->stop_timeout_ms = or_default(own->stop_timeout_ms, TRP_SINGLETON_STOP_TIMEOUT_MS_DEFAULT);
    own->lease_retry_ms = or_default(own->lease_retry_ms, TRP_SINGLETON_LEASE_RETRY_MS_DEFAULT);
    own->backoff_min_ms = or_default(own->backoff_min_ms, TRP_SINGLETON_BACKOFF_MIN_MS_DEFAULT);
    own->backoff_max_ms =
        or_default(own->backoff_max_ms, own->backoff_min_ms > TRP_SINGLETON_BACKOFF_MAX_MS_DEFAULT
                                            ? own->backoff_min_ms
                                            : TRP_SINGLETON_BACKOFF_MAX_MS_DEFAULT);
    return own->retry_ms <= TRP_SINGLETON_DELAY_MS_MAX &&
           own->stop_timeout_ms <= TRP_SINGLETON_DELAY_MS_MAX &&
           own->lease_retry_ms <= TRP_SINGLETON_DELAY_MS_MAX &&
           own->backoff_min_ms <= own->backoff_max_ms &&
           own->backoff_max_ms <= TRP_SINGLETON_DELAY_MS_MAX &&
           own->hand_over_retries <= TRP_SINGLETON_RETRIES_MAX &&
           own->take_over_retries < own->hand_over_retries;
}

/* May it run on this node? */
static trp_err
start_refusal(trp_system *system, const trp_singleton_options *options)
{
    char what[TRP_SINGLETON_NAME_BYTES_MAX + 16], why[TRPI_PERSISTENCE_WHY_BYTES] = "";
    (void)snprintf(what, sizeof what, "singleton '%s'", options->name);
    trp_err err = trp_cluster_require_role(system, options->role);
    if (err == TRP_OK) {
        trpi_guard *guard;
        err = trpi_exclusive_open(system, what, &guard, why, sizeof why);
    }
    if (err == TRP_OK && options->persistent != 0) {
        err = trpi_persistence_require_shared(system, what, why, sizeof why);
    }
    if (why[0] != '\0') {
        trpi_log(system, TRP_LOG_ERROR, "singleton", "%s", why);
    }
    return err;
}

static trp_err
manager_new(trp_system *system, const trp_singleton_options *options, singleton_entry **ret_entry)
{
    singleton_registry *registry = singleton_registry_get(system);
    singleton_entry *entry = trpi_alloc(sizeof *entry);
    manager *m = trpi_alloc(sizeof *m);
    if (entry == NULL || m == NULL) {
        trpi_free(entry);
        trpi_free(m);
        return TRP_ENOMEM;
    }
    entry->own = m;
    entry->free = manager_free;
    m->entry = entry;
    m->options = *options;
    m->strategy = (trp_strategy)TRP_STRATEGY_INIT;
    m->strategy.backoff_min_ms = options->backoff_min_ms;
    m->strategy.backoff_max_ms = options->backoff_max_ms;
    m->behaviour = singleton_manager_behaviour;
    m->behaviour.strategy = &m->strategy;
    (void)snprintf(entry->name, sizeof entry->name, "%s", options->name);
    (void)snprintf(entry->role, sizeof entry->role, "%s",
                   options->role == NULL ? "" : options->role);
    const trpi_cluster *cluster = trpi_cluster_of(system);
    uint32_t broken = cluster == NULL ? 0 : trpi_cluster_broken(cluster) >> 16;
    trpi_singleton_settings settings = { .broken = broken & 0xffu,
                                         .retry_ms = options->retry_ms,
                                         .hand_over_retries = options->hand_over_retries,
                                         .take_over_retries = options->take_over_retries,
                                         .stop_timeout_ms = options->stop_timeout_ms,
                                         .lease_retry_ms = options->lease_retry_ms,
                                         .lease = options->lease != NULL };
    bool ok =
        text_copy(&m->options.dispatcher, &m->texts[0]) &&
        text_copy(&m->options.mailbox, &m->texts[1]) &&
        payload_copy(m->options.args_type, &m->options.args, &m->options.args_bytes,
                     &m->payloads[0]) &&
        payload_copy(m->options.end_type, &m->options.end, &m->options.end_bytes, &m->payloads[1]);
    trp_err err =
        ok ? trpi_singleton_new(&registry->self, &settings, singleton_manager_act, m, &m->core)
           : TRP_ENOMEM;
    if (err == TRP_OK && options->lease != NULL) {
        char name[TRP_LEASE_NAME_BYTES_MAX + 1], owner[TRPI_LEASE_OWNER_BYTES];
        (void)snprintf(name, sizeof name, "%.50s-singleton-%s", trp_system_name(system),
                       options->name);
        err = trpi_lease_new(name, trpi_lease_owner(&registry->self, owner),
                             options->lease_retry_ms, lease_answered, m, &m->lease);
        if (err == TRP_OK) {
            trpi_lease_set(m->lease, options->lease, options->lease_arg);
        }
    }
    if (err != TRP_OK) {
        manager_free(entry);
        return err;
    }
    *ret_entry = entry;
    return TRP_OK;
}

static void
exit_task(void *arg, uint64_t task)
{
    const singleton_entry *entry = arg;
    if (entry->closed) {
        trp_shutdown_done(entry->registry->system, task, TRP_OK);
        return;
    }
    trp_system_tell(entry->registry->system, entry->actor, &singleton_exit_type, &task,
                    sizeof task);
}

static trp_err
manager_spawn(singleton_entry *entry)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    char name[TRP_SINGLETON_NAME_BYTES_MAX + 16], title[TRP_SHUTDOWN_NAME_BYTES_MAX + 1];
    manager *m = entry->own;
    uint64_t task;
    (void)snprintf(name, sizeof name, "singleton-%s", entry->name);
    (void)snprintf(title, sizeof title, "singleton %.50s", entry->name);
    spawn.name = name;
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &m;
    spawn.args_bytes = sizeof m;
    trp_err err =
        trpi_system_spawn_internal(entry->registry->system, &m->behaviour, &spawn, &entry->actor);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_shutdown_add(entry->registry->system, TRP_SHUTDOWN_CLUSTER_EXITING, title, exit_task,
                           entry, &task);
    if (err != TRP_OK) { /* it runs all the same: a leave does not wait for it */
        trpi_log(entry->registry->system, TRP_LOG_WARNING, "singleton",
                 "singleton \"%s\": the shutdown of this node will not wait for its hand-over: %s",
                 entry->name, trp_strerror(err));
    }
    return TRP_OK;
}

trp_err
trp_singleton_start(trp_system *system, const trp_singleton_options *options, trp_ref *ret_manager)
{
    trp_singleton_options own = TRP_SINGLETON_OPTIONS_INIT;
    singleton_entry *entry = NULL;
    if (system == NULL || ret_manager == NULL || !options_take(options, &own)) {
        return TRP_EINVAL;
    }
    if (singleton_registry_get(system) == NULL) {
        return TRP_ESTATE;
    }
    trp_err err = start_refusal(system, &own);
    err = err == TRP_OK ? manager_new(system, &own, &entry) : err;
    if (err != TRP_OK) {
        return err;
    }
    err = singleton_entry_add(singleton_registry_get(system), entry);
    if (err != TRP_OK) {
        manager_free(entry);
        return err;
    }
    err = manager_spawn(entry);
    if (err != TRP_OK) {
        singleton_entry_drop(entry);
        return err;
    }
    *ret_manager = entry->actor;
    return TRP_OK;
}
