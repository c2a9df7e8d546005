/* coordination.c - an actor that collects the functions of all parties, and runs them as one
 * transaction.
 *
 * Why.     Akka's parties wait for each other on a barrier, each with its thread. Here they leave
 *          their functions, so that none waits, and a party that joins twice does no harm.
 * Shape.   start --> coordination [parties] <-- include, join (an ask) -- party
 *                        | all joined; or the deadline, or the end of a party
 *                        v
 *                    one trp_stm_run() of all functions --> the same outcome to all who joined
 * Must hold.
 *   coordination-C1  The transaction runs at most once, and only when all parties have joined.
 *   coordination-C2  Each party that has joined gets one answer, the same for all; a later one
 *       finds no actor.
 *   coordination-C3  A party that ends before it joined ends the coordination; one that has joined
 *       and ends does not: its function is here.
 * Limits.  TRP_COORDINATION_PARTIES_MAX, TRP_COORDINATION_ARG_BYTES_MAX, the deadline.
 * Tests.   tests/unit/pattern/coordination_test.c
 * Sources. TRANSACT-1 to -4
 */
#include <troupe/coordination.h>

#include <stdbool.h>
#include <string.h>

#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"

#define DEADLINE_KEY 1u

typedef struct participant {
    trp_ref ref;
    trp_ref asker; /* told the outcome, once it has joined */
    trp_txn_fn fn;
    void *arg; /* the actor's memory */
    bool has_joined;
} participant;

typedef struct coordinator {
    trp_stm *stm;
    participant *parties;
    uint32_t count, room, joined;
    bool is_over;
} coordinator;

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct start_args { /* followed by the parties */
    trp_stm *stm;
    uint32_t count, timeout_ms;
} start_args;

typedef struct join_order { /* followed by the copy of arg */
    trp_ref party;          /* the sender of an ask is its promise */
    trp_txn_fn fn;
    uint64_t bytes;
} join_order;
_Static_assert(sizeof(join_order) % 16 == 0, "the copy of arg behind it is aligned");

enum { start_tag, include_tag, join_tag, deadline_tag, outcome_tag };
static trp_type start_type = { .name = "coordination.priv-start",
                               .tag = start_tag,
                               .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type include_type = { .name = "coordination.priv-include",
                                 .bytes = sizeof(trp_ref),
                                 .tag = include_tag,
                                 .flags = TRP_TYPE_LOCAL };
static trp_type join_type = { .name = "coordination.priv-join",
                              .tag = join_tag,
                              .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type deadline_type = { .name = "coordination.priv-deadline",
                                  .tag = deadline_tag,
                                  .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type outcome_type = { .name = "coordination.priv-outcome",
                                 .tag = outcome_tag,
                                 .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const types[] = { &start_type, &include_type, &join_type, &deadline_type,
                                   &outcome_type };
static const trp_protocol protocol = { "coordination", types, 5, 0 };

/* ---- the outcome ----------------------------------------------------------------------------- */

static void
answer_give(trp_ctx *ctx, trp_ref asker, trp_err err)
{
    trp_status_failure failure = { .err = (int32_t)err };
    if (err == TRP_OK) {
        trp_tell(ctx, asker, &outcome_type, NULL, 0);
        return;
    }
    const char *text = trp_strerror(err);
    size_t bytes = strlen(text) < sizeof failure.reason ? strlen(text) : sizeof failure.reason - 1;
    memcpy(failure.reason, text, bytes);
    trp_tell(ctx, asker, &trp_status_failure_type, &failure, sizeof failure);
}

/* coordination-C2 */
static void
coordination_end(trp_ctx *ctx, coordinator *c, trp_err err)
{
    c->is_over = true;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->parties[i].has_joined) {
            answer_give(ctx, c->parties[i].asker, err);
        }
    }
    trp_stop(ctx, trp_self(ctx));
}

static trp_err
functions_run(trp_txn *txn, void *arg)
{
    const coordinator *c = arg;
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < c->count && err == TRP_OK; i++) {
        err = c->parties[i].fn == NULL ? TRP_OK : c->parties[i].fn(txn, c->parties[i].arg);
    }
    return err;
}

/* ---- parties --------------------------------------------------------------------------------- */

static uint32_t
party_find(const coordinator *c, trp_ref ref)
{
    uint32_t i = 0;
    while (i < c->count && !trp_ref_equal(c->parties[i].ref, ref)) {
        i++;
    }
    return i;
}

static trp_err
party_add(trp_ctx *ctx, coordinator *c, trp_ref ref)
{
    if (party_find(c, ref) < c->count) {
        return TRP_OK;
    }
    if (c->count == TRP_COORDINATION_PARTIES_MAX) {
        return TRP_ELIMIT;
    }
    if (ref.node != TRPI_NODE_SELF) {
        return TRP_EUNSUPPORTED;
    }
    if (c->count == c->room) {
        uint32_t room = c->room == 0 ? 4 : c->room * 2;
        participant *more = trp_alloc(ctx, room * sizeof *more); /* or the actor fails */
        if (c->count > 0) {
            memcpy(more, c->parties, c->count * sizeof *more);
        }
        trp_alloc_free(ctx, c->parties);
        c->parties = more;
        c->room = room;
    }
    c->parties[c->count++] = (participant){ .ref = ref };
    return trp_watch(ctx, ref);
}

/* Move the party behind those that have joined: functions run in the order of joining. */
static void
party_join(trp_ctx *ctx, coordinator *c, uint32_t at, const join_order *order)
{
    participant joins = c->parties[at];
    joins.has_joined = true;
    joins.asker = trp_sender(ctx);
    joins.fn = order->fn;
    joins.arg = trp_alloc(ctx, (size_t)order->bytes + 1); /* 16-aligned, never NULL */
    memcpy(joins.arg, order + 1, (size_t)order->bytes);
    c->parties[at] = c->parties[c->joined];
    c->parties[c->joined++] = joins;
    trp_unwatch(ctx, joins.ref); /* coordination-C3 */
}

static void
party_answer(trp_ctx *ctx, coordinator *c, const join_order *order)
{
    uint32_t at = party_find(c, order->party);
    if (at == c->count || c->parties[at].has_joined) {
        answer_give(ctx, trp_sender(ctx), at == c->count ? TRP_EPERM : TRP_EEXIST);
        return;
    }
    party_join(ctx, c, at, order);
    if (c->joined == c->count) { /* coordination-C1 */
        coordination_end(ctx, c, trp_stm_run(c->stm, functions_run, c, NULL));
    }
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
coordination_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    coordinator *c = state;
    const start_args *start = trp_msg_payload(args);
    const trp_ref *parties = (const trp_ref *)(const void *)(start + 1);
    c->stm = start->stm;
    trp_err err = trp_timer_once(ctx, DEADLINE_KEY, start->timeout_ms, &deadline_type, NULL, 0);
    for (uint32_t i = 0; i < start->count && err == TRP_OK; i++) {
        err = party_add(ctx, c, parties[i]);
    }
    return err;
}

static trp_err
coordination_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    coordinator *c = state;
    if (c->is_over) {
        return TRP_OK;
    }
    if (trp_msg_is(msg, &join_type)) {
        party_answer(ctx, c, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &include_type)) {
        trp_err err = party_add(ctx, c, *(const trp_ref *)trp_msg_payload(msg));
        if (err != TRP_OK) {
            coordination_end(ctx, c, err);
        }
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        coordination_end(ctx, c, TRP_ENOENT);
    } else if (trp_msg_is(msg, &deadline_type)) {
        coordination_end(ctx, c, TRP_ETIMEDOUT);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

/* Out of memory: what the parties have left is gone, and nothing was written. Their asks end. */
static trp_err
coordination_give_up(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)why;
    (void)args;
    ((coordinator *)state)->is_over = true;
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

static const trp_behaviour coordination_behaviour = { .size = sizeof(trp_behaviour),
                                                      .name = "coordination",
                                                      .version = 1,
                                                      .state_bytes = sizeof(coordinator),
                                                      .receive = coordination_receive,
                                                      .pre_start = coordination_start,
                                                      .post_restart = coordination_give_up };

/* ---- the public functions -------------------------------------------------------------------- */

trp_err
trp_system_coordination_start(trp_system *system, trp_stm *stm, const trp_ref *parties,
                              uint32_t count, uint32_t timeout_ms, trp_ref *ret_coordination)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    if (system == NULL || stm == NULL || parties == NULL || count == 0 ||
        ret_coordination == NULL) {
        return TRP_EINVAL;
    }
    if (count > TRP_COORDINATION_PARTIES_MAX) {
        return TRP_ELIMIT;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (parties[i].node != TRPI_NODE_SELF) {
            return TRP_EUNSUPPORTED;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (trp_ref_equal(parties[i], parties[k])) {
                return TRP_EEXIST;
            }
        }
    }
    size_t bytes = sizeof(start_args) + count * sizeof(trp_ref);
    start_args *start = trpi_alloc(bytes);
    if (start == NULL) {
        return TRP_ENOMEM;
    }
    start->stm = stm;
    start->count = count;
    start->timeout_ms = timeout_ms == 0 ? TRP_COORDINATION_TIMEOUT_MS_DEFAULT : timeout_ms;
    memcpy(start + 1, parties, count * sizeof(trp_ref));
    options.args_type = &start_type;
    options.args = start;
    options.args_bytes = bytes;
    options.node = TRP_NODE_HERE;
    trp_err err = trp_protocol_register(&protocol);
    if (err == TRP_OK) {
        err = trp_system_spawn(system, &coordination_behaviour, &options, ret_coordination);
    }
    trpi_free(start);
    return err;
}

trp_err
trp_coordination_start(trp_ctx *ctx, trp_stm *stm, const trp_ref *parties, uint32_t count,
                       uint32_t timeout_ms, trp_ref *ret_coordination)
{
    return trp_system_coordination_start(trp_ctx_system(ctx), stm, parties, count, timeout_ms,
                                         ret_coordination);
}

void
trp_coordination_include(trp_ctx *ctx, trp_ref coordination, trp_ref party)
{
    trp_tell(ctx, coordination, &include_type, &party, sizeof party);
    trp_flush(ctx); /* it is known before the party is told, and joins */
}

trp_err
trp_coordination_join(trp_ctx *ctx, trp_ref coordination, trp_txn_fn fn, const void *arg,
                      size_t arg_bytes, uint32_t timeout_ms, trp_reply_fn done, void *done_arg)
{
    if (done == NULL || timeout_ms == 0 || (arg == NULL && arg_bytes > 0)) {
        return TRP_EINVAL;
    }
    if (arg_bytes > TRP_COORDINATION_ARG_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    char order[sizeof(join_order) + TRP_COORDINATION_ARG_BYTES_MAX];
    join_order head = { trp_self(ctx), fn, arg_bytes };
    memcpy(order, &head, sizeof head);
    if (arg_bytes > 0) {
        memcpy(order + sizeof head, arg, arg_bytes);
    }
    return trp_ask(ctx, coordination, &join_type, order, sizeof head + arg_bytes, timeout_ms, done,
                   done_arg);
}
