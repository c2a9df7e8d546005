/* bench.h - shared by the workloads of tests/bench/bench. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/troupe.h>

typedef struct bench_options {
    uint32_t threads; /* --threads N; 0: one per core */
    uint64_t count;   /* --count N: how much to do; 0: the workload's own number */
    int argc; /* arguments behind the workload's name, for workloads with options of their own */
    char **argv;
} bench_options;

typedef struct bench_workload {
    const char *name;
    const char *shape;
    int (*run)(const bench_options *options); /* 0: done; its lines are printed */
} bench_workload;

/* Workloads of other files; each ends with an entry whose name is NULL. */
extern const bench_workload bench_pairs[];
extern const bench_workload bench_flood[];
extern const bench_workload bench_text[];
extern const bench_workload bench_many[];
extern const bench_workload bench_create[];
extern const bench_workload bench_raw[];
extern const bench_workload bench_journal[];
extern const bench_workload bench_entity[];
extern const bench_workload bench_machine[];
extern const bench_workload bench_transfer[];
extern const bench_workload bench_endpoint[];
extern const bench_workload bench_flow[];
extern const bench_workload bench_sockets[];
extern const bench_workload bench_remote[]
    __attribute__((weak)); /* absent where remoting is not built, as the next */
extern const bench_workload bench_slow[] __attribute__((weak));
extern const bench_workload bench_strangers[] __attribute__((weak));
extern const bench_workload bench_handoff[] __attribute__((weak));
extern const bench_workload bench_client[] __attribute__((weak));
extern const bench_workload bench_pubsub[] __attribute__((weak));
extern const bench_workload bench_observe[] __attribute__((weak));
extern const bench_workload bench_strangers_http[] __attribute__((weak));

/* Print "troupe WORKLOAD PARAM VALUE UNIT". */
void bench_print(const char *workload, const char *param, double value, const char *unit);
/* The median of `count` figures, at least one; they are sorted. */
double bench_median(double *figures, size_t count);
/* --NAME VALUE among the workload's own options; NULL: not there. */
const char *bench_option_value(const bench_options *options, const char *name);
/* Print `rate` (count per second between the two times) and `lost`, which must be 0. Returns 0, or
 * 1. */
int bench_print_rate(const char *workload, uint64_t count, uint64_t start_ns, uint64_t end_ns,
                     const char *unit, uint64_t lost);
uint64_t bench_now_ns(void);
size_t bench_rss_bytes(void);
size_t bench_rss_idle_bytes(
    void); /* when it has not changed for 500 ms: workers that sleep give memory back */
size_t bench_peak_rss_bytes(void);
/* Make a system with the options' threads; ends the program when it cannot. */
trp_system *bench_system(const bench_options *options);
void bench_system_end(trp_system *system);
/* trp_system_spawn() without options; ends the program when it fails. */
trp_ref bench_spawn(trp_system *system, const trp_behaviour *behaviour);
/* Tell a ref as raw bytes, a number as trp_i64_type; without a sender. */
void bench_tell_ref(trp_system *system, trp_ref to, trp_ref peer);
void bench_tell_i64(trp_system *system, trp_ref to, int64_t value);
/* One thread waits, any thread tells it to go on. After 60 s the program fails. */
void bench_done(void);
void bench_wait(void);
/* End the program with a message when err is not TRP_OK. */
void bench_check(trp_err err, const char *what);

#endif
