/* node_plugin.h - shared objects that a node loads. */
#ifndef TRPI_NODE_NODE_PLUGIN_H
#define TRPI_NODE_NODE_PLUGIN_H

#include <stdbool.h>

#include <troupe/plugin.h>

#include "actor/actor.h"
#include "cluster/node/control_request.h"

#define TRPI_PLUGINS_MAX 64

typedef struct trpi_plugin {
    const trp_plugin *plugin; /* of the version that was loaded last */
    const char *arguments;    /* in the specification */
    bool begun;               /* its init has succeeded */
    void *state;
    char path[4096];
    /* addresses of all versions, the last one included; node_upgrade.c */
    size_t versions_count;
    trpi_code versions[TRPI_UPGRADES_MAX + 1];
} trpi_plugin;

#define TRPI_SPAWN_FILES_MAX 64u

/* A file that was loaded for `troupe spawn`. */
typedef struct trpi_spawn_file {
    uint64_t dev, ino;
    int64_t bytes, changed_ns; /* by which a changed one is known */
    void *handle;
    int copy; /* stays open: the loader knows the copy by its path */
} trpi_spawn_file;

/* Load "PATH" or "PATH:ARGUMENTS", borrowed as long as the plugin, and run nothing of it but its
 * constructors. A PATH without a slash is looked for in LIBDIR/troupe, then where the loader looks.
 * Errors: TRP_ECONFIG; *ret_error says what. Thread: the opener of the node. */
trp_err trpi_plugin_open(const char *specification, trpi_plugin *ret_plugin,
                         trp_node_error *ret_error);
/* Run its init. Errors and thread as above. */
trp_err trpi_plugin_begin(trp_node *node, trpi_plugin *plugin, trp_node_error *ret_error);
void trpi_plugin_fini(trpi_plugin *plugin);

/* Return the addresses of the shared object that has this one. */
trpi_code trpi_plugin_code(const void *inside);

/* ---- plugin_file.c: files that a command or a directory names ----------------------------------
 * Open FILE below dir to be read. FILE is a name without a slash, or a link to such a name there;
 * dir and file belong to root or to the user of the node, who alone may write them. false: refused,
 * *ret_refusal says why. Thread: any. */
bool trpi_plugin_file_open(const char *dir, const char *name, int *ret_fd,
                           trpi_control_refusal *ret_refusal);
/* Copy it to a file in memory, named NAME.NUMBER, that nobody can change, and give the path by
 * which it can be loaded as long as *ret_copy is open. Takes fd. false: as above. */
bool trpi_plugin_file_copy(int fd, const char *name, uint32_t number, int *ret_copy,
                           char ret_path[64], trpi_control_refusal *ret_refusal);

#endif
