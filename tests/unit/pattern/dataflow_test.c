/* dataflow_test.c - flows: waiting without a thread, composition, failures, limits, the end. */
#include <troupe/dataflow.h>

#include "pattern/coroutine.h"
#include "pattern/pattern.h"
#include "tests/unit/actor/stage.h"

enum { LONG_MS = 120000 };

static trp_promise *
promise_open(trp_system *system)
{
    trp_promise *promise = NULL;
    UNIT_REQUIRE(trp_promise_new(system, NULL, &promise) == TRP_OK);
    return promise;
}

static trp_err
promise_keep(trp_promise *promise, int64_t number)
{
    return trp_promise_succeed(promise, &trp_i64_type, &number, sizeof number);
}

/* Wait for the outcome from outside; takes the future. */
static int64_t
settled(trp_future *future, trp_err want)
{
    const trp_msg *value = NULL;
    int64_t number = INT64_MIN;
    UNIT_EQUAL(trp_future_result(future, LONG_MS, &value), want);
    if (value != NULL && trp_msg_is(value, &trp_i64_type)) {
        number = *(const int64_t *)trp_msg_payload(value);
    }
    trp_future_unref(future);
    return number;
}

static trp_flows_info
info_of(trp_system *system)
{
    trp_flows_info info = { .size = sizeof info };
    UNIT_EQUAL(trp_flows_get_info(system, &info), TRP_OK);
    return info;
}

static trp_future *
flow_open(trp_system *system, trp_flow_fn fn, void *arg)
{
    trp_future *future = NULL;
    UNIT_REQUIRE(trp_flow_start(system, fn, arg, NULL, NULL, &future) == TRP_OK);
    return future;
}

/* ---- waiting --------------------------------------------------------------------------------- */

typedef struct pair {
    trp_promise *x, *y;
    _Atomic int reached;
} pair;

static trp_err
read_number(trp_flow *flow, trp_promise *promise, int64_t *ret_number)
{
    return trp_flow_read(flow, trp_promise_future(promise), &trp_i64_type, ret_number);
}

static trp_err
add_pair(trp_flow *flow, void *arg, trp_promise *out)
{
    pair *p = arg;
    int64_t x = 0, y = 0;
    atomic_store(&p->reached, 1);
    trp_err err = read_number(flow, p->x, &x);
    atomic_store(&p->reached, 2);
    err = err != TRP_OK ? err : read_number(flow, p->y, &y);
    atomic_store(&p->reached, 3);
    return err != TRP_OK ? err : promise_keep(out, x + y);
}

/* DATAFLOW-1 */
static void
it_waits_where_it_reads_and_a_value_is_written_once(void)
{
    trp_system *system = stage_open();
    pair p = { promise_open(system), promise_open(system), 0 };
    trp_future *total = flow_open(system, add_pair, &p);
    UNIT_WAIT(info_of(system).waiting == 1, LONG_MS);
    UNIT_EQUAL(atomic_load(&p.reached), 1);
    UNIT_EQUAL(promise_keep(p.x, 40), TRP_OK);
    UNIT_WAIT(atomic_load(&p.reached) == 2 && info_of(system).waiting == 1, LONG_MS);
    UNIT_TRUE(trp_future_outcome(total) == NULL);
    UNIT_EQUAL(promise_keep(p.x, 41), TRP_EEXIST); /* the first write stands */
    UNIT_EQUAL(promise_keep(p.y, 2), TRP_OK);
    UNIT_EQUAL(settled(total, TRP_OK), 42);
    UNIT_WAIT(info_of(system).live == 0, LONG_MS);
    trp_promise_unref(p.x);
    trp_promise_unref(p.y);
    stage_close(system);
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, &trp_i64_type, trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour echo = { .size = sizeof(trp_behaviour),
                                    .name = "echo",
                                    .receive = echo_receive };

/* DATAFLOW-1: two workers; far more flows wait, and an actor answers meanwhile. */
static void
a_flow_that_waits_holds_no_thread(void)
{
    enum { MANY = 500, IDLE = 64 };
    static trp_future *totals[MANY];
    trp_system *system = stage_open_config("flows { idle-stacks = 64 }");
    pair p = { promise_open(system), promise_open(system), 0 };
    trp_ref actor = stage_spawn(system, &echo, "echo");
    trp_future *answer = NULL;
    for (int i = 0; i < MANY; i++) {
        totals[i] = flow_open(system, add_pair, &p);
    }
    UNIT_WAIT(info_of(system).waiting == MANY, LONG_MS);
    UNIT_EQUAL(trp_future_ask(system, actor, &trp_i64_type, &(int64_t){ 7 }, 8, LONG_MS, &answer),
               TRP_OK);
    UNIT_EQUAL(settled(answer, TRP_OK), 7);
    UNIT_EQUAL(promise_keep(p.x, 1), TRP_OK);
    UNIT_EQUAL(promise_keep(p.y, 2), TRP_OK);
    for (int i = 0; i < MANY; i++) {
        UNIT_EQUAL(settled(totals[i], TRP_OK), 3);
    }
    UNIT_WAIT(info_of(system).live == 0, LONG_MS);
    UNIT_EQUAL(info_of(system).idle_stacks, IDLE); /* the others are gone */
    UNIT_EQUAL(info_of(system).started, MANY);
    UNIT_EQUAL(info_of(system).failed, 0);
    trp_promise_unref(p.x);
    trp_promise_unref(p.y);
    stage_close(system);
}

static trp_err
ask_three_times(trp_flow *flow, void *arg, trp_promise *out)
{
    const trp_ref *actor = arg;
    int64_t sum = 0;
    for (int64_t i = 1; i <= 3; i++) {
        int64_t reply = 0;
        trp_err err =
            trp_flow_ask(flow, *actor, &trp_i64_type, &i, sizeof i, LONG_MS, &trp_i64_type, &reply);
        if (err != TRP_OK) {
            return err;
        }
        sum = sum * 10 + reply;
    }
    return promise_keep(out, sum);
}

static trp_err
ask_nobody(trp_flow *flow, void *arg, trp_promise *out)
{
    int64_t reply;
    (void)out;
    return trp_flow_ask(flow, *(const trp_ref *)arg, &trp_i64_type, &(int64_t){ 1 }, 8, LONG_MS,
                        &trp_i64_type, &reply);
}

static void
asks_are_written_in_sequence(void)
{
    trp_system *system = stage_open();
    trp_ref actor = stage_spawn(system, &echo, "echo"), nobody = TRP_REF_NONE;
    UNIT_EQUAL(settled(flow_open(system, ask_three_times, &actor), TRP_OK), 123);
    settled(flow_open(system, ask_nobody, &nobody), TRP_ENOENT);
    stage_close(system);
}

/* ---- composition ----------------------------------------------------------------------------- */

typedef struct fib {
    int64_t n;
} fib;

static void
fib_free(void *arg)
{
    trpi_free(arg);
}

static trp_err
fib_flow(trp_flow *flow, void *arg, trp_promise *out)
{
    const fib *f = arg;
    int64_t sum = 0;
    trp_err err = TRP_OK;
    if (f->n < 2) {
        return promise_keep(out, f->n);
    }
    for (int64_t back = 1; back <= 2 && err == TRP_OK; back++) {
        trp_future *part = NULL;
        fib *smaller = trpi_alloc(sizeof *smaller);
        int64_t value = 0;
        smaller->n = f->n - back;
        err = trp_flow_start(trp_flow_system(flow), fib_flow, smaller, fib_free, NULL, &part);
        UNIT_EQUAL(err, TRP_OK);
        err = trp_flow_read(flow, part, &trp_i64_type, &value);
        trp_future_unref(part);
        sum += value;
    }
    return err != TRP_OK ? err : promise_keep(out, sum);
}

/* DATAFLOW-3: a flow is a future, and reads those of flows that it starts. */
static void
flows_are_made_of_flows(void)
{
    trp_system *system = stage_open();
    fib f = { 11 };
    UNIT_EQUAL(settled(flow_open(system, fib_flow, &f), TRP_OK), 89);
    UNIT_WAIT(info_of(system).live == 0, LONG_MS);
    stage_close(system);
}

static trp_err
keep_nothing(trp_flow *flow, void *arg, trp_promise *out)
{
    (void)flow;
    (void)arg;
    (void)out;
    return TRP_OK;
}

static trp_err
keep_then_fail(trp_flow *flow, void *arg, trp_promise *out)
{
    (void)flow;
    (void)arg;
    UNIT_EQUAL(promise_keep(out, 5), TRP_OK);
    return TRP_EIO;
}

static void
what_it_kept_is_the_outcome(void)
{
    trp_system *system = stage_open();
    trp_future *future = flow_open(system, keep_nothing, NULL);
    UNIT_EQUAL(trp_future_await(future, LONG_MS), TRP_OK);
    UNIT_EQUAL(trp_future_outcome(future)->err, TRP_OK);
    UNIT_EQUAL(trp_future_outcome(future)->count, 0);
    trp_future_unref(future);
    UNIT_EQUAL(settled(flow_open(system, keep_then_fail, NULL), TRP_OK), 5); /* a value stands */
    UNIT_WAIT(info_of(system).failed == 1, LONG_MS);
    stage_close(system);
}

/* ---- failures -------------------------------------------------------------------------------- */

__attribute__((noinline)) static void
fail_at_depth(trp_flow *flow, volatile int depth)
{
    if (depth == 0) {
        trp_flow_fail(flow, TRP_EDATA, "row %d is bad", 17);
    }
    if (depth > 0) {
        fail_at_depth(flow, depth - 1);
    }
    depth = 0;
}

static void
note_release(void *arg)
{
    stage_note("%s", (const char *)arg);
}

static trp_err
fail_deep(trp_flow *flow, void *arg, trp_promise *out)
{
    (void)arg;
    (void)out;
    UNIT_EQUAL(trp_flow_defer(flow, note_release, "first"), TRP_OK);
    UNIT_EQUAL(trp_flow_sleep(flow, 1), TRP_OK);
    UNIT_EQUAL(trp_flow_defer(flow, note_release, "second"), TRP_OK);
    fail_at_depth(flow, 20);
    stage_note("not reached");
    return TRP_OK;
}

static trp_err
read_it(trp_flow *flow, void *arg, trp_promise *out)
{
    int64_t value;
    (void)out;
    return trp_flow_read(flow, arg, &trp_i64_type, &value);
}

/* DATAFLOW-2, -3: errors are outcomes, and go from flow to flow. */
static void
a_failure_is_its_outcome_and_that_of_its_readers(void)
{
    trp_system *system = stage_open();
    trp_future *failing = NULL, *reader;
    UNIT_REQUIRE(trp_flow_start(system, fail_deep, "arg", note_release, NULL, &failing) == TRP_OK);
    reader = flow_open(system, read_it, failing);
    settled(reader, TRP_EDATA);
    UNIT_EQUAL(trp_future_outcome(failing)->err, TRP_EDATA);
    UNIT_TEXT(trp_future_outcome(failing)->reason, "row 17 is bad");
    trp_future_unref(failing);
    UNIT_TRUE(stage_is("second first arg"));
    UNIT_WAIT(info_of(system).failed == 2, LONG_MS);
    UNIT_REQUIRE(trp_flow_start(system, fail_deep, "arg", NULL, NULL, NULL) == TRP_OK);
    STAGE_LOGGED("a flow failed name=flow reason=row 17 is bad err=TRP_EDATA");
    stage_close(system);
}

typedef struct forgetful {
    trp_promise *never;
    trp_err wait_err;
} forgetful;

static trp_err
wait_for_never(trp_flow *flow, void *arg, trp_promise *out)
{
    forgetful *f = arg;
    (void)out;
    f->wait_err = trp_flow_wait(flow, trp_promise_future(f->never));
    return f->wait_err;
}

static trp_err
sleep_long(trp_flow *flow, void *arg, trp_promise *out)
{
    forgetful *f = arg;
    (void)out;
    f->wait_err = trp_flow_sleep(flow, 3600000);
    UNIT_EQUAL(trp_flow_sleep(flow, 1), f->wait_err); /* no more time, or no more system */
    return f->wait_err;
}

static void
a_flow_has_a_time_limit(void)
{
    trp_system *system = stage_open();
    forgetful f = { promise_open(system), TRP_OK };
    trp_flow_options options = TRP_FLOW_OPTIONS_INIT;
    trp_flow_fn flows[] = { wait_for_never, sleep_long };
    options.timeout_ms = 20;
    for (int i = 0; i < 2; i++) {
        trp_future *future = NULL;
        UNIT_REQUIRE(trp_flow_start(system, flows[i], &f, NULL, &options, &future) == TRP_OK);
        settled(future, TRP_ETIMEDOUT);
        UNIT_EQUAL(f.wait_err, TRP_ETIMEDOUT);
    }
    trp_promise_unref(f.never); /* its wait is over; its callback still hangs there */
    stage_close(system);
}

/* A promise that nobody keeps fails its readers: no flow waits for it for ever. */
static void
a_promise_that_is_given_up_ends_the_wait(void)
{
    trp_system *system = stage_open();
    forgetful f = { promise_open(system), TRP_EIO };
    trp_future *never = trp_future_ref(trp_promise_future(f.never));
    trp_future *flow = flow_open(system, wait_for_never, &f);
    UNIT_WAIT(info_of(system).waiting == 1, LONG_MS);
    trp_promise_unref(f.never);
    UNIT_EQUAL(trp_future_await(flow, LONG_MS), TRP_OK);
    UNIT_EQUAL(f.wait_err, TRP_OK);
    UNIT_EQUAL(trp_future_outcome(never)->err, TRP_ECANCELED);
    trp_future_unref(flow);
    trp_future_unref(never);
    stage_close(system);
}

/* ---- the end of the system ------------------------------------------------------------------- */

static void
the_end_of_the_system_ends_its_waits(void)
{
    trp_system *system = stage_open();
    forgetful waits = { promise_open(system), TRP_OK }, sleeps = { NULL, TRP_OK };
    trp_future *waiting = flow_open(system, wait_for_never, &waits);
    trp_future *sleeping = flow_open(system, sleep_long, &sleeps);
    UNIT_WAIT(info_of(system).waiting == 2, LONG_MS);
    stage_close(system);
    UNIT_EQUAL(waits.wait_err, TRP_ECLOSED);
    UNIT_EQUAL(sleeps.wait_err, TRP_ECLOSED);
    UNIT_EQUAL(trp_future_outcome(waiting)->err, TRP_ECLOSED);
    UNIT_EQUAL(trp_future_outcome(sleeping)->err, TRP_ECLOSED);
    trp_future_unref(waiting);
    trp_future_unref(sleeping);
    trp_promise_unref(
        waits.never); /* outlives the system, with a callback of a wait that is over */
}

static _Atomic int finished;
static trp_err
sleep_and_count(trp_flow *flow, void *arg, trp_promise *out)
{
    (void)arg;
    (void)out;
    for (int i = 0; i < 3 && trp_flow_sleep(flow, 0) == TRP_OK; i++) {
    }
    atomic_fetch_add(&finished, 1);
    return TRP_OK;
}

/* The function of each flow returns, whatever it was about when the system ended. */
static void
no_flow_is_forgotten_when_the_system_ends(void)
{
    for (int round = 0; round < 20; round++) {
        trp_system *system = stage_open();
        int started = 0;
        atomic_store(&finished, 0);
        for (int i = 0; i < 100; i++) {
            started += trp_flow_start(system, sleep_and_count, NULL, NULL, NULL, NULL) == TRP_OK;
        }
        stage_close(system);
        UNIT_EQUAL(started, 100);
        UNIT_EQUAL(atomic_load(&finished), 100);
    }
}

/* ---- misuse and limits ----------------------------------------------------------------------- */

static trp_flow *_Atomic escaped;
static trp_err
misuse_inside(trp_flow *flow, void *arg, trp_promise *out)
{
    pair *p = arg;
    int64_t number;
    char text[8];
    const trp_msg *value;
    trp_future *kept = trp_promise_future(p->x);
    UNIT_EQUAL(trp_flow_wait(flow, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_result(flow, kept, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_result(flow, trp_promise_future(p->y), &value), TRP_ENOENT);
    UNIT_EQUAL(trp_flow_read(flow, kept, &trp_string_type, text), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_read(flow, kept, NULL, &number), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_read(flow, kept, &trp_i64_type, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_read(flow, kept, &trp_kill_type, &number), TRP_EDATA);
    UNIT_EQUAL(trp_flow_defer(flow, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(
        trp_flow_ask(flow, (trp_ref)TRP_REF_NONE, &trp_i64_type, &number, 8, 10, NULL, &number),
        TRP_EINVAL);
    UNIT_EQUAL(trp_future_await(trp_promise_future(out), 10), TRP_ESTATE); /* blocks a thread */
    atomic_store(&escaped, flow);
    return trp_flow_sleep(flow, 3600000);
}

static void
misuse_is_an_error(void)
{
    trp_system *system = stage_open();
    pair p = { promise_open(system), promise_open(system), 0 };
    trp_flow_options options = TRP_FLOW_OPTIONS_INIT;
    trp_flows_info info = { .size = 1 };
    trp_future *empty, *future;
    char name[TRP_FLOW_NAME_BYTES_MAX + 2];
    UNIT_EQUAL(promise_keep(p.x, 1), TRP_OK);
    UNIT_EQUAL(trp_future_after(system, 0, NULL, NULL, NULL, &empty), TRP_EINVAL);
    empty = flow_open(system, keep_nothing, NULL);
    UNIT_EQUAL(trp_promise_follow(p.y, empty), TRP_OK); /* a success without a value */
    UNIT_EQUAL(trp_future_await(trp_promise_future(p.y), LONG_MS), TRP_OK);
    trp_future_unref(empty);
    future = flow_open(system, misuse_inside, &p);
    UNIT_WAIT(atomic_load(&escaped) != NULL && info_of(system).waiting == 1, LONG_MS);
    UNIT_EQUAL(trp_flow_wait(escaped, trp_promise_future(p.x)), TRP_ESTATE);
    UNIT_EQUAL(trp_flow_sleep(escaped, 0), TRP_ESTATE);
    UNIT_EQUAL(trp_flow_defer(escaped, note_release, NULL), TRP_ESTATE);
    UNIT_EQUAL(trp_flow_sleep(NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_start(NULL, keep_nothing, NULL, NULL, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_flow_start(system, NULL, NULL, NULL, NULL, NULL), TRP_EINVAL);
    options.dispatcher = "nowhere";
    UNIT_EQUAL(trp_flow_start(system, keep_nothing, NULL, NULL, &options, NULL), TRP_ENOENT);
    options.dispatcher = NULL;
    memset(name, 'n', sizeof name);
    name[TRP_FLOW_NAME_BYTES_MAX + 1] = 0;
    options.name = name;
    UNIT_EQUAL(trp_flow_start(system, keep_nothing, NULL, NULL, &options, NULL), TRP_EINVAL);
    name[TRP_FLOW_NAME_BYTES_MAX] = 0; /* the limit */
    UNIT_EQUAL(trp_flow_start(system, keep_nothing, NULL, NULL, &options, NULL), TRP_OK);
    UNIT_EQUAL(trp_flows_get_info(system, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_flows_get_info(system, &info), TRP_EINVAL);
    stage_close(system);
    trp_future_unref(future);
    trp_promise_unref(p.x);
    trp_promise_unref(p.y);
}

/* flows.max, flows.idle-stacks */
static void
flows_and_idle_stacks_have_limits(void)
{
    trp_system *system = stage_open_config("flows {\nmax = 3\nidle-stacks = 2\n}");
    trp_promise *never = promise_open(system);
    forgetful f[3] = { { never, TRP_OK }, { never, TRP_OK }, { never, TRP_OK } };
    trp_future *waiting[3];
    for (int i = 0; i < 3; i++) {
        waiting[i] = flow_open(system, wait_for_never, &f[i]);
    }
    UNIT_EQUAL(trp_flow_start(system, keep_nothing, NULL, NULL, NULL, NULL), TRP_ELIMIT);
    UNIT_EQUAL(promise_keep(never, 0), TRP_OK);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_future_await(waiting[i], LONG_MS), TRP_OK);
        trp_future_unref(waiting[i]);
    }
    UNIT_EQUAL(info_of(system).live, 0);
    UNIT_EQUAL(info_of(system).live_max, 3);
    UNIT_EQUAL(info_of(system).idle_stacks, 2);
    settled(flow_open(system, keep_nothing, NULL), TRP_ENOENT);
    UNIT_EQUAL(info_of(system).idle_stacks, 2); /* taken and given back */
    trp_promise_unref(never);
    stage_close(system);
}

/* Touch all of so many bytes of the stack. */
__attribute__((noinline)) static int
touch(size_t bytes)
{
    volatile char page[1024];
    page[0] = 1;
    return bytes <= sizeof page + 512 ? page[0] : page[0] + touch(bytes - sizeof page - 512);
}

static trp_err
use_stack(trp_flow *flow, void *arg, trp_promise *out)
{
    int touched = touch(*(const size_t *)arg);
    trp_err err = trp_flow_sleep(flow, 0);
    return err != TRP_OK ? err : promise_keep(out, touched > 0);
}

/* flows.stack-size: an eighth of it is touched; values at the limits are taken, one past refused */
static void
stacks_have_the_size_that_was_configured(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = { { "flows { stack-size = 32KiB }", TRP_FLOW_STACK_BYTES_MIN },
                 { "flows { stack-size = 1MiB }", 1 << 20 },
                 { "flows { stack-size = 64MiB }", TRP_FLOW_STACK_BYTES_MAX } };
    static const char *const refused[] = { "flows { stack-size = 32767 }",
                                           "flows { stack-size = 67108865 }", "flows { max = 0 }",
                                           "flows { max = 1000001 }" };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_system *system = stage_open_config(rows[i].text);
        size_t use = rows[i].bytes / 8;
        UNIT_EQUAL(info_of(system).stack_bytes, rows[i].bytes);
        UNIT_EQUAL(settled(flow_open(system, use_stack, &use), TRP_OK), 1);
        stage_close(system);
    }
    stage_close(stage_open_config("flows { max = 1000000 }"));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        trp_config *config = NULL;
        trp_config_error error = { "" };
        UNIT_EQUAL(trp_config_parse_text("t.conf", refused[i], &config, &error), TRP_ECONFIG);
    }
}

static void
without_memory_it_is_refused_or_runs(void)
{
    trp_system *system = stage_open();
    pair p = { promise_open(system), promise_open(system), 0 };
    trp_err err = TRP_ENOMEM;
    trp_future *future = NULL;
    UNIT_EQUAL(promise_keep(p.x, 1), TRP_OK);
    UNIT_EQUAL(promise_keep(p.y, 2), TRP_OK);
    (void)info_of(system); /* the extension is there */
    for (long n = 0; err == TRP_ENOMEM && n < 100; n++) {
        trpi_alloc_fail_here_after(n);
        err = trp_flow_start(system, add_pair, &p, NULL, NULL, &future);
        trpi_alloc_fail_here_after(-1);
        UNIT_TRUE(err == TRP_OK || err == TRP_ENOMEM);
        UNIT_TRUE(n > 3 || err == TRP_ENOMEM);
    }
    UNIT_EQUAL(settled(future, TRP_OK), 3);
    UNIT_WAIT(info_of(system).live == 0, LONG_MS);
    UNIT_EQUAL(info_of(system).started, 1);
    trp_promise_unref(p.x);
    trp_promise_unref(p.y);
    stage_close(system);
}

UNIT_BEGIN("dataflow")
UNIT(it_waits_where_it_reads_and_a_value_is_written_once)
UNIT(a_flow_that_waits_holds_no_thread)
UNIT(asks_are_written_in_sequence)
UNIT(flows_are_made_of_flows)
UNIT(what_it_kept_is_the_outcome)
UNIT(a_failure_is_its_outcome_and_that_of_its_readers)
UNIT(a_flow_has_a_time_limit)
UNIT(a_promise_that_is_given_up_ends_the_wait)
UNIT(the_end_of_the_system_ends_its_waits)
UNIT(no_flow_is_forgotten_when_the_system_ends)
UNIT(misuse_is_an_error)
UNIT(flows_and_idle_stacks_have_limits)
UNIT(stacks_have_the_size_that_was_configured)
UNIT(without_memory_it_is_refused_or_runs)
UNIT_END
