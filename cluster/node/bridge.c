/* bridge.c - the bridges of a node: their list, and the command that begins one.
 *
 * Shape.   `troupe bridge` -> control socket -> a session actor at /user/NAME, whose stream the
 *          connection becomes; bridge NAME { command } -> the same, and the session starts the
 *          program
 * Must hold.
 *   bridge-B1  A bridge is freed by its session's end, or with the node; nothing is told to that
 *       session afterwards.
 * Limits.  TRPI_BRIDGES_MAX
 * Tests.   tests/system/bridge.sh
 */
#include "cluster/node/bridge_child.h"

#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/node_private.h"

/* With the node's lock. */
static uint32_t
bridges_count(const trp_node *node)
{
    uint32_t count = 0;
    for (const trpi_bridge *b = node->bridges; b != NULL; b = b->next) {
        count++;
    }
    return count;
}

/* Errors: TRP_ELIMIT, TRP_ENOMEM. */
static trp_err
bridge_new(trp_node *node, const char *name, trpi_bridge **ret_bridge)
{
    trpi_bridge *bridge = trpi_alloc(sizeof *bridge);
    if (bridge == NULL) {
        return TRP_ENOMEM;
    }
    bridge->node = node;
    bridge->system = node->system;
    pthread_mutex_lock(&node->lock);
    uint32_t count = bridges_count(node);
    uint64_t number = ++node->bridges_begun;
    if (count < TRPI_BRIDGES_MAX) {
        bridge->next = node->bridges;
        node->bridges = bridge;
    }
    pthread_mutex_unlock(&node->lock);
    if (count >= TRPI_BRIDGES_MAX) {
        trpi_free(bridge);
        return TRP_ELIMIT;
    }
    if (name != NULL) {
        (void)snprintf(bridge->name, sizeof bridge->name, "%s", name);
    } else {
        (void)snprintf(bridge->name, sizeof bridge->name, "bridge-%llu",
                       (unsigned long long)number);
    }
    *ret_bridge = bridge;
    return TRP_OK;
}

void
trpi_bridge_over(trpi_bridge *bridge) /* bridge-B1 */
{
    trp_node *node = bridge->node;
    pthread_mutex_lock(&node->lock);
    trpi_bridge **at = &node->bridges;
    while (*at != bridge) {
        trpi_assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = bridge->next;
    pthread_mutex_unlock(&node->lock);
    trpi_free(bridge);
}

void
trpi_bridges_free(trp_node *node)
{
    while (node->bridges != NULL) {
        trpi_bridge *bridge = node->bridges;
        node->bridges = bridge->next;
        trpi_bridge_child_free(bridge->child);
        trpi_free(bridge);
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Copy the sessions that want events of these bits. */
static uint32_t
sessions_copy(trp_node *node, uint32_t bits, trp_ref refs[TRPI_BRIDGES_MAX])
{
    uint32_t count = 0;
    pthread_mutex_lock(&node->lock);
    for (const trpi_bridge *b = node->bridges; b != NULL && count < TRPI_BRIDGES_MAX; b = b->next) {
        if ((atomic_load(&b->event_bits) & bits) != 0) {
            refs[count++] = b->session;
        }
    }
    pthread_mutex_unlock(&node->lock);
    return count;
}

bool
trpi_bridges_hear(trp_node *node)
{
    trp_ref refs[TRPI_BRIDGES_MAX];
    return sessions_copy(node, UINT32_MAX, refs) > 0;
}

void
trpi_bridges_event(trp_node *node, unsigned index, const char *text)
{
    trp_ref refs[TRPI_BRIDGES_MAX];
    uint32_t count = text == NULL ? 0 : sessions_copy(node, 1u << index, refs);
    for (uint32_t i = 0; i < count; i++) {
        trp_system_tell(node->system, refs[i], &trpi_bridge_notice_type, text, strlen(text));
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static void
spawn_refuse(trpi_call *call, const trpi_bridge *bridge, trp_err err)
{
    if (err == TRP_EEXIST) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe tree /user",
                              "an actor /user/%.255s is there already", bridge->name);
    } else if (err == TRP_EINVAL) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE,
                              "a name has no '/', and does not begin with '$'",
                              "'%.255s' is no name of an actor", bridge->name);
    } else {
        trpi_call_refuse_text(call, trpi_ctl_exit_of(err), NULL, "bridge: %s", trp_strerror(err));
    }
}

static trp_err
session_spawn(trpi_bridge *bridge, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trpi_session_args args = { bridge, bridge->child != NULL };
    options.name = bridge->name;
    options.node = TRP_NODE_HERE;
    options.stash_msgs_max = TRPI_BRIDGE_WAITING_MAX;
    options.args_type = &trp_bytes_type;
    options.args = &args;
    options.args_bytes = sizeof args;
    return trp_system_spawn(bridge->system, &trpi_bridge_session_behaviour, &options, ret_ref);
}

/* Begin the session, whose stream the connection becomes. */
static void
session_connect(trpi_call *call, trpi_bridge *bridge)
{
    trp_system *system = bridge->system;
    trp_ref ref;
    int fd = -1;
    trp_err err = session_spawn(bridge, &ref);
    if (err != TRP_OK) {
        spawn_refuse(call, bridge, err);
        trpi_bridge_over(bridge);
        return;
    }
    /* from now on bridge is the session's, which may end at any time */
    err = trpi_call_take_stream(call, "{\"ok\":true}", &fd);
    err = err == TRP_OK ? trpi_bridge_stream_give(system, ref, fd) : err;
    if (err != TRP_OK) { /* the client has gone, or learns it by the end of its connection */
        trp_system_stop_actor(system, ref);
    }
}

void
trpi_node_serve_bridge(trp_node *node, trpi_call *call)
{
    const char *name = call->request.path;
    trpi_bridge *bridge = NULL;
    if (name != NULL && (name[0] == '\0' || strlen(name) > TRP_NAME_BYTES_MAX)) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "a name has 1 to %d bytes",
                              TRP_NAME_BYTES_MAX);
        return;
    }
    trp_err err = trp_protocol_register(&trpi_bridge_protocol);
    err = err == TRP_OK ? bridge_new(node, name, &bridge) : err;
    if (err == TRP_ELIMIT) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "end another one",
                              "this node has %u bridges already", TRPI_BRIDGES_MAX);
        return;
    }
    if (err != TRP_OK) {
        trpi_call_refuse_text(call, trpi_ctl_exit_of(err), NULL, "bridge: %s", trp_strerror(err));
        return;
    }
    session_connect(call, bridge);
}

/* ---- programs of the configuration ----------------------------------------------------------- */

static trp_err
program_begin(trp_node *node, const char *name, char *ret_what, size_t what_bytes)
{
    trpi_bridge *bridge = NULL;
    trp_ref ref;
    trp_err err = bridge_new(node, name, &bridge);
    if (err == TRP_OK) {
        err = trpi_bridge_child_new(node->config, name, &bridge->child);
        err = err == TRP_OK ? session_spawn(bridge, &ref) : err;
    }
    if (err != TRP_OK) {
        (void)snprintf(ret_what, what_bytes, "bridge %.255s: %s", name,
                       err == TRP_EINVAL   ? "it is no name of an actor"
                       : err == TRP_EEXIST ? "an actor of that name is there already"
                                           : trp_strerror(err));
    }
    return err == TRP_EINVAL || err == TRP_EEXIST ? TRP_ECONFIG
                                                  : err; /* the node frees what was made */
}

trp_err
trpi_bridges_begin(trp_node *node, char *ret_what, size_t what_bytes)
{
    trp_err err = TRP_OK;
    for (size_t i = 0; err == TRP_OK && i < trpi_config_count(node->config); i++) {
        trpi_config_entry entry;
        char name[TRP_NAME_BYTES_MAX + 1];
        trpi_config_at(node->config, i, &entry);
        const char *rest = strncmp(entry.key, "bridge.", 7) == 0 ? entry.key + 7 : NULL;
        const char *end = rest == NULL ? NULL : strrchr(rest, '.');
        if (end == NULL || strcmp(end, ".command") != 0 || entry.count == 0 ||
            entry.values[0][0] == '\0' || (size_t)(end - rest) >= sizeof name) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - rest), rest);
        err = trp_protocol_register(&trpi_bridge_protocol);
        err = err == TRP_OK ? program_begin(node, name, ret_what, what_bytes) : err;
    }
    return err;
}
