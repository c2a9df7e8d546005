/* transfer.c - stm: transfers between accounts, by transactions and under one lock; agent: one
 * number that threads add to, by an agent and under a lock.
 *
 * As many threads as --threads says (0: 1) move an amount between two of 64 accounts, chosen at
 * random; or add to the number, and read it as often. `lock` is one mutex over plain numbers, which
 * is the shortest program that is right. Elapsed time, until the last change is made; the sum is
 * checked.
 */
#include <pthread.h>

#include <troupe/agent.h>
#include <troupe/stm.h>

#include "tests/bench/bench.h"

enum { ACCOUNTS = 64, THREADS_MAX = 64 };

typedef struct teller {
    pthread_t thread;
    uint64_t random, transfers;
    int from, to;
    int64_t read; /* so that a read is not optimised away */
} teller;

static trp_stm *stm;
static trp_stm_cell *cells[ACCOUNTS];
static int64_t plain[ACCOUNTS];
static pthread_mutex_t plain_lock = PTHREAD_MUTEX_INITIALIZER;

static void
accounts_choose(teller *t)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    t->from = (int)(t->random >> 33) % ACCOUNTS;
    t->to = (t->from + 1 + (int)(t->random >> 50) % (ACCOUNTS - 1)) % ACCOUNTS;
}

static trp_err
move_one(trp_txn *txn, void *arg)
{
    const teller *t = arg;
    int64_t from = 0, to = 0;
    trp_err err = trp_stm_read(txn, cells[t->from], &from);
    err = err != TRP_OK ? err : trp_stm_read(txn, cells[t->to], &to);
    from--;
    to++;
    err = err != TRP_OK ? err : trp_stm_write(txn, cells[t->from], &from);
    return err != TRP_OK ? err : trp_stm_write(txn, cells[t->to], &to);
}

static void *
transactions_run(void *arg)
{
    teller *t = arg;
    for (uint64_t i = 0; i < t->transfers; i++) {
        accounts_choose(t);
        bench_check(trp_stm_run(stm, move_one, t, NULL), "trp_stm_run");
    }
    return NULL;
}

static void *
locked_run(void *arg)
{
    teller *t = arg;
    for (uint64_t i = 0; i < t->transfers; i++) {
        accounts_choose(t);
        pthread_mutex_lock(&plain_lock);
        plain[t->from]--;
        plain[t->to]++;
        pthread_mutex_unlock(&plain_lock);
    }
    return NULL;
}

static double
transfers_rate(void *(*run)(void *), uint32_t threads, uint64_t transfers)
{
    static teller tellers[THREADS_MAX];
    uint64_t start = bench_now_ns();
    for (uint32_t i = 0; i < threads; i++) {
        tellers[i] = (teller){ .random = i + 1, .transfers = transfers / threads };
        if (pthread_create(&tellers[i].thread, NULL, run, &tellers[i]) != 0) {
            bench_check(TRP_EIO, "pthread_create");
        }
    }
    for (uint32_t i = 0; i < threads; i++) {
        (void)pthread_join(tellers[i].thread, NULL);
    }
    return (double)(transfers / threads * threads) * 1e9 / (double)(bench_now_ns() - start);
}

static uint32_t
threads_of(const bench_options *options)
{
    return options->threads == 0            ? 1
           : options->threads > THREADS_MAX ? THREADS_MAX
                                            : options->threads;
}

static int
run_stm(const bench_options *options)
{
    uint32_t threads = threads_of(options);
    uint64_t transfers = options->count != 0 ? options->count : 4000000;
    int64_t sum = 0, value;
    bench_check(trp_stm_new(&stm), "trp_stm_new");
    for (int i = 0; i < ACCOUNTS; i++) {
        bench_check(trp_stm_cell_new(stm, NULL, sizeof(int64_t), &cells[i]), "trp_stm_cell_new");
    }
    bench_print("stm", "rate", transfers_rate(transactions_run, threads, transfers), "transfers/s");
    bench_print("stm", "lock", transfers_rate(locked_run, threads, transfers), "transfers/s");
    for (int i = 0; i < ACCOUNTS; i++) {
        trp_stm_get(cells[i], &value);
        sum += value + plain[i];
        trp_stm_cell_free(cells[i]);
    }
    trp_stm_free(stm);
    bench_print("stm", "lost", (double)(sum < 0 ? -sum : sum), "messages");
    return sum == 0 ? 0 : 1;
}

static trp_agent *agent;

static trp_err
add_one(void *arg, void *value)
{
    (void)arg;
    ++*(int64_t *)value;
    return TRP_OK;
}

static void *
sends_run(void *arg)
{
    const teller *t = arg;
    for (uint64_t i = 0; i < t->transfers; i++) {
        bench_check(trp_agent_send(agent, add_one, NULL, NULL), "trp_agent_send");
    }
    int64_t value;
    bench_check(trp_agent_await(agent, 60000, &value), "trp_agent_await");
    return NULL;
}

static void *
reads_run(void *arg)
{
    teller *t = arg;
    for (uint64_t i = 0; i < t->transfers; i++) {
        int64_t value;
        trp_agent_get(agent, &value);
        t->read += value;
    }
    return NULL;
}

static void *
adds_run(void *arg)
{
    const teller *t = arg;
    for (uint64_t i = 0; i < t->transfers; i++) {
        pthread_mutex_lock(&plain_lock);
        plain[0]++;
        pthread_mutex_unlock(&plain_lock);
    }
    return NULL;
}

static int
run_agent(const bench_options *options)
{
    uint32_t threads = threads_of(options);
    uint64_t changes = options->count != 0 ? options->count : 1000000;
    trp_agent_options agent_options = TRP_AGENT_OPTIONS_INIT;
    trp_system *system = bench_system(options);
    int64_t value = 0;
    agent_options.queue_max = (uint32_t)changes + threads; /* each thread awaits its last one */
    bench_check(trp_agent_new(system, &value, sizeof value, &agent_options, &agent),
                "trp_agent_new");
    bench_print("agent", "rate", transfers_rate(sends_run, threads, changes), "changes/s");
    bench_print("agent", "read", transfers_rate(reads_run, threads, changes), "reads/s");
    plain[0] = 0;
    bench_print("agent", "lock", transfers_rate(adds_run, threads, changes), "changes/s");
    trp_agent_get(agent, &value);
    trp_agent_unref(agent);
    bench_system_end(system);
    bench_print("agent", "lost", (double)(plain[0] - value), "messages");
    return value == plain[0] ? 0 : 1;
}

const bench_workload bench_transfer[] = {
    { "agent", "1 M changes of a number by an agent, then as many reads, then under a lock",
      run_agent },
    { "stm", "transfers between 64 accounts, 4 M by transactions, then under one lock", run_stm },
    { NULL, NULL, NULL },
};
