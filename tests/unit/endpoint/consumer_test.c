/* consumer_test.c - what arrives at an endpoint, and how it is acknowledged. */
#include <sys/resource.h>

#include "base/alloc.h"
#include "tests/unit/endpoint/keeper.h"

static keeper k, other;

/* CAM-01, CAM-02, CAM-10: a message each period, as many as were asked for. */
static void
a_timer_tells_its_handler_each_period(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "t", false);
    snprintf(k.uri, sizeof k.uri, "timer:tick?period=5&delay=0&count=3");
    keeper_start(system, &k);
    STAGE_EXPECT("t:TRP_OK t:got(1,,0) t:got(2,,0) t:got(3,,0)");
    stage_close(system);
}

/* consumer-C2: a handler that frees nothing gets no more; what came meanwhile is one tick. */
static void
ticks_without_room_become_one(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "t", false);
    snprintf(k.uri, sizeof k.uri, "timer:tick?period=1&delay=0&count=4");
    k.options.pending_max = 2;
    k.keeps = true;
    keeper_start(system, &k);
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    UNIT_EQUAL(atomic_load(&k.got), 2);
    keeper_let_go(&k);
    UNIT_WAIT(atomic_load(&k.got) == 4, 60000);
    keeper_let_go(&k);
    stage_close(system);
}

static _Atomic uint32_t turns;

static void
turn_count(trp_ctx *ctx, keeper *of)
{
    (void)ctx, (void)of;
    atomic_fetch_add(&turns, 1);
}

/* consumer-C2: its word that a message was freed needs no memory. */
static void
a_message_is_freed_without_memory(void)
{
    trp_system *system = stage_open();
    atomic_store(&turns, 0);
    keeper_init(&k, "t", false);
    snprintf(k.uri, sizeof k.uri, "timer:tick?period=1&delay=0&count=9");
    k.options.pending_max = 1;
    k.keeps = true;
    keeper_start(system, &k);
    for (uint32_t i = 0; i < 8; i++) {
        UNIT_WAIT(atomic_load(&k.got) == i + 1, 60000);
        keeper_do(system, &k, turn_count); /* behind it: the copy is the last one */
        UNIT_WAIT(atomic_load(&turns) == i + 1, 60000);
        trpi_alloc_fail_here_after(i / 2);
        keeper_let_go(&k);
        trpi_alloc_fail_here_after(-1);
    }
    UNIT_WAIT(atomic_load(&k.got) == 9, 60000);
    keeper_let_go(&k);
    stage_close(system);
}

static void
say_reply_to_nothing(trp_ctx *ctx, keeper *of)
{
    trp_endpoint_ack(ctx, of->endpoint, atomic_load(&of->exchange)); /* that is no error */
    UNIT_EQUAL(
        trp_endpoint_reply(ctx, of->endpoint, atomic_load(&of->exchange), TRP_BYTES_EMPTY, NULL, 0),
        TRP_OK);
}

/* CAM-02, CAM-03, CAM-10: without acknowledges a file is done when it is in the mailbox. */
static void
files_are_consumed_and_put_away(void)
{
    trp_system *system = stage_open();
    folder_make();
    folder_put("a.txt", "first");
    folder_put("b.csv", "other");
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?match=*.txt&delay=5", keeper_folder);
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("f:got(a.txt,first,0)") && folder_has(".done/a.txt"), 60000);
    UNIT_FALSE(folder_has("a.txt"));
    folder_put("c.txt", "");
    UNIT_WAIT(stage_has("f:got(c.txt,,0)") && folder_has(".done/c.txt"), 60000);
    UNIT_TRUE(folder_has("b.csv"));
    UNIT_TRUE(folder_is(".done/a.txt", "first"));
    keeper_do(system, &k, say_reply_to_nothing);
    UNIT_WAIT(stage_has("f:error(0,TRP_ESTATE)"), 60000);
    stage_close(system);
    folder_remove();
}

static void
say_done(trp_ctx *ctx, keeper *of)
{
    trp_endpoint_ack(ctx, of->endpoint, atomic_load(&of->exchange));
}

static void
say_failed(trp_ctx *ctx, keeper *of)
{
    trp_endpoint_fail(ctx, of->endpoint, atomic_load(&of->exchange), "not a number");
}

/* CAM-03: until the handler has said so, a file stays; one that failed is kept apart. */
static void
a_handler_acknowledges_or_fails_a_file(void)
{
    trp_system *system = stage_open();
    folder_make();
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5&done=ok&failed=bad", keeper_folder);
    k.options.acknowledges = 1;
    k.options.pending_max = 1;
    keeper_start(system, &k);
    folder_put("a", "1");
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    folder_put("b", "2");
    UNIT_TRUE(folder_has("a"));
    UNIT_EQUAL(atomic_load(&k.got), 1); /* pending_max */
    keeper_do(system, &k, say_done);
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    UNIT_WAIT(folder_has("ok/a"), 60000);
    keeper_do(system, &k, say_failed);
    UNIT_WAIT(stage_has("f:error(0,TRP_EFAILED)"), 60000);
    UNIT_WAIT(folder_has("bad/b"), 60000);
    keeper_do(system, &k, say_done); /* too late */
    UNIT_WAIT(stage_has("f:error(0,TRP_ESTATE)"), 60000);
    UNIT_EQUAL(atomic_load(&k.got), 2);
    stage_close(system);
    folder_remove();
}

/* scheme-file-D4: what is put away is what was read, and not a newer file of its name. */
static void
a_newer_file_of_the_same_name_is_consumed_too(void)
{
    static const keeper_fn words[] = { say_done, say_failed };
    for (uint32_t i = 0; i < 4; i++) {
        trp_system *system = stage_open();
        folder_make();
        folder_put("a", "old");
        keeper_init(&k, "f", false);
        snprintf(k.uri, sizeof k.uri, "file:%s?delay=5&delete=%d", keeper_folder, i > 1);
        k.options.acknowledges = 1;
        keeper_start(system, &k);
        UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
        folder_put("a", "new");
        keeper_do(system, &k, words[i % 2]);
        UNIT_WAIT(stage_has("f:got(a,new,0)") && atomic_load(&k.got) == 2, 60000);
        keeper_do(system, &k, say_done);
        UNIT_WAIT(!folder_has("a"), 60000);
        UNIT_FALSE(folder_has(".failed/a"));
        stage_close(system);
        folder_remove();
    }
}

/* scheme-file-D5: without descriptors a file is not a bad one. */
static void
a_file_waits_for_a_descriptor(void)
{
    struct rlimit before, few;
    char ready[256];
    trp_system *system = stage_open();
    folder_make();
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5", keeper_folder);
    keeper_start(system, &k);
    folder_put(".ready", "1");
    UNIT_EQUAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    int lowest = dup(STDIN_FILENO);
    close(lowest);
    few.rlim_cur = (rlim_t)lowest + 1; /* one for the list, none for the file */
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    snprintf(ready, sizeof ready, "%s", folder_path(".ready"));
    UNIT_EQUAL(rename(ready, folder_path("a")), 0);
    STAGE_LOGGED("it is tried again");
    few.rlim_cur = (rlim_t)lowest; /* not even for the list */
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 50; i++) {
        unit_pause();
    }
    UNIT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    UNIT_WAIT(stage_has("f:got(a,1,0)") && folder_has(".done/a"), 60000);
    UNIT_EQUAL(atomic_load(&k.errors), 0);
    UNIT_EQUAL(atomic_load(&k.started), 1);
    stage_close(system);
    folder_remove();
}

static void
say_reply(trp_ctx *ctx, keeper *of)
{
    static uint8_t data[9];
    trp_bytes body;
    for (size_t bytes = sizeof data; bytes >= sizeof data - 1; bytes--) {
        UNIT_EQUAL(trp_bytes_copy(data, bytes, &body), TRP_OK);
        UNIT_EQUAL(trp_endpoint_reply(ctx, of->endpoint, atomic_load(&of->exchange), body, NULL, 0),
                   TRP_OK);
        trp_bytes_unref(&body);
    }
}

/* CAM-02, CAM-03: a reply is an acknowledgement, and has a bound. */
static void
a_reply_acknowledges(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "t", false);
    snprintf(k.uri, sizeof k.uri, "timer:tick?period=5&delay=0&count=2");
    k.options.acknowledges = 1;
    k.options.pending_max = 1;
    k.options.message_bytes_max = 8;
    keeper_start(system, &k);
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    keeper_do(system, &k, say_reply); /* of nine bytes, and once more */
    UNIT_WAIT(stage_has("t:error(0,TRP_EMSGSIZE)") && stage_has("t:error(0,TRP_ESTATE)"), 60000);
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    UNIT_WAIT(atomic_load(&k.errors) == 2, 60000);
    stage_close(system);
}

/* CAM-04; the error channel gets the error, too. */
static void
a_message_that_is_not_acknowledged_in_time_fails(void)
{
    trp_system *system = stage_open();
    folder_make();
    folder_put("a", "1");
    keeper_init(&other, "e", false);
    snprintf(other.uri, sizeof other.uri, "timer:none?delay=1000000");
    keeper_start(system, &other);
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5", keeper_folder);
    k.options.acknowledges = 1;
    k.options.timeout_ms = 20;
    k.options.errors = other.self;
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("f:error(0,TRP_ETIMEDOUT)") && stage_has("e:error(0,TRP_ETIMEDOUT)"),
              60000);
    UNIT_TRUE(folder_has(".failed/a"));
    UNIT_FALSE(folder_has("a"));
    stage_close(system);
    folder_remove();
}

/* scheme-file-D2: links, folders, hidden files and long ones are not read. */
static void
only_plain_files_of_a_fitting_length_are_read(void)
{
    trp_system *system = stage_open();
    folder_make();
    UNIT_EQUAL(symlink("/etc/passwd", folder_path("link")), 0);
    UNIT_EQUAL(mkdir(folder_path("folder"), 0777), 0);
    UNIT_EQUAL(mkfifo(folder_path("pipe"), 0666), 0);
    folder_put(".hidden", "x");
    folder_put("long", "12345");
    folder_put("short", "1234");
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5&delete=1", keeper_folder);
    k.options.message_bytes_max = 4;
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("f:got(short,1234,0)") && stage_has("f:error(0,TRP_EMSGSIZE)"), 60000);
    UNIT_WAIT(!folder_has("short") && folder_has(".failed/long"), 60000);
    folder_put("last", "1");
    UNIT_WAIT(stage_has("f:got(last,1,0)"), 60000);
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    UNIT_TRUE(folder_has("link") && folder_has("pipe") && folder_has(".hidden"));
    stage_close(system);
    folder_remove();
}

static trp_err
text_shout(void *arg, trp_bytes in, trp_bytes *ret_out)
{
    (void)arg;
    if (trp_bytes_length(in) == 0) {
        return TRP_EDATA;
    }
    return trp_bytes_join(in, TRP_BYTES_LITERAL("!"), ret_out);
}

/* CAM-02: mapBody; what cannot be transformed has failed. */
static void
bodies_are_transformed_on_their_way_in(void)
{
    trp_system *system = stage_open();
    folder_make();
    folder_put("a", "hello");
    folder_put("empty", "");
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5", keeper_folder);
    k.options.incoming = text_shout;
    keeper_start(system, &k);
    UNIT_WAIT(stage_has("f:got(a,hello!,0)") && stage_has("f:error(0,TRP_EDATA)"), 60000);
    UNIT_WAIT(folder_has(".failed/empty") && folder_has(".done/a"), 60000);
    stage_close(system);
    folder_remove();
}

static void
kill_endpoint(trp_ctx *ctx, keeper *of)
{
    trp_tell(ctx, of->endpoint, &trp_kill_type, NULL, 0);
}

/* CAM-03: what was not settled when an endpoint failed comes again. */
static void
a_restarted_consumer_opens_again(void)
{
    trp_system *system = stage_open();
    folder_make();
    folder_put("a", "1");
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s?delay=5", keeper_folder);
    k.options.acknowledges = 1;
    keeper_start(system, &k);
    UNIT_WAIT(atomic_load(&k.got) == 1, 60000);
    keeper_do(system, &k, say_done);
    UNIT_WAIT(folder_has(".done/a"), 60000);
    folder_put("b", "2");
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    keeper_do(system, &k, kill_endpoint);
    UNIT_WAIT(atomic_load(&k.got) == 3, 60000);
    keeper_do(system, &k, say_done);
    UNIT_WAIT(folder_has(".done/b"), 60000);
    stage_close(system);
    folder_remove();
}

/* CAM-06: activation is asked for, and a failed one says why. */
static void
whether_an_endpoint_has_started_can_be_asked(void)
{
    trp_system *system = stage_open();
    trp_msg *reply = NULL;
    folder_make();
    keeper_init(&k, "f", false);
    snprintf(k.uri, sizeof k.uri, "file:%s", keeper_folder);
    keeper_start(system, &k);
    UNIT_EQUAL(trp_system_ask(system, k.endpoint, &trp_endpoint_await_type, NULL, 0, 60000, &reply),
               TRP_OK);
    UNIT_TRUE(trp_msg_is(reply, &trp_endpoint_event_type));
    trp_msg_free(reply);
    UNIT_EQUAL(trp_system_graceful_stop(system, k.endpoint, 60000), TRP_OK);
    UNIT_WAIT(stage_has("f:stopped(TRP_OK)"), 60000);

    keeper_init(&other, "g", false);
    snprintf(other.uri, sizeof other.uri, "file:%s/nowhere", keeper_folder);
    keeper_start(system, &other);
    UNIT_WAIT(stage_has("g:stopped(TRP_ENOENT)"), 60000);
    UNIT_TRUE(trp_system_ask(system, other.endpoint, &trp_endpoint_await_type, NULL, 0, 60000,
                             &reply) != TRP_OK);
    stage_close(system);
    folder_remove();
}

UNIT_BEGIN("consumer")
UNIT(a_timer_tells_its_handler_each_period)
UNIT(ticks_without_room_become_one)
UNIT(a_message_is_freed_without_memory)
UNIT(files_are_consumed_and_put_away)
UNIT(a_handler_acknowledges_or_fails_a_file)
UNIT(a_newer_file_of_the_same_name_is_consumed_too)
UNIT(a_file_waits_for_a_descriptor)
UNIT(a_reply_acknowledges)
UNIT(a_message_that_is_not_acknowledged_in_time_fails)
UNIT(only_plain_files_of_a_fitting_length_are_read)
UNIT(bodies_are_transformed_on_their_way_in)
UNIT(a_restarted_consumer_opens_again)
UNIT(whether_an_endpoint_has_started_can_be_asked)
UNIT_END
