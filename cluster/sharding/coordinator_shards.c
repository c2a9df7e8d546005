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

static void
wake_at(trpi_coordinator *core, uint64_t at_ms)
{
    core->wake_ms = at_ms < core->wake_ms ? at_ms : core->wake_ms;
}

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

/* ---- grants ---------------------------------------------------------------------------------- */

typedef struct places { /* the table as an allocation sees it */
    trpi_allocation_view view;
    trpi_allocation_region *regions;
    uint32_t *homes;
    uint32_t *slots; /* of each region */
    uint32_t *counts, *moves;
    bool rolling; /* several versions of the application */
} places;

static void
places_free(places *p)
{
    trpi_free(p->regions);
    trpi_free(p->homes);
    trpi_free(p->slots);
    trpi_free(p->counts);
    trpi_free(p->moves);
}

static bool
places_make(trpi_coordinator *core, places *p)
{
    uint32_t room = core->nodes.order_count + 1, *index_of = NULL;
    memset(p, 0, sizeof *p);
    p->regions = trpi_alloc(room * sizeof *p->regions);
    p->slots = trpi_alloc(room * sizeof *p->slots);
    p->counts = trpi_alloc(room * sizeof *p->counts);
    p->homes = trpi_alloc(core->settings.shards * sizeof *p->homes);
    p->moves = trpi_alloc(core->settings.shards * sizeof *p->moves);
    index_of = trpi_alloc((core->states_count + 1u) * sizeof *index_of);
    if (p->regions == NULL || p->slots == NULL || p->counts == NULL || p->homes == NULL ||
        p->moves == NULL || index_of == NULL) {
        trpi_free(index_of);
        places_free(p);
        core->err = TRP_ENOMEM;
        return false;
    }
    p->view = (trpi_allocation_view){ p->regions, 0, core->settings.shards, p->homes,
                                      TRPI_ALLOCATION_NONE };
    for (uint32_t i = 0; i < core->nodes.order_count; i++) {
        uint32_t slot = core->nodes.order[i];
        const trpi_shard_node *node = &core->nodes.slots[slot];
        const trpi_coord_node *state = &core->states[slot];
        index_of[slot] = TRPI_ALLOCATION_NONE;
        if (!node->present || !state->hosts || !state->judged || state->refused) {
            continue;
        }
        index_of[slot] = p->view.regions_count;
        if (slot == core->last) {
            p->view.last = p->view.regions_count;
        }
        p->slots[p->view.regions_count] = slot;
        p->regions[p->view.regions_count++] =
            (trpi_allocation_region){ .node = &node->member.id,
                                      .app_version = node->member.app_version,
                                      .shards = state->shards,
                                      .weight = node->member.weight,
                                      .may_get = trpi_coord_may_get(core, slot) };
    }
    for (uint32_t i = 0; i < p->view.regions_count; i++) {
        p->rolling =
            p->rolling || strcmp(p->regions[i].app_version, p->regions[0].app_version) != 0;
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        const trpi_coord_shard *shard = &core->shards[i];
        p->homes[i] =
            shard->phase == TRPI_SHARD_PHASE_HOSTED ? index_of[shard->node] : TRPI_ALLOCATION_NONE;
    }
    trpi_free(index_of);
    return true;
}

/* sharding-C1 */
static bool
may_grant(const trpi_coordinator *core, const trpi_coord_shard *shard)
{
    return core->ready && shard->phase == TRPI_SHARD_PHASE_FREE &&
           shard->blocked_ms <= core->now_ms;
}

/* sharding-C3 */
static void
grant_shard(trpi_coordinator *core, uint32_t number, uint32_t slot)
{
    uint64_t epoch = core->term.up_number << 32 | ++core->counter;
    trpi_coord_set(core, number, TRPI_SHARD_PHASE_GRANTING, slot, epoch);
    core->shards[number].sent_ms = core->now_ms;
    core->last = slot;
    trpi_coord_put(core, slot, TRPI_SHARD_FRAME_GRANT, TRPI_SHARD_SLOT_NONE, number, epoch);
}

static void
grant_wanted(trpi_coordinator *core)
{
    trpi_allocation_kind kind = (trpi_allocation_kind)core->settings.allocation;
    uint32_t least = core->settings.members_min == 0 ? 1 : core->settings.members_min;
    places p;
    bool any = false;
    for (uint32_t i = 0; i < core->settings.shards && !any; i++) {
        any = core->shards[i].wanted && may_grant(core, &core->shards[i]);
    }
    if (!any || trpi_coord_regions(core) < least || !places_make(core, &p)) {
        return;
    }
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        if (!core->shards[i].wanted || !may_grant(core, &core->shards[i])) {
            continue;
        }
        uint32_t index = trpi_allocation_choose(kind, &p.view, i, core->ops, core->ops_arg);
        if (index == TRPI_ALLOCATION_NONE) {
            break;
        }
        grant_shard(core, i, p.slots[index]);
        p.regions[index].shards++;
        p.view.last = index;
    }
    places_free(&p);
}

/* ---- rebalancing ----------------------------------------------------------------------------- */

static uint32_t
period_of(const trpi_coordinator *core)
{
    return core->settings.rebalance_ms == 0 ? TRPI_SHARD_REBALANCE_MS_DEFAULT
                                            : core->settings.rebalance_ms;
}

static void
rebalance_shards(trpi_coordinator *core)
{
    const trpi_sharding_settings *s = &core->settings;
    bool due = core->rebalance_now || core->now_ms - core->rebalance_ms >= period_of(core);
    places p;
    if (!due || core->moving > 0) { /* one round at a time */
        return;
    }
    core->rebalance_now = false;
    core->rebalance_ms = core->now_ms;
    if (!places_make(core, &p)) {
        return;
    }
    /* During a rolling update shards would move twice: they move when their nodes leave. */
    if (!p.rolling) {
        uint32_t max = trpi_allocation_round(
            s->shards, s->moves_max == 0 ? TRPI_SHARD_MOVES_MAX_DEFAULT : s->moves_max,
            s->moves_permille == 0 ? TRPI_SHARD_MOVES_PERMILLE_DEFAULT : s->moves_permille);
        uint32_t count =
            trpi_allocation_rebalance((trpi_allocation_kind)s->allocation, &p.view, max, core->ops,
                                      core->ops_arg, p.counts, p.moves);
        for (uint32_t i = 0; i < count; i++) {
            if (p.moves[i] < s->shards &&
                core->shards[p.moves[i]].phase == TRPI_SHARD_PHASE_HOSTED) {
                trpi_coord_move(core, p.moves[i]);
            }
        }
    }
    places_free(&p);
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
        wake_at(core, core->now_ms + core->options.retry_ms);
    }
}

void
trpi_coord_look_at_shards(trpi_coordinator *core)
{
    if (core->settings.shards == 0) {
        return;
    }
    look_at_orphans(core);
    for (uint32_t i = 0; core->ready && i < core->settings.shards; i++) {
        const trpi_coord_shard *shard = &core->shards[i];
        if (shard->phase == TRPI_SHARD_PHASE_HOSTED && core->states[shard->node].leaving) {
            trpi_coord_move(core, i);
        }
        if (is_moving(shard->phase)) {
            push_shard(core, i);
        }
        if (shard->wanted && shard->blocked_ms > core->now_ms) {
            wake_at(core, shard->blocked_ms);
        }
    }
    grant_wanted(core);
    if (core->ready) {
        rebalance_shards(core);
        wake_at(core, core->rebalance_ms + period_of(core));
    }
    if (core->moving > 0) {
        wake_at(core, core->now_ms + core->options.retry_ms);
    }
}
