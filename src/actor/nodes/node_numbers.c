/* node_numbers.c - numbers of node identities: assignment, end and reuse.
 *
 * Why.     A reference names its node by a number of 24 bits. Permanent numbers would be used up by
 *          nodes that restart often; so the number of an incarnation that has ended is reused in
 *          another generation, and a stale number finds no node.
 * Must hold.
 *   node-numbers-N1  A number stands for one (address, uid), and after its end for none, until its
 *       index wraps around: 256 generations, each after all indices that were free before. A stale
 *       ref would then need slot and generation of an actor of the later node, which are random
 *       (cell-C4). Only entry 1, the system itself, is replaced, once, by trpi_system_advertise().
 *   node-numbers-N4  An entry is unreachable, and then retired, before it is freed: readers are in
 *       a run or between trpi_enter() and trpi_leave().
 *   node-numbers-N5  A node that a peer has only introduced counts for the share of that peer. At
 *       the limit of a share, or of all shares, the node that was introduced longest ago is
 *       evicted: its number ends, as if the node had never been named.
 *   node-numbers-N6  A node that is known to be alive has a number that has not ended, whatever
 *       peers said before.
 * Limits.  TRPI_NODES_LIMIT numbers at a time, TRPI_NODES_ENDED of which are remembered after their
 *          end, so that late messages can name the node; TRPI_NODES_INTRODUCED.
 * Cost.    A lookup is two loads and a compare; an ended incarnation costs 11 bytes of its index.
 * Tests.   tests/unit/actor/system_test.c, limits_test.c, tests/sim/strangers_test.c,
 *          forgotten_test.c
 */
#include "actor/nodes/nodes_inner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/hash.h"

bool
trpi_node_has_ended(trp_system *system, uint32_t number)
{
    trpi_node *entry = trpi_node_at(system->nodes, number);

    return entry == NULL || atomic_load_explicit(&entry->ended, memory_order_relaxed) != 0;
}

trpi_node *
trpi_node_new(trp_system *system, const trpi_node_id *id)
{
    trpi_node *entry = trpi_alloc(sizeof *entry);

    if (entry != NULL) {
        entry->id = *id;
        entry->system = system;
    }
    return entry;
}

trp_err
trpi_node_put(struct trpi_nodes *nodes, uint32_t index, trpi_node *entry)
{
    trpi_node_chunk *chunk = trpi_node_chunk_of(nodes, index);

    if (chunk == NULL) {
        chunk = trpi_alloc(sizeof *chunk);
        if (chunk == NULL) {
            return TRP_ENOMEM;
        }
        atomic_store_explicit(&nodes->chunks[index / TRPI_NODE_CHUNK], chunk, RELEASE);
    }
    entry->number = index | (uint32_t)chunk->generation[index % TRPI_NODE_CHUNK]
                                << TRPI_NODE_INDEX_BITS;
    atomic_store_explicit(&chunk->entries[index % TRPI_NODE_CHUNK], entry, RELEASE);
    return TRP_OK;
}

/* ---- index ----------------------------------------------------------------------------------- */

static uint64_t
id_hash(const trpi_node_id *id)
{
    return trpi_address_hash(&id->address) ^ trpi_hash_u64(id->uid);
}

static uint64_t
entry_hash(const void *arg, const void *element)
{
    (void)arg;
    return id_hash(&(*(trpi_node *const *)element)->id);
}

static bool
entry_is_key(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return trpi_node_id_equal(&(*(trpi_node *const *)element)->id, key);
}

static const trpi_table_kind by_identity = { sizeof(trpi_node *), trpi_table_pointer_is_empty,
                                             entry_hash, entry_is_key };

/* Under the lock. NULL: the identity has no number. */
static trpi_node *
entry_find(const struct trpi_nodes *nodes, const trpi_node_id *id)
{
    trpi_node **place = trpi_table_find(&by_identity, &nodes->index, NULL, id_hash(id), id);

    return place != NULL ? *place : NULL;
}

static void
index_remove(struct trpi_nodes *nodes, const trpi_node *entry)
{
    const trpi_node_id *id = &entry->id;
    trpi_node **place = trpi_table_find(&by_identity, &nodes->index, NULL, id_hash(id), id);

    if (!entry->unnamed) {
        trpi_assert(place != NULL && *place == entry);
        trpi_table_remove(&by_identity, &nodes->index, NULL, place);
    }
}

/* ---- lists of entries; under the lock -------------------------------------------------------- */

static void
list_append(trpi_node_list *list, trpi_node *entry, enum trpi_node_list_kind in)
{
    trpi_assert(entry->in == TRPI_NODE_IN_NONE);
    entry->in = in;
    entry->list_next = NULL;
    entry->list_before = list->last;
    *(list->last != NULL ? &list->last->list_next : &list->first) = entry;
    list->last = entry;
    list->count++;
}

static void
list_remove(trpi_node_list *list, trpi_node *entry)
{
    trpi_node *next = entry->list_next, *before = entry->list_before;

    trpi_assert(entry->in != TRPI_NODE_IN_NONE && list->count > 0);
    entry->in = TRPI_NODE_IN_NONE;
    *(next != NULL ? &next->list_before : &list->last) = before;
    *(before != NULL ? &before->list_next : &list->first) = next;
    list->count--;
}

void
trpi_node_keep(struct trpi_nodes *nodes, trpi_node *entry)
{
    if (entry->in == TRPI_NODE_IN_SHARE) {
        list_remove(&nodes->shares[entry->share], entry);
        nodes->introduced--;
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void
free_push(struct trpi_nodes *nodes, uint32_t index)
{
    trpi_node_chunk *chunk = trpi_node_chunk_of(nodes, index);

    chunk->free_next[index % TRPI_NODE_CHUNK] = 0;
    if (nodes->free_last != 0) {
        trpi_node_chunk_of(nodes, nodes->free_last)->free_next[nodes->free_last % TRPI_NODE_CHUNK] =
            (uint16_t)index;
    } else {
        nodes->free_first = index;
    }
    nodes->free_last = index;
}

/* Return the index for a new number: an unused one while there is one, so that generations last
 * longest. 0: all are in use. */
static uint32_t
index_next(const struct trpi_nodes *nodes)
{
    return nodes->used <= TRPI_NODES_LIMIT ? nodes->used : nodes->free_first;
}

static void
index_take(struct trpi_nodes *nodes, uint32_t index)
{
    if (index == nodes->used) {
        nodes->used++;
        return;
    }
    nodes->free_first = trpi_node_chunk_of(nodes, index)->free_next[index % TRPI_NODE_CHUNK];
    if (nodes->free_first == 0) {
        nodes->free_last = 0;
    }
}

/* Add a number for an identity that has none, or in place of one that has ended. */
static trp_err
entry_add(trp_system *system, const trpi_node_id *id, trpi_node **ret_entry)
{
    struct trpi_nodes *nodes = system->nodes;
    uint32_t index = index_next(nodes);
    trpi_node **place;
    trpi_node *entry = index != 0 ? trpi_node_new(system, id) : NULL;

    if (index == 0) {
        return TRP_ELIMIT;
    }
    if (entry == NULL ||
        trpi_table_reserve(&by_identity, &nodes->index, NULL, nodes->index.count + 1) != TRP_OK ||
        trpi_node_put(nodes, index, entry) != TRP_OK) {
        trpi_free(entry);
        return TRP_ENOMEM;
    }
    index_take(nodes, index);
    place = trpi_table_add(&by_identity, &nodes->index, NULL, id_hash(id), id);
    trpi_assert(place != NULL); /* it was reserved */
    if (*place != NULL) {
        (*place)->unnamed = true;
    }
    *place = entry;
    *ret_entry = entry;
    return TRP_OK;
}

static bool
is_self(trp_system *system, const trpi_node_id *id)
{
    const trpi_node_id *self = trpi_system_self(system);

    /* A uid identifies one system, whatever its address was when it was recorded. */
    return id->uid == self->uid ||
           (id->uid == 0 && trpi_address_equal(&self->address, &id->address));
}

static bool
has_ended(const trpi_node *entry)
{
    return atomic_load_explicit(&entry->ended, memory_order_relaxed) != 0;
}

/* Find or add a number. lives: the node is known to be alive (node-numbers-N6). */
static trp_err
number_get(trp_system *system, const trpi_node_id *id, bool lives, uint32_t *ret_node)
{
    struct trpi_nodes *nodes = system->nodes;
    trp_err err = TRP_OK;
    trpi_node *entry;

    if (is_self(system, id)) {
        *ret_node = TRPI_NODE_SELF;
        return TRP_OK;
    }
    pthread_mutex_lock(&nodes->lock);
    entry = entry_find(nodes, id);
    if (entry == NULL || (lives && has_ended(entry))) {
        err = entry_add(system, id, &entry);
    } else {
        trpi_node_keep(nodes, entry);
    }
    if (err == TRP_OK) {
        *ret_node = entry->number;
    }
    pthread_mutex_unlock(&nodes->lock);
    return err;
}

trp_err
trpi_node_intern(trp_system *system, const trpi_node_id *id, uint32_t *ret_node)
{
    return number_get(system, id, false, ret_node);
}

trp_err
trpi_node_meet(trp_system *system, const trpi_node_id *id, uint32_t *ret_node)
{
    return number_get(system, id, true, ret_node);
}

uint32_t
trpi_node_find(trp_system *system, const trpi_node_id *id)
{
    struct trpi_nodes *nodes = system->nodes;
    uint32_t number = TRPI_NODE_SELF;

    if (!is_self(system, id)) {
        const trpi_node *entry;

        pthread_mutex_lock(&nodes->lock);
        entry = entry_find(nodes, id);
        number = entry != NULL ? entry->number : 0;
        pthread_mutex_unlock(&nodes->lock);
    }
    return number;
}

/* ---- introduced nodes ------------------------------------------------------------------------ */

/* Return the node to be evicted for one more in this share; NULL: none. node-numbers-N5 */
static trpi_node *
share_victim(const struct trpi_nodes *nodes, uint32_t share, uint32_t share_max)
{
    const trpi_node_list *most = &nodes->shares[share];

    if (most->count >= share_max) {
        return most->first;
    }
    if (nodes->introduced < TRPI_NODES_INTRODUCED) {
        return NULL;
    }
    for (uint32_t i = 0; i < TRPI_NODE_SHARES; i++) {
        most = nodes->shares[i].count > most->count ? &nodes->shares[i] : most;
    }
    return most->first;
}

/* Under the lock. */
static void
entry_mark_ended(struct trpi_nodes *nodes, trpi_node *entry)
{
    trpi_node_keep(nodes, entry);
    if (!has_ended(entry)) {
        atomic_store_explicit(&entry->ended, TRP_DEAD_STALE, memory_order_seq_cst); /* nodes-N3 */
    }
}

void
trpi_node_mark_ended(trp_system *system, uint32_t number)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *entry;

    pthread_mutex_lock(&nodes->lock); /* no entry is freed meanwhile */
    entry = number == TRPI_NODE_SELF ? NULL : trpi_node_at(nodes, number);
    if (entry != NULL) {
        entry_mark_ended(nodes, entry);
    }
    pthread_mutex_unlock(&nodes->lock);
}

/* Under the lock. Errors: TRP_ENOMEM. */
static trp_err
shares_get(struct trpi_nodes *nodes)
{
    if (nodes->shares == NULL) {
        nodes->shares = trpi_alloc(TRPI_NODE_SHARES * sizeof *nodes->shares);
    }
    return nodes->shares != NULL ? TRP_OK : TRP_ENOMEM;
}

/* Append an entry to a share; return the number that ends for it, 0: none. Under the lock. */
static uint32_t
share_add(struct trpi_nodes *nodes, trpi_node *entry, uint32_t share, uint32_t share_max)
{
    trpi_node *over = share_victim(nodes, share, share_max);

    if (over != NULL) {
        entry_mark_ended(nodes, over); /* now, so that no thread finds it before its end */
        index_remove(nodes, over);
        over->unnamed = true;
    }
    entry->share = (uint16_t)share;
    list_append(&nodes->shares[share], entry, TRPI_NODE_IN_SHARE);
    nodes->introduced++;
    return over != NULL ? over->number : 0;
}

/* Under the lock. *ret_over: the number of the evicted node, 0: none. */
static trp_err
entry_introduce(trp_system *system, const trpi_node_id *id, uint32_t share, uint32_t share_max,
                trpi_node **ret_entry, uint32_t *ret_over)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *entry = entry_find(nodes, id);
    trp_err err = TRP_OK;

    if (entry != NULL && entry->in == TRPI_NODE_IN_SHARE) { /* move it to the end */
        trpi_node_list *list = &nodes->shares[entry->share];

        list_remove(list, entry);
        list_append(list, entry, TRPI_NODE_IN_SHARE);
    }
    if (entry == NULL) {
        err = shares_get(nodes);
        err = err != TRP_OK ? err : entry_add(system, id, &entry);
        if (err == TRP_OK) {
            *ret_over = share_add(nodes, entry, share, share_max);
        }
    }
    *ret_entry = entry;
    return err;
}

trp_err
trpi_node_number_introduce(trp_system *system, const trpi_node_id *id, uint64_t by,
                           uint32_t share_max, uint32_t *ret_node, uint32_t *ret_over)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *entry = NULL;
    trp_err err;

    trpi_assert(share_max > 0);
    *ret_over = 0;
    if (is_self(system, id)) {
        *ret_node = TRPI_NODE_SELF;
        return TRP_OK;
    }
    pthread_mutex_lock(&nodes->lock);
    err =
        entry_introduce(system, id, (uint32_t)(by % TRPI_NODE_SHARES), share_max, &entry, ret_over);
    if (err == TRP_OK) {
        *ret_node = entry->number;
    }
    pthread_mutex_unlock(&nodes->lock);
    return err;
}

uint32_t
trpi_node_number_release(trp_system *system, uint32_t number, uint64_t by, uint32_t share_max)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *entry;
    uint32_t over = 0;

    pthread_mutex_lock(&nodes->lock); /* no entry is freed meanwhile */
    entry = number == TRPI_NODE_SELF ? NULL : trpi_node_at(nodes, number);
    if (entry != NULL && entry->in == TRPI_NODE_IN_NONE && !has_ended(entry) &&
        shares_get(nodes) == TRP_OK) {
        over = share_add(nodes, entry, (uint32_t)(by % TRPI_NODE_SHARES), share_max);
    }
    pthread_mutex_unlock(&nodes->lock);
    return over;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
entry_free(void *object)
{
    trpi_node *entry = object;

    trpi_ref_map_fini(&entry->waiting);
    trpi_free(entry);
}

/* Remove an entry from the table and free its number. Under the lock. */
static void
entry_unpublish(struct trpi_nodes *nodes, trpi_node *entry)
{
    uint32_t index = entry->number & TRPI_NODE_INDEX_MASK;
    trpi_node_chunk *chunk = trpi_node_chunk_of(nodes, index);

    index_remove(nodes, entry);
    atomic_store_explicit(&chunk->entries[index % TRPI_NODE_CHUNK], NULL, RELEASE);
    chunk->generation[index % TRPI_NODE_CHUNK]++; /* node-numbers-N1 */
    free_push(nodes, index);
}

void
trpi_node_number_retire(trp_system *system, trpi_node *entry)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *oldest = NULL;

    pthread_mutex_lock(&nodes->lock);
    list_append(&nodes->ended, entry, TRPI_NODE_IN_ENDED);
    if (nodes->ended.count > TRPI_NODES_ENDED) {
        oldest = nodes->ended.first;
        list_remove(&nodes->ended, oldest);
        entry_unpublish(nodes, oldest);
    }
    pthread_mutex_unlock(&nodes->lock);
    if (oldest != NULL) {
        trpi_system_retire(system, entry_free, oldest); /* node-numbers-N4 */
    }
}
