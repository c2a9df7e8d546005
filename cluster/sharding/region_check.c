/* region_check.c - the invariants of a region between two steps, as code; and what may be read.
 *
 * Must hold. Besides sharding-R1 to sharding-R4 of region_core.c:
 *   sharding-R5  The numbers of hosted and of fencing shards are those of the table, and a type
 *       that is not started has none.
 *   sharding-R6  A hosted shard has an epoch above all that have ended here, and none above all
 *       that were heard of.
 *   sharding-R7  A shard that is sent to a node is sent to a present member that is not leaving,
 *       and, with order, waits for no fence.
 *   sharding-R8  A home that is known and not used waits for a fence.
 *   sharding-R9  What waits for an answer has a wake time.
 *   sharding-R10 A region that may leave hosts nothing.
 * Tests.     tests/unit/cluster/sharding_test.c
 */
#include "base/assert.h"
#include "cluster/sharding/region_inner.h"

static const char *
check_shard(const trpi_region_core *core, uint32_t number, trpi_check *check)
{
    const trpi_region_shard *shard = &core->shards[number];
    bool fencing = shard->fence != TRPI_SHARD_SLOT_NONE;
    if (shard->epoch > shard->heard ||
        (shard->place != TRPI_SHARD_PLACE_UNKNOWN) != (shard->epoch != 0)) {
        return trpi_check_broken(check, "sharding-R6: shard %u in place %u with epoch %llu", number,
                                 shard->place, (unsigned long long)shard->epoch);
    }
    if (shard->place >= TRPI_SHARD_PLACE_OPENING && shard->epoch <= shard->ended) {
        return trpi_check_broken(check, "sharding-R6: shard %u has epoch %llu, which has ended",
                                 number, (unsigned long long)shard->epoch);
    }
    if (shard->place == TRPI_SHARD_PLACE_AWAY &&
        (!core->nodes.slots[shard->node].used || core->peers[shard->node].avoided ||
         (fencing && trpi_region_is_ordered(core)))) {
        return trpi_check_broken(check, "sharding-R7: shard %u is sent to slot %u", number,
                                 shard->node);
    }
    if (shard->next != TRPI_SHARD_SLOT_NONE &&
        (!fencing || shard->place != TRPI_SHARD_PLACE_UNKNOWN) && core->err == TRP_OK) {
        return trpi_check_broken(check, "sharding-R8: shard %u in place %u has a next home", number,
                                 shard->place);
    }
    return NULL;
}

const char *
trpi_region_core_check(const trpi_region_core *core, trpi_check *check)
{
    uint32_t hosted = 0, fencing = 0, fences = 0;
    bool waits = false;
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_region_shard *shard = &core->shards[i];
        const char *broken = check_shard(core, i, check);
        if (broken != NULL) {
            return broken;
        }
        hosted += shard->place >= TRPI_SHARD_PLACE_OPENING;
        fencing += shard->fence != TRPI_SHARD_SLOT_NONE;
        waits = waits || shard->fence != TRPI_SHARD_SLOT_NONE ||
                shard->place == TRPI_SHARD_PLACE_OPENING ||
                (shard->place == TRPI_SHARD_PLACE_UNKNOWN && shard->wanted);
    }
    for (uint32_t i = 0; i < core->peers_count; i++) {
        fences += core->peers[i].fences;
    }
    if (hosted != core->hosted || fencing != core->fencing || fences != fencing) {
        return trpi_check_broken(check, "sharding-R5: %u hosted, %u fencing; the table has %u, %u",
                                 core->hosted, core->fencing, hosted, fencing);
    }
    if (waits && core->wake_ms == TRPI_REGION_NEVER) {
        return trpi_check_broken(check, "sharding-R9: something waits, and nothing is due");
    }
    if (core->left && core->hosted > 0) {
        return trpi_check_broken(check, "sharding-R10: it may leave, and hosts %u", core->hosted);
    }
    return NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool
trpi_region_core_shard(const trpi_region_core *core, uint32_t number,
                       trpi_region_shard_info *ret_info)
{
    const trpi_region_shard *shard;
    if (number >= core->settings.shards) {
        return false;
    }
    shard = &core->shards[number];
    *ret_info = (trpi_region_shard_info){ .place = (trpi_shard_place)shard->place,
                                          .wanted = shard->wanted,
                                          .fencing = shard->fence != TRPI_SHARD_SLOT_NONE,
                                          .epoch = shard->epoch,
                                          .since_ms = shard->since_ms };
    if (shard->place == TRPI_SHARD_PLACE_AWAY) {
        ret_info->node = core->nodes.slots[shard->node].member.id;
    }
    if (ret_info->fencing) {
        ret_info->fence_node = core->nodes.slots[shard->fence].member.id;
    }
    return true;
}

uint32_t
trpi_region_core_hosted(const trpi_region_core *core)
{
    return core->hosted;
}

uint32_t
trpi_region_core_homeless(const trpi_region_core *core, uint64_t *ret_since_ms)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_region_shard *shard = &core->shards[i];
        if (shard->wanted && shard->place == TRPI_SHARD_PLACE_UNKNOWN &&
            (count++ == 0 || shard->wanted_ms < *ret_since_ms)) {
            *ret_since_ms = shard->wanted_ms;
        }
    }
    return count;
}

bool
trpi_region_core_coordinator(const trpi_region_core *core, trpi_node_id *ret_node,
                             trpi_shard_term *ret_term, bool *ret_registered)
{
    if (core->bound.uid == 0) {
        return false;
    }
    *ret_node = core->boss;
    *ret_term = core->bound;
    *ret_registered = core->registered;
    return true;
}
