/* deputy_test.c - the decisions of what stands for a child elsewhere, as a pure machine. */
#include "actor/distribution/deputy.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static trpi_deputy_core core;

static uint32_t
on(enum trpi_deputy_event event)
{
    return trpi_deputy_step(&core, event, false, 1000, 500);
}

static void
begin(enum trpi_deputy_state state)
{
    memset(&core, 0, sizeof core);
    UNIT_EQUAL(on(TRPI_DEPUTY_START), TRPI_DEPUTY_DO_LOOK);
    if (state >= TRPI_DEPUTY_CREATING) {
        UNIT_EQUAL(on(TRPI_DEPUTY_FOUND), TRPI_DEPUTY_DO_ORDER);
    }
    if (state == TRPI_DEPUTY_LIVE) {
        UNIT_EQUAL(on(TRPI_DEPUTY_CREATED), TRPI_DEPUTY_DO_WELCOME);
    } else if (state == TRPI_DEPUTY_REFUSED) {
        UNIT_EQUAL(on(TRPI_DEPUTY_REFUSAL), TRPI_DEPUTY_DO_REPORT);
    }
    UNIT_EQUAL(core.state, state);
}

static void
it_looks_until_somebody_answers_or_patience_ends(void)
{
    begin(TRPI_DEPUTY_LOOKING);
    UNIT_EQUAL(trpi_deputy_step(&core, TRPI_DEPUTY_TICK, false, 1499, 500), TRPI_DEPUTY_DO_LOOK);
    UNIT_EQUAL(trpi_deputy_step(&core, TRPI_DEPUTY_TICK, false, 1500, 500),
               TRPI_DEPUTY_DO_GIVE_UP | TRPI_DEPUTY_DO_END);
    UNIT_EQUAL(on(TRPI_DEPUTY_FOUND), 0); /* remote-child-step-D1 */
    begin(TRPI_DEPUTY_CREATING);
    UNIT_EQUAL(trpi_deputy_step(&core, TRPI_DEPUTY_TICK, false, 9999, 500), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_FOUND), 0); /* a second answer */
}

static void
a_stop_waits_for_what_may_exist(void)
{
    begin(TRPI_DEPUTY_LOOKING);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_END);
    begin(TRPI_DEPUTY_REFUSED);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_END);
    begin(TRPI_DEPUTY_CREATING);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_TICK), TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_DEPUTY_CREATED), TRPI_DEPUTY_DO_WELCOME | TRPI_DEPUTY_DO_STOP);
    UNIT_EQUAL(on(TRPI_DEPUTY_FAILURE), 0); /* on its way out */
    UNIT_EQUAL(on(TRPI_DEPUTY_LOST), TRPI_DEPUTY_DO_END);
    begin(TRPI_DEPUTY_CREATING);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_DEPUTY_REFUSAL), TRPI_DEPUTY_DO_END);
    begin(TRPI_DEPUTY_LIVE);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_STOP | TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_LOST), TRPI_DEPUTY_DO_END);
    UNIT_EQUAL(on(TRPI_DEPUTY_LOST), 0); /* remote-child-step-D1 */
}

static void
orders_go_to_the_actor_or_are_counted(void)
{
    begin(TRPI_DEPUTY_LIVE);
    UNIT_EQUAL(on(TRPI_DEPUTY_SUSPEND), TRPI_DEPUTY_DO_SUSPEND);
    UNIT_EQUAL(on(TRPI_DEPUTY_RESUME), TRPI_DEPUTY_DO_RESUME);
    UNIT_EQUAL(on(TRPI_DEPUTY_RESTART), TRPI_DEPUTY_DO_RESTART);
    UNIT_EQUAL(on(TRPI_DEPUTY_FAILURE), TRPI_DEPUTY_DO_REPORT);
    UNIT_EQUAL(core.suspended, 0);
    begin(TRPI_DEPUTY_CREATING); /* remote-child-step-D3 */
    UNIT_EQUAL(on(TRPI_DEPUTY_SUSPEND), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_SUSPEND), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_RESTART), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_CREATED), TRPI_DEPUTY_DO_WELCOME);
    UNIT_EQUAL(core.suspended, 1);
}

/* Until patience ends, and not if it has been stopped meanwhile. */
static void
an_order_that_cannot_be_sent_is_tried_again(void)
{
    begin(TRPI_DEPUTY_LOOKING);
    uint64_t until_ms = core.until_ms;
    UNIT_EQUAL(on(TRPI_DEPUTY_BUSY), 0);
    UNIT_EQUAL(on(TRPI_DEPUTY_FOUND), TRPI_DEPUTY_DO_ORDER);
    UNIT_EQUAL(on(TRPI_DEPUTY_BUSY), TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(core.state, TRPI_DEPUTY_LOOKING);
    UNIT_EQUAL(core.until_ms, until_ms);
    UNIT_EQUAL(on(TRPI_DEPUTY_TICK), TRPI_DEPUTY_DO_LOOK);
    UNIT_EQUAL(on(TRPI_DEPUTY_FOUND), TRPI_DEPUTY_DO_ORDER);
    UNIT_EQUAL(on(TRPI_DEPUTY_STOP), TRPI_DEPUTY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_DEPUTY_BUSY), TRPI_DEPUTY_DO_END);
}

static void
a_refusal_is_a_failure_that_an_order_answers(void)
{
    begin(TRPI_DEPUTY_REFUSED);
    UNIT_EQUAL(core.suspended, 1);         /* remote-child-step-D4 */
    UNIT_EQUAL(on(TRPI_DEPUTY_RESUME), 0); /* of an ancestor that had failed, too */
    UNIT_EQUAL(core.state, TRPI_DEPUTY_REFUSED);
    UNIT_EQUAL(trpi_deputy_step(&core, TRPI_DEPUTY_RESUME, true, 2000, 500), TRPI_DEPUTY_DO_LOOK);
    UNIT_EQUAL(core.until_ms, 2500);
    begin(TRPI_DEPUTY_REFUSED);
    UNIT_EQUAL(on(TRPI_DEPUTY_RESTART), TRPI_DEPUTY_DO_LOOK);
    UNIT_EQUAL(core.suspended, 0);
    begin(TRPI_DEPUTY_REFUSED);
    UNIT_EQUAL(on(TRPI_DEPUTY_LOST), TRPI_DEPUTY_DO_END);
}

/* Whatever comes in whatever order: one end, none before a stop or a loss, nothing after it. */
static void
it_ends_once_whatever_comes(void)
{
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        uint32_t random = seed * 2654435761u;
        bool ended = false, was_made = false;
        memset(&core, 0, sizeof core);
        for (int i = 0; i < 24; i++) {
            random = random * 1664525u + 1013904223u;
            enum trpi_deputy_event event = (enum trpi_deputy_event)(1 + (random >> 16) % 12);
            enum trpi_deputy_state before = core.state;
            if (event == TRPI_DEPUTY_SUSPEND && core.suspended > 200) {
                continue;
            }
            uint32_t bits = trpi_deputy_step(&core, event, (random >> 24) % 2 != 0, 1000, 500);
            UNIT_TRUE(!ended || bits == 0);
            UNIT_TRUE((bits & TRPI_DEPUTY_DO_WELCOME) == 0 || before == TRPI_DEPUTY_CREATING);
            was_made = before == TRPI_DEPUTY_LIVE || before == TRPI_DEPUTY_CREATING;
            if ((bits & TRPI_DEPUTY_DO_END) != 0) {
                ended = true;
                /* what may exist over there is left only when it is lost, or was refused */
                UNIT_TRUE(!was_made || event == TRPI_DEPUTY_LOST || event == TRPI_DEPUTY_REFUSAL ||
                          event == TRPI_DEPUTY_BUSY);
            }
        }
    }
}

UNIT_BEGIN("deputy")
UNIT(it_looks_until_somebody_answers_or_patience_ends)
UNIT(a_stop_waits_for_what_may_exist)
UNIT(orders_go_to_the_actor_or_are_counted)
UNIT(an_order_that_cannot_be_sent_is_tried_again)
UNIT(a_refusal_is_a_failure_that_an_order_answers)
UNIT(it_ends_once_whatever_comes)
UNIT_END
