/* logging.c - lines with a level, a context, and a logger of one's own that writes them as JSON. */
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_err err = trp_log_mdc_put(ctx, "customer", "ann");

    TRP_LOG_INFO(ctx, "opened account %d", 7);
    TRP_LOG_DEBUG(ctx, "not at this level, not even formatted");
    return err;
}

/* The first message asks whether the logger is ready; then come log events. */
static trp_err
json_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[1024];
    trp_log_line line;

    (void)state;
    if (trp_msg_is(msg, &trp_logger_init_type)) {
        trp_reply(ctx, &trp_logger_ready_type, NULL, 0);
    } else if (trp_log_event_line(msg, &line) != 0) {
        (void)trp_log_format(&line, 1, text, sizeof text);
        fputs(text, stdout);
    }
    return TRP_OK;
}

static const trp_behaviour json = TRP_BEHAVIOUR_INIT("json", char, json_receive);
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", char, teller_receive);
int
main(void)
{
    const trp_behaviour *const loggers[] = { &json, NULL };
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    const trp_identify done = { 1 };
    trp_system *system;
    trp_msg *reply;
    trp_ref ref;

    logging.loggers = loggers;
    logging.no_default = 1;
    options.logging = &logging;
    if (trp_system_new("bank", &options, &system) != TRP_OK ||
        trp_system_spawn(system, &teller, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &trp_string_type, "open", 4);
    if (trp_system_ask(system, ref, &trp_identify_type, &done, sizeof done, 5000, &reply) ==
        TRP_OK) { /* all lines are written */
        trp_msg_free(reply);
    }
    trp_system_free(system); /* stops it first; no line is lost */
    return 0;
}
