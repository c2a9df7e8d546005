/* tree.c - list the tree of actors, and find those that do not answer.
 *
 * Why.     Only a parent's runner may read its child list, so the tree is asked, actor by actor,
 *          by system messages.
 * Shape.   An inspection is a growing list of entries. Each actor fills in its own entry, adds one
 *          for each child and asks the children. The caller waits until no question is open.
 * Must hold.
 *   tree-N1  open = number of INSPECT messages that are not answered; each holds one count of the
 *       inspection.
 *   tree-N2  The children of an entry stand together, behind it.
 *   tree-N3  Children are asked under the lock, so that their answers wait for tree-N2; children
 *       that run on this thread run after it.
 * Limits.  Depth as asked; entries as memory allows (TRP_ENOMEM).
 * Tests.   tests/unit/actor/tree_test.c, guardian_test.c
 */
#include "actor/kernel/dispatcher.h"
#include "actor/life/ended.h"
#include "actor/life/life.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

static const trp_ref nobody = TRP_REF_NONE;

typedef struct inspected {
    trp_ref ref;
    uint32_t depth;
    uint32_t first_child, children; /* places; tree-N2 */
    uint32_t children_all;          /* also those below depth_max */
    uint32_t restarts;
    uint32_t thread, pending;
    bool active, suspended;
    uint64_t processed;
    const char *behaviour;
    char *path; /* owned; NULL: not answered yet, or ended */
    bool gone;
} inspected;

typedef struct trpi_inspection {
    trpi_cond cond; /* guards all */
    uint32_t refs;
    uint32_t open;
    uint32_t depth_max;
    uint32_t count, room;
    inspected *entries;
    bool no_memory;
} trpi_inspection;

static trpi_inspection *
inspection_new(uint32_t depth_max)
{
    trpi_inspection *in = trpi_alloc(sizeof *in);

    if (in == NULL) {
        return NULL;
    }
    trpi_cond_init(&in->cond);
    in->refs = 1;
    in->depth_max = depth_max;
    return in;
}

/* Unlocks. */
static void
inspection_unref_locked(trpi_inspection *in)
{
    bool last = --in->refs == 0;

    pthread_mutex_unlock(&in->cond.lock);
    if (last) {
        for (uint32_t i = 0; i < in->count; i++) {
            trpi_free(in->entries[i].path);
        }
        trpi_free(in->entries);
        trpi_cond_fini(&in->cond);
        trpi_free(in);
    }
}

/* Add an entry for ref, and an open question; false: out of memory. */
static bool
entry_add(trpi_inspection *in, trp_ref ref, uint32_t depth)
{
    if (trpi_array_reserve(&in->entries, in->count, &in->room, sizeof *in->entries, 1,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        in->no_memory = true;
        return false;
    }
    memset(&in->entries[in->count], 0, sizeof in->entries[0]);
    in->entries[in->count].ref = ref;
    in->entries[in->count].depth = depth;
    in->count++;
    in->refs++; /* tree-N1 */
    in->open++;
    return true;
}

/* One question is answered. Unlocks. */
static void
answered_locked(trpi_inspection *in)
{
    trpi_assert(in->open > 0);
    in->open--;
    if (in->open == 0) {
        trpi_cond_broadcast(&in->cond);
    }
    inspection_unref_locked(in);
}

static void
ask_children(trp_ctx *ctx, trpi_inspection *in, const trpi_cell *cell, uint32_t place)
{
    uint32_t depth = in->entries[place].depth + 1;
    uint32_t first = in->count;

    for (const trpi_cell *c = trpi_child_first(ctx, cell); c != NULL;
         c = trpi_child_after(ctx, c)) {
        if (trpi_child_lives(c) && entry_add(in, trpi_cell_ref(c), depth)) {
            trpi_sys_to(ctx, trpi_cell_ref(c), TRPI_SYS_INSPECT, 0, nobody, in->count - 1, in);
        }
    }
    in->entries[place].first_child = first;
    in->entries[place].children = in->count - first;
}

void
trpi_inspect_answer(trp_ctx *ctx, trpi_cell *cell, void *inspection, uint64_t place)
{
    trpi_inspection *in = inspection;
    char path[TRP_PATH_BYTES_MAX + 1];
    uint32_t children = 0, pending;

    trpi_path_local(ctx->system, trpi_cell_ref(cell), path, sizeof path);
    for (const trpi_cell *c = trpi_child_first(ctx, cell); c != NULL;
         c = trpi_child_after(ctx, c)) {
        children++;
    }
    pending = trpi_pending_count(cell);
    trpi_nested_hold(ctx); /* tree-N3 */
    pthread_mutex_lock(&in->cond.lock);
    trpi_assert(place < in->count);
    if (in->entries[place].depth < in->depth_max) {
        ask_children(ctx, in, cell, (uint32_t)place);
    } else {
        in->entries[place].children = 0;
    }
    in->entries[place].children_all = children;
    in->entries[place].behaviour = cell->behaviour->name;
    in->entries[place].processed = cell->processed;
    in->entries[place].thread = atomic_load_explicit(&cell->task.home, memory_order_relaxed);
    in->entries[place].pending = pending;
    in->entries[place].active = cell->extra == NULL || !cell->extra->inactive;
    in->entries[place].suspended = cell->suspended != 0;
    in->entries[place].restarts = cell->extra == NULL ? 0 : cell->extra->restarted;
    in->entries[place].path = trpi_strdup(path);
    in->no_memory |= in->entries[place].path == NULL;
    answered_locked(in);
    trpi_nested_release(ctx);
}

void
trpi_inspect_gone(trp_ctx *ctx, void *inspection, uint64_t place)
{
    trpi_inspection *in = inspection;

    (void)ctx;
    pthread_mutex_lock(&in->cond.lock);
    in->entries[place].gone = true;
    answered_locked(in);
}

static bool
inspection_is_done(void *arg)
{
    const trpi_inspection *in = arg;

    return in->open == 0;
}

/* Ask from ref downwards and wait. The caller locks, reads and unrefs. */
static trp_err
tree_inspect(trp_system *system, trp_ref from, uint32_t depth_max, uint32_t timeout_ms,
             trpi_inspection **ret_inspection)
{
    trpi_inspection *in = inspection_new(depth_max);
    uint64_t deadline_ns = trpi_world_mono_ns(system->world) + (uint64_t)timeout_ms * 1000000u;
    trp_ctx *ctx;
    trp_err err;

    if (in == NULL || !entry_add(in, from, 0)) {
        trpi_free(in);
        return TRP_ENOMEM;
    }
    ctx = trpi_enter(system);
    trpi_sys_to(ctx, from, TRPI_SYS_INSPECT, 0, nobody, 0, in);
    trpi_leave(ctx);
    pthread_mutex_lock(&in->cond.lock);
    (void)trpi_cond_wait(&in->cond, system->sched, inspection_is_done, in, deadline_ns);
    err = in->open > 0 ? TRP_ETIMEDOUT : in->no_memory ? TRP_ENOMEM : TRP_OK;
    if (err == TRP_ENOMEM) {
        inspection_unref_locked(in);
        return err;
    }
    pthread_mutex_unlock(&in->cond.lock);
    *ret_inspection = in;
    return err;
}

/* Visit the entries in the order of the tree: an entry, then those below it, oldest child first. */
static void
tree_visit(const trpi_inspection *in, trp_tree_fn fn, void *arg)
{
    struct {
        uint32_t first, left;
    } stack[TRP_PATH_DEPTH_MAX + 2] = { { 0, 1 } };
    uint32_t top = 1;

    while (top > 0) {
        const inspected *e;
        trp_tree_entry entry;

        if (stack[top - 1].left == 0) {
            top--;
            continue;
        }
        e = &in->entries[stack[top - 1].first + --stack[top - 1].left];
        if (e->path == NULL) {
            continue;
        }
        entry = (trp_tree_entry){ .ref = e->ref,
                                  .depth = e->depth,
                                  .restarts = e->restarts,
                                  .path = e->path,
                                  .behaviour = e->behaviour,
                                  .processed = e->processed,
                                  .children = e->children_all,
                                  .thread = e->thread,
                                  .pending = e->pending,
                                  .active = e->active,
                                  .suspended = e->suspended };
        if (fn(arg, &entry) != 0) {
            return;
        }
        trpi_assert(top < TRP_PATH_DEPTH_MAX + 2);
        stack[top].first = e->first_child;
        stack[top++].left = e->children;
    }
}

/* Find the live actor of a local path without wildcards. */
static trp_err
actor_find(trp_system *system, const char *path, trp_ref *ret_ref)
{
    trpi_selection_path parsed;
    trp_ref here = system->top.root;

    if (path == NULL || trpi_selection_parse(path, &parsed, NULL) != TRP_OK || !parsed.absolute) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < parsed.count; i++) {
        const trpi_element *e = &parsed.elements[i];

        if (e->kind != TRPI_ELEMENT_NAME) {
            return TRP_EINVAL;
        }
        here = trpi_path_child(system, here.slot, path + e->offset, e->bytes);
        if (trp_ref_is_none(here)) {
            return TRP_ENOENT;
        }
    }
    *ret_ref = here;
    return TRP_OK;
}

trp_err
trp_system_tree(trp_system *system, const char *path, uint32_t depth_max, uint32_t timeout_ms,
                trp_tree_fn fn, void *arg)
{
    trpi_inspection *in;
    trp_ref from;
    trp_err err;

    if (!trpi_system_is_valid(system) || fn == NULL) {
        return TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    err = actor_find(system, path, &from);
    if (err != TRP_OK) {
        return err;
    }
    if (trpi_system_has_ended(system)) {
        return TRP_ENOENT;
    }
    err = tree_inspect(system, from, depth_max, timeout_ms, &in);
    if (err == TRP_ENOMEM) {
        return err;
    }
    if (err == TRP_OK) {
        if (in->entries[0].gone) {
            err = TRP_ENOENT;
        } else {
            tree_visit(in, fn, arg); /* no question is open: the entries are final */
        }
    }
    pthread_mutex_lock(&in->cond.lock);
    inspection_unref_locked(in);
    return err;
}

trp_err
trpi_tree_unended_each(trp_system *system, uint32_t grace_ms,
                       void (*fn)(void *arg, trp_ref ref, bool silent), void *arg)
{
    trpi_inspection *in;
    trp_err err = tree_inspect(system, system->top.root, TRP_PATH_DEPTH_MAX, grace_ms, &in);

    if (err == TRP_ENOMEM) {
        return err;
    }
    pthread_mutex_lock(&in->cond.lock);
    for (uint32_t i = 0; i < in->count; i++) {
        trp_ref ref = in->entries[i].ref;
        bool silent = in->entries[i].path == NULL && !in->entries[i].gone;
        bool leaf = !silent && !in->entries[i].gone && in->entries[i].children_all == 0;

        if (silent || (err == TRP_OK && leaf)) {
            pthread_mutex_unlock(&in->cond.lock);
            fn(arg, ref, silent);
            pthread_mutex_lock(&in->cond.lock);
        }
    }
    inspection_unref_locked(in);
    return TRP_OK;
}
