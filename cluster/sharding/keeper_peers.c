/* keeper_peers.c - the other nodes: their gates, and what the cluster says about them.
 *
 * Shape.   A hello (kind 1 byte, slot 4, generation 4) tells a node's gate; kind 1 wants one back.
 * Must hold.
 *   keeper-peers-P1  A removed node is kept until its take-over time is over, for until then it may
 *       run what it hosted, and until the engines were told that it is: a member that vanishes
 *       without that word is waited for.
 * Tests.   tests/sim/entities_test.c, tests/multinode/once.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/wire.h"
#include "cluster/engine/age.h"
#include "cluster/engine/membership.h"
#include "cluster/sharding/keeper.h"
#include "cluster/shell/exclusive.h"
#include "cluster/shell/snapshot.h"

enum { ASK_AGAIN_MS = 1000, GONE_SLACK_MS = 50 };

static bool
is_same(const trpi_node_id *a, const trpi_node_id *b)
{
    return a->uid == b->uid && trpi_address_compare(&a->address, &b->address) == 0;
}

trpi_keeper_peer *
trpi_keeper_peer_find(trpi_keeper *keeper, const trpi_node_id *id)
{
    for (uint32_t i = 0; i < keeper->peers_count; i++) {
        if (is_same(&keeper->peers[i].id, id)) {
            return &keeper->peers[i];
        }
    }
    return NULL;
}

static trpi_keeper_peer *
peer_add(trpi_keeper *keeper, const trpi_node_id *id)
{
    trpi_keeper_peer *peer = trpi_keeper_peer_find(keeper, id);
    if (peer != NULL) {
        return peer;
    }
    trpi_keeper_peer *peers =
        trpi_realloc(keeper->peers, (keeper->peers_count + 1) * sizeof *peers);
    if (peers == NULL) {
        return NULL;
    }
    keeper->peers = peers;
    peer = &peers[keeper->peers_count++];
    memset(peer, 0, sizeof *peer);
    peer->id = *id;
    if (is_same(id, &keeper->self)) {
        peer->gate = keeper->sharding->gate;
    }
    return peer;
}

static void
hello_send(const trpi_keeper *keeper, const trpi_node_id *to, uint8_t kind)
{
    uint8_t bytes[TRPI_HELLO_BYTES] = { kind };
    trpi_put_u32(bytes + 1, keeper->sharding->gate.slot);
    trpi_put_u32(bytes + 5, keeper->sharding->gate.generation);
    /* a lost one is asked for again */
    (void)trpi_remote_control_send(keeper->remote, to, TRPI_CHANNEL_SHARDING, bytes, sizeof bytes);
}

bool
trpi_keeper_hello(trpi_keeper *keeper, const trpi_node_id *from, const uint8_t *bytes, size_t count)
{
    trpi_keeper_peer *peer = trpi_keeper_peer_find(keeper, from);
    uint32_t node;
    if (count < TRPI_HELLO_BYTES) {
        return false;
    }
    if (bytes[0] == TRPI_HELLO_ASKS) {
        hello_send(keeper, from, TRPI_HELLO_ANSWERS);
    }
    if (peer == NULL || !trp_ref_is_none(peer->gate) ||
        trpi_node_meet(keeper->system, from, &node) != TRP_OK) {
        return false;
    }
    peer->gate = (trp_ref){ node, trpi_get_u32(bytes + 1), trpi_get_u32(bytes + 5), 0 };
    return true;
}

/* When the peer is to be asked for its gate; NEVER: it is known, or nobody needs it. */
static uint64_t
ask_ms(const trpi_keeper *keeper, const trpi_keeper_peer *peer)
{
    return keeper->types == NULL || !peer->present || !trp_ref_is_none(peer->gate)
               ? TRPI_REGION_NEVER
           : peer->asked_ms == 0 ? 0
                                 : peer->asked_ms + ASK_AGAIN_MS;
}

void
trpi_keeper_peers_ask(trpi_keeper *keeper)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper);
    for (uint32_t i = 0; i < keeper->peers_count; i++) {
        trpi_keeper_peer *peer = &keeper->peers[i];
        if (ask_ms(keeper, peer) <= now_ms) {
            peer->asked_ms = now_ms;
            hello_send(keeper, &peer->id, TRPI_HELLO_ASKS);
        }
    }
}

uint64_t
trpi_keeper_asks_ms(const trpi_keeper *keeper)
{
    uint64_t next_ms = TRPI_REGION_NEVER;
    for (uint32_t i = 0; i < keeper->peers_count; i++) {
        uint64_t at_ms = ask_ms(keeper, &keeper->peers[i]);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms;
}

/* When a removed node may be taken over, as the cluster says now. */
static uint64_t
takeover_at(const trpi_keeper *keeper, const trpi_keeper_peer *peer)
{
    uint64_t in_ms = TRPI_EXCLUSIVE_NEVER;
    trp_err err =
        trpi_exclusive_takeover_ms(keeper->system, peer->last.address, peer->id.uid, &in_ms);
    return err != TRP_OK || in_ms == TRPI_EXCLUSIVE_NEVER ? UINT64_MAX
                                                          : trpi_keeper_now_ms(keeper) + in_ms;
}

bool
trpi_keeper_peers_gone(trpi_keeper *keeper)
{
    bool sooner = false;
    for (uint32_t i = 0; keeper->gone && i < keeper->peers_count; i++) {
        trpi_keeper_peer *peer = &keeper->peers[i];
        uint64_t at_ms = peer->removed ? takeover_at(keeper, peer) : peer->takeover_ms;
        sooner = sooner || at_ms + GONE_SLACK_MS < peer->takeover_ms ||
                 (peer->removed && at_ms <= trpi_keeper_now_ms(keeper));
    }
    return sooner;
}

void
trpi_keeper_peers_update(trpi_keeper *keeper)
{
    trpi_cluster_snapshot *view;
    if (trpi_cluster_snapshot_get(keeper->cluster, &view) != TRP_OK) {
        return;
    }
    for (uint32_t i = 0; i < keeper->peers_count; i++) { /* until it is found below */
        trpi_keeper_peer *peer = &keeper->peers[i];
        peer->removed = peer->removed || peer->present;
        peer->present = false;
    }
    for (uint32_t k = 0; k < view->members_count; k++) {
        trpi_aged aged;
        trpi_keeper_peer *peer =
            trpi_aged_of(&view->members[k].member, &aged) ? peer_add(keeper, &aged.id) : NULL;
        if (peer != NULL) {
            peer->present = true;
            peer->removed = false;
            peer->settled = false;
            peer->last = view->members[k].member;
        }
    }
    keeper->gone = false;
    for (uint32_t i = 0; i < keeper->peers_count;) { /* keeper-peers-P1 */
        trpi_keeper_peer *peer = &keeper->peers[i];
        peer->takeover_ms = peer->removed ? takeover_at(keeper, peer) : 0;
        if (!peer->present && (!peer->removed || peer->settled)) {
            keeper->peers[i] = keeper->peers[--keeper->peers_count];
        } else {
            keeper->gone = keeper->gone || peer->removed;
            i++;
        }
    }
    trpi_cluster_snapshot_free(view);
    trpi_keeper_peers_ask(keeper);
}

void
trpi_keeper_peers_settle(trpi_keeper *keeper)
{
    for (uint32_t i = 0; i < keeper->peers_count; i++) {
        trpi_keeper_peer *peer = &keeper->peers[i];
        peer->settled = peer->removed && peer->takeover_ms <= trpi_keeper_now_ms(keeper);
    }
}

trp_err
trpi_keeper_view(trpi_keeper *keeper, const char *role, trpi_shard_member **ret_members,
                 uint32_t *ret_count, trpi_shard_gone **ret_gone, uint32_t *ret_gone_count)
{
    uint64_t now_ms = trpi_keeper_now_ms(keeper);
    trpi_shard_member *members = trpi_alloc((keeper->peers_count + 1) * sizeof *members);
    trpi_shard_gone *gone = trpi_alloc((keeper->peers_count + 1) * sizeof *gone);
    uint32_t count = 0, gone_count = 0;
    if (members == NULL || gone == NULL) {
        trpi_free(members);
        trpi_free(gone);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < keeper->peers_count; i++) {
        const trpi_keeper_peer *peer = &keeper->peers[i];
        bool has_role = role[0] == '\0' || trp_member_has_role(&peer->last, role) != 0;
        if (peer->present) {
            trpi_shard_member *m = &members[count++];
            m->id = peer->id;
            m->up_number = peer->last.up_number;
            m->status = peer->last.status;
            m->has_role = has_role;
            m->drained = trpi_member_has_drained(&peer->last);
            (void)snprintf(m->app_version, sizeof m->app_version, "%s", peer->last.app_version);
        } else {
            uint64_t left_ms = peer->takeover_ms > now_ms ? peer->takeover_ms - now_ms : 0;
            gone[gone_count++] = (trpi_shard_gone){ peer->id, has_role, left_ms };
        }
    }
    *ret_members = members;
    *ret_count = count;
    *ret_gone = gone;
    *ret_gone_count = gone_count;
    return TRP_OK;
}
