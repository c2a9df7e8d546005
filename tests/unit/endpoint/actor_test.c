/* actor_test.c - an actor as an endpoint, messages to an endpoint by its URI, and what the
 * configuration says of endpoints. */
#include "tests/unit/endpoint/keeper.h"

static keeper k, echo;
static _Atomic uint32_t answers;
static char told_uri[512];

/* An actor that knows of messages of endpoints, and answers them as their text says. */
static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    char text[16] = "";
    (void)state;
    if (m == NULL) {
        return TRP_EUNHANDLED;
    }
    (void)trp_bytes_copy_out(m->body, 0, text, sizeof text - 1);
    stage_note("echo:%s(%s,%d)", text, trp_endpoint_header_get(m, "file.name"), m->exchange != 0);
    if (strcmp(text, "fail") == 0) {
        trp_endpoint_fail(ctx, trp_sender(ctx), m->exchange, "it says so");
    } else if (strcmp(text, "ack") == 0) {
        trp_endpoint_ack(ctx, trp_sender(ctx), m->exchange);
    } else if (strcmp(text, "word") == 0) {
        UNIT_EQUAL(trp_endpoint_reply(ctx, trp_sender(ctx), m->exchange, m->body, m->headers,
                                      m->headers_count),
                   TRP_OK);
        trp_endpoint_ack(ctx, trp_sender(ctx), m->exchange); /* scheme-actor-A1 */
    }
    return TRP_OK;
}

static const trp_behaviour echo_behaviour = {
    .size = sizeof(trp_behaviour), .name = "echo", .version = 1, .receive = echo_receive
};

static void
echo_start(trp_system *system)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    options.name = "echo";
    UNIT_REQUIRE(trp_system_spawn(system, &echo_behaviour, &options, &echo.self) == TRP_OK);
}

static void
send_words(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "word", "n", 1);
    keeper_send(ctx, of, "fail", "n", 2);
    keeper_send(ctx, of, "ack", "n", 3);
    keeper_send(ctx, of, "none", "n", 4);
}

/* CAM-09: with a reply, and without; the message is as one that was consumed. */
static void
an_actor_is_an_endpoint(void)
{
    trp_system *system = stage_open();
    echo_start(system);
    keeper_init(&k, "a", true);
    snprintf(k.uri, sizeof k.uri, "actor:/user/echo?reply=1");
    k.options.timeout_ms = 2000;
    keeper_start(system, &k);
    keeper_do(system, &k, send_words);
    UNIT_WAIT(stage_has("a:got(n,word,1)") && stage_has("a:error(2,TRP_EFAILED)") &&
                  stage_has("a:done(3)") && stage_has("a:error(4,TRP_ETIMEDOUT)"),
              60000);
    UNIT_TRUE(stage_has("echo:word(n,1)"));
    UNIT_WAIT(atomic_load(&k.got) + atomic_load(&k.errors) + atomic_load(&k.done) == 4, 60000);
    stage_close(system);

    system = stage_open();
    echo_start(system);
    keeper_init(&k, "a", true);
    snprintf(k.uri, sizeof k.uri, "actor:/user/echo");
    keeper_start(system, &k);
    keeper_do(system, &k, send_words);
    UNIT_WAIT(atomic_load(&k.done) == 4 && stage_has("echo:none(n,0)"), 60000);
    stage_close(system);
}

/* CAM-09: a path where nobody is. */
static void
an_actor_that_is_not_there_is_an_error(void)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    trp_system *system = stage_open();
    keeper_init(&k, "a", true);
    snprintf(k.uri, sizeof k.uri, "actor:/user/nobody?reply=1");
    keeper_start(system, &k);
    keeper_do(system, &k, send_words);
    UNIT_WAIT(stage_count("TRP_ENOENT") == 4, 60000);
    stage_close(system);
    UNIT_EQUAL(trp_endpoint_check("actor:user/x", 1, reason), TRP_EINVAL);
    UNIT_EQUAL(trp_endpoint_check("actor:/user/*", 1, reason), TRP_EINVAL);
    UNIT_EQUAL(trp_endpoint_check("actor:/user/x?parallel=4097", 1, reason), TRP_EINVAL);
    UNIT_EQUAL(trp_endpoint_check("actor:/user/x?parallel=4096&reply=1", 1, reason), TRP_OK);
    UNIT_EQUAL(trp_endpoint_check("actor:/user/x", 0, reason), TRP_EUNSUPPORTED);
}

/* producer-P1: all in one turn, so that two wait for the only slot. */
static void
messages_that_wait_for_a_slot_are_answered(void)
{
    static const char *const paths[] = { "/user/echo?parallel=1",
                                         "/user/nobody?parallel=1&reply=1" };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        trp_system *system = stage_open();
        echo_start(system);
        keeper_init(&k, "a", true);
        snprintf(k.uri, sizeof k.uri, "actor:%s", paths[i]);
        keeper_start(system, &k);
        keeper_do(system, &k, send_words);
        UNIT_WAIT(atomic_load(i == 0 ? &k.done : &k.errors) == 4, 60000);
        stage_close(system);
    }
}

/* producer-P1: with one thread the message is in the mailbox before the start is tried. */
static void
send_started(trp_ctx *ctx, keeper *of)
{
    UNIT_EQUAL(trp_producer_open(ctx, "exec:/bin/nothing-is-there", &of->options, &of->endpoint),
               TRP_OK);
    keeper_send(ctx, of, "x", NULL, 1);
}

static void
what_waits_for_a_start_that_fails_is_an_error(void)
{
    trp_system_options one = TRP_SYSTEM_OPTIONS_INIT;
    one.workers = 1;
    trp_system *system = stage_open_with(one);
    keeper_init(&k, "x", false);
    snprintf(k.uri, sizeof k.uri, "timer:none?delay=1000000");
    k.options.dispatcher = "default";
    keeper_start(system, &k);
    keeper_do(system, &k, send_started);
    STAGE_EXPECT("x:TRP_OK x:error(1,TRP_ECLOSED) x:stopped(TRP_ENOENT)");
    stage_close(system);
}

static _Atomic int32_t sent;

/* Again, as long as it seems to live. */
static void
send_until_it_has_ended(trp_ctx *ctx, keeper *of)
{
    trp_err err = trp_endpoint_send(ctx, of->endpoint, TRP_BYTES_EMPTY, NULL, 0, 1);
    if (err == TRP_OK) {
        keeper_do(trp_ctx_system(ctx), of, send_until_it_has_ended);
    }
    atomic_store(&sent, err);
}

static void
reply_to_the_ended(trp_ctx *ctx, keeper *of)
{
    atomic_store(&sent, trp_endpoint_reply(ctx, of->endpoint, 1, TRP_BYTES_EMPTY, NULL, 0));
}

/* CAM-05: and what is sent after it has ended is refused. */
static void
a_message_to_an_endpoint_that_has_ended_is_refused(void)
{
    trp_system *system = stage_open();
    atomic_store(&sent, TRP_OK);
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/nothing-is-there");
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("x:stopped(TRP_ENOENT)"), 60000);
    keeper_do(system, &k, send_until_it_has_ended);
    UNIT_WAIT(atomic_load(&sent) == TRP_ENOENT, 60000);
    atomic_store(&sent, TRP_OK);
    keeper_do(system, &k, reply_to_the_ended);
    UNIT_WAIT(atomic_load(&sent) == TRP_ENOENT, 60000);
    stage_close(system);
}

/* ---- by URI ---------------------------------------------------------------------------------- */

static void
send_to(trp_ctx *ctx, const char *uri, const char *text, uint64_t ack, trp_err expected)
{
    trp_bytes body;
    UNIT_EQUAL(trp_bytes_copy(text, strlen(text), &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_send_to(ctx, uri, body, NULL, 0, ack), expected);
    trp_bytes_unref(&body);
}

static void
send_by_uri(trp_ctx *ctx, keeper *of)
{
    (void)of;
    send_to(ctx, told_uri, "b\na\n", 1, TRP_OK);
    send_to(ctx, told_uri, "d\nc\n", 2, TRP_OK);
    send_to(ctx, "exec:/bin/nothing-is-there", "x", 3, TRP_OK);
    send_to(ctx, "exec:relative", "x", 4, TRP_EINVAL);
    send_to(ctx, "timer:t", "x", 5, TRP_EUNSUPPORTED);
    send_to(ctx, "none:", "x", 6, TRP_EUNSUPPORTED);
}

static trp_err
on_answer(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const trp_endpoint_message *m = reply != NULL ? trp_endpoint_message_of(reply) : NULL;
    char text[16] = "";
    (void)ctx;
    (void)state;
    if (m != NULL) {
        (void)trp_bytes_copy_out(m->body, 0, text, sizeof text - 1);
    }
    stage_note("%s:%s(%s)", (const char *)arg, trp_err_name(err),
               m != NULL                                     ? text
               : reply == NULL                               ? ""
               : trp_msg_is(reply, &trp_endpoint_error_type) ? "error"
                                                             : "other");
    atomic_fetch_add(&answers, 1);
    return TRP_OK;
}

static void
ask_by_uri(trp_ctx *ctx, keeper *of)
{
    static char sorted[] = "sorted", failed[] = "failed", late[] = "late";
    trp_bytes body;
    (void)of;
    UNIT_EQUAL(trp_bytes_copy("b\na\n", 4, &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_ask(ctx, told_uri, body, NULL, 0, 60000, on_answer, sorted), TRP_OK);
    UNIT_EQUAL(trp_endpoint_ask(ctx, "actor:/user/nobody", body, NULL, 0, 60000, on_answer, failed),
               TRP_OK);
    UNIT_EQUAL(
        trp_endpoint_ask(ctx, "exec:/bin/sleep?arg=1000", body, NULL, 0, 50, on_answer, late),
        TRP_OK);
    UNIT_EQUAL(trp_endpoint_ask(ctx, told_uri, body, NULL, 0, 0, on_answer, late), TRP_EINVAL);
    UNIT_EQUAL(trp_endpoint_ask(ctx, told_uri, body, NULL, 0, 1, NULL, late), TRP_EINVAL);
    UNIT_EQUAL(trp_endpoint_ask(ctx, "exec:", body, NULL, 0, 1, on_answer, late), TRP_EINVAL);
    trp_bytes_unref(&body);
}

/* CAM-07: told and asked, without a producer of one's own. */
static void
messages_are_sent_to_a_uri(void)
{
    trp_system *system = stage_open();
    snprintf(told_uri, sizeof told_uri, "exec:/usr/bin/sort");
    atomic_store(&answers, 0);
    keeper_init(&k, "k", false);
    snprintf(k.uri, sizeof k.uri, "timer:none?delay=1000000");
    keeper_start(system, &k);
    keeper_do(system, &k, send_by_uri);
    UNIT_WAIT(stage_has("k:got(0,a\nb\n,1)") && stage_has("k:got(0,c\nd\n,2)"), 60000);
    UNIT_WAIT(stage_has("k:error(3,TRP_ECLOSED)"), 60000); /* endpoint-template-T2 */
    keeper_do(system, &k, ask_by_uri);
    UNIT_WAIT(atomic_load(&answers) == 3, 60000);
    UNIT_TRUE(stage_has("sorted:TRP_OK(a\nb\n)") && stage_has("failed:TRP_OK(error)") &&
              stage_has("late:TRP_ETIMEDOUT()"));
    stage_close(system);
}

/* ---- the configuration ----------------------------------------------------------------------- */

static void
send_lengths(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "12345678", NULL, 8);
    keeper_send(ctx, of, "123456789", NULL, 9);
}

/* CONF-24: what the options leave open; an option comes first. */
static void
the_configuration_has_the_defaults(void)
{
    trp_system *system = stage_open_config("endpoint {\nmessage-bytes-max = 8\ntimeout = 200ms\n"
                                           "pending-max = 1\ndispatcher = default\n}");
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/sleep?arg=1000");
    keeper_start(system, &k);
    keeper_do(system, &k, send_lengths);
    UNIT_WAIT(stage_has("x:error(8,TRP_ETIMEDOUT)") && stage_has("x:error(9,TRP_EMSGSIZE)"), 60000);
    keeper_init(&echo, "t", false);
    snprintf(echo.uri, sizeof echo.uri, "timer:tick?period=1&delay=0&count=2");
    echo.keeps = true;
    keeper_start(system, &echo);
    UNIT_WAIT(atomic_load(&echo.got) == 1, 60000);
    UNIT_EQUAL(atomic_load(&echo.got), 1);
    keeper_let_go(&echo);
    UNIT_WAIT(atomic_load(&echo.got) == 2, 60000);
    keeper_let_go(&echo);
    keeper_init(&k, "y", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/cat");
    k.options.message_bytes_max = 9;
    k.options.timeout_ms = 60000;
    keeper_start(system, &k);
    keeper_do(system, &k, send_lengths);
    UNIT_WAIT(stage_has("y:got(0,12345678,8)"), 60000);
    stage_close(system);
}

static void
send_another(trp_ctx *ctx, keeper *of)
{
    (void)of;
    send_to(ctx, "exec:/bin/cat", "x", 7, TRP_OK);
}

static void
send_first(trp_ctx *ctx, keeper *of)
{
    (void)of;
    send_to(ctx, told_uri, "x", 1, TRP_OK);
}

/* CAM-07, CONF-24: at the limit, one past; endpoint-template-T1: its place is free again. */
static void
endpoints_by_uri_have_a_bound_and_an_end(void)
{
    trp_system *system = stage_open_config("endpoint {\ntimeout = 300ms\ntemplate {\nidle = 400ms\n"
                                           "producers-max = 1\n}\n}");
    snprintf(told_uri, sizeof told_uri, "actor:/user/echo");
    echo_start(system);
    keeper_init(&k, "k", false);
    snprintf(k.uri, sizeof k.uri, "timer:none?delay=1000000");
    k.options.timeout_ms = 60000;
    keeper_start(system, &k);
    uint64_t deadline = unit_deadline_ms(60000);
    do { /* both in one turn of the keeper, unless the machine is very slow */
        uint32_t before = atomic_load(&k.errors) + atomic_load(&k.done);
        keeper_do(system, &k, send_first);
        keeper_do(system, &k, send_another);
        UNIT_WAIT(atomic_load(&k.errors) + atomic_load(&k.done) + atomic_load(&k.got) >= before + 2,
                  60000);
    } while (!(stage_has("k:error(7,TRP_ELIMIT)") && stage_has("k:done(1)")) &&
             unit_now_ms() < deadline);
    UNIT_TRUE(stage_has("k:done(1)") && stage_has("k:error(7,TRP_ELIMIT)"));
    while (!stage_has("k:got(0,x,7)") && unit_now_ms() < deadline) {
        uint32_t before = atomic_load(&k.errors) + atomic_load(&k.got);
        keeper_do(system, &k, send_another);
        UNIT_WAIT(atomic_load(&k.errors) + atomic_load(&k.got) > before, 60000);
        unit_pause();
    }
    UNIT_TRUE(stage_has("k:got(0,x,7)"));
    stage_close(system);
}

UNIT_BEGIN("actor")
UNIT(an_actor_is_an_endpoint)
UNIT(an_actor_that_is_not_there_is_an_error)
UNIT(messages_that_wait_for_a_slot_are_answered)
UNIT(what_waits_for_a_start_that_fails_is_an_error)
UNIT(a_message_to_an_endpoint_that_has_ended_is_refused)
UNIT(messages_are_sent_to_a_uri)
UNIT(the_configuration_has_the_defaults)
UNIT(endpoints_by_uri_have_a_bound_and_an_end)
UNIT_END
