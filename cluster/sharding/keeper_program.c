/* keeper_program.c - what the keeper asks of others for an allocation: the program's function, in
 * an actor of its own, and what nodes have left.
 *
 * Why.     The function may block; the engines do not.
 * Shape.   engine --ROUND--> /system/sharding-allocation-TYPE --ANSWER--> the keeper --> engine
 * Tests.   tests/sim/entities_test.c, tests/unit/cluster/entity_test.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <troupe/metrics.h>

#include "base/alloc.h"
#include "cluster/metrics/metrics.h"
#include "cluster/sharding/keeper.h"
#include "pattern/pattern.h"

enum { WEIGHT_FULL = 1000 }; /* of a node that has all left, beside 1 */

trp_type trpi_keeper_question_type = { .name = "sharding-keeper.question",
                                       .tag = 2,
                                       .flags = TRP_TYPE_LOCAL };

typedef struct program_state {
    trpi_keeper *keeper;
    trpi_region *region;
} program_state;

/* A message of its actor. */
typedef struct program_order {
    trpi_allocation_question *question; /* owned, until it is passed on */
} program_order;

static void
order_release(void *data, void *arg)
{
    program_order *order = data;
    (void)arg;
    trpi_free(order->question);
    trpi_free(order);
}

static trp_err
program_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const program_state *s = state;
    program_order *order = (program_order *)(uintptr_t)trp_msg_payload(msg);
    (void)ctx;
    if (!trp_msg_is(msg, &trpi_keeper_question_type)) {
        return TRP_EUNHANDLED;
    }
    s->region->options.allocate(s->region->options.allocate_arg, &order->question->ask);
    trpi_keeper_event *event = trpi_keeper_event_new(s->keeper, TRPI_KEEPER_ANSWER, NULL, 0);
    if (event != NULL) { /* else the engine asks anew, after a time */
        event->region = s->region;
        event->question = order->question;
        order->question = NULL;
        (void)trpi_keeper_put(s->keeper, event);
    }
    return TRP_OK;
}

static trp_err
program_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(program_state));
    return TRP_OK;
}

void
trpi_keeper_program_start(trpi_keeper *keeper, trpi_keeper_type *type)
{
    static const trp_behaviour behaviour = { .size = sizeof behaviour,
                                             .name = "sharding-allocation",
                                             .version = 1,
                                             .state_bytes = sizeof(program_state),
                                             .receive = program_receive,
                                             .pre_start = program_begin };
    char name[sizeof "sharding-allocation-" + TRPI_SHARD_TYPE_BYTES_MAX];
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    program_state args = { keeper, type->region };
    if (type->region == NULL || type->region->options.allocate == NULL ||
        type->coordinator == NULL) {
        return;
    }
    (void)snprintf(name, sizeof name, "sharding-allocation-%s", type->name);
    spawn.name = name;
    spawn.dispatcher =
        type->region->options.dispatcher == NULL ? "default" : type->region->options.dispatcher;
    spawn.mailbox = "unbounded";
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    trp_err err =
        trp_ref_is_none(type->program)
            ? trpi_system_spawn_internal(keeper->system, &behaviour, &spawn, &type->program)
            : TRP_OK;
    if (err != TRP_OK) {
        trpi_log(keeper->system, TRP_LOG_ERROR, "sharding",
                 "allocation not started type=%s reason=\"%s\" next=\"the fewest shards decide\"",
                 type->name, trp_strerror(err));
        return;
    }
    trpi_coordinator_asks_set(type->coordinator, true);
}

void
trpi_keeper_program_ask(trp_ctx *ctx, trpi_keeper *keeper, const trpi_keeper_type *type,
                        trpi_allocation_question *question)
{
    program_order *order = trpi_alloc(sizeof *order);
    trp_msg *msg;
    (void)keeper;
    if (order == NULL || question == NULL) {
        trpi_free(order);
        trpi_free(question);
        return;
    }
    order->question = question;
    if (trpi_msg_new_owner(&trpi_keeper_question_type, order, order_release, &msg) != TRP_OK) {
        order_release(order, NULL);
        return;
    }
    trpi_send(ctx, type->program, msg);
}

void
trpi_keeper_weigh(const trpi_keeper *keeper, trpi_shard_member *members, uint32_t count)
{
    const trp_metrics_selector *selector = trpi_metrics_selector_find("mix");
    trp_node_metrics *nodes = trpi_alloc((count + 1) * sizeof *nodes);
    size_t known = 0;
    if (nodes == NULL || selector == NULL ||
        trp_cluster_metrics(keeper->system, nodes, count, &known) != TRP_OK) {
        trpi_free(nodes);
        return; /* none is known */
    }
    known = known < count ? known : count;
    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < known; k++) {
            double capacity = 0;
            if (nodes[k].uid == members[i].id.uid &&
                selector->capacity(selector->arg, &nodes[k], &capacity) != 0 &&
                isfinite(capacity) && capacity >= 0) {
                capacity = capacity < 1 ? capacity : 1;
                members[i].weight = 1 + (uint32_t)(capacity * WEIGHT_FULL);
            }
        }
    }
    trpi_free(nodes);
}
