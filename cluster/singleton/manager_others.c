/* manager_others.c - the engine of singletons: its actions, the other members, the view. */
#include "cluster/singleton/manager_core.h"

#include <string.h>

#include "base/array.h"

/* ---- actions --------------------------------------------------------------------------------- */

void
singleton_act(trpi_singleton_core *core, trpi_singleton_action_kind kind, const char *text)
{
    trpi_singleton_action action = { .kind = kind, .text = text };
    core->sink(core->sink_arg, &action);
}

void
singleton_send(trpi_singleton_core *core, const trpi_node_id *to, trpi_singleton_word word,
               uint64_t round, const trpi_buffer *data)
{
    trpi_singleton_action action = {
        .kind = TRPI_SINGLETON_SEND, .to = to, .word = word, .round = round, .data = data
    };
    core->sink(core->sink_arg, &action);
}

void
singleton_state_set(trpi_singleton_core *core, trpi_singleton_state state, uint64_t now_ms,
                    const char *why)
{
    core->state = state;
    core->since_ms = now_ms;
    core->asked = 0;
    core->ask_ms = now_ms;
    core->successor_absent = false;
    singleton_act(core, TRPI_SINGLETON_STATE, why);
}

void
singleton_lease_release(trpi_singleton_core *core)
{
    if (core->lease_held || core->lease_asked) {
        core->lease_held = core->lease_asked = false;
        singleton_act(core, TRPI_SINGLETON_LEASE_RELEASE, NULL);
    }
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Return where id stands, or should. */
static uint32_t
other_place(const trpi_singleton_core *core, const trpi_node_id *id)
{
    uint32_t low = 0, high = core->others_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (trpi_node_id_compare(&core->others[middle].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

singleton_other *
singleton_other_find(trpi_singleton_core *core, const trpi_node_id *id)
{
    uint32_t at = other_place(core, id);
    return at < core->others_count && trpi_node_id_equal(&core->others[at].id, id)
               ? &core->others[at]
               : NULL;
}

/* Return it, added if need be; there is room. */
singleton_other *
singleton_other_add(trpi_singleton_core *core, const trpi_node_id *id)
{
    singleton_other *found = singleton_other_find(core, id);
    if (found != NULL) {
        return found;
    }
    trpi_assert(core->others_count < core->others_room);
    uint32_t at = other_place(core, id);
    memmove(&core->others[at + 1], &core->others[at],
            (core->others_count - at) * sizeof *core->others);
    core->others[at] =
        (singleton_other){ .id = *id, .present = true, .free_ms = TRPI_SINGLETON_NEVER };
    core->others_count++;
    return &core->others[at];
}

bool
singleton_is_older(const singleton_other *o, const trpi_aged *own)
{
    if (o->up_number == 0) {
        return false;
    }
    trpi_aged aged = { .id = o->id, .up_number = o->up_number };
    return own->up_number == 0 || trpi_age_compare(&aged, own) < 0;
}

bool
singleton_is_settled(const singleton_other *o, uint64_t now_ms)
{
    /* one that asks runs nothing */
    return o->settled || o->asks || (!o->present && o->free_ms <= now_ms);
}

/* Return the first that is not settled: one that is gone and not free yet, or one to ask. */
const singleton_other *
singleton_unsettled(const trpi_singleton_core *core, uint64_t now_ms)
{
    const singleton_other *found = NULL;
    for (uint32_t i = 0; i < core->others_count; i++) {
        const singleton_other *o = &core->others[i];
        if (!singleton_is_settled(o, now_ms) &&
            (found == NULL || (o->present && !found->present))) {
            found = o;
        }
    }
    return found;
}

bool
singleton_is_asked_for(const trpi_singleton_core *core)
{
    for (uint32_t i = 0; i < core->others_count; i++) {
        if (core->others[i].asks) {
            return true;
        }
    }
    return false;
}

/* A younger member asks only when it knows that this node's time is over (singleton-O3). */
bool
singleton_is_asked_by_younger(const trpi_singleton_core *core)
{
    for (uint32_t i = 0; i < core->others_count; i++) {
        if (core->others[i].asks && !singleton_is_older(&core->others[i], &core->own)) {
            return true;
        }
    }
    return false;
}

/* Forget those that are gone and need not be waited for. */
void
singleton_others_forget(trpi_singleton_core *core, uint64_t now_ms)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core->others_count; i++) {
        if (core->others[i].present || core->others[i].free_ms > now_ms) {
            core->others[kept++] = core->others[i];
        }
    }
    core->others_count = kept;
}

/* ---- the view -------------------------------------------------------------------------------- */

trp_err
singleton_view_take(trpi_singleton_core *core, uint64_t now_ms, const trpi_singleton_event *event)
{
    trp_err err = TRPI_ARRAY_RESERVE(core, others, event->count + 1, TRPI_ARRAY_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < event->count; i++) {
        if (trpi_node_id_equal(&event->members[i].id, &core->self)) {
            core->own = event->members[i];
        }
    }
    uint32_t oldest = trpi_oldest(event->members, event->count);
    core->has_oldest = oldest != TRPI_AGE_NONE;
    if (core->has_oldest) {
        core->oldest = event->members[oldest];
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < core->others_count; i++) { /* both are sorted */
        singleton_other *o = &core->others[i];
        while (at < event->count && trpi_node_id_compare(&event->members[at].id, &o->id) < 0) {
            at++;
        }
        bool present = at < event->count && trpi_node_id_equal(&event->members[at].id, &o->id);
        if (!present && (o->present || o->free_ms > now_ms)) { /* it may have become shorter */
            uint64_t wait_ms = event->takeover_ms(event->takeover_arg, &o->id);
            o->free_ms = wait_ms == TRPI_SINGLETON_NEVER ? now_ms + core->settings.retry_ms
                                                         : now_ms + wait_ms;
            o->asks = o->owed = false;
        }
        o->present = present;
    }
    for (uint32_t i = 0; i < event->count; i++) {
        const trpi_aged *m = &event->members[i];
        if (m->up_number != 0 && !trpi_node_id_equal(&m->id, &core->self) &&
            (core->own.up_number == 0 || trpi_age_compare(m, &core->own) < 0)) {
            singleton_other_add(core, &m->id)->up_number = m->up_number;
        }
    }
    singleton_others_forget(core, now_ms);
    return TRP_OK;
}

bool
singleton_is_oldest(const trpi_singleton_core *core)
{
    return core->has_oldest && trpi_node_id_equal(&core->oldest.id, &core->self);
}

/* Return whether this node can be a host: it is Up or Leaving. */
bool
singleton_may_host(const trpi_singleton_core *core)
{
    return !core->out && trpi_age_counts(&core->own);
}

/* Return whether it never will be again. */
bool
singleton_is_past(const trpi_singleton_core *core)
{
    return core->out || core->own.status == TRP_MEMBER_EXITING ||
           core->own.status == TRP_MEMBER_DOWN || core->own.status == TRP_MEMBER_REMOVED;
}
