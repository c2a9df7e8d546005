/* bridge_actor.c - an actor that a program hosts: a voice that is a child of the session.
 *
 * Tests.   tests/system/bridge.sh
 */
#include <string.h>
#include <unistd.h>

#include "actor/actor.h"
#include "cluster/node/bridge.h"

typedef struct hosted {
    trpi_bridge_voice voice; /* first */
    trp_msg *stop;           /* an order that waits until all is written; NULL: none */
    char name[TRP_NAME_BYTES_MAX + 1];
} hosted;

typedef struct hosted_args {
    trpi_bridge *bridge; /* lives longer: the session ends after its children */
    trp_ref connection;
    char name[TRP_NAME_BYTES_MAX + 1];
} hosted_args;

#define LOCAL_TYPE(text, tag, flags)                                                               \
    {                                                                                              \
        "troupe-bridge." text, 0, tag, TRP_TYPE_LOCAL | (flags), NULL, 0, 0                        \
    }
trp_type trpi_bridge_order_type = TRP_HELD_TYPE("troupe-bridge.order", 1);
trp_type trpi_bridge_go_on_type = LOCAL_TYPE("go-on", 2, 0);
trp_type trpi_bridge_notice_type = LOCAL_TYPE("notice", 3, TRP_TYPE_VARIABLE);
trp_type trpi_bridge_stream_type = TRP_HELD_TYPE("troupe-bridge.stream", 4);
trp_type trpi_bridge_alarm_type = LOCAL_TYPE("alarm", 5, 0);
static trp_type *const bridge_types[] = { &trpi_bridge_alarm_type, &trpi_bridge_order_type,
                                          &trpi_bridge_go_on_type, &trpi_bridge_notice_type,
                                          &trpi_bridge_stream_type };
const trp_protocol trpi_bridge_protocol = { "troupe-bridge", bridge_types,
                                            sizeof bridge_types / sizeof bridge_types[0], 0 };

static trp_err
hosted_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const hosted_args *a = trp_msg_payload(args);
    hosted *h = state;
    (void)ctx;
    h->voice.bridge = a->bridge;
    h->voice.connection = a->connection;
    h->voice.actor = h->name;
    memcpy(h->name, a->name, sizeof h->name);
    return TRP_OK;
}

static void
hosted_stopped(trp_ctx *ctx, void *state)
{
    hosted *h = state;
    if (h->voice.bridge != NULL) {
        trpi_bridge_voice_end(ctx, &h->voice);
    }
    trp_msg_free(h->stop);
    h->stop = NULL;
}

/* Stop behind the requests that the program has made for this actor, and when what was written for
 * it has gone: so that a program which does not read cannot have lines of actors that come and go
 * kept without a bound. The session does it, and answers. */
static trp_err
stop_take(hosted *h, const trp_msg *msg)
{
    h->voice.ending = true;
    return h->stop != NULL ? TRP_OK : trp_msg_dup(msg, &h->stop);
}

static trp_err
hosted_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    hosted *h = state;
    const trpi_bridge_order *o = trp_msg_held(msg, &trpi_bridge_order_type);
    trp_err err = o == NULL ? trpi_bridge_voice_receive(ctx, &h->voice, msg)
                  : o->request.op == TRPI_BRIDGE_STOP
                      ? stop_take(h, msg)
                      : trpi_bridge_voice_do(ctx, &h->voice, &o->request);
    if (h->stop != NULL && h->voice.unwritten == 0) {
        trp_msg *stop = h->stop;
        h->stop = NULL;
        trp_send(ctx, trp_parent(ctx), stop);
    }
    return err;
}

static const trp_behaviour hosted_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "bridge-actor",
                                                .version = 1,
                                                .state_bytes = sizeof(hosted),
                                                .receive = hosted_receive,
                                                .pre_start = hosted_start,
                                                .post_stop = hosted_stopped };

trp_err
trpi_bridge_actor_spawn(trp_ctx *ctx, const trpi_bridge_voice *session, const char *name,
                        trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    hosted_args args = { .bridge = session->bridge, .connection = session->connection };
    size_t bytes = strlen(name);
    memcpy(args.name, name, bytes < sizeof args.name ? bytes + 1 : 0);
    options.name = name;
    options.node = TRP_NODE_HERE;
    options.stash_msgs_max = TRPI_BRIDGE_WAITING_MAX;
    options.args_type = &trp_bytes_type;
    options.args = &args;
    options.args_bytes = sizeof args;
    return trp_spawn(ctx, &hosted_behaviour, &options, ret_ref);
}

static void
order_drop(void *held)
{
    trpi_bridge_request_fini(&((trpi_bridge_order *)held)->request);
}

void
trpi_bridge_actor_order(trp_ctx *ctx, trp_ref actor, trpi_bridge_request *request)
{
    trp_msg *msg;
    void *held;
    trp_err err = trp_msg_new_held(&trpi_bridge_order_type, sizeof(trpi_bridge_order), order_drop,
                                   &msg, &held);
    if (err != TRP_OK) {
        trpi_bridge_request_fini(request);
        trpi_fail_as(ctx, err, "a request of the program cannot be passed on");
    }
    ((trpi_bridge_order *)held)->request = *request;
    request->json = NULL;
    trp_send(ctx, actor, msg);
}

static void
stream_drop(void *held)
{
    int fd = atomic_exchange(&((trpi_bridge_stream *)held)->fd, -1);
    if (fd > 0) { /* 0: not filled */
        (void)close(fd);
    }
}

trp_err
trpi_bridge_stream_give(trp_system *system, trp_ref session, int fd)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg;
    void *held;
    trp_err err = trp_msg_new_held(&trpi_bridge_stream_type, sizeof(trpi_bridge_stream),
                                   stream_drop, &msg, &held);
    if (err != TRP_OK) {
        (void)close(fd);
        return err;
    }
    atomic_store(&((trpi_bridge_stream *)held)->fd, fd);
    trp_ctx *ctx = trpi_enter(system);
    trpi_send_as(ctx, session, nobody, msg);
    trpi_leave(ctx);
    return TRP_OK;
}
