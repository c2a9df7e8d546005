/* journal_test.c - the journal of simulated nodes: it keeps every law of journals, and under faults
 * what was acknowledged is there once, what was refused is not, and a writer that has been fenced
 * writes nothing (A4J-28).
 *
 * TROUPE_SIM_SEEDS=200 sets the number of seeds of the random ones. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/journal_kit.h>
#include <troupe/troupe.h>

#include "cluster/sim/complete.h"
#include "tests/unit/unit.h"

/* ---- the laws --------------------------------------------------------------------------------
 *
 * The kit blocks, so it has a thread of its own; what it submits is handed to the thread of the
 * simulation. */

typedef struct relay {
    trp_journal_driver driver;
    trp_sim *sim;
    const trp_journal_driver *inner;
    pthread_mutex_t turn;  /* of the simulation */
    pthread_mutex_t queue; /* of what follows */
    trp_journal_op *first, **last;
    int is_over;
    uint32_t law;
    sim_journal_break broken;
    trp_err err;
    char why[TRP_JOURNAL_KIT_WHY_BYTES];
} relay;

static void
relay_submit(void *arg, trp_journal_op *op)
{
    relay *r = arg;
    if (op->size < sizeof *op || op->done == NULL) {
        r->inner->submit(r->inner->arg, op); /* it cannot be answered */
        return;
    }
    pthread_mutex_lock(&r->queue);
    op->driver[2] = NULL;
    *r->last = op;
    r->last = (trp_journal_op **)&op->driver[2];
    pthread_mutex_unlock(&r->queue);
}

static trp_journal_op *
relay_take(relay *r)
{
    pthread_mutex_lock(&r->queue);
    trp_journal_op *op = r->first;
    if (op != NULL) {
        r->first = op->driver[2];
        r->last = r->first == NULL ? &r->first : r->last;
    }
    pthread_mutex_unlock(&r->queue);
    return op;
}

static void
relay_health(void *arg, trp_journal_health *ret_health)
{
    relay *r = arg;
    pthread_mutex_lock(&r->turn);
    r->inner->health(r->inner->arg, ret_health);
    pthread_mutex_unlock(&r->turn);
}

static void
relay_close(void *arg)
{
    relay *r = arg;
    pthread_mutex_lock(&r->turn);
    r->inner->close(r->inner->arg);
    pthread_mutex_unlock(&r->turn);
}

static trp_err
relay_open(void *arg, const trp_journal_driver **ret_driver)
{
    *ret_driver = &((relay *)arg)->driver;
    return TRP_OK;
}

static trp_err
relay_forget(void *arg)
{
    (void)arg; /* each law has a simulation of its own */
    return TRP_OK;
}

/* Changes have no answer: they are carried out, lost, or arrive up to 3 s later. */
static trp_err
relay_disturb(void *arg, int on)
{
    trp_sim_journal_faults faults = TRP_SIM_JOURNAL_FAULTS_INIT;
    relay *r = arg;
    faults.unknown = on ? 1000 : 0;
    pthread_mutex_lock(&r->turn);
    trp_err err = trp_sim_journal_fail(r->sim, &faults);
    pthread_mutex_unlock(&r->turn);
    return err;
}

static void *
law_thread(void *arg)
{
    relay *r = arg;
    trp_journal_kit kit = { sizeof kit, r, relay_open, relay_forget, relay_disturb };
    r->err = trp_journal_kit_run(&kit, r->law, r->why, sizeof r->why);
    pthread_mutex_lock(&r->queue);
    r->is_over = 1;
    pthread_mutex_unlock(&r->queue);
    return NULL;
}

static void
law_play(trp_sim *sim, void *arg)
{
    relay *r = arg;
    pthread_t thread;
    int is_over = 0;
    r->sim = sim;
    r->inner = trp_sim_journal(sim, 0);
    UNIT_REQUIRE(r->inner != NULL);
    UNIT_EQUAL(sim_journal_break_set(sim, r->broken), TRP_OK);
    r->driver = *r->inner;
    r->driver.arg = r;
    r->driver.submit = relay_submit;
    r->driver.health = relay_health;
    r->driver.close = relay_close;
    UNIT_REQUIRE(pthread_create(&thread, NULL, law_thread, r) == 0);
    while (!is_over) {
        trp_journal_op *op;
        pthread_mutex_lock(&r->turn);
        while ((op = relay_take(r)) != NULL) {
            r->inner->submit(r->inner->arg, op);
        }
        trp_sim_pass(sim, 1);
        pthread_mutex_unlock(&r->turn);
        sched_yield();
        pthread_mutex_lock(&r->queue);
        is_over = r->is_over;
        pthread_mutex_unlock(&r->queue);
    }
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
}

static trp_err
law_run(relay *r, uint32_t law, uint64_t seed, sim_journal_break broken)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    *r = (relay){ .law = law, .broken = broken };
    r->last = &r->first;
    options.nodes = 1;
    options.seed = seed;
    pthread_mutex_init(&r->turn, NULL);
    pthread_mutex_init(&r->queue, NULL);
    UNIT_EQUAL(trp_sim_run(law_play, r, &options, NULL), TRP_OK);
    pthread_mutex_destroy(&r->turn);
    pthread_mutex_destroy(&r->queue);
    return r->err;
}

/* A4J-28 */
static void
it_keeps_every_law(void)
{
    static relay r;
    for (uint32_t law = 0; law < trp_journal_kit_laws_count(); law++) {
        if (!UNIT_EQUAL(law_run(&r, law, law + 1, SIM_JOURNAL_BREAK_NONE), TRP_OK)) {
            printf("  %s: %s\n", trp_journal_kit_law(law), r.why);
        }
    }
}

static uint32_t
law_of(const char *name)
{
    uint32_t law = 0;
    while (strcmp(trp_journal_kit_law(law), name) != 0) {
        law++;
        UNIT_REQUIRE(law < trp_journal_kit_laws_count());
    }
    return law;
}

static void
one_that_breaks_the_order_of_an_id_is_found(void)
{
    static relay r;
    uint32_t law = law_of("operations of one id keep their order");
    UNIT_EQUAL(law_run(&r, law, 1, SIM_JOURNAL_BREAK_ORDER), TRP_EFAILED);
    printf("  found: %s\n", r.why);
}

/* The next append of its writer may get there first, and then nothing is to be seen. */
static void
one_where_failed_appends_arrive_behind_reads_is_found(void)
{
    static relay r;
    uint32_t law = law_of("a failed operation keeps its place");
    trp_err err = TRP_OK;
    for (uint64_t seed = 1; seed <= 20 && err == TRP_OK; seed++) {
        err = law_run(&r, law, seed, SIM_JOURNAL_BREAK_LATE);
    }
    UNIT_EQUAL(err, TRP_EFAILED);
    printf("  found: %s\n", r.why);
}

static void
failed_appends_keep_their_place_under_many_seeds(void)
{
    static relay r;
    uint32_t law = law_of("a failed operation keeps its place");
    for (uint64_t seed = 1; seed <= 5; seed++) {
        if (!UNIT_EQUAL(law_run(&r, law, seed, SIM_JOURNAL_BREAK_NONE), TRP_OK)) {
            printf("  seed %llu: %s\n", (unsigned long long)seed, r.why);
        }
    }
}

/* ---- writers under faults --------------------------------------------------------------------
 *
 * Each node has a writer, and all write to few ids: each claims the scope, reads the last number,
 * and appends until it is refused, fails, or has had its turn. Each event has its own value. */

enum { NODES = 4, IDS = 2, VALUES_MAX = 40000, GROUP_MAX = 3, TURN_APPENDS = 12 };

typedef struct writer {
    trp_journal_op op;
    trp_journal_event events[GROUP_MAX];
    uint64_t values[GROUP_MAX];
    uint32_t node;
    uint32_t appends; /* left of its turn */
    uint64_t epoch, next;
    int is_busy;
    char id[16];
} writer;

static trp_sim *present;
static writer writers[NODES];
static uint8_t told[VALUES_MAX]; /* trp_journal_outcome of each value */
static uint8_t stored[VALUES_MAX];
static uint64_t value_of_group[VALUES_MAX]; /* the first of its group */
static uint64_t values_count;
static uint64_t failed_and_there, failed_and_not, refused_count, done_count;
static sim_journal_break broken;

static void writer_told(trp_journal_op *op);

static void
writer_submit(writer *w, trp_journal_kind kind)
{
    const trp_journal_driver *driver = trp_sim_journal(present, w->node);
    w->op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    w->op.kind = kind;
    w->op.id = w->op.scope = w->id;
    w->op.writer = "writer";
    w->op.epoch = w->epoch;
    w->op.user = w;
    w->op.done = writer_told;
    w->is_busy = 1;
    if (kind == TRP_JOURNAL_APPEND) {
        w->op.events = w->events;
        w->op.events_count = 1 + (uint32_t)(values_count % GROUP_MAX);
        w->op.from = w->next;
        for (uint32_t i = 0; i < w->op.events_count; i++) {
            w->values[i] = values_count + i;
            value_of_group[w->values[i]] = values_count;
            w->events[i] = (trp_journal_event){
                .type = "value", .version = 1, .data = &w->values[i], .bytes = sizeof w->values[i]
            };
        }
        values_count += w->op.events_count;
    }
    driver->submit(driver->arg, &w->op);
}

static void
writer_told(trp_journal_op *op)
{
    writer *w = op->user;
    w->is_busy = 0;
    trp_sim_note(present, (uint64_t)op->outcome << 8 | (uint64_t)op->kind);
    for (uint32_t i = 0; op->kind == TRP_JOURNAL_APPEND && i < op->events_count; i++) {
        told[w->values[i]] = (uint8_t)op->outcome;
    }
    if (op->outcome != TRP_JOURNAL_DONE) {
        return; /* it claims again, in its next turn */
    }
    switch (op->kind) {
    case TRP_JOURNAL_CLAIM:
        w->epoch = op->ret_epoch;
        writer_submit(w, TRP_JOURNAL_EVENTS);
        return;
    case TRP_JOURNAL_EVENTS:
        w->next = op->ret_number + 1;
        break;
    default:
        w->next += op->events_count;
        break;
    }
    if (w->appends > 0 && values_count + GROUP_MAX <= VALUES_MAX) {
        w->appends--;
        writer_submit(w, TRP_JOURNAL_APPEND);
    }
}

static trp_err
value_give(trp_journal_op *op, const trp_journal_event *event)
{
    uint64_t value = VALUES_MAX;
    uint64_t *number = op->user;
    TRP_SIM_CHECK(present, event->number == ++*number);
    TRP_SIM_CHECK(present, event->bytes == sizeof value);
    memcpy(&value, event->data, sizeof value);
    TRP_SIM_CHECK(present, value < values_count);
    stored[value]++;
    return TRP_OK;
}

static void
look_at_all(trp_sim *sim)
{
    for (uint32_t i = 0; i < IDS; i++) {
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        uint64_t number = 0;
        op.kind = TRP_JOURNAL_EVENTS;
        op.id = writers[i].id;
        op.give = value_give;
        op.user = &number;
        op.max_events = VALUES_MAX;
        op.from = 1;
        TRP_SIM_CHECK(sim, trp_sim_journal_call(sim, &op) == TRP_OK);
    }
    for (uint64_t v = 0; v < values_count; v++) {
        TRP_SIM_CHECK(sim, told[v] != TRP_JOURNAL_PENDING);
        TRP_SIM_CHECK(sim, told[v] != TRP_JOURNAL_DONE || stored[v] == 1);
        TRP_SIM_CHECK(sim, told[v] != TRP_JOURNAL_REFUSED || stored[v] == 0);
        TRP_SIM_CHECK(sim, stored[v] <= 1 && stored[v] == stored[value_of_group[v]]);
        done_count += told[v] == TRP_JOURNAL_DONE;
        refused_count += told[v] == TRP_JOURNAL_REFUSED;
        failed_and_there += told[v] == TRP_JOURNAL_FAILED && stored[v] == 1;
        failed_and_not += told[v] == TRP_JOURNAL_FAILED && stored[v] == 0;
    }
}

static void
round_play(trp_sim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        writer *w = &writers[i];
        if (!w->is_busy && trp_sim_system(sim, i) != NULL && trp_sim_random(sim) % 8 == 0) {
            w->appends = TURN_APPENDS;
            writer_submit(w, TRP_JOURNAL_CLAIM);
        }
    }
    uint32_t node = 1 + (uint32_t)(trp_sim_random(sim) % (NODES - 1));
    switch (trp_sim_random(sim) % 64) {
    case 0:
        trp_sim_kill(sim, node);
        break;
    case 1:
        trp_sim_pause(sim, node, 200);
        break;
    case 2:
    case 3:
        trp_sim_start(sim, node);
        break;
    default:
        break;
    }
    trp_sim_pass(sim, 10);
}

static void
writers_under_faults(trp_sim *sim, void *arg)
{
    trp_sim_journal_faults faults = TRP_SIM_JOURNAL_FAULTS_INIT;
    (void)arg;
    present = sim;
    memset(told, 0, sizeof told);
    memset(stored, 0, sizeof stored);
    values_count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        writers[i] = (writer){ .node = i };
        (void)snprintf(writers[i].id, sizeof writers[i].id, "id-%u", i % IDS);
    }
    faults.latency_ms = 8;
    faults.refused = 10;
    faults.unknown = 20;
    faults.lost = 5;
    faults.away_ms = 400;
    TRP_SIM_CHECK(sim, trp_sim_journal_fail(sim, &faults) == TRP_OK);
    TRP_SIM_CHECK(sim, sim_journal_break_set(sim, broken) == TRP_OK);
    for (uint32_t round = 0; round < 600; round++) {
        round_play(sim);
    }
    TRP_SIM_CHECK(sim, trp_sim_journal_fail(sim, NULL) == TRP_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        writers[i].appends = 0;
    }
    trp_sim_pass(sim, 5000); /* and what goes on without its node is over */
    look_at_all(sim);
    trp_sim_note(sim, done_count);
}

/* A4J-28 */
static void
under_faults_what_is_told_is_true(void)
{
    const char *text = getenv("TROUPE_SIM_SEEDS"), *first = getenv("TROUPE_SIM_FIRST");
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result }, again = result;
    options.nodes = NODES;
    options.seed = first == NULL ? 1 : strtoull(first, NULL, 10);
    options.seeds = text == NULL ? 20 : (uint32_t)strtoul(text, NULL, 10);
    options.replay = "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/journal_test";
    UNIT_EQUAL(trp_sim_run(writers_under_faults, NULL, &options, &result), TRP_OK);
    printf("  done %llu, refused %llu, failed and there %llu, failed and not there %llu\n",
           (unsigned long long)done_count, (unsigned long long)refused_count,
           (unsigned long long)failed_and_there, (unsigned long long)failed_and_not);
    UNIT_TRUE(done_count > 0 && refused_count > 0);
    UNIT_TRUE(text != NULL || (failed_and_there > 0 && failed_and_not > 0));

    options.seed = result.seed;
    options.seeds = 1;
    done_count = 0;
    UNIT_EQUAL(trp_sim_run(writers_under_faults, NULL, &options, &result), TRP_OK);
    done_count = 0;
    UNIT_EQUAL(trp_sim_run(writers_under_faults, NULL, &options, &again), TRP_OK);
    UNIT_TRUE(result.hash == again.hash && result.turns == again.turns);
}

static void
one_that_acknowledges_what_is_lost_is_found(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_sim_result result = { .size = sizeof result };
    options.nodes = NODES;
    options.seeds = 20;
    options.replay = "expected:";
    broken = SIM_JOURNAL_BREAK_OUTCOME;
    UNIT_EQUAL(trp_sim_run(writers_under_faults, NULL, &options, &result), TRP_EFAILED);
    broken = SIM_JOURNAL_BREAK_NONE;
}

static void
nothing_is_done(trp_sim *sim, void *arg)
{
    trp_sim_journal_faults faults = TRP_SIM_JOURNAL_FAULTS_INIT;
    (void)arg;
    UNIT_TRUE(trp_sim_journal(sim, NODES) == NULL);
    UNIT_TRUE(trp_sim_journal(sim, 0) != NULL && trp_sim_journal(sim, 0)->shared == 1);
    UNIT_TRUE(trp_sim_journal(sim, 0) == trp_sim_journal(sim, 0));
    faults.lost = 1001;
    UNIT_EQUAL(trp_sim_journal_fail(sim, &faults), TRP_EINVAL);
    faults.lost = 1000;
    UNIT_EQUAL(trp_sim_journal_fail(sim, &faults), TRP_OK);
}

static void
wrong_arguments_are_refused(void)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    options.nodes = NODES;
    UNIT_EQUAL(trp_sim_run(nothing_is_done, NULL, &options, NULL), TRP_OK);
}

UNIT_BEGIN("journal")
UNIT(it_keeps_every_law)
UNIT(one_that_breaks_the_order_of_an_id_is_found)
UNIT(one_where_failed_appends_arrive_behind_reads_is_found)
UNIT(failed_appends_keep_their_place_under_many_seeds)
UNIT(under_faults_what_is_told_is_true)
UNIT(one_that_acknowledges_what_is_lost_is_found)
UNIT(wrong_arguments_are_refused)
UNIT_END
