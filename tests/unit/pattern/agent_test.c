/* agent_test.c - values that are read at once, and changed by functions one at a time. */
#include <troupe/agent.h>

#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/actor/stage.h"

static int64_t
value_of(const trp_agent *agent)
{
    int64_t value = 0;
    trp_agent_get(agent, &value);
    return value;
}

static trp_agent *
open_agent(trp_system *system, int64_t value)
{
    trp_agent *agent = NULL;
    UNIT_REQUIRE(trp_agent_new(system, &value, sizeof value, NULL, &agent) == TRP_OK);
    return agent;
}

static int64_t
settled(trp_agent *agent)
{
    int64_t value = -1;
    UNIT_EQUAL(trp_agent_await(agent, 60000, &value), TRP_OK);
    return value;
}

static trp_err
add(void *arg, void *value)
{
    *(int64_t *)value += *(const int64_t *)arg;
    return TRP_OK;
}

static trp_err
twice(void *arg, void *value)
{
    (void)arg;
    *(int64_t *)value *= 2;
    return TRP_OK;
}

/* Holds its thread until it may go on. */
typedef struct gate {
    _Atomic bool entered, open;
    _Atomic int released;
} gate;

static trp_err
wait_open(void *arg, void *value)
{
    gate *g = arg;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open)) {
        unit_pause();
    }
    *(int64_t *)value += 1;
    return TRP_OK;
}

static void
count_release(void *arg)
{
    atomic_fetch_add(&((gate *)arg)->released, 1);
}

/* AGENT-1: reading needs no message and waits for no change. */
static void
its_value_is_read_at_once(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 5);
    gate g = { false, false, 0 };
    UNIT_EQUAL(value_of(agent), 5);
    UNIT_EQUAL(trp_agent_send_off(agent, wait_open, &g, count_release), TRP_OK);
    UNIT_WAIT(atomic_load(&g.entered), 60000);
    UNIT_EQUAL(value_of(agent), 5); /* as it was before the change that runs */
    atomic_store(&g.open, true);
    UNIT_EQUAL(settled(agent), 6);
    UNIT_WAIT(atomic_load(&g.released) == 1, 60000);
    trp_agent_unref(agent);
    stage_close(system);
}

/* AGENT-2 */
static void
changes_are_done_in_their_order(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 0);
    int64_t one = 1, expected = 0;
    UNIT_EQUAL(trp_agent_set(agent, &(int64_t){ 7 }), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, add, &one, NULL), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, twice, NULL, NULL), TRP_OK);
    UNIT_EQUAL(settled(agent), 16);
    UNIT_EQUAL(trp_agent_set(agent, &expected), TRP_OK);
    for (int i = 0; i < 40; i++) { /* by turns on two dispatchers, and several of each */
        trp_err (*send)(trp_agent *, trp_agent_fn, void *, trp_release_fn) =
            i / 2 % 2 == 0 ? trp_agent_send : trp_agent_send_off;
        UNIT_EQUAL(send(agent, i % 3 == 0 ? twice : add, &one, NULL), TRP_OK);
        expected = i % 3 == 0 ? expected * 2 : expected + 1;
    }
    UNIT_EQUAL(settled(agent), expected);
    trp_agent_unref(agent);
    stage_close(system);
}

/* Two at a time would show: each counts itself in and out. */
static _Atomic int inside, most;
static trp_err
enter_alone(void *arg, void *value)
{
    int now = atomic_fetch_add(&inside, 1) + 1;
    (void)arg;
    if (now > atomic_load(&most)) {
        atomic_store(&most, now);
    }
    *(int64_t *)value += 1;
    atomic_fetch_sub(&inside, 1);
    return TRP_OK;
}

enum { SENDERS = 3, SENDS = 2000 };
static void *
sender_run(void *arg)
{
    for (int i = 0; i < SENDS; i++) {
        UNIT_EQUAL(i % 16 == 0 ? trp_agent_send_off(arg, enter_alone, NULL, NULL)
                               : trp_agent_send(arg, enter_alone, NULL, NULL),
                   TRP_OK);
    }
    return NULL;
}

/* AGENT-2 */
static void
one_change_at_a_time_whoever_sends(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 0);
    pthread_t threads[SENDERS];
    atomic_store(&most, 0);
    for (int i = 0; i < SENDERS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, sender_run, agent) == 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    UNIT_EQUAL(settled(agent), SENDERS * SENDS);
    UNIT_EQUAL(atomic_load(&most), 1);
    trp_agent_unref(agent);
    stage_close(system);
}

static trp_err
fail_change(void *arg, void *value)
{
    (void)arg;
    *(int64_t *)value = 99;
    return TRP_EIO;
}

/* AGENT-3 */
static void
a_change_can_report_the_new_value(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 5);
    trp_future *first, *second, *failed;
    const trp_msg *value;
    int64_t one = 1;
    UNIT_EQUAL(trp_agent_alter(agent, 0, add, &one, NULL, &first), TRP_OK);
    UNIT_EQUAL(trp_agent_alter(agent, 1, twice, NULL, NULL, &second), TRP_OK);
    UNIT_EQUAL(trp_agent_alter(agent, 0, fail_change, NULL, NULL, &failed), TRP_OK);
    UNIT_EQUAL(trp_future_result(first, 60000, &value), TRP_OK);
    UNIT_EQUAL(*(const int64_t *)trp_msg_payload(value), 6);
    UNIT_EQUAL(trp_future_result(second, 60000, &value), TRP_OK);
    UNIT_EQUAL(*(const int64_t *)trp_msg_payload(value), 12);
    UNIT_EQUAL(trp_future_result(failed, 60000, &value), TRP_EIO);
    UNIT_EQUAL(settled(agent), 12); /* a change that failed changed nothing */
    trp_future_unref(first);
    trp_future_unref(second);
    trp_future_unref(failed);
    trp_agent_unref(agent);
    stage_close(system);
}

/* AGENT-3: behind what is queued now, and not behind what comes later. */
static void
the_future_of_an_agent_has_what_is_queued_now(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 5);
    trp_future *future;
    const trp_msg *value;
    gate g = { false, false, 0 };
    int64_t one = 1;
    UNIT_EQUAL(trp_agent_send_off(agent, wait_open, &g, NULL), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, add, &one, NULL), TRP_OK);
    UNIT_EQUAL(trp_agent_future(agent, &future), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, twice, NULL, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&g.entered), 60000);
    UNIT_TRUE(trp_future_outcome(future) == NULL);
    atomic_store(&g.open, true);
    UNIT_EQUAL(trp_future_result(future, 60000, &value), TRP_OK);
    UNIT_EQUAL(*(const int64_t *)trp_msg_payload(value), 7);
    UNIT_EQUAL(settled(agent), 14);
    trp_future_unref(future);
    trp_agent_unref(agent);
    stage_close(system);
}

/* ---- in a transaction ------------------------------------------------------------------------ */

typedef struct deal {
    trp_agent *from, *to;
    int64_t amount, minus;
    trp_err result;
    uint32_t runs; /* with a conflict that is made up */
    gate *g;
} deal;

static trp_err
add_release(void *arg, void *value)
{
    (void)arg;
    *(int64_t *)value += 1;
    return TRP_OK;
}

static trp_err
make_deal(trp_txn *txn, void *arg)
{
    deal *d = arg;
    trp_err err = trp_agent_send_in(txn, d->from, add, &d->minus, NULL);
    err = err != TRP_OK ? err : trp_agent_send_in(txn, d->to, add, &d->amount, NULL);
    err = err != TRP_OK ? err : trp_agent_send_in(txn, d->to, add_release, d->g, count_release);
    if (err == TRP_OK && trp_txn_attempt(txn) <= d->runs) {
        return TRP_EAGAIN;
    }
    return err != TRP_OK ? err : d->result;
}

/* AGENT-4: held until the commit, once; nothing of a run that is repeated or aborted. */
static void
changes_of_a_transaction_wait_for_its_success(void)
{
    trp_system *system = stage_open();
    trp_stm *stm = NULL;
    gate g = { false, false, 0 };
    deal d = { open_agent(system, 100), open_agent(system, 20), 50, -50, TRP_ESTATE, 2, &g };
    UNIT_EQUAL(trp_stm_new(&stm), TRP_OK);
    UNIT_EQUAL(trp_stm_run(stm, make_deal, &d, NULL), TRP_ESTATE);
    UNIT_EQUAL(settled(d.from), 100);
    UNIT_EQUAL(settled(d.to), 20);
    UNIT_EQUAL(atomic_load(&g.released), 3); /* each run's arg */
    d.result = TRP_OK;
    UNIT_EQUAL(trp_stm_run(stm, make_deal, &d, NULL), TRP_OK);
    UNIT_EQUAL(settled(d.from), 50);
    UNIT_EQUAL(settled(d.to), 71);
    UNIT_WAIT(atomic_load(&g.released) == 6, 60000);
    trp_stm_free(stm);
    trp_agent_unref(d.from);
    trp_agent_unref(d.to);
    stage_close(system);
}

/* ---- derived agents -------------------------------------------------------------------------- */

static trp_err
plus_one(void *arg, const void *value, void *ret_value)
{
    (void)arg;
    *(int32_t *)ret_value = (int32_t) * (const int64_t *)value + 1;
    return TRP_OK;
}
static trp_err
refuse_value(void *arg, const void *value, void *ret_value)
{
    (void)arg;
    (void)value;
    (void)ret_value;
    return TRP_EDATA;
}

typedef struct sum_of {
    trp_system *system;
    const trp_agent *second;
    int64_t first;
    trp_agent *result;
} sum_of;
static trp_err
with_second(void *arg, const void *value)
{
    sum_of *s = arg;
    int64_t sum = s->first + *(const int64_t *)value;
    return trp_agent_new(s->system, &sum, sizeof sum, NULL, &s->result);
}
static trp_err
with_first(void *arg, const void *value)
{
    sum_of *s = arg;
    s->first = *(const int64_t *)value;
    return trp_agent_foreach(s->second, with_second, s);
}

/* AGENT-5 */
static void
agents_are_derived_from_agents(void)
{
    trp_system *system = stage_open();
    trp_agent *three = open_agent(system, 3), *five = open_agent(system, 5), *four = NULL;
    sum_of s = { system, five, 0, NULL };
    int32_t value = 0;
    UNIT_EQUAL(trp_agent_map(three, plus_one, NULL, sizeof(int32_t), &four), TRP_OK);
    trp_agent_get(four, &value);
    UNIT_EQUAL(value, 4);
    UNIT_EQUAL(trp_agent_foreach(three, with_first, &s), TRP_OK); /* of two */
    UNIT_EQUAL(value_of(s.result), 8);
    UNIT_EQUAL(trp_agent_send(three, twice, NULL, NULL), TRP_OK);
    UNIT_EQUAL(settled(three), 6);
    trp_agent_get(four, &value);
    UNIT_EQUAL(value, 4); /* its origin may change */
    UNIT_EQUAL(value_of(s.result), 8);
    trp_agent_unref(four);
    four = NULL;
    UNIT_EQUAL(trp_agent_map(three, refuse_value, NULL, 4, &four), TRP_EDATA);
    UNIT_TRUE(four == NULL);
    trp_agent_unref(s.result);
    trp_agent_unref(three);
    trp_agent_unref(five);
    stage_close(system);
}

/* ---- threads, limits, ends ------------------------------------------------------------------- */

static trp_err
note_thread(void *arg, void *value)
{
    (void)value;
    *(pthread_t *)arg = pthread_self();
    return TRP_OK;
}

/* AGENT-6: while as many long changes run as there are workers, other actors' work goes on. */
static void
long_changes_run_on_threads_of_their_own(void)
{
    trp_system *system = stage_open(); /* of two workers */
    trp_agent *held[3], *free_one = open_agent(system, 0);
    gate g[3] = { { false, false, 0 }, { false, false, 0 }, { false, false, 0 } };
    pthread_t of_send, of_send_off;
    for (int i = 0; i < 3; i++) {
        held[i] = open_agent(system, 0);
        UNIT_EQUAL(trp_agent_send_off(held[i], wait_open, &g[i], NULL), TRP_OK);
        UNIT_WAIT(atomic_load(&g[i].entered), 60000);
    }
    UNIT_EQUAL(trp_agent_send(free_one, note_thread, &of_send, NULL), TRP_OK);
    UNIT_EQUAL(trp_agent_send_off(free_one, note_thread, &of_send_off, NULL), TRP_OK);
    UNIT_EQUAL(settled(free_one), 0);
    UNIT_TRUE(!pthread_equal(of_send, of_send_off));
    for (int i = 0; i < 3; i++) {
        atomic_store(&g[i].open, true);
        UNIT_EQUAL(settled(held[i]), 1);
        trp_agent_unref(held[i]);
    }
    trp_agent_unref(free_one);
    stage_close(system);
}

/* AGENT-2 */
static void
its_queue_has_a_limit(void)
{
    trp_system *system = stage_open();
    trp_agent_options options = TRP_AGENT_OPTIONS_INIT;
    trp_agent *agent = NULL;
    gate g = { false, false, 0 };
    int64_t zero = 0;
    options.queue_max = 2;
    UNIT_EQUAL(trp_agent_new(system, &zero, sizeof zero, &options, &agent), TRP_OK);
    UNIT_EQUAL(trp_agent_send_off(agent, wait_open, &g, count_release), TRP_OK);
    UNIT_WAIT(atomic_load(&g.entered), 60000);
    UNIT_EQUAL(trp_agent_send(agent, twice, &g, count_release), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, twice, &g, count_release), TRP_OK);
    UNIT_EQUAL(trp_agent_send(agent, twice, &g, count_release), TRP_ELIMIT);
    atomic_store(&g.open, true);
    UNIT_WAIT(atomic_load(&g.released) == 3, 60000); /* not that of the refused one */
    UNIT_EQUAL(settled(agent), 4);
    trp_agent_unref(agent);
    stage_close(system);
}

/* AGENT-2: an agent outlives its system; what was queued is done or dropped, and released. */
static void
it_is_closed_when_its_system_ends(void)
{
    trp_system *system = stage_open();
    trp_agent *agent = open_agent(system, 1), *other = NULL;
    trp_future *future = NULL;
    gate g = { false, true, 0 };
    for (int i = 0; i < 500; i++) {
        UNIT_EQUAL(trp_agent_send(agent, wait_open, &g, count_release), TRP_OK);
    }
    stage_close(system);
    UNIT_EQUAL(atomic_load(&g.released), 500);
    UNIT_TRUE(value_of(agent) >= 1 && value_of(agent) <= 501);
    UNIT_EQUAL(trp_agent_send(agent, wait_open, &g, count_release), TRP_ECLOSED);
    UNIT_EQUAL(trp_agent_future(agent, &future), TRP_ECLOSED);
    UNIT_EQUAL(trp_agent_map(agent, plus_one, NULL, sizeof(int32_t), &other), TRP_ECLOSED);
    UNIT_EQUAL(atomic_load(&g.released), 500);
    trp_agent_unref(agent);
}

/* AGENT-1 */
static void
misuse_is_an_error(void)
{
    trp_system *system = stage_open();
    trp_agent_options options = TRP_AGENT_OPTIONS_INIT;
    trp_agent *agent = NULL;
    int64_t value = 0;
    UNIT_EQUAL(trp_agent_new(system, &value, 0, NULL, &agent), TRP_EINVAL);
    UNIT_EQUAL(trp_agent_new(system, &value, TRP_STM_CELL_BYTES_MAX + 1, NULL, &agent), TRP_EINVAL);
    UNIT_EQUAL(trp_agent_new(system, NULL, 8, NULL, &agent), TRP_EINVAL);
    options.dispatcher = "no such";
    UNIT_EQUAL(trp_agent_new(system, &value, 8, &options, &agent), TRP_ENOENT);
    options.size = 1;
    UNIT_EQUAL(trp_agent_new(system, &value, 8, &options, &agent), TRP_EINVAL);
    UNIT_TRUE(agent == NULL);
    agent = open_agent(system, 0);
    UNIT_EQUAL(trp_agent_send(agent, NULL, NULL, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_agent_set(agent, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_agent_send(NULL, twice, NULL, NULL), TRP_EINVAL);
    trp_agent_unref(agent);
    trp_agent_unref(NULL);
    stage_close(system);
}

UNIT_BEGIN("agent")
UNIT(its_value_is_read_at_once)
UNIT(changes_are_done_in_their_order)
UNIT(one_change_at_a_time_whoever_sends)
UNIT(a_change_can_report_the_new_value)
UNIT(the_future_of_an_agent_has_what_is_queued_now)
UNIT(changes_of_a_transaction_wait_for_its_success)
UNIT(agents_are_derived_from_agents)
UNIT(long_changes_run_on_threads_of_their_own)
UNIT(its_queue_has_a_limit)
UNIT(it_is_closed_when_its_system_ends)
UNIT(misuse_is_an_error)
UNIT_END
