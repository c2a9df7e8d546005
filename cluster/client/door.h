/* door.h - the actors that clients send to; private to cluster/client. */
#ifndef TRPI_CLUSTER_CLIENT_DOOR_H
#define TRPI_CLUSTER_CLIENT_DOOR_H

#include "actor/actor.h"
#include "remote/client/client.h"
#include "remote/remote.h"

#define TRPI_CLIENT_TUNNELS_MAX 4096 /* of one door: senders, or asks in flight */

typedef struct client_door_args {
    trpi_remote *remote;
    trp_ref service;
    uint64_t uid;       /* of the client */
    uint32_t tunnel_ms; /* a tunnel without messages ends */
    uint32_t asks;      /* 1: each message is an ask */
} client_door_args;

/* To a door: an actor of the client has ended. */
typedef struct client_asker {
    uint32_t slot, generation;
} client_asker;

extern trp_type client_asker_type;
extern const trp_protocol client_door_protocol;
extern const trp_behaviour client_door_behaviour, client_tunnel_behaviour;

#endif
