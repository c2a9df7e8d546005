/* fsm_change.c - a machine that goes on with another table of states: its code was upgraded.
 *
 * Why.     `troupe upgrade` gives an actor new code between two messages. The numbers of states
 *          belong to a table; what stays the same between two versions is their names.
 * Shape.   older machine --check, then copy--> newer machine: state by name, data, time limit,
 *          subscribers. The older one is not touched, for the change may fail behind this.
 * Must hold.
 *   fsm-change-C1  A refusal, or a failure of the code_change that called this, leaves the older
 *       machine as it was: the newer one has copies.
 *   fsm-change-C2  A time limit that runs goes on, and is told once, as are named timers.
 * Limits.  Memory of the older machine stays until the actor ends or restarts; an actor changes as
 *          often as a process upgrades (TRPI_UPGRADES_MAX).
 * Tests.   tests/unit/pattern/fsm_change_test.c
 * Sources. FSM-1 to FSM-17; Erlang's gen_statem, code_change/4
 */
#include "pattern/fsm_inner.h"

#include <string.h>

#include "base/sized.h"

static const trp_fsm_change change_none = TRP_FSM_CHANGE_INIT;

/* Return the name that a state of the older table has in the newer one. */
static const char *
name_now(const trp_fsm_change *how, const char *name)
{
    for (uint32_t i = 0; i < how->renames_count; i++) {
        if (strcmp(how->renames[i].old_name, name) == 0) {
            return how->renames[i].name;
        }
    }
    return name;
}

/* Find a state by its name; false: there is none. */
static bool
state_find(const trp_fsm_definition *definition, const char *name, uint32_t *ret_state)
{
    for (uint32_t i = 0; i < definition->states_count; i++) {
        if (trpi_fsm_has(definition, i) && strcmp(definition->states[i].name, name) == 0) {
            *ret_state = i;
            return true;
        }
    }
    return false;
}

static bool
change_is_whole(const trp_fsm_change *how)
{
    for (uint32_t i = 0; i < how->renames_count && how->renames != NULL; i++) {
        if (how->renames[i].old_name == NULL || how->renames[i].name == NULL) {
            return false;
        }
    }
    return how->renames_count == 0 || how->renames != NULL;
}

/* Take the subscribers along, and the limits that were set: of states that have a name in both. */
static void
more_take(trp_ctx *ctx, trp_fsm *fsm, const trp_fsm *old, const trp_fsm_change *how)
{
    const trp_fsm_definition *d = fsm->priv_definition, *before = old->priv_definition;
    const trpi_fsm_more *from = old->priv_more;
    if (from == NULL) {
        return;
    }
    trpi_fsm_more *m = trp_alloc(ctx, sizeof *m); /* or the change fails */
    m->subscribers_count = m->subscribers_room = from->subscribers_count;
    if (from->subscribers_count > 0) {
        m->subscribers = trp_alloc(ctx, from->subscribers_count * sizeof m->subscribers[0]);
        memcpy(m->subscribers, from->subscribers,
               from->subscribers_count * sizeof m->subscribers[0]);
    }
    if (from->timeouts_ms != NULL) {
        m->timeouts_ms = trp_alloc(ctx, d->states_count * sizeof m->timeouts_ms[0]);
        for (uint32_t i = 0; i < d->states_count; i++) {
            m->timeouts_ms[i] = d->states[i].timeout_ms;
        }
        for (uint32_t i = 0, now; i < before->states_count; i++) {
            if (trpi_fsm_has(before, i) && from->timeouts_ms[i] != before->states[i].timeout_ms &&
                state_find(d, name_now(how, before->states[i].name), &now)) {
                m->timeouts_ms[now] = from->timeouts_ms[i];
            }
        }
    }
    fsm->priv_more = m;
}

/* Take the data along, as it is or as the function makes it. */
static void
data_take(trp_ctx *ctx, trp_fsm *fsm, const trp_fsm *old, const trp_fsm_change *how)
{
    uint32_t bytes = fsm->priv_definition->data_bytes, before = old->priv_definition->data_bytes;
    if (how->data == NULL && bytes != before) {
        trp_fail(ctx, TRP_EINVAL,
                 "state machine %s: data of %u bytes does not become data of %u bytes without a "
                 "function",
                 fsm->priv_definition->name, before, bytes);
    }
    trpi_fsm_memory_make(ctx, fsm);
    trp_err err = TRP_OK;
    if (how->data != NULL) {
        err = how->data(ctx, fsm->priv_data, old->priv_data);
    } else if (bytes > 0) {
        memcpy(fsm->priv_data, old->priv_data, bytes);
    }
    if (err != TRP_OK) {
        trp_fail(ctx, (int32_t)err, "state machine %s: its data could not be taken over: %s",
                 fsm->priv_definition->name, trp_strerror(err));
    }
}

trp_err
trp_fsm_code_change(trp_ctx *ctx, trp_fsm *fsm, const trp_fsm *old,
                    const trp_fsm_definition *definition, const trp_fsm_change *change)
{
    char why[TRPI_FSM_WHY_BYTES];
    const trp_fsm_change *how = change != NULL ? change : &change_none;
    trp_fsm_change own;
    uint32_t state;
    if (ctx == NULL || fsm == NULL || old == NULL || fsm == old ||
        !TRPI_SIZED_TAKE(how, &own, data) || !change_is_whole(how)) {
        return TRP_EINVAL;
    }
    if (old->priv_definition == NULL || (old->priv_flags & TRPI_FSM_ENDED) != 0) {
        return TRP_ESTATE;
    }
    if (!trpi_fsm_check(definition, why)) {
        trp_fail(ctx, TRP_EINVAL, "state machine %s: %s",
                 definition == NULL || definition->name == NULL ? "?" : definition->name, why);
    }
    const char *name = name_now(how, trp_fsm_name(old));
    if (!state_find(definition, name, &state)) {
        trp_fail(ctx, TRP_ENOENT, "state machine %s is in state %s, which the new table lacks",
                 definition->name, name);
    }
    memset(fsm, 0, sizeof *fsm);
    fsm->priv_definition = definition;
    fsm->priv_own = old->priv_own;
    fsm->priv_state = fsm->priv_next = state;
    more_take(ctx, fsm, old, how);
    data_take(ctx, fsm, old, how);
    const trpi_fsm_more *m = fsm->priv_more;
    if (m != NULL && (m->subscribers_count > 0 || m->timeouts_ms != NULL)) {
        fsm->priv_flags &= ~(uint32_t)TRPI_FSM_SIMPLE;
    }
    fsm->priv_flags |= old->priv_flags & TRPI_FSM_DUE; /* fsm-change-C2 */
    fsm->priv_due_ns = old->priv_due_ns;
    fsm->priv_armed_ns = old->priv_armed_ns;
    return TRP_OK;
}
