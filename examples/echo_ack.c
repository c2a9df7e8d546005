/* echo_ack.c - an echo server that writes one piece after the other: each waits for the ack of the
 * one before, so no write ever fails for want of room. */
#include "echo_peer.h"

typedef struct echo {
    trp_ref connection;
    store store;
    int closing;
} echo;

static void
first_write(trp_ctx *ctx, echo *e)
{
    if (trp_tcp_write(ctx, e->connection, e->store.first->bytes, 1) != TRP_OK) {
        trp_fail(ctx, ENOMEM, "out of memory");
    }
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    echo *e = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    if (received != NULL) {
        int idle = e->store.first == NULL;
        store_add(ctx, e->connection, &e->store, received->bytes);
        if (idle) {
            first_write(ctx, e);
        }
    } else if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        store_drop(ctx, e->connection, &e->store);
        if (e->store.first != NULL) {
            first_write(ctx, e);
        } else if (e->closing) {
            trp_stop(ctx, trp_self(ctx)); /* which closes the connection */
        }
    } else if (trp_msg_is(msg, &trp_tcp_closed_type)) {
        e->closing = 1;
        if (((const trp_tcp_closed *)trp_msg_payload(msg))->half_open == 0 ||
            e->store.first == NULL) {
            trp_stop(ctx, trp_self(ctx));
        }
    }
    return TRP_OK;
}
static trp_err
echo_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    echo *e = state;
    e->connection = *(const trp_ref *)trp_msg_payload(args);
    return trp_watch(ctx, e->connection);
}
static void
echo_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    store_clear(&((echo *)state)->store);
}
static const trp_behaviour echo_handler = { sizeof(trp_behaviour), "echo", 1, sizeof(echo),
                                            .receive = echo_receive, .pre_start = echo_start,
                                            .post_stop = echo_stop };
static const uint32_t writer = TRP_TCP_SUSPENDING; /* refuses nothing: one write waits */
#include "echo_server.h"
