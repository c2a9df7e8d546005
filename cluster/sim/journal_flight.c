/* journal_flight.c - operations of the simulated journal on their way to the store and back.
 *
 * Must hold. The invariants of journal.c.
 * Cost.  A flight is put into its place from the front: linear in what is under way.
 * Tests. tests/sim/journal_test.c
 */
#include "cluster/sim/journal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define STRAY_MS_MAX 3000u /* how much later than its answer a change may arrive */

uint64_t
sim_journal_now_ns(const sim_journal *journal)
{
    return trpi_world_mono_ns(trpi_virtual_world(journal->sim->virt));
}

/* ---- chance ---------------------------------------------------------------------------------- */

uint64_t
sim_journal_draw_ns(sim_journal *journal, uint32_t ms)
{
    uint64_t most = (ms != 0 ? ms : 1) * SIM_JOURNAL_MS_NS;

    return 1 + trpi_hash_u64(journal->random++) % most;
}

bool
sim_journal_draw(sim_journal *journal, uint32_t of_1000)
{
    return of_1000 != 0 && trpi_hash_u64(journal->random++) % 1000 < of_1000;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void
flight_put(sim_journal *journal, sim_flight *f)
{
    sim_flight **at = &journal->first;

    while (*at != NULL && ((*at)->next_ns < f->next_ns ||
                           ((*at)->next_ns == f->next_ns && (*at)->serial < f->serial))) {
        at = &(*at)->next;
    }
    f->next = *at;
    *at = f;
}

static void
flight_take(sim_journal *journal, sim_flight *f)
{
    sim_flight **at = &journal->first;

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

/* Must f wait for other (sim-journal-J2)? */
static bool
is_behind(const sim_journal *journal, const sim_flight *f, const sim_flight *other)
{
    return f->origin != NULL && other->origin == f->origin && other->serial < f->serial &&
           journal->broken != SIM_JOURNAL_BREAK_ORDER &&
           (other->node != NULL || journal->broken != SIM_JOURNAL_BREAK_LATE) &&
           (is_same(other->op->id, f->op->id) || is_same(other->op->scope, f->op->scope));
}

/* Put it behind those that it must not overtake. */
static void
flight_queue(sim_journal *journal, sim_flight *f)
{
    for (const sim_flight *other = journal->first; other != NULL; other = other->next) {
        if (!is_behind(journal, f, other)) {
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
    flight_put(journal, f);
}

void
sim_flight_begin(sim_journal *journal, sim_flight *f)
{
    f->serial = ++journal->serial;
    f->origin = f->node;
    flight_queue(journal, f);
}

/* The next flight behind serial that has not been at the store, of those that a node has begun. */
static sim_flight *
flight_behind(const sim_journal *journal, const sim_journal_node *origin, uint64_t serial)
{
    sim_flight *found = NULL;

    for (sim_flight *f = journal->first; f != NULL; f = f->next) {
        if (f->origin == origin && !f->is_carried && f->serial > serial &&
            (found == NULL || f->serial < found->serial)) {
            found = f;
        }
    }
    return found;
}

sim_flight *
sim_flight_of(const sim_journal *journal, const sim_journal_node *node)
{
    sim_flight *found = NULL;

    for (sim_flight *f = journal->first; f != NULL; f = f->next) {
        if (f->node == node && (found == NULL || f->serial < found->serial)) {
            found = f;
        }
    }
    return found;
}

/* Let the change of a flight go on without its maker: it may get to the store at next_ns. Flights
 * that its node has begun behind it wait for it, unless the node is dead. */
static void
stray_begin(sim_journal *journal, const sim_flight *f, uint64_t next_ns)
{
    sim_flight *stray = sim_stray_new(f->op);
    sim_flight *behind = stray;

    if (stray == NULL) {
        return; /* so it has been lost on its way */
    }
    stray->serial = f->serial;
    stray->next_ns = next_ns;
    stray->origin = f->node->is_crashed ? NULL : f->node;
    flight_queue(journal, stray);
    while (stray->origin != NULL &&
           (behind = flight_behind(journal, stray->origin, behind->serial)) != NULL) {
        flight_take(journal, behind);
        flight_queue(journal, behind);
    }
}

void
sim_strays_release(sim_journal *journal, const sim_journal_node *node)
{
    for (sim_flight *f = journal->first; f != NULL; f = f->next) {
        f->origin = f->node == NULL && f->origin == node ? NULL : f->origin;
    }
}

/* ---- the store and the answer ---------------------------------------------------------------- */

static void
store_done(trp_journal_op *op)
{
    ((sim_flight *)op->driver[1])->is_carried = true;
}

/* Give an operation to the store, which answers at once. */
static void
flight_store(sim_journal *journal, sim_flight *f)
{
    const trp_journal_driver *store = trp_journal_memory_driver(journal->store);

    f->op->driver[1] = f;
    f->op->done = store_done;
    store->submit(store->arg, f->op);
    f->op->done = f->done;
    trpi_assert(f->is_carried);
}

static void
answer_count(sim_journal_node *node, const sim_flight *f)
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
flight_done(sim_journal *journal, sim_flight *f)
{
    trp_journal_op *op = f->op;

    flight_take(journal, f);
    answer_count(f->node, f);
    trpi_free(f);
    op->done(op);
}

static void
flight_end(sim_journal *journal, sim_flight *f, trp_journal_outcome outcome, trp_err err,
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
flight_cut(sim_journal *journal, sim_flight *f, uint64_t now_ns)
{
    uint64_t next_ns = f->next_ns;
    bool goes_on = f->is_change && !f->is_carried && f->fate != FATE_REFUSED;

    flight_take(journal, f);
    f->fate = FATE_CUT;
    f->is_carried = true;
    f->next_ns = f->answer_ns = now_ns;
    flight_put(journal, f);
    if (goes_on && sim_journal_draw(journal, 500)) {
        stray_begin(journal, f, next_ns + sim_journal_draw_ns(journal, STRAY_MS_MAX));
    }
}

void
sim_flights_cut(sim_journal *journal, const sim_journal_node *node, uint64_t now_ns)
{
    sim_flight *f;

    do {
        f = journal->first;
        while (f != NULL && (f->node != node || f->fate == FATE_LATE || f->fate == FATE_CUT)) {
            f = f->next;
        }
        if (f != NULL) {
            flight_cut(journal, f, now_ns);
        }
    } while (f != NULL);
}

void
sim_flight_arrive(sim_journal *journal, sim_flight *f)
{
    if (f->node == NULL) {
        flight_take(journal, f);
        flight_store(journal, f);
        trpi_free(f); /* the first member of the stray */
        return;
    }
    if (f->fate == FATE_LOST) {
        f->node->away_until_ns = f->next_ns + sim_journal_draw_ns(journal, journal->faults.away_ms);
        sim_flights_cut(journal, f->node, f->next_ns);
        return;
    }
    flight_take(journal, f);
    if (f->fate == FATE_STORE || (f->fate == FATE_UNKNOWN && sim_journal_draw(journal, 500))) {
        flight_store(journal, f);
    } else if (f->fate == FATE_UNKNOWN && sim_journal_draw(journal, 500)) {
        stray_begin(journal, f, f->answer_ns + sim_journal_draw_ns(journal, STRAY_MS_MAX));
    }
    f->is_carried = true;
    f->next_ns = f->answer_ns;
    flight_put(journal, f);
}

void
sim_flight_answer(sim_journal *journal, sim_flight *f)
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
    uint64_t now_ns = trpi_world_mono_ns(world);
    uint32_t host = world->host;

    while (journal != NULL && journal->first != NULL && journal->first->next_ns <= now_ns) {
        sim_flight *f = journal->first;
        const struct sim_whole *n = f->node != NULL ? &sim->nodes[f->node->number] : NULL;

        if (f->is_carried && n != NULL && n->still_until_ns > now_ns) { /* it hears nothing now */
            flight_take(journal, f);
            f->next_ns = f->answer_ns = n->still_until_ns;
            flight_put(journal, f);
            continue;
        }
        world->host = n != NULL ? n->number : host;
        if (f->is_carried) {
            sim_flight_answer(journal, f);
        } else {
            sim_flight_arrive(journal, f);
        }
        world->host = host;
    }
}
