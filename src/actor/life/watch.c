/* watch.c - death watch: a watcher is notified once when an actor has ended.
 *
 * Why.     An end is the one event of another actor that its watchers must not miss.
 * Shape.   The watcher allocates its Terminated message beforehand and sends it along with the
 *          watch; the watched actor keeps it and sends it at its end. So an end never fails for
 *          lack of memory. The message is appended to the watcher's user queue, behind earlier
 *          messages of the actor that has ended. It is delivered only while the watcher's record
 *          exists; unwatch removes the record. Watches of actors on other nodes are kept here, by
 *          node, because their node may be lost.
 * Must hold.
 *   watch-W1  One record, at most one Terminated delivered; the record ends with it. (watch,
 *       unwatch, admit)
 *   watch-W2  A prepared message has one owner: the system message, then the map of the watched
 *       actor or the table of remote watches, then the mailbox of the watcher.
 *   watch-W3  A watch by another node is removed with the watched actor, or with the node: a peer
 *       that comes and goes leaves nothing behind.
 * Cost.    A watch is one 64-byte block and two map entries.
 * Tests.   tests/unit/actor/watch_test.c
 * Sources. WATCH-1..7, docs/architecture.md#asks-and-watches.
 */
#include "actor/kernel/misuse.h"
#include "actor/life/life.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"

typedef struct remote_watch { /* one watcher of one remote actor */
    struct remote_watch *next;
    trp_ref watcher;
    trp_msg *prepared; /* owned */
} remote_watch;

typedef struct node_watches {
    struct node_watches *next;
    uint32_t node;
    trpi_ref_map watched; /* remote ref -> list of remote_watch */
    /* pair_key() of an actor of the node and the live local actor that it watches -> slot and
     * generation of the local one (watch-W3) */
    trpi_ref_map watchers;
} node_watches;

struct trpi_remote_watches {
    pthread_mutex_t lock; /* guards all; a leaf */
    node_watches *nodes;  /* a node without watches is taken out */
};

/* ---- messages -------------------------------------------------------------------------------- */

static trp_msg *
terminated_prepare(trp_ctx *ctx, trp_ref watcher, trp_ref ref)
{
    trp_terminated what = { ref, 1, 0, { 0 } };

    return trpi_msg_make(ctx->cache, watcher, ref, &trp_terminated_type, &what, sizeof what);
}

static trp_terminated *
terminated_of(trp_msg *msg)
{
    return (trp_terminated *)(uintptr_t)trp_msg_payload(msg); /* owned until it is sent */
}

static void inbound_forget(struct trpi_remote_watches *watches, trp_ref watcher, trp_ref target);

void
trpi_watch_answer(trp_ctx *ctx, trp_ref watcher, trp_msg *prepared, bool existence_confirmed)
{
    trpi_assert(prepared != NULL);
    terminated_of(prepared)->existence_confirmed = existence_confirmed ? 1 : 0;
    if (watcher.node == TRPI_NODE_SELF) {
        trpi_send(ctx, watcher, prepared);
    } else {
        trp_ref ref = terminated_of(prepared)->ref;

        trpi_msg_free(ctx->cache, prepared);
        inbound_forget(ctx->system->life->watches, watcher, ref);
        (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_TERMINATED, watcher, ref,
                                 /* TRP_ECLOSED: no remoting, so no watcher either */
                                 existence_confirmed ? 1 : 0);
    }
}

/* ---- remote watches -------------------------------------------------------------------------- */

trp_err
trpi_remote_watches_new(struct trpi_remote_watches **ret_watches)
{
    struct trpi_remote_watches *watches = trpi_alloc(sizeof *watches);

    if (watches == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&watches->lock, NULL);
    *ret_watches = watches;
    return TRP_OK;
}

static void
list_free(remote_watch *list)
{
    remote_watch *next;

    for (; list != NULL; list = next) {
        next = list->next;
        trpi_msg_drop(list->prepared);
        trpi_free(list);
    }
}

void
trpi_remote_watches_free(struct trpi_remote_watches *watches)
{
    node_watches *next;

    if (watches == NULL) {
        return;
    }
    for (node_watches *n = watches->nodes; n != NULL; n = next) {
        const trpi_ref_pair *pair;
        uint32_t position = 0;

        next = n->next;
        while ((pair = trpi_ref_map_next(&n->watched, &position)) != NULL) {
            list_free(pair->value);
        }
        trpi_ref_map_fini(&n->watched);
        trpi_ref_map_fini(&n->watchers);
        trpi_free(n);
    }
    trpi_mutex_destroy(&watches->lock);
    trpi_free(watches);
}

static node_watches **
node_find(struct trpi_remote_watches *watches, uint32_t node)
{
    node_watches **link = &watches->nodes;

    while (*link != NULL && (*link)->node != node) {
        link = &(*link)->next;
    }
    return link;
}

/* Find or make the entry of a node; NULL: out of memory. */
static node_watches *
node_get(struct trpi_remote_watches *watches, uint32_t node)
{
    node_watches **link = node_find(watches, node);

    if (*link == NULL) {
        *link = trpi_alloc(sizeof **link);
        if (*link != NULL) {
            (*link)->node = node;
        }
    }
    return *link;
}

/* Free the entry of a node if it is empty. */
static void
node_put(struct trpi_remote_watches *watches, node_watches *node)
{
    if (node->watched.count == 0 && node->watchers.count == 0) {
        *node_find(watches, node->node) = node->next;
        trpi_free(node);
    }
}

static trp_err
remote_add_locked(struct trpi_remote_watches *watches, remote_watch *record, trp_ref ref)
{
    node_watches *node = node_get(watches, ref.node);
    const trpi_ref_pair *pair;
    trp_err err;

    if (node == NULL) {
        return TRP_ENOMEM;
    }
    pair = trpi_ref_map_find(&node->watched, ref);
    record->next = pair == NULL ? NULL : pair->value;
    err = trpi_ref_map_put(&node->watched, ref, record);
    if (err != TRP_OK) {
        node_put(watches, node);
    }
    return err;
}

/* Remove and return the record of watcher; NULL: there is none. */
static remote_watch *
remote_remove(struct trpi_remote_watches *watches, trp_ref watcher, trp_ref ref)
{
    node_watches *node;
    trpi_ref_pair *pair;
    remote_watch *found = NULL;

    pthread_mutex_lock(&watches->lock);
    node = *node_find(watches, ref.node);
    pair = node == NULL ? NULL : trpi_ref_map_find(&node->watched, ref);
    if (pair != NULL) {
        remote_watch *list = pair->value;
        remote_watch **at = &list;

        while (*at != NULL && !trp_ref_equal((*at)->watcher, watcher)) {
            at = &(*at)->next;
        }
        found = *at;
        if (found != NULL) {
            *at = found->next;
        }
        pair->value = list;
        if (list == NULL) {
            (void)trpi_ref_map_remove(&node->watched, ref, NULL);
        }
        node_put(watches, node);
    }
    pthread_mutex_unlock(&watches->lock);
    return found;
}

/* The key of a pair in the map of one node, without the node's number. Two pairs with one key count
 * once. */
static trp_ref
pair_key(trp_ref watcher, trp_ref target)
{
    uint64_t hash = trpi_hash_u64((uint64_t)target.generation << 32 | target.slot);

    return (trp_ref){ (uint32_t)hash | 1u, watcher.slot, watcher.generation, 0 };
}

uint32_t
trpi_node_watches(trp_system *system, uint32_t node)
{
    struct trpi_remote_watches *watches = system->life->watches;
    const node_watches *entry;
    uint32_t count;

    pthread_mutex_lock(&watches->lock);
    entry = *node_find(watches, node);
    count = entry != NULL ? entry->watchers.count : 0;
    pthread_mutex_unlock(&watches->lock);
    return count;
}

void
trpi_remote_unwatch_inbound(trp_system *system, trp_ref watcher, trp_ref target)
{
    inbound_forget(system->life->watches, watcher, target);
}

/* watch-W3. Out of memory, it is not recorded, and the watch stays until the watched actor ends. */
void
trpi_remote_watch_inbound(trp_system *system, trp_ref watcher, trp_ref target)
{
    struct trpi_remote_watches *watches = system->life->watches;
    node_watches *node;

    pthread_mutex_lock(&watches->lock);
    node = node_get(watches, watcher.node);
    if (node != NULL && trpi_ref_map_put(&node->watchers, pair_key(watcher, target),
                                         (void *)(uintptr_t)((uint64_t)target.generation << 32 |
                                                             target.slot)) != TRP_OK) {
        node_put(watches, node);
    }
    pthread_mutex_unlock(&watches->lock);
}

static void
inbound_forget(struct trpi_remote_watches *watches, trp_ref watcher, trp_ref target)
{
    node_watches *node;

    pthread_mutex_lock(&watches->lock);
    node = *node_find(watches, watcher.node);
    if (node != NULL && trpi_ref_map_remove(&node->watchers, pair_key(watcher, target), NULL)) {
        node_put(watches, node);
    }
    pthread_mutex_unlock(&watches->lock);
}

static trp_err
remote_add(trp_ctx *ctx, trp_ref watcher, trp_ref ref, trp_msg *prepared)
{
    struct trpi_remote_watches *watches = ctx->system->life->watches;
    remote_watch *record = trpi_alloc(sizeof *record);
    trp_err err;

    if (record == NULL) {
        return TRP_ENOMEM;
    }
    record->watcher = watcher;
    record->prepared = prepared;
    pthread_mutex_lock(&watches->lock);
    err = remote_add_locked(watches, record, ref);
    pthread_mutex_unlock(&watches->lock);
    if (err != TRP_OK) {
        trpi_free(record);
        return err;
    }
    /* The node had ended before the record was added; an end after it sees the record. The node is
     * not asked: it may be alive under another number, and would answer for that. Without remoting
     * there is no such node. */
    if (trpi_node_has_ended(ctx->system, ref.node) ||
        !trpi_remote_signal(ctx->system, TRPI_SIGNAL_WATCH, ref, watcher, 0)) {
        record = remote_remove(watches, watcher, ref);
        if (record != NULL) {
            terminated_of(record->prepared)->address_terminated = 1;
            trpi_watch_answer(ctx, watcher, record->prepared, false);
            trpi_free(record);
        }
    }
    return TRP_OK;
}

void
trpi_remote_watch_terminated(trp_ctx *ctx, trp_ref watcher, trp_ref ref, bool existence_confirmed)
{
    remote_watch *record = remote_remove(ctx->system->life->watches, watcher, ref);

    if (record != NULL) {
        trpi_watch_answer(ctx, watcher, record->prepared, existence_confirmed);
        trpi_free(record);
    }
}

bool
trpi_node_is_watched(trp_system *system, uint32_t node)
{
    struct trpi_remote_watches *watches = system->life->watches;
    const node_watches *entry;
    bool watched;

    pthread_mutex_lock(&watches->lock);
    entry = *node_find(watches, node);
    watched = entry != NULL && entry->watched.count > 0;
    pthread_mutex_unlock(&watches->lock);
    return watched;
}

static void
list_notify(trp_ctx *ctx, remote_watch *told)
{
    remote_watch *next;

    for (; told != NULL; told = next) {
        next = told->next;
        terminated_of(told->prepared)->address_terminated = 1;
        trpi_watch_answer(ctx, told->watcher, told->prepared, true);
        trpi_free(told);
    }
}

/* Is the watcher a child proxy? A parent watches its remote child through one. */
static bool
is_of_child_proxy(const trp_system *system, const remote_watch *record)
{
    const trpi_cell *cell = trpi_cells_find(system->cells, record->watcher.slot);

    return cell != NULL &&
           atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_CHILD_PROXY;
}

/* Take the records out of the map, but leave those of child proxies if they are to stay. Caller
 * holds the lock. */
static remote_watch *
watched_take(const trp_system *system, trpi_ref_map *watched, bool proxies_stay)
{
    trpi_ref_map kept = { 0 };
    remote_watch *told = NULL;
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    while ((pair = trpi_ref_map_next(watched, &position)) != NULL) {
        remote_watch *staying = NULL, *next;

        for (remote_watch *record = pair->value; record != NULL; record = next) {
            remote_watch **list =
                proxies_stay && is_of_child_proxy(system, record) ? &staying : &told;

            next = record->next;
            record->next = *list;
            *list = record;
        }
        if (staying != NULL && trpi_ref_map_put(&kept, pair->ref, staying) != TRP_OK) {
            remote_watch *last = staying; /* out of memory: notify too early rather than never */

            while (last->next != NULL) {
                last = last->next;
            }
            last->next = told;
            told = staying;
        }
    }
    trpi_ref_map_fini(watched);
    *watched = kept;
    return told;
}

void
trpi_node_lost_notify(trp_system *system, uint32_t node, bool left)
{
    struct trpi_remote_watches *watches = system->life->watches;
    trp_ctx *ctx = trpi_enter(system);
    remote_watch *told = NULL;
    node_watches *entry;

    pthread_mutex_lock(&watches->lock);
    entry = *node_find(watches, node);
    if (entry != NULL) {
        told = watched_take(system, &entry->watched, left);
    }
    pthread_mutex_unlock(&watches->lock);
    list_notify(ctx, told);
    trpi_leave(ctx);
}

void
trpi_node_watchers_notify(trp_system *system, uint32_t node)
{
    struct trpi_remote_watches *watches = system->life->watches;
    trp_ctx *ctx = trpi_enter(system);
    node_watches **link, *gone;
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    pthread_mutex_lock(&watches->lock);
    link = node_find(watches, node);
    gone = *link;
    if (gone != NULL) {
        *link = gone->next;
    }
    pthread_mutex_unlock(&watches->lock);
    if (gone != NULL) {
        list_notify(ctx, watched_take(system, &gone->watched, false));
    }
    while (gone != NULL && (pair = trpi_ref_map_next(&gone->watchers, &position)) != NULL) {
        uint64_t packed = (uintptr_t)pair->value;
        trp_ref watched = trpi_ref_local((uint32_t)packed, (uint32_t)(packed >> 32));

        trpi_sys_to(ctx, watched, TRPI_SYS_UNWATCH_NODE, 0, watched, node, NULL); /* watch-W3 */
    }
    if (gone != NULL) {
        trpi_ref_map_fini(&gone->watchers);
        trpi_free(gone);
    }
    trpi_leave(ctx);
}

/* ---- the watcher's side ---------------------------------------------------------------------- */

trp_err
trpi_watch_send(trp_ctx *ctx, trp_ref watcher, trp_ref ref)
{
    trp_msg *prepared = terminated_prepare(ctx, watcher, ref);
    trp_err err = TRP_OK;

    if (prepared == NULL) {
        return TRP_ENOMEM;
    }
    if (ref.node == TRPI_NODE_SELF) {
        trpi_sys_to(ctx, ref, TRPI_SYS_WATCH, 0, watcher, 0, prepared);
    } else {
        err = remote_add(ctx, watcher, ref, prepared);
        if (err != TRP_OK) {
            trpi_msg_free(ctx->cache, prepared);
        }
    }
    return err;
}

void
trpi_unwatch_send(trp_ctx *ctx, trp_ref watcher, trp_ref ref)
{
    if (ref.node == TRPI_NODE_SELF) {
        trpi_sys_to(ctx, ref, TRPI_SYS_UNWATCH, 0, watcher, 0, NULL);
    } else {
        remote_watch *record = remote_remove(ctx->system->life->watches, watcher, ref);

        if (record != NULL) {
            (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_UNWATCH, ref, watcher,
                                     0); /* best effort */
            trpi_msg_drop(record->prepared);
            trpi_free(record);
        }
    }
}

trp_err
trp_watch(trp_ctx *ctx, trp_ref ref)
{
    trpi_extra *extra;
    trp_err err;

    TRPI_USE(ctx);
    if (trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    extra = trpi_extra_get(ctx->cell);
    if (extra == NULL) {
        return TRP_ENOMEM;
    }
    if (trp_ref_equal(ref, ctx->self) || trpi_ref_map_find(&extra->watching, ref) != NULL) {
        return TRP_OK; /* nobody sees its own end; twice is once (WATCH-3) */
    }
    err = trpi_ref_map_put(&extra->watching, ref, NULL);
    if (err == TRP_OK) {
        err = trpi_watch_send(ctx, ctx->self, ref);
        if (err != TRP_OK) {
            (void)trpi_ref_map_remove(&extra->watching, ref, NULL);
        } else {
            trpi_life_trace(ctx, ctx->cell, "watches", ref);
        }
    }
    return err;
}

void
trp_unwatch(trp_ctx *ctx, trp_ref ref)
{
    trpi_extra *extra;

    TRPI_USE(ctx);
    extra = ctx->cell->extra;
    if (extra != NULL &&
        trpi_ref_map_remove(&extra->watching, ref, NULL)) { /* watch-W1: also when queued */
        trpi_life_trace(ctx, ctx->cell, "unwatches", ref);
        trpi_unwatch_send(ctx, ctx->self, ref);
    }
}

bool
trpi_watch_admit(trpi_cell *cell, const trp_msg *msg)
{
    const trp_terminated *what = trp_msg_payload(msg);

    return trp_msg_bytes(msg) == sizeof *what && cell->extra != NULL &&
           trpi_ref_map_remove(&cell->extra->watching, what->ref, NULL);
}

void
trpi_watch_end_all(trp_ctx *ctx, trpi_cell *cell)
{
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    if (cell->extra == NULL) {
        return;
    }
    while ((pair = trpi_ref_map_next(&cell->extra->watching, &position)) != NULL) {
        trpi_unwatch_send(ctx, trpi_cell_ref(cell), pair->ref);
    }
    trpi_ref_map_fini(&cell->extra->watching);
}

/* ---- the watched's side ---------------------------------------------------------------------- */

void
trpi_watch_add(trp_ctx *ctx, trpi_cell *cell, trp_ref watcher, trp_msg *prepared)
{
    trpi_extra *extra = trpi_extra_get(cell);
    trpi_ref_pair *pair = extra == NULL ? NULL : trpi_ref_map_find(&extra->watchers, watcher);

    if (pair != NULL) { /* watch, unwatch, watch again on two ways: the newest counts */
        trpi_msg_drop(pair->value);
        pair->value = prepared;
    } else if (extra == NULL || trpi_ref_map_put(&extra->watchers, watcher, prepared) != TRP_OK) {
        /* Out of memory to record the watcher: notify it early rather than never. */
        trpi_log(ctx->system, TRP_LOG_ERROR, "watch",
                 "out of memory: a watcher is notified of the end of a live actor");
        trpi_watch_answer(ctx, watcher, prepared, false);
    }
}

void
trpi_watcher_remove(trp_ctx *ctx, trpi_cell *cell, trp_ref watcher)
{
    void *prepared;

    if (cell->extra != NULL && trpi_ref_map_remove(&cell->extra->watchers, watcher, &prepared)) {
        trpi_msg_free(ctx->cache, prepared);
    }
}

void
trpi_watch_remove_node(trp_ctx *ctx, trpi_cell *cell, uint32_t node)
{
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    while (cell->extra != NULL &&
           (pair = trpi_ref_map_next(&cell->extra->watchers, &position)) != NULL) {
        if (pair->ref.node == node) {
            position--; /* removing may move another pair to this place */
            trpi_watcher_remove(ctx, cell, pair->ref);
        }
    }
}

void
trpi_watchers_notify(trp_ctx *ctx, trpi_ref_map *watchers)
{
    const trpi_ref_pair *pair;
    uint32_t position = 0;

    while ((pair = trpi_ref_map_next(watchers, &position)) != NULL) {
        trpi_watch_answer(ctx, pair->ref, pair->value, true);
    }
    trpi_ref_map_fini(watchers);
}
