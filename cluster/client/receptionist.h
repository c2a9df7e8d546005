/* receptionist.h - the door of the room: let clients into a node. The API of programs is
 * include/troupe/client.h. */
#ifndef TRPI_CLUSTER_CLIENT_RECEPTIONIST_H
#define TRPI_CLUSTER_CLIENT_RECEPTIONIST_H

#include <troupe/client.h>

#include "remote/client/client.h"
#include "remote/remote.h"

#define TRPI_RECEPTIONIST_CONTACTS_DEFAULT 3
#define TRPI_RECEPTIONIST_TUNNEL_MS_DEFAULT 30000
#define TRPI_RECEPTIONIST_SILENCE_MS_DEFAULT 13000
#define TRPI_RECEPTIONIST_CLIENTS_DEFAULT 4096

typedef struct trpi_receptionist_options { /* zero: the default */
    uint32_t contacts;                     /* that a client is given */
    uint32_t tunnel_ms;                    /* a tunnel without messages ends; an ask fails */
    uint32_t silence_ms;                   /* a client that says nothing is gone */
    uint32_t clients_max;
    const char *role; /* NULL, "": contacts are all members; else those with the role */
    /* "SERVICE=NAME": only clients whose certificate has that name reach the service; SERVICE "*":
     * all services and topics; "topic:TOPIC": that topic, "topic:*": all topics. Names without a
     * line are open to all clients. Copied */
    const char *const *permissions;
    size_t permissions_count;
} trpi_receptionist_options;

/* Accept clients on this node until trpi_receptionist_close(). Errors: TRP_EINVAL (a permission
 * without '='; the log says which), TRP_EEXIST, TRP_ENOMEM. Thread: owner. */
trp_err trpi_receptionist_open(trp_system *system, trpi_remote *remote,
                               const trpi_receptionist_options *options);
/* Before remoting stops. Without a receptionist: nothing. */
void trpi_receptionist_close(trp_system *system);

#endif
