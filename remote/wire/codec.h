/* codec.h - bodies of frames: messages, selections, system messages, manifests, handshakes. Pure.
 *
 * A frame can be read without state of the association (such as a table of short ids), so a frame
 * that waited for a connection means the same on the next one. docs/wire.md has the bytes.
 */
#ifndef TRPI_REMOTE_CODEC_H
#define TRPI_REMOTE_CODEC_H

#include "actor/actor.h"
#include "base/wire.h"
#include "remote/wire/frame.h"
#include "remote/wire/serializer.h"

#define TRPI_USER_FIXED_BYTES 24      /* of a USER body, before its payload */
#define TRPI_MANY_RECORD_BYTES 4      /* before each payload in a MANY body */
#define TRPI_MANY_BYTES_MAX 4096      /* a longer run is split: a cut frame is copied */
#define TRPI_HANDSHAKE_BYTES_MAX 4096 /* body of a handshake frame */

/* ---- messages and selections ----------------------------------------------------------------- */

/* Flags of USER and SELECT frames. */
enum {
    /* trpi_code of the sender's node; 3: the first entry of the section */
    TRPI_MESSAGE_SENDER_MASK = 3,
    TRPI_MESSAGE_HAS_NODES = 4,   /* a node section ends the body */
    TRPI_MESSAGE_ANYONE = 8,      /* for any incarnation: it may wait for the next one */
    TRPI_MESSAGE_COMPRESSED = 16, /* USER: what follows the type is compressed (compress.h) */
    TRPI_MESSAGE_TRACED = 32      /* a trace section follows the payload: TRPI_FEATURE_TRACE */
};

/* The trace section. */
#define TRPI_TRACE_SECTION_BYTES 44
typedef struct trpi_wire_trace {
    trp_trace trace;
    uint64_t parent;
    uint64_t sent_ns; /* when it was told, by the wall clock of that node; since the epoch */
} trpi_wire_trace;

typedef struct trpi_message {
    uint32_t to_slot, to_generation; /* USER */
    const char *path;                /* SELECT; not NUL-terminated when decoded */
    size_t path_bytes;
    trp_ref sender;
    uint64_t wire_id;     /* of the type; in */
    const trp_type *type; /* encode only */
    uint16_t serializer;
    bool anyone;
    bool traced;
    trpi_wire_trace trace;  /* when traced */
    const uint8_t *payload; /* to encode: in memory; decoded: in wire form, borrowed */
    size_t payload_bytes;
} trpi_message;

/* Append a USER frame, or a SELECT frame when path is not NULL. frame_bytes_max bounds the body.
 * Errors: TRP_EMSGSIZE, TRP_ENOTYPE (not encodable), TRP_ELIMIT (too many nodes), TRP_ENOMEM. The
 *         buffer is unchanged on every error. */
trp_err trpi_message_encode(trpi_buffer *out, const trpi_serializer *serializer, trpi_node_map *map,
                            uint32_t frame_bytes_max, const trpi_message *message);
/* Split a USER or SELECT body; fills map->third by interning. Errors: TRP_EDATA, TRP_ELIMIT,
 * TRP_ENOMEM. */
trp_err trpi_message_decode(const trpi_frame *frame, trpi_node_map *map, trpi_message *ret_message);
/* The node section: append the third nodes of map; decode it at the end of a body, fill map->third
 * by interning, and give the number of bytes before it. Errors: as encode and decode. */
trp_err trpi_node_section_append(trpi_buffer *out, const trpi_node_map *map);
trp_err trpi_node_section_decode(const trpi_frame *frame, trpi_node_map *map, size_t *ret_left);
/* Messages that agree in recipient, sender, type and serializer share one MANY frame. Begin one:
 * append a frame without payloads; sender_code is one of the two ends or none.
 * Errors: TRP_ENOMEM. */
trp_err trpi_many_begin(trpi_buffer *out, const trpi_message *message, uint8_t sender_code);
/* Append a payload to the MANY frame at out->data + at, the last thing in out.
 * Errors: TRP_EMSGSIZE (no room in this frame), TRP_ELIMIT (it names third nodes), TRP_ENOMEM,
 *         those of encode. The buffer is unchanged. */
trp_err trpi_many_append(trpi_buffer *out, size_t at, const trpi_serializer *serializer,
                         trpi_node_map *map, const trp_type *type, const void *payload,
                         size_t bytes); /* serializer NULL: the payload's bytes as they are */
/* Split the next payload off a decoded MANY message; false: the frame is damaged. */
static inline bool
trpi_many_next(trpi_message *rest, const uint8_t **ret_payload, size_t *ret_bytes)
{
    if (rest->payload_bytes < TRPI_MANY_RECORD_BYTES) {
        return false;
    }
    size_t bytes = trpi_get_u32(rest->payload);
    if (bytes > rest->payload_bytes - TRPI_MANY_RECORD_BYTES) {
        return false;
    }
    *ret_payload = rest->payload + TRPI_MANY_RECORD_BYTES;
    *ret_bytes = bytes;
    rest->payload += TRPI_MANY_RECORD_BYTES + bytes;
    rest->payload_bytes -= TRPI_MANY_RECORD_BYTES + bytes;
    return true;
}
/* Decode only recipient and type, of a frame that will not be sent. */
bool trpi_message_peek(const trpi_frame *frame, trpi_message *ret_message);

/* ---- small bodies ---------------------------------------------------------------------------- */

typedef struct trpi_system_message {
    uint64_t seq;
    uint8_t signal; /* trpi_remote_signal */
    uint8_t flag;
    uint32_t to_slot, to_generation;
    uint32_t from_slot, from_generation;
    const uint8_t *tail; /* decoded: borrowed; see remote/wire/deployment.h */
    uint32_t tail_bytes;
} trpi_system_message;
#define TRPI_SYSTEM_FRAME_BYTES (8 + TRPI_SYSTEM_BODY_BYTES) /* without a tail */

void trpi_system_body_encode(uint8_t body[TRPI_SYSTEM_BODY_BYTES],
                             const trpi_system_message *message);
/* Errors: TRP_ENOMEM; out is unchanged. */
trp_err trpi_system_frame_append(trpi_buffer *out, uint64_t seq,
                                 const uint8_t body[TRPI_SYSTEM_BODY_BYTES], const uint8_t *tail,
                                 uint32_t tail_bytes);
/* Errors: TRP_EDATA (size, unknown signal, a tail where the signal has none). */
trp_err trpi_system_frame_decode(const trpi_frame *frame, trpi_system_message *ret_message);

typedef struct trpi_manifest {
    uint64_t wire_id;
    char name[TRP_TYPE_NAME_BYTES_MAX + 1];
} trpi_manifest;
trp_err trpi_manifest_append(trpi_buffer *out, uint64_t wire_id, const char *name);
trp_err trpi_manifest_decode(const trpi_frame *frame, trpi_manifest *ret_manifest);

/* ---- handshake: a msgpack map; unknown keys are skipped -------------------------------------- */

enum {
    TRPI_FEATURE_MANY = 1,   /* minor version 1 */
    TRPI_FEATURE_DEPLOY = 2, /* minor version 2, as the next: signals from TRPI_SIGNAL_DEPLOY on */
    TRPI_FEATURE_LANES = 4,  /* more lanes than two, FENCE, GOODBYE of one lane */
    TRPI_FEATURE_LZ4 = 8,    /* compressed messages, where it is built in */
    TRPI_FEATURE_WIDE_CONTROL = 16, /* minor version 3: TRPI_CONTROL_FRAME_BYTES_MAX */
    TRPI_FEATURES_MINOR_1 = TRPI_FEATURE_MANY,
    TRPI_FEATURES_MINOR_2 =
        TRPI_FEATURES_MINOR_1 | TRPI_FEATURE_DEPLOY | TRPI_FEATURE_LANES | TRPI_FEATURE_LZ4,
    TRPI_FEATURE_CREDIT = 32, /* minor version 4: CREDIT and CREDIT_ASK */
    TRPI_FEATURES_MINOR_3 = TRPI_FEATURES_MINOR_2 | TRPI_FEATURE_WIDE_CONTROL,
    TRPI_FEATURE_TRACE = 64,  /* minor version 5, as the next: trace sections */
    TRPI_FEATURE_MARKS = 128, /* gossip of drained members */
    TRPI_FEATURES_MINOR_4 = TRPI_FEATURES_MINOR_3 | TRPI_FEATURE_CREDIT,
    TRPI_FEATURES_OWN = TRPI_FEATURES_MINOR_4 | TRPI_FEATURE_TRACE | TRPI_FEATURE_MARKS
};

/* The reason of a refusal in favour of another incarnation of the address. */
#define TRPI_RIVAL_REASON                                                                          \
    "another node has your address and is connected here; while it answers, you are refused: "     \
    "give each its own remote.hostname and remote.port"
/* The same, when that one is not connected at present. */
#define TRPI_CLAIMANT_REASON                                                                       \
    "another node had your address and is looked for there first: if it does not answer, you are " \
    "let in when you call again"
/* The reason of a refusal of a quarantined uid. Nodes parse it: one that was removed from a cluster
 * learns it from this text. */
#define TRPI_BARRED_FORMAT "your incarnation %" PRIu64 " is quarantined here"

typedef struct trpi_handshake {
    trpi_node_id from;
    trpi_address to;          /* the address that the sender wants to reach */
    uint64_t to_uid;          /* response: the uid whose request this answers */
    char reason[160];         /* refusal; TRPI_BARRED_FORMAT is parsed */
    uint32_t frame_bytes_max; /* what the sender takes */
    uint32_t features;        /* TRPI_FEATURE_*: what the sender takes beyond minor version 0 */
    uint32_t minor;           /* the sender's minor version; 0, 1: not sent */
} trpi_handshake;

trp_err trpi_handshake_append(trpi_buffer *out, enum trpi_frame_kind kind,
                              const trpi_handshake *handshake);
/* Errors: TRP_EDATA, TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_handshake_decode(const trpi_frame *frame, trpi_handshake *ret_handshake);

#endif
