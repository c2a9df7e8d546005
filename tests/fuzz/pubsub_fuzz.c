/* pubsub_fuzz.c - any bytes as a frame of registries: refused, or a frame that reads back as it was
 * written. A valid frame is also given to a registry that has a bucket and peers. */
#include <string.h>

#include "base/assert.h"
#include "cluster/pubsub/registry.h"
#include "tests/fuzz/node_id.h"

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

/* The frame from two peers, as it is and as one of their time, with a tick after each. */
static void
try_registry(const trpi_pubsub_frame *frame)
{
    trpi_node_id self = node_id("sim", 1);
    trpi_pubreg_member members[3];
    trpi_pubreg *registry = NULL;
    trpi_pubsub_key key = { TRPI_PUBSUB_GROUP, 4, 1, "news", "g" };
    trpi_pubsub_frame other = *frame;
    trpi_check check;
    trpi_assert(trpi_pubreg_new(&self, "mediator", NULL, &registry) == TRP_OK);
    for (uint32_t i = 0; i < 3; i++) {
        members[i] = (trpi_pubreg_member){ node_id("sim", i + 1), TRP_MEMBER_UP };
    }
    trpi_assert(trpi_pubreg_members(registry, 1000, members, 3) == TRP_OK);
    trpi_assert(trpi_pubreg_put(registry, 1000, &key, 2) == TRP_OK);
    other.to_uid = self.uid;
    for (uint32_t i = 0; i < 6; i++) {
        const trpi_pubsub_frame *one = i == 0 ? frame : &other;
        trpi_assert(trpi_pubreg_frame(registry, 1001 + i * 1000, &members[1 + i % 2].id, one) ==
                    TRP_OK);
        trpi_assert(trpi_pubreg_check(registry, &check) == NULL);
        trpi_pubreg_tick(registry, 1500 + i * 1000);
        trpi_assert(trpi_pubreg_check(registry, &check) == NULL);
        other.base = i > 2 ? 0 : other.base;
        other.life += i == 4;
    }
    trpi_assert(trpi_pubreg_put(registry, 9000, &key, 0) == TRP_OK);
    trpi_assert(trpi_pubreg_members(registry, 9000, members, 2) == TRP_OK);
    trpi_assert(trpi_pubreg_check(registry, &check) == NULL);
    trpi_pubreg_free(registry);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_pubsub_frame frame;
    if (trpi_pubsub_frame_decode(data, size, &frame) == TRP_OK) {
        try_round_trip(&frame);
        try_registry(&frame);
        trpi_pubsub_frame_fini(&frame);
    }
    return 0;
}
