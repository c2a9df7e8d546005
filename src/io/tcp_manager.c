/* tcp_manager.c - the parent of all listeners and connections, which finds addresses for names.
 *
 * Shape.   connect, bind -> (a name: an actor of its own asks the resolver, and tells the command
 *          again with addresses) -> a child, to which the command is forwarded, with its sender
 *          accepted, from a listener -> a connection, as a sibling of the listener: it outlives it
 * Must hold.
 *   tcp-manager-M1  Each command has an answer: the child's, or from here why there is no child.
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. IO-02, TCP-01, TCP-05, TRP-09
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "io/io.h"

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

static void
on_command(trp_ctx *ctx, manager *m, const trp_msg *msg, const trpi_io_target *target,
           trp_tcp_command command, uint64_t number)
{
    const trpi_io_tcp *limits = &m->io->settings.tcp;
    bool connects = command == TRP_TCP_CONNECT;
    int error = target->error;

    if (error == 0 && connects &&
        atomic_load_explicit(&m->io->connected, memory_order_relaxed) >= limits->connections_max) {
        error = EMFILE;
    } else if (error == 0 && target->count == 0) {
        error = child_start(ctx, m, &trpi_io_lookup_behaviour, "blocking", msg);
    } else if (error == 0 && connects) {
        error = child_start(ctx, m, &trpi_tcp_actor_behaviour, limits->dispatcher, msg);
    } else if (error == 0) {
        error = child_start(ctx, m, &trpi_tcp_listener_behaviour, limits->manager_dispatcher, msg);
    }
    if (error != 0) {
        command_fail(ctx, command, number, error);
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
    if (connect != NULL) {
        on_command(ctx, m, msg, &connect->remote, TRP_TCP_CONNECT, connect->number);
        return TRP_OK;
    }
    if (bind != NULL) {
        on_command(ctx, m, msg, &bind->local, TRP_TCP_BIND, bind->number);
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

/* ---- names ----------------------------------------------------------------------------------- */

/* Ask the resolver, which may block: this actor has a thread of the dispatcher "blocking". */
static void
target_resolve(trpi_io_target *target)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    char *port = strrchr(target->text, ':');

    *port = '\0'; /* trpi_io_target_set() saw to it that there is one */
    if (getaddrinfo(target->text, port + 1, &hints, &found) != 0) {
        target->error = EADDRNOTAVAIL;
    }
    *port = ':';
    for (const struct addrinfo *one = found; one != NULL && target->count < TRPI_IO_ADDRESSES_MAX;
         one = one->ai_next) {
        trpi_net_address address = { .bytes = one->ai_addrlen };

        if (one->ai_addrlen <= sizeof address.of) {
            memcpy(&address.of, one->ai_addr, one->ai_addrlen);
            trpi_io_address_out(&address, &target->addresses[target->count++]);
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    if (target->count == 0) {
        target->error = EADDRNOTAVAIL;
    }
}

/* Tell the manager the command again, with the addresses, in its sender's name. */
static trp_err
lookup_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trpi_tcp_connect *connect = trp_msg_held(msg, &trpi_tcp_connect_type);
    const trpi_tcp_bind *bind = trp_msg_held(msg, &trpi_tcp_bind_type);
    trp_msg *answer;
    void *held;
    trp_err err;

    (void)state;
    if (connect == NULL && bind == NULL) {
        return TRP_EUNHANDLED;
    }
    err = connect != NULL
              ? trp_msg_new_held(&trpi_tcp_connect_type, sizeof *connect, NULL, &answer, &held)
              : trp_msg_new_held(&trpi_tcp_bind_type, sizeof *bind, NULL, &answer, &held);
    if (err != TRP_OK) {
        command_fail(ctx, connect != NULL ? TRP_TCP_CONNECT : TRP_TCP_BIND,
                     connect != NULL ? connect->number : bind->number, ENOMEM);
    } else if (connect != NULL) {
        memcpy(held, connect, sizeof *connect);
        target_resolve(&((trpi_tcp_connect *)held)->remote);
        trpi_send_as(ctx, trp_parent(ctx), trp_sender(ctx), answer);
    } else {
        memcpy(held, bind, sizeof *bind);
        target_resolve(&((trpi_tcp_bind *)held)->local);
        trpi_send_as(ctx, trp_parent(ctx), trp_sender(ctx), answer);
    }
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

const trp_behaviour trpi_io_lookup_behaviour = {
    .size = sizeof(trp_behaviour), .name = "io-lookup", .version = 1, .receive = lookup_receive
};
