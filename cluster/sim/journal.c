/* journal.c - the journal that all nodes of a simulation share. See troupe/sim.h.
 *
 * Why.   Entities, singletons and what they remember are right only if they are over a store that
 *        answers late, in another order, not at all, or for a node that has died meanwhile.
 * Shape. submit -> flights, by the time of what happens next -> at the store: carried out by a
 *        journal in memory -> at the node: answered. The ground's timer moves them. A change whose
 *        maker is gone or has been told that its outcome is unknown goes on as a copy (a stray).
 * Must hold.
 *   sim-journal-J1  What is drawn comes from the stream of this journal, which moves no other one.
 *   sim-journal-J2  Flights of one node that name one id, or one scope, are carried out and
 *       answered in the order in which they were submitted.
 *   sim-journal-J3  Behind the crash of a node none of its flights is left, but strays.
 *   sim-journal-J4  Refused: it was not given to the store, and never will be.
 * Cost.  A flight is put into its place from the front: linear in what is under way.
 * Tests. tests/sim/journal_test.c
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/sized.h"
#include "cluster/sim/complete.h"

#define MILLISECOND_NS 1000000u
#define WAIT_MS_DEFAULT 10000u /* of an operation that does not say how long it waits */
#define STRAY_MS_MAX 3000u     /* how much later than its answer a change may arrive */

static const trp_sim_journal_faults phase_faults = { .size = sizeof phase_faults,
                                                     .latency_ms = 20,
                                                     .refused = 5,
                                                     .unknown = 5,
                                                     .lost = 1,
                                                     .away_ms = 3000 };

/* The end of a flight, besides what the store says. */
typedef enum fate {
    FATE_STORE,   /* carried out, and answered with what the store says */
    FATE_REFUSED, /* no room */
    FATE_LATE,    /* refused: it has waited for too long for a connection */
    FATE_UNKNOWN, /* carried out or not: the node is told that no answer came */
    FATE_LOST,    /* the connection is lost when it gets to the store */
    FATE_CUT,     /* it was under way then: its answer never comes */
} fate;

typedef struct flight {
    struct flight *next;
    sim_journal_node *node; /* NULL: of a stray */
    trp_journal_op *op;
    trp_journal_done_fn done; /* of its maker */
    uint64_t serial;
    uint64_t next_ns; /* when it is carried out, or else answered */
    uint64_t answer_ns;
    fate fate;
    bool is_carried;
    bool is_change;
} flight;

struct sim_journal_node {
    trp_journal_driver driver;
    sim_journal *journal;
    uint32_t number;
    bool is_crashed;
    uint64_t away_until_ns;
    uint64_t groups, events, refused, failed; /* since it was opened */
};

struct sim_journal {
    trp_sim *sim;
    trp_journal_memory *store;
    flight *first;
    uint64_t random;
    uint64_t serial;
    trp_sim_journal_faults faults;
    trp_sim_journal_faults given; /* the program's own */
    bool is_given;
    sim_journal_break broken;
    sim_journal_node nodes[TRP_SIM_NODES_MAX];
};

static bool
is_change(const trp_journal_op *op)
{
    return op->kind != TRP_JOURNAL_EVENTS && op->kind != TRP_JOURNAL_TAGGED &&
           op->kind != TRP_JOURNAL_SNAPSHOT_LOAD && op->kind != TRP_JOURNAL_IDS &&
           op->kind != TRP_JOURNAL_SCOPES;
}

static uint64_t
sim_now_ns(const trp_sim *sim)
{
    return trpi_world_mono_ns(trpi_virtual_world(sim->virt));
}

/* ---- chance ---------------------------------------------------------------------------------- */

/* A time of 1 ns up to so many milliseconds. */
static uint64_t
draw_ns(sim_journal *journal, uint32_t ms)
{
    uint64_t most = (ms != 0 ? ms : 1) * (uint64_t)MILLISECOND_NS;

    return 1 + trpi_hash_u64(journal->random++) % most;
}

static bool
draw_chance(sim_journal *journal, uint32_t of_1000)
{
    return of_1000 != 0 && trpi_hash_u64(journal->random++) % 1000 < of_1000;
}

/* ---- flights --------------------------------------------------------------------------------- */

static void
flight_put(sim_journal *journal, flight *f)
{
    flight **at = &journal->first;

    while (*at != NULL && ((*at)->next_ns < f->next_ns ||
                           ((*at)->next_ns == f->next_ns && (*at)->serial < f->serial))) {
        at = &(*at)->next;
    }
    f->next = *at;
    *at = f;
}

static void
flight_take(sim_journal *journal, flight *f)
{
    flight **at = &journal->first;

    while (*at != f) {
        trpi_assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = f->next;
}

static bool
is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Let it be carried out and answered behind those that it must not overtake (sim-journal-J2). */
static void
flight_queue(sim_journal *journal, flight *f)
{
    for (const flight *other = journal->first; other != NULL; other = other->next) {
        if (other->node != f->node || journal->broken == SIM_JOURNAL_BREAK_ORDER ||
            (!is_same(other->op->id, f->op->id) && !is_same(other->op->scope, f->op->scope))) {
            continue;
        }
        if (!other->is_carried && other->next_ns > f->next_ns) {
            f->next_ns = other->next_ns;
        }
        if (other->answer_ns > f->answer_ns) {
            f->answer_ns = other->answer_ns;
        }
    }
    f->answer_ns = f->answer_ns > f->next_ns ? f->answer_ns : f->next_ns;
}

/* ---- strays ---------------------------------------------------------------------------------- */

/* A change in one block, with all that it leads to. */
typedef struct stray {
    flight flight;
    trp_journal_op op;
    char *at; /* in what follows the struct */
} stray;

static size_t
text_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Bytes in the block, in steps that suit pointers. */
static size_t
bytes_pad(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static void *
stray_keep(stray *s, const void *from, size_t bytes)
{
    void *to = s->at;

    if (from == NULL) {
        return NULL;
    }
    if (bytes != 0) {
        memcpy(to, from, bytes);
    }
    s->at += bytes_pad(bytes);
    return to;
}

static size_t
stray_bytes(const trp_journal_op *op)
{
    size_t bytes = bytes_pad(sizeof(stray)) + bytes_pad(text_bytes(op->id)) +
                   bytes_pad(text_bytes(op->scope)) + bytes_pad(text_bytes(op->writer)) +
                   bytes_pad(op->events_count * sizeof *op->events);

    for (uint32_t i = 0; i < op->events_count; i++) {
        const trp_journal_event *event = &op->events[i];

        bytes += bytes_pad(event->bytes) + bytes_pad(text_bytes(event->type)) +
                 bytes_pad(event->tags_count * sizeof *event->tags);
        for (uint32_t k = 0; k < event->tags_count; k++) {
            bytes += bytes_pad(text_bytes(event->tags[k]));
        }
    }
    return bytes;
}

static void
stray_keep_event(stray *s, trp_journal_event *event)
{
    const char **tags = stray_keep(s, event->tags, event->tags_count * sizeof *tags);

    event->type = stray_keep(s, event->type, text_bytes(event->type));
    event->data = stray_keep(s, event->data, event->bytes);
    for (uint32_t k = 0; k < event->tags_count; k++) {
        tags[k] = stray_keep(s, tags[k], text_bytes(tags[k]));
    }
    event->tags = tags;
}

static void
stray_done(trp_journal_op *op)
{
    (void)op; /* nobody waits for it */
}

/* Let a change go on without its maker: it may get to the store at next_ns. */
static void
stray_begin(sim_journal *journal, const trp_journal_op *op, uint64_t next_ns)
{
    stray *s = trpi_alloc(stray_bytes(op));

    if (s == NULL) {
        return; /* so it has been lost on its way */
    }
    s->at = (char *)s + bytes_pad(sizeof *s);
    s->op = *op;
    s->op.id = stray_keep(s, op->id, text_bytes(op->id));
    s->op.scope = stray_keep(s, op->scope, text_bytes(op->scope));
    s->op.writer = stray_keep(s, op->writer, text_bytes(op->writer));
    trp_journal_event *events = stray_keep(s, op->events, op->events_count * sizeof *op->events);
    for (uint32_t i = 0; i < op->events_count; i++) {
        stray_keep_event(s, &events[i]);
    }
    s->op.events = events;
    s->op.done = stray_done;
    s->flight = (flight){ .op = &s->op,
                          .done = stray_done,
                          .serial = ++journal->serial,
                          .next_ns = next_ns,
                          .is_change = true };
    flight_put(journal, &s->flight);
}

/* ---- the store and the answer ---------------------------------------------------------------- */

static void
store_done(trp_journal_op *op)
{
    ((flight *)op->driver[1])->is_carried = true;
}

/* Give an operation to the store, which answers at once. */
static void
flight_store(sim_journal *journal, flight *f)
{
    const trp_journal_driver *store = trp_journal_memory_driver(journal->store);

    f->op->driver[1] = f;
    f->op->done = store_done;
    store->submit(store->arg, f->op);
    f->op->done = f->done;
    trpi_assert(f->is_carried);
}

static void
answer_count(sim_journal_node *node, const flight *f)
{
    const trp_journal_op *op = f->op;

    node->refused += op->outcome == TRP_JOURNAL_REFUSED;
    node->failed += op->outcome == TRP_JOURNAL_FAILED;
    if (op->outcome == TRP_JOURNAL_DONE && op->kind == TRP_JOURNAL_APPEND) {
        node->groups++;
        node->events += op->events_count;
    }
}

/* Answer what the store has carried out, as it says. */
static void
flight_done(sim_journal *journal, flight *f)
{
    trp_journal_op *op = f->op;

    flight_take(journal, f);
    answer_count(f->node, f);
    trpi_free(f);
    op->done(op);
}

static void
flight_end(sim_journal *journal, flight *f, trp_journal_outcome outcome, trp_err err,
           const char *why)
{
    trp_journal_op *op = f->op;

    flight_take(journal, f);
    f->node->refused += outcome == TRP_JOURNAL_REFUSED;
    f->node->failed += outcome == TRP_JOURNAL_FAILED;
    trpi_free(f);
    trp_journal_op_finish(op, outcome, err, "the simulated journal: %s", why);
}

/* Its answer never comes. A change that is still on its way is lost, or gets there later. */
static void
flight_cut(sim_journal *journal, flight *f, uint64_t now_ns)
{
    if (f->is_change && !f->is_carried && f->fate != FATE_REFUSED && draw_chance(journal, 500)) {
        stray_begin(journal, f->op, f->next_ns + draw_ns(journal, STRAY_MS_MAX));
    }
    f->fate = FATE_CUT;
    f->is_carried = true;
    f->next_ns = f->answer_ns = now_ns;
}

/* Cut what a node has under way, but what is not sent. */
static void
flights_cut(sim_journal *journal, const sim_journal_node *node, uint64_t now_ns)
{
    flight *all = journal->first;
    flight *next;

    journal->first = NULL;
    for (flight *f = all; f != NULL; f = next) {
        next = f->next;
        if (f->node == node && f->fate != FATE_LATE) {
            flight_cut(journal, f, now_ns);
        }
        flight_put(journal, f);
    }
}

/* The first flight of a node in the order of submission. */
static flight *
flight_of(const sim_journal *journal, const sim_journal_node *node)
{
    flight *found = NULL;

    for (flight *f = journal->first; f != NULL; f = f->next) {
        if (f->node == node && (found == NULL || f->serial < found->serial)) {
            found = f;
        }
    }
    return found;
}

/* A flight is at the store. */
static void
flight_arrive(sim_journal *journal, flight *f)
{
    if (f->node == NULL) {
        flight_take(journal, f);
        flight_store(journal, f);
        trpi_free(f); /* the first member of the stray */
        return;
    }
    if (f->fate == FATE_LOST) {
        f->node->away_until_ns = f->next_ns + draw_ns(journal, journal->faults.away_ms);
        flights_cut(journal, f->node, f->next_ns);
        return;
    }
    flight_take(journal, f);
    if (f->fate == FATE_STORE || (f->fate == FATE_UNKNOWN && draw_chance(journal, 500))) {
        flight_store(journal, f);
    } else if (f->fate == FATE_UNKNOWN && draw_chance(journal, 500)) {
        stray_begin(journal, f->op, f->answer_ns + draw_ns(journal, STRAY_MS_MAX));
    }
    f->is_carried = true;
    f->next_ns = f->answer_ns;
    flight_put(journal, f);
}

static void
flight_answer(sim_journal *journal, flight *f)
{
    switch (f->fate) {
    case FATE_REFUSED:
        flight_end(journal, f, TRP_JOURNAL_REFUSED, TRP_EAGAIN, "it has no room");
        break;
    case FATE_LATE:
        flight_end(journal, f, TRP_JOURNAL_REFUSED, TRP_ETIMEDOUT,
                   "it waited for a connection until its deadline, and was not sent");
        break;
    case FATE_UNKNOWN:
        if (journal->broken == SIM_JOURNAL_BREAK_OUTCOME && f->op->kind == TRP_JOURNAL_APPEND) {
            flight_end(journal, f, TRP_JOURNAL_DONE, TRP_OK, "a lie");
        } else {
            flight_end(journal, f, TRP_JOURNAL_FAILED, TRP_ETIMEDOUT, "no answer came in time");
        }
        break;
    case FATE_CUT:
        flight_end(journal, f, TRP_JOURNAL_FAILED, TRP_ECONN,
                   "the connection was lost before its answer came");
        break;
    case FATE_STORE:
    case FATE_LOST:
    default:
        flight_done(journal, f);
        break;
    }
}

void
sim_journal_advance(trp_sim *sim)
{
    sim_journal *journal = sim->journal;
    trpi_world *world = trpi_virtual_world(sim->virt);
    uint64_t now_ns = sim_now_ns(sim);
    uint32_t host = world->host;

    while (journal != NULL && journal->first != NULL && journal->first->next_ns <= now_ns) {
        flight *f = journal->first;
        const struct sim_whole *n = f->node != NULL ? &sim->nodes[f->node->number] : NULL;

        if (f->is_carried && n != NULL && n->still_until_ns > now_ns) { /* it hears nothing now */
            flight_take(journal, f);
            f->next_ns = f->answer_ns = n->still_until_ns;
            flight_put(journal, f);
            continue;
        }
        world->host = n != NULL ? n->number : host;
        if (f->is_carried) {
            flight_answer(journal, f);
        } else {
            flight_arrive(journal, f);
        }
        world->host = host;
    }
}

/* ---- the driver of a node -------------------------------------------------------------------- */

static fate
fate_draw(sim_journal *journal, bool is_a_change)
{
    if (is_a_change && draw_chance(journal, journal->faults.refused)) {
        return FATE_REFUSED;
    }
    if (is_a_change && draw_chance(journal, journal->faults.unknown)) {
        return FATE_UNKNOWN;
    }
    return draw_chance(journal, journal->faults.lost) ? FATE_LOST : FATE_STORE;
}

static void
sim_journal_submit(void *arg, trp_journal_op *op)
{
    sim_journal_node *node = arg;
    sim_journal *journal = node->journal;
    uint64_t now_ns = sim_now_ns(journal->sim);
    uint64_t from_ns = node->away_until_ns > now_ns ? node->away_until_ns : now_ns;
    flight *f;

    if (trp_journal_op_check(op) != TRP_OK) {
        node->refused++;
        return;
    }
    if (node->is_crashed) { /* sim-journal-J3 */
        node->failed++;
        trp_journal_op_finish(op, TRP_JOURNAL_FAILED, TRP_ECLOSED, "this node has been killed");
        return;
    }
    f = trpi_alloc(sizeof *f);
    if (f == NULL) {
        node->refused++;
        trp_journal_op_finish(op, TRP_JOURNAL_REFUSED, TRP_ENOMEM, "out of memory");
        return;
    }
    uint64_t wait_ns =
        (op->timeout_ms != 0 ? op->timeout_ms : WAIT_MS_DEFAULT) * (uint64_t)MILLISECOND_NS;
    bool is_late = from_ns - now_ns > wait_ns;
    *f = (flight){ .node = node,
                   .op = op,
                   .done = op->done,
                   .serial = ++journal->serial,
                   .is_change = is_change(op) };
    f->fate = is_late ? FATE_LATE : fate_draw(journal, f->is_change);
    f->next_ns =
        is_late ? now_ns + wait_ns : from_ns + draw_ns(journal, journal->faults.latency_ms);
    f->answer_ns = f->next_ns + (is_late ? 0 : draw_ns(journal, journal->faults.latency_ms));
    flight_queue(journal, f);
    flight_put(journal, f);
}

static void
sim_journal_health(void *arg, trp_journal_health *ret_health)
{
    const sim_journal_node *node = arg;
    const sim_journal *journal = node->journal;
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_journal_health store = TRP_JOURNAL_HEALTH_INIT;
    const trp_journal_driver *driver = trp_journal_memory_driver(journal->store);

    driver->health(driver->arg, &store);
    if (node->is_crashed || node->away_until_ns > sim_now_ns(journal->sim)) {
        static const char why[] = "the connection was lost; it is made again by itself";

        health.state = node->is_crashed ? TRP_JOURNAL_CLOSED : TRP_JOURNAL_AWAY;
        memcpy(health.why, why, sizeof why);
    }
    for (const flight *f = journal->first; f != NULL; f = f->next) {
        health.waiting += f->node == node;
    }
    health.groups = health.commits = node->groups;
    health.events = node->events;
    health.refused = node->refused;
    health.failed = node->failed;
    health.bytes = store.bytes;
    (void)TRPI_SIZED_FILL(ret_health, &health, why);
}

/* Carry out and answer all that the node has begun. */
static void
sim_journal_close(void *arg)
{
    sim_journal_node *node = arg;
    sim_journal *journal = node->journal;
    flight *f;

    while ((f = flight_of(journal, node)) != NULL) {
        if (f->is_carried) {
            flight_answer(journal, f);
        } else {
            f->fate = f->fate == FATE_LOST ? FATE_STORE : f->fate;
            flight_arrive(journal, f);
        }
    }
    node->groups = node->events = node->refused = node->failed = 0;
}

void
sim_journal_crash(struct sim_whole *n)
{
    sim_journal *journal = n->sim->journal;

    if (journal != NULL) {
        sim_journal_node *node = &journal->nodes[n->number];
        flight *f;

        node->is_crashed = true;
        flights_cut(journal, node, sim_now_ns(n->sim));
        while ((f = flight_of(journal, node)) != NULL) {
            flight_answer(journal, f);
        }
    }
}

void
sim_journal_restart(struct sim_whole *n)
{
    if (n->sim->journal != NULL) {
        n->sim->journal->nodes[n->number].is_crashed = false;
        n->sim->journal->nodes[n->number].away_until_ns = 0;
    }
}

/* ---- the journal of a run -------------------------------------------------------------------- */

static sim_journal *
journal_of(trp_sim *sim)
{
    sim_journal *journal = sim->journal;

    if (journal != NULL) {
        return journal;
    }
    journal = trpi_alloc(sizeof *journal);
    if (journal == NULL || trp_journal_memory_new(&journal->store) != TRP_OK) {
        trpi_free(journal);
        return NULL;
    }
    journal->sim = sim;
    journal->random = trpi_hash_u64(sim->result.seed) + 5; /* sim-journal-J1 */
    journal->given.latency_ms = journal->faults.latency_ms = 2;
    for (uint32_t i = 0; i < TRP_SIM_NODES_MAX; i++) {
        sim_journal_node *node = &journal->nodes[i];

        node->journal = journal;
        node->number = i;
        node->driver = (trp_journal_driver){
            sizeof node->driver, "simulated",      node, 1, 0, sim_journal_submit,
            sim_journal_health,  sim_journal_close
        };
    }
    sim->journal = journal;
    return journal;
}

const trp_journal_driver *
trp_sim_journal(trp_sim *sim, uint32_t node)
{
    sim_journal *journal = node < sim->nodes_count ? journal_of(sim) : NULL;

    return journal != NULL ? &journal->nodes[node].driver : NULL;
}

trp_err
trp_sim_journal_fail(trp_sim *sim, const trp_sim_journal_faults *faults)
{
    trp_sim_journal_faults given = TRP_SIM_JOURNAL_FAULTS_INIT;
    sim_journal *journal;

    if (!TRPI_SIZED_COPY(faults, &given, away_ms) || given.refused > 1000 || given.unknown > 1000 ||
        given.lost > 1000) {
        return TRP_EINVAL;
    }
    journal = journal_of(sim);
    if (journal == NULL) {
        return TRP_ENOMEM;
    }
    given.latency_ms = given.latency_ms != 0 ? given.latency_ms : 2;
    given.away_ms = given.away_ms != 0 ? given.away_ms : phase_faults.away_ms;
    journal->faults = journal->given = given;
    journal->is_given = true;
    return TRP_OK;
}

trp_err
trp_sim_journal_call(trp_sim *sim, trp_journal_op *op)
{
    sim_journal *journal = journal_of(sim);

    return journal != NULL ? trp_journal_call(trp_journal_memory_driver(journal->store), op)
                           : TRP_ENOMEM;
}

void
sim_journal_phase(trp_sim *sim, bool on)
{
    if (sim->journal != NULL) {
        sim->journal->faults = on && !sim->journal->is_given ? phase_faults : sim->journal->given;
    }
}

trp_err
sim_journal_break_set(trp_sim *sim, sim_journal_break how)
{
    sim_journal *journal = journal_of(sim);

    if (journal == NULL) {
        return TRP_ENOMEM;
    }
    journal->broken = how;
    return TRP_OK;
}

void
sim_journal_end(trp_sim *sim)
{
    sim_journal *journal = sim->journal;

    if (journal == NULL) {
        return;
    }
    while (journal->first != NULL) { /* strays: nodes have ended */
        flight *f = journal->first;

        trpi_assert(f->node == NULL);
        journal->first = f->next;
        trpi_free(f);
    }
    trp_journal_memory_free(journal->store);
    trpi_free(journal);
    sim->journal = NULL;
}
