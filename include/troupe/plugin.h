/* troupe/plugin.h - a shared object that `troupe node --load PATH[:ARGUMENTS]` loads at start.
 *
 * It exports one symbol, trp_plugin_v1, which TRP_PLUGIN defines:
 *
 *     static trp_err
 *     counter_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error
 *     *ret_error) {
 *         ... trp_protocol_register(), trp_system_spawn(trp_node_system(node), ...) ...
 *         return TRP_OK;
 *     }
 *     TRP_PLUGIN("counter", counter_init, NULL)
 *
 * A plugin is code of the node: it may do all that the node may do. It is never unloaded while the
 * node runs, because messages and behaviours point into it.
 *
 * `troupe upgrade FILE` replaces its code while its actors live. The newer version says which of
 * its behaviours replace those of the older one, by their names:
 *
 *     static const trp_code_change counter_changes[] = { { &counter, counter_change } };
 *     TRP_PLUGIN_UPGRADE(counter_changes, 1, NULL)
 *
 * The older code stays in memory: callbacks, and actors that could not change, still run it. A
 * message type has one layout for the life of a process. Where fields change, declare a type of
 * another name beside the older one, and handle both: messages of the older type wait in mailboxes
 * and stashes, come from nodes that were not upgraded, and stand in journals.
 */
#ifndef TROUPE_PLUGIN_H
#define TROUPE_PLUGIN_H

#include <troupe/base.h>
#include <troupe/node.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_PLUGIN_ABI 1u

/* The reason why init failed: one sentence, shown by the node. */
typedef struct trp_plugin_error {
    char text[256];
} trp_plugin_error;

typedef struct trp_plugin {
    uint32_t abi; /* TRP_PLUGIN_ABI; another one is refused */
    uint32_t zero;
    const char *name; /* for logs */
    /* Register types and start actors. arguments: what stood behind the colon, "" without one;
     * borrowed until return. *ret_state is passed to fini. Any result but TRP_OK ends the node
     * (exit 78). Other nodes are let in when the init of every plugin has returned: waiting for
     * them is an actor's work, not init's.
     * Thread: the one that opens the node; may block. */
    trp_err (*init)(trp_node *node, const char *arguments, void **ret_state,
                    trp_plugin_error *ret_error);
    /* After the system has stopped: release what init made. NULL: nothing to do. Not called when
     * actors did not end in their time, for they may still run. Work that needs actors, or other
     * nodes, belongs into a task of troupe/shutdown.h, which init adds. */
    void (*fini)(void *state);
} trp_plugin;

#define TRP_PLUGIN(name_, init_, fini_)                                                            \
    TRP_API extern const trp_plugin trp_plugin_v1;                                                 \
    const trp_plugin trp_plugin_v1 = { TRP_PLUGIN_ABI, 0, (name_), (init_), (fini_) };

#define TRP_PLUGIN_CHANGES_MAX 256u

/* The behaviours that a newer version of a plugin brings. Since: 0.2 */
typedef struct trp_plugin_upgrade {
    size_t size; /* sizeof(trp_plugin_upgrade) */
    const trp_code_change *changes;
    uint32_t changes_count; /* at most TRP_PLUGIN_CHANGES_MAX */
    uint32_t zero;
    /* Called instead of init, before any actor changes: register types and new behaviours, start
     * new actors. *state: what the older version's init gave, passed to the fini of this one. The
     * protocols that the behaviours accept are registered already. Any result but TRP_OK refuses
     * the upgrade. NULL: nothing to do.
     * Thread: one of the node's; may block. */
    trp_err (*begin)(trp_node *node, void **state, trp_plugin_error *ret_error);
} trp_plugin_upgrade;

#define TRP_PLUGIN_UPGRADE(changes_, count_, begin_)                                               \
    TRP_API extern const trp_plugin_upgrade trp_plugin_upgrade_v1;                                 \
    const trp_plugin_upgrade trp_plugin_upgrade_v1 = { sizeof(trp_plugin_upgrade), (changes_),     \
                                                       (count_), 0, (begin_) };

/* Export the behaviour of a file for `troupe spawn NAME --plugin FILE`; it needs no trp_plugin.
 * More than one: export constants of type trp_behaviour, named as FILE:SYMBOL. Since: 0.2 */
#define TRP_SPAWN(...)                                                                             \
    TRP_API extern const trp_behaviour trp_spawn_v1;                                               \
    const trp_behaviour trp_spawn_v1 = __VA_ARGS__;

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PLUGIN_H */
