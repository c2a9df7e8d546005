/* msg.h - memory of messages: caches per thread, magazines between threads.
 *
 * A block is 64, 128, ... TRPI_BLOCK_BYTES_MAX bytes and aligned to cache lines; it is freed into
 * the cache of the thread that frees it. Full magazines go to a global depot, from which threads
 * with an empty cache take them.
 */
#ifndef TRPI_ACTOR_KERNEL_MSG_H
#define TRPI_ACTOR_KERNEL_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/interaction.h>
#include <troupe/message.h>
#include <troupe/trace.h>

#include "actor/kernel/open.h"

#define TRPI_MSG_HEADER_BYTES 32u
#define TRPI_LINE_PAYLOAD_MAX (64u - TRPI_MSG_HEADER_BYTES) /* on one cache line with the header */
#define TRPI_BLOCK_CLASSES 11u                              /* 64 << 0 ... 64 << 10 = 64 KiB */
#define TRPI_BLOCK_BYTES_MAX (64u << (TRPI_BLOCK_CLASSES - 1u))

#define TRPI_MAGAZINE_BLOCKS 128u

/* A stack of free blocks of one class. */
typedef struct trpi_magazine {
    struct trpi_magazine *next;
    uint32_t count;
    void *blocks[TRPI_MAGAZINE_BLOCKS];
} trpi_magazine;

typedef struct trpi_class_cache {
    trpi_magazine *current, *spare; /* of class 0: never NULL once the cache is made */
} trpi_class_cache;

/* The cache of one thread; the fields are public for the fast path below. */
typedef struct trpi_msg_cache {
    trpi_class_cache classes[TRPI_BLOCK_CLASSES];
} trpi_msg_cache;

/* Return the class of a block of `bytes`, 1 to TRPI_BLOCK_BYTES_MAX. */
static inline uint32_t
trpi_class_of(size_t bytes)
{
    return bytes <= 64 ? 0 : 26u - (uint32_t)__builtin_clz((uint32_t)bytes - 1u);
}
/* Return the calling thread's cache; made at first use, freed when the thread ends. NULL: out of
 * memory. */
trpi_msg_cache *trpi_msg_cache_get(void);
/* Uninitialised block of at least `bytes` (<= TRPI_BLOCK_BYTES_MAX), freed with the same number.
 * NULL: no memory. */
void *trpi_block_new(trpi_msg_cache *cache, size_t bytes);
void trpi_block_free(trpi_msg_cache *cache, void *block, size_t bytes);
/* In builds with the address sanitizer blocks are poisoned, which only the slow path does. */
#if defined(__SANITIZE_ADDRESS__)
#define TRPI_LINES_CHECKED 1
#else
#define TRPI_LINES_CHECKED 0
#endif
/* The same for blocks of one line (bytes <= 64), without a call in the usual case. */
static inline void *
trpi_line_new(trpi_msg_cache *cache)
{
#if !TRPI_LINES_CHECKED
    trpi_magazine *magazine = cache->classes[0].current;

    if (__builtin_expect(magazine->count != 0, 1)) {
        return magazine->blocks[--magazine->count];
    }
#endif
    return trpi_block_new(cache, 64);
}
static inline void
trpi_line_free(trpi_msg_cache *cache, void *block)
{
#if !TRPI_LINES_CHECKED
    trpi_magazine *magazine = cache->classes[0].current;

    if (__builtin_expect(magazine->count != TRPI_MAGAZINE_BLOCKS, 1)) {
        magazine->blocks[magazine->count++] = block;
        return;
    }
#endif
    trpi_block_free(cache, block, 64);
}
/* Give spare magazines back to the depots; depots_too: free wholly unused chunks, which takes long
 * and makes other threads wait. */
void trpi_msg_cache_trim(trpi_msg_cache *cache, bool depots_too);

/* ---- trailers (trailer.c) -----------------------------------------------------------------------
 */
#define TRPI_MSG_SENT 0x04000000u /* flags of a header: the program gave it away (misuse.c) */
#define TRPI_MSG_FREED 0x10000000u
/* A trailer holds what a few messages carry from one actor to the next. */
enum {
    TRPI_CARRIES_INTERACTION = 1,
    TRPI_CARRIES_TRACE = 2,
    TRPI_CARRIES_TIMED = 4,  /* with a trace: it comes from a timer */
    TRPI_CARRIES_ATTEMPT = 8 /* what is told is attempt number trace.attempt; of no message */
};
typedef struct trpi_trailer {
    trp_interaction interaction;
    trp_trace trace;  /* its span is the message's */
    uint64_t parent;  /* the span of what was handled when it was told; 0: none */
    uint64_t net_ns;  /* it came from another node: how long it took, by both clocks; else 0 */
    uint64_t sent_ns; /* monotonic, of this node: told, or arrived */
    uint64_t carries; /* bits: TRPI_CARRIES_* */
} trpi_trailer;
/* Return the offset of the trailer in the message, also of a message without one. */
static inline size_t
trpi_msg_trailer_at(const trp_msg *msg)
{
    size_t bytes = (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0
                       ? sizeof(trp_msg_priv_moved)
                       : msg->priv_bytes;

    return TRPI_MSG_HEADER_BYTES + ((bytes + 15u) & ~(size_t)15u);
}
/* Borrow the trailer; NULL: the message has none. */
static inline const trpi_trailer *
trpi_msg_trailer(const trp_msg *msg)
{
    return (msg->priv_from_node_flags & TRPI_MSG_TRAILER) == 0
               ? NULL
               : (const void *)((const char *)msg + trpi_msg_trailer_at(msg));
}
/* Borrow the trailer of a message that is part of a trace; NULL: it is not. */
static inline const trpi_trailer *
trpi_msg_traced(const trp_msg *msg)
{
    const trpi_trailer *trailer = trpi_msg_trailer(msg);

    return trailer != NULL && (trailer->carries & TRPI_CARRIES_TRACE) != 0 ? trailer : NULL;
}
/* As trpi_msg_make_empty, with room for a trailer, to be filled in at trpi_msg_trailer_at(). */
trp_msg *trpi_msg_make_trailed(trpi_msg_cache *cache, const trp_type *type, size_t bytes,
                               void **ret_payload);

/* A message of `bytes` payload with target, sender, type filled in and the payload copied. NULL: no
 * memory. sender TRP_REF_NONE: none. */
trp_msg *trpi_msg_make(trpi_msg_cache *cache, trp_ref to, trp_ref sender, const trp_type *type,
                       const void *payload, size_t bytes);
/* Same, payload not filled: *ret_payload. */
trp_msg *trpi_msg_make_empty(trpi_msg_cache *cache, const trp_type *type, size_t bytes,
                             void **ret_payload);
void trpi_msg_drop(trp_msg *msg); /* open.h */
void trpi_msg_free_any(trpi_msg_cache *cache, trp_msg *msg);
/* Is the message one block of one cache line, without trailer or payload elsewhere? */
static inline bool
trpi_msg_is_line(const trp_msg *msg)
{
    return msg->priv_bytes <= TRPI_LINE_PAYLOAD_MAX &&
           (msg->priv_from_node_flags & (TRP_MSG_PRIV_OUT_OF_LINE | TRPI_MSG_TRAILER)) == 0;
}
static inline void
trpi_msg_free(trpi_msg_cache *cache, trp_msg *msg)
{
    if (__builtin_expect(trpi_msg_is_line(msg), 1)) {
        trpi_line_free(cache, msg);
    } else {
        trpi_msg_free_any(cache, msg);
    }
}
/* Take an out-of-line payload out of msg (which then has none): true, and *ret_moved is the
 * caller's to release. false: the payload is in line. */
int trpi_msg_payload_take(trp_msg *msg, trp_msg_priv_moved *ret_moved);

/* Does the message hold a struct (trp_msg_new_held)? Then it is shared by a copy of the message,
 * which counts here. held.c */
bool trpi_msg_is_held(const trp_msg *msg);
void trpi_msg_held_share(const trp_msg *msg);

static inline trp_ref
trpi_msg_sender(const trp_msg *msg)
{
    trp_ref ref = { msg->priv_from_node_flags & 0xffffffu, msg->priv_from_slot,
                    msg->priv_from_generation, 0 };
    return ref;
}
static inline void
trpi_msg_sender_set(trp_msg *msg, trp_ref sender)
{
    msg->priv_from_slot = sender.slot;
    msg->priv_from_generation = sender.generation;
    msg->priv_from_node_flags =
        (msg->priv_from_node_flags & 0xff000000u) | (sender.node & 0xffffffu);
}

#endif
