/* ask_test.c - one reply, from threads and from actors; timeouts, late replies, dead refs,
 * graceful stop. */
#include "tests/unit/actor/stage.h"

#include <troupe/future.h>
#include <troupe/router.h>

static trp_ref server_ref;
static _Atomic bool may_answer, is_waiting;

static trp_err
server_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *kept = state;

    if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
        trp_reply_text(ctx, "pong again"); /* too late: a dead letter */
    } else if (stage_said(msg, "refuse")) {
        trp_reply_failure(ctx, TRP_EPERM, "not for you");
    } else if (stage_said(msg, "missing")) {
        trp_reply_failure(ctx, TRP_ENOENT, "no such account");
    } else if (stage_said(msg, "what")) {
        return TRP_EUNHANDLED;
    } else if (stage_said(msg, "keep")) {
        *kept = trp_sender(ctx);
    } else if (stage_said(msg, "late")) {
        trp_tell_text(ctx, *kept, "late");
        trp_reply_text(ctx, "done");
    } else if (stage_said(msg, "stop")) {
        trp_stop(ctx, trp_self(ctx));
    } else if (stage_said(msg, "wait")) {
        atomic_store(&is_waiting, true);
        while (!atomic_load(&may_answer)) {
            unit_pause();
        }
    }
    return TRP_OK;
}
static void
server_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    /* a test that does not wait for the hook does not see its note */
    for (int i = 0; i < 20; i++) {
        unit_pause();
    }
    stage_note("server-");
}
static const trp_behaviour server = { .size = sizeof(trp_behaviour),
                                      .name = "server",
                                      .version = 1,
                                      .state_bytes = sizeof(trp_ref),
                                      .receive = server_receive,
                                      .post_stop = server_post_stop };

static trp_err
client_done(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)state;
    if (reply != NULL && trp_msg_is(reply, &trp_string_type)) {
        stage_note("%s=%s(%.*s)", (const char *)arg, trp_err_name(err), (int)trp_msg_bytes(reply),
                   (const char *)trp_msg_payload(reply));
        UNIT_TRUE(trp_ref_equal(trp_sender(ctx), server_ref));
    } else {
        stage_note("%s=%s(%s)", (const char *)arg, trp_err_name(err),
                   reply == NULL ? "null" : "msg");
    }
    return strcmp(arg, "fatal") == 0 ? TRP_EIO : TRP_OK;
}

static trp_err
client_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const char *const verbs[] = { "ping",  "refuse",  "keep", "stop",
                                         "fatal", "missing", "what" };
    const trp_type *text = &trp_string_type;

    (void)state;
    if (stage_said(msg, "fail")) {
        UNIT_EQUAL(trp_ask(ctx, server_ref, text, "keep", 4, 10000, client_done, "lost"), TRP_OK);
        return TRP_EIO;
    }
    if (stage_said(msg, "graceful")) {
        UNIT_EQUAL(trp_graceful_stop(ctx, server_ref, 60000, client_done, "graceful"), TRP_OK);
    } else if (stage_said(msg, "impatient")) {
        UNIT_EQUAL(trp_graceful_stop(ctx, server_ref, 20, client_done, "impatient"), TRP_OK);
    } else if (stage_said(msg, "nobody")) {
        UNIT_EQUAL(trp_ask(ctx, (trp_ref)TRP_REF_NONE, text, "x", 1, 60000, client_done, "nobody"),
                   TRP_OK);
    } else if (stage_said(msg, "bad")) {
        UNIT_EQUAL(trp_ask(ctx, server_ref, text, "x", 1, 0, client_done, "bad"), TRP_EINVAL);
        UNIT_EQUAL(trp_ask(ctx, server_ref, text, "x", 1, 100, NULL, "bad"), TRP_EINVAL);
        UNIT_EQUAL(trp_resolve(ctx, "/user/a*", 100, client_done, "bad"), TRP_EINVAL);
        UNIT_EQUAL(trp_resolve(ctx, "troupe.tcp://far@127.0.0.1:1/user", 100, client_done, "bad"),
                   TRP_ESTATE);
        stage_note("bad");
    } else if (stage_said(msg, "resolve")) {
        UNIT_EQUAL(trp_resolve(ctx, "/user/server", 60000, client_done, "found"), TRP_OK);
        UNIT_EQUAL(trp_resolve(ctx, "../server", 60000, client_done, "relative"), TRP_OK);
        UNIT_EQUAL(trp_resolve(ctx, "/user/none", 60000, client_done, "none"), TRP_OK);
    } else if (stage_said(msg, "block")) { /* no call blocks in a behaviour */
        trp_msg *reply;
        trp_ref ref;
        trp_system *system = trp_ctx_system(ctx);

        UNIT_EQUAL(trp_system_ask(system, server_ref, text, "ping", 4, 1000, &reply), TRP_ESTATE);
        UNIT_EQUAL(trp_system_resolve(system, "/user", 1000, &ref), TRP_ESTATE);
        UNIT_EQUAL(trp_system_graceful_stop(system, server_ref, 1000), TRP_ESTATE);
        UNIT_EQUAL(trp_system_stop(system, 1000), TRP_ESTATE);
        UNIT_EQUAL(trp_system_await(system, 1000), TRP_ESTATE);
        stage_note("refused");
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (stage_said(msg, verbs[i])) {
            const char *what = i == 4 ? "ping" : verbs[i];

            UNIT_EQUAL(trp_ask(ctx, server_ref, text, what, strlen(what), i == 2 ? 30 : 60000,
                               client_done, (void *)(uintptr_t)verbs[i]),
                       TRP_OK);
        }
    }
    return TRP_OK;
}
static const trp_behaviour client = {
    .size = sizeof(trp_behaviour), .name = "client", .version = 1, .receive = client_receive
};

static char answer[64];
static trp_ref client_ref;

static trp_system *
open_ask(void)
{
    trp_system *system = stage_open();

    atomic_store(&may_answer, false);
    atomic_store(&is_waiting, false);
    server_ref = stage_spawn(system, &server, "server");
    client_ref = stage_spawn(system, &client, "client");
    return system;
}

static uint64_t
stale_letters(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.dead_letters[TRP_DEAD_STALE] + stats.dead_letters[TRP_DEAD_STOPPED];
}

/* MSG-4 */
static void
a_thread_gets_the_first_reply_and_later_ones_are_dead_letters(void)
{
    trp_system *system = open_ask();

    UNIT_EQUAL(stage_ask(system, server_ref, "ping", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "pong");
    UNIT_WAIT(stale_letters(system) == 1, 5000);
    stage_close(system);
}

/* MSG-4, HEADLINE-3 */
static void
an_actor_gets_the_first_reply_in_its_continuation(void)
{
    trp_system *system = open_ask();

    stage_tell(system, client_ref, "ping");
    STAGE_EXPECT("ping=TRP_OK(pong)");
    UNIT_WAIT(stale_letters(system) == 1, 5000);
    stage_close(system);
}

/* MSG-4: Status.Failure */
static void
a_status_failure_fails_the_ask(void)
{
    trp_system *system = open_ask();

    UNIT_EQUAL(stage_ask(system, server_ref, "refuse", answer, sizeof answer), TRP_EPERM);
    stage_tell(system, client_ref, "refuse");
    STAGE_EXPECT("refuse=TRP_EPERM(msg)");
    stage_close(system);
}

/* MSG-4: times out; a late reply is a dead letter */
static void
an_ask_that_nobody_answers_times_out(void)
{
    trp_system *system = open_ask();
    trp_msg *reply;
    uint64_t start = unit_now_ms();

    UNIT_EQUAL(trp_system_ask(system, server_ref, &trp_string_type, "keep", 4, 40, &reply),
               TRP_ETIMEDOUT);
    UNIT_TRUE(unit_now_ms() - start >= 39);
    UNIT_EQUAL(stage_ask(system, server_ref, "late", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stale_letters(system) == 1, 5000);
    stage_tell(system, client_ref, "keep");
    STAGE_EXPECT("keep=TRP_ETIMEDOUT(null)");
    UNIT_EQUAL(stage_ask(system, server_ref, "late", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stale_letters(system) == 2, 5000);
    stage_close(system);
}

/* MSG-4, header: TRP_ENOENT */
static void
an_ask_to_a_dead_ref_ends_at_once(void)
{
    trp_system *system = open_ask();
    uint64_t start;

    UNIT_EQUAL(trp_system_graceful_stop(system, server_ref, 60000), TRP_OK);
    start = unit_now_ms();
    UNIT_EQUAL(stage_ask(system, server_ref, "ping", answer, sizeof answer), TRP_ENOENT);
    stage_tell(system, client_ref, "ping");
    STAGE_EXPECT("server- ping=TRP_ENOENT(null)");
    stage_tell(system, client_ref, "nobody");
    STAGE_EXPECT("server- ping=TRP_ENOENT(null) nobody=TRP_ENOENT(null)");
    UNIT_TRUE(unit_now_ms() - start < 50000); /* each would wait for a minute */
    stage_close(system);
}

/* An ask that is left in the mailbox of a stopped actor ends too. */
static void
an_ask_ends_when_the_asked_stops_before_it_answers(void)
{
    trp_system *system = open_ask();
    trp_ref kid = server_ref;

    stage_tell(system, kid, "wait");
    stage_tell(system, kid, "stop");
    stage_tell(system, client_ref, "ping");
    for (int i = 0; i < 10; i++) {
        unit_pause();
    }
    atomic_store(&may_answer, true);
    STAGE_EXPECT("server- ping=TRP_ENOENT(null)");
    stage_close(system);
}

/* LIFE-14, MEM-5 */
static void
graceful_stop_returns_after_post_stop(void)
{
    trp_system *system = open_ask();

    UNIT_EQUAL(trp_system_graceful_stop(system, server_ref, 60000), TRP_OK);
    UNIT_TRUE(stage_is("server-"));
    UNIT_EQUAL(trp_system_graceful_stop(system, server_ref, 60000), TRP_OK); /* it has ended */
    stage_close(system);
}

/* LIFE-14 */
static void
graceful_stop_of_an_actor_runs_its_continuation(void)
{
    trp_system *system = open_ask();

    stage_tell(system, client_ref, "graceful");
    STAGE_EXPECT("server- graceful=TRP_OK(null)");
    stage_close(system);
}

/* LIFE-14: failure */
/* ask-P5: the thread sees the end of an actor on another dispatcher */
static void
graceful_stop_returns_while_the_default_dispatcher_is_blocked(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options elsewhere = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.workers = 1;
    elsewhere.dispatcher = "pinned";
    trp_system *system = stage_open_with(options);

    atomic_store(&is_waiting, false);
    atomic_store(&may_answer, false);
    stage_tell(system, stage_spawn(system, &server, "blocker"), "wait");
    UNIT_WAIT(atomic_load(&is_waiting), 60000);
    UNIT_EQUAL(trp_system_spawn(system, &server, &elsewhere, &ref), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, ref, 60000), TRP_OK);
    STAGE_EXPECT("server-");
    atomic_store(&may_answer, true);
    stage_close(system);
}

/* LIFE-14 */
static void
graceful_stop_times_out_when_the_actor_does_not_end(void)
{
    trp_system *system = open_ask();

    stage_tell(system, server_ref, "wait");
    UNIT_WAIT(atomic_load(&is_waiting), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, server_ref, 30), TRP_ETIMEDOUT);
    stage_tell(system, client_ref, "impatient");
    STAGE_EXPECT("impatient=TRP_ETIMEDOUT(null)");
    atomic_store(&may_answer, true);
    STAGE_EXPECT("impatient=TRP_ETIMEDOUT(null) server-");
    stage_close(system);
}

/* The continuation belongs to the instance that asked; its failure is the actor's. */
static void
continuations_end_with_the_instance_and_may_fail_it(void)
{
    trp_system *system = open_ask();

    stage_tell(system, client_ref, "fail");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/client: failed"), 5000);
    UNIT_EQUAL(stage_ask(system, server_ref, "late", answer, sizeof answer), TRP_OK);
    stage_tell(system, client_ref, "fatal");
    STAGE_EXPECT("fatal=TRP_OK(pong)");
    stage_tell(system, client_ref, "ping");
    STAGE_EXPECT("fatal=TRP_OK(pong) ping=TRP_OK(pong)");
    stage_close(system);
}

static void
bad_arguments_are_refused(void)
{
    trp_system *system = open_ask();
    trp_msg *reply;
    trp_ref ref;

    stage_tell(system, client_ref, "bad");
    STAGE_EXPECT("bad");
    UNIT_EQUAL(trp_system_ask(system, (trp_ref)TRP_REF_NONE, &trp_string_type, "", 0, 9000, &reply),
               TRP_ENOENT);
    UNIT_EQUAL(trp_system_ask(system, server_ref, NULL, "", 0, 10, &reply), TRP_EINVAL);
    UNIT_EQUAL(trp_system_resolve(system, "user", 60000, &ref), TRP_OK); /* relative to the root */
    UNIT_EQUAL(trp_system_resolve(system, "/user/*", 10, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_resolve(system, "//", 10, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_ask_path(system, "/user/none", &trp_string_type, "", 0, 60000, &reply),
               TRP_ENOENT);
    stage_close(system);
}

/* SYS-25, SYS-26, MSC-04 */
static void
a_path_is_resolved_or_known_to_name_nobody(void)
{
    trp_system *system = open_ask();
    trp_msg *reply;
    trp_ref ref;

    UNIT_EQUAL(trp_system_resolve(system, "/user/server", 60000, &ref), TRP_OK);
    UNIT_TRUE(trp_ref_equal(ref, server_ref));
    UNIT_EQUAL(trp_system_resolve(system, "troupe://stage/user/server", 60000, &ref), TRP_OK);
    UNIT_TRUE(trp_ref_equal(ref, server_ref));
    UNIT_EQUAL(trp_system_resolve(system, "/user/none", 60000, &ref), TRP_ENOENT);
    UNIT_EQUAL(
        trp_system_ask_path(system, "/user/server", &trp_string_type, "ping", 4, 60000, &reply),
        TRP_OK);
    trp_msg_free(reply);
    stage_tell(system, client_ref, "resolve");
    UNIT_WAIT(stage_has("found=TRP_OK(msg)") && stage_has("relative=TRP_OK(msg)") &&
                  stage_has("none=TRP_ENOENT(null)"),
              5000);
    stage_tell(system, server_ref, "wait"); /* it is there, and does not say so in time */
    UNIT_WAIT(atomic_load(&is_waiting), 60000);
    uint64_t start = unit_now_ms();
    UNIT_EQUAL(trp_system_resolve(system, "/user/server", 40, &ref), TRP_ETIMEDOUT);
    UNIT_TRUE(unit_now_ms() - start >= 39);
    atomic_store(&may_answer, true);
    UNIT_EQUAL(trp_system_resolve(system, "/user/server", 60000, &ref), TRP_OK);
    stage_close(system);
}

static void *
ask_in_vain(void *arg)
{
    static trp_err err;
    trp_msg *reply = NULL;
    err = trp_system_ask(arg, server_ref, &trp_string_type, "wait", 4, 3600000, &reply);
    return &err;
}

/* SYS-25, ask-P6 */
static void
a_thread_that_asks_ends_with_its_system(void)
{
    trp_system *system = open_ask();
    pthread_t thread;
    void *result = NULL;
    atomic_store(&is_waiting, false);
    atomic_store(&may_answer, false);
    UNIT_REQUIRE(pthread_create(&thread, NULL, ask_in_vain, system) == 0);
    UNIT_WAIT(atomic_load(&is_waiting), 60000);
    atomic_store(&may_answer, true); /* it returns, and has not answered */
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    UNIT_EQUAL(pthread_join(thread, &result), 0);
    UNIT_EQUAL(*(trp_err *)result, TRP_ECLOSED);
    stage_close(system);
}

static bool
three_looks(void *arg)
{
    int *looks = arg;
    return ++*looks < 3;
}

/* ask-P6 */
static void
an_answer_that_is_no_longer_wanted_is_not_waited_for(void)
{
    trp_system *system = open_ask();
    int looks = 0;
    const trpi_patience patience = { 3600000, three_looks, &looks };
    trp_msg *reply = NULL;
    trp_ref ref;
    UNIT_EQUAL(trpi_system_ask_whole(system, server_ref, &trp_string_type, "keep", 4, NULL,
                                     &patience, &reply),
               TRP_ECANCELED);
    UNIT_EQUAL(looks, 3);
    UNIT_TRUE(reply == NULL);
    atomic_store(&is_waiting, false);
    atomic_store(&may_answer, false);
    stage_tell(system, server_ref, "wait");
    UNIT_WAIT(atomic_load(&is_waiting), 60000);
    looks = 0;
    UNIT_EQUAL(trpi_system_resolve_whole(system, "/user/server", &patience, &ref), TRP_ECANCELED);
    UNIT_EQUAL(looks, 3);
    atomic_store(&may_answer, true);
    UNIT_EQUAL(trpi_system_resolve_whole(system, "/user/server",
                                         &(trpi_patience){ .timeout_ms = 60000 }, &ref),
               TRP_OK);
    stage_close(system);
}

/* ---- another node, whose answer comes from the test ------------------------------------------ */

static _Atomic uint32_t selects;
static trp_ref select_sender; /* of the last */

static void
far_select(void *arg, trp_system *system, const trpi_address *address, const char *path,
           trp_ref sender, const trp_msg *msg)
{
    (void)arg;
    (void)system;
    UNIT_TEXT(address->host, "192.0.2.1");
    UNIT_TEXT(path, "/user/x");
    UNIT_TRUE(trp_msg_type(msg) == &trp_identify_type);
    UNIT_TRUE(atomic_load(&selects) == 0 || trp_ref_equal(sender, select_sender));
    select_sender = sender;
    atomic_fetch_add(&selects, 1);
}
static const trpi_remote_ops far_ops = { stage_lost_connect, stage_lost_signal, far_select };

static void *
resolve_far(void *arg)
{
    static trp_ref ref;
    trp_err err = trp_system_resolve(arg, "troupe.tcp://far@192.0.2.1:2552/user/x", 60000, &ref);

    UNIT_EQUAL(err, TRP_OK);
    return &ref;
}

/* SYS-26: the first question is lost with its connection */
static void
a_path_elsewhere_is_asked_for_again(void)
{
    trp_system *system = open_ask();
    trp_actor_identity identity = { 1, server_ref };
    pthread_t thread;
    void *found = NULL;
    trp_ctx *ctx;

    atomic_store(&selects, 0);
    UNIT_EQUAL(trpi_system_remote_set(system, &far_ops, NULL), TRP_OK);
    UNIT_REQUIRE(pthread_create(&thread, NULL, resolve_far, system) == 0);
    UNIT_WAIT(atomic_load(&selects) >= 2, 5000);
    ctx = trpi_inbound_begin(system);
    trpi_inbound_tell(ctx, select_sender.slot, select_sender.generation, (trp_ref)TRP_REF_NONE,
                      &trp_actor_identity_type, &identity, sizeof identity);
    trpi_inbound_end(ctx);
    UNIT_REQUIRE(pthread_join(thread, &found) == 0);
    UNIT_TRUE(trp_ref_equal(*(trp_ref *)found, server_ref));
    stage_close(system);
}

/* UJ-49: a behaviour never blocks */
static void
calls_that_block_are_refused_inside_a_behaviour(void)
{
    trp_system *system = open_ask();

    stage_tell(system, client_ref, "block");
    STAGE_EXPECT("refused");
    stage_close(system);
}

static const trp_protocol *const nothing[] = { NULL };
static const trp_behaviour deaf = { .size = sizeof(trp_behaviour),
                                    .name = "deaf",
                                    .version = 1,
                                    .state_bytes = sizeof(trp_ref),
                                    .receive = server_receive,
                                    .accepts = nothing };

static trp_err
asked(trp_system *system, trp_ref ref, const char *text)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(system, ref, &trp_string_type, text, strlen(text), 60000, &reply);

    trp_msg_free(reply);
    return err;
}

/* MSG-15, MSG-4: not at its timeout: from a thread, an actor and a future, also through a router,
 * by the actor's answer or by its list of accepted types. Of several routees one may handle an
 * ask. */
static void
an_ask_that_nobody_handles_fails_at_once(void)
{
    trp_system *system = stage_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref actor, router, both[2];
    trp_future *future = NULL;

    server_ref = stage_spawn(system, &server, "server");
    actor = stage_spawn(system, &client, "client");
    UNIT_EQUAL(asked(system, server_ref, "what"), TRP_EUNHANDLED);
    both[0] = stage_spawn(system, &deaf, "deaf");
    both[1] = server_ref;
    UNIT_EQUAL(asked(system, both[0], "ping"), TRP_EUNHANDLED);
    stage_tell(system, actor, "what");
    UNIT_WAIT(stage_has("what=TRP_EUNHANDLED(null)"), 60000);
    UNIT_EQUAL(trp_future_ask(system, both[0], &trp_string_type, "ping", 4, 600000, &future),
               TRP_OK);
    UNIT_EQUAL(trp_future_await(future, 60000), TRP_OK);
    UNIT_EQUAL(trp_future_outcome(future)->err, TRP_EUNHANDLED);
    trp_future_unref(future);
    options.routees = both;
    options.routees_count = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "one", &options, &router), TRP_OK);
    UNIT_EQUAL(asked(system, router, "ping"), TRP_EUNHANDLED);
    options.routees_count = 2;
    options.logic = "broadcast";
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "two", &options, &router), TRP_OK);
    UNIT_EQUAL(asked(system, router, "ping"), TRP_OK);
    stage_close(system);
}

/* MSG-4: TRP_ENOENT as the answer of a live actor is not taken for a missing actor. */
static void
a_failure_is_given_with_its_reason_whatever_the_error(void)
{
    trp_system *system = stage_open();
    trp_msg *reply = NULL;
    trp_ref actor;

    server_ref = stage_spawn(system, &server, "server");
    actor = stage_spawn(system, &client, "client");
    UNIT_EQUAL(trpi_system_ask_whole(system, server_ref, &trp_string_type, "missing", 7, NULL,
                                     &(trpi_patience){ .timeout_ms = 60000 }, &reply),
               TRP_ENOENT);
    UNIT_REQUIRE(reply != NULL && trp_msg_is(reply, &trp_status_failure_type));
    UNIT_TEXT(((const trp_status_failure *)trp_msg_payload(reply))->reason, "no such account");
    trp_msg_free(reply);
    stage_tell(system, actor, "missing");
    UNIT_WAIT(stage_has("missing=TRP_ENOENT(msg)"), 60000);
    stage_close(system);
}

UNIT_BEGIN("ask")
UNIT(a_thread_gets_the_first_reply_and_later_ones_are_dead_letters)
UNIT(an_actor_gets_the_first_reply_in_its_continuation)
UNIT(a_status_failure_fails_the_ask)
UNIT(an_ask_that_nobody_answers_times_out)
UNIT(an_ask_that_nobody_handles_fails_at_once)
UNIT(a_failure_is_given_with_its_reason_whatever_the_error)
UNIT(an_ask_to_a_dead_ref_ends_at_once)
UNIT(an_ask_ends_when_the_asked_stops_before_it_answers)
UNIT(graceful_stop_returns_after_post_stop)
UNIT(graceful_stop_of_an_actor_runs_its_continuation)
UNIT(graceful_stop_returns_while_the_default_dispatcher_is_blocked)
UNIT(graceful_stop_times_out_when_the_actor_does_not_end)
UNIT(continuations_end_with_the_instance_and_may_fail_it)
UNIT(bad_arguments_are_refused)
UNIT(a_path_is_resolved_or_known_to_name_nobody)
UNIT(a_thread_that_asks_ends_with_its_system)
UNIT(an_answer_that_is_no_longer_wanted_is_not_waited_for)
UNIT(a_path_elsewhere_is_asked_for_again)
UNIT(calls_that_block_are_refused_inside_a_behaviour)
UNIT_END
