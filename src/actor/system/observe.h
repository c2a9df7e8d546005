/* observe.h - private to the room: see actor/life/observed.h. */
#ifndef TRPI_ACTOR_SYSTEM_OBSERVE_H
#define TRPI_ACTOR_SYSTEM_OBSERVE_H

#include "actor/kernel/dispatcher.h"
#include "actor/kernel/run.h"
#include "actor/life/observed.h"

#define TRPI_PROBES 256u /* marks in mailboxes at one time */
#define TRPI_PROBES_OVERLOADED                                                                     \
    192u /* of a walk: for actors with a long mailbox; the rest for others */

#define TRPI_OBSERVE_CACHE 64u /* behaviours whose entries are known without a search */

/* A mark in a mailbox. FREE, DONE: the timer's; PENDING: the mark's. */
enum { TRPI_PROBE_FREE, TRPI_PROBE_PENDING, TRPI_PROBE_DONE };
typedef struct trpi_probe {
    _Atomic uint32_t state;    /* release / acquire: the fields below */
    _Atomic uint32_t sequence; /* relaxed; another one with each use */
    _Atomic uint64_t run_ns;   /* relaxed: a sample may come late */
    trp_ref ref;
    const trp_behaviour *behaviour;
    uint8_t dispatcher;
    bool suspended;
    uint64_t placed_ns, handled; /* handled: then */
    uint64_t wait_ns, depth;     /* written by the mark */
    bool shown;                  /* DONE: its figures were published, so it may be used again */
} trpi_probe;

typedef struct trpi_observe_worker { /* as it was seen at the last tick */
    uint64_t run, since_ns;
    trp_ref self;   /* none: it runs no actor */
    uint64_t at_ns; /* of that tick */
    uint8_t dispatcher;
} trpi_observe_worker;

enum trpi_observe_phase { TRPI_OBSERVE_RESTING, TRPI_OBSERVE_WALKING, TRPI_OBSERVE_SETTLING };

typedef struct trpi_observe {
    trp_system *system;
    _Atomic uint64_t looked_ns; /* relaxed */
    _Atomic bool armed;         /* seq_cst: a look after the last tick starts it again */
    pthread_mutex_t lock;       /* a leaf: published */
    trpi_observed published;
    uint64_t published_ns; /* when its walk began */
    struct {               /* relaxed: statistics; any thread */
        _Atomic uint64_t sum_ns, buckets[TRPI_OBSERVED_BOUNDS + 1];
    } wait, run;
    trpi_probe probes[TRPI_PROBES];
    /* the timer's */
    enum trpi_observe_phase phase;
    uint64_t walk_ns, slice_ns_max;
    uint32_t first, left, all, overloaded_left, others_left; /* slots, probes */
    trpi_observed next;
    /* entries of next, of this walk; a behaviour's place follows from its address */
    struct {
        const trp_behaviour *behaviour;
        trpi_observed_name *entry;
    } by_behaviour[TRPI_OBSERVE_CACHE];
    trpi_observed_name *by_dispatcher[TRP_DISPATCHERS_MAX];
    struct {
        uint64_t samples, busy;
    } dispatchers[TRP_DISPATCHERS_MAX];
    trpi_observe_worker workers[TRPI_POOL_MAX + TRPI_PRIVATE_MAX];
} trpi_observe;

void trpi_observe_free(trp_system *system); /* every thread has ended, and no mark is left */

/* observe_walk.c; the timer's thread. true: it has ended. */
void trpi_observe_walk_begin(trpi_observe *observe, uint64_t now);
bool trpi_observe_walk(trpi_observe *observe);
/* observe_rows.c: sample the workers; list the actors that want attention. */
void trpi_observe_workers(trpi_observe *observe, uint64_t now);
void trpi_observe_rows(trpi_observe *observe, uint64_t now);

#endif
