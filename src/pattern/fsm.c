/* fsm.c - an actor as a state machine: one event, one step, and its timers.
 *
 * Why.     States and transitions that are declared can be checked, watched and drawn.
 * Shape.   message -> receive -> the function of the state, which notes its outcome in the machine
 *          -> step: replies, hooks, subscribers, data, time limit. Most events stay in a state
 *          without a limit: they touch one line of the machine.
 *          One timer of the actor stands for the limits of all states: it is not set anew by each
 *          event, but rings at a time that was due once and is then set to what is due now.
 * States.  priv_flags: EVENT while the function of a state runs, beside it what it has noted.
 * Must hold.
 *   fsm-E1  A function that failed has changed nothing of the machine: its notes are dropped.
 *   fsm-E2  A time limit is told only if no event was handled since the event that began it, and
 *       not before what was in the mailbox when it was over: a ring whose time is not exactly the
 *       one that is due now only sets the timer again.
 *   fsm-E3  Hooks and subscribers see a transition once, after its replies, and only if the state
 *       differs.
 *   fsm-E4  terminated is called at most once for an incarnation.
 * Limits.  TRP_FSM_SUBSCRIBERS_MAX, TRP_FSM_REPLIES_MAX.
 * Cost.    bench fsm: against the same behaviour without a machine.
 * Tests.   tests/unit/pattern/fsm_test.c, fsm_timer_test.c
 * Sources. FSM-1 to FSM-17
 */
#include "pattern/fsm_inner.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/payload.h"

enum { OWN_TYPES = 3 /* timeout, subscribe, unsubscribe */ };

enum {
    EVENT = TRP_FSM_PRIV_EVENT,
    LIMIT = TRPI_FSM_LIMIT,
    USING = TRPI_FSM_USING,
    REPLIES = TRPI_FSM_REPLIES,
    STOP = TRPI_FSM_STOP,
    NOTES = LIMIT | USING | REPLIES | STOP,
    ENDED = TRPI_FSM_ENDED,
    HISTORY = TRPI_FSM_HISTORY,
    SIMPLE = TRPI_FSM_SIMPLE,
    DUE = TRPI_FSM_DUE
};

typedef trpi_fsm_reply reply;
typedef trpi_fsm_more more;

/* ---- types ----------------------------------------------------------------------------------- */

enum { timeout_tag, subscribe_tag, unsubscribe_tag, current_tag, transition_tag };
static const trp_field subscribe_fields[] = { { "subscriber", TRP_FIELD_ref,
                                                offsetof(trp_fsm_subscribe, subscriber), NULL } };
static const trp_field current_fields[] = {
    { "machine", TRP_FIELD_ref, offsetof(trp_fsm_current, machine), NULL },
    { "state", TRP_FIELD_u32, offsetof(trp_fsm_current, state), NULL },
    { "zero", TRP_FIELD_u32, offsetof(trp_fsm_current, zero), NULL },
    { "name", TRP_FIELD_text32, offsetof(trp_fsm_current, name), NULL }
};
static const trp_field transition_fields[] = {
    { "machine", TRP_FIELD_ref, offsetof(trp_fsm_transition, machine), NULL },
    { "from", TRP_FIELD_u32, offsetof(trp_fsm_transition, from), NULL },
    { "to", TRP_FIELD_u32, offsetof(trp_fsm_transition, to), NULL },
    { "from_name", TRP_FIELD_text32, offsetof(trp_fsm_transition, from_name), NULL },
    { "to_name", TRP_FIELD_text32, offsetof(trp_fsm_transition, to_name), NULL }
};
trp_type trp_fsm_state_timeout_type = { .name = "fsm.state-timeout",
                                        .bytes = sizeof(trp_fsm_state_timeout),
                                        .tag = timeout_tag,
                                        .flags = TRP_TYPE_LOCAL };
trp_type trp_fsm_subscribe_type = { .name = "fsm.subscribe",
                                    .bytes = sizeof(trp_fsm_subscribe),
                                    .tag = subscribe_tag,
                                    .fields = subscribe_fields,
                                    .fields_count = 1 };
trp_type trp_fsm_unsubscribe_type = { .name = "fsm.unsubscribe",
                                      .bytes = sizeof(trp_fsm_unsubscribe),
                                      .tag = unsubscribe_tag,
                                      .fields = subscribe_fields,
                                      .fields_count = 1 };
trp_type trp_fsm_current_type = { .name = "fsm.current",
                                  .bytes = sizeof(trp_fsm_current),
                                  .tag = current_tag,
                                  .fields = current_fields,
                                  .fields_count = 4 };
trp_type trp_fsm_transition_type = { .name = "fsm.transition",
                                     .bytes = sizeof(trp_fsm_transition),
                                     .tag = transition_tag,
                                     .fields = transition_fields,
                                     .fields_count = 5 };
static trp_type *const types[] = { &trp_fsm_state_timeout_type, &trp_fsm_subscribe_type,
                                   &trp_fsm_unsubscribe_type, &trp_fsm_current_type,
                                   &trp_fsm_transition_type };
const trp_protocol trp_fsm_protocol = { "fsm", types, 5, 0 };

static more *
more_get(trp_ctx *ctx, trp_fsm *fsm)
{
    if (fsm->priv_more == NULL) {
        fsm->priv_more = trp_alloc(ctx, sizeof(more)); /* or the actor fails */
    }
    return fsm->priv_more;
}

static const char *
state_name(const trp_fsm *fsm, uint32_t state)
{
    return fsm->priv_definition->states[state].name;
}

/* ---- time limits ----------------------------------------------------------------------------- */

static uint32_t
limit_of(const trp_fsm *fsm)
{
    const more *m = fsm->priv_more;
    uint32_t state = fsm->priv_state;
    if ((fsm->priv_flags & LIMIT) != 0) {
        return fsm->priv_timeout_ms;
    }
    return m != NULL && m->timeouts_ms != NULL ? m->timeouts_ms[state]
                                               : fsm->priv_definition->states[state].timeout_ms;
}

static trp_err
limit_arm(trp_ctx *ctx, trp_fsm *fsm, uint32_t ms)
{
    trp_fsm_state_timeout ring = { fsm->priv_due_ns };
    trp_err err =
        trp_timer_once(ctx, TRPI_FSM_TIMERS, ms, &trp_fsm_state_timeout_type, &ring, sizeof ring);
    if (err == TRP_OK) {
        fsm->priv_armed_ns = fsm->priv_due_ns;
    }
    return err == TRP_ECLOSED ? TRP_OK : err; /* the system ends, and the machine with it */
}

/* Begin the time limit of the state that was entered. */
static trp_err
limit_begin(trp_ctx *ctx, trp_fsm *fsm, uint32_t ms)
{
    fsm->priv_flags &= ~(uint32_t)DUE;
    if (ms == 0 || ms == TRP_OFF) {
        fsm->priv_due_ns = 0; /* a timer that is set rings once without effect */
        return TRP_OK;
    }
    fsm->priv_flags |= DUE;
    fsm->priv_due_ns = trp_now_ns(ctx) + (uint64_t)ms * 1000000u;
    bool is_armed = fsm->priv_armed_ns != 0 && fsm->priv_armed_ns <= fsm->priv_due_ns;
    return is_armed ? TRP_OK : limit_arm(ctx, fsm, ms);
}

/* Take a ring; true: the time limit is over, which is an event (fsm-E2). */
static bool
limit_rings(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg, trp_err *ret_err)
{
    const trp_fsm_state_timeout *ring = trp_msg_payload(msg);
    *ret_err = TRP_OK;
    if (trp_msg_bytes(msg) != sizeof *ring || fsm->priv_armed_ns == 0 ||
        ring->priv_due_ns != fsm->priv_armed_ns) {
        return false; /* not of this timer */
    }
    fsm->priv_armed_ns = 0;
    if (ring->priv_due_ns == fsm->priv_due_ns) {
        fsm->priv_due_ns = 0;
        return true;
    }
    if (fsm->priv_due_ns != 0) {
        uint64_t now = trp_now_ns(ctx);
        uint64_t left = fsm->priv_due_ns > now ? fsm->priv_due_ns - now : 0;
        *ret_err = limit_arm(ctx, fsm, (uint32_t)((left + 999999u) / 1000000u));
    }
    return false;
}

/* ---- subscribers ----------------------------------------------------------------------------- */

static bool
is_running(trp_ctx *ctx, trp_ref ref)
{
    return !trp_ref_is_none(ref) &&
           (ref.node != TRPI_NODE_SELF ||
            trpi_inbound_is_there(trp_ctx_system(ctx), ref.slot, ref.generation));
}

static uint32_t
subscriber_find(const more *m, trp_ref ref)
{
    uint32_t i = 0;
    while (i < m->subscribers_count && !trp_ref_equal(m->subscribers[i], ref)) {
        i++;
    }
    return i;
}

static void
subscriber_remove(more *m, uint32_t at)
{
    m->subscribers_count--;
    memmove(&m->subscribers[at], &m->subscribers[at + 1],
            (m->subscribers_count - at) * sizeof m->subscribers[0]);
}

static void
subscriber_add(trp_ctx *ctx, trp_fsm *fsm, trp_ref ref)
{
    more *m = more_get(ctx, fsm);
    trp_fsm_current current = { .machine = trp_self(ctx), .state = fsm->priv_state };
    char path[TRP_NAME_BYTES_MAX];
    bool is_new = subscriber_find(m, ref) == m->subscribers_count;
    if (!is_running(ctx, ref) || (is_new && m->subscribers_count == TRP_FSM_SUBSCRIBERS_MAX)) {
        trp_log(ctx, TRP_LOG_WARNING, "state machine %s: %s is not told transitions: %s",
                fsm->priv_definition->name, trp_path(trp_ctx_system(ctx), ref, path, sizeof path),
                is_running(ctx, ref) ? "TRP_FSM_SUBSCRIBERS_MAX subscribers are there"
                                     : "no such actor is running");
        return;
    }
    if (is_new && m->subscribers_count == m->subscribers_room) {
        uint32_t room = m->subscribers_room == 0 ? 4 : m->subscribers_room * 2;
        trp_ref *larger = trp_alloc(ctx, room * sizeof *larger);
        if (m->subscribers_count > 0) {
            memcpy(larger, m->subscribers, m->subscribers_count * sizeof *larger);
        }
        trp_alloc_free(ctx, m->subscribers);
        m->subscribers = larger;
        m->subscribers_room = room;
    }
    if (is_new) {
        m->subscribers[m->subscribers_count++] = ref;
        fsm->priv_flags &= ~(uint32_t)SIMPLE;
    }
    memcpy(current.name, trp_fsm_name(fsm), strlen(trp_fsm_name(fsm)));
    trp_tell(ctx, ref, &trp_fsm_current_type, &current, sizeof current);
}

static void
subscribers_tell(trp_ctx *ctx, const trp_fsm *fsm)
{
    more *m = fsm->priv_more;
    trp_fsm_transition told = { .machine = trp_self(ctx),
                                .from = fsm->priv_state,
                                .to = fsm->priv_next };
    const char *from = state_name(fsm, told.from), *to = state_name(fsm, told.to);
    memcpy(told.from_name, from, strlen(from)); /* TRP_FSM_NAME_BYTES_MAX: checked at start */
    memcpy(told.to_name, to, strlen(to));
    for (uint32_t i = m->subscribers_count; i-- > 0;) {
        if (!is_running(ctx, m->subscribers[i])) {
            subscriber_remove(m, i);
        }
    }
    for (uint32_t i = 0; i < m->subscribers_count; i++) {
        trp_tell(ctx, m->subscribers[i], &trp_fsm_transition_type, &told, sizeof told);
    }
}

/* ---- history --------------------------------------------------------------------------------- */

static void
history_add(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    more *m = fsm->priv_more;
    uint32_t at = m->history_next;
    trp_fsm_entry *entry = &m->history[at];
    entry->at_ms = trp_now_ms(ctx);
    entry->event = trp_msg_type(msg);
    entry->sender = trp_sender(ctx);
    entry->from = entry->to = fsm->priv_state;
    if (d->data_bytes > 0) {
        char *data = m->history_data + (size_t)at * d->data_bytes;
        memcpy(data, fsm->priv_data, d->data_bytes);
        entry->data = data;
    }
    m->history_next = (at + 1) % d->history;
    m->history_count += m->history_count < d->history;
}

/* The event that is being handled is the last one. */
static void
history_went(trp_fsm *fsm)
{
    more *m = fsm->priv_more;
    uint32_t depth = fsm->priv_definition->history;
    m->history[(m->history_next + depth - 1) % depth].to = fsm->priv_next;
}

uint32_t
trp_fsm_history_count(const trp_fsm *fsm)
{
    const more *m = fsm->priv_more;
    return m == NULL ? 0 : m->history_count;
}

trp_err
trp_fsm_history_get(const trp_fsm *fsm, uint32_t index, trp_fsm_entry *ret_entry)
{
    const more *m = fsm->priv_more;
    uint32_t count = trp_fsm_history_count(fsm);
    if (index >= count || ret_entry == NULL) {
        return ret_entry == NULL ? TRP_EINVAL : TRP_ENOENT;
    }
    uint32_t depth = fsm->priv_definition->history;
    *ret_entry = m->history[(m->history_next + depth - count + index) % depth];
    return TRP_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* fsm-E4 */
static void
machine_end(trp_ctx *ctx, trp_fsm *fsm, trp_fsm_reason reason, const char *why)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    if (d == NULL || (fsm->priv_flags & ENDED) != 0) {
        return;
    }
    fsm->priv_flags = (fsm->priv_flags & ~(uint32_t)EVENT) | ENDED;
    trp_fsm_stop_event event = { reason, fsm->priv_state, fsm->priv_data, why };
    if (reason == TRP_FSM_FAILURE) {
        trp_log(ctx, TRP_LOG_ERROR, "state machine %s stops in state %s: %s", d->name,
                trp_fsm_name(fsm), why[0] == '\0' ? "it failed" : why);
    }
    if (d->terminated != NULL) {
        d->terminated(ctx, fsm, &event);
    }
}

void
trp_fsm_post_stop(trp_ctx *ctx, void *state)
{
    machine_end(ctx, state, TRP_FSM_SHUTDOWN, "");
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Forget what a function that failed has noted (fsm-E1). */
static void
notes_drop(trp_ctx *ctx, trp_fsm *fsm)
{
    more *m = fsm->priv_more;
    reply *next;
    for (reply *r = m == NULL ? NULL : m->replies; r != NULL; r = next) {
        next = r->next;
        trp_alloc_free(ctx, r);
    }
    if (m != NULL) {
        m->replies = NULL;
        m->replies_count = 0;
    }
    fsm->priv_flags &= ~(uint32_t)(EVENT | NOTES);
}

static void
replies_tell(trp_ctx *ctx, trp_fsm *fsm)
{
    const more *m = fsm->priv_more;
    for (const reply *r = m->replies; r != NULL; r = r->next) {
        trp_reply(ctx, r->type, r->payload, r->bytes);
    }
}

/* FSM-8: a transition that is not declared is a failure that names the state. */
static void
transition_check(trp_ctx *ctx, trp_fsm *fsm)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    const char *from = trp_fsm_name(fsm), *to = fsm->priv_next_name;
    if (!trpi_fsm_has(d, fsm->priv_next)) {
        trp_fail(ctx, TRP_ENOENT, "state machine %s: state %s (%u) is not declared, from %s",
                 d->name, to, fsm->priv_next, from);
    }
    if (!trpi_fsm_may_go(d, fsm->priv_state, fsm->priv_next)) {
        trp_fail(ctx, TRP_ENOENT, "state machine %s: no edge from %s to %s is declared", d->name,
                 from, state_name(fsm, fsm->priv_next));
    }
}

static void
hooks_call(trp_ctx *ctx, trp_fsm *fsm)
{
    const trp_fsm_hook *hook = fsm->priv_definition->hooks;
    const more *m = fsm->priv_more;
    if (trpi_fsm_is_traced(ctx)) {
        trp_log(ctx, TRP_LOG_DEBUG, "state machine %s: %s -> %s", fsm->priv_definition->name,
                trp_fsm_name(fsm), state_name(fsm, fsm->priv_next));
    }
    for (; hook != NULL && *hook != NULL; hook++) {
        (*hook)(ctx, fsm, fsm->priv_state, fsm->priv_next);
    }
    if (m != NULL && m->subscribers_count > 0) {
        subscribers_tell(ctx, fsm);
    }
}

/* Carry out what the function of the state has noted. */
static trp_err
machine_step(trp_ctx *ctx, trp_fsm *fsm)
{
    bool goes = fsm->priv_next != fsm->priv_state;
    if (goes && (fsm->priv_flags & STOP) == 0) {
        transition_check(ctx, fsm);
    }
    fsm->priv_flags &= ~(uint32_t)EVENT; /* hooks change nothing of it */
    if ((fsm->priv_flags & REPLIES) != 0) {
        replies_tell(ctx, fsm);
    }
    if ((fsm->priv_flags & STOP) != 0) {
        const more *m = fsm->priv_more;
        if ((fsm->priv_flags & USING) != 0) {
            fsm->priv_data = fsm->priv_next_data; /* for what terminated is told */
        }
        machine_end(ctx, fsm, m->reason, m->why);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (goes) {
        hooks_call(ctx, fsm); /* fsm-E3 */
        if ((fsm->priv_flags & HISTORY) != 0) {
            history_went(fsm);
        }
        fsm->priv_state = fsm->priv_next;
    }
    if ((fsm->priv_flags & USING) != 0) {
        void *before = fsm->priv_data;
        fsm->priv_data = fsm->priv_next_data;
        fsm->priv_next_data = before;
    }
    uint32_t ms = limit_of(fsm);
    notes_drop(ctx, fsm);
    return limit_begin(ctx, fsm, ms);
}

static trp_err
event_unhandled(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    if (d->unhandled != NULL) {
        return d->unhandled(ctx, fsm, msg);
    }
    trp_log(ctx, TRP_LOG_WARNING, "state machine %s: event %s is not handled in state %s", d->name,
            trp_msg_type(msg)->name, trp_fsm_name(fsm));
    return TRP_EUNHANDLED;
}

static __attribute__((noinline)) void
event_note(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg)
{
    if (trpi_fsm_is_traced(ctx)) {
        trp_log(ctx, TRP_LOG_DEBUG, "state machine %s: %s in state %s", fsm->priv_definition->name,
                trp_msg_type(msg)->name, trp_fsm_name(fsm));
    }
    if ((fsm->priv_flags & HISTORY) != 0) {
        history_add(ctx, fsm, msg);
    }
}

/* Take a message that is for the machine itself; true: it is an event after all. */
static bool
own_message(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg, trp_err *ret_err)
{
    if (trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        return limit_rings(ctx, fsm, msg, ret_err);
    }
    const trp_fsm_subscribe *order = trp_msg_payload(msg); /* fixed size: it is whole */
    more *m = more_get(ctx, fsm);
    uint32_t at = subscriber_find(m, order->subscriber);
    *ret_err = TRP_OK;
    if (trp_msg_is(msg, &trp_fsm_subscribe_type)) {
        subscriber_add(ctx, fsm, order->subscriber);
    } else if (at < m->subscribers_count) {
        subscriber_remove(m, at);
    }
    return false;
}

/* The three types were registered together, so that their numbers follow one another. */
static bool
is_own(const trp_fsm *fsm, const trp_msg *msg)
{
    return (uint32_t)(msg->priv_type - fsm->priv_own) < OWN_TYPES;
}

/* Handle what the function of the state has not. */
static __attribute__((noinline)) trp_err
event_rest(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg, trp_err err)
{
    if (err == TRP_EUNHANDLED) {
        notes_drop(ctx, fsm);
        fsm->priv_next = fsm->priv_state;
        fsm->priv_flags |= EVENT;
        err = event_unhandled(ctx, fsm, msg);
    }
    if (err != TRP_OK) {
        notes_drop(ctx, fsm);
        if (err != TRP_EUNHANDLED) {
            return err;
        }
    }
    trp_err stepped = machine_step(ctx, fsm); /* what is unhandled stays, and begins its limit */
    return stepped == TRP_OK ? err : stepped;
}

/* Handle an event the long way: any message, any machine. */
static __attribute__((noinline)) trp_err
event_handle(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg)
{
    trp_err err;
    if (is_own(fsm, msg) && !own_message(ctx, fsm, msg, &err)) {
        return err;
    }
    if ((fsm->priv_flags & (EVENT | NOTES)) != 0) {
        notes_drop(ctx, fsm); /* of a function that did not return */
    }
    if ((fsm->priv_flags & HISTORY) != 0 || trpi_fsm_is_traced(ctx)) {
        event_note(ctx, fsm, msg);
    }
    trp_receive_fn receive = fsm->priv_definition->states[fsm->priv_state].receive;
    fsm->priv_next = fsm->priv_state;
    fsm->priv_flags |= EVENT;
    return event_rest(ctx, fsm, msg, receive == NULL ? TRP_EUNHANDLED : receive(ctx, fsm, msg));
}

/* The event is kept in the machine for event_rest(): each register that lives across the call costs
 * more than that. */
trp_err
trp_fsm_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_fsm *fsm = state;
    if (UNLIKELY(fsm->priv_flags != SIMPLE || is_own(fsm, msg) || trpi_fsm_is_traced(ctx))) {
        return event_handle(ctx, fsm, msg);
    }
    const struct trp_fsm_priv_row *row = &fsm->priv_rows[fsm->priv_state];
    fsm->priv_event = msg;
    fsm->priv_next = fsm->priv_state;
    fsm->priv_flags = SIMPLE | EVENT;
    trp_err err = row->receive(ctx, fsm, msg);
    uint32_t next = fsm->priv_next;
    if (UNLIKELY(err != TRP_OK || fsm->priv_flags != (SIMPLE | EVENT) ||
                 next >= TRPI_FSM_ROWS_MAX || (row->ways >> next & 1) == 0)) {
        return event_rest(ctx, fsm, fsm->priv_event, err);
    }
    fsm->priv_state = next; /* of the step, this is all */
    fsm->priv_flags = SIMPLE;
    return TRP_OK;
}

/* ---- notes of a function --------------------------------------------------------------------- */

static bool
in_event(const trp_fsm *fsm)
{
    return (fsm->priv_flags & EVENT) != 0;
}

trp_err
trp_fsm_stop(trp_ctx *ctx, trp_fsm *fsm, trp_fsm_reason reason, const char *why)
{
    if (!in_event(fsm)) {
        return TRP_ESTATE;
    }
    if (reason < TRP_FSM_NORMAL || reason > TRP_FSM_FAILURE) {
        return TRP_EINVAL;
    }
    more *m = more_get(ctx, fsm);
    m->reason = reason;
    (void)snprintf(m->why, sizeof m->why, "%s", why == NULL ? "" : why); /* cut is fine */
    fsm->priv_flags |= STOP;
    return TRP_OK;
}

trp_err
trp_fsm_for_max(trp_fsm *fsm, uint32_t ms)
{
    if (!in_event(fsm) || ms == 0) {
        return ms == 0 ? TRP_EINVAL : TRP_ESTATE;
    }
    fsm->priv_timeout_ms = ms;
    fsm->priv_flags |= LIMIT;
    return TRP_OK;
}

void *
trp_fsm_using(trp_fsm *fsm)
{
    uint32_t bytes = fsm->priv_definition->data_bytes;
    if (!in_event(fsm) || bytes == 0) {
        return NULL;
    }
    if ((fsm->priv_flags & USING) == 0) {
        memcpy(fsm->priv_next_data, fsm->priv_data, bytes);
        fsm->priv_flags |= USING;
    }
    return fsm->priv_next_data;
}

trp_err
trp_fsm_reply(trp_ctx *ctx, trp_fsm *fsm, const trp_type *type, const void *payload, size_t bytes)
{
    if (!in_event(fsm)) {
        return TRP_ESTATE;
    }
    bytes = type == NULL || (type->flags & TRP_TYPE_VARIABLE) != 0 ? bytes : type->bytes;
    if (type == NULL || (bytes > 0 && payload == NULL) || !trpi_payload_fits(type, bytes)) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    more *m = more_get(ctx, fsm);
    if (m->replies_count == TRP_FSM_REPLIES_MAX) {
        return TRP_ELIMIT;
    }
    reply *r = trp_alloc(ctx, sizeof *r + bytes); /* the actor's: gone when it fails */
    r->type = type;
    r->bytes = bytes;
    if (bytes > 0) {
        memcpy(r->payload, payload, bytes);
    }
    if (m->replies == NULL) {
        m->replies_last = &m->replies;
    }
    *m->replies_last = r;
    m->replies_last = &r->next;
    m->replies_count++;
    fsm->priv_flags |= REPLIES;
    return TRP_OK;
}

trp_err
trp_fsm_state_timeout_set(trp_ctx *ctx, trp_fsm *fsm, uint32_t state, uint32_t ms)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    if (!trpi_fsm_has(d, state)) {
        return TRP_ENOENT;
    }
    more *m = more_get(ctx, fsm);
    if (m->timeouts_ms == NULL) {
        m->timeouts_ms = trp_alloc(ctx, d->states_count * sizeof m->timeouts_ms[0]);
        for (uint32_t i = 0; i < d->states_count; i++) {
            m->timeouts_ms[i] = d->states[i].timeout_ms;
        }
    }
    m->timeouts_ms[state] = ms;
    fsm->priv_flags &= ~(uint32_t)SIMPLE;
    return TRP_OK;
}

/* ---- start ----------------------------------------------------------------------------------- */

static void
rows_make(trp_ctx *ctx, trp_fsm *fsm)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    if (trpi_fsm_is_simple(d)) {
        struct trp_fsm_priv_row *rows = trp_alloc(ctx, d->states_count * sizeof *rows);
        trpi_fsm_rows_fill(d, rows);
        fsm->priv_rows = rows;
        fsm->priv_flags |= SIMPLE;
    }
}

void
trpi_fsm_memory_make(trp_ctx *ctx, trp_fsm *fsm)
{
    const trp_fsm_definition *d = fsm->priv_definition;
    if (d->data_bytes > 0 && fsm->priv_data == NULL) {
        fsm->priv_data = trp_alloc(ctx, d->data_bytes); /* or the actor fails */
        fsm->priv_next_data = trp_alloc(ctx, d->data_bytes);
        if (d->data != NULL) {
            memcpy(fsm->priv_data, d->data, d->data_bytes);
        }
    }
    rows_make(ctx, fsm);
    if (d->history > 0) {
        more *m = more_get(ctx, fsm);
        m->history = trp_alloc(ctx, d->history * sizeof m->history[0]);
        m->history_data =
            d->data_bytes == 0 ? NULL : trp_alloc(ctx, (size_t)d->history * d->data_bytes);
        fsm->priv_flags |= HISTORY;
    }
}

trp_err
trp_fsm_start(trp_ctx *ctx, trp_fsm *fsm, const trp_fsm_definition *definition, const trp_msg *args)
{
    char why[TRPI_FSM_WHY_BYTES];
    if (!trpi_fsm_check(definition, why)) {
        trp_log(ctx, TRP_LOG_ERROR, "state machine %s: %s",
                definition == NULL || definition->name == NULL ? "?" : definition->name, why);
        return TRP_EINVAL;
    }
    trp_err err = trp_protocol_register(&trp_fsm_protocol);
    if (err != TRP_OK) {
        return err;
    }
    trpi_assert(trp_fsm_unsubscribe_type.number - trp_fsm_state_timeout_type.number ==
                OWN_TYPES - 1);
    memset(fsm, 0, sizeof *fsm);
    fsm->priv_definition = definition;
    fsm->priv_own = trp_fsm_state_timeout_type.number;
    fsm->priv_state = fsm->priv_next = definition->first;
    trpi_fsm_memory_make(ctx, fsm);
    if (definition->first_timeout_ms != 0) {
        fsm->priv_timeout_ms = definition->first_timeout_ms;
        fsm->priv_flags |= LIMIT;
    }
    fsm->priv_flags |= EVENT;
    err = definition->init == NULL ? TRP_OK : definition->init(ctx, fsm, args);
    if (err != TRP_OK) {
        return err;
    }
    if (!trpi_fsm_has(definition, fsm->priv_next)) {
        transition_check(ctx, fsm); /* does not return */
    }
    fsm->priv_state = fsm->priv_next; /* no transition: there was no state before */
    return machine_step(ctx, fsm);
}

/* ---- looking at it --------------------------------------------------------------------------- */

uint32_t
trp_fsm_now(const trp_fsm *fsm)
{
    return fsm->priv_state;
}

const char *
trp_fsm_name(const trp_fsm *fsm)
{
    return state_name(fsm, fsm->priv_state);
}

uint32_t
trp_fsm_next(const trp_fsm *fsm)
{
    return in_event(fsm) ? fsm->priv_next : fsm->priv_state;
}

const void *
trp_fsm_data(const trp_fsm *fsm)
{
    return fsm->priv_data;
}

const void *
trp_fsm_next_data(const trp_fsm *fsm)
{
    return (fsm->priv_flags & USING) != 0 ? fsm->priv_next_data : fsm->priv_data;
}

trp_err
trp_fsm_put(trp_fsm *fsm, uint32_t state, const void *data)
{
    if (!trpi_fsm_has(fsm->priv_definition, state)) {
        return TRP_ENOENT;
    }
    if (data != NULL && fsm->priv_definition->data_bytes == 0) {
        return TRP_EINVAL;
    }
    if (data != NULL) {
        memcpy(fsm->priv_data, data, fsm->priv_definition->data_bytes);
    }
    fsm->priv_state = state;
    fsm->priv_due_ns = 0;
    fsm->priv_flags &= ~(uint32_t)DUE;
    return TRP_OK;
}
