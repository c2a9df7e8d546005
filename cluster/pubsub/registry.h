/* registry.h - the registry of one mediator: which node has which paths, topics and groups. Pure: a
 * function of state, time and event. One for each mediator of a node; it belongs to one thread.
 *
 *     program --put--> own bucket --DELTA--> each member of the role, until it has acknowledged
 *     frames, members, ticks --> buckets of the others --> index: key -> places (node, how many)
 *                            `--> actions
 *
 * Each node changes its own bucket only, and counts its changes: the version. A peer acknowledges
 * the version up to which it knows everything. When all have acknowledged all, nothing is sent and
 * trpi_pubreg_wake_ms() is never. A member's bucket counts while it is Up or WeaklyUp: from
 * Leaving on nothing is sent to its subscribers. One that is unreachable stays.
 *
 * The shell gives what happened, then does the actions, and calls trpi_pubreg_tick() when it is
 * time. Look-ups allocate nothing.
 */
#ifndef TRPI_CLUSTER_PUBSUB_REGISTRY_H
#define TRPI_CLUSTER_PUBSUB_REGISTRY_H

#include <troupe/cluster.h>

#include "base/address.h"
#include "base/buffer.h"
#include "base/check.h"
#include "cluster/pubsub/registry_frame.h"

#define TRPI_PUBREG_TICK_MS 100u
#define TRPI_PUBREG_PEER_BYTES_MAX 32768u /* of one tick, to one node */
#define TRPI_PUBREG_PEER_BYTES_MIN 2048u
#define TRPI_PUBREG_TICK_BYTES_MAX 262144u /* of one tick, to all */
#define TRPI_PUBREG_RETRY_MS 500u          /* what is not acknowledged; doubled each time, */
#define TRPI_PUBREG_RETRY_MS_MAX 8000u     /* up to this */
#define TRPI_PUBREG_ENTRIES_MAX 100000u    /* of one node */
#define TRPI_PUBREG_REMOVED_MAX 100000u    /* removed ones that are kept for peers that lag */
#define TRPI_PUBREG_NOWHERE UINT32_MAX     /* no node */
#define TRPI_PUBREG_SELF 0u                /* the index of this node */

typedef struct trpi_pubreg_options { /* a zero field is its default, as above */
    uint32_t tick_ms, retry_ms, retry_ms_max;
    uint32_t peer_bytes_max; /* TRPI_PUBREG_PEER_BYTES_MIN at least, so that each entry fits */
    uint32_t tick_bytes_max;
    uint32_t entries_max, removed_max;
    uint32_t slot, generation; /* of the mediator: frames tell it to the peers */
    /* Of mediators of this name in this incarnation of the node, higher than that of any earlier
     * one; 0: 1. */
    uint64_t life;
    uint32_t broken; /* TRPI_PUBREG_BROKEN_*: a fault on purpose, for the simulation */
} trpi_pubreg_options;

enum {
    TRPI_PUBREG_BROKEN_PRUNE = 1,   /* removed entries are forgotten at once */
    TRPI_PUBREG_BROKEN_LIFE = 2,    /* a new incarnation is taken for the old one */
    TRPI_PUBREG_BROKEN_GAP = 4,     /* deltas that begin too late are taken */
    TRPI_PUBREG_BROKEN_LEAVING = 8, /* buckets are dropped when their node is removed */
    TRPI_PUBREG_BROKEN_RETRY = 16,  /* what is lost is not sent again */
    TRPI_PUBREG_BROKEN_BEGUN = 32,  /* a subscription that begins again is told as the old one */
    TRPI_PUBREG_BROKEN_ERA = 64,    /* a mediator is taken for lost when it tells all again */
    TRPI_PUBREG_BROKEN_STAMP = 128  /* who looks at a topic does not see that its groups change */
};

typedef struct trpi_pubreg_member {
    trpi_node_id id;
    trp_member_status status;
} trpi_pubreg_member;

typedef enum trpi_pubreg_action_kind {
    TRPI_PUBREG_SEND = 1, /* bytes to node on TRPI_CHANNEL_PUBSUB; may be lost */
    TRPI_PUBREG_MET = 2,  /* index: its mediator is at slot, generation */
    /* index: its bucket counts no more, or its mediator is another one; what was sent may be
     * unanswered */
    TRPI_PUBREG_LOST = 3,
    TRPI_PUBREG_LOG = 4 /* level, text */
} trpi_pubreg_action_kind;

typedef struct trpi_pubreg_action {
    trpi_pubreg_action_kind kind;
    uint32_t index;
    trpi_node_id node;
    trpi_buffer bytes; /* borrowed until the next event */
    uint32_t slot, generation;
    trp_log_level level;
    const char *text;
} trpi_pubreg_action;

typedef struct trpi_pubreg trpi_pubreg;

/* Gives *ret_registry. name: 1 to TRPI_MEDIATOR_NAME_BYTES_MAX bytes. Errors: TRP_EINVAL,
 * TRP_ENOMEM. */
trp_err trpi_pubreg_new(const trpi_node_id *self, const char *name,
                        const trpi_pubreg_options *options, trpi_pubreg **ret_registry);
void trpi_pubreg_free(trpi_pubreg *registry); /* NULL is fine */

/* ---- events ---------------------------------------------------------------------------------- */
/* count actors are registered here under key now; 0: none. It is seen here at once, and sent at the
 * next tick. Errors: TRP_EINVAL (the key), TRP_ELIMIT (entries_max), TRP_ENOMEM; nothing has
 * changed then. Removing never fails. */
trp_err trpi_pubreg_put(trpi_pubreg *registry, uint64_t now_ms, const trpi_pubsub_key *key,
                        uint32_t count);
/* All members with the mediator's role, this one among them, in any order, with their present
 * states. Errors: TRP_ENOMEM: call it again. */
trp_err trpi_pubreg_members(trpi_pubreg *registry, uint64_t now_ms,
                            const trpi_pubreg_member *members, uint32_t count);
/* A frame of this mediator's name. Errors: TRP_ENOMEM: what it says is as lost; there may be
 * actions all the same. */
trp_err trpi_pubreg_frame(trpi_pubreg *registry, uint64_t now_ms, const trpi_node_id *from,
                          const trpi_pubsub_frame *frame);
void trpi_pubreg_tick(trpi_pubreg *registry, uint64_t now_ms);
uint64_t trpi_pubreg_wake_ms(const trpi_pubreg *registry); /* UINT64_MAX: never */
/* The actions that follow from the last of members(), frame(), tick(); valid until the next of
 * them. */
const trpi_pubreg_action *trpi_pubreg_actions(const trpi_pubreg *registry, uint32_t *ret_count);

/* ---- looking --------------------------------------------------------------------------------- */
/* Of a key, one node that has it. */
typedef struct trpi_pubreg_place {
    uint32_t node;  /* index */
    uint32_t count; /* above 0 */
    uint64_t begun; /* TOPIC: trpi_pubsub_item.begun, and */
    uint64_t since; /* the number of the first publication from here that is meant for it */
} trpi_pubreg_place;

typedef struct trpi_pubreg_entry {
    trpi_pubsub_key key;
    uint64_t hash;
    trpi_pubreg_place *places;
    uint32_t places_count, places_room;
    uint64_t number;                   /* TOPIC: of the last publication from here */
    uint64_t turn;                     /* PATH, GROUP: of the round robin */
    struct trpi_pubreg_entry **groups; /* TOPIC */
    uint32_t groups_count, groups_room;
    struct trpi_pubreg_entry *topic; /* GROUP */
    /* trpi_pubreg_changes() at its last change, of a TOPIC also of its groups; above 0 */
    uint64_t changed;
    char bytes[]; /* of the key */
} trpi_pubreg_entry;

/* NULL: nobody has it. A TOPIC that has groups only is there, without places. Valid until the next
 * event. */
trpi_pubreg_entry *trpi_pubreg_find(const trpi_pubreg *registry, const trpi_pubsub_key *key);
/* The next entry, in no order; *position starts at 0. NULL: there are no more. */
trpi_pubreg_entry *trpi_pubreg_next(const trpi_pubreg *registry, uint32_t *position);
/* All that are registered under an entry, for a TOPIC those in its groups, too. */
uint64_t trpi_pubreg_count(const trpi_pubreg_entry *entry);
uint32_t trpi_pubreg_topics(const trpi_pubreg *registry); /* how many topics have anybody */
/* How many are registered here under key. */
uint32_t trpi_pubreg_own(const trpi_pubreg *registry, const trpi_pubsub_key *key);
/* Grows whenever the answer to a look-up may have changed. */
uint64_t trpi_pubreg_changes(const trpi_pubreg *registry);

/* The version of the own bucket; and that up to which every present peer has acknowledged it, so
 * that who subscribed at a version may be told that it is known everywhere. Peers without a
 * mediator do not count; one that has not said so, does. While this node is not Up nothing is known
 * anywhere: 0. */
uint64_t trpi_pubreg_version(const trpi_pubreg *registry);
uint64_t trpi_pubreg_known_version(const trpi_pubreg *registry);
bool trpi_pubreg_is_settled(const trpi_pubreg *registry); /* both are equal */

/* A node of an index. life 0: its mediator has not been heard. */
typedef struct trpi_pubreg_node {
    trpi_node_id id;
    uint64_t life;
    uint32_t slot, generation;
} trpi_pubreg_node;
const trpi_pubreg_node *trpi_pubreg_node_at(const trpi_pubreg *registry, uint32_t index);
/* NOWHERE: no member whose bucket counts, nor one that leaves. */
uint32_t trpi_pubreg_node_of(const trpi_pubreg *registry, const trpi_node_id *id);

/* ---- publications that arrive ---------------------------------------------------------------- */
/* Travels with a publication to subscribers without a group. */
typedef struct trpi_pubsub_stamp {
    uint64_t life;   /* of the publishing mediator */
    uint64_t number; /* of (that mediator, topic) */
    uint64_t begun;  /* names the subscription of the receiving node */
    uint64_t since;  /* the first number that was meant for it */
} trpi_pubsub_stamp;
typedef struct trpi_pubsub_arrival {
    uint64_t missed; /* publications of that node in this topic that were lost before this one */
    bool late;       /* it was counted as missed before, or came twice */
} trpi_pubsub_arrival;
/* A publication for a topic that has subscribers here has come from a node. The shell tells what
 * is missed to all who subscribe to the topic here and ask. Errors: TRP_ENOENT (nobody subscribes
 * here), TRP_ENOMEM (its gap is not counted). */
trp_err trpi_pubreg_arrived(trpi_pubreg *registry, const trpi_pubsub_key *topic,
                            const trpi_node_id *from, const trpi_pubsub_stamp *stamp,
                            trpi_pubsub_arrival *ret_arrival);

/* NULL, or the law that does not hold. */
const char *trpi_pubreg_check(const trpi_pubreg *registry, trpi_check *check);

#endif
