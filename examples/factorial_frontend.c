/* factorial_frontend.c - has the factorials of 1 to N computed by the backends, again and again;
 * factorial.conf says how they are chosen.
 *
 *     troupe node --config factorial.conf --port 0 --seed troupe.tcp://factorial@127.0.0.1:2552 \
 *         --load ./factorial_frontend.so:200
 */
#include "factorial.h"
#include <stdlib.h>

struct state {
    trp_ref router;
    uint32_t up_to, batch, results, digits;
};
static trp_err
frontend_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct state *f = state;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    f->up_to = *(const uint32_t *)trp_msg_payload(args);
    options.from_config = 1;
    trp_receive_timeout_set(ctx, 500); /* also when no backend is there yet, or one was lost */
    return trp_router_spawn(ctx, NULL, NULL, "factorialBackendRouter", &options, &f->router);
}
static trp_err
frontend_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct state *f = state;
    const factorial_result *result = trp_msg_payload(msg);
    if (trp_msg_is(msg, &trp_receive_timeout_type)) { /* the next batch */
        f->batch++;
        f->results = 0;
        for (uint32_t n = 1; n <= f->up_to; n++) {
            factorial_job job = { f->batch, n };
            trp_tell(ctx, f->router, &factorial_job_type, &job, sizeof job);
        }
    } else if (trp_msg_is(msg, &factorial_result_type) && result->batch == f->batch) {
        f->digits = result->n == f->up_to ? result->digits : f->digits;
        if (++f->results == f->up_to) {
            trp_log(ctx, TRP_LOG_INFO, "%u! has %u digits", f->up_to, f->digits);
        }
    }
    return TRP_OK;
}
static const trp_behaviour frontend = { .size = sizeof(trp_behaviour), .name = "frontend",
    .receive = frontend_receive, .state_bytes = sizeof(struct state), .pre_start = frontend_start };

static trp_err
frontend_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    uint32_t up_to = (uint32_t)strtoul(arguments[0] != 0 ? arguments : "200", NULL, 10);
    trp_spawn_options options = { sizeof options, "factorialFrontend", .args_type = &trp_bytes_type,
                                  .args = &up_to, .args_bytes = sizeof up_to };
    trp_ref ref;
    trp_err err = trp_protocol_register(&factorial_protocol);
    (void)ret_state, (void)ret_error;
    return err != TRP_OK ? err
                         : trp_system_spawn(trp_node_system(node), &frontend, &options, &ref);
}
TRP_PLUGIN("factorial_frontend", frontend_init, NULL)
