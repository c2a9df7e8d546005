/* churn_test.c - spawn, tell through stale references, stop by system message and by poison pill,
 * all at once.
 *
 * Why.     The token, the generations and the free list have rules that only fail when everything
 *          races: a late message for a slot that is being taken, a stop beside a poison pill, a
 *          push beside going idle.
 * Law.     Every tell is processed once or is a dead letter once: sent = processed + dead, and when
 *          the churn has ended every actor that was spawned has stopped.
 * Usage.   churn_test [--seconds N] [--threads N] [--seed N]; 5 s by default. Prints its seed.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/troupe.h>

#define REFS 4096u
#define ROOTS 8u
#define STEPS 50u
#define TELLERS_MAX 2u
#define WAIT_MS 60000u

typedef struct shared {
    _Atomic uint64_t refs[REFS]; /* slot << 32 | generation; 0: none yet */
    _Atomic uint64_t told;       /* by tells, poison pills among them */
    _Atomic uint64_t received;   /* seen by a receive */
    _Atomic uint64_t poisons;
    _Atomic uint64_t stops;
    _Atomic int ending;
    _Atomic uint32_t roots_done;
    uint64_t seed;
    _Atomic uint32_t node;
} shared;

static shared all;

static uint64_t
now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static uint64_t
random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static trp_ref
ref_of(uint64_t packed)
{
    trp_ref ref = { all.node, (uint32_t)(packed >> 32), (uint32_t)packed, 0 };

    return ref;
}

static trp_err
child_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    (void)atomic_fetch_add_explicit(&all.received, 1, memory_order_relaxed);
    return TRP_OK;
}

static const trp_behaviour child = { .size = sizeof(trp_behaviour),
                                     .name = "child",
                                     .version = 1,
                                     .state_bytes = 8,
                                     .receive = child_receive };

typedef struct root_state {
    uint64_t random;
    uint64_t told, poisons, stops,
        received; /* added to the totals at the end: no shared line in the loop */
} root_state;

static void
tell_poison(trp_ctx *ctx, root_state *self, trp_ref to)
{
    trp_tell(ctx, to, &trp_poison_pill_type, NULL, 0);
    self->told++;
    self->poisons++;
}

static void
spawn_one(trp_ctx *ctx, root_state *self, uint32_t index, int poison_old)
{
    uint64_t old;
    trp_ref ref;

    if (trp_spawn(ctx, &child, NULL, &ref) != TRP_OK) {
        return;
    }
    all.node = ref.node; /* every root writes the same number */
    old = atomic_exchange(&all.refs[index], (uint64_t)ref.slot << 32 | ref.generation);
    if (old == 0) {
        return;
    }
    if (poison_old) {
        tell_poison(ctx, self, ref_of(old));
    } else {
        trp_stop(ctx, ref_of(old));
        self->stops++;
    }
}

static void
actor_step(trp_ctx *ctx, root_state *self)
{
    uint64_t r = random_next(&self->random);
    uint32_t index = (uint32_t)(r % REFS);
    uint32_t what = (uint32_t)(r >> 32) % 100u;
    uint64_t packed = atomic_load(&all.refs[index]);
    int64_t value = (int64_t)r;

    if (packed == 0 || what < 8) {
        spawn_one(ctx, self, index, what & 1);
    } else if (what < 12) {
        trp_stop(ctx, ref_of(packed));
        self->stops++;
    } else if (what < 14) {
        tell_poison(ctx, self, ref_of(packed));
    } else {
        trp_tell(ctx, ref_of(packed), &trp_i64_type, &value, sizeof value);
        self->told++;
    }
}

static void
root_end(trp_ctx *ctx, root_state *self)
{
    (void)atomic_fetch_add(&all.told, self->told);
    (void)atomic_fetch_add(&all.poisons, self->poisons);
    (void)atomic_fetch_add(&all.stops, self->stops);
    (void)atomic_fetch_add(&all.received, self->received);
    (void)atomic_fetch_add(&all.roots_done, 1);
    trp_stop(ctx, trp_self(ctx)); /* with all its children */
}

static trp_err
root_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    root_state *self = state;

    self->received++;
    if (self->random == 0) {
        self->random = (uint64_t) * (const int64_t *)trp_msg_payload(msg) | 1u;
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        actor_step(ctx, self);
    }
    if (atomic_load(&all.ending)) {
        root_end(ctx, self);
    } else {
        int64_t value = 0;

        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &value, sizeof value);
        self->told++;
    }
    return TRP_OK;
}

static const trp_behaviour root = TRP_BEHAVIOUR_INIT("root", root_state, root_receive);

static uint64_t
dead_sum(const trp_system_stats *stats)
{
    uint64_t sum = 0;

    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        sum += stats->dead_letters[i];
    }
    return sum;
}

/* From this thread, beside the workers: the injection queue and a foreign thread's context take
 * part. */
static void
tell_from_outside(trp_system *system, uint64_t until_ms)
{
    uint64_t random = all.seed ^ 0x9e3779b97f4a7c15u;
    uint64_t told = 0;

    while (now_ms() < until_ms) {
        for (int i = 0; i < 100; i++) {
            uint64_t packed = atomic_load(&all.refs[random_next(&random) % REFS]);
            int64_t value = (int64_t)random;

            if (packed == 0) {
                continue;
            }
            if (random % 50 == 0) {
                trp_system_stop_actor(system, ref_of(packed));
            } else {
                trp_system_tell(system, ref_of(packed), &trp_i64_type, &value, sizeof value);
                told++;
            }
        }
        (void)nanosleep(&(struct timespec){ 0, 100000 },
                        NULL); /* a load, not a wait: the workers do the most */
    }
    (void)atomic_fetch_add(&all.told, told);
}

static int
churn_fail(const char *what)
{
    (void)fprintf(stderr, "churn_test: %s\n", what);
    return 1;
}

static int
churn_run(trp_system *system, uint64_t seconds)
{
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t deadline;
    trp_ref ref;

    for (uint32_t i = 0; i < ROOTS; i++) {
        int64_t value = (int64_t)(all.seed + i * 7919u);

        if (trp_system_spawn(system, &root, NULL, &ref) != TRP_OK) {
            return churn_fail("cannot spawn");
        }
        trp_system_tell(system, ref, &trp_i64_type, &value, sizeof value);
        (void)atomic_fetch_add(&all.told, 1);
    }
    tell_from_outside(system, now_ms() + seconds * 1000u);
    atomic_store(&all.ending, 1);
    deadline = now_ms() + WAIT_MS;
    while (atomic_load(&all.roots_done) < ROOTS && now_ms() < deadline) {
        (void)nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    if (atomic_load(&all.roots_done) < ROOTS) {
        return churn_fail("a root got lost: its message to itself never came");
    }
    if (trp_system_stop(system, WAIT_MS) != TRP_OK) {
        return churn_fail("the tree did not stop");
    }
    /* The tree has ended; what was told to the dead may still be on its way to the dead letters. */
    deadline = now_ms() + WAIT_MS;
    do {
        (void)nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
        trp_system_stats_get(system, &stats);
    } while (all.told != stats.messages_processed + dead_sum(&stats) && now_ms() < deadline);
    (void)printf("told %" PRIu64 " received %" PRIu64 " poisons %" PRIu64 " stops %" PRIu64
                 " dead %" PRIu64 " processed %" PRIu64 " spawned %" PRIu64 " stopped %" PRIu64
                 "\n",
                 all.told, all.received, all.poisons, all.stops, dead_sum(&stats),
                 stats.messages_processed, stats.spawned, stats.stopped);
    if (all.told != stats.messages_processed + dead_sum(&stats)) {
        (void)fprintf(stderr, "churn_test: lost %" PRId64 " messages\n",
                      (int64_t)(all.told - stats.messages_processed - dead_sum(&stats)));
        return 1;
    }
    if (stats.spawned != stats.stopped) {
        return churn_fail("some actors never stopped");
    }
    return 0;
}

int
main(int argc, char **argv)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    uint64_t seconds = 5;
    int failed;

    all.seed = (uint64_t)time(NULL);
    options.workers = 2;
    options.log_level = TRP_LOG_ERROR;
    options.log_dead_letters = TRP_OFF;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            seconds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            options.workers = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            all.seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
    (void)printf("churn_test: replay with: churn_test --seed %" PRIu64
                 " --threads %u --seconds %" PRIu64 "\n",
                 all.seed, options.workers, seconds);
    if (trp_system_new("churn", &options, &system) != TRP_OK) {
        return churn_fail("cannot make a system");
    }
    failed = churn_run(system, seconds);
    trp_system_free(system);
    (void)printf("%s churn\n", failed ? "FAIL" : "PASS");
    return failed;
}
