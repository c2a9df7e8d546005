/* tcp_manager.c - the parent of all listeners and connections, which finds addresses for names.
 *
 * Shape.   connect, bind -> (a name: the resolver is asked, and the command comes again with
 *          addresses) -> a child, to which the command is forwarded, with its sender
 *          accepted, from a listener -> a connection, as a sibling of the listener: it outlives it
 * Must hold.
 *   tcp-manager-M1  Each command has an answer: the child's, or from here why there is no child.
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. IO-02, TCP-01, TCP-05, TRP-09
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/lookup.h"

typedef struct manager {
    trpi_io *io;
} manager;

static int
errno_of(trp_err err)
{
    return err == TRP_ENOMEM ? ENOMEM : err == TRP_ELIMIT ? EMFILE : ECANCELED;
}

/* tcp-manager-M1 */
static void
command_fail(trp_ctx *ctx, trp_tcp_command command, uint64_t number, int error)
{
    trp_tcp_command_failed failed;

    memset(&failed, 0, sizeof failed);
    failed.command = (uint32_t)command;
    failed.error = error;
    failed.number = number;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s", trpi_io_reason(error));
    trp_reply(ctx, &trp_tcp_command_failed_type, &failed, sizeof failed);
}

/* Start a child and let it have the message, as from its sender. Returns 0 or an errno. */
static int
child_start(trp_ctx *ctx, manager *m, const trp_behaviour *behaviour, const char *dispatcher,
            const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref child;
    trp_err err;

    options.dispatcher = dispatcher;
    options.args_type = &trp_bytes_type;
    options.args = &m->io;
    options.args_bytes = sizeof m->io;
    err = trp_spawn(ctx, behaviour, &options, &child);
    if (err != TRP_OK) {
        return errno_of(err);
    }
    trp_forward(ctx, child, msg);
    return 0;
}

/* Have the addresses of a name looked up: the command comes again with them. Returns 0 or an
 * errno. */
static int
name_look_up(trp_ctx *ctx, manager *m, const trpi_tcp_connect *connect, const trpi_tcp_bind *bind)
{
    trp_msg *again;
    void *held;
    trp_err err = connect != NULL ? trp_msg_new_held(&trpi_tcp_connect_type, sizeof *connect,
                                                     trpi_tcp_connect_drop, &again, &held)
                                  : trp_msg_new_held(&trpi_tcp_bind_type, sizeof *bind,
                                                     trpi_tcp_bind_drop, &again, &held);

    if (err != TRP_OK) {
        return ENOMEM;
    }
    if (connect != NULL) {
        memcpy(held, connect, sizeof *connect);
        (void)trpi_io_tls_ref(connect->tls);
    } else {
        memcpy(held, bind, sizeof *bind);
        (void)trpi_io_tls_ref(bind->tls);
    }
    err = trpi_io_lookup(m->io->lookups, ctx,
                         connect != NULL ? &((trpi_tcp_connect *)held)->remote
                                         : &((trpi_tcp_bind *)held)->local,
                         trp_self(ctx), trp_sender(ctx), again);
    if (err != TRP_OK) {
        trp_msg_free(again);
    }
    return err == TRP_OK ? 0 : errno_of(err);
}

static void
on_command(trp_ctx *ctx, manager *m, const trp_msg *msg, const trpi_tcp_connect *connect,
           const trpi_tcp_bind *bind)
{
    const trpi_io_target *target = connect != NULL ? &connect->remote : &bind->local;
    const trpi_io_tcp *limits = &m->io->settings.tcp;
    bool connects = connect != NULL;
    int error = target->error;

    if (error == 0 && connects &&
        atomic_load_explicit(&m->io->connected, memory_order_relaxed) >= limits->connections_max) {
        error = EMFILE;
    } else if (error == 0 && target->count == 0) {
        error = name_look_up(ctx, m, connect, bind);
    } else if (error == 0 && connects) {
        error = child_start(ctx, m, &trpi_tcp_actor_behaviour, limits->dispatcher, msg);
    } else if (error == 0) {
        error = child_start(ctx, m, &trpi_tcp_listener_behaviour, limits->manager_dispatcher, msg);
    }
    if (error != 0) {
        command_fail(ctx, connects ? TRP_TCP_CONNECT : TRP_TCP_BIND,
                     connects ? connect->number : bind->number, error);
    }
}

static trp_err
manager_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trpi_tcp_connect *connect = trp_msg_held(msg, &trpi_tcp_connect_type);
    const trpi_tcp_bind *bind = trp_msg_held(msg, &trpi_tcp_bind_type);
    manager *m = state;

    if (trp_msg_held(msg, &trpi_tcp_accepted_type) != NULL) {
        int error =
            child_start(ctx, m, &trpi_tcp_actor_behaviour, m->io->settings.tcp.dispatcher, msg);

        if (error != 0) { /* the message closes what nobody took */
            trp_log(ctx, TRP_LOG_WARNING, "an accepted connection is closed: %s",
                    trpi_io_reason(error));
        }
        return TRP_OK;
    }
    if (connect != NULL || bind != NULL) {
        on_command(ctx, m, msg, connect, bind);
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
manager_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((manager *)state)->io, trp_msg_payload(args), sizeof(trpi_io *));
    return TRP_OK;
}

static const trp_strategy stop_children = { .size = sizeof(trp_strategy),
                                            .decider = trp_stopping_decider };

const trp_behaviour trpi_tcp_manager_behaviour = { .size = sizeof(trp_behaviour),
                                                   .name = "tcp-manager",
                                                   .version = 1,
                                                   .state_bytes = sizeof(manager),
                                                   .receive = manager_receive,
                                                   .pre_start = manager_pre_start,
                                                   .strategy = &stop_children };
