/* gossip_codec.h - the bytes of the gossip channel (TRPI_CHANNEL_GOSSIP).
 *
 * A frame is a msgpack map with short keys; unknown keys are skipped, so that versions may be mixed
 * during a rolling upgrade. A frame does not name its sender: the transport proves that.
 * docs/wire.md, "gossip".
 */
#ifndef TRPI_CLUSTER_GOSSIP_CODEC_H
#define TRPI_CLUSTER_GOSSIP_CODEC_H

#include "base/buffer.h"
#include "base/table.h"
#include "cluster/engine/compat.h"
#include "cluster/engine/gossip.h"

#define TRPI_FRAME_REASON_BYTES 160 /* with the NUL */
#define TRPI_FRAME_TTL_MAX 8u       /* replies that one frame may lead to */

/* Wire numbers, never reused. */
enum trpi_frame_kind {
    TRPI_FRAME_INIT_JOIN = 1,         /* may I join? */
    TRPI_FRAME_INIT_JOIN_ACK = 2,     /* yes, with this ticket */
    TRPI_FRAME_INIT_JOIN_NACK = 3,    /* no: not a member myself, or the reason */
    TRPI_FRAME_JOIN = 4,              /* ticket, roles, version */
    TRPI_FRAME_WELCOME = 5,           /* the view with the joiner in it */
    TRPI_FRAME_DIGEST = 6,            /* of the sender's version, and its seen set */
    TRPI_FRAME_VERSION = 7,           /* my vector clock: is yours newer? */
    TRPI_FRAME_ENVELOPE = 8,          /* the view, and its seen set */
    TRPI_FRAME_EXITING_CONFIRMED = 9, /* I have done what I had to: remove me */
    TRPI_FRAME_GONE = 10,             /* you have been removed here */
    TRPI_FRAME_STRANGER = 11,         /* I do not know you: join here, too */
    TRPI_FRAME_MARKS = 12,            /* drained members (marks.h); to peers with the feature */
    TRPI_FRAME_KIND_COUNT = 13
};

/* Wire numbers. */
enum trpi_nack_code {
    TRPI_NACK_NOT_READY = 1, /* not a member (yet): ask again */
    TRPI_NACK_REFUSED = 2,   /* will not work as things are; reason says why */
    TRPI_NACK_REMOVED = 3,   /* this incarnation is Down or was removed: it must end */
    TRPI_NACK_LEAVING = 5,   /* a member, but on its way out: ask another one */
    /* this incarnation was asked to leave before it knew that it had joined */
    TRPI_NACK_LEFT = 4,
    /* reason names the setting that differs; only to a joiner that sent its list (compat.h) */
    TRPI_NACK_INCOMPATIBLE = 6
};

/* A set of the members of one version, as read from a frame. */
typedef struct trpi_frame_set {
    bool all;
    uint8_t *bytes; /* little-endian bitset; NULL: nothing is said */
    size_t count;
} trpi_frame_set;

typedef struct trpi_frame {
    uint32_t kind;
    uint32_t ttl;
    uint64_t to_uid; /* 0: any incarnation there */
    uint64_t ticket; /* INIT_JOIN_ACK, JOIN */
    uint64_t digest; /* DIGEST, VERSION */
    /* NACK: trpi_nack_code; GONE: last status; INIT_JOIN: 1: lets a difference in compat pass */
    uint32_t code;
    trpi_frame_set seen;      /* read: who has seen that version */
    trpi_frame_set sure;      /* read: whose change of vote is known to be seen by all (votes.h) */
    const trpi_seen *told;    /* to be written as sure; borrowed; NULL: nothing is said */
    trpi_vclock_entry *clock; /* VERSION; MARKS: the counters of marks */
    uint32_t clock_count;
    bool near; /* GONE: the receiver was reachable when it was removed, so no cut was the reason */
    uint64_t *keys; /* GONE: of the members whose cluster it is; NULL: an earlier version's */
    uint32_t keys_count;
    trpi_ident *ident;   /* JOIN */
    trpi_gossip *gossip; /* WELCOME, ENVELOPE */
    trpi_compat *compat; /* INIT_JOIN; NULL: an earlier version's */
    char reason[TRPI_FRAME_REASON_BYTES];
    /* INIT_JOIN: the system that the sender thinks it joins */
    char system[TRPI_SYSTEM_BYTES_MAX + 1];
} trpi_frame;

/* Different roles in order of first use; texts are borrowed from the identities. */
typedef struct trpi_role_table {
    const char *roles[TRPI_GOSSIP_ROLES_MAX];
    trpi_table index; /* of roles: index and 1 */
    uint32_t count;
} trpi_role_table;
trpi_role_table *trpi_role_table_new(void);        /* NULL: no memory */
void trpi_role_table_free(trpi_role_table *table); /* NULL is fine */
/* Errors: TRP_ENOMEM, TRP_ELIMIT (more than TRPI_GOSSIP_ROLES_MAX; those that found room stay). */
trp_err trpi_role_table_add(trpi_role_table *table, const trpi_ident *ident);
/* How many of its roles the table does not have. */
uint32_t trpi_role_table_missing(const trpi_role_table *table, const trpi_ident *ident);

/* Results that many nodes of one process (the simulator's) would each compute: views by their
 * bytes, merges by their two inputs, identities by their key. Where cache may be NULL, nothing is
 * kept. */
typedef struct trpi_gossip_cache trpi_gossip_cache;
trpi_gossip_cache *trpi_gossip_cache_new(uint32_t slots); /* NULL: no memory */
void trpi_gossip_cache_free(trpi_gossip_cache *cache);    /* NULL is fine */
/* As trpi_gossip_decode, trpi_gossip_merge. */
trp_err trpi_gossip_cache_decode(trpi_gossip_cache *cache, const uint8_t *bytes, size_t count,
                                 const trpi_gossip *known, trpi_gossip **ret_gossip);
trp_err trpi_gossip_cache_merge(trpi_gossip_cache *cache, trpi_gossip *a, trpi_gossip *b,
                                trpi_gossip **ret_merged);
/* Takes ident; gives it, or an equal one that was there before. */
trpi_ident *trpi_gossip_cache_ident(trpi_gossip_cache *cache, trpi_ident *ident);

/* Encode into *ret_bytes (trpi_buffer_fini by the caller). seen may be NULL.
 * Errors: TRP_ENOMEM, TRP_EMSGSIZE (TRPI_PACK_BYTES_MAX), TRP_ELIMIT (TRPI_GOSSIP_ROLES_MAX),
 * TRP_EINVAL (members of several systems). */
trp_err trpi_frame_encode(const trpi_frame *frame, const trpi_seen *seen, trpi_buffer *ret_bytes);
/* Decode; never trusts. known: a view whose identities are shared, or NULL. from: for JOIN's
 * identity. Gives what *ret_frame holds (trpi_frame_fini). Errors: TRP_EDATA, TRP_EMSGSIZE,
 * TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_frame_decode(const uint8_t *bytes, size_t count, const trpi_node_id *from,
                          const trpi_gossip *known, trpi_gossip_cache *cache,
                          trpi_frame *ret_frame);
void trpi_frame_fini(trpi_frame *frame);
/* Fill seen (initialised for the frame's view) from a set of the frame. false: the sizes do not
 * fit. */
bool trpi_frame_seen(const trpi_frame_set *set, trpi_seen *seen);

/* The view alone: the "g" of a frame. Encoding is kept in the snapshot. */
trp_err trpi_gossip_encode(trpi_gossip *gossip);
trp_err trpi_gossip_decode(const uint8_t *bytes, size_t count, const trpi_gossip *known,
                           trpi_gossip **ret_gossip);

#endif
