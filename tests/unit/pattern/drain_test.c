/* drain_test.c - before a system ends, its actors handle their messages. */
#include "pattern/pattern.h"
#include "tests/unit/pattern/crew.h"

static _Atomic int drained, handled, gate_open;

static void
on_drained(void *arg)
{
    (void)arg;
    atomic_fetch_add(&drained, 1);
}

/* "slow": takes a while; "pass": tells another one; "again": is never idle; "stuck": until the gate
 * opens; "fail". */
typedef struct hand {
    trp_ref next;
} hand;
static trp_err
hand_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    hand *h = state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&h->next, trp_msg_payload(msg), sizeof h->next);
    } else if (stage_said(msg, "slow")) {
        unit_pause();
        atomic_fetch_add(&handled, 1);
    } else if (stage_said(msg, "pass")) {
        trp_tell_text(ctx, h->next, "slow");
    } else if (stage_said(msg, "again")) {
        trp_tell_text(ctx, trp_self(ctx), "again");
    } else if (stage_said(msg, "stuck")) {
        while (atomic_load(&gate_open) == 0) {
            unit_pause();
        }
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 1, "told to");
    }
    return TRP_OK;
}
static const trp_behaviour hand_behaviour = TRP_BEHAVIOUR_INIT("hand", hand, hand_receive);

static trp_system *
open_scene(trp_ref hands[2])
{
    trp_system *system = stage_open_with((trp_system_options)TRP_SYSTEM_OPTIONS_INIT);
    atomic_store(&drained, 0);
    atomic_store(&handled, 0);
    atomic_store(&gate_open, 0);
    for (int i = 0; i < 2; i++) {
        hands[i] = stage_spawn(system, &hand_behaviour, i == 0 ? "one" : "two");
    }
    trp_system_tell(system, hands[0], &trp_bytes_type, &hands[1], sizeof hands[1]);
    return system;
}

static void
text_tell(trp_system *system, trp_ref to, const char *text)
{
    trp_system_tell(system, to, &trp_string_type, text, strlen(text));
}

static void
all_mail_is_handled_also_what_it_leads_to(void)
{
    trp_ref hands[2];
    trp_system *system = open_scene(hands);
    for (int i = 0; i < 50; i++) {
        text_tell(system, hands[0], i % 2 == 0 ? "slow" : "pass");
    }
    UNIT_EQUAL(trpi_drain_start(system, 0, on_drained, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&drained) == 1, 60000);
    UNIT_EQUAL(atomic_load(&handled), 50);
    UNIT_EQUAL(trpi_drain_start(system, 1, on_drained, NULL), TRP_OK); /* nothing to do */
    UNIT_WAIT(atomic_load(&drained) == 2, 60000);
    stage_close(system);
}

static void
who_never_rests_or_has_failed_does_not_hold_it_up(void)
{
    trp_ref hands[2];
    trp_system *system = open_scene(hands);
    text_tell(system, hands[0], "again");
    text_tell(system, hands[1], "slow");
    UNIT_EQUAL(trpi_drain_start(system, 0, on_drained, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&drained) == 1, 60000);
    UNIT_EQUAL(atomic_load(&handled), 1);
    trp_system_stop_actor(system, hands[0]);
    text_tell(system, hands[1], "fail");
    UNIT_EQUAL(trpi_drain_start(system, 0, on_drained, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&drained) == 2, 60000);
    stage_close(system);
}

static void
who_is_stuck_is_waited_for_until_it_ends(void)
{
    trp_ref hands[2];
    trp_system *system = open_scene(hands);
    text_tell(system, hands[0], "stuck");
    text_tell(system, hands[0], "slow");
    UNIT_EQUAL(trpi_drain_start(system, 0, on_drained, NULL), TRP_OK);
    for (int i = 0; i < 30; i++) { /* longer than a look */
        unit_pause();
    }
    UNIT_EQUAL(atomic_load(&drained), 0);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&drained) == 1, 60000);
    UNIT_EQUAL(atomic_load(&handled), 1);
    stage_close(system);
}

UNIT_BEGIN("drain")
UNIT(all_mail_is_handled_also_what_it_leads_to)
UNIT(who_never_rests_or_has_failed_does_not_hold_it_up)
UNIT(who_is_stuck_is_waited_for_until_it_ends)
UNIT_END
