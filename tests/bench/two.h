/* two.h - two processes with remoting, for the workloads of remote.c: the child, and the way to
 * it.
 */
#ifndef TESTS_BENCH_TWO_H
#define TESTS_BENCH_TWO_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "remote/remote.h"
#include "tests/bench/bench.h"

#define BENCH_ASK_MS 10000u
#define BENCH_BEAT_BYTES 9
#define BENCH_QUIET_NS 3000000000ull /* no progress for so long: the rest is lost */

/* A child of this program, with pipes to its input and from its output. */
typedef struct bench_child {
    pid_t pid;
    FILE *in, *out;
} bench_child;
/* arguments: those of the program, without its name; ends with NULL. Before any thread exists. */
void bench_child_start(bench_child *child, const char *const *arguments);
void bench_child_end(bench_child *child); /* its input ends, and it */

typedef struct bench_two {
    bench_child child;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    char pki[32]; /* directory of the certificates; "": not encrypted */
    trp_system *system;
    trpi_remote *remote;
} bench_two;

/* Start `bench remote --child` (fork and exec, for nng does not like fork alone), a system and its
 * remoting. With tls both ends have a certificate of an authority made for this run. */
void bench_two_start(bench_two *two, const bench_options *options, bool tls);
void bench_two_end(bench_two *two);
/* The actor of the child at "/user/...". */
trp_ref bench_two_resolve(const bench_two *two, const char *path);

/* Remoting on 127.0.0.1 and any port. pki: directory of ca.pem, node.pem and node.key; NULL: plain.
 */
trpi_remote *bench_remote_start(trp_system *system, const char *pki);

/* Heartbeats of the child of bench_two, which answers each. */
void bench_beats_bind(const bench_two *two, bool bound);
/* One beat a millisecond, each after the answer to the one before; ret_trips_ns: of each. Return
 * how many have no answer. */
uint64_t bench_beats_run(const bench_two *two, const trpi_node_id *to, uint64_t count,
                         uint64_t *ret_trips_ns);

/* slow.c: in the child, what it tells. */
void bench_slow_spawn(trp_system *system);

#endif
