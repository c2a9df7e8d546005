/* future_test.c - one future: promise, callbacks, what is made of it, and the end of its system. */
#include <troupe/future.h>

#include <troupe/dispatcher.h>
#include <troupe/testkit.h>

#include "tests/unit/actor/stage.h"

static trp_system *stage;

static trp_promise *
promise_of(trp_system *system)
{
    trp_promise *promise = NULL;

    UNIT_REQUIRE(trp_promise_new(system, NULL, &promise) == TRP_OK);
    return promise;
}

static void
promise_keep(trp_promise *promise, int64_t number)
{
    UNIT_EQUAL(trp_promise_succeed(promise, &trp_i64_type, &number, sizeof number), TRP_OK);
}

static int64_t
number_of(const trp_msg *msg)
{
    return msg != NULL && trp_msg_is(msg, &trp_i64_type) ? *(const int64_t *)trp_msg_payload(msg)
                                                         : INT64_MIN;
}

/* Wait for the value; takes the future. INT64_MIN: none. */
static int64_t
result_of(trp_future *future, trp_err want)
{
    const trp_msg *value = NULL;
    int64_t number;

    UNIT_EQUAL(trp_future_result(future, 120000, &value), want);
    number = number_of(value);
    trp_future_unref(future);
    return number;
}

static _Atomic int released;
static void
count_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&released, 1);
}

static trp_ref told_late; /* told by note_outcome(); TRP_REF_NONE: not told */

static void
note_outcome(void *arg, const trp_outcome *outcome)
{
    if (!trp_ref_is_none(told_late)) {
        trp_system_tell(stage, told_late, &trp_string_type, "too late", 8);
    }
    stage_note("%s:%s:%lld", (const char *)arg, trp_err_name(outcome->err),
               outcome->value != NULL ? (long long)number_of(outcome->value) : -1LL);
}

/* FUT-2, FUT-3, FUT-5 */
static void
a_promise_is_kept_once_and_callbacks_run_whenever_they_were_registered(void)
{
    trp_promise *promise;
    trp_future *future;
    const trp_msg *value;
    int64_t other = 8;

    stage = stage_open();
    promise = promise_of(stage);
    future = trp_future_ref(trp_promise_future(promise));
    UNIT_TRUE(trp_future_outcome(future) == NULL);
    UNIT_EQUAL(trp_future_await(future, 0), TRP_ETIMEDOUT);
    UNIT_EQUAL(trp_future_on_complete(future, note_outcome, "early", NULL), TRP_OK);
    UNIT_EQUAL(trp_future_on_failure(future, note_outcome, "never", count_release), TRP_OK);
    promise_keep(promise, 7);
    UNIT_EQUAL(trp_promise_succeed(promise, &trp_i64_type, &other, sizeof other), TRP_EEXIST);
    UNIT_EQUAL(trp_promise_fail(promise, TRP_EIO, "late"), TRP_EEXIST);
    STAGE_EXPECT("early:TRP_OK:7");
    UNIT_EQUAL(trp_future_on_success(future, note_outcome, "late", NULL), TRP_OK);
    STAGE_EXPECT("early:TRP_OK:7 late:TRP_OK:7");
    UNIT_WAIT(atomic_load(&released) == 1, 5000);
    UNIT_EQUAL(trp_future_result(future, 0, &value), TRP_OK);
    UNIT_EQUAL(number_of(value), 7);
    trp_promise_unref(promise);
    trp_future_unref(future);
    UNIT_EQUAL(trp_promise_new(stage, "nowhere", &promise), TRP_ENOENT);
    stage_close(stage);
}

static trp_err
add_one(void *arg, const trp_outcome *in, trp_promise *out)
{
    int64_t sum = (in->value == NULL ? 0 : number_of(in->value)) + 1;

    (void)arg;
    return trp_promise_succeed(out, &trp_i64_type, &sum, sizeof sum);
}

static trp_err
map_refuse(void *arg, const trp_outcome *in, trp_promise *out)
{
    (void)in;
    (void)out;
    return *(trp_err *)arg;
}

static trp_err
keep_nothing(void *arg, const trp_outcome *in, trp_promise *out)
{
    (void)arg;
    (void)in;
    (void)out;
    return TRP_OK;
}

static trp_err
to_future(void *arg, const trp_outcome *in, trp_future **ret_next)
{
    int64_t number = in->value == NULL ? 100 : number_of(in->value) * 10;

    return trp_future_succeeded(arg, &trp_i64_type, &number, sizeof number, ret_next);
}

static int
is_even(void *arg, const trp_outcome *in)
{
    (void)arg;
    return number_of(in->value) % 2 == 0;
}

static trp_future *
future_ready(int64_t number)
{
    trp_future *future = NULL;

    UNIT_REQUIRE(trp_future_succeeded(stage, &trp_i64_type, &number, sizeof number, &future) ==
                 TRP_OK);
    return future;
}

static trp_future *
future_broken(trp_err err)
{
    trp_future *future = NULL;

    UNIT_REQUIRE(trp_future_failed(stage, err, "broken", &future) == TRP_OK);
    return future;
}

/* FUT-4, FUT-6, FUT-8, FUT-2 */
static void
combinators_pass_successes_and_failures_as_they_say(void)
{
    static trp_err io = TRP_EIO;
    trp_future *seven, *bad, *f;

    stage = stage_open();
    seven = future_ready(7);
    bad = future_broken(TRP_EPERM);

    UNIT_EQUAL(trp_future_map(seven, add_one, NULL, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 8);
    UNIT_EQUAL(trp_future_map(bad, add_one, NULL, NULL, &f), TRP_OK);
    (void)result_of(f, TRP_EPERM);
    UNIT_EQUAL(trp_future_map(seven, map_refuse, &io, NULL, &f), TRP_OK); /* captured: FUT-6 */
    (void)result_of(f, TRP_EIO);
    UNIT_EQUAL(trp_future_map(seven, keep_nothing, NULL, NULL, &f), TRP_OK);
    (void)result_of(f, TRP_ECANCELED);
    UNIT_EQUAL(trp_future_flat_map(seven, to_future, stage, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 70);
    UNIT_EQUAL(trp_future_filter(seven, is_even, NULL, NULL, &f), TRP_OK);
    (void)result_of(f, TRP_ENOENT);
    UNIT_EQUAL(trp_future_map_to(seven, &trp_i64_type, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 7);
    UNIT_EQUAL(trp_future_map_to(seven, &trp_string_type, &f), TRP_OK);
    (void)result_of(f, TRP_EDATA);
    UNIT_EQUAL(trp_future_recover(bad, add_one, NULL, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 1);
    UNIT_EQUAL(trp_future_recover(seven, add_one, NULL, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 7);
    UNIT_EQUAL(trp_future_recover_with(bad, to_future, stage, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 100);
    UNIT_EQUAL(trp_future_fallback_to(bad, seven, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 7);
    UNIT_EQUAL(trp_future_fallback_to(seven, bad, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 7);
    trp_future_unref(seven);
    seven = future_broken(TRP_EIO);
    UNIT_EQUAL(trp_future_fallback_to(bad, seven, &f), TRP_OK);
    (void)result_of(f, TRP_EPERM);
    trp_future_unref(seven);
    trp_future_unref(bad);
    stage_close(stage);
}

/* FUT-4: andThen keeps order and result */
static void
and_then_runs_in_order_and_keeps_the_outcome(void)
{
    trp_future *f, *g, *h;

    stage = stage_open();
    f = future_ready(3);
    UNIT_EQUAL(trp_future_and_then(f, note_outcome, "a", NULL, &g), TRP_OK);
    UNIT_EQUAL(trp_future_and_then(g, note_outcome, "b", NULL, &h), TRP_OK);
    UNIT_EQUAL(result_of(h, TRP_OK), 3);
    UNIT_TRUE(stage_is("a:TRP_OK:3 b:TRP_OK:3"));
    trp_future_unref(f);
    trp_future_unref(g);
    stage_close(stage);
}

static trp_err
where_am_i(void *arg, const trp_outcome *in, trp_promise *out)
{
    int64_t inside = trpi_system_in_behaviour(arg) ? 1 : 0;

    UNIT_TRUE(in->err == TRP_OK && in->value == NULL && in->count == 0);
    UNIT_EQUAL(trp_future_await(trp_promise_future(out), 1000),
               inside ? TRP_ESTATE : TRP_ETIMEDOUT);
    return trp_promise_succeed(out, &trp_i64_type, &inside, sizeof inside);
}

static _Atomic bool hold_is_over;

static trp_err
map_hold(void *arg, const trp_outcome *in, trp_promise *out)
{
    int64_t nothing = 0;

    (void)arg;
    (void)in;
    stage_hold("held", &hold_is_over);
    return trp_promise_succeed(out, &trp_i64_type, &nothing, sizeof nothing);
}

/* FUT-1, FUT-2, FUT-3 */
static void
a_function_runs_on_the_dispatcher_that_is_named_and_must_not_wait_there(void)
{
    trp_dispatcher_options pool = TRP_DISPATCHER_OPTIONS_INIT;
    trp_system_options one = TRP_SYSTEM_OPTIONS_INIT;
    trp_future *f, *held;

    one.workers = 1;
    stage = stage_open_with(one);
    UNIT_EQUAL(trp_future_run(stage, NULL, where_am_i, stage, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 1);
    UNIT_EQUAL(trp_future_run(stage, "calling-thread", add_one, NULL, NULL, &f), TRP_OK);
    UNIT_TRUE(trp_future_outcome(f) != NULL); /* it ran here */
    trp_future_unref(f);
    UNIT_EQUAL(trp_future_run(stage, "nowhere", add_one, NULL, NULL, &f), TRP_ENOENT);
    pool.kind = TRP_DISPATCHER_POOL; /* and on a pool: while the only worker is held */
    pool.threads_min = pool.threads_max = 1;
    UNIT_EQUAL(trp_dispatcher_register(stage, "pool", &pool), TRP_OK);
    atomic_store(&hold_is_over, false);
    UNIT_EQUAL(trp_future_run(stage, NULL, map_hold, NULL, NULL, &held), TRP_OK);
    UNIT_WAIT(stage_has("held"), 60000);
    UNIT_EQUAL(trp_future_run(stage, "pool", add_one, NULL, NULL, &f), TRP_OK);
    UNIT_EQUAL(result_of(f, TRP_OK), 1);
    UNIT_TRUE(trp_future_outcome(held) == NULL);
    atomic_store(&hold_is_over, true);
    (void)result_of(held, TRP_OK);
    stage_close(stage);
}

/* ---- asks and pipes -------------------------------------------------------------------------- */

static trp_err
answer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "seven")) {
        int64_t seven = 7;

        trp_reply(ctx, &trp_i64_type, &seven, sizeof seven);
    } else if (stage_said(msg, "silence")) {
        stage_note("silent");
    } else if (stage_said(msg, "refuse")) {
        trp_reply_failure(ctx, TRP_EPERM, "not for you");
    } else if (trp_msg_is(msg, &trp_i64_type)) {
        stage_note("got%lld", (long long)number_of(msg));
    } else if (trp_msg_is(msg, &trp_status_failure_type)) {
        const trp_status_failure *failure = trp_msg_payload(msg);

        stage_note("%s(%s)", trp_err_name((trp_err)failure->err), failure->reason);
    }
    return TRP_OK;
}
static const trp_behaviour answerer = TRP_BEHAVIOUR_INIT("answerer", int, answer_receive);

static trp_future *
text_ask(trp_ref to, const char *text, uint32_t timeout_ms)
{
    trp_future *f = NULL;

    UNIT_REQUIRE(trp_future_ask(stage, to, &trp_string_type, text, strlen(text), timeout_ms, &f) ==
                 TRP_OK);
    return f;
}

/* MSG-4, FUT-6 */
static void
an_ask_is_a_future_of_the_reply_the_refusal_the_silence_or_the_death(void)
{
    trp_ref to, none = TRP_REF_NONE;
    trp_future *f;

    stage = stage_open();
    to = stage_spawn(stage, &answerer, "answerer");
    UNIT_EQUAL(result_of(text_ask(to, "seven", 60000), TRP_OK), 7);
    f = text_ask(to, "refuse", 60000);
    UNIT_EQUAL(trp_future_await(f, 60000), TRP_OK);
    UNIT_EQUAL(trp_future_outcome(f)->err, TRP_EPERM);
    UNIT_TEXT(trp_future_outcome(f)->reason, "not for you");
    trp_future_unref(f);
    (void)result_of(text_ask(to, "silence", 30), TRP_ETIMEDOUT);
    UNIT_EQUAL(trp_system_graceful_stop(stage, to, 60000), TRP_OK);
    (void)result_of(text_ask(to, "seven", 600000), TRP_ENOENT); /* at once, not after ten minutes */
    (void)result_of(text_ask(none, "seven", 600000), TRP_ENOENT);
    UNIT_EQUAL(trp_future_ask(stage, to, &trp_string_type, "x", 1, 0, &f), TRP_EINVAL);
    stage_close(stage);
}

/* MSG-5 */
static void
a_pipe_tells_an_actor_the_value_or_the_failure(void)
{
    trp_ref to, none = TRP_REF_NONE;
    trp_future *f = NULL, *empty = NULL;

    stage = stage_open();
    to = stage_spawn(stage, &answerer, "answerer");
    f = text_ask(to, "seven", 60000);
    UNIT_EQUAL(trp_future_pipe(f, to, none), TRP_OK);
    STAGE_EXPECT("got7");
    trp_future_unref(f);
    f = future_broken(TRP_EIO);
    UNIT_EQUAL(trp_future_pipe(f, to, none), TRP_OK);
    STAGE_EXPECT("got7 TRP_EIO(broken)");
    trp_future_unref(f);
    UNIT_EQUAL(trp_future_sequence(stage, NULL, 0, &empty), TRP_OK);
    UNIT_EQUAL(trp_future_pipe(empty, to, none), TRP_OK);
    STAGE_EXPECT("got7 TRP_EIO(broken) TRP_ENOENT(a success without a value)");
    trp_future_unref(empty);
    stage_close(stage);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* FUT-7: after, and the idiom of a timeout */
static void
after_completes_when_its_time_has_come_and_makes_a_timeout_with_first_completed(void)
{
    static trp_err late = TRP_ETIMEDOUT;
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit;
    trp_system *system;
    trp_future *race[2], *first, *soon;
    trp_promise *slow;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    system = trp_testkit_system(kit);
    slow = promise_of(system);
    race[0] = trp_promise_future(slow);
    UNIT_EQUAL(trp_future_after(system, 200, map_refuse, &late, NULL, &race[1]), TRP_OK);
    UNIT_EQUAL(trp_future_after(system, 100, add_one, NULL, NULL, &soon), TRP_OK);
    UNIT_EQUAL(trp_future_first_completed(system, race, 2, &first), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 99), TRP_OK);
    UNIT_TRUE(trp_future_outcome(soon) == NULL);
    UNIT_EQUAL(trp_testkit_advance(kit, 2), TRP_OK);
    UNIT_REQUIRE(trp_future_outcome(soon) != NULL);
    UNIT_EQUAL(number_of(trp_future_outcome(soon)->value), 1);
    UNIT_TRUE(trp_future_outcome(first) == NULL);
    UNIT_EQUAL(trp_testkit_advance(kit, 100), TRP_OK);
    UNIT_REQUIRE(trp_future_outcome(first) != NULL);
    UNIT_EQUAL(trp_future_outcome(first)->err, TRP_ETIMEDOUT);
    trp_promise_unref(slow);
    trp_future_unref(race[1]);
    trp_future_unref(first);
    trp_future_unref(soon);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* FUT-2: no waiter is left waiting */
static void
a_promise_that_is_given_up_fails_its_future(void)
{
    trp_promise *promise;
    trp_future *f;

    stage = stage_open();
    promise = promise_of(stage);
    f = trp_future_ref(trp_promise_future(promise));
    (void)trp_promise_ref(promise);
    trp_promise_unref(promise);
    UNIT_TRUE(trp_future_outcome(f) == NULL);
    trp_promise_unref(promise);
    UNIT_REQUIRE(trp_future_outcome(f) != NULL);
    UNIT_EQUAL(trp_future_outcome(f)->err, TRP_ECANCELED);
    trp_future_unref(f);
    stage_close(stage);
}

static void
never_execute(void *arg, trp_dispatcher_job *job)
{
    (void)arg;
    (void)job;
}

/* EXT-03: future-F2, future-F3 */
static void
a_system_that_ends_fails_what_is_open_and_forgets_no_callback(void)
{
    trp_system_options one = TRP_SYSTEM_OPTIONS_INIT;
    trp_promise *open;
    trp_future *asked, *timer, *kept;
    trp_ref to;

    one.workers = 1;
    stage = stage_open_with(one);
    to = stage_spawn(stage, &answerer, "silent");
    open = promise_of(stage);
    kept = future_ready(5);
    asked = text_ask(to, "silence", 600000);
    UNIT_EQUAL(trp_future_on_complete(asked, note_outcome, "asked", count_release), TRP_OK);
    UNIT_EQUAL(trp_future_after(stage, 600000, add_one, NULL, count_release, &timer), TRP_OK);
    UNIT_EQUAL(trp_future_on_complete(timer, note_outcome, "timer", NULL), TRP_OK);
    atomic_store(&released, 0);
    UNIT_WAIT(stage_has("silent"), 5000); /* left in the mailbox, it would be a dead letter */
    stage_close(stage);
    UNIT_EQUAL(trp_future_outcome(asked)->err, TRP_ECLOSED);
    UNIT_EQUAL(trp_future_outcome(timer)->err, TRP_ECLOSED);
    UNIT_TRUE(stage_has("asked:TRP_ECLOSED"));
    UNIT_TRUE(stage_has("timer:TRP_ECLOSED"));
    UNIT_EQUAL(atomic_load(&released), 2);
    /* futures outlive their system: what is registered now runs here */
    UNIT_EQUAL(trp_future_on_complete(kept, note_outcome, "kept", NULL), TRP_OK);
    UNIT_TRUE(stage_has("kept:TRP_OK:5"));
    UNIT_EQUAL(trp_future_await(trp_promise_future(open), 10), TRP_ECLOSED);
    promise_keep(open, 1);
    UNIT_EQUAL(trp_future_await(trp_promise_future(open), 10), TRP_OK);
    trp_promise_unref(open);
    trp_future_unref(kept);
    trp_future_unref(asked);
    trp_future_unref(timer);
}

/* FUT-5: future-F2: callbacks that wait in a queue when the threads end */
static void
callbacks_that_no_thread_came_to_run_when_the_system_is_freed(void)
{
    trp_dispatcher_options idle = TRP_DISPATCHER_OPTIONS_INIT;
    trp_promise *promise;

    idle.kind = TRP_DISPATCHER_CUSTOM;
    idle.execute = never_execute;
    stage = stage_open();
    UNIT_EQUAL(trp_dispatcher_register(stage, "never", &idle), TRP_OK);
    UNIT_REQUIRE(trp_promise_new(stage, "never", &promise) == TRP_OK);
    told_late = stage_spawn(stage, &answerer, "late");
    for (int i = 0; i < 1000; i++) {
        UNIT_EQUAL(trp_future_on_complete(trp_promise_future(promise), note_outcome, "q", NULL),
                   TRP_OK);
    }
    promise_keep(promise, 2);
    trp_promise_unref(promise);
    stage_close(stage);
    UNIT_EQUAL(stage_count("q:TRP_OK:2"), 1000);
    told_late = (trp_ref)TRP_REF_NONE;
}

static uint64_t
stale_letters(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.dead_letters[TRP_DEAD_STALE];
}

static trp_ref customer;
static void
late_word(void *arg, const trp_outcome *outcome)
{
    trp_system *system = arg;
    uint64_t before = stale_letters(system);
    trp_future *again = NULL;
    trp_ref ref;

    UNIT_EQUAL(outcome->err, TRP_ECLOSED);
    trp_system_tell(system, customer, &trp_string_type, "too late", 8);
    UNIT_EQUAL(stale_letters(system), before + 1);
    UNIT_EQUAL(trp_future_ask(system, customer, &trp_string_type, "x", 1, 1000, &again),
               TRP_ECLOSED);
    UNIT_EQUAL(trp_system_spawn(system, &answerer, NULL, &ref), TRP_ECLOSED);
    stage_note("told");
}

static trp_err
late_step(void *arg, const trp_outcome *in, trp_future **ret_next)
{
    int64_t number = 9;

    (void)in;
    return trp_future_succeeded(arg, &trp_i64_type, &number, sizeof number, ret_next);
}

/* FUT-5: future-F2: a callback may tell, ask and make futures while its system is freed; what it
 * tells is a dead letter, and is logged as one where that is on. */
static void
what_a_callback_tells_while_its_system_is_freed_is_a_dead_letter(void)
{
    for (int logged = 0; logged < 2; logged++) {
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_log_options logging = TRP_LOG_OPTIONS_INIT;
        trp_future *asked, *caught, *next;

        logging.stdout_level = TRP_LOG_INFO; /* the loggers have ended then */
        options.logging = &logging;
        options.log_dead_letters = logged != 0 ? TRP_FOREVER : TRP_OFF;
        stage = stage_open_with(options);
        customer = stage_spawn(stage, &answerer, "customer");
        asked = text_ask(customer, "silence", 60000);
        UNIT_EQUAL(trp_future_on_complete(asked, late_word, stage, NULL), TRP_OK);
        UNIT_EQUAL(trp_future_recover_with(asked, late_step, stage, NULL, &caught), TRP_OK);
        UNIT_EQUAL(trp_future_on_complete(caught, note_outcome, "caught", NULL), TRP_OK);
        UNIT_EQUAL(trp_future_flat_map(caught, late_step, stage, NULL, &next), TRP_OK);
        UNIT_WAIT(stage_has("silent"), 60000); /* left in the mailbox, it would be a dead letter */
        stage_close(stage);
        UNIT_EQUAL(stage_count("told"), 1);
        UNIT_TRUE(stage_has("caught:TRP_OK:9"));
        UNIT_EQUAL(trp_future_outcome(next)->err, TRP_OK);
        UNIT_EQUAL(stage_book_has(&stage_lines, "dead letter of type troupe.string"), logged != 0);
        trp_future_unref(asked);
        trp_future_unref(caught);
        trp_future_unref(next);
    }
}

static trp_err
count_down(void *arg, const trp_outcome *in, trp_future **ret_next)
{
    int64_t left = number_of(in->value);
    trp_future *next = NULL;
    trp_err err;

    if (left == 0) {
        return trp_future_succeeded(arg, &trp_i64_type, &left, sizeof left, ret_next);
    }
    left--;
    err = trp_future_succeeded(arg, &trp_i64_type, &left, sizeof left, &next);
    if (err == TRP_OK) {
        err = trp_future_flat_map(next, count_down, arg, NULL, ret_next);
        trp_future_unref(next);
    }
    return err;
}

/* future-F2: a loop of flat-maps settles a hundred thousand promises at once, on a flat stack */
static void
a_long_chain_of_futures_does_not_grow_the_stack(void)
{
    trp_future *start, *end;

    stage = stage_open();
    start = future_ready(100000);
    UNIT_EQUAL(trp_future_flat_map(start, count_down, stage, NULL, &end), TRP_OK);
    UNIT_EQUAL(result_of(end, TRP_OK), 0);
    trp_future_unref(start);
    stage_close(stage);
}

static void *
keeper_thread(void *arg)
{
    int64_t mine = 1;

    (void)trp_promise_succeed(arg, &trp_i64_type, &mine, sizeof mine);
    trp_promise_unref(arg);
    return NULL;
}

/* FUT-2, FUT-5; meant for the thread sanitizer */
static void
threads_that_race_to_keep_a_promise_leave_one_outcome(void)
{
    stage = stage_open();
    for (int round = 0; round < 200; round++) {
        trp_promise *promise = promise_of(stage);
        trp_future *f = trp_future_ref(trp_promise_future(promise));
        pthread_t threads[3];

        stage_clear(&stage_events);
        for (int i = 0; i < 3; i++) {
            UNIT_REQUIRE(
                pthread_create(&threads[i], NULL, keeper_thread, trp_promise_ref(promise)) == 0);
        }
        trp_promise_unref(promise);
        UNIT_EQUAL(trp_future_on_complete(f, note_outcome, "once", NULL), TRP_OK);
        UNIT_EQUAL(result_of(f, TRP_OK), 1);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
        }
        UNIT_WAIT(stage_is("once:TRP_OK:1"), 5000);
    }
    stage_close(stage);
}

static int64_t plain[64]; /* no atomics: the future is what orders them */

static void *
writer_thread(void *arg)
{
    int64_t done = 1;

    for (int i = 0; i < 64; i++) {
        plain[i]++;
    }
    (void)trp_promise_succeed(arg, &trp_i64_type, &done, sizeof done);
    trp_promise_unref(arg);
    return NULL;
}

static trp_err
sum_up(void *arg, const trp_outcome *in, trp_promise *out)
{
    int64_t sum = 0;

    (void)arg;
    (void)in;
    for (int i = 0; i < 64; i++) {
        sum += plain[i];
    }
    return trp_promise_succeed(out, &trp_i64_type, &sum, sizeof sum);
}

/* MEM-3; meant for the thread sanitizer */
static void
what_was_written_before_the_outcome_is_seen_by_callbacks_and_by_who_waits(void)
{
    stage = stage_open();
    for (int round = 1; round <= 100; round++) {
        trp_promise *promise = promise_of(stage);
        trp_future *sum;
        pthread_t thread;

        UNIT_EQUAL(trp_future_map(trp_promise_future(promise), sum_up, NULL, NULL, &sum), TRP_OK);
        UNIT_REQUIRE(pthread_create(&thread, NULL, writer_thread, promise) == 0);
        UNIT_EQUAL(result_of(sum, TRP_OK), (int64_t)round * 64);
        plain[0]++; /* the waiter may write now: the callback has read */
        plain[0]--;
        pthread_join(thread, NULL);
    }
    stage_close(stage);
}

/* FUT-2: a promise is kept with a message, which it takes only then, and by another future */
static void
a_promise_takes_a_message_or_follows_a_future(void)
{
    trp_promise *first, *second, *third;
    trp_msg *msg, *late;
    void *payload;

    stage = stage_open();
    first = promise_of(stage);
    second = promise_of(stage);
    third = promise_of(stage);
    UNIT_EQUAL(trp_promise_follow(second, trp_promise_future(first)), TRP_OK);
    UNIT_EQUAL(trp_promise_follow(NULL, trp_promise_future(first)), TRP_EINVAL);
    UNIT_EQUAL(trp_promise_follow(second, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new(&trp_i64_type, 8, &msg, &payload), TRP_OK);
    memcpy(payload, &(int64_t){ 42 }, 8);
    UNIT_EQUAL(trp_msg_dup(msg, &late), TRP_OK);
    UNIT_EQUAL(trp_promise_succeed_msg(first, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_promise_succeed_msg(first, msg), TRP_OK);
    UNIT_EQUAL(trp_promise_succeed_msg(first, late), TRP_EEXIST); /* still ours */
    UNIT_EQUAL(number_of(late), 42);
    trp_msg_free(late);
    UNIT_EQUAL(result_of(trp_future_ref(trp_promise_future(second)), TRP_OK), 42);
    trp_promise_unref(first);
    first = promise_of(stage);
    UNIT_EQUAL(trp_promise_follow(third, trp_promise_future(first)), TRP_OK);
    UNIT_EQUAL(trp_promise_fail(first, TRP_EIO, "no"), TRP_OK);
    (void)result_of(trp_future_ref(trp_promise_future(third)), TRP_EIO);
    trp_promise_unref(first);
    trp_promise_unref(second);
    trp_promise_unref(third);
    stage_close(stage);
}

UNIT_BEGIN("future")
UNIT(a_promise_is_kept_once_and_callbacks_run_whenever_they_were_registered)
UNIT(a_promise_takes_a_message_or_follows_a_future)
UNIT(combinators_pass_successes_and_failures_as_they_say)
UNIT(and_then_runs_in_order_and_keeps_the_outcome)
UNIT(a_function_runs_on_the_dispatcher_that_is_named_and_must_not_wait_there)
UNIT(an_ask_is_a_future_of_the_reply_the_refusal_the_silence_or_the_death)
UNIT(a_pipe_tells_an_actor_the_value_or_the_failure)
UNIT(after_completes_when_its_time_has_come_and_makes_a_timeout_with_first_completed)
UNIT(a_promise_that_is_given_up_fails_its_future)
UNIT(a_system_that_ends_fails_what_is_open_and_forgets_no_callback)
UNIT(callbacks_that_no_thread_came_to_run_when_the_system_is_freed)
UNIT(what_a_callback_tells_while_its_system_is_freed_is_a_dead_letter)
UNIT(a_long_chain_of_futures_does_not_grow_the_stack)
UNIT(what_was_written_before_the_outcome_is_seen_by_callbacks_and_by_who_waits)
UNIT(threads_that_race_to_keep_a_promise_leave_one_outcome)
UNIT_END
