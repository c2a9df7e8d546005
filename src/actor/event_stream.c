/* event_stream.c - publish to whoever subscribed: dead letters, unhandled messages, the user's own
 * events.
 *
 * Shape.   One entry per subscribed type (number 0: all) with an immutable, counted array of
 *          subscribers. A change makes a new array; publishing holds the lock only to take a count.
 * Must hold.
 *   E1  Telling happens without the lock: it may lead to a dead letter, which is published in turn.
 *   E2  A subscriber that has ended gets nothing more: removed at its end, or skipped and swept.
 * Cost.    Nobody subscribed: one relaxed load.
 * Tests.   tests/unit/actor/event_stream_test.c
 * Sources. EB-02 (the sender is not kept), ES-01, ES-03, ES-05.
 */
#include "actor/life.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

typedef struct audience {
    _Atomic uint32_t refs; /* relaxed ref (under the lock), acq_rel unref: the last reader frees */
    uint32_t count;
    trp_ref items[];
} audience;

typedef struct subject {
    struct subject *next;
    uint32_t type; /* number; 0: all */
    audience *who; /* never NULL, never empty */
} subject;

struct trpi_event_stream {
    pthread_mutex_t lock; /* guards subjects; a leaf */
    subject *subjects;
    _Atomic uint32_t
        subscriptions; /* written under lock, read relaxed: a hint that nobody listens */
};

trp_err
trpi_event_stream_new(struct trpi_event_stream **ret_stream)
{
    struct trpi_event_stream *stream = trpi_alloc(sizeof *stream);

    if (stream == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&stream->lock, NULL);
    *ret_stream = stream;
    return TRP_OK;
}

static void
audience_unref(audience *who)
{
    if (who != NULL && atomic_fetch_sub_explicit(&who->refs, 1, memory_order_acq_rel) == 1) {
        trpi_free(who);
    }
}

void
trpi_event_stream_free(struct trpi_event_stream *stream)
{
    subject *next;

    if (stream == NULL) {
        return;
    }
    for (subject *s = stream->subjects; s != NULL; s = next) {
        next = s->next;
        audience_unref(s->who);
        trpi_free(s);
    }
    trpi_mutex_destroy(&stream->lock);
    trpi_free(stream);
}

static bool
is_alive(trp_system *system, trp_ref ref)
{
    const trpi_cell *cell;

    if (ref.node != TRPI_NODE_SELF) {
        return true; /* not ours to judge; its own node drops what is stale */
    }
    cell = trpi_cells_find(system->cells, ref.slot);
    return cell != NULL && trpi_cell_ref(cell).generation == ref.generation;
}

static subject **
subject_find(struct trpi_event_stream *stream, uint32_t type)
{
    subject **link = &stream->subjects;

    while (*link != NULL && (*link)->type != type) {
        link = &(*link)->next;
    }
    return link;
}

/* A new array: the living of the old one but `without`, and `with` if it is not none. NULL: no
 * memory. */
static audience *
audience_change(trp_system *system, const audience *old, trp_ref without, trp_ref with)
{
    uint32_t room = (old == NULL ? 0 : old->count) + 1;
    audience *fresh = trpi_alloc(sizeof *fresh + room * sizeof fresh->items[0]);

    if (fresh == NULL) {
        return NULL;
    }
    atomic_init(&fresh->refs, 1);
    for (uint32_t i = 0; old != NULL && i < old->count; i++) {
        if (!trp_ref_equal(old->items[i], without) && !trp_ref_equal(old->items[i], with) &&
            is_alive(system, old->items[i])) {
            fresh->items[fresh->count++] = old->items[i];
        }
    }
    if (!trp_ref_is_none(with)) {
        fresh->items[fresh->count++] = with;
    }
    return fresh;
}

/* Put fresh in place of what the subject at link has; an empty one takes the subject out. */
static void
audience_set(struct trpi_event_stream *stream, subject **link, audience *fresh)
{
    subject *s = *link;
    uint32_t before = s->who == NULL ? 0 : s->who->count;

    atomic_fetch_add_explicit(&stream->subscriptions, fresh->count - before, memory_order_relaxed);
    audience_unref(s->who);
    s->who = fresh;
    if (fresh->count == 0) {
        *link = s->next;
        audience_unref(fresh);
        trpi_free(s);
    }
}

static trp_err
subscribe_locked(trp_system *system, uint32_t type, trp_ref subscriber)
{
    struct trpi_event_stream *stream = system->life->events;
    subject **link = subject_find(stream, type);
    audience *fresh;
    trp_ref none = TRP_REF_NONE;

    fresh = audience_change(system, *link == NULL ? NULL : (*link)->who, none, subscriber);
    if (fresh == NULL) {
        return TRP_ENOMEM;
    }
    if (*link == NULL) {
        *link = trpi_alloc(sizeof **link);
        if (*link == NULL) {
            trpi_free(fresh);
            return TRP_ENOMEM;
        }
        (*link)->type = type;
    }
    audience_set(stream, link, fresh);
    return TRP_OK;
}

static trp_err
subscribe(trp_system *system, trp_ref subscriber, const trp_type *type)
{
    trp_err err;

    if (trp_ref_is_none(subscriber)) {
        return TRP_EINVAL;
    }
    if (type != NULL && type->number == 0) {
        return TRP_ENOTYPE;
    }
    pthread_mutex_lock(&system->life->events->lock);
    err = subscribe_locked(system, type == NULL ? 0 : type->number, subscriber);
    pthread_mutex_unlock(&system->life->events->lock);
    return err;
}

/* Without memory for a new array the old one stays: its reader skips the dead. */
static void
unsubscribe_locked(trp_system *system, subject **link, trp_ref subscriber)
{
    trp_ref none = TRP_REF_NONE;
    audience *fresh = audience_change(system, (*link)->who, subscriber, none);

    if (fresh != NULL) {
        audience_set(system->life->events, link, fresh);
    }
}

trp_err
trp_subscribe(trp_ctx *ctx, const trp_type *type)
{
    trp_err err = subscribe(ctx->system, ctx->self, type);

    if (err == TRP_OK) {
        ctx->cell->marks |= TRPI_MARK_SUBSCRIBED;
    }
    return err;
}

void
trp_unsubscribe(trp_ctx *ctx, const trp_type *type)
{
    struct trpi_event_stream *stream = ctx->system->life->events;
    subject **link;

    pthread_mutex_lock(&stream->lock);
    link = subject_find(stream, type == NULL ? 0 : type->number);
    if (*link != NULL) {
        unsubscribe_locked(ctx->system, link, ctx->self);
    }
    pthread_mutex_unlock(&stream->lock);
}

trp_err
trp_system_subscribe(trp_system *system, trp_ref subscriber, const trp_type *type)
{
    return trpi_system_is_valid(system) ? subscribe(system, subscriber, type) : TRP_EINVAL;
}

void
trpi_event_subscriber_ended(trp_system *system, trp_ref subscriber)
{
    struct trpi_event_stream *stream = system->life->events;
    subject **link, *present;

    pthread_mutex_lock(&stream->lock);
    link = &stream->subjects;
    while ((present = *link) != NULL) {
        unsubscribe_locked(system, link, subscriber);
        if (*link == present) {
            link = &present->next;
        }
    }
    pthread_mutex_unlock(&stream->lock);
}

static audience *
audience_get(struct trpi_event_stream *stream, uint32_t type)
{
    subject *s = *subject_find(stream, type);

    if (s == NULL) {
        return NULL;
    }
    atomic_fetch_add_explicit(&s->who->refs, 1, memory_order_relaxed);
    return s->who;
}

bool
trpi_event_is_wanted(trp_system *system, const trp_type *type)
{
    struct trpi_event_stream *stream = system->life->events;
    bool wanted;

    if (atomic_load_explicit(&stream->subscriptions, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&stream->lock);
    wanted = *subject_find(stream, type->number) != NULL || *subject_find(stream, 0) != NULL;
    pthread_mutex_unlock(&stream->lock);
    return wanted;
}

static void
tell_audience(trp_ctx *ctx, const audience *who, const audience *told, const trp_type *type,
              const void *payload, size_t bytes)
{
    trp_ref none = TRP_REF_NONE;

    for (uint32_t i = 0; who != NULL && i < who->count; i++) {
        bool again = false;

        for (uint32_t k = 0; told != NULL && k < told->count && !again; k++) {
            again =
                trp_ref_equal(told->items[k], who->items[i]); /* subscribed to all and to this */
        }
        if (!again && is_alive(ctx->system, who->items[i])) {
            trpi_tell(ctx, who->items[i], none, type, payload, bytes);
        }
    }
}

void
trpi_event_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    struct trpi_event_stream *stream = ctx->system->life->events;
    audience *some, *all;

    if (atomic_load_explicit(&stream->subscriptions, memory_order_relaxed) == 0) {
        return;
    }
    pthread_mutex_lock(&stream->lock);
    some = type->number == 0 ? NULL : audience_get(stream, type->number);
    all = audience_get(stream, 0);
    pthread_mutex_unlock(&stream->lock);
    tell_audience(ctx, some, NULL, type, payload, bytes); /* E1 */
    tell_audience(ctx, all, some, type, payload, bytes);
    audience_unref(some);
    audience_unref(all);
}

void
trp_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    if (type != NULL) {
        trpi_event_publish(ctx, type, payload, bytes);
    }
}

void
trp_system_publish(trp_system *system, const trp_type *type, const void *payload, size_t bytes)
{
    if (trpi_system_is_valid(system) && type != NULL) {
        trp_ctx *ctx = trpi_enter(system);

        trpi_event_publish(ctx, type, payload, bytes);
        trpi_leave(ctx);
    }
}
