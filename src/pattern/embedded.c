/* embedded.c - actors inside an actor.
 *
 * Why.     A tell costs a queue and perhaps a thread; for many small parts of one thing that is too
 *          much, and an answer that comes later is no help (A4J-35).
 * Shape.   host's state -> list of embedded actors; their memory is the host's (trp_alloc), so it
 *          ends with it, also after a failure.
 *          told from outside: porter (a child, its mailbox is the queue) --parcel--> host
 *          --dispatch--> embedded
 * Must hold.
 *   embedded-E1  A parcel names its embedded actor by a number that is not reused in this host
 *       state: a late one finds no actor, and is unhandled.
 *   embedded-E2  post_stop is called once: by end, or by the deferred call at the end of the host's
 *       state.
 * Tests.   tests/unit/pattern/embedded_test.c
 * Sources. A4J-15
 */
#include <troupe/embedded.h>

#include <string.h>

#include "actor/actor.h"
#include "base/assert.h"

struct trp_embedded {
    trp_embedded *next;
    const trp_behaviour *behaviour;
    uint64_t id;
    trp_ref address; /* TRP_REF_NONE: it has no address */
    trp_ctx *ctx;    /* of the moment at which it ends */
    void *state;     /* NULL: ended */
};

/* A message from a porter to its parent; the payload follows. */
typedef struct parcel {
    uint64_t id;
    trp_ref sender;
    uint32_t type;
    uint32_t zero;
} parcel;

static trp_type parcel_type = { .name = "embedded.parcel",
                                .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const types[] = { &parcel_type };
static const trp_protocol protocol = { "embedded", types, 1 };

/* ---- birth and end --------------------------------------------------------------------------- */

static void
post_stop(void *arg) /* embedded-E2 */
{
    trp_embedded *e = arg;

    if (e->state != NULL && e->behaviour->post_stop != NULL) {
        e->behaviour->post_stop(e->ctx, e->state);
    }
    e->state = NULL;
}

trp_err
trp_embedded_new(trp_ctx *ctx, trp_embedded_host *host, const trp_behaviour *behaviour,
                 const trp_msg *args, trp_embedded **ret_embedded)
{
    trp_embedded *e;
    trp_err err;

    if (host == NULL || behaviour == NULL || behaviour->receive == NULL || ret_embedded == NULL) {
        return TRP_EINVAL;
    }
    err = trp_protocol_register(&protocol);
    if (err != TRP_OK) {
        return err;
    }
    e = trp_alloc(ctx, sizeof *e);
    e->state = trp_alloc(ctx, behaviour->state_bytes + 1u);
    e->behaviour = behaviour;
    e->id = ++host->priv_last_id;
    e->ctx = ctx;
    err = behaviour->pre_start == NULL ? TRP_OK : behaviour->pre_start(ctx, e->state, args);
    if (err == TRP_OK) {
        err = trp_defer(ctx, post_stop, e);
    }
    if (err != TRP_OK) {
        trp_alloc_free(ctx, e->state);
        trp_alloc_free(ctx, e);
        return err;
    }
    e->next = host->priv_first;
    host->priv_first = e;
    *ret_embedded = e;
    return TRP_OK;
}

void
trp_embedded_end(trp_ctx *ctx, trp_embedded_host *host, trp_embedded *embedded)
{
    trp_embedded **place = &host->priv_first;
    void *state;

    if (embedded == NULL) {
        return;
    }
    while (*place != NULL && *place != embedded) {
        place = &(*place)->next;
    }
    trpi_assert(*place == embedded);
    *place = embedded->next;
    if (!trp_ref_is_none(embedded->address)) {
        trp_stop(ctx, embedded->address);
    }
    state = embedded->state;
    embedded->ctx = ctx;
    post_stop(embedded);
    trp_alloc_free(ctx, state); /* the record itself waits for the deferred call, with the host */
}

void *
trp_embedded_state(const trp_embedded *embedded)
{
    return embedded->state;
}

/* ---- messages -------------------------------------------------------------------------------- */

trp_err
trp_embedded_call(trp_ctx *ctx, trp_embedded *embedded, const trp_type *type, const void *payload,
                  size_t bytes)
{
    return trpi_receive_inside(ctx, embedded->behaviour->receive, embedded->state, trp_self(ctx),
                               type, payload, bytes);
}

static trp_err
porter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    parcel p = { *(uint64_t *)state, trp_sender(ctx), trp_msg_type(msg)->number, 0 };
    void *payload;
    trp_msg *out;
    trp_err err = trp_msg_new(&parcel_type, sizeof p + trp_msg_bytes(msg), &out, &payload);

    if (err == TRP_OK) {
        memcpy(payload, &p, sizeof p);
        if (trp_msg_bytes(msg) > 0) {
            memcpy((char *)payload + sizeof p, trp_msg_payload(msg), trp_msg_bytes(msg));
        }
        trp_send(ctx, trp_parent(ctx), out);
    }
    return err;
}
static trp_err
porter_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    *(uint64_t *)state = *(const uint64_t *)trp_msg_payload(args);
    return TRP_OK;
}
static const trp_behaviour porter = { .size = sizeof(trp_behaviour),
                                      .name = "embedded",
                                      .version = 1,
                                      .state_bytes = sizeof(uint64_t),
                                      .receive = porter_receive,
                                      .pre_start = porter_start };

trp_err
trp_embedded_address(trp_ctx *ctx, trp_embedded *embedded, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = TRP_OK;

    if (trp_ref_is_none(embedded->address)) {
        options.args_type = &trp_bytes_type;
        options.args = &embedded->id;
        options.args_bytes = sizeof embedded->id;
        err = trp_spawn(ctx, &porter, &options, &embedded->address);
    }
    if (err == TRP_OK) {
        *ret_ref = embedded->address;
    }
    return err;
}

trp_err
trp_embedded_dispatch(trp_ctx *ctx, trp_embedded_host *host, const trp_msg *msg)
{
    trp_embedded *e = host->priv_first;
    parcel p;

    if (!trp_msg_is(msg, &parcel_type) || trp_msg_bytes(msg) < sizeof p) {
        return TRP_EUNHANDLED;
    }
    memcpy(&p, trp_msg_payload(msg), sizeof p);
    while (e != NULL && e->id != p.id) {
        e = e->next;
    }
    if (e == NULL || !trp_ref_equal(trp_sender(ctx), e->address)) { /* embedded-E1 */
        return TRP_EUNHANDLED;
    }
    return trpi_receive_inside(ctx, e->behaviour->receive, e->state, p.sender,
                               trpi_type_get(p.type), (const char *)trp_msg_payload(msg) + sizeof p,
                               trp_msg_bytes(msg) - sizeof p);
}
