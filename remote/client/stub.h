/* stub.h - the actor that stands for a service at a client; private to remote/client. */
#ifndef TRPI_REMOTE_CLIENT_STUB_H
#define TRPI_REMOTE_CLIENT_STUB_H

#include <pthread.h>

#include "actor/actor.h"
#include "remote/client/client.h"
#include "remote/client/engine.h"
#include "remote/remote.h"

typedef struct client_service { /* of the client's list; freed with it */
    struct client_service *next;
    struct trp_client *client;
    uint64_t number;
    uint32_t kind; /* of trpi_client_kind */
    trp_ref actor;
    char name[TRPI_CLIENT_NAME_BYTES_MAX + 1];
} client_service;

struct trp_client {
    trp_system *system;
    trpi_remote *remote;
    trp_ref actor; /* client.c: runs the engine */
    uint32_t buffer_msgs_max;
    trpi_client_engine engine; /* the actor's */
    pthread_mutex_t lock;      /* a leaf; of what follows */
    client_service *services;
    uint32_t services_count;
    bool closed; /* it has stopped */
};

/* To a stub: its service can be reached there, or not (any more). */
typedef struct client_doors {
    trp_ref tells, asks; /* none: not reachable */
} client_doors;
/* To the client's actor, from a stub: an actor of this system that had used it has ended. */
typedef struct client_ended {
    uint32_t slot, generation;
} client_ended;

extern trp_type client_note_type, client_tick_type, client_doors_type, client_ended_type,
    client_wanted_type;
extern const trp_behaviour client_stub_behaviour;

#endif
