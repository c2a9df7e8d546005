/* room.c - a chat over topics: who subscribes to a room hears what is said there, on any node.
 *
 *     cc room.c $(pkg-config --cflags --libs troupe) -o room
 *     GUEST=ann ./room --port 2552 --seed self &
 *     GUEST=bob ./room --port 0 --seed troupe.tcp://demo@127.0.0.1:2552 &
 *     troupe publish rooms/lobby "good morning"
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
    trp_err err = trp_mediator_of(trp_ctx_system(ctx), NULL, &mediator);
    return err != TRP_OK ? err : trp_mediator_subscribe(mediator, ROOM, trp_self(ctx), &how);
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

/* The node is there and joins. */
static trp_err
start(trp_node *node, void *arg)
{
    const char *name = getenv("GUEST");
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    spawn.args_type = &trp_string_type;
    spawn.args = name == NULL ? "somebody" : name;
    spawn.args_bytes = strlen(spawn.args);
    return trp_system_spawn(trp_node_system(node), &guest_behaviour, &spawn, &ref);
}

int
main(int argc, char **argv)
{
    return trp_node_run(argc, argv, NULL, start, NULL);
}
