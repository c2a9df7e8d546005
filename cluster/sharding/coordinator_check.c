/* coordinator_check.c - the invariants of a coordinator between two steps, as code; and what may be
 * read.
 *
 * Must hold. Besides sharding-C1 to sharding-C4 of coordinator.c:
 *   sharding-C5  The numbers of shards a node, of moving and of wanted shards are the table's.
 *   sharding-C6  A shard has a node exactly when it is not free, and that node is a present member
 *       that has answered.
 *   sharding-C7  No two shards have one epoch, and none is above the counter of the term.
 *   sharding-C8  An inactive coordinator has no table.
 *   sharding-C9  What moves has a wake time.
 * Tests.     tests/unit/cluster/sharding_test.c
 */
#include "base/assert.h"
#include "cluster/sharding/coordinator_inner.h"

static const char *
check_shard(const trpi_coordinator *core, uint32_t number, trpi_check *check)
{
    const trpi_coord_shard *shard = &core->shards[number];
    uint64_t latest = core->term.up_number << 32 | core->counter;
    if ((shard->phase == TRPI_SHARD_PHASE_FREE) != (shard->node == TRPI_SHARD_SLOT_NONE) ||
        (shard->node != TRPI_SHARD_SLOT_NONE &&
         (!core->nodes.slots[shard->node].present || !core->states[shard->node].answered))) {
        return trpi_check_broken(check, "sharding-C6: shard %u in phase %u at slot %u", number,
                                 shard->phase, shard->node);
    }
    if (shard->epoch > latest) {
        return trpi_check_broken(check, "sharding-C7: shard %u has epoch %llu, above %llu", number,
                                 (unsigned long long)shard->epoch, (unsigned long long)latest);
    }
    if (shard->begins.count > 0 && shard->phase != TRPI_SHARD_PHASE_BEGINNING) {
        return trpi_check_broken(check, "sharding-C5: shard %u in phase %u waits for fences",
                                 number, shard->phase);
    }
    return NULL;
}

const char *
trpi_coordinator_check(const trpi_coordinator *core, trpi_check *check)
{
    uint32_t moving = 0, wanting = 0, placed = 0, counted = 0;
    if (!core->active) {
        return core->shards == NULL ? NULL
                                    : trpi_check_broken(check, "sharding-C8: inactive, a table");
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_coord_shard *shard = &core->shards[i];
        const char *broken = check_shard(core, i, check);
        if (broken != NULL) {
            return broken;
        }
        moving += shard->phase != TRPI_SHARD_PHASE_FREE && shard->phase != TRPI_SHARD_PHASE_HOSTED;
        wanting += shard->wanted;
        placed += shard->node != TRPI_SHARD_SLOT_NONE;
    }
    for (uint32_t i = 0; i < core->states_count; i++) {
        counted += core->states[i].shards;
    }
    if (moving != core->moving || wanting != core->wanting || placed != counted) {
        return trpi_check_broken(check,
                                 "sharding-C5: %u moving, %u wanted, %u placed; not %u, %u, "
                                 "%u",
                                 core->moving, core->wanting, counted, moving, wanting, placed);
    }
    if (moving > 0 && core->wake_ms > core->now_ms + core->options.retry_ms) {
        return trpi_check_broken(check, "sharding-C9: %u shards move, and nothing is due", moving);
    }
    return NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool
trpi_coordinator_is_active(const trpi_coordinator *core)
{
    return core->active;
}

bool
trpi_coordinator_is_ready(const trpi_coordinator *core)
{
    return core->active && core->ready;
}

trpi_shard_term
trpi_coordinator_term(const trpi_coordinator *core)
{
    return core->term;
}

uint64_t
trpi_coordinator_since_ms(const trpi_coordinator *core)
{
    return core->since_ms;
}

uint32_t
trpi_coordinator_shards(const trpi_coordinator *core)
{
    return core->settings.shards;
}

static bool
wait_of_node(const trpi_coordinator *core, uint32_t slot, trpi_coordinator_wait *ret)
{
    const trpi_coord_node *state = &core->states[slot];
    bool gone = state->gone && state->until_ms > core->now_ms;
    if (!core->nodes.slots[slot].used) {
        return false;
    }
    *ret = (trpi_coordinator_wait){ .node = core->nodes.slots[slot].member.id,
                                    .since_ms = state->since_ms };
    if (gone && (state->waits || state->answered)) {
        ret->kind = TRPI_COORDINATOR_WAIT_TAKEOVER;
        ret->until_ms = state->until_ms;
        return true;
    }
    if (!gone && state->waits && !state->answered && core->nodes.slots[slot].present) {
        ret->kind = TRPI_COORDINATOR_WAIT_ANSWER;
        return true;
    }
    return false;
}

static bool
wait_of_avoid(const trpi_coordinator *core, uint32_t slot, trpi_coordinator_wait *ret)
{
    const trpi_coord_node *state = &core->states[slot];
    uint32_t first = trpi_slot_set_next(&state->avoid, 0);
    if (!core->nodes.slots[slot].present || first == TRPI_SHARD_SLOT_NONE) {
        return false;
    }
    *ret = (trpi_coordinator_wait){ .kind = TRPI_COORDINATOR_WAIT_AVOID,
                                    .node = core->nodes.slots[first].member.id,
                                    .since_ms = state->avoid_since_ms };
    return true;
}

static bool
wait_of_shard(const trpi_coordinator *core, uint32_t number, trpi_coordinator_wait *ret)
{
    const trpi_coord_shard *shard = &core->shards[number];
    uint32_t slot = shard->phase == TRPI_SHARD_PHASE_BEGINNING
                        ? trpi_slot_set_next(&shard->begins, 0)
                        : shard->node;
    if (shard->phase == TRPI_SHARD_PHASE_FREE || shard->phase == TRPI_SHARD_PHASE_HOSTED ||
        slot == TRPI_SHARD_SLOT_NONE) {
        return false;
    }
    *ret = (trpi_coordinator_wait){ .kind = shard->phase == TRPI_SHARD_PHASE_BEGINNING
                                                ? TRPI_COORDINATOR_WAIT_BEGIN
                                            : shard->phase == TRPI_SHARD_PHASE_STOPPING
                                                ? TRPI_COORDINATOR_WAIT_STOP
                                                : TRPI_COORDINATOR_WAIT_START,
                                    .shard = number,
                                    .node = core->nodes.slots[slot].member.id,
                                    .since_ms = shard->since_ms };
    return true;
}

/* Shards without a home wait, since every region is drained. */
static bool
wait_of_drained(const trpi_coordinator *core, trpi_coordinator_wait *ret)
{
    uint32_t region = TRPI_SHARD_SLOT_NONE;
    if (!core->ready || core->wanting == 0 || trpi_coord_has_taker(core)) {
        return false;
    }
    for (uint32_t i = 0; i < core->states_count && region == TRPI_SHARD_SLOT_NONE; i++) {
        bool drained = core->nodes.slots[i].present && core->nodes.slots[i].member.drained;
        region = drained && core->states[i].hosts ? i : TRPI_SHARD_SLOT_NONE;
    }
    for (uint32_t i = 0; region != TRPI_SHARD_SLOT_NONE && i < core->settings.shards; i++) {
        if (core->shards[i].wanted) {
            *ret = (trpi_coordinator_wait){ .kind = TRPI_COORDINATOR_WAIT_UNDRAIN,
                                            .shard = i,
                                            .node = core->nodes.slots[region].member.id,
                                            .since_ms = core->shards[i].since_ms };
            return true;
        }
    }
    return false;
}

bool
trpi_coordinator_waits(const trpi_coordinator *core, uint32_t *at, trpi_coordinator_wait *ret_wait)
{
    uint32_t nodes = core->states_count;
    while (core->active && *at < 1 + 2 * nodes + core->settings.shards) {
        uint32_t i = (*at)++;
        if (i == 0) {
            if (core->ready && trpi_coord_regions(core) < core->settings.members_min) {
                *ret_wait = (trpi_coordinator_wait){ .kind = TRPI_COORDINATOR_WAIT_MEMBERS,
                                                     .node = core->self,
                                                     .since_ms = core->since_ms };
                return true;
            }
            if (wait_of_drained(core, ret_wait)) {
                return true;
            }
        } else if (i <= nodes       ? wait_of_node(core, i - 1, ret_wait)
                   : i <= 2 * nodes ? wait_of_avoid(core, i - 1 - nodes, ret_wait)
                                    : wait_of_shard(core, i - 1 - 2 * nodes, ret_wait)) {
            return true;
        }
    }
    return false;
}

bool
trpi_coordinator_shard(const trpi_coordinator *core, uint32_t number,
                       trpi_coordinator_shard_info *ret_info)
{
    const trpi_coord_shard *shard;
    if (number >= core->settings.shards) {
        return false;
    }
    shard = &core->shards[number];
    *ret_info = (trpi_coordinator_shard_info){ .phase = (trpi_shard_phase)shard->phase,
                                               .epoch = shard->epoch,
                                               .since_ms = shard->since_ms,
                                               .blocked_until_ms = shard->blocked_ms };
    if (shard->node != TRPI_SHARD_SLOT_NONE) {
        ret_info->node = core->nodes.slots[shard->node].member.id;
    }
    return true;
}

bool
trpi_coordinator_region(const trpi_coordinator *core, uint32_t index,
                        trpi_coordinator_region_info *ret_info)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; core->active && i < core->nodes.order_count; i++) {
        uint32_t slot = core->nodes.order[i];
        const trpi_coord_node *state = &core->states[slot];
        if (core->nodes.slots[slot].present && (state->answered || state->waits) &&
            seen++ == index) {
            *ret_info =
                (trpi_coordinator_region_info){ .node = core->nodes.slots[slot].member.id,
                                                .answered = state->answered,
                                                .hosts = state->hosts,
                                                .refused = state->refused,
                                                .leaving = state->leaving,
                                                .drained = core->nodes.slots[slot].member.drained,
                                                .shards = state->shards };
            return true;
        }
    }
    return false;
}
