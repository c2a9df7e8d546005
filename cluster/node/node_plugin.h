/* node_plugin.h - shared objects that a node loads. */
#ifndef TRPI_NODE_NODE_PLUGIN_H
#define TRPI_NODE_NODE_PLUGIN_H

#include <troupe/plugin.h>

#define TRPI_PLUGINS_MAX 64

typedef struct trpi_plugin {
    const trp_plugin *plugin;
    void *state;
    char path[4096];
} trpi_plugin;

/* Open "PATH" or "PATH:ARGUMENTS" and run its init. A PATH without a slash is looked for in
 * LIBDIR/troupe, then where the loader looks.
 * Errors: TRP_ECONFIG; *ret_error says what. Thread: the opener of the node. */
trp_err trpi_plugin_load(trp_node *node, const char *specification, trpi_plugin *ret_plugin,
                         trp_node_error *ret_error);
void trpi_plugin_fini(trpi_plugin *plugin);

#endif
