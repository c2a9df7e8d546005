/* bench.c - figures: `bench WORKLOAD [--threads N] [--count N]` prints lines `troupe WORKLOAD PARAM
 * VALUE UNIT`.
 *
 * A rate is what receivers processed, from the first send to the last receipt. One process, one
 * workload, so that memory figures mean something. Only the public API is used.
 */
#include "tests/bench/bench.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STOP_MS 60000u
#define WAIT_S 60 /* of a workload; far more than any needs */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done;

void
bench_done(void)
{
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

void
bench_wait(void)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&lock);
    while (!done) {
        if (pthread_cond_timedwait(&changed, &lock, &until) != 0) {
            (void)fprintf(stderr, "bench: not done after %d s: something was lost\n", WAIT_S);
            exit(1);
        }
    }
    done = 0;
    pthread_mutex_unlock(&lock);
}

void
bench_check(trp_err err, const char *what)
{
    if (err != TRP_OK) {
        (void)fprintf(stderr, "bench: %s: %s\n", what, trp_strerror(err));
        exit(1);
    }
}

uint64_t
bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

size_t
bench_rss_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &total, &resident) != 2) {
            resident = 0;
        }
        (void)fclose(file);
    }
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t
bench_rss_idle_bytes(void)
{
    size_t before, now = bench_rss_bytes();
    int steady = 0;

    for (int i = 0; i < 250 && steady < 25; i++) {
        (void)nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        before = now;
        now = bench_rss_bytes();
        steady = now == before ? steady + 1 : 0;
    }
    return now;
}

size_t
bench_peak_rss_bytes(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024u;
}

void
bench_print(const char *workload, const char *param, double value, const char *unit)
{
    bool whole = value >= 1000 || value == (double)(uint64_t)value;

    (void)printf("troupe %s %s %.*f %s\n", workload, param,
                 whole       ? 0
                 : value < 1 ? 5
                             : 2,
                 value, unit);
    (void)fflush(stdout);
}

static int
figures_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double
bench_median(double *figures, size_t count)
{
    qsort(figures, count, sizeof *figures, figures_compare);
    return figures[count / 2];
}

const char *
bench_option_value(const bench_options *options, const char *name)
{
    for (int i = 0; i + 1 < options->argc; i++) {
        if (strcmp(options->argv[i], name) == 0) {
            return options->argv[i + 1];
        }
    }
    return NULL;
}

int
bench_print_rate(const char *workload, uint64_t count, uint64_t start_ns, uint64_t end_ns,
                 const char *unit, uint64_t lost)
{
    bench_print(workload, "rate", (double)count * 1e9 / (double)(end_ns - start_ns), unit);
    bench_print(workload, "lost", (double)lost, "messages");
    return lost == 0 ? 0 : 1;
}

trp_system *
bench_system(const bench_options *options)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;

    system_options.workers = options->threads;
    system_options.log_level = TRP_LOG_WARNING;
    bench_check(trp_system_new("bench", &system_options, &system), "trp_system_new");
    return system;
}

void
bench_system_end(trp_system *system)
{
    bench_check(trp_system_stop(system, STOP_MS), "trp_system_stop");
    trp_system_free(system);
}

trp_ref
bench_spawn(trp_system *system, const trp_behaviour *behaviour)
{
    trp_ref ref;

    bench_check(trp_system_spawn(system, behaviour, NULL, &ref), "trp_system_spawn");
    return ref;
}

void
bench_tell_ref(trp_system *system, trp_ref to, trp_ref peer)
{
    trp_system_tell(system, to, &trp_bytes_type, &peer, sizeof peer);
}

void
bench_tell_i64(trp_system *system, trp_ref to, int64_t value)
{
    trp_system_tell(system, to, &trp_i64_type, &value, sizeof value);
}

static const bench_workload *
workload_find(const char *name)
{
    const bench_workload *const tables[] = { bench_pairs,    bench_flood,          bench_text,
                                             bench_many,     bench_create,         bench_raw,
                                             bench_journal,  bench_sockets,        bench_remote,
                                             bench_slow,     bench_strangers,      bench_handoff,
                                             bench_entity,   bench_client,         bench_machine,
                                             bench_transfer, bench_flow,           bench_pubsub,
                                             bench_observe,  bench_strangers_http, bench_endpoint };

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const bench_workload *w = tables[i]; w != NULL && w->name != NULL; w++) {
            if (name == NULL) {
                (void)fprintf(stderr, "  %-20s %s\n", w->name, w->shape);
            } else if (strcmp(w->name, name) == 0) {
                return w;
            }
        }
    }
    return NULL;
}

static int
usage_print(void)
{
    (void)fprintf(stderr, "usage: bench WORKLOAD [--threads N] [--count N]\nworkloads:\n");
    (void)workload_find(NULL);
    return 64;
}

int
main(int argc, char **argv)
{
    bench_options options = { 0, 0, 0, NULL };
    const bench_workload *workload = argc > 1 ? workload_find(argv[1]) : NULL;

    if (workload == NULL) {
        return usage_print();
    }
    options.argc = argc - 2;
    options.argv = argv + 2;
    for (int i = 2; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0) {
            options.threads = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--count") == 0) {
            options.count = strtoull(argv[++i], NULL, 10);
        }
    }
    return workload->run(&options);
}
