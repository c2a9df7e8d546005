/* frontend.c - a plugin: gives each job to one of the backends that have dialled in, in turn.
 *
 *     troupe node --role frontend --load frontend.so     any number of them, at any time
 *     troupe ask /user/frontend hello                    prints: HELLO
 */
#include "transformation.h"

enum { BACKENDS_MAX = 16 };

typedef struct frontend {
    uint32_t count, jobs;
    trp_ref backends[BACKENDS_MAX];
} frontend;

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    frontend *f = state;
    if (trp_msg_is(msg, &trp_terminated_type)) { /* it has ended, or its node is lost */
        const trp_terminated *gone = trp_msg_payload(msg);
        for (uint32_t i = f->count; i-- > 0;) {
            if (trp_ref_equal(f->backends[i], gone->ref)) {
                f->backends[i] = f->backends[--f->count];
            }
        }
    } else if (trp_msg_is(msg, &transformation_registration_type)) {
        for (uint32_t i = 0; i < f->count; i++) {
            if (trp_ref_equal(f->backends[i], trp_sender(ctx))) {
                return TRP_OK; /* it has dialled in twice */
            }
        }
        if (f->count < BACKENDS_MAX && trp_watch(ctx, trp_sender(ctx)) == TRP_OK) {
            f->backends[f->count++] = trp_sender(ctx);
        }
    } else if (f->count == 0) {
        trp_reply_text(ctx, "Service unavailable, try again later");
    } else { /* the backend answers the sender */
        trp_forward(ctx, f->backends[f->jobs++ % f->count], msg);
    }
    return TRP_OK;
}
static const trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("frontend", frontend, receive);

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    (void)arguments, (void)ret_state, (void)ret_error;
    return transformation_start(node, &behaviour);
}
TRP_PLUGIN("frontend", init, NULL)
