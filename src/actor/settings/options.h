/* options.h - private to src/actor: what configuration and program say, as options of a system. */
#ifndef TRPI_ACTOR_SETTINGS_OPTIONS_H
#define TRPI_ACTOR_SETTINGS_OPTIONS_H

#include "actor/kernel/run.h"
#include "actor/settings/settings.h"

/* ---- settings.c ------------------------------------------------------------------------------ */
/* Shares config. Gives *ret_settings. Errors: TRP_ENOMEM. */
trp_err trpi_settings_new(const trp_config *config, trpi_settings **ret_settings);
void trpi_settings_free(trpi_settings *settings); /* NULL is fine */
/* Fill what the configuration says, or what is zero and the reference says. */
void trpi_settings_options(const trp_config *config, trp_system_options *options);
/* Register the mailboxes that have a section, first; the errors as below. */
trp_err trpi_settings_mailboxes(trp_system *system);
/* What a list of words such as bounded, deque says, as TRP_MAILBOX_* bits. */
uint32_t trpi_settings_requirement(const trp_config *config, const char *key);
/* What the configuration says of the dispatcher "default". */
void trpi_settings_standard_dispatcher(const trp_config *config, trp_dispatcher_options *options);
/* Register the dispatchers that have a section. Errors: TRP_ECONFIG (logged), TRP_ENOMEM. */
trp_err trpi_settings_dispatchers(trp_system *system);
void trpi_settings_logging(const trp_config *config, trp_log_options *logging);
void trpi_settings_scheduling(const trp_config *config, trp_scheduler_options *scheduling);
/* Messages that an actor may stash whose options do not say; 0: unbounded. */
uint32_t trpi_settings_stash_max(const trp_config *config);
/* A line at info for each key: log-config-on-start. */
void trpi_settings_log(trp_system *system);
/* The options of a child of parent, with what a deployment section says of it: options itself, or
 * *copy. Only where system->settings is; parent's runner, or the lock of its guardian. */
const trp_spawn_options *trpi_settings_deploy(trp_ctx *ctx, const trpi_cell *parent,
                                              const trp_spawn_options *options,
                                              trp_spawn_options *copy);

/* ---- options.c ------------------------------------------------------------------------------- */
/* Fill in logging, scheduling and the log gate. */
void trpi_options_parts(trp_system *system);

#endif
