/* round_trip.c - serialize-messages: messages inside a system go through their serializer and back,
 * so that tests find those that would not survive a network.
 *
 * Why.     A type that works inside a process but not between nodes is found too late: data in
 *          padding, text without its end, a type without a serializer.
 * Shape.   Off, it costs nothing: ctx->fast_path_node, which trp_tell() compares with the target's
 *          node anyway, is TRPI_NODE_SELF. On, it is 0 and every tell takes the slow path, as it
 *          does while a trailer is carried. The upper room that has the serializers registers
 *          one function for the process.
 * Must hold.
 *   round-trip-R1  Registered before main() and never changed: no lock.
 *   round-trip-R2  Types that never leave a node, such as the runtime's own, are left alone.
 * Tests.   tests/unit/remote/serialize_test.c
 * Sources. SYS-34, SERIAL-09.
 */
#include <string.h>

#include "actor/life/life.h"
#include "base/buffer.h"
#include "base/payload.h"

static const trpi_round_trip_ops *ops; /* round-trip-R1; process-wide by nature: code, not state */

void
trpi_round_trip_register(const trpi_round_trip_ops *given)
{
    ops = given;
}

bool
trpi_round_trip_can(void)
{
    return ops != NULL;
}

static trp_err
message_rebuild(trp_ctx *ctx, const trpi_buffer *payload, trp_msg **msg)
{
    const trpi_trailer *trailer = trpi_msg_trailer(*msg);
    const trp_type *type = trp_msg_type(*msg);
    void *place;
    trp_msg *fresh = trailer != NULL
                         ? trpi_msg_make_trailed(ctx->cache, type, payload->count, &place)
                         : trpi_msg_make_empty(ctx->cache, type, payload->count, &place);

    if (fresh == NULL) {
        return TRP_ENOMEM;
    }
    if (payload->count > 0) {
        memcpy(place, payload->data, payload->count);
    }
    if (trailer != NULL) {
        memcpy((char *)fresh + trpi_msg_trailer_at(fresh), trailer, TRPI_TRAILER_BYTES);
    }
    fresh->priv_to_slot = (*msg)->priv_to_slot;
    fresh->priv_to_generation = (*msg)->priv_to_generation;
    trpi_msg_sender_set(fresh, trpi_msg_sender(*msg));
    trpi_msg_free(ctx->cache, *msg);
    *msg = fresh;
    return TRP_OK;
}

trp_err
trpi_round_trip(trp_ctx *ctx, trp_msg **msg)
{
    const trp_type *type = trp_msg_type(*msg);
    trp_system *system = ctx->system;
    trpi_buffer payload = { 0 };
    trp_err err;

    if ((type->flags & TRP_TYPE_LOCAL) != 0) { /* round-trip-R2 */
        return TRP_OK;
    }
    err = ops->payload(system, type, trp_msg_payload(*msg), trp_msg_bytes(*msg), &payload);
    if (err == TRP_OK && !trpi_payload_fits(type, payload.count)) {
        err = TRP_EDATA;
    }
    if (err == TRP_OK) {
        err = message_rebuild(ctx, &payload, msg);
    }
    if (err != TRP_OK) {
        trpi_log(system, TRP_LOG_ERROR, "serialization",
                 "a message could not be sent to another node type=%s error=%s", type->name,
                 trp_err_name(err));
    }
    trpi_buffer_fini(&payload);
    return err;
}

trp_err
trpi_stored_write(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                  trpi_buffer *out)
{
    return ops == NULL || ops->store == NULL ? TRP_EUNSUPPORTED
                                             : ops->store(system, type, payload, bytes, out);
}

trp_err
trpi_stored_read(trp_system *system, const void *data, size_t bytes, trp_msg **ret_msg)
{
    return ops == NULL || ops->load == NULL ? TRP_EUNSUPPORTED
                                            : ops->load(system, data, bytes, ret_msg);
}
