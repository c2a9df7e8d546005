/* spawn.c - starting actors: the checks, the dispatcher, and trp_spawn.
 *
 * Why.     A spawn is local and cheap: take a slot, fill in line B, publish the generation, hand
 *          the task in. There is no create message; the first turn starts the actor.
 * Tests.   tests/unit/actor/spawn_test.c
 */
#include <stdio.h>
#include <string.h>

#include "actor/kernel/misuse.h"
#include "actor/kernel/bounded_mailbox.h"
#include "actor/kernel/dispatcher.h"
#include "actor/kernel/guard.h"
#include "actor/life/life.h"
#include "actor/kernel/run.h"
#include "base/assert.h"
#include "base/payload.h"
#include "base/sized.h"

static bool
options_are_valid(const trp_spawn_options *options)
{
    size_t bytes;

    if (options->args_type == NULL) {
        return options->args == NULL && options->args_bytes == 0;
    }
    bytes = trpi_payload_bytes(options->args_type, options->args_bytes);
    return trpi_payload_fits(options->args_type, bytes) && (options->args != NULL || bytes == 0);
}

/* Do the types of every protocol have numbers? Then nothing is to be registered, and no lock
 * taken. */
static bool
are_registered(const trp_protocol *const *accepts)
{
    for (; *accepts != NULL; accepts++) {
        for (uint32_t i = 0; i < (*accepts)->types_count; i++) {
            if (__atomic_load_n(&(*accepts)->types[i]->number, __ATOMIC_RELAXED) == 0) {
                return false;
            }
        }
    }
    return true;
}

bool
trpi_behaviour_is_valid(const trp_behaviour *behaviour)
{
    return behaviour != NULL && TRPI_SIZED_FITS(behaviour, will_receive) &&
           behaviour->receive != NULL && behaviour->name != NULL &&
           behaviour->state_bytes <= TRP_STATE_BYTES_MAX &&
           (behaviour->strategy == NULL || TRPI_SIZED_FITS(behaviour->strategy, log));
}

/* Is it that type, or another copy of its declaration? */
static bool
is_type(const trp_type *type, const trp_type *wanted)
{
    return type == wanted || (type != NULL && type->number != 0 && type->number == wanted->number);
}

trp_err
trpi_spawn_check(const trp_behaviour *behaviour, const trp_spawn_options *options)
{
    trp_err err = TRP_OK;

    if (!trpi_behaviour_is_valid(behaviour)) {
        return TRP_EINVAL;
    }
    if (behaviour->accepts != NULL && !are_registered(behaviour->accepts)) {
        /* first: the arguments may be of one of these types */
        err = trpi_types_accept(behaviour->accepts);
    }
    if (err != TRP_OK) {
        return err;
    }
    if (options != NULL) {
        if (!options_are_valid(options)) {
            return TRP_EINVAL;
        }
        if (options->args_type != NULL && options->args_type->number == 0) {
            return TRP_ENOTYPE;
        }
    }
    return behaviour->args_type != NULL &&
                   (options == NULL || !is_type(options->args_type, behaviour->args_type))
               ? TRP_EINVAL /* here, and not at its first start (SYS-29) */
               : TRP_OK;
}

/* Write the reason, such as "the type t of its arguments is not registered"; false: the error says
 * it all. */
static bool
refusal_text(trp_system *system, const trp_behaviour *behaviour, const trp_spawn_options *options,
             trp_err err, char *buffer, size_t bytes)
{
    const trp_type *args_type = options == NULL ? NULL : options->args_type;

    buffer[0] = 0;
    if (err == TRP_ENOTYPE && args_type != NULL) {
        (void)snprintf(buffer, bytes, "the type %s of its arguments is not registered",
                       args_type->name);
    } else if (err == TRP_ENOENT && options != NULL && options->dispatcher != NULL &&
               trpi_dispatcher_find(system, options->dispatcher) == NULL) {
        (void)snprintf(buffer, bytes, "no dispatcher has the id \"%s\"", options->dispatcher);
    } else if (err == TRP_ENOENT && options != NULL && options->mailbox != NULL) {
        (void)snprintf(buffer, bytes, "no mailbox has the id \"%s\"", options->mailbox);
    } else if (err == TRP_EINVAL && behaviour->args_type != NULL &&
               !is_type(args_type, behaviour->args_type)) {
        (void)snprintf(buffer, bytes, "its arguments are to be of type %s, not %s",
                       behaviour->args_type->name, args_type == NULL ? "none" : args_type->name);
    } else if (err == TRP_EINVAL && args_type != NULL &&
               !trpi_payload_fits(args_type, trpi_payload_bytes(args_type, options->args_bytes))) {
        (void)snprintf(buffer, bytes, "its arguments have %zu bytes, their type %s has %u",
                       options->args_bytes, args_type->name, (unsigned)args_type->bytes);
    } else if (err == TRP_EINVAL && options != NULL && options->name != NULL &&
               !trpi_name_is_valid(options->name, strnlen(options->name, TRP_NAME_BYTES_MAX + 1))) {
        (void)snprintf(buffer, bytes, "\"%.64s\" is no name of an actor", options->name);
    }
    return buffer[0] != 0;
}

#define REFUSALS_SAID_MAX 100u /* of a system */

void
trpi_spawn_refused(trp_system *system, const trp_behaviour *behaviour,
                   const trp_spawn_options *options, trp_err err)
{
    char text[512];

    if ((err == TRP_ENOTYPE || err == TRP_ENOENT || err == TRP_EINVAL) &&
        trpi_behaviour_is_valid(behaviour) &&
        /* relaxed: a number that guards nothing */
        atomic_load_explicit(&system->refusals_said, memory_order_relaxed) < REFUSALS_SAID_MAX &&
        refusal_text(system, behaviour, options, err, text, sizeof text)) {
        (void)atomic_fetch_add_explicit(&system->refusals_said, 1, memory_order_relaxed);
        trpi_log(system, TRP_LOG_WARNING, "spawn", "cannot start an actor of behaviour %s: %s",
                 behaviour->name, text);
    }
}

trp_err
trpi_spawn_dispatcher(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options,
                      const char *default_dispatcher)
{
    const char *name =
        options != NULL && options->dispatcher != NULL ? options->dispatcher : default_dispatcher;
    trpi_dispatcher *dispatcher;
    trp_err err = TRP_OK;

    if (trpi_cell_is_child_proxy(cell)) { /* the options are for its actor */
        return TRP_OK;
    }
    if (name != NULL) {
        dispatcher = trpi_dispatcher_find(ctx->system, name);
        err = dispatcher != NULL ? trpi_dispatcher_join(ctx, cell, dispatcher)
                                 /* there is no fallback to another dispatcher (MSC-05) */
                                 : TRP_ENOENT;
    }
    if (err == TRP_OK && cell->behaviour != NULL) {
        err = trpi_mailbox_choose(ctx, cell, options);
        if (err != TRP_OK) {
            trpi_dispatcher_leave(ctx, cell);
        }
    }
    return err;
}

/* Give back the resources of a cell that will not be published. */
void
trpi_spawn_dispatcher_undo(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_mailbox_undo(ctx, cell);
    trpi_dispatcher_leave(ctx, cell);
}

/* How a child is made that is no plain one; zero: it is. */
typedef struct making {
    uint8_t marks;
    trp_err (*prepare)(void *arg, trp_ref ref); /* NULL: nothing to prepare */
    void *arg;
} making;

static trp_err
child_spawn(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
            const making *how, trp_ref *ret_ref)
{
    trp_spawn_options deployed;
    trpi_cell *cell;
    trp_err err;

    if (ctx == NULL || ctx->cell == NULL || trpi_cell_is_special(ctx->cell) || ret_ref == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_spawn_check(behaviour, options);
    if (err == TRP_OK) {
        err = trpi_slot_acquire(ctx, &cell);
    }
    if (err != TRP_OK) {
        return err;
    }
    if (ctx->system->settings != NULL) {
        options = trpi_settings_deploy(ctx, ctx->cell, options, &deployed);
    }
    err = trpi_spawn_conceive(ctx, ctx->cell, cell, behaviour, options);
    if (err != TRP_OK) {
        return err;
    }
    cell->marks |= how->marks;
    *ret_ref = trpi_slot_ref(cell);
    err = how->prepare == NULL ? TRP_OK : how->prepare(how->arg, *ret_ref);
    if (err != TRP_OK) {
        trpi_child_abandon(ctx, ctx->cell, cell);
        return err;
    }
    trpi_slot_publish(ctx, cell, trpi_mailbox_cell_kind(cell));
    if (--ctx->turn.send_budget_left <= 0) {
        ctx->turn.left = 0; /* run-R6: a new actor is usually sent a message */
    }
    return TRP_OK;
}

static trp_err
spawn_marked(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
             const making *how, trp_ref *ret_ref)
{
    trp_spawn_options own;
    trp_err err;

    if (!TRPI_SIZED_TAKE(options, &own, node)) {
        return TRP_EINVAL;
    }
    err = child_spawn(ctx, behaviour, options, how, ret_ref);
    if (err != TRP_OK && ctx != NULL) {
        trpi_spawn_refused(ctx->system, behaviour, options, err);
    }
    return err;
}

trp_err
trp_spawn(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
          trp_ref *ret_ref)
{
    static const making plain = { 0, NULL, NULL };

    TRPI_USE(ctx);
    return spawn_marked(ctx, behaviour, options, &plain, ret_ref);
}

trp_err
trpi_spawn_guarded(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
                   trp_ref *ret_ref)
{
    static const making guarded = { TRPI_MARK_GUARDED, NULL, NULL };

    return spawn_marked(ctx, behaviour, options, &guarded, ret_ref);
}

trp_err
trpi_spawn_prepared(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
                    bool guarded, trp_err (*prepare)(void *arg, trp_ref ref), void *arg,
                    trp_ref *ret_ref)
{
    making how = { guarded ? TRPI_MARK_GUARDED : 0, prepare, arg };

    return spawn_marked(ctx, behaviour, options, &how, ret_ref);
}
