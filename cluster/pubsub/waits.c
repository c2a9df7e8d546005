/* waits.c - publications that wait, and answers that are counted. See waits.h.
 *
 * Shape.   Two arrays in the order in which they were added; a step takes the first that has ended.
 *          Ids are not used again. Few wait at a time: a step looks at each of them.
 * Must hold.
 *   pubsub-W1  Each that was added is taken once: when it has ended, or by take().
 *   pubsub-W2  A node is counted once: as answered, or as silent.
 * Limits.  TRPI_PUBSUB_WAITS_MAX, TRPI_PUBSUB_TALLIES_MAX.
 * Tests.   tests/unit/cluster/pubsub_route_test.c
 */
#include "cluster/pubsub/waits.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

/* ---- waiting for n subscribers --------------------------------------------------------------- */

typedef struct wait {
    uint64_t id, wanted, deadline_ms;
    void *arg;
    trpi_pubsub_key topic; /* its name is owned */
} wait;

struct trpi_waits {
    wait *waits;
    uint32_t waits_count, waits_room;
    uint64_t ids;
    uint64_t looked; /* at the registry, when it had so many changes, and nothing has ended */
};

trp_err
trpi_waits_new(trpi_waits **ret_waits)
{
    trpi_waits *waits = trpi_alloc(sizeof *waits);
    if (waits == NULL) {
        return TRP_ENOMEM;
    }
    *ret_waits = waits;
    return TRP_OK;
}

static void
wait_remove(trpi_waits *waits, uint32_t at, trpi_wait_end *ret_end, uint64_t count, bool ready)
{
    wait *w = &waits->waits[at];
    *ret_end = (trpi_wait_end){ w->id, w->arg, count, ready };
    trpi_free((void *)(uintptr_t)w->topic.name);
    waits->waits_count--;
    memmove(w, w + 1, (waits->waits_count - at) * sizeof *w);
}

bool
trpi_waits_take(trpi_waits *waits, trpi_wait_end *ret_end)
{
    bool any = waits->waits_count > 0;
    if (any) {
        wait_remove(waits, 0, ret_end, 0, false);
    }
    return any;
}

void
trpi_waits_free(trpi_waits *waits)
{
    trpi_wait_end end;
    if (waits == NULL) {
        return;
    }
    while (trpi_waits_take(waits, &end)) {
    }
    trpi_free(waits->waits);
    trpi_free(waits);
}

trp_err
trpi_waits_add(trpi_waits *waits, const trpi_pubsub_key *topic, uint64_t wanted,
               uint64_t deadline_ms, void *arg, uint64_t *ret_id)
{
    trp_err err = TRPI_ARRAY_RESERVE(waits, waits, 1, TRPI_PUBSUB_WAITS_MAX);
    char *name = err == TRP_OK ? trpi_alloc(topic->name_bytes) : NULL;
    if (err != TRP_OK || name == NULL) {
        return err == TRP_OK ? TRP_ENOMEM : err;
    }
    wait *w = &waits->waits[waits->waits_count++];
    *w = (wait){ ++waits->ids, wanted, deadline_ms, arg, *topic };
    w->topic.name = memcpy(name, topic->name, topic->name_bytes);
    waits->looked = UINT64_MAX;
    *ret_id = w->id;
    return TRP_OK;
}

bool
trpi_waits_step(trpi_waits *waits, const trpi_pubreg *registry, uint64_t now_ms,
                trpi_wait_end *ret_end)
{
    bool changed = waits->looked != trpi_pubreg_changes(registry);
    for (uint32_t i = 0; i < waits->waits_count; i++) {
        wait *w = &waits->waits[i];
        if (!changed && now_ms < w->deadline_ms) {
            continue;
        }
        const trpi_pubreg_entry *entry = trpi_pubreg_find(registry, &w->topic);
        uint64_t count = entry == NULL ? 0 : trpi_pubreg_count(entry);
        if (count >= w->wanted || now_ms >= w->deadline_ms) {
            wait_remove(waits, i, ret_end, count, count >= w->wanted);
            return true;
        }
    }
    waits->looked = trpi_pubreg_changes(registry);
    return false;
}

uint64_t
trpi_waits_wake_ms(const trpi_waits *waits)
{
    uint64_t wake_ms = UINT64_MAX;
    for (uint32_t i = 0; i < waits->waits_count; i++) {
        uint64_t at_ms = waits->waits[i].deadline_ms;
        wake_ms = at_ms < wake_ms ? at_ms : wake_ms;
    }
    return wake_ms;
}

uint32_t
trpi_waits_count(const trpi_waits *waits)
{
    return waits->waits_count;
}

/* ---- counting answers ------------------------------------------------------------------------ */

typedef struct tally {
    uint64_t id, delivered, deadline_ms;
    void *arg;
    trpi_node_id *nodes; /* that are waited for; owned */
    uint32_t nodes_count, answered, silent;
} tally;

struct trpi_tallies {
    tally *tallies; /* by id */
    uint32_t tallies_count, tallies_room;
    uint64_t ids;
    uint32_t ended;     /* of these, without nodes to wait for */
    uint64_t looked_ms; /* none has an earlier deadline */
};

trp_err
trpi_tallies_new(trpi_tallies **ret_tallies)
{
    trpi_tallies *tallies = trpi_alloc(sizeof *tallies);
    if (tallies == NULL) {
        return TRP_ENOMEM;
    }
    tallies->looked_ms = UINT64_MAX;
    *ret_tallies = tallies;
    return TRP_OK;
}

static void
tally_remove(trpi_tallies *tallies, uint32_t at, trpi_tally_end *ret_end)
{
    tally *t = &tallies->tallies[at];
    *ret_end =
        (trpi_tally_end){ t->id, t->arg, t->delivered, t->answered, t->silent + t->nodes_count };
    tallies->ended -= t->nodes_count == 0;
    trpi_free(t->nodes);
    tallies->tallies_count--;
    memmove(t, t + 1, (tallies->tallies_count - at) * sizeof *t);
}

bool
trpi_tallies_take(trpi_tallies *tallies, trpi_tally_end *ret_end)
{
    bool any = tallies->tallies_count > 0;
    if (any) {
        tally_remove(tallies, 0, ret_end);
    }
    return any;
}

void
trpi_tallies_free(trpi_tallies *tallies)
{
    trpi_tally_end end;
    if (tallies == NULL) {
        return;
    }
    while (trpi_tallies_take(tallies, &end)) {
    }
    trpi_free(tallies->tallies);
    trpi_free(tallies);
}

trp_err
trpi_tallies_add(trpi_tallies *tallies, uint64_t delivered, const trpi_node_id *nodes,
                 uint32_t nodes_count, uint64_t deadline_ms, void *arg, uint64_t *ret_id)
{
    trpi_node_id *own = NULL;
    trp_err err = TRPI_ARRAY_RESERVE(tallies, tallies, 1, TRPI_PUBSUB_TALLIES_MAX);
    if (err == TRP_OK && nodes_count > 0) {
        own = trpi_alloc(nodes_count * sizeof *own);
        err = own == NULL ? TRP_ENOMEM : TRP_OK;
    }
    if (err != TRP_OK) {
        return err;
    }
    if (own != NULL) {
        memcpy(own, nodes, nodes_count * sizeof *own);
    }
    *ret_id = ++tallies->ids;
    tallies->tallies[tallies->tallies_count++] =
        (tally){ *ret_id, delivered, deadline_ms, arg, own, nodes_count, 0, 0 };
    tallies->ended += nodes_count == 0;
    tallies->looked_ms = deadline_ms < tallies->looked_ms ? deadline_ms : tallies->looked_ms;
    return TRP_OK;
}

/* Wait for a node no more; false: it is not waited for. */
static bool
tally_strike(trpi_tallies *tallies, tally *t, const trpi_node_id *node)
{
    for (uint32_t i = 0; i < t->nodes_count; i++) {
        if (trpi_node_id_equal(&t->nodes[i], node)) {
            t->nodes[i] = t->nodes[--t->nodes_count];
            tallies->ended += t->nodes_count == 0;
            return true;
        }
    }
    return false;
}

/* Return the one of that number, or NULL. */
static tally *
tally_find(trpi_tallies *tallies, uint64_t id)
{
    uint32_t low = 0, high = tallies->tallies_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tallies->tallies[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    tally *t = low < tallies->tallies_count ? &tallies->tallies[low] : NULL;
    return t != NULL && t->id == id ? t : NULL;
}

void
trpi_tallies_answer(trpi_tallies *tallies, uint64_t id, const trpi_node_id *from,
                    uint64_t delivered)
{
    tally *t = tally_find(tallies, id);
    if (t != NULL && tally_strike(tallies, t, from)) {
        t->answered++;
        t->delivered += delivered;
    }
}

void
trpi_tallies_missed(trpi_tallies *tallies, uint64_t id, const trpi_node_id *node)
{
    tally *t = tally_find(tallies, id);
    if (t != NULL && (node == NULL || tally_strike(tallies, t, node))) {
        t->silent++;
    }
}

void
trpi_tallies_lost(trpi_tallies *tallies, const trpi_node_id *node)
{
    for (uint32_t i = 0; i < tallies->tallies_count; i++) {
        tally *t = &tallies->tallies[i];
        t->silent += tally_strike(tallies, t, node);
    }
}

static uint64_t
earliest_deadline(const trpi_tallies *tallies)
{
    uint64_t earliest_ms = UINT64_MAX;
    for (uint32_t i = 0; i < tallies->tallies_count; i++) {
        uint64_t at_ms = tallies->tallies[i].deadline_ms;
        earliest_ms = at_ms < earliest_ms ? at_ms : earliest_ms;
    }
    return earliest_ms;
}

bool
trpi_tallies_step(trpi_tallies *tallies, uint64_t now_ms, trpi_tally_end *ret_end)
{
    for (uint32_t i = 0;
         i < tallies->tallies_count && (tallies->ended > 0 || now_ms >= tallies->looked_ms); i++) {
        const tally *t = &tallies->tallies[i];
        if (t->nodes_count == 0 || now_ms >= t->deadline_ms) {
            tally_remove(tallies, i, ret_end);
            return true;
        }
    }
    if (now_ms >= tallies->looked_ms) {
        tallies->looked_ms = earliest_deadline(tallies);
    }
    return false;
}

uint64_t
trpi_tallies_wake_ms(const trpi_tallies *tallies)
{
    return tallies->ended > 0 ? 0 : tallies->tallies_count == 0 ? UINT64_MAX : tallies->looked_ms;
}

uint32_t
trpi_tallies_count(const trpi_tallies *tallies)
{
    return tallies->tallies_count;
}
