/* region_core.h - one node's part in the shards of one type, as a pure state machine.
 *
 *     trpi_region_core_step(core, now_ms, event) -> actions
 *
 * It knows which shards this node hosts and where the others are, and keeps what is sent in order
 * while they move. It holds no message and no entity: the shell has them, in a queue of waiting
 * messages for each shard. The drawings of the protocol stand in the room's README.
 *
 * The shell and its engine agree on this:
 *   - A message for a shard is told to an entity here after OWN until STOP; is sent to a node,
 *     with the epoch, after HOME until BUFFER; else it waits, and WANTED says so.
 *   - A routed message is taken by this node only if it has OWN with that epoch. Else it goes back
 *     to the node that sent it, on the same lane; nobody passes it on. A message that has come
 *     back stands before all that waits, in the order of coming back, and RETURNED says so.
 *   - FENCE asks the other node for an answer behind all that was sent to it and all that it sent
 *     back. After FENCED everything sent there was taken there, or waits here again.
 */
#ifndef TRPI_CLUSTER_REGION_CORE_H
#define TRPI_CLUSTER_REGION_CORE_H

#include <troupe/cluster.h>

#include "base/check.h"
#include "cluster/sharding/shard_frame.h"

#define TRPI_REGION_NEVER UINT64_MAX
#define TRPI_SHARD_RETRY_MS_DEFAULT 200u
#define TRPI_SHARD_FENCE_MS_DEFAULT 60000u
#define TRPI_SHARD_STOP_MS_DEFAULT 60000u
#define TRPI_SHARD_FLUSH_MS_DEFAULT 5000u

/* A member of the cluster, in any status, as the coordinator and the regions see it. */
typedef struct trpi_shard_member {
    trpi_node_id id;
    uint32_t up_number; /* 0: never was Up */
    uint32_t status;    /* trp_member_status */
    bool has_role;      /* that the type is bound to, or it is bound to none */
    bool drained;       /* it gives its shards away, and is given none */
    uint32_t weight;    /* of allocation by metrics; 0: unknown */
    char app_version[TRPI_APP_VERSION_BYTES_MAX + 1];
} trpi_shard_member;

/* Leaving, Exiting or Down: it takes nothing new. */
static inline bool
trpi_shard_member_is_leaving(const trpi_shard_member *member)
{
    return member->status >= TRP_MEMBER_LEAVING && member->status != TRP_MEMBER_WEAKLY_UP;
}

/* A node that was removed, and how long it may still run what it hosted. */
typedef struct trpi_shard_gone {
    trpi_node_id id;
    bool has_role;
    uint64_t takeover_ms; /* from now; 0: nothing of it runs */
} trpi_shard_gone;

typedef struct trpi_region_core trpi_region_core;

/* A zero field is its default. */
typedef struct trpi_region_core_options {
    uint32_t retry_ms; /* what was not answered is sent again */
    uint32_t fence_ms; /* without an answer the shard goes on; logged */
    uint32_t stop_ms;  /* entities that did not end are told to be stopped by force */
    uint32_t flush_ms; /* a leaving node waits so long for homes of what waits here */
    uint32_t broken;   /* simulation: TRPI_SHARD_BROKEN_... */
} trpi_region_core_options;

/* Faults put in on purpose, to show that the simulation finds them. */
#define TRPI_SHARD_BROKEN_FENCE 1u   /* nobody waits for a fence */
#define TRPI_SHARD_BROKEN_ANSWERS 2u /* a new coordinator waits for no answer */
#define TRPI_SHARD_BROKEN_BIND 4u    /* a region obeys earlier coordinators, too */

typedef enum trpi_region_event_kind {
    TRPI_REGION_TICK = 1,    /* a time that wake_ms named has come */
    TRPI_REGION_MEMBERS = 2, /* members, all of them, in any order; whenever they change */
    TRPI_REGION_FRAME = 3,   /* from, frame */
    TRPI_REGION_START = 4,   /* settings, hosts: the type is started here; once */
    TRPI_REGION_WANTED = 5,  /* shard: a message waits for it */
    TRPI_REGION_STOPPED = 6, /* shard, epoch (0: any): all its entities have ended (answers STOP) */
    TRPI_REGION_FENCED = 7,  /* shard, from: answers FENCE */
    TRPI_REGION_RETURNED = 8, /* shard, epoch: the node that has it did not take a message */
    TRPI_REGION_LEAVE = 9,    /* hand over everything; MAY_LEAVE answers */
    TRPI_REGION_IDLE = 10     /* shard: nothing waits for it any more (its queue was emptied) */
} trpi_region_event_kind;

typedef struct trpi_region_event {
    trpi_region_event_kind kind;
    uint32_t shard;
    uint64_t epoch;
    trpi_node_id from;             /* proved by the transport */
    const trpi_shard_frame *frame; /* of this type */
    const trpi_shard_member *members;
    uint32_t members_count;
    const trpi_sharding_settings *settings;
    const char *role; /* START: NULL: all members */
    bool hosts;       /* START: false: a proxy, which only tells */
} trpi_region_event;

typedef enum trpi_region_action_kind {
    TRPI_REGION_SEND = 1,      /* node, bytes: also to this node itself */
    TRPI_REGION_OWN = 2,       /* shard, epoch: entities may run; what waits is told to them */
    TRPI_REGION_STOP = 3,      /* shard, epoch: messages wait; entities end; STOPPED answers */
    TRPI_REGION_STOP_NOW = 4,  /* shard, epoch: they take too long: end them by force */
    TRPI_REGION_HOME = 5,      /* shard, epoch, node: send there, first what waits */
    TRPI_REGION_BUFFER = 6,    /* shard, epoch, node, moves: send there no more; messages wait */
    TRPI_REGION_FENCE = 7,     /* shard, node; may be repeated: FENCED answers any of them */
    TRPI_REGION_MAY_LEAVE = 8, /* all is handed over, and nobody sends here */
    TRPI_REGION_ACCEPTED = 9,  /* a coordinator has taken the settings of START */
    TRPI_REGION_REFUSED = 10,  /* text: why it has not; the type must be stopped */
    TRPI_REGION_LOG = 11       /* level, text */
} trpi_region_action_kind;

typedef struct trpi_region_action {
    trpi_region_action_kind kind;
    uint32_t shard;
    uint64_t epoch;
    trpi_node_id node;
    trpi_buffer bytes;
    bool moves; /* BUFFER: node is a member still, and hands the shard over */
    trp_log_level level;
    const char *text; /* borrowed until the next step */
} trpi_region_action;

/* Gives *ret_core: a type that is not started here. It answers "hosts none", and binds. Errors:
 * TRP_ENOMEM. */
trp_err trpi_region_core_new(const trpi_node_id *self, const char *type,
                             const trpi_region_core_options *options, trpi_region_core **ret_core);
void trpi_region_core_free(trpi_region_core *core); /* NULL is fine */
/* Take one event. Errors: TRP_EINVAL (START: settings out of range), TRP_ESTATE (it is started),
 * TRP_ENOMEM: the event had no effect, or not all of it; what is missing is made up for at a later
 * tick. Anything else is TRP_OK, also a frame of no use. */
trp_err trpi_region_core_step(trpi_region_core *core, uint64_t now_ms,
                              const trpi_region_event *event);
/* Return the actions of the last step, in order; borrowed until the next step. */
const trpi_region_action *trpi_region_core_actions(const trpi_region_core *core,
                                                   uint32_t *ret_count);
/* Move the bytes of a SEND of the last step to the caller. */
trpi_buffer trpi_region_core_take_bytes(trpi_region_core *core, uint32_t action);
uint64_t trpi_region_core_wake_ms(const trpi_region_core *core); /* TRPI_REGION_NEVER: none */
/* Return NULL, or the invariant (sharding-R...) that is broken. */
const char *trpi_region_core_check(const trpi_region_core *core, trpi_check *check);

/* ---- looking --------------------------------------------------------------------------------- */
typedef enum trpi_shard_place {
    TRPI_SHARD_PLACE_UNKNOWN = 0,
    TRPI_SHARD_PLACE_AWAY = 1,    /* at node */
    TRPI_SHARD_PLACE_OPENING = 2, /* granted; waits for a fence */
    TRPI_SHARD_PLACE_OWN = 3,
    TRPI_SHARD_PLACE_STOPPING = 4
} trpi_shard_place;

typedef struct trpi_region_shard_info {
    trpi_shard_place place;
    bool wanted;             /* messages wait */
    bool fencing;            /* waits for the fence of fence_node */
    uint64_t epoch;          /* of place; 0: UNKNOWN */
    uint64_t since_ms;       /* of place */
    trpi_node_id node;       /* AWAY */
    trpi_node_id fence_node; /* fencing */
} trpi_region_shard_info;
/* false: no such shard. */
bool trpi_region_core_shard(const trpi_region_core *core, uint32_t shard,
                            trpi_region_shard_info *ret_info);
uint32_t trpi_region_core_hosted(const trpi_region_core *core); /* shards here, in any place */
/* Return the number of shards with messages that wait, since no coordinator has named their home.
 * *ret_since_ms: of the oldest one, set only then. */
uint32_t trpi_region_core_homeless(const trpi_region_core *core, uint64_t *ret_since_ms);
/* The coordinator that it obeys; false: it knows none. registered: it has taken HOSTS. */
bool trpi_region_core_coordinator(const trpi_region_core *core, trpi_node_id *ret_node,
                                  trpi_shard_term *ret_term, bool *ret_registered);

#endif
