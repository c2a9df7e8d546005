/* stub.c - the actor that stands for a service at a client.
 *
 * Shape.   message --> stub --the service can be reached--> its door at the contact, sender kept
 *                        `-- else: kept, up to a limit; the oldest one falls out
 *          Asks have a door of their own: there a tunnel ends with the first answer. For other
 *          senders a tunnel ends when they do, which the stub sees (it watches them) and tells.
 * Must hold.
 *   client-stub-B1  Messages of one sender keep their order: those that were kept go first.
 *   client-stub-B2  A message is sent, or kept, or a dead letter.
 * Limits.  buffer_msgs_max of the client's options.
 * Tests.   tests/unit/client/client_test.c
 * Sources. CONTRIB-24, -25
 */
#include "remote/client/stub.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/table.h"

struct stub_state {
    client_service *service;
    client_doors doors;
    trpi_table watched; /* trp_ref: senders that have not ended */
    trp_msg **kept;     /* a ring of max */
    uint32_t max, first, count;
};

static bool
ref_is_empty(const void *element)
{
    return trp_ref_is_none(*(const trp_ref *)element) != 0;
}

static uint64_t
ref_hash(const void *arg, const void *element)
{
    (void)arg;
    return trpi_hash(element, sizeof(trp_ref), 0);
}

static bool
ref_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trp_ref_equal(*(const trp_ref *)element, *(const trp_ref *)key) != 0;
}

static const trpi_table_kind refs = { sizeof(trp_ref), ref_is_empty, ref_hash, ref_is_key };

/* Once for each sender. Without memory its tunnel ends when it is idle, or it is watched with its
 * next message. */
static void
sender_watch(struct stub_state *s, trp_ctx *ctx, trp_ref sender)
{
    uint64_t hash = ref_hash(NULL, &sender);
    if (trpi_table_find(&refs, &s->watched, NULL, hash, &sender) == NULL &&
        trp_watch(ctx, sender) == TRP_OK) {
        trp_ref *place = trpi_table_add(&refs, &s->watched, NULL, hash, &sender);
        if (place != NULL) {
            *place = sender;
        }
    }
}

static void
sender_ended(struct stub_state *s, trp_ref sender)
{
    trp_ref *place = trpi_table_find(&refs, &s->watched, NULL, ref_hash(NULL, &sender), &sender);
    if (place != NULL) {
        trpi_table_remove(&refs, &s->watched, NULL, place);
    }
}

static void
send_on(struct stub_state *s, trp_ctx *ctx, const trp_msg *msg)
{
    trp_ref sender = trpi_msg_sender_get(msg);
    bool is_ask = trpi_ref_is_ask(trp_ctx_system(ctx), sender);
    if (!is_ask && sender.node == TRPI_NODE_SELF) {
        sender_watch(s, ctx, sender);
    }
    trp_tell_as(ctx, is_ask ? s->doors.asks : s->doors.tells, sender, trp_msg_type(msg),
                trp_msg_payload(msg), trp_msg_bytes(msg));
}

static void
fall_out(struct stub_state *s, trp_ctx *ctx)
{
    trp_msg *msg = s->kept[s->first];
    s->first = (s->first + 1) % s->max;
    s->count--;
    trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, TRP_DEAD_MAILBOX_FULL);
    trpi_msg_drop(msg);
}

static void
message_keep(struct stub_state *s, trp_ctx *ctx, const trp_msg *msg)
{
    trp_msg *copy = NULL;
    if (s->max > 0 && s->count == s->max) {
        fall_out(s, ctx);
    }
    if (s->max > 0 && trp_msg_dup(msg, &copy) == TRP_OK) {
        s->kept[(s->first + s->count++) % s->max] = copy;
    } else { /* client-stub-B2 */
        trpi_dead_letter_msg(trp_ctx_system(ctx), trp_self(ctx), msg, TRP_DEAD_MAILBOX_FULL);
    }
}

static void
doors_take(struct stub_state *s, trp_ctx *ctx, const client_doors *doors)
{
    s->doors = *doors;
    while (!trp_ref_is_none(s->doors.tells) && s->count > 0) { /* client-stub-B1 */
        trp_msg *msg = s->kept[s->first];
        s->first = (s->first + 1) % s->max;
        s->count--;
        send_on(s, ctx, msg);
        trpi_msg_drop(msg);
    }
}

static trp_err
stub_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct stub_state *s = state;
    if (trp_msg_is(msg, &client_doors_type)) {
        doors_take(s, ctx, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *ended = trp_msg_payload(msg);
        client_ended who = { ended->ref.slot, ended->ref.generation };
        sender_ended(s, ended->ref);
        trp_tell(ctx, s->service->client->actor, &client_ended_type, &who, sizeof who);
    } else if (trp_ref_is_none(s->doors.tells)) {
        message_keep(s, ctx, msg);
    } else {
        send_on(s, ctx, msg);
    }
    return TRP_OK;
}

static trp_err
stub_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct stub_state *s = state;
    if (args == NULL || trp_msg_bytes(args) != sizeof s->service) {
        return TRP_EINVAL;
    }
    memcpy(&s->service, trp_msg_payload(args), sizeof s->service);
    s->max = s->service->client->buffer_msgs_max;
    s->kept = s->max == 0 ? NULL : trpi_alloc(s->max * sizeof *s->kept);
    if (s->max > 0 && s->kept == NULL) {
        return TRP_ENOMEM;
    }
    trp_tell(ctx, s->service->client->actor, &client_wanted_type, &s->service->number,
             sizeof s->service->number);
    return TRP_OK;
}

static void
stub_stopped(trp_ctx *ctx, void *state)
{
    struct stub_state *s = state;
    while (s->count > 0) {
        fall_out(s, ctx);
    }
    trpi_free(s->kept);
    s->kept = NULL;
    trpi_table_fini(&s->watched);
}

const trp_behaviour client_stub_behaviour = {
    .size = sizeof(trp_behaviour),
    .name = "client-service",
    .version = 1,
    .state_bytes = sizeof(struct stub_state),
    .receive = stub_receive,
    .pre_start = stub_start,
    .post_stop = stub_stopped,
};
