/* trace.c - the ring of hops, and what is sampled.
 *
 * Why.     A hop is read rarely and by another thread, and those who write one have just handled a
 *          traced message, which few messages are. So one ring under one lock serves all workers.
 * Shape.   handled, dead --> [hop][hop][hop]...  the oldest is overwritten
 *          A hop has numbers only: a ref, not a path; a type's number, not its name. Names are
 *          looked up when somebody reads.
 * Must hold.
 *   trace-H1  The ring is allocated when the first hop comes: a system without traces has none. A
 *       hop that finds no memory is lost, nothing else.
 * Threads. any; the lock is a leaf.
 * Limits.  TRP_TRACE_HOPS_MAX, TRP_TRACE_SAMPLES_MAX.
 * Tests.   tests/unit/actor/trace_test.c
 * Sources. HOW-09; W3C Trace Context.
 */
#include "actor/kernel/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "actor/kernel/system.h"
#include "actor/kernel/type.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/mutex.h"

typedef struct hop {
    trp_trace trace;
    uint64_t parent, net_ns, wait_ns, begun_ns, run_ns;
    trp_ref actor;
    uint32_t type;
    uint16_t dead_reason;
    uint8_t end;
    int32_t err;
} hop;

typedef struct sample {
    char path[TRP_PATH_BYTES_MAX + 1]; /* "": unused */
    uint32_t one_in;
} sample;

typedef struct trpi_trace {
    _Atomic uint64_t seed;    /* of spans; 0: not drawn yet; relaxed */
    _Atomic uint64_t spans;   /* given out; relaxed */
    _Atomic uint32_t samples; /* number of paths; relaxed */
    pthread_mutex_t lock;     /* guards the rest */
    hop *ring;                /* trace-H1 */
    uint64_t count;           /* of hops so far: the next one's number is one more */
    sample sampled[TRP_TRACE_SAMPLES_MAX];
} trpi_trace;

trp_err
trpi_trace_system_new(trp_system *system)
{
    trpi_trace *trace = trpi_alloc(sizeof *trace);

    if (trace == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&trace->lock, NULL);
    system->trace = trace;
    return TRP_OK;
}

void
trpi_trace_system_free(trp_system *system)
{
    if (system->trace != NULL) {
        trpi_mutex_destroy(&system->trace->lock);
        trpi_free(system->trace->ring);
        trpi_free(system->trace);
    }
}

static uint64_t
spans_seed(trp_system *system)
{
    uint64_t drawn = trpi_world_random(system->world) | 1u, seed = 0;

    return atomic_compare_exchange_strong_explicit(&system->trace->seed, &seed, drawn,
                                                   memory_order_relaxed, memory_order_relaxed)
               ? drawn
               : seed;
}

/* Fill with numbers that no other has, none of them 0. */
static void
spans_take(trp_system *system, uint64_t *spans, uint32_t count)
{
    trpi_trace *trace = system->trace;
    uint64_t number = atomic_fetch_add_explicit(&trace->spans, count, memory_order_relaxed);
    uint64_t seed = atomic_load_explicit(&trace->seed, memory_order_relaxed);

    if (seed == 0) { /* not at the start: a run without traces draws no number for them */
        seed = spans_seed(system);
    }
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = trpi_hash_u64(seed + number + i);
        spans[i] += spans[i] == 0;
    }
}

uint64_t
trpi_trace_span(trp_system *system)
{
    uint64_t span;

    spans_take(system, &span, 1);
    return span;
}

void
trp_trace_new(trp_system *system, trp_trace *ret_trace)
{
    uint64_t spans[2];

    spans_take(system, spans, 2);
    *ret_trace = (trp_trace){ spans[0], spans[1], 0, 0, 0 };
}

void
trpi_trace_root(trp_system *system, trp_trace *ret_trace)
{
    uint64_t spans[3];

    spans_take(system, spans, 3);
    *ret_trace = (trp_trace){ spans[0], spans[1], spans[2], 0, 0 };
}

/* ---- hops ------------------------------------------------------------------------------------ */

static void
hop_keep(trpi_trace *trace, const hop *what)
{
    pthread_mutex_lock(&trace->lock);
    if (trace->ring == NULL) {
        trace->ring = trpi_alloc(TRP_TRACE_HOPS_MAX * sizeof *trace->ring);
    }
    if (trace->ring != NULL) {
        trace->ring[trace->count++ % TRP_TRACE_HOPS_MAX] = *what;
    }
    pthread_mutex_unlock(&trace->lock);
}

void
trpi_trace_handled(trp_ctx *ctx, const trpi_trailer *trailer, const trp_msg *msg, uint64_t begun_ns,
                   trp_err err)
{
    if (trpi_type_is_log(msg->priv_type)) {
        return; /* a line about a message is none of its consequences */
    }
    hop h = { .trace = trailer->trace,
              .parent = trailer->parent,
              .net_ns = trailer->net_ns,
              .wait_ns = begun_ns > trailer->sent_ns ? begun_ns - trailer->sent_ns : 0,
              .begun_ns = begun_ns,
              .run_ns = trpi_world_mono_ns(ctx->system->world) - begun_ns,
              .actor = ctx->self,
              .type = msg->priv_type,
              .end = err == TRP_OK           ? TRP_HOP_HANDLED
                     : err == TRP_EUNHANDLED ? TRP_HOP_UNHANDLED
                                             : TRP_HOP_FAILED,
              .err = (int32_t)err };

    hop_keep(ctx->system->trace, &h);
}

void
trpi_trace_dead(trp_system *system, const trpi_trailer *trailer, trp_ref recipient, uint32_t type,
                trp_dead_reason reason)
{
    uint64_t now = trpi_world_mono_ns(system->world);
    hop h = { .trace = trailer->trace,
              .parent = trailer->parent,
              .net_ns = trailer->net_ns,
              .wait_ns = now > trailer->sent_ns ? now - trailer->sent_ns : 0,
              .begun_ns = now,
              .actor = recipient,
              .type = type,
              .end = TRP_HOP_DEAD,
              .dead_reason = (uint16_t)reason };

    hop_keep(system->trace, &h);
}

/* Copy the hops above `after`, in order; NULL: out of memory. */
static hop *
hops_copy(trpi_trace *trace, uint64_t after, uint64_t *ret_first, uint64_t *ret_count)
{
    pthread_mutex_lock(&trace->lock);
    uint64_t first = trace->count > TRP_TRACE_HOPS_MAX ? trace->count - TRP_TRACE_HOPS_MAX : 0;
    first = after > first ? after : first;
    uint64_t count = trace->count > first ? trace->count - first : 0;
    hop *copy = trpi_alloc((count + 1) * sizeof *copy);
    for (uint64_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = trace->ring[(first + i) % TRP_TRACE_HOPS_MAX];
    }
    pthread_mutex_unlock(&trace->lock);
    *ret_first = first;
    *ret_count = count;
    return copy;
}

trp_err
trp_trace_hops(trp_system *system, uint64_t after,
               trp_err (*fn)(void *arg, const trp_trace_hop *hop), void *arg)
{
    uint64_t first, count;
    hop *copy;
    trp_err err = TRP_OK;

    if (!trpi_system_is_valid(system) || fn == NULL) {
        return TRP_EINVAL;
    }
    copy = hops_copy(system->trace, after, &first, &count);
    if (copy == NULL) {
        return TRP_ENOMEM;
    }
    uint64_t wall_ns = trpi_world_wall_ns(system->world);
    uint64_t now = trpi_world_mono_ns(system->world);
    for (uint64_t i = 0; i < count && err == TRP_OK; i++) {
        const hop *h = &copy[i];
        trp_trace_hop shown = { .number = first + i + 1,
                                .trace = h->trace,
                                .parent = h->parent,
                                .actor = h->actor,
                                .type = trpi_type_get(h->type),
                                .wall_ns = wall_ns - (now - h->begun_ns),
                                .net_ns = h->net_ns,
                                .wait_ns = h->wait_ns,
                                .run_ns = h->run_ns,
                                .err = h->end == TRP_HOP_FAILED ? (trp_err)h->err : TRP_OK,
                                .dead_reason = h->dead_reason,
                                .end = (trp_hop_end)h->end };
        err = fn(arg, &shown);
    }
    trpi_free(copy);
    return err;
}

/* ---- what is sampled ------------------------------------------------------------------------- */

bool
trpi_trace_samples_any(const trp_system *system)
{
    return atomic_load_explicit(&system->trace->samples, memory_order_relaxed) != 0;
}

trp_err
trpi_trace_sample_set(trp_system *system, const char *path, uint32_t one_in)
{
    trpi_trace *trace = system->trace;
    sample *place = NULL, *unused = NULL;
    trp_err err = TRP_OK;

    pthread_mutex_lock(&trace->lock);
    for (int i = 0; i < TRP_TRACE_SAMPLES_MAX; i++) {
        sample *s = &trace->sampled[i];

        if (s->path[0] == '\0') {
            unused = unused != NULL ? unused : s;
        } else if (strcmp(s->path, path) == 0) {
            place = s;
        }
    }
    if (place == NULL && one_in == 0) {
        err = TRP_ENOENT;
    } else if (place == NULL && unused == NULL) {
        err = TRP_ELIMIT;
    } else if (one_in == 0) {
        memset(place, 0, sizeof *place);
        atomic_fetch_sub_explicit(&trace->samples, 1, memory_order_relaxed);
    } else {
        if (place == NULL) {
            place = unused;
            (void)snprintf(place->path, sizeof place->path, "%s", path);
            atomic_fetch_add_explicit(&trace->samples, 1, memory_order_relaxed);
        }
        place->one_in = one_in;
    }
    pthread_mutex_unlock(&trace->lock);
    return err;
}

uint32_t
trpi_trace_sample_of(trp_system *system, const char *path,
                     bool (*matches)(const char *pattern, const char *path))
{
    trpi_trace *trace = system->trace;
    uint32_t one_in = 0;

    pthread_mutex_lock(&trace->lock);
    for (int i = 0; i < TRP_TRACE_SAMPLES_MAX && one_in == 0; i++) {
        const sample *s = &trace->sampled[i];

        if (s->path[0] != '\0' && matches(s->path, path)) {
            one_in = s->one_in;
        }
    }
    pthread_mutex_unlock(&trace->lock);
    return one_in;
}

trp_err
trp_trace_samples(trp_system *system, trp_err (*fn)(void *arg, const char *path, uint32_t one_in),
                  void *arg)
{
    trp_err err = TRP_OK;

    if (!trpi_system_is_valid(system) || fn == NULL) {
        return TRP_EINVAL;
    }
    for (int i = 0; i < TRP_TRACE_SAMPLES_MAX && err == TRP_OK; i++) {
        pthread_mutex_lock(&system->trace->lock);
        sample s = system->trace->sampled[i];
        pthread_mutex_unlock(&system->trace->lock);
        if (s.path[0] != '\0') {
            err = fn(arg, s.path, s.one_in);
        }
    }
    return err;
}

/* ---- traceparent ----------------------------------------------------------------------------- */

/* Read so many lower-case hexadecimal digits. */
static bool
hex_read(const char *text, int digits, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (int i = 0; i < digits; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

trp_err
trp_trace_parse(const char *text, trp_trace *ret_trace)
{
    uint64_t version, high, low, span, flags;
    size_t length = text == NULL ? 0 : strlen(text);

    /* a later version may have more behind a dash (W3C Trace Context, 4.3) */
    if (length < TRP_TRACE_TEXT_BYTES - 1 || !hex_read(text, 2, &version) || text[2] != '-' ||
        !hex_read(text + 3, 16, &high) || !hex_read(text + 19, 16, &low) || text[35] != '-' ||
        !hex_read(text + 36, 16, &span) || text[52] != '-' || !hex_read(text + 53, 2, &flags) ||
        version == 0xff || (high | low) == 0 || span == 0 ||
        (length > TRP_TRACE_TEXT_BYTES - 1 && (version == 0 || text[55] != '-'))) {
        return TRP_EINVAL;
    }
    *ret_trace = (trp_trace){ high, low, span, 0, 0 };
    return (flags & 1) != 0 ? TRP_OK : TRP_ENOENT;
}

void
trp_trace_format(const trp_trace *trace, char text[TRP_TRACE_TEXT_BYTES])
{
    (void)snprintf(text, TRP_TRACE_TEXT_BYTES, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01",
                   trace->id_high, trace->id_low, trace->span);
}
