/* control_commands.c - the table of commands and the functions that serve them, and the two
 * smallest of these. */
#include <unistd.h>

#include "base/assert.h"
#include "cluster/node/bridge.h"
#include "cluster/node/node_private.h"

bool
trpi_node_command_is_quick(const trpi_control_request *request)
{
    if (request->all_members) {
        return false; /* the others are waited for */
    }
    switch (request->command) {
    case TRPI_CONTROL_VERSION:
    case TRPI_CONTROL_MEMBERS:
    case TRPI_CONTROL_MEMBER_STATUS:
    case TRPI_CONTROL_STATUS:
    case TRPI_CONTROL_CONFIG:
    case TRPI_CONTROL_PEERS:
    case TRPI_CONTROL_FAULT:
    case TRPI_CONTROL_WHY:
    case TRPI_CONTROL_SINGLETON:
    case TRPI_CONTROL_TOPICS:
    case TRPI_CONTROL_METRICS:
    case TRPI_CONTROL_ALIVE:
    case TRPI_CONTROL_TOP:
    case TRPI_CONTROL_DASHBOARD:
        return true;
    case TRPI_CONTROL_JOIN:
    case TRPI_CONTROL_LEAVE:
    case TRPI_CONTROL_DOWN:
    case TRPI_CONTROL_DRAIN:
    case TRPI_CONTROL_UNDRAIN:
    case TRPI_CONTROL_UPGRADE:
    case TRPI_CONTROL_SPAWN:
    case TRPI_CONTROL_WATCH:
    case TRPI_CONTROL_SHUTDOWN:
    case TRPI_CONTROL_SEND:
    case TRPI_CONTROL_ASK:
    case TRPI_CONTROL_PUBLISH:
    case TRPI_CONTROL_PING:
    case TRPI_CONTROL_TREE:
    case TRPI_CONTROL_REACH:
    case TRPI_CONTROL_SHARDS: /* these two of another member, perhaps */
    case TRPI_CONTROL_ENTITY:
    case TRPI_CONTROL_DEADLETTERS: /* these two may wait for the next one */
    case TRPI_CONTROL_LOGS:
    case TRPI_CONTROL_DOCTOR:
    case TRPI_CONTROL_TRACE:
    case TRPI_CONTROL_SENDERS:
    case TRPI_CONTROL_STOP:
    case TRPI_CONTROL_READY:
    case TRPI_CONTROL_RELOAD:
    case TRPI_CONTROL_BRIDGE:
    case TRPI_CONTROL_EVENTS: /* with a snapshot it waits for the cluster's thread */
        return false;
    }
    return false;
}

static void
serve_version(trp_node *node, trpi_call *call)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "version", trp_version()) &&
              trpi_json_add_i64(reply, "protocol", TRPI_CTL_VERSION) &&
              trpi_json_add_i64(reply, "pid", getpid()) &&
              trpi_json_add_text(reply, "system", trp_system_name(node->system)) &&
              trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_u64_string(reply, "selfUid", trpi_system_self(node->system)->uid);
    trpi_call_answer_if(call, ok, reply);
}

/* {"ok":true,"config":{"key":{"value":..., "origin":"..."}}} */
static void
serve_config(trp_node *node, trpi_call *call)
{
    cJSON *reply = trpi_call_reply(), *config = cJSON_AddObjectToObject(reply, "config");
    bool ok = config != NULL;
    for (size_t i = 0; ok && i < trpi_config_count(node->config); i++) {
        trpi_config_entry entry;
        trpi_config_at(node->config, i, &entry);
        cJSON *row = cJSON_AddObjectToObject(config, entry.key);
        if (entry.type == TRPI_CONFIG_LIST) {
            cJSON *list = cJSON_AddArrayToObject(row, "value");
            ok = list != NULL;
            for (size_t j = 0; ok && j < entry.count; j++) {
                ok = cJSON_AddItemToArray(list, cJSON_CreateString(trpi_config_shown(&entry, j)));
            }
        } else {
            ok = trpi_json_add_text(row, "value", trpi_config_shown(&entry, 0));
        }
        ok = ok && trpi_json_add_text(row, "origin", entry.origin);
    }
    trpi_call_answer_if(call, ok, reply);
}

static void (*const servers[])(trp_node *node, trpi_call *call) = {
    [TRPI_CONTROL_VERSION] = serve_version,
    [TRPI_CONTROL_MEMBERS] = trpi_node_serve_members,
    [TRPI_CONTROL_MEMBER_STATUS] = trpi_node_serve_member_status,
    [TRPI_CONTROL_STATUS] = trpi_node_serve_status,
    [TRPI_CONTROL_JOIN] = trpi_node_serve_join,
    [TRPI_CONTROL_LEAVE] = trpi_node_serve_leave,
    [TRPI_CONTROL_DOWN] = trpi_node_serve_down,
    [TRPI_CONTROL_EVENTS] = trpi_node_serve_events,
    [TRPI_CONTROL_SEND] = trpi_node_serve_send,
    [TRPI_CONTROL_ASK] = trpi_node_serve_ask,
    [TRPI_CONTROL_PING] = trpi_node_serve_ping,
    [TRPI_CONTROL_TREE] = trpi_node_serve_tree,
    [TRPI_CONTROL_CONFIG] = serve_config,
    [TRPI_CONTROL_PEERS] = trpi_node_serve_peers,
    [TRPI_CONTROL_FAULT] = trpi_node_serve_fault,
    [TRPI_CONTROL_WHY] = trpi_node_serve_why,
    [TRPI_CONTROL_SHUTDOWN] = trpi_node_serve_shutdown,
    [TRPI_CONTROL_REACH] = trpi_node_serve_reach,
    [TRPI_CONTROL_SINGLETON] = trpi_node_serve_singleton,
    [TRPI_CONTROL_TOPICS] = trpi_node_serve_topics,
    [TRPI_CONTROL_PUBLISH] = trpi_node_serve_publish,
    [TRPI_CONTROL_SHARDS] = trpi_node_serve_shards,
    [TRPI_CONTROL_ENTITY] = trpi_node_serve_entity,
    [TRPI_CONTROL_DEADLETTERS] = trpi_node_serve_deadletters,
    [TRPI_CONTROL_LOGS] = trpi_node_serve_logs,
    [TRPI_CONTROL_DOCTOR] = trpi_node_serve_doctor,
    [TRPI_CONTROL_STOP] = trpi_node_serve_stop,
    [TRPI_CONTROL_METRICS] = trpi_node_serve_metrics,
    [TRPI_CONTROL_READY] = trpi_node_serve_ready,
    [TRPI_CONTROL_ALIVE] = trpi_node_serve_alive,
    [TRPI_CONTROL_RELOAD] = trpi_node_serve_reload,
    [TRPI_CONTROL_TRACE] = trpi_node_serve_trace,
    [TRPI_CONTROL_TOP] = trpi_node_serve_top,
    [TRPI_CONTROL_DASHBOARD] = trpi_node_serve_dashboard,
    [TRPI_CONTROL_SENDERS] = trpi_node_serve_senders,
    [TRPI_CONTROL_DRAIN] = trpi_node_serve_drain,
    [TRPI_CONTROL_UNDRAIN] = trpi_node_serve_undrain,
    [TRPI_CONTROL_BRIDGE] = trpi_node_serve_bridge,
    [TRPI_CONTROL_UPGRADE] = trpi_node_serve_upgrade,
    [TRPI_CONTROL_SPAWN] = trpi_node_serve_spawn,
    [TRPI_CONTROL_WATCH] = trpi_node_serve_watch,
};

void
trpi_node_command_serve(void *arg, trpi_call *call)
{
    trp_node *node = arg;
    trpi_audit_call(node, call);
    trpi_assert(call->request.command < sizeof servers / sizeof servers[0] &&
                servers[call->request.command] != NULL);
    if (call->request.all_members) {
        trpi_node_serve_all(node, call, servers[call->request.command]);
    } else {
        servers[call->request.command](node, call);
    }
}
