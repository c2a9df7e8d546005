/* child_proxy_test.c - the decisions of the proxy of a remote child, as a pure state machine. */
#include "actor/distribution/child_proxy.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static trpi_child_proxy_core core;

static uint32_t
on(enum trpi_child_proxy_event event)
{
    return trpi_child_proxy_step(&core, event, false, 1000, 500);
}

static void
begin(enum trpi_child_proxy_state state)
{
    memset(&core, 0, sizeof core);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_START), TRPI_CHILD_PROXY_DO_LOOK);
    if (state >= TRPI_CHILD_PROXY_CREATING) {
        UNIT_EQUAL(on(TRPI_CHILD_PROXY_FOUND), TRPI_CHILD_PROXY_DO_ORDER);
    }
    if (state == TRPI_CHILD_PROXY_LIVE) {
        UNIT_EQUAL(on(TRPI_CHILD_PROXY_CREATED), TRPI_CHILD_PROXY_DO_WELCOME);
    } else if (state == TRPI_CHILD_PROXY_REFUSED) {
        UNIT_EQUAL(on(TRPI_CHILD_PROXY_REFUSAL), TRPI_CHILD_PROXY_DO_REPORT);
    }
    UNIT_EQUAL(core.state, state);
}

static void
it_looks_until_somebody_answers_or_patience_ends(void)
{
    begin(TRPI_CHILD_PROXY_LOOKING);
    UNIT_EQUAL(trpi_child_proxy_step(&core, TRPI_CHILD_PROXY_TICK, false, 1499, 500),
               TRPI_CHILD_PROXY_DO_LOOK);
    UNIT_EQUAL(trpi_child_proxy_step(&core, TRPI_CHILD_PROXY_TICK, false, 1500, 500),
               TRPI_CHILD_PROXY_DO_GIVE_UP | TRPI_CHILD_PROXY_DO_END);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FOUND), 0); /* remote-child-step-D1 */
    begin(TRPI_CHILD_PROXY_CREATING);
    UNIT_EQUAL(trpi_child_proxy_step(&core, TRPI_CHILD_PROXY_TICK, false, 9999, 500), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FOUND), 0); /* a second answer */
}

static void
a_stop_waits_for_what_may_exist(void)
{
    begin(TRPI_CHILD_PROXY_LOOKING);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_END);
    begin(TRPI_CHILD_PROXY_REFUSED);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_END);
    begin(TRPI_CHILD_PROXY_CREATING);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_TICK), TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_CREATED),
               TRPI_CHILD_PROXY_DO_WELCOME | TRPI_CHILD_PROXY_DO_STOP);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FAILURE), 0); /* on its way out */
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_LOST), TRPI_CHILD_PROXY_DO_END);
    begin(TRPI_CHILD_PROXY_CREATING);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_REFUSAL), TRPI_CHILD_PROXY_DO_END);
    begin(TRPI_CHILD_PROXY_LIVE);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_STOP | TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_LOST), TRPI_CHILD_PROXY_DO_END);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_LOST), 0); /* remote-child-step-D1 */
}

static void
orders_go_to_the_actor_or_are_counted(void)
{
    begin(TRPI_CHILD_PROXY_LIVE);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_SUSPEND), TRPI_CHILD_PROXY_DO_SUSPEND);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_RESUME), TRPI_CHILD_PROXY_DO_RESUME);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_RESTART), TRPI_CHILD_PROXY_DO_RESTART);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FAILURE), TRPI_CHILD_PROXY_DO_REPORT);
    UNIT_EQUAL(core.suspended, 0);
    begin(TRPI_CHILD_PROXY_CREATING); /* remote-child-step-D3 */
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_SUSPEND), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_SUSPEND), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_RESTART), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_CREATED), TRPI_CHILD_PROXY_DO_WELCOME);
    UNIT_EQUAL(core.suspended, 1);
}

/* Until the time is over, and not after a stop. */
static void
an_order_that_cannot_be_sent_is_tried_again(void)
{
    begin(TRPI_CHILD_PROXY_LOOKING);
    uint64_t until_ms = core.until_ms;
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_BUSY), 0);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FOUND), TRPI_CHILD_PROXY_DO_ORDER);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_BUSY), TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(core.state, TRPI_CHILD_PROXY_LOOKING);
    UNIT_EQUAL(core.until_ms, until_ms);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_TICK), TRPI_CHILD_PROXY_DO_LOOK);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_FOUND), TRPI_CHILD_PROXY_DO_ORDER);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_STOP), TRPI_CHILD_PROXY_DO_WAIT);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_BUSY), TRPI_CHILD_PROXY_DO_END);
}

static void
a_refusal_is_a_failure_that_an_order_answers(void)
{
    begin(TRPI_CHILD_PROXY_REFUSED);
    UNIT_EQUAL(core.suspended, 1);              /* remote-child-step-D4 */
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_RESUME), 0); /* of an ancestor that had failed, too */
    UNIT_EQUAL(core.state, TRPI_CHILD_PROXY_REFUSED);
    UNIT_EQUAL(trpi_child_proxy_step(&core, TRPI_CHILD_PROXY_RESUME, true, 2000, 500),
               TRPI_CHILD_PROXY_DO_LOOK);
    UNIT_EQUAL(core.until_ms, 2500);
    begin(TRPI_CHILD_PROXY_REFUSED);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_RESTART), TRPI_CHILD_PROXY_DO_LOOK);
    UNIT_EQUAL(core.suspended, 0);
    begin(TRPI_CHILD_PROXY_REFUSED);
    UNIT_EQUAL(on(TRPI_CHILD_PROXY_LOST), TRPI_CHILD_PROXY_DO_END);
}

/* Random events: exactly one end, none before a stop or a loss, nothing after it. */
static void
it_ends_once_whatever_comes(void)
{
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        uint32_t random = seed * 2654435761u;
        bool ended = false, was_made = false;
        memset(&core, 0, sizeof core);
        for (int i = 0; i < 24; i++) {
            random = random * 1664525u + 1013904223u;
            enum trpi_child_proxy_event event =
                (enum trpi_child_proxy_event)(1 + (random >> 16) % 12);
            enum trpi_child_proxy_state before = core.state;
            if (event == TRPI_CHILD_PROXY_SUSPEND && core.suspended > 200) {
                continue;
            }
            uint32_t bits = trpi_child_proxy_step(&core, event, (random >> 24) % 2 != 0, 1000, 500);
            UNIT_TRUE(!ended || bits == 0);
            UNIT_TRUE((bits & TRPI_CHILD_PROXY_DO_WELCOME) == 0 ||
                      before == TRPI_CHILD_PROXY_CREATING);
            was_made = before == TRPI_CHILD_PROXY_LIVE || before == TRPI_CHILD_PROXY_CREATING;
            if ((bits & TRPI_CHILD_PROXY_DO_END) != 0) {
                ended = true;
                /* an actor that may exist there is given up only when it is lost, or was refused */
                UNIT_TRUE(!was_made || event == TRPI_CHILD_PROXY_LOST ||
                          event == TRPI_CHILD_PROXY_REFUSAL || event == TRPI_CHILD_PROXY_BUSY);
            }
        }
    }
}

UNIT_BEGIN("child_proxy")
UNIT(it_looks_until_somebody_answers_or_patience_ends)
UNIT(a_stop_waits_for_what_may_exist)
UNIT(orders_go_to_the_actor_or_are_counted)
UNIT(an_order_that_cannot_be_sent_is_tried_again)
UNIT(a_refusal_is_a_failure_that_an_order_answers)
UNIT(it_ends_once_whatever_comes)
UNIT_END
