/* Messages that are handled before all that waits in a mailbox (trpi_tell_ahead). */
#include <stdatomic.h>

#include <troupe/troupe.h>

#include "actor/actor.h"
#include "tests/unit/unit.h"

enum { WAITING = 100000 };

static _Atomic int gate, waits, handled, ended_at;

/* "wait": until the gate opens; "end": note how many were handled before, and stop. */
static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        const char *text = trp_msg_payload(msg);
        atomic_fetch_or(&waits, text[0] == 'w');
        while (text[0] == 'w' && atomic_load(&gate) == 0) {
            unit_pause();
        }
        if (text[0] == 'e') {
            atomic_store(&ended_at, atomic_load(&handled));
            trp_stop(ctx, trp_self(ctx));
        }
    }
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}

static const trp_behaviour slow = {
    .size = sizeof(trp_behaviour), .name = "slow", .version = 1, .receive = slow_receive
};

static trp_system *
start(trp_ref *ret_ref)
{
    trp_system *system = NULL;
    atomic_store(&gate, 0);
    atomic_store(&waits, 0);
    atomic_store(&handled, 0);
    atomic_store(&ended_at, -1);
    UNIT_REQUIRE(trp_system_new("ahead", NULL, &system) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(system, &slow, NULL, ret_ref) == TRP_OK);
    return system;
}

static trp_err
tell_ahead(trp_system *system, trp_ref to, const trp_type *type, const void *payload, size_t bytes)
{
    const trp_ref nobody = TRP_REF_NONE;
    trp_ctx *ctx = trpi_enter(system);
    trp_err err = trpi_tell_ahead(ctx, to, nobody, type, payload, bytes);
    trpi_leave(ctx);
    return err;
}

static void
end(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* CONTRIB-05: ahead-A1: also a poison pill, which is the library's own */
static void
a_message_told_ahead_is_handled_before_a_full_mailbox(void)
{
    for (int pill = 0; pill < 2; pill++) {
        trp_ref ref;
        trp_system *system = start(&ref);
        trp_system_tell(system, ref, &trp_string_type, "wait", 4);
        UNIT_WAIT(atomic_load(&waits) != 0, 60000); /* else it would be overtaken, too */
        for (int i = 0; i < WAITING; i++) {
            trp_system_tell(system, ref, &trp_string_type, "x", 1);
        }
        if (pill != 0) {
            UNIT_EQUAL(tell_ahead(system, ref, &trp_poison_pill_type, NULL, 0), TRP_OK);
        } else {
            UNIT_EQUAL(tell_ahead(system, ref, &trp_string_type, "end", 3), TRP_OK);
        }
        atomic_store(&gate, 1);
        trp_system_stats stats = { .size = sizeof stats };
        UNIT_WAIT(
            (trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_STOPPED] >= WAITING),
            60000);
        UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STOPPED], WAITING);
        UNIT_EQUAL(atomic_load(&ended_at), pill != 0 ? -1 : 1);
        UNIT_EQUAL(atomic_load(&handled), pill != 0 ? 1 : 2);
        end(system);
    }
}

/* ahead-A2 */
static void
to_an_actor_that_has_ended_it_is_a_dead_letter(void)
{
    trp_ref ref;
    trp_system *system = start(&ref);
    trp_system_stats stats = { .size = sizeof stats };
    UNIT_EQUAL(trp_system_graceful_stop(system, ref, 60000), TRP_OK);
    UNIT_EQUAL(tell_ahead(system, ref, &trp_string_type, "end", 3), TRP_OK);
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_STOPPED] == 1),
              60000);
    trp_ref far = ref;
    far.node = 77;
    UNIT_EQUAL(tell_ahead(system, far, &trp_string_type, "end", 3), TRP_EUNSUPPORTED);
    end(system);
}

UNIT_BEGIN("ahead")
UNIT(a_message_told_ahead_is_handled_before_a_full_mailbox)
UNIT(to_an_actor_that_has_ended_it_is_a_dead_letter)
UNIT_END
