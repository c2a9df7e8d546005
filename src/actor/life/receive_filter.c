/* receive_filter.c - the receive filter: messages that an actor does not get, since it is
 * deactivated or refuses them.
 *
 * Why.     An actor may be deactivated for a while without losing its place, its state and its
 *          watchers; an actor with will_receive refuses messages in one place for all its receive
 *          functions.
 * Shape.   Both are behind the mark that says "receive is trpi_life_receive()" (trp_become), so
 *          that an actor without them pays nothing. A refused message is handled by a receive
 *          function that makes a dead letter of it.
 * Must hold.
 *   receive-filter-G1  Messages of the library pass: only text, JSON, bytes, numbers and the
 *       program's own types are filtered (TRP-06).
 *   receive-filter-G2  A refused message is counted as dead, not as processed.
 * Tests.   tests/unit/actor/receive_filter_test.c, tests/unit/pattern/category_test.c
 * Sources. A4J-16, A4J-24, TRP-06, UJ-06
 */
#include <stdarg.h>
#include <stdio.h>

#include "actor/kernel/bounded_mailbox.h"
#include "actor/life/life.h"
#include "base/payload.h"

static void
message_refuse(trp_ctx *ctx, const trp_msg *msg, trp_dead_reason reason)
{
    ctx->cell->processed--;           /* receive-filter-G2 */
    trpi_stash_turn_clear(ctx->cell); /* which is identified by `processed` */
    trpi_dead(ctx, ctx->self, msg, reason);
}

static trp_err
refuse_inactive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    message_refuse(ctx, msg, TRP_DEAD_INACTIVE);
    return TRP_OK;
}

static trp_err
refuse_unwanted(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    message_refuse(ctx, msg, TRP_DEAD_REFUSED);
    return TRP_OK;
}

trp_receive_fn
trpi_filter_receive(const trpi_cell *cell, const trp_msg *msg)
{
    if (msg == NULL || !trpi_type_is_ordinary(msg->priv_type)) {
        return NULL;
    }
    if (cell->extra != NULL && cell->extra->inactive) {
        return refuse_inactive;
    }
    if (cell->behaviour->will_receive != NULL && cell->behaviour->will_receive(msg) == 0) {
        return refuse_unwanted;
    }
    return NULL;
}

void
trpi_receive_mark(trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;
    bool filters =
        cell->behaviour->will_receive != NULL ||
        (extra != NULL && (extra->levels != NULL || extra->log_receive || extra->inactive));

    if (filters || (extra != NULL && extra->sample_one_in != 0)) {
        cell->marks |= TRPI_MARK_BECOME;
    } else {
        cell->marks &= (uint8_t)~TRPI_MARK_BECOME;
    }
    if (extra != NULL) {
        if (extra->sample_alone) {
            trpi_run_attention(cell); /* the present turn may rely on it (run-R8) */
        }
        extra->sample_alone = !filters && extra->sample_one_in != 0;
    }
}

void
trpi_filter_active_set(trpi_cell *cell, bool active)
{
    trpi_extra *extra = active ? cell->extra : trpi_extra_get(cell);

    if (extra != NULL) { /* out of memory: it stays active */
        extra->inactive = !active;
        trpi_receive_mark(cell);
    }
}

void
trpi_filter_active_send(trp_ctx *ctx, trp_ref ref, bool active)
{
    const trp_ref nobody = TRP_REF_NONE;

    trpi_sys_to(ctx, ref, TRPI_SYS_ACTIVE, active, nobody, 0, NULL);
}

/* ---- public ---------------------------------------------------------------------------------- */

static trp_err
active_order(trp_ctx *ctx, trp_ref ref, bool active)
{
    if (trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    if (ref.node != TRPI_NODE_SELF) {
        return TRP_EUNSUPPORTED;
    }
    trpi_filter_active_send(ctx, ref, active);
    return TRP_OK;
}

trp_err
trp_deactivate(trp_ctx *ctx, trp_ref ref)
{
    return active_order(ctx, ref, false);
}

trp_err
trp_activate(trp_ctx *ctx, trp_ref ref)
{
    return active_order(ctx, ref, true);
}

static trp_err
system_order(trp_system *system, trp_ref ref, bool active)
{
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = active_order(ctx, ref, active);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_system_deactivate(trp_system *system, trp_ref ref)
{
    return system_order(system, ref, false);
}

trp_err
trp_system_activate(trp_system *system, trp_ref ref)
{
    return system_order(system, ref, true);
}

/* ---- telling with an answer ------------------------------------------------------------------ */

/* Offer it to an actor of this system; cell NULL: of another. Takes msg, on success only. */
static inline trp_err
msg_offer(trp_ctx *ctx, trp_ref to, trpi_cell *cell, trp_msg *msg)
{
    const trp_behaviour *behaviour = trpi_look_behaviour(cell, to.generation);

    if (behaviour != NULL && behaviour->will_receive != NULL &&
        trpi_type_is_ordinary(msg->priv_type) && behaviour->will_receive(msg) == 0) {
        return TRP_EUNHANDLED;
    }
    if (cell != NULL &&
        atomic_load_explicit(&cell->kind, memory_order_relaxed) == TRPI_KIND_BOUNDED) {
        return trpi_bounded_tell(ctx, cell, to, msg, true);
    }
    trpi_send(ctx, to, msg);
    return TRP_OK;
}

trp_err
trpi_offer_msg(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    trpi_cell *cell = trpi_cell_peek(ctx, to);

    return trp_ref_is_none(to) || (to.node == TRPI_NODE_SELF && cell == NULL)
               ? TRP_ENOENT
               : msg_offer(ctx, to, cell, msg);
}

trp_err
trpi_offer(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
           size_t bytes)
{
    trpi_cell *cell = trpi_cell_peek(ctx, to);
    trp_msg *msg;
    trp_err err;

    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    if (trp_ref_is_none(to) || (to.node == TRPI_NODE_SELF && cell == NULL)) {
        return TRP_ENOENT;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (!trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    msg = trpi_tell_make(ctx, to, sender, type, payload, bytes);
    if (msg == NULL) {
        return TRP_ENOMEM;
    }
    err = msg_offer(ctx, to, cell, msg);
    if (err != TRP_OK) {
        trpi_msg_free(ctx->cache, msg);
    }
    return err;
}

bool
trpi_has_ended(trp_ctx *ctx, trp_ref ref)
{
    return ref.node == TRPI_NODE_SELF && trpi_cell_peek(ctx, ref) == NULL;
}

/* ---- a queue of one's own -------------------------------------------------------------------- */

typedef struct own_call {
    trp_err (*fn)(trp_ctx *ctx, void *arg);
    void *arg;
    bool returned;
} own_call;

static trp_err
call_own(trp_ctx *ctx, void *arg)
{
    own_call *call = arg;
    trp_err err = call->fn(ctx, call->arg);

    call->returned = true;
    return err;
}

trp_err
trpi_handle_as(trp_ctx *ctx, const trp_msg *msg, const trpi_trail *trail,
               trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg)
{
    trpi_trailer room;
    const trpi_trailer *trailer = trpi_trail_below(ctx, trail, msg, &room);
    const trp_msg *outer = ctx->msg;
    trp_err err;

    ctx->msg = msg; /* on a jump the loop of turns sets the next one */
    if (trailer == NULL) {
        err = fn(ctx, arg);
    } else {
        const trp_msg head = *msg; /* of what fn may free */
        own_call call = { fn, arg, false };
        trpi_handling handling = trpi_handling_begin(ctx, trailer);

        err = trpi_run_guarded(ctx, call_own, &call); /* trailer-I1 */
        trpi_handling_end(ctx, &handling, &head, err);
        if (!call.returned) {
            longjmp(*ctx->jump, 1); /* ctx->failure says why */
        }
    }
    ctx->msg = outer;
    return err;
}

const trp_behaviour *
trpi_ctx_behaviour(const trp_ctx *ctx)
{
    return ctx->cell->behaviour;
}

trp_err
trpi_guarded(trp_ctx *ctx, trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg, char *why,
             size_t why_bytes)
{
    trp_err err = trpi_run_guarded(ctx, fn, arg);

    if (err != TRP_OK) {
        (void)snprintf(why, why_bytes, "%s", ctx->failure.reason);
    }
    return err;
}

void
trpi_fail_as(trp_ctx *ctx, trp_err err, const char *format, ...)
{
    char reason[TRP_FAILURE_REASON_BYTES];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(reason, sizeof reason, format, list); /* cut is fine */
    va_end(list);
    trpi_life_throw(ctx, err, "%s", reason);
}

/* ---- calling instead of telling -------------------------------------------------------------- */

trp_err
trpi_receive_inside(trp_ctx *ctx, trp_receive_fn receive, void *state, trp_ref sender,
                    const trp_type *type, const void *payload, size_t bytes)
{
    struct {
        trp_msg header;
        trp_msg_priv_moved moved;
    } image = { .moved = { (void *)(uintptr_t)payload, bytes, NULL, NULL } };
    const trp_msg *outer = ctx->msg;
    trp_err err;

    _Static_assert(sizeof(trp_msg) == TRPI_MSG_HEADER_BYTES, "what is moved follows the header");
    if ((type->flags & TRP_TYPE_VARIABLE) == 0) {
        image.moved.bytes = type->bytes;
    } else if (bytes < type->bytes) {
        return TRP_EINVAL;
    }
    image.header.priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE;
    image.header.priv_to_slot = ctx->self.slot;
    image.header.priv_to_generation = ctx->self.generation;
    image.header.priv_type = (uint16_t)type->number;
    trpi_msg_sender_set(&image.header, sender);
    ctx->msg = &image.header;
    err = receive(ctx, state, &image.header);
    ctx->msg = outer;
    return err;
}
