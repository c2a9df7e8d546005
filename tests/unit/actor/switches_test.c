/* switches_test.c - configuration keys of the local system: traces, the stall warning, mailbox
 * requirements. */
#include "tests/unit/actor/stage.h"

#include <troupe/config.h>
#include <troupe/dispatcher.h>
#include <troupe/mailbox.h>

#include "actor/kernel/dispatcher.h"
#include "actor/log/log.h"
#include "actor/kernel/system.h"

/* The log lines of a system that does not start. */
static void
refused(const char *text, const char *line)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = stage_config(text);
    trp_system *system = NULL;

    options.config = config;
    options.log = stage_log;
    stage_clear(&stage_lines);
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_ECONFIG);
    STAGE_LOGGED(line);
    trp_config_unref(config);
}

/* ---- traces ---------------------------------------------------------------------------------- */

static trp_err
second_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_timer_cancel(ctx, 7);
    trp_unbecome(ctx);
    trp_unbecome(ctx); /* the stack of behaviours is empty */
    trp_reply_text(ctx, "done");
    return TRP_OK;
}

static trp_err
first_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    UNIT_EQUAL(trp_timer_once(ctx, 7, 3600000, &trp_string_type, "t", 1), TRP_OK);
    UNIT_EQUAL(trp_become(ctx, second_receive, 1), TRP_OK);
    trp_reply_text(ctx, "done");
    return TRP_OK;
}
static const trp_behaviour machine = TRP_BEHAVIOUR_INIT("machine", char, first_receive);

/* LOG-13, TEST-14: transitions, timers, and messages that the runtime handles; none without its
 * switch */
static void
state_machines_and_automatic_messages_are_traced_by_their_keys(void)
{
    trp_mailbox_view view;
    char answer[8];

    for (int on = 0; on < 2; on++) {
        trp_system *system = stage_open_config(
            on ? "log { level = debug } actor { debug { fsm = on autoreceive = on } }"
               : "log { level = debug }");
        trp_ref m = stage_spawn(system, &machine, "m");

        UNIT_EQUAL(stage_ask(system, m, "go", answer, sizeof answer), TRP_OK);
        UNIT_EQUAL(stage_ask(system, m, "back", answer, sizeof answer), TRP_OK);
        trp_system_tell(system, m, &trp_poison_pill_type, NULL, 0);
        UNIT_WAIT(trp_mailbox_look(system, m, &view) == TRP_ENOENT, 30000); /* it has ended */
        stage_close(system);
        UNIT_EQUAL(stage_book_has(&stage_lines, "[4 /user/m: becomes another behaviour depth=1]"),
                   on);
        UNIT_EQUAL(
            stage_book_has(&stage_lines, "[4 /user/m: goes back to the behaviour below depth=0]"),
            on);
        UNIT_EQUAL(stage_book_has(&stage_lines, "[4 /user/m: sets timer 7 type=troupe.string "
                                                "delay-ms=3600000 interval-ms=0]"),
                   on);
        UNIT_EQUAL(stage_book_has(&stage_lines, "[4 /user/m: cancels timer 7]"), on);
        UNIT_EQUAL(stage_book_has(&stage_lines, "[4 /user/m: received automatic message of type "
                                                "troupe.poison-pill]"),
                   on);
    }
}

/* TEST-14, LOG-13: Each key of actor.debug is read by its own flag. */
static void
every_key_of_a_trace_sets_its_flag(void)
{
    static const struct {
        const char *key;
        uint32_t flag;
    } keys[] = {
        { "receive", TRP_DEBUG_RECEIVE },
        { "autoreceive", TRP_DEBUG_AUTORECEIVE },
        { "lifecycle", TRP_DEBUG_LIFECYCLE },
        { "fsm", TRP_DEBUG_FSM },
        { "event-stream", TRP_DEBUG_EVENT_STREAM },
        { "unhandled", TRP_DEBUG_UNHANDLED },
        { "router-misconfiguration", TRP_DEBUG_ROUTER },
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[96];

        snprintf(text, sizeof text, "actor { debug { %s = on } }", keys[i].key);
        trp_system *system = stage_open_config(text);
        UNIT_EQUAL(system->logging.debug, keys[i].flag);
        stage_close(system);
    }
}

/* ---- stall-warning --------------------------------------------------------------------------- */

static _Atomic bool let_go;

static trp_err
holder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    while (!atomic_load(&let_go)) {
        unit_pause();
    }
    stage_note("let go");
    return TRP_OK;
}
static const trp_behaviour holder = TRP_BEHAVIOUR_INIT("holder", char, holder_receive);

/* Stall warning: the key sets how long, and 0ms is off. */
static void
the_stall_warning_is_a_key(void)
{
    trp_system *system = stage_open_config("actor { stall-warning = 40ms }");

    atomic_store(&let_go, false);
    stage_tell(system, stage_spawn(system, &holder, "slow"), "hold");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/slow: one message holds its worker"), 30000);
    atomic_store(&let_go, true);
    STAGE_EXPECT("let go");
    stage_close(system);

    system = stage_open_config("actor { stall-warning = 0ms }");
    UNIT_TRUE(system->stall == NULL);
    stage_close(system);
    system = stage_open_config("");
    UNIT_TRUE(system->stall != NULL);
    stage_close(system);
}

/* ---- requirements ---------------------------------------------------------------------------- */

static trp_err
quiet_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour plain = TRP_BEHAVIOUR_INIT("plain", char, quiet_receive);

static trp_err
spawn_requiring(trp_system *system, uint32_t requirement, const char *dispatcher,
                trp_mailbox_view *ret_view)
{
    static trp_behaviour behaviours[8];
    static uint32_t used;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_behaviour *behaviour = &behaviours[used++ % 8];
    trp_ref ref = TRP_REF_NONE;
    trp_err err;

    *behaviour = plain;
    behaviour->mailbox_requirement = requirement;
    options.dispatcher = dispatcher;
    err = trp_system_spawn(system, behaviour, &options, &ref);
    if (err == TRP_OK) {
        UNIT_EQUAL(trp_mailbox_look(system, ref, ret_view), TRP_OK);
    }
    return err;
}

/* MBOX-8: the mailbox of a requirement is configured */
static void
a_requirement_is_served_by_what_the_configuration_names(void)
{
    trp_mailbox_view view = { .exact = 0 };
    trp_system *system = stage_open_config("");

    /* as it is from the start: deques are not counted, and nothing is durable */
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_DEQUE, NULL, &view), TRP_OK);
    UNIT_EQUAL(view.exact, 0);
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_MULTI_CONSUMER, NULL, &view), TRP_OK);
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_DURABLE, NULL, &view), TRP_EINVAL);
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_STABLE, NULL, &view), TRP_EINVAL);
    stage_close(system);

    system =
        stage_open_config("mailbox \"small\" { mailbox-type = bounded mailbox-capacity = 2 }\n"
                          "actor { mailbox { requirements { deque = small multi-consumer = counted "
                          "} } }\n");
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_DEQUE, NULL, &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1); /* the bounded one counts */
    UNIT_EQUAL(spawn_requiring(system, TRP_MAILBOX_MULTI_CONSUMER, NULL, &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1);
    UNIT_EQUAL(spawn_requiring(system, 0, NULL, &view), TRP_OK); /* who requires nothing */
    UNIT_EQUAL(view.exact, 0);
    stage_close(system);

    refused("actor { mailbox { requirements { bounded = unbounded } } }",
            "t.conf:1: actor.mailbox.requirements.bounded: no mailbox \"unbounded\", or it is not "
            "bounded");
    refused("actor { mailbox { requirements { durable = nowhere } } }",
            "no mailbox \"nowhere\", or it is not durable");
}

/* MBOX-9, DISP-8: a dispatcher requires the properties of its section */
static void
a_dispatcher_requires_what_its_section_says(void)
{
    trp_mailbox_view view = { .exact = 0 };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    trp_system *system = stage_open_config(
        "dispatcher \"d\" { type = pool mailbox-requirement = { bounded, counted } }\n"
        "dispatcher \"e\" { type = pool }\n");

    UNIT_EQUAL(spawn_requiring(system, 0, "d", &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1);
    UNIT_EQUAL(spawn_requiring(system, 0, "e", &view), TRP_OK);
    UNIT_EQUAL(view.exact, 0);
    options.dispatcher = "d";
    options.mailbox = "unbounded"; /* named, but without the required property */
    UNIT_EQUAL(trp_system_spawn(system, &plain, &options, &ref), TRP_EINVAL);
    options.dispatcher = "e";
    UNIT_EQUAL(trp_system_spawn(system, &plain, &options, &ref), TRP_OK);
    stage_close(system);

    trp_config_error error = { "" };
    trp_config *config = NULL;
    UNIT_EQUAL(trp_config_parse_text("t.conf",
                                     "dispatcher \"d\" { mailbox-requirement = {bouded} }", &config,
                                     &error),
               TRP_ECONFIG);
    UNIT_TRUE(strstr(error.text, "t.conf:1: dispatcher.d.mailbox-requirement: 'bouded' is not one "
                                 "of unbounded|bounded|") == error.text);
}

/* DISP-8: the default dispatcher has the same settings */
static void
the_default_dispatcher_has_settings_of_its_own(void)
{
    trp_dispatcher_info info = { .size = sizeof info };
    trp_mailbox_view view = { .exact = 0 };
    trp_system *system =
        stage_open_config("actor { default-dispatcher { workers = 3 throughput = 5\n"
                          "throughput-deadline-time = 7ms mailbox-requirement = {counted} } }");

    UNIT_EQUAL(trp_dispatcher_find(system, "default", &info), TRP_OK);
    UNIT_EQUAL(system->options.workers, 3);
    UNIT_EQUAL(system->options.throughput, 5);
    UNIT_EQUAL(info.throughput, 5);
    UNIT_EQUAL(trpi_dispatcher_get(system, 0)->options.throughput_deadline_ms, 7);
    UNIT_EQUAL(spawn_requiring(system, 0, NULL, &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1);
    UNIT_EQUAL(spawn_requiring(system, 0, "blocking", &view), TRP_OK);
    UNIT_EQUAL(view.exact, 0);
    stage_close(system);
    system = stage_open_config("");
    UNIT_EQUAL(system->options.throughput, TRP_THROUGHPUT_DEFAULT);
    UNIT_EQUAL(trp_dispatcher_find(system, "default", &info), TRP_OK);
    UNIT_EQUAL(trpi_dispatcher_get(system, 0)->options.throughput_deadline_ms, 0);
    stage_close(system);
}

UNIT_BEGIN("switches")
UNIT(state_machines_and_automatic_messages_are_traced_by_their_keys)
UNIT(every_key_of_a_trace_sets_its_flag)
UNIT(the_stall_warning_is_a_key)
UNIT(a_requirement_is_served_by_what_the_configuration_names)
UNIT(a_dispatcher_requires_what_its_section_says)
UNIT(the_default_dispatcher_has_settings_of_its_own)
UNIT_END
