/* region_inner.h - the region engine, shared by region_core.c, region_frames.c and
 * region_check.c. */
#ifndef TRPI_CLUSTER_REGION_INNER_H
#define TRPI_CLUSTER_REGION_INNER_H

#include "cluster/sharding/region_core.h"
#include "cluster/sharding/shard_nodes.h"

typedef struct trpi_region_shard {
    uint64_t epoch;       /* of place; 0: UNKNOWN */
    uint64_t ended;       /* no grant up to this one is taken */
    uint64_t heard;       /* the latest epoch that anybody named; earlier homes are not believed */
    uint64_t next_epoch;  /* with next */
    uint64_t begun_epoch; /* fencing: BEGUN is to be sent; 0: it is not */
    uint64_t since_ms;    /* of place */
    uint64_t asked_ms;    /* GET was sent last; 0: never */
    uint64_t wanted_ms;   /* wanted: since when */
    uint64_t fence_since_ms, fence_sent_ms;
    uint32_t node;  /* AWAY: slot */
    uint32_t fence; /* slot whose fence is waited for; NONE */
    uint32_t next;  /* fencing, and UNKNOWN: the home to use after it; NONE */
    uint8_t place;  /* trpi_shard_place */
    bool wanted;    /* messages wait */
    bool curious;   /* it was told before: its home is asked for without a message, too */
} trpi_region_shard;

typedef struct trpi_region_node { /* by slot */
    bool avoided;                 /* it leaves: nothing is sent there any more */
    bool avoid_asks;              /* the coordinator waits for AVOIDED */
    uint32_t fences;              /* shards that wait for its fence */
} trpi_region_node;

typedef struct trpi_region_out { /* items for the coordinator */
    trpi_shard_item *items;
    uint32_t items_count, items_room;
} trpi_region_out;

struct trpi_region_core {
    trpi_node_id self;
    trpi_region_core_options options;
    char type[TRPI_SHARD_TYPE_BYTES_MAX + 1];
    char role[TRPI_ROLE_BYTES_MAX + 1];
    trpi_sharding_settings settings; /* shards 0: not started */
    bool hosts, accepted, refused;
    bool leaving, may_leave, left; /* left: MAY_LEAVE was returned */
    uint64_t now_ms, wake_ms, may_leave_ms, said_leaving_ms;
    trpi_shard_term bound; /* the latest coordinator that was answered or seen */
    trpi_node_id boss;     /* its node */
    bool registered;       /* it has taken HOSTS */
    uint64_t told_ms;      /* HOSTS was sent last; 0: not to this one */
    trpi_shard_nodes nodes;
    trpi_region_node *peers; /* by slot */
    uint32_t peers_count, peers_room;
    trpi_region_shard *shards;
    uint32_t hosted, fencing; /* shards */
    trpi_region_out get, begun, stopped, started;
    trpi_region_action *actions;
    uint32_t actions_count, actions_room;
    char text[TRPI_SHARD_WHY_BYTES]; /* of an action */
    trp_err err;                     /* of this step */
};

/* region_core.c: transitions; each leaves all as it is when there is no memory */
trpi_region_action *trpi_region_act(trpi_region_core *core, trpi_region_action_kind kind,
                                    uint32_t shard);
bool trpi_region_room(trpi_region_core *core, uint32_t actions);
void trpi_region_put(trpi_region_core *core, trpi_region_out *out, uint32_t shard, uint64_t epoch);
void trpi_region_unroute(trpi_region_core *core, uint32_t number, bool always_fence);
void trpi_region_settle(trpi_region_core *core, uint32_t number);
void trpi_region_bind(trpi_region_core *core, trpi_shard_term term, const trpi_node_id *node);
void trpi_region_send(trpi_region_core *core, const trpi_node_id *to, trpi_shard_frame *frame);
void trpi_region_send_hosts(trpi_region_core *core, const trpi_node_id *to);
void trpi_region_end(trpi_region_core *core, uint32_t number, uint64_t epoch);
bool trpi_region_is_ordered(const trpi_region_core *core);

/* region_frames.c */
void trpi_region_frame(trpi_region_core *core, const trpi_node_id *from,
                       const trpi_shard_frame *frame);
/* Answer AVOID for a node when nothing is fenced there any more. */
void trpi_region_avoided(trpi_region_core *core, uint32_t slot);

#endif
