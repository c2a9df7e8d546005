/* settings_test.c - the configuration of a system, and of actors by their path. */
#include "tests/unit/actor/stage.h"

#include <troupe/config.h>
#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/mailbox.h>
#include <troupe/testkit.h>

#include "actor/log/log.h"
#include "actor/kernel/system.h"
#include "pattern/testkit.h"

/* ---- an actor that reports its thread, and makes children */

static trp_err keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg);
static const trp_behaviour keeper = {
    .size = sizeof(trp_behaviour), .name = "keeper", .version = 1, .receive = keeper_receive
};

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[64];
    (void)state;
    if (stage_said(msg, "thread")) {
        snprintf(text, sizeof text, "%llx", (unsigned long long)pthread_self());
        trp_reply_text(ctx, text);
    } else if (stage_said(msg, "dispatcher")) {
        trp_reply_text(ctx, trp_dispatcher_id(ctx));
    } else if (stage_said(msg, "unnamed")) {
        trp_ref child = TRP_REF_NONE;
        UNIT_EQUAL(trp_spawn(ctx, &keeper, NULL, &child), TRP_OK);
        trp_tell_as(ctx, child, trp_sender(ctx), &trp_string_type, "thread", 6);
    } else {
        snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
                 (const char *)trp_msg_payload(msg));
        stage_child(ctx, &keeper, text);
        trp_reply_text(ctx, "done");
    }
    return TRP_OK;
}

static trp_system *
system_of(const char *text)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = stage_config(text);
    options.workers = 1;
    options.config = config;
    trp_system *system = stage_open_with(options);
    trp_config_unref(config); /* the system has its share */
    return system;
}

/* Does the actor at path run on another thread than the one worker? */
static bool
is_pinned(trp_system *system, const char *path)
{
    char own[64] = "", common[64] = "";
    trp_ref ref = TRP_REF_NONE, usual = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(system, "/user/usual", 60000, &usual), TRP_OK);
    UNIT_EQUAL(stage_ask(system, usual, "thread", common, sizeof common), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, path, 60000, &ref), TRP_OK);
    UNIT_EQUAL(stage_ask(system, ref, "thread", own, sizeof own), TRP_OK);
    UNIT_TRUE(*own && *common);
    return strcmp(own, common) != 0;
}

static void
make_child(trp_system *system, const char *parent, const char *name)
{
    char answer[16] = "";
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(system, parent, 60000, &ref), TRP_OK);
    UNIT_EQUAL(stage_ask(system, ref, name, answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "done");
}

/* CONF-9, SYS-32, DISP-2 */
static void
deployment_sections_move_actors_by_their_path(void)
{
    trp_system *system = system_of("deployment \"/single\" { dispatcher = pinned }\n"
                                   "deployment \"/service/*\" { dispatcher = pinned }\n"
                                   "deployment \"/service/plain\" { dispatcher = default }\n"
                                   "deployment \"/user/other/*/leaf\" { dispatcher = pinned }\n");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    stage_spawn(system, &keeper, "usual");
    stage_spawn(system, &keeper, "single");
    stage_spawn(system, &keeper, "service");
    stage_spawn(system, &keeper, "other");
    make_child(system, "/user/service", "worker");
    make_child(system, "/user/service", "plain");
    make_child(system, "/user/service/worker", "deeper");
    make_child(system, "/user/other", "any");
    make_child(system, "/user/other/any", "leaf");
    make_child(system, "/user/other/any", "twig");
    make_child(system, "/user/usual", "single");
    UNIT_TRUE(is_pinned(system, "/user/single"));
    UNIT_FALSE(is_pinned(system, "/user/service"));
    UNIT_TRUE(is_pinned(system, "/user/service/worker"));
    UNIT_FALSE(is_pinned(system, "/user/service/plain")); /* a name beats "*" */
    UNIT_FALSE(is_pinned(system, "/user/service/worker/deeper"));
    UNIT_TRUE(is_pinned(system, "/user/other/any/leaf"));
    UNIT_FALSE(is_pinned(system, "/user/other/any/twig"));
    UNIT_FALSE(is_pinned(system, "/user/usual/single")); /* another path */
    /* the configuration wins over the code, in both directions */
    options.name = "x";
    options.dispatcher = "pinned";
    UNIT_EQUAL(trp_system_spawn(system, &keeper, &options, &ref), TRP_OK);
    UNIT_TRUE(is_pinned(system, "/user/x"));
    stage_close(system);
    system = system_of("deployment \"/x\" { dispatcher = default }");
    stage_spawn(system, &keeper, "usual");
    UNIT_EQUAL(trp_system_spawn(system, &keeper, &options, &ref), TRP_OK);
    UNIT_FALSE(is_pinned(system, "/user/x"));
    stage_close(system);
}

/* CONF-9, DISP-2: "*" stands for automatic names too */
static void
unnamed_actors_are_deployed_by_a_star(void)
{
    char starred[64] = "", plain[64] = "", usual[64] = "";
    trp_system *system = system_of("deployment \"/a/*\" { dispatcher = pinned }");
    trp_ref a = stage_spawn(system, &keeper, "a"), b = stage_spawn(system, &keeper, "b");
    UNIT_EQUAL(stage_ask(system, b, "thread", usual, sizeof usual), TRP_OK);
    UNIT_EQUAL(stage_ask(system, a, "unnamed", starred, sizeof starred), TRP_OK);
    UNIT_EQUAL(stage_ask(system, b, "unnamed", plain, sizeof plain), TRP_OK);
    UNIT_TEXT(plain, usual);
    UNIT_TRUE(*starred && strcmp(starred, usual) != 0);
    stage_close(system);
}

/* DISP-2: an unknown dispatcher is an error, not the default one (MSC-05) */
static void
dispatcher_that_is_not_there_refuses_the_spawn(void)
{
    trp_system *system = system_of("deployment \"/a\" { dispatcher = nowhere }");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = "a";
    UNIT_EQUAL(trp_system_spawn(system, &keeper, &options, &ref), TRP_ENOENT);
    options.name = "b";
    UNIT_EQUAL(trp_system_spawn(system, &keeper, &options, &ref), TRP_OK);
    stage_close(system);
}

/* DISP-1, -2, -3, -8, -9, CONF-9 */
static void
dispatchers_are_configured(void)
{
    trp_system *system = system_of(
        "dispatcher \"my-pool\" { type = Dispatcher throughput = 7\n"
        "  fork-join-executor { parallelism-min = 2 parallelism-max = 3\n"
        "                       parallelism-factor = 100 }\n"
        "  thread-pool-executor { keep-alive-time = 1s } shutdown-timeout = 2s }\n"
        "dispatcher \"own\" { type = \"PinnedDispatcher\" }\n"
        "deployment \"/a\" { dispatcher = my-pool }\n"
        "actor { default-dispatcher { throughput = 11 throughput-deadline-time = 5ms } }");
    trp_dispatcher_info info = { .size = sizeof info };
    char answer[64] = "";
    UNIT_EQUAL(trp_dispatcher_find(system, "my-pool", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_DISPATCHER_POOL);
    UNIT_EQUAL(info.throughput, 7);
    UNIT_EQUAL(info.threads_max, 3); /* cores * 100, within 2 and 3 */
    UNIT_EQUAL(trp_dispatcher_find(system, "own", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_DISPATCHER_PINNED);
    UNIT_EQUAL(info.throughput, 11); /* the default dispatcher's */
    trp_ref a = stage_spawn(system, &keeper, "a");
    UNIT_EQUAL(stage_ask(system, a, "dispatcher", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "my-pool");
    stage_close(system);
}

/* CONF-9, MBOX-1, -10, -11 */
static void
mailboxes_are_configured(void)
{
    trp_system *system = system_of(
        "actor { default-mailbox { mailbox-type = counted } }\n"
        "mailbox \"small\" { mailbox-type = bounded mailbox-capacity = 3 overflow = notify\n"
        "  mailbox-push-timeout-time = 0ms }\n"
        "dispatcher \"d\" { mailbox-type = small }\n"
        "deployment \"/none\" { mailbox = nowhere }\n"
        "deployment \"/a\" { mailbox = small }");
    trp_mailbox_info info = { .size = sizeof info };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_mailbox_find(system, "small", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_MAILBOX_KIND_BOUNDED);
    UNIT_EQUAL(info.capacity, 3);
    UNIT_EQUAL(info.overflow, TRP_MAILBOX_NOTIFY);
    UNIT_EQUAL(info.push_timeout_ms, TRP_OFF);
    UNIT_EQUAL(trp_mailbox_find(system, "default-mailbox", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_MAILBOX_KIND_COUNTED);
    options.name = "none"; /* the section counts: its mailbox does not exist */
    UNIT_EQUAL(trp_system_spawn(system, &keeper, &options, &ref), TRP_ENOENT);
    stage_spawn(system, &keeper, "a");
    stage_close(system);
}

static _Atomic bool may_go_on, is_held;

static trp_err
holder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        atomic_store(&is_held, true);
        while (!atomic_load(&may_go_on)) {
            unit_pause();
        }
    }
    return TRP_OK;
}
static const trp_behaviour holder = TRP_BEHAVIOUR_INIT("holder", int, holder_receive);

/* Does the mailbox of an actor that is busy take three messages, and not a fourth? */
static void
expect_room_for_three(trp_system *system, trp_ref ref)
{
    atomic_store(&may_go_on, false);
    atomic_store(&is_held, false);
    stage_tell(system, ref, "hold");
    UNIT_WAIT(atomic_load(&is_held), 5000);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_system_try_tell(system, ref, &trp_string_type, "x", 1), TRP_OK);
    }
    UNIT_EQUAL(trp_system_try_tell(system, ref, &trp_string_type, "x", 1), TRP_EAGAIN);
    atomic_store(&may_go_on, true);
}

/* MBOX-10 (rules 1 and 3), MBOX-11: the deployment section's mailbox, and the dispatcher's */
static void
a_configured_mailbox_reaches_its_actors(void)
{
    trp_system *system = system_of(
        "mailbox \"small\" { mailbox-type = bounded mailbox-capacity = 3 overflow = notify }\n"
        "mailbox \"wide\" { mailbox-type = bounded mailbox-capacity = 30 }\n"
        "dispatcher \"d\" { mailbox-type = small }\n"
        "deployment \"/a\" { mailbox = small }");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = "a";
    options.mailbox = "wide"; /* the section overrides it */
    UNIT_EQUAL(trp_system_spawn(system, &holder, &options, &ref), TRP_OK);
    expect_room_for_three(system, ref);
    options.name = "b";
    options.mailbox = NULL;
    options.dispatcher = "d";
    UNIT_EQUAL(trp_system_spawn(system, &holder, &options, &ref), TRP_OK);
    expect_room_for_three(system, ref);
    stage_close(system);
}

static void
wrong_dispatchers_are_refused(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    trp_config *config =
        stage_config("\ndispatcher \"x\" { fork-join-executor { parallelism-min = 9 "
                     "parallelism-max = 2 } }");
    options.config = config;
    options.log = stage_log;
    stage_clear(&stage_lines);
    UNIT_EQUAL(trp_system_new("stage", &options, &system), TRP_ECONFIG);
    STAGE_LOGGED("t.conf:2: dispatcher \"x\" is refused");
    trp_config_unref(config);
    config = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(trp_config_parse_text("t.conf", "dispatcher \"pinned\" { throughput = 1 }", &config,
                                     &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text,
              "t.conf:1: dispatcher \"pinned\": this dispatcher is built in; take another "
              "name");
}

/* CONF-9, REMOTE-19 */
static void
sections_are_found_by_path(void)
{
    trp_system *system = system_of("deployment \"/a/*\" { dispatcher = pinned }\n"
                                   "deployment \"/*/b\" { dispatcher = one }\n"
                                   "deployment \"/*/*\" { dispatcher = two }\n");
    trpi_deployment found;
    memset(&found, 0, sizeof found);
    UNIT_TRUE(trpi_deployment_find(system, "/user/a/b", &found));
    UNIT_TEXT(found.title, "/a/*"); /* the first element decides */
    UNIT_TEXT(found.dispatcher, "pinned");
    UNIT_TRUE(found.mailbox == NULL);
    UNIT_TRUE(trpi_deployment_find(system, "/c/b", &found));
    UNIT_TEXT(found.dispatcher, "one");
    UNIT_TRUE(trpi_deployment_find(system, "/c/d", &found));
    UNIT_TEXT(found.dispatcher, "two");
    UNIT_TEXT(trpi_deployment_text(&found, "dispatcher"), "two");
    UNIT_FALSE(trpi_deployment_find(system, "/a", &found));
    UNIT_FALSE(trpi_deployment_find(system, "/a/b/c", &found));
    stage_close(system);
    system = stage_open();
    UNIT_FALSE(trpi_deployment_find(system, "/a/b", &found));
    UNIT_TRUE(trp_system_config(system) == NULL);
    stage_close(system);
}

/* ---- an actor that stashes, and reports the result --------------------------------------------
 */

static trp_err
hoarder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[32];
    (void)state;
    snprintf(text, sizeof text, "%d", (int)trp_stash(ctx, msg));
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static const trp_behaviour hoarder = {
    .size = sizeof(trp_behaviour), .name = "hoarder", .version = 1, .receive = hoarder_receive
};

static int
stash_once(trp_system *system, trp_ref ref)
{
    char answer[32] = "";
    UNIT_EQUAL(stage_ask(system, ref, "keep", answer, sizeof answer), TRP_OK);
    return atoi(answer);
}

/* BEH-9, CONF-4: the capacity of the default mailbox, unless the code says another one */
static void
stash_capacity_is_a_setting(void)
{
    trp_system *system = system_of("actor { default-mailbox { stash-capacity = 2 } }");
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = stage_spawn(system, &hoarder, "two"), more = TRP_REF_NONE;
    UNIT_EQUAL(stash_once(system, ref), TRP_OK);
    UNIT_EQUAL(stash_once(system, ref), TRP_OK);
    UNIT_EQUAL(stash_once(system, ref), TRP_ELIMIT);
    options.stash_msgs_max = 3;
    UNIT_EQUAL(trp_system_spawn(system, &hoarder, &options, &more), TRP_OK);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(stash_once(system, more), TRP_OK);
    }
    UNIT_EQUAL(stash_once(system, more), TRP_ELIMIT);
    stage_close(system);
}

static void
note_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    stage_write(&stage_lines, "[%d %s]", (int)line->level, line->text);
}

/* SYS-2, SYS-6, CONF-6, CONF-7, CONF-25, LOG-12; decision 30 */
static void
configuration_is_stronger_than_code_and_code_than_the_reference(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = stage_config("log { level = error }\nlog-config-on-start = on");
    options.config = config;
    options.log = note_line;
    options.log_level = TRP_LOG_DEBUG;
    trp_system *system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_WARNING, "t", "quiet please");
    trp_system_log(system, TRP_LOG_ERROR, "t", "this is said");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    UNIT_FALSE(stage_book_has(&stage_lines, "quiet please"));
    STAGE_LOGGED("[1 this is said]");
    stage_close(system);
    trp_config_unref(config);

    config = stage_config("log-config-on-start = on\napp { who = me }");
    options.config = config;
    options.log_level = 0;
    system = stage_open_with(options);
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("[3 log-config-on-start = on (t.conf:1)]");
    STAGE_LOGGED("[3 app.who = me (t.conf:2)]");
    trp_system_log(system, TRP_LOG_DEBUG, "t", "too much");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    UNIT_FALSE(stage_book_has(&stage_lines, "too much"));
    /* CONF-25: an actor or an extension reads the application's own settings */
    trp_config *own = trp_system_config(system);
    const char *who = "";
    UNIT_EQUAL(trp_config_get_text(own, "app.who", &who, NULL), TRP_OK);
    UNIT_TEXT(who, "me");
    trp_config_unref(own);
    stage_close(system);
    trp_config_unref(config);
}

/* CONF-7, LOG-06, LOG-11, LOG-13: from the file to what is logged */
static void
logging_is_configured(void)
{
    trp_system *system = system_of("loglevel = DEBUG\n"
                                   "log { format = json stdout-level = off queue-size = 77 }\n"
                                   "log-dead-letters = off\n"
                                   "logger-startup-timeout = \"2 seconds\"\n"
                                   "actor { debug { lifecycle = on } }\n");
    trp_ref ref = stage_spawn(system, &keeper, "seen");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/seen"), 5000); /* that it has started */
    UNIT_EQUAL(trp_system_graceful_stop(system, ref, 60000), TRP_OK);
    stage_tell(system, ref, "too late");
    trp_system_log(system, TRP_LOG_ERROR, "t", "the last word");
    UNIT_WAIT(stage_book_has(&stage_lines, "the last word"), 5000);
    UNIT_FALSE(stage_book_has(&stage_lines, "dead letter"));
    UNIT_EQUAL(system->logging.stdout_level, 0);
    UNIT_EQUAL(system->logging.queue_max, 77);
    UNIT_EQUAL(system->logging.start_ms, 2000);
    UNIT_EQUAL(system->logging.json, 1);
    UNIT_EQUAL(system->logging.no_dead_letters_at_end, 0);
    UNIT_EQUAL(system->logging.debug, TRP_DEBUG_LIFECYCLE);
    stage_close(system);
    system = system_of("log { level = off dead-letters-during-shutdown = off }");
    trp_system_log(system, TRP_LOG_ERROR, "t", "nobody hears");
    UNIT_FALSE(trpi_log_wanted(system, TRP_LOG_ERROR));
    UNIT_EQUAL(system->logging.no_dead_letters_at_end, 1);
    stage_close(system);
    UNIT_FALSE(stage_book_has(&stage_lines, "nobody hears"));
    /* the switch of the code stays where the configuration is silent */
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    logging.debug = TRP_DEBUG_UNHANDLED | TRP_DEBUG_LIFECYCLE;
    options.logging = &logging;
    trp_config *config = stage_config("actor { debug { lifecycle = off event-stream = on } }");
    options.config = config;
    system = stage_open_with(options);
    UNIT_EQUAL(system->logging.debug, TRP_DEBUG_UNHANDLED | TRP_DEBUG_EVENT_STREAM);
    stage_close(system);
    trp_config_unref(config);
}

/* DISP-14 */
static void
scheduler_is_configured(void)
{
    trp_system *system =
        system_of("scheduler { tick-duration = 20ms ticks-per-wheel = 128 shutdown-timeout = 3s }");
    UNIT_EQUAL(system->scheduling.tick_ms, 20);
    UNIT_EQUAL(system->scheduling.ticks_per_wheel, 128);
    UNIT_EQUAL(system->scheduling.stop_ms, 3000);
    stage_close(system);
    trp_config *config = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(
        trp_config_parse_text("t.conf", "scheduler { ticks-per-wheel = 100 }", &config, &error),
        TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:1: scheduler.ticks-per-wheel: 100 is no power of two");
}

/* TEST-7, TEST-1, MNT-17 */
static void
test_kit_is_configured(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_config *config = stage_config("test { timefactor = 2.5 default-timeout = 4s\n"
                                      "single-expect-default = 7s filter-leeway = 9s }");
    system_options.config = config;
    options.system_options = &system_options;
    UNIT_EQUAL(trp_testkit_open(&options, &kit), TRP_OK);
    UNIT_EQUAL(trp_testkit_dilated(kit, 100), 250);
    UNIT_EQUAL(trp_testkit_timeout_ms(kit), 10000);
    UNIT_EQUAL(kit->options.expect_ms, 7000); /* undilated: testkit_test.c has their use */
    UNIT_EQUAL(kit->options.leeway_ms, 9000);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    trp_config_unref(config);
}

UNIT_BEGIN("settings")
UNIT(deployment_sections_move_actors_by_their_path)
UNIT(unnamed_actors_are_deployed_by_a_star)
UNIT(dispatcher_that_is_not_there_refuses_the_spawn)
UNIT(dispatchers_are_configured)
UNIT(mailboxes_are_configured)
UNIT(a_configured_mailbox_reaches_its_actors)
UNIT(wrong_dispatchers_are_refused)
UNIT(sections_are_found_by_path)
UNIT(stash_capacity_is_a_setting)
UNIT(configuration_is_stronger_than_code_and_code_than_the_reference)
UNIT(logging_is_configured)
UNIT(scheduler_is_configured)
UNIT(test_kit_is_configured)
UNIT_END
