/* journal.c - the journal that all nodes of a simulation share. See troupe/sim.h.
 *
 * Why.   Entities, singletons and what they remember are right only if they are over a store that
 *        answers late, in another order, not at all, or for a node that has died meanwhile.
 * Shape. submit -> flights, by the time of what happens next -> at the store: carried out by a
 *        journal in memory -> at the node: answered. The ground's timer moves them. A change whose
 *        maker is gone or has been told that its outcome is unknown goes on as a copy (a stray).
 *        journal_flight.c moves them, journal_stray.c makes the copies.
 * Must hold.
 *   sim-journal-J1  What is drawn comes from the stream of this journal, which moves no other one.
 *   sim-journal-J2  Flights of one node that name one id, or one scope, are carried out and
 *       answered in the order in which they were submitted; a stray keeps the place of what it is
 *       the copy of, until its node dies or closes the journal.
 *   sim-journal-J3  Behind the crash of a node none of its flights is left, but strays.
 *   sim-journal-J4  Refused: it was not given to the store, and never will be.
 * Cost.  A flight is put into its place from the front: linear in what is under way.
 * Tests. tests/sim/journal_test.c
 */
#include "cluster/sim/journal.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/sized.h"

#define WAIT_MS_DEFAULT 10000u /* of an operation that does not say how long it waits */

static const trp_sim_journal_faults phase_faults = { .size = sizeof phase_faults,
                                                     .latency_ms = 20,
                                                     .refused = 5,
                                                     .unknown = 5,
                                                     .lost = 1,
                                                     .away_ms = 3000 };

static bool
is_change(const trp_journal_op *op)
{
    return op->kind != TRP_JOURNAL_EVENTS && op->kind != TRP_JOURNAL_TAGGED &&
           op->kind != TRP_JOURNAL_SNAPSHOT_LOAD && op->kind != TRP_JOURNAL_IDS &&
           op->kind != TRP_JOURNAL_SCOPES;
}

/* ---- the driver of a node -------------------------------------------------------------------- */

static sim_fate
fate_draw(sim_journal *journal, bool is_a_change)
{
    if (is_a_change && sim_journal_draw(journal, journal->faults.refused)) {
        return FATE_REFUSED;
    }
    if (is_a_change && sim_journal_draw(journal, journal->faults.unknown)) {
        return FATE_UNKNOWN;
    }
    return sim_journal_draw(journal, journal->faults.lost) ? FATE_LOST : FATE_STORE;
}

static void
sim_journal_submit(void *arg, trp_journal_op *op)
{
    sim_journal_node *node = arg;
    sim_journal *journal = node->journal;
    uint64_t now_ns = sim_journal_now_ns(journal);
    uint64_t from_ns = node->away_until_ns > now_ns ? node->away_until_ns : now_ns;
    sim_flight *f;

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
    uint64_t wait_ns = (op->timeout_ms != 0 ? op->timeout_ms : WAIT_MS_DEFAULT) * SIM_JOURNAL_MS_NS;
    bool is_late = from_ns - now_ns > wait_ns;
    *f = (sim_flight){ .node = node, .op = op, .done = op->done, .is_change = is_change(op) };
    f->fate = is_late ? FATE_LATE : fate_draw(journal, f->is_change);
    f->next_ns = is_late ? now_ns + wait_ns
                         : from_ns + sim_journal_draw_ns(journal, journal->faults.latency_ms);
    f->answer_ns =
        f->next_ns + (is_late ? 0 : sim_journal_draw_ns(journal, journal->faults.latency_ms));
    sim_flight_begin(journal, f);
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
    if (node->is_crashed || node->away_until_ns > sim_journal_now_ns(journal)) {
        static const char why[] = "the connection was lost; it is made again by itself";

        health.state = node->is_crashed ? TRP_JOURNAL_CLOSED : TRP_JOURNAL_AWAY;
        memcpy(health.why, why, sizeof why);
    }
    for (const sim_flight *f = journal->first; f != NULL; f = f->next) {
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
    sim_flight *f;

    while ((f = sim_flight_of(journal, node)) != NULL) {
        if (f->is_carried) {
            sim_flight_answer(journal, f);
        } else {
            f->fate = f->fate == FATE_LOST ? FATE_STORE : f->fate;
            sim_flight_arrive(journal, f);
        }
    }
    sim_strays_release(journal, node);
    node->groups = node->events = node->refused = node->failed = 0;
}

void
sim_journal_crash(struct sim_whole *n)
{
    sim_journal *journal = n->sim->journal;

    if (journal != NULL) {
        sim_journal_node *node = &journal->nodes[n->number];
        sim_flight *f;

        node->is_crashed = true;
        sim_flights_cut(journal, node, sim_journal_now_ns(journal));
        while ((f = sim_flight_of(journal, node)) != NULL) {
            sim_flight_answer(journal, f);
        }
        sim_strays_release(journal, node);
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
        sim_flight *f = journal->first;

        trpi_assert(f->node == NULL);
        journal->first = f->next;
        trpi_free(f);
    }
    trp_journal_memory_free(journal->store);
    trpi_free(journal);
    sim->journal = NULL;
}
