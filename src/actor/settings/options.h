/* options.h - private to src/actor: the options of a system, from its configuration and its
 * program. */
#ifndef TRPI_ACTOR_SETTINGS_OPTIONS_H
#define TRPI_ACTOR_SETTINGS_OPTIONS_H

#include "actor/kernel/run.h"
#include "actor/settings/settings.h"

/* ---- settings.c ------------------------------------------------------------------------------ */
/* Read the deployment sections. Shares config. Gives *ret_settings. Errors: TRP_ENOMEM. */
trp_err trpi_settings_new(const trp_config *config, trpi_settings **ret_settings);
void trpi_settings_free(trpi_settings *settings); /* NULL is fine */
/* Set the options that the configuration has, and give those that are zero the reference's
 * value. */
void trpi_settings_options(const trp_config *config, trp_system_options *options);
/* Register the mailboxes that have a section, before the dispatchers. Errors: TRP_ECONFIG (logged),
 * TRP_ENOMEM. */
trp_err trpi_settings_mailboxes(trp_system *system);
/* Read a list of words such as bounded, deque as TRP_MAILBOX_* bits. */
uint32_t trpi_settings_requirement(const trp_config *config, const char *key);
/* Read the configuration of the dispatcher "default" into options. */
void trpi_settings_standard_dispatcher(const trp_config *config, trp_dispatcher_options *options);
/* Register the dispatchers that have a section. Errors: TRP_ECONFIG (logged), TRP_ENOMEM. */
trp_err trpi_settings_dispatchers(trp_system *system);
void trpi_settings_logging(const trp_config *config, trp_log_options *logging);
void trpi_settings_scheduling(const trp_config *config, trp_scheduler_options *scheduling);
/* The bound of a stash for actors whose spawn options set none; 0: unbounded. */
uint32_t trpi_settings_stash_max(const trp_config *config);
/* Log a line at info for each key: log-config-on-start. */
void trpi_settings_log(trp_system *system);
/* The options of a child of parent, merged with its deployment section: options itself, or *copy.
 * Only if system->settings exists. Thread: parent's runner, or with the lock of its guardian. */
const trp_spawn_options *trpi_settings_deploy(trp_ctx *ctx, const trpi_cell *parent,
                                              const trp_spawn_options *options,
                                              trp_spawn_options *copy);

/* ---- options.c ------------------------------------------------------------------------------- */
/* Fill in logging, scheduling and the log gate. */
void trpi_options_parts(trp_system *system);

#endif
