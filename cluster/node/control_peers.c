/* control_peers.c - peers: the links of this node, the reason of their state, and what happens
 * next.
 *
 * Key order and names are CONTROL.md's.
 * Tests. tests/unit/node/node_test.c, tests/system/cli_fake.sh
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

enum { ROOM = 16 }; /* for peers that come between counting and copying */

/* Return what the link does next, as a sentence. */
static const char *
next_of(const trpi_peer_info *peer, char *buffer, size_t bytes)
{
    if (strcmp(peer->state, "active") == 0 && peer->problem[0] != '\0') {
        return "messages wait; it is dialled again with back-off";
    }
    if (strcmp(peer->state, "active") == 0 && peer->slow_there > 0) {
        (void)snprintf(buffer, bytes, "messages go at once, but for %" PRIu32 " slow receiver%s",
                       peer->slow_there, peer->slow_there == 1 ? "" : "s");
        return buffer;
    }
    if (strcmp(peer->state, "active") == 0) {
        return "messages go at once";
    }
    if (strcmp(peer->state, "handshaking") == 0) {
        return "the handshake waits for its answer";
    }
    if (strcmp(peer->state, "quarantined") == 0) {
        return "quarantined: only a new incarnation of it is accepted";
    }
    if (peer->next_ms > 0) {
        (void)snprintf(buffer, bytes, "it may be dialled again in %" PRIu64 " ms", peer->next_ms);
        return buffer;
    }
    return "it is dialled with the next message";
}

/* The lanes that were ever used, by the names that docs/wire.md has for them. */
static bool
lanes_add(cJSON *row, const trpi_peer_info *peer)
{
    cJSON *lanes = cJSON_AddArrayToObject(row, "lanes");
    bool ok = lanes != NULL;
    for (int i = 0; ok && i < TRPI_REMOTE_LANES; i++) {
        char name[24];
        if (peer->lanes[i].state == NULL) {
            continue;
        }
        (void)snprintf(name, sizeof name,
                       i == 0                       ? "control"
                       : i == TRPI_REMOTE_LANES - 1 ? "large"
                                                    : "ordinary-%d",
                       i);
        cJSON *lane = cJSON_CreateObject();
        ok = lane != NULL && trpi_json_add_text(lane, "lane", name) &&
             trpi_json_add_text(lane, "state", peer->lanes[i].state) &&
             trpi_json_add_i64(lane, "waitingBytes", (int64_t)peer->lanes[i].waiting_bytes);
        ok = trpi_json_append(lanes, lane, ok);
    }
    return ok;
}

static bool
row_add(trp_node *node, cJSON *list, const trpi_peer_info *peer)
{
    char faults[2 * TRPI_FAULT_TEXT_BYTES + 32];
    bool is_bad = trpi_node_fault_text(node, &peer->id.address, faults);
    char address[TRPI_ADDRESS_TEXT_BYTES], next[80];
    cJSON *row = cJSON_CreateObject();
    bool known = peer->id.uid != 0;
    bool heard = peer->round_trip_us != 0;
    bool ok = row != NULL &&
              trpi_json_add_text(row, "node",
                                 trpi_address_format(&peer->id.address, address, sizeof address)) &&
              (known ? trpi_json_add_u64_string(row, "nodeUid", peer->id.uid)
                     : cJSON_AddNullToObject(row, "nodeUid") != NULL) &&
              trpi_json_add_text(row, "state", peer->state) &&
              trpi_json_add_text(row, "reason",
                                 peer->problem[0] != '\0' ? peer->problem : peer->reason) &&
              trpi_json_add_text(row, "next", next_of(peer, next, sizeof next)) &&
              trpi_json_add_i64(row, "nextMs", (int64_t)peer->next_ms) &&
              (heard ? cJSON_AddNumberToObject(row, "rttMs", (double)peer->round_trip_us / 1000.0)
                     : cJSON_AddNullToObject(row, "rttMs")) != NULL &&
              trpi_json_add_i64(row, "messagesIn", (int64_t)peer->messages_in) &&
              trpi_json_add_i64(row, "messagesOut", (int64_t)peer->messages_out) &&
              trpi_json_add_i64(row, "bytesIn", (int64_t)peer->bytes_in) &&
              trpi_json_add_i64(row, "bytesOut", (int64_t)peer->bytes_out) &&
              trpi_json_add_i64(row, "dropped", (int64_t)peer->dropped) &&
              trpi_json_add_i64(row, "wireMinor", (int64_t)peer->minor) && lanes_add(row, peer) &&
              trpi_json_add_i64(row, "slowThere", (int64_t)peer->slow_there) &&
              trpi_json_add_i64(row, "heldBytes", (int64_t)peer->held_bytes) &&
              trpi_json_add_i64(row, "slowHere", (int64_t)peer->slow_here) &&
              (is_bad ? trpi_json_add_text(row, "faults", faults)
                      : cJSON_AddNullToObject(row, "faults") != NULL);
    return trpi_json_append(list, row, ok);
}

static const trpi_view_member *
member_of(const trpi_view *view, const trpi_peer_info *peer)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&peer->id.address, address, sizeof address);
    for (size_t i = 0; i < view->count; i++) {
        const trpi_view_member *v = &view->members[i];
        if (v != view->self && v->m.status != TRP_MEMBER_DOWN && v->m.reachable &&
            strcmp(v->m.address, address) == 0) {
            return v;
        }
    }
    return NULL;
}

bool
trpi_peers_problem(const trpi_view *view, const trpi_peer_info *peers, size_t count, char *text,
                   size_t bytes)
{
    const trpi_view_member *first = NULL;
    const char *why = "";
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        bool active = strcmp(peers[i].state, "active") == 0;
        /* An association that is idle or handshaking with a reason has failed before. */
        bool again = peers[i].reason[0] != '\0' && (strcmp(peers[i].state, "handshaking") == 0 ||
                                                    strcmp(peers[i].state, "idle") == 0);
        bool tried = again || strcmp(peers[i].state, "gated") == 0;
        const trpi_view_member *member = active || tried ? member_of(view, &peers[i]) : NULL;
        if (active && member != NULL) {
            return false;
        }
        if (member != NULL) {
            why = first == NULL ? peers[i].reason : why;
            first = first == NULL ? member : first;
            failed++;
        }
    }
    if (failed > 0) {
        char more[32] = "";
        if (failed > 1) {
            (void)snprintf(more, sizeof more, " and %zu more", failed - 1);
        }
        (void)snprintf(text, bytes,
                       "no other member can be reached: %s%s: %s (the failure detector has not "
                       "decided yet; see troupe peers)",
                       first->m.address, more, why);
    }
    return failed > 0;
}

void
trpi_node_serve_peers(trp_node *node, trpi_call *call)
{
    trpi_peer_info first;
    size_t count = 0, copied = 0;
    trpi_remote_peers(node->remote, &first, 1, &count);
    size_t room = count + ROOM;
    trpi_peer_info *peers = trpi_alloc(room * sizeof *peers);
    cJSON *reply = trpi_call_reply();
    bool ok = peers != NULL && trpi_json_add_text(reply, "selfNode", node->address);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "peers") : NULL;
    ok = list != NULL;
    if (ok) {
        trpi_remote_peers(node->remote, peers, room, &count);
        copied = count < room ? count : room;
    }
    for (size_t i = 0; ok && i < copied; i++) {
        ok = row_add(node, list, &peers[i]);
    }
    trpi_free(peers);
    trpi_call_answer_if(call, ok, reply);
}
