/* node_options.h - the command line of `troupe node` and `troupe config`, made into a
 * configuration. */
#ifndef TRPI_NODE_NODE_OPTIONS_H
#define TRPI_NODE_NODE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include <troupe/node.h>

#include "base/config.h"

#define TRPI_NODE_SETTINGS_MAX 256 /* flags on one command line */

typedef struct trpi_node_options {
    const char *config_file; /* NULL: none */
    /* Flags in the order of the command line; lists (--seed) gathered under their key. */
    struct {
        const char *origin; /* "--port" */
        const char *key;
        const char *value;
    } settings[TRPI_NODE_SETTINGS_MAX];
    size_t settings_count;
    bool help, environment_ignored;
    const char *positional[4];
    size_t positional_count;
    bool origin, as_json, reference; /* config show --origin, -o json or jsonl, --reference */
    bool on_one_line;                /* -o jsonl */
    bool keys_only;                  /* config check --keys-only */
} trpi_node_options;

/* Borrows argv. positional_max 0: of `troupe node`, else of `troupe config`. Returns 0, or the exit
 * code, with the error on stderr. */
int trpi_node_options_parse(int argc, char **argv, size_t positional_max,
                            trpi_node_options *ret_options);

/* Layers: flags > environment > file > defaults. environment NULL: none. Gives *ret_config. Errors:
 * TRP_ECONFIG, TRP_ENOENT (the file), TRP_ENOMEM; *ret_error has the reason. */
trp_err trpi_node_config_build(const trpi_node_options *options, char *const *environment,
                               trpi_config **ret_config, trpi_config_error *ret_error);

/* node_check.c. Check keys that contradict each other, with which a node refuses to start. Errors:
 * TRP_ECONFIG; *ret_error has the place and the remedy. Thread: any. */
trp_err trpi_node_config_check(const trpi_config *config, trpi_config_error *ret_error);
/* Return why a key that is accepted for foreign configurations has no effect; NULL: it has one, or
 * was not given. */
const char *trpi_node_config_idle(const trpi_config_entry *entry);
/* The time that a leave beside a crash takes; 0: any does (manual). */
uint64_t trpi_node_leave_need_ms(const trpi_config *config);
/* Print a line for each such key, and for each dispatcher and mailbox that is used but not defined
 * here: a plugin may define it. */
void trpi_node_config_notes(const trpi_config *config, FILE *out);

#endif
