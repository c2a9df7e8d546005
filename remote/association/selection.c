/* selection.c - selections of another node: encoded, and appended to a lane.
 *
 * Must hold.
 *   selection-S1  A selection is for any incarnation of its node, and may wait for the first; one
 *       with a trace section is for the incarnation that has announced that it takes them.
 * Tests. tests/unit/remote/remote_test.c, traced_test.c
 */
#include "remote/association/route.h"

#include <string.h>

#include "remote/association/conn.h"
#include "remote/association/refusal.h"

/* Encode a selection. *uid: the incarnation that it is for, which takes the trace of msg; 0:
 * any. */
static trp_err
selection_encode(trpi_remote *remote, const trpi_peer *peer, const char *path, trp_ref sender,
                 const trp_msg *msg, uint64_t *uid, trpi_buffer *out)
{
    const trp_type *type = trp_msg_type(msg);
    trpi_node_map map;
    map.sending = TRPI_NODE_SELF;
    map.receiving = UINT32_MAX; /* any incarnation: none is "the receiver" */
    map.serializers = remote->serializers;
    map.arg = remote;
    map.get = trpi_route_node_get;
    trpi_message message = { 0 };
    message.path = path;
    message.path_bytes = strlen(path);
    message.sender = sender;
    message.type = type;
    message.wire_id = trpi_type_wire_id(type->number);
    message.payload = trp_msg_payload(msg);
    message.payload_bytes = trp_msg_bytes(msg);
    *uid = *uid != 0 ? trpi_selection_trace(remote->system, peer, msg, &message.trace) : 0;
    message.traced = *uid != 0;
    message.anyone = *uid == 0;
    return trpi_message_encode(out, trpi_serializers_for(remote->serializers, type), &map,
                               trpi_agreed_frame_bytes_max(&peer->agreed), &message);
}

/* Append it to the peer's lane, with the trace of msg if traced says so. TRP_ECLOSED: the
 * incarnation that takes the trace has just been replaced. */
static trp_err
selection_append(trpi_remote *remote, trpi_peer *peer, const char *path, trp_ref sender,
                 const trp_msg *msg, bool traced)
{
    uint64_t uid = traced ? 1 : 0;
    trpi_buffer frames = { 0 };
    trp_err err = selection_encode(remote, peer, path, sender, msg, &uid, &frames);
    if (err == TRP_OK) {
        trpi_deferred deferred = { 0 };
        pthread_mutex_lock(&peer->lock);
        err = atomic_load_explicit(&remote->stopping, memory_order_relaxed) ? TRP_ECONN
              : trpi_is_barred_now(peer)
                  ? TRP_EQUARANTINED
                  : trpi_peer_append(peer, TRPI_LANE_ORDINARY, uid, &frames, false);
        trpi_peer_pump(peer, &deferred);
        trpi_peer_unlock(peer, &deferred);
    }
    trpi_buffer_fini(&frames);
    return err;
}

trp_err
trpi_selection_append(trpi_remote *remote, trpi_peer *peer, const char *path, trp_ref sender,
                      const trp_msg *msg)
{
    trp_err err = selection_append(remote, peer, path, sender, msg, true);
    return err == TRP_ECLOSED ? selection_append(remote, peer, path, sender, msg, false) : err;
}
