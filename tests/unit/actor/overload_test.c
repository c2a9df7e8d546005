/* overload_test.c - a sender that outruns its receiver is throttled, and actors that overload each
 * other make progress. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <time.h>

#include <troupe/troupe.h>

#include "actor/actor.h"
#include "actor/kernel/bounded_mailbox.h"

#define TURN 500 /* tells before a producer tells itself to go on */
#define PRODUCERS 10
#define ROUNDS 40
#define FLOOD (PRODUCERS * ROUNDS * TURN)

static trp_system *system_;

static void
start(uint32_t workers)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = workers;
    options.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new("overload", &options, &system_) == TRP_OK);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static trp_ref
spawn_boxed(const trp_behaviour *behaviour, const char *mailbox)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.mailbox = mailbox;
    UNIT_REQUIRE(trp_system_spawn(system_, behaviour, &options, &ref) == TRP_OK);
    return ref;
}

static trp_ref
spawn(const trp_behaviour *behaviour)
{
    return spawn_boxed(behaviour, NULL);
}

static void
tell(trp_ref to, int64_t value)
{
    trp_system_tell(system_, to, &trp_i64_type, &value, sizeof value);
}

/* ---- producers and a receiver ---------------------------------------------------------------- */

static _Atomic int64_t sent, received, waiting_max;
static _Atomic uint64_t last_us, paused_us; /* the receiver's last message; gaps between them */
static trp_ref receiver_ref;

static uint64_t
now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static trp_err
receiver_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t waiting = atomic_load(&sent) - atomic_fetch_add(&received, 1);
    uint64_t now = now_us(), gap = now - atomic_load(&last_us);

    (void)ctx;
    (void)state;
    (void)msg;
    atomic_store(&last_us, now);
    if (gap > 500) {
        atomic_fetch_add(&paused_us, gap);
    }
    if (waiting > atomic_load(&waiting_max)) {
        atomic_store(&waiting_max, waiting);
    }
    return TRP_OK;
}

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t rounds = *(const int64_t *)trp_msg_payload(msg) - 1;

    (void)state;
    for (int64_t i = 0; i < TURN; i++) {
        trp_tell(ctx, receiver_ref, &trp_i64_type, &i, sizeof i);
    }
    atomic_fetch_add(&sent, TURN);
    if (rounds > 0) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &rounds, sizeof rounds);
    }
    return TRP_OK;
}

static const trp_behaviour receiver = { .size = sizeof(trp_behaviour),
                                        .name = "receiver",
                                        .receive = receiver_receive };
static const trp_behaviour producer = { .size = sizeof(trp_behaviour),
                                        .name = "producer",
                                        .receive = producer_receive };

static int32_t
all_equal(void *arg, const trp_msg *msg)
{
    (void)arg;
    (void)msg;
    return 0;
}

/* The producers together are ten times as fast; without deferral nearly all their messages would
 * wait at once. Each may tell one turn in a millisecond, which is much while the receiver's thread
 * has no core: the messages of these gaps are allowed for. */
static void
flood(bool boxed, trp_mailbox_kind kind)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
        int64_t let_pass;

        options.kind = kind;
        options.priority = kind == TRP_MAILBOX_KIND_PRIORITY ? all_equal : NULL;
        atomic_store(&sent, 0);
        atomic_store(&received, 0);
        atomic_store(&waiting_max, 0);
        atomic_store(&paused_us, 0);
        atomic_store(&last_us, now_us());
        start(workers);
        UNIT_EQUAL(boxed ? trp_mailbox_register(system_, "own", &options) : TRP_OK, TRP_OK);
        receiver_ref = spawn_boxed(&receiver, boxed ? "own" : NULL);
        for (int i = 0; i < PRODUCERS; i++) {
            tell(spawn(&producer), ROUNDS);
        }
        UNIT_WAIT(atomic_load(&received) == FLOOD, 20000);
        let_pass = 2 * PRODUCERS * TURN * (int64_t)(atomic_load(&paused_us) / 1000);
        UNIT_TRUE(atomic_load(&waiting_max) < FLOOD / 3 + let_pass);
        end();
    }
}

/* Back-pressure */
static void
a_flood_is_slowed_to_its_receiver(void)
{
    flood(false, 0);
}

/* MBOX-5: messages that have left the queue for the mailbox's order are a backlog, too */
static void
a_flood_is_slowed_to_a_mailbox_with_an_order_of_its_own(void)
{
    flood(true, TRP_MAILBOX_KIND_PRIORITY);
    flood(true, TRP_MAILBOX_KIND_CONTROL_AWARE);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

#define TOKENS 2000 /* of each: many times a batch */
#define HOPS 20

static trp_ref cycle_refs[3];
static _Atomic int64_t ended, flooded;

static trp_err
cycle_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t hops = *(const int64_t *)trp_msg_payload(msg) - 1;
    int next = 0;

    (void)state;
    if (hops == 0) {
        atomic_fetch_add(&ended, 1);
        return TRP_OK;
    }
    while (!trp_ref_equal(cycle_refs[next], trp_self(ctx))) {
        next++;
    }
    trp_tell(ctx, cycle_refs[(next + 1) % 3], &trp_i64_type, &hops, sizeof hops);
    return TRP_OK;
}

static const trp_behaviour cycle = { .size = sizeof(trp_behaviour),
                                     .name = "cycle",
                                     .receive = cycle_receive };

/* Back-pressure: no deadlock in cycles. Each has a mailbox of many batches and tells another
 * that has one too. */
static void
three_that_overload_one_another_in_a_circle_go_on(void)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        atomic_store(&ended, 0);
        start(workers);
        for (int i = 0; i < 3; i++) {
            cycle_refs[i] = spawn(&cycle);
        }
        for (int i = 0; i < 3 * TOKENS; i++) {
            tell(cycle_refs[i % 3], HOPS);
        }
        UNIT_WAIT(atomic_load(&ended) == 3 * TOKENS, 20000);
        end();
    }
}

/* Positive: a message of the other's flood. Else an order to flood the other, that many times. */
static trp_err
rival_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t value = *(const int64_t *)trp_msg_payload(msg);
    trp_ref other = cycle_refs[trp_ref_equal(cycle_refs[0], trp_self(ctx)) ? 1 : 0];

    (void)state;
    if (value > 0) {
        atomic_fetch_add(&flooded, 1);
        return TRP_OK;
    }
    for (int64_t i = 1; i <= TURN; i++) {
        trp_tell(ctx, other, &trp_i64_type, &i, sizeof i);
    }
    if (++value < 0) {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &value, sizeof value);
    }
    return TRP_OK;
}

static const trp_behaviour rival = { .size = sizeof(trp_behaviour),
                                     .name = "rival",
                                     .receive = rival_receive };

static void
two_that_flood_each_other_go_on(void)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        atomic_store(&flooded, 0);
        start(workers);
        cycle_refs[0] = spawn(&rival);
        cycle_refs[1] = spawn(&rival);
        tell(cycle_refs[0], -100);
        tell(cycle_refs[1], -100);
        UNIT_WAIT(atomic_load(&flooded) == 2 * 100 * TURN, 20000);
        end();
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

#define CHILDREN 20000

static _Atomic int64_t answers;

static trp_err
child_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static const trp_behaviour child = { .size = sizeof(trp_behaviour),
                                     .name = "child",
                                     .receive = child_receive };

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t value = 1;

    (void)state;
    if (!trp_ref_is_none(trp_sender(ctx))) {
        atomic_fetch_add(&answers, *(const int64_t *)trp_msg_payload(msg));
        return TRP_OK;
    }
    for (int i = 0; i < CHILDREN; i++) {
        trp_ref ref;

        if (trp_spawn(ctx, &child, NULL, &ref) != TRP_OK) {
            return TRP_EFAILED;
        }
        trp_tell(ctx, ref, &trp_i64_type, &value, sizeof value);
    }
    return TRP_OK;
}

static const trp_behaviour parent = { .size = sizeof(trp_behaviour),
                                      .name = "parent",
                                      .receive = parent_receive };

/* Decision 16: actors that only answer are not deferred, or come back; no message is lost. */
static void
twenty_thousand_children_answer_their_overloaded_parent(void)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        atomic_store(&answers, 0);
        start(workers);
        tell(spawn(&parent), 0);
        UNIT_WAIT(atomic_load(&answers) == CHILDREN, 20000);
        end();
    }
}

/* ---- senders with more messages -------------------------------------------------------------- */

static _Atomic bool held, let_go, behind[3];
static _Atomic uint32_t looked;

static trp_err
look_behind(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (atomic_load(&looked) == 0) {
        atomic_store(&held, true);
        while (!atomic_load(&let_go)) {
            unit_pause();
        }
    }
    atomic_store(&behind[atomic_load(&looked)], trpi_bounded_has_more(ctx->cell));
    atomic_fetch_add(&looked, 1);
    return TRP_OK;
}
static const trp_behaviour looker = {
    .size = sizeof(trp_behaviour), .name = "looker", .version = 1, .receive = look_behind
};

/* Only a sender with an empty mailbox may go idle although it overloads another (throttle.c).
 * Messages that its mailbox has sorted are not in the queue any more, but still wait. */
static void
what_is_sorted_already_still_waits(void)
{
    trp_ref ref;

    start(1);
    ref = spawn_boxed(&looker, "control-aware");
    tell(ref, 0);
    UNIT_WAIT(atomic_load(&held), 5000);
    tell(ref, 1);
    tell(ref, 2);
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&looked) == 3, 5000);
    UNIT_TRUE(atomic_load(&behind[0]));
    UNIT_TRUE(atomic_load(&behind[1]));
    UNIT_FALSE(atomic_load(&behind[2]));
    end();
}

UNIT_BEGIN("overload")
UNIT(a_flood_is_slowed_to_its_receiver)
UNIT(a_flood_is_slowed_to_a_mailbox_with_an_order_of_its_own)
UNIT(three_that_overload_one_another_in_a_circle_go_on)
UNIT(two_that_flood_each_other_go_on)
UNIT(twenty_thousand_children_answer_their_overloaded_parent)
UNIT(what_is_sorted_already_still_waits)
UNIT_END
