/* child_proxy_step.c - the decisions of a child proxy, see child_proxy.h.
 *
 * States.  LOOKING --found--> CREATING --created--> LIVE --lost--> OVER
 *             ^ `-------- busy ---'`------refused--> REFUSED --stop--> OVER
 *             `-------- restart, or resume as an answer ---'
 *          No answer in time, or a stop while LOOKING: OVER. The loss of the node: OVER from every
 *          state.
 * Must hold.
 *   remote-child-step-D1  END comes once, and with OVER: nothing happens afterwards.
 *   remote-child-step-D2  A stop of an actor that may exist on the other node waits for its end
 *       there; while CREATING it first waits for the answer, which has the actor's ref.
 *   remote-child-step-D3  Suspensions are counted here until there is an actor; then the actor
 *       counts them.
 *   remote-child-step-D4  A refusal is a failure of the child: it suspends once, and the
 *       supervisor's answer takes that back.
 * Tests.   tests/unit/actor/child_proxy_test.c
 */
#include "actor/distribution/child_proxy.h"

#include "base/assert.h"

static uint32_t
core_end(trpi_child_proxy_core *core, uint32_t also)
{
    core->state = TRPI_CHILD_PROXY_OVER; /* remote-child-step-D1 */
    return TRPI_CHILD_PROXY_DO_END | also;
}

static uint32_t
core_look(trpi_child_proxy_core *core, uint64_t now_ms, uint32_t patience_ms)
{
    core->state = TRPI_CHILD_PROXY_LOOKING;
    core->until_ms = now_ms + patience_ms;
    return TRPI_CHILD_PROXY_DO_LOOK;
}

static uint32_t
on_tick(trpi_child_proxy_core *core, uint64_t now_ms)
{
    if (core->state != TRPI_CHILD_PROXY_LOOKING) {
        return core->stopping && core->state != TRPI_CHILD_PROXY_OVER ? TRPI_CHILD_PROXY_DO_WAIT
                                                                      : 0;
    }
    return now_ms < core->until_ms ? TRPI_CHILD_PROXY_DO_LOOK
                                   : core_end(core, TRPI_CHILD_PROXY_DO_GIVE_UP);
}

static uint32_t
on_stop(trpi_child_proxy_core *core)
{
    bool again = core->stopping;

    core->stopping = true;
    switch (core->state) {
    case TRPI_CHILD_PROXY_LOOKING:
    case TRPI_CHILD_PROXY_REFUSED:
        return core_end(core, 0);
    case TRPI_CHILD_PROXY_CREATING: /* remote-child-step-D2 */
        return again ? 0 : TRPI_CHILD_PROXY_DO_WAIT;
    case TRPI_CHILD_PROXY_LIVE:
        return again ? 0 : TRPI_CHILD_PROXY_DO_STOP | TRPI_CHILD_PROXY_DO_WAIT;
    default:
        return 0;
    }
}

static void
take_back(trpi_child_proxy_core *core)
{
    if (core->suspended > 0) {
        core->suspended--;
    }
}

/* Handle SUSPEND, RESUME, RESTART. */
static uint32_t
on_order(trpi_child_proxy_core *core, enum trpi_child_proxy_event event, bool answers,
         uint64_t now_ms, uint32_t patience_ms)
{
    if (core->state == TRPI_CHILD_PROXY_LIVE) { /* remote-child-step-D3 */
        return event == TRPI_CHILD_PROXY_SUSPEND  ? TRPI_CHILD_PROXY_DO_SUSPEND
               : event == TRPI_CHILD_PROXY_RESUME ? TRPI_CHILD_PROXY_DO_RESUME
                                                  : TRPI_CHILD_PROXY_DO_RESTART;
    }
    if (event == TRPI_CHILD_PROXY_SUSPEND) {
        trpi_assert(core->suspended < UINT8_MAX);
        core->suspended++;
        return 0;
    }
    take_back(core);
    /* there is no actor to resume: make one, as Akka "changes Resume into Create" */
    return core->state == TRPI_CHILD_PROXY_REFUSED && (answers || event == TRPI_CHILD_PROXY_RESTART)
               ? core_look(core, now_ms, patience_ms)
               : 0;
}

uint32_t
trpi_child_proxy_step(trpi_child_proxy_core *core, enum trpi_child_proxy_event event, bool answers,
                      uint64_t now_ms, uint32_t patience_ms)
{
    if (core->state == TRPI_CHILD_PROXY_OVER) {
        return 0; /* remote-child-step-D1 */
    }
    switch (event) {
    case TRPI_CHILD_PROXY_START:
        return core_look(core, now_ms, patience_ms);
    case TRPI_CHILD_PROXY_FOUND:
        if (core->state != TRPI_CHILD_PROXY_LOOKING) {
            return 0;
        }
        core->state = TRPI_CHILD_PROXY_CREATING;
        return TRPI_CHILD_PROXY_DO_ORDER;
    case TRPI_CHILD_PROXY_BUSY:
        if (core->state != TRPI_CHILD_PROXY_CREATING) {
            return 0;
        }
        if (core->stopping) {
            return core_end(core, 0);
        }
        core->state = TRPI_CHILD_PROXY_LOOKING; /* until_ms stays */
        return TRPI_CHILD_PROXY_DO_WAIT;
    case TRPI_CHILD_PROXY_CREATED:
        if (core->state != TRPI_CHILD_PROXY_CREATING) {
            return 0;
        }
        core->state = TRPI_CHILD_PROXY_LIVE;
        return TRPI_CHILD_PROXY_DO_WELCOME | (core->stopping ? TRPI_CHILD_PROXY_DO_STOP : 0);
    case TRPI_CHILD_PROXY_REFUSAL:
        if (core->state != TRPI_CHILD_PROXY_CREATING) {
            return 0;
        }
        if (core->stopping) {
            return core_end(core, 0);
        }
        core->state = TRPI_CHILD_PROXY_REFUSED;
        core->suspended++; /* remote-child-step-D4 */
        return TRPI_CHILD_PROXY_DO_REPORT;
    case TRPI_CHILD_PROXY_FAILURE:
        return core->state == TRPI_CHILD_PROXY_LIVE && !core->stopping ? TRPI_CHILD_PROXY_DO_REPORT
                                                                       : 0;
    case TRPI_CHILD_PROXY_LOST:
        return core_end(core, 0);
    case TRPI_CHILD_PROXY_TICK:
        return on_tick(core, now_ms);
    case TRPI_CHILD_PROXY_STOP:
        return on_stop(core);
    default:
        return on_order(core, event, answers, now_ms, patience_ms);
    }
}
