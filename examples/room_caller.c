/* room_caller.c - take part in the chat of room.c from outside the cluster: lines of stdin are
 * published to the room, and what is said there is printed.
 *
 *     cc room_caller.c $(pkg-config --cflags --libs troupe) -o room_caller
 *     ./room_caller 127.0.0.1:2552 10.0.0.2:2552      with the contacts, some nodes of the cluster
 *     PATIENCE_MS=60000 ./room_caller ...             gives up after a minute without a contact
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

#define ROOM "rooms/lobby"
enum { ENTER_KEY = 1, ENTER_MS = 5000 };

static trp_err
ear_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    memcpy(state, trp_msg_payload(args), sizeof(trp_ref)); /* the porter */
    trp_err err = trp_subscribe(ctx, &trp_client_contact_type);
    /* again and again: a new contact has a new tunnel, and one that nothing passes ends */
    return err != TRP_OK ? err
                         : trp_timer_repeat(ctx, ENTER_KEY, 1, ENTER_MS, &trp_bytes_type, NULL, 0);
}

static trp_err
ear_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_client_contact *contact = trp_msg_as(msg, &trp_client_contact_type);
    if (contact != NULL && contact->stopped != 0) {
        printf("gives up: %s\n", contact->reason);
    } else if (contact != NULL && contact->rounds > 0) {
        printf("no contact answers: %s\n", contact->reason);
    } else if (contact != NULL) {
        printf("contact: %s\n", contact->contact[0] != '\0' ? contact->contact : "none");
    } else if (trp_msg_is(msg, &trp_string_type)) {
        printf("heard: %.*s\n", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    }
    if (contact != NULL || trp_msg_is(msg, &trp_bytes_type)) {
        trp_tell_text(ctx, *(const trp_ref *)state, "enter");
    }
    (void)fflush(stdout);
    return TRP_OK;
}
static const trp_behaviour ear = { .size = sizeof ear,
                                   .name = "ear",
                                   .version = 1,
                                   .state_bytes = sizeof(trp_ref),
                                   .receive = ear_receive,
                                   .pre_start = ear_start };

int
main(int argc, char **argv)
{
    trp_client_options how = TRP_CLIENT_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_client *client;
    trp_ref porter, room, listener;
    const char *patience = getenv("PATIENCE_MS");
    char line[1000];
    how.contacts = (const char *const *)(argv + 1);
    how.contacts_count = (size_t)argc - 1;
    how.reconnect_timeout_ms = patience != NULL ? (uint32_t)strtoul(patience, NULL, 10) : 0;
    how.cookie_file = TRP_CLIENT_COOKIE_OF_USER; /* nodes on loopback ask for it */
    if (trp_system_new("caller", NULL, &system) != TRP_OK ||
        trp_client_open(system, &how, &client) != TRP_OK ||
        trp_client_service(client, "porter", &porter) != TRP_OK ||
        trp_client_topic(client, ROOM, &room) != TRP_OK) {
        return 1;
    }
    spawn.args_type = &trp_bytes_type;
    spawn.args = &porter;
    spawn.args_bytes = sizeof porter;
    if (trp_system_spawn(system, &ear, &spawn, &listener) != TRP_OK) {
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        trp_system_tell(system, room, &trp_string_type, line, strcspn(line, "\n"));
    }
    trp_client_close(client); /* what was told is sent */
    trp_system_free(system);
    return 0;
}
