/* nodes.c - the node table: proxies of other nodes, and the end of a node.
 *
 * Why.     A reference names its node by a small number, so that it fits 16 bytes and is compared
 *          as a value; the number is looked up here, without a lock, when a message leaves the
 *          node. node_numbers.c assigns numbers to identities.
 * States.  known -> [proxy attached] -> ended -> proxy freed -> number freed
 * Must hold.
 *   nodes-N2  A node has at most one proxy. It is freed when the node has ended, no thread can be
 *       about to tell it (a grace period), and it has delivered all its messages.
 *   nodes-N3  A refused sender sets waiting_any, then lets the lane check for room once more; a
 *       lane that drains reads waiting_any after it has made room; so does the end of a node. One
 *       of the two sees the other.
 *   node-numbers-N1, node-numbers-N4, node-numbers-N5: node_numbers.c.
 * Tests.   tests/unit/actor/system_test.c, tests/sim/strangers_test.c
 */
#include "actor/nodes/nodes_inner.h"

#include <string.h>

#include <troupe/mailbox.h>

#include "actor/kernel/mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

/* ---- start, end ------------------------------------------------------------------------------ */

trp_err
trpi_nodes_new(trp_system *system, struct trpi_nodes **ret_nodes)
{
    struct trpi_nodes *nodes = trpi_alloc(sizeof *nodes);
    trpi_node_id id;
    trpi_node *self;

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
    } while (id.uid == 0); /* 0 stands for any incarnation */
    pthread_mutex_init(&nodes->lock, NULL);
    pthread_mutex_init(&nodes->wait_lock, NULL);
    nodes->used = TRPI_NODE_SELF + 1;
    self = trpi_node_new(system, &id);
    if (self == NULL || trpi_node_put(nodes, TRPI_NODE_SELF, self) != TRP_OK) {
        trpi_free(self);
        trpi_nodes_free(nodes);
        return TRP_ENOMEM;
    }
    *ret_nodes = nodes;
    return TRP_OK;
}

void
trpi_nodes_close(struct trpi_nodes *nodes)
{
    if (nodes != NULL) {
        nodes->closing = true;
    }
}

static void
entries_free(trpi_node *entry)
{
    while (entry != NULL) {
        trpi_node *replaced = entry->replaced;

        if (entry->ops != NULL && entry->ops->release != NULL) {
            entry->ops->release(entry->arg);
        }
        trpi_ref_map_fini(&entry->waiting);
        trpi_free(entry);
        entry = replaced;
    }
}

void
trpi_nodes_free(struct trpi_nodes *nodes)
{
    if (nodes == NULL) {
        return;
    }
    for (uint32_t i = 0; i < TRPI_NODE_CHUNKS; i++) {
        trpi_node_chunk *chunk = atomic_load_explicit(&nodes->chunks[i], ACQUIRE);

        for (uint32_t k = 0; chunk != NULL && k < TRPI_NODE_CHUNK; k++) {
            entries_free(atomic_load_explicit(&chunk->entries[k], ACQUIRE));
        }
        trpi_free(chunk);
    }
    trpi_mutex_destroy(&nodes->lock);
    trpi_mutex_destroy(&nodes->wait_lock);
    trpi_table_fini(&nodes->index);
    trpi_free(nodes->shares);
    trpi_free(nodes);
}

/* ---- identities ------------------------------------------------------------------------------ */

const trpi_node_id *
trpi_system_self(trp_system *system)
{
    return &trpi_node_at(system->nodes, TRPI_NODE_SELF)->id;
}

const trpi_node_id *
trpi_node_id_get(trp_system *system, uint32_t number)
{
    trpi_node *entry = trpi_node_at(system->nodes, number);

    return entry != NULL ? &entry->id : NULL;
}

void
trpi_system_advertise(trp_system *system, const trpi_address *address)
{
    struct trpi_nodes *nodes = system->nodes;
    trpi_node *before = trpi_node_at(nodes, TRPI_NODE_SELF);
    trpi_node *entry;
    trpi_node_id id;

    pthread_mutex_lock(&nodes->lock);
    id.address = *address;
    id.uid = before->id.uid;
    entry = trpi_node_new(system, &id);
    if (entry != NULL) {
        entry->replaced = before;
        (void)trpi_node_put(nodes, TRPI_NODE_SELF, entry); /* its chunk exists: cannot fail */
    } else {
        before->id.address =
            *address; /* no memory: written in place; hardly any thread reads it yet */
    }
    pthread_mutex_unlock(&nodes->lock);
}

/* ---- proxies --------------------------------------------------------------------------------- */

static void
proxy_deliver(trp_ctx *ctx, trpi_cell *cell, trp_msg *msg)
{
    trpi_node *entry = cell->state;

    entry->ops->deliver(entry->arg, ctx->system, msg);
}

static bool
proxy_turn_end(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_node *entry = cell->state;

    return entry->ops->flush != NULL &&
           entry->ops->flush(entry->arg, ctx->system, trpi_mailbox_has_more(cell));
}

/* ---- a full lane: refused senders, which are notified when there is room --------------------- */

/* Return a key of the waiting sender (always local) and its receiver (of this node). */
static trp_ref
waiting_key(trp_ref actor, trp_ref told)
{
    return (trp_ref){ told.slot, actor.slot, actor.generation, 0 };
}

static void
waiting_add(trp_ctx *ctx, trpi_node *entry, trp_ref told)
{
    struct trpi_nodes *nodes = ctx->system->nodes;

    pthread_mutex_lock(&nodes->wait_lock);
    /* without memory it is not notified, and tries again by itself */
    (void)trpi_ref_map_put(&entry->waiting, waiting_key(ctx->self, told),
                           (void *)(uintptr_t)told.generation);
    atomic_store_explicit(&entry->waiting_any, true, memory_order_seq_cst); /* nodes-N3 */
    pthread_mutex_unlock(&nodes->wait_lock);
}

static void
waiting_tell(trp_system *system, trpi_node *entry, uint32_t number)
{
    trpi_ref_map waiting;
    uint32_t position = 0;
    trpi_ref_pair *pair;
    trp_ctx *ctx;

    if (!atomic_load_explicit(&entry->waiting_any, memory_order_seq_cst)) { /* nodes-N3 */
        return;
    }
    pthread_mutex_lock(&system->nodes->wait_lock);
    waiting = entry->waiting;
    entry->waiting = (trpi_ref_map){ 0 };
    atomic_store_explicit(&entry->waiting_any, false, memory_order_seq_cst);
    pthread_mutex_unlock(&system->nodes->wait_lock);
    ctx = trpi_enter(system);
    while ((pair = trpi_ref_map_next(&waiting, &position)) != NULL) {
        trp_ref actor = trpi_ref_local(pair->ref.slot, pair->ref.generation);
        trp_mailbox_ready what = { { number, pair->ref.node, (uint32_t)(uintptr_t)pair->value,
                                     0 } };

        trpi_tell(ctx, actor, what.ref, &trp_mailbox_ready_type, &what, sizeof what);
    }
    trpi_leave(ctx);
    trpi_ref_map_fini(&waiting);
}

trp_err
trpi_proxy_reserve(trp_ctx *ctx, trpi_cell *proxy, trp_ref to, size_t bytes, bool *ret_reserved)
{
    trpi_node *entry = proxy->state; /* set before publication, never changed */

    *ret_reserved = entry->ops->reserve != NULL;
    if (entry->ops->reserve == NULL || entry->ops->reserve(entry->arg, to.slot, bytes)) {
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
trpi_proxy_unreserve(trpi_cell *proxy, size_t bytes)
{
    trpi_node *entry = proxy->state;

    entry->ops->unreserve(entry->arg, bytes);
}

bool
trpi_proxy_again(trpi_cell *proxy, const trp_msg *msg, const void *payload, size_t bytes,
                 bool bounded)
{
    trpi_node *entry = proxy->state;

    return entry->ops->again != NULL && entry->ops->again(entry->arg, msg, payload, bytes, bounded);
}

size_t
trpi_proxy_gather(trpi_cell *proxy, size_t need)
{
    trpi_node *entry = proxy->state;

    return entry->ops->gather != NULL ? entry->ops->gather(entry->arg, need) : 0;
}

bool
trpi_proxy_gathered(trpi_cell *proxy, const trp_msg *msg, const trpi_gathered *gathered)
{
    trpi_node *entry = proxy->state;

    return entry->ops->gathered(entry->arg, msg, gathered);
}

bool
trpi_proxy_carry(trpi_cell *proxy, const trpi_carrier *what, trpi_buffer *out)
{
    trpi_node *entry = proxy->state;

    return entry->ops->carry != NULL && entry->ops->carry(entry->arg, what, out);
}

trp_err
trpi_proxy_restore(trpi_cell *proxy, const trp_type *type, const uint8_t *record, size_t bytes,
                   trpi_buffer *out)
{
    trpi_node *entry = proxy->state;

    return entry->ops->restore(entry->arg, type, record, bytes, out);
}

void
trpi_proxy_reserve_each(trpi_cell *proxy, size_t granted, uint32_t count, size_t bytes)
{
    trpi_node *entry = proxy->state;

    entry->ops->reserve_each(entry->arg, granted, count, bytes);
}

bool
trpi_proxy_admits(trpi_cell *proxy, trp_ref to, size_t bytes)
{
    trpi_node *entry = proxy->state;

    return entry->ops->reserve == NULL ||
           (entry->ops->admits != NULL && entry->ops->admits(entry->arg, to.slot, bytes));
}

bool
trpi_proxy_more(trp_ctx *ctx, trpi_cell *proxy)
{
    trpi_node *entry = proxy->state;

    return entry->ops->flush != NULL && entry->ops->flush(entry->arg, ctx->system, true);
}

enum { PROXY_WAKE = UINT16_MAX }; /* a system message that says nothing: the turn's end flushes */

void
trpi_proxy_wake(trp_ctx *ctx, trpi_cell *proxy)
{
    trpi_sys_tell(ctx, trpi_cell_slot(proxy),
                  atomic_load_explicit(&proxy->generation, memory_order_relaxed), PROXY_WAKE, 0,
                  (trp_ref)TRP_REF_NONE, 0, NULL);
}

static bool
proxy_system(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg)
{
    (void)ctx;
    (void)cell;
    return sysmsg->kind == PROXY_WAKE;
}

static const trpi_kind_ops proxy_kind = { "association", proxy_deliver, proxy_system,
                                          proxy_turn_end, NULL };

trp_err
trpi_proxy_attach(trp_system *system, uint32_t number, const trpi_proxy_ops *ops, void *arg)
{
    trpi_node *entry;
    trpi_cell *cell;
    trp_ctx *ctx;
    trp_err err;

    trpi_assert(number != TRPI_NODE_SELF);
    trpi_assert(ops != NULL && ops->deliver != NULL);
    ctx = trpi_enter(system);
    pthread_mutex_lock(&system->nodes->lock);
    entry = trpi_node_at(system->nodes, number);
    if (entry == NULL || atomic_load_explicit(&entry->ended, memory_order_relaxed) != 0) {
        err = TRP_ECLOSED; /* an attached proxy is freed by trpi_nodes_end() */
    } else {
        err = atomic_load_explicit(&entry->proxy, ACQUIRE) != NULL ? TRP_EEXIST
                                                                   : trpi_slot_acquire(ctx, &cell);
    }
    if (err == TRP_OK) {
        entry->ops = ops;
        entry->arg = arg;
        trpi_cell_ops_set(cell, &proxy_kind);
        cell->state = entry;
        trpi_slot_publish_idle(ctx, cell, TRPI_KIND_ASSOCIATION);
        atomic_store_explicit(&entry->proxy, cell, RELEASE); /* pairs with trpi_nodes_proxy() */
    }
    pthread_mutex_unlock(&system->nodes->lock);
    trpi_leave(ctx);
    return err;
}

void
trpi_proxy_ready(trp_system *system, uint32_t number)
{
    trp_ctx *ctx = trpi_enter(system);
    trpi_node *entry = trpi_node_at(system->nodes, number);
    trpi_cell *cell = entry != NULL ? atomic_load_explicit(&entry->proxy, ACQUIRE) : NULL;

    if (cell != NULL) {
        /* relaxed: a hint to senders. A turn that ends at this moment may set it once more;
         * deferred senders run again after 1 ms, and their message causes a turn that updates
         * it. */
        atomic_store_explicit(&cell->overloaded, 0, memory_order_relaxed);
        waiting_tell(system, entry, number);
    }
    trpi_leave(ctx);
}

/* Is the token free, so that the cell neither runs nor waits? acquire: its last flush is visible */
static bool
cell_is_idle(trpi_cell *cell)
{
    return (atomic_load_explicit(&cell->head, ACQUIRE) & TRPI_TOKEN) != 0;
}

void
trpi_proxy_slow(trp_system *system, uint32_t number, bool slow)
{
    trp_ctx *ctx = trpi_enter(system);
    trpi_node *entry = trpi_node_at(system->nodes, number);

    if (entry != NULL) {
        atomic_store_explicit(&entry->slow, slow, memory_order_relaxed);
    }
    trpi_leave(ctx);
}

bool
trpi_proxy_is_idle(trp_system *system, uint32_t number)
{
    trp_ctx *ctx = trpi_enter(system);
    trpi_node *entry = trpi_node_at(system->nodes, number);
    trpi_cell *cell = entry != NULL ? atomic_load_explicit(&entry->proxy, ACQUIRE) : NULL;
    bool idle = cell == NULL || cell_is_idle(cell);

    trpi_leave(ctx);
    return idle;
}

trpi_cell *
trpi_nodes_proxy(trp_system *system, uint32_t number, trp_dead_reason *ret_reason, bool *ret_slow)
{
    trpi_node *entry = trpi_node_at(system->nodes, number);
    const trpi_remote_ops *ops;
    trpi_cell *proxy;
    uint32_t ended;

    if (entry == NULL) { /* a node that ended long ago, or no node */
        *ret_reason = number > TRPI_NODE_SELF ? TRP_DEAD_STALE : TRP_DEAD_NO_SUCH_ACTOR;
        return NULL;
    }
    ended = atomic_load_explicit(&entry->ended, memory_order_relaxed);
    if (ended != 0) {
        *ret_reason = (trp_dead_reason)ended;
        return NULL;
    }
    proxy = atomic_load_explicit(&entry->proxy, ACQUIRE);
    if (proxy != NULL) {
        *ret_slow = atomic_load_explicit(&entry->slow, memory_order_relaxed);
        return proxy;
    }
    *ret_slow = false;
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

bool
trpi_nodes_slows(trp_system *system, trp_ref to)
{
    trpi_node *entry = trpi_node_at(system->nodes, to.node);

    return entry != NULL && entry->ops->slows != NULL && entry->ops->slows(entry->arg, to.slot);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Free the proxy's cell, which is idle. */
static void
cell_give_back(trp_system *system, trpi_cell *cell)
{
    trp_ctx *ctx = trpi_enter(system);

    cell->state = NULL;
    trpi_cell_ops_set(cell, NULL);
    atomic_store_explicit(&cell->overloaded, 0, memory_order_relaxed);
    trpi_slot_abandon(ctx, cell);
    trpi_leave(ctx);
}

/* Free the proxy of an ended node after a grace period: no thread can be about to tell it any more.
 * nodes-N2 */
static void
proxy_give_back(void *object)
{
    trpi_node *entry = object;
    trp_system *system = entry->system;
    trpi_cell *cell = atomic_load_explicit(&entry->proxy, ACQUIRE);
    const trpi_proxy_ops *ops = entry->ops;

    if (system->nodes->closing) {
        return; /* trpi_nodes_free() frees it */
    }
    if (cell != NULL && !trpi_mailbox_claim(cell)) {
        trpi_system_retire(system, proxy_give_back, entry); /* it still delivers messages */
        return;
    }
    if (cell != NULL) {
        atomic_store_explicit(&entry->proxy, NULL, RELEASE);
        entry->ops = NULL;
        cell_give_back(system, cell);
    }
    if (cell != NULL && ops->release != NULL) {
        ops->release(entry->arg);
    }
    trpi_node_number_retire(system, entry);
}

void
trpi_nodes_end(trp_system *system, uint32_t number, trp_dead_reason reason)
{
    struct trpi_nodes *nodes = system->nodes;
    trp_ctx *ctx = trpi_enter(system);
    trpi_node *entry = number == TRPI_NODE_SELF ? NULL : trpi_node_at(nodes, number);
    bool first = false;

    if (entry != NULL) {
        pthread_mutex_lock(&nodes->lock);
        first = !entry->over;
        entry->over = true;
        trpi_node_keep(nodes, entry);
        atomic_store_explicit(&entry->ended, (uint32_t)reason, memory_order_seq_cst); /* nodes-N3 */
        pthread_mutex_unlock(&nodes->lock);
        waiting_tell(system, entry, number); /* do not wait: there will be no room */
    }
    if (first) {
        trpi_system_retire(system, proxy_give_back, entry);
    }
    trpi_leave(ctx);
}
