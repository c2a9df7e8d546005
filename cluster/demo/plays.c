/* plays.c - the articles' demonstrations: count-down, producers and consumers, map and reduce.
 *
 * Why.     Each is the example of that name (examples/countdown.c, producer_consumer.c,
 *          map_reduce.c), but tells through the stage.
 * Tests.   tests/unit/demo/run_test.c, tests/system/demo.sh
 * Sources. UJ-31 to -41.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/demo/demo.h"

enum { FIRST = 8, MISSING = 4, LATER_MAX = 5 };
enum { PRODUCERS = 4, CONSUMERS_MAX = 3, ORDERS_MAX = 10, ITEMS_MAX = 10 };
enum { WORKERS_FIRST = 5, WORKERS_MAX = 25, PART = TRPI_DEMO_VALUES / TRPI_DEMO_PARTITIONS };

_Static_assert(TRPI_DEMO_ACTORS_OF_ALL_MAX + PRODUCERS * (1 + CONSUMERS_MAX) + 1 + WORKERS_MAX + 1 +
                       TRPI_DEMO_SCANNERS <=
                   TRPI_STAGE_ACTORS_MAX,
               "all plays together have room");

static uint32_t
index_of(const trpi_demo *demo, const trpi_demo_cell *cell)
{
    return (uint32_t)(cell - demo->cells);
}

/* Start an actor that works for cell's. Others start actors at the same time, so each helper names
 * the one before it. */
static trp_err
helper_start(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, trpi_stage_kind kind,
             const char *name)
{
    uint32_t index = 0;
    trp_err err = trpi_demo_spawn(demo, ctx, kind, name, &index);
    if (err == TRP_OK) {
        demo->cells[index].first = cell->count > 0 ? cell->first : index;
        cell->first = index;
        cell->count++;
    }
    return err;
}

/* Return the helper with the fewest waiting messages. */
static uint32_t
helper_least(trpi_demo *demo, const trpi_demo_cell *cell)
{
    uint32_t indices[WORKERS_MAX], at = cell->first;
    trpi_assert(cell->count > 0 && cell->count <= WORKERS_MAX);
    for (uint32_t i = 0; i < cell->count; i++) {
        indices[i] = at;
        at = demo->cells[at].first;
    }
    return trpi_stage_least(demo->stage, indices, cell->count);
}

/* ---- count-down ------------------------------------------------------------------------------ */

static trp_err
countdown_play(trpi_demo *demo)
{
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t index = 0, common = demo->actors * 10 / TRPI_DEMO_ACTORS_DEFAULT;
    trp_err err = TRP_OK;
    common = common > 0 ? common : 1;
    for (uint32_t i = 0; i < demo->actors && err == TRP_OK; i++) {
        (void)snprintf(name, sizeof name, i < common ? "common%02u" : "actor%u",
                       i < common ? i : i - common);
        err = trpi_demo_spawn(demo, NULL, TRPI_STAGE_TEST_ACTOR, name, &index);
        if (i == 0) {
            demo->storm_first = index;
        }
    }
    demo->storm_count = demo->actors;
    demo->storm_common = common;
    for (uint32_t i = 0; i < demo->actors && err == TRP_OK; i++) {
        trpi_demo_tell(demo, NULL, TRPI_STAGE_OUTSIDE, demo->storm_first + i, TRPI_DEMO_INIT, FIRST,
                       0);
    }
    return err;
}

/* Tell repeat(count) to an actor that is drawn, and may be missing. */
static void
repeat_tell(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, uint32_t count)
{
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t own = demo->storm_count - demo->storm_common, self = index_of(demo, cell);
    uint32_t drawn = trpi_demo_dice(&cell->seed, own + MISSING);
    if (drawn >= own) {
        trpi_stage_name(demo->stage, self, name);
        trpi_demo_trace(demo, 'W', "repeat:%s to is null: actor%u", name, drawn);
        return;
    }
    trpi_demo_tell(demo, ctx, self, demo->storm_first + demo->storm_common + drawn,
                   TRPI_DEMO_REPEAT, count, 0);
}

static trp_err
countdown_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    trp_err err = TRP_OK;
    uint32_t self = index_of(demo, cell);
    if (msg->subject == TRPI_DEMO_INIT) {
        uint32_t count = trpi_demo_dice(&cell->seed, msg->count) + 1;
        for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
            repeat_tell(demo, ctx, cell, count);
            err = trpi_demo_later(demo, ctx, self, TRPI_DEMO_LATER, count,
                                  100 * (1 + trpi_demo_dice(&cell->seed, LATER_MAX)));
        }
    } else if (msg->subject == TRPI_DEMO_LATER) { /* for the category: its least loaded member */
        uint32_t common[TRPI_STAGE_ACTORS_MAX];
        for (uint32_t i = 0; i < demo->storm_common; i++) {
            common[i] = demo->storm_first + i;
        }
        trpi_demo_tell(demo, ctx, self, trpi_stage_least(demo->stage, common, demo->storm_common),
                       TRPI_DEMO_REPEAT, msg->count, 0);
    } else {
        trpi_demo_work(demo, 1 + trpi_demo_dice(&cell->seed, 100));
        if (msg->count > 0) {
            repeat_tell(demo, ctx, cell, msg->count - 1);
        }
    }
    return err;
}

/* ---- producers and consumers ----------------------------------------------------------------- */

static trp_err
producers_play(trpi_demo *demo)
{
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t index = 0, first = 0;
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < PRODUCERS && err == TRP_OK; i++) {
        (void)snprintf(name, sizeof name, "producer%u", i);
        err = trpi_demo_spawn(demo, NULL, TRPI_STAGE_PRODUCER, name, &index);
        first = i == 0 ? index : first;
    }
    for (uint32_t i = 0; i < PRODUCERS && err == TRP_OK; i++) {
        trpi_demo_tell(demo, NULL, TRPI_STAGE_OUTSIDE, first + i, TRPI_DEMO_INIT, i, 0);
    }
    return err;
}

static trp_err
consumers_start(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, uint32_t number)
{
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t count = trpi_demo_dice(&cell->seed, CONSUMERS_MAX) + 1;
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        (void)snprintf(name, sizeof name, "producer%u_consumer%02u", number, i);
        err = helper_start(demo, ctx, cell, TRPI_STAGE_CONSUMER, name);
    }
    return err == TRP_ELIMIT && cell->count > 0 ? TRP_OK : err;
}

static void
order_take(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    uint32_t self = index_of(demo, cell);
    if (msg->subject == TRPI_DEMO_PRODUCE_N) {
        cell->expected[msg->item] += msg->count;
        trpi_demo_tell(demo, ctx, self, self, TRPI_DEMO_PRODUCE_1, msg->count, msg->item);
    } else if (msg->subject == TRPI_DEMO_PRODUCE_1) {
        if (msg->count > 0) { /* a loop of messages: others have their turn in between */
            trpi_demo_work(demo, 10);
            trpi_demo_tell(demo, ctx, self, helper_least(demo, cell), TRPI_DEMO_CONSTRUCT, 1,
                           msg->item);
            trpi_demo_tell(demo, ctx, self, self, TRPI_DEMO_PRODUCE_1, msg->count - 1, msg->item);
        }
    } else {
        uint32_t left = 0;
        trpi_assert(cell->expected[msg->item] > 0);
        cell->expected[msg->item]--;
        for (uint32_t i = 0; i < TRPI_DEMO_ITEMS; i++) {
            left += cell->expected[i];
        }
        if (left == 0) {
            trpi_demo_trace(demo, 'T', "produced: all that was ordered so far was built");
        }
    }
}

static trp_err
producer_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    uint32_t self = index_of(demo, cell);
    if (msg->subject != TRPI_DEMO_INIT) {
        order_take(demo, ctx, cell, msg);
        return TRP_OK;
    }
    trp_err err = consumers_start(demo, ctx, cell, msg->count);
    for (uint32_t i = trpi_demo_dice(&cell->seed, ORDERS_MAX) + 1; i > 0 && err == TRP_OK; i--) {
        uint32_t item = trpi_demo_dice(&cell->seed, TRPI_DEMO_ITEMS);
        trpi_demo_tell(demo, ctx, self, self, TRPI_DEMO_PRODUCE_N,
                       trpi_demo_dice(&cell->seed, ITEMS_MAX) + 1, item);
    }
    return err;
}

/* ---- map and reduce -------------------------------------------------------------------------- */

static trp_err
map_reduce_play(trpi_demo *demo)
{
    uint32_t index = 0, seed = (uint32_t)demo->run;
    for (uint32_t i = 0; i < TRPI_DEMO_VALUES; i++) {
        demo->values[i] = trpi_demo_dice(&seed, TRPI_DEMO_VALUES);
    }
    trp_err err = trpi_demo_spawn(demo, NULL, TRPI_STAGE_MAP_REDUCE, "mrSet_0", &index);
    if (err == TRP_OK) {
        trpi_demo_tell(demo, NULL, TRPI_STAGE_OUTSIDE, index, TRPI_DEMO_INIT, 0, 0);
    }
    return err;
}

static trp_err
worker_start(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell)
{
    char name[TRPI_STAGE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "mrSet_0_worker%02u", cell->count);
    return helper_start(demo, ctx, cell, TRPI_STAGE_WORKER, name);
}

/* All partitions have answered: next step, or the result. */
static void
set_complete(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, uint32_t subject)
{
    uint64_t sum = 0;
    cell->done = 0;
    for (uint32_t part = 0; part < TRPI_DEMO_PARTITIONS && subject == TRPI_DEMO_MAP_RESPONSE;
         part++) {
        trpi_demo_tell(demo, ctx, index_of(demo, cell), helper_least(demo, cell),
                       TRPI_DEMO_REDUCE_WORKER, part, 0);
    }
    if (subject == TRPI_DEMO_REDUCE_RESPONSE) {
        for (uint32_t part = 0; part < TRPI_DEMO_PARTITIONS; part++) {
            sum += demo->sums[part];
        }
        trpi_demo_trace(demo, 'T', "**** mapReduce done with result %llu", (unsigned long long)sum);
    }
}

static trp_err
map_reduce_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    uint32_t self = index_of(demo, cell);
    trp_err err = TRP_OK;
    if (msg->subject == TRPI_DEMO_INIT) {
        for (uint32_t i = 0; i < WORKERS_FIRST && err == TRP_OK; i++) {
            err = worker_start(demo, ctx, cell);
        }
        for (uint32_t part = 0; part < TRPI_DEMO_PARTITIONS && cell->count > 0; part++) {
            trpi_demo_tell(demo, ctx, self, self, TRPI_DEMO_CREATE_PARTITION, part, 0);
        }
    } else if (msg->subject == TRPI_DEMO_CREATE_PARTITION) {
        trpi_demo_work(demo, 5);
        err = cell->count < WORKERS_MAX ? worker_start(demo, ctx, cell) : TRP_OK;
        trpi_demo_tell(demo, ctx, self, helper_least(demo, cell), TRPI_DEMO_MAP_WORKER, msg->count,
                       0);
    } else if (++cell->done == TRPI_DEMO_PARTITIONS) {
        set_complete(demo, ctx, cell, msg->subject);
    }
    return err == TRP_ELIMIT && cell->count > 0 ? TRP_OK : err;
}

static void
worker_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    bool is_map = msg->subject == TRPI_DEMO_MAP_WORKER;
    uint64_t *values = &demo->values[msg->count * PART];
    trpi_assert(is_map || msg->subject == TRPI_DEMO_REDUCE_WORKER);
    if (is_map) {
        trpi_demo_work(demo, 100);
        for (uint32_t i = 0; i < PART; i++) {
            values[i] *= values[i];
        }
    } else {
        trpi_demo_work(demo, 50);
        demo->sums[msg->count] = 0;
        for (uint32_t i = 0; i < PART; i++) {
            demo->sums[msg->count] += values[i];
        }
    }
    trpi_demo_tell(demo, ctx, index_of(demo, cell), msg->from,
                   is_map ? TRPI_DEMO_MAP_RESPONSE : TRPI_DEMO_REDUCE_RESPONSE, msg->count, 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

trp_err
trpi_demo_play(trpi_demo *demo, trpi_demo_name name)
{
    return name == TRPI_DEMO_COUNTDOWN           ? countdown_play(demo)
           : name == TRPI_DEMO_PRODUCER_CONSUMER ? producers_play(demo)
           : name == TRPI_DEMO_MAP_REDUCE        ? map_reduce_play(demo)
                                                 : trpi_demo_scan_play(demo);
}

trp_err
trpi_demo_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    switch (cell->kind) {
    case TRPI_STAGE_TEST_ACTOR:
        return countdown_turn(demo, ctx, cell, msg);
    case TRPI_STAGE_PRODUCER:
        return producer_turn(demo, ctx, cell, msg);
    case TRPI_STAGE_CONSUMER: /* the later kinds of things take longer */
        trpi_demo_work(demo, 100 * (1 + trpi_demo_dice(&cell->seed, msg->item + 1)));
        trpi_demo_tell(demo, ctx, index_of(demo, cell), msg->from, TRPI_DEMO_CONSTRUCTION_COMPLETE,
                       1, msg->item);
        return TRP_OK;
    case TRPI_STAGE_MAP_REDUCE:
        return map_reduce_turn(demo, ctx, cell, msg);
    case TRPI_STAGE_WORKER:
        worker_turn(demo, ctx, cell, msg);
        return TRP_OK;
    case TRPI_STAGE_WALKER:
    case TRPI_STAGE_SCANNER:
        trpi_demo_scan_turn(demo, ctx, cell, msg);
        return TRP_OK;
    default:
        return TRP_EUNHANDLED;
    }
}
