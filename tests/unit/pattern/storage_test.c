/* storage_test.c - requirements of any storage of durable mailboxes, tested on LMDB, memory, and
 * one that is written here as a program would. To try another one, add it to `storages`. (DUR-06,
 * DUR-07)
 */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <troupe/troupe.h>

#include "pattern/durable_lmdb.h"

/* A storage under test, which is closed and opened again as a restart of the process would. */
typedef struct fixture {
    const char *name;
    trp_err (*open)(trp_durable_storage *ret_storage);
    void (*forget)(void); /* behind the last close: all that it kept */
} fixture;

/* ---- LMDB ------------------------------------------------------------------------------------ */

#ifdef HAVE_LMDB
static char directory[64];

static trp_err
lmdb_open(trp_durable_storage *ret_storage)
{
    char error[TRPI_STORE_ERROR_BYTES];

    if (directory[0] == 0) {
        (void)snprintf(directory, sizeof directory, "storage-XXXXXX");
        UNIT_REQUIRE(mkdtemp(directory) != NULL);
    }
    return trpi_lmdb_open(directory, TRP_DURABLE_MAP_BYTES_MIN * 16, ret_storage, error);
}

static void
lmdb_forget(void)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/data.mdb", directory);
    UNIT_EQUAL(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/owner", directory);
    UNIT_EQUAL(unlink(path), 0);
    UNIT_EQUAL(rmdir(directory), 0);
    directory[0] = 0;
}
#endif

/* ---- memory ---------------------------------------------------------------------------------- */

static trp_durable_memory *memory;

static trp_err
memory_open(trp_durable_storage *ret_storage)
{
    trp_err err = memory != NULL ? TRP_OK : trp_durable_memory_new(&memory);

    if (err == TRP_OK) {
        *ret_storage = *trp_durable_memory_storage(memory);
    }
    return err;
}

static void
memory_forget(void)
{
    trp_durable_memory_free(memory);
    memory = NULL;
}

/* ---- a program's own: an array --------------------------------------------------------------- */

enum { OWN_RECORDS = 512, OWN_QUEUES = 8 };
typedef struct own_record {
    int queue; /* 0: free; else from 1 */
    size_t bytes;
    unsigned char *data;
} own_record;
static struct {
    char keys[OWN_QUEUES][TRP_DURABLE_KEY_BYTES_MAX + 1];
    own_record records[OWN_RECORDS];
    uint32_t used;
} own;

static trp_err
own_queue(void *arg, const char *key, void **ret_queue, uint32_t *ret_items, uint64_t *ret_bytes)
{
    int at = 0;

    (void)arg;
    while (at < OWN_QUEUES && own.keys[at][0] != 0 && strcmp(own.keys[at], key) != 0) {
        at++;
    }
    if (at == OWN_QUEUES) {
        return TRP_EAGAIN;
    }
    (void)snprintf(own.keys[at], sizeof own.keys[at], "%s", key);
    *ret_queue = own.keys[at];
    *ret_items = 0;
    *ret_bytes = 0;
    for (uint32_t i = 0; i < own.used; i++) {
        if (own.records[i].queue == at + 1) {
            *ret_items += 1;
            *ret_bytes += own.records[i].bytes;
        }
    }
    return TRP_OK;
}

static int
own_number(const void *queue)
{
    return (int)(((const char *)queue - own.keys[0]) / (long)sizeof own.keys[0]) + 1;
}

static trp_err
own_put(void *arg, void *queue, const void *data, size_t bytes, int sync)
{
    unsigned char *copy = malloc(bytes + 1);

    (void)arg;
    (void)sync;
    if (copy == NULL || own.used == OWN_RECORDS) {
        free(copy);
        return TRP_EAGAIN;
    }
    memcpy(copy, data, bytes);
    own.records[own.used++] = (own_record){ own_number(queue), bytes, copy };
    return TRP_OK;
}

static trp_err
own_take(void *arg, void *queue, int sync, trp_durable_give_fn give, void *to)
{
    trp_err err;

    (void)arg;
    (void)sync;
    for (uint32_t i = 0; i < own.used; i++) {
        if (own.records[i].queue == own_number(queue)) {
            err = give(to, own.records[i].data, own.records[i].bytes);
            if (err == TRP_OK) {
                free(own.records[i].data);
                memmove(&own.records[i], &own.records[i + 1],
                        (--own.used - i) * sizeof own.records[0]);
            }
            return err;
        }
    }
    return TRP_ENOENT;
}

static trp_err
own_open(trp_durable_storage *ret_storage)
{
    *ret_storage = (trp_durable_storage){
        sizeof *ret_storage, "own", &own, own_queue, own_put, own_take, NULL
    };
    return TRP_OK;
}

static void
own_forget(void)
{
    while (own.used > 0) {
        free(own.records[--own.used].data);
    }
    memset(&own, 0, sizeof own);
}

static const fixture storages[] = {
#ifdef HAVE_LMDB
    { "lmdb", lmdb_open, lmdb_forget },
#endif
    { "memory", memory_open, memory_forget },
    { "own", own_open, own_forget },
};

static void
on_each(void (*scenario)(const fixture *on))
{
    for (size_t i = 0; i < sizeof storages / sizeof storages[0]; i++) {
        printf("  %s\n", storages[i].name);
        scenario(&storages[i]);
        storages[i].forget();
    }
}

/* ---- the functions --------------------------------------------------------------------------- */

typedef struct taken {
    size_t bytes;
    unsigned char data[70000];
    trp_err answer; /* of the one that is given */
} taken;

static trp_err
record_take(void *to, const void *data, size_t bytes)
{
    taken *t = to;

    t->bytes = bytes;
    UNIT_REQUIRE(bytes <= sizeof t->data);
    memcpy(t->data, data, bytes);
    return t->answer;
}

static trp_durable_storage at;

static void
storage_reopen(const fixture *on)
{
    if (at.close != NULL) {
        at.close(at.arg);
    }
    UNIT_REQUIRE(on->open(&at) == TRP_OK);
}

static void
storage_end(void)
{
    if (at.close != NULL) {
        at.close(at.arg);
    }
    memset(&at, 0, sizeof at);
}

static void *
queue_of(const char *key, uint32_t want_items, uint64_t want_bytes)
{
    uint32_t items = UINT32_MAX;
    uint64_t bytes = UINT64_MAX;
    void *queue = NULL;

    UNIT_REQUIRE(at.queue(at.arg, key, &queue, &items, &bytes) == TRP_OK);
    UNIT_EQUAL(items, want_items);
    UNIT_EQUAL(bytes, want_bytes);
    return queue;
}

static void
record_expect(void *queue, const char *text)
{
    static taken got;

    got.answer = TRP_OK;
    UNIT_EQUAL(at.take(at.arg, queue, 0, record_take, &got), TRP_OK);
    UNIT_EQUAL(got.bytes, strlen(text));
    UNIT_TRUE(memcmp(got.data, text, strlen(text)) == 0);
}

static void
order_and_separation(const fixture *on)
{
    static taken got;
    char text[32];
    void *a, *b;

    storage_reopen(on);
    a = queue_of("system/user/a", 0, 0);
    b = queue_of("system/user/a/b", 0, 0); /* a prefix is another key */
    UNIT_EQUAL(at.take(at.arg, a, 0, record_take, &got), TRP_ENOENT);
    for (int i = 0; i < 300; i++) { /* past one byte of a serial */
        (void)snprintf(text, sizeof text, "%s-%d", i % 3 == 0 ? "b" : "a", i);
        UNIT_EQUAL(at.put(at.arg, i % 3 == 0 ? b : a, text, strlen(text), i % 100 == 0), TRP_OK);
    }
    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "%s-%d", i % 3 == 0 ? "b" : "a", i);
        record_expect(i % 3 == 0 ? b : a, text);
    }
    UNIT_EQUAL(at.take(at.arg, a, 1, record_take, &got), TRP_ENOENT);
    UNIT_EQUAL(at.take(at.arg, b, 0, record_take, &got), TRP_ENOENT);
    storage_end();
}

/* DUR-06, DUR-07: a queue gives what it was given, in order, and nothing of another one. */
static void
a_queue_keeps_its_order_and_its_own(void)
{
    on_each(order_and_separation);
}

static void
what_is_left(const fixture *on)
{
    void *queue;

    storage_reopen(on);
    queue = queue_of("k", 0, 0);
    UNIT_EQUAL(at.put(at.arg, queue, "one", 3, 0), TRP_OK);
    UNIT_EQUAL(at.put(at.arg, queue, "two", 3, 1), TRP_OK);
    UNIT_EQUAL(at.put(at.arg, queue, "three", 5, 0), TRP_OK);
    record_expect(queue, "one");
    storage_reopen(on);
    queue = queue_of("k", 2, 8);
    record_expect(queue, "two");
    UNIT_EQUAL(at.put(at.arg, queue, "four", 4, 0), TRP_OK); /* behind what was there */
    record_expect(queue, "three");
    storage_reopen(on);
    queue = queue_of("k", 1, 4);
    record_expect(queue, "four");
    storage_reopen(on);
    (void)queue_of("k", 0, 0);
    storage_end();
}

/* DUR-01, DUR-07: closed and opened again it has what was not taken, and says how much. */
static void
what_was_not_taken_is_there_after_a_restart(void)
{
    on_each(what_is_left);
}

static void
odd_records(const fixture *on)
{
    static unsigned char large[65537];
    static taken got;
    void *queue;

    storage_reopen(on);
    queue = queue_of("k", 0, 0);
    memset(large, 0xa5, sizeof large);
    large[65536] = 7;
    UNIT_EQUAL(at.put(at.arg, queue, large, sizeof large, 0), TRP_OK);
    UNIT_EQUAL(at.put(at.arg, queue, "\0\0x", 3, 0), TRP_OK);
    got.answer = TRP_ENOMEM; /* the receiver cannot take it: it stays, and is the first */
    UNIT_EQUAL(at.take(at.arg, queue, 0, record_take, &got), TRP_ENOMEM);
    got.answer = TRP_OK;
    UNIT_EQUAL(at.take(at.arg, queue, 0, record_take, &got), TRP_OK);
    UNIT_TRUE(got.bytes == sizeof large && memcmp(got.data, large, sizeof large) == 0);
    UNIT_EQUAL(at.take(at.arg, queue, 0, record_take, &got), TRP_OK);
    UNIT_TRUE(got.bytes == 3 && memcmp(got.data, "\0\0x", 3) == 0);
    UNIT_EQUAL(at.take(at.arg, queue, 0, record_take, &got), TRP_ENOENT);
    storage_end();
}

/* DUR-06, DUR-07: any bytes of any length; one that could not be given is not lost. */
static void
any_bytes_are_kept_and_none_is_lost_on_the_way(void)
{
    on_each(odd_records);
}

/* ---- a mailbox on it ------------------------------------------------------------------------- */

enum { SEEN_MAX = 64 };
static _Atomic int64_t seen[SEEN_MAX];
static _Atomic uint32_t seen_count;
static _Atomic int gate_open, holding;

static trp_err
number_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t i = atomic_load(&seen_count);
    int64_t number = *(const int64_t *)trp_msg_payload(msg);

    (void)ctx;
    (void)state;
    if (number < 0) {
        atomic_store(&holding, 1);
        while (!atomic_load(&gate_open)) {
            unit_pause();
        }
    } else if (i < SEEN_MAX) {
        atomic_store(&seen[i], number);
        atomic_store(&seen_count, i + 1);
    }
    return TRP_OK;
}
static const trp_behaviour clerk = {
    .size = sizeof(trp_behaviour), .name = "clerk", .version = 1, .receive = number_receive
};

static trp_system *
system_start(const trp_durable_storage *storage, trp_durable_options options, trp_ref *ret_ref)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = NULL;

    system_options.workers = 2;
    system_options.log_level = TRP_LOG_OFF;
    spawn.name = "clerk";
    spawn.mailbox = "kept";
    options.storage = storage;
    atomic_store(&seen_count, 0);
    atomic_store(&gate_open, 0);
    atomic_store(&holding, 0);
    UNIT_REQUIRE(trp_system_new("post", &system_options, &system) == TRP_OK);
    UNIT_REQUIRE(trp_durable_register(system, "kept", &options) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system, &clerk, &spawn, ret_ref) == TRP_OK);
    return system;
}

static void
system_stop(trp_system *system)
{
    atomic_store(&gate_open, 1);
    UNIT_EQUAL(trp_system_stop(system, 20000), TRP_OK);
    trp_system_free(system);
}

static void
number_tell(trp_system *system, trp_ref ref, int64_t number)
{
    trp_system_tell(system, ref, &trp_i64_type, &number, 0);
}

static void
actor_hold(trp_system *system, trp_ref ref)
{
    number_tell(system, ref, -1);
    UNIT_REQUIRE(UNIT_WAIT(atomic_load(&holding) == 1, 20000));
}

static uint64_t
dead(trp_system *system, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.dead_letters[reason];
}

static void
a_mailbox(const fixture *on)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_durable_storage storage;
    trp_system *system;
    trp_ref ref;

    options.max_items = 5;
    UNIT_REQUIRE(on->open(&storage) == TRP_OK);
    system = system_start(&storage, options, &ref);
    actor_hold(system, ref);
    for (int64_t i = 1; i <= 6; i++) {
        number_tell(system, ref, i);
    }
    UNIT_EQUAL(dead(system, TRP_DEAD_MAILBOX_FULL), 1); /* 1 was dropped for 6 */
    trp_system_stop_actor(system, ref);
    system_stop(system); /* closes it */
    UNIT_EQUAL(atomic_load(&seen_count), 0);

    options.refuse_when_full = 1;
    options.sync = 1;
    UNIT_REQUIRE(on->open(&storage) == TRP_OK);
    system = system_start(&storage, options, &ref);
    UNIT_WAIT(atomic_load(&seen_count) == 5, 20000);
    for (uint32_t i = 0; i < 5; i++) {
        UNIT_EQUAL(atomic_load(&seen[i]), i + 2);
    }
    actor_hold(system, ref);
    for (int64_t i = 1; i <= 6; i++) {
        number_tell(system, ref, 100 + i);
    }
    UNIT_EQUAL(dead(system, TRP_DEAD_MAILBOX_FULL), 1); /* 106 was refused */
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 10, 20000);
    UNIT_EQUAL(atomic_load(&seen[9]), 105);
    system_stop(system);
}

/* DUR-01, -05, -06, TRP-13: the messages of an actor that ended stay, in order and once; the limits
 * are those of the mailbox, for each storage. */
static void
a_durable_mailbox_works_on_it(void)
{
    on_each(a_mailbox);
}

/* DUR-04, -05: a storage that fails three times opens the breaker, and is not asked any more; one
 * without room refuses, which opens no breaker. */
static void
an_ill_or_full_storage_is_told_apart(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_durable_storage storage;
    trp_system *system;
    trp_ref ref;

    options.reset_timeout_ms = 600000; /* not in this test */
    UNIT_REQUIRE(memory_open(&storage) == TRP_OK);
    system = system_start(&storage, options, &ref);
    actor_hold(system, ref);
    trp_durable_memory_limit(memory, 1);
    for (int64_t i = 1; i <= 5; i++) {
        number_tell(system, ref, i);
    }
    UNIT_EQUAL(dead(system, TRP_DEAD_MAILBOX_FULL), 5);
    trp_durable_memory_limit(memory, 0);
    number_tell(system, ref, 6); /* tried, and let in */
    UNIT_EQUAL(dead(system, TRP_DEAD_MAILBOX_FULL), 5);
    trp_durable_memory_fail(memory, 3);
    for (int64_t i = 7; i <= 9; i++) {
        number_tell(system, ref, i);
    }
    UNIT_EQUAL(dead(system, TRP_DEAD_STORAGE), 3);
    number_tell(system, ref, 10); /* it would be let in, but nobody tries */
    UNIT_EQUAL(dead(system, TRP_DEAD_STORAGE), 4);
    system_stop(system);
    memory_forget();
}

/* DUR-04: after the reset timeout the waiting records are read, without a new message. */
static void
a_storage_that_is_well_again_is_read(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_durable_storage storage;
    trp_system *system;
    trp_ref ref;

    options.reset_timeout_ms = 100;
    UNIT_REQUIRE(memory_open(&storage) == TRP_OK);
    system = system_start(&storage, options, &ref);
    actor_hold(system, ref);
    number_tell(system, ref, 1);
    trp_durable_memory_fail(memory, 3);
    for (int64_t i = 2; i <= 4; i++) {
        number_tell(system, ref, i);
    }
    UNIT_EQUAL(dead(system, TRP_DEAD_STORAGE), 3);
    trp_durable_memory_fail(memory, 0);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 1, 20000);
    number_tell(system, ref, 5);
    UNIT_WAIT(atomic_load(&seen_count) == 2, 20000);
    UNIT_EQUAL(atomic_load(&seen[1]), 5);
    system_stop(system);
    memory_forget();
}

/* DUR-06: a storage that lacks something is refused; two registrations of one storage share it, so
 * that one actor at a time has a path's mail. */
static void
a_storage_is_checked_and_shared(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_durable_storage storage, lacks;
    trp_system *first, *second;
    trp_ref ref, other = TRP_REF_NONE;

    UNIT_EQUAL(trp_durable_memory_new(NULL), TRP_EINVAL);
    UNIT_TRUE(trp_durable_memory_storage(NULL) == NULL);
    trp_durable_memory_free(NULL);
    UNIT_REQUIRE(memory_open(&storage) == TRP_OK);
    first = system_start(&storage, options, &ref);
    for (int i = 0; i < 5; i++) {
        lacks = storage;
        lacks.size -= i == 0 ? 1 : 0;
        lacks.arg = i == 1 ? NULL : lacks.arg;
        lacks.queue = i == 2 ? NULL : lacks.queue;
        lacks.put = i == 3 ? NULL : lacks.put;
        lacks.take = i == 4 ? NULL : lacks.take;
        options.storage = &lacks;
        UNIT_EQUAL(trp_durable_register(first, "lacks", &options), TRP_EINVAL);
    }
    second = NULL;
    UNIT_REQUIRE(trp_system_new("post", NULL, &second) == TRP_OK);
    options.storage = &storage;
    UNIT_EQUAL(trp_durable_register(second, "kept", &options), TRP_OK);
    spawn.name = "clerk";
    spawn.mailbox = "kept";
    UNIT_EQUAL(trp_system_spawn(second, &clerk, &spawn, &other), TRP_EEXIST);
    trp_system_free(second);
    system_stop(first);
    memory_forget();
}

/* DUR-06: in a world of virtual time a directory is that world's: nothing is on the
 * disk, a system that comes back finds its mail, and the next world does not. */
static void
a_virtual_world_has_a_disk_of_its_own(void)
{
    for (int world = 0; world < 2; world++) {
        trp_testkit_options kit_options = TRP_TESTKIT_OPTIONS_INIT;
        trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
        trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
        trp_testkit *kit = NULL;
        trp_system *system;
        trp_ref ref;

        kit_options.clock = TRP_CLOCK_MANUAL;
        options.directory = "of-no-disk/mail";
        spawn.name = "clerk";
        spawn.mailbox = "kept";
        UNIT_REQUIRE(trp_testkit_open(&kit_options, &kit) == TRP_OK);
        system = trp_testkit_system(kit);
        atomic_store(&seen_count, 0);
        UNIT_EQUAL(trp_durable_register(system, "kept", &options), TRP_OK);
        UNIT_REQUIRE(trp_system_spawn(system, &clerk, &spawn, &ref) == TRP_OK);
        UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
        UNIT_EQUAL(atomic_load(&seen_count), 0);
        number_tell(system, ref, 1);
        trp_system_stop_actor(system, ref); /* goes before what it was told */
        UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
        UNIT_EQUAL(atomic_load(&seen_count), 0);
        UNIT_REQUIRE(trp_system_spawn(system, &clerk, &spawn, &ref) == TRP_OK);
        UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
        UNIT_EQUAL(atomic_load(&seen_count), 1);
        number_tell(system, ref, 2); /* left for the next world, which does not get it */
        trp_system_stop_actor(system, ref);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
        UNIT_TRUE(access("of-no-disk", F_OK) != 0);
    }
}

UNIT_BEGIN("storage")
UNIT(a_queue_keeps_its_order_and_its_own)
UNIT(what_was_not_taken_is_there_after_a_restart)
UNIT(any_bytes_are_kept_and_none_is_lost_on_the_way)
UNIT(a_durable_mailbox_works_on_it)
UNIT(an_ill_or_full_storage_is_told_apart)
UNIT(a_storage_that_is_well_again_is_read)
UNIT(a_storage_is_checked_and_shared)
UNIT(a_virtual_world_has_a_disk_of_its_own)
UNIT_END
