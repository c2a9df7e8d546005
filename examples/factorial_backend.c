/* factorial_backend.c - computes factorials for factorial_frontend.c; load it into as many nodes as
 * you like.
 *
 *     troupe node --system factorial --port 2552 --seed self --role backend \
 *         --load ./factorial_backend.so
 */
#include "factorial.h"

/* How many decimal digits n! has; it is computed in full, nine digits in each limb. */
static uint32_t
digits_of_factorial(uint32_t n)
{
    uint32_t limbs[512] = { 1 }, count = 1, digits = 0; /* enough for 1500! */
    for (uint32_t factor = 2; factor <= n && count < 512; factor++) {
        uint64_t carry = 0;
        for (uint32_t i = 0; i < count; i++, carry /= 1000000000) {
            carry += (uint64_t)limbs[i] * factor;
            limbs[i] = (uint32_t)(carry % 1000000000);
        }
        if (carry > 0) {
            limbs[count++] = (uint32_t)carry;
        }
    }
    for (uint32_t top = limbs[count - 1]; top > 0; top /= 10) {
        digits++;
    }
    return digits + 9 * (count - 1);
}

static trp_err
backend_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &factorial_job_type)) {
        const factorial_job *job = trp_msg_payload(msg);
        factorial_result result = { job->batch, job->n, digits_of_factorial(job->n) };
        trp_reply(ctx, &factorial_result_type, &result, sizeof result);
    }
    return TRP_OK;
}
static const trp_behaviour backend = TRP_BEHAVIOUR_INIT("backend", char, backend_receive);

static trp_err
backend_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_err err = trp_protocol_register(&factorial_protocol);
    (void)arguments, (void)ret_state, (void)ret_error;
    options.name = "factorialBackend";
    return err != TRP_OK ? err : trp_system_spawn(trp_node_system(node), &backend, &options, &ref);
}
TRP_PLUGIN("factorial_backend", backend_init, NULL)
