/* future_trace_test.c - traces through futures: what a callback tells, what is piped, and asks. */
#include <troupe/dispatcher.h>
#include <troupe/future.h>

#include "tests/unit/actor/hops.h"

static trp_ref front, far, after;
static trp_promise *kept; /* one that the test settles */

static void
look(void *arg, const trp_outcome *outcome)
{
    (void)outcome;
    trp_system_tell(arg, after, &trp_string_type, "after", 5);
}

static trp_err
same(void *arg, const trp_outcome *outcome, trp_promise *next)
{
    (void)arg;
    return trp_promise_succeed(next, trp_msg_type(outcome->value), trp_msg_payload(outcome->value),
                               trp_msg_bytes(outcome->value));
}

static void
future_ask(trp_ctx *ctx, bool pipes)
{
    trp_system *system = trp_ctx_system(ctx);
    trp_future *future = NULL, *mapped = NULL;

    UNIT_REQUIRE(trp_future_ask(system, far, &trp_string_type, "question", 8, 60000, &future) ==
                 TRP_OK);
    UNIT_EQUAL(trp_future_map(future, same, NULL, NULL, &mapped), TRP_OK);
    UNIT_EQUAL(pipes ? trp_future_pipe(mapped, after, trp_self(ctx))
                     : trp_future_on_success(mapped, look, system, NULL),
               TRP_OK);
    trp_future_unref(mapped);
    trp_future_unref(future);
}

static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "ask")) {
        future_ask(ctx, false);
    } else if (stage_said(msg, "pipe")) {
        future_ask(ctx, true);
    } else if (stage_said(msg, "wait")) {
        UNIT_EQUAL(
            trp_future_on_complete(trp_promise_future(kept), look, trp_ctx_system(ctx), NULL),
            TRP_OK);
    } else if (stage_said(msg, "question")) {
        trp_reply_text(ctx, "answer");
    }
    return TRP_OK;
}
static const trp_behaviour behaviour = {
    .size = sizeof(trp_behaviour), .name = "front", .version = 1, .receive = front_receive
};

static trp_system *
begin(const char *text)
{
    trp_system *system = stage_open();

    front = stage_spawn(system, &behaviour, "front");
    far = stage_spawn(system, &behaviour, "far");
    after = stage_spawn(system, &behaviour, "after");
    UNIT_REQUIRE(trp_promise_new(system, NULL, &kept) == TRP_OK);
    trp_system_tell_traced(system, front, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type, text,
                           strlen(text));
    return system;
}

/* Is there a hop of `actor` below one of `parent`? */
static bool
is_below(trp_system *system, const char *parent, const char *actor)
{
    static hops h;
    char a[64], b[64];

    hops_take(system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        if (strcmp(name_of(system, h.all[i].actor, a, sizeof a), actor) == 0 &&
            strcmp(parent_of(&h, h.all[i].parent, b, sizeof b), parent) == 0 &&
            h.all[i].trace.id_low == outside.id_low) {
            return true;
        }
    }
    return false;
}

static void
end(trp_system *system)
{
    trp_promise_unref(kept);
    stage_close(system);
}

/* HOW-09 */
static void
what_a_callback_of_a_future_tells_is_below_the_message_that_registered_it(void)
{
    trp_system *system = begin("ask");

    UNIT_WAIT(hops_count(system) == 4, 60000);
    UNIT_TRUE(is_below(system, "front", "far"));
    UNIT_TRUE(is_below(system, "front", "after"));
    end(system);
}

static void
an_outcome_that_is_piped_stays_in_its_trace(void)
{
    trp_system *system = begin("pipe");

    UNIT_WAIT(hops_count(system) == 4, 60000);
    UNIT_TRUE(is_below(system, "front", "after"));
    end(system);
}

/* The reply of a future's ask is a hop of who waits for it. */
static void
the_reply_to_a_futures_ask_is_a_hop(void)
{
    static hops h;
    trp_system *system = begin("ask");
    char name[64];
    uint32_t replies = 0;

    UNIT_WAIT(hops_count(system) == 4, 60000);
    hops_take(system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        replies += strcmp(parent_of(&h, h.all[i].parent, name, sizeof name), "far") == 0;
    }
    UNIT_EQUAL(replies, 1);
    end(system);
}

/* A thread that is in no trace settles the promise; and what it tells itself is in none. */
static void
a_promise_that_is_kept_outside_the_trace_leaves_its_callbacks_in_it(void)
{
    trp_system *system = begin("wait");
    int64_t number = 7;

    UNIT_WAIT(hops_count(system) == 1, 60000);
    UNIT_EQUAL(trp_promise_succeed(kept, &trp_i64_type, &number, sizeof number), TRP_OK);
    stage_tell(system, front, "nothing");
    hops_expect(system, 2, "->front front>after");
    end(system);
}

UNIT_BEGIN("future_trace")
UNIT(what_a_callback_of_a_future_tells_is_below_the_message_that_registered_it)
UNIT(an_outcome_that_is_piped_stays_in_its_trace)
UNIT(the_reply_to_a_futures_ask_is_a_hop)
UNIT(a_promise_that_is_kept_outside_the_trace_leaves_its_callbacks_in_it)
UNIT_END
