/* poller.c - watches of sockets, and the calls that deliver their events.
 *
 * Shape.   Entries of 64 bytes in chunks that double in size: an index finds its chunk by its
 *          leading zeros. state: generation (high half) | USED | REMOVED | CLAIMED | events.
 *            report:  events |= bits; CLAIMED was clear: the reporter submits the call
 *            run:     take the events, ready(); new ones: run again; none: clear CLAIMED
 *            remove:  REMOVED; CLAIMED was clear: the remover submits the call, which ends the
 *                     watch
 * Must hold.
 *   poller-W1  CLAIMED is the token of the call: who sets it submits the call, once, and only the
 *       run of the call clears it. (watch_mark(), watch_run())
 *   poller-W2  Fields of an entry but for state are written before the state says USED (release),
 *       and are read by the holder of the token (acquire).
 *   poller-W3  Any thread adds free entries by a compare-exchange, and one at a time, under the
 *       lock, takes them: so an entry that is being taken cannot return meanwhile, and the end of
 *       a watch needs no lock.
 *   poller-W4  A call that is given without a report is pushed before the wake-up, and taken after
 *       the wait, so whoever ends the wait for it takes it.
 * Tests.   tests/unit/io/poller_test.c
 */
#include "io/poller.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomics.h"
#include "base/mutex.h"

#define CHUNK_FIRST 64u /* watches; each further chunk has twice as many */
#define CHUNKS 15u      /* 64 * (2^15 - 1) watches */

_Static_assert(CHUNK_FIRST *((1u << CHUNKS) - 1) >= TRPI_WATCHES_MAX, "chunks have all watches");

#define EVENTS ((uint64_t)(TRPI_NET_IN | TRPI_NET_OUT | TRPI_NET_END | TRPI_NET_DRAIN))
#define CLAIMED 0x10u
#define REMOVED 0x20u
#define USED 0x40u
#define GENERATION (1ull << 32)

struct trpi_watch {
    trpi_call_task call; /* first */
    _Atomic uint64_t state;
    const trpi_watch_events *events;
    union {
        void *user;
        trpi_watch *free_next; /* of a free entry */
    };
    trpi_poller *poller;
    int socket;
    uint32_t index;
};

_Static_assert(sizeof(trpi_watch) == 64, "a watch is one cache line");

struct trpi_poller {
    trpi_sched *sched;
    trpi_world *world;
    const trpi_net_ops *net;
    trpi_net_set *set;
    _Atomic uint32_t watches;             /* seq_cst: poll-O3 */
    pthread_mutex_t lock;                 /* taking entries, and making chunks; a leaf */
    uint32_t made;                        /* lock; entries that were used at least once */
    _Atomic(trpi_watch *) free_first;     /* poller-W3 */
    _Atomic(trpi_watch *) chunks[CHUNKS]; /* release; never unset */
    struct own_thread *own;               /* NULL: the scheduler's threads */
    _Atomic(trpi_task *) claimed;         /* calls without a report, the newest first */
};

/* A poller with a thread of its own. */
typedef struct own_thread {
    pthread_t thread;
    char name[16];
    _Atomic bool ends;
    trpi_task *first, *last; /* the thread's: ready calls */
} own_thread;

/* ---- entries --------------------------------------------------------------------------------- */

static uint32_t
chunk_of(uint32_t index)
{
    return 31u - (uint32_t)__builtin_clz(index / CHUNK_FIRST + 1);
}

static trpi_watch *
watch_at(trpi_poller *poller, uint32_t index)
{
    uint32_t chunk = chunk_of(index);

    return atomic_load_explicit(&poller->chunks[chunk], memory_order_acquire) +
           (index - CHUNK_FIRST * ((1u << chunk) - 1));
}

/* Take an entry; its state is 0 or an old generation. */
static trp_err
entry_take(trpi_poller *poller, trpi_watch **ret_watch)
{
    uint32_t chunk = chunk_of(poller->made);
    /* acquire: pairs with entry_free(), which wrote free_next */
    trpi_watch *watch = atomic_load_explicit(&poller->free_first, memory_order_acquire);

    while (watch != NULL) {
        if (atomic_compare_exchange_weak_explicit(&poller->free_first, &watch, watch->free_next,
                                                  memory_order_acquire, memory_order_acquire)) {
            *ret_watch = watch;
            return TRP_OK;
        }
    }
    if (poller->made == TRPI_WATCHES_MAX) {
        return TRP_ELIMIT;
    }
    if (atomic_load_explicit(&poller->chunks[chunk], RELAXED) == NULL) {
        watch = trpi_alloc_aligned(64, (CHUNK_FIRST << chunk) * sizeof *watch);
        if (watch == NULL) {
            return TRP_ENOMEM;
        }
        atomic_store_explicit(&poller->chunks[chunk], watch, memory_order_release);
    }
    watch = watch_at(poller, poller->made);
    watch->index = poller->made++;
    *ret_watch = watch;
    return TRP_OK;
}

static void
entry_free(trpi_poller *poller, trpi_watch *watch)
{
    trpi_watch *first = atomic_load_explicit(&poller->free_first, RELAXED);

    (void)atomic_fetch_sub_explicit(&poller->watches, 1, SEQ_CST);
    do {
        watch->free_next = first;
        /* release: pairs with entry_take() */
    } while (!atomic_compare_exchange_weak_explicit(&poller->free_first, &first, watch,
                                                    memory_order_release, RELAXED));
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Add bits to the state of a watch of this generation. true: the caller has claimed it, and submits
 * its call (poller-W1). */
static bool
watch_mark(trpi_watch *watch, uint32_t generation, uint64_t bits)
{
    uint64_t state = atomic_load_explicit(&watch->state, RELAXED);

    do {
        if ((state & USED) == 0 || state / GENERATION != generation || (state & REMOVED) != 0) {
            return false; /* poller-I4 */
        }
        /* acquire: the fields of the entry (poller-W2); release: what the claimant reads */
    } while (!atomic_compare_exchange_weak_explicit(&watch->state, &state, state | bits | CLAIMED,
                                                    memory_order_acq_rel, RELAXED));
    return (state & CLAIMED) == 0;
}

/* Give a call to the thread that waits for reports, or looks for them next. */
static void
claimed_push(trpi_poller *poller, trpi_task *task)
{
    trpi_task *first = atomic_load_explicit(&poller->claimed, RELAXED);

    do {
        task->run_next = first;
        /* release: pairs with claimed_take() */
    } while (!atomic_compare_exchange_weak_explicit(&poller->claimed, &first, task,
                                                    memory_order_release, RELAXED));
    poller->net->set_wake(poller->set); /* kept for the next wait: poller-W4 */
}

/* Take what was given, the oldest first. */
static trpi_task *
claimed_take(trpi_poller *poller)
{
    trpi_task *newest = NULL, *oldest = NULL;

    if (atomic_load_explicit(&poller->claimed, RELAXED) != NULL) {
        newest = atomic_exchange_explicit(&poller->claimed, NULL, memory_order_acquire);
    }
    while (newest != NULL) {
        trpi_task *next = newest->run_next;

        newest->run_next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void
watch_submit(trpi_watch *watch)
{
    trpi_sched *sched = watch->poller->sched;
    trpi_worker *worker = trpi_worker_current();

    if (watch->poller->own == NULL && worker != NULL && trpi_worker_sched(worker) == sched) {
        trpi_sched_ready(worker, &watch->call.task);
    } else if (watch->poller->own == NULL && watch->socket < 0 &&
               trpi_sched_lend(sched, &watch->call.task)) {
        return;
    } else if (watch->poller->own != NULL || watch->socket < 0) {
        claimed_push(watch->poller, &watch->call.task);
    } else {
        trpi_sched_inject(sched, &watch->call.task);
    }
}

/* With the claim: the watch ends here. */
static void
watch_end(trpi_watch *watch)
{
    trpi_poller *poller = watch->poller;
    const trpi_watch_events *events = watch->events;
    void *user = watch->user;
    uint64_t generation =
        atomic_load_explicit(&watch->state, RELAXED) / GENERATION * GENERATION + GENERATION;

    if (watch->socket >= 0) {
        poller->net->set_remove(poller->set, watch->socket);
    }
    atomic_store_explicit(&watch->state, generation, memory_order_release); /* poller-I4 */
    events->removed(user);
    entry_free(poller, watch);
}

static trpi_run_result
watch_run(trpi_call_task *call)
{
    trpi_watch *watch = (trpi_watch *)(void *)call;
    /* acquire: pairs with watch_mark() of those that added the events */
    uint64_t state = atomic_fetch_and_explicit(&watch->state, ~EVENTS, memory_order_acq_rel);
    uint32_t again = 0;

    trpi_assert((state & CLAIMED) != 0);
    if ((state & REMOVED) == 0 && (state & EVENTS) != 0) {
        again = watch->events->ready(watch->user, (uint32_t)(state & EVENTS)) & (uint32_t)EVENTS;
    }
    state = atomic_fetch_or_explicit(&watch->state, again, memory_order_acq_rel) | again;
    do {
        if ((state & REMOVED) != 0) {
            watch_end(watch);
            return TRPI_RUN_IDLE;
        }
        if ((state & EVENTS) != 0) {
            return TRPI_RUN_AGAIN; /* poller-I2, poller-I3 */
        }
        /* release: the next claimant sees what ready() wrote */
    } while (!atomic_compare_exchange_weak_explicit(&watch->state, &state,
                                                    state & ~(uint64_t)CLAIMED,
                                                    memory_order_acq_rel, memory_order_acquire));
    return TRPI_RUN_IDLE;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Claim the watch that is meant. */
static trpi_watch *
report_claim(trpi_poller *poller, const trpi_net_report *report)
{
    trpi_watch *watch = watch_at(poller, (uint32_t)report->key);

    return watch_mark(watch, (uint32_t)(report->key >> 32), report->events & EVENTS) ? watch : NULL;
}

/* Wait for reports, and claim their watches: *ret_first, in the order of the reports, then the
 * calls that were given without one. Return the number of reports. */
static int
reports_take(trpi_poller *poller, uint64_t timeout_ns, trpi_task **ret_first)
{
    trpi_net_report reports[TRPI_POLL_REPORTS];
    int count = poller->net->set_wait(poller->set, reports, TRPI_POLL_REPORTS, timeout_ns);

    *ret_first = claimed_take(poller);
    for (int i = count - 1; i >= 0; i--) {
        trpi_watch *watch = report_claim(poller, &reports[i]);

        if (watch != NULL) {
            watch->call.task.run_next = *ret_first;
            *ret_first = &watch->call.task;
        }
    }
    return count;
}

static void
poller_collect(void *arg, uint64_t timeout_ns, trpi_task **ret_first)
{
    (void)reports_take(arg, timeout_ns, ret_first);
}

static void
poller_wake(void *arg)
{
    trpi_poller *poller = arg;

    poller->net->set_wake(poller->set);
}

static bool
poller_is_used(void *arg)
{
    trpi_poller *poller = arg;

    return atomic_load_explicit(&poller->watches, SEQ_CST) != 0;
}

/* ---- a driven world -------------------------------------------------------------------------- */

static void
driven_collect(void *arg, uint64_t a, uint64_t b)
{
    trpi_poller *poller = arg;
    trpi_task *task, *next;
    int count;

    (void)a;
    (void)b;
    do {
        count = reports_take(poller, 0, &next);
        while ((task = next) != NULL) {
            next = task->run_next;
            trpi_sched_inject(poller->sched, task);
        }
    } while (count == TRPI_POLL_REPORTS);
}

/* Without room for a timer the reports come with those of the next one. */
static void
driven_due(void *arg, uint64_t in_ns)
{
    trpi_poller *poller = arg;
    trpi_timer what = { .due_ns = trpi_world_mono_ns(poller->world) + in_ns,
                        .fn = driven_collect,
                        .arg = poller };
    uint64_t id;

    (void)trpi_timer_start(poller->sched, &what, &id);
}

/* ---- a thread of its own --------------------------------------------------------------------- */

static void
own_append(own_thread *own, trpi_task *task)
{
    task->run_next = NULL;
    if (own->last != NULL) {
        own->last->run_next = task;
    } else {
        own->first = task;
    }
    own->last = task;
}

/* Run the calls that are ready now; those that want to run again have their turn after the next
 * look (poller-I3). */
static void
own_run(own_thread *own)
{
    trpi_task *task = own->first;

    own->first = own->last = NULL;
    while (task != NULL) {
        trpi_task *next = task->run_next;
        trpi_call_task *call = (trpi_call_task *)(void *)task;

        if (call->fn(call) != TRPI_RUN_IDLE) {
            own_append(own, task);
        }
        task = next;
    }
}

static void *
own_main(void *arg)
{
    trpi_poller *poller = arg;
    own_thread *own = poller->own;

    (void)pthread_setname_np(pthread_self(), own->name);
    while (!atomic_load_explicit(&own->ends, memory_order_acquire)) {
        trpi_task *task;

        (void)reports_take(poller, own->first != NULL ? 0 : UINT64_MAX, &task);
        while (task != NULL) {
            trpi_task *next = task->run_next;

            own_append(own, task);
            task = next;
        }
        own_run(own);
    }
    return NULL;
}

/* ---- the poller ------------------------------------------------------------------------------ */

/* Make a poller that no thread attends to yet. */
static trp_err
poller_make(trpi_sched *sched, trpi_world *world, trpi_poller **ret_poller)
{
    const trpi_net_ops *net = trpi_world_net(world);
    trpi_poller *poller;
    int error;

    if (net == NULL) {
        return TRP_EUNSUPPORTED;
    }
    poller = trpi_alloc(sizeof *poller);
    if (poller == NULL) {
        return TRP_ENOMEM;
    }
    poller->sched = sched;
    poller->world = world;
    poller->net = net;
    error = net->set_new(world, driven_due, poller, &poller->set);
    if (error != 0) {
        trpi_free(poller);
        return error == -ENOMEM ? TRP_ENOMEM : TRP_EIO;
    }
    pthread_mutex_init(&poller->lock, NULL);
    *ret_poller = poller;
    return TRP_OK;
}

trp_err
trpi_poller_new(trpi_sched *sched, trpi_world *world, trpi_poller **ret_poller)
{
    static const trpi_poll_ops ops = { .collect = poller_collect,
                                       .wake = poller_wake,
                                       .watches = poller_is_used };
    trp_err err = poller_make(sched, world, ret_poller);

    if (err == TRP_OK && !trpi_sched_is_driven(sched)) {
        trpi_sched_poll(sched, &ops, *ret_poller);
    }
    return err;
}

trp_err
trpi_poller_thread_new(trpi_world *world, const char *name, trpi_poller **ret_poller)
{
    own_thread *own = trpi_world_is_driven(world) ? NULL : trpi_alloc(sizeof *own);
    trpi_poller *poller = NULL;
    trp_err err;

    if (own == NULL) {
        return trpi_world_is_driven(world) ? TRP_EUNSUPPORTED : TRP_ENOMEM;
    }
    err = poller_make(NULL, world, &poller);
    if (err != TRP_OK) {
        trpi_free(own);
        return err;
    }
    (void)snprintf(own->name, sizeof own->name, "%s", name);
    poller->own = own;
    err = trpi_thread_start(&own->thread, own_main, poller);
    if (err != TRP_OK) {
        poller->own = NULL;
        trpi_free(own);
        trpi_poller_free(poller);
        return err;
    }
    *ret_poller = poller;
    return TRP_OK;
}

void
trpi_poller_free(trpi_poller *poller)
{
    if (poller == NULL) {
        return;
    }
    if (poller->own != NULL) {
        atomic_store_explicit(&poller->own->ends, true, memory_order_release);
        poller->net->set_wake(poller->set);
        (void)pthread_join(poller->own->thread, NULL);
    }
    for (uint32_t i = 0; i < poller->made; i++) {
        trpi_watch *watch = watch_at(poller, i);

        if ((atomic_load_explicit(&watch->state, memory_order_acquire) & USED) != 0) {
            watch_end(watch); /* all threads have ended: no other one has the claim */
        }
    }
    trpi_assert(atomic_load_explicit(&poller->watches, RELAXED) == 0);
    poller->net->set_free(poller->set);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        trpi_free(atomic_load_explicit(&poller->chunks[i], RELAXED));
    }
    trpi_mutex_destroy(&poller->lock);
    trpi_free(poller->own);
    trpi_free(poller);
}

uint32_t
trpi_poller_watches(const trpi_poller *poller)
{
    return atomic_load_explicit(&poller->watches, RELAXED);
}

/* ---- watches --------------------------------------------------------------------------------- */

/* The error of a set that refuses a socket. */
static trp_err
add_error(int error)
{
    return error == -ENOMEM ? TRP_ENOMEM : error == -ENOSPC ? TRP_ELIMIT : TRP_EIO;
}

trp_err
trpi_watch_new(trpi_poller *poller, int socket, const trpi_watch_events *events, void *user,
               trpi_watch **ret_watch)
{
    trpi_watch *watch = NULL;
    uint64_t generation;
    trp_err err;
    int error;

    pthread_mutex_lock(&poller->lock);
    err = entry_take(poller, &watch);
    pthread_mutex_unlock(&poller->lock);
    if (err != TRP_OK) {
        return err;
    }
    watch->call.fn = watch_run;
    watch->call.task.number = TRPI_CALL_ANYWHERE;
    watch->events = events;
    watch->user = user;
    watch->poller = poller;
    watch->socket = socket;
    generation = atomic_load_explicit(&watch->state, RELAXED);
    trpi_assert(generation % GENERATION == 0);
    *ret_watch = watch;
    atomic_store_explicit(&watch->state, generation | USED, memory_order_release); /* poller-W2 */
    if (atomic_fetch_add_explicit(&poller->watches, 1, SEQ_CST) == 0 && poller->own == NULL &&
        !trpi_sched_is_driven(poller->sched)) {
        trpi_sched_poll_began(poller->sched);
    }
    error = socket < 0 ? 0 : poller->net->set_add(poller->set, socket, generation | watch->index);
    if (error != 0) {
        atomic_store_explicit(&watch->state, generation + GENERATION, memory_order_release);
        entry_free(poller, watch);
        return add_error(error);
    }
    return TRP_OK; /* the watch may have ended meanwhile */
}

static void
watch_claim(trpi_watch *watch, uint64_t bits)
{
    uint64_t state = atomic_load_explicit(&watch->state, RELAXED);

    if (watch_mark(watch, (uint32_t)(state / GENERATION), bits)) {
        watch_submit(watch);
    }
}

void
trpi_watch_again(trpi_watch *watch, uint32_t events)
{
    trpi_assert((events & ~EVENTS) == 0);
    watch_claim(watch, events);
}

void
trpi_watch_remove(trpi_watch *watch)
{
    watch_claim(watch, REMOVED);
}
