/* typed_test.c - calls that are messages, and refs that carry their types. tests/system/typed.sh
 * has what does not compile. */
#include <troupe/typed.h>

#include <stddef.h>

#include "tests/unit/actor/stage.h"

#define TILL_CENTS(F, S) F(S, i64, cents)
#define TILL_MESSAGES(M, P)                                                                        \
    M(P, pay, TILL_CENTS) M(P, sum, TILL_CENTS) M(P, later, TILL_CENTS) M(P, reset, TRP_NO_FIELDS)
TRP_PROTOCOL(till, TILL_MESSAGES)
#define TILL_CALLS(C, O, P) C(P, pay, sum) C(P, later, sum) O(P, reset)
TRP_TYPED(till, TILL_CALLS)

#define LAMP_MESSAGES(M, P) M(P, flip, TRP_NO_FIELDS)
TRP_PROTOCOL(lamp, LAMP_MESSAGES)
#define LAMP_CALLS(C, O, P) O(P, flip)
TRP_TYPED(lamp, LAMP_CALLS)

struct till {
    int64_t cents;
    trp_ref self, sender;
    int inside, flips;
};

static trp_err
on_pay(trp_ctx *ctx, void *state, const till_pay *m, till_sum *ret_reply)
{
    struct till *t = state;
    UNIT_EQUAL(t->inside++, 0); /* one call at a time */
    t->self = trp_self(ctx);
    t->sender = trp_sender(ctx);
    if (m->cents > 0) {
        t->cents += m->cents;
    }
    ret_reply->cents = t->cents;
    t->inside--;
    return m->cents > 0 ? TRP_OK : TRP_EPERM;
}

static trp_err
on_later(trp_ctx *ctx, void *state, const till_later *m, till_sum *ret_reply)
{
    (void)state;
    (void)ret_reply;
    if (m->cents == 0) {
        trp_fail(ctx, 1, "it is told to");
    }
    return TRP_EUNHANDLED; /* as if there were no function */
}

static trp_err
on_reset(trp_ctx *ctx, void *state, const till_reset *m)
{
    (void)ctx;
    (void)m;
    ((struct till *)state)->cents = 0;
    return TRP_OK;
}

static trp_err
on_flip(trp_ctx *ctx, void *state, const lamp_flip *m)
{
    (void)m;
    trp_reply(ctx, &trp_i64_type, &(int64_t){ ++((struct till *)state)->flips }, 0);
    return TRP_OK;
}

static const till_methods methods = { on_pay, on_later, on_reset };
static const lamp_methods flips = { on_flip };

static trp_err
serve_till(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    return till_serve(ctx, state, msg, &methods);
}
static trp_err
serve_lamp(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    return lamp_serve(ctx, state, msg, &flips);
}
TRP_OR_ELSE(serve_both, serve_till, serve_lamp)

static trp_err
till_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return till_methods_check(ctx, &methods);
}

static const trp_protocol *const accepted[] = { &till_protocol, &lamp_protocol, NULL };
static const trp_behaviour till_behaviour = { .size = sizeof till_behaviour,
                                              .name = "till",
                                              .version = 1,
                                              .state_bytes = sizeof(struct till),
                                              .receive = serve_both,
                                              .pre_start = till_start,
                                              .accepts = accepted };

static till_ref
open_till(trp_system *system)
{
    till_ref ref = { TRP_REF_NONE };
    UNIT_EQUAL(till_system_spawn(system, &till_behaviour, NULL, &ref), TRP_OK);
    return ref;
}

/* TYPED-1: with a reply, its future, and one-way; in order. */
static void
a_call_is_a_message(void)
{
    trp_system *system = stage_open();
    till_ref till = open_till(system);
    trp_future *future = NULL;
    const trp_msg *value;
    till_sum sum = { 0 };
    till_pay_send(system, till, (till_pay){ 100 });
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 50 }, 60000, &sum), TRP_OK);
    UNIT_EQUAL(sum.cents, 150);
    UNIT_EQUAL(till_pay_future(system, till, (till_pay){ 1 }, 60000, &future), TRP_OK);
    UNIT_EQUAL(trp_future_result(future, 60000, &value), TRP_OK);
    UNIT_EQUAL(till_sum_as(value)->cents, 151);
    trp_future_unref(future);
    till_reset_send(system, till, (till_reset){ 0 });
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 5 }, 60000, NULL), TRP_OK);
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 5 }, 60000, &sum), TRP_OK);
    UNIT_EQUAL(sum.cents, 10);
    stage_close(system);
}

/* TYPED-1: an error is the call's; a failure is the actor's; no answer is a timeout. */
static void
a_call_that_is_refused_returns_the_error(void)
{
    trp_system *system = stage_open();
    till_ref till = open_till(system);
    till_sum sum = { -1 };
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 7 }, 60000, NULL), TRP_OK);
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ -7 }, 60000, &sum), TRP_EPERM);
    UNIT_EQUAL(sum.cents, -1);
    UNIT_EQUAL(till_later_call(system, till, (till_later){ 1 }, 60000, &sum), TRP_EUNHANDLED);
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 1 }, 60000, &sum), TRP_OK);
    UNIT_EQUAL(sum.cents, 8); /* it has gone on */
    UNIT_EQUAL(till_later_call(system, till, (till_later){ 0 }, 50, &sum), TRP_ETIMEDOUT);
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 1 }, 60000, &sum), TRP_OK);
    UNIT_EQUAL(sum.cents, 1); /* it was restarted */
    trp_system_stop_actor(system, till.ref);
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 1 }, 60000, &sum), TRP_ENOENT);
    stage_close(system);
}

/* ---- from an actor --------------------------------------------------------------------------- */

struct customer {
    till_ref till;
    int64_t seen;
};

static trp_err
on_sum(trp_ctx *ctx, void *state, void *arg, trp_err err, const till_sum *answer)
{
    struct customer *c = state;
    (void)ctx;
    stage_note("%s:%d:%lld", (const char *)arg, (int)err,
               (long long)(answer == NULL ? -1 : answer->cents));
    c->seen++;
    return TRP_OK;
}

static trp_err
customer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static char first[] = "first", second[] = "second", third[] = "third";
    struct customer *c = state;
    if (till_sum_as(msg) != NULL) { /* the answer to a one-way call with a reply */
        stage_note("told:%lld", (long long)till_sum_as(msg)->cents);
        return TRP_OK;
    }
    UNIT_EQUAL(till_spawn(ctx, &till_behaviour, NULL, &c->till), TRP_OK); /* a hierarchy */
    UNIT_EQUAL(till_pay_ask(ctx, c->till, (till_pay){ 3 }, 60000, on_sum, first), TRP_OK);
    UNIT_EQUAL(till_pay_ask(ctx, c->till, (till_pay){ 0 }, 60000, on_sum, second), TRP_OK);
    UNIT_EQUAL(till_pay_ask(ctx, c->till, (till_pay){ 3 }, 60000, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(till_pay_ask(ctx, c->till, (till_pay){ 4 }, 60000, on_sum, third), TRP_OK);
    till_pay_tell(ctx, c->till, (till_pay){ 5 });
    return TRP_OK;
}
static const trp_behaviour customer =
    TRP_BEHAVIOUR_INIT("customer", struct customer, customer_receive);

/* TYPED-1 TYPED-2 TYPED-4 */
static void
an_actor_asks_and_gets_a_typed_answer(void)
{
    trp_system *system = stage_open();
    trp_ref ref = stage_spawn(system, &customer, "customer");
    stage_tell(system, ref, "go");
    UNIT_WAIT(stage_has("first:0:3") && stage_has("second:11:-1") && stage_has("third:0:7") &&
                  stage_has("told:12"),
              60000);
    stage_close(system);
}

/* TYPED-2: several protocols of one actor, the ref and the context behind it. */
static void
ref_and_context_are_at_hand(void)
{
    trp_system *system = stage_open();
    till_ref till = open_till(system);
    lamp_ref lamp = lamp_ref_of(till.ref);
    trp_msg *reply = NULL;
    lamp_flip_send(system, lamp, (lamp_flip){ 0 });
    UNIT_EQUAL(
        trp_system_ask(system, lamp.ref, &lamp_flip_type, &(lamp_flip){ 0 }, 0, 60000, &reply),
        TRP_OK);
    UNIT_EQUAL(*(const int64_t *)trp_msg_payload(reply), 2);
    trp_msg_free(reply);
    UNIT_TRUE(trp_typed_accepts(&till_behaviour, &lamp_protocol));
    UNIT_FALSE(trp_typed_accepts(&customer, &lamp_protocol));
    UNIT_FALSE(trp_typed_accepts(NULL, &lamp_protocol));
    stage_close(system);
}

/* ---- declarations are checked ---------------------------------------------------------------- */

static const till_methods half = { on_pay, NULL, on_reset };
static trp_err
half_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return till_methods_check(ctx, &half);
}
static trp_err
half_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    return till_serve(ctx, state, msg, &half);
}
static const trp_protocol *const tills[] = { &till_protocol, NULL };
static const trp_behaviour half_behaviour = { .size = sizeof half_behaviour,
                                              .name = "half",
                                              .version = 1,
                                              .state_bytes = sizeof(struct till),
                                              .receive = half_receive,
                                              .pre_start = half_start,
                                              .accepts = tills };

/* TYPED-5 */
static void
calls_without_a_function_are_found_at_the_start(void)
{
    trp_system *system = stage_open();
    till_ref till = { TRP_REF_NONE };
    lamp_ref lamp = { TRP_REF_NONE };
    UNIT_EQUAL(till_system_spawn(system, &half_behaviour, NULL, &till), TRP_OK);
    STAGE_LOGGED("typed actor: till.later has no function");
    UNIT_EQUAL(till_pay_call(system, till, (till_pay){ 1 }, 60000, NULL), TRP_ENOENT);
    UNIT_EQUAL(lamp_system_spawn(system, &half_behaviour, NULL, &lamp), TRP_EINVAL);
    UNIT_TRUE(trp_ref_is_none(lamp.ref)); /* it accepts no lamp's messages */
    stage_close(system);
}

UNIT_BEGIN("typed")
UNIT(a_call_is_a_message)
UNIT(a_call_that_is_refused_returns_the_error)
UNIT(an_actor_asks_and_gets_a_typed_answer)
UNIT(ref_and_context_are_at_hand)
UNIT(calls_without_a_function_are_found_at_the_start)
UNIT_END
