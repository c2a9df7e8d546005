/* fsm_timer_test.c - time limits of states and named timers: when they ring, and when never. */
#include "tests/unit/pattern/door.h"

static trp_err
on_any(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door *d = state;
    uint32_t ms;
    if (trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        door_say(ctx, d, "late in %s", trp_fsm_name(&d->fsm));
        return trp_fsm_goto(&d->fsm, CLOSED);
    }
    if (door_said(msg, "open")) {
        return trp_fsm_goto(&d->fsm, OPEN);
    }
    if (door_said(msg, "close")) {
        return trp_fsm_goto(&d->fsm, CLOSED);
    }
    if (door_said(msg, "stay")) {
        return trp_fsm_stay(&d->fsm);
    }
    if (door_said(msg, "for ever")) {
        UNIT_EQUAL(trp_fsm_for_max(&d->fsm, TRP_OFF), TRP_OK);
        return trp_fsm_goto(&d->fsm, OPEN);
    }
    if ((ms = door_number(msg, "open for")) != 0) {
        UNIT_EQUAL(trp_fsm_for_max(&d->fsm, ms), TRP_OK);
        return trp_fsm_goto(&d->fsm, OPEN);
    }
    if ((ms = door_number(msg, "limit")) != 0) {
        UNIT_EQUAL(trp_fsm_state_timeout_set(ctx, &d->fsm, OPEN, ms), TRP_OK);
        UNIT_EQUAL(trp_fsm_state_timeout_set(ctx, &d->fsm, NOWHERE, ms), TRP_ENOENT);
        return trp_fsm_stay(&d->fsm);
    }
    if ((ms = door_number(msg, "once")) != 0) {
        return trp_fsm_timer_once(ctx, "bell", ms, &trp_i64_type, &(int64_t){ ms }, 0);
    }
    if ((ms = door_number(msg, "repeat")) != 0) {
        return trp_fsm_timer_repeat(ctx, "bell", ms, &trp_i64_type, &(int64_t){ ms }, 0);
    }
    if (door_said(msg, "cancel")) {
        trp_fsm_timer_cancel(ctx, "bell");
        trp_fsm_timer_cancel(ctx, "no such");
        return TRP_OK;
    }
    if (door_said(msg, "active")) {
        door_say(ctx, d, "%d %d", trp_fsm_timer_is_active(ctx, "bell"),
                 trp_fsm_timer_is_active(ctx, "no such"));
        return TRP_OK;
    }
    if (door_said(msg, "fail")) {
        trp_fail(ctx, 1, "it is told to");
    }
    if (trp_msg_is(msg, &trp_i64_type)) {
        door_say(ctx, d, "rings %d", (int)*(const int64_t *)trp_msg_payload(msg));
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
door_init(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct door *d = state;
    (void)ctx;
    memcpy(&d->probe, trp_msg_payload(args), sizeof d->probe);
    return TRP_OK;
}

static const trp_fsm_state states[] = { TRP_FSM_STATE(CLOSED, on_any, 0),
                                        TRP_FSM_STATE(OPEN, on_any, DOOR_LIMIT_MS),
                                        TRP_FSM_STATE(LOCKED, on_any, 0) };
static const trp_fsm_definition limited = {
    .size = sizeof limited, .name = "door", .states = states, .states_count = 3, .init = door_init
};
TRP_FSM_BEHAVIOUR(door, "door", struct door, &limited)

static void
pass(trp_testkit *kit, uint32_t ms)
{
    UNIT_EQUAL(trp_testkit_advance(kit, ms), TRP_OK);
}

/* FSM-5: the limit of a state begins with each event that leads to it, also with one that stays. */
static void
a_state_is_left_when_its_time_is_over(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    pass(kit, 5 * DOOR_LIMIT_MS); /* the first state has none */
    door_tell(kit, ref, "open");
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    pass(kit, 5 * DOOR_LIMIT_MS); /* once */
    DOOR_QUIET(kit);
    door_tell(kit, ref, "open");
    for (int i = 0; i < 5; i++) {
        pass(kit, DOOR_LIMIT_MS - 1);
        door_tell(kit, ref, i % 2 == 0 ? "stay" : "open");
    }
    DOOR_QUIET(kit);
    pass(kit, DOOR_LIMIT_MS - 1);
    door_tell(kit, ref, "who?"); /* not handled: an event all the same */
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_kit_close(kit);
}

/* FSM-5: a limit that is left, and one that was for another visit, never ring. */
static void
the_limit_of_a_state_that_was_left_never_rings(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "open");
    pass(kit, DOOR_LIMIT_MS / 2);
    door_tell(kit, ref, "close");
    pass(kit, 5 * DOOR_LIMIT_MS);
    DOOR_QUIET(kit);
    door_tell(kit, ref, "open");
    pass(kit, DOOR_LIMIT_MS / 2);
    door_tell(kit, ref, "close");
    door_tell(kit, ref, "open"); /* the timer of the first visit is still set */
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_kit_close(kit);
}

/* FSM-4 FSM-5: a transition has a limit of its own, for one event. */
static void
a_transition_overrides_the_limit_of_its_state(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "open");
    door_tell(kit, ref, "open for 10"); /* shorter than what the timer is set to */
    pass(kit, 9);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_tell(kit, ref, "open for 3000");
    pass(kit, 2999);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_tell(kit, ref, "for ever");
    pass(kit, 100 * DOOR_LIMIT_MS);
    DOOR_QUIET(kit);
    door_tell(kit, ref, "stay"); /* that of the state again */
    pass(kit, DOOR_LIMIT_MS);
    DOOR_SAYS(kit, "late in OPEN");
    door_tell(kit, ref, "limit 20"); /* of the machine, while it runs */
    door_tell(kit, ref, "open");
    pass(kit, 20);
    DOOR_SAYS(kit, "late in OPEN");
    door_kit_close(kit);
}

static const trp_fsm_definition first_limited = { .size = sizeof first_limited,
                                                  .name = "door",
                                                  .states = states,
                                                  .states_count = 3,
                                                  .first = OPEN,
                                                  .first_timeout_ms = 50,
                                                  .init = door_init };
TRP_FSM_BEHAVIOUR(first_door, "door", struct door, &first_limited)
static const trp_fsm_definition first_free = { .size = sizeof first_free,
                                               .name = "door",
                                               .states = states,
                                               .states_count = 3,
                                               .first = OPEN,
                                               .first_timeout_ms = TRP_OFF,
                                               .init = door_init };
TRP_FSM_BEHAVIOUR(free_door, "door", struct door, &first_free)

/* FSM-3 FSM-6 */
static void
the_first_state_may_have_a_limit_of_its_own(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &first_door);
    pass(kit, 50);
    DOOR_SAYS(kit, "late in OPEN");
    door_tell(kit, ref, "open"); /* from now on that of the state */
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    trp_system_stop_actor(trp_testkit_system(kit), ref);
    pass(kit, 0);
    ref = door_spawn(kit, &free_door);
    pass(kit, 5 * DOOR_LIMIT_MS);
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* FSM-5: what waits in the mailbox when the time is over was there before it. The machine is held
 * by one handling while its time passes, and the next message comes meanwhile. */
static void
a_limit_is_not_told_after_an_event_that_came_before_it(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    trp_fsm *fsm = trp_testkit_state(kit, ref);
    trp_fsm_state_timeout old;
    door_tell(kit, ref, "open");
    old.priv_due_ns = fsm->priv_due_ns;
    pass(kit, DOOR_LIMIT_MS / 2);
    door_tell(kit, ref, "stay");
    /* the ring of the first event, as if it had been queued before the second one */
    trp_system_tell(trp_testkit_system(kit), ref, &trp_fsm_state_timeout_type, &old, sizeof old);
    pass(kit, 0);
    DOOR_QUIET(kit);
    old.priv_due_ns += 1; /* of nobody */
    trp_system_tell(trp_testkit_system(kit), ref, &trp_fsm_state_timeout_type, &old, sizeof old);
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_kit_close(kit);
}

/* FSM-10 */
static void
named_timers_go_on_whatever_is_received(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "active");
    DOOR_SAYS(kit, "0 0");
    door_tell(kit, ref, "once 100");
    door_tell(kit, ref, "active");
    DOOR_SAYS(kit, "1 0");
    pass(kit, 99);
    door_tell(kit, ref, "open");
    pass(kit, 1);
    DOOR_SAYS(kit, "rings 100");
    door_tell(kit, ref, "active");
    DOOR_SAYS(kit, "0 0");
    door_tell(kit, ref, "close");
    door_tell(kit, ref, "repeat 10");
    pass(kit, 30);
    for (int i = 0; i < 3; i++) {
        DOOR_SAYS(kit, "rings 10");
    }
    door_tell(kit, ref, "once 25"); /* the same name: instead of it */
    pass(kit, 24);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "rings 25");
    door_kit_close(kit);
}

/* FSM-10: also when the message is queued already. */
static void
a_named_timer_that_is_cancelled_never_rings(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "once 100");
    door_tell(kit, ref, "cancel");
    door_tell(kit, ref, "active");
    DOOR_SAYS(kit, "0 0");
    pass(kit, 1000);
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* FSM-10 FSM-5: what was set before a restart never rings after it. */
static void
no_timer_outlives_a_restart(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_filter filter = TRP_FILTER_INIT;
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "once 100");
    door_tell(kit, ref, "limit 30");
    door_tell(kit, ref, "open");
    filter.level = TRP_LOG_ERROR;
    filter.occurrences = 1;
    TRP_INTERCEPT(kit, &filter)
    {
        door_tell(kit, ref, "fail");
    }
    door_tell(kit, ref, "active");
    DOOR_SAYS(kit, "0 0");
    door_tell(kit, ref, "open"); /* with the limit of the table */
    pass(kit, DOOR_LIMIT_MS - 1);
    DOOR_QUIET(kit);
    pass(kit, 1);
    DOOR_SAYS(kit, "late in OPEN");
    door_kit_close(kit);
}

/* FSM-16: the timers of a machine that is tested. */
static void
a_test_sets_a_timer_by_an_event(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref nobody = TRP_REF_NONE, ref = door_spawn(kit, &door);
    UNIT_EQUAL(trp_testkit_receive(kit, ref, nobody, &trp_string_type, "once 7", 6, NULL), TRP_OK);
    UNIT_EQUAL(trp_testkit_receive(kit, ref, nobody, &trp_string_type, "active", 6, NULL), TRP_OK);
    DOOR_SAYS(kit, "1 0");
    pass(kit, 7);
    DOOR_SAYS(kit, "rings 7");
    door_kit_close(kit);
}

UNIT_BEGIN("fsm-timer")
UNIT(a_state_is_left_when_its_time_is_over)
UNIT(the_limit_of_a_state_that_was_left_never_rings)
UNIT(a_transition_overrides_the_limit_of_its_state)
UNIT(the_first_state_may_have_a_limit_of_its_own)
UNIT(a_limit_is_not_told_after_an_event_that_came_before_it)
UNIT(named_timers_go_on_whatever_is_received)
UNIT(a_named_timer_that_is_cancelled_never_rings)
UNIT(no_timer_outlives_a_restart)
UNIT(a_test_sets_a_timer_by_an_event)
UNIT_END
