/* children.c - the children of an actor: list, names, spawning from outside.
 *
 * Why.     A parent owns its children: only its runner touches their links, names and slots.
 *          Threads that are no actors ask the guardian by a system message.
 * Shape.   parent.first_child -> child.next_sibling -> ... ; prev_sibling leads back. The top bit
 *          of prev_sibling says that the child was told to stop; parent.flags counts those.
 * Must hold.
 *   children-I1  flags of a parent = number of its children with TRPI_CHILD_DYING. (stop, unlink)
 *   children-I2  A child is linked before it can send anything to its parent: in prepare(), or by a
 *       supervise message that stands in the guardian's queue before the child runs.
 *       (spawn_outside)
 *   children-I3  A guardian does not end while a supervise message is on its way to it. (pending)
 * Limits.  TRP_PATH_DEPTH_MAX levels.
 * Tests.   tests/unit/actor/children_test.c, tests/unit/actor/guardian_test.c
 */
#include "actor/life/life.h"
#include "actor/life/upgrade.h"

#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/dispatcher.h"
#include "actor/log/log.h"

#include <string.h>

#include "base/alloc.h"
#include "base/payload.h"
#include "base/assert.h"
#include "base/sized.h"

/* The cell of a slot that is in a list of the running cell, so it exists. */
static trpi_cell *
cell_at(trp_ctx *ctx, uint32_t slot)
{
    trpi_cell *cell = trpi_cells_find(ctx->cells, slot);

    trpi_assert(cell != NULL);
    return cell;
}

trpi_cell *
trpi_child_first(trp_ctx *ctx, const trpi_cell *parent)
{
    return parent->first_child == 0 ? NULL : cell_at(ctx, parent->first_child);
}

trpi_cell *
trpi_child_after(trp_ctx *ctx, const trpi_cell *child)
{
    uint32_t slot = child->next_sibling & TRPI_CHILD_SLOT;

    return slot == 0 ? NULL : cell_at(ctx, slot);
}

trpi_cell *
trpi_child_find(trp_ctx *ctx, const trpi_cell *parent, trp_ref ref)
{
    trpi_cell *child;

    if (ref.node != TRPI_NODE_SELF || (ref.generation & 1u) == 0) {
        return NULL;
    }
    child = trpi_cells_find(ctx->cells, ref.slot);
    /* acquire: pairs with the publication of the child; its parent was written before */
    if (child == NULL ||
        atomic_load_explicit(&child->generation, memory_order_acquire) != ref.generation ||
        !trpi_kind_is_actor(atomic_load_explicit(&child->kind, memory_order_relaxed)) ||
        trpi_cell_parent(child) != trpi_cell_slot(parent)) {
        return NULL;
    }
    return child;
}

void
trpi_child_link(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child)
{
    uint32_t slot = trpi_cell_slot(child);

    trpi_assert(trpi_cell_parent(child) == trpi_cell_slot(parent));
    child->prev_sibling = 0;
    child->next_sibling = parent->first_child;
    if (parent->first_child != 0) {
        trpi_cell *second = cell_at(ctx, parent->first_child);

        second->prev_sibling = slot | (second->prev_sibling & TRPI_CHILD_DYING);
    }
    parent->first_child = slot;
}

/* Take child out of the list. */
static void
links_out(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child)
{
    uint32_t next = child->next_sibling & TRPI_CHILD_SLOT;
    uint32_t prev = child->prev_sibling & TRPI_CHILD_SLOT;

    if (trpi_child_is_dying(child)) {
        trpi_assert(parent->dying > 0);
        parent->dying--; /* children-I1 */
    }
    if (prev == 0) {
        trpi_assert(parent->first_child == trpi_cell_slot(child));
        parent->first_child = next;
    } else {
        trpi_cell *before = cell_at(ctx, prev);

        before->next_sibling = next | (before->next_sibling & TRPI_CHILD_SURVIVOR);
    }
    if (next != 0) {
        trpi_cell *behind = cell_at(ctx, next);

        behind->prev_sibling = prev | (behind->prev_sibling & TRPI_CHILD_DYING);
    }
    child->next_sibling = 0;
    child->prev_sibling = 0;
}

void
trpi_child_unlink(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child)
{
    links_out(ctx, parent, child);
    if (child->name != 0) {
        trpi_registry_release(ctx->system->registry, child->name);
    }
    trpi_slot_release(ctx, trpi_cell_slot(child));
}

void
trpi_child_abandon(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child)
{
    links_out(ctx, parent, child);
    trpi_child_unprepare(ctx, child);
    trpi_spawn_dispatcher_undo(ctx, child);
    trpi_slot_abandon(ctx, child);
}

void
trpi_child_stop(trp_ctx *ctx, trpi_cell *parent, trpi_cell *child)
{
    trp_ref none = TRP_REF_NONE;

    if (!trpi_child_is_dying(child)) {
        child->prev_sibling |= TRPI_CHILD_DYING;
        parent->dying++; /* children-I1 */
        if (trpi_child_lives(child)) {
            trpi_sys_to(ctx, trpi_cell_ref(child), TRPI_SYS_STOP, 0, none, 0, NULL);
        }
    }
}

bool
trpi_children_are_loggers(trp_system *system, const trpi_cell *cell)
{
    return trpi_cell_slot(cell) == system->life->system.ref.slot;
}

void
trpi_children_spare_loggers(trp_ctx *ctx, trpi_cell *guardian)
{
    const trp_ref none = TRP_REF_NONE;
    bool alone = true;
    trpi_cell *c;

    for (c = trpi_child_first(ctx, guardian); c != NULL; c = trpi_child_after(ctx, c)) {
        if (!trpi_logger_is(ctx->system, trpi_cell_ref(c))) {
            trpi_child_stop(ctx, guardian, c);
            alone = false;
        }
    }
    for (c = trpi_child_first(ctx, guardian); alone && c != NULL; c = trpi_child_after(ctx, c)) {
        if (guardian->suspended > 0) {
            /* the guardian failed: its children would not handle a message */
            trpi_child_stop(ctx, guardian, c);
        } else if (!trpi_child_is_dying(c)) {
            c->prev_sibling |= TRPI_CHILD_DYING;
            guardian->dying++;
            trpi_tell(ctx, trpi_cell_ref(c), none, &trpi_logger_end_type, NULL, 0); /* logger-K1 */
        }
    }
}

void
trpi_children_stop(trp_ctx *ctx, trpi_cell *parent)
{
    if (trpi_children_are_loggers(ctx->system, parent)) {
        trpi_children_spare_loggers(ctx, parent);
        return;
    }
    for (trpi_cell *c = trpi_child_first(ctx, parent); c != NULL; c = trpi_child_after(ctx, c)) {
        trpi_child_stop(ctx, parent, c);
    }
}

void
trpi_children_tell(trp_ctx *ctx, const trpi_cell *parent, enum trpi_sys kind, trp_ref except)
{
    trp_ref none = TRP_REF_NONE;

    for (trpi_cell *c = trpi_child_first(ctx, parent); c != NULL; c = trpi_child_after(ctx, c)) {
        trp_ref ref = trpi_cell_ref(c);

        if (trpi_child_lives(c) && !trp_ref_equal(ref, except)) {
            trpi_sys_to(ctx, ref, kind, 0, none, 0, NULL);
        }
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

static trp_err
keep_options(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options)
{
    trp_ref none = TRP_REF_NONE;
    trpi_extra *extra;

    bool is_proxy;
    trp_err err = ctx->system->life_hooks->proxy_make(ctx, cell, options, &is_proxy);

    if (err != TRP_OK || is_proxy || options == NULL ||
        (options->args_type == NULL && options->stash_msgs_max == 0)) {
        return err;
    }
    extra = trpi_extra_get(cell);
    if (extra == NULL) {
        return TRP_ENOMEM;
    }
    extra->stash_max = options->stash_msgs_max;
    if (options->args_type != NULL) {
        extra->args = trpi_msg_make(ctx->cache, none, none, options->args_type, options->args,
                                    trpi_payload_bytes(options->args_type, options->args_bytes));
        if (extra->args == NULL) {
            return TRP_ENOMEM;
        }
        if (ctx->system->options.serialize_creators != 0 &&
            (options->node == NULL || options->node[0] != 0)) { /* REMOTE-22 */
            return trpi_round_trip(ctx, &extra->args);
        }
    }
    return TRP_OK;
}

static void
forget_options(trp_ctx *ctx, trpi_cell *cell)
{
    if (cell->extra != NULL) {
        if (cell->extra->args != NULL) {
            trpi_msg_free(ctx->cache, cell->extra->args);
        }
        ctx->system->life_hooks->proxy_free(cell->extra->proxy);
        trpi_free(cell->extra->deployed);
        trpi_free(cell->extra);
        cell->extra = NULL;
    }
}

/* Set name, arguments, parent, depth; the child is not linked yet. On an error nothing is left
 * behind. */
trp_err
trpi_child_prepare(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                   const trp_spawn_options *options)
{
    trpi_registry *registry = ctx->system->registry;
    const char *name = options == NULL ? NULL : options->name;
    uint32_t index = 0;
    trp_err err;

    if (parent->depth >= TRP_PATH_DEPTH_MAX) {
        return TRP_ELIMIT;
    }
    if (name != NULL) {
        size_t bytes = strnlen(name, TRP_NAME_BYTES_MAX + 1);

        if (!trpi_name_is_valid(name, bytes) &&
            parent->behaviour != ctx->system->life_hooks->remote_guardian) {
            return TRP_EINVAL; /* names below /remote are paths, made by deployed.c */
        }
        err = trpi_registry_reserve(registry, trpi_cell_slot(parent), name, bytes, &index);
        if (err != TRP_OK) {
            return err;
        }
    }
    err = keep_options(ctx, cell, options);
    if (err != TRP_OK) {
        forget_options(ctx, cell);
        if (index != 0) {
            trpi_registry_release(registry, index);
        }
        return err;
    }
    cell->depth = (uint16_t)(parent->depth + 1);
    __atomic_store_n(&cell->parent, trpi_cell_slot(parent), __ATOMIC_RELAXED);
    __atomic_store_n(&cell->name, index, __ATOMIC_RELAXED);
    if (index != 0) {
        trpi_registry_bind(registry, index, trpi_cell_slot(cell), trpi_slot_ref(cell).generation);
    }
    err = ctx->system->life_hooks->proxy_check(ctx, cell);
    if (err != TRP_OK) {
        trpi_child_unprepare(ctx, cell);
    }
    return err;
}

void
trpi_child_unprepare(trp_ctx *ctx, trpi_cell *cell)
{
    forget_options(ctx, cell);
    if (cell->name != 0) {
        trpi_registry_release(ctx->system->registry, cell->name);
    }
}

trp_err
trpi_life_prepare(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                  const trp_spawn_options *options)
{
    trp_err err;

    if (parent->life == TRPI_LIFE_STOPPING || parent->life == TRPI_LIFE_FREE) {
        return TRP_ECLOSED;
    }
    err = trpi_child_prepare(ctx, parent, cell, options);
    if (err == TRP_OK) {
        cell->suspended =
            parent->suspended; /* as if it had existed when its parent was suspended */
        cell->marks |= parent->marks & TRPI_MARK_GUARDED; /* guard-U4 */
        trpi_child_link(ctx, parent, cell);
    }
    return err;
}

trp_err
trpi_spawn_conceive(trp_ctx *ctx, trpi_cell *parent, trpi_cell *cell,
                    const trp_behaviour *behaviour, const trp_spawn_options *options)
{
    trp_err err;

    cell->behaviour = trpi_behaviour_newest(ctx->system, behaviour);
    err = trpi_life_prepare(ctx, parent, cell, options);
    if (err != TRP_OK) {
        trpi_slot_abandon(ctx, cell);
        return err;
    }
    /* after the name: its mailbox may ask for its path */
    err = trpi_spawn_dispatcher(ctx, cell, options, NULL);
    if (err != TRP_OK) {
        trpi_child_abandon(ctx, parent, cell);
    }
    return err;
}

static trp_err
spawn_locked(trp_ctx *ctx, trpi_guardian *guardian, const char *dispatcher,
             const trp_behaviour *behaviour, const trp_spawn_options *options, trp_ref *ret_ref)
{
    trpi_cell *parent = trpi_cells_find(ctx->cells, guardian->ref.slot);
    trp_spawn_options deployed;
    trpi_cell *cell;
    trp_err err;

    if (ctx->system->settings != NULL) {
        options = trpi_settings_deploy(ctx, parent, options, &deployed);
    }
    err = trpi_slot_acquire(ctx, &cell);
    if (err != TRP_OK) {
        return err;
    }
    cell->behaviour = trpi_behaviour_newest(ctx->system, behaviour);
    err = trpi_child_prepare(ctx, parent, cell, options);
    if (err == TRP_OK) {
        err = trpi_spawn_dispatcher(ctx, cell, options, dispatcher);
        if (err != TRP_OK) {
            trpi_child_unprepare(ctx, cell);
        }
    }
    if (err != TRP_OK) {
        trpi_slot_abandon(ctx, cell);
        return err;
    }
    *ret_ref = trpi_slot_ref(cell);
    trpi_guardian_expect(guardian);
    /* before the child runs: what it sends to its guardian stands behind this (children-I2) */
    trpi_sys_to(ctx, guardian->ref, TRPI_SYS_SUPERVISE, 0, *ret_ref, 0, NULL);
    trpi_slot_publish(ctx, cell, trpi_mailbox_cell_kind(cell));
    return TRP_OK;
}

trp_err
trpi_spawn_outside(trp_system *system, trpi_guardian *guardian, const char *dispatcher,
                   const trp_behaviour *behaviour, const trp_spawn_options *options,
                   trp_ref *ret_ref)
{
    trp_spawn_options own;
    trp_ctx *ctx;
    trp_err err;

    if (!TRPI_SIZED_TAKE(options, &own, node)) {
        return TRP_EINVAL;
    }
    err = trpi_spawn_check(behaviour, options);
    if (err != TRP_OK || ret_ref == NULL) {
        trpi_spawn_refused(system, behaviour, options, err);
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    trpi_nested_hold(ctx);
    pthread_mutex_lock(&guardian->lock);
    err = guardian->closed ? TRP_ECLOSED
                           : spawn_locked(ctx, guardian, dispatcher, behaviour, options, ret_ref);
    pthread_mutex_unlock(&guardian->lock);
    trpi_nested_release(ctx);
    trpi_leave(ctx);
    trpi_spawn_refused(system, behaviour, options, err);
    return err;
}

trp_err
trp_system_spawn(trp_system *system, const trp_behaviour *behaviour,
                 const trp_spawn_options *options, trp_ref *ret_ref)
{
    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    return trpi_spawn_outside(system, &system->life->user, NULL, behaviour, options, ret_ref);
}

trp_err
trpi_system_spawn_internal(trp_system *system, const trp_behaviour *behaviour,
                           const trp_spawn_options *options, trp_ref *ret_ref)
{
    trpi_assert(trpi_system_is_valid(system));
    return trpi_spawn_outside(system, &system->life->system, "system", behaviour, options, ret_ref);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

trp_ref
trp_child(trp_ctx *ctx, const char *name)
{
    trp_ref none = TRP_REF_NONE;

    if (name == NULL) {
        return none;
    }
    return trpi_path_child(ctx->system, trpi_cell_slot(ctx->cell), name,
                           strnlen(name, TRP_NAME_BYTES_MAX + 1));
}

trp_ref
trp_child_next(trp_ctx *ctx, trp_ref after)
{
    trp_ref none = TRP_REF_NONE;
    const trpi_cell *child;

    if (trp_ref_is_none(after)) {
        child = trpi_child_first(ctx, ctx->cell);
    } else {
        child = after.node == TRPI_NODE_SELF ? trpi_cells_find(ctx->cells, after.slot) : NULL;
        /* a child that has ended meanwhile still has its links: its slot is kept until its parent
         * has seen the end */
        if (child == NULL || trpi_cell_parent(child) != trpi_cell_slot(ctx->cell) ||
            trpi_cell_ref(child).generation - after.generation > 1) {
            return none;
        }
        child = trpi_child_after(ctx, child);
    }
    while (child != NULL && !trpi_child_lives(child)) {
        child = trpi_child_after(ctx, child);
    }
    return child == NULL ? none : trpi_cell_ref(child);
}

uint32_t
trp_children_count(const trp_ctx *ctx)
{
    uint32_t count = 0;
    trpi_cell *child = trpi_cells_find(ctx->cells, ctx->cell->first_child);

    if (ctx->cell->first_child == 0) {
        return 0;
    }
    while (child != NULL) {
        count++;
        child = (child->next_sibling & TRPI_CHILD_SLOT) == 0
                    ? NULL
                    : trpi_cells_find(ctx->cells, child->next_sibling & TRPI_CHILD_SLOT);
    }
    return count;
}

void
trpi_stop_send(trp_ctx *ctx, trp_ref ref)
{
    if (ref.node == TRPI_NODE_SELF) {
        trpi_sys_to(ctx, ref, TRPI_SYS_STOP, 0, (trp_ref)TRP_REF_NONE, 0, NULL);
    } else if (!trp_ref_is_none(ref)) {
        trpi_remote_signal(ctx->system, TRPI_SIGNAL_STOP, ref, ctx->self, 0);
    }
}

void
trp_stop(trp_ctx *ctx, trp_ref ref)
{
    trpi_cell *child = ctx->cell == NULL ? NULL : trpi_child_find(ctx, ctx->cell, ref);

    if (child != NULL) {
        trpi_child_stop(ctx, ctx->cell, child);
    } else {
        trpi_stop_send(ctx, ref);
    }
}

void
trpi_system_restart_actor(trp_system *system, trp_ref ref)
{
    const trp_ref none = TRP_REF_NONE;
    trp_failure what;
    trp_ctx *ctx = trpi_enter(system);

    trpi_assert(ref.node == TRPI_NODE_SELF);
    trpi_failure_fill(&what, ref, TRP_ECANCELED, "restarted by an operator");
    trpi_sys_to(ctx, ref, TRPI_SYS_SUSPEND, 0, none, 0, NULL);
    trpi_sys_to(ctx, ref, TRPI_SYS_RESTART, 0, none, 0, trpi_failure_new(&what));
    trpi_leave(ctx);
}

void
trp_system_stop_actor(trp_system *system, trp_ref ref)
{
    trp_ctx *ctx;

    if (trpi_system_is_valid(system)) {
        ctx = trpi_enter(system);
        trpi_stop_send(ctx, ref);
        trpi_leave(ctx);
    }
}
