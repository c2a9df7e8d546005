/* sockets.h - the servers of the workload `sockets`: the same work by actors, and by a bare epoll
 * program of one thread.
 */
#ifndef TESTS_BENCH_SOCKETS_H
#define TESTS_BENCH_SOCKETS_H

#include "tests/bench/bench.h"

#define SOCKETS_SLICE_BYTES 65536u /* of one write of much */
#define SOCKETS_READ_BYTES 131072u /* of one read, as io.tcp.direct-buffer-size */

typedef enum sockets_work {
    SOCKETS_ECHO,  /* what comes goes back */
    SOCKETS_SINK,  /* read `bytes`, then answer one byte */
    SOCKETS_SOURCE /* write `bytes`, then close */
} sockets_work;

typedef struct sockets_server {
    sockets_work work;
    uint64_t bytes;
    uint32_t threads;
    int ready, end; /* the port is written there; it ends when this one is at its end */
} sockets_server;

/* Serve until the end. Both run in a process of their own. */
void sockets_serve_actors(const sockets_server *server);
void sockets_serve_bare(const sockets_server *server);

/* End the program with what errno says, unless ok. */
void sockets_check(int ok, const char *what);

#endif
