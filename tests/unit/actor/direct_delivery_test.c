/* direct_delivery_test.c - two actors that talk to each other on one worker: a message that is
 * written directly to the retained actor is like any other (mailbox-M5). */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <string.h>

#include <troupe/mailbox.h>
#include <troupe/troupe.h>

#include "actor/kernel/mailbox.h"
#include "actor/kernel/run.h"

#define ECHO (-1)
#define TOLD 3
#define LARGE_BYTES 100 /* more than a line */

/* The talker's acts once the worker retains the listener: tell it 0, 1, 2, and ... */
typedef enum then { NOTHING, STOPS_IT, TELLS_ANOTHER_FIRST } then_what;

static trp_system *system_;
static trp_ref talker, listener, other;
static then_what then;
static bool fails, large_first, alone; /* one worker */
static _Atomic bool may_hand; /* a worker without membarrier pushes: no fence is cheap enough */
static _Atomic uint32_t handed, heard[16], heard_count, waiting_at_end;
static _Atomic uint64_t others;

static void
note(const trp_msg *msg)
{
    int64_t value;

    memcpy(&value, trp_msg_payload(msg), sizeof value);
    atomic_store(&heard[atomic_load(&heard_count) % 16], (uint32_t)value);
    atomic_fetch_add(&heard_count, 1); /* the thread that waits for it reads what was heard */
}

static trp_err
listen(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t value;

    (void)state;
    memcpy(&value, trp_msg_payload(msg), sizeof value);
    if (value == ECHO) {
        trp_tell(ctx, trp_sender(ctx), &trp_i64_type, &value, sizeof value);
        return TRP_OK;
    }
    note(msg);
    return fails && value == 0 ? TRP_EINVAL : TRP_OK;
}

static void
listener_stopped(trp_ctx *ctx, void *state)
{
    (void)state;
    atomic_store(&waiting_at_end, trp_mailbox_size(ctx)); /* none was looked at yet */
}

static trp_err
hear(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&others, 1);
    return TRP_OK;
}

static void
tell(trp_ctx *ctx, trp_ref to, int64_t value, bool large)
{
    char bytes[LARGE_BYTES] = { 0 };

    memcpy(bytes, &value, sizeof value);
    trp_tell(ctx, to, large ? &trp_bytes_type : &trp_i64_type, bytes,
             large ? sizeof bytes : sizeof value);
}

static trp_err
talk(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trpi_cell *cell = trpi_cell_peek(ctx, listener);

    (void)state;
    (void)msg;
    /* Now and then other actors run in between; the listener is retained again soon. */
    if (ctx->handoff_slot != listener.slot || atomic_load(&ctx->handoff->task) != &cell->task) {
        tell(ctx, listener, ECHO, false);
        return TRP_OK;
    }
    may_hand = !ctx->handoff->fenced;
    if (then == TELLS_ANOTHER_FIRST) {
        tell(ctx, other, 0, false);
    }
    for (int64_t i = 0; i < TOLD; i++) {
        tell(ctx, listener, i, large_first && i == 0);
        if (i == 0 && alone) { /* else a thief may be at the cell */
            atomic_store(&handed, trpi_mailbox_has_direct(cell));
        }
    }
    if (then == STOPS_IT) {
        trp_stop(ctx, listener);
    }
    return TRP_OK;
}

static const trp_behaviour talking = { .size = sizeof talking, .name = "talk", .receive = talk };
static const trp_behaviour hearing = { .size = sizeof hearing, .name = "hear", .receive = hear };
static const trp_behaviour listening = {
    .size = sizeof listening, .name = "listen", .receive = listen, .post_stop = listener_stopped
};

static uint64_t
dead(void)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system_, &stats);
    return stats.dead_letters[TRP_DEAD_STOPPED];
}

/* Until what the talker told has been handled, or died. */
static void
begin(then_what what, uint32_t workers)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    then = what;
    alone = workers == 1;
    for (int i = 0; i < 16; i++) {
        atomic_store(&heard[i], UINT32_MAX);
    }
    atomic_store(&handed, 0);
    atomic_store(&heard_count, 0);
    atomic_store(&waiting_at_end, 0);
    atomic_store(&others, 0);
    options.workers = workers;
    options.log_level = TRP_LOG_OFF;
    UNIT_REQUIRE(trp_system_new("handed", &options, &system_) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system_, &hearing, NULL, &other) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system_, &listening, NULL, &listener) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system_, &talking, NULL, &talker) == TRP_OK);
    trp_system_tell(system_, talker, &trp_i64_type, &(int64_t){ 0 }, sizeof(int64_t));
    UNIT_WAIT(atomic_load(&heard_count) + dead() == TOLD, 60000);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static void
in_order(uint32_t count)
{
    UNIT_EQUAL(atomic_load(&heard_count), count);
    for (uint32_t i = 0; i < count; i++) {
        UNIT_EQUAL(atomic_load(&heard[i]), i);
    }
}

/* MSG-7 */
static void
what_is_handed_over_comes_before_what_is_told_after_it(void)
{
    begin(NOTHING, 1);
    UNIT_EQUAL(atomic_load(&handed), may_hand);
    in_order(TOLD);
    end();
    begin(TELLS_ANOTHER_FIRST, 1);
    UNIT_EQUAL(atomic_load(&handed), may_hand);
    in_order(TOLD);
    UNIT_WAIT(atomic_load(&others) == 1, 60000);
    end();
}

static void
what_is_larger_than_a_line_is_pushed_and_the_order_is_the_same(void)
{
    large_first = true;
    begin(NOTHING, 1);
    UNIT_EQUAL(atomic_load(&handed), 0);
    in_order(TOLD);
    end();
    large_first = false;
}

/* LIFE-9 */
static void
what_is_handed_to_one_that_is_stopped_is_a_dead_letter(void)
{
    begin(STOPS_IT, 1);
    UNIT_EQUAL(atomic_load(&handed), may_hand);
    UNIT_EQUAL(atomic_load(&waiting_at_end),
               TOLD); /* with the message that was delivered directly */
    UNIT_EQUAL(atomic_load(&heard_count), 0);
    UNIT_EQUAL(dead(), TOLD);
    end();
}

static void
one_that_fails_with_what_was_handed_over_goes_on_with_the_next(void)
{
    fails = true;
    begin(NOTHING, 1);
    UNIT_EQUAL(atomic_load(&handed), may_hand);
    in_order(TOLD);
    UNIT_EQUAL(dead(), 0);
    end();
    fails = false;
}

/* With a thief, which may steal the retained task at any moment. */
static void
order_holds_with_other_workers(void)
{
    for (int round = 0; round < 20; round++) {
        begin(round % 2 == 0 ? NOTHING : TELLS_ANOTHER_FIRST, 4);
        in_order(TOLD);
        end();
    }
}

UNIT_BEGIN("direct_delivery")
UNIT(what_is_handed_over_comes_before_what_is_told_after_it)
UNIT(what_is_larger_than_a_line_is_pushed_and_the_order_is_the_same)
UNIT(what_is_handed_to_one_that_is_stopped_is_a_dead_letter)
UNIT(one_that_fails_with_what_was_handed_over_goes_on_with_the_next)
UNIT(order_holds_with_other_workers)
UNIT_END
