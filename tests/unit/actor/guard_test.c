/* guard_test.c - guarded actors handle nothing while the guard is closed, lose nothing, keep the
 * order, and are stopped all the same; a system that stood still closes its guard before the next
 * message. */
#include "tests/unit/actor/dispatch.h"

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/quick_clock.h"

/* An actor that spawns a guarded noter and passes messages on to it. */
static _Atomic uint64_t child_slot, child_generation;
static const char *child_mailbox;

static trp_err
keeper_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    trp_err err;

    (void)state;
    (void)args;
    options.mailbox = child_mailbox;
    err = trpi_spawn_guarded(ctx, &noter, &options, &ref);
    if (err == TRP_OK) {
        atomic_store(&child_slot, ref.slot);
        atomic_store(&child_generation, ref.generation);
    }
    return err;
}
static const trp_behaviour keeper = { .size = sizeof(trp_behaviour),
                                      .name = "keeper",
                                      .version = 1,
                                      .state_bytes = sizeof(int),
                                      .receive = receive,
                                      .pre_start = keeper_start };

static trp_ref
guarded_start(const char *mailbox)
{
    trp_ref ref = TRP_REF_NONE;

    atomic_store(&child_slot, 0);
    atomic_store(&child_generation, 0);
    child_mailbox = mailbox;
    (void)spawn(&keeper, NULL);
    UNIT_WAIT(atomic_load(&child_generation) != 0, 5000);
    ref.node = TRPI_NODE_SELF;
    ref.slot = (uint32_t)atomic_load(&child_slot);
    ref.generation = (uint32_t)atomic_load(&child_generation);
    return ref;
}

static void
tell_numbers(trp_ref to, uint64_t from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        tell(to, &dispatched_work_type, from + i, nobody);
    }
}

/* An unguarded actor handles a message that was told later. */
static void
others_run(uint64_t number)
{
    trp_ref other = spawn(&noter, NULL);
    uint64_t before = atomic_load(&handled);

    tell(other, &dispatched_work_type, number, nobody);
    UNIT_WAIT(atomic_load(&handled) == before + 1, 5000);
}

static void
closed_guard_keeps_messages_in_order(const char *mailbox)
{
    trpi_guard *guard;
    trp_ref ref;

    start(100);
    reset();
    guard = trpi_guard_of(system_);
    ref = guarded_start(mailbox);
    tell_numbers(ref, 1, 10);
    UNIT_WAIT(atomic_load(&handled) == 10, 5000);
    trpi_guard_close(guard);
    UNIT_TRUE(!trpi_guard_is_open(guard));
    tell_numbers(ref, 11, 500);
    others_run(1000);
    UNIT_EQUAL(atomic_load(&handled), 11);
    UNIT_TRUE(trpi_guard_open(guard, trpi_guard_closings(guard)));
    UNIT_WAIT(atomic_load(&handled) == 511, 5000);
    for (uint64_t i = 0; i < 10; i++) {
        UNIT_EQUAL(seen[i], i + 1);
    }
    for (uint64_t i = 0; i < 500; i++) {
        UNIT_EQUAL(seen[11 + i], 11 + i);
    }
    UNIT_EQUAL(atomic_load(&two_at_once), 0);
    end();
}

static void
closed_guard_keeps_messages_of_default_mailbox(void)
{
    closed_guard_keeps_messages_in_order(NULL);
}

static void
closed_guard_keeps_messages_of_bounded_mailbox(void)
{
    closed_guard_keeps_messages_in_order("bounded");
}

static void
closed_guard_holds_a_start_back(void)
{
    trpi_guard *guard;
    trp_ref ref;

    start(100);
    reset();
    guard = trpi_guard_of(system_);
    trpi_guard_close(guard);
    ref = guarded_start(NULL);
    others_run(1);
    tell_numbers(ref, 2, 3);
    others_run(5);
    UNIT_EQUAL(atomic_load(&handled), 2);
    UNIT_TRUE(trpi_guard_open(guard, trpi_guard_closings(guard)));
    UNIT_WAIT(atomic_load(&handled) == 5, 5000);
    end();
}

static void
actor_behind_a_closed_guard_can_be_stopped(void)
{
    trpi_guard *guard;
    trp_ref ref, second;
    trp_mailbox_view view;

    start(100);
    reset();
    guard = trpi_guard_of(system_);
    ref = guarded_start(NULL);
    tell_numbers(ref, 1, 1);
    UNIT_WAIT(atomic_load(&handled) == 1, 5000);
    trpi_guard_close(guard);
    second = guarded_start(NULL); /* it has not started yet */
    tell_numbers(ref, 2, 20);
    tell_numbers(second, 2, 20);
    trp_system_stop_actor(system_, ref);
    trp_system_stop_actor(system_, second);
    UNIT_WAIT(trp_mailbox_look(system_, ref, &view) != TRP_OK, 5000);
    UNIT_WAIT(trp_mailbox_look(system_, second, &view) != TRP_OK, 5000);
    UNIT_EQUAL(atomic_load(&handled), 1);
    end();
}

static void
stalls_add_up_and_close_the_guard(void)
{
    trpi_guard_limits limits = { .period_ms = 100, .limit_ms = 3000, .window_ms = 20000 };
    trpi_guard *guard;
    uint64_t at_ns, closings;

    start(100);
    guard = trpi_guard_of(system_);
    limits.window_ms = 200000000;
    trpi_guard_watch(guard, &limits);
    at_ns = atomic_load(&guard->looked_ns) + 1000000000;
    UNIT_EQUAL(trpi_guard_look_at(guard, at_ns), 0); /* 1 s: a stall */
    for (int i = 0; i < 100; i++) {                  /* late, but no stalls */
        at_ns += 200000000;
        UNIT_EQUAL(trpi_guard_look_at(guard, at_ns), 0);
    }
    UNIT_EQUAL(trpi_guard_look_at(guard, at_ns += 1000000000), 0);
    UNIT_EQUAL(trpi_guard_look_at(guard, at_ns += 999000000), 0); /* at the limit */
    closings = trpi_guard_closings(guard);
    UNIT_EQUAL(trpi_guard_look_at(guard, at_ns += 201000000), TRPI_GUARD_STALLED); /* past it */
    UNIT_TRUE(!trpi_guard_open(guard, closings)); /* it stood still since then */
    UNIT_TRUE(trpi_guard_open(guard, trpi_guard_closings(guard)));
    UNIT_TRUE(trpi_guard_is_open(guard));
    end();
}

static void
old_stalls_do_not_count(void)
{
    trpi_guard_limits limits = { .period_ms = 100, .limit_ms = 3000, .window_ms = 20000 };
    trpi_guard *guard;
    uint64_t at_ns;

    start(100);
    guard = trpi_guard_of(system_);
    trpi_guard_watch(guard, &limits);
    at_ns = atomic_load(&guard->looked_ns);
    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(trpi_guard_look_at(guard, at_ns += 2500000000), 0);
        for (int j = 0; j < 200; j++) {
            UNIT_EQUAL(trpi_guard_look_at(guard, at_ns += 100000000), 0);
        }
    }
    for (uint32_t i = 0; i < 2 * TRPI_GUARD_STALLS_MAX; i++) { /* joined, none is lost */
        (void)trpi_guard_look_at(guard, at_ns += 201000000);
    }
    UNIT_TRUE(!trpi_guard_is_open(guard));
    UNIT_TRUE(guard->stalls_count == TRPI_GUARD_STALLS_MAX);
    end();
}

static void
quick_clock_runs_as_the_monotonic_one(void)
{
    trpi_world *world;
    uint64_t quick_ns, mono_ns, mono_took_ns, quick_took_ns;

    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    trpi_world_quick_open(world);
    quick_ns = trpi_world_quick_ns(world);
    mono_ns = trpi_world_mono_ns(world);
    do {
        mono_took_ns = trpi_world_mono_ns(world) - mono_ns;
    } while (mono_took_ns < 20000000);
    quick_took_ns = trpi_world_quick_ns(world) - quick_ns;
    printf("    quick clock: %s, %llu us in %llu us\n", trpi_quick_clock_source(),
           (unsigned long long)quick_took_ns / 1000, (unsigned long long)mono_took_ns / 1000);
    UNIT_TRUE(quick_took_ns > mono_took_ns / 2);
    trpi_world_free(world);
}

UNIT_BEGIN("guard")
UNIT(closed_guard_keeps_messages_of_default_mailbox)
UNIT(closed_guard_keeps_messages_of_bounded_mailbox)
UNIT(closed_guard_holds_a_start_back)
UNIT(actor_behind_a_closed_guard_can_be_stopped)
UNIT(stalls_add_up_and_close_the_guard)
UNIT(old_stalls_do_not_count)
UNIT(quick_clock_runs_as_the_monotonic_one)
UNIT_END
