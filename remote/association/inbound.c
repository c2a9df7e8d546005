/* inbound.c - frames of a connection that is ready: delivered, answered, or dropped.
 *
 * Must hold.
 *   remote-inbound-B1  A lane delivers in the order of its sender, also across a change of
 *       connection: frames of an older LANE_OPEN are dropped once a newer one was seen, and
 *       deliveries of a lane hold its recv lock.
 *   remote-inbound-B2  Only frames of the incarnation that is proved now are delivered.
 *   remote-inbound-B3  A body that makes no sense is counted and dropped alone; the association
 *       lives. Only frames that break the protocol's order end the connection.
 *   remote-inbound-B4  Reading never waits for a receiver: messages above its limit are dead
 *       letters. (receiver.c)
 * Tests.  tests/unit/remote/remote_test.c, garbage_test.c, pressure_test.c
 */
#include "remote/association/inbound.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/payload.h"
#include "base/wire.h"
#include "pattern/pattern.h"
#include "remote/association/clients.h"
#include "remote/association/conn.h"
#include "remote/association/hold.h"
#include "remote/association/route.h"
#include "remote/wire/compress.h"
#include "remote/wire/deployment.h"

/* remote-inbound-B2. State that belongs to an incarnation is changed with peer->lock held, and so
 * is this asked before: the end of an incarnation and the beginning of the next one take that
 * lock. */
static bool
is_of_proved(const trpi_conn *conn)
{
    return trpi_conn_uid(conn) == trpi_peer_proved_uid(trpi_conn_peer(conn));
}

/* Messages of one read are pushed together at its end. */
static bool
batch_begin(trpi_conn *conn)
{
    trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    if (conn->read.ctx == NULL) {
        pthread_mutex_lock(&lane->recv_lock);
        conn->read.ctx = trpi_inbound_begin(trpi_conn_remote(conn)->system);
    }
    return conn->read.epoch != 0 &&
           conn->read.epoch ==
               /* remote-inbound-B1 */
               trpi_lane_recv_epoch(lane) &&
           is_of_proved(conn);
}

/* The same, for a frame that is dropped if not; counts those. */
static bool
is_taken(trpi_conn *conn)
{
    bool taken = batch_begin(conn);
    trpi_count(&trpi_conn_remote(conn)->stats.frames_stale, !taken);
    return taken;
}

static void
send_control(trpi_conn *conn, enum trpi_frame_kind kind, uint64_t number)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_deferred deferred = { 0 };
    trpi_buffer frames = { 0 };
    uint8_t body[8];
    trpi_put_u64(body, number);
    pthread_mutex_lock(&peer->lock);
    if (trpi_frame_append(&frames, kind, 0, 0, body, sizeof body) == TRP_OK) {
        /* full: it is asked for again */
        (void)trpi_peer_append(peer, TRPI_LANE_CONTROL, trpi_conn_uid(conn), &frames, false);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    trpi_buffer_fini(&frames);
}

void
trpi_inbound_batch_end(trpi_conn *conn)
{
    if (conn->read.ctx != NULL) {
        trpi_inbound_end(conn->read.ctx);
        conn->read.ctx = NULL;
        pthread_mutex_unlock(&trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)].recv_lock);
    }
    if (conn->read.ack_due) {
        conn->read.ack_due = false;
        pthread_mutex_lock(&trpi_conn_peer(conn)->lock);
        uint64_t expected = trpi_redelivery_expected(&trpi_conn_peer(conn)->redelivery);
        pthread_mutex_unlock(&trpi_conn_peer(conn)->lock);
        send_control(conn, TRPI_FRAME_ACK, expected);
    }
}

void
trpi_inbound_decode_error(trpi_conn *conn, const char *what, uint64_t wire_id)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    uint32_t suppressed = 0;
    trpi_count(&remote->stats.decode_errors, 1);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_DECODE, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "message dropped peer=%s reason=\"%s\" type-id=%016" PRIx64 " suppressed=%u",
                 trpi_conn_peer_text(conn), what, wire_id, suppressed);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static const trp_type *
type_of(trpi_conn *conn, uint64_t wire_id)
{
    size_t at = wire_id & (TRPI_TYPE_CACHE - 1);
    if (conn->read.types[at].wire_id != wire_id || conn->read.types[at].type == NULL) {
        conn->read.types[at].wire_id = wire_id;
        conn->read.types[at].type = trpi_type_find_wire(wire_id);
    }
    return conn->read.types[at].type;
}

static const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    trpi_conn *conn = arg;
    return trpi_node_id_get(trpi_conn_remote(conn)->system, node);
}

/* The payload as the type wants it: in place when its wire form is its form in memory. */
static trp_err
payload_decode(trpi_conn *conn, const trp_type *type, trpi_message *message,
               const trpi_node_map *map)
{
    const trpi_serializer *serializer =
        trpi_serializers_get(trpi_conn_remote(conn)->serializers, message->serializer);
    if (serializer == NULL) {
        return TRP_EDATA;
    }
    if (trpi_is_plain(type, serializer)) {
        return trpi_payload_fits(type, message->payload_bytes) ? TRP_OK : TRP_EDATA;
    }
    trpi_buffer_clear(&conn->read.scratch);
    trp_err err = trpi_decode(serializer, type, message->payload, message->payload_bytes, map,
                              &conn->read.scratch);
    message->payload = conn->read.scratch.data;
    message->payload_bytes = conn->read.scratch.count;
    return err;
}

/* Tell the messages of a MANY frame, whose common part is decoded. */
static void
on_many(trpi_conn *conn, const trp_type *type, const trpi_message *common, const trpi_node_map *map)
{
    trpi_message rest = *common, message = *common;
    uint64_t count = 0;
    uint32_t most = TRPI_ARRIVALS_MAX;
    bool plain = type != NULL && !trpi_conn_remote(conn)->traces_messages &&
                 trpi_is_plain(type, trpi_serializers_get(trpi_conn_remote(conn)->serializers,
                                                          common->serializer));
    bool entities = trpi_inbound_are_entities(conn, type, common);
    if (plain) {
        count = trpi_inbound_many_plain(conn, type, common, &rest);
    }
    while (rest.payload_bytes > 0) {
        const trp_type *of = type;
        if (entities &&
            trpi_inbound_entities_take(conn, common, map, &conn->read.scratch, &rest, &most)) {
            continue;
        }
        if (plain || !trpi_many_next(&rest, &message.payload, &message.payload_bytes)) {
            trpi_inbound_decode_error(conn, "body cannot be read", common->wire_id);
            break;
        }
        if (of != NULL && payload_decode(conn, of, &message, map) != TRP_OK) {
            trpi_inbound_decode_error(conn, "payload cannot be read", common->wire_id);
            of = NULL;
        }
        count++;
        if (trpi_conn_remote(conn)->traces_messages) {
            trpi_message_trace(trpi_conn_remote(conn), trpi_conn_peer(conn), false, of, &message);
        }
        trpi_inbound_message(conn, common, of, message.payload, message.payload_bytes);
    }
    trpi_traffic_messages_in_add(&trpi_conn_peer(conn)->traffic, count);
}

/* Fill in the map of a frame; false: its sender has no number, so it is dropped. */
static bool
inbound_map(trpi_conn *conn, trpi_node_map *ret_map)
{
    if (conn->read.node == 0) {
        pthread_mutex_lock(&trpi_conn_peer(conn)->lock);
        bool proved = is_of_proved(conn);
        conn->read.node = proved ? trpi_peer_node(trpi_conn_peer(conn)) : 0;
        pthread_mutex_unlock(&trpi_conn_peer(conn)->lock);
        if (!proved) { /* it has ended meanwhile */
            trpi_count(&trpi_conn_remote(conn)->stats.frames_stale, 1);
        } else if (conn->read.node == 0) {
            trpi_inbound_decode_error(conn, "no number for its node", 0);
        }
    }
    /* not the peer's, which may be the next incarnation's by now */
    ret_map->sending = conn->read.node;
    ret_map->receiving = TRPI_NODE_SELF;
    ret_map->third_count = 0;
    ret_map->serializers = trpi_conn_remote(conn)->serializers;
    ret_map->arg = conn;
    ret_map->get = node_get;
    ret_map->intern = trpi_third_number;
    return conn->read.node != 0;
}

/* The message is not refused: from now on third nodes that it names get numbers, if its receiver
 * is alive. */
static trp_err
numbers_begin(trpi_conn *conn, const trpi_frame *frame, trpi_node_map *map, trpi_message *message)
{
    conn->read.numbers.scope =
        frame->kind == TRPI_FRAME_SELECT ? TRPI_NUMBERS_ANY : TRPI_NUMBERS_RECEIVER;
    conn->read.numbers.slot = message->to_slot;
    conn->read.numbers.generation = message->to_generation;
    return (frame->flags & TRPI_MESSAGE_HAS_NODES) == 0 ? TRP_OK
                                                        : trpi_message_decode(frame, map, message);
}

/* The sender of a reliable proxy's parcel stands in its payload. */
static bool
is_parcel_of_third(const trpi_conn *conn, const trp_type *type, const trpi_message *message)
{
    trpi_parcel parcel;
    if (type != &trpi_parcel_type) {
        return false;
    }
    memcpy(&parcel, message->payload, sizeof(parcel));
    return parcel.sender.node > TRPI_NODE_SELF && parcel.sender.node != conn->read.node;
}

/* Decode a frame of user messages or of a selection, and tell them. */
static void
on_message(trpi_conn *conn, const trpi_frame *frame)
{
    trp_system *system = trpi_conn_remote(conn)->system;
    trpi_message message;
    trpi_frame expanded;
    trpi_node_map map;
    if (!inbound_map(conn, &map)) {
        return;
    }
    if ((frame->flags & TRPI_MESSAGE_COMPRESSED) != 0) {
        if (trpi_message_expand(frame, trpi_conn_remote(conn)->options.frame_bytes_max,
                                &conn->read.expanded, &expanded) != TRP_OK) {
            trpi_inbound_decode_error(conn, "compressed body cannot be read", 0);
            return;
        }
        frame = &expanded;
    }
    conn->read.numbers.scope = TRPI_NUMBERS_NONE;
    if (trpi_message_decode(frame, &map, &message) != TRP_OK) {
        trpi_inbound_decode_error(conn, "body cannot be read", 0);
        return;
    }
    const trp_type *type = type_of(conn, message.wire_id);
    if (type != NULL && (type->flags & TRP_TYPE_LOCAL) != 0) {
        trpi_inbound_decode_error(conn, "type never leaves its node", message.wire_id);
        type = NULL;
    }
    bool third = (frame->flags & TRPI_MESSAGE_SENDER_MASK) == TRPI_CODE_THIRD;
    char path[TRP_PATH_BYTES_MAX + 1] = "";
    if (frame->kind == TRPI_FRAME_SELECT) {
        memcpy(path, message.path, message.path_bytes);
        path[message.path_bytes] = '\0';
    }
    bool untrusted = trpi_conn_remote(conn)->options.untrusted;
    if (trpi_client_refuses(conn, frame->kind, type, third, &message) ||
        (untrusted && (trpi_untrusted_refuses(conn, frame->kind, type, path) ||
                       trpi_untrusted_refuses_sender(conn, third)))) {
        return;
    }
    if (type != NULL && numbers_begin(conn, frame, &map, &message) != TRP_OK) {
        trpi_inbound_decode_error(conn, "no number for a node in it", message.wire_id);
        return;
    }
    if (frame->kind == TRPI_FRAME_MANY) {
        on_many(conn, type, &message, &map);
        return;
    }
    if (type != NULL && payload_decode(conn, type, &message, &map) != TRP_OK) {
        trpi_inbound_decode_error(conn, "payload cannot be read", message.wire_id);
        type = NULL;
    }
    if ((untrusted || trpi_conn_is_client(conn)) &&
        trpi_untrusted_refuses_sender(conn, is_parcel_of_third(conn, type, &message))) {
        return;
    }
    trpi_traffic_messages_in_add(&trpi_conn_peer(conn)->traffic, 1);
    if (trpi_conn_remote(conn)->traces_messages) {
        trpi_message_trace(trpi_conn_remote(conn), trpi_conn_peer(conn), false, type, &message);
    }
    if (frame->kind == TRPI_FRAME_USER) {
        trpi_inbound_message(conn, &message, type, message.payload, message.payload_bytes);
        return;
    }
    if (type == NULL) {
        trpi_dead_letter(system, message.sender, (trp_ref)TRP_REF_NONE, TRP_DEAD_NOT_ENCODABLE,
                         NULL, message.payload_bytes);
    } else {
        trpi_traced traced = trpi_inbound_traced(conn, &message);
        trpi_inbound_select_traced(system, path, message.sender, message.traced ? &traced : NULL,
                                   type, message.payload, message.payload_bytes);
    }
}

/* Compare a type's name and id with those of this node. */
static void
on_manifest(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    trpi_manifest manifest;
    if (trpi_manifest_decode(frame, &manifest) != TRP_OK) {
        trpi_inbound_decode_error(conn, "manifest cannot be read", 0);
        return;
    }
    for (char *c = manifest.name; *c != '\0'; c++) {
        *c = *c > ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
    const trp_type *type = trpi_type_find_wire(manifest.wire_id);
    if (type != NULL && strcmp(type->name, manifest.name) != 0) {
        char reason[TRPI_PEER_REASON_BYTES];
        (void)snprintf(reason, sizeof reason, "types %.60s (there) and %.60s (here) have one id",
                       manifest.name, type->name);
        trpi_inbound_batch_end(conn);
        trpi_peer_quarantine(trpi_conn_peer(conn), trpi_conn_uid(conn), reason);
        return;
    }
    uint32_t suppressed = 0;
    if (type == NULL && trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_TYPE, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "type not registered here type=%s peer=%s next=\"its messages become dead "
                 "letters\" suppressed=%u",
                 manifest.name, trpi_conn_peer_text(conn), suppressed);
    }
}

/* ---- system messages ------------------------------------------------------------------------- */

/* Decode the arguments of an order, a USER frame, as on_message() does. *ret_type NULL: unknown
 * here. */
static trp_err
args_decode(trpi_conn *conn, const trpi_deploy_read *read, trpi_message *message,
            const trp_type **ret_type)
{
    trpi_frame frame;
    trpi_node_map map;
    if (!inbound_map(conn, &map) || read->args_bytes < TRPI_FRAME_HEADER_BYTES) {
        return TRP_EDATA;
    }
    conn->read.numbers.scope = TRPI_NUMBERS_ANY; /* an order was allowed before */
    trpi_frame_header_decode(read->args, &frame);
    if (frame.kind != TRPI_FRAME_USER ||
        frame.bytes != read->args_bytes - TRPI_FRAME_HEADER_BYTES) {
        return TRP_EDATA;
    }
    trp_err err = trpi_message_decode(&frame, &map, message);
    *ret_type = err == TRP_OK ? type_of(conn, message->wire_id) : NULL;
    if (*ret_type != NULL && ((*ret_type)->flags & TRP_TYPE_LOCAL) != 0) {
        *ret_type = NULL;
    }
    return err != TRP_OK || *ret_type == NULL ? err
                                              : payload_decode(conn, *ret_type, message, &map);
}

static void
deploy_refuse(trpi_conn *conn, trp_ref proxy, const char *what, const char *name)
{
    trp_failure why = { .err = TRP_EINIT };
    trpi_order order = { NULL, &why };
    (void)snprintf(why.reason, sizeof why.reason, "%s%.100s%s", what, name,
                   name[0] != '\0' ? "\"" : "");
    (void)trpi_signal_order(trpi_conn_remote(conn), trpi_conn_remote(conn)->system, proxy.node,
                            TRPI_SIGNAL_REFUSED, proxy, (trp_ref)TRP_REF_NONE, &order);
}

static void
on_deploy(trpi_conn *conn, const trpi_system_message *system, trp_ref proxy)
{
    const trpi_remote *remote = trpi_conn_remote(conn);
    trpi_deploy_read read;
    trpi_message message;
    const trp_type *type = NULL;
    if (trpi_deploy_decode(system->tail, system->tail_bytes, &read) != TRP_OK) {
        trpi_inbound_decode_error(conn, "order to deploy cannot be read", 0);
        deploy_refuse(conn, proxy, "the order cannot be read there", "");
        return;
    }
    if (trpi_deploy_refuses(conn, read.behaviour, read.path)) {
        deploy_refuse(conn, proxy, "not allowed there (remote.deployment-allowed): \"",
                      read.behaviour);
    } else if (read.args != NULL && args_decode(conn, &read, &message, &type) != TRP_OK) {
        deploy_refuse(conn, proxy, "its arguments cannot be read there", "");
    } else if (read.args != NULL && type == NULL) {
        deploy_refuse(conn, proxy, "the type of its arguments is not registered there", "");
    } else {
        trpi_order order = { &read.deploy, NULL };
        read.deploy.supervisor =
            (trp_ref){ proxy.node, read.supervisor_slot, read.supervisor_generation, 0 };
        if (type != NULL) {
            read.deploy.args_type = type;
            read.deploy.args = message.payload;
            read.deploy.args_bytes = message.payload_bytes;
        }
        trpi_inbound_order(remote->system, TRPI_SIGNAL_DEPLOY, (trp_ref)TRP_REF_NONE, proxy,
                           &order);
    }
    trpi_deploy_read_fini(&read);
}

/* One watch too many ends the association: its watchers are told, so that none waits for ever. */
static bool
watches_too_much(trpi_conn *conn, uint32_t node, const trpi_system_message *message)
{
    if (message->signal != TRPI_SIGNAL_WATCH ||
        trpi_node_watches(trpi_conn_remote(conn)->system, node) <
            trpi_conn_remote(conn)->options.peer_watches_max) {
        return false;
    }
    trpi_inbound_batch_end(conn);
    trpi_peer_quarantine(trpi_conn_peer(conn), trpi_conn_uid(conn),
                         "more watches than remote.watches-per-peer");
    return true;
}

static void
system_deliver(trpi_conn *conn, uint32_t node, const trpi_system_message *message)
{
    trp_system *system = trpi_conn_remote(conn)->system;
    if (watches_too_much(conn, node, message)) {
        return;
    }
    trp_ref target = { TRPI_NODE_SELF, message->to_slot, message->to_generation, 0 };
    trp_ref from = { node, message->from_slot, message->from_generation, 0 };
    trp_failure failure;
    trpi_order order = { NULL, &failure };
    if (message->signal == TRPI_SIGNAL_DEPLOY) {
        on_deploy(conn, message, from);
    } else if (message->tail_bytes == 0) {
        trpi_inbound_signal(system, (enum trpi_remote_signal)message->signal, target, from,
                            message->flag);
    } else if (trpi_failure_decode(message->tail, message->tail_bytes, &failure) != TRP_OK) {
        trpi_inbound_decode_error(conn, "failure cannot be read", 0);
    } else {
        trpi_inbound_order(system, (enum trpi_remote_signal)message->signal, target, from, &order);
    }
}

static void
on_system(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_system_message message;
    if (trpi_system_frame_decode(frame, &message) != TRP_OK) {
        trpi_inbound_decode_error(conn, "system message cannot be read", 0);
        return;
    }
    pthread_mutex_lock(&peer->lock);
    if (!is_of_proved(conn)) { /* since batch_begin(): the numbers are the next one's by now */
        pthread_mutex_unlock(&peer->lock);
        return;
    }
    uint32_t node = trpi_peer_node(peer);
    if (node == 0) { /* its watcher could never be told: not taken, and so sent again */
        pthread_mutex_unlock(&peer->lock);
        trpi_inbound_decode_error(conn, "no number for its node", 0);
        return;
    }
    uint64_t expected = trpi_redelivery_expected(&peer->redelivery);
    enum trpi_redelivery_verdict verdict = trpi_redelivery_receive(&peer->redelivery, message.seq);
    pthread_mutex_unlock(&peer->lock);
    if (verdict == TRPI_REDELIVERY_GAP) {
        send_control(conn, TRPI_FRAME_NACK, expected);
        return;
    }
    conn->read.ack_due = true;
    if (verdict == TRPI_REDELIVERY_DELIVER &&
        (trpi_conn_remote(conn)->options.untrusted || trpi_conn_is_client(conn))) {
        static const char *const signals[] = { "",        "watch",   "unwatch",  "terminated",
                                               "stop",    "deploy",  "deployed", "refused",
                                               "failed",  "suspend", "resume",   "restart",
                                               "activate" };
        _Static_assert(sizeof signals / sizeof signals[0] == TRPI_SIGNAL_LAST + 1, "a word each");
        (void)trpi_untrusted_drop(conn, "system message", /* acknowledged all the same */
                                  signals[message.signal]);
    } else if (verdict == TRPI_REDELIVERY_DELIVER) {
        system_deliver(conn, node, &message);
    }
}

static trp_err
on_ack(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_deferred deferred = { 0 };
    if (frame->bytes != 8) {
        return TRP_EPROTO;
    }
    uint64_t now_ms = trpi_remote_now_ms(trpi_conn_remote(conn));
    uint64_t seq = trpi_get_u64(frame->body);
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_stream_uid(peer) != trpi_conn_uid(conn)) {
        pthread_mutex_unlock(&peer->lock); /* of an incarnation that is over */
        return TRP_OK;
    }
    bool sane = frame->kind == TRPI_FRAME_ACK
                    ? trpi_redelivery_ack(&peer->redelivery, now_ms, seq)
                    : trpi_redelivery_nack(&peer->redelivery, now_ms, seq);
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    return sane ? TRP_OK : TRP_EPROTO;
}

/* ---- control --------------------------------------------------------------------------------- */

void
trpi_inbound_arrived(trpi_conn *conn, uint64_t arrived_ns)
{
    conn->read.arrived_ns = arrived_ns;
}

/* When the present bytes were read. */
static uint64_t
arrived_ns(const trpi_conn *conn)
{
    return trpi_conn_lane(conn) == TRPI_LANE_CONTROL
               ? conn->read.arrived_ns
               : trpi_world_mono_ns(trpi_conn_remote(conn)->world);
}

/* tick-T1: an answer to a heartbeat of this node is as good as a PONG. */
static void
beat_look(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_beat_asked asked =
        atomic_load_explicit(&trpi_conn_remote(conn)->beat_asked, memory_order_acquire);
    uint64_t asked_us = 0, now_ns = arrived_ns(conn);
    if (asked == NULL || !trpi_activity_bears_beats(&trpi_conn_remote(conn)->options) ||
        !asked(frame->body, frame->bytes, &asked_us) || asked_us > now_ns / 1000) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_is_active_as(peer, trpi_conn_uid(conn))) {
        trpi_activity_beat_answered(&peer->activity, asked_us / 1000, now_ns / 1000000,
                                    now_ns / 1000 - asked_us);
    }
    pthread_mutex_unlock(&peer->lock);
}

/* Pass a CONTROL frame to the function of its channel (gossip, heartbeats, ...). */
static void
on_control(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    if (frame->extra >= TRPI_CHANNEL_COUNT || conn->read.epoch != trpi_lane_recv_epoch(lane) ||
        !is_of_proved(conn) ||
        (trpi_conn_is_client(conn)
             ? trpi_client_refuses_channel(conn, (enum trpi_control_channel)frame->extra)
             : trpi_untrusted_refuses_channel(conn, (enum trpi_control_channel)frame->extra))) {
        return;
    }
    trpi_node_id from = { *trpi_peer_address(trpi_conn_peer(conn)), trpi_conn_uid(conn) };
    trpi_channel *channel = &trpi_conn_remote(conn)->channels[frame->extra];
    trpi_inbound_batch_end(conn); /* no lock of ours is held while an upper room is called */
    if (frame->extra == TRPI_CHANNEL_HEARTBEAT) {
        beat_look(conn, frame);
    }
    pthread_rwlock_rdlock(&channel->lock);
    if (channel->fn != NULL) {
        channel->fn(channel->arg, &from, frame->body, frame->bytes, arrived_ns(conn));
    }
    pthread_rwlock_unlock(&channel->lock);
}

/* End the other incarnations of an address: the one that answers a request of asked_ms was the one
 * alive then. The caller holds peer->lock. */
static void
others_are_over(trpi_peer *peer, uint64_t uid, uint64_t asked_ms)
{
    const trpi_waiting_entry *entry;
    while ((entry = trpi_waiting_oldest(&peer->waiting, asked_ms, uid)) != NULL) {
        uint64_t over = entry->uid;
        trpi_peer_end_again(peer, over);
        trpi_waiting_drop(&peer->waiting, over);
    }
}

static void
on_pong(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    if (frame->bytes != 8) {
        return;
    }
    uint64_t sent_ns = trpi_get_u64(frame->body);
    uint64_t now_ns = arrived_ns(conn);
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_is_active_as(peer, trpi_conn_uid(conn))) {
        trpi_activity_heard(&peer->activity, now_ns / 1000000);
        trpi_watch_heard(&peer->watch, now_ns / 1000000);
        if (sent_ns <= now_ns) {
            trpi_activity_answered(&peer->activity, sent_ns / 1000000, (now_ns - sent_ns) / 1000);
            others_are_over(peer, trpi_conn_uid(conn), sent_ns / 1000000);
            if (trpi_peer_asked_ms(peer) != 0 && sent_ns / 1000000 >= trpi_peer_asked_ms(peer)) {
                trpi_assoc_event alive = { .kind = TRPI_ASSOC_ALIVE, .uid = trpi_conn_uid(conn) };
                trpi_deferred nothing = { 0 };
                (void)trpi_peer_step(peer, conn, &alive, "", &nothing);
            }
        }
    }
    pthread_mutex_unlock(&peer->lock);
}

static void
on_goodbye(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_deferred deferred = { 0 };
    trpi_inbound_batch_end(conn); /* what came before it is delivered first */
    pthread_mutex_lock(&peer->lock);
    if ((frame->flags & TRPI_GOODBYE_LANE) != 0 && trpi_conn_lane(conn) != TRPI_LANE_CONTROL) {
        trpi_graceful_close_frame(conn, (enum trpi_frame_kind)frame->kind);
    } else if (frame->kind == TRPI_FRAME_GOODBYE_ACK) {
        trpi_peer_goodbye_acked(peer, trpi_conn_lane(conn));
    } else {
        /* lost: the peer waits until its time is over */
        (void)trpi_conn_head(conn, TRPI_FRAME_GOODBYE_ACK, 0, NULL, 0);
        if (trpi_conn_lane(conn) == TRPI_LANE_CONTROL &&
            trpi_conn_uid(conn) == trpi_peer_uid(peer)) {
            trpi_assoc_event event = { .kind = TRPI_ASSOC_GOODBYE,
                                       .random = trpi_world_random(trpi_conn_remote(conn)->world) };
            trpi_peer_goodbye_heard(peer);
            (void)trpi_peer_step(peer, conn, &event, TRPI_PEER_SAID_GOODBYE, &deferred);
        }
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

/* Answered when what came before it has been handed to its actors. */
static void
on_fence(trpi_conn *conn, const trpi_frame *frame)
{
    if (frame->bytes != 8 || !batch_begin(conn)) {
        return; /* of a connection that is over: it is sent again on the present one */
    }
    trpi_inbound_batch_end(conn);
    send_control(conn, TRPI_FRAME_FENCE_ACK, trpi_get_u64(frame->body));
}

static void
on_fence_ack(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_deferred deferred = { 0 };
    if (frame->bytes != 8) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_is_active_as(peer, trpi_conn_uid(conn))) {
        trpi_fence_acked(peer, trpi_get_u64(frame->body));
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

static trp_err
on_lane_open(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_lane_state *lane = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)];
    if (frame->bytes != 4) {
        return TRP_EPROTO;
    }
    trp_err err = TRP_OK;
    uint32_t epoch = trpi_get_u32(frame->body);
    (void)batch_begin(conn);
    pthread_mutex_lock(&trpi_conn_peer(conn)->lock);
    bool proved = is_of_proved(conn); /* else it is over: its frames are dropped */
    if (proved && epoch <= trpi_lane_recv_epoch(lane)) {
        err = TRP_EPROTO; /* epochs only rise */
    } else if (proved) {
        conn->read.epoch = epoch;
        conn->read.node = trpi_peer_node_hint(trpi_conn_peer(conn));
        /* under recv_lock, too */
        trpi_lane_recv_epoch_put(lane, epoch);
    }
    pthread_mutex_unlock(&trpi_conn_peer(conn)->lock);
    return err;
}

/* CREDIT: how much may be sent to a receiver there. */
static void
on_credit(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_peer *peer = trpi_conn_peer(conn);
    trpi_deferred deferred = { 0 };
    trpi_credit_frame word;
    if (frame->bytes < TRPI_CREDIT_BYTES) {
        return;
    }
    trpi_credit_decode(frame->body, frame->bytes, &word);
    pthread_mutex_lock(&peer->lock);
    trpi_holds_credited(peer, trpi_conn_uid(conn), &word, frame->flags);
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

trp_err
trpi_inbound_frame(trpi_conn *conn, const trpi_frame *frame)
{
    trpi_assert(trpi_conn_peer(conn) != NULL && trpi_conn_is_ready(conn));
    trpi_count(&trpi_conn_remote(conn)->stats.frames_in, 1);
    switch (frame->kind) {
    case TRPI_FRAME_LANE_OPEN:
        return on_lane_open(conn, frame);
    case TRPI_FRAME_USER:
    case TRPI_FRAME_SELECT:
    case TRPI_FRAME_MANY:
        if (is_taken(conn)) {
            on_message(conn, frame);
        }
        return TRP_OK;
    case TRPI_FRAME_MANIFEST:
        on_manifest(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_SYSTEM:
        if (is_taken(conn)) {
            on_system(conn, frame);
        }
        return TRP_OK;
    case TRPI_FRAME_ACK:
    case TRPI_FRAME_NACK:
        return on_ack(conn, frame);
    case TRPI_FRAME_CONTROL:
        on_control(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_PING:
        if (frame->bytes == 8) {
            send_control(conn, TRPI_FRAME_PONG, trpi_get_u64(frame->body));
        }
        return TRP_OK;
    case TRPI_FRAME_PONG:
        on_pong(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_GOODBYE:
    case TRPI_FRAME_GOODBYE_ACK:
        on_goodbye(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_FENCE:
        on_fence(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_FENCE_ACK:
        on_fence_ack(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_CREDIT:
        on_credit(conn, frame);
        return TRP_OK;
    case TRPI_FRAME_CREDIT_ASK:
        trpi_receiver_asked(conn, frame);
        return TRP_OK;
    default:
        trpi_count(&trpi_conn_remote(conn)->stats.frames_skipped, 1); /* of a later minor version */
        return TRP_OK;
    }
}
