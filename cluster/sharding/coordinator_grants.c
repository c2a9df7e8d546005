/* coordinator_grants.c - which region gets a shard, and which shards move: by itself, or as the
 * program says.
 *
 * Shape.  wanted shards, period --> allocation.c
 *                               --> ROUND --the program's actor--> ANSWER
 * Must hold.
 *   sharding-C10  The engine waits for no answer: what is not answered in time is decided without,
 *       and an answer is checked against the table as it is when it comes.
 * Tests.  tests/unit/cluster/sharding_test.c, tests/sim/sharding_test.c, tests/sim/entities_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/coordinator_inner.h"

enum { ROUND_LOST = 10 }; /* answer_ms: then the question has got lost */

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
    return (core->ready || shard->known) && shard->phase == TRPI_SHARD_PHASE_FREE &&
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

/* Whether the program is to be asked, and not least shards. */
static bool
is_asked(const trpi_coordinator *core)
{
    return core->asks && core->settings.allocation == TRPI_ALLOCATION_USER;
}

static void
round_ask(trpi_coordinator *core, const places *p, const uint32_t *wanted, uint32_t wanted_count,
          uint32_t moves_max)
{
    trpi_allocation_question *round =
        trpi_allocation_question_new(core->type, &p->view, wanted, wanted_count, moves_max);
    trpi_coordinator_action *action =
        round == NULL ? NULL : trpi_coord_act(core, TRPI_COORDINATOR_ROUND);
    if (action == NULL) {
        trpi_free(round);
        core->err = TRP_ENOMEM;
        return;
    }
    round->serial = ++core->rounds;
    action->question = round;
    core->round = core->round_open = round->serial;
    core->round_ms = core->now_ms;
    trpi_coord_wake_at(core, core->now_ms + core->options.answer_ms);
}

/* sharding-C10 */
static void
round_look(trpi_coordinator *core)
{
    uint64_t late_ms = core->round_ms + core->options.answer_ms;
    uint64_t lost_ms = core->round_ms + (uint64_t)core->options.answer_ms * ROUND_LOST;
    if (core->round != 0 && core->now_ms >= late_ms) {
        trpi_coord_say(
            core, TRP_LOG_WARNING,
            "the allocation of '%s' by the program has not answered within %u ms: shards "
            "go where the fewest are until it does",
            core->type, core->options.answer_ms);
        core->round = 0;
    }
    if (core->round_open != 0 && core->now_ms >= lost_ms) {
        core->round_open = 0; /* it is asked anew */
    }
    if (core->round_open != 0) {
        trpi_coord_wake_at(core, core->round != 0 ? late_ms : lost_ms);
    }
}

static void
grant_to(trpi_coordinator *core, places *p, uint32_t number, uint32_t index)
{
    grant_shard(core, number, p->slots[index]);
    p->regions[index].shards++;
    p->view.last = index;
}

static void
grant_wanted(trpi_coordinator *core)
{
    trpi_allocation_kind kind = (trpi_allocation_kind)core->settings.allocation;
    uint32_t least = core->settings.members_min == 0 ? 1 : core->settings.members_min;
    uint32_t count = 0;
    places p;
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        count += core->shards[i].wanted && may_grant(core, &core->shards[i]);
    }
    if (count == 0 || (is_asked(core) && core->round != 0) || trpi_coord_regions(core) < least ||
        !places_make(core, &p)) {
        return;
    }
    count = 0;
    for (uint32_t i = 0; i < core->settings.shards; i++) {
        if (core->shards[i].wanted && may_grant(core, &core->shards[i])) {
            p.moves[count++] = i;
        }
    }
    if (is_asked(core) && core->round_open == 0) {
        round_ask(core, &p, p.moves, count, 0);
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = trpi_allocation_choose(kind, &p.view);
        if (index == TRPI_ALLOCATION_NONE) {
            break;
        }
        grant_to(core, &p, p.moves[i], index);
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
    if (!due || core->moving > 0 || (is_asked(core) && core->round_open != 0)) { /* one at a time */
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
        uint32_t count = 0;
        if (is_asked(core)) {
            round_ask(core, &p, p.moves, 0, max);
        } else {
            count = trpi_allocation_rebalance((trpi_allocation_kind)s->allocation, &p.view, max,
                                              p.counts, p.moves);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (p.moves[i] < s->shards &&
                core->shards[p.moves[i]].phase == TRPI_SHARD_PHASE_HOSTED) {
                trpi_coord_move(core, p.moves[i]);
            }
        }
    }
    places_free(&p);
}

void
trpi_coord_allocate(trpi_coordinator *core)
{
    round_look(core);
    grant_wanted(core);
    if (core->ready) {
        rebalance_shards(core);
        trpi_coord_wake_at(core, core->rebalance_ms + period_of(core));
    }
}

/* ---- the answer of the program --------------------------------------------------------------- */

/* Where the region of the question is now; NONE: it may get none any more. */
static uint32_t
index_of_node(const trpi_coordinator *core, const places *p, const trpi_node_id *node)
{
    uint32_t slot = trpi_shard_nodes_find(&core->nodes, node);
    for (uint32_t i = 0; i < p->view.regions_count; i++) {
        if (p->slots[i] == slot && p->regions[i].may_get) {
            return i;
        }
    }
    return TRPI_ALLOCATION_NONE;
}

static void
refuse_home(trpi_coordinator *core, const trp_allocation_round *ask, uint32_t i)
{
    uint32_t answer = ask->wanted_homes[i];
    if (answer >= ask->regions_count) {
        trpi_coord_say(core, TRP_LOG_WARNING,
                       "the allocation of '%s' by the program names region %u of %u for shard %u: "
                       "it goes where the fewest are",
                       core->type, answer, ask->regions_count, ask->wanted[i]);
    } else {
        trpi_coord_say(core, TRP_LOG_WARNING,
                       "the allocation of '%s' by the program names %s for shard %u, which takes "
                       "none: it goes where the fewest are",
                       core->type, ask->regions[answer].address, ask->wanted[i]);
    }
}

static void
answer_homes(trpi_coordinator *core, places *p, const trpi_allocation_question *round)
{
    const trp_allocation_round *ask = &round->ask;
    for (uint32_t i = 0; i < ask->wanted_count; i++) {
        uint32_t number = ask->wanted[i], answer = ask->wanted_homes[i];
        uint32_t index = TRPI_ALLOCATION_NONE;
        if (number >= core->settings.shards || !core->shards[number].wanted ||
            !may_grant(core, &core->shards[number])) {
            continue; /* it has got one meanwhile */
        }
        if (answer < ask->regions_count && ask->regions[answer].may_get) {
            index = index_of_node(core, p, &round->nodes[answer]);
        } else if (answer != TRP_ALLOCATION_NONE) {
            refuse_home(core, ask, i);
        }
        if (index == TRPI_ALLOCATION_NONE) {
            index = trpi_allocation_choose(TRPI_ALLOCATION_LEAST_SHARDS, &p->view);
        }
        if (index == TRPI_ALLOCATION_NONE) {
            return; /* it is asked for again */
        }
        grant_to(core, p, number, index);
    }
}

static void
answer_moves(trpi_coordinator *core, const trp_allocation_round *ask)
{
    uint32_t count = ask->moves_count < ask->moves_max ? ask->moves_count : ask->moves_max;
    if (count < ask->moves_count) {
        trpi_coord_say(core, TRP_LOG_WARNING,
                       "the allocation of '%s' by the program moves %u shards, of at most %u: the "
                       "first %u move",
                       core->type, ask->moves_count, ask->moves_max, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = ask->moves[i];
        if (number >= ask->shards || ask->homes[number] == TRP_ALLOCATION_NONE) {
            trpi_coord_say(
                core, TRP_LOG_WARNING,
                "the allocation of '%s' by the program moves shard %u, which %s: refused",
                core->type, number, number >= ask->shards ? "does not exist" : "has no home");
        } else if (number < core->settings.shards &&
                   core->shards[number].phase == TRPI_SHARD_PHASE_HOSTED) {
            trpi_coord_move(core, number); /* once, if it is named twice */
        }
    }
}

void
trpi_coord_answer(trpi_coordinator *core, const trpi_allocation_question *round)
{
    places p;
    if (round->serial == core->round_open) {
        core->round_open = 0;
    }
    if (round->serial != core->round) {
        return; /* too late, or of an earlier term */
    }
    core->round = 0;
    if (!core->active) {
        return;
    }
    if (round->ask.wanted_count > 0 && places_make(core, &p)) {
        answer_homes(core, &p, round);
        places_free(&p);
    }
    if (core->ready && core->moving == 0) { /* one round at a time */
        answer_moves(core, &round->ask);
    }
}
