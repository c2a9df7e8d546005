/* storage_memory.c - records in memory: the disk of a world of virtual time, and of tests.
 *
 * Shape.   memory -> queues, found by key -> records, a list with its end
 * Threads. One mutex, a leaf: systems that share a memory call one at a time, but the test that
 *          lets it fail may be another thread.
 * Tests.   tests/unit/pattern/storage_test.c
 * Sources. DUR-06, DUR-07; docs/architecture.md#principles.
 */
#include <troupe/durable.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"

typedef struct record {
    struct record *next;
    size_t bytes;
    unsigned char data[];
} record;

typedef struct queue {
    struct queue *next;
    record *first, **end;
    uint32_t items;
    uint64_t bytes;
    char key[];
} queue;

struct trp_durable_memory {
    trp_durable_storage storage;
    pthread_mutex_t lock; /* everything below */
    queue *queues;
    uint64_t bytes, bytes_max;
    uint32_t failures;
};

/* Return whether this call is to fail. Under the lock. */
static bool
is_ill(trp_durable_memory *memory)
{
    if (memory->failures > 0) {
        memory->failures--;
        return true;
    }
    return false;
}

static queue *
queue_make(trp_durable_memory *memory, const char *key)
{
    size_t bytes = strlen(key) + 1;
    queue *made = trpi_alloc(sizeof *made + bytes);

    if (made != NULL) {
        memcpy(made->key, key, bytes);
        made->end = &made->first;
        made->next = memory->queues;
        memory->queues = made;
    }
    return made;
}

static trp_err
memory_queue(void *arg, const char *key, void **ret_queue, uint32_t *ret_items, uint64_t *ret_bytes)
{
    trp_durable_memory *memory = arg;
    trp_err err = TRP_OK;
    queue *found;

    pthread_mutex_lock(&memory->lock);
    found = memory->queues;
    while (found != NULL && strcmp(found->key, key) != 0) {
        found = found->next;
    }
    if (is_ill(memory)) {
        err = TRP_EIO;
    } else if (found == NULL && (found = queue_make(memory, key)) == NULL) {
        err = TRP_ENOMEM;
    } else {
        *ret_queue = found;
        *ret_items = found->items;
        *ret_bytes = found->bytes;
    }
    pthread_mutex_unlock(&memory->lock);
    return err;
}

static trp_err
memory_put(void *arg, void *where, const void *data, size_t bytes, int sync)
{
    trp_durable_memory *memory = arg;
    queue *to = where;
    record *made = trpi_alloc(sizeof *made + bytes);
    trp_err err = TRP_OK;

    (void)sync;
    if (made == NULL) {
        return TRP_ENOMEM;
    }
    made->bytes = bytes;
    memcpy(made->data, data, bytes);
    pthread_mutex_lock(&memory->lock);
    if (is_ill(memory)) {
        err = TRP_EIO;
    } else if (memory->bytes_max != 0 && memory->bytes + bytes > memory->bytes_max) {
        err = TRP_EAGAIN;
    } else {
        *to->end = made;
        to->end = &made->next;
        to->items++;
        to->bytes += bytes;
        memory->bytes += bytes;
        made = NULL;
    }
    pthread_mutex_unlock(&memory->lock);
    trpi_free(made);
    return err;
}

static trp_err
memory_take(void *arg, void *where, int sync, trp_durable_give_fn give, void *to)
{
    trp_durable_memory *memory = arg;
    queue *from = where;
    record *first;
    trp_err err;

    (void)sync;
    pthread_mutex_lock(&memory->lock);
    first = from->first;
    err = is_ill(memory)  ? TRP_EIO
          : first == NULL ? TRP_ENOENT
                          : give(to, first->data, first->bytes);
    if (err == TRP_OK) {
        from->first = first->next;
        if (from->first == NULL) {
            from->end = &from->first;
        }
        from->items--;
        from->bytes -= first->bytes;
        memory->bytes -= first->bytes;
        trpi_free(first);
    }
    pthread_mutex_unlock(&memory->lock);
    return err;
}

trp_err
trp_durable_memory_new(trp_durable_memory **ret_memory)
{
    trp_durable_memory *memory = ret_memory == NULL ? NULL : trpi_alloc(sizeof *memory);

    if (memory == NULL) {
        return ret_memory == NULL ? TRP_EINVAL : TRP_ENOMEM;
    }
    memory->storage = (trp_durable_storage){
        sizeof memory->storage, "memory", memory, memory_queue, memory_put, memory_take, NULL
    };
    pthread_mutex_init(&memory->lock, NULL);
    *ret_memory = memory;
    return TRP_OK;
}

void
trp_durable_memory_free(trp_durable_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    while (memory->queues != NULL) {
        queue *next = memory->queues->next;

        while (memory->queues->first != NULL) {
            record *second = memory->queues->first->next;

            trpi_free(memory->queues->first);
            memory->queues->first = second;
        }
        trpi_free(memory->queues);
        memory->queues = next;
    }
    trpi_mutex_destroy(&memory->lock);
    trpi_free(memory);
}

const trp_durable_storage *
trp_durable_memory_storage(trp_durable_memory *memory)
{
    return memory == NULL ? NULL : &memory->storage;
}

void
trp_durable_memory_fail(trp_durable_memory *memory, uint32_t calls)
{
    pthread_mutex_lock(&memory->lock);
    memory->failures = calls;
    pthread_mutex_unlock(&memory->lock);
}

void
trp_durable_memory_limit(trp_durable_memory *memory, uint64_t bytes)
{
    pthread_mutex_lock(&memory->lock);
    memory->bytes_max = bytes;
    pthread_mutex_unlock(&memory->lock);
}
