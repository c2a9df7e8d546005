/* dispatcher.c - work that blocks has threads of its own, as many as its resource bears. */
#include <stdio.h>
#include <troupe/troupe.h>

/* A query that blocks: four connections, so four threads, and no other actor waits for them. */
static trp_err
query_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char text[128];
    (void)state;
    snprintf(text, sizeof text, "%.*s on %s", (int)trp_msg_bytes(msg),
             (const char *)trp_msg_payload(msg), trp_dispatcher_id(ctx));
    trp_reply_text(ctx, text);
    return TRP_OK;
}
static const trp_behaviour query = { sizeof query, "query", .receive = query_receive };

static void
ask(trp_system *system, trp_ref ref, const char *question, size_t bytes)
{
    trp_msg *reply = NULL;
    if (trp_system_ask(system, ref, &trp_string_type, question, bytes, 5000, &reply) == TRP_OK) {
        printf("%.*s\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply));
    }
    trp_msg_free(reply);
}

int
main(void)
{
    trp_dispatcher_options threads = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT, alone = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options pool = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system;
    trp_ref queries, device;
    threads.kind = TRP_DISPATCHER_BLOCKING;
    threads.threads_min = threads.threads_max = 4;
    routee.dispatcher = "database";
    pool.logic = "smallest-mailbox";
    pool.instances = 4;
    alone.dispatcher = "pinned"; /* one thread for the life of the actor */
    if (trp_system_new("threads", NULL, &system) != TRP_OK ||
        trp_dispatcher_register(system, "database", &threads) != TRP_OK ||
        trp_system_router_spawn(system, &query, &routee, "queries", &pool, &queries) != TRP_OK ||
        trp_system_spawn(system, &query, &alone, &device) != TRP_OK) {
        return 1;
    }
    ask(system, queries, "query", 5);
    ask(system, device, "device", 6);
    trp_system_free(system);
    return 0;
}
