/* drains.c - the end of an entity's incarnation, as its own thread sees it: what is left in its
 * mailbox goes to the region, which keeps it for the next incarnation.
 *
 * Must hold.
 *   drains-D1  target is NONE, and the incarnation is in the list, before its ref is stale: a
 *       message that a teller pushed for it is handled, or comes to left().
 *   drains-D2  The region removes it when a grace period has passed and a mark behind it has been
 *       reached: then nothing comes any more.
 * Limits.  Without memory for the note, what is left becomes dead letters.
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "cluster/sharding/region.h"

struct trpi_drain {
    struct trpi_drain *next;
    uint64_t key;
    trpi_entry *entry;
};

static uint64_t
key_of(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

static struct trpi_drain **
bucket_of(trpi_drains *drains, uint64_t key)
{
    return &drains->buckets[trpi_hash_u64(key) % TRPI_DRAIN_BUCKETS];
}

/* The link that leads to the note; it holds NULL when there is none. With the lock. */
static struct trpi_drain **
drain_at(trpi_drains *drains, uint64_t key)
{
    struct trpi_drain **at = bucket_of(drains, key);
    while (*at != NULL && (*at)->key != key) {
        at = &(*at)->next;
    }
    return at;
}

void
trpi_drains_init(trpi_drains *drains)
{
    pthread_mutex_init(&drains->lock, NULL);
}

void
trpi_drains_fini(trpi_drains *drains)
{
    for (uint32_t i = 0; i < TRPI_DRAIN_BUCKETS; i++) {
        while (drains->buckets[i] != NULL) {
            struct trpi_drain *drain = drains->buckets[i];
            drains->buckets[i] = drain->next;
            trpi_free(drain);
        }
    }
    trpi_mutex_destroy(&drains->lock);
}

bool
trpi_drains_add(trpi_drains *drains, uint32_t slot, uint32_t generation, trpi_entry *entry)
{
    struct trpi_drain *drain = trpi_alloc(sizeof *drain);
    if (drain == NULL) {
        return false;
    }
    drain->key = key_of(slot, generation);
    drain->entry = entry;
    pthread_mutex_lock(&drains->lock);
    struct trpi_drain **bucket = bucket_of(drains, drain->key);
    drain->next = *bucket;
    *bucket = drain;
    pthread_mutex_unlock(&drains->lock);
    return true;
}

trpi_entry *
trpi_drains_find(trpi_drains *drains, uint32_t slot, uint32_t generation)
{
    pthread_mutex_lock(&drains->lock);
    const struct trpi_drain *drain = *drain_at(drains, key_of(slot, generation));
    trpi_entry *entry = drain == NULL ? NULL : drain->entry;
    pthread_mutex_unlock(&drains->lock);
    return entry;
}

void
trpi_drains_remove(trpi_drains *drains, uint32_t slot, uint32_t generation)
{
    pthread_mutex_lock(&drains->lock);
    struct trpi_drain **at = drain_at(drains, key_of(slot, generation));
    struct trpi_drain *drain = *at;
    if (drain != NULL) {
        *at = drain->next;
    }
    pthread_mutex_unlock(&drains->lock);
    trpi_free(drain);
}

/* ---- called by the kernel -------------------------------------------------------------------- */

static bool
entity_left(void *arg, trp_ctx *ctx, trp_ref to, const trp_msg *msg)
{
    trpi_sharding *sharding = arg;
    trpi_entry *entry = trpi_drains_find(&sharding->drains, to.slot, to.generation);
    trp_msg *copy;
    if (entry == NULL || atomic_load_explicit(&entry->region->closed, memory_order_acquire) ||
        trp_msg_dup(msg, &copy) != TRP_OK) {
        return false;
    }
    trpi_request *request = trpi_request_new(sharding->system, TRPI_REQUEST_LEFT, entry, entry->id,
                                             entry->id_bytes, copy);
    if (request == NULL) {
        trpi_msg_drop(copy);
        return false;
    }
    request->hash = entry->hash;
    request->shard = entry->shard;
    trpi_request_tell(ctx, entry->region, request);
    return true;
}

static void
entity_ending(void *arg, trp_ctx *ctx, trp_ref self, bool failed)
{
    trpi_sharding *sharding = arg;
    trpi_entry *entry = trpi_entry_index_find(&sharding->index, self.slot);
    if (entry == NULL || !trpi_entry_is(entry, self) ||
        atomic_load_explicit(&entry->region->closed, memory_order_acquire) ||
        trpi_system_is_ending(sharding->system)) {
        return;
    }
    /* drains-D1. seq_cst: pairs with tellers' second look (region-O1) */
    atomic_store(&entry->target, TRPI_TARGET_NONE);
    atomic_store_explicit(&entry->failed, failed, memory_order_relaxed);
    (void)trpi_drains_add(&sharding->drains, self.slot, self.generation, entry);
    trpi_request *request =
        trpi_request_new(sharding->system, TRPI_REQUEST_ENDED, entry, NULL, 0, NULL);
    if (request != NULL) {
        trpi_request_tell(ctx, entry->region, request);
    }
}

const trpi_entity_ops trpi_sharding_entity_ops = { entity_left, entity_ending, trpi_gate_arrived };
