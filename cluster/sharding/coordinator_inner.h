/* coordinator_inner.h - the coordinator's engine, shared by coordinator.c, coordinator_nodes.c,
 * coordinator_shards.c and coordinator_check.c. */
#ifndef TRPI_CLUSTER_COORDINATOR_INNER_H
#define TRPI_CLUSTER_COORDINATOR_INNER_H

#include "cluster/sharding/coordinator.h"
#include "cluster/sharding/shard_nodes.h"

typedef struct trpi_coord_node { /* by slot of nodes */
    bool waits;                  /* its answer is needed before an unknown shard is granted */
    bool answered;               /* HOSTS was taken: what it hosts is in the table */
    bool judged;                 /* its settings were compared: WELCOME or REFUSE was sent */
    bool hosts;                  /* may be granted */
    bool accepted;               /* by an earlier coordinator */
    bool refused;                /* its settings differ */
    bool leaving;                /* gives up what it has */
    bool asked_out;              /* LEAVING was received: MAY_LEAVE answers */
    bool gone;                   /* removed, but it may still run what it had until until_ms */
    uint32_t shards;             /* of the table: its own */
    uint32_t asks;               /* ASK was sent so often */
    uint64_t since_ms, asked_ms, until_ms;
    uint64_t avoid_since_ms, avoid_sent_ms; /* 0: AVOID was not sent for it */
    trpi_slot_set avoid;                    /* nodes that have not answered AVOID for this one */
    trpi_sharding_settings settings;
} trpi_coord_node;

typedef struct trpi_coord_shard {
    uint64_t epoch, since_ms, sent_ms;
    uint64_t blocked_ms; /* FREE: not granted before */
    uint32_t node;       /* slot; NONE: FREE */
    uint32_t blocker;    /* slot of the removed node; NONE */
    uint8_t phase;
    bool wanted;          /* FREE: to be granted as soon as it may */
    bool known;           /* it has had a home in this term */
    trpi_slot_set askers; /* nodes that are to be told its home */
    trpi_slot_set begins; /* BEGINNING: nodes that have not fenced */
} trpi_coord_shard;

typedef struct trpi_coord_orphan { /* a second host of a shard: it must stop */
    uint32_t node, shard;
    uint64_t epoch, since_ms;
} trpi_coord_orphan;

typedef struct trpi_coord_out { /* one item of a frame to be sent at the end of the step */
    uint32_t to;                /* slot; NONE: to all */
    uint32_t kind;
    uint32_t home; /* HOME: slot */
    trpi_shard_item item;
} trpi_coord_out;

struct trpi_coordinator {
    trpi_node_id self;
    trpi_coordinator_options options;
    char type[TRPI_SHARD_TYPE_BYTES_MAX + 1];
    char role[TRPI_ROLE_BYTES_MAX + 1];
    bool asks;                       /* the program, by ROUND */
    uint64_t rounds;                 /* that were asked */
    uint64_t round;                  /* whose answer is used; 0: none */
    uint64_t round_open;             /* that is not answered; 0: none */
    uint64_t round_ms;               /* when round_open was asked */
    trpi_sharding_settings own;      /* of the type on this node; shards 0: not started */
    trpi_sharding_settings settings; /* those in force; shards 0: not known yet */
    uint32_t judge;                  /* slot of a node that has them, for texts */
    bool active, retired, ready;
    trpi_shard_term term;
    uint64_t now_ms, wake_ms, since_ms, rebalance_ms;
    bool rebalance_now;
    uint32_t counter; /* of epochs */
    uint32_t moving;  /* shards that are GRANTING, BEGINNING or STOPPING */
    uint32_t wanting; /* FREE and wanted */
    uint32_t last;    /* slot that was granted last */
    trpi_shard_nodes nodes;
    trpi_coord_node *states;
    uint32_t states_count, states_room;
    trpi_coord_shard *shards;
    trpi_coord_orphan *orphans;
    uint32_t orphans_count, orphans_room;
    trpi_coord_out *outs;
    uint32_t outs_count, outs_room;
    trpi_coordinator_action *actions;
    uint32_t actions_count, actions_room;
    char text[TRPI_SHARD_WHY_BYTES];
    trp_err err;
};

/* coordinator.c */
void trpi_coord_say(trpi_coordinator *core, trp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trpi_coord_send(trpi_coordinator *core, uint32_t slot, trpi_shard_frame *frame);
void trpi_coord_put(trpi_coordinator *core, uint32_t to, trpi_shard_frame_kind kind, uint32_t home,
                    uint32_t shard, uint64_t epoch);
void trpi_coord_reset(trpi_coordinator *core);

trpi_coordinator_action *trpi_coord_act(trpi_coordinator *core, trpi_coordinator_action_kind kind);
static inline void
trpi_coord_wake_at(trpi_coordinator *core, uint64_t at_ms)
{
    core->wake_ms = at_ms < core->wake_ms ? at_ms : core->wake_ms;
}

/* coordinator_nodes.c */
void trpi_coord_members(trpi_coordinator *core, const trpi_coordinator_event *event);
void trpi_coord_hosts(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame);
void trpi_coord_leaving(trpi_coordinator *core, uint32_t slot);
void trpi_coord_avoided(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame);
void trpi_coord_look_at_nodes(trpi_coordinator *core);
bool trpi_coord_has_answers(const trpi_coordinator *core);
bool trpi_coord_may_get(const trpi_coordinator *core, uint32_t slot);
uint32_t trpi_coord_regions(const trpi_coordinator *core); /* drained ones, too */
bool trpi_coord_has_taker(const trpi_coordinator *core);   /* a region that may be granted */

/* coordinator_shards.c */
void trpi_coord_set(trpi_coordinator *core, uint32_t number, trpi_shard_phase phase, uint32_t slot,
                    uint64_t epoch);
void trpi_coord_want(trpi_coordinator *core, uint32_t number);
void trpi_coord_get(trpi_coordinator *core, uint32_t slot, const trpi_shard_frame *frame);
void trpi_coord_begun(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item);
void trpi_coord_stopped(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item);
void trpi_coord_started(trpi_coordinator *core, uint32_t slot, const trpi_shard_item *item);
void trpi_coord_move(trpi_coordinator *core, uint32_t number);
void trpi_coord_forget_node(trpi_coordinator *core, uint32_t slot);
void trpi_coord_look_at_shards(trpi_coordinator *core);

/* coordinator_grants.c */
/* Give wanted shards a home, and rebalance where that is due; or ask the program. */
void trpi_coord_allocate(trpi_coordinator *core);
void trpi_coord_answer(trpi_coordinator *core, const trpi_allocation_question *round);

#endif
