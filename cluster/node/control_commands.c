/* control_commands.c - the table of commands and the functions that serve them, and the two
 * smallest of these. */
#include <unistd.h>

#include "base/assert.h"
#include "cluster/node/node_private.h"

bool
trpi_node_command_is_quick(trpi_control_command command)
{
    switch (command) {
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
        return true;
    case TRPI_CONTROL_JOIN:
    case TRPI_CONTROL_LEAVE:
    case TRPI_CONTROL_DOWN:
    case TRPI_CONTROL_DRAIN:
    case TRPI_CONTROL_UNDRAIN:
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
    case TRPI_CONTROL_STOP:
    case TRPI_CONTROL_READY:
    case TRPI_CONTROL_RELOAD:
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

/* Serve the commands that are not about the membership's statuses. */
static void
serve_service(trp_node *node, trpi_call *call)
{
    switch (call->request.command) {
    case TRPI_CONTROL_FAULT:
        trpi_node_serve_fault(node, call);
        return;
    case TRPI_CONTROL_DRAIN:
        trpi_node_serve_drain(node, call);
        return;
    case TRPI_CONTROL_UNDRAIN:
        trpi_node_serve_undrain(node, call);
        return;
    case TRPI_CONTROL_PUBLISH:
        trpi_node_serve_publish(node, call);
        return;
    case TRPI_CONTROL_TOPICS:
        trpi_node_serve_topics(node, call);
        return;
    case TRPI_CONTROL_SHARDS:
        trpi_node_serve_shards(node, call);
        return;
    case TRPI_CONTROL_ENTITY:
        trpi_node_serve_entity(node, call);
        return;
    case TRPI_CONTROL_DEADLETTERS:
        trpi_node_serve_deadletters(node, call);
        return;
    case TRPI_CONTROL_LOGS:
        trpi_node_serve_logs(node, call);
        return;
    case TRPI_CONTROL_DOCTOR:
        trpi_node_serve_doctor(node, call);
        return;
    case TRPI_CONTROL_STOP:
        trpi_node_serve_stop(node, call);
        return;
    case TRPI_CONTROL_METRICS:
        trpi_node_serve_metrics(node, call);
        return;
    case TRPI_CONTROL_RELOAD:
        trpi_node_serve_reload(node, call);
        return;
    case TRPI_CONTROL_TRACE:
        trpi_node_serve_trace(node, call);
        return;
    case TRPI_CONTROL_TOP:
        trpi_node_serve_top(node, call);
        return;
    case TRPI_CONTROL_REACH:
        trpi_node_serve_reach(node, call);
        return;
    case TRPI_CONTROL_WHY:
        trpi_node_serve_why(node, call);
        return;
    case TRPI_CONTROL_READY:
        trpi_node_serve_ready(node, call);
        return;
    case TRPI_CONTROL_ALIVE:
        trpi_node_serve_alive(node, call);
        return;
    default:
        trpi_node_serve_singleton(node, call);
        return;
    }
}

void
trpi_node_command_serve(void *arg, trpi_call *call)
{
    trp_node *node = arg;
    trpi_audit_call(node, call);
    switch (call->request.command) {
    case TRPI_CONTROL_VERSION:
        serve_version(node, call);
        return;
    case TRPI_CONTROL_MEMBERS:
        trpi_node_serve_members(node, call);
        return;
    case TRPI_CONTROL_MEMBER_STATUS:
        trpi_node_serve_member_status(node, call);
        return;
    case TRPI_CONTROL_STATUS:
        trpi_node_serve_status(node, call);
        return;
    case TRPI_CONTROL_JOIN:
        trpi_node_serve_join(node, call);
        return;
    case TRPI_CONTROL_LEAVE:
        trpi_node_serve_leave(node, call);
        return;
    case TRPI_CONTROL_DOWN:
        trpi_node_serve_down(node, call);
        return;
    case TRPI_CONTROL_SHUTDOWN:
        trpi_node_serve_shutdown(node, call);
        return;
    case TRPI_CONTROL_EVENTS:
        trpi_node_serve_events(node, call);
        return;
    case TRPI_CONTROL_SEND:
        trpi_node_serve_send(node, call);
        return;
    case TRPI_CONTROL_ASK:
        trpi_node_serve_ask(node, call);
        return;
    case TRPI_CONTROL_PING:
        trpi_node_serve_ping(node, call);
        return;
    case TRPI_CONTROL_TREE:
        trpi_node_serve_tree(node, call);
        return;
    case TRPI_CONTROL_CONFIG:
        serve_config(node, call);
        return;
    case TRPI_CONTROL_PEERS:
        trpi_node_serve_peers(node, call);
        return;
    case TRPI_CONTROL_FAULT:
    case TRPI_CONTROL_WHY:
    case TRPI_CONTROL_DRAIN:
    case TRPI_CONTROL_UNDRAIN:
    case TRPI_CONTROL_REACH:
    case TRPI_CONTROL_SINGLETON:
    case TRPI_CONTROL_TOPICS:
    case TRPI_CONTROL_PUBLISH:
    case TRPI_CONTROL_SHARDS:
    case TRPI_CONTROL_ENTITY:
    case TRPI_CONTROL_DEADLETTERS:
    case TRPI_CONTROL_LOGS:
    case TRPI_CONTROL_DOCTOR:
    case TRPI_CONTROL_STOP:
    case TRPI_CONTROL_METRICS:
    case TRPI_CONTROL_READY:
    case TRPI_CONTROL_ALIVE:
    case TRPI_CONTROL_RELOAD:
    case TRPI_CONTROL_TRACE:
    case TRPI_CONTROL_TOP:
        serve_service(node, call);
        return;
    }
    trpi_assert(false && "a command without a server");
}
