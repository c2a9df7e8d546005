/* dispatcher_test.c - dispatchers: registration, what each kind promises, and that none loses mail.
 * */
#include "tests/unit/actor/dispatch.h"

#include <pthread.h>

TRP_PROTOCOL_DEFINE(dispatched, DISPATCHED_MESSAGES)

/* ---- registration ---------------------------------------------------------------------------- */

/* DISP-1, DISP-2, MSC-05: found by id; the first of an id stays; an unknown id is an error. */
static void
dispatchers_are_registered_and_found_by_id(void)
{
    trp_spawn_options spawn_options = TRP_SPAWN_OPTIONS_INIT;
    trp_dispatcher_info found = { sizeof found, 0, 0, 0, 0, 0, 0 };
    char long_id[TRP_DISPATCHER_ID_BYTES_MAX + 2];
    trp_ref ref;

    start(0);
    UNIT_EQUAL(trp_dispatcher_find(system_, "foo.bar.mine", &found), TRP_ENOENT);
    spawn_options.dispatcher = "foo.bar.mine";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &spawn_options, &ref), TRP_ENOENT);
    UNIT_EQUAL(trp_dispatcher_execute(system_, "foo.bar.mine", (void (*)(void *))abort, NULL),
               TRP_ENOENT);
    UNIT_EQUAL(add("foo.bar.mine", TRP_DISPATCHER_POOL, 3), TRP_OK);
    UNIT_EQUAL(add("foo.bar.mine", TRP_DISPATCHER_PINNED, 0), TRP_EEXIST);
    UNIT_EQUAL(info("foo.bar.mine").kind, TRP_DISPATCHER_POOL);
    UNIT_EQUAL(info("foo.bar.mine").threads_max, 3);
    UNIT_EQUAL(info("foo.bar.mine").threads, 0); /* made when needed */
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &spawn_options, &ref), TRP_OK);
    UNIT_EQUAL(add("default", TRP_DISPATCHER_POOL, 1), TRP_EEXIST);
    UNIT_EQUAL(add("again", TRP_DISPATCHER_DEFAULT, 0), TRP_EINVAL);
    UNIT_EQUAL(add("again", TRP_DISPATCHER_SYSTEM, 0), TRP_EINVAL);
    UNIT_EQUAL(add("again", TRP_DISPATCHER_CUSTOM, 0), TRP_EINVAL); /* without execute */
    UNIT_EQUAL(add("again", (trp_dispatcher_kind)77, 0), TRP_EINVAL);
    UNIT_EQUAL(add("again", TRP_DISPATCHER_POOL, TRP_DISPATCHER_THREADS_MAX), TRP_OK);
    UNIT_EQUAL(add("more", TRP_DISPATCHER_POOL, TRP_DISPATCHER_THREADS_MAX + 1), TRP_EINVAL);
    memset(long_id, 'x', sizeof long_id);
    long_id[TRP_DISPATCHER_ID_BYTES_MAX + 1] = 0;
    UNIT_EQUAL(add(long_id, TRP_DISPATCHER_POOL, 1), TRP_EINVAL);
    long_id[TRP_DISPATCHER_ID_BYTES_MAX] = 0;
    UNIT_EQUAL(add(long_id, TRP_DISPATCHER_POOL, 1), TRP_OK);
    UNIT_EQUAL(add("", TRP_DISPATCHER_POOL, 1), TRP_EINVAL);
    end();
}

/* TRP_THROUGHPUT_MAX, TRP_DISPATCHER_THREADS_FACTOR_MAX */
static void
numbers_of_a_dispatcher_end_at_their_limits(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;

    start(0);
    options.kind = TRP_DISPATCHER_POOL;
    options.throughput = TRP_THROUGHPUT_MAX;
    options.threads_factor = TRP_DISPATCHER_THREADS_FACTOR_MAX;
    options.threads_max = 3;
    options.threads_min = 1;
    UNIT_EQUAL(trp_dispatcher_register(system_, "most", &options), TRP_OK);
    UNIT_EQUAL(info("most").throughput, TRP_THROUGHPUT_MAX);
    UNIT_EQUAL(info("most").threads_max, 3);
    options.throughput++;
    UNIT_EQUAL(trp_dispatcher_register(system_, "more", &options), TRP_EINVAL);
    options.throughput = 0;
    options.threads_factor += 0.5;
    UNIT_EQUAL(trp_dispatcher_register(system_, "more", &options), TRP_EINVAL);
    end();
}

static void
dispatchers_end_at_their_limit(void)
{
    trp_err err = TRP_OK;
    char id[16];
    int made = 0;

    start(0);
    while (made <= TRP_DISPATCHERS_MAX && err == TRP_OK) {
        snprintf(id, sizeof id, "d%d", made++);
        err = add(id, TRP_DISPATCHER_CALLING, 0);
    }
    UNIT_EQUAL(err, TRP_ELIMIT);
    UNIT_EQUAL(made - 1 + 8, TRP_DISPATCHERS_MAX); /* eight are built in */
    end();
}

/* DISP-9, DISP-10: ceil(cores * factor) within the bounds. */
static void
the_number_of_threads_follows_the_cores_within_bounds(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    uint32_t want;

    start(0);
    options.kind = TRP_DISPATCHER_POOL;
    options.threads_min = 1;
    options.threads_factor = 1.5;
    options.threads_max = 1000;
    want = (uint32_t)((cores * 3 + 1) / 2);
    UNIT_EQUAL(trp_dispatcher_register(system_, "exact", &options), TRP_OK);
    UNIT_EQUAL(info("exact").threads_max, want);
    options.threads_min = want + 1;
    UNIT_EQUAL(trp_dispatcher_register(system_, "least", &options), TRP_OK);
    UNIT_EQUAL(info("least").threads_max, want + 1);
    options.threads_min = 1;
    options.threads_factor = 1000.0;
    UNIT_EQUAL(trp_dispatcher_register(system_, "most", &options), TRP_OK);
    UNIT_EQUAL(info("most").threads_max, 1000);
    options.threads_min = 1001;
    UNIT_EQUAL(trp_dispatcher_register(system_, "crossed", &options), TRP_EINVAL);
    options = (trp_dispatcher_options)TRP_DISPATCHER_OPTIONS_INIT;
    options.kind = TRP_DISPATCHER_POOL;
    UNIT_EQUAL(trp_dispatcher_register(system_, "plain", &options), TRP_OK);
    want = (uint32_t)cores * 3 < 8 ? 8 : (uint32_t)cores * 3 > 64 ? 64 : (uint32_t)cores * 3;
    UNIT_EQUAL(info("plain").threads_max, want);
    options.threads_min = 100; /* beyond the default of the other bound: the given one counts */
    UNIT_EQUAL(trp_dispatcher_register(system_, "many", &options), TRP_OK);
    UNIT_EQUAL(info("many").threads_max, 100);
    options.threads_min = 0;
    options.kind = TRP_DISPATCHER_AFFINITY; /* one for each core */
    want = cores > 64 ? 64 : (uint32_t)cores;
    UNIT_EQUAL(trp_dispatcher_register(system_, "affine", &options), TRP_OK);
    UNIT_EQUAL(info("affine").threads_max, want);
    end();
}

/* DISP-3, DISP-4, DISP-12, A4J-29, UJ-25, TRP-04: sent = handled + dead letters on each kind. */
static void
no_kind_of_dispatcher_loses_a_message(void)
{
    static const char *const kinds[] = { "default",  "pinned",         "blocking", "pool",
                                         "affinity", "calling-thread", "system" };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        start(i % 2 == 0 ? 0 : 5);
        UNIT_EQUAL(add("pool", TRP_DISPATCHER_POOL, 3), TRP_OK);
        conserve(kinds[i], false);
        end();
        start(7);
        UNIT_EQUAL(add("pool", TRP_DISPATCHER_POOL, 3), TRP_OK);
        conserve(kinds[i], true);
        end();
    }
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* DISP-4, SYS-38: a thread of its own, the same for life; gone with the actor. */
static void
a_pinned_actor_has_a_thread_of_its_own_for_life(void)
{
    enum { MESSAGES = 50 };
    trp_ref a, b;

    start(0);
    reset();
    a = spawn(&noter, "pinned");
    b = spawn(&noter, "pinned");
    for (uint64_t i = 0; i < MESSAGES; i++) {
        tell(a, &dispatched_work_type, 1, nobody);
        tell(b, &dispatched_work_type, 2, nobody);
        UNIT_WAIT(atomic_load(&handled) == 2 * (i + 1), 5000);
    }
    for (int i = 2; i < 2 * MESSAGES; i++) {
        int first = seen[0] == seen[i] ? 0 : 1;

        UNIT_TRUE(pthread_equal(seen_thread[first], seen_thread[i]));
    }
    UNIT_FALSE(pthread_equal(seen_thread[0], seen_thread[1]));
    UNIT_EQUAL(info("pinned").threads, 2);
    UNIT_EQUAL(trp_system_graceful_stop(system_, a, 60000), TRP_OK);
    UNIT_WAIT(info("pinned").threads == 1, 5000);
    end();
}

/* DISP-10, SYS-38: grows up to its bound and no further, and idle threads end. */
static void
a_blocking_dispatcher_grows_to_its_bound_and_shrinks_again(void)
{
    enum { THREADS = 3 };
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trp_ref refs[THREADS + 1];

    start(0);
    reset();
    options.kind = TRP_DISPATCHER_BLOCKING;
    options.threads_min = THREADS;
    options.threads_max = THREADS;
    options.keep_alive_ms = 20;
    UNIT_EQUAL(trp_dispatcher_register(system_, "slow", &options), TRP_OK);
    for (int i = 0; i <= THREADS; i++) {
        refs[i] = spawn(&noter, "slow");
        tell(refs[i], &dispatched_block_type, (uint64_t)i, nobody);
    }
    UNIT_WAIT(atomic_load(&gate_waiting) == THREADS, 5000);
    UNIT_EQUAL(info("slow").threads, THREADS); /* and one actor waits for a thread */
    UNIT_EQUAL(info("slow").actors, THREADS + 1);
    UNIT_EQUAL(atomic_load(&gate_waiting), THREADS);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == THREADS + 1, 5000);
    UNIT_WAIT(info("slow").threads == 0, 5000);
    tell(refs[0], &dispatched_work_type, 9, nobody); /* and grows again */
    UNIT_WAIT(atomic_load(&handled) == 1, 5000);
    end();
}

static _Atomic int ran;
static pthread_t ran_on;

static void
run_function(void *arg)
{
    dispatched_work work = { 5, TRP_REF_NONE };

    ran_on = pthread_self();
    if (arg != NULL) {
        UNIT_EQUAL(trp_system_try_tell(system_, *(trp_ref *)arg, &dispatched_work_type, &work,
                                       sizeof(work)),
                   TRP_OK);
    }
    atomic_fetch_add(&ran, 1);
}

/* DISP-8 (shutdown-timeout): without actors the threads end sooner. */
static void
a_dispatcher_without_actors_lets_its_threads_go(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trp_ref ref;

    start(0);
    reset();
    options.kind = TRP_DISPATCHER_POOL;
    options.threads_max = 2;
    options.keep_alive_ms = 3600000;
    options.shutdown_timeout_ms = 20;
    UNIT_EQUAL(trp_dispatcher_register(system_, "mine", &options), TRP_OK);
    ref = spawn(&noter, "mine");
    tell(ref, &dispatched_work_type, 1, nobody);
    UNIT_WAIT(atomic_load(&handled) == 1, 5000);
    UNIT_TRUE(info("mine").threads > 0);
    trp_system_stop_actor(system_, ref);
    UNIT_WAIT(info("mine").threads == 0, 5000);
    UNIT_EQUAL(info("mine").actors, 0);
    atomic_store(&ran, 0);
    UNIT_EQUAL(trp_dispatcher_execute(system_, "mine", run_function, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&ran) == 1 && info("mine").threads == 0, 5000); /* of a function, too */
    end();
}

/* DISP-3, SYS-38: what blocks in one pool does not hold up another. */
static void
pools_are_bulkheads(void)
{
    trp_ref blocked, free_one;

    start(0);
    reset();
    UNIT_EQUAL(add("one", TRP_DISPATCHER_POOL, 1), TRP_OK);
    UNIT_EQUAL(add("two", TRP_DISPATCHER_POOL, 1), TRP_OK);
    blocked = spawn(&noter, "one");
    free_one = spawn(&noter, "two");
    tell(blocked, &dispatched_block_type, 1, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    tell(free_one, &dispatched_work_type, 2, nobody);
    UNIT_WAIT(atomic_load(&handled) == 1, 5000);
    UNIT_EQUAL(atomic_load(&gate_waiting), 1);
    atomic_store(&gate_open, 1);
    end();
}

/* DISP-11, DISP-3: no more than throughput messages before the next actor has its turn. */
static void
throughput_of_a_dispatcher_makes_actors_take_turns(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trp_ref a, b;
    int longest = 0, run = 0;

    start(0);
    reset();
    options.kind = TRP_DISPATCHER_POOL;
    options.threads_min = options.threads_max = 1;
    options.throughput = 3;
    UNIT_EQUAL(trp_dispatcher_register(system_, "turns", &options), TRP_OK);
    UNIT_EQUAL(info("turns").throughput, 3);
    a = spawn(&noter, "turns");
    b = spawn(&noter, "turns");
    tell(a, &dispatched_block_type, 1, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    for (int i = 0; i < 9; i++) {
        tell(a, &dispatched_work_type, 1, nobody);
        tell(b, &dispatched_work_type, 2, nobody);
    }
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 18, 5000);
    for (int i = 0; i < 10; i++) { /* both have mail so long: no overload yet, no longer turn */
        run = i > 0 && seen[i] == seen[i - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
        if (i == 2) {
            UNIT_EQUAL(seen[i], 1);
        }
    }
    UNIT_EQUAL(seen[3], 2); /* the fourth is the other's */
    end();
}

static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t until = unit_now_ms() + 8;

    (void)ctx;
    (void)state;
    note(((const dispatched_work *)trp_msg_payload(msg))->number);
    while (unit_now_ms() < until) {
    }
    return TRP_OK;
}
static const trp_behaviour slow = {
    .size = sizeof(trp_behaviour), .name = "slow", .version = 1, .receive = slow_receive
};

/* DISP-8 (throughput-deadline-time): a turn also ends when its time is over. */
static void
a_deadline_ends_a_turn_before_its_messages_do(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    int changes = 0;
    trp_ref a, b, gate;

    start(0);
    reset();
    options.kind = TRP_DISPATCHER_POOL;
    options.threads_min = options.threads_max = 1;
    options.throughput = 1000;
    options.throughput_deadline_ms = 1;
    UNIT_EQUAL(trp_dispatcher_register(system_, "timed", &options), TRP_OK);
    gate = spawn(&noter, "timed");
    a = spawn(&slow, "timed");
    b = spawn(&slow, "timed");
    tell(gate, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    for (int i = 0; i < 4; i++) {
        tell(a, &dispatched_work_type, 1, nobody);
        tell(b, &dispatched_work_type, 2, nobody);
    }
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 9, 5000);
    for (int i = 2; i < 9; i++) {
        changes += seen[i] != seen[i - 1];
    }
    UNIT_EQUAL(changes, 7); /* a b a b: a message is longer than the deadline */
    end();
}

/* ---- functions ------------------------------------------------------------------------------- */

static _Atomic uint32_t with_sender, without_sender;

static trp_err
looks_who_asks(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    atomic_fetch_add(trp_ref_is_none(trp_sender(ctx)) ? &without_sender : &with_sender, 1);
    return TRP_OK;
}
static const trp_behaviour looks = { .size = sizeof(looks),
                                     .name = "looks",
                                     .receive = looks_who_asks };

/* DISP-1: a dispatcher runs plain functions, too. */
static void
dispatchers_run_functions(void)
{
    static const char *const ids[] = { "default", "pinned", "blocking", "affinity", "system" };
    trp_ref ref;

    start(0);
    reset();
    ref = spawn(&looks, NULL);
    atomic_store(&ran, 0);
    atomic_store(&with_sender, 0);
    atomic_store(&without_sender, 0);
    for (int i = 0; i < 5; i++) {
        UNIT_EQUAL(trp_dispatcher_execute(system_, ids[i], run_function, &ref), TRP_OK);
        UNIT_WAIT(atomic_load(&ran) == i + 1, 5000);
        UNIT_FALSE(pthread_equal(ran_on, pthread_self()));
        UNIT_WAIT(atomic_load(&without_sender) == (uint32_t)i + 1, 5000);
    }
    UNIT_EQUAL(trp_dispatcher_execute(system_, "calling-thread", run_function, &ref), TRP_OK);
    UNIT_EQUAL(atomic_load(&ran), 6);
    UNIT_TRUE(pthread_equal(ran_on, pthread_self()));
    UNIT_WAIT(atomic_load(&without_sender) == 6, 5000);
    UNIT_EQUAL(atomic_load(&with_sender), 0); /* not who ran there before either */
    UNIT_EQUAL(trp_dispatcher_execute(system_, "default", NULL, NULL), TRP_EINVAL);
    end();
}

static void
hold(void *arg)
{
    (void)arg;
    atomic_fetch_add(&gate_waiting, 1);
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    atomic_fetch_sub(&gate_waiting, 1);
    atomic_fetch_add(&ran, 1);
}

/* A function that has not begun does not run, and its memory is freed (address sanitizer). */
static void
functions_that_have_not_begun_end_with_the_system(void)
{
    start(0);
    reset();
    atomic_store(&ran, 0);
    UNIT_EQUAL(add("narrow", TRP_DISPATCHER_POOL, 1), TRP_OK);
    for (int i = 0; i < 5; i++) {
        UNIT_EQUAL(trp_dispatcher_execute(system_, "narrow", hold, NULL), TRP_OK);
    }
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    atomic_store(&gate_open, 1);
    trp_system_free(system_);
    UNIT_TRUE(atomic_load(&ran) >= 1);
}

/* ---- the program's own executor -------------------------------------------------------------- */

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static trp_dispatcher_job *own_jobs[SEEN_MAX];
static uint32_t own_first, own_last;

static void
own_execute(void *arg, trp_dispatcher_job *job)
{
    UNIT_TRUE(arg == &own_first);
    pthread_mutex_lock(&own_lock);
    own_jobs[own_last++ % SEEN_MAX] = job;
    pthread_mutex_unlock(&own_lock);
}

static bool
own_run_one(void)
{
    trp_dispatcher_job *job = NULL;

    pthread_mutex_lock(&own_lock);
    if (own_first != own_last) {
        job = own_jobs[own_first++ % SEEN_MAX];
    }
    pthread_mutex_unlock(&own_lock);
    if (job != NULL) {
        trp_dispatcher_job_run(system_, job);
    }
    return job != NULL;
}

static _Atomic int own_over;

static void *
own_thread(void *arg)
{
    (void)arg;
    while (!atomic_load(&own_over)) {
        if (!own_run_one()) {
            unit_pause();
        }
    }
    return NULL;
}

/* DISP-7: actors run where the program says: here on this thread, one turn at a time. */
static void
a_program_brings_its_own_executor(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    pthread_t threads[2];
    trp_ref ref;

    start(4);
    reset();
    options.kind = TRP_DISPATCHER_CUSTOM;
    options.execute = own_execute;
    options.arg = &own_first;
    UNIT_EQUAL(trp_dispatcher_register(system_, "own", &options), TRP_OK);
    ref = spawn(&noter, "own");
    for (uint64_t i = 0; i < 10; i++) {
        tell(ref, &dispatched_work_type, i, nobody);
    }
    UNIT_EQUAL(atomic_load(&handled), 0);
    UNIT_TRUE(own_run_one());
    UNIT_EQUAL(atomic_load(&handled), 4); /* one turn: throughput */
    while (own_run_one()) {
    }
    UNIT_EQUAL(atomic_load(&handled), 10);
    for (uint32_t i = 0; i < 10; i++) {
        UNIT_EQUAL(seen[i], i);
        UNIT_TRUE(pthread_equal(seen_thread[i], pthread_self()));
    }
    atomic_store(&own_over, 0);
    for (int i = 0; i < 2; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, own_thread, NULL) == 0);
    }
    conserve("own", true);
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    atomic_store(&own_over, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    trp_system_free(system_);
}

UNIT_BEGIN("dispatcher")
UNIT(dispatchers_are_registered_and_found_by_id)
UNIT(dispatchers_end_at_their_limit)
UNIT(numbers_of_a_dispatcher_end_at_their_limits)
UNIT(the_number_of_threads_follows_the_cores_within_bounds)
UNIT(no_kind_of_dispatcher_loses_a_message)
UNIT(a_pinned_actor_has_a_thread_of_its_own_for_life)
UNIT(a_blocking_dispatcher_grows_to_its_bound_and_shrinks_again)
UNIT(a_dispatcher_without_actors_lets_its_threads_go)
UNIT(pools_are_bulkheads)
UNIT(throughput_of_a_dispatcher_makes_actors_take_turns)
UNIT(a_deadline_ends_a_turn_before_its_messages_do)
UNIT(dispatchers_run_functions)
UNIT(functions_that_have_not_begun_end_with_the_system)
UNIT(a_program_brings_its_own_executor)
UNIT_END
