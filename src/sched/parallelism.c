/* parallelism.c - the parallelism limit: how many workers of the pool run, found by trials.
 *
 * Why.     A cache line that crosses between two cores costs 50 to 300 ns, a message that stays on
 *          one 20 ns. When actors do little but talk, two cores get less done than one, and no rule
 *          about a single steal can see that. So the throughput is measured with fewer and with
 *          more workers, and the better limit stays.
 * Shape.   Workers with an index below `limit` run; the others hand over their tasks and are
 *          parked. States of the trial:
 *            REST    until the next trial is due (8 ms; 32 ms after a change and after the first
 *                    trial; three times as long after each failed one, at most 512 ms)
 *            WATCH   0.5 ms: are messages short? If not there is nothing to gain: REST
 *            SETTLE, MEASURE   0.2 and 2 ms, three times with each of the two limits by turns;
 *                    fewer times if the first or second pair is clear, or if more workers did far
 *                    less for half a millisecond
 *          The first trial begins with half of the workers: actors that share one core are spread
 *          only if a measurement shows a gain.
 *          A measurement covers all phases of a workload: an actor that spawns a thousand others
 *          takes a third of a millisecond for a third of the work that they do afterwards. The
 *          median of three counts, so that a thread that lost its core for a while does not
 *          matter. A worker that gains little still costs a core, so more workers must do 10 %
 *          more work to be added and 6 % more to stay. Limits are powers of two.
 * Must hold.
 *   parallelism-G1  A parked worker has no task: it hands over its tasks before it waits, and a
 *       thread that defers a task to it later moves that one on. (tasks_hand_over,
 *       trpi_defer_push)
 *   parallelism-G2  The first parked worker checks every millisecond for a worker without progress,
 *       runs the tasks that wait there, and requests a watch of the length of messages. (sched-S2)
 *   parallelism-G3  When all running workers sleep, the limit becomes the whole pool again, and no
 *       worker stays parked. (sched-S3)
 *   parallelism-G4  A limit of 0 is final.
 * Tests.   tests/unit/sched/parallelism_trial_test.c, parallelism_test.c
 */
#include "sched/worker.h"

#include "base/atomics.h"

#define INTERVAL_NS_FIRST 1500000u /* while there was too little work for a first trial */
#define INTERVAL_NS_MIN 8000000u
#define INTERVAL_NS_END 32000000u
#define INTERVAL_NS_MAX 512000000u
#define WATCH_NS 500000u
#define SETTLE_NS 200000u
#define MEASURE_NS 2000000u
#define HOPELESS_NS 500000u /* a measurement this old may be given up */
#define ADD_PERCENT 110u    /* of the work of fewer workers, to take more of them */
#define STAY_PERCENT 106u   /* the same, to keep them */
/* The other limit is hopeless, or clearly better: after one pair of measurements, and after two. */
#define HOPELESS_PERCENT_1 75u
#define HOPELESS_PERCENT_2 90u
#define CLEAR_PERCENT_1 133u
#define CLEAR_PERCENT_2 115u
#define LOOK_NS 20000u
#define RETAINED_STUCK_NS 200000u /* beside a run this long no task stays retained */
#define TICK_NS 1000000u          /* period of the first parked worker */
/* Below that rate a message takes so long that a crossing cache line does not matter, and a
 * measurement would count too few messages. */
#define WORK_PER_S_MIN 500000u

enum { REST, WATCH, SETTLE, MEASURE };

/* Wake all parked workers: they read the limit again. */
static void
parked_wake_all(trpi_sched *sched)
{
    for (uint32_t i = 0; i < sched->pool_count; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        if (worker != NULL && atomic_exchange_explicit(&worker->parked, 0, SEQ_CST) != 0) {
            trpi_futex_wake(&worker->parked);
        }
    }
}

static void
limit_set(trpi_sched *sched, uint32_t limit)
{
    uint32_t before = atomic_load_explicit(&sched->limit, RELAXED);

    while (before != 0 && before != limit) { /* parallelism-G4 */
        /* seq_cst: pairs with `parked`, which a worker stores before it reads the limit */
        if (atomic_compare_exchange_weak_explicit(&sched->limit, &before, limit, SEQ_CST,
                                                  RELAXED)) {
            parked_wake_all(sched);
            return;
        }
    }
}

void
trpi_parallelism_init(trpi_sched *sched)
{
    atomic_store_explicit(&sched->limit, sched->pool_count, RELAXED);
    sched->parallelism.interval_ns = INTERVAL_NS_MIN;
    sched->parallelism.first = true;
}

void
trpi_parallelism_stop(trpi_sched *sched)
{
    atomic_store_explicit(&sched->limit, 0, SEQ_CST);
    parked_wake_all(sched);
}

/* ---- trials: one worker at a time ------------------------------------------------------------ */

static uint64_t
work_done(trpi_sched *sched)
{
    uint64_t (*work)(void *data) = sched->options.ops->work;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < sched->pool_count; i++) {
        trpi_worker *worker = trpi_sched_worker(sched, i);

        sum += work != NULL ? work(worker->data) : atomic_load_explicit(&worker->progress, RELAXED);
    }
    return sum;
}

static void
trial_state_set(trpi_parallelism *trial, uint32_t state, uint64_t now, uint64_t ns)
{
    trial->state = state;
    trial->since_ns = now;
    trial->until_ns = now + ns;
}

static uint64_t
work_per_s(trpi_sched *sched, uint64_t now)
{
    const trpi_parallelism *trial = &sched->parallelism;

    return (work_done(sched) - trial->work) * 1000000u / ((now - trial->since_ns) / 1000u + 1);
}

static void
watch_begin(trpi_sched *sched, uint64_t now)
{
    trpi_parallelism *trial = &sched->parallelism;

    trial_state_set(trial, WATCH, now, WATCH_NS);
    trial->work = work_done(sched);
}

/* The watch is over: begin a trial if messages are short. */
static void
watch_end(trpi_sched *sched, uint64_t now)
{
    trpi_parallelism *trial = &sched->parallelism;
    uint32_t limit = atomic_load_explicit(&sched->limit, RELAXED), before = limit;
    uint32_t all = sched->pool_count;

    if (work_per_s(sched, now) < WORK_PER_S_MIN) {
        limit_set(sched, all);
        limit = 0;
    } else if (trial->requested && now < trial->due_ns) { /* the machine had paused a thread */
        trial_state_set(trial, REST, now, trial->due_ns - now);
        trial->requested = false;
        return;
    }
    trial->requested = false;
    if (limit == 0) {
        trial_state_set(trial, REST, now, trial->first ? INTERVAL_NS_FIRST : INTERVAL_NS_MIN);
        return;
    }
    if (trial->first) {
        trial->first = false;
        trial->up = true;
        trial->interval_ns = INTERVAL_NS_END;
        limit = (before + 1) / 2;
        limit_set(sched, limit);
    }
    trial->up = limit < all && (trial->up || limit == 1);
    trial->limits[0] = limit;
    trial->limits[1] = !trial->up ? limit / 2 : limit * 2 < all ? limit * 2 : all;
    trial->measures = 0;
    trial_state_set(trial, SETTLE, now, limit == before ? 0 : SETTLE_NS); /* 0: settled already */
}

static uint64_t
rates_median(const uint64_t *rates)
{
    uint64_t least = rates[0] < rates[1] ? rates[0] : rates[1];
    uint64_t most = rates[0] < rates[1] ? rates[1] : rates[0];

    return rates[2] < least ? least : rates[2] > most ? most : rates[2];
}

static void
trial_end(trpi_sched *sched, uint64_t now, bool better)
{
    trpi_parallelism *trial = &sched->parallelism;

    if (better) {
        uint32_t limit = trial->limits[1];

        /* try further in this direction soon; later when its end is reached */
        trial->interval_ns =
            limit == 1 || limit == sched->pool_count ? INTERVAL_NS_END : INTERVAL_NS_MIN;
        trial_state_set(trial, REST, now, trial->interval_ns);
        return;
    }
    limit_set(sched, trial->limits[0]);
    trial->up = !trial->up;
    trial_state_set(trial, REST, now, trial->interval_ns);
    trial->interval_ns *= 3;
    if (trial->interval_ns > INTERVAL_NS_MAX) {
        trial->interval_ns = INTERVAL_NS_MAX;
    }
}

/* Is the other limit hopeless (-1) or far better (1)? 0: not clear yet. */
static int
trial_verdict(const trpi_parallelism *trial)
{
    uint32_t pairs = trial->measures / 2;
    uint64_t was = trial->rates[0][0], is = trial->rates[1][0];
    bool one = pairs == 1;

    if (trial->measures % 2 != 0) {
        return 0;
    }
    for (uint32_t i = 1; i < pairs; i++) {
        was += trial->rates[0][i];
        is += trial->rates[1][i];
    }
    if (is * 100u < was * (one ? HOPELESS_PERCENT_1 : HOPELESS_PERCENT_2)) {
        return -1;
    }
    return is * 100u > was * (one ? CLEAR_PERCENT_1 : CLEAR_PERCENT_2) ? 1 : 0;
}

static void
measure_end(trpi_sched *sched, uint64_t now)
{
    trpi_parallelism *trial = &sched->parallelism;
    uint32_t side = trial->measures % 2;
    int clear;

    trial->rates[side][trial->measures / 2] = work_per_s(sched, now);
    trial->measures++;
    clear = trial_verdict(trial); /* not 0 only while the other limit is set */
    if (clear != 0) {
        trial_end(sched, now, clear > 0);
    } else if (trial->measures == 2 * TRPI_PARALLELISM_PAIRS) {
        uint64_t was = rates_median(trial->rates[0]), is = rates_median(trial->rates[1]);

        trial_end(sched, now,
                  trial->up ? is * 100u > was * ADD_PERCENT : is * STAY_PERCENT > was * 100u);
    } else {
        limit_set(sched, trial->limits[!side]);
        trial_state_set(trial, SETTLE, now, SETTLE_NS);
    }
}

/* Is the limit under measurement the larger one, with far less work done than by fewer workers? */
static bool
is_hopeless(trpi_sched *sched, uint64_t now)
{
    const trpi_parallelism *trial = &sched->parallelism;
    uint32_t fewer = trial->limits[0] > trial->limits[1];
    uint32_t count = (trial->measures + 1 - fewer) / 2; /* measurements of fewer workers so far */
    uint64_t sum = 0;

    if (trial->state != MEASURE || trial->measures % 2 == fewer || count == 0 ||
        now - trial->since_ns < HOPELESS_NS) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += trial->rates[fewer][i];
    }
    return work_per_s(sched, now) * count * 100u < sum * HOPELESS_PERCENT_1;
}

static void
trial_step(trpi_sched *sched, uint64_t now)
{
    trpi_parallelism *trial = &sched->parallelism;

    if (now < trial->until_ns && !is_hopeless(sched, now)) {
        return;
    }
    switch (trial->state) {
    case REST:
        watch_begin(sched, now);
        break;
    case WATCH:
        watch_end(sched, now);
        break;
    case SETTLE:
        trial_state_set(trial, MEASURE, now, MEASURE_NS);
        trial->work = work_done(sched);
        break;
    default:
        measure_end(sched, now);
        break;
    }
}

static bool
trial_try_lock(trpi_parallelism *trial)
{
    return atomic_load_explicit(&trial->locked, RELAXED) == 0 &&
           atomic_exchange_explicit(&trial->locked, 1, memory_order_acquire) == 0;
}

static void
trial_unlock(trpi_parallelism *trial)
{
    atomic_store_explicit(&trial->locked, 0, memory_order_release);
}

/* A retained task waits for its worker's next run. When the present run is long and no other worker
 * is idle enough to steal, it would wait as long: so each running worker watches one other worker
 * at a time and steals its retained task then. */
static void
retained_task_rescue(trpi_worker *worker, uint64_t now)
{
    trpi_sched *sched = worker->sched;
    trpi_worker *victim = trpi_sched_worker(sched, worker->watched_index);
    uint64_t progress = atomic_load_explicit(&victim->progress, RELAXED);
    trpi_task *task;

    if (victim != worker && progress == worker->watched_progress) {
        if (now - worker->watched_since_ns < RETAINED_STUCK_NS) {
            return;
        }
        task = trpi_retained_steal(victim);
        if (task != NULL) {
            trpi_ring_push(worker, task);
        }
    }
    worker->watched_index = (worker->watched_index + 1) % sched->pool_count;
    victim = trpi_sched_worker(sched, worker->watched_index);
    worker->watched_progress = atomic_load_explicit(&victim->progress, RELAXED);
    worker->watched_since_ns = now;
}

void
trpi_parallelism_adjust(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    uint64_t now;

    if (sched->pool_count == 1) {
        worker->parallelism_stride = UINT32_MAX;
        return;
    }
    now = trpi_sched_now(sched);
    /* Reading the clock costs 25 ns: not more often than every 20 to 40 us. */
    if (now - worker->parallelism_checked_ns < LOOK_NS) {
        worker->parallelism_stride = 2 * worker->parallelism_stride + 1;
    } else {
        worker->parallelism_stride /= 2;
    }
    worker->parallelism_checked_ns = now;
    retained_task_rescue(worker, now);
    if (trial_try_lock(&sched->parallelism)) {
        trial_step(sched, now);
        trial_unlock(&sched->parallelism);
    }
}

/* Let all workers run again, as at the start. */
static void
trial_restart(trpi_sched *sched)
{
    trpi_parallelism *trial = &sched->parallelism;

    if (trial_try_lock(trial)) {
        trial_state_set(trial, REST, trpi_sched_now(sched), 0);
        trial->up = trial->requested = false;
        trial->first = true;
        trial->interval_ns = INTERVAL_NS_MIN;
        trial_unlock(trial);
    }
    limit_set(sched, sched->pool_count);
}

/* A worker seems to be stuck: request a watch of the length of messages. */
static void
watch_request(trpi_sched *sched)
{
    trpi_parallelism *trial = &sched->parallelism;

    if (trial_try_lock(trial)) {
        if (trial->state == REST && !trial->requested) {
            trial->requested = true;
            trial->due_ns = trial->until_ns;
            trial_state_set(trial, REST, trpi_sched_now(sched), 0);
        }
        trial_unlock(trial);
    }
}

/* ---- parked workers -------------------------------------------------------------------------- */

static void
tasks_hand_over(trpi_worker *worker, bool first)
{
    trpi_task_list list = { NULL, NULL };
    uint32_t count = 0;
    trpi_task *task;

    while ((task = trpi_local_take(worker)) != NULL ||
           (task = trpi_handoff_exchange(worker, NULL)) != NULL) {
        trpi_task_list_push(&list, task);
        count++;
    }
    trpi_inject_list(worker->sched, &list, count, first);
    if (atomic_load_explicit(&worker->deferred.count, RELAXED) != 0) {
        trpi_defer_drain(worker);
        count++;
    }
    for (uint32_t i = 0; count > 0 && i < worker->index; i++) { /* so that they poll it soon */
        atomic_store_explicit(&trpi_sched_worker(worker->sched, i)->inject_countdown, 0, RELAXED);
    }
}

static void
progress_note(trpi_worker *worker)
{
    /* release: a quiescent state (retire.c) */
    atomic_store_explicit(&worker->progress, atomic_load_explicit(&worker->progress, RELAXED) + 1,
                          memory_order_release);
}

/* Run tasks that wait behind a stuck worker, until it makes progress. (parallelism-G2) */
static void
help_stuck_worker(trpi_worker *worker, trpi_worker *stuck)
{
    trpi_sched *sched = worker->sched;
    uint64_t progress = atomic_load_explicit(&stuck->progress, RELAXED);

    while (atomic_load_explicit(&stuck->progress, RELAXED) == progress &&
           worker->index >= atomic_load_explicit(&sched->limit, RELAXED) &&
           !trpi_sched_is_stopping(sched)) {
        trpi_task *task = trpi_stuck_steal(worker, stuck, TRPI_RING_TASKS);
        trpi_run_result result;

        if (task == NULL) {
            task = trpi_inject_pop(worker, 1);
        }
        if (task == NULL) {
            return;
        }
        worker->trims = 0;
        do {
            result = sched->options.ops->run(worker->data, task, TRPI_HANDOFF_OFF);
            progress_note(worker);
        } while (result == TRPI_RUN_CONTINUE);
        trpi_worker_settle(worker, task, result);
        tasks_hand_over(worker, false);
    }
}

/* Check all running workers, and help stuck ones. false: all of them sleep. runs: their progress at
 * the last check. */
static bool
running_workers_check(trpi_worker *worker, uint64_t *runs)
{
    trpi_sched *sched = worker->sched;
    uint32_t limit = atomic_load_explicit(&sched->limit, RELAXED);
    bool injected = atomic_load_explicit(&sched->inject_count, RELAXED) != 0;
    bool awake = false;

    for (uint32_t i = 0; i < limit && i < worker->index; i++) {
        trpi_worker *other = trpi_sched_worker(sched, i);
        uint64_t before = runs[i];

        runs[i] = atomic_load_explicit(&other->progress, RELAXED);
        if (atomic_load_explicit(&other->asleep, SEQ_CST)) {
            continue;
        }
        awake = true;
        if (runs[i] == before && (injected || trpi_has_tasks(other))) {
            watch_request(sched);
            help_stuck_worker(worker, other);
        }
    }
    return awake;
}

/* Return the wait of the first parked worker: until the next step of a trial. */
static uint64_t
parked_wait_ns(trpi_sched *sched)
{
    trpi_parallelism *trial = &sched->parallelism;
    uint64_t ns = TICK_NS;

    if (trial_try_lock(trial)) {
        uint64_t now = trpi_sched_now(sched);

        if (trial->state != REST && trial->until_ns < now + TICK_NS) {
            ns = trial->until_ns > now ? trial->until_ns - now : 1;
        }
        trial_unlock(trial);
    }
    return ns;
}

void
trpi_parallelism_park(trpi_worker *worker)
{
    trpi_sched *sched = worker->sched;
    uint64_t runs[TRPI_POOL_MAX];

    for (uint32_t i = 0; i < TRPI_POOL_MAX; i++) {
        runs[i] = UINT64_MAX;
    }
    tasks_hand_over(worker, true); /* parallelism-G1; in front: they were about to run */
    trpi_wake_for_push(sched);     /* another worker must search in our place (sleep-L2) */
    if (worker->trims == 0) {
        trpi_trim(worker, TRPI_TRIMS_OWN);
    }
    for (;;) {
        uint32_t limit;

        atomic_store_explicit(&worker->asleep, true, SEQ_CST); /* quiescent (retire.c) */
        atomic_store_explicit(&worker->parked, 1, SEQ_CST);
        limit = atomic_load_explicit(&sched->limit, SEQ_CST);
        if (worker->index >= limit && limit != 0) {
            (void)trpi_futex_wait(&worker->parked, 1,
                                  worker->index == limit ? parked_wait_ns(sched) : 0);
        }
        atomic_store_explicit(&worker->parked, 0, RELAXED);
        atomic_store_explicit(&worker->asleep, false, SEQ_CST);
        progress_note(worker);
        limit = atomic_load_explicit(&sched->limit, RELAXED);
        if (worker->index < limit || limit == 0) {
            return;
        }
        if (worker->index == limit) {
            if (!running_workers_check(worker, runs)) { /* parallelism-G3 */
                trial_restart(sched);
                return;
            }
            trpi_parallelism_adjust(worker);
        }
    }
}
