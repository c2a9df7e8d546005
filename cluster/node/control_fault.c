/* control_fault.c - fault: the adapters throttle and gremlin, switched while the node runs.
 *
 * Why.     A test of a cluster wants a bad network without a kernel's help and without privileges.
 * Must hold.
 *   control-fault-I1  without remote.test-adapters nothing of this can be reached (serve)
 * Tests.   tests/unit/node/fault_test.c, tests/system/cli_fake.sh
 * Sources. MNT-02, -07
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/node_private.h"

static const trpi_fault_rule no_fault = TRPI_FAULT_RULE_NONE;

/* "*", "all", an address, system@host:port or host:port. False: refused. */
static bool
peer_parse(trpi_call *call, const char *text, char ret_peer[TRPI_FAULT_PEER_BYTES])
{
    char full[TRPI_ADDRESS_TEXT_BYTES];
    trpi_address address;
    const char *hint = NULL;
    if (strcmp(text, TRPI_FAULT_PEER_ALL) == 0 || strcmp(text, "all") == 0) {
        (void)snprintf(ret_peer, TRPI_FAULT_PEER_BYTES, TRPI_FAULT_PEER_ALL);
        return true;
    }
    int length = snprintf(full, sizeof full, "%s%s",
                          strstr(text, "://") ? ""
                          : strchr(text, '@') ? "troupe.tcp://"
                                              : "troupe.tcp://any@",
                          text);
    if (length < 0 || (size_t)length >= sizeof full ||
        trpi_address_parse(full, &address, NULL, &hint) != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "troupe peers -o name",
                              "'%.256s' is not the name of a peer: %s", text,
                              hint ? hint : "write host:port, an address, or all");
        return false;
    }
    trpi_fault_peer_format(ret_peer, address.host, address.port);
    return true;
}

static enum trpi_fault_direction
direction_of(const char *text)
{
    return strcmp(text, "send") == 0      ? TRPI_FAULT_SEND
           : strcmp(text, "receive") == 0 ? TRPI_FAULT_RECEIVE
                                          : TRPI_FAULT_BOTH;
}

/* Gives the present rules (trpi_free). */
static trpi_fault_entry *
entries_take(trpi_faults *faults, uint32_t *ret_count)
{
    trpi_fault_entry *entries = trpi_alloc(TRPI_FAULT_RULES_MAX * sizeof *entries);
    if (entries) {
        *ret_count = trpi_faults_list(faults, entries, TRPI_FAULT_RULES_MAX);
    }
    return entries;
}

static trp_err
clear_all(trpi_faults *faults)
{
    uint32_t count = 0;
    trpi_fault_entry *entries = entries_take(faults, &count);
    for (uint32_t i = 0; i < count; i++) {
        (void)trpi_faults_set(faults, entries[i].peer, TRPI_FAULT_BOTH,
                              &no_fault); /* removing a rule never fails */
    }
    trpi_free(entries);
    return entries ? TRP_OK : TRP_ENOMEM;
}

static bool
rules_add(trpi_faults *faults, cJSON *reply)
{
    char text[TRPI_FAULT_TEXT_BYTES];
    uint32_t count = 0;
    trpi_fault_entry *entries = entries_take(faults, &count);
    cJSON *list = entries ? cJSON_AddArrayToObject(reply, "rules") : NULL;
    bool ok = list != NULL;
    for (uint32_t i = 0; ok && i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        ok = trpi_json_add_text(row, "peer", entries[i].peer) &&
             trpi_json_add_text(row, "send", trpi_fault_rule_format(&entries[i].send, text)) &&
             trpi_json_add_text(row, "receive", trpi_fault_rule_format(&entries[i].receive, text));
        ok = trpi_json_append(list, row, ok);
    }
    trpi_free(entries);
    return ok;
}

static void
rules_answer(trp_node *node, trpi_call *call, trpi_faults *faults, uint32_t cut)
{
    trpi_faults_stats stats;
    trpi_faults_stats_get(faults, &stats);
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_i64(reply, "cut", cut) && rules_add(faults, reply) &&
              trpi_json_add_i64(reply, "passed", (int64_t)stats.passed) &&
              trpi_json_add_i64(reply, "lost", (int64_t)stats.lost) &&
              trpi_json_add_i64(reply, "repeated", (int64_t)stats.repeated) &&
              trpi_json_add_i64(reply, "delayed", (int64_t)stats.delayed) &&
              trpi_json_add_i64(reply, "cutBytes", (int64_t)stats.cut_bytes);
    trpi_call_answer_if(call, ok, reply);
}

void
trpi_node_serve_fault(trp_node *node, trpi_call *call)
{
    const trpi_control_request *request = &call->request;
    trpi_faults *faults = trpi_remote_faults(node->remote);
    char peer[TRPI_FAULT_PEER_BYTES] = "", why[TRPI_FAULT_TEXT_BYTES];
    trpi_fault_rule rule = no_fault;
    uint32_t cut = 0;
    trp_err err = TRP_OK;
    if (!faults) { /* control-fault-I1 */
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_PERMISSION,
                              "start the node with --set remote.test-adapters=on",
                              "remote.test-adapters is off: this node's network cannot be "
                              "disturbed");
        return;
    }
    if (request->path && !peer_parse(call, request->path, peer)) {
        return;
    }
    if (strcmp(request->action, "set") == 0 &&
        trpi_fault_rule_parse(request->rule, &rule, why) != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "troupe fault --help", "%s", why);
        return;
    }
    if (strcmp(request->action, "list") != 0 && trpi_call_wanted(call) != TRP_OK) {
        trpi_call_refuse_order(call, TRP_ECANCELED, "fault");
        return;
    }
    if (strcmp(request->action, "disconnect") == 0) {
        cut = trpi_faults_disconnect(faults, peer);
    } else if (strcmp(request->action, "list") != 0) {
        err = *peer ? trpi_faults_set(faults, peer, direction_of(request->direction), &rule)
                    : clear_all(faults);
    }
    if (err != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_INTERNAL, "troupe fault clear",
                              "no rule was set for %s: %s", peer, trp_strerror(err));
        return;
    }
    if (strcmp(request->action, "list") != 0) {
        trpi_log(node->system, TRP_LOG_WARNING, "node",
                 "test adapters: %s peer=%s direction=%s rule=\"%s\"", request->action,
                 *peer ? peer : TRPI_FAULT_PEER_ALL, request->direction,
                 trpi_fault_rule_format(&rule, why));
    }
    rules_answer(node, call, faults, cut);
}

bool
trpi_node_fault_text(trp_node *node, const trpi_address *peer,
                     char out[2 * TRPI_FAULT_TEXT_BYTES + 32])
{
    char name[TRPI_FAULT_PEER_BYTES], send[TRPI_FAULT_TEXT_BYTES], receive[TRPI_FAULT_TEXT_BYTES];
    trpi_fault_entry entry;
    trpi_faults *faults = trpi_remote_faults(node->remote);
    trpi_fault_peer_format(name, peer->host, peer->port);
    if (!faults || !trpi_faults_find(faults, name, &entry)) {
        return false;
    }
    (void)snprintf(out, 2 * TRPI_FAULT_TEXT_BYTES + 32, "send %s, receive %s",
                   trpi_fault_rule_format(&entry.send, send),
                   trpi_fault_rule_format(&entry.receive, receive));
    return true;
}
