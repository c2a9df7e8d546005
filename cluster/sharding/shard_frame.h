/* shard_frame.h - what regions and coordinators send to each other (TRPI_CHANNEL_SHARDING).
 *
 * A frame is a msgpack map with short keys; unknown keys are skipped. It names its type of entities
 * and the coordinator that it comes from or is meant for; the transport proves its sender. Frames
 * may be lost, doubled and reordered: each of them may be sent again at any time.
 * docs/wire.md, "sharding".
 */
#ifndef TRPI_CLUSTER_SHARD_FRAME_H
#define TRPI_CLUSTER_SHARD_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/buffer.h"
#include "cluster/engine/ident.h"

#define TRPI_SHARD_TYPE_BYTES_MAX 63u /* TRP_ENTITY_TYPE_BYTES_MAX */
#define TRPI_SHARDS_MAX 100000u       /* of one type: TRP_SHARDING_SHARDS_MAX */
#define TRPI_SHARD_WHY_BYTES 512u     /* of a refusal, with the NUL */

/* Wire numbers, never reused. C: the coordinator, R: a region. */
typedef enum trpi_shard_frame_kind {
    TRPI_SHARD_FRAME_ASK = 1,        /* C to R: what do you host? The answer binds the region */
    TRPI_SHARD_FRAME_HOSTS = 2,      /* R to C: settings, and all shards that it hosts */
    TRPI_SHARD_FRAME_WELCOME = 3,    /* C to R: HOSTS was taken */
    TRPI_SHARD_FRAME_REFUSE = 4,     /* C to R: its settings differ; text */
    TRPI_SHARD_FRAME_GET = 5,        /* R to C: where are these shards? */
    TRPI_SHARD_FRAME_HOME = 6,       /* C to R: these are at node */
    TRPI_SHARD_FRAME_BEGIN = 7,      /* C to R: tell these no more, they will move */
    TRPI_SHARD_FRAME_BEGUN = 8,      /* R to C: done, and fenced */
    TRPI_SHARD_FRAME_HANDOFF = 9,    /* C to R: end these */
    TRPI_SHARD_FRAME_STOPPED = 10,   /* R to C: these have ended, or never ran */
    TRPI_SHARD_FRAME_GRANT = 11,     /* C to R: these are yours */
    TRPI_SHARD_FRAME_STARTED = 12,   /* R to C: these are hosted */
    TRPI_SHARD_FRAME_LEAVING = 13,   /* R to C: give me no more, take all that I have */
    TRPI_SHARD_FRAME_AVOID = 14,     /* C to R: tell node no more */
    TRPI_SHARD_FRAME_AVOIDED = 15,   /* R to C: done, and fenced */
    TRPI_SHARD_FRAME_MAY_LEAVE = 16, /* C to R: nobody tells you any more */
    TRPI_SHARD_FRAME_STALE = 17,     /* R to C: bound is later than you */
    TRPI_SHARD_FRAME_REBALANCE = 18, /* to C: look now, whatever the period */
    TRPI_SHARD_FRAME_KIND_COUNT = 19
} trpi_shard_frame_kind;

/* Names a coordinator: the later one is in command. {0, 0}: none. */
typedef struct trpi_shard_term {
    uint64_t up_number, uid; /* of its node */
} trpi_shard_term;

/* Negative: a is earlier than b. */
static inline int
trpi_shard_term_compare(trpi_shard_term a, trpi_shard_term b)
{
    if (a.up_number != b.up_number) {
        return a.up_number < b.up_number ? -1 : 1;
    }
    return a.uid < b.uid ? -1 : a.uid > b.uid;
}

/* How a region has a shard; wire numbers. */
typedef enum trpi_shard_hold {
    TRPI_SHARD_HOLD_OWN = 0,
    TRPI_SHARD_HOLD_OPENING = 1, /* granted; its own messages to the old home are not fenced yet */
    TRPI_SHARD_HOLD_STOPPING = 2
} trpi_shard_hold;

typedef struct trpi_shard_item {
    uint32_t shard;
    uint32_t hold;  /* HOSTS: trpi_shard_hold */
    uint64_t epoch; /* GET: 0 */
} trpi_shard_item;

/* How the shards of one type are spread and moved. All nodes should start a type with the same;
 * shards and extractor_version must be. */
typedef struct trpi_sharding_settings {
    uint32_t shards; /* 0: the type is not started there */
    uint32_t extractor_version;
    uint32_t allocation;     /* trpi_allocation_kind */
    uint32_t moves_max;      /* of one round */
    uint32_t moves_permille; /* of one round, of all shards */
    uint32_t members_min;    /* regions before any grant */
    uint32_t rebalance_ms;   /* period */
    bool keeps_active;       /* hand-off 2a; else 2b or 2c */
    bool eager;              /* all shards get a home without a message: remembered entities */
    bool drops, unordered, late_drops; /* the region's: 2c, 3a, 4b */
} trpi_sharding_settings;

typedef struct trpi_shard_frame {
    trpi_shard_frame_kind kind;
    bool hosts;      /* HOSTS: the type is started with a recipe, and may be granted */
    bool accepted;   /* HOSTS: a coordinator has taken these settings before */
    bool leaving;    /* HOSTS */
    uint64_t to_uid; /* 0: any incarnation there */
    trpi_shard_term term;
    trpi_shard_term bound;           /* STALE */
    trpi_node_id node;               /* HOME, AVOID, AVOIDED */
    trpi_sharding_settings settings; /* HOSTS, WELCOME */
    trpi_shard_item *items;          /* written: borrowed; read: owned */
    uint32_t items_count;
    char type[TRPI_SHARD_TYPE_BYTES_MAX + 1];
    char role[TRPI_ROLE_BYTES_MAX + 1]; /* "": all members */
    char text[TRPI_SHARD_WHY_BYTES];    /* REFUSE */
} trpi_shard_frame;

/* Errors: TRP_ENOMEM, TRP_EMSGSIZE. */
trp_err trpi_shard_frame_encode(const trpi_shard_frame *frame, trpi_buffer *ret_bytes);
/* Decode; never trusts. Gives what *ret_frame holds (trpi_shard_frame_fini). Errors: TRP_EDATA,
 * TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_shard_frame_decode(const uint8_t *bytes, size_t count, trpi_shard_frame *ret_frame);
void trpi_shard_frame_fini(trpi_shard_frame *frame); /* of a decoded one; zeroed is fine */
const char *trpi_shard_frame_name(trpi_shard_frame_kind kind); /* for logs */

#endif
