/* log_test.c - lines as events: levels, loggers, context, switches, bounds; none is lost. */
#include "tests/unit/actor/stage.h"

#include <troupe/testkit.h>

#include "actor/kernel/type.h"

static atomic_int computed;

static int
costly(void)
{
    return atomic_fetch_add(&computed, 1) + 1;
}

static trp_err
speaker_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_log_receive(ctx);
    return TRP_OK;
}

static trp_err
speaker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "debug")) {
        TRP_LOG_DEBUG(ctx, "computed %d", costly());
    } else if (stage_said(msg, "all")) {
        TRP_LOG_ERROR(ctx, "one");
        TRP_LOG_WARNING(ctx, "two");
        TRP_LOG_INFO(ctx, "three");
        TRP_LOG_DEBUG(ctx, "four");
        trp_log_cause(ctx, TRP_LOG_ERROR, TRP_EIO, "cannot write");
    } else if (stage_said(msg, "context")) {
        UNIT_EQUAL(trp_log_mdc_put(ctx, "user", "bob"), TRP_OK);
        UNIT_EQUAL(trp_log_mdc_put(ctx, "user", "ann"), TRP_OK);
        UNIT_EQUAL(trp_log_mdc_put(ctx, "room", "7"), TRP_OK);
        UNIT_EQUAL(trp_log_mdc_put_message(ctx, "room", "8"), TRP_OK);
        UNIT_EQUAL(trp_log_mdc_put_message(ctx, "request", "x1"), TRP_OK);
        TRP_LOG_INFO(ctx, "with both");
    } else if (stage_said(msg, "later")) {
        TRP_LOG_INFO(ctx, "with mine");
        trp_log_mdc_remove(ctx, "room");
        TRP_LOG_INFO(ctx, "with one");
        trp_log_mdc_remove(ctx, NULL);
        TRP_LOG_INFO(ctx, "with none");
    } else if (stage_said(msg, "too much")) {
        char value[TRP_LOG_MDC_BYTES_MAX];

        memset(value, 'v', sizeof value);
        value[sizeof value - 3] = 0; /* with "k" and the two NULs: at the limit */
        UNIT_EQUAL(trp_log_mdc_put(ctx, "k", value), TRP_OK);
        UNIT_EQUAL(trp_log_mdc_put(ctx, "l", ""), TRP_ELIMIT);
        UNIT_EQUAL(trp_log_mdc_put(ctx, "", "v"), TRP_EINVAL);
        value[sizeof value - 3] = 'v';
        value[sizeof value - 2] = 0;
        UNIT_EQUAL(trp_log_mdc_put(ctx, "k", value), TRP_ELIMIT);
        UNIT_EQUAL(trp_log_mdc_put(ctx, "k", "short"), TRP_OK);
        TRP_LOG_INFO(ctx, "short");
        stage_note("limits");
    } else if (stage_said(msg, "fail")) {
        return TRP_EFAILED;
    } else {
        trp_unhandled_msg(ctx, msg);
    }
    return TRP_OK;
}

static const trp_behaviour speaker = { .size = sizeof(trp_behaviour),
                                       .name = "speaker",
                                       .version = 1,
                                       .receive = speaker_receive,
                                       .pre_start = speaker_pre_start };

/* A subscriber that notes the log events that it gets. */
static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const char *key, *value, *at;
    trp_log_line line;

    (void)state;
    if (trp_log_event_line(msg, &line) != 0) {
        stage_note("%d:%s:%s:%s%s", (int)line.level, line.source, line.kind, line.text,
                   line.thread[0] != 0 && line.wall_ms > 0 && line.mono_ns > 0 ? "" : "?");
        for (at = line.mdc; (at = trp_log_mdc_next(at, &key, &value)) != NULL;) {
            stage_note("%s=%s", key, value);
        }
        if (line.cause != TRP_OK) {
            stage_note("%s", trp_err_name(line.cause));
        }
    } else if (stage_said(msg, "warnings")) {
        UNIT_EQUAL(trp_subscribe(ctx, &trp_log_warning_type), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "lines")) {
        UNIT_EQUAL(trp_subscribe(ctx, &trp_log_event_type), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "enough")) {
        trp_unsubscribe(ctx, NULL);
        trp_reply_text(ctx, "ok");
    }
    return TRP_OK;
}

static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", char, listener_receive);
static char answer[64];

/* LOG-04, LOG-06, ES-02, TRP-14: a level that is off costs one load; it can be changed */
static void
a_line_is_made_only_when_its_level_is_on(void)
{
    trp_system *system = stage_open();
    trp_ref s = stage_spawn(system, &speaker, "s");

    atomic_store(&computed, 0);
    UNIT_EQUAL(trp_log_level_get(system), TRP_LOG_INFO);
    stage_tell(system, s, "debug");
    stage_tell(system, s, "all");
    UNIT_WAIT(stage_book_has(&stage_lines, "cannot write"), 5000); /* it has come to the first */
    UNIT_EQUAL(atomic_load(&computed), 0);
    trp_log_level_set(system, TRP_LOG_DEBUG);
    UNIT_EQUAL(trp_log_level_get(system), TRP_LOG_DEBUG);
    stage_tell(system, s, "debug");
    UNIT_WAIT(stage_book_has(&stage_lines, "[4 /user/s: computed 1]"), 5000);
    trp_log_level_set(system, TRP_LOG_OFF);
    stage_clear(&stage_lines);
    stage_tell(system, s, "all");
    trp_system_log(system, TRP_LOG_ERROR, "t", "unseen");
    trp_log_level_set(system, (trp_log_level)9); /* ignored */
    UNIT_EQUAL(trp_log_level_get(system), TRP_LOG_OFF);
    stage_close(system);
    UNIT_TEXT(stage_lines.text, "");
}

/* LOG-01, -02, -03, -05, -08, -09, MSG-21, -22: lines are events that know their origin */
static void
lines_are_events_by_level_with_source_kind_thread_and_time(void)
{
    trp_system *system = stage_open();
    trp_ref l = stage_spawn(system, &listener, "l");
    trp_ref s = stage_spawn(system, &speaker, "s");

    UNIT_EQUAL(stage_ask(system, l, "warnings", answer, sizeof answer), TRP_OK);
    stage_tell(system, s, "all");
    STAGE_EXPECT("2:/user/s:speaker:two");
    STAGE_LOGGED("cannot write"); /* its last line: none is left for the next subscription */
    UNIT_EQUAL(stage_ask(system, l, "lines", answer, sizeof answer), TRP_OK); /* and their parent */
    stage_clear(&stage_events);
    stage_tell(system, s, "all"); /* each once, in order; debug is not made */
    STAGE_EXPECT("1:/user/s:speaker:one 2:/user/s:speaker:two 3:/user/s:speaker:three "
                 "1:/user/s:speaker:cannot write: input or output failed (TRP_EIO) TRP_EIO");
    UNIT_EQUAL(stage_ask(system, l, "enough", answer, sizeof answer), TRP_OK);
    stage_clear(&stage_events);
    trp_system_log(system, TRP_LOG_WARNING, "outside", "%s", "no one but the logger");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("[2 outside: no one but the logger]");
    STAGE_EXPECT("");
    stage_close(system);
}

/* LOG-09: context of the actor, of the message, and its limit */
static void
a_line_carries_the_context_of_actor_and_message(void)
{
    trp_system *system = stage_open();
    trp_ref l = stage_spawn(system, &listener, "l");
    trp_ref s = stage_spawn(system, &speaker, "s");

    UNIT_EQUAL(stage_ask(system, l, "lines", answer, sizeof answer), TRP_OK);
    stage_tell(system, s, "context");
    STAGE_EXPECT("3:/user/s:speaker:with both room=8 request=x1 user=ann");
    stage_clear(&stage_events);
    stage_tell(system, s, "later");
    STAGE_EXPECT("3:/user/s:speaker:with mine user=ann room=7 3:/user/s:speaker:with one user=ann "
                 "3:/user/s:speaker:with none");
    stage_clear(&stage_events);
    stage_tell(system, s, "too much");
    UNIT_WAIT(stage_has("3:/user/s:speaker:short k=short"), 5000);
    UNIT_WAIT(stage_has("limits"), 5000);
    stage_close(system);
}

/* ---- loggers of the program's own ------------------------------------------------------------ */

static atomic_bool gate_open;
static atomic_uint gate_waits;
static _Atomic uint64_t gate_first_ns, gate_last_ns; /* the times of its lines */

static trp_err
logger_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_log_line line;

    (void)state;
    if (trp_msg_is(msg, &trp_logger_init_type)) {
        trp_reply(ctx, &trp_logger_ready_type, NULL, 0);
    } else if (trp_log_event_line(msg, &line) != 0) {
        if (strcmp(line.text, "wait") == 0) {
            atomic_fetch_add(&gate_waits, 1);
            while (!atomic_load(&gate_open)) {
                unit_pause();
            }
        }
        stage_note("%s", line.text);
        if (strcmp(line.text, "0") == 0) {
            atomic_store(&gate_first_ns, line.mono_ns);
        } else if (strcmp(line.text, "7") == 0) {
            atomic_store(&gate_last_ns, line.mono_ns);
        }
        TRP_LOG_ERROR(ctx, "a logger logs");
        if (strcmp(line.text, "bad") == 0) {
            return TRP_EFAILED;
        }
    }
    return TRP_OK;
}

static trp_err
mute_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trpi_type_get(msg->priv_type) != &trp_logger_init_type) {
        stage_note("told");
    }
    return TRP_OK;
}

static const trp_behaviour own_logger = TRP_BEHAVIOUR_INIT("own", char, logger_receive);
static const trp_behaviour mute_logger = TRP_BEHAVIOUR_INIT("mute", char, mute_receive);

/* LOG-07, LOG-14, LOG-01, CONTRIB-46: it is asked whether it is ready; when it fails or logs,
 * nothing goes round. In virtual time: only a silent logger is late. */
static void
a_program_brings_its_own_logger_which_may_fail(void)
{
    const trp_behaviour *const loggers[] = { &mute_logger, &own_logger, NULL };
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_system *system;
    trp_ref ref;

    logging.loggers = loggers;
    logging.start_ms = 1500; /* which the other one has, too */
    system_options.logging = &logging;
    system_options.log = stage_log;
    options.system_options = &system_options;
    options.clock = TRP_CLOCK_VIRTUAL;
    atomic_store(&gate_open, true);
    stage_clear(&stage_events);
    stage_clear(&stage_lines);
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    system = trp_testkit_system(kit);
    STAGE_LOGGED("logger mute did not report within 1500 ms"); /* direct */
    trp_system_log(system, TRP_LOG_INFO, "t", "good");
    trp_system_log(system, TRP_LOG_INFO, "t", "bad");
    trp_system_log(system, TRP_LOG_INFO, "t", "again");
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_TRUE(stage_is("good bad again"));
    UNIT_TRUE(stage_book_has(&stage_lines, "/system/log3: failed: "));
    UNIT_TRUE(stage_book_has(&stage_lines, "[1 /system/log3: a logger logs]"));
    UNIT_EQUAL(trp_system_resolve(system, "/system/log3", 60000, &ref), TRP_OK);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    UNIT_TRUE(stage_is("good bad again")); /* the mute logger got no line */
}

/* LOG-08, LOG-01. Limits: queue_max at it and one past it; the drop is counted and said */
static void
too_many_lines_for_a_slow_logger_are_dropped_and_counted(void)
{
    const trp_behaviour *const loggers[] = { &own_logger, NULL };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_system *system;
    uint64_t before_ms, after_ms;

    logging.loggers = loggers;
    logging.no_default = 1;
    logging.queue_max = 8;
    options.logging = &logging;
    options.workers = 2;
    atomic_store(&gate_open, false);
    atomic_store(&gate_waits, 0);
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_INFO, "t", "wait");
    UNIT_WAIT(atomic_load(&gate_waits) == 1, 5000);
    before_ms = unit_now_ms();
    for (int i = 0; i < 8; i++) {
        trp_system_log(system, TRP_LOG_INFO, "t", "%d", i);
    }
    UNIT_EQUAL(trp_log_dropped(system), 0);
    trp_system_log(system, TRP_LOG_INFO, "t", "one too many");
    UNIT_EQUAL(trp_log_dropped(system), 1);
    after_ms = unit_now_ms();
    UNIT_WAIT(unit_now_ms() > after_ms, 5000);
    atomic_store(&gate_open, true); /* all that follows is later */
    STAGE_EXPECT("wait 0 1 2 3 4 5 6 7");
    /* LOG-08: their times are those of the calls, however late they are handled */
    UNIT_TRUE(atomic_load(&gate_first_ns) / 1000000u >= before_ms);
    UNIT_TRUE(atomic_load(&gate_last_ns) / 1000000u <= after_ms);
    UNIT_WAIT(stage_book_has(&stage_lines, "too slow: 1 lines were dropped"), 5000);
    trp_system_log(system, TRP_LOG_INFO, "t", "on");
    STAGE_EXPECT("wait 0 1 2 3 4 5 6 7 on");
    stage_close(system);
}

static atomic_uint texts_seen[2]; /* whole, cut */

static void
measure_line(void *arg, const trp_log_line *line)
{
    size_t bytes = strlen(line->text);

    (void)arg;
    if (bytes == TRP_LOG_TEXT_BYTES_MAX - 1) {
        atomic_fetch_add(&texts_seen[line->text[bytes - 1] == 'x'], 1);
    }
}

/* Limits: TRP_LOG_TEXT_BYTES_MAX with the NUL; a longer text is cut, as is the text of a cause */
static void
a_line_has_so_many_bytes_and_not_one_more(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    char text[TRP_LOG_TEXT_BYTES_MAX + 1];
    trp_system *system;

    options.log = measure_line;
    atomic_store(&texts_seen[0], 0);
    atomic_store(&texts_seen[1], 0);
    system = stage_open_with(options);
    memset(text, 'x', sizeof text);
    text[TRP_LOG_TEXT_BYTES_MAX - 2] = '.'; /* the last one that fits */
    text[TRP_LOG_TEXT_BYTES_MAX - 1] = '\0';
    trp_system_log(system, TRP_LOG_ERROR, "t", "%s", text);
    text[TRP_LOG_TEXT_BYTES_MAX - 2] = 'x';
    text[TRP_LOG_TEXT_BYTES_MAX - 1] = '.'; /* one past it */
    text[TRP_LOG_TEXT_BYTES_MAX] = '\0';
    trp_system_log(system, TRP_LOG_ERROR, "t", "%s", text);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&texts_seen[0]), 1);
    UNIT_EQUAL(atomic_load(&texts_seen[1]), 1);
}

/* ---- nothing is lost ------------------------------------------------------------------------- */

#define CHATTERS 20
#define CHATTER_LINES 200

static atomic_uint lines_written;

static void
count_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (strncmp(line->text, "line ", 5) == 0) {
        atomic_fetch_add(&lines_written, 1);
    }
}

static atomic_uint chatters_started;

static trp_err
chatter_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    for (int i = 0; i < CHATTER_LINES - 1; i++) {
        TRP_LOG_INFO(ctx, "line %d", i);
    }
    atomic_fetch_add(&chatters_started, 1);
    return TRP_OK;
}

static trp_err
chatter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static void
chatter_post_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    TRP_LOG_INFO(ctx, "line %s", "at the end");
}

static void *
foreign_main(void *arg)
{
    for (int i = 0; i < CHATTER_LINES; i++) {
        trp_system_log(arg, TRP_LOG_INFO, "foreign", "line %d", i);
    }
    return NULL;
}

/* SYS-7, LOG-01: several threads log, and the system ends while lines are queued */
static void
an_orderly_stop_loses_no_line(void)
{
    const trp_behaviour chatter = { .size = sizeof(trp_behaviour),
                                    .name = "chatter",
                                    .version = 1,
                                    .receive = chatter_receive,
                                    .pre_start = chatter_pre_start,
                                    .post_stop = chatter_post_stop };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    pthread_t threads[2];
    trp_system *system;
    trp_ref ref;

    atomic_store(&lines_written, 0);
    atomic_store(&chatters_started, 0);
    options.log = count_line;
    options.workers = 3;
    system = stage_open_with(options);
    for (int i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, foreign_main, system), 0);
    }
    for (int i = 0; i < CHATTERS; i++) {
        if (i % 2 == 0) {
            UNIT_EQUAL(trp_system_spawn(system, &chatter, NULL, &ref), TRP_OK);
        } else { /* below /system they end beside the loggers */
            UNIT_EQUAL(trpi_system_spawn_internal(system, &chatter, NULL, &ref), TRP_OK);
        }
    }
    for (int i = 0; i < 2; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    UNIT_WAIT(atomic_load(&chatters_started) == CHATTERS, 10000);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&lines_written), (CHATTERS + 2) * CHATTER_LINES);
}

/* LOG-06: before loggers run, and where there are none, stdout-loglevel decides */
static void
without_a_logger_lines_go_out_at_once_by_their_own_level(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_system *system;

    logging.no_default = 1;
    options.logging = &logging;
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_INFO, "t", "too fine");
    trp_system_log(system, TRP_LOG_WARNING, "t", "grave");
    STAGE_LOGGED("[2 t: grave]");
    UNIT_FALSE(stage_book_has(&stage_lines, "too fine"));
    stage_close(system);

    logging.stdout_level = TRP_LOG_OFF;
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_ERROR, "t", "silence");
    UNIT_FALSE(stage_book_has(&stage_lines, "silence"));
    stage_close(system);

    logging.dispatcher = "no-such-one";
    logging.no_default = 0;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_ENOENT);
    logging.stdout_level = 9;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
}

/* ---- switches -------------------------------------------------------------------------------- */

/* One line of each kind, whose switches are `debug`. */
static void
debug_lines_are(uint32_t debug)
{
    static const struct {
        uint32_t kind; /* 0: never */
        const char *line;
    } lines[] = {
        { TRP_DEBUG_RECEIVE, "[4 /user/s: received message of type troupe.string from nobody]" },
        { 0, "/user/l: received message" }, /* no mark */
        { TRP_DEBUG_UNHANDLED, "[4 /user/s: unhandled message of type " },
        { TRP_DEBUG_AUTORECEIVE,
          "[4 /user/s: received automatic message of type troupe.poison-pill]" },
        { TRP_DEBUG_EVENT_STREAM, "[4 eventStream: /user/l subscribes to troupe.log-warning]" },
        { TRP_DEBUG_EVENT_STREAM, "[4 eventStream: /user/l unsubscribes from all" },
        { TRP_DEBUG_LIFECYCLE, "[4 /user/s: started]" },
        { TRP_DEBUG_LIFECYCLE, "[4 /user/s: stopped]" },
    };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_system *system;
    trp_ref s, l, ended;

    options.log_level = TRP_LOG_DEBUG;
    options.logging = &logging;
    logging.debug = debug;
    system = stage_open_with(options);
    s = stage_spawn(system, &speaker, "s");
    l = stage_spawn(system, &listener, "l");
    stage_tell(system, s, "what is this");
    UNIT_EQUAL(stage_ask(system, l, "warnings", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, l, "enough", answer, sizeof answer), TRP_OK);
    trp_system_tell(system, s, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(trp_system_resolve(system, "/user/s", 60000, &ended) == TRP_ENOENT, 5000);
    stage_close(system);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        UNIT_EQUAL(stage_book_has(&stage_lines, lines[i].line), (debug & lines[i].kind) != 0);
    }
}

/* LOG-13, MSG-19, ES-07, LIFE-20, MSG-17, TEST-14: each switch makes its lines, and none is made
 * without it */
static void
debug_lines_have_a_switch_for_each_kind(void)
{
    const uint32_t kinds[] = { TRP_DEBUG_RECEIVE, TRP_DEBUG_AUTORECEIVE, TRP_DEBUG_EVENT_STREAM,
                               TRP_DEBUG_UNHANDLED, TRP_DEBUG_LIFECYCLE };
    uint32_t all = 0;

    debug_lines_are(0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        debug_lines_are(kinds[i]);
        all |= kinds[i];
    }
    debug_lines_are(all);
}

static size_t
letters_logged(void)
{
    size_t count = 0;

    for (const char *at = stage_lines.text; (at = strstr(at, "dead letter of")) != NULL; at++) {
        count++;
    }
    return count;
}

/* LOG-13: while it runs, too */
static void
debug_lines_are_switched_while_the_system_runs(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref s;

    options.log_level = TRP_LOG_DEBUG;
    system = stage_open_with(options);
    s = stage_spawn(system, &speaker, "s");
    for (int on = 0; on <= 2; on++) { /* off, on, off */
        stage_clear(&stage_lines);
        trp_log_debug_set(system, on == 1 ? TRP_DEBUG_UNHANDLED : 0);
        stage_tell(system, s, "what is this");
        stage_tell(system, s, "all");
        UNIT_WAIT(stage_book_has(&stage_lines, "[1 /user/s: cannot write"), 60000);
        UNIT_EQUAL(stage_book_has(&stage_lines, "[4 /user/s: unhandled message"), on == 1);
    }
    stage_close(system);
}

/* LIFE-16, LOG-11, TRP-10: the first ten, so many, none or all */
static void
dead_letters_are_logged_as_often_as_asked_for(void)
{
    const struct {
        uint32_t asked, told, logged;
    } cases[] = { { 0, 25, 10 }, /* the default */
                  { 3, 3, 3 },
                  { 3, 4, 3 },
                  { TRP_OFF, 25, 0 },
                  { TRP_FOREVER, 25, 25 } };

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_system *system;

        options.log_dead_letters = cases[k].asked;
        system = stage_open_with(options);
        for (uint32_t i = 0; i < cases[k].told; i++) {
            stage_tell(system, (trp_ref)TRP_REF_NONE, "x");
        }
        UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
        UNIT_EQUAL(letters_logged(), cases[k].logged);
        stage_close(system);
    }
}

static trp_err
first_words(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    stage_note("started");
    return TRP_OK;
}

static void
last_words(trp_ctx *ctx, void *state)
{
    (void)state;
    trp_tell_text(ctx, (trp_ref)TRP_REF_NONE, "last words");
}
static const trp_behaviour talker = { .size = sizeof(trp_behaviour),
                                      .name = "talker",
                                      .version = 1,
                                      .receive = mute_receive,
                                      .pre_start = first_words,
                                      .post_stop = last_words };

/* LOG-11, SYS-41: those of a shutdown are logged, too, unless this is switched off. */
static void
dead_letters_of_a_shutdown_are_logged_unless_told_not_to(void)
{
    for (uint32_t off = 0; off <= 1; off++) {
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_log_options logging = TRP_LOG_OPTIONS_INIT;
        trp_system *system;

        options.logging = &logging;
        logging.no_dead_letters_at_end = off;
        system = stage_open_with(options);
        UNIT_EQUAL(trp_system_graceful_stop(system, stage_spawn(system, &talker, "a"), 60000),
                   TRP_OK);
        (void)stage_spawn(system, &talker, "b");
        UNIT_WAIT(stage_count("started") == 2, 60000);
        UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
        UNIT_EQUAL(letters_logged(), 1); /* of the one that ended before */
        UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
        UNIT_EQUAL(letters_logged(), 2 - off);
        trp_system_free(system);
        stage_clear(&stage_lines);
    }
}

/* ---- lines as text --------------------------------------------------------------------------- */

static void
a_line_is_text_or_json(void)
{
    trp_log_line line = { .level = TRP_LOG_INFO,
                          .source = "/user/a",
                          .text = "x\n\xff\xc3\xa9",
                          .wall_ms = 1763640181204,
                          .kind = "bank",
                          .thread = "demo-0",
                          .mdc = "user\0an\"n\0k\0v\0" };
    char buffer[1024] = "";
    size_t bytes;

    bytes = trp_log_format(&line, 0, buffer, sizeof buffer);
    UNIT_EQUAL(bytes, strlen(buffer));
    UNIT_TEXT(buffer, "2025-11-20T12:03:01.204Z info    /user/a x\\x0a\xff\xc3\xa9 "
                      "{user=an\"n k=v}\n");
    bytes = trp_log_format(&line, 1, buffer, sizeof buffer);
    UNIT_EQUAL(bytes, strlen(buffer));
    UNIT_TEXT(buffer,
              "{\"time\":\"2025-11-20T12:03:01.204Z\",\"level\":\"info\",\"source\":\"/user/a\","
              "\"kind\":\"bank\",\"thread\":\"demo-0\",\"message\":\"x\\u000a\\ufffd\xc3\xa9\","
              "\"mdc\":{\"user\":\"an\\\"n\",\"k\":\"v\"}}\n");
    for (bytes = 256; bytes < 400; bytes++) { /* cut anywhere, it is a line and an object */
        char source[300];

        memset(source, '"', sizeof source - 1);
        source[sizeof source - 1] = 0;
        line.source = source;
        UNIT_TRUE(trp_log_format(&line, 1, buffer, bytes) < bytes);
        UNIT_TEXT(buffer + strlen(buffer) - 2, "}\n");
        UNIT_TRUE(strstr(buffer, "\"message\":\"") != NULL);
    }
}

UNIT_BEGIN("log")
UNIT(a_line_is_made_only_when_its_level_is_on)
UNIT(lines_are_events_by_level_with_source_kind_thread_and_time)
UNIT(a_line_carries_the_context_of_actor_and_message)
UNIT(a_program_brings_its_own_logger_which_may_fail)
UNIT(too_many_lines_for_a_slow_logger_are_dropped_and_counted)
UNIT(a_line_has_so_many_bytes_and_not_one_more)
UNIT(an_orderly_stop_loses_no_line)
UNIT(without_a_logger_lines_go_out_at_once_by_their_own_level)
UNIT(debug_lines_have_a_switch_for_each_kind)
UNIT(debug_lines_are_switched_while_the_system_runs)
UNIT(dead_letters_are_logged_as_often_as_asked_for)
UNIT(dead_letters_of_a_shutdown_are_logged_unless_told_not_to)
UNIT(a_line_is_text_or_json)
UNIT_END
