/* threads_test.c - threads that end, of actors and of systems, leave no memory behind. */
#include "tests/unit/unit.h"

#include <malloc.h>
#include <stdatomic.h>

#include <troupe/troupe.h>

#if defined(UNIT_SANITIZED)
UNIT_SKIPPED("threads", "the sanitizers have a heap of their own")
#else

/* More than what blocks that wander between threads may come to; a thread used to leave 1.85 KB,
 * so that a tenth of these numbers would have passed it. */
#define GROWTH_MAX ((size_t)1024 * 1024)

static _Atomic uint64_t handled;

/* Some messages of two sizes, so that the thread has blocks to leave. */
static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const char large[200];

    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, large, sizeof large);
    } else {
        atomic_fetch_add(&handled, 1);
    }
    return TRP_OK;
}
static const trp_behaviour talker = TRP_BEHAVIOUR_INIT("talker", char, receive);

static trp_system *
opened(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    options.workers = 2;
    options.log_dead_letters = TRP_OFF;
    UNIT_REQUIRE(trp_system_new("threads", &options, &system) == TRP_OK);
    return system;
}

/* `count` pinned actors, some at a time. */
static void
pinned_in_turn(trp_system *system, int count)
{
    enum { AT_ONCE = 16 };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref refs[AT_ONCE];

    options.dispatcher = "pinned";
    for (int i = 0; i < count; i += AT_ONCE) {
        uint64_t before = atomic_load(&handled);

        for (int j = 0; j < AT_ONCE; j++) {
            int64_t number = j;

            UNIT_REQUIRE(trp_system_spawn(system, &talker, &options, &refs[j]) == TRP_OK);
            trp_system_tell(system, refs[j], &trp_i64_type, &number, sizeof number);
        }
        UNIT_WAIT(atomic_load(&handled) == before + AT_ONCE, 60000);
        for (int j = 0; j < AT_ONCE; j++) {
            trp_system_stop_actor(system, refs[j]);
        }
        for (int j = 0; j < AT_ONCE; j++) {
            UNIT_EQUAL(trp_system_graceful_stop(system, refs[j], 60000), TRP_OK);
        }
    }
}

static void
pinned_actors_that_end_leave_no_memory(void)
{
    enum { WARM = 1600, ALL = 20000 };
    trp_system *system = opened();
    size_t held;

    pinned_in_turn(system, WARM);
    held = mallinfo2().uordblks;
    pinned_in_turn(system, ALL - WARM);
    UNIT_TRUE(mallinfo2().uordblks < held + GROWTH_MAX);
    if (mallinfo2().uordblks >= held + GROWTH_MAX) {
        printf("  %zu bytes grew to %zu\n", held, mallinfo2().uordblks);
    }
    trp_system_free(system);
}

static void
systems_in_turn(int count)
{
    for (int i = 0; i < count; i++) {
        trp_system *system = opened();

        trp_system_free(system);
    }
}

static void
systems_that_end_leave_no_memory(void)
{
    enum { WARM = 400, ALL = 4000 };
    size_t held;

    systems_in_turn(WARM);
    held = mallinfo2().uordblks;
    systems_in_turn(ALL - WARM);
    UNIT_TRUE(mallinfo2().uordblks < held + GROWTH_MAX);
    if (mallinfo2().uordblks >= held + GROWTH_MAX) {
        printf("  %zu bytes grew to %zu\n", held, mallinfo2().uordblks);
    }
}

UNIT_BEGIN("threads")
UNIT(pinned_actors_that_end_leave_no_memory)
UNIT(systems_that_end_leave_no_memory)
UNIT_END
#endif
