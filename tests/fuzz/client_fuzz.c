/* client_fuzz.c - any bytes as a frame of a client or a receptionist: refused, or a frame that
 * reads back as it was written. A valid frame is also what a contact says to a client's engine. */
#include <string.h>

#include "base/assert.h"
#include "remote/client/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_round_trip(const trpi_client_frame *frame)
{
    trpi_buffer once = { 0 }, twice = { 0 };
    trpi_client_frame back;
    trpi_assert(trpi_client_frame_encode(frame, &once) == TRP_OK);
    trpi_assert(trpi_client_frame_decode(once.data, once.count, &back) == TRP_OK);
    trpi_assert(trpi_client_frame_encode(&back, &twice) == TRP_OK);
    trpi_assert(once.count == twice.count && memcmp(once.data, twice.data, once.count) == 0);
    trpi_buffer_fini(&once);
    trpi_buffer_fini(&twice);
}

static void
actions_take(trpi_client_engine *engine)
{
    trpi_client_action action;
    trpi_assert(trpi_client_check(engine) == NULL);
    while (trpi_client_next(engine, &action)) {
    }
}

/* From the contact that is asked, and from one of those that the frame names. */
static void
try_engine(const trpi_client_frame *frame)
{
    static const trpi_client_config config = { .ping_ms = 1000,
                                               .silence_ms = 3000,
                                               .try_ms = 1000,
                                               .refresh_ms = 5000,
                                               .pause_min_ms = 100,
                                               .pause_max_ms = 1000 };
    trpi_client_engine engine;
    trpi_address first, from;
    trpi_assert(trpi_address_parse("troupe.tcp://shop@10.0.0.1:2552", &first, NULL, NULL) ==
                TRP_OK);
    trpi_assert(trpi_client_begin(&engine, &config, &first, 1, 0, 1000) == TRP_OK);
    actions_take(&engine);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t now = 1100 + i * 1500;
        from = i % 2 == 1 && frame->contacts_count > 0 ? frame->contacts[0] : first;
        trpi_client_heard(&engine, &from, now);
        if (i == 0 || frame->word == TRPI_RECEPTIONIST_WELCOME) {
            trpi_client_welcome(&engine, &from, frame->contacts, frame->contacts_count, now);
        } else if (frame->word == TRPI_RECEPTIONIST_MOVE) {
            trpi_client_move(&engine, &from, frame->contacts, frame->contacts_count, now);
        } else {
            trpi_client_failed(&engine, &from, frame->why, now);
        }
        actions_take(&engine);
        trpi_client_tick(&engine, frame->number, now + 1000);
        actions_take(&engine);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_client_frame frame;
    if (trpi_client_frame_decode(data, size, &frame) == TRP_OK) {
        try_round_trip(&frame);
        try_engine(&frame);
    }
    return 0;
}
