/* context.c - what all files of the room use: a rate limit for log lines, references. */
#include "remote/association/context.h"

enum { LOG_LIMIT_MS = 10000 };

bool
trpi_log_limit_allows(trpi_remote *remote, uint32_t kind, uint32_t *ret_suppressed)
{
    trpi_log_limit *limit = &remote->log_limits[kind];
    uint64_t now_ms = trpi_remote_now_ms(remote) + 1;
    uint64_t until = atomic_load_explicit(&limit->until_ms, memory_order_relaxed);
    /* Relaxed: of two threads in the same moment one gets through; nothing else hangs on it. */
    if (now_ms < until ||
        !atomic_compare_exchange_strong_explicit(&limit->until_ms, &until, now_ms + LOG_LIMIT_MS,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
        return false;
    }
    *ret_suppressed = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
    return true;
}

void
trpi_remote_ref(trpi_remote *remote)
{
    atomic_fetch_add_explicit(&remote->references, 1, memory_order_relaxed);
}
