/* signal.c - from the actor room to the numbered stream of a peer: watches, orders to actors there.
 *
 * Must hold.
 *   signal-I1  A message for one incarnation is numbered for it, or waits until that one is met.
 * Limits. system_messages_max, TRPI_SYSTEM_TAILS_BYTES_MAX: one more is the loss of the node
 * Tests.  tests/unit/remote/remote_test.c, incarnation_test.c, deployment_test.c
 */
#include "remote/association/route.h"

#include <string.h>

#include "remote/association/peer.h"
#include "remote/wire/deployment.h"

/* So that the tick finds a watched node before a handshake succeeded. The caller holds
 * peer->lock. */
static void
node_number_keep(trpi_peer *peer, uint32_t node, uint64_t uid)
{
    trpi_node_id id = { *trpi_peer_address(peer), uid };
    uint32_t kept = 0; /* one that was only named gives way no more */
    if (trpi_peer_node_hint(peer) == 0 &&
        trpi_node_intern(trpi_peer_remote(peer)->system, &id, &kept) == TRP_OK && kept == node &&
        !trpi_node_has_ended(trpi_peer_remote(peer)->system, node)) {
        trpi_peer_number(peer, node);
    }
}

/* Append to the numbered stream, or, while another incarnation has that, to the waiting messages.
 * The caller holds peer->lock. */
static void
signal_push(trpi_peer *peer, uint32_t node, uint64_t uid, const uint8_t *body,
            const trpi_buffer *tail)
{
    uint64_t now_ms = trpi_remote_now_ms(trpi_peer_remote(peer));
    trp_err err;
    if (trpi_peer_stream_uid(peer) == 0 && trpi_waiting_count(&peer->waiting) == 0) {
        trpi_peer_stream_begin(peer, uid);
    }
    if (trpi_peer_stream_uid(peer) != uid) {
        err = trpi_waiting_add_tail(&peer->waiting,
                                    trpi_peer_remote(peer)->options.system_messages_max, uid,
                                    now_ms, body, tail->data, (uint32_t)tail->count);
    } else {
        node_number_keep(peer, node, uid);
        err = trpi_redelivery_push_tail(&peer->redelivery, now_ms, body, tail->data,
                                        (uint32_t)tail->count);
    }
    if (err != TRP_OK) {
        trpi_peer_overflowed(peer, uid);
    }
}

/* The peer of a node number, pinned; NULL: there is none, or no memory for one more: nothing can be
 * said to it. */
static trpi_peer *
peer_of_node(trpi_remote *remote, uint32_t node, const trpi_node_id **ret_id)
{
    trpi_peer *peer = NULL;
    *ret_id = trpi_node_id_get(remote->system, node);
    return *ret_id == NULL || trpi_route_address_check(remote, &(*ret_id)->address) == TRP_EINVAL ||
                   trpi_peer_get(remote, &(*ret_id)->address, true, &peer) != TRP_OK
               ? NULL
               : peer;
}

/* An actor more is made there only while half of what may be unacknowledged is left for what
 * cannot wait: its overflow is the loss of the node. The caller holds peer->lock. */
static bool
has_room_to_deploy(const trpi_peer *peer, const trpi_buffer *tail)
{
    uint64_t count =
        trpi_redelivery_unacked(&peer->redelivery) + trpi_waiting_count(&peer->waiting);
    uint64_t bytes = trpi_redelivery_tails_bytes(&peer->redelivery) +
                     trpi_waiting_tails_bytes(&peer->waiting) + tail->count;
    return trpi_redelivery_is_half_free(&peer->redelivery, count, bytes);
}

/* Errors: TRP_EAGAIN. */
static trp_err
signal_send(trpi_remote *remote, trpi_peer *peer, const trpi_node_id *id, uint32_t node,
            const trpi_system_message *message, const trpi_buffer *tail)
{
    uint8_t body[TRPI_SYSTEM_BODY_BYTES];
    trpi_deferred deferred = { 0 };
    trp_err err = TRP_OK;
    trpi_system_body_encode(body, message);
    pthread_mutex_lock(&peer->lock);
    if (id->uid == 0 || trpi_assoc_is_barred(&peer->assoc, id->uid) ||
        trpi_address_equal(&id->address, &remote->address)) {
        if (message->signal == TRPI_SIGNAL_WATCH) {
            trpi_peer_end_again(peer, id->uid); /* the tick tells the watcher, not this worker */
        }
    } else if (message->signal == TRPI_SIGNAL_DEPLOY && !has_room_to_deploy(peer, tail)) {
        err = TRP_EAGAIN;
    } else {
        signal_push(peer, node, id->uid, body, tail);
        if (!atomic_load_explicit(&remote->stopped, memory_order_relaxed)) {
            trpi_peer_pump(peer, &deferred);
        }
    }
    trpi_peer_unlock(peer, &deferred);
    return err;
}

void
trpi_signal_send(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                 trp_ref target, trp_ref from, uint32_t flag)
{
    static const trpi_buffer none = { 0 };
    const trpi_node_id *id;
    trpi_peer *peer = peer_of_node(arg, node, &id);
    trpi_system_message message = { .signal = (uint8_t)signal,
                                    .flag = (uint8_t)flag,
                                    .to_slot = target.slot,
                                    .to_generation = target.generation,
                                    .from_slot = from.slot,
                                    .from_generation = from.generation };
    if (peer != NULL) {
        (void)signal_send(arg, peer, id, node, &message, &none); /* never too much */
        trpi_peer_unpin(peer);
    } else if (signal == TRPI_SIGNAL_WATCH) { /* its end would never be told */
        trpi_inbound_signal(system, TRPI_SIGNAL_TERMINATED, from, target, 0);
    }
}

/* Encode the tail of a remote command, for one node, or for any (node 0). */
static trp_err
order_encode(trpi_remote *remote, const trpi_peer *peer, uint32_t node, const trpi_order *order,
             trpi_buffer *tail)
{
    trpi_node_map map;
    memset(&map, 0, sizeof map);
    map.sending = TRPI_NODE_SELF;
    map.receiving = node != 0 ? node : UINT32_MAX;
    map.serializers = remote->serializers;
    map.arg = remote;
    map.get = trpi_route_node_get;
    if (peer != NULL && (trpi_agreed_features(&peer->agreed) & TRPI_FEATURE_DEPLOY) == 0) {
        return TRP_EUNSUPPORTED;
    }
    if (order->deploy != NULL) {
        if (remote->options.untrusted) {
            return TRP_EUNSUPPORTED; /* the answer would be dropped here, as all that manages */
        }
        return trpi_deploy_encode(remote->serializers, &map, order->deploy, tail);
    }
    return trpi_failure_encode(order->failure, tail);
}

trp_err
trpi_signal_order(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                  trp_ref target, trp_ref from, const trpi_order *order)
{
    trpi_remote *remote = arg;
    const trpi_node_id *id = NULL;
    trpi_peer *peer = node == 0 ? NULL : peer_of_node(remote, node, &id);
    trpi_system_message message = { .signal = (uint8_t)signal,
                                    .to_slot = target.slot,
                                    .to_generation = target.generation,
                                    .from_slot = from.slot,
                                    .from_generation = from.generation };
    trpi_buffer tail = { 0 };
    trp_err err =
        node != 0 && peer == NULL ? TRP_ECONN : order_encode(remote, peer, node, order, &tail);
    (void)system;
    if (err == TRP_OK && peer != NULL) {
        bool fits =
            tail.count + TRPI_SYSTEM_FRAME_BYTES <= trpi_agreed_frame_bytes_max(&peer->agreed);
        err = fits ? signal_send(remote, peer, id, node, &message, &tail) : TRP_EMSGSIZE;
    }
    trpi_buffer_fini(&tail);
    trpi_peer_unpin(peer);
    return err;
}

bool
trpi_signal_is_connected(void *arg, trp_system *system, uint32_t node)
{
    const trpi_node_id *id;
    trpi_peer *peer = peer_of_node(arg, node, &id);
    (void)system;
    bool is = peer != NULL && id->uid != 0 && trpi_peer_seems_active_as(peer, id->uid);
    trpi_peer_unpin(peer);
    return is;
}
