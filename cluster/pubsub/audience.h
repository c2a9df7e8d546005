/* audience.h - who of this node subscribes to what, or was put: for the mediator's actor alone.
 * Nothing here tells anybody. A key's bytes are copied. */
#ifndef TRPI_CLUSTER_PUBSUB_AUDIENCE_H
#define TRPI_CLUSTER_PUBSUB_AUDIENCE_H

#include "base/table.h"
#include "cluster/pubsub/registry_frame.h"

struct trpi_seats;
typedef struct trpi_seat { /* of one actor under one key */
    struct trpi_seats *seats;
    struct trpi_seat *next, *previous; /* of the same actor */
    uint32_t index;                    /* in refs */
    uint32_t flags;                    /* of trp_subscribe_flags */
    uint64_t refused;                  /* by its mailbox, and not told yet */
} trpi_seat;

typedef struct trpi_seats { /* all that are under one key */
    trpi_pubsub_key key;    /* owned bytes */
    uint64_t hash;
    trp_ref *refs; /* densely, for the fan-out */
    uint32_t refs_count, refs_room;
    trpi_seat **places; /* of the same indexes */
    uint32_t places_count, places_room;
    uint64_t told;   /* of those who listen to a registry: the change that they were told last */
    uint32_t askers; /* that have TRP_SUBSCRIBE_TELLS_MISSED */
} trpi_seats;

typedef struct trpi_audience { /* zeroed: an empty one */
    trpi_table by_key;         /* of trpi_seats * */
    trpi_table by_ref;         /* of the actors that have any seat */
} trpi_audience;

void trpi_audience_fini(trpi_audience *audience);
/* NULL: nobody is under that key; hash: trpi_pubsub_key_hash(). Allocates nothing. */
trpi_seats *trpi_audience_find(const trpi_audience *audience, const trpi_pubsub_key *key,
                               uint64_t hash);
/* Add an actor, or change its flags; *ret_first: it has no other seat, so it is to be watched.
 * Errors: TRP_EEXIST (it is there already; its flags are set), TRP_ELIMIT
 * (TRP_TOPIC_SUBSCRIBERS_MAX), TRP_ENOMEM; on the last two nothing has changed. */
trp_err trpi_audience_add(trpi_audience *audience, const trpi_pubsub_key *key, trp_ref ref,
                          uint32_t flags, trpi_seats **ret_seats, bool *ret_first);
/* NULL: it has none under that key. */
trpi_seat *trpi_audience_seat(const trpi_audience *audience, const trpi_seats *seats, trp_ref ref);
/* Any seat of the actor; NULL: it has none. */
trpi_seat *trpi_audience_any(const trpi_audience *audience, trp_ref ref);
/* The actors that have any seat, in no order; *position starts at 0. false: there are no more. */
bool trpi_audience_next(const trpi_audience *audience, uint32_t *position, trp_ref *ret_ref);
/* The keys under which anybody is, in no order, likewise. */
trpi_seats *trpi_audience_next_key(const trpi_audience *audience, uint32_t *position);
/* Free the seat; true: it was the actor's last one. The seats stay, maybe empty:
 * trpi_audience_tidy() */
bool trpi_audience_leave(trpi_audience *audience, trpi_seat *seat, trp_ref ref);
void trpi_audience_tidy(trpi_audience *audience, trpi_seats *seats); /* free them if empty */

#endif
