/* echo_nack.c - an echo server that writes at once and keeps what is not acknowledged: after a
 * write that failed it waits until writing is resumed, and writes again from there. */
#include "echo_peer.h"

typedef struct echo {
    trp_ref connection;
    store store;
    uint64_t offset;                /* pieces that were acknowledged; a piece's ack is its number */
    uint64_t next;                  /* number of the next piece */
    uint64_t nack;                  /* the first one that failed */
    int writing, closing, awaiting; /* writing 0: one at a time, after a failure */
    uint32_t to_ack;
} echo;

static void
piece_write(trp_ctx *ctx, echo *e, trp_bytes bytes, uint64_t number)
{
    if (trp_tcp_write(ctx, e->connection, bytes, number) != TRP_OK) {
        trp_fail(ctx, ENOMEM, "out of memory");
    }
}
static void
all_write(trp_ctx *ctx, echo *e)
{
    uint64_t number = e->offset + 1;
    for (const piece *p = e->store.first; p != NULL; p = p->next) {
        piece_write(ctx, e, p->bytes, number++);
    }
}

static void
on_received(trp_ctx *ctx, echo *e, trp_bytes bytes)
{
    e->next++;
    if (e->writing) {
        piece_write(ctx, e, bytes, e->next);
    }
    store_add(ctx, e->connection, &e->store, bytes);
}

static void
on_ack(trp_ctx *ctx, echo *e, uint64_t ack)
{
    e->offset++;
    store_drop(ctx, e->connection, &e->store);
    if (e->store.first == NULL) {
        e->writing = 1;
        if (e->closing) {
            trp_stop(ctx, trp_self(ctx)); /* which closes the connection */
        }
    } else if (!e->writing && !e->awaiting && ack >= e->nack) {
        if (e->to_ack > 0) { /* one at a time for a while */
            piece_write(ctx, e, e->store.first->bytes, e->offset + 1);
            e->to_ack--;
        } else {
            e->writing = 1;
            all_write(ctx, e);
        }
    }
}

/* Later failures come before writing is resumed, and mean nothing new. */
static void
on_failed(trp_ctx *ctx, echo *e, const trp_tcp_command_failed *failed)
{
    if (failed->error == EAGAIN && !e->awaiting) {
        e->writing = 0;
        e->awaiting = 1;
        e->nack = failed->ack;
        trp_tell(ctx, e->connection, &trp_tcp_resume_writing_type, NULL, 0);
    }
}

static void
on_resumed(trp_ctx *ctx, echo *e)
{
    e->awaiting = 0;
    e->to_ack = 10;
    if (e->store.first != NULL) {
        piece_write(ctx, e, e->store.first->bytes, e->offset + 1);
    }
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    echo *e = state;
    const trp_tcp_received *received = trp_tcp_received_of(msg);
    if (received != NULL) {
        on_received(ctx, e, received->bytes);
    } else if (trp_msg_is(msg, &trp_tcp_ack_type)) {
        on_ack(ctx, e, ((const trp_tcp_ack *)trp_msg_payload(msg))->ack);
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        on_failed(ctx, e, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_tcp_writing_resumed_type)) {
        on_resumed(ctx, e);
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
    e->writing = 1;
    return trp_watch(ctx, e->connection);
}
static void
echo_stop(trp_ctx *ctx, void *state)
{
    echo *e = state;
    trp_log(ctx, TRP_LOG_DEBUG, "transferred %zu bytes", e->store.transferred);
    store_clear(&e->store);
}
static const trp_behaviour echo_handler = { sizeof(trp_behaviour), "echo", 1, sizeof(echo),
                                            .receive = echo_receive, .pre_start = echo_start,
                                            .post_stop = echo_stop };
static const uint32_t writer = TRP_TCP_SUSPENDING;
#include "echo_server.h"
