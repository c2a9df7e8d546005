/* stats_service.h - for stats.c and stats_master.c: a service that has words counted. */
#include "stats.h"

static trp_err
serve(trp_ctx *ctx, void *router, const trp_msg *msg)
{
    const char *text = trp_msg_payload(msg), *end = text + trp_msg_bytes(msg), *next;
    job j = { .asker = trp_sender(ctx), .words = 1 };
    trp_ref to;
    if (trp_spawn(ctx, &aggregator, NULL, &to) != TRP_OK) {
        return TRP_ENOMEM;
    }
    for (const char *at = text; at < end; at++) {
        j.words += *at == ' ' ? 1 : 0;
    }
    trp_tell(ctx, to, &trp_bytes_type, &j, sizeof j);
    for (; text <= end; text = next + 1) { /* equal words go to the same worker */
        next = text < end ? memchr(text, ' ', (size_t)(end - text)) : NULL;
        next = next != NULL ? next : end;
        trp_system_router_tell_keyed(trp_ctx_system(ctx), *(trp_ref *)router, to, text,
                                     (size_t)(next - text), &trp_string_type, text,
                                     (size_t)(next - text));
    }
    return TRP_OK;
}

/* The configuration says which kind of router it is, and where its routees are. */
static trp_err
serve_start(trp_ctx *ctx, void *router, const trp_msg *args)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    (void)args;
    options.from_config = 1;
    return trp_router_spawn(ctx, &worker, NULL, "workerRouter", &options, router);
}
static const trp_behaviour service = { .size = sizeof service,
                                       .name = "statsService",
                                       .state_bytes = sizeof(trp_ref),
                                       .receive = serve,
                                       .pre_start = serve_start };
