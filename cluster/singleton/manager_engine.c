/* manager_engine.c - see manager_engine.h.
 *
 * Why.     A new host must not start while an old one may still work, and must start when none
 *          does. Which member is the oldest is known from the view alone; whether the members
 *          before it have stopped is not.
 * Shape.   Each core keeps a list of *others*: older members, and members that said that they host
 *          the singleton or were given it. The oldest asks each that is present (HAND_OVER_TO_ME),
 *          and waits for the take-over time of each that is gone. When all are settled it starts.
 * States.  Start -> Younger -> BecomingOldest -> Oldest -> WasOldest -> HandingOver -> End
 *            `--------------------^                           `-> Younger (an older member came)
 *          A change of the oldest is acted upon when the one before is done: what counts is the
 *          present view, looked at after each event.
 * Must hold.
 *   singleton-O1  The singleton runs only in Oldest, WasOldest and HandingOver.          (check)
 *   singleton-O2  It is started only when every other is settled: it has answered DONE or ABSENT in
 *       this round, or is gone and its take-over time is over.                           (spawn)
 *   singleton-O3  An answer binds: a node that has answered DONE to a younger one does not start it
 *       again unless that one is settled in its turn.                                    (release)
 *   singleton-O4  Each state has a way out that needs no other node: a timer, or the end of this
 *       node's membership.                                                               (check)
 *   singleton-O5  A relay: a node that is asked while it still asks others answers when they have,
 *       and passes their data on.                                                        (release)
 * Limits.  One entry for each older member of the role, at most those of a view. Retries and times:
 *          trpi_singleton_settings.
 * Tests.   tests/unit/cluster/singleton_engine_test.c: tables, and random clusters of cores
 * Sources. CONTRIB-01, -02, -04, -06 to -08
 */
#include "cluster/singleton/manager_engine.h"

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/singleton/manager_core.h"

const char *
trpi_singleton_state_name(trpi_singleton_state state)
{
    static const char *const names[] = { "?",      "Start",     "Younger",     "BecomingOldest",
                                         "Oldest", "WasOldest", "HandingOver", "End" };
    return names[state <= TRPI_SINGLETON_END ? state : 0];
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void
request_take(trpi_singleton_core *core, uint64_t now_ms, singleton_other *from, uint64_t round)
{
    from->asks = true;
    from->asks_round = round;
    if (singleton_hosts(core) || core->state == TRPI_SINGLETON_BECOMING) {
        singleton_send(core, &from->id, TRPI_SINGLETON_HAND_OVER_IN_PROGRESS, round, NULL);
    }
    if (core->state == TRPI_SINGLETON_OLDEST || core->state == TRPI_SINGLETON_WAS_OLDEST) {
        singleton_stop_begin(core, now_ms, false, "another member takes it over");
    }
}

static void
offer_take(trpi_singleton_core *core, uint64_t now_ms, singleton_other *from)
{
    from->settled = false; /* it hosts the singleton */
    if (core->state == TRPI_SINGLETON_OLDEST) {
        singleton_send(core, &from->id, TRPI_SINGLETON_HAND_OVER_TO_ME, core->round, NULL);
    } else if (core->state == TRPI_SINGLETON_BECOMING) {
        core->ask_ms = now_ms;
    }
}

static void
answer_take(trpi_singleton_core *core, singleton_other *from, uint64_t round, trpi_buffer *data)
{
    if (core->state == TRPI_SINGLETON_BECOMING && round != core->round) {
        return; /* of an earlier request: it is asked again, and sends its data again */
    }
    singleton_send(core, &from->id, TRPI_SINGLETON_TAKEN, round, NULL);
    bool again = from->settled; /* it was asked twice */
    from->settled = true;
    if (data != NULL && data->count > 0) {
        if (core->state == TRPI_SINGLETON_BECOMING) {
            trpi_buffer_fini(&core->data);
            core->data = *data;
            *data = (trpi_buffer){ NULL, 0, 0 };
        } else if (!again) {
            singleton_act(
                core, TRPI_SINGLETON_SAY,
                "data of an earlier host came too late: the singleton has started without it");
        }
    }
}

static trp_err
frame_take(trpi_singleton_core *core, uint64_t now_ms, const trpi_singleton_event *event)
{
    trp_err err = TRPI_ARRAY_RESERVE(core, others, 1, TRPI_ARRAY_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    if (event->word == TRPI_SINGLETON_ABSENT && core->state == TRPI_SINGLETON_WAS_OLDEST) {
        core->successor_absent =
            core->successor_absent ||
            (core->has_oldest && trpi_node_id_equal(&core->oldest.id, &event->from));
        return TRP_OK;
    }
    bool known = singleton_other_find(core, &event->from) != NULL;
    if (!known && event->word != TRPI_SINGLETON_HAND_OVER_TO_ME &&
        event->word != TRPI_SINGLETON_TAKE_OVER_FROM_ME) {
        return TRP_OK;
    }
    singleton_other *from = singleton_other_add(core, &event->from);
    from->up_number = event->up_number;
    switch (event->word) {
    case TRPI_SINGLETON_HAND_OVER_TO_ME:
        request_take(core, now_ms, from, event->round);
        break;
    case TRPI_SINGLETON_HAND_OVER_IN_PROGRESS:
        core->asked = core->state == TRPI_SINGLETON_BECOMING ? 0 : core->asked;
        break;
    case TRPI_SINGLETON_HAND_OVER_DONE:
        answer_take(core, from, event->round, event->data);
        break;
    case TRPI_SINGLETON_TAKEN:
        if (from->owed && from->gets_data) {
            trpi_buffer_fini(&core->data);
        }
        from->owed = false;
        break;
    case TRPI_SINGLETON_TAKE_OVER_FROM_ME:
        offer_take(core, now_ms, from);
        break;
    case TRPI_SINGLETON_ABSENT:
        from->settled = from->settled || core->state == TRPI_SINGLETON_BECOMING;
        break;
    }
    return TRP_OK;
}

/* ---- the door -------------------------------------------------------------------------------- */

static void
stop_take(trpi_singleton_core *core, uint64_t now_ms)
{
    core->runs = false;
    if (core->state != TRPI_SINGLETON_HANDING_OVER) {
        core->spawn_ms = now_ms + core->settings.retry_ms;
    }
}

static void
lease_answered(trpi_singleton_core *core, uint64_t now_ms, bool granted)
{
    if (!core->lease_asked) {
        return; /* it is not wanted any more, and was released */
    }
    core->lease_asked = false;
    core->lease_ms = now_ms + core->settings.lease_retry_ms;
    bool lost = core->lease_held && !granted;
    core->lease_held = granted;
    if (lost &&
        (core->state == TRPI_SINGLETON_OLDEST || core->state == TRPI_SINGLETON_WAS_OLDEST)) {
        singleton_stop_begin(core, now_ms, true, "its lease is lost");
    }
}

trp_err
trpi_singleton_new(const trpi_node_id *self, const trpi_singleton_settings *settings,
                   trpi_singleton_sink sink, void *sink_arg, trpi_singleton_core **ret_core)
{
    trpi_singleton_core *core = trpi_alloc(sizeof *core);
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    core->self = *self;
    core->settings = *settings;
    core->sink = sink;
    core->sink_arg = sink_arg;
    core->state = TRPI_SINGLETON_START;
    *ret_core = core;
    return TRP_OK;
}

void
trpi_singleton_free(trpi_singleton_core *core)
{
    if (core != NULL) {
        trpi_buffer_fini(&core->data);
        trpi_free(core->others);
        trpi_free(core);
    }
}

void
trpi_singleton_restart(trpi_singleton_core *core, uint64_t now_ms)
{
    core->runs = core->stuck = core->killed = false;
    trpi_buffer_fini(&core->data);
    singleton_state_set(core, TRPI_SINGLETON_START, now_ms, "the manager has restarted");
}

trp_err
trpi_singleton_step(trpi_singleton_core *core, uint64_t now_ms, const trpi_singleton_event *event)
{
    trp_err err = TRP_OK;
    switch (event->kind) {
    case TRPI_SINGLETON_TICK:
        singleton_others_forget(core, now_ms);
        break;
    case TRPI_SINGLETON_VIEW:
        err = singleton_view_take(core, now_ms, event);
        break;
    case TRPI_SINGLETON_OUT:
        core->out = true;
        core->has_oldest = false;
        break;
    case TRPI_SINGLETON_FRAME:
        err = frame_take(core, now_ms, event);
        break;
    case TRPI_SINGLETON_STARTED:
        break;
    case TRPI_SINGLETON_STOPPED:
        stop_take(core, now_ms);
        break;
    case TRPI_SINGLETON_DATA:
        if (core->state == TRPI_SINGLETON_HANDING_OVER && core->runs) {
            trpi_buffer_fini(&core->data);
            core->data = *event->data;
            *event->data = (trpi_buffer){ NULL, 0, 0 };
        }
        break;
    case TRPI_SINGLETON_LEASE_GRANTED:
    case TRPI_SINGLETON_LEASE_REFUSED:
        lease_answered(core, now_ms, event->kind == TRPI_SINGLETON_LEASE_GRANTED);
        break;
    case TRPI_SINGLETON_CLUSTER_ENDS:
        core->cluster_ends = event->count != 0;
        break;
    }
    if (err == TRP_OK && !core->stuck) {
        singleton_advance(core, now_ms);
        trpi_assert_check(trpi_singleton_check, core);
    }
    return err;
}

static uint64_t
sooner_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
becoming_wake_ms(const trpi_singleton_core *core)
{
    uint64_t wake_ms =
        core->data.count > 0 && singleton_is_past(core) ? singleton_past_end_ms(core) : UINT64_MAX;
    for (uint32_t i = 0; i < core->others_count; i++) {
        const singleton_other *o = &core->others[i];
        if (!o->settled && !o->asks) {
            wake_ms = sooner_ms(wake_ms, o->present ? core->ask_ms : o->free_ms);
        }
    }
    return core->settings.lease && !core->lease_held && !core->lease_asked
               ? sooner_ms(wake_ms, core->lease_ms)
               : wake_ms;
}

uint64_t
trpi_singleton_wake_ms(const trpi_singleton_core *core)
{
    uint64_t wake_ms = singleton_is_owed(core) ? core->done_ms : UINT64_MAX;
    switch (core->state) {
    case TRPI_SINGLETON_BECOMING:
        wake_ms = sooner_ms(wake_ms, becoming_wake_ms(core));
        break;
    case TRPI_SINGLETON_OLDEST:
        wake_ms = core->runs ? wake_ms : sooner_ms(wake_ms, core->spawn_ms);
        wake_ms = core->settings.lease && !core->lease_asked ? sooner_ms(wake_ms, core->lease_ms)
                                                             : wake_ms;
        break;
    case TRPI_SINGLETON_WAS_OLDEST:
        wake_ms = core->successor_absent ? wake_ms : sooner_ms(wake_ms, core->ask_ms);
        break;
    case TRPI_SINGLETON_HANDING_OVER:
        wake_ms = core->killed ? wake_ms : sooner_ms(wake_ms, core->stop_ms);
        break;
    case TRPI_SINGLETON_END:
        if (singleton_may_host(core)) {
            wake_ms = sooner_ms(wake_ms, core->since_ms + (uint64_t)core->settings.retry_ms *
                                                              core->settings.hand_over_retries);
        }
        break;
    default:
        break;
    }
    return wake_ms;
}

trpi_singleton_state
trpi_singleton_state_get(const trpi_singleton_core *core)
{
    return core->state;
}

void
trpi_singleton_look_at(const trpi_singleton_core *core, trpi_singleton_look *ret_look)
{
    *ret_look = (trpi_singleton_look){ .state = core->state,
                                       .state_since_ms = core->since_ms,
                                       .hosts = core->runs,
                                       .hosts_since_ms = core->hosts_since_ms,
                                       .asked = core->asked,
                                       .cluster_ends = core->cluster_ends };
    if (core->has_oldest) {
        ret_look->oldest = &core->oldest.id;
    }
    if (core->state == TRPI_SINGLETON_WAS_OLDEST && core->has_oldest) {
        ret_look->awaited = &core->oldest.id;
    } else if (core->state == TRPI_SINGLETON_BECOMING) {
        const singleton_other *first = singleton_unsettled(core, 0);
        ret_look->awaited = first == NULL ? NULL : &first->id;
        ret_look->awaited_free_ms = first == NULL || first->present ? 0 : first->free_ms;
        ret_look->awaits_lease = first == NULL && core->settings.lease && !core->lease_held;
    }
}

const char *
trpi_singleton_check(const trpi_singleton_core *core, trpi_check *check)
{
    if (core->runs && !singleton_hosts(core)) {
        return trpi_check_broken(check, "singleton-O1: it runs in %s",
                                 trpi_singleton_state_name(core->state));
    }
    for (uint32_t i = 1; i < core->others_count; i++) {
        if (trpi_node_id_compare(&core->others[i - 1].id, &core->others[i].id) >= 0) {
            return trpi_check_broken(check, "singleton-O2: others are not in order");
        }
    }
    if (core->state == TRPI_SINGLETON_WAS_OLDEST && core->successor_absent &&
        singleton_is_past(core)) {
        return trpi_check_broken(check, "singleton-O4: WasOldest waits for nobody");
    }
    return NULL;
}
