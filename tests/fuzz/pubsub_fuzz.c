/* pubsub_fuzz.c - any bytes as a frame of registries: refused, or a frame that reads back as it was
 * written. */
#include <string.h>

#include "base/assert.h"
#include "cluster/pubsub/registry_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_round_trip(const trpi_pubsub_frame *frame)
{
    trpi_buffer once = { 0 }, twice = { 0 };
    trpi_pubsub_frame back;
    trpi_assert(trpi_pubsub_frame_encode(frame, &once) == TRP_OK);
    trpi_assert(trpi_pubsub_frame_decode(once.data, once.count, &back) == TRP_OK);
    trpi_assert(trpi_pubsub_frame_encode(&back, &twice) == TRP_OK);
    trpi_assert(once.count == twice.count && memcmp(once.data, twice.data, once.count) == 0);
    trpi_pubsub_frame_fini(&back);
    trpi_buffer_fini(&once);
    trpi_buffer_fini(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_pubsub_frame frame;
    if (trpi_pubsub_frame_decode(data, size, &frame) == TRP_OK) {
        try_round_trip(&frame);
        trpi_pubsub_frame_fini(&frame);
    }
    return 0;
}
