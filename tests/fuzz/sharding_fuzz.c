/* sharding_fuzz.c - any bytes as a frame of sharding: refused, or a frame that reads back as it was
 * written. A valid frame is also given to a region that hosts shards and to a coordinator. */
#include "base/assert.h"
#include "cluster/sharding/coordinator.h"
#include "tests/fuzz/node_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NODES 3u

static void
try_round_trip(const trpi_shard_frame *frame)
{
    trpi_buffer once = { 0 }, twice = { 0 };
    trpi_shard_frame back;
    trpi_assert(trpi_shard_frame_encode(frame, &once) == TRP_OK);
    trpi_assert(trpi_shard_frame_decode(once.data, once.count, &back) == TRP_OK);
    trpi_assert(trpi_shard_frame_encode(&back, &twice) == TRP_OK);
    trpi_assert(once.count == twice.count && memcmp(once.data, twice.data, once.count) == 0);
    trpi_shard_frame_fini(&back);
    trpi_buffer_fini(&once);
    trpi_buffer_fini(&twice);
}

static void
check_both(const trpi_region_core *region, const trpi_coordinator *coordinator)
{
    trpi_check check;
    trpi_assert(trpi_region_core_check(region, &check) == NULL);
    trpi_assert(trpi_coordinator_check(coordinator, &check) == NULL);
}

/* Each frame twice, from the oldest and from another member. */
static void
try_engines(const trpi_shard_frame *frame)
{
    trpi_node_id self = node_id("sim", 1);
    trpi_sharding_settings settings = { .shards = 8 };
    trpi_shard_member members[NODES];
    trpi_region_core *region = NULL;
    trpi_coordinator *coordinator = NULL;
    memset(members, 0, sizeof members);
    for (uint32_t i = 0; i < NODES; i++) {
        members[i] = (trpi_shard_member){ .id = node_id("sim", i + 1),
                                          .up_number = i + 1,
                                          .status = TRP_MEMBER_UP,
                                          .has_role = true };
    }
    trpi_assert(trpi_region_core_new(&self, "order", NULL, &region) == TRP_OK);
    trpi_assert(trpi_coordinator_new(&self, "order", "", NULL, &coordinator) == TRP_OK);
    trpi_region_event start = { .kind = TRPI_REGION_START, .settings = &settings, .hosts = true };
    trpi_region_event seen = { .kind = TRPI_REGION_MEMBERS,
                               .members = members,
                               .members_count = NODES };
    trpi_coordinator_event known = { .kind = TRPI_COORDINATOR_MEMBERS,
                                     .members = members,
                                     .members_count = NODES };
    trpi_assert(trpi_region_core_step(region, 1000, &start) == TRP_OK);
    trpi_assert(trpi_region_core_step(region, 1000, &seen) == TRP_OK);
    trpi_assert(trpi_coordinator_step(coordinator, 1000, &known) == TRP_OK);
    for (uint32_t i = 0; i < 2 * NODES; i++) {
        trpi_region_event to_region = { .kind = TRPI_REGION_FRAME,
                                        .from = members[i % NODES].id,
                                        .frame = frame };
        trpi_coordinator_event to_coordinator = { .kind = TRPI_COORDINATOR_FRAME,
                                                  .from = members[i % NODES].id,
                                                  .frame = frame };
        trpi_assert(trpi_region_core_step(region, 1001 + i, &to_region) == TRP_OK);
        trpi_assert(trpi_coordinator_step(coordinator, 1001 + i, &to_coordinator) == TRP_OK);
        check_both(region, coordinator);
    }
    trpi_region_core_free(region);
    trpi_coordinator_free(coordinator);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_shard_frame frame;
    if (trpi_shard_frame_decode(data, size, &frame) == TRP_OK) {
        try_round_trip(&frame);
        try_engines(&frame);
        trpi_shard_frame_fini(&frame);
    }
    return 0;
}
