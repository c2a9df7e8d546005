/* shutdown_settings.c - the keys of the phases of a coordinated shutdown.
 *
 * Must hold.
 *   shutdown-settings-S1  A title that is no phase of the library is a new phase only when it has
 *       depends-on: else it is taken for a misspelt one, and refused with the nearest name.
 * Tests.   tests/unit/pattern/shutdown_plan_test.c
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/config.h"
#include "base/nearest.h"
#include "pattern/pattern.h"
#include "pattern/shutdown_plan.h"

#define PREFIX "coordinated-shutdown.phases."

static trp_err setting_refuse(trp_config_error *ret_error, const trpi_config_entry *entry,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));
static trp_err
setting_refuse(trp_config_error *ret_error, const trpi_config_entry *entry, const char *format, ...)
{
    va_list list;
    int at = snprintf(ret_error->text, sizeof ret_error->text, "%.300s: %.150s: ", entry->origin,
                      entry->key);
    va_start(list, format);
    (void)vsnprintf(ret_error->text + at, sizeof ret_error->text - (size_t)at, format, list);
    va_end(list);
    return TRP_ECONFIG;
}

static const char *
nearest_phase(const trpi_shutdown_plan *plan, const char *name, char *hint, size_t bytes)
{
    const char *names[TRP_SHUTDOWN_PHASES_MAX];
    for (uint32_t i = 0; i < plan->phases_count; i++) {
        names[i] = plan->phases[i].name;
    }
    const char *nearest = trpi_nearest(name, names, plan->phases_count);
    (void)snprintf(hint, bytes, nearest == NULL ? "%s" : "; did you mean '%s'?",
                   nearest == NULL ? "" : nearest);
    return hint;
}

/* Return whether KEY of this phase is set, and not empty. */
static bool
is_said(const trp_config *config, const char *title, const char *key)
{
    char path[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    trpi_config_entry entry;
    (void)snprintf(path, sizeof path, PREFIX "%s.%s", title, key);
    return trpi_config_find(config, path, &entry) && entry.layer != TRPI_CONFIG_DEFAULT &&
           entry.count > 0 && entry.values[0][0] != '\0';
}

/* shutdown-settings-S1 */
static trp_err
title_take(trpi_shutdown_plan *plan, const trp_config *config, const trpi_config_entry *entry,
           const char *title, trp_config_error *ret_error)
{
    char hint[128];
    if (trpi_shutdown_phase_find(plan, title) != TRPI_SHUTDOWN_NONE) {
        return TRP_OK;
    }
    if (!is_said(config, title, "depends-on")) {
        return setting_refuse(ret_error, entry,
                              "there is no phase '%s'%s (a new one says depends-on)", title,
                              nearest_phase(plan, title, hint, sizeof hint));
    }
    uint32_t timeout_ms =
        (uint32_t)trpi_config_int(config, "coordinated-shutdown.default-phase-timeout");
    switch (trpi_shutdown_phase_add(plan, title, timeout_ms)) {
    case TRP_OK:
        return TRP_OK;
    case TRP_ELIMIT:
        return setting_refuse(ret_error, entry, "more than %d phases", TRP_SHUTDOWN_PHASES_MAX);
    default:
        return setting_refuse(ret_error, entry, "a name of a phase has 1 to %d bytes",
                              TRP_SHUTDOWN_NAME_BYTES_MAX);
    }
}

static trp_err
value_take(trpi_shutdown_plan *plan, trpi_shutdown_phase *phase, const trpi_config_entry *entry,
           const char *key, trp_config_error *ret_error)
{
    double number;
    const char *what;
    char hint[128];
    if (strcmp(key, "depends-on") == 0) {
        phase->after = 0;
        for (size_t i = 0; i < entry->count; i++) {
            uint32_t before = trpi_shutdown_phase_find(plan, entry->values[i]);
            if (before == TRPI_SHUTDOWN_NONE && entry->values[i][0] != '\0') {
                return setting_refuse(ret_error, entry, "there is no phase '%s'%s",
                                      entry->values[i],
                                      nearest_phase(plan, entry->values[i], hint, sizeof hint));
            }
            phase->after |= before == TRPI_SHUTDOWN_NONE ? 0 : UINT64_C(1) << before;
        }
        return TRP_OK;
    }
    if (trpi_config_parse_number(entry->type, entry->values[0], &number, &what) != TRP_OK) {
        return setting_refuse(ret_error, entry, "%s", what);
    }
    if (strcmp(key, "timeout") == 0) {
        phase->timeout_ms = (uint32_t)number;
    } else if (strcmp(key, "recover") == 0) {
        phase->is_crucial = number == 0;
    } else {
        phase->off = number == 0;
    }
    return TRP_OK;
}

trp_err
trpi_shutdown_plan_read(trpi_shutdown_plan *plan, const trp_config *config,
                        trp_config_error *ret_error)
{
    char circle[512], title[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    trpi_shutdown_plan_init(
        plan, (uint32_t)trpi_config_int(config, "coordinated-shutdown.default-phase-timeout"),
        (uint32_t)trpi_config_int(config, "cluster.leave-timeout"));
    for (int round = 0; config != NULL && round < 2; round++) { /* names, then keys */
        for (size_t i = 0; i < trpi_config_count(config); i++) {
            trpi_config_entry entry;
            const char *start;
            size_t bytes;
            trpi_config_at(config, i, &entry);
            if (!trpi_setting_title(&entry, PREFIX, &start, &bytes)) {
                continue;
            }
            (void)snprintf(title, sizeof title, "%.*s", (int)bytes, start);
            uint32_t phase = trpi_shutdown_phase_find(plan, title);
            trp_err err = round == 0 ? title_take(plan, config, &entry, title, ret_error)
                                     : value_take(plan, &plan->phases[phase], &entry,
                                                  start + bytes + 1, ret_error);
            if (err != TRP_OK) {
                return err;
            }
        }
    }
    if (trpi_shutdown_plan_order(plan, circle, sizeof circle) != TRP_OK) {
        (void)snprintf(ret_error->text, sizeof ret_error->text,
                       "coordinated-shutdown.phases: they wait for each other in a circle: %s",
                       circle);
        return TRP_ECONFIG;
    }
    return TRP_OK;
}

trp_err
trpi_shutdown_config_check(const trp_config *config, trp_config_error *ret_error)
{
    trpi_shutdown_plan plan;
    trp_err err = trpi_shutdown_plan_read(&plan, config, ret_error);
    trpi_shutdown_plan_fini(&plan);
    return err;
}
