/* node_limits.c - see the header.
 *
 * Why.     With too little address space threads cannot be made, and the library for sockets is not
 *          prepared for that: it hangs or crashes when some of its threads are missing. Too few
 *          descriptors show as an unclear "input/output error". So both are checked before any part
 *          has begun.
 * Limits.  Estimates: a node of 2 processors has 23 threads and 787 MB of address space at most
 *          (of each thread its stack, and what malloc reserves for it), and 13 descriptors at rest.
 * Tests.   tests/unit/node/node_limits_test.c, tests/system/node.sh
 */
#include "cluster/node/node_limits.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define THREADS_FIXED 17u         /* without those that follow the number of processors */
#define CALLBACK_THREADS_MAX 16u  /* of the library for sockets: two for each processor, at most */
#define STACK_BYTES (2 * MIB)     /* libc's, where RLIMIT_STACK is unlimited */
#define RESERVED_BYTES (16 * MIB) /* by malloc for a thread: part of the threads get 64 MiB */
#define FIXED_BYTES (256 * MIB)   /* programs, libraries, the heap */

/* failed: of the getrlimit() that filled it. */
static uint64_t
value_of(int failed, const struct rlimit *limit)
{
    return failed != 0 || limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit->rlim_cur;
}

void
trpi_node_limits_look(trpi_node_limits *ret_limits)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct rlimit limit = { 0, 0 };
    ret_limits->descriptors = value_of(getrlimit(RLIMIT_NOFILE, &limit), &limit);
    ret_limits->address_bytes = value_of(getrlimit(RLIMIT_AS, &limit), &limit);
    ret_limits->stack_bytes = value_of(getrlimit(RLIMIT_STACK, &limit), &limit);
    ret_limits->processors = processors < 1 ? 1 : (uint32_t)processors;
}

uint64_t
trpi_node_address_need(const trpi_node_limits *limits)
{
    uint64_t callbacks = 2ull * limits->processors;
    uint64_t threads = THREADS_FIXED + limits->processors +
                       (callbacks < CALLBACK_THREADS_MAX ? callbacks : CALLBACK_THREADS_MAX);
    uint64_t stack = limits->stack_bytes == UINT64_MAX ? STACK_BYTES : limits->stack_bytes;
    return FIXED_BYTES + threads * (stack + RESERVED_BYTES);
}

bool
trpi_node_limits_suffice(const trpi_node_limits *limits, char *why, size_t why_bytes)
{
    uint64_t need = trpi_node_address_need(limits);
    if (limits->descriptors < TRPI_NODE_DESCRIPTORS_LEAST) {
        (void)snprintf(
            why, why_bytes,
            "this process may have %llu descriptors (RLIMIT_NOFILE), and a node needs %u "
            "and two for each peer: raise it (ulimit -n 1024; LimitNOFILE= of the unit)",
            (unsigned long long)limits->descriptors, TRPI_NODE_DESCRIPTORS_LEAST);
        return false;
    }
    if (limits->address_bytes < need) {
        (void)snprintf(why, why_bytes,
                       "this process may have %llu MiB of address space (RLIMIT_AS), and a node on "
                       "%u processors needs %llu MiB, most of it only reserved for threads: raise "
                       "it (ulimit -v unlimited; LimitAS=infinity of the unit; what limits memory "
                       "itself is MemoryMax=)",
                       (unsigned long long)(limits->address_bytes / MIB), limits->processors,
                       (unsigned long long)((need + MIB - 1) / MIB));
        return false;
    }
    return true;
}
