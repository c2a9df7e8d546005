/* select.c - selections: resolve a path, with or without wildcards, when a message is delivered.
 *
 * Why.     Any thread can resolve names, through the registry. Wildcards need child lists, which
 *          only the parent's runner may read: there the selection continues as a system
 *          message.
 * Shape.   text -> elements; resolve names and ".." at once; at a wildcard go to that actor, match
 *          its children, continue from each.
 * Must hold.
 *   select-S1  Each system message of a selection holds one count of its record; the last one
 *       frees it.
 *   select-S2  An Identify to a name that does not exist is answered at once if the selection has
 *       no wildcard (SYS-25); else a miss is a dead letter.
 * Limits.  Those of a path. A wildcard visits children; its cost is theirs.
 * Tests.   tests/unit/actor/path_test.c
 * Sources. SYS-24..27.
 */
#include "actor/kernel/stats.h"
#include "actor/naming/directory.h"
#include "actor/life/life.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/payload.h"

typedef struct trpi_selecting {
    _Atomic uint32_t refs; /* relaxed ref, acq_rel unref: the last one frees */
    trpi_selection_path path;
    trp_ref sender;
    trp_msg *msg; /* owned */
    char text[TRP_PATH_BYTES_MAX + 1];
} trpi_selecting;

static void
selecting_unref(trpi_selecting *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        trpi_msg_drop(s->msg);
        trpi_free(s);
    }
}

static void
selection_miss(trp_ctx *ctx, const trpi_selecting *s)
{
    const trp_msg *msg = s->msg;
    trp_ref nobody = TRP_REF_NONE;
    trpi_loss loss;

    if (msg->priv_type == TRPI_TYPE_IDENTIFY) {
        trp_identify question = { 0 };
        trp_actor_identity answer = { 0, TRP_REF_NONE };

        if (s->path.has_pattern || trp_ref_is_none(s->sender)) {
            return; /* a wildcard may select no actor, without an answer */
        }
        if (trp_msg_bytes(msg) == sizeof question) {
            memcpy(&question, trp_msg_payload(msg), sizeof question);
        }
        answer.id = question.id;
        trpi_tell(ctx, s->sender, nobody, &trp_actor_identity_type, &answer, sizeof answer);
        return;
    }
    trpi_count(ctx, &ctx->stats->dead[TRP_DEAD_NO_SUCH_ACTOR], 1);
    loss = trpi_loss_of(nobody, msg, TRP_DEAD_NO_SUCH_ACTOR);
    loss.sender = s->sender;
    loss.path = s->text;
    trpi_dead_announce(ctx, &loss);
}

static void
selection_deliver(trp_ctx *ctx, const trpi_selecting *s, trp_ref to)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry_along(ctx, s->msg, &room);

    trpi_tell(ctx, to, s->sender, trp_msg_type(s->msg), trp_msg_payload(s->msg),
              trp_msg_bytes(s->msg));
    (void)trpi_carry(ctx, before);
}

/* The supervisor of ref; the root is its own. */
static trp_ref
supervisor_of(trp_ctx *ctx, trp_ref ref)
{
    const trpi_cell *cell = trpi_cells_find(ctx->cells, ref.slot);
    const trpi_cell *parent;
    uint32_t slot;

    if (cell == NULL || trpi_cell_ref(cell).generation != ref.generation) {
        return (trp_ref)TRP_REF_NONE;
    }
    slot = trpi_cell_parent(cell);
    parent = slot == 0 ? cell : trpi_cells_find(ctx->cells, slot);
    ref = trpi_cell_ref(parent);
    return (ref.generation & 1u) != 0 ? ref : (trp_ref)TRP_REF_NONE;
}

static void selection_walk(trp_ctx *ctx, trpi_selecting *s, uint32_t at, trp_ref here);

/* Match the children of the running cell. Recursion is bounded: selection_walk() calls this for the
 * running cell only, and a child is another one. */
static void
match_children(trp_ctx *ctx, trpi_selecting *s, uint32_t at, const trpi_cell *cell)
{
    const trpi_element *e = &s->path.elements[at];
    bool any = false;

    for (const trpi_cell *c = trpi_child_first(ctx, cell); c != NULL;
         c = trpi_child_after(ctx, c)) {
        char name[TRP_NAME_BYTES_MAX + 1];
        size_t bytes = trpi_cell_name(ctx->system, c, name, sizeof name);

        if (trpi_child_lives(c) && trpi_name_matches(s->text + e->offset, e->bytes, name, bytes)) {
            any = true;
            selection_walk(ctx, s, at + 1, trpi_cell_ref(c));
        }
    }
    if (!any) {
        selection_miss(ctx, s);
    }
}

/* Continue at `here`, in its own turn. */
static void
ask_there(trp_ctx *ctx, trpi_selecting *s, uint32_t at, trp_ref here)
{
    trp_ref nobody = TRP_REF_NONE;

    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    trpi_sys_to(ctx, here, TRPI_SYS_SELECT, 0, nobody, at, s);
}

/* Find the child of /remote whose name, which is a whole path (deployed.c), matches the most
 * elements. *at is moved to the last of them. */
static trp_ref
child_of_remote(trp_ctx *ctx, const trpi_selecting *s, uint32_t *at, trp_ref here)
{
    size_t from = s->path.elements[*at].offset;

    for (uint32_t last = s->path.count - 1;; last--) {
        const trpi_element *e = &s->path.elements[last];
        size_t bytes = e->offset + e->bytes - from;
        trp_ref child = bytes > TRP_NAME_BYTES_MAX
                            ? (trp_ref)TRP_REF_NONE
                            : trpi_path_child(ctx->system, here.slot, s->text + from, bytes);

        if (!trp_ref_is_none(child) || last == *at) {
            *at = last;
            return child;
        }
    }
}

static bool
is_child_proxy(trp_ctx *ctx, trp_ref ref)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, ref);

    return cell != NULL &&
           atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_CHILD_PROXY;
}

/* Resolve names from `here`; at the end deliver, at a wildcard continue in the turn of that
 * actor. */
static void
selection_walk(trp_ctx *ctx, trpi_selecting *s, uint32_t at, trp_ref here)
{
    for (; at < s->path.count; at++) {
        const trpi_element *e = &s->path.elements[at];

        if (e->kind == TRPI_ELEMENT_PATTERN && ctx->cell != NULL &&
            trp_ref_equal(here, trpi_cell_ref(ctx->cell)) && !trpi_cell_is_child_proxy(ctx->cell)) {
            match_children(ctx, s, at, ctx->cell);
            return;
        }
        if (e->kind == TRPI_ELEMENT_PATTERN ||
            (e->kind == TRPI_ELEMENT_NAME && is_child_proxy(ctx, here))) {
            ask_there(ctx, s, at, here);
            return;
        }
        here = e->kind == TRPI_ELEMENT_UP ? supervisor_of(ctx, here)
               : trp_ref_equal(here, ctx->system->life->remote)
                   ? child_of_remote(ctx, s, &at, here)
                   : trpi_path_child(ctx->system, here.slot, s->text + e->offset, e->bytes);
        if (trp_ref_is_none(here)) {
            selection_miss(ctx, s);
            return;
        }
    }
    selection_deliver(ctx, s, here);
}

void
trpi_select_step(trp_ctx *ctx, trpi_cell *cell, void *selecting, uint64_t element)
{
    trpi_selecting *s = selecting;

    match_children(ctx, s, (uint32_t)element, cell);
    selecting_unref(s);
}

void
trpi_select_lost(trp_ctx *ctx, void *selecting, uint64_t element)
{
    (void)element;
    selection_miss(ctx, selecting);
    selecting_unref(selecting);
}

void
trpi_select_drop(void *selecting)
{
    selecting_unref(selecting);
}

static trp_err
select_remote(trp_ctx *ctx, const trpi_address *address, const char *path, trp_ref sender,
              const trp_msg *msg)
{
    trpi_selection_path parsed;
    /* acquire: pairs with trpi_system_remote_set() */
    const trpi_remote_ops *ops =
        atomic_load_explicit(&ctx->system->remote_ops, memory_order_acquire);

    if (trpi_selection_parse(path, &parsed, NULL) != TRP_OK || !parsed.absolute) {
        return TRP_EINVAL;
    }
    if (ops == NULL) {
        return TRP_ESTATE;
    }
    ops->select(atomic_load_explicit(&ctx->system->remote_arg, memory_order_acquire), ctx->system,
                address, path, sender, msg);
    return TRP_OK;
}

void
trpi_select_beyond(trp_ctx *ctx, const trpi_address *address, const char *base, void *selecting,
                   uint64_t element)
{
    trpi_selecting *s = selecting;
    const char *rest = s->text + s->path.elements[element].offset;
    char path[TRP_PATH_BYTES_MAX + 1];
    int written = snprintf(path, sizeof path, "%s/%s", base, rest);

    if (written < 0 || (size_t)written >= sizeof path ||
        select_remote(ctx, address, path, s->sender, s->msg) != TRP_OK) {
        selection_miss(ctx, s);
    }
    selecting_unref(s);
}

/* Is it "/alias/NAME", or a path below it? */
static bool
is_alias(const char *text, const trpi_selection_path *path)
{
    const trpi_element *e = path->elements;

    return path->absolute && path->count >= 2 && e[0].kind == TRPI_ELEMENT_NAME &&
           e[0].bytes == 5 && memcmp(text + e[0].offset, "alias", 5) == 0 &&
           e[1].kind == TRPI_ELEMENT_NAME;
}

static trp_ref
alias_ref(trp_ctx *ctx, const char *text, const trpi_selection_path *path)
{
    return trpi_alias_get(ctx, text + path->elements[1].offset, path->elements[1].bytes);
}

static void
walk_alias(trp_ctx *ctx, trpi_selecting *s)
{
    trp_ref ref = alias_ref(ctx, s->text, &s->path);

    /* only the other node knows the children of its actor */
    if (trp_ref_is_none(ref) || (ref.node != TRPI_NODE_SELF && s->path.count > 2)) {
        selection_miss(ctx, s);
    } else {
        selection_walk(ctx, s, 2, ref);
    }
}

static trp_err
select_local(trp_ctx *ctx, trp_ref anchor, const char *text, trp_ref sender, const trp_msg *msg)
{
    trpi_selecting *s = trpi_alloc(sizeof *s);
    size_t at = 0;
    trp_err err;

    if (s == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&s->refs, 1);
    s->sender = sender;
    err = trpi_selection_parse(text, &s->path, &at);
    if (err == TRP_OK) {
        memcpy(s->text, text, strlen(text) + 1);
        err = trp_msg_dup(msg, &s->msg);
    } else {
        trpi_log(ctx->system, TRP_LOG_WARNING, "select",
                 "\"%.200s\" is no selection: wrong at byte %zu", text, at);
    }
    if (err == TRP_OK && is_alias(s->text, &s->path)) {
        walk_alias(ctx, s);
    } else if (err == TRP_OK) {
        selection_walk(ctx, s, 0, s->path.absolute ? ctx->system->top.root : anchor);
    }
    selecting_unref(s);
    return err;
}

trp_err
trpi_select(trp_ctx *ctx, trp_ref anchor, const char *text, trp_ref sender, const trp_msg *msg)
{
    trpi_address address;
    const char *rest, *hint = NULL;

    if (text == NULL) {
        return TRP_EINVAL;
    }
    if (strstr(text, "://") == NULL) {
        return select_local(ctx, anchor, text, sender, msg);
    }
    if (trpi_address_parse(text, &address, &rest, &hint) != TRP_OK) {
        trpi_log(ctx->system, TRP_LOG_WARNING, "select", "\"%.200s\" is no address: %s", text,
                 hint == NULL ? "" : hint);
        return TRP_EINVAL;
    }
    if (trpi_address_is_own(ctx->system, &address)) {
        return select_local(ctx, ctx->system->top.root, rest[0] == 0 ? "/" : rest, sender, msg);
    }
    return select_remote(ctx, &address, rest[0] == 0 ? "/" : rest, sender, msg);
}

/* ---- public ---------------------------------------------------------------------------------- */

static trp_err
select_tell(trp_ctx *ctx, trp_ref anchor, const char *selection, trp_ref sender,
            const trp_type *type, const void *payload, size_t bytes)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg;
    trp_err err;

    if (selection == NULL || type == NULL) {
        return TRP_EINVAL;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    msg = trpi_tell_make(ctx, nobody, sender, type, payload, bytes);
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    err = trpi_select(ctx, anchor, selection, sender, msg);
    trpi_msg_free(ctx->cache, msg);
    return err;
}

trp_err
trp_select_tell(trp_ctx *ctx, const char *selection, const trp_type *type, const void *payload,
                size_t bytes)
{
    return select_tell(ctx, ctx->self, selection, ctx->self, type, payload, bytes);
}

trp_err
trp_system_select_tell(trp_system *system, const char *selection, const trp_type *type,
                       const void *payload, size_t bytes)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = select_tell(ctx, system->top.root, selection, nobody, type, payload, bytes);
    trpi_leave(ctx);
    return err;
}
