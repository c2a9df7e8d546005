/* entities.c - entities beside actors: one teller, 10,000 of them in turn; memory of idle ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/sharding.h>

#include "tests/bench/bench.h"

enum { TARGETS = 10000, IDLE = 200000, ROUNDS = 7, BURST = 1000 };

#define ENTITIES_NUMBER(F, S) F(S, u64, value)
#define ENTITIES_GO(F, S) F(S, u32, by_name)
#define ENTITIES_MESSAGES(M, P) M(P, number, ENTITIES_NUMBER) M(P, go, ENTITIES_GO)
TRP_PROTOCOL(entities, ENTITIES_MESSAGES)

static trp_ref refs[TARGETS];
static char (*ids)[17];
static uint64_t type, tells_goal;
static uint64_t handled, goal;

static trp_err
target_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *count = state;
    (void)ctx;
    (void)msg;
    if (++*count % 64 == 0 && __atomic_add_fetch(&handled, 64, __ATOMIC_RELAXED) == goal) {
        bench_done();
    }
    return TRP_OK;
}

typedef struct teller_state {
    uint64_t told;
    uint32_t at, by_name;
} teller_state;

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    teller_state *s = state;
    s->by_name = ((const entities_go *)trp_msg_payload(msg))->by_name;
    for (uint32_t i = 0; i < BURST && s->told < tells_goal; i++) {
        entities_number number = { s->told++ };
        if (s->by_name != 0) {
            trp_entity entity = trp_entity_of(type, ids[s->at], 16);
            trp_entity_tell(ctx, &entity, &entities_number_type, &number, sizeof number);
        } else {
            trp_tell(ctx, refs[s->at], &entities_number_type, &number, sizeof number);
        }
        s->at = s->at + 1 == TARGETS ? 0 : s->at + 1;
    }
    if (s->told < tells_goal) {
        trp_tell(ctx, trp_self(ctx), &entities_go_type, trp_msg_payload(msg), sizeof(entities_go));
    } else {
        s->told = 0;
        s->at = 0;
    }
    return TRP_OK;
}

static const trp_behaviour target = TRP_BEHAVIOUR_INIT("target", uint64_t, target_receive);
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", teller_state, teller_receive);

/* Tell all in turn; returns ns a message. */
static double
round_run(trp_system *system, trp_ref from, uint32_t by_name)
{
    entities_go go = { by_name };
    uint64_t begin_ns;
    handled = 0;
    goal = tells_goal;
    begin_ns = bench_now_ns();
    trp_system_tell(system, from, &entities_go_type, &go, sizeof(go));
    bench_wait();
    return (double)(bench_now_ns() - begin_ns) / (double)tells_goal;
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static trp_system *
begin(const bench_options *options, uint32_t count)
{
    trp_system *system = bench_system(options);
    trp_sharding_options sharding = TRP_SHARDING_OPTIONS_INIT;
    char why[256];
    sharding.type = "target";
    sharding.behaviour = &target;
    sharding.passivate_after_ms = TRP_OFF;
    sharding.buffer_bytes_max = 1u << 30;
    type = trp_entity_type("target");
    bench_check(trp_protocol_register(&entities_protocol), "trp_protocol_register");
    bench_check(trp_sharding_start(system, &sharding, why, sizeof why), "trp_sharding_start");
    ids = calloc(count, sizeof *ids);
    for (uint32_t i = 0; ids != NULL && i < count; i++) {
        (void)snprintf(ids[i], sizeof *ids, "%016x", i * 2654435761u);
    }
    return system;
}

static int
run_entities(const bench_options *options)
{
    trp_system *system = begin(options, TARGETS);
    trp_ref from = bench_spawn(system, &teller);
    double by_ref[ROUNDS], by_name[ROUNDS];
    for (uint32_t i = 0; i < TARGETS; i++) {
        refs[i] = bench_spawn(system, &target);
    }
    tells_goal = (options->count != 0 ? options->count : 1280000) / (64 * TARGETS) * 64 * TARGETS;
    tells_goal = tells_goal == 0 ? 64 * TARGETS : tells_goal;
    (void)round_run(system, from, 1); /* they start */
    for (uint32_t i = 0; i < ROUNDS; i++) {
        by_ref[i] = round_run(system, from, 0);
        by_name[i] = round_run(system, from, 1);
    }
    qsort(by_ref, ROUNDS, sizeof by_ref[0], compare);
    qsort(by_name, ROUNDS, sizeof by_name[0], compare);
    bench_print("entities", "by_ref", by_ref[ROUNDS / 2], "ns");
    bench_print("entities", "by_name", by_name[ROUNDS / 2], "ns");
    bench_print("entities", "ratio", by_name[ROUNDS / 2] / by_ref[ROUNDS / 2], "times");
    bench_system_end(system);
    free(ids);
    return 0;
}

static int
run_idle(const bench_options *options)
{
    uint32_t count = options->count != 0 ? (uint32_t)options->count : IDLE;
    trp_system *system = begin(options, count);
    size_t before = bench_rss_idle_bytes(), after;
    for (uint32_t i = 0; i < count; i++) {
        entities_number number = { i };
        trp_entity entity = trp_entity_of(type, ids[i], 16);
        bench_check(
            trp_system_entity_tell(system, &entity, &entities_number_type, &number, sizeof number),
            "trp_system_entity_tell");
    }
    trp_system_stats stats = { .size = sizeof stats };
    do {
        trp_system_stats_get(system, &stats);
    } while (stats.messages_processed < (uint64_t)2 * count); /* an order of the region each */
    after = bench_rss_idle_bytes();
    bench_print("entities_idle", "memory", (double)(after - before) / count, "bytes");
    bench_system_end(system);
    free(ids);
    return 0;
}

const bench_workload bench_entities[] = {
    { "entities", "1 teller, 10,000 live entities in turn, ids of 16 B, beside refs",
      run_entities },
    { "entities_idle", "memory of an idle entity with a state of 8 B", run_idle },
    { NULL, NULL, NULL }
};
