/* loopback.c - messages that come in as those of a peer do, without one: for probes of this node.
 *
 * Shape.   send --encode--> socket pair --poller--> ready() --frame, codec--> trpi_inbound_tell()
 * Must hold.
 *   loopback-P1  Of the two ends the sending one belongs to the owner, all else to the watch: it is
 *       freed in removed(), after the last callback.
 *   loopback-P2  Nothing waits: what the sockets do not take is refused.   (loopback_send)
 * Not here. Connections, lanes, credit: they need a peer. With the driver nng messages of peers are
 *           read by nng's threads; this is read by the system's poller all the same.
 * Tests.   tests/unit/node/health_test.c
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "remote/remote.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/payload.h"
#include "io/poller.h"
#include "remote/association/context.h"
#include "remote/wire/codec.h"

#define READ_BYTES 4096u /* in one callback */
#define FRAME_BYTES_MAX 4096u

struct trpi_loopback {
    trp_system *system;
    trpi_serializers *serializers;
    int near; /* the owner's */
    int far;  /* loopback-P1: this and what follows */
    trpi_watch *watch;
    trpi_frame_decoder decoder;
};

/* ---- the far end: the poller's callbacks ----------------------------------------------------- */

static trp_err
frame_deliver(void *arg, const trpi_frame *frame)
{
    trpi_loopback *loopback = arg;
    trpi_message message;
    trpi_node_map map =
        trpi_system_node_map(loopback->system, loopback->serializers, TRPI_NODE_SELF);
    trp_ctx *ctx = trpi_inbound_begin(loopback->system);
    if (trpi_message_decode(frame, &map, &message) == TRP_OK &&
        trpi_type_find_wire(message.wire_id) == &trp_bytes_type) {
        trpi_inbound_tell(ctx, message.to_slot, message.to_generation, message.sender,
                          &trp_bytes_type, message.payload, message.payload_bytes);
    }
    trpi_inbound_end(ctx);
    return TRP_OK;
}

static trp_err
preamble_take(void *arg, const trpi_preamble *preamble)
{
    (void)arg;
    (void)preamble;
    return TRP_OK;
}

static uint32_t
far_ready(void *user, uint32_t events)
{
    trpi_loopback *loopback = user;
    uint8_t bytes[READ_BYTES];
    ssize_t count = recv(loopback->far, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) {
        /* an error stays: then nothing is delivered any more, and probes have no answer */
        (void)trpi_frame_decoder_feed(&loopback->decoder, bytes, (size_t)count);
    }
    return count > 0 || (count < 0 && errno == EINTR) ? events & TRPI_NET_IN : 0;
}

static void
far_removed(void *user)
{
    trpi_loopback *loopback = user;
    trpi_frame_decoder_fini(&loopback->decoder);
    (void)close(loopback->far);
    trpi_free(loopback);
}

static const trpi_watch_events far_events = { far_ready, far_removed };

/* ---- the near end ---------------------------------------------------------------------------- */

trp_err
trpi_remote_loopback_open(trpi_remote *remote, trpi_loopback **ret_loopback)
{
    trpi_poller *poller = NULL;
    int ends[2] = { -1, -1 };
    trp_err err = trpi_sched_is_driven(trpi_system_sched(remote->system))
                      ? TRP_EUNSUPPORTED
                      : trpi_system_poller(remote->system, &poller);
    trpi_loopback *loopback = err == TRP_OK ? trpi_alloc(sizeof *loopback) : NULL;
    if (loopback == NULL) {
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        trpi_free(loopback);
        return TRP_EIO;
    }
    loopback->system = remote->system;
    loopback->serializers = remote->serializers;
    loopback->near = ends[0];
    loopback->far = ends[1];
    trpi_frame_decoder_init(&loopback->decoder, FRAME_BYTES_MAX, preamble_take, frame_deliver,
                            loopback);
    uint8_t preamble[TRPI_PREAMBLE_BYTES]; /* there is no handshake */
    trpi_preamble_encode(preamble, &(trpi_preamble){ .version = TRPI_WIRE_VERSION,
                                                     .lane = TRPI_LANE_ORDINARY,
                                                     .uid = remote->uid });
    (void)!send(loopback->near, preamble, sizeof preamble, MSG_NOSIGNAL); /* the first: it fits */
    err = trpi_watch_new(poller, loopback->far, &far_events, loopback, &loopback->watch);
    if (err != TRP_OK) {
        (void)close(ends[0]);
        far_removed(loopback);
        return err;
    }
    *ret_loopback = loopback;
    return TRP_OK;
}

trp_err
trpi_remote_loopback_send(trpi_loopback *loopback, trp_ref to, const void *bytes, size_t count)
{
    trpi_buffer frame = { 0 };
    trpi_node_map map =
        trpi_system_node_map(loopback->system, loopback->serializers, TRPI_NODE_SELF);
    trpi_message message = { .to_slot = to.slot,
                             .to_generation = to.generation,
                             .wire_id = trpi_type_wire_id(trp_bytes_type.number),
                             .type = &trp_bytes_type,
                             .payload = bytes,
                             .payload_bytes = count };
    trp_err err = trpi_message_encode(
        &frame, trpi_serializers_get(loopback->serializers, TRPI_SERIALIZER_RAW), &map,
        FRAME_BYTES_MAX, &message);
    if (err == TRP_OK) { /* loopback-P2; a packet is taken whole */
        ssize_t sent = send(loopback->near, frame.data, frame.count, MSG_DONTWAIT | MSG_NOSIGNAL);
        err = sent == (ssize_t)frame.count ? TRP_OK : TRP_EAGAIN;
    }
    trpi_buffer_fini(&frame);
    return err;
}

void
trpi_remote_loopback_close(trpi_loopback *loopback)
{
    if (loopback != NULL) {
        (void)close(loopback->near);
        trpi_watch_remove(loopback->watch); /* far_removed() follows: loopback-P1 */
    }
}
