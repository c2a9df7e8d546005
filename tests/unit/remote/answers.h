/* answers.h - a driver around another one whose write() answers *done* always, never, or randomly;
 * it checks the rules of base/transport.h on the way.
 *
 * A write is copied and queued, so that it may be called done at once; close() waits for what is
 * queued, as the kernel does. ANSWERS_SEED=... repeats the answers of a run.
 */
#ifndef TESTS_UNIT_REMOTE_ANSWERS_H
#define TESTS_UNIT_REMOTE_ANSWERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/transport.h"
#include "remote/nng/link_nng.h"
#include "tests/unit/unit.h"

enum answers_mode { ANSWERS_NEVER, ANSWERS_ALWAYS, ANSWERS_RANDOMLY };

static struct {
    const trpi_transport_ops *inner;
    atomic_bool hold; /* connected() waits */
    enum answers_mode mode;
    _Atomic uint64_t random;     /* splitmix64 */
    _Atomic uint32_t done, late; /* answers */
    _Atomic uint32_t asked_late; /* of them, those that asked for written() */
} answers = { .inner = &trpi_link_nng_ops };

static _Thread_local int answers_inside; /* a call of the inner driver, on this thread */

typedef struct answers_chunk {
    struct answers_chunk *next;
    bool tell; /* written() when it is written */
    size_t count;
    uint8_t bytes[];
} answers_chunk;

struct trpi_transport {
    trpi_transport *inner; /* opaque */
    const trpi_transport_events *events;
    void *arg;
};

struct trpi_link {
    trpi_transport *transport;
    trpi_link *inner; /* opaque */
    void *user;
    pthread_mutex_t lock;
    answers_chunk *first, *last; /* by lock; the first one is in flight */
    bool closing, closed;        /* by lock */
    atomic_int busy;             /* in bytes() or paused() */
};

static inline bool
answers_coin(void)
{
    uint64_t x = atomic_fetch_add(&answers.random, 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return ((x ^ (x >> 31)) & 1) != 0;
}

static inline trpi_link *
answers_link_new(trpi_transport *transport, trpi_link *inner, void *user)
{
    trpi_link *link = trpi_alloc(sizeof *link);
    UNIT_REQUIRE(link != NULL);
    link->transport = transport;
    link->inner = inner;
    link->user = user;
    pthread_mutex_init(&link->lock, NULL);
    return link;
}

static inline void
answers_link_free(trpi_link *link)
{
    while (link->first != NULL) {
        answers_chunk *chunk = link->first;
        link->first = chunk->next;
        trpi_free(chunk);
    }
    pthread_mutex_destroy(&link->lock);
    trpi_free(link);
}

/* By lock. The first chunk goes out; its end is told by written(). */
static inline trp_err
answers_send(trpi_link *link)
{
    trpi_iov iov = { link->first->bytes, link->first->count };
    answers_inside++;
    trp_err err = answers.inner->write(link->inner, &iov, 1, NULL);
    answers_inside--;
    return err;
}

/* ---- callbacks of the inner driver ----------------------------------------------------------- */

static inline bool
answers_on_accepted(void *arg, trpi_link *inner, const char *peer, void **ret_user)
{
    trpi_transport *transport = arg;
    trpi_link *link = answers_link_new(transport, inner, NULL);
    UNIT_EQUAL(answers_inside, 0); /* transport-T1, as below */
    *ret_user = link;
    bool wanted = transport->events->accepted(transport->arg, link, peer, &link->user);
    if (!wanted) {
        answers_link_free(link);
    }
    return wanted;
}
static inline void
answers_on_connected(void *user, trpi_link *inner)
{
    trpi_link *link = user;
    (void)inner;
    UNIT_EQUAL(answers_inside, 0);
    while (atomic_load(&answers.hold)) {
        unit_pause();
    }
    link->transport->events->connected(link->user, link);
}
static inline void
answers_on_bytes(void *user, trpi_link *inner, const uint8_t *bytes, size_t count)
{
    trpi_link *link = user;
    (void)inner;
    UNIT_EQUAL(answers_inside, 0);
    UNIT_EQUAL(atomic_fetch_add(&link->busy, 1), 0); /* transport-T2 */
    pthread_mutex_lock(&link->lock);
    bool closing = link->closing;
    UNIT_FALSE(link->closed); /* transport-T3 */
    pthread_mutex_unlock(&link->lock);
    if (!closing) {
        link->transport->events->bytes(link->user, link, bytes, count);
    }
    atomic_fetch_sub(&link->busy, 1);
}
static inline bool
answers_on_paused(void *user, trpi_link *inner)
{
    trpi_link *link = user;
    (void)inner;
    UNIT_EQUAL(atomic_fetch_add(&link->busy, 1), 0);
    bool wait = link->transport->events->paused(link->user, link);
    atomic_fetch_sub(&link->busy, 1);
    return wait;
}
static inline void
answers_on_written(void *user, trpi_link *inner)
{
    trpi_link *link = user;
    (void)inner;
    UNIT_EQUAL(answers_inside, 0);
    pthread_mutex_lock(&link->lock);
    UNIT_FALSE(link->closed);
    answers_chunk *chunk = link->first;
    UNIT_REQUIRE(chunk != NULL);
    link->first = chunk->next;
    bool tell = chunk->tell && !link->closing;
    if (link->first != NULL) {
        (void)answers_send(link); /* refused: closed() comes */
    } else if (link->closing) {
        answers.inner->close(link->inner);
    }
    pthread_mutex_unlock(&link->lock);
    trpi_free(chunk);
    if (tell) {
        link->transport->events->written(link->user, link);
    }
}
static inline void
answers_on_closed(void *user, trpi_link *inner, trp_err err, const char *reason)
{
    trpi_link *link = user;
    (void)inner;
    UNIT_EQUAL(answers_inside, 0);
    UNIT_EQUAL(atomic_load(&link->busy), 0);
    pthread_mutex_lock(&link->lock);
    UNIT_FALSE(link->closed);
    link->closed = link->closing = true;
    pthread_mutex_unlock(&link->lock);
    link->transport->events->closed(link->user, link, err, reason);
}
static inline void
answers_on_refused(void *user, trpi_link *inner, trpi_refusal why, const char *detail)
{
    trpi_link *link = user;
    (void)inner;
    link->transport->events->refused(link->user, link, why, detail);
}
static inline void
answers_on_starved(void *arg)
{
    trpi_transport *transport = arg;
    transport->events->starved(transport->arg);
}
static const trpi_transport_events answers_events = { .accepted = answers_on_accepted,
                                                      .connected = answers_on_connected,
                                                      .bytes = answers_on_bytes,
                                                      .written = answers_on_written,
                                                      .closed = answers_on_closed,
                                                      .paused = answers_on_paused,
                                                      .refused = answers_on_refused,
                                                      .starved = answers_on_starved };

/* ---- ops ------------------------------------------------------------------------------------- */

static inline trp_err
answers_open(void *arg, trpi_world *world, const trpi_transport_events *events, void *events_arg,
             trpi_transport **ret_transport)
{
    trpi_transport *transport = trpi_alloc(sizeof *transport);
    UNIT_REQUIRE(transport != NULL);
    transport->events = events;
    transport->arg = events_arg;
    trp_err err = answers.inner->open(arg, world, &answers_events, transport, &transport->inner);
    if (err != TRP_OK) {
        trpi_free(transport);
        return err;
    }
    *ret_transport = transport;
    return TRP_OK;
}
static inline trp_err
answers_listen(trpi_transport *transport, const char *host, uint16_t port, uint16_t *ret_port)
{
    return answers.inner->listen(transport->inner, host, port, ret_port);
}
static inline void
answers_accept(trpi_transport *transport)
{
    answers.inner->accept(transport->inner);
}
static inline trp_err
answers_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
                void *user, trpi_link **ret_link)
{
    trpi_link *link = answers_link_new(transport, NULL, user);
    *ret_link = link; /* before the first callback */
    answers_inside++;
    trp_err err =
        answers.inner->connect(transport->inner, host, port, timeout_ms, link, &link->inner);
    answers_inside--;
    if (err != TRP_OK) {
        answers_link_free(link);
    }
    return err;
}
static inline trp_err
answers_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += iov[i].bytes;
    }
    bool done = ret_done != NULL && (answers.mode == ANSWERS_ALWAYS ||
                                     (answers.mode == ANSWERS_RANDOMLY && answers_coin()));
    answers_chunk *chunk = trpi_alloc(sizeof *chunk + bytes);
    UNIT_REQUIRE(chunk != NULL);
    for (size_t i = 0; i < count; i++) {
        memcpy(chunk->bytes + chunk->count, iov[i].data, iov[i].bytes);
        chunk->count += iov[i].bytes;
    }
    chunk->tell = !done;
    trp_err err = TRP_OK;
    pthread_mutex_lock(&link->lock);
    if (link->closing) {
        err = TRP_ECLOSED;
    } else if (link->first == NULL) {
        link->first = link->last = chunk;
        err = answers_send(link);
        link->first = err == TRP_OK ? chunk : NULL;
    } else {
        link->last = link->last->next = chunk;
    }
    if (err == TRP_OK && done) {
        *ret_done = true;
    }
    pthread_mutex_unlock(&link->lock);
    atomic_fetch_add(done ? &answers.done : &answers.late, 1);
    atomic_fetch_add(&answers.asked_late, ret_done == NULL);
    if (err != TRP_OK) {
        trpi_free(chunk);
    }
    return err;
}
static inline void
answers_pause(trpi_link *link)
{
    answers_inside++;
    answers.inner->pause(link->inner);
    answers_inside--;
}
static inline void
answers_close(trpi_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->closing = true;
    answers_inside++;
    if (link->first == NULL) {
        answers.inner->close(link->inner);
    }
    answers_inside--;
    pthread_mutex_unlock(&link->lock);
}
static inline void
answers_release(trpi_link *link)
{
    UNIT_TRUE(link->closed);
    answers.inner->release(link->inner);
    answers_link_free(link);
}
static inline void
answers_stop(trpi_transport *transport)
{
    answers.inner->stop(transport->inner);
}
static inline void
answers_free(trpi_transport *transport)
{
    if (transport != NULL) {
        answers.inner->free(transport->inner);
        trpi_free(transport);
    }
}

static const trpi_transport_ops answers_ops = { .scheme = "tcp",
                                                .open = answers_open,
                                                .listen = answers_listen,
                                                .accept = answers_accept,
                                                .connect = answers_connect,
                                                .write = answers_write,
                                                .pause = answers_pause,
                                                .close = answers_close,
                                                .release = answers_release,
                                                .stop = answers_stop,
                                                .free = answers_free };

/* Answer so from now on, and print the seed of random answers. */
static inline void
answers_begin(enum answers_mode mode)
{
    const char *given = getenv("ANSWERS_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : unit_now_ms() * 1000003u;
    answers.mode = mode;
    atomic_store(&answers.random, seed);
    atomic_store(&answers.done, 0);
    atomic_store(&answers.late, 0);
    atomic_store(&answers.asked_late, 0);
    if (mode == ANSWERS_RANDOMLY) {
        printf("  answers of the driver: ANSWERS_SEED=%llu\n", (unsigned long long)seed);
    }
}
/* Did the driver answer as it was to? */
static inline void
answers_end(void)
{
    uint32_t done = atomic_load(&answers.done), late = atomic_load(&answers.late);
    UNIT_TRUE(done + late > 0);
    UNIT_TRUE(answers.mode != ANSWERS_NEVER || done == 0);
    UNIT_TRUE(answers.mode != ANSWERS_ALWAYS || done > 0);
}

/* Three tests of one: `name`_never, _always and _randomly. set: a pointer to ops. */
#define ANSWERS_TEST(test, set, suffix, mode)                                                      \
    static void test##suffix(void)                                                                 \
    {                                                                                              \
        const trpi_transport_ops *before = (set);                                                  \
        answers_begin(mode);                                                                       \
        (set) = &answers_ops;                                                                      \
        test();                                                                                    \
        (set) = before;                                                                            \
        answers_end();                                                                             \
    }
#define ANSWERS_TESTS(test, set)                                                                   \
    ANSWERS_TEST(test, set, _never_done, ANSWERS_NEVER)                                            \
    ANSWERS_TEST(test, set, _always_done, ANSWERS_ALWAYS)                                          \
    ANSWERS_TEST(test, set, _randomly_done, ANSWERS_RANDOMLY)
#define UNIT_ANSWERS(test)                                                                         \
    UNIT(test##_never_done)                                                                        \
    UNIT(test##_always_done)                                                                       \
    UNIT(test##_randomly_done)

#endif
