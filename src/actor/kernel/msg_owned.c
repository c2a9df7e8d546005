/* msg_owned.c - messages in a program's hands: made before they are sent, copied, given back.
 *
 * Tests. tests/unit/actor/msg_test.c
 */
#include <string.h>

#include <troupe/interaction.h>

#include <troupe/actor.h>

#include "actor/kernel/misuse.h"
#include "actor/kernel/msg.h"
#include "actor/kernel/open.h"
#include "base/assert.h"
#include "base/payload.h"

int
trpi_msg_payload_take(trp_msg *msg, trp_msg_priv_moved *ret_moved)
{
    trp_msg_priv_moved *moved = (void *)((char *)msg + TRPI_MSG_HEADER_BYTES);

    if ((msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) == 0 || moved->release == NULL) {
        return 0;
    }
    *ret_moved = *moved;
    *moved = (trp_msg_priv_moved){ NULL, 0, NULL, NULL };
    return 1;
}

trp_err
trp_msg_new(const trp_type *type, size_t bytes, trp_msg **ret_msg, void **ret_payload)
{
    trpi_msg_cache *cache = trpi_msg_cache_get();
    trp_msg *msg;
    void *payload;

    if (type == NULL || ret_msg == NULL || ret_payload == NULL) {
        return TRP_EINVAL;
    }
    bytes = trpi_payload_bytes(type, bytes);
    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    msg = cache != NULL ? trpi_msg_make_empty(cache, type, bytes, &payload) : NULL;
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    *ret_msg = msg;
    *ret_payload = payload;
    return TRP_OK;
}

trp_err
trpi_msg_new_owner(const trp_type *type, void *data, void (*release)(void *data, void *arg),
                   trp_msg **ret_msg)
{
    trpi_msg_cache *cache = trpi_msg_cache_get();
    void *payload = NULL;
    trp_msg *msg = cache != NULL
                       ? trpi_msg_make_empty(cache, type, sizeof(trp_msg_priv_moved), &payload)
                       : NULL;

    trpi_assert(type->number != 0 && data != NULL && release != NULL);
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    *(trp_msg_priv_moved *)payload = (trp_msg_priv_moved){ data, 0, release, NULL };
    msg->priv_from_node_flags |= TRP_MSG_PRIV_OUT_OF_LINE;
    *ret_msg = msg;
    return TRP_OK;
}

trp_err
trp_msg_dup(const trp_msg *msg, trp_msg **ret_msg)
{
    trpi_msg_cache *cache = trpi_msg_cache_get();
    size_t bytes;
    trp_msg *copy;
    void *payload;
    trp_type type = { .number = 0 };
    bool held;

    if (msg == NULL || ret_msg == NULL) {
        return TRP_EINVAL;
    }
    if (trpi_misuse_is_wanted()) {
        trpi_misuse_read(msg, "trp_msg_dup");
    }
    held = trpi_msg_is_held(msg);
    bytes = held ? sizeof(trp_msg_priv_moved) : trp_msg_bytes(msg);
    type.number = msg->priv_type;
    if (cache == NULL) {
        return TRP_ENOMEM;
    }
    copy = (msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0
               ? trpi_msg_make_trailed(cache, &type, bytes, &payload)
               : trpi_msg_make_empty(cache, &type, bytes, &payload);
    if (copy == NULL) {
        return TRP_ENOMEM;
    }
    if ((msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0) {
        memcpy((char *)copy + trpi_msg_trailer_at(copy),
               (const char *)msg + trpi_msg_trailer_at(msg), TRPI_TRAILER_BYTES);
    }
    copy->priv_to_slot = msg->priv_to_slot;
    copy->priv_to_generation = msg->priv_to_generation;
    trpi_msg_sender_set(copy, trpi_msg_sender(msg));
    if (bytes > 0) {
        memcpy(payload, held ? (const char *)msg + TRPI_MSG_HEADER_BYTES : trp_msg_payload(msg),
               bytes);
    }
    if (held) {
        trpi_msg_held_share(msg);
        copy->priv_from_node_flags |= TRP_MSG_PRIV_OUT_OF_LINE;
    }
    *ret_msg = copy;
    return TRP_OK;
}

void
trp_msg_free(trp_msg *msg)
{
    if (msg != NULL && trpi_misuse_is_wanted()) {
        trpi_misuse_freed(msg);
    }
    trpi_msg_drop(msg);
}

void
trpi_msg_drop(trp_msg *msg)
{
    trpi_msg_cache *cache = msg != NULL ? trpi_msg_cache_get() : NULL;

    if (cache != NULL) {
        trpi_msg_free(cache, msg);
    }
}

trp_err
trpi_msg_restore(trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
                 size_t bytes, trp_msg **ret_msg)
{
    trpi_msg_cache *cache = trpi_msg_cache_get();
    trp_msg *msg;

    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    msg = cache != NULL ? trpi_msg_make(cache, to, sender, type, payload, bytes) : NULL;
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    *ret_msg = msg;
    return TRP_OK;
}
