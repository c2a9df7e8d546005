/* entity.c - entities beside actors: one teller, 10,000 of them in turn, on this node.
 *
 * Shape.  `bench entity`: the parts `idle` and `remote` (entity_nodes.c), then `local`; `--part
 *         NAME`: only that. Refs and names take turns in one run, and lead to the same actors. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/sharding.h>

#include "tests/bench/entity.h"

enum { BURST = 1000, EACH = 32, TELLS = 10 * EACH * ENTITY_TARGETS };

#define ENTITY_NUMBER(F, S) F(S, u64, value)
#define ENTITY_GO(F, S) F(S, u32, by_name)
#define ENTITY_MESSAGES(M, P) M(P, number, ENTITY_NUMBER) M(P, go, ENTITY_GO)
TRP_PROTOCOL(local, ENTITY_MESSAGES)

static trp_ref refs[ENTITY_TARGETS];
static char ids[ENTITY_TARGETS][ENTITY_ID_BYTES + 1];
static uint64_t type, tells_goal;
static uint32_t each = EACH; /* a target counts so many at once */
static _Atomic uint64_t handled;

static trp_err
target_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *count = state;
    if (*count == 0) {
        const local_number *number = trp_msg_payload(msg);
        refs[number->value % ENTITY_TARGETS] = trp_self(ctx);
    }
    if (++*count % each == 0 && atomic_fetch_add(&handled, each) + each == tells_goal) {
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
    s->by_name = ((const local_go *)trp_msg_payload(msg))->by_name;
    for (uint32_t i = 0; i < BURST && s->told < tells_goal; i++) {
        local_number number = { s->told++ };
        if (s->by_name != 0) {
            trp_entity entity;
            trp_entity_set(&entity, type, ids[s->at], ENTITY_ID_BYTES);
            trp_entity_tell(ctx, &entity, &local_number_type, &number, sizeof number);
        } else {
            trp_tell(ctx, refs[s->at], &local_number_type, &number, sizeof number);
        }
        s->at = s->at + 1 == ENTITY_TARGETS ? 0 : s->at + 1;
    }
    if (s->told < tells_goal) {
        trp_tell(ctx, trp_self(ctx), &local_go_type, trp_msg_payload(msg), sizeof(local_go));
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
    local_go go = { by_name };
    uint64_t begin_ns = bench_now_ns();
    handled = 0;
    trp_system_tell(system, from, &local_go_type, &go, sizeof go);
    bench_wait();
    return (double)(bench_now_ns() - begin_ns) / (double)tells_goal;
}

uint32_t
entity_rounds_of(const bench_options *options)
{
    const char *text = bench_option_value(options, "--rounds");
    long rounds = text == NULL ? ENTITY_ROUNDS : strtol(text, NULL, 10);
    return rounds < 1 || rounds > ENTITY_ROUNDS ? ENTITY_ROUNDS : (uint32_t)rounds;
}

static void
run_local(const bench_options *options)
{
    trp_system *system = bench_system(options);
    trp_sharding_options sharding = TRP_SHARDING_OPTIONS_INIT;
    double by_ref[ENTITY_ROUNDS], by_name[ENTITY_ROUNDS], ratio[ENTITY_ROUNDS];
    char why[256] = "";
    sharding.type = "target";
    sharding.behaviour = &target;
    sharding.passivate_after_ms = TRP_OFF;
    sharding.buffer_bytes_max = 1u << 30;
    type = trp_entity_type("target");
    bench_check(trp_protocol_register(&local_protocol), "trp_protocol_register");
    bench_check(trp_sharding_start(system, &sharding, why, sizeof why), why);
    trp_ref from = bench_spawn(system, &teller);
    for (uint32_t i = 0; i < ENTITY_TARGETS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%016x", i * 2654435761u);
    }
    uint64_t count = options->count != 0 ? options->count : TELLS;
    if (count < EACH * ENTITY_TARGETS) {
        each = count < ENTITY_TARGETS ? 1 : (uint32_t)(count / ENTITY_TARGETS);
    }
    tells_goal = count / (each * ENTITY_TARGETS) * (each * ENTITY_TARGETS);
    tells_goal = tells_goal == 0 ? ENTITY_TARGETS : tells_goal;
    (void)round_run(system, from, 1); /* they start, and say who they are */
    uint32_t rounds = entity_rounds_of(options);
    for (uint32_t i = 0; i < rounds; i++) {
        by_ref[i] = round_run(system, from, 0);
        by_name[i] = round_run(system, from, 1);
        ratio[i] = by_name[i] / by_ref[i];
    }
    bench_print("entity", "local_ref", bench_median(by_ref, rounds), "ns");
    bench_print("entity", "local_name", bench_median(by_name, rounds), "ns");
    bench_print("entity", "local_cost_ratio", bench_median(ratio, rounds), "times");
    bench_system_end(system);
}

static int
run_entity(const bench_options *options)
{
    const char *part = bench_option_value(options, "--part");
    if (bench_option_value(options, "--child") != NULL) {
        return bench_entity_child();
    }
    if (bench_entity_idle != NULL && (part == NULL || strcmp(part, "idle") == 0)) {
        bench_entity_idle(options);
    }
    if (bench_entity_remote != NULL && (part == NULL || strcmp(part, "remote") == 0)) {
        bench_entity_remote(options);
    }
    if (part == NULL || strcmp(part, "local") == 0) {
        run_local(options);
    }
    return 0;
}

const bench_workload bench_entity[] = {
    { "entity", "10,000 entities in turn beside refs, here and on another node; 1 M idle ones",
      run_entity },
    { NULL, NULL, NULL }
};
