/* door.h - the actors that clients send to; private to cluster/client. */
#ifndef TRPI_CLUSTER_CLIENT_DOOR_H
#define TRPI_CLUSTER_CLIENT_DOOR_H

#include <troupe/pubsub.h>

#include "actor/actor.h"
#include "remote/client/client.h"
#include "remote/remote.h"

#define TRPI_CLIENT_TUNNELS_MAX 4096 /* of one door: senders, or asks in flight */

/* In a message, with the topic behind it, if any. */
typedef struct client_door_args {
    trpi_remote *remote;
    trp_mediator *mediator; /* NULL: messages go to the service, else they are published */
    trp_ref service;
    uint64_t uid;         /* of the client */
    uint32_t client_node; /* its index here */
    uint32_t tunnel_ms;   /* a tunnel without messages ends */
    uint32_t asks;        /* 1: each message is an ask */
    uint32_t topic_bytes;
} client_door_args;

/* To a door: an actor of the client has ended. */
typedef struct client_asker {
    uint32_t slot, generation;
} client_asker;

extern trp_type client_asker_type;
extern const trp_protocol client_door_protocol;
extern const trp_behaviour client_door_behaviour, client_tunnel_behaviour;

#endif
