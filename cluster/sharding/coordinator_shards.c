/* coordinator_shards.c - the phases of a shard between its homes.
 *
 * States.  FREE --grant--> GRANTING --STARTED--> HOSTED --move--> BEGINNING --all fenced-->
 *          STOPPING --STOPPED--> FREE; 2b and 2c go from HOSTED to STOPPING. A removed node's are
 *          FREE, and blocked for its take-over time.
 * Must hold. sharding-C1, sharding-C3 and sharding-C4 of coordinator.c.
 * Tests.     tests/unit/cluster/sharding_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/coordinator_inner.h"

static bool
is_moving(uint32_t phase)
{
    return phase == TRPI_SHARD_PHASE_GRANTING || phase == TRPI_SHARD_PHASE_BEGINNING ||
           phase == TRPI_SHARD_PHASE_STOPPING;
}

void
trpi_coord_set(trpi_coordinator *core, uint32_t number, trpi_shard_phase phase, uint32_t slot,
               uint64_t epoch)
{
    trpi_coord_shard *shard = &core->shards[number];
    trpi_assert((phase == TRPI_SHARD_PHASE_FREE) == (slot == TRPI_SHARD_SLOT_NONE));
    if (shard->node != TRPI_SHARD_SLOT_NONE) {
        core->states[shard->node].shards--;
    }
    if (slot != TRPI_SHARD_SLOT_NONE) {
        core->states[slot].shards++;
        shard->known = true;
    }
    core->moving += (uint32_t)is_moving(phase) - (uint32_t)is_moving(shard->phase);
    if (phase != TRPI_SHARD_PHASE_BEGINNING) {
        trpi_slot_set_fini(&shard->begins);
    }
    if (phase != TRPI_SHARD_PHASE_FREE && shard->wanted) {
        shard->wanted = false;
        core->wanting--;
    }
    shard->phase = (uint8_t)phase;
    shard->node = slot;
    shard->epoch = epoch;
    shard->since_ms = core->now_ms;
    shard->sent_ms = 0;
    shard->blocker = TRPI_SHARD_SLOT_NONE;
    shard->blocked_ms = 0;
}

void
trpi_coord_want(trpi_coordinator *core, uint32_t number)
{
    trpi_coord_shard *shard = &core->shards[number];
    if (shard->phase == TRPI_SHARD_PHASE_FREE && !shard->wanted) {
        shard->wanted = true;
        core->wanting++;
    }
}

/* ---- answers of regions ---------------------------------------------------------------------- */

void
trpi_coord_get(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame)
{
    for (uint32_t i = 0; i < frame->items_count; i++) {
        uint32_t number = frame->items[i].shard;
        if (number >= core->settings.shards || !core->states[slot].judged ||
            core->states[slot].refused) {
            continue;
        }
        trpi_coord_shard *shard = &core->shards[number];
        if (shard->phase == TRPI_SHARD_PHASE_HOSTED) {
            trpi_coord_put(core, slot, TRPI_SHARD_FRAME_HOME, shard->node, number, shard->epoch);
        } else if (trpi_slot_set_add(&shard->askers, slot)) {
            trpi_coord_want(core, number);
        } else {
            core->err = TRP_ENOMEM; /* it asks again */
        }
    }
}

static void
stop_shard(trpi_coordinator *core, uint32_t number)
{
    trpi_coord_shard *shard = &core->shards[number];
    trpi_coord_set(core, number, TRPI_SHARD_PHASE_STOPPING, shard->node, shard->epoch);
    shard->sent_ms = core->now_ms;
    trpi_coord_put(core, shard->node, TRPI_SHARD_FRAME_HANDOFF, TRPI_SHARD_SLOT_NONE, number,
                   shard->epoch);
}

void
trpi_coord_begun(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item)
{
    trpi_coord_shard *shard = &core->shards[item->shard];
    if (shard->phase == TRPI_SHARD_PHASE_BEGINNING && shard->epoch == item->epoch) {
        trpi_slot_set_remove(&shard->begins, slot);
        if (shard->begins.count == 0) {
            stop_shard(core, item->shard);
        }
    }
}

void
trpi_coord_stopped(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item)
{
    trpi_coord_shard *shard = &core->shards[item->shard];
    for (uint32_t i = 0; i < core->orphans_count; i++) {
        const trpi_coord_orphan *orphan = &core->orphans[i];
        if (orphan->node == slot && orphan->shard == item->shard && orphan->epoch == item->epoch) {
            core->orphans[i] = core->orphans[--core->orphans_count];
            return;
        }
    }
    if (shard->node == slot && shard->epoch == item->epoch) {
        trpi_coord_set(core, item->shard, TRPI_SHARD_PHASE_FREE, TRPI_SHARD_SLOT_NONE, 0);
        trpi_coord_want(core, item->shard); /* it was in use: it gets a home at once */
    }
}

void
trpi_coord_started(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item)
{
    trpi_coord_shard *shard = &core->shards[item->shard];
    if (shard->phase != TRPI_SHARD_PHASE_GRANTING || shard->node != slot ||
        shard->epoch != item->epoch) {
        return;
    }
    trpi_coord_set(core, item->shard, TRPI_SHARD_PHASE_HOSTED, slot, item->epoch);
    for (uint32_t i = trpi_slot_set_next(&shard->askers, 0); i != TRPI_SHARD_SLOT_NONE;
         i = trpi_slot_set_next(&shard->askers, i + 1)) {
        trpi_coord_put(core, i, TRPI_SHARD_FRAME_HOME, slot, item->shard, item->epoch);
    }
    trpi_slot_set_fini(&shard->askers);
}

/* A node was removed: what it had is free, and blocked while it may still run. */
void
trpi_coord_forget_node(trpi_coordinator *core, uint32_t slot)
{
    const trpi_coord_node *state = &core->states[slot];
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        trpi_coord_shard *shard = &core->shards[i];
        trpi_slot_set_remove(&shard->askers, slot);
        if (trpi_slot_set_has(&shard->begins, slot)) {
            trpi_slot_set_remove(&shard->begins, slot);
            if (shard->begins.count == 0 && shard->node != slot) {
                stop_shard(core, i); /* the answer of a removed member counts as given */
            }
        }
        if (shard->node == slot) {
            bool wanted =
                is_moving(shard->phase) || core->settings.eager || shard->askers.count > 0;
            trpi_coord_set(core, i, TRPI_SHARD_PHASE_FREE, TRPI_SHARD_SLOT_NONE, 0);
            shard->blocker = slot;
            shard->blocked_ms = state->until_ms;
            if (wanted) {
                trpi_coord_want(core, i);
            }
        }
    }
    for (uint32_t i = 0; i < core->states_count; i++) {
        trpi_slot_set_remove(&core->states[i].avoid, slot);
    }
    for (uint32_t i = 0; i < core->orphans_count;) {
        if (core->orphans[i].node == slot) {
            core->orphans[i] = core->orphans[--core->orphans_count];
        } else {
            i++;
        }
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

void
trpi_coord_move(trpi_coordinator *core, uint32_t number)
{
    trpi_coord_shard *shard = &core->shards[number];
    trpi_assert(shard->phase == TRPI_SHARD_PHASE_HOSTED);
    trpi_coord_put(core, TRPI_SHARD_SLOT_NONE, TRPI_SHARD_FRAME_BEGIN, TRPI_SHARD_SLOT_NONE, number,
                   shard->epoch);
    if (!core->settings.keeps_active) {
        stop_shard(core, number);
        return;
    }
    trpi_coord_set(core, number, TRPI_SHARD_PHASE_BEGINNING, shard->node, shard->epoch);
    shard->sent_ms = core->now_ms;
    for (uint32_t i = 0; i < core->states_count; i++) {
        if (core->nodes.slots[i].present && !trpi_slot_set_add(&shard->begins, i)) {
            core->err = TRP_ENOMEM; /* it is not waited for, and learns it by a returned message */
        }
    }
}

/* Send what was not answered again, and end what takes too long. */
static void
push_shard(trpi_coordinator *core, uint32_t number)
{
    trpi_coord_shard *shard = &core->shards[number];
    bool due = core->now_ms - shard->sent_ms >= core->options.retry_ms;
    if (shard->phase == TRPI_SHARD_PHASE_BEGINNING &&
        (shard->begins.count == 0 || core->now_ms - shard->since_ms >= core->options.begin_ms)) {
        stop_shard(core, number);
        return;
    }
    if (!due) {
        return;
    }
    shard->sent_ms = core->now_ms;
    if (shard->phase == TRPI_SHARD_PHASE_BEGINNING) {
        for (uint32_t i = trpi_slot_set_next(&shard->begins, 0); i != TRPI_SHARD_SLOT_NONE;
             i = trpi_slot_set_next(&shard->begins, i + 1)) {
            trpi_coord_put(core, i, TRPI_SHARD_FRAME_BEGIN, TRPI_SHARD_SLOT_NONE, number,
                           shard->epoch);
        }
    } else {
        trpi_coord_put(core, shard->node,
                       shard->phase == TRPI_SHARD_PHASE_GRANTING ? TRPI_SHARD_FRAME_GRANT
                                                                 : TRPI_SHARD_FRAME_HANDOFF,
                       TRPI_SHARD_SLOT_NONE, number, shard->epoch);
    }
}

/* ---- what is due ----------------------------------------------------------------------------- */

static void
look_at_orphans(trpi_coordinator *core)
{
    for (uint32_t i = 0; i < core->orphans_count; i++) {
        trpi_coord_put(core, core->orphans[i].node, TRPI_SHARD_FRAME_HANDOFF, TRPI_SHARD_SLOT_NONE,
                       core->orphans[i].shard, core->orphans[i].epoch);
    }
    if (core->orphans_count > 0) {
        trpi_coord_wake_at(core, core->now_ms + core->options.retry_ms);
    }
}

void
trpi_coord_look_at_shards(trpi_coordinator *core)
{
    if (core->settings.shards == 0) {
        return;
    }
    look_at_orphans(core);
    bool has_taker = core->ready && trpi_coord_has_taker(core);
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_coord_shard *shard = &core->shards[i];
        if (shard->phase == TRPI_SHARD_PHASE_HOSTED &&
            (core->states[shard->node].leaving ||
             (has_taker && core->nodes.slots[shard->node].member.drained))) { /* sharding-C11 */
            trpi_coord_move(core, i);
        }
        if (is_moving(shard->phase)) {
            push_shard(core, i);
        }
        if (shard->wanted && shard->blocked_ms > core->now_ms) {
            trpi_coord_wake_at(core, shard->blocked_ms);
        }
    }
    trpi_coord_allocate(core);
    if (core->moving > 0) {
        trpi_coord_wake_at(core, core->now_ms + core->options.retry_ms);
    }
}
