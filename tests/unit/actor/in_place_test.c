/* in_place_test.c - turns of a proxy on the thread of an actor that tells another node: what is
 * delivered and flushed when, and in which order. */
#include "tests/unit/actor/stage.h"

#include <stdatomic.h>

#include "actor/kernel/run.h"
#include "base/atomics.h"

/* Remoting that counts. The lock of its fields is the proxy's token. */
typedef struct wire {
    trp_system *system;
    trp_ref far;
    uint64_t delivered, dirty;            /* dirty: not flushed */
    int64_t next[8];                      /* of each sender */
    _Atomic uint64_t seen, flushes, left; /* the same for other threads; left: dirty */
    atomic_bool above;                    /* what a flush answers */
    atomic_bool tells_back;               /* deliver() tells the node once more */
    atomic_bool holds, goes_on;           /* the second message of HELD is being delivered; until */
} wire;
enum { EARLY = 5, HELD = 6 }; /* senders */
static wire w;

/* On a worker: spin until it is set, or for so long that the test has failed. */
static void
stage_wait_for(atomic_bool *set)
{
    uint64_t deadline = unit_now_ms() + 50000;

    while (!atomic_load(set) && unit_now_ms() < deadline) {
        unit_pause();
    }
}

static void
wire_deliver(void *arg, trp_system *system, trp_msg *msg)
{
    int64_t what = *(const int64_t *)trp_msg_payload(msg);
    size_t sender = (size_t)(what >> 32);

    (void)arg;
    UNIT_EQUAL(trp_msg_bytes(msg), sizeof what);
    UNIT_REQUIRE(sender < 8);
    UNIT_EQUAL((int64_t)(uint32_t)what, w.next[sender]); /* in-place-E1 */
    w.next[sender]++;
    w.delivered++;
    atomic_store(&w.left, ++w.dirty);
    atomic_store(&w.seen, w.delivered);
    if (sender == HELD && w.next[HELD] == 2) {
        atomic_store(&w.holds, true);
        stage_wait_for(&w.goes_on);
    }
    if (atomic_exchange(&w.tells_back, false)) {
        int64_t more = (int64_t)7 << 32;
        trp_ctx *ctx = trpi_enter(system);

        trpi_tell(ctx, w.far, (trp_ref)TRP_REF_NONE, &trp_i64_type, &more, sizeof more);
        UNIT_EQUAL(w.next[7], 0); /* in-place-E3 */
        trpi_leave(ctx);
    }
}

static bool
wire_flush(void *arg, trp_system *system, bool more)
{
    (void)arg;
    (void)system;
    (void)more;
    w.dirty = 0;
    atomic_store(&w.left, 0);
    atomic_fetch_add(&w.flushes, 1);
    return atomic_load(&w.above);
}

/* With one worker every turn finds what the last one has noted about the proxy. */
static trp_system *
wire_open(uint32_t workers)
{
    static const trpi_proxy_ops ops = { .deliver = wire_deliver, .flush = wire_flush };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = workers;
    memset(&w, 0, sizeof w);
    w.system = stage_open_with(options);
    w.far = stage_far(w.system);
    UNIT_EQUAL(trpi_proxy_attach(w.system, w.far.node, &ops, NULL), TRP_OK);
    return w.system;
}

/* ---- one sender ------------------------------------------------------------------------------ */

static _Atomic uint64_t noted_seen, noted_left; /* within the turn, after its tells */
static _Atomic int turns;

static void
tell_far(trp_ctx *ctx, int64_t number)
{
    trp_tell(ctx, w.far, &trp_i64_type, &number, sizeof number);
}

/* Tell as many messages as it is told, and note what has become of them within the turn. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *next = state, count = *(const int64_t *)trp_msg_payload(msg);

    for (int64_t i = 0; i < count; i++) {
        tell_far(ctx, (*next)++);
    }
    atomic_store(&noted_seen, atomic_load(&w.seen));
    atomic_store(&noted_left, atomic_load(&w.left));
    atomic_fetch_add(&turns, 1);
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", int64_t, teller_receive);

static void
turn(trp_ref ref, int64_t count)
{
    int before = atomic_load(&turns);

    trp_system_tell(w.system, ref, &trp_i64_type, &count, sizeof count);
    UNIT_WAIT(atomic_load(&turns) == before + 1, 30000);
}

/* A lone message leaves within the tell. Of several in one turn the later ones wait for its end; in
 * the turn after such a one the first waits, too. */
static void
a_lone_message_leaves_at_once_and_several_together(void)
{
    trp_system *system = wire_open(1);
    trp_ref ref = stage_spawn(system, &teller, "t");

    atomic_store(&turns, 0);
    turn(ref, 1);
    UNIT_EQUAL(atomic_load(&noted_seen), 1);
    UNIT_EQUAL(atomic_load(&noted_left), 0);
    turn(ref, 10);
    UNIT_EQUAL(atomic_load(&noted_seen), 11);
    UNIT_EQUAL(atomic_load(&noted_left), 9);
    UNIT_WAIT(atomic_load(&w.left) == 0, 30000); /* in-place-E2 */
    turn(ref, 3);
    UNIT_EQUAL(atomic_load(&noted_seen), 14);
    UNIT_EQUAL(atomic_load(&noted_left), 3);
    turn(ref, 1); /* gathered for the last time */
    turn(ref, 1);
    UNIT_EQUAL(atomic_load(&noted_seen), 16);
    UNIT_EQUAL(atomic_load(&noted_left), 0);
    stage_close(system);
}

/* At most TRPI_CHAIN_MSGS_MAX messages are delivered between two flushes, in-place-E4; above its
 * mark the proxy is left alone: messages are pushed to it. */
static void
a_proxy_above_its_mark_is_left_alone(void)
{
    trp_system *system = wire_open(1);
    trp_ref ref = stage_spawn(system, &teller, "t");

    atomic_store(&turns, 0);
    turn(ref, 200);
    UNIT_EQUAL(atomic_load(&noted_seen), 200);
    UNIT_TRUE(atomic_load(&noted_left) < TRPI_CHAIN_MSGS_MAX);
    atomic_store(&w.above, true);
    turn(ref, 1000);
    UNIT_TRUE(atomic_load(&noted_seen) <= 200 + TRPI_CHAIN_MSGS_MAX);
    atomic_store(&w.above, false);
    trpi_proxy_ready(system, w.far.node);
    UNIT_WAIT(atomic_load(&w.seen) == 1200 && atomic_load(&w.left) == 0, 30000);
    stage_close(system);
}

static void
a_tell_within_a_turn_in_place_is_pushed(void)
{
    trp_system *system = wire_open(1);
    trp_ref ref = stage_spawn(system, &teller, "t");

    atomic_store(&turns, 0);
    atomic_store(&w.tells_back, true);
    turn(ref, 1);
    UNIT_WAIT(atomic_load(&w.seen) == 2 && atomic_load(&w.left) == 0, 30000);
    stage_close(system);
}

/* ---- two at once ----------------------------------------------------------------------------- */

static atomic_bool held_began, early_told, held_saw_flush;

/* Its second message is delivered, and not flushed, while HELD's is being delivered. */
static trp_err
early_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    stage_wait_for(&held_began);
    tell_far(ctx, (int64_t)EARLY << 32);
    tell_far(ctx, (int64_t)EARLY << 32 | 1);
    atomic_store(&early_told, true);
    stage_wait_for(&w.holds);
    return TRP_OK;
}

/* Its turn goes on until all is flushed. */
static trp_err
held_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t deadline = unit_now_ms() + 50000;

    (void)state;
    (void)msg;
    tell_far(ctx, (int64_t)HELD << 32);
    atomic_store(&held_began, true);
    stage_wait_for(&early_told);
    tell_far(ctx, (int64_t)HELD << 32 | 1);
    while (atomic_load(&w.left) != 0 && unit_now_ms() < deadline) {
        unit_pause();
    }
    atomic_store(&held_saw_flush, atomic_load(&w.left) == 0);
    atomic_fetch_add(&turns, 1);
    return TRP_OK;
}

/* Runs when EARLY's worker is free, while HELD's is not. */
static trp_err
next_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_store(&w.goes_on, true);
    return TRP_OK;
}
static const trp_behaviour early = TRP_BEHAVIOUR_INIT("early", char, early_receive);
static const trp_behaviour held = TRP_BEHAVIOUR_INIT("held", char, held_receive);
static const trp_behaviour next = TRP_BEHAVIOUR_INIT("next", char, next_receive);

/* in-place-E2: a run ends while another actor has the proxy's token in place, and that one's turn
 * takes long. */
static void
what_a_run_leaves_does_not_wait_for_another_turn(void)
{
    trp_system *system = wire_open(2);
    trp_ref a = stage_spawn(system, &early, "a"), b = stage_spawn(system, &held, "b");
    trp_ref c = stage_spawn(system, &next, "c");

    atomic_store(&turns, 0);
    atomic_store(&held_began, false);
    atomic_store(&early_told, false);
    trp_system_tell(system, b, &trp_bytes_type, "", 0);
    trp_system_tell(system, a, &trp_bytes_type, "", 0);
    UNIT_WAIT(atomic_load(&w.holds), 30000);
    trp_system_tell(system, c, &trp_bytes_type, "", 0);
    UNIT_WAIT(atomic_load(&turns) == 1, 120000);
    UNIT_TRUE(atomic_load(&held_saw_flush));
    stage_close(system);
}

/* ---- several senders ------------------------------------------------------------------------- */

enum { SENDERS = 4, ROUNDS = 2000 };
typedef struct sender_state {
    int64_t number, next, rounds;
} sender_state;
static _Atomic int senders_done;

/* One to seven messages a turn, and sometimes a pause behind them, while others want the proxy. */
static trp_err
sender_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    sender_state *s = state;

    if (s->number == 0) {
        s->number = *(const int64_t *)trp_msg_payload(msg);
    }
    for (int64_t i = 0; i <= (s->rounds * s->number) % 7; i++) {
        tell_far(ctx, s->number << 32 | s->next++);
    }
    for (int i = 0; i < 2000 && s->rounds % 64 == 0; i++) {
        trpi_cpu_relax();
    }
    if (++s->rounds == ROUNDS) {
        atomic_fetch_add(&noted_seen, (uint64_t)s->next);
        atomic_fetch_add(&senders_done, 1);
    } else {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &s->number, sizeof s->number);
    }
    return TRP_OK;
}
static const trp_behaviour sender = TRP_BEHAVIOUR_INIT("sender", sender_state, sender_receive);

/* Every message is delivered once, in its sender's order, and flushed when all are done. */
static void
senders_on_several_workers_keep_their_order(void)
{
    trp_system *system = wire_open(3);

    atomic_store(&senders_done, 0);
    atomic_store(&noted_seen, 0);
    for (int64_t i = 1; i <= SENDERS; i++) {
        trp_ref ref = stage_spawn(system, &sender, NULL);

        trp_system_tell(system, ref, &trp_i64_type, &i, sizeof i);
    }
    UNIT_WAIT(atomic_load(&senders_done) == SENDERS, 60000);
    UNIT_WAIT(atomic_load(&w.seen) == atomic_load(&noted_seen), 60000);
    UNIT_WAIT(atomic_load(&w.left) == 0, 60000); /* in-place-E2 */
    stage_close(system);
}

UNIT_BEGIN("in_place")
UNIT(a_lone_message_leaves_at_once_and_several_together)
UNIT(a_proxy_above_its_mark_is_left_alone)
UNIT(a_tell_within_a_turn_in_place_is_pushed)
UNIT(what_a_run_leaves_does_not_wait_for_another_turn)
UNIT(senders_on_several_workers_keep_their_order)
UNIT_END
