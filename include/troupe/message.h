/* troupe/message.h - message types, protocols, and what a receiver sees of a message.
 *
 * A message is a 32-byte header and a payload. Its type is a static descriptor (trp_type): a name
 * that travels ("bank.deposit"), a size, and, for plain structs, a field table from which the JSON
 * form comes for free. Descriptors are code, not state: they get a process-wide number when their
 * protocol is registered, by trp_protocol_register() or by the first behaviour that accepts it.
 *
 *     #define BANK_DEPOSIT(F, S) F(S, i64, amount) F(S, ref, receipt_to)
 *     #define BANK_BALANCE(F, S) F(S, u32, account)
 *     #define BANK_MESSAGES(M, P) M(P, deposit, BANK_DEPOSIT) M(P, balance, BANK_BALANCE)
 *     TRP_PROTOCOL(bank, BANK_MESSAGES)
 *
 * makes struct bank_deposit and bank_balance, bank_deposit_as() and bank_balance_as() (as
 * trp_msg_as()), the tags bank_deposit_tag and bank_balance_tag (usable as case labels), the
 * descriptors bank_deposit_type and bank_balance_type, the protocol bank_protocol, and bank_ref, a
 * trp_ref in a struct of its own, by which the compiler tells refs of two protocols apart (messages
 * told to one are not checked). Text, bytes, arrays and structs inside, of any length, are in
 * troupe/payload.h. TRP_PROTOCOL_DECLARE in a header plus TRP_PROTOCOL_DEFINE in one source file do
 * the same for several source files.
 */
#ifndef TROUPE_MESSAGE_H
#define TROUPE_MESSAGE_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TYPE_NAME_BYTES_MAX 127  /* "protocol.name" without the NUL */
#define TRP_INLINE_PAYLOAD_MAX 61440 /* above, the payload is held out of line */
#define TRP_TYPES_MAX 65535          /* descriptors registered in one process */
#define TRP_TYPE_DEPTH_MAX 16        /* levels of a hierarchy of types */
#define TRP_TYPE_NESTING_MAX 4       /* structs in structs, the message itself counted */

typedef enum trp_field_kind {
    TRP_FIELD_bool = 1,
    TRP_FIELD_i32 = 2,
    TRP_FIELD_u32 = 3,
    TRP_FIELD_i64 = 4,
    TRP_FIELD_u64 = 5,
    TRP_FIELD_f64 = 6,
    TRP_FIELD_ref = 7,
    TRP_FIELD_text32 = 8,   /* char[32], NUL-terminated */
    TRP_FIELD_text128 = 9,  /* char[128], NUL-terminated */
    TRP_FIELD_text512 = 10, /* char[512], NUL-terminated */
    TRP_FIELD_text = 11,    /* from here on see troupe/payload.h */
    TRP_FIELD_bytes = 12,
    TRP_FIELD_STRUCT = 13,
    TRP_FIELD_ARRAY = 256 /* added to the kind of its elements */
} trp_field_kind;

typedef uint8_t trp_field_bool;
typedef int32_t trp_field_i32;
typedef uint32_t trp_field_u32;
typedef int64_t trp_field_i64;
typedef uint64_t trp_field_u64;
typedef double trp_field_f64;
typedef trp_ref trp_field_ref;
typedef char trp_field_text32[32];
typedef char trp_field_text128[128];
typedef char trp_field_text512[512];

/* Where a text, bytes or elements stand: bytes from the start of the payload. Read and set by
 * troupe/payload.h. */
typedef struct trp_field_text {
    uint32_t at, bytes;
} trp_field_text;
typedef struct trp_field_bytes {
    uint32_t at, bytes;
} trp_field_bytes;
typedef struct trp_array {
    uint32_t at, count;
} trp_array;
#define trp_field_struct(name) name
#define trp_field_array(kind)                                                                      \
    union {                                                                                        \
        trp_array array;                                                                           \
        trp_field_##kind *priv_of; /* no pointer: says what the elements are */                    \
    }
#define TRP_FIELD_struct(name) TRP_FIELD_STRUCT
#define TRP_FIELD_array(kind) (TRP_FIELD_ARRAY | TRP_FIELD_##kind)

struct trp_type;
typedef struct trp_field {
    const char *name;
    uint32_t kind;             /* trp_field_kind */
    uint32_t offset;           /* bytes from the start of the payload, or of the struct */
    const struct trp_type *of; /* the struct of struct and array(struct), else NULL */
} trp_field;

enum {
    TRP_TYPE_VARIABLE = 1,          /* payload length varies */
    TRP_TYPE_TEXT = 2,              /* payload is UTF-8 text, not NUL-terminated */
    TRP_TYPE_JSON = 4,              /* payload is JSON text */
    TRP_TYPE_LOCAL = 8,             /* never leaves the node: dead letter "not-encodable" */
    TRP_TYPE_POSSIBLY_HARMFUL = 16, /* dropped from peers in untrusted mode (REMOTE-54) */
    TRP_TYPE_CONTROL = 32           /* a control-aware mailbox gives it first */
};

typedef struct trp_type {
    const char *name;        /* "protocol.name"; at most TRP_TYPE_NAME_BYTES_MAX */
    uint32_t bytes;          /* payload size; with TRP_TYPE_VARIABLE that of its struct, or 0 */
    uint16_t tag;            /* unique within its protocol */
    uint16_t flags;          /* TRP_TYPE_* */
    const trp_field *fields; /* NULL: opaque bytes */
    uint32_t fields_count;
    uint32_t number; /* 0 until registered; written once, by the library */
} trp_type;

typedef struct trp_protocol {
    const char *name;
    trp_type *const *types;
    uint32_t types_count;
    uint32_t zero;
} trp_protocol;

/* Message header. Part of the ABI because receivers read it in line; the priv_ members are not
 * yours. The payload follows, 16-aligned, unless it is held out of line. */
struct trp_msg {
    void *priv_next;
    uint32_t priv_to_slot, priv_to_generation;
    uint32_t priv_from_slot, priv_from_generation;
    uint32_t priv_from_node_flags; /* 24 bits node, 8 bits flags */
    uint16_t priv_type;            /* trp_type.number */
    uint16_t priv_bytes;           /* payload bytes in line */
};
#define TRP_MSG_PRIV_OUT_OF_LINE 0x01000000u

/* The out-of-line payload is described where the payload would stand. */
typedef struct trp_msg_priv_moved {
    void *data;
    uint64_t bytes;
    void (*release)(void *data, void *arg);
    void *arg;
} trp_msg_priv_moved;

/* Borrow the payload until the behaviour call returns (trp_msg_dup() keeps it). */
static inline const void *
trp_msg_payload(const trp_msg *msg)
{
    const void *in_line = (const char *)msg + 32;
    if (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) {
        return ((const trp_msg_priv_moved *)in_line)->data;
    }
    return in_line;
}
static inline size_t
trp_msg_bytes(const trp_msg *msg)
{
    if (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) {
        return (size_t)((const trp_msg_priv_moved *)(const void *)((const char *)msg + 32))->bytes;
    }
    return msg->priv_bytes;
}
/* True when msg has exactly this (registered) type. */
static inline int
trp_msg_is(const trp_msg *msg, const trp_type *type)
{
    return msg->priv_type == type->number;
}

/* Borrow the payload of msg if it has this (registered) type and at least its size, until the
 * behaviour call returns; NULL: it is of another type. A wrong type is never read beyond its end.
 * TRP_PROTOCOL makes one of each type besides, which returns a pointer to its struct, in C++ too:
 * bank_deposit_as(msg). */
static inline const void *
trp_msg_as(const trp_msg *msg, const trp_type *type)
{
    return trp_msg_is(msg, type) && trp_msg_bytes(msg) >= type->bytes ? trp_msg_payload(msg)
                                                                      : (const void *)0;
}

#define TRP_HELD_BYTES_MAX 65536 /* of the struct of trp_msg_new_held() */

/* Make an unsent message that holds a struct whose members must not be copied, such as a trp_bytes.
 * The struct is zeroed; the caller fills it (*ret_held) before trp_send(), and changes nothing
 * afterwards. drop(held), which may be NULL, gives back its members: it is called once, when the
 * last message is freed that has the struct, wherever that ends: handled, refused, stashed, a dead
 * letter or never sent. trp_msg_dup() and all that keeps or forwards messages share the struct.
 *
 * The type has no bytes and stays on this node:
 *     trp_type chunk_type = TRP_HELD_TYPE("files.chunk", 1);
 * A receiver reads it by trp_msg_held(). Copies of the payload instead of the message have nothing
 * of it: a trp_tell() of the type, the event of a dead letter, a reliable proxy and a parcel for an
 * embedded actor make messages that hold nothing.
 *
 * Ownership: gives *ret_msg (to trp_send(), or trp_msg_free()); drop is called by the thread that
 *            frees the last message, and must not block.
 * Errors:    TRP_EINVAL   the type is not a TRP_HELD_TYPE, or bytes above TRP_HELD_BYTES_MAX
 *            TRP_ENOTYPE  type is not registered
 *            TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    IO-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_msg_new_held(const trp_type *type, size_t bytes,
                                                void (*drop)(void *held), trp_msg **ret_msg,
                                                void **ret_held);
#define TRP_HELD_TYPE(name, tag)                                                                   \
    {                                                                                              \
        (name), 0, (tag), TRP_TYPE_LOCAL, NULL, 0, 0                                               \
    }

/* Borrow the struct that msg holds, if it has this (registered) type, until the behaviour call
 * returns; NULL: it is of another type, or holds nothing. */
static inline const void *
trp_msg_held(const trp_msg *msg, const trp_type *type)
{
    return trp_msg_is(msg, type) && (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0
               ? trp_msg_payload(msg)
               : (const void *)0;
}

/* Return the descriptor of msg's type; never NULL for a received message.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API const trp_type *trp_msg_type(const trp_msg *msg);

/* Return the tag of msg's type, for a switch over the tags of the one protocol that is accepted.
 * Tags of the library's own types are 0xff00 and above.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API uint16_t trp_msg_tag(const trp_msg *msg);

/* Copy msg, payload included, to the heap.
 *
 * Ownership: gives *ret_msg (free with trp_msg_free).
 * Errors:    TRP_ENOMEM   out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_msg_dup(const trp_msg *msg, trp_msg **ret_msg);

/* Free a message from trp_msg_dup(), trp_msg_new() (unsent) or an ask; NULL is fine.
 *
 * Ownership: takes msg.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API void trp_msg_free(trp_msg *msg);

/* Give the types of a protocol their process-wide numbers. Idempotent. The descriptors must outlive
 * the process's last system (static data, as TRP_PROTOCOL makes).
 *
 * Ownership: borrows protocol until the process ends.
 * Errors:    TRP_EINVAL     a name is empty, too long, or not "protocol.name", or a field is not
 *                           within its type
 *            TRP_EEXIST     another descriptor with this name but other fields or size is there
 *            TRP_ECOLLISION two names have one wire id; both are logged
 *            TRP_ELIMIT     TRP_TYPES_MAX reached, or more structs in one another than
 *                           TRP_TYPE_NESTING_MAX
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_protocol_register(const trp_protocol *protocol);

/* Find a registered type by its full name; NULL when there is none.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/architecture.md#messages-and-types.  Since: 0.1 */
TRP_API const trp_type *trp_type_find(const char *name);

/* Put type below parent in the hierarchy of events: subscribers of parent are told events of type,
 * too, from now on. Once and for the whole process; saying the same again is no error. Say it
 * before the first event of the type is published.
 *
 * Ownership: borrows both until the process ends.
 * Errors:    TRP_EINVAL   an argument is NULL, or parent is type itself or below it
 *            TRP_ENOTYPE  one is not registered
 *            TRP_EEXIST   type has another parent
 *            TRP_ELIMIT   type, or one below it, would be more than TRP_TYPE_DEPTH_MAX levels deep
 * Thread:    any; takes a lock for a moment.
 * Source:    EB-04, ES-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_type_extend(const trp_type *type, const trp_type *parent);

/* Built-in types: text, JSON text, raw bytes, one 64-bit integer. */
TRP_API extern trp_type trp_string_type;
TRP_API extern trp_type trp_json_type;
TRP_API extern trp_type trp_bytes_type;
TRP_API extern trp_type trp_i64_type;

/* Tags of built-in types a behaviour may meet. */
enum {
    trp_string_tag = 0xff01,
    trp_json_tag = 0xff02,
    trp_bytes_tag = 0xff03,
    trp_i64_tag = 0xff04,
    trp_terminated_tag = 0xff10,
    trp_receive_timeout_tag = 0xff11,
    trp_poison_pill_tag = 0xff12,
    trp_kill_tag = 0xff13,
    trp_identify_tag = 0xff14,
    trp_actor_identity_tag = 0xff15,
    trp_status_failure_tag = 0xff16,
    trp_dead_letter_tag = 0xff17,
    trp_unhandled_tag = 0xff18,
    trp_suppressed_dead_letter_tag = 0xff30,
    trp_log_event_tag = 0xff31, /* of all levels */
    trp_logger_init_tag = 0xff32,
    trp_logger_ready_tag = 0xff33
    /* 0xff34: trp_remoting_tag (troupe/remoting.h) */
};

/* Told to a watcher once when the watched actor has ended (WATCH). */
typedef struct trp_terminated {
    trp_ref ref;
    uint8_t existence_confirmed; /* 0: there was no such actor when the watch arrived */
    uint8_t address_terminated;  /* 1: its node is gone */
    uint8_t zero[2];
} trp_terminated;
TRP_API extern trp_type trp_terminated_type;

TRP_API extern trp_type trp_receive_timeout_type; /* no payload */
TRP_API extern trp_type trp_poison_pill_type;     /* no payload: stop after what is queued */
TRP_API extern trp_type trp_kill_type;            /* no payload: fail with TRP_EKILLED */

/* Every actor answers Identify with ActorIdentity carrying the same id. */
typedef struct trp_identify {
    uint64_t id;
} trp_identify;
TRP_API extern trp_type trp_identify_type;
typedef struct trp_actor_identity {
    uint64_t id;
    trp_ref ref; /* TRP_REF_NONE: no actor is there */
} trp_actor_identity;
TRP_API extern trp_type trp_actor_identity_type;

/* An asked actor replies this to fail the ask (Akka's Status.Failure). */
typedef struct trp_status_failure {
    int32_t err; /* trp_err */
    char reason[252];
} trp_status_failure;
TRP_API extern trp_type trp_status_failure_type;

typedef enum trp_dead_reason {
    TRP_DEAD_NO_SUCH_ACTOR = 1, /* the ref or path names no actor */
    TRP_DEAD_STALE = 2,         /* that incarnation has ended */
    TRP_DEAD_STOPPED = 3,       /* left in the mailbox when the actor stopped */
    TRP_DEAD_MAILBOX_FULL = 4,
    TRP_DEAD_LANE_FULL = 5,
    TRP_DEAD_QUARANTINED = 6,
    TRP_DEAD_TOO_LARGE = 7,
    TRP_DEAD_NOT_ENCODABLE = 8,
    TRP_DEAD_NO_MEMORY = 9,
    TRP_DEAD_NOT_CONNECTED = 10, /* no association could be made in time */
    TRP_DEAD_NO_SENDER = 11,     /* told to TRP_REF_NONE */
    TRP_DEAD_STASH = 12,         /* still stashed when the actor stopped */
    TRP_DEAD_INACTIVE = 13,      /* its actor is deactivated (trp_deactivate) */
    TRP_DEAD_REFUSED = 14,       /* its actor's will_receive does not want it */
    TRP_DEAD_STORAGE = 15,       /* of a durable mailbox: it failed, or its breaker is open */
    TRP_DEAD_EXPIRED = 16,       /* too old when its turn came */
    TRP_DEAD_RECEIVER_FULL = 17, /* remote.receiver-limit waits for it, sent by another node */
    TRP_DEAD_STASH_FULL = 18,    /* of a persistent actor that recovers or writes */
    TRP_DEAD_RECOVERY = 19,      /* its persistent actor could not be recovered */
    TRP_DEAD_ENTITY_BUFFER = 20, /* too much waits for entities (troupe/sharding.h) */
    TRP_DEAD_SHARD_MOVES = 21,   /* its entity's shard moves, and the type drops meanwhile */
    TRP_DEAD_NO_SUBSCRIBER = 22, /* nobody subscribes to the topic (troupe/pubsub.h) */
    TRP_DEAD_REASON_COUNT = 23,
    TRP_DEAD_REASONS_MAX = 32 /* what trp_system_stats has room for */
} trp_dead_reason;

#define TRP_DEAD_LETTER_PAYLOAD_MAX 61440 /* a larger one is not kept in the event */

/* Event on the event stream: a message that reached no actor (LIFE-15). trp_dead_letter_msg() has
 * the message. */
typedef struct trp_dead_letter {
    trp_ref sender;
    trp_ref recipient;
    uint32_t reason; /* trp_dead_reason */
    uint32_t type;   /* number of the lost message's type, 0 unknown */
    uint64_t bytes;  /* its payload size */
    char path[256];  /* recipient's path, as far as known, cut at 255 */
} trp_dead_letter;
TRP_API extern trp_type trp_dead_letter_type;
/* The same for a loss that is expected, such as a second order to stop or Terminated for a watcher
 * that has ended (LIFE-17). */
TRP_API extern trp_type trp_suppressed_dead_letter_type;
TRP_API extern trp_type trp_all_dead_letters_type; /* parent of the two */

/* Borrow the lost message out of such an event, as it was told: with its type, payload, sender and
 * interaction, to be read, copied or forwarded like any other. It holds nothing any more
 * (trp_msg_new_held). NULL: the event has none, since the
 * payload is above TRP_DEAD_LETTER_PAYLOAD_MAX, was encoded for another node already, or could not
 * be made for want of memory; or event is no dead letter.
 *
 * Ownership: borrows event; the result belongs to it.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    ES-03.  Since: 0.1 */
TRP_API const trp_msg *trp_dead_letter_msg(const trp_msg *event);

/* Event on the event stream: a message that its receiver did not handle (MSG-15). */
typedef struct trp_unhandled {
    trp_ref sender;
    trp_ref recipient;
    uint32_t type;
    uint32_t zero;
} trp_unhandled;
TRP_API extern trp_type trp_unhandled_type;

/* ---- the X-macro ---------------------------------------------------------------------------- */

#define TRP_PRIV_OF_bool NULL
#define TRP_PRIV_OF_i32 NULL
#define TRP_PRIV_OF_u32 NULL
#define TRP_PRIV_OF_i64 NULL
#define TRP_PRIV_OF_u64 NULL
#define TRP_PRIV_OF_f64 NULL
#define TRP_PRIV_OF_ref NULL
#define TRP_PRIV_OF_text32 NULL
#define TRP_PRIV_OF_text128 NULL
#define TRP_PRIV_OF_text512 NULL
#define TRP_PRIV_OF_text NULL
#define TRP_PRIV_OF_bytes NULL
#define TRP_PRIV_OF_struct(name) &name##_type
#define TRP_PRIV_OF_array(kind) TRP_PRIV_OF_##kind
#define TRP_PRIV_VARIES_bool 0
#define TRP_PRIV_VARIES_i32 0
#define TRP_PRIV_VARIES_u32 0
#define TRP_PRIV_VARIES_i64 0
#define TRP_PRIV_VARIES_u64 0
#define TRP_PRIV_VARIES_f64 0
#define TRP_PRIV_VARIES_ref 0
#define TRP_PRIV_VARIES_text32 0
#define TRP_PRIV_VARIES_text128 0
#define TRP_PRIV_VARIES_text512 0
#define TRP_PRIV_VARIES_text 1
#define TRP_PRIV_VARIES_bytes 1
#define TRP_PRIV_VARIES_struct(name) name##_varies
#define TRP_PRIV_VARIES_array(kind) 1

#define TRP_PRIV_MEMBER(S, kind, member) trp_field_##kind member;
#define TRP_PRIV_VARIES(S, kind, member) | TRP_PRIV_VARIES_##kind
#define TRP_PRIV_FIELD(S, kind, member)                                                            \
    { #member, TRP_FIELD_##kind, (uint32_t)offsetof(S, member), TRP_PRIV_OF_##kind },
#define TRP_PRIV_STRUCT(P, name, FIELDS)                                                           \
    typedef struct P##_##name {                                                                    \
        FIELDS(TRP_PRIV_MEMBER, P##_##name)                                                        \
    } P##_##name;                                                                                  \
    enum { P##_##name##_varies = 0 FIELDS(TRP_PRIV_VARIES, P##_##name) };
#define TRP_PRIV_DESCRIPTOR(P, name, tag)                                                          \
    { #P "." #name,                                                                                \
      (uint32_t)sizeof(P##_##name),                                                                \
      tag,                                                                                         \
      (uint16_t)(P##_##name##_varies ? TRP_TYPE_VARIABLE : 0),                                     \
      P##_##name##_fields,                                                                         \
      (uint32_t)(sizeof(P##_##name##_fields) / sizeof(trp_field)),                                 \
      0 };
#define TRP_PRIV_TAG(P, name, FIELDS) P##_##name##_tag,
#define TRP_PRIV_EXTERN(P, name, FIELDS) extern trp_type P##_##name##_type;
#define TRP_PRIV_TYPE(P, name, FIELDS)                                                             \
    static const trp_field P##_##name##_fields[] = { FIELDS(TRP_PRIV_FIELD, P##_##name) };         \
    trp_type P##_##name##_type = TRP_PRIV_DESCRIPTOR(P, name, P##_##name##_tag)
#define TRP_PRIV_POINTER(P, name, FIELDS) &P##_##name##_type,

#define TRP_PRIV_AS(P, name, FIELDS)                                                               \
    __attribute__((unused)) static inline const P##_##name *P##_##name##_as(const trp_msg *msg)    \
    {                                                                                              \
        return (const P##_##name *)trp_msg_as(msg, &P##_##name##_type);                            \
    }

/* The field list of a message that carries nothing: M(P, reset, TRP_NO_FIELDS). */
#define TRP_NO_FIELDS(F, S) F(S, u32, none)

/* A struct that is only a part of messages, before the messages that have it: its kind is
 * struct(P_name). */
#define TRP_STRUCT(P, name, FIELDS)                                                                \
    TRP_PRIV_STRUCT(P, name, FIELDS)                                                               \
    static const trp_field P##_##name##_fields[]                                                   \
        __attribute__((unused)) = { FIELDS(TRP_PRIV_FIELD, P##_##name) };                          \
    static const trp_type P##_##name##_type __attribute__((unused)) =                              \
        TRP_PRIV_DESCRIPTOR(P, name, 0)

/* In a header shared by several source files. */
#define TRP_PROTOCOL_DECLARE(P, MESSAGES)                                                          \
    MESSAGES(TRP_PRIV_STRUCT, P)                                                                   \
    enum { P##_first_tag = 0, MESSAGES(TRP_PRIV_TAG, P) P##_tags_end };                            \
    MESSAGES(TRP_PRIV_EXTERN, P)                                                                   \
    MESSAGES(TRP_PRIV_AS, P)                                                                       \
    extern const trp_protocol P##_protocol;                                                        \
    typedef struct P##_ref {                                                                       \
        trp_ref ref;                                                                               \
    } P##_ref;

/* In exactly one source file. */
#define TRP_PROTOCOL_DEFINE(P, MESSAGES)                                                           \
    MESSAGES(TRP_PRIV_TYPE, P)                                                                     \
    static trp_type *const P##_types[] = { MESSAGES(TRP_PRIV_POINTER, P) };                        \
    const trp_protocol P##_protocol = { #P, P##_types,                                             \
                                        (uint32_t)(sizeof(P##_types) / sizeof(P##_types[0])), 0 };

/* Both at once, for a program of one file. */
#define TRP_PROTOCOL(P, MESSAGES)                                                                  \
    TRP_PROTOCOL_DECLARE(P, MESSAGES)                                                              \
    TRP_PROTOCOL_DEFINE(P, MESSAGES)

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_MESSAGE_H */
