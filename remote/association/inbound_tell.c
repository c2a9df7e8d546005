/* inbound_tell.c - telling decoded messages of a connection to their receivers, counted for each.
 *
 * Must hold. remote-inbound-B4 (inbound.c), receiver-I1 and receiver-I2 (receiver.c).
 * Tests.     tests/unit/remote/remote_test.c, pressure_test.c
 */
#include "remote/association/inbound.h"

#include "base/atomics.h"
#include "base/payload.h"
#include "pattern/pattern.h"
#include "remote/association/conn_state.h"
#include "remote/association/lane.h"
#include "remote/association/receiver.h"

/* Does a record begin at `at` that is whole, of a length between least and least + span? */
static inline bool
record_is_whole(const uint8_t *at, const uint8_t *end, size_t least, size_t span)
{
    size_t left = (size_t)(end - at);
    if (left < TRPI_MANY_RECORD_BYTES) {
        return false;
    }
    size_t bytes = trpi_get_u32(at);
    return bytes <= left - TRPI_MANY_RECORD_BYTES && bytes - least <= span;
}

static void
message_refuse(trpi_conn *conn, const trpi_message *to, const trp_type *type, const void *payload,
               size_t bytes)
{
    trp_ref recipient = { TRPI_NODE_SELF, to->to_slot, to->to_generation, 0 };
    trpi_dead_letter_of(trpi_conn_remote(conn)->system, to->sender, recipient,
                        TRP_DEAD_RECEIVER_FULL, type, payload, bytes);
}

void
trpi_inbound_message(trpi_conn *conn, const trpi_message *to, const trp_type *type,
                     const void *payload, size_t bytes)
{
    if (!trpi_receiver_take(conn, to->to_slot, to->to_generation, bytes)) {
        message_refuse(conn, to, type, payload, bytes);
    } else if (to->traced) {
        trpi_traced traced = trpi_inbound_traced(conn, to);
        trpi_inbound_tell_traced(trpi_conn_batch(conn), to->to_slot, to->to_generation, to->sender,
                                 &traced, type, payload, bytes);
    } else {
        trpi_inbound_tell(trpi_conn_batch(conn), to->to_slot, to->to_generation, to->sender, type,
                          payload, bytes);
    }
}

/* Refuse the payload of a record that does not fit its type: it is a dead letter. */
static NOINLINE void
record_unreadable(trpi_conn *conn, const trpi_message *common, const uint8_t *payload, size_t bytes)
{
    trpi_inbound_decode_error(conn, "payload cannot be read", common->wire_id);
    trpi_inbound_message(conn, common, NULL, payload, bytes);
}

enum { RUN_MESSAGES = 64 };
/* Take the records at the front of rest that are told together: the first one was counted, and no
 * mark is due before the others. Give how many. */
static uint32_t
run_take(trpi_inflow *inflow, const trpi_message *common, const trp_type *type, trpi_message *rest)
{
    size_t least = type->bytes,
           span = (type->flags & TRP_TYPE_VARIABLE) != 0 ? SIZE_MAX - least : 0;
    uint64_t counted = 0, most = trpi_receiver_room(inflow, common->to_slot, common->to_generation);
    const uint8_t *at = rest->payload, *end = at + rest->payload_bytes;
    uint32_t count = 0;
    do {
        size_t bytes = trpi_get_u32(at);
        counted += count > 0 ? bytes + TRPI_CREDIT_MESSAGE_BYTES : 0;
        at += TRPI_MANY_RECORD_BYTES + bytes;
        count++;
    } while (counted < most && count < RUN_MESSAGES && record_is_whole(at, end, least, span));
    trpi_receiver_count(inflow, common->to_slot, common->to_generation, counted);
    rest->payload_bytes = (size_t)(end - at);
    rest->payload = at;
    return count;
}

uint64_t
trpi_inbound_many_plain(trpi_conn *conn, const trp_type *type, const trpi_message *common,
                        trpi_message *rest)
{
    trpi_inflow *inflow = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)].inflow;
    uint64_t count = 0;
    while (rest->payload_bytes > 0) {
        trpi_message next = *rest;
        const uint8_t *payload;
        size_t bytes;
        if (!trpi_many_next(&next, &payload, &bytes)) {
            break;
        }
        if (!trpi_payload_fits(type, bytes)) {
            record_unreadable(conn, common, payload, bytes);
        } else if (!trpi_receiver_take(conn, common->to_slot, common->to_generation, bytes)) {
            message_refuse(conn, common, type, payload, bytes);
        } else {
            const uint8_t *records = rest->payload;
            uint32_t together = run_take(inflow, common, type, rest);
            trpi_inbound_tell_run(trpi_conn_batch(conn), common->to_slot, common->to_generation,
                                  common->sender, type, records, together);
            count += together;
            continue;
        }
        *rest = next;
        count++;
    }
    return count;
}

/* ---- for entities ---------------------------------------------------------------------------- */

bool
trpi_inbound_are_entities(const trpi_conn *conn, const trp_type *type, const trpi_message *common)
{
    return type == &trpi_entity_envelope_type && common->serializer == TRPI_SERIALIZER_ENTITY &&
           !trpi_conn_remote(conn)->traces_messages;
}

/* Split so many envelopes off rest, or fewer; returns how many. Their payloads are in the frame, or
 * in scratch. */
static uint32_t
envelopes_open(trpi_message rest, uint32_t most, const trpi_node_map *map, trpi_buffer *scratch,
               trpi_entity_envelope *heads, trpi_carrier *ret_parts)
{
    size_t at[TRPI_ARRIVALS_MAX];
    uint32_t count = 0;
    const uint8_t *record;
    size_t bytes;
    trpi_buffer_clear(scratch);
    while (count < most && trpi_many_next(&rest, &record, &bytes)) {
        at[count] = scratch->count;
        if (trpi_entity_decode(record, bytes, map, count > 0 ? ret_parts[count - 1].inner : NULL,
                               scratch, &heads[count], &ret_parts[count]) != TRP_OK) {
            break;
        }
        count++;
    }
    for (uint32_t i = 0; i < count; i++) { /* scratch does not move any more */
        if (ret_parts[i].payload == NULL) {
            ret_parts[i].payload = scratch->data + at[i];
        }
    }
    return count;
}

/* The gate that they are addressed to has no mailbox, so nothing is counted for it (receiver.c). */
bool
trpi_inbound_entities_take(trpi_conn *conn, const trpi_message *common, const trpi_node_map *map,
                           trpi_buffer *scratch, trpi_message *rest, uint32_t *most)
{
    trpi_entity_envelope heads[TRPI_ARRIVALS_MAX];
    trpi_carrier parts[TRPI_ARRIVALS_MAX];
    uint32_t count = envelopes_open(*rest, *most, map, scratch, heads, parts);
    uint32_t told =
        count == 0 ? 0
                   : trpi_inbound_entities(trpi_conn_batch(conn), common->to_slot,
                                           common->to_generation, common->sender, parts, count);
    for (uint32_t i = 0; i < told; i++) {
        const uint8_t *record;
        size_t bytes;
        (void)trpi_many_next(rest, &record, &bytes); /* as before */
    }
    trpi_traffic_messages_in_add(&trpi_conn_peer(conn)->traffic, told);
    /* where many have to start, few are opened for nothing */
    *most = told == 0 ? 1 : *most * 2 < TRPI_ARRIVALS_MAX ? *most * 2 : TRPI_ARRIVALS_MAX;
    return told > 0;
}
