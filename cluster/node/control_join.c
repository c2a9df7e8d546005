/* control_join.c - join: give the order, then watch the view until this node is Up in it.
 *
 * Shape.   Runs on the call's own thread. The cluster actor gets the order (trp_cluster_join); the
 *          transport knows whether all nodes refuse this one (trpi_remote_is_refused).
 * Tests.   tests/system/cli.sh, tests/system/join.sh
 */
#include <string.h>

#include "cluster/node/control_change.h"
#include "cluster/node/node_private.h"

static bool
addresses_check(trp_node *node, trpi_call *call)
{
    const trpi_address *self = &trpi_system_self(node->system)->address;
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        const char *text = call->request.addresses[i], *hint = NULL;
        trpi_address address;
        if (trpi_address_parse(text, &address, NULL, &hint) != TRP_OK) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL, "'%.256s' is not an address: %s",
                                  text, hint ? hint : "write troupe.tcp://system@host:port");
            return false;
        }
        if (strcmp(address.system, self->system) != 0 ||
            strcmp(address.protocol, self->protocol) != 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, NULL,
                                  "%s: this node is %s://%s, it cannot join another "
                                  "system or protocol",
                                  text, self->protocol, self->system);
            return false;
        }
        if (trpi_host_is_loopback(address.host) != trpi_host_is_loopback(self->host)) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_CONFIG, "start it again with --host",
                                  "this node is %s, and %.256s is not as far: " TRPI_LOOPBACK_HELP,
                                  self->host, text);
            return false;
        }
    }
    return true;
}

static void
join_answer(trp_node *node, trpi_call *call, const trpi_view_member *self)
{
    cJSON *reply = trpi_call_reply();
    bool ok =
        trpi_json_add_text(reply, "node", node->address) &&
        trpi_json_add_text(reply, "status",
                           trp_member_status_name(self ? self->m.status : TRP_MEMBER_REMOVED)) &&
        (self && self->m.up_number ? trpi_json_add_i64(reply, "upNumber", self->m.up_number)
                                   : cJSON_AddNullToObject(reply, "upNumber") != NULL) &&
        trpi_call_add_elapsed(call, reply);
    trpi_call_answer_if(call, ok, reply);
}

/* Count the failed attempts at each address; false: not all of them refused the last one for a
 * certificate or a cookie, or were refused by this node. */
static bool
join_attempts(trp_node *node, const trpi_call *call, uint32_t attempts[TRPI_CONTROL_ADDRESSES_MAX],
              char *ret_reason, size_t reason_bytes)
{
    bool refused = true;
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        trpi_address address; /* addresses_check() has read it before */
        refused = trpi_address_parse(call->request.addresses[i], &address, NULL, NULL) == TRP_OK &&
                  trpi_remote_is_refused(node->remote, &address, &attempts[i], ret_reason,
                                         reason_bytes) &&
                  refused;
    }
    return refused;
}

/* All nodes refuse this one, or it refuses them: nothing changes by itself. */
static bool
join_is_refused(trp_node *node, trpi_call *call, const uint32_t before[TRPI_CONTROL_ADDRESSES_MAX])
{
    uint32_t attempts[TRPI_CONTROL_ADDRESSES_MAX] = { 0 };
    char reason[256];
    bool refused = join_attempts(node, call, attempts, reason, sizeof reason);
    for (size_t i = 0; i < call->request.addresses_count; i++) {
        refused = refused && attempts[i] > before[i]; /* since the order */
    }
    if (refused) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_PERMISSION, "troupe peers",
                              "%s: %s; the node keeps trying", call->request.addresses[0], reason);
    }
    return refused;
}

/* Check the view once. true: done, answered. */
static bool
join_look(trp_node *node, trpi_call *call, uint32_t *last_status, char why[TRPI_SEEK_WHY_BYTES])
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return true;
    }
    const trpi_view_member *self = view.self;
    uint32_t status = self ? self->m.status : 0;
    bool done = status == TRP_MEMBER_UP || (!call->request.wait) || status > TRP_MEMBER_UP;
    if (done) {
        join_answer(node, call, self);
    } else if (status != *last_status) {
        trpi_call_progress(call, "%s, %zu members", trp_member_status_name(status), view.count);
    }
    if (!done && status == 0 && strcmp(why, view.seeking_why) != 0) {
        memcpy(why, view.seeking_why, TRPI_SEEK_WHY_BYTES);
        trpi_call_progress(call, "%s", why);
    }
    *last_status = status;
    trpi_view_fini(&view);
    return done;
}

void
trpi_node_serve_join(trp_node *node, trpi_call *call)
{
    trp_member self;
    uint32_t last_status = 0, before[TRPI_CONTROL_ADDRESSES_MAX] = { 0 };
    char ignored[8], why[TRPI_SEEK_WHY_BYTES] = "";
    if (!addresses_check(node, call)) {
        return;
    }
    (void)join_attempts(node, call, before, ignored, sizeof ignored);
    if (trp_cluster_self(node->system, &self) == TRP_OK && self.status != 0) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe members",
                              "already a member of the cluster, as %s (%s)", self.address,
                              trp_member_status_name(self.status));
        return;
    }
    trpi_cluster_patience patience = trpi_call_patience(call);
    trp_err err = trpi_cluster_join_and_wait(node->cluster, call->request.addresses,
                                             call->request.addresses_count, &patience);
    if (err != TRP_OK) {
        trpi_call_refuse_order(call, err, "join");
        return;
    }
    if (call->request.wait) {
        trpi_call_confirm(call);
        trpi_call_progress(call, "asking %s", call->request.addresses[0]);
    }
    while (!join_look(node, call, &last_status, why)) {
        if (trpi_call_left_ms(call) == 0) {
            if (last_status == 0 && why[0] != '\0') {
                trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "troupe peers",
                                      "not let in after %.0f s: %s; the node keeps trying",
                                      trpi_call_elapsed_ms(call) / 1000, why);
                return;
            }
            trpi_call_refuse_text(
                call, TRPI_CTL_EXIT_TIMEOUT, last_status ? "troupe members" : NULL,
                last_status ? "still %s after %.0f s; the node keeps joining"
                            : "%s has not answered after %.0f s; the node keeps trying",
                last_status ? trp_member_status_name(last_status) : call->request.addresses[0],
                trpi_call_elapsed_ms(call) / 1000);
            return;
        }
        if (last_status == 0 && join_is_refused(node, call, before)) {
            return;
        }
        if (!trpi_call_look_again(call)) {
            return;
        }
    }
}
