/* web.c - either end of an endpoint, for tests/system/web.sh and for measuring.
 *
 *     web consume URI              prints "at ADDRESS", replies to each message with its body
 *     web produce URI TEXT [COUNT] prints the reply, or COUNT times nothing, and the rate
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <troupe/troupe.h>

struct web {
    trp_ref endpoint;
};
static const char *mode, *uri, *text;
static unsigned long count = 1, done;
static uint64_t began_ns;
static int failed;

static trp_err
text_send(trp_ctx *ctx, const struct web *w)
{
    trp_bytes body;
    trp_err err = trp_bytes_copy(text, strlen(text), &body);
    if (err == TRP_OK) {
        err = trp_endpoint_send(ctx, w->endpoint, body, NULL, 0, 1);
        trp_bytes_unref(&body);
    }
    return err;
}

static trp_err
web_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct web *w = state;
    trp_endpoint_options options = TRP_ENDPOINT_OPTIONS_INIT;
    (void)args;
    options.acknowledges = 1;
    options.message_bytes_max = 4u << 20;
    if (strcmp(mode, "consume") == 0) {
        return trp_consumer_open(ctx, uri, &options, &w->endpoint);
    }
    options.acknowledges = 0;
    options.timeout_ms = 20000;
    began_ns = trp_now_ns(ctx);
    trp_err err = trp_producer_open(ctx, uri, &options, &w->endpoint);
    return err == TRP_OK ? text_send(ctx, w) : err;
}

static void
web_end(trp_ctx *ctx, int code)
{
    failed = code;
    trp_system_shutdown(trp_ctx_system(ctx));
}

static trp_err
reply_take(trp_ctx *ctx, const struct web *w, const trp_endpoint_message *m)
{
    static char body[4u << 20];
    if (++done < count) {
        return text_send(ctx, w);
    }
    if (count > 1) {
        double seconds = (double)(trp_now_ns(ctx) - began_ns) / 1e9;
        printf("%lu round trips, %.0f a second\n", count, (double)count / seconds);
    } else {
        size_t bytes = trp_bytes_copy_out(m->body, 0, body, sizeof body);
        const char *status = trp_endpoint_header_get(m, "http.status");
        printf("%s%.*s\n", status != NULL ? status : "", (int)bytes, body);
    }
    web_end(ctx, 0);
    return TRP_OK;
}

static trp_err
web_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct web *w = state;
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    if (m != NULL && m->exchange == 0) {
        return reply_take(ctx, w, m);
    }
    if (m != NULL) {
        const trp_endpoint_header subject = { "x-subject",
                                              trp_endpoint_header_get(m, "tls.subject") };
        return trp_endpoint_reply(ctx, w->endpoint, m->exchange, m->body, &subject,
                                  subject.value != NULL ? 1 : 0);
    }
    if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        const trp_endpoint_event *e = trp_msg_payload(msg);
        if (e->event == TRP_ENDPOINT_STARTED && strcmp(mode, "consume") == 0) {
            printf("at %s\n", e->reason);
            fflush(stdout);
        } else if (e->event == TRP_ENDPOINT_STOPPED && e->err != TRP_OK) {
            printf("stopped: %s\n", e->reason);
            web_end(ctx, 1);
        }
    } else if (trp_msg_is(msg, &trp_endpoint_error_type)) {
        printf("error: %s\n", ((const trp_endpoint_error *)trp_msg_payload(msg))->reason);
        if (strcmp(mode, "produce") == 0) {
            web_end(ctx, 1);
        }
    }
    return TRP_OK;
}

int
main(int argc, char **argv)
{
    trp_behaviour web = TRP_BEHAVIOUR_INIT("web", struct web, web_receive);
    trp_system *system;
    trp_ref ref;
    if (argc < 3) {
        return 64;
    }
    mode = argv[1];
    uri = argv[2];
    text = argc > 3 ? argv[3] : "";
    count = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
    web.pre_start = web_start;
    if (trp_system_new("web", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &web, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_err err = trp_system_await(system, 600000);
    trp_system_free(system);
    return err == TRP_OK ? failed : 1;
}
