/* troupe/durable.h - mailboxes that survive a crash of the process.
 *
 *     trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
 *     options.directory = "/var/lib/shop/mail";
 *     err = trp_durable_register(system, "orders-mail", &options);
 *     ...
 *     spawn.name = "orders";
 *     spawn.mailbox = "orders-mail"; // or by a dispatcher, or its deployment section
 *
 * A message to an actor with such a mailbox is stored (LMDB) before the tell returns, on the thread
 * that tells. It is removed when the actor begins to handle it. Messages that are left when the
 * process dies, or the actor ends, wait for the next actor of the same system name and path;
 * spawning it is enough. The actor needs a name of its own, for the same reason. A mailbox that
 * several actors share (a balancing dispatcher's) cannot be durable.
 *
 * Limits:
 *   - A message that the actor has begun to handle, or has stashed, is not given again.
 *   - The library's own messages (trp_terminated, timers, trp_poison_pill) and those that never
 *     leave the node (TRP_TYPE_LOCAL) stay in memory, in their order among the stored ones.
 *   - An asker is not there any more after a crash: the reply is a dead letter.
 *   - Senders, and references in fields of a message, are stored by path. After a restart they name
 *     the actors that live at these paths then, if they are of the same system, else no actor.
 *     References in opaque payloads mean nothing after a restart.
 *   - Without options.sync a crash of the machine, not of the process, may lose the last messages.
 * After a restart a message whose type is not registered, or has another size, is a dead letter.
 *
 * Where the records are kept is a trp_durable_storage: LMDB in a directory if none is given. In a
 * world of virtual time (a test kit with such a clock, a seeded run) a directory is memory of that
 * world, so that a seed repeats.
 */
#ifndef TROUPE_DURABLE_H
#define TROUPE_DURABLE_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_DURABLE_ITEMS_DEFAULT 2147483647u
#define TRP_DURABLE_BYTES_DEFAULT 2147483647u
#define TRP_DURABLE_MAP_BYTES_MIN 1048576u
#define TRP_DURABLE_MAP_BYTES_DEFAULT 4294967296u
#define TRP_DURABLE_FAILURES_DEFAULT 3
#define TRP_DURABLE_CALL_DEFAULT_MS 3000
#define TRP_DURABLE_RESET_DEFAULT_MS 30000
#define TRP_DURABLE_KEY_BYTES_MAX 500 /* system name and path of an actor */

/* Be given a record, borrowed until return. An error: it could not be taken, and stays. */
typedef trp_err (*trp_durable_give_fn)(void *to, const void *data, size_t bytes);

/* A storage of the program's own, which keeps queues of records. Sender, age, limits, the breaker
 * and the owner of a queue are not its business. Calls come one at a time, on any thread (that
 * which tells, that which runs the owner), and must not call this library.
 *
 * Errors say what the mailbox does: TRP_EAGAIN, there is no room: the message is refused;
 * TRP_ENOMEM; TRP_EIO, TRP_EDATA or any other: the storage has failed, which the breaker counts. An
 * operation that fails has changed nothing. troupe's own tests of it are
 * tests/unit/pattern/storage_test.c, written so that any storage can be put in. */
typedef struct trp_durable_storage {
    size_t size; /* sizeof(trp_durable_storage) */
    const char *name;
    void *arg; /* passed to all functions; registrations with the same one share it; not NULL */
    /* Find the queue of this key (at most TRP_DURABLE_KEY_BYTES_MAX bytes), or make an empty one;
     * *ret_queue is valid until close. Say how many records are in it, of how many bytes together.
     */
    trp_err (*queue)(void *arg, const char *key, void **ret_queue, uint32_t *ret_items,
                     uint64_t *ret_bytes);
    /* Add a copy of the record at the end. With sync it must be safe from a crash of the machine
     * on return, without it from a crash of the process. */
    trp_err (*put)(void *arg, void *queue, const void *data, size_t bytes, int sync);
    /* Give the first record to give(to, ...) and take it out; TRP_ENOENT: there is none. give may
     * be called again for another try. An error that give returns is the result. */
    trp_err (*take)(void *arg, void *queue, int sync, trp_durable_give_fn give, void *to);
    /* The last system that used it has been freed. NULL: nothing to do. */
    void (*close)(void *arg);
} trp_durable_storage;

/* Zero is the default of every field. */
typedef struct trp_durable_options {
    size_t size;           /* sizeof(trp_durable_options) */
    const char *directory; /* NULL: "./_mb"; made if need be. Mailboxes of one directory share it */
    uint32_t max_items;    /* messages of one actor; 0: TRP_DURABLE_ITEMS_DEFAULT */
    uint32_t zero;
    uint64_t max_bytes;        /* stored of one actor; 0: TRP_DURABLE_BYTES_DEFAULT */
    uint64_t max_item_bytes;   /* of one, some tens more than its payload; above it is a dead
                                  letter, too-large; 0: TRP_DURABLE_BYTES_DEFAULT */
    uint64_t max_age_ms;       /* older ones are dead letters, expired; 0: they do not age */
    uint32_t refuse_when_full; /* 1: refuse what is new; 0: drop the oldest (mailbox-full) */
    uint32_t sync;             /* 1: a tell returns when the disk has it */
    /* Of the whole directory, on disk and in the address space; 0:
     * TRP_DURABLE_MAP_BYTES_DEFAULT. The first mailbox that opens a directory decides. */
    uint64_t map_bytes;
    /* Circuit breaker before the storage; 0: TRP_DURABLE_FAILURES_DEFAULT, _CALL_DEFAULT_MS,
     * _RESET_DEFAULT_MS. */
    uint32_t failures_max;
    uint32_t call_timeout_ms;
    uint32_t reset_timeout_ms;
    uint32_t zero_2;
    /* Instead of directory and map_bytes; copied, what arg leads to is borrowed until close */
    const trp_durable_storage *storage;
} trp_durable_options;
#define TRP_DURABLE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(trp_durable_options), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL                \
    }

/* Register a durable mailbox under an id (troupe/mailbox.h), for actors that are spawned from now
 * on. The directory belongs to this process while the system lives. Errors are logged with what is
 * wrong.
 *
 * A spawn with it fails with TRP_EINVAL when the actor has no name or its path is longer than
 * TRP_DURABLE_KEY_BYTES_MAX allows, with TRP_EEXIST when another system of this process has an
 * actor of this system name and path in the directory, with TRP_EIO or TRP_EBREAKER when the
 * storage does not answer.
 *
 * Ownership: borrows id and options.
 * Errors:    TRP_EINVAL       an option is out of range, or storage lacks a function
 *            TRP_EUNSUPPORTED the library was built without LMDB
 *            TRP_EADDRINUSE   another process has the directory
 *            TRP_EDATA        what is in the directory is damaged, or not ours
 *            TRP_EVERSION     it was written by another version
 *            TRP_EIO          it cannot be made or opened
 *            TRP_ENOMEM       out of memory
 *            and those of trp_mailbox_register and trp_extension_get
 * Thread:    any; may block until the directory is opened; never from a behaviour.
 * Source:    DUR-01 to -06, MBOX-7.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_durable_register(trp_system *system, const char *id,
                                                    const trp_durable_options *options);

typedef struct trp_durable_memory trp_durable_memory;

/* Make a storage in memory, which outlives systems but not the process: for tests of recovery after
 * a crash, and of failing storage.
 *
 * Ownership: gives *ret_memory (trp_durable_memory_free, behind the systems that use it).
 * Errors:    TRP_EINVAL  ret_memory is NULL
 *            TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    DUR-06, DUR-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_durable_memory_new(trp_durable_memory **ret_memory);

/* Free it and what is in it. NULL is fine.
 *
 * Ownership: takes memory.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    DUR-07.  Since: 0.1 */
TRP_API void trp_durable_memory_free(trp_durable_memory *memory);

/* Borrow the storage for trp_durable_options.storage, as long as memory.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    DUR-06.  Since: 0.1 */
TRP_API const trp_durable_storage *trp_durable_memory_storage(trp_durable_memory *memory);

/* Let its next `calls` operations fail with TRP_EIO, as a disk may; 0: none.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    DUR-04, DUR-07.  Since: 0.1 */
TRP_API void trp_durable_memory_fail(trp_durable_memory *memory, uint32_t calls);

/* Let it have no room for more than so many bytes of records; 0: no bound.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    DUR-05, DUR-07.  Since: 0.1 */
TRP_API void trp_durable_memory_limit(trp_durable_memory *memory, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_DURABLE_H */
