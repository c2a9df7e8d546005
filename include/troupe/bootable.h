/* troupe/bootable.h - an application that `troupe node --apps DIR` starts, stops and restarts.
 *
 * DIR has a directory for each: DIR/NAME/NAME.so, and DIR/NAME/NAME.conf if it has a configuration.
 * The object exports one symbol, trp_bootable_v1, which TRP_BOOTABLE defines:
 *
 *     static trp_err
 *     hello_startup(const trp_app *app, void **ret_state, trp_plugin_error *ret_error)
 *     {
 *         ... trp_config_get_text(app->config, "app.greeting", &text, NULL) ...
 *         ... trp_system_spawn(trp_node_system(app->node), ...) ...
 *         return TRP_OK;
 *     }
 *     static void
 *     hello_shutdown(const trp_app *app, void *state)
 *     {
 *         ... stop the actors that startup made, and wait for their ends ...
 *     }
 *     TRP_BOOTABLE(hello_startup, hello_shutdown)
 *
 * A node starts what is in DIR at its start, and looks every apps.interval for changes: an
 * application that is new is started, one that is gone is shut down, one whose object or
 * configuration has changed is shut down and started again. The node copies the object before it
 * maps it, and never unmaps it: what is left of the old code may still run. So each version has
 * its own static data, and the names of its behaviours and types are known already: the same
 * definitions are no error. A failed start is logged, with what to do, and tried again when the
 * files change.
 *
 * An application is code of the node and may do all that the node may do. Its files are refused
 * when other users could write them.
 */
#ifndef TROUPE_BOOTABLE_H
#define TROUPE_BOOTABLE_H

#include <troupe/base.h>
#include <troupe/config.h>
#include <troupe/node.h>
#include <troupe/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_BOOTABLE_ABI 1u
#define TRP_APPS_MAX 64u /* of one node */
#define TRP_APP_NAME_BYTES_MAX 63u
#define TRP_APP_BYTES_MAX (256u << 20) /* of an object */

typedef struct trp_app { /* borrowed: from before its startup until its shutdown has returned */
    trp_node *node;
    const char *name;         /* of its directory */
    const char *directory;    /* DIR/NAME */
    const trp_config *config; /* of NAME.conf alone: its own keys stand in app { } */
} trp_app;

typedef struct trp_bootable {
    uint32_t abi; /* TRP_BOOTABLE_ABI; another one is refused */
    uint32_t zero;
    /* Start its actors. *ret_state is passed to shutdown. Before it returns an error it stops what
     * it has made.
     * Thread: the node's for applications; may block, also in trp_system_ask(): the others wait. */
    trp_err (*startup)(const trp_app *app, void **ret_state, trp_plugin_error *ret_error);
    /* Stop them; before a restart, and when the node ends (phase service-stop), the last one that
     * was started first.
     * Thread: as startup. */
    void (*shutdown)(const trp_app *app, void *state);
} trp_bootable;

#define TRP_BOOTABLE(startup_, shutdown_)                                                          \
    TRP_API extern const trp_bootable trp_bootable_v1;                                             \
    const trp_bootable trp_bootable_v1 = { TRP_BOOTABLE_ABI, 0, (startup_), (shutdown_) };

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_BOOTABLE_H */
