/* state_cast.h - the actors of state_test.c: a persistent singleton (the clerk), persistent
 * remembered entities (accounts), plain ones (desks) and who tells them; and what they have
 * seen. */
#ifndef TESTS_SIM_STATE_CAST_H
#define TESTS_SIM_STATE_CAST_H

#include <troupe/troupe.h>

#include "cluster/sim/complete.h"
#include "tests/sim/play.h"

enum {
    NODES = 5,
    ACCOUNTS = 10,
    DESKS = 10,
    CLERK = ACCOUNTS + DESKS, /* targets: accounts, desks, and the clerk */
    TARGETS,
    TELLERS_MAX = 128,
    BILLS_MAX = 4096,
    SHARDS = 12,
    SETTLE_MS = 240000
};

static trp_sim *present;
static uint32_t tellers; /* a teller is an incarnation of a node */
static trp_ref teller_refs[NODES], proxies[NODES];
static uint32_t teller_of[NODES];
static uint64_t told[TELLERS_MAX][TARGETS], heard[TELLERS_MAX][TARGETS];
static uint32_t heard_by[TELLERS_MAX][TARGETS]; /* which life */
static uint64_t expected;                       /* to be told */
static bool busy;                               /* tellers tell something by themselves, too */
static uint32_t lives[TARGETS], newest[NODES][TARGETS], host[TARGETS];
static uint64_t acked[ACCOUNTS], billed[ACCOUNTS]; /* by the journal; of these, with the clerk */
static uint64_t lost, disordered, doubled, skipped;
static uint32_t stop_after, stop_ms; /* behind so many messages their node stands still; 0: none */

/* Put in on purpose; NULL: none. */
static const struct fault {
    const char *name;
    trp_sim_program program;
    uint32_t bits; /* TRPI_BROKEN_... */
    sim_journal_break journal;
    bool forgets;  /* accounts are not remembered */
    bool delivers; /* bills are delivered once, and not again */
} * fault;

#define STATE_JOB(F, S) F(S, u32, teller) F(S, u32, target) F(S, u64, number)
#define STATE_BILL(F, S) F(S, u32, account) F(S, u32, unused) F(S, u64, number) F(S, u64, delivery)
#define STATE_PAID(F, S) F(S, u64, delivery)
#define STATE_COUNT(F, S) F(S, u64, jobs)
#define STATE_GO(F, S) F(S, u32, first) F(S, u32, count)
#define STATE_MESSAGES(M, P)                                                                       \
    M(P, job, STATE_JOB)     /* from a teller; number 0: a question */                             \
    M(P, took, STATE_COUNT)  /* event of an account: it delivers a bill */                         \
    M(P, bill, STATE_BILL)   /* to the clerk, whose event it is */                                 \
    M(P, paid, STATE_PAID)   /* its confirmation, and an event of the account */                   \
    M(P, count, STATE_COUNT) /* answer */                                                          \
    M(P, go, STATE_GO)       /* to a teller */                                                     \
    M(P, tick, STATE_GO)     /* to itself */
TRP_PROTOCOL(state, STATE_MESSAGES)

static trp_entity
entity_at(uint32_t target)
{
    char id[16];
    int bytes = snprintf(id, sizeof id, "%u", target);
    return trp_entity_of(trp_entity_type(target < ACCOUNTS ? "account" : "desk"), id,
                         (size_t)bytes);
}

static uint32_t
own_target(trp_ctx *ctx)
{
    trp_entity self;
    TRP_SIM_CHECK(present, trp_entity_self(ctx, &self) == TRP_OK);
    return (uint32_t)strtoul(self.id, NULL, 10);
}

/* ---- what each of them does ------------------------------------------------------------------ */

static uint32_t
life_begin(const trp_ctx *ctx, uint32_t target)
{
    host[target] = play_node_of(present, ctx);
    return newest[host[target]][target] = ++lives[target];
}

static void
life_end(const trp_ctx *ctx, uint32_t target, uint32_t life)
{
    uint32_t *at = &newest[play_node_of(present, ctx)][target];
    *at = *at == life ? 0 : *at;
}

/* A message is handled: not while a later one lives. After the crash of all that had removed this
 * one's node an earlier one may go on: they have started again, and have joined it. */
static void
handles(const trp_ctx *ctx, uint32_t target, uint32_t life)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (trp_sim_system(present, i) != NULL && newest[i][target] > life) {
            trp_sim_fail(present, __FILE__, __LINE__, "one with a successor handles a message");
        }
    }
    if (stop_after > 0 && play_node_of(present, ctx) != 0 && --stop_after == 0) {
        trp_sim_pause(present, play_node_of(present, ctx), stop_ms);
    }
}

static void
hears(const struct state_job *job, uint32_t target, uint32_t life)
{
    uint64_t *last = &heard[job->teller][target];
    TRP_SIM_CHECK(present, job->target == target);
    if (job->number > 0 && life >= heard_by[job->teller][target]) {
        disordered += job->number < *last;
        doubled += job->number == *last;
        skipped +=
            target != CLERK && job->number > *last + 1; /* what waits in a singleton ends with it */
        *last = job->number;
        heard_by[job->teller][target] = life;
    }
}

static void
answer(trp_ctx *ctx, const struct state_job *job, uint64_t jobs)
{
    struct state_count count = { jobs };
    if (job->number == 0 && !trp_ref_is_none(trp_sender(ctx))) {
        trp_reply(ctx, &state_count_type, &count, sizeof count);
    }
}

/* ---- desks: plain entities ------------------------------------------------------------------- */

struct desk {
    uint64_t jobs;
    uint32_t target, life;
};

static trp_err
desk_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct desk *d = state;
    (void)args;
    d->target = own_target(ctx);
    d->life = life_begin(ctx, d->target);
    return TRP_OK;
}

static void
desk_stop(trp_ctx *ctx, void *state)
{
    const struct desk *d = state;
    life_end(ctx, d->target, d->life);
}

static trp_err
desk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct desk *d = state;
    const struct state_job *job = trp_msg_as(msg, &state_job_type);
    if (job == NULL) {
        return TRP_EUNHANDLED;
    }
    handles(ctx, d->target, d->life);
    hears(job, d->target, d->life);
    d->jobs++;
    answer(ctx, job, d->jobs);
    return TRP_OK;
}

static const trp_behaviour desk = { .size = sizeof(trp_behaviour),
                                    .name = "desk",
                                    .version = 1,
                                    .state_bytes = sizeof(struct desk),
                                    .receive = desk_receive,
                                    .pre_start = desk_start,
                                    .post_stop = desk_stop };

/* ---- accounts: persistent entities that deliver a bill for each job -------------------------- */

struct account {
    trp_persistent_state persistent;
    uint64_t taken;
    uint32_t target, life;
};

static trp_err
account_start(trp_ctx *ctx, void *state, const trp_msg *args, trp_persistent_start *how)
{
    (void)args;
    (void)how;
    ((struct account *)state)->target = own_target(ctx);
    return TRP_OK;
}

static trp_err
account_recovered(trp_ctx *ctx, void *state)
{
    struct account *a = state;
    lost += a->taken < acked[a->target];
    acked[a->target] = a->taken; /* stored, and perhaps never acknowledged: it counts from now on */
    a->life = life_begin(ctx, a->target);
    return TRP_OK;
}

static void
account_stop(trp_ctx *ctx, void *state)
{
    const struct account *a = state;
    life_end(ctx, a->target, a->life);
}

static trp_err
account_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    struct account *a = state;
    const struct state_paid *paid = trp_msg_as(event, &state_paid_type);
    if (paid != NULL) {
        (void)trp_deliver_confirm(ctx, paid->delivery);
        return TRP_OK;
    }
    struct state_bill bill = { a->target, 0, ++a->taken, 0 };
    return trp_deliver(ctx, &state_bill_type, &bill, sizeof bill, NULL);
}

static trp_err
account_taken(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    const struct account *a = state;
    (void)ctx;
    (void)event;
    (void)arg;
    acked[a->target] = a->taken;
    return TRP_OK;
}

static void
account_deliver(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg)
{
    struct state_bill bill = *(const struct state_bill *)trp_msg_payload(msg);
    (void)state;
    bill.delivery = delivery;
    trp_tell(ctx, proxies[play_node_of(present, ctx)], &state_bill_type, &bill, sizeof bill);
}

static trp_err
account_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct account *a = state;
    const struct state_job *job = trp_msg_as(msg, &state_job_type);
    handles(ctx, a->target, a->life);
    if (trp_msg_is(msg, &state_paid_type)) {
        return trp_persist(ctx, &state_paid_type, trp_msg_payload(msg), trp_msg_bytes(msg), NULL,
                           NULL);
    }
    if (job == NULL) {
        return TRP_EUNHANDLED;
    }
    hears(job, a->target, a->life);
    answer(ctx, job, a->taken);
    struct state_took took = { job->number };
    return job->number == 0
               ? TRP_OK
               : trp_persist(ctx, &state_took_type, &took, sizeof took, account_taken, NULL);
}

static trp_persistent account =
    TRP_PERSISTENT_INIT("account", struct account, account_command, account_event);

/* ---- the clerk: a persistent singleton ------------------------------------------------------- */

struct clerk {
    trp_persistent_state persistent;
    uint64_t bills[ACCOUNTS], jobs;
    uint8_t has[ACCOUNTS][BILLS_MAX]; /* by number */
    uint32_t life, unused;
};

static trp_err
clerk_recovered(trp_ctx *ctx, void *state)
{
    struct clerk *c = state;
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        lost += c->bills[i] < billed[i];
        billed[i] = c->bills[i];
    }
    c->life = life_begin(ctx, CLERK);
    return TRP_OK;
}

static void
clerk_stop(trp_ctx *ctx, void *state)
{
    life_end(ctx, CLERK, ((const struct clerk *)state)->life);
}

static trp_err
clerk_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    struct clerk *c = state;
    const struct state_bill *bill = trp_msg_payload(event);
    (void)ctx;
    c->bills[bill->account]++;
    c->has[bill->account][bill->number % BILLS_MAX] = 1;
    return TRP_OK;
}

static void
clerk_confirm(trp_ctx *ctx, const struct state_bill *bill)
{
    trp_entity entity = entity_at(bill->account);
    struct state_paid paid = { bill->delivery };
    trp_entity_tell(ctx, &entity, &state_paid_type, &paid, sizeof paid);
}

static trp_err
clerk_billed(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    const struct clerk *c = state;
    const struct state_bill *bill = trp_msg_payload(event);
    (void)arg;
    billed[bill->account] = c->bills[bill->account];
    clerk_confirm(ctx, bill);
    return TRP_OK;
}

static trp_err
clerk_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct clerk *c = state;
    const struct state_job *job = trp_msg_as(msg, &state_job_type);
    const struct state_bill *bill = trp_msg_as(msg, &state_bill_type);
    handles(ctx, CLERK, c->life);
    if (job != NULL) {
        hears(job, CLERK, c->life);
        c->jobs++;
        answer(ctx, job, c->jobs);
        return TRP_OK;
    }
    if (bill == NULL) {
        return TRP_EUNHANDLED;
    }
    TRP_SIM_CHECK(present, bill->account < ACCOUNTS && bill->number < BILLS_MAX);
    if (c->has[bill->account][bill->number % BILLS_MAX]) {
        clerk_confirm(ctx, bill);
        return TRP_OK;
    }
    return trp_persist(ctx, &state_bill_type, bill, sizeof *bill, clerk_billed, NULL);
}

static trp_persistent clerk =
    TRP_PERSISTENT_INIT("clerk", struct clerk, clerk_command, clerk_event);

/* ---- tellers --------------------------------------------------------------------------------- */

static void
job_tell(trp_ctx *ctx, uint32_t target)
{
    uint32_t node = play_node_of(present, ctx), teller = teller_of[node];
    struct state_job job = { teller, target, ++told[teller][target] };
    if (target == CLERK) {
        trp_tell(ctx, proxies[node], &state_job_type, &job, sizeof job);
    } else {
        trp_entity entity = entity_at(target);
        trp_entity_tell(ctx, &entity, &state_job_type, &job, sizeof job);
    }
}

static trp_err
teller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct state_tick tick = { 0, 0 };
    (void)state;
    (void)args;
    return busy ? trp_timer_repeat(ctx, 1, 400, 400, &state_tick_type, &tick, sizeof tick) : TRP_OK;
}

/* Every other tick is for the clerk. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct state_go *go = trp_msg_as(msg, &state_go_type);
    uint32_t *ticks = state;
    for (uint32_t i = 0; go != NULL && i < go->count; i++) {
        job_tell(ctx, (go->first + i) % TARGETS);
    }
    if (busy && trp_msg_is(msg, &state_tick_type)) {
        job_tell(ctx, ++*ticks % 2 == 0 ? CLERK : *ticks / 2 % CLERK);
    }
    return TRP_OK;
}

static const trp_behaviour teller = { .size = sizeof(trp_behaviour),
                                      .name = "teller",
                                      .version = 1,
                                      .state_bytes = sizeof(uint32_t),
                                      .receive = teller_receive,
                                      .pre_start = teller_start };

/* Each node but that one tells so many, from that one on. */
static void
tell_all(trp_sim *sim, uint32_t but, uint32_t first, uint32_t count)
{
    struct state_go go = { first, count };
    for (uint32_t i = 0; i < NODES; i++) {
        if (i != but && trp_sim_system(sim, i) != NULL) {
            trp_system_tell(trp_sim_system(sim, i), teller_refs[i], &state_go_type, &go, sizeof go);
            expected += count;
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void
type_start(trp_system *system, const char *type, const trp_behaviour *behaviour, bool remembers)
{
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    char why[512] = "";
    options.type = type;
    options.behaviour = behaviour;
    options.shards = SHARDS;
    options.remember_entities = remembers && (fault == NULL || !fault->forgets);
    options.dispatcher = "one";
    options.rebalance_ms = 2000;
    options.members_min = NODES - 2; /* some may be away */
    UNIT_EQUAL(trp_sharding_start(system, &options, why, sizeof why), TRP_OK);
    UNIT_TEXT(why, "");
}

static void
clerk_start(trp_system *system, trp_ref *ret_proxy)
{
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    trp_ref manager;
    options.name = proxy.name = "clerk";
    options.behaviour = &clerk.behaviour;
    options.persistent = 1;
    options.dispatcher = "one";
    UNIT_EQUAL(trp_singleton_start(system, &options, &manager), TRP_OK);
    UNIT_EQUAL(trp_singleton_proxy(system, &proxy, ret_proxy), TRP_OK);
}

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    trp_system *system = trp_sim_system(sim, node);
    trp_dispatcher_options one = TRP_DISPATCHER_OPTIONS_INIT;
    (void)arg;
    present = sim;
    memset(newest[node], 0, sizeof newest[node]); /* of the process before, which is gone */
    teller_of[node] = tellers++ % TELLERS_MAX;
    memset(told[teller_of[node]], 0, sizeof told[0]);
    memset(heard[teller_of[node]], 0, sizeof heard[0]);
    memset(heard_by[teller_of[node]], 0, sizeof heard_by[0]);
    if (fault != NULL) {
        UNIT_EQUAL(sim_journal_break_set(sim, fault->journal), TRP_OK);
    }
    account.redeliver_ms = fault != NULL && fault->delivers ? UINT32_MAX : 0;
    account.start = account_start;
    account.recovered = account_recovered;
    account.deliver = account_deliver;
    account.behaviour.post_stop = account_stop;
    clerk.recovered = clerk_recovered;
    clerk.behaviour.post_stop = clerk_stop;
    one.kind = TRP_DISPATCHER_POOL; /* so that a stop comes between any two messages */
    one.throughput = 1;
    UNIT_EQUAL(trp_dispatcher_register(system, "one", &one), TRP_OK);
    UNIT_EQUAL(trp_protocol_register(&state_protocol), TRP_OK);
    UNIT_EQUAL(trp_persistence_start(system, trp_sim_journal(sim, node), NULL), TRP_OK);
    type_start(system, "account", &account.behaviour, true);
    type_start(system, "desk", &desk, false);
    clerk_start(system, &proxies[node]);
    UNIT_EQUAL(trp_system_spawn(system, &teller, NULL, &teller_refs[node]), TRP_OK);
}

static trp_sim_options
options_of(uint32_t nodes)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = nodes;
    options.started = start_actors;
    options.log = play_line;
    memset(told, 0, sizeof told);
    memset(heard, 0, sizeof heard);
    memset(heard_by, 0, sizeof heard_by);
    memset(lives, 0, sizeof lives);
    memset(newest, 0, sizeof newest);
    memset(acked, 0, sizeof acked);
    memset(billed, 0, sizeof billed);
    lost = disordered = doubled = skipped = expected = 0;
    tellers = stop_after = 0;
    busy = false;
    return options;
}

static trp_sim_options
busy_options_of(uint32_t nodes)
{
    trp_sim_options options = options_of(nodes);
    busy = true;
    return options;
}

#endif
