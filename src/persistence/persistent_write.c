/* persistent_write.c - events on their way to the journal and back.
 *
 * Why.     An actor that persists one event after the other would wait for as many commits. One
 *          append is on its way; what is persisted meanwhile goes with the next one.
 * Shape.   pending: groups in order, deferred callbacks among them. flight: the groups of one
 *          append, whose numbers are given when it is sent.
 * Must hold.
 *   persistent-write-W1  At most one append of an actor is on its way: a refused one leaves no hole
 *       in the numbers of those behind it. (trpi_persistent_write)
 *   persistent-write-W2  Groups that were refused together are sent alone, in order: the refusal of
 *       one costs no other. (split)
 *   persistent-write-W3  Events are applied, and callbacks called, in the order of the calls that
 *       persisted them.
 *   persistent-write-W4  The outcome of an append is taken once: done is applied, refused is told,
 *       failed and fenced end the actor.
 * Limits.  pending_max groups; one append has at most TRP_JOURNAL_GROUP_EVENTS_MAX events and
 *          APPEND_BYTES bytes, or one group.
 * Tests.   tests/unit/persistence/persistent_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/payload.h"
#include "persistence/persistent.h"

#define APPEND_BYTES 1048576u

/* ---- groups ---------------------------------------------------------------------------------- */

void
trpi_group_free(trpi_group *group)
{
    if (group == NULL) {
        return;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        trpi_msg_drop(group->events[i].msg);
    }
    trpi_kept_unref(group->kept);
    trpi_trail_free(group->trail);
    trpi_buffer_fini(&group->bytes);
    trpi_free(group);
}

void
trpi_groups_put(trpi_groups *groups, trpi_group *group)
{
    group->next = NULL;
    if (groups->first == NULL) {
        groups->first = group;
    } else {
        groups->last->next = group;
    }
    groups->last = group;
    groups->count++;
    groups->sync_count += !group->is_async;
}

trpi_group *
trpi_groups_take(trpi_groups *groups)
{
    trpi_group *group = groups->first;

    if (group != NULL) {
        groups->first = group->next;
        groups->count--;
        groups->sync_count -= !group->is_async;
    }
    return group;
}

void
trpi_groups_drop(trpi_groups *groups)
{
    trpi_group *group;

    while ((group = trpi_groups_take(groups)) != NULL) {
        trpi_group_free(group);
    }
}

void
trpi_fresh_commit(trpi_persistent *p)
{
    trpi_group *group;

    p->sync_count += p->fresh.sync_count;
    while ((group = trpi_groups_take(&p->fresh)) != NULL) {
        trpi_groups_put(&p->pending, group);
    }
}

/* ---- persisting ------------------------------------------------------------------------------ */

/* Keep the present message for the callback; it is shared by all that it persists. */
static trp_err
command_keep(trp_ctx *ctx, trpi_persistent *p, trpi_kept **ret_kept)
{
    const trp_msg *msg = ((const trp_msg *const *)(const void *)ctx)[1];

    if (msg == NULL) {
        return TRP_OK;
    }
    if (p->current == NULL) {
        trpi_kept *kept = trpi_alloc(sizeof *kept);

        if (kept == NULL || trp_msg_dup(msg, &kept->msg) != TRP_OK) {
            trpi_free(kept);
            return TRP_ENOMEM;
        }
        atomic_init(&kept->refs, 1);
        p->current = kept;
    }
    atomic_fetch_add_explicit(&p->current->refs, 1, memory_order_relaxed);
    *ret_kept = p->current;
    return TRP_OK;
}

static trp_err
tags_write(trp_ctx *ctx, const trpi_persistent *p, trpi_group *group, trpi_group_event *event)
{
    const char *tags[TRP_JOURNAL_TAGS_MAX];
    trp_err err = TRP_OK;

    event->tags_at = group->bytes.count;
    event->tags_count = p->what->tags == NULL ? 0 : p->what->tags(ctx, p->state, event->msg, tags);
    if (event->tags_count > TRP_JOURNAL_TAGS_MAX) {
        event->tags_count = 0;
        return TRP_ELIMIT;
    }
    for (uint32_t i = 0; i < event->tags_count && err == TRP_OK; i++) {
        err = trpi_buffer_append(&group->bytes, tags[i], strlen(tags[i]) + 1, TRPI_BUFFER_NO_LIMIT);
    }
    return err;
}

static trp_err
event_write(trp_ctx *ctx, const trpi_persistent *p, trpi_group *group, const trp_event *given)
{
    trpi_group_event *event = &group->events[group->count];
    void *place;

    if (given->type == NULL) {
        return TRP_EINVAL;
    }
    size_t bytes = trpi_payload_bytes(given->type, given->bytes);
    if (given->payload == NULL && bytes > 0) {
        return TRP_EINVAL;
    }
    trp_err err = trp_msg_new(given->type, bytes, &event->msg, &place);
    if (err != TRP_OK) {
        return err;
    }
    group->count++;
    if (bytes > 0) {
        memcpy(place, given->payload, bytes);
    }
    event->data_at = group->bytes.count;
    err = trpi_stored_write(p->system, given->type, place, bytes, &group->bytes);
    event->data_bytes = group->bytes.count - event->data_at;
    if (err == TRP_OK && group->bytes.count > TRP_JOURNAL_GROUP_BYTES_MAX) {
        err = TRP_EMSGSIZE;
    }
    return err != TRP_OK ? err : tags_write(ctx, p, group, event);
}

static trp_err
may_persist(const trpi_persistent *p)
{
    if (p == NULL) {
        return TRP_EINVAL;
    }
    if (p->phase != TRPI_PHASE_READY || p->reads_only) {
        return TRP_ESTATE;
    }
    uint32_t most =
        p->what->pending_max != 0 ? p->what->pending_max : TRP_PERSISTENT_PENDING_DEFAULT;
    return p->fresh.count + p->pending.count + p->in_flight >= most ? TRP_EAGAIN : TRP_OK;
}

static trp_err
group_persist(trp_ctx *ctx, const trp_event *events, uint32_t count, bool is_async,
              trp_persisted_fn fn, void *arg)
{
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_err err = may_persist(p);
    trpi_group *group =
        err != TRP_OK ? NULL : trpi_alloc(sizeof *group + count * sizeof group->events[0]);

    if (group == NULL) {
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    group->fn = fn;
    group->arg = arg;
    group->is_async = is_async;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = event_write(ctx, p, group, &events[i]);
    }
    err = err != TRP_OK ? err : command_keep(ctx, p, &group->kept);
    if (err != TRP_OK) {
        trpi_group_free(group);
        return err;
    }
    group->trail = trpi_trail_keep();
    trpi_groups_put(&p->fresh, group);
    if (p->at == TRPI_AT_NONE) { /* the continuation of an ask: nothing of ours comes behind it */
        trpi_kept_unref(p->current);
        p->current = NULL;
        trpi_persistent_wake(ctx, p);
    }
    return TRP_OK;
}

trp_err
trp_persist(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes,
            trp_persisted_fn fn, void *arg)
{
    trp_event event = { type, payload, bytes };

    return group_persist(ctx, &event, 1, false, fn, arg);
}

trp_err
trp_persist_async(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes,
                  trp_persisted_fn fn, void *arg)
{
    trp_event event = { type, payload, bytes };

    return group_persist(ctx, &event, 1, true, fn, arg);
}

trp_err
trp_persist_all(trp_ctx *ctx, const trp_event *events, uint32_t count, int async,
                trp_persisted_fn fn, void *arg)
{
    if (events == NULL || count == 0) {
        return TRP_EINVAL;
    }
    return count > TRP_JOURNAL_GROUP_EVENTS_MAX
               ? TRP_ELIMIT
               : group_persist(ctx, events, count, async != 0, fn, arg);
}

trp_err
trp_persist_defer(trp_ctx *ctx, trp_persisted_fn fn, void *arg)
{
    return fn == NULL ? TRP_EINVAL : group_persist(ctx, NULL, 0, true, fn, arg);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Count what one append takes of pending: groups, events and tags. */
typedef struct extent {
    uint32_t groups, events, tags;
} extent;

static extent
append_extent(const trpi_persistent *p)
{
    extent size = { 0, 0, 0 };
    size_t bytes = 0;

    for (const trpi_group *group = p->pending.first; group != NULL; group = group->next) {
        bool fits = size.events + group->count <= TRP_JOURNAL_GROUP_EVENTS_MAX &&
                    bytes + group->bytes.count <= APPEND_BYTES;

        if (size.events > 0 && group->count > 0 && (!fits || p->split > 0)) {
            break; /* persistent-write-W2 */
        }
        size.groups++;
        size.events += group->count;
        bytes += group->bytes.count;
        for (uint32_t i = 0; i < group->count; i++) {
            size.tags += group->events[i].tags_count;
        }
    }
    return size;
}

/* Point the events of the operation at the bytes of their groups. */
static void
events_fill(trpi_persistent *p, trpi_flight *flight)
{
    uint64_t now_ms = (uint64_t)trpi_world_wall_ms(trpi_system_world(p->system));
    uint32_t at = 0, tag = 0;

    for (const trpi_group *group = flight->groups.first; group != NULL; group = group->next) {
        for (uint32_t i = 0; i < group->count; i++, at++) {
            const trpi_group_event *event = &group->events[i];
            const char *text =
                event->tags_count != 0 ? (const char *)group->bytes.data + event->tags_at : "";

            flight->events[at] = (trp_journal_event){
                .time_ms = now_ms,
                .type = trp_msg_type(event->msg)->name,
                .version = p->what->event_version != 0 ? p->what->event_version : 1,
                .tags_count = event->tags_count,
                .tags = event->tags_count != 0 ? flight->tags + tag : NULL,
                .data = event->data_bytes != 0 ? group->bytes.data + event->data_at : NULL,
                .bytes = event->data_bytes
            };
            for (uint32_t t = 0; t < event->tags_count; t++, tag++) {
                flight->tags[tag] = text;
                text += strlen(text) + 1;
            }
        }
    }
    flight->op.events = flight->events;
    flight->op.events_count = at;
}

static trp_err
append_send(trp_ctx *ctx, trpi_persistent *p)
{
    extent size = append_extent(p);
    trpi_flight *flight = trpi_flight_new(ctx, p, TRP_JOURNAL_APPEND);

    if (flight == NULL) {
        return TRP_ENOMEM;
    }
    flight->events = trpi_alloc(size.events * sizeof flight->events[0]);
    flight->tags = size.tags == 0 ? NULL : trpi_alloc(size.tags * sizeof flight->tags[0]);
    if (flight->events == NULL || (flight->tags == NULL && size.tags > 0)) {
        trpi_flight_drop(flight);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < size.groups; i++) {
        trpi_groups_put(&flight->groups, trpi_groups_take(&p->pending));
    }
    p->split -= p->split > 0;
    flight->op.from = p->number + 1;
    flight->op.timeout_ms = p->what->write_timeout_ms;
    events_fill(p, flight);
    p->in_flight = size.groups;
    p->flight = flight;
    trpi_flight_submit(p, flight);
    return TRP_OK;
}

/* ---- applying -------------------------------------------------------------------------------- */

typedef struct callback {
    trpi_persistent *p;
    trp_persisted_fn fn;
    const trp_msg *event;
    void *arg;
} callback;

static trp_err
callback_run(trp_ctx *ctx, void *arg)
{
    const callback *call = arg;
    trp_err err = call->fn(ctx, call->p->state, call->event, call->arg);

    return err == TRP_EUNHANDLED ? TRP_EFAILED : err;
}

/* Call the group's function for an event, or for none, as part of its command. */
static trp_err
group_call(trp_ctx *ctx, trpi_persistent *p, const trpi_group *group, const trp_msg *event)
{
    callback call = { p, group->fn, event, group->arg };

    if (group->fn == NULL) {
        return TRP_OK;
    }
    p->at = TRPI_AT_EVENT;
    p->current = group->kept; /* what it persists keeps the same command */
    trp_err err = group->kept == NULL
                      ? callback_run(ctx, &call)
                      : trpi_handle_as(ctx, group->kept->msg, group->trail, callback_run, &call);
    if (group->kept == NULL) {
        trpi_kept_unref(p->current);
    }
    p->current = NULL;
    if (err == TRP_OK) {
        p->at = TRPI_AT_NONE;
        trpi_fresh_commit(p);
    }
    return err;
}

void
trpi_persistent_trace(const trpi_persistent *p, trp_trace *ret_trace)
{
    trpi_trail_trace(p->applying == NULL ? NULL : p->applying->trail, ret_trace);
}

/* persistent-write-W3 */
static trp_err
group_apply(trp_ctx *ctx, trpi_persistent *p, trpi_group *group)
{
    trp_err err = TRP_OK;

    p->applying = group; /* freed with the instance, if a function jumps */
    for (uint32_t i = 0; i < group->count && err == TRP_OK; i++) {
        p->number++;
        err = trpi_persistent_apply(ctx, p, group->events[i].msg);
        err = err != TRP_OK ? err : group_call(ctx, p, group, group->events[i].msg);
    }
    if (group->count == 0) {
        err = group_call(ctx, p, group, NULL);
    }
    p->applying = NULL;
    p->sync_count -= !group->is_async;
    trpi_group_free(group);
    return err;
}

trp_err
trpi_persistent_write(trp_ctx *ctx, trpi_persistent *p)
{
    trp_err err = TRP_OK;

    while (err == TRP_OK && p->flight == NULL && p->pending.first != NULL) {
        if (p->pending.first->count == 0) {
            err = group_apply(ctx, p, trpi_groups_take(&p->pending));
            continue;
        }
        err = append_send(ctx, p); /* persistent-write-W1 */
        if (err == TRP_ENOMEM) {
            trpi_persistent_end(ctx, p, p->pending.first->events[0].msg, err,
                                "out of memory: events of '%s' were not sent to the journal",
                                p->names);
        }
    }
    return err;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Tell `rejected` of the first event, as part of its command. */
static trp_err
rejected_run(trp_ctx *ctx, void *arg)
{
    const trpi_flight *flight = arg;
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_err err = p->what->rejected(ctx, p->state, p->applying->events[0].msg, flight->op.err,
                                    flight->op.why);

    return err == TRP_EUNHANDLED ? TRP_EFAILED : err;
}

static trp_err
group_reject(trp_ctx *ctx, trpi_persistent *p, trpi_flight *flight, trpi_group *group)
{
    trp_err err = TRP_OK;

    p->applying = group;
    if (p->what->rejected == NULL) {
        trpi_log(p->system, TRP_LOG_WARNING, "persistence",
                 "events were rejected, and are not stored; the actor goes on id=%s type=%s "
                 "error=%s why=\"%s\"",
                 p->names, trp_msg_type(group->events[0].msg)->name, trp_err_name(flight->op.err),
                 flight->op.why);
    } else {
        p->at = TRPI_AT_EVENT;
        p->current = group->kept;
        err = group->kept == NULL
                  ? rejected_run(ctx, flight)
                  : trpi_handle_as(ctx, group->kept->msg, group->trail, rejected_run, flight);
        p->current = NULL;
    }
    if (err == TRP_OK) {
        p->at = TRPI_AT_NONE;
        trpi_fresh_commit(p);
    }
    p->applying = NULL;
    p->sync_count -= !group->is_async;
    trpi_group_free(group);
    return err;
}

static trp_err
append_refused(trp_ctx *ctx, trpi_persistent *p, trpi_flight *flight)
{
    trpi_group *group;
    uint32_t with_events = 0;

    for (group = flight->groups.first; group != NULL; group = group->next) {
        with_events += group->count > 0;
    }
    if (with_events > 1) { /* persistent-write-W2 */
        flight->groups.last->next = p->pending.first;
        if (p->pending.first == NULL) {
            p->pending.last = flight->groups.last;
        }
        p->pending.first = flight->groups.first;
        p->pending.count += flight->groups.count;
        p->pending.sync_count += flight->groups.sync_count;
        flight->groups = (trpi_groups){ NULL, NULL, 0, 0 };
        p->split = with_events;
        return TRP_OK;
    }
    trp_err err = TRP_OK;
    while (err == TRP_OK && (group = trpi_groups_take(&flight->groups)) != NULL) {
        err = group->count == 0 ? group_apply(ctx, p, group) : group_reject(ctx, p, flight, group);
    }
    return err;
}

static const trp_msg *
first_event(const trpi_flight *flight)
{
    const trpi_group *group = flight->groups.first;

    while (group != NULL && group->count == 0) {
        group = group->next;
    }
    return group == NULL ? NULL : group->events[0].msg;
}

trp_err
trpi_persistent_written(trp_ctx *ctx, trpi_persistent *p, trpi_flight *flight)
{
    trpi_group *group;
    trp_err err = TRP_OK;

    trpi_assert(flight == p->flight);
    p->flight = NULL;
    p->in_flight = 0;
    switch (flight->op.outcome) { /* persistent-write-W4 */
    case TRP_JOURNAL_DONE: {
        uint64_t before = p->number;

        trpi_journal_committed(p->system, &flight->op);
        while (err == TRP_OK && (group = trpi_groups_take(&flight->groups)) != NULL) {
            err = group_apply(ctx, p, group);
        }
        if (err == TRP_OK) {
            trpi_snapshot_due(ctx, p, before);
        }
        return err;
    }
    case TRP_JOURNAL_REFUSED:
        if (flight->op.err == TRP_EFENCED) {
            trpi_persistent_end(ctx, p, first_event(flight), TRP_EFENCED, "%s", flight->op.why);
        }
        return append_refused(ctx, p, flight);
    default:
        trpi_persistent_end(ctx, p, first_event(flight), TRP_EJOURNAL,
                            "'%s': whether events from number %llu on are stored is not known: %s",
                            p->names, (unsigned long long)flight->op.from, flight->op.why);
    }
}
