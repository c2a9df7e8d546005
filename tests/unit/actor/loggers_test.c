/* loggers_test.c - the loggers of a system: set in the code, or by name in the configuration. */
#include "tests/unit/actor/stage.h"

#include <troupe/config.h>
#include <troupe/log.h>

/* A logger that notes its lines with the name of its behaviour. */
static trp_err
write_down(trp_ctx *ctx, const trp_msg *msg, const char *who)
{
    trp_log_line line;

    if (trp_msg_is(msg, &trp_logger_init_type)) {
        trp_reply(ctx, &trp_logger_ready_type, NULL, 0);
    } else if (trp_log_event_line(msg, &line) != 0 && strcmp(line.source, "t") == 0) {
        stage_note("%s:%s", who, line.text);
    }
    return TRP_OK;
}
static trp_err
red_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    return write_down(ctx, msg, "red");
}
static trp_err
blue_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    return write_down(ctx, msg, "blue");
}
static const trp_behaviour red = TRP_BEHAVIOUR_INIT("red", char, red_receive);
static const trp_behaviour blue = TRP_BEHAVIOUR_INIT("blue", char, blue_receive);
static const trp_behaviour *const only_red[] = { &red, NULL };
static const trp_behaviour *const only_blue[] = { &blue, NULL };

/* Log one line with this configuration: which loggers write it, and in which order. */
static void
who_writes(const char *text, bool want_red, bool want_blue, bool want_default)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_config *config = stage_config(text);
    trp_system *system;

    options.config = config;
    options.logging = &logging;
    logging.loggers = only_red;
    logging.offered = only_blue;
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_INFO, "t", "hello");
    UNIT_EQUAL(trp_log_flush(system, 30000), TRP_OK);
    UNIT_EQUAL(stage_count("red:hello"), want_red);
    UNIT_EQUAL(stage_count("blue:hello"), want_blue);
    UNIT_EQUAL(stage_book_has(&stage_lines, "[3 t: hello]"), want_default);
    stage_close(system);
    trp_config_unref(config);
}

/* CONF-7, LOG-07, ES-02: `loggers` names them; without it the code decides, and a logger that is
 * only offered is not started */
static void
the_configuration_names_the_loggers(void)
{
    who_writes("", true, false, true);
    who_writes("log { loggers = { blue } }", false, true, false);
    who_writes("loggers = { blue, red, default }", true, true, true); /* Akka's name for the key */
    who_writes("log { loggers = { default } }", false, false, true);
}

/* CONF-7: none at all: lines go out at once, by their own level */
static void
no_logger_is_a_choice(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = stage_config("log { loggers = {} stdout-level = warning }");
    trp_system *system;

    options.config = config;
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_INFO, "t", "quiet");
    trp_system_log(system, TRP_LOG_WARNING, "t", "loud");
    UNIT_TRUE(stage_book_has(&stage_lines, "[2 t: loud]")); /* at once */
    UNIT_FALSE(stage_book_has(&stage_lines, "quiet"));
    stage_close(system);
    trp_config_unref(config);
}

static void
refused(trp_config *config, const trp_log_options *logging, const char *line)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    options.config = config;
    options.logging = logging;
    options.log = stage_log;
    stage_clear(&stage_lines);
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_ECONFIG);
    STAGE_LOGGED(line);
}

/* CONF-7: with the place of the mistake */
static void
a_logger_that_nobody_brings_is_refused(void)
{
    trp_config *config = stage_config("log {\n  loggers = { default, green }\n}");
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;

    logging.loggers = only_red;
    refused(config, &logging, "t.conf:2: log.loggers: the program has no logger \"green\"");
    trp_config_unref(config);
}

/* TRP_LOGGERS_MAX, in code and by name: at the limit and one past it */
static void
there_is_a_limit_of_loggers(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    const trp_behaviour *many[TRP_LOGGERS_MAX + 2] = { NULL };
    char names[16 * (TRP_LOGGERS_MAX + 2)] = "log { loggers = { default";
    trp_system *system = NULL;

    for (int i = 0; i < TRP_LOGGERS_MAX; i++) {
        many[i] = &red;
        strcat(names, ", red");
    }
    options.logging = &logging;
    logging.loggers = many;
    system = stage_open_with(options);
    trp_system_log(system, TRP_LOG_INFO, "t", "x");
    UNIT_EQUAL(trp_log_flush(system, 30000), TRP_OK);
    UNIT_EQUAL(stage_count("red:x"), TRP_LOGGERS_MAX);
    stage_close(system);

    logging.loggers = only_red;
    {
        char text[sizeof names + 16];
        trp_config *config;

        snprintf(text, sizeof text, "%s } }", names);
        config = stage_config(text);
        options.config = config;
        system = stage_open_with(options);
        trp_system_log(system, TRP_LOG_INFO, "t", "y");
        UNIT_EQUAL(trp_log_flush(system, 30000), TRP_OK);
        UNIT_EQUAL(stage_count("red:y"), TRP_LOGGERS_MAX);
        stage_close(system);
        trp_config_unref(config);
        snprintf(text, sizeof text, "%s, red } }", names);
        config = stage_config(text);
        refused(config, &logging, "t.conf:1: log.loggers: too many loggers at \"red\"");
        trp_config_unref(config);
        options.config = NULL;
    }

    many[TRP_LOGGERS_MAX] = &red;
    logging.loggers = many;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
    logging.loggers = NULL;
    logging.offered = many;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
}

UNIT_BEGIN("loggers")
UNIT(the_configuration_names_the_loggers)
UNIT(no_logger_is_a_choice)
UNIT(a_logger_that_nobody_brings_is_refused)
UNIT(there_is_a_limit_of_loggers)
UNIT_END
