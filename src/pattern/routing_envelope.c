/* routing_envelope.c - messages in messages: broadcast to all, or keyed to one.
 *
 * Why.     An envelope travels like any message (it may wait in a stash, or be forwarded) and is
 *          opened by the router that it reaches.
 * Shape.   payload: trpi_envelope | key, padded to 16 | payload
 * Limits.  Local: the number of the type and refs in the payload mean something on this node only.
 * Tests.   tests/unit/pattern/router_test.c
 */
#include "pattern/routing.h"

#include <string.h>

#include "base/assert.h"
#include "base/payload.h"

#define PADDED(n) (((n) + 15u) & ~(size_t)15u)

static trp_err
envelope_new(const trp_type *envelope_type, const void *key, size_t key_bytes, const trp_type *type,
             size_t bytes, trp_msg **ret_msg, void **ret_payload)
{
    trpi_envelope *envelope;
    void *payload;
    trp_err err;

    _Static_assert(sizeof(trpi_envelope) == 16, "what follows is 16-aligned");
    if (type == NULL || ret_msg == NULL || ret_payload == NULL || key_bytes > UINT32_MAX ||
        (key == NULL && key_bytes > 0)) {
        return TRP_EINVAL;
    }
    bytes = trpi_payload_bytes(type, bytes);
    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    err =
        trp_msg_new(envelope_type, sizeof *envelope + PADDED(key_bytes) + bytes, ret_msg, &payload);
    if (err != TRP_OK) {
        return err;
    }
    envelope = payload;
    *envelope = (trpi_envelope){ type->number, (uint32_t)key_bytes, bytes };
    if (key_bytes > 0) {
        memcpy(envelope + 1, key, key_bytes);
    }
    *ret_payload = (char *)(envelope + 1) + PADDED(key_bytes);
    return TRP_OK;
}

trp_err
trp_broadcast_new(const trp_type *type, size_t bytes, trp_msg **ret_msg, void **ret_payload)
{
    return envelope_new(&trp_broadcast_type, NULL, 0, type, bytes, ret_msg, ret_payload);
}

trp_err
trp_keyed_new(const void *key, size_t key_bytes, const trp_type *type, size_t bytes,
              trp_msg **ret_msg, void **ret_payload)
{
    return envelope_new(&trp_keyed_type, key, key_bytes, type, bytes, ret_msg, ret_payload);
}

bool
trpi_envelope_open(const trp_msg *msg, const trp_type **ret_type, trp_hash_key *ret_key,
                   const void **ret_payload, size_t *ret_bytes)
{
    const trpi_envelope *envelope = trp_msg_payload(msg);
    size_t size = trp_msg_bytes(msg);

    /* a program may send any bytes as an envelope */
    if (size < sizeof *envelope || size - sizeof *envelope < PADDED((size_t)envelope->key_bytes) ||
        size - sizeof *envelope - PADDED((size_t)envelope->key_bytes) != envelope->bytes) {
        return false;
    }
    *ret_type = trpi_type_get(envelope->type);
    if (*ret_type == NULL || !trpi_payload_fits(*ret_type, envelope->bytes)) {
        return false;
    }
    ret_key->bytes = envelope + 1;
    ret_key->count = envelope->key_bytes;
    *ret_payload = (const char *)(envelope + 1) + PADDED((size_t)envelope->key_bytes);
    *ret_bytes = envelope->bytes;
    return true;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void
envelope_tell(trp_ctx *ctx, trp_ref router, trp_ref sender, const trp_type *envelope_type,
              const void *key, size_t key_bytes, const trp_type *type, const void *payload,
              size_t bytes)
{
    trp_msg *msg;
    void *copy;

    if ((type->flags & TRP_TYPE_VARIABLE) == 0) {
        bytes = type->bytes;
    }
    if (envelope_new(envelope_type, key, key_bytes, type, bytes, &msg, &copy) != TRP_OK) {
        /* no memory or no such type: the same dead letter as for a tell of the payload itself */
        trpi_dead_letter_of(trp_ctx_system(ctx), sender, router,
                            type->number == 0 || !trpi_payload_fits(type, bytes)
                                ? TRP_DEAD_NOT_ENCODABLE
                                : TRP_DEAD_NO_MEMORY,
                            type, payload, bytes);
        return;
    }
    if (bytes > 0) {
        memcpy(copy, payload, bytes);
    }
    trpi_send_as(ctx, router, sender, msg);
}

void
trp_router_broadcast(trp_ctx *ctx, trp_ref router, const trp_type *type, const void *payload,
                     size_t bytes)
{
    envelope_tell(ctx, router, trp_self(ctx), &trp_broadcast_type, NULL, 0, type, payload, bytes);
}

void
trp_system_router_broadcast(trp_system *system, trp_ref router, trp_ref sender,
                            const trp_type *type, const void *payload, size_t bytes)
{
    trp_ctx *ctx = trpi_enter(system);

    envelope_tell(ctx, router, sender, &trp_broadcast_type, NULL, 0, type, payload, bytes);
    trpi_leave(ctx);
}

void
trp_router_tell_keyed(trp_ctx *ctx, trp_ref router, const void *key, size_t key_bytes,
                      const trp_type *type, const void *payload, size_t bytes)
{
    envelope_tell(ctx, router, trp_self(ctx), &trp_keyed_type, key, key_bytes, type, payload,
                  bytes);
}

void
trp_system_router_tell_keyed(trp_system *system, trp_ref router, trp_ref sender, const void *key,
                             size_t key_bytes, const trp_type *type, const void *payload,
                             size_t bytes)
{
    trp_ctx *ctx = trpi_enter(system);

    envelope_tell(ctx, router, sender, &trp_keyed_type, key, key_bytes, type, payload, bytes);
    trpi_leave(ctx);
}
