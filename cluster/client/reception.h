/* reception.h - what the files of the receptionist share; private to cluster/client. */
#ifndef TRPI_CLUSTER_CLIENT_RECEPTION_H
#define TRPI_CLUSTER_CLIENT_RECEPTION_H

#include <pthread.h>

#include <troupe/cluster.h>

#include "cluster/client/door.h"
#include "cluster/client/receptionist.h"
#include "cluster/client/sessions.h"

#define TRPI_CLIENT_DOORS_MAX TRP_CLIENT_SERVICES_MAX /* services of one client */

#define RECEPTION_MEDIATOR "receptionist" /* knows the services of all nodes by name, as topics */

typedef struct service { /* by kind and name; the lock of the reception */
    struct service *next;
    trp_ref ref;
    uint32_t kind; /* TRPI_CLIENT_SERVICE, or TRPI_CLIENT_TOPIC: ref is a subscriber */
    char name[];
} service;

typedef struct reception { /* an extension of the system */
    trp_system *system;
    trpi_remote *remote; /* NULL: closed; by lock, as services */
    trp_ref actor;
    trp_mediator *services_all; /* RECEPTION_MEDIATOR */
    trpi_node_id self;
    trpi_receptionist_options options; /* without borrowed texts */
    char role[TRP_ROLE_BYTES];
    char **permissions;
    pthread_mutex_t lock; /* a leaf */
    service *services;
    uint32_t services_count;
} reception;

/* ---- services.c ---- */
reception *reception_get(trp_system *system); /* NULL: there is none */
/* Find the actor of a service of this node, or one that opens a topic. */
bool reception_find(reception *r, uint32_t kind, const char *name, trp_ref *ret_ref);
/* An actor has ended: take its names back. */
void reception_forget(reception *r, trp_ref ref);
/* May clients with that name in their certificate ("": none) reach the service, or topic? */
bool reception_permits(const reception *r, uint32_t kind, const char *name,
                       const char *certificate);

/* To the receptionist's actor. */
typedef struct reception_note { /* a frame */
    trpi_node_id from;
    uint32_t is_client; /* channel 9 */
    trpi_client_frame frame;
} reception_note;
typedef struct reception_change { /* a service was registered, or taken back */
    trp_ref ref;
    uint32_t gone, kind;
    char name[TRPI_CLIENT_NAME_BYTES_MAX + 1];
} reception_change;
extern trp_type reception_note_type, reception_tick_type, reception_change_type,
    reception_leave_type;
extern const trp_behaviour receptionist_behaviour;

#endif
