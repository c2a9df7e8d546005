/* node_plugin.h - shared objects that a node loads. */
#ifndef TRPI_NODE_NODE_PLUGIN_H
#define TRPI_NODE_NODE_PLUGIN_H

#include <stdbool.h>

#include <troupe/plugin.h>

#define TRPI_PLUGINS_MAX 64

typedef struct trpi_plugin {
    const trp_plugin *plugin;
    const char *arguments; /* in the specification */
    bool begun;            /* its init has succeeded */
    void *state;
    char path[4096];
} trpi_plugin;

/* Load "PATH" or "PATH:ARGUMENTS", borrowed as long as the plugin, and run nothing of it but its
 * constructors. A PATH without a slash is looked for in LIBDIR/troupe, then where the loader looks.
 * Errors: TRP_ECONFIG; *ret_error says what. Thread: the opener of the node. */
trp_err trpi_plugin_open(const char *specification, trpi_plugin *ret_plugin,
                         trp_node_error *ret_error);
/* Run its init. Errors and thread as above. */
trp_err trpi_plugin_begin(trp_node *node, trpi_plugin *plugin, trp_node_error *ret_error);
void trpi_plugin_fini(trpi_plugin *plugin);

#endif
