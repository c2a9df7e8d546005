/* settings.h - the configuration of the system, and of single actors by their path. Part of the
 * room's door.
 *
 * Rules.  The configuration overrides the options in code, which override the reference
 *         configuration (SYS-32, DISP-2; decision 30).
 */
#ifndef TRPI_ACTOR_SETTINGS_SETTINGS_H
#define TRPI_ACTOR_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <troupe/config.h>
#include <troupe/system.h>

#include "base/config.h"

/* A section deployment "/service/worker" { }; valid while the system lives. */
typedef struct trpi_deployment {
    const trp_config *config;
    const char *title;
    const char *dispatcher, *mailbox, *router, *remote; /* NULL: not set, the code decides */
} trpi_deployment;

/* The configuration of the system. NULL: none was given; the getters of base/config.h answer NULL
 * with the reference. Thread: any. */
const trp_config *trpi_system_config(const trp_system *system);

/* A number: from the configuration, else from the code (0: not set there), else from the reference.
 * Durations are milliseconds. Thread: any. */
uint32_t trpi_setting_pick(const trp_config *config, const char *key, uint32_t coded);
double trpi_setting_pick_float(const trp_config *config, const char *key, double coded);

/* The title in a key that is set, below prefix ("deployment."); borrowed from entry. */
struct trpi_config_entry;
bool trpi_setting_title(const struct trpi_config_entry *entry, const char *prefix,
                        const char **ret_title, size_t *ret_bytes);
const char *trpi_setting_text_or_null(const char *text); /* NULL for "" */

/* Find the section for the actor at path ("/user/service/a", or without "/user"), the most specific
 * one: at the first element in which two differ a name beats "*". false: there is none, and
 * *ret_deployment is unchanged. Thread: any. */
bool trpi_deployment_find(const trp_system *system, const char *path,
                          trpi_deployment *ret_deployment);
/* Read the section with this title, which stays the caller's; all NULL when there is none. Thread:
 * any. */
void trpi_deployment_at(const trp_config *config, const char *title,
                        trpi_deployment *ret_deployment);
/* Read another key of a section, such as "nr-of-instances" or "resizer.lower-bound". NULL: not set.
 * Thread: any. */
const char *trpi_deployment_text(const trpi_deployment *deployment, const char *key);
/* The same as a number: milliseconds, bytes, 0 or 1. false: not set. */
bool trpi_deployment_number(const trpi_deployment *deployment, const char *key, double *ret_number);
/* The same as a list. 0: not set, or empty. */
size_t trpi_deployment_list(const trpi_deployment *deployment, const char *key,
                            const char *const **ret_values);

/* trp_spawn_options.node of an actor that its code binds to this node and a section moves */
extern const char trpi_node_conflict[];

/* ---- options.c ------------------------------------------------------------------------------- */
bool trpi_options_are_valid(const trp_system_options *options); /* NULL is */
/* Copy valid options; NULL: the defaults. */
void trpi_options_copy(const trp_system_options *given, trp_system_options *ret_options);

/* Keys of the configuration that systems read (keys.c). */
extern const trpi_config_part trpi_actor_keys, trpi_log_keys;

#endif
