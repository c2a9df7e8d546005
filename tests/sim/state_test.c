/* state_test.c - all that lives once, together, on complete nodes that share a journal, in virtual
 * time: a persistent singleton (the clerk), persistent remembered entities (accounts) and plain
 * ones (desks). Nodes crash, stand still, leave, join and are cut off in one direction,
 * coordinators change, the journal fails. Never two handle messages at once; what the journal has
 * acknowledged is there; what is told arrives in order, all of it where nothing crashes; and what
 * an account delivers to the clerk arrives always (CONTRIB-01, CONTRIB-48, FUTURE-14, FUTURE-17,
 * A4J-14, A4J-28).
 *
 * TROUPE_SIM_SEEDS=300 sets the number of seeds of the random ones. */
#include "cluster/sharding/region_core.h"
#include "cluster/singleton/manager_engine.h"
#include "tests/sim/state_cast.h"

/* ---- programs -------------------------------------------------------------------------------- */

static int
all_are_billed(void *arg)
{
    (void)arg;
    return memcmp(acked, billed, sizeof acked) == 0;
}

static int
all_are_heard(void *arg)
{
    uint64_t sum = 0;
    (void)arg;
    for (uint32_t t = 0; t < TELLERS_MAX; t++) {
        for (uint32_t i = 0; i < TARGETS; i++) {
            sum += told[t][i];
        }
    }
    return sum == expected && memcmp(told, heard, sizeof told) == 0;
}

/* Each account that has taken something lives, also when nobody has told it anything. */
static int
all_live(void *arg)
{
    (void)arg;
    for (uint32_t a = 0; a < ACCOUNTS; a++) {
        bool lives_here = acked[a] == 0;
        for (uint32_t i = 0; i < NODES; i++) {
            lives_here |= trp_sim_system(present, i) != NULL && newest[i][a] > 0;
        }
        if (!lives_here) {
            return 0;
        }
    }
    return 1;
}

/* Ask until it answers: a question to a node that ends is lost. */
static void
ask(trp_sim *sim, uint32_t node, uint32_t target)
{
    struct state_job job = { teller_of[node], target, 0 };
    trp_msg *reply = NULL;
    trp_err err = TRP_ETIMEDOUT;
    for (uint32_t i = 0; i < 30 && err == TRP_ETIMEDOUT; i++) {
        trp_system *system = trp_sim_system(sim, node);
        trp_entity entity = entity_at(target % CLERK);
        err = target == CLERK ? trp_system_ask(system, proxies[node], &state_job_type, &job,
                                               sizeof job, 2000, &reply)
                              : trp_system_entity_ask(system, &entity, &state_job_type, &job,
                                                      sizeof job, 2000, &reply);
    }
    TRP_SIM_CHECK(sim, err == TRP_OK);
    trp_msg_free(reply);
}

static void
all_answer(trp_sim *sim)
{
    trp_sim_await(sim, all_live, NULL, SETTLE_MS);
    for (uint32_t target = 0; target < TARGETS; target++) {
        ask(sim, target % NODES, target);
    }
    trp_sim_await(sim, all_are_billed, NULL, SETTLE_MS);
    TRP_SIM_CHECK(sim, lost == 0);
    TRP_SIM_CHECK(sim, disordered + doubled == 0);
}

/* The first seed is started again only while the others answer: else it makes a cluster of its own,
 * which is documented, and no fault (cluster/sim/complete_faults.c). So nothing else happens while
 * it leaves, and it does not stand still for long. */
static void
node_leaves(trp_sim *sim, uint32_t node)
{
    if (node != 0) {
        trp_sim_leave(sim, node); /* nothing, if it does not run */
        return;
    }
    trp_sim_calm(sim, 180000);
    trp_sim_leave(sim, node);
    play_await_gone(sim, node, 60000);
    trp_sim_calm(sim, 180000);
}

/* The clerk's host leaves, or another; a node stands still between two messages for so long that
 * others take over what it hosts. */
static void
one_change(trp_sim *sim)
{
    uint32_t target = (uint32_t)(trp_sim_random(sim) % TARGETS);
    uint32_t ms = 1000 + (uint32_t)(trp_sim_random(sim) % 60000);
    switch (trp_sim_random(sim) % 6) {
    case 0:
        node_leaves(sim, host[CLERK]); /* the oldest: also the coordinator's */
        break;
    case 1:
        node_leaves(sim, host[target]);
        break;
    case 2:
        trp_sim_pause(sim, host[target], host[target] == 0 ? ms / 6 : ms);
        break;
    case 3:
        stop_after = 1 + (uint32_t)(trp_sim_random(sim) % 60);
        stop_ms = ms;
        tell_all(sim, NODES, target, TARGETS);
        trp_sim_pass(sim, ms + 2000);
        stop_after = 0;
        break;
    default:
        break;
    }
}

static void
all_faults(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, NODES, 0, TARGETS);
    for (uint32_t round = 0; round < 6; round++) {
        for (uint32_t k = 0; k < 5; k++) {
            tell_all(sim, NODES, (uint32_t)trp_sim_random(sim) % TARGETS, 6);
            trp_sim_pass(sim, 100);
        }
        trp_sim_faults(sim, 8000);
        one_change(sim);
    }
    trp_sim_calm(sim, 180000);
    trp_sim_pass(sim, 10000); /* a node that stood still when it was told to leave does so now */
    trp_sim_calm(sim, 180000);
    busy = false;
    trp_sim_pass(sim, 10000);
    if (host[0] != 0) {
        trp_sim_kill(sim, host[0]); /* its accounts live again, although nobody tells them */
        trp_sim_calm(sim, 180000);
    }
    all_answer(sim);
}

/* Nodes leave and join one after the other, stand still for a moment, messages are slow: nothing
 * ends that has messages, so all arrive. */
static void
no_crash(trp_sim *sim, void *arg)
{
    (void)arg;
    tell_all(sim, NODES, 0, TARGETS);
    trp_sim_await(sim, all_are_heard, NULL, 20000);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t going =
            trp_sim_random(sim) % 2 == 0 ? host[CLERK] : (uint32_t)(trp_sim_random(sim) % NODES);
        trp_sim_leave(sim, going);
        for (uint32_t i = 0; i < 600 && trp_sim_system(sim, going) != NULL; i++) {
            tell_all(sim, going, (uint32_t)trp_sim_random(sim) % TARGETS, 3);
            trp_sim_pass(sim, 50);
        }
        play_await_gone(sim, going, 60000);
        if (trp_sim_random(sim) % 2 == 0) {
            trp_sim_pause(sim, (uint32_t)(trp_sim_random(sim) % NODES), 2000);
        }
        trp_sim_delay(sim, (uint32_t)(trp_sim_random(sim) % 100));
        trp_sim_start(sim, going);
        for (uint32_t i = 0; i < 100; i++) {
            tell_all(sim, going, (uint32_t)trp_sim_random(sim) % TARGETS, 3);
            trp_sim_pass(sim, 50);
        }
        trp_sim_delay(sim, 0);
        trp_sim_calm(sim, 60000);
    }
    trp_sim_await(sim, all_are_heard, NULL, 60000);
    TRP_SIM_CHECK(sim, skipped == 0);
    all_answer(sim);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* CONTRIB-01 CONTRIB-48 FUTURE-14 FUTURE-17 A4J-14 A4J-28 */
static void
under_all_faults_what_lives_once_lives_once_and_keeps_its_state(void)
{
    play_seeds(all_faults, busy_options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/state_test");
}

/* Each of them has shown a defect that none of the first seeds shows. */
static void
seeds_that_have_failed_pass(void)
{
    static const uint64_t seeds[] = { 308, 513, 5009, 5733, 8269, 8561 };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        trp_sim_result result = { .size = sizeof result };
        trp_sim_options options = busy_options_of(NODES);
        options.seed = seeds[i];
        UNIT_EQUAL(sim_complete_run_once(all_faults, NULL, &options, &result), TRP_OK);
        if (!UNIT_EQUAL(result.failed, 0)) {
            printf("  seed %llu: %s\n  replay: TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=%llu "
                   "tests/sim/state_test\n",
                   (unsigned long long)seeds[i], result.text, (unsigned long long)seeds[i]);
        }
    }
}

/* FUTURE-09 FUTURE-12 */
static void
without_a_crash_all_that_is_told_is_handled_in_order(void)
{
    play_seeds(no_crash, options_of, NODES, 10,
               "TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=SEED tests/sim/state_test");
}

/* Return whether it is found under one of so many seeds. */
static bool
is_found(const struct fault *one, uint32_t seeds)
{
    bool found = false;
    fault = one;
    for (uint64_t seed = 1; seed <= seeds && !found; seed++) {
        trp_sim_result result = { .size = sizeof result };
        trp_sim_options options = options_of(NODES);
        options.seed = seed;
        busy = one->program == all_faults;
        sim_complete_broken = one->bits;
        UNIT_EQUAL(sim_complete_run_once(one->program, NULL, &options, &result), TRP_OK);
        found = result.failed != 0;
        if (found) {
            printf("  %s: seed %llu: %s\n", one->name, (unsigned long long)seed, result.text);
        }
    }
    fault = NULL;
    sim_complete_broken = 0;
    return found;
}

/* Faults of parts that are too rare here are found by sharding_test and journal_test. */
static void
faults_that_are_put_in_are_found(void)
{
    static const struct fault faults[] = {
#ifdef TRPI_DEBUG
        { "no suspension", all_faults, TRPI_BROKEN_NO_SUSPENSION, 0, 0, 0 },
        { "no look at stalls", all_faults, TRPI_BROKEN_NO_STALLS, 0, 0, 0 },
        { "no fence", no_crash, TRPI_BROKEN_SHARDS(TRPI_SHARD_BROKEN_FENCE), 0, 0, 0 },
        { "answers", all_faults, TRPI_BROKEN_SHARDS(TRPI_SHARD_BROKEN_ANSWERS), 0, 0, 0 },
        { "hasty", all_faults, TRPI_BROKEN_SINGLETONS(TRPI_SINGLETON_BROKEN_HASTY), 0, 0, 0 },
#endif
        { "outcome", all_faults, 0, SIM_JOURNAL_BREAK_OUTCOME, 0, 0 },
        { "not remembered", all_faults, 0, 0, true, 0 },
        { "delivered once", all_faults, 0, 0, 0, true },
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (!UNIT_TRUE(is_found(&faults[i], 400))) {
            printf("  %s: not found\n", faults[i].name);
        }
    }
}

UNIT_BEGIN("state")
UNIT(faults_that_are_put_in_are_found)
UNIT(under_all_faults_what_lives_once_lives_once_and_keeps_its_state)
UNIT(seeds_that_have_failed_pass)
UNIT(without_a_crash_all_that_is_told_is_handled_in_order)
UNIT_END
