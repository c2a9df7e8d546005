/* coordinator.h - gives each shard of one type its home, as a pure state machine.
 *
 *     trpi_coordinator_step(core, now_ms, event) -> actions
 *
 * Every node that has heard of the type has one; it acts only while its node is the oldest member
 * with the type's role in its own view. It remembers nothing of an earlier coordinator: its table
 * is what the regions say. It asks all members of the role what they host, and grants a shard that
 * none has only after each of them has answered, or was removed and its take-over time is over.
 */
#ifndef TRPI_CLUSTER_COORDINATOR_H
#define TRPI_CLUSTER_COORDINATOR_H

#include <troupe/base.h>

#include "base/check.h"
#include "cluster/sharding/allocation.h"
#include "cluster/sharding/region_core.h"
#include "cluster/sharding/shard_frame.h"

#define TRPI_SHARD_BEGIN_MS_DEFAULT 5000u
#define TRPI_SHARD_AVOID_MS_DEFAULT 10000u
#define TRPI_SHARD_TAKEOVER_MS_DEFAULT 20000u
#define TRPI_SHARD_ANSWER_MS_DEFAULT TRP_ALLOCATION_ANSWER_MS_DEFAULT
#define TRPI_SHARD_REBALANCE_MS_DEFAULT 10000u
#define TRPI_SHARD_MOVES_MAX_DEFAULT 100u
#define TRPI_SHARD_MOVES_PERMILLE_DEFAULT 100u

typedef struct trpi_coordinator trpi_coordinator;

/* A zero field is its default. */
typedef struct trpi_coordinator_options {
    uint32_t retry_ms;
    uint32_t begin_ms;    /* 2a: the old home is told to stop, though a region has not answered */
    uint32_t avoid_ms;    /* a leaving node may go, though a node has not answered */
    uint32_t answer_ms;   /* of the program, to a ROUND */
    uint32_t takeover_ms; /* of a member that vanished without a word in gone */
    uint32_t broken;      /* simulation: TRPI_SHARD_BROKEN_... */
} trpi_coordinator_options;

typedef enum trpi_coordinator_event_kind {
    TRPI_COORDINATOR_TICK = 1,
    TRPI_COORDINATOR_MEMBERS = 2,   /* members, gone: all that are known, whenever they change */
    TRPI_COORDINATOR_FRAME = 3,     /* from, frame: HOSTS, GET, BEGUN, ... */
    TRPI_COORDINATOR_START = 4,     /* settings, role: the type is started here, too */
    TRPI_COORDINATOR_REBALANCE = 5, /* look now */
    TRPI_COORDINATOR_ANSWER = 6     /* question: the program has answered a ROUND, once for each */
} trpi_coordinator_event_kind;

typedef struct trpi_coordinator_event {
    trpi_coordinator_event_kind kind;
    trpi_node_id from;
    const trpi_shard_frame *frame;
    const trpi_shard_member *members;
    uint32_t members_count;
    const trpi_shard_gone *gone;
    uint32_t gone_count;
    const trpi_sharding_settings *settings;
    const trpi_allocation_question *question;
} trpi_coordinator_event;

typedef enum trpi_coordinator_action_kind {
    TRPI_COORDINATOR_SEND = 1, /* node, bytes: also to this node itself */
    TRPI_COORDINATOR_LOG = 2,  /* level, text */
    TRPI_COORDINATOR_ROUND = 3 /* question: ask the program; ANSWER answers */
} trpi_coordinator_action_kind;

typedef struct trpi_coordinator_action {
    trpi_coordinator_action_kind kind;
    trpi_node_id node;
    trpi_buffer bytes;
    trpi_allocation_question *question;
    trp_log_level level;
    const char *text; /* borrowed until the next step */
} trpi_coordinator_action;

/* Gives *ret_core. role: "" all members; it and type are copied. Errors: TRP_ENOMEM. */
trp_err trpi_coordinator_new(const trpi_node_id *self, const char *type, const char *role,
                             const trpi_coordinator_options *options, trpi_coordinator **ret_core);
void trpi_coordinator_free(trpi_coordinator *core); /* NULL is fine */
/* Whether the program can be asked (allocation of kind TRPI_ALLOCATION_USER). */
void trpi_coordinator_asks_set(trpi_coordinator *core, bool asks);
/* Whether it is active, and weights of members matter to it. */
bool trpi_coordinator_weighs(const trpi_coordinator *core);
/* Take one event. Errors: TRP_ENOMEM, as trpi_region_core_step. */
trp_err trpi_coordinator_step(trpi_coordinator *core, uint64_t now_ms,
                              const trpi_coordinator_event *event);
const trpi_coordinator_action *trpi_coordinator_actions(const trpi_coordinator *core,
                                                        uint32_t *ret_count);
trpi_buffer trpi_coordinator_take_bytes(trpi_coordinator *core, uint32_t action);
/* The same with the question of a ROUND (trpi_free). */
trpi_allocation_question *trpi_coordinator_take_question(trpi_coordinator *core, uint32_t action);
uint64_t trpi_coordinator_wake_ms(const trpi_coordinator *core);
/* Return NULL, or the invariant (sharding-C...) that is broken. */
const char *trpi_coordinator_check(const trpi_coordinator *core, trpi_check *check);

/* ---- looking --------------------------------------------------------------------------------- */
bool trpi_coordinator_is_active(const trpi_coordinator *core); /* its node is the oldest */
bool trpi_coordinator_is_ready(const trpi_coordinator *core);  /* all have answered */
trpi_shard_term trpi_coordinator_term(const trpi_coordinator *core);
uint64_t trpi_coordinator_since_ms(const trpi_coordinator *core); /* active */

typedef enum trpi_coordinator_wait_kind {
    TRPI_COORDINATOR_WAIT_ANSWER = 1,   /* node has not said what it hosts */
    TRPI_COORDINATOR_WAIT_TAKEOVER = 2, /* node was removed; until_ms */
    TRPI_COORDINATOR_WAIT_MEMBERS = 3,  /* fewer regions than members_min */
    TRPI_COORDINATOR_WAIT_BEGIN = 4,    /* shard: node has not fenced */
    TRPI_COORDINATOR_WAIT_STOP = 5,     /* shard: node has not stopped it */
    TRPI_COORDINATOR_WAIT_START = 6,    /* shard: node has not answered its grant */
    TRPI_COORDINATOR_WAIT_AVOID = 7,    /* node has not said that it tells a leaving one no more */
    TRPI_COORDINATOR_WAIT_UNDRAIN = 8   /* node and all other regions are drained */
} trpi_coordinator_wait_kind;

typedef struct trpi_coordinator_wait {
    trpi_coordinator_wait_kind kind;
    uint32_t shard; /* of BEGIN, STOP, START */
    trpi_node_id node;
    uint64_t since_ms, until_ms; /* until_ms 0: open */
} trpi_coordinator_wait;
/* Write one thing that it waits for, from *at on (0 first), which is set behind it; false: nothing
 * more. */
bool trpi_coordinator_waits(const trpi_coordinator *core, uint32_t *at,
                            trpi_coordinator_wait *ret_wait);

typedef enum trpi_shard_phase {
    TRPI_SHARD_PHASE_FREE = 0,
    TRPI_SHARD_PHASE_GRANTING = 1, /* node has not answered */
    TRPI_SHARD_PHASE_HOSTED = 2,
    TRPI_SHARD_PHASE_BEGINNING = 3, /* regions fence; node still runs it */
    TRPI_SHARD_PHASE_STOPPING = 4
} trpi_shard_phase;

typedef struct trpi_coordinator_shard_info {
    trpi_shard_phase phase;
    uint64_t epoch, since_ms;
    uint64_t blocked_until_ms; /* FREE: take-over time of a removed node; 0: none */
    trpi_node_id node;         /* not FREE */
} trpi_coordinator_shard_info;
bool trpi_coordinator_shard(const trpi_coordinator *core, uint32_t shard,
                            trpi_coordinator_shard_info *ret_info);
uint32_t trpi_coordinator_shards(const trpi_coordinator *core); /* 0: not known yet */

typedef struct trpi_coordinator_region_info {
    trpi_node_id node;
    bool answered, hosts, refused, leaving, drained;
    uint32_t shards;
} trpi_coordinator_region_info;
bool trpi_coordinator_region(const trpi_coordinator *core, uint32_t index,
                             trpi_coordinator_region_info *ret_info); /* false: no more */

#endif
