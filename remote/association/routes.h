/* routes.h - the routes of a peer: their list, and questions that any file may ask of one. */
#ifndef TRPI_REMOTE_ROUTES_H
#define TRPI_REMOTE_ROUTES_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "remote/association/lane.h"

/* Frames that a route has encoded for a lane and not handed over yet. */
typedef struct trpi_batch {
    trpi_buffer frames;
    uint32_t messages; /* in it */
    uint32_t announced_epoch;
    /* bit a type number: its name was sent since the lane's epoch was announced_epoch */
    uint8_t *announced;
    /* The header of the last message in frames: the next one with the same header needs none. type
     * NULL: not known */
    struct {
        const trp_type *type;
        const trpi_serializer *serializer; /* NULL: the payload goes as it is */
        uint16_t serializer_id;
        uint32_t to_slot, to_generation, from_slot, from_generation, from_node;
        uint8_t sender_code;
        /* what of a message's node and flags must equal from_node: for a peer that takes traces,
         * that it has no trailer */
        uint32_t from_mask;
        size_t many_at; /* its MANY frame in frames; SIZE_MAX: it has none */
    } last;
} trpi_batch;

struct trpi_route {
    trpi_remote *remote;
    trpi_peer *peer;
    uint32_t node; /* number of this system's node table */
    uint64_t uid;  /* 0: any incarnation */
    /* by the runner of the proxy, down to large */
    trpi_batch batches[TRPI_LANE_COUNT];
    uint32_t touched;     /* bit a lane: its batch holds something */
    uint32_t spread;      /* that they were chosen by */
    uint8_t last_lane;    /* of the last message in a batch */
    bool over_high_water; /* a lane was, at the last hand-over */
    size_t kept;          /* promises of peer->reserved that are in it, or were broken */
    size_t admitted;      /* bytes of batched messages that were let in without a promise */
    trpi_buffer scratch;
    trpi_buffer held; /* a frame on its way to a hold */
    bool pinned;      /* counted in peer->large.pins */
    uint32_t era;     /* of peer->large.era that large is of */
    /* bit a place of recipients: they take the large lane. Written by the runner, read relaxed by
     * reservations; NULL: none does */
    _Atomic(atomic_uint_least64_t *) large;
    uint32_t tries;          /* op_connect() that are on their way with it; by peer->lock */
    bool attached;           /* a proxy has it; by peer->lock */
    uint64_t ready_turn;     /* of peer->ready_turns, that it was told of last; by peer->lock */
    struct trpi_route *next; /* in peer->routes, by peer->lock */
};

/* In its present era, is it the large one? By peer->lock. */
static inline bool
trpi_route_is_large(const trpi_route *route, uint32_t slot)
{
    atomic_uint_least64_t *words = atomic_load_explicit(&route->large, memory_order_acquire);
    if (words == NULL) {
        return false;
    }
    uint64_t place = trpi_hash_u64(slot) % TRPI_LARGE_PLACES;
    return (atomic_load_explicit(&words[place / 64], memory_order_relaxed) >> place % 64 & 1) != 0;
}

void trpi_route_free(trpi_route *route);
/* Errors: TRP_EINVAL (local-only, or another transport), TRP_ESTATE (an earlier self). */
trp_err trpi_route_address_check(const trpi_remote *remote, const trpi_address *address);
const trpi_node_id *trpi_route_node_get(void *remote, uint32_t node); /* of trpi_node_map */
/* Put it into its peer's list; take it out. By peer->lock, as the next. */
void trpi_route_link(trpi_route *route);
void trpi_route_unlink(trpi_route *route);
/* The numbers of so many routes that this turn has not told yet; gives how many. */
uint32_t trpi_routes_not_told(trpi_peer *peer, uint64_t turn, uint32_t *nodes, uint32_t max);

#endif
