/* seeded_test.c - planted races that some seed finds, and that shrink to a few decisions. */
#include <stdlib.h>

#include <troupe/seeded.h>

#include "tests/unit/unit.h"

#define RACE_PLAIN(F, S) F(S, i64, value)
#define RACE_START(F, S) F(S, ref, account) F(S, ref, done) F(S, u32, hops)
#define RACE_MESSAGES(M, P)                                                                        \
    M(P, get, RACE_PLAIN)                                                                          \
    M(P, value, RACE_PLAIN)                                                                        \
    M(P, put, RACE_PLAIN)                                                                          \
    M(P, start, RACE_START) M(P, done, RACE_PLAIN) M(P, work, RACE_PLAIN) M(P, tick, RACE_PLAIN)
TRP_PROTOCOL(race, RACE_MESSAGES)

static const trp_protocol *const accepts[] = { &race_protocol, NULL };
#define BEHAVIOUR(name_, type_, receive_)                                                          \
    {                                                                                              \
        sizeof(trp_behaviour), name_, 1, sizeof(type_), receive_, NULL, NULL, NULL, NULL, NULL,    \
            accepts                                                                                \
    }

static void
value_tell(trp_ctx *ctx, trp_ref to, const trp_type *type, int64_t value)
{
    race_get plain = { value };

    trp_tell(ctx, to, type, &plain, 0);
}

/* ---- a lost update: clients read an account, then write it back ------------------------------ */

static trp_err
account_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *balance = state;

    if (trp_msg_is(msg, &race_get_type)) {
        value_tell(ctx, trp_sender(ctx), &race_value_type, *balance);
    } else if (trp_msg_is(msg, &race_put_type)) {
        *balance = ((const race_put *)trp_msg_payload(msg))->value;
        value_tell(ctx, trp_sender(ctx), &race_done_type, 0);
    }
    return TRP_OK;
}

/* The late client looks at the account some times before it adds: all is well as long as the other
 * one is not delayed for so long. */
static trp_err
client_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    race_start *self = state;
    const race_value *value = trp_msg_payload(msg);

    if (trp_msg_is(msg, &race_start_type)) {
        *self = *(const race_start *)trp_msg_payload(msg);
        value_tell(ctx, self->account, &race_get_type, 0);
    } else if (trp_msg_is(msg, &race_value_type) && self->hops > 0) {
        self->hops--;
        value_tell(ctx, self->account, &race_get_type, 0);
    } else if (trp_msg_is(msg, &race_value_type)) {
        value_tell(ctx, self->account, &race_put_type, value->value + 1);
    } else {
        value_tell(ctx, self->done, &race_done_type, 0);
    }
    return TRP_OK;
}

static const trp_behaviour account_behaviour = BEHAVIOUR("account", int64_t, account_receive);
static const trp_behaviour client_behaviour = BEHAVIOUR("client", race_start, client_receive);

static int failing_line;

static void
two_clients_add_one_each(trp_testkit *kit, void *arg)
{
    trp_system *system = trp_testkit_system(kit);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_ref shared, clients[2];
    race_get get = { 0 };
    race_value two = { 2 };

    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(system, &account_behaviour, NULL, &shared) == TRP_OK);
    for (uint32_t i = 0; i < 2; i++) {
        race_start start = { shared, trp_probe_ref(probe), i * 2 };

        TRP_TESTKIT_CHECK(kit,
                          trp_system_spawn(system, &client_behaviour, NULL, &clients[i]) == TRP_OK);
        trp_system_tell(system, clients[i], &race_start_type, &start, 0);
    }
    trp_probe_receive_n(probe, TRP_TEST_TIME, 2);
    trp_probe_tell(probe, shared, &race_get_type, &get, 0);
    failing_line = __LINE__ + 1;
    trp_probe_expect(probe, TRP_TEST_TIME, &race_value_type, &two, 0);
}

/* ---- a message that meets a worker which is just about to end, because it was idle ----------- */

static trp_err
idler_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &race_tick_type)) {
        trp_stop(ctx, trp_self(ctx));
    } else {
        value_tell(ctx, trp_sender(ctx), &race_done_type, 0);
    }
    return TRP_OK;
}

static trp_err
idler_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    race_tick tick = { 0 };

    (void)state;
    (void)args;
    return trp_timer_once(ctx, 1, 8, &race_tick_type, &tick, 0);
}

static const trp_behaviour idler_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "idler",
                                               .version = 1,
                                               .receive = idler_receive,
                                               .pre_start = idler_start,
                                               .accepts = accepts };

static void
work_is_done_before_the_worker_idles(trp_testkit *kit, void *arg)
{
    race_work work = { 0 };
    trp_ref worker;

    (void)arg;
    TRP_TESTKIT_CHECK(
        kit, trp_system_spawn(trp_testkit_system(kit), &idler_behaviour, NULL, &worker) == TRP_OK);
    for (int i = 0; i < 3; i++) {
        trp_probe_tell(trp_testkit_probe(kit), worker, &race_work_type, &work, 0);
        trp_probe_expect_type(trp_testkit_probe(kit), 100, &race_done_type);
    }
}

/* ---- programs without a mistake -------------------------------------------------------------- */

static void
nothing_goes_wrong(trp_testkit *kit, void *arg)
{
    race_value answer = { 5 };
    trp_ref shared;

    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(trp_testkit_system(kit), &account_behaviour, NULL,
                                            &shared) == TRP_OK);
    for (int64_t i = 0; i < 5; i++) {
        race_put put = { i + 1 };

        trp_probe_tell(trp_testkit_probe(kit), shared, &race_put_type, &put, 0);
        trp_probe_expect_type(trp_testkit_probe(kit), TRP_TEST_TIME, &race_done_type);
    }
    trp_probe_tell(trp_testkit_probe(kit), shared, &race_get_type, &answer, 0);
    trp_probe_expect(trp_testkit_probe(kit), TRP_TEST_TIME, &race_value_type, &answer, 0);
    trp_seeded_note(kit, trp_seeded_random(kit));
}

static void
asks_and_stops(trp_testkit *kit, void *arg)
{
    trp_system *system = trp_testkit_system(kit);
    race_get get = { 0 };
    trp_msg *reply = NULL;
    trp_ref shared, found;

    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(system, &account_behaviour, NULL, &shared) == TRP_OK);
    TRP_TESTKIT_CHECK(kit, trp_system_ask(system, shared, &race_get_type, &get, 0, 1000, &reply) ==
                               TRP_OK);
    TRP_TESTKIT_CHECK(kit, trp_msg_is(reply, &race_value_type));
    trp_msg_free(reply);
    TRP_TESTKIT_CHECK(kit, trp_system_resolve(system, "/user", 60000, &found) == TRP_OK);
    TRP_TESTKIT_CHECK(kit, trp_system_graceful_stop(system, shared, 1000) == TRP_OK);
    TRP_TESTKIT_CHECK(kit, trp_system_ask(system, shared, &race_get_type, &get, 0, 3600000,
                                          &reply) == TRP_ENOENT);
    TRP_TESTKIT_CHECK(kit,
                      trp_system_ask(system, trp_probe_ref(trp_testkit_probe(kit)), &race_get_type,
                                     &get, 0, 3600000, &reply) == TRP_ETIMEDOUT);
    TRP_TESTKIT_CHECK(kit, trp_testkit_now_ms(kit) >= 3600000); /* at no cost */
    TRP_TESTKIT_CHECK(kit, trp_system_stop(system, 1000) == TRP_OK);
    TRP_TESTKIT_CHECK(kit, trp_system_await(system, 0) == TRP_OK);
}

static trp_err
talks_for_ever(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, trp_self(ctx), msg);
    return TRP_OK;
}

static const trp_behaviour talker_behaviour = BEHAVIOUR("talker", int, talks_for_ever);

static void
clients_run(trp_testkit *kit, void *arg)
{
    race_get get = { 0 };
    trp_ref talker;

    (void)arg;
    TRP_TESTKIT_CHECK(
        kit, trp_system_spawn(trp_testkit_system(kit), &talker_behaviour, NULL, &talker) == TRP_OK);
    trp_system_tell(trp_testkit_system(kit), talker, &race_get_type, &get, 0);
    trp_probe_expect_type(trp_testkit_probe(kit), 3600000, &race_done_type);
}

static trp_err
checks_inside(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_testkit *kit = *(trp_testkit *const *)trp_msg_payload(msg);

    (void)state;
    TRP_TESTKIT_CHECK(kit, kit == NULL);
    value_tell(ctx, trp_sender(ctx), &race_done_type, 0);
    return TRP_OK;
}

static const trp_behaviour checker_behaviour = BEHAVIOUR("checker", int, checks_inside);

static void
an_actor_checks(trp_testkit *kit, void *arg)
{
    int64_t pointer = (int64_t)(intptr_t)kit;
    trp_ref checker;

    (void)arg;
    TRP_TESTKIT_CHECK(kit, trp_system_spawn(trp_testkit_system(kit), &checker_behaviour, NULL,
                                            &checker) == TRP_OK);
    trp_probe_tell(trp_testkit_probe(kit), checker, &race_get_type, &pointer, 0);
    trp_probe_expect_type(trp_testkit_probe(kit), TRP_TEST_TIME, &race_done_type);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static char printed[16384];

static void
keep_line(void *arg, const char *line)
{
    size_t used = strlen(printed);

    (void)arg;
    snprintf(printed + used, sizeof printed - used, "%s\n", line);
}

static trp_seeded_options
options_of(uint64_t seed, uint32_t seeds)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;

    options.seed = seed;
    options.seeds = seeds;
    options.print = keep_line;
    printed[0] = 0;
    return options;
}

static trp_seeded_result result = { .size = sizeof result };

static void
a_lost_update_is_found_and_shrunk_to_few_decisions(void)
{
    trp_seeded_options options = options_of(1, 5000);
    trp_seeded_result again = { .size = sizeof again };
    char seed[64];

    UNIT_REQUIRE(trp_seeded_run(two_clients_add_one_each, NULL, &options, &result) == TRP_EFAILED);
    UNIT_EQUAL(result.failed, 1);
    UNIT_EQUAL(result.line, failing_line);
    UNIT_TEXT(strrchr(result.file, '/'), "/seeded_test.c");
    UNIT_TRUE(strstr(result.text,
                     "expected race.value { value = 2 }, got race.value { value = 1 }") != NULL);
    UNIT_TRUE(result.shrunk <= 12 && result.shrunk >= 1);
    UNIT_TRUE(result.deviations >= result.shrunk);
    printf("  seed %u, %u decisions of %u shrunk to %u in %u runs: %s\n", (unsigned)result.seed,
           (unsigned)result.deviations, (unsigned)result.choices, (unsigned)result.shrunk,
           (unsigned)result.shrink_runs, result.schedule);
    snprintf(seed, sizeof seed, "replay: trp_seeded_run() with options.seed = %u\n",
             (unsigned)result.seed);
    UNIT_TRUE(strstr(printed, seed) != NULL);
    UNIT_TRUE(strstr(printed, result.schedule) != NULL);

    /* the seed replays */
    options = options_of(result.seed, 1);
    options.replay = "me --seed";
    options.shrink_max = TRP_OFF;
    UNIT_EQUAL(trp_seeded_run(two_clients_add_one_each, NULL, &options, &again), TRP_EFAILED);
    UNIT_EQUAL(again.hash, result.hash);
    UNIT_EQUAL(again.line, result.line);
    UNIT_TRUE(strstr(printed, "replay: me --seed ") != NULL);

    /* the schedule replays, and is minimal: with any of its decisions left out nothing fails */
    options = options_of(result.seed, 1);
    options.schedule = result.schedule;
    UNIT_EQUAL(trp_seeded_run(two_clients_add_one_each, NULL, &options, &again), TRP_EFAILED);
    UNIT_EQUAL(again.line, result.line);
    UNIT_EQUAL(again.shrunk, result.shrunk);
}

static void
a_race_of_a_timer_with_a_message_is_found(void)
{
    trp_seeded_options options = options_of(1, 5000);

    UNIT_REQUIRE(trp_seeded_run(work_is_done_before_the_worker_idles, NULL, &options, &result) ==
                 TRP_EFAILED);
    UNIT_TRUE(result.shrunk <= 6);
    printf("  seed %u, %u decisions of %u shrunk to %u in %u runs: %s\n", (unsigned)result.seed,
           (unsigned)result.deviations, (unsigned)result.choices, (unsigned)result.shrunk,
           (unsigned)result.shrink_runs, result.schedule);
    options = options_of(1, 300); /* not when time stands still while actors are ready */
    options.stall_ms_max = TRP_OFF;
    UNIT_EQUAL(trp_seeded_run(work_is_done_before_the_worker_idles, NULL, &options, &result),
               TRP_OK);
}

static void
a_right_program_passes_under_all_seeds(void)
{
    trp_seeded_options options = options_of(1, 200);
    uint64_t hashes[20];

    UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, &result), TRP_OK);
    UNIT_EQUAL(result.runs, 200);
    UNIT_EQUAL(result.failed, 0);
    UNIT_TEXT(printed, "");
    options = options_of(1, 50);
    UNIT_EQUAL(trp_seeded_run(asks_and_stops, NULL, &options, &result), TRP_OK);
    if (result.failed) {
        printf("%s", printed);
    }
    for (uint64_t seed = 1; seed <= 20; seed++) { /* same seed, same hash */
        options = options_of(seed, 1);
        UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, &result), TRP_OK);
        hashes[seed - 1] = result.hash;
        UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, &result), TRP_OK);
        UNIT_EQUAL(result.hash, hashes[seed - 1]);
        UNIT_TRUE(seed == 1 || result.hash != hashes[seed - 2]);
    }
}

static void
a_program_without_end_reaches_its_limit(void)
{
    trp_seeded_options options = options_of(1, 1);

    options.turns_max = 5000;
    options.shrink_max = 50;
    UNIT_EQUAL(trp_seeded_run(clients_run, NULL, &options, &result), TRP_EFAILED);
    UNIT_EQUAL(result.turns, 5000);
}

/* ... and a failure inside an actor fails the run, too. */
static void
an_actor_may_fail_the_test(void)
{
    trp_seeded_options options = options_of(1, 1);

    UNIT_EQUAL(trp_seeded_run(an_actor_checks, NULL, &options, &result), TRP_EFAILED);
    UNIT_TEXT(result.text, "kit == NULL");
    UNIT_EQUAL(result.shrunk, 0);
    UNIT_TEXT(result.schedule, "");
}

static void
wrong_options_and_schedules_are_refused(void)
{
    static const char *const wrong[] = { "1",       "1t",  "x", "1t2 1t3", "2t1 1t1",
                                         "1t2,3t4", "1x1", "-", "1b1 1t1", "1t65536" };
    trp_seeded_options options = options_of(1, 1);

    UNIT_EQUAL(trp_seeded_run(NULL, NULL, &options, NULL), TRP_EINVAL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.schedule = wrong[i];
        UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, NULL), TRP_EINVAL);
    }
    options.schedule = "";
    UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, NULL), TRP_OK);
    options.schedule = "0t1 7s3 7b2  9t2";
    UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, NULL), TRP_OK);
    options.size = 3;
    UNIT_EQUAL(trp_seeded_run(nothing_goes_wrong, NULL, &options, NULL), TRP_EINVAL);
}

UNIT_BEGIN("seeded")
UNIT(a_lost_update_is_found_and_shrunk_to_few_decisions)
UNIT(a_race_of_a_timer_with_a_message_is_found)
UNIT(a_right_program_passes_under_all_seeds)
UNIT(a_program_without_end_reaches_its_limit)
UNIT(an_actor_may_fail_the_test)
UNIT(wrong_options_and_schedules_are_refused)
UNIT_END
