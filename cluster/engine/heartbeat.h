/* heartbeat.h - which members this node monitors, and which of them are silent; pure, like the
 * membership engine.
 *
 * Each node sends a request to its next monitored-by-nr-of-members neighbours on a ring once an
 * interval; they answer. A neighbour is unreachable when its failure detector says so, and
 * reachable again as soon as it answers: an unreachable one is asked until it is Down or removed,
 * so that a healed network heals the cluster. Before a neighbour is called unreachable its other
 * observers are queried: while one of them hears it, the link is bad, and it gets more time.
 */
#ifndef TRPI_CLUSTER_HEARTBEAT_H
#define TRPI_CLUSTER_HEARTBEAT_H

#include "base/detector.h"
#include "cluster/engine/gossip.h"

#define TRPI_HEARTBEAT_BYTES 9u         /* kind, and 8 bytes which the answer returns */
#define TRPI_HEARTBEAT_REPORT_BYTES 17u /* kind, key of a member; a report: ms since it was heard */

#define TRPI_HEARTBEAT_EXPECTED_S_DEFAULT 3
#define TRPI_HEARTBEAT_MONITORS_DEFAULT 5

typedef struct trpi_heartbeat_options {   /* a zero field is its default */
    trpi_phi_options phi;                 /* heartbeat_interval_ms is the interval of asking */
    const trp_failure_detector *detector; /* phi accrual; else its kind, with the options of phi */
    uint32_t expected_response_after_ms;  /* then a peer that was never heard is judged */
    uint32_t monitored_by_nr_of_members;
    /* requests and checks come at points of this grid, at most so much earlier; 0: none. It is
     * heeded if the time between two checks is a multiple of it. */
    uint32_t grid_us;
    uint64_t grid_begin_us; /* a point of it */
} trpi_heartbeat_options;

typedef struct trpi_heartbeat trpi_heartbeat;

/* Gives *ret_heartbeat. Shares self. Errors: TRP_EINVAL, TRP_ENOMEM. */
trp_err trpi_heartbeat_new(trpi_ident *self, const trpi_heartbeat_options *options,
                           trpi_heartbeat **ret_heartbeat);
void trpi_heartbeat_free(trpi_heartbeat *heartbeat); /* NULL is fine */

/* The view has changed: choose the peers. Errors: TRP_ENOMEM (the peers stay as they were). */
trp_err trpi_heartbeat_members(trpi_heartbeat *heartbeat, uint64_t now_us, const trpi_gossip *view);
/* Do what is due. Afterwards _targets gives the receivers of requests, _unreachable the silent
 * peers. */
void trpi_heartbeat_tick(trpi_heartbeat *heartbeat, uint64_t now_us);
uint64_t trpi_heartbeat_wake_us(const trpi_heartbeat *heartbeat);
/* Return whether this node stood still for longer than its detector's acceptable pause, and a peer
 * has neither answered since nor been found unreachable again. */
bool trpi_heartbeat_is_waking(trpi_heartbeat *heartbeat, uint64_t now_us);
/* Take bytes of the channel that are an answer, or another observer's report; others are ignored.
 * arrived_us: when the transport had them. */
void trpi_heartbeat_answer(trpi_heartbeat *heartbeat, uint64_t arrived_us, const trpi_node_id *from,
                           const uint8_t *bytes, size_t count);

/* Requests of the last tick; borrowed until the next call. bytes are the same for all. */
uint32_t trpi_heartbeat_targets(const trpi_heartbeat *heartbeat,
                                const trpi_ident *const **ret_targets,
                                uint8_t bytes[TRPI_HEARTBEAT_BYTES]);
typedef struct trpi_heartbeat_query {
    const trpi_ident *to;
    uint8_t bytes[TRPI_HEARTBEAT_REPORT_BYTES];
} trpi_heartbeat_query;
/* Queries of the last tick, to other observers of peers that are late (heartbeat-H7); borrowed
 * until the next call. */
uint32_t trpi_heartbeat_queries(const trpi_heartbeat *heartbeat,
                                const trpi_heartbeat_query **ret_questions);
/* If bytes are such a query, and this node has heard the member: write the report to send back and
 * return true. */
bool trpi_heartbeat_report(const trpi_heartbeat *heartbeat, uint64_t now_us, const uint8_t *bytes,
                           size_t count, uint8_t report[TRPI_HEARTBEAT_REPORT_BYTES]);
/* Keys of all that are silent now, sorted; borrowed until the next call. */
uint32_t trpi_heartbeat_unreachable(const trpi_heartbeat *heartbeat, const uint64_t **ret_keys);
/* True once after the set of the unreachable has changed. */
bool trpi_heartbeat_has_changed(trpi_heartbeat *heartbeat);

typedef struct trpi_heartbeat_peer {
    uint64_t key;
    double phi;
    uint64_t round_trip_us; /* of the last answer; 0 never */
    uint64_t heard_count;   /* answers since this node asks it */
    bool monitored;         /* false: this node does not ask it */
    bool available;
} trpi_heartbeat_peer;
/* Return the facts of one peer; monitored is false if this node does not ask it. */
trpi_heartbeat_peer trpi_heartbeat_look(const trpi_heartbeat *heartbeat, uint64_t key,
                                        uint64_t now_us);
uint32_t trpi_heartbeat_peers_count(const trpi_heartbeat *heartbeat);

/* Stateless, any thread: if bytes are a request, write the answer and return true. */
bool trpi_heartbeat_reply(const uint8_t *bytes, size_t count, uint8_t answer[TRPI_HEARTBEAT_BYTES]);

/* Likewise: if they are an answer, write when the request was made and return true. */
bool trpi_heartbeat_asked(const uint8_t *bytes, size_t count, uint64_t *ret_asked_us);

/* Return NULL, or the invariant that is broken (heartbeat_check.c). */
const char *trpi_heartbeat_check(const trpi_heartbeat *hb, trpi_check *check);

#endif
