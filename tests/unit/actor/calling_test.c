/* calling_test.c - actors that run on the thread that tells them. */
#include "tests/unit/unit.h"

#include <stdatomic.h>

#include <troupe/troupe.h>

#include "actor/actor.h"
#include "actor/kernel/system.h"

#define CALLED_FIELDS(F, S) F(S, u64, depth) F(S, ref, back)
#define CALLED_MESSAGES(M, P)                                                                      \
    M(P, note, CALLED_FIELDS)                                                                      \
    M(P, self, CALLED_FIELDS)                                                                      \
    M(P, chain, CALLED_FIELDS)                                                                     \
    M(P, fail, CALLED_FIELDS) M(P, hold, CALLED_FIELDS) M(P, talk, CALLED_FIELDS)
TRP_PROTOCOL(called, CALLED_MESSAGES)

static trp_system *system_;
static const trp_ref nobody = TRP_REF_NONE;

enum { SEEN_MAX = 1024, ACTORS_MAX = TRP_CALLING_DEPTH_MAX + 8 };
static uint64_t seen[SEEN_MAX];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t seen_count;
static _Atomic pthread_t thread_of_last;
static trp_ref actors[ACTORS_MAX];
static _Atomic int gate_open, gate_waiting;
static _Thread_local uint32_t nested, nested_most;

static void
note(uint64_t what)
{
    uint32_t at;

    pthread_mutex_lock(&seen_lock);
    at = atomic_load(&seen_count);
    thread_of_last = pthread_self();
    if (at < SEEN_MAX) {
        seen[at] = what;
    }
    atomic_store(&seen_count, at + 1); /* behind what it counts */
    pthread_mutex_unlock(&seen_lock);
}

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    called_note what = *(const called_note *)trp_msg_payload(msg);

    (void)state;
    nested++;
    nested_most = nested > nested_most ? nested : nested_most;
    switch (trp_msg_tag(msg)) {
    case called_self_tag: /* told while it is active: handled when this is over */
        note(10);
        trp_tell(ctx, trp_self(ctx), &called_note_type, &what, sizeof what);
        note(11);
        break;
    case called_chain_tag: /* the next actor handles it inside of this */
        note(2 * what.depth);
        if (what.depth + 1 < ACTORS_MAX && !trp_ref_is_none(actors[what.depth + 1])) {
            what.depth++;
            trp_tell(ctx, actors[what.depth], &called_chain_type, &what, sizeof what);
            what.depth--;
        }
        note(2 * what.depth + 1);
        break;
    case called_talk_tag: /* both tell the other, who is active on this stack */
        note(what.depth);
        if (what.depth < 5) {
            called_note back = { what.depth + 1, trp_self(ctx) };

            trp_tell(ctx, what.back, &called_talk_type, &back, sizeof back);
        }
        break;
    case called_fail_tag:
        nested--;
        trp_fail(ctx, 3, "on purpose");
    case called_hold_tag:
        if (what.depth != 0) {
            trp_tell(ctx, trp_self(ctx), &called_note_type, &what, sizeof what);
        }
        atomic_fetch_add(&gate_waiting, 1);
        while (!atomic_load(&gate_open)) {
            unit_pause();
        }
        atomic_fetch_sub(&gate_waiting, 1);
        note(70);
        break;
    default:
        note(what.depth);
        break;
    }
    nested--;
    return TRP_OK;
}

static const trp_protocol *const accepts[] = { &called_protocol, NULL };
static const trp_behaviour actor = { .size = sizeof(trp_behaviour),
                                     .name = "called",
                                     .version = 1,
                                     .receive = receive,
                                     .accepts = accepts };

static void
start_in(trpi_world *world) /* NULL: one of its own */
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = 2;
    options.log_level = TRP_LOG_ERROR;
    options.log = NULL;
    UNIT_REQUIRE(trp_protocol_register(&called_protocol) == TRP_OK);
    UNIT_REQUIRE(trpi_system_new_in(world, "calling", &options, &system_) == TRP_OK);
    atomic_store(&seen_count, 0);
    atomic_store(&gate_open, 0);
    memset(actors, 0, sizeof(actors));
    nested = nested_most = 0;
}

static void
start(void)
{
    start_in(NULL);
}

static void
end(void)
{
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static trp_ref
spawn(const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.dispatcher = dispatcher;
    UNIT_REQUIRE(trp_system_spawn(system_, &actor, &options, &ref) == TRP_OK);
    return ref;
}

static void
tell(trp_ref to, const trp_type *type, uint64_t depth, trp_ref back)
{
    called_note what = { depth, back };

    trp_system_tell(system_, to, type, &what, sizeof what);
}

/* TEST-12, DISP-6: over when the tell returns, on this thread. */
static void
a_tell_returns_when_the_message_is_handled(void)
{
    trp_ref a;

    start();
    a = spawn("calling-thread");
    for (uint64_t i = 0; i < 20; i++) {
        tell(a, &called_note_type, i, nobody);
        UNIT_EQUAL(atomic_load(&seen_count), i + 1);
        UNIT_EQUAL(seen[i], i);
        UNIT_TRUE(pthread_equal(thread_of_last, pthread_self()));
    }
    end();
}

/* TEST-12: an actor that is active on this thread gets the message after its present one. */
static void
what_an_active_actor_is_told_waits_for_its_turn(void)
{
    trp_ref a, b;

    start();
    a = spawn("calling-thread");
    tell(a, &called_self_type, 12, nobody);
    UNIT_EQUAL(atomic_load(&seen_count), 3);
    UNIT_EQUAL(seen[0], 10);
    UNIT_EQUAL(seen[1], 11);
    UNIT_EQUAL(seen[2], 12);
    b = spawn("calling-thread");
    atomic_store(&seen_count, 0);
    tell(a, &called_talk_type, 1, b); /* a tells b, inside; b tells a, which is active */
    UNIT_EQUAL(atomic_load(&seen_count), 5);
    for (uint64_t i = 0; i < 5; i++) {
        UNIT_EQUAL(seen[i], i + 1);
    }
    UNIT_EQUAL(nested_most, 2);
    end();
}

/* TEST-12: the whole way stands on one stack, to TRP_CALLING_DEPTH_MAX; one past it waits, and is
 * handled all the same. */
static void
calls_nest_up_to_their_limit(void)
{
    for (int extra = 0; extra <= 1; extra++) {
        uint32_t count = TRP_CALLING_DEPTH_MAX + (uint32_t)extra;

        start();
        for (uint32_t i = 0; i < count; i++) {
            actors[i] = spawn("calling-thread");
        }
        tell(actors[0], &called_chain_type, 0, nobody);
        UNIT_EQUAL(atomic_load(&seen_count), 2 * count);
        UNIT_EQUAL(nested_most, TRP_CALLING_DEPTH_MAX);
        for (uint32_t i = 0; i < TRP_CALLING_DEPTH_MAX; i++) {
            UNIT_EQUAL(seen[i], 2 * i);
        }
        if (extra == 0) {
            UNIT_EQUAL(seen[2 * count - 1], 1); /* the first one returns last */
        }
        end();
    }
}

/* A failure inside unwinds to the actor that failed, not to who told it. */
static void
a_failure_on_the_calling_thread_stays_with_its_actor(void)
{
    trp_ref a;

    start();
    a = spawn("calling-thread");
    tell(a, &called_fail_type, 0, nobody);
    /* the supervisor runs elsewhere; the restart comes back to a thread of its */
    tell(a, &called_note_type, 5, nobody);
    UNIT_WAIT(atomic_load(&seen_count) == 1, 5000);
    UNIT_EQUAL(seen[0], 5);
    end();
}

static void *
hold_it(void *ref)
{
    tell(*(trp_ref *)ref, &called_hold_type, 0, nobody);
    return NULL;
}

static void *
open_later(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        unit_pause();
    }
    note(69);
    atomic_store(&gate_open, 1);
    return NULL;
}

static void
second_thread_waits(const char *mailbox)
{
    trp_mailbox_options bounded = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    pthread_t holder, opener;
    trp_ref a;

    start();
    bounded.kind = TRP_MAILBOX_KIND_BOUNDED;
    bounded.capacity = 2;
    UNIT_EQUAL(trp_mailbox_register(system_, "two", &bounded), TRP_OK);
    options.dispatcher = "calling-thread";
    options.mailbox = mailbox;
    UNIT_REQUIRE(trp_system_spawn(system_, &actor, &options, &a) == TRP_OK);
    UNIT_REQUIRE(pthread_create(&holder, NULL, hold_it, &a) == 0);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    UNIT_REQUIRE(pthread_create(&opener, NULL, open_later, NULL) == 0);
    tell(a, &called_note_type, 71, nobody);
    UNIT_EQUAL(atomic_load(&seen_count), 3); /* not one moment before */
    UNIT_EQUAL(seen[0], 69);
    UNIT_EQUAL(seen[1], 70);
    UNIT_EQUAL(seen[2], 71);
    pthread_join(holder, NULL);
    pthread_join(opener, NULL);
    end();
}

/* TEST-12: two threads: the second one waits until it is handled, whatever the mailbox. */
static void
a_second_thread_waits_for_the_first(void)
{
    second_thread_waits(NULL);
    second_thread_waits("two");
    second_thread_waits("control-aware");
}

/* TEST-12: two active actors that tell each other from two threads do not wait for each other. */
static void *
talk_all(void *arg)
{
    int first = arg == NULL ? 0 : 1;

    for (int i = 0; i < 2000; i++) {
        tell(actors[first], &called_talk_type, 1, actors[1 - first]);
    }
    return NULL;
}

static void
two_threads_and_two_actors_do_not_lock_up(void)
{
    pthread_t threads[2];

    start();
    actors[0] = spawn("calling-thread");
    actors[1] = spawn("calling-thread");
    for (int i = 0; i < 2; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, talk_all, i == 0 ? NULL : actors) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    UNIT_WAIT(atomic_load(&seen_count) == 2 * 2000 * 5, 5000);
    end();
}

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    called_note what = { 30, TRP_REF_NONE };
    trp_ref child, top;

    (void)state;
    (void)msg;
    options.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_spawn(ctx, &actor, &options, &child), TRP_OK);
    trp_tell(ctx, child, &called_note_type, &what, sizeof what);
    what.depth = 31;
    trp_tell(ctx, child, &called_note_type, &what, sizeof what);
    UNIT_EQUAL(trp_system_spawn(system_, &actor, &options, &top), TRP_OK); /* a guardian's lock */
    what.depth = 32;
    trp_tell(ctx, top, &called_note_type, &what, sizeof what);
    note(33);
    return TRP_OK;
}
static const trp_behaviour parent = {
    .size = sizeof(trp_behaviour), .name = "parent", .version = 1, .receive = parent_receive
};

/* An actor of the default dispatcher tells one of this: inside its behaviour, on its worker. */
static void
a_behaviour_on_a_worker_calls_inside_itself(void)
{
    trp_ref ref;

    start();
    UNIT_REQUIRE(trp_system_spawn(system_, &parent, NULL, &ref) == TRP_OK);
    tell(ref, &called_note_type, 0, nobody);
    UNIT_WAIT(atomic_load(&seen_count) == 4, 5000);
    for (uint64_t i = 0; i < 4; i++) {
        UNIT_EQUAL(seen[i], 30 + i);
    }
    end();
}

/* A world whose clock keeps a thread that wants to be kept. */
static trpi_world *real;
static _Thread_local bool wants_to_be_kept;
static _Atomic int kept, let_go;

static uint64_t
keeping_mono(trpi_world *world)
{
    (void)world;
    if (wants_to_be_kept) {
        wants_to_be_kept = false;
        atomic_store(&kept, 1);
        while (!atomic_load(&let_go)) {
            unit_pause();
        }
    }
    return trpi_world_mono_ns(real);
}
static int64_t
keeping_wall(trpi_world *world)
{
    (void)world;
    return trpi_world_wall_ms(real);
}
static uint64_t
keeping_random(trpi_world *world)
{
    (void)world;
    return trpi_world_random(real);
}
static void
keeping_free(trpi_world *world)
{
    (void)world;
}

static void *
fill_and_hold(void *ref)
{
    tell(*(trp_ref *)ref, &called_hold_type, 71, nobody);
    return NULL;
}

static void *
wait_for_room(void *ref)
{
    wants_to_be_kept = true; /* by the clock, which is read between "it is full" and the wait */
    tell(*(trp_ref *)ref, &called_note_type, 72, nobody);
    return NULL;
}

/* DISP-6, MBOX-16: who waited for room in the mailbox of such an actor runs it then. */
static void
who_waited_for_room_runs_the_owner(void)
{
    static const trpi_world_ops ops = { .name = "keeping",
                                        .mono_ns = keeping_mono,
                                        .wall_ms = keeping_wall,
                                        .random_u64 = keeping_random,
                                        .free = keeping_free };
    trp_mailbox_options bounded = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trpi_world world = { .ops = &ops };
    pthread_t holder, waiter;
    trp_ref a;

    UNIT_REQUIRE(trpi_world_real_new(&real) == TRP_OK);
    start_in(&world);
    bounded.kind = TRP_MAILBOX_KIND_BOUNDED;
    bounded.capacity = 1;
    bounded.push_timeout_ms = TRP_FOREVER;
    UNIT_EQUAL(trp_mailbox_register(system_, "one", &bounded), TRP_OK);
    options.dispatcher = "calling-thread";
    options.mailbox = "one";
    UNIT_REQUIRE(trp_system_spawn(system_, &actor, &options, &a) == TRP_OK);
    UNIT_REQUIRE(pthread_create(&holder, NULL, fill_and_hold, &a) == 0);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    UNIT_REQUIRE(pthread_create(&waiter, NULL, wait_for_room, &a) == 0);
    UNIT_WAIT(atomic_load(&kept) == 1, 5000);
    atomic_store(&gate_open, 1);
    pthread_join(holder, NULL); /* the owner is idle, and its mailbox empty */
    UNIT_EQUAL(atomic_load(&seen_count), 2);
    atomic_store(&let_go, 1);
    pthread_join(waiter, NULL);
    UNIT_EQUAL(atomic_load(&seen_count), 3);
    UNIT_EQUAL(seen[0], 70);
    UNIT_EQUAL(seen[1], 71);
    UNIT_EQUAL(seen[2], 72);
    end();
    trpi_world_free(real);
}

UNIT_BEGIN("calling")
UNIT(a_tell_returns_when_the_message_is_handled)
UNIT(what_an_active_actor_is_told_waits_for_its_turn)
UNIT(calls_nest_up_to_their_limit)
UNIT(a_failure_on_the_calling_thread_stays_with_its_actor)
UNIT(a_second_thread_waits_for_the_first)
UNIT(two_threads_and_two_actors_do_not_lock_up)
UNIT(a_behaviour_on_a_worker_calls_inside_itself)
UNIT(who_waited_for_room_runs_the_owner)
UNIT_END
