/* held_turn_test.c - the message that an actor handles and its thread, seen from another one. */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/actor/stage.h"

enum { LOOKS = 60, TURN_STEPS = 20000 };

static _Atomic bool let_go, stop;
static _Atomic uint32_t handled;
static _Atomic int holder; /* the kernel's id of the thread */

static trp_err
held_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        atomic_store(&holder, (int)syscall(SYS_gettid));
        while (!atomic_load(&let_go)) {
        }
    }
    for (volatile uint32_t i = 0; i < TURN_STEPS; i++) { /* longer than a look */
    }
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour mule = {
    .size = sizeof(trp_behaviour), .name = "mule", .version = 1, .receive = held_receive
};

static trp_ref
mule_start(trp_system *system)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    atomic_store(&let_go, false);
    atomic_store(&handled, 0);
    UNIT_EQUAL(trp_system_spawn(system, &mule, &options, &ref), TRP_OK);
    return ref;
}

static bool
holds(trp_system *system, trp_ref ref, const char *name)
{
    trpi_held_turn turn;

    return trpi_system_held(system, ref, &turn) && strcmp(turn.type, name) == 0;
}

static void
an_actor_that_holds_its_thread_shows_the_type_of_its_message(void)
{
    trp_system *system = stage_open();
    trpi_held_turn turn = { "x", 1 };
    trp_ref ref = mule_start(system), other = mule_start(system);

    UNIT_FALSE(trpi_system_held(system, ref, &turn));
    UNIT_TEXT(turn.type, "");
    UNIT_EQUAL(turn.thread, 0);
    trp_system_tell(system, ref, &trp_string_type, "hold", 4);
    UNIT_WAIT(holds(system, ref, "troupe.string"), 60000);
    UNIT_TRUE(holds(system, ref, "troupe.string")); /* again: a look changes nothing */
    UNIT_TRUE(trpi_system_held(system, ref, &turn));
    UNIT_EQUAL(turn.thread, atomic_load(&holder));
    UNIT_FALSE(trpi_system_held(system, other, &turn));
    UNIT_FALSE(trpi_system_held(system, TRP_REF_NONE, &turn));
    atomic_store(&let_go, true);
    UNIT_WAIT(!trpi_system_held(system, ref, &turn), 60000);
    UNIT_EQUAL(atomic_load(&handled), 1);
    stage_close(system);
}

typedef struct target {
    trp_system *system;
    trp_ref ref;
} target;

static void *
tell_on(void *arg)
{
    const target *to = arg;

    for (uint32_t i = 0; !atomic_load(&stop); i++) {
        bool text = i % 2 == 0;
        uint32_t before = atomic_load(&handled);

        trp_system_tell(to->system, to->ref, text ? &trp_string_type : &trp_json_type,
                        text ? "a" : "{}", text ? 1 : 2);
        while (atomic_load(&handled) == before && !atomic_load(&stop)) {
            sched_yield();
        }
    }
    return NULL;
}

/* held-turn-H1: a message that is freed during the look never shows another type, nor ends the
 * process. */
static void
messages_that_end_meanwhile_show_their_type_or_none(void)
{
    trp_system *system = stage_open();
    target to = { system, mule_start(system) };
    trpi_held_turn turn;
    uint32_t seen = 0;
    pthread_t teller;

    atomic_store(&let_go, true);
    atomic_store(&stop, false);
    UNIT_REQUIRE(pthread_create(&teller, NULL, tell_on, &to) == 0);
    for (uint64_t until = unit_now_ms() + 60000; seen < LOOKS && unit_now_ms() < until;) {
        if (trpi_system_held(system, to.ref, &turn) && turn.type[0] != '\0') {
            seen++;
            UNIT_TRUE(strcmp(turn.type, "troupe.string") == 0 ||
                      strcmp(turn.type, "troupe.json") == 0);
        }
    }
    atomic_store(&stop, true);
    UNIT_EQUAL(pthread_join(teller, NULL), 0);
    UNIT_EQUAL(seen, LOOKS);
    stage_close(system);
}

UNIT_BEGIN("held_turn")
UNIT(an_actor_that_holds_its_thread_shows_the_type_of_its_message)
UNIT(messages_that_end_meanwhile_show_their_type_or_none)
UNIT_END
