/* control_change.h - members that an order sends away, watched until they are gone. */
#ifndef TRPI_NODE_CONTROL_CHANGE_H
#define TRPI_NODE_CONTROL_CHANGE_H

#include "cluster/cluster.h"
#include "cluster/node/control_member.h"

typedef struct trpi_departure {
    uint64_t uid;
    char address[TRP_ADDRESS_BYTES];
    bool self;        /* the node that runs the command */
    uint32_t status;  /* as last reported */
    uint32_t reports; /* self: phases of its shutdown that were reported */
} trpi_departure;

/* How long an order waits for the engine to begin it: until the call's deadline, at most
 * TRPI_CONTROL_BEGIN_MS; and whether it is still wanted then. Borrows call. */
#define TRPI_CONTROL_BEGIN_MS 5000u
trpi_cluster_patience trpi_call_patience(trpi_call *call);

/* The members that a down order means, and the cluster without them. */
typedef struct trpi_downs {
    size_t meant;     /* all of them; one order takes TRPI_CONTROL_DOWNS_MAX */
    size_t count;     /* those of this order */
    size_t remaining; /* reachable members besides them */
    bool majority;    /* of all members */
} trpi_downs;
/* Find the members that a down request means. found: the member that the request names; NULL: it
 * names none. departures has room for TRPI_CONTROL_DOWNS_MAX. */
trpi_downs trpi_downs_pick(const trpi_control_request *request, const trpi_view *view,
                           const trpi_view_member *found, trpi_departure *departures);

/* Add {"nextCrash": {"strategy","votes","stopsTheRest","of"}}: once a member has left, how many
 * have a vote, of how many of them a crash would stop the rest, and one of those. false: no
 * memory. */
bool trpi_next_crash_add(cJSON *reply, const trpi_cluster_next_crash *cast);

/* Report each change of status to the client. Return the first member that is still there, NULL
 * when all are gone; this node is gone when it has ended. */
const trpi_departure *trpi_departures_look(trpi_call *call, trpi_departure *departures,
                                           size_t count, const trpi_view *view, bool ended);

#endif
