/* nodes.c - node numbers and proxies.
 *
 * Why.     A reference names its node by a small number, so that it fits 16 bytes and is compared
 *          as a value; what the number means is looked up here, without a lock, when a message
 *          leaves the node.
 * Shape.   directory -> chunk of 256 -> entry {address, uid, proxy cell}. A hash index, under the
 *          lock, finds the number of an identity.
 * Must hold.
 *   N1  A number means one (address, uid) for the life of the system; entries are neither changed
 *       nor freed before its end. Only entry 1, the system itself, is replaced, once, by
 *       trpi_system_advertise().
 *   N2  A node has at most one proxy; it lives as long as the system.
 *   N3  Who is refused says so (waiting_any), then lets the lane look once more; a lane that drains
 *       looks at waiting_any after it has made room; so does the end of a node. One sees the other.
 * Limits.  TRPI_NODES_LIMIT numbers in one system.
 * Tests.   tests/unit/actor/system_test.c
 */
#include "actor/nodes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <troupe/mailbox.h>

#include "actor/life.h"
#include "actor/mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"

#define CHUNK_NODES 256u
#define CHUNKS (TRPI_NODES_LIMIT / CHUNK_NODES + 1u)

#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release

typedef struct node {
    trpi_node_id id;
    struct node *replaced;       /* an older entry of the same number (N1), kept for its readers */
    _Atomic(trpi_cell *) proxy;  /* set once */
    _Atomic uint32_t ended;      /* trp_dead_reason of tells to it; 0: it may be told */
    trp_system *system;
    const trpi_proxy_ops *ops;
    void *arg;
    trpi_ref_map waiting;     /* by wait_lock; keys: waiting_key(), values: told generations */
    _Atomic bool waiting_any; /* written under wait_lock; seq_cst: N3 */
} node;

struct trpi_nodes {
    _Atomic(_Atomic(node *) *) chunks[CHUNKS]; /* release; pairs with the acquire of node_get() */
    pthread_mutex_t lock;                      /* count, index, attaching */
    pthread_mutex_t wait_lock;                 /* who waits for a lane; a leaf */
    uint32_t count;                            /* numbers given out, with 0 */
    uint32_t *index;                           /* open addressing; 0: free */
    uint32_t index_places;                     /* a power of two, at most half full */
};

static node *
node_get(struct trpi_nodes *nodes, uint32_t number)
{
    _Atomic(node *) *chunk;

    if (number >= CHUNKS * CHUNK_NODES) {
        return NULL;
    }
    chunk = atomic_load_explicit(&nodes->chunks[number / CHUNK_NODES], ACQUIRE);
    return chunk != NULL ? atomic_load_explicit(&chunk[number % CHUNK_NODES], ACQUIRE) : NULL;
}

/* Under the lock (or before anybody else looks). */
static trp_err
node_put(struct trpi_nodes *nodes, uint32_t number, node *entry)
{
    _Atomic(node *) *chunk = atomic_load_explicit(&nodes->chunks[number / CHUNK_NODES], ACQUIRE);

    if (chunk == NULL) {
        chunk = trpi_alloc(CHUNK_NODES * sizeof *chunk);
        if (chunk == NULL) {
            return TRP_ENOMEM;
        }
        atomic_store_explicit(&nodes->chunks[number / CHUNK_NODES], chunk, RELEASE);
    }
    atomic_store_explicit(&chunk[number % CHUNK_NODES], entry, RELEASE);
    return TRP_OK;
}

static node *
node_new(trp_system *system, const trpi_node_id *id)
{
    node *entry = trpi_alloc(sizeof *entry);

    if (entry != NULL) {
        entry->id = *id;
        entry->system = system;
    }
    return entry;
}

/* ---- index ----------------------------------------------------------------------------------- */

static uint32_t *
index_place(struct trpi_nodes *nodes, const trpi_node_id *id)
{
    uint64_t hash = trpi_address_hash(&id->address) ^ trpi_hash_u64(id->uid);
    uint32_t mask = nodes->index_places - 1;
    uint32_t place = (uint32_t)hash & mask;

    while (nodes->index[place] != 0 &&
           !trpi_node_id_equal(&node_get(nodes, nodes->index[place])->id, id)) {
        place = (place + 1) & mask;
    }
    return &nodes->index[place];
}

static trp_err
index_grow(struct trpi_nodes *nodes)
{
    uint32_t places = nodes->index_places == 0 ? 64 : nodes->index_places * 2;
    uint32_t *bigger;

    if (nodes->index_places != 0 && nodes->count * 2 < nodes->index_places) {
        return TRP_OK;
    }
    bigger = trpi_alloc(places * sizeof *bigger);
    if (bigger == NULL) {
        return TRP_ENOMEM;
    }
    trpi_free(nodes->index);
    nodes->index = bigger;
    nodes->index_places = places;
    for (uint32_t number = TRPI_NODE_SELF + 1; number < nodes->count; number++) {
        *index_place(nodes, &node_get(nodes, number)->id) = number;
    }
    return TRP_OK;
}

/* ---- birth, end ------------------------------------------------------------------------------ */

trp_err
trpi_nodes_new(trp_system *system, struct trpi_nodes **ret_nodes)
{
    struct trpi_nodes *nodes = trpi_alloc(sizeof *nodes);
    trpi_node_id id;
    node *self;

    if (nodes == NULL) {
        return TRP_ENOMEM;
    }
    memset(&id, 0, sizeof id);
    memcpy(id.address.protocol, "troupe", sizeof "troupe");
    _Static_assert(sizeof system->name == sizeof id.address.system,
                   "a system's name fits an address");
    memcpy(id.address.system, system->name, sizeof system->name);
    do {
        id.uid = trpi_world_random(system->world);
    } while (id.uid == 0); /* 0 means whoever lives at the address */
    (void)pthread_mutex_init(&nodes->lock, NULL);
    (void)pthread_mutex_init(&nodes->wait_lock, NULL);
    nodes->count = TRPI_NODE_SELF + 1;
    self = node_new(system, &id);
    if (self == NULL || node_put(nodes, TRPI_NODE_SELF, self) != TRP_OK ||
        index_grow(nodes) != TRP_OK) {
        if (node_get(nodes, TRPI_NODE_SELF) == NULL) {
            trpi_free(self);
        }
        trpi_nodes_free(nodes);
        return TRP_ENOMEM;
    }
    *ret_nodes = nodes;
    return TRP_OK;
}

void
trpi_nodes_free(struct trpi_nodes *nodes)
{
    if (nodes == NULL) {
        return;
    }
    for (uint32_t number = 0; number < nodes->count; number++) {
        node *entry = node_get(nodes, number);

        while (entry != NULL) {
            node *replaced = entry->replaced;

            if (entry->ops != NULL && entry->ops->release != NULL) {
                entry->ops->release(entry->arg);
            }
            trpi_ref_map_fini(&entry->waiting);
            trpi_free(entry);
            entry = replaced;
        }
    }
    for (uint32_t i = 0; i < CHUNKS; i++) {
        trpi_free((void *)atomic_load_explicit(&nodes->chunks[i], ACQUIRE));
    }
    trpi_mutex_destroy(&nodes->lock);
    trpi_mutex_destroy(&nodes->wait_lock);
    trpi_free(nodes->index);
    trpi_free(nodes);
}

/* ---- identities ------------------------------------------------------------------------------ */

const trpi_node_id *
trpi_system_self(trp_system *system)
{
    return &node_get(system->nodes, TRPI_NODE_SELF)->id;
}

const trpi_node_id *
trpi_node_id_get(trp_system *system, uint32_t number)
{
    node *entry = node_get(system->nodes, number);

    return entry != NULL ? &entry->id : NULL;
}

void
trpi_system_advertise(trp_system *system, const trpi_address *address)
{
    struct trpi_nodes *nodes = system->nodes;
    node *before = node_get(nodes, TRPI_NODE_SELF);
    node *entry;
    trpi_node_id id;

    (void)pthread_mutex_lock(&nodes->lock);
    id.address = *address;
    id.uid = before->id.uid;
    entry = node_new(system, &id);
    if (entry != NULL) {
        entry->replaced = before;
        (void)node_put(nodes, TRPI_NODE_SELF, entry); /* its chunk exists: cannot fail */
    } else {
        before->id.address =
            *address; /* no memory: in place; others hardly look before we are advertised */
    }
    (void)pthread_mutex_unlock(&nodes->lock);
}

static bool
is_self(trp_system *system, const trpi_node_id *id)
{
    const trpi_node_id *self = trpi_system_self(system);

    /* A uid is one system's, whatever it was called when somebody wrote it down. */
    return id->uid == self->uid ||
           (id->uid == 0 && trpi_address_equal(&self->address, &id->address));
}

/* Under the lock. */
static trp_err
intern_new(trp_system *system, const trpi_node_id *id, uint32_t *ret_node)
{
    struct trpi_nodes *nodes = system->nodes;
    uint32_t number = nodes->count;
    node *entry;

    if (number > TRPI_NODES_LIMIT) {
        return TRP_ELIMIT;
    }
    entry = node_new(system, id);
    if (entry == NULL || index_grow(nodes) != TRP_OK || node_put(nodes, number, entry) != TRP_OK) {
        trpi_free(entry);
        return TRP_ENOMEM;
    }
    nodes->count = number + 1;
    *index_place(nodes, id) = number;
    *ret_node = number;
    return TRP_OK;
}

trp_err
trpi_node_intern(trp_system *system, const trpi_node_id *id, uint32_t *ret_node)
{
    struct trpi_nodes *nodes = system->nodes;
    trp_err err = TRP_OK;
    uint32_t number;

    if (is_self(system, id)) {
        *ret_node = TRPI_NODE_SELF;
        return TRP_OK;
    }
    (void)pthread_mutex_lock(&nodes->lock);
    number = *index_place(nodes, id);
    if (number != 0) {
        *ret_node = number;
    } else {
        err = intern_new(system, id, ret_node);
    }
    (void)pthread_mutex_unlock(&nodes->lock);
    return err;
}

uint32_t
trpi_node_find(trp_system *system, const trpi_node_id *id)
{
    struct trpi_nodes *nodes = system->nodes;
    uint32_t number = TRPI_NODE_SELF;

    if (!is_self(system, id)) {
        (void)pthread_mutex_lock(&nodes->lock);
        number = *index_place(nodes, id);
        (void)pthread_mutex_unlock(&nodes->lock);
    }
    return number;
}

/* ---- proxies --------------------------------------------------------------------------------- */

static void
proxy_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    node *entry = cell->state;

    entry->ops->deliver(entry->arg, ctx->system, msg);
}

static bool
proxy_turn_end(trp_ctx *ctx, trpi_cell *cell)
{
    node *entry = cell->state;

    return entry->ops->flush != NULL &&
           entry->ops->flush(entry->arg, ctx->system, trpi_mailbox_has_more(cell));
}

/* ---- a full lane: who was refused, and is told when there is room ---------------------------- */

/* Who waits (always local) and whom it had told (of this entry's node) in one. */
static trp_ref
waiting_key(trp_ref actor, trp_ref told)
{
    return (trp_ref){ told.slot, actor.slot, actor.generation, 0 };
}

static void
waiting_add(trp_ctx *ctx, node *entry, trp_ref told)
{
    struct trpi_nodes *nodes = ctx->system->nodes;

    (void)pthread_mutex_lock(&nodes->wait_lock);
    /* no memory: it asks again */
    (void)trpi_ref_map_put(&entry->waiting, waiting_key(ctx->self, told),
                           (void *)(uintptr_t)told.generation);
    atomic_store_explicit(&entry->waiting_any, true, memory_order_seq_cst); /* N3 */
    (void)pthread_mutex_unlock(&nodes->wait_lock);
}

static void
waiting_tell(trp_system *system, node *entry, uint32_t number)
{
    trpi_ref_map waiting;
    uint32_t position = 0;
    trpi_ref_pair *pair;
    trp_ctx *ctx;

    if (!atomic_load_explicit(&entry->waiting_any, memory_order_seq_cst)) { /* N3 */
        return;
    }
    (void)pthread_mutex_lock(&system->nodes->wait_lock);
    waiting = entry->waiting;
    entry->waiting = (trpi_ref_map){ 0 };
    atomic_store_explicit(&entry->waiting_any, false, memory_order_seq_cst);
    (void)pthread_mutex_unlock(&system->nodes->wait_lock);
    ctx = trpi_enter(system);
    while ((pair = trpi_ref_map_next(&waiting, &position)) != NULL) {
        trp_ref actor = trpi_ref_local(pair->ref.slot, pair->ref.generation);
        trp_mailbox_ready what = {
            { number, pair->ref.node, (uint32_t)(uintptr_t)pair->value, 0 }
        };

        trpi_tell(ctx, actor, what.ref, &trp_mailbox_ready_type, &what, sizeof what);
    }
    trpi_leave(ctx);
    trpi_ref_map_fini(&waiting);
}

trp_err
trpi_proxy_admit(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, size_t bytes, bool *ret_promised)
{
    node *entry = proxy->state; /* set before the proxy was known, and never changed */

    *ret_promised = entry->ops->admit != NULL;
    if (entry->ops->admit == NULL || entry->ops->admit(entry->arg, to.slot, bytes)) {
        return TRP_OK;
    }
    if (ctx->cell != NULL) {
        waiting_add(ctx, entry, to);
        entry->ops->refused(entry->arg, to.slot, bytes);
        if (atomic_load_explicit(&entry->ended, memory_order_seq_cst) != 0) {
            waiting_tell(ctx->system, entry, to.node);
        }
    }
    return TRP_EAGAIN;
}

void
trpi_proxy_forgo(trpi_cell *proxy, size_t bytes)
{
    node *entry = proxy->state;

    entry->ops->forgo(entry->arg, bytes);
}

static const trpi_kind_ops proxy_kind = { "association", proxy_deliver, NULL, proxy_turn_end,
                                           NULL };

trp_err
trpi_proxy_attach(trp_system *system, uint32_t number, const trpi_proxy_ops *ops, void *arg)
{
    node *entry = node_get(system->nodes, number);
    trpi_cell *cell;
    trp_ctx *ctx;
    trp_err err;

    trpi_assert(entry != NULL && number != TRPI_NODE_SELF);
    trpi_assert(ops != NULL && ops->deliver != NULL);
    ctx = trpi_enter(system);
    (void)pthread_mutex_lock(&system->nodes->lock);
    err = atomic_load_explicit(&entry->proxy, ACQUIRE) != NULL ? TRP_EEXIST
                                                               : trpi_slot_acquire(ctx, &cell);
    if (err == TRP_OK) {
        entry->ops = ops;
        entry->arg = arg;
        trpi_cell_ops_set(cell, &proxy_kind);
        cell->state = entry;
        trpi_slot_publish_idle(ctx, cell, TRPI_KIND_ASSOCIATION);
        atomic_store_explicit(&entry->proxy, cell, RELEASE); /* pairs with trpi_nodes_proxy() */
    }
    (void)pthread_mutex_unlock(&system->nodes->lock);
    trpi_leave(ctx);
    return err;
}

void
trpi_proxy_ready(trp_system *system, uint32_t number)
{
    node *entry = node_get(system->nodes, number);
    trpi_cell *cell = entry != NULL ? atomic_load_explicit(&entry->proxy, ACQUIRE) : NULL;

    if (cell != NULL) {
        /* relaxed: a hint to senders. A turn that ends at this moment may set it once more;
         * deferred senders are back after 1 ms, and their message makes a turn that looks again. */
        atomic_store_explicit(&cell->overloaded, 0, memory_order_relaxed);
        waiting_tell(system, entry, number);
    }
}

bool
trpi_proxy_is_idle(trp_system *system, uint32_t number)
{
    node *entry = node_get(system->nodes, number);
    trpi_cell *cell = entry != NULL ? atomic_load_explicit(&entry->proxy, ACQUIRE) : NULL;

    /* the token: nobody runs it, it is in no queue and not held; acquire: its last flush is seen */
    return cell == NULL || (atomic_load_explicit(&cell->head, ACQUIRE) & TRPI_TOKEN) != 0;
}

trpi_cell *
trpi_nodes_proxy(trp_system *system, uint32_t number, trp_dead_reason *ret_reason)
{
    node *entry = node_get(system->nodes, number);
    const trpi_remote_ops *ops;
    trpi_cell *proxy;
    uint32_t ended;

    if (entry == NULL) {
        *ret_reason = TRP_DEAD_NO_SUCH_ACTOR;
        return NULL;
    }
    ended = atomic_load_explicit(&entry->ended, memory_order_relaxed);
    if (ended != 0) {
        *ret_reason = (trp_dead_reason)ended;
        return NULL;
    }
    proxy = atomic_load_explicit(&entry->proxy, ACQUIRE);
    if (proxy != NULL) {
        return proxy;
    }
    *ret_reason = TRP_DEAD_NOT_CONNECTED;
    ops = atomic_load_explicit(&system->remote_ops, ACQUIRE);
    if (ops == NULL || ops->connect == NULL ||
        ops->connect(atomic_load_explicit(&system->remote_arg, ACQUIRE), system, number) !=
            TRP_OK) {
        proxy =
            atomic_load_explicit(&entry->proxy, ACQUIRE); /* another thread may have been first */
        return proxy;
    }
    return atomic_load_explicit(&entry->proxy, ACQUIRE);
}

void
trpi_nodes_end(trp_system *system, uint32_t number, trp_dead_reason reason)
{
    node *entry = node_get(system->nodes, number);

    if (entry != NULL && number != TRPI_NODE_SELF) {
        atomic_store_explicit(&entry->ended, (uint32_t)reason, memory_order_seq_cst); /* N3 */
        waiting_tell(system, entry, number); /* there will be no room, and no reason to wait */
    }
}
