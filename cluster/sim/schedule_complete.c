/* schedule_complete.c - draws the schedule of a swarm of complete nodes: faults, orders of an
 * operator, and mistakes when nodes are started, at any instant of one another.
 *
 * Tests. tests/unit/cluster/schedule_test.c, tests/sim/operated_test.c
 */
#include "cluster/sim/schedule.h"

#include "base/alloc.h"
#include "cluster/sim/schedule_draw.h"

#define DEFAULT_UNTIL_MS 40000u
#define STRANGERS_MOST 40u

static uint32_t
draw_node(struct draw *d)
{
    return sim_below(&d->dice, d->nodes);
}

/* Draw the pause before the next action; often short, so that the previous one is under way. */
static uint32_t
draw_pause_ms(struct draw *d)
{
    struct sim_world *w = &d->dice;
    return sim_below(w, sim_chance(w, 0.3) ? 20 : sim_chance(w, 0.4) ? 700 : 5000);
}

static void
draw_settings(struct draw *d)
{
    static const char *const strategies[] = { "keep-majority", "keep-majority", "keep-oldest",
                                              "manual" };
    struct sim_world *w = &d->dice;
    ADD(d, .act = TRPI_SIM_COMPLETE, .a = 1);
    ADD(d, .act = TRPI_SIM_CAREFUL, .a = 1);
    ADD(d, .act = TRPI_SIM_SUPERVISED, .a = sim_chance(w, 0.8) ? 1 : 0);
    ADD(d, .act = TRPI_SIM_DOWNING, .text = trpi_strdup(strategies[sim_below(w, 4)]));
    ADD(d, .act = TRPI_SIM_STABLE_AFTER, .ms = 3000 + (int64_t)sim_below(w, 5000));
    ADD(d, .act = TRPI_SIM_DELAY, .ms = 0, .ms2 = 1 + sim_below(w, sim_chance(w, 0.3) ? 100 : 5));
}

static void
draw_cut(struct draw *d)
{
    struct sim_world *w = &d->dice;
    int64_t ms = 500 + (int64_t)sim_below(w, sim_chance(w, 0.4) ? 25000 : 6000);
    bool one_way = sim_chance(w, 0.3);
    if (sim_chance(w, 0.5)) {
        ADD(d, .act = TRPI_SIM_LINK, .a = draw_node(d), .b = draw_node(d), .ms = ms,
            .one_way = one_way);
        return;
    }
    char *sides = trpi_alloc(d->nodes + 1);
    if (sides == NULL) {
        d->err = TRP_ENOMEM;
        return;
    }
    uint32_t alone = draw_node(d);
    bool halves = sim_chance(w, 0.5);
    for (uint32_t i = 0; i < d->nodes; i++) {
        sides[i] = (halves ? sim_chance(w, 0.5) : i == alone) ? '1' : '0';
    }
    ADD(d, .act = TRPI_SIM_CUT, .text = sides, .ms = ms, .one_way = one_way);
}

static void
draw_fault(struct draw *d)
{
    struct sim_world *w = &d->dice;
    switch (sim_below(w, 4)) {
    case 0:
        ADD(d, .act = TRPI_SIM_KILL, .a = draw_node(d));
        break;
    case 1:
        ADD(d, .act = TRPI_SIM_PAUSE, .a = draw_node(d),
            .ms = 300 + (int64_t)sim_below(w, sim_chance(w, 0.3) ? 12000 : 3000));
        break;
    case 2:
        draw_cut(d);
        break;
    default:
        ADD(d, .act = TRPI_SIM_RESET, .a = draw_node(d));
        break;
    }
}

static void
draw_order(struct draw *d)
{
    struct sim_world *w = &d->dice;
    uint32_t at = draw_node(d);
    switch (sim_below(w, 8)) {
    case 0:
    case 1:
        ADD(d, .act = TRPI_SIM_LEAVE, .a = draw_node(d), .b = at);
        break;
    case 2:
        ADD(d, .act = TRPI_SIM_DOWN, .a = draw_node(d), .b = at);
        break;
    case 3:
        ADD(d, .act = TRPI_SIM_JOIN, .a = draw_node(d), .b = at);
        break;
    case 4:
        if (sim_chance(w, 0.3)) {
            ADD(d, .act = TRPI_SIM_SHUTDOWN, .a = at);
        }
        break;
    case 5:
        ADD(d, .act = TRPI_SIM_ROTATE, .a = draw_node(d));
        break;
    default: /* mostly of a node that cannot begin it */
        if (sim_chance(w, 0.7)) {
            ADD(d, .act = TRPI_SIM_PAUSE, .a = at, .ms = 200 + (int64_t)sim_below(w, 6000));
            d->at_ms += draw_pause_ms(d) / 8;
        }
        ADD(d, .act = sim_chance(w, 0.6) ? TRPI_SIM_LEAVE_BACK : TRPI_SIM_DOWN_BACK,
            .a = draw_node(d), .b = at, .ms = draw_pause_ms(d));
        break;
    }
}

/* A node is started again at once, or in a wrong way. */
static void
draw_start(struct draw *d)
{
    struct sim_world *w = &d->dice;
    uint32_t node = draw_node(d), other = draw_node(d);
    ADD(d, .act = TRPI_SIM_KILL, .a = node);
    d->at_ms += draw_pause_ms(d);
    switch (sim_below(w, 6)) {
    case 0:
        ADD(d, .act = TRPI_SIM_START_ALONE, .a = node);
        d->at_ms += draw_pause_ms(d);
        ADD(d, .act = TRPI_SIM_JOIN, .a = node, .b = other);
        break;
    case 1:
        ADD(d, .act = TRPI_SIM_START_WRONG, .a = node);
        break;
    case 2:
        ADD(d, .act = TRPI_SIM_START_DOUBLED, .a = node, .b = other);
        break;
    default:
        ADD(d, .act = TRPI_SIM_START, .a = node);
        break;
    }
}

static void
draw_port(struct draw *d)
{
    struct sim_world *w = &d->dice;
    int64_t ms = 1000 + (int64_t)sim_below(w, 20000);
    uint32_t node = draw_node(d);
    switch (sim_below(w, 4)) {
    case 0:
        ADD(d, .act = TRPI_SIM_PORT, .a = node, .ms = ms);
        break;
    case 1:
        ADD(d, .act = TRPI_SIM_DIAL, .a = node, .b = draw_node(d), .ms = ms);
        break;
    case 2:
        ADD(d, .act = TRPI_SIM_SLOW, .a = node, .ms = ms / 2);
        return;
    default:
        ADD(d, .act = TRPI_SIM_STRANGERS, .a = node, .b = 1 + sim_below(w, STRANGERS_MOST),
            .ms = ms);
        return;
    }
    if (sim_chance(w, 0.6)) { /* else what stands goes on */
        d->at_ms += draw_pause_ms(d) / 8;
        ADD(d, .act = TRPI_SIM_RESET, .a = node);
    }
}

trpi_sim_schedule *
trpi_sim_schedule_draw_complete(uint32_t nodes, uint64_t seed, uint64_t until_ms)
{
    struct draw *d = trpi_alloc(sizeof *d); /* too large for a stack */
    trpi_sim_schedule *schedule = d == NULL ? NULL : trpi_alloc(sizeof *schedule);
    if (schedule == NULL) {
        trpi_free(d);
        return NULL;
    }
    d->schedule = schedule;
    d->nodes = nodes;
    d->dice.random = sim_stream(seed, nodes, "operated");
    until_ms = until_ms == 0 ? DEFAULT_UNTIL_MS : until_ms;
    draw_settings(d);
    while (d->at_ms < until_ms && d->err == TRP_OK) {
        uint32_t kind = sim_below(&d->dice, 10);
        kind < 4   ? draw_fault(d)
        : kind < 7 ? draw_order(d)
        : kind < 8 ? draw_start(d)
                   : draw_port(d);
        d->at_ms += draw_pause_ms(d);
    }
    ADD(d, .act = TRPI_SIM_END);
    if (d->err != TRP_OK && d->err != TRP_ELIMIT) {
        trpi_sim_schedule_free(schedule);
        schedule = NULL;
    }
    trpi_free(d);
    return schedule;
}
