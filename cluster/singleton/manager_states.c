/* manager_states.c - the engine of singletons: its states and how each is left. */
#include "cluster/singleton/manager_core.h"

#include <stdio.h>

/* ---- handing over ---------------------------------------------------------------------------- */

bool
singleton_hosts(const trpi_singleton_core *core)
{
    return core->state == TRPI_SINGLETON_OLDEST || core->state == TRPI_SINGLETON_WAS_OLDEST ||
           core->state == TRPI_SINGLETON_HANDING_OVER;
}

/* Among those that ask, the oldest gets the data: younger ones ask that one, too. */
static void
data_address(trpi_singleton_core *core)
{
    singleton_other *best = NULL;
    for (uint32_t i = 0; i < core->others_count; i++) {
        if (core->others[i].owed && core->others[i].gets_data) {
            return; /* it was sent, and may have arrived */
        }
    }
    for (uint32_t i = 0; i < core->others_count; i++) {
        singleton_other *o = &core->others[i];
        o->gets_data = false;
        if (o->asks && (best == NULL || (o->up_number != 0 && o->up_number < best->up_number))) {
            best = o;
        }
    }
    if (best != NULL) {
        best->gets_data = true;
    }
}

/* Answer all that ask: this node hosts nothing. singleton-O3, -O5 */
static void
answers_send(trpi_singleton_core *core, uint64_t now_ms)
{
    data_address(core);
    for (uint32_t i = 0; i < core->others_count; i++) {
        singleton_other *o = &core->others[i];
        if (o->asks) {
            o->asks = false;
            o->settled = false;
            o->owed = true;
            singleton_send(core, &o->id, TRPI_SINGLETON_HAND_OVER_DONE, o->asks_round,
                           o->gets_data ? &core->data : NULL);
        }
    }
    core->done_count = 0;
    core->done_ms = now_ms + core->settings.retry_ms;
}

bool
singleton_is_owed(const trpi_singleton_core *core)
{
    for (uint32_t i = 0; i < core->others_count; i++) {
        if (core->others[i].owed) {
            return true;
        }
    }
    return false;
}

static void
done_again(trpi_singleton_core *core, uint64_t now_ms)
{
    if (!singleton_is_owed(core) || now_ms < core->done_ms) {
        return;
    }
    bool last = ++core->done_count >= SINGLETON_DONE_RETRIES;
    for (uint32_t i = 0; i < core->others_count; i++) {
        singleton_other *o = &core->others[i];
        if (o->owed && !last) {
            singleton_send(core, &o->id, TRPI_SINGLETON_HAND_OVER_DONE, o->asks_round,
                           o->gets_data ? &core->data : NULL);
        }
        o->owed = o->owed && !last;
    }
    core->done_ms = now_ms + core->settings.retry_ms;
}

void
singleton_stop_begin(trpi_singleton_core *core, uint64_t now_ms, bool force, const char *why)
{
    trpi_buffer_fini(&core->data);
    singleton_state_set(core, TRPI_SINGLETON_HANDING_OVER, now_ms, why);
    core->stop_ms = now_ms + core->settings.stop_timeout_ms;
    core->killed = force;
    if (core->runs) {
        singleton_act(core, force ? TRPI_SINGLETON_KILL : TRPI_SINGLETON_STOP, NULL);
    }
}

/* The singleton has ended, or never ran, and those that ask get their answers. */
static void
stop_finish(trpi_singleton_core *core, uint64_t now_ms)
{
    bool ends = !singleton_may_host(core) || singleton_is_asked_by_younger(core);
    singleton_lease_release(core);
    answers_send(core, now_ms);
    singleton_state_set(core, ends ? TRPI_SINGLETON_END : TRPI_SINGLETON_YOUNGER, now_ms,
                        ends ? "this node hosts nothing any more" : "it has stopped on this node");
}

/* ---- the states ------------------------------------------------------------------------------ */

static void
asking_begin(trpi_singleton_core *core, uint64_t now_ms)
{
    core->round++;
    for (uint32_t i = 0; i < core->others_count; i++) {
        core->others[i].settled = false;
        core->others[i].owed = false;
    }
    trpi_buffer_fini(&core->data);
    singleton_state_set(core, TRPI_SINGLETON_BECOMING, now_ms, "this node is the oldest");
}

/* CONTRIB-07 */
static void
stuck_tell(trpi_singleton_core *core, const trpi_node_id *id, const char *which, const char *what)
{
    char text[TRPI_ADDRESS_TEXT_BYTES + 160], address[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&id->address, address, sizeof address);
    (void)snprintf(text, sizeof text,
                   "stuck: %s, %s, has not answered %u %s; the manager restarts and begins again "
                   "(if that node is dead, mark it Down)",
                   address, which, core->asked, what);
    core->stuck = true;
    singleton_act(core, TRPI_SINGLETON_STUCK, text);
}

/* Ask those that are not settled. */
static void
others_ask(trpi_singleton_core *core, uint64_t now_ms)
{
    const singleton_other *first = singleton_unsettled(core, now_ms);
    if (first == NULL || !first->present || now_ms < core->ask_ms) {
        return;
    }
    if (core->asked >= core->settings.hand_over_retries) {
        stuck_tell(core, &first->id, "an older member", "requests to hand over");
        return;
    }
    for (uint32_t i = 0; i < core->others_count; i++) {
        singleton_other *o = &core->others[i];
        if (o->present && !singleton_is_settled(o, now_ms)) {
            singleton_send(core, &o->id, TRPI_SINGLETON_HAND_OVER_TO_ME, core->round, NULL);
        }
    }
    core->asked++;
    core->ask_ms = now_ms + core->settings.retry_ms;
}

static void
singleton_spawn(trpi_singleton_core *core, uint64_t now_ms, const trpi_buffer *data)
{
    trpi_singleton_action action = { .kind = TRPI_SINGLETON_SPAWN, .data = data };
    trpi_assert(!core->runs);
    core->runs = true;
    core->killed = false;
    core->spawn_ms = UINT64_MAX;
    core->hosts_since_ms = now_ms;
    core->sink(core->sink_arg, &action);
}

/* All others are settled, or one asks for it, too. */
static void
become_finish(trpi_singleton_core *core, uint64_t now_ms)
{
    if (singleton_is_asked_for(core)) {
        stop_finish(core, now_ms); /* singleton-O5 */
        return;
    }
    if (core->cluster_ends) {
        return; /* CONTRIB-08: none is started while the whole cluster ends */
    }
    if (core->settings.lease && !core->lease_held) {
        if (!core->lease_asked && now_ms >= core->lease_ms) {
            core->lease_asked = true;
            singleton_act(core, TRPI_SINGLETON_LEASE_ACQUIRE, NULL);
        }
        return;
    }
    singleton_state_set(core, TRPI_SINGLETON_OLDEST, now_ms, "all older members have handed over");
    core->lease_ms = now_ms + core->settings.lease_retry_ms;
    singleton_spawn(core, now_ms, core->data.count > 0 ? &core->data : NULL);
    trpi_buffer_fini(&core->data);
}

/* Until when data that came while this node leaves is kept for the member that will ask for it. */
uint64_t
singleton_past_end_ms(const trpi_singleton_core *core)
{
    return core->since_ms + (uint64_t)core->settings.retry_ms * SINGLETON_DONE_RETRIES;
}

static void
step_becoming(trpi_singleton_core *core, uint64_t now_ms)
{
    if (!singleton_is_oldest(core) && singleton_may_host(core) && !singleton_is_asked_for(core)) {
        singleton_lease_release(core);
        singleton_state_set(core, TRPI_SINGLETON_YOUNGER, now_ms, "an older member came");
        return;
    }
    if (core->out ||
        (singleton_is_past(core) && !singleton_is_asked_for(core) && !core->has_oldest)) {
        stop_finish(core, now_ms);
        return;
    }
    if (singleton_unsettled(core, now_ms) == NULL ||
        (core->settings.broken & TRPI_SINGLETON_BROKEN_HASTY)) {
        if (!singleton_is_past(core) || singleton_is_asked_for(core)) {
            become_finish(core, now_ms);
        } else if (core->data.count == 0 || now_ms >= singleton_past_end_ms(core)) {
            stop_finish(core, now_ms);
        }
        return;
    }
    others_ask(core, now_ms);
}

static void
step_oldest(trpi_singleton_core *core, uint64_t now_ms)
{
    if (core->out) {
        singleton_stop_begin(core, now_ms, true, "this node is no member any more");
        return;
    }
    if (singleton_is_oldest(core)) {
        if (!core->runs && now_ms >= core->spawn_ms && !core->cluster_ends) {
            singleton_spawn(core, now_ms, NULL);
        }
        if (core->settings.lease && !core->lease_asked && now_ms >= core->lease_ms) {
            core->lease_asked = true; /* still ours? */
            core->lease_ms = now_ms + core->settings.lease_retry_ms;
            singleton_act(core, TRPI_SINGLETON_LEASE_ACQUIRE, NULL);
        }
        return;
    }
    if (core->cluster_ends || !core->has_oldest) {
        singleton_stop_begin(core, now_ms, false,
                             core->cluster_ends ? "the whole cluster ends"
                                                : "no member is left to host it");
        return;
    }
    singleton_state_set(core, TRPI_SINGLETON_WAS_OLDEST, now_ms, "another member is the oldest");
}

/* Offer it to the new oldest. A member that is older, and does not answer: the manager is stuck. */
static void
singleton_offer(trpi_singleton_core *core, uint64_t now_ms)
{
    if (core->asked >= core->settings.take_over_retries) {
        stuck_tell(core, &core->oldest.id, "the oldest member", "offers of the singleton");
        return;
    }
    singleton_send(core, &core->oldest.id, TRPI_SINGLETON_TAKE_OVER_FROM_ME, 0, NULL);
    core->asked++;
    core->ask_ms = now_ms + core->settings.retry_ms;
}

static void
step_was_oldest(trpi_singleton_core *core, uint64_t now_ms)
{
    if (core->out) {
        singleton_stop_begin(core, now_ms, true, "this node is no member any more");
    } else if (singleton_is_oldest(core)) {
        singleton_state_set(core, TRPI_SINGLETON_OLDEST, now_ms, "this node is the oldest again");
    } else if (core->cluster_ends || !core->has_oldest ||
               (singleton_is_past(core) &&
                (core->successor_absent || core->asked >= core->settings.take_over_retries))) {
        singleton_stop_begin(core, now_ms, false,
                             core->cluster_ends  ? "the whole cluster ends"
                             : !core->has_oldest ? "no member is left to host it"
                             : core->successor_absent
                                 ? "it was not started on the new oldest member"
                                 : "the new oldest member does not answer");
    } else if (now_ms >= core->ask_ms && !core->successor_absent) {
        singleton_offer(core, now_ms);
    }
}

static void
step_handing_over(trpi_singleton_core *core, uint64_t now_ms)
{
    if (!core->runs) {
        stop_finish(core, now_ms);
    } else if (!core->killed && (core->out || now_ms >= core->stop_ms)) {
        core->killed = true;
        singleton_act(
            core, TRPI_SINGLETON_SAY,
            core->out ? "this node is no member any more: it is stopped after its present message"
                      : "it has not stopped within its time since the end message: it is stopped "
                        "after its present message");
        singleton_act(core, TRPI_SINGLETON_KILL, NULL);
    }
}

static void
step_end(trpi_singleton_core *core, uint64_t now_ms)
{
    if (singleton_is_asked_for(core)) {
        answers_send(core, now_ms);
    }
    if (singleton_may_host(core)) { /* a younger member took it: it knows more, unless this lasts */
        if (now_ms >=
            core->since_ms + (uint64_t)core->settings.retry_ms * core->settings.hand_over_retries) {
            singleton_state_set(core, TRPI_SINGLETON_START, now_ms, "this node is still Up");
        }
        return;
    }
    if (!singleton_is_owed(core) && !core->over) {
        core->over = true;
        singleton_act(core, TRPI_SINGLETON_OVER, NULL);
    }
}

static void
step_idle(trpi_singleton_core *core, uint64_t now_ms)
{
    bool ends = singleton_is_past(core) || singleton_is_asked_by_younger(core);
    if (singleton_is_asked_for(core)) {
        answers_send(core, now_ms);
    }
    if (ends) {
        singleton_state_set(core, TRPI_SINGLETON_END, now_ms, "this node leaves");
    } else if (singleton_may_host(core) && singleton_is_oldest(core)) {
        asking_begin(core, now_ms);
    } else if (singleton_may_host(core) && core->state == TRPI_SINGLETON_START) {
        singleton_state_set(core, TRPI_SINGLETON_YOUNGER, now_ms, "an older member hosts it");
    }
}

/* Look at everything until nothing changes. */
void
singleton_advance(trpi_singleton_core *core, uint64_t now_ms)
{
    trpi_singleton_state before;
    do {
        before = core->state;
        switch (core->state) {
        case TRPI_SINGLETON_START:
        case TRPI_SINGLETON_YOUNGER:
            step_idle(core, now_ms);
            break;
        case TRPI_SINGLETON_BECOMING:
            step_becoming(core, now_ms);
            break;
        case TRPI_SINGLETON_OLDEST:
            step_oldest(core, now_ms);
            break;
        case TRPI_SINGLETON_WAS_OLDEST:
            step_was_oldest(core, now_ms);
            break;
        case TRPI_SINGLETON_HANDING_OVER:
            step_handing_over(core, now_ms);
            break;
        case TRPI_SINGLETON_END:
            step_end(core, now_ms);
            break;
        }
    } while (core->state != before && !core->stuck);
    done_again(core, now_ms);
    if (core->state == TRPI_SINGLETON_END) {
        step_end(core, now_ms);
    }
}
