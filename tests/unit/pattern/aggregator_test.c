/* aggregator_test.c - actors that collect what they expect, and the two samples of it. */
#include <troupe/aggregator.h>

#include "tests/unit/actor/stage.h"

#define ASK_BALANCES(F, S) F(S, u32, types) F(S, u32, timeout_ms)
#define BALANCE(F, S) F(S, u32, type) F(S, u32, unused) F(S, u64, sum)
#define BALANCES(F, S) F(S, u32, types) F(S, u32, forced) F(S, u64, sum)
#define VALUE(F, S) F(S, u64, value)
#define VALUES(F, S) F(S, u64, count) F(S, u64, sum)
#define BANK_MESSAGES(M, P)                                                                        \
    M(P, get, ASK_BALANCES)  /* to a retriever */                                                  \
    M(P, ask, BALANCE)       /* to a proxy of one type of accounts */                              \
    M(P, balance, BALANCE)   /* from it */                                                         \
    M(P, balances, BALANCES) /* from a retriever */                                                \
    M(P, timed_out, VALUE)                                                                         \
    M(P, request, VALUE)    /* to a chain; to the proxies: so many answers */                      \
    M(P, response, VALUE)   /* from a proxy */                                                     \
    M(P, evaluate, VALUES)  /* to the evaluator */                                                 \
    M(P, evaluated, VALUES) /* from it */                                                          \
    M(P, final_response, VALUES)
TRP_PROTOCOL(bank, BANK_MESSAGES)

/* ---- expectations ---------------------------------------------------------------------------- */

struct collector {
    trp_aggregator aggregator;
    uint64_t handle, other;
};

/* Takes texts that begin with the letter in arg. */
static bool
begins_with(const trp_msg *msg, char letter)
{
    return trp_msg_is(msg, &trp_string_type) && trp_msg_bytes(msg) > 0 &&
           *(const char *)trp_msg_payload(msg) == letter;
}

static trp_err
take_a(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    (void)arg;
    if (!begins_with(msg, 'a')) {
        return TRP_EUNHANDLED;
    }
    stage_note("first:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    trp_reply_text(ctx, "a");
    return TRP_OK;
}

static trp_err
take_any(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    (void)arg;
    if (!trp_msg_is(msg, &trp_string_type) || begins_with(msg, 'z')) {
        return TRP_EUNHANDLED;
    }
    stage_note("any:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    trp_reply_text(ctx, "any");
    return TRP_OK;
}

static trp_err
collector_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct collector *c = state;
    (void)args;
    UNIT_EQUAL(trp_aggregator_expect_once(ctx, &c->aggregator, take_a, NULL, NULL), TRP_OK);
    return trp_aggregator_expect(ctx, &c->aggregator, take_any, NULL, &c->handle);
}

static trp_err
collector_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct collector *c = state;
    if (stage_said(msg, "count")) { /* its own messages come first */
        char text[16];
        (void)snprintf(text, sizeof text, "%u", trp_aggregator_count(&c->aggregator));
        trp_reply_text(ctx, text);
        return TRP_OK;
    }
    if (stage_said(msg, "unexpect")) {
        bool first = trp_aggregator_unexpect(&c->aggregator, c->handle) != 0;
        bool again = trp_aggregator_unexpect(&c->aggregator, c->handle) != 0;
        trp_reply_text(ctx, first ? (again ? "twice" : "once") : "never");
        return TRP_OK;
    }
    if (stage_said(msg, "fail")) {
        trp_fail(ctx, 1, "it is asked to");
    }
    trp_err err = trp_aggregator_receive(ctx, &c->aggregator, msg);
    if (err == TRP_EUNHANDLED) {
        stage_note("left");
    }
    return err;
}
static const trp_behaviour collector = { .size = sizeof(trp_behaviour),
                                         .name = "collector",
                                         .version = 1,
                                         .state_bytes = sizeof(struct collector),
                                         .receive = collector_receive,
                                         .pre_start = collector_start };

static void
says(trp_system *system, trp_ref ref, const char *text, const char *expected)
{
    char answer[32] = "";
    UNIT_EQUAL(stage_ask(system, ref, text, answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, expected);
}

/* CONTRIB-42 CONTRIB-43: the earlier one has the message, whoever sent it; one that takes one
 * message is gone then. */
static void
the_earliest_that_matches_takes_a_message(void)
{
    trp_system *system = stage_open();
    trp_ref ref = stage_spawn(system, &collector, "collector");
    says(system, ref, "b1", "any");
    says(system, ref, "count", "2");
    says(system, ref, "a1", "a");
    says(system, ref, "count", "1");
    says(system, ref, "a2", "any");
    STAGE_EXPECT("any:b1 first:a1 any:a2");
    stage_close(system);
}

/* CONTRIB-42 CONTRIB-44: ended once; what nothing expects is unhandled; a restart expects the first
 * again. */
static void
an_expectation_ends_once_and_at_a_restart(void)
{
    trp_system *system = stage_open();
    trp_ref ref = stage_spawn(system, &collector, "collector");
    says(system, ref, "unexpect", "once");
    says(system, ref, "unexpect", "never");
    says(system, ref, "count", "1");
    stage_tell(system, ref, "b1");
    STAGE_EXPECT("left");
    stage_tell(system, ref, "fail");
    says(system, ref, "count", "2");
    says(system, ref, "b2", "any");
    stage_close(system);
}

/* ---- changes while a message is handled ------------------------------------------------------ */

struct changer {
    trp_aggregator aggregator;
    uint64_t handles[3];
    uint32_t own_ends;
};

static trp_err
note_two(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    (void)ctx;
    (void)arg;
    stage_note("two:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}

static trp_err
note_late(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    (void)ctx;
    (void)arg;
    stage_note("late:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}

/* Ends the one behind it, adds many, and leaves the message to the others. */
static trp_err
change_and_pass(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct changer *c = arg;
    if (!stage_said(msg, "change")) {
        return TRP_EUNHANDLED;
    }
    UNIT_TRUE(trp_aggregator_unexpect(&c->aggregator, c->handles[1]) != 0);
    UNIT_TRUE(trp_aggregator_unexpect(&c->aggregator, c->handles[0]) != 0); /* itself */
    for (uint32_t i = 0; i < 100; i++) {
        UNIT_EQUAL(trp_aggregator_expect_once(ctx, &c->aggregator, note_late, NULL, NULL), TRP_OK);
    }
    return TRP_EUNHANDLED;
}

/* Ends itself while it takes its message. */
static trp_err
end_self(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct changer *c = arg;
    (void)ctx;
    c->own_ends += trp_aggregator_unexpect(&c->aggregator, c->handles[2]) != 0;
    stage_note("self:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}

static trp_err
changer_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct changer *c = state;
    trp_aggregator *a = &c->aggregator;
    (void)args;
    UNIT_EQUAL(trp_aggregator_expect(ctx, a, change_and_pass, c, &c->handles[0]), TRP_OK);
    UNIT_EQUAL(trp_aggregator_expect(ctx, a, note_two, NULL, &c->handles[1]), TRP_OK);
    return trp_aggregator_expect_once(ctx, a, end_self, c, &c->handles[2]);
}

static trp_err
changer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct changer *c = state;
    trp_err err = trp_aggregator_receive(ctx, &c->aggregator, msg);
    stage_note("left:%u:%u", trp_aggregator_count(&c->aggregator), c->own_ends);
    return err;
}
static const trp_behaviour changer = { .size = sizeof(trp_behaviour),
                                       .name = "changer",
                                       .version = 1,
                                       .state_bytes = sizeof(struct changer),
                                       .receive = changer_receive,
                                       .pre_start = changer_start };

/* CONTRIB-44: what is added counts from the next message on, what is ended counts no more at once,
 * also when it is the one that runs. */
static void
expectations_change_while_a_message_is_handled(void)
{
    trp_system *system = stage_open();
    trp_ref ref = stage_spawn(system, &changer, "changer");
    stage_tell(system, ref, "x");
    stage_tell(system, ref, "change");
    stage_tell(system, ref, "y");
    STAGE_EXPECT("two:x left:3:0 self:change left:100:1 late:y left:99:1");
    stage_close(system);
}

static trp_err
limits_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct collector *c = state;
    trp_aggregator *a = &c->aggregator;
    UNIT_EQUAL(trp_aggregator_expect(ctx, a, NULL, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_aggregator_expect(ctx, NULL, take_a, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_aggregator_receive(ctx, NULL, msg), TRP_EINVAL);
    UNIT_EQUAL(trp_aggregator_unexpect(NULL, 1), 0);
    UNIT_EQUAL(trp_aggregator_unexpect(a, 1), 0);
    UNIT_EQUAL(trp_aggregator_count(NULL), 0);
    for (uint32_t i = 0; i < TRP_AGGREGATOR_EXPECTATIONS_MAX; i++) {
        UNIT_REQUIRE(trp_aggregator_expect(ctx, a, take_a, NULL, &c->handle) == TRP_OK);
    }
    UNIT_EQUAL(trp_aggregator_expect_once(ctx, a, take_a, NULL, NULL), TRP_ELIMIT);
    UNIT_TRUE(trp_aggregator_unexpect(a, c->handle) != 0);
    UNIT_EQUAL(trp_aggregator_expect_once(ctx, a, take_a, NULL, NULL), TRP_OK);
    trp_reply_text(ctx, "done");
    return TRP_OK;
}
static const trp_behaviour limits = { .size = sizeof(trp_behaviour),
                                      .name = "limits",
                                      .version = 1,
                                      .state_bytes = sizeof(struct collector),
                                      .receive = limits_receive };

/* CONTRIB-42 */
static void
there_is_a_limit_and_misuse_is_an_error(void)
{
    trp_system *system = stage_open();
    says(system, stage_spawn(system, &limits, "limits"), "x", "done");
    stage_close(system);
}

/* ---- sample: the balances of a customer ------------------------------------------------------ */

enum { CHECKING = 1, SAVINGS = 2, MARKET = 4, SILENT = 8 };

/* Of each type of accounts one; that of SILENT never answers. */
static trp_err
proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct bank_ask *ask = trp_msg_as(msg, &bank_ask_type);
    (void)state;
    if (ask == NULL) {
        return TRP_EUNHANDLED;
    }
    if (ask->type != SILENT) {
        struct bank_balance balance = { ask->type, 0, ask->type * 1000u };
        trp_reply(ctx, &bank_balance_type, &balance, sizeof balance);
    }
    return TRP_OK;
}
static const trp_behaviour proxy = {
    .size = sizeof(trp_behaviour), .name = "proxy", .version = 1, .receive = proxy_receive
};

struct retriever {
    trp_aggregator aggregator;
    trp_ref asker;
    uint32_t types, got;
    uint64_t sum;
};

static void
collect_balances(trp_ctx *ctx, struct retriever *r, bool force)
{
    if (r->got == r->types || force) {
        struct bank_balances all = { r->got, force, r->sum };
        trp_tell(ctx, r->asker, &bank_balances_type, &all, sizeof all);
        trp_stop(ctx, trp_self(ctx));
    }
}

static trp_err
expect_balance(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct retriever *r = arg;
    const struct bank_balance *balance = trp_msg_as(msg, &bank_balance_type);
    if (balance == NULL) {
        return TRP_EUNHANDLED;
    }
    r->got |= balance->type;
    r->sum += balance->sum;
    collect_balances(ctx, r, false);
    return TRP_OK;
}

static trp_err
expect_timeout(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    if (!trp_msg_is(msg, &bank_timed_out_type)) {
        return TRP_EUNHANDLED;
    }
    collect_balances(ctx, arg, true);
    return TRP_OK;
}

static trp_err
fetch_balance(trp_ctx *ctx, struct retriever *r, uint32_t type)
{
    struct bank_ask ask = { type, 0, 0 };
    trp_ref ref;
    trp_err err = trp_spawn(ctx, &proxy, NULL, &ref);
    if (err == TRP_OK) {
        trp_tell(ctx, ref, &bank_ask_type, &ask, sizeof ask);
        err = trp_aggregator_expect_once(ctx, &r->aggregator, expect_balance, r, NULL);
    }
    return err;
}

static trp_err
expect_request(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct retriever *r = arg;
    const struct bank_get *get = trp_msg_as(msg, &bank_get_type);
    struct bank_timed_out timed_out = { 0 };
    trp_err err = TRP_OK;
    if (get == NULL) {
        trp_reply_text(ctx, "cannot understand");
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    r->asker = trp_sender(ctx);
    r->types = get->types;
    for (uint32_t type = CHECKING; type <= SILENT && err == TRP_OK; type *= 2) {
        err = r->types & type ? fetch_balance(ctx, r, type) : TRP_OK;
    }
    if (r->types == 0) {
        collect_balances(ctx, r, false);
    }
    err = err != TRP_OK ? err
                        : trp_timer_once(ctx, 1, get->timeout_ms, &bank_timed_out_type, &timed_out,
                                         sizeof timed_out);
    return err != TRP_OK ? err
                         : trp_aggregator_expect(ctx, &r->aggregator, expect_timeout, r, NULL);
}

static trp_err
retriever_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct retriever *r = state;
    (void)args;
    return trp_aggregator_expect_once(ctx, &r->aggregator, expect_request, r, NULL);
}

static trp_err
retriever_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct retriever *r = state;
    return trp_aggregator_receive(ctx, &r->aggregator, msg);
}
static const trp_behaviour retriever = { .size = sizeof(trp_behaviour),
                                         .name = "retriever",
                                         .version = 1,
                                         .state_bytes = sizeof(struct retriever),
                                         .receive = retriever_receive,
                                         .pre_start = retriever_start };

static struct bank_balances
balances_of(trp_system *system, uint32_t types, uint32_t timeout_ms)
{
    struct bank_get get = { types, timeout_ms };
    struct bank_balances got = { 0 };
    trp_msg *reply = NULL;
    UNIT_REQUIRE(trp_system_ask(system, stage_spawn(system, &retriever, NULL), &bank_get_type, &get,
                                sizeof get, 60000, &reply) == TRP_OK);
    UNIT_REQUIRE(trp_msg_is(reply, &bank_balances_type));
    memcpy(&got, trp_msg_payload(reply), sizeof got);
    trp_msg_free(reply);
    return got;
}

/* CONTRIB-43 CONTRIB-45 */
static void
the_balances_of_a_customer_are_collected(void)
{
    trp_system *system = stage_open();
    char answer[32] = "";
    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    struct bank_balances got = balances_of(system, CHECKING | SAVINGS | MARKET, 60000);
    UNIT_EQUAL(got.types, CHECKING | SAVINGS | MARKET);
    UNIT_EQUAL(got.sum, 7000);
    UNIT_FALSE(got.forced);
    got = balances_of(system, 0, 60000); /* no type: an empty answer at once */
    UNIT_EQUAL(got.types, 0);
    UNIT_FALSE(got.forced);
    got = balances_of(system, SAVINGS | SILENT, 100); /* in time, what has come until then */
    UNIT_EQUAL(got.types, SAVINGS);
    UNIT_TRUE(got.forced);
    trp_ref ref = stage_spawn(system, &retriever, "confused");
    UNIT_EQUAL(stage_ask(system, ref, "?", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "cannot understand");
    UNIT_EQUAL(stage_ask(system, ref, "?", answer, sizeof answer), TRP_ENOENT);
    stage_close(system);
}

/* ---- sample: several answers, then a further question ---------------------------------------- */

static trp_err
proxies_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct bank_request *request = trp_msg_as(msg, &bank_request_type);
    (void)state;
    for (uint64_t i = 1; request != NULL && i <= request->value; i++) {
        struct bank_response response = { i };
        trp_reply(ctx, &bank_response_type, &response, sizeof response);
    }
    return request == NULL ? TRP_EUNHANDLED : TRP_OK;
}
static const trp_behaviour proxies = {
    .size = sizeof(trp_behaviour), .name = "proxies", .version = 1, .receive = proxies_receive
};

static trp_err
evaluator_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct bank_evaluate *values = trp_msg_as(msg, &bank_evaluate_type);
    (void)state;
    if (values == NULL) {
        return TRP_EUNHANDLED;
    }
    struct bank_evaluated done = { values->count, values->sum * 100 };
    trp_reply(ctx, &bank_evaluated_type, &done, sizeof done);
    return TRP_OK;
}
static const trp_behaviour evaluator = {
    .size = sizeof(trp_behaviour), .name = "evaluator", .version = 1, .receive = evaluator_receive
};

struct chain {
    trp_aggregator aggregator;
    trp_ref asker, proxies, evaluator;
    uint64_t handle, count, sum;
};

static void
process_final(trp_ctx *ctx, const struct chain *c, uint64_t count, uint64_t sum)
{
    struct bank_final_response response = { count, sum };
    trp_tell(ctx, c->asker, &bank_final_response_type, &response, sizeof response);
    trp_stop(ctx, trp_self(ctx));
}

static trp_err
expect_evaluated(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    const struct bank_evaluated *done = trp_msg_as(msg, &bank_evaluated_type);
    if (done == NULL) {
        return TRP_EUNHANDLED;
    }
    process_final(ctx, arg, done->count, done->sum);
    return TRP_OK;
}

static trp_err
process_list(trp_ctx *ctx, struct chain *c)
{
    struct bank_evaluate values = { c->count, c->sum };
    UNIT_TRUE(trp_aggregator_unexpect(&c->aggregator, c->handle) != 0);
    if (c->count == 0) {
        process_final(ctx, c, 0, 0);
        return TRP_OK;
    }
    trp_tell(ctx, c->evaluator, &bank_evaluate_type, &values, sizeof values);
    return trp_aggregator_expect_once(ctx, &c->aggregator, expect_evaluated, c, NULL);
}

static trp_err
expect_responses(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct chain *c = arg;
    const struct bank_response *response = trp_msg_as(msg, &bank_response_type);
    if (response != NULL) {
        c->count++;
        c->sum += response->value;
        return c->count > 3 ? process_list(ctx, c) : TRP_OK;
    }
    return trp_msg_is(msg, &bank_timed_out_type) ? process_list(ctx, c) : TRP_EUNHANDLED;
}

static trp_err
expect_first(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    struct chain *c = arg;
    const struct bank_request *request = trp_msg_as(msg, &bank_request_type);
    struct bank_timed_out timed_out = { 0 };
    if (request == NULL) {
        return TRP_EUNHANDLED;
    }
    c->asker = trp_sender(ctx);
    trp_tell(ctx, c->proxies, &bank_request_type, request, sizeof *request);
    trp_err err = trp_timer_once(ctx, 1, 50, &bank_timed_out_type, &timed_out, sizeof timed_out);
    return err != TRP_OK
               ? err
               : trp_aggregator_expect(ctx, &c->aggregator, expect_responses, c, &c->handle);
}

static trp_err
chain_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct chain *c = state;
    (void)args;
    c->proxies = stage_child(ctx, &proxies, "proxies");
    c->evaluator = stage_child(ctx, &evaluator, "evaluator");
    return trp_aggregator_expect_once(ctx, &c->aggregator, expect_first, c, NULL);
}

/* Answers that nobody waits for any more are nothing new. */
static trp_err
chain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct chain *c = state;
    trp_err err = trp_aggregator_receive(ctx, &c->aggregator, msg);
    bool is_late = trp_msg_is(msg, &bank_response_type) || trp_msg_is(msg, &bank_timed_out_type);
    return err == TRP_EUNHANDLED && is_late ? TRP_OK : err;
}
static const trp_behaviour chain = { .size = sizeof(trp_behaviour),
                                     .name = "chain",
                                     .version = 1,
                                     .state_bytes = sizeof(struct chain),
                                     .receive = chain_receive,
                                     .pre_start = chain_start };

static void
chain_says(trp_system *system, uint64_t answers, uint64_t count, uint64_t sum)
{
    struct bank_request request = { answers };
    struct bank_final_response got = { 0 };
    trp_msg *reply = NULL;
    UNIT_REQUIRE(trp_system_ask(system, stage_spawn(system, &chain, NULL), &bank_request_type,
                                &request, sizeof request, 60000, &reply) == TRP_OK);
    UNIT_REQUIRE(trp_msg_is(reply, &bank_final_response_type));
    memcpy(&got, trp_msg_payload(reply), sizeof got);
    trp_msg_free(reply);
    UNIT_EQUAL(got.count, count);
    UNIT_EQUAL(got.sum, sum);
}

/* CONTRIB-45 */
static void
several_answers_lead_to_a_further_question(void)
{
    trp_system *system = stage_open();
    UNIT_EQUAL(trp_protocol_register(&bank_protocol), TRP_OK);
    chain_says(system, 10, 4, 1000); /* the first four are enough */
    chain_says(system, 2, 2, 300);   /* in 50 ms only two come */
    chain_says(system, 0, 0, 0);
    stage_close(system);
}

UNIT_BEGIN("aggregator")
UNIT(the_earliest_that_matches_takes_a_message)
UNIT(an_expectation_ends_once_and_at_a_restart)
UNIT(expectations_change_while_a_message_is_handled)
UNIT(there_is_a_limit_and_misuse_is_an_error)
UNIT(the_balances_of_a_customer_are_collected)
UNIT(several_answers_lead_to_a_further_question)
UNIT_END
