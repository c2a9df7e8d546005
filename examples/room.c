/* room.c - a chat over topics: who subscribes to a room hears what is said there, on any node, and
 * so does a program outside the cluster (room_caller.c).
 *
 *     cc room.c $(pkg-config --cflags --libs troupe) -o room
 *     GUEST=ann ./room --port 2552 --seed self --set cluster.client.receptionist.enabled=on &
 *     GUEST=bob ./room --port 0 --seed troupe.tcp://demo@127.0.0.1:2552 &
 *     troupe publish rooms/lobby "good morning"
 *     troupe --via 127.0.0.1:2552 publish rooms/lobby "good morning from outside"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

#define ROOM "rooms/lobby"

struct guest {
    char name[32];
};

static trp_err
guest_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct guest *guest = state;
    trp_subscribe_options how = TRP_SUBSCRIBE_OPTIONS_INIT;
    trp_mediator *mediator;
    size_t bytes = trp_msg_bytes(args);
    memcpy(guest->name, trp_msg_payload(args), bytes < 31 ? bytes : 31);
    how.flags = TRP_SUBSCRIBE_TELLS_MISSED | TRP_SUBSCRIBE_ACK_EVERYWHERE;
    /* where this node takes clients, the room is open to them */
    trp_err err = trp_receptionist_subscribe(trp_ctx_system(ctx), ROOM, trp_self(ctx), &how);
    if (err == TRP_ESTATE) {
        err = trp_mediator_of(trp_ctx_system(ctx), NULL, &mediator);
        err = err != TRP_OK ? err : trp_mediator_subscribe(mediator, ROOM, trp_self(ctx), &how);
    }
    return err;
}

static trp_err
guest_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const struct guest *guest = state;
    const trp_missed *missed = trp_msg_as(msg, &trp_missed_type);
    (void)ctx;
    if (trp_msg_is(msg, &trp_subscribe_ack_type)) {
        printf("%s is in the room\n", guest->name);
    } else if (missed != NULL) {
        printf("%s missed %llu lines\n", guest->name, (unsigned long long)missed->count);
    } else if (trp_msg_is(msg, &trp_string_type)) {
        printf("%s hears: %.*s\n", guest->name, (int)trp_msg_bytes(msg),
               (const char *)trp_msg_payload(msg));
    } else {
        return TRP_EUNHANDLED;
    }
    (void)fflush(stdout);
    return TRP_OK;
}

static const trp_behaviour guest_behaviour = { .size = sizeof guest_behaviour,
                                               .name = "guest",
                                               .version = 1,
                                               .state_bytes = sizeof(struct guest),
                                               .receive = guest_receive,
                                               .pre_start = guest_start };

/* The porter is a service for callers from outside: it subscribes the sender, who is the tunnel to
 * the caller, so that the caller hears what is said. */
static trp_err
porter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_subscribe_options how = TRP_SUBSCRIBE_OPTIONS_INIT;
    trp_mediator *mediator;
    (void)state;
    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_OK; /* an acknowledgement */
    }
    if (trp_msg_bytes(msg) != 5 || memcmp(trp_msg_payload(msg), "enter", 5) != 0) {
        trp_reply_text(ctx, "say enter");
        return TRP_OK;
    }
    how.answer_to = trp_self(ctx);
    trp_err err = trp_mediator_of(trp_ctx_system(ctx), NULL, &mediator);
    err = err != TRP_OK ? err : trp_mediator_subscribe(mediator, ROOM, trp_sender(ctx), &how);
    trp_reply_text(ctx, err == TRP_OK ? "welcome" : "go to another door"); /* of another node */
    return TRP_OK;
}
static const trp_behaviour porter = TRP_BEHAVIOUR_INIT("porter", char, porter_receive);

/* The node is there and joins. Without a receptionist callers stay outside. */
static trp_err
start(trp_node *node, void *arg)
{
    trp_system *system = trp_node_system(node);
    const char *name = getenv("GUEST");
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    spawn.args_type = &trp_string_type;
    spawn.args = name == NULL ? "somebody" : name;
    spawn.args_bytes = strlen(spawn.args);
    trp_err err = trp_system_spawn(system, &guest_behaviour, &spawn, &ref);
    err = err == TRP_OK ? trp_system_spawn(system, &porter, NULL, &ref) : err;
    err = err == TRP_OK ? trp_receptionist_register(system, "porter", ref) : err;
    return err == TRP_ESTATE ? TRP_OK : err;
}

int
main(int argc, char **argv)
{
    return trp_node_run(argc, argv, NULL, start, NULL);
}
