/* schedule.c - lists of faults: kept, and drawn from a seed.
 *
 * Tests. tests/unit/cluster/schedule_test.c
 */
#include "cluster/sim/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/sim/schedule_draw.h"

#define DEFAULT_UNTIL_MS 60000u

void
trpi_sim_schedule_free(trpi_sim_schedule *schedule)
{
    for (uint32_t i = 0; schedule != NULL && i < schedule->count; i++) {
        trpi_free(schedule->actions[i].text);
    }
    if (schedule != NULL) {
        trpi_free(schedule->actions);
        trpi_free(schedule);
    }
}

trp_err
trpi_sim_schedule_add(trpi_sim_schedule *schedule, trpi_sim_action action)
{
    trp_err err = trpi_array_reserve(&schedule->actions, schedule->count, &schedule->room,
                                     sizeof *schedule->actions, 1, TRPI_SIM_ACTIONS_MAX);
    if (err != TRP_OK) {
        trpi_free(action.text);
        return err;
    }
    schedule->actions[schedule->count++] = action;
    return TRP_OK;
}

trpi_sim_schedule *
trpi_sim_schedule_without(const trpi_sim_schedule *schedule, uint32_t from, uint32_t count)
{
    trpi_sim_schedule *copy = trpi_alloc(sizeof *copy);
    for (uint32_t i = 0; copy != NULL && i < schedule->count; i++) {
        trpi_sim_action action = schedule->actions[i];
        if (i >= from && i - from < count) {
            continue;
        }
        bool text = action.text != NULL;
        action.text = text ? trpi_strdup(action.text) : NULL;
        if ((text && action.text == NULL) || trpi_sim_schedule_add(copy, action) != TRP_OK) {
            trpi_sim_schedule_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* ---- drawing a swarm ------------------------------------------------------------------------- */

static void
draw_settings(struct draw *d)
{
    static const char *const strategies[] = { "keep-majority", "static-quorum", "keep-oldest" };
    struct sim_world *w = &d->dice;
    const char *downing = strategies[sim_chance(w, 0.5) ? 0 : 1 + sim_below(w, 2)];
    ADD(d, .act = TRPI_SIM_CAREFUL, .a = 1);
    ADD(d, .act = TRPI_SIM_SUPERVISED, .a = 1);
    ADD(d, .act = TRPI_SIM_DOWNING, .text = trpi_strdup(downing));
    ADD(d, .act = TRPI_SIM_QUORUM, .a = d->nodes / 2 + 1);
    ADD(d, .act = TRPI_SIM_STABLE_AFTER, .ms = 3000 + (int64_t)sim_below(w, 4000));
    ADD(d, .act = TRPI_SIM_UNSTABLE_AFTER, .ms = (int64_t)d->unstable_ms);
    ADD(d, .act = TRPI_SIM_EXITING_TAKES, .ms = (int64_t)d->exiting_ms);
    ADD(d, .act = TRPI_SIM_MONITORED_BY, .a = 2 + sim_below(w, 5));
    ADD(d, .act = TRPI_SIM_BUGGIFY, .a = sim_chance(w, 0.25) ? 1 : 0);
    if (d->nodes >= 3 && sim_chance(w, 0.2)) {
        ADD(d, .act = TRPI_SIM_MIN_MEMBERS, .a = 3);
    }
    ADD(d, .act = TRPI_SIM_DELAY, .ms = sim_below(w, 5),
        .ms2 = 1 + sim_below(w, sim_chance(w, 0.3) ? 100 : 5));
    if (sim_chance(w, 0.5)) {
        ADD(d, .act = TRPI_SIM_LOSS, .a = sim_below(w, 150));
    }
    if (sim_chance(w, 0.5)) {
        ADD(d, .act = TRPI_SIM_DUPLICATE, .a = sim_below(w, 200));
    }
    if (sim_chance(w, 0.2)) {
        ADD(d, .act = TRPI_SIM_CORRUPT, .a = 1 + sim_below(w, 50));
    }
}

static void
draw_cut(struct draw *d)
{
    struct sim_world *w = &d->dice;
    int64_t ms = 1000 + (int64_t)sim_below(w, sim_chance(w, 0.3) ? 40000 : 8000);
    uint32_t kind = sim_below(w, 4);
    if (kind == 2) { /* a pair */
        ADD(d, .act = TRPI_SIM_LINK, .a = sim_below(w, d->nodes), .b = sim_below(w, d->nodes),
            .ms = ms, .one_way = sim_chance(w, 0.5));
        return;
    }
    char *sides = trpi_alloc(d->nodes + 1);
    if (sides == NULL) {
        d->err = TRP_ENOMEM;
        return;
    }
    uint32_t alone = sim_below(w, d->nodes); /* of the others: halves, or a third */
    for (uint32_t i = 0; i < d->nodes; i++) {
        bool other = kind == 1 ? i == alone : sim_chance(w, kind == 0 ? 0.5 : 0.33);
        sides[i] = other ? '1' : '0';
    }
    ADD(d, .act = TRPI_SIM_CUT, .text = sides, .ms = ms, .one_way = sim_chance(w, 0.3));
}

static void
draw_fault(struct draw *d)
{
    struct sim_world *w = &d->dice;
    uint32_t node = sim_below(w, d->nodes);
    uint32_t other = sim_below(w, d->nodes);
    switch (sim_below(w, 8)) {
    case 0:
    case 1:
        ADD(d, .act = TRPI_SIM_KILL, .a = node);
        break;
    case 2:
    case 3:
        ADD(d, .act = TRPI_SIM_PAUSE, .a = node,
            .ms = 300 + (int64_t)sim_below(w, sim_chance(w, 0.3) ? 20000 : 3000));
        break;
    case 4:
    case 5:
        draw_cut(d);
        break;
    case 6:
        ADD(d, .act = TRPI_SIM_LEAVE, .a = node, .b = other);
        break;
    default:
        if (sim_chance(w, 0.3)) {
            ADD(d, .act = TRPI_SIM_DOWN, .a = node, .b = other);
        } else {
            ADD(d, .act = TRPI_SIM_LOSS, .a = sim_below(w, 200));
            ADD(d, .act = TRPI_SIM_SKEW, .a = node, .ms = (int64_t)sim_below(w, 20000) - 10000);
        }
        break;
    }
}

trpi_sim_schedule *
trpi_sim_schedule_draw(uint32_t nodes, uint64_t seed, uint64_t until_ms)
{
    struct draw *d = trpi_alloc(sizeof *d); /* too large for a stack */
    trpi_sim_schedule *schedule = NULL;
    if (d == NULL) {
        return NULL;
    }
    d->schedule = schedule = trpi_alloc(sizeof *schedule);
    d->err = schedule == NULL ? TRP_ENOMEM : TRP_OK;
    d->nodes = nodes;
    d->dice.random = sim_stream(seed, nodes, "unrest"); /* seeds keep the faults they had */
    d->unstable_ms = 1000 + sim_below(&d->dice, 5000);
    d->exiting_ms = sim_chance(&d->dice, 0.5) ? sim_below(&d->dice, 12000) : 0;
    d->dice.random = sim_stream(seed, nodes, "swarm");
    until_ms = until_ms == 0 ? DEFAULT_UNTIL_MS : until_ms;
    draw_settings(d);
    while (d->at_ms < until_ms && d->err == TRP_OK) {
        draw_fault(d);
        d->at_ms += 200 + sim_below(&d->dice, 5000);
    }
    d->at_ms = d->at_ms > until_ms ? d->at_ms : until_ms;
    ADD(d, .act = TRPI_SIM_END);
    if (d->err == TRP_ELIMIT) { /* too long: so many faults, and no more */
        d->err = TRP_OK;
    }
    if (d->err != TRP_OK) {
        trpi_sim_schedule_free(schedule);
        schedule = NULL;
    }
    trpi_free(d);
    return schedule;
}
