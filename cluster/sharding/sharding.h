/* sharding.h - the door of the sharding room: functions for the rooms above it. */
#ifndef TRPI_CLUSTER_SHARDING_SHARDING_H
#define TRPI_CLUSTER_SHARDING_SHARDING_H

#include <troupe/journal.h>
#include <troupe/sharding.h>

#include "cluster/shell/commands.h"
#include "remote/remote.h"

/* Start the actor that says where shards live. The cluster's actor runs. Errors: those of a spawn,
 * TRP_ENOMEM. */
trp_err trpi_keeper_start(trpi_cluster *cluster, trp_system *system, trpi_remote *remote);
/* Before remoting and the cluster stop. */
void trpi_keeper_stop(trp_system *system);

/* A coordinator refuses a type of this node, which is to end. Called on the actor's thread. */
typedef void (*trpi_sharding_refused_fn)(void *arg, const char *type, const char *why);
/* Thread: any, before a type is started. */
void trpi_sharding_refused_set(trp_system *system, trpi_sharding_refused_fn fn, void *arg);

/* ---- looking --------------------------------------------------------------------------------- */
#define TRPI_SHARDING_WAITS_BYTES 512
typedef struct trpi_sharding_home { /* a member, as the coordinator knows it */
    char node[TRP_ADDRESS_BYTES];
    const char *state; /* "hosts", "tells only", "leaving", "drained", "no answer", "refused" */
    uint32_t shards;
} trpi_sharding_home;

typedef struct trpi_sharding_status {    /* of one type, as this node knows it */
    const char *type, *role;             /* role "": any */
    const char *why;                     /* the type is refused on this node; "": it is not */
    bool started, hosts;                 /* here; hosts: with a recipe */
    bool registered;                     /* the coordinator knows this node */
    bool coordinates, ready;             /* this node; ready: all members have answered */
    char coordinator[TRP_ADDRESS_BYTES]; /* ""; none is known */
    uint64_t coordinator_ms;             /* coordinates: for how long */
    uint32_t shards;                     /* of the type; 0: not known */
    uint32_t here, entities, kept;       /* shards, live entities and messages that wait, here */
    const trpi_sharding_home *homes;     /* coordinates */
    uint32_t homes_count;
    uint32_t waits_count; /* coordinates: what it waits for; the oldest as a sentence */
    uint64_t waits_ms;
    char waits[TRPI_SHARDING_WAITS_BYTES];
    uint32_t homeless_count; /* shards with messages that wait here for a home, and for how long */
    uint64_t homeless_ms;
} trpi_sharding_status;
/* Write what keeps entities of the type from their messages, when it has lasted for least_ms.
 * false: nothing does. Thread: any. */
bool trpi_sharding_problem(const trpi_sharding_status *status, uint64_t least_ms, char *text,
                           size_t bytes);
typedef void (*trpi_sharding_each_fn)(void *arg, const trpi_sharding_status *status);
/* Call fn for each type that this node has heard of. Thread: any; holds a lock meanwhile. */
void trpi_sharding_each(trp_system *system, trpi_sharding_each_fn fn, void *arg);

/* Call fn with each shard of a type that this node has, and how many of its entities live. Errors:
 * TRP_ENOENT (the type is not started here), TRP_ENOMEM. Thread: any. */
typedef void (*trpi_sharding_count_fn)(void *arg, uint32_t shard, uint32_t entities);
trp_err trpi_sharding_counts(trp_system *system, const char *type, trpi_sharding_count_fn fn,
                             void *arg);

/* Let the coordinator of a type look now which shards should move. Errors: TRP_ENOENT (the type is
 * not started here), TRP_ENOMEM. Thread: any. */
trp_err trpi_sharding_rebalance(trp_system *system, const char *type);

typedef struct trpi_sharding_place { /* of an entity, as this node knows it */
    char node[TRP_ADDRESS_BYTES];    /* its home, if that is known */
    uint32_t shard;
    bool known, here, moves;
    bool alive; /* here, and it has started */
} trpi_sharding_place;
/* Do as trp_system_entity_tell and trp_system_entity_ask, as part of this trace; NULL: of none.
 * Thread: as those. */
trp_err trpi_system_entity_tell(trp_system *system, const trp_entity *entity,
                                const trp_trace *trace, const trp_type *type, const void *payload,
                                size_t bytes);
trp_err trpi_system_entity_ask(trp_system *system, const trp_entity *entity, const trp_trace *trace,
                               const trp_type *type, const void *payload, size_t bytes,
                               const trpi_patience *patience, trp_msg **ret_reply);
/* Errors: TRP_ENOENT (the type is not started here), TRP_EINVAL (id). Thread: any. */
trp_err trpi_sharding_find(trp_system *system, const char *type, const void *id, size_t id_bytes,
                           trpi_sharding_place *ret_place);

typedef struct trpi_sharding_folded {
    uint32_t shards; /* that exist no longer, and kept something */
    uint32_t entities, reminders;
} trpi_sharding_folded;
/* Put what the journal keeps for shards from `shards` on (remembered entities, reminders) into
 * those below; the nodes hand each to its own shard when they open them. No node runs. After an
 * error, or an end in between, it is called again. Errors: TRP_EINVAL, TRP_ELIMIT (a shard would
 * keep too much), TRP_ENOMEM, those of the journal; why is a sentence. Thread: any; blocks. */
trp_err trpi_sharding_fold(const trp_journal_driver *driver, const char *type, uint32_t shards,
                           uint64_t wall_ms, trpi_sharding_folded *ret_folded, char *why,
                           size_t why_bytes);

/* Return how many shards of this node wait for the journal, which refuses them or cannot be read.
 * Thread: any; lock-free. */
uint32_t trpi_sharding_unopened(const trp_system *system);

#endif
