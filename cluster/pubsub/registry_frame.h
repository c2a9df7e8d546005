/* registry_frame.h - what registries of publish and subscribe send to each other
 * (TRPI_CHANNEL_PUBSUB).
 *
 * A frame is a msgpack map with short keys; unknown keys and kinds are skipped. It names its
 * mediator; the transport proves its sender. Frames may be lost, doubled and reordered.
 * docs/wire.md, "publish and subscribe".
 */
#ifndef TRPI_CLUSTER_PUBSUB_REGISTRY_FRAME_H
#define TRPI_CLUSTER_PUBSUB_REGISTRY_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/buffer.h"

#define TRPI_MEDIATOR_NAME_BYTES_MAX 63u /* without the NUL; TRP_MEDIATOR_NAME_BYTES_MAX */
#define TRPI_TOPIC_BYTES_MAX 1024u       /* of a topic or a path: any bytes, no NUL is needed */
#define TRPI_GROUP_BYTES_MAX 255u        /* any bytes, too */
#define TRPI_PUBSUB_ITEMS_MAX 65536u     /* of one frame */
/* Of a life, era, version or publication: no sum of two overflows; what is above is refused. */
#define TRPI_PUBSUB_NUMBER_MAX (UINT64_MAX / 4)

/* Wire numbers, never reused. */
typedef enum trpi_pubsub_frame_kind {
    TRPI_PUBSUB_HELLO = 1,  /* is a mediator there? answered ACK, or ABSENT */
    TRPI_PUBSUB_DELTA = 2,  /* changes of the sender's bucket; answered ACK */
    TRPI_PUBSUB_ACK = 3,    /* what the sender has seen of the receiver's bucket */
    TRPI_PUBSUB_ABSENT = 4, /* no mediator of this name is there */
    TRPI_PUBSUB_FRAME_KIND_COUNT = 5
} trpi_pubsub_frame_kind;

/* Wire numbers, never reused. */
typedef enum trpi_pubsub_kind {
    TRPI_PUBSUB_PATH = 1,  /* an actor that was put: for send and send to all */
    TRPI_PUBSUB_TOPIC = 2, /* subscribers without a group */
    TRPI_PUBSUB_GROUP = 3  /* subscribers of a topic in one group */
} trpi_pubsub_kind;

/* The name of an entry; borrowed bytes, which may have any values. */
typedef struct trpi_pubsub_key {
    trpi_pubsub_kind kind;
    uint32_t name_bytes;  /* 1 to TRPI_TOPIC_BYTES_MAX */
    uint32_t group_bytes; /* GROUP: 1 to TRPI_GROUP_BYTES_MAX; else 0 */
    const void *name;     /* the path or the topic */
    const void *group;
} trpi_pubsub_key;

typedef struct trpi_pubsub_item {
    trpi_pubsub_key key;
    uint32_t count;   /* of actors registered at its owner; 0: none is left */
    uint64_t version; /* of the owner's bucket, at its last change */
    uint64_t begun;   /* at the change before which none was registered */
} trpi_pubsub_item;

/* How far a bucket is known. Lives and eras only grow; in a new one all begins again. */
typedef struct trpi_pubsub_mark {
    uint64_t life;    /* of the mediator that owns the bucket, on its node */
    uint64_t era;     /* between that owner and this receiver */
    uint64_t version; /* all changes up to it */
} trpi_pubsub_mark;

typedef struct trpi_pubsub_frame {
    trpi_pubsub_frame_kind kind;
    uint64_t to_uid;
    uint64_t life, era; /* of the sender's bucket */
    /* of the receiver's bucket; life 0: nothing. A DELTA is meant for that life alone */
    trpi_pubsub_mark seen;
    uint64_t question;         /* HELLO; ABSENT repeats it */
    uint32_t slot, generation; /* of the sender's mediator, an actor */
    bool gap;                  /* ACK: a DELTA began above what was seen */
    uint64_t base, version;    /* DELTA: all changes above base, up to version */
    trpi_pubsub_item *items;   /* DELTA; written: borrowed; read: owned, the keys' bytes too */
    uint32_t items_count;
    uint8_t *bytes; /* read: where the keys' bytes are */
    char name[TRPI_MEDIATOR_NAME_BYTES_MAX + 1];
} trpi_pubsub_frame;

/* The key is within the limits; what comes from a program is asked this. */
bool trpi_pubsub_key_is_valid(const trpi_pubsub_key *key);
bool trpi_pubsub_key_equal(const trpi_pubsub_key *a, const trpi_pubsub_key *b);
uint64_t trpi_pubsub_key_hash(const trpi_pubsub_key *key);
/* At most so many bytes of a frame. */
uint32_t trpi_pubsub_item_bytes(const trpi_pubsub_item *item);

/* Gives *ret_bytes. Errors: TRP_ENOMEM, TRP_EMSGSIZE. */
trp_err trpi_pubsub_frame_encode(const trpi_pubsub_frame *frame, trpi_buffer *ret_bytes);
/* Decode; never trusts. Gives what *ret_frame holds (trpi_pubsub_frame_fini). Errors: TRP_EDATA,
 * TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_pubsub_frame_decode(const uint8_t *bytes, size_t count, trpi_pubsub_frame *ret_frame);
void trpi_pubsub_frame_fini(trpi_pubsub_frame *frame); /* of a decoded one; zeroed is fine */
/* The answer of a node without a mediator of the frame's name; false: none is due. */
bool trpi_pubsub_frame_absent(const trpi_pubsub_frame *frame, uint64_t from_uid,
                              trpi_pubsub_frame *ret_answer);
const char *trpi_pubsub_frame_name(trpi_pubsub_frame_kind kind); /* for logs */

#endif
