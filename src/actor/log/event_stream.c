/* event_stream.c - publish and subscribe: log events, dead letters, unhandled messages, the user's
 * own events.
 *
 * Shape.   Under the lock: one subject for each subscribed type (number 0: all types) with its
 *          subscribers. For publishers, without the lock: for each published type the list of all
 *          receivers: the subscribers of the type, of its parents (trp_type_extend) and of all
 *          types. A list is made when the first event of a type is published; all lists are
 *          dropped when a subscription changes.
 * Must hold.
 *   event-stream-E1  Events are sent without the lock: sending may lead to a dead letter, which is
 *       published in turn.
 *   event-stream-E2  A subscriber that has ended gets no more events: it is removed at its end, or
 *       skipped and removed later.
 *   event-stream-E3  A list never changes once it can be found, and is freed by trpi_retire(), so
 *       a publisher (inside a run, or entered) may read it.
 *   event-stream-E4  A subscriber gets an event once, whatever it has subscribed to.
 * Cost.    Publishing: a lookup in a table of 64 chains. After a change of a subscription each
 *          type's list is made again: not meant for changes at a high rate.
 * Tests.   tests/unit/actor/dead_letter_test.c, behaviour_test.c
 * Sources. EB-02 (the sender is not kept), EB-04, ES-01, ES-03, ES-05.
 */
#include "actor/kernel/misuse.h"
#include "actor/log/event_stream.h"
#include "actor/naming/path.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/mutex.h"

#define CHAINS 64u /* of lists, by type; a power of two */

typedef struct member {
    trp_ref ref;
    trpi_event_limit *limit; /* NULL: none; outlives the stream */
} member;

typedef struct subject {
    struct subject *next;
    uint32_t type; /* number; 0: all */
    uint32_t count, room;
    member *members;
} subject;

typedef struct audience {
    struct audience *next; /* in its chain */
    uint32_t type;
    uint32_t count;
    member members[];
} audience;

struct trpi_event_stream {
    pthread_mutex_t lock; /* guards subjects, and writing to chains; a leaf */
    subject *subjects;
    _Atomic(audience *) chains[CHAINS]; /* release (under the lock) / acquire */
    _Atomic uint32_t
        subscriptions; /* written under lock, read relaxed: a hint that there is no subscriber */
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

/* A whole chain. */
static void
audiences_free(void *object)
{
    audience *next;

    for (audience *a = object; a != NULL; a = next) {
        next = a->next;
        trpi_free(a);
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
        trpi_free(s->members);
        trpi_free(s);
    }
    for (size_t i = 0; i < CHAINS; i++) {
        audiences_free(atomic_load_explicit(&stream->chains[i], memory_order_relaxed));
    }
    trpi_mutex_destroy(&stream->lock);
    trpi_free(stream);
}

static bool
is_alive(trp_system *system, trp_ref ref)
{
    const trpi_cell *cell;

    if (ref.node != TRPI_NODE_SELF) {
        return true; /* its own node drops a message to a stale ref */
    }
    cell = trpi_cells_find(system->cells, ref.slot);
    return cell != NULL && trpi_cell_ref(cell).generation == ref.generation;
}

/* ---- changing: under the lock ---------------------------------------------------------------- */

static subject **
subject_find(struct trpi_event_stream *stream, uint32_t type)
{
    subject **link = &stream->subjects;

    while (*link != NULL && (*link)->type != type) {
        link = &(*link)->next;
    }
    return link;
}

static uint32_t
member_find(const subject *s, trp_ref ref)
{
    uint32_t i = 0;

    while (i < s->count && !trp_ref_equal(s->members[i].ref, ref)) {
        i++;
    }
    return i;
}

static void
member_remove(struct trpi_event_stream *stream, subject *s, uint32_t i)
{
    memmove(&s->members[i], &s->members[i + 1], (s->count - i - 1) * sizeof s->members[0]);
    s->count--;
    atomic_fetch_sub_explicit(&stream->subscriptions, 1, memory_order_relaxed);
}

/* event-stream-E2: remove subscribers whose end was not seen (subscribed by others while they
 * ended). */
static void
subject_sweep(trp_system *system, struct trpi_event_stream *stream, subject *s)
{
    for (uint32_t i = s->count; i-- > 0;) {
        if (!is_alive(system, s->members[i].ref)) {
            member_remove(stream, s, i);
        }
    }
}

static trp_err
member_add(trp_system *system, struct trpi_event_stream *stream, uint32_t type, member fresh)
{
    subject **link = subject_find(stream, type);
    subject *s = *link;

    if (s == NULL) {
        s = trpi_alloc(sizeof *s);
        if (s == NULL) {
            return TRP_ENOMEM;
        }
        s->type = type;
        *link = s; /* an empty one is harmless */
    }
    subject_sweep(system, stream, s);
    if (member_find(s, fresh.ref) < s->count) {
        return TRP_EEXIST;
    }
    if (trpi_array_reserve(&s->members, s->count, &s->room, sizeof *s->members, 1,
                           TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        return TRP_ENOMEM;
    }
    s->members[s->count++] = fresh;
    atomic_fetch_add_explicit(&stream->subscriptions, 1, memory_order_relaxed);
    return TRP_OK;
}

/* Take all lists out; the caller retires them when it has given up the lock. */
static void
lists_take(struct trpi_event_stream *stream, audience **ret_old)
{
    for (size_t i = 0; i < CHAINS; i++) {
        ret_old[i] = atomic_exchange_explicit(&stream->chains[i], NULL, memory_order_relaxed);
    }
}

static void
lists_retire(trp_system *system, audience *const *old)
{
    for (size_t i = 0; i < CHAINS; i++) {
        if (old[i] != NULL) {
            trpi_retire(system->sched, audiences_free, old[i]); /* event-stream-E3 */
        }
    }
}

trp_err
trpi_event_subscribe(trp_system *system, trp_ref subscriber, const trp_type *type,
                     trpi_event_limit *limit)
{
    struct trpi_event_stream *stream = system->events;
    member fresh = { subscriber, limit };
    audience *old[CHAINS] = { NULL };
    trp_err err;

    if (trp_ref_is_none(subscriber)) {
        return TRP_EINVAL;
    }
    if (type != NULL && type->number == 0) {
        return TRP_ENOTYPE;
    }
    if (!is_alive(system, subscriber)) {
        return TRP_ENOENT;
    }
    pthread_mutex_lock(&stream->lock);
    err = member_add(system, stream, type == NULL ? 0 : type->number, fresh);
    if (err == TRP_OK) {
        lists_take(stream, old);
    }
    pthread_mutex_unlock(&stream->lock);
    lists_retire(system, old);
    return err == TRP_EEXIST ? TRP_OK : err;
}

/* End the subscription to type, or to every type (all). Returns whether there was one. */
static bool
subscription_end(trp_system *system, trp_ref subscriber, const trp_type *type, bool all)
{
    struct trpi_event_stream *stream = system->events;
    uint32_t number = type == NULL ? 0 : type->number;
    audience *old[CHAINS] = { NULL };
    bool found = false;

    pthread_mutex_lock(&stream->lock);
    for (subject *s = stream->subjects; s != NULL; s = s->next) {
        uint32_t i = all || s->type == number ? member_find(s, subscriber) : s->count;

        if (i < s->count) {
            member_remove(stream, s, i);
            found = true;
        }
    }
    if (found) {
        lists_take(stream, old);
    }
    pthread_mutex_unlock(&stream->lock);
    lists_retire(system, old);
    return found;
}

void
trpi_event_unsubscribe(trp_system *system, trp_ref subscriber, const trp_type *type)
{
    (void)subscription_end(system, subscriber, type, false);
}

void
trpi_event_subscriber_ended(trp_system *system, trp_ref subscriber)
{
    (void)subscription_end(system, subscriber, NULL, true);
}

/* ---- public ---------------------------------------------------------------------------------- */

/* ES-07. */
static void
subscription_trace(trp_system *system, trp_ref subscriber, const char *what, const trp_type *type)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    if (trpi_log_debugs(system, TRP_DEBUG_EVENT_STREAM)) {
        trp_path(system, subscriber, path, sizeof path);
        trpi_log(system, TRP_LOG_DEBUG, "eventStream", "%s %s %s", path, what,
                 type == NULL ? "all channels" : type->name);
    }
}

trp_err
trp_subscribe(trp_ctx *ctx, const trp_type *type)
{
    trp_err err;

    TRPI_USE(ctx);
    err = trpi_event_subscribe(ctx->system, ctx->self, type, NULL);
    if (err == TRP_OK) {
        ctx->cell->subscribed = 1;
        subscription_trace(ctx->system, ctx->self, "subscribes to", type);
    }
    return err;
}

void
trp_unsubscribe(trp_ctx *ctx, const trp_type *type)
{
    if (subscription_end(ctx->system, ctx->self, type, type == NULL)) {
        subscription_trace(ctx->system, ctx->self, "unsubscribes from", type);
    }
}

trp_err
trp_system_subscribe(trp_system *system, trp_ref subscriber, const trp_type *type)
{
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    err = trpi_event_subscribe(system, subscriber, type, NULL);
    if (err == TRP_OK) {
        subscription_trace(system, subscriber, "subscribes to", type);
    }
    return err;
}

trp_err
trp_system_unsubscribe(trp_system *system, trp_ref subscriber, const trp_type *type)
{
    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    if (!subscription_end(system, subscriber, type, type == NULL)) {
        return TRP_ENOENT;
    }
    subscription_trace(system, subscriber, "unsubscribes from", type);
    return TRP_OK;
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Under the lock. event-stream-E4. */
static void
audience_add(audience *to, const subject *s)
{
    for (uint32_t i = 0; s != NULL && i < s->count; i++) {
        uint32_t k = 0;

        while (k < to->count && !trp_ref_equal(to->members[k].ref, s->members[i].ref)) {
            k++;
        }
        if (k == to->count) {
            to->members[to->count++] = s->members[i];
        }
    }
}

static audience *
audience_find(struct trpi_event_stream *stream, uint32_t type)
{
    audience *a = atomic_load_explicit(&stream->chains[type % CHAINS], memory_order_acquire);

    while (a != NULL && a->type != type) {
        a = a->next;
    }
    return a;
}

/* Under the lock: the list of a type. NULL: out of memory. */
static audience *
audience_new(struct trpi_event_stream *stream, uint32_t type)
{
    uint32_t room = atomic_load_explicit(&stream->subscriptions, memory_order_relaxed);
    audience *a = trpi_alloc(sizeof *a + room * sizeof a->members[0]);

    if (a != NULL) {
        a->type = type;
        for (uint32_t up = type; up != 0; up = trpi_type_parent(up)) {
            audience_add(a, *subject_find(stream, up));
        }
        audience_add(a, *subject_find(stream, 0));
    }
    return a;
}

static audience *
audience_get(struct trpi_event_stream *stream, uint32_t type)
{
    audience *a;

    if (type == 0 || atomic_load_explicit(&stream->subscriptions, memory_order_relaxed) == 0) {
        return NULL;
    }
    a = audience_find(stream, type);
    if (a != NULL) {
        return a;
    }
    pthread_mutex_lock(&stream->lock);
    a = audience_find(stream, type); /* made meanwhile */
    if (a == NULL && (a = audience_new(stream, type)) != NULL) {
        _Atomic(audience *) *chain = &stream->chains[type % CHAINS];

        a->next = atomic_load_explicit(chain, memory_order_relaxed);
        atomic_store_explicit(chain, a, memory_order_release); /* event-stream-E3 */
    }
    pthread_mutex_unlock(&stream->lock);
    return a;
}

bool
trpi_event_is_wanted(trp_ctx *ctx, const trp_type *type)
{
    const audience *a = audience_get(ctx->system->events, type->number);

    return a != NULL && a->count > 0;
}

/* Is there room for one more? If so it is counted as waiting. */
static bool
limit_admits(trpi_event_limit *limit)
{
    if (atomic_load_explicit(&limit->waiting, memory_order_relaxed) >= limit->max) {
        atomic_fetch_add_explicit(&limit->dropped, 1, memory_order_relaxed);
        return false;
    }
    atomic_fetch_add_explicit(&limit->waiting, 1, memory_order_relaxed);
    return true;
}

uint32_t
trpi_event_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    const audience *a = audience_get(ctx->system->events, type->number);
    const trp_ref none = TRP_REF_NONE;
    uint32_t limited = 0;

    for (uint32_t i = 0; a != NULL && i < a->count; i++) {
        const member *m = &a->members[i];

        if (m->limit != NULL) {
            limited++; /* one that has ended counts, too: its lines are not lost (logger-K1) */
            if (limit_admits(m->limit)) {
                trpi_tell(ctx, m->ref, none, type, payload, bytes); /* event-stream-E1 */
            }
        } else if (is_alive(ctx->system, m->ref)) {
            trpi_tell(ctx, m->ref, none, type, payload, bytes);
        }
    }
    return limited;
}

void
trp_publish(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    TRPI_USE(ctx);
    if (type != NULL) {
        (void)trpi_event_publish(ctx, type, payload, bytes);
    }
}

void
trp_system_publish(trp_system *system, const trp_type *type, const void *payload, size_t bytes)
{
    if (trpi_system_is_valid(system) && type != NULL) {
        trp_ctx *ctx = trpi_enter(system);

        (void)trpi_event_publish(ctx, type, payload, bytes);
        trpi_leave(ctx);
    }
}
