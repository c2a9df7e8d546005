/* pool.h - one scheduler and its poller in a world whose sockets are counted, for tests of the
 * poller. Tasks with an id are the test's, others are calls. */
#ifndef TESTS_UNIT_IO_POOL_H
#define TESTS_UNIT_IO_POOL_H

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/world.h"
#include "io/poller.h"
#include "tests/unit/unit.h"

typedef struct pool_task {
    trpi_task task; /* first; id is not 0 */
    trpi_run_result (*run)(struct pool_task *task, trpi_worker *worker);
    _Atomic uint32_t runs;
    _Atomic bool go;
} pool_task;

static struct pool {
    trpi_world *real;
    trpi_world world;
    trpi_world_ops world_ops;
    trpi_net_ops net;
    trpi_sched *sched;
    trpi_poller *poller;
    /* calls of set_wait() that could wait, those of them that have ended, all, and set_wake() */
    _Atomic uint32_t waits, ended, looks, wakes;
    _Atomic uint64_t last_key; /* of set_add() */
    _Atomic uint64_t late_key; /* one more than a key that the next wait reports too; 0: none */
} pool;

static uint64_t
pool_mono_ns(trpi_world *world)
{
    (void)world;
    return trpi_world_mono_ns(pool.real);
}

static int
pool_wait(trpi_net_set *set, trpi_net_report *ret_reports, int most, uint64_t timeout_ns)
{
    uint64_t late;
    int count;

    atomic_fetch_add(timeout_ns == 0 ? &pool.looks : &pool.waits, 1);
    count = trpi_net_machine.set_wait(set, ret_reports, most, timeout_ns);
    if (timeout_ns != 0) {
        atomic_fetch_add(&pool.ended, 1);
    }
    if (count < most && (late = atomic_exchange(&pool.late_key, 0)) != 0) {
        ret_reports[count++] = (trpi_net_report){ late - 1, TRPI_NET_END };
    }
    return count;
}

static int
pool_add(trpi_net_set *set, int number, uint64_t key)
{
    atomic_store(&pool.last_key, key);
    return trpi_net_machine.set_add(set, number, key);
}

static void
pool_wake(trpi_net_set *set)
{
    atomic_fetch_add(&pool.wakes, 1);
    trpi_net_machine.set_wake(set);
}

static trpi_run_result
pool_run(void *data, trpi_task *task, uint32_t handoff)
{
    (void)handoff;
    if (task->id == 0) {
        trpi_call_task *call = (trpi_call_task *)(void *)task;

        return call->fn(call);
    }
    return ((pool_task *)(void *)task)
        ->run((pool_task *)(void *)task, *(trpi_worker * _Atomic *)data);
}

static void
pool_thread(void *arg, trpi_worker *worker)
{
    (void)arg;
    *(trpi_worker * _Atomic *)trpi_worker_data(worker) = worker; /* read by all_asleep(), too */
    trpi_worker_loop(worker);
}

static inline void
pool_world_open(void)
{
    UNIT_REQUIRE(trpi_world_real_new(&pool.real) == TRP_OK);
    pool.net = trpi_net_machine;
    pool.net.set_wait = pool_wait;
    pool.net.set_wake = pool_wake;
    pool.net.set_add = pool_add;
    pool.world_ops = *pool.real->ops;
    pool.world_ops.mono_ns = pool_mono_ns;
    pool.world_ops.net = &pool.net;
    pool.world = (trpi_world){ .ops = &pool.world_ops };
}

static inline void
pool_open(uint32_t workers)
{
    static const trpi_sched_ops ops = { .run = pool_run, .thread = pool_thread };
    trpi_sched_options options = { .workers = workers,
                                   .worker_bytes = sizeof(trpi_worker *),
                                   .world = &pool.world,
                                   .ops = &ops,
                                   .name = "pool" };

    pool_world_open();
    UNIT_REQUIRE(trpi_sched_new(&options, &pool.sched) == TRP_OK);
    UNIT_REQUIRE(trpi_sched_start(pool.sched) == TRP_OK);
    UNIT_REQUIRE(trpi_poller_new(pool.sched, &pool.world, &pool.poller) == TRP_OK);
}

/* A poller with a thread of its own. */
static inline void
pool_open_alone(void)
{
    pool_world_open();
    pool.sched = NULL;
    UNIT_REQUIRE(trpi_poller_thread_new(&pool.world, "alone", &pool.poller) == TRP_OK);
}

static inline void
pool_close(void)
{
    if (pool.sched != NULL) {
        UNIT_TRUE(trpi_sched_stop(pool.sched, 60000));
    }
    trpi_poller_free(pool.poller);
    trpi_sched_free(pool.sched);
    trpi_world_free(pool.real);
}

/* Two ends of a stream. */
static inline void
pool_pair(int pair[2])
{
    UNIT_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
}

/* Read all that there is; return its bytes. */
static inline uint32_t
pool_drain(int number)
{
    char bytes[256];
    ssize_t got;
    uint32_t sum = 0;

    while ((got = read(number, bytes, sizeof bytes)) > 0) {
        sum += (uint32_t)got;
    }
    return sum;
}

#endif
