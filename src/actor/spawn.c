/* spawn.c - starting actors: the checks, the dispatcher, and trp_spawn.
 *
 * Why.     A spawn is local and cheap: take a slot, fill in line B, publish the generation, hand
 *          the task in. There is no create message; the first turn starts the actor.
 * Tests.   tests/unit/actor/spawn_test.c
 */
#include <string.h>

#include "actor/box.h"
#include "actor/dispatcher.h"
#include "actor/life.h"
#include "actor/run.h"
#include "base/assert.h"
#include "base/payload.h"


/* A struct of a newer caller: what we do not know must be zero. One of an older caller is no
 * version of ours. */
static bool
size_is_valid(const void *options, size_t size, size_t known)
{
    const unsigned char *bytes = options;

    if (size < known) {
        return false;
    }
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool
options_are_valid(const trp_spawn_options *options)
{
    if (!size_is_valid(options, options->size, sizeof *options)) {
        return false;
    }
    if (options->args_type == NULL) {
        return options->args == NULL && options->args_bytes == 0;
    }
    if (!trpi_payload_fits(options->args_type, options->args_bytes)) {
        return false;
    }
    return options->args != NULL || options->args_bytes == 0;
}

/* Does every protocol have its numbers? Then there is nothing to do, and no lock to take. */
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
    return behaviour != NULL && size_is_valid(behaviour, behaviour->size, sizeof *behaviour) &&
           behaviour->receive != NULL && behaviour->name != NULL &&
           behaviour->state_bytes <= TRP_STATE_BYTES_MAX &&
           (behaviour->strategy == NULL ||
            behaviour->strategy->size >= sizeof *behaviour->strategy);
}

trp_err
trpi_spawn_check(const trp_behaviour *behaviour, const trp_spawn_options *options)
{
    if (!trpi_behaviour_is_valid(behaviour)) {
        return TRP_EINVAL;
    }
    if (options != NULL) {
        if (!options_are_valid(options)) {
            return TRP_EINVAL;
        }
        if (options->args_type != NULL && options->args_type->number == 0) {
            return TRP_ENOTYPE;
        }
    }
    if (behaviour->args_type != NULL &&
        (options == NULL || options->args_type != behaviour->args_type)) {
        return TRP_EINVAL; /* here, and not at its first start (SYS-29) */
    }
    if (behaviour->accepts != NULL && !are_registered(behaviour->accepts)) {
        return trpi_types_accept(behaviour->accepts);
    }
    return TRP_OK;
}

trp_err
trpi_spawn_dispatcher(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options,
                      const char *default_dispatcher)
{
    const char *name =
        options != NULL && options->dispatcher != NULL ? options->dispatcher : default_dispatcher;
    trpi_dispatcher *dispatcher;
    trp_err err = TRP_OK;

    if (trpi_cell_is_deputy(cell)) { /* what is said of them is said of its actor */
        return TRP_OK;
    }
    if (name != NULL) {
        dispatcher = trpi_dispatcher_find(ctx->system, name);
        err = dispatcher != NULL ? trpi_dispatcher_join(ctx, cell, dispatcher)
                                 : TRP_ENOENT; /* nothing falls back to another one (MSC-05) */
    }
    if (err == TRP_OK && cell->behaviour != NULL) {
        err = trpi_box_choose(ctx, cell, options);
        if (err != TRP_OK) {
            trpi_dispatcher_leave(ctx, cell);
        }
    }
    return err;
}

/* What was taken for a cell that will not live. */
void
trpi_spawn_dispatcher_undo(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_box_undo(ctx, cell);
    trpi_dispatcher_leave(ctx, cell);
}

trp_err
trp_spawn(trp_ctx *ctx, const trp_behaviour *behaviour, const trp_spawn_options *options,
          trp_ref *ret_ref)
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
    *ret_ref = trpi_slot_ref(cell);
    trpi_slot_publish(ctx, cell, trpi_box_kind(cell));
    if (--ctx->told_left <= 0) {
        ctx->turn_left = 1; /* R6 of run.c: who is born is told something */
    }
    return TRP_OK;
}
