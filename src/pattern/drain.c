/* drain.c - before a system ends, its actors handle the messages in their mailboxes.
 *
 * Why.     A node that has left gets no new messages, but its actors may still have some: stopped
 *          at once, they would turn them into dead letters, and callers of an ask would wait for
 *          nothing.
 * Shape.   an actor below /system: pause, for messages on their way -> find the actors with
 *          messages -> send each Identify, which is answered behind those messages -> again, until
 *          none has any
 * Must hold.
 *   drain-D1  The drain waits a bounded number of rounds for an actor that is never idle (it tells
 *       itself again and again), and no longer for one that is seen to be stuck, failed or gone.
 * Limits.  DRAIN_ROUNDS_MAX, DRAIN_ACTORS_MAX in one round; the others come in the next round.
 * Not here. The deadline: that of the phase in which it runs (troupe/shutdown.h).
 * Tests.   tests/unit/pattern/drain_test.c, tests/multinode/routers.sh
 * Sources. Decision 120.
 */
#include <string.h>

#include "actor/actor.h"
#include "base/assert.h"
#include "pattern/pattern.h"

#define DRAIN_ROUNDS_MAX 8u
#define DRAIN_ACTORS_MAX 4096u
#define DRAIN_LOOK_MS 20u /* between two checks of actors that do not answer */
#define DRAIN_TIMER 1u

typedef struct drain_order {
    uint64_t pause_ms;
    void (*done)(void *arg);
    void *arg;
} drain_order;

typedef struct drain {
    drain_order order;
    uint32_t rounds;
    uint32_t count;
    trp_ref *waiting; /* DRAIN_ACTORS_MAX of them, the actor's memory */
} drain;

static void
look_later(trp_ctx *ctx, uint64_t delay_ms)
{
    uint8_t zero = 0;

    if (trp_timer_once(ctx, DRAIN_TIMER, (uint32_t)delay_ms, &trp_bytes_type, &zero, 1) != TRP_OK) {
        trp_fail(ctx, TRP_ENOMEM, "no memory for a timer");
    }
}

static void
waiting_remove(drain *d, uint32_t index)
{
    d->waiting[index] = d->waiting[--d->count];
}

/* Drop actors that will not answer: they have no messages left, or will never handle them
 * (drain-D1). */
static void
check_silent(trp_ctx *ctx, drain *d)
{
    for (uint32_t i = d->count; i-- > 0;) {
        trpi_look look;

        trpi_actor_look(ctx, d->waiting[i], &look);
        if (!look.alive || look.suspended || (look.empty && look.pending == 0)) {
            waiting_remove(d, i);
        }
    }
}

static void
next_round(trp_ctx *ctx, drain *d)
{
    trp_identify question = { 0 };

    while (d->count == 0) {
        if (d->rounds++ < DRAIN_ROUNDS_MAX) {
            d->count = trpi_actors_busy(ctx, d->waiting, DRAIN_ACTORS_MAX);
        }
        if (d->count == 0) {
            trp_stop(ctx, trp_self(ctx));
            return;
        }
        for (uint32_t i = 0; i < d->count; i++) {
            trp_tell(ctx, d->waiting[i], &trp_identify_type, &question, sizeof question);
        }
    }
    look_later(ctx, DRAIN_LOOK_MS);
}

static trp_err
drain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    drain *d = state;

    if (trp_msg_is(msg, &trp_actor_identity_type)) {
        const trp_actor_identity *answer = trp_msg_payload(msg);

        for (uint32_t i = d->count; i-- > 0;) {
            if (trp_ref_equal(d->waiting[i], answer->ref)) {
                waiting_remove(d, i);
            }
        }
        if (d->count > 0) {
            return TRP_OK;
        }
    } else {
        check_silent(ctx, d);
    }
    next_round(ctx, d);
    return TRP_OK;
}

static trp_err
drain_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    drain *d = state;

    memcpy(&d->order, trp_msg_payload(args), sizeof d->order);
    d->waiting = trp_alloc(ctx, DRAIN_ACTORS_MAX * sizeof d->waiting[0]);
    look_later(ctx, d->order.pause_ms);
    return TRP_OK;
}

static void
drain_stop(trp_ctx *ctx, void *state)
{
    const drain *d = state;

    (void)ctx;
    if (d->order.done != NULL) {
        d->order.done(d->order.arg);
    }
}

trp_err
trpi_drain_start(trp_system *system, uint64_t pause_ms, void (*done)(void *arg), void *arg)
{
    static const trp_behaviour behaviour = { .size = sizeof(trp_behaviour),
                                             .name = "drain",
                                             .version = 1,
                                             .state_bytes = sizeof(drain),
                                             .receive = drain_receive,
                                             .pre_start = drain_start,
                                             .post_stop = drain_stop };
    const drain_order order = { pause_ms, done, arg };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    options.args_type = &trp_bytes_type;
    options.args = &order;
    options.args_bytes = sizeof order;
    return trpi_system_spawn_internal(system, &behaviour, &options, &ref);
}
