/* inbound_tell.c - telling decoded messages of a connection to their receivers, counted for each.
 *
 * Must hold. remote-inbound-B4 (inbound.c), receiver-I1 and receiver-I2 (receiver.c).
 * Tests.     tests/unit/remote/remote_test.c, pressure_test.c
 */
#include "remote/association/inbound.h"

#include "base/payload.h"
#include "remote/association/conn_state.h"
#include "remote/association/lane.h"
#include "remote/association/receiver.h"

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
    if (trpi_receiver_take(conn, to->to_slot, to->to_generation, bytes)) {
        trpi_inbound_tell(trpi_conn_batch(conn), to->to_slot, to->to_generation, to->sender, type,
                          payload, bytes);
    } else {
        message_refuse(conn, to, type, payload, bytes);
    }
}

/* Messages that are told together: the payloads of one MANY frame. */
enum { RUN_MESSAGES = 64 };
typedef struct message_run {
    trpi_run_payload payloads[RUN_MESSAGES];
    uint32_t count;
} message_run;

static void
run_tell(trpi_conn *conn, const trpi_message *common, const trp_type *type, message_run *run)
{
    if (run->count > 0) {
        trpi_inbound_tell_run(trpi_conn_batch(conn), common->to_slot, common->to_generation,
                              common->sender, type, run->payloads, run->count);
        run->count = 0;
    }
}

uint64_t
trpi_inbound_many_plain(trpi_conn *conn, const trp_type *type, const trpi_message *common,
                        trpi_message *rest)
{
    trpi_inflow *inflow = &trpi_conn_peer(conn)->lanes[trpi_conn_lane(conn)].inflow;
    message_run run;
    const uint8_t *payload;
    size_t bytes;
    uint64_t count = 0;
    run.count = 0;
    while (rest->payload_bytes > 0 && trpi_many_next(rest, &payload, &bytes)) {
        count++;
        if (!trpi_payload_fits(type, bytes)) {
            run_tell(conn, common, type, &run);
            trpi_inbound_decode_error(conn, "payload cannot be read", common->wire_id);
            trpi_inbound_message(conn, common, NULL, payload, bytes);
            continue;
        }
        if (run.count == RUN_MESSAGES) {
            run_tell(conn, common, type, &run);
        }
        if (run.count == 0 ||
            !trpi_receiver_take_more(inflow, common->to_slot, common->to_generation, bytes)) {
            run_tell(conn, common, type, &run); /* a mark stands behind what it counts */
            if (!trpi_receiver_take(conn, common->to_slot, common->to_generation, bytes)) {
                message_refuse(conn, common, type, payload, bytes);
                continue;
            }
        }
        run.payloads[run.count++] = (trpi_run_payload){ payload, bytes };
    }
    run_tell(conn, common, type, &run);
    return count;
}
