/* stash.c - the stack of behaviours, and the stash.
 *
 * Shape.   stash -> (unstash_all) -> front -> receive. The front queue is served before the
 *          mailbox; the run loop asks for it while TRPI_MARK_FRONT is set.
 * Must hold.
 *   stash-B1  A message is in the stash at most once. (stash)
 *   stash-B2  unstash_all puts the stash before the messages that are in front already, in order
 *       (BEH-7).
 *   stash-B3  A restart drops the stack (LIFE-6) and unstashes (BEH-10).
 * Limits.  stash_msgs_max of the spawn options, else actor.default-mailbox.stash-capacity of the
 *          configuration, else none (BEH-9).
 * Tests.   tests/unit/actor/stash_test.c, behaviour_test.c
 */
#include "actor/kernel/misuse.h"
#include "actor/life/life.h"

#include "base/alloc.h"
#include "base/assert.h"

/* ---- behaviours ------------------------------------------------------------------------------ */

/* LOG-13: debug.fsm. The states of a state machine are behaviours; a transition changes the
 * behaviour. */
static void
behaviour_trace(trp_ctx *ctx, const char *what)
{
    unsigned depth = 0;

    if (!trpi_log_debugs(ctx->system, TRP_DEBUG_FSM)) {
        return;
    }
    for (const trpi_level *level = ctx->cell->extra->levels; level != NULL; level = level->below) {
        depth++;
    }
    trpi_log_about(ctx, ctx->self, TRP_LOG_DEBUG, TRP_OK, "%s depth=%u", what, depth);
}

trp_err
trp_become(trp_ctx *ctx, trp_receive_fn receive, int keep)
{
    trpi_extra *extra;
    trpi_level *level;

    TRPI_USE(ctx);
    if (receive == NULL) {
        return TRP_EINVAL;
    }
    extra = trpi_extra_get(ctx->cell);
    if (extra == NULL) {
        return TRP_ENOMEM;
    }
    if (keep || extra->levels == NULL) {
        level = trpi_alloc(sizeof *level);
        if (level == NULL) {
            return TRP_ENOMEM;
        }
        level->below = extra->levels;
        extra->levels = level;
    }
    extra->levels->receive = receive;
    trpi_receive_mark(ctx->cell);
    behaviour_trace(ctx, "becomes another behaviour");
    return TRP_OK;
}

void
trp_unbecome(trp_ctx *ctx)
{
    trpi_extra *extra = ctx->cell->extra;

    if (extra != NULL && extra->levels != NULL) {
        trpi_level *top = extra->levels;

        extra->levels = top->below;
        trpi_free(top);
        trpi_receive_mark(ctx->cell);
        behaviour_trace(ctx, "goes back to the behaviour below");
    }
}

trp_err
trp_or_else(trp_ctx *ctx, void *state, const trp_msg *msg, const trp_receive_fn *parts,
            size_t parts_count)
{
    trp_err err = TRP_EUNHANDLED;

    for (size_t i = 0; i < parts_count && err == TRP_EUNHANDLED; i++) {
        err = parts[i](ctx, state, msg);
    }
    return err;
}

trp_err
trp_dispatch(trp_ctx *ctx, void *state, const trp_msg *msg, const trp_on *rows, size_t rows_count)
{
    for (size_t i = 0; i < rows_count; i++) {
        if (trp_msg_is(msg, rows[i].type)) {
            return trp_msg_as(msg, rows[i].type) != NULL ? rows[i].receive(ctx, state, msg)
                                                         : TRP_EDATA;
        }
    }
    return TRP_EUNHANDLED;
}

trp_receive_fn
trpi_life_receive(trp_ctx *ctx, trpi_cell *cell)
{
    trp_receive_fn refused = trpi_filter_receive(cell, ctx->msg);

    if (refused != NULL) {
        return refused;
    }
    if (cell->extra != NULL && cell->extra->log_receive) {
        trpi_log_received(ctx);
    }
    if (cell->extra != NULL && cell->extra->sample_one_in != 0 && trpi_sample_hits(ctx, cell)) {
        return trpi_sampled_receive;
    }
    return cell->extra != NULL && cell->extra->levels != NULL ? cell->extra->levels->receive
                                                              : cell->behaviour->receive;
}

void
trpi_levels_free(trpi_level *level)
{
    trpi_level *below;

    for (; level != NULL; level = below) {
        below = level->below;
        trpi_free(level);
    }
}

trpi_level *
trpi_levels_take(trpi_cell *cell)
{
    trpi_level *levels = cell->extra == NULL ? NULL : cell->extra->levels;

    if (levels != NULL) {
        cell->extra->levels = NULL;
        trpi_receive_mark(cell);
    }
    return levels;
}

void
trpi_levels_put(trpi_cell *cell, trpi_level *levels)
{
    if (levels != NULL) {
        trpi_assert(cell->extra->levels == NULL);
        cell->extra->levels = levels;
        trpi_receive_mark(cell);
    }
}

void
trpi_levels_drop(trpi_cell *cell)
{
    trpi_levels_free(trpi_levels_take(cell));
    trpi_receive_mark(cell);
}

/* ---- the stash ------------------------------------------------------------------------------- */

trp_err
trp_stash(trp_ctx *ctx, const trp_msg *msg)
{
    trpi_extra *extra;
    trp_msg *copy;
    uint32_t limit;
    trp_err err;

    TRPI_USE(ctx);
    if (msg == NULL || msg != ctx->msg) {
        return TRP_EINVAL; /* only the message being handled (BEH-6) */
    }
    extra = trpi_extra_get(ctx->cell);
    if (extra == NULL) {
        return TRP_ENOMEM;
    }
    if (extra->stashed_turn == ctx->cell->processed + 1 && extra->stash.count > 0) {
        return TRP_EEXIST; /* stash-B1 */
    }
    limit = extra->stash_max != 0 ? extra->stash_max : ctx->system->stash_max;
    if (limit != 0 && extra->stash.count >= limit) {
        return TRP_ELIMIT;
    }
    err = trp_msg_dup(msg, &copy);
    if (err == TRP_OK) {
        copy = trpi_trailer_again(ctx, ctx->carried, copy); /* trailer-I2 */
        if (copy->priv_type < TRPI_TYPE_AUTO_END) {
            copy->priv_from_node_flags |= TRPI_MSG_ADMITTED;
        }
        copy->priv_from_node_flags |= msg->priv_from_node_flags & TRPI_MSG_ENTITY;
        trpi_msg_list_append(&extra->stash, copy);
        extra->stashed_turn = ctx->cell->processed + 1;
    }
    return err;
}

void
trpi_stash_to_front(trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;

    if (extra == NULL || extra->stash.first == NULL) {
        return;
    }
    extra->stash.last->priv_next = extra->front.first; /* stash-B2 */
    if (extra->front.last == NULL) {
        extra->front.last = extra->stash.last;
    }
    extra->front.first = extra->stash.first;
    extra->front.count += extra->stash.count;
    extra->stash = (trpi_msg_list){ NULL, NULL, 0 };
    extra->stashed_turn = 0;
    cell->marks |= TRPI_MARK_FRONT;
    trpi_run_attention(cell);
}

bool
trpi_front_put(trpi_cell *cell, trp_msg *msg)
{
    trpi_extra *extra = trpi_extra_get(cell);

    if (extra == NULL) {
        return false;
    }
    msg->priv_next = extra->front.first;
    extra->front.first = msg;
    if (extra->front.last == NULL) {
        extra->front.last = msg;
    }
    extra->front.count++;
    cell->marks |= TRPI_MARK_FRONT;
    trpi_run_attention(cell);
    return true;
}

void
trpi_front_keep(trp_ctx *ctx, trp_msg *msg)
{
    trpi_cell *cell = ctx->cell;
    trpi_extra *extra = trpi_extra_get(cell);

    if (extra == NULL) {
        trpi_dead(ctx, ctx->self, msg, TRP_DEAD_NO_MEMORY);
        trpi_msg_drop(msg);
        return;
    }
    if (msg->priv_type < TRPI_TYPE_AUTO_END) {
        msg->priv_from_node_flags |= TRPI_MSG_ADMITTED;
    }
    trpi_msg_list_append(&extra->front, msg);
    cell->marks |= TRPI_MARK_FRONT;
    trpi_run_attention(cell);
}

void
trp_unstash_all(trp_ctx *ctx)
{
    TRPI_USE(ctx);
    trpi_stash_to_front(ctx->cell);
}

trp_msg *
trpi_life_front(trp_ctx *ctx, trpi_cell *cell)
{
    trp_msg *msg = cell->extra == NULL ? NULL : trpi_msg_list_take(&cell->extra->front);

    (void)ctx;
    if (msg == NULL) {
        cell->marks &= (uint8_t)~TRPI_MARK_FRONT;
    }
    return msg;
}

static void
list_drain(trp_ctx *ctx, trpi_msg_list *list, trp_ref self, trp_dead_reason reason)
{
    trp_msg *msg;

    while ((msg = trpi_msg_list_take(list)) != NULL) {
        if ((msg->priv_from_node_flags & TRPI_MSG_ENTITY) == 0 ||
            !trpi_entity_left(ctx, self, msg)) {
            trpi_dead_letter_msg(ctx->system, self, msg, reason);
        }
        trpi_msg_free(ctx->cache, msg);
    }
}

void
trpi_stash_drain(trp_ctx *ctx, trpi_cell *cell)
{
    trp_ref self = trpi_cell_ref(cell);

    list_drain(ctx, &cell->extra->front, self, TRP_DEAD_STASH);
    list_drain(ctx, &cell->extra->stash, self, TRP_DEAD_STASH);
    cell->marks &= (uint8_t)~TRPI_MARK_FRONT;
}
