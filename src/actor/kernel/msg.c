/* msg.c - blocks for messages: thread caches, magazines, chunks; and messages made of them.
 *
 * Why.     malloc and free cost 5.5 ns and contend for one heap when one thread frees blocks that
 *          another allocates. Here a thread pops from its own array of pointers (0.25-1 ns), keeps
 *          the blocks that it frees, and exchanges full arrays under one lock for 128 messages.
 * Shape.   thread: two magazines a class, `current` and `spare`. Both empty: take a full one from
 *          the depot; both full: give one to the depot. With an empty depot a chunk of 128 KiB is
 *          carved into blocks. Blocks of 4 KiB and more are allocated singly.
 * Must hold.
 *   msg-B1  A block is in use, or in exactly one magazine.
 *   msg-B2  A chunk is freed only when all its blocks are in magazines of the depot (counted under
 *       the lock).
 *   msg-B3  The list of full magazines of a depot has at most one that is partly full, apart from
 *       those that a search has just emptied, and at most EMPTIES_KEPT empty ones are kept: threads
 *       that begin and end leave only their blocks behind.             (give_full, full_take)
 * Limits.  A depot that holds more than DEPOT_BYTES_KEPT is searched for wholly free chunks when
 *          all workers have slept for a while, and again when it has doubled.
 * Cost.    64-byte message: one pop of a pointer; with 33 bytes of payload a block of 128.
 * Tests.   tests/unit/actor/msg_test.c
 */
#include "actor/kernel/msg.h"
#include "actor/kernel/open.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <troupe/interaction.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(block, bytes) ASAN_POISON_MEMORY_REGION(block, bytes)
#define UNPOISON(block, bytes) ASAN_UNPOISON_MEMORY_REGION(block, bytes)
#else
#define POISON(block, bytes) ((void)(block), (void)(bytes))
#define UNPOISON(block, bytes) ((void)(block), (void)(bytes))
#endif

#include <troupe/actor.h>

#include "actor/kernel/misuse.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/payload.h"

#define CHUNK_BYTES (128u * 1024u)
#define CHUNK_CLASSES 6u /* 64 ... 2048; larger blocks are allocated singly */
#define DEPOT_BYTES_KEPT (1024u * 1024u)
#define EMPTIES_KEPT 16u /* empty magazines of a class; more go back to the heap */

typedef struct chunk {
    uint32_t blocks;       /* number of blocks of the chunk */
    uint32_t blocks_depot; /* during a search: those in the depot */
    struct chunk *free_next;
} chunk;

typedef struct depot {
    pthread_mutex_t lock;
    trpi_magazine *full, *empty; /* full: the first may be partly full (msg-B3) */
    uint32_t empties;
    size_t bytes;        /* of blocks in full magazines */
    size_t bytes_search; /* above this search for free chunks */
} depot;

/* Caches of threads and the depots between them: process-wide by nature. */
static depot depots[TRPI_BLOCK_CLASSES];
static pthread_once_t depots_once = PTHREAD_ONCE_INIT;
static pthread_key_t cache_key;
static _Thread_local trpi_msg_cache *thread_cache __attribute__((tls_model("initial-exec")));

static inline size_t
class_bytes(uint32_t class_index)
{
    return (size_t)64 << class_index;
}
/* Return the capacity of a magazine: at most 64 KiB of blocks. */
static inline uint32_t
magazine_capacity(uint32_t class_index)
{
    static const uint8_t capacity[TRPI_BLOCK_CLASSES] = {
        128, 128, 128, 128, 64, 32, 16, 8, 4, 2, 1
    };

    _Static_assert(TRPI_MAGAZINE_BLOCKS == 128, "the most");
    return capacity[class_index];
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static chunk *
chunk_of(void *block)
{
    return (chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK_BYTES - 1u));
}

/* Fill an empty magazine with new blocks; false: no memory. A chunk may fill several magazines. */
static bool
magazine_carve(uint32_t class_index, trpi_magazine *target)
{
    size_t bytes = class_bytes(class_index);
    uint32_t capacity = magazine_capacity(class_index);
    unsigned char *memory;
    chunk *head;

    if (class_index >= CHUNK_CLASSES) {
        void *block = trpi_alloc_aligned(64, bytes);

        if (block == NULL) {
            return false;
        }
        target->blocks[target->count++] = block;
        return true;
    }
    memory = trpi_alloc_aligned(CHUNK_BYTES, CHUNK_BYTES);
    if (memory == NULL) {
        return false;
    }
    head = (chunk *)(void *)memory;
    /* The full number before the first block is in the depot, where a search counts (msg-B2). */
    head->blocks = (uint32_t)(CHUNK_BYTES / bytes) - 1u; /* without the place of the head */
    for (size_t at = bytes; at + bytes <= CHUNK_BYTES; at += bytes) {
        if (target->count == capacity) {
            trpi_magazine *more = trpi_alloc(sizeof *more);

            if (more == NULL) {
                break; /* the rest of the chunk stays unused, and the chunk is never freed */
            }
            *more = *target;
            target->count = 0;
            pthread_mutex_lock(&depots[class_index].lock);
            more->next = depots[class_index].full;
            depots[class_index].full = more;
            depots[class_index].bytes += more->count * bytes;
            pthread_mutex_unlock(&depots[class_index].lock);
        }
        target->blocks[target->count++] = memory + at;
        POISON(memory + at, bytes);
    }
    return true;
}

/* Free chunks of which the depot holds all blocks (msg-B2). Under the depot's lock. */
static void
search_chunks(depot *place, uint32_t class_index)
{
    chunk *free_first = NULL;

    for (trpi_magazine *m = place->full; m != NULL; m = m->next) {
        for (uint32_t i = 0; i < m->count; i++) {
            chunk *of = chunk_of(m->blocks[i]);

            if (++of->blocks_depot == of->blocks) {
                of->free_next = free_first;
                free_first = of;
            }
        }
    }
    for (trpi_magazine *m = place->full; m != NULL; m = m->next) {
        uint32_t kept = 0;

        for (uint32_t i = 0; i < m->count; i++) {
            if (chunk_of(m->blocks[i])->blocks_depot != chunk_of(m->blocks[i])->blocks) {
                m->blocks[kept++] = m->blocks[i];
            }
        }
        place->bytes -= (m->count - kept) * class_bytes(class_index);
        m->count =
            kept; /* may leave a partly full or empty magazine in the list of full ones (msg-B3) */
    }
    for (trpi_magazine *m = place->full; m != NULL; m = m->next) {
        for (uint32_t i = 0; i < m->count; i++) {
            chunk_of(m->blocks[i])->blocks_depot = 0;
        }
    }
    while (free_first != NULL) {
        chunk *next = free_first->free_next;

        UNPOISON(free_first, CHUNK_BYTES);
        /* Return the pages now: the heap may keep the chunk for long. It is aligned to its size, so
         * the pages are whole. */
        (void)madvise(free_first, CHUNK_BYTES, MADV_DONTNEED);
        trpi_free(free_first);
        free_first = next;
    }
}

static void
free_singles(depot *place, uint32_t class_index)
{
    for (trpi_magazine *m = place->full; m != NULL; m = m->next) {
        while (m->count > 0) {
            void *block = m->blocks[--m->count];

            UNPOISON(block, class_bytes(class_index));
            trpi_free(block);
        }
    }
    place->bytes = 0;
}

/* Free empty magazines, also those in the list of full ones. Under the depot's lock. */
static void
sweep_magazines(depot *place)
{
    trpi_magazine **link = &place->full;

    while (*link != NULL) {
        trpi_magazine *m = *link;

        if (m->count == 0) {
            *link = m->next;
            trpi_free(m);
        } else {
            link = &m->next;
        }
    }
    while (place->empty != NULL) {
        trpi_magazine *m = place->empty;

        place->empty = m->next;
        trpi_free(m);
    }
    place->empties = 0;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* Under the lock. Return the magazine if the caller must free it (without the lock), or NULL. */
static trpi_magazine *
empty_put(depot *place, trpi_magazine *m)
{
    if (place->empties == EMPTIES_KEPT) {
        return m;
    }
    m->next = place->empty;
    place->empty = m;
    place->empties++;
    return NULL;
}

/* Under the lock; NULL: there is none. */
static trpi_magazine *
empty_take(depot *place)
{
    trpi_magazine *m = place->empty;

    if (m != NULL) {
        place->empty = m->next;
        place->empties--;
    }
    return m;
}

/* Move as many blocks as fit. */
static void
magazine_pour(trpi_magazine *from, trpi_magazine *into, uint32_t capacity)
{
    uint32_t room = capacity - into->count;
    uint32_t count = from->count < room ? from->count : room;

    from->count -= count;
    memcpy(&into->blocks[into->count], &from->blocks[from->count], count * sizeof into->blocks[0]);
    into->count += count;
}

/* Give a magazine with blocks to the depot. A full one goes behind the partly full one; another one
 * first fills that up (msg-B3). */
static void
give_full(uint32_t class_index, trpi_magazine *m)
{
    depot *place = &depots[class_index];
    uint32_t capacity = magazine_capacity(class_index);
    trpi_magazine *unused = NULL, *first;

    pthread_mutex_lock(&place->lock);
    place->bytes += m->count * class_bytes(class_index);
    first = place->full;
    if (m->count < capacity && first != NULL && first->count < capacity) {
        magazine_pour(m, first, capacity);
    }
    if (m->count == 0) {
        unused = empty_put(place, m);
    } else if (m->count == capacity && first != NULL && first->count < capacity) {
        m->next = first->next;
        first->next = m;
    } else {
        m->next = first;
        place->full = m;
    }
    pthread_mutex_unlock(&place->lock);
    trpi_free(unused);
}

/* Take a full magazine, else a partly full one; NULL: none. Under the lock. */
static trpi_magazine *
full_take(depot *place, uint32_t capacity)
{
    trpi_magazine *m = place->full;

    if (m != NULL && m->count < capacity && m->next != NULL) {
        trpi_magazine *second = m->next;

        m->next = second->next;
        return second;
    }
    if (m != NULL) {
        place->full = m->next;
    }
    return m;
}

static void
cache_free(void *memory)
{
    trpi_msg_cache *cache = memory;

    if (cache == NULL) {
        return;
    }
    thread_cache = NULL;
    for (uint32_t i = 0; i < TRPI_BLOCK_CLASSES; i++) {
        trpi_magazine *both[2] = { cache->classes[i].current, cache->classes[i].spare };

        for (int j = 0; j < 2; j++) {
            if (both[j] != NULL && both[j]->count > 0) {
                give_full(i, both[j]);
            } else {
                trpi_free(both[j]);
            }
        }
    }
    trpi_free(cache);
}

static void
depots_make(void)
{
    for (uint32_t i = 0; i < TRPI_BLOCK_CLASSES; i++) {
        pthread_mutex_init(&depots[i].lock, NULL);
        depots[i].bytes_search = DEPOT_BYTES_KEPT;
    }
    (void)pthread_key_create(&cache_key,
                             cache_free); /* PTHREAD_KEYS_MAX used up: caches live until exit */
}

static bool
class_make(trpi_class_cache *cache)
{
    if (cache->current == NULL) {
        cache->current = trpi_alloc(sizeof *cache->current);
    }
    if (cache->spare == NULL) {
        cache->spare = trpi_alloc(sizeof *cache->spare);
    }
    return cache->current != NULL && cache->spare != NULL;
}

trpi_msg_cache *
trpi_msg_cache_get(void)
{
    trpi_msg_cache *cache = thread_cache;

    if (LIKELY(cache != NULL)) {
        return cache;
    }
    (void)pthread_once(&depots_once, depots_make);
    cache = trpi_alloc(sizeof *cache);
    if (cache == NULL ||
        !class_make(&cache->classes[0])) { /* the class of small messages always exists */
        cache_free(cache);
        return NULL;
    }
    thread_cache = cache;
    (void)pthread_setspecific(cache_key, cache);
    return cache;
}

/* current is empty: exchange it for a full one. */
static bool
cache_refill(trpi_class_cache *cache, uint32_t class_index)
{
    depot *place = &depots[class_index];
    trpi_magazine *full, *unused = NULL;

    if (!class_make(cache)) {
        return false;
    }
    if (cache->current->count > 0 || cache->spare->count > 0) {
        trpi_magazine *swap = cache->current;

        cache->current = cache->spare;
        cache->spare = swap;
        return true;
    }
    pthread_mutex_lock(&place->lock);
    full = full_take(place, magazine_capacity(class_index));
    if (full != NULL) {
        place->bytes -= full->count * class_bytes(class_index);
        unused = empty_put(place, cache->current);
        cache->current = full;
    }
    pthread_mutex_unlock(&place->lock);
    trpi_free(unused);
    return full != NULL ? full->count > 0 || cache_refill(cache, class_index)
                        : magazine_carve(class_index, cache->current);
}

/* current is full: exchange it for an empty one. false: no memory for a magazine. */
static bool
cache_make_room(trpi_class_cache *cache, uint32_t class_index)
{
    depot *place = &depots[class_index];
    trpi_magazine *empty;

    if (!class_make(cache)) {
        return false;
    }
    if (cache->spare->count > 0) { /* both in use: the spare goes to the depot */
        pthread_mutex_lock(&place->lock);
        empty = empty_take(place);
        pthread_mutex_unlock(&place->lock);
        if (empty == NULL) {
            empty = trpi_alloc(sizeof *empty);
        }
        if (empty == NULL) {
            return false;
        }
        empty->count = 0;
        give_full(class_index, cache->spare);
        cache->spare = empty;
    }
    empty = cache->spare;
    cache->spare = cache->current;
    cache->current = empty;
    return true;
}

/* The magazine is empty: take a block of the next one. */
static NOINLINE void *
block_new_refilled(trpi_class_cache *of, uint32_t class_index)
{
    void *block;

    if (!cache_refill(of, class_index)) {
        return NULL;
    }
    block = of->current->blocks[--of->current->count];
    UNPOISON(block, class_bytes(class_index));
    return block;
}

/* The rare case is a tail call: each message passes here and in trpi_block_free(). */
void *
trpi_block_new(trpi_msg_cache *cache, size_t bytes)
{
    uint32_t class_index = trpi_class_of(bytes);
    trpi_class_cache *of = &cache->classes[class_index];
    trpi_magazine *magazine = of->current;
    void *block;

    trpi_assert(bytes <= TRPI_BLOCK_BYTES_MAX);
    if (UNLIKELY(magazine == NULL || magazine->count == 0)) {
        return block_new_refilled(of, class_index);
    }
    block = magazine->blocks[--magazine->count];
    UNPOISON(block, class_bytes(class_index));
    return block;
}

/* The magazine is full, or there is none: put the block into another one. */
static NOINLINE void
block_free_elsewhere(trpi_class_cache *of, uint32_t class_index, void *block)
{
    if (!cache_make_room(of, class_index)) {
        if (class_index >= CHUNK_CLASSES) {
            trpi_free(block);
        }
        return; /* no memory for a magazine: the block is leaked within its chunk */
    }
    POISON(block, class_bytes(class_index));
    of->current->blocks[of->current->count++] = block;
}

void
trpi_block_free(trpi_msg_cache *cache, void *block, size_t bytes)
{
    uint32_t class_index = trpi_class_of(bytes);
    trpi_class_cache *of = &cache->classes[class_index];
    trpi_magazine *magazine = of->current;

    if (UNLIKELY(magazine == NULL || magazine->count >= magazine_capacity(class_index))) {
        block_free_elsewhere(of, class_index, block);
        return;
    }
    POISON(block, class_bytes(class_index));
    magazine->blocks[magazine->count++] = block;
}

void
trpi_msg_cache_trim(trpi_msg_cache *cache, bool depots_too)
{
    for (uint32_t i = 0; i < TRPI_BLOCK_CLASSES; i++) {
        depot *place = &depots[i];
        trpi_class_cache *of = &cache->classes[i];

        if (of->spare != NULL && of->spare->count > 0) {
            give_full(i, of->spare);
            of->spare = NULL; /* allocated again when needed */
        }
        if (!depots_too) {
            continue;
        }
        pthread_mutex_lock(&place->lock);
        if (place->bytes > place->bytes_search) {
            if (i < CHUNK_CLASSES) {
                search_chunks(place, i);
            } else {
                free_singles(place, i);
            }
            sweep_magazines(place);
            place->bytes_search =
                place->bytes > DEPOT_BYTES_KEPT / 2 ? 2 * place->bytes : DEPOT_BYTES_KEPT;
        }
        pthread_mutex_unlock(&place->lock);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
payload_release(void *data, void *arg)
{
    (void)arg;
    trpi_free(data);
}

static trp_msg *
msg_make_moved(trpi_msg_cache *cache, size_t bytes, size_t trailer_bytes, void **ret_payload)
{
    void *data = trpi_realloc(NULL, bytes); /* aligned as malloc() does, and not zeroed */
    trp_msg *msg = data != NULL
                       ? trpi_block_new(cache, TRPI_MSG_HEADER_BYTES + sizeof(trp_msg_priv_moved) +
                                                   trailer_bytes)
                       : NULL;

    if (msg == NULL) {
        trpi_free(data);
        return NULL;
    }
    memset(msg, 0, TRPI_MSG_HEADER_BYTES);
    msg->priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE;
    *(trp_msg_priv_moved *)(void *)((char *)msg + TRPI_MSG_HEADER_BYTES) =
        (trp_msg_priv_moved){ data, bytes, payload_release, NULL };
    *ret_payload = data;
    return msg;
}

trp_msg *
trpi_msg_make_empty(trpi_msg_cache *cache, const trp_type *type, size_t bytes, void **ret_payload)
{
    trp_msg *msg;

    if (bytes > TRP_INLINE_PAYLOAD_MAX) {
        msg = msg_make_moved(cache, bytes, 0, ret_payload);
    } else {
        msg = trpi_block_new(cache, TRPI_MSG_HEADER_BYTES + bytes);
        if (msg != NULL) {
            memset(msg, 0, TRPI_MSG_HEADER_BYTES);
            msg->priv_bytes = (uint16_t)bytes;
            *ret_payload = (char *)msg + TRPI_MSG_HEADER_BYTES;
        }
    }
    if (msg != NULL) {
        msg->priv_type = (uint16_t)type->number;
    }
    return msg;
}

trp_msg *
trpi_msg_make_trailed(trpi_msg_cache *cache, const trp_type *type, size_t bytes, void **ret_payload)
{
    size_t padded = (bytes + 15u) & ~(size_t)15u;
    trp_msg *msg;

    if (bytes > TRP_INLINE_PAYLOAD_MAX) {
        msg = msg_make_moved(cache, bytes, TRPI_TRAILER_BYTES, ret_payload);
    } else {
        msg = trpi_block_new(cache, TRPI_MSG_HEADER_BYTES + padded + TRPI_TRAILER_BYTES);
        if (msg != NULL) {
            memset(msg, 0, TRPI_MSG_HEADER_BYTES);
            msg->priv_bytes = (uint16_t)bytes;
            *ret_payload = (char *)msg + TRPI_MSG_HEADER_BYTES;
        }
    }
    if (msg != NULL) {
        msg->priv_type = (uint16_t)type->number;
        msg->priv_from_node_flags |= TRPI_MSG_TRAILER;
    }
    return msg;
}

trp_msg *
trpi_msg_make(trpi_msg_cache *cache, trp_ref to, trp_ref sender, const trp_type *type,
              const void *payload, size_t bytes)
{
    bool inside = LIKELY(bytes <= TRP_INLINE_PAYLOAD_MAX);
    void *place;
    trp_msg *msg = inside ? trpi_block_new(cache, TRPI_MSG_HEADER_BYTES + bytes)
                          : msg_make_moved(cache, bytes, 0, &place);

    if (msg == NULL) {
        return NULL;
    }
    if (inside) {
        place = (char *)msg + TRPI_MSG_HEADER_BYTES;
        msg->priv_next = NULL;
        msg->priv_from_node_flags = 0;
        msg->priv_bytes = (uint16_t)bytes;
    }
    msg->priv_type = (uint16_t)type->number;
    msg->priv_to_slot = to.slot;
    msg->priv_to_generation = to.generation;
    trpi_msg_sender_set(msg, sender);
    if (bytes > 0) {
        memcpy(place, payload, bytes);
    }
    return msg;
}

/* With a payload elsewhere, or a trailer. */
static NOINLINE void
msg_free_unusual(trpi_msg_cache *cache, trp_msg *msg)
{
    size_t bytes = msg->priv_bytes;

    if ((msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0) {
        trp_msg_priv_moved *moved = (void *)((char *)msg + TRPI_MSG_HEADER_BYTES);

        if (moved->release != NULL) {
            moved->release(moved->data, moved->arg);
        }
        bytes = sizeof *moved;
    }
    if ((msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0) {
        bytes = trpi_msg_trailer_at(msg) - TRPI_MSG_HEADER_BYTES + TRPI_TRAILER_BYTES;
    }
    trpi_block_free(cache, msg, TRPI_MSG_HEADER_BYTES + bytes);
}

void
trpi_msg_free_any(trpi_msg_cache *cache, trp_msg *msg)
{
    if (LIKELY((msg->priv_from_node_flags & (TRP_MSG_PRIV_OUT_OF_LINE | TRPI_MSG_TRAILER)) == 0)) {
        trpi_block_free(cache, msg, TRPI_MSG_HEADER_BYTES + msg->priv_bytes);
    } else {
        msg_free_unusual(cache, msg);
    }
}
