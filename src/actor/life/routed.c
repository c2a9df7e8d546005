/* routed.c - routed actors: spawning them with their first children, and routing on the sender's
 * thread.
 *
 * Why.     A router that handled each message in its own turn would be slower than its routees. So
 *          the upper room's function runs on the sender's thread; the actor behind it only manages
 *          the routees.
 * Shape.   cell.kind = ROUTER, cell.ops -> routed.kind (first member of what belongs to one
 *          incarnation). A tell to a cell of this kind calls trpi_routed_take().
 * Must hold.
 *   routed-F1  A sender uses ops only if the generation is the one it wants before and after the
 *       load of ops: ops are set before the generation is published, and cleared after it has
 *       ended.
 *   routed-F2  A routed is retired when its actor ends: senders may still read it.
 *   routed-F3  The first children are published after their parent and before it runs: a stop of
 *       the parent stops them, and their reports reach it. None runs before all are published: a
 *       message of one to its router reaches the others.
 *   routed-F4  A routed has the plain mailbox, whatever the default, its dispatcher or a section
 *       says: its messages go past its mailbox, and cell->ops has room for one pointer.
 * Limits.  A message that has passed TRPI_ROUTE_DEPTH_MAX routers is a dead letter, so that a
 *          circle of routers cannot overflow the stack.
 * Tests.   tests/unit/pattern/router_test.c
 */
#include "actor/kernel/schedule.h"
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/cells.h"
#include "actor/life/routed.h"

#include <stdio.h>

#include "actor/life/life.h"
#include "actor/life/upgrade.h"
#include "actor/kernel/mailbox.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

typedef struct routed {
    trpi_kind_ops kind; /* deliver NULL: an actor */
    const trpi_routed_ops *ops;
    void *arg;
} routed;

struct trpi_embryo {
    trp_ctx *ctx;
    trpi_cell *cell; /* its token is held here */
};

static bool
is_routed(const trpi_kind_ops *ops)
{
    return ops != NULL && ops->deliver == NULL;
}

static routed *
routed_of(const trpi_kind_ops *ops)
{
    _Static_assert(offsetof(routed, kind) == 0, "a routed begins with its ops");
    return (routed *)(uintptr_t)ops;
}

/* ---- the sender's side ----------------------------------------------------------------------- */

/* Read ops by routed-F1. NULL: that incarnation has ended, or is no router. */
static routed *
routed_get(const trpi_cell *cell, uint32_t generation)
{
    const trpi_kind_ops *ops;

    /* acquire: pairs with publication; ops of this incarnation are written */
    if (atomic_load_explicit(&cell->generation, memory_order_acquire) != generation) {
        return NULL;
    }
    /* acquire: pairs with trpi_cell_ops_set(); had it been cleared or set again, the generation
     * below is a later one */
    ops = __atomic_load_n(&cell->ops, __ATOMIC_ACQUIRE);
    if (atomic_load_explicit(&cell->generation, memory_order_relaxed) != generation) {
        return NULL;
    }
    return is_routed(ops) ? routed_of(ops) : NULL;
}

bool
trpi_routed_take(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg)
{
    const routed *r = routed_get(cell, to.generation);
    const uint8_t depth = ctx->turn.route_depth;
    bool taken;

    if (r == NULL) {
        return false;
    }
    if (depth >= TRPI_ROUTE_DEPTH_MAX) {
        trpi_dead(ctx, to, msg, TRP_DEAD_NO_SUCH_ACTOR);
        trpi_msg_free(ctx->cache, msg);
        return true;
    }
    ctx->turn.route_depth = (uint8_t)(depth + 1);
    taken = r->ops->route(r->arg, ctx, to, msg);
    /* not decremented: a routee that ran on this thread may have failed, and jumped */
    ctx->turn.route_depth = depth;
    return taken;
}

void *
trpi_routed_find(trp_ctx *ctx, trp_ref ref, const trpi_routed_ops *ops)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, ref);
    const routed *r = NULL;

    if (cell != NULL &&
        atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_ROUTER) {
        r = routed_get(cell, ref.generation);
    }
    return r != NULL && r->ops == ops ? r->arg : NULL;
}

/* ---- start ----------------------------------------------------------------------------------- */

trp_ref
trpi_embryo_ref(const trpi_embryo *embryo)
{
    return trpi_slot_ref(embryo->cell);
}

size_t
trpi_embryo_path(const trpi_embryo *embryo, trp_ref ref, char *buffer, size_t bytes)
{
    trp_system *system = embryo->ctx->system;
    const trpi_cell *cell = embryo->cell;
    const trpi_cell *parent = trpi_cells_find(embryo->ctx->cells, trpi_cell_parent(cell));
    char name[TRP_NAME_BYTES_MAX + 1], above[TRP_PATH_BYTES_MAX + 1];
    int written;

    trpi_assert(parent != NULL);
    trpi_path_local(system, trpi_cell_ref(parent), above, sizeof above);
    trpi_cell_name(system, cell, name, sizeof name);
    if (ref.slot == trpi_cell_slot(cell)) {
        written = snprintf(buffer, bytes, "%s/%s", above, name);
    } else {
        const trpi_cell *child = trpi_cells_find(embryo->ctx->cells, ref.slot);
        char last[TRP_NAME_BYTES_MAX + 1];

        trpi_assert(child != NULL && trpi_cell_parent(child) == trpi_cell_slot(cell));
        trpi_cell_name(system, child, last, sizeof last);
        written = snprintf(buffer, bytes, "%s/%s/%s", above, name, last);
    }
    return written < 0 ? 0 : (size_t)written < bytes ? (size_t)written : bytes - 1;
}

trp_err
trpi_embryo_spawn(trpi_embryo *embryo, const trp_behaviour *behaviour,
                  const trp_spawn_options *options, trp_ref *ret_ref)
{
    trp_ctx *ctx = embryo->ctx;
    trp_spawn_options deployed, own;
    trpi_cell *cell;
    trp_err err;

    if (!TRPI_SIZED_TAKE(options, &own, node)) {
        return TRP_EINVAL;
    }
    err = trpi_spawn_check(behaviour, options);
    if (ctx->system->settings != NULL) {
        options = trpi_settings_deploy(ctx, embryo->cell, options, &deployed);
    }
    if (err == TRP_OK) {
        err = trpi_slot_acquire(ctx, &cell);
    }
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_spawn_conceive(ctx, embryo->cell, cell, behaviour, options);
    if (err == TRP_OK) {
        *ret_ref = trpi_slot_ref(cell);
    }
    return err;
}

/* Publish the actor and its first children (routed-F3). */
static void
family_publish(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_cell *child = trpi_child_first(ctx, cell);

    trpi_slot_reveal(ctx, cell, TRPI_KIND_ROUTER);
    for (trpi_cell *c = child; c != NULL; c = trpi_child_after(ctx, c)) {
        trpi_slot_reveal(ctx, c, trpi_mailbox_cell_kind(c));
    }
    while (child != NULL) {
        trpi_cell *next = trpi_child_after(ctx, child);

        trpi_schedule(ctx, child);
        child = next;
    }
    trpi_schedule(ctx, cell);
}

static void
family_undo(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_cell *child;

    while ((child = trpi_child_first(ctx, cell)) != NULL) {
        trpi_child_abandon(ctx, cell, child);
    }
    trpi_child_unprepare(ctx, cell);
    trpi_spawn_dispatcher_undo(ctx, cell);
    trpi_free(routed_of(cell->ops));
    trpi_cell_ops_set(cell, NULL);
    trpi_slot_abandon(ctx, cell);
}

/* Make the actor and its first children; it is not linked to its parent. */
static trp_err
routed_make(trp_ctx *ctx, trpi_cell *parent, const trp_behaviour *behaviour,
            const trp_spawn_options *options, routed *r, trpi_cell **ret_cell)
{
    trpi_cell *cell;
    trp_err err = trpi_slot_acquire(ctx, &cell);

    if (err != TRP_OK) {
        return err;
    }
    cell->behaviour = trpi_behaviour_newest(ctx->system, behaviour);
    err = trpi_spawn_dispatcher(ctx, cell, options, NULL);
    if (err == TRP_OK) {
        err = trpi_child_prepare(ctx, parent, cell, options);
        if (err != TRP_OK) {
            trpi_spawn_dispatcher_undo(ctx, cell);
        }
    }
    if (err != TRP_OK) {
        trpi_slot_abandon(ctx, cell);
        return err;
    }
    trpi_mailbox_undo(ctx, cell); /* routed-F4 */
    trpi_cell_ops_set(cell, &r->kind);
    *ret_cell = cell;
    return TRP_OK;
}

/* Link it to the guardian, or to the running parent, and publish it. */
static trp_err
family_link(trp_ctx *ctx, trpi_guardian *guardian, trpi_cell *parent, trpi_cell *cell)
{
    bool closed;

    if (guardian == NULL) {
        trpi_child_link(ctx, parent, cell);
        family_publish(ctx, cell);
        return TRP_OK;
    }
    trpi_nested_hold(ctx); /* for routees of the calling-thread dispatcher */
    pthread_mutex_lock(&guardian->lock);
    closed = guardian->closed;
    if (!closed) {
        trpi_guardian_expect(guardian);
        trpi_sys_to(ctx, guardian->ref, TRPI_SYS_SUPERVISE, 0, trpi_slot_ref(cell), 0, NULL);
        family_publish(ctx, cell);
    }
    pthread_mutex_unlock(&guardian->lock);
    trpi_nested_release(ctx);
    return closed ? TRP_ECLOSED : TRP_OK;
}

static trp_err
routed_spawn(trp_ctx *ctx, trpi_guardian *guardian, trpi_cell *parent,
             const trp_behaviour *behaviour, const trp_spawn_options *options, routed *r,
             trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref)
{
    trpi_embryo embryo = { ctx, NULL };
    trp_ref ref;
    trp_err err = routed_make(ctx, parent, behaviour, options, r, &embryo.cell);

    if (err != TRP_OK) {
        trpi_free(r);
        return err;
    }
    if (guardian == NULL) {
        embryo.cell->suspended = parent->suspended;
    }
    ref = trpi_slot_ref(embryo.cell);
    err = make(r->arg, &embryo);
    if (err == TRP_OK) {
        err = family_link(ctx, guardian, parent, embryo.cell);
    }
    if (err != TRP_OK) {
        family_undo(ctx, embryo.cell);
        return err;
    }
    *ret_ref = ref;
    return TRP_OK;
}

static trp_err
routed_new(const trp_behaviour *behaviour, const trp_spawn_options *options,
           const trpi_routed_ops *ops, void *arg, routed **ret_routed)
{
    static const trpi_kind_ops kind = { "router", NULL, NULL, NULL, NULL };
    trp_err err = trpi_spawn_check(behaviour, options);

    if (err != TRP_OK) {
        return err;
    }
    *ret_routed = trpi_alloc(sizeof **ret_routed);
    if (*ret_routed == NULL) {
        return TRP_ENOMEM;
    }
    **ret_routed = (routed){ kind, ops, arg };
    return TRP_OK;
}

static trp_err
routed_spawn_outside(trp_system *system, trpi_guardian *guardian, const trp_behaviour *behaviour,
                     const trp_spawn_options *options, routed *r,
                     trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref)
{
    trp_ctx *ctx = trpi_enter(system);
    trpi_cell *parent = trpi_cells_find(ctx->cells, guardian->ref.slot);
    trp_err err = routed_spawn(ctx, guardian, parent, behaviour, options, r, make, ret_ref);

    trpi_leave(ctx);
    return err;
}

trp_err
trpi_spawn_routed(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
                  const trp_spawn_options *options, const trpi_routed_ops *ops, void *arg,
                  trp_err (*make)(void *arg, trpi_embryo *embryo), trp_ref *ret_ref)
{
    routed *r;
    trp_err err;

    if (ctx != NULL &&
        (ctx->cell->life == TRPI_LIFE_STOPPING || ctx->cell->life == TRPI_LIFE_FREE)) {
        return TRP_ECLOSED;
    }
    err = routed_new(behaviour, options, ops, arg, &r);
    if (err != TRP_OK) {
        return err;
    }
    return ctx == NULL ? routed_spawn_outside(system, &system->life->user, behaviour, options, r,
                                              make, ret_ref)
                       : routed_spawn(ctx, NULL, ctx->cell, behaviour, options, r, make, ret_ref);
}

static trp_err
no_children(void *arg, trpi_embryo *embryo)
{
    (void)arg;
    (void)embryo;
    return TRP_OK;
}

trp_err
trpi_system_spawn_routed(trp_system *system, const trp_behaviour *behaviour,
                         const trp_spawn_options *options, const trpi_routed_ops *ops, void *arg,
                         trp_ref *ret_ref)
{
    routed *r;
    trp_err err = routed_new(behaviour, options, ops, arg, &r);

    return err != TRP_OK ? err
                         : routed_spawn_outside(system, &system->life->system, behaviour, options,
                                                r, no_children, ret_ref);
}

/* ---- end ------------------------------------------------------------------------------------- */

void
trpi_routed_ended(trp_ctx *ctx, const trpi_kind_ops *ops)
{
    if (is_routed(ops)) {
        routed *r = routed_of(ops);

        r->ops->ended(r->arg, ctx->system);
        trpi_system_retire(ctx->system, trpi_free, r); /* routed-F2 */
    }
}
